# SPDX-License-Identifier: MIT OR Apache-2.0
"""Boxes of datasets whose file has no descriptor: on a web server, in an object store, in memory.

Either the file is an object of Python, which h5py reads through its `seek` and `read`, or HDF5 reads it by its URL
(ros3.py). HDF5 asks for one chunk after the other, and each costs a request and its latency. Here HDF5 tells where the
chunks are, as it does for files of the system. Then

    frames that lie together become one range of bytes
    threads fetch ranges, many at a time, ahead of the decoder
    the library decodes the frames of all ranges that have come, and scatters them into the array

A chunk that is missing, damaged or stored without the filter is treated as plugin/src/dataset_io/reading.rs does it.
HDF5's lock is held while HDF5 is asked, and not while bytes are fetched and decoded.
"""
from __future__ import annotations

import contextlib
import ctypes
import re
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import capi
from .device import DeviceArray
from .filters import FILTER_ID
from .index import ChunkList, asked, chunk_list, distrust, function_of_hdf5, hdf5, size_of, unwrapped, why_not_raw
from .library import checked, failure, lib
from .mltypes import hdf5_type
from .ros3 import UrlFile
from .transfer import OtherWay
from .views import copy, described, numbers, origins_of

if TYPE_CHECKING:
    import h5py

# Requests at a time. A request of some milliseconds' latency brings little; aiohttp opens 100 connections at most.
_AT_ONCE = 32
# Frames that are no further apart than this come in one request: the bytes between take less time than a request's
# latency.
_GAP = 256 << 10
# Bytes of a request, unless one frame is longer, and of all requests that are under way or wait for the decoder.
_RANGE, _AHEAD = 4 << 20, 128 << 20
# If at most 1/16 of the chunks are wanted, HDF5 is asked for each one. A list of all chunks means to read the whole
# index, node by node: some 30 chunks a request where nodes lie apart.
_FEW = 16
# Places at which the list is compared with what a search finds.
_ASKED = 64
_EXTENSIBLE_ARRAY = 4  # H5D_CHUNK_IDX_EARRAY
_MAGIC = b"\x89H5ZG\r\n\x1a"

Fetch = Callable[[int, int], bytes]


def file_object(dataset: h5py.Dataset) -> Any:
    """The object that h5py reads the dataset's file through, or one for a URL that HDF5 reads; None for other files."""
    import h5py

    # The driver came with h5py 2.9, HDF5 of that age may have no H5Dwrite_chunk.
    library, access = hdf5(), h5py.h5i.get_file_id(dataset.id).get_access_plist()
    if library is None or access.get_driver() != h5py.h5fd.fileobj_driver:
        return UrlFile(dataset) if library and dataset.file.driver == "ros3" else None
    place = library.H5Pget_driver_info(access.id)
    return ctypes.cast(place, ctypes.py_object).value if place else None


