# SPDX-License-Identifier: MIT OR Apache-2.0
"""Whether a shared library can be loaded here: all of it is there, and it is for this processor.

The loader maps a file that was cut short without a word, and the program dies at the first page that is missing.
"""
from __future__ import annotations

import os
import platform
import struct

# ELF's numbers of processors, and their names as `uname -m` says them.
_MACHINES = {3: "i686", 20: "ppc", 21: "ppc64le", 22: "s390x", 40: "arm", 62: "x86_64", 183: "aarch64", 243: "riscv64", 258: "loongarch64"}
_HERE = {"amd64": "x86_64", "arm64": "aarch64"}


class Unusable(ImportError):
    """The plugin cannot be loaded."""


def fault(path: str | os.PathLike[str]) -> str:
    """Why the file cannot be loaded as a library of this machine, "" where nothing speaks against it."""
    try:
        with open(path, "rb") as f:
            size = os.fstat(f.fileno()).st_size
            head = f.read(64)
            if len(head) < 64 or head[:4] != b"\x7fELF":
                return f"is no library ({size} bytes)"
            if head[4:6] != b"\x02\x01":
                return "is for another kind of processor (not 64 bits, little-endian)"
            machine, = struct.unpack_from("<H", head, 18)
            here = _HERE.get(platform.machine(), platform.machine())
            built_for = _MACHINES.get(machine, f"processor {machine}")
            if here in _MACHINES.values() and built_for != here:
                return f"is built for {built_for}, this machine is {here}"
            segments, sections = struct.unpack_from("<QQ", head, 32)
            segment_len, segment_count, section_len, section_count = struct.unpack_from("<4H", head, 54)
            stated = max(segments + segment_len * segment_count, sections + section_len * section_count)
            f.seek(segments)
            table = f.read(segment_len * segment_count)
    except OSError as why:
        return f"cannot be read ({why.strerror})"
    for at in range(0, len(table) - segment_len + 1, segment_len or 1):
        if segment_len >= 40:
            begin, length = struct.unpack_from("<Q", table, at + 8)[0], struct.unpack_from("<Q", table, at + 32)[0]
            stated = max(stated, begin + length)
    if stated > size:
        return f"is cut short ({size} of {stated} bytes), and ends the program that opens it"
    return ""
