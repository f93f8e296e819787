# SPDX-License-Identifier: MIT OR Apache-2.0
"""Whatever is not f32 or f64 comes back bit for bit, with a lossy word asked for, and nothing crashes."""
import h5py
import numpy as np
import pytest
from conftest import python, run, sample, use
from h5py import h5d, h5p, h5s, h5t, h5z

WORDS = [(11003,), (121003,), (211003,), (90000,), (390000,), ()]
EXACT = [(90000,), (390000,), ()]
FLAGS = {"optional": h5z.FLAG_OPTIONAL, "mandatory": h5z.FLAG_MANDATORY}


def create(f, name, kind, shape, chunk, words, flag):
    plan = h5p.create(h5p.DATASET_CREATE)
    plan.set_chunk(chunk)
    plan.set_filter(443, flag, words)
    return h5py.Dataset(h5d.create(f.id, name.encode(), kind, h5s.create_simple(shape), plan))


def numpy_types():
    rng = np.random.default_rng(1)
    raw = rng.integers(0, 256, 40_000, np.uint8)
    x = sample(np.float64, (40, 30))
    out = {t: raw[: 1200 * np.dtype(t).itemsize].view(t).reshape(40, 30) for t in
           ["i1", "u1", "<i2", ">i2", "<u2", "<i4", ">i4", "<u4", "<i8", ">i8", "<u8", "<f2", ">f2"]}
    out["smooth i4"] = (x * 1000).astype("i4")
    out["smooth i8"] = (x * 1000).astype("i8")
    out["bool"] = raw[:1200].reshape(40, 30) > 127
    out["c8"] = (x + 1j * x[::-1]).astype("c8")
    out["c16"] = x + 1j * x[::-1]
    out["long double"] = x.astype(np.longdouble)
    out["fixed string"] = np.array([b"%d" % (i * i) for i in range(1200)], "S11").reshape(40, 30)
    out["opaque"] = raw[:8400].view("V7").reshape(40, 30)
    pair = np.zeros((40, 30), [("a", "f4"), ("b", "f8"), ("c", "S3"), ("d", "i2", (2,))])
    pair["a"], pair["b"], pair["c"] = x, x, b"xy"
    out["compound"] = pair
    floats = np.zeros((40, 30), [("u", "f4"), ("v", "f4")])
    floats["u"], floats["v"] = x, x.T.reshape(40, 30)
    out["compound of floats"] = floats
    return out


@pytest.mark.parametrize("flag", FLAGS)
@pytest.mark.parametrize("name", numpy_types())
def test_bits_are_kept(name, flag, tmp_path):
    x = numpy_types()[name]
    kind = h5t.py_create(x.dtype, logical=True)
    for words in EXACT if x.dtype.kind == "f" and x.itemsize == 2 else WORDS:
        with h5py.File(tmp_path / "a.h5", "w") as f:
            create(f, "v", kind, x.shape, (16, 30), words, FLAGS[flag])[...] = x
        with h5py.File(tmp_path / "a.h5") as f:
            y = f["v"][...]
        assert y.dtype == x.dtype and y.tobytes() == x.tobytes(), (name, words)
    run("h5dump", tmp_path / "a.h5")


SAID = ("h5z-gpu: a bound was given for a dataset of {}, which is stored losslessly: bounds are for f16, bfloat16, f32 "
        "and f64 values alone. 90000 (lossless) asks for the same\n")
KINDS = {"i2": "integers", ">u4": "integers", "f2": None, "?": "compounds, booleans, strings or the like",
         "f4, i2": "compounds, booleans, strings or the like", "f4": None, ">f8": None}


def test_a_bound_for_what_keeps_every_bit_is_told_once(tmp_path):
    """By whichever program makes the dataset; neither where no bound is asked for, nor of a copy."""
    path, copy = tmp_path / "a.h5", tmp_path / "b.h5"
    write = """if True:
        import sys, h5py, numpy as np
        with h5py.File(sys.argv[1], "w") as f:
            for name in "vw":
                how = {"compression": 443, "compression_opts": (int(sys.argv[3]),)}
                f.create_dataset(name, data=np.ones(1000, sys.argv[2]), chunks=(500,), **how)
        """
    for kind, what in KINDS.items():
        assert python(write, path, kind, 11003) == (SAID.format(what) if what else ""), kind
        assert python(write, path, kind, 90000) == ""
    python(write, path, "i2", 11003)
    assert run("h5repack", path, copy) == ""
    with h5py.File(path, "w") as f:
        f["i"], f["u"], f["x"] = np.arange(1000, dtype="i4"), np.arange(1000, dtype="u2"), np.ones(1000)
    assert run("h5repack", "-l", "CHUNK=500", "-f", "UD=443,1,1,11003", path, copy) == SAID.format("integers")


