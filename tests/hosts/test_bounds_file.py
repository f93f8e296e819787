# SPDX-License-Identifier: MIT OR Apache-2.0
"""Tables of bounds (`bounds.toml`): which entry a variable gets, where a mistake is, and who takes them.

test_archive.py has many files."""

import json
import os
import random
import re

import h5py
import judge
import numpy as np
from cli import h5z_gpu, refused
from conftest import LONG, sample, use
from test_cli_hostile import hostile

TABLE = """
[tas]
absolute = 0.01
units = "K"

["model/w*"]
like = "tas"
keep = ["sign"]
codec = "planes"
units = ["m/s", "m s-1"]

["any temperature"]
standard_name = "air_temperature"
relative = 1e-4
units = "K"

["*"]
lossless = true
"""


def variables():
    """By name: values, units and standard_name."""
    x = sample(shape=(16, 32, 48)) + 270
    return {"tas": (x, "K", "air_temperature"), "ta": (x + 1, "K", "air_temperature"),
            "model/wind": (x - 285, "m s-1", ""), "model/other": (x + 2, "1", ""),
            "days": (np.arange(40000, dtype="i4"), "K", "air_temperature")}


def made(path, found):
    with h5py.File(path, "w") as f:
        for name, (values, units, standard_name) in found.items():
            f[name] = values
            f[name].attrs["units"] = units
            if standard_name:
                f[name].attrs["standard_name"] = standard_name
    return path


def asked(path):
    """What each variable of a file has been asked for, by name."""
    out, _ = h5z_gpu("inspect", path, "--json")
    return {d["name"].strip("/"): d["asked"]["text"] for d in json.loads(out)["objects"] if d.get("asked")}


# --- the table --------------------------------------------------------------------------------------------------------

