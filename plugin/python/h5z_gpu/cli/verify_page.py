# SPDX-License-Identifier: MIT OR Apache-2.0
"""The page of `verify`: slices, the map of the error, where a kept sign, zero or range is broken, the histogram of the
error against the bound, and power spectra; and what became of derived quantities."""

from __future__ import annotations

import math
from typing import Any, Optional

import numpy as np

from .. import modes
from ..judge import Promise
from ..quantity_judges import Outcome
from . import page, quality
from .boxes import Box
from .common import Problem
from .compare import Found, Result, kept_places, slice_boxes, slice_pair
from .quantities import title, verdict as verdict_on
from .sources import Source
from .verify_text import lines, promise_text, verdict

_SIDE = 480  # longest side of a picture, in cells
_WINDOW, _LINE = 24, 200  # sides of the part that shows broken values one by one, in cells: of a map, of a row
_MARKS = "xo^"  # of modes.keeps(): legible without colours, and one above another
_DARK, _LIGHT, _RED = "#1c2430", "#d97706", "#9a1c12"


def write(path: str, original: str, compressed: str, found: list[tuple[Source, Source, Result]], problems: list[str],
          more: list[str], quantities: list[Outcome]) -> None:
    """Writes the page; the sources are still open."""
    broken, moved = ([each for each in those if not each.held] for those in ([r for *_, r in found], quantities))
    good = not broken and not moved and not problems
    words = " and ".join([f"{len(broken)} of {len(found)} datasets break their promise"] * bool(broken)
                         + [f"{len(moved)} of {len(quantities)} quantities exceed their limit"] * bool(moved))
    words = words or ("every promise is kept" if good else "not everything could be compared")
    body = [f"<h1>{page.text(compressed)}</h1>",
            f'<p>compared with {page.text(original)}: <span class="{"held" if good else "broken"}">{words}</span></p>']
    body += [f'<p><span class="broken">not compared</span> {page.text(p)}</p>' for p in problems]
    rows = []
    for k, (_, _, r) in enumerate(found):
        mark = _verdict_mark(r.held)
        name = page.Html(f'<a href="#d{k}">{page.text(r.name)}</a>') if _pictured(r) else r.name
        q = r.figures
        lossy = q is not None and q.n > 0 and r.promise.mode != "lossless"
        rows.append([name, mark, promise_text(r), f"{q.largest:.4g}" if q and lossy else "", f"{q.psnr:.1f}" if q
                     and lossy else "", f"{r.raw / r.stored:.2f}" if r.stored else ""])
    body.append(page.table(rows, ["dataset", "verdict", "promised", "largest error", "PSNR (dB)", "ratio"], [3, 4, 5]))
    if more:
        body.append(f'<p class="small">Only in the compressed file, not compared: {page.text(", ".join(more))}</p>')
    sources = {a.name: a for a, _, _ in found}
    for o in quantities:
        source = sources.get(o.of.variables[0])  # None where the dataset could not be compared
        with np.errstate(all="ignore"):
            pictures = "".join(_quantity(o, source)) if source is not None else ""
        body += [f"<h2>{page.text(title(o.of))}</h2>", f"<p>{_verdict_mark(o.held, verdict_on(o))}</p>",
                 f'<div class="figures">{pictures}</div>']
    for k, (a, b, r) in sorted(enumerate(found), key=lambda each: each[1][2].held):  # what is broken comes first
        if _pictured(r):
            with np.errstate(all="ignore"):
                body += [f'<h2 id="d{k}">{page.text(r.name)}</h2>', *_section(a, b, r)]
    page.write(path, f"{compressed}: what was lost", body)


def _verdict_mark(held: bool, words: str = "") -> page.Html:
    return page.Html(f'<span class="{"held" if held else "broken"}">'
                     f'{page.text(words or ("held" if held else "BROKEN"))}</span>')


