# SPDX-License-Identifier: MIT OR Apache-2.0
"""Figures of quality: moments, PSNR, correlation and autocorrelation block by block; SSIM and power spectra of
slices."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Optional

import numpy as np

HISTOGRAM_BINS = 80
SPECTRUM_BINS = 64
_SLICE = 2048  # longest side of a slice that is transformed


def dot(a: np.ndarray, b: np.ndarray) -> float:
    """The inner product, on one thread: those of a BLAS wait by spinning, and take the cores from the codecs'."""
    return float(np.einsum("i,i->", a, b))


@dataclass
class Quality:
    """What is gathered over the blocks of a dataset. Values that have to keep their bits count for none of it."""

    rank: int
    n: int = 0
    low: float = math.inf
    high: float = -math.inf
    largest: float = 0.0
    """Largest difference, as it is."""
    share: float = 0.0
    """Largest difference as a part of its limit."""
    total: float = 0.0
    squares: float = 0.0
    mean: float = 0.0
    """Of the original."""
    m_xx: float = 0.0
    m_ee: float = 0.0
    m_xe: float = 0.0
    mean_e: float = 0.0
    lag: list[list[float]] = field(default_factory=list)
    """For each axis: pairs of neighbours, sum of their products."""
    histogram: np.ndarray = field(default_factory=lambda: np.zeros(HISTOGRAM_BINS + 2, np.int64))
    """Differences over their limit: below −1, from −1 to 1 in equal bins, above 1."""

    def __post_init__(self) -> None:
        self.lag = [[0.0, 0.0] for _ in range(self.rank)]

    def add(self, x: np.ndarray, error: np.ndarray, special: np.ndarray, limit: Optional[float],
            pointwise: bool) -> None:
        """Counts one block: its original, its errors (0 at special values), and the limit of a difference."""
        some = bool(special.any())
        n = special.size - (int(np.count_nonzero(special)) if some else 0)
        if not n:
            return
        wide = x.astype(np.float64)
        if some:
            wide[special] = 0
            self.low = min(self.low, float(np.min(x, where=~special, initial=np.inf)))
            self.high = max(self.high, float(np.max(x, where=~special, initial=-np.inf)))
        else:
            self.low, self.high = min(self.low, float(x.min())), max(self.high, float(x.max()))
        with np.errstate(all="ignore"):
            self._moments(wide, error, special if some else None, n)
            self._shares(wide, error, limit, pointwise, special.size - n)
            flat = error.reshape(-1)
            for axis in range(self.rank):
                self.lag[axis][0] += special.size - special.size // max(1, special.shape[axis])
                self.lag[axis][1] += _neighbours(flat, error.shape, axis)

    def _moments(self, wide: np.ndarray, error: np.ndarray, special: Optional[np.ndarray], n: int) -> None:
        """Means and second moments about them, joined with those of the blocks before (Chan et al. 1983)."""
        e = error.reshape(-1)
        sum_e, squares = float(e.sum()), dot(e, e)
        mean, mean_e = np.float64(wide.sum()) / n, np.float64(sum_e) / n
        wide -= mean
        if special is not None:
            wide[special] = 0
        flat = wide.reshape(-1)
        xx, xe = dot(flat, flat), dot(flat, e)
        wide += mean
        ee = squares - n * mean_e**2
        all_n = self.n + n
        dx, de, weight = mean - self.mean, mean_e - self.mean_e, self.n * n / all_n
        self.m_xx += xx + dx * dx * weight
        self.m_ee += ee + de * de * weight
        self.m_xe += xe + dx * de * weight
        self.mean += dx * n / all_n
        self.mean_e += de * n / all_n
        self.n = all_n
        self.total += sum_e
        self.squares += squares

    def _shares(self, wide: np.ndarray, error: np.ndarray, limit: Optional[float], pointwise: bool,
                others: int) -> None:
        """The largest difference, and how differences lie within their limit."""
        most = max(float(error.max()), -float(error.min()))
        # A NaN where a number was is the worst of all, and no comparison finds it.
        self.largest = most if not most <= self.largest else self.largest
        if not limit:
            return
        if pointwise:
            part = np.divide(error, np.abs(wide) * limit, out=np.zeros_like(error), where=error != 0)
        else:
            part = error * (1 / limit) if math.isfinite(1 / limit) else error / limit
        most = max(float(part.max()), -float(part.min()))
        self.share = most if not most <= self.share else self.share
        part = np.nan_to_num(part, nan=2.0).reshape(-1)
        # A bin holds its lower edge. What is a hair above 1 by rounding belongs to the last one; the verdict is exact.
        place = (np.clip(part, -1.5, 1.5) * (HISTOGRAM_BINS / 2 * (1 - 1e-12)) + (HISTOGRAM_BINS / 2 + 1)).astype(
            np.int64
        )
        self.histogram += np.bincount(np.clip(place, 0, HISTOGRAM_BINS + 1), minlength=HISTOGRAM_BINS + 2)
        self.histogram[HISTOGRAM_BINS // 2 + 1] -= others  # special values, whose error stands as 0

    @property
    def rms(self) -> float:
        """Root of the mean squared error."""
        return math.sqrt(self.squares / self.n) if self.n else 0.0

    @property
    def psnr(self) -> float:
        """Decibels over the range of the values judged; infinite where nothing differs."""
        if not self.n or self.squares == 0:
            return math.inf
        if not math.isfinite(self.squares):
            return math.nan if math.isnan(self.squares) else -math.inf
        wide = self.high - self.low
        return 20 * math.log10(wide / self.rms) if wide > 0 else -math.inf

    @property
    def correlation(self) -> float:
        """Pearson's, of original and reconstruction."""
        yy, xy = self.m_xx + 2 * self.m_xe + self.m_ee, self.m_xx + self.m_xe
        if not self.m_xx > 0 or not yy > 0:
            return 1.0 if self.squares == 0 else math.nan
        return min(1.0, xy / math.sqrt(self.m_xx) / math.sqrt(yy))

    def autocorrelation(self) -> list[Optional[float]]:
        """Of the error, with the neighbour along each axis; None where an axis has none."""
        if not self.n or self.squares == 0 or not math.isfinite(self.squares):
            return [None] * self.rank
        mean = self.total / self.n
        variance = self.squares / self.n - mean**2
        if variance <= 0:
            return [None] * self.rank
        return [(products / pairs - mean**2) / variance if pairs else None for pairs, products in self.lag]


def _neighbours(flat: np.ndarray, shape: tuple[int, ...], axis: int) -> float:
    """Sum of the products of neighbours along an axis of a dense array.

    One product of the flat array with itself, shifted, has them all, and pairs that span two rows, which are taken off.
    """
    n, step = shape[axis], math.prod(shape[axis + 1 :])
    if n < 2:
        return 0.0
    three = flat.reshape(-1, n, step)
    total = dot(flat[step:], flat[:-step])
    return total - float((three[:-1, n - 1] * three[1:, 0]).sum()) if len(three) > 1 else total


# --- slices ----------------------------------------------------------------------------------------------------------


def ssim(x: np.ndarray, y: np.ndarray, use: np.ndarray, wide: float) -> Optional[float]:
    """Mean structural similarity (Wang et al. 2004) of two slices, in windows of 7 × 7 values (of one axis: 49).

    Windows with a value that is not in `use` are left out; None where no window is left. `wide` is the range of the
    data, which sets the two constants (0.01 and 0.03 of it).
    """
    sides = tuple(min(7 if x.ndim == 2 else 49, n) for n in x.shape)
    if not use.any() or not wide > 0:
        return None
    middle = float(np.mean(x, where=use, dtype=np.float64))
    a, b = (np.where(use, v.astype(np.float64) - middle, 0.0) / wide for v in (x, y))
    n = math.prod(sides)
    whole = window_sums(use.astype(np.float64), sides) > n - 0.5
    if not whole.any():
        return None
    mean_a, mean_b = window_sums(a, sides) / n, window_sums(b, sides) / n
    more = n / (n - 1) if n > 1 else 1.0
    aa, bb, ab = (window_sums(p, sides) / n for p in (a * a, b * b, a * b))
    var_a, var_b, both = more * (aa - mean_a**2), more * (bb - mean_b**2), more * (ab - mean_a * mean_b)
    # The constants are those of the values themselves: of the mean, the square of the offset that was taken off counts
    # too.
    shift = middle / wide
    c1, c2 = 0.01**2, 0.03**2
    mean_a, mean_b = mean_a + shift, mean_b + shift
    s = (2 * mean_a * mean_b + c1) * (2 * both + c2) / ((mean_a**2 + mean_b**2 + c1) * (var_a + var_b + c2))
    return float(np.mean(s[whole]))


def window_sums(a: np.ndarray, sides: tuple[int, ...]) -> np.ndarray:
    """Sums over every window, by running sums along each axis."""
    for axis, side in enumerate(sides):
        total = np.cumsum(a, axis=axis)
        first = np.take(total, [side - 1], axis=axis)
        last, before = range(side, a.shape[axis]), range(a.shape[axis] - side)
        rest = np.take(total, last, axis=axis) - np.take(total, before, axis=axis)
        a = np.concatenate([first, rest], axis=axis)
    return a


def spectrum(values: np.ndarray, use: np.ndarray) -> np.ndarray:
    """Power by wavenumber of a slice, in SPECTRUM_BINS rings from 0 to half a cycle a cell; NaN for a ring without a
    wave.

    The slice is cut to 2048 × 2048 about its middle, its mean taken off, what is not used set to it, and a Hann window
    laid on.
    """
    cut = tuple(slice(max(0, (n - _SLICE) // 2), max(0, (n - _SLICE) // 2) + _SLICE) for n in values.shape)
    use = use[cut]
    a = values[cut].astype(np.float64)
    if not use.any():
        return np.full(SPECTRUM_BINS, math.nan)
    a = np.where(use, a - float(np.mean(a, where=use)), 0.0)
    for axis, n in enumerate(a.shape):
        window = np.hanning(n + 2)[1:-1] if n > 2 else np.ones(n)
        a *= window.reshape([-1 if k == axis else 1 for k in range(a.ndim)])
    power = np.abs(np.fft.rfftn(a)) ** 2 / a.size
    waves = [np.fft.fftfreq(n) for n in a.shape[:-1]] + [np.fft.rfftfreq(a.shape[-1])]
    k = np.sqrt(sum(w**2 for w in np.meshgrid(*waves, indexing="ij", sparse=True)))
    ring = np.minimum(
        (k * (2 * SPECTRUM_BINS)).astype(np.int64), SPECTRUM_BINS
    )  # corners beyond half a cycle: left out
    sums = np.bincount(ring.reshape(-1), power.reshape(-1), SPECTRUM_BINS + 1)[:SPECTRUM_BINS]
    counts = np.bincount(ring.reshape(-1), minlength=SPECTRUM_BINS + 1)[:SPECTRUM_BINS]
    return np.where(counts > 0, sums / np.maximum(counts, 1), math.nan)


def wavenumbers() -> np.ndarray:
    """Middles of the rings of `spectrum`, in cycles a cell."""
    return (np.arange(SPECTRUM_BINS) + 0.5) / (2 * SPECTRUM_BINS)


def reaches(data: np.ndarray, error: np.ndarray, part: float = 0.01) -> Optional[float]:
    """The least wavenumber at which the error has `part` of the data's power; None where it has nowhere."""
    with np.errstate(all="ignore"):
        at = np.flatnonzero(error >= part * data)
    at = at[np.isfinite(error[at]) & (error[at] > 0)]
    return float(wavenumbers()[at[0]]) if at.size else None


def plain(value: Any) -> Any:
    """A figure as JSON can hold it: infinities and NaN by name."""
    if isinstance(value, (float, np.floating)):
        if math.isfinite(value):
            return float(value)
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, np.ndarray):
        return [plain(v) for v in value.tolist()]
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    return value
