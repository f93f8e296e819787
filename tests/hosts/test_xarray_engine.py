# SPDX-License-Identifier: MIT OR Apache-2.0
"""xarray's engine "h5z_gpu", and plain `open_dataset` and `to_netcdf` after `import h5z_gpu.xarray`."""
import re
import sys

import h5py
import judge
import numpy as np
import pytest
from conftest import HERE, LONG, PLUGIN, ROOT, clean, run, use
from programs import filters, listed
from test_xarray import ENGINES, HEAD, words

OPENED = ("h5z_gpu", *ENGINES)
BASE = f"""{HEAD}
warnings.simplefilter("error")
warnings.simplefilter("ignore", ResourceWarning)
warnings.filterwarnings("ignore", message="numpy.ndarray size changed")  # netCDF4's wheels for Python 3.9
warnings.filterwarnings("ignore", message="Unlimited dimension")  # of what an indexer has taken away
warnings.filterwarnings("ignore", message="The specified chunks separate")
def base():
    ds = climate(missing=True)[["tas", "count", "slope", "when", "station"]]
    ds.tas.encoding["_FillValue"] = np.float32(1e20)
    how = {{"tas": Lossy(absolute=1e-2), "count": Lossless(), "when": Lossless()}}
    hx.to_netcdf(ds, "a.nc", how, unlimited_dims="time", chunks={{"time": 20}})
    return ds
def bare(ds):
    \"\"\"Without what was lost, which the engine "h5z_gpu" has in encodings.\"\"\"
    ds = ds.copy()
    for v in ds.variables.values():
        v.attrs = {{k: x for k, x in v.attrs.items() if k[:17] != "lossy_compression"}}
    return ds
def has(path, **keys):
    with xr.open_dataset(path, engine="h5z_gpu", **keys) as d:
        return {{n: v.encoding["compression"] for n, v in d.variables.items() if "compression" in v.encoding}}
KEPT = {{"tas": Lossy(absolute=1e-2), "count": Lossless(), "when": Lossless()}}
"""


@pytest.mark.parametrize("save", ENGINES)
@pytest.mark.parametrize("opened", OPENED)
def test_plain_open_and_save_keeps_the_filter(opened, save, tmp_path):
    """Whole, cut, renamed, in chunks of dask, loaded and saved over itself: the bound is held, nothing is warned of."""
    use(f"""{BASE}
ds = base()
with xr.open_dataset("a.nc", engine="{opened}") as d:
    d.to_netcdf("b.nc", engine="{save}")
    d.isel(time=slice(3, 14), lon=slice(0, 100)).to_netcdf("cut.nc", engine="{save}")
    d.isel(time=5, lat=0).to_netcdf("row.nc", engine="{save}")
    d.isel(time=slice(0, 0)).to_netcdf("empty.nc", engine="{save}")
    if "{save}" == "h5netcdf":  # netCDF4 itself has no axes of no length
        d.isel(lon=slice(0, 0)).to_netcdf("none.nc", engine="{save}")
        assert has("none.nc") == {{"when": Lossless()}}, has("none.nc")
    d.rename(tas="t2m").to_netcdf("renamed.nc", engine="{save}")
    d.transpose("lon", "lat", "time").to_netcdf("turned.nc", engine="{save}")
    d.assign(tas=d.tas.astype("f8"), twice=d.tas * 2).to_netcdf("wide.nc", engine="{save}")
    d.to_netcdf("group.nc", engine="{save}", group="deep/er")
    d.tas.to_netcdf("array.nc", engine="{save}")
    xr.save_mfdataset([d, d[["tas"]]], ["m0.nc", "m1.nc"], engine="{save}")
    loaded = d.load()
loaded.to_netcdf("a.nc", engine="{save}")
xr.Dataset({{"more": ("q", np.arange(4.0))}}).to_netcdf("a.nc", engine="{save}", mode="a")
with xr.open_dataset("b.nc", engine="{opened}", chunks={{}}) as d:
    d.to_netcdf("dask.nc", engine="{save}")
    d.to_netcdf("later.nc", engine="{save}", compute=False).compute()
for path in ("a.nc", "b.nc", "dask.nc", "later.nc", "m0.nc"):
    assert has(path) == KEPT, (path, has(path))
    with xr.open_dataset(path, engine="h5z_gpu") as d:
        assert d.tas.encoding["_FillValue"] == np.float32(1e20) and (d.tas.isnull() == ds.tas.isnull()).all(), path
        assert d.encoding["unlimited_dims"] == {{"time"}} and d.tas.encoding["chunksizes"] == (20, 90, 180)
        assert d["count"].equals(ds["count"]) and d.slope.equals(ds.slope) and d.station.equals(ds.station)
        assert 0 < np.abs(d.tas.values.astype("f8") - ds.tas).max() <= 2e-2
assert has("cut.nc") == KEPT and has("group.nc", group="deep/er") == KEPT and has("turned.nc") == KEPT
assert has("renamed.nc") == {{"t2m" if n == "tas" else n: how for n, how in KEPT.items()}}
assert has("row.nc") == {{n: KEPT[n] for n in ("tas", "count")}}, has("row.nc")
assert has("array.nc") == has("m1.nc") == {{"tas": KEPT["tas"]}}
assert has("empty.nc") == KEPT, has("empty.nc")
assert {{**KEPT, **has("wide.nc")}} == KEPT and has("wide.nc").keys() >= {{"count", "when"}}, has("wide.nc")
""", tmp_path)
    with h5py.File(tmp_path / "b.nc") as f:
        assert f["tas"].fillvalue == np.float32(1e20)
    assert words(tmp_path / "b.nc")["tas"] == 11002 and words(tmp_path / "b.nc")["lat"] == "none"


