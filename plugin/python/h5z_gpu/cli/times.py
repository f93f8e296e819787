# SPDX-License-Identifier: MIT OR Apache-2.0
"""Gives the objects of a copy the times of the old ones, so that a file that is copied twice becomes the same bytes.

HDF5 writes the time at which it makes an object into its header, and no call sets another. So the bytes are changed
when the file is closed. A header of version 2 has four times behind its flags, and at its end a checksum, Jenkins'
lookup3; those of one layout are summed at once. A header of version 1 has a message with one time, in its first block
or in one that continues it, and no checksum. An extension of the superblock is such a header too, and gets the times
of the root. A header that is not as expected, or that has another checksum than it should, stays as it is.

The time is in more bytes than these. A header that grew after it was written has its former checksum within it, in a
null message: null messages become zeros. A header that was removed has left its checksum in free space, and so does the
first extension of the superblock where the file keeps a list of its free space: what is on that list becomes zeros.
"""
from __future__ import annotations

import ctypes
import mmap
import os
import struct
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from h5py import h5f

from .common import file_access
from .hdf5 import calls

Times = tuple[int, ...]
"""Of access, modification, change and birth, in seconds since 1970."""

_SIGNATURE, _NONE = b"\x89HDF\r\n\x1a\n", (1 << 64) - 1
# Flags of a header: times, when attributes move elsewhere, and each message's place in the order of creation.
_TRACKED, _PHASES, _ORDERED = 0x20, 0x10, 0x04
_NULL, _CONTINUED, _TIME = 0, 0x10, 0x12  # messages
_BLOCKS = 1000  # of one header, at most
_ANY = 0  # H5FD_MEM_DEFAULT: space for whatever


class _Layout(NamedTuple):
    """Of a header of version 2: its bytes up to its checksum, those before its first message, and those before the
    content of each message."""

    length: int
    first: int
    head: int


class _Section(ctypes.Structure):
    """H5F_sect_info_t."""

    _fields_ = [("at", ctypes.c_uint64), ("size", ctypes.c_uint64)]


def restore(path: str, base: int, times: dict[int, Times]) -> None:
    """Writes times, by the addresses of headers, into the headers of a file that is closed; `base`: bytes of its user
    block."""
    free = _free_space(path)
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as data:
        if data[base : base + 8] != _SIGNATURE or (data[base + 8] >= 2 and data[base + 9] != 8):
            return
        if data[base + 8] >= 2:
            root, extension = (int.from_bytes(data[base + k : base + k + 8], "little") for k in (36, 20))
            if extension != _NONE and root in times:
                times = times | {extension: times[root]}
        elif data[base + 13] != 8:  # bytes of an address
            return
        for at, size in free:
            end = min(base + at + size, len(data))
            data[base + at : end] = bytes(end - base - at)
        found: dict[_Layout, list[tuple[int, Times]]] = {}
        for address, given in times.items():
            at = base + address
            if data[at : at + 5] == b"OHDR\x02":
                if (layout := _layout(data, at)) is not None:
                    found.setdefault(layout, []).append((at, given))
            elif data[at : at + 1] == b"\x01":
                for kind, place, length in _messages(data, at, base):
                    if kind == _NULL:
                        data[place : place + length] = bytes(length)
                    else:
                        data[place + 4 : place + 8] = struct.pack("<I", given[2] & 0xFFFFFFFF)
        for layout, headers in found.items():
            _write(data, layout, headers)


def _free_space(path: str) -> list[tuple[int, int]]:
    """Where a file says that nothing is, and how many bytes; [] of one that keeps no list of it."""
    file = h5f.open(os.fsencode(path), h5f.ACC_RDONLY, file_access())
    try:
        kept = file.get_create_plist().get_file_space_strategy()[1]
        sections = (_Section * (calls.H5Fget_free_sections(file, _ANY, 0, None) if kept else 0))()
        if sections:
            calls.H5Fget_free_sections(file, _ANY, len(sections), sections)
        return [(s.at, s.size) for s in sections]
    finally:
        file.close()


def _layout(data: mmap.mmap, at: int) -> _Layout | None:
    """That of a header of version 2 with times."""
    flags = data[at + 5]
    if not flags & _TRACKED:
        return None
    width = 1 << (flags & 3)
    first = 6 + 16 + (4 if flags & _PHASES else 0) + width
    length = first + int.from_bytes(data[at + first - width : at + first], "little")
    return _Layout(length, first, 6 if flags & _ORDERED else 4) if at + length + 4 <= len(data) else None


