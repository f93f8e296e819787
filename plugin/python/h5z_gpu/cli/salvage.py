# SPDX-License-Identifier: MIT OR Apache-2.0
"""Copies what HDF5 can read of a damaged file, for `recover`.

`Salvage` is the copier of `copying` with three differences:

1. Every stored chunk is decoded before it is copied. A chunk that cannot be decoded is replaced by one of the fill
   value and named. Where the file was cut, so is a chunk without a checksum, and the end of a dataset in one
   piece.
2. H5Ocopy is used for datasets of filters that are not installed alone: it fails where one chunk or one attribute
   cannot be read. Other stored chunks go over one by one.
3. An object or attribute at which HDF5 fails is left out and named with HDF5's reason.

HDF5 does the reading. What its own tables have lost without a trace (an old format has no checksums) nobody names.
"""
from __future__ import annotations

import contextlib
import math
from typing import Any, Optional

import h5py
import numpy as np

from ..arrays import compress
from ..filters import FILTER_ID
from ..index import skipped_at_edges, stored_size
from .boxes import Box
from .builds import OtherBuilds
from .common import Problem, pread
from .copying import Copier, Link, absent_filters
from .hdf5 import address
from .objects import CHECKED, UNREADABLE, Chunks, Note, chunks_of, filters_of, of_the_system, reason
from .places import Place, holds_references, places_in
from .values import copy_box, read_box

# An object's path, and the name of an attribute of it or None.
Step = tuple[str, Optional[str]]
Lost = list[dict[str, Any]]

_GRID_CHUNKS = 100_000  # chunks of a dataset that HDF5 is asked for by their places, at most; else those of its list