@pytest.mark.parametrize("save", ENGINES)
@pytest.mark.parametrize("opened", OPENED)
def test_the_users_encoding_wins(opened, save, tmp_path):
    """Of the call, of the variable, dropped, and where the format has no filters."""
    use(f"""{BASE}
ds = base()
d = xr.open_dataset("a.nc", engine="{opened}").load()
def saved(ds, **keys):
    ds.to_netcdf("b.nc", engine="{save}", **keys)
    return has("b.nc")
rest = {{n: KEPT[n] for n in ("count", "when")}}
assert saved(d, encoding={{"tas": {{"zlib": True}}}}) == rest
assert xr.open_dataset("b.nc", engine="netcdf4").tas.encoding["zlib"]
assert saved(d, encoding={{"tas": {{"dtype": "f8"}}}}) == rest
assert saved(d, encoding={{"tas": {{}}}}) == rest
assert saved(d, encoding={{"tas": {{"compression": Lossy(absolute=0.5)}}}})["tas"] == Lossy(absolute=0.5)
packed = {{"dtype": "i2", "scale_factor": 0.01, "add_offset": 280.0, "_FillValue": -1}}
assert saved(d, encoding={{"tas": packed | {{"compression": Lossless()}}}})["tas"] == Lossless()
e = d.copy(deep=True)
assert saved(e) == KEPT
e.tas.encoding |= {{"zlib": True, "complevel": 4}}
assert saved(e) == rest and xr.open_dataset("b.nc", engine="netcdf4").tas.encoding["zlib"]
e.tas.encoding |= {{"zlib": False, "complevel": 0, "contiguous": True}}
e.tas.encoding.pop("chunksizes"), e.tas.encoding.pop("compression", None)
assert "tas" not in saved(e, unlimited_dims=()), has("b.nc")
assert saved(d.drop_encoding()) == {{}}
for key, value in (("zlib", True), ("contiguous", True)):  # what a file had, and a bound that is named then
    e = d.drop_encoding()
    e.tas.encoding |= {{key: value, "complevel": 4 * (key == "zlib"), "compression": Lossy(absolute=0.25)}}
    assert saved(e) == {{"tas": Lossy(absolute=0.25)}}, key
e = d.copy()
e.tas.encoding |= {{"chunksizes": (5, 30, 180)}}
assert saved(e) == KEPT and xr.open_dataset("b.nc").tas.encoding["chunksizes"] == (5, 30, 180)
e = d.copy()
e.tas.encoding |= {{"dtype": "i2", "scale_factor": 0.01, "add_offset": 280.0, "_FillValue": -1}}
assert saved(e) == KEPT | {{"tas": Lossless()}}, "packed by hand: integers keep every bit"
classic = saved(d, format="NETCDF4_CLASSIC") if "{save}" == "h5netcdf" else None
assert classic in (None, KEPT)
del d["when"]
d = d.assign(count=d["count"].astype("i4")).drop_vars("station")
d.to_netcdf("three.nc", engine="netcdf4", format="NETCDF3_64BIT")
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    d[["tas"]].to_netcdf("classic.nc", engine="netcdf4", format="NETCDF4_CLASSIC")
said = [(str(w.message), w.filename) for w in seen]
assert len(said) == 1 and "'tas' are written without. Format" in said[0][0] and said[0][1] == "<string>", said
with xr.open_dataset("classic.nc") as c, xr.open_dataset("three.nc") as t:
    said = {{k: x for k, x in d.tas.encoding.items() if k[:17] == "lossy_compression"}}
    assert c.tas.attrs["lossy_compression_bound"] == 0.01
    assert c.tas.attrs == t.tas.attrs == d.tas.attrs | said, "nothing was lost again"
    assert c.tas.equals(d.tas) and t.tas.equals(d.tas)
""", tmp_path)


