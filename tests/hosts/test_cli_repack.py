# SPDX-License-Identifier: MIT OR Apache-2.0
"""`h5z-gpu repack` compresses data and changes nothing else: judged by netCDF4, xarray, ncdump, h5py and Python's own
eyes."""

import hashlib
import os
import signal
import subprocess
import sys
import time

import h5py
import judge
import numpy as np
import pytest
from cli import PYTHONS, cli, environment, h5z_gpu, refused, whole
from conftest import child, clean, run, sample, use
from programs import filters

NC = """
import sys, netCDF4, numpy as np, samples
with netCDF4.Dataset(sys.argv[1], "w") as ds:
    ds.Conventions, ds.history, ds.title = "CF-1.8", "2020: made", "trial \\u00e9"
    for name, n in (("zeit", None), ("lat", 90), ("lon", 120), ("two", 2),
                    ("empty", None)):  # not in the order of names
        ds.createDimension(name, n)
    v = ds.createVariable("tas", "f4", ("zeit", "lat", "lon"), zlib=True, shuffle=True, fill_value=-999)
    v.units, v.standard_name, v.cell_measures, v.ancillary_variables = "K", "air_temperature", "area: area", "error"
    x = samples.sample(shape=(40, 90, 120)) + 270
    x[:, :4, 5] = -999
    v[:] = x
    v = ds.createVariable("zeit", "f8", ("zeit",))
    v.bounds, v.units = "bnds", "days since 2000-01-01"
    v[:] = np.arange(40)
    ds.createVariable("bnds", "f8", ("zeit", "two"))[:] = np.random.default_rng(1).normal(size=(40, 2))
    ds.createVariable("lat", "f4", ("lat",))[:] = np.linspace(-90, 90, 90)
    ds.createVariable("lon", "f4", ("lon",))[:] = np.linspace(0, 357, 120)
    ds.createVariable("area", "f4", ("lat", "lon"))[:] = samples.sample(shape=(90, 120))
    ds.createVariable("error", "f4", ("zeit", "lat", "lon"))[:] = samples.sample(shape=(40, 90, 120))
    v = ds.createVariable("kind", "i4", ("zeit", "lat", "lon"))
    v.flag_values = np.array([0, 1], "i4")
    v[:] = x > 271
    v = ds.createVariable("old", "f4", ("lat", "lon"), endian="big")
    v.missing_value = np.float32(-1)
    v[:] = np.where(samples.sample(shape=(90, 120)) > 15, -1, samples.sample(shape=(90, 120)))
    v = ds.createVariable("two_fills", "f4", ("lat", "lon"), fill_value=-5)
    v.missing_value = np.float32(-6)
    v[:] = samples.sample(shape=(90, 120))
    ds.createVariable("later", "f4", ("empty", "lat"))
    ds.createVariable("crs", "i4").grid_mapping_name = "latitude_longitude"
    g = ds.createGroup("model").createGroup("deep")
    g.createDimension("lev", 5)
    w = g.createVariable("w", "f8", ("lev", "lat", "lon"))
    w.units, w.words = "Pa s-1", ["a", "bc"]
    w[:] = samples.sample(np.float64, shape=(5, 90, 120))
    g.createVariable("names", str, ("lev",))[:] = np.array(list("abcde"), object)
    pair = ds.createCompoundType(np.dtype([("a", "i4"), ("b", "f8")]), "pair")
    ds.createVariable("cv", pair, ("two",))[:] = np.array([(1, 2.0), (3, 4.0)], pair.dtype)
    colour = ds.createEnumType("u1", "colour", {"red": 0, "blue": 1})
    ds.createVariable("ev", colour, ("two",))[:] = np.array([0, 1], "u1")
"""


@pytest.fixture(scope="module")
def nc(tmp_path_factory):
    path = tmp_path_factory.mktemp("repack") / "in.nc"
    use(NC, path)
    return path


