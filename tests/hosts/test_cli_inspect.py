# SPDX-License-Identifier: MIT OR Apache-2.0
"""`h5z-gpu inspect`: what was promised, what each chunk got, and which are damaged."""
import json
import re
import resource

import h5py
import numpy as np
import pytest
from cli import BAD, PYTHONS, change, cli, damaged, many, other_files, whole
from conftest import BUILT, run, use

CODECS = ["stored", "szx", "lorenzo", "ndzip", "bytes", "planes", "scaled", "dense"]


def told(path, *arguments, **how):
    status, out, err = cli("inspect", path, "--json", *arguments, **how)
    assert not err, err
    return status, {what["name"]: what for what in json.loads(out)["objects"]}


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("how", [{}, {"libver": "latest"}, {"userblock_size": 1024}],
                         ids=["plain", "latest", "user block"])
def test_every_chunk_is_told_as_it_lies_in_the_file(python, how, tmp_path):
    if python == "Debian" and how.get("libver"):
        how = {"libver": ("v110", "v110")}
    whole(tmp_path / "a.h5", **how)
    status, found = told(tmp_path / "a.h5", python=PYTHONS[python])
    assert status == 0
    data = (tmp_path / "a.h5").read_bytes()
    with h5py.File(tmp_path / "a.h5") as f:
        for name in ("v", "g/rel", "g/part", "g/whole"):
            what = found[f"/{name}"]
            stored = [f[name].id.get_chunk_info(k) for k in range(f[name].id.get_num_chunks())]
            assert [tuple(c["origin"]) for c in what["each"]] == sorted(s.chunk_offset for s in stored), name
            for chunk in what["each"]:
                info = f[name].id.get_chunk_info_by_coord(tuple(chunk["origin"]))
                frame = f[name].id.read_direct_chunk(tuple(chunk["origin"]))[1]
                assert (chunk["stored_bytes"], chunk["file_offset"]) == (info.size, info.byte_offset) and data[
                    info.byte_offset :].startswith(frame)
                assert chunk["codec"] == CODECS[frame[9]] and chunk["lossless"] == (frame[10] == 9), (name, chunk)
                bound = np.frombuffer(frame[32:40], "<f8")[0]
                assert chunk.get("bound", 0) == bound, (name, chunk)
            assert what["stored_bytes"] == f[name].id.get_storage_size()
    asked = {name: what["asked"]["text"] for name, what in found.items() if "asked" in what}
    assert asked == {
        "/v": "Lossy(absolute=0.001, fill_value=-999.0)", "/g/rel": "Lossy(relative=0.0001, codec='szx')",
        "/g/part": "Lossy(pointwise_relative=0.01)", "/g/whole": "Lossy(absolute=0.001)",
    }
    assert found["/g/part"]["chunks"] == 8 and found["/g/part"]["chunks_not_stored"] == 24
    assert not found["/g/whole"]["lossy"] and found["/v"]["lossy"]  # whole numbers
    # `again` is `time`
    assert set(found) == {"/v", "/g/rel", "/g/part", "/g/whole", "/zip", "/hidden", "/again", "/names"}


def test_values_that_a_stored_chunk_lost_are_told(tmp_path):
    """What planes cannot make smaller under an absolute bound is stored as planes would give it back, with loss."""
    rng = np.random.default_rng(1)
    x = (rng.normal(0, 1, (64, 64)) * 10.0 ** rng.integers(-3, 6, (64, 64))).astype("f4")
    asked = {"planes": 511004, "auto": 11004, "relative": 521010}
    with h5py.File(tmp_path / "a.h5", "w") as f:
        for name, word in asked.items():
            f.create_dataset(name, data=x, chunks=x.shape, compression=443, compression_opts=(word,))
        halves = (x % 64).astype("f2")
        f.create_dataset("halves", data=halves, chunks=x.shape, compression=443, compression_opts=(511004,))
    with h5py.File(tmp_path / "a.h5") as f:
        changed = {name: bool((f[name][...] != x).any()) for name in asked}
        stored = {name: f[name].id.read_direct_chunk((0, 0))[1][9] == 0 for name in asked}
        assert (f["halves"][...] != halves).any() and f["halves"].id.read_direct_chunk((0, 0))[1][9] == 4, "by bytes"
    assert stored["planes"] and stored["relative"] and changed == {"planes": True, "auto": False, "relative": False}
    status, found = told(tmp_path / "a.h5")
    each = {name: found[f"/{name}"]["each"][0] for name in [*asked, "halves"]}
    for name in ("planes", "halves"):
        assert status == 0 and not each[name]["lossless"] and each[name]["bound"] == 1e-4, name
    assert each["relative"]["lossless"] and "bound" not in each["relative"]
    _, text, _ = cli("inspect", tmp_path / "a.h5", "--dataset", "planes")
    assert "used      0.0001 in 1 chunk\n" in text and "no loss" not in text, text


