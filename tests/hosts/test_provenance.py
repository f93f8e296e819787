# SPDX-License-Identifier: MIT OR Apache-2.0
"""What was lost is said in attributes of the variable, the same by every way of writing, and nowhere else."""
import h5py
import numpy as np
import pytest
from cli import cli
from conftest import BUILT, run, sample, use
from programs import filters
from test_xarray import ENGINES

NAMES = ["lossy_compression", "lossy_compression_mode", "lossy_compression_bound", "lossy_compression_codec"]
UNITS = "lossy_compression_units"
# The build is the one that `h5z-gpu --version` names, unreleased or not.
TEXT = (f"{run(BUILT / 'bin/h5z-gpu', '--version').strip()}, HDF5 filter 443: within 0.01 (absolute), codec lorenzo; "
        "NaN, infinities and the fill value exact")
WAYS = """
import sys, os, h5py, netCDF4, numpy as np, xarray as xr
import h5z_gpu, h5z_gpu.xarray as hx
from h5z_gpu import Lossless, Lossy
os.chdir(sys.argv[1])
x = np.load("x.npy")
how = Lossy(absolute=0.01, codec="lorenzo")
ds = xr.Dataset({"v": (("t", "y", "x"), x), "n": (("t", "y", "x"), (x * 100).astype("i4")), "s": ((), np.float32(3))},
                {"y": np.linspace(0, 1, x.shape[1])})
def by_save(path, **keys):
    h5z_gpu.save(path, {"v": x, "n": ds.n.values, "s": ds.s.values}, how, **keys)
def by_write(path, **keys):
    with h5py.File(path, "w") as f:
        for name in "vn":
            d = f.create_dataset(name, x.shape, ds[name].dtype, chunks=(8, 16, 60), compression=how)
            assert not d.attrs
            for k in range(0, len(x), 8):
                h5z_gpu.write(d, ds[name].values[k:k + 8], np.s_[k:k + 8], **keys)
def by_netcdf4(path, **keys):
    with netCDF4.Dataset(path, "w") as f:
        for d, n in zip("tyx", x.shape): f.createDimension(d, n)
        for name in "vn":
            v = f.createVariable(name, ds[name].dtype, tuple("tyx"))
            h5z_gpu.netcdf.def_filter(v, how, **keys)
            v[:] = ds[name].values
def by_xarray(engine):
    return lambda path, **keys: hx.to_netcdf(ds, path, how, engine=engine, **keys)
def by_plain_xarray(engine):
    return lambda path: ds.to_netcdf(path, engine=engine, encoding=hx.encoding(ds, how))
"""
MADE = {"save": "by_save", "write": "by_write", "def_filter": "by_netcdf4",
        **{f"{way} {e}": f"by_{way}('{e}')" for way in ("xarray", "plain_xarray") for e in ENGINES}}


@pytest.fixture
def desk(tmp_path):
    np.save(tmp_path / "x.npy", sample(shape=(24, 30, 60)))
    return tmp_path


def said(path, name):
    with h5py.File(path) as f:
        found = {n: f[name].attrs[n] for n in f[name].attrs if n.startswith("lossy")}
    return {n: v.decode() if isinstance(v, bytes) else v for n, v in found.items()}


@pytest.mark.parametrize("way", MADE.values(), ids=MADE)
def test_every_way_of_writing_says_the_same(way, desk):
    """Of what may lose bits alone; off by an argument, and for a process; the data is the same with and without."""
    off = "" if "plain" in way else f"({way})('off.nc', provenance=False)\n"
    use(f"""{WAYS}
({way})("a.nc")
{off}h5z_gpu.provenance.enabled = False
({way})("none.nc")
""", desk)
    assert said(desk / "a.nc", "v") == dict(zip(NAMES, (TEXT, "absolute", 0.01, "lorenzo")))
    assert said(desk / "a.nc", "n") == {}
    with h5py.File(desk / "a.nc") as a:
        for path in ("none.nc", "off.nc") if off else ("none.nc",):
            assert said(desk / path, "v") == said(desk / path, "n") == {}, path
            with h5py.File(desk / path) as b:
                for k in range(a["v"].id.get_num_chunks()):
                    at = a["v"].id.get_chunk_info(k).chunk_offset
                    assert a["v"].id.read_direct_chunk(at) == b["v"].id.read_direct_chunk(at)
    text = run("ncdump", "-h", desk / "a.nc")
    assert f'v:lossy_compression = "{TEXT}"' in text and "v:lossy_compression_bound = 0.01 ;" in text


