# SPDX-License-Identifier: MIT OR Apache-2.0
"""Packed variables by the commands: `repack --unpack` and `advise --unpack`, and `verify` of what is packed in one
file, or longer in one."""
import json

import h5py
import netCDF4
import numpy as np
import pytest
import xarray as xr
from cli import cli, many
from conftest import run, use
from programs import filters, listed, stored_bytes

PACKED = """
import sys, netCDF4, numpy as np
rng = np.random.default_rng(3)
t, y, x = np.meshgrid(np.linspace(0, 6, 40), np.linspace(0, 3, 60), np.linspace(0, 6, 96), indexing="ij")
smooth = np.sin(x) * np.cos(y) + t / 6 + rng.normal(0, 0.003, x.shape)
with netCDF4.Dataset(sys.argv[1], "w") as ds:
    ds.Conventions = "CF-1.8"
    for name, n in (("time", None), ("lat", 60), ("lon", 96)):
        ds.createDimension(name, n)
    def made(name, kind, values, dims=("time", "lat", "lon"), group=ds, fill=None, **attributes):
        v = group.createVariable(name, kind, dims, fill_value=fill, zlib=name == "zipped")
        v.set_auto_maskandscale(False)
        v.setncatts(attributes)
        v[:] = values
        return v
    short = np.round(smooth * 5000).astype("i2")
    made("plain", "i2", short, scale_factor=0.01, add_offset=280.0, units="K")
    made("narrow", "i2", short, scale_factor=np.float32(0.01), add_offset=np.float32(5))
    holes = np.where(smooth > 1.5, -32767, short)
    made("holes", "i2", holes, fill=-32767, scale_factor=0.002, valid_range=np.int16([-4000, 7000]))
    made("falling", "i4", short, scale_factor=-0.5, valid_min=np.int32(-4000), missing_value=np.int32(17))
    made("bytes", "i1", (smooth * 60 + 100).astype("u1").view("i1"), fill=-1, scale_factor=0.1, _Unsigned="true")
    made("big", ">i2", short, scale_factor=0.25)
    made("zipped", "i2", short, add_offset=-3.0)
    made("inner", "i2", short, group=ds.createGroup("g"), scale_factor=0.01)
    made("counts", "i2", short)
    made("state", "i2", short % 3, scale_factor=0.5, flag_values=np.int16([0, 1, 2]))
    made("tas", "f4", 280 + smooth * 10)
    made("lat", "i2", np.arange(60), ("lat",), scale_factor=3.0, add_offset=-89.0)
    made("short", "i2", 3, (), scale_factor=0.1)
    late = ds.createVariable("late", "i2", ("time", "lat", "lon"))
    late.set_auto_maskandscale(False)
    late.scale_factor = 0.01
    late[:30] = short[:30]
"""
STEPS = {"plain": 0.01, "narrow": float(np.float32(0.01)), "holes": 0.002, "falling": 0.5, "bytes": 0.1, "big": 0.25,
         "zipped": 1.0, "g/inner": 0.01, "late": 0.01}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("packed")
    use(PACKED, folder / "in.nc")
    status, out, err = cli("repack", folder / "in.nc", folder / "out.nc", "--unpack", "--verify")
    assert status == 0, err
    return folder / "in.nc", folder / "out.nc", out


def seen(path, by):
    """What readers see of the variables: masked arrays of netCDF4, or xarray's."""
    found = {}
    for name in STEPS:
        group, _, last = name.rpartition("/")
        if by == "netCDF4":
            with netCDF4.Dataset(path) as f:
                found[name] = f[name][...]
        else:
            with xr.open_dataset(path, group=group or None, decode_times=False) as f:
                found[name] = np.ma.masked_invalid(f[last].values)
    return found


@pytest.mark.parametrize("by", ["netCDF4", "xarray"])
def test_readers_see_what_they_saw(files, by):
    """Within half a step, with the same values missing, of the same type."""
    before, after = seen(files[0], by), seen(files[1], by)
    for name, step in STEPS.items():
        x, y = before[name], after[name]
        missing = np.ma.getmaskarray(x).copy()
        if name == "late" and by == "xarray":
            missing[30:] = True  # netCDF's own fill value, of which xarray knows nothing
        assert (missing == np.ma.getmaskarray(y)).all(), name
        assert x.dtype == y.dtype, (name, x.dtype, y.dtype)
        error = np.abs(np.ma.masked_array(x, missing).astype("f8") - y.astype("f8"))
        assert error.max() <= step / 2 * 1.001 + 1e-5 * (name == "narrow"), (name, error.max())


