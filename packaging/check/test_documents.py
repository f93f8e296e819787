# SPDX-License-Identifier: MIT OR Apache-2.0
"""The citation, by the checker of its format, the crate, as cargo would publish it, workflows and recipes."""
import re

from conftest import ROOT, run, tool


def test_the_citation_is_valid():
    assert "valid according to schema version 1.2.0" in tool("cffconvert", "--validate", "-i", ROOT / "CITATION.cff")
    assert "h5z-gpu" in tool("cffconvert", "-f", "bibtex", "-i", ROOT / "CITATION.cff")


def test_cargo_would_publish_the_crate():
    """The crate, with its kernels, is built from what would be sent, and not sent."""
    said = run("cargo", "publish", "--dry-run", "--allow-dirty", "-p", "h5z-gpu", "--config", "profile.dev.opt-level=0",
               H5Z_GPU_CUDA="require")
    assert "aborting upload due to dry run" in said


def test_the_spack_package_has_the_style_of_spacks_own_and_calls_the_makefile():
    """No Spack is at hand: these are the rules of ruff in spack-packages, and the targets that `make` must have."""
    package = ROOT / "packaging/spack/package.py"
    rules = "--isolated", "--line-length=99", "--no-cache"
    tool("ruff", "check", *rules, "--select=E,F,I,W", "--ignore=E731,F403,F405,F811",
         "--config=lint.isort.section-order=['future','standard-library','third-party','spack','first-party',"
         "'local-folder']", "--config=lint.isort.sections={spack=['spack']}", package)
    tool("ruff", "format", *rules, "--check", package)
    text = package.read_text()
    assert 'build_targets = ["plugin"]' in text and '["install", f"PREFIX={self.prefix}"]' in text
    assert "build_time_test_callbacks = []" in text, "`make test` would reach networks"
    run("make", "-n", "plugin", "install", "PREFIX=/nowhere")


def test_workflows_have_no_known_weakness_and_call_what_is_there():
    workflows = sorted((ROOT / ".github/workflows").glob("*.yml"))
    assert [w.name for w in workflows] == ["ci.yml", "release.yml"]
    tool("zizmor", "--offline", "--no-progress", *workflows)
    rules = "".join((ROOT / name).read_text() for name in run("git", "ls-files", "Makefile", "*.mk").split())
    called = {t for w in workflows for t in re.findall(r"^\s+(?:- run: )?make (\w+)", w.read_text(), re.MULTILINE)}
    assert called == {"audit", "release"} and all(re.search(rf"^{t}:", rules, re.MULTILINE) for t in called)
