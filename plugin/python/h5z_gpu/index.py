# SPDX-License-Identifier: MIT OR Apache-2.0
"""Where the chunks of a dataset are in its file: what HDF5 lists, and whether it can be believed.

The library reads the list (plugin/src/dataset_io/index.rs): here its answers become NumPy's arrays.
"""
from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np

from . import capi
from .library import checked, descriptor, failure, lib
from .loaded import opened, serving
from .views import numbers

if TYPE_CHECKING:
    import h5py

_UNFILTERED_EDGES = 2  # H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS
_Fetch = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_size_t)


class ChunkList(NamedTuple):
    """The chunks that are stored, in the order in which HDF5 lists them. Rows of all arrays belong together."""

    origins: np.ndarray  # (n, rank) int64: the first element of each
    at: np.ndarray  # (n,) int64: where it begins in the file
    lens: np.ndarray  # (n,) int64: its bytes
    masks: np.ndarray  # (n,) int64: filters that it does without, a bit each, also where HDF5 sets none (at edges)
    wrong: str = ""  # why it cannot be believed, "" where it can; what cannot be chunks is not in it
    twice: frozenset[tuple[int, ...]] = frozenset()  # places listed more than once: none of their chunks is in it

    def rows(self, which: Any) -> ChunkList:
        """Some of the chunks."""
        return ChunkList(self.origins[which], self.at[which], self.lens[which], self.masks[which], self.wrong,
                         self.twice)


@functools.cache
def hdf5() -> ctypes.CDLL | None:
    """The HDF5 library of h5py: that of whichever of its modules is linked to it; None before HDF5 1.10.3."""
    import h5py

    for module in (h5py.h5d, h5py.defs):
        for path in serving(module.__file__, "hdf5"):
            library = opened(path, ctypes.CDLL)
            if hasattr(library, "H5Dwrite_chunk"):
                capi.declare(library, capi.HDF5)
                return library
    return None


@functools.cache
def function_of_hdf5() -> ctypes.c_void_p:
    """One of its functions, by which our library finds the others; NULL before HDF5 1.10.3."""
    library = hdf5()
    return ctypes.c_void_p(None) if library is None else ctypes.cast(library.H5Dwrite_chunk, ctypes.c_void_p)


def asked(call: Callable[..., int], *arguments: Any) -> int:
    """Calls a function of C that may let HDF5 read the file: what it answers, or what an object of Python raised.

    Where h5py reads a file through an object, and that raises, h5py leaves the exception in the thread and HDF5 fails.
    ctypes finds it there, and wraps it in SystemError; so does Python for each later call of the object.
    """
    try:
        return call(*arguments)
    except SystemError as wrapped:
        error = unwrapped(wrapped)
    # Behind the `except`: its own cause and context stay.
    raise error


def unwrapped(error: BaseException) -> BaseException:
    """What was raised before Python made SystemError of it."""
    while isinstance(error, SystemError) and error.__cause__ is not None:
        error = error.__cause__
    return error


def exactly(file: BinaryIO, at: int, n: int) -> bytes:
    """Reads `n` bytes of a file object from `at` on; OSError where as many do not come."""
    file.seek(at)
    found = file.read(n)
    given = memoryview(b"" if found is None else found)
    if given.nbytes != n:
        raise OSError(f"h5z-gpu: of {n} bytes from {at} on, {given.nbytes} bytes came: read it again")
    return found if isinstance(found, bytes) else given.tobytes()


def _fetch_from(file: BinaryIO, raised: list[BaseException]) -> Any:
    """The function by which the library reads bytes of a file object. What the object raises goes to `raised`: an
    exception that left the function would be printed, and lost."""

    def fetch(_: Any, at: int, out: int, n: int) -> int:
        try:
            if not raised and at + n <= size_of(file):
                (ctypes.c_char * n).from_address(out).raw = exactly(file, at, n)
                return 1
        except BaseException as error:
            raised.append(error)
        return 0

    return _Fetch(fetch)


def size_of(file: BinaryIO) -> int:
    """Bytes of a file object, asked for as h5py does."""
    file.seek(0, 2)
    return file.tell()


