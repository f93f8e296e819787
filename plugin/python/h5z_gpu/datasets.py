# SPDX-License-Identifier: MIT OR Apache-2.0
"""Whole arrays into h5py datasets and out of them, beside HDF5's filter pipeline.

HDF5 hands a filter chunk by chunk, under one lock, and copies rows with one thread. Here the plugin gathers, encodes, decodes
and scatters many chunks at a time; frames go into the file by H5Dwrite_chunk and are read from it by pread. The file is the
same: `write` makes the frames that the filter makes, `read` takes those that any program wrote. What this way cannot take goes
through h5py as ever, and one line of the log `h5z_gpu` says why.
"""
from __future__ import annotations

import ctypes
import logging
import math
import operator
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from .capi import DAMAGED
from .device import DeviceArray
from .encoding import Encoding
from .index import why_not_raw
from .layout import Layout, OtherWay, index_of
from .library import checked, failure, lib
from .progress import bar
from .views import as_array, copy, described, expanded, numbers, on_host, origins_of

if TYPE_CHECKING:
    import h5py

log = logging.getLogger("h5z_gpu")

# Bytes decoded before Ctrl-C is looked at, some tenths of a second.
_RAW_PER_CALL, _RAW_PER_CALL_GPU = 1 << 30, 32 << 30


def write(dataset: h5py.Dataset, array: Any, selection: Any = None, *, threads: int = 0, progress: bool | None = None,
          devices: str | None = None) -> None:  # fmt: skip
    """Writes an array into a dataset, or into a part of it: `dataset[selection] = array`, but faster.

    All arguments are judged before the first chunk is written. The file is changed in place: after Ctrl-C each chunk is
    the old one or the new one. A process that is ended at once (SIGTERM, SIGKILL, a power failure) before the file is
    flushed or closed may leave a file that HDF5 cannot open, chunks that are damaged and say so, or chunks that hold
    the values of others: HDF5 gives old places to new chunks before it writes its tables. Keep a copy, or use `save`
    with mode "a", which works on one.

    Parameters
    ----------
    dataset : h5py.Dataset
        Open for writing; of a filter of this package.
    array : array_like
        Of the shape of the selection, of any strides. NumPy's arrays are read in place, and so are those of CuPy, PyTorch, JAX
        and others by DLPack or `__cuda_array_interface__`: in a GPU's memory it is that GPU that encodes them.
    selection : slice, int or tuple of these, optional
        As between the brackets of h5py. Chunks that it cuts go through h5py.
    threads : int
        CPU threads; 0 for as many as the process may use.
    progress : bool, optional
        A progress bar; without a word where it takes more than two seconds in a terminal, if tqdm is installed.
    devices : {None, "all"}
        "all" shares the work on arrays in host memory out between all GPUs that the process sees; without, one of them does it. An array
        in a GPU's memory is that GPU's.

    Raises
    ------
    TypeError, ValueError
        An argument is wrong: the shapes differ, values are masked, or the file is read-only; nothing was written.
    OSError
        HDF5 could not write; `errno` says why (ENOSPC: the disk is full) and `filename` where. What was written before stays
        readable, unless HDF5's tables cannot be written either.
    MemoryError
        There is too little memory: write a smaller selection, or with fewer threads.
    """
    start, shape, dropped = _box(dataset, selection)
    array = as_array(array)
    check_threads(threads)
    check_devices(devices, array)
    if array.shape != dropped:
        raise ValueError(f"h5z-gpu: the array has shape {array.shape}, the selection of the dataset {dropped}")
    if dataset.file.mode == "r":
        raise ValueError(f"h5z-gpu: {dataset.file.filename} is open for reading only: open it with mode r+ or a")
    try:
        if start is None:
            raise OtherWay("the selection is not a box of step 1")
        _write(dataset, expanded(array, shape), start, threads, progress, devices)
    except OtherWay as why:
        log.info("%s: written through HDF5's pipeline: %s", dataset.name, why)
        dataset[() if selection is None else selection] = on_host(array)


