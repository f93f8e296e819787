# SPDX-License-Identifier: MIT OR Apache-2.0
"""Files of every release, kept for ever: each program reads the bits that were read when they were written."""
import json
import zipfile

import golden
import h5py
import judge
import numpy as np
import programs
import pytest
from conftest import ROOT, python, use

FILES = sorted(p for p in (ROOT / "tests/files").glob("*/all.*") if p.suffix in (".h5", ".nc"))
IDS = [f"{p.parent.name} {p.name}" for p in FILES]
STORES = sorted((ROOT / "tests/files").glob("*/all.*.zip"))
# What a program reads of a store, and whether it is within the bounds. The fill value of Zarr 3 is 0 where none is
# declared.
READ_STORE = """
import json, sys, golden, judge
path, read, undeclared = sys.argv[1:]
found = getattr(golden, read)(path)
for name, y in found.items():
    _, _, mode, fill = (golden.CASES | golden.OTHERS)[name]
    fill = golden.FILL if fill else eval(undeclared)
    judge.check_chunks(golden.content(name), y, golden.extents(name)[1], *mode, fill=fill)
print(json.dumps({name: golden.bits(y) for name, y in found.items()}))
"""


def expected(path):
    return json.loads((path.parent / "expected.json").read_text())[path.name]


def read(reader, path, names, tmp):
    return programs.READERS[reader](path, names, {n: golden.content(n) for n in names}, tmp)


def test_there_are_files_of_all_kinds():
    assert {p.name for p in FILES + STORES} == set(golden.FILES) and (ROOT / "tests/files/0.1.0/all.h5") in FILES


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


@pytest.mark.parametrize("path", STORES, ids=[f"{p.parent.name} {p.name}" for p in STORES])
def test_stores_of_zarr_are_read_as_they_were(path):
    """By zarr-python, and what netCDF wrote by netCDF too."""
    nczarr = path.name == "all.nczarr.zip"
    for run, read in ((use, "read_zarr"), *([(python, "read_netcdf")] if nczarr else [])):
        assert json.loads(run(READ_STORE, path, read, None if nczarr else 0).splitlines()[-1]) == expected(path), read
    with zipfile.ZipFile(path) as z:
        frames = [data for data in map(z.read, z.namelist()) if data[:8] == b"\x89H5ZG\r\n\x1a"]
    assert all(f[52:56] == bytes(4) for f in frames)
    assert {f[9] for f in frames} == golden.EVERY_CODEC - ({0, 4} if nczarr else set())


def test_every_codec_is_in_the_file():
    for path in FILES:
        if path.suffix == ".h5":
            with h5py.File(path) as f:
                frames = [f[n].id.read_direct_chunk((0, 0, 0))[1] for n in f]
            assert {frame[9] for frame in frames} == golden.EVERY_CODEC
            assert {f.dtype for f in map(golden.content, golden.CASES
                                         | golden.OTHERS)} >= {np.dtype(t) for t in ("f4", "f8", ">f4", ">f8")}


def test_a_file_that_is_there_is_not_made_again():
    before = [p.read_bytes() for p in FILES + STORES]
    with pytest.raises(SystemExit, match="kept as they are"):
        golden.main()
    assert [p.read_bytes() for p in FILES + STORES] == before
