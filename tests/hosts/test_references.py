# SPDX-License-Identifier: MIT OR Apache-2.0
"""HDF5 files read without HDF5: zarr finds their chunks by the references of kerchunk, and of VirtualiZarr."""
from conftest import use

HEAD = """
import json, sys, h5py, zarr, fsspec, netCDF4, h5z_gpu, numpy as np, xarray
from pathlib import Path
from samples import sample
from h5z_gpu import Lossless, Lossy
from h5z_gpu.zarr import references
from kerchunk.hdf import Hdf5FeatureNotSupported

path = Path(sys.argv[1])
CHUNK = (4, 32, 32)
x = sample(shape=(9, 70, 50))

def opened(refs):
    how = {"asynchronous": True}
    fs = fsspec.filesystem("reference", fo=refs, remote_protocol="file", remote_options=how, **how)
    return zarr.open_group(zarr.storage.FsspecStore(fs, read_only=True, path=""), mode="r", zarr_format=2)

def compare(file, refs):
    group, names = opened(json.loads(json.dumps(refs))), []
    with h5py.File(file) as f:
        # kerchunk leaves out netCDF's dimensions without values.
        f.visititems(lambda name, d: names.append(name) if isinstance(d, h5py.Dataset) and not d.is_scale else None)
        for name in names:
            a, b = group[name][...], f[name][...]
            assert a.dtype == b.dtype and a.tobytes() == b.tobytes(), name
    return names

def refused(file, *parts):
    try:
        references(file)
    except Hdf5FeatureNotSupported as e:
        assert str(e).startswith("h5z-gpu: ") and all(p in str(e) for p in parts), e
    else:
        raise AssertionError("accepted")
"""


def references(code, *args):
    return use(HEAD + code, *args)


def test_kerchunk_reads_what_h5py_reads(tmp_path):
    """Groups, types, chunks at the edge, chunks that were never written, shuffle, other filters and none."""
    references("""
with h5py.File(path / "a.h5", "w") as f:
    hows = Lossy(1e-3), Lossy(1e-3, "rel", codec="lorenzo"), Lossless()
    for i, (how, dtype) in enumerate((h, d) for h in hows for d in ("<f4", ">f4", ">f8", "<i2", ">u4")):
        f.create_dataset(f"whole/{i}", data=(x * 10).astype(dtype), chunks=CHUNK, compression=how)
        more = {"compression": how, "fillvalue": 7, "maxshape": (None, 70, 50)}
        d = f.create_dataset(f"part/{i}", x.shape, dtype, chunks=CHUNK, **more)
        d[:3, 40:], d[8] = (x * 10).astype(dtype)[:3, 40:], 5
        assert d.id.get_num_chunks() == 10
    f.create_dataset("none", x.shape, "f4", chunks=CHUNK, compression=Lossy(1), fillvalue=np.nan)
    for dtype in ("f4", "f8"):
        f.create_dataset(f"shuffled {dtype}", x.shape, dtype, x, chunks=CHUNK, shuffle=True, compression=Lossy(1))
    f.create_dataset("small", data=x[0, 0], chunks=(8,), compression=Lossy(1e-3))
    f.create_dataset("gzip", data=x, chunks=CHUNK, compression="gzip")
    f.create_dataset("plain", data=x[0])
refs = references(path / "a.h5")
found = sum(isinstance(r, list) and r[0] == str(path / "a.h5") for r in refs["refs"].values())
assert found > 250, found  # shorter ones are in the references themselves
assert len(compare(path / "a.h5", refs)) == 36
lossy = opened(refs)["whole/0"][...]
assert 0 < np.abs(lossy.astype("f8") - (x * 10).astype("f4")).max() <= 1e-3
""", tmp_path)


def test_kerchunk_reads_what_netcdf_writes(tmp_path):
    """netCDF fills with a value of its own; where the variable names one, xarray masks it in both."""
    references("""
import ctypes
from wheel import loaded, u32
with netCDF4.Dataset(path / "a.nc", "w") as d:
    lib = loaded("netcdf4.libs/libnetcdf")
    for i, n in enumerate(x.shape):
        d.createDimension("tyx"[i], n)
    for name, fill in (("v", None), ("w", -9.5)):
        v = d.createVariable(name, "f4", tuple("tyx"), chunksizes=CHUNK, fill_value=fill)
        assert lib.nc_def_var_filter(d._grpid, v._varid, 443, ctypes.c_size_t(1), u32([11003])) == 0
        v[:3, 40:] = x[:3, 40:]
refs = references(path / "a.nc")
assert {"v", "w"} <= set(compare(path / "a.nc", refs))
assert opened(refs)["v"][8, 0, 0] == np.float32(9.969209968386869e36)
a = xarray.open_dataset(refs, engine="kerchunk").w.values
b = xarray.open_dataset(path / "a.nc", engine="h5netcdf").w.values
assert a.tobytes() == b.tobytes() and np.isnan(a[8]).all() and not np.isnan(a[:3, 40:]).any()
""", tmp_path)