MISTAKES = {
    "[tas]\nabsolute = -1": ("2:1", "above 0"),
    "[tas]\nabsolute = 0": ("2:1", "above 0"),
    "[tas]\nabsolute = nan": ("2:1", "finite"),
    "[tas]\nabsolute = 1" + 400 * "0": ("2:1", "too large"),
    "[tas]\nabsolute = '1'": ("2:1", "is no number"),
    "[tas]\nabsolute = true": ("2:1", "is no number"),
    "[tas]\nabsolute = 1979-05-27": ("2:1", "is no number"),
    "[tas]\nrelative = 1.5": ("2:1", "below 1"),
    "[tas]\nabsolute = 1\n\n  relative = 0.1": ("4:3", "two bounds, absolute and relative"),
    "[tas]\nabsolute = 1\nlossless = true": ("3:1", "two bounds, absolute and lossless"),
    "[tas]\nlossless = false": ("2:1", "lossless is true"),
    "# only units\n\n[tas]\nunits = 'K'": ("3:1", "has no bound"),
    "[tas]\nabs = 1": ("2:1", "no key abs; it has absolute, "),
    "[model.tas]\nabsolute = 1": ("1:1", '["model.tas"]'),
    "[model/tas]\nabsolute = 1": ("1:7", "in quotes"),
    "[ta*]\nabsolute = 1": ("1:4", "in quotes"),
    "[[tas]]\nabsolute = 1": ("1:1", "stands in no entry"),
    "absolute = 1": ("1:1", "stands in no entry"),
    "": ("1:1", "there is no entry"),
    "# nothing\n": ("1:1", "there is no entry"),
    "[tas]\nabsolute = 1\n[tas]\nabsolute = 2": ("3:5", "twice"),
    "[tas]\nabsolute = 1\ncodec = 'zfp'": ("3:1", "allowed are auto, "),
    "[tas]\nabsolute = 1\ncodec = 5": ("3:1", "give a name"),
    "[tas]\nlossless = true\ncodec = 'szx'": ("3:1", "needs a bound"),
    "[tas]\npointwise_relative = 0.1\ncodec = 'planes'": ("3:1", "planes"),
    "[tas]\nabsolute = 1\nkeep = 'sgn'": ("3:1", "allowed are sign, zero, range"),
    "[tas]\nabsolute = 1\nkeep = 3": ("3:1", "give names"),
    "[tas]\npointwise_relative = 0.1\nkeep = 'sign'": ("3:1", "stay by themselves"),
    "[tas]\nlossless = true\nkeep = 'sign'": ("3:1", "keeps every bit"),
    "[a]\nlossless = true\nlike = 'b'\n[b]\nabsolute = 1\n keep = 'sign'": ("6:2", "[a] keeps every bit"),
    "[a]\nlike = 'c'\n[b]\nabsolute = 1": ("2:1", "no entry [c]; there are a, b"),
    "[a]\nlike = 3": ("2:1", "no text"),
    "[a]\nlike = 'a'": ("2:1", "a is like a"),
    "[a]\nlike = 'b'\n[b]\nkeep = 'sign'\nlike = 'c'\n[c]\nlike = 'a'": ("7:1", "a is like b is like c is like a"),
    "[a]\nabsolute = 1\nunits = ['K', 3]": ("3:1", "no text"),
    "[a]\nquantity = 'mean(time)'": ("2:1", "has no limit"),
    "[a]\nabsolute = 1\nquantity = ['mean(time) 1', 'median(time) 1']": ("3:1", "'median' is no quantity"),
    "[a]\nquantity = 3": ("2:1", "no text"),
    "[a]\nquantity = 'mean() 1'\nrelative = 0.1": ("3:1", "leave relative out"),
    "[a]\nlike = 'b'\nquantity = 'mean() 1'\n[b]\nlossless = true": ("5:1", "leave lossless out"),
    "[a]\nabsolute = 1\nstandard_name = ['x']": ("3:1", "no text"),
    "a = {absolute = 1, codec = 'zfp'}": ("1:1", "allowed are"),
    "a.absolute = 1\n\ta.codec = 'zfp'": ("2:2", "allowed are"),
    "# '''\n[a]\nabsolute = '''\n[b]\ncodec = 1\n'''\n": ("3:1", "is no number"),
    "[b]\nunits = [\n 'K',\n '[a]',\n]\nabsolute = 1\n[ 'a' ]\r\n psnr = 0\r\n": ("8:2", "above 0"),
    "[a]\nabsolute = ": ("2:12", "no TOML: invalid value"),
    "[a]\nabsolute = [1,\n2": ("3:2", "no TOML: unclosed array"),
    "[a]\nabsolute = " + 5000 * "[": (r"2:\d+", "no TOML"),
    b"[a]\nunits = '\xc3\xa9\xff'": ("2:11", "UTF-8"),
    b"\xef\xbb\xbf[a]\npsnr = -1": ("2:1", "above 0"),
}


def test_a_mistake_is_a_sentence_with_its_line_and_column(tmp_path):
    """And no file is touched: OUT and OUTDIR do not appear."""
    file = made(tmp_path / "in.h5", variables())
    before = file.stat()
    for n, text in enumerate(MISTAKES):
        (tmp_path / f"{n}.toml").write_bytes(text if isinstance(text, bytes) else text.encode())
    commands = [("repack", file, tmp_path / "out.h5", "--bounds", tmp_path / f"{n}.toml") for n in range(len(MISTAKES))]
    folder = [(*c[:2], tmp_path / "out/", *c[3:]) for c in commands[:3]]
    for (where, words), error in zip([*MISTAKES.values()] * 2, refused(*commands, *folder)):
        assert re.search(rf"\.toml:{where}: .*{re.escape(words)}", error), (where, words, error)
    assert not [p for p in tmp_path.iterdir() if p.suffix != ".toml" and p != file] and file.stat() == before


