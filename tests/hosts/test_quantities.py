# SPDX-License-Identifier: MIT OR Apache-2.0
"""Bounds that are searched for derived quantities, through Python and the commands: judged by NumPy's long double on
what was written, and compared with what the search has said."""
import json
import math
import os

import h5py
import netCDF4
import numpy as np
import pytest
from cli import cli, h5z_gpu, many
from conftest import sample, use

import h5z_gpu as package
from h5z_gpu import Lossless, Lossy, Quantity, loosest
from h5z_gpu.search import CLOSE, CODINGS, rounded_down

SHAPE = (6, 40, 50)
LONG = np.longdouble


def noisy(kind="f4", seed=1):
    return (280 + 5 * sample(np.float64, SHAPE) + np.random.default_rng(seed).normal(0, 0.05, SHAPE)).astype(kind)


def there(v):
    return v.astype(LONG)


# A text, and by NumPy what it means.
QUANTITIES = {
    "difference(v, 1)": lambda v: np.diff(there(v), axis=1), "gradient(v, 0)": lambda v: np.gradient(there(v), axis=0),
    "gradient(v)": lambda v: np.stack(np.gradient(there(v))), "mean(v)": lambda v: there(v).mean(),
    "laplacian(v, 2)": lambda v: np.diff(there(v), 2, axis=2), "mean(v, 0)": lambda v: there(v).mean(axis=0),
    "sum(v, 1, 2)": lambda v: there(v).sum(axis=(1, 2)), "std(v, 0)": lambda v: there(v).std(axis=0),
    "min(v, 1)": lambda v: v.min(axis=1).astype(LONG), "max(v)": lambda v: v.max().astype(LONG),
}


def through(tmp_path, how, **arrays):
    package.save(tmp_path / "out.h5", arrays, how, mode="w")
    return package.load(tmp_path / "out.h5")


@pytest.mark.parametrize("text", QUANTITIES)
def test_a_searched_bound_keeps_the_quantity_in_the_file(text, tmp_path):
    x, function = noisy(), QUANTITIES[text]
    for limit in (1e-4, 0.02):
        how = loosest({"v": x}, [f"{text} {limit}"])["v"]
        if isinstance(how, Lossless):
            assert limit == 1e-4 and text.startswith(("min", "max", "diff", "grad", "lap", "sum"))
            continue
        y = through(tmp_path, how, v=x)["v"]
        assert np.abs(function(y) - function(x)).max() <= limit * (1 + 1e-15)
        # One that is a third larger breaks it, or is the range of the values; errors of a mean and of one maximum are
        # of chance.
        more = Lossy(absolute=1.35 * how.bound)
        worse = np.abs(function(through(tmp_path, more, v=x)["v"]) - function(x)).max()
        assert worse > limit or 1.4 * how.bound > np.ptp(x) or text.startswith(("mean", "sum", "std", "max"))


def test_a_mean_may_have_a_looser_bound_than_its_theorem():
    x = noisy()
    assert loosest(x, ["mean() 1e-4"]).bound > 1e-3
    assert loosest(x, ["mean(0) 1e-2"]).bound > 1.2e-2


def test_names_units_caps_and_functions(tmp_path):
    xr = pytest.importorskip("xarray")
    u, v, w = (xr.DataArray(noisy("f8", k), dims=("time", "y", "x"), attrs={"units": "m s-1"}) for k in range(3))
    hows = loosest({"u": u, "v": v, "w": w}, ["hypot(u, v) 0.1", "mean(w, time) 1e-3"], Lossy(1.0, codec="szx"))
    assert hows["u"].bound == hows["v"].bound >= rounded_down(0.1 / math.sqrt(2)) and hows["w"].bound < 1
    assert {h.codec for h in hows.values()} == {"szx"}
    # Without one unit bounds are as the ranges are.
    hows = loosest({"u": np.asarray(u), "v": 10 * np.asarray(v)}, ["hypot(u, v) 0.5"])
    assert hows["v"].bound / hows["u"].bound == pytest.approx(10 * np.ptp(v.values) / np.ptp(u.values), rel=2e-3)
    assert loosest(np.asarray(u), ["mean() 1"], Lossy(absolute=0.03)) == Lossy(absolute=0.03)
    speed = Quantity(lambda a, b: np.sqrt(a * a + b * b), 0.1, ("u", "v"))
    hows = loosest({"u": u, "v": v}, [speed])
    back = {name: through(tmp_path, hows[name], **{name: array.values})[name] for name, array in (("u", u), ("v", v))}
    assert np.abs(speed.operation(back["u"], back["v"]) - speed.operation(u.values, v.values)).max() <= 0.1
    assert hows["u"].bound > 0.03


