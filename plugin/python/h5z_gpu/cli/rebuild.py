# SPDX-License-Identifier: MIT OR Apache-2.0
"""Makes a new file of what can be read of one whose own tables are damaged, for `recover`."""
from __future__ import annotations

import itertools
import os
from typing import Any, Optional

import h5py

from .objects import UNREADABLE, Chunks, address_of, chunks_of, reason, walk
from .repair import Lost, fill_chunks, fill_end, lost_chunk, put

# Attributes of HDF5's dimension scales: they hold references, which are made anew.
_REFERENCES = ("DIMENSION_LIST", "REFERENCE_LIST")


def survey(file: h5py.File, data: int, *, contents: bool = False) -> bool:
    """Whether anything but the contents of chunks is damaged, or, with `contents`, anything at all; `data` is a descriptor of the
    file's bytes."""
    if _attributes(file, None):
        return True
    for _, item in walk(file):
        if isinstance(item, str):
            return True
        if isinstance(item, h5py.Dataset):
            try:
                chunks = chunks_of(item, data, check="checksum" if contents else "header", others=True)
            except UNREADABLE:
                return True
            if chunks is not None and (chunks.lost_index or contents and chunks.damage):
                return True
        if not isinstance(item, h5py.Datatype) and _attributes(item, None):
            return True
    return False


def rebuild(source: h5py.File, target: h5py.File, data: int, there: int, fill: Optional[float], *, distrust: bool) -> Lost:
    """Copies every object that can be read, and fills what is lost; `data` is the input, of `there` bytes.

    With `distrust` no list of chunks is copied as it is: a chunk may be in one and not be found there by its place.
    """
    lost = [{"object": "/", "attribute": name, "why": why} for name, why in _attributes(source, target)]
    paths: dict[int, str] = {}
    _group(source["/"], target["/"], "", paths, lost, data, there, fill, distrust)
    _attach_scales(source, target, paths)
    return lost


def _group(source, target, path, paths, lost, data, there, fill, distrust):
    try:
        names = list(source)
    except UNREADABLE as why:
        lost.append({"object": path or "/", "why": f"its list of objects: {reason(why)}"})
        return
    for name in names:
        full = f"{path}/{name}"
        try:
            link = source.get(name, getlink=True)
            if link is None:
                raise KeyError("it is listed, and not found by its name")
            if not isinstance(link, h5py.HardLink):
                target[name] = link
                continue
            item = source[name]
            address = address_of(source, name)
            if address in paths:
                target[name] = target.file[paths[address]]
                continue
            if isinstance(item, h5py.Group):
                made = target.create_group(name, track_order=True)
                paths[address] = full
                lost += [{"object": full, "attribute": a, "why": why} for a, why in _attributes(item, made)]
                _group(item, made, full, paths, lost, data, there, fill, distrust)
                continue
            if isinstance(item, h5py.Dataset):
                found = _dataset(full, item, target, name, data, there, fill, distrust)
            else:
                h5py.h5o.copy(source.id, name.encode(), target.id, name.encode())
                found = []
            paths[address] = full
            lost += found
        except UNREADABLE as why:
            lost.append({"object": full, "why": reason(why)})


def _dataset(full, item, target, name, data, there, fill, distrust):
    """Copies a dataset, and fills what is lost of it."""
    chunks = chunks_of(item, data, check="decode", others=True)
    how = h5py.h5p.create(h5py.h5p.OBJECT_COPY)
    how.set_copy_object(h5py.h5o.COPY_WITHOUT_ATTR_FLAG)
    parent = item.parent.id
    last = item.name.rsplit("/", 1)[1].encode()
    if chunks is None:
        h5py.h5o.copy(parent, last, target.id, name.encode(), how)
        lost = fill_end(full, item, target[name], there, fill)
    elif not chunks.lost_index and not distrust:
        h5py.h5o.copy(parent, last, target.id, name.encode(), how)
        lost = fill_chunks(full, chunks, target[name], fill)
    else:
        lost = _by_chunks(full, chunks, target, name, data, fill)
    return lost + [{"object": full, "attribute": a, "why": why} for a, why in _attributes(item, target[name])]


def _by_chunks(full: str, chunks: Chunks, target: h5py.Group, name: str, data: int, fill: Optional[float]) -> Lost:
    """Makes a dataset of the chunks that are known, where their list is damaged."""
    old = chunks.dataset.id
    h5py.h5d.create(target.id, name.encode(), old.get_type(), old.get_space(), old.get_create_plist())
    made = target[name]
    known = set()
    for row, origin in enumerate(chunks.origins.tolist()):
        if row not in chunks.damage:
            stored = os.pread(data, int(chunks.stored[row]), int(chunks.at[row]))
            made.id.write_direct_chunk(tuple(origin), stored, int(chunks.masks[row]))
        known.add(tuple(origin))
    lost = fill_chunks(full, chunks, made, fill)
    if not chunks.lost_index:
        return lost
    why = f"it is not in the list of chunks, which is damaged ({chunks.lost_index})"
    for cell in itertools.product(*map(range, chunks.grid)):
        origin = [k * c for k, c in zip(cell, made.chunks)]
        if tuple(origin) not in known and not _looked_up(chunks.dataset, made, tuple(origin)):
            lost.append(lost_chunk(full, made, origin, put(made, origin, fill), why))
    return lost


def _looked_up(source: h5py.Dataset, made: h5py.Dataset, origin: tuple[int, ...]) -> bool:
    """Copies a chunk that the list does not give, but that may be found by its place: the way to it may avoid what is damaged."""
    try:
        mask, stored = source.id.read_direct_chunk(origin)
        made.id.write_direct_chunk(origin, stored, mask)
        made[tuple(slice(o, o + c) for o, c in zip(origin, made.chunks))]  # decodes it
        return True
    except UNREADABLE:
        return False


def _attributes(source: Any, target: Any) -> list[tuple[str, str]]:
    """Copies attributes; those that cannot be read, with why. Without a target they are read alone."""
    try:
        names = list(source.attrs)
    except UNREADABLE as why:
        return [("(all)", reason(why))]
    lost = []
    for name in names:
        if name in _REFERENCES:
            continue
        try:
            attribute = source.attrs.get_id(name)
            kind = attribute.get_type()
        except UNREADABLE as why:
            lost.append((name, reason(why)))
            continue
        try:
            value, dtype = source.attrs[name], attribute.dtype
        except OSError as why:
            if kind.get_class() not in (h5py.h5t.REFERENCE, h5py.h5t.OPAQUE):
                lost.append((name, reason(why)))
            continue
        except UNREADABLE as why:  # a type that h5py cannot show
            if target is not None:
                lost.append((name, f"it cannot be copied: {reason(why)}"))
            continue
        if target is not None:
            try:
                shape = None if isinstance(value, h5py.Empty) else attribute.shape
                target.attrs.create(name, value, shape=shape, dtype=None if shape is None else dtype)
            except UNREADABLE as why:
                lost.append((name, f"it cannot be copied: {reason(why)}"))
    return lost


def _attach_scales(source: h5py.File, target: h5py.File, paths: dict[int, str]) -> None:
    """Gives datasets their dimension scales again."""
    known = set(paths.values())
    for path in paths.values():
        item = source[path]
        if not isinstance(item, h5py.Dataset) or "DIMENSION_LIST" not in item.attrs:
            continue
        for axis in range(len(item.shape)):
            try:
                scales = item.dims[axis].values()
                found = [scale.name for scale in scales if scale.name in known]
            except UNREADABLE:
                continue  # a scale that is lost itself
            for scale in found:
                target[path].dims[axis].attach_scale(target[scale])
