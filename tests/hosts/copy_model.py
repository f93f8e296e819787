# SPDX-License-Identifier: MIT OR Apache-2.0
"""Makes HDF5 files of every kind, and copies each by `repack`: `copy_model.py FOLDER SEED`.

A file has one format, order of links and strategy; in it are datasets and attributes of types that are drawn: integers
of both orders and of 24 bits, texts, opaque data, time, references, in compounds, arrays and arrays of any length,
named or not; in every layout. Values are written as bytes in the file's type. NAME.h5 becomes NAME.copy.h5; both are
for others to compare.
"""
import contextlib
import ctypes
import io
import sys
from pathlib import Path

import h5py
import numpy as np
from h5py import h5d, h5p, h5s, h5t
from h5z_gpu import cli
from h5z_gpu.cli.hdf5 import calls
from h5z_gpu.cli.places import TEXT, VLEN, holds, places_in

FORMATS = {
    "old": dict(libver=("earliest", "v108")), "new": dict(libver=("v110", "v110")),
    "ordered": dict(track_order=True, userblock_size=512), "paged": dict(fs_strategy="page", fs_persist=True),
}
LAYOUTS = ("contiguous", "compact", "chunks", "gzip", "sparse", "unwritten")
SHAPE, CHUNK = (12, 10), (5, 4)