def test_the_place_of_a_mistake_is_found_in_any_layout(tmp_path):
    """Random tables, in every way in which TOML writes one, with one wrong codec: the place of its line."""
    rng = random.Random(int(os.environ.get("SEED", 5)))
    names = ["tas", "a.b", "g/x*", "é\"'", "[q]", "#", "absolute", ""]
    wanted = []
    for n in range(400 if LONG else 60):
        text, wrong = "", rng.choice(names)
        for name in rng.sample(names, len(names)):
            text += rng.choice(["", "\n", "# '''\n", "\t# [tas]\n"])
            key, codec = json.dumps(name, ensure_ascii=False), "zfp" if name == wrong else "auto"
            lines = ["absolute = 1", f"codec = '{codec}'", 'standard_name = """K\n[tas]\ncodec = 1\n"""',
                     "units = [\n  'K',\n]"]
            rng.shuffle(lines)
            indent = rng.choice(["", " ", "\t\t"])
            text += f'[ {key} ] # """\n' if rng.random() < 0.5 else f"[{key}]\n"
            for line in lines:
                if name == wrong and line.startswith("codec"):
                    wanted.append(f"{text.count(chr(10)) + 1}:{len(indent) + 1}")
                text += f"{indent}{line}{rng.choice(['', ' # it'])}\n"
        (tmp_path / f"{n}.toml").write_text(text)
    commands = [("repack", "in.h5", "out.h5", "--bounds", tmp_path / f"{n}.toml") for n in range(len(wanted))]
    for n, (where, error) in enumerate(zip(wanted, refused(*commands))):
        assert f"{n}.toml:{where}: " in error and "zfp" in error, (error, (tmp_path / f"{n}.toml").read_text())


def test_a_variable_gets_the_first_entry_of_the_highest_place(tmp_path):
    """Random tables and variables, against the rule in other words: a list of all entries by place, then by line."""
    (tmp_path / "model.py").write_text(f"""
import fnmatch, random, re, sys
import h5z_gpu
rng = random.Random({os.environ.get("SEED", 3)!r})
letters = "ab/"
seen = set()
for turn in range({3000 if LONG else 400}):
    entries = {{}}
    for _ in range(rng.randrange(1, 7)):
        header = rng.choice(["*", "".join(rng.choice(letters + "*?") for _ in range(rng.randrange(1, 4))).strip("/")])
        if header:
            entries[header] = (rng.choice([None, None, "air", "a*"]), rng.choice([None, None, "K", "m"]))
    if not entries:
        continue
    text = ""
    for k, (header, (standard, units)) in enumerate(entries.items()):
        text += f'["{{header}}"]\\nabsolute = {{k + 1}}\\n' + (f'standard_name = "{{standard}}"\\n' if standard else "")
        text += f'units = "{{units}}"\\n' if units else ""
    open("t.toml", "w").write(text)
    table = h5z_gpu.Bounds("t.toml")
    for _ in range(8):
        name = "".join(rng.choice(letters) for _ in range(rng.randrange(1, 4))).strip("/") or "a"
        said = {{k: v for k, v in (("standard_name", rng.choice([None, "air", "ab"])),
                                   ("units", rng.choice([None, "K", "m"]))) if v}}
        places = [[], [], [], []]
        for k, (header, (standard, units)) in enumerate(entries.items()):
            match = lambda pattern, text: re.fullmatch(pattern.replace("*", ".*").replace("?", "."), text)
            fits = units is None or units == said.get("units")
            if standard:
                if "standard_name" in said and match(standard, said["standard_name"]):
                    places[1].append((fits, k + 1))
            elif header == name:
                places[0].append((fits, k + 1))
            elif match(header, name):
                places[3 if header == "*" else 2].append((fits, k + 1))
        first = next(filter(None, places), [])
        wanted = next((k for fits, k in first if fits), "wrong units" if first else None)
        try:
            how = table.how(rng.choice(["", "/"]) + name, said)
            got = how and how.bound
        except ValueError as why:
            got = "wrong units"
            assert re.match(r"h5z-gpu: t\\.toml:\\d+:1: ", str(why)), why
        assert got == wanted, (text, name, said, got, wanted)
        seen.add((places.index(first) if first else None, isinstance(got, str)))
assert len(seen) == 9, seen  # each place, with units that fit and not, and none
""")
    use(f"import os, runpy; os.chdir({str(tmp_path)!r}); runpy.run_path('model.py')")


