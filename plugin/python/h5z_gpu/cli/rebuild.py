# SPDX-License-Identifier: MIT OR Apache-2.0
"""Makes a new file of what can be read of one whose own tables are damaged, for `recover`."""
from __future__ import annotations

import math
from collections.abc import Container
from typing import Any, Optional

import h5py

from . import groups
from .boxes import boxes, cut
from .common import pread
from .copying import copy_values
from .objects import (
    UNREADABLE, Chunks, Note, address_of, as_text, chunks_of, of_the_system, reason, refuse_dataset,
    sum_of, walk,
)
from .places import lies_elsewhere
from .repair import Lost, fill_chunks, fill_end, lost_chunk, put

# An object's path, and the name of an attribute of it or None.
Step = tuple[str, Optional[str]]
# By the first element of a box: its end, and the checksum of its values.
Sums = dict[tuple[int, ...], tuple[tuple[int, ...], int]]
Made = dict[str, Sums]

# Attributes of HDF5's dimension scales: they hold references, which are made anew.
_REFERENCES = ("DIMENSION_LIST", "REFERENCE_LIST")
_VALUES = 1 << 20  # that are copied at a time
# Lost chunks of one dataset that are named one by one.
_NAMED = 10_000


def survey(file: h5py.File, data: int, note: Note) -> bool:
    """Whether anything but the contents of chunks is damaged; `data` is a descriptor of the file's bytes."""
    if groups.vanished(file, data)[0] or _attributes(file, None, "/", note):
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
        if not isinstance(item, h5py.Datatype) and _attributes(item, None, name, note):
            return True
    return False


def differences(path: str, made: Made, note: Note) -> dict[Step, str]:
    """What of a file that was made cannot be read by HDF5, or reads otherwise than what was written to it.

    `made` has the checksums of all chunks by the paths of datasets, and by the first elements of chunks.
    """
    wrong: dict[Step, str] = {}
    with h5py.File(path, "r") as file, open(path, "rb") as data:
        wrong |= {("/", name): why for name, why in _attributes(file, None, "/", note)}
        for name, item in walk(file, note):
            if isinstance(item, str):
                wrong[name, None] = item
                continue
            if not isinstance(item, h5py.Datatype):
                wrong |= {(name, a): why for a, why in _attributes(item, None, name, note)}
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


