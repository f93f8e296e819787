# SPDX-License-Identifier: MIT OR Apache-2.0
"""One dataset against its original: the verdict on the promise and the figures of quality, block by block."""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass, field
from typing import Any, Callable, Optional

import numpy as np

from ..chunks import chunk_shape
from ..judge import Judged, Promise, judge, native, words_of
from . import quality
from .boxes import Box, boxes, cut, grown
from .common import refuse_absurd
from .elements import differing, layout_of, types_equal
from .leads import Filled
from .matching import common_part, matched, promise_as_read
from .promise import Asked, of_user, promise_of
from .properties import DECLARED, fill_state, same_fill
from .sources import Source
from .stored import Pair

READ_VALUES = 8 << 20
"""Values that are read at a time, unless a chunk has more."""
JUDGED_VALUES = 1 << 20
"""Values judged at a time where the promise is about each value: they and what is computed of them stay in a cache."""
SLICES = 12
"""Slices of the last two axes that SSIM and spectra are computed from, evenly spaced."""


@dataclass
class Found:
    """The first value for which the promise is broken."""

    index: tuple[int, ...]
    original: str
    became: str
    error: float


@dataclass
class Result:
    """What is known of one dataset."""

    name: str
    promise: Promise
    dtype: np.dtype
    shape: Optional[tuple[int, ...]]
    axes: list[str] = field(default_factory=list)
    units: Optional[str] = None
    northward: bool = False
    """Whether slices of the last two axes begin in the south."""
    values: int = 0
    nan: int = 0
    infinite: int = 0
    fill: int = 0
    special_broken: int = 0
    broken: int = 0
    kept_broken: list[int] = field(default_factory=lambda: [0, 0, 0])
    """Of them, those that broke what is kept beside the bound, in the order of `modes.keeps()`."""
    broken_in: Optional[np.ndarray] = None
    """Their number in each slice of the last two axes, of floating-point values of which some are broken."""
    first: Optional[Found] = None
    noisy: list[tuple[tuple[int, ...], float]] = field(default_factory=list)
    """Chunks whose PSNR is too low: first element and PSNR."""
    into_fill: int = 0
    """Ordinary values that came back with the bits of the fill value, within the bound."""
    figures: Optional[quality.Quality] = None
    ssim: Optional[float] = None
    slices: int = 0
    spectra: Optional[tuple[np.ndarray, np.ndarray, np.ndarray]] = None
    """Power of original, reconstruction and error by wavenumber."""
    limits: tuple[float, float] = (math.inf, -math.inf)
    """Smallest and largest limit of a difference among the chunks."""
    raw: int = 0
    stored: Optional[int] = None
    notes: list[str] = field(default_factory=list)
    """How they were made comparable."""
    pair: Optional[tuple[Source, Source]] = None
    """What was compared."""

    @property
    def held(self) -> bool:
        """Whether the promise is kept."""
        return not self.broken and not self.noisy

    @property
    def special(self) -> int:
        """Values that have to keep their bits."""
        return self.nan + self.infinite + self.fill


def compare(a: Source, b: Source, given: Optional[Asked], done: Callable[[int], Any] = lambda n: None,
            common: bool = False) -> Result:
    """Compares all of a dataset with its original `a`.

    `given` is the promise, in place of what lies in the file of `b`. `done` is told of bytes of the original that are
    done. With `common`, of a copy that is shorter than the original, what it has is compared; of a longer one it is in
    any case. Problem where types or shapes differ, or a chunk cannot be read.
    """
    notes: list[str] = []
    whole = a.shape == b.shape
    a, b = matched(a, b, notes)
    as_read = bool(notes)
    floats = a.dtype.kind == "f" and a.dtype.itemsize in (2, 4, 8)
    promise = Promise("lossless")
    if floats and b.dataset is not None:
        promise = promise_of(b.dataset, given)
    elif floats and given is not None:
        promise = of_user(given)
    if as_read:
        promise, text = promise_as_read(promise if given is None else of_user(given), a, b)
        notes += [text] * bool(text)
    if not whole:
        a, b, text = common_part(a, b, common, promise.by_chunk)
        notes.append(text)
    result = Result(a.name, promise, a.dtype, a.shape, a.axes(), a.attribute("units"), a.northward(-2)
                    or b.northward(-2), notes=notes, pair=(a, b))
    if a.shape is None:
        return result
    result.values = math.prod(a.shape)
    result.raw = result.values * a.dtype.itemsize
    kind = None if as_read else _same_type(a, b)
    if kind is not None and whole and _unwritten(a, b, kind, result):
        return result
    refuse_absurd(a.name, result.raw)
    if b.dataset is not None and b.dataset.chunks and whole:
        result.stored = b.dataset.id.get_storage_size()
    if floats and a.shape:
        with np.errstate(all="ignore"):  # NaN, infinities and overflows are part of the data
            _floats(a, b, result, done)
            _slices(a, b, result)
    elif kind is not None:
        _elements(a, b, kind, result, done)
    else:
        _bits(a, b, result, done)
    return result


