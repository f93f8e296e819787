# SPDX-License-Identifier: MIT OR Apache-2.0
"""Values that a file holds as packed integers, by the conventions CF: value = integer * scale_factor + add_offset."""
from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import xarray as xr

from .filters import Lossy
from .unpacking import SCALING, Packing

PACKING = SCALING


def from_packing(ds: xr.Dataset) -> dict[Hashable, Lossy]:
    """Bounds in place of packing: half a step of `scale_factor` for each variable that the source holds packed.

    To be given as `how` to `encoding` or `to_netcdf`, as it is or changed. The values are then stored as floating-point
    numbers, without scale_factor and add_offset, within half a step of what was packed, and missing ones as NaN.

    Parameters
    ----------
    ds : xarray.Dataset
        Opened with its packing undone, as xarray does by itself.

    Returns
    -------
    dict
        Lossy(absolute=scale_factor / 2) by name of data variable.

    Raises
    ------
    ValueError
        Where a variable was opened with its packing left (mask_and_scale=False).
    """
    bounds = {}
    for name, variable in ds.data_vars.items():
        if any(key in variable.attrs for key in PACKING):
            raise ValueError(f"h5z-gpu: {name!r} is still packed: open the dataset without mask_and_scale=False")
        if is_packed(variable.variable):
            step = np.asarray(variable.encoding.get("scale_factor", 1)).item()
            bounds[name] = Lossy(absolute=abs(float(step)) / 2)
    return bounds


def is_packed(v: xr.Variable) -> bool:
    return v.dtype.kind == "f" and any(key in v.encoding for key in PACKING)


def unpacked_limits(v: xr.Variable, entry: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes of valid values in packed units, as CF has them, in those of the values, where `entry` undoes packing.

    They are wider by half a step, so that a value at the limit stays valid within the bound.
    """
    if not is_packed(v) or any(key in entry for key in PACKING):
        return {}
    scale, offset = (float(np.asarray(v.encoding.get(key, x)).item()) for key, x in zip(PACKING, (1, 0)))
    kind = np.dtype("u1" if v.encoding.get("_Unsigned") == "true" else "i1")  # only whether it has a sign
    return dict(Packing(scale, offset, v.dtype, kind).limits(v.attrs))
