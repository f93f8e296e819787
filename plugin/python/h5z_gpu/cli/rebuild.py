# SPDX-License-Identifier: MIT OR Apache-2.0
"""Makes a new file of what can be read of one whose own tables are damaged, for `recover`."""
from __future__ import annotations

import contextlib
import math
from typing import Any, Optional

import h5py

from . import groups
from .boxes import boxes, cut
from .common import pread
from .copying import Copier, Link, copy_box
from .creation import create_like
from .hdf5 import address, attributes_of, calls
from .objects import (
    UNREADABLE, Chunks, Note, chunks_of, of_the_system, reason, refuse_dataset, walk,
)
from .places import Place, holds_references, lies_elsewhere, places_in
from .repair import Lost, fill_chunks, fill_end, lost_chunk, put
from .values import elements, sum_of

# An object's path, and the name of an attribute of it or None.
Step = tuple[str, Optional[str]]
# By the first element of a box: its end, and the checksum of its values.
Sums = dict[tuple[int, ...], tuple[tuple[int, ...], int]]
Made = dict[str, Sums]

# Attributes of HDF5's dimension scales: they hold references, which are made anew.
_REFERENCES = (b"DIMENSION_LIST", b"REFERENCE_LIST")
_VALUES = 1 << 20  # that are copied at a time
# Lost chunks of one dataset that are named one by one.
_NAMED = 10_000


def survey(file: h5py.File, data: int, note: Note) -> bool:
    """Whether anything but the contents of chunks is damaged; `data` is a descriptor of the file's bytes."""
    if groups.vanished(file, data)[0] or _unreadable(file["/"], "/", note):
        return True
    for name, item in walk(file, note):
        if isinstance(item, str):
            return True
        if isinstance(item, h5py.Dataset):
            try:
                chunks = chunks_of(item, data, check="header", others=True)
            except UNREADABLE:
                return True
            if (chunks is not None and (chunks.lost_index or chunks.doubt)) or (chunks is None and misfit(item)):
                return True
        if _unreadable(item, name, note):
            return True
    return False


def differences(path: str, made: Made, note: Note) -> dict[Step, str]:
    """What of a file that was made cannot be read by HDF5, or reads otherwise than what was written to it.

    `made` has the checksums of all chunks by the paths of datasets, and by the first elements of chunks.
    """
    wrong: dict[Step, str] = {}
    with h5py.File(path, "r") as file, open(path, "rb") as data:
        wrong |= {("/", name): why for name, why in _unreadable(file["/"], "/", note)}
        for name, item in walk(file, note):
            if isinstance(item, str):
                wrong[name, None] = item
                continue
            wrong |= {(name, a): why for a, why in _unreadable(item, name, note)}
            if not isinstance(item, h5py.Dataset):
                continue
            note((name, None))
            try:
                chunks = chunks_of(item, data.fileno(), others=True)
            except UNREADABLE as why:
                wrong[name, None] = reason(why)
                continue
            if chunks is not None and (chunks.lost_index or chunks.damage):
                wrong[name, None] = chunks.lost_index or next(iter(chunks.damage.values()))
                continue
            for start, (stop, want) in made.get(name, {}).items():
                box = tuple(slice(a, b) for a, b in zip(start, stop))
                try:
                    same = sum_of(item, box) == want
                except UNREADABLE as why:
                    wrong[name, None] = reason(why)
                    break
                if not same:
                    wrong[name, None] = f"HDF5 reads other values at {start} than were saved"
                    break
    return wrong


def known_sums(chunks: Chunks) -> Sums:
    """The checksums of all chunks that could be decoded."""
    return {tuple(part.start for part in box): (tuple(part.stop for part in box), sum)
            for row, sum in chunks.sums.items() for box in [chunks.box(row)]}


def begun(source: h5py.File, path: str, without: dict[Step, str], note: Note) -> h5py.File:
    """A new, empty file with the properties of a damaged one, where these can be read."""
    note(("/", None))
    if ("/", None) not in without:
        with contextlib.suppress(*UNREADABLE):
            return create_like(source, path)
    return h5py.File(path, "w", track_order=True, userblock_size=source.userblock_size)


