# SPDX-License-Identifier: MIT OR Apache-2.0
"""Compares compressed data with the original: the exact verdict on the bound, and what was lost.

Every dataset of ORIGINAL is compared with the one of the same name in COMPRESSED. The bound is the one that the
filter's words in COMPRESSED promise, and so are signs, zeros and ranges that are kept, chunk by chunk where the words
speak of chunks; NaN, infinities and fill values have to keep their bits, and so has every dataset without the filter. A
bound on the command line takes the place of what the file says. Values that one file holds packed (scale_factor,
add_offset) are compared as readers see them, and of a dataset that has grown since what ORIGINAL has.

    h5z-gpu verify tas.nc compressed.nc --html report.html
    h5z-gpu verify tas.nc other.nc --absolute 1e-3          a file of any other compressor
    h5z-gpu verify tas.nc other.nc --absolute 1e-3 --keep sign
    h5z-gpu verify field.npy out.h5 --dataset v
    h5z-gpu verify tas.nc other.nc --quantity 'mean(tas, time) 1e-4'

Besides values, whatever HDF5 can say of both files is compared: names, order and kinds of links, attributes, types,
extents, fill values, creation properties, comments, what references lead to. A line says how much differs. --structure
lists it and judges it, too: COMPRESSED has to be the copy of ORIGINAL, byte by byte in what is stored, but for what was
asked. `repack --verify` judges its copy so. Asked are:

  of a dataset with the filter, or a bound on the command line: chunks, filters and layout, and a fill value where
    ORIGINAL has none but netCDF's default
  of one that lost bits by the filter: attributes lossy_compression*, and text in front of the file's `history`
  of packed integers that are floating-point numbers in COMPRESSED: their type, and attributes in packed units

    h5z-gpu verify in.h5 copy.h5 --structure

Exit status: 0 every promise is kept, 1 one is broken, 2 something could not be compared, 3 another build has to read
one of the files.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from typing import Any, Optional

from .. import modes
from ..progress import bar
from ..quantity_judges import Outcome
from . import quality
from .allowed import Given
from .common import Problem, say
from .compare import Result, compare
from .promise import add_bounds, bound_from, mixed, named_bounds
from .quantities import add_quantities, judged, quantities_from, title, verdict as verdict_on
from .quantities import as_json as quantity_as_json
from .sources import Source, is_npy, pairs
from .verify_text import lines, promise_text, verdict


def add(parser: argparse.ArgumentParser) -> None:
    """The arguments."""
    parser.add_argument("original", metavar="ORIGINAL", help="an HDF5, netCDF-4 or .npy file")
    parser.add_argument("compressed", metavar="COMPRESSED", help="the same, compressed")
    parser.add_argument("bounds", metavar="VAR=MODE:BOUND[:KEEP]", nargs="*", default=[],
                        help="the bound of one dataset, such as tas=absolute:1e-3 or pr=absolute:1e-6:sign+zero")
    add_bounds(parser, "the bound of every floating-point dataset")
    add_quantities(parser, "judge whether this moves by no more than LIMIT")
    parser.add_argument("--dataset", action="append", default=[], metavar="NAME",
                        help="compare this one alone; may be repeated")
    parser.add_argument("--common", action="store_true",
                        help="compare what both files have where COMPRESSED is shorter; where it is longer, that is "
                             "done in any case")
    parser.add_argument("--structure", action="store_true",
                        help="list what differs besides values, such as attributes, types, links and fill values, and "
                             "end with 1 where anything does that was not asked")
    parser.add_argument("--html", metavar="FILE", help="write a page with pictures, in one file (needs matplotlib)")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    mixed(parser)


def run(args: argparse.Namespace) -> int:
    """Compares; the exit status."""
    given, named, asked = bound_from(args), named_bounds(args.bounds), quantities_from(args)
    if args.keep is not None and given is None:
        raise Problem(f"--keep {args.keep} without a bound; what is kept stands beside one, such as --absolute 1e-3, "
                      "or in VAR=MODE:BOUND:KEEP. What a file promises itself is judged in any case")
    if is_npy(args.original) and is_npy(args.compressed) and given is None and not named:
        raise Problem("two .npy files promise nothing; name the bound, such as --absolute 1e-3")
    if args.structure and (is_npy(args.original) or is_npy(args.compressed) or args.dataset or args.common):
        raise Problem("--structure compares two whole HDF5 files: it goes with no .npy file, --dataset or --common")
    if args.html:
        from . import page

        page.ready(args.html)
    results: list[Result] = []
    with pairs(args.original, args.compressed, args.dataset) as (found, problems, more):
        unknown = set(named) - {a.name for a, _ in found} - {b.name for _, b in found}
        if unknown:
            raise Problem(f"{args.original} has no dataset {', '.join(sorted(unknown))}")
        total = sum(a.dtype.itemsize * math.prod(a.shape) for a, _ in found if a.shape is not None)
        kept: list[tuple[Source, Source, Result]] = []
        with bar(None, total, "verify", "") as done:
            for a, b in found:
                try:
                    result = compare(a, b, named.get(a.name, named.get(b.name, given)), done, args.common)
                except Problem as problem:
                    problems.append(str(problem))
                    continue
                results.append(result)
                kept.append((*(result.pair or (a, b)), result))
        quantities = judged(asked, found) if asked else []
        if args.html:
            from . import verify_page

            verify_page.write(args.html, args.original, args.compressed, kept, problems, more, quantities)
    differs = _structure(args, lambda name: named.get(name, given), problems)
    if args.json:
        print(json.dumps(as_json(args, results, problems, more, differs, quantities), indent=1))
    else:
        _print(results, more, len(problems), differs, args.structure, quantities)
    for sentence in problems:
        say(f"h5z-gpu verify: {sentence}", file=sys.stderr)
    if args.html and not args.json:
        say(f"The page is {args.html}")
    held = all(r.held for r in results) and all(o.held for o in quantities)
    return 1 if not held or (differs and args.structure) else 2 if problems else 0


def _structure(args: argparse.Namespace, given: Given, problems: list[str]) -> list[str]:
    """What differs besides values. Without --structure nobody asked for it: what cannot be compared then is no
    problem."""
    from .structure import differences

    if is_npy(args.original) or is_npy(args.compressed) or args.dataset:
        return []
    found, unread = differences(args.original, args.compressed, given, values=args.structure)
    if args.structure:
        problems += unread
    return found


def _print(results: list[Result], more: list[str], left: int, differs: list[str], listed: bool,
           quantities: list[Outcome]) -> None:
    for r in results:
        shape = "" if r.shape is None else f" {'x'.join(map(str, r.shape)) or 'scalar'}"
        say(f"{r.name}: {r.dtype.name}{shape}, {promise_text(r)}: {verdict(r)}")
        for name, text in lines(r):
            say(f"    {name}: {text}")
    for o in quantities:
        say(f"{title(o.of)}: {verdict_on(o)}")
    if more:
        say(f"Only in the compressed file, not compared: {', '.join(more)}")
    broken = [r.name for r in results if not r.held] + [title(o.of) for o in quantities if not o.held]
    n = f"{len(results)} {'dataset' if len(results) == 1 else 'datasets'}"
    text = (f"BROKEN in {', '.join(broken)}" if broken else "every promise is kept" if results
            else "nothing was compared")
    if differs:
        count = f"{len(differs)} {'difference' if len(differs) == 1 else 'differences'} besides values"
        say(*(differs if listed else ()), f"{count}{'' if listed else ': --structure lists and judges them'}")
    say(f"{n}: {text}{f'; {left} could not be compared' if left else ''}")


def as_json(args: argparse.Namespace, results: list[Result], problems: list[str], more: list[str], differs: list[str],
            quantities: list[Outcome]) -> dict[str, Any]:
    """All figures, as JSON can hold them."""
    every = [_one(r) for r in results]
    held = all(r.held for r in results) and all(o.held for o in quantities)
    held = held and not problems and not (differs and args.structure)
    text: dict[str, Any] = quality.plain({"original": args.original, "compressed": args.compressed, "held": held,
                                          "datasets": every, "quantities": list(map(quantity_as_json, quantities)),
                                          "problems": problems, "only_in_compressed": more,
                                          "besides_values": differs})
    return text


def _one(r: Result) -> dict[str, Any]:
    q = r.figures
    first: Optional[dict[str, Any]] = None
    if r.first is not None:
        first = {"index": r.first.index, "original": r.first.original, "became": r.first.became, "error": r.first.error}
    found: dict[str, Any] = {
        "name": r.name, "type": r.dtype.str, "shape": r.shape, "held": r.held,
        "promise": {"mode": r.promise.mode, "bound": r.promise.bound, "keep": r.promise.keep,
                    "given": r.promise.given},
        "values": r.values, "broken": r.broken, "first_broken": first,
        "kept_broken": {name: n for name, n in zip(modes.keeps(), r.kept_broken) if name in r.promise.keep},
        "chunks_below_psnr": [{"first": at, "psnr": p} for at, p in r.noisy],
        "special": {"nan": r.nan, "infinite": r.infinite, "fill": r.fill, "different": r.special_broken},
        "raw_bytes": r.raw, "stored_bytes": r.stored, "notes": r.notes,
    }
    if q is not None and q.n:
        found |= {
            "largest_error": q.largest, "largest_over_bound": q.share or None, "rms_error": q.rms,
            "mean_error": q.mean_e,
            "range": [q.low, q.high], "psnr": q.psnr, "ssim": r.ssim, "slices": r.slices, "correlation": q.correlation,
            "error_autocorrelation": dict(zip(r.axes, q.autocorrelation())),
            "histogram": {"edges_over_bound": [-1.0, 1.0], "bins": quality.HISTOGRAM_BINS, "below": q.histogram[0],
                          "counts": q.histogram[1:-1], "above": q.histogram[-1]},
        }
    if r.spectra is not None:
        found["spectrum"] = {"cycles_per_cell": quality.wavenumbers(), "original": r.spectra[0],
                             "reconstruction": r.spectra[1], "error": r.spectra[2]}
    return found
