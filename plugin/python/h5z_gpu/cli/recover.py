# SPDX-License-Identifier: MIT OR Apache-2.0
"""Copies a damaged file, keeps what is good, fills what is lost, and names it.

OUT is the input byte for byte, but for chunks that cannot be decoded: each is replaced by one of the fill value. A floating-point
dataset without a fill value of its own gets NaN. Where HDF5's own tables are damaged, what can be read goes into a new file. A
file that was cut short is taken too. The input is only read. Exit status 1 where anything was lost.
"""
from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import tempfile
from typing import Any, Optional

from ..whole import whole
from .common import Problem, datasets, need, refuse_others, size, writing

# Lost chunks of a dataset that are printed one by one.
_LISTED = 50


def add(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("input", metavar="IN", help="the damaged HDF5 or netCDF-4 file; it is not changed")
    parser.add_argument("output", metavar="OUT", help="the file to make; it must not exist")
    parser.add_argument("--fill", metavar="VALUE", help="put this number where values are lost, such as nan or -999")
    parser.add_argument("--json", action="store_true", help="print what was lost as JSON")


def run(args: argparse.Namespace) -> int:
    """Makes OUT."""
    need("h5py")
    refuse_others(args.input)
    fill = None if args.fill is None else _number(args.fill)
    with writing(args.output), whole(args.output, "x") as part:
        with tempfile.TemporaryDirectory(prefix=f"{os.path.basename(part)}.", dir=os.path.dirname(part)) as scratch:
            made, lost = _recover(args.input, scratch, fill)
            os.replace(made, part)
    if args.json:
        print(json.dumps({"input": args.input, "output": args.output, "lost": lost}, indent=1))
    else:
        _print(args, lost)
    return 1 if lost else 0


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise Problem(f"--fill {text} is no number; give one such as nan or -999") from None


def _recover(source: str, scratch: str, fill: Optional[float]) -> tuple[str, list[dict[str, Any]]]:
    """The path of the file that was made, and what is lost."""
    import h5py

    from .objects import chunks_of
    from .rebuild import rebuild, survey
    from .repair import fill_chunks, fill_end

    there = os.path.getsize(source)
    copy = os.path.join(scratch, "copy")
    shutil.copyfile(source, copy)
    cut = _open(copy, there)
    with open(source, "rb") as data:
        with h5py.File(copy, "r") as file:
            sick = survey(file, data.fileno())
        if not sick:
            lost = []
            with h5py.File(copy, "r+") as file:
                for dataset in datasets(file):
                    chunks = chunks_of(dataset, data.fileno(), check="decode", others=True)
                    if chunks is None:
                        lost += fill_end(dataset.name, dataset, dataset, there, fill)
                    else:
                        lost += fill_chunks(dataset.name, chunks, dataset, fill)
            if not lost or not _still_damaged(copy):
                return copy, cut + lost
            shutil.copyfile(source, copy)
            _open(copy, there)
        # HDF5 may crash when it changes a file whose own tables are damaged: what can be read goes into a new one.
        made = os.path.join(scratch, "new")
        for distrust in (False, True):
            with h5py.File(copy, "r") as file, h5py.File(made, "w", track_order=True) as out:
                lost = rebuild(file, out, data.fileno(), there, fill, distrust=distrust)
            if not _still_damaged(made):
                unknown = [{"object": "/", "why": "HDF5's tables are damaged; what they do not list any more is not in the new file"}]
                return made, cut + (lost or unknown)
    raise Problem("what could be read of the file cannot be written again; please report this with the file")


def _still_damaged(path: str) -> bool:
    """Whether anything in the file that was made cannot be read."""
    import h5py

    from .rebuild import survey

    with h5py.File(path, "r") as file, open(path, "rb") as data:
        return survey(file, data.fileno(), contents=True)


def _open(path: str, there: int) -> list[dict[str, Any]]:
    """Sees that the copy can be opened, and makes it as long as it should be where the input was cut short."""
    import h5py

    from .objects import UNREADABLE, reason

    def try_it():
        with h5py.File(path, "r") as file:
            h5py.h5o.get_info(file["/"].id)

    try:
        try_it()
        return []
    except UNREADABLE as why:
        stated = re.search(r"base_addr = (\d+), stored_eof = (\d+)", str(why))
        if stated is None:
            raise Problem(f"HDF5 cannot read the file's table of contents, so nothing can be taken from it: {reason(why)}") from None
    should = max(int(stated[2]), there)
    os.truncate(path, should)
    try:
        try_it()
    except UNREADABLE as why:
        raise Problem(
            f"the file is cut short ({there} of {should} bytes), and its table of contents was in the part that is missing: "
            f"nothing can be taken from it ({reason(why)})"
        ) from None
    return [{"object": "the file's end", "why": f"cut short: {there} of {should} bytes are there"}]


def _print(args: argparse.Namespace, lost: list[dict[str, Any]]) -> None:
    done = f"{args.output}: {size(os.path.getsize(args.output))}"
    if not lost:
        print(f"{done}; nothing in {args.input} is damaged, this is a copy of it")
        return
    print(done)
    shown: dict[str, int] = {}
    for what in lost:
        name = what["object"]
        shown[name] = shown.get(name, 0) + 1
        if shown[name] > _LISTED:
            continue
        if "chunk" in what:
            print(f"lost: {name}, chunk at {tuple(what['chunk'])}, values {what['values']}, now {what['filled_with']}: {what['why']}")
        elif "values" in what:
            print(f"lost: {name}, {what['values']} values, now {what['filled_with']}: {what['why']}")
        elif "attribute" in what:
            print(f"lost: {name}, attribute {what['attribute']}: {what['why']}")
        else:
            print(f"lost: {name}: {what['why']}")
    for name, n in shown.items():
        if n > _LISTED:
            print(f"lost: {name}, and {n - _LISTED} chunks more; --json lists all")
