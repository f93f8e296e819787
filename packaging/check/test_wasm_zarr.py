# SPDX-License-Identifier: MIT OR Apache-2.0
"""The decoders as a codec of zarrita: Zarr 2 and 3 stores that the Python package has written."""
import shutil

import pytest
from conftest import ROOT, bare_python, run

WRITE = """
import hashlib

import h5z_gpu, h5z_gpu.zarr, numpy as np, zarr

field = np.cumsum(np.random.default_rng(1).standard_normal((40, 60, 50)), axis=1)
field[3, :5] = np.nan
for name, how, dtype in (("planes", h5z_gpu.Lossy(absolute=1e-3, codec="planes"), "f4"),
                         ("lorenzo", h5z_gpu.Lossy(absolute=1e-3, codec="lorenzo"), "f8"),
                         ("szx", h5z_gpu.Lossy(absolute=1e-3, codec="szx"), "f4"),
                         ("exact", h5z_gpu.Lossless(), "f8"), ("whole", h5z_gpu.Lossless(), "i2")):
    values = np.nan_to_num(field).astype(dtype) if dtype == "i2" else field.astype(dtype)
    said = dict(shape=values.shape, chunks=(16, 60, 25), dtype=values.dtype)
    three = zarr.create_array(f"{name}.v3", serializer=h5z_gpu.zarr.Serializer(how), compressors=None, **said)
    parts = zarr.create_array(f"{name}.shards", serializer=h5z_gpu.zarr.Serializer(how), compressors=None,
                              **(said | dict(shards=(32, 60, 50))))
    two = zarr.create_array(f"{name}.v2", zarr_format=2, compressors=h5z_gpu.zarr.Compressor(how), **said)
    for array in (three, parts, two):
        array[...] = values
        print(array.store_path.store.root.name, "x".join(map(str, values.shape)),
              hashlib.sha256(array[...].astype("<f8").tobytes()).hexdigest())
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    run(ROOT / "tests/need.sh", "node=nodejs", "npm=npm")
    run("make", "wasm")
    into = tmp_path_factory.mktemp("zarr")
    for path in ("target/wasm/h5z_gpu.wasm", "readers/wasm/h5z_gpu.mjs", "readers/wasm/zarrita.mjs"):
        shutil.copy(ROOT / path, into)
    run("npm", "install", "--silent", "--no-save", "zarrita@0.7.5", "@zarrita/storage@0.2.0", cwd=into)
    return into


@pytest.fixture(scope="module")
def written(folder):
    """The stores' names, and what zarr-python reads of each."""
    python = bare_python(folder / "python", "zarr==3.1.6", "numcodecs==0.16.6", "numpy==2.4.6")
    said = run(python, "-c", WRITE, cwd=folder, PYTHONPATH=ROOT / "plugin/python", HDF5_PLUGIN_PATH=None,
               H5Z_GPU_PLUGIN_PATH=ROOT / "target/plugin")
    return dict(line.split(" ", 1) for line in said.splitlines())


def test_zarrita_reads_what_zarr_python_reads(folder, written):
    got = run("node", "zarrita.mjs", *written, cwd=folder).splitlines()
    assert dict(zip(written, got)) == written and len(written) == 15


def test_a_damaged_chunk_is_refused_with_its_sentence(folder, written):
    shutil.copytree(folder / "planes.v3", folder / "damaged.v3")
    chunk = folder / "damaged.v3/c/0/0/0"
    damaged = bytearray(chunk.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    chunk.write_bytes(damaged)
    assert run("node", "zarrita.mjs", "damaged.v3", cwd=folder).startswith("refused h5z-gpu: ")
