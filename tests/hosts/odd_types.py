# SPDX-License-Identifier: MIT OR Apache-2.0
"""Types that HDF5 has and NumPy has not, and values for them as bytes.

`TYPES` has a function for each type; it is given the `Box` of a file, whose objects references lead to. `values` makes
elements of any type in the file's own representation: HDF5 then writes them without a conversion, so every bit is in
the file, those between the members of a compound too. Memory that elements point to lives as long as the Box.
"""
import ctypes
import zlib

import h5py
import numpy as np
from h5py import h5a, h5d, h5g, h5s, h5t

ID, S, C_SIZE = ctypes.c_int64, ctypes.c_char_p, ctypes.c_size_t


def _library():
    """The HDF5 that h5py has loaded."""
    with open("/proc/self/maps") as maps:
        paths = {line.split()[-1] for line in maps if "/libhdf5" in line and "_hl" not in line}
    return ctypes.CDLL(sorted(paths, key=lambda p: "h5py" not in p)[0])


H5 = _library()


def call(name, *arguments):
    """A function of HDF5's with its arguments as they are; what it answers, which is no failure."""
    function = getattr(H5, name)
    function.restype = ID
    known = [ID(a.id) if isinstance(a, h5py._objects.ObjectID) else a for a in arguments]
    answer = function(*known)
    if ctypes.c_int(answer).value < 0:
        raise OSError(f"{name} failed")
    return answer


class Box:
    """A file that is being made: objects that references lead to, and the memory that its elements point to."""

    def __init__(self, file, shared=False):
        self.file, self.held, self.shared = file, [], shared
        root = file.id
        self.goal = h5d.create(root, b"goal", h5t.STD_I32LE, h5s.create_simple((6, 5)))
        self.goal.write(h5s.ALL, h5s.ALL, np.arange(30, dtype="<i4").reshape(6, 5))
        a = h5a.create(self.goal, b"unit", h5t.STD_I16BE, h5s.create_simple((2,)))
        a.write(np.array([1, 2], "i2"))
        h5g.create(root, b"place")
        broken = h5d.create(root, b"broken", h5t.STD_I32LE, h5s.create_simple((3,)))
        broken.write(h5s.ALL, h5s.ALL, np.ones(3, "<i4"))

    def keep(self, data):
        """The address of these bytes."""
        self.held.append(ctypes.create_string_buffer(data, max(1, len(data))))
        return ctypes.addressof(self.held[-1])


# --- types ------------------------------------------------------------------------------------------------------------
def integer(base, size, precision, offset=0, pads=(0, 0)):
    t = base.copy()
    call("H5Tset_precision", t, C_SIZE(precision))
    t.set_size(size)
    call("H5Tset_offset", t, C_SIZE(offset))
    call("H5Tset_pad", t, *pads)
    return t


def real(base, size, fields, bias, precision=None, norm=h5t.NORM_IMPLIED):
    """A float of any format: `fields` are places of sign, exponent and mantissa as HDF5 counts them."""
    t = base.copy()
    if size > t.get_size():
        t.set_precision(size * 8)
    t.set_fields(*fields)
    t.set_precision(precision or size * 8)
    t.set_size(size)
    t.set_ebias(bias)
    t.set_norm(norm)
    return t


def text(size, pad, utf8=False):
    t = h5t.C_S1.copy()
    t.set_size(h5t.VARIABLE if size is None else size)
    t.set_strpad(pad)
    t.set_cset(h5t.CSET_UTF8 if utf8 else h5t.CSET_ASCII)
    return t


def opaque(size, tag):
    t = h5t.create(h5t.OPAQUE, size)
    t.set_tag(tag)
    return t


def compound(size, *members):
    """Members as (name, offset, type)."""
    t = h5t.create(h5t.COMPOUND, size)
    for name, offset, member in members:
        t.insert(name, offset, member)
    return t


def packed(*kinds):
    """A compound of these types with 3 bytes between them."""
    at, members = 0, []
    for k, t in enumerate(kinds):
        members.append((b"m%d" % k, at, t))
        at += t.get_size() + 3
    return compound(at, *members)


def enum(base, names):
    t = h5t.enum_create(base)
    for name, value in names:
        t.enum_insert(name, value)
    return t


def standard_reference():
    """H5R_ref_t, since HDF5 1.12."""
    return h5t.TypeReferenceID(call("H5Tcopy", ID(ID.in_dll(H5, "H5T_STD_REF_g").value)))


