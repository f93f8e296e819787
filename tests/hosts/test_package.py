# SPDX-License-Identifier: MIT OR Apache-2.0
"""`Lossy` and `Lossless` of the Python package: what may be asked for, how it is said and read, and what is refused."""
import json

import h5py
import judge
import numpy as np
import pytest
from conftest import use
from samples import sample
from programs import filters, listed

VALUES = sample(shape=(8, 40, 50))
VALUES[2, 3:9, :] = -999
VALUES[1, 2, 3] = np.nan

# Every way of asking: what is typed, mode and bound of the promise, and the repr.
ASKS = {
    "Lossy(1e-3)": ("abs", 1e-3, "Lossy(absolute=0.001)"),
    "Lossy(absolute=np.float64(1e-3))": ("abs", 1e-3, "Lossy(absolute=0.001)"),
    "Lossy(1e-3, 'rel')": ("rel", 1e-3, "Lossy(relative=0.001)"),
    "Lossy(1e-3, mode='rel')": ("rel", 1e-3, "Lossy(relative=0.001)"),
    "Lossy(relative=1e-3, codec='lorenzo')": ("rel", 1e-3, "Lossy(relative=0.001, codec='lorenzo')"),
    "Lossy(bound=0.01, mode='pw_rel')": ("pw_rel", 1e-2, "Lossy(pointwise_relative=0.01)"),
    "Lossy(pointwise_relative=1e-2, codec='szx')": ("pw_rel", 1e-2, "Lossy(pointwise_relative=0.01, codec='szx')"),
    "Lossy(psnr=60)": ("psnr", 60, "Lossy(psnr=60.0)"),
    "Lossy(absolute=0.1 + 0.2, codec='planes')": ("abs", 0.1 + 0.2,
                                                  "Lossy(absolute=0.30000000000000004, codec='planes')"),
    "Lossy(absolute=1)": ("abs", 1, "Lossy(absolute=1.0)"),
    "Lossless()": ("lossless", None, "Lossless()"),
    "Lossless(codec='ndzip')": ("lossless", None, "Lossless(codec='ndzip')"),
}
HEAD = """
import copy, json, pickle, sys
import h5py, h5z_gpu, numpy as np
from h5z_gpu import Lossless, Lossy
"""


def test_each_way_of_asking_writes_what_it_promises_and_is_read_back(tmp_path):
    """Both ways of handing it to h5py. A file's words, typed ones and the repr, JSON and pickle all give back the same
    filter."""
    np.save(tmp_path / "a.npy", VALUES)
    out = use(f"""{HEAD}
a = np.load(sys.argv[1]); asks = {list(ASKS)!r}
found = []
for i, ask in enumerate(asks):
    how = eval(ask)
    with h5py.File(sys.argv[2], "a") as f:
        f.create_dataset(f"a{{i}}", data=a, chunks=(4, 40, 50), compression=how)
        f.create_dataset(f"b{{i}}", data=a, chunks=(4, 40, 50), **how)
        stored = f[f"a{{i}}"].id.get_create_plist().get_filter_by_id(443)[1]
        assert len(stored) == 15 and f[f"b{{i}}"].id.get_create_plist().get_filter_by_id(443)[1] == stored
    same = [Lossy.from_filter_options(stored), Lossless.from_filter_options(list(stored)),
            Lossy.from_filter_options(how.filter_options),
            Lossy.from_filter_options(np.array(how.filter_options, "u4")), eval(repr(how)),
            type(how)(**how.get_config()),
            type(how)(**json.loads(json.dumps(how.get_config(), allow_nan=False))), pickle.loads(pickle.dumps(how)),
            copy.deepcopy(how)]
    for other in same:
        assert other == how and hash(other) == hash(how) and type(other) is type(how) and repr(other) == repr(
            how), other
    assert how.filter_id == 443 and dict(how) == dict(compression=443, compression_opts=how.filter_options)
    found.append(repr(how))
assert len({{eval(a) for a in asks}}) == len(asks) - 2, "two pairs mean the same"
assert Lossy(1e-3) != Lossy(1e-3, "rel") and Lossy(1e-3) != Lossy(1e-3,
                                                                  codec="szx") and Lossless() != Lossy(1e-3) != None
assert Lossy.from_filter_options(()) == Lossless() and Lossy.from_filter_options((90000,)) == Lossless()
print(json.dumps(found))
""", tmp_path / "a.npy", tmp_path / "a.h5")
    assert json.loads(out) == [shown for _, _, shown in ASKS.values()]
    with h5py.File(tmp_path / "a.h5") as f:
        for i, (mode, bound, _) in enumerate(ASKS.values()):
            for x in "ab":
                chunks = np.split(VALUES, 2), np.split(f[f"{x}{i}"][...], 2)
                for got in zip(*chunks, strict=True):
                    judge.check(*got, mode, *([bound] if bound else []))


FILLS = {"-999": -999.0, "1e20": 1e20, "np.float32(-999)": -999.0, "'NaN'": np.nan, "float('inf')": np.inf}


