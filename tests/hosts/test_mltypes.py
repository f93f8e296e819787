# SPDX-License-Identifier: MIT OR Apache-2.0
"""Types that NumPy has only with ml_dtypes: bfloat16 under a bound, and float8 bit for bit, by every way in and out."""
from __future__ import annotations

from conftest import use

EIGHT = ("float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2",
         "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn", "int4", "uint2")
BEGIN = """if True:
    import logging, sys, h5py, ml_dtypes, numpy as np, h5z_gpu
    from ml_dtypes import bfloat16
    logging.basicConfig(level="INFO", stream=sys.stdout)
    t = np.linspace(0, 40, 60000)
    w = (np.sin(t) + 0.1 * np.sin(31 * t)).astype(bfloat16).reshape(100, 600)
    w[3, ::50] = [np.nan, np.inf, -np.inf, -0.0, 0, 1e38, 1e-40, -1e-40, 2, 3, 4, 5]
    w[4, :3] = np.array([0x7F81, 0xFFC5, 0x0001], "u2").view(bfloat16)  # NaN with a payload, and the smallest number
    def same(x, y):
        return x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()
    def within(x, y, bound):
        a, b = (np.asarray(v, "f8") for v in (x, y))
        exact = ~np.isfinite(a)
        return (np.abs(a - b)[~exact] <= bound).all() and (x.view("u2") == y.view("u2"))[exact].all()
"""


