# SPDX-License-Identifier: MIT OR Apache-2.0
"""Every crate that the project is built or tested with has a licence of deny.toml's list, and comes from crates.io."""

import json
import os
import re
import subprocess

import tomllib
from tree import ROOT, finish


def allows(expression, allowed):
    """Whether an SPDX expression is met, such as `(MIT OR Apache-2.0) AND Unicode-3.0`; `/` is what was written before
    SPDX."""
    return all(
        any(licence in allowed for licence in re.split(" OR |/", part.strip("() ")))
        for part in expression.split(" AND ")
    )


def crates(targets):
    """What Cargo.lock holds for the platforms of releases, with version, licence and source."""
    command = [os.environ.get("CARGO", "cargo"), "metadata", "--format-version=1", "--locked"]
    command += [argument for target in targets for argument in ("--filter-platform", target)]
    told = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
    return json.loads(told)["packages"]


def check(found, allowed):
    wrong = []
    for crate in found:
        name, source = f"{crate['name']} {crate['version']}", crate["source"] or ""
        if not allows(crate["license"] or "", allowed):
            wrong.append(f"{name}: licence {crate['license']!r} is not met by deny.toml's list")
        if source and not source.startswith("registry+https://github.com/rust-lang/crates.io-index"):
            wrong.append(f"{name}: from {source}, not from crates.io")
    return wrong


if __name__ == "__main__":
    deny = tomllib.loads((ROOT / "deny.toml").read_text())
    finish(check(crates(deny["graph"]["targets"]), deny["licenses"]["allow"]))
