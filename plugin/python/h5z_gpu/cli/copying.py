# SPDX-License-Identifier: MIT OR Apache-2.0
"""Copies an HDF5 file object by object, so that some of its datasets can be written anew and all else stays as it is.

1. The new file has the old one's properties (creation order, user block, oldest library that has to read it).
2. Groups are walked in the order in which their links were made, where the file has kept it: netCDF numbers dimensions
   and
   variables by it. Hard links to one object stay links to one object; soft and external links are made anew.
3. A dataset that stays as it is goes over by H5Ocopy, frames and all. One that is written anew is created with the same
   type,
   extents, fill value and order of attributes, and other chunks and filters.
4. Attributes are copied one by one in their order, in the types of the file. References lead to an address in the old
   file, so
   those that hold some (netCDF's and HDF5's dimension scales do) come last, each led to the same path in the new one.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any, Callable, Optional

import h5py
import numpy as np
from h5py import h5a, h5d, h5f, h5g, h5o, h5p, h5r, h5s, h5t

from .boxes import boxes, cut

# h5py's name for what creates a dataset in the place of one: (source, its new properties or None to copy it as it is).
Plan = Callable[[h5py.Dataset], Optional[h5p.PropDCID]]

_WITHOUT_ATTRIBUTES = 0x10  # H5O_COPY_WITHOUT_ATTR_FLAG
_MERGE_TYPES = 0x40  # H5O_COPY_MERGE_COMMITTED_DTYPE_FLAG: a named type is not copied once more for each dataset of it


def create_like(source: h5py.File, path: str) -> h5py.File:
    """A new, empty file with the properties of another, in the place of what has its name."""
    root, properties = source.id.get_create_plist(), h5p.create(h5p.FILE_CREATE)
    properties.set_userblock(root.get_userblock())
    with contextlib.suppress(ValueError):
        properties.set_sizes(*root.get_sizes())
    group = h5g.open(source.id, b"/").get_create_plist()
    properties.set_link_creation_order(group.get_link_creation_order())
    properties.set_attr_creation_order(group.get_attr_creation_order())
    with contextlib.suppress(ValueError, AttributeError):
        strategy = root.get_file_space_strategy()
        properties.set_file_space_strategy(*strategy)
        properties.set_file_space_page_size(root.get_file_space_page_size())
    access = h5p.create(h5p.FILE_ACCESS)
    access.set_fclose_degree(h5f.CLOSE_STRONG)
    # The superblock says which libraries can read the file: 0 and 1 all, 2 from 1.8 on, 3 from 1.10 on.
    version = root.get_version()[0]
    low = {0: h5f.LIBVER_EARLIEST, 1: h5f.LIBVER_EARLIEST, 2: h5f.LIBVER_V18}.get(version, h5f.LIBVER_V110)
    access.set_libver_bounds(low, h5f.LIBVER_LATEST)
    return h5py.File(h5f.create(os.fsencode(path), h5f.ACC_TRUNC, fcpl=properties, fapl=access))


class Copier:
    """Copies all of one file into another.

    Parameters
    ----------
    source, target : h5py.File
        The target is empty.
    plan : callable
        Asked of each dataset with its chunks and filters to be, or None: it stays as it is.
    write : callable
        Writes the values of each dataset that is made anew: (old, new).
    kind : callable, optional
        The type of a dataset that is made anew, where it is not the old one's.
    """

    def __init__(
        self, source: h5py.File, target: h5py.File, plan: Plan, write: Callable[[h5py.Dataset, h5py.Dataset], None],
        kind: Callable[[h5py.Dataset], Optional[h5t.TypeID]] = lambda _: None,
    ) -> None:  # fmt: skip
        self.source, self.target, self.plan, self.write, self.kind = source, target, plan, write, kind
        self._paths: dict[Any, bytes] = {}
        """Where the new file has what lies at an address of the old one."""
        self._later: list[tuple[Any, Any, bytes]] = []
        """Attributes with references: old object, new object, name."""
        self._elements: list[tuple[h5py.Dataset, bytes]] = []
        """Datasets of references, and where they are now."""
        self._anew: list[tuple[bytes, bytes]] = []

    def run(self) -> None:
        """Copies. Values come last, when every object is there."""
        self._group(h5g.open(self.source.id, b"/"), h5g.open(self.target.id, b"/"), b"")
        for old, new, name in self._later:
            self._attribute(old, new, name)
        for dataset, path in self._elements:
            found = h5py.Dataset(h5o.open(self.target.id, path))
            if dataset.shape is not None and dataset.size:
                found[...] = self._translated(dataset[...])
                found.flush()  # what fails while HDF5 closes a dataset raises nothing
        for before, path in self._anew:
            self.write(h5py.Dataset(h5o.open(self.source.id, before)), h5py.Dataset(h5o.open(self.target.id, path)))

    def _group(self, old: h5g.GroupID, new: h5g.GroupID, path: bytes) -> None:
        self._paths[address(old)] = path or b"/"
        self._attributes(old, new)
        for name, kind in _links(old):
            self._link(old, new, name, kind, path + b"/" + name)

    def _link(self, old: h5g.GroupID, new: h5g.GroupID, name: bytes, kind: int, path: bytes) -> None:
        if kind == h5py.h5l.TYPE_SOFT:
            new.links.create_soft(name, old.links.get_val(name))
            return
        if kind == h5py.h5l.TYPE_EXTERNAL:
            file, inside = old.links.get_val(name)
            new.links.create_external(name, file, inside)
            return
        if kind != h5py.h5l.TYPE_HARD:
            raise OSError(
                f"{path.decode(errors='replace')} is a link of a kind of its own ({kind}), which cannot be copied"
            )
        found = h5o.open(old, name)
        known = self._paths.get(address(found))
        if known is not None:
            h5o.link(h5o.open(self.target.id, known), new, name)
        elif isinstance(found, h5g.GroupID):
            self._group(found, h5g.create(new, name, gcpl=found.get_create_plist()), path)
        else:
            self._paths[address(found)] = path
            self._object(old, new, name, found, path)
        if known is None and (text := h5o.get_comment(old, name)):
            h5o.set_comment(new, text, obj_name=name)

    def _object(self, old: h5g.GroupID, new: h5g.GroupID, name: bytes, found: Any, path: bytes) -> None:
        """A dataset or a named type."""
        properties = self.plan(h5py.Dataset(found)) if isinstance(found, h5d.DatasetID) else None
        if properties is None and isinstance(found, h5d.DatasetID) and holds_objects(found.get_type()):
            # H5Ocopy leaves a fill value of any length in the old file's heap (HDF5 2.0): what it makes cannot be
            # opened.
            made = h5d.create(
                new, name, self._type(found.get_type()), found.get_space().copy(), dcpl=found.get_create_plist()
            )
            copy_objects(found, made)
            if _holds_references(found.get_type()):
                self._elements.append((h5py.Dataset(found), path))
        elif properties is None:
            flags = h5p.create(h5p.OBJECT_COPY)
            of_named_type = isinstance(found, h5d.DatasetID) and found.get_type().committed()
            flags.set_copy_object(_WITHOUT_ATTRIBUTES | (_MERGE_TYPES if of_named_type else 0))
            h5o.copy(old, name, new, name, flags)
            if isinstance(found, h5d.DatasetID) and _holds_references(found.get_type()):
                self._elements.append((h5py.Dataset(found), path))
        else:
            kind = self.kind(h5py.Dataset(found)) or self._type(found.get_type())
            h5d.create(new, name, kind, found.get_space().copy(), dcpl=properties)
            self._anew.append((path, path))
        self._attributes(found, h5o.open(new, name))

    def _attributes(self, old: Any, new: Any) -> None:
        """All attributes of an object, in the order in which they were made, where the file has kept it."""
        for name in _attribute_names(old):
            if _holds_references(h5a.open(old, name).get_type()):
                self._later.append((old, new, name))
            else:
                self._attribute(old, new, name)

    def _attribute(self, old: Any, new: Any, name: bytes) -> None:
        attribute = h5a.open(old, name)
        kind, space = attribute.get_type(), attribute.get_space()
        made = h5a.create(new, name, self._type(kind), space)
        if space.get_simple_extent_type() == h5s.NULL or attribute.get_storage_size() == 0:
            return
        if not _holds_references(kind) and not holds_objects(kind):
            # The bytes as they lie in the file.
            raw = np.zeros((*attribute.shape, kind.get_size()), np.uint8)
            attribute.read(raw, mtype=kind)
            made.write(raw, mtype=kind)
            return
        values = np.empty(attribute.shape, attribute.dtype)
        memory = h5t.py_create(attribute.dtype)
        attribute.read(values, mtype=memory)
        made.write(self._translated(values) if _holds_references(kind) else values, mtype=memory)

    def _type(self, kind: h5t.TypeID) -> h5t.TypeID:
        """A type, or the same named type of the new file."""
        path = self._paths.get(address(kind)) if kind.committed() else None
        return kind if path is None else h5t.open(self.target.id, path)

    def _translated(self, values: Any) -> Any:
        """The same with references into the new file. Empty ones, and those to what is not linked, stay empty."""
        if isinstance(values, h5py.RegionReference):
            path = self._where(values)
            if path is None:
                return h5py.RegionReference()
            return h5r.create(self.target.id, path, h5r.DATASET_REGION, h5r.get_region(values, self.source.id))
        if isinstance(values, h5py.Reference):
            path = self._where(values)
            return h5py.Reference() if path is None else h5r.create(self.target.id, path, h5r.OBJECT)
        if isinstance(values, np.ndarray) and values.dtype.names:
            out = values.copy()
            for name in values.dtype.names:
                if values.dtype[name].hasobject:
                    out[name] = self._translated(values[name])
            return out
        if isinstance(values, np.ndarray) and values.dtype.hasobject:
            out = np.empty_like(values)
            for at in np.ndindex(values.shape):
                out[at] = self._translated(values[at])
            return out
        return values

    def _where(self, reference: Any) -> Optional[bytes]:
        if not reference:
            return None
        try:
            return self._paths.get(address(h5r.dereference(reference, self.source.id)))
        except (RuntimeError, ValueError, OSError):  # it led nowhere before
            return None


def like(dataset: h5py.Dataset, chunk: tuple[int, ...]) -> h5p.PropDCID:
    """Creation properties as those of a dataset, in chunks and without filters."""
    old = dataset.id.get_create_plist()
    made = h5p.create(h5p.DATASET_CREATE)
    made.set_chunk(chunk)
    made.set_attr_creation_order(old.get_attr_creation_order())
    made.set_obj_track_times(old.get_obj_track_times())
    made.set_fill_time(old.get_fill_time())
    if old.fill_value_defined() == h5d.FILL_VALUE_USER_DEFINED:
        value = np.zeros((), dataset.dtype)
        old.get_fill_value(value)
        made.set_fill_value(value)
    return made


def address(item: Any) -> Any:
    """Where an object of a file lies: a key that all of its names share."""
    item = getattr(item, "id", item) if isinstance(item, h5py.HLObject) else item
    info = h5o.get_info(item)
    return info.fileno, info.addr


def _links(group: h5g.GroupID) -> Iterator[tuple[bytes, int]]:
    """Names and kinds of a group's links, in the order in which they were made or, where the file has not kept it, of
    names."""
    order = group.get_create_plist().get_link_creation_order()
    by = h5py.h5.INDEX_CRT_ORDER if order & h5p.CRT_ORDER_TRACKED else h5py.h5.INDEX_NAME
    found: list[tuple[bytes, int]] = []
    group.links.iterate(lambda name, info: found.append((name, info.type)), info=True, idx_type=by)
    return iter(found)


def _attribute_names(item: Any) -> list[bytes]:
    names: list[bytes] = []
    tracked = 0
    if isinstance(item, (h5d.DatasetID, h5g.GroupID)):
        tracked = item.get_create_plist().get_attr_creation_order()
    by = h5py.h5.INDEX_CRT_ORDER if tracked & h5p.CRT_ORDER_TRACKED else h5py.h5.INDEX_NAME
    for k in range(h5a.get_num_attrs(item)):
        names.append(h5a.open(item, index=k, index_type=by, order=h5py.h5.ITER_INC).name)
    return names


def copy_objects(old: h5d.DatasetID, new: h5d.DatasetID) -> None:
    """Values that hold texts or arrays of any length, some at a time."""
    if old.get_space().get_simple_extent_type() == h5s.NULL or not old.get_storage_size():
        return
    shape, dtype = old.shape, old.dtype
    memory = h5t.py_create(dtype)
    for box in boxes(shape, cut(shape, 1 << 16)):
        values = np.empty(tuple(s.stop - s.start for s in box), dtype)
        here = h5s.create_simple(values.shape) if shape else h5s.create(h5s.SCALAR)
        there = old.get_space().copy()
        if shape:
            there.select_hyperslab(tuple(s.start for s in box), values.shape)
        old.read(here, there, values, mtype=memory)
        new.write(here, there, values, mtype=memory)
    new.flush()


def _holds_references(kind: h5t.TypeID) -> bool:
    return bool(kind.detect_class(h5t.REFERENCE))


def holds_objects(kind: h5t.TypeID) -> bool:
    """Whether values lie outside of the bytes of the type: texts and arrays of any length."""
    if isinstance(kind, h5t.TypeStringID):
        return bool(kind.is_variable_str())
    if isinstance(kind, h5t.TypeCompoundID):
        return any(holds_objects(kind.get_member_type(k)) for k in range(kind.get_nmembers()))
    if isinstance(kind, h5t.TypeArrayID):
        return holds_objects(kind.get_super())
    return isinstance(kind, h5t.TypeVlenID)
