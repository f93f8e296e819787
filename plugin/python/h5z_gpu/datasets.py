# SPDX-License-Identifier: MIT OR Apache-2.0
"""Whole arrays into h5py datasets and out of them, beside HDF5's filter pipeline.

HDF5 hands a filter chunk by chunk, under one lock, and copies rows with one thread. Here the plugin gathers, encodes,
decodes and scatters many chunks at a time; frames go into the file by H5Dwrite_chunk and are read from it by pread. The
file is the same: `write` makes the frames that the filter makes, `read` takes those that any program wrote. Of a file
on a server, or one that is an object of Python, `remote` fetches them. What this way cannot take goes through h5py as
ever, and one line of the log `h5z_gpu` says why.
"""
from __future__ import annotations

import contextlib
import logging
import operator
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from .device import DeviceArray
from .mltypes import as_held, is_bfloat16, through_hdf5
from .progress import bar
from .provenance import on_dataset, wanted
from .remote import Remote, file_object, watched
from .transfer import OtherWay, Transfer
from .views import as_array, copy, expanded, on_host

if TYPE_CHECKING:
    import h5py

log = logging.getLogger("h5z_gpu")


def write(dataset: h5py.Dataset, array: Any, selection: Any = None, *, threads: int = 0, progress: bool | None = None,
          devices: str | None = None, provenance: bool | None = None) -> None:
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
        Of the shape of the selection, of any strides. NumPy's arrays are read in place, and so are those of CuPy,
        PyTorch, JAX and others by DLPack or `__cuda_array_interface__`: in a GPU's memory it is that GPU that encodes
        them.
    selection : slice, int or tuple of these, optional
        As between the brackets of h5py. Chunks that it cuts go through h5py.
    threads : int
        CPU threads; 0 for as many as the process may use.
    progress : bool, optional
        A progress bar; without a word where it takes more than two seconds in a terminal, if tqdm is installed.
    devices : {None, "all"}
        "all" shares the reading of arrays in host memory out between all GPUs that the process sees; without, one of
        them does it. An array in a GPU's memory is that GPU's.
    provenance : bool, optional
        Whether a dataset that loses bits says so in attributes, `lossy_compression` and the like. Default: as
        `h5z_gpu.provenance.enabled`, True.

    Raises
    ------
    TypeError, ValueError
        An argument is wrong: the shapes differ, values are masked, or the file is read-only; nothing was written.
    OSError
        HDF5 could not write; `errno` says why (ENOSPC: the disk is full) and `filename` where. What was written before
        stays readable, unless HDF5's tables cannot be written either.
    MemoryError
        There is too little memory: write a smaller selection, or with fewer threads.
    """
    start, shape, dropped = _box(dataset, selection)
    array = as_held(dataset, as_array(array))
    check_threads(threads)
    check_devices(devices, array)
    if array.shape != dropped:
        raise ValueError(f"h5z-gpu: the array has shape {array.shape}, the selection of the dataset {dropped}")
    if dataset.file.mode == "r":
        raise ValueError(f"h5z-gpu: {dataset.file.filename} is open for reading only: open it with mode r+ or a")
    if wanted(provenance):
        on_dataset(dataset)
    try:
        if start is None:
            raise OtherWay("the selection is not a box of step 1")
        _write(dataset, expanded(array, shape), start, threads, progress, devices)
    except OtherWay as why:
        log.info("%s: written through HDF5's pipeline: %s", dataset.name, why)
        values = on_host(array)
        if is_bfloat16(values.dtype):
            through_hdf5(dataset, np.ascontiguousarray(values), selection, write=True)
        else:
            dataset[() if selection is None else selection] = values


def read(dataset: h5py.Dataset, out: Any = None, selection: Any = None, *, threads: int = 0,
         on_error: str = "raise", progress: bool | None = None, devices: str | None = None) -> Any:
    """Reads a dataset, or a part of it: `dataset[selection]`, but faster.

    Of a chunk that the selection cuts, only the tiles that it touches are decoded.

    Parameters
    ----------
    dataset : h5py.Dataset
        Written by any program.
    out : numpy.ndarray, or an array in a GPU's memory, optional
        Where to read to: of the selection's shape, of any strides; of `ml_dtypes.bfloat16` for a dataset of that type,
        whose bits are wanted rather than float32. That GPU decodes into CuPy's arrays, PyTorch's
        tensors and whatever else can be written there. A new NumPy array without.
    selection : slice, int or tuple of these, optional
        As between the brackets of h5py.
    threads : int
        CPU threads; 0 for as many as the process may use.
    on_error : {"raise", "fill"}
        "fill" puts the dataset's fill value where a chunk is damaged, and warns of each. What else keeps a chunk from
        being read, a failing disk or too little memory, is raised all the same: the chunk may be sound.
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
        A chunk is damaged; the sentence names its place. `out` may hold anything then. Where the system could not read
        the file, `errno` and `filename` say what and where.
    MemoryError
        There is too little memory: read a smaller selection, or with fewer threads.
    """
    if on_error not in ("raise", "fill"):
        raise ValueError(f'h5z-gpu: on_error = {on_error!r}; "raise" and "fill" are known')
    start, shape, dropped = _box(dataset, selection)
    target = np.empty(dropped, dataset.dtype) if out is None else as_held(dataset, _writable(out))
    if target.shape != dropped:
        raise ValueError(f"h5z-gpu: out has shape {target.shape}, the selection of the dataset {dropped}")
    check_threads(threads)
    check_devices(devices, target)
    file = file_object(dataset)
    with watched(file):
        try:
            if start is None:
                raise OtherWay("the selection is not a box of step 1")
            _read(dataset, file, expanded(target, shape), start, threads, on_error, progress, devices)
        except OtherWay as why:
            log.info("%s: read through HDF5's pipeline: %s", dataset.name, why)
            if is_bfloat16(target.dtype):
                found = np.empty(dropped, target.dtype)
                through_hdf5(dataset, found, selection, write=False)
            else:
                found = np.asarray(dataset[() if selection is None else selection])
            copy(found, target)
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
        raise TypeError(f"h5z-gpu: out is a {type(out).__name__}; a numpy.ndarray or an array in a GPU's memory is "
                        f"needed")
    if readonly:
        raise ValueError("h5z-gpu: out is read-only")
    return target


# --- arrays and selections ---------------------------------------------------------------------------------------


def _box(dataset: h5py.Dataset, selection: Any) -> tuple[tuple[int, ...] | None, tuple[int, ...], tuple[int, ...]]:
    """A selection as the first element, the extents of the box, and its extents without axes that an int selects.

    The first is None where the selection is no box of step 1, and both extents are what h5py reads.
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
        return _by_hdf5(dataset, selection)
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
                return _by_hdf5(dataset, selection)
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


