# SPDX-License-Identifier: MIT OR Apache-2.0
"""Copies a damaged file, keeps what is good, fills what is lost, and names it.

OUT is a copy of the input, as `repack` would make it. Chunks that cannot be decoded hold the fill value; of a
floating-point dataset without a fill value of its own, NaN. What HDF5 itself cannot open or read is left out and named
with HDF5's reason. A file that was cut short is taken too, as far as its tables are there. The input is only read.
Exit status 1 where anything was lost; 3, and no copy, where another build has to read the file.
"""
from __future__ import annotations

import argparse
import json
import math
import os
import re
import shutil
import tempfile
from typing import TYPE_CHECKING, Any, NamedTuple, Optional

from ..whole import whole
from .child import Died, attempt
from .common import Problem, file_access, need, refuse_others, say, size, writing

if TYPE_CHECKING:
    from .objects import Note
    from .salvage import Lost, Step

# Lost chunks of a dataset that are printed one by one.
_LISTED = 50
_SHOWN = 8  # names of datasets in a note
# Objects and attributes at which HDF5 may crash, at most: each takes an attempt of its own.
_LEFT_OUT = 100
_ELSEWHERE = ("take it from a backup; h5debug shows HDF5's tables, and h5clear -s opens a file again that a program "
              "left open for writing")
# How long HDF5 may be at one object: seconds, and bytes of the file for each further one.
_SECONDS, _RATE = 20, 10e6


