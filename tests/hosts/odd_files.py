# SPDX-License-Identifier: MIT OR Apache-2.0
"""HDF5 files of every kind that HDF5 lets one make: a type, a place where values of it lie, a format of the file.

`cases` names them, "TYPE.PLACE.FORMAT", "FEATURE.FORMAT" and "random.NUMBER"; `make` makes the file of a name, and its
bytes follow from the name alone, but for the times that HDF5 writes.

python tests/hosts/odd_files.py FOLDER <NAMES makes those of a list.
"""
import ctypes
import itertools
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path

import h5py
from h5py import h5d, h5f, h5g, h5i, h5p, h5s, h5t
from odd_features import FEATURES
from odd_types import TYPES, Box, ID, S, attribute, call, dataset, seed, values, write

POINTS_ELSEWHERE = ("vlen", "any_text", "region", "standard", "pair_vlen", "pair_refs", "pair_deep")


@dataclass(frozen=True)
class Format:
    """What a file is like around its objects."""

    low: int = h5f.LIBVER_EARLIEST
    links: int = 1
    tracked: bool = False
    block: int = 0
    strategy: tuple = ()
    shared: bool = False


FORMATS = {
    "earliest": Format(),
    "earliest9": Format(links=9, block=512),
    "v108": Format(h5f.LIBVER_V18, 9, tracked=True),
    "v110": Format(h5f.LIBVER_V110, 1, strategy=(h5f.FSPACE_STRATEGY_PAGE, True, 1)),
    "latest": Format(h5f.LIBVER_LATEST, 9, tracked=True, block=2048),
    "latest300": Format(h5f.LIBVER_LATEST, 300, tracked=True, shared=True),
    "shared": Format(h5f.LIBVER_EARLIEST, 1, shared=True),
    "tracked300": Format(h5f.LIBVER_EARLIEST, 300, tracked=True),
}


def create(path, form):
    """An empty file of a format."""
    fcpl, fapl = h5p.create(h5p.FILE_CREATE), h5p.create(h5p.FILE_ACCESS)
    fcpl.set_userblock(form.block)
    if form.tracked:
        fcpl.set_link_creation_order(h5p.CRT_ORDER_TRACKED | h5p.CRT_ORDER_INDEXED)
        fcpl.set_attr_creation_order(h5p.CRT_ORDER_TRACKED)
    if form.strategy:
        fcpl.set_file_space_strategy(*form.strategy)
    if form.shared:
        call("H5Pset_shared_mesg_nindexes", fcpl, 2)
        call("H5Pset_shared_mesg_index", fcpl, 0, 0x1 | 0x2, 30)  # spaces and types
        call("H5Pset_shared_mesg_index", fcpl, 1, 0x1 << 4 | 0x4, 40)  # attributes and fill values
    fapl.set_fclose_degree(h5f.CLOSE_STRONG)
    call("H5Pset_relax_file_integrity_checks", fapl, ctypes.c_uint64(1))  # 9 bits in 4 bytes, as HDF5 1.8 made them
    fapl.set_libver_bounds(form.low, h5f.LIBVER_LATEST)
    return h5py.File(h5f.create(os.fsencode(path), h5f.ACC_TRUNC, fcpl=fcpl, fapl=fapl))


# --- places -----------------------------------------------------------------------------------------------------------
def properties(layout=None, chunk=None):
    dcpl = h5p.create(h5p.DATASET_CREATE)
    if chunk:
        dcpl.set_chunk(chunk)
    elif layout is not None:
        dcpl.set_layout(layout)
    return dcpl


def plain(where, name, t, box, rng):
    write(dataset(where, name, t, (5, 4)), values(t, 20, box, rng))


def compact(where, name, t, box, rng):
    write(dataset(where, name, t, (4,), properties(h5d.COMPACT)), values(t, 4, box, rng))


def chunked(where, name, t, box, rng):
    """Partial chunks at both ends; numbers by the thousand, which `repack` compresses."""
    shape, chunk = ((50, 47), (20, 20)) if isinstance(t, (h5t.TypeIntegerID, h5t.TypeFloatID)) else ((5, 5), (2, 3))
    d = dataset(where, name, t, shape, properties(chunk=chunk), (None, shape[1]))
    write(d, values(t, shape[0] * shape[1], box, rng))