def _same_type(a: Source, b: Source) -> Any:
    """The type in HDF5 of both datasets, where it is the same."""
    if a.dataset is None or b.dataset is None:
        return None
    kinds = [s.dataset.id.get_type() for s in (a, b)]
    return kinds[0] if types_equal(*kinds) else None


def _unwritten(a: Source, b: Source, kind: Any, result: Result) -> bool:
    """Judges two datasets of which nothing was ever written by their fill values. False where that says too little."""
    pair = Pair.of(a.dataset.id, b.dataset.id)
    if not pair.unwritten:
        return False
    if same_fill(pair.before, pair.after, kind, layout_of(kind), Filled()):
        result.notes.append("never written: all of both is the fill value, which is the same")
        return True
    if layout_of(kind).parts or any(fill_state(p) != DECLARED for p in pair[2:]):
        return False
    was, became = (_text(s.dataset.fillvalue) for s in (a, b))
    result.broken, result.first = result.values, Found((0,) * len(a.shape or ()), was, became, math.nan)
    result.notes.append("never written: all of both is the fill value")
    return True


def _floats(a: Source, b: Source, result: Result, done: Callable[[int], Any]) -> None:
    """Verdict and figures of floating-point values."""
    shape, promise = a.shape or (), result.promise
    result.figures = quality.Quality(len(shape))
    chunk = b.chunks or chunk_shape(shape, a.dtype.itemsize)
    step = grown(chunk, shape, READ_VALUES)
    if promise.by_chunk:
        inner = chunk
    else:
        step = step if math.prod(step) <= 2 * READ_VALUES else cut(step, READ_VALUES)
        inner = cut(grown(chunk, step, JUDGED_VALUES), 2 * JUDGED_VALUES)
    for box in boxes(shape, step):
        x, y = a.read(box), b.read(box)
        for part in boxes(x.shape, inner):
            u, v = native(x[part]), native(y[part])
            start = tuple(p.start + q.start for p, q in zip(part, box))
            _count(u, v, judge(u, v, promise), start, result)
        done(x.nbytes)


def _count(x: np.ndarray, y: np.ndarray, found: Judged, start: tuple[int, ...], result: Result) -> None:
    """Adds one block's verdict and figures."""
    promise, counts = result.promise, found.found
    result.nan += counts.nan
    result.infinite += counts.infinite
    result.fill += counts.fill
    result.special_broken += counts.special_broken
    if counts.broken and result.first is None:
        at = np.unravel_index(counts.first, x.shape)
        with np.errstate(all="ignore"):
            error = float(np.float64(y[at]) - np.float64(x[at]))
        index = tuple(int(s + k) for s, k in zip(start, at))
        result.first = Found(index, _shown(x[at]), _shown(y[at]), error)
    if counts.broken:
        if result.broken_in is None:
            result.broken_in = np.zeros((result.shape or ())[:-2], np.int64)
        lead = tuple(slice(s, s + n) for s, n in zip(start[:-2], x.shape))
        result.broken_in[lead] += np.count_nonzero(found.broken, axis=tuple(range(x.ndim))[-2:])
    result.broken += counts.broken
    result.kept_broken = [n + more for n, more in zip(result.kept_broken, counts.kept_broken)]
    if found.noisy is not None:
        result.noisy.append((start, found.noisy))
    result.into_fill += counts.into_fill
    if found.limit is not None:
        result.limits = (min(result.limits[0], found.limit), max(result.limits[1], found.limit))
    assert result.figures is not None
    result.figures.add(x, found.error, found.special, found.limit, promise.mode == "pointwise_relative")


