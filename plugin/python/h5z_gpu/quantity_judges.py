# SPDX-License-Identifier: MIT OR Apache-2.0
"""Compares a derived quantity Q of a copy y with that of its original x, block by block of rows.

A linear Q is meant of the numbers that the floats stand for, without rounding. It is a sum of differences y - x over a
positive divisor, T / W, and |Q(y) - Q(x)| <= limit is |T| <= limit W: `sums` decides it, and outputs that it leaves
undecided are added in fractions. Minimum and maximum are values of x and y, and their difference is decided so too.
Those two are computed by numpy.longdouble, and of them an output within some rounding errors of the limit counts as
broken; with longdouble's epsilon E:

    std      4 n E times the largest |value|, of n values
    hypot    16 E times the larger of Q(x) and Q(y)

Values that are NaN, infinite or the fill value in x come back bit for bit. Reductions leave them out, of x and y alike;
of other operations an output that needs one is left out. A value of y that is not finite breaks its outputs.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Optional

import numpy as np

from .quantity import Applied, Field, usable
from .sums import Sums, differences, two_product, two_sum, verdict

Block = tuple[int, Mapping[str, tuple[np.ndarray, np.ndarray]]]
"""First row on axis 0, and by name the same rows of the original and of the copy. Blocks follow each other."""
Arrays = Sequence[np.ndarray]
Term = tuple[float, tuple[Any, ...]]
"""A factor that is a power of two, and the index of the values that it multiplies."""
_LONG = np.finfo(np.longdouble).eps
_AT_ONCE = 1 << 20
"""Values that are judged at a time: what is computed of them takes some 100 bytes each."""


# --- neighbours -------------------------------------------------------------------------------------------------------


def _at(axis: int, part: Any) -> tuple[Any, ...]:
    return (*(slice(None),) * axis, part)


def neighbours(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[list[Term], Any]:
    """v[i + 1] - v[i] along an axis."""
    return [(1, _at(axes[0], slice(1, None))), (-1, _at(axes[0], slice(None, -1)))], 1


def slope(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[list[Term], Any]:
    """numpy.gradient along an axis: (v[i + 1] - v[i - 1]) / 2, and at the two edges the difference of neighbours."""
    n, rest = shape[axes[0]], len(shape) - axes[0] - 1
    after, before = np.minimum(np.arange(1, n + 1), n - 1), np.maximum(np.arange(-1, n - 1), 0)
    return [(1, _at(axes[0], after)), (-1, _at(axes[0], before))], (after - before).reshape(-1, *(1,) * rest)


def curvature(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[list[Term], Any]:
    """v[i + 1] - 2 v[i] + v[i - 1], summed over the axes, inside of their edges."""
    inner = [slice(1, -1) if k in axes else slice(None) for k in range(len(shape))]
    terms: list[Term] = []
    for k in axes:
        for factor, part in ((1, slice(2, None)), (-2, slice(1, -1)), (1, slice(None, -2))):
            terms.append((factor, (*inner[:k], part, *inner[k + 1 :])))
    return terms, 1


# --- what is found ----------------------------------------------------------------------------------------------------


@dataclass
class Outcome:
    """What became of a quantity."""

    of: Applied
    outputs: int = 0
    """Outputs that were judged."""
    broken: int = 0
    error: float = -1.0
    """Largest |Q(y) - Q(x)|, rounded; inf where y is not finite; -1 where no output was judged."""
    axes: tuple[int, ...] = ()
    """Those of the worst output: a gradient has outputs for each axis."""
    index: tuple[int, ...] = ()
    """The worst output's among the outputs: a difference has one row less along its axis than the variable, a Laplacian
    two, and a reduction lacks its axes."""
    original: float = math.nan
    became: float = math.nan
    planes: Optional[tuple[np.ndarray, np.ndarray]] = None
    """For a picture: Q(x) and Q(y), rounded, NaN where left out, on the last two axes of the outputs at `index[:-2]`.
    Where outputs have two axes or one, and are no reduction, they are the rows from `first_row` on that were judged
    together with the worst one."""
    first_row: int = 0

    @property
    def held(self) -> bool:
        """Whether the limit holds."""
        return not self.broken

    @property
    def share(self) -> float:
        """Largest error as a part of the limit."""
        limit = self.of.quantity.limit
        return 0.0 if self.error <= 0 else self.error / limit if limit else math.inf

    def count(self, broken: np.ndarray, error: np.ndarray, used: np.ndarray, values: Callable[[Any], Arrays],
              row: int = 0) -> None:
        """Counts outputs whose first row is `row`; `values` gives Q(x) and Q(y) at an index of them."""
        self.outputs += int(np.count_nonzero(used))
        self.broken += int(np.count_nonzero(broken & used))
        size = np.where(used, np.where(np.isnan(error), np.inf, np.abs(error)), -1.0)
        if not size.size or not size.max() > self.error:
            return
        self.error = float(size.max())
        place = tuple(int(k) for k in np.unravel_index(int(size.argmax()), size.shape)) if size.shape else ()
        lead, inner = place[:-2], place[-2:]
        was, became = (np.where(used[lead], v, np.nan).astype(np.float64) for v in values(lead))
        self.index = (place[0] + row, *place[1:]) if place else ()
        self.original, self.became = float(was[inner]), float(became[inner])
        self.planes, self.first_row = (was, became), row if len(place) <= 2 else 0


def joined(parts: Sequence[Outcome]) -> Outcome:
    """The outcome of a quantity from those of its axes."""
    worst = max(parts, key=lambda part: part.error)
    worst.outputs, worst.broken = sum(p.outputs for p in parts), sum(p.broken for p in parts)
    return worst


class Judge:
    """Compares a quantity along its axes, or one of them. `how` is of the operation, as in _JUDGES."""

    def __init__(self, of: Applied, axes: tuple[int, ...], how: Any) -> None:
        self.of, self.axes, self.how, self.limit = of, axes, how, of.quantity.limit
        self.outcome = Outcome(of, axes=axes)

    def add(self, start: int, xs: Arrays, ys: Arrays, uses: Arrays) -> None:
        """Takes the next rows of each variable, from row `start` on: original, copy, and where they are used."""
        raise NotImplementedError

    def close(self) -> bool:
        """All rows were added; whether they are needed again."""
        return False

    def again(self, start: int, xs: Arrays, ys: Arrays, uses: Arrays) -> None:
        """Takes the rows again."""

    def done(self) -> Outcome:
        """What was found."""
        return self.outcome

    def breaks(self, total: Fraction, divisor: Any = 1) -> bool:
        """Whether |T| > limit W, exactly."""
        return abs(total) > Fraction(self.limit) * Fraction(divisor)


class Local(Judge):
    """Outputs from values of one row and of its neighbours: the last two rows wait for the next ones."""

    before: tuple[Arrays, Arrays, Arrays] = ((), (), ())
    rows = 0
    """Rows of outputs that were judged."""

    def add(self, start: int, xs: Arrays, ys: Arrays, uses: Arrays) -> None:
        if self.before[0]:
            start -= len(self.before[0][0])
            xs, ys, uses = ([np.concatenate(pair) for pair in zip(old, new)]
                            for old, new in zip(self.before, (xs, ys, uses)))
        end, across = start + len(xs[0]), 0 in self.axes
        ready = end - (across and end < self.of.shape[0])
        self.rows = start + self.compare(start, slice(self.rows - start, max(0, ready - start)), xs, ys, uses)
        if across:
            self.before = tuple([v[-2:].copy() for v in each] for each in (xs, ys, uses))  # type: ignore[assignment]

    def compare(self, start: int, rows: slice, xs: Arrays, ys: Arrays, uses: Arrays) -> int:
        """Judges rows of the outputs as far as they are there; row 0 is row `start` of all. The row behind the last."""
        raise NotImplementedError


class Stencil(Local):
    """Sums of neighbours over a divisor; `how` gives the terms and the divisor for a shape and axes."""

    def compare(self, start: int, rows: slice, xs: Arrays, ys: Arrays, uses: Arrays) -> int:
        (x,), (y,), (use,) = xs, ys, uses
        indices, divisor = self.how(x.shape, self.axes)
        terms = [(factor, functools.partial(lambda at, v: v[at][rows], at)) for factor, at in indices]
        w = np.broadcast_to(np.asarray(divisor, np.float64), use[indices[0][1]].shape)
        n, w = len(w), w[rows]
        moved, used = differences(x, y, use), functools.reduce(np.logical_and, [part(use) for _, part in terms])
        total = Sums.zeros(used.shape)
        for factor, part in terms:
            total.add(Sums(factor * part(moved.high), factor * part(moved.low), abs(factor) * part(moved.size)))
        broken, unsure = verdict(total, 2 * len(terms), Sums(w, np.zeros(()), np.zeros(())), self.limit)
        for place in map(tuple, np.argwhere(unsure & used)):
            pairs = [(factor, float(part(x)[place]), float(part(y)[place])) for factor, part in terms]
            broken[place] = not all(math.isfinite(b) for *_, b in pairs) or self.breaks(
                sum((Fraction(factor) * (Fraction(b) - Fraction(a)) for factor, a, b in pairs), Fraction(0)), w[place])

        def values(at: Any) -> Arrays:
            return [sum(factor * part(v)[at].astype(np.float64) for factor, part in terms) / w[at] for v in (x, y)]

        self.outcome.count(broken, (total.high + total.low) / w, used, values, start + rows.start)
        return min(int(rows.stop), n)


class Norm(Local):
    """The root of the sum of squares of several variables."""

    def compare(self, start: int, rows: slice, xs: Arrays, ys: Arrays, uses: Arrays) -> int:
        was, became = (functools.reduce(np.hypot, [v.astype(np.longdouble) for v in each]) for each in (xs, ys))
        same = functools.reduce(np.logical_and, [x == y for x, y in zip(xs, ys)])
        error = np.abs(became - was)
        broken = ~(error + 16 * _LONG * np.maximum(was, became) <= self.limit) & ~same
        used = functools.reduce(np.logical_and, uses)
        self.outcome.count(broken, error, used, lambda at: (was[at], became[at]), start)
        return int(rows.stop)


# --- reductions -------------------------------------------------------------------------------------------------------


class Reduction(Judge):
    """One output from all values along the axes; accumulators have the shape of the outputs."""

    def __init__(self, of: Applied, axes: tuple[int, ...], how: Any) -> None:
        super().__init__(of, axes, how)
        self.shape = tuple(n for k, n in enumerate(of.shape) if k not in axes)
        self.n = np.zeros(self.shape, np.int64)
        """Values of each output."""

    def at(self, start: int, block: np.ndarray) -> Any:
        """Where the outputs of a block of rows are."""
        return ... if 0 in self.axes else slice(start, start + len(block))


class Total(Reduction):
    """The sum, or with `how` the mean, which may have weights."""

    def __init__(self, of: Applied, axes: tuple[int, ...], how: Any) -> None:
        super().__init__(of, axes, how)
        self.total, self.divisor = Sums.zeros(self.shape), Sums.zeros(self.shape)
        self.was = np.zeros(self.shape)
        self.pending: dict[tuple[int, ...], list[Fraction]] = {}
        """T and W of outputs that are added in fractions, and a third number above 0 if the copy has one that is not
        finite."""

    def weights(self, start: int, use: np.ndarray) -> np.ndarray:
        """The weights of a block of rows, 0 where values are not used."""
        w = self.of.weights
        if w is None:
            return use.astype(np.float64)
        return np.where(use, w if len(w) == 1 else w[start : start + len(use)], 0.0)

    def add(self, start: int, xs: Arrays, ys: Arrays, uses: Arrays) -> None:
        (x,), (y,), (use,) = xs, ys, uses
        at, moved, w = self.at(start, x), differences(x, y, use), self.weights(start, use)
        self.n[at] += use.sum(self.axes)
        self.was[at] += np.where(use, x * w, 0).sum(self.axes)
        if self.of.weights is not None:
            high, low, underflow = two_product(moved.high, w)
            more = moved.low * w
            moved = Sums(high, low + more, np.abs(low) + np.abs(more) + 2.0**60 * underflow)
        self.total.add(moved.folded(self.axes), at)
        self.divisor.add(Sums(w, np.zeros(w.shape), np.zeros(w.shape)).folded(self.axes), at)

    def close(self) -> bool:
        if not self.how:
            self.divisor = Sums(np.ones(self.shape), np.zeros(()), np.zeros(()))
        adds = 2 * math.prod(self.of.shape[k] for k in self.axes) + 8
        self.used = (self.n > 0) & (self.divisor.high > 0)
        self.broken, unsure = (np.asarray(v) for v in verdict(self.total, adds, self.divisor, self.limit))
        self.pending = {tuple(map(int, p)): [Fraction(0)] * 3 for p in np.argwhere(unsure & self.used)}
        return bool(self.pending)

    def again(self, start: int, xs: Arrays, ys: Arrays, uses: Arrays) -> None:
        (x,), (y,), (use,) = xs, ys, uses
        w = self.weights(start, use)
        for place, sums in self.pending.items():
            each = iter(place)
            at: list[Any] = [slice(None) if k in self.axes else next(each) for k in range(x.ndim)]
            if 0 not in self.axes:
                at[0] = slice(max(0, at[0] - start), max(0, at[0] - start + 1))  # empty where the block has it not
            some = use[tuple(at)]
            for a, b, c in zip(*(v[tuple(at)][some].astype(np.float64).tolist() for v in (x, y, w))):
                sums[0] += Fraction(c) * (Fraction(b) - Fraction(a)) if math.isfinite(b) else 0
                sums[1] += Fraction(c)
                sums[2] += not math.isfinite(b)

    def done(self) -> Outcome:
        for place, (total, divisor, lost) in self.pending.items():
            self.broken[place] = lost > 0 or self.breaks(total, divisor if self.how else 1)
        w = self.divisor.high
        was, error = self.was / w, (self.total.high + self.total.low) / w
        self.outcome.count(self.broken, error, self.used, lambda at: (was[at], (was + error)[at]))
        return self.outcome


class Extreme(Reduction):
    """The least or the greatest value; `how` is numpy.minimum or numpy.maximum."""

    def __init__(self, of: Applied, axes: tuple[int, ...], how: Any) -> None:
        super().__init__(of, axes, how)
        self.none = math.inf if how is np.minimum else -math.inf
        self.found = [np.full(self.shape, self.none) for _ in range(2)]

    def add(self, start: int, xs: Arrays, ys: Arrays, uses: Arrays) -> None:
        at, use = self.at(start, xs[0]), uses[0]
        self.n[at] += use.sum(self.axes)
        for found, v in zip(self.found, (xs[0], ys[0])):
            found[at] = self.how(found[at], self.how.reduce(np.where(use, v.astype(np.float64), self.none), self.axes))

    def done(self) -> Outcome:
        was, became = self.found
        high, low = two_sum(became, -was)
        one, none = np.ones(self.shape), np.zeros(self.shape)
        broken, unsure = (np.asarray(v) for v in verdict(Sums(high, low, none), 1, Sums(one, none, none), self.limit))
        for place in map(tuple, np.argwhere(unsure & (self.n > 0))):
            a, b = float(was[place]), float(became[place])
            broken[place] = not math.isfinite(b) or self.breaks(Fraction(b) - Fraction(a))
        self.outcome.count(broken, high + low, self.n > 0, lambda at: (was[at], became[at]))
        return self.outcome


class Spread(Reduction):
    """The standard deviation of all values, by moments that are joined as by Chan et al. 1983."""

    def __init__(self, of: Applied, axes: tuple[int, ...], how: Any) -> None:
        super().__init__(of, axes, how)
        self.moments = [[np.zeros(self.shape, np.longdouble) for _ in range(2)] for _ in range(2)]
        """Of x and of y: means, and sums of squares about them."""
        self.largest, self.differs = np.zeros(self.shape), np.zeros(self.shape, bool)

    def add(self, start: int, xs: Arrays, ys: Arrays, uses: Arrays) -> None:
        (x,), (y,), (use,) = xs, ys, uses
        at, more = self.at(start, x), np.asarray(use.sum(self.axes))
        self.differs[at] |= (use & (x != y)).any(self.axes)
        before = self.n[at].copy()
        self.n[at] += more
        for (mean, squares), v in zip(self.moments, (x, y)):
            v = np.where(use, v, 0).astype(np.longdouble)
            self.largest[at] = np.maximum(self.largest[at], np.abs(v).max(self.axes))
            own = v.sum(self.axes) / np.maximum(more, 1)
            about = np.where(use, v - np.expand_dims(own, self.axes), 0)
            weight, apart = more / np.maximum(self.n[at], 1), own - mean[at]
            squares[at] += (about**2).sum(self.axes) + apart**2 * before * weight
            mean[at] += apart * weight

    def done(self) -> Outcome:
        was, became = (np.sqrt(squares / np.maximum(self.n, 1)) for _, squares in self.moments)
        error = np.abs(became - was)
        broken = ~(error + 4 * self.n * _LONG * self.largest <= self.limit) & self.differs
        self.outcome.count(broken, error, self.n > 0, lambda at: (was[at], became[at]))
        return self.outcome


class Called(Judge):
    """A function of whole arrays, as its values come."""

    def __init__(self, of: Applied, axes: tuple[int, ...], how: Any) -> None:
        super().__init__(of, axes, how)
        self.arrays: tuple[list[Arrays], list[Arrays]] = ([], [])

    def add(self, start: int, xs: Arrays, ys: Arrays, uses: Arrays) -> None:
        self.arrays[0].append(xs)
        self.arrays[1].append(ys)

    def done(self) -> Outcome:
        was, became = (np.asarray(self.how(*map(np.concatenate, zip(*each)))) for each in self.arrays)
        if was.dtype.kind not in "fiub" or was.shape != became.shape:
            raise ValueError(f"h5z-gpu: {self.of.quantity}: it gives {was.dtype} of the shape {was.shape} for the "
                             f"original, {became.shape} for the copy; give real numbers of one shape")
        was, became = was.astype(np.longdouble), became.astype(np.longdouble)
        error = np.abs(became - was)
        self.outcome.count(~(error <= self.limit), error, np.isfinite(was), lambda at: (was[at], became[at]))
        return self.outcome


# --- the verdict ------------------------------------------------------------------------------------------------------

# The judge of each operation, and what it is given: a function of arrays, or a choice.
_JUDGES: dict[str, tuple[type[Judge], Any]] = {
    "difference": (Stencil, neighbours), "gradient": (Stencil, slope), "laplacian": (Stencil, curvature),
    "mean": (Total, True), "sum": (Total, False), "std": (Spread, None), "min": (Extreme, np.minimum),
    "max": (Extreme, np.maximum), "hypot": (Norm, None),
}


def _judges_of(of: Applied) -> list[Judge]:
    """What compares a quantity: one that has outputs for each axis, along each by itself."""
    operation = of.quantity.operation
    judge, how = _JUDGES[operation] if isinstance(operation, str) else (Called, operation)
    return [judge(of, axes, how) for axes in ([(k,) for k in of.axes] if of.quantity.kind.by_axis else [of.axes])]


def judge(quantities: Sequence[Applied], fields: Mapping[str, Field],
          blocks: Callable[[], Iterable[Block]]) -> list[Outcome]:
    """Compares quantities of a copy with those of the original. All are of variables with as many rows on axis 0.

    `blocks` gives all rows of x and y, native floats, in order. It is called again if an output of a sum or mean is so
    near its limit that its values are added in fractions.
    """
    judges = [_judges_of(each) for each in quantities]
    every = [j for some in judges for j in some]
    with np.errstate(all="ignore"):
        for again in (False, True):
            if again and not sum(j.close() for j in every):  # each is closed
                break
            for start, values in _cut(blocks()):
                uses = {name: usable(x, fields[name].fill) for name, (x, _) in values.items()}
                for j in every:
                    xs, ys = ([values[v][k] for v in j.of.variables] for k in (0, 1))
                    (j.again if again else j.add)(start, xs, ys, [uses[v] for v in j.of.variables])
        return [joined([j.done() for j in some]) for some in judges]


def _cut(blocks: Iterable[Block]) -> Iterator[Block]:
    """Blocks of fewer rows."""
    for start, values in blocks:
        first = next(iter(values.values()))[0]
        rows = max(1, _AT_ONCE // max(1, first[:1].size))
        for k in range(0, len(first), rows):
            yield start + k, {name: (x[k : k + rows], y[k : k + rows]) for name, (x, y) in values.items()}