def _pictured(r: Result) -> bool:
    """Whether there is something to show: loss, or a broken promise, of numbers."""
    return r.figures is not None and r.figures.n > 0 and (r.promise.mode != "lossless" or not r.held)


def _section(a: Source, b: Source, r: Result) -> list[str]:
    shape = " × ".join(f"{name} {n}" for name, n in zip(r.axes, r.shape or ()))
    body = [f"<p>{_verdict_mark(r.held, verdict(r))}</p>",
            f'<p class="small">{page.text(r.dtype.name)}, {page.text(shape)}; promised: '
            f'{page.text(promise_text(r))}</p>',
            page.table(lines(r))]
    pictures = []
    try:
        box, where = _shown_slice(r)
        x, y, use = slice_pair(a, b, box, r.promise.fill)
        line = x.ndim == 1 or min(x.shape) == 1
        pictures += _line_pictures(x, y, use, r, box) if line else _maps(x, y, use, r, box, where)
        places = kept_places(a, b, r, box) if any(r.kept_broken) else {}
        if places:
            pictures += (_kept_line if line else _kept_maps)(x, y, use, places, r, box, where)
    except Problem as problem:
        body.append(f'<p><span class="broken">no picture</span> {page.text(problem)}</p>')
    q = r.figures
    if q is not None and q.share:
        pictures.append(_histogram(r))
    if r.spectra is not None and np.isfinite(r.spectra[0]).any():
        pictures.append(_spectra(r))
    return [*body, f'<div class="figures">{"".join(pictures)}</div>']


