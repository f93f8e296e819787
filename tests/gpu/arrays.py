# SPDX-License-Identifier: MIT OR Apache-2.0
"""Whole arrays to HDF5 files and back by h5z_gpu.write and h5z_gpu.read, from and to a GPU's memory and NumPy's.

    arrays.py FIELDS_FOLDER SCRATCH_FOLDER [--gb 1.0] [--reps 3] [--only device,numpy,choice,boxes,gpus,ranks,cpu,check]

GB/s of raw data, whole calls: create or open, all chunks, close. The file lies in the page cache (give a tmpfs). Best
of the repetitions. Beside each write of a device array stands the time of `pwrite` of the same frames in the same run,
into a new file, and h5py's own writing without a filter; beside NumPy's the filter in HDF5's pipeline. Every file is
read back by plain h5py and compared: frames of the device with those of the CPU, values within the bound.
"""
import ctypes
import logging
import math
import multiprocessing
import os
import subprocess
import sys
import time

import h5py
import numpy as np

import h5z_gpu
from h5z_gpu.library import checked, lib
from h5z_gpu.views import described, numbers, origins_of

logging.disable(logging.ERROR)

CHUNKS = {"16 MiB": (128, 128, 256), "4 MiB": (64, 128, 128), "1 MiB": (32, 64, 128), "256 KiB": (16, 64, 64),
          "64 KiB": (8, 32, 64)}
REL = 1e-3


def field(folder, name, gb):
    dims = next(line.split()[2] for line in open(f"{folder}/fields.txt") if f"{name}.f32" in line)
    a = np.fromfile(f"{folder}/{name}.f32", "<f4").reshape([int(n) for n in dims.split("x")])
    return np.concatenate([a] * max(1, round(gb * 1e9 / a.nbytes)))


def present(folder, *names):
    """The first of these fields that the folder has."""
    return next(n for n in names if os.path.exists(f"{folder}/{n}.f32"))


def best(reps, work):
    """Seconds of the fastest of some runs after a first one."""
    times = []
    for _ in range(reps + 1):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return min(times[1:])


def filters(how):
    return {} if how is None else dict(how)


def create(path, a, chunks, how):
    f = h5py.File(path, "w")
    return f, f.create_dataset("d", a.shape, a.dtype, chunks=tuple(map(min, chunks, a.shape)), **filters(how))


def write(path, a, chunks, how, array):
    f, d = create(path, a, chunks, how)
    with f:
        h5z_gpu.write(d, array)


def through_filter(path, a, chunks, how):
    f, d = create(path, a, chunks, how)
    with f:
        d[...] = a


def read(path, out):
    with h5py.File(path) as f:
        h5z_gpu.read(f["d"], out)


def read_plain(path, out):
    with h5py.File(path) as f:
        f["d"].read_direct(out)


def frames(path):
    """The frames of a file, and bytes of all."""
    found = []
    with h5py.File(path) as f:
        d = f["d"]
        d.id.chunk_iter(lambda info: found.append(d.id.read_direct_chunk(info.chunk_offset)[1]))
    return found, sum(map(len, found))


def encode(array, how, chunk, devices=None):
    """The frames of an array's chunks, in host memory; no file."""
    view, words, rank = described(array, devices), how.words, array.ndim
    origins = origins_of((0,) * rank, array.shape, chunk)
    frames, work = [], ctypes.c_void_p()
    at, lens = ctypes.POINTER(ctypes.c_void_p)(), ctypes.POINTER(ctypes.c_size_t)()
    try:
        checked(lib.h5z_gpu_encode_array(
            (ctypes.c_uint32 * max(1, len(words)))(*words), ctypes.c_size_t(len(words)), ctypes.byref(view),
            (ctypes.c_uint64 * rank)(*chunk), None, ctypes.c_size_t(len(origins)), numbers(origins, ctypes.c_int64), 0,
            ctypes.byref(work),
        ))
        while n := checked(lib.h5z_gpu_next(work, ctypes.byref(at), ctypes.byref(lens))):
            frames += [ctypes.string_at(at[k], lens[k]) for k in range(n)]
    finally:
        lib.h5z_gpu_end(ctypes.byref(work))
    return frames


def decode(frames, array, chunk, devices=None):
    """Frames in host memory into an array."""
    view, n, rank = described(array, devices), len(frames), array.ndim
    origins = origins_of((0,) * rank, array.shape, chunk)
    at = ctypes.cast((ctypes.c_char_p * n)(*frames), ctypes.POINTER(ctypes.c_void_p))
    lens, status = (ctypes.c_size_t * n)(*map(len, frames)), (ctypes.c_int * n)()
    done = checked(lib.h5z_gpu_decode_memory(n, at, lens, ctypes.byref(view), (ctypes.c_uint64 * rank)(*chunk),
                                             numbers(origins, ctypes.c_int64), 0, status))
    assert done == n, lib.h5z_gpu_last_error()


