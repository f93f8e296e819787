# SPDX-License-Identifier: MIT OR Apache-2.0
"""`h5z-gpu verify` finds a single broken value or bit, and says nothing of files that keep their promise."""

import json
import re
import struct
import sys

import h5py
import judge
import numpy as np
import pytest
from cli import environment, h5z_gpu, many, refused
from conftest import run, sample, use

FILL = -999.0


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """An original, and what the filter makes of it: each mode, both types, another filter, none, texts and
    compounds."""
    folder = tmp_path_factory.mktemp("verify")
    use(
        """import sys, h5py, numpy as np, h5z_gpu, samples
from h5z_gpu import Lossless, Lossy
x = samples.sample(shape=(10, 60, 80))
x[0, 0, :5] = np.array([0x7FC00001, 0xFFC12345, 0x7F800000, 0xFF800000, 0x7F800001], "u4").view("f4")
x[1, 2, 3:9] = -999
how = {"a": Lossy(absolute=1e-2, fill_value=-999), "r": Lossy(relative=1e-3), "p": Lossy(pointwise_relative=1e-3),
       "s": Lossy(psnr=60), "l": Lossless(), "d": Lossy(absolute=1e-5)}
with h5py.File(sys.argv[1] + "/a.h5", "w") as f, h5py.File(sys.argv[1] + "/b.h5", "w") as g:
    for name, h in how.items():
        v = x.astype("f8") * 3 if name == "d" else x.astype(">f4") if name == "p" else x
        if name in "sr":
            v = np.where(np.isfinite(v), v, 0).astype("f4")
        f.create_dataset(name, data=v)
        g.create_dataset(name, data=v, chunks=(4, 60, 32), **h)
    for file in (f, g):
        file.create_dataset("group/lat", data=np.linspace(-90, 90, 60))
        file.create_dataset("time", data=np.arange(10))
        file.create_dataset("zipped", data=x, compression="gzip", shuffle=True)
        file["text"] = ["a", "bcd"]
        file["record"] = np.array([(1, 2.5)], [("i", "i1"), ("v", "f8")])
        file["scalar"], file["none"] = np.float32(1), h5py.Empty("f4")
""",
        folder,
    )
    return folder / "a.h5", folder / "b.h5"


def other(files, tmp_path):
    """A copy of the compressed file whose dataset `a` holds its values without the filter, to be changed at will."""
    path = tmp_path / "c.h5"
    with h5py.File(files[1]) as f, h5py.File(path, "w") as g:
        for name in f:
            if name != "a":
                f.copy(name, g)
        g.create_dataset("a", data=f["a"][...], fillvalue=FILL)
    return path


def test_what_is_kept_is_said_to_be(files):
    out, err = h5z_gpu("verify", *files)
    assert not err and out.count(": held") == 13 and "every promise is kept" in out
    assert "3 NaN, 2 infinite, 6 fill; all kept bit for bit" in out
    found = {d["name"]: d for d in json.loads(h5z_gpu("verify", *files, "--json")[0])["datasets"]}
    assert {n: d["promise"]["mode"] for n, d in found.items() if len(n) == 1} == {
        "a": "absolute", "r": "relative", "p": "pointwise_relative", "s": "psnr", "l": "lossless", "d": "absolute"}
    assert 0.5 < found["a"]["largest_over_bound"] <= 1 and 0.5 < found["r"]["largest_over_bound"] <= 1
    assert sum(found["a"]["histogram"]["counts"]) == 10 * 60 * 80 - 11 and not found["a"]["histogram"]["above"]


