# SPDX-License-Identifier: MIT OR Apache-2.0
"""Values as they lie in memory in the type of their file, whatever type that is, and copies of them."""
from __future__ import annotations

import ctypes
import math
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Optional

import h5py
import numpy as np
from h5py import h5a, h5d, h5p, h5s, h5t

from .. import index
from .boxes import Box, boxes, grown
from .hdf5 import DEFAULT, calls, reclaim
from .places import Place, owns_memory, places_in

if TYPE_CHECKING:
    from .references import References

SMALL_BYTES = 1 << 18  # of a dataset of one chunk that HDF5 copies and codes as fast by itself
AT_ONCE = 32 << 20  # bytes of values that are copied at a time, unless chunks are larger
_PLAIN = {h5t.INTEGER, h5t.FLOAT, h5t.STRING, h5t.BITFIELD, h5t.OPAQUE, h5t.ENUM}  # classes of `copy_plain`


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
            reclaim(self.memory, h5s.create_simple((len(self.rows),)), self.rows.ctypes.data)


def read_box(dataset: h5py.Dataset, box: Box) -> None:
    """Has HDF5 read the values of a box, of whatever type; it raises where they cannot be decoded."""
    kind, extents = dataset.id.get_type(), tuple(part.stop - part.start for part in box)
    there, here = dataset.id.get_space(), h5s.create_simple((math.prod(extents),))
    if box:
        there.select_hyperslab(tuple(part.start for part in box), extents)
    with elements(kind, places_in(kind), math.prod(extents)) as (memory, rows):
        calls.H5Dread(dataset.id, memory, here, there, DEFAULT, rows.ctypes.data)


def copy_values(old: h5d.DatasetID, new: h5d.DatasetID, held: Optional[tuple[Place, ...]] = None,
                references: Optional[References] = None) -> None:
    """Copies the values that a dataset has, as bytes; none of what was never written."""
    properties = old.get_create_plist()
    if properties.get_layout() == h5d.VIRTUAL or properties.get_external_count():
        return
    held = places_in(old.get_type()) if held is None else held
    if not held and properties.get_layout() == h5d.CHUNKED and _same_storage(properties, new.get_create_plist()):
        _copy_chunks(old, new)
        return
    for box in stored_boxes(old, new):
        copy_box(old, new, box, held, references)


def copy_box(old: h5d.DatasetID, new: h5d.DatasetID, box: Box, held: tuple[Place, ...],
             references: Optional[References] = None) -> None:
    """Copies the values of a box."""
    extents = tuple(part.stop - part.start for part in box)
    there: Any = DEFAULT
    here: Any = DEFAULT
    if extents != old.shape:
        there, here = old.get_space(), h5s.create_simple((math.prod(extents),))
        there.select_hyperslab(tuple(part.start for part in box), extents)
    with elements(old.get_type(), held, math.prod(extents)) as (memory, rows):
        calls.H5Dread(old, memory, here, there, DEFAULT, rows.ctypes.data)
        if references is not None:
            references.exchange(rows, held)
        calls.H5Dwrite(new, memory, here, there, DEFAULT, rows.ctypes.data)
        if references is not None:
            references.remains.clear(new, held, len(rows), here, there)


def copy_plain(old: Any, new: Any, name: bytes, properties: int) -> bool:
    """Copies an attribute of numbers or texts, whose type has no name. False: it is another, and nothing was made.

    By identifiers alone, without h5py's objects: in files of many small datasets attributes take most of the time.
    """
    attribute = calls.H5Aopen(old, name, DEFAULT)
    held = [attribute]
    try:
        kind = calls.H5Aget_type(attribute)
        held.append(kind)
        of = calls.H5Tget_class(kind)
        if of not in _PLAIN or calls.H5Tcommitted(kind):
            return False
        space = calls.H5Aget_space(attribute)
        held.append(space)
        made = calls.H5Acreate2(new, name, kind, space, properties, DEFAULT)
        held.append(made)
        if count := calls.H5Sget_simple_extent_npoints(space):  # 0 also for a space without extents
            try:
                values = ctypes.create_string_buffer(count * calls.H5Tget_size(kind))
                calls.H5Aread(attribute, kind, values)
                calls.H5Awrite(made, kind, values)
                if of == h5t.STRING and calls.H5Tis_variable_str(kind):
                    reclaim(kind, space, values)
            except (OSError, MemoryError):
                h5a.delete(new, name)
                raise
        return True
    finally:
        for identifier in reversed(held):
            calls.H5Idec_ref(identifier)


