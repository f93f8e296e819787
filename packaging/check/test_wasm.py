# SPDX-License-Identifier: MIT OR Apache-2.0
"""The decoders as WebAssembly: in Node.js over every golden vector, by jsfive, and in a browser's page."""
import functools
import hashlib
import http.server
import os
import re
import shutil
import threading

import numpy as np
import pytest
from conftest import ROOT, run

os.environ["HDF5_PLUGIN_PATH"] = str(ROOT / "target/plugin")
import h5py

SEA = ROOT / "target/demo/sea_level.h5"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    run(ROOT / "tests/need.sh", "node=nodejs", "npm=npm", "chromium=chromium")
    run("make", "wasm")
    into = tmp_path_factory.mktemp("wasm") / "site"
    shutil.copytree(ROOT / "target/wasm", into)
    shutil.copy(ROOT / "readers/wasm/jsfive.mjs", into)
    run("npm", "install", "--silent", "--no-save", "jsfive@0.4.2", cwd=into)
    return into


def test_every_vector_and_every_refused_frame(folder):
    said = run("node", ROOT / "readers/wasm/check.mjs", folder / "h5z_gpu.wasm")
    decoded, refused = map(int, re.match(r"(\d+) frames decoded, (\d+) refused", said).groups())
    assert decoded == len(list((ROOT / "tests/vectors/v2").glob("[!r]*/*.bin"))), said
    assert refused == len(list((ROOT / "tests/vectors/v2/refused").glob("*.bin"))), said


def test_jsfive_reads_what_h5py_reads(folder):
    path = ROOT / "tests/files/0.1.0/all.h5"
    want = []
    with h5py.File(path) as f:
        for name in f:
            want.append(f"{name} {hashlib.sha256(f[name][...].astype('<f8').tobytes()).hexdigest()}")
    assert run("node", "jsfive.mjs", path, cwd=folder).split("\n")[:-1] == want and len(want) > 25


def test_a_browser_draws_a_file(folder):
    if not SEA.exists():
        run("make", "demo")
    shutil.copy(SEA, folder / "sea.h5")
    with h5py.File(SEA) as f:
        name = max(f, key=lambda key: f[key].size)
        low, high = np.nanmin(f[name][...]), np.nanmax(f[name][...])
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page = f"http://127.0.0.1:{server.server_port}/view.html?file=sea.h5&name={name}"
        common = ["--headless", "--no-sandbox", "--virtual-time-budget=20000", "--window-size=1100,900"]
        shot = ROOT / "target/wasm/browser.png"
        run("chromium", *common, f"--screenshot={shot}", page)
        said = run("chromium", *common, "--dump-dom", page)
        server.shutdown()
    a, b = map(float, re.search(rf"{name}: [\d ×]+ &lt;f4, from (\S+) to (\S+), read in \d+ ms", said).groups())
    assert (np.float32(a), np.float32(b)) == (low, high)
