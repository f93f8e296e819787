# SPDX-License-Identifier: MIT OR Apache-2.0
"""`repack` and `recover` copy HDF5 files of every kind that HDF5 lets one make, and nothing in them changes but what
was asked: `odd_files` makes them, `odd_judge` compares by h5dump and h5diff.

A run takes one of 160 parts, H5Z_GPU_TEST_PART another one. H5Z_GPU_TEST_LONG=1 takes all of them.
"""
import os
import time

import h5py
import numpy as np
import odd_files
import odd_judge
import pytest
from cli import environment, h5z_gpu
from conftest import LONG, use
from odd_judge import BESIDE, SAME, WELL, Copy, judge

PARTS = 1 if LONG else 160
COMMANDS = ("lossless", "bound", "recover") if LONG else ("lossless",)


def programs():
    """The environment of the commands; they find values beside a file."""
    return environment(HDF5_PLUGIN_PATH=os.environ["HDF5_PLUGIN_PATH"], **BESIDE)


def test_copies_are_the_files(tmp_path):
    part_of_all = int(os.environ.get("H5Z_GPU_TEST_PART", "108")) % PARTS
    names = odd_files.cases()[part_of_all::PARTS]
    found = []
    for k in range(0, len(names), 100):
        part = tmp_path / str(k)
        part.mkdir()
        found += odd_judge.judge_all(names[k : k + 100], part, programs(), COMMANDS)
    print(*odd_judge.table(found), sep="\n")
    wrong = [f"{name} {command}: {verdict}: {why}" for name, command, verdict, why in found
             if verdict not in WELL]
    assert not wrong, f"part {part_of_all} of {PARTS}: {len(wrong)} of {len(found)}\n" + "\n".join(wrong[:40])
    assert sum(verdict == SAME for *_, verdict, _ in found) > 0.8 * len(found)


def test_there_are_enough_files():
    """Each type, place, feature and format is among them."""
    names = odd_files.cases()
    assert len(names) == len(set(names)) >= 3000
    parts = {part for name in names for part in name.split(".")}
    assert parts >= {*odd_files.TYPES, *odd_files.PLACES, *odd_files.FEATURES, *odd_files.FORMATS}


def change_value(f):
    f["here/d"][3] = np.nextafter(f["here/d"][3], 9, dtype="f4")


def change_attribute(f):
    f["here/d"].attrs.create("a", np.int16(5), dtype="<i4")


def change_comment(f):
    h5py.h5o.set_comment(f["here"].id, b"another")


def change_fill(f):
    x = f["here/d"][...]
    del f["here/d"]
    f.create_dataset("here/d", data=x, chunks=(16,), maxshape=(None,), fillvalue=4)
    f["here/d"].attrs["a"] = np.int16(5)


def change_limit(f):
    x = f["here/d"][...]
    del f["here/d"]
    f.create_dataset("here/d", data=x, chunks=(16,), maxshape=(99,), fillvalue=3)
    f["here/d"].attrs["a"] = np.int16(5)


def change_link(f):
    del f["here/soft"]
    f["here/soft"] = h5py.SoftLink("/here/e")


def change_reference(f):
    f["here/ref"][0] = f["here"].ref


def change_name(f):
    f.move("here/d", "here/e")


PLANTED = (change_value, change_attribute, change_comment, change_fill, change_limit, change_link, change_reference,
           change_name)


@pytest.mark.parametrize("change", [None, *PLANTED], ids=lambda c: c.__name__ if c else "nothing")
def test_the_judge_sees_a_change(tmp_path, change):
    for path in (tmp_path / "a.h5", tmp_path / "b.h5"):
        with h5py.File(path, "w", libver="v108") as f:
            f.create_dataset("here/d", data=np.arange(40, dtype="f4"), chunks=(16,), maxshape=(None,), fillvalue=3)
            f["here/d"].attrs["a"] = np.int16(5)
            f["here/soft"] = h5py.SoftLink("/here/d")
            f.create_dataset("here/ref", data=[f["/"].ref], dtype=h5py.ref_dtype)
    if change:
        with h5py.File(path, "r+") as f:
            change(f)
    verdict, why = judge(Copy("a", "lossless", tmp_path / "a.h5", path))
    assert verdict == ("differs" if change else SAME), why


@pytest.mark.parametrize("by", [0, 0.9, 1.1])
def test_the_judge_knows_the_bound(tmp_path, by):
    """Attributes that say what was lost are no difference; a value beyond the bound is."""
    a = np.arange(40, dtype="f4")
    for path, x in ((tmp_path / "a.h5", a), (tmp_path / "b.h5", a + np.float32(by * odd_judge.BOUND) * (a == 3))):
        with h5py.File(path, "w") as f:
            f["d"] = x
    with h5py.File(path, "r+") as f:
        f["d"].attrs["lossy_compression"] = "said"
    verdict, why = judge(Copy("a", "bound", tmp_path / "a.h5", path))
    assert verdict == ("differs" if by > 1 else SAME), why