def chunk_list(dataset: h5py.Dataset, file: int | BinaryIO) -> ChunkList:
    """Every chunk that is stored, where it is. What is in the dataset's cache has been written (`dataset.id.flush`).

    HDF5's addresses are offsets of `file`: its descriptor, or an object open for reading as bytes. What an object
    raises is raised here.
    """
    from h5py._objects import phil

    raised: list[BaseException] = []
    fetch: Any = None if isinstance(file, int) else _fetch_from(file, raised)
    there = descriptor(file) if isinstance(file, int) else -1
    place, rank = ctypes.POINTER(capi.Chunks)(), len(dataset.shape)
    try:
        with phil:
            answer = asked(lib.h5z_gpu_list_chunks, function_of_hdf5(), dataset.id.id, there,
                           ctypes.cast(fetch, ctypes.c_void_p), None, ctypes.byref(place))
        if raised:
            raise raised.pop()
        if answer < 0:
            raise failure(answer, f"{dataset.name}: {lib.h5z_gpu_last_error().decode().removeprefix('h5z-gpu: ')}")
        found = place.contents
        origins = _column(found.origins, (found.count, rank))
        at, lens, masks = (_column(column, (found.count,)) for column in (found.at, found.lens, found.masks))
        twice = _column(found.twice, (found.twice_count, rank)).tolist()
        masks |= skipped_at_edges(dataset, origins)
        return ChunkList(origins, at, lens, masks, found.wrong.decode(), frozenset(map(tuple, twice)))
    finally:
        lib.h5z_gpu_end_chunks(ctypes.byref(place))


def skipped_at_edges(dataset: h5py.Dataset, origins: np.ndarray) -> np.ndarray:
    """Bits of the filters that each chunk does without because it reaches beyond the dataset.

    Where a program has asked for it (H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS), HDF5 stores such chunks as they are, and
    their masks do not say so.
    """
    properties, options = dataset.id.get_create_plist(), ctypes.c_uint()
    library = hdf5()
    assert library is not None
    if library.H5Pget_chunk_opts(properties.id, ctypes.byref(options)) < 0 or not options.value & _UNFILTERED_EDGES:
        return np.zeros(len(origins), np.int64)
    partial = (origins + dataset.chunks > dataset.shape).any(axis=1)
    return np.where(partial, (1 << properties.get_nfilters()) - 1, 0)


def _column(start: Any, shape: tuple[int, ...]) -> np.ndarray:
    """A copy of numbers of the library. NumPy's own way warns in Python 3.9, which names the type of 64 bits wrongly.
    """
    count = math.prod(shape)
    if not count:
        return np.empty(shape, np.int64)
    numbers = ctypes.cast(start, ctypes.POINTER(start._type_ * count)).contents
    return np.frombuffer(numbers, np.dtype(start._type_)).reshape(shape).astype(np.int64)


def distrust(dataset: h5py.Dataset, chunks: ChunkList, missing: np.ndarray) -> str:
    """Asks for every chunk by its place, and says where the answer is not what the list says; "" where it is.

    missing : (m, rank) the first elements of chunks that are not in the list.
    """
    origins = np.ascontiguousarray(np.concatenate((chunks.origins, missing)), np.uint64)
    lens = np.concatenate((chunks.lens, np.zeros(len(missing), np.int64))).astype(np.uint64)
    answer = asked(lib.h5z_gpu_find_chunks, function_of_hdf5(), dataset.id.id, len(dataset.shape), len(lens),
                   numbers(origins, ctypes.c_uint64), numbers(lens, ctypes.c_uint64))
    return _reason(answer)


def why_not_raw(file: int, at: int, stored: int, raw_len: int) -> str:
    """Why a chunk that is said to be stored without filters cannot be values; "" where it can."""
    return _reason(lib.h5z_gpu_raw_chunk(descriptor(file), at, stored, raw_len))


def _reason(answer: int) -> str:
    """What the library says is damaged, "" where nothing is."""
    if answer == capi.DAMAGED:
        return str(lib.h5z_gpu_last_error().decode().removeprefix("h5z-gpu: "))
    checked(answer)
    return ""


def stored_size(dataset: h5py.Dataset, origin: list[int] | tuple[int, ...]) -> int:
    """Bytes of the chunk that HDF5 finds at a place, 0 for none."""
    found = ctypes.c_uint64(0)
    library = hdf5()
    assert library is not None  # who has a list of chunks has the library
    ask = library.H5Dget_chunk_storage_size
    if asked(ask, dataset.id.id, (ctypes.c_uint64 * len(origin))(*origin), ctypes.byref(found)) < 0:
        return 0
    return found.value
