# SPDX-License-Identifier: MIT OR Apache-2.0
"""The plugin as C sees it, and a writer that has hardly any memory left."""
import resource
import subprocess

import h5py
import numpy as np
import pytest
from conftest import HERE, PLUGIN, ROOT, app, clean, hdf5_dir, run
from programs import filters


def test_the_record_and_every_function_of_the_header(tmp_path):
    build = ("cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-D_POSIX_C_SOURCE=200809L", "-o", tmp_path / "c_api")
    here = (ROOT / "plugin/tests/c_api.c", PLUGIN, f"-I{ROOT}/plugin/include", "-I/usr/include/hdf5/serial")
    run(*build, *here, f"-L{hdf5_dir()}", "-lhdf5", "-lm", "-lpthread", f"-Wl,-rpath,{PLUGIN.parent}")
    text = run(tmp_path / "c_api")
    assert text.endswith(" all good\n"), text


def test_the_example_of_whole_arrays(tmp_path):
    build = ("cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-D_POSIX_C_SOURCE=200809L", "-o", tmp_path / "array")
    here = (ROOT / "examples/hdf5/array.c", PLUGIN, f"-I{ROOT}/plugin/include", "-I/usr/include/hdf5/serial")
    run(*build, *here, f"-L{hdf5_dir()}", "-lhdf5", "-lm", f"-Wl,-rpath,{PLUGIN.parent}")
    assert run(tmp_path / "array", tmp_path / "a.h5").startswith("64 chunks, largest error 0.0")
    with h5py.File(tmp_path / "a.h5") as f:
        z, y, x = np.indices((64, 256, 256), sparse=True)
        for at in range(0, 256, 64):
            v = (np.sin(0.02 * x) * np.cos(0.03 * y) + 0.01 * (z + at)).astype("f4")
            assert 0 < np.abs(f["v"][at : at + 64] - v).max() <= 0.01
    assert run(tmp_path / "array", tmp_path / "no/such/a.h5", ok=False)


def test_the_callers_floating_point_state_changes_nothing(tmp_path):
    build = ("cc", "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-o", tmp_path / "float_state")
    here = (HERE / "float_state.c", PLUGIN, f"-I{ROOT}/plugin/include", "-I/usr/include/hdf5/serial")
    run(*build, *here, f"-L{hdf5_dir()}", "-lhdf5", "-lm", f"-Wl,-rpath,{PLUGIN.parent}")
    assert run(tmp_path / "float_state", env=clean(H5Z_GPU_THREADS="4")) == "all good\n"


@pytest.mark.parametrize("spare", [20, 60, 90, 140])
def test_without_memory_a_chunk_is_stored_and_none_is_lost(spare, tmp_path):
    """A chunk of 64 MiB where the process may take but `spare` MiB more than the chunk and its copies in HDF5."""
    n = 16 << 20
    x = (100 * np.sin(np.arange(n) / 50)).astype("f4")
    x.tofile(tmp_path / "raw")
    limit = (spare + 3 * 64) << 20
    command = [app("shared"), "write", tmp_path / "a.h5", "v", "f32", n, n, tmp_path / "raw", "o", 11003]
    r = subprocess.run(list(map(str, command)), env=clean(), text=True, stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT,
                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
    assert r.returncode == 0, (r.returncode, r.stdout)
    with h5py.File(tmp_path / "a.h5") as f:
        assert len(filters(tmp_path / "a.h5", "v")) == 1
        assert np.abs(f["v"][...].astype("f8") - x).max() <= 1e-3
