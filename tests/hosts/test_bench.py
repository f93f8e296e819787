# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the comparison with other filters gives them: tests/bench/compare.py. It is not run here, for it takes
minutes."""
import sys

import h5py
import numpy as np
import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "tests/bench"))
from compare import field
from compare_page import into


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
