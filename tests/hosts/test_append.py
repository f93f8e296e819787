# SPDX-License-Identifier: MIT OR Apache-2.0
"""Chunks written into a dataset that exists, by a process that has not created or read one: HDF5 loads no filter for
that.

After `import h5z_gpu` every library of the process stores them through the filter all the same, in whatever order it
came.
"""

import h5py
import judge
import numpy as np
import pytest
from conftest import PLUGIN, ROOT, app, clean, run, sample, use

SHAPE, CHUNK = (8, 32, 40), (4, 32, 40)
OLD, NEW = sample(shape=SHAPE), sample(shape=SHAPE, seed=2)


@pytest.fixture
def old(tmp_path):
    """A netCDF-4 file with the variable v, which may grow, and the values to write into it."""
    np.save(tmp_path / "new.npy", NEW)
    with h5py.File(tmp_path / "a.nc", "w", track_order=True) as f:  # netCDF writes into no other
        how = {"chunks": CHUNK, "maxshape": (None, *SHAPE[1:]), "compression": 443, "compression_opts": (11003,)}
        v = f.create_dataset("v", data=OLD, **how)
        for i, (name, n) in enumerate(zip("xyz", SHAPE, strict=True)):
            f.create_dataset(name, data=np.arange(n, dtype="f8"), maxshape=(None if i == 0 else n,), chunks=(n,
                             )).make_scale(name)
            v.dims[i].attach_scale(f[name])
    return tmp_path / "a.nc", tmp_path / "new.npy"


def frames(path):
    """(filter mask, whether the chunk is a frame) of each chunk, as it lies in the file."""
    with h5py.File(path) as f:
        d = f["v"].id
        chunks = [d.read_direct_chunk(d.get_chunk_info(i).chunk_offset) for i in range(d.get_num_chunks())]
    return [(mask, data[:4] == b"\x89H5Z") for mask, data in chunks]


