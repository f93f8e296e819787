# SPDX-License-Identifier: MIT OR Apache-2.0
"""What was lost, in attributes of the variable that lost it.

lossy_compression         a sentence: program and version, HDF5's number of the filter, bound, codec, earlier losses
lossy_compression_mode    keyword of the bound, as in `Lossy`
lossy_compression_bound   the bound, a float64
lossy_compression_codec   name of the codec; "auto" where it was chosen chunk by chunk

CF 1.12 has a place for quantization (§8.4), with four algorithms that round mantissas and digits or bits as their only
measure. A bound on the error is none of these, so its attributes stand under names that CF leaves free, in the same
manner.

`save`, `write`, `netcdf.def_filter`, `xarray.to_netcdf` and `repack` leave them, never on a variable whose bits were
all kept. No write fails because an attribute could not be written. `enabled = False` turns them off for a process.
"""
from __future__ import annotations

import functools
import logging
import re
from collections.abc import Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Callable, Optional

import numpy as np

from .conventions import text_in
from .filters import FILTER_ID, How, Lossless, Lossy
from .stored_words import is_list, meaning

if TYPE_CHECKING:
    import h5py
    import netCDF4

log = logging.getLogger("h5z_gpu")

TEXT = "lossy_compression"
NAMES = (TEXT, f"{TEXT}_mode", f"{TEXT}_bound", f"{TEXT}_codec")

enabled = True
"""Whether attributes are left where a call does not say."""
_asked: ContextVar[Optional[bool]] = ContextVar("h5z_gpu_provenance", default=None)

_OURS = re.compile(r"h5z-gpu \S+, HDF5 filter \d+: (?P<what>.*?), codec [a-z]+; .*?exact"
                   r"(; on top of (a loss|(?P<count>\d+) losses, the last) by .*)?", re.S)  # fmt: skip


def wanted(given: bool | None) -> bool:
    """Whether a call leaves attributes: as its argument says or, by None, as the call around it or `enabled` does."""
    given = _asked.get() if given is None else given
    return enabled if given is None else bool(given)


def asked(given: bool | None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Makes a function's calls of `wanted` answer this."""
    def around(call: Callable[..., Any]) -> Callable[..., Any]:
        def inside(*positional: Any, **keywords: Any) -> Any:
            token = _asked.set(given)
            try:
                return call(*positional, **keywords)
            finally:
                _asked.reset(token)

        return inside

    return around


def said(how: How) -> str:
    """What a filter promises, in words: "within 0.01 (absolute)"."""
    return how.mode.short.format(f"{how.bound:.9g}")


def attributes(how: Lossy, found: Mapping[str, Any], before: str | None = None) -> dict[str, Any]:
    """The attributes of a variable that loses bits.

    Parameters
    ----------
    how : Lossy
        The bound.
    found : mapping
        The attributes that come with its values: those of an earlier loss are named in the new sentence.
    before : str, optional
        What has taken bits before, where something else than attributes says so.
    """
    from . import __version__

    losses, last = _earlier(found.get(TEXT))
    last = before or last
    losses = max(losses, 1 if last else 0)
    text = (f"h5z-gpu {__version__}, HDF5 filter {FILTER_ID}: {said(how)}, codec {how.codec}; NaN, infinities and the "
            "fill value exact")  # fmt: skip
    if losses:
        text += f"; on top of a loss by {last}" if losses == 1 else f"; on top of {losses} losses, the last by {last}"
    return dict(zip(NAMES, (text, how.mode.keyword, np.float64(how.bound), how.codec)))


def _earlier(text: Any) -> tuple[int, str]:
    """How many losses an attribute tells of, and by what the last was."""
    text = text_in(text)
    if not text:
        return 0, ""
    ours = _OURS.fullmatch(text)
    if ours is None:
        return 1, text if len(text) <= 200 else text[:197] + "..."
    return 1 + (int(ours["count"] or 1) if ours[2] else 0), f"this filter, {ours['what']}"


def loses(dataset: h5py.Dataset) -> Lossy | None:
    """The bound of a dataset of h5py that may lose bits; None for every other."""
    plan = dataset.id.get_create_plist()
    filters = (plan.get_filter(k) for k in range(plan.get_nfilters()))
    words = next((w for number, _, w, _ in filters if number == FILTER_ID), None)
    return None if words is None else _bound_of(tuple(words))


@functools.lru_cache(maxsize=64)
def _bound_of(words: tuple[int, ...]) -> Lossy | None:
    """The bound in stored words, where bits may be lost. Asked at each write, however small."""
    if not is_list(words):
        return None
    stored, how = meaning(words).stored, Lossy.from_filter_options(words)
    return how if isinstance(how, Lossy) and stored is not None and stored.may_lose else None


def on_dataset(dataset: h5py.Dataset, before: str | None = None, *, copied: bool = False) -> None:
    """Leaves the attributes on a dataset of h5py, where it may lose bits.

    Parameters
    ----------
    dataset : h5py.Dataset
        Open for writing.
    before : str, optional
        As for `attributes`.
    copied : bool
        The attributes that are there came with the values from elsewhere. Else they are about values that were written
        with this filter, and stay where they say the same.
    """
    def leave() -> None:
        how = loses(dataset)
        if how is None or (not copied and _says(dataset, how)):
            return
        if dataset.file.driver == "mpio":  # where every process would have to take part
            return
        there = dataset.attrs
        for name, value in attributes(how, there if copied else {}, before).items():
            if isinstance(value, str):
                set_text(dataset, name, value)
            else:
                there[name] = value

    _never_fails(dataset.name, leave)


def on_variable(variable: netCDF4.Variable[Any], how: How) -> None:
    """Leaves the attributes on a new variable of netCDF4-python, or takes them back where `how` keeps every bit."""
    def leave() -> None:
        there = set(variable.ncattrs())
        if isinstance(how, Lossless):
            if TEXT in there and _OURS.fullmatch(str(variable.getncattr(TEXT))):
                for name in there.intersection(NAMES):
                    variable.delncattr(name)
        else:
            variable.setncatts(attributes(how, {}))

    _never_fails(variable.name, leave)


def set_text(item: Any, name: str, value: str) -> None:
    """A text of fixed length, which netCDF shows as `char`."""
    import h5py

    raw = value.encode()
    item.attrs.create(name, np.array(raw, dtype=f"S{len(raw)}"), dtype=h5py.string_dtype("utf-8", len(raw)))


def _says(dataset: h5py.Dataset, how: Lossy) -> bool:
    """Whether the attributes name this bound already. Asked at each write, so not by h5py's slower `attrs`."""
    from h5py import h5a

    mode, bound = NAMES[1].encode(), NAMES[2].encode()
    if not h5a.exists(dataset.id, mode) or not h5a.exists(dataset.id, bound):
        return False
    try:
        number = np.zeros(())
        h5a.open(dataset.id, bound).read(number)
        if number != how.bound:
            return False
        attribute = h5a.open(dataset.id, mode)
        kind = attribute.get_type()
        if kind.is_variable_str():  # as h5netcdf writes it
            return bool(dataset.attrs[NAMES[1]] == how.mode.keyword)
        text = np.zeros((), f"S{kind.get_size()}")
        attribute.read(text, mtype=kind)
        return bool(text == how.mode.keyword.encode())
    except (AttributeError, OSError, TypeError, ValueError):  # of another type or shape
        return False


def _never_fails(name: str, leave: Callable[[], None]) -> None:
    try:
        leave()
    except Exception as why:  # of HDF5, netCDF, or an attribute of a type that NumPy has not
        log.warning("%s: its attributes of lossy compression could not be written: %s", name, why)
