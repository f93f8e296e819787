# SPDX-License-Identifier: MIT OR Apache-2.0
"""Chunks that only the build which wrote them can read: of a build before 0.1.0, whose frames have version 1, and of an
unreleased build in another state of the format. Every command says so once, and none takes them for damage."""
import json
import re
import struct

import h5py
import numpy as np
import pytest
from cli import cli, many, values, whole
from conftest import PLUGIN, ROOT
from programs import filters

CHUNKS = [(0, 0, 0), (8, 16, 32), (16, 0, 32)]
BEFORE = "written by a build before 0.1.0; read it with that build and write it again"
DRAFT = ("written by an unreleased build, in a state of the format (00000007) that was not released; read it with that "
         "build and write it again with a release")
KINDS = {BEFORE: (8, b"\1"), DRAFT: (52, struct.pack("<I", 7))}  # what another build has in a frame, and where


def rewrite(path, name, chunks, said, reference=None):
    """Makes frames of a file as another build wrote them; with `reference` they are sealed again."""
    data, (place, new) = bytearray(path.read_bytes()), KINDS[said]
    with h5py.File(path) as f:
        for origin in chunks:
            info = f[name].id.get_chunk_info_by_coord(origin)
            frame = data[info.byte_offset : info.byte_offset + info.size]
            frame[place : place + len(new)] = new
            if reference:
                struct.pack_into("<Q", frame, 40, reference.frame_checksum(bytes(frame)))
            data[info.byte_offset : info.byte_offset + info.size] = frame
    path.write_bytes(data)


@pytest.mark.parametrize("said", KINDS, ids=["before 0.1.0", "another draft"])
def test_every_command_says_who_reads_the_file(said, reference, tmp_path):
    old, good, out = (tmp_path / name for name in ("old.h5", "good.h5", "out.h5"))
    for path in (old, good):
        whole(path)
    rewrite(old, "v", CHUNKS, said, reference)
    (tmp_path / "bounds.toml").write_text('["*"]\nabsolute = 1\n')
    calls = [("inspect", old), ("inspect", "--headers", old), ("inspect", "--check", "--json", old),
             ("verify", good, old), ("verify", old, good, "--json"), ("verify", "--structure", good, old),
             ("advise", old), ("advise", old, "--json"), ("repack", old, out, "--lossless"),
             ("repack", old, out, "--absolute", 1), ("repack", old, out, "--bounds", tmp_path / "bounds.toml"),
             ("repack", old, out, "--advise"), ("recover", old, out), ("recover", old, out, "--json", "--fill", 7)]
    for call, (status, text, err) in zip(calls, many(*calls)):
        assert (status, err) == (3, f"h5z-gpu {call[0]}: {old}: v: 3 chunks {said}\n"), (call, status, text, err)
        assert call[0] == "inspect" or not text, (call, text)
        assert not re.search("DAMAGED|X damaged|places? damaged|recover|: 0x", text), (call, text)
        assert not out.exists(), call
    assert '"damaged": 0' in many(calls[2])[0][1] and "v" in many(calls[0])[0][1]


