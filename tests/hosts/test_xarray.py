# SPDX-License-Identifier: MIT OR Apache-2.0
"""`h5z_gpu.xarray`: encodings of whole datasets, saving what was opened, and bounds in place of packing."""
import h5py
import judge
import numpy as np
import pytest
from conftest import use
from programs import filters, listed, stored_bytes

HEAD = """
import os, sys, warnings, numpy as np, xarray as xr
import h5z_gpu.xarray as hx
from h5z_gpu import Lossless, Lossy
os.chdir(sys.argv[1])

def climate(missing=False):
    \"\"\"Every kind of variable that CF knows, with what names it.\"\"\"
    t, y, x = np.meshgrid(np.linspace(0, 6, 40), np.linspace(0, 3, 90), np.linspace(0, 6, 180), indexing="ij")
    tas = (280 + 10 * np.sin(x) * np.cos(y) + t + np.random.default_rng(0).normal(0, 0.05, x.shape)).astype("f4")
    if missing:
        tas[3:9, 20:30] = np.nan
    cells, TYX = tas > 285, ("time", "lat", "lon")
    ds = xr.Dataset({
        "tas": (TYX, tas, {"units": "K", "grid_mapping": "crs", "ancillary_variables": "tas_error quality",
                           "cell_measures": "area: cell_area"}),
        "pr": (TYX, tas.astype("f8") / 1e7, {"coordinates": "height"}),
        "tas_error": (TYX, tas / 100), "quality": (TYX, cells.astype("i1"), {"flag_values": [0, 1]}),
        "state": (TYX, cells.astype("f4"), {"flag_meanings": "no yes", "flag_values": [0.0, 1.0]}),
        "count": (TYX, np.arange(tas.size).reshape(tas.shape).astype("i4")),
        "hot": (TYX, cells), "when": (("time",), np.arange(40).astype("M8[D]").astype("M8[ns]")),
        "station": (("lat",), np.array(["x"] * 90)),
        "crs": ((), 0, {"grid_mapping_name": "latitude_longitude"}), "mean": ((), np.float32(280)),
        "time_bnds": (("time", "nv"), np.stack([np.arange(40.0), np.arange(1, 41.0)], 1)),
        "cell_area": (("lat", "lon"), np.ones((90, 180), "f4")),
    }, {"time": ("time", np.arange(40.0) + 0.3, {"units": "days since 2000-01-01", "bounds": "time_bnds"}),
        "lat": np.linspace(-89.3, 89.3, 90), "lon": ("lon", np.linspace(0, 358.1, 180).astype("f4")),
        "height": ((), 2.0), "slope": (("lat", "lon"), tas[0] / 3)})
    return xr.decode_cf(ds)
"""
ENGINES = ("h5netcdf", "netcdf4")
WRITE = {"h5netcdf": "ds.to_netcdf('a.nc', engine='h5netcdf', encoding=hx.encoding(ds, how))",
         "netcdf4": "hx.to_netcdf(ds, 'a.nc', how, engine='netcdf4')",
         "h5netcdf by the function": "hx.to_netcdf(ds, 'a.nc', how, engine='h5netcdf')"}


def words(path):
    """What was typed, or "none", by name of each variable with axes."""
    with h5py.File(path) as f:
        names = [n for n, d in f.items() if d.shape]
    found = {n: filters(path, n) for n in names}
    assert all(len(x) < 2 for x in found.values()), found
    return {n: listed(x[0][2])[0] if x and x[0][0] == 443 else "none" for n, x in found.items()}


@pytest.mark.parametrize("write", WRITE.values(), ids=WRITE)
def test_one_bound_for_a_whole_dataset(write, tmp_path):
    """Lossy for data, lossless for integers, flags and times, nothing for coordinates and what describes the cells."""
    out = use(f"""{HEAD}
ds = climate(); how = Lossy(absolute=1e-2)
{write}
with xr.open_dataset("a.nc", engine="h5netcdf") as d:
    d = d.load()
    assert hx.filters_of(d) == {{**dict.fromkeys(["tas_error", "quality", "state", "count", "hot", "when"], Lossless()),
                                 "tas": how, "pr": how}}
    for name in ("tas", "pr"):
        assert 0 < np.abs(d[name].values.astype("f8") - ds[name]).max() <= 1e-2
        assert {{k: x for k, x in d[name].attrs.items() if k[:17] != "lossy_compression"}} == ds[name].attrs
    assert d.drop_vars(["tas", "pr"]).identical(ds.drop_vars(["tas", "pr"])), d
    np.save("tas.npy", ds.tas)
""", tmp_path)
    assert out == "", out
    exact = dict.fromkeys(["tas_error", "quality", "state", "count", "hot", "when"], 0)
    assert words(tmp_path / "a.nc") == {"tas": 11002, "pr": 11002} | exact | dict.fromkeys(
        ["station", "time_bnds", "cell_area", "time", "lat", "lon", "slope", "nv"], "none")
    with h5py.File(tmp_path / "a.nc") as f:
        assert 0 < judge.check(np.load(tmp_path / "tas.npy"), f["tas"][...], "abs", 1e-2) <= 1


