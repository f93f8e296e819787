# SPDX-License-Identifier: MIT OR Apache-2.0
"""Pairs of files that differ in one thing that HDF5 can say of a file, and what `verify` has to say of it.

A case is a name, what makes the original and its copy, and a part of the sentence. What makes a file is called with
h5py's file; a `File` also has properties of its own.
"""

import ctypes
from dataclasses import dataclass, field

import h5py
import numpy as np
from h5py import h5a, h5d, h5f, h5g, h5o, h5p, h5s, h5t

CASES = {}


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
    with h5py.File(h5f.create(bytes(path), h5f.ACC_TRUNC, fcpl=properties, fapl=access)) as f:
        how.fill(f)
    if how.block:
        with open(path, "r+b") as raw:
            raw.write(how.block)


def case(name, old, new, says):
    assert name not in CASES
    CASES[name] = (old, new, says)


def library():
    """HDF5 as h5py has it, for what h5py cannot write."""
    return ctypes.CDLL(h5d.__file__)


def dataset(name, kind, shape=(4,), most=None, raw=None, properties=None, **how):
    """Makes a dataset; `properties` sets its creation list, `raw` are its values in the file's type."""

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
    if size:
        kind.set_size(size)
        kind.set_strpad(pad)
    else:
        kind.set_size(h5t.VARIABLE)
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


# --- the file ---------------------------------------------------------------------------------------------------------

nothing = lambda f: None
case("user block: length", File(nothing, lambda p: p.set_userblock(512)), File(nothing, lambda p: p.set_userblock(1024)),
     "/: user block: 512 in ORIGINAL, 1024 in COMPRESSED")
case("user block: bytes", File(nothing, lambda p: p.set_userblock(512), block=b"one"),
     File(nothing, lambda p: p.set_userblock(512), block=b"two"), "/: user block: byte 0 is 0x6f")
case("superblock", File(nothing, low=h5f.LIBVER_V18), File(nothing, low=h5f.LIBVER_V110), "superblock's version: 2 in")
case("sizes of addresses", nothing, File(nothing, lambda p: p.set_sizes(4, 4)), "sizes of addresses and lengths")
case("strategy of free space", nothing, File(nothing, lambda p: p.set_file_space_strategy(1, True, 1)), "strategy of")
case("rank of groups' trees", File(nothing, low=h5f.LIBVER_EARLIEST),
     File(nothing, lambda p: library().H5Pset_sym_k(ctypes.c_int64(p.id), 8, 2), low=h5f.LIBVER_EARLIEST),
     "rank of groups' trees")

# --- links and objects ------------------------------------------------------------------------------------------------

case("a link more", group(b"g"), both(group(b"g"), group(b"h")), "/: link h is in COMPRESSED alone")
case("a link less", both(group(b"g"), group(b"h")), group(b"g"), "/: link h is in ORIGINAL alone")
case("order of links", listed("a", "b", "c"), listed("a", "c", "b"), "/g: order of links: number 1: b in ORIGINAL")
case("order of nine links", listed(*"ihgfedcba"), listed(*"ihgfdecba"), "/g: order of links: number 4: e in ORIGINAL")
case("order is kept", listed("a", "b"), listed("a", "b", track=False), "/g: order of links: ")
case("charset of a link", link(b"g", h5t.CSET_ASCII), link(b"g", h5t.CSET_UTF8), "character set of the link's name")
soft = lambda to: lambda f: f.__setitem__("s", h5py.SoftLink(to))
case("soft link", soft("/a"), soft("/b"), "/s: what the soft link says: '/a' in ORIGINAL")
case("external link: file", lambda f: f.__setitem__("e", h5py.ExternalLink("a.h5", "/x")),
     lambda f: f.__setitem__("e", h5py.ExternalLink("b.h5", "/x")), "/e: what the external link says")
case("external link: path", lambda f: f.__setitem__("e", h5py.ExternalLink("a.h5", "/x")),
     lambda f: f.__setitem__("e", h5py.ExternalLink("a.h5", "/y")), "/e: what the external link says")