def _numbers():
    """Integers, bit fields and floats of HDF5's own, by their names, and those that only fields describe."""
    found = {}
    for kind, sizes in (("I", (8, 16, 32, 64)), ("U", (8, 16, 32, 64)), ("B", (8, 16, 32, 64))):
        for bits in sizes:
            for order in ("LE", "BE"):
                found[f"{kind.lower()}{bits}{order.lower()}"] = getattr(h5t, f"STD_{kind}{bits}{order}")
    for bits in (16, 32, 64):
        for order in ("LE", "BE"):
            found[f"f{bits}{order.lower()}"] = getattr(h5t, f"IEEE_F{bits}{order}")
    made = {name: (lambda box, t=t: t.copy()) for name, t in found.items()}
    made |= {
        "i24le": lambda box: integer(h5t.STD_I32LE, 3, 24),
        "u24be": lambda box: integer(h5t.STD_U32BE, 3, 24),
        "u40le": lambda box: integer(h5t.STD_U64LE, 5, 40),
        "i128be": lambda box: integer(h5t.STD_I64BE, 16, 128),
        "u12in16": lambda box: integer(h5t.STD_U16LE, 2, 12, 2),
        "i17in32": lambda box: integer(h5t.STD_I32BE, 4, 17, 5, (h5t.PAD_ONE, h5t.PAD_ZERO)),
        "b48": lambda box: integer(h5t.STD_B64LE, 6, 48),
        "quad": lambda box: real(h5t.IEEE_F64LE, 16, (127, 112, 15, 0, 112), 16383),
        "quad_be": lambda box: real(h5t.IEEE_F64BE, 16, (127, 112, 15, 0, 112), 16383),
        "long_double": lambda box: h5t.NATIVE_LDOUBLE.copy(),
        "bfloat16": lambda box: real(h5t.IEEE_F32LE, 2, (15, 7, 8, 0, 7), 127),
        "bfloat16_be": lambda box: real(h5t.IEEE_F32BE, 2, (15, 7, 8, 0, 7), 127),
        "f24": lambda box: real(h5t.IEEE_F32LE, 3, (23, 16, 7, 0, 16), 63),
        "e4m3": lambda box: real(h5t.IEEE_F16LE, 1, (7, 3, 4, 0, 3), 7),
        "f32in64": lambda box: real(h5t.IEEE_F64LE, 8, (31, 23, 8, 0, 23), 127, 32),
        "vax": lambda box: vax(),
    }
    return made


def vax():
    t = h5t.IEEE_F32LE.copy()
    t.set_order(h5t.ORDER_VAX)
    return t


def _texts():
    pads = {"term": h5t.STR_NULLTERM, "pad": h5t.STR_NULLPAD, "space": h5t.STR_SPACEPAD}
    made = {}
    for name, pad in pads.items():
        for letters, utf8 in (("ascii", False), ("utf8", True)):
            made[f"text_{name}_{letters}"] = lambda box, pad=pad, utf8=utf8: text(7, pad, utf8)
        made[f"text_{name}_1"] = lambda box, pad=pad: text(1, pad)
        made[f"any_text_{name}"] = lambda box, pad=pad: text(None, pad, pad == h5t.STR_NULLPAD)
    return made