def test_bounds_by_name(tmp_path):
    use(f"""{HEAD}
ds = climate()
how = {{"tas": Lossy(absolute=1e-2), "tas_error": Lossy(relative=1e-2), "count": Lossy(absolute=50),
        "slope": Lossless(), "pr": None}}
plan = hx.encoding(ds, how)
assert set(plan) == set(how) and "compression" not in plan["pr"], plan
for engine in {ENGINES}:
    hx.to_netcdf(ds, engine + ".nc", how, engine=engine)
    with xr.open_dataset(engine + ".nc", engine=engine) as d:
        assert hx.filters_of(d) == {{"tas": Lossy(1e-2), "tas_error": Lossy(1e-2, "rel"), "count": Lossless(),
                                     "slope": Lossless()}}
        assert (d["count"] == ds["count"]).all() and (d.slope == ds.slope).all() and (d.pr == ds.pr).all()
hx.to_netcdf(ds, "z.nc", how, encoding={{"tas": {{"zlib": True}}, "pr": {{"compression": Lossless("ndzip")}}}})
with xr.open_dataset("z.nc") as d:
    assert hx.filters_of(d)["pr"] == Lossless("ndzip") and "tas" not in hx.filters_of(d) and d.tas.encoding["zlib"]
""", tmp_path)


@pytest.mark.parametrize("save", ENGINES)
@pytest.mark.parametrize("opened", ENGINES)
@pytest.mark.parametrize("written", ENGINES)
def test_what_is_opened_and_saved_keeps_its_filters(written, opened, save, tmp_path):
    """Renamed, cut, loaded and saved over itself, in chunks of dask, in a group: with the same bound, fill value and
    axes."""
    out = use(f"""{HEAD}
ds = climate(missing=True)
ds.tas.encoding["_FillValue"] = np.float32(1e20)
how = {{"tas": Lossy(absolute=1e-2), "tas_error": Lossy(relative=1e-3, codec="lorenzo"), "count": Lossless()}}
hx.to_netcdf(ds, "a.nc", how, engine="{written}", unlimited_dims="time", chunks={{"time": 20}})
kept = {{**how}}
with xr.open_dataset("a.nc", engine="{opened}") as d:
    assert hx.filters_of(d) == kept
    hx.to_netcdf(d, "b.nc", engine="{save}")
    hx.to_netcdf(d.rename(tas="t2m", lat="latitude"), "renamed.nc", engine="{save}")
    hx.to_netcdf(d.isel(time=slice(3, 14), lon=slice(0, 100)), "cut.nc", engine="{save}")
    hx.to_netcdf(d[["tas"]].assign(twice=d.tas * 2), "more.nc", engine="{save}")
    hx.to_netcdf(d, "group.nc", engine="{save}", group="deep/er")
    loaded = d.load()
hx.to_netcdf(loaded, "a.nc", engine="{save}")
hx.to_netcdf(ds, "grown.nc", how, engine="{written}", unlimited_dims="time", chunks={{"time": 20}})
with xr.open_dataset("grown.nc", engine="{opened}") as d:
    loaded = d.load()
import netCDF4
with netCDF4.Dataset("grown.nc", "a") as f:
    f["tas"][40:45] = 280
hx.to_netcdf(loaded, "appended.nc", engine="{save}")
with warnings.catch_warnings():
    warnings.filterwarnings("ignore", message="The specified chunks separate")
    d = xr.open_dataset("b.nc", engine="{opened}", chunks={{"time": 10}})
hx.to_netcdf(d, "dask.nc", engine="{save}")
for path in ("a.nc", "b.nc", "dask.nc", "appended.nc"):
    with xr.open_dataset(path, engine="{opened}") as d:
        assert hx.filters_of(d) == kept, (path, hx.filters_of(d))
        assert d.tas.encoding["_FillValue"] == np.float32(1e20) and (d.tas.isnull() == ds.tas.isnull()).all()
        assert d.encoding["unlimited_dims"] == {{"time"}} and d.tas.encoding["chunksizes"] == (
            (10 if path == "dask.nc" else 20), 90, 180)
        assert 0 < np.abs(d.tas.values.astype("f8") - ds.tas).max() <= 2e-2
with xr.open_dataset("renamed.nc", engine="{opened}") as d:
    assert hx.filters_of(d) == {{"t2m": how["tas"], "tas_error": how["tas_error"], "count": Lossless()}}
with xr.open_dataset("cut.nc", engine="{opened}") as d:
    assert hx.filters_of(d) == kept and d.tas.encoding["chunksizes"] == d.tas.shape
with xr.open_dataset("more.nc", engine="{opened}") as d:
    assert hx.filters_of(d) == {{"tas": how["tas"]}}, "of a result nothing is known"
with xr.open_dataset("group.nc", engine="{opened}", group="deep/er") as d:
    assert hx.filters_of(d) == kept
    hx.to_netcdf(d, "flat.nc", engine="{save}")
""", tmp_path)
    assert out == "", out
    for name, where in (("b.nc", "tas"), ("dask.nc", "tas"), ("renamed.nc", "t2m"), ("cut.nc", "tas"),
                        ("group.nc", "deep/er/tas"), ("flat.nc", "tas")):
        (found,) = filters(tmp_path / name, where)
        assert found[0] == 443 and listed(found[2])[0] == 11002, name
        with h5py.File(tmp_path / name) as f:
            assert (f[where].fillvalue == np.float32(1e20) and "crs" in f and "cell_area" in f) or "/" in where
    assert stored_bytes(tmp_path / "b.nc", "tas") < 40 * 90 * 180 * 4 / 3