def test_what_no_bound_keeps_is_lossless(tmp_path):
    x = noisy()
    assert (through(tmp_path, loosest(x, ["gradient() 1e-9"]), v=x)["v"] == x).all()
    for a, text in ((x, "mean() 0"), (x, "max() 1e-30"), (np.full((4, 5), 2.5), "mean() 1")):
        assert loosest(a, [text]) == Lossless(), text
    assert loosest(np.where(x > 280, x, np.float32(np.nan)), ["mean(0) 1e-3"]).bound >= 1e-3
    assert loosest(np.full((4, 5), np.nan), ["mean() 1"]) == Lossless()


@pytest.mark.parametrize("arrays, quantities, how, why", [
    (noisy(), [], None, "no quantity is named"), (noisy(), ["mean(q) 1"], None, "q is neither"),
    (noisy(), ["mean() 1"], Lossy(relative=1e-3), "give the largest bound"), (noisy(), [""], None, "is no quantity"),
    (np.arange(5), ["mean() 1"], None, "v is int64 of the shape (5,)"), (1.0, ["mean() 1"], None, "of the shape ()"),
    ({"a": noisy(), "b": noisy()[0]}, ["hypot(a, b) 1"], None, "variables of one shape"),
    (noisy(), [Quantity(lambda v: v[v > 280], 1)], None, "real numbers of one shape"),
])
def test_what_cannot_be_searched_is_refused(arrays, quantities, how, why):
    with pytest.raises(ValueError, match="^h5z-gpu: ") as refusal:
        loosest(arrays, quantities, how)
    assert why in str(refusal.value)


# --- commands ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """Fields of many kinds on the same axes."""
    path = tmp_path_factory.mktemp("quantities") / "in.nc"
    with netCDF4.Dataset(path, "w") as ds:
        for name, n in zip(("time", "lat", "lon"), SHAPE):
            ds.createDimension(name, n)
            ds.createVariable(name, "f8", (name,))[:] = np.arange(n)
        hole = np.random.default_rng(3).random(SHAPE) < 0.2
        cloud = np.clip(50 + 80 * sample(np.float64, SHAPE) + noisy("f8") - 280, 0, 100)
        fields = {
            "tas": (noisy(), {"units": "K"}, {}), "u": (noisy(seed=2), {"units": "m/s"}, {}),
            "v": (noisy(seed=3), {"units": "m/s"}, {}), "big": (noisy(), {}, {"endian": "big"}),
            "holes": (np.where(hole, -999, noisy()), {}, {"fill_value": -999.0}),
            "clt": (cloud.astype("f4"), {"valid_range": np.float32([0, 100])}, {}),
            "cut": (noisy("f8"), {}, {"chunksizes": (4, 32, 32)}),
        }
        for name, (values, attributes, more) in fields.items():
            kind = f"{'>' if name == 'big' else '<'}f{values.itemsize}"
            made = ds.createVariable(name, kind, ("time", "lat", "lon"), **more)
            made.set_auto_maskandscale(False)
            made.setncatts(attributes)
            made[:] = values
        ds.createDimension("y", 110), ds.createDimension("x", 150)
        many = ds.createVariable("many", "f8", ("lat", "y", "x"), chunksizes=(17, 90, 100), fill_value=7.0)
        many.set_auto_mask(False)
        many[:] = np.cumsum(np.random.default_rng(4).normal(0, 0.1, (40, 110, 150)), axis=2)
        ds.createVariable("area", "f4", ("lat", "lon"))[:] = np.abs(np.cos(np.linspace(-1.5, 1.5, 40)))[:, None] + 0.01
        ds.createVariable("mask", "i4", ("lat", "lon"))[:] = 1
        packed = ds.createVariable("packed", "i2", ("time", "lat", "lon"))
        packed.scale_factor = 0.01
        packed[:] = noisy() - 280
        two = ds.createVariable("two", "f4", ("time", "lat", "lon"))
        two.missing_value, two[:] = np.float32([-1, -2]), noisy()
    return path


