# SPDX-License-Identifier: MIT OR Apache-2.0
"""A reader of h5z-gpu's frames in NumPy, written from the FORMAT.md documents alone.

For people who have such a file and no plugin, and a second opinion in the plugin's tests. It needs no HDF5, GPU or
compiled library: only NumPy and, for the codec `bytes`, Python 3.14 or the package `zstandard`. It follows the texts in
their order: § stands for their sections, F1, S1, L1, N1, B1, P1, K1, D1 ... for the rules of their sections 7.

decode(frame, limit=None)   the chunk's bytes in the dataset's own byte order; limit: how many there have to be
header(frame)               the fields of the header, checked by the rules F1 to F14 and F18
Refused                     the ValueError that both raise; its text begins with the rule that the frame breaks

python -m h5z_gpu.reference FRAME [OUT]   prints the header and writes the decoded bytes to OUT; where the package is
not installed, `python reference.py FRAME [OUT]`. h5py gives frames: `Dataset.id.read_direct_chunk(offsets)[1]`.
"""
import dataclasses
import itertools
import math
import pathlib
import struct
import sys
from collections.abc import Callable
from typing import Any, Optional, Union

import numpy as np

Bytes = Union[bytes, memoryview]
Array = Any  # of NumPy: its operators on bits of a type that is not known here have no better one
Take = Callable[[int], Array]  # take(n): the next n bytes of a payload
Residuals = Callable[[int, str, bytes, tuple[int, ...]], Array]  # of a tile by kind, where, payload, shape
Codebook = list[tuple[int, Optional[int], int, int]]  # by 11 bits: a codeword's length, then lorenzo_symbol()

# ------------------------------------------------------------------------------------------------ frame.FORMAT.md
MAGIC = bytes.fromhex("89 48 35 5A 47 0D 0A 1A")
VERSION = 2
STATE = 0xbc1478e8  # of the format: what VERSION may have as its draft, §1
CODECS = [  # §3.2: name, modes, highest rank, sections
    ("stored", (9,), 0, 1),
    ("szx", (1, 2, 3, 4), 8, 2),
    ("lorenzo", (1, 2, 3, 4, 9), 8, 4),
    ("ndzip", (9,), 8, 2),
    ("bytes", (9,), 0, 3),
    ("planes", (1, 2, 4, 9), 8, 2),
    ("scaled", (9,), 8, 3),  # with corrections 4
    ("dense", (1, 2, 3, 4), 8, 4),
]
HALVES = (0x0A054021, 0x07084021)  # types of 16 bits, §5: f16, bfloat16


class Refused(ValueError):
    """The frame breaks a rule of the format."""


def refuse(rule: str, broken: Any, why: str) -> None:
    """Raises where the rule is broken."""
    if broken:
        raise Refused(f"{rule}: {why}")