class Model:
    """One file that is being made."""

    def __init__(self, file, rng):
        self.file, self.rng, self.kept, self.named = file, rng, [], []
        file["aim"] = np.arange(20.0)
        file.create_group("aim_too")

    def base(self):
        """A type without parts."""
        bits = h5t.STD_I32BE.copy()
        bits.set_precision(24)
        bits.set_size(3)
        tag = h5t.create(h5t.OPAQUE, 5)
        tag.set_tag(b"a tag")
        text = h5t.C_S1.copy()
        text.set_size(4)
        any_text = h5t.C_S1.copy()
        any_text.set_size(h5t.VARIABLE)
        colours = h5t.enum_create(h5t.STD_I16BE)
        for name, value in ((b"red", 1), (b"blue", 2)):
            colours.enum_insert(name, value)
        every = [h5t.STD_I32BE, h5t.STD_U64LE, h5t.IEEE_F32LE, h5t.IEEE_F64BE, bits, tag, text, any_text, colours,
                 h5t.STD_B16BE, h5t.UNIX_D32LE, h5t.STD_REF_OBJ, h5t.STD_REF_OBJ, h5t.STD_REF_DSETREG]
        return every[self.rng.integers(len(every))]

    def kind(self, depth=2):
        """A type, of parts or not."""
        draw = self.rng.integers(6) if depth else 9
        if draw == 0:
            return h5t.vlen_create(self.kind(depth - 1))
        if draw == 1:
            return h5t.array_create(self.kind(depth - 1), (2, 2))
        if draw < 4:
            parts = [self.kind(depth - 1) for _ in range(3)]
            made = h5t.create(h5t.COMPOUND, sum(p.get_size() for p in parts) + 2)
            at = 1
            for name, part in zip((b"a", b"b", b"c"), parts):
                made.insert(name, at, part)
                at += part.get_size()
            return made
        return self.base()

    def element(self, kind):
        """Bytes of an element in memory."""
        if isinstance(kind, h5t.TypeReferenceID):
            raw = ctypes.create_string_buffer(kind.get_size())
            if kind.equal(h5t.STD_REF_OBJ):
                if self.rng.integers(4):
                    calls.H5Rcreate(raw, self.file.id, self.rng.choice([b"aim", b"aim_too"]), 0, -1)
            else:
                space = h5s.create_simple((20,))
                space.select_hyperslab((3,), (4,))
                calls.H5Rcreate(raw, self.file.id, b"aim", 1, space)
            return raw.raw
        if isinstance(kind, h5t.TypeVlenID):
            count = int(self.rng.integers(4))
            inner = b"".join(self.element(kind.get_super()) for _ in range(count))
            return np.array([count, self.keep(inner) if count else 0], np.uintp).tobytes()
        if isinstance(kind, h5t.TypeStringID):
            text = bytes(self.rng.integers(97, 123, 4, dtype="u1"))
            return np.array([self.keep(text + b"\0")], np.uintp).tobytes() if kind.is_variable_str() else text
        if isinstance(kind, h5t.TypeCompoundID):
            raw = bytearray(kind.get_size())
            for k in range(kind.get_nmembers()):
                part = self.element(kind.get_member_type(k))
                raw[kind.get_member_offset(k) : kind.get_member_offset(k) + len(part)] = part
            return bytes(raw)
        if isinstance(kind, h5t.TypeArrayID):
            return b"".join(self.element(kind.get_super()) for _ in range(4))
        if isinstance(kind, h5t.TypeEnumID):
            return b"\0\1" if self.rng.integers(2) else b"\0\2"
        return bytes(self.rng.integers(1, 100, kind.get_size(), dtype="u1"))

    def keep(self, raw):
        self.kept.append(ctypes.create_string_buffer(raw, len(raw)))
        return ctypes.addressof(self.kept[-1])

    def named_or_not(self, kind):
        if self.rng.integers(3):
            return kind
        if not self.named or self.rng.integers(2):
            kind.commit(self.file.id, b"named%d" % len(self.named))
            self.named.append(kind)
        return self.named[self.rng.integers(len(self.named))]

    def dataset(self, name, layout):
        kind, properties = self.named_or_not(self.kind().copy()), h5p.create(h5p.DATASET_CREATE)
        if layout == "compact":
            properties.set_layout(h5d.COMPACT)
        if layout in ("chunks", "gzip", "sparse"):
            properties.set_chunk(CHUNK)
        if layout in ("gzip", "sparse"):
            properties.set_deflate(1)
        if not self.rng.integers(3):
            properties.set_attr_creation_order(h5p.CRT_ORDER_TRACKED)
        # HDF5 2.0 cannot read fill values of any length again where elements beside them were written.
        safe = layout == "unwritten" or not holds(places_in(kind), VLEN, TEXT)
        if safe and not kind.detect_class(h5t.REFERENCE) and self.rng.integers(2):
            calls.H5Pset_fill_value(properties, kind, ctypes.create_string_buffer(self.element(kind), kind.get_size()))
        shape = (20, 12) if layout == "sparse" else SHAPE if layout != "compact" else (3, 2)
        made = h5d.create(self.file.id, name, kind, h5s.create_simple(shape), dcpl=properties)
        if layout != "unwritten":
            extents = (3, 2) if layout in ("sparse", "compact") else SHAPE
            there = made.get_space()
            there.select_hyperslab((0, 0) if layout != "sparse" else (11, 9), extents)
            self.write(lambda *ends: calls.H5Dwrite(made, kind.copy(), *ends),
                       kind, extents[0] * extents[1], h5s.create_simple((extents[0] * extents[1],)), there, 0)
        for k in range(self.rng.integers(4)):
            self.attribute(made, b"%c%d" % (122 - k, k))

    def attribute(self, item, name):
        kind, count = self.named_or_not(self.kind(1).copy()), int(self.rng.integers(4))
        made = h5py.h5a.AttrID(calls.H5Acreate2(item, name, kind, h5s.create_simple((count,)), 0, 0))
        if count:
            self.write(lambda *ends: calls.H5Awrite(made, kind.copy(), *ends), kind, count)

    def write(self, call, kind, count, *more):
        raw = b"".join(self.element(kind) for _ in range(count))
        call(*more, ctypes.create_string_buffer(raw, len(raw)))


def make(path, seed, how):
    rng = np.random.default_rng(seed)
    with h5py.File(path, "w", **how) as f:
        model = Model(f, rng)
        for k, layout in enumerate(LAYOUTS * 3):
            model.dataset(b"%c_%s" % (122 - k, layout.encode()), layout)
        for k in range(11):
            f[f"many/{11 - k}"] = h5py.SoftLink("/aim") if k % 3 else h5py.ExternalLink("o.h5", "/x")
        f["many/loop"], f["again"] = f["/"], f["z_contiguous"]
        calls.H5Oset_comment(f["many"].id, b"of many links")
    return path


def main(folder, seed):
    for number, (name, how) in enumerate(FORMATS.items()):
        path = make(Path(folder) / f"{name}.h5", seed * 100 + number, how)
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            status = cli.main(["repack", str(path), str(path.with_suffix(".copy.h5")), "--lossless"])
        assert status == 0, (path, said.getvalue())


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
