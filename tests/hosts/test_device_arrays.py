# SPDX-License-Identifier: MIT OR Apache-2.0
"""Arrays in a GPU's memory by the Python package, on a machine without one: the driver is a stand-in, the kernels are
emulated.

What another library's arrays are like (DLPack, streams) tests/gpu/arrays.py sees to, on a GPU.
"""
import sys

import conftest
import device

BEGIN = """
import h5py, numpy as np, logging, sys
import device, h5z_gpu
from h5z_gpu.library import lib
coded = lambda: (lib.h5z_gpu_device_chunks(0), lib.h5z_gpu_device_chunks(1))
def frames(d):
    found = {}
    d.id.chunk_iter(lambda i: found.update({i.chunk_offset: d.id.read_direct_chunk(i.chunk_offset)}))
    return found
x = np.arange(40 * 50 * 60).reshape(40, 50, 60)
# Noise: without it the differences of the numbers' bits would be shorter, which the CPU codes.
a = (np.sin(x * 0.001) + np.random.default_rng(1).normal(0, 0.01, x.shape)).astype("f4")
a[3, 4, 5], a[6:9] = np.nan, 1e20
path = sys.argv[1]
"""


def run(tmp_path, code, **more):
    code = BEGIN + code + "\nassert device.faults() == 0\nprint('all well')"
    said = conftest.run(sys.executable, "-c", code, tmp_path / "a.h5",
                        env=conftest.clean(**device.environment(), **more))
    assert said.endswith("all well\n"), said
    return said


def test_files_are_those_of_the_pipeline(tmp_path):
    run(tmp_path, """
for how in (h5z_gpu.Lossless(), *(h5z_gpu.Lossy(absolute=1e-3, codec=c, fill_value=1e20)
                                  for c in ("szx", "lorenzo", "planes", "auto"))):
    for layout in (np.s_[:], np.s_[5:38, ::2, 7:], np.s_[::-1, :, ::2]):
        before = coded()
        there = device.Array(a)[layout]
        want = a[layout]
        # Of a small chunk all is looked at to choose its codec: the CPU has it then.
        chunks = want.shape if getattr(how, "codec", None) == "auto" else (16, 20, 24)
        with h5py.File(path, "w") as f:
            for name in "ab":
                f.create_dataset(name, want.shape, "f4", chunks=chunks, **how)
            h5z_gpu.write(f["a"], there)
            f["b"][...] = want
            assert frames(f["a"]) == frames(f["b"]), (how, layout)
            out = device.Array(np.zeros_like(want))
            assert h5z_gpu.read(f["b"], out) is out
            assert out.values.tobytes() == f["b"][...].tobytes(), (how, layout)
            part = device.Array(np.zeros((9, 11, 7), "f4"))
            h5z_gpu.read(f["a"], part, np.s_[2:11, 3:14, 1:8])
            assert part.values.tobytes() == f["a"][2:11, 3:14, 1:8].tobytes(), (how, layout)
            row = device.Array(np.zeros(want.shape[2], "f4"))
            h5z_gpu.read(f["a"], row, np.s_[4, 5])
            assert row.values.tobytes() == f["a"][4, 5].tobytes()
        after = coded()
        assert after[0] > before[0] and after[1] > before[1], (how, before, after)
""")


def test_a_part_is_written_and_what_was_never_written_is_fill(tmp_path):
    run(tmp_path, """
with h5py.File(path, "w") as f:
    d = f.create_dataset("d", a.shape, "f4", chunks=(16, 20, 24), fillvalue=-3, **h5z_gpu.Lossless())
    h5z_gpu.write(d, device.Array(a[5:30, :, :]), np.s_[5:30])
    assert d[5:30].tobytes() == a[5:30].tobytes() and (d[:5] == -3).all()
    out = device.Array(np.zeros(a.shape, "f4"))
    h5z_gpu.read(d, out)
    assert out.values.tobytes() == d[...].tobytes()
    e = f.create_dataset("e", a.shape, "f4", chunks=(16, 20, 24), fillvalue=7, **h5z_gpu.Lossless())
    h5z_gpu.read(e, out)
    assert (out.values == 7).all()
""")


