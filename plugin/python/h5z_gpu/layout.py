# SPDX-License-Identifier: MIT OR Apache-2.0
"""What HDF5 says of a dataset that is to be read or written chunk by chunk: type, filter, fill value, and where its chunks are."""
from __future__ import annotations

import ctypes
import math
from typing import NamedTuple

import numpy as np

from . import index
from .filters import FILTER_ID
from .views import origins_of


class OtherWay(Exception):
    """Why a dataset or a request goes through h5py."""


class Layout:
    """What the fast way needs to know of a dataset. Raises OtherWay where it cannot be taken."""

    def __init__(self, dataset):
        import h5py

        # h5py makes a new object of the file whenever it is asked.
        self.dataset, self.file = dataset, dataset.file
        properties = dataset.id.get_create_plist()
        if properties.get_layout() != h5py.h5d.CHUNKED:
            raise OtherWay("the dataset is not stored in chunks")
        filters = [properties.get_filter(i) for i in range(properties.get_nfilters())]
        if [f[0] for f in filters] != [FILTER_ID]:
            raise OtherWay(f"its filters are {[f[0] for f in filters]}, not {FILTER_ID} alone")
        self.words = filters[0][2]
        self.chunk = properties.get_chunk()
        self.dtype = dataset.dtype
        if self.dtype.kind not in "fiu" or dataset.id.get_type() != h5py.h5t.py_create(self.dtype):
            raise OtherWay(f"its type {self.dtype} is not one of NumPy's numbers as it stands in memory")
        access = self.file.id.get_access_plist()
        if access.get_driver() != h5py.h5fd.SEC2:
            raise OtherWay("the file is open by another driver than sec2")
        if self.file.swmr_mode:
            raise OtherWay("the file is open for single writer, multiple readers")
        self.hdf5 = index.hdf5()
        if self.hdf5 is None:
            raise OtherWay("this HDF5 has no H5Dwrite_chunk, which came with 1.10.3")
        self._ask_c(access, properties)
        status = properties.fill_value_defined()
        never = properties.get_fill_time() == h5py.h5d.FILL_TIME_NEVER
        fill = np.zeros((), self.dtype) if never or status == h5py.h5d.FILL_VALUE_UNDEFINED else dataset.fillvalue
        self.fill = np.asarray(fill, self.dtype)

    def _ask_c(self, access, properties):
        """What h5py does not hand on: a page buffer, and edge chunks without a filter."""
        size, a, b = ctypes.c_size_t(), ctypes.c_uint(), ctypes.c_uint()
        options = ctypes.c_uint()
        page, chunk = self.hdf5.H5Pget_page_buffer_size, self.hdf5.H5Pget_chunk_opts
        self.write_chunk = self.hdf5.H5Dwrite_chunk
        page(access.id, ctypes.byref(size), ctypes.byref(a), ctypes.byref(b))
        chunk(properties.id, ctypes.byref(options))
        if size.value:
            raise OtherWay("the file has a page buffer")
        if options.value:
            raise OtherWay("chunks at the dataset's edge have no filter")


class Index(NamedTuple):
    """Chunks of a box, in the order in which their frames lie in the file: neighbours there are read one behind the other."""

    frames: index.ChunkList
    unfiltered: index.ChunkList  # chunks that were stored without the filter
    missing: np.ndarray  # first elements of chunks that were never written


def index_of(layout, file, start, shape):
    """Where a box's chunks are in the file, of which `file` is a descriptor. OSError where HDF5's list of them cannot be right."""
    dataset, chunk = layout.dataset, np.array(layout.chunk)
    if index.counts_other_axis_first(dataset):
        raise OtherWay("its unlimited axis is not the first, and HDF5 lists the chunks of such an index at places of others")
    first, last = np.array(start) // chunk, (np.array(start) + shape - 1) // chunk
    grid = last - first + 1
    total = math.prod(-(-n // c) for n, c in zip(dataset.shape, layout.chunk))
    # Asking for one chunk walks the index from its beginning; going through it hands out all.
    whole = hasattr(layout.hdf5, "H5Dchunk_iter") and grid.prod() * 16 > total
    if whole:
        found = index.chunk_list(dataset, file)
        cells = found.origins // chunk - first
        found = found.rows(np.all((cells >= 0) & (cells < grid), axis=1))
    else:
        found = index.chunks_at(dataset, file, origins_of(start, shape, layout.chunk), layout.file.userblock_size)
    if len(found.at) > 1:
        found = found.rows(np.argsort(found.at, kind="stable"))
    missing = np.empty((0, len(chunk)), np.int64)
    if len(found.at) < grid.prod():
        there = np.zeros(grid, bool)
        there[tuple((found.origins // chunk - first).T)] = True
        missing = (np.argwhere(~there) + first) * chunk
    wrong = found.wrong or index.distrust(dataset, found, missing, 64 if whole else 2)
    if wrong:
        raise OSError(f"{dataset.name}: the file's list of its chunks is damaged: {wrong}. `h5z-gpu recover` saves what can be read")
    plain = found.masks & 1 == 0  # of the one filter
    return Index(found.rows(plain), found.rows(~plain), missing)