@pytest.mark.parametrize("name", ["tas", "big", "holes", "clt", "cut", "many"])
def test_the_search_has_seen_what_the_file_will_hold(name, file, tmp_path):
    """Its largest error is that of the new file, to the last bit."""
    asked = [f"--quantity=mean({name}, 0) 3e-3", f"--quantity=gradient({name}, lat) 0.3"]
    said = json.loads(h5z_gpu("advise", str(file), *asked, "--json")[0])
    h5z_gpu("repack", str(file), str(tmp_path / "out.nc"), *asked, "--verify")
    judged = json.loads(h5z_gpu("verify", str(file), str(tmp_path / "out.nc"), *asked, "--json")[0])
    (search,), held = said["quantities"], judged["quantities"]
    assert [q["largest_error"] for q in search["quantities"]] == [q["largest_error"] for q in held]
    assert all(q["held"] and q["outputs"] for q in held) and judged["held"] and 2 <= search["codings"] <= CODINGS
    bound = search["bounds"][name]
    assert f"{name}=absolute:{bound!r}" in said["commands"]["h5z-gpu"]
    assert {d["name"]: d["promise"]["bound"] for d in judged["datasets"]}[name] == bound
    with h5py.File(file) as old, h5py.File(tmp_path / "out.nc") as new:
        x, y = (f[name][()].astype(LONG) for f in (old, new))
        use = x != -999
        mean = [np.where(use, a, 0).sum(axis=0) / np.maximum(1, use.sum(axis=0)) for a in (x, y)]
        assert float(np.abs(mean[1] - mean[0]).max()) == pytest.approx(held[0]["largest_error"], rel=1e-9)
        assert (new["area"][()] == old["area"][()]).all()


def test_unnamed_weighted_and_joint_quantities(file, tmp_path):
    out = str(tmp_path / "out.nc")
    asked = ["--quantity", "mean(lat, lon, weights=area) 1e-3", "--quantity", "hypot(u, v) 0.1"]
    text, _ = h5z_gpu("repack", str(file), out, *asked, "--absolute", "0.5", "--keep", "range")
    assert "area" in text and "mean(lat, lon, weights=area) 0.001 of tas: held" in text
    with netCDF4.Dataset(file) as old, netCDF4.Dataset(out) as new:
        assert (new["area"][:] == old["area"][:]).all()
        assert "--quantity=mean(lat, lon, weights=area) 1e-3" in new.history
        w = old["area"][:].astype(LONG)
        for name in ("tas", "u", "holes", "clt", "cut"):
            x, y = (np.ma.asarray(f[name][:]).astype(LONG) for f in (old, new))
            means = [(a * w).sum(axis=(1, 2)) / np.where(np.ma.getmaskarray(x), 0, w).sum(axis=(1, 2)) for a in (x, y)]
            assert np.abs(means[1] - means[0]).max() <= 1e-3, name
            assert 0 < np.abs(y - x).max() <= 0.5
        speed = [np.hypot(f["u"][:].astype(LONG), f["v"][:].astype(LONG)) for f in (old, new)]
        assert np.abs(speed[1] - speed[0]).max() <= 0.1
    assert h5z_gpu("verify", str(file), out, *asked)[0].count(": held; largest error") == 9


