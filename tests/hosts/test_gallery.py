# SPDX-License-Identifier: MIT OR Apache-2.0
"""The gallery's pages are those of its notebooks; that their code prints what they show is test_docs.py's."""
import importlib.util
import json
import re

import pytest
from conftest import ROOT
from page import blocks

GALLERY = ROOT / "docs/gallery"
NOTEBOOKS = sorted(GALLERY.glob("*.ipynb"))


def render():
    spec = importlib.util.spec_from_file_location("render", GALLERY / "render.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda p: p.stem)
def test_a_page_has_the_cells_of_its_notebook(notebook):
    page = notebook.with_suffix(".md")
    cells = list(render().cells(notebook))
    assert [b.code.rstrip("\n") for b in blocks(page) if b.language == "python"] == [t for k, t in cells if k == "code"]
    text = page.read_text()
    assert all(t in text for k, t in cells if k == "markdown")
    pictures = re.findall(r"^!\[([^\]]+)\]\(([^)]+)\)$", text, re.M)
    assert pictures and all((GALLERY / name).stat().st_size > 10_000 for _, name in pictures)
    assert {name for _, name in pictures} == {p.name for p in GALLERY.glob(f"{notebook.stem}-*.png")}


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda p: p.stem)
def test_a_notebook_is_one_and_holds_no_output(notebook):
    held = json.loads(notebook.read_text())
    assert (held["nbformat"], held["nbformat_minor"]) == (4, 5)
    for cell in held["cells"]:
        assert cell["cell_type"] in ("code", "markdown") and cell["id"] and not cell.get("outputs")


def test_the_index_names_all():
    linked = set(re.findall(r"\]\((\w+)\.md\)", (GALLERY / "index.md").read_text()))
    assert linked == {p.stem for p in NOTEBOOKS} and len(linked) == 3
