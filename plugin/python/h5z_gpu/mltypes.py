# SPDX-License-Identifier: MIT OR Apache-2.0
"""Types of numbers that NumPy has only with the package `ml_dtypes`: bfloat16, float8 and the like.

bfloat16 is a type of HDF5, described by the fields of its bits: HDF5 converts it, h5py shows it as float32, and the
filter takes a bound for it. A number of one byte is stored as the unsigned integer of the same bits, and an attribute
names its type. HDF5 could describe some of these types by their fields too, but takes the highest exponent for
infinity: of float8_e4m3fn it would read 256 to 448 as infinity and NaN.

`ml_dtypes` is never imported unless an array or a file holds such a type. Without it, bfloat16 comes back as float32.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import h5py

ATTRIBUTE = "h5z_gpu_dtype"
"""The attribute of a dataset of unsigned integers that names the type whose bits they are."""


def bfloat16() -> h5py.Datatype:
    """The type of HDF5 for bfloat16 in this machine's byte order, to be given to h5py's `create_dataset` as the dtype.

    h5py writes and reads such a dataset as float32, which HDF5 converts. `write` takes arrays of
    `ml_dtypes.bfloat16`, and `read` does as `out`, bit for bit.
    """
    import h5py

    kind = h5py.h5t.NATIVE_FLOAT.copy()
    kind.set_fields(15, 7, 8, 0, 7)
    kind.set_size(2)
    kind.set_ebias(127)
    return h5py.Datatype(kind)


def is_added(dtype: np.dtype) -> bool:
    """Whether this is a type of `ml_dtypes`."""
    return dtype.isbuiltin == 2 and dtype.type.__module__.partition(".")[0] == "ml_dtypes"


def is_bfloat16(dtype: np.dtype) -> bool:
    return is_added(dtype) and dtype.name == "bfloat16"


def is_bounded(dtype: np.dtype) -> bool:
    """Whether the filter takes a bound for numbers of this type."""
    return (dtype.kind == "f" and dtype.itemsize in (2, 4, 8)) or is_bfloat16(dtype)


def named(name: Any) -> np.dtype | None:
    """The type of `ml_dtypes` of this name; None where there is none, or the package is not installed."""
    try:
        import ml_dtypes
    except ImportError:
        return None
    kind = getattr(ml_dtypes, name, None) if isinstance(name, str) else None
    return np.dtype(kind) if isinstance(kind, type) and issubclass(kind, np.generic) else None


def stored(dtype: np.dtype) -> np.dtype:
    """The type that holds the bits of numbers of this type in a file."""
    return np.dtype("u1") if is_added(dtype) and dtype.itemsize == 1 else dtype


def hdf5_type(dtype: np.dtype) -> h5py.h5t.TypeID:
    """The type of HDF5 of an array in memory."""
    import h5py

    return bfloat16().id if is_bfloat16(dtype) else h5py.h5t.py_create(dtype)


def held(dataset: h5py.Dataset) -> np.dtype:
    """The type of a dataset's numbers: of `ml_dtypes` where it is one of them, else the dataset's."""
    import h5py

    kind = dataset.id.get_type()
    found = None
    if kind.get_class() == h5py.h5t.FLOAT and kind.get_size() == 2 and kind == bfloat16().id:
        found = named("bfloat16")
    elif kind == h5py.h5t.STD_U8LE and ATTRIBUTE in dataset.attrs:
        found = named(dataset.attrs[ATTRIBUTE])
    return found if found is not None and found.itemsize == kind.get_size() else dataset.dtype


def as_held(dataset: h5py.Dataset, array: Any) -> Any:
    """An array of numbers of the dataset's type as what the file stores; others as they are.

    Raises TypeError for an array of `ml_dtypes` of which the dataset does not hold the type."""
    if not is_added(array.dtype):
        return array
    if array.dtype != held(dataset):
        raise TypeError(f"h5z-gpu: an array of {array.dtype.name} for {dataset.name}, which holds "
                        f"{held(dataset).name}: give array.astype('f4')")
    return array.view(stored(array.dtype))


def through_hdf5(dataset: h5py.Dataset, array: np.ndarray, selection: Any, *, write: bool) -> None:
    """Lets HDF5 write an array of bfloat16, or read into one, bit for bit: h5py itself would convert it."""
    import h5py

    if dataset.shape == ():
        memory = chosen = h5py.h5s.ALL
    else:
        box = Ellipsis if selection is None or (isinstance(selection, tuple) and selection == ()) else selection
        memory = h5py.h5s.create_simple((array.size,))
        chosen = h5py._hl.selections.select(dataset.shape, box, dataset).id
    move = dataset.id.write if write else dataset.id.read
    move(memory, chosen, array, hdf5_type(array.dtype))
