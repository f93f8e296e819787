# SPDX-License-Identifier: MIT OR Apache-2.0
"""Goes through the objects of a file that may be damaged, and through the chunks of its datasets."""
from __future__ import annotations

import ctypes
import dataclasses
import errno
import functools
import math
import os
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any, Optional, Union

import h5py
import numpy as np

from .. import capi, index
from ..attrs import Attributes
from ..filters import FILTER_ID
from ..library import descriptor, lib
from ..stored_words import StoredWords, is_list, meaning
from ..views import numbers
from .common import Problem, pread, say
from .names import as_bytes, as_text
from .places import places_in
from .values import read_box

# What h5py raises for objects that HDF5 cannot read.
UNREADABLE = (OSError, RuntimeError, KeyError, ValueError, TypeError, MemoryError, OverflowError)
_SHUFFLE, _FLETCHER32 = 2, 3  # HDF5's numbers; its checksum is four bytes behind the chunk
# filters that see by a checksum whether bytes have changed: deflate, and two more
CHECKED = {1, _FLETCHER32, FILTER_ID}
_OF_THE_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS)
_AT_ONCE = 4096
_HEAD = 56  # bytes of a frame that say its version
_OLDER = "a build before 0.1.0"  # what is said of stored words of another layout
OF_ANOTHER_BUILD = "this chunk was written by "
"""How the library's sentences begin on frames that only the build which wrote them can read: `builds`."""
# Types by bits of exponent and mantissa.
_IEEE = {(8, 23): (h5py.h5t.IEEE_F32LE, h5py.h5t.IEEE_F32BE), (11, 52): (h5py.h5t.IEEE_F64LE, h5py.h5t.IEEE_F64BE)}
_MANY = 20_000  # chunks that take HDF5 1.10 about ten seconds
_ASKED = 100_000  # chunks that are not in a list and are asked for by their places, at most

FRAME = np.dtype(capi.Frame)

Found = Union[h5py.Dataset, h5py.Group, h5py.Datatype, str]
# Told of what comes next, an object and an attribute of it or None: HDF5 may crash there.
Note = Callable[[tuple[str, Optional[str]]], None]


def walk(group: h5py.Group, note: Note = lambda _: None) -> Iterator[tuple[str, Found]]:
    """Every object below a group by its path, once, with what it is, or the reason why it cannot be read."""
    note((group.name, None))
    try:
        seen = {h5py.h5o.get_info(group.id).addr}
    except UNREADABLE as why:
        yield group.name, reason(why)
        return
    empty = True
    for name, item in _walk(group, "" if group.name == "/" else group.name, seen, note, group.file.mode == "r"):
        empty = False
        yield name, item
    note((group.name, None))
    if empty:
        # Where a damaged list names nothing any more, HDF5's own way through it may still notice.
        try:
            group.visit(lambda _: None)
        except UNREADABLE as why:
            yield group.name, f"its list of objects is damaged: {reason(why)}"


def _walk(group: h5py.Group, path: str, seen: set[int], note: Note, readonly: bool) -> Iterator[tuple[str, Found]]:
    try:
        names = sorted(group, key=as_text)
    except UNREADABLE as why:
        yield path or "/", reason(why)
        return
    for name in names:
        full = f"{path}/{as_text(name)}"
        note((full, None))
        try:
            try:
                link = link_of(group, name)
            except KeyError:
                raise KeyError("it is listed, and not found by its name") from None
            if link.type in (h5py.h5l.TYPE_SOFT, h5py.h5l.TYPE_EXTERNAL):
                continue
            if link.type != h5py.h5l.TYPE_HARD:
                raise TypeError("Unknown link type")
            item, address = group[name], int(link.u)
            if address in seen:
                continue
            seen.add(address)
            if isinstance(item, h5py.Dataset):
                item = AnyDataset(item.id, readonly=readonly)
                item.shape, item.id.get_type().get_size()  # what makes it a dataset can be read
        except UNREADABLE as why:
            yield full, reason(why)
            continue
        yield full, item
        if isinstance(item, h5py.Group):
            yield from _walk(item, full, seen, note, readonly)


