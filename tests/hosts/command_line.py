# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs the command line `h5z-gpu` of the Python package in a process of its own, one command or several in turn."""
import json
import subprocess
import sys

from conftest import PLUGIN, ROOT, clean

# Reads argument lists, and tells status, stdout and stderr of each.
_SEVERAL = """
import contextlib, io, json, sys
from h5z_gpu.cli import main
for argv in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = main(argv)
        except SystemExit as e:
            status = e.code
    print(json.dumps([status, out.getvalue(), err.getvalue()]))
"""


def environment(**more):
    """Where the package and the plugin are found, and nothing else of ours."""
    return clean(PYTHONPATH=f"{ROOT}/plugin/python", H5Z_GPU_PLUGIN_PATH=str(PLUGIN.parent)) | more


def h5z_gpu(*args, status=0, cwd=None, **more):
    """Runs a command; gives stdout and stderr. Its exit status must be `status`, and no traceback may be seen."""
    r = subprocess.run([sys.executable, "-m", "h5z_gpu", *map(str, args)], env=environment(**more), cwd=cwd, text=True,
                       capture_output=True, timeout=300)  # fmt: skip
    assert r.returncode == status and "Traceback" not in r.stderr and "Warning" not in r.stderr, (
        f"h5z-gpu {' '.join(map(str, args))}: status {r.returncode}, not {status}\n{r.stdout[-3000:]}\n{r.stderr[-3000:]}")  # fmt: skip
    return r.stdout, r.stderr


def several(*commands):
    """Runs commands in turn in one process; gives (status, stdout, stderr) of each."""
    argvs = json.dumps([[str(a) for a in command] for command in commands])
    r = subprocess.run([sys.executable, "-c", _SEVERAL, argvs], env=environment(), text=True, capture_output=True, timeout=300)
    assert r.returncode == 0 and not r.stderr, r.stderr[-3000:]
    return [tuple(json.loads(line)) for line in r.stdout.splitlines()]


def refused(*commands):
    """Runs commands that must refuse with status 2; gives the one sentence of each."""
    answers = several(*commands)
    for command, (status, out, err) in zip(commands, answers):
        assert status == 2 and not out and err.count("\n") == 1 and err.startswith(f"h5z-gpu {command[0]}: "), (command, status, out, err)
    return [err for _, _, err in answers]
