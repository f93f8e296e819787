# SPDX-License-Identifier: MIT OR Apache-2.0
"""Chunks of four axes and more, whose order the writer chooses: values where they were, by every door and reader."""
from __future__ import annotations

import pytest
from conftest import use

WRITE = """if True:
    import h5py, numpy as np, h5z_gpu
    from h5z_gpu import Lossless, Lossy, reference

    def levels(shape, kind):
        # Alike from time to time, not from level to level; with holes that nobody declared.
        t, z, y, x = np.meshgrid(*[np.arange(n, dtype="f8") for n in shape[-4:]], indexing="ij", sparse=True)
        v = 40 * np.sin(7.1 * z + 0.05 * (t + x)) + np.cos(0.3 * y + z * z)
        v = np.broadcast_to(v, shape).copy()
        v[..., :3, 5:9] = -1e34 if np.dtype(kind).kind == "f" else -999
        return (v if np.dtype(kind).kind == "f" else 100 * v).astype(kind)
"""
SHAPES = {(6, 10, 40, 60): (6, 10, 40, 60), (7, 11, 45, 33): (4, 6, 40, 30), (3, 1, 5, 7, 20, 31): (3, 1, 5, 7, 20, 31),
          (2, 3, 5, 7, 20, 31): (2, 3, 4, 7, 16, 31)}


@pytest.mark.third
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", ["<f4", ">f8", "<i2", "<i4"])
def test_values_are_where_they_were(shape, kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    use(f"""{WRITE}
    shape, chunk, kind = {shape!r}, {SHAPES[shape]!r}, {kind!r}
    a = levels(shape, kind)
    random, orders = np.random.default_rng(1), set()
    codecs = ["auto", "lorenzo", "planes", "szx"] if a.dtype.kind == "f" else []
    hows = [Lossless()] + [Lossy(absolute=1e-3, codec=c) for c in codecs]
    for how in hows:
        with h5py.File("a.h5", "w") as f:
            d = f.create_dataset("v", data=a, chunks=chunk, **how)
            w = f.create_dataset("w", shape, kind, chunks=chunk, **how)
            h5z_gpu.write(w, a)
            frames = [[x.id.read_direct_chunk(x.id.get_chunk_info(k).chunk_offset)[1]
                       for k in range(x.id.get_num_chunks())] for x in (d, w)]
            assert frames[0] == frames[1]
        with h5py.File("a.h5") as f:
            d = f["v"]
            b = d[...]
            assert b.dtype == a.dtype
            if how == hows[0]:
                assert b.tobytes() == a.tobytes()
            else:
                near = np.abs(b.astype("f8") - a.astype("f8"))
                assert (near <= 1e-3).all() and (b[a == a.dtype.type(-1e34)] == a.dtype.type(-1e34)).all()
            assert h5z_gpu.read(d).tobytes() == b.tobytes()
            for _ in range(12):
                box = tuple(slice(s, random.integers(s, n) + 1) for n in shape for s in [random.integers(n)])
                assert h5z_gpu.read(d, selection=box).tobytes() == b[box].tobytes() == d[box].tobytes()
            first = frames[0][0]
            part = np.frombuffer(reference.decode(first), kind).reshape(chunk)
            assert part.tobytes() == b[tuple(slice(n) for n in chunk)].tobytes()
            head = reference.header(first)
            orders.add((head.codec, head.swapped, head.extents))
    print(sorted(orders))
    if shape == (6, 10, 40, 60) and a.dtype.kind == "f":
        assert any(head[1] for head in orders) and any(not head[1] for head in orders)
    """)
