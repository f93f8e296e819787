# SPDX-License-Identifier: MIT OR Apache-2.0
"""The codecs on NumPy arrays, without HDF5."""
from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Union

import numpy as np

from .filters import How, Lossless, Lossy
from .library import checked, lib

if TYPE_CHECKING:
    import numpy.typing as npt

    Buffer = Union[bytes, bytearray, memoryview, npt.NDArray[np.uint8]]


def compress(array: npt.ArrayLike, how: How | None = None, fill: Any = None) -> bytes:
    """One frame: the bytes that HDF5 would store for `array` as a chunk of its own.

    Parameters
    ----------
    array : array_like
        Any shape, and any type that holds its values itself. Bits are lost of f16, f32 and f64 alone, in either byte
        order.
    how : Lossy or Lossless, optional
        Default: Lossless().
    fill : scalar, optional
        A value of the array's type that comes back bit for bit and stretches no range. Default: `how.fill_value`.

    Returns
    -------
    bytes
        At most `array.nbytes` + 64 of them.

    Raises
    ------
    ValueError
        For an array of Python objects: it holds addresses.
    TypeError
        For a `how` that is neither.
    """
    a = np.ascontiguousarray(array)
    if a.dtype.hasobject:
        raise ValueError(f"h5z-gpu: an array of {a.dtype} holds Python objects: give it a type such as float32 or S10")
    how = Lossless() if how is None else how
    if not isinstance(how, (Lossy, Lossless)):
        raise TypeError(f"h5z-gpu: how = {how!r}; give h5z_gpu.Lossy(1e-3) or h5z_gpu.Lossless()")
    words = how.words
    if fill is None and isinstance(how, Lossy) and a.dtype.kind == "f":
        fill = how.fill_value
    kind = a.dtype.str if a.dtype.kind in "fiu" else f"|V{a.dtype.itemsize}"
    out = np.empty(lib.h5z_gpu_max_encoded(a.nbytes), np.uint8)
    element = None if fill is None else np.array(fill, a.dtype).ctypes.data_as(ctypes.c_void_p)
    n = lib.h5z_gpu_encode(
        (ctypes.c_uint32 * max(1, len(words)))(*words), len(words), kind.encode(),
        a.ndim, (ctypes.c_uint64 * max(1, a.ndim))(*a.shape), element,
        a.ctypes.data, a.nbytes,
        out.ctypes.data, out.nbytes,
    )
    return out[: checked(n)].tobytes()


def decompress(frame: Buffer, dtype: npt.DTypeLike, shape: int | tuple[int, ...] = -1) -> npt.NDArray[Any]:
    """The array of one frame.

    Parameters
    ----------
    frame : bytes-like
        What `compress` gave, or one chunk as it lies in a file.
    dtype : data type
        The type of the values. A frame knows its bytes; type and shape are the caller's, as with np.frombuffer.
    shape : int or tuple of int, optional
        Default: one axis.

    Returns
    -------
    numpy.ndarray
        Writable, of its own.

    Raises
    ------
    ValueError
        For a damaged frame, and where `dtype` and `shape` do not fit its length.
    """
    data = np.frombuffer(frame, np.uint8)
    source, size = data.ctypes.data, data.nbytes
    out = np.empty(checked(lib.h5z_gpu_raw_len(source, size)), np.uint8)
    checked(lib.h5z_gpu_decode(source, size, out.ctypes.data, out.nbytes))
    return out.view(dtype).reshape(shape)