case("user-defined link", user_link(199, b"one"), user_link(199, b"two"), "/u: what the user-defined link says")
case("class of a user-defined link", user_link(199, b"one"), user_link(200, b"one"), "/u: kind of link: 199")
case("kind of link", group(b"s"), soft("/a"), "/s: kind of link: hard in ORIGINAL, soft in COMPRESSED")
case("kind of object", group(b"x"), dataset(b"x", h5t.STD_I32LE), "/x: kind of object: group in ORIGINAL, dataset in")
case("hard links to one object", both(group(b"g"), lambda f: f.__setitem__("h", f["g"])), both(group(b"g"), group(b"h")),
     "/h: leads to another object")
case("objects become one", both(group(b"g"), group(b"h")), both(group(b"g"), lambda f: f.__setitem__("h", f["g"])),
     "/h: leads to another object")
case("a cycle", both(group(b"g"), lambda f: f["g"].__setitem__("up", f["/"])),
     both(group(b"g"), lambda f: f["g"].__setitem__("up", f["g"])), "/g/up: leads to another object")
case("comment", comment(b"one"), comment(b"two"), "/g: comment: 'one' in ORIGINAL, 'two' in COMPRESSED")
case("a comment from nowhere", group(b"g"), comment(b"x"), "/g: comment: '' in ORIGINAL, 'x' in COMPRESSED")
case("version of a header", File(dataset(b"d", h5t.STD_I32LE), low=h5f.LIBVER_EARLIEST),
     File(lambda f: (library().H5Fset_libver_bounds(ctypes.c_int64(f.id.id), h5f.LIBVER_V18, h5f.LIBVER_LATEST),
                     dataset(b"d", h5t.STD_I32LE)(f)), low=h5f.LIBVER_EARLIEST), "/d: version of its header: 1 in")
case("group: attributes' order", group(b"g"), group(b"g", attr_creation_order=(3,)), "/g: order of attributes")
case("group: times", group(b"g"), group(b"g", obj_track_times=(False,)), "/g: times")
case("group: ways to store attributes", group(b"g"), group(b"g", attr_phase_change=(4, 2)), "/g: numbers of attributes")
phase = lambda most: lambda f: (
    lambda p: (library().H5Pset_link_phase_change(ctypes.c_int64(p.id), most, 2), h5g.create(f.id, b"g", gcpl=p))
)(h5p.create(h5p.GROUP_CREATE))
case("group: ways to store links", phase(8), phase(5), "/g: numbers of links between two ways")

# --- types ------------------------------------------------------------------------------------------------------------


def typed(name, old, new, says="type"):
    case(f"type: {name}", dataset(b"d", old), dataset(b"d", new), f"/d: {says}")


typed("byte order", h5t.STD_I32LE, h5t.STD_I32BE)
typed("sign", h5t.STD_I32LE, h5t.STD_U32LE)
typed("size", h5t.STD_I32LE, h5t.STD_I64LE)
typed("bits in a number", number(4, 24), number(4, 25))
typed("24 bits and 32", number(3, 24), h5t.STD_I32LE)
typed("text's length", text(3), text(4))
typed("text's padding", text(3, h5t.STR_NULLTERM), text(3, h5t.STR_NULLPAD))
typed("text's character set", text(3), text(3, charset=h5t.CSET_UTF8))
typed("text of any length", text(3), text(0))
typed("character set of any length", text(0), text(0, charset=h5t.CSET_UTF8))
typed("opaque tag", opaque(b"one"), opaque(b"two"))
typed("member's name", compound((b"a", h5t.STD_I8LE)), compound((b"b", h5t.STD_I8LE)))
typed("member's type", compound((b"a", h5t.STD_I8LE)), compound((b"a", h5t.STD_U8LE)))
typed("gap behind members", compound((b"a", h5t.STD_I8LE)), compound((b"a", h5t.STD_I8LE), size=4))
typed("name of an enumeration", enum(a=1, b=2), enum(a=1, c=2))
typed("value of an enumeration", enum(a=1, b=2), enum(a=1, b=3))
typed("enumeration and number", enum(a=1), h5t.STD_I8LE)
typed("array's lengths", h5t.array_create(h5t.STD_I8LE, (2, 3)), h5t.array_create(h5t.STD_I8LE, (3, 2)))
typed("elements of a sequence", h5t.vlen_create(h5t.STD_I32LE), h5t.vlen_create(h5t.STD_I32BE))
typed("time", h5t.UNIX_D32LE, h5t.UNIX_D32BE)
typed("kind of reference", h5t.STD_REF_OBJ, h5t.STD_U64LE)
case("type: named", both(named(b"t", h5t.STD_I32LE), lambda f: h5d.create(
    f.id, b"d", h5t.open(f.id, b"t"), h5s.create_simple((2,)))), both(named(b"t", h5t.STD_I32LE), dataset(
        b"d", h5t.STD_I32LE, (2,))), "/d: type: named in ORIGINAL, not named in COMPRESSED")