@pytest.fixture(scope="module")
def packed(nc):
    out = nc.with_name("out.nc")
    digest = hashlib.sha256(nc.read_bytes()).hexdigest()
    text, _ = h5z_gpu("repack", nc, out, "--absolute", "1e-2", "model/deep/w=relative:1e-4", "--verify")
    assert hashlib.sha256(nc.read_bytes()).hexdigest() == digest
    assert sorted(p.name for p in nc.parent.iterdir()) == ["in.nc", "out.nc"]
    return out, text


def ncdump(*args):
    return run("ncdump", *args, env=clean())


def test_netcdf_reads_the_same_but_for_what_is_said(nc, packed):
    """Types, dimensions, variables and attributes, in their order."""
    before, after = (ncdump("-h", p).splitlines()[1:] for p in (nc, packed[0]))
    added = [line.strip() for line in after if line not in before]
    assert [line for line in before if line in after] == [line for line in before if "history" not in line]
    assert [line for line in after if line in before] == [line for line in before if "history" not in line]
    # Two of the three variables have units, which the statement names.
    assert len(added) == 3 * 4 + 2 + 1 and sum("lossy_compression" in line for line in added) == 14
    assert any(line.startswith("tas:lossy_compression_bound = 0.01") for line in added)
    assert any(line.startswith('w:lossy_compression_mode = "relative"') for line in added)
    (history,) = [line for line in added if "history" in line]
    assert ": h5z-gpu repack " in history and history.endswith('--absolute=1e-2\\n2020: made" ;')


def test_all_else_is_exact_and_data_within_its_bound(nc, packed):
    with h5py.File(nc) as f, h5py.File(packed[0]) as g:
        for name in (
            "zeit",
            "bnds",
            "lat",
            "lon",
            "area",
            "error",
            "kind",
            "two_fills",
            "crs",
            "cv",
            "ev",
            "model/deep/names",
        ):
            x, y = f[name][()], g[name][()]
            assert np.array_equal(x, y) and f[name].dtype == g[name].dtype and f[name].maxshape == g[name].maxshape, (
                name
            )
        assert 0.5 < judge.check(f["tas"][...], g["tas"][...], "abs", 1e-2, np.float32(-999)) <= 1
        assert 0.5 < judge.check(f["old"][...], g["old"][...], "abs", 1e-2, np.float32(-1)) <= 1
        assert (
            0
            < judge.check_chunks(f["model/deep/w"][...], g["model/deep/w"][...], g["model/deep/w"].chunks, "rel", 1e-4)
            <= 1
        )
        assert g["tas"].maxshape[0] is None and g["tas"].fillvalue == -999 and g["old"].dtype == np.dtype(">f4")
        assert g["later"].shape == (0, 90)
    assert [n for n in ("tas", "old", "kind", "area", "lat") if filters(packed[0], n)] == ["tas", "old", "kind"]
    assert [f[0] for f in filters(packed[0], "tas")] == [443]  # zlib and shuffle are gone
    assert "several values for missing data, -5.0 and -6.0" in packed[1] and "verified" in packed[1]
    assert packed[0].stat().st_size < nc.stat().st_size / 2


def test_scales_and_references_lead_into_the_new_file(packed):
    with h5py.File(packed[0]) as g:
        tas = g["tas"]
        assert [next(iter(d.values())).name for d in tas.dims] == ["/zeit", "/lat", "/lon"]
        back = {g[r[0]].name for r in g["lat"].attrs["REFERENCE_LIST"]}
        assert {"/tas", "/area", "/model/deep/w"} <= back and g[
            g["zeit"].attrs["REFERENCE_LIST"][0][0]
        ].file.filename == str(packed[0])