def test_verify_ends_with_1_where_a_quantity_is_broken(file, tmp_path):
    out = str(tmp_path / "out.nc")
    h5z_gpu("repack", str(file), out, "--absolute", "0.5")
    text, _ = h5z_gpu("verify", str(file), out, "--quantity", "gradient(tas, lat) 0.01", status=1)
    assert "gradient(tas, lat) 0.01: BROKEN at " in text and "BROKEN in gradient(tas, lat) 0.01" in text
    with h5py.File(file) as old, h5py.File(out) as new:
        x, y = (np.gradient(f["tas"][()].astype(LONG), axis=1) for f in (old, new))
    answer = json.loads(h5z_gpu("verify", str(file), out, "--quantity=gradient(tas, lat) 0.01", "--json", status=1)[0])
    (found,) = answer["quantities"]
    error, at = np.abs(y - x), tuple(found["index"])
    assert not answer["held"] and not found["held"] and found["broken"] == np.count_nonzero(error > LONG(0.01))
    assert error[at] == error.max() and found["largest_error"] == pytest.approx(float(error.max()), rel=1e-12)
    assert (found["original"], found["became"]) == pytest.approx((float(x[at]), float(y[at])), rel=1e-9)
    assert h5z_gpu("verify", str(file), out, "--quantity", f"gradient(tas, lat) {found['largest_error'] * 1.01}")


def test_the_page_shows_the_worst_output(tmp_path):
    """The data of figures and the place of the circle are what NumPy computes; a number alone has no picture."""
    x = np.random.default_rng(5).normal(0, 1, SHAPE)
    y = x.copy()
    y[4, 20, -1] += 0.5
    texts = ("gradient(v, 2)", "mean(v, 0)", "max(v, 1, 2)", "mean(v)")
    with h5py.File(tmp_path / "a.h5", "w") as f, h5py.File(tmp_path / "b.h5", "w") as g:
        f["v"], g["v"] = x, y
    words = [word for text in texts for word in ("--quantity", f"{text} 0.1")]
    said = json.loads(use("""
import json, sys, numpy as np
from h5z_gpu.cli import main, page
figure, seen = page.figure, []
def look(drawn, alt, caption):
    axes = drawn.axes[0]
    if "(v" in alt:
        shown = axes.images[0].get_array() if axes.images else axes.lines[0].get_ydata()
        circle = [line.get_xydata().tolist()[0] for line in axes.lines if line.get_markersize() == 13]
        seen.append([alt, shown.tolist(), circle, axes.images[0].get_extent() if axes.images else []])
    return figure(drawn, alt, caption)
page.figure = look
sys.stdout, out = sys.stderr, sys.stdout
assert main(["verify", *sys.argv[1:3], "--absolute", "1", "--html", *sys.argv[3:]]) == 1
print(json.dumps(seen), file=out)
""", tmp_path / "a.h5", tmp_path / "b.h5", tmp_path / "p.html", *words).splitlines()[-1])
    seen = {alt: (np.array(shown), *more) for alt, shown, *more in said}
    for text, function, where in (
        ("gradient(v, 2)", lambda v: np.gradient(v, axis=2)[4], "slice at axis 0 4"),
        ("mean(v, 0)", lambda v: v.mean(axis=0), "the whole"),
    ):
        for what, data in (("original", x), ("reconstruction", y)):
            (shown,) = (v for alt, v in seen.items() if alt.startswith(f"Map of {text}, {what}, {where}"))
            np.testing.assert_allclose(shown[0], function(data), atol=1e-12)
        (shown,) = (v for alt, v in seen.items() if alt.startswith(f"Map of the error of {text}, {where}; colours end "
                                                                   "at the limit, 0.1"))
        np.testing.assert_allclose(shown[0], function(y) - function(x), atol=1e-12)
        assert shown[1:] == ([[49, 20]], [-0.5, 49.5, 39.5, -0.5]), shown[1:]
    lines = [v for alt, v in seen.items() if alt.startswith("max(v, 1, 2)")]
    np.testing.assert_allclose(lines[0][0], x.max(axis=(1, 2)))
    assert len(lines) == 2 and len(seen) == 8, list(seen)
    page = (tmp_path / "p.html").read_text()
    assert page.count("The circle marks the worst output.") == 3 and "<h2>mean(v) 0.1</h2>" in page
    assert "1 of 4 quantities exceed their limit" in page and "every promise is kept" not in page


