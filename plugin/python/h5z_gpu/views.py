# SPDX-License-Identifier: MIT OR Apache-2.0
"""Arrays in memory as the library takes them, and their value range."""
from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from .chunks import chunk_shape
from .library import checked, lib

lib.h5z_gpu_range.restype = ctypes.c_int64


class Array(ctypes.Structure):
    """h5z_gpu_array of h5z_gpu.h."""

    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32), ("flags", ctypes.c_uint32),
                ("type", ctypes.c_char_p), ("rank", ctypes.c_size_t), ("shape", ctypes.POINTER(ctypes.c_uint64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("stream", ctypes.c_void_p)]  # fmt: skip


def on_host(array: Any) -> np.ndarray:
    """An array as NumPy's, in place where it is in host memory."""
    if isinstance(array, np.ndarray):
        return array
    if hasattr(array, "__dlpack_device__"):
        try:
            return np.from_dlpack(array)
        except (BufferError, RuntimeError, TypeError, ValueError) as e:
            raise TypeError(f"h5z-gpu: a {type(array).__name__} on device {array.__dlpack_device__()} is not in host memory "
                            f"that NumPy can use ({e}): copy it there, by .cpu() or .get() as its library says") from None  # fmt: skip
    return np.asarray(array)


def described(array: np.ndarray) -> Array:
    """What the library is told of an array, which lives as long as the answer."""
    rank = array.ndim
    view = Array(array.ctypes.data, -1, 0 if array.flags.writeable else 1, array.dtype.str.encode(), rank,
                 (ctypes.c_uint64 * rank)(*array.shape), (ctypes.c_int64 * rank)(*array.strides), None)  # fmt: skip
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
    """Smallest and largest finite value of an array, but for the fill value.

    Parameters
    ----------
    array : array_like of float32 or float64
        Of any shape and strides.
    fill_value : float, optional
        Left out, by its bits.
    threads : int
        CPU threads; 0 for as many as the process may use.

    Returns
    -------
    tuple of float, or None
        None where no value is finite.

    Raises
    ------
    ValueError
        For another type.
    """
    array = on_host(array)
    if array.dtype.kind != "f" or array.dtype.itemsize not in (4, 8):
        raise ValueError(f"h5z-gpu: a range is of float32 or float64 values, not {array.dtype}")
    if array.size == 0:
        return None
    array = np.atleast_1d(array)
    chunk = chunk_shape(array.shape, array.dtype.itemsize)
    origins = origins_of((0,) * array.ndim, array.shape, chunk)
    found = (ctypes.c_double * 2)()
    fill = None if fill_value is None else np.asarray(fill_value, array.dtype).ctypes.data_as(ctypes.c_void_p)
    some = checked(lib.h5z_gpu_range(
        ctypes.byref(described(array)), (ctypes.c_uint64 * array.ndim)(*chunk), fill, ctypes.c_size_t(len(origins)),
        numbers(origins, ctypes.c_int64), ctypes.c_int(threads), found,
    ))  # fmt: skip
    return (found[0], found[1]) if some else None
