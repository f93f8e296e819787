# SPDX-License-Identifier: MIT OR Apache-2.0
"""The library's work on an array that is written, and who ends it."""
from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from .capi import Array
from .library import checked, lib
from .views import numbers


class Encoding:
    """Chunks of an array on their way to their frames. Threads of the library read the array meanwhile.

    Ctrl-C may arrive between any two steps. So this object is made before the work is, holds the array, and ends the work at the end
    of `with`, and once more when it goes itself: no thread outlives it, and none reads an array that is gone.
    """

    def __init__(self) -> None:
        self.work = ctypes.c_void_p()  # h5z_gpu_work: NULL until there is any, and again when it was ended
        self.kept: Any = None

    def begin(self, view: Array, words: Any, chunk: tuple[int, ...], fill: np.ndarray | None, origins: np.ndarray, threads: int) -> None:
        """Begins to encode the chunks at `origins`, int64, a row each. `view` is what `views.described` answers."""
        self.kept = view, origins
        checked(lib.h5z_gpu_encode_array(
            (ctypes.c_uint32 * max(1, len(words)))(*words), len(words), ctypes.byref(view),
            (ctypes.c_uint64 * len(chunk))(*chunk), None if fill is None else fill.ctypes.data_as(ctypes.c_void_p),
            len(origins), numbers(origins, ctypes.c_int64), threads, ctypes.byref(self.work),
        ))  # fmt: skip

    def write(self, write_chunk: Any, dataset: int, offsets: np.ndarray, path: str) -> int:
        """Writes the next frames; how many, 0 when all are written.

        Parameters
        ----------
        write_chunk : H5Dwrite_chunk of the dataset's HDF5.
        dataset : its identifier.
        offsets : places of all chunks in the dataset, uint64, a row each.
        path : the file's name, for the OSError that is raised where HDF5 fails.
        """
        n, rank = offsets.shape
        return checked(lib.h5z_gpu_write_chunks(
            self.work, write_chunk, dataset, rank, n, numbers(offsets, ctypes.c_uint64),
        ), path)  # fmt: skip

    def frames(self) -> list[bytes]:
        """The next frames, none when all were given."""
        at, lens = ctypes.POINTER(ctypes.c_void_p)(), ctypes.POINTER(ctypes.c_size_t)()
        n = checked(lib.h5z_gpu_next(self.work, ctypes.byref(at), ctypes.byref(lens)))
        return [ctypes.string_at(at[k], lens[k]) for k in range(n)]

    def end(self) -> None:
        """Ends the work. Once more is nothing."""
        lib.h5z_gpu_end(ctypes.byref(self.work))

    __del__ = end

    def __enter__(self) -> Encoding:
        return self

    def __exit__(self, *why: object) -> None:
        self.end()
