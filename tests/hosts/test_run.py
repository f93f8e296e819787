# SPDX-License-Identifier: MIT OR Apache-2.0
"""`h5z-gpu run`: programs that cannot be changed, whose calls go past HDF5's pipeline, and do the same."""
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
from conftest import BUILT, HERE, PLUGIN, ROOT, clean, hdf5_dir, run, sample, use
from programs import filters

H5Z_GPU = BUILT / "bin/h5z-gpu"
OLDER = {"1.12": "hdf5-1.12", "1.14": "hdf5-1.14", "2.0": ""}
SHORT = "by many chunks at a time"


def under(*command, **how):
    """The output of a program under `h5z-gpu run --explain`, and the lines that explain it."""
    lines = run(H5Z_GPU, "run", "--explain", "--", *command, **how).splitlines(keepends=True)
    explains = [line for line in lines if re.match(r"h5z-gpu: .*: (read|write) \d+ times by ", line)]
    return "".join(line for line in lines if line not in explains), "".join(explains)


@pytest.mark.parametrize("version", OLDER)
def test_every_value_is_the_same_as_in_numpy(version):
    env = clean(PYTHONPATH=str(ROOT / ".env/older" / OLDER[version]) if OLDER[version] else "")
    seeds = [str(n) for n in (1000, 1012)]
    said, why = under(sys.executable, HERE / "every_way.py", *seeds, env=env)
    assert f"HDF5 {version}" in said and "read " in why and SHORT in why
    for reason in ("few values", "no boxes", "chunk cache", "fewer than two whole chunks"):
        assert reason in why, reason


def built(name, folder, library=None):
    """A C program of this folder with Debian's HDF5, or with that of a wheel."""
    there = [library, f"-Wl,-rpath,{library.parent}", "-Wl,--allow-shlib-undefined"] if library else [
        f"-L{hdf5_dir()}", "-lhdf5"]
    run("cc", "-O1", "-o", folder / name, HERE / f"{name}.c", "-I/usr/include/hdf5/serial", *there, "-lpthread")
    return folder / name


def wheels(package):
    """The HDF5 library of a wheel."""
    (site,) = (ROOT / ".env/lib").glob("python3*/site-packages")
    (library,) = (site / f"{package}.libs").glob("libhdf5-*")
    return library


def test_threads_of_one_program(tmp_path):
    said, why = under(built("shared", tmp_path), tmp_path / "a.h5")
    assert said == "shared: 1, wrong: 0\n" and why.count(f"read 40 times {SHORT}") == 4, (said, why)


def test_a_c_program_does_what_it_did(tmp_path):
    """Offsets, other extents, transforms, conversions, steps, read-only files, edges without filters, mistakes."""
    program = built("ways", tmp_path)
    plain = run(program, tmp_path / "a.h5")
    said, why = under(program, tmp_path / "b.h5")
    assert said == plain and plain.count("failed") == 3, (said, plain)
    # Both spaces at once, memory of other extents, and a line: these are boxes.
    assert re.search(rf"read 4 times {SHORT}", why) and re.search(rf"write 1 times {SHORT}", why), why
    for reason in ("transfer list", "no boxes", "not one of NumPy's numbers", "reading only", "have no filter"):
        assert reason in why, (reason, why)


WRITE = """
import h5py, sys
import numpy as np
from samples import sample
x = sample(np.float32, (40, 130, 170), noise=0.1)
with h5py.File(sys.argv[1], "w", rdcc_nbytes=0) as f:
    for name, words in (("lossy", 11002), ("exact", 90000), ("lorenzo", 211003)):
        d = f.create_dataset(name, x.shape, "f4", chunks=(10, 64, 64), compression=443, compression_opts=(words,))
        d[...] = x
        d[5:25, :128, 3:] = x[5:25, :128, 3:] + 1
"""


def frames(path):
    with h5py.File(path) as f:
        return {(name, at): f[name].id.read_direct_chunk(at) for name in f for at in
                np.ndindex(4, 3, 3) for at in [tuple(k * c for k, c in zip(at, (10, 64, 64)))]}