def _shown(value: Any) -> str:
    """A number and its bits."""
    value = np.asarray(value)
    size = value.dtype.itemsize
    return f"{value.item()!r} (0x{int(value.reshape(1).view(f'u{size}')[0]):0{2 * size}x})"


# --- slices ----------------------------------------------------------------------------------------------------------


def slice_boxes(shape: tuple[int, ...], most: int = SLICES) -> list[Box]:
    """Boxes of slices of the last two axes (of one axis: the last), evenly spaced along the others."""
    lead = shape[:-2]
    n = math.prod(lead)
    flat = sorted({int((k + 0.5) * n / min(n, most)) for k in range(min(n, most))})
    index = [np.unravel_index(f, lead) if lead else () for f in flat]
    # A row or plane of many millions is cut to its middle.
    side = 1 << 20 if len(shape) == 1 else 1 << 12
    ends = tuple(slice(max(0, (m - side) // 2), min(m, max(0, (m - side) // 2) + side)) for m in shape[-2:])
    return [tuple(slice(int(i), int(i) + 1) for i in at) + ends for at in index]


def slice_pair(a: Source, b: Source, box: Box, fill: Optional[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A slice of both, and where neither has a special value; without axes of one."""
    x, y = native(a.read(box)), native(b.read(box))
    keep = x.shape[-2:] if x.ndim > 1 else x.shape
    x, y = x.reshape(keep), y.reshape(keep)
    use = np.isfinite(x) & np.isfinite(y)
    if fill is not None:
        use &= words_of(x) != words_of(x).dtype.type(fill)
    return x, y, use


def kept_places(a: Source, b: Source, result: Result, box: Box) -> dict[str, np.ndarray]:
    """Where finite values of a slice break what is kept beside the bound, by its name; without axes of one.

    Chunks are judged whole: the range that is kept is theirs.
    """
    shape = result.shape or ()
    chunk = b.chunks or chunk_shape(shape, a.dtype.itemsize)
    extents = tuple(s.stop - s.start for s in box)
    found = {name: np.zeros(extents, bool) for name in result.promise.keep}
    origin = [s.start // c * c for s, c in zip(box, chunk)]
    for part in boxes(tuple(s.stop - o for s, o in zip(box, origin)), chunk):
        whole = tuple(slice(o + p.start, min(o + p.start + c, n)) for o, p, c, n in zip(origin, part, chunk, shape))
        x, y = native(a.read(whole)), native(b.read(whole))
        seen = [(max(w.start, s.start), min(w.stop, s.stop)) for w, s in zip(whole, box)]
        here = tuple(slice(i - w.start, j - w.start) for (i, j), w in zip(seen, whole))
        there = tuple(slice(i - s.start, j - s.start) for (i, j), s in zip(seen, box))
        for name, broken in found.items():
            # A PSNR says nothing of a single finite value.
            judged = judge(x, y, Promise("psnr", 1.0, result.promise.fill, keep=(name,)))
            broken[there] = (judged.broken & ~judged.special & np.isfinite(y))[here]
    return {name: broken.reshape(extents[-2:]) for name, broken in found.items() if broken.any()}


def _slices(a: Source, b: Source, result: Result) -> None:
    """SSIM and spectra."""
    figures = result.figures
    if figures is None or not figures.n or not figures.high > figures.low:
        return
    found, spectra = [], []
    for box in slice_boxes(result.shape or ()):
        x, y, use = slice_pair(a, b, box, result.promise.fill)
        value = quality.ssim(x, y, use, figures.high - figures.low)
        if value is not None:
            found.append(value)
        if use.any() and max(x.shape) > 3:
            with np.errstate(all="ignore"):
                error = np.where(use, y.astype(np.float64) - x, 0.0)
            spectra.append([quality.spectrum(v, use) for v in (x, y, error)])
    result.slices = len(found)
    result.ssim = float(np.mean(found)) if found else None
    if spectra:
        power = np.array(spectra)  # all slices have the same shape, and so the same rings without a wave
        mean = power.mean(axis=0)
        result.spectra = (mean[0], mean[1], mean[2])


# --- everything else -------------------------------------------------------------------------------------------------


def _elements(a: Source, b: Source, kind: Any, result: Result, done: Callable[[int], Any]) -> None:
    """Integers, texts, compounds and the like of one type: every bit has to be the same, as it lies in the file."""
    shape, layout = a.shape or (), layout_of(kind)
    chunk = b.chunks or (chunk_shape(shape, layout.size) if shape else ())
    step = cut(grown(chunk, shape, 1 << 16 if layout.parts else READ_VALUES), 2 * READ_VALUES)
    for box in boxes(shape, step):
        with contextlib.ExitStack() as stack:
            x, y = (s.elements(stack, box, kind, layout) for s in (a, b))
            differs = differing(layout, x, y, Filled())
            n = int(np.count_nonzero(differs))
            if n and result.first is None:
                row = int(np.argmax(differs))
                at = np.unravel_index(row, tuple(s.stop - s.start for s in box)) if box else ()
                index = tuple(int(k + s.start) for k, s in zip(at, box))
                result.first = Found(index, _element(a, index, x[row]), _element(b, index, y[row]), math.nan)
            result.broken += n
            done(x.nbytes)


def _element(source: Source, index: tuple[int, ...], row: np.ndarray) -> str:
    """One element as h5py has it; its bytes where h5py cannot read it."""
    try:
        return _text(source.dataset[index])
    except (OSError, RuntimeError, ValueError, TypeError):
        return f"0x{row.tobytes().hex()}"


def _bits(a: Source, b: Source, result: Result, done: Callable[[int], Any]) -> None:
    """The same of types that differ in the two files, such as integers of both byte orders, as h5py reads them."""
    shape = a.shape or ()
    chunk = b.chunks or (chunk_shape(shape, a.dtype.itemsize) if shape else ())
    step = cut(grown(chunk, shape, 1 << 16 if a.dtype.hasobject else READ_VALUES), 2 * READ_VALUES)
    for box in boxes(shape, step):
        x, y = np.asarray(a.read(box)), np.asarray(b.read(box))
        differs = different(x, y)
        n = int(np.count_nonzero(differs))
        if n and result.first is None:
            at = np.unravel_index(int(np.argmax(differs)), x.shape) if x.shape else ()
            index = tuple(int(k + s.start) for k, s in zip(at, box))
            result.first = Found(index, _text(x[at]), _text(y[at]), math.nan)
        result.broken += n
        done(x.nbytes)


def _text(value: Any) -> str:
    text = repr(value.item() if isinstance(value, np.generic) else value)
    return text if len(text) <= 60 else text[:57] + "..."


def different(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Where elements of two arrays of one shape differ in their bits; padding inside compounds does not count."""
    if x.dtype.names:
        found = np.zeros(x.shape, bool)
        for name in x.dtype.names:
            part = different(x[name], y[name])
            found |= part.any(axis=tuple(range(x.ndim, part.ndim))) if part.ndim > x.ndim else part
        return found
    if x.dtype.hasobject:
        pairs = zip(x.reshape(-1), y.reshape(-1))
        return np.array([not _same(p, q) for p, q in pairs], bool).reshape(x.shape)
    x, y = np.ascontiguousarray(x), np.ascontiguousarray(y)
    if x.dtype.byteorder != y.dtype.byteorder:
        y = y.astype(x.dtype)
    size = x.dtype.itemsize
    if size in (1, 2, 4, 8):
        return np.asarray(x.reshape(-1).view(f"u{size}") != y.reshape(-1).view(f"u{size}")).reshape(x.shape)
    bytes_of = [v.reshape(-1).view(np.uint8).reshape(-1, size) for v in (x, y)]
    return np.asarray((bytes_of[0] != bytes_of[1]).any(axis=1)).reshape(x.shape)


def _same(p: Any, q: Any) -> bool:
    """Whether two objects of h5py are equal: texts, arrays of any length. References lead into files of their own."""
    import h5py

    if isinstance(p, (h5py.Reference, h5py.RegionReference)):
        return bool(p) == bool(q)
    if isinstance(p, np.ndarray):
        return isinstance(q, np.ndarray) and p.shape == q.shape and not different(p, q).any()
    return bool(p == q)
