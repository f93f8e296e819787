# SPDX-License-Identifier: MIT OR Apache-2.0
"""Build hook: any Python 3, but only this machine's kind, and no older C library than the plugin was linked with."""
import platform
import re
import sysconfig
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class TagHook(BuildHookInterface):
    def initialize(self, version, build_data):
        plugin = Path(self.root, "h5z_gpu/plugin/libh5zgpu.so")
        if not plugin.exists():
            raise FileNotFoundError(f"{plugin}: run `make wheel`, which puts it there")
        # The newest symbol version that the plugin asks of glibc stands in it as text.
        needed = max(map(int, re.findall(rb"GLIBC_2\.(\d+)\0", plugin.read_bytes())))
        machine = sysconfig.get_platform().removeprefix("linux-").replace("-", "_")
        assert platform.libc_ver()[0] == "glibc", "the wheel's name is for glibc"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-manylinux_2_{needed}_{machine}"