def test_chunks_are_those_of_the_filter(tmp_path):
    env = clean(PYTHONPATH=str(HERE))
    run(sys.executable, "-c", WRITE, tmp_path / "a.h5", env=env)
    _, why = under(sys.executable, "-c", WRITE, tmp_path / "b.h5", env=env)
    assert why.count(f"write 2 times {SHORT}") == 3, why
    assert frames(tmp_path / "a.h5") == frames(tmp_path / "b.h5")


def test_h5repack_packs_and_unpacks(tmp_path):
    with h5py.File(tmp_path / "plain.h5", "w") as f:
        f.create_dataset("x", data=sample(np.float32, (40, 256, 256)), chunks=(4, 256, 256))
        f["small"] = np.arange(5)
    _, packed = under("h5repack", "-f", "x:UD=443,0,1,11002", tmp_path / "plain.h5", tmp_path / "small.h5")
    _, unpacked = under("h5repack", "-f", "x:NONE", tmp_path / "small.h5", tmp_path / "again.h5")
    assert f"write 1 times {SHORT}" in packed and f"read 1 times {SHORT}" in unpacked
    assert f"read 1 times {SHORT}" in packed and "it is not stored in chunks" in packed
    assert f"write 1 times {SHORT}" in unpacked
    with h5py.File(tmp_path / "plain.h5") as f, h5py.File(tmp_path / "again.h5") as g:
        assert 0 < np.abs(f["x"][...] - g["x"][...]).max() <= 1e-2 and (g["small"][...] == np.arange(5)).all()


NETCDF = """
import ctypes, netCDF4, sys
import numpy as np
from samples import sample
from wheel import loaded, u32
x = sample(np.float32, (40, 256, 256))
with netCDF4.Dataset(sys.argv[1], "w") as d:
    for name, n in zip("tyx", x.shape):
        d.createDimension(name, n)
    v = d.createVariable("v", "f4", tuple("tyx"), chunksizes=(4, 256, 256))
    lib = loaded("netcdf4.libs/libnetcdf")
    assert lib.nc_def_var_filter(d._grpid, v._varid, 443, ctypes.c_size_t(1), u32([11002])) == 0
    v[:] = x
with netCDF4.Dataset(sys.argv[1]) as d:
    assert 0 < np.abs(d["v"][:] - x).max() <= 1e-2
    y = d["v"][:].data
import h5py
assert h5py.version.hdf5_version != netCDF4.__hdf5libversion__
with h5py.File(sys.argv[1]) as f:
    assert (f["v"][...] == y).all()
"""


def test_netcdf_and_h5py_in_one_process_each_with_its_hdf5(tmp_path):
    _, why = under(sys.executable, "-c", NETCDF, tmp_path / "a.nc", env=clean(PYTHONPATH=str(HERE)))
    assert f"write 1 times {SHORT}" in why and f"read 3 times {SHORT}" in why, why


def test_a_damaged_chunk_gives_the_error_that_it_gives_natively(tmp_path):
    run(sys.executable, "-c", WRITE, tmp_path / "a.h5", env=clean(PYTHONPATH=str(HERE)))
    with h5py.File(tmp_path / "a.h5", "a") as f:
        mask, frame = f["exact"].id.read_direct_chunk((10, 64, 64))
        f["exact"].id.write_direct_chunk((10, 64, 64), frame[:-9] + b"x" + frame[-8:], mask)
    code = "import h5py, sys\ntry:\n    h5py.File(sys.argv[1])['exact'][...]\nexcept OSError as e:\n    print(e)"
    plain = run(sys.executable, "-c", code, tmp_path / "a.h5")
    said, why = under(sys.executable, "-c", code, tmp_path / "a.h5")
    assert said == plain and "checksum" in plain and "cannot be read" in why, (plain, said, why)


