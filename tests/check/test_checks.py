# SPDX-License-Identifier: MIT OR Apache-2.0
"""Each check finds the fault that it is there for: planted here, in a tree of its own."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import figures
import imports
import lengths
import licences
import pytest
import words

ROOT = Path(__file__).parents[2]
LONG = "x" * 110


def tree(root, **texts):
    """A repository with these files; `__` in a name stands for the dot of its ending."""
    subprocess.run(["git", "init", "-q", root], check=True)
    for name, text in texts.items():
        (root / name.replace("__", ".")).write_text(text)
    return root


def body(opening, line, count, closing):
    return "\n".join([opening, *[line] * (count - 2), closing]) + "\n"


PYTHON = "def long():\n" + "    pass\n" * 80
RUST = body("    pub(crate) fn long<const D: usize>(x: [u8; 4]) -> (u8, char) where u8: Copy {", "    // }", 81,
            "    }")
C = body("static int long(int x)\n{", '    puts("}");', 81, "}")
KERNEL = body("template <class T>\n__device__ void long(T* x, unsigned n) {", "    '}';", 121, "}")
FORMAT = "# A\n\n## 1 Versions\n" + "word " * 12991 + "\n| A1 to A1 | a | 1 |\n| A1 | none |\n\n## 8 Writer\n"


@pytest.mark.parametrize(("rule", "name", "wrong", "right"), [
    ("columns", "a__rs", f"// {LONG}12345678\n", f"// {LONG}1234567\n"),
    ("columns", "Makefile", f"\techo {LONG}12345\n", f"\techo {LONG}1234\n"),
    ("lines", "a__py", "pass\n" * 501, "pass\n" * 500),
    ("functions", "a__py", PYTHON, PYTHON.replace("    pass\n", "", 1)),
    ("functions", "a__rs", RUST, RUST.replace("    // }\n", "", 1)),
    ("functions", "a__c", C, C.replace('    puts("}");\n', "", 2)),
    ("functions", "a__cuh", KERNEL, KERNEL.replace("    '}';\n", "", 2)),
    ("formats", "FORMAT__md", FORMAT.replace("none", "none here"), FORMAT),
    ("formats", "FORMAT__md", FORMAT.replace("a | 1", "a | 2"), FORMAT),
])
def test_what_is_too_long_is_found(rule, name, wrong, right, tmp_path):
    assert len(lengths.check(rule, tree(tmp_path, **{name: wrong}))) == 1
    assert lengths.check(rule, tree(tmp_path, **{name: right})) == []


def test_words_that_were_given_up_are_found(tmp_path):
    text = ("/// Compresses by an [`Request`].\n// the ask of a user, as `planes-dense`: level A\n// He asks for an "
            "asking price.\n")
    found = words.check(tree(tmp_path, a__rs=text))
    assert [line.split("`")[1] for line in found] == ["planes-dense", "level A", "an [", "the ask"]


@pytest.mark.parametrize(("page", "right", "wrong", "findings"), [
    ("README.md", r"(compress at )\d+", r"\g<1>7", 1),
    ("README.md", r"those of decimals \d+ % \(\d+\)", "those of decimals a third", 2),
    ("README.md", "## Two commands\n", "## Two commands\n\nThey take 40 seconds.\n", 1),
    ("docs/index.md", "# h5z-gpu\n", "# h5z-gpu\n\nIt is 3 times as fast.\n", 1),
    ("docs/measurements.md", r"(\n\| 10⁻² \| )71", r"\g<1>90", 1),
    ("tests/gpu/record.toml", r"(\n +lorenzo abs of rel 1e-3 +5 +)\d+", r"\g<1>7", 2),
])
def test_figures_that_are_in_no_table_are_found(page, right, wrong, findings, tmp_path):
    for name in (*figures.FRONT, figures.PAGE, "docs/choice.md", "tests/gpu/record.toml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    assert figures.check(tmp_path) == []
    text, count = re.subn(right, wrong, (tmp_path / page).read_text(), count=1)
    assert count == 1
    (tmp_path / page).write_text(text)
    assert len(figures.check(tmp_path)) == findings


def package(root, **texts):
    for name, text in texts.items():
        path = root / "h5z_gpu" / (name.replace("__", "/") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root / "h5z_gpu"


def test_imports_that_go_up_or_round_are_found(tmp_path):
    whole = {"cli__a": "from .. import filters\nfrom . import b\n", "cli__b": "import numpy\n", "filters": "",
             "cli____init__": ""}
    assert imports.check(package(tmp_path, **whole)) == []
    later = "def f():\n    from .a import g\n"
    assert "a circle" in imports.check(package(tmp_path, **whole | {"cli__b": later}))[0]
    checked = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .a import g\n"
    assert imports.check(package(tmp_path, **whole | {"cli__b": checked})) == []
    up = imports.check(package(tmp_path, **whole | {"filters": "from .cli import b\n"}))
    assert "h5z_gpu.filters imports h5z_gpu.cli.b" in up[-1]


def test_licences_that_nobody_agreed_to_are_found():
    allowed = ["MIT", "Apache-2.0", "Unicode-3.0"]
    crate = {"name": "a", "version": "1.0.0", "source": "registry+https://github.com/rust-lang/crates.io-index"}
    for expression in ("MIT", "MIT/Apache-2.0", "GPL-3.0-only OR MIT", "(MIT OR Apache-2.0) AND Unicode-3.0"):
        assert licences.check([crate | {"license": expression}], allowed) == []
    for expression in ("GPL-3.0-only", "MIT AND GPL-3.0-only", None):
        assert len(licences.check([crate | {"license": expression}], allowed)) == 1
    assert len(licences.check([crate | {"license": "MIT", "source": "git+https://example.org/a"}], allowed)) == 1


def test_a_function_without_types_is_found(tmp_path):
    """By mypy, as the package's configuration sets it."""
    configured = ["-m", "mypy", "--config-file", ROOT / "plugin/python/pyproject.toml", "--cache-dir", tmp_path]
    for text, status in (("def f(x): return x\n", 1), ("def f(x: int) -> int: return x\n", 0)):
        (tmp_path / "a.py").write_text(text)
        assert subprocess.run([sys.executable, *configured, tmp_path / "a.py"], cwd=tmp_path).returncode == status
