# SPDX-License-Identifier: MIT OR Apache-2.0
"""The loosest absolute bounds under which derived quantities stay within their limits, found by coding the data.

Variables that a quantity names together have bounds in a fixed proportion, t r_i: all r_i = 1 where they have the same
units, else r_i is the range of variable i. The search is for one number t. A trial codes and decodes all of the data in
memory, chunk by chunk as a file would have it, and judges every quantity:

    1. t from the theorems: with it each quantity holds whatever the data is
    2. while all trials hold, the next t is larger by limit / error: the error is about linear in the bound. It ends
       where a bound has reached the variable's range, beyond which nothing changes, or the user's own bound
    3. between the largest t that held and the least larger one that did not, the next is where log(error / limit),
       drawn as a line over log t, is 0. Every second is their geometric mean. Until they are within a factor of 1.25
    4. errors of a mean or a sum cancel, more by one bound than by the next. If t has become larger than the theorems'
       by that factor, one beyond the t that did not hold is tried, and one between

The answer is the largest t whose trial held; still larger ones may hold too.
"""

from __future__ import annotations

import decimal
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Callable, Optional, Union

import numpy as np

from . import batches
from .chunks import chunk_shape
from .filters import How, Lossless, Lossy
from .mltypes import is_bounded
from .quantity import Applied, Field, Quantity, applied, parse, usable
from .quantity_judges import Block, Outcome, judge
from .ranges import Ranges, whole_chunk

CODINGS = 10
"""Trials of one search at most."""
CLOSE = 1.25
"""A bound that held is near enough to a larger one that did not when they are within this factor."""
BEYOND = 2
"""Bounds that are tried then, where errors cancel: whether a sum of them is within its limit is chance, too."""
_AT_ONCE = 64 << 20
"""Bytes of chunks that are coded at a time."""


@dataclass
class Variable:
    """What is coded: a variable that is read by rows."""

    field: Field
    dtype: np.dtype
    chunk: tuple[int, ...]
    read: Callable[[int, int], np.ndarray]
    """Rows on axis 0, from one up to another, native and dense."""
    how: Lossy
    """Codec, what is kept, and the largest bound."""
    units: str = ""
    ranges: Callable[[Lossy], Optional[Ranges]] = lambda how: None
    """Limits of valid values, which a file keeps beside a bound."""


@dataclass
class Found:
    """The end of one search."""

    hows: dict[str, How] = field(default_factory=dict)
    """By variable: the loosest bound that held, or Lossless."""
    quantities: list[Applied] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    """Of that trial, in the order of the quantities; none where all variables are lossless."""
    theorem: list[dict[str, float]] = field(default_factory=list)
    """For each quantity alone: bounds by the theorem, or none for a function."""
    codings: int = 0
    why: str = ""
    """Why a variable is lossless."""


def connected(quantities: Iterable[Applied]) -> Iterator[tuple[set[str], list[Applied]]]:
    """Quantities that share variables, directly or by others, with the names of these."""
    left = list(quantities)
    while left:
        names, some = set(left[0].variables), list[Applied]()
        while more := [a for a in left if names & set(a.variables)]:
            some += more
            left = [a for a in left if all(a is not b for b in more)]
            names.update(*(a.variables for a in more))
        yield names, some


def search(variables: Mapping[str, Variable], quantities: Iterable[Applied]) -> list[Found]:
    """Searches the bounds of all variables that quantities name; connected ones together."""
    return [_Search({n: v for n, v in variables.items() if n in names}, some).run()
            for names, some in connected(quantities)]


