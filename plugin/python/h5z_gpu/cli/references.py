# SPDX-License-Identifier: MIT OR Apache-2.0
"""Exchanges references in values that are copied from one file to another.

An object reference is the address of an object in its file. `addresses` has the address of each object's copy, so a
whole buffer of references is exchanged by one search in a sorted table, and no object is opened. References to regions
and those of HDF5 1.12 (H5R_ref_t) are opened in the old file and made anew in the new one. A reference that leads to no
object of the old file that was copied becomes empty, and is counted.
"""
from __future__ import annotations

import contextlib
import ctypes
from typing import Any

import numpy as np
from h5py import h5f, h5s

from .hdf5 import DEFAULT, address, at_address, calls, wrapped
from .places import ARRAY, OBJECT, REGION, STANDARD, VLEN, Place, holds_references
from .remains import Remains

_TO_REGION, _TO_ATTRIBUTE = 3, 4  # H5R_DATASET_REGION2, H5R_ATTR
_OLD_REGION = 1  # H5R_DATASET_REGION1
_UNUSABLE = (OSError, RuntimeError, KeyError, ValueError)


class References:
    """Exchanges references between two files.

    `addresses` says where an object of the old file is in the new one. It is complete when the first value is
    exchanged.
    """

    def __init__(self, source: h5f.FileID, target: h5f.FileID, addresses: dict[int, int]) -> None:
        self.source, self.target, self.addresses = source, target, addresses
        self.remains = Remains(target)
        self.dead = 0
        """References that led nowhere."""
        self._old = self._new = np.zeros(0, np.uint64)

    def complete(self) -> None:
        """Says that every object has its place in the new file."""
        self._old = np.array(sorted(self.addresses), np.uint64)
        self._new = np.array([self.addresses[int(old)] for old in self._old], np.uint64)

    def exchange(self, elements: np.ndarray, places: tuple[Place, ...]) -> None:
        """Exchanges what elements refer to, in place; their bytes are along the last axis of an array of uint8."""
        for place in places:
            part = elements[..., place.offset : place.offset + place.size]
            if place.kind == OBJECT:
                self._objects(part)
            elif place.kind in (REGION, STANDARD):
                each = self._region if place.kind == REGION else self._standard
                for index in np.ndindex(part.shape[:-1]):
                    if part[index].any() and not each(part[index]):
                        self.dead += 1
                        part[index] = 0
            elif place.kind == ARRAY:
                self.exchange(part.reshape(*part.shape[:-1], place.number, place.step), place.inner)
            elif place.kind == VLEN and holds_references(place.inner):
                for index in np.ndindex(part.shape[:-1]):
                    self.exchange(pointed_at(part[index], place.step), place.inner)

    def targets(self, elements: np.ndarray, places: tuple[Place, ...]) -> set[int]:
        """Addresses in the old file that elements refer to, by references that lead somewhere."""
        found: set[int] = set()
        for place in places:
            part = elements[..., place.offset : place.offset + place.size]
            if place.kind == OBJECT:
                found.update(np.ascontiguousarray(part).view(np.uint64).reshape(-1).tolist())
            elif place.kind == ARRAY:
                found |= self.targets(part.reshape(*part.shape[:-1], place.number, place.step), place.inner)
            elif place.kind in (REGION, STANDARD):
                for index in np.ndindex(part.shape[:-1]):
                    with contextlib.suppress(*_UNUSABLE):
                        found.add(address(self._opened(part[index], place.kind)))
            elif place.kind == VLEN:
                for index in np.ndindex(part.shape[:-1]):
                    found |= self.targets(pointed_at(part[index], place.step), place.inner)
        return found - {0}

    def _objects(self, part: np.ndarray) -> None:
        """Object references, eight bytes each."""
        old = np.ascontiguousarray(part).view(np.uint64)[..., 0]
        at = np.minimum(np.searchsorted(self._old, old), len(self._old) - 1)
        found = self._old[at] == old
        self.dead += int(np.count_nonzero(~found & (old != 0)))
        part[...] = np.where(found, self._new[at], 0).astype(np.uint64)[..., None].view(np.uint8)

    def _opened(self, reference: np.ndarray, kind: str) -> Any:
        """The object of the old file that a reference to a region or one of HDF5 1.12 leads to, or to a part of."""
        raw = (ctypes.c_uint8 * len(reference))(*reference)
        if kind == REGION:
            return wrapped(calls.H5Rdereference2(self.source, DEFAULT, _OLD_REGION, raw))
        return wrapped(calls.H5Ropen_object(raw, DEFAULT, DEFAULT))

    def _copy_of(self, item: Any) -> Any:
        """The object of the new file in the place of one of the old one."""
        return at_address(self.target, self.addresses[address(item)])

    def _region(self, reference: np.ndarray) -> bool:
        """Exchanges a reference to a region as HDF5 has them from the start; False where it leads nowhere."""
        raw = (ctypes.c_uint8 * len(reference))(*reference)
        try:
            region = h5s.SpaceID(calls.H5Rget_region(self.source, _OLD_REGION, raw))
            copy = self._copy_of(self._opened(reference, REGION))
        except _UNUSABLE:
            return False
        calls.H5Rcreate(raw, copy, b".", _OLD_REGION, region)
        reference[:] = raw
        return True

    def _standard(self, reference: np.ndarray) -> bool:
        """Exchanges a reference of HDF5 1.12, which is a handle in memory; False where it leads nowhere."""
        raw = (ctypes.c_uint8 * len(reference))(*reference)
        kind = calls.H5Rget_type(raw)
        try:
            copy = self._copy_of(self._opened(reference, STANDARD))
            region = h5s.SpaceID(calls.H5Ropen_region(raw, DEFAULT, DEFAULT)) if kind == _TO_REGION else None
        except _UNUSABLE:
            calls.H5Rdestroy(raw)
            return False
        made = (ctypes.c_uint8 * len(reference))()
        if kind == _TO_REGION:
            calls.H5Rcreate_region(copy, b".", region, DEFAULT, made)
        elif kind == _TO_ATTRIBUTE:
            name = ctypes.create_string_buffer(calls.H5Rget_attr_name(raw, None, 0) + 1)
            calls.H5Rget_attr_name(raw, name, len(name))
            calls.H5Rcreate_attr(copy, b".", name.value, DEFAULT, made)
        else:
            calls.H5Rcreate_object(copy, b".", DEFAULT, made)
        calls.H5Rdestroy(raw)
        reference[:] = made
        return True


def pointed_at(element: np.ndarray, step: int) -> np.ndarray:
    """The elements that an element of any length (hvl_t: a number and a pointer) has in memory, as rows of `step`
    bytes."""
    count, pointer = (int(n) for n in np.ascontiguousarray(element).view(np.uintp))
    if not count or not pointer:
        return np.zeros((0, step), np.uint8)
    there = (ctypes.c_uint8 * (count * step)).from_address(pointer)
    return np.asarray(memoryview(there).cast("B")).reshape(count, step)