def _shown_slice(r: Result) -> tuple[Box, str]:
    """The slice that is shown: the one with the most broken values, or else from the middle."""
    shape = r.shape or ()
    (box,) = slice_boxes(shape, 1)
    whole = shape[-2:] == tuple(s.stop for s in box[-2:])
    index, why = tuple((s.start + s.stop) // 2 for s in box), ""
    if r.broken_in is not None and r.broken_in.ndim and whole:
        worst = np.unravel_index(int(np.argmax(r.broken_in)), r.broken_in.shape)
        index, why = (*map(int, worst), *index[-2:]), ", with the most broken values"
    elif r.first is not None:
        index, why = r.first.index, ", with the first broken value"
    elif r.noisy:
        index, why = min(r.noisy, key=lambda each: each[1])[0], ", with the chunk of the lowest PSNR"
    ends = []
    for i, s, n in zip(index[-2:], box[-2:], shape[-2:]):
        length = s.stop - s.start
        start = min(max(0, i - length // 2), n - length)
        ends.append(slice(start, start + length))
    lead = ", ".join(f"{name} {i}" for name, i in zip(r.axes, index[:-2]))
    what = "the whole" if whole and not lead else f"{f'slice at {lead}' if lead else 'a part'}{why}"
    return (*(slice(i, i + 1) for i in index[:-2]), *ends), what


def _unit(r: Result) -> str:
    return f"{r.name} ({r.units})" if r.units else r.name


def _axes_of(r: Result) -> tuple[str, str]:
    names = r.axes[-2:]
    return f"{names[0]} (index)", f"{names[-1]} (index)"


def _thinned(values: np.ndarray, use: np.ndarray, largest: bool) -> np.ndarray:
    """A slice of at most _SIDE cells a side: every n-th value or, so that no peak is lost, the largest by size of each
    block."""
    shown = np.where(use, values, np.nan)
    step = [max(1, -(-n // _SIDE)) for n in shown.shape]
    if max(step) == 1:
        return shown
    if not largest:
        return shown[tuple(slice(None, None, s) for s in step)]
    padded = np.pad(shown, [(0, -n % s) for n, s in zip(shown.shape, step)], constant_values=np.nan)
    blocks = padded.reshape(padded.shape[0] // step[0], step[0], padded.shape[1] // step[1], step[1]).swapaxes(1, 2)
    flat = blocks.reshape(blocks.shape[0], blocks.shape[1], -1)
    at = np.argmax(np.nan_to_num(np.abs(flat), nan=-1), axis=-1)
    return np.take_along_axis(flat, at[..., None], axis=-1)[..., 0]


def _maps(x: np.ndarray, y: np.ndarray, use: np.ndarray, r: Result, box: Box, where: str,
          limit_is: str = "bound", circle: str = "first broken value") -> list[str]:
    """Original, reconstruction and error as maps."""
    if not use.any():
        return []
    error = y.astype(np.float64) - x
    seen = x[use].astype(np.float64)
    low, high = (float(v) for v in np.percentile(seen, [0.5, 99.5]))
    if not high > low:
        low, high = float(seen.min()), float(seen.max())
    extent = _extent(box)
    found = []
    for values, what in ((x, "original"), (y, "reconstruction")):
        drawn = _map(_thinned(values, use, False), extent, r, f"{r.name}: {what}", _unit(r), "viridis", (low, high),
                     "both")
        found.append(page.figure(drawn, f"Map of {r.name}, {what}, {where}; colours from {low:.4g} to {high:.4g} "
                                 f"{r.units or ''}".rstrip(),
                                 f"{what.capitalize()}, {where}. Missing values are grey."))
    limit, seen = r.limits[1], r.first is not None and all(s.start <= i < s.stop for i, s in zip(r.first.index, box))
    if r.promise.mode == "pointwise_relative":
        error = np.where(error == 0, 0, error / np.abs(x))
        label, unit = "error / value", "of the value"
    else:
        label, unit = f"error ({r.units})" if r.units else "error", r.units or ""
    finite = np.abs(error[use & np.isfinite(error)])
    most = float(finite.max()) if finite.size else 0.0
    reach = (limit if 0 < limit < math.inf else most) or 1.0
    drawn = _map(_thinned(error, use, True), extent, r, f"{r.name}: error", label, "RdBu_r", (-reach, reach),
                 "both" if most > reach else "neither", r.first.index[-2:] if r.first and seen else None)
    bound = f"colours end at {f'the {limit_is}, ' * (0 < limit < math.inf)}{reach:.4g} {unit}".rstrip()
    found.append(page.figure(drawn, f"Map of the error of {r.name}, {where}; {bound}; the largest in this slice is "
                             f"{most:.4g}",
                             f"Error (reconstruction less original), {where}; {bound}."
                             + f" The circle marks the {circle}." * seen))
    return found


def _map(values: np.ndarray, extent: tuple[float, ...], r: Result, title: str, label: str, colours: str,
         limits: tuple[float, float], extend: str, mark: Optional[tuple[int, ...]] = None) -> Any:
    import matplotlib

    drawn, axes = page.new_figure()
    colour_map = matplotlib.colormaps[colours].with_extremes(bad="#b9bec6")
    ratio = (extent[1] - extent[0]) / max(1.0, extent[2] - extent[3])
    shown = axes.imshow(values, extent=extent, cmap=colour_map, vmin=limits[0], vmax=limits[1], interpolation="nearest",
                        aspect="equal" if 0.3 < ratio < 4 else "auto")
    if r.northward:
        axes.invert_yaxis()  # rows are drawn from above, and these begin in the south
    down, across = _axes_of(r)
    page.name_axes(axes, title, across, down)
    if label:
        bar = drawn.colorbar(shown, ax=axes, extend=extend, shrink=0.9)
        bar.set_label(label, fontsize=10)
        bar.ax.tick_params(labelsize=9)
    if mark is not None:
        axes.plot([mark[-1]], [mark[0]], "o", markersize=13, fillstyle="none", color="black", markeredgewidth=1.5,
                  clip_on=False)
    return drawn


def _window(some: np.ndarray, side: int) -> tuple[slice, ...]:
    """The window with the most of some places, which lie about its middle."""
    sides = tuple(min(side, n) for n in some.shape)
    sums = quality.window_sums(some.astype(np.float64), sides)
    first = np.unravel_index(int(np.argmax(np.rint(sums))), sums.shape)
    middle = np.argwhere(some[tuple(slice(i, i + n) for i, n in zip(first, sides))]).mean(axis=0) + first
    starts = [min(max(0, round(m) - n // 2), all_n - n) for m, n, all_n in zip(middle, sides, some.shape)]
    return tuple(slice(i, i + n) for i, n in zip(starts, sides))


def _kept_maps(x: np.ndarray, y: np.ndarray, use: np.ndarray, places: dict[str, np.ndarray], r: Result, box: Box,
               where: str) -> list[str]:
    """Where a slice breaks what is kept: all of it, and the window with the most places of original and copy."""
    from matplotlib.patches import Rectangle

    some = np.logical_or.reduce(list(places.values()))
    window = _window(some, _WINDOW)
    down, across = (slice(b.start + w.start, b.start + w.stop) for b, w in zip(box[-2:], window))
    said = f"{_counted(places)}; {where}"
    drawn = _map(_thinned(some.astype(float), use, True), _extent(box), r, f"{r.name}: what is kept is broken", "",
                 "binary", (0, 1), "neither")
    frame = [max(s.stop - s.start, n / 20) for s, n in zip((across, down), x.shape[::-1])]  # seen on a large map too
    left, top = ((s.start + s.stop - 1 - n) / 2 for s, n in zip((across, down), frame))
    drawn.axes[0].add_patch(Rectangle((left, top), *frame, fill=False, edgecolor=_RED, linewidth=1.5))
    found = [page.figure(drawn, f"Map of the values of {r.name} that break what is kept: {said}",
                         f"Black: values that break what is kept: {said}. The frame is about the part shown beside.")]
    both = np.concatenate([v[window][some[window]] for v in (x, y)]).astype(np.float64)
    low, high = float(both.min()), float(both.max())
    part = f"rows {down.start} to {down.stop - 1}, columns {across.start} to {across.stop - 1}"
    for values, what in ((x, "original"), (y, "reconstruction")):
        drawn = _map(np.where(use, values, np.nan)[window], _extent((down, across)), r, f"{r.name}: {what}, part",
                     _unit(r), "viridis", (low, high), "both")
        for name, broken in places.items():
            at = np.argwhere(broken[window])
            _mark(drawn.axes[0], at[:, 1] + across.start, at[:, 0] + down.start, name)
        drawn.legend(loc="outside lower center", ncols=len(places), fontsize=9)
        found.append(page.figure(drawn, f"Map of {r.name}, {what}, {part}, with a mark where what is kept is broken",
                                 f"{what.capitalize()}, {part}, with a mark where what is kept is broken; colours from "
                                 f"{low:.4g} to {high:.4g} {r.units or ''}".rstrip() + "."))
    return found


def _counted(places: dict[str, np.ndarray]) -> str:
    return ", ".join(f"{name} {np.count_nonzero(broken)}" for name, broken in places.items())


def _mark(axes: Any, across: Any, up: Any, name: str) -> None:
    """Marks of what is kept by a name, with a white edge: legible on dark and light."""
    from matplotlib.patheffects import withStroke

    axes.plot(across, up, dict(zip(modes.keeps(), _MARKS))[name], color="black", fillstyle="none", markersize=4,
              label=name, path_effects=[withStroke(linewidth=2.4, foreground="white")])


def _extent(box: Box) -> tuple[float, ...]:
    """The edges of the cells of the last two axes, as `imshow` takes them."""
    return box[-1].start - 0.5, box[-1].stop - 0.5, box[-2].stop - 0.5, box[-2].start - 0.5


def _line_pictures(x: np.ndarray, y: np.ndarray, use: np.ndarray, r: Result, box: Box,
                   limit_is: str = "bound", circle: str = "first broken value") -> list[str]:
    """Original and error along one axis, in the middle 2000 values or about the first broken one."""
    x, y, use = x.reshape(-1), y.reshape(-1), use.reshape(-1)
    along = -1 if (r.shape or (1,))[-1] > 1 else -2
    start = box[along].start
    at = r.first.index[along] - start if r.first else x.size // 2
    first = min(max(0, at - 1000), max(0, x.size - 2000))
    part = slice(first, first + 2000)
    index = np.arange(start + first, start + first + x[part].size)
    found = []
    error = y.astype(np.float64) - x
    of_error = [(error, "error", "-", _DARK)], f"{r.name}: error", f"error ({r.units})" if r.units else "error"
    for values, name, label in ((_both(x, y), r.name, _unit(r)), of_error):
        drawn, axes = page.new_figure()
        for line, what, style, colour in values:
            axes.plot(index, np.where(use[part], line[part], np.nan), style, color=colour, linewidth=1, label=what)
        if len(values) == 1 and 0 < r.limits[1] < math.inf and r.promise.mode != "pointwise_relative":
            for sign in (-1, 1):
                axes.axhline(sign * r.limits[1], color=_RED, linestyle=":", label=limit_is if sign > 0 else None)
        marked = len(values) == 1 and r.first is not None
        if marked:
            axes.plot([start + at], [error[at]], "o", markersize=13, fillstyle="none", color="black")
        axes.margins(y=0.22)  # room for the legend
        page.name_axes(axes, name, f"{r.axes[along]} (index)", label)
        axes.legend(fontsize=9)
        found.append(page.figure(drawn, f"{name} from index {index[0]} to {index[-1]} along {r.axes[along]}",
                                 f"{name}: {len(index)} values from index {index[0]} on."
                                 + f" The circle marks the {circle}." * marked))
    return found


def _both(x: np.ndarray, y: np.ndarray) -> list[tuple[np.ndarray, str, str, str]]:
    """The two lines of a picture, with names, styles and colours."""
    return [(x, "original", "-", _DARK), (y, "reconstruction", "--", _LIGHT)]


def _kept_line(x: np.ndarray, y: np.ndarray, use: np.ndarray, places: dict[str, np.ndarray], r: Result, box: Box,
               where: str) -> list[str]:
    """Where a row breaks what is kept: the part with the most places."""
    x, y, use = x.reshape(-1), y.reshape(-1), use.reshape(-1)
    places = {name: p.reshape(-1) for name, p in places.items()}
    (window,) = _window(np.logical_or.reduce(list(places.values())), _LINE)
    along = -1 if (r.shape or (1,))[-1] > 1 else -2
    index = np.arange(window.start, window.stop) + box[along].start
    drawn, axes = page.new_figure()
    for line, name, style, colour in _both(x, y):
        axes.plot(index, np.where(use, line, np.nan)[window], style, color=colour, linewidth=1, label=name)
    for name, broken in places.items():
        _mark(axes, index[broken[window]], y[window][broken[window]], name)
    page.name_axes(axes, f"{r.name}: what is kept is broken", f"{r.axes[along]} (index)", _unit(r))
    axes.locator_params(axis="x", nbins=6)
    drawn.legend(loc="outside lower center", ncols=5, fontsize=9)
    return [page.figure(drawn, f"{r.name}, original and reconstruction, from index {index[0]} to {index[-1]}, with a "
                        f"mark where what is kept is broken",
                        f"Values that break what is kept: {_counted(places)}; {where}. Here {len(index)} values from "
                        f"index {index[0]} on.")]


def _quantity(o: Outcome, source: Source) -> list[str]:
    """The outputs of a quantity about the one that moves most: of the original, of the copy, and their difference."""
    if o.planes is None or not o.index:
        return []
    was, became = o.planes
    kept = [k for k in range(len(o.of.shape)) if len(o.index) == len(o.of.shape) or k not in o.of.axes]
    ends = [slice(0, n) for n in was.shape]
    ends[0] = slice(o.first_row, o.first_row + len(was))
    box = (*(slice(i, i + 1) for i in o.index[: -was.ndim]), *ends)
    limit = o.of.quantity.limit
    name = title(o.of).replace(f" {limit!r}", "", 1)  # beside an axis the limit would be read as a factor
    r = Result(name, Promise("absolute", limit), was.dtype, tuple(s.stop for s in box),
               [source.axes()[k] for k in kept], northward=len(kept) > 1 and source.northward(kept[-2]),
               first=Found(o.index, "", "", o.error), limits=(limit, limit))
    use = np.isfinite(was) & np.isfinite(became)
    if was.ndim == 1 or min(was.shape) == 1:
        return _line_pictures(was, became, use, r, box, "limit", "worst output")
    lead = ", ".join(f"{name} {i}" for name, i in zip(r.axes, o.index[:-2]))
    where = "the whole" if len(kept) < len(o.of.shape) else f"rows from {r.axes[0]} {o.first_row} on"
    where = f"slice at {lead}" if lead else where
    return _maps(was, became, use, r, box, where, "limit", "worst output")


def _histogram(r: Result) -> str:
    q = r.figures
    assert q is not None
    counts = q.histogram[1:-1].astype(float)
    edges = np.linspace(-1, 1, quality.HISTOGRAM_BINS + 1)
    outside = int(q.histogram[0] + q.histogram[-1])
    drawn, axes = page.new_figure()
    axes.bar(edges[:-1], counts / max(1, q.n) * 100, width=np.diff(edges), align="edge", color="#3a76b4",
             label="values")
    for sign in (-1, 1):
        axes.axvline(sign, color=_RED, linestyle="--", linewidth=1.5, label="bound" if sign > 0 else None)
    if outside:
        for sign, n in ((-1, int(q.histogram[0])), (1, int(q.histogram[-1]))):
            if n:
                axes.annotate(f"{n} beyond", (sign * 1.06, 0), (sign * 1.06, 0.5), textcoords=("data", "axes fraction"),
                              rotation=90, ha="center", va="center", color=_RED, fontsize=9)
    axes.set_xlim(-1.14, 1.14)
    axes.margins(y=0.22)  # room for the legend
    page.name_axes(axes, f"{r.name}: error against the bound", "error / bound", "values (%)")
    axes.legend(fontsize=9, loc="upper left")
    what = f"{outside} of {q.n} values lie beyond the bound" if outside else f"all {q.n} values lie within the bound"
    return page.figure(drawn, f"Histogram of the error of {r.name} as a part of the bound; {what}",
                       f"How errors lie within the bound, over the whole dataset: {what}.")


def _spectra(r: Result) -> str:
    assert r.spectra is not None
    drawn, axes = page.new_figure()
    k = quality.wavenumbers()
    names = (("original", "-", _DARK), ("reconstruction", "--", _LIGHT), ("error", ":", _RED))
    for power, (name, style, colour) in zip(r.spectra, names):
        good = np.isfinite(power) & (power > 0)
        if good.any():
            axes.plot(k[good], power[good], style, color=colour, linewidth=1.6, label=name)
    axes.set_yscale("log")
    page.name_axes(axes, f"{r.name}: power spectrum", "wavenumber (cycles a cell; 0.5 is the grid's limit)",
                   f"power ({r.units})²" if r.units else "power (squared units)")
    axes.legend(fontsize=9)
    at = quality.reaches(r.spectra[0], r.spectra[2])
    says = ("the error stays below 1 % of the data's power" if at is None else
            f"the error has 1 % of the data's power from {at:.3f} cycles a cell")
    slices = f"{max(1, r.slices)} {'slice' if r.slices < 2 else 'slices'}"
    return page.figure(drawn, f"Power spectra of {r.name}: original, reconstruction and error by wavenumber; {says}",
                       f"Mean power spectrum of {slices}: {says}.")
