# SPDX-License-Identifier: MIT OR Apache-2.0
"""Values as they lie in memory in the type of their file, whatever type that is."""
from __future__ import annotations

import math

import h5py
import numpy as np
from h5py import h5s, h5t

from .boxes import Box
from .hdf5 import DEFAULT, calls, has
from .places import Place, owns_memory, places_in


class elements:
    """Memory for elements: within the block their type there, and their bytes, a row each. What HDF5 has allocated for
    them is given back at the end. A class, which takes half the time of a generator: each attribute needs one."""

    def __init__(self, kind: h5t.TypeID, held: tuple[Place, ...], count: int) -> None:
        self.memory = kind.copy() if held or kind.committed() else kind
        self.rows = np.zeros((count, self.memory.get_size()), np.uint8)
        self.held = held

    def __enter__(self) -> tuple[h5t.TypeID, np.ndarray]:
        return self.memory, self.rows

    def __exit__(self, *why: object) -> None:
        if owns_memory(self.held):
            name = "H5Treclaim" if has("H5Treclaim") else "H5Dvlen_reclaim"
            getattr(calls, name)(self.memory, h5s.create_simple((len(self.rows),)), DEFAULT, self.rows.ctypes.data)


def read_box(dataset: h5py.Dataset, box: Box) -> None:
    """Has HDF5 read the values of a box, of whatever type; it raises where they cannot be decoded."""
    kind, extents = dataset.id.get_type(), tuple(part.stop - part.start for part in box)
    there, here = dataset.id.get_space(), h5s.create_simple((math.prod(extents),))
    if box:
        there.select_hyperslab(tuple(part.start for part in box), extents)
    with elements(kind, places_in(kind), math.prod(extents)) as (memory, rows):
        calls.H5Dread(dataset.id, memory, here, there, DEFAULT, rows.ctypes.data)
