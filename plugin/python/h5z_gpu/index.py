# SPDX-License-Identifier: MIT OR Apache-2.0
"""Where the chunks of a dataset are in its file: what HDF5 lists, and whether it can be believed.

HDF5 answers two kinds of questions on chunks. A search by place (H5Dread, H5Dread_chunk, H5Dget_chunk_storage_size) goes through the
index as reading does. A list (H5Dchunk_iter, H5Dget_chunk_info, H5Dget_chunk_info_by_coord) is made of the index's entries one by one,
and is wrong in two ways that are known, in every version up to 2.0:

* An extensible array is the index of a dataset with one unlimited axis, in files of `libver="v110"` and later. It counts chunks with the
  unlimited axis in front. The list counts with the axes as they are: where the unlimited axis is not the first, chunks are listed at
  places of others, or outside of the dataset. `_moved_back` makes the true places of them.
* HDF5 before 1.14.4 counts addresses from behind a user block, HDF5 from 1.14.4 on from the file's beginning.

Versions are not asked: a chunk's bytes are, which the search by place gives (`chunk_list`). What a damaged index lists (chunks outside
of the dataset, two at one place, fewer than it counts) is said in `ChunkList.wrong`.
"""
from __future__ import annotations

import ctypes
import functools
import itertools
import math
import os
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np

from . import capi
from .library import lib
from .views import numbers

if TYPE_CHECKING:
    import h5py

MAGIC = b"\x89H5ZG\r\n\x1a"  # of a frame, src/FORMAT.md
_EXTENSIBLE_ARRAY = 4  # H5D_CHUNK_IDX_EARRAY
_UNDEFINED = 2**64 - 1  # HADDR_UNDEF
# What h5py raises for an index that HDF5 cannot read.
_UNREADABLE = (OSError, RuntimeError, ValueError, KeyError, TypeError)


class ChunkList(NamedTuple):
    """The chunks that are stored, in the order in which HDF5 lists them. Rows of all arrays belong together."""

    origins: np.ndarray  # (n, rank) int64: the first element of each
    at: np.ndarray  # (n,) int64: where it begins in the file
    lens: np.ndarray  # (n,) int64: its bytes
    masks: np.ndarray  # (n,) int64: filters that it does without, a bit each
    wrong: str = ""  # why the list cannot be believed, "" where it can; what cannot be chunks is not in it
    twice: frozenset[tuple[int, ...]] = frozenset()  # places that were listed more than once: none of their chunks is in it

    def rows(self, which: Any) -> ChunkList:
        """Some of the chunks."""
        return ChunkList(self.origins[which], self.at[which], self.lens[which], self.masks[which], self.wrong, self.twice)


@functools.cache
def hdf5() -> ctypes.CDLL | None:
    """The HDF5 library of h5py: that of whichever of its modules is linked to it; None before HDF5 1.10.3."""
    import h5py

    for module in (h5py.h5d, h5py.defs):
        library = ctypes.CDLL(module.__file__)
        if hasattr(library, "H5Dwrite_chunk"):
            capi.declare(library, capi.HDF5)
            return library
    return None


def counts_other_axis_first(dataset: h5py.Dataset) -> bool:
    """Whether the dataset's index is an extensible array whose unlimited axis is not the first: HDF5 lists its chunks wrongly."""
    ask = getattr(hdf5(), "H5Dget_chunk_index_type", None)  # came with HDF5 1.10.5
    kind = ctypes.c_int(_EXTENSIBLE_ARRAY)
    if ask is not None and ask(dataset.id.id, ctypes.byref(kind)) < 0:
        raise OSError(f"{dataset.name}: HDF5 does not say what index its chunks have")
    if kind.value != _EXTENSIBLE_ARRAY:
        return False
    unlimited = [k for k, n in enumerate(dataset.maxshape) if n is None]
    return len(unlimited) == 1 and unlimited != [0]


def chunk_list(dataset: h5py.Dataset, file: int | BinaryIO) -> ChunkList:
    """Every chunk that is stored, where it is.

    Parameters
    ----------
    dataset : h5py.Dataset
        Chunked; what is in its cache has been written (`dataset.id.flush`).
    file : int or file object
        The file that HDF5's addresses are offsets of: its descriptor, or open for reading as bytes.
    """
    from h5py._objects import phil

    with phil:
        chunks = _listed(dataset)
        orders = [chunks.origins]
        if counts_other_axis_first(dataset):
            orders.append(_moved_back(dataset, chunks.origins))
        return _sound(dataset, _placed(dataset, file, chunks, orders, dataset.file.userblock_size))


