# SPDX-License-Identifier: MIT OR Apache-2.0
"""Files of whole arrays: `save` writes one, `load` reads one."""

from __future__ import annotations

import math
import operator
import os
import secrets
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .bounds_file import Bounds
from .chunks import chunk_shape
from .datasets import check_devices, check_threads, read, write
from .filters import Lossless, Lossy
from .mltypes import ATTRIBUTE, bfloat16, held, is_added, is_bfloat16, is_bounded, stored, through_hdf5
from .views import as_array, on_host, value_range
from .whole import closing, judge, whole

if TYPE_CHECKING:
    import h5py

_MOST_IN_CHUNK = (4 << 30) - 1  # bytes, of HDF5


def save(
    path: str | os.PathLike[str],
    arrays: Mapping[str, Any],
    how: Lossy | Lossless | Bounds | None = None,
    *,
    mode: str = "w",
    chunks: int | tuple[int, ...] | None = None,
    threads: int = 0,
    progress: bool | None = None,
    devices: str | None = None,
    provenance: bool | None = None,
    **bound: Any,
) -> None:
    """Writes arrays as datasets of a file: `save("out.h5", {"v": array}, absolute=1e-3)`.

    Floating-point arrays of 2, 4 and 8 bytes keep the bound, everything else keeps every bit.

    The file is there whole or not at all: it is written beside its place, under a hidden name, and takes its name
    when it is complete and on the disk. A mistake in the call, an error, Ctrl-C and SIGTERM leave what was there
    before as it was. SIGKILL and a power failure do too, but leave `.NAME.PID.….part` in the folder, to be removed by
    hand.

    Parameters
    ----------
    path : str or os.PathLike
        The file. Where it is a link, the file that it leads to is replaced. The new file has the old one's
        permissions. Programs that have the old file open go on seeing it, and so do other hard links to it.
    arrays : mapping
        Names of the datasets, which may have groups in front ("run1/v"), and arrays of any shape: of numbers, truth
        values, complex numbers, texts of a fixed number of bytes (`S`) or structures of these, or of the types of
        `ml_dtypes`: bfloat16, which keeps the bound, and those of one byte, which keep every bit.
    how : Lossy, Lossless or Bounds, optional
        Or the keywords of `Lossy`, such as `absolute=1e-3`; every bit is kept without. `Bounds` gives each array what
        its table has for the name, and for the attributes of an array that has `attrs`. A bound of the range of the
        dataset (`relative=1e-4, of="dataset"`) is stored as the absolute bound that it comes to, the range in the
        attribute `h5z_gpu_range`.
    mode : {"w", "x", "w-", "a", "r+"}
        As h5py.File's: "w" replaces a file, "x" and "w-" refuse one that is there, "a" and "r+" add to one. What is
        added to is copied first, so that the old file is whole until the new one is: that takes the time and the
        space of a copy, unless the file system shares blocks (Btrfs, XFS, APFS). `write` changes a dataset in place.
    chunks : int or tuple of int, optional
        Shape of a chunk; one of 1 to 8 MiB is chosen without.
    threads, progress, devices, provenance
        As in `write`.

    Raises
    ------
    TypeError, ValueError
        An argument is wrong, such as a bound that contradicts itself, or an array of a type that HDF5 has not.
        Nothing was written.
    OSError
        The file cannot be written, because of its folder or a full disk for example. Nothing is left of the new file.
        `errno` and `filename` say why and which.
    """
    import h5py

    if how is not None and bound:
        raise TypeError("h5z-gpu: give either how or the keywords of Lossy")
    how = Lossy(**bound) if bound else _filter(how)
    check_threads(threads)
    path = _path(path)
    judge(path, mode)
    plans = [_plan(name, given, _of_table(how, name, given), chunks, devices) for name, given in _named(arrays).items()]
    _rehearse(plans)
    if mode in ("a", "r+") and os.path.exists(path) and os.path.getsize(path):
        _check_free(path, plans)
    with whole(path, mode) as part, closing(h5py.File(part, "r+" if os.path.getsize(part) else "w")) as f:
        for plan in plans:
            _write(f, plan, threads, progress, devices, provenance)


