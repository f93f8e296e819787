# SPDX-License-Identifier: MIT OR Apache-2.0
"""Makes zeros of what HDF5 writes of its memory beside references of HDF5 1.12 (H5R_ref_t): addresses, other ones in
each process.

A reference has 64 bytes in memory and 18 in a file, and HDF5 (1.12 to 2.0) makes the one of the other in place. Of a
reference to an object 11 of the 18 bytes are written (H5T__conv_ref); those behind them are what stood there before. A
sequence of any length gets the size in memory of each of its references (H5T__conv_vlen), of which only 18 are written:
the end of its room is the references as they are in memory. Nobody reads these bytes.

Elements are read and written as their file has them, by a conversion to a type of raw bytes that does nothing.
Sequences lie in HDF5's global heap, which no call changes: their bytes are changed when the file is closed.
"""
from __future__ import annotations

import contextlib
import ctypes
import mmap
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
from h5py import h5a, h5f, h5t

from .hdf5 import DEFAULT, calls
from .places import ARRAY, STANDARD, VLEN, Place, holds, in_file

_TO_OBJECT_HERE = (2, 0)  # H5R_OBJECT2, and no name of another file
_SOFT = 1  # H5T_PERS_SOFT: a conversion of all types of a class
_START = 0  # H5T_CONV_INIT


class _Conversion(ctypes.Structure):
    """H5T_cdata_t."""

    _fields_ = [("command", ctypes.c_int), ("background", ctypes.c_int), ("again", ctypes.c_bool),
                ("own", ctypes.c_void_p)]


_Function = ctypes.CFUNCTYPE(ctypes.c_int, *2 * (ctypes.c_int64,), ctypes.POINTER(_Conversion), *3 * (ctypes.c_size_t,),
                             *2 * (ctypes.c_void_p,), ctypes.c_int64)


def _no_change(_: int, __: int, conversion: Any, *___: Any) -> int:
    if conversion.contents.command == _START:
        conversion.contents.background = 0
    return 0


_nothing = _Function(_no_change)


@contextlib.contextmanager
def _raw(kind: h5t.TypeID, size: int) -> Iterator[h5t.TypeID]:
    """A type of raw bytes between which and another type HDF5 converts nothing."""
    raw = h5t.create(h5t.OPAQUE, size)
    pairs = ((kind, raw), (raw, kind))
    try:
        for one, other in pairs:
            calls.H5Tregister(_SOFT, b"bytes of a file", one, other, _nothing)
        yield raw
    finally:
        for one, other in pairs:
            calls.H5Tunregister(_SOFT, b"bytes of a file", one, other, _nothing)


class Remains:
    """What HDF5 has left in one file, which is open for writing."""

    def __init__(self, file: h5f.FileID) -> None:
        self._address, self._length = file.get_create_plist().get_sizes()
        self._sequences: list[tuple[int, int, int, Place]] = []
        """Of elements of any length: the heap's address, the place in it, the number, and what they are."""

    def clear(self, item: Any, held: tuple[Place, ...], count: int, here: Any = DEFAULT, there: Any = DEFAULT) -> None:
        """Makes zeros of what was left by a write of `count` elements to a dataset or an attribute."""
        if not holds(held, STANDARD):
            return
        size, places = in_file(item.get_type(), self._address)
        with _raw(item.get_type(), size) as raw:
            rows = np.zeros((count, size), np.uint8)
            if isinstance(item, h5a.AttrID):
                calls.H5Aread(item, raw, rows.ctypes.data)
            else:
                calls.H5Dread(item, raw, here, there, DEFAULT, rows.ctypes.data)
            before = rows.copy()
            self._clear(rows, places)
            if np.array_equal(rows, before):
                return
            if isinstance(item, h5a.AttrID):
                calls.H5Awrite(item, raw, rows.ctypes.data)
            else:
                calls.H5Dwrite(item, raw, here, there, DEFAULT, rows.ctypes.data)

    def _clear(self, rows: np.ndarray, places: tuple[Place, ...]) -> None:
        """Elements as they are in the file; their bytes are along the last axis."""
        for place in places:
            part = rows[..., place.offset : place.offset + place.size]
            if place.kind == STANDARD:
                part[..., 3 + self._address :][(part[..., :2] == _TO_OBJECT_HERE).all(-1)] = 0
            elif place.kind == ARRAY:
                self._clear(part.reshape(*part.shape[:-1], place.number, place.step), place.inner)
            elif place.kind == VLEN and holds(place.inner, STANDARD):
                for sequence in np.ascontiguousarray(part).reshape(-1, place.size):
                    number, heap, index = struct.unpack(f"<I{self._address}sI", sequence.tobytes())
                    if number and any(heap):
                        self._sequences.append((int.from_bytes(heap, "little"), index, number, place))

    def finish(self, path: str, base: int) -> None:
        """Makes zeros of what was left in sequences of the file, which is closed; `base`: bytes of its user block."""
        if not self._sequences:
            return
        heaps: dict[int, dict[int, tuple[int, int]]] = {}
        with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as data:
            while self._sequences:
                heap, index, number, place = self._sequences.pop()
                if heap not in heaps:
                    heaps[heap] = self._objects(data, base + heap)
                at, size = heaps[heap].get(index, (0, 0))
                used = number * place.step
                if used <= size:
                    rows = np.frombuffer(data[at : at + used], np.uint8).reshape(number, place.step).copy()
                    self._clear(rows, place.inner)
                    data[at : at + size] = rows.tobytes() + bytes(size - used)

    def _objects(self, data: mmap.mmap, at: int) -> dict[int, tuple[int, int]]:
        """Where the objects of a collection of the global heap begin, and their bytes."""
        found: dict[int, tuple[int, int]] = {}
        if data[at : at + 5] != b"GCOL\x01":
            return found
        head = 8 + -(-self._length // 8) * 8  # of the collection, and of each object
        end = at + self._number(data, at)
        at += head
        while at + head <= end and (index := int.from_bytes(data[at : at + 2], "little")):
            size = self._number(data, at)
            at += head
            found[index] = at, size
            at += -(-size // 8) * 8
        return found

    def _number(self, data: mmap.mmap, at: int) -> int:
        """The size in a head."""
        return int.from_bytes(data[at + 8 : at + 8 + self._length], "little")
