# SPDX-License-Identifier: MIT OR Apache-2.0
"""Every figure of the front pages is that of a table: of docs/measurements.md, docs/choice.md, or of the GPU's record,
tests/gpu/record.toml. So are the figures of measurements.md that the record has.

A claim is a piece of a page with `#` for each figure, and the figures, which the page may round. What no claim has is a
finding: on a front page a number with a unit, in README.md's section of measurements any number and any fraction.
"""

import re
import tomllib

from tree import ROOT, finish

FRONT = README, *_ = "README.md", "docs/index.md", "plugin/python/README.md"
PAGE = "docs/measurements.md"
SECTION = re.compile(r"^## How fast, how small\n.*?(?=^## )|\Z", re.M | re.S)
FIGURE = r"\d(?:[\d.,]*\d)?"
UNIT = rf"ratio {FIGURE}|{FIGURE}(?: ?[GM]B/s| ?%| ?s\b| seconds| ?dB| times|x\b|:1\b)"
ANY = rf"(?<![\w.⁻]){FIGURE}(?! [KM]iB)|\b(?:half|twice|third|quarter|fifth|sixth|seventh|eighth|ninth|tenth)s?\b"
numbers = lambda text: [float(n.replace(",", "")) for n in re.findall(FIGURE, text)]


def cells(root):
    """A function for the numbers of a cell, by heading, first cell of the table's head, row and column."""
    tables, heading = {}, [""]
    for page in (PAGE, "docs/choice.md"):
        for block in (root / page).read_text(encoding="utf-8").split("\n\n"):
            heading = re.findall(r"^#+ (.*)", block, re.M)[-1:] or heading
            rows = [[c.strip(" `") for c in line[1:-1].split("|")] for line in block.split("\n") if line[:1] == "|"]
            tables |= {(heading[0], rows[0][0]): {row[0]: dict(zip(rows[0], row)) for row in rows}} if rows else {}
    return lambda heading, corner, row, column: numbers(tables[heading, corner][row][column])


def records(root):
    """A function for the numbers behind the beginning of a record's row, of the nth that begins so."""
    speed = tomllib.loads((root / "tests/gpu/record.toml").read_text(encoding="utf-8"))["speed"]
    lines = {name: [" ".join(line.split()) for line in text.splitlines()] for name, text in speed.items()}
    return lambda name, row, nth=0: numbers([x[len(row):] for x in lines[name] if x.startswith(row + " ")][nth])


def of_the_gpu(record):
    """Claims that the record bears: page, text, figures."""
    device = {c: record("device", f"{c} abs of rel 1e-3")[1:] for c in ("lorenzo", "planes", "szx")}
    (fast, back, ratio), (fastest, soonest, other), _ = device.values()
    yield README, "at # GB/s (`lorenzo`, ratio #) to # GB/s (`planes`, ratio #)", fast, ratio, fastest, other
    yield README, "decompress at # to #:", back, soonest
    wrote = lambda row: record("h5py", row)[1] / 1000
    lorenzo, planes = ([wrote(f"h5z-gpu {c} 1e-3{how}") for how in ("", ", CPU only")] for c in ("lorenzo", "planes"))
    yield README, "written at # GB/s (`planes`) to # GB/s (`lorenzo`)", planes[0], lorenzo[0]
    yield README, "without a filter at # and #;", wrote("none, chunked"), wrote("none, chunked, again")
    yield README, "its 16 CPU cores alone at # (`lorenzo`) to # GB/s (`planes`)", lorenzo[1], planes[1]
    array = lambda codec, nth=0: record("datasets", f"density {codec} 4 MiB", nth)
    yield README, "write at # GB/s from NumPy (`lorenzo`)", array("lorenzo", 1)[1]
    yield README, "read # GB/s into a GPU's memory", array("lorenzo")[2]
    encode, decode, ratio = record("device", "planes lossless")[1:]
    yield PAGE, "| *lossless:* **h5z-gpu `planes`** | # | # | # |", ratio, encode, decode
    for codec, (encode, decode, ratio) in device.items():
        yield PAGE, f"| **h5z-gpu `{codec}`** | # | # | # |", ratio, encode, decode
        (ratio, write, read, *_), (_, *host) = array(codec), array(codec, 1)
        yield PAGE, f"`{codec}`, ratio # | # | # | # and #", ratio, write, read, write / host[1], read / host[4]
        yield PAGE, f"| NumPy array, density, `{codec}` | # | # | # and # |", host[0], host[3], host[2], host[5]
    yield PAGE, "| the same, codec left open, ratio # | # | # | |", *array("auto")[:3]


