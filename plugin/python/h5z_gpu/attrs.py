# SPDX-License-Identifier: MIT OR Apache-2.0
"""The attributes of an object of h5py, by calls that cost little: files of many small datasets feel each of them."""
from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any, Optional, Union

import numpy as np
from h5py import File, h5a, h5s, h5t


def names_of(item: Any) -> set[str]:
    """Names of an object's attributes."""
    names: list[bytes] = []
    place = item["/"].id if isinstance(item, File) else item.id  # HDF5 1.10 counts those of a file's root by that alone
    if h5a.get_num_attrs(place):
        h5a.iterate(place, names.append)
    return {name.decode("utf-8", "surrogateescape") for name in names}


class Attributes(Mapping[str, Any]):
    """The attributes of an object, whose names are read once, and each value at most once. h5py's `attrs` asks HDF5
    for each name that is looked for, also for the many that are not there."""

    def __init__(self, item: Any) -> None:
        self._item, self._names = item, names_of(item)
        self._read: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._names:
            raise KeyError(name)
        if name not in self._read:
            self._read[name] = self._item.attrs[name]
        return self._read[name]

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def add(item: Any, name: str, value: Union[np.ndarray, np.generic]) -> None:
    """Makes an attribute of one number or one text of fixed length, as `attrs.create` would, where there is none of
    this name."""
    dtype = value.dtype
    kind = _kind_of(dtype, None if dtype.metadata is None else dtype.metadata.get("h5py_encoding"))
    h5a.create(item.id, name.encode(), kind, _scalar()).write(np.asarray(value), mtype=kind)


@functools.lru_cache(maxsize=64)
def _kind_of(dtype: np.dtype, charset: Optional[str]) -> h5t.TypeID:
    """HDF5's type. Types of NumPy that differ in their character set alone are equal."""
    return h5t.py_create(dtype, logical=True)


@functools.cache
def _scalar() -> h5s.SpaceID:
    return h5s.create(h5s.SCALAR)