def test_netcdf4_appends_and_xarray_reads(packed, tmp_path):
    path = tmp_path / "more.nc"
    path.write_bytes(packed[0].read_bytes())
    use(
        """import sys, netCDF4, xarray, numpy as np, h5z_gpu
with netCDF4.Dataset(sys.argv[1], "a") as ds:
    n = len(ds.dimensions["zeit"])
    ds["tas"][n] = np.full((90, 120), 271.0)
    ds["zeit"][n], ds["bnds"][n] = n, [n, n + 1]
for engine in ("netcdf4", "h5netcdf"):
    with xarray.open_dataset(sys.argv[1], engine=engine) as ds:
        assert ds.tas.shape == (41, 90, 120) and abs(ds.tas[40] - 271).max() <= 0.01, engine
        assert np.isnan(ds.tas[0, 0, 5]) and ds.zeit.dtype.kind == "M" and ds.lat.dtype == "f4", engine
        assert list(ds.tas.encoding["chunksizes"])[1:] == [90, 120]
""",
        path,
    )


def test_plain_hdf5_of_every_kind(tmp_path):
    """Links, named types, references, empty and large attributes, a user block, an external and a virtual dataset."""
    use(
        """import sys, h5py, numpy as np, samples
folder = sys.argv[1]
x = samples.sample(shape=(8, 60, 70))
with h5py.File(folder + "/other.h5", "w") as f:
    f["v"] = x
with h5py.File(folder + "/a.h5", "w", userblock_size=512, track_order=True) as f:
    f.create_dataset("z", data=x, chunks=(1, 60, 70), compression="gzip")
    f.create_dataset("a", data=x.astype("f8"), fletcher32=True, fillvalue=np.nan)
    f["again"] = f["z"]
    f["soft"], f["lost"] = h5py.SoftLink("/z"), h5py.SoftLink("/nowhere")
    f["far"] = h5py.ExternalLink("other.h5", "/v")
    f["kind"] = np.dtype([("a", "i4"), ("b", "f4", (2,))])
    g = f.create_group("g", track_order=True)
    g["loop"] = f["/"]
    g.create_dataset("refs", data=[f["z"].ref, f["g"].ref, h5py.Reference()], dtype=h5py.ref_dtype)
    g.create_dataset("part", data=[f["z"].regionref[0, 3:5, 6]], dtype=h5py.regionref_dtype)
    g["texts"] = ["a", "\\u00e9"]
    g.create_dataset("none", data=h5py.Empty("f4"))
    g["typed"] = np.zeros(3, np.dtype([("a", "i4"), ("b", "f4", (2,))]))
    layout = h5py.VirtualLayout(x.shape, "f4")
    layout[...] = h5py.VirtualSource("other.h5", "v", x.shape)
    g.create_virtual_dataset("virtual", layout)
    f["z"].attrs["to"], f["z"].attrs["list"] = f["a"].ref, np.arange(5000)
    f["z"].attrs["nothing"], f["z"].attrs["b"] = h5py.Empty("i4"), np.bytes_(b"raw\\xff")
    f["z"].attrs["texts"] = ["x", "yy"]
    f["a"].attrs.create("vlen", np.array([np.arange(3), np.arange(2)], object), dtype=h5py.vlen_dtype("i4"))
    f["a"].attrs["typed"] = np.zeros(2, np.dtype([("a", "i4"), ("b", "f4", (2,))]))
with open(folder + "/a.h5", "r+b") as f:
    f.write(b"block")
""",
        tmp_path,
    )
    a, b = tmp_path / "a.h5", tmp_path / "b.h5"
    h5z_gpu("repack", a, b, "--absolute", "1e-3", "--verify")
    # It ends with 1, for it cannot compare an empty reference, an empty dataset and a virtual one.
    said = run("h5diff", "-v", "-d", "0.002", a, b, env=clean(), ok=False)
    assert b.read_bytes()[:5] == b"block" and said.count("\n0 differences found") > 15
    assert said.count(" differences found") == said.count("\n0 differences found"), said
    with h5py.File(a) as f, h5py.File(b) as g:
        assert list(g) == list(f) and list(g["g"]) == list(f["g"]) and list(g["z"].attrs) != []
        assert g["again"] == g["z"] and g["g/loop"] == g["/"] and g["g/refs"].file.filename == str(b)
        for name in ("soft", "lost", "far"):
            assert vars(g.get(name, getlink=True)) == vars(f.get(name, getlink=True))
        refs = g["g/refs"][...]
        assert g[refs[0]] == g["z"] and g[refs[1]] == g["g"] and not refs[2]
        part = g["g/part"][0]
        assert g[part] == g["z"] and np.array_equal(g["z"][part].ravel(), g["z"][0, 3:5, 6])
        assert g[g["z"].attrs["to"]] == g["a"] and np.array_equal(g["z"].attrs["list"], np.arange(5000))
        assert isinstance(g["z"].attrs["nothing"], h5py.Empty) and g["z"].attrs["b"] == b"raw\xff"
        assert list(g["z"].attrs["texts"]) == ["x", "yy"] and [list(v) for v in g["a"].attrs["vlen"]] == [
            [0, 1, 2],
            [0, 1],
        ]
        assert (
            np.isnan(g["a"].fillvalue) and g["g/virtual"].is_virtual and np.array_equal(g["g/virtual"], f["g/virtual"])
        )
        assert g["z"].attrs["lossy_compression_bound"] == 1e-3 and filters(b, "z") and filters(b, "a")


