# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a GPU that nobody measured is expected to do, from the record of one that was measured.

A kernel's time T is made of two that overlap: T³ = memory³ + work³. Memory is the bytes that a kernel must move over
nine tenths of the bandwidth. Work is what is left of the measured time; elsewhere it takes longer as there are fewer
multiprocessors, slower clocks, and fewer instructions a cycle. How many those are follows from the warps that fit on a
scheduler, as in a closed queue of one server: each warp asks for a cycle, then waits Z cycles on average. Z comes from
ncu's share of issue slots on the H200 (mean-value analysis: Reiser and Lavenberg, 1980) and is taken as the same
everywhere. resources.toml has these shares, and what each kernel takes of a multiprocessor; resources.py writes it.
"""

import functools
import re
import tomllib
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
# The share of the bandwidth that the search for a range reaches on both, and how sharply the longer of two times that
# overlap decides: 2.5 to 4 fit the pair alike.
REACHED, SHARP = 0.9, 3
# What takes less is a launch; the kernel that is named is one CTA a chunk. Both follow the clock alone.
LAUNCH = 0.005
ALONE = "codebook"
WAYS = "encode", "decode"
# Bytes that a kernel moves: times the array's and times the frame's. Of others ncu's share of the bandwidth is taken.
MOVES = {"range": (1, 0), "quanta": (1, 1), "place": (0, 2), "encode": (1, 1), "decode": (1, 1)}
# The kernel that a direction is, where the record names none.
MAIN = {"szx": ("szx_encode", "szx_decode"), "ndzip": ("ndzip_encode", "ndzip_decode"),
        "lorenzo": ("", "lorenzo_decode"), "planes": ("", "planes_lossy_take_quanta"),
        "planes lossless": ("planes_lossless_encode", "planes_lossless_decode")}
# Kernel, CTAs a multiprocessor before and after, and after's part of the time, measured on an H200 on one field or at
# one bound: commit 94973025, and variants of 28 November 2026, of which those above 0.9 are at 1e-6.
VARIANTS = {("planes_lossy_quanta_f32", 4, 5): (0.85, 0.84, 0.84, 0.96, 0.91, 0.93),
            ("planes_lossy_quanta_f32", 4, 6): (0.88, 0.93),
            ("planes_lossless_decode_f32", 5, 7): (0.88, 0.85, 0.91, 0.75),
            ("planes_lossless_decode_f64", 3, 4): (0.70,)}


class Device(NamedTuple):
    """The vendor's figures: multiprocessors, highest clock in GHz, TB/s, bytes of shared memory a multiprocessor."""

    name: str
    arch: int
    sms: int
    ghz: float
    tbs: float
    shared: int


H200 = Device("H200", 90, 132, 1.98, 4.8, 228 << 10)
H100 = Device("H100 SXM", 90, 132, 1.98, 3.35, 228 << 10)
A100 = Device("A100 80 GB", 80, 108, 1.41, 2.039, 164 << 10)
V100 = Device("V100", 70, 80, 1.53, 0.9, 96 << 10)
DEVICES = H200, A100, A100._replace(name="A100 40 GB", tbs=1.555), V100
SHOWN = V100, A100, H200


class Cell(NamedTuple):
    """A row of the record: MB, milliseconds of encoding and decoding, ratio, milliseconds of kernels of encoding."""

    mb: float
    ms: tuple[float, float]
    ratio: float
    kernels: dict[str, float]


Cells = dict[tuple[str, str], Cell]


def cells(table: str) -> Cells:
    """Rows of a record's table `device`, by field and request."""
    row = re.compile(r"(\w+) +(\w.*?)  +([\d.]+) +(\d+) +(\d+) +([\d.]+) *(.*)")
    found = {}
    for m in filter(None, map(row.fullmatch, table.splitlines())):
        mb = float(m[3])
        kernels = {name: float(ms) for name, ms in re.findall(r"(\w+) ([\d.]+)", m[7])}
        found[m[1], m[2]] = Cell(mb, (mb / float(m[4]), mb / float(m[5])), float(m[6]), kernels)
    return found


def rest(memory: float) -> float:
    """The part of the time that work would take alone, where memory alone takes the other."""
    return float((1 - memory ** SHARP) ** (1 / SHARP))


def both(memory: float, work: float) -> float:
    return float((memory ** SHARP + work ** SHARP) ** (1 / SHARP))


def issued(warps: int, z: float) -> float:
    """Instructions a cycle of a scheduler that has `warps`, each of which waits `z` cycles after one."""
    waiting = rate = 0.0
    for n in range(1, warps + 1):
        rate = n / (1 + waiting + z)
        waiting = rate * (1 + waiting)
    return rate


@functools.cache
def waits(warps: int, rate: float) -> float:
    """Z of a kernel of which `warps` issue `rate` instructions a cycle."""
    low, high = 0.0, 1000.0
    for _ in range(50):
        z = (low + high) / 2
        low, high = (z, high) if issued(warps, z) > rate else (low, z)
    return low