def check(path, values=NEW):
    assert frames(path) == [(0, True)] * (len(values) // CHUNK[0])
    with h5py.File(path) as f:
        assert 0 < judge.check(values, f["v"][...], "abs", 1e-3) <= 1


HEAD = "import sys, numpy as np; path = sys.argv[1]; new = np.load(sys.argv[2])\n"
WRITE = {
    "h5py": """
with h5py.File(path, "a") as f:
    f["v"][...] = new
""",
    "netCDF4": """
with netCDF4.Dataset(path, "a") as f:
    f["v"][...] = new
""",
    "tables": """
with tables.open_file(path, "a") as f:
    f.get_node("/v")[...] = new
""",
    "h5netcdf": """
with h5netcdf.File(path, "a") as f:
    f["v"][...] = new
""",
}
ORDERS = [order for name in WRITE for order in (f"{name}, h5z_gpu", f"h5z_gpu, {name}")]
ORDERS += ["h5py, netCDF4, h5z_gpu, tables", "tables, h5z_gpu, netCDF4, h5py"]


@pytest.mark.parametrize("order", ORDERS)
def test_after_the_import_of_the_package_in_any_order(order, old):
    for name in WRITE:
        if name in order.split(", "):
            assert use(f"import {order}\n{HEAD}{WRITE[name]}", *old).count("h5z-gpu") == 0
            check(old[0])


@pytest.mark.parametrize("order", ["h5py, h5z_gpu", "h5z_gpu, netCDF4"])
def test_rows_behind_the_last(order, old):
    code = {"h5py": "f = h5py.File(path, 'a'); f['v'].resize(16, 0); f['v'][8:] = new; f.close()",
            "netCDF4": "f = netCDF4.Dataset(path, 'a'); f['v'][8:16] = new; f.close()"}
    (name,) = set(order.split(", ")) - {"h5z_gpu"}
    use(f"import {order}\n{HEAD}{code[name]}", *old)
    check(old[0], np.concatenate([OLD, NEW]))


XARRAY = """
ds = xarray.Dataset({"v": (("x", "y", "z"), new)})
"""


@pytest.mark.third
@pytest.mark.parametrize("engine", ["h5netcdf", "netcdf4"])
@pytest.mark.parametrize("order", ["xarray, h5z_gpu", "h5z_gpu, xarray"])
@pytest.mark.parametrize("chunked", ["", ".chunk(x=4)"], ids=["numpy", "dask threads"])
def test_by_xarray(order, engine, chunked, old):
    use(f"import {order}\n{HEAD}{XARRAY}ds{chunked}.to_netcdf(path, mode='a', engine='{engine}')", *old)
    check(old[0])


def test_by_dask_threads(old):
    use(f"""import dask.array, h5py, h5z_gpu
{HEAD}
with h5py.File(path, "a") as f:
    dask.array.store(dask.array.from_array(new, chunks={CHUNK}), f["v"], lock=True, scheduler="threads")
""", *old)
    check(old[0])


DISTRIBUTED = """
import sys, numpy as np, xarray, distributed, h5z_gpu
if __name__ == "__main__":
    path, new = sys.argv[1], np.load(sys.argv[2])
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1,
                                  dashboard_address=None) as cluster, cluster.get_client() as client:
        START
        how = {"v": {"compression": h5z_gpu.Lossy(1e-3), "chunksizes": CHUNK}}
        ds = xarray.Dataset({"v": (("x", "y", "z"), new)}).chunk(x=4)
        ds.to_netcdf(path, engine="h5netcdf", encoding=how)
"""


@pytest.mark.parametrize("start, more", [
    ("client.register_plugin(h5z_gpu.dask.Plugin())", {}),
    ("", {"DASK_DISTRIBUTED__WORKER__PRELOAD": "h5z_gpu"}),
], ids=["plugin", "preload"])
def test_by_workers_of_dask(start, more, old, tmp_path):
    """The scheduler's process creates the dataset, the workers only write into it."""
    head = "import h5z_gpu.dask\n" if "dask" in start else ""
    use(head + DISTRIBUTED.replace("START", start or "pass").replace("CHUNK", repr(CHUNK)), tmp_path / "b.nc",
        old[1], **more)
    check(tmp_path / "b.nc")


@pytest.mark.parametrize("kind", ["shared", "static"])
def test_by_c(kind, old, tmp_path):
    """docs/appending.md names the call; without it HDF5 stores plain chunks."""
    NEW.tofile(tmp_path / "raw")
    with h5py.File(tmp_path / "b.h5", "w") as f:
        f.create_dataset("v", data=OLD, chunks=CHUNK, compression=443, compression_opts=(11003,))
    run(app(kind), "rewrite", tmp_path / "b.h5", "v", tmp_path / "raw")
    assert frames(tmp_path / "b.h5") == [
        (1, False)] * 2, "HDF5 has learned to load filters: say so in docs/appending.md"
    run(app(kind), "rewrite", tmp_path / "b.h5", "v", tmp_path / "raw", "load")
    check(tmp_path / "b.h5")


@pytest.mark.parametrize("order", ["h5z_gpu, mpi4py.MPI, h5py", "h5py, h5z_gpu, mpi4py.MPI",
                                   "mpi4py.MPI, h5py, h5z_gpu", "mpi4py.MPI, h5py"])
def test_by_two_ranks(order, old):
    """Debian's parallel h5py. Without the package HDF5 1.10 stores plain chunks and marks them as filtered, as
    docs/appending.md says."""
    code = f"""if True:
        import {order}
        import sys, numpy as np
        comm = mpi4py.MPI.COMM_WORLD
        mine = slice(4 * comm.rank, 4 * comm.rank + 4)
        with h5py.File(sys.argv[1], "a", driver="mpio", comm=comm) as f:
            v = f["v"]
            with v.collective:
                v[mine] = np.load(sys.argv[2])[mine]
        assert comm.size == 2
        """
    env = clean(PYTHONPATH=f"{ROOT}/plugin/python", H5Z_GPU_PLUGIN_PATH=str(PLUGIN.parent),
                OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    if "h5z_gpu" in order:
        del env["HDF5_PLUGIN_PATH"]
    run("mpirun", "--oversubscribe", "-n", 2, "/usr/bin/python3", "-c", code, *old, env=env)
    if "h5z_gpu" in order:
        check(old[0])
    else:
        assert frames(old[0]) == [(0, False)] * 2


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_by_a_child(method, old, tmp_path):
    """A forked child inherits the filter; a spawned one gets it with the first object of the package that it is
    sent."""
    (tmp_path / "child.py").write_text("""if True:
        import sys, h5py, numpy as np
        def write(how):
            with h5py.File(sys.argv[1], "a") as f:
                f["v"][...] = np.load(sys.argv[2])
            return repr(how)
        """)
    out = use(f"""if True:
        import multiprocessing, sys
        sys.path.insert(0, {str(tmp_path)!r})
        import child, h5z_gpu
        if __name__ == "__main__":
            with multiprocessing.get_context("{method}").Pool(1) as pool:
                print(pool.apply(child.write, (h5z_gpu.Lossy(1e-3),)))
        """, *old)
    assert out == "Lossy(absolute=0.001)\n", out
    check(old[0])


def test_imports_are_what_they_were(tmp_path):
    """The question to each new module changes nothing: failures keep their text, reloads and other finders work."""
    (tmp_path / "broken.abi3.so").write_text("no library")
    use("""
import importlib, sys, h5z_gpu
sys.path.insert(0, sys.argv[1])
before = importlib.machinery.ExtensionFileLoader.exec_module
importlib.reload(h5z_gpu)
assert importlib.machinery.ExtensionFileLoader.exec_module is before
try: import broken
except ImportError as e: assert "broken.abi3.so" in str(e), e
else: raise AssertionError("imported")
import _testbuffer, xxlimited, numpy, tables
for module in (_testbuffer, numpy._core._multiarray_umath):
    assert type(module.__spec__.loader) is importlib.machinery.ExtensionFileLoader
importlib.reload(numpy._core._multiarray_umath)
""", tmp_path)


def test_the_import_waits_for_a_call_of_h5py_in_another_thread(tmp_path):
    """h5py's HDF5 has no lock of its own: what h5py does meanwhile, here reading from an object of Python, is not
    disturbed."""
    use("""
import io, sys, threading, h5py
path = sys.argv[1]
with h5py.File(path, "w") as f:
    f["v"] = [1.0]
reading, go = threading.Event(), threading.Event()
class Slow(io.BytesIO):
    def readinto(self, buffer):
        reading.set()
        go.wait(60)
        return super().readinto(buffer)
def read():
    with h5py.File(Slow(open(path, "rb").read()), "r") as f:
        assert f["v"][0] == 1
def bring():
    import h5z_gpu
threads = [threading.Thread(target=t) for t in (read, bring)]
threads[0].start()
assert reading.wait(60)
threads[1].start()
threads[1].join(1)
waited = threads[1].is_alive()
go.set()
[t.join(60) for t in threads]
assert waited and not any(t.is_alive() for t in threads)
assert h5py.h5z.get_filter_info(443)
""", tmp_path / "a.h5")