def test_repack_says_the_same_and_can_be_silent(desk):
    with h5py.File(desk / "a.h5", "w") as f:
        f["v"], f.attrs["history"] = np.load(desk / "x.npy"), "made"
    assert cli("repack", desk / "a.h5", desk / "b.h5", "v=absolute:0.01", "--codec=lorenzo")[0] == 0
    assert cli("repack", desk / "a.h5", desk / "c.h5", "v=absolute:0.01", "--no-provenance")[0] == 0
    assert said(desk / "b.h5", "v") == dict(zip(NAMES, (TEXT, "absolute", 0.01, "lorenzo")))
    assert said(desk / "c.h5", "v") == {} and h5py.File(desk / "c.h5").attrs["history"] == "made"
    typed = f": h5z-gpu repack {desk / 'a.h5'} {desk / 'b.h5'} v=absolute:0.01 --codec=lorenzo"
    assert h5py.File(desk / "b.h5").attrs["history"].splitlines()[0].endswith(typed)


def test_what_keeps_every_bit_says_nothing(desk):
    """Lossless, integers, truth values, compounds, scalars, nothing at all, and numbers behind shuffle."""
    use(f"""{WAYS}
h5z_gpu.save("a.h5", {{"v": x}}, Lossless())
pair = np.zeros(4000, [("a", "f4"), ("b", "i2")])
h5z_gpu.save("b.h5", {{"i": ds.n.values, "b": x > 0, "c": pair, "z": x * 1j, "s": np.float32(1), "e": x[:0]}}, how)
with h5py.File("c.h5", "w") as f:
    d = f.create_dataset("v", x.shape, "f4", chunks=(8, 16, 60), shuffle=True, compression=how)
    h5z_gpu.write(d, x)
    d = f.create_dataset("w", x.shape, "f4", chunks=(8, 16, 60), compression="gzip")
    h5z_gpu.write(d, x)
    f["u"] = x
    h5z_gpu.write(f["u"], x)
same = Lossy(relative=1e-3, of="dataset")
h5z_gpu.save("d.h5", {{"v": np.full((64, 64), 3.5)}}, same)
hx.to_netcdf(ds.assign(v=ds.v * 0 + 3), "e.nc", same)
ds.to_netcdf("f.nc", engine="h5netcdf", encoding={{"v": {{"compression": how, "shuffle": True}}}})
with netCDF4.Dataset("g.nc", "w") as f:
    f.createDimension("x", 4000)
    v = f.createVariable("v", "f4", ("x",))
    h5z_gpu.netcdf.def_filter(v, how)
    assert v.lossy_compression_bound == 0.01
    h5z_gpu.netcdf.def_filter(v, Lossless())
    v[:] = x.ravel()[:4000]
    assert not v.ncattrs()
""", desk)
    for path in "a.h5 b.h5 c.h5 d.h5 e.nc f.nc g.nc".split():
        with h5py.File(desk / path) as f:
            for name in f:
                assert said(desk / path, name) == {}, (path, name)


def test_another_bound_later(desk):
    """Of a rewrite of the same values by xarray the earlier losses are named, of new values they are not."""
    use(f"""{WAYS}
hx.to_netcdf(ds, "0.nc", how)
for k in range(3):
    with xr.open_dataset(f"{{k}}.nc", engine="h5z_gpu") as d:
        hx.to_netcdf(d, f"{{k + 1}}.nc", {{"v": Lossy(relative=0.5 ** (k + 4))}})
with xr.open_dataset("1.nc") as d:
    d.to_netcdf("plain.nc")
    hx.to_netcdf(d, "exact.nc", {{"v": Lossless()}})
    d.v.attrs = {{"lossy_compression": "SZ3 within 1 K"}}
    hx.to_netcdf(d, "foreign.nc", how)
h5z_gpu.save("a.h5", {{"v": x}}, how)
""", desk)
    assert "on top" not in said(desk / "0.nc", "v")[NAMES[0]]
    one, three = said(desk / "1.nc", "v"), said(desk / "3.nc", "v")
    assert one[NAMES[0]].endswith("exact; on top of a loss by this filter, within 0.01 (absolute)"), one
    assert one[NAMES[1]] == "relative" and one[NAMES[2]] == 0.0625 and three[NAMES[2]] == 0.015625
    assert three[NAMES[0]].endswith("on top of 3 losses, the last by this filter, within 0.03125 of each "
                                    "chunk's range"), three
    plain = said(desk / "plain.nc", "v")
    assert "on top of 2 losses, the last by this filter" in plain[NAMES[0]] and plain[NAMES[2]] == 0.0625
    assert said(desk / "exact.nc", "v") == one, "what was lost before stays lost"
    assert said(desk / "foreign.nc", "v")[NAMES[0]] == TEXT + "; on top of a loss by SZ3 within 1 K"
    # h5repack takes the attributes along and another bound; values that are written then are of that bound alone.
    run("h5repack", "-f", "v:UD=443,1,1,11001", desk / "a.h5", desk / "b.h5")
    assert said(desk / "b.h5", "v")[NAMES[2]] == 0.01
    use("""
import sys, h5py, h5z_gpu
with h5py.File(sys.argv[1], "r+") as f:
    h5z_gpu.write(f["v"], f["v"][...])
""", desk / "b.h5")
    found = said(desk / "b.h5", "v")
    assert found[NAMES[2]] == 0.1 and "within 0.1 (absolute)" in found[NAMES[0]] and "on top" not in found[NAMES[0]]
    code, _, err = cli("repack", desk / "b.h5", desk / "c.h5", "--absolute=0.2", "--again")
    assert code == 0, err
    assert said(desk / "c.h5", "v")[NAMES[0]].endswith("on top of a loss by this filter, within 0.1 (absolute)")


