# SPDX-License-Identifier: MIT OR Apache-2.0
"""Proposes a bound for each variable from the data itself, and predicts ratio, speed and error.

What values and attributes say of their own precision (significant digits, steps of packing, noise between neighbours,
range) gives a bound and a sentence why. Codecs, bounds and chunk shapes are then tried on sampled chunks; nothing is
written. Coordinates, integers and the like stay exact. The last lines are commands that apply the advice.

    h5z-gpu advise in.nc
    h5z-gpu advise in.nc tas=absolute:0.05 --html advice.html       with a bound of one's own
    h5z-gpu advise in.nc --keep range                               with ranges kept beside proposed bounds
    h5z-gpu advise in.nc --quantity 'mean(tas, time) 1e-4'          with the loosest bounds that keep this mean so
    h5z-gpu advise in.nc --write-bounds bounds.toml                 for h5z-gpu repack --bounds, many files

The advice is about what a file can tell. What the data is for, nobody but its user knows.
"""

from __future__ import annotations

import argparse
import json
import math
import os
from typing import TYPE_CHECKING, Any, Optional

import numpy as np

from .. import modes
from ..chunks import chunk_shape
from ..conventions import text_of
from ..progress import bar
from ..filters import Lossless, Lossy
from ..quantity import usable
from ..ranges import whole_chunk
from ..whole import judge, put
from . import advise_text, common, quality
from .advice import Advice, Kept
from .builds import open_data
from .common import Problem, say
from .promise import Asked, add_keep, as_filter, keep_from, mixed, named_bounds
from .quantities import add_quantities, bounds_for, quantities_from

if TYPE_CHECKING:
    import h5py

    from ..search import Found
    from .trials import Trial

FIRST_BYTES = 8 << 20
"""Of each variable: sampled for the proposal and the choice of codec and chunks."""
TRIED_BYTES = 96 << 20
"""Of all variables together: sampled for each codec."""
CURVE_BYTES = 24 << 20
"""Of all variables together: sampled for each point of the curves."""
MOST_BYTES = 320 << 20
"""Of all variables together: sampled for the prediction."""
LEAST_BYTES = 64 << 20
"""Of each variable: may be sampled for the prediction, where chunks differ."""
ENOUGH = 0.02
"""Standard error of the predicted size at which sampling stops."""
FACTORS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)
CURVES = ("auto", "szx", "planes")


def add(parser: argparse.ArgumentParser) -> None:
    """The arguments."""
    parser.add_argument("file", metavar="FILE", help="an HDF5 or netCDF-4 file; only read")
    parser.add_argument("bounds", metavar="VAR=MODE:BOUND[:KEEP]", nargs="*", default=[],
                        help="a bound to try in place of a proposal, such as tas=absolute:0.05")
    add_keep(parser, "beside bounds that are proposed, but point-wise ones")
    add_quantities(parser, "search the loosest bounds with which this moves by no more than LIMIT")
    parser.add_argument("--unpack", action="store_true",
                        help="advise on packed integers (scale_factor, add_offset) too, as floating-point numbers")
    parser.add_argument("--html", metavar="FILE", help="write a page with the curves, in one file (needs matplotlib)")
    parser.add_argument("--write-bounds", metavar="FILE", help="write a table of the bounds, for repack --bounds; FILE "
                        "must not exist")
    parser.add_argument("--json", action="store_true", help="print the advice as JSON")
    mixed(parser)