def test_a_file_as_a_build_before_0_1_0_wrote_it(reference, tmp_path):
    """Its stored words have another layout, too, which are no damage either. All of its datasets are named."""
    path, out = tmp_path / "old.h5", tmp_path / "out.h5"
    with h5py.File(path, "w") as f:
        for name in ("g/a", "b"):
            f.create_dataset(name, data=values(), chunks=(8, 16, 32), compression=443, compression_opts=(11003,))
        f.create_dataset("never written", (9,), "f4", chunks=(3,), compression=443, compression_opts=(11003,))
    with h5py.File(path) as f:
        every = {n: [f[n].id.get_chunk_info(k).chunk_offset for k in range(f[n].id.get_num_chunks())]
                 for n in ("g/a", "b")}
    for name, chunks in every.items():
        rewrite(path, name, chunks, BEFORE, reference)
    for name in (*every, "never written"):
        words = np.array(filters(path, name)[0][2], "<u4")
        old = words.copy()
        old[0], old[1] = words[0] - 1, words[1] - (1 << 24)
        path.write_bytes(path.read_bytes().replace(words.tobytes(), old.tobytes()))
    n = sum(map(len, every.values()))
    calls = [("inspect", path), ("verify", path, path), ("advise", path), ("repack", path, out, "--lossless"),
             ("recover", path, out)]
    for call, (status, text, err) in zip(calls, many(*calls)):
        assert (status, err) == (3, f"h5z-gpu {call[0]}: {path}: b, g/a: {n} chunks {BEFORE}\n"), (call, text, err)
        assert "DAMAGED" not in text and not out.exists(), (call, text)
    files = json.loads(cli("doctor", path, "--json")[1])["files"]
    assert [f["verdict"] for f in files] == [f"b, g/a: {n} chunks {BEFORE}"], files


def test_words_that_look_older_than_their_frames_are_damaged(tmp_path):
    path = tmp_path / "words.h5"
    whole(path)
    words = np.array(filters(path, "v")[0][2], "<u4")
    old = words.copy()
    old[0], old[1] = words[0] - 1, words[1] - (1 << 24)
    path.write_bytes(path.read_bytes().replace(words.tobytes(), old.tobytes()))
    status, text, err = cli("inspect", path)
    assert status == 1 and not err and "words are damaged" in text, (status, text, err)


def test_of_datasets_that_are_named_no_other_counts(reference, tmp_path):
    old, good = tmp_path / "old.h5", tmp_path / "good.h5"
    for path in (old, good):
        whole(path)
    rewrite(old, "v", CHUNKS, BEFORE, reference)
    calls = [("verify", good, old, "--dataset", "g/rel"), ("verify", good, old, "--dataset", "v")]
    (status, text, err), (refused, _, said) = many(*calls)
    assert (status, err) == (0, "") and "1 dataset" in text, (status, text, err)
    assert refused == 3 and said == f"h5z-gpu verify: {old}: v: 3 chunks {BEFORE}\n", said


def test_chunks_that_take_minutes_to_list_are_not_asked(reference, tmp_path, monkeypatch):
    """HDF5 before 1.14 with many chunks: whoever reads such a chunk says what it is."""
    monkeypatch.setenv("H5Z_GPU_PLUGIN_PATH", str(PLUGIN.parent))
    monkeypatch.syspath_prepend(str(ROOT / "plugin/python"))
    from h5z_gpu.cli import builds, objects

    old = tmp_path / "old.h5"
    whole(old)
    rewrite(old, "v", CHUNKS, BEFORE, reference)
    with pytest.raises(builds.OtherBuild):
        builds.open_data(old)
    monkeypatch.setattr(objects, "slow_to_list", lambda dataset: dataset.name == "/v")
    builds.open_data(old).close()


def test_damage_beside_them_and_in_their_place(reference, tmp_path):
    """A file with both is for the other build. A bit of the draft that has changed by itself is damage, as ever."""
    both, damaged, out = (tmp_path / name for name in ("both.h5", "damaged.h5", "out.h5"))
    for path in (both, damaged):
        whole(path)
        rewrite(path, "v", CHUNKS[:1], DRAFT)
    rewrite(both, "v", CHUNKS[1:2], DRAFT, reference)
    rewrite(both, "g/rel", CHUNKS[2:], BEFORE)
    said = f"{both}: g/rel: 1 chunk {BEFORE}; v: 1 chunk {DRAFT}\n"
    for command, (status, text, err) in zip(("inspect", "recover"), many(("inspect", both), ("recover", both, out))):
        assert (status, err) == (3, f"h5z-gpu {command}: {said}") and not out.exists(), (status, text, err)
    for call, (status, text, err) in zip((1, 2), many(("inspect", damaged), ("recover", damaged, out))):
        assert status == 1 and not err and "checksum" in text and "not released" not in text, (call, text, err)
    assert out.exists()
