# SPDX-License-Identifier: MIT OR Apache-2.0
"""What `verify` says of one dataset, in words."""

from __future__ import annotations

from .. import modes
from . import common, quality
from .compare import Result


def verdict(r: Result) -> str:
    """One line on the promise."""
    if r.held:
        return "held"
    if r.first is None:
        at, psnr = r.noisy[0]
        return f"BROKEN: the PSNR of {len(r.noisy)} chunks is too low; that of the chunk at {_at(at)} is {psnr:.3f} dB"
    what = "value" if r.broken == 1 else "values"
    kind = ""
    if r.special_broken:
        kind = f", {r.special_broken} of them NaN, infinite or fill values" if r.special_broken < r.broken else (
            ", which had to keep its bits" if r.broken == 1 else ", which had to keep their bits")
    by = {name: n for name, n in zip(modes.keeps(), r.kept_broken) if n}
    kind += f" ({', '.join(f'{name}: {n}' for name, n in by.items())})" if by else ""
    return (f"BROKEN for {r.broken} {what}{kind}; the first, at {_at(r.first.index)}: {r.first.original} became "
            f"{r.first.became}")


def _at(index: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, index))}]"


def lines(r: Result) -> list[tuple[str, str]]:
    """What was found, as names and texts."""
    found: list[tuple[str, str]] = [("note", text) for text in r.notes]
    q, unit = r.figures, f" {r.units}" if r.units else ""
    if q is not None and q.n and r.promise.mode != "lossless":
        share = f", {q.share:.4f} of the bound" if q.share else ""
        found.append(("largest error", f"{q.largest:.6g}{unit}{share}"))
        found.append(("RMS error", f"{q.rms:.4g}{unit}; mean {q.mean_e:.2g}"))
        found.append(("PSNR", f"{q.psnr:.2f} dB"))
        if r.ssim is not None:
            found.append(("SSIM", f"{r.ssim:.8f} ({r.slices} {'slice' if r.slices == 1 else 'slices'})"))
        found.append(("correlation", f"{q.correlation:.12f}"))
        lags = [f"{name} {v:.3f}" for name, v in zip(r.axes, q.autocorrelation()) if v is not None]
        if lags:
            found.append(("autocorrelation of the error, lag 1", ", ".join(lags)))
        if r.spectra is not None and q.squares:
            at = quality.reaches(r.spectra[0], r.spectra[2])
            what = "nowhere" if at is None else f"from {at:.3f} cycles a cell"
            found.append(("error has 1 % of the data's power", what))
    if r.special:
        every = ((r.nan, "NaN"), (r.infinite, "infinite"), (r.fill, "fill"))
        counts = ", ".join(f"{n} {name}" for n, name in every if n)
        bits = "all kept bit for bit" if not r.special_broken else f"{r.special_broken} with other bits"
        found.append(("special values", f"{counts}; {bits}"))
    if r.into_fill:
        found.append(("note", f"{r.into_fill} ordinary values came back as the fill value, within the bound"))
    if r.stored:
        ratio = common.ratio(r.raw, r.stored)
        found.append(("size", f"{common.size(r.raw)} as {common.size(r.stored)}, ratio {ratio}"))
    return found


def promise_text(r: Result) -> str:
    """What was promised, and by whom."""
    if r.promise.given:
        return f"{r.promise} (given)"
    return str(r.promise)
