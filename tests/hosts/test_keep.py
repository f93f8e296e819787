# SPDX-License-Identifier: MIT OR Apache-2.0
"""Signs, zeros and ranges that are kept beside a bound, through every door: real programs write, and a rule of the
tests' own judges what comes back."""
import json
import struct

import h5py
import judge
import netCDF4
import numpy as np
from cli import many, refused
from conftest import BUILT, PLUGIN, clean, python, run, sample, use
from programs import plain_hdf5, plain_netcdf
from test_numcodecs import READ, WRITE

HEAD = """
import itertools, json, pickle, struct, sys, h5py, judge, numpy as np, h5z_gpu
from pathlib import Path
from samples import sample
from h5z_gpu import Lossless, Lossy, modes
from h5z_gpu.stored_words import is_list, meaning

SETS = [names for n in (1, 2, 3) for names in itertools.combinations(("sign", "zero", "range"), n)]
BIT = {"sign": 1, "zero": 2, "range": 4}
BOUNDS = {"absolute": (1, 0.05), "relative": (2, 0.01), "psnr": (4, 40.0)}

def refused(call, *parts, error=ValueError):
    try:
        call()
    except error as e:
        assert str(e).startswith("h5z-gpu: ") and all(p in str(e) for p in parts), e
    else:
        raise AssertionError("accepted")
"""


def field(kind, shape=(8, 24, 20)):
    """Values of both signs, many of them next to zero or at the ends, zeros of both signs, and special ones."""
    x = np.clip(sample("f8", shape) / 10, -1.25, 1.0)
    x[np.abs(x) < 0.02] *= 0.01
    x[:, 3] = 0
    x[:, 4, ::2] = -0.0
    x[2, 5, :4] = np.nan, np.inf, -np.inf, 7
    return x.astype(kind)


def four(bound, keep, mode=1, codec=0):
    """The words of a bound and of bits of what is kept."""
    return (10 * codec + mode, *struct.unpack("<II", struct.pack("<d", bound)), keep)


def use_here(code, *args):
    return use(HEAD + code, *args)


def test_every_subset_bound_codec_and_type_through_h5py(tmp_path):
    """By words and by Lossy, which are the same; without `keep` these fields break every promise."""
    np.savez(tmp_path / "x.npz", **{str(k): field(t) for k, t in enumerate(("<f4", "<f8", "<f2", ">f4", ">f8"))})
    use_here("""
fields, CHUNK = dict(np.load(sys.argv[1])), (8, 12, 20)
codecs = {"auto": 0, "szx": 1, "lorenzo": 2, "planes": 5, "fast": 8, "small": 9}
broken = set()
with h5py.File("x", "w", driver="core", backing_store=False, rdcc_nbytes=0) as f:
    jobs = itertools.product(fields.values(), codecs, BOUNDS.items(), [(), *SETS], (None, 7))
    for k, (x, codec, (keyword, (mode, bound)), names, fill) in enumerate(jobs):
        how = Lossy(**{keyword: bound}, codec=codec, keep=names)
        if names:
            low, high = struct.unpack("<II", struct.pack("<d", bound))
            words = (codecs[codec] * 10 + mode, low, high, sum(BIT[n] for n in names))
            assert how.words == words and not is_list(words), how
        more = {"compression": how} if k % 2 else {"compression": 443, "compression_opts": how.words}
        d = f.create_dataset(str(k), data=x, chunks=CHUNK, fillvalue=fill, **more)
        y = d[...]
        judge.check_chunks(x, y, CHUNK, how.mode.name, bound, fill)
        for part in judge.chunks(x.shape, CHUNK):
            if names:
                judge.kept(x[part], y[part], names, fill)
                continue
            for name in BIT:
                try:
                    judge.kept(x[part], y[part], [name], fill)
                except AssertionError:
                    broken.add((codec, name))
        said = meaning(d.id.get_create_plist().get_filter(0)[2])
        assert is_list(d.id.get_create_plist().get_filter(0)[2])
        assert (said.keep, said.codec, said.bound, said.stored.may_lose) == (names, codec, bound, True)
        assert not names or f"keep={'+'.join(names)}" in said.text
assert {n for c, n in broken} == set(BIT) and {c for c, n in broken} == set(codecs), broken
# The values of `write` are those of the filter.
x = fields["0"]
with h5py.File("y", "w", driver="core", backing_store=False) as f:
    for names in SETS:
        how = {"chunks": CHUNK, "compression": Lossy(absolute=0.05, keep=names)}
        f.create_dataset("d", data=x, **how)
        h5z_gpu.write(f.create_dataset("e", x.shape, x.dtype, **how), x, progress=False)
        assert f["d"].id.read_direct_chunk((0, 0, 0)) == f["e"].id.read_direct_chunk((0, 0, 0))
        del f["d"], f["e"]
""", tmp_path / "x.npz")


