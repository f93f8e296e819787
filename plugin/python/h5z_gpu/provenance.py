# SPDX-License-Identifier: MIT OR Apache-2.0
"""What was lost, in attributes of the variable that lost it.

lossy_compression         a sentence: program and version, HDF5's number of the filter, bound, codec, earlier losses
lossy_compression_mode    keyword of the bound, as in `Lossy`
lossy_compression_bound   the bound, a float64
lossy_compression_codec   name of the codec; "auto", "small" where it was chosen chunk by chunk
lossy_compression_keep    what was kept beside the bound, as in `Lossy`, where anything was
lossy_compression_units   the variable's `units` when it was compressed, where it had any

A statement must not outlive the values that it is about. Programs that calculate keep attributes: xarray does, and so
do NCO and CDO. What xarray opens by the engine "h5z_gpu" has these attributes in its encoding, which calculations drop
(`carried`). Where another program changed the values, `units` mostly says another unit than the stamp.

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

from . import keep
from .conventions import text_in
from .filters import FILTER_ID, How, Lossless, Lossy, words_of
from .stored_words import is_list, meaning

if TYPE_CHECKING:
    import h5py
    import netCDF4

log = logging.getLogger("h5z_gpu")

TEXT = "lossy_compression"
UNITS = f"{TEXT}_units"
KEEP = f"{TEXT}_keep"
NAMES = (TEXT, f"{TEXT}_mode", f"{TEXT}_bound", f"{TEXT}_codec", UNITS, KEEP)

enabled = True
"""Whether attributes are left where a call does not say."""
_asked: ContextVar[Optional[bool]] = ContextVar("h5z_gpu_provenance", default=None)

_MOST_FIXED = 64000
"""Bytes of an attribute that files of HDF5's earliest format take, less its header. Longer texts lie outside of it."""

_OURS = re.compile(r"h5z-gpu \S+, HDF5 filter \d+: (?P<what>.*?), codec [a-z]+; .*?exact"
                   r"(; on top of (a loss|(?P<count>\d+) losses, the last) by .*)?", re.S)


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
    """What a filter promises, in words: "within 0.01 (absolute), signs kept"."""
    return ", ".join(filter(None, (how.mode.short.format(f"{how.bound:.9g}"), keep.kept(how.keep))))


def attributes(how: Lossy, found: Mapping[str, Any], before: str | None = None, *,
               copied: bool = True) -> dict[str, Any]:
    """The attributes of a variable that loses bits, by the bound and those that were `found`.

    `before` is what has taken bits before, where something else than attributes says so. `copied`: the attributes came
    with the values; those of an earlier loss are named in the new sentence.
    """
    from .library import lib

    losses, last = _earlier(_text(found, TEXT)) if copied and TEXT in found and _same_units(found) else (0, "")
    last = before or last
    losses = max(losses, 1 if last else 0)
    text = (f"h5z-gpu {lib.h5z_gpu_version().decode()}, HDF5 filter {FILTER_ID}: {said(how)}, codec {how.codec}; NaN, "
            "infinities and the fill value exact")
    if losses:
        text += f"; on top of a loss by {last}" if losses == 1 else f"; on top of {losses} losses, the last by {last}"
    made: dict[str, Any] = dict(zip(NAMES, (text, how.mode.keyword, np.float64(how.bound), how.codec)))
    if how.keep:
        made[KEEP] = keep.text(how.keep)
    units = "" if "scale_factor" in found or "add_offset" in found else _text(found, "units")
    return made | ({UNITS: units} if units else {})


def carried(attrs: Mapping[Any, Any], encoding: Mapping[Any, Any], *, given: bool = False) -> dict[Any, Any] | None:
    """What a variable of xarray says of earlier losses of the values that it has now: the statement's attributes.

    Empty: there is none. None: there is one, and it is about other values. The engine "h5z_gpu" puts the statement into
    the encoding, other engines leave it in attrs. Calculations drop an encoding and keep attrs: without a source in the
    encoding, the statement in attrs is about other values. `given`: the encoding was given in the call that writes, so
    that a missing source means nothing.
    """
    if TEXT in attrs and not is_ours(attrs):  # of another compressor
        return {}
    if TEXT in encoding:
        said = {name: encoding[name] for name in NAMES if encoding.get(name) is not None}
        return said if TEXT in said and _same_units({**attrs, **said}) else None
    if TEXT not in attrs:
        return {}
    said = {name: attrs[name] for name in NAMES if name in attrs}
    return said if (given or "source" in encoding) and _same_units(attrs) else None


