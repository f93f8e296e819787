# SPDX-License-Identifier: MIT OR Apache-2.0
"""Copies an HDF5 file object by object, so that some of its datasets can be stored anew and all else stays as it is.

No value and no type goes through NumPy or h5py's converters: values move as bytes in the type that the file has, which
is the type in memory too, so that HDF5 has nothing to convert.

1. The new file has the old one's properties (`creation`).
2. Groups are walked breadth first, each by its links in their order, and objects are known by their addresses: hard
   links to one object stay links to one object, and cycles end.
3. Each object is made in the format of the old one (`_bounds`): whoever could read that reads this.
4. A dataset that stays as it is goes over by H5Ocopy, frames and all, where its type is plain: no references, nothing
   of any length, no named type. H5Ocopy of other datasets leaves addresses of the old file in the new one, or makes
   types anew, and it miswrites some old headers (`is_copied_well`). Those are made by H5Dcreate, and their stored
   chunks or their values are copied.
5. Named types are made where they are first needed, and linked when their link's turn comes.
6. Attributes are made in their order.
7. References come last, when all objects are there (`references`). A fill value that refers to an object (MATLAB) has
   to be known when its dataset is made: that object is made beforehand.

`Copier.ready` and `Copier.failed` are for `recover`, which leaves out what cannot be read.
"""
from __future__ import annotations

import contextlib
import ctypes
from collections import deque
from collections.abc import Iterator
from operator import methodcaller
from typing import Any, Callable, NamedTuple, Optional

import h5py
from h5py import h5a, h5d, h5f, h5g, h5l, h5o, h5p, h5t

from .common import Problem
from .creation import Anew, like_dataset, like_group
from .hdf5 import (
    DEFAULT, address, address_and_times, at_address, attribute_properties, attributes_of, calls, comment,
    copy_own_link, creation_list, has, header, link_properties, links_of, own_space, shares_messages, wrapped,
)
from .objects import UNREADABLE, of_the_system, reason
from .places import Place, holds_references, places_in
from .references import References
from .times import restore
from .values import copy_plain, copy_values, elements

_WITHOUT_ATTRIBUTES = 0x10  # H5O_COPY_WITHOUT_ATTR_FLAG

Plan = Callable[[h5d.DatasetID], Optional[Anew]]
Write = Callable[[h5py.Dataset, h5py.Dataset], None]


class Link(NamedTuple):
    """A link that is copied: the groups it is in, its name and its properties."""

    old: h5g.GroupID
    new: h5g.GroupID
    name: bytes
    properties: h5p.PropLCID


