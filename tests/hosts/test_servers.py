# SPDX-License-Identifier: MIT OR Apache-2.0
"""Web servers that answer wrongly, by each cache of fsspec: what comes of a read is right, or an error that says what
the server did."""
import asyncio
import gc
import itertools
import os
import socket
import sys
import time

import aiohttp
import fsspec
import h5py
import numpy as np
import pytest
from conftest import LONG, PLUGIN, ROOT
from test_file_objects import A, made
from web import server

os.environ["H5Z_GPU_PLUGIN_PATH"] = str(PLUGIN.parent)
sys.path.insert(0, str(ROOT / "plugin/python"))
import h5z_gpu

CACHES = ("bytes", "readahead", "none", "blockcache", "first", "background")
WAYS = (np.s_[:], np.s_[1:, 5:20], np.s_[1, 4, 5:9])


def answered(status=206, told=None, says=None, **headers):
    """A fault that answers with these bytes of the file, or as many as `says`."""

    def fault(handler, first, end, data):
        body = data[first:end] if told is None else told(data, first, end)
        handler.send_response(status)
        if status == 206:
            handler.send_header("Content-Range", headers.get("range", f"bytes {first}-{end - 1}/{len(data)}"))
        for name, value in headers.items():
            if name != "range":
                handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", str(says(first, end) if says else len(body)))
        handler.end_headers()
        handler.wfile.write(body)
        if says:
            handler.close_connection = True
            handler.connection.shutdown(socket.SHUT_RDWR)

    return fault


def reset(handler, *_):
    handler.close_connection = True
    handler.connection.shutdown(socket.SHUT_RDWR)


def late(handler, first, end, data):
    time.sleep(0.1)
    answered()(handler, first, end, data)


def nothing(*_):
    return b""


FAULTS = {
    "403": answered(403, nothing), "404": answered(404, nothing), "416": answered(416, nothing),
    "429": answered(429, nothing), "503": answered(503, nothing),
    "longer": answered(told=lambda data, first, end: data[first:end] + b"A" * (4 << 20)),
    "one longer": answered(told=lambda data, first, end: data[first:end] + b"A"),
    "shorter": answered(told=lambda data, first, end: data[first : (first + end) // 2]),
    "cut": answered(told=lambda data, first, end: data[first : (first + end) // 2],
                    says=lambda first, end: end - first),
    "none": answered(told=nothing), "whole": answered(200, lambda data, first, end: data),
    "shifted": answered(told=lambda data, first, end: data[first + 1 : end + 1].ljust(end - first, b"B")),
    "zeros": answered(told=lambda data, first, end: bytes(end - first)),
    "noise": answered(told=lambda data, first, end: np.random.default_rng(first).bytes(end - first)),
    "elsewhere": answered(range="bytes 0-9/10"), "encoded": answered(Content_Encoding="gzip"),
    "loop": answered(302, nothing, Location="/a.h5"), "reset": reset, "late": late,
}
OTHER_BYTES = ("shifted", "zeros", "noise")
# What aiohttp and fsspec raise, and what HDF5 and this package say of bytes that are not those of the file.
RAISED = {
    "403": aiohttp.ClientResponseError, "404": (aiohttp.ClientResponseError, FileNotFoundError),
    "429": aiohttp.ClientResponseError, "503": aiohttp.ClientResponseError,
    "cut": aiohttp.ClientPayloadError, "encoded": aiohttp.ClientPayloadError,
    "loop": aiohttp.TooManyRedirects, "reset": (aiohttp.ClientError, ConnectionError),
}
SAID = (OSError, ValueError, RuntimeError, KeyError, aiohttp.ClientError, asyncio.TimeoutError)


@pytest.fixture(autouse=True)
def nothing_collected():
    """fsspec's thread would wait for h5py's lock to free an h5py object, while h5py waits for that thread."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def tried(s, data, fault, cache, way, at, lasts):
    """What comes of a read whose request number `at` is answered by the fault, and later ones where it `lasts`."""
    asked = itertools.count(1)

    def answer(*request):
        n = next(asked)
        if n != at and not (lasts and n > at):
            return False
        fault(*request)
        return True

    s.files["a.h5"], s.fault = data, None
    fs = fsspec.filesystem("http", skip_instance_cache=True)
    with fs.open(s.url("a.h5"), cache_type=cache, block_size=2048) as there, h5py.File(there, rdcc_nbytes=0) as f:
        s.fault = answer if fault else lambda *_: next(asked) < 0
        try:
            return h5z_gpu.read(f["v"], selection=way), None, next(asked) - 1
        except Exception as error:
            return None, error, next(asked) - 1
        finally:
            s.fault = None


@pytest.mark.parametrize("name", FAULTS)
def test_a_server_that_answers_wrongly(name):
    every = [*itertools.product(CACHES, ("earliest", "growing", "sparse"), (0, 512), WAYS)]
    some = every if LONG else every[list(FAULTS).index(name) % 71 :: 71]
    errors = 0
    with server({}) as s:
        for cache, kind, block, way in some:
            data = made(kind, block)
            want, error, n = tried(s, data, None, cache, way, 0, False)
            stored = np.where(np.arange(8)[:, None, None] < 2, A, -3) if kind == "sparse" else A
            assert error is None and want.tobytes() == stored.astype("f4")[way].tobytes(), (cache, kind, error)
            for at, lasts in itertools.product(range(1, n + 1) if LONG else {1, n // 2 + 1, n} - {0}, (False, True)):
                got, error, _ = tried(s, data, FAULTS[name], cache, way, at, lasts)
                what = (name, cache, kind, block, way, f"request {at} of {n}", lasts, repr(error))
                errors += error is not None
                if error is None:
                    # In an index without checksum HDF5 may find no chunk where a server gives other bytes.
                    unseen = name in OTHER_BYTES and kind in ("earliest", "sparse")
                    fill = -3 if kind == "sparse" else 0
                    assert got.tobytes() == (np.where(got == fill, got, want) if unseen else want).tobytes(), what
                else:
                    assert isinstance(error, RAISED.get(name, SAID)), what
    assert errors or name in ("late", "elsewhere", "whole"), "no fault was met"
