# SPDX-License-Identifier: MIT OR Apache-2.0
"""HTML pages in one file: the frame around them, tables, and pictures of matplotlib as SVG within the page."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ..whole import judge, put
from .common import Problem, shown, writing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LONGEST = 120  # letters of a title or label of a picture
_STYLE = """
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1240px; padding: 1rem 1.2rem 3rem; background: #fff; color: #1c2430;
       font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif;
       overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; margin: .6rem 0 .2rem; }
h2 { font-size: 1.2rem; margin: 2.4rem 0 .4rem; border-top: 1px solid #d5dbe3; padding-top: 1rem; }
p { margin: .4rem 0; } .small { color: #566072; font-size: .9rem; }
.held, .broken { display: inline-block; border-radius: .3rem; padding: .05rem .5rem; font-weight: 600; }
.held { background: #e2f3e7; color: #115c2b; } .broken { background: #fde5e3; color: #9a1c12; }
.figures { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, 360px), 1fr));
           margin: 1rem 0; }
figure { margin: 0; } figure img { width: 100%; height: auto; display: block; }
figcaption { font-size: .9rem; color: #3b4656; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-size: .95rem; }
th, td { text-align: left; padding: .25rem .8rem .25rem 0; vertical-align: top; border-bottom: 1px solid #e6eaf0;
         overflow-wrap: normal; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
pre { background: #f4f6f9; padding: .7rem .9rem; border-radius: .3rem; overflow-x: auto; font-size: .85rem;
      line-height: 1.45; }
"""


def ready(path: str) -> None:
    """Raises Problem where no page can be written: before anything takes time."""
    try:
        import matplotlib  # noqa: F401  (whether it is there)
    except ImportError:
        raise Problem("--html needs matplotlib for its pictures: pip install matplotlib") from None
    with writing(path):
        judge(path)


def text(value: Any) -> str:
    """Text as it may stand in a page."""
    return html.escape(str(value), quote=True)


def write(path: str, title: str, body: Iterable[str]) -> None:
    """Writes a page."""
    parts = ['<!doctype html><html lang="en"><head><meta charset="utf-8">',
             '<meta name="viewport" content="width=device-width, initial-scale=1">',
             f"<title>{text(title)}</title><style>{_STYLE}</style></head><body>", *body, "</body></html>\n"]
    with writing(path):
        put(path, "\n".join(parts).encode(errors="backslashreplace"))


def table(rows: Iterable[Iterable[Any]], head: Iterable[str] = (), numbers: Iterable[int] = ()) -> str:
    """A table; `numbers` are columns that are set to the right. Texts are escaped, but for those of class Html."""
    right = set(numbers)

    def cell(tag: str, k: int, value: Any) -> str:
        shown = value if isinstance(value, Html) else text(value)
        return f"<{tag}{' class=n' if k in right else ''}>{shown}</{tag}>"

    first = "".join(cell("th", k, v) for k, v in enumerate(head))
    body = "".join(f"<tr>{''.join(cell('td', k, v) for k, v in enumerate(row))}</tr>" for row in rows)
    head = f"<thead><tr>{first}</tr></thead>" if first else ""
    return f'<div class="scroll"><table>{head}<tbody>{body}</tbody></table></div>'


class Html(str):
    """Text that is HTML already."""


def figure(drawn: Figure, alt: str, caption: str) -> str:
    """A picture with its alternative text."""
    out = io.BytesIO()
    import matplotlib

    for axes in drawn.axes:
        for label in (axes.title, axes.xaxis.label, axes.yaxis.label):
            # Names and units of the file: no formulas, whatever they hold, and no longer than there is room for.
            words = shown(label.get_text())
            label.set_text(words if len(words) <= _LONGEST else f"{words[: _LONGEST - 1]}…")
            label.set_parse_math(False)
    # The page must not change with the time of day, nor letters with the reader's fonts.
    with matplotlib.rc_context({"svg.fonttype": "path", "svg.hashsalt": "h5z-gpu"}):
        drawn.savefig(out, format="svg", metadata={"Date": None})
    data = base64.b64encode(out.getvalue()).decode()
    return (f'<figure><img alt="{text(alt)}" src="data:image/svg+xml;base64,{data}">'
            f"<figcaption>{text(caption)}</figcaption></figure>")


def new_figure(width: float = 5.2, height: float = 3.7) -> tuple[Figure, Any]:
    """A figure with one pair of axes, without a display."""
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(width, height), dpi=100, layout="constrained")
    axes = drawn.add_subplot()
    axes.tick_params(labelsize=9)
    return drawn, axes


def name_axes(axes: Any, title: str, across: str, up: str) -> None:
    """What a picture shows, and what its axes are."""
    axes.set_title(title, fontsize=11)
    axes.set_xlabel(across, fontsize=10)
    axes.set_ylabel(up, fontsize=10)
