# SPDX-License-Identifier: MIT OR Apache-2.0
"""The reader in NumPy, which was written from the FORMAT.md files alone: every vector, every frame to refuse, fresh
frames.

It is loaded from its file, as somebody would who has neither plugin nor package.
"""
import os
import struct
import sys
import tomllib
import types
from pathlib import Path

import pytest
from conftest import LONG, PLUGIN, ROOT, THIRD, clean, python, run

SOURCE = ROOT / "plugin/python/h5z_gpu/reference.py"
VECTORS = ROOT / "tests/vectors/v2"


def fnv(data):
    h = 0xCBF29CE484222325
    for byte in data:
        h = (h ^ byte) * 0x100000001B3 % 2**64
    return f"{h:016x}"


def rows(table):
    return tomllib.loads(table.read_text())


def test_every_vector_is_read(reference):
    listed = [(table.parent, *row) for table in VECTORS.glob("*/vectors.toml") for row in rows(table).items()]
    assert len(listed) == len([p for p in VECTORS.glob("*/*.bin") if p.parent.name != "refused"]) >= 496
    for folder, name, row in listed:
        frame = folder / f"{name}.bin"
        raw = reference.decode(frame.read_bytes())
        assert fnv(raw) == row["decoded_fnv"], frame
        if frame.with_suffix(".raw").exists():
            assert raw == frame.with_suffix(".raw").read_bytes(), frame


def test_every_frame_to_refuse_is_refused_by_its_rule(reference):
    index = rows(VECTORS / "refused/index.toml")
    assert len(index) >= 180
    for name, entry in index.items():
        with pytest.raises(reference.Refused) as refused:
            reference.decode((VECTORS / f"refused/{name}.bin").read_bytes(), limit=entry["raw_bytes"])
        assert str(refused.value).split(":")[0] == entry["rule"], f"{name}: {refused.value}"


# Frames with the library's answers, which tests/promises/readers.rs leaves, and `make hostile` where it is asked to.
ANSWERS = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "tmp/readers"
LEFT = ["written", "random", "interpolated", "broken", "changed", "changed-planes"]
LEFT += sorted(path.name for path in ANSWERS.glob("hostile*"))


@pytest.mark.parametrize("name", LEFT)
def test_it_answers_as_the_library(reference, name):
    """To one frame of nine, and at three commits in a row to others; to all of them with H5Z_GPU_TEST_LONG=1."""
    file = ANSWERS / name
    assert file.exists(), f"{file} is missing: run `cargo test -p h5z-gpu --test promises`"
    content, at, k = file.read_bytes(), 0, 3 * int(THIRD or 0)
    while at < len(content):
        length, expected, want = struct.unpack_from("<IIQ", content, at)
        at, k = at + 16 + length, k + 1
        if k % 9 and not LONG:
            continue
        try:
            found = fnv(reference.decode(content[at - length : at], expected))
        except reference.Refused:
            found = f"{0:016x}"
        assert found == f"{want:016x}", f"the frame in {file} that ends at byte {at}"


def test_a_reader_without_a_rule_reads_the_frames_that_break_it(reference, monkeypatch):
    """So no second rule hides that the first is missing, but for the frames and rules of a list."""
    index = rows(VECTORS / "refused/index.toml")
    listed = rows(VECTORS.parent / "not_alone.toml")
    refuse, becomes = reference.refuse, {}
    for name, entry in index.items():

        def all_but_one(rule, broken, why, missing=entry["rule"]):
            if rule != missing:
                refuse(rule, broken, why)

        monkeypatch.setattr(reference, "refuse", all_but_one)
        try:
            reference.decode((VECTORS / f"refused/{name}.bin").read_bytes(), limit=entry["raw_bytes"])
        except reference.Refused as next_rule:
            becomes[name] = str(next_rule).split(":")[0]
        except Exception:  # whatever Python or NumPy say to what is not there
            becomes[name] = "stuck"
    assert becomes == listed["frames"]
    alone = {entry["rule"] for name, entry in index.items() if name not in becomes}
    assert {entry["rule"] for entry in index.values()} - alone == set(listed["rules"])