class Salvage(Copier):
    """Copies every object of `source` that HDF5 can read to `target`, and fills chunks that are lost.

    `data` and `there` are a descriptor of the input and its length in bytes, `fill` the value for what is lost. Objects
    and attributes of `without` are left out, with the reason: HDF5 crashed there before. `note` is told of the object
    or attribute that is read next.
    """

    def __init__(self, source: h5py.File, target: h5py.File, data: int, there: int, fill: Optional[float], *,
                 without: dict[Step, str], note: Note) -> None:
        super().__init__(source, target)
        self.data, self.there, self.fill = data, there, fill
        self.without, self.note = without, note
        self.lost: Lost = []
        self.builds = OtherBuilds()
        self.unchecked: list[str] = []
        """Datasets in whose chunks no filter has a checksum."""

    def run(self) -> None:
        """Copies; `lost` says what is not in the copy."""
        super().run()
        self.lost += [_lost(path, attribute, f"references that lead to what is not in the copy are empty now: {count}")
                      for path, attribute, count in self.empty]

    def ready(self, path: bytes, attribute: Optional[bytes] = None) -> bool:
        """Whether an object or an attribute is copied."""
        step = _text(path), None if attribute is None else _text(attribute)
        if why := self.without.get(step):
            self.lost.append(_lost(path, attribute, why))
            return False
        self.note(step)
        return True

    def failed(self, path: bytes, attribute: Optional[bytes], why: BaseException) -> None:
        """Leaves out what cannot be read."""
        if of_the_system(why):
            raise why
        self.lost.append(_lost(path, attribute, self.why(path, why)))

    def group(self, old: h5py.h5g.GroupID, new: h5py.h5g.GroupID, path: bytes) -> None:
        """Copies the links of a group that can be listed."""
        with self._left_out(path or b"/", None, "its list of objects: "):
            super().group(old, new, path)

    def describe(self, old: Any, new: Any, path: bytes) -> None:
        """Gives an object the comment of another, and the attributes that can be read."""
        with self._left_out(path, b"(all)"):
            super().describe(old, new, path)

    @contextlib.contextmanager
    def _left_out(self, path: bytes, attribute: Optional[bytes], what: str = "") -> Any:
        """Notes what HDF5 cannot list as lost."""
        try:
            yield
        except UNREADABLE as why:
            if of_the_system(why):
                raise
            self.lost.append(_lost(path, attribute, what + reason(why)))

    def is_copied_well(self, old: h5py.h5d.DatasetID) -> bool:
        """Whether H5Ocopy is used for a dataset."""
        return bool(absent_filters(old))

    def dataset(self, old: h5py.h5d.DatasetID, place: int, link: Optional[Link], path: bytes) -> h5py.h5d.DatasetID:
        """Copies a dataset, and fills what is lost of it."""
        try:
            return self._dataset(old, place, link, path)
        except UNREADABLE:
            if link is not None and place in self.addresses:  # what was made of it before that
                link.new.unlink(link.name)
            raise

    def _dataset(self, old: h5py.h5d.DatasetID, place: int, link: Optional[Link], path: bytes) -> h5py.h5d.DatasetID:
        item, name = h5py.Dataset(old), _text(path)
        if old.get_storage_size() and not {f[0] for f in filters_of(item)} & CHECKED:
            self.unchecked.append(name)
        chunks = None if absent_filters(old) else chunks_of(item, self.data, check="decode", others=True)
        if chunks is None:
            made = super().dataset(old, place, link, path)
            self.lost += fill_end(name, item, h5py.Dataset(made), self.there, self.fill)
            return made
        self.builds.take(name, chunks)
        ends = chunks.at + chunks.stored
        for row in np.flatnonzero((ends > self.there) & ~chunks.frame):  # a frame has a checksum
            chunks.damage.setdefault(int(row), f"it ends at byte {ends[row]}, the input at {self.there}")
        held = places_in(old.get_type())
        made = self.create(old, old.get_type(), held, None, link, path)
        self.addresses[place] = address(made)
        self.describe(old, made, path)
        self._chunks(path, chunks, h5py.Dataset(made), held)
        return made

    def _chunks(self, path: bytes, chunks: Chunks, made: h5py.Dataset, held: tuple[Place, ...]) -> None:
        """Copies the chunks of a dataset that can be decoded, and fills the others."""
        if chunks.lost_index:
            self._by_place(path, chunks, made, held)
            return
        name, boxes = _text(path), []
        for row, origin in enumerate(chunks.origins.tolist()):
            if row in chunks.damage:
                value = put(made, origin, held, self.fill)
                self.lost.append(_lost_chunk(name, made, origin, value, chunks.damage[row]))
            elif held:  # values lie elsewhere in the file
                boxes.append(chunks.box(row))
            else:
                stored = pread(self.data, int(chunks.stored[row]), int(chunks.at[row]))
                made.id.write_direct_chunk(tuple(origin), stored, int(chunks.masks[row]))
        self._copy_boxes(path, chunks, made, boxes, held)
        if chunks.doubt:
            self.lost.append({"object": name, "why": chunks.doubt})

    def _by_place(self, path: bytes, chunks: Chunks, made: h5py.Dataset, held: tuple[Place, ...]) -> None:
        """Copies the chunks of a dataset whose list of chunks is damaged: those that HDF5 finds by their places."""
        name, old, boxes, step = _text(path), chunks.dataset, [], chunks.shape
        few = math.prod(chunks.grid) <= _GRID_CHUNKS
        origins = [tuple(o * c for o, c in zip(at, step)) for at in np.ndindex(*chunks.grid)] if few else \
            [tuple(origin) for origin in chunks.origins.tolist()]
        found = [origin for origin in origins if stored_size(old, origin)]
        for origin in found:
            box = tuple(slice(o, min(o + c, n)) for o, c, n in zip(origin, step, old.shape))
            try:
                read_box(old, box)
                if held:
                    boxes.append(box)
                else:
                    mask, stored = old.id.read_direct_chunk(origin)
                    made.id.write_direct_chunk(origin, stored, mask)
            except UNREADABLE as why:
                if of_the_system(why):
                    raise
                self.lost.append(_lost_chunk(name, made, list(origin), put(made, list(origin), held, self.fill),
                                             reason(why)))
        self._copy_boxes(path, chunks, made, boxes, held)
        self.lost.append({"object": name, "why": f"its list of chunks is damaged ({chunks.lost_index}). HDF5 finds "
                          f"{len(found)} of {math.prod(chunks.grid)} chunks by their places; the others hold the fill "
                          f"value"})

    def _copy_boxes(self, path: bytes, chunks: Chunks, made: h5py.Dataset, boxes: list[Box],
                    held: tuple[Place, ...]) -> None:
        """Copies values that hold what lies elsewhere; references when all objects are there."""
        def copy() -> None:
            for box in boxes:
                copy_box(chunks.dataset.id, made.id, box, held, self.references if holds_references(held) else None)

        if holds_references(held):
            self.late.append((path, None, copy))
        else:
            copy()


