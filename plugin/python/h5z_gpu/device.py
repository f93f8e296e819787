# SPDX-License-Identifier: MIT OR Apache-2.0
"""Arrays in a GPU's memory, whatever library owns them: CuPy, PyTorch, JAX, Numba and all that speak DLPack or
`__cuda_array_interface__`. None of them is imported here.

A library orders the work of the device that is current in the thread, whichever device the array is on, or refuses. So
the array's device is made current while its library is asked. Which device that is the library says, or the driver; it
is never guessed.
"""
from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from . import mltypes
from .library import checked, lib

_NOWHERE = -1  # the device of an array without elements, as of one in host memory
_CPU, _CUDA, _CUDA_HOST, _CUDA_MANAGED = 1, 2, 3, 13  # DLDeviceType
_KINDS = {0: "i", 1: "u", 2: "f", 5: "c", 6: "b"}  # DLDataTypeCode
_ADDED = {4: "bfloat16", 7: "float8_e3m4", 8: "float8_e4m3", 9: "float8_e4m3b11fnuz", 10: "float8_e4m3fn",
          11: "float8_e4m3fnuz", 12: "float8_e5m2", 13: "float8_e5m2fnuz", 14: "float8_e8m0fnu"}  # of ml_dtypes
_LEGACY, _READY = 1, -1  # streams, as h5z_gpu.h names them


class _DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


# A prototype of its own: ctypes.pythonapi is shared by the whole process.
_capsule_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