def test_figures_are_those_of_numpy(files):
    found = {d["name"]: d for d in json.loads(h5z_gpu("verify", *files, "--json")[0])["datasets"]}["a"]
    with h5py.File(files[0]) as f, h5py.File(files[1]) as g:
        x, y = f["a"][...], g["a"][...]
    keep = judge.exact(x, np.float32(FILL))
    with np.errstate(invalid="ignore"):
        e = np.where(keep, 0, y.astype("f8") - x)
    use = e[~keep]
    assert found["largest_error"] == np.abs(use).max()
    assert np.isclose(found["rms_error"], np.sqrt(np.mean(use**2)), rtol=1e-12)
    assert np.isclose(
        found["psnr"], 20 * np.log10(np.ptp(x[~keep].astype("f8")) / np.sqrt(np.mean(use**2))), rtol=1e-12
    )
    corr = np.corrcoef(x[~keep].astype("f8"), y[~keep].astype("f8"))[0, 1]
    assert abs(found["correlation"] - corr) < 1e-12 and 0.99 < found["ssim"] < 1
    for axis, value in enumerate(found["error_autocorrelation"].values()):
        p, q = np.moveaxis(e, axis, 0)[:-1].ravel(), np.moveaxis(e, axis, 0)[1:].ravel()
        assert abs(value - np.corrcoef(p, q)[0, 1]) < 2e-2


def ssim_by_hand(x, y, wide):
    """Wang's formula in each window, as it is written."""
    found = []
    for i in range(x.shape[0] - 6):
        for j in range(x.shape[1] - 6):
            a, b = x[i : i + 7, j : j + 7].ravel(), y[i : i + 7, j : j + 7].ravel()
            c1, c2, cov = (0.01 * wide) ** 2, (0.03 * wide) ** 2, np.cov(a, b)
            top = (2 * a.mean() * b.mean() + c1) * (2 * cov[0, 1] + c2)
            found.append(top / ((a.mean() ** 2 + b.mean() ** 2 + c1) * (cov[0, 0] + cov[1, 1] + c2)))
    return np.mean(found)


def test_similarity_and_spectrum_are_those_of_their_formulas(tmp_path):
    x = sample(shape=(40, 50), noise=0).astype("f8") + 270
    i = np.arange(50)
    y = x + 0.3 * np.cos(2 * np.pi * 0.3 * i)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", y)
    (found,) = json.loads(h5z_gpu("verify", tmp_path / "x.npy", tmp_path / "y.npy", "--absolute", 0.31, "--json")[0])[
        "datasets"
    ]
    assert abs(found["ssim"] - ssim_by_hand(x, y, np.ptp(x))) < 1e-9
    power = np.array([0 if p == "NaN" else p for p in found["spectrum"]["error"]])
    assert abs(found["spectrum"]["cycles_per_cell"][int(power.argmax())] - 0.3) < 0.02


def test_one_value_over_the_bound_is_found(files, tmp_path):
    """By one step of a double over it; the one below is kept."""
    path = other(files, tmp_path)
    bound = 1e-2
    with h5py.File(files[0]) as f, h5py.File(path, "a") as g:
        x = f["a"][7, 31, 17]
        y = np.float32(x + np.float32(bound / 2))
        while abs(float(y) - float(x)) <= bound:
            y = np.nextafter(y, np.float32(np.inf))
        g["a"][7, 31, 17] = np.nextafter(y, np.float32(-np.inf))
    assert ": held" in h5z_gpu("verify", files[0], path, "a=absolute:1e-2", "--dataset", "a")[0]
    with h5py.File(path, "a") as g:
        g["a"][7, 31, 17] = y
    out, _ = h5z_gpu("verify", files[0], path, "a=absolute:1e-2", status=1)
    assert "BROKEN for 1 value; the first, at [7, 31, 17]:" in out and "BROKEN in a" in out


def test_a_broken_value_of_a_later_chunk_is_named_by_its_place(files, tmp_path):
    """A bound of a chunk's range is judged chunk by chunk."""
    with h5py.File(files[0]) as f, h5py.File(tmp_path / "c.h5", "w") as g:
        y = f["r"][...]
        y[7, 31, 47] += 100
        g.create_dataset("r", data=y, chunks=(4, 60, 32))
    out, _ = h5z_gpu("verify", files[0], tmp_path / "c.h5", "r=relative:1e-3", "--dataset", "r", status=1)
    assert "BROKEN for 1 value; the first, at [7, 31, 47]:" in out, out