def whole(x: int, unit: int) -> int:
    """⌈x / unit⌉: how many units hold x."""
    return -(-x // unit)


@dataclasses.dataclass
class Header:
    """The fields of §2, then what §2.1 reads from the type."""
    version: int
    codec: str
    mode: int
    type: int
    raw_length: int
    stored_length: int
    bound: float
    checksum: int
    extents: tuple[int, ...]
    section_lengths: tuple[int, ...]
    swapped: bool
    draft: int

    @property
    def number(self) -> int:
        """The class: 0 integer, 1 float, 15 anything else."""
        return self.type & 15

    @property
    def size(self) -> int:
        return self.type >> 4 & 255

    @property
    def big_endian(self) -> int:
        return self.type >> 12 & 1

    @property
    def exponent(self) -> int:
        return self.type >> 16 & 255

    @property
    def mantissa(self) -> int:
        return self.type >> 24

    @property
    def values(self) -> int:
        return math.prod(self.extents)  # rank 0 is one value


def header(frame: bytes) -> Header:
    """The header of a frame: §2, F1 to F14 and F18."""
    refuse("F1", len(frame) < 56, f"{len(frame)} bytes, a frame has at least 56")
    magic, version, codec, mode, rank, kind = struct.unpack_from("<8s4BI", frame)
    raw, stored, bound, checksum, count, draft = struct.unpack_from("<2QdQ2I", frame, 16)
    refuse("F2", magic != MAGIC, f"the magic is {magic.hex()}, not {MAGIC.hex()}")
    refuse("F3", version == 1, "written by a build before 0.1.0; read it with that build and write it again")
    refuse("F3", version != VERSION, f"version {version}, this reader knows {VERSION}")
    refuse("F4", stored != len(frame), f"the frame has {stored} bytes, {len(frame)} are given")
    found = frame_checksum(frame)
    refuse("F5", checksum != found, f"the checksum is {found:016x}, the header says {checksum:016x}")
    refuse("F18", draft not in (0, STATE), f"written by an unreleased build, in state {draft:08x} of the format")
    refuse("F6", codec >= len(CODECS), f"codec {codec}, known are 0 to {len(CODECS) - 1}")
    name, modes, highest, sections = CODECS[codec]
    lossy = mode == 9 and name == "lorenzo" and kind & 15 != 0
    refuse("F7", mode not in modes or lossy, f"mode {mode}, {name} allows {modes}, 9 for integers alone")
    swapped, rank = rank >= 128, rank & 127
    refuse("F8", rank > highest, f"rank {rank}, {name} allows 0 to {highest}")
    unfit = swapped and (rank < 2 or name in ("szx", "ndzip"))
    refuse("F8", unfit, f"rank {rank}, of which the first two axes are swapped, with {name}")
    refuse("F9", not type_allowed(name, mode, kind), f"type {kind:08x}, not allowed for {name} in mode {mode}")
    unfit = not math.isfinite(bound) or frame[39] & 0x80 or (mode == 9 and bound != 0)
    refuse("F10", unfit, f"bound {bound!r} in mode {mode}")
    more = name == "scaled" and count == 4
    refuse("F11", count != sections and not more, f"{count} sections, {name} has {sections}")
    end = 56 + 4 * rank + 8 * count
    refuse("F12", end > len(frame), f"a header of {end} bytes in a frame of {len(frame)}")
    extents = struct.unpack_from(f"<{rank}I", frame, 56)
    lengths = struct.unpack_from(f"<{count}Q", frame, 56 + 4 * rank)
    refuse("F13", min(extents, default=2) < 2 or math.prod(extents) >= 2**64, f"extents {extents}")
    head = Header(version, name, mode, kind, raw, stored, bound, checksum, extents, lengths, swapped, draft)
    unfit = name not in ("stored", "bytes") and head.values * head.size != raw
    refuse("F14", unfit, f"{head.values} values of {head.size} bytes in {raw} raw bytes")
    return head


def type_allowed(codec: str, mode: int, kind: int) -> bool:
    """F9: §2.1, then §2 of the codec's document."""
    number, size = kind & 15, kind >> 4 & 255
    allowed = number in (0, 1, 15) and not kind & 0xA000  # bits 13 and 15
    if codec == "lorenzo" and mode == 9:
        return bool(allowed and number == 0 and size in (1, 2, 4, 8))
    if codec in ("szx", "lorenzo", "planes", "dense") and kind & ~0x1000 in HALVES:
        return True
    if codec in ("szx", "lorenzo", "dense") or (codec == "planes" and mode != 9):
        return kind & ~0x1000 in (0x17084041, 0x340B4081)  # f32, f64; bit 12 is the order
    if codec == "planes" and number == 0 and size in (1, 2):
        return bool(allowed)
    if codec == "scaled" and number == 1:
        return kind & ~0x1000 in (0x17084041, 0x340B4081)
    return allowed and (codec not in ("ndzip", "planes", "scaled") or (number in (0, 1) and size in (4, 8)))


def frame_checksum(frame: Bytes) -> int:
    """§4.2, piece by piece, which keeps memory small."""
    total, step = 0, 1 << 16
    for first in range(0, whole(len(frame), 4), step):
        piece = bytes(frame[4 * first : 4 * (first + step)])
        w = np.frombuffer(piece + bytes(-len(piece) % 4), "<u4").astype(np.uint64)
        i = np.arange(first, first + len(w), dtype=np.uint64)
        t = (2 * i + 1) * np.uint64(0x9E3779B97F4A7C15)
        p = w * (t ^ t << np.uint64(32))
        p ^= p >> np.uint64(32)
        p[(i == 10) | (i == 11)] = 0
        total += int(p.sum(dtype=np.uint64))
    return total % 2**64


def decode(frame: bytes, limit: "int | None" = None) -> bytes:
    """The raw bytes of the chunk. limit: the raw length that the caller expects; None takes the header's."""
    frame = bytes(frame)
    head = header(frame)
    values = decode_in_codec_order(frame, head, limit)
    if not head.swapped:
        return values
    e, f, *rest = head.extents  # §5
    elements = np.frombuffer(values, np.uint8).reshape(e, f, math.prod(rest) * head.size)
    return elements.swapaxes(0, 1).tobytes()


def decode_in_codec_order(frame: bytes, head: Header, limit: "int | None") -> bytes:
    raw, sections = head.raw_length, []
    refuse("F15", limit is not None and raw != limit, f"{raw} raw bytes, expected are {limit}")
    end = 56 + 4 * len(head.extents) + 8 * len(head.section_lengths)
    for k, length in enumerate(head.section_lengths):  # §4.1
        begin = 8 * whole(end, 8)
        refuse("F16", begin + length > len(frame), f"section {k} ends at {begin + length}, the frame at {len(frame)}")
        refuse("F17", any(frame[end:begin]), f"a byte of the filling before section {k} is not 0")
        end = begin + length
        sections.append(memoryview(frame)[begin:end])
    refuse("F16", end != len(frame), f"the last section ends at {end}, the frame at {len(frame)}")
    if head.codec == "stored":
        refuse("F15", len(sections[0]) != raw, f"a section of {len(sections[0])} bytes, {raw} raw bytes")
        return bytes(sections[0])
    decoders: dict[str, Any] = {
        "szx": szx, "lorenzo": lorenzo, "ndzip": ndzip, "bytes": shuffled, "planes": planes, "scaled": scaled,
        "dense": dense,
    }
    with np.errstate(all="ignore"):  # §5: infinities and NaN are what IEEE 754 makes of them
        if head.codec in ("szx", "lorenzo", "planes", "dense") and head.type & ~0x1000 in HALVES:
            wide = dataclasses.replace(head, type=0x17084041, raw_length=2 * raw)
            y = np.frombuffer(decoders[head.codec](wide, *sections), "<f4")
            return ordered(lower(y, head.mantissa), head)
        if head.codec == "lorenzo" and head.mode == 9:
            wide = dataclasses.replace(head, type=0x340B4081, raw_length=8 * head.values, mode=1, bound=0.5)
            y = np.frombuffer(lorenzo(wide, *sections), "<f8")
            return ordered(nearest(y).astype(f"<u{head.size}"), head)
        if head.codec == "planes" and head.size < 4:
            wide = dataclasses.replace(head, type=0x40, raw_length=4 * head.values)
            return ordered(np.frombuffer(planes(wide, *sections), "<u4").astype(f"<u{head.size}"), head)
        decoded: bytes = decoders[head.codec](head, *sections)
    return decoded


def lower(y: Array, mantissa: int) -> Array:
    """§5: f32 rounded to the nearest 16-bit numbers with `mantissa` bits of mantissa."""
    bits = y.view("<u4")
    sign, magnitude = bits >> 16 & 0x8000, bits & 0x7FFFFFFF
    infinity = (1 << 15) - (1 << mantissa)
    if mantissa == 7:
        near = (magnitude + 0x7FFF + (magnitude >> 16 & 1)) >> 16
    else:
        near = np.abs(y).astype("<f2").view("<u2").astype("<u4")
    odd = infinity | magnitude >> (23 - mantissa) & ((1 << mantissa) - 1)  # infinite or NaN
    return (sign | np.where(magnitude < 0x7F800000, np.minimum(near, infinity - 1), odd)).astype("<u2")


def nearest(y: Array) -> Array:
    """§5: f64 as the nearest integers of 8 bytes."""
    inside = np.abs(y) < 2.0**63
    whole = np.where(inside, np.rint(y), 0).astype("<i8")
    ends = np.where(y < 0, -(2**63), np.where(y > 0, 2**63 - 1, 0)).astype("<i8")
    return np.where(inside, whole, ends).view("<u8")


def ordered(words: Array, head: Header) -> bytes:
    """§5: little-endian words as bytes in the type's order."""
    raw: bytes = (words.byteswap(inplace=True) if head.big_endian else words).tobytes()
    return raw


def tiles(ends: Bytes, count: int, payload: Bytes, rules: tuple[str, str, str]) -> list[Bytes]:
    """The payloads of tiles that end at `ends`, in units of 4 bytes. rules: on their count, their order, the last."""
    refuse(rules[0], len(ends) != 4 * count, f"ends of {len(ends)} bytes for {count} tiles")
    begin, parts = 0, []
    for k, end in enumerate(4 * np.frombuffer(ends, "<u4").astype(np.int64)):
        refuse(rules[1], not begin <= end <= len(payload), f"tile {k} from {begin} to {end} of {len(payload)} bytes")
        parts.append(payload[begin:end])
        begin = end
    refuse(rules[2], begin != len(payload), f"the last tile ends at {begin}, the payload at {len(payload)}")
    return parts


# -------------------------------------------------------------------------------------------------- szx.FORMAT.md
ZERO, CONSTANT, RAW = 0, 1, 2


def szx(head: Header, table: Bytes, payload: Bytes) -> bytes:
    parts = tiles(table, whole(head.values, 4096), payload, ("S1", "S2", "S3"))
    out = np.empty(head.values, f"<u{head.size}")
    for k, part in enumerate(parts):
        szx_tile(head, f"of tile {k}", part, out[4096 * k : 4096 * (k + 1)])
    return ordered(out, head)


def szx_tile(head: Header, where: str, payload: Bytes, out: Array) -> None:
    """§3.1: the six parts in their order, then §4. S10 is broken where a part is beyond the payload, or a byte left."""
    at = 0

    def take(length: int) -> Array:
        nonlocal at
        at += length
        refuse("S10", at > len(payload), f"{len(payload)} bytes {where}, its parts need {at} or more")
        return np.frombuffer(payload[at - length : at], np.uint8)

    blocks = [out[i : i + 128] for i in range(0, len(out), 128)]
    part = take(4 * whole(len(blocks), 4))  # A
    kinds = [szx_kind(head, int(kind), f"of block {i} {where}") for i, kind in enumerate(part[: len(blocks)])]
    refuse("S7", part[len(blocks) :].any(), f"a byte behind the kinds {where} is not 0")

    bases, places, outliers, codes = {}, {}, {}, {}  # by block
    for i, (low, _) in enumerate(kinds):  # B
        if low == CONSTANT or (low > RAW and head.mode != 3):
            bases[i] = take(head.size).view(out.dtype)
    for i, (_, high) in enumerate(kinds):  # C
        if high >= 2:
            places[i] = np.flatnonzero(np.unpackbits(take(16), bitorder="little"))
            unfit = len(places[i]) == 0 or places[i][-1] >= len(blocks[i])
            refuse("S8", unfit, f"bitmap of block {i} {where}, of {len(blocks[i])} values: {places[i]}")
    for i in places:  # D
        outliers[i] = take(head.size * (1 if kinds[i][1] == 3 else len(places[i]))).view(out.dtype)
    for i, (low, high) in enumerate(kinds):  # E
        if low > RAW and high != 1:
            bits = np.unpackbits(take(32), bitorder="little")
            codes[i] = bits[:128] + 2 * bits[128:]
            unfit = codes[i].max() > min(3, whole(low - 2, 8))
            refuse("S9", unfit, f"code {codes[i].max()} of block {i} {where}, which has {low - 2} required bits")

    for i, (low, _) in enumerate(kinds):  # F, and the values
        if low == ZERO:
            blocks[i][:] = 0
        elif low == CONSTANT:
            blocks[i][:] = bases[i]
        elif low == RAW:
            blocks[i][:] = take(head.size * len(blocks[i])).view(out.dtype)
        else:
            t = szx_words(whole(low - 2, 8), codes.get(i), take)
            blocks[i][:] = szx_values(head, low - 2, t, bases.get(i))[: len(blocks[i])]
        if i in places:
            blocks[i][places[i]] = outliers[i]
    refuse("S10", len(payload) != 4 * whole(at, 4), f"{len(payload)} bytes {where}, its parts need {at}")
    refuse("S11", any(payload[at:]), f"a byte at the end {where} is not 0")


def szx_kind(head: Header, kind: int, where: str) -> tuple[int, int]:
    """§3.2: the low 6 and the high 2 bits of a kind."""
    low, high = kind & 63, kind >> 6
    refuse("S4", (low <= RAW and high == 1) or (low == RAW and high >= 2), f"kind {kind:#04x} {where}")
    if low > RAW:
        least, most = (1 + head.exponent, min(8 * head.size, 61)) if head.mode == 3 else (1, head.mantissa)
        refuse("S5", not least <= low - 2 <= most, f"{low - 2} required bits {where}, allowed are {least} to {most}")
        refuse("S6", head.mode != 3 and not szx_step(head), f"coded {where}, but {head.bound!r} has no usable step")
    return low, high


def szx_step(head: Header) -> Optional[float]:
    """§5: the step g, or None where it is not usable."""
    exponent = math.frexp(head.bound)[1]  # e(b) + 1, as the fraction of frexp is below 1
    limit = 126 if head.size == 4 else 1022
    return 2.0**exponent if head.bound >= 2.0**-1022 and -limit <= exponent <= limit else None


def szx_words(R: int, codes: Any, take: Take) -> Array:
    """§3.3: the words t(0) ... t(127) of a coded block; codes are None where there are none."""
    d = np.zeros(128, np.uint64)
    for p in range(R):
        here = np.arange(128) if codes is None else np.flatnonzero(codes <= p)
        d[here] |= take(len(here)).astype(np.uint64) << np.uint64(8 * (R - 1 - p))
    return d if codes is None else np.bitwise_xor.accumulate(d)


def szx_values(head: Header, q: int, t: Array, base: Any) -> Array:
    """§5: the bits of a coded block's values."""
    bits, real = np.dtype(f"<u{head.size}"), np.dtype(f"<f{head.size}")
    if head.mode == 3:
        return (t << np.uint64(8 * head.size - q)).astype(bits)
    power = np.array([2.0**head.mantissa], real)
    k = (power.view(bits) + t.astype(bits)).view(real) - power
    return (base.view(real) + k * np.array([szx_step(head)], real)).view(bits)


# ---------------------------------------------------------------------------------------------- lorenzo.FORMAT.md
EMPTY, HUFFMAN, FIXED, RAW_TILE = 0, 1, 2, 3
CLASSES = ((2,), (1,), (0,), (2, 1), (2, 0), (1, 0), (2, 1, 0))  # §4.4: along which axes points are new


def lorenzo(head: Header, first: Bytes, kinds: Bytes, lengths: Bytes, payload: Bytes) -> bytes:
    codebook, base = lorenzo_head(head, bytes(first))

    def residuals(kind: int, where: str, rest: bytes, shape: tuple[int, ...]) -> Array:
        n, group = math.prod(shape), kind >> 4 & 3
        if group == EMPTY:
            return np.zeros(n, np.int32)
        z = lorenzo_fixed(where, rest, n) if group == FIXED else lorenzo_stream(where, rest, n, codebook)
        return (z >> np.uint32(1)).view(np.int32) ^ -(z & np.uint32(1)).view(np.int32)  # §3.2: zigzag order

    return lorenzo_tiles(head, kinds, lengths, payload, base, 4, residuals)


def lorenzo_tiles(
    head: Header, kinds: Bytes, lengths: Bytes, payload: Bytes, base: Optional[Array], unit: int, residuals: Residuals
) -> bytes:
    """§3, with lengths in units of `unit` bytes, and §4.1."""
    e, t = lorenzo_tiling(head.extents)
    counts = [whole(e[k], t[k]) for k in range(3)]
    count = math.prod(counts)
    refuse("L8", len(kinds) != count, f"kinds of {len(kinds)} bytes for {count} tiles")
    parts = lorenzo_payloads(lengths, count, payload, unit)
    out = np.empty(e, f"<u{head.size}")
    for k, (z, y, x) in enumerate(itertools.product(*map(range, counts))):
        tile = out[z * t[0] : (z + 1) * t[0], y * t[1] : (y + 1) * t[1], x * t[2] : (x + 1) * t[2]]
        tile[...] = lorenzo_tile(head, f"of tile {k}", kinds[k], bytes(parts[k]), tile.shape, base, residuals)
    return ordered(out, head)


def lorenzo_payloads(section: Bytes, count: int, payload: Bytes, unit: int) -> list[Bytes]:
    """§3: the tiles' payloads, by their lengths in section 2, which are in units of `unit` bytes."""
    words = whole(count, 2)
    size = 4 * words + 4 * (whole(count, 64) - 1)
    refuse("L9", len(section) != size, f"lengths of {len(section)} bytes, {count} tiles have {size}")
    numbers = np.frombuffer(section, "<u4")
    lengths = numbers[:words].view("<u2")
    refuse("L10", count % 2 and lengths[-1], f"the 2 bytes behind the lengths of {count} tiles are not 0")
    ends = np.cumsum(lengths[:count], dtype=np.int64)
    for k, start in zip(range(64, count, 64), numbers[words:]):
        refuse("L11", start != ends[k - 1], f"tile {k} starts at unit {start}, tile {k - 1} ends at {ends[k - 1]}")
    last = unit * ends[-1]
    refuse("L12", last != len(payload), f"the last tile ends at {last}, the payload at {len(payload)}")
    return [payload[unit * (end - length) : unit * end] for end, length in zip(ends.tolist(), lengths.tolist())]


def lorenzo_tiling(extents: tuple[int, ...]) -> tuple[list[int], list[int]]:
    """§3.1: the chunk's three extents and those of its tiles."""
    e = list(extents)
    while len(e) > 3:
        e[:2] = [e[0] * e[1]]
    e = [1] * (3 - len(e)) + e
    t = [1, 1, 1]
    while True:
        grown = [min(2 * t[k], e[k]) for k in range(3)]
        candidates = [k for k in range(3) if t[k] < e[k] and math.prod(t) // t[k] * grown[k] <= 8192]
        if not candidates:
            return e, t
        k = min(candidates, key=lambda k: (t[k], -k))
        t[k] = grown[k]


def lorenzo_head(header: Header, head: bytes) -> tuple[Optional[Codebook], Optional[Array]]:
    """§3.2: the codebook, and the base, None of none."""
    end = 1 + whole(head[0], 2) if head else 0
    based = header.mode != 3 and len(head) == end + header.size
    refuse("L1", not head or (len(head) != end and not based), f"a head of {len(head)} bytes")
    return lorenzo_codebook(head[:end]), lorenzo_base(head[end:], header) if based else None


def lorenzo_base(stored: bytes, header: Header) -> Array:
    """§3.2: the base."""
    base = np.frombuffer(stored, f"<f{header.size}")
    refuse("L31", base[0] == 0 or not np.isfinite(base[0]), f"a base of {base}")
    return base


def lorenzo_codebook(head: bytes) -> Optional[Codebook]:
    """§3.2: a codeword's length and meaning by the next 11 bits of a stream; None of no codewords."""
    N = head[0]
    refuse("L2", N > 188, f"{N} symbols, allowed are 188")
    lengths = [four for byte in head[1 : 1 + whole(N, 2)] for four in (byte & 15, byte >> 4)]
    refuse("L3", N % 2 and lengths.pop(), f"the 4 bits behind the last of {N} symbols are not 0")
    refuse("L4", N and lengths[-1] == 0, f"the last symbol, {N - 1}, has no codeword")
    refuse("L5", max(lengths, default=0) > 11, "a codeword of more than 11 bits")
    used = sum(32768 >> length for length in lengths if length)
    refuse("L6", used > 32768, f"an over-full codebook: {used} / 32768")
    refuse("L7", N and used < 32768, f"an under-full codebook: {used} / 32768")
    table: list[Any] = [None] * 2048
    code = 0
    for length in range(1, 12):
        code *= 2
        for symbol in (s for s in range(N) if lengths[s] == length):
            low = int(f"{code:0{length}b}"[::-1], 2)  # the codeword's highest bit comes first and is the lowest here
            table[low :: 1 << length] = [(length, *lorenzo_symbol(symbol))] * (2048 >> length)
            code += 1
    return table if N else None


def lorenzo_symbol(symbol: int) -> tuple[Optional[int], int, int]:
    """§3.2: zeros, None for all that are left; z of the residual behind them, 0 for none; how many bits belong to it.

    What these bits say is added to the zeros or, where there are none, to z.
    """
    if symbol == 0:
        return None, 0, 0
    if 35 <= symbol <= 65:
        return 0, symbol - 34, 0
    if 66 <= symbol <= 119:
        k = symbol - 66
        return 0, 2 + k % 2 << 4 + k // 2, 4 + k // 2  # e - 1 is 4 + k div 2
    c, z = (symbol - 1, 0) if symbol <= 34 else ((symbol - 120) // 2, 1 + symbol % 2)  # -1 is z = 1, and 1 is z = 2
    if c < 16:
        return c + 1, z, 0
    k = 4 + (c - 16) // 2
    return (1 << k) + (c % 2 << k - 1), z, k - 1


def lorenzo_tile(
    head: Header,
    where: str,
    kind: int,
    payload: bytes,
    shape: tuple[int, ...],
    base: Optional[Array],
    residuals: Residuals,
) -> Array:
    """§4.1: the bits of a tile's values."""
    n, bits = math.prod(shape), np.dtype(f"<u{head.size}")
    interpolated, group, outliers, finer = kind >> 3 & 1, kind >> 4 & 3, kind >> 6 & 1, kind >> 7  # §3.3
    axes = [2 - k for k in range(3) if kind >> k & 1]  # x, y, z are 2, 1, 0
    what = f"kind {kind:#04x} {where}"
    unfit = (group == VECTORS and kind & 0x8F) or (finer and not interpolated and group != CODED)
    refuse("D9", head.codec == "dense" and unfit, f"{what}: vectors with axes or bit 7, or filtered and not coded")
    refuse("L16", group == RAW_TILE and kind != RAW_TILE << 4, f"{what}: raw, but other bits are 1")
    unfit = head.codec == "lorenzo" and finer and not interpolated
    refuse("L13", unfit, f"{what}: bit 7 is 1, but it is not interpolated")
    refuse("L14", interpolated and not axes, f"{what}: interpolated, but without axes")
    refuse("L14", interpolated and any(shape[k] == 1 for k in axes), f"{what}: an axis of one value, of {shape}")
    refuse("L15", interpolated and head.mode == 3, f"{what}: interpolated in mode 3")
    if group == RAW_TILE:
        refuse("L17", len(payload) != n * head.size, f"{len(payload)} bytes {where}, which is raw, of {n} values")
        return np.frombuffer(payload, bits, n).reshape(shape)

    places, values, rest = lorenzo_outliers(where, payload, shape, bits) if outliers else ([], [], payload)
    refuse("L18", group == EMPTY and rest, f"{len(rest)} bytes of residuals {where}, which is empty")
    r = residuals(kind, where, rest, shape)
    if interpolated:
        q = interpolate(r, shape, axes, finer)
    else:
        q = r.reshape(shape)
        for axis in axes:  # §4.3
            q = np.cumsum(q, axis=axis, dtype=np.int32)
    x = lorenzo_values(head, q, interpolated, base).ravel()
    x[places] = values
    return x.reshape(shape)


def lorenzo_outliers(
    where: str, payload: bytes, shape: tuple[int, ...], bits: np.dtype[Any]
) -> tuple[Any, Array, bytes]:
    """§3.4: the places of the outliers, the bits of their values, and what follows in the payload."""
    n = math.prod(shape)
    refuse("L20", len(payload) < 4, f"no count of outliers {where}")
    (head,) = struct.unpack_from("<I", payload)
    mask, differences, count = head >> 31, head >> 31 & head >> 30, head & (0x3FFFFFFF if head >> 31 else 0xFFFFFFFF)
    refuse("L19", not 1 <= count <= n, f"{count} records or runs of outliers {where}, allowed are 1 to {n}")
    end = 4 + (bits.itemsize + 4 * whole(count, 2) if mask else (4 + bits.itemsize) * count)
    refuse("L20", end > len(payload), f"outliers of {end} bytes {where}, which has {len(payload)}")
    if mask:
        runs = np.frombuffer(payload, np.uint8, 2 * count, 4 + bits.itemsize)
        filling = payload[4 + bits.itemsize + 2 * count : end]
        refuse("L32", any(filling), f"bytes behind the last run of outliers {where}")
        last = int(runs.sum(dtype=np.int64))
        refuse("L33", last > n, f"runs of outliers {where} up to place {last - 1} of {n}")
        slowest = next((axis for axis in (0, 1) if shape[axis] > 1), None)
        refuse("L34", differences and slowest is None, f"differences of a mask {where}, which has one row")
        marks = np.zeros(n, np.int64)
        marks[:last] = np.repeat(np.arange(2 * count) % 2, runs)
        if differences and slowest is not None:
            marks = np.cumsum(marks.reshape(shape), axis=slowest).ravel() % 2
        same = np.frombuffer(payload, bits, 1, 4)
        return np.flatnonzero(marks), same, payload[end:]
    records = np.frombuffer(payload, "<u4", count, 4).astype(np.int64)
    first, many = records & 0xFFFF, (records >> 16) + 1
    behind = first + many
    refuse("L21", (first[1:] < behind[:-1]).any(), f"records of outliers {where} do not ascend, or overlap")
    refuse("L22", (behind > n).any(), f"outliers {where} up to place {behind.max(initial=0) - 1} of {n}")
    places = [place for a, b in zip(first, behind) for place in range(a, b)]
    return places, np.repeat(np.frombuffer(payload, bits, count, 4 + 4 * count), many), payload[end:]


def lorenzo_fixed(where: str, rest: bytes, n: int) -> Array:
    """§3.4: n numbers of fixed width."""
    w = struct.unpack_from("<I", rest)[0] if len(rest) >= 4 else 0
    refuse("L23", not 1 <= w <= 32, f"fixed width {w} {where}, allowed are 1 to 32")
    words = whole(n * w, 32)
    refuse("L24", len(rest) != 4 + 4 * words, f"{len(rest) - 4} bytes of residuals {where}, not {words} words")
    sequence = np.unpackbits(np.frombuffer(rest, np.uint8, offset=4), bitorder="little")
    refuse("L25", sequence[n * w :].any(), f"a bit behind the last residual {where} is not 0")
    powers = np.uint32(1) << np.arange(w, dtype=np.uint32)
    return (sequence[: n * w].reshape(n, w) * powers).sum(axis=1, dtype=np.uint32)


def lorenzo_stream(where: str, rest: bytes, n: int, codebook: Any) -> Array:
    """§4.2: n numbers of a Huffman stream."""
    refuse("L26", not rest or codebook is None, f"a stream of {len(rest)} bytes {where}, or an empty codebook")
    stream, total = rest + bytes(8), 8 * len(rest)
    z, i, at = [0] * n, 0, 0
    while i < n:
        ahead = int.from_bytes(stream[at >> 3 : (at >> 3) + 8], "little") >> (at & 7)  # at least 41 bits are needed
        length, zeros, residual, extra = codebook[ahead & 2047]
        at += length + extra
        refuse("L27", at > total, f"the stream {where} ends before its residual {i}")
        more = ahead >> length & (1 << extra) - 1
        if zeros is None:
            zeros = n - i
        elif zeros:
            zeros += more
        else:
            residual += more
        i += zeros
        refuse("L28", i + (residual > 0) > n, f"{zeros} zeros {where} up to residual {i} of {n}, or one behind them")
        if residual:
            z[i] = residual
            i += 1
    refuse("L29", total - at >= 32, f"{total - at} bits {where} behind the last residual")
    refuse("L30", int.from_bytes(stream[at >> 3 :], "little") >> (at & 7), f"a bit {where} behind the last residual")
    return np.array(z, np.uint32)


def interpolate(r: Array, shape: tuple[int, ...], axes: list[int], finer: int) -> Array:
    """§4.4: R from the residuals, in wrapping numbers of 32 bits, with lines along `axes`."""
    extents = lattices(shape)
    steps = [np.int32([256, 205, 164, 131, 128][min(level, 4)] if finer else 256) for level in range(len(extents))]
    R, at = (r[:1] * steps[-1]).reshape(1, 1, 1), 1
    for level in range(len(extents) - 2, -1, -1):
        parts = [coarse_and_new(n) for n in extents[level]]
        smaller, R = R, np.zeros(extents[level], np.int32)
        R[np.ix_(*(coarse for coarse, _ in parts))] = smaller
        for new in CLASSES:
            points = np.ix_(*(parts[k][k in new] for k in range(3)))
            size = np.broadcast(*points).shape
            if count := math.prod(size):
                lines = [k for k in new if k in axes] or new
                P = mean_of([line(R, parts, new, k, level, shape[k]) for k in lines])
                R[points] = P + steps[level] * r[at : at + count].reshape(size)
                at += count
    return R


def lattices(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    """§4.4: the extents of the lattices of a tile, by level."""
    extents = [shape]
    while math.prod(extents[-1]) > 1:
        extents.append(tuple(len(coarse_and_new(n)[0]) for n in extents[-1]))
    return extents


def coarse_and_new(n: int) -> tuple[Array, Array]:
    """§4.4: the coarse and the new indices of an axis of n points."""
    new = np.arange(1, max(n - 1, 2), 2) if n > 1 else np.arange(0)
    return np.setdiff1d(np.arange(n), new), new


def mean_of(predictions: list[Any]) -> Any:
    """§4.4: P of predictions along one line, two or three, in the order x, y, z."""
    p, *more = predictions
    if len(more) == 1:
        return more[0] + ((p - more[0]) >> 1)
    if len(more) == 2:
        return more[1] + ((85 * (p + more[0] - 2 * more[1]) + 128) >> 8)
    return p


def line(R: Array, parts: list[tuple[Array, Array]], new: tuple[int, ...], axis: int, level: int, e: int) -> Array:
    """§4.4: predictions along `axis`, of e values in the tile, for all points of the class that is new along `new`."""
    h = 1 << level
    f = R[np.ix_(*(parts[k][k in new and k != axis] for k in range(3)))]
    f = np.moveaxis(f, axis, 0)  # the points that are coarse along the axis
    coarse, points = (np.minimum(indices.astype(np.int64) * h, e - 1) for indices in parts[axis])  # their places
    # Before the k-th new point is the k-th coarse one, which is b; a, c and d are those beside it.
    around = np.arange(len(points)) + np.arange(-1, 3)[:, None]
    there = (around >= 0) & (around < len(coarse))
    around = np.where(there, around, np.arange(len(points)))
    there[3] &= coarse[around[3]] - coarse[around[2]] >= h
    x = coarse[around] - points

    def weight(j: int) -> Array:
        others = [k for k in range(4) if k != j]
        N = np.prod([np.where(there[k], -x[k], 1) for k in others], axis=0)
        M = np.prod([np.where(there[k], x[j] - x[k], 1) for k in others], axis=0)
        M[~there[j]] = 1
        return np.where(there[j], (2 * 65536 * N + M) // (2 * M), 0)

    def rows(v: Array) -> Array:
        return v.reshape(-1, 1, 1)

    a, b, c, d = f[around]
    spread = sum(rows(weight(j)) * (v - b).astype(np.int64) for j, v in ((0, a), (2, c), (3, d)))
    weighted = b + ((spread + 32768) >> 16).astype(np.int32)
    even = there.all(axis=0) & (x == np.array([[-3], [-1], [1], [3]]) * h).all(axis=0)
    return np.moveaxis(np.where(rows(even), ((b + c) >> 1) + ((b + c - a - d) >> 4), weighted), 0, axis)


def lorenzo_values(head: Header, q: Array, interpolated: int, base: Optional[Array]) -> Array:
    """§5: the bits of the values."""
    bits, real = f"<u{head.size}", f"<f{head.size}"
    if head.mode != 3:
        step = 2 * head.bound / 257 if interpolated else 2 * head.bound
        x = (q * np.float64(step)).astype(real)
        return (x if base is None else base + x).view(bits)
    exact = head.bound * 2.0 ** (head.mantissa + 1)
    D = np.uint64(2**64 - 1 if exact >= 2**64 else max(math.floor(exact), 1))
    sign = np.uint64(8 * head.size - 1)
    magnitude = np.abs(q.astype(np.int64)).astype(np.uint64) * D & (np.uint64(1) << sign) - np.uint64(1)
    return (magnitude | (q < 0).astype(np.uint64) << sign).astype(bits)


# ------------------------------------------------------------------------------------------------ ndzip.FORMAT.md
def ndzip(head: Header, grid: Bytes, stream: Bytes) -> bytes:
    n, W, size = head.values, head.size, len(stream)
    D = struct.unpack_from("<I", grid)[0] if len(grid) >= 4 else 0  # §3.1
    refuse("N1", not 1 <= D <= 3 or len(grid) != 4 + 4 * D, f"a grid of rank {D} in {len(grid)} bytes")
    extents = struct.unpack_from(f"<{D}I", grid, 4)
    refuse("N2", 0 in extents or math.prod(extents) != n or n >= 2**32, f"a grid of {extents} for {n} values")
    side = {1: 4096, 2: 64, 3: 16}[D]
    counts = [e // side for e in extents]
    cubes, columns = math.prod(counts), 4096 // (8 * W)
    table, border = whole(4 * cubes, W), n - 4096 * cubes  # words, §3.2
    refuse("N3", size % W or size < W * (table + border), f"{size} bytes of stream for {cubes} cubes, {border} values")
    words = np.frombuffer(stream, f"<u{W}", size // W)
    refuse("N4", any(stream[4 * cubes : W * table]), "the filling of the table is not 0")
    ends = [table] + [table + int(end) for end in np.frombuffer(stream, "<u4", cubes)]
    for k in range(cubes):
        length = ends[k + 1] - ends[k]
        refuse("N5", length < 0, f"the end of cube {k} is below its predecessor's")
        refuse("N6", not columns <= length <= columns + 4096, f"cube {k} of {length} words")
    refuse("N7", ends[-1] != len(words) - border, f"cubes end at word {ends[-1]}, not {len(words) - border}")

    out = np.empty(n, words.dtype).reshape(extents)
    outside = np.ones(extents, bool)
    for k, place in enumerate(itertools.product(*map(range, counts))):
        cube = tuple(slice(side * p, side * (p + 1)) for p in place)
        out[cube] = ndzip_cube(head, k, words[ends[k] : ends[k + 1]], (side,) * D)
        outside[cube] = False
    out[outside] = words[ends[-1] :]
    return ordered(out, head)


def ndzip_cube(head: Header, k: int, words: Array, shape: tuple[int, ...]) -> Array:
    """§4: one cube. Bits are arrays of 0 and 1, the highest bit of a word first."""
    word, B = words.dtype, 8 * head.size
    columns, big = 4096 // B, word.newbyteorder(">")
    stored = np.unpackbits(words[:columns].astype(big).view(np.uint8)).astype(bool)
    planes = np.zeros(4096, big)
    have, want = len(words) - columns, np.count_nonzero(stored)
    refuse("N8", have != want, f"cube {k} has {have} planes, its heads say {want}")
    planes[stored] = words[columns:]
    bits = np.unpackbits(planes.view(np.uint8)).reshape(columns, B, B)  # §4.1: column, plane, value
    x = np.packbits(bits.transpose(0, 2, 1)).view(big).astype(word)
    one, top = word.type(1), word.type(B - 1)
    x = np.where(x >> top, x ^ ((one << top) - one), x).reshape(shape)  # §4.2
    for axis in range(len(shape)):  # §4.3
        x = np.cumsum(x, axis=axis, dtype=word)
    return x >> one | x << top if head.number == 1 else x  # §4.4


# ------------------------------------------------------------------------------------------------ bytes.FORMAT.md
def shuffled(head: Header, first: Bytes, ends: Bytes, payload: Bytes) -> bytes:
    refuse("B1", len(first) != 8, f"a head of {len(first)} bytes, not 8")
    stride, unit, step = struct.unpack_from("<HHI", first)
    refuse("B2", not 1 <= stride <= 255, f"stride {stride}, allowed are 1 to 255")
    refuse("B3", not 1 <= step <= 1048576 or step % stride, f"tiles of {step} bytes with stride {stride}")
    refuse("B10", unit > 1, f"unit {unit}, allowed are 0, bytes, and 1, bits")
    count = whole(head.raw_length, step)
    refuse("B4", len(ends) != 8 * count, f"ends of {len(ends)} bytes for {count} tiles")
    begin, parts = 0, []
    for k in range(count):
        (end,) = struct.unpack_from("<Q", ends, 8 * k)
        n = min(step, head.raw_length - k * step)
        refuse("B5", end <= begin, f"tile {k} from {begin} to {end}")
        refuse("B6", end - begin > n, f"tile {k} of {end - begin} bytes, its raw ones are {n}")
        refuse("B7", end > len(payload), f"tile {k} ends at {end}, the payload at {len(payload)}")
        parts.append((bytes(payload[begin:end]), n))
        begin = end
    refuse("B7", begin != len(payload), f"the last tile ends at {begin}, the payload at {len(payload)}")
    return b"".join(unshuffled(f"tile {k}", *part, stride, unit) for k, part in enumerate(parts))


def unshuffled(what: str, code: bytes, n: int, stride: int, unit: int) -> bytes:
    """§4: the n raw bytes of a tile."""
    if len(code) == n:
        return code
    b = np.frombuffer(zstd(what, code, n), np.uint8)
    if unit:
        q = n // (8 * stride)  # whole groups of 8 elements
        planes = b[: 8 * q * stride].reshape(stride, 8, q)  # byte, bit, group
        bits = np.unpackbits(planes, axis=2, bitorder="little")
        raw = np.packbits(bits, axis=1, bitorder="little").reshape(stride, 8 * q)
        return raw.T.tobytes() + b[8 * q * stride :].tobytes()
    m = n // stride  # whole elements
    return b[: m * stride].reshape(stride, m).T.tobytes() + b[m * stride :].tobytes()


def zstd(what: str, code: bytes, n: int) -> bytes:
    """The n bytes of exactly one Zstandard frame (RFC 8878), piece by piece: a lie takes no more than some MiB."""
    try:
        from compression.zstd import DecompressionParameter, ZstdDecompressor, ZstdError
        frame = ZstdDecompressor(options={DecompressionParameter.window_log_max: 31})
    except ImportError:
        from zstandard import ZstdDecompressor, ZstdError
        frame = ZstdDecompressor(max_window_size=1 << 31).decompressobj()
    refuse("B8", len(code) < 5 or code[:4] != bytes.fromhex("28 B5 2F FD"), f"{what} is no Zstandard frame")
    single, size, dictionary = code[4] >> 5 & 1, code[4] >> 6, code[4] & 3  # RFC 8878 §3.1.1.1: the content size
    place, size = 6 - single + (0, 1, 2, 4)[dictionary], (single, 2, 4, 8)[size]
    stated = int.from_bytes(code[place : place + size], "little") + (256 if size == 2 else 0)
    refuse("B9", size and stated != n, f"{what} states {stated} bytes of content, its raw ones are {n}")
    out, at = bytearray(), 0
    try:
        while at < len(code) and not frame.eof and len(out) <= n:
            out += frame.decompress(code[at : at + 256])
            at += 256
    except ZstdError as error:
        refuse("B8", True, f"{what}: {error}")
    refuse("B9", len(out) > n, f"{what} gives more than its {n} raw bytes")
    refuse("B8", not frame.eof or frame.unused_data or at < len(code), f"{what} is not one whole Zstandard frame")
    refuse("B9", len(out) < n, f"{what} gives {len(out)} bytes, its raw ones are {n}")
    return bytes(out)


# ----------------------------------------------------------------------------------------------- planes.FORMAT.md
QUANTA, WIDE_QUANTA, BITS, RAW_PLANES = 0, 1, 2, 3  # classes of tiles
ABSENT, FULL, SPARSE = 0, 1, 2  # modes of bit planes
COLUMNS = (0, 2, 1, 3)  # p(c)
# §3.4: bits in order of fields
FIELDS = [8 * p + 4 * layer + r for layer in range(2) for r in range(4) for p in COLUMNS]


def planes(head: Header, table: Bytes, payload: Bytes) -> bytes:
    c, extents = planes_components(head.extents)
    G, extents, tile = planes_tiling(extents, len(extents) - (c > 1))
    counts = [whole(e, t) for e, t in zip(extents, tile)]
    parts = tiles(table, math.prod(counts), payload, ("P1", "P2", "P3"))
    out = np.empty(extents, f"<u{head.size}")
    for k, place in enumerate(itertools.product(*map(range, counts))):
        inside = out[tuple(slice(t * p, t * (p + 1)) for t, p in zip(tile, place))]
        inside[...] = planes_tile(head, G, f"of tile {k}", parts[k], inside.shape)
    return ordered(out.reshape(c, -1).T, head)


def planes_components(extents: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
    """§3.1: how many components are apart, 1 where they are not, and the extents then."""
    if len(extents) >= 2 and 2 <= extents[-1] <= 15:
        return extents[-1], (extents[-1], *extents[:-1])
    return 1, extents


def planes_tiling(extents: tuple[int, ...], axes: int) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    """§3.1, `axes` its A: the grid rank, the array's three extents and those of a tile."""
    e, n = (1, 1, *extents), math.prod(extents)
    grids = [(3, (math.prod(e[:-2]), e[-2], e[-1]), (8, 16, 32)), (2, (1, math.prod(e[:-1]), e[-1]), (1, 128, 32))]
    for G, extent, tile in grids:
        held = 4096 * math.prod(whole(a, b) for a, b in zip(extent, tile))
        if axes >= G and held <= 3 * n:
            return G, extent, tile
    return 1, (1, 1, n), (1, 1, 4096)


def planes_step(head: Header) -> tuple[Any, bool]:
    """§5: the step s, a number of the type, and whether it is usable."""
    s = np.float64(head.bound * 1.9921875).astype(f"<f{head.size}")
    limit = 2.0 ** (100 if head.size == 4 else 1000)
    return s, 1 / limit <= s <= limit


def planes_tile(head: Header, G: int, where: str, payload: Bytes, shape: tuple[int, ...]) -> Array:
    """§3.2 and §3.3, then §4: the bits of the values of a tile that lie in the array, as many as `shape` says."""
    W, at = head.size, 0

    def take(length: int, kind: str) -> Array:
        nonlocal at
        at += length
        refuse("P10", at > len(payload), f"{len(payload)} bytes {where}, its parts need {at} or more")
        return np.frombuffer(payload[at - length : at], kind)

    refuse("P4", len(payload) == 0, f"no words {where}")
    (word,) = map(int, take(4, "<u4"))
    kind, predictor = word & 3, word >> 2 & 3
    if kind == RAW_PLANES:
        refuse("P5", word != 3, f"head {word:#010x} {where}, raw: another bit than 0 and 1 is not 0")
        refuse("P10", len(payload) != 4 + W * math.prod(shape), f"{len(payload)} bytes {where}, raw, of shape {shape}")
        return take(len(payload) - 4, f"<u{W}").reshape(shape)
    refuse("P5", predictor > G, f"head {word:#010x} {where}: predictor {predictor}, the grid's rank is {G}")
    unfit: Any = kind != BITS and (head.mode == 9 or not planes_step(head)[1])
    refuse("P6", unfit, f"class {kind} {where}, mode {head.mode}, bound {head.bound!r}")

    alone = kind == QUANTA and len(payload) == 4
    if kind == QUANTA:
        exceptions, uniform = word >> 9 & 1, word >> 10 & 1
        unfit = word & (0x7F0 if alone else 0x100 if exceptions else 0x500)
        refuse("P5", unfit, f"head {word:#010x} {where}: the bits {unfit:#x} are not 0")
        slices = [0] * 4 if alone else [1 + (word >> 4 + k & 1) for k in range(4)]
        base = ((word ^ 2**31) - 2**31 >> 11) * (2 if W == 4 else 512)
    else:
        second, third = map(int, take(8, "<u4"))
        exceptions, uniform = third >> 24 & 1, third >> 25 & 1
        others = 0xA0 if kind == WIDE_QUANTA else 0xE0
        unfit = word & others, second & 0x80000, third & (0xFC000000 if exceptions else 0xFE000000)
        refuse("P5", any(unfit), f"head of class {kind} {where}: in its words the bits {unfit} are not 0")
        lengths = planes_lengths(head, where, second, third)
        e = planes_map(head, where, word, second)
        base = take(W, f"<u{W}")
    mask = int(take(4, "<u4")[0]) if exceptions else 0
    count = mask >> 8 & 0x1FFF
    refuse("P8", mask >> 21 or (exceptions and not 1 <= count <= 4096), f"mask {mask:#010x} {where}")
    if kind == QUANTA:
        modes = take(4 * whole(sum(slices), 2), "<u2")
        refuse("P9", modes[sum(slices) :].any(), f"a bit behind the modes {where} is not 0")
        modes = (modes[: sum(slices), None] >> np.arange(0, 16, 2, dtype=np.uint16) & 3).ravel()
        modes = np.split(modes, 8 * np.cumsum(slices)[:3])  # of a block's planes, lowest first
    else:
        modes = [[word >> 8 + 6 * k + 2 * p & 3 for p in range(3)] for k in range(4)]
    D = planes_words(where, kind, modes, [mask >> 2 * k & 3 for k in range(4)] if exceptions else None, take)
    numbers = [planes_numbers(words[:-1]) for words in D]
    if kind == QUANTA:
        d = [planes_quanta(own, max(8 * n - 1, 0)) for own, n in zip(numbers, slices)]
    else:
        d = [planes_fields(f"of block {k} {where}", own, lengths, take) for k, own in enumerate(numbers)]
    values = take(W * (min(count, 1) if uniform else count), f"<u{W}")
    refuse("P10", at != len(payload), f"{len(payload)} bytes {where}, its parts need {at}")
    marks = np.stack([planes_numbers(words[-1:]) for words in D]).astype(bool)
    refuse("P12", marks.sum() != count, f"{marks.sum()} exceptions are marked {where}, it says {count}")

    bits = np.dtype("<i8" if kind == QUANTA else f"<u{W}")
    v = planes_placed(G, np.stack(d).astype(bits))
    for axis in (2, 1, 0)[:predictor]:
        v = np.cumsum(v, axis=axis, dtype=bits)
    m, most = (v, 4096) if kind == QUANTA else ((base + v).view(f"<i{W}"), 2 ** (23 if W == 4 else 52))
    outside = m[(m < -most) | (m >= most)]
    limited = kind == QUANTA or e is not None
    refuse("P13", limited and outside.size, f"{outside[:1]} {where}, allowed are {-most} to {most - 1}")
    x = planes_values(head, kind, kind == WIDE_QUANTA and word >> 6 & 1, None if kind == QUANTA else e, base, v)
    if exceptions:
        instead = np.zeros(4096, x.dtype)
        instead[marks.ravel()] = values
        x = np.where(planes_placed(G, marks), planes_placed(G, instead), x)
    return x[tuple(map(slice, shape))]


def planes_lengths(head: Header, where: str, second: int, third: int) -> tuple[int, Array, Array, Array]:
    """§3.4: z, then for each number that bit planes can say, the bits of its field, what u is besides it, and whether
    its bin holds no length."""
    L, T, z = second & 63, second >> 6 & 127, second >> 13 & 63
    unfit = T + z > 8 * head.size or z > 8 * head.size - 1
    refuse("P14", unfit, f"{T} bits {where} above {z} zeros, in numbers of {8 * head.size} bits")
    highest = [min(s, T) for s in (0, *range(L, L + 5), L + 6, T)]  # length of each bin
    one = [h == last + 1 for h, last in zip(highest, [-1, *highest])]  # bins of one length
    fields = [(h, 0) if not alone else (h - 1, 1 << h - 1) if h else (0, 0) for h, alone in zip(highest, one)]
    bins = [third >> 3 * number & 7 for number in range(8)]
    widths, besides = zip(*(fields[k] for k in bins))
    empty = [k > 0 and highest[k] == highest[k - 1] for k in bins]
    return z, np.array(widths), np.array(besides, np.uint64), np.array(empty)


def planes_map(head: Header, where: str, word: int, second: int) -> Optional[int]:
    """§3.2 and §5: e of map 1, or None for map 0."""
    e = (second ^ 2**31) - 2**31 >> 20
    if word >> 4 & 1:
        refuse("P15", word & 3 != BITS or head.number != 1, f"map 1 {where}, class {word & 3} of type {head.type:08x}")
        limits = (-126, 127) if head.size == 4 else (-1022, 1023)
        refuse("P15", not limits[0] <= e <= limits[1], f"map 1 {where} with 2^{e}, from {limits} are allowed")
        return e
    refuse("P15", e != 0, f"map 0 {where} with e = {e}")
    return None


def planes_words(
    where: str, kind: int, modes: list[Any], masks: Optional[list[int]], take: Callable[[int, str], Array]
) -> list[Array]:
    """§3.3, from the ballots to the scattered bytes: by block the words of the bit planes, lowest first, and of the
    mask, last."""
    D = [np.zeros((len(mine) + 1, 32), "<u4") for mine in modes]
    order = []  # of coding: the words, the mode, the lanes whose words are stored
    for k, mine in enumerate(modes):
        planes = [*range(len(mine))][::-1]
        if kind == QUANTA:
            planes = planes[1:] + planes[:1]  # the signs behind the others
        order += [(D[k][p], mine[p]) for p in planes]
        order += [(D[k][-1], masks[k])] if masks else []
    modes = [mode for _, mode in order]
    refuse("P7", any(mode > SPARSE for mode in modes), f"mode 3 {where}, allowed are 0 to 2")
    ballots = np.unpackbits(take(4 * modes.count(SPARSE), "u1"), bitorder="little").reshape(-1, 32).astype(bool)
    n = 4 * int(ballots.sum())  # bytes of lanes, bits of nibbles
    nibbles = np.unpackbits(take(4 * whole(n, 32), "u1"), bitorder="little").astype(bool)
    refuse("P11", nibbles[n:].any(), f"a bit behind the last nibble {where} is not 0")
    words = take(128 * modes.count(FULL), "<u4").reshape(-1, 32)
    m = int(nibbles.sum())
    stored = take(4 * whole(m, 4), "u1")
    refuse("P11", stored[m:].any(), f"a bit behind the last byte {where} is not 0")

    lanes = np.zeros(n, np.uint8)
    lanes[nibbles[:n]] = stored[:m]
    lanes = lanes.view("<u4")
    full, sparse = iter(words), iter(ballots)
    for plane, mode in order:
        if mode == FULL:
            plane[...] = next(full)
        elif mode == SPARSE:
            ballot = next(sparse)
            plane[ballot], lanes = lanes[: ballot.sum()], lanes[ballot.sum() :]
    return D


def planes_numbers(planes: Array) -> Array:
    """The numbers whose bits are bit planes, by lane and bit."""
    bits = np.unpackbits(planes[..., None].view(np.uint8), axis=-1, bitorder="little").astype(np.uint64)
    weights = np.uint64(1) << np.arange(len(planes), dtype=np.uint64)
    return (bits * weights[:, None, None]).sum(axis=0, dtype=np.uint64)


def planes_quanta(numbers: Array, top: Any) -> Array:
    """§4, class 0: the residuals of a block from the numbers of its planes, of which plane `top` is the signs."""
    top = np.uint64(top)
    low = numbers & (np.uint64(1) << top) - np.uint64(1)
    return np.where(numbers >> top & np.uint64(1), ~low, low)


def planes_fields(
    where: str, numbers: Array, lengths: tuple[int, Array, Array, Array], take: Callable[[int, str], Array]
) -> Array:
    """§3.4 and §4, classes 1 and 2: the residuals of a block, by lane and bit."""
    z, widths, besides, empty = lengths
    numbers = numbers[:, FIELDS].astype(int)
    refuse("P14", empty[numbers].any(), f"a number {where} of a bin that holds no length")
    width = widths[numbers]
    end = width.cumsum().reshape(width.shape)
    total = int(end[-1, -1])
    words = take(4 * whole(total, 32), "<u4").astype(np.uint64)
    refuse("P16", total % 32 and words[-1] >> np.uint64(total % 32), f"a bit behind the last field {where} is not 0")
    words = np.append(words, np.zeros(3, np.uint64))
    at, shift = np.divmod(end - width, 32)
    shift, width = shift.astype(np.uint64), width.astype(np.uint64)
    one, two = np.uint64(1), np.uint64(2)
    low = (words[at] | words[at + 1] << np.uint64(32)) >> shift
    high = words[at + 2] << np.uint64(63) - shift << one
    mask = (one << width // two << width - width // two) - one  # all 64 bits, where the width is 64
    u = besides[numbers] | (low | high) & mask
    d = np.empty_like(u)
    d[:, FIELDS] = np.where(u & one, ~(u >> one), u >> one) << np.uint64(z)
    return d


def planes_placed(G: int, a: Array) -> Array:
    """§3.1: what lies in order of blocks, lanes and bits, in the places of the tile."""
    a = a.reshape(4, 4, 8, 4, 2, 4)[:, :, :, COLUMNS]  # block, lane div 8, lane mod 8, column, layer mod 2, row
    if G == 1:
        return a.transpose(0, 4, 5, 1, 2, 3).reshape(1, 1, 4096)
    return a.transpose(0, 4, 1, 5, 2, 3).reshape((8, 16, 32) if G == 3 else (1, 128, 32))


def planes_values(head: Header, kind: int, halves: int, e: Optional[int], base: Any, v: Array) -> Array:
    """§5: the bits of the values; e is that of map 1."""
    bits, real, signed = (np.dtype(f"<{letter}{head.size}") for letter in "ufi")
    if kind == QUANTA:
        return ((base + v).astype(real) * planes_step(head)[0]).view(bits)
    m = base + v
    if kind == WIDE_QUANTA:
        step = planes_step(head)[0] * real.type(0.5 if halves else 1)
        return (m.view(signed).astype(real) * step).view(bits)
    if e is not None:
        return (m.view(signed).astype(real) * np.array(math.ldexp(1, e), real)).view(bits)
    if head.number == 0:
        return m
    top = bits.type(1) << bits.type(8 * head.size - 1)
    return np.where(m & top, m ^ (top - bits.type(1)), m)


# ----------------------------------------------------------------------------------------------- scaled.FORMAT.md
WHOLE, QUOTIENT, PRODUCT, SHORT_PRODUCT, ORDERED, DICTIONARY = 0, 1, 2, 3, 4, 5
WITHOUT = {WHOLE: (2,), PRODUCT: (1, 2), SHORT_PRODUCT: (1, 2), DICTIONARY: (1, 2, 3)}  # orders that a map has not


def scaled(head: Header, first: Bytes, exceptions: Bytes, codes: Bytes, *corrections: Bytes) -> bytes:
    bits, real, signed = (np.dtype(f"<{letter}{head.size}") for letter in "ufi")
    kind, order, special, unit, origin, step, factor, addend, odd = scaled_head(head, bytes(first))
    count, left = divmod(len(exceptions), 4 + head.size)
    places = np.frombuffer(exceptions[: 4 * count], "<u4").astype(np.int64)
    unfit = left or (np.diff(places) <= 0).any() or (places >= head.values).any()
    refuse("K7", unfit, f"exceptions of {len(exceptions)} bytes, at {places} of {head.values} numbers")
    modulus = 2 ** (8 * head.size)
    t = scaled_dictionary(head, bytes(first[56:]), origin, step)
    c = k = scaled_integers("K8", head, bytes(codes), head.size).astype(bits)
    low = bits.type(modulus // 2)
    marked = special * (c == low)
    if order:
        steps = np.where(marked, bits.type(0), c)
        d = scaled_differences(order, steps, marked, bits.type(step % modulus), head.extents)
        k = np.where(marked, low, np.cumsum(d, dtype=bits))
    q = (bits.type(origin % modulus) + bits.type(unit % modulus) * k).view(signed)
    if kind == DICTIONARY:
        refuse("K9", ((k >= len(t)) & ~np.bool_(marked)).any(), f"a code beyond the {len(t)} numbers of the dictionary")
        q = t[np.where(k < len(t), k, 0).astype(np.int64)].view(signed)
    if kind == WHOLE:
        x = q.view(bits)
    elif kind == QUOTIENT:
        x = (q.astype("<f8") / factor).astype(real).view(bits)
    elif kind == PRODUCT:
        x = (q.astype("<f8") * factor + addend).astype(real).view(bits)
    elif kind in (ORDERED, DICTIONARY):
        x = scaled_order(q).view(bits)
    else:
        x = (q.astype("<f4") * np.float32(factor) + np.float32(addend)).view(bits)
    if special:
        x = np.where(k == low, bits.type(odd), x)
    refuse("K10", corrections and kind != QUOTIENT, f"corrections with map {kind}")
    for frame in corrections:
        q = scaled_order(x.view(signed)) + scaled_integers("K10", head, bytes(frame), 1).view("i1")
        x = scaled_order(q.astype(signed)).view(bits)
    x[places] = np.frombuffer(exceptions[4 * count :], bits)
    return ordered(x, head)


def scaled_head(head: Header, first: bytes) -> tuple[Any, ...]:
    """§3.1: map, order, special, unit, origin, step, factor, addend, the special number's bits."""
    unfit = len(first) < 56 or (len(first) > 56) != (first[0] == DICTIONARY)
    refuse("K1", unfit, f"a head of {len(first)} bytes, it has 56, more with a dictionary")
    kind, order, special, *zeros = struct.unpack_from("<8B", first)
    numbers = unit, _, step, factor, addend, odd = struct.unpack_from("<QqqddQ", first, 8)
    unfit = kind > DICTIONARY or order > 3 or special > 1 or any(zeros)
    refuse("K2", unfit, f"a head that begins with {first[:8].hex()}")
    unfit = (kind == WHOLE) != (head.number == 0) or (kind == SHORT_PRODUCT and head.size != 4)
    unfit |= order in WITHOUT.get(kind, ()) or (order == 3 and len(head.extents) < 2)
    refuse("K3", unfit, f"map {kind}, order {order} of type {head.type:08x}, extents {head.extents}")
    unfit = unit == 0 or (order in (0, 3) and kind != DICTIONARY and step)
    refuse("K4", unfit, f"unit {unit}, step {step} with order {order}")
    unfit = any(first[32:40]) if kind in (WHOLE, ORDERED, DICTIONARY) else not (math.isfinite(factor) and factor > 0)
    unfit |= any(first[40:48]) if kind in (WHOLE, QUOTIENT, ORDERED, DICTIONARY) else not math.isfinite(addend)
    refuse("K5", unfit, f"factor {factor!r}, addend {addend!r} with map {kind}")
    refuse("K6", odd >= 1 << 8 * head.size or (odd and not special), f"special {special} with the bits {odd:#x}")
    refuse("K9", kind == DICTIONARY and unit != 1, f"unit {unit} with a dictionary")
    return (kind, order, special, *numbers)


def scaled_differences(order: int, c: Array, marked: Array, step: Any, extents: tuple[int, ...]) -> Array:
    """§4: d(i) of the orders 1 to 3; where `marked` is, they are 0."""
    if order == 1:
        d = c + step
        d[0] = 0
    elif order == 2:
        c[0], c[1:2] = 0, step
        total = np.cumsum(c, dtype=c.dtype)
        last = np.maximum.accumulate(np.where(marked, np.arange(len(c)), -1))  # place that is marked, up to here
        d = total - np.where(last < 0, c.dtype.type(0), total[last])
    else:
        d = c.reshape(-1, extents[-1])
        for above, row, holes in zip(d, d[1:], marked.reshape(d.shape)[1:]):
            row += above
            row[holes != 0] = 0
        d = d.ravel()
    return np.where(marked, c.dtype.type(0), d)


def scaled_order(q: Array) -> Array:
    """§5, map 4: from the order of floats to their bits, and back."""
    return np.where(q < 0, ~q | np.iinfo(q.dtype).min, q)


def scaled_integers(rule: str, head: Header, frame: bytes, size: int) -> Array:
    """§3.2, §3.4: codes or corrections, of this size; no bytes of codes are zeros."""
    if not frame and rule == "K8":
        return np.zeros(head.values, f"<u{size}")

    def unfit(inner: Header) -> bool:
        shaped = inner.codec == "bytes" or inner.extents == head.extents
        codecs = ("lorenzo", "bytes", "planes") if rule == "K8" else ("lorenzo", "bytes")
        return inner.codec not in codecs or inner.raw_length != head.values * size or not shaped

    return scaled_inner(rule, size, frame, unfit)


def scaled_dictionary(head: Header, dictionary: bytes, origin: int, step: int) -> Array:
    """§3.3; no numbers where there is no dictionary."""
    if not dictionary:
        return np.zeros(0, f"<u{head.size}")

    def unfit(inner: Header) -> bool:
        count, rest = divmod(inner.raw_length, head.size)
        return inner.codec != "bytes" or rest > 0 or not 1 <= count <= head.values

    u = scaled_inner("K9", head.size, dictionary, unfit)
    d = u + u.dtype.type(step % 2 ** (8 * head.size))
    d[0] = origin % 2 ** (8 * head.size)
    return np.cumsum(d, dtype=d.dtype)


def scaled_inner(rule: str, size: int, frame: bytes, unfit: Any) -> Array:
    """The numbers of a frame inside this one."""
    try:
        inner = header(frame)
        is_type = inner.type == 0x4000 | size << 4 and not inner.swapped
        refuse(rule, not is_type or unfit(inner), f"{inner}")
        return np.frombuffer(decode(frame), f"<u{size}")
    except Refused as reason:
        refuse(rule, True, f"a frame inside that is refused by {reason}")
        raise


# ------------------------------------------------------------------------------------------------ dense.FORMAT.md
CODED, VECTORS = 1, 2
Tokens = tuple[bytes, list[int], list[int]]  # by slot the token, by token its frequency and its start
Filters = dict[int, list[int]]  # by set of axes the weights
Vector = list[int]
Reals = list[float]


def magnitude(n: int) -> int:
    """§4.1, for n below 256: 8 · log2(1 + n), rounded to nearest."""
    return ((1 + n) ** 16).bit_length() // 2


MAGNITUDES = [magnitude(n) for n in range(256)]
CLASS = [0, *(whole(token, 2) for token in range(1, 17)), *range(9, 121)]  # §4.1, of each token
SMALL = [0, *(CLASS[token] if token % 2 else -CLASS[token] for token in range(1, 17))]  # residuals of tokens
LARGE = [((4 + (token - 17) % 4) << (token - 17) // 4 + 1) + 1 for token in range(17, 129)]  # m less its bits
WEIGHTS = [0, *((16, 19, 23, 27)[v % 4] << v // 4 for v in range(49))]  # §3.2.1, of each level
BINS = [E // 8 if E < 128 else min(16 + (E - 128) // 32, 63) for E in range(3984)]  # §4.3


def dense(head: Header, first: Bytes, kinds: Bytes, lengths: Bytes, payload: Bytes) -> bytes:
    filters, weights, tables, base = dense_head(head, bytes(first))

    def residuals(kind: int, where: str, rest: bytes, shape: tuple[int, ...]) -> Array:
        axes, interpolated, group, filtered = kind & 7, kind >> 3 & 1, kind >> 4 & 3, kind >> 7 and not kind >> 3 & 1
        refuse("D10", filtered and axes not in filters, f"no filter for the set of axes {axes} {where}")
        if group == EMPTY:
            return np.zeros(math.prod(shape), np.int32)
        period = 0
        if group == VECTORS:
            unfit = not weights or not 2 <= shape[2] <= 4
            refuse("D14", unfit, f"vectors {where} of {shape[2]} components, or no weights for them")
            period, rest = int.from_bytes(rest[:2], "little"), rest[2:]
            refuse("D15", not 1 <= period <= 16, f"a period of {period} {where}, allowed are 1 to 16")
        unfit = not tables or len(rest) < 4
        refuse("D11", unfit, f"{len(rest)} bytes of words {where}, which is coded, or no tables")
        coder = Coder(where, rest, tables)
        if group == VECTORS:
            r = Vectors(coder, shape, period, weights).quanta()
        elif interpolated:
            r = coder.lattices(shape)
        else:
            along = [2 - k for k in range(3) if axes >> k & 1]
            group = 2 * max(len(along) - 1, 0)
            r = coder.grid([group, group + 1], shape, along, filters.get(axes) if filtered else None)[0].ravel()
        unfit = coder.state != 1 << 16 or next(coder.words, None) is not None
        refuse("D13", unfit, f"a last state {coder.state:#x} {where}, or words behind it")
        return r

    return lorenzo_tiles(head, kinds, lengths, payload, base, 2, residuals)


def dense_head(header: Header, head: bytes) -> tuple[Filters, Vector, list[Tokens], Optional[Array]]:
    """§3.2: the filters, the weights of vectors, the table of each context, or none at all, and the base or None."""
    H = struct.unpack_from("<H", head)[0] if len(head) >= 4 else 0
    based = header.mode != 3 and len(head) == H + header.size
    refuse("D1", H < 4 or (len(head) != H and not based), f"a head of {len(head)} bytes, which says {H}")
    base = lorenzo_base(head[H:], header) if based else None
    sets = [a for a in range(8) if head[2] >> a & 1]
    at = 3 + 9 * len(sets)
    refuse("D2", at >= H, f"{len(sets)} filters in a head of {H} bytes")
    filters = {a: list(struct.unpack_from("<9b", head, 3 + 9 * k)) for k, a in enumerate(sets)}
    count, end = head[at] & 127, at + 1 + 4 * (head[at] >> 7)
    refuse("D2", end > H, f"weights of vectors in a head of {H} bytes, which end at {end}")
    weights = np.frombuffer(head[at + 1 : end], np.int8).tolist()
    return filters, weights, dense_tables(count, head[end:H]), base


def dense_tables(count: int, stored: bytes) -> list[Tokens]:
    """§3.2.1: the table of each context; none at all of no tables."""
    refuse("D3", count > 64, f"{count} tables, allowed are 64")
    bits, at = np.unpackbits(np.frombuffer(stored, np.uint8), bitorder="little").tolist(), 0

    def take(n: int) -> int:
        nonlocal at
        at += n
        refuse("D2", at > len(bits), f"{len(bits)} bits of tables, which need {at} or more")
        return sum(bit << i for i, bit in enumerate(bits[at - n : at]))

    begins = [0] * min(count, 1)
    for _ in range(1, count):
        begins.append(take(11))
        unfit = not begins[-2] < begins[-1] < 1536
        refuse("D4", unfit, f"a table that begins at {begins[-1]}, the one before at {begins[-2]}")
    tables: list[Tokens] = []
    before: list[int] = []
    for k, end in enumerate([*begins[1:], 1536][:count]):
        classes = take(7)
        refuse("D5", not 1 <= classes <= 121, f"table {k} of {classes} classes, allowed are 1 to 121")
        levels: list[int] = []
        for i in range(classes):
            ones = 0
            while ones < 6 and take(1):
                ones += 1
            z = take(8) if ones == 6 else 4 * ones + take(2)
            expected = before[i] if i < len(before) else levels[-1] if levels else 49
            levels.append(expected + (z >> 1 ^ -(z & 1)))
            unfit = not 0 <= levels[-1] <= 49 or (ones == 6 and z < 24)
            refuse("D6", unfit, f"level {levels[-1]} of class {i} of table {k}, by z = {z} behind {ones} ones")
        refuse("D7", levels[-1] == 0, f"the last class of table {k}, {classes - 1}, does not occur")
        tables += [dense_tokens(levels)] * (end - begins[k])
        before = levels
    refuse("D8", len(bits) - at >= 8 or any(bits[at:]), f"{len(bits) - at} bits behind the last table, or one not 0")
    return tables


def dense_tokens(levels: list[int]) -> Tokens:
    """§3.2.1: a table's tokens by their frequencies."""
    weights = [WEIGHTS[levels[c]] if c < len(levels) else 0 for c in CLASS]
    S, u = sum(weights), sum(weight > 0 for weight in weights)
    frequencies = [1 + weight * (4096 - u) // S if weight else 0 for weight in weights]
    frequencies[frequencies.index(max(frequencies))] += 4096 - sum(frequencies)
    starts = [0, *itertools.accumulate(frequencies)]
    return b"".join(bytes([token]) * f for token, f in enumerate(frequencies)), frequencies, starts


class Coder:
    """§4.2 to §4.4: the residuals of a coded tile, grid by grid."""

    def __init__(self, where: str, rest: bytes, tables: list[Tokens]) -> None:
        self.where, self.tables = where, tables
        low, high, *words = np.frombuffer(rest, "<u2").tolist()
        self.state, self.words = low + (high << 16), iter(words)
        refuse("D12", high == 0, f"a first state {self.state:#x} {where}, below 2^16")

    def lattices(self, shape: tuple[int, ...]) -> Array:
        """The residuals of an interpolated tile."""
        extents = lattices(shape)
        r = [self.grid([11], (1, 1, 1))[0].ravel()]
        for level in range(len(extents) - 2, -1, -1):
            parts = [coarse_and_new(n) for n in extents[level]]
            magnitudes: dict[tuple[int, ...], Array] = {}  # of the lattice's classes
            for new in CLASSES:
                size = tuple(len(parts[k][k in new]) for k in range(3))
                if not math.prod(size):
                    continue
                beside = np.zeros(size, np.int64)
                for axis in new if len(new) > 1 else ():
                    coarse = magnitudes[tuple(k for k in new if k != axis)]
                    same = np.arange(size[axis])
                    beside += coarse.take(same, axis)
                    beside += coarse.take(np.minimum(same + 1, coarse.shape[axis] - 1), axis)
                group = 5 + len(new) if level == 0 else min(8 + level, 11)
                weight = 2 * len(new) if len(new) > 1 else 0
                residuals, magnitudes[new] = self.grid([group], size, beside=beside, weight=weight)
                r.append(residuals.ravel())
        return np.concatenate(r)

    def grid(
        self,
        groups: list[int],
        shape: tuple[int, ...],
        along: Any = (),
        filter: Optional[list[int]] = None,
        beside: Any = 0,
        weight: int = 0,
    ) -> tuple[Array, Array]:
        """Residuals and magnitudes of a grid. groups: not on a border, on one; along: the axes that have a border.

        Borders cut the grid into boxes: alike are the places of a box. Sums over the rows before are taken for a row
        of a box at once; those over the row itself are left to `row`.
        """
        c, d = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        t0 = np.zeros(shape, np.int64) + beside
        f = filter or [0] * 9
        pieces = [slice(0, 1), slice(1, shape[2])] if 2 in along and shape[2] > 1 else [slice(0, shape[2])]
        for z, y in itertools.product(range(shape[0]), range(shape[1])):
            planes = z - (0 in along and z > 0)  # of the box, before this one
            rows = y - (1 in along and y > 0)
            for x in pieces:
                border = (0 in along and z == 0) or (1 in along and y == 0) or (2 in along and x.start == 0)
                t, p = t0[z, y, x], np.zeros(x.stop - x.start, np.int64)
                w = np.full(len(p), weight)
                w[1:] += 4
                w[2:] += 2
                if rows >= 1:
                    up, by = c[z, y - 1, x], d[z, y - 1, x]
                    t += 3 * up
                    t[:-1] += 2 * up[1:]
                    w += 3
                    w[:-1] += 2
                    p += f[2] * by
                    p[:-1] += f[3] * by[1:]
                    p[1:] += f[4] * by[:-1]
                if rows >= 2:
                    t += c[z, y - 2, x]
                    w += 1
                    p += f[5] * d[z, y - 2, x]
                if planes >= 1:
                    by = d[z - 1, y, x]
                    t += 3 * c[z - 1, y, x]
                    w += 3
                    p += f[6] * by
                    p[1:] += f[7] * by[:-1]
                if planes >= 1 and rows >= 1:
                    p += f[8] * d[z - 1, y - 1, x]
                if planes >= 2:
                    t += 2 * c[z - 2, y, x]
                    w += 2
                tables = self.tables[64 * groups[border] :][:64]
                predicted = p.tolist() if filter and not border else None
                d[z, y, x], c[z, y, x] = self.row(tables, t.tolist(), w.tolist(), predicted, f)
        return d.astype(np.int32), c

    def row(
        self, tables: list[Tokens], t: list[int], w: list[int], p: Optional[list[int]], f: list[int]
    ) -> tuple[list[int], list[int]]:
        """Residuals and magnitudes of neighbours in a row; tables: of each bin; p: None where no filter predicts."""
        state, words = self.state, self.words
        m1 = m2 = d1 = d2 = 0  # of the places one and two before
        d, magnitudes = [], []
        try:
            for i, weight in enumerate(w):
                E_bin = BINS[16 * (t[i] + 4 * m1 + 2 * m2) // weight] if weight else 63
                tokens, frequencies, starts = tables[E_bin]
                slot = state & 4095
                token = tokens[slot]
                state = frequencies[token] * (state >> 12) + slot - starts[token]
                if state < 65536:
                    state = state << 16 | next(words)
                m2 = m1
                if token < 17:
                    c = SMALL[token]
                    m1 = MAGNITUDES[CLASS[token]]
                else:
                    x = shift = 0
                    for bits in (min((token - 9) // 4, 15), (token - 9) // 4 - 15):  # k + 2 is (token − 9) div 4
                        if bits > 0:
                            x |= (state & (1 << bits) - 1) << shift
                            shift = bits
                            state >>= bits
                            if state < 65536:
                                state = state << 16 | next(words)
                    n = LARGE[token - 17] + (x >> 1)
                    c = -n if x & 1 else n
                    h = max(n.bit_length() - 8, 0)
                    m1 = MAGNITUDES[n >> h] + 8 * h
                if p is not None:
                    predicted = p[i] + f[0] * d1 + f[1] * d2 + 32
                    c += ((predicted + (1 << 31)) % (1 << 32) - (1 << 31)) >> 6
                    d2, d1 = d1, c
                d.append(c)
                magnitudes.append(m1)
        except StopIteration:
            refuse("D13", True, f"words {self.where} that end before the last residual")
        self.state = state
        return d, magnitudes


LAGS = (1, 2, 3)


def wrap(n: int) -> int:
    """n in 32 bits."""
    return (n + (1 << 31)) % (1 << 32) - (1 << 31)


def less(v: Vector, w: Vector) -> Vector:
    return [wrap(a - b) for a, b in zip(v, w)]


def plus(v: Vector, w: Vector) -> Vector:
    return [wrap(a + b) for a, b in zip(v, w)]


def M(n: int) -> int:
    n = min(n, (1 << 31) - 1)
    h = max(n.bit_length() - 8, 0)
    return MAGNITUDES[n >> h] + 8 * h


def near(x: float) -> int:
    """round(x)."""
    return min(max(math.floor(x + 0.5), -(1 << 31)), (1 << 31) - 1)


def G(x: float) -> int:
    e = math.frexp(x)[1] - 1
    return min(3983, (128 * e + math.floor(128 * (x / 2.0**e - 1))) // 2) if x >= 1 else 0


def root(x: float) -> float:
    return math.sqrt(max(x, 0.0))


def dot(u: Reals, w: Reals) -> float:
    return u[0] * w[0] + u[1] * w[1] + u[2] * w[2]


def cross(u: Reals, w: Reals) -> Reals:
    return [u[1] * w[2] - u[2] * w[1], u[2] * w[0] - u[0] * w[2], u[0] * w[1] - u[1] * w[0]]


class Estimates:
    """What is known of an atom: before it is decoded from its own of the frame before and its role's; then after."""

    def __init__(self, old: "Optional[Estimates]", role: "Optional[Estimates]") -> None:
        self.errors: dict[int, int] = {}
        self.lags: dict[int, tuple[int, int]] = {}  # length and deviation
        for of in (role, old):
            self.errors.update(of.errors if of else {})
            self.lags.update(of.lags if of else {})
        if old and role:
            for k in old.errors.keys() & role.errors.keys():
                self.errors[k] = (3 * old.errors[k] + role.errors[k]) // 4
            for k in old.lags.keys() & role.lags.keys():
                (x, d), (y, e) = old.lags[k], role.lags[k]
                alike = abs(x - y) <= 32 + 2 * min(d, e)
                self.lags[k] = ((x + y) // 2, (d + e) // 2) if alike else (x, max(d, e))

    def error(self, k: int, v: Vector) -> None:
        x, e = 16 * M(sum(map(abs, v))), self.errors.get(k)
        self.errors[k] = x if e is None else e + (5 * (x - e) >> 4)

    def length(self, k: int, v: Vector) -> None:
        x = math.floor(16 * math.sqrt(sum(float(a) * a for a in v)))
        known, d = self.lags.get(k, (x, 0))
        y = abs(x - known)
        if k not in self.lags:
            self.lags[k] = x, x // 2
        elif y > 128 + 6 * d:
            self.lags[k] = x, min(y, x)
        else:
            self.lags[k] = known + (x - known >> 2), d + (3 * (y - d) >> 3)


class Vectors:
    """§4.5: a tile of vectors."""

    def __init__(self, coder: Coder, shape: tuple[int, ...], period: int, weights: list[int]) -> None:
        self.coder, self.shape, self.period = coder, shape, period
        self.weights = weights[:2], weights[2:]
        self.q: list[list[Vector]] = []  # by frame and atom
        self.zero = [0] * shape[2]

    def quanta(self) -> Array:
        old: list[Estimates] = []
        for t in range(self.shape[0]):
            self.q.append([])
            new: list[Estimates] = []
            for i in range(self.shape[1]):
                new.append(Estimates(old[i] if t else None, new[i - self.period] if i >= self.period else None))
                self.atom(t, i, new[i])
            old = new
        return np.array(self.q, np.int32)

    def atom(self, t: int, i: int, known: Estimates) -> None:
        frame, self.t, self.i, self.known = self.q[t], t, i, known
        self.v: Vector = []
        T, bonds = self.zero, {}
        if t:
            T, B = self.in_time(i, 0), self.in_time(i, 1)
            bonds = {k: less(B, self.in_time(i - k, 1)) for k in (1, 2) if i >= k}
        way = self.choice()
        if way[0] == "e":
            e, lag = known.errors[int(way[1])], int(way[1]) - 1
            self.predicted = plus(frame[i - lag], bonds[lag]) if lag > 0 else self.zero if lag else T
            self.free(e // 16)
        elif way == "unknown":
            self.predicted = frame[i - 1] if i else self.zero
            for _ in self.zero:
                self.component(23, 0)
        else:
            self.predicted = frame[i - self.first]
            getattr(self, way)()
        q = plus(self.predicted, self.v)
        frame.append(q)
        known.error(0, q)
        if t:
            known.error(1, less(q, T))
        for k in LAGS[:i]:
            bond = less(q, frame[i - k])
            known.length(k, bond)
            if k in bonds:
                known.error(k + 1, less(bond, bonds[k]))

    def in_time(self, i: int, pair: int) -> Vector:
        """T(i), or B(i) by the second pair of weights."""
        one, two, three = (self.q[t][i] if t >= 0 else None for t in range(self.t - 1, self.t - 4, -1))
        s1 = less(one, two) if one and two else self.zero
        s2 = less(two, three) if two and three else self.zero
        a, b = self.weights[pair]
        return plus(one or self.zero, [(a * x + b * y + 32) >> 6 for x, y in zip(s1, s2)])

    def choice(self) -> str:
        """The way; sets the first lag and its length, and the rigid ones behind it."""
        lags, costs = self.known.lags, {}  # in the table's order: of equals min takes the first
        if lags:
            self.first = first = min(sorted(lags), key=lambda k: lags[k][0])
            rigid = [k for k in sorted(lags, key=lambda k: (lags[k][1], k)) if 6 * lags[k][1] < lags[first][0]]
            self.others = [k for k in rigid if k != first]
            m = M(lags[first][0])
            N = [max(32, M(lags[k][1])) for k in (first, *self.others)]
            costs["distance"] = 3 * m + 24
            if self.shape[2] == 3 and first in rigid:
                costs["sphere"] = 2 * m + N[0] + 39
                if len(N) > 1:
                    costs["circle"] = m + 2 * max(N[:2]) + 41
                if len(N) > 2:
                    costs["point"] = 3 * max(N[0], N[2]) + 54
        costs.update((f"e{k}", 3 * (e // 16) + 114) for k, e in sorted(self.known.errors.items()))
        return min(costs, key=lambda way: costs[way], default="unknown")

    def number(self, group: int, bin: int) -> tuple[int, int]:
        """A number of the stream in this context, and its magnitude."""
        context = 64 * group + bin
        (c,), (m,) = self.coder.row(self.coder.tables[context - 63 : context + 1], [0], [0], None, [])
        return c, m

    def component(self, group: int, bin: int, guess: int = 0) -> int:
        """Takes the next component of v, less its guess; the magnitude of what was coded."""
        c, m = self.number(group, bin)
        self.v.append(wrap(c + guess))
        return m

    def free(self, g0: int) -> None:
        m: list[int] = []
        for k in range(self.shape[2]):
            g = (g0 + sum(m[-2:]) // len(m[-2:])) // 2 if m else g0
            m.append(self.component(12 + min(k, 2), BINS[16 * g]))

    def lag(self, k: int) -> tuple[float, Reals]:
        """Its length as a real, and the vector there from the first lag's atom."""
        frame, i = self.q[self.t], self.i
        return self.known.lags[k][0] / 16, [float(x) for x in less(frame[i - k], frame[i - self.first])]

    def steady(self, *lags: int) -> int:
        """8 · κ."""
        return 8 * max(0, min(7, M(max(self.known.lags[k][1] for k in lags)) // 8 - 2))

    def part(self, y: float) -> int:
        r = self.lag(self.first)[0]
        return sum(y >= step * r for step in (0.125, 0.25, 0.5, 0.75))

    def distance(self, count: int = 4) -> float:
        r = self.lag(self.first)[0]
        R = r * r
        for k in range(min(count, self.shape[2])):
            self.component(15 + min(k, 2), BINS[G(R)])
            R -= float(self.v[k]) * self.v[k]
        return R

    def sphere(self) -> None:
        rho = root(self.distance(2))
        n = near(rho)
        sign = self.number(23, 16)[0] if n >= 1 else 1
        self.component(18, self.steady(self.first) + self.part(rho), n)
        self.v[2] = wrap(sign * self.v[2])

    def circle(self) -> None:
        (r, _), (r2, u) = self.lag(self.first), self.lag(self.others[0])
        steady = self.steady(self.first, self.others[0])
        x, y, z = u
        B = max(1.0, dot(u, u))
        alpha = (r * r + B - r2 * r2) / 2
        omega = max(0.0, r * r - alpha * alpha / B) * max(0.0, 1 - x * x / B)
        self.component(19, BINS[G(omega)], near(alpha * x / B))
        X = float(self.v[0])
        g = max(1.0, math.sqrt(y * y + z * z))
        R = r * r - X * X
        alpha = (alpha - X * x) / g
        h = root(R - alpha * alpha)
        if self.number(23, 17)[0] < 0:
            y0, z0 = (alpha * y + h * z) / g, (alpha * z - h * y) / g
        else:
            y0, z0 = (alpha * y - h * z) / g, (alpha * z + h * y) / g
        self.component(20, steady + self.part(h), near(y0))
        Y = float(self.v[1])
        if abs(z * y0) < abs(z0 * y) or abs(z) < 4:
            rho = root(R - Y * Y)
            guess, steep = -rho if z0 < 0 else rho, 16.0 if rho < 1 else abs(y0) / rho
        else:
            guess, steep = z0 - (Y - y0) * y / z, abs(y / z)
        self.component(21, steady + sum(steep >= step for step in (0.5, 1, 2, 4)), near(guess))

    def point(self) -> None:
        (r, _), (r2, u), (r3, w) = map(self.lag, (self.first, *self.others))
        A, C, D = dot(u, u), dot(u, w), dot(w, w)
        delta = A * D - C * C
        if delta <= 0.02 * (A * D):
            return self.circle()
        alpha, beta = (r * r + A - r2 * r2) / 2, (r * r + D - r3 * r3) / 2
        f, g = (alpha * D - beta * C) / delta, (beta * A - alpha * C) / delta
        foot = [f * a + g * b for a, b in zip(u, w)]
        eta, sigma = r * r - dot(foot, foot), 0.0
        if eta >= 4 + 0.002 * (r * r):
            frame, i = (self.q[self.t - 1], self.i) if self.t else (self.q[0], self.i - self.period)
            U, V, W = ([float(x) for x in less(frame[i - k], frame[i - self.first])] for k in (*self.others, 0))
            sigma = math.sqrt(eta / delta) * (-1 if dot(cross(U, V), W) < 0 else 1)
        guess = [near(a + sigma * b) for a, b in zip(foot, cross(u, w))]
        steady = self.steady(self.first, *self.others)
        m = self.component(22, steady, guess[0])
        n = self.component(22, steady + 1 + min(3, m // 8), guess[1])
        self.component(22, steady + 5 + min(2, (m + n) // 16), guess[2])


def main(path: str, *out: str) -> None:
    frame = pathlib.Path(path).read_bytes()
    try:
        for name, value in dataclasses.asdict(header(frame)).items():
            print(f"{name:16}{value:#x}" if name in ("type", "checksum") else f"{name:16}{value}")
        raw = decode(frame)
    except Refused as reason:
        sys.exit(f"refused: {reason}")
    for path in out:
        pathlib.Path(path).write_bytes(raw)


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit("usage: python -m h5z_gpu.reference FRAME [OUT]")
    main(*sys.argv[1:])
