# SPDX-License-Identifier: MIT OR Apache-2.0
"""`h5z_gpu.xarray` with fill values and packed numbers: the filter knows each, and a bound takes the place of
packing."""
import h5py
import judge
import numpy as np
import pytest
from conftest import use
from programs import filters, stored_bytes
from test_xarray import ENGINES, HEAD, words


@pytest.mark.parametrize("engine", ENGINES)
def test_fill_values(engine, tmp_path):
    """`_FillValue` of the source, `missing_value` alone, a Lossy's own and packing undone by hand: the filter knows
    each."""
    out = use(f"""{HEAD}
whole = climate().tas.values
hole = np.zeros(whole.shape, bool); hole[3:9, 20:30] = True
make = lambda fill, **attrs: xr.Dataset({{"v": (("t", "y", "x"), np.where(hole, np.float32(fill), whole), attrs)}})
cases = {{"given": (make(np.nan), Lossy(relative=1e-3, fill_value=1e20)),
          "kept": (xr.decode_cf(make(1e20, _FillValue=np.float32(1e20))), Lossy(relative=1e-3)),
         "missing": (xr.decode_cf(make(1e20, missing_value=np.float32(1e20))), Lossy(relative=1e-3)),
         "other": (xr.decode_cf(make(1e20, _FillValue=np.float32(1e20))), Lossy(relative=1e-3, fill_value=-999)),
         "raw": (make(1e20, _FillValue=np.float32(1e20)), Lossy(relative=1e-3))}}
for name, (ds, how) in cases.items():
    for save in (lambda: hx.to_netcdf(ds, name + ".nc", how, engine="{engine}"), lambda: hx.to_netcdf(
        ds, name + "2.nc", {{"v": how}}, engine="{engine}")):
        save()
    hx.to_netcdf(xr.open_dataset(name + ".nc", engine="{engine}"), name + "3.nc", engine="{engine}")
    for end in ("", "2", "3"):
        with xr.open_dataset(name + end + ".nc") as d:
            assert (d.v.isnull() == hole).all(), name
            if end != "3":
                assert 0 < np.abs(d.v.values[~hole].astype("f8") - whole[~hole]).max() <= 1e-3 * float(
                    np.ptp(whole)), name
try: hx.to_netcdf(cases["raw"][0], "no.nc", Lossy(relative=1e-3, fill_value=-999), engine="{engine}")
except ValueError as e: print(e)
""", tmp_path)
    assert "the fill value is 1.0000000200408773e+20 in the attributes, -999 in Lossy: give one of them" in out, out
    for name, fill in {"given": 1e20, "kept": 1e20, "missing": 1e20, "other": -999, "raw": 1e20}.items():
        for end in ("", "2", "3"):
            with h5py.File(tmp_path / f"{name}{end}.nc") as f:
                assert f["v"].fillvalue == np.float32(fill) == f["v"].attrs["_FillValue"][0], name
            stored = filters(tmp_path / f"{name}{end}.nc", "v")[0][2]
            assert stored[3] >> 8 & 1 and stored[7] == int(np.float32(fill).view("u4")), (name, end)


