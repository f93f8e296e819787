# SPDX-License-Identifier: MIT OR Apache-2.0
"""Whether a file is the copy of another in all that HDF5 can say of both, and not in its values alone.

Both files are walked at once, breadth first from their root groups, through hard links of the same names. Each pair of
objects that is met adds a row to a table of addresses, old and new, in which each address may stand once: so hard
links, cycles and shared types lead to the same object in both files, or the walk says where they do not.

    file         user block, sizes of addresses, ranks of trees, shared messages, strategy of free space, superblock
    links        names, order, kind, character set; the bytes of soft, external and user-defined ones
    objects      group, dataset or named type; version of the header, number of hard links, comment
    groups       what they track, and how they store links and attributes
    types        equal for HDF5 (byte order, padding, character set, names and places of members, tags);
                 named or not, and by which name
    extents      kind, lengths, longest lengths
    datasets     layout, chunks, filters, external files, sources of virtual ones; when space is allocated and filled
    fill values  undefined, default or declared; their bytes
    attributes   names, order, character set, type, extents, bytes
    values       stored chunks byte by byte, with their masks; else elements as `elements.py` has them. Where neither
                 file has stored anything, there is nothing but the fill value, and nothing is read
    references   wherever they lie, by the object that they lead to and the elements that they select; looked at when
                 the table is complete. A reference that leads nowhere may be any other that does

What `allowed.py` allows does not count, and values with a bound are left to `compare.py`. Not compared: times of
objects, places in the file, contents of external files and of sources of virtual datasets, and gaps inside of compounds
where stored chunks are not compared as they are.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections import deque
from typing import Any, Callable, Optional

import h5py
import numpy as np
from h5py import h5a, h5d, h5g, h5l, h5o, h5s, h5t
from h5py._objects import phil

from .allowed import NOTHING, Allowed, Given, allowed, declares_no_fill
from .common import Problem, open_file
from .properties import DECLARED, fill_state, of_datasets, of_files, of_groups, same_fill
from .elements import Layout, differing, elements, layout_of, shown_bytes, types_equal
from .hdf5 import about, calls, comment, filters, header, link_value
from .leads import Table
from .stored import Pair, Values

HISTORY = b"history"
_UNREADABLE = (OSError, RuntimeError, KeyError, ValueError, TypeError, MemoryError, OverflowError)
_LINKS = {h5l.TYPE_HARD: "hard", h5l.TYPE_SOFT: "soft", h5l.TYPE_EXTERNAL: "external"}
_CHARSETS = {h5t.CSET_ASCII: "ASCII", h5t.CSET_UTF8: "UTF-8"}
_SHOWN = 60


class Structure:
    """Compares an original and its copy, both open for reading; with `values` their values, too.

    `given` is asked for the bound that the user names for a dataset by its name, or None.
    """

    def __init__(self, a: h5py.File, b: h5py.File, given: Optional[Given] = None, values: bool = True) -> None:
        self.a, self.b, self.given, self.values = a, b, given, values
        self.differences: list[str] = []
        """Sentences on what differs and may not, each with a path first."""
        self.unread: list[str] = []
        """Sentences on what could not be compared."""
        self.judged: list[tuple[h5py.Dataset, h5py.Dataset]] = []
        """Datasets whose values have a bound: they are not compared here, but all else of them is."""
        self._table = Table(a, b)
        self._later: list[tuple[bytes, Callable[[], None]]] = []
        """What needs all of the table."""
        self._lossy = False

    def run(self) -> None:
        """Compares."""
        with phil, contextlib.closing(Values(self.a, self.b)) as self._stored:
            for what, was, became in of_files(self.a, self.b):
                self._say(b"/", what, was, became)
            roots = [h5g.open(f.id, b"/") for f in (self.a, self.b)]
            self._try(b"/", lambda: self._object(roots[0], roots[1], b"/"))
            waiting = deque([(roots[0], roots[1], b"")])
            while waiting:
                self._try(waiting[0][2] or b"/", lambda: self._group(*waiting.popleft(), waiting))
            for path, look in self._later:
                self._try(path, look)

    def _say(self, path: bytes, what: str, was: Any, became: Any) -> None:
        self.differences.append(f"{_text(path)}: {what}: {_shown(was)} in ORIGINAL, {_shown(became)} in COMPRESSED")

    def _note(self, path: bytes, sentence: str) -> None:
        self.differences.append(f"{_text(path)}: {sentence}")

    def _try(self, path: bytes, look: Callable[[], Any]) -> None:
        try:
            look()
        except (*_UNREADABLE, Problem) as why:
            self.unread.append(f"{_text(path)} cannot be compared: {' '.join(str(why).split())}")

    # --- links and objects

    def _group(self, old: h5g.GroupID, new: h5g.GroupID, path: bytes, waiting: deque[Any]) -> None:
        """All that links of a group lead to."""
        for name in self._links(old, new, path):
            here = path + b"/" + name
            self._try(here, lambda: self._member(h5o.open(old, name), h5o.open(new, name), here, waiting))

    def _member(self, old: Any, new: Any, path: bytes, waiting: deque[Any]) -> None:
        if self._object(old, new, path) and isinstance(old, h5g.GroupID):
            waiting.append((old, new, path))

    def _links(self, old: h5g.GroupID, new: h5g.GroupID, path: bytes) -> list[bytes]:
        """Compares the links of a group; names of those that are hard in both files."""
        x, ordered = _links_of(old)
        y, _ = _links_of(new)
        if list(x.items()) == list(y.items()):
            if all(kind == h5l.TYPE_HARD for kind, _ in x.values()):
                return list(x)
        else:
            self._names(path or b"/", "link", list(x), list(y), ordered)
        hard = []
        for name in [n for n in x if n in y]:
            here, (kind, charset), (other, its) = path + b"/" + name, x[name], y[name]
            if kind != other:
                self._say(here, "kind of link", _LINKS.get(kind, kind), _LINKS.get(other, other))
            elif kind == h5l.TYPE_HARD:
                hard.append(name)
            else:
                was, became = (link_value(g, name, kind).rstrip(b"\0") for g in (old, new))
                if was != became:
                    self._say(here, f"what the {_LINKS.get(kind, 'user-defined')} link says", was, became)
            if charset != its:
                self._say(here, "character set of the link's name", _CHARSETS.get(charset), _CHARSETS.get(its))
        return hard

    def _names(self, path: bytes, what: str, x: list[bytes], y: list[bytes], ordered: bool) -> None:
        """Compares names of links or attributes, and their order where it is kept."""
        before, after = set(x), set(y)
        for name in x:
            if name not in after:
                self._note(path, f"{what} {_text(name)} is in ORIGINAL alone")
        for name in y:
            if name not in before:
                self._note(path, f"{what} {_text(name)} is in COMPRESSED alone")
        if ordered:
            common = [n for n in x if n in after], [n for n in y if n in before]
            if common[0] != common[1]:
                k = next(k for k, (m, n) in enumerate(zip(*common)) if m != n)
                self._say(path, f"order of {what}s: number {k}", *(_text(each[k]) for each in common))

    def _object(self, old: Any, new: Any, path: bytes) -> bool:
        """Compares two objects. Whether both were met for the first time."""
        (place, links, count), (its_place, its_links, its_count) = about(old), about(new)
        first = self._table.pair(place, its_place)
        if first is None:
            self._note(path, "leads to another object in COMPRESSED than other links or types to the same object do")
        if not first:
            return False
        kinds = _kind(old), _kind(new)
        if kinds[0] != kinds[1]:
            self._say(path, "kind of object", *kinds)
            return False
        if links != its_links and kinds[0] != "named type":  # its users are compared
            self._say(path, "hard links to it", links, its_links)
        for what, ask in (("comment", comment), ("version of its header", lambda item: header(item).version)):
            was, became = ask(old), ask(new)
            # Whoever reads superblock 2 reads headers of version 2; HDF5 does not always let a root keep version 1.
            newer = path == b"/" and (was, became) == (1, 2) and self.b.id.get_create_plist().get_version()[0] > 1
            if was != became and not newer:
                self._say(path, what, was, became)
        free = NOTHING
        if isinstance(old, h5g.GroupID):
            for each in of_groups(old.get_create_plist(), new.get_create_plist()):
                self._say(path, *each)
        elif isinstance(old, h5d.DatasetID):
            free = self._dataset(old, new, path)
        else:
            self._named_type(old, new, path)
        if path == b"/":
            self._later.append((path, lambda: self._root(old, new)))
        elif count or its_count:
            self._attributes(old, new, path, free.attribute)
        return True

    # --- types, extents, attributes

    def _named_type(self, old: h5t.TypeID, new: h5t.TypeID, path: bytes) -> None:
        if not types_equal(old, new):
            self._say(path, "type", _type_text(old), _type_text(new))
        orders = [_type_properties(t).get_attr_creation_order() for t in (old, new)]
        if orders[0] != orders[1]:
            self._say(path, "order of attributes", *orders)

    def _type(self, old: h5t.TypeID, new: h5t.TypeID, path: bytes) -> bool:
        """Compares the types of datasets or attributes; whether they are equal."""
        equal = types_equal(old, new)
        named = old.committed(), new.committed()
        if not equal:
            self._say(path, "type", _type_text(old), _type_text(new))
        elif named[0] != named[1]:
            self._say(path, "type", *("named" if each else "not named" for each in named))
        elif named[0]:
            self._object(old, new, path + b" (its named type)")
        return equal

    def _extents(self, old: h5s.SpaceID, new: h5s.SpaceID, path: bytes) -> bool:
        if calls.H5Sextent_equal(old, new):
            return True
        self._say(path, "extents", _extents_text(old), _extents_text(new))
        return False

    def _attributes(self, old: Any, new: Any, path: bytes, free: Callable[[bytes], bool]) -> None:
        """Compares the attributes of an object but those that are free."""
        x, ordered = _attributes_of(old)
        y, _ = _attributes_of(new)
        x, y = ({name: charset for name, charset in each.items() if not free(name)} for each in (x, y))
        if list(x) != list(y):
            self._names(path, "attribute", list(x), list(y), ordered)
        for name, charset in x.items():
            if name not in y:
                continue
            here = path + b"@" + name
            if charset != y[name]:
                self._say(here, "character set of the name", _CHARSETS.get(charset), _CHARSETS.get(y[name]))
            self._try(here, lambda: self._attribute(h5a.open(old, name), h5a.open(new, name), here))

    def _attribute(self, old: h5a.AttrID, new: h5a.AttrID, path: bytes) -> None:
        kind, space = old.get_type(), old.get_space()
        if not self._type(kind, new.get_type(), path) or not self._extents(space, new.get_space(), path):
            return
        layout, count = layout_of(kind), space.get_simple_extent_npoints()

        def look() -> None:
            with elements(_attribute_reader(old), kind, layout, count) as x, \
                    elements(_attribute_reader(new), kind, layout, count) as y:
                wrong = differing(layout, x, y, self._table)
                if wrong.any():
                    k = int(np.argmax(wrong))
                    self._note(path, f"value{'' if count == 1 else f' {k}'}: {shown_bytes(x[k], y[k], layout)}")

        if layout.refers:
            self._later.append((path, look))
        else:
            look()

    def _root(self, old: h5g.GroupID, new: h5g.GroupID) -> None:
        """Attributes of the root group: where a loss was asked, `history` may have grown at its beginning."""
        free = self._lossy and self._history_grew(old, new)
        self._attributes(old, new, b"/", lambda name: free and name == HISTORY)

    def _history_grew(self, old: h5g.GroupID, new: h5g.GroupID) -> bool:
        if not h5a.exists(new, HISTORY):
            return False
        after = h5a.open(new, HISTORY)
        if not h5a.exists(old, HISTORY):
            return isinstance(after.get_type(), h5t.TypeStringID)
        before = h5a.open(old, HISTORY)
        kinds = before.get_type(), after.get_type()
        if not all(isinstance(kind, h5t.TypeStringID) for kind in kinds):
            return False
        if kinds[0].is_variable_str() != kinds[1].is_variable_str():
            return False
        return _characters(after).endswith(b"\n" + _characters(before))

    # --- datasets

    def _dataset(self, old: h5d.DatasetID, new: h5d.DatasetID, path: bytes) -> Allowed:
        """Compares two datasets; what may differ."""
        pair = Pair.of(old, new)
        kind, its_kind = old.get_type(), new.get_type()
        numbers = [pair.after.get_filter(k)[0] for k in range(pair.after.get_nfilters())]
        free = allowed(old, new, numbers, self.given)
        self._lossy |= free.lossy
        equal = free.unpacked or self._type(kind, its_kind, path)
        equal &= self._extents(old.get_space(), new.get_space(), path)
        if not equal:
            return free
        layout = layout_of(kind)
        for each in of_datasets(pair.before, pair.after, free.storage):
            self._say(path, *each)

        def look() -> None:
            same = free.unpacked or self._fill(pair, path, kind, layout, free)
            if self.values:
                self._values(pair, path, kind, layout, free, same)

        if layout.refers:
            self._later.append((path, look))
        else:
            look()
        return free

    def _fill(self, pair: Pair, path: bytes, kind: h5t.TypeID, layout: Layout, free: Allowed) -> bool:
        """Compares fill values; whether they are the same."""
        if same_fill(pair.before, pair.after, kind, layout, self._table):
            return True
        states = fill_state(pair.before), fill_state(pair.after)
        if free.storage and states[1] == DECLARED and declares_no_fill(pair.before, kind):
            return False
        if states[0] != states[1]:
            self._say(path, "fill value", *states)
        else:
            self._note(path, "fill value: its bytes are others in COMPRESSED")
        return False

    def _values(self, pair: Pair, path: bytes, kind: h5t.TypeID, layout: Layout, free: Allowed,
                same_fill: bool) -> None:
        if not pair.old.get_space().get_simple_extent_npoints() or all(pair.elsewhere):
            return
        if (same_fill or not free.storage) and not free.unpacked and pair.unwritten:
            return
        if _same_chunks(pair):
            said, lists = self._stored.chunks(pair, not layout.parts)
            if said is None and lists is not None and not layout.parts:
                said = self._stored.bytes_of_chunks(lists)
                if said is None:
                    return
            if said is not None and not free.storage:
                self._note(path, said)
                return
        if free.judged:
            self.judged.append((h5py.Dataset(pair.old), h5py.Dataset(pair.new)))
            return
        said = self._stored.elements(pair, kind, layout, self._table, free.storage and not same_fill)
        if said is not None:
            self._note(path, said)


# --- what HDF5 answers -----------------------------------------------------------------------------------------------


def _links_of(group: h5g.GroupID) -> tuple[dict[bytes, tuple[int, int]], bool]:
    """Kind and character set of each link by its name, in their order; whether that is the order they were made in."""
    ordered = bool(group.get_create_plist().get_link_creation_order() & h5py.h5p.CRT_ORDER_TRACKED)
    found: dict[bytes, tuple[int, int]] = {}

    def note(name: bytes, info: Any) -> None:
        found[name] = info.type, info.cset

    if group.get_num_objs():  # h5py fails on none
        by = h5py.h5.INDEX_CRT_ORDER if ordered else h5py.h5.INDEX_NAME
        group.links.iterate(note, info=True, idx_type=by)
    return found, ordered


def _attributes_of(item: Any) -> tuple[dict[bytes, int], bool]:
    """Character set of the name of each attribute by its name, in their order; whether that is the order they were made
    in."""
    properties = _type_properties(item) if isinstance(item, h5t.TypeID) else item.get_create_plist()
    ordered = bool(properties.get_attr_creation_order() & h5py.h5p.CRT_ORDER_TRACKED)
    found: dict[bytes, int] = {}

    def note(name: bytes, info: Any) -> None:
        found[name] = info.cset

    if h5a.get_num_attrs(item):
        by = h5py.h5.INDEX_CRT_ORDER if ordered else h5py.h5.INDEX_NAME
        h5a.iterate(item, note, index_type=by, info=True)
    return found, ordered


def _type_properties(kind: h5t.TypeID) -> h5py.h5p.PropOCID:
    return h5py.h5p.PropOCID(calls.H5Tget_create_plist(kind))


def _attribute_reader(attribute: h5a.AttrID) -> Callable[[int, int], int]:
    return lambda kind, at: calls.H5Aread(attribute, kind, at)


def _characters(attribute: h5a.AttrID) -> bytes:
    """The text of an attribute, without what pads it; texts of several elements in lines."""
    kind, found = attribute.get_type(), []
    layout, count = layout_of(kind), attribute.get_space().get_simple_extent_npoints()
    with elements(_attribute_reader(attribute), kind, layout, count) as rows:
        for row in rows:
            if not layout.parts:
                found.append(row.tobytes().rstrip(b" " if kind.get_strpad() == h5t.STR_SPACEPAD else b"\0"))
            elif at := int(row.view(f"u{len(row)}")[0]):
                found.append(ctypes.string_at(at))
    return b"\n".join(found)


def differences(a: str, b: str, given: Optional[Given] = None, values: bool = True) -> tuple[list[str], list[str]]:
    """Sentences on what two files differ in, but for values that have a bound, and on what could not be compared."""
    with open_file(a, rdcc_nbytes=0) as first, open_file(b, rdcc_nbytes=0) as second:
        found = Structure(first, second, given, values)
        found.run()
        found.judged.clear()
        return found.differences, found.unread


def _same_chunks(pair: Pair) -> bool:
    """Whether both datasets have chunks, of the same shape and with the same filters."""
    if any(p.get_layout() != h5d.CHUNKED for p in pair[2:]):
        return False
    return all(ask(pair.before) == ask(pair.after) for ask in (lambda p: p.get_chunk(), filters))


# --- in words --------------------------------------------------------------------------------------------------------


def _text(name: bytes) -> str:
    return name.decode(errors="backslashreplace")


def _shown(value: Any) -> str:
    text = _text(value) if isinstance(value, bytes) else str(value)
    text = repr(text) if isinstance(value, bytes) else text
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


def _kind(item: Any) -> str:
    if isinstance(item, h5g.GroupID):
        return "group"
    return "dataset" if isinstance(item, h5d.DatasetID) else "named type"


def _type_text(kind: h5t.TypeID) -> str:
    """A type in a few words. What two types that differ have in common may hide the difference."""
    try:
        name = str(kind.dtype)
    except (TypeError, ValueError, OSError):
        name = ""
    return f"{type(kind).__name__[4:-2].lower()} of {kind.get_size()} bytes{f' ({name})' if name else ''}"


def _extents_text(space: h5s.SpaceID) -> str:
    if space.get_simple_extent_type() != h5s.SIMPLE:
        return "none" if space.get_simple_extent_type() == h5s.NULL else "scalar"
    most = ["unlimited" if n == h5s.UNLIMITED else n for n in space.get_simple_extent_dims(True)]
    return f"{list(space.get_simple_extent_dims())} of at most {most}"
