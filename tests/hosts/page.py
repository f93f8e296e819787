# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs the code blocks of one page of the documentation, in their order, in the working directory: page.py PAGE.md

A page may be a notebook, NAME.ipynb: its cells of code, and their text output.

python   all of a page in one namespace, in this process; with a file's name alone in its first line, it becomes that
         file
sh   by `sh -eu`
text   what the block before it prints; `…` stands for anything
c, fortran, rust, r, cmake   with a file's name in its first line, a comment: the block becomes that file
console, dockerfile, java, julia, matlab   shown, not run
{name}   a directive of the site's: left to Sphinx
"""
import contextlib
import io
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

FILES = ("c", "fortran", "rust", "r", "cmake")
SHOWN = ("console", "diff", "dockerfile", "java", "julia", "matlab")


class Block(NamedTuple):
    language: str
    code: str
    line: int


def markdown(notebook):
    """Code and text output of a notebook's cells."""
    for cell in json.loads(notebook)["cells"]:
        if cell["cell_type"] == "code":
            yield f"```python\n{''.join(cell['source'])}\n```\n"
            yield from (f"```text\n{''.join(output['text'])}```\n" for output in cell["outputs"])


def blocks(path):
    text = Path(path).read_text()
    if Path(path).suffix == ".ipynb":
        text = "".join(markdown(text))
    found = re.finditer(r"^```(\{?[a-z-]*)[^\n]*\n(.*?)^```$", text, re.M | re.S)
    return [Block(m[1], m[2], text[: m.start()].count("\n") + 1) for m in found if m[1][:1] != "{"]


def same(shown, printed):
    """Whether a program printed what is shown, where `…` is anything."""
    tidy = lambda text: "\n".join(line.rstrip() for line in text.strip().splitlines())
    return re.fullmatch(".*?".join(map(re.escape, tidy(shown).split("…"))), tidy(printed), re.S)


def run(path):
    names, printed = {"__name__": "__main__"}, None
    for language, code, line in blocks(path):
        place = f"{path}:{line}"
        if language == "python" and (name := re.match(r"# ([\w-]+\.py)\n", code)):
            Path(name[1]).write_text(code)
        elif language == "python":
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(compile("\n" * line + code, path, "exec"), names)
            printed = out.getvalue()
        elif language == "sh":
            done = subprocess.run(["sh", "-euc", code], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  errors="replace")
            printed = done.stdout
            assert done.returncode == 0, f"{place}: exit {done.returncode}\n{printed}"
        elif language == "text":
            assert printed is not None, f"{place}: `text` stands behind the block that prints it"
            assert same(code, printed), f"{place}: it prints\n{printed}"
            printed = None
        elif language in FILES:
            name = re.search(r"[\w-]+\.(c|f90|rs|R|txt)\b", code.splitlines()[0])
            assert name, f"{place}: a file's name is missing in the first line"
            Path(name[0]).write_text(code)
        else:
            assert language in SHOWN, f"{place}: {language} is not known"
        sys.stdout.flush()


if __name__ == "__main__":
    run(sys.argv[1])
