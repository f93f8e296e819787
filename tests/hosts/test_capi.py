# SPDX-License-Identifier: MIT OR Apache-2.0
"""h5z_gpu.h and the package's table of it, capi.py, say the same: functions, structs, numbers, both ways."""
from __future__ import annotations

import ctypes
import importlib.util
import re
from ctypes import POINTER

import pytest
from conftest import ROOT, use

# By its path: the package would register the filter in this process, for other tests too.
_spec = importlib.util.spec_from_file_location("capi", ROOT / "plugin/python/h5z_gpu/capi.py")
capi = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(capi)

HEADER = ROOT / "plugin/include/h5z_gpu.h"
PLAIN = ("int", "int32_t", "int64_t", "uint8_t", "uint32_t", "uint64_t", "double")
NUMBERS = {name: getattr(ctypes, f"c_{name.removesuffix('_t')}") for name in PLAIN} | {"size_t": ctypes.c_size_t}
STRUCTS = {"h5z_gpu_array": capi.Array, "h5z_gpu_frame": capi.Frame, "h5z_gpu_chunks": capi.Chunks,
           "h5z_gpu_verdict": capi.Verdict}


class Header:
    """What the header declares, in the terms of ctypes."""

    def __init__(self, text: str) -> None:
        text = re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)
        defined = re.findall(r"^#define (\w+) (-?\d+)u? *$", text, re.MULTILINE)
        enums = re.findall(r"enum \w+ \{(.*?)\}", text, re.DOTALL)
        listed = [entry.split("=") for body in enums for entry in body.split(",")]
        self.numbers = {name.strip(): int(value) for name, value in [*defined, *listed]}
        self.ends = text.count(");")  # of functions and of types of functions
        text = re.sub(r"^#.*$", "", text, flags=re.MULTILINE).replace('extern "C" {', "")
        self.callbacks = set(re.findall(r"typedef [^;{]*?\(\*(\w+)\)\([^;]*;", text))
        self.opaque = {alias for tag, alias in re.findall(r"typedef struct (\w+) (\w+);", text)}
        structs = re.findall(r"typedef struct (\w+) \{(.*?)\} \1;", text, re.DOTALL)
        self.structs = {name: [self.field(one) for one in body.split(";")[:-1]] for name, body in structs}
        plain = re.sub(r"typedef [^;{]*(\{[^}]*\})?[^;]*;|enum \w+ \{[^}]*\};", "", text)
        found = re.findall(r"([\w\s*]+?)\b(h5z_gpu_\w+)\(([^;]*)\);", plain)
        self.functions = {name: (self.type(result), self.arguments(arguments)) for result, name, arguments in found}

    def arguments(self, text: str) -> tuple[object, ...]:
        return () if text.strip() == "void" else tuple(self.declared(one)[1] for one in text.split(","))

    def field(self, text: str) -> tuple[str, object]:
        """Name and type of a field, which may be an array."""
        array = re.search(r"\[(\d+)\]", text)
        name, kind = self.declared(text.replace(array[0], "") if array else text)
        return name, kind * int(array[1]) if array else kind

    def declared(self, text: str) -> tuple[str, object]:
        """Name and type of an argument, or of a field that is no array. An array as an argument is a pointer."""
        text, pointers = re.subn(r"\[\w*\]", "", text)
        kind, name = re.fullmatch(r"\s*(.*?)(\w+)\s*", text, re.DOTALL).groups()
        return name, self.type(kind + "*" * pointers)

    def type(self, text: str) -> object:
        words = re.sub(r"\bconst\b", " ", text).split()
        name, stars = words[0].rstrip("*"), text.count("*")
        if name == "char" or name == "void" or name in self.opaque or name in self.callbacks:
            # The innermost pointer is part of the type itself.
            found = ctypes.c_char_p if name == "char" else ctypes.c_void_p if stars or name != "void" else None
            stars -= stars > 0 and name not in self.callbacks
        else:
            found = STRUCTS.get(name) or NUMBERS[name]
        for _ in range(stars):
            found = POINTER(found)
        return found


@pytest.fixture(scope="module")
def header() -> Header:
    return Header(HEADER.read_text())


def test_every_function_is_declared_as_the_header_declares_it(header: Header) -> None:
    assert len(header.functions) + len(header.callbacks) == header.ends > 20
    other = {name: types for name, types in header.functions.items() if capi.FUNCTIONS.get(name) != types}
    assert other == {}, "capi.py has them otherwise, or not at all"
    assert capi.FUNCTIONS.keys() - header.functions.keys() == set(), "not in h5z_gpu.h"


def test_the_types_are_those_that_the_loaded_library_has() -> None:
    use("""if True:
        from h5z_gpu import capi
        from h5z_gpu.library import lib
        assert {n: (getattr(lib, n).restype, tuple(getattr(lib, n).argtypes)) for n in capi.FUNCTIONS} == capi.FUNCTIONS
    """)


def test_structs_have_the_header_s_fields(header: Header) -> None:
    assert header.structs == {name: list(struct._fields_) for name, struct in STRUCTS.items()}


def test_numbers_are_the_header_s(header: Header) -> None:
    mine = {f"H5Z_GPU_{name}": value for name, value in vars(capi).items() if name.isupper() and isinstance(value, int)}
    assert header.numbers == mine


def test_no_other_file_of_the_package_gives_types_to_functions() -> None:
    # loaded.py calls Windows, not the plugin.
    own = {"capi.py", "loaded.py"}
    others = [p for p in (ROOT / "plugin/python/h5z_gpu").rglob("*.py") if p.name not in own]
    assert [str(p) for p in others if re.search(r"\.(restype|argtypes)\b", p.read_text())] == []


def test_a_header_that_says_something_else_is_noticed(header: Header) -> None:
    text = HEADER.read_text()
    for old, new in [
        ("int64_t h5z_gpu_raw_len(const void *frame, size_t len);", ""),
        ("int64_t h5z_gpu_raw_len(", "int h5z_gpu_raw_len("),
        ("h5z_gpu_max_encoded(size_t raw_len)", "h5z_gpu_max_encoded(int raw_len)"),
        ("double range[2]", "double range"),
        ("uint8_t codec;", "uint32_t codec;"),
        ("H5Z_GPU_IO = -3", "H5Z_GPU_IO = -5"),
        ("#define H5Z_GPU_READ_ONLY 1u", "#define H5Z_GPU_READ_ONLY 4u"),
    ]:
        assert old in text
        other = Header(text.replace(old, new))
        assert vars(other) != vars(header), old
