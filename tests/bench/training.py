# SPDX-License-Identifier: MIT OR Apache-2.0
"""Random samples a second by PyTorch's DataLoader: training.py [--codec planes] [--rounds 9] [--workers 0 2 4]

Of `h5z_gpu.training.Samples`, and of h5py from the same chunks uncompressed, once row by row, which the loader makes a
batch of, and once a batch at a time; files in /dev/shm, batches of 16, epochs of 0.5 GB, all taking turns. Without
workers `Samples` reads ahead by `batches`. Each sample is compared first: h5py's bit for bit, ours with the bound.
Needs `pip install torch`.
"""

import argparse
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import h5py
import numpy as np
import torch
from torch.utils.data import BatchSampler, DataLoader, RandomSampler

import h5z_gpu
from h5z_gpu.training import Order, Samples

FIELDS = Path(__file__).parents[2] / "target/fields/full"
# Field, rows of a sample and bound, as a part of the range.
SETS = {"wind": (1, 1e-2), "turbulence": (1, 2e-2), "relief": (54, 1e-3)}
BATCH, EPOCH = 16, 1 << 29  # bytes: the field again and again


class Rows:
    """What people write: sample k by h5py, from a file that each worker opens."""

    def __init__(self, path, rows, count):
        self.path, self.rows, self.count, self.data = path, rows, count, None

    def __len__(self):
        return self.count

    def box(self, k):
        if self.data is None:
            self.data = h5py.File(self.path)["v"]
        return np.s_[k * self.rows : (k + 1) * self.rows]

    def __getitem__(self, k):
        box = self.box(k)
        return torch.from_numpy(self.data[box])


class Batches(Rows):
    """A batch at a time, into one array."""

    def __getitem__(self, ks):
        boxes = [self.box(k) for k in ks]
        out = np.empty((len(ks), self.rows, *self.data.shape[1:]), self.data.dtype)
        for k, box in enumerate(boxes):
            self.data.read_direct(out, box, np.s_[k])
        return torch.from_numpy(out)


def files(folder, name, rows, part, codec):
    """The field in chunks of a sample, as it is and by the filter; values, bound and ratio."""
    with h5py.File(FIELDS / f"{name}.h5") as f:
        x = f["data"][...]
    x = x[: len(x) // rows * rows]
    times = max(1, EPOCH // x.nbytes)
    bound = part * float(np.ptp(x))
    for kind, how in (("plain", None), ("ours", h5z_gpu.Lossy(absolute=bound, codec=codec))):
        with h5py.File(f"{folder}/{kind}.h5", "w") as f:
            d = f.create_dataset("v", (times * len(x), *x.shape[1:]), x.dtype, chunks=(rows, *x.shape[1:]),
                                 compression=how)
            for k in range(times):
                h5z_gpu.write(d, x, np.s_[k * len(x) : (k + 1) * len(x)]) if how else d.write_direct(
                    x, None, np.s_[k * len(x) : (k + 1) * len(x)])
            size = d.id.get_storage_size()
    return x, bound, times * len(x) // rows, times * x.nbytes / size


class Ahead:
    """Batches of `Samples` without worker processes."""

    def __init__(self, samples, order):
        self.samples, self.order = samples, order

    def __iter__(self):
        return self.samples.batches(self.order)


def loaders(folder, rows, count, workers):
    more = {"num_workers": workers, "persistent_workers": workers > 0}
    plain, ours = f"{folder}/plain.h5", f"{folder}/ours.h5"
    by_batch = BatchSampler(RandomSampler(range(count)), BATCH, drop_last=False)
    samples, order = Samples(ours, "v", window=rows), Order(count, BATCH)
    return {
        "h5py, rows": DataLoader(Rows(plain, rows, count), batch_size=BATCH, shuffle=True, **more),
        "h5py, batches": DataLoader(Batches(plain, rows, count), batch_size=None, sampler=by_batch, **more),
        "Samples": DataLoader(samples, batch_size=None, sampler=order, **more) if workers else Ahead(samples, order),
    }


def cpu():
    """Seconds of CPU of this process and of all workers."""
    stats = [Path(f"/proc/{p.pid}/stat").read_text().rpartition(")")[2].split() for p in
             multiprocessing.active_children()]
    return time.process_time() + sum(int(s[11]) + int(s[12]) for s in stats) / os.sysconf("SC_CLK_TCK")


def epoch(loader, shape):
    """Samples a second, and microseconds of CPU for one."""
    begin, used, count = time.perf_counter(), cpu(), 0
    for batch in loader:
        count += len(batch)
    assert batch.shape[1:] == shape
    return count / (time.perf_counter() - begin), 1e6 * (cpu() - used) / count


def judge(x, bound, loader, name, rows):
    """Each sample is one of the field's, within the bound."""
    there = x.reshape(-1, rows, *x.shape[1:])
    for batch in loader:
        for sample in batch.numpy():
            worst = np.abs(there.astype("f8") - sample).reshape(len(there), -1).max(1).min()
            assert worst <= (bound if name == "Samples" else 0), f"{name}: {worst}, bound {bound}"


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--codec", default="planes")
    a.add_argument("--rounds", type=int, default=9)
    a.add_argument("--workers", type=int, nargs="+", default=[0, 2, 4])
    a = a.parse_args()
    torch.set_num_threads(1)
    print(f"{a.codec}, PyTorch {torch.__version__}, h5py {h5py.__version__}, median of {a.rounds}, in brackets least "
          "and most; CPU for a sample\n")
    print("| field | sample | ratio | workers | h5py, rows | h5py, batches | Samples | beside the better |")
    print("|---|---|---|---|---|---|---|---|")
    for name, (rows, part) in SETS.items():
        with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
            x, bound, count, ratio = files(folder, name, rows, part, a.codec)
            shape = (rows, *x.shape[1:])
            for key, loader in loaders(folder, rows, len(x) // rows, 0).items():
                judge(x, bound, loader, key, rows)
            for workers in a.workers:
                ways = loaders(folder, rows, count, workers)
                found = {key: [] for key in ways}
                for turn in range(a.rounds + 1):
                    for key, loader in ways.items():
                        rate = epoch(loader, shape)
                        found[key] += [rate] * (turn > 0)  # the first starts the workers
                rates, times = ({k: statistics.median(column) for k, column in each.items()} for each in (
                    {k: [x[i] for x in some] for k, some in found.items()} for i in (0, 1)))
                cells = [f"{rates[k]:.0f} ({min(some)[0]:.0f}, {max(some)[0]:.0f}); {times[k]:.0f} µs"
                         for k, some in found.items()]
                ours, their = times.pop("Samples"), min(times.values())
                beside = f"{rates.pop('Samples') / max(rates.values()):.2f}; {their / ours:.2f}"
                print(f"| {name} | {' × '.join(map(str, shape))} | {ratio:.1f} | {workers}", *cells, f"{beside} |",
                      sep=" | ", flush=True)
                del ways, loader


if __name__ == "__main__":
    sys.exit(main())