class Rebuild(Copier):
    """Copies every object of `source` that can be read to `target`, and fills what is lost.

    Parameters
    ----------
    data, there : int
        A descriptor of the input, and its bytes.
    fill : float, optional
        The value for what is lost.
    distrust : bool
        Whether nothing is copied as it is: values go over chunk by chunk. H5Ocopy may crash, and a chunk may be in a
        list and not be found there by its place.
    without : dict
        What is left out, an object and an attribute or None, with why.
    note : callable
        Told of what is read next.
    """

    def __init__(self, source: h5py.File, target: h5py.File, data: int, there: int, fill: Optional[float], *,
                 distrust: bool, without: dict[Step, str], note: Note) -> None:
        super().__init__(source, target)
        self.data, self.there, self.fill = data, there, fill
        self.distrust, self.without, self.note = distrust, without, note
        self.by_object = not distrust
        self.lost: Lost = []
        self.made: Made = {}
        self._scaled: list[str] = []
        """Datasets with dimension scales."""

    def run(self) -> None:
        """Copies; `lost` and `made` say what came of it."""
        for found in groups.vanished(self.source, self.data):
            self.lost += [{"object": path, "why": why} for path, why in found.items()]
        if ("/", None) in self.without:
            self.ready(b"/")
            return
        super().run()
        self._attach_scales()
        self.lost += [_lost(path, attribute, f"{count} references lead to what is lost; they are empty now")
                      for path, attribute, count in self.empty]

    def ready(self, path: bytes, attribute: Optional[bytes] = None) -> bool:
        """Whether an object or an attribute is not left out; it is told of as the next."""
        step = _text(path), None if attribute is None else _text(attribute)
        if attribute in _REFERENCES and step not in self.without:
            if attribute == _REFERENCES[0]:
                self._scaled.append(step[0])
            return False
        why = self.without.get(step) or _not_utf8(path.rpartition(b"/")[2] if attribute is None else attribute)
        if not why:
            self.note(step)
        else:
            self.lost.append(_lost(path, attribute, why))
        return not why

    def failed(self, path: bytes, attribute: Optional[bytes], why: BaseException) -> None:
        """Leaves out what cannot be read."""
        if of_the_system(why):
            raise why
        self.lost.append(_lost(path, attribute, reason(why)))
        if attribute is None:
            with contextlib.suppress(*UNREADABLE):  # what was made of it before that
                self.target.id.unlink(path)

    def group(self, old: h5py.h5g.GroupID, new: h5py.h5g.GroupID, path: bytes) -> None:
        """Copies the links of a group that can be listed."""
        self.note((_text(path or b"/"), None))
        try:
            super().group(old, new, path)
        except UNREADABLE as why:
            if of_the_system(why):
                raise
            self.lost.append(_lost(path or b"/", None, f"its list of objects: {reason(why)}"))

    def link(self, link: Link, kind: int, path: bytes) -> None:
        """Copies a link whose name is new."""
        if link.new.links.exists(link.name):
            self.lost.append(_lost(path, None, "two objects have this name; the first is in the new file"))
        else:
            super().link(link, kind, path)

    def check(self, found: Any) -> None:
        """Raises for a group or a named type that was a dataset."""
        if not isinstance(found, h5py.h5d.DatasetID):
            refuse_dataset(found)

    def describe(self, old: Any, new: Any, path: bytes) -> None:
        """Gives an object the comment of another, and the attributes that can be read."""
        step = _text(path), ""
        self.note(step)
        try:
            if step in self.without:
                raise ValueError(self.without[step])
            super().describe(old, new, path)
        except UNREADABLE as why:
            if of_the_system(why):
                raise
            self.lost.append(_lost(path, b"(all)", reason(why)))

    def dataset(self, old: h5py.h5d.DatasetID, place: int, link: Optional[Link], path: bytes) -> h5py.h5d.DatasetID:
        """Copies a dataset, and fills what is lost of it."""
        item, full = h5py.Dataset(old), _text(path)
        chunks = chunks_of(item, self.data, check="decode", others=True)
        if chunks is None:
            if why := misfit(item):
                raise OSError(why)
            made = super().dataset(old, place, link, path)
            self.made[full] = _sums_of_all(item)
            lost = fill_end(full, item, h5py.Dataset(made), self.there, self.fill)
            if lost:
                del self.made[full]
        else:
            self.made[full] = sums = known_sums(chunks)
            held = places_in(old.get_type())
            if not (chunks.lost_index or chunks.doubt or self.distrust or (held and chunks.damage)):
                made = super().dataset(old, place, link, path)
                lost = fill_chunks(full, chunks, h5py.Dataset(made), self.fill)
            else:
                made = self.create(old, old.get_type(), held, None, link, path)
                self.addresses[place] = address(made)
                self.describe(old, made, path)
                lost = self._by_chunks(full, chunks, h5py.Dataset(made), held, sums)
            if chunks.doubt:
                lost.append({"object": full, "why": chunks.doubt})
        self.note((full, None))
        self.lost += lost
        return made

    def _by_chunks(self, full: str, chunks: Chunks, made: h5py.Dataset, held: tuple[Place, ...], sums: Sums) -> Lost:
        """Fills a dataset with the chunks that are known."""
        for row, origin in enumerate(chunks.origins.tolist()):
            if row in chunks.damage:
                continue
            if held:
                self._by_values(chunks, row, made, held)
                continue
            stored = pread(self.data, int(chunks.stored[row]), int(chunks.at[row]))
            made.id.write_direct_chunk(tuple(origin), stored, int(chunks.masks[row]))
            if row not in chunks.sums:  # HDF5 did not find it in the input
                box = chunks.box(row)
                try:
                    sums[tuple(origin)] = tuple(part.stop for part in box), sum_of(made, box)
                except UNREADABLE as why:
                    chunks.damage[row] = reason(why)
        lost = fill_chunks(full, chunks, made, self.fill)
        if not chunks.lost_index:
            return lost
        missing, cause = chunks.missing(_NAMED), f"the list of chunks is damaged ({chunks.lost_index})"
        if missing is None:
            n = math.prod(chunks.grid) - len(chunks.at)
            return [*lost, {"object": full, "values": f"those of {n} chunks", "filled_with": str(made.fillvalue),
                            "why": cause}]
        for origin in missing.tolist():
            if held or tuple(origin) in chunks.twice or not _looked_up(chunks, made, origin, sums):
                lost.append(lost_chunk(full, made, origin, put(made, origin, self.fill),
                                       f"it is not in the list of chunks: {cause}"))
        return lost

    def _by_values(self, chunks: Chunks, row: int, made: h5py.Dataset, held: tuple[Place, ...]) -> None:
        """Copies the values of a chunk that hold what leads elsewhere: references when all objects are there."""
        if holds_references(held):
            self.late.append((made.name.encode(errors="surrogateescape"), None, lambda: copy_box(
                chunks.dataset.id, made.id, chunks.box(row), held, self.references)))  # fmt: skip
            return
        try:
            copy_box(chunks.dataset.id, made.id, chunks.box(row), held)
        except UNREADABLE as why:
            chunks.damage[row] = reason(why)

    def _attach_scales(self) -> None:
        """Gives datasets their dimension scales again: HDF5 refuses lists of them in which some are lost."""
        for path in self._scaled:
            if path not in self.target:
                continue
            item = self.source[path]
            self.note((path, _REFERENCES[0].decode()))
            for axis in range(len(item.shape)):
                try:
                    found = [scale.name for scale in item.dims[axis].values() if scale.name in self.target]
                except UNREADABLE:
                    continue  # a scale that is lost itself
                for scale in found:
                    self.target[path].dims[axis].attach_scale(self.target[scale])


