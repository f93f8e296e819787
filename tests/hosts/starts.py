# SPDX-License-Identifier: MIT OR Apache-2.0
"""Starts Python programs: the first of a kind by itself, the next ones as forks of a Python that has imported what
programs of the kind import.

Of what a short program costs, nine tenths are the start of Python and its imports. Programs are of one kind where
interpreter, environment, and the imports that the text begins with (for commands: the command) are the same. The first
program of a kind is a real start. For the second one a *nursery* is started with the same environment: it runs these
imports, in their order, and waits. Each further program is a child of it, forked there: it has its own standard files,
directory and arguments, runs the text as `__main__` and ends as Python ends. What such a child does not show: another
order of sets (the seed of hashes is the nursery's), and faults of the start itself, which the first program shows.

Only what is known to start no thread when it is imported is imported in a nursery. With H5Z_GPU_TEST_LONG=1 every
program is a real start.
"""
import ast
import atexit
import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

HERE = Path(__file__).parent
# Packages that a nursery imports, beside modules of this folder.
KNOWN = {"h5py", "h5z_gpu", "netCDF4", "numcodecs", "numpy", "xarray"}
# Modules of ours that change the process when they are imported, or bring what starts threads.
APART = {"dask", "everywhere", "parallel", "zarr"}
# Commands that read HDF5 files. `doctor` looks at how Python started.
COMMANDS = ("advise", "inspect", "recover", "repack", "verify")
NURSERIES = 8  # at a time, of some 60 MB each
SHORT = 16_000  # characters of a command: what a socket hands over at once

SERVER = """
import json, os, socket, sys
server = socket.socket(fileno=int(sys.argv[1]))
exec(sys.argv[2], {})
while True:
    asked, files, _, _ = socket.recv_fds(server, 1 << 20, 3)
    if not asked:
        os._exit(0)
    pid = os.fork()
    if not pid:
        break
    for file in files:
        os.close(file)
    server.sendall(b"%d\\n" % pid)
    server.sendall(b"%d\\n" % os.waitpid(pid, 0)[1])
server.close()
for number, file in enumerate(files):
    os.dup2(file, number)
    os.close(file)
asked = json.loads(asked)
os.chdir(asked["cwd"])
sys.argv, text = asked["argv"], asked["text"]
del json, os, socket, server, files, file, number, pid, asked, _
if text is None:
    del text
    import runpy
    runpy.run_module("h5z_gpu", run_name="__main__", alter_sys=True)
else:
    import sys
    exec(compile(text, "<string>", "exec"))
"""


def imports(text):
    """The imports that a program begins with, or None where one of them is not for a nursery or none costs time."""
    first = {}
    for statement in ast.parse(text).body:
        if isinstance(statement, ast.Import):
            each = [(alias.name, f"import {alias.name}") for alias in statement.names]
        elif isinstance(statement, ast.ImportFrom) and not statement.level:
            each = [(f"{statement.module}.{a.name}", f"from {statement.module} import {a.name}") for a in
                    statement.names]
        else:
            break
        for name, line in each:
            top = name.split(".")[0]
            if set(name.split(".")) & APART:
                return None
            if top in KNOWN or (HERE / f"{top}.py").exists():
                first[line] = None
            elif top not in sys.stdlib_module_names:
                return None
    return "\n".join(first) or None


def kind_of(command):
    """What a nursery imports for a command, and the program's text; (None, None) where it is to be a real start."""
    if os.environ.get("H5Z_GPU_TEST_LONG") == "1" or len(command) < 3:
        return None, None
    if command[1] == "-c":
        with contextlib.suppress(SyntaxError):
            return imports(command[2]), command[2]
    elif command[1:3] == ["-m", "h5z_gpu"] and command[3:4] and command[3] in COMMANDS:
        return "".join(f"import h5z_gpu.cli.{name}\n" for name in COMMANDS) + "import h5py", None
    return None, None


class Nursery:
    def __init__(self, python, env, first):
        self.socket, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen([python, "-c", SERVER, str(theirs.fileno()), first], env=env,
                                            pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
        self.said = b""

    def close(self):
        self.socket.close()
        self.process.wait()

    def answer(self, seconds=None):
        """The next number that the nursery says, None where that takes longer."""
        while b"\n" not in self.said:
            if not select.select([self.socket], [], [], seconds)[0]:
                return None
            more = self.socket.recv(100)
            assert more, "the nursery ended"
            self.said += more
        line, _, self.said = self.said.partition(b"\n")
        return int(line)

    def run(self, text, argv, cwd, files, seconds):
        """The program's exit status, as `subprocess` gives it."""
        asked = json.dumps({"text": text, "argv": argv, "cwd": str(cwd or os.getcwd())}).encode()
        socket.send_fds(self.socket, [asked], files)
        pid = self.answer()
        status = self.answer(seconds)
        if status is None:
            os.kill(pid, signal.SIGKILL)
            self.answer()
            raise subprocess.TimeoutExpired(argv, seconds)
        return os.waitstatus_to_exitcode(status)


seen, nurseries = set(), {}
# A nursery has one program at a time; those that another thread starts meanwhile are real starts.
busy = threading.Lock()


@atexit.register
def close():
    while nurseries:
        nurseries.popitem()[1].close()


def nursery(python, env, first, command):
    """The nursery of a kind, or None for the kind's first program."""
    key = python, tuple(sorted(env.items())), first
    if (*key, command) not in seen:
        seen.add((*key, command))
        return None
    found = nurseries.pop(key, None) or Nursery(python, env, first)
    nurseries[key] = found  # the last one used is the last one to go
    if len(nurseries) > NURSERIES:
        nurseries.pop(next(iter(nurseries))).close()
    return found


def forked(found, text, command, cwd, merged, timeout):
    """A program of a nursery, as `run` gives it."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        argv = ["-c", *command[3:]] if text is not None else ["h5z-gpu", *command[3:]]
        status = found.run(text, argv, cwd, [0, out.fileno(), (out if merged else err).fileno()], timeout)
        said = []
        for file in (out, err):
            file.seek(0)
            said.append(file.read().decode(errors="replace").replace("\r\n", "\n").replace("\r", "\n"))
    return subprocess.CompletedProcess(command, status, said[0], None if merged else said[1])


def run(command, env, cwd=None, input=None, merged=False, timeout=600):
    """As `subprocess.run` with text, what it prints captured; `merged`: with standard error in standard output."""
    command = [str(c) for c in command]
    first, text = kind_of(command) if Path(command[0]).name.startswith("python") else (None, None)
    if first is not None and input is None and sum(map(len, command)) < SHORT and busy.acquire(blocking=False):
        try:
            found = nursery(command[0], env, first, "" if text else command[3])
            if found:
                return forked(found, text, command, cwd, merged, timeout)
        finally:
            busy.release()
    return subprocess.run(command, env=env, cwd=cwd, input=input, text=True, errors="replace", timeout=timeout,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT if merged else subprocess.PIPE)
