# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs the Python that plugin/python/README.md shows, section by section, and judges what it has written."""
import re
import sys

import h5py
import judge
import numpy as np
import pytest
from conftest import PLUGIN, ROOT, clean, run, sample, use
from programs import filters, listed, stored_bytes

TEXT = (ROOT / "plugin/python/README.md").read_text()
SECTIONS = dict(re.findall(r"^##? (.+)\n((?:(?!^## ).*\n)*)", TEXT, re.M))
FIRST = "h5z-gpu for Python"
ARRAY = np.random.default_rng(1).normal(size=(64, 128, 256)).cumsum(axis=2).astype("f4")


def python(section):
    return "".join(re.findall(r"^```python\n(.*?)^```$", SECTIONS[section], re.M | re.S))


def shown(section, tmp_path, more=""):
    """What a section's code prints, run behind the code of the first one and two names, and `more` behind it."""
    first = f"{python(FIRST)}from h5z_gpu import Lossless, Lossy\n" if section != FIRST else ""
    return use(f"import os, sys; os.chdir(sys.argv[1])\n{first}{python(section)}{more}", tmp_path)


def judged(path, name, values, mode, bound, typed):
    with h5py.File(path) as f:
        assert 0 < judge.check(values, f[name][...], mode, bound) <= 1
    assert listed(filters(path, name)[0][2])[0] == typed


def test_every_section_with_code_is_tested():
    tested = set(re.findall(r'python\("([^"]+)"\)|shown\("([^"]+)"', open(__file__).read()))
    tested = {name for pair in tested for name in pair} | {FIRST}
    assert {name for name, text in SECTIONS.items() if "```python" in text} == tested - {""}


def test_the_first_lines(tmp_path):
    shown(FIRST, tmp_path)
    judged(tmp_path / "out.h5", "v", ARRAY, "abs", 1e-3, 11003)


def test_lossy_and_lossless(tmp_path):
    out = shown("Lossy and Lossless", tmp_path, """
with h5py.File("bound.h5", "w") as f:
    f.create_dataset("v", data=array, compression=compression)
assert Lossy(**how.get_config()) == how
print(bound)
""")  # fmt: skip
    text, bound = out.splitlines()
    assert text == re.search(r"print\(how\)  # (.+)", TEXT)[1]
    with h5py.File(tmp_path / "out.h5") as f:
        v = f["v"]
        for at in v.iter_chunks():
            judge.check(ARRAY[at], v[at], "rel", 1e-4)
    judged(tmp_path / "out.h5", "w", ARRAY, "abs", 1e-3, 11003)
    with h5py.File(tmp_path / "bound.h5") as f:
        assert 0.5 < judge.check(ARRAY, f["v"][...], "abs", float(bound)) <= 1
    assert abs(float(bound) / float(np.ptp(ARRAY)) - 1e-4) < 1e-9


def test_whole_arrays(tmp_path):
    shown("Whole arrays", tmp_path, """
assert v.shape == array.shape and corner.shape == (8, 10)
np.savez("read.npz", v=v, corner=corner)
""")  # fmt: skip
    bound = 1e-4 * (float(ARRAY.max()) - float(ARRAY.min()))
    with np.load(tmp_path / "read.npz") as read:
        assert 0.5 < judge.check(ARRAY, read["v"], "abs", bound) <= 1
        assert 0 < judge.check(ARRAY[:8, 10:20, 100], read["corner"], "abs", 1e-3) <= 1
    judged(tmp_path / "out.h5", "x", ARRAY, "abs", 1e-3, 11003)


def test_command_line(tmp_path):
    """Each line on a file of the first section, as a shell runs it."""
    lines = re.findall(r"^```sh\n(.*?)^```$", SECTIONS["Command line"], re.M | re.S)[0].splitlines()
    shown(FIRST, tmp_path)
    (tmp_path / "h5z-gpu").write_text(f'#!/bin/sh\nexec {sys.executable} -m h5z_gpu "$@"\n')
    (tmp_path / "h5z-gpu").chmod(0o755)
    env = clean(PYTHONPATH=f"{ROOT}/plugin/python", H5Z_GPU_PLUGIN_PATH=str(PLUGIN.parent))
    env["PATH"] = f"{tmp_path}:{env['PATH']}"
    said = {line.split()[1]: run("sh", "-c", line, env=env, cwd=tmp_path) for line in lines}
    assert "nothing is wrong" in said["doctor"] and "Lossy(absolute=0.001)" in said["inspect"] and "12504" in said["words"]
    assert (tmp_path / "saved.h5").read_bytes() == (tmp_path / "out.h5").read_bytes()
    commands = re.findall(r"\*\*(\w+)\*\*", SECTIONS["Command line"])
    assert set(commands) >= set(said) and all(name in run("h5z-gpu", "--help", env=env) for name in commands)


