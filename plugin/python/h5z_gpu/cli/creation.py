# SPDX-License-Identifier: MIT OR Apache-2.0
"""Creation properties of the copies of files, groups and datasets.

A dataset's list of properties can be copied as a whole, and so can a file's: nothing is listed by hand. A group's list,
as HDF5 2.0 answers it, holds the address of the old group's heap. A new list gets its properties one by one.
"""
from __future__ import annotations

import contextlib
import ctypes
import os
from ctypes import c_bool, c_size_t, c_uint
from typing import Any, NamedTuple, Optional

import h5py
import numpy as np
from h5py import h5d, h5f, h5g, h5p, h5t

from ..filters import FILTER_ID
from .common import file_access
from .hdf5 import calls, filters, header, superblock

_ALL_FILTERS = 0  # H5Z_FILTER_ALL
# Of groups and of whatever has attributes: the end of the functions' names, and what they take.
_OF_GROUPS: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("link_creation_order", (c_uint,)), ("attr_creation_order", (c_uint,)), ("link_phase_change", (c_uint, c_uint)),
    ("attr_phase_change", (c_uint, c_uint)), ("est_link_info", (c_uint, c_uint)),
    ("local_heap_size_hint", (c_size_t,)), ("obj_track_times", (c_bool,)),
)
_OF_OBJECTS = tuple(named for named in _OF_GROUPS if named[0].startswith(("attr", "obj")))


class Anew(NamedTuple):
    """How a dataset is stored anew."""

    chunk: tuple[int, ...]
    words: tuple[int, ...]
    """Of our filter."""
    fill: Optional[np.ndarray] = None
    """Its fill value, where that becomes another."""
    kind: Optional[h5t.TypeID] = None
    """Its type, where that becomes another."""


def create_like(source: h5py.File, path: str) -> h5py.File:
    """A new, empty file with the properties of another, in the place of what has its name."""
    old = source.id.get_create_plist()
    properties, access = old.copy(), file_access()
    _copy(h5g.open(source.id, b"/").get_create_plist(), properties, _OF_GROUPS)

    def create(low: int) -> h5py.File:
        access.set_libver_bounds(low, h5f.LIBVER_LATEST)
        return h5py.File(h5f.create(os.fsencode(path), h5f.ACC_TRUNC, fcpl=properties, fapl=access))

    # The superblock says which libraries can read the file: 0 and 1 all, 2 from 1.8 on, 3 from 1.10 on.
    version = old.get_version()[0]
    newer = h5f.LIBVER_V18 if version == 2 else h5f.LIBVER_V110
    if version > 1 and header(source.id).version > 1:
        return create(newer)
    # With a root whose header is of version 1 a superblock is newer for the file's properties, such as its way to
    # manage space. Of files of HDF5 1.10.0 the list does not have these: there the root gets a newer header.
    made = create(h5f.LIBVER_EARLIEST)
    if version > 1 and superblock(made.id) < version:
        made.close()
        made = create(newer)
    return made


def copy_user_block(source: h5py.File, path: str) -> None:
    """Copies what lies before HDF5's own bytes into a copy that is closed."""
    if block := source.userblock_size:
        with open(source.filename, "rb") as old, open(path, "r+b") as new:
            new.write(old.read(block))


def like_group(group: h5g.GroupID) -> h5p.PropGCID:
    """Properties of a new group that are those of another."""
    old, made = group.get_create_plist(), h5p.create(h5p.GROUP_CREATE)
    _copy(old, made, _OF_GROUPS)
    for number, flags, words in filters(old):
        calls.H5Pset_filter(made, number, flags, len(words), (c_uint * len(words))(*words))
    return made


def _copy(old: Any, new: Any, properties: tuple[tuple[str, tuple[Any, ...]], ...]) -> None:
    for name, kinds in properties:
        values = [kind() for kind in kinds]
        with contextlib.suppress(OSError):  # an old HDF5 does not have it for all kinds of objects
            getattr(calls, f"H5Pget_{name}")(old, *map(ctypes.byref, values))
            getattr(calls, f"H5Pset_{name}")(new, *values)


def like_dataset(old: h5p.PropDCID, kind: h5t.TypeID, anew: Anew) -> h5p.PropDCID:
    """Properties of a dataset that is stored anew: those of the old one, with other chunks and our filter alone."""
    made = _without_external_files(old, kind) if old.get_external_count() else old.copy()
    if made.get_nfilters():
        made.remove_filter(_ALL_FILTERS)
    # It drops H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS too: chunks at the edges are compressed.
    made.set_chunk(anew.chunk)
    made.set_alloc_time(h5d.ALLOC_TIME_INCR)  # else the filter would encode fill values first
    if anew.fill is not None:
        made.set_fill_value(anew.fill)
    made.set_filter(FILTER_ID, flags=1, values=anew.words)
    return made


def _without_external_files(old: h5p.PropDCID, kind: h5t.TypeID) -> h5p.PropDCID:
    """The same properties, but for the files in which values lie. HDF5 cannot take these from a list."""
    made = h5p.create(h5p.DATASET_CREATE)
    _copy(old, made, _OF_OBJECTS)
    made.set_fill_time(old.get_fill_time())
    defined = old.fill_value_defined()
    if defined == h5d.FILL_VALUE_USER_DEFINED:
        value = ctypes.create_string_buffer(kind.get_size())
        calls.H5Pget_fill_value(old, kind, value)
        calls.H5Pset_fill_value(made, kind, value)
    elif defined == h5d.FILL_VALUE_UNDEFINED:
        calls.H5Pset_fill_value(made, 0, None)
    return made
