# SPDX-License-Identifier: MIT OR Apache-2.0
"""Makes small files of everything that HDF5 can say of a file, by h5py's low level and HDF5's own functions.

Each function here answers what makes a part of a file when it is called with h5py's file; a `File` has properties of
its own, too.
"""

import ctypes
import os
from dataclasses import dataclass, field

import h5py
import numpy as np
from h5py import h5a, h5d, h5f, h5g, h5o, h5p, h5s, h5t

@dataclass
class File:
    """How a file is made."""

    fill: object
    properties: object = None
    low: int = h5f.LIBVER_V110
    block: bytes = b""
    more: dict = field(default_factory=dict)


def make(path, how):
    how = how if isinstance(how, File) else File(how)
    properties, access = h5p.create(h5p.FILE_CREATE), h5p.create(h5p.FILE_ACCESS)
    if how.properties:
        how.properties(properties)
    access.set_libver_bounds(how.low, h5f.LIBVER_LATEST)
    access.set_fclose_degree(h5f.CLOSE_STRONG)
    with h5py.File(h5f.create(os.fsencode(path), h5f.ACC_TRUNC, fcpl=properties, fapl=access)) as f:
        how.fill(f)
    if how.block:
        with open(path, "r+b") as raw:
            raw.write(how.block)


def library():
    """HDF5 as h5py has it, for what h5py cannot write."""
    return ctypes.CDLL(h5d.__file__)


def dataset(name, kind, shape=(4,), most=None, raw=None, properties=None, **how):
    """A dataset; `properties` sets its creation list, `raw` are its values in the file's type."""

    def fill(f):
        kinds = kind(f) if callable(kind) else kind
        plist = h5p.create(h5p.DATASET_CREATE)
        if properties:
            properties(plist)
        space = h5s.create_simple(shape, most) if shape is not None else h5s.create(h5s.NULL)
        d = h5d.create(f.id, name, kinds, space, dcpl=plist)
        if raw is not None:
            write(d, kinds, raw)

    return fill


def write(d, kind, raw):
    raw = np.frombuffer(bytes(raw), np.uint8).copy()
    mem = kind.copy()
    fn = library().H5Dwrite
    fn.argtypes = [ctypes.c_int64] * 5 + [ctypes.c_void_p]
    assert fn(d.id, mem.id, 0, 0, 0, raw.ctypes.data) >= 0


def both(*fills):
    def fill(f):
        for each in fills:
            each(f)

    return fill


def text(size, pad=h5t.STR_NULLPAD, charset=h5t.CSET_ASCII):
    kind = h5t.C_S1.copy()
    kind.set_size(size or h5t.VARIABLE)
    kind.set_strpad(pad)
    kind.set_cset(charset)
    return kind


def opaque(tag, size=3):
    kind = h5t.create(h5t.OPAQUE, size)
    kind.set_tag(tag)
    return kind


def number(size, precision, base=h5t.STD_I32LE):
    kind = base.copy()
    kind.set_precision(precision)
    kind.set_size(size)
    return kind


def compound(*members, size=None):
    kind = h5t.create(h5t.COMPOUND, size or sum(t.get_size() for _, t in members))
    at = 0
    for name, t in members:
        kind.insert(name, at, t)
        at += t.get_size()
    return kind


def enum(**values):
    kind = h5t.enum_create(h5t.STD_I8LE)
    for name, value in values.items():
        kind.enum_insert(name.encode(), value)
    return kind