def run(args: argparse.Namespace) -> int:
    """Advises; the exit status."""
    if args.html:
        from . import page

        page.ready(args.html)
    if args.write_bounds:
        with common.writing(args.write_bounds):
            judge(args.write_bounds, "x")
    named, quantities = named_bounds(args.bounds), quantities_from(args)
    with open_data(args.file) as file:
        kept: list[Kept] = []
        searched: list[Found] = []
        if quantities:
            named, searched = bounds_for(file, quantities, named, keep=keep_from(args))
        found = advise(file, named, kept=kept, unpack=args.unpack, keep=keep_from(args),
                       fixed=frozenset(name for each in searched for name in each.hows))
        total = os.path.getsize(args.file)
        netcdf = "_NCProperties" in file.attrs or any(k.why == "is a coordinate" for k in kept)
        from .apply import lines

        commands = lines(args.file, found, netcdf)
    if args.html:
        from . import advise_page

        advise_page.write(args.html, args.file, found, kept, commands)
    if args.write_bounds:
        from .apply import table

        with common.writing(args.write_bounds):
            put(args.write_bounds, table(args.file, found, kept), "x")
    if args.json:
        print(json.dumps(quality.plain(advise_text.as_json(args.file, found, kept, commands, searched)), indent=1))
        return 0
    advise_text.show(args.file, total, found, kept, commands, searched)
    if args.html:
        say("", f"The page is {args.html}")
    return 0


