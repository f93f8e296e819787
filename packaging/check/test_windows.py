# SPDX-License-Identifier: MIT OR Apache-2.0
"""The plugin for Windows, under Wine: in the HDF5 of h5py's own wheel for Windows, called by a C program, and the wheel
in CPython for Windows, beside h5py, netCDF4, xarray and Zarr."""
import json
import os
import re
import shutil
import subprocess
import zipfile

import h5py
import numpy as np
import pytest
from conftest import LICENCES, ROOT, ROUND_TRIP, VERSION, licences_of, run, tool

# Each codec, with a bound and without.
WORDS = "11002", "211003", "511002", "111002", "90000", "390000", "590000"
COMPILER = "x86_64-w64-mingw32-gcc"
# What python.exe is.
PYTHON = """#include <wchar.h>
__declspec(dllimport) int Py_Main(int, wchar_t **);
int wmain(int count, wchar_t **argument) { return Py_Main(count, argument); }
"""


@pytest.fixture(scope="module")
def wine(tmp_path_factory):
    """A folder with packages for Windows, and the environment of programs that Wine runs."""
    folder = tmp_path_factory.mktemp("windows")
    run("python3", "-m", "pip", "install", "--quiet", "--no-deps", "--only-binary=:all:", "--platform=win_amd64",
        "--python-version=3.11", "--implementation=cp", "--target", folder / "packages",
        "-r", ROOT / "packaging/check/requirements-windows.txt")
    env = {**os.environ, "WINEPREFIX": str(folder / "wine"), "WINEDEBUG": "-all", "WINEARCH": "win64"}
    subprocess.run(["wine", "wineboot", "-i"], env=env, capture_output=True, check=True)
    run(COMPILER, "-shared", "-O2", "-s", "-o", folder / "wine/drive_c/windows/system32/bcryptprimitives.dll",
        ROOT / "tests/wine/bcryptprimitives.c", "-ladvapi32")
    return folder, env


@pytest.fixture(scope="module")
def windows(wine):
    """Runs the C program under Wine with arguments, in a folder."""
    run("make", "-s", "windows")
    folder, env = wine
    run(COMPILER, "-O1", "-Wall", "-Werror", "-o", folder / "windows.exe", ROOT / "packaging/check/windows.c")

    def go(*arguments):
        command = ["wine", "windows.exe", wine_path(folder / "packages/h5py/hdf5.dll"), *map(str, arguments)]
        there = env | {"HDF5_PLUGIN_PATH": wine_path(ROOT / "target/windows/plugin")}
        done = subprocess.run(command, cwd=folder, env=there, capture_output=True, text=True)
        assert done.stdout.strip() == "done", (done.stdout[-500:], done.stderr[-2000:])

    go.folder = folder
    return go


@pytest.fixture(scope="module")
def wheel():
    run("make", "-s", "wheel-windows")
    (path,) = (ROOT / "target/wheel-windows").glob("*.whl")
    return path


