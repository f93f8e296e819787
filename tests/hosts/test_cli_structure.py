# SPDX-License-Identifier: MIT OR Apache-2.0
"""`h5z-gpu verify --structure` sees every single thing in which a copy differs, and nothing in a right copy."""

import time

import h5py
import numpy as np
import pytest
from cli import many, refused
from conftest import HERE, ROOT, use
from structure_cases import CASES
from structure_files import make

BOUND = {"chunks": (5, 20), "compression": 443, "compression_opts": (11003,)}  # within 0.001


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The original of each case, the same made again, and its copy."""
    folder, found = tmp_path_factory.mktemp("structure"), {}
    for k, (name, (old, new, _)) in enumerate(CASES.items()):
        found[name] = paths = [folder / f"{k}{which}.h5" for which in "axb"]
        for path, how in zip(paths, (old, old, new)):
            make(path, how)
    return found


@pytest.fixture(scope="module")
def answers(files):
    """What verify says of both."""
    found = many(*[["verify", first, other, "--structure"] for first, *others in files.values() for other in others])
    return dict(zip(CASES, zip(found[::2], found[1::2])))


@pytest.mark.parametrize("name", CASES)
def test_a_single_difference_is_seen(answers, name):
    (status, out, err), (other, text, _) = answers[name]
    assert status == 0 and "besides values" not in out and not err, (out, err)
    assert other == 1 and CASES[name][2] in text, text


def test_values_of_every_type_are_judged_without_the_structure(answers):
    """As they lie in the file: NumPy has no numbers of 24 bits, and h5py converts sequences of the other byte order."""
    names = [n for n in CASES if n.startswith("value: ") and not any(
        word in n for word in ("written or not", "chunk missing", "that is fill", "mask of", "no text"))]
    assert len(names) > 20
    for name in names:
        assert ": BROKEN for 1 value" in answers[name][1][1], (name, answers[name][1][1])


@pytest.mark.parametrize("hdf5", ["hdf5-1.12", "hdf5-1.14"])
def test_older_hdf5_sees_the_same(tmp_path, hdf5):
    code = r"""
import pathlib, sys
from h5z_gpu.cli.structure import differences
from structure_cases import CASES
from structure_files import make
for k, (name, (old, new, says)) in enumerate(CASES.items()):
    paths = [str(pathlib.Path(sys.argv[1]) / f"{k}{which}.h5") for which in "axb"]
    for path, how in zip(paths, (old, old, new)):
        make(path, how)
    assert differences(*paths[:2]) == ([], []), (name, differences(*paths[:2]))
    assert any(says in text for text in differences(paths[0], paths[2])[0]), name