case("type: which named", shared_type(b"d", b"t"), shared_type(b"d", b"u"), "leads to another object")
case("type: which named, of an attribute", attribute_of_type(b"t"), attribute_of_type(b"u"), "leads to another object")
case("a named type's own type", named(b"t", h5t.STD_I32LE), named(b"t", h5t.STD_I32BE), "/t: type: integer of 4 bytes")
case("a named type's attribute", both(named(b"t", h5t.STD_I32LE), attribute(b"a", h5t.STD_I32LE, ints(1), of="t")),
     both(named(b"t", h5t.STD_I32LE), attribute(b"a", h5t.STD_I32LE, ints(2), of="t")), "/t@a: value")

# --- extents and creation lists ---------------------------------------------------------------------------------------

chunked = lambda p: p.set_chunk((2,))
case("extents: length", dataset(b"d", h5t.STD_I8LE, (4,)), dataset(b"d", h5t.STD_I8LE, (5,)), "/d: extents: [4] of at")
case("extents: rank", dataset(b"d", h5t.STD_I8LE, (4,)), dataset(b"d", h5t.STD_I8LE, (4, 1)), "/d: extents: [4] of at")
case("extents: longest", dataset(b"d", h5t.STD_I8LE, (4,), (h5s.UNLIMITED,), properties=chunked),
     dataset(b"d", h5t.STD_I8LE, (4,), (9,), properties=chunked), "at most ['unlimited'] in ORIGINAL")
case("extents: none", dataset(b"d", h5t.STD_I8LE, (0,)), dataset(b"d", h5t.STD_I8LE, None), "/d: extents: [0] of at")


def created(name, says, old, new, **how):
    case(f"created: {name}", dataset(b"d", h5t.STD_I32LE, properties=old, **how),
         dataset(b"d", h5t.STD_I32LE, properties=new, **how), f"/d: {says}")


def asked(**how):
    def put(p):
        for key, value in how.items():
            getattr(p, f"set_{key}")(*value)

    return put


created("layout", "layout: contiguous in", None, asked(layout=(h5d.COMPACT,)), raw=ints(1, 2, 3, 4))
created("chunks", "chunks: (2,) in ORIGINAL, (4,)", chunked, asked(chunk=((4,),)))
created("chunked or not", "layout", None, chunked, raw=ints(1, 2, 3, 4))
created("filter", "filters: [] in", chunked, asked(chunk=((2,),), deflate=(4,)))
created("filter's words", "filters: ", asked(chunk=((2,),), deflate=(4,)), asked(chunk=((2,),), deflate=(5,)))
created("order of filters", "filters: ", asked(chunk=((2,),), shuffle=(), deflate=(4,)),
        asked(chunk=((2,),), deflate=(4,), shuffle=()))
created("optional filter", "filters: ", asked(chunk=((2,),), filter=(1, 0, (4,))),
        asked(chunk=((2,),), filter=(1, 1, (4,))))
created("time of allocation", "time of allocation: late in", asked(alloc_time=(h5d.ALLOC_TIME_LATE,)),
        asked(alloc_time=(h5d.ALLOC_TIME_EARLY,)))