@pytest.mark.parametrize("engine", ENGINES)
def test_plain_xarray_writes_what_the_encoding_names(engine, tmp_path):
    """By either engine: of the call, of the variable, and as h5py's two keywords; what is not named is as it was."""
    use(f"""{HEAD}
hx.to_netcdf(climate(), "a.nc", Lossy(absolute=1e-2))
with xr.open_dataset("a.nc", engine="h5netcdf") as d:
    d.to_netcdf("b.nc", engine="{engine}", encoding=hx.encoding(d, None))
    d.to_netcdf("c.nc", engine="{engine}", encoding=hx.encoding(d, Lossy(relative=1e-3)))
    words = {{"compression": 443, "compression_opts": (11001,)}}
    d.to_netcdf("d.nc", engine="{engine}", encoding={{"tas": words}})
    d = d.load()
    d.pr.encoding |= words
    d.to_netcdf("e.nc", engine="{engine}")
    had = hx.filters_of(d.drop_vars("pr"))
    tenth, hundredth = Lossy(0.1), Lossy(1e-2)
    for path, other in (("b.nc", {{"pr": hundredth}}), ("d.nc", {{"tas": tenth, "pr": hundredth}}),
                        ("c.nc", dict.fromkeys(("tas", "pr"), Lossy(relative=1e-3))), ("e.nc", {{"pr": tenth}})):
        assert hx.filters_of(xr.open_dataset(path)) == had | other, (path, hx.filters_of(xr.open_dataset(path)))
""", tmp_path)


def test_coordinates_that_were_lossy_lose_nothing_more(tmp_path):
    use(f"""{HEAD}
ds = climate()
ds.to_netcdf("a.nc", engine="h5netcdf",
             encoding={{n: {{"compression": Lossy(absolute=1e-2)}} for n in ("lat", "slope", "tas")}})
with xr.open_dataset("a.nc") as d:
    hx.to_netcdf(d, "b.nc")
    with xr.open_dataset("b.nc") as e:
        assert hx.filters_of(e) == {{"lat": Lossless(), "slope": Lossless(), "tas": Lossy(absolute=1e-2)}}
        assert (d.lat == e.lat).all() and (d.slope == e.slope).all() and not (d.lat == ds.lat.values).all()
""", tmp_path)