def is_ours(attrs: Mapping[Any, Any]) -> bool:
    """Whether attributes have a statement of this package, and none of another compressor."""
    return _OURS.fullmatch(_text(attrs, TEXT)) is not None


def without(attrs: Mapping[Any, Any]) -> dict[Any, Any]:
    """Attributes without a statement of this package."""
    ours = is_ours(attrs)
    return {name: x for name, x in attrs.items() if not ours or name not in NAMES}


def _same_units(found: Mapping[Any, Any]) -> bool:
    """Whether a statement is about values in the units that the variable has now, as far as both are known."""
    stamp, units = _text(found, UNITS), _text(found, "units")
    return not stamp or not units or stamp == units


def _text(found: Mapping[Any, Any], name: str) -> str:
    """The text of an attribute; an empty one where there is none."""
    try:
        return text_in(found.get(name)) or ""
    except (OSError, TypeError, ValueError):  # of h5py, which reads no attribute of a type that NumPy has not
        return ""


def _earlier(text: str) -> tuple[int, str]:
    """How many losses an attribute tells of, and by what the last was."""
    if not text:
        return 0, ""
    ours = _OURS.fullmatch(text)
    if ours is None:
        return 1, text if len(text) <= 200 else text[:197] + "..."
    return 1 + (int(ours["count"] or 1) if ours[2] else 0), f"this filter, {ours['what']}"


def loses(dataset: h5py.Dataset) -> Lossy | None:
    """The bound of a dataset of h5py that may lose bits; None for every other."""
    words = words_of(dataset)
    return None if words is None else _bound_of(words)


@functools.lru_cache(maxsize=64)
def _bound_of(words: tuple[int, ...]) -> Lossy | None:
    """The bound in stored words, where bits may be lost. Asked at each write, however small."""
    if not is_list(words):
        return None
    stored, how = meaning(words).stored, Lossy.from_filter_options(words)
    return how if isinstance(how, Lossy) and stored is not None and stored.may_lose else None


def on_dataset(dataset: h5py.Dataset, before: str | None = None, *, copied: bool = False) -> None:
    """Leaves the attributes on a dataset of h5py, where it may lose bits. `before` is as for `attributes`.

    With `copied` the attributes that are there came with the values from elsewhere. Else they are about values that
    were written with this filter, and stay where they say the same.
    """
    import h5py

    from .attrs import Attributes, add

    def leave() -> None:
        how = loses(dataset)
        if how is None or (not copied and _says(dataset, how)):
            return
        if h5py.get_config().mpi and dataset.file.driver == "mpio":  # where every process would have to take part
            return
        there = Attributes(dataset)
        made = attributes(how, there, before, copied=copied)
        for name in (UNITS, KEEP):
            if name in there and name not in made:
                del dataset.attrs[name]
        for name, text in made.items():
            value = as_char(text)
            if name in there or isinstance(value, str):
                dataset.attrs[name] = value
            else:
                add(dataset, name, value)

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
            if KEEP in there and not how.keep:
                variable.delncattr(KEEP)
            units = {"units": variable.getncattr("units")} if "units" in there else {}
            variable.setncatts(attributes(how, units, copied=False))

    _never_fails(variable.name, leave)


def as_char(value: Any) -> Any:
    """A text as one of fixed length, which is netCDF's NC_CHAR; anything else as it is.

    h5py makes a text of any length of `str` and `bytes`: netCDF's NC_STRING, at which NCO's averagers stop.
    """
    if not isinstance(value, (str, bytes)):
        return value
    import h5py

    raw = value if isinstance(value, bytes) else value.encode("utf-8", "surrogateescape")
    raw = raw or b"\0"  # as netCDF does: HDF5 has no texts of no bytes
    if len(raw) > _MOST_FIXED:
        return value
    return np.array(raw, dtype=h5py.string_dtype("ascii" if raw.isascii() else "utf-8", len(raw)))


def set_text(item: Any, name: str, value: str) -> None:
    """A text of fixed length as an attribute of a dataset, a group or a file of h5py."""
    item.attrs[name] = as_char(value)


def _says(dataset: h5py.Dataset, how: Lossy) -> bool:
    """Whether the attributes name this bound already. Asked at each write, so not by h5py's slower `attrs`."""
    from h5py import h5a

    mode, bound = NAMES[1].encode(), NAMES[2].encode()
    if not h5a.exists(dataset.id, mode) or not h5a.exists(dataset.id, bound):
        return False
    kept = _text(dataset.attrs, KEEP) if h5a.exists(dataset.id, KEEP.encode()) else ""
    if kept != keep.text(how.keep):
        return False
    if h5a.exists(dataset.id, UNITS.encode()) and not _same_units(dataset.attrs):
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
