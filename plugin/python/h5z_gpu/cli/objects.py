# SPDX-License-Identifier: MIT OR Apache-2.0
"""Goes through the objects of a file that may be damaged, and through the chunks of its datasets."""
from __future__ import annotations

import ctypes
import dataclasses
import math
import os
import sys
from collections.abc import Iterator
from typing import Any, Optional, Union

import h5py
import numpy as np

from .. import index
from ..filters import FILTER_ID
from ..library import lib

# What h5py raises for objects that HDF5 cannot read.
UNREADABLE = (OSError, RuntimeError, KeyError, ValueError, TypeError)
_FLETCHER32 = 3  # HDF5's number for its checksum, of four bytes behind the chunk
_AT_ONCE = 4096
_MANY = 20_000  # chunks that take HDF5 1.10 about ten seconds

lib.h5z_gpu_frames.restype = ctypes.c_int64
# h5z_gpu_frame of h5z_gpu.h
FRAME = np.dtype([("status", "i4"), ("version", "u1"), ("codec", "u1"), ("mode", "u1"), ("element", "u1"),
                  ("raw_len", "u8"), ("bound", "f8")])  # fmt: skip
CODECS = ("stored", "szx", "lorenzo", "ndzip", "bytes", "planes")
LOSSLESS, POINTWISE = 9, 3  # modes of a frame


def walk(group: h5py.Group) -> Iterator[tuple[str, Union[h5py.Dataset, h5py.Group, h5py.Datatype, str]]]:
    """Every object below a group by its path, once, with what it is, or the reason why it cannot be read."""
    try:
        seen = {h5py.h5o.get_info(group.id).addr}
    except UNREADABLE as why:
        yield group.name, reason(why)
        return
    empty = True
    for name, item in _walk(group, "" if group.name == "/" else group.name, seen):
        empty = False
        yield name, item
    if empty:
        # Where a damaged list names nothing any more, HDF5's own way through it may still notice.
        try:
            group.visit(lambda _: None)
        except UNREADABLE as why:
            yield group.name, f"its list of objects is damaged: {reason(why)}"


def _walk(group, path, seen):
    try:
        names = sorted(group)
    except UNREADABLE as why:
        yield path or "/", reason(why)
        return
    for name in names:
        full = f"{path}/{name}"
        try:
            link = group.get(name, getlink=True)
            if link is None:
                raise KeyError("it is listed, and not found by its name")
            if not isinstance(link, h5py.HardLink):
                continue
            item = group[name]
            address = address_of(group, name)
            if address in seen:
                continue
            seen.add(address)
            if isinstance(item, h5py.Dataset):
                item.shape, item.id.get_type().get_size()  # what makes it a dataset can be read
        except UNREADABLE as why:
            yield full, reason(why)
            continue
        yield full, item
        if isinstance(item, h5py.Group):
            yield from _walk(item, full, seen)


def address_of(group: h5py.Group, name: str) -> int:
    """Where the object of a hard link lies. Asking the object itself would read more of it, which may be damaged."""
    return group.id.links.get_info(name.encode(errors="surrogateescape")).u


def reason(why: BaseException) -> str:
    """The part of h5py's sentence that says why."""
    text = str(why).strip("'\"")
    inner = text[text.find("(") + 1 : text.rfind(")")] if text.endswith(")") and "(" in text else text
    return inner.replace("h5z-gpu: ", "") or type(why).__name__


