# SPDX-License-Identifier: MIT OR Apache-2.0
"""Copies a file and compresses its data, by one bound, by one for each variable, or as `advise` proposes.

Floating-point data gets the bound. Coordinates, integers and whatever the meaning of data rests on keep every bit, and
groups, attributes, dimension scales and links are copied as they are. IN is only read. OUT must not exist; it appears
under its name when it is complete. Attributes of each lossy variable say what was done.

    h5z-gpu repack in.nc out.nc --absolute 1e-3
    h5z-gpu repack in.nc out.nc tas=absolute:0.01 pr=relative:1e-4
    h5z-gpu repack in.nc out.nc --absolute 1e-3 --keep sign,zero
    h5z-gpu repack in.nc out.nc clt=absolute:0.01:range pr=absolute:1e-6:sign+zero
    h5z-gpu repack in.nc out.nc --bounds bounds.toml
    h5z-gpu repack year/*.nc small --bounds bounds.toml            many files, into a folder
    h5z-gpu repack in.nc out.nc --advise
    h5z-gpu repack in.nc out.nc --lossless
    h5z-gpu repack in.nc out.nc --unpack
    h5z-gpu repack in.nc out.nc --quantity 'mean(tas, time) 1e-4'

--unpack makes floating-point numbers of what is packed in integers (scale_factor, add_offset), within half a step of
scale_factor or within VAR=MODE:BOUND; readers see what they saw. Data that is lossy already is copied as it is: errors
of two losses add up. --again compresses it all the same.

--quantity searches the loosest absolute bounds with which a derived quantity moves by no more than its limit, at most
VAR=absolute:BOUND, and judges the quantity on OUT before that gets its name. Other variables are as other arguments
say.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import functools
import os
import shlex
import sys
from typing import TYPE_CHECKING, Any, Callable, Optional

from .. import modes
from ..progress import bar
from ..search import Found
from ..whole import judge, whole
from . import common
from .builds import open_data
from .common import Problem, say
from .promise import Asked, add_bounds, bound_from, keep_from, mixed, named_bounds
from .quantities import add_quantities, bounds_for, quantities_from, refuse_broken, title, verdict

if TYPE_CHECKING:
    import h5py

    from .parts import Part


def add(parser: argparse.ArgumentParser) -> None:
    """The arguments."""
    parser.add_argument("input", metavar="IN", help="an HDF5 or netCDF-4 file; only read")
    parser.add_argument("output", metavar="OUT", help="the new file; must not exist")
    parser.add_argument("bounds", metavar="VAR=MODE:BOUND[:KEEP]", nargs="*", default=[],
                        help="what one variable gets, such as tas=absolute:1e-3, clt=absolute:0.01:range or "
                             "pr=lossless")
    add_bounds(parser, "for all floating-point data")
    parser.add_argument("--bounds", metavar="FILE", dest="table",
                        help="bounds of variables from a table in TOML; then IN may be many files and OUT a folder, "
                             "where what was done before stays")
    parser.add_argument("--jobs", metavar="N", type=int, help="with --bounds: files at a time")
    parser.add_argument("--lossless", action="store_true", help="keep every bit of what no other argument names")
    parser.add_argument("--advise", action="store_true", help="bounds as `h5z-gpu advise IN` proposes them")
    parser.add_argument("--unpack", action="store_true",
                        help="store packed integers (scale_factor, add_offset) as floating-point numbers, within half "
                             "a step or what VAR=MODE:BOUND says")
    add_quantities(parser, "search the loosest bounds with which this moves by no more than LIMIT")
    parser.add_argument("--codec", default="auto", help=f"one that takes the bound: {', '.join(modes.codecs())}")
    parser.add_argument("--again", action="store_true", help="compress what is lossy already again: its errors add up")
    parser.add_argument("--no-provenance", action="store_true",
                        help="leave no attributes and no line of history that say what was lost")
    parser.add_argument("--verify", action="store_true",
                        help="read all of OUT again and judge it, as `verify` does, before it gets its name")
    mixed(parser)


def run(args: argparse.Namespace) -> int:
    """Repacks; the exit status."""
    if args.table is not None:
        from . import archive

        return archive.run(args, repack, report)
    from .parts import filter_of

    bound, named, quantities = bound_from(args), named_bounds(args.bounds), quantities_from(args)
    if bound is None and not (named or quantities or args.lossless or args.advise or args.unpack):
        raise Problem("what is to be done? Give a bound (--absolute 1e-3, tas=absolute:0.01), --lossless, --advise, "
                      "--quantity or --unpack")
    if sum((bound is not None, args.lossless, args.advise)) > 1:
        raise Problem("give one of --advise, --lossless and a bound for all; VAR=MODE:BOUND may stand beside each")
    if args.keep is not None and bound is None and not (args.advise or args.unpack or quantities):
        raise Problem(f"--keep {args.keep} without a bound for all; what is kept stands beside one, such as --absolute "
                      f"1e-3, beside --advise, --quantity or --unpack, or in VAR=MODE:BOUND:KEEP")
    keep_from(args)
    for each in [bound, *named.values()]:
        if each is not None:
            filter_of(each, args.codec)
    report(repack(args, bound, named), args)
    return 0


def repack(args: argparse.Namespace, bound: Optional[Asked] = None, named: Optional[dict[str, Asked]] = None, *,
           mode: str = "x", done: Optional[Callable[[int], Any]] = None,
           ready: Callable[[str], None] = lambda path: None) -> dict[str, Part]:
    """Writes OUT; what has become of each dataset, by name.

    `bound` is for all, `named` by name, `mode` that of `whole`. `done` is told of bytes that are done, in place of a
    progress bar; nothing is printed then. `ready` is told the name of the file that is complete, before it takes the
    name OUT.
    """
    from .parts import by_quantities, fill_in, plan

    with common.writing(args.output):
        judge(args.output, mode)
    # Without a cache of chunks: H5Ocopy writes beyond its buffers where chunks of gzip and fletcher32 are in one.
    with open_data(args.input, rdcc_nbytes=0) as source:
        of_table, caps = ([], named or {}) if args.table is None else by_quantities(source, args.table)
        quantities, named, searched = quantities_from(args) + of_table, caps, list[Found]()
        if quantities:
            named, searched = bounds_for(source, quantities, caps, bound, keep_from(args), args.codec)
            if done is None:
                say(*(f"{', '.join(each.hows)}: every bit, as {each.why}" for each in searched if each.why))
        if args.table is not None:  # which has the bounds of all others
            found = {name for each in searched for name in each.hows}
            named = {name: asked for name, asked in named.items() if name in found or name not in caps}
        parts = plan(source, bound, named, args)
        total = sum(p.raw for p in parts.values() if p.how)
        with common.writing(args.output), whole(args.output, mode) as path:
            with bar(None, total, "repack", "") if done is None else contextlib.nullcontext(done) as tell:
                fill_in(source, path, parts, args, tell, functools.partial(_history, args))
            if args.verify:
                _judge(args.input, path)
            for outcome in refuse_broken(args.input, path, quantities, searched) if searched else ():
                if done is None:
                    say(f"{title(outcome.of)}: {verdict(outcome)}")
            ready(path)
    return parts


def _history(args: argparse.Namespace, target: h5py.File) -> None:
    """A line in front of the history of a file that follows netCDF's conventions, as NCO and CDO write it."""
    from .history import add_line

    if not {"history", "Conventions", "_NCProperties"} & set(target.attrs):
        return
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    add_line(target, f"{now}: h5z-gpu repack {shlex.join(_typed(args))}")


