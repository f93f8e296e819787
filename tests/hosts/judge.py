# SPDX-License-Identifier: MIT OR Apache-2.0
"""Judges a reconstruction in exact arithmetic.

An error x − x̂ of two floats need not be a float. Its rounded value d decides every case but one: rounding is monotone,
so d < b means that the exact error is at most b, and d > b that it is larger. Where d = b, the rounding error of the
subtraction (Knuth's two-sum) or, where that overflows, fractions decide.
"""
import math
import sys
from fractions import Fraction

import numpy as np


def words_of(a):
    """The bits of an array of numbers as unsigned integers, in this machine's byte order."""
    a = np.ascontiguousarray(a)
    a = a.astype(a.dtype.newbyteorder("="), copy=False)
    return a.view({1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[a.dtype.itemsize])


def down(x):
    """The largest float that is not above the fraction x."""
    if x > Fraction(sys.float_info.max):
        return sys.float_info.max
    f = float(x)
    return f if Fraction(f) <= x else math.nextafter(f, -math.inf)


def exact(x, fill=None):
    """Which values must come back bit for bit: NaN, infinities and the fill value."""
    keep = ~np.isfinite(x)
    if fill is not None:
        keep |= words_of(x) == words_of(np.array(fill, x.dtype))
    return keep


def above(x, y, bound):
    """Where abs(x − y) > bound in exact arithmetic; x and y finite, bound a float."""
    a, b = x.astype(np.float64), y.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        d = a - b
        bad = np.abs(d) > bound
        tie = np.flatnonzero(np.abs(d) == bound)
        if tie.size:
            s, t = a.flat[tie], b.flat[tie]
            d = s - t
            v = d - s
            e = (s - (d - v)) - (t + v)  # s − t = d + e exactly, unless something overflowed
            rest = np.flatnonzero(~np.isfinite(e))
            over = np.sign(d) * e > 0
            for i in rest:
                over[i] = abs(Fraction(float(s[i])) - Fraction(float(t[i]))) > Fraction(bound)
            bad.flat[tie] = over
    return bad


def above_pointwise(x, y, r):
    """Where abs(x − y) > r·abs(x) in exact arithmetic."""
    a, b = x.astype(np.float64), y.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        d, limit = np.abs(a - b), r * np.abs(a)
        bad = d > limit
        near = np.flatnonzero((~(d < limit * 0.999999) | (limit < 1e-290)) & (a != b))
    for i in near:
        p, q = Fraction(float(a.flat[i])), Fraction(float(b.flat[i]))
        bad.flat[i] = abs(p - q) > Fraction(r) * abs(p)
    return bad


def span(x, fill=None, padded=False):
    """max − min over the finite values that are not the fill value, as a fraction; 0 when there are none.

    padded: the chunk was filled up with zeros, which are ordinary data when no fill value is defined.
    """
    v = x[~exact(x, fill)]
    if padded and fill is None:
        v = np.append(v, x.dtype.type(0))
    return Fraction(float(v.max())) - Fraction(float(v.min())) if v.size else Fraction(0)


def check(x, y, mode, value=0.0, fill=None, padded=False):
    """Raises AssertionError unless y is what the mode promises for x; gives the largest error over the bound.

    mode: "abs", "rel" (x is one chunk), "pw_rel", "psnr" (x is one chunk) or "lossless".
    """
    x, y = np.asarray(x), np.asarray(y)
    assert x.shape == y.shape and x.dtype.newbyteorder("=") == y.dtype.newbyteorder("="), (x.shape, x.dtype, y.shape,
                                                                                           y.dtype)
    x, y = (v.astype(v.dtype.newbyteorder("="), copy=False).reshape(-1) for v in (x, y))
    keep = np.ones(x.shape, bool) if mode == "lossless" else exact(x, fill)
    different = np.flatnonzero((words_of(x) != words_of(y)) & keep)
    assert different.size == 0, f"{different.size} values must keep their bits and don't; {tell(x, y, different[0])}"
    if mode == "lossless":
        return 0.0
    whole, x, y = x, x[~keep], y[~keep]
    stray = np.flatnonzero(~np.isfinite(y))
    assert stray.size == 0, f"{stray.size} finite values came back as none; {tell(x, y, stray[0])}"
    if mode == "pw_rel":
        bad = np.flatnonzero(above_pointwise(x, y, value))
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            ratio = np.abs((x.astype(float) - y) / x.astype(float)) / value
        worst = float(np.max(ratio[np.isfinite(ratio)], initial=0))
    else:
        if mode == "abs":
            bound = float(value)
        elif mode == "rel":
            bound = down(Fraction(value) * span(whole, fill, padded))
        elif mode == "psnr":
            bound = down(span(whole, fill, padded)) * 10 ** (-value / 20) * (1 + 1e-12)
        bad = np.flatnonzero(above(x, y, bound))
        with np.errstate(over="ignore"):
            worst = float(np.max(np.abs(x.astype(float) - y), initial=0))
        worst = worst / bound if bound else float(worst > 0)
    assert bad.size == 0, f"{bad.size} of {x.size} values miss {mode} {value}; {tell(x, y, bad[0])}"
    return worst


def tell(x, y, i):
    return f"the first at {i}: {x[i]!r} (0x{int(words_of(x)[i]):x}) became {y[i]!r} (0x{int(words_of(y)[i]):x})"


def chunks(shape, chunk):
    """The slices of every chunk."""
    return [tuple(slice(i * c, min((i + 1) * c, n)) for i, c, n in zip(at, chunk, shape))
            for at in np.ndindex(*[-(-n // c) for n, c in zip(shape, chunk)])]


def check_chunks(x, y, chunk, mode, value=0.0, fill=None):
    """`check`, each chunk by itself where the mode speaks of chunks."""
    if mode in ("abs", "pw_rel", "lossless"):
        return check(x, y, mode, value, fill)
    return max(check(x[s], y[s], mode, value, fill, padded=x[s].shape != tuple(chunk)) for s in chunks(x.shape, chunk))


def kept(x, y, names, fill=None):
    """Raises AssertionError unless y, what came back for one chunk x, kept what is named: "sign", "zero", "range".

    Zeros of all bits clear stretch no range where no fill value is defined: HDF5 fills chunks up with them.
    """
    x, y = (np.ascontiguousarray(v).astype(v.dtype.newbyteorder("="), copy=False).reshape(-1) for v in (x, y))
    may = ~exact(x, fill)
    same = words_of(x) == words_of(y)
    counts = may if fill is not None else may & (words_of(x) != 0)
    rules = {"sign": (np.sign(x) == np.sign(y)), "zero": same | (x != 0), "range": same}
    if counts.any():
        low, high = x[counts].min(), x[counts].max()
        rules["range"] = same | ((y >= low) & (y <= high) & (x != low) & (x != high) & (x != 0))
    for name in names:
        bad = np.flatnonzero(may & ~rules[name])
        assert bad.size == 0, f"{bad.size} of {x.size} values break {name}; {tell(x, y, bad[0])}"