def test_virtualizarr_joins_two_files(tmp_path):
    references("""
from obspec_utils.registry import ObjectStoreRegistry
from obstore.store import LocalStore
from virtualizarr import open_virtual_dataset
from virtualizarr.parsers import KerchunkJSONParser
registry, values = ObjectStoreRegistry({"file://": LocalStore()}), []
for i in (0, 1):
    part = sample(shape=(8, 64, 50), seed=i)
    ds = xarray.Dataset({"v": (("t", "y", "x"), part), "w": (("t", "y"), part[..., 0].astype(">f8"))})
    how = {"compression": Lossy(1e-3)}
    how = {"v": how | {"chunksizes": CHUNK}, "w": how | {"chunksizes": (4, 64)}}
    ds.to_netcdf(path / f"{i}.nc", engine="h5netcdf", encoding=how)
    (path / f"{i}.json").write_text(json.dumps(references(f"file://{path}/{i}.nc", inline_threshold=0)))
    store = KerchunkJSONParser()(f"file://{path}/{i}.json", registry)
    with h5py.File(path / f"{i}.nc") as f:
        values.append({name: f[name][...] for name in "vw"})
        for name in "vw":  # as Zarr 3, by VirtualiZarr itself
            z = zarr.open_group(store, mode="r")[name]
            assert z.metadata.zarr_format == 3 and z[...].astype(f[name].dtype).tobytes() == values[i][name].tobytes()
how = {"registry": registry, "parser": KerchunkJSONParser(), "loadable_variables": []}
parts = [open_virtual_dataset(f"file://{path}/{i}.json", **how) for i in (0, 1)]
refs = xarray.concat(parts, dim="t", coords="minimal", compat="override").vz.to_kerchunk(format="dict")
joined = xarray.open_dataset(json.loads(json.dumps(refs)), engine="kerchunk")
for name in "vw":
    assert joined[name].values.tobytes() == np.concatenate([v[name] for v in values]).tobytes()
try:
    zarr.create_array({}, shape=9, chunks=3, dtype="f4", compressors=h5z_gpu.zarr.Frames(bound=1e-3))[...] = 1
except ValueError as e:
    assert "serializer=h5z_gpu.zarr.Serializer" in str(e)
else:
    raise AssertionError("accepted")
""", tmp_path)


def test_what_references_cannot_say_is_refused(tmp_path):
    references("""
def made(name, shape=x.shape, **more):
    with h5py.File(path / name, "w") as f:
        d = f.create_dataset("v", shape, "f4", **{"chunks": CHUNK, "compression": Lossy(1e-3)} | more)
        yield d
    yield path / name

for d in (it := made("left out.h5")):
    d[...] = x
    d.id.write_direct_chunk((4, 32, 0), np.zeros(CHUNK, "f4").tobytes(), filter_mask=1)
    refused(next(it), "/v has 1 chunks", "(4, 32, 0)", "without the filter")
for d in (it := made("checksum.h5", fletcher32=True)):
    d[...] = x
    refused(next(it), "/v has the filters [443, 3]")
for d in (it := made("fill.h5")):
    d[0] = x[0]
    d.attrs["_FillValue"] = np.float32(-1)
    refused(next(it), "never written", "0.0", "-1.0")
for d in (it := made("whole.h5")):
    d[...], d.attrs["_FillValue"] = x, np.float32(-1)  # no chunk is left whose values it could be
    assert compare(file := next(it), references(file)) == ["v"]
# What is small is in the references itself.
for d in (it := made("small.h5", (6, 4), chunks=(3, 2))):
    d[...] = x[0, :6, :4]
    d.id.write_direct_chunk((3, 2), np.full((3, 2), 0.1, "f4").tobytes(), filter_mask=1)
    assert compare(file := next(it), references(file)) == ["v"]
""", tmp_path)


def test_a_damaged_chunk_is_refused(tmp_path):
    references("""
with h5py.File(path / "a.h5", "w") as f:
    d = f.create_dataset("v", data=x, chunks=CHUNK, compression=Lossy(1e-3))
    at = d.id.get_chunk_info_by_coord((4, 32, 32)).byte_offset
refs, y = references(path / "a.h5"), h5py.File(path / "a.h5")["v"][...]
with open(path / "a.h5", "r+b") as f:
    f.seek(at + 41)
    byte = f.read(1)
    f.seek(at + 41)
    f.write(bytes([byte[0] ^ 1]))
z = opened(refs)["v"]
assert z[:, :32].tobytes() == y[:, :32].tobytes()
try:
    z[...]
except ValueError as e:
    assert "h5z-gpu: damaged chunk: checksum" in str(e), e
else:
    raise AssertionError("accepted")
""", tmp_path)
