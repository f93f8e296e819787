# SPDX-License-Identifier: MIT OR Apache-2.0
"""Copies a damaged file, keeps what is good, fills what is lost, and names it.

OUT is the input byte for byte, but for chunks that cannot be decoded: each is replaced by one of the fill value. A
floating-point dataset without a fill value of its own gets NaN. Where HDF5's own tables are damaged, what can be read
goes into a new file. A file that was cut short is taken too. The input is only read. Exit status 1 where anything was
lost.
"""
from __future__ import annotations

import argparse
import dataclasses
import json
import math
import os
import re
import shutil
import tempfile
from typing import TYPE_CHECKING, Any, NamedTuple, Optional

from ..whole import whole
from .child import Died, attempt
from .common import Problem, need, refuse_others, say, size, writing

if TYPE_CHECKING:
    from .objects import Note
    from .rebuild import Step

# Lost chunks of a dataset that are printed one by one.
_LISTED = 50
_SHOWN = 8  # names of datasets in a note
# Objects and attributes that are left out one after the other, at most.
_LEFT_OUT = 100
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
    seconds = args.limit or _SECONDS + os.path.getsize(args.input) / _RATE
    with writing(args.output), whole(args.output, "x") as part:
        with tempfile.TemporaryDirectory(prefix=f"{os.path.basename(part)}.", dir=os.path.dirname(part)) as scratch:
            made, lost, _, notes = _recover(_Job(args.input, scratch, os.path.getsize(args.input), fill, {}), seconds)
            os.replace(made, part)
    if args.json:
        print(json.dumps({"input": args.input, "output": args.output, "lost": lost, "notes": notes}, indent=1))
    else:
        _print(args, lost, notes)
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


@dataclasses.dataclass
class _Job:
    """What is to be recovered. `scratch` is a folder for what is made, `without` what is left out, with why."""

    source: str
    scratch: str
    there: int  # bytes of the source
    fill: Optional[float]
    without: dict[Step, str]

    def copy(self) -> str:
        """A new copy of the input that can be opened."""
        path = os.path.join(self.scratch, "copy")
        shutil.copyfile(self.source, path)
        _open(path, self.there)
        return path


class _Made(NamedTuple):
    """What an attempt made: a file, what is lost of it, and what of it is wrong, so that it cannot be handed out."""

    path: str
    lost: list[dict[str, Any]]
    wrong: dict[Step, str]
    notes: tuple[str, ...] = ()  # what cannot be known of a file in which nothing is damaged


def _recover(job: _Job, seconds: float) -> _Made:
    """Makes the file. Each attempt has a process of its own: HDF5 may crash on damaged tables, or never come back."""
    from .objects import UNREADABLE, of_the_system, reason

    try:
        cut = attempt(lambda note: _open(shutil.copyfile(job.source, os.path.join(job.scratch, "copy")), job.there),
                      seconds)
    except Died as end:
        raise Problem(f"{end} when it opened the file, so nothing can be taken from it; --limit gives it "
                      f"longer") from None
    ways = [_in_place, _copied, _by_chunks]
    while ways:
        way, known = ways[0], len(job.without)
        try:
            made = attempt(lambda note: way(job, note), seconds)
        except (Died, *UNREADABLE) as end:
            if of_the_system(end):
                raise
            at = getattr(end, "at", None)
            if at is None:
                raise Problem(f"{reason(end)} before any object was read, so nothing can be taken from the file; "
                              f"--limit gives it longer") from None
            # By chunks alone HDF5 reads the least. What it still cannot read is left out, and so are attributes: for
            # them there is no other way.
            if way is _by_chunks or at[1] is not None:
                job.without[at] = reason(end)
            ways = ways[-1:]
        else:
            if made is not None and not made.wrong:
                return made._replace(lost=cut + made.lost)
            if made is not None and way is _by_chunks:
                job.without.update(made.wrong)
            else:
                ways = ways[1:]
        if way is _by_chunks and not known < len(job.without) <= _LEFT_OUT:
            break
    raise Problem("what could be read of the file cannot be written again; please report this with the file")


