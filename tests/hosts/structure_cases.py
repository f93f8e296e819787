# SPDX-License-Identifier: MIT OR Apache-2.0
"""Pairs of files that differ in one thing that HDF5 can say of a file, and what `verify` has to say of it: a name, what
makes the original and its copy, and a part of the sentence.
"""

import ctypes

import h5py
import numpy as np
from h5py import h5d, h5f, h5g, h5p, h5s, h5t
from structure_files import (
    File, asked, attribute, attributes, both, chunks, comment, compound, cut_by_the_edge, dataset, declared, enum,
    external, group, ints, library, link, listed, named, number, opaque, pointer, pointing, sequences, shared_type,
    attribute_of_type, strings, text, text_fill, user_link, virtual,
)

CASES = {}


def case(name, old, new, says):
    assert name not in CASES
    CASES[name] = (old, new, says)


# --- the file ---------------------------------------------------------------------------------------------------------

nothing = lambda f: None
block = lambda length: lambda p: p.set_userblock(length)
case("user block: length", File(nothing, block(512)), File(nothing, block(1024)),
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
two_names, two_objects = both(group(b"g"), lambda f: f.__setitem__("h", f["g"])), both(group(b"g"), group(b"h"))
case("hard links to one object", two_names, two_objects, "/h: leads to another object")
case("objects become one", two_objects, two_names, "/h: leads to another object")
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
typed("padding of any length", text(0), text(0, h5t.STR_SPACEPAD))
within = lambda kind: h5t.vlen_create(compound((b"a", h5t.STD_I8LE), (b"b", kind)))
typed("character set within a sequence", within(text(0)), within(text(0, charset=h5t.CSET_UTF8)))
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
case("attribute: value", one, attribute(b"a", h5t.STD_I32LE, ints(2)), "/@a: value: its bytes are 01000000 in")
case("attribute: type", one, attribute(b"a", h5t.STD_I32BE, ints(1)), "/@a: type")
case("attribute: extents", one, attribute(b"a", h5t.STD_I32LE, ints(1), (1,)), "/@a: extents: scalar in ORIGINAL, [1]")
case("attribute: charset of its name", one, attribute(b"a", h5t.STD_I32LE, ints(1), charset=h5t.CSET_UTF8),
     "/@a: character set of the name")
case("attribute: order", attributes("a", "b"), attributes("b", "a"), "/d: order of attributes: number 0: a in")
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
case("value: no text and an empty one", dataset(b"s", text(0), (1,), raw=bytes(8)), dataset(
    b"s", text(0), (1,), raw=pointer(b"")), "/s: ")
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
                     "sequence": "/r: value at [1]", "fill value": "/r: fill value"}.items():
    case(f"reference in {place}", pointing(place, "x"), pointing(place, "y"), where)
for place, where in {"attribute": "/@r: value", "dataset": "/r: value at [1]"}.items():
    part, other = np.s_[1:3], np.s_[1:4]
    case(f"region in {place}", pointing(place, "x", part), pointing(place, "x", other), where)
    case(f"region's dataset in {place}", pointing(place, "x", part), pointing(place, "y", part), where)
case("reference to nothing", pointing("attribute", "x"), both(pointing("attribute", "x"), lambda f: f.attrs.create(
    "r", h5py.Reference(), dtype=h5py.ref_dtype)), "/@r: value")
