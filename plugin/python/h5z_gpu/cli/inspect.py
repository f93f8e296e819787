# SPDX-License-Identifier: MIT OR Apache-2.0
"""Shows what a file's datasets were promised, what each chunk got, and which chunks are damaged.

Every frame is compared with its checksum; nothing is decoded, no GPU is needed. Exit status 1 where something is
damaged, 3 where another build has to read the file.
"""
from __future__ import annotations

import argparse
import json
import math
import os
from typing import Any, Optional

import numpy as np

from .. import modes
from .builds import OtherBuilds
from .common import Problem, need, open_file, ratio, say, sentence, size

# Damaged chunks that are listed one by one.
_LISTED = 20
_WIDTH, _HEIGHT = 72, 24  # of the map


def add(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("file", metavar="FILE", help="an HDF5 or netCDF-4 file")
    parser.add_argument("--dataset", metavar="NAME", action="append",
                        help="this dataset alone; may be given several times")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--headers", action="store_true", help="read the first bytes of each chunk alone, for very "
                     "large files")
    how.add_argument("--check", action="store_true", help="decode each chunk as well")
    parser.add_argument("--json", action="store_true", help="print JSON: every chunk with its place, size, codec "
                        "and bound")


def run(args: argparse.Namespace) -> int:
    """Prints what the file holds."""
    need("h5py")
    check, builds = "decode" if args.check else "header" if args.headers else "checksum", OtherBuilds()
    with open_file(args.file) as file:
        from .objects import one_dataset

        wanted = {one_dataset(file, name).name for name in args.dataset} if args.dataset else None
        found = examine(file, args.file, check, builds, wanted)
    if not any("asked" in what or "unreadable" in what for what in found):
        filters = sorted({name for what in found for name in what["filters"]})
        there = (
            f"{_count(len(found), 'dataset')}{', with ' + ', '.join(filters) if filters else ', without any filter'}"
            if found else "none at all")
        elsewhere = sorted({name for what in found for name in what.get("sources", ())})
        more = (f"; its data is in {', '.join(elsewhere[:4])}{' …' if len(elsewhere) > 4 else ''}: inspect those"
                if elsewhere else "")
        raise Problem(f"{args.file} has no dataset with the filter h5z-gpu here, but {there}{more}")
    damaged = sum(what.get("damaged", 0) for what in found) + sum("unreadable" in what for what in found)
    broken = sum("broken_promise" in what for what in found)
    if args.json:
        report = {"file": args.file, "bytes": os.path.getsize(args.file), "checked": check, "damaged": damaged,
                  "objects": found}
        print(json.dumps(report, indent=1, default=_plain))
    else:
        _print(args.file, found, damaged, check)
    builds.refuse(args.file)
    return 1 if damaged or broken else 0


def _plain(value: Any) -> Any:
    """NumPy's numbers for JSON."""
    return value.item()


def examine(file: Any, path: str, check: str, builds: OtherBuilds,
            wanted: Optional[set[str]] = None) -> list[dict[str, Any]]:
    """What is to be said of each dataset, or of those that are wanted, and of objects that cannot be read; `check` as
    `objects.chunks_of` takes it. `builds` counts chunks of other builds."""
    import h5py

    from .objects import UNREADABLE, reason, walk

    found: list[dict[str, Any]] = []
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    try:
        for name, item in walk(file):
            if wanted is not None and name not in wanted:
                continue
            if isinstance(item, str):
                found.append({"name": name, "unreadable": item})
            elif isinstance(item, h5py.Dataset):
                try:
                    found.append(_dataset(name, item, descriptor, check, builds))
                except UNREADABLE as why:
                    found.append({"name": name, "unreadable": reason(why)})
    finally:
        os.close(descriptor)
    return found