def test_lossless_and_what_is_lossy_already(tmp_path):
    x = sample(shape=(16, 80, 90))
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f["v"], f["n"] = x, np.arange(40000).reshape(200, 200)
    h5z_gpu("repack", tmp_path / "a.h5", tmp_path / "l.h5", "--lossless")
    h5z_gpu("repack", tmp_path / "a.h5", tmp_path / "b.h5", "v=absolute:1e-3")
    text, _ = h5z_gpu("repack", tmp_path / "b.h5", tmp_path / "c.h5", "--absolute", "1e-2")
    assert (
        "as it was: it is lossy already, by this filter, within 0.001 (absolute); --again compresses it again"
        in text
    )
    text, _ = h5z_gpu("repack", tmp_path / "b.h5", tmp_path / "d.h5", "--absolute", "1e-2", "--again")
    assert "within 0.01 (absolute), on top of a loss by this filter, within 0.001 (absolute)" in text
    read = {}
    for name in "lbcd":
        with h5py.File(tmp_path / f"{name}.h5") as f:
            read[name], note = f["v"][...], f["v"].attrs.get("lossy_compression", "")
            assert np.array_equal(f["n"], np.arange(40000).reshape(200, 200)), name
    assert np.array_equal(read["l"], x) and np.array_equal(read["b"], read["c"])
    assert 0.5 < judge.check(read["b"], read["d"], "abs", 1e-2) <= 1 and "on top of a loss by" in str(note)


def test_nothing_is_left_of_what_is_stopped(tmp_path):
    """Ctrl-C and SIGTERM while values are written: OUT never appears, IN is as it was."""
    x = np.random.default_rng(1).normal(size=(24, 1024, 1024)).astype("f4")
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f.create_dataset("v", data=x, chunks=(1, 256, 256))
    before = (tmp_path / "a.h5").read_bytes()
    for number in (signal.SIGINT, signal.SIGTERM):
        command = [sys.executable, "-m", "h5z_gpu", "repack", "a.h5", "b.h5", "--absolute", "1e-6", "--codec",
                   "lorenzo"]
        with child(*command, cwd=tmp_path, env=environment(), stderr=subprocess.PIPE, text=True) as p:
            deadline = time.monotonic() + 60
            while not any(n.endswith(".part") and (tmp_path / n).stat().st_size > 1 << 20
                          for n in os.listdir(tmp_path)):
                assert p.poll() is None and time.monotonic() < deadline
                time.sleep(0.005)
            p.send_signal(number)
            err = p.communicate(timeout=60)[1]
        ended = {signal.SIGINT: (130, "h5z-gpu repack: stopped\n"), signal.SIGTERM: (-signal.SIGTERM, "")}
        # Where the signal falls into a finaliser or a callback, Python says so and goes on: it is answered at the end.
        if number == signal.SIGTERM and err.startswith("Exception ignored in"):
            err = ""
        assert (p.returncode, err) == ended[number], (p.returncode, err)
        assert os.listdir(tmp_path) == ["a.h5"]
    assert (tmp_path / "a.h5").read_bytes() == before