def test_one_flipped_bit_of_a_special_value_is_found(files, tmp_path):
    path, places = (
        other(files, tmp_path),
        [(0, 0, 1), (0, 0, 4), (0, 0, 3), (1, 2, 8)],
    )  # NaN, a signalling one, infinity, fill
    changed = []
    for k, at in enumerate(places):
        changed.append(tmp_path / f"{k}.h5")
        changed[k].write_bytes(path.read_bytes())
        with h5py.File(changed[k], "a") as g:
            v = g["a"][...]
            v.view("u4")[at] ^= 2
            g["a"][...] = v
    commands = [["verify", files[0], c, "--absolute", "1e-2", "--dataset", "a"] for c in changed]
    for at, (status, out, _) in zip(places, many(*commands)):
        assert status == 1 and "BROKEN for 1 value, which had to keep its bits" in out, out
        assert f"at [{', '.join(map(str, at))}]" in out


def test_other_datasets_must_be_equal(files, tmp_path):
    """Each is changed in one place in turn, by a single bit where it has bits, and restored."""
    path, names = other(files, tmp_path), ["time", "text", "record", "zipped", "scalar", "group/lat"]
    changed = {}
    for name in names:
        changed[name] = tmp_path / f"{name.replace('/', '.')}.h5"
        changed[name].write_bytes(path.read_bytes())
        with h5py.File(changed[name], "a") as g:
            d = g[name]
            if name == "record":
                d[0] = (1, np.nextafter(2.5, 3))
            elif name == "text":
                d[1] = "bce"
            elif name == "scalar":
                d[()] = np.nextafter(np.float32(1), np.float32(2))
            else:
                at = (3,) * d.ndim
                d[at] = d[at] + 1
    for name, (status, out, _) in zip(
        names, many(*[["verify", files[0], changed[n], "a=absolute:1e-2"] for n in names])
    ):
        assert status == 1 and out.endswith(f"BROKEN in {name}\n"), (name, out)


def test_values_of_another_byte_order_are_compared_by_what_they_are(tmp_path):
    """Integers, and compounds of them and references, which lead into files of their own."""
    i = np.arange(-5, 7, dtype="i4")
    for name, order in (("a", "<"), ("same", ">"), ("number", ">"), ("empty", ">")):
        with h5py.File(tmp_path / f"{name}.h5", "w") as f:
            f["i"] = i.astype(f"{order}i4")
            record = f.create_dataset("record", (2,), [("to", h5py.ref_dtype), ("n", f"{order}i4")])
            record[...] = np.array([(f["i"].ref, 1), (h5py.Reference() if name == "empty" else f.ref, 2)], record.dtype)
            if name == "number":
                f["i"][8] = 9
    answers = many(*[["verify", tmp_path / "a.h5", tmp_path / f"{n}.h5"] for n in ("same", "number", "empty")])
    assert [status for status, _, _ in answers] == [0, 1, 1], answers
    assert "first, at [8]: 3 became 9" in answers[1][1] and "BROKEN in i\n" in answers[1][1], answers[1]
    assert "first, at [1]" in answers[2][1] and "BROKEN in record\n" in answers[2][1], answers[2]


def test_a_bound_on_the_command_line_replaces_the_promise(files):
    out, _ = h5z_gpu("verify", *files, "--absolute", "1e-3", "--dataset", "a", status=1)
    assert "within 0.001 (absolute) (given): BROKEN" in out
    answers = many(
        *[["verify", *files, *how, "--dataset", "a"] for how in (["a=relative:1e-2"], ["--psnr", 200], ["a=lossless"])]
    )
    assert [status for status, _, _ in answers] == [0, 1, 1]


