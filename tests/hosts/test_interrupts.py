# SPDX-License-Identifier: MIT OR Apache-2.0
"""Ctrl-C at any moment: no thread of the library outlives the call that began it, none reads an array that is gone,
files stay right.

H5Z_GPU_INTERRUPTS=n interrupts n times instead of 60.
"""
import os

from conftest import use

CODE = """
import os, random, signal, sys, time
import h5py, numpy as np, h5z_gpu
from h5z_gpu.library import lib

def working():
    names = []
    for task in os.listdir("/proc/self/task"):
        try:
            names.append(open(f"/proc/self/task/{task}/comm").read())
        except OSError:  # it has just ended
            pass
    return sum(name.startswith("h5z-gpu encode") for name in names)

def none_works():
    end = time.monotonic() + 1  # a thread that was waited for leaves the list a moment later
    while working() and time.monotonic() < end:
        time.sleep(1e-3)
    assert not working(), f"{working()} threads after {hits} interrupts"

# A program that is started in the background may have been told to ignore SIGINT: this signal raises KeyboardInterrupt
# whatever was.
signal.signal(signal.SIGALRM, signal.default_int_handler)
interrupt = lambda least, most: signal.setitimer(signal.ITIMER_REAL, random.uniform(least, most))
begin = lib.h5z_gpu_encode_array
def aimed(*args):  # into the call that begins the work, or just behind it
    interrupt(1e-6, 3e-4)
    return begin(*args)

random.seed(1)
rng = np.random.default_rng(1)
arrays = [rng.normal(0, 1, (48, 256, 256)).astype("f4") for _ in range(2)]
wanted, hits, rounds, took = int(sys.argv[2]), 0, 0, 0.05
with h5py.File(sys.argv[1], "w") as f:
    d = f.create_dataset("d", arrays[0].shape, "f4", chunks=(2, 64, 64), **h5z_gpu.Lossless())
    h5z_gpu.write(d, arrays[0], threads=4)
    while hits < wanted:
        rounds += 1
        a = arrays[rounds % 2].copy()  # goes when the call has ended
        try:
            try:
                if rounds % 3 == 2:
                    interrupt(1e-6, took)
                    h5z_gpu.read(d, threads=4)
                elif rounds % 3:
                    lib.h5z_gpu_encode_array = aimed
                    h5z_gpu.write(d, a, threads=4)
                else:
                    interrupt(1e-6, took)
                    started = time.perf_counter()
                    h5z_gpu.write(d, a, threads=4)
                    took = time.perf_counter() - started
            finally:
                lib.h5z_gpu_encode_array = begin
                signal.setitimer(signal.ITIMER_REAL, 0)
        except KeyboardInterrupt as kept:  # with its traceback, as a notebook keeps it
            hits += 1
            none_works()
        del a
    none_works()
    whole = lambda: h5z_gpu.read(d).reshape(24, 2, 4, 64, 4, 64)
    old, new = (x.reshape(24, 2, 4, 64, 4, 64) for x in arrays)
    same = [(whole() == x).all(axis=(1, 3, 5)) for x in (old, new)]
    assert (same[0] | same[1]).all(), "a chunk is neither old nor new"
    h5z_gpu.write(d, arrays[1])
    assert d[...].tobytes() == arrays[1].tobytes()
print(f"{hits} interrupts in {rounds} calls")
"""


def test_nothing_is_left_after_ctrl_c(tmp_path):
    count = os.environ.get("H5Z_GPU_INTERRUPTS", "60")
    said = use(CODE, tmp_path / "a.h5", count)
    # Python itself says so of interrupts that come while it tidies up.
    assert said.splitlines()[-1].startswith(f"{count} interrupts"), said
