# SPDX-License-Identifier: MIT OR Apache-2.0
"""The citation, by the checker of its format, and the crate, as cargo would publish it."""
from conftest import ROOT, run, tool


def test_the_citation_is_valid():
    assert "valid according to schema version 1.2.0" in tool("cffconvert", "--validate", "-i", ROOT / "CITATION.cff")
    assert "h5z-gpu" in tool("cffconvert", "-f", "bibtex", "-i", ROOT / "CITATION.cff")


def test_cargo_would_publish_the_crate():
    """Without kernels: the crate is built from what would be sent, and not sent."""
    said = run("cargo", "publish", "--dry-run", "--allow-dirty", "-p", "h5z-gpu", "--config", "profile.dev.opt-level=0",
               H5Z_GPU_CUDA="off")
    assert "aborting upload due to dry run" in said


def test_the_spack_package_is_python_and_says_what_the_makefile_does():
    """No Spack is at hand: this finds slips of the pen alone."""
    text = (ROOT / "packaging/spack/package.py").read_text()
    compile(text, "package.py", "exec")
    assert 'make("plugin")' in text and 'make("install", f"PREFIX={prefix}")' in text
