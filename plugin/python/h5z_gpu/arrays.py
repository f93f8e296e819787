# SPDX-License-Identifier: MIT OR Apache-2.0
"""The codecs on NumPy arrays, without HDF5."""
import ctypes

import numpy as np

from .filters import Lossless, Lossy
from .library import checked, lib


def compress(array, how=None, fill=None):
    """One frame: the bytes that HDF5 would store for `array` as a chunk of its own.

    how: a `Lossy` or `Lossless` (default). fill: a value that comes back bit for bit and stretches no range.
    Raises ValueError for Python objects: their array holds addresses.
    """
    a = np.ascontiguousarray(array)
    if a.dtype.hasobject:
        raise ValueError(f"h5z-gpu: an array of {a.dtype} holds Python objects: give it a type such as float32 or S10")
    if not isinstance(how, (Lossy, Lossless, type(None))):
        raise TypeError(f"h5z-gpu: how = {how!r}; give h5z_gpu.Lossy(1e-3) or h5z_gpu.Lossless()")
    words = (how or Lossless()).filter_options
    kind = a.dtype.str if a.dtype.kind in "fiu" else f"|V{a.dtype.itemsize}"
    out = np.empty(lib.h5z_gpu_max_encoded(ctypes.c_size_t(a.nbytes)), np.uint8)
    element = None if fill is None else np.array(fill, a.dtype).ctypes.data_as(ctypes.c_void_p)
    n = lib.h5z_gpu_encode(
        (ctypes.c_uint32 * max(1, len(words)))(*words), ctypes.c_size_t(len(words)), kind.encode(),
        ctypes.c_size_t(a.ndim), (ctypes.c_uint64 * max(1, a.ndim))(*a.shape), element,
        a.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(a.nbytes),
        out.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(out.nbytes),
    )  # fmt: skip
    return out[: checked(n)].tobytes()


def decompress(frame, dtype, shape=-1):
    """The array of one frame. A frame knows its bytes; type and shape are the caller's, as with np.frombuffer.

    Raises ValueError for a damaged frame, and where `dtype` and `shape` do not fit its length.
    """
    data = np.frombuffer(frame, np.uint8)
    source, size = data.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(data.nbytes)
    out = np.empty(checked(lib.h5z_gpu_raw_len(source, size)), np.uint8)
    checked(lib.h5z_gpu_decode(source, size, out.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(out.nbytes)))
    return out.view(dtype).reshape(shape)
