# SPDX-License-Identifier: MIT OR Apache-2.0
"""What attributes say by the conventions CF, NUG, COARDS and their like, in every type that HDF5 and netCDF write them
in: which datasets are coordinates, which values are missing, and the history."""
import itertools
import json
import random
import re

import h5py
import netCDF4
import numpy as np
import pytest
from cli import many
from conftest import LONG, clean, run, sample, use
from h5py import h5a, h5s, h5t

ROLES = """
import json, sys, h5py
from h5z_gpu.cli.roles import Roles
with h5py.File(sys.argv[1]) as f:
    roles, found = Roles(f), {}
    f.visititems(lambda name, d: found.update({name: roles.why_exact(d)}) if isinstance(d, h5py.Dataset) else None)
print(json.dumps(found))
"""
FIELD = sample(shape=(40, 50))


def roles(path):
    """Why each dataset keeps every bit, by name; None where it may lose some."""
    return json.loads(use(ROLES, path))


def fixed(item, name, texts, pad, charset, shape):
    """Texts of fixed length, padded as C, netCDF or Fortran do."""
    kind = h5t.C_S1.copy()
    kind.set_size(max(len(t.encode()) for t in texts) + (pad == h5t.STR_NULLTERM))
    kind.set_strpad(pad)
    kind.set_cset(charset)
    blank = b" " if pad == h5t.STR_SPACEPAD else bytes(1)
    raw = b"".join(t.encode().ljust(kind.get_size(), blank) for t in texts)
    made = h5a.create(item.id, name.encode(), kind, h5s.create_simple(shape) if shape else h5s.create(h5s.SCALAR))
    made.write(np.frombuffer(raw, f"S{kind.get_size()}").reshape(shape), mtype=kind)


WRITERS = {
    "variable": lambda item, name, text: item.attrs.create(name, text, dtype=h5py.string_dtype()),
    "variable, ASCII": lambda item, name, text: item.attrs.create(name, text, dtype=h5py.string_dtype("ascii")),
    "NC_STRING": lambda item, name, text: item.attrs.create(name, [text], dtype=h5py.string_dtype()),
    "list": lambda item, name, text: item.attrs.create(name, text.split(), dtype=h5py.string_dtype()),
    "netCDF": lambda item, name, text: fixed(item, name, [text], h5t.STR_NULLPAD, h5t.CSET_ASCII, ()),
    "C": lambda item, name, text: fixed(item, name, [text], h5t.STR_NULLTERM, h5t.CSET_UTF8, ()),
    "Fortran": lambda item, name, text: fixed(item, name, [text], h5t.STR_SPACEPAD, h5t.CSET_ASCII, (1,)),
    "fixed list": lambda item, name, text: fixed(item, name, text.split(), h5t.STR_NULLPAD, h5t.CSET_ASCII,
                                                 (len(text.split()),)),
}
# What is written in a group G of the datasets p and q, which lie in a group of their own, or in one around it.
SPELLINGS = {
    "here": ("G", "{0} {1}"), "commas": ("G", "{0},{1}"), "comma and blank": ("G", "{0}, {1}"),
    "brackets": ("G", "[{0},{1}]"), "whole path": ("else", "/else{n}/{0} /else{n}/{1}"),
    "below": ("G/sub", "sub/{0} sub/{1}"), "dots": ("else", "../else{n}/{0} ../else{n}/{1}"),
    "around": ("", "{0} {1}"),
}
KEYS = {"coordinates": "{} {}", "bounds": "{} {}", "ancillary_variables": "{} {}",
        "cell_measures": "area: {} volume: {}", "grid_mapping": "crs: {} {}", "formula_terms": "a: {} b: {}",
        "_CoordinateAxes": "{} {}"}


