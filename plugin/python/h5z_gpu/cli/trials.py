# SPDX-License-Identifier: MIT OR Apache-2.0
"""Trials of filters on sampled chunks: size, speed and error, without a file.

Chunks are drawn by strata: their row is cut into as many equal parts as chunks are wanted, and one is drawn from each
by a generator that the dataset's name seeds. The same file gives the same advice.
"""

from __future__ import annotations

import math
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Optional

import numpy as np

from .. import batches, modes
from ..filters import How
from ..judge import native
from ..quantity import usable
from .boxes import Box, boxes, count
from .names import as_bytes
from .quality import dot

_AT_ONCE = 1 << 17  # values whose errors stay in a cache


@dataclass
class Trial:
    """What a filter makes of some chunks."""

    how: How
    raw: int
    stored: list[int]
    seconds: float
    largest: float
    squares: float
    n: int
    codecs: dict[str, int]

    @property
    def ratio(self) -> float:
        """Raw bytes over stored ones."""
        return self.raw / max(1, sum(self.stored))

    @property
    def speed(self) -> float:
        """Bytes encoded in a second."""
        return self.raw / self.seconds if self.seconds > 0 else math.inf

    @property
    def spread(self) -> float:
        """Standard error of the mean stored length, as a part of it."""
        n = len(self.stored)
        mean = sum(self.stored) / n
        return float(np.std(self.stored, ddof=1)) / math.sqrt(n) / mean if n > 1 and mean else 0.0

    def bits(self, item: int) -> float:
        """Bits a value."""
        return 8 * item / self.ratio

    def psnr(self, wide: float) -> float:
        """Decibels over a range; infinite where nothing differs."""
        if not self.n or not self.squares or not wide > 0:
            return math.inf
        return 20 * math.log10(wide / math.sqrt(self.squares / self.n))

    @property
    def codec(self) -> str:
        """The codec of most chunks."""
        return max(self.codecs, key=lambda name: self.codecs[name])


class Sampler:
    """Draws chunks, of extents `chunk`, of a dataset of floating-point numbers."""

    def __init__(self, dataset: Any, chunk: tuple[int, ...]) -> None:
        self.dataset, self.chunk = dataset, chunk
        self.total = count(dataset.shape, chunk)
        self.seed = zlib.crc32(as_bytes(dataset.name))

    def draw(self, wanted: int) -> list[Box]:
        """Boxes of `wanted` different chunks, or of all."""
        n = min(self.total, max(1, wanted))
        edges = [k * self.total // n for k in range(n + 1)]
        rng = np.random.default_rng((0, self.seed, n))
        places = {int(rng.integers(a, b)) for a, b in zip(edges, edges[1:])}
        grid = tuple(-(-m // c) for m, c in zip(self.dataset.shape, self.chunk))
        found = []
        for place in sorted(places):
            at = np.unravel_index(place, grid)
            sides = zip(map(int, at), self.chunk, self.dataset.shape)
            found.append(tuple(slice(k * c, min((k + 1) * c, m)) for k, c, m in sides))
        return found

    def read(self, box: Box) -> np.ndarray:
        """The values of a box, in native order."""
        from .common import Problem
        from .packed import read_values
        from .roles import why_unread

        try:
            return native(read_values(self.dataset, box))
        except (OSError, RuntimeError, ValueError) as why:
            raise Problem(why_unread(self.dataset, why)) from None


def cut_up(block: np.ndarray, shape: tuple[int, ...]) -> list[np.ndarray]:
    """Whole boxes of a shape within a block, side by side."""
    if any(s > n for s, n in zip(shape, block.shape)):
        return []
    whole = tuple(n - n % s for n, s in zip(block.shape, shape))
    return [np.ascontiguousarray(block[box]) for box in boxes(whole, shape)]


def attempt(blocks: Sequence[np.ndarray], how: How, fill: Optional[np.ndarray], timed: bool = False,
            errors: bool = True) -> Trial:
    """Encodes and decodes chunks, which are whole and of one shape.

    `fill` is the filter's fill value. `timed`: encode once before; the first use of a codec is slower. `errors`: decode
    too, and look at the errors.
    """
    if timed:
        batches.encode(list(blocks[:1]), how.words, fill)
    begin = time.perf_counter()
    frames = batches.encode(list(blocks), how.words, fill)
    seconds = time.perf_counter() - begin
    largest, squares, n = 0.0, 0.0, 0
    if errors:
        back = [np.empty_like(b) for b in blocks]
        batches.decode([np.frombuffer(f, np.uint8) for f in frames], back)
        for a, b in zip(blocks, back):
            for first in range(0, a.size, _AT_ONCE):
                x, y = (v.reshape(-1)[first : first + _AT_ONCE] for v in (a, b))
                use = usable(x, fill)
                with np.errstate(all="ignore"):
                    error = y.astype(np.float64)
                    error -= x
                error[~use] = 0
                largest = max(largest, float(error.max()), -float(error.min()))
                squares += dot(error, error)
                n += int(np.count_nonzero(use))
    codecs: dict[str, int] = {}
    for f in frames:
        name = modes.frame_codec(f[9])
        codecs[name] = codecs.get(name, 0) + 1
    return Trial(how, sum(b.nbytes for b in blocks), [len(f) for f in frames], seconds, largest, squares, n, codecs)