def test_the_same_file_gives_the_same_bytes(tmp_path):
    """In another second, and in a process whose memory lies elsewhere. Of the last four, HDF5 writes checksums of a
    header's time into free space or into null messages, and memory behind references of HDF5 1.12."""
    names = ("random.1", "comments.latest", "f32be.chunked.v110", "f32be.chunked.earliest9", "fill_states.v110",
             "indexes.latest300", "standard.chunked.tracked300", "vlen_standard.compact.latest300")
    for name in names:
        odd_files.make(name, tmp_path / f"{name}.h5")
    for again in (0, 1):
        time.sleep(1.1 * again)
        (tmp_path / f"{again}").mkdir()
        copies = [Copy(name, "lossless", tmp_path / f"{name}.h5", tmp_path / f"{again}/{name}.h5") for name in names]
        odd_judge.carry_out(copies, programs())
        assert [copy.said for copy in copies if copy.status] == []
    assert [name for name in names if len({(tmp_path / f"{k}/{name}.h5").read_bytes() for k in (0, 1)}) > 1] == []


@pytest.mark.parametrize("name", ["nbit.earliest", "region.unwritten.earliest9", "vlen_region.unwritten.v108"])
def test_types_and_fill_values_of_old_libraries_are_copied(tmp_path, name):
    """Numbers of few bits in many bytes, which HDF5 2.0 refuses by default; fill values that refer to regions."""
    odd_files.make(name, tmp_path / "a.h5")
    h5z_gpu("repack", tmp_path / "a.h5", tmp_path / "b.h5", "--lossless", "--verify", **BESIDE)


def test_a_superblock_that_no_property_explains_is_kept(tmp_path):
    """HDF5 1.10.0 made them: of version 2, with a root whose header is of version 1. As made here, by taking away the
    message that says how the file manages space."""
    fcpl, fapl = h5py.h5p.create(h5py.h5p.FILE_CREATE), h5py.h5p.create(h5py.h5p.FILE_ACCESS)
    fcpl.set_file_space_strategy(h5py.h5f.FSPACE_STRATEGY_NONE, False, 1)
    fapl.set_libver_bounds(h5py.h5f.LIBVER_EARLIEST, h5py.h5f.LIBVER_LATEST)
    with h5py.File(h5py.h5f.create(os.fsencode(tmp_path / "a.h5"), fcpl=fcpl, fapl=fapl)) as f:
        f["d"] = np.arange(9)
    data = bytearray((tmp_path / "a.h5").read_bytes())
    assert data[8] == 2
    data[20:28] = b"\xff" * 8  # the address of the superblock's extension
    found = use("import sys, numpy as np\nfrom h5z_gpu.cli.times import lookup3\n"
                "print(lookup3(np.frombuffer(bytes.fromhex(sys.argv[1]), np.uint8)[None])[0])", data[:44].hex())
    data[44:48] = int(found).to_bytes(4, "little")
    (tmp_path / "a.h5").write_bytes(data)
    with h5py.File(tmp_path / "a.h5") as f:
        assert f["d"][3] == 3 and f.id.get_create_plist().get_file_space_strategy()[0] == 0
    h5z_gpu("repack", tmp_path / "a.h5", tmp_path / "b.h5", "--lossless", "--verify")
    assert (tmp_path / "b.h5").read_bytes()[8] == 2


@pytest.mark.parametrize("name", ["random.4", "pair_deep.named.latest"] if LONG else ["random.4"])
def test_a_copy_of_a_copy_is_the_copy(tmp_path, name):
    odd_files.make(name, tmp_path / "a.h5")
    for source, out in (("a.h5", "b.h5"), ("b.h5", "c.h5")):
        h5z_gpu("repack", tmp_path / source, tmp_path / out, "--lossless", **BESIDE)
    verdict, why = judge(Copy("b", "lossless", tmp_path / "b.h5", tmp_path / "c.h5"))
    assert verdict == SAME, why


@pytest.mark.parametrize("name", ["region.zipped.earliest9", "vlen_standard.zipped.earliest", "object.chunked.v110",
                                  "vlen_compound.zipped.latest", "f32be.unwritten.latest"])
def test_recover_keeps_values_beside_a_damaged_header(tmp_path, name):
    """Of references, and of elements of any length, whose filters HDF5 passes over; and null spaces."""
    whole, damaged, made = (tmp_path / f"{k}.h5" for k in ("whole", "damaged", "made"))
    odd_files.make(name, whole)
    odd_judge.damage(whole, damaged)
    assert h5z_gpu("recover", damaged, made, status=1)[0].count("lost: ") == 1
    with h5py.File(whole, "r+") as f:
        del f[odd_judge.LOST]
    h5z_gpu("verify", "--structure", whole, made)
