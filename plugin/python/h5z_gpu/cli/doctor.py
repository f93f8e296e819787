# SPDX-License-Identifier: MIT OR Apache-2.0
"""Finds out why files do not open, or why data is not compressed: plugin, HDF5 libraries, variables, GPU.

Each HDF5 library of Python's packages and of the system is asked in a process of its own, with the variables of now:
where it looks, what it loads, and a small dataset through it and back. Exit status 1 where something has to be done.
"""
from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

from . import handed
from .common import Problem, open_file, quoted, shown

PACKAGES = ("netCDF4", "h5py", "tables")
"""In the order that hides the most: netCDF4 sets HDF5_PLUGIN_PATH for those behind it."""
_SECONDS = 120


def add(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("file", metavar="FILE", nargs="*", help="a file that does not open: what is wrong with it is "
                        "said too")
    parser.add_argument("--hdf5", metavar="LIBRARY", action="append", default=[],
                        help="an HDF5 library to ask, beside those found")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Hands what Python alone can find out to the program beside the plugin, which asks everything else and prints
    it."""
    told = {"python": sys.executable, "version": platform.python_version(), **_imports(),
            "files": [_file(path) for path in args.file]}
    named = [f"--hdf5={path}" for path in args.hdf5]
    return handed.run(["doctor", "--python", json.dumps(_shown(told)), *handed.packages(), *named,
                       *(["--json"] if args.json else [])])


def _shown(told: Any) -> Any:
    """The same with what a terminal obeys escaped, and halves of surrogate pairs, which JSON has not."""
    if isinstance(told, dict):
        return {name: _shown(value) for name, value in told.items()}
    if isinstance(told, list):
        return [_shown(value) for value in told]
    return shown(told) if isinstance(told, str) else told


def _imports() -> dict[str, Any]:
    """What `imports.py` prints in a process of its own, {} where it does not."""
    text, loaded = Path(__file__).with_name("imports.py").read_text(), Path(__file__).parents[1] / "loaded.py"
    register = sys.modules.get("h5z_gpu.register")
    path = getattr(register, "FOUND", os.environ.get("HDF5_PLUGIN_PATH"))
    env = {k: v for k, v in (dict(os.environ) | {"HDF5_PLUGIN_PATH": path}).items() if v is not None}
    try:
        child = subprocess.run([sys.executable, "-c", text, loaded, *PACKAGES], env=env, stdin=subprocess.DEVNULL,
                               capture_output=True, text=True, errors="replace", timeout=_SECONDS)
        answer: dict[str, Any] = json.loads(child.stdout.splitlines()[-1])
    except (subprocess.TimeoutExpired, ValueError, IndexError):
        return {}
    return answer


def _file(path: str) -> dict[str, Any]:
    """What is wrong with a file: a verdict, and problems with what to do about each."""

    def problem(what: str, do: str) -> dict[str, str]:
        return {"what": what, "do": do}

    try:
        from .builds import OtherBuild, OtherBuilds
        from .inspect import examine
        from .objects import NEWER
    except ImportError as why:
        return {"file": path, "verdict": f"not looked at: {why}", "problems": []}
    try:
        with open_file(path) as opened:
            found = examine(opened, path, "decode", builds := OtherBuilds())
        builds.refuse(path)
    except OtherBuild as why:
        is_of, said = f"{path} is of another build", str(why).removeprefix(f"{path}: ")
        return {"file": path, "verdict": said, "problems": [problem(is_of, said)]}
    except Problem as why:
        get = "get the file again, or see what h5z-gpu recover can save of it"
        if not os.path.exists(path):
            get = "look at its name and folder; a relative name begins at " + os.getcwd()
        return {"file": path, "verdict": str(why).removeprefix(path).lstrip(": "), "problems": [problem(str(why), get)]}
    bad = [w for w in found if w.get("damaged") or "unreadable" in w]
    problems = []
    for w in bad:
        chunks = [f"chunk at {tuple(c['origin'])}" for c in w.get("each", []) if "damaged" in c]
        more = " ..." if len(chunks) > 3 else ""
        where = f"{w['damaged']} damaged: {', '.join(chunks[:3])}{more}" if chunks else w.get(
            "unreadable", w.get("damaged_index", ""))
        todo = f"get the file again, or h5z-gpu recover {quoted(path)} OUT"
        if where.endswith(NEWER):
            todo = f'read it with that HDF5, and write it anew there with libver=("v110", "v114"); or {todo}'
        problems.append(problem(f"{path} is damaged: {w['name']}: {where}", todo))
    ours = sum("asked" in w for w in found)
    verdict = "damaged" if bad else f"well: {ours} datasets with the filter, every chunk can be decoded"
    return {"file": path, "verdict": verdict, "problems": problems}
