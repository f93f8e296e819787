# SPDX-License-Identifier: MIT OR Apache-2.0
"""Build hook: any Python 3, but only the plugin's kind of machine, and no older C library than it was linked with.

In a source distribution, which has the plugin's sources in `rust` instead of the plugin, cargo builds it first.
"""
import os
import platform
import re
import shutil
import struct
import subprocess
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# What these versions of glibc were called before names had numbers; pip before 20.3 knows no others.
OLD_NAMES = {17: "manylinux2014"}
# The plugin, the libraries of `h5z-gpu run`, and the program.
BUILT = "plugin/libh5zgpu.so", "preload/libh5zgpu_preload.so", "bin/h5z-gpu"
# Of a file for macOS: processors by their numbers, and the commands that tell the oldest system.
MACH_O, BUILD_VERSION, VERSION_MIN = b"\xcf\xfa\xed\xfe", 0x32, 0x24
PROCESSORS = {0x0100000C: "arm64", 0x01000007: "x86_64"}


class TagHook(BuildHookInterface):
    def initialize(self, version, build_data):
        macos = Path(self.root, "h5z_gpu/plugin/libh5zgpu.dylib")
        if macos.exists():
            build_data.update(pure_python=False, tag=f"py3-none-{macos_tag(macos.read_bytes())}")
            return
        if Path(self.root, "h5z_gpu/plugin/h5zgpu.dll").exists():
            build_data.update(pure_python=False, tag="py3-none-win_amd64")
            return
        files = [Path(self.root, "h5z_gpu", name) for name in BUILT]
        if not files[0].exists():
            build(Path(self.root, "rust"), files)
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{tag(b''.join(file.read_bytes() for file in files))}"


def tag(files):
    """The platform of a shared object of Linux for MACHINE, which `make wheel` says, or for this machine."""
    machine = os.environ.get("MACHINE") or platform.machine()
    # The newest symbol version that plugin and program ask of glibc stands in them as text.
    versions = [int(version) for version in re.findall(rb"GLIBC_2\.(\d+)\0", files)]
    if not versions:  # musl has no versions of symbols; Rust links for 1.2
        return f"musllinux_1_2_{machine}"
    needed = max(*versions, min(OLD_NAMES))
    old = f"{OLD_NAMES[needed]}_{machine}." if needed in OLD_NAMES else ""
    return f"{old}manylinux_2_{needed}_{machine}"


def macos_tag(library):
    """The platform of a library of macOS: the oldest system that takes it, and the processor."""
    magic, processor, _, _, count = struct.unpack_from("<4s4I", library)
    assert magic == MACH_O
    at, oldest = 32, None
    for _ in range(count):
        command, size = struct.unpack_from("<II", library, at)
        if command in (BUILD_VERSION, VERSION_MIN):
            (oldest,) = struct.unpack_from("<I", library, at + (12 if command == BUILD_VERSION else 8))
        at += size
    return f"macosx_{oldest >> 16}_{oldest >> 8 & 0xFF}_{PROCESSORS[processor]}"


def build(sources, files):
    if not sources.is_dir():
        raise FileNotFoundError(f"{files[0]}: run `make wheel` in the root of the repository, which puts it there")
    if not shutil.which("cargo"):
        raise RuntimeError("cargo is missing, which builds the plugin: install Rust 1.89 or newer, and a C compiler")
    command = ["cargo", "build", "--profile", "dist", "-p", "h5z-gpu-plugin", "-p", "h5z-gpu-preload",
               "-p", "h5z-gpu-program", "--target-dir", str(sources / "target")]
    subprocess.run(command, cwd=sources, check=True)
    for built in files:
        built.parent.mkdir(exist_ok=True)
        shutil.copy(sources / "target/dist" / built.name, built)