def _text(name: bytes) -> str:
    return name.decode(errors="surrogateescape")


def _lost(path: bytes, attribute: Optional[bytes], why: str) -> dict[str, Any]:
    """What is reported of an object or an attribute that is left out."""
    named = {} if attribute is None else {"attribute": _text(attribute)}
    return {"object": _text(path), **named, "why": why}


def _lost_chunk(name: str, dataset: h5py.Dataset, origin: list[int], value: str, why: str) -> dict[str, Any]:
    """What is reported of a chunk."""
    box = ", ".join(f"{o}:{min(o + c, n)}" for o, c, n in zip(origin, dataset.chunks, dataset.shape))
    return {"object": name, "chunk": origin, "values": f"[{box}]", "filled_with": value, "why": why}


def put(dataset: h5py.Dataset, origin: list[int], held: tuple[Place, ...], fill: Optional[float]) -> str:
    """Writes a chunk that holds the fill value; which, as text.

    No chunk is written of values that lie elsewhere in the file: HDF5 gives the fill value for it.
    """
    if held:
        return "the fill value"
    element, text = _element(dataset, fill)
    raw = np.frombuffer(element * math.prod(dataset.chunks), f"V{len(element)}").reshape(dataset.chunks)
    numbers = [f[0] for f in filters_of(dataset)]
    # The filters that this chunk does without: all but ours, and all where HDF5 stores chunks at the edges as they are.
    used = FILTER_ID in numbers and not skipped_at_edges(dataset, np.array([origin]))[0]
    mask = sum(1 << place for place, number in enumerate(numbers) if number != FILTER_ID or not used)
    stored = compress(raw) if used else raw.tobytes()
    dataset.id.write_direct_chunk(tuple(int(o) for o in origin), stored, mask)
    return text


def _element(dataset: h5py.Dataset, fill: Optional[float]) -> tuple[bytes, str]:
    """One element, as it stands in the file, for lost values of a dataset; and as text."""
    item = dataset.id.get_type().get_size()
    try:
        kind = dataset.dtype
    except TypeError:
        kind = None
    if kind is None or kind.hasobject or kind.itemsize != item:
        return bytes(item), "zero bytes"
    defined = dataset.id.get_create_plist().fill_value_defined() == h5py.h5d.FILL_VALUE_USER_DEFINED
    value = dataset.fillvalue
    if fill is not None and kind.kind in "fiu":
        if kind.kind != "f" and not (math.isfinite(fill) and fill == int(fill)
                                     and np.iinfo(kind).min <= fill <= np.iinfo(kind).max):
            raise Problem(f"--fill {fill:g} is no value of {dataset.name}, which holds {kind}")
        value = fill if kind.kind == "f" else int(fill)
    elif kind.kind == "f" and not defined:
        value = math.nan
    element = np.asarray(value, kind)
    return element.tobytes(), str(element)


def fill_end(name: str, source: h5py.Dataset, dataset: h5py.Dataset, there: int, fill: Optional[float]) -> Lost:
    """Fills the end of a dataset in one piece that lay where the input, of `there` bytes, was cut."""
    at = source.id.get_offset()
    stored = source.id.get_storage_size()
    if at is None or at + stored <= there or not dataset.size:
        return []
    element, text = _element(dataset, fill)
    first = max(0, there - at) // len(element)
    if not text.endswith("bytes"):
        whole = dataset[()]
        flat = np.atleast_1d(whole).reshape(-1)
        flat[first:] = np.frombuffer(element, dataset.dtype)[0]
        dataset[()] = flat.reshape(dataset.shape)
    return [{"object": name, "values": f"the last {dataset.size - first} of {dataset.size}", "filled_with": text,
             "why": f"it ends at byte {at + stored}, the input at {there}"}]