BY_PACKAGE = {"h5py": "f.create_dataset('v', data=x, chunks=(500,), compression=how)",
              "save": "h5z_gpu.save(sys.argv[1], {'v': x, 'w': x}, how)",
              "netCDF4": "n.createDimension('x', 1000); v = n.createVariable('v', x.dtype, ('x',)); "
                         "h5z_gpu.netcdf.def_filter(v, how); v[:] = x"}


@pytest.mark.parametrize("way", BY_PACKAGE)
def test_a_bound_by_the_package_for_what_keeps_every_bit_is_told(way, tmp_path):
    """Each type by itself, and none of what may be lossy, or asks for no bound. netCDF has no truth values."""
    kinds = {"i2": "integers", "u2": "integers", "u4": "integers", "i8": "integers", "f4": None}
    if way != "netCDF4":
        kinds |= dict.fromkeys(("?", "f4, i2", "c8", "S5"), "compounds, booleans, strings or the like")
    for kind, what in kinds.items():
        for how in ("Lossy(absolute=1e-3)", "Lossless()"):
            said = use(f"""
import contextlib, sys, h5py, netCDF4, numpy as np, h5z_gpu
from h5z_gpu import Lossless, Lossy
how, x = {how}, np.ones(1000, "{kind}")
with contextlib.ExitStack() as stack:
    if "{way}" == "h5py":
        f = stack.enter_context(h5py.File(sys.argv[1], "w"))
    if "{way}" == "netCDF4":
        n = stack.enter_context(netCDF4.Dataset(sys.argv[1], "w"))
    {BY_PACKAGE[way]}
with h5py.File(sys.argv[1]) as f:
    assert np.abs(f["v"][...] - x).max() <= 1e-3 if x.dtype == "f4" else (f["v"][...] == x).all()
""", tmp_path / "a.h5")
            told = what is not None and how.startswith("Lossy")
            assert said == (SAID.format(what) if told else ""), (kind, how, said)


@pytest.mark.parametrize("flag", FLAGS)
def test_types_with_a_memory_of_their_own(flag, tmp_path):
    """Strings and sequences of variable length, references, enumerations, arrays: chunks hold handles, not numbers."""
    rng = np.random.default_rng(2)
    texts = np.array([f"Wärme {i}" * (i % 5) for i in range(300)], object)
    pieces = np.empty(300, object)
    pieces[:] = [rng.normal(size=i % 7).astype("f4") for i in range(300)]
    grid = rng.normal(size=(300, 3, 4)).astype("f4")
    colour = h5py.enum_dtype({"RED": 0, "GREEN": 1000, "BLUE": -5}, "i4")
    for words in WORDS:
        with h5py.File(tmp_path / "a.h5", "w") as f:
            flags = FLAGS[flag]
            make = lambda name, kind: create(f, name, h5t.py_create(kind, logical=True), (300,), (128,), words, flags)
            if flag == "mandatory" and h5py.version.hdf5_version_tuple < (2, 1):
                # HDF5 before 2.1 itself refuses every mandatory filter on these.
                with pytest.raises(ValueError, match="not suitable for filters"):
                    make("text", h5py.string_dtype())
                flags = h5z.FLAG_OPTIONAL
            make("text", h5py.string_dtype())[...] = texts
            make("pieces", h5py.vlen_dtype(np.dtype("f4")))[...] = pieces
            flags = FLAGS[flag]
            make("colour", colour)[...] = np.resize([0, 1000, -5], 300)
            make("array", np.dtype(("f4", (3, 4))))[...] = grid
            make("refs", h5py.ref_dtype)[...] = [f["text"].ref if i % 2 else f["array"].ref for i in range(300)]
            make("regions", h5py.regionref_dtype)[0] = f["text"].regionref[3:5]
        with h5py.File(tmp_path / "a.h5") as f:
            assert list(f["text"].asstr()[...]) == list(texts)
            assert all(np.array_equal(a, b) for a, b in zip(f["pieces"][...], pieces))
            assert (f["colour"][...] == np.resize([0, 1000, -5], 300)).all()
            assert f["array"][...].tobytes() == grid.tobytes()
            assert [f[r].name for r in f["refs"][:2]] == ["/array", "/text"]
            assert f[f["regions"][0]].name == "/text"
        run("h5dump", tmp_path / "a.h5")


