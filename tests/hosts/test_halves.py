# SPDX-License-Identifier: MIT OR Apache-2.0
"""Numbers of 16 bits, f16 and bfloat16, through HDF5: bounds in exact arithmetic, other values bit for bit, every
reader."""
from __future__ import annotations

import json

import pytest
from conftest import use

MODES = {"absolute": 0.25, "relative": 1e-2, "pointwise_relative": 2e-2, "psnr": 45}
WRITE = """if True:
    import sys, h5py, numpy as np, h5z_gpu
    from h5py import h5d, h5p, h5s, h5t
    from pathlib import Path
    from h5z_gpu import Lossy, reference

    def waves(n):
        t = np.linspace(0, 40, n)
        return (100 * np.sin(t) + 3 * np.sin(31 * t) + 20).astype("f4")
"""


TAKEN = [(m, c) for m in MODES for c in ("auto", "szx", "lorenzo", "planes")
         if (m, c) != ("pointwise_relative", "planes")]


@pytest.mark.third
@pytest.mark.parametrize("mode, codec", TAKEN)
def test_float16_keeps_its_bound(mode, codec, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    use(f"""{WRITE}
    x = waves(6000).astype("f2").reshape(60, 100)
    bits = x.reshape(-1).view("u2")
    bits[5::97] = np.resize([0x7C00, 0xFC00, 0x7E01, 0x7D55, 0xFFFF], len(bits[5::97]))
    bits[7::89] = 0x6B00
    fill = np.array(0x6B00, "u2").view("f2")[()]
    for order in "<>":
        how = Lossy({mode}={MODES[mode]!r}, codec={codec!r}, fill_value=float(fill))
        with h5py.File("a.h5", "w") as f:
            d = f.create_dataset("v", data=x.astype(order + "f2"), chunks=(20, 50), **how)
            frame = d.id.read_direct_chunk((20, 50))[1]
            assert d.id.get_storage_size() < x.nbytes * 0.75, d.id.get_storage_size()
        with h5py.File("a.h5") as f:
            y = f["v"][...].astype("f2")
            assert np.array_equal(h5z_gpu.read(f["v"]).astype("f2").view("u2"), y.view("u2"))
        whole = np.frombuffer(reference.decode(frame), order + "f2").astype("f2").reshape(20, 50)
        assert np.array_equal(whole.view("u2"), y[20:40, 50:].view("u2"))
        special = ~np.isfinite(x) | (x.view("u2") == 0x6B00)
        assert np.array_equal(x.view("u2")[special], y.view("u2")[special])
        for r in range(0, 60, 20):
            for c in (0, 50):
                a, b = (v[r : r + 20, c : c + 50].astype("f8") for v in (x, y))
                some = ~special[r : r + 20, c : c + 50]
                error, span = np.abs(a - b)[some], np.ptp(a[some])
                most = {{"absolute": 0.25, "relative": 1e-2 * span, "pointwise_relative": 2e-2 * np.abs(a[some])}}.get(
                    {mode!r})
                if most is None:
                    assert 20 * np.log10(span / np.sqrt(np.mean(error**2))) >= 45
                else:
                    assert (error <= most).all()
    with h5py.File("exact.h5", "w") as f:
        f["v"] = x
    assert h5z_gpu.cli.main(["verify", "exact.h5", "a.h5"]) == 0
    with h5py.File("worse.h5", "w") as f:
        worse = x.copy()
        worse[3, 3] += 60
        f["v"] = worse
    assert h5z_gpu.cli.main(["verify", "worse.h5", "a.h5"]) == 1
    """.replace("import sys, h5py, numpy as np, h5z_gpu", "import sys, h5py, numpy as np, h5z_gpu, h5z_gpu.cli"))


def test_bfloat16_keeps_its_bound(tmp_path, monkeypatch):
    """A type of HDF5 that NumPy has not: values are given and taken as f32, which HDF5 converts."""
    monkeypatch.chdir(tmp_path)
    out = use(f"""{WRITE}
    kind = h5t.IEEE_F32LE.copy()
    kind.set_fields(15, 7, 8, 0, 7)
    kind.set_size(2)
    kind.set_ebias(127)
    x = (waves(6000).view("u4") & 0xFFFF0000).view("f4").reshape(60, 100)
    plan = h5p.create(h5p.DATASET_CREATE)
    plan.set_chunk((20, 50))
    plan.set_filter(443, 0, Lossy(absolute=0.5).words)
    with h5py.File("a.h5", "w") as f:
        d = h5py.Dataset(h5d.create(f.id, b"v", kind, h5s.create_simple(x.shape), plan))
        d[...] = x
        assert d.id.get_type().get_size() == 2
        size = d.id.get_storage_size()
    with h5py.File("a.h5") as f:
        y = f["v"][...]
    error = np.abs(x.astype("f8") - y).max()
    assert 0 < error <= 0.5 and size < 6000, (error, size)
    print("kept")
    """)
    assert out == "kept\n", out


def test_values_beyond_the_largest_number_stay_finite(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    use(f"""{WRITE}
    x = np.full(5000, 65504, "f2")
    x[::3] = 65440
    with h5py.File("a.h5", "w") as f:
        d = f.create_dataset("v", data=x, chunks=(5000,), **Lossy(absolute=100, codec="planes"))
    with h5py.File("a.h5") as f:
        y = f["v"][...]
    assert np.isfinite(y).all() and np.abs(x.astype("f8") - y).max() <= 100
    """)


def test_the_commands_take_halves_as_other_floats(tmp_path, monkeypatch):
    """repack puts a bound on f16 and bfloat16 too, verify holds them to it, and advise tries what NumPy has."""
    monkeypatch.chdir(tmp_path)
    out = use(f"""{WRITE}
    from h5z_gpu.cli import main
    wide = waves(1 << 18).reshape(8, 128, 256)
    kind = h5t.IEEE_F32LE.copy()
    kind.set_fields(15, 7, 8, 0, 7)
    kind.set_size(2)
    kind.set_ebias(127)
    plan = h5p.create(h5p.DATASET_CREATE)
    plan.set_chunk((4, 128, 256))
    with h5py.File("a.h5", "w") as f:
        f.create_dataset("half", data=wide.astype("f2"), chunks=(4, 128, 256))
        f.create_dataset("big", data=wide.astype(">f2"), chunks=(4, 128, 256))
        f.create_dataset("wide", data=wide)
        d = h5py.Dataset(h5d.create(f.id, b"brain", kind, h5s.create_simple(wide.shape), plan))
        d[...] = wide
    assert main(["repack", "a.h5", "b.h5", "--absolute", "0.5", "--verify"]) == 0
    assert main(["verify", "a.h5", "b.h5"]) == 0
    with h5py.File("a.h5") as a, h5py.File("b.h5") as b:
        for name in a:
            x, y = (f[name][...].astype("f8") for f in (a, b))
            assert a[name].id.get_type() == b[name].id.get_type()
            assert 0 < np.abs(x - y).max() <= 0.5, name
            assert b[name].id.get_storage_size() < a[name].id.get_storage_size() / 3, name
    assert main(["advise", "a.h5"]) == 0
    """)
    for proposed in ("half: float16 8x128x256: ", "big: float16 8x128x256: ", "brain: exact, as it is of a type "):
        assert proposed in out, out


def test_halves_of_planes_stay_when_their_chunk_is_stored_or_kept_by_bytes(tmp_path, monkeypatch):
    """Under an absolute bound: what planes does not make smaller holds the values that planes will give back."""
    monkeypatch.chdir(tmp_path)
    out = use(f"""{WRITE}
    from h5z_gpu.cli import main
    g = np.random.default_rng(1)
    wild = g.integers(0, 65536, 4096).astype("u2").view("f2")
    odd = (2.0 ** g.uniform(-24, 15, 400)).astype("f2")
    fine = (np.cumsum(g.normal(0, 1, 13373)) * 0.05).astype("f2")
    for first, bound in ((wild, 0.1714), (odd, 4e-8), (fine, 2.0**-12)):
        with h5py.File("a.h5", "w") as f:
            d = f.create_dataset("d", data=first, chunks=(len(first),), **Lossy(absolute=bound, codec="planes"))
            codecs = [d.id.read_direct_chunk((0,))[1][9]]
        assert main(["inspect", "a.h5"]) == 0 and main(["inspect", "a.h5", "--json"]) == 0
        with h5py.File("a.h5", "r+") as f:
            d, k = f["d"], len(first) // 4
            before = d[...]
            assert not np.abs(before.astype("f8") - first)[np.isfinite(first)].max() > bound
            d[k:] = 1
        with h5py.File("a.h5") as f:
            codecs.append(f["d"].id.read_direct_chunk((0,))[1][9])
            assert np.array_equal(f["d"][:k].view("u2"), before[:k].view("u2")), bound
        print("codecs", codecs)
    """)
    codecs = [json.loads(line[7:]) for line in out.splitlines() if line.startswith("codecs ")]
    assert {first for first, _ in codecs} == {0, 4} and [4, 5] in codecs, codecs  # stored, bytes; planes
    assert "no loss" not in out and '"lossless": true' not in out, out
