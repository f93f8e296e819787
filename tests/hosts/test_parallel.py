# SPDX-License-Identifier: MIT OR Apache-2.0
"""Several processes write one dataset: dask's threads, processes and workers, and a file for each process, joined."""
import sys

import h5py
import judge
import numpy as np
import pytest
from conftest import HERE, PLUGIN, ROOT, Failed, clean, run, sample, use

SHAPE, CHUNK = (22, 32, 40), (4, 32, 40)
HEAD = f"""
import contextlib, sys, dask, dask.array, distributed, h5py, xarray, numpy as np, h5z_gpu.dask, h5z_gpu.parallel
from pathlib import Path
from samples import sample
SHAPE, CHUNK = {SHAPE}, {CHUNK}
path, kind, x = Path(sys.argv[1]), sys.argv[2], sample(shape=SHAPE)

@contextlib.contextmanager
def scheduler():
    if kind != "workers":
        with dask.config.set({{"scheduler": kind, "num_workers": 2}}):
            yield
        return
    how = {{"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}}
    with distributed.LocalCluster(**how) as cluster, cluster.get_client() as client:
        yield client

def refused(call, *parts, error=ValueError):
    try:
        call()
    except error as e:
        assert "h5z-gpu: " in str(e) and all(p in str(e) for p in parts), e
    else:
        raise AssertionError("accepted")
"""


def parallel(code, *args):
    return use(HEAD + "if __name__ == '__main__':\n" + "".join(f"    {line}\n" for line in code.splitlines()), *args)


def frames(path, name="v"):
    """(filter mask, whether the chunk is a frame) of each chunk, as it lies in the file."""
    with h5py.File(path) as f:
        d = f[name].id
        chunks = [d.read_direct_chunk(d.get_chunk_info(i).chunk_offset) for i in range(d.get_num_chunks())]
    return [(mask, data[:8] == b"\x89H5ZG\r\n\x1a") for mask, data in chunks]


XARRAY = """
ds = xarray.Dataset({"v": (("t", "y", "x"), x)}).chunk(t=4)
with scheduler() as client:
    if client:
        client.register_plugin(h5z_gpu.dask.Plugin())
    ds.to_netcdf(path, engine="h5netcdf", encoding={"v": {"compression": h5z_gpu.Lossy(1e-3), "chunksizes": CHUNK}})
"""


@pytest.mark.parametrize("kind", ["threads", "workers"])
def test_xarray_writes_from_dask(kind, tmp_path):
    """One file; a process creates the dataset, with workers others write into it."""
    parallel(XARRAY, tmp_path / "a.nc", kind)
    assert frames(tmp_path / "a.nc") == [(0, True)] * 6
    with h5py.File(tmp_path / "a.nc") as f:
        assert 0 < judge.check(sample(shape=SHAPE), f["v"][...], "abs", 1e-3) <= 1


def test_xarray_does_not_write_from_dasks_processes(tmp_path):
    """With or without the filter: its lock cannot be sent to them. h5z_gpu.dask.write needs none."""
    with pytest.raises(Failed, match="Lock objects should only be shared"):
        parallel(XARRAY, tmp_path / "a.nc", "processes")