def attribute(name, kind, raw, shape=(), charset=None, of=None):
    """Makes an attribute of the root group, or of an object."""

    def fill(f):
        kinds = kind(f) if callable(kind) else kind
        space = h5s.create_simple(shape) if shape else h5s.create(h5s.SCALAR if shape == () else h5s.NULL)
        plist = 0
        where = f.id if of is None else f[of].id
        if charset is not None:
            lib = library()
            new, put = lib.H5Pcreate, lib.H5Pset_char_encoding
            new.restype, new.argtypes, put.argtypes = ctypes.c_int64, [ctypes.c_int64], [ctypes.c_int64, ctypes.c_int]
            plist = new(ctypes.c_int64.in_dll(lib, "H5P_CLS_ATTRIBUTE_CREATE_ID_g").value)
            put(plist, charset)
        make = library().H5Acreate2
        make.restype = ctypes.c_int64
        make.argtypes = [ctypes.c_int64, ctypes.c_char_p, *[ctypes.c_int64] * 4]
        a = h5a.AttrID(make(where.id, name, kinds.id, space.id, plist, 0))
        if raw is not None:
            put = library().H5Awrite
            put.argtypes = [ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p]
            buffer = np.frombuffer(bytes(raw), np.uint8).copy()
            assert put(a.id, kinds.id, buffer.ctypes.data) >= 0

    return fill


_KEPT = []


def pointer(characters):
    """A text of any length in memory."""
    _KEPT.append(ctypes.create_string_buffer(characters))
    return np.uint64(ctypes.addressof(_KEPT[-1])).tobytes()


def ints(*values, kind="<i4"):
    return np.array(values, kind).tobytes()


def group(name, **how):
    """Makes a group by its creation list."""

    def fill(f):
        plist = h5p.create(h5p.GROUP_CREATE)
        for key, value in how.items():
            getattr(plist, f"set_{key}")(*value)
        h5g.create(f.id, name, gcpl=plist)

    return fill


def named(name, kind):
    return lambda f: h5t.TypeID.commit(kind.copy(), f.id, name)


def link(name, charset):
    def fill(f):
        plist = h5p.create(h5p.LINK_CREATE)
        plist.set_char_encoding(charset)
        h5g.create(f.id, name, lcpl=plist)

    return fill


def listed(*names, track=True):
    """Groups that are made in this order, in a group that keeps it."""

    def fill(f):
        g = f.create_group("g", track_order=track)
        for name in names:
            g.create_group(name)

    return fill


def attributes(*names):
    def fill(f):
        d = f.create_dataset("d", data=1, track_order=True)
        for name in names:
            d.attrs[name] = 1

    return fill


def comment(said):
    def fill(f):
        g = f.create_group("g")
        h5o.set_comment(g.id, said)

    return fill


def pointing(kind, to, region=None):
    """Attribute and dataset of references."""

    def fill(f):
        for name in "xy":
            f.create_dataset(name, data=np.arange(6))
        if region is None:
            value, dtype = f[to].ref, h5py.ref_dtype
        else:
            value, dtype = f[to].regionref[region], h5py.regionref_dtype
        if kind == "attribute":
            f.attrs.create("r", value, dtype=dtype)
        elif kind == "dataset":
            f.create_dataset("r", (2,), dtype=dtype)[1] = value
        elif kind == "compound":
            d = f.create_dataset("r", (1,), dtype=np.dtype([("i", "i4"), ("r", dtype)]))
            d[0] = (1, value)
        elif kind == "sequence":
            d = f.create_dataset("r", (2,), dtype=h5py.vlen_dtype(dtype))
            d[1] = np.array([f["x"].ref, value], object)
        elif kind == "fill value":
            plist = h5p.create(h5p.DATASET_CREATE)
            plist_fill(plist, h5t.STD_REF_OBJ, np.uint64(h5o.get_info(f[to].id).addr).tobytes())
            h5d.create(f.id, b"r", h5t.STD_REF_OBJ, h5s.create_simple((3,)), dcpl=plist)

    return fill


def plist_fill(plist, kind, raw):
    put = library().H5Pset_fill_value
    put.argtypes = [ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p]
    buffer = np.frombuffer(bytes(raw), np.uint8).copy()
    assert put(plist.id, kind.id, buffer.ctypes.data) >= 0


def declared(kind, raw):
    return lambda p: plist_fill(p, kind, raw)