def test_a_fill_value_reaches_hdf5_or_is_refused(tmp_path):
    """By ** it is h5py's fillvalue, in f32, big-endian f64 and behind the two other packages that take h5py's words."""
    np.save(tmp_path / "a.npy", VALUES)
    out = use(f"""{HEAD}
import h5netcdf, xarray
a = np.load(sys.argv[1])
for i, text in enumerate({list(FILLS)!r}):
    how = eval(f"Lossy(absolute=1e-3, codec='lorenzo', fill_value={{text}})")
    for other in (eval(repr(how), {{"Lossy": Lossy, "nan": np.nan}}), Lossy(**how.get_config()),
                  pickle.loads(pickle.dumps(how)), Lossy(**json.loads(json.dumps(how.get_config(), allow_nan=False)))):
        assert other == how and hash(other) == hash(how), other
    assert how != Lossy(absolute=1e-3, codec="lorenzo") and how != Lossy(absolute=1e-3, codec="lorenzo", fill_value=5)
    with h5py.File(sys.argv[2], "a") as f:
        for kind in ("<f4", ">f8"):
            f.create_dataset(f"{{kind[1:]}} {{i}}", data=a.astype(kind), chunks=a.shape, **how)
            stored = f[f"{{kind[1:]}} {{i}}"].id.get_create_plist().get_filter_by_id(443)[1]
            again = Lossy.from_filter_options(stored)
            assert np.float32(again.fill_value).tobytes() == np.float32(how.fill_value).tobytes(), again
        for lost in (lambda: f.create_dataset("x", data=a, compression=how), lambda: how.filter_options):
            try: lost()
            except ValueError as e: print(e)
            else: raise AssertionError("the fill value is lost")
        assert "x" not in f
how = Lossy(absolute=1e-3, fill_value=-999)
with h5netcdf.File(sys.argv[2] + ".nc", "w") as f:
    f.dimensions = dict(zip("xyz", a.shape))
    f.create_variable("v", ("x", "y", "z"), data=a, **how)
ds = xarray.Dataset({{"v": (("x", "y", "z"), a)}})
try: ds.to_netcdf(sys.argv[2] + ".no.nc", engine="h5netcdf", encoding={{"v": {{"compression": how}}}})
except ValueError as e: print(e)
else: raise AssertionError("the fill value is lost")
""", tmp_path / "a.npy", tmp_path / "a.h5")
    assert out.count("would be lost") == len(out.splitlines()) == 2 * len(FILLS) + 1
    # What the sentence says to type is typed.
    lines = out.splitlines()
    assert "**Lossy(absolute=0.001, codec='lorenzo', fill_value=-999)" in lines[0], lines[0]
    assert "compression=Lossy(absolute=0.001, codec='lorenzo') and fillvalue=-999 (h5py" in lines[0], lines[0]
    with h5py.File(tmp_path / "a.h5") as f:
        for i, fill in enumerate(FILLS.values()):
            for kind in ("f4", "f8"):
                d = f[f"{kind} {i}"]
                assert np.array_equal(d.fillvalue, np.array(fill, kind), equal_nan=True)
                judge.check(VALUES.astype(kind), d[...].astype(kind), "abs", 1e-3)
        assert np.all(f["f4 0"][2, 3:9] == -999), "the fill value comes back bit for bit"
    with h5py.File(tmp_path / "a.h5.nc") as f:
        assert f["v"].fillvalue == -999 == f["v"].attrs["_FillValue"][0] and np.all(f["v"][2, 3:9] == -999)
        assert listed(filters(tmp_path / "a.h5.nc", "v")[0][2])[0] == 11003


def test_the_fill_value_of_an_array():
    """A relative bound that missing values would stretch to uselessness."""
    use(f"""{HEAD}
a = (280 + np.sin(np.arange(60000) * 0.01)).astype("f4").reshape(30, 40, 50)
hole = a.copy(); hole[3:9] = 1e20
read = lambda frame, like: h5z_gpu.decompress(frame, like.dtype, like.shape)
how = Lossy(relative=1e-3, fill_value=1e20)
for back in (read(h5z_gpu.compress(hole, how), hole), read(h5z_gpu.compress(hole, Lossy(relative=1e-3), fill=1e20),
                                                           hole)):
    assert (back[3:9] == hole[3:9]).all() and 0 < np.abs(back - a)[:3].max() <= 2e-3
assert np.abs(read(h5z_gpu.compress(hole, Lossy(relative=1e-3)),
                   hole) - a)[:3].max() > 200, "the fill value matters here"
other = read(h5z_gpu.compress(hole, how, fill=5), hole)
assert np.abs(other - a)[:3].max() > 200, "fill= stands before the one in how"
ints = np.arange(1000)
assert (read(h5z_gpu.compress(ints, Lossy(1.0, fill_value=1.5)), ints) == ints).all()
""")


