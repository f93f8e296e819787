# SPDX-License-Identifier: MIT OR Apache-2.0
"""Copies a file and compresses its data, by one bound, by one for each variable, or as `advise` proposes.

Floating-point data gets the bound. Coordinates, integers and whatever the meaning of data rests on keep every bit, and
groups, attributes, dimension scales and links are copied as they are. IN is only read. OUT must not exist; it appears
under its name when it is complete. Attributes of each lossy variable say what was done.

    h5z-gpu repack in.nc out.nc --absolute 1e-3
    h5z-gpu repack in.nc out.nc tas=absolute:0.01 pr=relative:1e-4
    h5z-gpu repack in.nc out.nc --advise
    h5z-gpu repack in.nc out.nc --lossless
    h5z-gpu repack in.nc out.nc --unpack

--unpack makes floating-point numbers of what is packed in integers (scale_factor, add_offset), within half a step of
scale_factor or within VAR=MODE:BOUND; readers see what they saw. Data that is lossy already is copied as it is: errors
of two losses add up. --again compresses it all the same.
"""

from __future__ import annotations

import argparse
import datetime
import functools
import math
import os
import shlex
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Optional

import numpy as np

from .. import modes
from ..filters import How, Lossless, Lossy
from ..progress import bar
from ..provenance import on_dataset, said
from ..unpacking import Packing
from ..whole import closing, judge, whole
from . import common
from .common import Problem, say
from .promise import add_bounds, as_filter, bound_from, mixed, named_bounds

if TYPE_CHECKING:
    import h5py


@dataclass
class Part:
    """What becomes of one dataset."""

    name: str
    raw: int
    before: int
    how: Optional[How] = None
    chunk: Optional[tuple[int, ...]] = None
    fill: Optional[np.ndarray] = None
    again: Optional[str] = None
    """What it had lost before, where it is compressed again."""
    packing: Optional[Packing] = None
    """Its integers become these values."""
    note: str = ""
    after: int = 0
    address: int = 0
    """Where it lies in the file."""


def add(parser: argparse.ArgumentParser) -> None:
    """The arguments."""
    parser.add_argument("input", metavar="IN", help="an HDF5 or netCDF-4 file; only read")
    parser.add_argument("output", metavar="OUT", help="the new file; must not exist")
    parser.add_argument("bounds", metavar="VAR=MODE:BOUND", nargs="*", default=[],
                        help="what one variable gets, such as tas=absolute:1e-3 or pr=lossless")  # fmt: skip
    add_bounds(parser, "for all floating-point data")
    parser.add_argument("--lossless", action="store_true", help="keep every bit of what no other argument names")
    parser.add_argument("--advise", action="store_true", help="bounds as `h5z-gpu advise IN` proposes them")
    parser.add_argument("--unpack", action="store_true",
                        help="store packed integers (scale_factor, add_offset) as floating-point numbers, within half "
                             "a step or what VAR=MODE:BOUND says")  # fmt: skip
    parser.add_argument("--codec", default="auto", help=f"one that takes the bound: {', '.join(modes.codecs())}")
    parser.add_argument(
        "--again", action="store_true", help="compress what is lossy already again: its errors add up"
    )
    parser.add_argument("--no-provenance", action="store_true",
                        help="leave no attributes and no line of history that say what was lost")  # fmt: skip
    parser.add_argument(
        "--verify",
        action="store_true",
        help="read all of OUT again and judge it, as `verify` does, before it gets its name",
    )
    mixed(parser)


def run(args: argparse.Namespace) -> int:
    """Repacks; the exit status."""
    bound, named = bound_from(args), named_bounds(args.bounds)
    if bound is None and not named and not args.lossless and not args.advise and not args.unpack:
        raise Problem("what is to be done? Give a bound (--absolute 1e-3, tas=absolute:0.01), --lossless, --advise or "
                      "--unpack")  # fmt: skip
    if sum((bound is not None, args.lossless, args.advise)) > 1:
        raise Problem("give one of --advise, --lossless and a bound for all; VAR=MODE:BOUND may stand beside each")
    for each in [bound, *named.values()]:
        if each is not None:
            _filter(each, args.codec)
    with common.writing(args.output):
        judge(args.output, "x")
    # Without a cache of chunks: H5Ocopy writes beyond its buffers where chunks of gzip and fletcher32 are in one.
    with common.open_file(args.input, rdcc_nbytes=0) as source:
        parts = plan(source, bound, named, args)
        _write(source, args, parts)
    _report(parts, args)
    return 0


@functools.cache
def _filter(bound: tuple[str, float], codec: str) -> How:
    try:
        return as_filter(bound) if bound[0] == "lossless" else as_filter(bound, codec=codec)
    except (TypeError, ValueError) as why:
        raise Problem(str(why).removeprefix("h5z-gpu: ")) from None


# --- what becomes of each dataset
# -----------------------------------------------------------------------------------------