def zipped(where, name, t, box, rng):
    dcpl = properties(chunk=(4, 3))
    dcpl.set_shuffle()
    dcpl.set_deflate(4)
    # HDF5 ignores optional filters of arrays of any length, and refuses the others.
    if not t.detect_class(h5t.VLEN) and not t.detect_class(h5t.STRING):
        dcpl.set_fletcher32()
    write(dataset(where, name, t, (6, 5), dcpl), values(t, 30, box, rng))


def sparse(where, name, t, box, rng):
    """One chunk of many."""
    d = dataset(where, name, t, (30, 20), properties(chunk=(3, 2)), (None, None))
    there = h5s.create_simple((30, 20))
    there.select_hyperslab((16, 7), (2, 1))
    write(d, values(t, 2, box, rng), there)


def external(where, name, t, box, rng):
    size = 12 * t.get_size()
    beside = Path(os.fsdecode(box.file.id.name)).with_suffix(f".{len(box.held)}.raw")
    beside.write_bytes(rng.bytes(size + 7))
    dcpl = h5p.create(h5p.DATASET_CREATE)
    dcpl.set_external(os.fsencode(beside.name), 7, size)
    dataset(where, name, t, (12,), dcpl)


def virtual(where, name, t, box, rng):
    """A view of a dataset beside it, and two rows that nobody has."""
    source = name + b" source"
    write(dataset(where, source, t, (3, 4)), values(t, 12, box, rng))
    dcpl, part = h5p.create(h5p.DATASET_CREATE), h5s.create_simple((5, 4))
    part.select_hyperslab((1, 0), (3, 4))
    folder = h5i.get_name(where).rstrip(b"/")
    dcpl.set_virtual(part, b".", folder + b"/" + source, h5s.create_simple((3, 4)))
    dataset(where, name, t, (5, 4), dcpl)


def in_attribute(where, name, t, box, rng):
    attribute(where, name, t, (2, 2), box, rng)
    attribute(where, name + b" scalar", t, (), box, rng)
    attribute(where, name + b" none", t, None, box, rng)


def in_dense_attributes(where, name, t, box, rng):
    """More than eight, so that they leave the header where the format lets them."""
    g = h5g.create(where, name)
    for k in range(11):
        attribute(g, b"a%d" % (k * 7 % 11), t, (k % 3 + 1,), box, rng)


def in_compound(where, name, t, box, rng):
    at = t.get_size() + 1
    pair = h5t.create(h5t.COMPOUND, at + 5)
    pair.insert(b"first", 0, t)
    pair.insert("größe".encode(), at, h5t.STD_I32BE)
    write(dataset(where, name, pair, (7,)), values(pair, 7, box, rng))
    attribute(where, name + b" attribute", h5t.vlen_create(pair), (2,), box, rng)


def named(where, name, t, box, rng):
    """A named type, users before and behind it, an equal one, and one without a name."""
    first, second = t.copy(), t.copy()
    call("H5Tcommit2", where, S(name + b" type"), first, ID(0), ID(0), ID(0))
    write(dataset(where, name, first, (5,), properties(chunk=(2,))), values(first, 5, box, rng))
    call("H5Tcommit2", where, S(name + b" also"), second, ID(0), ID(0), ID(0))
    attribute(first, b"of the type", second, (2,), box, rng)
    attribute(where, name, first, (), box, rng)
    third = t.copy()
    call("H5Tcommit_anon", box.file.id, third, ID(0), ID(0))
    write(dataset(where, b"a " + name, third, (2,)), values(third, 2, box, rng))


