# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the filter's words mean, as the library reads them (`h5z_gpu_tools`): nothing here knows which word holds what.

`codecs/src/words/stored.rs` is the one parser of the stored list; `reference.py` alone has another, to be independent
of it.
"""
from __future__ import annotations

import ctypes
import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Optional, cast

from .library import checked, lib


@dataclass(frozen=True)
class StoredWords:
    """What the list says that the filter stores with a dataset, besides mode, bound, codec and what is kept."""

    typed: int
    """The one number that the user typed; 0 where it was none, or several words."""
    kind: str
    """Class of the type: "float", "integer" or "bytes"."""
    size: int
    """Bytes of an element; 0 where they are not known."""
    big_endian: bool
    signed: bool
    exponent_bits: int
    mantissa_bits: int
    chunk: tuple[int, ...]
    """Extents of a chunk without those of 1, at most eight."""
    original_rank: int
    """HDF5's rank of the chunk."""
    fill_bits: Optional[int]
    """Bits of the fill value, as an unsigned integer of the element's width; None where none is defined."""
    sees_values: bool
    """Whether the filter sees the chunk itself: no other filter stands before it, and HDF5 told enough."""
    may_lose: bool
    """Whether bits may be lost: a bound was requested, the filter sees the values, and their type takes bounds."""

    @property
    def fill_value(self) -> Optional[float]:
        """The fill value of floating-point numbers of 2, 4 or 8 bytes."""
        if self.fill_bits is None or self.kind != "float" or self.size not in (2, 4, 8):
            return None
        if self.exponent_bits == 8:  # bfloat16 is the upper half of f32
            return cast(float, struct.unpack("<f", (self.fill_bits << 32 - 8 * self.size).to_bytes(4, "little"))[0])
        return cast(float, struct.unpack(f"<{'e' if self.size == 2 else 'd'}",
                                         self.fill_bits.to_bytes(self.size, "little"))[0])


@dataclass(frozen=True)
class Meaning:
    """What words say, in any form."""

    mode: str
    """Short name, as in `modes.Mode.name`."""
    bound: Optional[float]
    """None for lossless."""
    codec: str
    keep: tuple[str, ...]
    """Names of what is kept beside the bound, as in `modes.keeps()`."""
    text: str
    """As the plugin's text: "mode=abs,bound=1e-3"."""
    sentence: str
    lines: tuple[dict[str, str], ...]
    """What to type in other tools."""
    stored: Optional[StoredWords]
    """None where the words are a short form, as a user types it."""


def meaning(words: Sequence[int]) -> Meaning:
    """What words mean. Raises ValueError where they mean nothing, or are a damaged list."""
    found = as_json(words)
    stored = found.pop("stored", None)
    if stored is not None:
        stored = StoredWords(kind=stored.pop("class"), sees_values=stored.pop("lossy"),
                             chunk=tuple(stored.pop("chunk")), **stored)
    return Meaning(lines=tuple(found.pop("lines")), keep=tuple(found.pop("keep")), stored=stored, **found)


def as_json(words: Sequence[int]) -> dict[str, Any]:
    """The library's own answer, as `h5z-gpu words --json` prints it."""
    given = (ctypes.c_uint32 * max(1, len(words)))(*words)
    out = ctypes.create_string_buffer(1 << 16)
    checked(lib.h5z_gpu_tools(given, len(words), out, len(out)))
    answer: dict[str, Any] = json.loads(out.value)
    return answer


def is_list(words: Sequence[int]) -> bool:
    """Whether words are more than a user types, four at most, and so a stored list, damaged or not."""
    return len(words) > 4
