# SPDX-License-Identifier: MIT OR Apache-2.0
"""The model of GPUs that nobody measured, tests/gpu/model.py: its parts against what is known, its error against what
docs/measurements.md says, its tables against that page's."""
import re
import sys

import pytest
from tree import ROOT

sys.path.insert(0, str(ROOT / "tests/gpu"))
import model

PAGE = (ROOT / "docs/measurements.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("kernel, ctas", [
    ("planes_lossy_quanta_f32", 5), ("planes_lossy_quanta_f64", 3), ("planes_lossless_decode_f32", 7),
    ("lorenzo_encode_plan_f32", 4), ("lorenzo_encode_interpolate_f32", 5), ("szx_encode_f32", 4)])
def test_as_many_ctas_fit_as_launch_bounds_ask_for(kernel, ctas):
    """kernels/tuning.cuh, 9.0; registers are what limits them there."""
    assert model.Model().ctas(kernel, model.H200) == ctas


def test_a_scheduler_is_a_queue():
    assert model.issued(1, 9) == pytest.approx(1 / 10)
    assert model.issued(2, 1) == pytest.approx(2 / (1 + 1 / 2 + 1))  # the second finds the first there half of the time
    assert model.issued(16, 0) == pytest.approx(1)
    for warps in (1, 3, 7, 16):
        for rate in (0.05, 0.4, 1 / warps):
            assert model.issued(warps, model.waits(warps, rate)) == pytest.approx(rate, rel=1e-6)


def test_memory_and_work_each_follow_their_own_figure():
    """A kernel that is at the limit of the bandwidth follows it, one that moves next to nothing the multiprocessors."""
    it = model.Model()
    at_limit = 1e9 * 0.9 * model.H200.tbs  # bytes in a millisecond
    slow = model.H200._replace(tbs=model.H200.tbs / 2)
    assert it.time("szx_range_f32", 1, at_limit, model.H200, slow) == pytest.approx(2)
    assert it.time("szx_encode_f32", 1, 1, model.H200, slow) == pytest.approx(1)
    small = model.H200._replace(sms=66)
    assert it.time("szx_encode_f32", 1, 1, model.H200, small) == pytest.approx(2)
    assert it.time("szx_range_f32", 1, at_limit, model.H200, small) == pytest.approx(1)


def test_the_page_says_how_far_the_model_is_off(capsys):
    model.check(model.Model())
    said = re.findall(r"(\d+ of \d+) within 15 %, median ([\d.]+ %)", capsys.readouterr().out)
    found = [f"| {mine} | {median} | {unchanged} |" for (mine, median), (unchanged, _) in zip(said[::2], said[1::2])]
    assert len(found) == 4
    assert [row for row in found if row not in PAGE] == []


def test_the_page_has_the_kernels_of_the_model(capsys):
    model.expect(model.Model())
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| `")]
    assert len(rows) > 15
    assert [row for row in rows if row not in PAGE] == []


def test_the_page_has_the_rates_of_the_model(capsys):
    model.expect(model.Model())
    found = {row.split(" | ")[0]: row for row in capsys.readouterr().out.splitlines()}
    rows = re.search(r"\| request \| H200, measured.*?\n\|[-|]+\n(.*?)\n\n", PAGE, re.S)[1].splitlines()
    assert len(rows) > 5
    for row in rows:
        said = row.translate(str.maketrans("⁻²³⁴", "-234")).replace("`", "")
        name = re.sub(r"lossless, planes", "planes lossless", re.sub(r"10-(\d)", r"abs of rel 1e-\1", said))
        name = name.replace("lossless, ndzip", "ndzip")
        assert name == found[name.split(" | ")[0]], row