def test_what_lossy_says_of_it():
    use_here("""
for given in ("sign+range", "range,sign", " sign + range ", ("range", "sign"), ["sign", "range", "sign"],
              {"sign", "range"}, iter(("sign", "range"))):
    how = Lossy(absolute=1e-3, codec="szx", keep=given)
    assert how == Lossy(1e-3, codec="szx", keep="range+sign") and how.keep == ("sign", "range"), given
assert repr(how) == "Lossy(absolute=0.001, codec='szx', keep='sign+range')" and eval(repr(how)) == how
assert how.get_config() == {"absolute": 0.001, "codec": "szx", "keep": "sign+range"}
assert Lossy(**json.loads(json.dumps(how.get_config()))) == how == pickle.loads(pickle.dumps(how))
assert how != Lossy(absolute=1e-3, codec="szx") and how != Lossy(absolute=1e-3, codec="szx", keep="sign")
assert hash(how) == hash(Lossy(absolute=1e-3, codec="szx", keep=("range", "sign")))
assert Lossy.from_filter_options(how.words) == how and len(how.words) == len(how.filter_options) == 4
for nothing in (None, "", " ", (), []):
    assert Lossy(absolute=1e-3, keep=nothing) == Lossy(absolute=1e-3) and Lossy(1e-3, keep=nothing).words == (11003,)
assert Lossy(1e-3).keep == Lossless().keep == () and "keep" not in Lossy(1e-3).get_config()
whole = Lossy(relative=1e-3, of="dataset", keep="range").for_array(np.array([0.0, 2.0]))
assert (whole.keep, whole.bound) == (("range",), 0.002)
with_fill = Lossy(1e-3, keep="zero", fill_value=-9)
assert eval(repr(with_fill)) == with_fill and with_fill._with(fill_value=None).keep == ("zero",)
for wrong, part in (("signs", "allowed are sign, zero, range"), ("sign+", "allowed are"),
                    (("zero", "ranges"), "'ranges'"), ("sign-zero", "allowed are")):
    refused(lambda: Lossy(1e-3, keep=wrong), part)
for wrong in (1, True, b"sign", 1.5, (1,), ("sign", None)):
    refused(lambda: Lossy(1e-3, keep=wrong), "such as keep='sign", error=TypeError)
refused(lambda: Lossy(pointwise_relative=1e-3, keep="sign"), "signs and zeros stay by themselves")
refused(lambda: Lossless(keep="sign"), "Lossless has no keep", error=TypeError)
for words, part in (((3, 0, 1071644672, 1), "by themselves"), ((9, 0, 0, 4), "lossless keeps every bit"),
                    ((1, 0, 1071644672, 8), "allowed is a sum of")):
    refused(lambda: Lossy.from_filter_options(words), part)
assert list(modes.keeps()) == list(BIT) and {k: v.bit for k, v in modes.keeps().items()} == BIT
assert [m.name for m in modes.all_modes() if m.takes_keep] == ["abs", "rel", "psnr"]
""")