@pytest.fixture(scope="module")
def python(wine, wheel):
    """CPython for Windows with the wheel installed: runs it under Wine in a new folder."""
    folder, env = wine
    home = folder / "python"
    home.mkdir()
    for path in (folder / "packages/deploy_libs").iterdir():
        modules = home if path.name.lower().startswith(("python", "vcruntime")) else home / "DLLs"
        modules.mkdir(exist_ok=True)
        shutil.copy(path, modules)
    (home / "python.c").write_text(PYTHON)
    run(COMPILER, "-municode", "-O1", "-o", home / "python.exe", home / "python.c", home / "python311.dll")
    run(ROOT / "tests/need.sh", "python3.11=python3.11")
    library = run("python3.11", "-c", "import sysconfig; print(sysconfig.get_path('stdlib'))").strip()
    shutil.copytree(library, home / "Lib", ignore=shutil.ignore_patterns("site-packages", "test", "lib-dynload",
                                                                         "config-*", "__pycache__"))
    run("python3", "-m", "pip", "install", "--quiet", "--upgrade", "--no-deps", "--only-binary=:all:",
        "--platform=win_amd64", "--python-version=3.11", "--target", folder / "packages", wheel)
    (home / "Lib/site-packages").symlink_to(folder / "packages")
    leads = "HDF5_PLUGIN_PATH", "H5Z_GPU_PLUGIN_PATH", "PYTHONPATH"
    env = {name: value for name, value in env.items() if name not in leads}

    def go(cwd, *arguments):
        done = subprocess.run(["wine", home / "python.exe", *map(str, arguments)], cwd=cwd, env=env, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert done.returncode == 0, done.stdout[-3000:]
        return done.stdout

    return go


def wine_path(path):
    return "Z:" + str(path).replace("/", "\\")


@pytest.mark.parametrize("dtype, name", [("f4", "NATIVE_FLOAT"), ("f8", "NATIVE_DOUBLE"), ("i2", "NATIVE_SHORT"),
                                         ("u4", "NATIVE_UINT")])
def test_frames_are_those_of_linux_and_are_read(windows, dtype, name):
    noise = np.random.default_rng(0).normal(size=(70, 90, 110))
    x = (1000 + 10 * np.cumsum(noise, -1)).astype(dtype)
    x.tofile(windows.folder / "raw")
    windows("make", "w.h5", "raw", name, "70,90,110", "16,40,50", *WORDS)
    with h5py.File(windows.folder / "l.h5", "w") as f:
        for k, words in enumerate(WORDS):
            f.create_dataset(str(k), data=x, chunks=(16, 40, 50), compression=443, compression_opts=(int(words),))
    windows("dump", "l.h5", "out", *map(str, range(len(WORDS))))
    values = (windows.folder / "out").read_bytes()
    with h5py.File(windows.folder / "w.h5") as a, h5py.File(windows.folder / "l.h5") as b:
        for name in b:
            ours, theirs = a[name].id, b[name].id
            assert ours.get_num_chunks() == theirs.get_num_chunks() == 45
            for k in range(45):
                at = theirs.get_chunk_info(k).chunk_offset
                assert ours.read_direct_chunk(at) == theirs.read_direct_chunk(at), (name, at)
        assert values == b"".join(b[str(k)][...].tobytes() for k in range(len(WORDS)))


def test_files_of_this_version_are_read(windows):
    path = ROOT / "tests/files/0.1.0/all.h5"
    names = []
    with h5py.File(path) as f:
        f.visititems(lambda name, d: names.append(name) if getattr(d, "chunks", None) else None)
        names = [name for name in names if f[name].dtype.kind in "fiu"]
        want = b"".join(f[name][...].tobytes() for name in names)
    assert len(names) > 10, json.dumps(names)
    windows("dump", wine_path(path), "out", *names)
    assert (windows.folder / "out").read_bytes() == want


def test_the_wheel_is_whole_and_the_checkers_find_nothing(wheel):
    assert wheel.name == f"h5z_gpu-{VERSION}-py3-none-win_amd64.whl"
    assert "PASSED" in tool("twine", "check", "--strict", wheel)
    assert tool("check-wheel-contents", wheel).strip().endswith("OK")
    assert wheel.stat().st_size <= 6_000_000 and licences_of(wheel) == LICENCES
    with zipfile.ZipFile(wheel) as z:
        assert [n for n in z.namelist() if "/plugin/" in n] == ["h5z_gpu/plugin/h5zgpu.dll"], "alone in its folder"
        assert [n for n in z.namelist() if "/bin/" in n] == ["h5z_gpu/bin/h5z-gpu.exe"]
        assert not [n for n in z.namelist() if n.startswith("h5z_gpu/preload/")]


def test_python_writes_the_same_bytes(python, tmp_path):
    (tmp_path / "trip.py").write_text(ROUND_TRIP)
    there = python(tmp_path, "trip.py", "there.h5").split()
    run("make", "-s", "wheel-here")
    (ours,) = (ROOT / "target/wheel-here").glob("*.whl")
    run("python3", "-m", "pip", "install", "--quiet", "--no-deps", "--target", tmp_path / "here", ours)
    here = tool("python", tmp_path / "trip.py", tmp_path / "here.h5", PYTHONPATH=tmp_path / "here",
                HDF5_PLUGIN_PATH=None, H5Z_GPU_PLUGIN_PATH=None).split()
    assert there[0] == "AMD64" and there[2] == here[2]


def test_a_user_works_with_the_wheel(python, tmp_path):
    said = python(tmp_path, "-W", "ignore", wine_path(ROOT / "packaging/check/windows_user.py"))
    steps = ["by_hdf5", "by_netcdf", "by_xarray", "by_zarr", "by_commands", "by_doctor"]
    assert re.findall(r"^by_\w+$", said, re.M) == steps, said