class Rebuild:
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
        self.source, self.target, self.data, self.there, self.fill = source, target, data, there, fill
        self.distrust, self.without, self.note = distrust, without, note
        self.lost: Lost = []
        self.made: Made = {}
        self._paths: dict[int, str] = {}

    def run(self) -> None:
        """Copies; `lost` and `made` say what came of it."""
        for found in groups.vanished(self.source, self.data):
            self.lost += [{"object": path, "why": why} for path, why in found.items()]
        self._attributes(self.source, self.target, "/")
        self._group(self.source["/"], self.target["/"], "")
        self._attach_scales()

    def _group(self, source: h5py.Group, target: h5py.Group, path: str) -> None:
        if self._left_out(path or "/"):
            return
        try:
            names = list(source)
        except UNREADABLE as why:
            self.lost.append({"object": path or "/", "why": f"its list of objects: {reason(why)}"})
            return
        for name in names:
            full = f"{path}/{as_text(name)}"
            if self._left_out(full):
                continue
            try:
                if isinstance(name, bytes):
                    raise ValueError("its name is no text in UTF-8")
                if name in target:
                    self.lost.append({"object": full, "why": "two objects have this name; the first is in the "
                                      "new file"})
                    continue
                self._link(source, target, name, full)
            except UNREADABLE as why:
                if of_the_system(why):
                    raise
                self.lost.append({"object": full, "why": reason(why)})
                if name in target:  # what was made of it before that
                    del target[name]

    def _left_out(self, path: str) -> bool:
        """Whether an object is left out; if not, it is told of as the next."""
        why = self.without.get((path, None))
        if why is None:
            self.note((path, None))
            return False
        self.lost.append({"object": path, "why": why})
        return True

    def _link(self, source: h5py.Group, target: h5py.Group, name: str, full: str) -> None:
        link = source.get(name, getlink=True)
        if link is None:
            raise KeyError("it is listed, and not found by its name")
        if not isinstance(link, h5py.HardLink):
            target[name] = link
            return
        item = source[name]
        address = address_of(source, name)
        if address in self._paths:
            target[name] = self.target[self._paths[address]]
            return
        if not isinstance(item, h5py.Dataset):
            refuse_dataset(item.id)
        if isinstance(item, h5py.Group):
            made = target.create_group(name, track_order=True)
            self._paths[address] = full
            self._attributes(item, made, full)
            self._group(item, made, full)
            return
        if isinstance(item, h5py.Dataset):
            found = self._dataset(full, item, target, name)
            self.note((full, None))
            self._attributes(item, target[name], full)
        else:
            h5py.h5o.copy(source.id, name.encode(), target.id, name.encode())
            found = []
        self._paths[address] = full
        self.lost += found

    def _dataset(self, full: str, item: h5py.Dataset, target: h5py.Group, name: str) -> Lost:
        """Copies a dataset, and fills what is lost of it."""
        chunks = chunks_of(item, self.data, check="decode", others=True)
        if chunks is None:
            if misfit(item):
                raise OSError(misfit(item))
            (_by_values if self.distrust else _by_copy)(item, target, name)
            self.made[full] = _sums_of_all(item)
            lost = fill_end(full, item, target[name], self.there, self.fill)
            if lost:
                del self.made[full]
            if item.id.get_type().detect_class(h5py.h5t.REFERENCE):
                lost.append({"object": full, "why": "its references lead into the damaged file; they are empty now"})
            return lost
        self.made[full] = known_sums(chunks)
        if chunks.doubt:
            self.lost.append({"object": full, "why": chunks.doubt})
        if chunks.lost_index or chunks.doubt or self.distrust:
            return _by_chunks(full, chunks, target, name, self.data, self.fill, self.made[full])
        _by_copy(item, target, name)
        return fill_chunks(full, chunks, target[name], self.fill)

    def _attributes(self, source: Any, target: Any, path: str) -> None:
        left_out = {name for object, name in self.without if object == path and name is not None}
        self.lost += [{"object": path, "attribute": name, "why": self.without[path, name]} for name in sorted(left_out)]
        self.lost += [{"object": path, "attribute": name, "why": why}
                      for name, why in _attributes(source, target, path, self.note, left_out)]

    def _attach_scales(self) -> None:
        """Gives datasets their dimension scales again."""
        known = set(self._paths.values())
        for path in self._paths.values():
            item = self.source[path]
            if not isinstance(item, h5py.Dataset) or (path, _REFERENCES[0]) in self.without:
                continue
            self.note((path, _REFERENCES[0]))
            try:
                axes = range(len(item.shape)) if _REFERENCES[0] in item.attrs else ()
            except UNREADABLE:
                continue  # its attributes are lost, which has been said
            for axis in axes:
                try:
                    found = [scale.name for scale in item.dims[axis].values() if scale.name in known]
                except UNREADABLE:
                    continue  # a scale that is lost itself
                for scale in found:
                    self.target[path].dims[axis].attach_scale(self.target[scale])


def misfit(dataset: h5py.Dataset) -> str:
    """Why the values of a dataset in one piece cannot be where its tables say, "" where they can."""
    at, there, stored = dataset.id.get_offset(), dataset.file.id.get_filesize(), dataset.id.get_storage_size()
    if at is None:
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
    """Whether a dataset has values of its own that mean the same in another file."""
    virtual_or_external = dataset.is_virtual or dataset.external is not None
    stored = dataset.shape is not None and dataset.id.get_storage_size() and not virtual_or_external
    return bool(stored) and not dataset.id.get_type().detect_class(h5py.h5t.REFERENCE)


