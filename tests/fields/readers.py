# SPDX-License-Identifier: MIT OR Apache-2.0
"""Readers of the files that the lossless sets are made of, as far as those need them; none is general."""
import gzip
import io
import struct
import wave

import numpy as np


def native(a):
    """The array in this machine's byte order."""
    return np.ascontiguousarray(a.astype(a.dtype.newbyteorder("=")))


def fits(path, extension=0):
    """The image of a header-data unit. Integers stand as they were measured: an offset of 2^15 or 2^31 makes them
    unsigned."""
    raw, at = path.read_bytes(), 0
    for unit in range(extension + 1):
        cards = {}
        for start in range(at, len(raw), 80):
            card = raw[start : start + 80].decode("latin-1")
            if card[:8].strip() == "END":
                break
            if card[8:10] == "= ":
                cards[card[:8].strip()] = card[10:].split("/")[0].strip()
        at = -(-(start + 80) // 2880) * 2880
        lens = [int(cards[f"NAXIS{k + 1}"]) for k in range(int(cards["NAXIS"]))][::-1]
        bits, count = int(cards["BITPIX"]), int(np.prod(lens)) if lens else 0
        kind = {8: "u1", 16: ">i2", 32: ">i4", -32: ">f4", -64: ">f8"}[bits]
        if unit < extension:
            at += -(-count * abs(bits) // 8 // 2880) * 2880
    a = native(np.frombuffer(raw, kind, count, at).reshape(lens))
    zero = float(cards.get("BZERO", 0))
    if zero == 0:
        return a
    assert bits > 8 and zero == 2 ** (bits - 1), f"{path.name}: BZERO {zero}"
    word = np.dtype(f"u{bits // 8}")
    return a.view(word) ^ word.type(1 << (bits - 1))


def nifti(path):
    """A NIfTI-1 volume, slowest axis first."""
    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    order = "<" if struct.unpack("<i", raw[:4])[0] == 348 else ">"
    lens = struct.unpack(order + "8h", raw[40:56])
    lens = lens[1 : 1 + lens[0]]
    kind = {2: "u1", 4: "i2", 8: "i4", 512: "u2"}[struct.unpack(order + "h", raw[70:72])[0]]
    at = int(struct.unpack(order + "f", raw[108:112])[0])
    return native(np.frombuffer(raw, order + kind, int(np.prod(lens)), at).reshape(lens[::-1]))


def ser(path):
    """The frames of a series of TIA, a microscope's program, whose elements are images."""
    raw = path.read_bytes()
    _, _, version, _, _, count = struct.unpack("<hhhiii", raw[:18])
    wide = "i8" if version >= 0x220 else "i4"
    table = int(np.frombuffer(raw, "<" + wide, 1, 22)[0])
    frames = []
    for at in np.frombuffer(raw, "<" + wide, count, table):
        code, columns, rows = struct.unpack("<hii", raw[at + 40 : at + 50])
        kind = {1: "u1", 2: "u2", 3: "u4", 4: "i1", 5: "i2", 6: "i4"}[code]
        frames.append(np.frombuffer(raw, "<" + kind, rows * columns, at + 50).reshape(rows, columns))
    return native(np.stack(frames))


def wav(*paths):
    """The samples of 16-bit sounds, one behind the other; channels last."""
    out = []
    for path in paths:
        with wave.open(io.BytesIO(path.read_bytes())) as w:
            assert w.getsampwidth() == 2, path
            out.append(np.frombuffer(w.readframes(w.getnframes()), "<i2").reshape(-1, w.getnchannels()))
    return native(np.squeeze(np.concatenate(out)))


def sound_font(path):
    """The samples of a SoundFont: the chunk `smpl`, 16 bits."""
    raw = path.read_bytes()
    at = raw.index(b"smpl")
    return native(np.frombuffer(raw, "<i2", struct.unpack("<I", raw[at + 4 : at + 8])[0] // 2, at + 8))


def numbers(path):
    """A number a line, gzipped."""
    return np.array(gzip.decompress(path.read_bytes()).split(), "f8")


def picture(path):
    """A photograph: rows, columns, colours."""
    from PIL import Image

    return np.asarray(Image.open(path))