WRONG = {
    "Lossy()": (ValueError, "give one, such as Lossy(absolute=1e-3), or keep every bit with Lossless()"),
    "Lossy(1e-3, relative=1e-3)": (ValueError, "two bounds, 0.001 and relative; give one"),
    "Lossy(absolute=1, psnr=60)": (ValueError, "several bounds, absolute and psnr; give one"),
    "Lossy(mode='rel')": (ValueError, "mode='rel' without a bound; give both, such as Lossy(1e-3, 'rel')"),
    "Lossy(absolute=1, mode='rel')": (ValueError, "give both"),
    "Lossy(1e-3, 'most')": (ValueError, "mode 'most'; allowed are abs, rel, pw_rel, psnr"),
    "Lossy(0, 'lossless')": (ValueError, "Lossless() keeps every bit"),
    "Lossy(-1)": (ValueError, "allowed is a finite number above 0"),
    "Lossy(absolute=0)": (ValueError, "allowed is a finite number above 0"),
    "Lossy(absolute=float('nan'))": (ValueError, "allowed is a finite number above 0"),
    "Lossy(absolute=float('inf'))": (ValueError, "allowed is a finite number above 0"),
    "Lossy(relative=1)": (ValueError, "allowed is a number above 0 and below 1"),
    "Lossy('1e-3')": (TypeError, "absolute = '1e-3' is no number; give one such as 1e-3"),
    "Lossy(absolute=True)": (TypeError, "give one such as 1e-3"),
    "Lossy(absolute=None)": (ValueError, "give one"),
    "Lossy(abs=1e-3)": (TypeError, "Lossy has no abs; it has absolute, relative, pointwise_relative, psnr, codec, "
                        "keep, fill_value"),
    "Lossy(1, codec='zip')": (ValueError, "allowed are auto, szx, lorenzo"),
    "Lossy(1, codec='ndzip')": (ValueError, "ndzip is lossless"),
    "Lossy(1, codec='szx,mode=rel')": (ValueError, "give a name alone"),
    "Lossy(1, codec=5)": (TypeError, "give a name such as 'lorenzo'"),
    "Lossy(pointwise_relative=0.1, codec='planes')": (ValueError, "use szx (C = 1) or lorenzo"),
    "Lossy(1, fill_value='none')": (TypeError, "fill_value = 'none' is no number"),
    "Lossy(1, 'abs', 'szx')": (TypeError, "positional"),
    "Lossless('szx')": (ValueError, "szx is lossy and needs a bound"),
    "Lossless(absolute=1)": (TypeError, "a bound belongs to Lossy(absolute=1e-3)"),
    "Lossless(codec=None)": (TypeError, "give a name"),
    "Lossy.from_filter_options((0,))": (ValueError, "absolute 1e-3 is 11003"),
    "Lossy.from_filter_options(11003)": (TypeError, "give a sequence of whole numbers, such as (11003,)"),
    "Lossy.from_filter_options('11003')": (TypeError, "give a sequence"),
    "Lossy.from_filter_options((1e-3,))": (TypeError, "words are whole numbers, such as 11003 for 0.001"),
    "Lossy.from_filter_options((-1,))": (ValueError, "each is from 0 to 4294967295"),
    "Lossy.from_filter_options((11003, 1))": (ValueError, "give none (lossless), one number"),
    "Lossy.from_filter_options(STORED)": (ValueError, "a word was changed"),
}


def test_wrong_asks_are_refused_with_what_to_do():
    out = use(f"""{HEAD}
STORED = [4055948803, 50331918, 386416705, 33751825, 3539053052, 1062232653, 0, 1621981420, 0, 111003, 4038455941, 4,
          32, 90000]
assert repr(
    Lossy.from_filter_options(STORED)) == "Lossy(absolute=0.001, codec='szx', fill_value=1.0000000200408773e+20)"
STORED[5] += 1
for ask in {list(WRONG)!r}:
    try: eval(ask)
    except (TypeError, ValueError) as e: print(type(e).__name__, e)
    else: print("accepted")
""")
    for (ask, (kind, part)), line in zip(WRONG.items(), out.splitlines(), strict=True):
        assert line.startswith(f"{kind.__name__} ") and part in line, (ask, line)
        assert "h5z-gpu:" in line or "positional" in line, line


@pytest.mark.parametrize("module", ["arrays", "filters", "library", "netcdf", "xarray", "chunks", "packing", "dask",
                                    "register", "datasets", "parallel", "views"])
def test_every_public_function_tells_its_types(module):
    use(f"""
import importlib, inspect, typing
module = importlib.import_module("h5z_gpu.{module}")
seen = 0
for name, thing in vars(module).items():
    if name.startswith("_") or getattr(thing, "__module__", "") != module.__name__:
        continue
    public = [m for n, m in vars(thing).items() if not n.startswith("_")
              or n == "__init__"] if inspect.isclass(thing) else [thing]
    for f in public:
        f = getattr(f, "fget", None) or getattr(f, "__func__", f)
        if inspect.isfunction(f):
            missing = set(inspect.signature(f).parameters) - {{"self", "cls"}} - set(f.__annotations__)
            assert not missing and "return" in f.__annotations__, (f, missing)
            seen += 1
assert seen
""")
