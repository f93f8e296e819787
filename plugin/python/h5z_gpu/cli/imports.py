# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the imports of a program bring: HDF5 libraries, and a change of HDF5_PLUGIN_PATH.

Run as `python -c TEXT LOADED NAME...`, where TEXT is this file and LOADED the path of loaded.py, for `doctor`: imports
the packages of these names in this order, nothing of this package, and prints JSON in the last line.
"""
from __future__ import annotations

import ctypes
import json
import os
import runpy
import sys
from typing import Any

FILTER = 443


def ask(loaded: dict[str, Any], names: list[str]) -> dict[str, Any]:
    def mapped() -> set[str]:
        """HDF5's own libraries in this process, without their companions."""
        companions = ("_hl", "hl-", "hl.", "_cpp", "_fortran")
        return {p for p in loaded["named"]("hdf5") if not any(part in p for part in companions)}

    imported: dict[str, str | None] = {}
    libraries: dict[str, dict[str, Any]] = {}
    for name in names:
        before = mapped()
        try:
            module = __import__(name)
            imported[name] = getattr(module, "__version__", "")
        except Exception:  # whatever a package raises
            imported[name] = None
            continue
        for path in mapped() - before:
            libraries[path] = {"package": name}
    for path, what in libraries.items():
        what["finds"] = loaded["opened"](path, ctypes.CDLL).H5Zfilter_avail(FILTER) > 0
    return {"imported": imported, "libraries": libraries, "after": os.environ.get("HDF5_PLUGIN_PATH")}


if __name__ == "__main__":
    told = ask(runpy.run_path(sys.argv[1]), sys.argv[2:])
    print("\n" + json.dumps(told), flush=True)
    os._exit(0)  # nothing of what was loaded has to be torn down