def test_what_no_kernel_takes_goes_by_the_host(tmp_path):
    run(tmp_path, """
logging.basicConfig(level="INFO", stream=sys.stdout)
for kind in ("i2", "u1", "f2", "i8"):
    b = (a * 100).clip(0, 200).astype(kind) if kind != "f2" else a.astype("f2")
    with h5py.File(path, "w") as f:
        for name in "ab":
            f.create_dataset(name, b.shape, kind, chunks=(16, 20, 24), **h5z_gpu.Lossless())
        h5z_gpu.write(f["a"], device.Array(b))
        f["b"][...] = b
        assert frames(f["a"]) == frames(f["b"]), kind
        out = device.Array(np.zeros_like(b))
        h5z_gpu.read(f["a"], out)
        assert out.values.tobytes() == b.tobytes(), kind
with h5py.File(path, "w") as f:
    f["raw"] = a
    f.create_dataset("f8", a.shape, "f8", chunks=(16, 20, 24), **h5z_gpu.Lossless())
    h5z_gpu.write(f["f8"], device.Array(a))
    out = device.Array(np.zeros_like(a))
    for name in ("raw", "f8"):
        out.values[...] = 0
        h5z_gpu.read(f[name], out)
        assert out.values.tobytes() == a.tobytes(), name
    h5z_gpu.read(f["raw"], device.Array(np.zeros((40, 25, 60), "f4")), np.s_[:, ::2])
    assert h5z_gpu.save(path + "2", {"g/v": device.Array(a)}, relative=1e-4, of="dataset") is None
with h5py.File(path + "2") as f:
    low, high = f["g/v"].attrs["h5z_gpu_range"]
    fine = a[np.isfinite(a)]
    assert (low, high) == (fine.min(), fine.max())
""")


def test_damage_is_named_or_filled(tmp_path):
    run(tmp_path, """
import warnings
with h5py.File(path, "w") as f:
    d = f.create_dataset("d", a.shape, "f4", chunks=(16, 20, 24), fillvalue=9,
                         **h5z_gpu.Lossy(absolute=1e-3, codec="lorenzo"))
    h5z_gpu.write(d, device.Array(a))
    want = d[...]
    at = d.id.get_chunk_info_by_coord((16, 20, 24)).byte_offset
with open(path, "r+b") as f:
    f.seek(at + 200)
    byte = f.read(1)
    f.seek(at + 200)
    f.write(bytes([byte[0] ^ 1]))
with h5py.File(path) as f:
    out = device.Array(np.zeros_like(a))
    try:
        h5z_gpu.read(f["d"], out)
        raise SystemExit("taken")
    except OSError as e:
        assert "(16, 20, 24)" in str(e) and "checksum" in str(e), e
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        h5z_gpu.read(f["d"], out, on_error="fill")
    assert len(said) == 1
    want[16:32, 20:40, 24:48] = 9
    assert out.values.tobytes() == want.tobytes()
""")


def test_what_cannot_be_is_refused_before_anything_is_written(tmp_path):
    run(tmp_path, """
def refused(error, text, call, *args, **more):
    try:
        call(*args, **more)
    except error as e:
        assert text in str(e), e
    else:
        raise SystemExit(f"{text}: taken")
with h5py.File(path, "w") as f:
    d = f.create_dataset("d", a.shape, "f4", chunks=(16, 20, 24), **h5z_gpu.Lossless())
    refused(ValueError, "shape", h5z_gpu.write, d, device.Array(a[1:]))
    refused(ValueError, "shape", h5z_gpu.read, d, device.Array(a[1:]))
    refused(ValueError, "read-only", h5z_gpu.read, d, device.Array(a, readonly=True))
    refused(TypeError, "out is a list", h5z_gpu.read, d, [])
    moved = device.Exported(a, a)
    moved.number = 1
    refused((ValueError, OSError), "not that of device 1", h5z_gpu.write, d, moved)
    moved.number = 99
    refused((ValueError, OSError), "device 99", h5z_gpu.write, d, moved)
    nine = device.Array(np.zeros((3,) * 9, "f4"))[(np.s_[::2],) * 9]
    e = f.create_dataset("e", (2,) * 9, "f4", chunks=(2,) * 9, **h5z_gpu.Lossless())
    refused((ValueError, OSError), "axes", h5z_gpu.write, e, nine)
    assert d.id.get_num_chunks() == 0 == e.id.get_num_chunks()
""")