@pytest.mark.parametrize("model, said", [("xarray_model", "files are as h5netcdf reads them"),
                                         ("xarray_saves", "are saved with what they had")])
def test_random_files(model, said, tmp_path):
    """Random indexers, and random changes between opening and saving; see the two models."""
    count = 40 if LONG else 12
    env = clean(PYTHONPATH=f"{ROOT}/plugin/python:{HERE}", H5Z_GPU_PLUGIN_PATH=str(PLUGIN.parent))
    out = run(sys.executable, HERE / f"{model}.py", tmp_path, 1000, count, env=env)
    # Some changes xarray itself cannot make, or cannot write.
    *_, last = out.splitlines()
    assert last.endswith(said) and int(last.split()[0]) >= 3 * count // 4, out


@pytest.mark.parametrize("save", ENGINES)
def test_what_hides_numbers_is_kept_exactly(save, tmp_path):
    """Words of a bound behind shuffle, of integers: nothing was lost there, and nothing is when it is saved."""
    use(f"""{BASE}
import h5netcdf
rng = np.random.default_rng(0)
x = rng.normal(size=(64, 64)).astype("f4")
with h5netcdf.File("a.nc", "w") as f:
    f.dimensions = {{"y": 64, "x": 64}}
    for name, kind, more in (("plain", "f4", {{}}), ("shuffled", "f4", {{"shuffle": True}}), ("ints", "i4", {{}}),
                             ("summed", "f4", {{"fletcher32": True}}), ("big", ">f8", {{}}), ("half", "f2", {{}})):
        v = f.create_variable(name, ("y", "x"), kind, chunks=(32, 64), compression=443, compression_opts=(11001,),
                              **more)
        v[...] = (x * 9).astype(kind)
want = {{"plain": Lossy(0.1), "shuffled": Lossless(), "ints": Lossless(), "summed": Lossy(0.1), "big": Lossy(0.1),
        "half": Lossy(0.1)}}
assert has("a.nc") == want, has("a.nc")
for opened in ("h5z_gpu", "h5netcdf"):
    with xr.open_dataset("a.nc", engine=opened) as d:
        names = [n for n in d if n != "half"] if "{save}" == "netcdf4" else list(d)
        d[names].to_netcdf("b.nc", engine="{save}")
        assert has("b.nc") == {{n: want[n] for n in names}}, (opened, has("b.nc"))
        with xr.open_dataset("b.nc", engine="h5z_gpu") as e:
            assert e[["shuffled", "ints"]].equals(d[["shuffled", "ints"]])
            assert all(np.abs(e[n].values.astype("f8") - d[n].values.astype("f8")).max() <= 0.1 for n in names)
            assert not [k for n in ("shuffled", "ints") for k in e[n].attrs if "lossy" in k]
""", tmp_path)