def test_netcdf4(tmp_path):
    assert shown("netCDF4", tmp_path).strip() == re.search(r"print\(filter_of.*  # (.+)", TEXT)[1]
    judged(tmp_path / "out.nc", "v", ARRAY, "abs", 1e-3, 11003)
    assert listed(filters(tmp_path / "out.nc", "v")[0][2])[2] == [16, 128, 256]


def test_xarray(tmp_path):
    out = shown("xarray", tmp_path, "print(bounds)\n").splitlines()
    assert out == [re.search(rf"{x}.*  # (.+)", TEXT)[1] for x in (r"print\(h5z_gpu.xarray", "from_packing")], out
    for name in ("tas.nc", "same.nc"):
        judged(tmp_path / name, "tas", ARRAY, "abs", 1e-3, 11003)
        assert not filters(tmp_path / name, "lat") and listed(filters(tmp_path / name, "tas")[0][2])[2] == [64, 128, 256]
    judged(tmp_path / "cut.nc", "tas", ARRAY[:32], "abs", 2e-3, 11003)
    judged(tmp_path / "unpacked.nc", "tas", ARRAY.astype("f8"), "abs", 1.0001e-2, 15003)
    assert stored_bytes(tmp_path / "unpacked.nc", "tas") < stored_bytes(tmp_path / "packed.nc", "tas")


def test_zarr_references_and_many_processes(tmp_path):
    """In order, in one process; the file that is referred to is written before."""
    values = sample(shape=(64, 128, 128))
    values[3, :9] = -999
    code = python("Zarr") + python("HDF5 files without HDF5") + python("Many processes")
    encoding = re.findall(r"^`(ds\.to_zarr\(.*\))`", TEXT, re.M)
    assert code.count("\n") > 20 and len(encoding) == 1
    np.save(tmp_path / "array.npy", values)
    use(f"""import os, sys
import h5py, numpy as np, xarray, h5z_gpu, h5z_gpu.zarr
os.chdir(sys.argv[1])
array = np.load("array.npy")
with h5py.File("out.h5", "w") as f:
    f.create_dataset("v", data=array, chunks=(16, 64, 64), fillvalue=-999, compression=h5z_gpu.Lossy(1e-3))
ds, how = xarray.Dataset({{"v": (("z", "y", "x"), array)}}), h5z_gpu.zarr.Serializer(h5z_gpu.Lossy(1e-3))
{encoding[0]}
{code}
stores = {{"zarr3": "a.zarr", "zarr2": "a2.zarr", "xarray": "b.zarr/v"}}
np.savez("read.npz", **{{name: zarr.open_array(store)[...] for name, store in stores.items()}},
         references=np.nan_to_num(ds["v"].values, nan=-999), joined=h5py.File("folder/joined.h5")["v"][...])
assert str(path) == "folder/v.h5"
""", tmp_path)  # fmt: skip
    with np.load(tmp_path / "read.npz") as read:
        assert len(read) == 5
        for name in read:
            fill = None if name in ("joined", "xarray") else -999
            assert 0 < judge.check(values, read[name], "abs", 1e-3, fill) <= 1, name
    names = sorted(p.name for p in (tmp_path / "folder").iterdir())
    assert names == ["joined.h5", "v.0.h5", "v.1.h5", "v.h5"]
    with h5py.File(tmp_path / "folder/v.h5") as f:
        assert 0 < judge.check(values, f["v"][...], "abs", 1e-3) <= 1


def test_advice_repacking_and_proof(tmp_path):
    """The lines in their order, on the file that the section on xarray writes."""
    shown("xarray", tmp_path, "ds.to_netcdf('tas.nc')\n")
    for line in re.findall(r"^h5z-gpu (.+)$", SECTIONS["A bound: advice, repacking, proof"], re.M):
        use("import os, sys; os.chdir(sys.argv[1])\nfrom h5z_gpu.cli import main\nassert main(sys.argv[2:]) == 0", tmp_path, *line.split())
    judged(tmp_path / "small.nc", "tas", ARRAY, "abs", 1e-2, 11002)
    assert all("<img alt=" in (tmp_path / f"{page}.html").read_text() for page in ("advice", "report"))
