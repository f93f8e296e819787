# SPDX-License-Identifier: MIT OR Apache-2.0
"""Many processes that write one dataset, without MPI: a file for each, and a virtual dataset that lines them up."""
from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from . import provenance
from .whole import closing, whole


def join(files: Iterable[Path | str], dataset: str, out: Path | str, axis: int = 0) -> None:
    """Lines up `dataset` of each of `files`, in their order along `axis`, as a virtual dataset of that name in `out`.

    No data is copied: keep the files. `out` names them relative to its own folder, so that all can be moved together;
    it may exist and hold other datasets: it is copied then, and the copy replaces it when it is complete. Attributes
    that say what was lost are those of the files, where all say the same. HDF5 reads the fill value where a file is
    missing later. Raises
    FileNotFoundError for one that is missing now, KeyError where a file lacks the dataset, and ValueError where types
    or extents differ.
    """
    import h5py

    paths, out = [Path(f) for f in files], Path(out)
    if not paths:
        raise ValueError(f"h5z-gpu: no files to join into {out}")
    sources: list[Any] = []
    lost: list[dict[str, Any]] = []
    first: tuple[Any, ...] = ()
    for path in paths:
        if path.resolve() == out.resolve():
            raise ValueError(f"h5z-gpu: {out} is to be joined into itself: give it another name")
        if not path.exists():
            raise FileNotFoundError(f"h5z-gpu: {path} is missing: was it written to a folder that this process sees?")
        with h5py.File(path) as f:
            if not isinstance(f.get(dataset), h5py.Dataset):
                raise KeyError(f"h5z-gpu: {path} has no dataset {dataset}")
            found = f[dataset]
            shape, dtype, fill = found.shape, found.dtype, found.fillvalue
            lost.append({name: found.attrs[name] for name in provenance.NAMES if name in found.attrs})
        if not first:
            first = path, shape, dtype, fill
            if not -len(shape) <= axis < len(shape):
                raise ValueError(f"h5z-gpu: axis {axis} of {dataset}, whose shape in {path} is {shape}")
            axis %= len(shape)
        if dtype != first[2]:
            raise ValueError(f"h5z-gpu: {dataset} is {dtype.str} in {path} and {first[2].str} in {first[0]}")
        if len(shape) != len(first[1]) or any(a != b for i, (a, b) in enumerate(zip(shape, first[1])) if i != axis):
            raise ValueError(f"h5z-gpu: {dataset} has the shape {shape} in {path} and {first[1]} in {first[0]}: only"
                             f" axis {axis} may differ")
        sources.append(h5py.VirtualSource(os.path.relpath(path.resolve(), out.resolve().parent), dataset, shape, dtype))
    length = sum(s.shape[axis] for s in sources)
    layout = h5py.VirtualLayout((*first[1][:axis], length, *first[1][axis + 1 :]), first[2])
    at = 0
    for source in sources:
        if source.shape[axis]:
            layout[(slice(None),) * axis + (slice(at, at := at + source.shape[axis]),)] = source
    with whole(out, "a") as part, closing(h5py.File(part, "r+" if os.path.getsize(part) else "w")) as f:
        if dataset in f:
            raise ValueError(f"h5z-gpu: {out} has {dataset} already")
        joined = f.create_virtual_dataset(dataset, layout, fillvalue=first[3])
        if all(said == lost[0] for said in lost):
            joined.attrs.update(lost[0])
