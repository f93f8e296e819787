# SPDX-License-Identifier: MIT OR Apache-2.0
"""Build hook: any Python 3, but only the plugin's kind of machine, and no older C library than it was linked with.

In a source distribution, which has the plugin's sources in `rust` instead of the plugin, cargo builds it first.
"""
import re
import shutil
import subprocess
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# Machines by their numbers in ELF files.
MACHINES = {62: "x86_64", 183: "aarch64"}
# What these versions of glibc were called before names had numbers; pip before 20.3 knows no others.
OLD_NAMES = {17: "manylinux2014"}


class TagHook(BuildHookInterface):
    def initialize(self, version, build_data):
        plugin = Path(self.root, "h5z_gpu/plugin/libh5zgpu.so")
        if not plugin.exists():
            build(Path(self.root, "rust"), plugin)
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{tag(plugin.read_bytes())}"


def tag(elf):
    """The platform of a shared object of 64-bit Linux."""
    assert elf[:6] == b"\x7fELF\x02\x01", "not a shared object of 64-bit Linux"
    machine = MACHINES[int.from_bytes(elf[18:20], "little")]
    # The newest symbol version that the plugin asks of glibc stands in it as text.
    needed = max(map(int, re.findall(rb"GLIBC_2\.(\d+)\0", elf)))
    needed = max(needed, min(OLD_NAMES))
    old = f"{OLD_NAMES[needed]}_{machine}." if needed in OLD_NAMES else ""
    return f"{old}manylinux_2_{needed}_{machine}"


def build(sources, plugin):
    if not sources.is_dir():
        raise FileNotFoundError(f"{plugin}: run `make wheel` in the root of the repository, which puts it there")
    if not shutil.which("cargo"):
        raise RuntimeError("cargo is missing, which builds the plugin: install Rust 1.89 or newer, and a C compiler")
    command = ["cargo", "build", "--profile", "dist", "-p", "h5z-gpu-plugin", "--target-dir", str(sources / "target")]
    subprocess.run(command, cwd=sources, check=True)
    plugin.parent.mkdir(exist_ok=True)
    shutil.copy(sources / "target/dist/libh5zgpu.so", plugin)
