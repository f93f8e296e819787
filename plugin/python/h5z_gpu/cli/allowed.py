# SPDX-License-Identifier: MIT OR Apache-2.0
"""What of a file's structure a compressed copy may change, as its own filters and the user's bounds say.

A dataset that has the filter of this package, or for which the user names a bound:
    its layout, chunks, filters and the time of their allocation; and a fill value, where the original declares none but
    netCDF's default
    its values, within the bound; where there is none, every bit stays
A dataset with this filter and a bound:
    attributes lossy_compression*, which say what was lost
A dataset of integers packed by scale_factor and add_offset that holds floating-point numbers in the copy:
    its type and fill value, and the attributes that speak of packed units; its values as readers see them
The root group, where any dataset has this filter and a bound:
    `history` has text in front of the old one, which follows whole; it stays a text of fixed or of variable length
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, Optional

import h5py
import numpy as np
from h5py import h5d, h5i, h5p, h5t

from .. import provenance
from ..filters import FILTER_ID
from ..unpacking import PACKED
from .packed import packing
from .promise import Asked, promise_of
from .roles import NETCDF_FILL

Given = Callable[[str], Optional[Asked]]
"""The bound that the user names for a dataset, or None."""


@dataclass(frozen=True)
class Allowed:
    """What of a dataset and its attributes may differ."""

    storage: bool = False
    """Layout, chunks, filters, and a fill value that the original has not."""
    judged: bool = False
    """Values have a bound, which the judge knows."""
    unpacked: bool = False
    """Packed integers became floating-point numbers."""
    lossy: bool = False
    """The copy may carry attributes on what was lost."""
    given: Optional[Asked] = None

    def attribute(self, name: bytes) -> bool:
        """Whether an attribute may come, go, and be another."""
        text = name.decode(errors="surrogateescape")
        return (self.lossy and text.startswith(provenance.TEXT)) or (self.unpacked and text in (*PACKED, "_Unsigned"))


NOTHING = Allowed()


def allowed(old: h5d.DatasetID, new: h5d.DatasetID, filters: list[int], given: Optional[Given]) -> Allowed:
    """What may differ between a dataset and its copy, which has filters of these numbers."""
    name = h5i.get_name(old) or b""
    bound, kind = given and given(name.decode(errors="surrogateescape").strip("/")), new.get_type()
    ours, floats = FILTER_ID in filters, isinstance(kind, h5t.TypeFloatID)
    unpacked = floats and isinstance(old.get_type(), h5t.TypeIntegerID) and _unpacked(old, new)
    judged = floats and kind.get_size() in (2, 4, 8) and (bound is not None or (ours and _loses(new)))
    if not (ours or judged or unpacked):
        return NOTHING
    return Allowed(True, judged or unpacked, unpacked, ours and judged, bound if floats else None)


def declares_no_fill(properties: h5p.PropDCID, kind: h5t.TypeID) -> bool:
    """Whether a dataset has no fill value of its own: `repack` may take that of its attributes."""
    if properties.fill_value_defined() != h5d.FILL_VALUE_USER_DEFINED:
        return True
    if not isinstance(kind, h5t.TypeFloatID):
        return False
    value = np.zeros((), kind.dtype)
    properties.get_fill_value(value)
    return bool(value == np.asarray(NETCDF_FILL, kind.dtype))


def _loses(new: h5d.DatasetID) -> bool:
    """Whether the filter's words say that bits may be lost."""
    return promise_of(h5py.Dataset(new)).mode != "lossless"


def _unpacked(old: h5d.DatasetID, new: h5d.DatasetID) -> bool:
    """Whether floating-point numbers are of the type that readers make of packed integers."""
    how = packing(h5py.Dataset(old))
    return how is not None and h5py.Dataset(new).dtype.newbyteorder("=") == how.dtype