def _in_place(job: _Job, note: Note) -> Optional[_Made]:
    """A copy of the file in which lost chunks are replaced; None where more than chunks is damaged."""
    import h5py

    from . import groups
    from .objects import CHECKED, chunks_of, datasets, filters_of
    from .rebuild import differences, known_sums, survey
    from .repair import fill_chunks, fill_end

    copy, lost, sums, notes = job.copy(), [], {}, []
    with open(job.source, "rb") as data:
        with h5py.File(copy, "r") as file:
            if survey(file, data.fileno(), note):
                return None
            notes += [f"{path}: {why}: its link was deleted, or the list of objects is damaged"
                      for path, why in groups.vanished(file, data.fileno())[1].items()]
            if file.id.get_create_plist().get_version()[0] < 2:
                notes.append("names, types, extents and attributes have no checksum in a file of this age")
        with h5py.File(copy, "r+") as file:
            unchecked = []
            for dataset in datasets(file, note):
                if dataset.id.get_storage_size() and not {f[0] for f in filters_of(dataset)} & CHECKED:
                    unchecked.append(dataset.name)
                chunks = chunks_of(dataset, data.fileno(), check="decode", others=True)
                if chunks is None:
                    lost += fill_end(dataset.name, dataset, dataset, job.there, job.fill)
                elif chunks.lost_index:
                    return None
                else:
                    lost += fill_chunks(dataset.name, chunks, dataset, job.fill)
                    sums[dataset.name] = known_sums(chunks)
    if unchecked:
        names = ", ".join(unchecked[:_SHOWN]) + (f" and {len(unchecked) - _SHOWN} more" if len(unchecked) > _SHOWN
                                                 else "")
        notes.append(f"values without a checksum are as they were found: {names}")
    return _Made(copy, lost, differences(copy, sums, note), tuple(notes))


def _copied(job: _Job, note: Note, distrust: bool = False) -> _Made:
    """A new file of what can be read: HDF5 may crash when it changes a file whose own tables are damaged."""
    import h5py

    from .creation import copy_user_block
    from .rebuild import Rebuild, begun, differences
    from .times import restore

    copy, made = job.copy(), os.path.join(job.scratch, "new")
    # Without a cache of chunks: H5Ocopy writes beyond its buffers where chunks of gzip and fletcher32 are in one.
    with open(job.source, "rb") as data, h5py.File(copy, "r", rdcc_nbytes=0) as file:
        with begun(file, made, job.without, note) as out:
            new = Rebuild(file, out, data.fileno(), job.there, job.fill, distrust=distrust, without=job.without,
                          note=note)
            new.run()
        restore(made, file.userblock_size, new.times)
        copy_user_block(file, made)
    unknown = [{"object": "/", "why": "HDF5's tables are damaged; what they do not list any more is not in the "
                "new file"}]
    return _Made(made, new.lost or unknown, differences(made, new.made, note))


def _by_chunks(job: _Job, note: Note) -> _Made:
    """As `_copied`, with nothing copied as it is."""
    return _copied(job, note, distrust=True)


def _open(path: str, there: int) -> list[dict[str, Any]]:
    """Sees that the copy can be opened, and makes it as long as it should be where the input was cut short."""
    import h5py

    from .objects import UNREADABLE, reason

    def try_it() -> None:
        with h5py.File(path, "r") as file:
            h5py.h5o.get_info(file["/"].id)

    try:
        try_it()
        return []
    except UNREADABLE as why:
        stated = re.search(r"base_addr = (\d+), stored_eof = (\d+)", str(why))
        if stated is None:
            raise Problem(f"HDF5 cannot read the file's table of contents, so nothing can be taken from it: "
                          f"{reason(why)}") from None
    should = max(int(stated[2]), there)
    os.truncate(path, should)
    try:
        try_it()
    except UNREADABLE as why:
        raise Problem(
            f"the file is cut short ({there} of {should} bytes), and its table of contents was in the part that is "
            f"missing: nothing can be taken from it ({reason(why)})"
        ) from None
    return [{"object": "the file's end", "why": f"cut short: {there} of {should} bytes are there"}]


def _print(args: argparse.Namespace, lost: list[dict[str, Any]], notes: tuple[str, ...]) -> None:
    done = f"{args.output}: {size(os.path.getsize(args.output))}"
    if not lost:
        say(f"{done}; nothing in {args.input} is damaged, this is a copy of it")
        for note in notes:
            say(f"note: {note}")
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