def add(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("input", metavar="IN", help="the damaged HDF5 or netCDF-4 file; it is not changed")
    parser.add_argument("output", metavar="OUT", help="the file to make; it must not exist")
    parser.add_argument("--fill", metavar="VALUE", help="put this number where values are lost, such as nan or -999")
    parser.add_argument("--limit", metavar="SECONDS", type=_seconds, help="how long HDF5 may be at one object (without "
                        "it: 20 seconds and one more for each 10 MB of the file)")
    parser.add_argument("--json", action="store_true", help="print what was lost as JSON")


def run(args: argparse.Namespace) -> int:
    """Makes OUT."""
    need("h5py")
    refuse_others(args.input)
    fill = None if args.fill is None else _number(args.fill)
    there = os.path.getsize(args.input)
    with writing(args.output), whole(args.output, "x") as part:
        with tempfile.TemporaryDirectory(prefix=f"{os.path.basename(part)}.", dir=os.path.dirname(part)) as scratch:
            job = _Job(args.input, os.path.join(scratch, "new"), os.path.join(scratch, "longer"), there, fill)
            lost, unchecked = _recover(job, args.limit or _SECONDS + there / _RATE)
            os.replace(job.made, part)
    if args.json:
        notes = [_note(unchecked)] if unchecked else []
        print(json.dumps({"input": args.input, "output": args.output, "lost": lost, "notes": notes}, indent=1))
    else:
        _print(args, lost, unchecked)
    return 1 if lost else 0


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds < math.inf:
        raise ValueError(text)
    return seconds


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise Problem(f"--fill {text} is no number; give one such as nan or -999") from None


class _Job(NamedTuple):
    """What is to be recovered."""

    source: str
    made: str
    longer: str  # for a copy of a source that was cut short
    there: int  # bytes of the source
    fill: Optional[float]


def _recover(job: _Job, seconds: float) -> tuple[Lost, list[str]]:
    """Makes the file; what was lost, and the datasets whose values have no checksum.

    HDF5 may crash on damaged tables, or never come back. So each attempt has a process of its own, and the next one
    leaves out the object or attribute at which the last one ended.
    """
    from .objects import UNREADABLE, of_the_system, reason

    without: dict[Step, str] = {}
    while True:
        try:
            return attempt(lambda note: _copy(job, without, note), seconds)
        except Died as end:
            if end.at is None:
                raise Problem(f"{end} when it opened the file, so nothing can be taken from it; --limit gives it "
                              f"longer, and {_ELSEWHERE}") from None
            if end.at in without or len(without) == _LEFT_OUT or end.at == ("/", None):
                raise Problem(f"{end} at {end.at[0]}, and {len(without)} objects are left out already: nothing can be "
                              f"taken from the file; --limit gives it longer, and {_ELSEWHERE}") from None
            without[end.at] = str(end)
        except UNREADABLE as why:
            if of_the_system(why):
                raise
            raise Problem(f"HDF5 cannot make a new file of {job.source}: {reason(why)}; {_ELSEWHERE}") from None


def _copy(job: _Job, without: dict[Step, str], note: Note) -> tuple[Lost, list[str]]:
    """One attempt."""
    from .creation import copy_user_block, create_like
    from .salvage import Salvage

    source, lost = _open(job)
    with open(source.filename, "rb") as data, source:
        note(("/", None))
        with create_like(source, job.made) as target:
            new = Salvage(source, target, data.fileno(), job.there, job.fill, without=without, note=note)
            new.run()
        new.builds.refuse(job.source)
        new.finish(job.made)
        copy_user_block(source, job.made)
    return lost + new.lost, new.unchecked


def _open(job: _Job) -> tuple[Any, Lost]:
    """The file that is read: the input or, where that was cut short, a copy as long as HDF5 says that it was."""
    import h5py

    from .objects import UNREADABLE, reason

    def root(path: str) -> h5py.File:
        file = h5py.File(h5py.h5f.open(os.fsencode(path), h5py.h5f.ACC_RDONLY, file_access()))
        h5py.h5o.get_info(file["/"].id)
        return file

    try:
        return root(job.source), []
    except UNREADABLE as why:
        stated = re.search(r"base_addr = (\d+), stored_eof = (\d+)", str(why))
        if stated is None:
            raise Problem(f"HDF5 cannot read the file's table of contents, so nothing can be taken from it: "
                          f"{reason(why)}; {_ELSEWHERE}") from None
    should = int(stated[2])
    shutil.copyfile(job.source, job.longer)
    os.truncate(job.longer, should)
    try:
        return root(job.longer), [{"object": "the file's end",
                                   "why": f"cut short: {job.there} of {should} bytes are there"}]
    except UNREADABLE as why:
        raise Problem(f"the file is cut short ({job.there} of {should} bytes), and its table of contents was in the "
                      f"part that is missing: nothing can be taken from it ({reason(why)}); {_ELSEWHERE}") from None


def _note(unchecked: list[str]) -> str:
    """What nobody can know of values without a checksum."""
    names = ", ".join(unchecked[:_SHOWN]) + (f" and {len(unchecked) - _SHOWN} more" if len(unchecked) > _SHOWN else "")
    return f"values without a checksum are as they were found: {names}"


def _print(args: argparse.Namespace, lost: Lost, unchecked: list[str]) -> None:
    done = f"{args.output}: {size(os.path.getsize(args.output))}"
    if not lost:
        say(f"{done}; nothing in {args.input} is damaged, this is a copy of it")
        if unchecked:
            say(f"note: {_note(unchecked)}")
        return
    say(done)
    shown: dict[str, int] = {}
    for what in lost:
        name = what["object"]
        shown[name] = shown.get(name, 0) + 1
        if shown[name] > _LISTED:
            continue
        if "chunk" in what:
            say(f"lost: {name}, chunk at {tuple(what['chunk'])}, values {what['values']}, now {what['filled_with']}: "
                f"{what['why']}")
        elif "values" in what:
            say(f"lost: {name}, {what['values']} values, now {what['filled_with']}: {what['why']}")
        elif "attribute" in what:
            say(f"lost: {name}, attribute {what['attribute']}: {what['why']}")
        else:
            say(f"lost: {name}: {what['why']}")
    for name, n in shown.items():
        if n > _LISTED:
            say(f"lost: {name}, and {n - _LISTED} chunks more; --json lists all")
    if any("values" not in what for what in lost):
        say(f"what HDF5 cannot read is not in the copy: {_ELSEWHERE}")