def test_the_verdict_agrees_with_the_judge_on_hostile_values(tmp_path):
    """Errors on the limit, a step below and above it, subnormal, overflowing, infinite."""
    use(r"""
import numpy as np, judge as by_hand
from h5z_gpu.judge import Promise, judge
rng, n = np.random.default_rng(3), 0
for dtype in ("f4", "f8"):
    for scale in (1e-320 if dtype == "f8" else 1e-44, 1e-30, 1.0, 1e30, 1e300 if dtype == "f8" else 1e38):
        x = (rng.normal(size=4000) * scale).astype(dtype)
        x[:50], x[50:60] = 0, -0.0
        x[60:62] = np.finfo(dtype).max, -np.finfo(dtype).max
        for bound in (float(scale) / 3, 0.1 * float(scale), 5e-324):
            with np.errstate(all="ignore"):
                y = x + np.array(rng.choice([-bound, bound, 0, bound / 2], 4000)).astype(dtype)
                step = rng.integers(-2, 3, 4000)
                for k in (1, 2):
                    y = np.where(step >= k, np.nextafter(y, np.array(np.inf, dtype)), y)
                    y = np.where(step <= -k, np.nextafter(y, np.array(-np.inf, dtype)), y)
            use = np.isfinite(x) & np.isfinite(y)
            u, v = x[use], y[use]
            ours = judge(u, v, Promise("absolute", bound)).broken
            assert (ours == by_hand.above(u, v, bound)).all(), (dtype, scale, bound)
            r = min(0.3, bound)
            ours = judge(u, v, Promise("pointwise_relative", r)).broken
            assert (ours == by_hand.above_pointwise(u, v, r)).all(), (dtype, scale, r)
            n += ours.sum()
assert n > 1000
""")


def test_relative_and_psnr_are_exact_at_the_limit():
    use(r"""
import numpy as np
from math import nextafter, inf
from h5z_gpu.judge import Promise, judge
def held(pairs, mode, bound, fill=None):
    x, y = (np.array(v, "f8") for v in zip(*pairs))
    j = judge(x, y, Promise(mode, bound, None if fill is None else int(np.array(fill, "f8").view("u8"))))
    return not j.broken.any() and j.noisy is None
# 0.1 of the range 3 has 54 bits, and so has this difference: rounded down to a double the limit would be too small.
unit, down = 2.0**-55, -10808639105689190.0 * 2.0**-55
ends = [(-1.0, -1.0), (2.0, 2.0)]
assert held(ends + [(unit, down)], "relative", 0.1)
assert not held(ends + [(2 * unit, down)], "relative", 0.1) and not held(ends + [(unit, nextafter(down, -inf))],
                                                                         "relative", 0.1)
big = np.finfo("f8").max
assert held([(big, big), (-big, -big), (big, 0.0)], "relative", 0.5)
assert not held([(big, big), (-big, -big), (big, -5e-324)], "relative", 0.5)
assert held([(7.0, 7.0)], "relative", 0.9) and not held([(7.0, nextafter(7, 8))], "relative", 0.9)
# A zero that HDF5 fills with by itself stretches no range; where another fill value is declared it does.
zeros = [(280.0, 280.0), (0.0, 0.0), (281.0, 281.1)]
assert not held(zeros, "relative", 0.01) and held(zeros, "relative", 0.01, 1e20)
# Range 10 and 20 dB: the mean square may be 1.
at = lambda d, p: held([(3, 3 + d[0]), (13, 13 + d[1]), (4, 4 + d[2]), (5, 5 + d[3])], "psnr", p)
assert at([1, 1, 1, 1], 20) and at([2, 0, 0, 0], 20) and not at([1, 1, 1, 1 + 2.0**-50], 20)
assert not at([1, 1, 1, 1], nextafter(20, 21)) and at([1, 1, 1, 1], nextafter(20, 19))
d = 0.0005623413251903491
with_ = lambda d: held([(0, 2 * d), (-0.5, -0.5), (0.5, 0.5), (0.25, 0.25)], "psnr", 65)
assert with_(nextafter(d, 0)) and not with_(d)
""")