def test_names_are_found_by_type_place_and_spelling(tmp_path):
    """Every type of text with every spelling of names: what is named keeps every bit, and what merely has the same name
    elsewhere, or is a label, loses bits as asked."""
    cases = list(itertools.product(WRITERS, SPELLINGS, KEYS))
    random.Random(5).shuffle(cases)
    cases = cases if LONG else cases[:120]
    exact, free = [], []
    with h5py.File(tmp_path / "a.h5", "w") as f:
        for n, (writer, spelling, key) in enumerate(cases):
            group = f.create_group(f"G{n}")
            where, words = SPELLINGS[spelling]
            if spelling == "brackets" and ":" in KEYS[key]:
                continue
            place = f.require_group(where.replace("G", f"G{n}").replace("else", f"else{n}") or "/")
            names = [f"p{n}", f"q{n}"]
            for name in names:
                exact.append(place.create_dataset(name, data=FIELD).name[1:])
            decoys = f.create_group(f"z{n}")
            free += [decoys.create_dataset(name, data=FIELD).name[1:] for name in names]
            free += [group.create_dataset(label, data=FIELD).name[1:] for label in ("area", "volume", "a", "b")]
            words = words.format(*names, n=n)
            if ":" in KEYS[key]:
                words = KEYS[key].format(*re.split(r"[, ]+", words))
            data = group.create_dataset("data", data=FIELD)
            WRITERS[writer](data, key, words)
            free += [] if key in ("bounds", "formula_terms") else [data.name[1:]]  # these two make it a coordinate
    found = roles(tmp_path / "a.h5")
    assert len(exact) > 150 and not [name for name in exact if not found[name]], "named, and may lose bits"
    assert not [(name, found[name]) for name in free if found[name]], "not named, and keeps every bit"


CDL = """netcdf a {
dimensions: y = 40 ; x = 50 ;
variables:
    float north(y, x) ; north:units = "degrees_north" ;
    float e(y, x) ; string e:units = "degree_E" ;
    float when(y, x) ; when:units = "hours since 1970-1-1" ;
    float day(y, x) ; string day:units = "day as %Y%m%d.%f" ;
    float px(y, x) ; string px:standard_name = "projection_x_coordinate" ;
    float sigma(y, x) ; sigma:standard_name = "atmosphere_hybrid_sigma_pressure_coordinate" ;
    float cdm(y, x) ; string cdm:_CoordinateAxisType = "GeoX" ;
    float lev(y, x) ; lev:axis = "Z" ;
    float nav_lat(y, x) ; nav_lat:units = "degrees" ;
    float state(y, x) ; state:standard_name = "air_temperature status_flag" ;
    float wind(y, x) ; wind:units = "degrees" ; wind:standard_name = "wind_from_direction" ;
    float p(y, x) ; p:units = "Pa" ; p:standard_name = "air_pressure" ;
    float rlut(y, x) ; rlut:positive = "up" ; rlut:units = "W m-2" ;
    float two(y, x) ; float three(y, x) ;
    float t(y, x) ; string t:units = "K" ;
}
"""


def test_attributes_say_what_is_a_coordinate(tmp_path):
    """Units, standard names and axes in files of ncgen, names in attributes of NCO, HDF-EOS5's group."""
    (tmp_path / "a.cdl").write_text(CDL)
    path = tmp_path / "a.nc"
    run("ncgen", "-4", "-o", path, tmp_path / "a.cdl", env=clean())
    with netCDF4.Dataset(path, "a") as f:
        for variable in f.variables.values():
            variable[:] = FIELD
    run("ncatted", "-a", "coordinates,t,c,sng,two three", path, env=clean())
    with h5py.File(path, "a") as f:
        f["swath/Geolocation Fields/angle"] = FIELD
        f["swath/Data Fields/angle"] = FIELD
    found = roles(path)
    for name in ("north", "e", "when", "day", "px", "sigma", "cdm", "lev", "nav_lat", "state", "two", "three",
                 "swath/Geolocation Fields/angle"):
        assert found[name], name
    for name in ("wind", "p", "rlut", "t", "swath/Data Fields/angle"):
        assert not found[name], (name, found[name])


