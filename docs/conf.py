# SPDX-License-Identifier: MIT OR Apache-2.0
"""Sphinx builds the site from the whole repository, so that a link works here as it does among the sources:
`make site`."""
import re
import sys
from pathlib import Path

from myst_parser.parsers.sphinx_ import MystParser
from pygments.lexers.special import TextLexer

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "plugin/python"), str(ROOT / "docs/gallery")]

project = "h5z-gpu"
author = copyright = "the h5z-gpu authors"
release = version = re.search(r'^version = "(.+)"', (ROOT / "Cargo.toml").read_text(), re.M)[1]
language = "en"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
root_doc = "docs/index"
include_patterns = ["docs/**.md", "docs/gallery/*.ipynb", "codecs/src/FORMAT.md", "codecs/src/codec/*/FORMAT.md",
                    "codecs/src/words/FORMAT.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"]
exclude_patterns = ["target", ".env", ".git", "packaging", "tests", "plugin", "kernels", "examples"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings have them, in words
napoleon_google_docstring = False

html_theme = "furo"
html_title = f"h5z-gpu {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_extra_path = ["extra"]


def unlinked(app, env, node, contnode):
    """A link to a file or folder that is no page stays as its text: the site does not carry the sources."""
    target = node.get("reftarget", "").split("#")[0]
    here = Path(env.doc2path(node.get("refdoc", "docs/index"))).parent
    places = (here / target, here / f"{target}.md", ROOT / f"{target}.md")
    return contnode if target and any(place.exists() for place in places) else None


def readable(app, what, name, obj, options, signature, answer):
    """A signature without `**unknown`, which is there to refuse keywords that are misspelled."""
    return (signature.replace(", **unknown", ""), answer) if signature else None


class Notebook(MystParser):
    """A notebook of the gallery, which is run: what it holds, prints and draws."""

    supported = ("notebook",)

    def parse(self, inputstring, document):
        import render

        super().parse(render.page(Path(document["source"])), document)


def setup(app):
    app.add_source_suffix(".ipynb", "notebook")
    app.add_source_parser(Notebook)
    app.add_lexer("hex", TextLexer)
    app.add_lexer("values", TextLexer)
    app.connect("missing-reference", unlinked)
    app.connect("autodoc-process-signature", readable)