print(k + 1, "cases")
"""
    said = use(code, tmp_path, PYTHONPATH=f"{ROOT}/.env/older/{hdf5}:{ROOT}/plugin/python:{HERE}")
    assert said.endswith(f"{len(CASES)} cases\n")


def test_one_line_says_that_more_than_values_differs(files):
    """Without --structure it changes no verdict: files of different writers are compared, too."""
    first, same, other = files["attribute: value"]
    (status, out, err), (plain, said, _) = many(["verify", first, same], ["verify", first, other])
    assert (status, plain) == (0, 0) and not err and "besides" not in out
    assert said == ("1 difference besides values: --structure lists and judges them\n"
                    "0 datasets: nothing was compared\n")
    (answer,) = refused(["verify", first, same, "--structure", "--common"])
    assert "whole HDF5 files" in answer


def test_what_was_never_written_takes_no_time(tmp_path):
    for name, fill in (("a", 5), ("b", 5), ("c", 6)):
        with h5py.File(tmp_path / f"{name}.h5", "w") as f:
            for kind in ("f4", "i8"):
                f.create_dataset(kind, (1 << 20, 1 << 24), kind, chunks=(64, 1 << 14), fillvalue=fill)
    start = time.perf_counter()
    (status, out, err), (other, text, _) = many(
        *[["verify", tmp_path / "a.h5", tmp_path / f"{name}.h5", "--structure"] for name in "bc"])
    assert status == 0 and not err and out.count("never written") == 2, (out, err)
    assert other == 1 and "/f4: fill value" in text and "/i8: fill value" in text
    assert time.perf_counter() - start < 20


# --- what was asked ---------------------------------------------------------------------------------------------------


def original(f):
    rng = np.random.default_rng(1)
    f.attrs.create("history", np.bytes_("2020: made"), dtype=h5py.string_dtype("ascii", 10))
    f["v"] = rng.normal(size=(20, 30)).astype("f4")
    f["v"].attrs["units"] = "K"
    f.create_dataset("w", data=f["v"][...], fillvalue=-5)
    f["n"] = np.arange(600, dtype="i2").reshape(20, 30)
    d = f.create_dataset("p", data=np.arange(600, dtype="i2").reshape(20, 30), fillvalue=-1)
    d.attrs["scale_factor"], d.attrs["add_offset"], d.attrs["_FillValue"] = 0.5, 3.0, np.int16(-1)
    d.attrs["long_name"] = "packed"


def copy(f, g, change=lambda g: None):
    """What `repack` may make of it: bounds, no loss by the filter, unpacked integers, and what it says of that."""
    line = b"2026-01-01T00:00:00Z: h5z-gpu repack a.h5 b.h5\n"
    for name, how in (("v", {}), ("w", {"fillvalue": -5}), ("n", {})):
        if name == "n":
            how = {"chunks": (10, 30), "compression": 443, "compression_opts": (90000,)}
        else:
            how |= BOUND
        d = g.create_dataset(name, data=f[name][...], **how)
        for key, value in f[name].attrs.items():
            d.attrs[key] = value
        if name != "n":
            d.attrs["lossy_compression"] = "h5z-gpu"
    values = (f["p"][...] * 0.5 + 3).astype("f8")
    values[f["p"][...] == -1] = np.nan
    d = g.create_dataset("p", data=values, fillvalue=np.nan, **BOUND)
    d.attrs["_FillValue"], d.attrs["long_name"] = np.nan, "packed"
    g.attrs.create("history", np.bytes_(line + b"2020: made"), dtype=h5py.string_dtype("utf-8", len(line) + 10))
    change(g)


def put(name, key, value):
    return lambda g: (g[name] if name else g).attrs.__setitem__(key, value)


def value(name, by):
    def change(g):
        g[name][3, 4] += by

    return change


def fixed(text):
    return lambda g: g.attrs.create("history", np.bytes_(text), dtype=h5py.string_dtype("ascii", len(text)))


ASKED = {
    "nothing more": (lambda g: None, ""),
    "within the bound": (value("v", 5e-4), ""),
    "over the bound": (value("v", 2e-3), "v: float32 20x30, within 0.001 (absolute): BROKEN for 1 value"),
    "a value of what lost nothing": (value("n", 1), "/n: value at [3, 4]: its bytes are"),
    "an unpacked value": (value("p", 0.1), "p: float64 20x30"),
    "an attribute beside": (put("v", "units", "C"), "/v@units: "),
    "an attribute of the unpacked": (put("p", "long_name", "other"), "/p@long_name: value"),
    "a loss where there is none": (put("n", "lossy_compression", "x"), "/n: attribute lossy_compression is in"),
    "history replaced": (fixed("2026: h5z-gpu repack"), "/@history: "),
    "history with an end": (fixed("2026: h5z-gpu\n2020: made\nmore"), "/@history: "),
    "history of another type": (put("", "history", "2026: h5z-gpu\n2020: made"), "/@history: type"),
    "history without a line": (lambda g: g.attrs.__delitem__("history"), "/: attribute history is in ORIGINAL alone"),
    "a fill value that was declared": (
        lambda g: (g.__delitem__("w"), g.create_dataset("w", (20, 30), "f4", fillvalue=-6, **BOUND)), "/w: fill value"),
}


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("asked")
    with h5py.File(folder / "a.h5", "w") as f:
        original(f)
        for k, (change, _) in enumerate(ASKED.values()):
            with h5py.File(folder / f"{k}.h5", "w") as g:
                copy(f, g, change)
    calls = [["verify", folder / "a.h5", folder / f"{k}.h5", "--structure"] for k in range(len(ASKED))]
    return dict(zip(ASKED, many(*calls)))


@pytest.mark.parametrize("name", ASKED)
def test_what_was_asked_is_the_only_difference(asked, name):
    (status, out, err), says = asked[name], ASKED[name][1]
    assert not err and says in out
    assert status == (1 if says else 0), out


# --- repack -----------------------------------------------------------------------------------------------------------

MISCOPIES = {
    "comment": ("h5py.h5o.set_comment(f['v'].id, b'memory')", "/v: comment"),
    "attribute": ("del f['v'].attrs['units']", "/v: attribute units is in ORIGINAL alone"),
    "text": ("f['names'][1] = 'two '", "/names: value at [1]"),
    "link": ("f['more'] = h5py.SoftLink('/v')", "/: link more is in COMPRESSED alone"),
    "value": ("f['v'][7] += 0.01", "v: BROKEN for 1 value"),
}


@pytest.mark.parametrize("name", MISCOPIES)
def test_repack_throws_a_wrong_copy_away(tmp_path, name):
    change, says = MISCOPIES[name]
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f["v"] = np.sin(np.arange(9000, dtype="f4") ** 1.5)
        f["v"].attrs["units"] = "K"
        f.create_dataset("names", data=["one", "two"], dtype=h5py.string_dtype())
    code = f"""
import sys, h5py
from h5z_gpu import cli
from h5z_gpu.cli import parts
made = parts.fill_in
def wrong(source, path, *rest):
    made(source, path, *rest)
    if sys.argv[3] == "wrong":
        with h5py.File(path, "a") as f:
            {change}
parts.fill_in = wrong
print(cli.main(["repack", *sys.argv[1:3], "--absolute", "1e-3", "--verify"]))
"""
    said = use(code, tmp_path / "a.h5", tmp_path / "b.h5", "wrong")
    assert says in said and said.endswith("2\n") and not (tmp_path / "b.h5").exists(), said
    assert use(code, tmp_path / "a.h5", tmp_path / "b.h5", "right").endswith("0\n")
