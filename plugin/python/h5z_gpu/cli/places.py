# SPDX-License-Identifier: MIT OR Apache-2.0
"""Where HDF5 libraries and plugins lie on this machine, for `doctor`."""
from __future__ import annotations

import glob
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

from ..elf import fault

PLUGIN = "libh5zgpu.so"
# Where HDF5's builders and Debian's let it look when HDF5_PLUGIN_PATH is not set.
DEFAULTS = ["/usr/local/hdf5/lib/plugin", "/usr/local/lib/hdf5/plugin", "/usr/local/lib/plugin",
            *(f"/usr/lib/{platform.machine()}-linux-gnu/hdf5/{kind}plugins" for kind in ("serial/", "openmpi/", "mpich/", ""))]  # fmt: skip
# libhdf5's high-level, C++ and Fortran companions.
_COMPANION = re.compile(r"libhdf5[a-z_]*(hl|cpp|fortran|f90|java|tools)")


def is_hdf5(path: str) -> bool:
    """Whether the name is that of HDF5's own library: libhdf5.so, libhdf5_serial.so.103, libhdf5-9e18f0c6.so.320."""
    name = os.path.basename(path)
    return name.startswith("libhdf5") and ".so" in name and not _COMPANION.match(name)


def libraries(named: list[str]) -> list[str]:
    """HDF5 libraries of this process, of Python's packages, that variables name, and of the system; each once."""
    folders = os.environ.get("LD_LIBRARY_PATH", "").split(":")
    roots = [os.environ.get(v, "") for v in ("HDF5_DIR", "HDF5_ROOT", "CONDA_PREFIX")] + [sys.prefix]
    folders += [os.path.join(root, "lib") for root in roots if root]
    folders += [f"/usr/lib/{platform.machine()}-linux-gnu", "/usr/local/hdf5/lib", "/usr/local/lib", "/usr/lib64", "/usr/lib"]
    found = list(named) + _in_process() + _of_packages() + _of_the_loader()
    for folder in folders:
        if folder:
            found += sorted(glob.glob(os.path.join(glob.escape(folder), "libhdf5*.so*")))
    seen: dict[str, str] = {}
    for path in found:
        if path in named or is_hdf5(path):
            real = os.path.realpath(path)
            if os.path.isfile(real):
                seen.setdefault(real, real)
    return list(seen)


def _in_process() -> list[str]:
    try:
        maps = Path("/proc/self/maps").read_text()
    except OSError:
        return []
    paths = {line.split(maxsplit=5)[5] for line in maps.splitlines() if "libhdf5" in line}
    return sorted(paths)


def _of_packages() -> list[str]:
    """Those that wheels bring: in PACKAGE.libs beside the package, or PACKAGE/.libs."""
    found = []
    for folder in dict.fromkeys(p or "." for p in sys.path):
        if os.path.isdir(folder):
            inside = glob.escape(folder)
            found += sorted(glob.glob(f"{inside}/*.libs/libhdf5*") + glob.glob(f"{inside}/*/.libs/libhdf5*"))
    return found


def _of_the_loader() -> list[str]:
    program = shutil.which("ldconfig") or "/sbin/ldconfig"
    try:
        text = subprocess.run([program, "-p"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=20).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    return [line.split("=>")[1].strip() for line in text.splitlines() if "libhdf5" in line and "=>" in line]


def package_of(path: str) -> str:
    """The Python package that brings this library in its wheel, "" where none does."""
    match = re.search(r"/([^/]+)\.libs/[^/]*$", path) or re.search(r"/([^/]+)/\.libs/[^/]*$", path)
    return {"netcdf4": "netCDF4"}.get(match[1], match[1]) if match else ""


def opened_by_hdf5(folder: str) -> list[str]:
    """The files of a folder that HDF5 opens when it looks for a filter."""
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    return [os.path.join(folder, n) for n in names if n.startswith("lib") and (".so" in n or n.endswith(".dylib"))]


def folder_fault(folder: str) -> str:
    """Why a folder of HDF5_PLUGIN_PATH is of no use, "" where it is there."""
    if os.path.isdir(folder):
        return ""
    if folder != folder.strip():
        return f"no such folder: there is a blank {'before' if folder[0] == ' ' else 'behind'} its name"
    longer = [p for p in glob.glob(glob.escape(folder) + " *") if os.path.isdir(p)]
    if longer:
        return f"no such folder; there is {longer[0]!r}: put the value in quotes where it is set, it was cut at the blank"
    if os.path.isfile(folder):
        return "it is a file; name the folder it lies in"
    return "no such folder"


__all__ = ["DEFAULTS", "PLUGIN", "fault", "folder_fault", "is_hdf5", "libraries", "opened_by_hdf5", "package_of"]