created("time of filling", "time of filling: if set in", None, asked(fill_time=(h5d.FILL_TIME_NEVER,)))
created("times", "times: 1 in", asked(obj_track_times=(True,)), asked(obj_track_times=(False,)))
created("order of attributes", "order of attributes: 0 in", None, asked(attr_creation_order=(3,)))
created("ways to store attributes", "numbers of attributes", None, asked(attr_phase_change=(4, 2)))
created("chunks cut by the edge", "chunks cut by the edge", cut_by_the_edge(0), cut_by_the_edge(2))
created("fill value, declared", "fill value: the default in ORIGINAL, declared", None, declared(h5t.STD_I32LE, ints(0)))
created("fill value", "fill value: its bytes", declared(h5t.STD_I32LE, ints(5)), declared(h5t.STD_I32LE, ints(6)))
created("fill value, undefined", "fill value: the default in ORIGINAL, undefined", None, lambda p: library(
    ).H5Pset_fill_value(ctypes.c_int64(p.id), ctypes.c_int64(0), None))
case("created: fill value of any length", dataset(b"d", text(0), properties=text_fill(b"one")),
     dataset(b"d", text(0), properties=text_fill(b"two")), "/d: fill value: its bytes")
case("created: external file", external("a.raw"), external("b.raw"), "/e: external files")
case("created: source of a virtual one", virtual("a.h5"), virtual("b.h5"), "/v: sources")
case("created: part of a source", virtual("a.h5"), virtual("a.h5", slice(1, 5)), "/v: sources")

# --- attributes -------------------------------------------------------------------------------------------------------

one = attribute(b"a", h5t.STD_I32LE, ints(1))
case("attribute: missing", one, nothing, "/: attribute a is in ORIGINAL alone")
case("attribute: one more", nothing, one, "/: attribute a is in COMPRESSED alone")
case("attribute: value", one, attribute(b"a", h5t.STD_I32LE, ints(2)), "/@a: value: its bytes are 01000000 in ORIGINAL")
case("attribute: type", one, attribute(b"a", h5t.STD_I32BE, ints(1)), "/@a: type")
case("attribute: extents", one, attribute(b"a", h5t.STD_I32LE, ints(1), (1,)), "/@a: extents: scalar in ORIGINAL, [1]")
case("attribute: charset of its name", one, attribute(b"a", h5t.STD_I32LE, ints(1), charset=h5t.CSET_UTF8),
     "/@a: character set of the name")
case("attribute: order", attributes("a", "b"), attributes("b", "a"), "/d: order of attributes: number 0: a in ORIGINAL")
case("attribute: one of twenty", attributes(*"abcdefghijklmnopqrst"), attributes(*"abcdefghijklmnopqrsu"),
     "attribute t is in ORIGINAL alone")
case("attribute: one of many values", attribute(b"a", h5t.STD_I16LE, np.arange(99, dtype="<i2"), (99,)),
     attribute(b"a", h5t.STD_I16LE, np.arange(99, dtype="<i2") + (np.arange(99, dtype="<i2") == 98), (99,)),
     "/@a: value 98: its bytes are 6200")
case("attribute: last letter of a C text", attribute(b"a", text(3, h5t.STR_NULLTERM), b"abc"),
     attribute(b"a", text(3, h5t.STR_NULLTERM), b"ab\0"), "/@a: value")
case("attribute: behind a text's end", attribute(b"a", text(6, h5t.STR_NULLTERM), b"ab\0\0\0\0"),
     attribute(b"a", text(6, h5t.STR_NULLTERM), b"ab\0xyz"), "/@a: value")
case("attribute: opaque", attribute(b"a", opaque(b"t"), b"abc"), attribute(b"a", opaque(b"t"), b"abd"), "/@a: value")
case("attribute: sequence's values", sequences([1, 2], place="a"), sequences([1, 3], place="a"), "/@v: value")
case("attribute: MATLAB's names", sequences(b"abc", of=text(1), place="a"), sequences(b"ab\0", of=text(1), place="a"),
     "/@v: value")

# --- values -----------------------------------------------------------------------------------------------------------


def values(name, kind, old, new, says="value at [1]", shape=(2,), properties=None):
    case(f"value: {name}", dataset(b"d", kind, shape, raw=old, properties=properties),
         dataset(b"d", kind, shape, raw=new, properties=properties), f"/d: {says}")