def test_a_plan_of_h5py_with_wrong_words_is_refused(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as f:
        for words, part in ((four(0.5, 8), "a sum of 1 sign"), (four(0.5, 1, 3), "by themselves"),
                            (four(0, 1, 9), "keeps every bit")):
            try:
                f.create_dataset("v", data=np.ones(9), chunks=(9,), compression=443, compression_opts=words)
            except ValueError as e:
                assert part in str(e), e
            else:
                raise AssertionError(words)


def checked(path, x, names, bound=0.05, name="v"):
    """Judges a dataset of a file, and that something was lost."""
    with h5py.File(path) as f:
        y, chunk = f[name][...], f[name].chunks
        assert f[name].id.get_create_plist().get_filter(0)[2][3] >> 8 & 28 == sum(
            {"sign": 4, "zero": 8, "range": 16}[n] for n in names)
    assert 0 < judge.check_chunks(x, y, chunk, "abs", bound) <= 1
    for part in judge.chunks(x.shape, chunk):
        judge.kept(x[part], y[part], names)


def test_h5repack_nccopy_ncgen_and_the_program_that_says_their_words(tmp_path):
    """Lines of `h5z-gpu words`, and words given back to it."""
    x, program = field("f4"), BUILT / "bin/h5z-gpu"
    plain_hdf5({"v": x}, tmp_path / "in.h5", {"v": (8, 12, 20)})
    plain_netcdf({"v": x}, tmp_path / "in.nc")
    ask = ("words", "abs", "0.05", "--keep", "sign,zero,range")
    words = ",".join(map(str, four(0.05, 7)))
    run("h5repack", "-l", "v:CHUNK=8x12x20", "-f", f"v:UD=443,1,4,{words}", tmp_path / "in.h5", tmp_path / "a.h5")
    checked(tmp_path / "a.h5", x, ("sign", "zero", "range"))
    assert words in run(program, *ask, "--tool", "h5repack")
    run("nccopy", "-4", "-F", f"v,443,{words}", tmp_path / "in.nc", tmp_path / "b.nc")
    checked(tmp_path / "b.nc", x, ("sign", "zero", "range"))
    line = run(program, *ask, "--tool", "nccopy").strip()
    assert "'v,443,1,5e-2d,7'" in line, line
    run("sh", "-ec", line, cwd=tmp_path)
    checked(tmp_path / "out.nc", x, ("sign", "zero", "range"))
    z = x[3]
    numbers = ", ".join(f"{float(v):.9e}f" for v in z.flat)
    (tmp_path / "in.cdl").write_text(f"""netcdf a {{
dimensions: x = {z.size} ;
variables: float v(x) ; v:_Storage = "chunked" ; v:_ChunkSizes = {z.size} ; v:_Filter = "443,1,0.05d,3" ;
data: v = {numbers} ; }}""")
    run("ncgen", "-4", "-o", tmp_path / "c.nc", tmp_path / "in.cdl")
    with h5py.File(tmp_path / "c.nc") as f:
        checked(tmp_path / "c.nc", z.reshape(-1), ("sign", "zero"))
        stored = f["v"].id.get_create_plist().get_filter(0)[2]
    said = run(program, "words", ",".join(map(str, stored)))
    assert "; signs and zeros are kept" in said and "keep=sign+zero" in said and "several words" in said, said
    told = json.loads(run(program, "words", "abs", "0.05", "--keep", "zero", "--json",
                          env=clean(H5Z_GPU_PLUGIN_PATH=str(PLUGIN.parent))))
    assert told["keep"] == ["zero"] and told["words"] == list(four(0.05, 2)), told
    assert "four" in run(program, *ask, "--tool", "ncks", ok=False)


def test_nczarr_and_numcodecs_read_one_configuration(tmp_path):
    """NCZarr writes what is kept as text, which numcodecs reads and writes as well."""
    x = field("f4", (5, 32, 40))
    np.save(tmp_path / "x.npy", x)
    python(WRITE, tmp_path / "a.zarr", tmp_path / "x.npy", *four(0.05, 5))
    meta = json.loads((tmp_path / "a.zarr/v/.zarray").read_text())
    mine = {"id": "h5z-gpu", "mode": "abs", "bound": 0.05, "keep": "sign+range"}
    assert mine in [meta["compressor"], *(meta["filters"] or [])], meta
    python(READ, tmp_path / "a.zarr", tmp_path / "y.npy")
    y = np.load(tmp_path / "y.npy")
    judge.check_chunks(x, y, (5, 16, 20), "abs", 0.05)
    for part in judge.chunks(x.shape, (5, 16, 20)):
        judge.kept(x[part], y[part], ("sign", "range"), netCDF4.default_fillvals["f4"])
    use_here("""
import numcodecs, h5z_gpu.numcodecs
config = json.loads(sys.argv[1])
codec = numcodecs.get_codec(config)
assert codec.get_config() == config and codec.keep == ("sign", "range"), codec
assert codec == h5z_gpu.numcodecs.Compressor(Lossy(0.05, keep=("range", "sign")))
refused(lambda: numcodecs.get_codec({**config, "keep": "signs"}), "allowed are")
refused(lambda: numcodecs.get_codec({**config, "mode": "lossless", "bound": None}), "keeps every bit")
x = np.load(sys.argv[2])[0]
for names in SETS:
    codec = h5z_gpu.numcodecs.Compressor(mode="abs", bound=0.05, keep=names)
    y = np.frombuffer(codec.decode(codec.encode(x)), x.dtype).reshape(x.shape)
    assert 0 < judge.check(x, y, "abs", 0.05)
    judge.kept(x, y, names)
""", json.dumps(mine), tmp_path / "x.npy")


def test_zarr_3_keeps_it_in_the_configuration(tmp_path):
    np.save(tmp_path / "x.npy", field("f8", (6, 32, 40)))
    use_here("""
import zarr
from h5z_gpu.zarr import Serializer
x = np.load(sys.argv[1])
for names in SETS:
    where = Path(sys.argv[2]) / "+".join(names)
    how = Serializer(Lossy(absolute=0.05, keep=names))
    assert how == Serializer(mode="absolute", bound=0.05, keep="+".join(names)) != Serializer(Lossy(0.05))
    zarr.create_array(where, shape=x.shape, dtype=x.dtype, chunks=(3, 16, 40), fill_value=7, serializer=how,
                      compressors=None)[...] = x
    said = json.loads((where / "zarr.json").read_text())["codecs"][0]
    assert said["configuration"] == {"mode": "absolute", "bound": 0.05, "codec": "auto", "keep": "+".join(names)}
    assert Serializer.from_dict(said) == how
    y = zarr.open_array(where)[...]
    for part in judge.chunks(x.shape, (3, 16, 40)):
        assert 0 < judge.check(x[part], y[part], "abs", 0.05, 7)
        judge.kept(x[part], y[part], names, 7)
assert "keep" not in Serializer(Lossy(0.05)).to_dict()["configuration"]
refused(lambda: Serializer(mode="absolute", bound=0.05, keep="signs"), "allowed are sign, zero, range")
refused(lambda: Serializer(Lossy(0.05), keep="sign"), "is said already", error=TypeError)
""", tmp_path / "x.npy", tmp_path)


def copied(tmp, changes, **how):
    """A file written with a bound, and a plain copy of what came back with some values changed."""
    x = field("f4")
    with h5py.File(tmp / "x.h5", "w") as f:
        f["v"] = x
    use_here("""
x = h5py.File(sys.argv[1])["v"][...]
with h5py.File(sys.argv[2], "w") as f:
    f.create_dataset("v", data=x, chunks=(8, 12, 20), compression=Lossy(**json.loads(sys.argv[3])))
    f.create_dataset("bad", data=x, chunks=(8, 12, 20), compression=Lossy(**json.loads(sys.argv[3])))
    # Frames of a bound alone in a dataset that promises more: a writer that broke its word.
    g = f.create_dataset("loose", data=x, chunks=(8, 12, 20), compression=Lossy(absolute=0.05, codec="szx"))
    for at in ((0, 0, 0), (0, 12, 0)):
        f["bad"].id.write_direct_chunk(at, g.id.read_direct_chunk(at)[1])
    del f["loose"]
""", tmp / "x.h5", tmp / "y.h5", json.dumps(how))
    with h5py.File(tmp / "x.h5", "a") as f, h5py.File(tmp / "y.h5", "a") as g:
        f["bad"] = x
        y = g["v"][...]
        for at, value in changes.items():
            y[at] = value
        f["plain"], g["plain"] = x, y
    return x


def test_verify_says_which_promise_was_broken(tmp_path):
    """Within the bound all the while: a changed sign, a zero, a value beyond the range, and a broken word in a file."""
    x = field("f4")
    positive = np.argwhere((x > 0) & (x < 0.001))[0]
    top = np.argwhere(x[:, :12] == x[:, :12][np.isfinite(x[:, :12]) & (x[:, :12] != 7)].max())[0]
    changes = {tuple(positive): -x[tuple(positive)], (1, 3, 5): 1e-3, tuple(top): x[tuple(top)] + np.float32(0.01)}
    copied(tmp_path, changes, absolute=0.05, keep="sign+zero+range")
    a, b = tmp_path / "x.h5", tmp_path / "y.h5"
    verify = ["verify", a, b]
    good, bad, given, looser, page, data = many(
        [*verify, "--dataset", "v"],
        [*verify, "--dataset", "bad"],
        [*verify, "--dataset", "plain", "plain=absolute:0.05:sign+zero"],
        [*verify, "--dataset", "plain", "--absolute", "0.05", "--keep", "zero"],
        [*verify, "--dataset", "bad", "--html", tmp_path / "page.html"],
        [*verify, "--dataset", "bad", "--dataset", "v", "--json"],
    )
    assert good[0] == 0 and "within 0.05 (absolute), signs, zeros and the range of each chunk kept: held" in good[1]
    assert bad[0] == 1 and "BROKEN for" in bad[1] and "sign: " in bad[1] and "range: " in bad[1], bad
    assert given[0] == 1 and "BROKEN for 2 values (sign: 2, zero: 1)" in given[1], given
    assert looser[0] == 1 and "BROKEN for 1 value (zero: 1); the first, at [1, 3, 5]" in looser[1], looser
    assert page[0] == 1 and "signs, zeros and the range of each chunk kept" in (tmp_path / "page.html").read_text()
    told = {each["name"]: each for each in json.loads(data[1])["datasets"]}
    assert told["v"]["promise"]["keep"] == ["sign", "zero", "range"] and told["v"]["held"]
    assert told["v"]["kept_broken"] == {"sign": 0, "zero": 0, "range": 0}
    assert not told["bad"]["held"] and told["bad"]["kept_broken"]["sign"] > 0, told["bad"]
    assert told["bad"]["largest_over_bound"] <= 1
    with h5py.File(b) as f:
        y = f["bad"][...]
    n = 0
    for part in judge.chunks(x.shape, (8, 12, 20)):
        u, v = x[part], y[part]
        n += int(np.count_nonzero((np.sign(u) != np.sign(v)) & np.isfinite(u)))
    assert told["bad"]["kept_broken"]["sign"] == n
    for text, part in zip(refused(
        [*verify, "--absolute", "0.05", "--keep", "signs"], [*verify, "--keep", "sign"],
        [*verify, "plain=absolute:0.05:"], [*verify, "plain=absolute:0.05:none"],
        [*verify, "plain=pointwise_relative:0.05:sign"], [*verify, "--pointwise-relative", "0.05", "--keep", "sign"],
        [*verify, "plain=lossless:sign"],
    ), ("allowed are sign, zero, range", "without a bound", "nothing is named", "allowed are", "by themselves",
        "by themselves", "names no bound")):
        assert part in text, text


def percent(path):
    """Values at both ends of what is valid, and a variable of rain with many zeros."""
    x = np.clip(sample("f4", (6, 48, 64)) * 6 + 50, 0, 100)
    rain = np.maximum(sample("f4", (6, 48, 64)) / 100, 0)
    with netCDF4.Dataset(path, "w") as f:
        for name, n in zip("tyx", x.shape):
            f.createDimension(name, n)
        for name, values in (("clt", x), ("pr", rain)):
            v = f.createVariable(name, "f4", tuple("tyx"), chunksizes=(6, 48, 64), fill_value=False)
            v[:] = values
        f["clt"].valid_range = np.float32([0, 100])
        f["pr"].valid_min = np.float32(0)
    return x, rain


def test_repack_keeps_it_and_says_so(tmp_path):
    """With the range kept nothing that is valid becomes invalid, and no chunk has to be encoded twice."""
    x, rain = percent(tmp_path / "a.nc")
    a, out = tmp_path / "a.nc", [tmp_path / f"{k}.nc" for k in range(6)]
    # Verified by the package itself, too.
    alone, ranged, named, proposed, said, advice = many(
        ["repack", a, out[0], "--absolute", "0.05", "--verify"],
        ["repack", a, out[1], "--absolute", "0.05", "--keep", "range", "--verify"],
        ["repack", a, out[2], "clt=absolute:0.05:range", "pr=absolute:0.001:zero+sign", "--verify"],
        ["repack", a, out[3], "--advise", "--keep", "sign,range", "--verify"],
        ["inspect", out[2], "--json"],
        ["advise", a, "--keep", "range"],
    )
    assert all(answer[0] == 0 for answer in (alone, ranged, named, proposed, said, advice)), (ranged, named, proposed)
    assert "encoded again" in alone[1] and "encoded again" not in ranged[1], (alone[1], ranged[1])
    for path, names in ((out[1], ("range",)), (out[2], ("range",)), (out[3], ("sign", "range"))):
        with netCDF4.Dataset(path) as f:
            assert not np.ma.getmaskarray(f["clt"][:]).any(), path
            assert f["clt"].lossy_compression_keep == "+".join(names)
            assert "the range of each chunk kept, codec" in f["clt"].lossy_compression, f["clt"].lossy_compression
            y = f["clt"][:].data
        with h5py.File(path) as f:
            assert f["clt"].id.get_storage_size() < x.nbytes / 3
            judge.kept(x.reshape(f["clt"].shape), y, names)
    with netCDF4.Dataset(out[2]) as f:
        y = f["pr"][:].data
        judge.kept(rain, y, ("sign", "zero"))
        assert f["pr"].lossy_compression_keep == "sign+zero"
    found = json.loads(said[1])
    told = {d["name"].strip("/"): d for d in found["objects"]}
    assert told["pr"]["asked"]["keep"] == ["sign", "zero"] and "signs and zeros kept" in told["pr"]["promise"]
    assert ":range" in advice[1] or "--keep" in advice[1], advice[1]
    with netCDF4.Dataset(out[0]) as f:
        assert "lossy_compression_keep" not in f["clt"].ncattrs()
    texts = refused(
        ["repack", a, tmp_path / "no.nc", "--lossless", "--keep", "sign"],
        ["repack", a, tmp_path / "no.nc", "--absolute", "1e-3", "--keep", "size"],
        ["repack", a, tmp_path / "no.nc", "clt=psnr:60:ranges"],
        ["repack", a, tmp_path / "no.nc", "--pointwise-relative", "1e-3", "--keep", "sign"],
        ["advise", a, "--keep", "size"],
    )
    for text, part in zip(texts, ("without a bound for all", "allowed are", "allowed are", "by themselves",
                                  "allowed are")):
        assert part in text, text


def test_chunks_that_are_encoded_again_keep_it_too(tmp_path):
    """Values next to zero cross `valid_min`. To pull them back by the bound would make them negative."""
    values = {}
    with netCDF4.Dataset(tmp_path / "a.nc", "w") as f:
        for name, n in zip("tyx", (4, 32, 64)):
            f.createDimension(name, n)
        for name, high in (("near", 0.003), ("far", 0.08)):
            x = values[name] = np.random.default_rng(0).uniform(0.0002, high, (4, 32, 64)).astype("f4")
            x[:, ::5] += 1
            v = f.createVariable(name, "f4", tuple("tyx"), fill_value=False, chunksizes=x.shape)
            v[:] = x
            v.valid_min = np.float32(high / 2)
    (status, out, err), = many(["repack", tmp_path / "a.nc", tmp_path / "b.nc", "--absolute", "0.05", "--keep", "sign",
                                "--codec", "szx"])
    assert status == 0 and "(1 without loss), so that valid values" in out, out + err
    with netCDF4.Dataset(tmp_path / "b.nc") as f:
        for name, x in values.items():
            y = f[name][:]
            assert (np.ma.getmaskarray(y) == (x < f[name].valid_min)).all()
            judge.check(x, y.data, "abs", 0.05)
            judge.kept(x, y.data, ["sign"])


def test_unpacked_values_are_judged_by_their_bound_alone(tmp_path):
    """Readers round each file's values in their own way: verify says that it leaves signs out."""
    with netCDF4.Dataset(tmp_path / "a.nc", "w") as f:
        for name, n in zip("tyx", (4, 32, 64)):
            f.createDimension(name, n)
        v = f.createVariable("v", "i2", tuple("tyx"), fill_value=-32768)
        v.scale_factor = 0.01
        v[:] = sample("f4", (4, 32, 64))
    repacked, verified = many(
        ["repack", tmp_path / "a.nc", tmp_path / "b.nc", "--unpack", "--keep", "sign", "--verify"],
        ["verify", tmp_path / "a.nc", tmp_path / "b.nc"],
    )
    assert repacked[0] == 0 and "within 0.005 (absolute), signs kept" in repacked[1], repacked
    assert verified[0] == 0 and "not judged of unpacked values: signs kept" in verified[1], verified
    with h5py.File(tmp_path / "a.nc") as f, h5py.File(tmp_path / "b.nc") as g:
        x = f["v"][...] * np.float32(0.01)
        judge.kept(x.astype(g["v"].dtype), g["v"][...], ["sign"])


def test_packages_hand_it_on(tmp_path):
    """save, h5netcdf, netCDF4's def_filter and xarray, which writes again what it has read; the attributes follow."""
    np.save(tmp_path / "x.npy", field("f4"))
    use_here("""
import netCDF4, xarray, h5netcdf, h5z_gpu.netcdf, h5z_gpu.xarray
from h5z_gpu import provenance
x, tmp = np.load(sys.argv[1]), Path(sys.argv[2])
how = Lossy(absolute=0.05, keep="sign+range")
h5z_gpu.save(tmp / "a.h5", {"v": x}, absolute=0.05, keep="sign+range")
with h5py.File(tmp / "a.h5", "a") as f:
    assert Lossy.from_filter_options(f["v"].id.get_create_plist().get_filter(0)[2]) == how
    said = f["v"].attrs["lossy_compression"].decode()
    assert "within 0.05 (absolute), signs and the range of each chunk kept, codec auto; NaN" in said, said
    assert f["v"].attrs["lossy_compression_keep"].decode() == "sign+range" and provenance.is_ours(f["v"].attrs)
    # Said already: a write leaves it. Another promise replaces it.
    before = f["v"].attrs["lossy_compression"]
    h5z_gpu.write(f["v"], x, progress=False)
    assert f["v"].attrs["lossy_compression"] == before and provenance._says(f["v"], how)
    assert not provenance._says(f["v"], Lossy(absolute=0.05)) and not provenance._says(f["v"], Lossy(0.05, keep="sign"))
    w = f.create_dataset("w", data=x, chunks=x.shape, compression=Lossy(absolute=0.05))
    w.attrs["lossy_compression_keep"] = "sign"
    provenance.on_dataset(w)
    assert "lossy_compression_keep" not in w.attrs and provenance._says(w, Lossy(0.05))
with netCDF4.Dataset(tmp / "b.nc", "w") as f:
    for name, n in zip("tyx", x.shape):
        f.createDimension(name, n)
    v = f.createVariable("v", "f4", tuple("tyx"), fill_value=False)
    h5z_gpu.netcdf.def_filter(v, how)
    v[:] = x
    assert h5z_gpu.netcdf.filter_of(v).keep == how.keep and v.lossy_compression_keep == "sign+range"
ds = xarray.Dataset({"v": (tuple("tyx"), x)})
for engine in ("netcdf4", "h5netcdf"):
    h5z_gpu.xarray.to_netcdf(ds, tmp / "c.nc", how, engine=engine)
    with xarray.open_dataset(tmp / "c.nc", engine="h5z_gpu") as again:
        h5z_gpu.xarray.to_netcdf(again.load(), tmp / "d.nc", engine=engine)
    for name in "cd":
        with h5py.File(tmp / f"{name}.nc") as f:
            found = Lossy.from_filter_options(f["v"].id.get_create_plist().get_filter(0)[2])
            assert found.keep == ("sign", "range") and found.bound == 0.05, (engine, name, found)
            assert f["v"].attrs["lossy_compression_keep"].decode() == "sign+range"
            judge.kept(x, f["v"][...], found.keep, np.nan)
with h5netcdf.File(tmp / "e.nc", "w") as f:
    f.dimensions = dict(zip("tyx", x.shape))
    f.create_variable("v", tuple("tyx"), data=x, chunks=x.shape, compression=how)
with h5py.File(tmp / "e.nc") as f:
    judge.kept(x, f["v"][...], how.keep)
""", tmp_path / "x.npy", tmp_path)