def load(path: str | os.PathLike[str], names: Iterable[str] | None = None, *, threads: int = 0,
         progress: bool | None = None, devices: str | None = None) -> dict[str, np.ndarray]:
    """The datasets of a file as arrays, by name; all of them, or those of `names`. The inverse of `save`.

    bfloat16 comes as `ml_dtypes.bfloat16`, and as float32 where that package is not installed; what `save` wrote of its
    types of one byte comes as these, and as uint8 without it.

    `threads`, `progress` and `devices` are as in `read`.

    Raises
    ------
    KeyError
        The file has no dataset of that name.
    """
    import h5py

    found = {}
    with h5py.File(path, "r") as f:
        if names is None:
            names = []
            f.visititems(lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None)
        for name in names:
            if not isinstance(f.get(name), h5py.Dataset):
                raise KeyError(f"h5z-gpu: {path} has no dataset {name}")
            dataset = f[name]
            kind = held(dataset)
            if dataset.shape or is_added(kind):
                out = np.empty(dataset.shape, kind) if is_added(kind) else None
                found[name] = read(dataset, out, threads=threads, progress=progress, devices=devices)
            else:
                found[name] = dataset[()]
    return found


# --- what is to be written, judged before any file is touched ---------------------------------------------------------


class _Plan(NamedTuple):
    """One dataset of the new file."""

    name: str
    given: Any
    shape: tuple[int, ...]
    dtype: np.dtype
    how: Lossy | Lossless
    chunks: tuple[int, ...] | None  # None: in one piece, without the filter
    ranged: bool  # the bound follows the range of the values
    keywords: dict[str, Any]  # for create_dataset; of a ranged bound without it
    marked: str | None  # the type of ml_dtypes whose bits these are


def _path(path: Any) -> str:
    try:
        return os.fsdecode(path)
    except TypeError:
        raise TypeError(f"h5z-gpu: path is a {type(path).__name__}; give a name such as 'out.h5'. "
                        "h5z_gpu.write writes into a dataset of an open file") from None


def _filter(how: Any) -> Lossy | Lossless | Bounds:
    if how is None:
        return Lossless()
    if isinstance(how, (Lossy, Lossless, Bounds)):
        return how
    number = hasattr(how, "__float__") and not isinstance(how, (bool, np.ndarray))
    meant = f"did you mean absolute={how!r}?" if number else "give h5z_gpu.Lossy(absolute=1e-3) or h5z_gpu.Lossless()"
    raise TypeError(f"h5z-gpu: how = {how!r}; {meant}")


def _of_table(how: Lossy | Lossless | Bounds, name: str, given: Any) -> Lossy | Lossless:
    return how.how(name, getattr(given, "attrs", None)) or Lossless() if isinstance(how, Bounds) else how


def _named(arrays: Any) -> dict[str, Any]:
    """The arrays by the names that HDF5 will know them by."""
    if not isinstance(arrays, Mapping):
        raise TypeError(f'h5z-gpu: arrays is a {type(arrays).__name__}; give names and arrays, such as {{"v": array}}')
    found: dict[str, Any] = {}
    for name, array in arrays.items():
        if not isinstance(name, str):
            raise TypeError(f"h5z-gpu: the name {name!r} is a {type(name).__name__}; names are texts")
        parts = [part for part in name.split("/") if part]
        text = name.isprintable() or (name.encode(errors="ignore").decode() == name and "\0" not in name)
        if not parts or "." in parts or not text or name.endswith("/"):
            raise ValueError(f"h5z-gpu: {name!r} is no name of a dataset; give one such as 'v' or 'run1/v'")
        plain = "/".join(parts)
        if plain in found:
            raise ValueError(f"h5z-gpu: two arrays are named {plain}; give each a name of its own")
        found[plain] = array
    for name in found:
        for k in range(1, name.count("/") + 1):
            if (group := "/".join(name.split("/")[:k])) in found:
                raise ValueError(f"h5z-gpu: {group} cannot be a dataset and the group of {name}; name one of them anew")
    return found


