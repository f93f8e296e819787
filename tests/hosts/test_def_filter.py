# SPDX-License-Identifier: MIT OR Apache-2.0
"""`h5z_gpu.netcdf`: the filter for variables of netCDF4-python, and what variables that were read have."""
import itertools

import h5py
import judge
import numpy as np
import pytest
from conftest import run, sample, use
from programs import filters, listed, stored_bytes

VALUES = sample(shape=(8, 40, 50))
HEAD = """
import sys, netCDF4, numpy as np
from h5z_gpu import Lossless, Lossy
from h5z_gpu.netcdf import def_filter, filter_of
a = np.load(sys.argv[1]); path = sys.argv[2]
def new(path=path, mode="w", **more):
    f = netCDF4.Dataset(path, mode, **more)
    for name, n in zip("xyz", a.shape): f.createDimension(name, n)
    f.createDimension("time", None)
    return f
XYZ = ("x", "y", "z")
"""


@pytest.fixture
def files(tmp_path):
    np.save(tmp_path / "a.npy", VALUES)
    return tmp_path / "a.npy", tmp_path / "a.nc"


@pytest.mark.parametrize("order", [", ".join(o) for o in itertools.permutations(["h5z_gpu", "netCDF4", "h5py"])])
def test_in_any_order_of_imports(order, files):
    use(f"""import {order}
import sys, numpy as np
a = np.load(sys.argv[1])
with netCDF4.Dataset(sys.argv[2], "w") as f:
    for name, n in zip("xyz", a.shape): f.createDimension(name, n)
    v = f.createVariable("v", "f4", ("x", "y", "z"), chunksizes=(4, 40, 50))
    h5z_gpu.netcdf.def_filter(v, h5z_gpu.Lossy(absolute=1e-3))
    v[:] = a
assert 0 < np.abs(h5py.File(sys.argv[2])["v"][...].astype("f8") - a).max() <= 1e-3
""", *files)
    assert listed(filters(files[1], "v")[0][2]) == (11003, 3, [4, 40, 50])


def test_many_variables_in_groups_beside_others(files):
    """Each variable keeps the filter that it was given, and the neighbours theirs, or none; in both byte orders and
    both types."""
    out = use(f"""{HEAD}
hows = [Lossy(absolute=1e-3), Lossy(relative=1e-3, codec="lorenzo"), Lossy(pointwise_relative=0.01), Lossy(psnr=60),
        Lossy(absolute=0.1 + 0.2), Lossless(), Lossless("ndzip")]
with new() as f:
    f.createVariable("x", "f8", ("x",))[:] = np.arange(a.shape[0])
    g = f.createGroup("deep/er")
    for at in (f, g):
        for i, how in enumerate(hows):
            for kind, endian in (("f4", "native"), (">f8", "big")):
                v = at.createVariable(f"{{kind[-2:]}} {{i}}", kind, XYZ, chunksizes=(4, 40, 50), endian=endian)
                v.units = "m"
                def_filter(v, Lossy(1e9)); def_filter(v, how)  # the last call counts
                z = at.createVariable(f"zlib {{kind[-2:]}} {{i}}", kind, XYZ, zlib=True, endian=endian)
                v[:] = a
                z[:] = a
                assert filter_of(v) == how and filter_of(z) is None
    for name, more in (("zstd", dict(compression="zstd")), ("plain", {{}})):
        f.createVariable(name, "f4", XYZ, **more)[:] = a
with netCDF4.Dataset(path) as f:
    for at in (f, f["deep/er"]):
        for i, how in enumerate(hows):
            for kind in ("f4", "f8"):
                assert filter_of(at[f"{{kind}} {{i}}"]) == how and filter_of(at[f"zlib {{kind}} {{i}}"]) is None
    assert [filter_of(f[n]) for n in ("zstd", "plain", "x")] == [None] * 3 and f["zstd"].filters()["zstd"]
    assert f["plain"].chunking() == "contiguous" and (f["zstd"][:] == a).all()
print(len(hows))
""", *files)
    bounds = [("abs", 1e-3), ("rel", 1e-3), ("pw_rel", 1e-2), ("psnr", 60), ("abs", 0.1 + 0.2), ("lossless",),
              ("lossless",)]
    typed = [11003, 221003, 31002, 40600, 0, 0, 390000]
    assert int(out.split()[-1]) == len(bounds)
    with h5py.File(files[1]) as f:
        for group, i, kind in itertools.product(("/", "/deep/er/"), range(len(bounds)), ("f4", "f8")):
            v = f[f"{group}{kind} {i}"]
            (found,) = filters(files[1], v.name)
            assert (found[0], found[1], listed(found[2])) == (443, 1, (typed[i], 3, [4, 40, 50]))
            assert v.dtype == ("<f4" if kind == "f4" else ">f8")
            for old, got in zip(np.split(VALUES, 2), np.split(v[...], 2), strict=True):
                judge.check(old.astype(kind), got.astype(kind), *bounds[i])
            assert [x[0] for x in filters(files[1], f"{group}zlib {kind} {i}")] == [2, 1]