# What the documents could be taken to say: the reader's words, others, and a frame that tells them apart.
MISREADINGS = {
    "lorenzo 4.4, differences of 64 bits": (
        "(v - b).astype(np.int64)", "(v.astype(np.int64) - b)", "lorenzo/f32-interpolated-every-way"),
    "lorenzo 5, 2 (b / 257)": (
        "2 * head.bound / 257", "2 * (head.bound / 257)", "lorenzo/f64-interpolated-subnormal-bound"),
    "lorenzo 5, b / 128.5": (
        "2 * head.bound / 257", "head.bound / 128.5", "lorenzo/f64-interpolated-infinite-step"),
    "lorenzo 5, abs(-2^31) in 32 bits": (
        "np.abs(q.astype(np.int64))", "np.abs(q).astype(np.int64)", "lorenzo/f64-pw-rel-lowest-quantum"),
    "bytes 4, the highest bit first": (
        'np.unpackbits(planes, axis=2, bitorder="little")', "np.unpackbits(planes, axis=2)", "bytes/u8-mask"),
    "planes 5, a step that is too large before it is rounded": (
        "1 / limit <= s <= limit", "1 / limit <= head.bound * 1.9921875 <= limit", "planes/f32-step-that-rounds-down"),
    "planes 5, a step that is too small before it is rounded": (
        "1 / limit <= s <= limit", "1 / limit <= head.bound * 1.9921875 <= limit", "planes/f32-step-that-rounds-up"),
    "szx 3.2, q from E on": (
        "(1 + head.exponent, min", "(head.exponent, min", "refused/S5-words-of-11-bits-of-f64-in-mode-3"),
    "szx 3.2, q from E + 2 on": (
        "(1 + head.exponent, min", "(2 + head.exponent, min", "szx/f64-pw-fewest-and-most-bits"),
    "szx 3.2, q up to M + 1": (
        "else (1, head.mantissa)", "else (1, head.mantissa + 1)", "refused/S5-words-of-53-bits-of-f64"),
    "szx 5, a subnormal bound": (
        "head.bound >= 2.0**-1022", "head.bound > 0", "refused/S6-bound-of-2^-1023-of-f64"),
    "dense 3.2.1, 49 expected of every class that the table before lacks": (
        "levels[-1] if levels else 49", "49", "dense/f32-2d"),
    "dense 3.2.1, the last of the most frequent tokens": (
        "frequencies.index(max(frequencies))", "128 - frequencies[::-1].index(max(frequencies))", "dense/f32-2d"),
    "dense 4.1, the bits from the 16th on first": (
        "for bits in (min((token - 9) // 4, 15), (token - 9) // 4 - 15)",
        "for bits in ((token - 9) // 4 - min((token - 9) // 4, 15), min((token - 9) // 4, 15))", "dense/f64-fine-3d"),
    "dense 4.2, places behind a border see those on it": (
        "planes = z - (0 in along and z > 0)", "planes = z", "dense/f32-5d"),
    "dense 4.2, the number of axes as the group, none apart": (
        "group = 2 * max(len(along) - 1, 0)", "group = 2 * min(len(along), 2)", "dense/f32-2d"),
    "dense 4.3, one place beside where there are not two": (
        "2 * len(new) if len(new) > 1",
        "sum(min(2, magnitudes[tuple(k for k in new if k != a)].shape[a]) for a in new) if len(new) > 1",
        "dense/f32-2d"),
    "dense 4.3, a filter at a border too": (
        "if filter and not border else None", "if filter else None", "dense/f32-2d"),
    "dense 4.3, a filter where bit 7 says finer steps": (
        "kind >> 7 and not kind >> 3 & 1\n", "kind >> 7\n", "dense/bfloat16-rel-3d"),
}


@pytest.mark.parametrize("said, misread, name", MISREADINGS.values(), ids=MISREADINGS)
def test_a_misreading_shows(said, misread, name, monkeypatch):
    source = SOURCE.read_text()
    assert source.count(said) == 1
    reader = types.ModuleType("misreading")
    monkeypatch.setitem(sys.modules, reader.__name__, reader)  # where dataclasses look
    exec(source.replace(said, misread), vars(reader))
    frame = VECTORS / f"{name}.bin"
    if frame.parent.name == "refused":
        reader.decode(frame.read_bytes())  # it is read
        return
    try:
        raw = reader.decode(frame.read_bytes())
    except reader.Refused:
        return
    assert fnv(raw) != rows(frame.parent / "vectors.toml")[frame.stem]["decoded_fnv"]


