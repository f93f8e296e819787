# SPDX-License-Identifier: MIT OR Apache-2.0
"""Says a bound in every tool's words (`words abs 1e-3`), or explains words (`words 11003`).

Each mode but lossless has a value. Words may be pasted as ncdump or h5dump shows them.
"""
from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence

from .. import modes
from ..stored_words import StoredWords, as_json, meaning
from .common import Problem


def add(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("request", metavar="MODE [VALUE] | WORD", nargs="+", help="such as abs 1e-3, or 11003")
    takes = "; ".join(f"{mode.name}: {', '.join(mode.codecs)}" for mode in modes.all_modes())
    parser.add_argument("--codec", help=takes)
    parser.add_argument("--tool", help="print one tool's line alone, such as h5repack")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Prints the lines, or the meaning."""
    from .. import library

    try:
        listed = _numbers(args.request)
        words = listed if listed is not None else library.words(_text(args))
        said = meaning(words)
    except ValueError as why:
        raise Problem(str(why).replace("h5z-gpu: ", "")) from None
    if args.json:
        print(json.dumps({"words": list(words)} | as_json(words), indent=1))
    elif args.tool:
        _one(said.lines, args.tool)
    else:
        print(f"{said.sentence}\nas text: {said.text}")
        if listed is None:
            _lines(said.lines)
        elif said.stored is not None:
            _stored(words, said.stored)
    return 0


def _numbers(given: list[str]) -> tuple[int, ...] | None:
    """The words of a list, without the marks and the filter's number that tools print with it; None where it is no list."""
    parts = re.split(r"[\s,{}\"();\[\]]+", " ".join(given).replace("PARAMS", " "))
    parts = [p for p in parts if p]
    if not parts or not re.match(r"-?\d", parts[0]):
        return None
    words = []
    for part in parts:
        try:
            value = int(part.rstrip("uU"), 16 if part.startswith("0x") else 10)
        except ValueError:
            raise Problem(
                f"{part} is no word; words are whole numbers; a bound has a mode before it, such as abs {part}"
            ) from None
        # h5dump prints words above 2^31 as negative numbers.
        if not -(2**31) <= value < 2**32:
            raise Problem(f"{part} is no word; words are whole numbers from 0 to 4294967295")
        words.append(value % 2**32)
    from ..filters import FILTER_ID

    return tuple(words[1:] if len(words) > 1 and words[0] == FILTER_ID else words)


def _text(args: argparse.Namespace) -> str:
    """The request as the plugin's text."""
    if len(args.request) == 1 and "=" in args.request[0]:
        text = args.request[0]
    elif len(args.request) <= 2:
        text = f"mode={args.request[0]}" + (f",bound={args.request[1]}" if len(args.request) == 2 else "")
    else:
        raise Problem(f"{' '.join(args.request)}: give a mode and a value, such as abs 1e-3")
    return text + (f",codec={args.codec}" if args.codec else "")


def _one(lines: Sequence[dict[str, str]], tool: str) -> None:
    for line in lines:
        if line["tool"] == tool:
            if "why" in line:
                raise Problem(f"{tool} {line['why']}")
            print(line["line"])
            return
    raise Problem(f"--tool {tool}; allowed are {', '.join(line['tool'] for line in lines)}")


def _lines(lines: Sequence[dict[str, str]]) -> None:
    print()
    for line in lines:
        print(f"{line['tool']:<9} {line.get('line') or '- ' + line['why']}")
    print("\nPut your variable for v, and for 16x64x64 a chunk of its own rank, of 1 to 16 MiB. Name each variable (nccopy: one\n"
          "-F each): nccopy's '*' and a bare ncks --cmp take every one, and coordinates would lose bits as well.")  # fmt: skip


def _stored(words: tuple[int, ...], stored: StoredWords) -> None:
    print(f"stored list of {len(words)} words")
    print(f"typed as   {stored.typed or 'three words or nothing'}")
    print(f"type       {stored.kind} of {stored.size} bytes")
    print(f"chunk      {' x '.join(map(str, stored.chunk))} (of rank {stored.original_rank})")
    if stored.fill_bits is None:
        print("fill value none defined")
    elif stored.fill_value is not None:
        print(f"fill value {stored.fill_value!r} ({stored.fill_bits:#x})")
    else:
        print(f"fill value {stored.fill_bits:#x}")
    print(f"lossy      {'allowed' if stored.sees_values else 'not allowed here: stored losslessly'}")