def of_the_cpu(cell):
    """Claims that measurements.md and choice.md bear."""
    less, ends = lambda ours, theirs: 100 * (1 - theirs / ours), lambda values: (min(values), max(values))
    bounds = "10⁻²", "10⁻³", "10⁻⁴"
    size, write, read = ([[cell("One core beside SZ3", "bound", row, name)[at] for name in ("lorenzo", "SZ3")]
                          for row in (*bounds, "10⁻⁵")] for at in range(3))
    yield README, "files # to # % smaller than SZ3's (14 fields, four bounds)", *ends([less(*p) for p in size])
    yield README, "compresses # times", min(a / b for a, b in write)
    yield README, "decompresses # to # times", *ends([a / b for a, b in read])
    yield README, "its files are # to # % smaller than SZ3's", *ends([
        less(*cell("Seas with land masked out", "field", sea, column)[-2:])
        for sea in ("ocean_temp", "ocean_1e20", "sea_level") for column in ("10⁻²: lorenzo, SZ3", *bounds[1:])])
    auto, small = ([cell("What a choice costs, and what it brings", "", f"floats, {bound}", name)
                    for bound in (*bounds, "10⁻⁶")] for name in ("auto", "small"))
    yield README, "files # to # % smaller than the writer's own choice", *ends([less(ratio, 1) for _, ratio in small])
    yield README, "in [# to # times the time]", *ends([a / b for (a, _), (b, _) in zip(auto, small)])
    kinds = "floats, real", "floats that are decimals", "integers, real"
    mean = lambda kind, name: cell("Without loss", "geometric means of ratios", f"{kind}, chunks of 1 MiB", name)[0]
    floats, decimals, integers = ((less(mean(k, "h5z-gpu"), mean(k, "pcodec 8")), mean(k, "sets")) for k in kinds)
    yield README, "real floats are # % smaller than pcodec's at its default level (# sets)", *floats
    yield README, "those of decimals # % (#)", *decimals
    yield README, "of real integers # % smaller than pcodec's (#)", *integers
    yield README, "and # % smaller than Blosc2's", less(mean(kinds[2], "h5z-gpu"), mean(kinds[2], "Blosc2"))
    speed = lambda at, name, kind: cell("Without loss", "write, read in MB/s", name, kind)[at]
    times = lambda at, *names: ends([speed(at, "h5z-gpu", k) / speed(at, n, k) for k in kinds for n in names])
    blosc = "Blosc2, shuffle + zstd 5", "Blosc2, bitshuffle + zstd 5"
    yield README, "written # to # times as fast as with these, on one core", *times(0, "pcodec 8", *blosc)
    yield README, "read # to # times as fast as with pcodec, # to # times", *times(1, "pcodec 8"), *times(1, *blosc)


def rounded(value, shown):
    """The value with as many digits as the figure shows."""
    places = len(shown.partition(".")[2]) or len(shown.rstrip("0")) - len(shown)
    return f"{round(value, places):.{max(places, 0)}f}"


def check(root=ROOT):
    found, pages = [], {page: (root / page).read_text(encoding="utf-8") for page in (*FRONT, PAGE)}
    line = lambda page, at: f"{page}:{pages[page].count(chr(10), 0, at) + 1}: "
    known = {page: [m.span() for m in re.finditer(r"^```.*?^```$", text, re.M | re.S)] for page, text in pages.items()}
    for page, text, *values in (*of_the_gpu(records(root)), *of_the_cpu(cells(root))):
        claim = re.search(re.escape(text).replace(r"\ ", r"\s+").replace(r"\#", f"({FIGURE})"), pages[page])
        known[page] += [claim.span()] if claim else []
        found += [f"{line(page, claim.start(at))}{claim[at]} in `{text}`: the table says {value:.4g}"
                  for at, value in enumerate(values, 1)
                  if claim[at] != rounded(value, claim[at])] if claim else [f"{page}:1: `{text}` is not there"]
    for page in FRONT:
        inside = SECTION.search(pages[page]).span()
        for hit in (*re.finditer(UNIT, pages[page]), *re.compile(ANY).finditer(pages[page], *inside)):
            if not any(first <= hit.start() < last for first, last in known[page]):
                found.append(line(page, hit.start()) + f"`{hit[0]}` is in no claim of tests/check/figures.py")
    return found


if __name__ == "__main__":
    finish(check())