def unwritten(where, name, t, box, rng):
    """Nothing but a fill value; no elements; no extent."""
    dcpl = properties(chunk=(4, 4))
    if not (box.shared and t.detect_class(h5t.VLEN)):  # HDF5 2.0 crashes on some of these
        call("H5Pset_fill_value", dcpl, t, values(t, 1, box, rng))
    d = dataset(where, name, t, (9, 9), dcpl, (None, 20))
    if not box.shared:
        d.set_extent((9, 10))
    dataset(where, name + b" none", t, (0, 3), properties(chunk=(1, 3)), (None, 3))
    dataset(where, name + b" null", t, None)
    write(dataset(where, name + b" scalar", t, ()), values(t, 1, box, rng))


PLACES = {f.__name__: f for f in (plain, compact, chunked, zipped, sparse, external, virtual, in_attribute,
                                  in_dense_attributes, in_compound, named, unwritten)}


def possible(kind, place):
    """Whether HDF5 makes it."""
    if place in ("external", "virtual"):
        return not kind.startswith(POINTS_ELSEWHERE) and "any_text" not in kind
    return True


# --- names of files, and files ----------------------------------------------------------------------------------------
def cases(randoms=300):
    """The names of all files. A type in a place has every third format; each format has every type and every place."""
    found = []
    for (i, kind), (j, place) in itertools.product(enumerate(TYPES), enumerate(PLACES)):
        if possible(kind, place):
            forms = list(FORMATS)
            found += [f"{kind}.{place}.{forms[(i + 3 * j + k) % len(forms)]}" for k in (0, 3, 5)]
    found += [f"{feature}.{form}" for feature in FEATURES for form in FORMATS]
    return found + [f"random.{k}" for k in range(randoms)]


def links(where, form):
    """Fills a group up with links of all kinds, in an order that is not their names'."""
    for k in range(form.links - 1):
        name = f"link {(k * 7919) % 997}".encode()
        if k % 3 == 0:
            h5g.create(where, name)
        elif k % 3 == 1:
            where.links.create_soft(name, b"../nowhere/%d" % k)
        else:
            where.links.create_hard(name, where, b"link %d" % ((k // 3 * 3 * 7919) % 997))


def place_at_random(box, form, rng):
    """Types, places and features in groups in groups."""
    at = [h5g.open(box.file.id, b"/")]
    for k in range(rng.integers(4, 16)):
        where = at[rng.integers(len(at))]
        if rng.random() < 0.3:
            at.append(h5g.create(where, b"group %d" % k))
        if rng.random() < 0.2:
            FEATURES[rng.choice(list(FEATURES))](h5g.create(where, b"feature %d" % k), box, rng)
            continue
        kind, place = rng.choice(list(TYPES)), rng.choice(list(PLACES))
        if possible(kind, place):
            PLACES[place](where, b"x%d" % k, TYPES[kind](box), box, rng)
    links(at[-1], form)


def make(name, path):
    """The file of a name."""
    rng, parts = seed(name), name.split(".")
    form = FORMATS[rng.choice(list(FORMATS))] if parts[0] == "random" else FORMATS[parts[-1]]
    with create(path, form) as file:
        box = Box(file, form.shared)
        if parts[0] == "random":
            place_at_random(box, form, rng)
        else:
            gcpl = h5p.create(h5p.GROUP_CREATE)
            if form.tracked:
                gcpl.set_link_creation_order(h5p.CRT_ORDER_TRACKED)
                gcpl.set_attr_creation_order(h5p.CRT_ORDER_TRACKED | h5p.CRT_ORDER_INDEXED)
            where = h5g.create(file.id, b"here", gcpl=gcpl)
            if len(parts) == 2:
                FEATURES[parts[0]](where, box, rng)
            else:
                PLACES[parts[1]](where, b"x", TYPES[parts[0]](box), box, rng)
            links(where, form)
    if form.block:
        with open(path, "r+b") as f:
            f.write(seed(name).bytes(form.block))


def main(folder):
    """Makes the files whose names stand in the lines of the input; prints those that HDF5 does not make, with its
    reasons, as JSON."""
    refused = {}
    for name in sys.stdin.read().splitlines():
        try:
            make(name, Path(folder, name + ".h5"))
        except (OSError, RuntimeError, ValueError) as why:
            refused[name] = str(why)
    print(json.dumps(refused))


if __name__ == "__main__":
    main(*sys.argv[1:])