class Copier:
    """Copies all of one file into another, which is empty.

    `plan` is asked of each dataset: how it is stored anew, or None: it stays as it is. `write` writes the values of
    each dataset that is stored anew, (old, new), when its attributes are there.
    """

    def __init__(self, source: h5py.File, target: h5py.File, plan: Plan = lambda _: None,
                 write: Write = lambda old, new: copy_values(old.id, new.id)) -> None:
        self.source, self.target, self.plan, self.write = source, target, plan, write
        self.addresses: dict[int, int] = {}
        """Where an object of the old file is in the new one."""
        self.times: dict[int, tuple[int, ...]] = {}
        """What `times.restore` is to write: the old objects' times, by the addresses of the new ones."""
        self._old_times: dict[int, tuple[int, ...]] = {}
        self._shares = shares_messages(source.id)
        self._space_of = own_space if self._shares else methodcaller("get_space")
        self.references = References(source.id, target.id, self.addresses)
        self.empty: list[tuple[bytes, Optional[bytes], int]] = []
        """Where references led to no object of the old file, and how many: they are empty in the new one."""
        self._types: dict[int, h5t.TypeID] = {}
        self._unlinked: dict[int, Any] = {}
        """Objects that were made before their link's turn, by their old addresses. They are gone when nobody holds
        them."""
        self.late: list[tuple[bytes, Optional[bytes], Callable[[], None]]] = []
        """What holds references: its object, its attribute or None, and what copies it."""
        self._low = -1
        self._copy_properties = h5p.create(h5p.OBJECT_COPY)
        self._copy_properties.set_copy_object(_WITHOUT_ATTRIBUTES)

    def run(self) -> None:
        """Copies."""
        old, new = h5g.open(self.source.id, b"/"), h5g.open(self.target.id, b"/")
        self.addresses[self._address(old)] = address(new)
        self.describe(old, new, b"/")
        self._waiting = deque([(old, new, b"")])
        while self._waiting:
            self.group(*self._waiting.popleft())
        self.references.complete()
        for path, attribute, copy in self.late:
            before = self.references.dead
            if self.ready(path, attribute):
                with self._guarded(path, attribute):
                    copy()
            if self.references.dead > before:
                self.empty.append((path, attribute, self.references.dead - before))
        self.times = {new: self._old_times[old] for old, new in self.addresses.items() if self._old_times.get(old)}

    def finish(self, path: str) -> None:
        """Changes what HDF5 wrote of the clock and of its memory into the new file, which is closed."""
        restore(path, self.source.userblock_size, self.times)
        self.references.remains.finish(path, self.source.userblock_size)

    def _address(self, old: Any) -> int:
        """The address of an object of the old file, whose times are noted."""
        place, self._old_times[place] = address_and_times(old)
        return place

    # --- for `recover`

    def ready(self, path: bytes, attribute: Optional[bytes] = None) -> bool:
        """Whether an object or an attribute is copied."""
        return True

    def failed(self, path: bytes, attribute: Optional[bytes], why: BaseException) -> None:
        """Told of what cannot be copied, inside of the handler of `why`."""
        if of_the_system(why):
            raise why
        what = path.decode(errors="replace")
        if attribute is not None:
            what = f"the attribute {attribute.decode(errors='replace')} of {what}"
        raise Problem(f"{self.source.filename}: {what} cannot be copied: {self.why(path, why)}. Nothing was "
                      f"written") from why

    def why(self, path: bytes, why: BaseException) -> str:
        """Why an object cannot be copied: the filter that is not installed, else HDF5's own reason."""
        with contextlib.suppress(*UNREADABLE):
            found = h5o.open(self.source.id, path)
            if isinstance(found, h5d.DatasetID) and (absent := absent_filters(found)):
                return (f"it cannot be read without HDF5 filter {', '.join(map(str, absent))}: pip install "
                        f"hdf5plugin")
        return reason(why)

    @contextlib.contextmanager
    def _guarded(self, path: bytes, attribute: Optional[bytes] = None) -> Iterator[None]:
        try:
            yield
        except UNREADABLE as why:
            self.failed(path, attribute, why)

    # --- groups and links

    def group(self, old: h5g.GroupID, new: h5g.GroupID, path: bytes) -> None:
        """Copies the links of a group."""
        for name, kind, charset in links_of(old):
            full = path + b"/" + name
            if self.ready(full):
                with self._guarded(full):
                    self.link(Link(old, new, name, link_properties(charset)), kind, full)

    def link(self, link: Link, kind: int, path: bytes) -> None:
        """Copies a link, and the object that it leads to where that is met for the first time."""
        old, new, name, properties = link
        if kind == h5l.TYPE_SOFT:
            calls.H5Lcreate_soft(old.links.get_val(name), new, name, properties, DEFAULT)
        elif kind == h5l.TYPE_EXTERNAL:
            calls.H5Lcreate_external(*old.links.get_val(name), new, name, properties, DEFAULT)
        elif kind != h5l.TYPE_HARD:
            copy_own_link(old, new, name, kind, properties)
        else:
            self._hard_link(link, path)

    def _hard_link(self, link: Link, path: bytes) -> None:
        found = h5o.open(link.old, link.name)
        place = self._address(found)
        made = self._unlinked.pop(place, None)
        if made is not None and isinstance(found, h5g.GroupID):
            self._waiting.append((found, made, path))
        if made is None and isinstance(found, h5t.TypeID):
            made = self.type(found, path)
        elif made is None and place in self.addresses:
            made = at_address(self.target.id, self.addresses[place])
        if made is not None:
            calls.H5Olink(made, link.new, link.name, link.properties, DEFAULT)
            return
        try:
            self._object(found, place, link, path)
        except UNREADABLE:
            self.addresses.pop(place, None)
            raise

    def _object(self, found: Any, place: int, link: Optional[Link], path: bytes) -> Any:
        """Makes a group or a dataset, without a link where there is none yet."""
        self._bounds(found)
        if isinstance(found, h5d.DatasetID):
            return self.dataset(found, place, link, path)
        properties = like_group(found)
        made = wrapped(calls.H5Gcreate_anon(self.target.id, properties, DEFAULT) if link is None else
                       calls.H5Gcreate2(link.new, link.name, link.properties, properties, DEFAULT))
        self.addresses[place] = address(made)
        if link is not None:
            self._waiting.append((found, made, path))
        self.describe(found, made, path)
        return made

    def _bounds(self, item: Any) -> None:
        """Has the next object made in the format of an old one.

        In no newer format, so that whoever could read the old one reads it; in no older one, so that it fits: more than
        64 KiB of attributes, and the newer lists of chunks.
        """
        low = h5f.LIBVER_EARLIEST
        if header(item).version > 1:
            low = h5f.LIBVER_V110 if isinstance(item, h5d.DatasetID) and _is_of_110(item) else h5f.LIBVER_V18
        if low != self._low:
            calls.H5Fset_libver_bounds(self.target.id, low, h5f.LIBVER_LATEST)
            self._low = low

    # --- types, comments and attributes

    def type(self, kind: h5t.TypeID, path: bytes) -> h5t.TypeID:
        """The same type for the new file; a named one is the same named one."""
        if not kind.committed():
            return kind
        place = self._address(kind)
        if place not in self._types:
            self._bounds(kind)
            made = kind.copy()
            properties = creation_list(kind)
            calls.H5Tcommit_anon(self.target.id, made, properties, DEFAULT)
            self._types[place], self.addresses[place] = made, address(made)
            self.describe(kind, made, path)
        return self._types[place]

    def describe(self, old: Any, new: Any, path: bytes) -> None:
        """Gives an object the comment and the attributes of another."""
        if text := comment(old):
            calls.H5Oset_comment(new, text)
        self.attributes(old, new, path)

    def attributes(self, old: Any, new: Any, path: bytes) -> None:
        """Copies all attributes of an object."""
        for name, charset in attributes_of(old):
            if self.ready(path, name):
                try:  # `_guarded` takes longer, and attributes are many
                    self._attribute(old, new, name, charset, path)
                except UNREADABLE as why:
                    self.failed(path, name, why)

    def _attribute(self, old: Any, new: Any, name: bytes, charset: int, path: bytes) -> None:
        named = attribute_properties(charset)
        if not self._shares and copy_plain(old, new, name, named):
            return
        attribute = h5a.open(old, name)
        kind, space = attribute.get_type(), self._space_of(attribute)
        held = places_in(kind)
        made = h5a.create(new, name, self.type(kind, path), space) if named == DEFAULT else wrapped(
            calls.H5Acreate2(new, name, self.type(kind, path), space, named, DEFAULT))
        count = space.get_simple_extent_npoints()  # 0 also for a space without extents

        def copy() -> None:
            try:
                with elements(kind, held, count) as (memory, rows):
                    data = rows.ctypes.data
                    calls.H5Aread(attribute, memory, data)
                    self.references.exchange(rows, held)
                    calls.H5Awrite(made, memory, data)
                    self.references.remains.clear(made, held, count)
            except UNREADABLE:
                h5a.delete(new, name)
                raise

        if holds_references(held) and count:
            self.late.append((path, name, copy))
        elif count:
            copy()

    # --- datasets

    def dataset(self, old: h5d.DatasetID, place: int, link: Optional[Link], path: bytes) -> h5d.DatasetID:
        """Copies a dataset."""
        kind, anew = old.get_type(), self.plan(old)
        held = places_in(kind)
        if anew is None and not held and link is not None and not kind.committed() and self.is_copied_well(old):
            calls.H5Ocopy(link.old, link.name, link.new, link.name, self._copy_properties, link.properties)
            made = h5o.open(link.new, link.name)
            self.addresses[place] = address(made)
            self.attributes(old, made, path)  # its comment is there
            return made
        made = self.create(old, kind, held, anew, link, path)
        self.addresses[place] = address(made)
        self.describe(old, made, path)
        if anew is not None:
            self.write(h5py.Dataset(old), h5py.Dataset(made))
        elif holds_references(held):
            self.late.append((path, None, lambda: copy_values(old, made, held, self.references)))
        else:
            copy_values(old, made, held)
        return made

    def is_copied_well(self, old: h5d.DatasetID) -> bool:
        """Whether H5Ocopy copies a dataset of a plain type well.

        It writes the names of filters into messages of headers of version 1 that have no room for them, as HDF5 before
        1.6 has made them: nobody can open the copy. It has no names for filters that are not installed.
        """
        filtered = self._low == h5f.LIBVER_EARLIEST and old.get_create_plist().get_nfilters()
        return not filtered or bool(absent_filters(old))

    def create(self, old: h5d.DatasetID, kind: h5t.TypeID, held: tuple[Place, ...], anew: Optional[Anew],
               link: Optional[Link], path: bytes) -> h5d.DatasetID:
        """Makes a dataset without values, of the type and the properties of another one."""
        properties = old.get_create_plist()
        if anew is not None:
            properties = like_dataset(properties, kind, anew)
        elif holds_references(held) and properties.fill_value_defined() == h5d.FILL_VALUE_USER_DEFINED:
            self._fill_value(properties, kind, held, path)
        low = self._low
        of = anew.kind if anew is not None and anew.kind is not None else self.type(kind, path)
        if low != self._low:
            self._bounds(old)
        space = self._space_of(old)
        if link is None:
            return wrapped(calls.H5Dcreate_anon(self.target.id, of, space, properties, DEFAULT))
        return wrapped(calls.H5Dcreate2(link.new, link.name, of, space, link.properties, properties, DEFAULT))

    def _fill_value(self, properties: h5p.PropDCID, kind: h5t.TypeID, held: tuple[Place, ...], path: bytes) -> None:
        """Has a fill value refer to objects of the new file, which are made now where their link's turn has not
        come."""
        with elements(kind, held, 1) as (memory, rows):
            calls.H5Pget_fill_value(properties, memory, rows.ctypes.data)
            wanted = self.references.targets(rows, held)
            for place in wanted - self.addresses.keys():
                with contextlib.suppress(*UNREADABLE):  # a reference that leads nowhere
                    found = at_address(self.source.id, place)
                    self._address(found)
                    if isinstance(found, h5t.TypeID):
                        self.type(found, path)
                    else:
                        self._unlinked[place] = self._object(found, place, None, path)
            known = {place: self.addresses[place] for place in wanted & self.addresses.keys()}
            some = References(self.source.id, self.target.id, known)
            some.complete()
            some.exchange(rows, held)
            self.references.dead += some.dead
            calls.H5Pset_fill_value(properties, memory, rows.ctypes.data)


def absent_filters(dataset: h5d.DatasetID) -> list[int]:
    """Numbers of a dataset's filters that are not installed."""
    filters = dataset.get_create_plist()
    return [n for n in (filters.get_filter(k)[0] for k in range(filters.get_nfilters()))
            if not h5py.h5z.filter_avail(n)]


def _is_of_110(dataset: h5d.DatasetID) -> bool:
    """Whether HDF5 before 1.10 could not read a dataset for its layout."""
    layout, kind = dataset.get_create_plist().get_layout(), ctypes.c_int()
    if layout != h5d.CHUNKED:
        return bool(layout == h5d.VIRTUAL)
    if not has("H5Dget_chunk_index_type"):
        return False
    calls.H5Dget_chunk_index_type(dataset, ctypes.byref(kind))
    return kind.value > 0  # 0: a version 1 B-tree