FAHRENHEIT = "d.assign(v=(d.v - 273.15) * 1.8 + 32)"
CHANGES = {"arithmetic": FAHRENHEIT, "unit changed": FAHRENHEIT + ".assign(v=lambda d: d.v.assign_attrs(units='F'))",
           "power": "d.assign(v=d.v ** 2)", "mean": "d.mean('t', keep_attrs=True)", "whole": "d * 2",
           "groupby": "d.groupby(d.t % 4).mean(keep_attrs=True)",
           "in place": "changed_in_place(d.load())", "copied": "d.assign(v=d.v.copy(data=d.v.values / 9)"
           ".assign_attrs(units='F'))"}


@pytest.mark.parametrize("opened", ["h5z_gpu", *ENGINES])
def test_a_statement_does_not_outlive_its_values(opened, desk):
    """xarray keeps attributes through calculations. What is saved then says nothing, or of the new loss alone."""
    use(f"""{WAYS}
def changed_in_place(d):
    d.v.values[...] /= 9
    d.v.attrs["units"] = "F"
    return d
ds.v.attrs["units"] = "K"
hx.to_netcdf(ds.assign_coords(t=np.arange(24)), "a.nc", how)
changes = {CHANGES}
new = Lossy(absolute=0.125)
for engine in {ENGINES}:
    for name, change in changes.items():
        with xr.open_dataset("a.nc", engine="{opened}") as d:
            made = eval(change)
            path = f"{{engine}}.{{name}}".replace(" ", "_")
            made.drop_encoding().to_netcdf(path + ".exact", engine=engine)
            hx.to_netcdf(made, path + ".new", {{"v": new}}, engine=engine)
            if name not in ("in place", "copied"):
                made.to_netcdf(path + ".plain", engine=engine)
                made.to_netcdf(path + ".asked", engine=engine, encoding=hx.encoding(made, {{"v": new}}))
""", desk)
    found = {path.name: said(path, "v") for path in desk.iterdir()
             if path.suffix in (".exact", ".new", ".plain", ".asked")}
    assert len(found) == 2 * (4 * 6 + 2 * 2)
    for name, attributes in found.items():
        if name.endswith((".new", ".asked")):
            units = "F" if any(part in name for part in ("unit", "place", "copied")) else "K"
            assert "within 0.125 (absolute), codec auto" in attributes[NAMES[0]], name
            assert attributes[UNITS] == units and "on top" not in attributes[NAMES[0]], (name, attributes)
        else:
            assert attributes == {}, (name, attributes)


@pytest.mark.parametrize("opened", ["h5z_gpu", *ENGINES])
def test_a_statement_stays_with_its_values(opened, desk):
    """Cut, renamed, turned, loaded, in chunks of dask; while the engine's dataset is open it lies in the encoding."""
    use(f"""{WAYS}
ds.v.attrs["units"] = "K"
hx.to_netcdf(ds, "a.nc", how)
with xr.open_dataset("a.nc", engine="{opened}") as d:
    where = d.v.encoding if "{opened}" == "h5z_gpu" else d.v.attrs
    assert where["lossy_compression_units"] == "K" and where["lossy_compression_bound"] == 0.01
    assert "{opened}" != "h5z_gpu" or d.v.attrs == {{"units": "K"}}
    for engine in {ENGINES}:
        for k, kept in enumerate((d, d.isel(t=slice(3, 9)), d.transpose("x", ...), d.load(), d.chunk(t=8),
                                  d.sortby("y"), d.assign_attrs(a=1).assign_coords(z=3), xr.concat([d, d], "t"))):
            kept.to_netcdf(f"{{engine}}.{{k}}.same", engine=engine)
            hx.to_netcdf(kept, f"{{engine}}.{{k}}.exact", {{"v": Lossless()}}, engine=engine)
            hx.to_netcdf(kept, f"{{engine}}.{{k}}.zlib", encoding={{"v": {{"zlib": True}}}}, engine=engine)
""", desk)
    made = dict(zip(NAMES, (TEXT, "absolute", 0.01, "lorenzo"))) | {UNITS: "K"}
    found = [path for path in desk.iterdir() if path.suffix in (".same", ".exact", ".zlib")]
    assert len(found) == 48
    for path in found:
        top = "; on top of a loss by this filter, within 0.01 (absolute)" if path.suffix == ".same" else ""
        assert said(path, "v") == made | {NAMES[0]: TEXT + top}, path.name


