# SPDX-License-Identifier: MIT OR Apache-2.0
"""What is valid by `valid_range`, `valid_min` and `valid_max` stays valid through `h5z-gpu repack` and xarray, within
the bound: judged by netCDF4's masks and by arithmetic of the test's own."""
import itertools

import h5py
import netCDF4
import numpy as np
import pytest
from cli import many
from conftest import LONG, sample, use
from programs import filters

BOUNDS = {"absolute": 0.01, "relative": 1e-3, "pointwise_relative": 1e-3, "psnr": 60}
SHAPE = (5, 48, 70)
SMOOTH = sample(np.float64, SHAPE)
SMOOTH = (SMOOTH - SMOOTH.min()) / np.ptp(SMOOTH)


def field(low, high, kind, clip=True):
    """Values that lie at both ends of a range in many places, or that go beyond it."""
    x = (SMOOTH * 1.3 - 0.15) * (high - low) + low
    return (np.clip(x, low, high) if clip else x).astype(kind)


def limits(low, high, kind="f4"):
    return {"valid_range": np.array([low, high], kind)}


# Values, their attributes, and a fill value.
CASES = {
    "percent": (field(0, 100, "f4"), limits(0, 100)),
    "parts": (field(0, 1, "f4"), limits(0, 1)),
    "doubles": (field(0, 1, "f8"), limits(0, 1, "f8")),
    "decimals": (field(0.1, 0.9, "f4"), limits(np.float32(0.1), np.float32(0.9))),
    "far": (field(200.5, 320.25, "f4"), limits(200.5, 320.25)),
    "below_zero": (field(-2, 50, ">f4"), limits(-2, 50)),
    "rain": (np.maximum(field(-3, 1, "f4", clip=False), 0), {"valid_min": np.float32(0)}),
    "most": (field(-7, 5, "f4"), {"valid_max": np.float64(5), "missing_value": np.float32(-999)}),
    "both": (field(0, 100, "f4"), {"valid_min": np.float32(0), "valid_max": np.float32(100)}),
    "beyond": (field(0, 100, "f4", clip=False), limits(0, 100)),
    "integers": (field(0, 100, "f4"), limits(0, 100, "i2")),
    "fill": (np.where(SMOOTH > 0.6, np.float32(-5), field(0, 100, "f4")), limits(0, 100) | {"_FillValue": -5}),
}
NONSENSE = {
    "reversed": limits(100, 0), "nan": limits(np.nan, np.nan), "three": {"valid_range": np.float32([0, 50, 100])},
    "text": {"valid_range": "all", "valid_min": "none"}, "endless": limits(-np.inf, np.inf),
}


def written(path, cases):
    with netCDF4.Dataset(path, "w") as f:
        for name, n in zip("tyx", SHAPE):
            f.createDimension(name, n)
        for name, (values, attributes) in cases.items():
            attributes = dict(attributes)
            v = f.createVariable(name, values.dtype, tuple("tyx"), fill_value=attributes.pop("_FillValue", None),
                                 endian="big" if values.dtype.str[0] == ">" else "native", chunksizes=(2, 48, 32))
            v.set_auto_mask(False)
            v[:] = values
            v.setncatts(attributes)
    return path


def within(x, y, mode, bound):
    """Whether a variable of one chunk, as repack makes them here, is within its bound."""
    x, y = x.data.astype("f8"), y.data.astype("f8")
    x, y = x[x != -5], y[x != -5]  # a fill value, exact in any case
    error = np.abs(x - y)
    if mode == "psnr":
        return np.sqrt(np.mean(error ** 2)) <= np.ptp(x) * 10 ** (-bound / 20)
    most = {"absolute": 1, "relative": np.ptp(x), "pointwise_relative": np.abs(x)}[mode] * bound
    return (error <= most * (1 + 1e-12)).all()


def test_valid_values_stay_valid(tmp_path):
    """For each mode, and codecs by name: masks are the same, errors within the bound, zeros zeros, `verify` content."""
    path = written(tmp_path / "a.nc", CASES)
    runs = list(itertools.product(BOUNDS, ("auto", "planes", "lorenzo", "szx")) if LONG
                else [(m, "auto") for m in BOUNDS] + [("absolute", "planes")])
    runs = [(m, c) for m, c in runs if (m, c) != ("pointwise_relative", "planes")]
    calls = [["repack", path, tmp_path / f"{m}.{c}.nc", f"--{m.replace('_', '-')}", BOUNDS[m], "--codec", c, "--verify"]
             for m, c in runs]
    for (mode, codec), (status, out, err) in zip(runs, many(*calls)):
        assert status == 0, err
        assert "so that valid values stay valid" in out, (mode, codec, out)
        with netCDF4.Dataset(path) as p, netCDF4.Dataset(tmp_path / f"{mode}.{codec}.nc") as q:
            for name in CASES:
                x, y = p[name][:], q[name][:]
                assert (np.ma.getmaskarray(x) == np.ma.getmaskarray(y)).all(), (mode, codec, name)
                assert filters(tmp_path / f"{mode}.{codec}.nc", name)[0][0] == 443
                assert within(x, y, mode, BOUNDS[mode]), (mode, codec, name)
                if name in ("percent", "parts", "rain", "both"):
                    assert not y.data[x.data == 0].any() and (x.data == 0).any(), (mode, codec, name)


