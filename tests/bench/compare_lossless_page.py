# SPDX-License-Identifier: MIT OR Apache-2.0
"""The tables of compare_lossless.py."""
import datetime
import re
import textwrap
from importlib.metadata import version

from compare_page import mean, processor

OURS = "h5z-gpu"
BLOSC = "Blosc2"  # the better of its two shuffles
GROUPS = {"floats, real": "floats, real", "floats, models": "floats, models", "decimals": "floats that are decimals",
          "integers, real": "integers, real", "integers, models": "integers, models"}
WAYS = {"whole": "one chunk", "chunks": "chunks of 1 MiB"}


def best(results, name):
    """What a column shows of a set: a filter's result, for Blosc2 the smaller one; None where there is none."""
    found = [r for n, r in results.items() if (n.startswith(BLOSC) if name == BLOSC else n == name)
             and isinstance(r, dict)]
    return max(found, key=lambda r: r["ratio"], default=None)


def columns(filters):
    return list(dict.fromkeys(BLOSC if n.startswith(BLOSC) else n for n in filters))


def number(v):
    """A ratio in three digits, or a whole number."""
    return f"{v:,.0f}" if v >= 100 else f"{v:.1f}" if v >= 20 else f"{v:.2f}"


def rows(*cells):
    return f"| {' | '.join(cells)} |"


def prose(text):
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)


def spelled(day):
    """A date as the pages have it."""
    day = datetime.date.fromisoformat(day)
    return f"{day.day} {day:%B %Y}"


def head(*cells):
    return [rows(*cells), "|" + "---|" * len(cells)]


def means(sets, filters):
    """Geometric means of ratios by group, and on how many sets a filter is smaller than ours."""
    names = columns(filters)
    lines = head("geometric means of ratios", "sets", *names)
    for way, said in WAYS.items():
        for group, title in GROUPS.items():
            found = [s[way] for s in sets.values() if s["group"] == group]
            cells = []
            for n in names:
                pairs = [(r["ratio"], best(s, OURS)["ratio"]) for s in found if (r := best(s, n))]
                smaller = f" ({sum(r > mine for r, mine in pairs)})" if n != OURS else ""
                there = "" if len(pairs) == len(found) else f" of {len(pairs)}"
                cells.append(f"{number(mean([r for r, _ in pairs]))}{smaller}{there}" if pairs else "–")
            if found:
                lines.append(rows(f"{title}, {said}", str(len(found)), *cells))
    return lines


def speeds(sets, filters):
    """Geometric means of speeds by group, in chunks of 1 MiB and, over all, in one."""
    there = [g for g in GROUPS if any(s["group"] == g for s in sets.values())]
    lines = head("write, read in MB/s", *(GROUPS[g] for g in there), "all", "all, one chunk")
    for n in filters:
        cells = []
        for way, groups in [*(("chunks", [g]) for g in there), ("chunks", there), ("whole", there)]:
            found = [r for s in sets.values() if s["group"] in groups and isinstance(r := s[way].get(n), dict)]
            cells.append(", ".join(f"{mean([r[k] for r in found]):,.0f}" for k in ("write", "read")) if found else "–")
        lines.append(rows(n, *cells))
    return lines


def one_by_one(sets, filters, groups, said):
    """Ratios of whole arrays."""
    names = columns(filters)
    lines = head(said, "type", *names)
    for group in groups:
        for s in sets.values():
            if s["group"] == group:
                cells = [number(r["ratio"]) if (r := best(s["whole"], n)) else "–" for n in names]
                lines.append(rows(s["title"] + (" \\*" if s["computed"] else ""), s["type"], *cells))
    return lines


def capped(sets):
    """The means of integers with each ratio counted as 100 at most."""
    found = [s["whole"] for s in sets.values() if s["group"].startswith("integers")]
    ratios = {n: number(mean([min(100, r["ratio"]) for s in found if (r := best(s, n))]))
              for n in (OURS, "pcodec 8", BLOSC)}
    return ", ".join(f"{n} {r}" for n, r in ratios.items())


def whole_page(measured, filters):
    """The section of docs/measurements.md."""
    sets = measured["sets"]
    versions = ", ".join(f"{p} {version(p)}" for p in ("h5py", "hdf5plugin", "pcodec", "openzl"))
    return "\n".join([prose(
        f"One core of {processor()} by CPU time, in memory, {spelled(measured['day'])}; {versions}; fastest of "
        f"{measured['rounds']} rounds in which filters took turns. Up to {measured['most'] / 1e6:.0f} MB of each set, "
        f"once as one chunk and once in chunks of about 1 MiB along the slowest axis, a frame each where it is a "
        f"detector's. Every value was compared. Blosc2 is the better of its byte and bit shuffle with zstd 5. pcodec "
        f"and OpenZL have no filter for HDF5 and got the same chunks as arrays. OpenZL is not trained: it takes the "
        f"smaller of its general graph with and without differences. \\* is a model with a fixed seed."), "",
        "In brackets: on how many sets a filter is smaller than h5z-gpu.", "", *means(sets, filters), "",
        prose(f"A clock or a mask of thousands to 1 weighs a lot in such a mean. With each ratio counted as 100 at "
              f"most, integers in one chunk are: {capped(sets)}."), "", *speeds(sets, filters), "",
        "Ratios set by set, in one chunk:", "",
        *one_by_one(sets, filters, ("integers, real", "integers, models"), "integers"), "",
        *one_by_one(sets, filters, ("decimals",), "decimals"), "",
        *one_by_one(sets, filters, ("floats, real", "floats, models"), "floats"), ""])


def detectors(measured, filters):
    """Frames of detectors, one a chunk: the section of docs/detectors.md."""
    names = [n for n in filters if n != "OpenZL" and not n.startswith("shuffle")]
    said = (f"One frame a chunk, on one core of {processor()} by CPU time, {spelled(measured['day'])}: ratio; "
            f"write, read in MB/s of raw data. [Measurements](measurements.md#without-loss) says how. In brackets: the "
            f"codec that h5z-gpu chose. \\* is a model with a fixed seed.")
    lines = [prose(said), "", *head("frames", "type, values of a frame", *names)]
    for s in measured["sets"].values():
        if s["frames"]:
            cells = []
            for n in names:
                r = s["chunks"].get(n)
                text = f"{number(r['ratio'])}; {r['write']:,.0f}, {r['read']:,.0f}" if isinstance(r, dict) else "–"
                cells.append(f"{text} ({', '.join(r['codecs'])})" if n == OURS and isinstance(r, dict) else text)
            lines.append(rows(s["title"] + (" \\*" if s["computed"] else ""),
                              f"{s['type']}, {' × '.join(map(str, s['shape'][1:]))}", *cells))
    return "\n".join([*lines, ""])


def section(page, heading, text):
    """Puts a text in place of what stands between a heading of a page and the next one, of any level."""
    old = page.read_text()
    new, n = re.subn(rf"(^{re.escape(heading)}\n\n).*?(?=^#+ |\Z)", lambda m: f"{m[1]}{text}\n", old,
                     flags=re.M | re.S)
    assert n == 1, f"{page} has {n} headings `{heading}`"
    page.write_text(new)
