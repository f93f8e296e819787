# SPDX-License-Identifier: MIT OR Apache-2.0
"""`h5z-gpu recover`: what is good comes through bit for bit, what is lost is filled and named, and the input stays as
it is."""
import hashlib
import json
import os
import random

import h5py
import netCDF4
import numpy as np
import pytest
from cli import BAD, CHUNK, PYTHONS, change, cli, damaged, many, other_files, values, whole
from conftest import clean, run, use
from odd_types import call


def recovered(source, out, *arguments, **how):
    """Exit status and what was lost; the input must not have changed."""
    before = hashlib.sha256(source.read_bytes()).digest(), source.stat().st_mtime_ns
    status, text, err = cli("recover", source, out, "--json", *arguments, **how)
    assert (hashlib.sha256(source.read_bytes()).digest(), source.stat().st_mtime_ns) == before
    assert status in (0, 1) and not err, err
    return status, json.loads(text)["lost"]


def boxes(shape, chunk, origins):
    """True where these chunks are."""
    lost = np.zeros(shape, bool)
    for origin in origins:
        lost[tuple(slice(o, o + c) for o, c in zip(origin, chunk))] = True
    return lost


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("how", [{}, {"userblock_size": 512}], ids=["plain", "user block"])
def test_lost_chunks_are_filled_and_nothing_else_changes(python, how, tmp_path):
    whole(tmp_path / "good.h5", **how)
    damaged(tmp_path / "a.h5", **how)
    status, lost = recovered(tmp_path / "a.h5", tmp_path / "b.h5", python=PYTHONS[python])
    assert status == 1 and [(w["object"], tuple(w["chunk"]), w["filled_with"])
                            for w in lost] == [("/v", o, "-999.0") for o in BAD]
    with h5py.File(tmp_path / "good.h5") as good, h5py.File(tmp_path / "b.h5") as b:
        at = boxes(good["v"].shape, CHUNK, BAD)
        assert b["v"][...][~at].tobytes() == good["v"][...][~at].tobytes() and (b["v"][...][at] == -999).all()
        for name in ("g/rel", "g/part", "g/whole", "zip", "hidden", "time", "names", "link", "again"):
            assert b[name][...].tobytes() == good[name][...].tobytes() or name == "names", name
        assert b["names"].asstr()[...].tolist() == ["a", "bc"] and b.attrs["title"] == "all kinds" and b["v"].attrs[
            "units"] == "K"
        assert isinstance(b.get("link", getlink=True), h5py.SoftLink)
        frame = good["v"].id.read_direct_chunk((0, 0, 0))[1]
        assert b["v"].id.read_direct_chunk((0, 0, 0))[1] == frame  # not coded again
    assert cli("inspect", "--check", tmp_path / "b.h5")[0] == 0


def test_what_lost_values_become(tmp_path):
    """The fill value; NaN for floating-point numbers that have none; what was asked for."""
    whole(tmp_path / "a.h5")
    change(tmp_path / "a.h5", "g/rel", [(0, 0, 0)])
    change(tmp_path / "a.h5", "g/whole", [(32, 0)])
    change(tmp_path / "a.h5", "zip", [(8, 16, 32)])
    status, lost = recovered(tmp_path / "a.h5", tmp_path / "b.h5")
    found = {w["object"]: w["filled_with"] for w in lost}
    assert status == 1 and found == {"/g/rel": "nan", "/g/whole": "0", "/zip": "nan"}, lost
    with h5py.File(tmp_path / "b.h5") as b:
        assert np.isnan(b["g/rel"][:8, :16, :32]).all() and not np.isnan(b["g/rel"][8:16]).any()
        assert (b["g/whole"][32:, :32] == 0).all() and np.isnan(b["zip"][8:16, 16:, 32:]).all()
    status, lost = recovered(tmp_path / "a.h5", tmp_path / "c.h5", "--fill", "7")
    assert {w["object"]: w["filled_with"] for w in lost} == {"/g/rel": "7.0", "/g/whole": "7", "/zip": "7.0"}
    with h5py.File(tmp_path / "c.h5") as c:
        assert (c["g/whole"][32:, :32] == 7).all() and (c["g/rel"][:8, :16, :32] == 7).all()
    status, _, err = cli("recover", tmp_path / "a.h5", tmp_path / "d.h5", "--fill", "0.5")
    assert status == 2 and "0.5 is no value of /g/whole, which holds int64" in err and not (
        tmp_path / "d.h5").exists(), err