def test_a_full_disk_leaves_nothing(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f["v"] = np.random.default_rng(1).normal(size=(8, 256, 256)).astype("f4")
    limited = ["bash", "-c", 'ulimit -f 200; trap "" XFSZ; exec "$@"', "-"]
    r = subprocess.run([*limited, sys.executable, "-m", "h5z_gpu", "repack", "a.h5", "b.h5", "--lossless"],
                       cwd=tmp_path, env=environment(), capture_output=True, text=True)
    assert (
        r.returncode == 2
        and r.stderr.count("\n") == 1
        and "could not be written, and nothing is left of it" in r.stderr
    ), r.stderr
    assert os.listdir(tmp_path) == ["a.h5"]


def test_bad_input_is_refused_with_a_sentence(nc, tmp_path):
    out = tmp_path / "o.h5"
    (tmp_path / "there.h5").write_text("mine")
    (tmp_path / "cut.nc").write_bytes(nc.read_bytes()[:9000])
    (tmp_path / "old.nc").write_bytes(b"CDF\x02" + bytes(64))
    with h5py.File(nc) as f:
        at = f["tas"].id.get_chunk_info(1)
    raw = bytearray(nc.read_bytes())
    raw[at.byte_offset + 40 : at.byte_offset + 60] = bytes(20)
    (tmp_path / "damaged.nc").write_bytes(raw)
    cases = [
        ([nc, out], "what is to be done? Give a bound"),
        ([nc, tmp_path / "there.h5", "--lossless"], "is there already; nothing was written"),
        ([nc, nc, "--lossless"], "is there already"),
        ([nc, tmp_path / "no/where.h5", "--lossless"], "there is no folder"),
        ([nc, out, "nix=absolute:1"], "has no dataset nix; it has area"),
        ([nc, out, "lat=absolute:1"], "lat is a coordinate: it must not lose a bit"),
        ([nc, out, "kind=absolute:1"], "kind holds integers: it must not lose a bit"),
        ([nc, out, "two_fills=absolute:1"], "several values for missing data"),
        ([nc, out, "model/deep/names=lossless"], "the filter has nothing to do there"),
        ([nc, out, "--absolute", "1e-3", "--lossless"], "give one of --advise, --lossless and a bound for all"),
        ([nc, out, "--absolute", "1e-3", "--codec", "zip"], "zip"),
        ([nc, out, "--pointwise-relative", "1e-3", "--codec", "planes"], "planes"),
        ([tmp_path / "cut.nc", out, "--lossless"], "cut short"),
        ([tmp_path / "old.nc", out, "--lossless"], "netCDF-3"),
        ([tmp_path / "damaged.nc", out, "--lossless"], "tas cannot be read: "),
    ]
    for said, (_, words) in zip(refused(*[["repack", *command] for command, _ in cases]), cases):
        assert words in said, said
    assert not out.exists() and (tmp_path / "there.h5").read_text() == "mine" and not list(tmp_path.glob(".*"))


def test_debians_h5py_advises_and_repacks(tmp_path):
    """HDF5 1.10 counts the attributes of no file, of its root group alone."""
    old, new = tmp_path / "old.h5", tmp_path / "new.h5"
    whole(old)
    for call in (("advise", old), ("repack", old, new, "--absolute", 1), ("verify", old, new, "--absolute", 1)):
        status, out, err = cli(*map(str, call), python=PYTHONS["Debian"])
        assert status == 0, (call, out, err)
