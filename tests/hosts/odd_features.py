# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a group of an HDF5 file can hold besides values: links, comments, states of filling, indexes, filters, scales.

`FEATURES` has a function for each; it is given a group, the `Box` of its file, and random numbers.
"""
import ctypes
import itertools
import os
from pathlib import Path

import h5py
import numpy as np
from h5py import h5d, h5ds, h5g, h5p, h5t, h5z
from odd_types import ID, S, attribute, call, dataset, packed, text, values, write

OURS = 443
FLOAT, INT = h5t.IEEE_F32LE, h5t.STD_I32BE


def numbers(where, name, t=FLOAT, shape=(40, 50), dcpl=None, most=None, fill=True, rng=None):
    """A dataset of numbers, large enough to be compressed."""
    made = dataset(where, name, t, shape, dcpl, most)
    if fill and np.prod(shape):
        write(made, values(t, int(np.prod(shape)), None, rng or np.random.default_rng(len(name))))
    return made


def chunks(*shape):
    dcpl = h5p.create(h5p.DATASET_CREATE)
    dcpl.set_chunk(shape)
    return dcpl


# --- names, links, comments -------------------------------------------------------------------------------------------
def comments(where, box, rng):
    t = h5t.STD_I16LE.copy()
    call("H5Tcommit2", where, S(b"type"), t, ID(0), ID(0), ID(0))
    for k, each in enumerate((where, numbers(where, b"d", rng=rng), h5g.create(where, b"g"), t)):
        call("H5Oset_comment", each, S((b"", b"a comment", "größe".encode(), b"x" * 3000)[(k + 1) % 4]))


def soft_links(where, box, rng):
    for name, to in ((b"nowhere", b"/no/where"), (b"up", b".."), (b"self", b"self"), (b"empty name", b"."),
                     ("größe".encode(), "/größe".encode()), (b"good", b"/goal"), (b"long", b"/" + b"x" * 5000)):
        lcpl = h5p.create(h5p.LINK_CREATE)
        lcpl.set_char_encoding(h5t.CSET_ASCII if name.isascii() else h5t.CSET_UTF8)
        where.links.create_soft(name, to, lcpl=lcpl)


def external_links(where, box, rng):
    for name, file, to in ((b"lost", b"missing.h5", b"/x"), (b"there", b"folder/other.h5", b"goal"),
                           ("größe".encode(), "größe.h5".encode(), "/größe".encode()), (b"long", b"y" * 300, b"/z")):
        where.links.create_external(name, file, to)


class _LinkClass(ctypes.Structure):
    _fields_ = [("version", ctypes.c_int), ("id", ctypes.c_int), ("comment", S),
                *((n, ctypes.c_void_p) for n in ("create", "move", "copy", "traverse", "remove", "query"))]


_NO_WAY = ctypes.CFUNCTYPE(ID, S, ID, ctypes.c_void_p, ctypes.c_size_t, ID, ID)(lambda *a: -1)


def user_links(where, box, rng):
    """Links of a class of the user's own: with bytes, and without."""
    kind = _LinkClass(1, 187, b"own", None, None, None, ctypes.cast(_NO_WAY, ctypes.c_void_p), None, None)
    call("H5Lregister", ctypes.byref(kind))
    for name, data in ((b"some", b"some \0 bytes"), (b"none", b""), (b"much", bytes(1000))):
        call("H5Lcreate_ud", where, S(name), 187, data or None, ctypes.c_size_t(len(data)), ID(0), ID(0))
    call("H5Lunregister", 187)


def hard_links(where, box, rng):
    """Many names of one object, cycles, and a link to the root."""
    numbers(where, b"first", rng=rng)
    inner = h5g.create(where, b"inner")
    for name, to in ((b"a", b"first"), (b"z", b"first"), (b"m", b"inner")):
        where.links.create_hard(name, where, to)
    for name, to in ((b"cycle", where), (b"root", box.file.id)):
        call("H5Olink", to, inner, S(name), ID(0), ID(0))
    call("H5Olink", inner, inner, S(b"itself"), ID(0), ID(0))


def deep(where, box, rng):
    for _ in range(200):
        where = h5g.create(where, b"g")
    numbers(where, b"d", rng=rng)