@dataclasses.dataclass
class Chunks:
    """The chunks of a dataset that has the filter.

    `frames` says what each is, where this filter is the last that has coded it. Rows of all arrays belong together.
    """

    dataset: h5py.Dataset
    shape: tuple[int, ...]  # of one chunk
    raw_len: int  # bytes of one chunk
    words: tuple[int, ...]
    filters: list[str]  # names of all filters, in their order
    origins: np.ndarray  # (n, rank): the first element of each
    at: np.ndarray  # where it begins in the file
    stored: np.ndarray  # bytes in the file
    masks: np.ndarray  # filters that each does without, by their places
    raw: np.ndarray  # bool: HDF5 has stored it without this filter
    frame: np.ndarray  # bool: what is stored is one frame
    frames: np.ndarray  # FRAME; zeros where it is none
    damage: dict[int, str]  # why a chunk cannot be read, by its row
    lost_index: str = ""  # why the list of chunks itself cannot be believed, "" where it can

    @property
    def grid(self) -> tuple[int, ...]:
        """How many chunks the dataset has room for, by axis."""
        return tuple(-(-n // c) for n, c in zip(self.dataset.shape, self.shape))

    def box(self, row: int) -> tuple[slice, ...]:
        """What of the dataset a chunk holds."""
        return tuple(slice(int(o), int(min(o + c, n))) for o, c, n in
                     zip(self.origins[row], self.shape, self.dataset.shape))  # fmt: skip


def filters_of(dataset: h5py.Dataset) -> list[tuple[int, int, tuple[int, ...], str]]:
    """Number, flags, words and name of each filter, in their order."""
    properties = dataset.id.get_create_plist()
    found = [properties.get_filter(i) for i in range(properties.get_nfilters())]
    return [(f[0], f[1], tuple(w & 0xFFFFFFFF for w in f[2]), _filter_name(f)) for f in found]


def _filter_name(found: tuple[Any, ...]) -> str:
    names = {1: "deflate", 2: "shuffle", _FLETCHER32: "fletcher32", 4: "szip", 5: "nbit", 6: "scale-offset", FILTER_ID: "h5z-gpu"}
    text = found[3].decode(errors="replace") if isinstance(found[3], bytes) else str(found[3])
    return names.get(found[0]) or (f"{text} ({found[0]})" if text else str(found[0]))


def chunks_of(dataset: h5py.Dataset, file: int, *, check: str = "checksum", others: bool = False) -> Optional[Chunks]:
    """The chunks of a dataset with the filter, or None where it has not got it.

    Parameters
    ----------
    dataset : h5py.Dataset
        Of a file that is open for reading.
    file : int
        A descriptor of the same file.
    check : {"header", "checksum", "decode"}
        How far each frame is looked at: its first bytes, all of them, or until it is decoded.
    others : bool
        Whether chunked datasets without the filter are taken too. None of their chunks is a frame.
    """
    filters = filters_of(dataset)
    numbers = [f[0] for f in filters]
    if dataset.chunks is None or FILTER_ID not in numbers and not others:
        return None
    mine = numbers.index(FILTER_ID) if FILTER_ID in numbers else None
    shape = dataset.chunks
    raw_len = math.prod(shape) * dataset.id.get_type().get_size()
    if not hasattr(index.hdf5(), "H5Dchunk_iter") and (n := math.prod(-(-n // c) for n, c in zip(dataset.shape, shape))) > _MANY:
        print(f"h5z-gpu: {dataset.name} has up to {n} chunks: HDF5 {h5py.version.hdf5_version} takes minutes to list them, an h5py "
              "with HDF5 1.14 or newer a second", file=sys.stderr)  # fmt: skip
    listed = index.chunk_list(dataset, file)
    in_order = np.lexsort(listed.origins.T[::-1])
    origins, at, stored, masks, lost_index = listed.rows(in_order)
    raw = np.ones(len(at), bool) if mine is None else (masks >> mine & 1).astype(bool)
    # Behind this filter: HDF5's checksum leaves the frame as it is, any other filter hides it.
    fletcher = np.zeros(len(at), bool)
    frame = ~raw
    for place in range(mine + 1, len(filters)) if mine is not None else ():
        used = (masks >> place & 1) == 0
        if numbers[place] == _FLETCHER32:
            fletcher |= used
        else:
            frame &= ~used
    words = () if mine is None else filters[mine][2]
    chunks = Chunks(dataset, shape, raw_len, words, [f[3] for f in filters], origins, at, stored, masks, raw, frame,
                    np.zeros(len(at), FRAME), {}, lost_index)  # fmt: skip
    lengths = stored - np.where(fletcher, 4, 0)
    _read_frames(chunks, file, lengths, check)
    if check == "decode":
        _decode(chunks, file, lengths)
    return chunks


def _read_frames(chunks: Chunks, file: int, lengths: np.ndarray, check: str) -> None:
    """Fills `frames` and `damage`."""
    rows = np.flatnonzero(chunks.frame)
    size = os.fstat(file).st_size
    beyond = chunks.at + chunks.stored > size
    for row in np.flatnonzero(beyond):
        chunks.damage[int(row)] = f"the chunk ends at byte {chunks.at[row] + chunks.stored[row]}, the file at {size}"
    rows = rows[~beyond[rows]]
    for first in range(0, len(rows), _AT_ONCE):
        some = rows[first : first + _AT_ONCE]
        places, lens = np.ascontiguousarray(chunks.at[some], np.uint64), np.ascontiguousarray(lengths[some], np.uint64)
        found = np.zeros(len(some), FRAME)
        well = lib.h5z_gpu_frames(
            ctypes.c_int(file), ctypes.c_size_t(len(some)), ctypes.c_void_p(places.ctypes.data),
            ctypes.c_void_p(lens.ctypes.data), ctypes.c_uint64(chunks.raw_len), ctypes.c_int(check != "header"),
            ctypes.c_int(0), ctypes.c_void_p(found.ctypes.data),
        )  # fmt: skip
        chunks.frames[some] = found
        if well < len(some):
            for row in some[found["status"] != 0]:
                chunks.damage[int(row)] = _why(chunks, file, int(lengths[row]), int(row))


def _why(chunks: Chunks, file: int, length: int, row: int) -> str:
    """Why a frame cannot be decoded."""
    if length > chunks.raw_len + 64:
        return f"the file's index says {length} bytes; a chunk of {chunks.raw_len} has {chunks.raw_len + 64} at most"
    frame = os.pread(file, length, int(chunks.at[row]))
    out = np.empty(chunks.raw_len, np.uint8)
    answer = lib.h5z_gpu_decode(frame, ctypes.c_size_t(len(frame)), ctypes.c_void_p(out.ctypes.data), ctypes.c_size_t(out.nbytes))
    if answer >= 0:
        return f"the frame holds {answer} bytes, the chunk has {chunks.raw_len}"
    return lib.h5z_gpu_last_error().decode().replace("h5z-gpu: ", "").replace("damaged chunk: ", "")


def _decode(chunks: Chunks, file: int, lengths: np.ndarray) -> None:
    """Decodes every chunk that seems well: frames by the library, the others by HDF5."""
    out = np.empty(chunks.raw_len, np.uint8)
    for row in range(len(chunks.at)):
        if row in chunks.damage:
            continue
        if not chunks.frame[row]:
            try:
                chunks.dataset[chunks.box(row)]
            except UNREADABLE as why:
                chunks.damage[row] = reason(why)
            continue
        frame = os.pread(file, int(lengths[row]), int(chunks.at[row]))
        if lib.h5z_gpu_decode(frame, ctypes.c_size_t(len(frame)), ctypes.c_void_p(out.ctypes.data), ctypes.c_size_t(out.nbytes)) < 0:
            chunks.damage[row] = lib.h5z_gpu_last_error().decode().replace("h5z-gpu: ", "").replace("damaged chunk: ", "")