def test_units_are_those_of_the_values_that_were_coded(desk):
    """By each way that knows them; repack names no loss of values in another unit, and no unit is left from before."""
    use(f"""{WAYS}
ds.v.attrs["units"] = "Pa"
ds.to_netcdf("source.nc", engine="netcdf4")
by_plain_xarray("h5netcdf")("x.nc")
by_xarray("netcdf4")("y.nc")
with h5py.File("w.nc", "w") as f:
    d = f.create_dataset("v", x.shape, "f4", chunks=(8, 16, 60), compression=how)
    d.attrs["units"] = "Pa"
    h5z_gpu.write(d, x)
    assert d.attrs["lossy_compression_units"] == b"Pa"
    d.attrs["units"] = "hPa"
    h5z_gpu.write(d, x / 100)
with netCDF4.Dataset("n.nc", "w") as f:
    f.createDimension("x", 4000)
    v = f.createVariable("v", "f4", ("x",))
    v.units = "Pa"
    h5z_gpu.netcdf.def_filter(v, how)
""", desk)
    assert cli("repack", desk / "source.nc", desk / "r.nc", "v=absolute:0.01")[0] == 0
    for path, units in {"x.nc": "Pa", "y.nc": "Pa", "w.nc": "hPa", "n.nc": "Pa", "r.nc": "Pa"}.items():
        assert said(desk / path, "v")[UNITS] == units, path
    run("h5repack", "-f", "v:NONE", desk / "r.nc", desk / "bare.nc")
    for units, top in (("Pa", True), ("hPa", False), (None, True)):
        with h5py.File(desk / "bare.nc", "r+") as f:
            del f["v"].attrs["units"]
            if units:
                f["v"].attrs["units"] = units
        assert cli("repack", desk / "bare.nc", desk / f"{units}.nc", "v=absolute:0.02")[0] == 0
        found = said(desk / f"{units}.nc", "v")
        assert ("on top of a loss by this filter, within 0.01" in found[NAMES[0]]) == top, (units, found)
        assert found.get(UNITS) == units, found


def test_no_write_fails_for_an_attribute(desk):
    """Where HDF5 refuses them, and where one of the names is something else already."""
    out = use(f"""{WAYS}
with h5py.File("swmr.h5", "w", libver="latest") as f:
    d = f.create_dataset("v", x.shape, "f4", chunks=(8, 16, 60), compression=how)
    f.swmr_mode = True
    h5z_gpu.write(d, x)
with h5py.File("odd.h5", "w") as f:
    d = f.create_dataset("v", x.shape, "f4", chunks=(8, 16, 60), compression=how)
    d.attrs["lossy_compression"] = np.arange(3)
    d.attrs["lossy_compression_mode"] = h5py.Empty("f4")
    d.attrs["lossy_compression_bound"] = ["a", "b"]
    h5z_gpu.write(d, x)
for path in ("swmr.h5", "odd.h5"):
    with h5py.File(path) as f:
        assert 0 < np.abs(f["v"][...] - x).max() <= 0.01
""", desk)
    assert out.count("\n") <= 1 and ("could not be written" in out or not out), out
    assert said(desk / "odd.h5", "v") == dict(zip(NAMES, (TEXT, "absolute", 0.01, "lorenzo")))
    assert filters(desk / "swmr.h5", "v")[0][0] == 443


def test_blocks_of_dask_and_what_joins_them(desk):
    use(f"""{WAYS}
import dask.array, h5z_gpu.dask
h5z_gpu.dask.write(dask.array.from_array(x, chunks=(8, -1, -1)), "parts", "v", how)
""", desk)
    for path in ("v.h5", "v.0.h5"):
        assert said(desk / "parts" / path, "v") == dict(zip(NAMES, (TEXT, "absolute", 0.01, "lorenzo"))), path
