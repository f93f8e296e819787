# SPDX-License-Identifier: MIT OR Apache-2.0
"""What becomes of each dataset of a file that is repacked (`plan`), and the copy in which it has (`fill_in`)."""

from __future__ import annotations

import argparse
import dataclasses
import functools
import math
import os
import sys
from typing import Any, Callable, Optional

import h5py
import numpy as np
from h5py import h5t

from ..bounds_file import Bounds
from ..datasets import read, write
from ..filters import How, Lossless, Lossy
from ..provenance import on_dataset, said
from ..quantity import OPERATIONS, Quantity, parse
from ..ranges import is_of_numpy
from ..unpacking import Packing
from ..whole import closing
from . import common
from .common import Problem, say
from .copying import Copier
from .creation import Anew, copy_user_block, create_like
from .hdf5 import address
from .integers import compresses, why_left
from .packed import packing, unpack_attributes
from .objects import known_attributes
from .promise import Asked, as_asked, as_filter, keep_from
from .roles import Roles, chunk_of, forbids_loss, lossy_already, protected, why_unread
from .valid import keep_valid
from .values import copy_box, is_one_small_chunk, stored_boxes


@dataclasses.dataclass
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


@functools.cache
def filter_of(bound: Asked, codec: str) -> How:
    """The filter of a bound; a Problem where there is no such filter."""
    try:
        own = bound.mode == "lossless" or bound.codec != "auto"
        return as_filter(bound) if own else as_filter(bound, codec=codec)
    except (TypeError, ValueError) as why:
        raise Problem(str(why).removeprefix("h5z-gpu: ")) from None


# --- what becomes of each dataset
# -----------------------------------------------------------------------------------------


def plan(file: h5py.File, bound: Optional[Asked], named: dict[str, Asked], args: argparse.Namespace) -> dict[str, Part]:
    """What each dataset of a file gets, by name."""
    roles, parts = Roles(file), {}
    advice: dict[str, Any] = {}
    if args.advise:
        from .advise import advise

        advice = {a.name: a for a in advise(file, quick=True, unpack=args.unpack, keep=keep_from(args))}
    every = roles.datasets
    unknown = sorted(set(named) - {d.name.strip("/") for d in every})
    if unknown:
        names = ", ".join(d.name.strip("/") for d in every[:8])
        raise Problem(f"{file.filename} has no dataset {', '.join(unknown)}; it has "
                      f"{names or 'none'}{' ...' if len(every) > 8 else ''}")
    for dataset in every:
        name = dataset.name.strip("/")
        own, others = named.get(name), bound
        if args.table is not None and own is None:
            own, others = _by_table(args.table, dataset, name, roles, args.unpack)
        parts[name] = _part(dataset, name, roles, own, others, advice.get(name), args)
        parts[name].address = address(dataset.id)
    return parts


def _by_table(table: Bounds, dataset: h5py.Dataset, name: str, roles: Roles,
              unpack: bool) -> tuple[Optional[Asked], Optional[Asked]]:
    """What a table asks for one dataset: by its name, or by an entry for several, which may not lose what is exact.
    An entry with quantities asks for nothing before its bound has been searched."""
    unpacks = unpack and packing(dataset) is not None and not dataset.is_virtual
    exact = roles.why_exact(dataset, unpacked=unpacks) is not None
    entry = table.entry(name, known_attributes(dataset), exact=exact)
    asked = None if entry is None or entry.quantities else as_asked(entry.how)
    own = entry is not None and (entry.header == name or (unpacks and not exact))
    return (asked, None) if own else (None, asked)


def by_quantities(file: h5py.File, table: Bounds) -> tuple[list[Quantity], dict[str, Asked]]:
    """The quantities of a table's entries, of the variables in a file that these match, and the loosest bounds of all
    variables, but those that are weights."""
    weights = {str(parse(text).weights).strip("/") for entry in table.entries for text in entry.quantities}
    roles, caps, found = Roles(file), dict[str, Asked](), dict[str, Quantity]()
    for dataset in roles.datasets:
        name, why = dataset.name.strip("/"), roles.why_exact(dataset)
        if name in weights or (why is not None and forbids_loss(why)):
            continue
        entry = table.entry(name, known_attributes(dataset), exact=why is not None)
        if entry is not None and (why is None or entry.header == name):
            caps[name] = as_asked(entry.how)
            for of in map(parse, entry.quantities):
                several = OPERATIONS[str(of.operation)].variables[0] > 1
                of = of if several or of.names[:1] == (name,) else dataclasses.replace(of, names=(name, *of.names))
                found[str(of)] = of
    return list(found.values()), caps