def test_npy_against_a_dataset(files, tmp_path):
    with h5py.File(files[0]) as f:
        np.save(tmp_path / "a.npy", f["a"][...])
        np.save(tmp_path / "i.npy", f["time"][...])
    npy = tmp_path / "a.npy"
    a, i, bound = many(["verify", npy, files[1], "--dataset", "a"], ["verify", files[0], tmp_path / "i.npy"],
                          ["verify", npy, npy, "--absolute", "1"])
    assert "a.npy: float32 10x60x80, within 0.01 (absolute): held" in a[1] and "time" in i[1] and bound[0] == 0
    which, nothing = refused(["verify", npy, files[1]], ["verify", npy, npy])
    assert "name one with --dataset: a (10, 60, 80)" in which and "promise nothing; name the bound" in nothing


def test_netcdf_files(tmp_path):
    """Written by netCDF4 with the filter, compared with what ncgen knows nothing of; names and units are those of the
    file."""
    use(
        """import sys, numpy as np, netCDF4, h5z_gpu, samples
x = samples.sample(shape=(6, 40, 50))
for name, how in (("a.nc", None), ("b.nc", h5z_gpu.Lossy(relative=1e-3))):
    with netCDF4.Dataset(f"{sys.argv[1]}/{name}", "w") as ds:
        for d, n in zip(("time", "lat", "lon"), (None, 40, 50)):
            ds.createDimension(d, n)
            ds.createVariable(d, "f8", (d,))[:] = np.arange(n or 6)
        v = ds.createVariable("tas", "f4", ("time", "lat", "lon"), chunksizes=(2, 40, 50), fill_value=1e20)
        v.units = "K"
        if how:
            h5z_gpu.netcdf.def_filter(v, how)
        x[3, 4] = 1e20
        v[:] = x
""",
        tmp_path,
    )
    out, _ = h5z_gpu("verify", tmp_path / "a.nc", tmp_path / "b.nc", "--html", tmp_path / "page.html")
    assert "50 fill; all kept" in out and re.search(r"largest error: \S+ K", out) and "lag 1: time" in out
    page = (tmp_path / "page.html").read_text()
    assert page.count("<img alt=") == 5 and 'src="data:image/svg+xml' in page
    assert "http" not in re.sub(r"base64,[^\"]+", "", page) and "<script" not in page
    for word in ("Histogram of the error of tas", "Power spectra of tas", "Map of the error of tas"):
        assert word in page


@pytest.mark.parametrize("first, last", [(-88, 88), (88, -88)], ids=["from the south", "from the north"])
def test_north_is_up_on_maps(first, last, tmp_path):
    """Whichever way the latitudes of a file run; without latitudes the first row is on top. The figures of the page are
    looked at."""
    text = use(
        """import sys, netCDF4, numpy as np, h5z_gpu
from h5z_gpu.cli import main, page
folder, first, last = sys.argv[1:]
for name, how in (("a.nc", None), ("b.nc", h5z_gpu.Lossy(absolute=1e-2))):
    with netCDF4.Dataset(f"{folder}/{name}", "w") as ds:
        for axis, values, units in (("lat", np.linspace(float(first), float(last), 45), "degrees_north"),
                                    ("lon", np.arange(90) * 4.0, "degrees_east"), ("level", np.arange(45.0), "hPa")):
            ds.createDimension(axis, values.size)
            v = ds.createVariable(axis, "f8", (axis,))
            v[:], v.units = values, units
        for name, down in (("tas", "lat"), ("cut", "level")):
            v = ds.createVariable(name, "f4", (down, "lon"))
            if how:
                h5z_gpu.netcdf.def_filter(v, how)
            v[:] = np.linspace(float(first), float(last), 45)[:, None] + np.random.default_rng(1).normal(0, 1, (45, 90))
figure = page.figure
def seen(drawn, alt, caption):
    axes = drawn.axes[0]
    if alt.startswith("Map"):
        height = axes.transData.transform([(0, 0), (0, 44)])[:, 1]
        print(alt.split()[2 if "error" not in alt else 5].strip(","), "last row on top" if height[1] > height[0]
              else "first row on top")
    return figure(drawn, alt, caption)
page.figure = seen
main(["verify", f"{folder}/a.nc", f"{folder}/b.nc", "--html", f"{folder}/page.html"])
""",
        tmp_path, str(first), str(last),
    )
    expected = "last row on top" if last > first else "first row on top"
    assert text.count(f"tas {expected}\n") == 3 and text.count("cut first row on top\n") == 3, text