def test_what_is_stored(files):
    """Floating-point numbers under a bound, without attributes of packing; all else as it was."""
    with h5py.File(files[0]) as f, h5py.File(files[1]) as g:
        for name, step in STEPS.items():
            old, new = f[name], g[name]
            assert new.dtype.kind == "f" and new.shape == old.shape and new.maxshape == old.maxshape
            assert not {"scale_factor", "add_offset", "_Unsigned", "missing_value"} & set(new.attrs), name
            assert new.attrs["lossy_compression_bound"] == step / 2
            said = new.attrs["lossy_compression"].decode()
            assert said.endswith(f"on top of a loss by packing in steps of {step:g}"), said
            assert np.isnan(new.attrs["_FillValue"][0]) and np.isnan(new.fillvalue), "netCDF declares one for each"
            number, _, words = filters(files[1], name)[0][:3]
            assert number == 443 and listed(words)[0] != 90000
            assert stored_bytes(files[1], name) < stored_bytes(files[0], name), name
        for name in ("counts", "state", "lat", "short"):
            assert g[name].dtype == f[name].dtype and (g[name][...] == f[name][...]).all()
        assert g["state"].attrs["scale_factor"] == 0.5 and g["lat"].attrs["add_offset"] == -89
        assert g["narrow"].dtype == "f4" and g["plain"].dtype == g["falling"].dtype == "f8"
        assert g["tas"].dtype == "f4" and not filters(files[1], "tas")
        assert b"repack" in g.attrs["history"] and b"--unpack" in g.attrs["history"]
    text = run("ncdump", "-h", files[1])
    assert "holes:_FillValue = NaN ;" in text and "holes:valid_range = -8.001, 14.001 ;" in text, text
    assert "falling:valid_max = 2000.25 ;" in text and "falling:valid_min" not in text, text
    assert "float64 in place of int16 in steps of 0.01: within 0.005 (absolute)" in files[2]


def test_bounds_of_ones_own_and_refusals(files, tmp_path):
    """A bound by name is about values; without --unpack integers are refused, with a sentence that names it."""
    out = tmp_path / "a.nc"
    own = ("plain=absolute:0.5", "holes=lossless", "--codec=lorenzo")
    status, text, err = cli("repack", files[0], out, "--unpack", *own)
    assert status == 0, err
    with h5py.File(out) as g, h5py.File(files[0]) as f:
        assert g["plain"].attrs["lossy_compression_bound"] == 0.5
        assert g["holes"].dtype == "i2" and (g["holes"][...] == f["holes"][...]).all() and filters(out, "holes")
        assert g["holes"].attrs["scale_factor"] == 0.002 and g["big"].dtype == "f8"
    status, _, err = cli("repack", files[0], tmp_path / "b.nc", "plain=absolute:0.5")
    assert status == 2 and "plain holds integers" in err and "add --unpack: they are packed in steps of 0.01" in err
    status, _, err = cli("repack", files[0], tmp_path / "b.nc", "counts=absolute:0.5", "--unpack")
    assert status == 2 and "counts holds integers" in err and "packed" not in err
    status, _, err = cli("repack", files[0], tmp_path / "b.nc")
    assert status == 2 and "--unpack" in err
    status, text, err = cli("repack", out, tmp_path / "c.nc", "--unpack")
    assert status == 0 and "plain" in text
    with h5py.File(tmp_path / "c.nc") as g:
        assert g["plain"].attrs["lossy_compression_bound"] == 0.5, "it is no longer packed, and was left alone"


