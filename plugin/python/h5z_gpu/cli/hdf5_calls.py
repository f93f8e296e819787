# SPDX-License-Identifier: MIT OR Apache-2.0
"""Functions of HDF5 that `verify` calls by ctypes, in the library of h5py: those that h5py lacks, or that it calls with
conversions of its own.

Arguments are numbers of identifiers. h5py closes an identifier when its Python object goes, so a caller holds the
object until the call is over. The declarations are bound to a handle of their own: no other module's types of the same
functions are changed, and none of theirs is used here.
"""

from __future__ import annotations

import ctypes
import functools
from ctypes import POINTER, c_char_p, c_int, c_int64, c_size_t, c_ssize_t, c_uint, c_uint64, c_void_p
from typing import Any

import h5py

from .. import capi, index

_id = c_int64
_WORDS = 256
"""Words of one filter that HDF5 hands out at most."""
_two = (_id, POINTER(c_uint), POINTER(c_uint))
FUNCTIONS: dict[str, capi.Signature] = {
    "H5Aread": (c_int, (_id, _id, c_void_p)),
    "H5Dread": (c_int, (_id, _id, _id, _id, _id, c_void_p)),
    "H5Dvlen_reclaim": (c_int, (_id, _id, _id, c_void_p)),
    "H5Ewalk2": (c_int, (_id, c_int, c_void_p, c_void_p)),
    "H5Idec_ref": (c_int, (_id,)),
    "H5Lget_val": (c_int, (_id, c_char_p, c_void_p, c_size_t, _id)),
    "H5Lis_registered": (c_int, (c_int,)),
    "H5Lregister": (c_int, (c_void_p,)),
    "H5Lunregister": (c_int, (c_int,)),
    "H5Oget_comment": (c_ssize_t, (_id, c_void_p, c_size_t)),
    "H5Oget_info3": (c_int, (_id, c_void_p, c_uint)),
    "H5Oget_native_info": (c_int, (_id, c_void_p, c_uint)),
    "H5Pencode": (c_int, (_id, c_void_p, POINTER(c_size_t))),
    "H5Pencode1": (c_int, (_id, c_void_p, POINTER(c_size_t))),
    "H5Pequal": (c_int, (_id, _id)),
    "H5Pget_chunk_opts": (c_int, (_id, POINTER(c_uint))),
    "H5Pget_est_link_info": (c_int, _two),
    "H5Pget_fill_value": (c_int, (_id, _id, c_void_p)),
    "H5Pget_filter2": (c_int, (_id, c_uint, POINTER(c_uint), POINTER(c_size_t), POINTER(c_uint), c_size_t, c_char_p,
                               POINTER(c_uint))),
    "H5Pget_link_phase_change": (c_int, _two),
    "H5Pget_istore_k": (c_int, (_id, POINTER(c_uint))),
    "H5Pget_nfilters": (c_int, (_id,)),
    "H5Pget_shared_mesg_index": (c_int, (_id, c_uint, POINTER(c_uint), POINTER(c_uint))),
    "H5Pget_shared_mesg_nindexes": (c_int, (_id, POINTER(c_uint))),
    "H5Pget_shared_mesg_phase_change": (c_int, _two),
    "H5Pget_sym_k": (c_int, _two),
    "H5Pset_fill_value": (c_int, (_id, _id, c_void_p)),
    "H5Rdereference2": (_id, (_id, _id, c_int, c_void_p)),
    "H5Rget_attr_name": (c_ssize_t, (c_void_p, c_char_p, c_size_t)),
    "H5Rget_region": (_id, (_id, c_int, c_void_p)),
    "H5Rget_type": (c_int, (c_void_p,)),
    "H5Ropen_object": (_id, (c_void_p, _id, _id)),
    "H5Ropen_region": (_id, (c_void_p, _id, _id)),
    "H5Sextent_equal": (c_int, (_id, _id)),
    "H5Tequal": (c_int, (_id, _id)),
    "H5Tget_create_plist": (_id, (_id,)),
    "H5Treclaim": (c_int, (_id, _id, _id, c_void_p)),
}  # fmt: skip


class _Error(ctypes.Structure):
    """H5E_error2_t."""

    _fields_ = [("ids", c_int64 * 3), ("line", c_uint), ("function", c_char_p), ("file", c_char_p),
                ("text", c_char_p)]  # fmt: skip


_Walk = ctypes.CFUNCTYPE(c_int, c_uint, POINTER(_Error), c_void_p)


@functools.cache
def library() -> ctypes.CDLL:
    """The HDF5 library of h5py, with these functions declared."""
    there = index.hdf5()
    if there is None:
        raise OSError(f"HDF5 {h5py.version.hdf5_version} is too old to compare files: 1.10.3 or newer is needed")
    own = ctypes.CDLL(there._name, handle=there._handle)
    capi.declare(own, FUNCTIONS)
    return own


def has(name: str) -> bool:
    """Whether this HDF5 has a function; some came with 1.12."""
    return hasattr(library(), name)


def call(name: str, *arguments: Any) -> int:
    """Calls a function, and raises OSError with HDF5's innermost sentence where it fails."""
    answer: int = getattr(library(), name)(*arguments)
    if answer < 0:
        raise OSError(_why(name))
    return answer