def pwrite(path, found):
    """Seconds of writing frames one behind the other into a new file."""

    def work():
        fd = os.open(path, os.O_CREAT | os.O_TRUNC | os.O_RDWR)
        at = 0
        for frame in found:
            at += os.pwrite(fd, frame, at)
        os.close(fd)
        os.unlink(path)

    return best(2, work)


def line(name, chunk, *numbers):
    print(f"  {name:26} {chunk:>8} " + " ".join(f"{n:>9}" if isinstance(n, str) else f"{n:9.2f}" for n in numbers),
          flush=True)


def device(folder, scratch, gb, reps):
    import torch

    path = f"{scratch}/arrays.h5"
    print("device arrays                          ratio     write      read    pwrite    /pwrite  GB/s, times")
    for name, codec, chunk in [
        (present(folder, "nyxdens", "density"), "lorenzo", "4 MiB"),
        (present(folder, "nyxdens", "density"), "szx", "4 MiB"),
        (present(folder, "nyxdens", "density"), "planes", "4 MiB"),
        (present(folder, "nyxdens", "density"), None, "4 MiB"),
        (present(folder, "velturb", "velocity"), "lorenzo", "4 MiB"),
        (present(folder, "velturb", "velocity"), "szx", "4 MiB"),
        (present(folder, "velturb", "velocity"), None, "4 MiB"),
        (present(folder, "nyxdens", "density"), "lorenzo", "16 MiB"),
        (present(folder, "nyxdens", "density"), "szx", "256 KiB"),
        (present(folder, "nyxdens", "density"), "lorenzo", "256 KiB"),
        (present(folder, "nyxdens", "density"), None, "256 KiB"),
        (present(folder, "nyxdens", "density"), "szx", "64 KiB"),
    ]:
        a = field(folder, name, gb)
        on = torch.from_numpy(a).cuda()
        out = torch.empty_like(on)
        how, shape = h5z_gpu.Lossy(relative=REL, codec=codec or "auto"), CHUNKS[chunk]

        def run():
            write(path, a, shape, how, on)
            torch.cuda.synchronize()

        seconds = best(reps, run)
        found, stored = frames(path)
        plain = pwrite(f"{scratch}/frames", found)

        def back():
            read(path, out)
            torch.cuda.synchronize()

        again = best(reps, back)
        host = np.empty_like(a)
        read_plain(path, host)
        right = np.array_equal(out.cpu().numpy().view("u4"), host.view("u4"))
        gbs = a.nbytes / 1e9
        line(f"{name} {codec or 'auto'}", chunk, a.nbytes / stored, gbs / seconds, gbs / again, gbs / plain,
             seconds / plain, "" if right else "WRONG")
        os.unlink(path)
    plain = best(1, lambda: through_filter(path, a, CHUNKS["4 MiB"], None))
    line("h5py without a filter", "4 MiB", 1.0, gbs / plain, gbs / best(1, lambda: read_plain(path, host)))
    os.unlink(path)


def numpy(folder, scratch, gb, reps, codecs=("lorenzo", "szx", "planes"), peers=False):
    path = f"{scratch}/arrays.h5"
    print("NumPy                                  ratio     write filter,wr      times   read  filter,rd   times "
          " fresh")
    rows = [(present(folder, "nyxdens", "density"), c) for c in codecs] + [(present(folder, "velturb", "velocity"), c)
                                                                           for c in codecs]
    for name, codec in rows:
        a = field(folder, name, gb)
        out, how, shape = np.zeros_like(a), h5z_gpu.Lossy(relative=REL, codec=codec), CHUNKS["4 MiB"]
        gbs = a.nbytes / 1e9
        ours = gbs / best(reps, lambda: write(path, a, shape, how, a))
        stored = frames(path)[1]
        back = gbs / best(reps, lambda: read(path, out))
        fresh = gbs / best(reps, lambda: read(path, np.empty_like(a)))
        plain = gbs / best(1, lambda: through_filter(path, a, shape, how))
        plain_back = gbs / best(1, lambda: read_plain(path, out))
        line(f"{name} {codec}", "4 MiB", a.nbytes / stored, ours, plain, ours / plain, back, plain_back,
             back / plain_back, fresh)
        os.unlink(path)
    if peers:
        try:
            import hdf5plugin
        except ImportError:
            return
        for label, keywords in [("Blosc2 zstd-5",
                                 hdf5plugin.Blosc2(cname="zstd", clevel=5, filters=hdf5plugin.Blosc2.BITSHUFFLE)),
                                ("Blosc2 lz4", hdf5plugin.Blosc2(cname="lz4", clevel=5,
                                                                 filters=hdf5plugin.Blosc2.BITSHUFFLE))]:
            w = gbs / best(1, lambda: through_filter(path, a, shape, keywords))
            stored = frames(path)[1]
            r = gbs / best(1, lambda: read_plain(path, out))
            line(label, "4 MiB", a.nbytes / stored, w, "", "", r)
            os.unlink(path)
        how = h5z_gpu.Lossless()
        w = gbs / best(1, lambda: write(path, a, shape, how, a))
        stored = frames(path)[1]
        line("ours, lossless", "4 MiB", a.nbytes / stored, w, "", "", gbs / best(1, lambda: read(path, out)))
        os.unlink(path)


