# SPDX-License-Identifier: MIT OR Apache-2.0
"""The decoders as a plugin of h5wasm, which is HDF5 in WebAssembly: it reads what h5py reads, and refuses damage."""
import functools
import hashlib
import http.server
import os
import queue
import re
import shutil
import signal
import subprocess
import threading
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT, run

os.environ["HDF5_PLUGIN_PATH"] = str(ROOT / "target/plugin")
import h5py

PAGE = """<!doctype html><meta charset="utf-8"><pre></pre><script type="module">
import { Dataset, File, ready } from "./node_modules/h5wasm/dist/esm/hdf5_hl.js";
const { FS, get_plugin_search_paths } = await ready;
const fetched = async (path) => new Uint8Array(await (await fetch(path)).arrayBuffer());
const folder = get_plugin_search_paths().at(-1);
FS.mkdirTree(folder);
FS.writeFile(`${folder}/libH5Zh5zgpu.so`, await fetched("libH5Zh5zgpu.so"));
FS.writeFile("all.h5", await fetched("all.h5"));
const file = new File("all.h5", "r");
for (const name of file.keys().filter((name) => name !== "halves")) {
  const hash = await crypto.subtle.digest("SHA-256", Float64Array.from(file.get(name).value, Number));
  const hex = Array.from(new Uint8Array(hash), (byte) => byte.toString(16).padStart(2, "0")).join("");
  document.querySelector("pre").textContent += `${name} ${hex}\n`;
}
await fetch("done", { method: "POST", body: document.querySelector("pre").textContent });
</script>"""
SOURCES = "lib/rustlib/src/rust/library/std"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with h5wasm, the plugin and what reads by them."""
    run(ROOT / "tests/need.sh", "node=nodejs", "npm=npm", "chromium=chromium")
    path = os.environ["PATH"]
    sysroot = subprocess.run(["rustc", "--print", "sysroot"], capture_output=True, text=True).stdout.strip()
    if not (Path(sysroot or "/") / SOURCES).exists():
        # Debian's Rust comes with the sources of its library.
        run(ROOT / "tests/need.sh", "/usr/bin/cargo=cargo-web", f"/usr/{SOURCES}=rust-web-src")
        path = "/usr/bin:/bin"
    run("make", "h5wasm", PATH=path)
    into = tmp_path_factory.mktemp("h5wasm")
    shutil.copy(ROOT / "target/wasm/libH5Zh5zgpu.so", into)
    shutil.copy(ROOT / "readers/wasm/h5wasm/check.mjs", into)
    run("npm", "install", "--silent", "--no-save", "h5wasm@0.10.3", cwd=into)
    return into


def read(folder, path):
    """Each dataset's name, and a hash of its values or what was said."""
    # In Node.js its files are the machine's, and the plugin is put where this leads.
    said = run("node", "check.mjs", "libH5Zh5zgpu.so", path, cwd=folder, HDF5_PLUGIN_PATH=folder / "plugins")
    return dict(line.split(" ", 1) for line in said.splitlines() if not line.startswith("h5z-gpu: ")), said


def hashes(path):
    want = {}
    with h5py.File(path) as f:
        f.visititems(lambda name, d: want.update({name: hashlib.sha256(d[...].astype("<f8").tobytes()).hexdigest()}))
    return want


def test_every_dataset_of_the_golden_file(folder):
    path = ROOT / "tests/files/0.1.0/all.h5"
    got, _ = read(folder, path)
    want = hashes(path)
    # h5wasm has no numbers of 16 bits.
    assert "Float16" in got.pop("halves") and want.pop("halves")
    assert got == want and len(want) > 25


def test_chunks_for_which_memory_grows(folder):
    """A chunk of 64 MiB is more than h5wasm begins with, and the plugin allocates from what it gets."""
    path = folder / "large.h5"
    field = np.cumsum(np.random.default_rng(1).standard_normal((16, 1024, 1024)), axis=2).astype("f4")
    with h5py.File(path, "w") as f:
        for name, words in (("lossy", (11002,)), ("lossless", ())):
            f.create_dataset(name, data=field, chunks=field.shape, compression=443, compression_opts=words)
        f.create_dataset("many", data=field, chunks=(1, 256, 256), compression=443, compression_opts=(11002,))
    assert read(folder, path)[0] == hashes(path)


def test_a_damaged_chunk_is_refused_and_the_others_are_read(folder):
    path = folder / "damaged.h5"
    shutil.copy(ROOT / "tests/files/0.1.0/all.h5", path)
    want = hashes(path)
    with h5py.File(path) as f:
        chunks = {name: f[name].id.get_chunk_info(0) for name in want if f[name].chunks and name != "halves"}
    bytes_ = bytearray(path.read_bytes())
    damaged = sorted(chunks)[::2]
    for k, name in enumerate(damaged):
        chunk = chunks[name]
        bytes_[chunk.byte_offset + (k * 37) % chunk.size] ^= 0x10
    path.write_bytes(bytes_)
    got, said = read(folder, path)
    for name, hash in want.items():
        if name in damaged:
            assert got[name].startswith("refused"), (name, got[name])
        elif name != "halves":
            assert got[name] == hash, name
    assert len(damaged) > 12 and len(re.findall("^h5z-gpu: .+", said, re.M)) >= len(damaged), said


def test_the_plugin_asks_of_h5wasm_what_it_has(folder):
    """All functions are named that the plugin imports: h5wasm exports no others to rely on."""
    script = ("const m = new WebAssembly.Module(require('fs').readFileSync('libH5Zh5zgpu.so'));"
              "const own = new Set(WebAssembly.Module.exports(m).map((e) => e.name));"
              "for (const i of WebAssembly.Module.imports(m)) if (i.kind === 'function' && !own.has(i.name))"
              " console.log(i.name)")
    assert set(run("node", "-e", script, cwd=folder).split()) <= {"malloc", "free", "calloc", "iprintf"}


def test_a_browser_reads_the_golden_file(folder):
    shutil.copy(ROOT / "tests/files/0.1.0/all.h5", folder)
    (folder / "page.html").write_text(PAGE)
    said = queue.Queue()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def do_POST(self):
            said.put(self.rfile.read(int(self.headers["Content-Length"])).decode())
            self.send_response(204)
            self.end_headers()

    # Chromium dumps a page without waiting for what WebAssembly does beside it: the page sends what it says.
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page = f"http://127.0.0.1:{server.server_port}/page.html"
        with subprocess.Popen(["chromium", "--headless", "--no-sandbox", f"--user-data-dir={folder / 'user'}", page],
                              start_new_session=True) as browser:
            try:
                got = said.get(timeout=120)
            finally:
                os.killpg(browser.pid, signal.SIGKILL)
        server.shutdown()
    want = hashes(ROOT / "tests/files/0.1.0/all.h5")
    want.pop("halves")
    assert dict(re.findall(r"(\w+) ([0-9a-f]{64})$", got, re.M)) == want
