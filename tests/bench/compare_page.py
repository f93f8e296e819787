# SPDX-License-Identifier: MIT OR Apache-2.0
"""The table and the plots of compare.py."""
import datetime
import math
import os
import re
from importlib.metadata import version
from pathlib import Path


def mean(values):
    """Geometric mean."""
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def sums(found):
    """For each filter: fields, ratio, speeds in memory and through files (write, read), largest error over the bound,
    fields over it."""
    out = {}
    for name, fields in found.items():
        good = [r for r in fields.values() if isinstance(r, dict)]
        speed = lambda where, i: mean([r["mb"] / r[where][i] for r in good if where in r])
        errors = [r["error"] for r in good]
        out[name] = {
            "fields": len(good), "of": len(fields), "ratio": mean([r["ratio"] for r in good]),
            "memory": (speed("memory", 0), speed("memory", 1)), "file": (speed("file", 0), speed("file", 1)),
            "error": max(errors, default=math.nan), "over": sum(e > 1 for e in errors),
        }
    return out


def table(found, odds, hurt, odd_names, a, fields):
    number = lambda v, form: "–" if math.isnan(v) else format(v, form)
    cores, cpu = len(os.sched_getaffinity(0)), processor()
    lines = [
        f"{len(fields)} fields of up to {a.most / 1e6:.0f} MB, bound {a.rel:g} of the range of each field's measured "
        f"values; {cores} cores of {cpu}, no GPU, {datetime.date.today()}; fastest of {a.rounds}. Means are geometric, "
        f"MB/s of raw data. "
        + ", ".join(f"{p} {version(p)}" for p in ("h5py", "hdf5plugin", "pcodec")) + ".",
        "",
        "*Over the bound*: largest error over the bound, and on how many fields it is above 1. *One byte changed*: of "
        "24 places noticed / without effect / silently other values / crash. *Fields*: how many a filter took.",
        "",
        "| filter | fields | ratio | write, read in memory | write, read in a file | over the bound | one byte "
        "changed | "
        + " | ".join(odd_names) + " |",
        "|" + "---|" * (7 + len(odd_names)),
    ]
    for name, s in sums(found).items():
        error = "exact" if s["error"] == 0 else "values lost" if s["error"] == math.inf else number(s["error"], ".4f")
        error += f" ({s['over']} field{'s' if s['over'] > 1 else ''})" if s["over"] else ""
        count = hurt[name] and " / ".join(str(hurt[name].count(w))
                                          for w in ("noticed", "without effect", "silent", "crash"))
        pair = lambda k: ", ".join(number(v, ".0f") for v in s[k])
        cells = [f"{s['fields']} of {s['of']}", number(s["ratio"], ".2f"), pair("memory"), pair("file"), error,
                 count or "–", *odds[name]]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    refused = [f"{n} on {f}: {r}" for n, fs in found.items() for f, r in fs.items() if not isinstance(r, dict)]
    return "\n".join([*lines, "", *(f"* {r[:200]}" for r in refused)]).rstrip() + "\n"


def into(page, text):
    """Puts the rows of a table in place of those that a page has."""
    rows = "".join(f"{line}\n" for line in text.splitlines() if line.startswith("| ")
                   and not line.startswith("| filter "))
    old = page.read_text()
    new, n = re.subn(r"(^\| filter \| fields \|[^\n]*\n\|[-|]+\n)(?:\|[^\n]*\n)+", lambda m: m[1] + rows, old,
                     flags=re.M)
    assert n == 1, f"{page} has {n} tables of this kind"
    page.write_text(new)


def processor():
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")),
                "an unknown processor")


def points(rows, rel, fields, *paths):
    """Ratio over speed. Rows: a filter's name, whether it may lose bits, ratio, MB/s of writing and of reading."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    fig, axes = plt.subplots(1, 2, figsize=(12, 5.5), sharey=True, layout="constrained")
    for axis, i, what in zip(axes, (3, 4), ("write", "read")):
        axis.set(xscale="log", yscale="log", xlabel=f"{what}, MB/s of raw data, in memory")
        for row in rows:
            axis.scatter(row[i], row[2], marker="o" if row[1] else "s", zorder=3,
                         color="tab:blue" if row[0].startswith("h5z-gpu") else "tab:gray")
        axis.margins(x=0.3, y=0.1)
        for shown in (axis.xaxis, axis.yaxis):
            shown.set_major_formatter("{x:g}")
            shown.set_minor_formatter("")
        axis.grid(which="both", alpha=0.25)
    axes[0].set_yticks((2, 5, 10, 20))
    axes[0].set_ylabel("ratio, raw over stored bytes")
    for marker, said in (("o", f"lossy, bound {rel:g} of the range"), ("s", "lossless")):
        axes[0].scatter([], [], marker=marker, color="black", label=said)
    fig.legend(loc="outside lower center", ncols=2)
    fig.suptitle(f"Geometric means over {fields} fields; up and to the right is better")
    fig.canvas.draw()  # from here on places are known, and labels find room
    for axis, i in zip(axes, (3, 4)):
        taken = [axis.transData.transform((row[i], row[2])) for row in rows]
        taken = [matplotlib.transforms.Bbox.from_bounds(x - 5, y - 5, 10, 10) for x, y in taken]
        for row in rows:
            for x, y, side in ((6, 5, "left"), (6, -12, "left"), (8, -3, "left"), (-6, 5, "right"), (-6, -12, "right")):
                label = axis.annotate(row[0], (row[i], row[2]), xytext=(x, y), textcoords="offset points", fontsize=8,
                                      ha=side)
                box = label.get_window_extent()
                if not any(box.overlaps(other) for other in taken):
                    break
                label.set_visible(False)
            label.set_visible(True)
            taken.append(box)
    for path in paths:
        fig.savefig(path, dpi=120, metadata={"Date": None})
    plt.close(fig)


def plots(found, filters, a):
    import matplotlib.pyplot as plt

    all_sums = {n: s for n, s in sums(found).items() if s["fields"]}
    points([(n, filters[n][0], s["ratio"], *s["memory"]) for n, s in all_sums.items()], a.rel,
           max(s["of"] for s in all_sums.values()), *(a.out / f"speed.{end}" for end in ("svg", "png")))

    lossy = {n: [r["error"] for r in found[n].values() if isinstance(r, dict)] for n in all_sums if filters[n][0]}
    fig, axis = plt.subplots(figsize=(8, 0.5 * len(lossy) + 1.5), layout="constrained")
    for k, (name, errors) in enumerate(lossy.items()):
        finite = [e for e in errors if math.isfinite(e) and e > 0]
        axis.scatter(finite, [k] * len(finite), alpha=0.6, color="tab:blue" if name.startswith("h5z-gpu")
                     else "tab:gray")
        lost = sum(e == math.inf for e in errors)
        if lost:
            axis.annotate(f"{lost} with NaN or Inf lost", (1, k), xytext=(-6, 8), textcoords="offset points",
                          ha="right", fontsize=8, color="tab:red")
    axis.axvline(1, color="tab:red", label="the bound")
    axis.set(yticks=range(len(lossy)), yticklabels=list(lossy), xscale="log",
             xlabel="largest error over the bound, a point for each field")
    axis.xaxis.set_major_formatter("{x:g}")
    axis.xaxis.set_minor_formatter("{x:g}")
    axis.margins(x=0.15, y=0.12)
    axis.tick_params(axis="x", which="both", labelsize=8)
    fig.legend(loc="outside lower center")
    axis.grid(axis="x", which="both", alpha=0.25)
    for end in ("svg", "png"):
        fig.savefig(a.out / f"error.{end}", dpi=120)
