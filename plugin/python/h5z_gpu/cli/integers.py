# SPDX-License-Identifier: MIT OR Apache-2.0
"""Which integers `repack` compresses without loss, when nobody names them: the rule that `advise` speaks of too.

Integers that have no filter are compressed, from 64 kB on, whatever else is asked. Those that another filter compresses
already are compressed by --lossless, or by a pattern of a table that says so, and only where a sample of their chunks
becomes shorter by 5 % or more.
"""

from __future__ import annotations

import h5py

from ..filters import Lossless, words_of
from ..ranges import is_of_numpy, whole_chunk
from .common import Problem
from .objects import filters_of
from .roles import INTEGERS, chunk_of
from .trials import Sampler, attempt

_SMALL = 64 << 10
"""Integers of fewer bytes are not worth chunks."""
_GAIN = 0.05
_SAMPLED = 3


def compresses(dataset: h5py.Dataset, lossless: bool) -> bool:
    """Whether `repack` compresses a dataset of integers, with --lossless or without."""
    if not _may_be(dataset):
        return False
    return not filters_of(dataset) or (lossless and saved(dataset) >= _GAIN * dataset.id.get_storage_size())


def saved(dataset: h5py.Dataset) -> float:
    """Bytes that compression of a dataset of integers saves, from a few chunks; 0 where they cannot be read."""
    sampler = Sampler(dataset, chunk_of(dataset))
    boxes = sampler.draw(_SAMPLED)
    try:
        blocks = [whole_chunk(sampler.read(b), sampler.chunk, None) for b in boxes]
    except Problem:
        return 0.0
    stored = sum(attempt(blocks, Lossless(), None, errors=False).stored)
    return float(dataset.id.get_storage_size() - stored / len(boxes) * sampler.total)


def why_left(dataset: h5py.Dataset, why: str) -> str:
    """Why `repack` leaves a dataset as it is, from why it keeps every bit."""
    if why != INTEGERS or not isinstance(dataset.id.get_type(), h5py.h5t.TypeIntegerID):
        return why
    properties = dataset.id.get_create_plist()
    names = [properties.get_filter(k)[3].decode(errors="replace") for k in range(properties.get_nfilters())]
    if names:
        return f"{why}, which are compressed already: {', '.join(name.split(';')[0] for name in names)}"
    size = (dataset.size or 0) * dataset.id.get_type().get_size()  # of a null space h5py has no size
    return f"{why}, {size} bytes of them" if _is_small(dataset) else why


def _is_small(dataset: h5py.Dataset) -> bool:
    return not dataset.shape or dataset.size * dataset.id.get_type().get_size() < _SMALL


def _may_be(dataset: h5py.Dataset) -> bool:
    return (
        isinstance(dataset.id.get_type(), h5py.h5t.TypeIntegerID)
        and is_of_numpy(dataset)
        and not _is_small(dataset)
        and words_of(dataset) is None
        and not dataset.is_virtual
        and not dataset.external
    )
