# SPDX-License-Identifier: MIT OR Apache-2.0
"""Arrays to compare, from a dataset of an HDF5 file or from a .npy file, read box by box; and which belongs to
which."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Iterable, Iterator
from typing import Any, Optional

import numpy as np

from ..conventions import NORTH, NORTHWARD, text_of
from .boxes import Box
from .builds import open_data
from .common import Problem
from .elements import Layout, box_reader, elements
from .names import as_bytes, as_text
from .objects import datasets, one_dataset

_NPY = b"\x93NUMPY"


class Source:
    """An array that is read box by box."""

    def __init__(self, name: str, shape: Optional[tuple[int, ...]], dtype: np.dtype, dataset: Any = None,
                 array: Any = None) -> None:
        self.name, self.shape, self.dtype = name, shape, dtype
        self.dataset, self.array = dataset, array

    @property
    def chunks(self) -> Optional[tuple[int, ...]]:
        """Extents of its chunks; None where it has none."""
        return None if self.dataset is None else self.dataset.chunks

    def read(self, box: Box) -> np.ndarray:
        """The values of a box. Problem where they cannot be read.

        They come through HDF5's pipeline, as every program reads them: `h5z_gpu.read` goes beside it, and has no part
        in a verdict.
        """
        if self.dataset is None:
            return np.array(self.array[box])
        try:
            values: np.ndarray = self.dataset[box]
            return values
        except (OSError, RuntimeError, ValueError, TypeError) as why:
            raise self._unread(box, why) from None

    def elements(self, stack: contextlib.ExitStack, box: Box, kind: Any, layout: Layout) -> np.ndarray:
        """The elements of a box of a dataset, in the type of its file, as long as the stack is open."""
        count = math.prod(s.stop - s.start for s in box)
        try:
            return stack.enter_context(elements(box_reader(self.dataset.id, box), kind, layout, count))
        except OSError as why:
            raise self._unread(box, why) from None

    def _unread(self, box: Box, why: Exception) -> Problem:
        from .roles import why_unread

        return Problem(why_unread(self.dataset, self._named(box) or why))

    def _named(self, box: Box) -> Optional[Exception]:
        """The sentence of `h5z_gpu.read` on a box that cannot be read: it names the chunk, which HDF5 does not."""
        from ..datasets import read

        try:
            read(self.dataset, selection=box)
        except (OSError, RuntimeError, ValueError, TypeError) as why:
            return why
        return None

    def attribute(self, name: str) -> Optional[str]:
        """A text attribute, or None."""
        return None if self.dataset is None else text_of(self.dataset, name)

    def northward(self, axis: int) -> bool:
        """Whether an axis runs from south to north, as its coordinate variable says by CF's attributes and its
        values."""
        if self.dataset is None or not -len(self.shape or ()) <= axis < len(self.shape or ()):
            return False
        try:
            scales = list(self.dataset.dims[axis % len(self.shape or ())].values())
            if not scales or scales[0].ndim != 1 or scales[0].size < 2 or scales[0].dtype.kind not in "fiu":
                return False
            says = {name: text_of(scales[0], name) for name in ("units", "standard_name", "axis")}
            south_north = says["units"] in NORTH or says["standard_name"] in NORTHWARD or says["axis"] == "Y"
            return south_north and bool(scales[0][0] < scales[0][-1])
        except (RuntimeError, KeyError, OSError):
            return False

    def axes(self) -> list[str]:
        """Names of the axes, from their dimension scales where there are any."""
        names = [f"axis {k}" for k in range(len(self.shape or ()))]
        if self.dataset is None:
            return names
        for k in range(len(names)):
            try:
                scales = list(self.dataset.dims[k].values())
                scale = as_text(scales[0].name).rsplit("/", 1)[-1] if scales else ""
                names[k] = scale or self.dataset.dims[k].label or names[k]
            except (RuntimeError, KeyError, OSError):
                continue
        return names


def is_npy(path: str) -> bool:
    """Whether a file begins as a .npy file does."""
    try:
        with open(path, "rb") as f:
            return f.read(len(_NPY)) == _NPY
    except OSError:
        return False


def of_dataset(dataset: Any) -> Source:
    """A dataset as a source. Elements of a type that NumPy has not are bytes."""
    try:
        dtype = dataset.dtype
    except (TypeError, ValueError, OSError):
        dtype = np.dtype(f"V{dataset.id.get_type().get_size()}")
    return Source(as_text(dataset.name).lstrip("/"), dataset.shape, dtype, dataset=dataset)


def of_npy(path: str) -> Source:
    """A .npy file as a source."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as why:
        raise Problem(f"{path} is no .npy file that can be read: {why}") from None
    return Source(os.path.basename(path), array.shape, array.dtype, array=array)


@contextlib.contextmanager
def pairs(original: str, other: str,
          names: Iterable[str]) -> Iterator[tuple[list[tuple[Source, Source]], list[str], list[str]]]:
    """What is to be compared: pairs of sources, sentences on what has no partner, and names that only the other file
    has."""
    names = [n.strip("/") for n in names]
    with contextlib.ExitStack() as stack:
        if is_npy(original) and is_npy(other):
            yield [(of_npy(original), of_npy(other))], [], []
            return
        if is_npy(original) or is_npy(other):
            array = of_npy(original if is_npy(original) else other)
            file = stack.enter_context(open_data(other if is_npy(original) else original, names))
            found = of_dataset(_like(file, array, names))
            yield [(array, found) if is_npy(original) else (found, array)], [], []
            return
        first, second = (stack.enter_context(open_data(path, names)) for path in (original, other))
        own = [one_dataset(first, n) for n in names] or datasets(first)
        wanted = [d.name.strip("/") for d in own]
        found_pairs, missing = [], []
        import h5py

        for name in wanted:
            partner = second.get(as_bytes(name))
            if isinstance(partner, h5py.Dataset):
                found_pairs.append((of_dataset(first[as_bytes(name)]), of_dataset(partner)))
            else:
                missing.append(f"{other} has no dataset {name}, which {original} has")
        more = [] if names else sorted({d.name.strip("/") for d in datasets(second)} - set(wanted))
        yield found_pairs, missing, more


def _like(file: Any, array: Source, names: list[str]) -> Any:
    """The dataset that an array of a .npy file belongs to."""
    if names:
        if len(names) > 1:
            raise Problem("a .npy file holds one array; give one --dataset")
        return one_dataset(file, names[0])
    alike = [d for d in datasets(file) if d.shape == array.shape and d.dtype.kind == array.dtype.kind]
    if len(alike) == 1:
        return alike[0]
    shapes = ", ".join(f"{d.name.lstrip('/')} {d.shape}" for d in list(datasets(file))[:8]) or "none"
    what = "several datasets" if alike else "no dataset"
    raise Problem(
        f"{file.filename} has {what} of the shape {array.shape} of {array.name}; name one with --dataset: {shapes}"
    )
