# SPDX-License-Identifier: MIT OR Apache-2.0
"""A damaged chunk fails to read with our words; all other chunks stay readable; nothing crashes."""
import os

import h5py
import numpy as np
import pytest
from conftest import app, python, run, sample

CHUNK = (16, 16, 16)
CODECS = {
    "szx": (lambda: sample(np.float32, (16, 32, 32)), 111003),
    "szx f64": (lambda: sample(np.float64, (16, 32, 32)), 111003),
    "lorenzo": (lambda: sample(np.float32, (16, 32, 32)), 211003),
    "lorenzo f64": (lambda: sample(np.float64, (16, 32, 32)), 211003),
    "dense": (lambda: sample(np.float32, (16, 32, 32)), 711003),
    "ndzip": (lambda: sample(np.float32, (16, 32, 32), noise=1e-4), 390000),
    "ndzip f64": (lambda: sample(np.float64, (16, 32, 32), noise=1e-4), 390000),
    "bytes": (lambda: 997 * np.random.default_rng(2).integers(-9, 9, (16, 32, 32), "i2"), 90000),
    "planes i2": (lambda: (sample(np.float64, (16, 32, 32)) * 10).astype("i2"), 590000),
    "lorenzo i2": (lambda: (sample(np.float64, (16, 32, 32)) * 10).astype("i2"), 90000),
    "stored": (lambda: np.random.default_rng(1).integers(0, 256, (16, 32, 32), np.uint8), 90000),
}
NUMBER = {"stored": 0, "szx": 1, "lorenzo": 2, "ndzip": 3, "bytes": 4, "planes": 5, "dense": 7}


@pytest.fixture(params=CODECS)
def file(request, tmp_path):
    """A file of four chunks, all of one codec."""
    make, word = CODECS[request.param]
    x = make()
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as f:
        f.create_dataset("v", data=x, chunks=CHUNK, compression=443, compression_opts=(word,))
    with h5py.File(path) as f:
        y, frame = f["v"][...], f["v"].id.read_direct_chunk((0, 16, 16))[1]
    assert frame[:8] == b"\x89H5ZG\r\n\x1a" and frame[9] == NUMBER[request.param.split()[0]], frame[:16]
    return path, y, frame


def put(path, frame):
    with h5py.File(path, "a") as f:
        f["v"].id.write_direct_chunk((0, 16, 16), frame)


def changes(frame):
    """Frames that differ in one byte, are cut, or lengthened."""
    rng = np.random.default_rng(4)
    places = sorted({*range(0, 64, 3), *rng.integers(0, len(frame), 60).tolist(), len(frame) - 1})
    for i in places:
        b = bytearray(frame)
        b[i] ^= 1 << int(rng.integers(8))
        yield f"byte {i}", bytes(b)
    for n in sorted({0, 1, 7, 8, 9, 47, 48, 63, 64, *rng.integers(0, len(frame), 20).tolist(), len(frame) - 1}):
        if n:
            yield f"cut at {n}", frame[:n]
    yield "one byte more", frame + b"\0"
    yield "twice", frame + frame
    yield "zeros", bytes(len(frame))


def test_every_change_is_refused_and_the_other_chunks_are_read(file):
    path, y, frame = file
    for what, bad in changes(frame):
        put(path, bad)
        with h5py.File(path) as f:
            with pytest.raises(OSError) as e:
                f["v"][:, 16:, 16:]
            assert "h5z-gpu: " in str(e.value) and len(str(e.value)) > 60, (what, str(e.value))
            for part in (np.s_[:, :16], np.s_[:, 16:, :16]):
                assert f["v"][part].tobytes() == y[part].tobytes(), what
    put(path, frame)
    with h5py.File(path) as f:
        assert f["v"][...].tobytes() == y.tobytes()


@pytest.mark.third
def test_every_program_fails_without_crashing(file, tmp_path):
    path, _, frame = file
    bad = bytearray(frame)
    bad[len(bad) // 2] ^= 0x10
    put(path, bytes(bad))
    assert "h5z-gpu: damaged chunk" in run("h5dump", "--enable-error-stack", "-d", "v", path, ok=False)
    assert "h5z-gpu: damaged chunk" in run(app("shared"), "read", path, "v", tmp_path / "raw", ok=False)
    run(app("stripped"), "read", path, "v", tmp_path / "raw", ok=False)
    assert "HDF error" in run("ncdump", path, ok=False)
    assert "HDF error" in run("nccopy", path, tmp_path / "out.nc", ok=False)
    run("ncks", "-O", "-3", path, tmp_path / "out.nc", ok=False)
    run("cdo", "-s", "-O", "-f", "nc", "copy", os.path.relpath(path, tmp_path), "out.nc", cwd=tmp_path, ok=False)
    read = {
        "h5py": "h5py.File(sys.argv[1])['v'][...]",
        "netCDF4": "netCDF4.Dataset(sys.argv[1])['v'][...]",
        "tables": "tables.open_file(sys.argv[1]).root.v[...]",
    }
    for library, code in read.items():
        text = python(f"import sys, {library}\n{code}", path, ok=False)
        assert "Error" in text.splitlines()[-1] or "Error" in text, text


def test_a_foreign_chunk_is_named_as_such(file):
    path, _, _frame = file
    put(path, b"\x78\x9c" + bytes(200))
    with h5py.File(path) as f, pytest.raises(OSError, match="h5z-gpu: "):
        f["v"][...]


def test_a_length_beyond_all_memory_is_damage(file):
    path, _, frame = file
    for byte in (20, 21, 22, 23):  # the raw length's upper half: from 4 GiB on
        put(path, frame[:byte] + bytes([frame[byte] ^ 0x40]) + frame[byte + 1 :])
        with h5py.File(path) as f, pytest.raises(OSError, match="h5z-gpu: damaged chunk"):
            f["v"][...]


def test_a_newer_format_asks_for_a_newer_version(file):
    path, _, frame = file
    put(path, frame[:8] + bytes([frame[8] + 1]) + frame[9:])
    with h5py.File(path) as f, pytest.raises(OSError, match="newer"):
        f["v"][...]


def test_damaged_words_do_not_matter_for_reading(file, tmp_path):
    """The frame alone is enough: the words in the dataset's header may be anything."""
    path, y, _ = file
    with h5py.File(path) as f:
        d = f["v"].id
        frames = {tuple(d.get_chunk_info(i).chunk_offset): d.read_direct_chunk(d.get_chunk_info(i).chunk_offset)[1]
                  for i in range(4)}
        words = d.get_create_plist().get_filter(0)[2]
    raw = path.read_bytes()
    old = np.array(words, "<u4").tobytes()
    assert raw.count(old) == 1
    for new in (bytes(len(old)), b"\xff" * len(old), np.array((7, *words[1:]), "<u4").tobytes()):
        (tmp_path / "b.h5").write_bytes(raw.replace(old, new))
        with h5py.File(tmp_path / "b.h5") as f:
            assert f["v"][...].tobytes() == y.tobytes()
    assert len(frames) == 4
