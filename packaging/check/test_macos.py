# SPDX-License-Identifier: MIT OR Apache-2.0
"""Wheels for macOS, as far as files can be checked: nothing of them is run here."""
import re
import zipfile

import pytest
from conftest import LICENCES, ROOT, VERSION, licences_of, run, tool
from macholib import mach_o
from macholib.MachO import MachO

# The oldest macOS that Rust builds for.
OLDEST = {"arm64": (11, 0), "x86_64": (10, 12)}
# Every macOS has them; the second brings the third.
LIBRARIES = {f"/usr/lib/{name}.dylib" for name in ("libSystem.B", "libiconv.2", "libcharset.1")}
# Kinds of files, by mach-o/loader.h.
PROGRAM, LIBRARY = 2, 6


@pytest.fixture(scope="module")
def wheels():
    run("make", "-s", "wheel-macos")
    return {path.stem.split("macosx_")[1].split("_", 2)[2]: path for path in
            (ROOT / "target/wheel-macos").glob(f"h5z_gpu-{VERSION}-*-macosx_*.whl")}


def read(wheel, name, tmp_path):
    with zipfile.ZipFile(wheel) as z:
        (tmp_path / "file").write_bytes(z.read(name))
    (header,) = MachO(str(tmp_path / "file")).headers
    return header


def commands(header, *kinds):
    return [(command, data) for load, command, data in header.commands if load.cmd in kinds]


@pytest.mark.parametrize("processor", OLDEST)
def test_names_are_true_and_libraries_are_whole(wheels, processor, tmp_path):
    wheel, (major, minor) = wheels[processor], OLDEST[processor]
    assert wheel.name == f"h5z_gpu-{VERSION}-py3-none-macosx_{major}_{minor}_{processor}.whl"
    for name, kind in ("h5z_gpu/plugin/libh5zgpu.dylib", LIBRARY), ("h5z_gpu/bin/h5z-gpu", PROGRAM):
        header = read(wheel, name, tmp_path)
        assert header.header.filetype == kind
        assert mach_o.CPU_TYPE_NAMES[header.header.cputype].lower() == processor
        linked = {data.rstrip(b"\0").decode() for _, data in commands(header, mach_o.LC_LOAD_DYLIB)}
        assert linked <= LIBRARIES, linked
        if processor == "arm64":  # which runs nothing that is not signed
            assert commands(header, mach_o.LC_CODE_SIGNATURE)
    with zipfile.ZipFile(wheel) as z:
        assert [n for n in z.namelist() if "/plugin/" in n] == ["h5z_gpu/plugin/libh5zgpu.dylib"], "alone in its folder"
        assert not [n for n in z.namelist() if n.startswith("h5z_gpu/preload/")]


@pytest.mark.parametrize("processor", OLDEST)
def test_every_function_of_the_header_is_in_it(wheels, processor, tmp_path):
    read(wheels[processor], "h5z_gpu/plugin/libh5zgpu.dylib", tmp_path)
    names = (tmp_path / "file").read_bytes()  # its table of symbols among them
    header = (ROOT / "plugin/include/h5z_gpu.h").read_text()
    functions = set(re.findall(r"\b(h5z_gpu_[a-z0-9_]+)\(", header)) | {"H5PLget_plugin_type", "H5PLget_plugin_info"}
    assert len(functions) > 20 and all(f"\0_{name}\0".encode() in names for name in functions)


@pytest.mark.parametrize("processor", OLDEST)
def test_the_checkers_find_nothing(wheels, processor):
    assert "PASSED" in tool("twine", "check", "--strict", wheels[processor])
    assert tool("check-wheel-contents", wheels[processor]).strip().endswith("OK")
    assert wheels[processor].stat().st_size <= 6_000_000 and licences_of(wheels[processor]) == LICENCES