def test_advice(files, tmp_path):
    """Half a step for each, the ratio as of the file's bytes; the commands work, and without --unpack it is named."""
    (s1, text, e1), (s2, advice, e2), (s3, _, e3) = many(
        ("advise", files[0]), ("advise", files[0], "--unpack", "--json"),
        ("repack", files[0], tmp_path / "a.nc", "--advise", "--unpack", "--verify"))
    assert (s1, s2, s3) == (0, 0, 0), (e1, e2, e3)
    assert "plain: exact, as it holds integers (packed in steps of 0.01: as floating-point numbers within 0.005" in text
    assert "see --unpack" in text
    found = {v["name"]: v for v in json.loads(advice)["variables"]}
    assert set(STEPS) <= set(found) and "counts" not in found and "state" not in found and "lat" not in found
    for name, step in STEPS.items():
        assert found[name]["bound"] in (f"absolute:{step / 2!r}", "lossless"), found[name]["bound"]
        if found[name]["bound"] != "lossless":
            assert "rounded by up to half of it" in found[name]["reason"] and found[name]["unpacked"]
    with h5py.File(files[0]) as f:
        assert found["plain"]["raw_bytes"] == f["plain"].size * 2
    with h5py.File(tmp_path / "a.nc") as g:
        real = found["plain"]["raw_bytes"] / stored_bytes(tmp_path / "a.nc", "plain")
        assert g["plain"].dtype == "f8" and 0.7 < found["plain"]["predicted"]["ratio"] / real < 1.4
    commands = json.loads(advice)["commands"]
    assert "--unpack" in commands["h5z-gpu"] and "plain" in commands["xarray"]
    assert "plain" not in commands["h5repack"] and "tas" in commands["h5repack"]


def test_verify_unpacks(files, tmp_path):
    """In both directions, by xarray's way too; a value that is off by a step is found where it is."""
    status, out, err = cli("verify", *files[:2])
    assert status == 0 and not err, (out, err)
    assert "plain: float64 40x60x96, within 0.005" in out and "every promise is kept" in out, out
    assert "compared as readers see them: int16 in steps of 0.01 in ORIGINAL, float64 in COMPRESSED" in out
    use("""
import sys, xarray as xr, h5z_gpu.xarray as hx
with xr.open_dataset(sys.argv[1]) as d:
    hx.to_netcdf(d, sys.argv[2], hx.from_packing(d))
""", files[0], tmp_path / "x.nc")
    names = [a for n in STEPS if "/" not in n and n != "late" for a in ("--dataset", n)]
    status, out, err = cli("verify", files[0], tmp_path / "x.nc", *names)
    assert status == 0, (out, err)
    with h5py.File(files[1]) as f, h5py.File(tmp_path / "bad.nc", "w") as g:
        for name in f:
            f.copy(name, g)
        values = g["plain"][...]
        values[3, 4, 5] += 0.011
        g["plain"][...] = values
    status, out, err = cli("verify", files[0], tmp_path / "bad.nc", "--dataset", "plain")
    assert status == 1 and "BROKEN for 1 value; the first, at [3, 4, 5]" in out, out
    holes = np.argwhere(np.isnan(h5py.File(files[1])["holes"][...]))[0]
    with h5py.File(tmp_path / "bad.nc", "r+") as g:
        g["holes"][tuple(holes)] = 1.0
    status, out, err = cli("verify", files[0], tmp_path / "bad.nc", "--dataset", "holes")
    assert status == 1 and f"at [{', '.join(map(str, holes))}]: nan" in out, out
    # Floats that somebody packs: within half of the step that the packing has, or what is given.
    status, out, err = cli("verify", files[1], files[0], "--dataset", "plain", "--html", tmp_path / "page.html")
    assert status == 0 and "within 0.005" in out and (tmp_path / "page.html").stat().st_size > 10_000, (out, err)
    status, out, err = cli("verify", files[1], files[0], "--dataset", "plain", "--absolute", "1e-9")
    assert status in (0, 1) and "(given)" in out
    with h5py.File(tmp_path / "coarse.h5", "w") as g, h5py.File(files[0]) as f:
        g["plain"] = np.round(f["plain"][...] / 10).astype("i2")
        g["plain"].attrs.update({"scale_factor": 0.1, "add_offset": 280.0})
        g["counts"], g["tas"] = f["counts"][...].astype("i4"), f["tas"][...].astype("f8")
    status, out, err = cli("verify", files[0], tmp_path / "coarse.h5", "--dataset", "plain")
    assert status == 0 and "within 0.05" in out and "int16 in steps of 0.1 in COMPRESSED" in out, (out, err)
    status, out, err = cli("verify", files[0], tmp_path / "coarse.h5", "--dataset", "plain", "--absolute", "0.01")
    assert status == 1 and "BROKEN" in out
    for name in ("counts", "tas"):
        status, out, err = cli("verify", files[0], tmp_path / "coarse.h5", "--dataset", name)
        assert status == 2 and "cannot be compared" in err, (name, out, err)