def _by_copy(item: h5py.Dataset, target: h5py.Group, name: str) -> None:
    """Copies a dataset as it is, but for its attributes."""
    how = h5py.h5p.create(h5py.h5p.OBJECT_COPY)
    how.set_copy_object(h5py.h5o.COPY_WITHOUT_ATTR_FLAG)
    h5py.h5o.copy(item.parent.id, item.name.rsplit("/", 1)[1].encode(), target.id, name.encode(), how)


def _by_values(item: h5py.Dataset, target: h5py.Group, name: str) -> None:
    """Copies a dataset without chunks by its values."""
    old = item.id
    kind = old.get_type()
    new = h5py.h5d.create(target.id, name.encode(), kind, old.get_space(), old.get_create_plist())
    if not _has_values(item):
        return
    copy_values(old, new)


def _by_chunks(full: str, chunks: Chunks, target: h5py.Group, name: str, data: int, fill: Optional[float],
               sums: Sums) -> Lost:
    """Makes a dataset of the chunks that are known."""
    old = chunks.dataset.id
    h5py.h5d.create(target.id, name.encode(), old.get_type(), old.get_space(), old.get_create_plist())
    made = target[name]
    for row, origin in enumerate(chunks.origins.tolist()):
        if row in chunks.damage:
            continue
        stored = pread(data, int(chunks.stored[row]), int(chunks.at[row]))
        made.id.write_direct_chunk(tuple(origin), stored, int(chunks.masks[row]))
        if row not in chunks.sums:  # HDF5 did not find it in the input
            box = chunks.box(row)
            try:
                sums[tuple(origin)] = tuple(part.stop for part in box), sum_of(made, box)
            except UNREADABLE as why:
                chunks.damage[row] = reason(why)
    lost = fill_chunks(full, chunks, made, fill)
    if not chunks.lost_index:
        return lost
    missing, cause = chunks.missing(_NAMED), f"the list of chunks is damaged ({chunks.lost_index})"
    if missing is None:
        n = math.prod(chunks.grid) - len(chunks.at)
        return [*lost, {"object": full, "values": f"those of {n} chunks", "filled_with": str(made.fillvalue),
                        "why": cause}]
    for origin in missing.tolist():
        if tuple(origin) in chunks.twice or not _looked_up(chunks, made, origin, sums):
            lost.append(lost_chunk(full, made, origin, put(made, origin, fill),
                                   f"it is not in the list of chunks: {cause}"))
    return lost


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


def _attributes(source: Any, target: Any, path: str, note: Note,
                left_out: Container[str] = ()) -> list[tuple[str, str]]:
    """Copies attributes; those that cannot be read, with why. Without a target they are read alone."""
    note((path, ""))
    try:
        names = list(source.attrs)
    except UNREADABLE as why:
        return [("(all)", reason(why))]
    lost = []
    for name in names:
        text = as_text(name)
        if name in _REFERENCES or text in left_out:
            continue
        note((path, text))
        try:
            cause = "its name is no text in UTF-8" if isinstance(name, bytes) else _attribute(source, target, name)
        except UNREADABLE as damage:
            cause = reason(damage)
        if cause:
            lost.append((text, cause))
    return lost


def _attribute(source: Any, target: Any, name: str) -> str:
    """Copies one attribute; why it cannot be copied, "" where it was or need not be."""
    attribute = source.attrs.get_id(name)
    kind = attribute.get_type()
    try:
        value, dtype = source.attrs[name], attribute.dtype
    except OSError as why:
        return "" if kind.get_class() in (h5py.h5t.REFERENCE, h5py.h5t.OPAQUE) else reason(why)
    except UNREADABLE as why:  # a type that h5py cannot show
        return "" if target is None else f"it cannot be copied: {reason(why)}"
    if target is not None:
        try:
            shape = None if isinstance(value, h5py.Empty) else attribute.shape
            target.attrs.create(name, value, shape=shape, dtype=None if shape is None else dtype)
        except UNREADABLE as why:
            return f"it cannot be copied: {reason(why)}"
    return ""
