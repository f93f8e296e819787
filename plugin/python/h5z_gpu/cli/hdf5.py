# SPDX-License-Identifier: MIT OR Apache-2.0
"""Functions of HDF5 that h5py lacks, or calls in a way that loses something, and what is known of an open object.

    calls.H5Acreate2(group, b"name", kind, space, 0, 0)

calls a function of the HDF5 library that h5py has loaded, by its name in C. An argument may be an object of h5py, which
is held until the call is over: h5py closes an identifier as soon as nobody holds its object. A failure raises OSError
with HDF5's own reason.
"""
from __future__ import annotations

import ctypes
import functools
import sys
from typing import Any, Callable

import h5py
from h5py import h5a, h5g, h5i, h5l, h5o, h5p, h5s, h5t
from h5py._objects import ObjectID, phil

from .. import index
from .common import Problem

DEFAULT = 0  # H5P_DEFAULT, and H5S_ALL
_BASIC, _TIME, _ATTRIBUTES, _HEADER = 1, 2, 4, 8  # H5O_INFO_BASIC, _TIME, _NUM_ATTRS, H5O_NATIVE_INFO_HDR
_WORDS = 256  # of one filter, that HDF5 hands out at most
_UTF8 = 1  # H5T_CSET_UTF8


class _Calls:
    """HDF5's functions by their names; those that this library lacks raise AttributeError."""

    def __getattr__(self, name: str) -> Callable[..., int]:
        library = index.hdf5()
        if library is None:
            raise Problem(f"h5py has HDF5 {h5py.version.hdf5_version}, and 1.10.3 or newer is needed: "
                          f"pip install --upgrade h5py")
        function = getattr(library, name)

        def call(*arguments: Any) -> int:
            with phil:
                answer: int = function(*[a.id if isinstance(a, ObjectID) else a for a in arguments])
                if answer < 0:
                    raise OSError(f"{name}: {_innermost_reason()}")
            return answer

        setattr(self, name, call)
        return call


calls = _Calls()


class _Error(ctypes.Structure):
    """H5E_error2_t."""

    _fields_ = [("ids", ctypes.c_int64 * 3), ("line", ctypes.c_uint),
                *((name, ctypes.c_char_p) for name in ("function", "file", "reason"))]


_Walk = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint, ctypes.POINTER(_Error), ctypes.c_void_p)


def _innermost_reason() -> str:
    """What HDF5 says of the failure that came first. Its sentences above that say which call failed by it."""
    found: list[str] = []

    def note(_: int, error: Any, __: Any) -> int:
        found.append((error.contents.reason or b"").decode(errors="replace"))
        return 0

    library = index.hdf5()
    assert library is not None
    library.H5Ewalk2(0, 0, ctypes.cast(_Walk(note), ctypes.c_void_p), None)
    return found[0] if found else "HDF5 gives no reason"


# --- objects ---------------------------------------------------------------------------------------------------------


class _Info(ctypes.Structure):
    """H5O_info2_t."""

    _fields_ = [("file", ctypes.c_ulong), ("token", ctypes.c_uint64 * 2), ("type", ctypes.c_int),
                ("links", ctypes.c_uint), ("times", ctypes.c_int64 * 4), ("attributes", ctypes.c_uint64)]


class Header(ctypes.Structure):
    """The part of H5O_native_info_t that says what an object's header is."""

    _fields_ = [("version", ctypes.c_uint), ("messages", ctypes.c_uint), ("chunks", ctypes.c_uint),
                ("flags", ctypes.c_uint), ("space", ctypes.c_uint64 * 4), ("present", ctypes.c_uint64),
                ("more", ctypes.c_uint64 * 8)]


@functools.cache
def has(name: str) -> bool:
    """Whether h5py's HDF5 has a function."""
    return hasattr(index.hdf5(), name)


def wrapped(identifier: int) -> Any:
    """An identifier as an object of h5py, which closes it."""
    return h5i.wrap_identifier(identifier)


def address(item: Any) -> int:
    """Where an object lies in its file: the same for all of its names.

    h5py's `get_info` would ask the index of each chunked dataset for its size as well, which may be slow or damaged.
    """
    if not has("H5Oget_info3"):  # HDF5 1.10
        return int(h5o.get_info(item).addr)
    info = _Info()
    calls.H5Oget_info3(item, ctypes.byref(info), _BASIC)
    return _little(info.token[0])


