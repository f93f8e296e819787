# SPDX-License-Identifier: MIT OR Apache-2.0
"""Which object of one file is which of another, and whether references of both lead to the same."""

from __future__ import annotations

import ctypes
from typing import Any, Optional

import h5py
import numpy as np
from h5py import h5s

from .hdf5 import DEFAULT, about, calls, wrapped

_REGION = 1  # H5R_DATASET_REGION
_REGION2, _ATTRIBUTE = 3, 4  # H5R_DATASET_REGION2, H5R_ATTR


class Filled:
    """References of files whose objects nobody has paired: both lead somewhere, or neither does."""

    def objects(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Where one of two addresses of objects is empty."""
        return np.asarray((x == 0) != (y == 0))

    def regions(self, x: np.ndarray, y: np.ndarray) -> bool:
        """Whether both are empty, or neither."""
        return bool(x.any() == y.any())

    references = regions


class Table:
    """Addresses of the objects of two files, old and new, in pairs."""

    def __init__(self, a: h5py.File, b: h5py.File) -> None:
        self.a, self.b = a, b
        self.to: dict[int, int] = {}
        self.back: dict[int, int] = {}

    def pair(self, old: int, new: int) -> Optional[bool]:
        """Notes that one object is the other. Whether both are met for the first time; None where one of them is
        another object's already."""
        known = self.to.get(old)
        if known is None and new not in self.back:
            self.to[old], self.back[new] = new, old
            return True
        return False if known == new else None

    def objects(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Addresses of objects, uint64 (n,): where they are not the same, bool (n,). One that leads nowhere is any
        other that does."""
        to, back = self.to, self.back
        pairs = zip(x.tolist(), y.tolist())
        return np.fromiter((to[p] != q if p in to else q in back for p, q in pairs), bool, len(x))

    def regions(self, x: np.ndarray, y: np.ndarray) -> bool:
        """Whether two references to regions, uint8 (12,), select the same elements of the same dataset."""
        return bool(self._region(x, self.a, self.to) == self._region(y, self.b, None))

    def references(self, x: np.ndarray, y: np.ndarray) -> bool:
        """Whether two references H5R_ref_t, uint8 (64,), lead to the same."""
        return bool(self._reference(x, self.to) == self._reference(y, None))

    def _region(self, row: np.ndarray, file: h5py.File, to: Optional[dict[int, int]]) -> Any:
        row = np.ascontiguousarray(row)
        if not row.any():
            return None
        try:
            where = self._known(wrapped(calls.H5Rdereference2(file.id, DEFAULT, _REGION, row.ctypes.data)), to)
            selected = h5s.SpaceID(calls.H5Rget_region(file.id, _REGION, row.ctypes.data))
        except (OSError, RuntimeError):  # what it led to was deleted
            return None
        return where and (where, selected.encode())

    def _reference(self, row: np.ndarray, to: Optional[dict[int, int]]) -> Any:
        row = np.ascontiguousarray(row)
        if not row.any():
            return None
        at = row.ctypes.data
        try:
            kind = calls.H5Rget_type(at)
            where = self._known(wrapped(calls.H5Ropen_object(at, DEFAULT, DEFAULT)), to)
            more = b""
            if kind == _REGION2:
                more = h5s.SpaceID(calls.H5Ropen_region(at, DEFAULT, DEFAULT)).encode()
            elif kind == _ATTRIBUTE:
                name = ctypes.create_string_buffer(calls.H5Rget_attr_name(at, None, 0) + 1)
                calls.H5Rget_attr_name(at, name, len(name))
                more = name.value
        except (OSError, RuntimeError):
            return None
        return where and (where, kind, more)

    def _known(self, item: Any, to: Optional[dict[int, int]]) -> Optional[int]:
        """The new file's address of an object of either; None for one that the walk has not met."""
        where = about(item)[0]
        return to.get(where) if to is not None else where if where in self.back else None
