# SPDX-License-Identifier: MIT OR Apache-2.0
"""The library's work on a dataset that is read or written, and who ends it."""
from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np

from .capi import DAMAGED, FAILED, OTHER_WAY
from .device import DeviceArray
from .index import asked, function_of_hdf5
from .library import failure, lib
from .mltypes import hdf5_type, is_bfloat16
from .views import described

if TYPE_CHECKING:
    import h5py


class OtherWay(Exception):
    """Why a dataset or a request goes through h5py."""


class Transfer:
    """A box of a dataset on its way into an array or out of one. Threads of the library use the array meanwhile.

    Ctrl-C may arrive between any two steps. So this object is made before the work is, holds the array, and ends the
    work at the end of `with`, and again when it goes itself: no thread outlives it, and none uses an array that is
    gone. h5py's lock is held during all of it.
    """

    def __init__(self, dataset: h5py.Dataset) -> None:
        self.work = ctypes.c_void_p()  # h5z_gpu_transfer: NULL until there is any, and again when it was ended
        self.dataset = dataset
        self.kept: Any = None

    def read(self, out: np.ndarray | DeviceArray, start: tuple[int, ...], fill_damaged: bool, threads: int,
             devices: str | None) -> int:
        """Begins to read: bytes of all. Raises OtherWay where HDF5 is to do it."""
        given = self._given(out, start, devices)
        work = ctypes.byref(self.work)
        return self._checked(asked(lib.h5z_gpu_read_dataset, *given, fill_damaged, threads, work))

    def write(self, array: np.ndarray | DeviceArray, start: tuple[int, ...], threads: int,
              devices: str | None) -> int:
        """Begins to write: bytes of all. Raises OtherWay where HDF5 is to do it."""
        given = self._given(array, start, devices)
        return self._checked(asked(lib.h5z_gpu_write_dataset, *given, threads, ctypes.byref(self.work)))

    def _given(self, array: np.ndarray | DeviceArray, start: tuple[int, ...], devices: str | None) -> tuple[Any, ...]:
        dtype = array.dtype
        if dtype.kind not in "fiu" and not is_bfloat16(dtype):
            raise OtherWay(f"its type {dtype} is not one of NumPy's numbers")
        if not function_of_hdf5():
            raise OtherWay("this HDF5 has no H5Dwrite_chunk, which came with 1.10.3")
        view, kind = described(array, devices), hdf5_type(dtype)
        self.kept = view, kind
        first = (ctypes.c_uint64 * len(start))(*start)
        return function_of_hdf5(), self.dataset.id.id, kind.id, first, ctypes.byref(view)

    def step(self) -> int:
        """Goes on: bytes that are done, 0 when all are."""
        return self._checked(lib.h5z_gpu_step(self.work))

    def special(self) -> list[tuple[int, ...]]:
        """First elements of chunks that are damaged and hold the fill value or, written, of those that the box cuts."""
        origins, rank = ctypes.POINTER(ctypes.c_uint64)(), len(self.dataset.shape)
        n = self._checked(lib.h5z_gpu_special_chunks(self.work, rank, ctypes.byref(origins)))
        return [tuple(origins[rank * k : rank * (k + 1)]) for k in range(n)]

    def _checked(self, answer: int) -> int:
        if answer >= 0:
            return answer
        text = lib.h5z_gpu_last_error().decode()
        if answer == FAILED:
            raise failure(answer, text)
        text = text.removeprefix("h5z-gpu: ")
        if answer == OTHER_WAY:
            raise OtherWay(text)
        text = f"{self.dataset.name}: {text}"
        raise OSError(text) if answer == DAMAGED else failure(answer, text, self.dataset.file.filename)

    def end(self) -> None:
        """Ends the work. A second call does nothing."""
        lib.h5z_gpu_end_transfer(ctypes.byref(self.work))

    __del__ = end

    def __enter__(self) -> Transfer:
        return self

    def __exit__(self, *why: object) -> None:
        self.end()
