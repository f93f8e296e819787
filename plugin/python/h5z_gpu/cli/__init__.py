# SPDX-License-Identifier: MIT OR Apache-2.0
"""The command line `h5z-gpu`, also `python -m h5z_gpu`: files of HDF5 and netCDF-4 with the filter, and what is wrong
with them.

Each command is a module of this package, named in `COMMANDS` and imported when it is used:

    docstring               its first line is the command's line in `--help`, all of it is the text of `COMMAND --help`
    add(parser)             adds the command's arguments to an argparse.ArgumentParser
    run(args) -> int        does it; the exit status

`words`, `env`, `path`, and what of `doctor` is no Python, belong to the program beside the plugin: `handed.py`.

Exit status: 0 as asked; 1 something was found: damage, a broken promise, a set-up that does not work; 2 wrong use, or
input that cannot be read; 3 another build has to read the file. For 2 and 3 a command raises `common.Problem`, one
sentence for the user; what h5py or HDF5 raises besides becomes one here.
"""
from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import re
import sys
from typing import Any, Optional

from ..elf import Unusable
from . import handed
from .child import program
from .common import Problem, say

COMMANDS = ("doctor", "inspect", "verify", "advise", "repack", "recover")


def main(argv: Optional[list[str]] = None) -> int:
    """Runs one command; the exit status.

    `argv` stands behind the program's name. By default it is the process's own; the command runs in a child then, so
    that a crash of HDF5 is told of by a sentence.
    """
    if argv is None:
        return program(lambda: main(sys.argv[1:]))
    name = argv[0] if argv else ""
    try:
        if name in handed.COMMANDS:
            return handed.command(name, argv[1:])
        args = _parser(argv).parse_args(argv)
        return int(args.run(args))
    except Problem as problem:
        say(f"h5z-gpu {name}: {problem}", file=sys.stderr)
        return problem.status
    except Unusable as why:
        say(f"{why}. h5z-gpu doctor says more", file=sys.stderr)
        return 2
    except ModuleNotFoundError as why:
        say(f"h5z-gpu {name}: Python has no {why.name}: pip install numpy h5py", file=sys.stderr)
        return 2
    except MemoryError as why:
        say(f"h5z-gpu {name}: {_too_much(why)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        say(f"h5z-gpu {name}: stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # Whoever reads has stopped, as in `h5z-gpu inspect a.h5 | head`. Python would complain of the pipe again at
        # its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as why:
        text = _of_hdf5(why)
        if not text:
            raise
        say(f"h5z-gpu {name}: {text}", file=sys.stderr)
        return 2


def _of_hdf5(why: Exception) -> str:
    """What to say of an exception of HDF5 or h5py, "" for any other, such as one in a command without h5py."""
    try:
        from .failures import of_hdf5
    except ImportError:
        return ""
    return of_hdf5(why)


def _too_much(why: MemoryError) -> str:
    """A sentence for what does not fit into memory, with NumPy's own size where it states one."""
    stated = re.search(r"allocate (.+?) for an array", str(why))
    what = f"{stated[1]} at once do" if stated else "what was asked for does"
    return (f"{what} not fit into memory; a damaged file may state extents that it has not: h5z-gpu inspect shows "
            "them, and h5z-gpu recover takes what can be read")


class _Version(argparse.Action):
    """Says which library this is: commands such as `doctor` have to start where it cannot be loaded."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from ..library import lib

        print(f"h5z-gpu {lib.h5z_gpu_version().decode()}")
        parser.exit()


def _parser(argv: list[str]) -> argparse.ArgumentParser:
    """The parser; of the commands, only the one that is meant is imported."""
    parser = argparse.ArgumentParser(
        prog="h5z-gpu",
        description="Error-bounded and lossless compression of floating-point data in HDF5 and netCDF-4 files.",
        epilog="Exit status: 0 as asked; 1 something was found (damage, a broken promise, a set-up that does not "
        "work); 2 wrong use, or input that cannot be read; 3 another build has to read the file.",
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the library's version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    meant = next((a for a in argv if not a.startswith("-")), None)
    for name in COMMANDS:
        if importlib.util.find_spec(f"{__name__}.{name}") is None:
            continue
        if meant not in (name, None):
            commands.add_parser(name)
            continue
        module = importlib.import_module(f"{__name__}.{name}")
        text = module.__doc__ or ""
        sub = commands.add_parser(name, help=text.split("\n", 1)[0], description=text,
                                  formatter_class=argparse.RawDescriptionHelpFormatter)
        module.add(sub)
        sub.set_defaults(run=module.run)
    for name, text in handed.COMMANDS.items():
        commands.add_parser(name, help=text)
    return parser