@pytest.mark.parametrize("package", ["tables", "h5py", "netcdf4"])
def test_calls_for_several_datasets_and_those_that_are_not_waited_for(package, tmp_path):
    """With HDF5 1.14.6, 2.0.0 and 2.2.0."""
    made = built("several", tmp_path, wheels(package))
    env = clean(HDF5_DISABLE_VERSION_CHECK="2")  # of the headers
    plain = run(made, tmp_path / "a.h5", env=env)
    said, why = under(made, tmp_path / "b.h5", env=env)
    assert said == plain and plain.count("failed") == 1, (said, plain)
    assert plain.count("as written") == 4 and plain.count("right") == 2 and "a space of another kind" in why
    assert "open: 1, references: 1" in plain
    ways = re.findall(rf"/(\w+): (read|write) (\d) times {SHORT}", why)
    assert [" ".join(w) for w in ways] == ["first read 5", "first write 4", "last read 5", "last write 3"], why
    assert why.count("plain: read 4 times by HDF5") == 1, why



FULL = """
import ctypes, errno, h5py, os, sys
from samples import sample
f = h5py.File(sys.argv[1], "w", rdcc_nbytes=0)
more = {"compression": 443, "compression_opts": (90000,)} if sys.argv[2] == "filtered" else {}
d = f.create_dataset("x", (64, 256, 256), "f4", chunks=(4, 256, 256), **more)
ctypes.CDLL(None).fail_write(5, errno.ENOSPC)
try:
    d[...] = sample(shape=d.shape, noise=1)
except OSError as e:
    print(e.errno, e, flush=True)
os._exit(0)  # HDF5 cannot write what is left
"""


@pytest.mark.parametrize("kind", ["filtered", "plain"])
def test_a_full_file_system_is_told_as_hdf5_tells_it(kind, tmp_path, faults):
    command = [sys.executable, "-c", FULL, tmp_path / "a.h5", kind]
    env = clean(PYTHONPATH=str(HERE), LD_PRELOAD=faults)
    told = run(H5Z_GPU, "run", "--", *command, env=env)
    assert told.startswith("28 [Errno 28] ") and "hdf5 cannot write the chunk at" in told.lower(), told
    plain = run(*command, env=env)
    assert plain.startswith("28 [Errno 28] Can't synchronously write data"), plain


def test_a_dataset_of_another_connector_is_left_to_it(tmp_path):
    env = clean(PYTHONPATH=str(HERE), HDF5_VOL_CONNECTOR="pass_through under_vol=0;under_info={}")
    _, why = under(sys.executable, "-c", WRITE, tmp_path / "a.h5", env=env)
    assert why.count("another connector's dataset") == 3 and SHORT not in why, why
    run(sys.executable, "-c", WRITE, tmp_path / "b.h5", env=clean(PYTHONPATH=str(HERE)))
    assert frames(tmp_path / "a.h5") == frames(tmp_path / "b.h5")


