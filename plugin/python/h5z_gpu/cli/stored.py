# SPDX-License-Identifier: MIT OR Apache-2.0
"""The values of a dataset and of its copy, as they are stored: chunks by their bytes where both are stored alike, else
elements, box by box, of what either file has stored."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterator
from typing import NamedTuple, Optional

import h5py
import numpy as np
from h5py import h5d, h5p, h5t

from ..index import ChunkList, chunk_list
from .boxes import Box, boxes, count, cut, grown
from .common import pread, refuse_absurd
from .elements import Layout, Leads, box_reader, differing, elements, shown_bytes

_READ_BYTES = 8 << 20
"""Bytes of each file that are read at a time, unless a chunk has more."""


class Pair(NamedTuple):
    """A dataset and its copy, with their creation lists."""

    old: h5d.DatasetID
    new: h5d.DatasetID
    before: h5p.PropDCID
    after: h5p.PropDCID

    @classmethod
    def of(cls, old: h5d.DatasetID, new: h5d.DatasetID) -> Pair:
        """Two datasets."""
        return cls(old, new, old.get_create_plist(), new.get_create_plist())

    @property
    def elsewhere(self) -> list[bool]:
        """Of each, whether its values lie in other files or datasets."""
        return [p.get_layout() == h5d.VIRTUAL or p.get_external_count() > 0 for p in self[2:]]

    @property
    def unwritten(self) -> bool:
        """Whether no value of either was ever written: each is the fill value."""
        return not any(self.elsewhere) and all(map(stores_nothing, self[:2]))


class Values:
    """Compares the values of datasets of two files, both open for reading."""

    def __init__(self, a: h5py.File, b: h5py.File) -> None:
        self._files = [os.open(f.filename, os.O_RDONLY | getattr(os, "O_BINARY", 0)) for f in (a, b)]

    def close(self) -> None:
        """Gives the descriptors back."""
        while self._files:
            os.close(self._files.pop())

    def chunks(self, pair: Pair, sizes: bool) -> tuple[Optional[str], Optional[list[ChunkList]]]:
        """Compares which chunks are stored, with which filters and, where `sizes`, in how many bytes: what differs, or
        None; and both lists."""
        lists = [_sorted(chunk_list(h5py.Dataset(d), file)) for d, file in zip(pair[:2], self._files)]
        for found in lists:
            if found.wrong:
                raise OSError(f"its list of chunks cannot be believed: {found.wrong}")
        x, y = lists
        if not np.array_equal(x.origins, y.origins):
            there = [set(map(tuple, each.origins.tolist())) for each in lists]
            at, where = min([(at, "ORIGINAL") for at in there[0] - there[1]]
                            + [(at, "COMPRESSED") for at in there[1] - there[0]])
            return f"chunks: {len(there[0])} in ORIGINAL, {len(there[1])} in COMPRESSED; that at {list(at)} is in " \
                   f"{where} alone", None
        for what, u, v in (("mask of filters", x.masks, y.masks), ("bytes", x.lens, y.lens)):
            if (what != "bytes" or sizes) and (u != v).any():
                k = int(np.argmax(u != v))
                return f"chunk at {x.origins[k].tolist()}: {what}: {u[k]} in ORIGINAL, {v[k]} in COMPRESSED", None
        return None, lists

    def bytes_of_chunks(self, lists: list[ChunkList]) -> Optional[str]:
        """Compares the bytes of chunks whose lists are the same: what differs, or None."""
        x, y = lists
        for k in range(len(x.at)):
            length = int(x.lens[k])
            if pread(self._files[0], length, int(x.at[k])) != pread(self._files[1], length, int(y.at[k])):
                return f"chunk at {x.origins[k].tolist()}: its {length} bytes are others in COMPRESSED"
        return None

    def elements(self, pair: Pair, kind: h5t.TypeID, layout: Layout, leads: Leads, every: bool) -> Optional[str]:
        """Compares elements: the first that differs, or None.

        every : whether what neither file has stored is read, too.
        """
        for box in self.boxes(pair, layout, every):
            extents = tuple(s.stop - s.start for s in box)
            n = math.prod(extents)
            with elements(box_reader(pair.old, box), kind, layout, n) as x, \
                    elements(box_reader(pair.new, box), kind, layout, n) as y:
                wrong = differing(layout, x, y, leads)
                if wrong.any():
                    k = int(np.argmax(wrong))
                    at = [int(i) + s.start for i, s in zip(np.unravel_index(k, extents), box)] if extents else []
                    return f"value at {at}: {shown_bytes(x[k], y[k], layout)}"
        return None

    def boxes(self, pair: Pair, layout: Layout, every: bool) -> Iterator[Box]:
        """Boxes that cover what either file has stored; where `every`, all of both."""
        shape = pair.old.shape
        both = [p.get_chunk() if p.get_layout() == h5d.CHUNKED else None for p in pair[2:]]
        values = max(1, _READ_BYTES // layout.size)
        if not shape or both == [None, None]:
            refuse_absurd("it", math.prod(shape) * layout.size)
            yield from boxes(shape, cut(shape, values))
            return
        chunk = both[1] or both[0]
        assert chunk is not None
        step = tuple(max(1, min(c, n)) for c, n in zip(chunk, shape))
        touched = None if every else self._touched(pair, both, shape, step)
        if touched is None or len(touched) == count(shape, step):
            refuse_absurd("it", math.prod(shape) * layout.size)
            yield from boxes(shape, grown(chunk, shape, values))
            return
        # Not grown: HDF5 2.0 cannot read a chunk that is not stored, in a file open for reading, if its fill value is
        # of any length.
        for at in sorted(touched):
            yield tuple(slice(k * s, min((k + 1) * s, n)) for k, s, n in zip(at, step, shape))

    def _touched(self, pair: Pair, both: list[Optional[tuple[int, ...]]], shape: tuple[int, ...],
                 step: tuple[int, ...]) -> Optional[set[tuple[int, ...]]]:
        """Places, in steps, of boxes in which either file has something stored. None: it has something everywhere."""
        touched: set[tuple[int, ...]] = set()
        for dataset, chunk, file in zip(pair[:2], both, self._files):
            if chunk is None:
                if not stores_nothing(dataset):
                    return None
                continue
            origins = _sorted(chunk_list(h5py.Dataset(dataset), file)).origins
            if len(origins) == count(shape, chunk):
                return None
            for origin in origins.tolist():
                ends = (range(o // s, (min(o + c, n) - 1) // s + 1) for o, c, n, s in zip(origin, chunk, shape, step))
                touched.update(itertools.product(*ends))
        return touched


def stores_nothing(dataset: h5d.DatasetID) -> bool:
    """Whether no value of a dataset was ever written: each is the fill value."""
    return bool(dataset.get_space_status() == h5d.SPACE_STATUS_NOT_ALLOCATED)


def _sorted(found: ChunkList) -> ChunkList:
    return found.rows(np.lexsort(found.origins.T[::-1])) if len(found.at) else found
