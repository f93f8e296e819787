# SPDX-License-Identifier: MIT OR Apache-2.0
"""The page of `verify`: slices, the map of the error, its histogram against the bound, and power spectra."""

from __future__ import annotations

import math
from typing import Any, Optional

import numpy as np

from . import page, quality
from .boxes import Box
from .common import Problem
from .compare import Result, slice_boxes, slice_pair
from .sources import Source
from .verify_text import lines, promise_text, verdict

_SIDE = 480  # longest side of a picture, in cells


def write(path: str, original: str, compressed: str, found: list[tuple[Source, Source, Result]], problems: list[str],
          more: list[str]) -> None:
    """Writes the page; the sources are still open."""
    broken = [r for _, _, r in found if not r.held]
    good = not broken and not problems
    words = (
        "every promise is kept"
        if good
        else f"{len(broken)} of {len(found)} datasets break their promise"
        if broken
        else ("not everything could be compared")
    )
    body = [f"<h1>{page.text(compressed)}</h1>",
            f'<p>compared with {page.text(original)}: <span class="{"held" if good else "broken"}">{words}</span></p>']
    body += [f'<p><span class="broken">not compared</span> {page.text(p)}</p>' for p in problems]
    rows = []
    for k, (_, _, r) in enumerate(found):
        mark = page.Html(f'<span class="{"held" if r.held else "broken"}">{"held" if r.held else "BROKEN"}</span>')
        name = page.Html(f'<a href="#d{k}">{page.text(r.name)}</a>') if _pictured(r) else r.name
        q = r.figures
        lossy = q is not None and q.n > 0 and r.promise.mode != "lossless"
        rows.append([name, mark, promise_text(r), f"{q.largest:.4g}" if q and lossy else "", f"{q.psnr:.1f}" if q
                     and lossy else "", f"{r.raw / r.stored:.2f}" if r.stored else ""])
    body.append(page.table(rows, ["dataset", "verdict", "promised", "largest error", "PSNR (dB)", "ratio"], [3, 4, 5]))
    if more:
        body.append(f'<p class="small">Only in the compressed file, not compared: {page.text(", ".join(more))}</p>')
    for k, (a, b, r) in sorted(enumerate(found), key=lambda each: each[1][2].held):  # what is broken comes first
        if _pictured(r):
            with np.errstate(all="ignore"):
                body += [f'<h2 id="d{k}">{page.text(r.name)}</h2>', *_section(a, b, r)]
    page.write(path, f"{compressed}: what was lost", body)


def _pictured(r: Result) -> bool:
    """Whether there is something to show: loss, or a broken promise, of numbers."""
    return r.figures is not None and r.figures.n > 0 and (r.promise.mode != "lossless" or not r.held)


def _section(a: Source, b: Source, r: Result) -> list[str]:
    kind = "held" if r.held else "broken"
    shape = " × ".join(f"{name} {n}" for name, n in zip(r.axes, r.shape or ()))
    body = [f'<p><span class="{kind}">{page.text(verdict(r))}</span></p>',
            f'<p class="small">{page.text(r.dtype.name)}, {page.text(shape)}; promised: '
            f'{page.text(promise_text(r))}</p>',
            page.table(lines(r))]
    pictures = []
    try:
        box, where = _shown_slice(r)
        x, y, use = slice_pair(a, b, box, r.promise.fill)
        pictures += (
            _line_pictures(x, y, use, r, box) if x.ndim == 1 or min(x.shape) == 1 else _maps(x, y, use, r, box, where)
        )
    except Problem as problem:
        body.append(f'<p><span class="broken">no picture</span> {page.text(problem)}</p>')
    q = r.figures
    if q is not None and q.share:
        pictures.append(_histogram(r))
    if r.spectra is not None and np.isfinite(r.spectra[0]).any():
        pictures.append(_spectra(r))
    return [*body, f'<div class="figures">{"".join(pictures)}</div>']


