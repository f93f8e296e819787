# SPDX-License-Identifier: MIT OR Apache-2.0
"""Whether a shared library is all there. What else speaks against a library, the loader says itself, and
`h5z-gpu doctor` more."""
from __future__ import annotations

import os
import struct


class Unusable(ImportError):
    """The plugin cannot be loaded."""


def cut_short(path: str | os.PathLike[str]) -> str:
    """How a file was cut short, "" where it was not.

    The loader maps such a file without a word, and the process dies at the first page that is missing. The table of
    sections stands last in a library, and is what a copy lacks first.
    """
    try:
        with open(path, "rb") as f:
            size, head = os.fstat(f.fileno()).st_size, f.read(64)
    except OSError as why:
        return f"cannot be read ({why.strerror})"
    # 64 bits, little-endian; the loader refuses what is no library
    if len(head) < 64 or head[:6] != b"\x7fELF\x02\x01":
        return ""
    table, each, count = struct.unpack_from("<Q", head, 40) + struct.unpack_from("<HH", head, 58)
    stated = table + each * count
    return f"is cut short ({size} of {stated} bytes), and ends the program that opens it" if stated > size else ""
