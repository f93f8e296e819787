# SPDX-License-Identifier: MIT OR Apache-2.0
"""Copies what HDF5 can read of a damaged file, for `recover`.

`Salvage` is the copier of `copying` with three differences:

1. Every stored chunk is decoded before it is copied. A chunk that cannot be decoded is replaced by one of the fill
   value and named. So is the end of a dataset in one piece where the file was cut.
2. H5Ocopy is not used: it fails where one chunk or one attribute cannot be read. Stored chunks go over one by one.
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
from .common import Problem, pread
from .copying import Copier, Link, copy_box
from .hdf5 import address
from .objects import CHECKED, UNREADABLE, Chunks, Note, chunks_of, filters_of, of_the_system, reason
from .places import Place, holds_references, places_in
from .references import References

# An object's path, and the name of an attribute of it or None.
Step = tuple[str, Optional[str]]
Lost = list[dict[str, Any]]

_NAMED_CHUNKS = 10_000  # chunks of one dataset missing from its list that are named one by one, at most


class Salvage(Copier):
    """Copies every object of `source` that HDF5 can read to `target`, and fills chunks that are lost.

    Parameters
    ----------
    data, there : int
        A descriptor of the input, and its length in bytes.
    fill : float, optional
        The value for what is lost.
    without : dict
        Objects and attributes that are left out, with the reason: HDF5 crashed there before.
    note : callable
        Told of the object or attribute that is read next.
    """

    by_object = False

    def __init__(self, source: h5py.File, target: h5py.File, data: int, there: int, fill: Optional[float], *,
                 without: dict[Step, str], note: Note) -> None:
        super().__init__(source, target)
        self.data, self.there, self.fill = data, there, fill
        self.without, self.note = without, note
        self.lost: Lost = []
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
        chunks = chunks_of(item, self.data, check="decode", others=True)
        if chunks is None:
            made = super().dataset(old, place, link, path)
            self.lost += fill_end(name, item, h5py.Dataset(made), self.there, self.fill)
            return made
        held = places_in(old.get_type())
        made = self.create(old, old.get_type(), held, None, link, path)
        self.addresses[place] = address(made)
        self.describe(old, made, path)
        self._chunks(path, chunks, h5py.Dataset(made), held)
        return made

    def _chunks(self, path: bytes, chunks: Chunks, made: h5py.Dataset, held: tuple[Place, ...]) -> None:
        """Copies the chunks of a dataset that can be decoded, and fills the others."""
        name, old, boxes = _text(path), chunks.dataset.id, []
        for row, origin in enumerate(chunks.origins.tolist()):
            if chunks.lost_index and stored_size(chunks.dataset, origin) != chunks.stored[row]:
                chunks.damage.setdefault(row, "HDF5 lists it, and does not find it by its place")
            if row in chunks.damage:
                continue
            if held:  # values lie elsewhere in the file
                boxes.append(chunks.box(row))
                continue
            stored = pread(self.data, int(chunks.stored[row]), int(chunks.at[row]))
            made.id.write_direct_chunk(tuple(origin), stored, int(chunks.masks[row]))
        if holds_references(held):
            self.late.append((path, None, lambda: copy_boxes(old, made.id, boxes, held, self.references)))
        else:
            copy_boxes(old, made.id, boxes, held)
        for row, why in sorted(chunks.damage.items()):
            origin = chunks.origins[row].tolist()
            self.lost.append(_lost_chunk(name, made, origin, put(made, origin, held, self.fill), why))
        if chunks.doubt:
            self.lost.append({"object": name, "why": chunks.doubt})
        if chunks.lost_index:
            self._missing(name, chunks, made, held)

    def _missing(self, name: str, chunks: Chunks, made: h5py.Dataset, held: tuple[Place, ...]) -> None:
        """Fills the chunks that a damaged list does not have: nobody knows whether they were ever written."""
        missing, cause = chunks.missing(_NAMED_CHUNKS), f"the list of chunks is damaged ({chunks.lost_index})"
        if missing is None:
            count = math.prod(chunks.grid) - len(chunks.at)
            self.lost.append({"object": name, "values": f"those of {count} chunks", "filled_with": "the fill value",
                              "why": cause})  # fmt: skip
        elif not len(missing):
            self.lost.append({"object": name, "why": cause})
        else:
            self.lost += [_lost_chunk(name, made, origin, put(made, origin, held, self.fill),
                                      f"it is not in the list of chunks: {cause}") for origin in missing.tolist()]


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


def copy_boxes(old: h5py.h5d.DatasetID, new: h5py.h5d.DatasetID, boxes: list[Box], held: tuple[Place, ...],
               references: Optional[References] = None) -> None:  # fmt: skip
    """Copies the values of boxes."""
    for box in boxes:
        copy_box(old, new, box, held, references)


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
