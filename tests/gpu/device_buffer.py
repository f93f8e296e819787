# SPDX-License-Identifier: MIT OR Apache-2.0
"""Chunks in a GPU's memory through the callback of device_buffer.c, beside h5z_gpu.write of the same array.

    device_buffer.py FIELDS_FOLDER SCRATCH_FOLDER [--gb 1.0] [--reps 3]

GB/s of raw data: create the file, all chunks, close it. The file lies in the page cache (give a tmpfs). Best of the
repetitions. Today's way is beside them, timed once: a copy in host memory, through HDF5's pipeline. All frames have to
be those of `write`, byte for byte. At the end a process without the GPU decodes every file, and each value is compared
with its original.
"""
import ctypes
import os
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
from arrays import best, chunks_of, create, field, present, through_filter, write

import h5z_gpu
from h5z_gpu.index import function_of_hdf5
from h5z_gpu.library import lib
from h5z_gpu.views import as_array, described

CODECS, REL = ("planes", "lorenzo"), 1e-3
# Chunks as they follow one another in the field of 512 x 512 x 512, whose rows are two axes for the smallest.
CHUNKS = {"256 KiB": (1, 128, 512), "4 MiB": (4, 512, 512), "64 MiB": (64, 512, 512)}
# Bytes of the chunks of a call at most, one chunk at least; callers.
WAYS = {"1 chunk": (0, 1), "1 chunk, 4 callers": (0, 4), "1 chunk, 16 callers": (0, 16), "64 MiB": (64 << 20, 1),
        "64 MiB, 4 callers": (64 << 20, 4), "all": (1 << 60, 1)}


def hand_over(d, array, most, callers):
    """Has an array in a GPU's memory encoded and written, chunks of up to `most` bytes a call."""
    rank, n = d.ndim, d.shape[0] // d.chunks[0]
    assert d.shape == (n * d.chunks[0], *d.chunks[1:]), "chunks follow one another along the slowest axis"
    view, words = described(as_array(array)), d.id.get_create_plist().get_filter(0)[2]
    size = int(np.prod(d.chunks)) * d.dtype.itemsize
    library = ctypes.CDLL(Path(__file__).with_name("libdevice_buffer.so"))
    size_t, pointer = ctypes.c_size_t, ctypes.c_void_p
    failed = library.device_buffer_write(
        (ctypes.c_uint32 * len(words))(*words), size_t(len(words)), d.dtype.str.encode(), size_t(rank),
        (ctypes.c_uint64 * rank)(*d.chunks), pointer(view.data), view.device, pointer(view.stream), size_t(size),
        size_t(n), size_t(max(1, min(n, most // size))), callers, function_of_hdf5(), ctypes.c_int64(d.id.id))
    if failed:
        raise RuntimeError(f"the callback answered {failed}")


def through(path, a, chunks, how, array, *way):
    f, d = create(path, a, chunks, how)
    with f:
        hand_over(d, array, *way)


def stored(path):
    with h5py.File(path) as f:
        return chunks_of(f["d"])


def row(path, a, array, size, codec, reps):
    """A line of the table; the speed of the best way beside that of `write`, and whether all is right."""
    import torch

    chunks = CHUNKS[size]
    a, array = (x.reshape(-1, *chunks[1:]) for x in (a, array))
    how, gbs = h5z_gpu.Lossy(absolute=REL * float(np.ptp(a)), codec=codec), a.nbytes / 1e9
    base = gbs / best(reps, lambda: (write(path, a, chunks, how, array), torch.cuda.synchronize()))
    frames = stored(path)
    rates = [gbs / best(1, lambda: through_filter(path, array.cpu().numpy(), chunks, how))]
    right, before = stored(path) == frames, lib.h5z_gpu_device_chunks(0)
    for way in WAYS.values():
        rates.append(gbs / best(reps, lambda: through(path, a, chunks, how, array, *way)))
        right = right and stored(path) == frames
    coded = lib.h5z_gpu_device_chunks(0) - before == len(frames) * len(WAYS) * (reps + 1)
    said = "" if right and coded else " NOT BY THE GPU" if right else " OTHER FRAMES"
    numbers = a.nbytes / sum(map(len, frames)), base, *rates, max(rates[1:]) / base
    print(f"| `{codec}` | {size} | " + " | ".join(f"{n:.2f}" for n in numbers) + f" |{said}", flush=True)
    return max(rates[1:]) / base, not said


def judged(folder, gb, paths):
    """Decodes files here, where there is no GPU, and compares every value with the bound."""
    a = field(folder, present(folder, "nyxdens", "density"), gb)
    bound, worst = REL * float(np.ptp(a)), 0.0
    for path in paths:
        with h5py.File(path) as f:
            x = f["d"][...].reshape(a.shape)
        error = max(float(np.abs(p.astype("f8") - q).max()) for p, q in zip(x, a))
        assert 0 < error <= bound, f"{path}: an error of {error}, the bound is {bound}"
        worst = max(worst, error / bound)
    assert lib.h5z_gpu_device_chunks(1) == 0, "the GPU decoded"
    print(f"{len(paths)} files decoded without the GPU: the largest error is {worst:.4f} of the bound")


def main():
    args = sys.argv[1:]
    option = lambda name, other: args[args.index(name) + 1] if name in args else other
    gb, reps = float(option("--gb", "1.0")), int(option("--reps", "3"))
    if args[0] == "--judge":
        return judged(args[1], float(args[2]), args[3:])
    import torch

    folder, scratch = args[:2]
    a = field(folder, present(folder, "nyxdens", "density"), gb)
    array, paths, rows = torch.from_numpy(a).cuda(), [], []
    print(f"a callback for {a.nbytes / 1e9:.2f} GB on the device, GB/s, HDF5 {h5py.version.hdf5_version}; calls of one "
          "chunk, of up to 64 MiB, of all\n")
    heads = "codec", "chunk", "ratio", "`write`", "today", *WAYS, "best / `write`"
    print("".join(f"| {head} " for head in heads) + "|\n" + "|---" * len(heads) + "|")
    for codec in CODECS:
        for size in CHUNKS:
            paths.append(f"{scratch}/{codec}{CHUNKS[size][0]}.h5")
            rows.append(row(paths[-1], a, array, size, codec, reps))
    print(f"\nthe best way of each row: at least {min(rows)[0]:.2f} of write", flush=True)
    subprocess.run([sys.executable, __file__, "--judge", folder, str(gb), *paths],
                   env={**os.environ, "H5Z_GPU_DEVICE": "cpu"}, check=True)
    if not all(right for _, right in rows):
        sys.exit("a row is wrong")


if __name__ == "__main__":
    main()
