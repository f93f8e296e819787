# SPDX-License-Identifier: MIT OR Apache-2.0
"""Puts fill values where a dataset's stored values are lost, for `recover`."""
from __future__ import annotations

import math
from typing import Any, Optional

import h5py
import numpy as np

from ..arrays import compress
from ..filters import FILTER_ID
from ..index import skipped_at_edges
from .common import Problem
from .objects import Chunks, filters_of

Lost = list[dict[str, Any]]


def fill_chunks(name: str, chunks: Chunks, target: h5py.Dataset, fill: Optional[float]) -> Lost:
    """Puts the fill value into `target` for every chunk that cannot be decoded."""
    return [lost_chunk(name, target, chunks.origins[row].tolist(), put(target, chunks.origins[row], fill), why)
            for row, why in sorted(chunks.damage.items())]


def lost_chunk(name: str, dataset: h5py.Dataset, origin: list[int], value: str, why: str) -> dict[str, Any]:
    """What is reported of a chunk."""
    box = ", ".join(f"{o}:{min(o + c, n)}" for o, c, n in zip(origin, dataset.chunks, dataset.shape))
    return {"object": name, "chunk": origin, "values": f"[{box}]", "filled_with": value, "why": why}


def put(dataset: h5py.Dataset, origin: list[int], fill: Optional[float]) -> str:
    """Replaces a chunk by one that holds the fill value; which, as text."""
    element, text = _element(dataset, fill)
    raw = np.frombuffer(element * math.prod(dataset.chunks), f"V{len(element)}").reshape(dataset.chunks)
    numbers = [f[0] for f in filters_of(dataset)]
    # The filters that this chunk does without: all but ours, and all where HDF5 stores chunks at the edges as they are.
    used = FILTER_ID in numbers and not skipped_at_edges(dataset, np.array([origin]))[0]
    mask = sum(1 << place for place, number in enumerate(numbers) if number != FILTER_ID or not used)
    stored = compress(raw) if used else raw.tobytes()
    dataset.id.write_direct_chunk(tuple(int(o) for o in origin), stored, mask)
    return text


def _element(dataset: h5py.Dataset, fill: Optional[float]) -> tuple[bytes, str]:
    """One element, as it stands in the file, for lost values of a dataset; and as text."""
    item = dataset.id.get_type().get_size()
    try:
        kind = dataset.dtype
    except TypeError:
        kind = None
    if kind is None or kind.hasobject or kind.itemsize != item:
        return bytes(item), "zero bytes"
    defined = dataset.id.get_create_plist().fill_value_defined() == h5py.h5d.FILL_VALUE_USER_DEFINED
    value = dataset.fillvalue
    if fill is not None and kind.kind in "fiu":
        if kind.kind != "f" and not (math.isfinite(fill) and fill == int(fill)
                                     and np.iinfo(kind).min <= fill <= np.iinfo(kind).max):
            raise Problem(f"--fill {fill:g} is no value of {dataset.name}, which holds {kind}")
        value = fill if kind.kind == "f" else int(fill)
    elif kind.kind == "f" and not defined:
        value = math.nan
    element = np.asarray(value, kind)
    return element.tobytes(), str(element)


def fill_end(name: str, source: h5py.Dataset, dataset: h5py.Dataset, there: int, fill: Optional[float]) -> Lost:
    """Fills the end of a dataset in one piece that lay where the input, of `there` bytes, was cut."""
    at = source.id.get_offset()
    stored = source.id.get_storage_size()
    if at is None or at + stored <= there or not dataset.size:
        return []
    element, text = _element(dataset, fill)
    first = max(0, there - at) // len(element)
    if not text.endswith("bytes"):
        whole = dataset[()]
        flat = np.atleast_1d(whole).reshape(-1)
        flat[first:] = np.frombuffer(element, dataset.dtype)[0]
        dataset[()] = flat.reshape(dataset.shape)
    return [{"object": name, "values": f"the last {dataset.size - first} of {dataset.size}", "filled_with": text,
             "why": f"it ends at byte {at + stored}, the input at {there}"}]