def test_the_package_enters_its_engine(tmp_path):
    """By the entry point in pyproject.toml, with no import: opened, and saved by both engines."""
    text = (ROOT / "plugin/python/pyproject.toml").read_text()
    points = re.search(r'\[project\.entry-points\."xarray\.backends"\]\n((?:\S.*\n)+)', text)[1].replace('"', "")
    info = tmp_path / "h5z_gpu-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: h5z-gpu\nVersion: 0.1.0\n")
    (info / "entry_points.txt").write_text(f"[xarray.backends]\n{points}")
    use(f"{BASE}\nbase()", tmp_path)
    out = use("""
import os, sys, warnings, xarray as xr
os.chdir(sys.argv[1])
sys.path.append(sys.argv[1])
warnings.simplefilter("error")
assert "h5z_gpu" in xr.backends.list_engines() and "h5z_gpu.xarray" not in sys.modules
for engine in ("h5netcdf", "netcdf4", "h5z_gpu"):
    with xr.open_dataset("a.nc", engine="h5z_gpu") as d:
        d.to_netcdf(engine + ".nc", engine=engine)
    with xr.open_dataset(engine + ".nc", engine="h5z_gpu") as d:
        print(d.tas.encoding["compression"], d.attrs)
""", tmp_path)
    assert out == "Lossy(absolute=0.01) {}\n" * 3, out


def test_many_files_trees_and_processes(tmp_path):
    """open_mfdataset, DataTree, pickles, processes, threads: the same values, and files that are closed."""
    use(f"""{BASE}
import pickle, multiprocessing, threading, dask, distributed, h5z_gpu.dask
def opened():
    here = os.path.realpath(".")
    return [x for x in (os.path.realpath(f"/proc/self/fd/{{n}}") for n in os.listdir("/proc/self/fd")) if
            x.startswith(here)]
if __name__ == "__main__":
    ds = base()
    ref = bare(xr.load_dataset("a.nc", engine="h5netcdf"))
    for k in range(4):
        hx.to_netcdf(ds.isel(time=slice(10 * k, 10 * k + 10)), f"{{k}}.nc", {{"tas": Lossy(absolute=1e-2)}},
                     unlimited_dims="time")
    for parallel in (False, True):
        with xr.open_mfdataset("[0-3].nc", engine="h5z_gpu", parallel=parallel, data_vars="all") as d:
            for engine in {ENGINES}:
                d.to_netcdf(f"all.{{engine}}.nc", engine=engine)
                assert has(f"all.{{engine}}.nc")["tas"] == Lossy(absolute=1e-2)
    with xr.open_dataset("all.h5netcdf.nc", engine="h5z_gpu") as d:
        assert np.nanmax(np.abs(d.tas.values.astype("f8") - ds.tas)) <= 2e-2
    for engine in {ENGINES}:
        tree = xr.DataTree.from_dict({{"/": ref[["count"]], "/one": ref, "/one/two": ref[["tas"]]}})
        for group in ("", "one", "one/two"):
            for v in tree[group or "/"].to_dataset(inherit=False).variables.values():
                v.encoding.clear()
            hx.to_netcdf(tree[group or "/"].to_dataset(inherit=False), "tree.nc", Lossy(absolute=1e-2), engine=engine,
                         group=group or None, mode="a" if group else "w")
        with xr.open_datatree("tree.nc", engine="h5z_gpu") as t, xr.open_datatree("tree.nc", engine="h5netcdf") as h:
            assert set(t.groups) == set(h.groups) and t["one/two"].tas.encoding["compression"] == Lossy(absolute=1e-2)
            assert all(t[g].to_dataset().identical(bare(h[g].to_dataset())) for g in t.groups)
            t.to_netcdf("tree2.nc", engine=engine)
        assert has("tree2.nc", group="one/two") == {{"tas": Lossy(absolute=1e-2)}}
        with xr.open_datatree("tree.nc", engine="h5z_gpu", group="one") as t:
            assert set(t.groups) == {{"/", "/two"}}
    lazy = xr.open_dataset("a.nc", engine="h5z_gpu", chunks={{"time": 7}})
    plain = xr.open_dataset("a.nc", engine="h5z_gpu")
    assert pickle.loads(pickle.dumps(plain)).identical(ref) and pickle.loads(pickle.dumps(lazy)).identical(ref)
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        means = pool.map(np.asarray, [plain.tas[k] for k in range(6)])
        assert all(np.array_equal(m, ref.tas[k], equal_nan=True) for k, m in enumerate(means))
    with dask.config.set(scheduler="processes"):
        assert lazy.compute().identical(ref)
    with dask.config.set(scheduler="threads", num_workers=8):
        assert lazy.compute().identical(ref)
    with distributed.LocalCluster(n_workers=1, threads_per_worker=2, dashboard_address=None) as cluster:
        with cluster.get_client():
            assert lazy.compute().identical(ref), "workers import the package with what they read"
            lazy.to_netcdf("workers.nc", engine="h5netcdf")
    assert has("workers.nc") == KEPT
    wrong = []
    def reader(seed):
        rng = np.random.default_rng(seed)
        for _ in range(60):
            a, b = sorted(int(n) for n in rng.integers(0, 41, 2))
            if not np.array_equal(plain.tas[a:b].values, ref.tas[a:b].values, equal_nan=True):
                wrong.append((a, b))
    threads = [threading.Thread(target=reader, args=(k,)) for k in range(6)]
    [t.start() for t in threads], [t.join() for t in threads]
    assert not wrong
    plain.close(), lazy.close()
    for keys in ({{"group": "no/such"}}, {{"decode_times": False, "drop_variables": 3.5}}):
        try: xr.open_dataset("a.nc", engine="h5z_gpu", **keys)
        except (OSError, TypeError): pass
        else: raise AssertionError(keys)
    for path, kind in (("missing.nc", FileNotFoundError), ("text.nc", OSError)):
        open("text.nc", "w").write("no file of this kind")
        try: xr.open_dataset(path, engine="h5z_gpu")
        except kind: pass
        else: raise AssertionError(path)
    import gc; gc.collect()
    assert not opened(), opened()
""", tmp_path)