def _mixed():
    """Types made of others."""
    i2, f8, f4be = h5t.STD_I16LE, h5t.IEEE_F64LE, h5t.IEEE_F32BE
    vlen, array = h5t.vlen_create, h5t.array_create
    colours = [(b"red", 0), (b"green", 1), (b"blue", 9)]
    return {
        "opaque": lambda box: opaque(5, b"five bytes"),
        "opaque_utf8": lambda box: opaque(1, "größe".encode()),
        "opaque_16": lambda box: opaque(16, b""),
        "enum_u8": lambda box: enum(h5t.STD_U8LE, colours),
        "enum_be": lambda box: enum(h5t.STD_I32BE, [(b"low", -5), *colours]),
        "enum_bool": lambda box: enum(h5t.STD_I8LE, [(b"FALSE", 0), (b"TRUE", 1)]),
        "time32": lambda box: h5t.UNIX_D32LE.copy(),
        "time64be": lambda box: h5t.UNIX_D64BE.copy(),
        "object": lambda box: h5t.STD_REF_OBJ.copy(),
        "region": lambda box: h5t.STD_REF_DSETREG.copy(),
        "standard": lambda box: standard_reference(),
        "array": lambda box: array(i2, (2, 3)),
        "array_be": lambda box: array(f4be, (4,)),
        "array_array": lambda box: array(array(f8, (2,)), (3,)),
        "array_text": lambda box: array(text(4, h5t.STR_NULLTERM), (2,)),
        "array_any_text": lambda box: array(text(None, h5t.STR_NULLTERM), (2,)),
        "array_object": lambda box: array(h5t.STD_REF_OBJ, (3,)),
        "vlen_i16": lambda box: vlen(i2),
        "vlen_be": lambda box: vlen(h5t.IEEE_F64BE),
        "vlen_text": lambda box: vlen(text(3, h5t.STR_NULLTERM)),
        "vlen_any_text": lambda box: vlen(text(None, h5t.STR_NULLTERM, True)),
        "vlen_vlen": lambda box: vlen(vlen(h5t.STD_U32BE)),
        "vlen_object": lambda box: vlen(h5t.STD_REF_OBJ),
        "vlen_region": lambda box: vlen(h5t.STD_REF_DSETREG),
        "vlen_standard": lambda box: vlen(standard_reference()),
        "vlen_enum": lambda box: vlen(enum(h5t.STD_U8LE, colours)),
        "vlen_opaque": lambda box: vlen(opaque(3, b"three")),
        "vlen_array": lambda box: vlen(array(i2, (2,))),
        "vlen_compound": lambda box: vlen(packed(i2, text(None, h5t.STR_NULLTERM), f4be)),
        "pair": lambda box: packed(i2, f8),
        "pair_be": lambda box: packed(f4be, h5t.STD_U64BE, text(5, h5t.STR_SPACEPAD)),
        "pair_tight": lambda box: compound(10, (b"a", 0, i2), ("größe".encode(), 2, f8)),
        "pair_disorder": lambda box: compound(24, (b"late", 16, f8), (b"early", 3, i2)),
        "pair_vlen": lambda box: packed(vlen(i2), f8, vlen(text(3, h5t.STR_NULLPAD))),
        "pair_refs": lambda box: packed(h5t.STD_REF_OBJ, i2, h5t.STD_REF_DSETREG, array(h5t.STD_REF_OBJ, (2,))),
        "pair_standard": lambda box: packed(i2, standard_reference()),
        "pair_deep": lambda box: packed(packed(packed(i2, vlen(h5t.STD_REF_OBJ)), f8), array(packed(i2, f8), (2,))),
        "pair_complex": lambda box: compound(16, (b"r", 0, f8), (b"i", 8, f8)),
        "pair_names": lambda box: packed(enum(h5t.STD_U8LE, colours), opaque(3, b"x"), h5t.STD_B8LE, h5t.UNIX_D32LE),
        "pair_300": lambda box: packed(*[i2] * 300),
        "complex": lambda box: h5t.COMPLEX_IEEE_F32LE.copy(),
        "complex_be": lambda box: h5t.COMPLEX_IEEE_F64BE.copy(),
        "complex_vlen": lambda box: vlen(packed(h5t.COMPLEX_IEEE_F16LE, i2)),
    }


TYPES = _numbers() | _texts() | _mixed()


# --- values -----------------------------------------------------------------------------------------------------------
WORDS = (b"", b"a", b"ab\0cd", "größe".encode(), b"longer than its room", b"   ", "\N{SNOWMAN}".encode() * 3)


FLOATS = {"<f4": h5t.IEEE_F32LE, "<f8": h5t.IEEE_F64LE, ">f4": h5t.IEEE_F32BE, ">f8": h5t.IEEE_F64BE}


def values(t, count, box, rng):
    """`count` elements of a type, as bytes."""
    if isinstance(t, h5t.TypeFloatID):
        for kind, known in FLOATS.items():
            if t.equal(known):
                return floats(count, rng).astype(kind).tobytes()
    if isinstance(t, (h5t.TypeFloatID, h5t.TypeIntegerID, h5t.TypeBitfieldID, h5t.TypeOpaqueID, h5t.TypeTimeID,
                      h5t.TypeComplexID)):
        return rng.bytes(t.get_size() * count)
    return b"".join(one(t, box, rng) for _ in range(count))


def floats(count, rng):
    """A curve with noise, and some numbers that are no ordinary ones."""
    x = np.cumsum(rng.normal(size=count)) + rng.normal() * 100
    odd = rng.random(count) < 0.05
    x[odd] = rng.choice([0.0, -0.0, np.inf, -np.inf, np.nan], odd.sum())
    return x


