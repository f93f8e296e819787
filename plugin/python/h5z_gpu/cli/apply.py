# SPDX-License-Identifier: MIT OR Apache-2.0
"""What applies an advice: lines of this program, h5repack, nccopy, h5py and xarray, and a table of bounds."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from .. import bounds_file, keep
from ..filters import FILTER_ID, Lossless
from .common import quoted, shown

if TYPE_CHECKING:
    from .advice import Advice, Kept


def lines(path: str, found: list[Advice], netcdf: bool) -> list[tuple[str, str]]:
    """Names of programs and what to type."""
    from .advise_text import bound_text

    if not found:
        return []
    stem, end = os.path.splitext(path)
    out = f"{stem}.small{end}"
    unpack = ["--unpack"] if any(a.packed for a in found) else []
    own = ["h5z-gpu", "repack", path, out, *(f"{a.name}={bound_text(a.how)}" for a in found), *unpack]
    # A codec of one variable, chunks other than repack's own and fill values that nobody declared are what --advise
    # alone hands on.
    if any(a.how.codec != "auto" or a.chunk != a.usual or a.hidden for a in found):
        fixed = [f"{a.name}={bound_text(a.how)}" for a in found if a.fixed]
        own = ["h5z-gpu", "repack", path, out, *fixed, "--advise", *unpack]
    made = [("h5z-gpu", _folded(own))]
    root = [a for a in found if "/" not in a.name]
    found = [a for a in found if not a.packed]  # no other tool unpacks, but xarray
    if found:
        made += _other_tools(path, out, found, netcdf)
    if netcdf and root:
        hows = ", ".join(f"{a.name!r}: h5z_gpu.{a.how!r}" for a in root)
        made.append(("xarray", "import h5z_gpu.xarray\n"
                               f"h5z_gpu.xarray.to_netcdf(xarray.open_dataset({path!r}), {out!r}, {{{hows}}})"))
    return made


def table(path: str, found: list[Advice], kept: list[Kept]) -> bytes:
    """The advice as a table of bounds, with its reasons in comments."""
    unpack = " --unpack" if any(a.packed for a in found) else ""
    rows = [shown(f"# Bounds for {path}, proposed by h5z-gpu advise; for h5z-gpu repack --bounds{unpack}.")]
    for a in found:
        rows += ["", shown(f"# {a.proposal.reason}")]
        if a.hidden:
            rows.append("# That is so by repack --advise; by a table only a value is kept that the file declares.")
        rows.append(f"[{bounds_file.quoted(a.name)}]")
        mode = a.how.mode
        rows.append("lossless = true" if mode.of == "none" else f"{mode.keyword} = {a.how.bound!r}")
        units = a.units if mode.of == "data" and a.units.isprintable() else ""
        said = {"keep": keep.text(a.how.keep), "codec": a.how.codec, "units": units}
        rows += [f"{key} = {bounds_file.quoted(text)}" for key, text in said.items() if text not in ("", "auto")]
    rows += ["", *(shown(f"# {k.name} stays exact, as it {k.why}") for k in kept)]
    rows += [] if found else ['["*"]', "lossless = true"]
    # Bytes of names that are no text, which TOML cannot hold, become a pattern: any letter.
    return "\n".join((*rows, "")).encode(errors="replace")


def _other_tools(path: str, out: str, found: list[Advice], netcdf: bool) -> list[tuple[str, str]]:
    """h5repack, nccopy and h5py."""
    repack = ["h5repack"]
    for a in found:
        words = _words(a)
        repack += ["-l", f"{a.name}:CHUNK={'x'.join(map(str, a.chunk))}",
                   "-f", f"{a.name}:UD={FILTER_ID},1,{len(words)},{','.join(words)}"]
    made = [("h5repack", _folded([*repack, path, out]))]
    if netcdf:
        copy = ["nccopy", "-4"]
        for a in found:
            name = a.name if "/" not in a.name else f"/{a.name}"
            copy += ["-c", f"{name}:{','.join(map(str, a.chunk))}", "-F", f"{name},{FILTER_ID},{','.join(_words(a))}"]
        text = _folded([*copy, path, out])
        if any(a.fill is not None and not isinstance(a.how, Lossless) for a in found):
            text = ("# nccopy tells the filter of no fill value: missing values that are ordinary numbers come back "
                    "within the bound alone\n") + text
        made.append(("nccopy", text))
    calls = []
    for a in found:
        how = repr(a.how)
        if a.fill is not None and not isinstance(a.how, Lossless):
            how = f"{how[:-1]}, fill_value={a.fill.item()!r})"
        calls.append(f"f.create_dataset({a.name!r}, data=..., chunks={a.chunk}, **h5z_gpu.{how})")
    made.append(("h5py", "import h5z_gpu\n" + "\n".join(calls)))
    return made


def _words(a: Advice) -> list[str]:
    """The filter's words. No word means lossless, which programs want to see as a number."""
    return [str(w) for w in a.how.words or (90000,)]


def _folded(words: list[str]) -> str:
    """A command on lines of about 110 letters; an option stays with its value."""
    pieces: list[str] = []
    for word in map(quoted, words):
        if pieces and pieces[-1] in ("-l", "-f", "-c", "-F"):
            pieces[-1] += f" {word}"
        else:
            pieces.append(word)
    rows = [""]
    for piece in pieces:
        if rows[-1] and len(rows[-1]) + len(piece) > 108:
            rows.append("")
        rows[-1] += f" {piece}" if rows[-1] else piece
    return " \\\n  ".join(rows)
