# SPDX-License-Identifier: MIT OR Apache-2.0
"""Arrays in memory as the library takes them, and their value range."""
from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from .capi import EVERY_DEVICE, READ_ONLY, Array
from .chunks import chunk_shape
from .device import DeviceArray, device_array, host_array
from .library import checked, lib
from .mltypes import is_bounded


def as_array(array: Any) -> np.ndarray | DeviceArray:
    """An array as the library takes it, in place: NumPy's, or one in a GPU's memory."""
    if isinstance(array, np.ma.MaskedArray) and np.ma.is_masked(array):
        raise ValueError("h5z-gpu: the array has masked values, which a file cannot hold: give array.filled(-999), and "
                         "that as fill_value")
    if isinstance(array, np.ndarray):
        return array
    there = device_array(array)
    if there is not None:
        return there
    if hasattr(array, "__dlpack_device__"):
        try:
            try:
                return np.from_dlpack(array)
            except (BufferError, RuntimeError):
                return host_array(array)  # of a type that NumPy itself has not
        except (BufferError, RuntimeError, TypeError, ValueError) as e:
            raise TypeError(f"h5z-gpu: a {type(array).__name__} cannot be read in place ({e}): give a NumPy array of "
                            f"it") from None
    return np.asarray(array)


def on_host(array: Any) -> np.ndarray:
    """An array as NumPy's: in place where it is in host memory, else a copy."""
    array = as_array(array)
    if isinstance(array, np.ndarray):
        return array
    copied = np.empty(array.shape, array.dtype)
    copy(array, copied)
    return copied


def copy(source: np.ndarray | DeviceArray, target: np.ndarray | DeviceArray) -> None:
    """Copies values into an array, from host memory or a GPU's; one value is repeated."""
    if isinstance(source, np.ndarray):
        source = np.broadcast_to(np.asarray(source, target.dtype), target.shape)
        if isinstance(target, np.ndarray):
            target[...] = source
            return
    if source.size:
        given = [described(a if a.ndim else expanded(a, (1,))) for a in (source, target)]
        checked(lib.h5z_gpu_copy(ctypes.byref(given[0]), ctypes.byref(given[1])))


def expanded(array: np.ndarray | DeviceArray, shape: tuple[int, ...]) -> np.ndarray | DeviceArray:
    """The same memory with axes of extent 1 where a selection dropped them, or without them."""
    if isinstance(array, DeviceArray):
        return array.with_axes(shape)
    view = array.view()
    view.shape = shape  # fails where a copy would be needed: axes of 1 never need one
    return view


def described(array: np.ndarray | DeviceArray, devices: str | None = None) -> Array:
    """What the library is told of an array, which lives as long as the answer. `devices`: "all" for every GPU."""
    rank = array.ndim
    device, stream = -1, None
    if isinstance(array, DeviceArray):
        pointer, readonly, device, stream = array.pointer, array.readonly, array.device, array.stream
    else:
        pointer, readonly = array.ctypes.data, not array.flags.writeable
    flags = READ_ONLY * readonly | EVERY_DEVICE * (devices == "all")
    view = Array(pointer, device, flags, array.dtype.str.encode(), rank, (ctypes.c_uint64 * rank)(*array.shape),
                 (ctypes.c_int64 * rank)(*array.strides), stream)
    view.kept = array
    return view


def numbers(values: np.ndarray, kind: Any) -> Any:
    """A pointer to numbers of a C type; the caller keeps them."""
    return values.ctypes.data_as(ctypes.POINTER(kind))


def origins_of(start: tuple[int, ...], shape: tuple[int, ...], chunk: tuple[int, ...]) -> np.ndarray:
    """First elements of all chunks that a box touches, a row each, in order."""
    axes = [np.arange(s // c * c, s + n, c) for s, n, c in zip(start, shape, chunk)]
    return np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, len(axes)).astype(np.int64)


def value_range(array: Any, *, fill_value: float | None = None, threads: int = 0) -> tuple[float, float] | None:
    """Smallest and largest finite value of an array of floats, in host memory or a GPU's, but for the fill value, by
    its bits.

    None where no value is finite; ValueError for another type. `threads` of the CPU: 0 for as many as the process may
    use.
    """
    array = as_array(array)
    if not is_bounded(array.dtype):
        raise ValueError(f"h5z-gpu: a range is of float16, bfloat16, float32 or float64 values, not {array.dtype}")
    if array.dtype.itemsize == 2:
        array = on_host(array).astype(np.float32)
    if array.size == 0:
        return None
    array = array if array.ndim else expanded(array, (1,))
    chunk = chunk_shape(array.shape, array.dtype.itemsize)
    origins = origins_of((0,) * array.ndim, array.shape, chunk)
    found = (ctypes.c_double * 2)()
    fill = None if fill_value is None else np.asarray(fill_value, array.dtype).ctypes.data_as(ctypes.c_void_p)
    some = checked(lib.h5z_gpu_range(
        ctypes.byref(described(array)), (ctypes.c_uint64 * array.ndim)(*chunk), fill, len(origins),
        numbers(origins, ctypes.c_int64), threads, found,
    ))
    return (found[0], found[1]) if some else None
