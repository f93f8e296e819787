# SPDX-License-Identifier: MIT OR Apache-2.0
"""Files of every release, kept for ever: each program reads the bits that were read when they were written."""
import json

import golden
import h5py
import judge
import numpy as np
import programs
import pytest
from conftest import ROOT

FILES = sorted(p for p in (ROOT / "tests/files").glob("*/all.*") if p.suffix in (".h5", ".nc"))
IDS = [f"{p.parent.name} {p.name}" for p in FILES]


def expected(path):
    return json.loads((path.parent / "expected.json").read_text())[path.name]


def read(reader, path, names, tmp):
    return programs.READERS[reader](path, names, {n: golden.content(n) for n in names}, tmp)


def test_there_are_files_of_both_kinds():
    assert {p.name for p in FILES} == {"all.h5", "all.nc"} and (ROOT / "tests/files/0.1.0/all.h5") in FILES


@pytest.mark.third
@pytest.mark.parametrize("path", FILES, ids=IDS)
@pytest.mark.parametrize("reader", programs.READERS)
def test_every_program_reads_the_same_bits(reader, path, tmp_path):
    want = {n: bits for n, bits in expected(path).items() if n in golden.CASES}
    got = read(reader, path, list(want), tmp_path)
    for name, bits in want.items():
        assert got[name].dtype.itemsize == golden.content(name).dtype.itemsize
        assert golden.bits(got[name]) == bits, name


@pytest.mark.parametrize("path", FILES, ids=IDS)
def test_what_was_promised_then_holds_now(path, tmp_path):
    with h5py.File(path) as f:
        for name, bits in expected(path).items():
            _, word, mode, fill = (golden.CASES | golden.OTHERS)[name]
            got, x = f[name][...], golden.content(name)
            assert golden.bits(got) == bits, name
            defined = f[name].id.get_create_plist().fill_value_defined() == h5py.h5d.FILL_VALUE_USER_DEFINED
            assert defined or not fill
            judge.check_chunks(x, got, golden.extents(name)[1], *mode, fill=f[name].fillvalue if defined else None)
            assert programs.listed(programs.filters(path, name)[0][2])[0] in (word, 90000)


def test_every_codec_is_in_the_file():
    for path in FILES:
        if path.suffix == ".h5":
            with h5py.File(path) as f:
                frames = [f[n].id.read_direct_chunk((0, 0, 0))[1] for n in f]
            assert {frame[9] for frame in frames} == golden.EVERY_CODEC
            assert {f.dtype for f in map(golden.content, golden.CASES
                                         | golden.OTHERS)} >= {np.dtype(t) for t in ("f4", "f8", ">f4", ">f8")}


def test_a_file_that_is_there_is_not_made_again():
    before = [p.read_bytes() for p in FILES]
    with pytest.raises(SystemExit, match="kept as they are"):
        golden.main()
    assert [p.read_bytes() for p in FILES] == before
