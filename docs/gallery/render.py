#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs the gallery's notebooks: keeps what their cells print in them, and makes their pages for the site.

    make target/fields/small/done
    HDF5_PLUGIN_PATH=target/plugin H5Z_GPU_PLUGIN_PATH=target/plugin PYTHONPATH=plugin/python \\
        .env/bin/python docs/gallery/render.py [NAME ...]

A notebook holds its text output, which tests/hosts/test_docs.py compares with what the cells print, and no pictures:
docs/conf.py draws them when the site is built. A notebook runs in a folder with the small fields in `fields`.
"""
import contextlib
import io
import json
import os
import sys
import tempfile
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PICTURES = ROOT / "target/site-pictures"
WIDTH = 7  # inches, of every picture


def pictures(name, first):
    """Saves the figures that are open: a line of Markdown for each."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    for k, number in enumerate(plt.get_fignums(), first):
        figure = plt.figure(number)
        about = figure.get_label()
        assert about, f"{name}: a figure needs a label, plt.figure(num='what is seen'): readers may not see it"
        path = PICTURES / f"{name}-{k}.png"
        figure.savefig(path, dpi=110, bbox_inches="tight", metadata={"Software": None})
        yield f"![{about}](/{path.relative_to(ROOT)})"
    plt.close("all")


def run(notebook):
    """Runs a notebook: each cell, what it printed, and the Markdown of its pictures."""
    names, count = {"__name__": "__main__"}, 1
    plt.rcParams.update({"figure.figsize": (WIDTH, WIDTH / 2), "figure.constrained_layout.use": True})
    with tempfile.TemporaryDirectory() as desk, contextlib.chdir(desk):
        os.symlink(ROOT / "target/fields/small", "fields")
        for cell in json.loads(notebook.read_text())["cells"]:
            with contextlib.redirect_stdout(io.StringIO()) as out:
                if cell["cell_type"] == "code":
                    exec(compile("".join(cell["source"]), str(notebook), "exec"), names)
            shown = list(pictures(notebook.stem, count))
            count += len(shown)
            yield cell, out.getvalue(), shown


def page(notebook):
    """The notebook as Markdown, with its pictures."""
    parts = []
    for cell, printed, shown in run(notebook):
        text = "".join(cell["source"])
        parts.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
        if printed:
            parts.append(f"```text\n{printed.rstrip()}\n```")
        parts += shown
    parts.append(f"*The notebook: `docs/gallery/{notebook.name}` in the sources.*")
    return "\n\n".join(parts) + "\n"


def main(names):
    for notebook in sorted(HERE.glob("*.ipynb")):
        if names and notebook.stem not in names:
            continue
        held = json.loads(notebook.read_text()) | {"cells": []}
        for cell, printed, _ in run(notebook):
            if cell["cell_type"] == "code":
                stream = {"name": "stdout", "output_type": "stream", "text": printed.splitlines(True)}
                cell["outputs"] = [stream] if printed else []
            held["cells"].append(cell)
        notebook.write_text(json.dumps(held, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
