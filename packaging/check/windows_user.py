# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a user on Windows does with the wheel, by h5py, netCDF4, xarray and Zarr in one process. Run by test_windows.py
in a folder of its own; nothing leads to the plugin but the package."""
import json
import os
import shutil
import subprocess
import sys

assert os.name == "nt" and "HDF5_PLUGIN_PATH" not in os.environ and "H5Z_GPU_PLUGIN_PATH" not in os.environ
import h5z_gpu

assert os.environ["HDF5_PLUGIN_PATH"].split(";")[0] == h5z_gpu.PLUGIN_PATH
import h5py
import netCDF4
import numpy as np

from h5z_gpu import loaded

HDF5 = loaded.named("hdf5")
assert len([p for p in HDF5 if "_hl" not in p]) == 2, HDF5
assert loaded.serving(h5py.h5z.__file__, "hdf5") != loaded.serving(netCDF4._netCDF4.__file__, "hdf5")
X = np.cumsum(np.random.default_rng(1).normal(size=(40, 61, 67)), axis=-1).astype("f4")
X[0, 0, :3] = np.nan, np.inf, -0.0
LOSSY = h5z_gpu.Lossy(absolute=1e-3)


def near(got, limit=1e-3):
    assert got.shape == X.shape and np.array_equal(np.isfinite(got), np.isfinite(X))
    at = np.isfinite(X)
    assert 0 < np.abs(got[at].astype("f8") - X[at]).max() <= limit


def by_hdf5():
    """HDF5's own pipeline, whole arrays, parts, and a file that is replaced."""
    with h5py.File("a.h5", "w") as f:
        f.create_dataset("v", data=X, chunks=(10, 61, 67), **LOSSY)
        for name, how in (("w", LOSSY), ("exact", h5z_gpu.Lossless())):
            h5z_gpu.write(f.create_dataset(name, X.shape, "f4", chunks=(10, 61, 67), **how), X)
    with h5py.File("a.h5", "r+") as f:
        near(f["v"][...])
        near(f["w"][...])
        near(h5z_gpu.read(f["v"]))
        assert h5z_gpu.read(f["exact"]).tobytes() == X.tobytes() == f["exact"][...].tobytes()
        assert np.array_equal(h5z_gpu.read(f["v"], selection=np.s_[3:17, ::7, 5]), f["v"][3:17, ::7, 5], equal_nan=True)
    for _ in range(2):
        h5z_gpu.save("saved.h5", {"v": X}, LOSSY)
    near(h5z_gpu.load("saved.h5")["v"])
    with h5py.File("saved.h5"):
        try:
            h5z_gpu.save("saved.h5", {"v": X}, LOSSY)
            raise AssertionError("a file was replaced that is open")
        except OSError as why:
            assert "is open, here or in another program" in str(why), why
    near(h5z_gpu.load("saved.h5")["v"])
    assert not [name for name in os.listdir() if name.endswith(".part")]
    near(h5z_gpu.decompress(h5z_gpu.compress(X, LOSSY), "f4", X.shape))


def by_netcdf():
    with netCDF4.Dataset("n.nc", "w") as f:
        for name, size in zip("zyx", X.shape):
            f.createDimension(name, size)
        v = f.createVariable("v", "f4", ("z", "y", "x"), chunksizes=(10, 61, 67))
        h5z_gpu.netcdf.def_filter(v, LOSSY)
        v[:] = X
    with netCDF4.Dataset("n.nc") as f:
        near(np.ma.getdata(f["v"][:]))
    with h5py.File("n.nc") as f:
        assert f["v"].id.get_create_plist().get_filter(0)[0] == 443
        near(f["v"][...])


def by_xarray():
    import xarray as xr

    import h5z_gpu.xarray as ours

    for engine in ("h5netcdf", "netcdf4"):
        ours.to_netcdf(xr.Dataset({"v": (("z", "y", "x"), X)}), f"{engine}.nc", LOSSY, engine=engine)
        with xr.open_dataset(f"{engine}.nc", engine="h5z_gpu") as d:
            near(d["v"].values)


