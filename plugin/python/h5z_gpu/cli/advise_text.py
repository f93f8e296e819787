# SPDX-License-Identifier: MIT OR Apache-2.0
"""What `advise` says of its advice: as text, and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import keep
from ..filters import How, Lossless
from . import common
from .common import say
from .quantities import found_as_json, show_found

if TYPE_CHECKING:
    from ..search import Found
    from .advice import Advice, Kept
    from .trials import Trial


def bound_text(how: How) -> str:
    """A bound as it is typed: absolute:0.01, absolute:0.01:sign."""
    if isinstance(how, Lossless):
        return "lossless"
    return ":".join(filter(None, (how.mode.keyword, f"{how.bound!r}", keep.text(how.keep))))


def prediction(a: Advice) -> list[tuple[str, str]]:
    """What is predicted, as names and texts."""
    t = a.trial
    assert t is not None
    unit = f" {a.units}" if a.units else ""
    sure = (" (all chunks tried)" if len(t.stored) >= a.chunks else
            f" (± {100 * 2 * t.spread:.0f} %, {len(t.stored)} of {a.chunks} chunks tried)")
    found = [("why", a.proposal.reason),
             ("ratio", f"{a.ratio:.2f}{sure}: {common.size(a.raw)} to {common.size(a.stored)}"),
             ("error", f"largest {t.largest:.4g}{unit}, PSNR {t.psnr(a.wide):.1f} dB" if t.largest else "none"),
             ("how", f"chunks {'x'.join(map(str, a.chunk))}, codec "
              f"{a.how.codec}{f' (mostly {t.codec})' if a.how.codec == 'auto' else ''}, "
              f"{common.size(t.speed)}/s here")]
    auto = a.curves.get("auto", [])
    same = next((p for p in auto if bound_text(p.how) == bound_text(a.how)), None)
    if same:
        # Tried on a part of one chunk, which may be easier or harder than the variable: it is so at the proposed bound
        # too.
        texts = (f"{bound_text(p.how).split(':')[1]}: {p.ratio * a.ratio / same.ratio:.1f}" for p in auto)
        found.append(("other bounds", f"about {', '.join(texts)}"))
    if len(a.codecs) > 1:
        found.append(("codecs", ", ".join(f"{p.how.codec} {p.ratio * a.of_file:.1f}" for p in a.codecs)
                      + (f", lossless {a.lossless.ratio * a.of_file:.2f}" if a.lossless else "")))
    if len(a.shapes) > 1:
        found.append(("chunks", ", ".join(f"{'x'.join(map(str, s))} {p.ratio * a.of_file:.1f}" for s, p in a.shapes)))
    return found


def show(path: str, total: int, found: list[Advice], kept: list[Kept], commands: list[tuple[str, str]],
         searched: list[Found]) -> None:
    show_found(searched)
    for a in found:
        say(f"{a.name}: {a.dtype.name} {'x'.join(map(str, a.shape))}: {bound_text(a.how)}")
        for name, text in prediction(a):
            say(f"    {name}: {text}")
    for k in kept:
        how = "compressed without loss" if k.at_once else f"{k.name}=lossless saves about {common.size(k.saved)} more"
        say(f"{k.name}: exact, as it {k.why}{f' ({k.note})' if k.note else ''}{f'; {how}' if k.saved else ''}")
    if not found:
        gain = sum(k.saved for k in kept)
        say("No variable may lose a bit; h5z-gpu repack --lossless "
            + (f"saves about {common.size(gain)} of {common.size(total)}." if gain
               else "would not make the file smaller either."))
        return
    saved = sum(a.before - a.stored for a in found) + sum(k.saved for k in kept if k.at_once)
    say(f"{path}: {common.size(total)} to about {common.size(max(0.0, total - saved))}")
    for name, text in commands:
        say("", f"# {name}", *text.split("\n"))


def as_json(path: str, found: list[Advice], kept: list[Kept], commands: list[tuple[str, str]],
            searched: list[Found]) -> dict[str, Any]:
    """The advice, as JSON can hold it."""

    def point(t: Trial, a: Advice) -> dict[str, Any]:
        return {"bound": bound_text(t.how), "codec": t.how.codec, "ratio": t.ratio,
                "bits_per_value": t.bits(a.dtype.itemsize),
                "largest_error": t.largest, "psnr": t.psnr(a.wide), "bytes_per_second": t.speed}

    every = []
    for a in found:
        p, t = a.proposal, a.trial
        assert t is not None
        every.append({
            "name": a.name, "type": a.dtype.str, "shape": a.shape, "bound": bound_text(a.how), "codec": a.how.codec,
            "chunk": a.chunk,
            "reason": p.reason, "range": [p.low, p.high], "noise": p.noise, "step": p.step, "raw_bytes": a.raw,
            "predicted": {**point(t, a), "ratio": a.ratio, "stored_bytes": a.stored, "spread": t.spread,
                          "chunks": len(t.stored), "of": a.chunks},
            "codecs": [{"codec": c.how.codec, "ratio": c.ratio * a.of_file, "bytes_per_second": c.speed}
                       for c in a.codecs],
            "lossless_ratio": a.lossless.ratio * a.of_file if a.lossless else None,
            "unpacked": a.packed,
            "chunks": [{"chunk": s, "ratio": c.ratio * a.of_file} for s, c in a.shapes],
            "curves": {codec: [point(c, a) for c in points] for codec, points in a.curves.items()},
        })
    return {"file": path, "variables": every, "exact": [{"name": k.name, "why": k.why, "note": k.note} for k in kept],
            "quantities": list(map(found_as_json, searched)), "commands": dict(commands)}