def chunks_at(dataset: h5py.Dataset, file: int, origins: np.ndarray, block: int) -> ChunkList:
    """Those chunks of a few places that are stored. For an index whose list is right; HDF5 goes through all of it for each.

    block : bytes of the file's user block.
    """
    found, wrong = [], ""
    for origin in map(tuple, origins.tolist()):
        info = dataset.id.get_chunk_info_by_coord(origin)
        if info.byte_offset is not None:
            found.append((*origin, info.byte_offset, info.size, info.filter_mask))
        if info.byte_offset is not None and info.chunk_offset != origin:
            wrong = f"it has the chunk at {info.chunk_offset} in the place of {origin}"
    chunks = _as_list(found, origins.shape[1], wrong)
    return _placed(dataset, file, chunks, [chunks.origins], block) if block else chunks


def distrust(dataset: h5py.Dataset, chunks: ChunkList, missing: np.ndarray, most: int | None = None) -> str:
    """Asks for chunks by their places, and says where the answer is not what the list says; "" where it is.

    Parameters
    ----------
    missing : numpy.ndarray
        (m, rank): the first elements of chunks that are not in the list.
    most : int, optional
        How many of both kinds are asked for, evenly spread; None for all.
    """
    for origins, lens in ((chunks.origins, chunks.lens), (missing, np.zeros(len(missing), np.int64))):
        if not len(origins):
            continue
        step = 1 if most is None else max(1, len(origins) // most)
        for origin, n in zip(origins[::step].tolist(), lens[::step].tolist()):
            found = stored_size(dataset, origin)
            if found != n:
                return f"it lists {n or 'no'} bytes for the chunk at {tuple(origin)}, where HDF5 finds {found or 'none'}"
    return ""


def stored_size(dataset: h5py.Dataset, origin: list[int] | tuple[int, ...]) -> int:
    """Bytes of the chunk that HDF5 finds at a place, 0 for none."""
    found = ctypes.c_uint64(0)
    ask = hdf5().H5Dget_chunk_storage_size
    if ask(dataset.id.id, (ctypes.c_uint64 * len(origin))(*origin), ctypes.byref(found)) < 0:
        return 0
    return found.value


def why_not_raw(file: int, at: int, stored: int, raw_len: int) -> str:
    """Why a chunk that is said to be stored without filters cannot be values; "" where it can.

    A damaged filter mask hands a frame out as values, and HDF5 does not notice it.
    """
    if stored != raw_len:
        return f"the file's index says that it is stored without filters, in {stored} bytes; it would have {raw_len}"
    if os.pread(file, len(MAGIC), at) == MAGIC:
        return "the file's index says that it is stored without filters, and it is a frame of the filter"
    return ""


# --- what HDF5 lists --------------------------------------------------------------------------------------------------------


def _as_list(rows: list[tuple[int, ...]], rank: int, wrong: str = "") -> ChunkList:
    table = np.array(rows, np.uint64).reshape(len(rows), rank + 3).astype(np.int64)
    return ChunkList(table[:, :rank], table[:, rank], table[:, rank + 1], table[:, rank + 2], wrong)


def _listed(dataset: h5py.Dataset) -> ChunkList:
    """HDF5's list as it is; of one that cannot be read to its end, what could be read."""
    cells = math.prod(-(-n // c) for n, c in zip(dataset.shape, dataset.chunks))
    wrong = ""
    try:
        n = dataset.id.get_num_chunks()
    except _UNREADABLE as why:
        # An entry of an index has eight bytes or more.
        n, wrong = min(cells, dataset.file.id.get_filesize() // 8), _inner(why)
    if hasattr(hdf5(), "H5Dchunk_iter"):
        return _by_iteration(dataset, n, wrong)
    rows = []
    try:
        for k in range(n):
            info = dataset.id.get_chunk_info(k)
            if info.byte_offset is not None:
                rows.append((*info.chunk_offset, info.byte_offset, info.size, info.filter_mask))
    except _UNREADABLE as why:
        wrong = wrong or _inner(why)
    return _as_list(rows, len(dataset.shape), wrong)


def _by_iteration(dataset, n, wrong):
    rank = len(dataset.shape)
    offsets, at = np.zeros((n, rank), np.uint64), np.full(n, _UNDEFINED, np.uint64)
    lens, masks = np.zeros(n, np.uint64), np.zeros(n, np.uint32)
    count = lib.h5z_gpu_index(
        hdf5().H5Dchunk_iter, dataset.id.id, rank, n,
        numbers(offsets, ctypes.c_uint64), numbers(at, ctypes.c_uint64), numbers(lens, ctypes.c_uint64),
        numbers(masks, ctypes.c_uint32),
    )  # fmt: skip
    if count < 0:
        wrong = wrong or lib.h5z_gpu_last_error().decode().removeprefix("h5z-gpu: ")
    elif count != n:
        wrong = wrong or f"HDF5 counts {n} chunks and lists {count}"
    there = slice(None) if count >= n else at != _UNDEFINED
    return ChunkList(*(a[there].astype(np.int64) for a in (offsets, at, lens, masks)), wrong)


def _inner(why: BaseException) -> str:
    """The part of h5py's sentence that says why."""
    text = str(why)
    return text[text.find("(") + 1 : text.rfind(")")] if text.endswith(")") and "(" in text else text


# --- where they really are ---------------------------------------------------------------------------------------------------


def _placed(dataset: h5py.Dataset, file: int | BinaryIO, chunks: ChunkList, orders: list[np.ndarray], block: int) -> ChunkList:
    """The list with true places, which one of `orders` has, and true addresses. Bytes of chunks tell which these are."""
    ways = list(itertools.product(orders, (0, block) if block else (0,)))
    if len(ways) == 1 or not len(chunks.at):
        return chunks
    by_size = np.argsort(chunks.lens, kind="stable")
    for rows in (by_size[:1], by_size) if len(orders) == 1 else (by_size,):
        ways = [way for way in ways if _fits(dataset, file, chunks._replace(origins=way[0], at=chunks.at + way[1]), rows)]
        if len(ways) == 1:
            break
    if not ways:
        return chunks._replace(wrong=chunks.wrong or "HDF5 does not find chunks where it lists them")
    # Where several are left, their chunks have the same bytes.
    return chunks._replace(origins=ways[0][0], at=chunks.at + ways[0][1])


def _moved_back(dataset: h5py.Dataset, origins: np.ndarray) -> np.ndarray:
    """First elements of chunks that an extensible array lists: its k-th chunk is the k-th cell with the unlimited axis in front."""
    chunk, axis = np.array(dataset.chunks), dataset.maxshape.index(None)
    most = [1 if n is None else -(-n // c) for n, c in zip(dataset.maxshape, dataset.chunks)]
    if math.prod(most) >= 2**62:
        return origins
    listed, k = origins // chunk, np.zeros(len(origins), np.int64)
    for j, n in enumerate(most):  # a place in front of the unlimited axis is 0: that axis is never full
        k = k * n + listed[:, j]
    cells = np.empty_like(listed)
    for j in reversed([j for j in range(len(most)) if j != axis]):
        k, cells[:, j] = np.divmod(k, most[j])
    cells[:, axis] = k
    return cells * chunk


def _fits(dataset: h5py.Dataset, file: int | BinaryIO, chunks: ChunkList, rows: np.ndarray) -> bool:
    """Whether the file has, where a list says, what HDF5 finds by place."""
    for row in rows.tolist():
        origin, n = tuple(chunks.origins[row].tolist()), int(chunks.lens[row])
        if any(o >= s for o, s in zip(origin, dataset.shape)):
            return False
        try:
            stored = dataset.id.read_direct_chunk(origin)[1]
        except _UNREADABLE:
            return False
        if len(stored) != n or _fetch(file, n, int(chunks.at[row])) != stored:
            return False
    return True


def _fetch(file: int | BinaryIO, n: int, at: int) -> bytes:
    if isinstance(file, int):
        return os.pread(file, n, at)
    file.seek(at)
    return file.read(n)


def _sound(dataset: h5py.Dataset, chunks: ChunkList) -> ChunkList:
    """Without entries that cannot be chunks of the dataset, and without all of those of one place: none can be believed."""
    origins, chunk, shape = chunks.origins, np.array(dataset.chunks), np.array(dataset.shape)
    good = np.all((origins >= 0) & (origins < shape) & (origins % chunk == 0), axis=1)
    good &= (chunks.at >= 0) & (chunks.lens >= 0)
    inside, grid = chunks.rows(good), -(-shape // chunk)
    keys, axis = inside.origins, 0
    if math.prod(grid.tolist()) < 2**62:
        keys, axis = (keys // chunk) @ np.array([math.prod(grid[k + 1 :].tolist()) for k in range(len(grid))], np.int64), None
    _, which, times = np.unique(keys, axis=axis, return_inverse=True, return_counts=True)
    once = (times == 1)[which.reshape(-1)]
    if good.all() and once.all():
        return chunks
    bad = (origins[~good] if once.all() else inside.origins[~once])[0].tolist()
    wrong = chunks.wrong or f"it has a chunk at {tuple(bad)}, which cannot be or is there twice"
    return inside.rows(once)._replace(wrong=wrong, twice=frozenset(map(tuple, inside.origins[~once].tolist())))