def test_a_table_is_taken_where_one_filter_is(tmp_path):
    (tmp_path / "b.toml").write_text(TABLE)
    use("""
import os, sys
os.chdir(sys.argv[1])
import h5py, netCDF4, numpy as np, xarray as xr, h5z_gpu, h5z_gpu.xarray
from h5z_gpu import Lossless, Lossy
from h5z_gpu.filters import words_of
table = h5z_gpu.Bounds("b.toml")
x = np.random.default_rng(1).normal(280, 5, (16, 32, 48)).astype("f4")
kelvin = {"units": "K", "standard_name": "air_temperature"}
wanted = {"tas": Lossy(absolute=0.01), "ta": Lossy(relative=1e-4), "other": Lossless(), "kind": Lossless()}

def stored(path):
    with h5py.File(path) as f:
        found = {k: Lossy.from_filter_options(words_of(f[k])) for k in wanted if words_of(f[k])}
    return {k: how._with(fill_value=None) if isinstance(how, Lossy) else how for k, how in found.items()}

h5z_gpu.save("s.h5", {"tas": x, "ta": xr.DataArray(x, attrs=kelvin), "other": x, "kind": x > 280,
                      "model/wind": x}, table)
assert stored("s.h5") == wanted
with h5py.File("s.h5") as f:
    assert Lossy.from_filter_options(words_of(f["model/wind"])) == Lossy(absolute=0.01, keep="sign", codec="planes")

axes = list("tyx")
ds = xr.Dataset({"tas": (axes, x, kelvin), "ta": (axes, x, kelvin), "other": (axes, x),
                 "kind": (axes, (x > 280).astype("i2"), kelvin)}, {"y": np.arange(32.0)})
for engine in "h5netcdf", "netcdf4":
    h5z_gpu.xarray.to_netcdf(ds, "x.nc", table, engine=engine)
    assert stored("x.nc") == wanted
    with h5py.File("x.nc") as f:
        assert words_of(f["y"]) is None
ds["tas"].attrs["units"] = "degC"
try:
    h5z_gpu.xarray.to_netcdf(ds, "y.nc", table)
    raise SystemExit("units differ")
except ValueError as why:
    assert "b.toml:2:1: tas has units 'degC', and [tas] is for 'K'" in str(why) and not os.path.exists("y.nc")

with netCDF4.Dataset("n.nc", "w") as d:
    for name, n in zip(axes, x.shape):
        d.createDimension(name, n)
    for name in (*wanted, "y"):
        v = d.createVariable(name, "i1" if name == "kind" else "f4", ("y",) if name == "y" else axes)
        v.setncatts(kelvin if name in ("tas", "ta") else {})
        h5z_gpu.netcdf.def_filter(v, table)
        v[:] = 1 if name == "y" else x
    assert h5z_gpu.netcdf.filter_of(d["y"]) == Lossless()
    v = d.createGroup("model").createVariable("wind", "f4", axes)
    try:
        h5z_gpu.netcdf.def_filter(v, table)
        raise SystemExit("units are missing")
    except ValueError as why:
        assert "model/wind has no units, and [model/w*] is for 'm/s' or 'm s-1'" in str(why)
    v.units = "m/s"
    h5z_gpu.netcdf.def_filter(v, table)
    assert h5z_gpu.netcdf.filter_of(v) == Lossy(absolute=0.01, keep="sign", codec="planes")
assert stored("n.nc") == wanted
""", tmp_path)


# --- repack -----------------------------------------------------------------------------------------------------------