class Model:
    """What resources.toml says of the kernels."""

    def __init__(self) -> None:
        self.table: dict[str, dict[str, list[Any]]] = tomllib.loads((HERE / "resources.toml").read_text())

    def ctas(self, name: str, device: Device) -> int:
        """CTAs that fit on a multiprocessor: by threads, registers of its four schedulers, shared memory."""
        registers, _, shared, threads, _ = self.table[f"sm_{device.arch}"][name]
        warps = threads // 32
        by_registers = 4 * (16384 // (-(-registers // 8) * 256)) // warps
        shared += 1024 if device.arch >= 80 else 0
        return int(min(64 // warps, 32, by_registers, device.shared // max(shared, 1)))

    def counts(self, name: str) -> tuple[float, float]:
        """What memory alone would take of a kernel's time on the H200, and Z; 0 where ncu counted nothing. Kernels for
        f64 have those of f32."""
        name = re.sub("f64$", "f32", name)
        if name not in self.table["ncu"]:
            return 0, 0
        _, dram, issue = self.table["ncu"][name]
        memory = min(dram / REACHED, 0.97)
        return memory, waits(self.warps(name, self.ctas(name, H200)), min(issue / rest(memory), 0.99))

    def warps(self, name: str, ctas: int) -> int:
        """Warps of a scheduler."""
        return int(ctas * self.table["sm_90"][name][3] // 128)

    def time(self, name: str, ms: float, moved: float, source: Device, device: Device) -> float:
        """Milliseconds on a device of a kernel that took `ms` on the source. `moved` bytes, or 0: not known."""
        clocks = source.ghz / device.ghz
        if ms < LAUNCH or ALONE in name:
            return ms * clocks
        memory, z = self.counts(name)
        memory *= H200.tbs / source.tbs
        if moved:
            memory = moved / 1e9 / ms / source.tbs / REACHED
        memory = min(memory, 1)
        rates = [issued(self.warps(name, self.ctas(name, d)), z) for d in (source, device)] if z else [1, 1]
        work = rest(memory) * clocks * source.sms / device.sms * rates[0] / rates[1]
        return ms * both(memory * source.tbs / device.tbs, work)

    def times(self, key: tuple[str, str], cell: Cell, source: Device, device: Device) -> dict[str, float]:
        """Milliseconds on a device of what a row of the source's record has: each kernel, "encode", "decode"."""
        field, request = key
        main = MAIN[request if request in MAIN else request.split()[0]]
        raw, suffix = 1e6 * cell.mb, "_f64" if field.endswith("64") else "_f32"
        found: dict[str, float] = {}
        for way, whole, name in zip(WAYS, cell.ms, main):
            kernels = cell.kernels if cell.kernels and way == "encode" else {name: whole}
            found[way] = whole - sum(kernels.values())
            for kernel, ms in kernels.items():
                moves = MOVES.get("decode" if "take" in kernel else kernel.split("_")[-1], (0, 0))
                moved = raw * (moves[0] + moves[1] / cell.ratio)
                found[kernel] = self.time(kernel + suffix, ms, moved, source, device)
                found[way] += found[kernel]
        return found


def off(found: dict[tuple[str, ...], float], seen: dict[tuple[str, ...], float]) -> str:
    """How far estimates are from what was measured."""
    errors = {key: found[key] / ms - 1 for key, ms in seen.items()}
    worst = max(errors, key=lambda key: abs(errors[key]))
    within = sum(abs(e) <= 0.15 for e in errors.values())
    return (f"{within} of {len(errors)} within 15 %, median {100 * median(map(abs, errors.values())):.1f} %, "
            f"largest {100 * errors[worst]:+.0f} % ({', '.join(worst)})")


def check(model: Model) -> None:
    """Prints how the H100's record follows from the H200's, and back; and the CTAs of variants that were measured."""
    pair = tomllib.loads((HERE / "pair.toml").read_text())
    records = [cells(pair[device]) for device in ("H200", "H100")]

    def all_of(made: Cells, source: Device, device: Device, whole: bool) -> dict[tuple[str, ...], float]:
        return {(*key, name): ms for key, cell in made.items()
                for name, ms in model.times(key, cell, source, device).items()
                if (name in WAYS if whole else cell.kernels.get(name, 0) > 4 * LAUNCH)}

    for source, device in ((0, 1), (1, 0)):
        a, b = (H200, H100)[source], (H200, H100)[device]
        for whole in (True, False):
            seen = all_of(records[device], b, b, whole)
            print(f"{b.name} from {a.name}, {'directions' if whole else 'kernels of encoding'}:",
                  off(all_of(records[source], a, b, whole), seen))
            print("    if nothing changed:", off(all_of(records[source], a, a, whole), seen))
    for (name, few, many), parts in VARIANTS.items():
        memory, z = model.counts(name)
        work = rest(memory) * issued(model.warps(name, few), z) / issued(model.warps(name, many), z)
        part = both(memory, work)
        print(f"{name}, {few} to {many} CTAs: {part:.2f} of the time, measured", *parts)


def row(columns: list[str]) -> None:
    print(f"| {' | '.join(columns)} |")


def expect(model: Model) -> None:
    """Prints what kernels take, and GB/s, geometric means over the record's fields of 150 MB and more."""
    row(["kernel", "shared memory, kB", *(d.name for d in SHOWN)])
    for name in model.table["ncu"]:
        of = [(d, model.table[f"sm_{d.arch}"][name]) for d in SHOWN]
        row([f"`{name}`", f"{of[0][1][2] / 1e3:.1f}",
             *(f"{k[0]}, {k[1]}, {model.ctas(name, d)}, {k[4] / 1e3:.0f}" for d, k in of)])
    recorded = tomllib.loads((HERE / "record.toml").read_text())["speed"]["device"]
    large = {key: cell for key, cell in cells(recorded).items() if cell.mb >= 150}
    row(["request", *(d.name for d in DEVICES)])
    for request in dict.fromkeys(request for _, request in large):
        speeds = []
        for device in DEVICES:
            times = [(c.mb, model.times(k, c, H200, device)) for k, c in large.items() if k[1] == request]
            speeds.append(", ".join(f"{geometric_mean(mb / ms[way] for mb, ms in times):.0f}" for way in WAYS))
        row([request, *speeds])


if __name__ == "__main__":
    found = Model()
    check(found)
    expect(found)
