# SPDX-License-Identifier: MIT OR Apache-2.0
"""Sums of doubles that know their error, and the sign of |T| - limit W that is right or says that it is not known.

    1. y - x = high + low, exactly (two-sum; Knuth, TAOCP 2, 4.2.2)
    2. T = high + low: `high` adds the high parts, `low` the rounding errors of these additions and the low parts.
       `size` adds the magnitudes of what `low` adds. After n additions T is wrong by n 2^-52 size at most (Ogita, Rump,
       Oishi 2005, dot2), and exact where size = 0
    3. limit W = p + q, exactly (two-product; Dekker 1971). The sign of (high - p) + (low - q) is that of |T| - limit W
       unless its magnitude is within the error of 2 and of these additions
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

_FINE = 2.0**-960
"""A product from here on is the exact sum of a double and its error; the error of a smaller one may underflow."""


class Sums(NamedTuple):
    """Numbers as high + low, wrong by at most `count` 2^-52 size."""

    high: np.ndarray
    low: np.ndarray
    size: np.ndarray

    @classmethod
    def zeros(cls, shape: tuple[int, ...]) -> Sums:
        """Zeros of a shape."""
        return cls(np.zeros(shape), np.zeros(shape), np.zeros(shape))

    def add(self, other: Sums, at: Any = ...) -> None:
        """Adds in place, at an index of the first."""
        high, error = two_sum(self.high[at], other.high)
        self.high[at] = high
        self.low[at] += error + other.low
        self.size[at] += np.abs(error) + other.size

    def folded(self, axes: tuple[int, ...]) -> Sums:
        """Sums over axes, by halves. The numbers themselves are used up."""
        found = self
        for axis in sorted(axes, reverse=True):
            found = Sums(*(np.moveaxis(v, axis, 0) for v in found))
            while (n := len(found.high)) > 1:
                half = (n + 1) // 2
                found.add(Sums(*(v[half:] for v in found)), slice(0, n - half))
                found = Sums(*(v[:half] for v in found))
            found = Sums(*(v.sum(axis=0) for v in found))  # of one number, or of none
        return found


def two_sum(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """a + b rounded, and its error."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def two_product(a: Any, b: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """a b rounded, its error, and a bound on what underflowed of the error."""
    product = np.multiply(a, b)
    (a1, a2), (b1, b2) = _halves(np.asarray(a)), _halves(np.asarray(b))
    error = ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2
    return product, error, np.where((np.abs(product) >= _FINE) | (a == 0) | (b == 0), 0.0, 2.0**-1060)


def _halves(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A double as the sum of two of 26 bits each."""
    scaled = a * (2.0**27 + 1)
    high = scaled - (scaled - a)
    return high, a - high


def differences(x: np.ndarray, y: np.ndarray, use: np.ndarray) -> Sums:
    """y - x exactly, 0 where it is not used."""
    high, low = two_sum(y.astype(np.float64), -x.astype(np.float64))
    high[~use] = low[~use] = 0
    return Sums(high, low, np.abs(low))


def verdict(total: Sums, count: int, divisor: Sums, limit: float) -> tuple[np.ndarray, np.ndarray]:
    """Where |T| > limit W, and where that is undecided; after `count` additions of each sum."""
    sign = np.where(total.high + total.low < 0, -1.0, 1.0)
    p, q, underflow = two_product(divisor.high, limit)
    q, underflow = q + limit * divisor.low, underflow + np.where(divisor.low == 0, 0.0, 2.0**-1060)
    s, r = two_sum(sign * total.high, -p)
    low = sign * total.low
    excess = s + (r + low - q)
    small = np.abs(r) + np.abs(low) + np.abs(q)
    # Of all it is told here by double precision that it is small; four times as much also covers a wrong sign of T.
    wrong = underflow + 2.0**-49 * small + count * 2.0**-50 * (total.size + limit * divisor.size)
    exact = wrong == 0
    return (excess > wrong) & np.isfinite(wrong), ~np.isfinite(excess + wrong) | (~exact & (np.abs(excess) <= wrong))