def _dataset(name: str, dataset: Any, file: int, check: str, builds: OtherBuilds) -> dict[str, Any]:
    """What is to be said of one dataset."""
    import h5py

    from .objects import chunks_of, filters_of

    try:
        kind = str(dataset.dtype)
    except TypeError:
        kind = "a type that NumPy has not"
    what: dict[str, Any] = {"name": name, "type": kind, "shape": dataset.shape, "chunk_shape": dataset.chunks}
    chunks = chunks_of(dataset, file, check=check) if dataset.chunks else None
    if chunks is None:
        what["filters"] = [f[3] for f in filters_of(dataset)] if dataset.chunks else []
        what["stored_bytes"] = dataset.id.get_storage_size()
        what["layout"] = "chunks" if dataset.chunks else "contiguous"
        if getattr(dataset, "is_virtual", False):
            what["layout"], what["sources"] = "virtual", sorted({source.file_name
                                                                 for source in dataset.virtual_sources()})
        return what
    others = builds.take(name, chunks)
    what["filters"] = chunks.filters
    what |= _promise(chunks)
    # Words may be without the type: HDF5 tells none of strings of variable length.
    what["lossy"] = what.get("lossy") and dataset.id.get_type().get_class() == h5py.h5t.FLOAT
    n = len(chunks.at)
    # Sizes are of the dataset's values, as verify, repack and h5dump count them; a chunk at the edge has room for more.
    item = chunks.raw_len // math.prod(dataset.chunks)
    what |= {"chunks": n, "chunks_not_stored": math.prod(chunks.grid) - n, "raw_bytes": dataset.size * item,
             "item_bytes": item,
             "stored_bytes": int(chunks.stored.sum()),
             "damaged": len(chunks.damage) + bool(chunks.lost_index) + bool(chunks.doubt),
             "of_other_builds": len(others),
             "stored_without_filter": int(chunks.raw.sum()), "grid": chunks.grid,
             "chunk_bytes": chunks.raw_len}
    if len(drafts := np.unique(chunks.frames["draft"])) and drafts[-1]:
        what["drafts"] = [f"{draft:08x}" for draft in drafts if draft]
    settled = _settled(what)
    what["each"] = [_chunk(chunks, row, settled, row in others) for row in range(n)]
    if chunks.lost_index:
        what["damaged_index"] = chunks.lost_index
    if chunks.doubt:
        what["damaged_header"] = chunks.doubt
    used = [c["bound"] for c in what["each"] if c.get("bound")]
    promised = what["asked"].get("bound")
    # A bound that follows the chunk's range is another one in each chunk.
    each_value = [mode.name for mode in modes.all_modes() if mode.of in ("data", "value")]
    if what["asked"]["mode"] in each_value and used and max(used) > promised:
        what["broken_promise"] = f"a chunk was coded with {max(used):g}, which is more than {promised:g}"
    return what


def _promise(chunks: Any) -> dict[str, Any]:
    """What the words ask for."""
    from ..filters import Lossy
    from ..stored_words import meaning

    try:
        how = Lossy.from_filter_options(chunks.words)
        said = meaning(chunks.words)
    except ValueError as why:
        return {"asked": {"mode": "?", "words": chunks.words, "problem": str(why)},
                "promise": f"words without a meaning: {why}"}
    asked: dict[str, Any] = {"mode": said.mode, "codec": said.codec, "words": chunks.words, "text": repr(how)}
    if said.bound is not None:
        asked["bound"] = said.bound
    if said.keep:
        asked["keep"] = said.keep
    fill = getattr(how, "fill_value", None)
    if fill is not None:
        asked["fill_value"] = fill if math.isfinite(fill) else str(fill)
    lossy = said.stored.may_lose if said.stored is not None else said.bound is not None
    return {"asked": asked, "promise": sentence(how), "lossy": lossy}


def _settled(what: dict[str, Any]) -> dict[str, float]:
    """Codecs without loss whose frames may hold values that were changed before, and by how much at most.

    Where `planes` with an absolute bound does not make a chunk smaller, the frame holds the values that `planes` would
    have given back, so that they never move again: planes/FORMAT.md 8.1. Its mode is 9, "of the section alone"."""
    asked = what["asked"]
    if not what.get("lossy") or asked["mode"] != modes.named("absolute").name:
        return {}
    of_planes = ("stored", "bytes")
    kept = {"planes": of_planes, "fast": of_planes, "small": ("bytes",), "auto": ("stored",)}.get(asked["codec"], ())
    return dict.fromkeys(kept, asked["bound"])