def _by_hdf5(dataset: h5py.Dataset, selection: Any) -> tuple[None, tuple[int, ...], tuple[int, ...]]:
    """`_box` of a selection of another kind."""
    import h5py

    shape = tuple(h5py._hl.selections.select(dataset.shape, selection, dataset).array_shape)
    return None, shape, shape


# --- many chunks at a time ---------------------------------------------------------------------------------------


def _write(dataset: h5py.Dataset, array: np.ndarray | DeviceArray, start: tuple[int, ...], threads: int,
           progress: bool | None, devices: str | None) -> None:
    from h5py._objects import phil

    if array.dtype != dataset.dtype and not is_bfloat16(array.dtype):
        raise OtherWay(f"an array of type {array.dtype} becomes {dataset.dtype}")
    with phil, Transfer(dataset) as transfer:
        total = transfer.write(array, start, threads, devices)
        if cut := transfer.special():
            log.info("%s: %d chunks that the selection cuts are written through HDF5's pipeline", dataset.name,
                     len(cut))
        with bar(progress, total, "write", dataset.name) as done:
            while written := transfer.step():
                done(written)


def _read(dataset: h5py.Dataset, file: Any, out: np.ndarray | DeviceArray, start: tuple[int, ...], threads: int,
          on_error: str, progress: bool | None, devices: str | None) -> None:
    from h5py._objects import phil

    if out.dtype != dataset.dtype and not is_bfloat16(out.dtype):
        raise OtherWay(f"type {dataset.dtype} becomes an array of {out.dtype}")
    special: list[tuple[int, ...]]
    if file is not None:
        with phil:
            remote = Remote(dataset, file, out, start, on_error == "fill", threads, devices)
        with bar(progress, remote.bytes, "read", dataset.name) as done, contextlib.closing(remote.steps()) as steps:
            for decoded in steps:
                done(decoded)
        special = remote.special
    else:
        with phil, Transfer(dataset) as transfer:
            total = transfer.read(out, start, on_error == "fill", threads, devices)
            with bar(progress, total, "read", dataset.name) as done:
                while decoded := transfer.step():
                    done(decoded)
            special = transfer.special()
    for origin in special:
        first = [max(0, o - s) for o, s in zip(origin, start)]
        value = on_host(out[tuple(slice(k, k + 1) for k in first)]).flat[0]
        warnings.warn(f"{dataset.name}: the chunk at {origin} is damaged; it is filled with {value}", stacklevel=3)