def one(t, box, rng):
    size = t.get_size()
    if isinstance(t, h5t.TypeCompoundID):
        element = bytearray(rng.bytes(size))
        for k in range(t.get_nmembers()):
            member, at = t.get_member_type(k), t.get_member_offset(k)
            element[at : at + member.get_size()] = one(member, box, rng)
        return bytes(element)
    if isinstance(t, h5t.TypeArrayID):
        return values(t.get_super(), int(np.prod(t.get_array_dims())), box, rng)
    if isinstance(t, h5t.TypeVlenID):
        n = int(rng.integers(0, 4))
        return np.array([n, box.keep(values(t.get_super(), n, box, rng)) if n else 0], np.uint64).tobytes()
    if isinstance(t, h5t.TypeStringID):
        word = WORDS[rng.integers(len(WORDS))]
        if t.is_variable_str():
            address = 0 if rng.random() < 0.1 else box.keep(word.split(b"\0")[0] + b"\0")
            return np.array([address], np.uint64).tobytes()
        return word[:size].ljust(size, b" " if t.get_strpad() == h5t.STR_SPACEPAD else b"\0")
    if isinstance(t, h5t.TypeReferenceID):
        return reference(t, box, rng)
    if isinstance(t, h5t.TypeEnumID):
        value = t.get_member_value(int(rng.integers(t.get_nmembers())))
        order = "big" if t.get_super().get_order() == h5t.ORDER_BE else "little"
        return int(value).to_bytes(size, order, signed=value < 0)
    return values(t, 1, box, rng)


def reference(t, box, rng):
    """An object, a region or an attribute; one in ten is empty."""
    room = ctypes.create_string_buffer(max(t.get_size(), 64))
    old = t.get_size() in (8, 12)
    if rng.random() < 0.1:
        return room.raw[: t.get_size()]
    name = (b"/", b"/goal", b"/place")[rng.integers(3)]
    space = h5s.create_simple((6, 5))
    if rng.random() < 0.5:
        space.select_hyperslab((1, 0), (2, 3), stride=(2, 1))
    else:
        space.select_elements(np.array([[0, 1], [5, 4], [2, 2]], np.uint64))
    if t.equal(h5t.STD_REF_OBJ):
        call("H5Rcreate", room, box.file.id, S(name), 0, ID(-1))
    elif old:
        call("H5Rcreate", room, box.file.id, S(b"/goal"), 1, space)
    else:
        kind = rng.integers(3)
        if kind == 0:
            call("H5Rcreate_object", box.file.id, S(name), ID(0), room)
        elif kind == 1:
            call("H5Rcreate_region", box.file.id, S(b"/goal"), space, ID(0), room)
        else:
            call("H5Rcreate_attr", box.file.id, S(b"/goal"), S(b"unit"), ID(0), room)
    return room.raw[: t.get_size()]


def seed(name):
    """Random numbers that belong to a name."""
    return np.random.default_rng(zlib.crc32(name.encode()))


# --- written without a conversion ------------------------------------------------------------------------------------
def write(dataset, data, there=None):
    """Elements as bytes into a dataset, or into a selection of it."""
    n = len(data) // dataset.get_type().get_size()
    if n:
        here = h5s.create_simple((n,))
        call("H5Dwrite", dataset, dataset.get_type(), here, there or dataset.get_space(), ID(0), data)


def dataset(where, name, t, shape, dcpl=None, most=None):
    """A dataset of any type; `shape` () is a scalar, None an empty one; None in `most` is without a limit."""
    most = most and tuple(h5s.UNLIMITED if n is None else n for n in most)
    space = h5s.create_simple(shape, most) if shape else h5s.create(h5s.SCALAR if shape == () else h5s.NULL)
    return h5d.DatasetID(call("H5Dcreate2", where, S(name), t, space, ID(0), dcpl if dcpl is not None else ID(0),
                              ID(0)))


def attribute(where, name, t, shape, box, rng):
    """An attribute of any type; `shape` () is a scalar, None an empty one."""
    space = h5s.create(h5s.NULL if shape is None else h5s.SCALAR) if not shape else h5s.create_simple(shape)
    acpl = ID(call("H5Pcreate", ID(ID.in_dll(H5, "H5P_CLS_ATTRIBUTE_CREATE_ID_g").value)))
    call("H5Pset_char_encoding", acpl, h5t.CSET_ASCII if name.isascii() else h5t.CSET_UTF8)
    made = ID(call("H5Acreate2", where, S(name), t, space, acpl, ID(0)))
    if shape is not None and np.prod(shape):
        call("H5Awrite", made, t, values(t, int(np.prod(shape)), box, rng))
    call("H5Aclose", made)
    call("H5Pclose", acpl)