def _chunk(chunks: Any, row: int, settled: dict[str, float], other: bool) -> dict[str, Any]:
    """What is to be said of one chunk."""
    what: dict[str, Any] = {"origin": chunks.origins[row].tolist(), "stored_bytes": int(chunks.stored[row]),
                            "file_offset": int(chunks.at[row])}
    if row in chunks.damage:
        box = ", ".join(f"{part.start}:{part.stop}" for part in chunks.box(row))
        return what | {"damaged": chunks.damage[row], "values": f"[{box}]"}
    if other:
        return what | {"of_other_build": True}
    if chunks.raw[row]:
        return what | {"codec": "none", "lossless": True}
    if not chunks.frame[row]:
        return what | {"codec": "hidden"}  # another filter lies above it
    frame = chunks.frames[row]
    codec, mode = modes.frame_codec(frame["codec"]), modes.numbered(frame["mode"])
    if mode.of == "none":
        exact = codec not in settled
        return what | {"codec": codec, "lossless": exact} | ({} if exact else {"bound": settled[codec]})
    what |= {"codec": codec, "lossless": False, "bound": float(frame["bound"])}
    return what | ({"of_each_value": True} if mode.of == "value" else {})


# --- text
# --------------------------------------------------------------------------------------------------------------


def _print(path: str, found: list[dict[str, Any]], damaged: int, check: str) -> None:
    ours = [what for what in found if "asked" in what]
    others = [what for what in found if "asked" not in what and "unreadable" not in what]
    say(f"{path}: {size(os.path.getsize(path))}, {_count(len(ours), 'dataset')} with the filter h5z-gpu, {len(others)} "
        f"without")
    for what in ours:
        say("")
        _print_dataset(what)
    if others:
        say("", "without the filter, exact as far as this filter goes:")
        for what in others:
            filters = ", ".join(what["filters"]) or "no filter"
            say(f"  {what['name']}  {what['type']} {_extents(what['shape'])}, {what['layout']}, {filters}, "
                f"{size(what['stored_bytes'])}")
    for what in found:
        if "unreadable" in what:
            say("", f"DAMAGED {what['name']}: HDF5 cannot read it: {what['unreadable']}")
    looked = {"header": "headers (not their contents)", "checksum": "checksums", "decode": "decoded values"}[check]
    if any(what["of_other_builds"] for what in ours):
        return
    if damaged:
        say("", f"{_count(damaged, 'place')} damaged, by {looked}. h5z-gpu recover {path} OUT copies what is good.")
    elif ours:
        say("", f"no damage, by {looked} of {_count(sum(w['chunks'] for w in ours), 'chunk')}")


def _print_dataset(what: dict[str, Any]) -> None:
    each = what["each"]
    say(f"{what['name']}  {what['type']} {_extents(what['shape'])}, {_count(what['chunks'], 'chunk')} of "
        f"{_extents(what['chunk_shape'])}")
    _line("asked", what["asked"].get("text", ""))
    exact = not what.get("lossy", True) and what["asked"]["mode"] != "lossless"
    _line("promised", what["promise"] if not exact else
          "every bit is kept: bits are lost of floating-point numbers alone, and of none that another filter has "
          "changed before")
    _line("used", _used(what))
    if "broken_promise" in what:
        _line("BROKEN", what["broken_promise"])
    if "drafts" in what:
        _line("written by", f"an unreleased build, in the state {', '.join(what['drafts'])} of the format")
    if what["of_other_builds"]:
        _line("not read", f"{_count(what['of_other_builds'], 'chunk')} of another build")
    if what["filters"] != ["h5z-gpu"]:
        _line("filters", ", ".join(what["filters"]))
    good = [c for c in each if "codec" in c]
    codecs: dict[str, int] = {}
    for chunk in good:
        codecs[chunk["codec"]] = codecs.get(chunk["codec"], 0) + 1
    names = {"none": "none (stored as it is, without the filter)", "hidden": "not seen behind the other filter"}
    if codecs:
        _line("codec", ", ".join(f"{names.get(c, c)} in {n}" for c, n in sorted(codecs.items(), key=lambda i: -i[1])))
    stored = np.array([c["stored_bytes"] for c in each])
    if len(stored):
        ends = np.minimum(np.array(what["chunk_shape"]),
                          np.array(what["shape"]) - np.array([c["origin"] for c in each]))
        ratios = np.maximum(ends, 0).prod(axis=1) * what["item_bytes"] / np.maximum(stored, 1)
        _line("size", f"{size(what['raw_bytes'])} in {size(what['stored_bytes'])}: ratio "
                      f"{ratio(what['raw_bytes'], what['stored_bytes'])}; chunks {_two(ratios.min())} to "
                      f"{_two(ratios.max())}, median {_two(float(np.median(ratios)))}")
    if what["chunks_not_stored"]:
        _line("", f"{_count(what['chunks_not_stored'], 'chunk')} never written: all fill value")
    if len(stored) > 1:
        _histogram(ratios)
        _map(what, ratios)
    bad = [c for c in each if "damaged" in c]
    for chunk in bad[:_LISTED]:
        _line("DAMAGED", f"chunk at {tuple(chunk['origin'])}, values {chunk['values']}: {chunk['damaged']}")
    if "damaged_index" in what:
        _line("DAMAGED", f"the list of chunks: {what['damaged_index']}")
    if "damaged_header" in what:
        _line("DAMAGED", f"the description of the dataset: {what['damaged_header']}")
    if len(bad) > _LISTED:
        _line("", f"and {len(bad) - _LISTED} more; --json lists all")