def test_repack_gives_each_variable_its_entry(tmp_path):
    file, table = made(tmp_path / "in.h5", variables()), tmp_path / "b.toml"
    table.write_text(TABLE)
    out, _ = h5z_gpu("repack", file, tmp_path / "out.h5", "--bounds", table, "--verify")
    assert "model/wind" in out and "verified" in out
    assert asked(tmp_path / "out.h5") == {
        "tas": "Lossy(absolute=0.01)", "ta": "Lossy(relative=0.0001)", "model/other": "Lossless()",
        "days": "Lossless()", "model/wind": "Lossy(absolute=0.01, codec='planes', keep='sign')"}
    with h5py.File(tmp_path / "out.h5") as f:
        assert 0 < judge.check(variables()["tas"][0], f["tas"][...], "abs", 0.01) <= 1
    # Entries for several leave alone what stays exact, whatever its units.
    table.write_text("['d*']\nabsolute = 1\nunits = 'm'\n[tas]\nabsolute = 1\n['m*']\nabsolute = 0.5")
    with h5py.File(file, "a") as f:
        f["model/other"].attrs.update({"_FillValue": np.float32(-1), "missing_value": np.float32(-2)})
    h5z_gpu("repack", file, tmp_path / "again.h5", "--bounds", table)
    assert asked(tmp_path / "again.h5") == {"tas": "Lossy(absolute=1.0)", "model/wind": "Lossy(absolute=0.5)",
                                            "model/other": "Lossless()", "days": "Lossless()"}
    mistakes = {
        "[taz]\nabsolute = 1": "b0.toml:1:1: no variable taz is in the file; there are days, model/other, model/wind",
        "\n[tas]\nabsolute = 1\nunits = 'degC'": "b1.toml:2:1: tas has units 'K', and [tas] is for 'degC'",
        "['t*']\nabsolute = 1\nunits = 'm'": "b2.toml:1:1: ta has units 'K', and [t*] is for 'm'",
        "[days]\nlossless = true\nunits = 'd'": "b3.toml:1:1: days has units 'K', and [days] is for 'd'",
        "[days]\nabsolute = 1": "days holds integers: it must not lose a bit",
    }
    for n, text in enumerate(mistakes):
        (tmp_path / f"b{n}.toml").write_text(text)
    for to in ("new.h5", "new/"):
        commands = [("repack", file, f"{tmp_path}/{to}", "--bounds", tmp_path / f"b{n}.toml") for n in range(5)]
        for words, error in zip(mistakes.values(), refused(*commands[: 4 if to == "new/" else 5])):
            assert words in error, (words, error)
        assert not (tmp_path / to).exists()
    beside = [("--absolute", "1"), ("--lossless",), ("--advise",), ("--codec", "szx"), ("--keep", "sign"),
              ("ta=lossless",), ("--jobs", 0)]
    for error in refused(*(("repack", file, tmp_path / "new.h5", *more, "--bounds", table) for more in beside)):
        assert "write it into" in error or "--jobs 0: a number from 1 on" in error, error
    for error in refused(("repack", file, tmp_path / "new.h5", "--bounds", tmp_path / "none.toml"),
                         ("repack", file, tmp_path / "new.h5", "--bounds", tmp_path)):
        assert "No such file" in error or "Is a directory" in error, error
    assert not (tmp_path / "new.h5").exists()


def test_packed_integers_are_unpacked_within_what_the_table_says(tmp_path):
    """Without an entry within half a step; where it says lossless they stay integers."""
    with h5py.File(tmp_path / "in.h5", "w") as f:
        for name in ("a", "b", "c", "d"):
            f[name] = (sample(shape=(16, 32, 48)) * 100).astype("i2")
            f[name].attrs.update({"scale_factor": 0.01, "add_offset": 270.0, "units": "K"})
    table = "[a]\nabsolute = 0.1\n['b*']\nabsolute = 0.2\nunits = 'K'\n['c*']\nlossless = true"
    (tmp_path / "b.toml").write_text(table)
    h5z_gpu("repack", tmp_path / "in.h5", tmp_path / "out.h5", "--bounds", tmp_path / "b.toml", "--unpack")
    assert asked(tmp_path / "out.h5") == {"a": "Lossy(absolute=0.1)", "b": "Lossy(absolute=0.2)", "c": "Lossless()",
                                          "d": "Lossy(absolute=0.005)"}
    with h5py.File(tmp_path / "out.h5") as f:
        assert [f[name].dtype.kind for name in "abcd"] == list("ffif")


