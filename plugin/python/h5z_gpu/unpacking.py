# SPDX-License-Identifier: MIT OR Apache-2.0
"""Values that a file holds as packed integers, as readers by the conventions CF see them: integer * scale_factor +
add_offset, and missing values as NaN. Without xarray; `packing` has what needs it.
"""
from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Optional

import numpy as np

from .conventions import LIMITS, numbers_in, text_in

SCALING = ("scale_factor", "add_offset")
# Attributes that are in packed units, or say how to unpack.
PACKED = (*SCALING, *LIMITS, "_FillValue", "missing_value", "_Unsigned")


@dataclass(frozen=True)
class Packing:
    """How a variable is packed."""

    scale: float
    offset: float
    dtype: np.dtype
    """Type of the values, float32 or float64 of this machine."""
    packed: np.dtype
    """Type of the integers, as readers take them."""
    missing: tuple[int, ...] = ()
    """Integers that stand for no value."""

    @property
    def step(self) -> float:
        """Distance of neighbouring values; half of it was lost when they were packed."""
        return abs(self.scale)

    @property
    def largest(self) -> float:
        """What no value is beyond."""
        limits = np.iinfo(self.packed)
        return max(abs(self.scale * limits.min), abs(self.scale * limits.max)) + abs(self.offset)

    def values(self, integers: np.ndarray, dtype: Optional[np.dtype] = None) -> np.ndarray:
        """The values, in the arithmetic of their type, or of another."""
        dtype = dtype or self.dtype
        native = np.asarray(integers).astype(integers.dtype.newbyteorder("="), copy=False)
        native = native.view(self.packed) if native.dtype.itemsize == self.packed.itemsize else native
        with np.errstate(all="ignore"):
            made: np.ndarray = native.astype(dtype)
            made *= dtype.type(self.scale)
            made += dtype.type(self.offset)
        for value in self.missing:
            made[native == value] = math.nan
        return made

    def limits(self, attributes: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """Attributes of valid values in packed units, as CF has them, in those of the values.

        They are wider by half a step, so that a value at the limit stays valid within the bound.
        """
        found: dict[str, np.ndarray] = {}
        half = {"valid_range": (-0.5, 0.5), "valid_min": (-0.5,), "valid_max": (0.5,)}
        for key in LIMITS:
            given = numbers_in(attributes.get(key))
            if given.size != len(half[key]) or given.dtype.kind not in "iu":
                continue  # of the type of the values: in their units already
            if self.packed.kind == "u":
                given = given.astype(given.dtype.str.replace("i", "u"))
            values = ((given + np.array(half[key])) * self.scale + self.offset).astype(self.dtype)
            values = values if key == "valid_range" else values[0]
            found[key] = values[::-1] if key == "valid_range" and self.scale < 0 else values
        if self.scale < 0 and found.keys() & {"valid_min", "valid_max"}:
            other = {"valid_min": "valid_max", "valid_max": "valid_min", "valid_range": "valid_range"}
            found = {other[key]: x for key, x in found.items()}
        return found


def packing_of(kind: np.dtype, attributes: Mapping[str, Any], fill: Optional[int] = None) -> Packing | None:
    """How a variable is packed; None where it is not, or not by one factor and offset.

    Type and attributes are those of the file. `fill` is HDF5's own fill value, where one is declared: netCDF4-python
    takes it for missing.
    """
    if kind.kind not in "iu" or kind.itemsize > 8:
        return None
    given = {key: numbers_in(attributes[key]) for key in SCALING if key in attributes}
    if not given or any(x.size != 1 for x in given.values()):
        return None
    scale, offset = (float(given[key][0]) if key in given else x for key, x in zip(SCALING, (1.0, 0.0)))
    if not (math.isfinite(scale) and math.isfinite(offset) and scale):
        return None
    narrow = kind.itemsize < 4 and all(x.dtype.kind == "f" and x.dtype.itemsize <= 4 for x in given.values())
    packed = np.dtype(kind.newbyteorder("="))
    if packed.kind == "i" and text_in(attributes.get("_Unsigned")) in ("true", "True"):
        packed = np.dtype(packed.str.replace("i", "u"))
    missing = _integers(attributes.get("_FillValue"), packed) + _integers(attributes.get("missing_value"), packed)
    if "_FillValue" not in attributes and fill is not None:
        missing += _integers(fill, packed)
    return Packing(scale, offset, np.dtype("f4" if narrow else "f8"), packed, tuple(dict.fromkeys(missing)))


def _integers(values: Any, packed: np.dtype) -> list[int]:
    """Missing values as integers of the packed type."""
    found = numbers_in(values, written=True).tolist()
    whole = [int(v) for v in found if math.isfinite(v) and v == int(v)]
    limits = np.iinfo(packed)
    span = 1 << 8 * packed.itemsize
    whole = [v % span if packed.kind == "u" and v < 0 else v for v in whole]
    return [v for v in whole if limits.min <= v <= limits.max]