def test_when_the_source_cannot_tell(tmp_path):
    """Ambiguous, gone, or in memory: nothing is guessed, and a name in `how` is enough."""
    out = use(f"""{HEAD}
ds = climate()[["tas", "tas_error"]]
for engine in {ENGINES}:
    hx.to_netcdf(ds, "a.nc", {{"tas": Lossy(absolute=1e-2), "tas_error": Lossy(absolute=1e-4)}}, engine="h5netcdf")
    d = xr.open_dataset("a.nc", engine=engine).rename(tas="t2m", tas_error="err").load()
    try: hx.to_netcdf(d, "b.nc")
    except ValueError as e: print(engine, e)
    hx.to_netcdf(d, "b.nc", {{"t2m": Lossy(absolute=1e-3), "err": None}}, engine=engine)
    assert hx.filters_of(xr.open_dataset("b.nc")) == {{"t2m": Lossy(absolute=1e-3)}}
    d.close()
    os.remove("a.nc")
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try: hx.to_netcdf(d, "c.nc", engine=engine)
        except ValueError as e: print(engine, e)
        for w in seen: print(engine, "warns:", w.message)
    hx.to_netcdf(d, "c.nc", Lossy(absolute=1e-2), engine=engine)
data = bytes(ds.to_netcdf(None, engine="h5netcdf", encoding=hx.encoding(ds, Lossy(absolute=1e-2))))
d = xr.open_dataset(data, engine="h5netcdf")
try: hx.to_netcdf(d, "d.nc")
except ValueError as e: print("memory", e)
hx.to_netcdf(d, "d.nc", Lossy(absolute=1e-2))
""", tmp_path)
    lines = out.splitlines()
    ambiguous = ("'t2m' may have been any of these of", "'tas' with Lossy(absolute=0.01), 'tas_error' with "
                 "Lossy(absolute=0.0001)",
                 "give it anew: how={'t2m': h5z_gpu.Lossy(absolute=...)}, or None")
    for engine, at in (("h5netcdf", 0), ("netcdf4", 2)):
        assert all(part in lines[at] for part in (engine, *ambiguous)), lines[at]
    assert "h5netcdf h5z-gpu: " in lines[1] and "cannot be asked what 't2m' was compressed with" in lines[1], lines[1]
    assert "netcdf4 warns: h5z-gpu: " in lines[3] and "cannot be asked what 't2m'" in lines[3] and "'err'" in lines[
        4], out
    assert len(lines) == 6 and lines[5].startswith("memory h5z-gpu: ") and "cannot be asked" in lines[5], out


def test_without_h5py(tmp_path):
    """Files are asked through netCDF4 then, and written by it."""
    use(f"""{HEAD}
hx.to_netcdf(climate(), "a.nc", Lossy(absolute=1e-2), engine="netcdf4")
""", tmp_path)
    use(f"""
import sys; sys.modules["h5py"] = sys.modules["h5netcdf"] = None
{HEAD}
from importlib.util import find_spec
with xr.open_dataset("a.nc", engine="netcdf4") as d:
    assert hx.filters_of(d)["tas"] == Lossy(absolute=1e-2) and hx.filters_of(d)["count"] == Lossless()
    hx.to_netcdf(d.rename(pr="rain"), "b.nc", engine="netcdf4")
    assert dict(**Lossy(1e-2)) == {{"compression": 443, "compression_opts": (11002,)}}
""", tmp_path)
    found = words(tmp_path / "b.nc")
    assert found["tas"] == found["rain"] == 11002 and found["lat"] == "none"


@pytest.mark.parametrize("engine", ENGINES)
def test_many_files_into_one(engine, tmp_path):
    """By open_mfdataset: what the first file had, for all."""
    use(f"""{HEAD}
ds = climate()[["tas", "count"]]
for i in range(4):
    hx.to_netcdf(ds.isel(time=slice(10 * i, 10 * i + 10)), f"{{i}}.nc", {{"tas": Lossy(absolute=1e-2)}},
                 unlimited_dims="time")
with xr.open_mfdataset([f"{{i}}.nc" for i in range(4)], engine="{engine}") as d:
    hx.to_netcdf(d, "all.nc", engine="{engine}")
with xr.open_dataset("all.nc", engine="{engine}") as d:
    assert hx.filters_of(d) == {{"tas": Lossy(absolute=1e-2)}} and d.tas.encoding["chunksizes"] == (10, 90, 180)
    assert 0 < np.abs(d.tas.values.astype("f8") - ds.tas).max() <= 2e-2 and (d["count"] == ds["count"]).all()
""", tmp_path)


