# SPDX-License-Identifier: MIT OR Apache-2.0
"""Copies a damaged file, keeps what is good, fills what is lost, and names it.

OUT is the input byte for byte, but for chunks that cannot be decoded: each is replaced by one of the fill value. A floating-point
dataset without a fill value of its own gets NaN. A file that was cut short is taken too. The input is only read. Exit status 1
where anything was lost.
"""
from __future__ import annotations

import argparse
import json
import math
import os
import re
import shutil
from typing import Any, Optional

from .common import Problem, _refuse_others, need, size

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
    _refuse_others(args.input)
    fill = None if args.fill is None else _number(args.fill)
    try:
        # Fails where OUT is there, be it the input itself.
        made = os.open(args.output, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    except FileExistsError:
        raise Problem(f"{args.output} exists; give the name of a file that does not") from None
    except OSError as why:
        raise Problem(f"{args.output}: {why.strerror}") from None
    try:
        with open(args.input, "rb") as source, os.fdopen(made, "wb") as out:
            shutil.copyfileobj(source, out, 16 << 20)
        lost = _repair(args, fill)
    except BaseException as why:
        os.unlink(args.output)
        if isinstance(why, OSError):
            raise Problem(f"{args.output} could not be made: {why}") from None
        raise
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


def _repair(args: argparse.Namespace, fill: Optional[float]) -> list[dict[str, Any]]:
    """Fills what is lost in OUT, which is a copy by now; what that was."""
    import h5py

    from .objects import walk

    there = os.path.getsize(args.input)
    lost: list[dict[str, Any]] = []
    file = _open(args.output, there, lost)
    descriptor = os.open(args.input, os.O_RDONLY)
    try:
        for name, item in walk(file):
            if isinstance(item, str):
                lost.append({"object": name, "why": item, "removed": _removed(file, name)})
                continue
            if isinstance(item, h5py.Dataset):
                lost += _fill_dataset(name, item, descriptor, there, fill)
            if not isinstance(item, h5py.Datatype):
                lost += _attributes(name, item)
        lost += _attributes("/", file)
        file.close()
        _look_again(args.output, lost)
    finally:
        os.close(descriptor)
        file.close()
    return lost


def _open(path: str, there: int, lost: list[dict[str, Any]]) -> Any:
    """The copy, open for writing; made as long as it should be where the input was cut short."""
    import h5py

    from .objects import UNREADABLE, reason

    try:
        file = h5py.File(path, "r+")
        h5py.h5o.get_info(file["/"].id)
        return file
    except UNREADABLE as why:
        stated = re.search(r"base_addr = (\d+), stored_eof = (\d+)", str(why))
        if stated is None:
            raise Problem(f"HDF5 cannot read the file's table of contents, so nothing can be taken from it: {reason(why)}") from None
    should = int(stated[1]) + int(stated[2]) if int(stated[2]) < there else int(stated[2])
    os.truncate(path, should)
    lost.append({"object": "the file's end", "why": f"cut short: {there} of {should} bytes are there"})
    try:
        file = h5py.File(path, "r+")
        h5py.h5o.get_info(file["/"].id)
        return file
    except UNREADABLE as why:
        raise Problem(
            f"the file is cut short ({there} of {should} bytes), and its table of contents was in the part that is missing: "
            f"nothing can be taken from it ({reason(why)})"
        ) from None


def _removed(file: Any, name: str) -> bool:
    """Takes an object that cannot be read out of the copy, where HDF5 can do that."""
    from .objects import UNREADABLE

    try:
        del file[name]
        return True
    except UNREADABLE:
        return False


def _attributes(name: str, item: Any) -> list[dict[str, Any]]:
    """Attributes that cannot be read, which are taken out."""
    from .objects import UNREADABLE, reason

    lost = []
    try:
        names = list(item.attrs)
    except UNREADABLE as why:
        return [{"object": name, "attribute": "all", "why": reason(why), "removed": False}]
    for attribute in names:
        try:
            item.attrs.get_id(attribute).dtype
            item.attrs[attribute]
        except OSError as why:
            removed = True
            try:
                del item.attrs[attribute]
            except UNREADABLE:
                removed = False
            lost.append({"object": name, "attribute": attribute, "why": reason(why), "removed": removed})
        except UNREADABLE:
            pass  # of a type that h5py cannot show; it is there
    return lost


def _fill_dataset(name: str, dataset: Any, file: int, there: int, fill: Optional[float]) -> list[dict[str, Any]]:
    """Fills what is lost of a dataset; `file` is the input, of `there` bytes."""
    from .objects import UNREADABLE, chunks_of, reason

    if dataset.chunks is None:
        return _fill_contiguous(name, dataset, there, fill)
    try:
        chunks = chunks_of(dataset, file, check="decode", others=True)
    except UNREADABLE as why:
        return [{"object": name, "why": f"its list of chunks: {reason(why)}", "removed": False}]
    if chunks.lost_index:
        return [{"object": name, "why": f"its list of chunks: {chunks.lost_index}", "removed": False}]
    lost = []
    for row, why in sorted(chunks.damage.items()):
        value = _put(chunks, row, fill)
        box = ", ".join(f"{part.start}:{part.stop}" for part in chunks.box(row))
        lost.append({"object": name, "chunk": chunks.origins[row].tolist(), "values": f"[{box}]", "filled_with": value, "why": why})
    return lost


def _put(chunks: Any, row: int, fill: Optional[float]) -> str:
    """Replaces a chunk by one that holds the fill value; which, as text."""
    import numpy as np

    from ..arrays import compress
    from ..filters import FILTER_ID
    from .objects import filters_of

    dataset = chunks.dataset
    element, text = _element(dataset, fill)
    raw = np.frombuffer(element * math.prod(chunks.shape), f"V{len(element)}").reshape(chunks.shape)
    numbers = [f[0] for f in filters_of(dataset)]
    # The filters that this chunk does without: all but ours.
    mask = sum(1 << place for place, number in enumerate(numbers) if number != FILTER_ID)
    stored = compress(raw) if FILTER_ID in numbers else raw.tobytes()
    dataset.id.write_direct_chunk(tuple(int(o) for o in chunks.origins[row]), stored, mask)
    return text


def _element(dataset: Any, fill: Optional[float]) -> tuple[bytes, str]:
    """One element, as it stands in the file, for lost values of a dataset; and as text."""
    import h5py
    import numpy as np

    item = dataset.id.get_type().get_size()
    try:
        kind = dataset.dtype
    except TypeError:
        kind = None
    if kind is None or kind.hasobject or kind.itemsize != item:
        return bytes(item), "zero bytes"
    defined = dataset.id.get_create_plist().fill_value_defined() == h5py.h5d.FILL_VALUE_USER_DEFINED
    value = dataset.fillvalue
    if fill is not None and kind.kind in "fiu":
        if kind.kind != "f" and not (math.isfinite(fill) and fill == int(fill) and np.iinfo(kind).min <= fill <= np.iinfo(kind).max):
            raise Problem(f"--fill {fill:g} is no value of {dataset.name}, which holds {kind}")
        value = fill if kind.kind == "f" else int(fill)
    elif kind.kind == "f" and not defined:
        value = math.nan
    element = np.asarray(value, kind)
    return element.tobytes(), str(element)


def _fill_contiguous(name: str, dataset: Any, there: int, fill: Optional[float]) -> list[dict[str, Any]]:
    """Fills the end of a dataset in one piece that lay where the input was cut."""
    import numpy as np

    at = dataset.id.get_offset()
    stored = dataset.id.get_storage_size()
    if at is None or at + stored <= there or not dataset.size:
        return []
    element, text = _element(dataset, fill)
    first = max(0, there - at) // len(element)
    if not text.endswith("bytes"):
        whole = dataset[()]
        flat = np.atleast_1d(whole).reshape(-1)
        flat[first:] = np.frombuffer(element, dataset.dtype)[0]
        dataset[()] = flat.reshape(dataset.shape)
    return [{"object": name, "values": f"the last {dataset.size - first} of {dataset.size}", "filled_with": text,
             "why": f"it ends at byte {at + stored}, the input at {there}"}]  # fmt: skip


def _look_again(path: str, lost: list[dict[str, Any]]) -> None:
    """Reads what was filled through HDF5."""
    import h5py

    with h5py.File(path, "r") as file:
        for what in lost:
            if "chunk" in what:
                dataset = file[what["object"]]
                box = tuple(slice(o, min(o + c, n)) for o, c, n in zip(what["chunk"], dataset.chunks, dataset.shape))
                try:
                    dataset[box]
                except OSError as why:
                    raise Problem(f"the chunk at {what['chunk']} of {what['object']} was filled and cannot be read: {why}") from None


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
        elif "removed" in what:
            print(f"lost: {name}{'' if what['removed'] else ' (it is still there, and cannot be read)'}: {what['why']}")
        else:
            print(f"lost: {name}, {what['why']}")
    for name, n in shown.items():
        if n > _LISTED:
            print(f"lost: {name}, and {n - _LISTED} chunks more; --json lists all")