def names(where, box, rng):
    """Names that text formats do not like, in both character sets."""
    for k, name in enumerate((b" ", b"a b", b"quote\"s", b"back\\slash", b"new\nline", b"tab\t", b"\xff\xfe", "größe",
                              "\N{SNOWMAN}", "e\N{COMBINING ACUTE ACCENT}", b"..", b"x" * 1000, b"=", b"a:b", b"*")):
        lcpl = h5p.create(h5p.LINK_CREATE)
        lcpl.set_char_encoding(h5t.CSET_UTF8 if isinstance(name, str) or k % 3 == 0 else h5t.CSET_ASCII)
        name = name.encode() if isinstance(name, str) else name
        h5g.create(where, name, lcpl)
        attribute(where, name, INT, (2,), box, rng)


def groups(where, box, rng):
    """Properties of groups that only a group's own creation list has."""
    for k in range(6):
        gcpl = h5p.create(h5p.GROUP_CREATE)
        if k == 1:
            call("H5Pset_link_phase_change", gcpl, 3, 1)
        elif k == 2:
            call("H5Pset_est_link_info", gcpl, 20, 30)
        elif k == 3:
            gcpl.set_link_creation_order(h5p.CRT_ORDER_TRACKED | h5p.CRT_ORDER_INDEXED)
        elif k == 4:
            call("H5Pset_attr_phase_change", gcpl, 2, 0)
        elif k == 5:
            call("H5Pset_deflate", gcpl, 3)
            call("H5Pset_link_phase_change", gcpl, 0, 0)
        g = h5g.create(where, b"g%d" % k, gcpl=gcpl)
        for j in (4, 1, 3, 2):
            g.links.create_soft(b"l%d" % j, b"x")
            attribute(g, b"a%d" % j, INT, (2,), box, rng)


# --- states of datasets -----------------------------------------------------------------------------------------------
def fill_states(where, box, rng):
    """Each fill value, fill time and allocation time, written and not."""
    times = (h5d.FILL_TIME_IFSET, h5d.FILL_TIME_NEVER, h5d.FILL_TIME_ALLOC)
    allocations = (h5d.ALLOC_TIME_DEFAULT, h5d.ALLOC_TIME_EARLY, h5d.ALLOC_TIME_LATE, h5d.ALLOC_TIME_INCR)
    for k, (value, time, allocation) in enumerate(itertools.product((None, "none", 7.5), times, allocations)):
        dcpl = chunks(20, 20) if k % 2 or allocation == h5d.ALLOC_TIME_INCR else h5p.create(h5p.DATASET_CREATE)
        dcpl.set_alloc_time(allocation)
        if time == h5d.FILL_TIME_ALLOC and value == "none":
            time = h5d.FILL_TIME_NEVER  # the two contradict each other
        dcpl.set_fill_time(time)
        if value == "none":
            call("H5Pset_fill_value", dcpl, FLOAT, None)
        elif value:
            dcpl.set_fill_value(np.array(value, "f4"))
        # What was never written has no value where the fill value is undefined or not written.
        written = k % 3 == 0 or time == h5d.FILL_TIME_NEVER or value == "none"
        numbers(where, b"d%d" % k, dcpl=dcpl, fill=written, rng=rng)


def indexes(where, box, rng):
    """Each index of chunks that HDF5 has."""
    unlimited = None
    for k, (most, filtered, early) in enumerate(
        itertools.product(((40, 50), (unlimited, 50), (unlimited, unlimited), (100, 200)), (0, 1), (0, 1))):
        dcpl = chunks(16, 17)
        if filtered:
            dcpl.set_deflate(2)
        if early:
            dcpl.set_alloc_time(h5d.ALLOC_TIME_EARLY)
        numbers(where, b"d%d" % k, dcpl=dcpl, most=most, rng=rng)
    numbers(where, b"one chunk", dcpl=chunks(40, 50), rng=rng)
    d = numbers(where, b"shrunk", dcpl=chunks(16, 17), most=(None, None), rng=rng)
    if not box.shared:  # HDF5 2.0 does not find a shared extent again
        d.set_extent((20, 30))
        d.set_extent((45, 30))