def test_integers_may_be_filled_with_the_ends_of_their_type(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f.create_dataset("v", data=np.arange(100, dtype="u1"), chunks=(10,), compression=443)
    change(tmp_path / "a.h5", "v", [(20,)])
    for fill in (0, 255):
        recovered(tmp_path / "a.h5", tmp_path / f"{fill}.h5", "--fill", fill)
        with h5py.File(tmp_path / f"{fill}.h5") as f:
            assert (f["v"][20:30] == fill).all()
    for fill in (-1, 256):
        status, _, err = cli("recover", tmp_path / "a.h5", tmp_path / "no.h5", "--fill", fill)
        assert status == 2 and f"{fill} is no value of /v, which holds uint8" in err, err


def same(a, b):
    """Whether two files differ in nothing that HDF5 can say of them."""
    status, text, err = cli("verify", "--structure", a, b)
    return (status, err) == (0, "") or text + err


def test_a_file_without_damage_is_copied(tmp_path):
    whole(tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5", "r+") as f:
        f.create_dataset(b"latin \xe9", data=[1.0]).attrs["a"] = f["time"].ref
        f.create_dataset("nested", (2,), h5py.vlen_dtype(h5py.ref_dtype), chunks=(1,))[0] = [f["v"].ref]
    status, lost = recovered(tmp_path / "a.h5", tmp_path / "b.h5")
    assert (status, lost) == (0, []) and same(tmp_path / "a.h5", tmp_path / "b.h5") is True


def test_what_hdf5_cannot_open_is_left_out_and_named(tmp_path):
    """A dataset, a group, an attribute, all attributes of a group: all else comes back whole, dimension scales in their
    order."""
    for path in (tmp_path / "a.h5", tmp_path / "want.h5"):
        whole(path)
        with h5py.File(path, "r+") as f:
            f["g/broken/inner"] = 1
            for k, name in enumerate(("x", "y", "z")):
                f[name] = np.arange(60 - k)
                f[name].make_scale(name)
            for k, name in ((2, "z"), (2, "x"), (0, "y")):
                f["v"].dims[k].attach_scale(f[name])
            f["time"].attrs["bad"], f["time"].attrs["good"] = "of any length", 5
            f.create_group("h").attrs["type"] = np.arange(7, dtype="i2")
            places = [h5py.h5o.get_info(f[name].id).addr for name in ("g/whole", "g/broken")]
            if "want" in path.name:
                del f["g/whole"], f["g/broken"], f["time"].attrs["bad"], f["h"].attrs["type"]
    data = bytearray((tmp_path / "a.h5").read_bytes())
    for at in places:
        data[at : at + 40] = b"\xff" * 40
    at = data.index(len("of any length").to_bytes(4, "little"), data.index(b"bad\0")) + 4
    data[at : at + 8] = (2**40).to_bytes(8, "little")  # where its text is
    data[data.index(b"type\0") + 8] = 0xF0  # version and class of its type
    (tmp_path / "a.h5").write_bytes(data)
    status, lost = recovered(tmp_path / "a.h5", tmp_path / "b.h5")
    assert status == 1 and [(w["object"], w.get("attribute")) for w in lost if "references" not in w["why"]] == [
        ("/again", "bad"), ("/h", "(all)"), ("/g/broken", None), ("/g/whole", None)], lost
    assert all(w["why"] for w in lost) and same(tmp_path / "want.h5", tmp_path / "b.h5") is True
    _, text, _ = cli("recover", tmp_path / "a.h5", tmp_path / "c.h5")
    assert "take it from a backup" in text and "h5debug" in text, text


def test_chunks_of_a_filter_that_is_missing_stay_as_they_are(tmp_path):
    """Nobody can decode them here: they are no damage."""
    with h5py.File(tmp_path / "a.h5", "w") as f:
        dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        dcpl.set_chunk((10,))
        dcpl.set_deflate(1)
        d = h5py.h5d.create(f.id, b"d", h5py.h5t.IEEE_F32LE, h5py.h5s.create_simple((20,)), dcpl)
        d.write_direct_chunk((0,), b"of another filter", 0)
        d.write_direct_chunk((10,), b"of it too", 0)
    data = bytearray((tmp_path / "a.h5").read_bytes())
    at = data.index(b"deflate\0") - 8
    assert data[at : at + 2] == b"\1\0"
    data[at : at + 2] = (32999).to_bytes(2, "little")
    (tmp_path / "a.h5").write_bytes(data)
    status, text, _ = cli("recover", tmp_path / "a.h5", tmp_path / "b.h5", "--json")
    found = json.loads(text)
    assert status == 0 and not found["lost"] and "/d" in found["notes"][0], found
    with h5py.File(tmp_path / "b.h5") as b:
        assert b["d"].id.read_direct_chunk((10,)) == (0, b"of it too")


def test_a_file_that_was_cut_short(tmp_path):
    """What lies before the cut is all there; a dataset in one piece loses its end."""
    x = values()
    with h5py.File(tmp_path / "good.h5", "w") as f:
        f.create_dataset("v", data=x, chunks=CHUNK, compression=443, compression_opts=(11003,))
        f["time"] = np.arange(5000.0)
        f["later"] = np.arange(5001.0)
    with h5py.File(tmp_path / "good.h5") as f:
        assert f["later"].id.get_offset() > f["time"].id.get_offset()
        good, end = f["v"][...], f["time"].id.get_offset() + 8 * 1000
    data = (tmp_path / "good.h5").read_bytes()
    (tmp_path / "a.h5").write_bytes(data[: end + 3])
    status, out, _ = cli("recover", tmp_path / "a.h5", tmp_path / "b.h5")
    assert status == 1 and f"lost: the file's end: cut short: {end + 3} of {len(data)} bytes are there" in out, out
    assert "lost: /time, the last 4000 of 5000 values, now nan" in out, out
    assert "lost: /later, the last 5001 of 5001 values, now nan" in out, out
    with h5py.File(tmp_path / "b.h5") as b:
        time = b["time"][...]
        assert time[:1000].tolist() == list(range(1000)) and np.isnan(time[1000:]).all()
        assert b["later"].shape == (5001,) and np.isnan(b["later"][...]).all()
        assert b["v"][...].tobytes() == good.tobytes()
    # In the middle of the chunks.
    with h5py.File(tmp_path / "good.h5") as f:
        infos = sorted((f["v"].id.get_chunk_info(k) for k in range(12)), key=lambda i: i.byte_offset)
    (tmp_path / "c.h5").write_bytes(data[: infos[7].byte_offset + 10])
    status, lost = recovered(tmp_path / "c.h5", tmp_path / "d.h5")
    gone = [i.chunk_offset for i in infos[7:]]
    assert status == 1 and sorted(tuple(w["chunk"]) for w in lost if "chunk" in w) == sorted(gone), lost
    with h5py.File(tmp_path / "d.h5") as d:
        at = boxes(x.shape, CHUNK, gone)
        assert d["v"][...][~at].tobytes() == good[~at].tobytes() and np.isnan(d["v"][...][at]).all()
    # Nothing but the beginning.
    (tmp_path / "e.h5").write_bytes(data[:300])
    status, _, err = cli("recover", tmp_path / "e.h5", tmp_path / "f.h5")
    assert status == 2 and "its table of contents was in the part that is missing" in err and "backup" in err, err


def test_chunks_without_a_checksum_behind_the_cut(tmp_path):
    """No filter sees that their bytes are missing: chunks without filters, and chunks at the edges that HDF5 keeps so
    (H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS)."""
    x = np.cumsum(np.random.default_rng(0).integers(-3, 4, (70, 96)), 1).astype("f4") + 1000
    with h5py.File(tmp_path / "good.h5", "w", libver=("v110", "v110")) as f:
        plan = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plan.set_chunk((32, 32))
        call("H5Pset_chunk_opts", plan, 2)
        plan.set_shuffle()
        plan.set_filter(443, 1, (90000,))
        kind, space = h5py.h5t.IEEE_F32LE, h5py.h5s.create_simple(x.shape)
        h5py.Dataset(h5py.h5d.create(f.id, b"edges", kind, space, dcpl=plan))[...] = x
        f.create_dataset("plain", data=x, chunks=(32, 32))
    data = (tmp_path / "good.h5").read_bytes()
    for name in ("edges", "plain"):
        with h5py.File(tmp_path / "good.h5") as f:
            places = {i.chunk_offset: i.byte_offset for i in map(f[name].id.get_chunk_info, range(9))}
        (tmp_path / f"{name}.h5").write_bytes(data[: places[64, 32] + 4000])
        gone = sorted(o for o, at in places.items() if at >= places[64, 32])
        assert (64, 64) in gone and (64, 0) not in gone
        _, lost = recovered(tmp_path / f"{name}.h5", tmp_path / f"{name} again.h5")
        assert sorted(tuple(w["chunk"]) for w in lost if w["object"] == f"/{name}" and "chunk" in w) == gone, lost
        with h5py.File(tmp_path / f"{name} again.h5") as g:
            at = boxes(x.shape, (32, 32), gone)
            assert g[name][...][~at].tobytes() == x[~at].tobytes() and np.isnan(g[name][...][at]).all()
            # Programs that know no chunks without filters at the edges read the masks: those of the copy say it.
            masks = {i.filter_mask for i in map(g[name].id.get_chunk_info, range(9)) if i.chunk_offset[0] == 64}
            assert masks == {3 if name == "edges" else 0}
        run("h5dump", tmp_path / f"{name} again.h5", env=clean())


@pytest.mark.parametrize("table", [False, True], ids=["contents", "tables"])
def test_netcdf_files_stay_netcdf_files(table, tmp_path):
    """Dimensions, scales and attributes too, also where a new file has to be made of what can be read."""
    use("""
import sys, netCDF4, numpy as np
from h5z_gpu import Lossy
from h5z_gpu.netcdf import def_filter
with netCDF4.Dataset(sys.argv[1], "w") as ds:
    for n, k in zip(("time", "lat", "lon"), (None, 64, 128)):
        ds.createDimension(n, k)
    for n, k in zip(("time", "lat", "lon"), (32, 64, 128)):
        v = ds.createVariable(n, "f8", (n,))
        v[:], v.units = np.arange(k), "x"
    for name in ("tas", "pr"):
        v = ds.createVariable(name, "f4", ("time", "lat", "lon"), chunksizes=(8, 32, 64), fill_value=-999.)
        def_filter(v, Lossy(absolute=1e-3))
        v[:] = np.random.default_rng(1).normal(size=(32, 64, 128)).cumsum(2)
        v.units = "K"
    ds.title = "hello"
    w = ds.createGroup("g").createVariable("w", "f4", ("lat", "lon"))
    w[:] = 1
""", tmp_path / "a.nc")
    cdl = run("ncdump", "-h", "-n", "a", tmp_path / "a.nc")
    good = netCDF4.Dataset(tmp_path / "a.nc")["tas"][:].filled()
    change(tmp_path / "a.nc", "tas", [(8, 32, 64)])
    if table:
        # The list of chunks of `pr`: a chunk's place in the file stands behind its place in the variable.
        data = bytearray((tmp_path / "a.nc").read_bytes())
        with h5py.File(tmp_path / "a.nc") as f:
            place = f["pr"].id.get_chunk_info_by_coord((0, 32, 64)).byte_offset.to_bytes(8, "little")
        at = data.index(place)
        data[at - 32 : at - 24] = (800).to_bytes(8, "little")  # its time is beyond the variable now
        (tmp_path / "a.nc").write_bytes(data)
    status, lost = recovered(tmp_path / "a.nc", tmp_path / "b.nc")
    assert status == 1 and ("/tas", [8, 32, 64]) in [(w["object"], w.get("chunk")) for w in lost], lost
    of_pr = [w["why"] for w in lost if w["object"] == "/pr"]
    assert len(of_pr) == bool(table) and all("list of chunks is damaged" in why for why in of_pr), lost
    assert run("ncdump", "-h", "-n", "a", tmp_path / "b.nc") == cdl
    with netCDF4.Dataset(tmp_path / "b.nc") as ds:
        back = ds["tas"][:]
        at = boxes(back.shape, (8, 32, 64), [(8, 32, 64)])
        assert back.mask[at].all() and back.filled()[~at].tobytes() == good[~at].tobytes()
        assert ds["g/w"][:].min() == 1 and ds["lat"][:].tolist() == list(range(64))
        gone = boxes(back.shape, (8, 32, 64), [(0, 32, 64)] if table else [])
        assert ds["pr"][:].filled()[~gone].tobytes() == good[~gone].tobytes() and (~gone).sum() > gone.sum()
    assert cli("inspect", "--check", tmp_path / "b.nc")[0] == 0


def test_random_damage_never_crashes_and_what_is_made_is_well(tmp_path):
    """Also of HDF5's tables: one sentence, or a file of which every object can be read."""
    damaged(tmp_path / "a.h5")
    data = (tmp_path / "a.h5").read_bytes()
    rng = random.Random(5)
    pairs = [(tmp_path / f"{k}.h5", tmp_path / f"{k}.out.h5") for k in range(12)]
    for k, (damaged_file, _) in enumerate(pairs):
        changed = bytearray(data)
        if k % 3 == 0:
            changed = changed[: rng.randrange(len(changed) * 3 // 4, len(changed))]
        for _ in range([3, 100, 5][k % 3]):
            changed[rng.randrange(20000 if k % 3 == 2 else len(changed))] ^= 1 << rng.randrange(8)
        damaged_file.write_bytes(changed)
    made = []
    for (_, out), (status, text, err) in zip(pairs, many(*(("recover", *pair) for pair in pairs))):
        assert status in (1, 2) and (status == 1) == bool(text) and out.exists() == (status == 1), (out, status,
                                                                                                    text, err)
        made += [out] if status == 1 else []
    assert len(made) >= 4
    for out, (status, text, err) in zip(made, many(*(("inspect", out) for out in made))):
        assert status == 0 or "has no dataset with the filter h5z-gpu here" in err, (out, text, err)


def test_refusals(tmp_path):
    whole(tmp_path / "a.h5")
    (tmp_path / "there.h5").write_bytes(b"mine")
    os.symlink(tmp_path / "nowhere", tmp_path / "link.h5")
    exists = "is there already; nothing was written"
    a, b = tmp_path / "a.h5", tmp_path / "b.h5"
    cases = {
        ("recover", a, tmp_path / "there.h5"): exists, ("recover", a, a): exists,
        ("recover", a, tmp_path / "link.h5"): exists,
        ("recover", a, tmp_path / "no/b.h5"): "there is no folder",
        ("recover", a, b, "--fill", "much"): "much is no number",
    } | {("recover", tmp_path / name, b): part if name != "g.h5" else "table of contents"
         for name, part in other_files(tmp_path).items()}
    for (words, part), (status, out, err) in zip(cases.items(), many(*cases)):
        assert status == 2 and not out and part in err and len(err.splitlines()) == 1, (words, err)
        assert not b.exists()
    assert (tmp_path / "there.h5").read_bytes() == b"mine"
    assert not [p for p in os.listdir(tmp_path) if p.startswith(".")]
