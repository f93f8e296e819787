# SPDX-License-Identifier: MIT OR Apache-2.0
"""Compares two records of the same GPU: `python tests/gpu/slower.py OLD.toml NEW.toml`.

Cells are speeds of one chunk a field for the same ratio: the tables `device` and `cliffs`, a grid of bounds. Ends
with 1 where a field of 100 MB and more is slower by more than 2 % in `device`, each such cell by its name; smaller ones
and the grid, with its fewer runs, differ by as much from run to run: of these the mean and the slowest are told. Cells
of another ratio do other work, and are counted alone.
"""

import math
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

LEAST, LARGE = 0.98, 100.0
ROW = re.compile(r"(\w+ .*?\S) +([\d.]+) +(\d+) +(\d+) +([\d.]+)(?: .*)?")
CELL = re.compile(r"([\d.]+e-\d) +([\d.]+) +(\d+) +(\d+)")
Cells = dict[str, tuple[str, tuple[float, ...], float]]


def device(table: str) -> Iterator[tuple[str, tuple[str, tuple[float, ...], float]]]:
    """Name → ratio, GB/s of encoding and decoding, MB."""
    for m in filter(None, map(ROW.fullmatch, table.splitlines())):
        yield m[1], (m[5], (float(m[3]), float(m[4])), float(m[2]))


def cliffs(table: str) -> Iterator[tuple[str, tuple[str, tuple[float, ...], float]]]:
    field, size = "", 0.0
    for line in table.splitlines():
        if m := re.match(r"(\w+) +([\d.]+) MB", line):
            field, size = m[1], float(m[2])
        for bound, ratio, encode, decode in CELL.findall(line):
            yield f"{field} {bound}", (ratio, (float(encode), float(decode)), size)


def times(old: Cells, new: Cells) -> list[tuple[float, str, float]]:
    """How many times as fast each cell has become, the slowest first; its name and MB."""
    same = [name for name in old if name in new and old[name][0] == new[name][0]]
    return sorted((b / a, f"{name}, {what}: {a:.0f} to {b:.0f} GB/s", new[name][2]) for name in same
                  for what, a, b in zip(("encode", "decode"), old[name][1], new[name][1]))


def main(*paths: str) -> int:
    old, new = (tomllib.loads(Path(path).read_text())["speed"] for path in paths)
    lost = []
    for name, read in {"device": device, "cliffs": cliffs}.items():
        before, after = dict(read(old[name])), dict(read(new[name]))
        found = times(before, after)
        if not found:
            sys.exit(f"{name}: the records have no cell of the same ratio in common; give two of the same fields")
        mean = math.exp(sum(math.log(cell[0]) for cell in found) / len(found))
        print(f"{name}: {len(found)} speeds, {mean:.3f} times in the mean; slowest {found[0][0]:.3f}, {found[0][1]}")
        if others := len(before.keys() | after.keys()) - len(found) // 2:
            print(f"{name}: {others} not compared, which are in one record alone or of another ratio")
        if name == "device":
            lost = [cell for cell in found if cell[0] < LEAST and cell[2] >= LARGE]
    for ratio, cell, _ in lost:
        print(f"{ratio:.3f}  {cell}")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
