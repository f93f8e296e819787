# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs commands that must end with a given status; `cli.many` runs several in one process."""

import sys

import starts
from cli import many
from conftest import PLUGIN, ROOT, clean


def environment(**more):
    """Where the package and the plugin are found, and nothing else of ours."""
    return clean(PYTHONPATH=f"{ROOT}/plugin/python", H5Z_GPU_PLUGIN_PATH=str(PLUGIN.parent)) | more


def h5z_gpu(*args, status=0, cwd=None, **more):
    """Runs a command; gives stdout and stderr. Its exit status must be `status`, and no traceback may be seen."""
    r = starts.run([sys.executable, "-m", "h5z_gpu", *args], environment(**more), cwd, timeout=300)
    assert r.returncode == status and "Traceback" not in r.stderr and "Warning" not in r.stderr, (
        f"h5z-gpu {' '.join(map(str, args))}: status {r.returncode}, not "
        f"{status}\n{r.stdout[-3000:]}\n{r.stderr[-3000:]}")
    return r.stdout, r.stderr


def refused(*commands):
    """Runs commands that must refuse with status 2; gives the one sentence of each."""
    answers = many(*commands)
    for command, (status, out, err) in zip(commands, answers):
        assert status == 2 and not out and err.count("\n") == 1 and err.startswith(f"h5z-gpu {command[0]}: "), (
            command,
            status,
            out,
            err,
        )
    return [err for _, _, err in answers]