@pytest.mark.parametrize("engine", ENGINES)
def test_chunks_of_dask_hold_whole_chunks(engine, tmp_path):
    """By threads, later, and by the workers of dask.distributed: each chunk is coded once, and so within the bound
    once."""
    out = use(f"""{HEAD}
import distributed, h5z_gpu.dask
if __name__ == "__main__":
    ds = climate()[["tas"]]
    np.save("tas.npy", ds.tas)
    lazy = ds.chunk(time=(13, 13, 13, 1), lat=36, lon=180)
    plan = hx.encoding(lazy, Lossy(absolute=1e-2, codec="lorenzo"))["tas"]["chunksizes"]
    print(plan)
    write = lambda path, **more: hx.to_netcdf(lazy, path, Lossy(absolute=1e-2, codec="lorenzo"), engine="{engine}",
                                              **more)
    write("threads.nc")
    job = write("later.nc", compute=False)
    job.compute()
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1,
                                  dashboard_address=None) as cluster, cluster.get_client() as client:
        client.register_plugin(h5z_gpu.dask.Plugin())
        write("distributed.nc")
""", tmp_path)
    assert "(13, 36, 180)" in out.splitlines(), out
    values = np.load(tmp_path / "tas.npy")
    for path in ("threads.nc", "later.nc", "distributed.nc"):
        with h5py.File(tmp_path / path) as f:
            v = f["tas"]
            assert 0 < judge.check(values, v[...], "abs", 1e-2) <= 1
            for i in range(v.id.get_num_chunks()):
                mask, data = v.id.read_direct_chunk(v.id.get_chunk_info(i).chunk_offset)
                assert mask == 0 and data[:4] == b"\x89H5Z"
        assert listed(filters(tmp_path / path, "tas")[0][2]) == (211002, 3, [13, 36, 180])


def test_chunk_shapes(tmp_path):
    """1 to 16 MiB where the array is that large; the last three long axes 32 or whole; trailing axes whole rather than
    leading ones."""
    use(f"""{HEAD}
import dask.array, math
rng = np.random.default_rng(1)
shapes = [(365, 721, 1440), (124, 37, 721, 1440), (64, 256, 256), (1, 721, 1440), (12, 721, 1440), (10000, 20000),
          (100000, 50), (10**7, 3),
          (3, 4000, 4000), (10**8,), (8760, 4, 181, 360), (50, 50, 50), (8760, 73, 144), (31, 3600, 7200),
          (2, 2, 2, 2, 500, 500), (100, 5), (7, 1, 9000, 1, 9000), (40000, 33, 33)]
shapes += [tuple(int(n) for n in np.exp(rng.uniform(0, 20 / rank, rank)) + 0.5) for rank in (1, 2, 3, 4, 5)
           for _ in range(60)]
def planned(shape, kind, parts=-1, **more):
    a = dask.array.zeros(shape, chunks=parts, dtype=kind)
    ds = xr.Dataset({{"v": ([f"d{{i}}" for i in range(len(shape))], a)}})
    return ds, hx.encoding(ds, Lossy(absolute=1e-2), **more)["v"]["chunksizes"]
for shape in shapes:
    for kind in ("f4", "f8"):
        ds, c = planned(shape, kind)
        size, total, case = math.prod(c) * np.dtype(kind).itemsize, math.prod(shape) * np.dtype(kind).itemsize, (
            shape, kind, c)
        assert len(c) == len(shape) and all(1 <= k <= n for k, n in zip(c, shape)), case
        assert min(total, 1 << 20) <= size <= 16 << 20, case
        long = [(k, n) for k, n in zip(c, shape) if n > 1][-3:]
        assert len(long) < 3 or all(k >= min(n, 32) for k, n in long), case
        slack = math.prod(-(-n // k) * k / n for k, n in zip(c, shape))
        assert slack < 1.5, (case, slack)
        if total > 16 << 20:
            parts = tuple(int(rng.integers(1, n + 1)) for n in shape)
            if math.prod(n / p for n, p in zip(shape, parts)) < 5000:
                lazy, c = planned(shape, kind, parts)
                for k, cuts in zip(c, lazy.v.chunks):
                    assert all(at % k == 0 for at in np.cumsum(cuts)[:-1]), (shape, parts, c)
                assert math.prod(c) * lazy.v.dtype.itemsize <= 32 << 20, (shape, parts, c)
assert planned((365, 721, 1440), "f4")[1] == (34, 33, 1440)
assert planned((365, 721, 1440), "f4", chunks={{"d0": 1, "d1": 10000}})[1] == (1, 721, 1440)
assert planned((3, 90, 180), "f4", chunks={{"d0": 24}}, unlimited_dims="d0")[1] == (3, 90, 180)
assert planned((365, 721, 1440), "f4", chunk_bytes=1 << 20)[1] == (34, 33, 288)
assert planned((365, 721, 1440), "f4", parts=(1, 721, 1440))[1] == (1, 721, 1440)
assert planned((365, 721, 1440), "f4", parts=(24, 721, 720))[1] == (24, 61, 720)
ds = climate()[["tas"]].isel(time=slice(0, 0))
assert hx.encoding(ds, {{"tas": Lossy(1e-2)}})["tas"].get("chunksizes") is None
assert hx.encoding(ds, {{"tas": Lossy(1e-2)}}, unlimited_dims="time")["tas"]["chunksizes"] == (1, 90, 180)
hx.to_netcdf(ds, "empty.nc", {{"tas": Lossy(1e-2)}}, unlimited_dims="time")
hx.to_netcdf(ds, "empty.nc", Lossy(1e-2))
""", tmp_path)