def _plan(name: str, given: Any, how: Lossy | Lossless, chunks: Any, devices: str | None) -> _Plan:
    """What becomes of one array, or the sentence that says why it cannot be stored."""
    if not _made_when_asked_for(given):
        try:
            given = as_array(given)
        except ValueError as why:  # rows of different lengths, masked values
            raise ValueError(f"h5z-gpu: {name}: {str(why).removeprefix('h5z-gpu: ')}") from None
        check_devices(devices, given)
    shape, dtype = tuple(given.shape), given.dtype
    _check_type(name, dtype)
    marked, dtype = (dtype.name if stored(dtype) != dtype else None), stored(dtype)
    if 0 in shape or not shape:
        return _Plan(name, given, shape, dtype, how, None, False, {}, marked)
    own = chunk_shape(shape, dtype.itemsize) if chunks is None else _chunks(name, chunks, shape, dtype)
    keywords = dict(how.for_range(None))
    keywords.pop("fillvalue", None)  # of floating-point data
    if isinstance(how, Lossy) and how.fill_value is not None and (dtype.kind == "f" or is_bfloat16(dtype)):
        with np.errstate(over="ignore"):
            if np.isfinite(how.fill_value) and not np.isfinite(np.float64(how.fill_value).astype(dtype)):
                raise ValueError(
                    f"h5z-gpu: fill_value={how.fill_value!r} is more than {name} can hold, which is {dtype.name}"
                )
        keywords["fillvalue"] = how.fill_value
    ranged = how.of == "dataset" and is_bounded(dtype)
    return _Plan(name, given, shape, dtype, how, own, ranged, keywords, marked)


def _made_when_asked_for(array: Any) -> bool:
    """Whether values are computed or read first (dask, xarray, h5py): one array at a time, when it is written."""
    if isinstance(array, np.ndarray) or hasattr(array, "__dlpack__") or hasattr(array, "__cuda_array_interface__"):
        return False
    shape = getattr(array, "shape", None)
    is_typed = isinstance(getattr(array, "dtype", None), np.dtype)
    return is_typed and isinstance(shape, tuple) and all(isinstance(n, int) for n in shape)


def _check_type(name: str, dtype: np.dtype) -> None:
    import h5py

    if dtype.kind in "mM":
        raise ValueError(
            f"h5z-gpu: {name} holds {dtype.name}, which HDF5 has not: give array.astype('i8') and its unit"
        )
    if dtype.kind == "U":
        raise ValueError(
            f"h5z-gpu: {name} holds texts ({dtype}): give np.char.encode(array), which has a type such as S10"
        )
    if dtype.hasobject:
        raise ValueError(f"h5z-gpu: {name} holds Python objects: give it a type such as float32 or S10")
    if is_added(dtype) and (is_bfloat16(dtype) or dtype.itemsize == 1):
        return
    if dtype.isbuiltin == 2:
        raise ValueError(f"h5z-gpu: {name} holds {dtype.name}, which HDF5 has not: give array.astype('f4')")
    try:
        h5py.h5t.py_create(dtype, logical=True)
    except (TypeError, ValueError) as why:
        raise ValueError(f"h5z-gpu: {name} holds {dtype}, which HDF5 has not ({why}): convert it") from None


