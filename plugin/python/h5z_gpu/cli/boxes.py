# SPDX-License-Identifier: MIT OR Apache-2.0
"""Boxes of a dataset that are read at a time: whole chunks, so that each chunk is decoded once and memory stays
bounded."""

from __future__ import annotations

import math
from collections.abc import Iterator

Box = tuple[slice, ...]


def boxes(shape: tuple[int, ...], step: tuple[int, ...]) -> Iterator[Box]:
    """Boxes of extents `step` that cover an array, in order; the last ones of an axis may be shorter."""
    if not shape:
        yield ()
        return
    # Not by itertools.product, which keeps all places of each axis: extents of a damaged file may be anything.
    for before in boxes(shape[:-1], step[:-1]):
        for a in range(0, shape[-1], step[-1]):
            yield (*before, slice(a, min(a + step[-1], shape[-1])))


def grown(chunk: tuple[int, ...], shape: tuple[int, ...], values: int) -> tuple[int, ...]:
    """Extents of a box of whole chunks with about `values` values: the chunk, longer along the last axes first.

    Rows of the file's order stay together that way. A chunk that is larger already is given as it is.
    """
    box = [min(c, n) if n else 1 for c, n in zip(chunk, shape)]
    for k in reversed(range(len(box))):
        fit = max(1, values // max(1, math.prod(box)))
        box[k] = min(box[k] * fit, max(1, shape[k]))
        if box[k] < shape[k]:
            break
    return tuple(box)


def cut(chunk: tuple[int, ...], values: int) -> tuple[int, ...]:
    """Extents of a part of a chunk with at most about `values` values, cut along the first axes."""
    part = list(chunk)
    for k in range(len(part)):
        rest = math.prod(part[k + 1 :])
        part[k] = max(1, min(part[k], values // max(1, rest)))
        if math.prod(part) <= values:
            break
    return tuple(part)


def count(shape: tuple[int, ...], step: tuple[int, ...]) -> int:
    """How many boxes `boxes` gives."""
    return math.prod(-(-n // s) for n, s in zip(shape, step))
