# SPDX-License-Identifier: MIT OR Apache-2.0
"""Whole arrays where something goes wrong beside them: damage, files that are cut, Ctrl-C, forks, threads."""
import os
import signal
import subprocess
import sys
import time

import h5py
import numpy as np
import pytest
from conftest import PLUGIN, ROOT, child, clean, python, sample

os.environ["H5Z_GPU_PLUGIN_PATH"] = str(PLUGIN.parent)
sys.path.insert(0, str(ROOT / "plugin/python"))
import h5z_gpu


def damage(path, at):
    """Changes one byte in the middle of the frame of the chunk at `at`."""
    with h5py.File(path) as f:
        info = f["v"].id.get_chunk_info_by_coord(at)
    with open(path, "r+b") as f:
        f.seek(info.byte_offset + info.size // 2)
        byte = f.read(1)
        f.seek(-1, 1)
        f.write(bytes([byte[0] ^ 0x10]))


def test_a_damaged_chunk_is_named_and_the_others_come(tmp_path):
    a = sample(shape=(40, 60))
    with h5py.File(tmp_path / "a.h5", "w") as f:
        h5z_gpu.write(f.create_dataset("v", a.shape, a.dtype, chunks=(10, 20), fillvalue=-1, **h5z_gpu.Lossy(1e-3)), a)
        want = f["v"][...]
    damage(tmp_path / "a.h5", (20, 40))
    with h5py.File(tmp_path / "a.h5") as f:
        with pytest.raises(OSError, match=r"chunk at \(20, 40\).*checksum"):
            h5z_gpu.read(f["v"])
        with pytest.warns(UserWarning, match=r"\(20, 40\)"):
            got = h5z_gpu.read(f["v"], on_error="fill")
        assert h5z_gpu.read(f["v"], selection=np.s_[:20]).tobytes() == want[:20].tobytes()
    want[20:30, 40:] = -1
    assert got.tobytes() == want.tobytes()
    with open(tmp_path / "a.h5", "r+b") as f:
        f.truncate(os.path.getsize(tmp_path / "a.h5") - 1000)
    with pytest.raises(OSError):
        h5py.File(tmp_path / "a.h5")


def test_a_file_cut_while_it_is_open(tmp_path):
    a = np.random.default_rng(1).random((400, 100)).astype("f4")
    with h5py.File(tmp_path / "a.h5", "w") as f:
        h5z_gpu.write(f.create_dataset("v", a.shape, a.dtype, chunks=(100, 100), **h5z_gpu.Lossless()), a)
    with h5py.File(tmp_path / "a.h5") as f:
        os.truncate(tmp_path / "a.h5", 60000)
        with pytest.raises(OSError, match="the file has"):
            h5z_gpu.read(f["v"])


def test_ctrl_c_leaves_a_file_that_reads(tmp_path):
    code = """
import sys; sys.path.insert(0, sys.argv[2])
import numpy as np, h5py, h5z_gpu
a = np.random.default_rng(0).normal(size=(400, 256, 256)).astype("f4")
with h5py.File(sys.argv[1], "w") as f:
    d = f.create_dataset("v", a.shape, a.dtype, chunks=(1, 64, 64), **h5z_gpu.Lossy(1e-4, codec="lorenzo"))
    print("ready", flush=True)
    try:
        while True: h5z_gpu.write(d, a, threads=1)
    except KeyboardInterrupt:
        pass
    written = d.id.get_num_chunks()
print("chunks", written)
"""
    with child(sys.executable, "-c", code, tmp_path / "a.h5", ROOT / "plugin/python", text=True,
               env=clean(H5Z_GPU_PLUGIN_PATH=str(PLUGIN.parent)), stdout=subprocess.PIPE) as p:
        assert p.stdout.readline() == "ready\n"
        time.sleep(1)
        p.send_signal(signal.SIGINT)
        out, _ = p.communicate(timeout=60)
    assert p.returncode == 0 and out.startswith("chunks "), out
    with h5py.File(tmp_path / "a.h5") as f:
        got, want = h5z_gpu.read(f["v"]), f["v"][...]
    assert got.tobytes() == want.tobytes() and (want != 0).any()


def test_a_forked_child_reads_and_writes(tmp_path):
    python("""
import sys; sys.path.insert(0, sys.argv[2])
import os, numpy as np, h5py, h5z_gpu
a = np.linspace(0, 9, 300000, dtype="f4").reshape(300, 1000)
def roundtrip(path):
    h5z_gpu.save(path, {"v": a}, h5z_gpu.Lossy(1e-3), chunks=(50, 200))
    assert np.abs(h5z_gpu.load(path)["v"] - a).max() <= 1e-3
roundtrip(sys.argv[1] + "0")
pid = os.fork()
if not pid:
    try: roundtrip(sys.argv[1] + "1")
    except BaseException as e: print(e); os._exit(1)
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
""", tmp_path / "a", ROOT / "plugin/python", env=clean(H5Z_GPU_PLUGIN_PATH=str(PLUGIN.parent)))


def test_threads_of_one_process(tmp_path):
    from concurrent.futures import ThreadPoolExecutor

    a = sample(shape=(30, 200, 200))

    def job(i):
        path = tmp_path / f"{i}.h5"
        h5z_gpu.save(path, {"v": a + i}, h5z_gpu.Lossy(1e-3), chunks=(10, 50, 50))
        return np.abs(h5z_gpu.load(path)["v"] - (a + i)).max()

    with ThreadPoolExecutor(4) as pool:
        assert all(0 < worst <= 1e-3 for worst in pool.map(job, range(8)))


@pytest.mark.parametrize("few", [np.s_[3:17, 20:38], np.s_[15:17, 25:38]], ids=["all of it", "its end"])
def test_a_damaged_chunk_in_a_box_of_few(few, tmp_path):
    a = sample(shape=(100, 100))
    with h5py.File(tmp_path / "a.h5", "w") as f:
        h5z_gpu.write(f.create_dataset("v", a.shape, a.dtype, chunks=(10, 10), fillvalue=-1, **h5z_gpu.Lossless()), a)
    damage(tmp_path / "a.h5", (10, 20))
    with h5py.File(tmp_path / "a.h5") as f:
        with pytest.raises(OSError, match=r"/v: the chunk at \(10, 20\) cannot be read: .*checksum"):
            h5z_gpu.read(f["v"], selection=few)
        with pytest.warns(UserWarning, match=r"/v: the chunk at \(10, 20\) is damaged; it is filled with -1.0"):
            got = h5z_gpu.read(f["v"], selection=few, on_error="fill")
    a[10:20, 20:30] = -1
    assert got.tobytes() == np.ascontiguousarray(a[few]).tobytes()