def test_another_device_and_none(tmp_path):
    run(tmp_path, """
with h5py.File(path, "w") as f:
    d = f.create_dataset("d", a.shape, "f4", chunks=(16, 20, 24), **h5z_gpu.Lossless())
    h5z_gpu.write(d, device.Array(a, device=1))
    assert d[...].tobytes() == a.tobytes() and coded()[0] > 0
""")
    run(tmp_path, """
with h5py.File(path, "w") as f:
    d = f.create_dataset("d", a.shape, "f4", chunks=(16, 20, 24), **h5z_gpu.Lossless())
    try:
        h5z_gpu.write(d, device.Array(a))
        raise SystemExit("taken")
    except (OSError, ValueError) as e:
        assert "H5Z_GPU_DEVICE is cpu" in str(e) and "copy the array to host memory" in str(e), e
""", H5Z_GPU_DEVICE="cpu")


def test_several_gpus_share_the_work_on_an_array_in_host_memory(tmp_path):
    """They read, batches in turn; one writes. The file is the same. 72 MB: less is not worth a GPU's start."""
    run(tmp_path, """
x = np.linspace(0, 60, 18 << 20, dtype="f4").reshape(9, 2 << 20)
x[3] = np.nan
with h5py.File(path, "w") as f:
    for name, devices in (("one", None), ("all", "all")):
        d = f.create_dataset(name, x.shape, "f4", chunks=(1, 1 << 20), **h5z_gpu.Lossy(absolute=1e-3, codec="szx"))
        before = [device.launches(k) for k in range(3)]
        h5z_gpu.write(d, x, devices=devices)
        wrote = [device.launches(k) - n for k, n in zip(range(3), before)]
        assert [n > 0 for n in wrote] == [True, False, False], (devices, wrote)
    assert frames(f["one"]) == frames(f["all"])
    before = [device.launches(k) for k in range(3)]
    back = h5z_gpu.read(f["all"], devices="all")
    assert all(device.launches(k) > n for k, n in zip(range(3), before)), "every GPU reads"
    np.testing.assert_array_equal(back, f["one"][...])
    for wrong, what in (("two", "are known"), (2, "are known")):
        try: h5z_gpu.read(f["all"], devices=wrong)
        except ValueError as e: assert what in str(e)
        else: raise AssertionError(wrong)
    try: h5z_gpu.write(f["one"], device.Array(x), devices="all")
    except ValueError as e: assert "that GPU does the work" in str(e)
    else: raise AssertionError("an array on a device")
np.testing.assert_array_equal(h5z_gpu.load(path, ["one"], devices="all")["one"], back)
h5z_gpu.save(path + "2", {"v": x}, absolute=1e-3, codec="szx", devices="all")
with h5py.File(path + "2") as f:
    assert np.nanmax(np.abs(f["v"][...].astype("f8") - x)) <= 1e-3
""", FAKE_CUDA_DEVICES="3")


def test_memory_is_given_back_and_taken_again(tmp_path):
    run(tmp_path, """
there = device.Array(a)
own = device.used()
assert h5z_gpu.release_memory() == 0, "nothing was used"
def write():
    with h5py.File(path, "w") as f:
        d = f.create_dataset("v", a.shape, "f4", chunks=(16, 20, 24), **h5z_gpu.Lossy(absolute=1e-3, codec="lorenzo"))
        h5z_gpu.write(d, there)
        return frames(d)
first, kept = write(), device.used() - own
assert kept > 0 and h5z_gpu.release_memory() == kept and device.used() == own
assert h5z_gpu.release_memory() == 0
assert write() == first and device.used() == own + kept
import os
if not os.fork():
    os._exit(0 if h5z_gpu.release_memory() == 0 else 1)  # a child makes no driver call
assert os.wait()[1] == 0
""")