def test_packing(tmp_path):
    """Bounds in place of packed integers: smaller than those behind zlib, within half a step, holes where they were."""
    use(f"""{HEAD}
import netCDF4
ds = climate(missing=True)[["tas", "pr", "count"]]
half = dict(dtype="i2", _FillValue=np.int16(-32767), zlib=True, shuffle=True)
pack = {{"tas": dict(half, scale_factor=0.02, add_offset=285.0), "pr": dict(half, scale_factor=2e-9, add_offset=2.8e-5),
         "count": dict(zlib=True)}}
ds.drop_encoding().to_netcdf("packed.nc", engine="netcdf4", encoding=pack)
with xr.open_dataset("packed.nc") as d:
    bounds = hx.from_packing(d)
    assert bounds == {{"tas": Lossy(absolute=0.01), "pr": Lossy(absolute=1e-9)}}, bounds
    for engine in {ENGINES}:
        hx.to_netcdf(d, engine + ".nc", bounds, engine=engine)
        hx.to_netcdf(d, "one " + engine + ".nc", Lossy(absolute=1e-9), engine=engine)
        hx.to_netcdf(d, "same " + engine + ".nc", Lossless(), engine=engine)
        with xr.open_dataset(engine + ".nc", engine=engine) as e, netCDF4.Dataset("packed.nc") as p:
            assert e["count"].encoding["zlib"] and (
                e["count"] == d["count"]).all(), "what is not packed keeps what it had"
            for name, bound in bounds.items():
                assert not {{"scale_factor", "add_offset"}} & {{*e[name].encoding,
                                                                *e[name].attrs}} and e[name].dtype == d[name].dtype
                assert (e[name].isnull() == d[name].isnull()).all() and np.isnan(e[name].encoding["_FillValue"])
                at = ~d[name].isnull().values
                np.save(f"{{engine}} {{name}}.npy", [d[name].values[at], e[name].values[at]])
                p[name].set_auto_maskandscale(False)
                again = np.rint((e[name].values - pack[name]["add_offset"]) / pack[name]["scale_factor"])
                assert (again[at] == p[name][:][at]).all(), "packed again, the integers are the same"
        with xr.open_dataset("same " + engine + ".nc", engine=engine) as e:
            assert e.tas.encoding["dtype"] == "i2" and e.identical(d) and hx.filters_of(e)["tas"] == Lossless()
raw = xr.open_dataset("packed.nc", mask_and_scale=False)
try: hx.from_packing(raw)
except ValueError as e: assert "'tas' is still packed: open the dataset without mask_and_scale=False" in str(e), e
else: raise AssertionError("bounds for integers")
assert hx.from_packing(ds) == {{}}
""", tmp_path)
    for engine in ENGINES:
        for name, bound in (("tas", 0.01), ("pr", 1e-9)):
            assert 0 < judge.check(*np.load(tmp_path / f"{engine} {name}.npy"), "abs", bound) <= 1
            assert stored_bytes(tmp_path / f"{engine}.nc", name) < 0.7 * stored_bytes(tmp_path / "packed.nc", name)
        with h5py.File(tmp_path / f"one {engine}.nc") as f:
            assert f["tas"].dtype.kind == f["pr"].dtype.kind == "f" and f["count"].dtype == "i4"
        assert words(tmp_path / f"one {engine}.nc") == {"tas": 11009, "pr": 11009, "count": 0} | dict.fromkeys(
            ["time", "lat", "lon", "slope"], "none")


@pytest.mark.parametrize("engine", ENGINES)
def test_limits_of_packed_values_follow_them(engine, tmp_path):
    """netCDF4 masks what is outside of them, so values at the limit must not leave it by their error; rising and
    falling."""
    out = use(f"""{HEAD}
import netCDF4
packed = np.random.default_rng(0).integers(-20, 21, (41, 100), dtype="i2")
with netCDF4.Dataset("packed.nc", "w") as f:
    f.createDimension("y", 41), f.createDimension("x", 100)
    for name, scale in (("up", 0.1), ("down", -0.1)):
        for limits in (dict(valid_range=np.int16([-10, 15])), dict(valid_min=np.int16(-10), valid_max=np.int16(15)),
                       dict(valid_range=[-1.04, 1.54])):
            v = f.createVariable(f"{{name}} {{len(limits)}} {{np.asarray(*list(limits.values())[:1]).dtype.kind}}",
                                 "i2", ("y", "x"))
            v.setncatts(dict(scale_factor=scale, add_offset=0.537, **limits))
            v.set_auto_maskandscale(False)
            v[:] = packed
ints = [n for n in ("up 1 i", "up 2 i", "down 1 i", "down 2 i")]
with xr.open_dataset("packed.nc") as d:
    hx.to_netcdf(d, "a.nc", hx.from_packing(d), engine="{engine}")
    assert d[ints[0]].attrs["valid_range"].tolist() == [-10, 15], "the dataset is as it was"
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        hx.encoding(d, hx.from_packing(d))
    for w in seen: print(w.message)
with netCDF4.Dataset("a.nc") as f:
    for name in ints:
        got = f[name][:]
        assert got.dtype.kind == "f" and (~np.ma.getmaskarray(got) == ((packed >= -10) & (packed <= 15))).all(), (
            name, got)
    assert f["up 1 f"].valid_range.tolist() == [-1.04, 1.54]
""", tmp_path)
    assert out.count("\n") == 1 and "'up 1 i', 'up 2 i', 'down 1 i', 'down 2 i' are in packed units" in out, out