def test_a_file_that_breaks_a_quantity_is_refused(file, tmp_path):
    """The verdict of `repack` on a copy that is worse than the search has seen."""
    from h5z_gpu.cli.common import Problem, open_file
    from h5z_gpu.cli.quantities import bounds_for, refuse_broken
    from h5z_gpu.quantity import parse

    h5z_gpu("repack", str(file), str(tmp_path / "worse.nc"), "--absolute", "0.5")
    asked = [parse("gradient(tas, lat) 0.01")]
    with open_file(file) as source:
        _, found = bounds_for(source, asked, {})
    with pytest.raises(Problem, match=r"thrown away: gradient\(tas, lat\) 0.01: BROKEN at \d+ of 12000 outputs"):
        refuse_broken(str(file), str(tmp_path / "worse.nc"), asked, found)


def test_a_limit_that_no_bound_keeps_is_said(file, tmp_path):
    text, _ = h5z_gpu("repack", str(file), str(tmp_path / "out.nc"), "--quantity", "max(tas) 1e-30")
    assert "tas: every bit, as no bound above the spacing of its values keeps the limit" in text
    text, _ = h5z_gpu("advise", str(file), "--quantity", "mean(tas) 0")
    assert "found: tas=lossless, as no bound keeps a limit of 0\n" in text
    assert "tas=lossless" in text.split("# h5z-gpu")[1]


def test_a_bound_of_the_user_is_the_largest(file):
    answer = json.loads(h5z_gpu("advise", str(file), "tas=absolute:1e-3", "--quantity=mean(tas) 1", "--json")[0])
    assert answer["quantities"][0]["bounds"] == {"tas": 1e-3} and answer["quantities"][0]["codings"] == 1


BAD = [
    (["--quantity", "curl(tas) 1"], "'curl' is no quantity; there are difference, gradient, laplacian"),
    (["--quantity", "mean(tas, time)"], "has no limit"), (["--quantity", "mean(tas) -1"], "the limit is -1"),
    (["--quantity", "mean(tas) nan"], "the limit is nan"), (["--quantity", "mean(tas) x"], "is no number"),
    (["--quantity", "mean(foo, time) 1"], "foo is neither a variable nor a dimension; variables are area, big, clt"),
    (["--quantity", "mean(tas, level) 1"], "level is neither"),
    (["--quantity", "hypot(u, area) 1"], "give variables of one shape"), (["--quantity", "hypot(u) 1"], "2 to 3"),
    (["--quantity", "mean(mask, lat) 1"], "mask holds integers"), (["--quantity", "mean(packed) 1"], "is packed in"),
    (["--quantity", "mean(two) 1"], "several values for missing data"),
    (["--quantity", "mean(tas, lat, weights=nowhere) 1"], "nowhere"),
    (["--quantity", "mean(tas, lat, weights=mask) 1"], "weights are floating-point numbers"),
    (["--quantity", "mean(tas, lat, weights=area) 1", "area=absolute:1"], "area are weights, which stay exact"),
    (["--quantity", "mean(tas) 1", "tas=lossless"], "tas keeps every bit"),
    (["--quantity", "mean(tas) 1", "tas=relative:1e-3"], "tas has a bound that is relative"),
    (["--quantity", ""], "is no quantity"),
]


def test_what_is_no_request_is_one_sentence(file, tmp_path):
    out, before = tmp_path / "out.nc", file.read_bytes()
    calls = [["repack", str(file), str(out), *arguments] for arguments, _ in BAD]
    for (arguments, why), (status, text, err) in zip(BAD, many(*calls)):
        assert status == 2 and not text and err.count("\n") == 1 and why in err, (arguments, err)
    h5z_gpu("repack", str(file), str(out), "tas=absolute:1e-3")
    for command in (["repack", str(out), str(tmp_path / "more.nc")], ["advise", str(out)]):
        status, text, err = cli(*command, "--quantity", "mean(tas) 1")
        assert status == 2 and "tas is lossy already, by this filter" in err and err.count("\n") == 1
    assert file.read_bytes() == before and sorted(os.listdir(tmp_path)) == ["out.nc"]


def test_a_bound_of_four_digits_is_not_above():
    rng = np.random.default_rng(1)
    for value in (*10.0 ** rng.uniform(-320, 300, 2000), 0.005, 0.1, 5e-324, 1e300):
        assert value * (1 - 1.1e-3) <= rounded_down(value) <= value or value < 1e-310
    assert rounded_down(0.005) == 0.005 and rounded_down(0) == 0 and CLOSE <= 1.25
