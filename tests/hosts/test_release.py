# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a release says of itself in several places is the same in all of them."""
import os
import re
import subprocess
import sys

import pytest
import yaml
from cli import cli
from conftest import BUILT, ROOT, run, use

VERSION = re.search(r'^version = "(.*)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]
# File → pattern of the version in it.
PLACES = {
    "CITATION.cff": r"^version: (\S+)$",
    "CHANGELOG.md": r"^## (\S+)",
    "plugin/include/h5z_gpu.h": r'^/\* "([\d.]+)";',
    "plugin/python/h5z_gpu/__init__.py": r'^__version__ = "(.*)"$',
    "packaging/conda/recipe.yaml": r'^  version: "([\d.]+)"$',
    "packaging/h5z-gpu.spec": r"^Version: ([\d.]+)$",
}


@pytest.mark.parametrize("place", PLACES)
def test_every_place_names_the_version_of_cargo_toml(place):
    found = re.search(PLACES[place], (ROOT / place).read_text(), re.MULTILINE)
    assert found and found[1] == VERSION, f"{place} says {found and found[1]}, Cargo.toml {VERSION}"


def test_the_plugin_and_the_command_line_say_it_too():
    use("import h5z_gpu.library as l, ctypes, sys; f = ctypes.CDLL(l.PLUGIN_PATH + '/libh5zgpu.so').h5z_gpu_version\n"
        "f.restype = ctypes.c_char_p; assert f().decode() in sys.argv[1:], f()", VERSION, f"{VERSION}+unreleased")
    said = [run(BUILT / "bin/h5z-gpu", "--version"), cli("--version")[1]]
    assert said[0] == said[1] and said[0] in (f"h5z-gpu {VERSION}\n", f"h5z-gpu {VERSION}+unreleased\n")


def test_the_citation_is_complete():
    said = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert said["cff-version"] == "1.2.0" and said["type"] == "software" and said["authors"] and said[
        "message"] and said["title"] == "h5z-gpu"
    assert " OR ".join(said["license"]) in (ROOT / "Cargo.toml").read_text()


def test_the_licences_of_linked_crates_are_those_of_the_lock_file():
    made = subprocess.run([sys.executable, ROOT / "packaging/third_party.py"], cwd=ROOT, text=True, capture_output=True,
                          env={k: os.environ[k] for k in ("PATH", "HOME") if k in os.environ})
    assert made.returncode == 0, made.stderr
    kept = (ROOT / "packaging/THIRD-PARTY.txt").read_text()
    assert made.stdout == kept, "make it anew: python3 packaging/third_party.py >packaging/THIRD-PARTY.txt"
    assert "Meta Platforms" in kept, "zstd's licence"


def test_what_the_security_page_names_is_there():
    text = (ROOT / "SECURITY.md").read_text() + (ROOT / "packaging/README.md").read_text()
    paths = re.findall(r"`((?:tests|plugin|packaging|src)/[\w./-]+\.\w+)`", text)
    assert len(paths) > 15
    for path in paths:
        assert (ROOT / path).exists(), path
    for folder, kind, pattern in (("tests/hosts", "test_*.py", r"`(test_\w+)(?:…)?`"),
                                  ("tests", "*.rs", r"`(an?_\w+)(?:…)?`")):
        code = "".join(p.read_text() for p in (ROOT / folder).glob(kind))
        names = re.findall(pattern, text)
        assert names and all(name in code for name in names), names
