# SPDX-License-Identifier: MIT OR Apache-2.0
"""Damage in HDF5's own tables: `recover` names what is lost, or takes nothing; it never calls another value
undamaged."""
import json
import os
import re

import h5py
import numpy as np
import pytest
from cli import cli
from conftest import use

# Files of the random test; python tests/hosts/damaged_tables.py COUNT runs as many as are asked for, and says more.
FILES = int(os.environ.get("H5Z_GPU_TABLES", "40"))
A = (np.cumsum(np.random.default_rng(1).normal(0, 1, (60, 40)), 0) + 1000).astype("f4")


def written(path, **how):
    """24 chunks in a version 1 B-tree; gives the file's bytes and the B-tree's entries as HDF5 lists them."""
    with h5py.File(path, "w", **how) as f:
        f.create_dataset("temperature", data=A, chunks=(10, 10), compression=443, compression_opts=(90000,))
    with h5py.File(path) as f:
        return bytearray(path.read_bytes()), [f["temperature"].id.get_chunk_info(k) for k in range(24)]


def key_of(data, info):
    """Where a chunk's key stands: length, filter mask, first element with that of the value itself, address."""
    want = (info.size.to_bytes(4, "little") + bytes(4) + b"".join(o.to_bytes(8, "little")
                                                                  for o in (*info.chunk_offset, 0))
            + info.byte_offset.to_bytes(8, "little"))
    assert data.count(want) == 1
    return data.index(want)


def recovered(path, out):
    """Exit status, what was lost, and the values of OUT as HDF5 and as h5z_gpu read them."""
    status, text, err = cli("recover", path, out, "--json")
    assert status in (0, 1) and not err, err
    with h5py.File(out) as f:
        plain = f["temperature"][()]
    fast = use("import sys, h5py, h5z_gpu\nprint(h5z_gpu.read(h5py.File(sys.argv[1])['temperature']).tobytes().hex())",
               out)
    assert bytes.fromhex(fast) == plain.tobytes()
    return status, json.loads(text)["lost"], plain


def assert_named(lost, values):
    """What is not as it was is NaN and named."""
    named = np.zeros(A.shape, bool)
    for what in lost:
        if "chunk" in what:
            named[tuple(slice(o, o + 10) for o in what["chunk"])] = True
    assert (values[~named] == A[~named]).all() and np.isnan(values[named]).all() and named.any(), lost


def test_random_damage_of_tables():
    told = use("""
import json, sys, damaged_tables
outcomes, wrong = damaged_tables.attack(int(sys.argv[1]))
print(json.dumps([{f"{kind}, {outcome}": n for (kind, outcome), n in outcomes.items()}, wrong]))
""", FILES)
    outcomes, wrong = json.loads(told.splitlines()[-1])
    assert not wrong and sum(outcomes.values()) == FILES and any("named" in what
                                                                 for what in outcomes), (outcomes, wrong)


def test_a_frame_that_passes_for_values(tmp_path):
    """One bit of a filter mask: HDF5 hands the frame out as values."""
    data, infos = written(tmp_path / "a.h5")
    data[key_of(data, infos[7]) + 4] = 1
    (tmp_path / "a.h5").write_bytes(data)
    status, lost, values = recovered(tmp_path / "a.h5", tmp_path / "b.h5")
    assert status == 1 and [w["chunk"] for w in lost] == [[10, 30]] and "without filters" in lost[0]["why"], lost
    assert_named(lost, values)
    status, text, _ = cli("inspect", tmp_path / "a.h5")
    assert status == 1 and "DAMAGED   chunk at (10, 30)" in text, text


@pytest.mark.parametrize("place", [8, 16, 24, 26])
def test_a_chunk_that_is_listed_and_not_found(place, tmp_path):
    """A byte of a key: the list has the chunk, or another in its place; HDF5's search does not find it."""
    data, infos = written(tmp_path / "a.h5")
    data[key_of(data, infos[7]) + place] ^= 0x10
    (tmp_path / "a.h5").write_bytes(data)
    status, text, _ = cli("inspect", "--check", tmp_path / "a.h5")
    assert status == 1 and "DAMAGED   the list of chunks" in text, text
    status, lost, values = recovered(tmp_path / "a.h5", tmp_path / "b.h5")
    assert status == 1 and lost
    if any("chunk" in what for what in lost):
        assert_named(lost, values)
    else:
        assert (values == A).all()


def test_places_that_two_chunks_have_are_nobodys(tmp_path):
    data, infos = written(tmp_path / "a.h5")
    at = key_of(data, infos[7])
    data[at + 16] = 20  # (10, 30) becomes (10, 20)
    (tmp_path / "a.h5").write_bytes(data)
    status, lost, values = recovered(tmp_path / "a.h5", tmp_path / "b.h5")
    assert status == 1 and {tuple(w["chunk"]) for w in lost} == {(10, 20), (10, 30)}, lost
    assert_named(lost, values)


