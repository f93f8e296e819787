# SPDX-License-Identifier: MIT OR Apache-2.0
"""The plugin for Windows, under Wine, in the HDF5 of h5py's own wheel for Windows (1.14.2: newer ones ask Debian 12's
Wine for a function that it lacks). There is no Python for Windows to be had here, so a C program calls HDF5."""
import json
import os
import subprocess
import zipfile

import h5py
import numpy as np
import pytest
from conftest import ROOT, run

H5PY = "h5py==3.10.0"
# Each codec, with a bound and without.
WORDS = "11002", "211003", "511002", "111002", "90000", "390000", "590000"


@pytest.fixture(scope="module")
def windows(tmp_path_factory):
    """Runs the program under Wine with arguments, in a folder."""
    run("make", "-s", "windows")
    folder = tmp_path_factory.mktemp("windows")
    run("python3", "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", "--platform", "win_amd64",
        "--python-version", "311", H5PY, "-d", folder)
    (wheel,) = folder.glob("h5py-*.whl")
    with zipfile.ZipFile(wheel) as z:
        z.extractall(folder)
    env = {**os.environ, "WINEPREFIX": str(folder / "wine"), "WINEDEBUG": "-all", "WINEARCH": "win64",
           "HDF5_PLUGIN_PATH": wine_path(ROOT / "target/windows")}
    subprocess.run(["wine", "wineboot", "-i"], env=env, capture_output=True, check=True)
    compiler = "x86_64-w64-mingw32-gcc"
    run(compiler, "-O1", "-Wall", "-Werror", "-o", folder / "windows.exe", ROOT / "packaging/check/windows.c")
    run(compiler, "-shared", "-O2", "-s", "-o", folder / "wine/drive_c/windows/system32/bcryptprimitives.dll",
        ROOT / "tests/wine/bcryptprimitives.c", "-ladvapi32")

    def go(*arguments):
        command = ["wine", "windows.exe", wine_path(folder / "h5py/hdf5.dll"), *map(str, arguments)]
        done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
        assert done.stdout.strip() == "done", (done.stdout[-500:], done.stderr[-2000:])

    go.folder = folder
    return go


def wine_path(path):
    return "Z:" + str(path).replace("/", "\\")


@pytest.mark.parametrize("dtype, name", [("f4", "NATIVE_FLOAT"), ("f8", "NATIVE_DOUBLE"), ("i2", "NATIVE_SHORT"),
                                         ("u4", "NATIVE_UINT")])  # fmt: skip
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