def read(dataset: h5py.Dataset, out: Any = None, selection: Any = None, *, threads: int = 0,
         on_error: str = "raise", progress: bool | None = None, devices: str | None = None) -> Any:  # fmt: skip
    """Reads a dataset, or a part of it: `dataset[selection]`, but faster.

    Of a chunk that the selection cuts, only the tiles that it touches are decoded.

    Parameters
    ----------
    dataset : h5py.Dataset
        Written by any program.
    out : numpy.ndarray, or an array in a GPU's memory, optional
        Where to read to: of the selection's shape, of any strides. That GPU decodes into CuPy's arrays, PyTorch's tensors and
        whatever else can be written there. A new NumPy array without.
    selection : slice, int or tuple of these, optional
        As between the brackets of h5py.
    threads : int
        CPU threads; 0 for as many as the process may use.
    on_error : {"raise", "fill"}
        "fill" puts the dataset's fill value where a chunk is damaged, and warns of each. What else keeps a chunk from being read, a
        failing disk or too little memory, is raised all the same: the chunk may be sound.
    progress, devices
        As in `write`.

    Returns
    -------
    array
        `out`, or the new numpy.ndarray, of the dataset's type.

    Raises
    ------
    ValueError
        `out` has another shape, or cannot be written.
    OSError
        A chunk is damaged; the sentence names its place. `out` may hold anything then. Where the system could not read the file,
        `errno` and `filename` say what and where.
    MemoryError
        There is too little memory: read a smaller selection, or with fewer threads.
    """
    if on_error not in ("raise", "fill"):
        raise ValueError(f'h5z-gpu: on_error = {on_error!r}; "raise" and "fill" are known')
    start, shape, dropped = _box(dataset, selection)
    target = np.empty(dropped, dataset.dtype) if out is None else _writable(out)
    if target.shape != dropped:
        raise ValueError(f"h5z-gpu: out has shape {target.shape}, the selection of the dataset {dropped}")
    check_threads(threads)
    check_devices(devices, target)
    try:
        if start is None:
            raise OtherWay("the selection is not a box of step 1")
        _read(dataset, expanded(target, shape), start, threads, on_error, progress, devices)
    except OtherWay as why:
        log.info("%s: read through HDF5's pipeline: %s", dataset.name, why)
        copy(np.asarray(dataset[() if selection is None else selection]), target)
    return target if out is None else out


def check_threads(threads: Any) -> None:
    """Raises TypeError or ValueError for what is no number of threads."""
    if not hasattr(threads, "__index__") or isinstance(threads, bool):
        raise TypeError(f"h5z-gpu: threads = {threads!r}; give a whole number, 0 for as many as the process may use")
    if operator.index(threads) < 0:
        raise ValueError(f"h5z-gpu: threads = {threads}; give 0 for as many as the process may use, or more")


def check_devices(devices: str | None, array: np.ndarray | DeviceArray) -> None:
    if devices not in (None, "all"):
        raise ValueError(f'h5z-gpu: devices = {devices!r}; None and "all" are known. H5Z_GPU_DEVICE names one GPU')
    if devices == "all" and isinstance(array, DeviceArray):
        raise ValueError('h5z-gpu: devices = "all" for an array in a GPU\'s memory: that GPU does the work')


def _writable(out: Any) -> np.ndarray | DeviceArray:
    """What is to be read to, as the library takes it."""
    target = as_array(out) if hasattr(out, "__dlpack_device__") or hasattr(out, "__cuda_array_interface__") else None
    if isinstance(out, np.ndarray):
        target, readonly = out, not out.flags.writeable
    elif isinstance(target, DeviceArray):
        readonly = target.readonly
    else:
        raise TypeError(f"h5z-gpu: out is a {type(out).__name__}; a numpy.ndarray or an array in a GPU's memory is needed")
    if readonly:
        raise ValueError("h5z-gpu: out is read-only")
    return target


# --- arrays and selections ---------------------------------------------------------------------------------------------


def _box(dataset, selection):
    """A selection as the first element, the extents of the box, and its extents without axes that an int selects.

    The first is None where the selection is no box of step 1.
    """
    if not dataset:
        raise ValueError("h5z-gpu: the dataset's file is closed")
    shape = dataset.shape
    if shape is None:
        raise ValueError(f"h5z-gpu: {dataset.name} is empty (it has no shape)")
    if selection is None or selection is Ellipsis or (isinstance(selection, tuple) and selection == ()):
        return (0,) * len(shape), shape, shape
    parts = list(selection) if isinstance(selection, tuple) else [selection]
    if not all(isinstance(p, (int, np.integer, slice)) or p is Ellipsis for p in parts):
        return None, None, _result_shape(dataset, selection)
    if sum(p is Ellipsis for p in parts) > 1 or len([p for p in parts if p is not Ellipsis]) > len(shape):
        raise IndexError(f"h5z-gpu: the selection {selection} for a dataset of shape {shape}")
    if Ellipsis not in parts:
        parts.append(Ellipsis)
    at = parts.index(Ellipsis)
    parts[at : at + 1] = [slice(None)] * (len(shape) - len(parts) + 1)
    start, extents, dropped = [], [], []
    for part, n in zip(parts, shape):
        if isinstance(part, slice):
            first, last, step = part.indices(n)
            if step != 1:
                return None, None, _result_shape(dataset, selection)
            start.append(first)
            extents.append(max(0, last - first))
            dropped.append(extents[-1])
        else:
            first = int(part) + n if part < 0 else int(part)
            if not 0 <= first < n:
                raise IndexError(f"h5z-gpu: index {part} of an axis of {n}")
            start.append(first)
            extents.append(1)
    return tuple(start), tuple(extents), tuple(dropped)


def _result_shape(dataset, selection):
    """The shape of what h5py reads by a selection of another kind."""
    import h5py

    return h5py._hl.selections.select(dataset.shape, selection, dataset).array_shape


# --- many chunks at a time ------------------------------------------------------------------------------------------------


def _region(start, shape, origin, chunk):
    """What of a chunk lies in a box: slices of the box's array, and of the dataset."""
    low = [max(o, s) for o, s in zip(origin, start)]
    high = [min(o + c, s + n) for o, c, s, n in zip(origin, chunk, start, shape)]
    in_array = tuple(slice(a - s, b - s) for a, b, s in zip(low, high, start))
    return in_array, tuple(slice(a, b) for a, b in zip(low, high))