def extents(where, box, rng):
    for k, shape in enumerate(((0,), (0, 5), (1,) * 32, (1, 1, 2000), (3000,))):
        numbers(where, b"d%d" % k, shape=shape, rng=rng)
        numbers(where, b"c%d" % k, shape=shape, dcpl=chunks(*(max(1, n // 2) for n in shape)), rng=rng)
    numbers(where, b"more", shape=(0, 50), dcpl=chunks(4, 50), most=(None, 50))


def edge_chunks(where, box, rng):
    """Chunks that reach over the end are stored without the filters."""
    for k, t in enumerate((FLOAT, INT, h5t.IEEE_F64BE)):
        dcpl = chunks(16, 16)
        call("H5Pset_chunk_opts", dcpl, 2)
        dcpl.set_deflate(3)
        numbers(where, b"d%d" % k, t, dcpl=dcpl, most=(None, 50), rng=rng)


def masks(where, box, rng):
    """A chunk that skips one filter, and one that skips all."""
    dcpl = chunks(10, 25)
    dcpl.set_shuffle()
    dcpl.set_deflate(3)
    d = numbers(where, b"d", dcpl=dcpl, rng=rng)
    d.write_direct_chunk((10, 25), np.arange(250, dtype="f4").tobytes(), 3)
    mask, raw = d.read_direct_chunk((0, 0))
    d.write_direct_chunk((20, 0), raw, mask)


def _filtered(set_filters, kinds=(FLOAT, INT, h5t.IEEE_F64BE, h5t.STD_U8LE)):
    def feature(where, box, rng):
        for k, t in enumerate(kinds):
            dcpl = chunks(15, 20)
            set_filters(dcpl, t)
            numbers(where, b"d%d" % k, t, dcpl=dcpl, rng=rng)

    return feature


def _scale_offset(dcpl, t):
    real = isinstance(t, h5t.TypeFloatID)
    dcpl.set_scaleoffset(0 if real else 2, 3 if real else 0)
    dcpl.set_fletcher32()


def _nbit(where, box, rng):
    for k, (bits, offset) in enumerate(((12, 2), (17, 5), (9, 0))):
        t = h5t.STD_I32LE.copy()
        t.set_precision(bits)
        t.set_offset(offset)
        dcpl = chunks(15, 20)
        call("H5Pset_nbit", dcpl)
        numbers(where, b"d%d" % k, t, dcpl=dcpl, rng=rng)


def _ours(dcpl, t):
    dcpl.set_filter(OURS, h5z.FLAG_OPTIONAL, (11003,) if isinstance(t, h5t.TypeFloatID) else (90000,))


def _all(dcpl, t):
    dcpl.set_shuffle()
    _ours(dcpl, t)
    dcpl.set_fletcher32()


# --- types and references ---------------------------------------------------------------------------------------------
def lone_types(where, box, rng):
    """Types that have a name, had one, and are named after their first use; attributes on them."""
    t, late = packed(h5t.STD_I16LE, FLOAT), packed(h5t.STD_I16LE, FLOAT)
    call("H5Tcommit2", where, S(b"gone"), t, ID(0), ID(0), ID(0))
    attribute(t, b"note", INT, (2,), box, rng)
    for name in (b"d1", b"d2"):
        numbers(where, name, t, (5,), rng=rng)
    where.unlink(b"gone")
    call("H5Tcommit_anon", box.file.id, late, ID(0), ID(0))
    numbers(where, b"e", late, (5,), rng=rng)
    call("H5Olink", late, where, S(b"z late"), ID(0), ID(0))
    call("H5Olink", late, where, S(b"alias"), ID(0), ID(0))
    outer = h5t.vlen_create(late)
    call("H5Tcommit2", where, S(b"outer"), outer, ID(0), ID(0), ID(0))


def self_reference(where, box, rng):
    """References to the dataset itself, to objects that only references lead to in the end, and to types."""
    t = h5t.STD_I16LE.copy()
    call("H5Tcommit2", where, S(b"type"), t, ID(0), ID(0), ID(0))
    d = numbers(where, b"d", h5t.STD_REF_OBJ, (3,), fill=False)
    data = b""
    for name in (b"d", b"type", b"."):
        room = ctypes.create_string_buffer(8)
        call("H5Rcreate", room, where, S(name), 0, ID(-1))
        data += room.raw
    write(d, data)
    dcpl = chunks(4)
    call("H5Pset_fill_value", dcpl, h5t.STD_REF_OBJ, data[:8])
    numbers(where, b"cells", h5t.STD_REF_OBJ, (9,), dcpl=dcpl, fill=False, most=(None,))


def scales(where, box, rng):
    """Dimension scales, with names, labels, and one that several axes have."""
    lat, lon = (numbers(where, n, shape=(k,), rng=rng) for n, k in ((b"lat", 40), (b"lon", 50)))
    for name in (b"v", b"w"):
        v = numbers(where, name, rng=rng)
        for k, axis in enumerate((lat, lon)):
            if not h5ds.is_scale(axis):
                h5ds.set_scale(axis, b"named" if k else b"")
            h5ds.attach_scale(v, axis, k)
        h5ds.set_label(v, 0, "größe".encode())


def attributes(where, box, rng):
    """Many, large, and of texts in each padding."""
    d = numbers(where, b"d", rng=rng)
    for k in range(70):
        attribute(d, b"a%02d" % (k * 29 % 70), h5t.STD_U16BE, (k % 4 + 1,), box, rng)
    for pad in (h5t.STR_NULLTERM, h5t.STR_NULLPAD, h5t.STR_SPACEPAD):
        attribute(where, b"text%d" % pad, text(4, pad, pad == 1), (3,), box, rng)
    try:
        attribute(where, b"large", h5t.IEEE_F64BE, (9000,), box, rng)
    except OSError:  # old headers have room for 64 KiB
        attribute(where, b"large", h5t.IEEE_F64BE, (8000,), box, rng)


def times(where, box, rng):
    """Objects that do not say when they were made."""
    dcpl, gcpl = h5p.create(h5p.DATASET_CREATE), h5p.create(h5p.GROUP_CREATE)
    for each in (dcpl, gcpl):
        each.set_obj_track_times(False)
        each.set_attr_creation_order(h5p.CRT_ORDER_TRACKED)
    d, g = numbers(where, b"d", dcpl=dcpl, rng=rng), h5g.create(where, b"g", gcpl=gcpl)
    for name in (b"z", b"a", b"m"):
        attribute(d, name, INT, (2,), box, rng)
        attribute(g, name, INT, (2,), box, rng)


def files(where, box, rng):
    """Values in two files beside this one, and a view of datasets in others that are not there."""
    beside = Path(os.fsdecode(box.file.id.name))
    dcpl = h5p.create(h5p.DATASET_CREATE)
    for k in range(2):
        part = beside.with_suffix(f".part{k}.raw")
        part.write_bytes(rng.bytes(4000 + 3 * k))
        dcpl.set_external(os.fsencode(part.name), 3 * k, 4000)
    numbers(where, b"outside", dcpl=dcpl, fill=False)
    layout = h5py.VirtualLayout((4, 10), "f4")
    for k in range(3):
        layout[k] = h5py.VirtualSource(f"missing{k}.h5", "/größe", (10,))
    h5py.Group(h5g.GroupID(call("H5Gopen2", where, S(b"."), ID(0)))).create_virtual_dataset("view", layout, -5)


def conventions(where, box, rng):
    """A variable with several words for missing data, whose coordinates have two axes."""
    g = h5py.Group(h5g.GroupID(call("H5Gopen2", where, S(b"."), ID(0))))
    x = np.sin(np.arange(2000.0)).reshape(40, 50)
    g.create_dataset("lat2", data=x * 90), g.create_dataset("lon2", data=x * 180)
    v = g.create_dataset("v", data=x.astype("f4"), chunks=(10, 50), fillvalue=-999)
    v.attrs["coordinates"] = np.bytes_(b"lat2 lon2")
    v.attrs["missing_value"] = np.array([-999, -998.5], "f4")
    v.attrs["valid_range"] = np.array([-1, 1], "f4")
    v[3, :7] = -998.5
    g["packed"] = (x * 1000).astype("i2")
    g["packed"].attrs["scale_factor"] = 0.001


FEATURES = {f.__name__: f for f in (
    comments, soft_links, external_links, user_links, hard_links, deep, names, groups, fill_states, indexes, extents,
    edge_chunks, masks, lone_types, self_reference, scales, attributes, times, files, conventions)} | {
    "gzip": _filtered(lambda dcpl, t: dcpl.set_deflate(6)),
    "shuffle_fletcher": _filtered(lambda dcpl, t: (dcpl.set_shuffle(), dcpl.set_fletcher32())),
    "gzip_fletcher": _filtered(lambda dcpl, t: (dcpl.set_deflate(1), dcpl.set_fletcher32())),
    "lzf": _filtered(lambda dcpl, t: dcpl.set_filter(h5z.FILTER_LZF, h5z.FLAG_OPTIONAL)),
    "szip": _filtered(lambda dcpl, t: dcpl.set_szip(h5z.SZIP_NN_OPTION_MASK, 8)),
    "scale_offset": _filtered(_scale_offset),
    "nbit": _nbit,
    "ours": _filtered(_ours),
    "ours_between": _filtered(_all),
}
