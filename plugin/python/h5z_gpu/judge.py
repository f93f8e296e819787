# SPDX-License-Identifier: MIT OR Apache-2.0
"""The library's verdict on the values of a chunk, in exact arithmetic (codecs/src/judge.rs), for NumPy arrays."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Optional

import numpy as np

from . import keep as keeping, modes
from .capi import BROKEN, SPECIAL, Verdict
from .library import checked, lib
from .views import numbers


@dataclass(frozen=True)
class Promise:
    """A bound, what is kept beside it, and the value that has to come back bit for bit."""

    mode: str
    """The keyword of one of modes.bounds(), or "lossless"."""
    bound: float = 0.0
    fill: Optional[int] = None
    """Bits of the fill value, as an unsigned integer of the element's width."""
    given: bool = False
    """The user names it; the file may say something else."""
    keep: tuple[str, ...] = ()
    """Names of what is kept beside the bound."""

    def __str__(self) -> str:
        bound = modes.named(self.mode).short.format(f"{self.bound:.9g}")
        return ", ".join(filter(None, (bound, keeping.kept(self.keep))))

    @property
    def by_chunk(self) -> bool:
        """Whether it is about each chunk as a whole."""
        return self.mode in ("relative", "psnr") or "range" in self.keep


@dataclass
class Judged:
    """What was found in one block."""

    error: np.ndarray
    """Reconstruction less original, as float64, in the block's shape; 0 where bits have to be equal."""
    marks: np.ndarray
    """SPECIAL where bits have to be equal (NaN, infinities, the fill value), BROKEN where the promise is broken."""
    found: Verdict
    """The counts."""
    limit: Optional[float]
    """The largest difference allowed (pointwise: as a part of the value), rounded; None where one value has none."""

    @property
    def special(self) -> np.ndarray:
        """Where bits have to be equal."""
        return (self.marks & SPECIAL).astype(bool)

    @property
    def broken(self) -> np.ndarray:
        """Where the promise is broken."""
        return (self.marks & BROKEN).astype(bool)

    @property
    def noisy(self) -> Optional[float]:
        """The PSNR of the block where it is below what is promised."""
        return self.found.psnr if self.found.noisy else None


def words_of(values: np.ndarray) -> np.ndarray:
    """The bits of native floats as unsigned integers."""
    return values.view(f"u{values.dtype.itemsize}")


def native(values: np.ndarray) -> np.ndarray:
    """Floats in this machine's byte order. Bytes are swapped as integers, which changes no NaN."""
    values = np.ascontiguousarray(values)
    if values.dtype.isnative:
        return values
    kind = values.dtype.str.replace("f", "u")
    return values.view(kind).astype(kind[1:]).view(values.dtype.newbyteorder("="))


def bits_of(value: np.ndarray) -> int:
    """The bits of one number."""
    return int(words_of(native(value)).item())


def _widened(x: np.ndarray) -> np.ndarray:
    """float16 as float32: the same numbers, and the bits of NaNs above zeros."""
    words = words_of(x).astype(np.uint32)
    wide = x.astype(np.float32)
    no_number = (words & 0x7C00) == 0x7C00
    np.copyto(words_of(wide), (words & 0x8000) << 16 | 0x7F800000 | (words & 0x3FF) << 13, where=no_number)
    return wide


def judge(x: np.ndarray, y: np.ndarray, promise: Promise) -> Judged:
    """Compares a block with its original, both of one type and shape; for a bound of a chunk's range, a PSNR or a kept
    range, it is the chunk."""
    fill = None if promise.fill is None else np.array(promise.fill, f"u{x.dtype.itemsize}")
    if x.dtype.itemsize == 2:
        x, y = _widened(x), _widened(y)
        fill = None if fill is None else words_of(_widened(fill.view("f2")))
    x, y = np.ascontiguousarray(x), np.ascontiguousarray(y)
    error, marks, found = np.empty(x.shape), np.empty(x.shape, np.uint8), Verdict()
    checked(lib.h5z_gpu_judge(
        modes.named(promise.mode).number, promise.bound, keeping.bits(promise.keep), x.dtype.str.encode(),
        None if fill is None else fill.ctypes.data, x.size, x.ctypes.data,
        y.ctypes.data, 0, numbers(error, ctypes.c_double), numbers(marks, ctypes.c_uint8), ctypes.byref(found),
    ))
    return Judged(error, marks, found, None if promise.mode == "psnr" else found.limit)