CREATED = {"createVariable": ("fill_value=1e20", ""), "Lossy": ("", ", fill_value=1e20"),
           "both": ("fill_value=1e20", ", fill_value=1e20"), "over no fill": ("fill_value=False", ", fill_value=1e20")}


@pytest.mark.parametrize("off", ["", "f.set_fill_off()"], ids=["filling", "not filling"])
@pytest.mark.parametrize("created, lossy", CREATED.values(), ids=CREATED)
@pytest.mark.parametrize("kind", ["f4", ">f8"])
def test_the_filter_knows_the_fill_value(kind, created, lossy, off, files):
    """By either way, 1e20 stretches no range, comes back bit for bit, and is the attribute. It is in the stored
    words."""
    missing = VALUES.astype(kind[-2:])
    missing[2, 3:9] = 1e20
    np.save(files[0], missing)
    out = use(f"""{HEAD}
with new() as f:
    {off}
    v = f.createVariable("v", "{kind}", XYZ, chunksizes=a.shape, endian="{'big' if kind[0] == '>' else 'native'}",
                         {created})
    def_filter(v, Lossy(relative=1e-3{lossy}))
    v[:] = a
with netCDF4.Dataset(path) as f:
    v = f["v"]
    assert v._FillValue == v.dtype.type(1e20) == filter_of(v).fill_value, filter_of(v)
    assert filter_of(v) == Lossy(relative=1e-3, fill_value=v._FillValue)
    assert v[2, 3:9].mask.all() and not v[3:].mask.any()
""", *files)
    assert out == "", out
    at = missing != missing[2, 3, 0]
    with h5py.File(files[1]) as f:
        got = f["v"][...].astype(missing.dtype)
        assert f["v"].fillvalue == missing[2, 3, 0]
    assert got[~at].tobytes() == missing[~at].tobytes() and 0 < judge.check(missing[at], got[at], "rel", 1e-3) <= 1
    words = filters(files[1], "v")[0][2]
    assert words[3] >> 8 & 1 and words[7:9] == tuple(np.array([1e20],
                                                              kind[-2:]).view("u4").tolist() + [0] * (kind == "f4"))


def test_netcdfs_own_fill_value_is_nobodys_choice(files):
    """It is in the words of a variable without `_FillValue`, and `filter_of` leaves it out: what was asked comes
    back."""
    use(f"""{HEAD}
with new() as f:
    def_filter(f.createVariable("v", "f4", XYZ), Lossy(absolute=1e-3))
with netCDF4.Dataset(path, "a") as f:
    assert filter_of(f["v"]) == Lossy(absolute=1e-3)
    w = f.createVariable("w", "f4", XYZ)
    def_filter(w, filter_of(f["v"]))
""", *files)
    for name in "vw":
        words = filters(files[1], name)[0][2]
        assert words[7] == int(np.float32(9.969209968386869e36).view("u4")) and listed(words)[0] == 11003


