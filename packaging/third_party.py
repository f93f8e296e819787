# SPDX-License-Identifier: MIT OR Apache-2.0
"""Prints the licences of the crates that are linked into the plugin and its program, which their authors want kept.

    third_party.py >packaging/THIRD-PARTY.txt      in the root of the project; cargo fetches the crates
"""
import json
import os
import re
import subprocess
from pathlib import Path

NAMES = re.compile(r"(LICEN[CS]E|COPYING|COPYRIGHT|NOTICE|UNLICENSE)", re.IGNORECASE)
ROOTS = "h5z-gpu", "h5z-gpu-plugin", "h5z-gpu-program"
# On others the same crates are linked, but for raw-cpuid; on Windows more.
TARGETS = "x86_64-unknown-linux-gnu", "x86_64-pc-windows-gnu"


def linked():
    """Crates that are linked: the roots' dependencies, without those for builds and tests."""
    command = [os.environ.get("CARGO", "cargo"), "metadata", "--format-version=1", "--locked"]
    command += [argument for target in TARGETS for argument in ("--filter-platform", target)]
    meta = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    crates = {p["id"]: p for p in meta["packages"]}
    nodes = {n["id"]: n for n in meta["resolve"]["nodes"]}
    todo = [i for i, p in crates.items() if p["name"] in ROOTS]
    seen = set(todo)
    while todo:
        for dep in nodes[todo.pop()]["deps"]:
            # A crate with procedural macros runs in the compiler alone.
            macros = any("proc-macro" in t["kind"] for t in crates[dep["pkg"]]["targets"])
            if dep["pkg"] not in seen and not macros and any(k["kind"] is None for k in dep["dep_kinds"]):
                seen.add(dep["pkg"])
                todo.append(dep["pkg"])
    return sorted((crates[i] for i in seen if not crates[i]["name"].startswith("h5z-gpu")), key=lambda p: p["name"])


def texts(crate):
    """Its licence files, also those of C code within it (zstd)."""
    folder = Path(crate["manifest_path"]).parent
    files = [f for where in (folder, folder / crate["name"].removesuffix("-sys")) if where.is_dir()
             for f in where.iterdir()]
    return [f.read_text(errors="replace").strip() for f in sorted(files) if f.is_file() and NAMES.match(f.name)]


def main():
    said = {}
    print("h5z-gpu is linked with these crates of the Rust language, with the language's standard library (MIT OR "
          "Apache-2.0), and\n"
          "through zstd-sys with zstd (BSD-3-Clause). Their licences follow.\n")
    for crate in linked():
        found = texts(crate)
        print(f"* {crate['name']} {crate['version']}: {crate['license']}"
              + ("" if found else " (brings no text of its own)"))
        for text in found:
            said.setdefault(text, []).append(crate["name"])
    for text, names in said.items():
        print(f"\n\n{'=' * 100}\n{', '.join(names)}\n{'=' * 100}\n\n{text}")


if __name__ == "__main__":
    main()
