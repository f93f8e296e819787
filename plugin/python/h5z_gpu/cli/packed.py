# SPDX-License-Identifier: MIT OR Apache-2.0
"""Packed variables for the commands: the values that readers see, in place of the integers that are stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Optional

import numpy as np

from ..conventions import missing_in as declared, value_in
from ..unpacking import PACKED, SCALING, Packing, packing_of
from .boxes import Box
from .objects import known_attributes
from .promise import fill_is_defined


def packing(dataset: Any) -> Optional[Packing]:
    """How a dataset of h5py is packed, or None."""
    try:
        kind = dataset.dtype
    except (TypeError, ValueError, OSError):
        return None
    there = known_attributes(dataset)
    if not dataset.shape or not dataset.size or not there.keys() & set(SCALING):
        return None
    fill = int(dataset.fillvalue) if kind.kind in "iu" and fill_is_defined(dataset) else None
    return packing_of(kind, _attributes(there), fill)


def _attributes(there: Mapping[str, Any]) -> dict[str, Any]:
    found = {key: value_in(there, key) for key in PACKED}
    return {key: value for key, value in found.items() if value is not None}


class Unpacked:
    """A packed dataset of h5py with the type of its values, for commands that look at values alone."""

    def __init__(self, dataset: Any, how: Packing) -> None:
        self.dataset, self.packing = dataset, how

    def __getattr__(self, name: str) -> Any:
        return getattr(self.dataset, name)

    @property
    def dtype(self) -> np.dtype:
        """The type of the values."""
        return self.packing.dtype


def read_values(dataset: Any, box: Box) -> np.ndarray:
    """The values of a box of a dataset or an `Unpacked`."""
    from ..datasets import read

    if isinstance(dataset, Unpacked):
        return dataset.packing.values(read(dataset.dataset, selection=box))
    values: np.ndarray = read(dataset, selection=box)
    return values


def missing_in(dataset: Any) -> tuple[float, ...]:
    """What stands for no value in a floating-point dataset."""
    found = [float(x) for x in declared(dataset.attrs)]
    return (*found, float(dataset.fillvalue)) if fill_is_defined(dataset) else tuple(found)


def unpack_attributes(new: Any, how: Packing) -> None:
    """Makes the attributes that were copied from a packed dataset those of its values.

    Missing values are NaN, and say so: readers mask them as they did.
    """
    given = _attributes(new.attrs)
    limits = how.limits(given)
    for key in given:
        if key in SCALING or key == "_Unsigned" or key in ("_FillValue", "missing_value") or (
            key not in limits and np.asarray(given[key]).dtype.kind in "iu"
        ):
            del new.attrs[key]
    for key, value in limits.items():
        new.attrs[key] = value
    if how.missing:
        new.attrs.create("_FillValue", np.full(1, np.nan, new.dtype))