def test_the_page_marks_a_broken_value(files, tmp_path):
    path = other(files, tmp_path)
    with h5py.File(path, "a") as g:
        g["a"][5, 30, 40] += 1
    h5z_gpu("verify", files[0], path, "a=absolute:1e-2", "--dataset", "a", "--html", tmp_path / "p.html", status=1)
    page = (tmp_path / "p.html").read_text()
    assert (
        "The circle marks the first broken value" in page and "slice at axis 0 5, with the most broken values" in page
    )
    assert "1 of 47989 values lie beyond the bound" in page


def test_the_page_shows_where_what_is_kept_is_broken(tmp_path):
    """In the slice with the most such values, and along a row; the marks of the figures are looked at."""
    x = np.full((5, 60, 70), 2, "f4")
    x[:, ::2, ::2] = 1.5
    x[3, 20], x[3, 21, 35], x[1, 2, 2], x[3, 30, 40], x[3, 31, 66] = 0.01, 0, 0.01, 3, 3
    x[2, 0, 0] = -1  # of the chunk that has the first two of the signs: they stay within its range
    y = x.copy()
    signs, tops = [(20, c) for c in range(33, 39)], [(30, 40), (31, 66)]
    for at in signs:
        y[(3, *at)] *= -1
    y[3, 21, 35], y[1, 2, 2], y[3, 30, 40], y[3, 31, 66] = 0.02, -0.01, 3.1, 2.9
    with h5py.File(tmp_path / "x.h5", "w") as f, h5py.File(tmp_path / "y.h5", "w") as g:
        f["v"], f["row"] = x, x[3].reshape(-1)
        g.create_dataset("v", data=y, chunks=(2, 30, 35))
        g.create_dataset("row", data=y[3].reshape(-1), chunks=(4200,))
    said = json.loads(use("""
import json, sys
from h5z_gpu.cli import main, page
figure, seen = page.figure, []
def look(drawn, alt, caption):
    lines = [line for line in drawn.axes[0].lines if line.get_label() in ("sign", "zero", "range")]
    marks = {str(line.get_label()): line.get_xydata().astype(int).tolist() for line in lines}
    seen.append([alt, marks])
    return figure(drawn, alt, caption)
page.figure = look
sys.stdout, out = sys.stderr, sys.stdout
assert main(["verify", *sys.argv[1:3], "--absolute", "0.5", "--keep", "sign,zero,range", "--html", sys.argv[3]]) == 1
print(json.dumps(seen), file=out)
""", tmp_path / "x.h5", tmp_path / "y.h5", tmp_path / "page.html").splitlines()[-1])
    said = dict(said)
    where = "slice at axis 0 3, with the most broken values"
    assert f"Map of the error of v, {where}; colours end at the bound, 0.5; the largest in this slice is 0.1" in said
    assert f"Map of the values of v that break what is kept: sign 7, zero 1, range 7; {where}" in said, said
    shown = [*signs, (21, 35), tops[0]]
    for what in ("original", "reconstruction"):
        (marks,) = (m for alt, m in said.items() if alt.startswith(f"Map of v, {what}, rows "))
        expected = {"sign": shown[:-1], "zero": [(21, 35)], "range": shown[2:]}
        assert marks == {name: [[c, r] for r, c in places] for name, places in expected.items()}, marks
    (marks,) = (m for alt, m in said.items() if alt.startswith("row, original and reconstruction, from index 1"))
    assert [at[0] for at in marks["sign"]] == [r * 70 + c for r, c in expected["sign"]], marks
    held = {alt for alt, marks in said.items() if marks}
    assert len(held) == 3, held


