# SPDX-License-Identifier: MIT OR Apache-2.0
"""Judges the values of a chunk against what is promised, in exact arithmetic.

The error of two floats need not be a float. Rounding to nearest is monotone, so a rounded error below the limit means an exact error
that is not above it, and one above means one that is above. What lies on the limit is decided by the rounding error of the subtraction
(Knuth's two-sum) and, where that does not do, by fractions; equal pairs of values are decided once.
"""

from __future__ import annotations

import decimal
import math
import sys
from dataclasses import dataclass
from fractions import Fraction
from typing import Callable, Optional

import numpy as np

from .promise import Promise
from .quality import dot

_LARGEST = sys.float_info.max


@dataclass
class Judged:
    """What was found in one block."""

    error: np.ndarray
    """Reconstruction less original, as float64, in the block's shape; 0 where bits have to be equal."""
    special: np.ndarray
    """Where bits have to be equal: NaN, infinities and the fill value."""
    broken: np.ndarray
    """Where the promise is broken."""
    limit: Optional[float]
    """The largest difference that is allowed (pointwise: as a part of the value), rounded; None where there is none for one value."""
    noisy: Optional[float] = None
    """The PSNR of the block where it is below what is promised."""


def words_of(values: np.ndarray) -> np.ndarray:
    """The bits of native floats as unsigned integers."""
    return values.view(f"u{values.dtype.itemsize}")


def native(values: np.ndarray) -> np.ndarray:
    """Floats in this machine's byte order. Bytes are swapped as integers, which changes no NaN."""
    values = np.ascontiguousarray(values)
    if values.dtype.isnative:
        return values
    kind = values.dtype.str.replace("f", "u")
    return values.view(kind).astype(kind[1:]).view(values.dtype.newbyteorder("="))


def judge(x: np.ndarray, y: np.ndarray, promise: Promise) -> Judged:
    """Compares a block with its original; for a bound of a chunk's range or a PSNR, the block is the chunk.

    Parameters
    ----------
    x, y : numpy.ndarray of float32 or float64
        Original and reconstruction, in native order, of one shape.
    promise : Promise
        What has to hold.
    """
    a, b = words_of(x), words_of(y)
    special = ~np.isfinite(x)
    if promise.fill is not None:
        special |= a == a.dtype.type(promise.fill)
    with np.errstate(all="ignore"):
        error = y.astype(np.float64)
        error -= x
    error[special] = 0
    if promise.mode == "lossless":
        return Judged(error, special, a != b, 0.0)
    broken = special & (a != b)
    limit: Optional[float] = None
    noisy = None
    if promise.mode == "absolute":
        broken |= _above(x, y, error, Fraction(promise.bound))
        limit = promise.bound
    elif promise.mode == "relative":
        exact = Fraction(promise.bound) * span(x, promise.fill)
        broken |= _above(x, y, error, exact)
        limit = _down(exact)
    elif promise.mode == "pointwise_relative":
        broken |= _above_pointwise(x, y, error, promise.bound) & ~special
        limit = promise.bound
    else:
        broken |= ~np.isfinite(y) & ~special
        if not broken.any():
            noisy = _noisy(x, y, error, special, promise)
    return Judged(error, special, broken, limit, noisy)


def value_range(x: np.ndarray, fill: Optional[int]) -> Optional[tuple[float, float]]:
    """Smallest and largest finite value that has not the bits of the fill value; without one, a zero of all bits clear counts neither."""
    use = np.isfinite(x)
    words = words_of(x)
    use &= words != words.dtype.type(fill or 0)
    if use.all():
        return float(x.min()), float(x.max())
    low, high = np.min(x, where=use, initial=np.inf), np.max(x, where=use, initial=-np.inf)
    return (float(low), float(high)) if low <= high else None


def span(x: np.ndarray, fill: Optional[int]) -> Fraction:
    """max − min of `value_range`, exactly."""
    found = value_range(x, fill)
    return Fraction(0) if found is None else Fraction(found[1]) - Fraction(found[0])


def _down(x: Fraction) -> float:
    """The largest float that is not above x."""
    if x > Fraction(_LARGEST):
        return _LARGEST
    f = float(x)
    return f if Fraction(f) <= x else math.nextafter(f, -math.inf)