def test_the_ratio_is_that_of_verify_and_h5dump(tmp_path):
    """Of the dataset's values: what a chunk has room for beyond the edge is no data, and what was never written is."""
    x = whole(tmp_path / "a.h5")
    _, found = told(tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5") as f, h5py.File(tmp_path / "plain.h5", "w") as g:
        g["v"], g["g/part"] = x, f["g/part"][...]
        assert any(n % c for n, c in zip(x.shape, f["v"].chunks)), "chunks reach beyond the edge"
    for name, values in (("v", x.nbytes), ("g/part", 64 * 64 * 8)):
        what = found[f"/{name}"]
        stored = what["stored_bytes"]
        assert what["raw_bytes"] == values
        assert f"({values / stored:.3f}:1 COMPRESSION)" in run("h5dump", "-p", "-H", "-d", name, tmp_path / "a.h5")
        shown = cli("inspect", tmp_path / "a.h5")[1]
        verified = cli("verify", tmp_path / "plain.h5", tmp_path / "a.h5", "--dataset", name)[1]
        raw, there, ratio = re.search(r"size: (.*) as (.*), ratio (.*)", verified).groups()
        assert f"{raw} in {there}: ratio {ratio};" in shown, (verified, shown)


def test_the_text_says_it_in_words(tmp_path):
    whole(tmp_path / "a.h5")
    status, out, _ = cli("inspect", tmp_path / "a.h5", "--check")
    assert status == 0 and "no damage, by decoded values of 36 chunks" in out, out
    for line in ["no value changes by more than 0.001, in the units of the data; NaN, infinities and the fill value "
                 "-999 keep every bit",
                 "no value changes by more than 0.0001 of its chunk's range",
                 "no value changes by more than 0.01 of itself, zeros stay zero",
                 "0.01 of each value in 8 chunks", "h5z-gpu, fletcher32", "24 chunks never written: all fill value",
                 "promised  every bit is kept: bits are lost of floating-point numbers alone",
                 "/zip  float32 24 x 30 x 60, chunks, deflate"]:
        assert line in out, line
    status, out, _ = cli("inspect", tmp_path / "a.h5", "--dataset", "g/rel", "--headers")
    assert status == 0 and "/g/rel" in out and "/v " not in out and "headers (not their contents)" in out


@pytest.mark.parametrize("python", PYTHONS)
def test_damaged_chunks_are_named(python, tmp_path):
    damaged(tmp_path / "a.h5")
    status, found = told(tmp_path / "a.h5", python=PYTHONS[python])
    bad = [tuple(c["origin"]) for c in found["/v"]["each"] if "damaged" in c]
    assert status == 1 and bad == BAD and found["/v"]["damaged"] == 2
    assert all(w.get("damaged", 0) == 0 for n, w in found.items() if n != "/v")
    status, out, _ = cli("inspect", tmp_path / "a.h5", python=PYTHONS[python])
    assert (status == 1 and "DAMAGED   chunk at (8, 0, 32), values [8:16, 0:16, 32:60]: checksum" in out
            and "2 places damaged" in out), out
    (mine,) = [part for part in out.split("\n\n") if part.startswith("/v ")]
    lines = mine.splitlines()
    first = next(k for k, line in enumerate(lines) if line.startswith("  map "))
    marks = [line.replace("map", "").split()[0] for line in lines[first : first + 6]]
    assert [("X" in mark, mark.index("X") if "X" in mark else None) for mark in marks] == [
        (False, None), (False, None), (True, 1), (False, None), (False, None), (True, 0)], mine
    # HDF5's own checksum behind a frame is no part of it.
    change(tmp_path / "a.h5", "g/rel", [(0, 0, 0)])
    status, found = told(tmp_path / "a.h5", "--check", python=PYTHONS[python])
    assert status == 1 and (found["/v"]["damaged"], found["/g/rel"]["damaged"]) == (2, 1)


def test_a_header_alone_shows_a_wrong_length(tmp_path):
    whole(tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5", "a") as f:
        frame = f["v"].id.read_direct_chunk((0, 0, 0))[1]
        f["v"].id.write_direct_chunk((0, 0, 0), frame[:-4])
    status, found = told(tmp_path / "a.h5", "--headers")
    bad = {tuple(c["origin"]): c["damaged"] for c in found["/v"]["each"] if "damaged" in c}
    assert status == 1 and list(bad) == [(0, 0, 0)] and "frame" in bad[0, 0, 0], bad


def test_strings_are_promised_no_bound(tmp_path):
    """HDF5 tells the filter no type of strings of variable length, so that its words hold the bound alone."""
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f.create_dataset("names", data=["a", "bc"], dtype=h5py.string_dtype(), chunks=(2,), compression=443,
                         compression_opts=(11003,))
        f.create_dataset("tas", data=np.ones(9, "f4"), chunks=(9,), compression=443, compression_opts=(11003,))
    found = told(tmp_path / "a.h5")[1]
    assert [found[name]["lossy"] for name in ("/names", "/tas")] == [False, True]
    assert "every bit is kept" in cli("inspect", tmp_path / "a.h5", "--dataset", "names")[1]


def test_netcdf_files_by_name_and_group(tmp_path):
    use("""
import sys, netCDF4, numpy as np
from h5z_gpu import Lossy
from h5z_gpu.netcdf import def_filter
with netCDF4.Dataset(sys.argv[1], "w") as ds:
    for n in ("time", "lat", "lon"):
        ds.createDimension(n, 32)
        ds.createVariable(n, "f8", (n,))[:] = np.arange(32)
    v = ds.createGroup("day").createVariable("tas", "f4", ("time", "lat", "lon"), chunksizes=(16, 32, 32),
                                             fill_value=-999)
    def_filter(v, Lossy(absolute=0.5))
    v[:] = 300
""", tmp_path / "a.nc")
    status, found = told(tmp_path / "a.nc")
    assert status == 0 and found["/day/tas"]["asked"]["bound"] == 0.5 and found["/day/tas"]["asked"][
        "fill_value"] == -999
    assert [found[f"/{n}"]["filters"] for n in ("time", "lat", "lon")] == [[], [], []]


def test_many_chunks_take_seconds(tmp_path):
    """20 000 chunks: nothing is decoded. Of the processor, for the machine may have other work."""
    x = np.cumsum(np.random.default_rng(1).normal(size=(2000, 400)), 0).astype("f4")
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f.create_dataset("v", data=x, chunks=(10, 4), compression=443, compression_opts=(11003,))
    began = seconds()
    status, out, _ = cli("inspect", tmp_path / "a.h5")
    took = seconds() - began
    assert status == 0 and "20000 chunks" in out and max(map(len, out.splitlines())) < 200, out
    assert took < 20, took


def seconds():
    """Of the processor, by all programs that ran to their end here."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_what_cannot_be_read_is_one_sentence(tmp_path):
    whole(tmp_path / "a.h5")
    data = (tmp_path / "a.h5").read_bytes()
    (tmp_path / "cut.h5").write_bytes(data[: len(data) // 2])
    cases = {("inspect", tmp_path / name): part for name, part in other_files(tmp_path).items()} | {
        ("inspect", tmp_path / "cut.h5"): f"is cut short: it has {len(data) // 2} bytes, and should have {len(data)}",
        ("inspect", tmp_path / "a.h5", "--dataset", "nothing"): "nothing is not there; it has",
        ("inspect", tmp_path / "a.h5", "--dataset", "g"): "g is a group",
        ("inspect", tmp_path / "a.h5", "--dataset", "zip"): "has no dataset with the filter h5z-gpu here, but 1 "
        "dataset, with deflate",
    }
    for (call, part), (status, out, err) in zip(cases.items(), many(*cases)):
        assert status == 2 and not out and part in err and len(err.splitlines()) == 1, (call, err)
    wrong = [["inspect"], ["inspect", "a", "--headers", "--check"], ["nonsense"], []]
    assert [status for status, _, _ in many(*wrong)] == [2, 2, 2, 2]
    assert cli("inspect", tmp_path / "missing.h5")[0] == 2  # as a program of its own


def test_the_command_line_itself():
    assert cli("path")[1].strip() and cli("--version")[1].startswith("h5z-gpu 0.1.")
    status, out, _ = cli("--help")
    assert status == 0 and all(name in out for name in ("doctor", "inspect", "recover", "env"))
    assert cli("env")[1].startswith("export HDF5_PLUGIN_PATH=")


def test_words(tmp_path):
    """As the program beside the plugin says them; words as ncdump and h5dump show them."""
    asked = [["abs", "2.5e-4"], ["psnr", "60", "--codec", "lorenzo"], ["lossless"], ["rel", "1.234e-5"],
             ["mode=abs,bound=1e-3,codec=szx"]]
    for call, (status, out, err) in zip(asked, many(*(["words", *call] for call in asked))):
        assert status == 0 and not err and out == run(BUILT / "bin/h5z-gpu", "words", *call), call
    whole(tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5") as f:
        words = [str(w - 2**32 if w > 2**31 else w) for w in f["v"].id.get_create_plist().get_filter_by_id(443)[1]]
    assert any(w.startswith("-") for w in words)
    (status, out, _) = cli("words", "abs", "1e-3", "--json")
    assert status == 0 and json.loads(out)["words"] == [11003] and json.loads(out)["lines"][0] == {"tool": "number",
                                                                                                   "line": "11003"}
    wrong = [["0"], ["abs"], ["1e-3"], ["abs", "1e-3", "4"], ["abs", "1", "--tool", "none"],
             ["--codec", "x", "abs", "1"]]
    pasted, *refused = many(["words", "443, " + ", ".join(words)], *(["words", *w] for w in wrong))
    assert pasted[0] == 0 and "typed as   11003" in pasted[1] and "fill value -9.99e2" in pasted[
        1] and "f32 (" in pasted[1], pasted
    for call, (status, out, err) in zip(wrong, refused):
        assert status == 2 and not out and len(err.splitlines()) == 1 and len(err) > 40, (call, err)


def test_a_virtual_dataset_names_the_files_that_hold_its_data(tmp_path):
    whole(tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5") as f:
        layout = h5py.VirtualLayout(f["v"].shape, "f4")
        layout[...] = h5py.VirtualSource("a.h5", "v", f["v"].shape)
    with h5py.File(tmp_path / "joined.h5", "w") as f:
        f.create_virtual_dataset("v", layout)
    status, out, err = cli("inspect", tmp_path / "joined.h5")
    assert (status, out) == (2, "") and err.strip().endswith("1 dataset, without any filter; its data is in a.h5: "
                                                             "inspect those"), err
    with h5py.File(tmp_path / "joined.h5", "a") as f:
        f.create_dataset("w", data=np.zeros((8, 8), "f4"), compression=443, compression_opts=(11003,))
    status, found = told(tmp_path / "joined.h5")
    assert status == 0 and found["/v"]["layout"] == "virtual" and found["/v"]["sources"] == ["a.h5"]