def test_bfloat16_through_save_and_load(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    use(f"""{BEGIN}
    given = {{"w": w, "g/part": w[::2, 5:77], "one": w[0, 0], "none": w[:0], "f": w.astype("f4")}}
    h5z_gpu.save("exact.h5", given, provenance=False)
    found = h5z_gpu.load("exact.h5")
    assert all(same(np.asarray(given[k]), np.asarray(found[k])) for k in given), found
    h5z_gpu.save("lossy.h5", given, absolute=0.01, fill_value=2, chunks=None)
    found = h5z_gpu.load("lossy.h5", ["w", "g/part"])
    assert all(found[k].dtype == bfloat16 and within(given[k], found[k], 0.01) for k in found)
    assert ((w == 2) <= (found["w"] == 2)).all()
    h5z_gpu.save("range.h5", {{"w": w[10:]}}, relative=1e-2, of="dataset")
    with h5py.File("range.h5") as f, h5py.File("lossy.h5") as g:
        low, high = f["w"].attrs["h5z_gpu_range"]
        assert (low, high) == (float(w[10:].min()), float(w[10:].max()))
        # Half of what four bytes take, and less; h5py sees numbers.
        assert g["w"].id.get_storage_size() < w.nbytes * 0.6 and g["w"].dtype == "f4"
        assert np.array_equal(g["w"][...], found["w"].astype("f4"), equal_nan=True)
        assert same(h5z_gpu.read(g["w"]), g["w"][...])
    try:
        h5z_gpu.save("bad.h5", {{"w": w}}, absolute=1, fill_value=1e39)
        raise SystemExit("taken")
    except ValueError as e:
        assert "more than w can hold, which is bfloat16" in str(e), e
    """)


def test_bfloat16_through_h5py_write_and_read(tmp_path, monkeypatch):
    """Whole arrays, boxes and other selections, chunks of this filter, of others and none, files that are objects."""
    monkeypatch.chdir(tmp_path)
    out = use(f"""{BEGIN}
    from h5z_gpu import Lossy, Lossless, bfloat16 as kind, read, write
    import io
    with h5py.File("a.h5", "w") as f:
        d = f.create_dataset("bound", w.shape, kind(), chunks=(30, 200), compression=Lossy(absolute=0.01))
        d[...] = w.astype("f4")  # HDF5 converts, and makes every NaN the same
        e = f.create_dataset("exact", w.shape, kind(), chunks=(30, 200), compression=Lossless())
        write(e, w)
        zipped = f.create_dataset("zipped", w.shape, kind(), chunks=(30, 200), compression="gzip")
        plain = f.create_dataset("plain", w.shape, kind())
        for other in (zipped, plain):
            write(other, w)
        for part in (np.s_[5:70, 3:500], np.s_[::3, 7], np.s_[[1, 4, 9]], np.s_[2, 3], np.s_[40:40]):
            for d in (e, zipped, plain):
                write(d, w[part], part)
                found = np.empty(w[part].shape, bfloat16)
                assert read(d, found, part) is found and same(found, np.asarray(w[part])), (d.name, part)
        try:
            write(f.create_dataset("f4", w.shape, "f4"), w)
            raise SystemExit("taken")
        except TypeError as why:
            print(why)
    for where in ("a.h5", io.BytesIO(open("a.h5", "rb").read())):
        with h5py.File(where) as f:
            for name in ("exact", "zipped", "plain"):
                found = np.zeros(w.shape, bfloat16)
                read(f[name], found)
                assert same(found, w), name
                x, y = f[name][...], w.astype("f4")
                assert x.dtype == "f4" and np.array_equal(x, y, equal_nan=True), name
            found = read(f["bound"], np.zeros(w.shape, bfloat16))
            one = np.where(np.isnan(found), w, found)
            assert (np.isnan(found) == np.isnan(w)).all() and within(w, one, 0.01)
    """)
    assert "an array of bfloat16 for /f4, which holds float32: give array.astype('f4')" in out, out
    slow = [line for line in out.splitlines() if "/exact" in line and "HDF5's pipeline: " in line]
    assert slow and all("not a box of step 1" in line for line in slow), out


def test_types_of_one_byte_keep_every_bit(tmp_path, monkeypatch):
    """As the unsigned integers that their bits are, so that no program reads other numbers; the file names the type."""
    monkeypatch.chdir(tmp_path)
    use(f"""{BEGIN}
    for name in {EIGHT!r}:
        kind = np.dtype(getattr(ml_dtypes, name))
        most = 256 if name.startswith("float8") else 16 if "4" in name else 4
        x = np.resize(np.arange(most, dtype="u1"), (50, 70)).view(kind)
        given = {{"x": x, "part": x[::3, 4:9], "one": x[2, 2], "none": x[:0]}}
        h5z_gpu.save("a.h5", given, absolute=0.5)
        found = h5z_gpu.load("a.h5")
        assert all(same(np.asarray(given[k]), np.asarray(found[k])) for k in given), (name, found)
        with h5py.File("a.h5", "r+") as f:
            d = f["x"]
            assert d.dtype == "u1" and d.attrs["h5z_gpu_dtype"] == name and d.chunks
            assert same(d[...].view(kind), x)
            h5z_gpu.write(d, x[:7], np.s_[10:17])
            out = np.empty((7, 70), kind)
            assert h5z_gpu.read(d, out, np.s_[10:17]) is out and same(out, x[:7])
            other = "float8_e5m2" if name != "float8_e5m2" else "float8_e4m3"
            try:
                h5z_gpu.write(d, x.view(getattr(ml_dtypes, other)))
                raise SystemExit("taken")
            except TypeError as why:
                assert f"an array of {{other}} for /x, which holds {{name}}" in str(why), why
            d.attrs["h5z_gpu_dtype"] = "finfo"  # no type of a number
        assert h5z_gpu.load("a.h5", ["x"])["x"].dtype == "u1"
    """)


LENT = """
    import ctypes
    class Tensor:
        '''An array in host memory as PyTorch and JAX lend theirs, of a type that np.from_dlpack does not know.'''
        class Managed(ctypes.Structure):
            _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("ndim", ctypes.c_int32),
                        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                        ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p), ("offset", ctypes.c_uint64),
                        ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]
        def __init__(self, values, code, lanes=1):
            self.values, self.code, self.lanes = values, code, lanes
        def __dlpack_device__(self):
            return 1, 0
        def __dlpack__(self, **how):
            a = self.values
            self.shape, self.strides = ((ctypes.c_int64 * a.ndim)(*n)
                                        for n in (a.shape, [s // a.itemsize for s in a.strides]))
            self.managed = self.Managed(a.ctypes.data, (ctypes.c_int32 * 2)(1, 0), a.ndim, self.code, 8 * a.itemsize,
                                        self.lanes, ctypes.addressof(self.shape), ctypes.addressof(self.strides), 0)
            new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
                ("PyCapsule_New", ctypes.pythonapi))
            return new(ctypes.addressof(self.managed), b"dltensor", None)
"""


def test_arrays_that_other_libraries_lend(tmp_path, monkeypatch):
    """A state dict of tensors, as PyTorch and JAX hand them out by DLPack: they are read in place."""
    monkeypatch.chdir(tmp_path)
    use(f"""{BEGIN}{LENT}
    eight = np.arange(256, dtype="u1").reshape(16, 16)
    codes = {{7: "float8_e3m4", 8: "float8_e4m3", 9: "float8_e4m3b11fnuz", 10: "float8_e4m3fn", 11: "float8_e4m3fnuz",
             12: "float8_e5m2", 13: "float8_e5m2fnuz", 14: "float8_e8m0fnu"}}
    given = {{"w": Tensor(w, 4), "turned": Tensor(w.T[::2], 4)}} | {{
        name: Tensor(eight, code) for code, name in codes.items()}}
    h5z_gpu.save("state.h5", given)
    found = h5z_gpu.load("state.h5")
    assert same(found["w"], w) and same(found["turned"], w.T[::2].copy())
    assert all(found[name].dtype.name == name and found[name].tobytes() == eight.tobytes() for name in codes.values())
    for bad in (Tensor(w, 77), Tensor(w, 4, lanes=2)):
        try:
            h5z_gpu.save("bad.h5", {{"w": bad}})
            raise SystemExit("taken")
        except TypeError as why:
            assert "NumPy has no such type" in str(why), why
    """)


def test_without_the_package_bfloat16_comes_as_float32(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    use(f"""{BEGIN}
    x = (np.arange(4000) / 64).astype(bfloat16)
    h5z_gpu.save("a.h5", {{"x": x, "e": x.astype(ml_dtypes.float8_e5m2)}}, absolute=0.5)
    """)
    out = use(f"""if True:
    import sys
    sys.modules["ml_dtypes"] = None  # as if it were not installed
    import h5z_gpu, numpy as np{LENT}
    found = h5z_gpu.load("a.h5")
    assert found["x"].dtype == "f4" and found["e"].dtype == "u1", found
    assert np.abs(found["x"] - np.arange(4000) / 64).max() <= 0.5 + 0.25 / 2
    try:
        h5z_gpu.save("b.h5", {{"x": Tensor(np.zeros(5, "u2"), 4)}})
    except TypeError as why:
        print(why)
    """)
    assert "NumPy has bfloat16 with the package ml_dtypes alone: install that" in out, out
