# SPDX-License-Identifier: MIT OR Apache-2.0
"""Samples of HDF5 datasets by number, for PyTorch's `DataLoader` and other loaders that ask so.

Each process opens the files when it reads its first sample, and lists where their chunks are. From then on the library
reads and decodes frames without HDF5 and without Python's lock, into the array that a batch is. Datasets without such
a list (other filters, types that are converted, chunks that were never written) are read by `h5z_gpu.read`.

PyTorch is not imported here. Where the program has imported it, samples are its tensors, in a worker in shared memory.
"""
from __future__ import annotations

import ctypes
import math
import multiprocessing
import os
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from .datasets import read
from .index import ChunkList, chunk_list, distrust
from .library import descriptor, lib
from .mltypes import as_held, held, is_added, named
from .remote import check_frames
from .transfer import OtherWay
from .views import as_array, described, numbers

_OPEN, _ASKED = 64, 64  # datasets that a process keeps open; places at which a list is compared with what HDF5 finds


class Samples:
    """`Samples("train.h5", "tas")[k]` is row k along the first axis, `[[7, 2]]` a batch of two rows.

    Parameters
    ----------
    files : path or sequence of paths
        HDF5 files, whose samples follow each other.
    names : str or sequence of str
        A dataset of each file, or several with equally many rows: a sample is then a tuple.
    window : int, optional
        Rows of a sample, along an axis of its own. Default: one row, without the axis.
    step : int, optional
        Rows from the beginning of a sample to that of the next. Default: `window`.
    dtype : data type of NumPy or PyTorch, optional
        What samples become, "bfloat16" for example. Default: the dataset's type.
    device : optional
        A device of PyTorch's, for its tensors there. A GPU decodes into its own memory.

    Raises
    ------
    ValueError
        Datasets hold no numbers, have no axis, or differ in rows or from file to file; `window` or `step` is below 1.
    """

    def __init__(self, files: Any, names: str | Sequence[str], *, window: int | None = None, step: int | None = None,
                 dtype: Any = None, device: Any = None) -> None:
        one = isinstance(files, (str, os.PathLike))
        self.files = [os.fspath(file) for file in ([files] if one else files)]
        self.names, self.window, self.device = names, window, device
        self.rows = 1 if window is None else window
        self.step = self.rows if step is None else step
        self._open: tuple[int, dict[tuple[str, str], _Source]] = (0, {})
        if min(self.rows, self.step, len(self.files), len(names)) < 1:
            raise ValueError("h5z-gpu: give one file, one name, window = 1 and step = 1 or more")
        try:
            self.dtype = None if dtype is None else np.dtype(dtype).name
        except TypeError:  # PyTorch's, or of ml_dtypes without it
            self.dtype = str(dtype).rpartition(".")[2]
        sources = [[self._source(file, name) for name in self._each] for file in self.files]
        for file, some in zip(self.files, sources):
            if len({s.shape[0] for s in some}) > 1 or any((s.shape[1:], s.type) != (t.shape[1:], t.type)
                                                          for s, t in zip(some, sources[0])):
                raise ValueError(f"h5z-gpu: datasets of {file} have shapes {[s.shape for s in some]} and types "
                                 f"{[s.type.name for s in some]}: rows differ, or those of {self.files[0]} do")
        self.shapes = [(s.shape[1:], s.type) for s in sources[0]]
        self.first = np.cumsum([0, *(max(0, (s[0].shape[0] - self.rows) // self.step + 1) for s in sources)])

    def __len__(self) -> int:
        return int(self.first[-1])

    def __getitem__(self, which: Any) -> Any:
        """A sample by its number, or a batch by a list of numbers."""
        given = np.asarray(which)
        if given.dtype.kind not in "iu" or given.ndim > 1:
            raise TypeError(f"h5z-gpu: {which!r} is no number of a sample; give a whole number or a list of them")
        ks = np.atleast_1d(np.where(given < 0, given + len(self), given))
        if len(wrong := ks[(ks < 0) | (ks >= len(self))]):
            raise IndexError(f"h5z-gpu: sample {wrong[0]} of {len(self)}")
        found = tuple(self._read(i, ks) if given.ndim else self._read(i, ks)[0] for i in range(len(self._each)))
        return found[0] if isinstance(self.names, str) else found

    def batches(self, order: Iterable[Any], ahead: int = 2) -> Iterator[Any]:
        """Batches by an `Order` or other lists of numbers, up to `ahead` of them read in advance by a thread.

        It needs no worker processes, since nothing is read or decoded under Python's lock, on all cores.
        """
        reader, waiting = ThreadPoolExecutor(1, "h5z-gpu-samples"), deque[Any]()
        try:
            for some in order:
                waiting.append(reader.submit(self.__getitem__, some))
                if len(waiting) > ahead:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            reader.shutdown(wait=False, cancel_futures=True)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_open": (0, {})}  # each process opens the files itself

    @property
    def _each(self) -> Sequence[str]:
        return [self.names] if isinstance(self.names, str) else self.names

    def _source(self, file: str, name: str) -> _Source:
        if self._open[0] != os.getpid():  # after a fork the parent's are open here too
            self._open = (os.getpid(), {})
        there = self._open[1]
        found = there.pop((file, name), None) or _Source(file, name)
        if len(there) >= _OPEN:
            del there[next(iter(there))]
        there[file, name] = found
        return found

    def _read(self, i: int, ks: np.ndarray) -> Any:
        """The samples of one name, one behind the other."""
        shape, kind = self.shapes[i]
        torch = sys.modules.get("torch")
        out, memory = self._empty(torch, (len(ks) * self.rows, *shape), kind)
        files = np.searchsorted(self.first, ks, "right") - 1
        starts = (ks - self.first[files]) * self.step
        for k in np.unique(files):
            places = np.flatnonzero(files == k)
            self._source(self.files[k], self._each[i]).fill(memory, starts[places], places * self.rows, self.rows)
        out = out.reshape((len(ks), *(() if self.window is None else (self.rows,)), *shape))
        if self.dtype is None:
            return out
        return out.astype(named(self.dtype) or self.dtype) if torch is None else out.to(getattr(torch, self.dtype))

    def _empty(self, torch: Any, shape: tuple[int, ...], kind: np.dtype) -> tuple[Any, Any]:
        """An array of NumPy, or a tensor where there is PyTorch, and its memory as `read` takes it."""
        if torch is None:
            return (made := np.empty(shape, kind)), made
        if self.device is not None and torch.device(self.device).type != "cpu":
            return (made := torch.empty(shape, dtype=getattr(torch, kind.name), device=self.device)), made
        made, size = torch.empty(0, dtype=torch.uint8), math.prod(shape) * kind.itemsize
        # A worker's tensor would be copied into shared memory on its way to the parent: PyTorch's own collation too
        # has it made there.
        made = made.set_(torch.UntypedStorage._new_shared(size)) if _is_worker() and size else made.resize_(size)
        return made.view(getattr(torch, kind.name)).view(shape), made.numpy().view(kind).reshape(shape)


def _is_worker() -> bool:
    """Whether other processes share this one's cores."""
    return multiprocessing.parent_process() is not None


class _Source:
    """A dataset that this process has open, and the list of its frames where the library can take them."""

    def __init__(self, file: str, name: str) -> None:
        import h5py

        self.dataset = d = h5py.File(file, "r", rdcc_nbytes=0)[name]
        if not isinstance(d, h5py.Dataset) or not d.shape:
            raise ValueError(f"h5z-gpu: {name} of {file} is no dataset with rows: give another name")
        self.shape, self.type = d.shape, held(d).newbyteorder("=")
        self.frames: ChunkList | None = None
        if self.type.kind not in "biufc" and not is_added(self.type):
            raise ValueError(f"h5z-gpu: {name} of {file} holds {self.type}, no numbers: give another name")
        try:
            check_frames(d, as_held(d, np.empty(0, self.type)))
        except OtherWay:
            return
        if d.file.driver != "sec2" or d.file.userblock_size or not d.size:
            return
        self.file = d.file.id.get_vfd_handle()
        listed, cells = chunk_list(d, self.file), [-(-n // c) for n, c in zip(d.shape, d.chunks)]
        if not listed.wrong and not listed.masks.any() and len(listed.at) == math.prod(cells):
            listed = listed.rows(np.lexsort(listed.origins.T[::-1]))
            some = listed.rows(slice(None, None, max(1, len(listed.at) // _ASKED)))
            if not distrust(d, some, listed.origins[:0]):
                self.frames, self.across = listed, math.prod(cells[1:])
                self.chunk = (ctypes.c_uint64 * d.ndim)(*d.chunks)

    def fill(self, out: Any, starts: np.ndarray, places: np.ndarray, rows: int) -> None:
        """Reads `rows` rows from each of `starts` on to each of `places` of `out`."""
        frames = self.frames
        if frames and rows % self.chunk[0] == 0 and not (starts % self.chunk[0]).any():
            if self._decode(frames, out, starts, places, rows):  # no chunk reaches into the next sample
                return
        for start, place in zip(starts.tolist(), places.tolist()):
            part = out[(slice(place, place + rows), *(slice(0, n) for n in self.shape[1:]))]
            if not (frames and self._decode(frames, part, np.array([start]), np.array([0]), rows)):
                # It says what is wrong with a chunk.
                read(self.dataset, part, np.s_[start : start + rows], threads=int(_is_worker()))

    def _decode(self, frames: ChunkList, out: Any, starts: np.ndarray, places: np.ndarray, rows: int) -> bool:
        """Whether all frames of these samples were decoded."""
        c = self.chunk[0]
        first, last = starts // c * self.across, -(-(starts + rows) // c) * self.across
        ks = np.concatenate([np.arange(a, b) for a, b in zip(first, last)])
        origins = frames.origins[ks]
        origins[:, 0] += np.repeat(places - starts, last - first)
        at, lens = (np.ascontiguousarray(column[ks], np.uint64) for column in (frames.at, frames.lens))
        view, status = described(as_held(self.dataset, as_array(out))), (ctypes.c_int * len(ks))()
        good = lib.h5z_gpu_decode_file(
            descriptor(self.file), len(ks), numbers(at, ctypes.c_uint64), numbers(lens, ctypes.c_uint64),
            ctypes.byref(view), self.chunk, numbers(origins, ctypes.c_int64), int(_is_worker()), status,
        )
        return bool(good == len(ks))


class Order:
    """Batches of numbers in an order that seed and epoch fix: the sampler of a loader that can go on where it was.

    `DataLoader(samples, sampler=order, batch_size=None)` reads ahead, so the loop says by `order.step()` that it is
    done with a batch. After the last batch of an epoch the next epoch begins, with another order.

    Parameters
    ----------
    count, batch : int
        Samples in all, and of a batch; the last batch may be shorter.
    seed : int
    rank, ranks : int
        Which of several processes this is, of how many: each has its own samples, all have equally many.
    """

    def __init__(self, count: int, batch: int, *, seed: int = 0, rank: int = 0, ranks: int = 1) -> None:
        if batch < 1 or not 0 <= rank < ranks:
            raise ValueError(f"h5z-gpu: batches of {batch}, rank {rank} of {ranks}: give a batch of 1 or more, and "
                             "ranks from 0 on")
        self.count, self.batch, self.seed, self.rank, self.ranks = count, batch, seed, rank, ranks
        self.epoch = self.taken = 0

    def __iter__(self) -> Iterator[list[int]]:
        order = np.random.default_rng((self.seed, self.epoch)).permutation(self.count)
        mine = order[self.rank : self.count // self.ranks * self.ranks : self.ranks].tolist()
        return (mine[k : k + self.batch] for k in range(self.taken * self.batch, len(mine), self.batch))

    def __len__(self) -> int:
        """Batches that are left in this epoch."""
        return -(-(self.count // self.ranks) // self.batch) - self.taken

    def step(self) -> None:
        self.taken += 1
        if len(self) <= 0:
            self.epoch, self.taken = self.epoch + 1, 0

    def state_dict(self) -> dict[str, int]:
        return dict(self.__dict__)

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Goes on there. Raises ValueError for a state of other samples, batches or ranks."""
        if differ := [k for k in ("count", "batch", "ranks") if state[k] != getattr(self, k)]:
            raise ValueError(f"h5z-gpu: the state has {', '.join(f'{k} = {state[k]}' for k in differ)}: make the Order "
                             "with the same")
        self.seed, self.epoch, self.taken = state["seed"], state["epoch"], state["taken"]
