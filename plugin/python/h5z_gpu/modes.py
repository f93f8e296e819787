# SPDX-License-Identifier: MIT OR Apache-2.0
"""The modes of bounds, what may be kept beside them, and the names of codecs, as the library hands them out
(`h5z_gpu_choices`).

The package has no list of its own: keywords, options, texts and checks are made from these. Only `Lossy` names the
keywords again, in its signature, where editors show them.
"""
from __future__ import annotations

import ctypes
import functools
from typing import Any, NamedTuple

from .library import checked, lib


class Mode(NamedTuple):
    """A row of codecs/src/mode.rs."""

    number: int
    """Its number in words and frames."""
    name: str
    """As in the plugin's text: "abs"."""
    keyword: str
    """As in Lossy, in options and in Zarr 3: "absolute"."""
    meaning: str
    """What the number of a bound is."""
    promise: str
    """The promise in words, with {} for the number; "chunk's" where it is of the chunk's range."""
    short: str
    """The same in few words."""
    example: str
    """A number that may be given."""
    below_one: bool
    """Whether the number is below 1."""
    of: str
    """What the number is a part of: "data" (their units), "range", "value", or "none" for lossless."""
    takes_keep: bool
    """Whether something may be kept beside it."""
    codecs: tuple[str, ...]
    """Codecs that take it."""


class Keep(NamedTuple):
    """What may be kept beside a bound: an item of `Keep::ALL` in codecs/src/keep.rs."""

    bit: int
    """In words."""
    name: str
    """As it is typed: "sign"."""
    what: str
    """What is kept: "signs"."""
    meaning: str
    """What it promises."""


@functools.cache
def _choices() -> dict[str, Any]:
    import json  # some milliseconds, which an import of the package need not take

    out = ctypes.create_string_buffer(1 << 14)
    checked(lib.h5z_gpu_choices(out, len(out)))
    found: dict[str, Any] = json.loads(out.value)
    return found


@functools.cache
def all_modes() -> tuple[Mode, ...]:
    """All modes, lossless last."""
    return tuple(Mode(**row | {"codecs": tuple(row["codecs"])}) for row in _choices()["modes"])


@functools.cache
def bounds() -> dict[str, Mode]:
    """The modes that have a number, by keyword."""
    return {mode.keyword: mode for mode in all_modes() if mode.of != "none"}


@functools.cache
def keeps() -> dict[str, Keep]:
    """What may be kept beside a bound, by name, in the order of their bits."""
    return {row["name"]: Keep(**row) for row in _choices()["keeps"]}


def named(name: str) -> Mode:
    """The mode of a short name or a keyword. Raises KeyError."""
    for mode in all_modes():
        if name in (mode.name, mode.keyword):
            return mode
    raise KeyError(name)


def numbered(number: int) -> Mode:
    """The mode of a frame. Raises KeyError."""
    for mode in all_modes():
        if mode.number == number:
            return mode
    raise KeyError(number)


def frame_codec(number: int) -> str:
    """The name of a frame's codec, which may be of a newer version."""
    names: list[str] = _choices()["frame_codecs"]
    return names[number] if number < len(names) else f"codec {number}"


def codecs() -> tuple[str, ...]:
    """Names of codecs as they are requested, "auto" first."""
    return tuple(_choices()["codecs"])