def _above(x: np.ndarray, y: np.ndarray, error: np.ndarray, limit: Fraction) -> np.ndarray:
    """Where abs(x − y) > limit. `error` is the rounded difference, 0 where nothing is to be judged."""
    low = _down(limit)
    size = np.abs(error)
    bad: np.ndarray = ~(size <= low)  # what came back as NaN too
    close = size == low
    if Fraction(low) != limit:
        close |= size == math.nextafter(low, math.inf)
    close &= error != 0
    at = np.flatnonzero(close)
    if at.size:
        s, t = y.reshape(-1)[at].astype(np.float64), x.reshape(-1)[at].astype(np.float64)
        with np.errstate(all="ignore"):
            d = s - t
            v = d - s
            rest = (s - (d - v)) - (t + v)  # s − t = d + rest exactly, unless something overflowed
            over = np.sign(d) * rest > 0
        if Fraction(low) == limit:
            unsure = ~np.isfinite(rest)
        else:
            unsure = ~np.isfinite(rest) | ((np.abs(d) == low) == over)
            over = np.abs(d) > low
        k = np.flatnonzero(unsure)
        over[k] = _by_fractions(s[k], t[k], lambda p, q: abs(p - q) > limit)
        bad.reshape(-1)[at] = over
    return bad


def _above_pointwise(x: np.ndarray, y: np.ndarray, error: np.ndarray, r: float) -> np.ndarray:
    """Where abs(x − y) > r·abs(x)."""
    with np.errstate(all="ignore"):
        limit = np.abs(x.astype(np.float64))
        limit *= r
        size = np.abs(error)
        bad: np.ndarray = ~(size <= limit)
        # Rounding moves neither side by more than this, but where numbers are subnormal.
        close = (np.abs(size - limit) <= 1e-15 * limit) | (limit < 1e-290) | ~np.isfinite(size)
    close &= error != 0
    at = np.flatnonzero(close)
    if at.size:
        s, t = x.reshape(-1)[at].astype(np.float64), y.reshape(-1)[at].astype(np.float64)
        bad.reshape(-1)[at] = _by_fractions(s, t, lambda p, q: abs(p - q) > Fraction(r) * abs(p))
    return bad


def _by_fractions(s: np.ndarray, t: np.ndarray, is_bad: Callable[[Fraction, Fraction], bool]) -> np.ndarray:
    """`is_bad` of each pair, as fractions; of pairs that repeat, once. What is not finite is bad."""
    if not s.size:
        return np.zeros(0, bool)
    pairs, where = np.unique(np.stack([s, t], 1).view("u8"), axis=0, return_inverse=True)
    found = [
        not (math.isfinite(p) and math.isfinite(q)) or is_bad(Fraction(p), Fraction(q))
        for p, q in pairs.view("f8").tolist()
    ]
    return np.array(found)[where.reshape(-1)]


def _noisy(x: np.ndarray, y: np.ndarray, error: np.ndarray, special: np.ndarray, promise: Promise) -> Optional[float]:
    """The PSNR where it is below the promise: S · 10^(p/10) > n · range², with S the sum of n squared errors."""
    n = int(special.size - np.count_nonzero(special))
    squares = dot(error.reshape(-1), error.reshape(-1))
    if not n or not error.any():
        return None
    wide = span(x, promise.fill)
    about = -math.inf
    if wide and 0 < squares < math.inf:
        about = 10 * (math.log10(n) + 2 * _log10(wide) - math.log10(squares))
    if math.isfinite(about) and squares > 1e-280 and abs(about - promise.bound) > 1e-6:
        return about if about < promise.bound else None
    changed = np.flatnonzero(error)
    s, t = x.reshape(-1)[changed].tolist(), y.reshape(-1)[changed].tolist()
    exact = sum(((Fraction(p) - Fraction(q)) ** 2 for p, q in zip(s, t)), Fraction(0))
    return about if _more(exact, promise.bound, n * wide**2) else None


def _more(squares: Fraction, p: float, most: Fraction) -> bool:
    """Whether squares · 10^(p/10) > most. The power is a fraction, or irrational: then 900 digits tell."""
    tenth = Fraction(p) / 10
    if tenth.denominator == 1:
        return squares * 10**tenth.numerator > most
    with decimal.localcontext(decimal.Context(prec=900, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)):
        power = decimal.Decimal(10) ** (decimal.Decimal(p) / 10)
        left = decimal.Decimal(squares.numerator) * power * decimal.Decimal(most.denominator)
        return left > decimal.Decimal(most.numerator) * decimal.Decimal(squares.denominator)


def _log10(x: Fraction) -> float:
    return math.log10(x.numerator) - math.log10(x.denominator)