values("number", h5t.STD_I32LE, ints(1, 2), ints(1, 3))
values("compact", h5t.STD_I32LE, ints(1, 2), ints(1, 3), properties=asked(layout=(h5d.COMPACT,)))
values("24 bits", number(3, 24), b"abcdef", b"abcdeg")
values("unused bits", number(4, 24), ints(1, 2), ints(1, 2 | 1 << 30))
values("opaque", opaque(b"tag"), b"abcdef", b"abcdeg")
values("time", h5t.UNIX_D32LE, ints(1, 2), ints(1, 3))
values("quiet and signalling NaN", h5t.IEEE_F32LE, ints(1, 0x7FC00000, kind="<u4"), ints(1, 0x7F800001, kind="<u4"))
values("zero's sign", h5t.IEEE_F64BE, ints(1, 0, kind=">u8"), ints(1, 1 << 63, kind=">u8"))
values("bit field", h5t.STD_B8LE, b"\1\2", b"\1\3")
values("enumeration", enum(a=1, b=2), b"\1\2", b"\1\1")
values("member", compound((b"a", h5t.STD_I8LE), (b"b", h5t.STD_I16BE)), b"abcdef", b"abcdeg")
values("array", h5t.array_create(h5t.STD_I8LE, (3,)), b"abcdef", b"abcdeg")
values("text's padding", text(3, h5t.STR_SPACEPAD), b"abcde ", b"abcde\0")
values("written or not", h5t.STD_I32LE, None, ints(0, 7))
values("in a chunk", h5t.STD_I32LE, ints(1, 2), ints(1, 3), "chunk at [0]: its 8 bytes", properties=chunked)
case("value: text of any length", strings("one", "two"), strings("one", "tvo"), "/s: value at [1]: what it leads to")
case("value: longer text", strings("one", "two"), strings("one", "two "), "/s: value at [1]")
case("value: no text and an empty one", dataset(b"s", text(0), (1,), raw=bytes(8)), strings(""), "/s: ")
case("value: sequence", sequences([1], [2, 3]), sequences([1], [2, 4]), "/v: value at [1]: what it leads to")
case("value: sequence's length", sequences([1], [2, 3]), sequences([1], [2]), "/v: value at [1]")
case("value: sequence's byte order", sequences([1], [2], of=">i4"), sequences([1], [0x2000000], of=">i4"),
     "/v: value at [1]")
case("value: sequence of texts", sequences(b"abcd", of=text(2)), sequences(b"abc\0", of=text(2)), "/v: value at [0]")
case("value: chunk missing", chunks(data=0), chunks(where=slice(0, 4), shape=(8,)), "/d: chunks: 2 in ORIGINAL, 1 in")
case("value: chunk that is fill", chunks(), chunks(where=slice(0, 0), data=0), "/d: chunks: 0 in ORIGINAL, 2 in")
case("value: mask of a chunk", chunks(data=np.arange(8), compression="gzip"),
     chunks(data=np.arange(8), compression="gzip", mask=1), "/d: chunk at [0]: mask of filters: 0 in ORIGINAL, 1 in")
case("value: filtered chunk", chunks(data=np.arange(8), compression="gzip"), chunks(
    data=np.arange(8) * (np.arange(8) < 7), compression="gzip"), "/d: chunk at [4]: ")

# --- references -------------------------------------------------------------------------------------------------------

for place, where in {"attribute": "/@r: value", "dataset": "/r: value at [1]", "compound": "/r: value at [0]",
                     "sequence": "/r: value at [1]", "fill value": "/r: fill value"}.items():  # fmt: skip
    case(f"reference in {place}", pointing(place, "x"), pointing(place, "y"), where)
for place, where in {"attribute": "/@r: value", "dataset": "/r: value at [1]"}.items():
    part, other = np.s_[1:3], np.s_[1:4]
    case(f"region in {place}", pointing(place, "x", part), pointing(place, "x", other), where)
    case(f"region's dataset in {place}", pointing(place, "x", part), pointing(place, "y", part), where)
case("reference to nothing", pointing("attribute", "x"), both(pointing("attribute", "x"), lambda f: f.attrs.create(
    "r", h5py.Reference(), dtype=h5py.ref_dtype)), "/@r: value")
