#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Draws the plots of measurements.md from the record of the last run on a GPU: measured.py [INTO]

speed_kernels.svg   compression and decompression in the GPU's memory, geometric means over five fields
speed_file.svg   through h5py, beside other filters, and whole arrays
speed_unchanged.svg   programs as they are, and under `h5z-gpu run`
compare.svg   filters on a CPU, from the table of `make compare` in measurements.md
"""
import re
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
RECORD = (ROOT / "tests/gpu/record.toml").read_text()
WRITE, READ = "#2a5ca8", "#e08a1e"

plt.rcParams.update({"svg.hashsalt": "h5z-gpu", "font.size": 11, "axes.spines.top": False, "axes.spines.right": False})


def table(name):
    return re.search(rf'^{name} = """\n(.*?)^"""', RECORD, re.M | re.S)[1]


def said(name):
    return re.search(rf'^{name} = "(.+)"', RECORD, re.M)[1]


def bars(path, rows, title, unit, *, log=False):
    """Two bars a row, (label, compress, decompress), from above."""
    figure, axes = plt.subplots(figsize=(8.6, 0.62 * len(rows) + 1.5), layout="constrained")
    for at, (_, *speeds) in enumerate(rows):
        for shift, speed, colour in ((-0.19, speeds[0], WRITE), (0.19, speeds[1], READ)):
            if not speed:
                continue  # it only reads
            axes.barh(at + shift, speed, 0.36, color=colour)
            text = f"{speed:,.{0 if speed >= 10 else 1 if speed >= 1 else 2}f}"
            axes.annotate(text, (speed, at + shift), (4, 0), textcoords="offset points", va="center", fontsize=9)
    axes.set_yticks(range(len(rows)), [label for label, *_ in rows])
    axes.invert_yaxis()
    if log:
        axes.set_xscale("log")
        axes.set_xlim(right=600)
        axes.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
    axes.set_xlabel(unit)
    figure.suptitle(title, fontsize=11, x=0.01, ha="left")
    axes.legend([plt.Rectangle((0, 0), 1, 1, color=c) for c in (WRITE, READ)], ["compress, write", "decompress, read"],
                loc="upper right" if log else "lower right")
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def kernels(path):
    """From `device`: the means at one bound, and without loss."""
    means = table("device").split("geometric means")[1]
    rows = []
    for codec, request in (("planes", "abs of rel 1e-3"), ("szx", "abs of rel 1e-3"),
                           ("lorenzo", "abs of rel 1e-3"), ("planes", "lossless"), ("ndzip", "")):
        n, encode, decode, ratio = re.search(rf"^ +{codec} +{request} +(\d+) +(\d+) +(\d+) +([\d.]+)$", means,
                                             re.M).groups()
        assert n == "5"
        what = "1e-3 of the range" if request.startswith("abs") else "lossless"
        rows.append((f"{codec}\n{what}, ratio {float(ratio):.3g}", float(encode), float(decode)))
    title = "In the GPU's memory, geometric means over five fields."
    bars(path, rows, f"{title}\n{said('device')}, {said('date')}", "GB/s of uncompressed data")


def files(path):
    """From `h5py`, chunks of 4 MiB, and `datasets`: a field of turbulence."""
    through = table("h5py").split("chunks of 16 MiB")[0]
    rows = []
    for name, shown in (("none, chunked", "no filter"), ("h5z-gpu planes 1e-3", "h5z-gpu planes"),
                        ("h5z-gpu lorenzo 1e-3", "h5z-gpu lorenzo"), ("h5z-gpu lossless", "h5z-gpu lossless"),
                        ("Blosc2 bitshuffle zstd-5", "Blosc2, zstd 5 (lossless)"),
                        ("shuffle \\+ gzip-1", "shuffle, gzip 1 (lossless)"), ("ZFP 1e-3", "ZFP"), ("SZ3 1e-3", "SZ3")):
        found = re.search(rf"^ +{name} +([\d.]+) +(\d+) +(\d+)$", through, re.M)
        if not found and "h5z-gpu" not in shown and "no filter" not in shown:
            continue  # a peer that was not installed there
        ratio, write, read = found.groups()
        rows.append((f"{shown}\nratio {float(ratio):.3g}", float(write) / 1000, float(read) / 1000))
    for codec in ("planes", "lorenzo"):
        line = rf"^ +velocity {codec} +4 MiB +([\d.]+) +([\d.]+) +[\d.]+ +[\d.]+ +([\d.]+)"
        ratio, write, read = re.search(line, table("datasets").split("NumPy")[1], re.M).groups()
        rows.append((f"h5z_gpu.write, read {codec}\nNumPy array, ratio {float(ratio):.3g}", float(write), float(read)))
    ratio, write, read = re.search(r"^ +velocity lorenzo +4 MiB +([\d.]+) +([\d.]+) +([\d.]+)", table("datasets"),
                                   re.M).groups()
    rows.append((f"h5z_gpu.write, read lorenzo\nGPU array, ratio {float(ratio):.3g}", float(write), float(read)))
    title = "To a file in memory and back: turbulence, lossy ones at 1e-3 of the range."
    bars(path, rows, f"{title}\n{said('device')}, 16 cores, {said('date')}", "GB/s of uncompressed data (logarithmic)",
         log=True)


def unchanged(path):
    """From `unchanged`: each program plain and under `run`."""
    lines = table("unchanged").split("1074 MB")[0].splitlines()
    lines = [line for line in lines if re.match(r"\| (h5py|netCDF4|gzip)", line)]
    cells = [[c.strip() for c in line.strip("|").split("|")] for line in lines]
    rows = []
    for name, plain, preload, *_ in cells:
        if re.search("szx|lossless", name):
            continue
        for how, speeds in (("as it is", plain), ("under run", preload)):
            write, read = ["0", *speeds.split(", ")][-2:]
            shown = name.replace("gzip, shuffle", "h5py, others' gzip")
            rows.append((f"{shown}\n{how}", float(write), float(read)))
    title = "Programs that were not changed: 264 MB of f32, written to a file in memory and read."
    bars(path, rows, f"{title}\n{said('device')}, 16 cores, {said('date')}", "GB/s of uncompressed data")


def compared(path):
    """From the rows of measurements.md that `make compare` made."""
    sys.path.insert(0, str(ROOT / "tests/bench"))
    from compare_page import points

    rows = []
    for line in (HERE.parent / "measurements.md").read_text().splitlines():
        name, fields, ratio, speeds, _, error, *_ = (*map(str.strip, line.strip("|").split("|")), *[""] * 6)
        if re.fullmatch(r"\d+ of 13", fields) and re.fullmatch(r"\d+, \d+", speeds):
            rows.append((name, error != "exact", float(ratio), *map(float, speeds.split(", "))))
    points(rows, 1e-3, 13, path)


if __name__ == "__main__":
    into = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    kernels(into / "speed_kernels.svg")
    files(into / "speed_file.svg")
    unchanged(into / "speed_unchanged.svg")
    compared(into / "compare.svg")
