# SPDX-License-Identifier: MIT OR Apache-2.0
"""`h5z-gpu advise`: bounds that the data itself gives, predictions that `repack` keeps, and commands that run as
printed."""

import json
import re
import shlex

import h5py
import numpy as np
import pytest
from cli import h5z_gpu, many, refused
from conftest import clean, run, use
from programs import filters

NC = """
import sys, netCDF4, numpy as np
rng = np.random.default_rng(5)
y, x = np.linspace(-1.5, 1.5, 60)[None, :, None], np.linspace(0, 6.28, 96)[None, None, :]
t = np.arange(32)[:, None, None]
smooth = np.cos(y) * 30 + np.sin(3 * x + t / 9) * 4 * np.cos(y) + np.sin(7 * x - 2 * y + t / 5)
with netCDF4.Dataset(sys.argv[1], "w") as ds:
    ds.Conventions = "CF-1.8"
    for name, n in (("time", None), ("lat", 60), ("lon", 96)):
        ds.createDimension(name, n)
        ds.createVariable(name, "f8", (name,))[:] = np.arange(n or 32)
    def made(name, values, type="f4", **more):
        attributes = {k: more.pop(k) for k in ("units", "quantization_nsd") if k in more}
        v = ds.createVariable(name, type, ("time", "lat", "lon"), **more)
        v.setncatts(attributes)
        v.set_auto_maskandscale("least_significant_digit" in more)
        v[:] = values
    tas = 270 + smooth + rng.normal(0, 0.05, smooth.shape)
    tas[:, :3] = 1e20
    made("tas", tas, fill_value=1e20, units="K")
    made("smooth", smooth, "f8")
    made("rounded", np.round(smooth, 2))
    made("counted", np.round(smooth * 20) * 0.25 + 3)
    made("digits", smooth / 10, least_significant_digit=3)
    made("nsd", 300 + smooth, quantization_nsd=4)
    made("decades", np.exp(smooth), units="kg m-3")
    made("flat", np.full(smooth.shape, 7.0))
    made("packed", np.round(smooth * 100), "i2")
    ds["packed"].scale_factor = 0.01
"""


@pytest.fixture(scope="module")
def nc(tmp_path_factory):
    path = tmp_path_factory.mktemp("advise") / "in.nc"
    use(NC, path)
    return path


@pytest.fixture(scope="module")
def advice(nc):
    return json.loads(h5z_gpu("advise", nc, "--json")[0])


def test_the_data_gives_the_bound(advice):
    found = {v["name"]: v for v in advice["variables"]}
    bounds = {name: v["bound"] for name, v in found.items()}
    assert bounds["tas"] == "absolute:0.02" and "half of the noise between neighbours, 0.05 K" in found["tas"]["reason"]
    assert abs(found["tas"]["noise"] - 0.05) < 0.003
    assert bounds["rounded"] == bounds["counted"] == bounds["digits"] == "lossless" and found["rounded"]["step"] == 0.01
    assert bounds["nsd"] == "pointwise_relative:5e-05" and bounds["decades"] == "pointwise_relative:0.001"
    assert bounds["flat"] == "lossless" and "smooth" in found["smooth"]["reason"]
    exact = {k["name"]: k["why"] for k in advice["exact"]}
    assert exact == {
        "time": "is a coordinate",
        "lat": "is a coordinate",
        "lon": "is a coordinate",
        "packed": "holds integers",
    }
    assert any("within 0.005" in k["note"] for k in advice["exact"])


def test_values_of_a_step_come_back_exactly(advice, nc, tmp_path):
    for name in ("rounded", "counted", "digits"):
        (v,) = [v for v in advice["variables"] if v["name"] == name]
        assert "keeping every bit takes no more room" in v["reason"] and v["lossless_ratio"] > 2
    h5z_gpu("repack", nc, tmp_path / "o.nc", "rounded=absolute:0.005", f"digits=absolute:{2.0**-11}")
    with h5py.File(nc) as f, h5py.File(tmp_path / "o.nc") as g:
        assert all(np.array_equal(f[n], g[n]) for n in ("rounded", "digits"))


def test_what_is_predicted_is_what_repack_gives(advice, nc, tmp_path):
    h5z_gpu("repack", nc, tmp_path / "o.nc", "--advise")
    judged = json.loads(h5z_gpu("verify", nc, tmp_path / "o.nc", "--json")[0])
    found = {d["name"]: d for d in judged["datasets"]}
    assert judged["held"]
    for v in advice["variables"]:
        p, d = v["predicted"], found[v["name"]]
        assert abs(p["ratio"] / (d["raw_bytes"] / d["stored_bytes"]) - 1) < 0.1, v["name"]
        if p["largest_error"]:
            assert abs(p["largest_error"] / d["largest_error"] - 1) < 0.1 and abs(p["psnr"] - d["psnr"]) < 1, v["name"]
        else:
            assert not d.get("largest_error"), v["name"]