def advise(file: h5py.File, named: Optional[dict[str, Asked]] = None, *, quick: bool = False,
           kept: Optional[list[Kept]] = None, unpack: bool = False,
           keep: tuple[str, ...] = (), fixed: frozenset[str] = frozenset()) -> list[Advice]:
    """Advice on each variable of a file that may lose bits; `kept` takes the datasets that stay as they are.

    `named`, modes and bounds by name, is in place of proposals; the bounds of those in `fixed` hold for the chunks,
    codec and fill value of `repack` alone. With `quick` there is only what is to be done: no curves, no prediction.
    With `unpack` packed integers are looked at as the values that they stand for. `keep` is kept beside proposed bounds
    that take it.
    """
    from .objects import datasets
    from .integers import compresses, saved
    from .packed import Unpacked, packing
    from .roles import Roles, lossy_already

    named, kept = dict(named or {}), [] if kept is None else kept
    roles, chosen = Roles(file), []
    for dataset in datasets(file):
        name = dataset.name.strip("/")
        packed = packing(dataset)
        unpacks = unpack and packed is not None and not dataset.is_virtual
        why = roles.why_exact(dataset, unpacked=unpacks)
        if why is None and unpacks and packed is not None and lossy_already(dataset) is None:
            chosen.append(Unpacked(dataset, packed))
        elif why is not None or dataset.is_virtual:
            note = ""
            if packed is not None and why == "holds integers":
                note = (f"packed in steps of {packed.step:g}: as floating-point numbers within {packed.step / 2:g} "
                        "they often take less room, see --unpack")
            kept.append(Kept(name, why or "is a virtual dataset", note))
            if not quick and compresses(dataset, lossless=True):
                kept[-1].saved, kept[-1].at_once = saved(dataset), compresses(dataset, lossless=False)
        elif (lost := lossy_already(dataset)) is not None:
            kept.append(Kept(name, f"is lossy already, by {lost}", "a second loss would add to the first"))
        elif dataset.id.get_type().get_size() != dataset.dtype.itemsize:
            # bfloat16: HDF5 converts it to float32, and trials of that would not be of what is stored.
            kept.append(Kept(name, "is of a type that NumPy has not", f"repack takes {name}=absolute:BOUND"))
        else:
            chosen.append(dataset)
    unknown = sorted(set(named) - {d.name.strip("/") for d in chosen})
    if unknown:
        where = next((k.why for k in kept if k.name == unknown[0]), "is not there")
        raise Problem(f"{file.filename}: {unknown[0]} {where}; no bound can be tried")
    budget, found = MOST_BYTES, []
    most = min(FIRST_BYTES, TRIED_BYTES // max(1, len(chosen)))
    sizes = sum(d.size * d.dtype.itemsize for d in chosen)
    with bar(None, sizes, "advise", "") as done:
        for dataset in chosen:
            share = int(budget * dataset.size * dataset.dtype.itemsize / max(1, sizes))
            asked = named.get(dataset.name.strip("/"))
            found.append(_advise(dataset, asked, keep, quick, share, most, CURVE_BYTES // len(chosen),
                                 dataset.name.strip("/") in fixed))
            done(dataset.size * dataset.dtype.itemsize)
    return found


def _advise(dataset: h5py.Dataset, asked: Optional[Asked], keep: tuple[str, ...], quick: bool, share: int,
            first_bytes: int, for_curves: int, fixed: bool = False) -> Advice:
    from .packed import Unpacked
    from .proposal import propose, sentinel
    from .roles import chunk_of, protected
    from .trials import Sampler, attempt

    units = text_of(dataset, "units") or ""
    packed = dataset.packing if isinstance(dataset, Unpacked) else None
    fill, against = protected(dataset, by_range=asked is not None and modes.named(asked.mode).of == "range")
    if packed is not None:
        fill, against = np.full((), np.nan, packed.dtype), None
    chunk = chunk_of(dataset)
    bytes_each = math.prod(chunk) * dataset.dtype.itemsize
    sampler = Sampler(dataset, chunk)
    first = [sampler.read(box) for box in sampler.draw(max(2, first_bytes // bytes_each))]
    own = fill is not None or fixed
    hidden = None if own else sentinel(np.concatenate([b[np.isfinite(b)] for b in first]))
    fill = hidden if fill is None else fill
    proposal = propose(first, [usable(b, fill) for b in first], dataset, units)
    if hidden is not None:
        proposal.reason += f". {hidden} looks like a missing value, which the file does not declare: it is kept exactly"
    if packed is not None and isinstance(proposal.how, Lossy):
        proposal.how, proposal.step = Lossy(absolute=packed.step / 2), packed.step
        proposal.reason = f"packed as {packed.packed.name} in steps of {packed.step:g}, and rounded by up to half of it"
    if keep and isinstance(proposal.how, Lossy):
        if proposal.how.mode.takes_keep:
            proposal.how = Lossy(**{**proposal.how.get_config(), "keep": keep})
        elif "range" in keep and asked is None:
            proposal.reason += ". Such a bound keeps signs and zeros by itself, but not the range"
    if asked is not None:
        proposal.how, proposal.reason = as_filter(asked), "as the quantities allow" if fixed else "as you asked"
    if isinstance(proposal.how, Lossy) and against:
        proposal.how, proposal.reason = Lossless(), against
    raw = dataset.size * (dataset.dtype if packed is None else packed.packed).itemsize
    advice = Advice(dataset.name.strip("/"), dataset.dtype, dataset.shape, units, proposal.how, chunk, proposal,
                    fill, raw, dataset.id.get_storage_size(), chunk, hidden is not None,
                    packed is not None, fixed)
    whole = [whole_chunk(b, chunk, fill) for b in first]
    _choose(advice, whole, first, dataset)
    if fixed:
        advice.how, advice.chunk = proposal.how, chunk
    if quick:
        return advice
    if advice.chunk != chunk:
        sampler = Sampler(dataset, advice.chunk)
        bytes_each = math.prod(advice.chunk) * dataset.dtype.itemsize
    advice.chunks = sampler.total
    _curves(advice, max(whole, key=lambda b: float(np.count_nonzero(usable(b, fill)))), for_curves)
    _predict(advice, sampler, max(share, LEAST_BYTES), bytes_each, attempt)
    return advice


def _choose(advice: Advice, whole: list[np.ndarray], first: list[np.ndarray], dataset: h5py.Dataset) -> None:
    """The codec and the shape of chunks. The writer's own choice stays where nothing is better by a tenth."""
    from .trials import attempt, cut_up

    how, fill = advice.how, advice.fill
    best = attempt(whole, how, fill, timed=True)
    advice.lossless = attempt(whole, Lossless(), fill, timed=True, errors=False) if isinstance(how, Lossy) else best
    advice.codecs = [best]
    if isinstance(how, Lossy):
        config = how.get_config()
        for codec in how.mode.codecs:
            if codec in ("auto", "fast", "dense"):  # fast is planes or szx, and small tries dense
                continue
            advice.codecs.append(attempt(whole, Lossy(**{**config, "codec": codec}), fill, timed=True, errors=False))
        # Whoever has the time for small asks for it.
        top = max((t for t in advice.codecs if t.how.codec != "small"), key=lambda t: t.ratio)
        if top.ratio > 1.1 * best.ratio:
            best = attempt(whole, top.how, fill)
        lorenzo = next(t for t in advice.codecs if t.how.codec == "lorenzo")
        if advice.proposal.step and best.largest and lorenzo.ratio > 0.8 * best.ratio:
            lorenzo = attempt(whole, lorenzo.how, fill)  # its quanta are the multiples of the step
            best = best if lorenzo.largest else lorenzo
        if advice.lossless.ratio > 0.98 * best.ratio:
            best = advice.lossless
            advice.proposal.reason += "; keeping every bit takes no more room"
    if isinstance(best.how, Lossy) and not best.largest:
        advice.proposal.reason += "; every sampled value comes back exactly"
    advice.how = best.how
    # Other shapes are cut from the chunks that are here, so that the same values are compared.
    shapes = {chunk_shape(dataset.shape, dataset.dtype.itemsize, 1 << 20)}
    if dataset.chunks:
        shapes.add(tuple(dataset.chunks))
    for shape in sorted(shapes - {advice.chunk}):
        pieces = [p for b in first for p in cut_up(b, shape)]
        if len(pieces) < 2 or len(pieces) > 4096:
            continue
        advice.shapes.append((shape, attempt(pieces, best.how, fill, errors=False)))
    advice.shapes.insert(0, (advice.chunk, best))
    for shape, trial in advice.shapes[1:]:
        if trial.ratio > 1.1 * best.ratio and math.prod(shape) * dataset.dtype.itemsize >= 1 << 18:
            advice.chunk, best = shape, trial


def _curves(advice: Advice, block: np.ndarray, bytes_: int) -> None:
    """Size and error over a range of bounds, of some codecs and of the choice, on one part of a chunk."""
    from .boxes import cut
    from .trials import attempt

    if not isinstance(advice.how, Lossy):
        return
    values = min(1 << 19, max(1 << 17, bytes_ // block.dtype.itemsize))
    part = cut(block.shape, values)
    start = [(n - p) // 2 for n, p in zip(block.shape, part)]
    piece = np.ascontiguousarray(block[tuple(slice(a, a + p) for a, p in zip(start, part))])
    advice.part = attempt([piece], advice.how, advice.fill)
    mode, bound = advice.how.mode, advice.how.bound
    for codec in (c for c in CURVES if c in mode.codecs):
        points = []
        for factor in FACTORS:
            value = (round(bound - 20 * math.log10(factor), 1) if mode.keyword == "psnr" else
                     float(f"{bound * factor:.12g}"))
            if value <= 0 or (mode.below_one and value >= 1):
                continue
            how: dict[str, Any] = {mode.keyword: value, "codec": codec, "keep": advice.how.keep}
            points.append(attempt([piece], Lossy(**how), advice.fill))
        advice.curves[codec] = points


def _predict(advice: Advice, sampler: Any, most: int, bytes_each: int, attempt: Any) -> None:
    """Encodes more and more chunks, until their mean size is known well enough or there are no more."""
    wanted, seen = 4, set[str]()
    trial: Any = None
    while True:
        boxes = [b for b in sampler.draw(wanted) if repr(b) not in seen]
        seen.update(map(repr, boxes))
        for first in range(0, len(boxes), 8):
            blocks = [whole_chunk(sampler.read(b), advice.chunk, advice.fill) for b in boxes[first : first + 8]]
            more = attempt(blocks, advice.how, advice.fill)
            trial = more if trial is None else _joined(trial, more)
        advice.trial = trial
        if len(seen) >= sampler.total or trial.spread <= ENOUGH / 2 or 2 * wanted * bytes_each > most:
            return
        wanted *= 2


def _joined(a: Trial, b: Trial) -> Trial:
    from .trials import Trial

    codecs = {name: a.codecs.get(name, 0) + b.codecs.get(name, 0) for name in {**a.codecs, **b.codecs}}
    return Trial(a.how, a.raw + b.raw, a.stored + b.stored, a.seconds + b.seconds, max(a.largest, b.largest),
                 a.squares + b.squares, a.n + b.n, codecs)