def _write(dataset, array, start, threads, progress, devices):
    from h5py._objects import phil

    with phil:
        layout = Layout(dataset)
        if array.dtype != layout.dtype:
            raise OtherWay(f"an array of {array.dtype} becomes {layout.dtype}")
        if array.size == 0:
            return
        chunk = np.array(layout.chunk)
        origins = origins_of(start, array.shape, layout.chunk)
        # A chunk is whole where the box holds all of it that lies in the dataset.
        end = np.minimum(origins + chunk, dataset.shape)
        whole = np.all((origins >= start) & (end <= np.array(start) + array.shape), axis=1)
        offsets = np.ascontiguousarray(origins[whole], np.uint64)
        places = np.ascontiguousarray(origins[whole] - np.array(start), np.int64)
        cut = origins[~whole]
        if len(cut):
            log.info("%s: %d chunks that the selection cuts are written through HDF5's pipeline", dataset.name, len(cut))
        with bar(progress, array.nbytes, "write", dataset.name) as done:
            for origin in cut.tolist():
                in_array, in_dataset = _region(start, array.shape, origin, layout.chunk)
                dataset[in_dataset] = on_host(array[in_array])
                done(array[in_array].nbytes)
            if not len(offsets):
                return
            bytes_each = int(chunk.prod()) * array.itemsize
            with Encoding() as encoding:
                encoding.begin(described(array, devices), layout.words, layout.chunk, layout.fill, places, threads)
                while written := encoding.write(layout.write_chunk, dataset.id.id, offsets, layout.file.filename):
                    done(written * bytes_each)


def _unread(dataset, path, bad):
    """The exception for chunks that could not be read, of which the places and the statuses are given."""
    # What the library's sentence is about: the first that is not damaged, or else the last one.
    origin, status = next((b for b in bad if b[1] != DAMAGED), bad[-1])
    reason = lib.h5z_gpu_last_error().decode().split(": ", 1)[-1]
    text = f"{dataset.name}: the chunk at {origin} cannot be read: {reason}"
    if len(bad) > 1:
        text += f" ({len(bad)} such chunks so far: {[origin for origin, _ in bad[:8]]})"
    return OSError(text) if status == DAMAGED else failure(status, text, path)


def _read(dataset, out, start, threads, on_error, progress, devices):
    from h5py._objects import phil

    with phil:
        layout = Layout(dataset)
        if out.dtype != layout.dtype:
            raise OtherWay(f"{layout.dtype} becomes an array of {out.dtype}")
        if out.size == 0:
            return
        if layout.file.mode != "r":
            dataset.id.flush()
        chunk = layout.chunk
        fd = layout.file.id.get_vfd_handle()
        index = index_of(layout, fd, start, out.shape)
        view = described(out, devices)
        extents = (ctypes.c_uint64 * len(chunk))(*chunk)
        for origin in index.missing.tolist():
            copy(layout.fill, out[_region(start, out.shape, origin, chunk)[0]])
        frames = index.frames
        places = np.ascontiguousarray(frames.origins - np.array(start))
        damaged = []
        bytes_each = math.prod(chunk) * out.itemsize
        at_once = max(1, (_RAW_PER_CALL_GPU if isinstance(out, DeviceArray) else _RAW_PER_CALL) // bytes_each)
        with bar(progress, (len(places) + len(index.unfiltered.at)) * bytes_each, "read", dataset.name) as done:
            for origin, at, stored, _ in zip(*(column.tolist() for column in index.unfiltered[:4])):
                in_array, in_dataset = _region(start, out.shape, origin, chunk)
                why = why_not_raw(fd, at, stored, bytes_each)
                if why and on_error == "raise":
                    raise OSError(f"{dataset.name}: the chunk at {tuple(origin)} cannot be read: {why}")
                if why:
                    damaged.append(tuple(origin))
                else:
                    copy(dataset[in_dataset], out[in_array])
                done(bytes_each)
            for first in range(0, len(places), at_once):
                some = slice(first, first + at_once)
                n = len(places[some])
                status = (ctypes.c_int * n)()
                decoded = checked(lib.h5z_gpu_decode_file(
                    fd, n, numbers(frames.at[some], ctypes.c_uint64),
                    numbers(frames.lens[some], ctypes.c_uint64), ctypes.byref(view), extents,
                    numbers(places[some], ctypes.c_int64), threads, status,
                ))  # fmt: skip
                done(n * bytes_each)
                if decoded < n:
                    bad = [(tuple(origin), s) for origin, s in zip(frames.origins[some].tolist(), status) if s]
                    damaged += [origin for origin, s in bad if s == DAMAGED]
                    if on_error == "raise" or any(s != DAMAGED for _, s in bad):
                        raise _unread(dataset, layout.file.filename, bad)
        for origin in damaged:
            copy(layout.fill, out[_region(start, out.shape, origin, chunk)[0]])
            warnings.warn(f"{dataset.name}: the chunk at {origin} is damaged; it is filled with {layout.fill}", stacklevel=3)
