# SPDX-License-Identifier: MIT OR Apache-2.0
"""Lays the plugins of a folder's wheels beside them, named by system, for programs without Python.

plugins.py FOLDER
"""
import re
import sys
import zipfile
from pathlib import Path

# How a wheel's name calls a system → how a plugin's does.
SYSTEMS = {"manylinux": "linux", "musllinux": "musl", "macosx": "macos", "win": "windows"}


def lay(folder):
    for wheel in folder.glob("*.whl"):
        system, processor = re.search(r"-(manylinux|musllinux|macosx|win)\w*?_(x86_64|aarch64|arm64|amd64)\b",
                                      wheel.name).groups()
        with zipfile.ZipFile(wheel) as z:
            (name,) = (n for n in z.namelist() if n.startswith("h5z_gpu/plugin/"))
            library = Path(name)
            (folder / f"{library.stem}-{SYSTEMS[system]}-{processor}{library.suffix}").write_bytes(z.read(name))


if __name__ == "__main__":
    lay(Path(sys.argv[1]))