def test_the_file_that_is_open_is_refused_as_xarray_does(tmp_path):
    use(f"""{BASE}
base()
for save in {ENGINES}:
    said = []
    for opened in {OPENED}:
        with xr.open_dataset("a.nc", engine=opened) as d:
            try: d.to_netcdf("a.nc", engine=save)
            except OSError as e: said.append(type(e))
            else: raise AssertionError((save, opened))
    assert len(said) == 3, said
assert has("a.nc") == KEPT, "the file is as it was"
with xr.open_dataset("a.nc", engine="h5z_gpu") as d, xr.open_dataset("a.nc", engine="h5z_gpu") as e:
    assert d.identical(e.load()), "opened twice"
    hx.to_netcdf(d, "a.nc")
assert has("a.nc") == KEPT
""", tmp_path)


def test_damage_is_an_error_and_memory_a_file(tmp_path):
    """A damaged chunk is named; files of bytes, of other filters and of none are read."""
    use(f"""{BASE}
ds = base()
data = open("a.nc", "rb").read()
with xr.open_dataset(data, engine="h5z_gpu") as d, xr.open_dataset("a.nc", engine="h5netcdf") as e:
    assert d.identical(bare(e))
    d.to_netcdf("b.nc", engine="netcdf4")
assert has("b.nc") == KEPT
import h5py
with h5py.File("a.nc") as f:
    at = f["tas"].id.get_chunk_info(1)
bad = bytearray(data)
bad[at.byte_offset + at.size // 2] ^= 1
open("bad.nc", "wb").write(bad)
with xr.open_dataset("bad.nc", engine="h5z_gpu") as d:
    assert d.tas[:20].equals(xr.open_dataset("a.nc", engine="h5z_gpu").tas[:20])
    try: d.tas.load()
    except OSError as e: assert "(20, 0, 0)" in str(e) and "checksum" in str(e), e
    else: raise AssertionError("damage is read")
ds.drop_encoding().to_netcdf("zlib.nc", engine="netcdf4", encoding={{"tas": {{"zlib": True, "shuffle": True}}}})
ds.drop_encoding().to_netcdf("none.nc", engine="h5netcdf")
for path in ("zlib.nc", "none.nc"):
    with xr.open_dataset(path, engine="h5z_gpu") as d, xr.open_dataset(path, engine="h5netcdf") as e:
        assert d.load().identical(e.load()) and str(d.tas.encoding) == str(e.tas.encoding)
        for engine in {ENGINES}:
            d.to_netcdf("again.nc", engine=engine)
            assert has("again.nc") == {{}}, has("again.nc")
            with xr.open_dataset("again.nc", engine="netcdf4") as f:
                assert f.tas.encoding["zlib"] == (path == "zlib.nc")
""", tmp_path)


