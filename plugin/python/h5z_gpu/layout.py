# SPDX-License-Identifier: MIT OR Apache-2.0
"""What HDF5 says of a dataset that is to be read or written chunk by chunk: type, filter, fill value, and where its chunks are."""
from __future__ import annotations

import ctypes
import functools
import math
from typing import NamedTuple

import numpy as np

from .filters import FILTER_ID
from .library import lib
from .views import numbers, origins_of

lib.h5z_gpu_index.restype = ctypes.c_int64


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
        self.hdf5 = _hdf5()
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
        page(ctypes.c_int64(access.id), ctypes.byref(size), ctypes.byref(a), ctypes.byref(b))
        chunk(ctypes.c_int64(properties.id), ctypes.byref(options))
        if size.value:
            raise OtherWay("the file has a page buffer")
        if options.value:
            raise OtherWay("chunks at the dataset's edge have no filter")


@functools.cache
def _hdf5():
    """The HDF5 library of h5py: that of whichever of its modules is linked to it."""
    import h5py

    for module in (h5py.h5d, h5py.defs):
        library = ctypes.CDLL(module.__file__)
        if hasattr(library, "H5Dwrite_chunk"):
            return library
    raise OtherWay("this HDF5 has no H5Dwrite_chunk, which came with 1.10.3")


class Index(NamedTuple):
    """Chunks of a box, in the order in which their frames lie in the file: neighbours there are read one behind the other."""

    origins: np.ndarray  # first elements, a row each
    at: np.ndarray  # addresses of the frames
    lens: np.ndarray  # their bytes
    unfiltered: np.ndarray  # first elements of chunks that were stored without the filter
    missing: np.ndarray  # first elements of chunks that were never written


def index_of(layout, start, shape):
    """Where a box's chunks are in the file."""
    dataset, chunk = layout.dataset, np.array(layout.chunk)
    first, last = np.array(start) // chunk, (np.array(start) + shape - 1) // chunk
    grid = last - first + 1
    total = math.prod(-(-n // c) for n, c in zip(dataset.shape, layout.chunk))
    # Asking for one chunk walks the index from its beginning; going through it hands out all.
    if hasattr(layout.hdf5, "H5Dchunk_iter") and grid.prod() * 16 > total:
        origins, at, lens, masks = _whole_index(layout)
        cells = origins // chunk - first
        inside = np.all((cells >= 0) & (cells < grid), axis=1)
        origins, at, lens, masks = origins[inside], at[inside], lens[inside], masks[inside]
    else:
        found = []
        for origin in origins_of(start, shape, layout.chunk).tolist():
            info = dataset.id.get_chunk_info_by_coord(tuple(origin))
            if info.byte_offset is not None:
                found.append((origin, info.byte_offset, info.size, info.filter_mask))
        origins = np.array([f[0] for f in found], np.int64).reshape(-1, len(chunk))
        at, lens, masks = (np.array([f[k] for f in found], np.uint64) for k in (1, 2, 3))
    order = np.argsort(at, kind="stable")
    origins, at, lens, masks = origins[order], at[order], lens[order], masks[order]
    missing = np.empty((0, len(chunk)), np.int64)
    if len(origins) < grid.prod():
        there = np.zeros(grid, bool)
        there[tuple((origins // chunk - first).T)] = True
        missing = (np.argwhere(~there) + first) * chunk
    plain = masks == 0
    return Index(origins[plain], at[plain], lens[plain], origins[~plain], missing)


def _whole_index(layout):
    """Places, addresses, bytes and filter masks of all chunks of a dataset."""
    rank, n = len(layout.chunk), layout.dataset.id.get_num_chunks()
    offsets, at, lens = np.empty((n, rank), np.uint64), np.empty(n, np.uint64), np.empty(n, np.uint64)
    masks = np.empty(n, np.uint32)
    checked_io(lib.h5z_gpu_index(
        layout.hdf5.H5Dchunk_iter, ctypes.c_int64(layout.dataset.id.id), ctypes.c_size_t(rank), ctypes.c_size_t(n),
        numbers(offsets, ctypes.c_uint64), numbers(at, ctypes.c_uint64), numbers(lens, ctypes.c_uint64),
        numbers(masks, ctypes.c_uint32),
    ))  # fmt: skip
    return offsets.astype(np.int64), at, lens, masks


def checked_io(answer):
    """As `checked`, as an OSError."""
    if answer < 0:
        raise OSError(lib.h5z_gpu_last_error().decode())
    return answer