def plan(
    file: h5py.File, bound: Optional[tuple[str, float]], named: dict[str, tuple[str, float]], args: argparse.Namespace
) -> dict[str, Part]:
    """What each dataset of a file gets, by name."""
    from .hdf5 import address
    from .roles import Roles

    roles, parts = Roles(file), {}
    advice: dict[str, Any] = {}
    if args.advise:
        from .advise import advise

        advice = {a.name: a for a in advise(file, quick=True, unpack=args.unpack)}
    every = roles.datasets
    unknown = sorted(set(named) - {d.name.strip("/") for d in every})
    if unknown:
        names = ", ".join(d.name.strip("/") for d in every[:8])
        raise Problem(
            f"{file.filename} has no dataset {', '.join(unknown)}; it has "
            f"{names or 'none'}{' ...' if len(every) > 8 else ''}"
        )
    for dataset in every:
        name = dataset.name.strip("/")
        parts[name] = _part(dataset, name, roles, named.get(name), bound, advice.get(name), args)
        parts[name].address = address(dataset.id)
    return parts


def _part(dataset: h5py.Dataset, name: str, roles: Any, own: Optional[tuple[str, float]],
          bound: Optional[tuple[str, float]], advice: Any, args: argparse.Namespace) -> Part:  # fmt: skip
    from .integers import compresses, why_left
    from .packed import packing
    from .roles import chunk_of, lossy_already, protected

    raw = 0 if dataset.shape is None else math.prod(dataset.shape) * dataset.id.get_type().get_size()
    common.refuse_absurd(name, raw)
    part = Part(name, raw, dataset.id.get_storage_size())
    packed = packing(dataset)
    if packed and args.unpack and not (own and own[0] == "lossless"):
        if (why := roles.why_exact(dataset, unpacked=True)) is None and not dataset.is_virtual:
            return _unpacked(part, dataset, packed, own, advice, args.codec)
    why = roles.why_exact(dataset)
    kind = dataset.id.get_type()
    numbers = why is None or (dataset.shape and dataset.size and _is_number(kind))
    if own is not None and own[0] != "lossless" and why is not None:
        if why.startswith(("holds", "is ")) and "flag" not in why:
            also = f", or add --unpack: they are packed in steps of {packed.step:g}" if packed else ""
            raise Problem(f"{name} {why}: it must not lose a bit; write {name}=lossless, or leave it out{also}")
    if own is not None and own[0] == "lossless" and not numbers:
        raise Problem(f"{name} {why}: the filter has nothing to do there; leave it out")
    if own is None and (why is not None or dataset.is_virtual):
        if compresses(dataset, args.lossless):
            part.how, part.chunk = Lossless(), chunk_of(dataset)
            part.note = "every bit (integers)"
        else:
            part.note = f"as it was ({why_left(dataset, why) if why else 'a virtual dataset'})"
        return part
    asked = own or bound or (("lossless", 0.0) if args.lossless else None)
    if own is None and advice is not None:
        how, part.chunk = advice.how, advice.chunk
    elif asked is None:
        part.note = "as it was"
        return part
    else:
        how = _filter(asked, args.codec)
    lost = lossy_already(dataset)
    if lost and not args.again and not (own is not None and own[0] == "lossless"):
        part.chunk = None
        part.note = f"as it was: it is lossy already, by {lost}" + (
            "; --again compresses it again, and errors add up" if isinstance(how, Lossy) else ""
        )
        return part
    part.fill, against = protected(dataset, by_range=how.mode.of == "range")
    if part.fill is None and own is None and advice is not None:
        part.fill = advice.fill
    if isinstance(how, Lossy) and against:
        if own is not None:
            raise Problem(f"{name} cannot be lossy: {against}; make them one value first, or write {name}=lossless")
        how, part.note = Lossless(), f"every bit: {against}"
    if lost:
        part.again = lost
    part.how = how
    part.chunk = part.chunk or chunk_of(dataset)
    if own is None and advice is not None and not part.note:
        part.note = f"{said(how)}; {advice.proposal.reason}"
    part.note = part.note or said(how) + (f", on top of a loss by {lost}" if lost and isinstance(how, Lossy) else "")
    return part


def _unpacked(part: Part, dataset: h5py.Dataset, packed: Packing, own: Optional[tuple[str, float]], advice: Any,
              codec: str) -> Part:  # fmt: skip
    """What becomes of packed integers: values within half a step, as CF's readers see them."""
    from .roles import chunk_of, lossy_already

    lost = lossy_already(dataset)
    if lost:
        part.note = f"as it was: it is lossy already, by {lost}"
        return part
    part.packing, part.again = packed, f"packing in steps of {packed.step:g}"
    if own is not None:
        part.how = _filter(own, codec)
    elif advice is not None:
        part.how, part.chunk = advice.how, advice.chunk
    else:
        part.how = _filter(("absolute", packed.step / 2), codec)
    part.chunk = part.chunk or chunk_of(dataset, packed.dtype.itemsize)
    part.fill = np.full((), np.nan, packed.dtype) if packed.missing else None
    part.note = f"{packed.dtype.name} in place of {packed.packed.name} in steps of {packed.step:g}: {said(part.how)}"
    return part


