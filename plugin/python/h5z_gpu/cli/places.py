# SPDX-License-Identifier: MIT OR Apache-2.0
"""Where the elements of an HDF5 type hold what leads elsewhere: references, and values of any length.

In memory an element of any length is a pointer, and a reference is an address of the file or a handle. All other bytes
of an element mean the same in every file.
"""
from __future__ import annotations

import math
from typing import NamedTuple

from h5py import h5t

OBJECT, REGION, STANDARD, VLEN, TEXT, ARRAY = "object", "region", "standard", "vlen", "text", "array"
REFERENCES = (OBJECT, REGION, STANDARD)
_OLD_SIZES = (8, 12)  # hobj_ref_t and hdset_reg_ref_t; H5R_ref_t, of HDF5 1.12, has 64

_PLAIN = (h5t.TypeIntegerID, h5t.TypeFloatID, h5t.TypeEnumID, h5t.TypeBitfieldID, h5t.TypeOpaqueID)


class Place(NamedTuple):
    """A part of an element: `size` bytes at `offset`.

    kind: a reference to an object, to a region, or H5R_ref_t; elements of any length, of a type or of text; or `number`
    elements of an array. `inner` are the places within one of the elements, each of `step` bytes.
    """

    offset: int
    size: int
    kind: str
    number: int = 0
    step: int = 0
    inner: tuple[Place, ...] = ()


def places_in(kind: h5t.TypeID, at: int = 0) -> tuple[Place, ...]:
    """What of an element of a type leads elsewhere; offsets are those in memory."""
    if isinstance(kind, _PLAIN):
        return ()
    if kind.committed():
        kind = kind.copy()  # a named type has the sizes and offsets of the file
    size = kind.get_size()
    if isinstance(kind, h5t.TypeReferenceID):
        return (Place(at, size, _reference(kind, size)),)
    if isinstance(kind, h5t.TypeStringID):
        return (Place(at, size, TEXT),) if kind.is_variable_str() else ()
    if isinstance(kind, h5t.TypeCompoundID):
        members = range(kind.get_nmembers())
        return tuple(p for k in members for p in places_in(kind.get_member_type(k), at + kind.get_member_offset(k)))
    if isinstance(kind, h5t.TypeArrayID):
        base = kind.get_super()
        inner = places_in(base)
        return (Place(at, size, ARRAY, math.prod(kind.get_array_dims()), base.get_size(), inner),) if inner else ()
    if isinstance(kind, h5t.TypeVlenID):
        base = kind.get_super()
        return (Place(at, size, VLEN, 0, base.get_size(), places_in(base)),)
    return ()


def in_file(kind: h5t.TypeID, width: int, at: int = 0) -> tuple[int, tuple[Place, ...]]:
    """Bytes of an element in a file, whose addresses have `width`, and what of it leads elsewhere; offsets are those in
    the file."""
    kind, inner = kind.copy() if kind.committed() else kind, tuple[Place, ...]()
    size, named = kind.get_size(), {OBJECT: width, REGION: width + 4, STANDARD: width + 10}
    if isinstance(kind, h5t.TypeReferenceID):
        size = named[_reference(kind, size)]
        return size, (Place(at, size, _reference(kind, kind.get_size())),)
    if isinstance(kind, h5t.TypeStringID) and kind.is_variable_str():
        return width + 8, (Place(at, width + 8, TEXT),)
    if isinstance(kind, h5t.TypeCompoundID):
        grown = 0
        for k in sorted(range(kind.get_nmembers()), key=kind.get_member_offset):
            member = kind.get_member_type(k)
            length, some = in_file(member, width, at + kind.get_member_offset(k) + grown)
            inner, grown = inner + some, grown + length - member.get_size()
        return size + grown, inner
    if isinstance(kind, (h5t.TypeArrayID, h5t.TypeVlenID)):
        step, inner = in_file(kind.get_super(), width)
        if isinstance(kind, h5t.TypeVlenID):
            return width + 8, (Place(at, width + 8, VLEN, 0, step, inner),)
        number = math.prod(kind.get_array_dims())
        return number * step, (Place(at, number * step, ARRAY, number, step, inner),) if inner else ()
    return size, ()


def _reference(kind: h5t.TypeID, size: int) -> str:
    if size in _OLD_SIZES and kind.equal(h5t.STD_REF_OBJ):
        return OBJECT
    if size in _OLD_SIZES and kind.equal(h5t.STD_REF_DSETREG):
        return REGION
    return STANDARD


def holds(found: tuple[Place, ...], *kinds: str) -> bool:
    """Whether a place of one of these kinds is among those found, or within them."""
    return bool(found) and any(place.kind in kinds or holds(place.inner, *kinds) for place in found)


def holds_references(found: tuple[Place, ...]) -> bool:
    """Whether an element refers to objects of its file."""
    return holds(found, *REFERENCES)


def owns_memory(found: tuple[Place, ...]) -> bool:
    """Whether HDF5 allocates memory for an element that is read, which `H5Treclaim` gives back."""
    return holds(found, VLEN, TEXT, STANDARD)