def test_only_what_is_stored_crosses_the_bus(tmp_path):
    """And 2 % more at most, with the codec named; page-locked memory stays small."""
    run(tmp_path, """
z, y, x = np.meshgrid(*[np.linspace(0, 6, n) for n in (64, 256, 256)], indexing="ij")
a = (10 * np.sin(2 * z) * np.cos(3 * y) + x + np.random.default_rng(1).normal(0, 3e-3, z.shape)).astype("f4")
there, out = device.Array(a), device.Array(np.zeros_like(a))
for codec in ("szx", "planes"):
    with h5py.File(path, "w") as f:
        d = f.create_dataset("v", a.shape, "f4", chunks=(64, 128, 128), **h5z_gpu.Lossy(absolute=1e-2, codec=codec))
        before = device.moved()
        h5z_gpu.write(d, there)
        wrote, stored = sum(device.moved()) - sum(before), d.id.get_storage_size()
        h5z_gpu.read(d, out)
        read = sum(device.moved()) - sum(before) - wrote
    assert stored <= wrote <= 1.02 * stored and stored <= read <= 1.02 * stored, (codec, stored, wrote, read)
    assert np.abs(out.values.astype("f8") - a).max() <= 1e-2
assert 0 < device.most_locked() <= 64 << 20, device.most_locked()
""")


def test_without_device_memory_the_host_does_it(tmp_path):
    """From nothing at all to enough for one batch at a time. Files and values are the same, and damage alone is
    filled."""
    run(tmp_path, """
import os, warnings
def leave(room):  # bytes that the device has besides the arrays
    h5z_gpu.release_memory()
    os.environ["FAKE_CUDA_MEMORY"] = str(device.used() + room)
turned = np.ascontiguousarray(a.transpose(2, 0, 1))
there = [device.Array(a), device.Array(turned), device.Array(a)[5:38, ::2, ::-1]]
want = [a, turned, a[5:38, ::2, ::-1]]
out = [device.Array(np.zeros_like(w)) for w in want]
part, all_nan = device.Array(np.zeros((9, 11, 7), "f4")), device.Array(np.full((300, 300), np.nan, "f4"))
for room in (0, 1 << 20, 3 << 20, 6 << 20, 64 << 20):
    for how in (h5z_gpu.Lossless(), *(h5z_gpu.Lossy(absolute=1e-3, codec=c, fill_value=1e20)
                                      for c in ("szx", "lorenzo", "auto"))):
        leave(room)
        before = coded()
        with h5py.File(path, "w") as f:
            for k, w in enumerate(want):
                for name in "ab":
                    f.create_dataset(f"{name}{k}", w.shape, "f4", chunks=(16, 20, 24), **how)
                h5z_gpu.write(f[f"a{k}"], there[k])
                f[f"b{k}"][...] = w
                assert frames(f[f"a{k}"]) == frames(f[f"b{k}"]), (room, how, k)
                h5z_gpu.read(f[f"b{k}"], out[k])
                assert out[k].values.tobytes() == f[f"b{k}"][...].tobytes(), (room, how, k)
            h5z_gpu.read(f["a0"], part, np.s_[2:11, 3:14, 1:8])
            assert part.values.tobytes() == f["a0"][2:11, 3:14, 1:8].tobytes()
            never = f.create_dataset("never", a.shape, "f4", chunks=(16, 20, 24),
                                     **h5z_gpu.Lossy(absolute=1e-3, fill_value=7))
            h5z_gpu.read(never, out[0])
            assert (out[0].values == 7).all()
        assert room or coded() == before, "nothing can be done there"
    leave(room)
    low, high = h5z_gpu.views.value_range(there[0], fill_value=1e20)
    fine = a[np.isfinite(a) & (a != np.float32(1e20))]
    assert (low, high) == (fine.min(), fine.max()) and h5z_gpu.views.value_range(all_nan) is None
    assert h5z_gpu.views.on_host(there[2]).tobytes() == want[2].tobytes()
with h5py.File(path, "w") as f:
    d = f.create_dataset("d", a.shape, "f4", chunks=(16, 20, 24), fillvalue=9, **h5z_gpu.Lossless())
    h5z_gpu.write(d, a)
    at = d.id.get_chunk_info_by_coord((16, 20, 24)).byte_offset
with open(path, "r+b") as f:
    f.seek(at + 200)
    f.write(b"damaged!")
leave(0)
with h5py.File(path) as f, warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    h5z_gpu.read(f["d"], out[0], on_error="fill")
    assert len(said) == 1 and "(16, 20, 24)" in str(said[0].message)
    want = a.copy()
    want[16:32, 20:40, 24:48] = 9
    assert out[0].values.tobytes() == want.tobytes()
""")