def test_it_prints_and_writes_what_a_frame_holds(tmp_path):
    frame = VECTORS / "szx/worked-example.bin"
    said = run(sys.executable, SOURCE, frame, tmp_path / "raw", env=clean())
    assert "szx" in said and "(131,)" in said
    assert (tmp_path / "raw").read_bytes() == frame.with_suffix(".raw").read_bytes()


FRESH = """
import os, sys
import numpy as np
sys.path.insert(0, sys.argv[1])
import h5z_gpu
from h5z_gpu import reference

r = np.random.default_rng(443)
hows = [h5z_gpu.Lossless(), h5z_gpu.Lossless("ndzip"), h5z_gpu.Lossless("planes")]
hows += [h5z_gpu.Lossy(b, mode, codec=codec) for codec in ("auto", "szx", "lorenzo", "dense") for b, mode in
         [(1e-3, "abs"), (0.5, "abs"), (1e-3, "rel"), (1e-2, "pw_rel"), (70, "psnr")]]
hows += [h5z_gpu.Lossy(b, mode, codec="planes") for b, mode in
         [(1e-3, "abs"), (1e-8, "abs"), (1e-3, "rel"), (70, "psnr")]]
codecs = set()
for k in range(600):
    shape = tuple(r.integers(1, [0, 20000, 180, 40, 12][n := r.integers(1, 5)], n))
    shape += (r.integers(2, 17),) if r.integers(4) == 0 else ()
    shape = shape if k % 60 else (17, 17, r.integers(480, 1100))  # of lorenzo, 64 tiles and more
    i = np.arange(np.prod(shape)).reshape(shape)
    a = [lambda: np.sin(i * 0.01) * 10.0 ** r.integers(-6, 6), lambda: r.normal(size=shape).cumsum(
        -1), lambda: r.normal(
        size=shape),
         lambda: np.exp(20 * r.normal(size=shape)), lambda: np.full(shape, 2.5), lambda: np.floor(i / 77),
         lambda: np.float32(np.sin(i * 0.01)), lambda: np.round(np.sin(i * 0.01) * 4096) / 128][r.integers(8)]()
    if r.integers(3) == 0:
        np.putmask(a, r.random(shape) < 0.02, r.choice([np.nan, np.inf, -0.0, 0.0, 1e20, 5e-324]))
    with np.errstate(all="ignore"):
        a = a.astype(r.choice(["<f4", ">f4", "<f8", ">f8", "<i2", ">i4", "<u8"]))
    frame = h5z_gpu.compress(a, hows[r.integers(len(hows))], fill=a.flat[0] if r.integers(4) == 0 else None)
    want = h5z_gpu.decompress(frame, "u1").tobytes()
    assert reference.decode(frame, len(want)) == want, (k, shape, a.dtype)
    codecs.add(reference.header(frame).codec)
    at, flip = r.integers(len(frame)), r.integers(1, 256)
    bad = bytearray(frame)
    bad[at] ^= flip
    try:
        reference.decode(bytes(bad), len(want))
        raise SystemExit(f"byte {at} of frame {k} was changed by {flip}, and it is read")
    except reference.Refused:
        pass
assert codecs == {"stored", "szx", "lorenzo", "ndzip", "bytes", "planes", "scaled", "dense"}, codecs
"""


def test_fresh_frames_are_read_as_the_plugin_reads_them():
    env = clean(H5Z_GPU_PLUGIN_PATH=str(PLUGIN.parent), H5Z_GPU_DEVICE="cpu")
    python(FRESH, ROOT / "plugin/python", env=env)


def test_frames_of_dense_that_no_writer_makes_are_read_as_the_plugin_reads_them():
    env = clean(H5Z_GPU_PLUGIN_PATH=str(PLUGIN.parent), H5Z_GPU_DEVICE="cpu", PYTHONPATH=str(ROOT / "plugin/python"))
    run(sys.executable, ROOT / "tests/hosts/dense_frames.py", "300", "5", env=env)
