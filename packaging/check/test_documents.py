# SPDX-License-Identifier: MIT OR Apache-2.0
"""The citation, by the checker of its format, the crate, as cargo would publish it, and workflows."""
import re

from conftest import ROOT, run, tool


def test_the_citation_is_valid():
    assert "valid according to schema version 1.2.0" in tool("cffconvert", "--validate", "-i", ROOT / "CITATION.cff")
    assert "h5z-gpu" in tool("cffconvert", "-f", "bibtex", "-i", ROOT / "CITATION.cff")


def test_cargo_would_publish_the_crates():
    """The library, with its kernels, is built from what would be sent, and not sent."""
    crates = "-p", "h5z-gpu-codecs", "-p", "h5z-gpu-kernels", "-p", "h5z-gpu"
    said = run("cargo", "publish", "--dry-run", "--allow-dirty", *crates, "--config", "profile.dev.opt-level=0",
               H5Z_GPU_CUDA="require")
    assert "aborting upload due to dry run" in said


def test_workflows_have_no_known_weakness_and_call_what_is_there():
    workflows = sorted((ROOT / ".github/workflows").glob("*.yml"))
    assert [w.name for w in workflows] == ["ci.yml", "release.yml"]
    tool("zizmor", "--offline", "--no-progress", *workflows)
    rules = "".join((ROOT / name).read_text() for name in run("git", "ls-files", "Makefile", "*.mk").split())
    called = {t for w in workflows for t in re.findall(r"^\s+(?:- run: )?make (\w+)", w.read_text(), re.MULTILINE)}
    assert called == {"audit", "release"} and all(re.search(rf"^{t}:", rules, re.MULTILINE) for t in called)