def _used(what: dict[str, Any]) -> str:
    """The bounds that the frames state."""
    good = [c for c in what["each"] if "codec" in c]
    bounds = [c["bound"] for c in good if "bound" in c]
    exact = sum(bool(c.get("lossless")) for c in good)
    if not good:
        return "nothing is stored" if not what["each"] else "no chunk can be read"
    parts = []
    if bounds:
        unit = " of each value" if any("of_each_value" in c for c in good) else ""
        low, high = min(bounds), max(bounds)
        parts.append(f"{f'{low:.6g}' if low == high else f'{low:.6g} to {high:.6g}'}{unit} in "
                     f"{_count(len(bounds), 'chunk')}")
    if exact:
        parts.append(f"no loss in {_count(exact, 'chunk')}")
    return ", ".join(parts) or "not seen behind the other filter"


def _classes(ratios: np.ndarray) -> np.ndarray:
    """0: below 2, 1: 2 to 4, ... 9: 512 and more."""
    found: np.ndarray = np.clip(np.floor(np.log2(np.maximum(ratios, 1))), 0, 9).astype(int)
    return found


def _histogram(ratios: np.ndarray) -> None:
    counts = np.bincount(_classes(ratios), minlength=10)
    used = np.flatnonzero(counts)
    for k in range(used[0], used[-1] + 1):
        label = "below 2" if k == 0 else "512 and more" if k == 9 else f"{2**k} to {2 ** (k + 1)}"
        bar = "#" * math.ceil(40 * counts[k] / counts.max())
        _line("ratio" if k == used[0] else "", f"{k}: {label:<12} {bar} {counts[k]}")


def _map(what: dict[str, Any], ratios: np.ndarray) -> None:
    """One mark for each chunk: the class of its ratio as above; several chunks share one where there are too many."""
    grid = what["grid"]
    rows, columns = math.prod(grid[:-1]), grid[-1]
    if rows == 1 and columns > _WIDTH:  # a line is folded
        columns = _WIDTH
        rows = -(-grid[-1] // columns)
    # Index of a chunk in the dataset's order, then its place in the picture.
    cells = np.array([c["origin"] for c in what["each"]]) // np.array(what["chunk_shape"])
    flat = np.ravel_multi_index(tuple(cells.T), grid)
    high, wide = -(-rows // _HEIGHT), -(-columns // _WIDTH)
    picture = np.full((-(-rows // high), -(-columns // wide)), -1)
    marks = _classes(ratios)
    bad = np.array(["damaged" in c for c in what["each"]])
    at = flat // columns // high, flat % columns // wide
    np.maximum.at(picture, at, marks)
    shown = np.array([*"0123456789", "."])[picture]
    shown[at[0][bad], at[1][bad]] = "X"
    several = f"; a mark is {high} x {wide} chunks, the best ratio of them" if high * wide > 1 else ""
    lost = "".join([", . not stored" if "." in shown else "", ", X damaged" if bad.any() else ""])
    axes = " x ".join(map(str, grid))
    for k, line in enumerate(shown):
        text = "".join(line)
        _line("map" if k == 0 else "",
              f"{text}{f'   {axes} chunks: class of the ratio{lost}{several}' if k == 0 else ''}")


def _line(name: str, text: str) -> None:
    say(f"  {name:<9} {text}")


def _two(value: float) -> str:
    return ratio(value, 1)


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"


def _extents(shape: Optional[tuple[int, ...]]) -> str:
    return "no values" if shape is None else "one value" if shape == () else " x ".join(map(str, shape))