def is_one_small_chunk(dataset: h5d.DatasetID) -> bool:
    """Whether a dataset has one chunk, of at most SMALL_BYTES."""
    shape, chunk = dataset.shape, dataset.get_create_plist().get_chunk()
    small = math.prod(chunk) * dataset.get_type().get_size() <= SMALL_BYTES
    return bool(small and all(n <= c for n, c in zip(shape, chunk)))


def _same_storage(old: h5p.PropDCID, new: h5p.PropDCID) -> bool:
    """Whether stored chunks mean the same in both datasets."""
    def filters(properties: h5p.PropDCID) -> list[Any]:
        return [properties.get_filter(k) for k in range(properties.get_nfilters())]

    return bool(new.get_layout() == h5d.CHUNKED and old.get_chunk() == new.get_chunk() and filters(old) == filters(new))


def _copy_chunks(old: h5d.DatasetID, new: h5d.DatasetID) -> None:
    """Copies chunks as they are stored."""
    for origin in stored_chunks(old):
        mask, stored = old.read_direct_chunk(origin)
        new.write_direct_chunk(origin, stored, mask)


def stored_chunks(dataset: h5d.DatasetID) -> list[tuple[int, ...]]:
    """The first elements of the chunks that a dataset has."""
    whole = h5py.Dataset(dataset)
    file = os.open(whole.file.filename, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    try:
        found = index.chunk_list(whole, file)
    finally:
        os.close(file)
    if found.wrong:
        raise OSError(f"its list of chunks is damaged: {found.wrong}")
    return [tuple(origin) for origin in found.origins.tolist()]


def stored_boxes(old: h5d.DatasetID, new: h5d.DatasetID) -> Iterator[Box]:
    """Boxes that hold all values that a dataset has, each of whole chunks of both datasets where memory allows.

    Where chunks of the old one were never written, a box is one chunk of the new one that has values: a dataset of 2^40
    elements of which a chunk is there stays small. And HDF5 2.0 cannot read a chunk that is not there from a file that
    is open for reading, where the fill value has any length.
    """
    shape, properties = old.shape, old.get_create_plist()
    if shape is None or 0 in shape or not old.get_space_status():
        return
    chunk = new.get_create_plist().get_chunk() if new.get_create_plist().get_layout() == h5d.CHUNKED else None
    step = tuple(min(c, n) for c, n in zip(chunk or (1,) * len(shape), shape))
    size = old.get_type().get_size()
    if properties.get_layout() == h5d.CHUNKED:
        before = properties.get_chunk()
        if old.get_num_chunks() < math.prod(-(-n // c) for n, c in zip(shape, before)):
            yield from _boxes_around(stored_chunks(old), before, shape, step)
            return
        both = tuple(-(-max(a, b) // b) * b for a, b in zip(before, step))
        step = both if math.prod(both) * size <= 4 * AT_ONCE else step
    yield from boxes(shape, grown(step, shape, max(1, AT_ONCE // size)))


def _boxes_around(origins: list[tuple[int, ...]], chunk: tuple[int, ...], shape: tuple[int, ...],
                  step: tuple[int, ...]) -> Iterator[Box]:
    """Boxes of extents `step`, in order, that have something in common with a chunk that is there."""
    cells: set[tuple[int, ...]] = set()
    for origin in origins:
        ranges = [range(o // s, (min(o + c, n) - 1) // s + 1) for o, c, n, s in zip(origin, chunk, shape, step)]
        cells.update(tuple(r.start + k for r, k in zip(ranges, at)) for at in np.ndindex(*map(len, ranges)))
    for cell in sorted(cells):
        yield tuple(slice(c * s, min((c + 1) * s, n)) for c, s, n in zip(cell, step, shape))