def _write(data: mmap.mmap, layout: _Layout, headers: list[tuple[int, Times]]) -> None:
    """Writes the times and checksums of headers of one layout."""
    length = layout.length
    rows = np.frombuffer(b"".join(data[at : at + length] for at, _ in headers), np.uint8).reshape(-1, length).copy()
    before = lookup3(rows)
    for row, (_, times) in zip(rows, headers):
        row[6:22] = np.frombuffer(struct.pack("<4I", *(t & 0xFFFFFFFF for t in times)), np.uint8)
    _clear(rows, layout)
    after = lookup3(rows)
    for row, (at, _), old, new in zip(rows, headers, before.tolist(), after.tolist()):
        if data[at + length : at + length + 4] == struct.pack("<I", old):
            data[at : at + length] = row.tobytes()
            data[at + length : at + length + 4] = struct.pack("<I", new)


def _clear(rows: np.ndarray, layout: _Layout) -> None:
    """Makes zeros of the null messages of headers of one layout, which go from message to message together."""
    at, which = np.full(len(rows), layout.first), np.arange(len(rows))
    while len(which):
        place = at[which]
        size = rows[which, place + 1] + 256 * rows[which, place + 2].astype(np.int64)
        content = place + layout.head
        for row in np.flatnonzero((rows[which, place] == _NULL) & (content + size <= layout.length)):
            rows[which[row], content[row] : content[row] + size[row]] = 0
        at[which] = content + size
        which = which[at[which] + layout.head <= layout.length]


def _messages(data: mmap.mmap, at: int, base: int) -> Iterator[tuple[int, int, int]]:
    """Null messages and those with a time of a header of version 1: the kind, where the content begins, its bytes."""
    count, _, size = struct.unpack_from("<HII", data, at + 2)
    blocks = [(at + 16, size)]
    for place, room in blocks:
        end = place + room
        if end > len(data) or len(blocks) > _BLOCKS:
            return
        while place + 8 <= end and count:
            kind, length, flags = struct.unpack_from("<HHB", data, place)
            content, count = place + 8, count - 1
            if content + length > end:
                return
            if kind == _CONTINUED and length >= 16:
                where, more = struct.unpack_from("<QQ", data, content)
                blocks.append((base + where, more))
            elif kind == _NULL:
                yield kind, content, length
            elif kind == _TIME and length == 8 and not flags & 2 and data[content : content + 4] == b"\x01\0\0\0":
                yield kind, content, length
            place = content + length


def _turned(x: np.ndarray, bits: int) -> np.ndarray:
    return x << np.uint32(bits) | x >> np.uint32(32 - bits)


def lookup3(rows: np.ndarray) -> np.ndarray:
    """Checksums of rows of bytes, as HDF5 has them for its metadata."""
    count, length = rows.shape
    padded = np.zeros((count, max(1, -(-length // 12)) * 12), np.uint8)
    padded[:, :length] = rows
    words = padded.view("<u4").astype(np.uint32)
    a = b = c = np.full(count, (0xDEADBEEF + length) & 0xFFFFFFFF, np.uint32)
    if not length:
        return c
    for k in range(0, words.shape[1], 3):
        a, b, c = a + words[:, k], b + words[:, k + 1], c + words[:, k + 2]
        if k + 3 == words.shape[1]:
            break
        a = (a - c) ^ _turned(c, 4)
        c = c + b
        b = (b - a) ^ _turned(a, 6)
        a = a + c
        c = (c - b) ^ _turned(b, 8)
        b = b + a
        a = (a - c) ^ _turned(c, 16)
        c = c + b
        b = (b - a) ^ _turned(a, 19)
        a = a + c
        c = (c - b) ^ _turned(b, 4)
        b = b + a
    c = (c ^ b) - _turned(b, 14)
    a = (a ^ c) - _turned(c, 11)
    b = (b ^ a) - _turned(a, 25)
    c = (c ^ b) - _turned(b, 16)
    a = (a ^ c) - _turned(c, 4)
    b = (b ^ a) - _turned(a, 14)
    checksum: np.ndarray = (c ^ b) - _turned(b, 24)
    return checksum
