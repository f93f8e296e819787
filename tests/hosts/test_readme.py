# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs what README.md and the Python package's README.md show: their commands, examples and links."""
import os
import re
import sys

import h5py
import judge
import numpy as np
import pytest
from conftest import PLUGIN, ROOT, clean, run, use
from page import blocks
from programs import filters, listed

README = ROOT / "README.md"
PACKAGE = ROOT / "plugin/python/README.md"


@pytest.mark.parametrize("block", [b.code for b in blocks(README) if b.language == "sh"])
def test_the_commands_work(block):
    if block.strip() == "make test":
        block = "make -n test | grep -q tests/run.sh"  # this is what runs here
    env = {k: v for k, v in os.environ.items() if k not in ("HDF5_PLUGIN_PATH", "MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    out = run("sh", "-euc", block, env=env, cwd=ROOT)
    if "make demo" in block:
        assert re.search(r"ratio 1\d\.\d", out) and " 0 of 1036800 values miss it" in out and "same bits" in out, out
        png = ROOT / out.split("picture")[1].split()[0]
        assert png.read_bytes()[:4] == b"\x89PNG" and png.stat().st_size > 100_000


def test_the_python_example_works(tmp_path):
    (code,) = [b.code for b in blocks(README) if b.language == "python"]
    out = use(f"import os, sys; os.chdir(sys.argv[1])\n{code}", tmp_path).split()
    assert float(out[1]) > 20 and 0 < float(out[-1]) <= 1e-3, out


def test_the_package_s_page_works(tmp_path):
    """Its Python in order, in one process; its command lines as a shell runs them."""
    code = "".join(b.code for b in blocks(PACKAGE) if b.language == "python")
    use(f"import os, sys; os.chdir(sys.argv[1])\n{code}\nnp.save('array.npy', array)", tmp_path)
    array = np.load(tmp_path / "array.npy")
    for path, name in (("out.h5", "v"), ("all.h5", "v"), ("tas.nc", "tas")):
        with h5py.File(tmp_path / path) as f:
            assert 0.5 < judge.check(array, f[name][...], "abs", 1e-2) <= 1
        assert listed(filters(tmp_path / path, name)[0][2])[0] == 11002
    (tmp_path / "h5z-gpu").write_text(f'#!/bin/sh\nexec {sys.executable} -m h5z_gpu "$@"\n')
    (tmp_path / "h5z-gpu").chmod(0o755)
    env = clean(PYTHONPATH=f"{ROOT}/plugin/python", H5Z_GPU_PLUGIN_PATH=str(PLUGIN.parent), MPLBACKEND="Agg")
    env["PATH"] = f"{tmp_path}:{env['PATH']}"
    (lines,) = [b.code for b in blocks(PACKAGE) if b.language == "sh"]
    assert "every promise is kept" in run("sh", "-euc", lines, env=env, cwd=tmp_path)
    with h5py.File(tmp_path / "small.nc") as f:
        assert 0.5 < judge.check(array, f["tas"][...], "abs", 1e-2) <= 1


@pytest.mark.parametrize("page", [README, PACKAGE], ids=["README", "package"])
def test_the_links_lead_somewhere(page):
    """What PyPI shows links nowhere by a path: it stands there alone."""
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text())
    assert links if page == README else not links
    for target in links:
        assert (ROOT / target).exists(), target