def written(path, a, chunks, codec, rel, array):
    """GB/s of writing, best of two after a first, and the ratio; with an axis of steps before what has three."""
    chunks = {1: (math.prod(chunks),), 2: (chunks[0] * chunks[1] // 16, 16 * chunks[2]), 3: chunks}.get(
        a.ndim, (1,) * (a.ndim - 3) + chunks)
    how = h5z_gpu.Lossy(relative=rel, codec=codec)
    gbs = a.nbytes / 1e9 / best(2, lambda: write(path, a, chunks, how, array))
    ratio = a.nbytes / frames(path)[1]
    os.unlink(path)
    return gbs, ratio


def choice(folder, scratch, gb):
    """What it costs to leave the codec open: beside the faster codec by name; beside the same array from NumPy."""
    import torch

    path, shares = f"{scratch}/choice.h5", {"auto": [], "fast": []}
    print("device arrays, codec open                  1e-2      1e-3      1e-4      1e-6  GB/s, of the faster by name")
    for name in [os.path.basename(w[0])[:-4] for w in map(str.split, open(f"{folder}/fields.txt")) if w[1] == "f32"]:
        a = field(folder, name, gb)
        a = a[:max(1, round(gb * 1e9 / a[0].nbytes))]
        on = torch.from_numpy(a).cuda()
        for size in ("4 MiB", "256 KiB"):
            cells = {codec: [] for codec in shares}
            for rel in (1e-2, 1e-3, 1e-4, 1e-6):
                gbs = {codec: written(path, a, CHUNKS[size], codec, rel, on)[0]
                       for codec in (*shares, "lorenzo", "planes")}
                for codec in shares:
                    share = gbs[codec] / max(gbs["lorenzo"], gbs["planes"])
                    cells[codec].append(f"{gbs[codec]:.1f} {share:.2f}")
                    shares[codec].append(share)
            for codec, shown in cells.items():
                line(f"{name} {codec}", size, *shown)
    for codec, all_ in shares.items():
        mean = math.exp(sum(map(math.log, all_)) / len(all_))
        print(f"  {codec}: geometric mean of {len(all_)}: {mean:.3f}, least {min(all_):.3f}")
    waves = np.add.outer(np.add.outer(np.sin(np.arange(256) / 31), np.cos(np.arange(512) / 17)),
                         np.sin(np.arange(512) / 23))
    random = np.random.default_rng(3)
    noise = random.normal(size=waves.shape)
    rough = waves + 0.01 * noise
    land = np.add.outer(np.sin(np.arange(512) / 60), np.cos(np.arange(512) / 77)) > 0.4
    print("codec open, 1e-3                          device     NumPy     times     ratio  GB/s")
    for name, a in {"units of 0.01": (np.round(rough * 100) * 0.01).astype("f4"),
                    "200 numbers": random.normal(size=200).astype("f4")[random.integers(0, 200, waves.shape)],
                    "NaN on land": np.where(land, np.float32(np.nan), rough.astype("f4")),
                    "1e20 on land": np.where(land, np.float32(1e20), rough.astype("f4")),
                    "f16": rough.astype("f2"), "counts": np.floor(np.exp(waves + noise)).astype("f4"),
                    "f64": rough}.items():
        on = torch.from_numpy(a).cuda()
        for size in ("4 MiB", "256 KiB"):
            (there, ratio), (here, _) = (written(path, a, CHUNKS[size], "auto", REL, x) for x in (on, a))
            line(name, size, there, here, there / here, ratio)


def boxes(folder, scratch, count=40, side=64):
    """Milliseconds of reading boxes at random places, each by itself, beside plain h5py."""
    path = f"{scratch}/boxes.h5"
    a = field(folder, present(folder, "nyxdens", "density"), 0.1)
    rng = np.random.default_rng(5)
    places = [tuple(slice(k, k + side) for k in rng.integers(0, np.array(a.shape) - side + 1)) for _ in range(count)]
    print(f"{count} boxes of {side} x {side} x {side}          ratio      ours     plain     times  ms")
    for codec in ("lorenzo", "planes", "szx", None):
        how = h5z_gpu.Lossless() if codec is None else h5z_gpu.Lossy(relative=REL, codec=codec)
        write(path, a, CHUNKS["16 MiB"], how, a)
        stored = frames(path)[1]
        with h5py.File(path) as f:
            d = f["d"]
            ours = best(1, lambda: [h5z_gpu.read(d, selection=box) for box in places])
            plain = best(1, lambda: [d[box] for box in places])
            assert all(np.array_equal(h5z_gpu.read(d, selection=box), d[box]) for box in places[:5])
        line(f"density {codec or 'lossless'}", "16 MiB", a.nbytes / stored, 1e3 * ours / count, 1e3 * plain / count,
             plain / ours)
        os.unlink(path)


def gpus(folder, gb, reps):
    """NumPy arrays to frames in host memory and back, by one GPU and by all of them; with eight CPU threads and more
    the one that decodes alone is the CPU."""
    import torch

    count = torch.cuda.device_count()
    print(f"{count} GPUs, NumPy                          ratio encode one       all     times decode one       all    "
          f" times")
    if count < 2:
        return
    for codec in ("lorenzo", "szx", "planes"):
        a = field(folder, present(folder, "nyxdens", "density"), gb)
        out, how, shape = np.zeros_like(a), h5z_gpu.Lossy(relative=REL, codec=codec), CHUNKS["4 MiB"]
        gbs, found = a.nbytes / 1e9, encode(a, how, shape)
        rates = [gbs / best(reps, lambda: encode(a, how, shape, devices)) for devices in (None, "all")]
        back = [gbs / best(reps, lambda: decode(found, out, shape, devices)) for devices in (None, "all")]
        assert encode(a, how, shape, "all") == found, "the frames differ"
        line(f"density {codec}", "4 MiB", a.nbytes / sum(map(len, found)), *rates, rates[1] / rates[0], *back,
             back[1] / back[0])


def rank(path, folder, gb, codec, barrier, times):
    """A process that writes an array in a GPU's memory into a file of its own."""
    import torch

    a = field(folder, present(folder, "nyxdens", "density"), gb)
    on, how = torch.from_numpy(a).cuda(), h5z_gpu.Lossy(relative=REL, codec=codec)
    for _ in range(4):
        barrier.wait()
        begin = time.perf_counter()
        write(path, a, CHUNKS["4 MiB"], how, on)
        torch.cuda.synchronize()
        barrier.wait()
        times.put((time.perf_counter() - begin, a.nbytes))
    os.unlink(path)


def ranks(folder, scratch, gb):
    """Processes with a file each, on one GPU: GB/s of all together."""
    context = multiprocessing.get_context("spawn")
    print("a file for each process, GB/s             1         2         4   4 / 1")
    for codec in ("szx", "lorenzo"):
        rates = []
        for n in (1, 2, 4):
            barrier, times = context.Barrier(n), context.Queue()
            work = [context.Process(target=rank, args=(f"{scratch}/rank{k}.h5", folder, gb, codec, barrier, times))
                    for k in range(n)]
            for w in work:
                w.start()
            found = [times.get(timeout=200) for _ in range(4 * n)]
            for w in work:
                w.join()
            # The barriers make all of a round as long as the slowest; the first round warms up.
            rates.append(n * found[0][1] / 1e9 / min(t for t, _ in found[n:]))
        line(f"density {codec}", "4 MiB", *rates, rates[-1] / rates[0])


def check(folder, scratch):
    """Arrays of several libraries and layouts: the files of the pipeline, byte for byte; read back into each."""
    import torch

    libraries = {"torch": (lambda a: torch.from_numpy(a.copy()).cuda(), lambda t: t.cpu().numpy())}
    try:
        import cupy

        libraries["cupy"] = (cupy.asarray, cupy.asnumpy)
    except ImportError:
        pass
    try:
        import jax

        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
        libraries["jax"] = (lambda a: jax.device_put(a), None)
    except ImportError:
        pass
    random, path, n = np.random.default_rng(1), f"{scratch}/check.h5", 0
    base = random.standard_normal((70, 90, 110)).cumsum(2).astype("f4")
    for library, (there, here) in libraries.items():
        for how in (h5z_gpu.Lossless(), *(h5z_gpu.Lossy(relative=1e-3, codec=c)
                                          for c in ("szx", "lorenzo", "planes", "auto"))):
            for kind in ("f4", "f8", "f2", "i4", "i2"):
                a = (base * 100).astype(kind)
                if library == "jax" and kind == "f8":
                    continue  # 64 bits are off by default
                if kind[0] == "i" and how != h5z_gpu.Lossless():
                    continue
                for layout in (lambda x: x, lambda x: x[3:, ::2, 5:], lambda x: x.transpose(2, 0, 1)
                               if library != "torch" else x.permute(2, 0, 1)):
                    on = layout(there(a))
                    want = layout(a) if library != "torch" else layout(torch.from_numpy(a)).numpy()
                    with h5py.File(path, "w") as f:
                        for name in "ab":
                            f.create_dataset(name, want.shape, kind, chunks=(32, 40, 33), fillvalue=7, **filters(how))
                        h5z_gpu.write(f["a"], on)
                        f["b"][...] = want
                        for x, y in zip(*(chunks_of(f[name]) for name in "ab")):
                            assert x == y, f"{library} {how} {kind}: frames differ"
                        if here:
                            out = there(np.zeros(want.shape, kind))
                            h5z_gpu.read(f["b"], out)
                            assert np.array_equal(here(out), f["b"][...]), f"{library} {how} {kind}: values differ"
                            part = there(np.zeros((20, 30, 20), kind))
                            h5z_gpu.read(f["b"], part, np.s_[10:30, 5:35, 7:27])
                            assert np.array_equal(here(part),
                                                  f["b"][10:30, 5:35, 7:27]), f"{library} {how} {kind}: a part differs"
                        n += 1
                    os.unlink(path)
        found = h5z_gpu.views.value_range(there(base))
        assert found == (float(base.min()), float(base.max())), f"{library}: range {found}"
    with h5py.File(path, "w") as f:
        big = torch.randn(256, 256, 256, device="cuda").cumsum(0)
        torch.cuda.synchronize()
        stream = torch.cuda.Stream()
        d = f.create_dataset("d", big.shape, "f4", chunks=(64, 64, 64), **h5z_gpu.Lossless())
        with torch.cuda.stream(stream):  # work that is not done when write begins
            for _ in range(50):
                big = big * 1.001
            h5z_gpu.write(d, big)
            torch.cuda.synchronize()
            assert np.array_equal(d[...], big.cpu().numpy()), "a stream's work was not waited for"
        n += 1
    os.unlink(path)
    print(f"{n} datasets of {', '.join(libraries)}: the pipeline's frames, the same values; the GPU coded "
          f"{h5z_gpu_chunks()} chunks")


def chunks_of(d):
    found = {}
    d.id.chunk_iter(lambda info: found.update({info.chunk_offset: d.id.read_direct_chunk(info.chunk_offset)[1]}))
    return [found[k] for k in sorted(found)]


def h5z_gpu_chunks():
    return [lib.h5z_gpu_device_chunks(k) for k in (0, 1)]


def main():
    args = sys.argv[1:]
    option = lambda name, other: args[args.index(name) + 1] if name in args else other
    folder, scratch, gb, reps = args[0], args[1], float(option("--gb", "1.0")), int(option("--reps", "3"))
    only = option("--only", "device,numpy,boxes,gpus,ranks,cpu").split(",")
    if "cpu-here" in only:
        return numpy(folder, scratch, gb, 1, ("szx", "lorenzo"), peers=True)
    print(f"h5py {h5py.__version__}, HDF5 {h5py.version.hdf5_version}, {os.cpu_count()} cores, arrays of about {gb} GB")
    if "check" in only:
        check(folder, scratch)
    if "device" in only:
        device(folder, scratch, gb, reps)
    if "numpy" in only:
        numpy(folder, scratch, gb, reps)
    if "choice" in only:
        choice(folder, scratch, gb / 4)
    if "boxes" in only:
        boxes(folder, scratch)
    if "gpus" in only:
        gpus(folder, gb, reps)
    if "ranks" in only:
        ranks(folder, scratch, gb / 2)
    if "cpu" in only:
        print("without a GPU:")
        mine = [sys.executable, __file__, folder, scratch, "--gb", str(gb), "--only", "cpu-here"]
        subprocess.run(mine, env={**os.environ, "H5Z_GPU_DEVICE": "cpu"}, check=True)


if __name__ == "__main__":
    main()