def address_and_times(item: Any) -> tuple[int, tuple[int, ...]]:
    """As `address`, and when the object was read, modified, changed and made, as far as its header says, else 0; () of
    HDF5 1.10."""
    if not has("H5Oget_info3"):
        return address(item), ()
    info = _Info()
    calls.H5Oget_info3(item, ctypes.byref(info), _BASIC | _TIME)
    return _little(info.token[0]), tuple(info.times)


def about(item: Any) -> tuple[int, int, int]:
    """As `address`, and how many hard links lead to an object, and how many attributes it has."""
    if not has("H5Oget_info3"):
        old = h5o.get_info(item)
        return int(old.addr), int(old.rc), int(h5a.get_num_attrs(item))
    info = _Info()
    calls.H5Oget_info3(item, ctypes.byref(info), _BASIC | _ATTRIBUTES)
    return _little(info.token[0]), info.links, info.attributes


def _little(number: int) -> int:
    """An address, which a token holds in little endian, from the same bytes as a number of this machine."""
    return number if sys.byteorder == "little" else int.from_bytes(number.to_bytes(8, "big"), "little")


def header(item: Any) -> Header:
    """What an object's header is. Of HDF5 1.10 only the version is known."""
    found = Header()
    if has("H5Oget_native_info"):
        calls.H5Oget_native_info(item, ctypes.byref(found), _HEADER)
    else:
        found.version = h5o.get_info(item).hdr.version
    return found


def superblock(file: h5py.h5f.FileID) -> int:
    """Version of a file's superblock. The creation list of a new file says what it was made with."""
    info = (ctypes.c_uint * 64)()  # H5F_info2_t, of which it is the first
    calls.H5Fget_info2(file, ctypes.byref(info))
    return info[0]


def at_address(file: h5py.h5f.FileID, place: int) -> Any:
    """The object at an address of a file."""
    return wrapped(calls.H5Oopen_by_addr(file, place))


def comment(item: Any) -> bytes:
    """An object's comment, b"" where it has none. h5py's `get_comment` gives bytes of its memory then."""
    length = calls.H5Oget_comment(item, None, 0)
    if length <= 0:
        return b""
    text = ctypes.create_string_buffer(length + 1)
    calls.H5Oget_comment(item, text, length + 1)
    return text.value


def creation_list(item: Any) -> Any:
    """The creation properties of a group, dataset or named type."""
    if isinstance(item, h5t.TypeID):
        return h5p.PropInstanceID(calls.H5Tget_create_plist(item))
    return item.get_create_plist()


def filters(properties: Any) -> list[tuple[int, int, tuple[int, ...]]]:
    """Number, flags and words of each filter of a creation list of datasets or groups."""
    found, words = list[tuple[int, int, tuple[int, ...]]](), (ctypes.c_uint * _WORDS)()
    for place in range(calls.H5Pget_nfilters(properties)):
        flags, count = ctypes.c_uint(), ctypes.c_size_t(_WORDS)
        number = calls.H5Pget_filter2(properties, place, ctypes.byref(flags), ctypes.byref(count), words, 0, None, None)
        found.append((number, flags.value, (*words[: count.value],)))
    return found


def reclaim(memory: Any, space: Any, data: int | ctypes.Array[Any]) -> None:
    """Gives back what HDF5 has allocated for elements that were read."""
    name = "H5Treclaim" if has("H5Treclaim") else "H5Dvlen_reclaim"
    getattr(calls, name)(memory, space, DEFAULT, data)


def shares_messages(file: h5py.h5f.FileID) -> bool:
    """Whether a file shares spaces, types and the like between objects (H5Pset_shared_mesg_nindexes)."""
    count = ctypes.c_uint()
    calls.H5Pget_shared_mesg_nindexes(file.get_create_plist(), ctypes.byref(count))
    return count.value > 0


def own_space(item: Any) -> h5s.SpaceID:
    """The extents of a dataset or an attribute of a file that shares messages, for one of another file.

    A space that is read remembers where its file shares it. An object that was made with such a space in another file
    cannot be opened again.
    """
    return h5s.decode(item.get_space().encode())


# --- names in their order --------------------------------------------------------------------------------------------