@contextlib.contextmanager
def watched(file: Any) -> Iterator[None]:
    """Sees to an object while HDF5 reads through it: the first error that the object raises is the one raised here, and
    an answer that is too short is an error.

    h5py does not look at how many bytes `readinto` gave; HDF5 then takes for the file's what was in its buffer before.
    And HDF5 may call the object again after it raised, while the exception is pending. A method that Python has to
    look up among the class's bases is not found then, and AttributeError takes the exception's place.
    """
    raised: list[BaseException] = []

    def watch(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            try:
                found = method(*given)
                if name == "readinto":
                    _check_length(file, memoryview(given[0]).nbytes, found or 0)
                return found
            except BaseException as error:
                raised.append(unwrapped(error))
                raise

        return call

    # An object that has such methods in its dictionary is watched already, or somebody else replaces them.
    names, own = ("read", "readinto", "seek"), getattr(file, "__dict__", None)
    if own is None or any(name in own for name in names):
        yield
        return
    own.update({name: watch(name, getattr(file, name)) for name in names if hasattr(file, name)})
    failed = False
    try:
        yield
    except BaseException:
        failed = bool(raised)
        if not failed:
            raise
    finally:
        for name in names:
            own.pop(name, None)
    if failed:
        raise raised[0]  # behind the `except`: its own cause and context stay


def _check_length(file: Any, wanted: int, got: int) -> None:
    """Raises OSError where an object gave fewer bytes than there are at its position."""
    if got < wanted and (place := file.tell()) < size_of(file):
        raise OSError(f"h5z-gpu: of {wanted} bytes from {place - got} on, {got} bytes came: read it again")


class Remote:
    """A box of a dataset on its way from such an object into an array."""

    def __init__(self, dataset: h5py.Dataset, file: Any, out: np.ndarray | DeviceArray, start: tuple[int, ...],
                 fill_damaged: bool, threads: int, devices: str | None) -> None:
        """Asks HDF5. Raises OtherWay where it is to do all."""
        self.name, self.filename = dataset.name, dataset.file.filename
        self.out, self.start, self.threads, self.fills = out, start, threads, fill_damaged
        self.fill_value = _fill_value(dataset)
        check_frames(dataset, out)
        if isinstance(file, UrlFile):
            file.open(dataset)
        self.chunk, self.view = dataset.chunks, described(out, devices)
        self.raw_len = int(np.prod(self.chunk, dtype=np.int64)) * out.dtype.itemsize
        self.bytes = int(np.prod(out.shape, dtype=np.int64)) * out.dtype.itemsize
        self.special: list[tuple[int, ...]] = []
        if not self.bytes:
            raise OtherWay("nothing is selected")
        cells = origins_of(start, out.shape, self.chunk)
        total = int(np.prod([-(-n // c) for n, c in zip(dataset.shape, self.chunk)], dtype=np.int64))
        if len(cells) * _FEW <= total or len(cells) == 1:
            raise OtherWay(f"{len(cells)} of {total} chunks come sooner than a list of all")
        self.stored, self.missing = _places(dataset, file, cells)
        self.file, self.size = file, size_of(file)

    def steps(self) -> Generator[int, None, None]:
        """Reads: bytes of the array that are done, again and again, until all are."""
        done = sum(self._fill(origin) for origin in map(tuple, self.missing.tolist()))
        if done:
            yield done
        fetch, ranges = _fetch(self.file), _ranges(self.stored, self._longest())
        for some in _in_turn(self.file, ranges) if fetch is None else _ahead(fetch, ranges):
            yield self._decode(some)

    def _longest(self) -> int:
        return int(lib.h5z_gpu_max_encoded(self.raw_len))

    # --- what becomes of the chunks ----------------------------------------------------------------------------------

    def _decode(self, some: Batch) -> int:
        """Decodes the frames of some ranges; bytes of the array."""
        frames: list[tuple[int, np.ndarray]] = []
        done = 0
        for piece, future in some:
            found = self._bytes(piece, future)
            for k in piece.rows:
                at, n = int(self.stored.at[k]), int(self.stored.lens[k])
                frame = found[at - piece.at : at - piece.at + n]
                origin = tuple(self.stored.origins[k].tolist())
                if n > self._longest():
                    self._bad(origin, f"the file's index: a frame of {n} bytes, {self._longest()} at most")
                elif len(frame) < n:
                    self._bad(origin, "the file ends before it does")
                elif self.stored.masks[k] & 1:
                    self._unfiltered(origin, frame)
                else:
                    frames.append((k, frame))
                done += self._bytes_of(origin)
        if frames:
            self._decode_frames(frames)
        return done

    def _bytes(self, piece: Range, future: Future[bytes]) -> np.ndarray:
        """What a request brought, which may be less where the file ends. What the object raised is raised as it is."""
        wanted = max(0, min(piece.end, self.size) - piece.at)
        origin = tuple(self.stored.origins[piece.rows[0]].tolist())
        place = (f"{self.name}: the chunk at {origin} cannot be read: of {self.filename}, {piece.end - piece.at} bytes "
                 f"from {piece.at} on")
        try:
            found = future.result()
        except Exception as error:
            if hasattr(error, "add_note"):  # Python 3.11
                error.add_note(place)
            raise
        if len(found) != wanted:
            raise OSError(f"{place}: {len(found)} bytes came: read it again")
        return np.frombuffer(found, np.uint8)

    def _decode_frames(self, frames: list[tuple[int, np.ndarray]]) -> None:
        n, rank = len(frames), len(self.chunk)
        origins = [self.stored.origins[k] for k, _ in frames]
        at = np.ascontiguousarray(np.array(origins) - self.start, np.int64)
        status = (ctypes.c_int * n)()
        good = checked(lib.h5z_gpu_decode_memory(
            n, (ctypes.c_void_p * n)(*(frame.ctypes.data for _, frame in frames)),
            (ctypes.c_size_t * n)(*(len(frame) for _, frame in frames)), ctypes.byref(self.view),
            (ctypes.c_uint64 * rank)(*self.chunk), numbers(at, ctypes.c_int64), self.threads, status,
        ))
        if good == n:
            return
        text = re.sub(r"^frame \d+: ", "", lib.h5z_gpu_last_error().decode())  # a chunk's place is said instead
        bad = [(tuple(o.tolist()), kind) for o, kind in zip(origins, status) if kind]
        other = [row for row in bad if row[1] != capi.DAMAGED]
        if other or not self.fills:
            # The library's last error is of the first that failed for another reason than damage, or of the last.
            (origin, kind), count = (other[0] if other else bad[-1]), ""
            if len(bad) > 1:
                some = ", ".join(str(o) for o, _ in bad[:8])
                count = f" ({len(bad)} such chunks so far: [{some}])"
            text = f"{self.name}: the chunk at {origin} cannot be read: {text}{count}"
            raise OSError(text) if kind == capi.DAMAGED else failure(kind, text, self.filename)
        for origin, _ in bad:
            self._note(origin)

    def _unfiltered(self, origin: tuple[int, ...], raw: np.ndarray) -> None:
        """Values that were stored as they are."""
        why = why_not_raw(-1, 0, len(raw), self.raw_len)
        if not why and raw[: len(_MAGIC)].tobytes() == _MAGIC:
            why = "the file's index says that it is stored without filters, and it is a frame of the filter"
        if why:
            self._bad(origin, why)
            return
        there, inside = self._part(origin)
        values = np.frombuffer(raw.tobytes(), self.out.dtype)
        copy(values.reshape(self.chunk)[inside], self.out[there])

    def _bad(self, origin: tuple[int, ...], why: str) -> None:
        """A chunk that cannot be values."""
        if not self.fills:
            raise OSError(f"{self.name}: the chunk at {origin} cannot be read: {why}")
        self._note(origin)

    def _note(self, origin: tuple[int, ...]) -> None:
        self.special.append(origin)
        self._fill(origin)

    def _fill(self, origin: tuple[int, ...]) -> int:
        there, _ = self._part(origin)
        copy(self.fill_value, self.out[there])
        return self._bytes_of(origin)

    def _part(self, origin: tuple[int, ...]) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
        """Where a chunk is in the array, and what of the chunk that is."""
        there, inside = [], []
        for o, c, s, n in zip(origin, self.chunk, self.start, self.out.shape):
            first, last = max(o, s), min(o + c, s + n)
            there.append(slice(first - s, last - s))
            inside.append(slice(first - o, last - o))
        return tuple(there), tuple(inside)

    def _bytes_of(self, origin: tuple[int, ...]) -> int:
        there, _ = self._part(origin)
        return int(np.prod([s.stop - s.start for s in there], dtype=np.int64)) * self.out.dtype.itemsize


# --- what HDF5 is asked ----------------------------------------------------------------------------------------------


def check_frames(dataset: h5py.Dataset, out: np.ndarray | DeviceArray) -> None:
    """Raises OtherWay for a dataset that HDF5's pipeline is to read."""
    import h5py

    plan = dataset.id.get_create_plist()
    if dataset.file.mode != "r" or dataset.file.swmr_mode:
        raise OtherWay("the file is open for writing, or for single writer, multiple readers")
    if dataset.chunks is None:
        raise OtherWay("the dataset is not stored in chunks")
    filters = [plan.get_filter(k)[0] for k in range(plan.get_nfilters())]
    if filters != [FILTER_ID]:
        raise OtherWay(f"its filters are {filters}, not {FILTER_ID} alone, and the file has no descriptor")
    kind = dataset.id.get_type()
    if kind.get_class() not in (h5py.h5t.INTEGER, h5py.h5t.FLOAT) or kind != hdf5_type(out.dtype):
        raise OtherWay(f"its type {dataset.dtype} is not one of NumPy's numbers as it stands in memory")
    if not function_of_hdf5():
        raise OtherWay("this HDF5 has no H5Dwrite_chunk, which came with 1.10.3")
    library, options, index = hdf5(), ctypes.c_uint(0), ctypes.c_int(-1)
    assert library is not None
    if asked(library.H5Pget_chunk_opts, plan.id, ctypes.byref(options)) < 0 or options.value:
        raise OtherWay("chunks at the dataset's edge have no filter")
    growing = [k for k, n in enumerate(dataset.maxshape) if n is None]
    if len(growing) == 1 and growing != [0]:
        ask = getattr(library, "H5Dget_chunk_index_type", None)
        if ask is None or asked(ask, dataset.id.id, ctypes.byref(index)) < 0 or index.value == _EXTENSIBLE_ARRAY:
            # index.rs would compare the bytes of all chunks.
            raise OtherWay("HDF5 lists the chunks of such an index at places of others")


def _fill_value(dataset: h5py.Dataset) -> np.ndarray:
    """What an element holds that was never written."""
    import h5py

    plan, value = dataset.id.get_create_plist(), np.zeros((), dataset.dtype)
    never = plan.get_fill_time() == h5py.h5d.FILL_TIME_NEVER
    if not never and plan.fill_value_defined() != h5py.h5d.FILL_VALUE_UNDEFINED:
        plan.get_fill_value(value)
    return value


def _places(dataset: h5py.Dataset, file: Any, cells: np.ndarray) -> tuple[ChunkList, np.ndarray]:
    """The chunks of a box that are stored, in the order of the file, and the first elements of those that are not."""
    listed = chunk_list(dataset, file)
    wanted = {tuple(origin): k for k, origin in enumerate(cells.tolist())}
    rows = [k for k, origin in enumerate(map(tuple, listed.origins.tolist())) if origin in wanted]
    found = listed.rows(np.array(rows, np.int64))
    there = np.zeros(len(cells), bool)
    there[[wanted[tuple(origin)] for origin in found.origins.tolist()]] = True
    missing = cells[~there]
    wrong = listed.wrong or distrust(dataset, found.rows(_spread(len(found.at))), missing[_spread(len(missing))])
    if wrong:
        raise OSError(f"{dataset.name}: the file's list of its chunks is damaged: {wrong}. `h5z-gpu recover` saves "
                      "what can be read from a copy of the file")
    return found.rows(np.argsort(found.at, kind="stable")), missing


def _spread(n: int) -> slice:
    return slice(0, n, max(1, n // _ASKED))


# --- what is fetched -------------------------------------------------------------------------------------------------


class Range(NamedTuple):
    """Bytes of the file that come in one request, and which chunks are in them."""

    at: int
    end: int
    rows: range


# Ranges with what came of them.
Batch = list[tuple[Range, "Future[bytes]"]]


def _ranges(stored: ChunkList, longest: int) -> Iterator[Range]:
    """Neighbours in the file together. Of a frame that is longer than one can be, nothing is fetched."""
    first = at = end = 0
    for k, (a, n) in enumerate(zip(stored.at.tolist(), stored.lens.tolist())):
        n = 0 if n > longest else n
        if k > first and (a > end + _GAP or a + n > at + _RANGE):
            yield Range(at, end, range(first, k))
            first = k
        if k == first:
            at, end = a, a
        end = max(end, a + n)
    if len(stored.at):
        yield Range(at, end, range(first, len(stored.at)))


def _fetch(file: Any) -> Fetch | None:
    """How threads read bytes of it side by side; None for an object that is read by one caller at a time.

    Files of fsspec on which `_fetch_range` is defined, the method that a class of files has to bring, ask the server
    as they were opened to: with their headers, for their version. Others are asked for by their path.
    """
    if isinstance(file, UrlFile):
        return file.fetch
    fs, path = getattr(file, "fs", None), getattr(file, "path", None)
    if fs is None or path is None or getattr(fs, "asynchronous", False):
        return None
    keeps = getattr(getattr(file, "cache", None), "name", None)
    if keeps in ("all", "mmap", "parts"):
        return None  # what has come is kept there: nothing is fetched twice
    try:
        from fsspec.spec import AbstractBufferedFile
    except ImportError:
        return None
    if not isinstance(file, AbstractBufferedFile):
        return None
    if type(file)._fetch_range is not AbstractBufferedFile._fetch_range:
        return lambda at, end: _owned(file._fetch_range(at, end)) if end > at else b""
    if getattr(fs, "async_impl", False):
        return lambda at, end: _owned(fs.cat_file(path, start=at, end=end)) if end > at else b""
    return None


def _owned(found: Any) -> bytes:
    """What an object gave, as bytes that it cannot change; of None, which may stand for nothing, none."""
    return found if isinstance(found, bytes) else bytes(memoryview(b"" if found is None else found))


def _in_turn(file: Any, ranges: Iterator[Range]) -> Iterator[Batch]:
    """Ranges one after the other, under h5py's lock: h5py itself moves the object's position."""
    from h5py._objects import phil

    for piece in ranges:
        came: Future[bytes] = Future()
        try:
            with phil:
                file.seek(piece.at)
                came.set_result(_owned(file.read(piece.end - piece.at)))
        except Exception as e:
            came.set_exception(e)
        yield [(piece, came)]


def _ahead(fetch: Fetch, ranges: Iterator[Range]) -> Iterator[Batch]:
    """Ranges in their order, fetched ahead by threads: the next one, and those behind it that have come."""
    threads, waiting, under_way = ThreadPoolExecutor(_AT_ONCE, "h5z-gpu-fetch"), deque[Any](), 0
    following = next(ranges, None)
    try:
        while following or waiting:
            while following and (not waiting or under_way + following.end - following.at <= _AHEAD):
                under_way += following.end - following.at
                waiting.append((following, threads.submit(fetch, following.at, following.end)))
                following = next(ranges, None)
            wait([waiting[0][1]])
            some = [waiting.popleft()]
            while waiting and waiting[0][1].done():
                some.append(waiting.popleft())
            under_way -= sum(piece.end - piece.at for piece, _ in some)
            yield some
    finally:
        # After an error or Ctrl-C, requests that have begun come to their end by themselves.
        threads.shutdown(wait=False, cancel_futures=True)
