# SPDX-License-Identifier: MIT OR Apache-2.0
"""A line in front of the attribute `history`, which keeps its type: netCDF's NC_CHAR stays NC_CHAR, NC_STRING stays
NC_STRING, a list of texts becomes longer by one, and the character set is the one that was there.
"""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
from h5py import h5a, h5s, h5t

from ..provenance import set_text

NAME = "history"
_NEW = b"history of h5z-gpu repack"  # until the old one is gone


def add_line(item: Any, line: str) -> None:
    """Puts a line in front of the history of a file or group; the first where there is none.

    What is no text stays as it is. So does a history that HDF5 could not hold with one more line: 64 kB are the most in
    files of the oldest formats.
    """
    name = NAME.encode()
    if not h5a.exists(item.id, name):
        set_text(item, NAME, line.encode("utf-8", "backslashreplace").decode())
        return
    old = h5a.open(item.id, name)
    kind = old.get_type().copy()
    if not isinstance(kind, h5t.TypeStringID):
        return
    charset = "ascii" if kind.get_cset() == h5t.CSET_ASCII else "utf-8"
    texts, terminated = _texts(old, kind)
    del old  # while it is open, HDF5 finds it under the name of the new one
    new = _in_front(line.encode(charset, "backslashreplace"), texts)
    if not kind.is_variable_str():
        kind.set_size(max(map(len, new.reshape(-1))) + terminated)
    try:
        made = h5a.create(item.id, _NEW, kind, h5s.create_simple(new.shape) if new.shape else h5s.create(h5s.SCALAR))
        if kind.is_variable_str():
            made.write(new, mtype=h5t.py_create(made.dtype))
        else:
            made.write(new.astype(f"S{kind.get_size()}"), mtype=kind)
        h5a.delete(item.id, name)
        h5a.rename(item.id, _NEW, name)
    except (OSError, RuntimeError):
        with contextlib.suppress(OSError, RuntimeError, KeyError):
            h5a.delete(item.id, _NEW)


def _texts(attribute: h5a.AttrID, kind: h5t.TypeStringID) -> tuple[np.ndarray, bool]:
    """The texts as bytes, in their shape, and whether each has a NUL behind it."""
    if attribute.get_space().get_simple_extent_type() == h5s.NULL:
        return np.array(b"", object), False
    if kind.is_variable_str():
        found = np.empty(attribute.shape, object)
        attribute.read(found, mtype=h5t.py_create(attribute.dtype))
        return found, False
    size, blank = kind.get_size(), b" " if kind.get_strpad() == h5t.STR_SPACEPAD else b""
    raw = np.zeros((*attribute.shape, size), np.uint8)
    attribute.read(raw, mtype=kind)
    texts = np.empty(attribute.shape, object)
    for at in np.ndindex(attribute.shape):
        texts[at] = raw[at].tobytes().split(b"\0")[0].rstrip(blank or b"\0")
    terminated = kind.get_strpad() == h5t.STR_NULLTERM and raw.size > 0 and not raw[..., -1].any()
    return texts, bool(terminated)


def _in_front(line: bytes, texts: np.ndarray) -> np.ndarray:
    """A list of several texts with the line as another one; else the line in front of the first text."""
    if texts.ndim == 1 and texts.size != 1:
        new = np.empty(texts.size + 1, object)
        new[0], new[1:] = line, texts
        return new
    new = texts.copy()
    if new.size:
        first = (0,) * new.ndim
        before = new[first] or b""  # None where it was never written
        before = before.encode("utf-8", "surrogateescape") if isinstance(before, str) else before
        new[first] = line + b"\n" + before if before else line
    return new