MISSING = {
    "several": dict(missing_value=np.array([-999.123, -888.456], "f4")),
    "of the other type": dict(missing_value=np.float64(-999.123)),
    "a text": dict(missing_value="-999.123"),
    "a text, and a fill value": dict(_FillValue=np.float32(-888.456), missing_value="-999.123"),
    "fill and missing": dict(_FillValue=np.float32(-888.456), missing_value=np.float32(-999.123)),
    "NaN and a number": dict(_FillValue=np.float32(np.nan), missing_value=np.float32(-999.123)),
    "integers": dict(missing_value=np.array([-999, -888], "i4")),
    "one": dict(missing_value=np.array([-999.123], "f4")),
    "zero": dict(missing_value=np.float32(0)),
}


@pytest.mark.filterwarnings("ignore:WARNING. missing_value not used")  # by netCDF4, for other readers use it
def test_missing_values_stay_missing(tmp_path):
    """Bit for bit, as one declares several, or in another type, or as a text: by netCDF4's masks and by bits."""
    x = sample(shape=(64, 80)) + 280
    x[::3, ::7], x[1::3, ::5], x[2::3, ::9] = -999.123, -888.456, -0.0
    x[2::3, 1::9], x[3, 1::6], x[3, 2::6] = 0, -999, -888
    with netCDF4.Dataset(tmp_path / "a.nc", "w") as f:
        f.createDimension("y", 64), f.createDimension("x", 80)
        for name, attributes in MISSING.items():
            attributes = dict(attributes)
            v = f.createVariable(name, "f4", ("y", "x"), fill_value=attributes.pop("_FillValue", None))
            v.set_auto_mask(False)
            v[:] = x
            v.setncatts(attributes)
    flags = ("--absolute", "--relative", "--pointwise-relative")
    told = many(*(["repack", tmp_path / "a.nc", tmp_path / f"{flag[2:]}.nc", flag, "0.01", "--verify"]
                  for flag in flags))
    for flag, (status, out, err) in zip(flags, told):
        assert status == 0, err
        assert re.search(r"^several .*every bit: it has several values for missing data, .*-888.456", out, re.M), out
        assert re.search(r"^one .*within 0.01", out, re.M) or flag == "--relative", out
        with netCDF4.Dataset(tmp_path / "a.nc") as p, netCDF4.Dataset(tmp_path / f"{flag[2:]}.nc") as q:
            for name in MISSING:
                before, after = p[name][:], q[name][:]
                assert (np.ma.getmaskarray(before) == np.ma.getmaskarray(after)).all(), (flag, name)
                declared = [np.float32(v) for value in MISSING[name].values() for v in np.atleast_1d(value)]
                mask = np.isin(before.data, declared)
                assert mask.any() and (mask == np.isin(after.data, declared)).all(), (flag, name)
                if name != "zero":  # 0 and -0 are one number
                    assert (before.data[mask].view("u4") == after.data[mask].view("u4")).all(), (flag, name)