def _shown_slice(r: Result) -> tuple[Box, str]:
    """The slice that is shown: with the first broken value, or else from the middle."""
    every = slice_boxes(r.shape or (), 1)
    (box,) = every
    if r.first is None:
        lead = [f"{name} {s.start}" for name, s in zip(r.axes, box[:-2])]
        return box, f"slice at {', '.join(lead)}" if lead else "the whole"
    index = r.first.index
    ends = []
    for i, s, n in zip(index[-2:], box[-2:], (r.shape or ())[-2:]):
        length = s.stop - s.start
        start = min(max(0, i - length // 2), n - length)
        ends.append(slice(start, start + length))
    lead = [f"{name} {i}" for name, i in zip(r.axes, index[:-2])]
    return tuple(slice(i, i + 1) for i in index[:-2]) + tuple(ends), (
        f"slice at {', '.join(lead)}, with the first broken value" if lead else "with the first broken value")


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


def _maps(x: np.ndarray, y: np.ndarray, use: np.ndarray, r: Result, box: Box, where: str) -> list[str]:
    """Original, reconstruction and error as maps."""
    if not use.any():
        return []
    error = y.astype(np.float64) - x
    seen = x[use].astype(np.float64)
    low, high = (float(v) for v in np.percentile(seen, [0.5, 99.5]))
    if not high > low:
        low, high = float(seen.min()), float(seen.max())
    extent = (box[-1].start - 0.5, box[-1].stop - 0.5, box[-2].stop - 0.5, box[-2].start - 0.5)
    found = []
    for values, what in ((x, "original"), (y, "reconstruction")):
        drawn = _map(
            _thinned(values, use, False), extent, r, f"{r.name}: {what}", _unit(r), "viridis", (low, high), "both"
        )
        found.append(page.figure(drawn, f"Map of {r.name}, {what}, {where}; colours from {low:.4g} to {high:.4g} "
                                 f"{r.units or ''}",
                                 f"{what.capitalize()}, {where}. Missing values are grey."))
    limit = r.limits[1]
    if r.promise.mode == "pointwise_relative":
        error = np.where(error == 0, 0, error / np.abs(x))
        label, unit = "error / value", "of the value"
    else:
        label, unit = f"error ({r.units})" if r.units else "error", r.units or ""
    finite = np.abs(error[use & np.isfinite(error)])
    most = float(finite.max()) if finite.size else 0.0
    reach = (limit if 0 < limit < math.inf else most) or 1.0
    drawn = _map(_thinned(error, use, True), extent, r, f"{r.name}: error", label, "RdBu_r", (-reach, reach),
                 "both" if most > reach else "neither", r.first.index[-2:] if r.first else None)
    bound = (
        f"colours end at the bound, {reach:.4g} {unit}"
        if 0 < limit < math.inf
        else f"colours end at {reach:.4g} {unit}"
    )
    found.append(page.figure(drawn, f"Map of the error of {r.name}, {where}; {bound}; the largest in this slice is "
                             f"{most:.4g}",
                             f"Error (reconstruction less original), {where}; {bound}."
                             + (" The circle marks the first broken value." if r.first else "")))
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
    bar = drawn.colorbar(shown, ax=axes, extend=extend, shrink=0.9)
    bar.set_label(label, fontsize=10)
    bar.ax.tick_params(labelsize=9)
    if mark is not None:
        axes.plot([mark[-1]], [mark[0]], "o", markersize=13, fillstyle="none", color="black", markeredgewidth=1.5)
    return drawn


def _line_pictures(x: np.ndarray, y: np.ndarray, use: np.ndarray, r: Result, box: Box) -> list[str]:
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
    for values, title, label in (([(x, "original", "-"), (y, "reconstruction", "--")], r.name, _unit(r)),
                                 ([(error, "error", "-")], f"{r.name}: error", f"error ({r.units})" if r.units
                                  else "error")):
        drawn, axes = page.new_figure()
        for line, name, style in values:
            axes.plot(index, np.where(use[part], line[part], np.nan), style, linewidth=1, label=name)
        if len(values) == 1 and 0 < r.limits[1] < math.inf and r.promise.mode != "pointwise_relative":
            for sign in (-1, 1):
                axes.axhline(sign * r.limits[1], color="#9a1c12", linestyle=":", label="bound" if sign > 0 else None)
        page.name_axes(axes, title, f"{r.axes[along]} (index)", label)
        axes.legend(fontsize=9)
        found.append(page.figure(drawn, f"{title} from index {index[0]} to {index[-1]} along {r.axes[along]}",
                                 f"{title}: {len(index)} values from index {index[0]} on."))
    return found


def _histogram(r: Result) -> str:
    q = r.figures
    assert q is not None
    counts = q.histogram[1:-1].astype(float)
    edges = np.linspace(-1, 1, quality.HISTOGRAM_BINS + 1)
    outside = int(q.histogram[0] + q.histogram[-1])
    drawn, axes = page.new_figure()
    axes.bar(
        edges[:-1], counts / max(1, q.n) * 100, width=np.diff(edges), align="edge", color="#3a76b4", label="values"
    )
    for sign in (-1, 1):
        axes.axvline(sign, color="#9a1c12", linestyle="--", linewidth=1.5, label="bound" if sign > 0 else None)
    if outside:
        for sign, n in ((-1, int(q.histogram[0])), (1, int(q.histogram[-1]))):
            if n:
                axes.annotate(f"{n} beyond", (sign * 1.06, 0), (sign * 1.06, 0.5), textcoords=("data", "axes fraction"),
                              rotation=90, ha="center", va="center", color="#9a1c12", fontsize=9)
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
    names = (("original", "-", "#1c2430"), ("reconstruction", "--", "#d97706"), ("error", "-", "#9a1c12"))
    for power, (name, style, colour) in zip(r.spectra, names):
        good = np.isfinite(power) & (power > 0)
        if good.any():
            axes.plot(k[good], power[good], style, color=colour, linewidth=1.6, label=name)
    axes.set_yscale("log")
    page.name_axes(axes, f"{r.name}: power spectrum", "wavenumber (cycles a cell; 0.5 is the grid's limit)",
                   f"power ({r.units})²" if r.units else "power (squared units)")
    axes.legend(fontsize=9)
    at = quality.reaches(r.spectra[0], r.spectra[2])
    says = (
        "the error stays below 1 % of the data's power"
        if at is None
        else f"the error has 1 % of the data's power from {at:.3f} cycles a cell"
    )
    slices = f"{max(1, r.slices)} {'slice' if r.slices < 2 else 'slices'}"
    return page.figure(drawn, f"Power spectra of {r.name}: original, reconstruction and error by wavenumber; {says}",
                       f"Mean power spectrum of {slices}: {says}.")