def _why(name: str) -> str:
    """HDF5's innermost sentence on a failure."""
    said: list[str] = []

    def note(_: int, error: Any, __: Any) -> int:
        said.append((error.contents.text or b"").decode(errors="replace"))
        return 0

    library().H5Ewalk2(0, 0, ctypes.cast(_Walk(note), c_void_p), None)
    return said[0] if said and said[0] else f"{name} failed"


# --- objects ---------------------------------------------------------------------------------------------------------


class _Info(ctypes.Structure):
    """H5O_info2_t."""

    _fields_ = [("file", ctypes.c_ulong), ("token", c_uint64 * 2), ("type", c_int), ("links", c_uint),
                ("times", c_int64 * 4), ("attributes", c_uint64)]  # fmt: skip


_BASIC, _NUM_ATTRS, _HEADER = 1, 4, 8


def about(item: Any) -> tuple[int, int, int]:
    """Where an object lies in its file, how many hard links lead to it, and how many attributes it has.

    h5py's own call, which HDF5 before 1.12 leaves alone, also asks the list of chunks for its size.
    """
    if not has("H5Oget_info3"):
        old = h5py.h5o.get_info(item)
        return int(old.addr), int(old.rc), int(h5py.h5a.get_num_attrs(item))
    info = _Info()
    call("H5Oget_info3", item.id, ctypes.byref(info), _BASIC | _NUM_ATTRS)
    return info.token[0], info.links, info.attributes


def header_version(item: Any) -> int:
    """Version of an object's header: libraries before 1.8 read 1 alone."""
    if not has("H5Oget_native_info"):
        return int(h5py.h5o.get_info(item).hdr.version)
    info = (c_uint * 128)()
    call("H5Oget_native_info", item.id, info, _HEADER)
    return info[0]


def comment(item: Any) -> bytes:
    """An object's comment. Its length is asked first: with none there is nothing that could be read."""
    length = call("H5Oget_comment", item.id, None, 0)
    if length <= 0:
        return b""
    text = ctypes.create_string_buffer(length + 1)
    call("H5Oget_comment", item.id, text, length + 1)
    return text.value


# --- properties ------------------------------------------------------------------------------------------------------


def numbers(name: str, item: Any, *kinds: Any) -> tuple[int, ...]:
    """What a function H5Pget_* answers in these types; () where this HDF5 lacks it or the list has no such property."""
    if not has(f"H5Pget_{name}"):
        return ()
    found = [kind(0) for kind in kinds or (c_uint,)]
    if getattr(library(), f"H5Pget_{name}")(item.id, *map(ctypes.byref, found)) < 0:
        return ()
    return tuple(int(n.value) for n in found)


def filters(properties: Any) -> list[tuple[int, int, tuple[int, ...]]]:
    """Number, flags and words of each filter of a creation list of datasets or groups."""
    found: list[tuple[int, int, tuple[int, ...]]] = []
    words = (c_uint * _WORDS)()
    for k in range(call("H5Pget_nfilters", properties.id)):
        flags, count = c_uint(0), c_size_t(_WORDS)
        places = ctypes.byref(flags), ctypes.byref(count), words
        number = call("H5Pget_filter2", properties.id, k, *places, 0, None, None)
        found.append((number, flags.value, (*words[: count.value],)))
    return found


def encoded(properties: Any) -> bytes:
    """All of a list of properties, as HDF5 writes it down."""
    encode, length = "H5Pencode1" if has("H5Pencode1") else "H5Pencode", c_size_t(0)
    call(encode, properties.id, None, ctypes.byref(length))
    text = ctypes.create_string_buffer(length.value)
    call(encode, properties.id, text, ctypes.byref(length))
    return text.raw[: length.value]


# --- links of a user's own class -------------------------------------------------------------------------------------


class _LinkClass(ctypes.Structure):
    """H5L_class_t."""

    _fields_ = [("version", c_int), ("kind", c_int), ("comment", c_char_p),
                *((name, c_void_p) for name in ("create", "move", "copy", "traverse", "remove", "query"))]  # fmt: skip


_Traverse = ctypes.CFUNCTYPE(_id, c_char_p, _id, c_void_p, c_size_t, _id, _id)
_Query = ctypes.CFUNCTYPE(c_ssize_t, c_char_p, c_void_p, c_size_t, c_void_p, c_size_t)


def _hand_out(_: Any, data: int, length: int, out: int, room: int) -> int:
    if out:
        ctypes.memmove(out, data, min(length, room))
    return length


_refuse = _Traverse(lambda *_: -1)
_query = _Query(_hand_out)


def link_value(group: Any, name: bytes, kind: int) -> bytes:
    """What a link that is no hard link says, in the bytes of the file. HDF5 tells nothing of a link whose class nobody
    has registered: one that hands the bytes out is registered for the call."""
    ours = kind > h5py.h5l.TYPE_EXTERNAL and call("H5Lis_registered", kind) == 0
    if ours:
        described = _LinkClass(1, kind, b"", None, None, None, ctypes.cast(_refuse, c_void_p), None,
                               ctypes.cast(_query, c_void_p))  # fmt: skip
        call("H5Lregister", ctypes.byref(described))
    try:
        length = group.links.get_info(name).u
        text = ctypes.create_string_buffer(max(1, length))
        call("H5Lget_val", group.id, name, text, length, 0)
        return text.raw[:length]
    finally:
        if ours:
            call("H5Lunregister", kind)
