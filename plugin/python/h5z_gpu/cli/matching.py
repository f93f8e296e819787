# SPDX-License-Identifier: MIT OR Apache-2.0
"""Two sources that do not match as they are: packed in one file and not in the other, or longer in one of them.

Packed integers are compared as the values that readers see, missing ones as NaN in both. Of sources of different
extents, the common part is compared.
"""

from __future__ import annotations

import math
from typing import Any, Optional

import numpy as np

from .. import keep as keeping
from ..judge import Promise
from ..unpacking import Packing
from .boxes import Box
from .common import Problem
from .packed import missing_in, packing
from .sources import Source

_ULPS = 4
"""Units in the last place by which readers may differ who unpack in another order or precision."""


class _AsRead(Source):
    """A source as readers see it: unpacked, and missing values as NaN."""

    def __init__(self, source: Source, how: Optional[Packing], dtype: np.dtype) -> None:
        super().__init__(source.name, source.shape, dtype, dataset=source.dataset, array=source.array)
        self.how = how
        self.missing = () if how is not None or source.dataset is None else missing_in(source.dataset)

    def read(self, box: Box) -> np.ndarray:
        values = super().read(box)
        if self.how is not None:
            return self.how.values(values, self.dtype)
        made: np.ndarray = values.astype(self.dtype)
        for value in self.missing:
            made[values == np.asarray(value, values.dtype)] = math.nan
        made[np.isnan(made)] = math.nan  # of one kind
        return made


class _Part(Source):
    """The beginning of a source along each axis."""

    def __init__(self, source: Source, shape: tuple[int, ...]) -> None:
        super().__init__(source.name, shape, source.dtype, dataset=source.dataset, array=source.array)
        self.source = source

    def read(self, box: Box) -> np.ndarray:
        return self.source.read(box)


def unpacked(a: Source, b: Source) -> Optional[tuple[Source, Source, str]]:
    """Both as readers see them and a sentence on it, where one is packed and the other not, or in another way. None
    where they can be compared as they are, or not at all."""
    one, other = (packing(s.dataset) if s.dataset is not None else None for s in (a, b))
    if one == other or not all(_numbers(s.dtype) for s in (a, b)):
        return None
    if (one is None and a.dtype.kind != "f") or (other is None and b.dtype.kind != "f"):
        return None
    floats = [s.dtype for s, how in ((a, one), (b, other)) if how is None]
    dtype: np.dtype = floats[0].newbyteorder("=") if floats else np.dtype("f8")
    dtype = np.dtype("f4") if dtype.itemsize == 2 else dtype
    text = "compared as readers see them: " + ", ".join(
        f"{s.dtype.name}{'' if how is None else f' in steps of {how.step:g}'} in {where}"
        for s, how, where in ((a, one, "ORIGINAL"), (b, other, "COMPRESSED"))
    )
    return _AsRead(a, one, dtype), _AsRead(b, other, dtype), text


def _numbers(dtype: np.dtype) -> bool:
    return dtype.kind in "iu" or (dtype.kind == "f" and dtype.itemsize in (2, 4, 8))


def promise_as_read(promise: Promise, a: Source, b: Source) -> tuple[Promise, str]:
    """A promise about values that readers unpack: an absolute bound, wider by what rounding may add. And a note.

    Signs, zeros and ranges are not judged: readers round the values of one file only, so that no bit is the same.

    Of a copy that is packed and for which nothing is given, it is half a step; of one that promises every bit, what
    rounding may add.
    """
    left = f"not judged of unpacked values: {keeping.kept(promise.keep)}" if promise.keep else ""
    how = getattr(b, "how", None)
    if how is not None and not promise.given:
        promise = Promise("absolute", how.step / 2)
    if promise.mode == "lossless":
        promise = Promise("absolute", 0.0, None, promise.given)
    if promise.mode != "absolute":
        return Promise(promise.mode, promise.bound, None, promise.given), left
    largest = max((x.how.largest for x in (a, b) if isinstance(x, _AsRead) and x.how is not None), default=0.0)
    with np.errstate(all="ignore"):
        slack = _ULPS * float(np.spacing(np.asarray(largest, b.dtype)))
    wider = promise.bound + slack
    return Promise("absolute", wider if math.isfinite(wider) else promise.bound, None, promise.given), left


def common_part(a: Source, b: Source, allowed: bool, by_chunk: bool) -> tuple[Source, Source, str]:
    """The part that original `a` and copy `b`, of different shapes, both have, and a sentence on it.

    `allowed`: the copy may be the shorter one. `by_chunk`: the promise is about whole chunks of the copy; those that
    the original ends in are left out. Problem where they have no common part, or the copy is shorter.
    """
    differ = f"{a.name} has the shape {a.shape} in one file and {b.shape} in the other"
    if a.shape is None or b.shape is None or len(a.shape) != len(b.shape):
        raise Problem(f"{differ}: they cannot be compared")
    if not allowed and any(m < n for n, m in zip(a.shape, b.shape)):
        raise Problem(f"{differ}: the copy is not complete; --common compares what both have")
    shape = [min(n, m) for n, m in zip(a.shape, b.shape)]
    if by_chunk and b.chunks:
        for k, c in enumerate(b.chunks):
            if shape[k] < b.shape[k]:
                shape[k] -= shape[k] % c
    if not all(shape):
        what = "have no whole chunk in common" if by_chunk else "have nothing in common"
        raise Problem(f"{differ}, and {what}: they cannot be compared")
    longer = [f"axis {k}: {s} of {n} in ORIGINAL and of {m} in COMPRESSED" for k, (s, n, m) in
              enumerate(zip(shape, a.shape, b.shape)) if n != m]
    text = f"the common part is compared, along {'; '.join(longer)}"
    return _Part(a, tuple(shape)), _Part(b, tuple(shape)), text


def matched(a: Source, b: Source, notes: list[str]) -> tuple[Source, Source]:
    """Both as they can be compared. Problem where their types differ for good."""
    found: Any = unpacked(a, b)
    if found is not None:
        notes.append(found[2])
        return found[0], found[1]
    if a.dtype.newbyteorder("=") != b.dtype.newbyteorder("="):
        raise Problem(
            f"{a.name} is of {a.dtype.name} in one file and of {b.dtype.name} in the other: they cannot be compared"
        )
    return a, b
