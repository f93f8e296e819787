#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""The height of the sea surface on one day, through the filter and back, with a bound of one millimetre.

Satellites measured it (Copernicus Marine, 23 February 2019); land holds NaN. h5py writes it through the plugin, h5py
and, where it is installed, h5dump read it back. Every value is judged in exact arithmetic, and a picture is saved.
`make demo` runs it; HDF5_PLUGIN_PATH must name the plugin's folder.
"""
import math
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

# One chunk of this field is so small that the plugin by itself would leave it to the CPU; here the GPU shall be seen.
os.environ.setdefault("H5Z_GPU_MIN_BYTES", "1000000")

import h5py
import matplotlib
import numpy as np

matplotlib.use("Agg")
import matplotlib.pyplot as plt

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "target/demo"
BOUND, WORD = 1e-3, 11003  # metres
CHUNK = (720, 1440)


def sea_level():
    """The field in metres, NaN on land, and the coordinates of its cells."""
    path = next((ROOT / ".env/data").rglob("nrt_global_allsat_phy_l4_20190223_20190226.nc"))
    with h5py.File(path) as f:
        v = f["adt"]
        counts = v[...].reshape(v.shape[-2:])
        x = (counts * v.attrs["scale_factor"]).astype(np.float32)
        x[counts == v.attrs["_FillValue"]] = np.nan
        return x, f["latitude"][...], f["longitude"][...]


def write(path, x, **how):
    with h5py.File(path, "w") as f:
        f.create_dataset("sea_level", data=x, chunks=CHUNK, **how)
    with h5py.File(path) as f:
        return f["sea_level"].id.get_storage_size()


def read(path):
    with h5py.File(path) as f:
        return f["sea_level"][...]


def fastest(what, *args, **how):
    times = []
    for _ in range(7):
        begin = time.perf_counter()
        result = what(*args, **how)
        times.append(time.perf_counter() - begin)
    return result, min(times)


def judge(x, y):
    """The largest error in exact arithmetic, and how many values miss the bound or lost their NaN.

    The difference of two f32 of similar size is exact in f64, so nothing is rounded; where it were not, the rounded
    difference would still be below the bound only when the exact one is.
    """
    words = x.view(np.uint32), y.view(np.uint32)
    number = np.isfinite(x)
    wrong = int((words[0] != words[1])[~number].sum() + (~np.isfinite(y[number])).sum())
    error = np.where(number, y.astype(np.float64) - x, np.nan)
    return error, wrong + int((np.abs(error[number]) > BOUND).sum())


def backend():
    """Where the chunks are coded, as the plugin itself says it when it writes this field in a process of its own."""
    code = ("import sys; sys.path.insert(0, sys.argv[1]); import demo; demo.write(sys.argv[2], demo.sea_level()[0], "
            "compression=443, compression_opts=(demo.WORD,))")
    said = subprocess.run([sys.executable, "-c", code, str(Path(__file__).parent), str(OUT / "where.h5")], check=True,
                          env=os.environ | {"H5Z_GPU_LOG": "info"}, capture_output=True, text=True).stderr
    gpu = [line.removeprefix("h5z-gpu: ") for line in said.splitlines() if line.startswith("h5z-gpu: GPU ")]
    if gpu and not gpu[0].startswith("GPU not used"):
        return gpu[0]
    asked = os.environ.get("H5Z_GPU_THREADS", "").strip()
    threads = int(asked) if asked.isdecimal() and int(asked) else min(8, len(os.sched_getaffinity(0)))
    return f"CPU, {threads} thread{'s' * (threads > 1)}" + (f" ({gpu[0]})" if gpu else "")


def picture(path, x, y, error, lat, lon, title):
    """The field, what came back, and the error in units of the bound."""
    plt.rcParams.update({"font.size": 9, "axes.titlesize": 10, "axes.titlelocation": "left", "figure.dpi": 140})
    fig, axes = plt.subplots(2, 2, figsize=(12, 7.2), layout="constrained")
    extent = (lon[0], lon[-1] + 0.25, lat[0], lat[-1] + 0.25)
    heights, errors = plt.get_cmap("turbo").copy(), plt.get_cmap("RdBu_r").copy()
    for c in (heights, errors):
        c.set_bad("0.82")

    def show(ax, a, cmap, low, high, text, label):
        shown = ax.imshow(a, origin="lower", extent=extent, cmap=cmap, vmin=low, vmax=high, aspect="auto",
                          interpolation="nearest")
        ax.set_title(text)
        ax.set_xticks(range(0, 361, 60), [f"{t}°" for t in range(0, 361, 60)])
        ax.set_yticks(range(-60, 61, 30), [f"{abs(t)}°{'S' if t < 0 else 'N' if t else ''}"
                                           for t in range(-60, 61, 30)])
        ax.tick_params(length=2, colors="0.3")
        bar = fig.colorbar(shown, ax=ax, pad=0.01, aspect=30)
        bar.set_label(label)
        bar.outline.set_visible(False)
        for side in ax.spines.values():
            side.set_visible(False)

    low, high = np.nanpercentile(x, [0.5, 99.5])
    show(axes[0, 0], x, heights, low, high, "original: height of the sea surface, land is NaN", "m")
    show(axes[0, 1], y, heights, low, high, f"after the filter: {title}", "m")
    show(axes[1, 0], error / BOUND, errors, -1, 1, "error, in units of the bound (1 mm)", "error / bound")

    ax = axes[1, 1]
    sizes = error[np.isfinite(error)].ravel() / BOUND
    # One bar for each of them: others would show steps that are not there.
    ax.hist(sizes, bins=25, range=(-1.25, 1.25), color="#3b6fb6", rwidth=0.4)
    for side in (-1, 1):
        ax.axvline(side, color="#c0392b", lw=1.2)
    ax.annotate("the bound", (1, ax.get_ylim()[1]), xytext=(4, -4), textcoords="offset points", va="top",
                color="#c0392b")
    ax.set_title(f"how often each error occurs; beyond the bound: {int((np.abs(sizes) > 1).sum())} of {sizes.size}")
    ax.set_xlabel("error / bound: tenths, for the field comes in steps of 0.1 mm")
    ax.set_ylabel("values")
    ax.spines[["top", "right"]].set_visible(False)
    fig.savefig(path)
    plt.close(fig)


def main():
    if "HDF5_PLUGIN_PATH" not in os.environ:
        sys.exit("Set HDF5_PLUGIN_PATH to the plugin's folder, or run `make demo`.")
    OUT.mkdir(parents=True, exist_ok=True)
    x, lat, lon = sea_level()
    mb = x.nbytes / 1e6
    ours, plain = OUT / "sea_level.h5", OUT / "plain.h5"

    size, writing = fastest(write, ours, x, compression=443, compression_opts=(WORD,))
    y, reading = fastest(read, ours)
    _, plain_writing = fastest(write, plain, x)
    _, plain_reading = fastest(read, plain)
    error, missed = judge(x, y)
    worst = float(np.nanmax(np.abs(error)))

    print(f"field     height of the sea surface, {x.shape[0]} x {x.shape[1]} f32, {mb:.1f} MB, "
          f"{int(np.isnan(x).sum())} values NaN (land)")
    print(f"filter    443 with the number {WORD}: no value changes by more than {BOUND * 1e3:g} mm")
    print(f"coded on  {backend()}")
    print(f"size      {x.nbytes} -> {size} bytes, ratio {x.nbytes / size:.2f}")
    print(f"speed     write {mb / writing:.0f} MB/s, read {mb / reading:.0f} MB/s through h5py; "
          f"without a filter {mb / plain_writing:.0f} and {mb / plain_reading:.0f}")
    print(f"error     largest {worst * 1e3:.6f} mm, {worst / BOUND:.6f} of the bound; {missed} of {x.size} values "
          f"miss it")
    if shutil.which("h5dump"):
        raw = OUT / "h5dump.raw"
        subprocess.run(["h5dump", "-d", "/sea_level", "-b", "LE", "-o", raw, ours], check=True,
                       stdout=subprocess.DEVNULL)
        same = raw.read_bytes() == y.tobytes()
        version = subprocess.run(["h5dump", "--version"], capture_output=True, text=True).stdout.split()[-1]
        print(f"h5dump    {version} reads {'the same bits as' if same else 'OTHER BITS THAN'} h5py (HDF5 "
              f"{h5py.version.hdf5_version})")
        missed += not same
    out = OUT / "demo.png"
    picture(out, x, y, error, lat, lon, f"{x.nbytes / size:.1f} times smaller")
    print(f"picture   {out}")
    if missed or not math.isfinite(worst):
        sys.exit("THE BOUND WAS BROKEN")


if __name__ == "__main__":
    main()
