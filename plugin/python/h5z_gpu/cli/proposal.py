# SPDX-License-Identifier: MIT OR Apache-2.0
"""A bound for a variable, from what its values and attributes say of their own precision.

The first that applies:

    1. Values that are multiples of a step, as those of packed integers are: half a step. That much was lost by
       rounding; and quanta of
       this width are the multiples themselves, so that lorenzo most often gives back every bit.
    2. Attributes that name significant digits or bits: half a unit of the last one.
    3. Values of one sign over more than four decades: 0.1 % of each value, since an absolute bound would wipe out the
       small ones.
    4. The noise between neighbours: half of its standard deviation σ. An error that is spread evenly within ±σ/2 makes
       the noise
       1.04 times as large. σ is the least one, over the axes, that differences of order k = 3 to 6 give (median
       absolute difference / 0.6745 / √C(2k, k)): of a smooth field they leave next to nothing, of noise all.
    5. The bulk of the values (from the 0.1 % to the 99.9 % quantile) limits 4 to between 10⁻⁵ and 10⁻³ of it.

Bounds of 3 to 5 are rounded down to 1, 2 or 5 times a power of ten: such a number fits into one word of the filter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Optional

import numpy as np

from ..conventions import number_of
from ..filters import How, Lossless, Lossy

_DIGITS = ("quantization_nsd", "_QuantizeBitGroomNumberOfSignificantDigits",
           "_QuantizeGranularBitRoundNumberOfSignificantDigits", "number_of_significant_digits")
_BITS = ("quantization_nsb", "_QuantizeBitRoundNumberOfSignificantBits")
_DECADES = 4
_MOST, _LEAST = 1e-3, 1e-5
_STEP_VALUES = 200_000
_NOISE_VALUES = 1 << 18
ORDERS = (3, 4, 5, 6)


@dataclass
class Proposal:
    """A filter, and why."""

    how: How
    reason: str
    noise: Optional[float] = None
    step: Optional[float] = None
    low: Optional[float] = None
    high: Optional[float] = None


def propose(blocks: Sequence[np.ndarray], use: Sequence[np.ndarray], item: Any, unit: str = "") -> Proposal:
    """Proposes a filter by samples of the values, in native order, and by the attributes of `item`.

    `use`: where the samples are finite and not missing. `unit` is for the sentence.
    """
    with np.errstate(all="ignore"):  # ranges that no float holds, NaN of any kind
        return _propose(blocks, use, item, unit)


def _propose(blocks: Sequence[np.ndarray], use: Sequence[np.ndarray], item: Any, unit: str) -> Proposal:
    values = np.concatenate([b[u] for b, u in zip(blocks, use)]) if blocks else np.zeros(0)
    if not values.size:
        return Proposal(Lossless(), "no sampled value is finite")
    low, high = float(values.min()), float(values.max())
    if low == high:
        return Proposal(Lossless(), "all sampled values are the same", low=low, high=high)
    made = _from_step(values, unit) or _from_attributes(item) or _from_decades(values)
    if made is None:
        made = _from_noise(blocks, use, values, unit)
    made.low, made.high = low, high
    config = made.how.get_config()
    if "absolute" in config and not made.step:
        small = np.abs(values) < config["absolute"]
        if np.count_nonzero(small & (values != 0)) > values.size / 4:
            made.reason += (". Of the values, a quarter or more are smaller than this bound: where they matter, take "
                            "pointwise_relative:1e-3")
    return made


def sentinel(values: np.ndarray) -> Optional[np.ndarray]:
    """A value that looks as if it stood for missing ones, though the file does not say so; None where there is none.

    It is the least or the greatest, 1 % of the values or more, and farther from the others than twice their range.
    """
    if values.size < 256:
        return None
    with np.errstate(all="ignore"):
        for extreme in (values.max(), values.min()):
            same = values == extreme
            rest = values[~same]
            if np.count_nonzero(same) < values.size / 100 or rest.size < 64:
                continue
            low, high = float(rest.min()), float(rest.max())
            distance = max(low - float(extreme), float(extreme) - high)
            if distance > 2 * (high - low) and np.unique(rest[:10_000]).size >= 16:
                return np.asarray(extreme)
    return None


def rounded_down(x: float) -> float:
    """The largest of 1, 2 and 5 times a power of ten that is not above x."""
    power = math.floor(math.log10(x))
    return next(v for v in (float(f"{m}e{p}") for p in (power, power - 1) for m in (5, 2, 1)) if v <= x * (1 + 1e-12))


def _unit(unit: str) -> str:
    return f" {unit}" if unit else ""


def _from_attributes(item: Any) -> Optional[Proposal]:
    digit = number_of(item, "least_significant_digit")
    if digit is not None and digit == int(digit) and -40 <= digit <= 40:
        unit = float(f"1e{-int(digit)}")
        return Proposal(Lossy(absolute=unit / 2), f"least_significant_digit = {int(digit)}: half of {unit:g}",
                        step=unit)
    for name in _DIGITS:
        n = number_of(item, name)
        if n is not None and 1 <= n <= 16:
            return Proposal(Lossy(pointwise_relative=float(f"5e{-int(n) - 1}")),
                            f"{name} = {int(n)}: half a unit of the last significant digit of the largest mantissa")
    for name in _BITS:
        n = number_of(item, name)
        if n is not None and 1 <= n <= 52:
            return Proposal(Lossy(pointwise_relative=rounded_down(2.0 ** -(n + 1))),
                            f"{name} = {int(n)}: half a unit of the last significant bit")
    return None


def step_of(values: np.ndarray) -> Optional[float]:
    """The step of which all values are multiples, but for an offset and rounding; None where there is none that can be
    told.

    A guess is the least difference of two neighbours in the sorted values. Over longer and longer distances, the number
    of steps in each is a whole one, and makes the guess sharper.
    """
    every = np.unique(values[:: max(1, values.size // _STEP_VALUES)])
    if every.size < 3 or every.size > values.size / 3:
        return None
    ulp = math.ldexp(1.0, math.frexp(float(np.abs(every).max()))[1] - (24 if every.dtype.itemsize == 4 else 53))
    distinct = every.astype(np.float64)
    if not math.isfinite(float(distinct[-1]) - float(distinct[0])):
        return None
    gaps = np.diff(distinct)
    gaps = gaps[gaps > 6 * ulp]
    if gaps.size < 2:
        return None
    least = float(gaps.min())
    near = gaps[gaps < 1.5 * least]
    step = float(near.mean())
    offset = distinct - distinct[0]
    reach = 16 * step
    while True:
        some = offset[(offset > 0) & (offset <= reach)]
        if some.size:
            whole = np.rint(some / step)
            if np.abs(some / step - whole).max() > 0.05 + 2 * ulp / step:
                return None
            step = float(np.vdot(some, whole) / np.vdot(whole, whole))
        if reach >= offset[-1]:
            break
        reach *= 8
    return step if step > 8 * ulp else None


def snapped(step: float) -> float:
    """A step that was measured as the number it stands for: a power of two, or one of few decimals."""
    power = 2.0 ** round(math.log2(step))
    decimals = (float(f"{step:.{digits}g}") for digits in range(1, 8))
    return next((v for v in (power, *decimals) if abs(v / step - 1) < 1e-7), step)


def _from_step(values: np.ndarray, unit: str) -> Optional[Proposal]:
    step = step_of(values)
    if step is None:
        return None
    step = snapped(step)
    return Proposal(Lossy(absolute=step / 2),
                    f"values are multiples of {step:.9g}{_unit(unit)}, and were rounded by up to half of it", step=step)


def _from_decades(values: np.ndarray) -> Optional[Proposal]:
    if values.min() < 0 < values.max():
        return None
    size = np.abs(values[values != 0]).astype(np.float64)
    low, high = np.percentile(size, [1, 99])
    if low <= 0 or not math.log10(high) - math.log10(low) > _DECADES:
        return None
    return Proposal(Lossy(pointwise_relative=1e-3),
                    f"values of one sign span {math.log10(high / low):.0f} decades: an absolute bound would wipe "
                    "out the small ones")


def noise_of(blocks: Sequence[np.ndarray], use: Sequence[np.ndarray]) -> Optional[float]:
    """Standard deviation of what differences of a high order leave of the values, on the axis and of the order where it
    is least."""
    rank = blocks[0].ndim if blocks else 0
    found = []
    for axis in range(rank):
        each = [s for s in (_noise(b, u, axis) for b, u in zip(blocks, use)) if s is not None]
        if each:
            found.append(float(np.median(each)))
    return min(found) if found else None


def _noise(block: np.ndarray, use: np.ndarray, axis: int) -> Optional[float]:
    if block.shape[axis] < 8:
        return None
    found = []
    if block.size > _NOISE_VALUES:  # along the axis values stay neighbours
        block, use = (np.moveaxis(v, axis, 0) for v in (block, use))
        rest = -(-block.size // _NOISE_VALUES)
        block, use = (v.reshape(len(v), -1)[:, ::rest] for v in (block, use))
        axis = 0
    with np.errstate(all="ignore"):
        d, good = np.moveaxis(block, axis, 0).astype(np.float64), np.moveaxis(use, axis, 0)
        moves = np.zeros(d.shape, bool)
        for order in range(1, ORDERS[-1] + 1):
            # Where values are the same there is nothing to learn: masks, ice, zeros.
            moves = moves[1:] | moves[:-1] | (d[1:] != d[:-1]) if order == 1 else moves[1:] | moves[:-1]
            d, good = d[1:] - d[:-1], good[1:] & good[:-1]
            if order not in ORDERS:
                continue
            seen = d[good & moves]
            if seen.size < 64:
                return None
            # White noise of variance 1 becomes one of variance C(2k, k).
            found.append(float(np.median(np.abs(seen))) / 0.6745 / math.sqrt(math.comb(2 * order, order)))
    return min(found)


def _from_noise(blocks: Sequence[np.ndarray], use: Sequence[np.ndarray], values: np.ndarray, unit: str) -> Proposal:
    sigma = noise_of(blocks, use)
    sigma = sigma if sigma is not None and math.isfinite(sigma) else None
    some = values[:: max(1, values.size // 1_000_000)].astype(np.float64)
    low, high = (float(v) for v in np.percentile(some, [0.1, 99.9]))
    bulk = high - low if high > low else float(values.max()) - float(values.min())
    if not math.isfinite(bulk):
        return Proposal(Lossless(), "the range of the values is larger than any number")
    if bulk < 1e-290:
        return Proposal(Lossless(), "the values are next to the smallest numbers that there are")
    text = f"{sigma:.2g}{_unit(unit)}" if sigma is not None else ""
    if sigma is None or sigma / 2 < _LEAST * bulk:
        bound = rounded_down(_LEAST * bulk)
        why = (f"the field is smooth (noise between neighbours {text}): 0.001 % of the bulk of its range"
               if sigma is not None else "too few neighbours to tell the noise: 0.001 % of the bulk of the range")
    elif sigma / 2 > _MOST * bulk:
        bound = rounded_down(_MOST * bulk)
        why = f"neighbours differ by more than this (noise {text}); 0.1 % of the bulk of the range"
    else:
        bound = rounded_down(sigma / 2)
        why = f"half of the noise between neighbours, {text}, which grows by 4 % at most"
    return Proposal(Lossy(absolute=bound), why, noise=sigma)
