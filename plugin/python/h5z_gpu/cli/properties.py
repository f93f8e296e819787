# SPDX-License-Identifier: MIT OR Apache-2.0
"""What files, groups and datasets were created with, as names and texts: what differs between two of them."""

from __future__ import annotations

import ctypes
from ctypes import c_size_t, c_uint
from typing import Any, Callable

import h5py
from h5py import h5d, h5p, h5t

from .elements import Layout, Leads, differing, elements
from .hdf5 import calls, filters, has

Said = list[tuple[str, Any, Any]]
"""What differs: its name, and what it is in the original and in the copy."""
_LAYOUTS = {h5d.COMPACT: "compact", h5d.CONTIGUOUS: "contiguous", h5d.CHUNKED: "chunked", h5d.VIRTUAL: "virtual"}
_FILL = {h5d.FILL_VALUE_UNDEFINED: "undefined", h5d.FILL_VALUE_DEFAULT: "the default",
         h5d.FILL_VALUE_USER_DEFINED: "declared"}
_ALL_FILTERS = 0  # H5Z_FILTER_ALL
_ALLOC = {h5d.ALLOC_TIME_DEFAULT: "default", h5d.ALLOC_TIME_EARLY: "early", h5d.ALLOC_TIME_LATE: "late",
          h5d.ALLOC_TIME_INCR: "as chunks are written"}
_FILL_TIME = {h5d.FILL_TIME_ALLOC: "at allocation", h5d.FILL_TIME_NEVER: "never", h5d.FILL_TIME_IFSET: "if set"}


def _compared(x: Any, y: Any, asked: dict[str, Callable[[Any], Any]]) -> Said:
    found = ((name, ask(x), ask(y)) for name, ask in asked.items())
    return [(name, u, v) for name, u, v in found if u != v]


def of_files(a: h5py.File, b: h5py.File) -> Said:
    """Properties of two files."""
    x, y = a.id.get_create_plist(), b.id.get_create_plist()
    found = _compared(x, y, {
        "user block": lambda p: p.get_userblock(),
        "superblock's version": lambda p: p.get_version()[0],
        "sizes of addresses and lengths": lambda p: p.get_sizes(),
        "rank of groups' trees": lambda p: _numbers("sym_k", p, c_uint, c_uint),
        "rank of chunks' trees": lambda p: _numbers("istore_k", p),
        "strategy of free space": _of(lambda p: p.get_file_space_strategy()),
        "size of pages": _of(lambda p: p.get_file_space_page_size()),
        "shared messages": _shared_messages,
    })
    if not found and (length := x.get_userblock()):
        heads = []
        for each in (a, b):
            with open(each.filename, "rb") as file:
                heads.append(file.read(length))
        if heads[0] != heads[1]:
            k = next(k for k, (p, q) in enumerate(zip(*heads)) if p != q)
            found.append(("user block", f"byte {k} is {heads[0][k]:#04x}", f"{heads[1][k]:#04x}"))
    return found


