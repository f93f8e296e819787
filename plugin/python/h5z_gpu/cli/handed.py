# SPDX-License-Identifier: MIT OR Apache-2.0
"""Commands that the program beside the plugin has, which is written in Rust and needs no Python: this one hands them
over.

The program lies in ../bin of the plugin's folder: in the package, after `make`, and where `make install` puts both.
"""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from .common import Problem

# Each with its line in `--help`.
COMMANDS = {
    "words": "Says a bound in every tool's words (`words abs 1e-3`), or explains words (`words 11003`).",
    "env": 'Prints the shell\'s line that lets other programs find the plugin: eval "$(h5z-gpu env)"',
    "path": "Prints the folder of the plugin.",
    "run": "Runs a program whose HDF5 reads and writes many chunks at a time (`run -- h5repack ...`; not on Windows).",
}
_NAME = "h5z-gpu.exe" if os.name == "nt" else "h5z-gpu"


def program() -> str:
    """The program's path."""
    package = Path(__file__).parent.parent / "plugin"
    folders = [f for f in (os.environ.get("H5Z_GPU_PLUGIN_PATH"), str(package)) if f]
    for folder in folders:
        path = os.path.join(folder, "..", "bin", _NAME)
        if os.access(path, os.X_OK):
            return os.path.realpath(path)
    raise Problem(f"the program {_NAME} is not in ../bin of {' or '.join(folders)}; install the package's wheel again, "
                  "or in the sources: make")


def run(arguments: list[str]) -> int:
    """Runs the program with the variables as they were before the import of this package; its exit status."""
    env = dict(os.environ)
    register: Any = sys.modules.get("h5z_gpu.register")
    if hasattr(register, "FOUND"):
        found = register.FOUND
        env.pop("HDF5_PLUGIN_PATH", None)
        env |= {} if found is None else {"HDF5_PLUGIN_PATH": found}
    if arguments[:1] == ["run"] and os.name != "nt":  # in this process's place: what it reads and writes is its own
        os.execve(program(), ["h5z-gpu", *arguments], env)
    done = subprocess.run([program(), *arguments], env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          errors="replace")
    sys.stdout.write(done.stdout)
    sys.stderr.write(done.stderr)
    return done.returncode


def packages() -> list[str]:
    """The option that names the folders of this Python's packages."""
    return ["--packages", os.pathsep.join(dict.fromkeys(p or os.getcwd() for p in sys.path))]


def command(name: str, arguments: list[str]) -> int:
    """Runs a command that is handed over as it was typed."""
    return run([name, *(packages() if name in ("env", "run") else []), *arguments])