@pytest.mark.parametrize("flag", FLAGS)
@pytest.mark.parametrize("bits", [(2, 6, 9, "16 bits of another make"), (4, 8, 15, "24 bits in 4 bytes"),
                                  (4, 5, 23, "odd exponent"), (8, 8, 23, "f32 in 8 bytes")],
                         ids=lambda b: b[3])
def test_floats_of_another_make(bits, flag, tmp_path):
    """A float type whose fields are not those of f16, bfloat16, f32 or f64 is bytes."""
    size, exponent, mantissa, _ = bits
    kind = h5t.IEEE_F32LE.copy() if size <= 4 else h5t.IEEE_F64LE.copy()
    kind.set_fields(exponent + mantissa, mantissa, exponent, 0, mantissa)
    kind.set_precision(1 + exponent + mantissa)
    kind.set_ebias((1 << exponent - 1) - 1)
    kind.set_size(size)
    raw = np.random.default_rng(3).integers(0, 256, (500, size), np.uint8)
    raw[:, (1 + exponent + mantissa) // 8 :] = 0  # padding bits are zero in HDF5
    for words in WORDS:
        with h5py.File(tmp_path / "a.h5", "w") as f:
            create(f, "v", kind, (500,), (200,), words, FLAGS[flag]).id.write(h5s.ALL, h5s.ALL, raw, kind)
        with h5py.File(tmp_path / "a.h5") as f:
            got = np.zeros_like(raw)
            f["v"].id.read(h5s.ALL, h5s.ALL, got, f["v"].id.get_type())
        assert got.tobytes() == raw.tobytes(), words


@pytest.mark.parametrize("library, strings", [("netCDF4", "str"), ("tables", None)])
def test_other_libraries_keep_strings_and_integers(library, strings, tmp_path):
    """netCDF's strings have variable length: its HDF5 2.2 calls every callback for them."""
    if library == "netCDF4":
        python("""if True:
            import ctypes, sys, netCDF4, numpy as np
            from wheel import loaded
            with netCDF4.Dataset(sys.argv[1], "w") as d:
                lib = loaded("netcdf4.libs/libnetcdf")
                d.createDimension("x", 100)
                for name, kind, value in (("s", str, np.array(["a" * (i % 9) for i in range(100)], object)),
                                          ("i", "i2", np.arange(100, dtype="i2")),
                                          ("c", "S1", np.resize([b"x", b"y"], 100))):
                    v = d.createVariable(name, kind, ("x",), chunksizes=(30,))
                    status = lib.nc_def_var_filter(d._grpid, v._varid, 443, ctypes.c_size_t(1),
                                                   (ctypes.c_uint * 1)(11003))
                    # netCDF may refuse filters on its strings; it must not lose them.
                    assert status == 0 or name == "s", (name, status)
                    v[:] = value
            with netCDF4.Dataset(sys.argv[1]) as d:
                assert list(d["s"][:]) == ["a" * (i % 9) for i in range(100)]
                assert list(d["i"][:]) == list(range(100))
                assert list(d["c"][:]) == [b"x", b"y"] * 50
            """, tmp_path / "a.nc")
    else:
        with h5py.File(tmp_path / "a.h5", "w") as f:
            f.create_dataset("i", data=np.arange(1000, dtype="i2"), chunks=(300,), compression=443,
                             compression_opts=(11003,))
        python("""if True:
            import sys, tables
            with tables.open_file(sys.argv[1], "a") as f:
                assert list(f.root.i[:]) == list(range(1000))
                f.root.i[:] = f.root.i[:] * 3
            with tables.open_file(sys.argv[1]) as f:
                assert list(f.root.i[:]) == [3 * i for i in range(1000)]
            """, tmp_path / "a.h5")
