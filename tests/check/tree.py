# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the checks of this folder share: the files of the tree, and how a check ends.

A check is a function that answers its findings, each a line `file:line: what is wrong`. `python tests/check/NAME.py`
prints them and ends with 1 where there is one.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def files(*endings, below=ROOT):
    """The files that git knows or would add, with these endings, as paths relative to `below`."""
    command = ["git", "-C", str(below), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.split("\0")
    return sorted(Path(n) for n in names if n.endswith(endings) and (below / n).is_file())


def finish(findings):
    """Prints the findings and ends the program."""
    print(*findings, sep="\n")
    print(f"{len(findings)} to be mended" if findings else "nothing to be mended")
    sys.exit(bool(findings))