def test_history_keeps_its_type(tmp_path):
    """A line in front of it: NC_CHAR and NC_STRING, lists, other character sets, and what is no text."""
    kinds = {
        "char": 'string :title = "x" ; :history = "first\\nsecond" ;', "string": 'string :history = "ol\u00e9" ;',
        "list": 'string :history = "one", "two" ;', "none": ':Conventions = "CF-1.8" ;',
        "numbers": ":history = 1, 2 ;",
    }
    calls = []
    for name, line in kinds.items():
        (tmp_path / f"{name}.cdl").write_text(f"netcdf a {{ dimensions: x = 3000 ; variables: float t(x) ; {line} }}")
        run("ncgen", "-4", "-o", tmp_path / f"{name}.nc", tmp_path / f"{name}.cdl", env=clean(LANG="C.UTF-8"))
        with netCDF4.Dataset(tmp_path / f"{name}.nc", "a") as f:
            f["t"][:] = np.random.default_rng(1).normal(size=3000)
        calls.append(["repack", tmp_path / f"{name}.nc", tmp_path / f"{name}.out.nc", "--absolute", "0.01"])
    assert not [err for status, _, err in many(*calls) if status]
    for name in kinds:
        with h5py.File(tmp_path / f"{name}.nc") as f, h5py.File(tmp_path / f"{name}.out.nc") as g:
            after = h5a.open(g.id, b"history").get_type()
            if name == "none":
                assert b": h5z-gpu repack" in g.attrs["history"]
                continue
            before = h5a.open(f.id, b"history").get_type()
            old, new = f.attrs["history"], g.attrs["history"]
            if name == "numbers":
                assert before == after and list(new) == [1, 2]
                continue
            assert after.is_variable_str() == before.is_variable_str() and after.get_cset() == before.get_cset()
            assert after.get_strpad() == before.get_strpad()
            line, *rest = list(new) if name == "list" else (new if name == "char" else new[0].encode()).split(b"\n")
            assert ": h5z-gpu repack" in (line if isinstance(line, str) else line.decode())
            assert rest == (list(old) if name == "list" else [b"first", b"second"] if name == "char"
                            else ["ol\u00e9".encode()])
    text = run("ncdump", "-h", tmp_path / "char.out.nc", env=clean())
    assert re.search(r"^\t\t:history = .*\\nfirst\\nsecond\" ;$", text, re.M), text


@pytest.mark.parametrize("noise", [False, True])
def test_advise_says_what_repack_does_with_integers(tmp_path, noise):
    """Of integers behind zlib: that --lossless makes them smaller and by how much, or that it does not."""
    rng = np.random.default_rng(3)
    x = rng.integers(-30000, 30000, (40, 60, 80)) if noise else sample(shape=(40, 60, 80), noise=0.05) * 100
    with netCDF4.Dataset(tmp_path / "a.nc", "w") as f:
        for name, n in zip("tyx", x.shape):
            f.createDimension(name, n)
        for name in ("tas", "tos"):
            v = f.createVariable(name, "i2", ("t", "y", "x"), zlib=True)
            v.set_auto_maskandscale(False)
            v[:], v.scale_factor = x, 0.01
    (tmp_path / "b.toml").write_text('["*"]\nlossless = true\n')
    advised, packed, by_table = many(["advise", tmp_path / "a.nc"],
                                     ["repack", tmp_path / "a.nc", tmp_path / "b.nc", "--lossless", "--verify"],
                                     ["repack", tmp_path / "a.nc", tmp_path / "c.nc", "--bounds", tmp_path / "b.toml"])
    assert advised[0] == packed[0] == 0 and by_table[1] == packed[1].replace("b.nc", "c.nc").replace(", verified", "")
    with h5py.File(tmp_path / "a.nc") as f, h5py.File(tmp_path / "b.nc") as g:
        before, after = (sum(h[n].id.get_storage_size() for n in ("tas", "tos")) for h in (f, g))
        raw = f["tas"].size * 2
    if noise:
        assert "repack --lossless would not make the file smaller either" in advised[1] and before == after
        assert packed[1].count("as it was (holds integers, which are compressed already: shuffle, deflate)") == 2
        return
    (told,) = re.findall(r"--lossless saves about ([\d.]+) kB of", advised[1])
    assert before - after > 0.05 * before and abs(float(told) * 1000 / (before - after) - 1) < 0.05
    assert len(re.findall(r"; t[ao]s=lossless saves about [\d.]+ kB more", advised[1])) == 2
    lines = re.findall(r"^t[ao]s +([\d.]+) kB to ([\d.]+) kB, ratio ([\d.]+) \(([\d.]+) of .* raw\)", packed[1], re.M)
    assert len(lines) == 2, packed
    for old, new, ratio, whole in (map(float, line) for line in lines):
        assert abs(old / new / ratio - 1) < 0.01 and abs(raw / 1000 / new / whole - 1) < 0.01, lines
