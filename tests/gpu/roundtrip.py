# SPDX-License-Identifier: MIT OR Apache-2.0
"""h5py writes and reads through the plugin, and the GPU is seen to do it.

    roundtrip.py FOLDER        HDF5_PLUGIN_PATH names the plugin's folder; FOLDER is for files

Every chunk must be coded by the GPU (the plugin counts), be byte for byte what the CPU writes (another process), and
hold its bound. Every size of chunk goes to the GPU here.
"""
import ctypes
import os
import subprocess
import sys

import h5py
import numpy as np

LOSSLESS_NDZIP, SZX_RANGE, SZX_ABSOLUTE, SZX_POINT = 390000, 121003, 111003, 131003
LORENZO_RANGE, LORENZO_ABSOLUTE, LORENZO_POINT = 221003, 211003, 231003


def cases():
    """Name, array, chunks, word, largest error allowed (an array or a number)."""
    r = np.random.default_rng(3)
    wave = np.sin(np.linspace(0, 60, 200 * 300 * 120)).reshape(200, 300, 120)
    noisy = (wave + 1e-4 * r.standard_normal(wave.shape)) * 40
    odd = noisy.astype("f4")
    odd[::7, 3, 5] = np.nan
    odd[5, ::11, 7] = np.inf
    yield "f32 3-D", noisy.astype("f4"), (64, 128, 120), SZX_RANGE, "range"
    yield "f32 odd values", odd, (50, 77, 33), SZX_ABSOLUTE, 1e-3
    yield "f64 2-D", noisy.reshape(600, -1), (100, 4096), SZX_ABSOLUTE, 1e-3
    yield "f64 point-wise", noisy.reshape(-1), (1 << 19,), SZX_POINT, "point"
    yield "f32 big-endian", noisy.astype(">f4"), (64, 128, 120), SZX_RANGE, "range"
    yield "f32 3-D, lorenzo", noisy.astype("f4"), (64, 128, 120), LORENZO_RANGE, "range"
    yield "f32 odd values, lorenzo", odd, (50, 77, 33), LORENZO_ABSOLUTE, 1e-3
    yield "f64 1-D, lorenzo", noisy.reshape(-1), (1 << 19,), LORENZO_POINT, "point"
    yield "f64 big-endian, lorenzo", noisy.reshape(600, -1).astype(">f8"), (100, 4096), LORENZO_ABSOLUTE, 1e-3
    yield "f32 lossless", noisy.astype("f4"), (64, 128, 120), LOSSLESS_NDZIP, 0
    yield "f64 lossless", noisy, (64, 64, 64), LOSSLESS_NDZIP, 0
    yield "i32 lossless", (noisy * 100).astype("i4"), (64, 128, 120), LOSSLESS_NDZIP, 0


def write(path):
    with h5py.File(path, "w") as f:
        for name, a, chunks, word, _ in cases():
            f.create_dataset(name, data=a, chunks=chunks, compression=443, compression_opts=(word,))


def chunks_of(path):
    with h5py.File(path) as f:
        return {
            name: [bytes(d.id.read_direct_chunk(d.id.get_chunk_info(k).chunk_offset)[1])
                   for k in range(d.id.get_num_chunks())]
            for name, d in f.items()
        }


def holds(a, b, bound):
    a8, b8 = a.astype("f8"), b.astype("f8")
    finite = np.isfinite(a8)
    if bound == 0 or not finite.all():
        same = a.astype(a.dtype.newbyteorder("<")).view(f"<u{a.dtype.itemsize}") == b.astype(
            b.dtype.newbyteorder("<")
        ).view(f"<u{a.dtype.itemsize}")
        if not (same if bound == 0 else same[~finite]).all():
            return False
    if bound == 0:
        return True
    allowed = {"range": lambda: 1e-3 * np.ptp(a8[finite]), "point": lambda: 1e-3 * abs(a8[finite])}
    limit = allowed[bound]() if isinstance(bound, str) else bound
    return bool((abs(a8[finite] - b8[finite]) <= limit).all())


def main():
    folder = sys.argv[1]
    mine, other = f"{folder}/gpu.h5", f"{folder}/cpu.h5"
    if len(sys.argv) > 2:
        return write(other)
    os.environ["H5Z_GPU_MIN_BYTES"] = "0"
    plugin = ctypes.CDLL(f"{os.environ['HDF5_PLUGIN_PATH']}/libh5zgpu.so")
    plugin.h5z_gpu_device_chunks.restype = ctypes.c_int64
    counts = lambda: tuple(plugin.h5z_gpu_device_chunks(decoded) for decoded in (0, 1))
    write(mine)
    subprocess.run([sys.executable, __file__, folder, "cpu"], env={**os.environ, "H5Z_GPU_DEVICE": "cpu"}, check=True)
    ours, theirs = chunks_of(mine), chunks_of(other)
    # Frames that hold raw bytes (codec 0 in byte 9) were tried on the GPU and are no work for it when read.
    everything = sum(len(c) for c in ours.values())
    coded = sum(frame[9] != 0 for c in ours.values() for frame in c)
    encoded = counts()[0]
    wrong = [f"{name}: bytes differ from the CPU's" for name in ours if ours[name] != theirs[name]]
    with h5py.File(mine) as f:
        for name, a, _, _, bound in cases():
            if not holds(a, f[name][:], bound):
                wrong.append(f"{name}: the bound is broken")
    decoded = counts()[1]
    if encoded < everything or decoded < coded:
        wrong.append(f"the GPU encoded {encoded} of {everything} chunks and decoded {decoded} of {coded}")
    print("; ".join(wrong) or f"{everything} chunks encoded and {decoded} decoded by the GPU through h5py, as by "
          f"the CPU")
    sys.exit(bool(wrong))


main()