def text_fill(value):
    def put(p):
        kept = ctypes.create_string_buffer(value)
        plist_fill(p, text(0), np.uint64(ctypes.addressof(kept)).tobytes())

    return put


def strings(*values, name="s"):
    return lambda f: f.create_dataset(name, data=list(values), dtype=h5py.string_dtype())


def sequences(*values, of="<i4", place="dataset"):
    """Arrays of any length, each written by its bytes: h5py converts some."""

    def fill(f):
        kind = h5t.vlen_create(h5t.py_create(np.dtype(of)) if isinstance(of, str) else of)
        arrays = [np.frombuffer(v if isinstance(v, bytes) else np.array(v, of).tobytes(), np.uint8) for v in values]
        size = kind.get_super().get_size()
        raw = b"".join(np.array([len(a) // size, a.ctypes.data if len(a) else 0], "u8").tobytes() for a in arrays)
        if place == "dataset":
            write(h5d.create(f.id, b"v", kind, h5s.create_simple((len(values),))), kind, raw)
        else:
            attribute(b"v", kind, raw, (len(values),))(f)

    return fill


def chunks(shape=(8,), data=None, where=None, mask=None, **how):
    """A dataset in chunks of 4; `mask` writes its first chunk as it is, without filters."""

    def fill(f):
        d = f.create_dataset("d", shape, "<i4", chunks=(4,), **how)
        if data is not None:
            d[...] = data
        if where is not None:
            d[where] = 7
        if mask is not None:
            d.id.write_direct_chunk((0,), np.arange(4, dtype="<i4").tobytes(), mask)

    return fill


def virtual(source, part=slice(0, 4)):
    def fill(f):
        layout = h5py.VirtualLayout((4,), "i4")
        layout[:] = h5py.VirtualSource(source, "d", (9,))[part]
        f.create_virtual_dataset("v", layout)

    return fill


def external(name):
    return lambda f: f.create_dataset("e", (0,), "i4", external=[(name, 0, 8)])


def cut_by_the_edge(flag):
    def put(p):
        p.set_chunk((3,))
        set_options = library().H5Pset_chunk_opts
        set_options.argtypes = [ctypes.c_int64, ctypes.c_uint]
        assert set_options(p.id, flag) >= 0

    return put


def user_link(kind, said):
    def fill(f):
        make = library().H5Lcreate_ud
        make.argtypes = [ctypes.c_int64, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t,
                         *[ctypes.c_int64] * 2]
        with registered(kind):
            assert make(f.id.id, b"u", kind, said, len(said), 0, 0) >= 0

    return fill


class registered:
    """A class of links, as long as one is made."""

    class Class(ctypes.Structure):
        _fields_ = [("version", ctypes.c_int), ("kind", ctypes.c_int), ("comment", ctypes.c_char_p),
                    *((name, ctypes.c_void_p) for name in ("a", "b", "c", "traverse", "d", "e"))]

    def __init__(self, kind):
        self.walk = ctypes.CFUNCTYPE(ctypes.c_int64)(lambda: -1)
        self.kind = kind
        self.described = self.Class(1, kind, b"", None, None, None, ctypes.cast(self.walk, ctypes.c_void_p), None, None)

    def __enter__(self):
        assert library().H5Lregister(ctypes.byref(self.described)) >= 0

    def __exit__(self, *_):
        library().H5Lunregister(self.kind)


def shared_type(name, used):
    """Two named types that are equal; a dataset is of one of them."""

    def fill(f):
        for each in (b"t", b"u"):
            named(each, h5t.STD_I32LE)(f)
        h5d.create(f.id, name, h5t.open(f.id, used), h5s.create_simple((2,)))

    return fill


def attribute_of_type(used):
    def fill(f):
        for each in (b"t", b"u"):
            named(each, h5t.STD_I32LE)(f)
        attribute(b"a", lambda f: h5t.open(f.id, used), ints(1))(f)

    return fill


def asked(**how):
    def put(p):
        for key, value in how.items():
            getattr(p, f"set_{key}")(*value)

    return put