def _part(dataset: h5py.Dataset, name: str, roles: Roles, own: Optional[Asked],
          bound: Optional[Asked], advice: Any, args: argparse.Namespace) -> Part:
    raw = 0 if dataset.shape is None else math.prod(dataset.shape) * dataset.id.get_type().get_size()
    common.refuse_absurd(name, raw)
    part = Part(name, raw, dataset.id.get_storage_size())
    packed = packing(dataset)
    if packed and args.unpack and not (own and own.mode == "lossless"):
        if (why := roles.why_exact(dataset, unpacked=True)) is None and not dataset.is_virtual:
            return _unpacked(part, dataset, packed, own, advice, args)
    why = roles.why_exact(dataset)
    kind = dataset.id.get_type()
    numbers = why is None or (dataset.shape and dataset.size and _is_number(kind))
    if own is not None and own.mode != "lossless" and why is not None:
        if forbids_loss(why):
            also = f", or add --unpack: they are packed in steps of {packed.step:g}" if packed else ""
            raise Problem(f"{name} {why}: it must not lose a bit; write {name}=lossless, or leave it out{also}")
    if own is not None and own.mode == "lossless" and not numbers:
        raise Problem(f"{name} {why}: the filter has nothing to do there; leave it out")
    if own is None and (why is not None or dataset.is_virtual):
        if compresses(dataset, args.lossless or (bound is not None and bound.mode == "lossless")):
            part.how, part.chunk = Lossless(), chunk_of(dataset)
            part.note = "every bit (integers)"
        else:
            part.note = f"as it was ({why_left(dataset, why) if why else 'a virtual dataset'})"
        return part
    asked = own or bound or (Asked("lossless") if args.lossless else None)
    if own is None and advice is not None:
        how, part.chunk = advice.how, advice.chunk
    elif asked is None:
        part.note = "as it was"
        return part
    else:
        how = filter_of(asked, args.codec)
    lost = lossy_already(dataset)
    if lost and not args.again and not (own is not None and own.mode == "lossless"):
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


def _unpacked(part: Part, dataset: h5py.Dataset, packed: Packing, own: Optional[Asked], advice: Any,
              args: argparse.Namespace) -> Part:
    """What becomes of packed integers: values within half a step, as CF's readers see them."""
    lost = lossy_already(dataset)
    if lost:
        part.note = f"as it was: it is lossy already, by {lost}"
        return part
    part.packing, part.again = packed, f"packing in steps of {packed.step:g}"
    if own is not None:
        part.how = filter_of(own, args.codec)
    elif advice is not None:
        part.how, part.chunk = advice.how, advice.chunk
    else:
        part.how = filter_of(Asked("absolute", packed.step / 2, keep_from(args)), args.codec)
    part.chunk = part.chunk or chunk_of(dataset, packed.dtype.itemsize)
    part.fill = np.full((), np.nan, packed.dtype) if packed.missing else None
    part.note = f"{packed.dtype.name} in place of {packed.packed.name} in steps of {packed.step:g}: {said(part.how)}"
    return part


def _is_number(kind: Any) -> bool:
    return isinstance(kind, (h5t.TypeIntegerID, h5t.TypeFloatID))


# --- writing ----------------------------------------------------------------------------------------------------------


def fill_in(source: h5py.File, path: str, parts: dict[str, Part], args: argparse.Namespace, done: Callable[[int], Any],
            history: Callable[[h5py.File], None]) -> None:
    """Copies a file, whose datasets become what the plan says. `history` is called with a copy that has lost bits."""
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
        if part.packing is not None:
            unpack_attributes(new, part.packing)
        if isinstance(part.how, Lossy):
            part.note += keep_valid(old, new, part.how, part.fill, part.packing)
            if not args.no_provenance:
                on_dataset(new, part.again, copied=True)
        part.after = new.id.get_storage_size()

    with closing(create_like(source, path)) as target:
        copier = Copier(source, target, stored, values)
        copier.run()
        if any(isinstance(p.how, Lossy) for p in parts.values()) and not args.no_provenance:
            history(target)
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