def test_appended_by_other_processes(files):
    """Records behind an unlimited axis, by netCDF4 and h5py in turn; every chunk is a frame and within the bound
    once."""
    for i in range(3):
        np.save(files[0], sample(shape=(8, 40, 50), seed=i))
        use(f"""{HEAD}
i = {i}
if i == 0:
    with new() as f:
        def_filter(f.createVariable("v", "f4", ("time", "y", "z"), chunksizes=(4, 40, 50)), Lossy(absolute=1e-3))
if i != 1:
    with netCDF4.Dataset(path, "a") as f:
        f["v"][8 * i : 8 * i + 8] = a
        assert filter_of(f["v"]) == Lossy(absolute=1e-3)
else:
    import h5py
    with h5py.File(path, "a") as f:
        f["v"].resize(16, 0)
        f["v"][8:] = a
""", *files)
    whole = np.concatenate([sample(shape=(8, 40, 50), seed=i) for i in range(3)])
    with h5py.File(files[1]) as f:
        v = f["v"]
        assert 0 < judge.check(whole, v[...], "abs", 1e-3) <= 1 and v.id.get_num_chunks() == 6
        for i in range(6):
            mask, data = v.id.read_direct_chunk(v.id.get_chunk_info(i).chunk_offset)
            assert mask == 0 and data[:4] == b"\x89H5Z"
    run("ncdump", "-h", files[1])


def test_what_is_kept_exactly(files):
    """Types without a bound, and what has no chunks yet: netCDF's own choice of them."""
    use(f"""{HEAD}
with new() as f:
    c, e = f.createCompoundType(np.dtype([("a", "f4"), ("b", "i2")]),
                                "c"), f.createEnumType("i1", "e", {{"no": 0, "yes": 1}})
    data = {{"i4": (np.arange(a.size) % 1000).reshape(a.shape).astype("i4"),
             "u1": (np.arange(a.size) % 7).reshape(a.shape).astype("u1"),
            "S1": np.full(a.shape, b"x"), c: np.zeros(a.shape, c.dtype), e: np.ones(a.shape, "i1")}}
    data[c]["a"] = a
    for i, (kind, x) in enumerate(data.items()):
        for how in (Lossy(absolute=100), Lossy(absolute=100, fill_value=3), Lossless()):
            v = f.createVariable(f"v{{i}} {{how}}", kind, XYZ)
            def_filter(v, how)
            v[:] = x
            assert v.chunking() != "contiguous"
    v = f.createVariable("v", "f4", XYZ, contiguous=True)
    def_filter(v, Lossy(absolute=1e-3))
    v[:] = a
with netCDF4.Dataset(path) as f:
    for i, (kind, x) in enumerate(data.items()):
        for how in ("Lossy(absolute=100.0)", "Lossy(absolute=100.0, fill_value=3)", "Lossless()"):
            v = f[f"v{{i}} {{how}}"]
            v.set_auto_maskandscale(False)
            assert v[:].tobytes() == x.tobytes() and filter_of(v) == (Lossless() if how == "Lossless()"
                                                                      else Lossy(absolute=100)), how
    assert f["v"].chunking() == list(a.shape) and 0 < np.abs(f["v"][:].astype("f8") - a).max() <= 1e-3
""", *files)
    assert stored_bytes(files[1], "v0 Lossless()") < VALUES.size * 4 / 2


def test_in_a_zarr_store(files):
    """netCDF's own Zarr format takes the same call; its filters have no HDF5 behind them."""
    use(f"""{HEAD}
where = f"file://{{path}}.zarr#mode=zarr,file"
with new(where) as f:
    v = f.createVariable("v", "f4", XYZ, chunksizes=(4, 40, 50), fill_value=-9)
    def_filter(v, Lossy(absolute=1e-3))
    v[:] = a
with netCDF4.Dataset(where) as f:
    assert filter_of(f["v"]) == Lossy(absolute=1e-3, fill_value=-9)
    assert 0 < np.abs(f["v"][:].astype("f8") - a).max() <= 1e-3
""", *files)


