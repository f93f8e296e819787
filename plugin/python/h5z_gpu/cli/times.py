# SPDX-License-Identifier: MIT OR Apache-2.0
"""Gives the objects of a copy the times of the old ones, so that a file that is copied twice becomes the same bytes.

HDF5 writes the time at which it makes an object into its header, and no call sets another. So the bytes are changed
when the file is closed. A header of version 2 has four times behind its flags, and at its end a checksum, Jenkins'
lookup3; those of one length are summed at once. A header of version 1 has a message with one time, in its first block
or in one that continues it, and no checksum. An extension of the superblock is such a header too, and gets the times
of the root. A header that is not as expected, or that has another checksum than it should, stays as it is.
"""
from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

Times = tuple[int, ...]
"""Of access, modification, change and birth, in seconds since 1970."""

_SIGNATURE, _NONE = b"\x89HDF\r\n\x1a\n", (1 << 64) - 1
_TRACKED, _PHASES = 0x20, 0x10  # flags of a header: times, and when attributes move elsewhere
_CONTINUED, _TIME = 0x10, 0x12  # messages
_BLOCKS = 1000  # of one header, at most


class _Header(NamedTuple):
    """A header of version 2: where its times are, and its bytes from its first one to its checksum."""

    at: int
    length: int
    times: Times


def restore(path: str, base: int, times: dict[int, Times]) -> None:
    """Writes times into the headers of a file that is closed.

    Parameters
    ----------
    path : str
        The file.
    base : int
        Bytes of its user block.
    times : dict
        By the addresses of headers.
    """
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as data:
        if data[base : base + 8] != _SIGNATURE or (data[base + 8] >= 2 and data[base + 9] != 8):
            return
        if data[base + 8] >= 2:
            root, extension = (int.from_bytes(data[base + k : base + k + 8], "little") for k in (36, 20))
            if extension != _NONE and root in times:
                times = times | {extension: times[root]}
        elif data[base + 13] != 8:  # bytes of an address
            return
        found: dict[int, list[_Header]] = {}
        for address, given in times.items():
            at = base + address
            if data[at : at + 5] == b"OHDR\x02":
                if (header := _header(data, at, given)) is not None:
                    found.setdefault(header.length, []).append(header)
            elif data[at : at + 1] == b"\x01":
                for place in _messages(data, at, base):
                    data[place + 4 : place + 8] = struct.pack("<I", given[2] & 0xFFFFFFFF)
        for length, headers in found.items():
            _write(data, length, headers)


def _header(data: mmap.mmap, at: int, times: Times) -> _Header | None:
    """A header of version 2 with times."""
    flags = data[at + 5]
    if not flags & _TRACKED:
        return None
    first = at + 6 + 16 + (4 if flags & _PHASES else 0)
    width = 1 << (flags & 3)
    end = first + width + int.from_bytes(data[first : first + width], "little")
    return _Header(at, end - at, times) if end + 4 <= len(data) else None


def _write(data: mmap.mmap, length: int, headers: list[_Header]) -> None:
    """Writes the times and checksums of headers of one length."""
    rows = np.frombuffer(b"".join(data[h.at : h.at + length] for h in headers), np.uint8).reshape(-1, length).copy()
    before = lookup3(rows)
    for row, header in zip(rows, headers):
        row[6:22] = np.frombuffer(struct.pack("<4I", *(t & 0xFFFFFFFF for t in header.times)), np.uint8)
    after = lookup3(rows)
    for row, header, old, new in zip(rows, headers, before.tolist(), after.tolist()):
        end = header.at + length
        if data[end : end + 4] == struct.pack("<I", old):
            data[header.at + 6 : header.at + 22] = row[6:22].tobytes()
            data[end : end + 4] = struct.pack("<I", new)


def _messages(data: mmap.mmap, at: int, base: int) -> Iterator[int]:
    """Where the content of a message with a time begins, in a header of version 1."""
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
            elif kind == _TIME and length == 8 and not flags & 2 and data[content : content + 4] == b"\x01\0\0\0":
                yield content
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