def test_h5netcdf_writes_many_chunks_at_a_time(tmp_path):
    """The frames are those that the filter makes of netCDF4's calls; whole arrays, blocks of dask, what grows."""
    use(f"""{BASE}
import h5py, h5z_gpu.boxed as boxed
calls, write = [], boxed.write
boxed.write = lambda d, x, at, **keys: (calls.append((d.name, x.shape)), write(d, x, at, **keys))
ds = climate(missing=True)[["tas", "count", "station"]]
for lazy in (False, True):
    d = ds.chunk(time=20, lat=45) if lazy else ds
    for engine in {ENGINES}:
        hx.to_netcdf(d, engine + ".nc", Lossy(absolute=1e-2), engine=engine, unlimited_dims="time",
                     chunks={{"time": 20, "lat": 45}})
    with h5py.File("h5netcdf.nc") as a, h5py.File("netcdf4.nc") as b:
        for name in ("tas", "count"):
            assert a[name].id.get_num_chunks() == 4 and a[name].chunks == b[name].chunks
            for k in range(4):
                at = a[name].id.get_chunk_info(k).chunk_offset
                assert a[name].id.read_direct_chunk(at) == b[name].id.read_direct_chunk(at), (name, at)
    assert sorted(calls) == ([("/count", (20, 45, 180))] * 4 + [("/tas", (20, 45, 180))] * 4 if lazy else
                             [("/count", (40, 90, 180)), ("/tas", (40, 90, 180))]), calls
    calls.clear()
more = climate(missing=True)[["tas"]].drop_encoding()
with xr.open_dataset("h5netcdf.nc", engine="h5z_gpu") as d:
    before = d.load()
(more + 1).to_netcdf("h5netcdf.nc", engine="h5netcdf", mode="a", unlimited_dims=())
with xr.open_dataset("h5netcdf.nc", engine="h5z_gpu") as d:
    assert np.nanmax(np.abs(d.tas - more.tas - 1)) <= 1.1e-2 and d["count"].identical(before["count"])
    assert d.tas.encoding["compression"] == Lossy(absolute=1e-2), "what is there keeps its filter"
assert calls == [("/tas", (40, 90, 180))], calls
""", tmp_path)


def test_a_source_that_is_gone(tmp_path):
    """By netcdf4 nothing can be known then, and a warning says so, once; by the engine nothing has to be asked."""
    out = use(f"""{BASE}
base()
opened = {{engine: xr.open_dataset("a.nc", engine=engine).load() for engine in {OPENED}}}
for d in opened.values(): d.close()
os.remove("a.nc")
for engine, d in opened.items():
    for save in {ENGINES}:
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            try: d.to_netcdf("b.nc", engine=save)
            except ValueError as e: print(engine, save, "error:", e)
        for w in seen: print(engine, save, "warns:", w.message, w.filename)
        if not seen and engine == "h5z_gpu": assert has("b.nc") == KEPT
""", tmp_path)
    lines = out.splitlines()
    assert len(lines) == 4 and [x.split()[0] for x in lines] == ["h5netcdf"] * 2 + ["netcdf4"] * 2, out
    assert all("error: h5z-gpu:" in x and "cannot be asked what" in x for x in lines[:2]), out
    assert all("cannot be read any more" in x and x.endswith("<string>") for x in lines[2:]), out


def test_the_engine_reads_a_bound_as_written(tmp_path):
    use(f"""{BASE}
ds = base()
np.save("tas.npy", ds.tas.fillna(1e20).astype("f4"))
with xr.open_dataset("a.nc", engine="h5z_gpu", mask_and_scale=False) as d:
    np.save("got.npy", d.tas)
""", tmp_path)
    x, y = np.load(tmp_path / "tas.npy"), np.load(tmp_path / "got.npy")
    assert 0 < judge.check(x, y, "abs", 1e-2, fill=np.float32(1e20)) <= 1
    assert listed(filters(tmp_path / "a.nc", "tas")[0][2])[0] == 11002
