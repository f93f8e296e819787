# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the comparisons with other filters give them: tests/bench/compare.py, compare_lossless.py and
compare_trajectories.py. They are not run here, for they take minutes."""
import sys

import h5py
import numpy as np
import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "tests/bench"))
from compare import field
from compare_lossless import chunk_of
from compare_lossless_page import means, section
from compare_page import into
from compare_trajectories import measure, xtc


@pytest.mark.parametrize("name", ["ocean_temp", "ocean_1e20", "ocean_undeclared", "sea_level", "relief"])
def test_the_bound_is_a_part_of_the_measured_range(name):
    """What stands for land is not measured, declared or not: with it the bound of a sea would be 10^17 kelvin or
    more."""
    path = ROOT / f"target/fields/small/{name}.h5"
    found = field(path, 8e6, 1e-3)
    with h5py.File(path) as f:
        x, declared = f["data"][...], f["data"].attrs.get("fill")
    sea = x[np.isfinite(x) & (np.abs(x) < 1e19)].astype("f8")
    assert found.bound == 1e-3 * (sea.max() - sea.min()) > 0
    assert found.fill == declared and (name not in ("ocean_temp", "ocean_1e20") or declared is not None)


def test_a_table_takes_the_place_of_the_last_one(tmp_path):
    page = tmp_path / "page.md"
    head = "| filter | fields | ratio |\n|---|---|---|\n"
    page.write_text(f"before\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n{head}| x | 1 | 2 |\n| y | 3 | 4 |\n\nbehind\n")
    into(page, f"text\n\n{head}| z | 5 | 6 |\n\n* note\n")
    assert page.read_text() == f"before\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n{head}| z | 5 | 6 |\n\nbehind\n"


@pytest.mark.parametrize("shape, kind, frames, chunk", [
    ((16, 514, 1030), "u2", True, (1, 514, 1030)),
    ((2, 40, 60), "i4", True, (1, 40, 60)),
    ((2000, 4096), "i2", False, (128, 4096)),
    ((3, 4096, 4096), "f4", False, (1, 4096, 4096)),
    ((1000,), "i8", False, (1000,)),
])
def test_chunks_are_cut_along_the_slowest_axis(shape, kind, frames, chunk):
    x = np.empty(shape, kind)
    assert chunk_of(x, frames, "chunks") == chunk and chunk_of(x, frames, "whole") == shape


def test_means_count_the_sets_that_are_lost():
    """Blosc2 is the better of its two; what a filter does not take is not counted."""
    result = lambda ratio: {"ratio": ratio, "write": 1, "read": 1}
    one = {"h5z-gpu": result(4), "Blosc2, shuffle": result(2), "Blosc2, bitshuffle": result(8), "other": "refused"}
    two = {"h5z-gpu": result(9), "Blosc2, shuffle": result(2), "Blosc2, bitshuffle": result(1), "other": result(9)}
    sets = {name: {"group": "floats, real", "whole": r, "chunks": r} for name, r in (("a", one), ("b", two))}
    lines = means(sets, list(one))
    assert lines[2] == "| floats, real, one chunk | 2 | 6.00 | 4.00 (1) | 9.00 (0) of 1 |", lines


def test_a_section_takes_the_place_of_the_last_one(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A\n\n## B\n\nold\n\n| a |\n|---|\n| 1 |\n\n### C\n\nbehind\n")
    section(page, "## B", "new\n")
    assert page.read_text() == "# A\n\n## B\n\nnew\n\n### C\n\nbehind\n"
    section(page, "### C", "last\n")
    assert page.read_text() == "# A\n\n## B\n\nnew\n\n### C\n\nlast\n\n"


def test_xtc_gets_the_precision_of_the_bound():
    """Within it, and not by much, also far from zero, where f32 rounds by a part of it."""
    x = np.random.default_rng(1).uniform(0, 30, (2, 3000, 3)).astype("f4")
    assert all(0.9 < measure(xtc(), x, bound, 1)[3] <= 1 for bound in (5e-3, 5e-5))


@pytest.mark.parametrize("wrong, error", [(1.5, 1.5), (np.nan, np.inf)])
def test_a_coder_that_leaves_the_bound_or_loses_a_value_is_seen(wrong, error):
    x = np.zeros(8, "f8")
    coder = lambda x, bound: [b"frame"], lambda frames, x: np.where(np.arange(8) == 3, wrong, x)
    assert measure(coder, x, 1.0, 1)[3] == error