def _text(name: bytes) -> str:
    return name.decode(errors="surrogateescape")


def _not_utf8(name: bytes) -> str:
    """Why a name cannot be right, "" where it can."""
    try:
        name.decode()
    except UnicodeDecodeError:
        return "its name is no text in UTF-8"
    return ""


def _lost(path: bytes, attribute: Optional[bytes], why: str) -> dict[str, Any]:
    """What is reported of an object or an attribute that is left out."""
    named = {} if attribute is None else {"attribute": _text(attribute)}
    return {"object": _text(path), **named, "why": why}


def misfit(dataset: h5py.Dataset) -> str:
    """Why the values of a dataset in one piece cannot be where its tables say, "" where they can."""
    at, there, stored = dataset.id.get_offset(), dataset.file.id.get_filesize(), dataset.id.get_storage_size()
    if at is None or dataset.shape is None:
        return ""
    if at + stored > there:
        return f"it has {stored} bytes from byte {at} on, the whole file {there}"
    kind = dataset.id.get_type()
    wanted = dataset.size * kind.get_size()
    if lies_elsewhere(kind) or kind.detect_class(h5py.h5t.REFERENCE):  # they are longer in memory than in the file
        return ""
    return f"its values take {wanted} bytes, and it has {stored}" if wanted != stored else ""


def _sums_of_all(dataset: h5py.Dataset) -> Sums:
    """Checksums of a dataset that has no chunks, where its values are in the file itself."""
    if not _has_values(dataset):
        return {}
    found = boxes(dataset.shape, cut(dataset.shape, _VALUES)) if dataset.shape else [()]
    return {tuple(part.start for part in box): (tuple(part.stop for part in box), sum_of(dataset, box))
            for box in found}


def _has_values(dataset: h5py.Dataset) -> bool:
    """Whether a dataset has values of its own."""
    virtual_or_external = dataset.is_virtual or dataset.external is not None
    stored = dataset.shape is not None and dataset.id.get_storage_size() and not virtual_or_external
    return bool(stored)


def _looked_up(chunks: Chunks, made: h5py.Dataset, origin: list[int], sums: Sums) -> bool:
    """Copies a chunk that the list does not give, but that may be found by its place: the way to it may avoid what is
    damaged."""
    box = tuple(slice(o, min(o + c, n)) for o, c, n in zip(origin, made.chunks, made.shape))
    try:
        mask, stored = chunks.dataset.id.read_direct_chunk(tuple(origin))
        made.id.write_direct_chunk(tuple(origin), stored, mask)
        sums[tuple(origin)] = tuple(part.stop for part in box), sum_of(made, box)  # decodes it
        return True
    except UNREADABLE:
        return False


def _unreadable(item: Any, path: str, note: Note) -> list[tuple[str, str]]:
    """Attributes of an object that cannot be read, with why."""
    note((path, ""))
    try:
        names = [name for name, _ in attributes_of(item.id)]
    except UNREADABLE as why:
        return [("(all)", reason(why))]
    lost = []
    for name in names:
        note((path, _text(name)))
        try:
            if why_not := _not_utf8(name):
                raise ValueError(why_not)
            attribute = h5py.h5a.open(item.id, name)
            kind, count = attribute.get_type(), attribute.get_space().get_simple_extent_npoints()
            with elements(kind, places_in(kind), count) as (memory, rows):
                if count:
                    calls.H5Aread(attribute, memory, rows.ctypes.data)
        except UNREADABLE as why:
            lost.append((_text(name), reason(why)))
    return lost
