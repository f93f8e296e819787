# SPDX-License-Identifier: MIT OR Apache-2.0
"""Names of objects: any bytes in HDF5, texts in the commands. Bytes that are no UTF-8 are surrogates there."""

from __future__ import annotations

from typing import Union


def as_text(name: Union[str, bytes]) -> str:
    """A name; h5py gives one that is no text as bytes."""
    return name.decode(errors="surrogateescape") if isinstance(name, bytes) else name


def as_bytes(name: Union[str, bytes]) -> bytes:
    """A name as HDF5 has it, of a text by `as_text`."""
    return name if isinstance(name, bytes) else name.encode(errors="surrogateescape")