def test_ranges_without_meaning_change_nothing(tmp_path):
    """Reversed, of NaN, of three numbers, as a text: such a file is what it is without the attributes."""
    x = field(0, 100, "f4")
    plain = {name: (x, {}) for name in NONSENSE}
    a, b = written(tmp_path / "a.nc", {n: (x, at) for n, at in NONSENSE.items()}), written(tmp_path / "b.nc", plain)
    told = many(*(["repack", p, p.with_suffix(".out.nc"), "--absolute", "0.01"] for p in (a, b)))
    assert [status for status, _, _ in told] == [0, 0] and "stay valid" not in told[0][1], told
    with h5py.File(a.with_suffix(".out.nc")) as f, h5py.File(b.with_suffix(".out.nc")) as g:
        for name in NONSENSE:
            assert f[name].id.read_direct_chunk((0, 0, 0)) == g[name].id.read_direct_chunk((0, 0, 0)), name


@pytest.mark.parametrize("bound", ["", "packed=absolute:0.4"])
def test_packed_values_stay_valid(tmp_path, bound):
    """valid_range in packed units, with --unpack: the same values are masked, also under a bound of several steps."""
    with netCDF4.Dataset(tmp_path / "a.nc", "w") as f:
        for name, n in zip("tyx", SHAPE):
            f.createDimension(name, n)
        v = f.createVariable("packed", "i2", tuple("tyx"), fill_value=-32767)
        v.set_auto_maskandscale(False)
        v.scale_factor, v.valid_range = 0.1, np.int16([-100, 900])
        v[:] = np.rint((SMOOTH * 1.3 - 0.15) * 1000 - 100)
    ((status, out, err),) = many(["repack", tmp_path / "a.nc", tmp_path / "b.nc", "--unpack", *bound.split()])
    assert status == 0, err
    assert not bound or "so that valid values stay valid" in out, out
    with netCDF4.Dataset(tmp_path / "a.nc") as p, netCDF4.Dataset(tmp_path / "b.nc") as q:
        x, y = p["packed"][:], q["packed"][:]
        assert np.ma.getmaskarray(x).any() and (np.ma.getmaskarray(x) == np.ma.getmaskarray(y)).all()
        assert abs(x - y).max() <= (0.4 if bound else 0.05) * 1.000001


THROUGH_XARRAY = """
import itertools, sys, warnings, xarray as xr, h5z_gpu.xarray
warnings.simplefilter("ignore")
for out, mask in itertools.product(("h5netcdf", "netcdf4"), (True, False)):
    with xr.open_dataset(sys.argv[1], engine="netcdf4", mask_and_scale=mask) as ds:
        h5z_gpu.xarray.to_netcdf(ds, f"{sys.argv[2]}/{out}.{mask}.nc", h5z_gpu.Lossy(absolute=0.01), engine=out)
"""


def test_xarray_keeps_what_is_valid_and_what_is_missing(tmp_path):
    """`h5z_gpu.xarray.to_netcdf` by both engines, of values that were opened masked and as they are stored."""
    holes = SMOOTH.astype("f4") * 100
    holes[:, ::3, ::7], holes[:, 1::3, ::5] = -999.123, -888.456
    several = {"missing_value": np.array([-999.123, -888.456], "f4")}
    cases = {
        "percent": CASES["percent"], "doubles": CASES["doubles"], "beyond": CASES["beyond"],
        "several": (holes, several),
        "two": (holes, {"_FillValue": np.float32(-888.456), "missing_value": np.float32(-999.123)}),
        "one": (holes, {"missing_value": np.array([-999.123], "f4")}),
    }
    path = written(tmp_path / "a.nc", cases)
    use(THROUGH_XARRAY, path, tmp_path)
    for out, mask in itertools.product(("h5netcdf", "netcdf4"), (True, False)):
        with netCDF4.Dataset(path) as p, netCDF4.Dataset(tmp_path / f"{out}.{mask}.nc") as q:
            for name in cases:
                x, y = p[name][:], q[name][:]
                assert filters(tmp_path / f"{out}.{mask}.nc", name)[0][0] == 443
                assert (np.ma.getmaskarray(x) == np.ma.getmaskarray(y)).all(), (out, mask, name)
                assert abs(x - y).max() <= 0.01 and (np.ma.getmaskarray(x).any() or (x != y).any())


def test_values_of_a_later_box_and_of_a_group_stay_valid(tmp_path):
    """Large data is looked at box by box: what is encoded again goes to its own place. And xarray writes groups."""
    use("""
import sys, h5py, numpy as np, xarray as xr, h5z_gpu.xarray
from h5z_gpu import Lossy
from h5z_gpu.ranges import Ranges
how = Lossy(absolute=0.0077, codec="lorenzo")
x = np.minimum(np.random.default_rng(1).uniform(0.9, 1.05, (8, 64)), 1).astype("f4")
x[:4] -= 1
with h5py.File(sys.argv[1] + "/a.h5", "w") as f:
    d = f.create_dataset("v", data=x, chunks=(4, 64), compression=how)
    d.attrs["valid_max"], ranges = np.float32(1), Ranges({"valid_max": np.float32(1)}, x.dtype, how)
    assert (h5z_gpu.read(d)[4:] > 1).any(), "the bound alone would let them out"
    ranges.look(d, x[4:], np.s_[4:8, 0:64])
    y = h5z_gpu.read(d)
    assert ranges.mended == 1 and (y <= 1).all() and np.abs(y - x).max() <= 0.0077
ds = xr.Dataset({"v": (("t", "x"), x, {"valid_max": np.float32(1)})})
for engine in ("h5netcdf", "netcdf4"):
    h5z_gpu.xarray.to_netcdf(ds, sys.argv[1] + f"/{engine}.nc", how, engine=engine, group="run/1")
    with h5py.File(sys.argv[1] + f"/{engine}.nc") as f:
        y = f["run/1/v"][...]
        assert (y <= 1).all() and 0 < np.abs(y - x).max() <= 0.0077
""", tmp_path)
