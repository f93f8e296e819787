# SPDX-License-Identifier: MIT OR Apache-2.0
"""Values that readers take for valid stay valid, and missing ones stay missing, where bits may be lost.

Readers mask what lies outside of `valid_range`, `valid_min` and `valid_max`, and what equals a missing value. A bound
alone lets a value at the end of its range move out of it: clouds of 100 % come back as 100.008 %. A filter cannot
know; whoever writes a dataset with such attributes can. `Ranges.look` reads back what was written. Each chunk that has
a value on another side of a limit than before is encoded again:

    1. with the values that crossed a limit pulled back by the bound, by the filter as it was asked for
    2. else by `lorenzo` with a step of which the limits are multiples: it gives back multiples of its step, so that
       what lies at a limit comes back exactly. The step is at most twice the bound; or
    3. with half of the bound, and values near a limit moved away from it by the other half. The value that most often
       lies right at a limit is kept bit for bit, as a fill value is. Of 2 and 3 the shorter frame is taken
    4. else without loss.

A frame is taken where its decoded values all are on their sides of the limits, and within the bound of the values that
were given, and have kept what was asked beside it. Zeros are never moved: no rain stays no rain. Each frame says itself
how it was encoded, and the dataset's words stay as they are. Without such attributes nothing is read back.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Optional

import numpy as np

from . import batches, modes
from .conventions import limits_in
from .filters import Lossless, Lossy
from .judge import Promise, bits_of, judge, native

if TYPE_CHECKING:
    import h5py

Box = tuple[slice, ...]

_FINEST = 16
"""A grid is not made finer than this part of the bound: its frames would be longer than those without loss."""


class Ranges:
    """Limits of the values of one dataset of floats, of `dtype`, that is written with `how`.

    Its attributes are in the units of its values. No other value may become one of `missing`, which stand for missing
    ones; of these the filter knows `fill`.
    """

    def __init__(self, attributes: Mapping[str, Any], dtype: np.dtype, how: Lossy, missing: Sequence[float] = (),
                 fill: Optional[np.ndarray] = None) -> None:
        dtype = dtype.newbyteorder("=")
        low, high = limits_in(attributes)
        # A reader compares with the limit as it is, or as it is in the type of the values.
        self.low = {_cast(v, dtype, math.inf) for v in low} | {_cast(v, dtype) for v in low}
        self.high = {_cast(v, dtype, -math.inf) for v in high} | {_cast(v, dtype) for v in high}
        self.same = {_cast(v, dtype) for v in missing}
        if self.low or self.high:
            self.same |= set() if fill is None else {_cast(float(fill), dtype)}
        self.how, self.fill = how, fill
        self.mended = self.exact = self.left = 0
        """Chunks that were encoded again, those of them that keep every bit, and values that were not mended."""

    def __bool__(self) -> bool:
        return bool(self.low or self.high or self.same)

    def differ(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Where two values are on different sides of a limit, or one of them alone is missing."""
        found = np.zeros(x.shape, bool)
        for limit in self.low:
            found |= (x >= limit) != (y >= limit)
        for limit in self.high:
            found |= (x <= limit) != (y <= limit)
        for value in self.same:
            found |= (x == value) != (y == value)
        return found

    def look(self, dataset: h5py.Dataset, values: np.ndarray, box: Box) -> None:
        """Reads back what was written into a box of whole chunks, and encodes chunks again where it has to be."""
        from .datasets import read

        back = read(dataset, selection=box)
        wrong = self.differ(values, back)
        if not wrong.any():
            return
        if not is_of_numpy(dataset):  # bfloat16, which is read as float32: no frame can be made of these values
            self.left += int(np.count_nonzero(wrong))
            return
        chunk = dataset.chunks
        starts = [range(0, n, c) for n, c in zip(values.shape, chunk)]
        for origin in itertools.product(*starts):
            part = tuple(slice(o, o + c) for o, c in zip(origin, chunk))
            if wrong[part].any():
                frame = self.frame(*(whole_chunk(v[part], chunk, self.fill) for v in (values, back)))
                place = tuple(o + b.start for o, b in zip(origin, box))
                dataset.id.write_direct_chunk(place, frame)

    def said(self) -> str:
        """What was done, for a report."""
        exact = f" ({self.exact} without loss)" if self.exact else ""
        found = f"; chunks encoded again{exact}, so that valid values stay valid: {self.mended}" * bool(self.mended)
        return found + f"; values that crossed a limit of valid ones: {self.left}" * bool(self.left)

    def frame(self, x: np.ndarray, back: np.ndarray) -> bytes:
        """The frame of a chunk `x` that came back as `back`."""
        self.mended += 1
        with np.errstate(all="ignore"):
            allowed = self._allowed(x)
            found = self._held(x, allowed, self.how, self._pulled(x, back, allowed), self.fill)
            if found is None:
                frames = [self._on_grid(x, allowed), self._apart(x, allowed)]
                found = min((f for f in frames if f is not None), key=len, default=None)
        if found is None:
            self.exact += 1
            (found,) = batches.encode([x], Lossless().words, self.fill)
        return found

    def _held(self, x: np.ndarray, allowed: Any, how: Lossy, given: Optional[np.ndarray],
              fill: Optional[np.ndarray]) -> Optional[bytes]:
        """A frame of values that are given in place of `x`, where it keeps what is promised of `x`."""
        if given is None:
            return None
        (frame,) = batches.encode([given], how.words, fill)
        out = np.empty_like(x)
        batches.decode([np.frombuffer(frame, np.uint8)], [out])
        # The filter has kept its promise about what it was given.
        mode, bound = (self.how.mode.keyword, self.how.bound) if np.ndim(allowed) else ("absolute", float(allowed))
        own = None if self.fill is None else bits_of(np.asarray(self.fill, x.dtype))
        promise = Promise(mode, bound, own, keep=self.how.keep)
        good = not self.differ(x, out).any() and not judge(native(x), native(out), promise).found.broken
        return frame if good else None

    def _pulled(self, x: np.ndarray, back: np.ndarray, allowed: Any) -> Optional[np.ndarray]:
        crossed = self.differ(x, back)
        if (x[crossed] == 0).any():
            return None
        return np.where(crossed, x - np.sign(back.astype(np.float64) - x) * allowed, x).astype(x.dtype)

    def _on_grid(self, x: np.ndarray, allowed: Any) -> Optional[bytes]:
        step = None if np.ndim(allowed) else self._step(x, float(allowed))
        if step is None or self.how.codec not in ("auto", "lorenzo"):
            return None
        return self._held(x, allowed, Lossy(absolute=step / 2, codec="lorenzo", keep=self.how.keep), x, self.fill)

    def _apart(self, x: np.ndarray, allowed: Any) -> Optional[bytes]:
        limits = sorted(self.low | self.high | self.same, key=lambda v: (v != 0, -np.count_nonzero(x == v)))
        free = self.fill is None or np.isnan(self.fill) or not (x == self.fill).any()
        fill = np.asarray(limits[0], x.dtype) if free else self.fill
        given, half = x.astype(np.float64), np.asarray(allowed) / 2
        if not (half > 0).any():
            return None
        for limit in limits:
            up = given > limit if limit in self.high and limit not in self.low else given >= limit
            near = (np.abs(given - limit) < half) & (x != 0) & ~((x == fill) if fill is not None else False)
            given = np.where(near, limit + np.where(up, half, -half), given)
        keyword = "absolute" if not np.ndim(allowed) else self.how.mode.keyword
        bound = float(half if not np.ndim(allowed) else self.how.bound / 2) * 0.998
        codec = self.how.codec if self.how.codec in modes.bounds()[keyword].codecs else "auto"
        how = Lossy(**{keyword: bound, "codec": codec, "keep": self.how.keep})  # type: ignore[arg-type]
        return self._held(x, allowed, how, given.astype(x.dtype), fill)

    def _allowed(self, x: np.ndarray) -> Any:
        """The largest error of the values of a chunk, of all or of each, a little below what is promised."""
        mode, bound = self.how.mode, self.how.bound
        if mode.of == "data":
            return bound
        if mode.of == "value":
            return bound * np.abs(x.astype(np.float64)) * (1 - 1e-9)
        use = x[np.isfinite(x) & (True if self.fill is None else x != self.fill)].astype(np.float64)
        part = bound if mode.keyword == "relative" else 10 ** (-bound / 20)
        return part * float(np.ptp(use)) * (1 - 1e-9) if use.size else 0.0

    def _step(self, x: np.ndarray, allowed: float) -> Optional[float]:
        """The largest step, twice what is allowed at most, of which the limits near the values are multiples."""
        use = x[np.isfinite(x)]
        if not allowed or not use.size:
            return None
        low, high = float(use.min()) - allowed, float(use.max()) + allowed
        near = {v for v in self.low | self.high | self.same if low <= v <= high and v}
        whole = Fraction(0)
        for limit in near:
            value = abs(Fraction(str(limit)))  # 0.1, not the float next to it
            whole = Fraction(math.gcd(whole.numerator * value.denominator, value.numerator * whole.denominator),
                             whole.denominator * value.denominator)
        if not whole:
            return 2 * allowed
        step = whole / math.ceil(whole / Fraction(2 * allowed))
        return float(step) if step * _FINEST > allowed else None


def _cast(value: float, dtype: np.dtype, toward: Optional[float] = None) -> Any:
    """A limit in the type of the values: the nearest number, or the first from the limit on in a direction."""
    with np.errstate(all="ignore"):
        found = np.float64(value).astype(dtype)
        if toward is not None and (found - value) * math.copysign(1, toward) < 0:
            found = np.nextafter(found, dtype.type(toward))
    return found


def is_of_numpy(dataset: h5py.Dataset) -> bool:
    """Whether NumPy has the type of a dataset's elements, bit for bit: no number of 24 bits, no time, no tag."""
    from h5py import h5t

    try:
        return bool(dataset.id.get_type().equal(h5t.py_create(dataset.dtype)))
    except (TypeError, ValueError, OSError):
        return False


def whole_chunk(part: np.ndarray, chunk: tuple[int, ...], fill: Optional[np.ndarray]) -> np.ndarray:
    """A chunk as HDF5 hands it to the filter: filled up where the dataset ends."""
    if part.shape == chunk:
        return np.ascontiguousarray(part)
    whole = np.full(chunk, 0 if fill is None else fill, part.dtype)
    whole[tuple(slice(0, n) for n in part.shape)] = part
    return whole