def links_of(group: h5g.GroupID) -> list[tuple[bytes, int, int]]:
    """Name, kind and character set of each link, in the order in which they were made or, where the group has not kept
    it, of names."""
    found: list[tuple[bytes, int, int]] = []
    if group.get_num_objs():  # iterating over none fails in h5py
        tracked = group.get_create_plist().get_link_creation_order() & h5p.CRT_ORDER_TRACKED
        group.links.iterate(lambda name, info: found.append((name, info.type, info.cset)), info=True,
                            idx_type=h5py.h5.INDEX_CRT_ORDER if tracked else h5py.h5.INDEX_NAME)
    return found


def attributes_of(item: Any) -> list[tuple[bytes, int]]:
    """Name and character set of each attribute, in the same order."""
    found: list[tuple[bytes, int]] = []
    if h5a.get_num_attrs(item):
        order = ctypes.c_uint()
        if header(item).version > 1:  # older headers track no order
            calls.H5Pget_attr_creation_order(creation_list(item), ctypes.byref(order))
        by = h5py.h5.INDEX_CRT_ORDER if order.value & h5p.CRT_ORDER_TRACKED else h5py.h5.INDEX_NAME
        h5a.iterate(item, lambda name, info: found.append((name, info.cset)), info=True, index_type=by)
    return found


@functools.cache
def link_properties(charset: int) -> h5p.PropLCID:
    """Creation properties of a link whose name is of a character set."""
    made = h5p.create(h5p.LINK_CREATE)
    made.set_char_encoding(charset)
    return made


@functools.cache
def attribute_properties(charset: int) -> int:
    """Creation properties of an attribute whose name is of a character set. h5py has none."""
    if charset != _UTF8:
        return DEFAULT
    kind = ctypes.c_int64.in_dll(index.hdf5(), "H5P_CLS_ATTRIBUTE_CREATE_ID_g").value  # type: ignore[arg-type]
    made = calls.H5Pcreate(kind)
    calls.H5Pset_char_encoding(made, charset)
    return made


# --- links of kinds that a program defined ----------------------------------------------------------------------------


class _LinkClass(ctypes.Structure):
    """H5L_class_t of version 1."""

    _fields_ = [("version", ctypes.c_int), ("id", ctypes.c_int), ("comment", ctypes.c_char_p),
                *((name, ctypes.c_void_p) for name in ("create", "move", "copy", "traverse", "remove", "query"))]


_Traverse = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_char_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_size_t,
                             ctypes.c_int64, ctypes.c_int64)
_Query = ctypes.CFUNCTYPE(ctypes.c_ssize_t, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p,
                          ctypes.c_size_t)


def _hand_out(_: Any, value: int, size: int, out: int, room: int) -> int:
    if out:
        ctypes.memmove(out, value, min(size, room))
    return size


_lead_nowhere, _hand_out_bytes = _Traverse(lambda *_: -1), _Query(_hand_out)


@functools.cache
def know_link_class(kind: int) -> _LinkClass:
    """Registers a class of links that hands a link's bytes out and leads nowhere.

    Without a class HDF5 neither says what a link of a program's own kind holds nor makes one. The class is kept for as
    long as the process runs: HDF5 calls it.
    """
    made = _LinkClass(1, kind, b"", None, None, None, ctypes.cast(_lead_nowhere, ctypes.c_void_p), None,
                      ctypes.cast(_hand_out_bytes, ctypes.c_void_p))
    if not calls.H5Lis_registered(kind):
        calls.H5Lregister(ctypes.byref(made))
    return made


def link_value(group: h5g.GroupID, name: bytes, kind: int) -> bytes:
    """What a link that is no hard link says, in the bytes of the file."""
    if kind > h5l.TYPE_EXTERNAL:
        know_link_class(kind)
    size = group.links.get_info(name).u  # only now is it known
    value = ctypes.create_string_buffer(max(1, size))
    calls.H5Lget_val(group, name, value, size, DEFAULT)
    return value.raw[:size]


def copy_own_link(old: h5g.GroupID, new: h5g.GroupID, name: bytes, kind: int, properties: h5p.PropLCID) -> None:
    """Makes a link of a program's own kind anew, with the same bytes."""
    value = link_value(old, name, kind)
    calls.H5Lcreate_ud(new, name, kind, value or None, len(value), properties, DEFAULT)