def test_bad_input_is_refused_with_a_sentence(files, tmp_path):
    a, b = files
    (tmp_path / "text").write_text("no file of data\n")
    (tmp_path / "cut.h5").write_bytes(b.read_bytes()[:-3000])
    (tmp_path / "old.nc").write_bytes(b"CDF\x01" + bytes(100))
    (tmp_path / "bad.npy").write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", 500) + b"{")
    cases = [
        ([a, tmp_path / "none.h5"], "No such file"),
        ([a, tmp_path / "text"], "is no HDF5 or netCDF-4 file"),
        ([a, tmp_path / "cut.h5"], "is cut short"),
        ([tmp_path / "old.nc", b], "netCDF-3"),
        ([tmp_path / "bad.npy", b], "no .npy file that can be read"),
        ([a, b, "--dataset", "nix"], "nix is not there; it has "),
        ([a, b, "nix=absolute:1"], "no dataset nix"),
        ([a, b, "--html", tmp_path], "is a folder"),
    ]
    cases += [
        ([a, b, f"a={x}"], x) for x in ("1e-3", "absolute:x", "absolute:-1", "absolute:nan", "relative:2", "lossless:1")
    ]
    for said, (_, words) in zip(refused(*[["verify", *command] for command, _ in cases]), cases):
        assert words in said
    with h5py.File(tmp_path / "shape.h5", "w") as f:
        f["a"], f["time"] = np.zeros((3, 3), "f4"), np.zeros(10)
    _out, err = h5z_gpu("verify", a, tmp_path / "shape.h5", "--dataset", "a", "--dataset", "time", status=2)
    assert (
        "the shape (10, 60, 80) in one file and (3, 3) in the other" in err
        and "of int64 in one file and of float64" in err
    )
    assert "has no dataset zipped, which" in many(["verify", a, tmp_path / "shape.h5"])[0][2]


def test_a_damaged_chunk_is_named(files, tmp_path):
    raw = bytearray(files[1].read_bytes())
    with h5py.File(files[1]) as f:
        info = f["a"].id.get_chunk_info(3)
    raw[info.byte_offset + info.size // 2] ^= 4
    (tmp_path / "damaged.h5").write_bytes(raw)
    out, err = h5z_gpu("verify", files[0], tmp_path / "damaged.h5", status=2)
    assert (
        err.count("\n") == 1
        and f"a cannot be read: the chunk at {info.chunk_offset}" in err
        and out.count(": held") == 12
    )
    assert not json.loads(h5z_gpu("verify", files[0], tmp_path / "damaged.h5", "--json", status=2)[0])["held"]


def test_files_of_other_compressors(tmp_path):
    """ZFP's tolerance is judged where its plugin is found; else the sentence says which filter is missing."""
    import hdf5plugin

    x = sample(shape=(16, 60, 70))
    with h5py.File(tmp_path / "a.h5", "w") as f, h5py.File(tmp_path / "b.h5", "w") as g:
        f["v"] = x
        g.create_dataset("v", data=x, chunks=(4, 60, 70), **hdf5plugin.Zfp(accuracy=1e-2))
    command = ["verify", tmp_path / "a.h5", tmp_path / "b.h5", "--absolute", "1e-2"]
    assert ": held" in h5z_gpu(*command, HDF5_PLUGIN_PATH=hdf5plugin.PLUGIN_PATH)[0]
    out, err = h5z_gpu(*command, status=2)
    assert "v cannot be read without HDF5 filter 32013; hdf5plugin has many" in err and "nothing was compared" in out


def test_without_matplotlib_the_page_says_what_to_install(files, tmp_path):
    (tmp_path / "matplotlib.py").write_text("raise ImportError('none here')\n")
    env = environment()
    env["PYTHONPATH"] = f"{tmp_path}:{env['PYTHONPATH']}"
    out = run(sys.executable, "-m", "h5z_gpu", "verify", *files, "--html", tmp_path / "p.html", env=env, ok=False)
    assert "pip install matplotlib" in out and "Traceback" not in out