def by_zarr():
    import zarr

    import h5z_gpu.zarr as ours

    a = zarr.create_array("z.zarr", shape=X.shape, chunks=(10, 61, 67), dtype="f4", serializer=ours.Serializer(LOSSY),
                          compressors=None)
    a[:] = X
    near(zarr.open_array("z.zarr", mode="r")[:])


def command(*typed, status=0, **variables):
    env = {name: value for name, value in os.environ.items() if name != "HDF5_PLUGIN_PATH"} | variables
    done = subprocess.run([sys.executable, "-m", "h5z_gpu", *typed], stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env)
    assert done.returncode == status, (typed, done.returncode, done.stdout)
    return done.stdout


def by_commands():
    with h5py.File("plain.h5", "w") as f:
        f.create_dataset("v", data=X, chunks=(10, 61, 67))
    command("repack", "plain.h5", "packed.h5", "v=absolute:1e-3")
    assert "v" in command("verify", "plain.h5", "packed.h5")
    assert "443" in command("inspect", "packed.h5") or "h5z" in command("inspect", "packed.h5")
    command("advise", "plain.h5")
    assert "443,1,1,11003" in command("words", "abs", "1e-3")
    assert os.path.samefile(command("path").strip(), h5z_gpu.PLUGIN_PATH)
    name, _, folders = command("env").strip().partition(" = ")
    assert name == "$env:HDF5_PLUGIN_PATH" and os.path.samefile(folders.strip("'").split(";")[0], h5z_gpu.PLUGIN_PATH)
    assert "Unix" in command("run", "--", "h5dump", status=2)


def by_doctor():
    """What it says with the package alone, with a folder that is not there, and with a file that is no plugin."""
    told = json.loads(command("doctor", "--json", "packed.h5", "plain.h5"))
    assert [told["machine"], told["problems"]] == ["x86_64", []], told
    assert told["plugin"]["status"]["threads"] >= 1 and "error" not in told["plugin"]
    asked = {os.path.normcase(path): answer for path, answer in told["libraries"].items()}
    assert len(asked) == 2, asked
    for path, answer in asked.items():
        assert "h5py" in path or "netcdf4" in path
        assert answer["version"][0] == 1 and answer["handed"] and answer["round_trip"]["stored_bytes"] < 8000, answer
    assert [f["verdict"].split(":")[0] for f in told["files"]] == ["well", "well"]
    os.mkdir("plugins")
    shutil.copy(os.path.join(h5z_gpu.PLUGIN_PATH, "h5zgpu.dll"), "plugins")
    told = json.loads(command("doctor", "--json", HDF5_PLUGIN_PATH=os.path.abspath("plugins")))
    assert not told["problems"], told
    for answer in told["libraries"].values():
        assert os.path.samefile(answer["plugin"], "plugins/h5zgpu.dll") and "round_trip" in answer, answer
    for text, fault in ((b"MZ" + bytes(100), "cannot be loaded"), (bytes(102), "is no library (102 bytes)")):
        with open("plugins/h5zgpu.dll", "wb") as f:
            f.write(text)
        told = json.loads(command("doctor", "--json", status=1, HDF5_PLUGIN_PATH=os.path.abspath("plugins")))
        assert fault in told["problems"][0]["what"], told
    told = json.loads(command("doctor", "--json", status=1, HDF5_PLUGIN_PATH=r"C:\nowhere"))
    assert "no such folder" in told["problems"][0]["what"], told
    said = command("doctor")
    assert "nothing is wrong" in said and "on x86_64" in said
    print(said)


for step in (by_hdf5, by_netcdf, by_xarray, by_zarr, by_commands, by_doctor):
    step()
    print(step.__name__, flush=True)
