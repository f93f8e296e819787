# SPDX-License-Identifier: MIT OR Apache-2.0
"""Values as they lie in memory in the type of their file, whatever type that is, and checksums of them."""
from __future__ import annotations

import ctypes
import math
import zlib

import h5py
import numpy as np
from h5py import h5s, h5t

from .boxes import Box
from .hdf5 import DEFAULT, calls, has
from .places import Place, owns_memory, places_in
from .references import pointed_at


class elements:
    """Memory for elements: within the block their type there, and their bytes, a row each. What HDF5 has allocated for
    them is given back at the end. A class, which takes half the time of a generator: each attribute needs one."""

    def __init__(self, kind: h5t.TypeID, held: tuple[Place, ...], count: int) -> None:
        self.memory = kind.copy() if held or kind.committed() else kind
        self.rows = np.zeros((count, self.memory.get_size()), np.uint8)
        self.held = held

    def __enter__(self) -> tuple[h5t.TypeID, np.ndarray]:
        return self.memory, self.rows

    def __exit__(self, *why: object) -> None:
        if owns_memory(self.held):
            name = "H5Treclaim" if has("H5Treclaim") else "H5Dvlen_reclaim"
            getattr(calls, name)(self.memory, h5s.create_simple((len(self.rows),)), DEFAULT, self.rows.ctypes.data)


def sum_of(dataset: h5py.Dataset, box: Box) -> int:
    """A checksum of values as HDF5 reads them, the same in each file: what elements of any length hold is in it,
    references are not."""
    kind, extents = dataset.id.get_type(), tuple(part.stop - part.start for part in box)
    there, here = dataset.id.get_space(), h5s.create_simple((math.prod(extents),))
    if box:
        there.select_hyperslab(tuple(part.start for part in box), extents)
    held = places_in(kind)
    with elements(kind, held, math.prod(extents)) as (memory, rows):
        calls.H5Dread(dataset.id, memory, here, there, DEFAULT, rows.ctypes.data)
        return _sum(rows, memory, 0) if held else zlib.crc32(rows.data)


def _sum(rows: np.ndarray, kind: h5t.TypeID, before: int) -> int:
    """A checksum that goes on from the one before; the bytes between members of a compound are not in it."""
    if isinstance(kind, h5t.TypeReferenceID):
        return before
    if isinstance(kind, h5t.TypeCompoundID):
        for k in range(kind.get_nmembers()):
            at, member = kind.get_member_offset(k), kind.get_member_type(k)
            before = _sum(rows[..., at : at + member.get_size()], member, before)
    elif isinstance(kind, h5t.TypeArrayID):
        base = kind.get_super()
        before = _sum(rows.reshape(*rows.shape[:-1], -1, base.get_size()), base, before)
    elif isinstance(kind, h5t.TypeVlenID):
        base = kind.get_super()
        for index in np.ndindex(rows.shape[:-1]):
            inner = pointed_at(rows[index], base.get_size())
            before = _sum(inner, base, zlib.crc32(b"%d," % len(inner), before))
    elif isinstance(kind, h5t.TypeStringID) and kind.is_variable_str():
        for pointer in np.ascontiguousarray(rows).view(np.uintp).flat:
            before = zlib.crc32((ctypes.string_at(int(pointer)) if pointer else b"") + b"\0", before)
    else:
        before = zlib.crc32(rows.tobytes(), before)
    return before
