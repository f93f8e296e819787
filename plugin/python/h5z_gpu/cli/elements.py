# SPDX-License-Identifier: MIT OR Apache-2.0
"""Values of datasets and attributes as bytes in the file's own type, and where two of them differ.

A value is read in the type of its file, so that HDF5 converts nothing: byte orders, paddings of texts, 24-bit numbers,
opaque bytes and times are compared as they lie there. NumPy knows no more of an element than its length.

What an element holds is found by a walk over its type (`layout_of`):

    bytes        of numbers, fixed texts, enumerations, opaque data: equal, byte by byte
    gaps         between members of compounds: no part of the value, not compared
    texts        of any length: a pointer to characters, which are compared up to their NUL; no text is not an empty one
    sequences    of any length: a count and a pointer; their elements are compared by the same rules
    references   by the objects that they lead to, which the caller of `differing` can tell

The command `repack` has a walk of its own: an error that both had would be seen by neither.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Callable, Optional, Protocol

import numpy as np
from h5py import h5d, h5s, h5t

from .boxes import Box
from .hdf5 import DEFAULT, calls, reclaim

OBJECT, REGION, REFERENCE, TEXT, SEQUENCE = "object", "region", "reference", "text", "sequence"
_WIDTH = {OBJECT: 8, REGION: 12, REFERENCE: 64, TEXT: ctypes.sizeof(ctypes.c_void_p),
          SEQUENCE: ctypes.sizeof(ctypes.c_size_t) + ctypes.sizeof(ctypes.c_void_p)}
_SHOWN_BYTES = 16
_POINTER = f"u{ctypes.sizeof(ctypes.c_void_p)}"


@dataclass(frozen=True)
class Layout:
    """What the bytes of one element in memory are."""

    size: int
    plain: Optional[np.ndarray]
    """bool (size,): bytes that are values themselves; None where all are."""
    parts: tuple[tuple[int, str, Optional[Layout]], ...] = ()
    """Where a reference, a text or a sequence begins, which of these it is, and the layout of a sequence's elements."""

    @property
    def outside(self) -> bool:
        """Whether memory that HDF5 allocates belongs to an element."""
        return any(kind in (TEXT, SEQUENCE, REFERENCE) for _, kind, _ in self.parts)

    @property
    def refers(self) -> bool:
        """Whether an element holds references."""
        return any(kind in (OBJECT, REGION, REFERENCE) or (inner is not None and inner.refers)
                   for _, kind, inner in self.parts)


