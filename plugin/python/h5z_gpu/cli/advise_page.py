# SPDX-License-Identifier: MIT OR Apache-2.0
"""The page of `advise`: what is proposed and why, curves of size and error with the choice marked, and the commands."""

from __future__ import annotations

import math
from typing import Any

from ..filters import Lossless
from . import common, page
from .advice import Advice, Kept
from .advise_text import bound_text, prediction

_STYLES = {"auto": ("-o", "#1d5fa8"), "szx": ("--s", "#d97706"), "planes": (":^", "#2f7d4f")}


def write(path: str, file: str, found: list[Advice], kept: list[Kept], commands: list[tuple[str, str]]) -> None:
    """Writes the page."""
    body = [
        f"<h1>{page.text(file)}</h1>",
        "<p>What a bound would cost and give, from sampled chunks. Nothing was written.</p>",
    ]
    rows = []
    for k, a in enumerate(found):
        link = page.Html(f'<a href="#v{k}">{page.text(a.name)}</a>')
        assert a.trial is not None
        psnr = a.trial.psnr(a.wide)
        rows.append([link, bound_text(a.how), f"{a.ratio:.1f}", common.size(a.raw), common.size(a.stored),
                     f"{psnr:.1f}" if math.isfinite(psnr) else "exact"])
    if rows:
        body.append(page.table(rows, ["variable", "bound", "ratio", "from", "to", "PSNR (dB)"], [2, 3, 4, 5]))
    else:
        body.append("<p>No variable may lose a bit.</p>")
    for k, a in enumerate(found):
        body += [f'<h2 id="v{k}">{page.text(a.name)}: {page.text(bound_text(a.how))}</h2>', page.table(prediction(a))]
        if a.curves:
            body.append(f'<div class="figures">{_distortion(a)}{_ratios(a)}</div>')
    if kept:
        body.append("<h2>Exact</h2>")
        body.append(page.table([[k.name, f"{k.why}{f' ({k.note})' if k.note else ''}"] for k in kept],
                               ["dataset", "because it"]))
    if commands:
        body.append("<h2>How to apply it</h2>")
        body += [f"<p>{page.text(name)}</p><pre>{page.text(text)}</pre>" for name, text in commands]
    page.write(path, f"{file}: advice on bounds", body)


def _said(a: Advice) -> str:
    """What the choice makes of the values of the curves, and that these are not all: another codec may be chosen for
    them."""
    here, whole = a.part, a.trial
    assert here is not None and whole is not None

    def found(trial: Any, ratio: float) -> str:
        psnr = trial.psnr(a.wide)
        return f"ratio {ratio:.1f} by {trial.codec}, {f'{psnr:.1f} dB' if math.isfinite(psnr) else 'exact'}"

    return (f"Curves of {here.raw // a.dtype.itemsize} values from the middle of a chunk. For these the choice, "
            f"{bound_text(a.how)}, has {here.bits(a.dtype.itemsize):.2f} bits a value: {found(here, here.ratio)}; for "
            f"the whole variable, as in the table: {found(whole, a.ratio)}")


def _distortion(a: Advice) -> str:
    """Rate and distortion: bits a value against PSNR."""
    drawn, axes = page.new_figure(5.6, 4.0)
    item = a.dtype.itemsize
    for codec, points in a.curves.items():
        seen = [p for p in points if math.isfinite(p.psnr(a.wide))]
        if seen:
            _curve(axes, codec, [p.bits(item) for p in seen], [p.psnr(a.wide) for p in seen])
    if a.lossless is not None:
        axes.axvline(a.lossless.bits(item), color="#566072", linestyle="-.", linewidth=1.2, label="lossless")
    chosen = a.part
    if chosen is not None and math.isfinite(chosen.psnr(a.wide)):
        axes.plot([chosen.bits(item)], [chosen.psnr(a.wide)], "*", color="#9a1c12", markersize=15, label="the choice")
    axes.set_xscale("log")
    _plain_ticks(axes.xaxis)
    page.name_axes(axes, f"{a.name}: size and error", f"bits a value (of {8 * item}), fewer is smaller",
                   "PSNR (dB), higher is better")
    axes.grid(alpha=0.3)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=9)
    return page.figure(drawn, f"Rate-distortion curves of {a.name} for {', '.join(a.curves)}: bits a value and PSNR. "
                       f"{_said(a)}",
                       f"{_said(a)}.")


def _curve(axes: Any, codec: str, across: list[float], up: list[float]) -> None:
    style, colour = _STYLES[codec]
    axes.plot(across, up, style, color=colour, markersize=4, linewidth=1.5, label=codec)


def _ratios(a: Advice) -> str:
    """The ratio against the bound."""
    drawn, axes = page.new_figure(5.6, 4.0)
    mode = bound_text(a.how).split(":")[0].replace("_", "-")
    for codec, points in a.curves.items():
        _curve(axes, codec, [_bound(p) for p in points], [p.ratio for p in points])
    if a.lossless is not None:
        axes.axhline(a.lossless.ratio, color="#566072", linestyle="-.", linewidth=1.2, label="lossless")
    chosen = a.part
    if chosen is not None:
        axes.plot([_bound(chosen)], [chosen.ratio], "*", color="#9a1c12", markersize=15, label="the choice")
    if mode != "psnr":
        axes.set_xscale("log")
    axes.set_yscale("log")
    _plain_ticks(axes.yaxis)
    unit = {"absolute": f" ({a.units})" if a.units else " (units of the data)", "psnr": " (dB)"}.get(mode, " (part)")
    page.name_axes(axes, f"{a.name}: ratio by bound", f"{mode} bound{unit}", "ratio (raw bytes / stored bytes)")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=9)
    return page.figure(drawn, f"Compression ratio of {a.name} against the {mode} bound for {', '.join(a.curves)}",
                       "Ratio against the bound, of the same values.")


def _bound(trial: Any) -> float:
    assert not isinstance(trial.how, Lossless)
    return float(bound_text(trial.how).split(":")[1])


def _plain_ticks(axis: Any) -> None:
    """Numbers in place of powers of ten where an axis spans a few decades."""
    from matplotlib.ticker import FuncFormatter, LogLocator

    axis.set_major_locator(LogLocator(base=10, subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
    axis.set_minor_formatter(FuncFormatter(lambda v, _: ""))