def _typed(args: argparse.Namespace) -> list[str]:
    """The arguments as they may be typed again."""
    flags = [f"--{name}" for name in ("lossless", "advise", "again", "unpack") if getattr(args, name)]
    bound = [f"--{m.replace('_', '-')}={getattr(args, m)}" for m in modes.bounds() if getattr(args, m) is not None]
    codec = [] if args.codec == "auto" else [f"--codec={args.codec}"]
    keep = [] if args.keep is None else [f"--keep={args.keep}"]
    table = [] if args.table is None else [f"--bounds={args.table.path}"]
    quantities = [f"--quantity={text}" for text in args.quantity]
    return [args.input, args.output, *args.bounds, *table, *bound, *keep, *quantities, *flags, *codec]


def _judge(original: str, path: str) -> None:
    """Compares the new file with the old one: its structure, and the values of what has a bound. Problem where
    anything differs that was not asked."""
    from .compare import compare
    from .sources import of_dataset
    from .structure import Structure
    from .verify_text import verdict

    with common.open_file(original, rdcc_nbytes=0) as old, common.open_file(path, rdcc_nbytes=0) as new:
        found = Structure(old, new)
        found.run()
        wrong = found.differences + found.unread
        for a, b in found.judged if not wrong else []:
            result = compare(of_dataset(a), of_dataset(b), None)
            if not result.held:
                wrong.append(f"{result.name}: {verdict(result)}")
                break
        found.judged.clear()
    if wrong:
        more = f" ({len(wrong) - 1} more)" if len(wrong) > 1 else ""
        raise Problem(f"the new file was thrown away: {wrong[0]}{more}")


def report(parts: dict[str, Part], args: argparse.Namespace) -> None:
    width = max((len(p.name) for p in parts.values()), default=0)
    for part in parts.values():
        sizes = f"{common.size(part.before)} to {common.size(part.after)}"
        ratios = common.ratio(part.before, part.after)
        if part.before != part.raw:
            ratios += f" ({common.ratio(part.raw, part.after)} of {common.size(part.raw)} raw)"
        sizes = f"{sizes}, ratio {ratios}: " if part.how else ""
        say(f"{part.name:{width}}  {sizes}{part.note}")
    old, new = os.path.getsize(args.input), os.path.getsize(args.output)
    say(f"{args.output}: {common.size(old)} to {common.size(new)}{', verified' if args.verify else ''}",
        file=sys.stdout)
