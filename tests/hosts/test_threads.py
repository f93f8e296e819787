# SPDX-License-Identifier: MIT OR Apache-2.0
"""A filter that is called on threads of HDF5 while another one holds the library's lock, as HDF5 2.3 may: it enters
nothing that waits."""
import pytest
from conftest import HERE, PLUGIN, hdf5_dir, needed_by_static, run


@pytest.mark.parametrize("library", ["of today", "later"])
def test_eight_threads_while_the_library_is_locked(library, tmp_path):
    link = [] if library == "later" else [hdf5_dir() / "libhdf5.a", *needed_by_static(hdf5_dir())]
    run("cc", "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-rdynamic",
        *(["-DLATER"] if library == "later" else []), "-o", tmp_path / "threads",
        HERE / "threads.c", "-I/usr/include/hdf5/serial", *link, "-lpthread", "-ldl", "-lm")
    said = run(tmp_path / "threads", PLUGIN)
    assert said.endswith("8 threads\n"), said
    if library == "later":
        # It does not reach the library's error stack.
        assert "damaged chunk" in said, said
