# SPDX-License-Identifier: MIT OR Apache-2.0
"""Right frames of `dense` that no writer makes, by the NumPy reader, and whether the library reads them alike.

Its coder is made to choose numbers in place of decoding them: any tables, filters, axes, tokens and shapes, wrapping
sums and tiles of one value among them. What it chose is coded then, by §4.4 backwards. Numbers of vectors follow
molecules, mostly: of any others no length would be certain enough for a sphere. Of each frame a bit is changed, too:
both read the same, or both refuse.
"""

import collections
import itertools
import math
import struct
import sys

import numpy as np

import h5z_gpu
from h5z_gpu import reference as r

SHAPES = [(2,), (9,), (17,), (3, 5), (2, 2, 2), (4, 3, 2), (2, 9), (9, 2), (5, 6, 7), (16, 17, 3), (2, 3, 70), (100, 3),
          (8200,), (33, 33), (2, 2, 2, 3), (7, 2, 33), (3, 2, 2)]
OF_VECTORS = [(8194,), (2, 90, 3), (4, 60, 3), (5, 60, 3), (200, 3), (30, 12, 3), (6, 20, 2), (9, 15, 4)]
WAYS = collections.Counter()


class Chooser(r.Coder):
    """Chooses numbers: the largest of each table, the smallest, or any."""

    def __init__(self, rng, tables):
        self.rng, self.tables, self.said = rng, tables, []
        self.where, self.state, self.of = "", 1 << 16, rng.choice(["large", "small", "any"])
        self.wanted = None

    def row(self, tables, t, w, p, f):
        m1 = m2 = d1 = d2 = 0
        numbers, magnitudes = [], []
        for i, weight in enumerate(w):
            table = tables[r.BINS[16 * (t[i] + 4 * m1 + 2 * m2) // weight] if weight else 63]
            occur = [k for k, frequency in enumerate(table[1]) if frequency]
            few = {"large": occur[-3:], "small": occur[:4], "any": occur}[self.of]
            token = few[int(self.rng.integers(len(few)))]
            bits = (token - 9) // 4 if token > 16 else 0
            x = int(self.rng.integers(1 << bits)) if self.rng.integers(4) else (1 << bits) - 1
            if self.wanted is not None and self.rng.integers(1000):
                n, sign = abs(self.wanted), self.wanted < 0
                shift = max((n - 1).bit_length() - 3, 0)
                other = 2 * n - (n > 0 and not sign) if n <= 8 else 9 + 4 * shift + (n - 1 >> shift)
                if table[1][other]:
                    token, bits, x = other, shift + 1, (n - 1) % (1 << shift) << 1 | sign
                    bits = bits if token > 16 else 0
            self.said.append((table[1][token], table[2][token], x, bits))
            m2 = m1
            if token < 17:
                c, m1 = r.SMALL[token], r.MAGNITUDES[r.CLASS[token]]
            else:
                n = r.LARGE[token - 17] + (x >> 1)
                h = max(n.bit_length() - 8, 0)
                c, m1 = -n if x & 1 else n, r.MAGNITUDES[n >> h] + 8 * h
            if p is not None:
                c += ((p[i] + f[0] * d1 + f[1] * d2 + 32 + (1 << 31)) % (1 << 32) - (1 << 31)) >> 6
                d2, d1 = d1, c
            numbers.append(c)
            magnitudes.append(m1)
        return numbers, magnitudes

    def coded(self):
        state, words = 1 << 16, []
        for frequency, start, x, bits in reversed(self.said):
            for n, part in ((bits - 15, x >> 15), (min(bits, 15), x & 32767)):
                if n > 0:
                    if state >= 1 << 32 - n:
                        words.append(state & 65535)
                        state >>= 16
                    state = state << n | part & (1 << n) - 1
            if state >= frequency << 20:
                words.append(state & 65535)
                state >>= 16
            state = (state // frequency << 12) + state % frequency + start
        return struct.pack(f"<I{len(words)}H", state, *words[::-1])


class Follower(r.Vectors):
    """Chooses the numbers by which atoms follow molecules, where there is a token for them."""

    def __init__(self, rng, chooser, shape, period, weights):
        super().__init__(chooser, shape, period, weights)
        self.rng, self.path = rng, molecules(rng, period, *shape)

    def choice(self):
        way = super().choice()
        WAYS[way] += 1
        return way

    def number(self, group, bin):
        if group == 23 and bin:
            self.coder.wanted = int(self.rng.choice([-1, 1, -1, 1, -1, 1, 0, -7, 2, 1 << 20]))
        number = super().number(group, bin)
        self.sign = number[0]
        return number

    def component(self, group, bin, guess=0):
        k = len(self.v)
        v = int(self.path[self.t, self.i, k]) - self.predicted[k]
        self.coder.wanted = r.wrap((abs(v) if group == 18 else v) - guess)
        return super().component(group, bin, guess)


def molecules(rng, period, frames, atoms, components):
    """Where the atoms of molecules are that drift and turn: rigid, flat, straight, a point; some beyond 32 bits."""
    size = int(rng.choice([period, period, rng.integers(1, 17)]))
    scale = 10 ** rng.choice([rng.uniform(0, 2), rng.uniform(1, 7), rng.uniform(1, 7), rng.uniform(7, 10)])
    parts = rng.normal(size=(size, components)) * scale * rng.choice([1] * 8 + [0.01, 0], components)
    count = r.whole(atoms, size)
    middle = rng.normal(size=(frames, count, 1, components)).cumsum(0) * rng.choice([0, 2, 2])
    middle += rng.normal(size=(count, 1, components)) * 5
    # Axes that change places keep lengths to the bit; other turns but nearly.
    turns = np.eye(components)[rng.random((frames, count, components)).argsort(-1)]
    if rng.integers(2):
        turns = np.linalg.qr(rng.normal(size=turns.shape))[0]
    at = np.rint(middle * scale) + np.rint(parts) @ turns
    at += rng.normal(size=at.shape) * rng.choice([0, 0, 2, 30])
    return np.rint(at).astype(np.int64).reshape(frames, -1, components)


def head(rng):
    """Bytes of a head without a base."""
    sets = int(rng.integers(256)) if rng.integers(2) else 255
    weights = rng.integers(-128, 128, 9 * bin(sets).count("1")) // rng.choice([1, 16])
    count = int(rng.choice([1, 7, 64, 64]))
    # Of some heads they begin among the contexts of vectors, of some among those of spheres, circles and points.
    contexts = np.arange(rng.choice([1, 12 * 64, 18 * 64]), 1536)
    fields = [(int(start), 11) for start in np.sort(rng.choice(contexts, count - 1, replace=False))]
    before, every = [], int(rng.integers(3) > 0)
    for _ in range(count):
        classes = 121 if every else int(rng.choice([1, 2, 10, 60, 121, rng.integers(1, 122)]))
        fields.append((classes, 7))
        levels = []
        for i in range(classes):
            near = (before + [49] * 121)[i] + int(rng.integers(-3, 4))
            level = int(rng.integers(50)) if rng.integers(3) else min(max(near, 0), 49)
            level = max(level, 1) if i == classes - 1 else max(level, every)
            d = level - (before[i] if i < len(before) else levels[-1] if levels else 49)
            z = 2 * d if d >= 0 else -2 * d - 1
            fields += [((1 << z // 4) - 1, z // 4 + 1), (z % 4, 2)] if z < 24 else [(63, 6), (z, 8)]
            levels.append(level)
        before = levels
    value = at = 0
    for bits, n in fields:
        value, at = value | bits << at, at + n
    stored = bytes([sets]) + weights.astype("i1").tobytes()
    stored += bytes([count]) if rng.integers(6) == 0 else bytes([128 + count]) + rng.bytes(4)
    stored += value.to_bytes(-(-at // 8), "little")
    return struct.pack("<H", 2 + len(stored)) + stored


def frame(rng):
    """A frame, or None where a tile is too long for its length."""
    shapes = SHAPES if rng.integers(2) else OF_VECTORS
    shape, mode, size = shapes[rng.integers(len(shapes))], int(rng.choice([1, 1, 2, 3, 4])), int(rng.choice([4, 8]))
    kind, bound, first = {4: 0x17084041, 8: 0x340B4081}[size], float(rng.choice([0.5, 1e-3, 7.0])), head(rng)
    h = r.Header(r.VERSION, "dense", mode, kind, math.prod(shape) * size, 0, bound, 0, shape, (), False, 0)
    if mode != 3 and rng.integers(3) == 0:
        first += np.array([rng.normal() * 1000], f"<f{size}").tobytes()
    filters, weights, tables, _ = r.dense_head(h, first)
    extents, sides = r.lorenzo_tiling(shape)
    kinds, lengths, payload = [], [], b""
    for place in itertools.product(*(range(-(-e // t)) for e, t in zip(extents, sides))):
        tile = tuple(min(t, e - k * t) for e, t, k in zip(extents, sides, place))
        chooser, body, axes, coded = Chooser(rng, tables), b"", int(rng.integers(8)), int(rng.integers(5) > 0)
        long = axes & sum(1 << 2 - k for k in range(3) if tile[k] > 1)
        if weights and 2 <= tile[2] <= 4 and rng.integers(4):
            k, coded, period = 32, 1, int(rng.integers(1, 17))
            Follower(rng, chooser, tile, period, weights).quanta()
            body = struct.pack("<H", period)
        elif mode != 3 and long and rng.integers(2):
            k = 8 | long | coded << 4 | int(rng.integers(2)) << 7
            if coded:
                chooser.lattices(tile)
        else:
            filtered = coded and axes in filters and rng.integers(3)
            k = axes | coded << 4 | (128 if filtered else 0)
            along = [2 - j for j in range(3) if axes >> j & 1]
            if coded:
                group = 2 * max(len(along) - 1, 0)
                chooser.grid([group, group + 1], tile, along, filters[axes] if filtered else None)
        body += chooser.coded() if coded else b""
        if rng.integers(3) == 0:
            k, body = k | 64, struct.pack("<IHH", 1, int(rng.integers(math.prod(tile))), 0) + rng.bytes(size) + body
        if len(body) > 2 * 65535:
            return None
        kinds, lengths, payload = [*kinds, k], [*lengths, len(body) // 2], payload + body
    starts = np.cumsum(lengths)[63 : len(lengths) - 1 : 64].astype("<u4")
    table = np.array(lengths + [0] * (len(lengths) % 2), "<u2").tobytes() + starts.tobytes()
    sections = [first, bytes(kinds), table, payload]
    out = struct.pack("<8s4BI2QdQ2I", r.MAGIC, r.VERSION, 7, mode, len(shape), kind, h.raw_length, 0, bound, 0, 4, 0)
    out += struct.pack(f"<{len(shape)}I4Q", *shape, *map(len, sections))
    for section in sections:
        out += bytes(-len(out) % 8) + section
    return sealed(out)


def sealed(out):
    out = bytearray(out)
    struct.pack_into("<Q", out, 24, len(out))
    struct.pack_into("<Q", out, 40, r.frame_checksum(bytes(out)))
    return bytes(out)


def changed(rng, made):
    """With another bit anywhere in the sections."""
    out = bytearray(made)
    begin = 88 + 4 * (made[11] & 127)
    at = begin + int(rng.integers(min(len(out) - begin, rng.choice([60, 1 << 30]))))
    out[at] ^= 1 << int(rng.integers(8))
    return sealed(out)


def answer(read, frame):
    """The bytes, or nothing of a frame that is refused."""
    try:
        return read(frame)
    except ValueError:
        return None


if __name__ == "__main__":
    count, seed = map(int, sys.argv[1:])
    rng, read, refused = np.random.default_rng(seed), 0, 0
    while read < count:
        if made := frame(rng):
            want = r.decode(made)
            assert h5z_gpu.decompress(made, "u1").tobytes() == want, (seed, read)
            other = changed(rng, made)
            want = answer(r.decode, other)
            assert answer(lambda frame: h5z_gpu.decompress(frame, "u1").tobytes(), other) == want, (seed, read)
            read, refused = read + 1, refused + (want is None)
    print(f"{read} frames, {refused} of them refused when changed; vectors by", dict(WAYS))
    assert len(WAYS) == 9 and refused < read
