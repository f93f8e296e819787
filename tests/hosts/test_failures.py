# SPDX-License-Identifier: MIT OR Apache-2.0
"""What is told of a chunk that could not be read or written: damage, a system call that failed, too little memory."""
import sys

import conftest
import pytest
from conftest import HERE, PLUGIN, ROOT, clean

BEGIN = """
import ctypes, errno, os, resource, sys, warnings
import h5py, numpy as np, h5z_gpu
path = sys.argv[1]
a = np.cumsum(np.random.default_rng(1).normal(0, 1, (16, 64, 64)), 2).astype("f4")
def write(**more):
    with h5py.File(path, "w") as f:
        d = f.create_dataset("g/d", data=a, chunks=(1, 64, 64), fillvalue=-1, **h5z_gpu.Lossless())
        return [d.id.get_chunk_info(k).byte_offset for k in range(16)]
"""


def run(code, *args, **more):
    env = clean(PYTHONPATH=f"{ROOT}/plugin/python:{HERE}", H5Z_GPU_PLUGIN_PATH=str(PLUGIN.parent)) | more
    said = conftest.run(sys.executable, "-c", BEGIN + code + "\nprint('all well')", *args, env=env)
    assert said.endswith("all well\n"), said


@pytest.mark.parametrize("on_error", ["raise", "fill"])
def test_a_read_that_fails_is_no_damage(on_error, tmp_path, faults):
    run("""
offsets = write()
fail_read = ctypes.CDLL(None).fail_read
with open(path, "r+b") as f:  # and one that is damaged, which comes first and last
    for k in (2, 14):
        f.seek(offsets[k] + 100)
        f.write(b"damaged!")
with h5py.File(path) as f, warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    for threads in (1, 4):
        for error in (errno.EIO, errno.ESTALE):
            fail_read(9, error)
            try:
                h5z_gpu.read(f["g/d"], on_error=sys.argv[2], threads=threads)
                raise SystemExit("taken")
            except OSError as e:
                assert (e.errno, e.filename) == (error, path), (e.errno, e.filename)
                assert "/g/d: the chunk at" in str(e) and os.strerror(error) in str(e), e
                assert threads > 1 or "the chunk at (8, 0, 0)" in str(e), e
    assert not said, "nothing was filled"
    if sys.argv[2] == "fill":  # the disk is well again
        got = h5z_gpu.read(f["g/d"], on_error="fill")
        assert len(said) == 2 and (got[[2, 14]] == -1).all()
        rest = [k for k in range(16) if k not in (2, 14)]
        assert got[rest].tobytes() == a[rest].tobytes()
""", tmp_path / "fails.h5", on_error, LD_PRELOAD=faults)


@pytest.mark.parametrize("on_error", ["raise", "fill"])
def test_too_little_memory_is_no_damage(on_error, tmp_path):
    run("""
a = np.random.default_rng(1).integers(0, 256, (2, 48 << 20), np.uint8)
with h5py.File(path, "w") as f:
    f.create_dataset("d", data=a, chunks=(1, 48 << 20), **h5z_gpu.Lossless())
out = np.empty_like(a)
with h5py.File(path) as f, warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    h5z_gpu.read(f["d"], out[:, :1], np.s_[:, :1], threads=1)
    h5z_gpu.release_memory()
    with open("/proc/self/statm") as statm:
        now = int(statm.read().split()[0]) * resource.getpagesize()
    most = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (now + (24 << 20), most))
    taken = []
    try:
        while len(taken) < 1000:  # what the system keeps for threads that have ended
            taken.append(np.empty(16 << 20, "u1"))
    except MemoryError:
        pass
    try:
        h5z_gpu.read(f["d"], out, on_error=sys.argv[2], threads=1)
        raise SystemExit("taken")
    except MemoryError as e:
        why = str(e)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    assert "/d: the chunk at (0, 0)" in why and "no memory for" in why and "H5Z_GPU_THREADS" in why, why
    assert not said, [str(s.message) for s in said]
    assert h5z_gpu.read(f["d"], out, threads=1).tobytes() == a.tobytes()
""", tmp_path / "memory.h5", on_error)


def test_what_h5py_cannot_write_says_why(tmp_path, faults):
    """A call that fails, and a real limit. What was written before stays, and the rest can be written when there is
    room."""
    run("""
write()
def refused(error, d):
    try:
        h5z_gpu.write(d, -a)
        raise SystemExit("taken")
    except OSError as e:
        assert (e.errno, e.filename) == (error, path), (e.errno, e.filename, str(e))
        assert os.strerror(error) in str(e) and "the chunk at" in str(e) and "error stack" not in str(e), e
    for k in range(16):
        got = h5z_gpu.read(d, selection=k)
        assert got.tobytes() in (a[k].tobytes(), (-a[k]).tobytes()) or (got == -1).all(), k
for error in (errno.ENOSPC, errno.EIO, errno.EDQUOT):
    with h5py.File(path, "r+") as f:
        ctypes.CDLL(None).fail_write(5, error)
        refused(error, f["g/d"])
        h5z_gpu.write(f["g/d"], a)
    with h5py.File(path) as f:
        assert f["g/d"][...].tobytes() == a.tobytes()
# Python ignores SIGXFSZ: the call fails.
with h5py.File(path, "r+") as f:
    d = f.create_dataset("new", a.shape, "f4", chunks=(1, 64, 64), fillvalue=-1, **h5z_gpu.Lossless())
    f.flush()
    most = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (os.path.getsize(path) + 40_000, most))
    try:
        refused(errno.EFBIG, d)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    h5z_gpu.write(d, a)
with h5py.File(path) as f:
    assert f["new"][...].tobytes() == a.tobytes() == f["g/d"][...].tobytes()
""", tmp_path / "full.h5", LD_PRELOAD=faults)


def test_codecs_without_hdf5_tell_memory_from_damage(tmp_path):
    run("""
from h5z_gpu import batches, capi, library
frame = np.frombuffer(h5z_gpu.compress(a[0]), np.uint8)
for wrong in (frame[:-1], np.frombuffer(bytes(frame[:-9]) + b"damaged!!", np.uint8)):
    for decode in (lambda: h5z_gpu.decompress(wrong, "f4"), lambda: batches.decode([wrong], [np.empty_like(a[0])])):
        try:
            decode()
            raise SystemExit("taken")
        except ValueError as e:
            assert "damaged chunk" in str(e), e
assert isinstance(library.failure(capi.NO_MEMORY, "text"), MemoryError)
""", tmp_path / "none")