def _is_number(kind: Any) -> bool:
    import h5py

    return isinstance(kind, (h5py.h5t.TypeIntegerID, h5py.h5t.TypeFloatID))


# --- writing ----------------------------------------------------------------------------------------------------------


def _write(source: h5py.File, args: argparse.Namespace, parts: dict[str, Part]) -> None:
    """Writes OUT."""
    total = sum(p.raw for p in parts.values() if p.how)
    with common.writing(args.output), whole(args.output, "x") as path:
        with bar(None, total, "repack", "") as done:
            _fill_in(source, path, parts, args, done)
        if args.verify:
            _judge(args.input, path)


def _fill_in(
    source: h5py.File, path: str, parts: dict[str, Part], args: argparse.Namespace, done: Callable[[int], Any]
) -> None:
    from h5py import h5t

    from .copying import Copier
    from .creation import Anew, copy_user_block, create_like
    from .hdf5 import address
    from .packed import unpack_attributes
    from .valid import keep_valid

    # An object may have several names; where it lies is one place.
    places = {part.address: part for part in parts.values()}

    def stored(dataset: h5py.h5d.DatasetID) -> Any:
        part = places.get(address(dataset))
        if part is None or part.how is None or part.chunk is None:
            return None
        kind = None if part.packing is None else h5t.py_create(part.packing.dtype)
        return Anew(part.chunk, part.how.words, part.fill, kind)

    def values(old: h5py.Dataset, new: h5py.Dataset) -> None:
        part = places[address(old.id)]
        copy_numbers(old, new, done, part.packing)
        new.id.flush()
        if part.packing is not None:
            unpack_attributes(new, part.packing)
        if isinstance(part.how, Lossy):
            part.note += keep_valid(old, new, part.how, part.fill, part.packing)
        if isinstance(part.how, Lossy) and not args.no_provenance:
            on_dataset(new, part.again, copied=True)
        part.after = new.id.get_storage_size()

    with closing(create_like(source, path)) as target:
        copier = Copier(source, target, stored, values)
        copier.run()
        if any(isinstance(p.how, Lossy) for p in parts.values()) and not args.no_provenance:
            _history(target, args)
        for part in parts.values():
            if part.how is None:
                part.after = part.before
    copier.finish(path)
    copy_user_block(source, path)
    if dead := copier.references.dead:
        where, attribute, _ = (*copier.empty, (b"a fill value", None, 0))[0]
        first = f"{'' if attribute is None else f'the attribute {os.fsdecode(attribute)} of '}{os.fsdecode(where)}"
        say(f"{dead} reference{'s' if dead > 1 else ''} of {args.input} led to no object of it, the first in {first}; "
            f"empty in {args.output}", file=sys.stdout)


def copy_numbers(old: h5py.Dataset, new: h5py.Dataset, done: Callable[[int], Any], packed: Optional[Packing]) -> None:
    """All values of a dataset that were written, unpacked or not, box by box.

    One small chunk goes through HDF5's filter pipeline: it is coded before the threads of this package have started.
    """
    from ..datasets import read, write
    from ..ranges import is_of_numpy
    from .copying import copy_box, is_one_small_chunk, stored_boxes
    from .roles import why_unread

    by_hdf5 = packed is None and (is_one_small_chunk(new.id) or not is_of_numpy(old))
    for box in stored_boxes(old.id, new.id):
        try:
            if by_hdf5:
                copy_box(old.id, new.id, box, ())
                done(math.prod(part.stop - part.start for part in box) * old.id.get_type().get_size())
                continue
            array = read(old, selection=box)
        except OSError as why:
            raise Problem(f"{why_unread(old, why)}. Nothing was written") from None
        write(new, packed.values(array) if packed else array, box, progress=False, provenance=False)
        done(array.nbytes)


def _history(target: h5py.File, args: argparse.Namespace) -> None:
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
    return [args.input, args.output, *args.bounds, *bound, *flags, *codec]


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


def _report(parts: dict[str, Part], args: argparse.Namespace) -> None:
    width = max((len(p.name) for p in parts.values()), default=0)
    for part in parts.values():
        sizes = f"{common.size(part.before)} to {common.size(part.after)}"
        ratios = common.ratio(part.before, part.after)
        if part.before != part.raw:
            ratios += f" ({common.ratio(part.raw, part.after)} of {common.size(part.raw)} raw)"
        sizes = f"{sizes}, ratio {ratios}: " if part.how else ""
        say(f"{part.name:{width}}  {sizes}{part.note}")
    old, new = os.path.getsize(args.input), os.path.getsize(args.output)
    say(
        f"{args.output}: {common.size(old)} to {common.size(new)}{', verified' if args.verify else ''}", file=sys.stdout
    )