@pytest.mark.parametrize("other", [None, 3], ids=["in front of it", "of another chunk"])
def test_a_chunk_with_another_address(other, tmp_path):
    """HDF5 frees the wrong bytes when the fill value is put there, and may write it over what is good."""
    data, infos = written(tmp_path / "a.h5")
    at = key_of(data, infos[0]) + 32
    address = infos[0].byte_offset - 8 if other is None else infos[other].byte_offset
    data[at : at + 8] = address.to_bytes(8, "little")
    (tmp_path / "a.h5").write_bytes(data)
    status, lost, values = recovered(tmp_path / "a.h5", tmp_path / "b.h5")
    assert status == 1 and [0, 0] in [w["chunk"] for w in lost], lost
    assert_named(lost, values)


def test_chunks_that_have_vanished_from_their_list(tmp_path):
    """The number of entries of a node, one less: HDF5 reads the fill value and finds no fault."""
    data, _ = written(tmp_path / "a.h5")
    (node,) = (m.start() for m in re.finditer(b"TREE\x01\x00", data))
    assert data[node + 6] == 24
    data[node + 6] = 23
    (tmp_path / "a.h5").write_bytes(data)
    status, lost, values = recovered(tmp_path / "a.h5", tmp_path / "b.h5")
    assert status == 1 and [w["chunk"] for w in lost] == [[50, 30]], lost
    assert_named(lost, values)
    status, text, _ = cli("inspect", "--check", tmp_path / "a.h5")
    assert status == 1 and "ends before a chunk at (50, 30)" in text, text


def test_a_header_that_the_filters_words_contradict(tmp_path):
    """One byte of shuffle's parameter: HDF5 reads other values and finds no fault. They come back where it is put
    right."""
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f.create_dataset("temperature", data=A, chunks=(10, 10), shuffle=True, compression=443, compression_opts=(90000,
                         ))
    data = bytearray((tmp_path / "a.h5").read_bytes())
    at = data.index(b"shuffle\0") + 8
    assert data[at] == 4
    data[at] = 160
    (tmp_path / "a.h5").write_bytes(data)
    with h5py.File(tmp_path / "a.h5") as f:
        assert (f["temperature"][()] != A).any()
    status, lost, values = recovered(tmp_path / "a.h5", tmp_path / "b.h5")
    assert status == 1 and "shuffle" in lost[0]["why"] and (values == A).all(), lost
    assert cli("inspect", "--check", tmp_path / "a.h5")[0] == 1


def test_objects_that_have_vanished_from_their_group(tmp_path):
    with h5py.File(tmp_path / "good.h5", "w") as f:
        f["temperature"], f["a"], f["pressure"], f["vorticity"] = A, A, A, A
        del f["vorticity"], f["a"]
    status, text, _ = cli("recover", tmp_path / "good.h5", tmp_path / "c.h5", "--json")
    # A short name stays where it was: nobody can tell what became of it.
    assert status == 0 and any("'a'" in note for note in json.loads(text)["notes"]), text
    data = bytearray((tmp_path / "good.h5").read_bytes())
    for signature, name in ((b"SNOD", "temperature"), (b"TREE", "pressure")):
        changed = bytearray(data)
        changed[data.index(signature) + 6] -= 1
        (tmp_path / "a.h5").write_bytes(changed)
        (tmp_path / "b.h5").unlink(missing_ok=True)
        status, text, _ = cli("recover", tmp_path / "a.h5", tmp_path / "b.h5")
        assert status == 1 and re.search(f"lost: /: .*'{name}'", text), text


@pytest.mark.parametrize("how", [{}, {"userblock_size": 1024}, {"libver": ("v108", "latest")}, {"libver": "latest"}],
                         ids=["plain", "user block", "v108", "latest"])
def test_files_that_have_been_worked_on_are_sound(how, tmp_path):
    """Deleted, moved, shrunk and grown: nothing of it is damage."""
    with h5py.File(tmp_path / "a.h5", "w", **how) as f:
        for k in range(60):
            f.create_group(f"a group of number {k}/sub")
        for k in range(0, 60, 3):
            del f[f"a group of number {k}"]
        f.move("a group of number 1", "below/it is elsewhere now")
        f["soft"] = h5py.SoftLink("/below/of a longer name")
        for name, most in (("rows", (None, 64)), ("both", (None, None))):
            d = f.create_dataset(name, (400, 64), "f4", chunks=(8, 8), maxshape=most, compression=443,
                                 compression_opts=(90000,))
            for k in np.random.default_rng(2).permutation(50)[:40]:
                d[8 * k : 8 * k + 8, : 8 * (k % 8) + 1] = k
            d.resize(200, axis=0)
            d.resize(300, axis=0)
            d[290:] = 5
    status, text, err = cli("recover", tmp_path / "a.h5", tmp_path / "b.h5", "--json")
    assert (status, err) == (0, "") and not json.loads(text)["lost"], text
    status, text, _ = cli("inspect", "--check", tmp_path / "a.h5")
    assert status == 0 and "no damage" in text, text
