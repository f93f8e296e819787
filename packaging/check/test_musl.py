# SPDX-License-Identifier: MIT OR Apache-2.0
"""The wheel for musl, Alpine Linux's C library: as a file, and used by CPython, NumPy and h5py for musl, beside the
plugin for this machine."""
import os
import re
import subprocess
import zipfile

import h5py
import pytest
from conftest import LICENCES, ROOT, ROUND_TRIP, VERSION, licences_of, run, tool

PACKAGES = "h5py==3.16.0", "numpy==2.4.6"
CLEAN = {"HDF5_PLUGIN_PATH": None, "H5Z_GPU_PLUGIN_PATH": None}
PLATFORM = "musllinux_1_2_x86_64"


@pytest.fixture(scope="module")
def wheel():
    run("make", "-s", "wheel-musl")
    (path,) = (ROOT / "target/wheel-musl").glob("*.whl")
    return path


@pytest.fixture(scope="module")
def python(wheel):
    """CPython for musl and the folder of its packages: what a user installs, and what pip takes for such a Python."""
    run(ROOT / "tests/need.sh", "musl-gcc=musl-tools", "/lib/ld-musl-x86_64.so.1=musl")
    folder = ROOT / "target/musl-python"
    if not (folder / "bin/python3").exists():
        run(ROOT / "packaging/check/musl_python.sh", folder)
    assert f"interpreter: {folder}/musl/" in run("readelf", "-lW", folder / "bin/python3")
    packages = folder / "packages"
    run("python3", "-m", "pip", "install", "--quiet", "--upgrade", "--target", packages, "--no-deps",
        "--only-binary=:all:", f"--platform={PLATFORM}", "--python-version=3.11", "--implementation=cp", *PACKAGES,
        wheel)

    def go(*arguments, **variables):
        return run(folder / "bin/python3", *arguments, **CLEAN | {"PYTHONPATH": str(packages)} | variables)

    go.packages = packages
    return go


def test_the_name_is_true_and_the_checkers_find_nothing(wheel, tmp_path):
    assert wheel.name == f"h5z_gpu-{VERSION}-py3-none-{PLATFORM}.whl"
    assert re.search(rf'"{PLATFORM}"', " ".join(tool("auditwheel", "show", wheel).split()))
    assert "PASSED" in tool("twine", "check", "--strict", wheel)
    assert tool("check-wheel-contents", wheel).strip().endswith("OK")
    assert wheel.stat().st_size <= 6_000_000 and licences_of(wheel) == LICENCES
    with zipfile.ZipFile(wheel) as z:
        names = [n for n in z.namelist() if n.endswith((".so", "bin/h5z-gpu"))]
        assert len(names) == 4
        for name in names:
            header = run("readelf", "-hdV", "-W", z.extract(name, tmp_path))
            needed = set(re.findall(r"NEEDED.*\[(.*)\]", header))
            assert needed == {"libc.musl-x86_64.so.1"} and "GLIBC" not in header, name
            assert "NODELETE" in header or name.endswith("h5z-gpu")


def test_the_same_bytes_are_written_as_with_glibc(python, tmp_path):
    there = python("-c", ROUND_TRIP, tmp_path / "musl.h5").split()
    run("make", "-s", "wheel-here")
    (ours,) = (ROOT / "target/wheel-here").glob("*.whl")
    run("python3", "-m", "pip", "install", "--quiet", "--no-deps", "--target", tmp_path / "here", ours)
    here = tool("python", "-c", ROUND_TRIP, tmp_path / "here.h5", **CLEAN, PYTHONPATH=tmp_path / "here").split()
    assert there[2] == here[2] and (there[0], here[0]) == ("x86_64", "x86_64")


# Each dataset's values by HDF5's own pipeline, and by the package's.
READ = """
import sys, h5z_gpu, h5py
with h5py.File(sys.argv[1]) as f:
    names = []
    f.visititems(lambda name, d: names.append(name) if getattr(d, "chunks", None) else None)
    for name in names:
        values = f[name][...]
        assert values.tobytes() == h5z_gpu.read(f[name]).tobytes(), name
        sys.stdout.write(f"{name} {values.tobytes().hex()}\\n")
"""


def test_files_of_this_version_are_read(python):
    path = ROOT / "tests/files/0.1.0/all.h5"
    got = dict(line.split(" ") for line in python("-c", READ, path).splitlines())
    h5py.h5pl.prepend(str(ROOT / "target/plugin").encode())
    with h5py.File(path) as f:
        assert len(got) > 25 and {name: f[name][...].tobytes().hex() for name in got} == got


def test_a_program_that_is_run_works_on_many_chunks(python, tmp_path):
    """`h5z-gpu run`, whose library musl's loader puts before the others."""
    write = ("import sys, h5py, numpy as np\n"
             "f = h5py.File(sys.argv[1], 'w')\n"
             "x = np.linspace(0, 9, 2**21, dtype='f4').reshape(512, 4096)\n"
             "f.create_dataset('v', data=x, chunks=(8, 4096), compression=443, compression_opts=(11003,))\n"
             "assert 0 < abs(f['v'][...] - x).max() <= 1e-3\n")
    program = python.packages / "h5z_gpu/bin/h5z-gpu"
    interpreter = ROOT / "target/musl-python/bin/python3"
    said = run(program, "run", "--explain", "--", interpreter, "-c", write, tmp_path / "a.h5",
               **CLEAN, PYTHONPATH=python.packages)
    assert re.search(r"(?m)^h5z-gpu", said), said
    assert "443" in run(program, "words", "abs", "1e-3") and os.path.getsize(tmp_path / "a.h5") < 2**22
    assert subprocess.run([program, "doctor"], capture_output=True, text=True).returncode in (0, 1)