def link_of(group: h5py.Group, name: Union[str, bytes]) -> Any:
    """Type of a link, and where the object of a hard one lies (`u`). Asking the object itself would read more of it,
    which may be damaged."""
    return group.id.links.get_info(as_bytes(name))


def of_the_system(why: BaseException) -> bool:
    """Whether an error is not of the file but of the disk, which is full or broken."""
    stated = re.search(r"errno = (\d+)", str(why))  # HDF5's text; h5py hands on numbers of the first error alone
    return (int(stated[1]) if stated else getattr(why, "errno", None)) in _OF_THE_DISK


# What follows where the form of a dataset's filters is unknown to the HDF5 that is at hand.
NEWER = '; a newer HDF5 has written it so (3.0 does with libver="latest"), or bits have changed'


def reason(why: BaseException) -> str:
    """The part of h5py's sentence that says why."""
    text = str(why).strip("'\"")
    inner = text[text.find("(") + 1 : text.rfind(")")] if text.endswith(")") and "(" in text else text
    if inner == "bad version number for filter pipeline message":
        # HDF5's branch for 3.0 writes version 3 where the file's low bound is its own, or a filter's string is kept.
        inner += NEWER
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
    doubt: str = ""  # what says that the dataset's type, chunks or fill value are not those it was made with
    # first elements that the list has more than once, and none of their chunks
    twice: frozenset[tuple[int, ...]] = frozenset()

    @property
    def grid(self) -> tuple[int, ...]:
        """How many chunks the dataset has room for, by axis."""
        return tuple(-(-n // c) for n, c in zip(self.dataset.shape, self.shape))

    def box(self, row: int) -> tuple[slice, ...]:
        """What of the dataset a chunk holds."""
        return tuple(slice(int(o), int(min(o + c, n))) for o, c, n in
                     zip(self.origins[row], self.shape, self.dataset.shape))

    def missing(self, most: int) -> Optional[np.ndarray]:
        """First elements of the chunks that are not in the list, or None where they are more than `most`."""
        grid = self.grid
        if math.prod(grid) - len(self.at) > most:
            return None
        there = np.zeros(grid, bool)
        there[tuple((self.origins // self.shape).T)] = True
        found: np.ndarray = np.argwhere(~there) * np.array(self.shape)
        return found


def filters_of(dataset: h5py.Dataset) -> list[tuple[int, int, tuple[int, ...], str]]:
    """Number, flags, words and name of each filter, in their order."""
    properties = dataset.id.get_create_plist()
    found = [properties.get_filter(i) for i in range(properties.get_nfilters())]
    return [(f[0], f[1], tuple(w & 0xFFFFFFFF for w in f[2]), _filter_name(f)) for f in found]


def _filter_name(found: tuple[Any, ...]) -> str:
    names = {1: "deflate", 2: "shuffle", _FLETCHER32: "fletcher32", 4: "szip", 5: "nbit", 6: "scale-offset",
             FILTER_ID: "h5z-gpu"}
    text = found[3].decode(errors="replace") if isinstance(found[3], bytes) else str(found[3])
    return names.get(found[0]) or (f"{text} ({found[0]})" if text else str(found[0]))


def chunks_of(dataset: h5py.Dataset, file: int, *, check: str = "checksum", others: bool = False) -> Optional[Chunks]:
    """The chunks of a dataset with the filter, or None where it has not got it. `file` is a descriptor of its file.

    `check` says how far each frame is looked at: its first bytes ("header"), all of them ("checksum"), or until it is
    decoded ("decode"). With `others`, chunked datasets without the filter are taken too; none of their chunks is a
    frame.
    """
    filters = filters_of(dataset)
    numbers = [f[0] for f in filters]
    if dataset.chunks is None or (FILTER_ID not in numbers and not others):
        return None
    mine = numbers.index(FILTER_ID) if FILTER_ID in numbers else None
    shape = dataset.chunks
    raw_len = math.prod(shape) * dataset.id.get_type().get_size()
    if n := slow_to_list(dataset):
        say(f"h5z-gpu: {dataset.name} has up to {n} chunks: HDF5 {h5py.version.hdf5_version} takes minutes to list "
            "them, an h5py with HDF5 1.14 or newer a second", file=sys.stderr)
    listed = index.chunk_list(dataset, file)
    in_order = np.lexsort(listed.origins.T[::-1])
    listed = listed.rows(in_order)
    origins, at, stored, masks, lost_index, twice = listed
    raw = np.ones(len(at), bool) if mine is None else (masks >> mine & 1).astype(bool)
    # Behind this filter: HDF5's checksum leaves the frame as it is, any other filter hides it. `alone`: no filter
    # before it.
    fletcher, frame, alone = np.zeros(len(at), bool), ~raw, ~raw
    for place, number in enumerate(numbers):
        used = (masks >> place & 1) == 0
        if mine is None or place == mine:
            continue
        if place < mine:
            alone = alone & ~used
        elif number == _FLETCHER32:
            fletcher |= used
        else:
            frame = frame & ~used
    words = () if mine is None else filters[mine][2]
    chunks = Chunks(dataset, shape, raw_len, words, [f[3] for f in filters], origins, at, stored, masks, raw, frame,
                    np.zeros(len(at), FRAME), {}, lost_index, _doubt(dataset, words), twice)
    lengths = stored - np.where(fletcher, 4, 0)
    _read_frames(chunks, file, lengths, check)
    if _OLDER in chunks.doubt and not set(np.flatnonzero(frame)) - set(chunks.damage):
        chunks.doubt = ""  # as old as the words is every frame, or there is none
    _read_entries(chunks, file, numbers)
    if check == "decode":
        _ask_by_place(chunks, listed)
        _decode(chunks, file, lengths, frame & alone)
    return chunks


def slow_to_list(dataset: h5py.Dataset) -> int:
    """How many chunks a dataset has at most where HDF5 takes long to list them, else 0."""
    if dataset.chunks is None or hasattr(index.hdf5(), "H5Dchunk_iter"):
        return 0
    n = math.prod(-(-n // c) for n, c in zip(dataset.shape, dataset.chunks))
    return n if n > _MANY else 0


def _doubt(dataset: h5py.Dataset, words: tuple[int, ...]) -> str:
    """What the filter's stored words, which have a checksum, say against the dataset's header, whose oldest version has
    none."""
    if not is_list(words):
        return ""
    try:
        stored = meaning(words).stored
    except ValueError as why:
        return f"its filter's words are damaged ({why}); its values are kept as they are"
    if stored is None:
        return ""
    kind = dataset.id.get_type()
    if stored.kind != "bytes" and not _is_of_type(kind, stored):
        said = f"{stored.kind} of {stored.size} bytes, {stored.exponent_bits} and {stored.mantissa_bits} bits"
        return f"its type is not the one that its filter was made for: {said}"
    for number, _, parameters, _ in filters_of(dataset):
        if number == _SHUFFLE and parameters != (kind.get_size(),):
            return f"its shuffle is for elements of {parameters} bytes, which have {kind.get_size()}"
    extents = tuple(n for n in dataset.chunks if n > 1)
    if stored.sees_values and len(extents) <= 8 and extents != stored.chunk:
        return f"its chunks are {dataset.chunks}, its filter was made for {stored.chunk}"
    if stored.fill_bits is not None and stored.kind != "bytes" and kind.get_size() in (1, 2, 4, 8):
        value = np.asarray(dataset.fillvalue, dataset.dtype)
        bits = int.from_bytes(value.tobytes(), "big" if kind.get_order() == h5py.h5t.ORDER_BE else "little")
        if bits != stored.fill_bits:
            return f"its fill value is {value}, its filter was made for one of the bits {stored.fill_bits:#x}"
    return ""


def _is_of_type(kind: h5py.h5t.TypeID, stored: StoredWords) -> bool:
    """Whether a type of numbers is the one that stored words describe."""
    if kind.get_class() != {"integer": h5py.h5t.INTEGER, "float": h5py.h5t.FLOAT}[stored.kind]:
        return False
    if (kind.get_size(), kind.get_order() == h5py.h5t.ORDER_BE) != (stored.size, stored.big_endian):
        return False
    if stored.kind == "integer":
        return bool((kind.get_sign() == h5py.h5t.SGN_2) == stored.signed)
    _, _, exponent, _, mantissa = kind.get_fields()
    if (exponent, mantissa) != (stored.exponent_bits, stored.mantissa_bits):
        return False
    return kind in _IEEE.get((exponent, mantissa), (kind,))  # else the exponent's bias, or where its bits are


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
            descriptor(file), len(some), numbers(places, ctypes.c_uint64), numbers(lens, ctypes.c_uint64),
            chunks.raw_len, check != "header", 0, numbers(found, capi.Frame),
        )
        chunks.frames[some] = found
        if well < len(some):
            for row in some[found["status"] != 0]:
                chunks.damage[int(row)] = _why(chunks, file, int(lengths[row]), int(row))


def _why(chunks: Chunks, file: int, length: int, row: int) -> str:
    """Why a frame cannot be decoded."""
    if length > chunks.raw_len + 64:
        return f"the file's index says {length} bytes; a chunk of {chunks.raw_len} has {chunks.raw_len + 64} at most"
    frame = pread(file, _HEAD, int(chunks.at[row]))
    if lib.h5z_gpu_raw_len(frame, len(frame)) < 0 and (said := _said()).startswith(OF_ANOTHER_BUILD):
        return said
    frame = pread(file, length, int(chunks.at[row]))
    out = np.empty(chunks.raw_len, np.uint8)
    answer = lib.h5z_gpu_decode(frame, len(frame), out.ctypes.data, out.nbytes)
    if answer >= 0:
        return f"the frame holds {answer} bytes, the chunk has {chunks.raw_len}"
    return _said()


def _said() -> str:
    """What the library says of a frame that it cannot decode."""
    return str(lib.h5z_gpu_last_error().decode().replace("h5z-gpu: ", "").replace("damaged chunk: ", ""))


def _read_entries(chunks: Chunks, file: int, numbers: list[int]) -> None:
    """Fills `damage` with what the list's entries show by themselves: HDF5's oldest lists have no checksum."""
    rows = np.arange(len(chunks.at))
    # Chunks whose length is known: their values lie in them, and no filter that changes it was used.
    fixed = np.full(len(rows), not places_in(chunks.dataset.id.get_type()))
    length = np.full(len(rows), chunks.raw_len)
    for place, number in enumerate(numbers):
        used = (chunks.masks >> place & 1) == 0
        if number == _FLETCHER32:
            length += np.where(used, 4, 0)
        elif number != _SHUFFLE:
            fixed &= ~used
    for row in rows[fixed].tolist():
        why = index.why_not_raw(file, int(chunks.at[row]), int(chunks.stored[row]), int(length[row]))
        if why:
            chunks.damage.setdefault(row, why)
    for row in np.flatnonzero(chunks.masks >> len(numbers)).tolist():
        chunks.damage.setdefault(row, f"its filter mask is {int(chunks.masks[row]):#x}, the dataset has {len(numbers)} "
                                 f"filters")
    # Bytes that two chunks claim. A frame that is well by its checksum is believed, unless both are the same.
    order = np.argsort(chunks.at, kind="stable")
    before = None
    for row in order.tolist():
        if before is not None and chunks.at[row] < chunks.at[before] + chunks.stored[before]:
            for one, other in ((row, before), (before, row)):
                if chunks.at[row] == chunks.at[before] or not chunks.frame[one]:
                    chunks.damage.setdefault(one, f"its bytes are also those of the chunk at "
                                             f"{tuple(chunks.origins[other].tolist())}")
        if before is None or chunks.at[row] + chunks.stored[row] > chunks.at[before] + chunks.stored[before]:
            before = row


def _ask_by_place(chunks: Chunks, listed: index.ChunkList) -> None:
    """Fills `lost_index` where HDF5's search does not find what its list says: programs that read by place get other
    values."""
    if chunks.lost_index:
        return
    missing = chunks.missing(_ASKED)
    none = np.zeros((0, len(chunks.shape)), np.int64)
    chunks.lost_index = index.distrust(chunks.dataset, listed, none if missing is None else missing)


def _decode(chunks: Chunks, file: int, lengths: np.ndarray, alone: np.ndarray) -> None:
    """Decodes every chunk that seems well, for `damage`: frames by the library, the others by HDF5, if it finds them
    and has their filters.

    `alone` tells of which chunks the library gives the values themselves: no other filter was used before it.
    """
    out = np.empty(chunks.raw_len, np.uint8)
    known = all(h5py.h5z.filter_avail(f[0]) for f in filters_of(chunks.dataset) if f[0] != FILTER_ID)
    for row in range(len(chunks.at)):
        if row in chunks.damage:
            continue
        if chunks.frame[row]:
            frame = pread(file, int(lengths[row]), int(chunks.at[row]))
            if lib.h5z_gpu_decode(frame, len(frame), out.ctypes.data, out.nbytes) < 0:
                chunks.damage[row] = _said()
                continue
        if alone[row] or chunks.doubt or not known:
            continue
        if index.stored_size(chunks.dataset, chunks.origins[row].tolist()) == chunks.stored[row]:
            try:
                read_box(chunks.dataset, chunks.box(row))
            except UNREADABLE as why:
                chunks.damage[row] = reason(why)


class AnyDataset(h5py.Dataset):  # type: ignore[misc]
    """A dataset whose elements are raw bytes (V3) to NumPy where NumPy has no type for them: numbers of 24 bits. Bytes
    of its name that are no UTF-8 are surrogates."""

    @property
    def name(self) -> Any:
        """Its path, None where it has none."""
        return as_text(super().name)

    @property
    def dtype(self) -> np.dtype:
        """The type of its elements."""
        try:
            kind: np.dtype = super().dtype
        except (TypeError, ValueError):
            kind = np.dtype((np.void, self.id.get_type().get_size()))
        return kind

    @functools.cached_property
    def said(self) -> Attributes:
        """Its attributes, whose names are read once: for datasets of a file that nobody changes meanwhile."""
        return Attributes(self)


def known_attributes(item: Any) -> Attributes:
    """An object's attributes, which a dataset of a file that nobody changes may have kept."""
    return item.said if isinstance(item, AnyDataset) else Attributes(item)


def datasets(item: Union[h5py.File, h5py.Group], note: Note = lambda _: None) -> Iterator[h5py.Dataset]:
    """Every dataset below a group, once, in the order of names. Soft and external links are not followed.

    Objects that HDF5 cannot read are left out. `note` is told of what comes next.
    """
    for _, found in walk(item, note):
        if isinstance(found, h5py.Dataset):
            yield found


def one_dataset(file: h5py.File, name: str) -> h5py.Dataset:
    """The dataset of this name, or a Problem that lists those that are there."""
    found = file.get(as_bytes(name))
    if isinstance(found, h5py.Dataset):
        return AnyDataset(found.id, readonly=file.mode == "r")
    names = [d.name.lstrip("/") for d in datasets(file)]
    there = f"it has {', '.join(names[:8])}{' ...' if len(names) > 8 else ''}" if names else "it has no datasets"
    what = "a group" if isinstance(found, h5py.Group) else "not there"
    raise Problem(f"{file.filename}: {name} is {what}; {there}")
