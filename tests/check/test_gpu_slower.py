# SPDX-License-Identifier: MIT OR Apache-2.0
"""tests/gpu/slower.py: the record beside itself, and beside one in which a cell has lost a twentieth."""

import re
import sys

from tree import ROOT

sys.path.insert(0, str(ROOT / "tests/gpu"))
import slower

RECORD = ROOT / "tests/gpu/record.toml"


def test_a_record_is_as_fast_as_itself(capsys):
    assert slower.main(RECORD, RECORD) == 0
    said = capsys.readouterr().out
    assert "not compared" not in said, said
    assert re.search(r"device: [12]\d\d speeds, 1\.000 times", said) and re.search(r"cliffs: 684 speeds", said), said


def test_a_lost_twentieth_is_named(tmp_path, capsys):
    text = RECORD.read_text()
    row = re.search(r"density +szx abs of rel 1e-3 +[\d.]+ +(\d+)", text)
    lost = text[: row.start(1)] + str(int(int(row[1]) * 0.95)) + text[row.end(1) :]
    (tmp_path / "new.toml").write_text(lost)
    assert slower.main(RECORD, tmp_path / "new.toml") == 1
    last = capsys.readouterr().out.splitlines()[-1]
    assert re.match(r"0\.9[45]\d  density +szx abs of rel 1e-3, encode", last), last


def test_a_cell_of_another_ratio_is_counted(tmp_path, capsys):
    text = RECORD.read_text()
    row = re.search(r"density +szx abs of rel 1e-3 +[\d.]+ +\d+ +\d+ +([\d.]+)", text)
    (tmp_path / "new.toml").write_text(text[: row.start(1)] + "1.0" + text[row.end(1) :])
    assert slower.main(RECORD, tmp_path / "new.toml") == 0
    assert "\ndevice: 1 not compared" in capsys.readouterr().out