class _Search:
    """One search."""

    def __init__(self, variables: Mapping[str, Variable], quantities: list[Applied]) -> None:
        self.variables = variables
        self.found = Found(quantities=quantities)
        self.changed = set[str]()
        self.frames: dict[str, How] = {}
        low, high = (dict.fromkeys(variables, end) for end in (math.inf, -math.inf))
        for name, v in variables.items():
            for a in range(0, v.field.shape[0], v.chunk[0]):
                x = v.read(a, min(a + v.chunk[0], v.field.shape[0]))
                use = usable(x, v.field.fill)
                low[name] = min(low[name], float(np.min(x, where=use, initial=np.inf)))
                high[name] = max(high[name], float(np.max(x, where=use, initial=-np.inf)))
        with np.errstate(all="ignore"):
            self.range = {name: max(0.0, min(high[name] - low[name], 1e300)) for name in variables}
            largest = {name: max(abs(low[name]), abs(high[name])) for name in variables}
            self.spacing = {n: float(np.spacing(np.asarray(largest[n], v.dtype))) for n, v in variables.items()}
        units = {v.units for v in variables.values()}
        self.part = dict.fromkeys(variables, 1.0) if len(units) == 1 and "" not in units else dict(self.range)

    def run(self) -> Found:
        """The loosest bounds."""
        found, some = self.found, [n for n in self.variables if self.range[n] > 0]
        found.hows = dict.fromkeys(self.variables, Lossless())
        if not some:
            found.why = "all of its values are the same"
            return found
        most = max(min(self.range[n], self.variables[n].how.bound) / self.part[n] for n in some)
        growth = [a.most([self.part[v] for v in a.variables]) for a in found.quantities]
        starts = [a.quantity.limit / g if g else most for a, g in zip(found.quantities, growth)]
        found.theorem = [{} if math.isnan(t) else {v: t * self.part[v] for v in a.variables}
                         for a, t in zip(found.quantities, starts)]
        start = min([most, *(most / 1000 if math.isnan(t) else t for t in starts)])
        if min(a.quantity.limit for a in found.quantities) == 0 or not self.bounds(start):
            found.why = "no bound keeps a limit of 0"
            return found
        held, failed, t, beyond, inside = None, None, start, 0, 0
        while found.codings < CODINGS:
            outcomes, share = self.trial(t)
            if all(o.held for o in outcomes):
                held, failed = (t, share), None if failed and failed[0] < t else failed
                found.hows, found.outcomes = dict(self.frames), outcomes
                exact = [n for n in some if n not in self.changed and self.bounds(t).get(n, 0) < self.spacing[n]]
            elif failed is None or t < failed[0]:
                failed = (t, max(share, 1.001))  # it may be broken by its margin
            close = held and failed and failed[0] <= CLOSE * held[0]
            beyond = beyond + 1 if close else 0
            if held and (held[0] >= most or (close and (beyond > BEYOND or held[0] < CLOSE * start))):
                break
            inside = inside + 1 if held and failed else 0
            t = min(most, failed[0] * CLOSE**0.5 if close and failed and beyond == 1 else _next(held, failed, inside))
        if held is None or len(exact) == len(some):
            found.hows, found.outcomes = dict.fromkeys(self.variables, Lossless()), []
            found.why = "no bound above the spacing of its values keeps the limit"
        return found

    def bounds(self, t: float) -> dict[str, float]:
        """The bounds of a trial, with four digits, rounded down; of variables that may change at all."""
        capped = {n: min(t * p, self.range[n], self.variables[n].how.bound) for n, p in self.part.items()}
        return {n: b for n, c in capped.items() if (b := rounded_down(c)) > 0}

    def trial(self, t: float) -> tuple[list[Outcome], float]:
        """Codes all of the data: what became of the quantities, and the largest error as a part of its limit."""
        bounds = self.bounds(t)
        self.frames = {n: Lossy(**{**v.how.get_config(), "absolute": bounds[n]}) if n in bounds else Lossless()
                       for n, v in self.variables.items()}
        self.changed.clear()
        fields = {name: v.field for name, v in self.variables.items()}
        outcomes = judge(self.found.quantities, fields, self.blocks)
        self.found.codings += 1
        return outcomes, max(o.share for o in outcomes)

    def blocks(self) -> Iterator[Block]:
        """All rows, in blocks of whole chunks, of the data and of what comes back."""
        n = next(iter(self.variables.values())).field.shape[0]
        rows = math.lcm(*(v.chunk[0] for v in self.variables.values()))
        for a in range(0, n, rows):
            block = {}
            for name, v in self.variables.items():
                x = v.read(a, min(a + rows, n))
                block[name] = (x, coded(x, v, self.frames[name]))
                if not np.array_equal(*block[name], equal_nan=True):
                    self.changed.add(name)
            yield a, block


def _next(held: Optional[tuple[float, float]], failed: Optional[tuple[float, float]], turn: int) -> float:
    """The t to try after the largest that held and the least that did not, each with error / limit there; `turn`: how
    many were tried since there are both."""
    if failed is None and held is not None:
        return held[0] * min(max(CLOSE, 1 / held[1]), 1e4) if held[1] else held[0] * 1e3
    if held is None:
        assert failed is not None
        return failed[0] * min(max(1e-4, 0.9 / failed[1]), 1 / CLOSE)
    assert failed is not None
    width = failed[0] / held[0]
    part = 0.5
    if turn % 2 and width > CLOSE and held[1] > 0 and math.isfinite(failed[1]):
        part = math.log(1 / held[1]) / math.log(failed[1] / held[1])
    edge = math.log(min(CLOSE, math.sqrt(width))) / math.log(width)
    return float(held[0] * width ** min(max(part, edge), 1 - edge))