GROWN = """
import sys, h5py, numpy as np, samples
from h5z_gpu import Lossless, Lossy
x = samples.sample(shape=(30, 40, 60))
how = {"a": Lossy(absolute=1e-2), "r": Lossy(relative=1e-3), "s": Lossy(psnr=60), "l": Lossless()}
def made(path, values):
    with h5py.File(path, "w") as f:
        for name, h in how.items():
            f.create_dataset(name, data=values, chunks=(8, 40, 60), maxshape=(None, 40, 60), **h)
        f["n"], f["flat"] = np.arange(len(values)), np.zeros((3, 4))
folder = sys.argv[1]
made(folder + "/30.h5", x)
with h5py.File(folder + "/raw30.h5", "w") as f:
    for name in how: f[name] = x
    f["n"], f["flat"] = np.arange(30), np.zeros((3, 4))
grown = np.concatenate([x, x[:25] * 50])
made(folder + "/55.h5", grown)
with h5py.File(folder + "/raw55.h5", "w") as f:
    for name in how: f[name] = grown
    f["n"], f["flat"] = np.arange(55), np.zeros((3, 4))
"""


def test_a_file_that_grows(tmp_path):
    """Longer copies are judged by what the original has, with a note; shorter ones when it is asked for."""
    use(GROWN, tmp_path)
    at = lambda name: tmp_path / f"{name}.h5"
    status, out, err = cli("verify", at("raw30"), at("55"))
    assert status == 0 and not err, (out, err)
    assert "a: float32 30x40x60, within 0.01" in out, out
    assert "along axis 0: 30 of 30 in ORIGINAL and of 55 in COMPRESSED" in out, out
    assert "r: float32 24x40x60" in out and "s: float32 24x40x60" in out, "chunks that hold later values are left out"
    assert "l: float32 30x40x60" in out and "n: int64 30" in out and "flat: float64 3x4" in out
    status, out, err = cli("verify", at("raw55"), at("30"))
    assert status == 2 and "the copy is not complete; --common compares what both have" in err and "flat" in out, err
    status, out, err = cli("verify", at("raw55"), at("30"), "--common", "--html", tmp_path / "page.html")
    assert status == 0 and "30 of 55 in ORIGINAL and of 30 in COMPRESSED" in out and "r: float32 30x40x60" in out, (
        out, err)
    (found,) = json.loads(cli("verify", at("raw30"), at("55"), "--json", "--dataset", "a")[1])["datasets"]
    assert found["notes"] and found["shape"] == [30, 40, 60] and found["stored_bytes"] is None
    with h5py.File(at("55"), "r+") as f:
        f["l"][29, 0, 0] += 1
        f["l"][30, 0, 0] += 1
    status, out, err = cli("verify", at("raw30"), at("55"))
    assert status == 1 and "BROKEN for 1 value" in out and "at [29, 0, 0]" in out, out
    with h5py.File(tmp_path / "other.h5", "w") as f:
        f["a"], f["r"], f["flat"] = np.zeros((30, 40)), np.zeros((0, 40, 60), "f4"), np.zeros((3, 4))
    status, out, err = cli("verify", at("raw30"), tmp_path / "other.h5", "--common", "--dataset", "a", "--dataset", "r")
    assert status == 2 and "cannot be compared" in err and "nothing in common" in err, err
    np.save(tmp_path / "a.npy", h5py.File(at("raw30"))["a"][:20])
    status, out, err = cli("verify", tmp_path / "a.npy", at("30"), "--dataset", "a")
    assert status == 0 and "20 of 20 in ORIGINAL" in out, (out, err)