def test_commands_run_as_they_are_printed(nc, tmp_path, advice):
    """Each gives the filter that was advised; the lines of Python are run too."""
    where = tmp_path / "in.nc"
    where.write_bytes(nc.read_bytes())
    texts = {name: text.replace(str(nc.with_suffix("")), "in") for name, text in advice["commands"].items()}
    assert set(texts) == {"h5z-gpu", "h5repack", "nccopy", "h5py", "xarray"}
    out = tmp_path / "in.small.nc"
    wanted = {v["name"] for v in advice["variables"]}
    for name in ("h5z-gpu", "h5repack", "nccopy", "xarray"):
        text = texts[name]
        if name == "h5z-gpu":
            h5z_gpu(*shlex.split(text.replace("\\\n", " "))[1:], cwd=tmp_path)
        elif name == "xarray":
            use(f"import os, sys; os.chdir(sys.argv[1])\nimport h5z_gpu, xarray\n{text}", tmp_path)
        else:
            run("sh", "-c", text, env=clean(), cwd=tmp_path)
        got = {n for n in wanted if [f[0] for f in filters(out, n)] == [443]}
        assert got == wanted, (name, wanted - got)
        with h5py.File(out) as f, h5py.File(nc) as g:
            (bound,) = [float(v["bound"].split(":")[1]) for v in advice["variables"] if v["name"] == "smooth"]
            assert 0 < np.abs(f["smooth"][...] - g["smooth"][...]).max() <= bound
        out.unlink()
    lines = [t for t in texts["h5py"].splitlines() if "'tas'" in t]
    use(
        f"""import os, sys, h5py, numpy as np; os.chdir(sys.argv[1])
with h5py.File("in.nc") as g, h5py.File("h.h5", "w") as f:
    {texts["h5py"].splitlines()[0]}
    {lines[0].replace("data=...", "data=g['tas'][...]")}
    assert f["tas"].fillvalue == np.float32(1e20)
""",
        tmp_path,
    )
    assert filters(tmp_path / "h.h5", "tas")


def test_the_same_file_gives_the_same_advice(nc, advice):
    def told(d):
        return [(v["name"], v["bound"], v["codec"], v["chunk"], v["predicted"]["stored_bytes"]) for v in d["variables"]]

    assert told(advice) == told(json.loads(h5z_gpu("advise", nc, "--json")[0]))


def test_a_bound_of_ones_own_and_the_page(nc, tmp_path):
    out, _ = h5z_gpu("advise", nc, "tas=psnr:70", "--html", tmp_path / "p.html")
    assert (
        re.search(r"tas: float32 32x60x96: psnr:70.0\n    why: as you asked", out)
        and "packed: exact, as it holds integers" in out
    )
    page = (tmp_path / "p.html").read_text()
    assert "http" not in re.sub(r"base64,[^\"]+", "", page) and "<script" not in page
    assert page.count("Rate-distortion curves of") == page.count("Compression ratio of") == 4
    assert "the choice, psnr:70.0, has" in page and "h5repack -l" in page
    # A table and a curve of one variable: which values each is about is said, and the choice is the same.
    shown = {n: (ratio, psnr) for n, ratio, psnr in re.findall(
        r'<td><a href="#v\d+">(\w+)</a></td><td>[^<]*</td><td class=n>([\d.]+)</td>(?:<td class=n>[^<]*</td>){2}'
        r"<td class=n>([^<]*)</td>", page)}
    curves = dict(re.findall(r'Rate-distortion curves of (\w+) for [^:]*: bits a value and PSNR. ([^"]*)"', page))
    assert len(curves) == 4 and shown["rounded"][1] == "exact", shown
    for name, said in curves.items():
        ratio, psnr = shown[name]
        psnr = psnr if psnr == "exact" else f"{psnr} dB"
        assert re.search(rf"for the whole variable, as in the table: ratio {ratio} by [\w-]+, {psnr}$", said), said


def test_what_is_lossy_already_stays(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f["v"] = np.random.default_rng(1).normal(size=(40, 50)).astype("f4")
    repacked, told = many(
        ["repack", tmp_path / "a.h5", tmp_path / "b.h5", "v=absolute:0.01"], ["advise", tmp_path / "b.h5", "--json"]
    )
    (v,) = json.loads(told[1])["exact"]
    assert repacked[0] == 0 and v["why"] == "is lossy already, by this filter, within 0.01 (absolute)"


def test_files_without_data_and_bad_input(nc, tmp_path):
    with h5py.File(tmp_path / "none.h5", "w") as f:
        f["n"] = np.arange(5)
    with h5py.File(tmp_path / "odd.h5", "w") as f:
        f.create_dataset("nan", data=np.full((64, 64), np.nan, "f4"))
        f.create_dataset("line", data=np.random.default_rng(1).normal(size=5000))
        big = np.finfo("f8").max
        f.create_dataset("wide", data=np.random.default_rng(2).choice([big, -big, 1.0, 0.0, 5e-324], 9000))
        f.create_dataset("tiny", data=np.random.default_rng(2).integers(0, 1 << 40, 9000, "u8").view("f8"))
        f.create_dataset("every", data=np.random.default_rng(3).integers(0, 1 << 64, 9000, "u8").view("f8"))
        f.create_dataset("half", data=np.zeros((64, 64), "f2"))
        f.create_dataset("inf", data=np.where(np.arange(4096) % 7, np.inf, 1e38).astype("f4"))
    (tmp_path / "text").write_text("no data")
    (tmp_path / "cut.nc").write_bytes(nc.read_bytes()[:-100])
    none, odd = many(["advise", tmp_path / "none.h5"], ["advise", tmp_path / "odd.h5"])
    assert none[0] == 0 and "No variable may lose a bit" in none[1]
    assert odd[0] == 0 and not odd[2], odd
    assert "nan: float32 64x64: lossless" in odd[1] and "half: float16 64x64: lossless" in odd[1], odd
    cases = [
        ([tmp_path / "text"], "is no HDF5 or netCDF-4 file"),
        ([tmp_path / "cut.nc"], "cut short"),
        ([nc, "lat=absolute:1"], "lat is a coordinate; no bound can be tried"),
        ([nc, "nix=absolute:1"], "nix is not there"),
        ([nc, "tas=absolute:-1"], "tas=absolute:-1"),
        ([nc, "--html", tmp_path / "no" / "p.html"], "there is no folder"),
    ]
    for said, (_, words) in zip(refused(*[["advise", *command] for command, _ in cases]), cases):
        assert words in said, said