def test_what_is_missing_is_said(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    for program, status, why in (("no-such-program", 127, "No such file"), (folder, 126, "Permission denied")):
        ended = subprocess.run([H5Z_GPU, "run", "--", program], env=clean(), capture_output=True, text=True)
        assert (ended.returncode, why in ended.stderr) == (status, True), ended
    gone = run(H5Z_GPU, "run", "--door", "vol", "--", "true", ok=False)
    assert "no longer there" in gone and "h5z_gpu.everywhere" in gone, gone
    nowhere = clean(H5Z_GPU_PLUGIN_PATH=str(tmp_path))
    assert "H5Z_GPU_PLUGIN_PATH" in run(H5Z_GPU, "run", "--", "true", env=nowhere, ok=False)
    told = run(H5Z_GPU, "run", "--", "env", env={"PATH": clean()["PATH"], "LD_PRELOAD": ""})
    assert f"LD_PRELOAD={BUILT}/preload/libh5zgpu_preload.so" in told.splitlines()
    # As `h5z-gpu env` says: what HDF5 searches without the variable is searched still.
    (line,) = [line for line in told.splitlines() if line.startswith("HDF5_PLUGIN_PATH=")]
    assert run(H5Z_GPU, "env", env={"PATH": clean()["PATH"]}).strip() == f"export {line}"


def test_filters_that_netcdf4_brings_are_there(tmp_path):
    """It names its folder of plugins itself only where nobody has set the variable."""
    code = "import netCDF4, sys\nwith netCDF4.Dataset(sys.argv[1], 'w') as d: print(d.has_zstd_filter())"
    for python in sys.executable, "python":
        env = clean(PATH=f"{Path(sys.executable).parent}:{clean()['PATH']}")
        env.pop("HDF5_PLUGIN_PATH", None)
        assert run(python, "-c", code, tmp_path / "a.nc", env=env) == "True\n"
        assert run(H5Z_GPU, "run", "--", python, "-c", code, tmp_path / "a.nc", env=env) == "True\n"


def test_doctor_warns_of_a_library_before_every_program(tmp_path):
    def told(path):
        return run(H5Z_GPU, "doctor", "--hdf5", wheels("h5py"), env=clean(LD_PRELOAD=str(path)), ok=None)

    gone = told(tmp_path / "libh5zgpu_preload.so")
    assert "LD_PRELOAD names" in gone and "which is not there" in gone, gone
    there = told(BUILT / "preload/libh5zgpu_preload.so")
    assert "for every program" in there and "which is not there" not in there, there


FIRST = """
import h5z_gpu.everywhere
import h5py, netCDF4, sys
with h5py.File(sys.argv[1], rdcc_nbytes=0) as f:
    x = f["lossy"][...]
with netCDF4.Dataset(sys.argv[1]) as d:
    assert (d["lossy"][:] == x).all()
import h5z_gpu
assert (h5z_gpu.load(sys.argv[1])["lossy"] == x).all()
print(abs(x).sum())
"""


DEFLATED = """
import h5py, sys
import numpy as np
from samples import sample
x = sample(np.float64, (40, 130, 170))
with h5py.File(sys.argv[1], "w") as f:
    def new(name, a, **more):
        f.create_dataset(name, data=a, chunks=(10, 64, 64)[:a.ndim], **more)
    new("deep/er/plain", x, compression="gzip")
    for order in "<>":
        new("all" + order, x.astype(order + "f4"), compression="gzip", shuffle=True, fletcher32=True)
    new("axis", x[:, 0, 0], compression="gzip")
    new("whole", x.astype("i4"), compression="gzip", shuffle=True)
    new("other", x, compression="lzf")
    new("scaled", x, compression="gzip", scaleoffset=3)
    new("none", x)
    f["piece"] = x
print(h5py.version.hdf5_version)
"""


@pytest.mark.parametrize("version", OLDER)
def test_deflate_becomes_this_filter(version, tmp_path):
    """Of floating-point numbers in two axes or more, and of nothing else."""
    env = clean(PYTHONPATH=f"{HERE}:{ROOT / '.env/older' / OLDER[version]}" if OLDER[version] else str(HERE))
    command = sys.executable, "-c", DEFLATED
    natively = run(*command, tmp_path / "a.h5", env=env)
    assert natively.startswith(version)
    assert natively == run(H5Z_GPU, "run", "--", *command, tmp_path / "b.h5", env=env)
    assert natively == run(H5Z_GPU, "run", "--deflate", "511003", "--", *command, tmp_path / "c.h5", env=env)
    # Where HDF5 does not find the filter.
    lost = env | {"LD_PRELOAD": str(BUILT / "preload/libh5zgpu_preload.so"), "H5Z_GPU_DEFLATE": "511003",
                  "HDF5_PLUGIN_PATH": str(tmp_path)}
    assert natively == run(*command, tmp_path / "d.h5", env=lost)
    replaced = "deep/er/plain", "all<", "all>"
    with h5py.File(tmp_path / "a.h5") as f, h5py.File(tmp_path / "c.h5") as g:
        for name in ("axis", "whole", "other", "scaled", "none", "piece", *replaced):
            its = {p: [x[0] for x in filters(tmp_path / f"{p}.h5", name)] for p in "abcd"}
            assert its["b"] == its["d"] == its["a"], (name, its)
            assert its["c"] == ([443] if name in replaced else its["a"]), (name, its)
            error = np.abs(f[name][...].astype("f8") - g[name][...]).max()
            assert 0 < error <= 1e-3 if name in replaced else error == 0, (name, error)
            assert f[name].dtype == g[name].dtype


def test_deflate_becomes_no_number_that_means_nothing():
    said = run(H5Z_GPU, "run", "--deflate", "5", "--", "true", ok=False)
    assert "the number 5 is no [C]MDDEE" in said


def test_everywhere_in_one_process(tmp_path):
    run(sys.executable, "-c", WRITE, tmp_path / "a.h5", env=clean(PYTHONPATH=str(HERE)))
    said = use(FIRST, tmp_path / "a.h5", H5Z_GPU_EXPLAIN="1")
    assert f"/lossy: read 2 times {SHORT}" in said, said
    (tmp_path / "script.py").write_text(FIRST.replace("import h5z_gpu.everywhere\n", ""))
    env = clean(PYTHONPATH=f"{ROOT}/plugin/python", H5Z_GPU_PLUGIN_PATH=str(PLUGIN.parent), H5Z_GPU_EXPLAIN="1")
    for how in [tmp_path / "script.py"], ["-m", "script"]:
        by = run(sys.executable, "-m", "h5z_gpu.everywhere", *how, tmp_path / "a.h5", env=env, cwd=tmp_path)
        assert by == said


def test_everywhere_too_late():
    said = use("import h5py\ntry:\n    import h5z_gpu.everywhere\nexcept ImportError as e:\n    print(e)")
    assert "libhdf5" in said and "before h5py" in said


def test_names_are_explained_on_one_line(tmp_path):
    """Of a file and a dataset whose names hold what a terminal obeys, and a line that looks like one of ours."""
    name = "a\x1b[2J\nh5z-gpu: b:/c: read 9 times by many chunks at a time, 9 bytes\t\u202eé\x85"
    path = str(tmp_path / "f\x1b]0;title\x07\n.h5")
    with h5py.File(path, "w") as f:
        f.create_dataset(name, data=sample(np.float32, (40, 130)), chunks=(10, 64), compression=443,
                         compression_opts=(90000,))
    read = "import h5py, sys; h5py.File(sys.argv[1], rdcc_nbytes=0)[sys.argv[2]][...]"
    said, why = under(sys.executable, "-c", read, path, name)
    line = (r"f\x1b]0;title\x07\n.h5:/a\x1b[2J\nh5z-gpu: b:/c: read 9 times by many chunks at a time, 9 bytes\t"
            r"\u202eé\x85: read 1 times by many chunks at a time, 20800 bytes")
    assert said == "" and why == f"h5z-gpu: {tmp_path}/{line}\n", (said, why)


def test_a_folder_whose_name_is_no_text(tmp_path):
    """`path`, `env` and `run` of a copy that lies in a folder whose name is no UTF-8."""
    folder = os.fsencode(tmp_path) + b"/caf\xe9"
    for part in (b"plugin", b"bin", b"preload"):
        shutil.copytree(os.fsencode(BUILT) + b"/" + part, folder + b"/" + part)
    env = clean(HDF5_PLUGIN_PATH="")

    def said(*command):
        return subprocess.run(command, env=env, capture_output=True, check=True, timeout=60).stdout

    program = folder + b"/bin/h5z-gpu"
    assert said(program, "path") == folder + b"/plugin\n"
    line = said(program, "env")
    found = said("sh", "-c", line.rstrip(b"\n") + b'; printf %s "$HDF5_PLUGIN_PATH"')
    assert found.split(b":")[0] == folder + b"/plugin", (line, found)
    write = ("import h5py, numpy as np, sys; f = h5py.File(sys.argv[1], 'w', rdcc_nbytes=0)\n"
             "f.create_dataset('v', data=np.ones((40, 130)), chunks=(10, 64), compression=443)")
    ended = subprocess.run([program, "run", "--explain", "--", sys.executable, "-c", write, tmp_path / "a.h5"], env=env,
                           capture_output=True, text=True, errors="replace", timeout=60)
    assert ended.returncode == 0 and f"write 1 times {SHORT}" in ended.stderr, ended
    # A colon cannot be in it, and the sentence says so.
    shutil.move(folder, folder + b":")
    ended = subprocess.run([folder + b":/bin/h5z-gpu", "env"], env=env, capture_output=True, timeout=60)
    assert ended.returncode == 1 and b"a path with a ':' cannot stand in HDF5_PLUGIN_PATH" in ended.stderr, ended