def test_repack_searches_the_bounds_that_quantities_of_a_table_allow(tmp_path):
    """With and without a largest bound; weights stay exact. In many files, too, where a changed limit is a changed
    plan."""
    x = sample(shape=(16, 32, 48)) + 270
    found = {"tas": (x, "K", ""), "pr": (x + 1, "K", ""), "u": (x - 280, "m", ""), "v": (x - 270, "m", ""),
             "area": (np.linspace(1, 2, 1536, dtype="f4").reshape(32, 48), "1", ""), "w": (x, "m", "")}
    file, table, out = made(tmp_path / "in.h5", found), tmp_path / "b.toml", tmp_path / "out.h5"
    with h5py.File(file, "a") as f:
        for d in f.values():
            for label, axis in zip("tyx"[-d.ndim :], d.dims):
                axis.label = label
    table.write_text("""
["*"]
absolute = 0.25
[tas]
keep = "sign"
codec = "planes"
quantity = ["mean(t) 1e-3", "mean(y, x, weights=area) 1e-4"]
[pr]
like = "tas"
absolute = 0.001
[u]
quantity = "hypot(u, v) 0.1"
[v]
like = "u"
[w]
like = "u"
""")
    said, _ = h5z_gpu("repack", file, out, "--bounds", table)
    assert said.count(": held; ") == 5, said
    got = asked(out)
    bounds = {name: float(m[1]) for name, how in got.items() if (m := re.search("absolute=([^,)]*)", how))}
    assert 1e-4 < bounds["tas"] < 0.2 and 1e-4 < bounds["pr"] <= 0.001, "looser than theorems say, within the largest"
    assert 0.07 < bounds["u"] == bounds["v"] < 0.25, bounds
    assert "codec='planes', keep='sign'" in got["tas"] and got["area"] == "Lossless()", got
    assert "w" not in got, "no quantity is of it, and no bound"
    quantities = "mean(tas, t) 1e-3", "mean(pr, y, x, weights=area) 1e-4", "hypot(u, v) 0.1"
    h5z_gpu("verify", file, out, *(f"--quantity={q}" for q in quantities))

    for change, counts in (("", "1 written"), ("# it", "1 there already"), ("1e-4", "1 written")):
        table.write_text(table.read_text().replace(change, "5e-5") if change == "1e-4" else table.read_text() + change)
        said, error = h5z_gpu("repack", file, f"{tmp_path}/many/", "--bounds", table)
        assert counts in said and not error, said
    assert asked(tmp_path / "many/in.h5")["tas"] != got["tas"]
    table.write_text("[tas]\nquantity = 'mean(height) 1'")
    said, error = h5z_gpu("repack", file, f"{tmp_path}/other/", "--bounds", table, status=1)
    assert "1 failed" in said and "height is neither a variable nor a dimension" in error
    table.write_text("[tas]\nquantity = 'mean() 1'\n['*']\nabsolute = 1")
    use("""
import sys, numpy as np, h5z_gpu
try:
    h5z_gpu.save("x.h5", {"tas": np.ones((64, 64))}, h5z_gpu.Bounds(sys.argv[1]))
    raise SystemExit("a quantity needs a search")
except ValueError as why:
    assert "b.toml:1:1: [tas] has quantities" in str(why), why
""", table)


def test_repack_takes_what_advise_writes(tmp_path):
    """The bounds of each variable are those of --advise; the file is not overwritten; odd names come through."""
    x = np.round(sample(shape=(16, 32, 48)), 2)
    odd = {f"v {c}": (x, "°C\n" if c == "*" else "K", "") for c in "*?[]\"'\\#=é.\x7f"}
    hostile(tmp_path / "hostile.h5")
    with h5py.File(tmp_path / "plain.h5", "w") as f:
        f["n"] = np.arange(10000)
    made(tmp_path / "in.h5", variables()), made(tmp_path / "odd.h5", odd)
    for name in ("in", "odd", "hostile", "plain"):
        path, table = tmp_path / f"{name}.h5", tmp_path / f"{name}.toml"
        h5z_gpu("advise", path, "--write-bounds", table)
        assert (text := table.read_text()).count("\n# ") >= (1 if name == "plain" else 2), text
        (error,) = refused(("advise", path, "--write-bounds", table))
        assert "is there already" in error and table.read_text() == text
        h5z_gpu("repack", path, tmp_path / "a.h5", "--advise")
        h5z_gpu("repack", path, tmp_path / "b.h5", "--bounds", table)
        plain = lambda found: {name: re.sub(", fill_value=[^,)]*", "", how) for name, how in found.items()}
        assert plain(asked(tmp_path / "a.h5")) == plain(asked(tmp_path / "b.h5")), text
        (tmp_path / "a.h5").unlink(), (tmp_path / "b.h5").unlink()