def test_more_is_written_into_a_file_that_exists(tmp_path):
    use(f"""{HEAD}
ds = climate()
for engine in {ENGINES}:
    path = engine + ".nc"
    hx.to_netcdf(ds[["tas"]], path, Lossy(absolute=1e-2), engine=engine, mode="w", format="NETCDF4")
    hx.to_netcdf(ds[["pr"]], path, Lossy(absolute=1e-9), engine=engine, mode="a")
    hx.to_netcdf(ds[["tas"]] + 1, path, Lossy(absolute=5e-3), engine=engine, mode="a")  # it has a filter already
    hx.to_netcdf(ds[["tas"]], path, Lossy(absolute=1e-3), engine=engine, mode="a", group="g")
    with xr.open_dataset(path) as d, xr.open_dataset(path, group="g") as g:
        assert hx.filters_of(d.drop_vars("tas")) == {{"pr": Lossy(absolute=1e-9)}}
        assert 0 < np.abs(d.tas - ds.tas.astype("f8") - 1).max() <= 1.01e-2 and 0 < np.abs(
            g.tas - ds.tas.astype("f8")).max() <= 1e-3
""", tmp_path)
    for engine in ENGINES:
        assert [listed(filters(tmp_path / f"{engine}.nc", n)[0][2])[0]
                for n in ("tas", "pr", "g/tas")] == [11002, 11009, 11003]


WRONG = {
    "hx.encoding(ds, 1e-3)": (TypeError, "give h5z_gpu.Lossy(absolute=1e-3), or a dict of such by name"),
    "hx.encoding(ds, {'tas': 1e-3})": (TypeError, "how['tas'] = 0.001; give h5z_gpu.Lossy(absolute=1e-3), "
                                       "h5z_gpu.Lossless() or None"),
    "hx.encoding(ds, {'t2m': Lossy(1)})": (ValueError, "no variable 't2m'; there are 'tas', 'pr'"),
    "hx.encoding(ds, {'lat': Lossy(1)})": (ValueError, "'lat' is a coordinate: give it h5z_gpu.Lossless(), or make it "
                                           "data by ds.reset_coords('lat')"),
    "hx.encoding(ds, {'station': Lossless()})": (ValueError, "'station' holds strings or objects: leave it out"),
    "hx.encoding(ds.tas, Lossy(1))": (TypeError, "DataArray is no xarray.Dataset; of a DataArray, give "
                                      "da.to_dataset(name=...); of a DataTree, the dataset of each group"),
    "hx.encoding(ds.chunk(time=10), Lossy(1), chunks={'time': 4})": (ValueError, "chunks={'time': 4} do not divide "
                                                                     "those of dask, 10"),
    "hx.to_netcdf(ds, 'x.nc', Lossy(1), engine='scipy')": (ValueError, "engine 'scipy'; give 'h5netcdf' or 'netcdf4'"),
    "hx.to_netcdf(ds[['tas']], 'x.nc', Lossy(1), engine='netcdf4', "
    "format='NETCDF4_CLASSIC')": (ValueError, "create the file with format='NETCDF4'"),
    "hx.to_netcdf(ds[['tas']], 'x.nc', Lossy(1), engine='netcdf4', "
    "format='NETCDF3_64BIT')": (ValueError, "create the file with format='NETCDF4'"),
}


