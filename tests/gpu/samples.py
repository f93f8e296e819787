# SPDX-License-Identifier: MIT OR Apache-2.0
"""Samples for training in a GPU's memory, h5z_gpu.training.Samples(..., device="cuda"): samples.py FOLDER

Each tensor has to be on the GPU and hold what h5py reads, bit for bit, and the GPU must have decoded it where the
library has the list of frames.
"""
import sys

import h5py
import numpy as np
import torch

import h5z_gpu
from h5z_gpu.library import lib
from h5z_gpu.training import Order, Samples

SHAPE = (96, 64, 256)
LOSSY = {codec: dict(h5z_gpu.Lossy(absolute=1e-2, codec=codec)) for codec in ("planes", "lorenzo", "szx")}
# Filters, rows of a chunk, and whether its frames are decoded past HDF5.
STORED = {f"{name} {rows}": (how, rows, True) for name, how in {**LOSSY, "lossless": dict(h5z_gpu.Lossless())}.items()
          for rows in (1, 4, 7)} | {"gzip 4": ({"compression": "gzip"}, 4, False)}


def wanted(x, window, step):
    """All samples of an array in host memory."""
    rows = window or 1
    starts = range(0, len(x) - rows + 1, step or rows)
    return np.stack([x[k : k + rows] if window else x[k] for k in starts])


def same(got, want, dtype, what):
    want = torch.from_numpy(want).to(dtype or torch.float32)
    assert got.device.type == "cuda" and got.dtype == want.dtype, f"{what}: {got.device}, {got.dtype}"
    assert torch.equal(got.cpu().view(torch.uint8), want.view(torch.uint8)), f"{what}: other values"


def main():
    path, n = f"{sys.argv[1]}/samples.h5", 0
    rng = np.random.default_rng(2)
    a = (rng.standard_normal(SHAPE).cumsum(2) / 8).astype("f4")
    with h5py.File(path, "w") as f:
        for name, (how, rows, _) in STORED.items():
            f.create_dataset(name, data=a, chunks=(rows, *SHAPE[1:]), **how)
    for name, (_, _, listed) in STORED.items():
        with h5py.File(path) as f:
            x = f[name][...]
        before = lib.h5z_gpu_device_chunks(1)
        for window, step in ((None, None), (4, None), (6, 5)):
            want = wanted(x, window, step)
            for dtype in (None, torch.bfloat16):
                samples = Samples(path, name, window=window, step=step, dtype=dtype, device="cuda")
                what, some = f"{name}, window {window}, {dtype}", rng.integers(0, len(want), 11)
                assert len(samples) == len(want), what
                same(samples[some], want[some], dtype, what)
                same(samples[-1], want[-1], dtype, what)
                with torch.cuda.stream(torch.cuda.Stream()):
                    same(samples[some[:3]] * 1, want[some[:3]], dtype, what)
                order = Order(len(samples), 16, seed=n)
                wished, batches = list(order), list(samples.batches(order))
                assert len(wished) == len(batches), what
                for numbers, batch in zip(wished, batches):
                    same(batch, want[numbers], dtype, what)
                n += 1
        coded = lib.h5z_gpu_device_chunks(1) - before
        assert (coded > 0) == listed, f"{name}: the GPU decoded {coded} chunks"
    print(f"{n} sets of samples of {len(STORED)} datasets in the memory of {torch.cuda.get_device_name()}: what h5py "
          f"reads; the GPU decoded {lib.h5z_gpu_device_chunks(1)} chunks")


if __name__ == "__main__":
    main()
