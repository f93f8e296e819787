# SPDX-License-Identifier: MIT OR Apache-2.0
"""Writes resources.toml, what each kernel takes of a multiprocessor and what ncu counted of it, for model.py:

    for arch in 70 80 90; do H5Z_GPU_ARCHS=$arch cargo build -p h5z-gpu-kernels; done
    python tests/gpu/resources.py target/kernels tests/gpu/record.toml >tests/gpu/resources.toml

The record is of an H200 and has the table `why`.
"""

import re
import struct
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ARCHS = 70, 80, 90
FILES = {path.stem for path in (Path(__file__).parents[2] / "kernels").glob("*.cu")} - {"array", "scaled"}


def counted(record: str) -> dict[str, tuple[float, float, float]]:
    """Milliseconds, shares of DRAM and of issue slots of each kernel, by the first request that keeps it busy."""
    row = re.compile(r"\w+(?: [\de-]+)? +(\w+_\w+) +([\d.]+) +(\d+)% +(\d+)%.*")
    found: dict[str, tuple[float, float, float]] = {}
    for m in filter(None, map(row.fullmatch, tomllib.loads(record)["speed"]["why"].splitlines())):
        if float(m[2]) > 0.01:
            found.setdefault(m[1], (float(m[2]), float(m[3]) / 100, float(m[4]) / 100))
    return found


def resources(stem: Path) -> Iterator[tuple[str, list[int]]]:
    """Registers, spilled bytes, shared memory, threads and bytes of code of a file's kernels: report, ELF sections."""
    elf, spilled = stem.with_suffix(".image").read_bytes(), 0
    at, count, names = (int.from_bytes(elf[a:b], "little") for a, b in ((0x28, 0x30), (0x3C, 0x3E), (0x3E, 0x40)))
    headers = [struct.unpack_from("<IIQQQQ", elf, at + 64 * k) for k in range(count)]
    named = [elf[headers[names][4] + h[0]:].split(b"\0", 1)[0].decode() for h in headers]
    sections = {name: elf[h[4]:h[4] + h[5]] for name, h in zip(named, headers)}
    for line in stem.with_suffix(".txt").read_text().splitlines():
        if m := re.search(r"entry function '(\w+)'", line):
            name = m[1]
        elif m := re.search(r"(\d+) bytes spill stores", line):
            spilled = int(m[1])
        elif m := re.search(r"Used (\d+) registers(?:.* (\d+) bytes smem)?", line):
            # EIATTR_MAX_THREADS: format 4, attribute 5, 12 bytes.
            threads = sections[".nv.info." + name].split(b"\4\5\x0c\0")[1]
            yield name, [int(m[1]), spilled, int(m[2] or 0), threads[0] + 256 * threads[1],
                         len(sections[".text." + name])]


def table(folder: Path, record: str) -> None:
    """Prints resources.toml."""
    print("# Written by tests/gpu/resources.py.\n")
    print("# By ncu on an H200, density: ms, shares of DRAM's peak and of the issue slots.\n[ncu]")
    for name, counts in counted(record).items():
        print(f"{name} = {list(counts)}")
    for arch in ARCHS:
        print(f"\n# Registers, spilled bytes, shared memory, threads of a CTA, bytes of code.\n[sm_{arch}]")
        reports = sorted(folder.glob(f"*-sm_{arch}.txt"), key=lambda report: report.stat().st_mtime)
        newest = {report.name.split("-")[0]: report for report in reports}
        for file in sorted(newest.keys() & FILES):
            for name, numbers in sorted(resources(newest[file].with_suffix(""))):
                print(f"{name} = {numbers}")


if __name__ == "__main__":
    table(Path(sys.argv[1]), Path(sys.argv[2]).read_text())
