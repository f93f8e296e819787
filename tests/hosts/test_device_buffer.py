# SPDX-License-Identifier: MIT OR Apache-2.0
"""A filter that is handed chunks in a GPU's memory, and a stand-in for the HDF5 that hands them over
(tests/gpu/device_buffer.c), on a machine without a GPU: the driver is a stand-in, the kernels are emulated."""
import shutil
import sys

import conftest
import device
import pytest
from conftest import PLUGIN, ROOT

BEGIN = """
import h5py, numpy as np, sys
import device, h5z_gpu
from device_buffer import hand_over
from arrays import chunks_of
from h5z_gpu.library import lib
x = np.arange(24 * 40 * 60).reshape(24, 40, 60)
a = (np.sin(x * 0.001) + np.random.default_rng(1).normal(0, 0.01, x.shape)).astype("f4")
there, path = device.Array(a), sys.argv[1]
def dataset(f, name, how, dtype="f4"):
    return f.create_dataset(name, a.shape, dtype, chunks=(2, 40, 60), **how)
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder of the stand-in, as the bundle has it."""
    folder = tmp_path_factory.mktemp("bundle")
    for name in ("arrays.py", "device_buffer.py"):
        shutil.copy(ROOT / "tests/gpu" / name, folder)
    conftest.run("cc", "-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-pthread",
                 "-D_POSIX_C_SOURCE=200809L", "-o", folder / "libdevice_buffer.so", ROOT / "tests/gpu/device_buffer.c",
                 f"-I{ROOT}/plugin/include", f"-L{PLUGIN.parent}", "-l:libh5zgpu.so",
                 f"-Wl,-rpath,{PLUGIN.parent}")
    return folder


def run(built, code):
    env = device.environment()
    env["PYTHONPATH"] += f":{built}"
    code = BEGIN + code + "\nassert device.faults() == 0\nprint('all well')"
    said = conftest.run(sys.executable, "-c", code, built / "a.h5", env=conftest.clean(**env))
    assert said.endswith("all well\n"), said
    return said


def test_its_files_are_those_of_write_and_of_the_pipeline(built):
    run(built, """
for how in (h5z_gpu.Lossy(absolute=1e-3, codec="planes"), h5z_gpu.Lossy(absolute=1e-3, codec="lorenzo"),
            h5z_gpu.Lossless()):
    with h5py.File(path, "w") as f:
        h5z_gpu.write(dataset(f, "write", how), there)
        dataset(f, "pipeline", how)[...] = a
        want = chunks_of(f["write"])
        assert want == chunks_of(f["pipeline"]) and len(want) == 12
        for most, callers in ((0, 1), (0, 4), (0, 16), (5 * 2 * 40 * 60 * 4, 2), (1 << 40, 1)):
            before = lib.h5z_gpu_device_chunks(0)
            d = dataset(f, f"{most} {callers}", how)
            hand_over(d, there, most, callers)
            assert chunks_of(d) == want, (how, most, callers)
            assert lib.h5z_gpu_device_chunks(0) == before + 12, (how, most, callers)
            if how != h5z_gpu.Lossless():
                assert 0 < np.abs(d[...].astype("f8") - a).max() <= 1e-3
""")


def test_a_frame_that_is_not_taken_ends_the_call(built):
    said = run(built, """
from types import SimpleNamespace
with h5py.File(path, "w") as f:
    d = dataset(f, "d", h5z_gpu.Lossless())
    nowhere = SimpleNamespace(id=0, get_create_plist=d.id.get_create_plist)
    for most, callers in ((0, 4), (1 << 40, 1)):
        try:
            hand_over(SimpleNamespace(ndim=3, shape=d.shape, chunks=d.chunks, dtype=d.dtype, id=nowhere), there, most,
                      callers)
        except RuntimeError as e:
            print(e)
""")
    assert said.count("the callback answered -3") == 2 and "frame 1 of 12 was not taken" in said, said
