# SPDX-License-Identifier: MIT OR Apache-2.0
"""`h5z-gpu verify --structure` sees every single thing in which a copy differs, and nothing in a right copy."""

import pytest
from cli import many
from structure_cases import CASES
from structure_files import make


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """What verify says of each case's copy, and of the original made once more."""
    folder, calls = tmp_path_factory.mktemp("structure"), []
    for k, (old, new, _) in enumerate(CASES.values()):
        paths = [folder / f"{k}{which}.h5" for which in "axb"]
        for path, how in zip(paths, (old, old, new)):
            make(path, how)
        calls += [["verify", paths[0], other, "--structure"] for other in paths[1:]]
    found = many(*calls)
    return dict(zip(CASES, zip(found[::2], found[1::2])))


@pytest.mark.parametrize("name", CASES)
def test_a_single_difference_is_seen(answers, name):
    (status, out, err), (other, text, _) = answers[name]
    assert status == 0 and "besides values" not in out and not err, (out, err)
    assert other == 1 and CASES[name][2] in text, text