def test_wrong_asks_are_refused_with_what_to_do(tmp_path):
    out = use(f"""{HEAD}
ds = climate()
for ask in {list(WRONG)!r}:
    try: eval(ask)
    except (TypeError, ValueError) as e: print(type(e).__name__, e)
    else: print("accepted")
""", tmp_path)
    for (ask, (kind, part)), line in zip(WRONG.items(), out.splitlines(), strict=True):
        assert line.startswith(f"{kind.__name__} h5z-gpu: ") and part in line, (ask, line)


def test_one_bound_for_the_range_of_each_variable(tmp_path):
    use("""
import os, sys; os.chdir(sys.argv[1])
import h5py, numpy as np, xarray as xr, h5z_gpu.xarray
from h5z_gpu import Lossless, Lossy
a = np.random.default_rng(0).normal(size=(8, 64, 64)).cumsum(axis=1)
a[0, :3] = np.nan
ds = xr.Dataset({"a": (("t", "y", "x"), a), "b": (("t", "y", "x"), 100 * a.astype("f4")),
                 "c": (("y", "x"), np.ones((64, 64)))})
how = Lossy(relative=1e-4, of="dataset")
for name, one in (("numpy", ds), ("dask", ds.chunk({"t": 4}))):
    for engine in ("h5netcdf", "netcdf4"):
        h5z_gpu.xarray.to_netcdf(one, f"{name}.nc", how, engine=engine)
        with h5py.File(f"{name}.nc") as f:
            for v in ("a", "b"):
                span = float(np.nanmax(ds[v])) - float(np.nanmin(ds[v]))
                plan = f[v].id.get_create_plist()
                bound = Lossy.from_filter_options(plan.get_filter_by_id(443)[1]).get_config()["absolute"]
                assert 0.999999 < bound / (1e-4 * span) <= 1, (v, bound, span)
                assert 0 < np.nanmax(np.abs(f[v][...].astype("f8") - ds[v].values)) <= bound
            assert isinstance(Lossy.from_filter_options(f["c"].id.get_create_plist().get_filter_by_id(443)[1]),
                              Lossless)
""", tmp_path)


@pytest.mark.parametrize("engine", ENGINES)
def test_an_unlimited_axis_without_steps_keeps_the_filter(engine, tmp_path):
    """What is appended then keeps the bound; of a range that is not known yet a sentence says that bits are kept."""
    out = use(f"""{HEAD}
import netCDF4
warnings.simplefilter("always")
empty = xr.Dataset({{n: (("time", "y", "x"), np.zeros((0, 2000, 900), t)) for n, t in
                     (("a", "f4"), ("b", "f4"), ("n", "i2"))}} | {{"z": (("y", "none"), np.zeros((2000, 0)))}})
hx.to_netcdf(empty, "a.nc", Lossy(absolute=0.01), engine="{engine}", unlimited_dims=["time"])
for how in (Lossy(relative=1e-3, of="dataset"), {{"a": Lossy(relative=1e-3, of="dataset")}}):
    hx.to_netcdf(empty, "b.nc", how, engine="{engine}", unlimited_dims="time", chunks={{"time": 4}})
x = climate().tas.values[:3, :20, :30]
for path in ("a.nc", "b.nc"):
    with netCDF4.Dataset(path, "a") as f:
        f["a"][:3, :20, :30] = x
    with xr.open_dataset(path, engine="h5z_gpu") as d:
        kept = d.a[:3, :20, :30].values
        print(path, d.a.encoding["compression"], d.a.encoding["chunksizes"], d.n.encoding.get("compression"),
              d.z.encoding.get("compression"))
    assert 0 < np.abs(kept - x).max() <= 0.01 if path == "a.nc" else (kept == x).all(), path
""", tmp_path)
    assert out.count("'a' has no values yet") == 2 and out.count("'b' has no values yet") == 1, out
    assert "a.nc Lossy(absolute=0.01) (1, 2000, 900) Lossless() None" in out, out
    assert "b.nc Lossless() (4, 2000, 900)" in out, out