def rounded_down(value: float) -> float:
    """A number with at most four significant digits that is not above a value; 0 for 0."""
    if not value > 0:
        return 0.0
    return float(decimal.Context(prec=4, rounding=decimal.ROUND_DOWN).create_decimal(repr(float(value))))


def coded(x: np.ndarray, v: Variable, how: How) -> np.ndarray:
    """What comes back of rows of whole chunks of a variable that is written with a filter."""
    if isinstance(how, Lossless):
        return x
    y, ranges = np.empty_like(x), v.ranges(how)
    corners = list(itertools.product(*(range(0, n, c) for n, c in zip(x.shape, v.chunk))))
    at_once = max(1, _AT_ONCE // (math.prod(v.chunk) * x.itemsize))
    for k in range(0, len(corners), at_once):
        boxes = [tuple(slice(o, o + c) for o, c in zip(corner, v.chunk)) for corner in corners[k : k + at_once]]
        given = [whole_chunk(x[box], v.chunk, v.field.fill) for box in boxes]
        back = _decoded(batches.encode(given, how.words, v.field.fill), given)
        for box, a, b in zip(boxes, given, back):
            part = tuple(slice(0, n) for n in x[box].shape)
            if ranges and ranges.differ(a[part], b[part]).any():
                (b,) = _decoded([ranges.frame(a, b)], [a])
            y[box] = b[part]
    return y


def _decoded(frames: Sequence[bytes], like: Sequence[np.ndarray]) -> list[np.ndarray]:
    back = [np.empty_like(a) for a in like]
    batches.decode([np.frombuffer(f, np.uint8) for f in frames], back)
    return back


def loosest(arrays: Any, quantities: Iterable[Union[Quantity, str]], how: Optional[Lossy] = None, *,
            chunks: Optional[tuple[int, ...]] = None) -> Any:
    """The loosest absolute bounds with which derived quantities of arrays stay within their limits.

    Parameters
    ----------
    arrays : array_like, or mapping of str to array_like
        Of float16, float32 or float64. xarray's have names of dimensions and units, others numbers of axes.
    quantities : iterable of Quantity or str
        "gradient(tas, x) 0.01", "mean(0) 1e-4", or Quantity(function, 0.01, ["tas"]) of a function of whole arrays.
    how : Lossy, optional
        Codec, fill value, what is kept, and the largest bound. Default: the range of each array.
    chunks : tuple of int, optional
        Extents of chunks. Default: those of `save`.

    Returns
    -------
    Lossy or Lossless, or a dict of them
        With a bound by which all of the data was coded, decoded and judged; Lossless where none held. For an array by
        itself the filter, for a mapping a dict with those that quantities name.

    Raises
    ------
    ValueError
        For what is no quantity of these arrays, and for a bound of another mode.

    Examples
    --------
    >>> h5z_gpu.save("out.h5", {"v": a}, h5z_gpu.loosest(a, ["gradient(0) 0.01", "mean() 1e-4"]))
    """
    if how is not None and (not isinstance(how, Lossy) or how.mode.keyword != "absolute"):
        raise ValueError(f"h5z-gpu: how = {how!r}; give the largest bound, such as h5z_gpu.Lossy(absolute=0.1)")
    given = arrays if isinstance(arrays, Mapping) else {"v": arrays}
    how = Lossy(absolute=1e300) if how is None else how
    variables = {str(name): _variable(str(name), array, how, chunks) for name, array in given.items()}
    fields = {name: v.field for name, v in variables.items()}
    every = [a for q in quantities for a in applied(parse(q) if isinstance(q, str) else q, fields)]
    if not every:
        raise ValueError("h5z-gpu: no quantity is named; give one such as 'mean(0) 1e-4'")
    hows = {name: h for found in search(variables, every) for name, h in found.hows.items()}
    return hows if isinstance(arrays, Mapping) else hows["v"]


def _variable(name: str, array: Any, how: Lossy, chunks: Optional[tuple[int, ...]]) -> Variable:
    a = np.asarray(array)
    if not is_bounded(a.dtype) or a.dtype.kind != "f" or not a.size or not a.ndim:
        raise ValueError(f"h5z-gpu: {name} is {a.dtype} of the shape {a.shape}: bounds are of arrays of float16, "
                         "float32 or float64 with values in them")
    a = a.astype(a.dtype.newbyteorder("="), copy=False)
    fill = None if how.fill_value is None else np.asarray(how.fill_value, a.dtype)
    dims = tuple(str(d) for d in getattr(array, "dims", ()))
    units = str(getattr(array, "attrs", {}).get("units", ""))
    own = chunk_shape(a.shape, a.itemsize) if chunks is None else tuple(chunks)
    return Variable(Field(a.shape, dims, fill), a.dtype, own, lambda b, e: np.ascontiguousarray(a[b:e]), how, units)
