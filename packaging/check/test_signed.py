# SPDX-License-Identifier: MIT OR Apache-2.0
"""Signed plugins: HDF5 2.2, built to load no others, is the judge, and older libraries read with them as with any.

HDF5 is built from its sources in target/hdf5-signed, once: some minutes. No package has it in this way yet."""
import os
import subprocess
import sys

import pytest
from conftest import ROOT, run, tool

SOURCES = ROOT / ".env/headers/2.2/vendor/hdf5-metno-src/ext/hdf5"
BUILT = ROOT / "target/hdf5-signed"
OFF = "BUILD_TESTING", "BUILD_STATIC_LIBS", "HDF5_BUILD_TOOLS", "HDF5_BUILD_EXAMPLES", "HDF5_BUILD_HL_LIB", \
    "HDF5_ENABLE_ZLIB_SUPPORT", "HDF5_ENABLE_SZIP_SUPPORT"
# Asks a library whether the filter can be had, and says its version.
ASK = """
import ctypes, sys
h = ctypes.CDLL(sys.argv[1])
v = [ctypes.c_uint() for _ in range(3)]
h.H5get_libversion(*map(ctypes.byref, v))
h.H5Eset_auto2.argtypes = ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p
h.H5Eset_auto2(0, None, None)
print("%d.%d.%d" % tuple(n.value for n in v), h.H5Zfilter_avail(443))
"""
ROUND = """
import h5py, numpy as np, sys
x = np.cumsum(np.random.default_rng(1).normal(size=(64, 128))).reshape(64, 128).astype("f4")
with h5py.File(sys.argv[1], "w") as f:
    f.create_dataset("v", data=x, chunks=(32, 128), compression=443, compression_opts=(11003,))
with h5py.File(sys.argv[1]) as f:
    assert 0 < np.abs(f["v"][...].astype("f8") - x).max() <= 1e-3 and f["v"].id.get_storage_size() < x.nbytes / 2
print(h5py.version.hdf5_version)
"""


@pytest.fixture(scope="session")
def demanding():
    """The library that wants signatures."""
    run("make", "-s", ".env/headers/2.2")
    options = ["-DHDF5_REQUIRE_SIGNED_PLUGINS=ON", "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_C_FLAGS_RELEASE=-O0"]
    tool("cmake", "-S", SOURCES, "-B", BUILT, *options, *(f"-D{name}=OFF" for name in OFF))
    tool("cmake", "--build", BUILT, f"-j{os.cpu_count()}")
    return next(BUILT.glob("bin/libhdf5.so"))


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    """Two private keys, and a folder with the public one of the first: what such an HDF5 trusts."""
    folder = tmp_path_factory.mktemp("keys")
    for name in ("ours", "theirs"):
        run("openssl", "genrsa", "-out", folder / f"{name}.pem", "2048")
    (folder / "trusted").mkdir()
    run("openssl", "pkey", "-in", folder / "ours.pem", "-pubout", "-out", folder / "trusted/ours.pem")
    return folder


@pytest.fixture
def plugin(tmp_path):
    folder = tmp_path / "plugin"
    folder.mkdir()
    (folder / "libh5zgpu.so").write_bytes((ROOT / "target/plugin/libh5zgpu.so").read_bytes())
    return folder / "libh5zgpu.so"


def sign(key, plugin):
    run(ROOT / "packaging/sign.sh", key, plugin)


def ask(library, plugin, keys):
    return run(sys.executable, "-c", ASK, library, HDF5_PLUGIN_PATH=str(plugin.parent),
               HDF5_PLUGIN_KEYSTORE=str(keys / "trusted")).split()


def test_signed_is_loaded_unsigned_changed_and_strangers_are_not(demanding, plugin, keys):
    bare = plugin.read_bytes()
    assert ask(demanding, plugin, keys) == ["2.2.0", "0"]
    sign(keys / "ours.pem", plugin)
    assert ask(demanding, plugin, keys) == ["2.2.0", "1"]
    signed = bytearray(plugin.read_bytes())
    assert signed[:len(bare)] == bare and len(signed) == len(bare) + 256 + 14
    signed[signed.index(b"h5z-gpu")] ^= 1
    plugin.write_bytes(signed)
    assert ask(demanding, plugin, keys) == ["2.2.0", "0"]
    plugin.write_bytes(bare)
    sign(keys / "theirs.pem", plugin)
    assert ask(demanding, plugin, keys) == ["2.2.0", "0"]


def test_libraries_that_know_nothing_of_signatures_write_and_read_with_it(plugin, keys, tmp_path):
    sign(keys / "ours.pem", plugin)
    run("make", "-s", ".env/older/hdf5-1.12", ".env/older/hdf5-1.14")
    older = [(ROOT / ".env/bin/python", ROOT / f".env/older/hdf5-{v}") for v in ("1.12", "1.14")]
    versions = [run(python, "-c", ROUND, tmp_path / "a.h5", HDF5_PLUGIN_PATH=plugin.parent, PYTHONPATH=path).strip()
                for python, path in [(sys.executable, None), *older]]
    assert len(set(versions)) == 3 and {v[:4] for v in versions} >= {"1.12", "1.14"}, versions
    said = run("h5dump", "-d", "v", "-s", "0,0", "-c", "1,4", tmp_path / "a.h5", HDF5_PLUGIN_PATH=str(plugin.parent))
    assert "DATA {" in said
    said = run(ROOT / "target/bin/h5z-gpu", "doctor", HDF5_PLUGIN_PATH=str(plugin.parent))
    assert f"loads {plugin}" in said and said.endswith("nothing is wrong\n"), said


def test_signing_twice_and_with_a_key_that_others_read_are_refused(plugin, keys):
    sign(keys / "ours.pem", plugin)
    for how, key in (("signed already", keys / "ours.pem"), ("chmod 600", keys / "open.pem")):
        (keys / "open.pem").write_bytes((keys / "theirs.pem").read_bytes())
        (keys / "open.pem").chmod(0o644)
        before = plugin.read_bytes()
        r = subprocess.run([ROOT / "packaging/sign.sh", key, plugin], text=True, capture_output=True)
        assert r.returncode == 1 and how in r.stderr and plugin.read_bytes() == before