def _of(ask: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The same where this HDF5 has no such property, or no number for it: None."""

    def asked(properties: Any) -> Any:
        try:
            return ask(properties)
        except (AttributeError, ValueError, RuntimeError):
            return None

    return asked


def _shared_messages(properties: Any) -> Any:
    (count,) = _numbers("shared_mesg_nindexes", properties) or (0,)
    found = []
    for k in range(count):
        kinds, least = c_uint(0), c_uint(0)
        calls.H5Pget_shared_mesg_index(properties, k, ctypes.byref(kinds), ctypes.byref(least))
        found.append((kinds.value, least.value))
    return found, _numbers("shared_mesg_phase_change", properties, c_uint, c_uint) if count else ()


def _numbers(name: str, properties: Any, *kinds: Any) -> tuple[int, ...]:
    """What a function H5Pget_* answers in these types; () where this HDF5 lacks it or the list has no such property."""
    found = [kind() for kind in kinds or (c_uint,)]
    try:
        getattr(calls, f"H5Pget_{name}")(properties, *map(ctypes.byref, found))
    except (AttributeError, OSError):
        return ()
    return tuple(int(n.value) for n in found)


def _encoded(properties: Any) -> bytes:
    """All of a list of properties, as HDF5 writes it down."""
    encode, length = calls.H5Pencode1 if has("H5Pencode1") else calls.H5Pencode, c_size_t()
    encode(properties, None, ctypes.byref(length))
    text = ctypes.create_string_buffer(length.value)
    encode(properties, text, ctypes.byref(length))
    return text.raw[: length.value]


def of_groups(x: h5p.PropGCID, y: h5p.PropGCID) -> Said:
    """Properties of two groups. The lists themselves are not compared: they hold places in the files."""
    return _compared(x, y, {
        "order of links": lambda p: p.get_link_creation_order(),
        "order of attributes": lambda p: p.get_attr_creation_order(),
        "numbers of links between two ways to store them": lambda p: _numbers("link_phase_change", p, c_uint, c_uint),
        "numbers of attributes between two ways to store them": lambda p: p.get_attr_phase_change(),
        "expected number and length of names": lambda p: _numbers("est_link_info", p, c_uint, c_uint),
        "times": lambda p: p.get_obj_track_times(),
        "filters": filters,
    })


def of_datasets(x: h5p.PropDCID, y: h5p.PropDCID, stored_anew: bool) -> Said:
    """Properties of two datasets, but for the fill value. `stored_anew`: how the copy stores its values may differ.

    They are asked one by one: HDF5 calls two lists equal that have other chunks or other parts of virtual sources.
    """
    asked: dict[str, Callable[[Any], Any]] = {
        "time of filling": lambda p: _FILL_TIME.get(p.get_fill_time()),
        "order of attributes": lambda p: p.get_attr_creation_order(),
        "numbers of attributes between two ways to store them": lambda p: p.get_attr_phase_change(),
        "times": lambda p: p.get_obj_track_times(),
    }
    if not stored_anew:
        asked |= {
            "layout": lambda p: _LAYOUTS.get(p.get_layout()),
            "chunks": lambda p: p.get_chunk() if p.get_layout() == h5d.CHUNKED else None,
            "chunks cut by the edge": lambda p: _numbers("chunk_opts", p) if p.get_layout() == h5d.CHUNKED else None,
            "filters": filters,
            "time of allocation": lambda p: _ALLOC.get(p.get_alloc_time()),
            "external files": lambda p: [p.get_external(k) for k in range(p.get_external_count())],
            "sources": lambda p: _sources(p) if p.get_layout() == h5d.VIRTUAL else None,
        }
    found = _compared(x, y, asked)
    if not found and not stored_anew and x.fill_value_defined() == y.fill_value_defined():
        x, y = x.copy(), y.copy()
        for each in (x, y):  # fill values are compared by themselves; filters are, but for names, which may be missing
            calls.H5Pset_fill_value(each, 0, None)
            if each.get_nfilters():
                each.remove_filter(_ALL_FILTERS)
        if not calls.H5Pequal(x, y) and _encoded(x) != _encoded(y):
            found.append(("creation properties", "as they were", "others"))
    return found


def _sources(properties: Any) -> list[tuple[Any, ...]]:
    return [(properties.get_virtual_filename(k), properties.get_virtual_dsetname(k),
             properties.get_virtual_vspace(k).encode(), properties.get_virtual_srcspace(k).encode())
            for k in range(properties.get_virtual_count())]


def fill_state(properties: h5p.PropDCID) -> str:
    """Whether a fill value is declared, the default, or none."""
    return _FILL[properties.fill_value_defined()]


DECLARED = _FILL[h5d.FILL_VALUE_USER_DEFINED]


def same_fill(x: h5p.PropDCID, y: h5p.PropDCID, kind: h5t.TypeID, layout: Layout, leads: Leads) -> bool:
    """Whether two fill values are declared, the default or undefined alike, with the same bytes."""

    def reader(properties: h5p.PropDCID) -> Callable[[int, int], int]:
        return lambda memory, at: calls.H5Pget_fill_value(properties, memory, at)

    if fill_state(x) != fill_state(y) or fill_state(x) != DECLARED:
        return fill_state(x) == fill_state(y)
    with elements(reader(x), kind, layout, 1) as u, elements(reader(y), kind, layout, 1) as v:
        return not differing(layout, u, v, leads).any()