class Leads(Protocol):
    """Whether references of two files lead to the same."""

    def objects(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Addresses of objects, uint64 (n,): where they are not the same, bool (n,)."""

    def regions(self, x: np.ndarray, y: np.ndarray) -> bool:
        """Whether two references to regions, uint8 (12,), lead to the same."""

    def references(self, x: np.ndarray, y: np.ndarray) -> bool:
        """Whether two references H5R_ref_t, uint8 (64,), lead to the same."""


def types_equal(x: h5t.TypeID, y: h5t.TypeID) -> bool:
    """Whether two types of two files are the same. HDF5 itself does not look at the character set of texts of any
    length."""
    if not calls.H5Tequal(x, y):
        return False
    return isinstance(x, (h5t.TypeIntegerID, h5t.TypeFloatID)) or _charsets(x) == _charsets(y)


def _charsets(kind: h5t.TypeID) -> list[tuple[int, int]]:
    """Character set and padding of each text of any length in a type."""
    if isinstance(kind, h5t.TypeCompoundID):
        return [each for k in range(kind.get_nmembers()) for each in _charsets(kind.get_member_type(k))]
    if isinstance(kind, (h5t.TypeArrayID, h5t.TypeVlenID)):
        return _charsets(kind.get_super())
    if isinstance(kind, h5t.TypeStringID) and kind.is_variable_str():
        return [(kind.get_cset(), kind.get_strpad())]
    return []


def layout_of(kind: h5t.TypeID) -> Layout:
    """The layout of an element of a type of HDF5 in memory."""
    size = kind.get_size()
    if isinstance(kind, h5t.TypeCompoundID):
        plain, parts = np.zeros(size, bool), list[tuple[int, str, Optional[Layout]]]()
        for k in range(kind.get_nmembers()):
            at, member = kind.get_member_offset(k), layout_of(kind.get_member_type(k))
            plain[at : at + member.size] = True if member.plain is None else member.plain
            parts += [(at + start, part, inner) for start, part, inner in member.parts]
        return Layout(size, None if plain.all() else plain, tuple(parts))
    if isinstance(kind, h5t.TypeArrayID):
        one, count = layout_of(kind.get_super()), math.prod(kind.get_array_dims())
        repeated = tuple((k * one.size + start, part, inner) for k in range(count) for start, part, inner in one.parts)
        return Layout(size, None if one.plain is None else np.tile(one.plain, count), repeated)
    if isinstance(kind, h5t.TypeVlenID):
        return Layout(size, np.zeros(size, bool), ((0, SEQUENCE, layout_of(kind.get_super())),))
    if isinstance(kind, h5t.TypeStringID) and kind.is_variable_str():
        return Layout(size, np.zeros(size, bool), ((0, TEXT, None),))
    if isinstance(kind, h5t.TypeReferenceID):
        which = OBJECT if kind.equal(h5t.STD_REF_OBJ) else REGION if kind.equal(h5t.STD_REF_DSETREG) else REFERENCE
        return Layout(size, np.zeros(size, bool), ((0, which, None),))
    return Layout(size, None)


@contextlib.contextmanager
def elements(read: Callable[[int, int], Any], kind: h5t.TypeID, layout: Layout, count: int) -> Iterator[np.ndarray]:
    """Elements in memory, uint8 (count, size). What HDF5 allocates for them is given back behind the block.

    read : called with a type in memory and the address of the first element.
    """
    rows = np.zeros((count, layout.size), np.uint8) if layout.parts else np.empty((count, layout.size), np.uint8)
    if not count:
        yield rows
        return
    memory = kind.copy() if layout.parts or kind.committed() else kind
    read(memory.id, rows.ctypes.data)
    try:
        yield rows
    finally:
        if layout.outside:
            reclaim(memory, h5s.create_simple((count,)), rows.ctypes.data)


def box_reader(dataset: h5d.DatasetID, box: Box) -> Callable[[int, int], int]:
    """What reads a box of a dataset, for `elements`."""

    def read(kind: int, at: int) -> int:
        there = dataset.get_space()
        if box:
            there.select_hyperslab(tuple(s.start for s in box), tuple(s.stop - s.start for s in box))
        here = h5s.create_simple((there.get_select_npoints(),))
        return calls.H5Dread(dataset, kind, here, there, DEFAULT, at)

    return read


def differing(layout: Layout, x: np.ndarray, y: np.ndarray, leads: Leads) -> np.ndarray:
    """Which elements of two buffers, uint8 (n, size) each, differ: bool (n,)."""
    found = np.zeros(len(x), bool)
    if layout.plain is None:
        if not np.array_equal(x, y):
            found = (x != y).any(axis=1)
    elif layout.plain.any():
        found = (x[:, layout.plain] != y[:, layout.plain]).any(axis=1)
    for at, kind, inner in layout.parts:
        u, v = x[:, at : at + _WIDTH[kind]], y[:, at : at + _WIDTH[kind]]
        if kind == OBJECT:
            found |= leads.objects(*(np.ascontiguousarray(w).view(np.uint64)[:, 0] for w in (u, v)))
        elif kind in (REGION, REFERENCE):
            same = leads.regions if kind == REGION else leads.references
            found |= np.fromiter((not same(p, q) for p, q in zip(u, v)), bool, len(x))
        elif kind == TEXT:
            found |= _texts(u, v)
        else:
            assert inner is not None
            found |= _sequences(inner, u, v, leads)
    return found


def _pointers(rows: np.ndarray) -> list[list[int]]:
    return np.ascontiguousarray(rows).view(_POINTER).tolist()  # type: ignore[no-any-return]


def _texts(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    read = ctypes.string_at
    pairs = zip(_pointers(x), _pointers(y))
    return np.fromiter(((not p) != (not q) or (bool(p) and read(p) != read(q)) for (p,), (q,) in pairs), bool, len(x))


def _sequences(inner: Layout, x: np.ndarray, y: np.ndarray, leads: Leads) -> np.ndarray:
    read, size, simple = ctypes.string_at, inner.size, inner.plain is None and not inner.parts

    def differ(n: int, p: int, m: int, q: int) -> bool:
        if n != m or not n:
            return n != m
        if simple:
            return read(p, n * size) != read(q, n * size)
        u, v = (np.ctypeslib.as_array((ctypes.c_uint8 * (n * size)).from_address(at)).reshape(n, size) for at in (p, q))
        return bool(differing(inner, u, v, leads).any())

    pairs = zip(_pointers(x), _pointers(y))
    return np.fromiter((differ(n, p, m, q) for (n, p), (m, q) in pairs), bool, len(x))


def shown_bytes(x: np.ndarray, y: np.ndarray, layout: Layout) -> str:
    """Bytes of two elements that differ, or what of them does."""
    if layout.parts and (layout.plain is None or (x[layout.plain] == y[layout.plain]).all()):
        return "what it leads to, or holds of any length, is another in COMPRESSED"
    first = max(0, int(np.argmax(x != y)) // _SHOWN_BYTES * _SHOWN_BYTES)
    parts = [v[first : first + _SHOWN_BYTES].tobytes().hex() for v in (x, y)]
    where = f" from byte {first} on" if first else ""
    return f"its bytes{where} are {parts[0]} in ORIGINAL, {parts[1]} in COMPRESSED"
