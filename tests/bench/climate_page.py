# SPDX-License-Identifier: MIT OR Apache-2.0
"""The tables of climate.py. A cell is a field and a bound; `passed` is None where a compressor refused it."""
from ours import mean

OURS = "h5z-gpu"


def by_cell(cells):
    """Ratio of ours and the best others that passed, and who did not pass."""
    yield "| field | bound | h5z-gpu | the next that passed | over the bound | refused |"
    yield "|---|---|---|---|---|---|"
    first = []
    for key in sorted({c["cell"] for c in cells}):
        here = [c for c in cells if c["cell"] == key]
        good = sorted((c for c in here if c["passed"]), key=lambda c: -c["ratio"])
        ours = next((c for c in good if c["by"] == OURS), None)
        first.append(ours is good[0])
        rest = ", ".join(f"{c['by']} {c['ratio']:.2f}" for c in [c for c in good if c is not ours][:3])
        who = lambda what: ", ".join(c["by"] for c in here if c["passed"] is what)
        number = f"{'**' * first[-1]}{ours['ratio']:.2f}{'**' * first[-1]}" if ours else "–"
        yield f"| {key} | {here[0]['bound']} | {number} | {rest} | {who(False)} | {who(None)} |"
    yield f"\n{OURS} is first in {sum(first)} of {len(first)}.\n"


def by_compressor(cells):
    """Cells passed, over the bound, refused; mean of ratios beside ours where both passed; MB/s of all."""
    yield "| compressor | passed | over the bound | refused | ratio / ours | encode, decode, MB/s |"
    yield "|---|---|---|---|---|---|"
    ours = {c["cell"]: c["ratio"] for c in cells if c["by"] == OURS and c["passed"]}
    for by in sorted({c["by"] for c in cells}):
        mine = [c for c in cells if c["by"] == by]
        done = [c for c in mine if c["passed"] is not None]
        ratio = mean([c["ratio"] / ours[c["cell"]] for c in done if c["passed"] and c["cell"] in ours])
        speed = [f"{sum(c['mb'] for c in done) / sum(c[t] for c in done):.3g}" if done else "–"
                 for t in ("encode", "decode")]
        counts = [sum(c["passed"] is what for c in mine) for what in (True, False, None)]
        yield f"| {by} | {' | '.join(map(str, counts))} | {ratio:.2f} | {', '.join(speed)} |"