class DeviceArray:
    """An array, or a part of one, in a GPU's memory.

    Attributes
    ----------
    pointer : int
        Address of the first element.
    device : int
        CUDA's number of the device; -1 where there are no elements, and no device is known.
    dtype : numpy.dtype
    shape : tuple of int
    strides : tuple of int
        Bytes from an element to the next along each axis.
    stream : int
        The stream whose work makes the array ready, as h5z_gpu.h says.
    readonly : bool
    """

    def __init__(self, pointer: int, device: int, dtype: np.dtype, shape: tuple[int, ...], strides: tuple[int, ...],
                 stream: int, readonly: bool, owner: Any) -> None:
        self.pointer, self.device, self.dtype, self.shape, self.strides = pointer, device, dtype, shape, strides
        self.stream, self.readonly, self.owner = stream, readonly, owner

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.size * self.itemsize

    def with_axes(self, shape: tuple[int, ...]) -> DeviceArray:
        """The same memory with axes of extent 1 more or fewer."""
        rest = [(n, s) for n, s in zip(self.shape, self.strides) if n != 1]
        strides = []
        for n in shape:
            if n != 1:
                extent, stride = rest.pop(0)
                assert extent == n, f"{self.shape} as {shape}"
                strides.append(stride)
            else:
                strides.append(self.itemsize)
        return self._part(self.pointer, tuple(shape), tuple(strides))

    def __getitem__(self, slices: tuple[slice, ...]) -> DeviceArray:
        """A box of it, of slices of step 1."""
        pointer = self.pointer + sum(part.start * s for part, s in zip(slices, self.strides))
        return self._part(pointer, tuple(part.stop - part.start for part in slices), self.strides)

    def view(self, dtype: np.dtype) -> DeviceArray:
        """The same memory as elements of another type of the same size."""
        return DeviceArray(self.pointer, self.device, dtype, self.shape, self.strides, self.stream, self.readonly,
                           self.owner)

    def _part(self, pointer: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> DeviceArray:
        return DeviceArray(pointer, self.device, self.dtype, shape, strides, self.stream, self.readonly, self.owner)


def device_array(array: Any) -> DeviceArray | None:
    """An array of any library as a DeviceArray; None where it is in host memory.

    TypeError where it is on a device that is not CUDA's, of a type that NumPy has not, or its library does not hand it
    out.
    """
    if isinstance(array, DeviceArray):
        return array
    if hasattr(array, "__dlpack_device__"):
        kind, device = _dlpack_device(array)
        if kind in (_CUDA, _CUDA_MANAGED):  # the driver moves managed memory; work on it may be pending all the same
            return _from_dlpack(array, device)
        if kind not in (_CPU, _CUDA_HOST):
            raise TypeError(f"h5z-gpu: a {type(array).__name__} on a device of DLPack's kind {kind}; CUDA's and host "
                            "memory are taken: copy it to host memory")
        return None
    return _from_interface(array)


def _dlpack_device(array: Any) -> tuple[int, int]:
    """DLPack's kind and number of the device that an array is on."""
    try:
        kind, device = array.__dlpack_device__()
    except (BufferError, RuntimeError, TypeError, ValueError) as e:
        name = type(array).__name__
        try:
            count = len(array.devices())  # JAX's
        except (AttributeError, RuntimeError, TypeError):
            count = 1
        if count > 1:
            raise TypeError(f"h5z-gpu: a {name} cannot be read in place, it is spread over {count} devices: give "
                            f"np.asarray(x), or one after the other the data of x.addressable_shards") from None
        raise TypeError(f"h5z-gpu: a {name} cannot be read in place ({e}): give a NumPy array of it") from None
    return int(kind), int(device)


@contextmanager
def _current(device: int) -> Iterator[None]:
    """A device is current in this thread, as its own library would make it."""
    checked(lib.h5z_gpu_enter_device(device))
    try:
        yield
    finally:
        lib.h5z_gpu_leave_device()


def _from_dlpack(array: Any, device: int) -> DeviceArray:
    with _current(device):
        try:
            # The legacy default stream waits for the array's work; ours wait for that.
            capsule = array.__dlpack__(stream=_LEGACY)
        except (BufferError, RuntimeError, TypeError, ValueError) as e:
            # nvCOMP's arrays take no number for a stream there, but have the older interface too.
            older = _from_interface(array)
            if older is not None:
                return older
            raise TypeError(f"h5z-gpu: a {type(array).__name__} on a GPU cannot be read: {e}") from None
    return _opened(array, capsule, device)


def _opened(array: Any, capsule: Any, device: int) -> DeviceArray:
    """What a capsule of DLPack leads to, in any memory. The capsule holds that, and gives it back when it goes."""
    tensor = _DLTensor.from_address(_capsule_pointer(capsule, b"dltensor"))
    dtype = _dtype(tensor)
    shape = tuple(tensor.shape[k] for k in range(tensor.ndim))
    strides = tuple(tensor.strides[k] * dtype.itemsize
                    for k in range(tensor.ndim)) if tensor.strides else _dense(shape, dtype)
    # JAX's arrays never change.
    readonly = type(array).__module__.partition(".")[0] in ("jax", "jaxlib")
    return DeviceArray((tensor.data or 0) + tensor.byte_offset, device, dtype, shape, strides, _LEGACY, readonly,
                       (array, capsule))


def _dtype(tensor: _DLTensor) -> np.dtype:
    """The type of a tensor's elements."""
    if tensor.lanes == 1 and tensor.bits % 8 == 0:
        if tensor.code in _KINDS:
            return np.dtype(f"{_KINDS[tensor.code]}{tensor.bits // 8}")
        added = mltypes.named(_ADDED.get(tensor.code))
        if added is not None:
            return added
        if tensor.code in _ADDED:
            raise TypeError(f"h5z-gpu: NumPy has {_ADDED[tensor.code]} with the package ml_dtypes alone: install that, "
                            "or convert the array to float32")
    raise TypeError(f"h5z-gpu: NumPy has no such type (DLPack's code {tensor.code}, {tensor.bits} bits): convert the "
                    "array to float32")


class _Lent:
    """Memory of another library's array, in NumPy's words."""

    def __init__(self, there: DeviceArray) -> None:
        self.__array_interface__ = {"version": 3, "data": (there.pointer, there.readonly), "shape": there.shape,
                                    "strides": there.strides, "typestr": f"|V{there.itemsize}"}
        self.there = there


def host_array(array: Any) -> np.ndarray:
    """An array of any library in host memory, in place, by DLPack: of the types of `ml_dtypes` too, which NumPy's own
    from_dlpack does not know."""
    there = _opened(array, array.__dlpack__(), _NOWHERE)
    return np.asarray(_Lent(there)).view(there.dtype)


def _from_interface(array: Any) -> DeviceArray | None:
    """An array by `__cuda_array_interface__`; None where it has none."""
    interface = _interface(array)
    if interface is None:
        return None
    device = _NOWHERE
    if 0 not in interface["shape"]:
        device = checked(lib.h5z_gpu_device_of(interface["data"][0]))
        with _current(device):
            interface = _interface(array)  # with the stream of this device
    dtype, shape = np.dtype(interface["typestr"]), tuple(interface["shape"])
    pointer, readonly = interface["data"]
    stream = interface.get("stream", _LEGACY)
    strides = interface.get("strides")
    strides = _dense(shape, dtype) if strides is None else tuple(strides)
    stream = _READY if stream is None else int(stream)
    return DeviceArray(pointer or 0, device, dtype, shape, strides, stream, bool(readonly), array)


def _interface(array: Any) -> Any:
    try:
        return getattr(array, "__cuda_array_interface__", None)
    except (AttributeError, RuntimeError, TypeError) as e:
        raise TypeError(f"h5z-gpu: a {type(array).__name__} on a GPU cannot be read: {e}") from None


def _dense(shape: tuple[int, ...], dtype: np.dtype) -> tuple[int, ...]:
    strides, step = [], dtype.itemsize
    for n in reversed(shape):
        strides.append(step)
        step *= n
    return tuple(reversed(strides))
