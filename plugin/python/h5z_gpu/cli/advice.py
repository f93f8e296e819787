# SPDX-License-Identifier: MIT OR Apache-2.0
"""What `advise` finds for one variable, or why it leaves one alone."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Optional

import numpy as np

from ..filters import How

if TYPE_CHECKING:
    from .proposal import Proposal
    from .trials import Trial


@dataclass
class Advice:
    """What is proposed for one variable."""

    name: str
    dtype: np.dtype
    shape: tuple[int, ...]
    units: str
    how: How
    chunk: tuple[int, ...]
    proposal: Proposal
    fill: Optional[np.ndarray]
    raw: int
    before: int
    usual: tuple[int, ...] = ()
    """The chunks that repack takes without advice."""
    hidden: bool = False
    """The fill value is one that the file does not declare."""
    packed: bool = False
    """The file holds integers, which become values of `dtype`; `raw` are their bytes."""
    fixed: bool = False
    """Its bound holds for the usual chunks and codec alone, since derived quantities were judged with them."""
    trial: Optional[Trial] = None
    """The choice, on the chunks of the prediction."""
    chunks: int = 0
    codecs: list[Trial] = field(default_factory=list)
    shapes: list[tuple[tuple[int, ...], Trial]] = field(default_factory=list)
    curves: dict[str, list[Trial]] = field(default_factory=dict)
    part: Optional[Trial] = None
    """The choice, on the values that the curves are about."""
    lossless: Optional[Trial] = None

    @property
    def stored(self) -> float:
        """Bytes that the variable is predicted to take."""
        assert self.trial is not None
        return sum(self.trial.stored) / len(self.trial.stored) * self.chunks

    @property
    def ratio(self) -> float:
        """Predicted ratio."""
        return self.raw / max(1.0, self.stored)

    @property
    def of_file(self) -> float:
        """By what a ratio of the values is multiplied to be one of the bytes in the file."""
        return self.raw / (math.prod(self.shape) * self.dtype.itemsize)

    @property
    def wide(self) -> float:
        """Range of the sampled values."""
        p = self.proposal
        return p.high - p.low if p.low is not None and p.high is not None else 0.0


@dataclass
class Kept:
    """A dataset that stays as it is, and why."""

    name: str
    why: str
    note: str = ""
    saved: float = 0
    """Bytes that `repack --lossless` is predicted to save, of integers."""
    at_once: bool = True
    """They are saved without --lossless too: nobody has compressed them yet."""
