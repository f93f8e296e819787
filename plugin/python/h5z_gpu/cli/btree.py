# SPDX-License-Identifier: MIT OR Apache-2.0
"""Looks into HDF5's oldest index of chunks, the version 1 B-tree, for entries that have vanished.

Its nodes have no checksum. Where a node's number of entries was changed, HDF5 lists fewer chunks and finds no fault.
What still shows it is the node's last key, which stands behind its last entry: it is the first key of the node to the
right or, in the last node, the key of no chunk, with a length of 0 (III.A.1 of HDF5's format specification).
"""
from __future__ import annotations

import ctypes
import functools
import mmap
import os
from typing import NamedTuple, Optional

import h5py
import numpy as np

from .. import index
from .common import pread

_LEAF = b"TREE\x01\x00"  # type 1: chunks; level 0
_HEAD = 24  # signature, type, level, entries, left and right sibling
_NONE = 2**64 - 1  # an address that is not defined
_BTREE_INDEX = 0  # H5D_CHUNK_IDX_BTREE


class _Node(NamedTuple):
    right: int  # address of the next one, `_NONE` for the last
    keys: np.ndarray  # one more than entries


def vanished(dataset: h5py.Dataset, file: int, origins: np.ndarray, at: np.ndarray) -> str:
    """What shows that the list of a dataset's chunks once had more; "" where nothing does.

    Parameters
    ----------
    dataset : h5py.Dataset
        In chunks.
    file : int
        A descriptor of its file.
    origins, at : numpy.ndarray
        First elements and addresses of the chunks that are listed.
    """
    if dataset.file.id.get_create_plist().get_sizes() != (8, 8) or index_type(dataset) not in (_BTREE_INDEX, None):
        return ""
    listed = {(*origin, place) for origin, place in zip(origins.tolist(), at.tolist())}
    base, rank = dataset.file.userblock_size, len(dataset.shape)
    kind = np.dtype([("bytes", "<u4"), ("mask", "<u4"), ("origin", "<u8", rank + 1), ("child", "<u8")])
    for place in _leaves(_identity(file)):
        node = _node(file, place, kind)
        if node is None:
            continue
        entries = [(*key["origin"][:rank].tolist(), int(key["child"]) + base) for key in node.keys[:-1]]
        if not listed.intersection(entries) and (len(entries) or len(listed)):
            continue  # of another dataset, or of none any more
        end = node.keys[-1]
        if node.right == _NONE:
            if end["bytes"]:
                return (f"the last node of its B-tree, at byte {place}, ends before a chunk at "
                        f"{tuple(end['origin'][:rank].tolist())}")
            continue
        after = _node(file, node.right + base, kind)
        if after is None or after.keys[0]["origin"].tolist() != end["origin"].tolist():
            return f"the node of its B-tree at byte {place} does not end where the next one begins"
        first = after.keys[0]
        if (*first["origin"][:rank].tolist(), int(first["child"]) + base) not in listed:
            return f"the node of its B-tree behind the one at byte {place} is not listed"
    return ""


def index_type(dataset: h5py.Dataset) -> Optional[int]:
    """HDF5's number for the kind of index that the chunks have; None before 1.10.5, which cannot be asked."""
    ask, kind = getattr(index.hdf5(), "H5Dget_chunk_index_type", None), ctypes.c_int(-1)
    return None if ask is None or ask(dataset.id.id, ctypes.byref(kind)) < 0 else kind.value


def _node(file: int, place: int, kind: np.dtype) -> Optional[_Node]:
    """A node of the tree, None where there is none."""
    head = pread(file, _HEAD, place)
    if len(head) < _HEAD or not head.startswith(_LEAF):
        return None
    n = int.from_bytes(head[6:8], "little")
    data = pread(file, (n + 1) * kind.itemsize, place + _HEAD)
    # Behind the last key there need not be an address.
    data += bytes(-len(data) % kind.itemsize)
    keys = np.frombuffer(data, kind)
    return _Node(int.from_bytes(head[16:24], "little"), keys) if len(keys) == n + 1 else None


def _identity(file: int) -> tuple[int, int, int]:
    """A descriptor, and what changes with its file."""
    state = os.fstat(file)
    return file, state.st_ino, state.st_mtime_ns


@functools.lru_cache(maxsize=1)
def _leaves(identity: tuple[int, int, int]) -> list[int]:
    """Where a file has the signature of a leaf. It is searched once for all of its datasets."""
    found: list[int] = []
    if not os.fstat(identity[0]).st_size:
        return found
    with mmap.mmap(identity[0], 0, access=mmap.ACCESS_READ) as data:
        at = data.find(_LEAF)
        while at >= 0:
            found.append(at)
            at = data.find(_LEAF, at + 1)
    return found
