# SPDX-License-Identifier: MIT OR Apache-2.0
"""After a dataset was written with a bound: its valid values are valid, and its missing ones missing (`ranges`)."""

from __future__ import annotations

from typing import Optional

import h5py
import numpy as np

from ..attrs import Attributes
from ..conventions import LIMITS, MISSING, missing_in
from ..datasets import read
from ..filters import Lossy
from ..ranges import Ranges
from ..unpacking import Packing
from .roles import NETCDF_FILL
from .values import stored_boxes


def keep_valid(old: h5py.Dataset, new: h5py.Dataset, how: Lossy, fill: Optional[np.ndarray],
               packing: Optional[Packing]) -> str:
    """Encodes chunks of the new dataset again in which a value has crossed a limit; what to say of it, or "".

    The new one has all its attributes, and was written with `how`; `fill` is the fill value that the filter knows.
    `packing` is how the old one is packed, where the new one is not.
    """
    ranges = ranges_of(Attributes(new), new.dtype, how, fill)
    if ranges is None:
        return ""
    if ranges:
        new.id.flush()
        for box in stored_boxes(old.id, new.id):
            values = read(old, selection=box)
            ranges.look(new, packing.values(values) if packing else values, box)
    return ranges.said()


def ranges_of(there: Attributes, dtype: np.dtype, how: Lossy, fill: Optional[np.ndarray]) -> Optional[Ranges]:
    """The limits of valid values of a dataset with these attributes; None where they name no limit and no missing
    value."""
    if not there.keys() & {*MISSING, *LIMITS}:
        return None
    with np.errstate(all="ignore"):
        declared = missing_in(there).astype(dtype)
    # The filter keeps the bits of one of 0 and -0, and a bound of each value moves netCDF's own fill value.
    missing = [0.0] * bool((declared == 0).any()) + [NETCDF_FILL] * (how.mode.of == "value" and declared.size > 0)
    return Ranges(there, dtype, how, missing, fill)