CASES = {
    "data was written": ("v = f.createVariable('v', 'f4', XYZ); v[:] = a", "laid out in the file already, by data or "
                         "a sync"),
    "the file was synced": ("v = f.createVariable('v', 'f4', XYZ); f.sync()", "right behind createVariable"),
    "no axis": ("v = f.createVariable('v', 'f4', ())", "no dimensions, and so no chunks"),
    "strings": ("v = f.createVariable('v', str, ('x',))", "strings or arrays of any length"),
    "arrays of any length": ("v = f.createVariable('v', f.createVLType('f4', 'l'), ('x',))",
                             "strings or arrays of any length"),
    "behind zlib": ("v = f.createVariable('v', 'f4', XYZ, zlib=True)", "has zlib and shuffle, which netCDF puts first"),
    "behind zstd": ("v = f.createVariable('v', 'f4', XYZ, compression='zstd')", "has zstd, which netCDF puts first"),
    "behind a checksum": ("v = f.createVariable('v', 'f4', XYZ, fletcher32=True, chunksizes=(8, 8, 8))",
                          "has fletcher32"),
    "another fill value": ("v = f.createVariable('v', 'f4', XYZ, fill_value=-1); how = Lossy(1, fill_value=-2)",
                           "has the fill value -1.0, Lossy has -2: give one"),
    "no filter": ("v = f.createVariable('v', 'f4', XYZ); how = 1e-3",
                  "give h5z_gpu.Lossy(absolute=1e-3) or h5z_gpu.Lossless()"),
    "no variable": ("v = a", "numpy.ndarray is no netCDF4.Variable; give what createVariable"),
    "h5netcdf's": ("import h5netcdf.legacyapi as l; v = l.Dataset(path + 'h', 'w').createVariable('v', 'f4', ())",
                   "is no netCDF4.Variable"),
}


@pytest.mark.parametrize("code, part", CASES.values(), ids=CASES)
def test_what_cannot_be_is_refused_with_what_to_do(code, part, files):
    """And the file is as it would be without the call."""
    out = use(f"""{HEAD}
f = new(); how = Lossy(absolute=1e-3)
{code}
try: def_filter(v, how)
except (ValueError, TypeError) as e: print(type(e).__name__, e)
else: print("accepted")
if isinstance(v, netCDF4.Variable):
    assert filter_of(v) is None
    if v.ndim == 3:
        v[:] = a
f.close()
if isinstance(v, netCDF4.Variable) and v.ndim == 3:
    assert (netCDF4.Dataset(path)["v"][:] == a).all()
""", *files)
    assert out.count("\n") == 1 and "h5z-gpu: " in out and part in out, out


@pytest.mark.parametrize("form", ["NETCDF4_CLASSIC", "NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_64BIT_DATA"])
def test_other_formats_are_refused_and_go_on(form, files):
    out = use(f"""{HEAD}
with new(format="{form}") as f:
    v = f.createVariable("v", "f4", XYZ)
    try: def_filter(v, Lossy(absolute=1e-3, fill_value=5))
    except ValueError as e: print(e)
    v[:] = a
    v.units = "m"
    f.createVariable("w", "f4", XYZ)[:] = a
    assert filter_of(v) is None
with netCDF4.Dataset(path) as f:
    assert (f["v"][:] == a).all() and (f["w"][:] == a).all() and "_FillValue" not in f["v"].ncattrs()
""", *files)
    assert form in out and "create the file with format='NETCDF4'" in out, out


def test_a_file_that_is_read_is_refused(files):
    out = use(f"""{HEAD}
with new() as f:
    f.createVariable("v", "f4", XYZ)[:] = a
for mode in "ra":
    with netCDF4.Dataset(path, mode) as f:
        try: def_filter(f["v"], Lossy(absolute=1e-3))
        except ValueError as e: print(e)
        assert (f["v"][:] == a).all()
with netCDF4.Dataset(path, "a") as f:
    def_filter(f.createVariable("w", "f4", XYZ), Lossy(absolute=1e-3))
    assert filter_of(f["w"]) == Lossy(absolute=1e-3)
""", *files)
    r, a = out.splitlines()
    assert "opened for reading" in r and "laid out in the file already" in a, out