@pytest.mark.parametrize("kind", ["threads", "processes", "workers"])
def test_dask_writes_a_file_for_each_block(kind, tmp_path):
    """The folder is then moved, and read by a process that works elsewhere."""
    parallel("""
with scheduler():
    a = dask.array.from_array(x, chunks=(6, 16, 40))
    a[3] = -99.25
    out = h5z_gpu.dask.write(a, path / "new/f", "v", h5z_gpu.Lossy(1e-3), fillvalue=-99.25)
    assert out == path / "new/f/v.h5"
    h5z_gpu.dask.write(a.astype("i4")[:0], path / "new/f", "empty")
    h5z_gpu.dask.write(a[:, 0, 0], path / "new/f", "line")
    h5z_gpu.dask.write(a, path / "new/f", "v", h5z_gpu.Lossy(1e-3), fillvalue=-99.25, chunks=(2, 32, 40))  # again
(path / "new/f").rename(path / "moved")
""", tmp_path, kind)
    x = sample(shape=SHAPE)
    x[3] = -99.25
    names = sorted(p.name for p in (tmp_path / "moved").glob("v*"))
    assert names == ["v.0.h5", "v.1.h5", "v.2.h5", "v.3.h5", "v.h5"]
    for i in range(4):
        assert frames(tmp_path / f"moved/v.{i}.h5") == [(0, True)] * (3 if i < 3 else 2)
    run(sys.executable, "-c", """
import sys, h5py, numpy as np
with h5py.File(sys.argv[1] + "/v.h5") as f:
    assert f["v"].is_virtual and f["v"].fillvalue == -99.25
    np.save(sys.argv[1] + "/y.npy", f["v"][...])
with h5py.File(sys.argv[1] + "/empty.h5") as f:
    assert f["empty"].shape == (0, 32, 40) and f["empty"].dtype == "i4"
with h5py.File(sys.argv[1] + "/line.h5") as f:
    np.save(sys.argv[1] + "/line.npy", f["line"][...])
""", tmp_path / "moved", cwd="/")
    assert 0 < judge.check(x, np.load(tmp_path / "moved/y.npy"), "abs", 1e-3, -99.25) <= 1
    assert (x[:, 0, 0] == np.load(tmp_path / "moved/line.npy")).all()


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_ranks_write_a_file_each(axis, tmp_path):
    """Debian's h5py under MPI; pieces of different lengths, and a second variable joined into the same file."""
    code = """if True:
        import sys, mpi4py.MPI, h5py, numpy as np, h5z_gpu.parallel
        comm, axis = mpi4py.MPI.COMM_WORLD, int(sys.argv[2])
        x = np.split(np.load(sys.argv[1] + "/x.npy"), (7, 9), axis)[comm.rank]
        file = f"{sys.argv[1]}/parts/{comm.rank}.h5"
        with h5py.File(file, "w") as f:
            chunks = tuple(min(a, b) for a, b in zip((4, 32, 40), x.shape))
            f.create_dataset("g/v", data=x, chunks=chunks, compression=h5z_gpu.Lossy(1e-3))
            f.create_dataset("w", data=x.astype(">f8"), chunks=x.shape, compression=h5z_gpu.Lossless())
        files = comm.gather(file)
        if comm.rank == 0:
            assert comm.size == len(files) == 3
            for name in ("g/v", "w"):
                h5z_gpu.parallel.join(files, name, f"{sys.argv[1]}/joined.h5", axis)
        """
    env = clean(PYTHONPATH=f"{ROOT}/plugin/python", H5Z_GPU_PLUGIN_PATH=str(PLUGIN.parent),
                OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    x = sample(shape=SHAPE)
    np.save(tmp_path / "x.npy", x)
    (tmp_path / "parts").mkdir()
    run("mpirun", "--oversubscribe", "-n", 3, "/usr/bin/python3", "-c", code, tmp_path, axis, env=env)
    for i in range(3):
        assert set(frames(tmp_path / f"parts/{i}.h5", "g/v")) == {(0, True)}
    with h5py.File(tmp_path / "joined.h5") as f:
        assert 0 < judge.check(x, f["g/v"][...], "abs", 1e-3) <= 1
        assert f["w"].dtype == ">f8" and (f["w"][...] == x).all()
        assert {s.file_name for s in f["w"].virtual_sources()} == {f"parts/{i}.h5" for i in range(3)}
    (tmp_path / "joined.h5").rename(tmp_path / "parts/joined.h5")
    with h5py.File(tmp_path / "parts/joined.h5") as f:
        assert not (
            f["w"][...] == x).any(), "HDF5 has learned to say that a file is missing: say so in docs/parallel.md"


def test_ranks_write_one_variable_by_netcdf(tmp_path):
    """netCDF-C built for MPI, chunks within a rank's part and of several ranks; the variable grows."""
    mpi = f"/usr/lib/{run('cc', '-print-multiarch').strip()}/netcdf/mpi/include"
    flags = run("pkg-config", "--cflags", "--libs", "netcdf-mpi").split()
    run("mpicc", "-Wall", "-Wextra", "-Werror", "-o", tmp_path / "collective", HERE / "collective.c", f"-I{mpi}",
        *flags)
    env = clean(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    for times in (2, 8):
        path = tmp_path / f"{times}.nc"
        run("mpirun", "--oversubscribe", "-n", 4, tmp_path / "collective", path, times, env=env)
        collected(path, times)


def collected(path, times):
    """What collective.c says that it writes."""
    t, y, x = np.indices((16, 24, 32))
    values = (250 + t + ((y * 37 + x * 11 + t * 5) % 101) / 1024).astype("f4")
    with h5py.File(path) as f:
        assert f["tas"].chunks == (times, 24, 32)
        assert 0 < judge.check(values, f["tas"][...], "abs", 1e-2) <= 1
    assert frames(path, "tas") == [(0, True)] * (16 // times)


def test_what_does_not_fit_is_refused(tmp_path):
    parallel("""
join = h5z_gpu.parallel.join
others = {"double": x.astype("f8"), "big": x.astype(">f4"), "wide": x[:, :5], "flat": x[0]}
for name, a in {"a": x, "b": x[:3], **others}.items():
    with h5py.File(path / f"{name}.h5", "w") as f:
        f.create_dataset("v", data=a, chunks=a.shape, compression=h5z_gpu.Lossy(1e-3))
at = lambda *names: [path / f"{n}.h5" for n in names]
out = path / "out.h5"
for names, more, *parts in (
    (("a", "double"), {}, "<f8", "double.h5", "<f4", "a.h5"), (("a", "big"), {}, ">f4"),
    (("a", "b", "wide"), {}, "(22, 5, 40)", "wide.h5", "only axis 0"),
    (("a", "flat"), {}, "(32, 40)"), (("a",), {"axis": 3}, "axis 3"),
    (("a", "b"), {"axis": 1}, "(3, 32, 40)", "(22, 32, 40)", "only axis 1"),
    ((), {}, "no files"), (("a", "out"), {}, "into itself"),
):
    refused(lambda: join(at(*names), "v", out, **more), *parts)
refused(lambda: join(at("a", "none"), "v", out), "none.h5 is missing", error=FileNotFoundError)
refused(lambda: join(at("a"), "w", out), "a.h5 has no dataset w", error=KeyError)
assert not out.exists(), "nothing was written"
join(at("b", "a"), "v", out)
refused(lambda: join(at("a"), "v", out), "out.h5 has v already")
assert h5py.File(out)["v"].shape == (25, 32, 40)
a = dask.array.from_array(x, chunks=4)
refused(lambda: h5z_gpu.dask.write(a[a > 0], path, "v"), "compute_chunk_sizes")
refused(lambda: h5z_gpu.dask.write(a.sum(), path, "v"), "axis 0")
refused(lambda: h5z_gpu.dask.write(x, path, "v"), "ndarray", "from_array", error=TypeError)
# Where a block fails, nothing is joined, and what was joined before is gone.
h5z_gpu.dask.write(a, path / "f", "g/v")
try:
    fails = a.map_blocks(lambda b, block_info=None: 1 / (block_info[0]["chunk-location"][0] != 2) * b, dtype="f4")
    h5z_gpu.dask.write(fails, path / "f", "g/v")
except ZeroDivisionError:
    assert not (path / "f/g/v.h5").exists() and (path / "f/g/v.0.h5").exists()
else:
    raise AssertionError("accepted")
""", tmp_path, "threads")


def test_it_needs_no_distributed(tmp_path):
    """Read back by h5dump, which works elsewhere and has another HDF5."""
    use("""
import sys
sys.modules["distributed"] = None
import dask.array, h5z_gpu.dask
h5z_gpu.dask.write(dask.array.arange(100, chunks=30, dtype="f8"), sys.argv[1], "v", h5z_gpu.Lossy(1e-3))
""", tmp_path)
    text = run("h5dump", "-y", "-w", 0, "-d", "/v", tmp_path / "v.h5", cwd="/")
    values = np.array(text.split("DATA {")[1].split("}")[0].replace(",", " ").split(), "f8")
    assert judge.check(np.arange(100.0), values, "abs", 1.001e-3) <= 1, text