def _chunks(name: str, chunks: Any, shape: tuple[int, ...], dtype: np.dtype) -> tuple[int, ...]:
    try:
        given = (operator.index(chunks),) if hasattr(chunks, "__index__") else tuple(map(operator.index, chunks))
    except TypeError:
        raise TypeError(
            f"h5z-gpu: chunks = {chunks!r}; give one extent for each axis, such as {chunk_shape(shape, dtype.itemsize)}"
        ) from None
    if len(given) != len(shape) or isinstance(chunks, bool):
        raise ValueError(
            f"h5z-gpu: chunks = {chunks!r} for {name}, which has the shape {shape}: give one extent for each axis"
        )
    if any(not 1 <= c <= n for c, n in zip(given, shape)):
        raise ValueError(
            f"h5z-gpu: chunks = {chunks!r} for {name}, which has the shape {shape}: extents are from 1 to the axis' own"
        )
    if (size := math.prod(given) * dtype.itemsize) > _MOST_IN_CHUNK:
        raise ValueError(
            f"h5z-gpu: chunks = {chunks!r} for {name} are of {size} bytes; HDF5 takes at most {_MOST_IN_CHUNK}"
        )
    return given


def _rehearse(plans: list[_Plan]) -> None:
    """Makes all datasets in a file in memory, without values: HDF5 and the filter say there what they refuse."""
    import h5py

    with h5py.File(secrets.token_hex(8), "w", driver="core", backing_store=False) as f:
        for plan in plans:
            try:
                _create(f, plan, plan.keywords)
            except (OSError, RuntimeError, TypeError, ValueError) as why:
                raise ValueError(
                    f"h5z-gpu: {plan.name} cannot be stored: {str(why).removeprefix('h5z-gpu: ')}"
                ) from why


def _check_free(path: str, plans: list[_Plan]) -> None:
    """Sees that a file that is added to has none of these names."""
    import h5py

    with h5py.File(path, "r") as f:
        for plan in plans:
            parts = plan.name.split("/")
            for k in range(1, len(parts) + 1):
                there = "/".join(parts[:k])
                last = k == len(parts)
                if f.get(there, getlink=True) is not None and (last or not isinstance(f.get(there), h5py.Group)):
                    what = "already" if last else f"and it is no group, which {plan.name} needs"
                    raise ValueError(
                        f"h5z-gpu: {path} has {there} {what}: give another name, or write into it with h5z_gpu.write"
                    )


# --- writing ----------------------------------------------------------------------------------------------------------


def _create(f: h5py.File, plan: _Plan, keywords: dict[str, Any]) -> h5py.Dataset:
    dtype = bfloat16() if is_bfloat16(plan.dtype) else plan.dtype
    dataset = f.create_dataset(plan.name, plan.shape, dtype, chunks=plan.chunks, **keywords)
    if plan.marked is not None:
        dataset.attrs[ATTRIBUTE] = plan.marked
    return dataset


def _write(f: h5py.File, plan: _Plan, threads: int, progress: bool | None, devices: str | None,
           provenance: bool | None) -> None:
    array = as_array(plan.given)
    if array.dtype.name == plan.marked:
        array = array.view(plan.dtype)
    if array.shape != plan.shape or array.dtype != plan.dtype:
        said, found = f"{plan.dtype} of shape {plan.shape}", f"{array.dtype} of shape {array.shape}"
        raise ValueError(f"h5z-gpu: {plan.name} said that it is {said}, and is {found}")
    keywords, range_ = plan.keywords, None
    if plan.ranged and isinstance(plan.how, Lossy):
        range_ = value_range(array, fill_value=plan.how.fill_value, threads=threads)
        keywords = keywords | dict(plan.how.for_range(range_))
    dataset = _create(f, plan, keywords)
    if range_ is not None:
        dataset.attrs["h5z_gpu_range"] = range_
    if plan.chunks is not None:
        write(dataset, array, threads=threads, progress=progress, devices=devices, provenance=provenance)
    elif 0 not in plan.shape and is_bfloat16(plan.dtype):
        through_hdf5(dataset, on_host(array), None, write=True)
    elif 0 not in plan.shape:
        dataset[()] = on_host(array)[()]
    dataset.flush()  # an error is raised here; when HDF5 closes a dataset by itself, h5py only prints it
