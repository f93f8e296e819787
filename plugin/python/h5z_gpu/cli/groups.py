# SPDX-License-Identifier: MIT OR Apache-2.0
"""Looks into HDF5's oldest groups for names that have vanished.

Such a group is a version 1 B-tree of symbol tables, with names in a local heap (III.A, III.B and III.D of HDF5's format
specification). None has a checksum: where the number of entries of a node was changed, HDF5 lists fewer objects and
finds no fault. Two things still show it. The tree has the last name of each symbol table as a key. And names of links
that were deleted are free space of the heap: a name that is neither free nor of an entry belongs to one that has
vanished. Only names shorter than 8 bytes stay as they are when their link is deleted; of those nobody can tell.
"""
from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import NamedTuple, Optional

import h5py

from .common import pread

_MOST = 1 << 26  # bytes of a table that is read at once
_SHORT = 8  # bytes of a name that is not freed for sure when its link is deleted
_SHOWN = 8
_GROUP, _SOFT = 1, 2  # what an entry of a symbol table says of its object


class _Group(NamedTuple):
    path: str
    tree: int
    heap: int


# Where its name is in the heap, where the text of a soft link is (0: none), the group that it is.
Symbol = tuple[int, int, Optional[_Group]]


class _Unreadable(Exception):
    """A table is not what it should be: HDF5 says so by itself."""


def vanished(file: h5py.File, data: int) -> tuple[dict[str, str], dict[str, str]]:
    """Names that old groups once had, by the groups' paths: what is lost, and what was deleted or is lost.

    `data` is a descriptor of the file.
    """
    lost: dict[str, str] = {}
    doubtful: dict[str, str] = {}
    properties = file.id.get_create_plist()
    if properties.get_version()[0] > 1 or properties.get_sizes() != (8, 8):
        return lost, doubtful
    base, seen = file.userblock_size, set()
    root = 56 if properties.get_version()[0] == 0 else 60  # of the superblock, behind its addresses
    waiting = list(_entries(pread(data, 40, base + root), lambda at: ""))
    while waiting:
        *_, group = waiting.pop()
        if group is None or group.tree in seen:
            continue
        seen.add(group.tree)
        try:
            segment, free = _heap(data, base, group.heap)
            symbols, complete = _symbols(data, base, group, segment)
        except _Unreadable:
            continue
        waiting += symbols
        used = {at for symbol in symbols for at in symbol[:2]}
        gone = [name for at, name in _names(segment, free) if at not in used]
        sure = gone if not complete else [name for name in gone if len(name) >= _SHORT]
        for names, found in ((sure, lost), ([name for name in gone if name not in sure], doubtful)):
            if names:
                found[group.path
                      or "/"] = f"no object has the name {', '.join(map(repr, names[:_SHOWN]))}, which is in its table"
        if not complete:
            lost.setdefault(group.path or "/", "its list of objects has lost entries")
    return lost, doubtful


def _table(data: int, at: int, length: int, signature: bytes) -> bytes:
    """Bytes of a table that begins with a signature."""
    found = pread(data, min(length, _MOST), at) if at < 2**62 else b""
    if len(found) < length or not found.startswith(signature):
        raise _Unreadable
    return found


def _heap(data: int, base: int, at: int) -> tuple[bytes, list[tuple[int, int]]]:
    """A local heap's bytes, and beginning and end of what is free of them."""
    size, free, place = struct.unpack("<QQQ", _table(data, base + at, 32, b"HEAP")[8:])
    segment = _table(data, base + place, size, b"")
    blocks: list[tuple[int, int]] = []
    while free + 16 <= len(segment) and len(blocks) < len(segment) // 16:
        after, length = struct.unpack_from("<QQ", segment, free)
        blocks.append((free, free + length))
        free = after if after != 1 else 2**64 - 1  # 1: there is no other
    return segment, blocks


def _names(segment: bytes, free: list[tuple[int, int]]) -> Iterator[tuple[int, str]]:
    """Texts of a heap, which begin at multiples of 8 bytes, outside of what is free."""
    at, ends = 8, dict(free)  # the first text is empty
    while at < len(segment):
        if at in ends:
            at = max(ends[at], at + 8)
            continue
        text = segment[at : segment.find(b"\0", at) if b"\0" in segment[at:] else len(segment)]
        if text:
            yield at, text.decode(errors="surrogateescape")
        at += (len(text) + 8) // 8 * 8


def _symbols(data: int, base: int, group: _Group, segment: bytes) -> tuple[list[Symbol], bool]:
    """Entries of a group, and whether each of its tables ends with the name that the tree has for it."""
    found: list[Symbol] = []
    complete, waiting, seen = True, [(group.tree, None)], set()

    def text(at: int) -> str:
        return f"{group.path}/{segment[at : segment.find(bytes(1), at)].decode(errors='surrogateescape')}"

    while waiting:
        at, last = waiting.pop()
        if at in seen:
            raise _Unreadable
        seen.add(at)
        head = _table(data, base + at, 8, b"")
        n = int.from_bytes(head[6:8], "little")
        if head.startswith(b"SNOD"):
            some = list(_entries(_table(data, base + at, 8 + 40 * n, b"SNOD")[8:], text))
            complete &= bool(some) and some[-1][0] == last
            found += some
        else:
            node = struct.unpack(f"<{2 * n + 1}Q", _table(data, base + at, 24 + 16 * n + 8, b"TREE\0")[24:])
            waiting += zip(node[1::2], node[2::2])
    return found, complete


def _entries(table: bytes, text: Callable[[int], str]) -> Iterator[Symbol]:
    for name, _, kind, tree, heap in struct.iter_unpack("<QQI4xQQ", table):
        soft = tree & 0xFFFFFFFF if kind == _SOFT else 0
        yield name, soft, _Group(text(name), tree, heap) if kind == _GROUP else None
