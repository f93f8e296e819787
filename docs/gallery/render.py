#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Makes the gallery's pages of its notebooks: runs every cell, and writes text, code, what it printed, and pictures.

    make target/fields/small/done
    HDF5_PLUGIN_PATH=target/plugin H5Z_GPU_PLUGIN_PATH=target/plugin PYTHONPATH=plugin/python \\
        .env/bin/python docs/gallery/render.py [NAME ...]

A page holds the cells as they are; tests/hosts/test_docs.py runs it and compares what it prints, and
tests/hosts/test_gallery.py compares it with its notebook. Notebooks are kept without output. The fields are in the
folder `fields`, beside which a notebook runs.
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
FIELDS = HERE.parent.parent / "target/fields/small"
WIDTH = 7  # inches, of every picture


def cells(notebook):
    """Kind and text of each cell."""
    for cell in json.loads(notebook.read_text())["cells"]:
        yield cell["cell_type"], "".join(cell["source"])


def pictures(name, first):
    """Saves the figures that are open: a line of Markdown for each."""
    for k, number in enumerate(plt.get_fignums(), first):
        figure = plt.figure(number)
        about = figure.get_label()
        assert about, f"{name}: a figure needs a label, plt.figure(num='what is seen'): readers may not see it"
        figure.savefig(HERE / f"{name}-{k}.png", dpi=110, bbox_inches="tight", metadata={"Software": None})
        yield f"![{about}]({name}-{k}.png)"
    plt.close("all")


def page(notebook):
    """The notebook as Markdown. It runs in the working directory."""
    parts, names, count = [], {"__name__": "__main__"}, 1
    for kind, text in cells(notebook):
        if kind == "markdown":
            parts.append(text)
            continue
        parts.append(f"```python\n{text}\n```")
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(compile(text, str(notebook), "exec"), names)
        if out.getvalue():
            parts.append(f"```text\n{out.getvalue().rstrip()}\n```")
        shown = list(pictures(notebook.stem, count))
        count += len(shown)
        parts += shown
    parts.append(f"*The notebook: `docs/gallery/{notebook.name}` in the sources.*")
    return "\n\n".join(parts) + "\n"


def main(names):
    plt.rcParams.update({"figure.figsize": (WIDTH, WIDTH / 2), "figure.constrained_layout.use": True})
    for notebook in sorted(HERE.glob("*.ipynb")):
        if names and notebook.stem not in names:
            continue
        with tempfile.TemporaryDirectory() as desk, contextlib.chdir(desk):
            os.symlink(FIELDS, "fields")
            (HERE / f"{notebook.stem}.md").write_text(page(notebook))


if __name__ == "__main__":
    main(sys.argv[1:])
