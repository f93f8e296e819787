# SPDX-License-Identifier: MIT OR Apache-2.0
"""Work in a process of its own: damaged files make HDF5 crash, or never come back.

`attempt` runs a function, for a limited time, and gives what it returns. `program` runs a whole command: where HDF5
crashes, the user reads a sentence.
"""
from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from .common import Problem, say

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

T = TypeVar("T")


def _signals(*names: str) -> set[signal.Signals]:
    """Those of these signals that the system has; Windows lacks some."""
    return {found for name in names for found in [getattr(signal, f"SIG{name}", None)] if found is not None}


_PR_SET_PDEATHSIG = 1
# Signals by which a process is ended from outside.
_ASKED = _signals("INT", "TERM", "HUP")
_SI_USER = 0  # sent by kill(2), and not by the terminal
_PATIENCE = 3  # times that a process is asked to end
CRASHES = _signals("SEGV", "BUS", "ABRT", "FPE", "ILL")


class Died(Exception):
    """The child crashed or hung."""

    def __init__(self, why: str, at: Any) -> None:
        super().__init__(why)
        self.at = at
        """What it had told last with `note`, None for nothing."""


def attempt(work: Callable[[Callable[[Any], None]], T], seconds: float) -> T:
    """Runs a function in a child process, and returns what it returns, which has to be picklable.

    `work` is given `note`, a function to be called with what it begins next. A child that says nothing for `seconds` is
    ended. What `work` raises is raised here, with the last note as its `at`. Died where the child crashed, or took too
    long, Problem where somebody else has ended it, or the system has no `fork`.
    """
    if resource is None:
        raise Problem("damaged files are read in a child that may crash, which Windows cannot fork: use Linux, macOS "
                      "or WSL")
    ours, theirs = multiprocessing.Pipe(duplex=False)
    sys.stdout.flush()
    sys.stderr.flush()
    # Python drops what is raised in its callbacks behind a fork
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ASKED)
    pid = os.fork()
    if not pid:
        ours.close()
        _child(work, theirs, before)
    theirs.close()
    at = None
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        while ours.poll(seconds):
            kind, value = ours.recv()
            if kind == "note":
                at = value
            elif kind == "raised":
                value.at = at
                raise value
            else:
                result: T = value
                return result
        raise Died(f"HDF5 was still at it after {seconds:g} seconds", at)
    except (EOFError, ConnectionResetError):
        _, status = os.waitpid(pid, 0)
        pid = 0
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) not in CRASHES:
            raise Problem(f"the process that reads the file was ended by {_ending(status)}, as where memory is short; "
                          "nothing was written") from None
        raise Died(f"HDF5 crashed ({_ending(status)})", at) from None
    finally:
        ours.close()
        if pid:
            _end(pid)


def _child(work: Callable[[Callable[[Any], None]], Any], answers: Any, mask: Iterable[int]) -> None:
    """What the child does; it never returns."""
    try:
        os.setpgid(0, 0)  # so that it is ended with all that it starts
        _settle()
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # the C library complains there of broken memory
        try:
            answer = "done", work(lambda what: answers.send(("note", what)))
        except BaseException as why:
            answer = "raised", why
        answers.send(answer)
        answers.close()
    finally:
        os._exit(0)


def _settle() -> None:
    """Signals as a new process has them, no file for a crash, and an end with the parent."""
    for number in _ASKED:
        signal.signal(number, signal.SIG_DFL)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    end_with_parent()


def end_with_parent() -> None:
    """Sees that this process does not outlive its parent, however that ends."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _end(pid: int) -> None:
    """Ends a child and its group, and waits for it."""
    for kill in (os.killpg, os.kill):  # it may not have made its group yet
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(pid, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)


def _ending(status: int) -> str:
    return (signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status)
            else f"exit status {os.waitstatus_to_exitcode(status)}")


def program(command: Callable[[], int]) -> int:
    """Runs a command in a child process, where HDF5 may crash: the user reads a sentence then. The exit status.

    What the process is asked by signals is handed on to the child.
    """
    if not hasattr(signal, "sigwaitinfo"):
        return command()
    awaited = _ASKED | {signal.SIGCHLD}
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # or the child would leave no status
    before = signal.pthread_sigmask(signal.SIG_BLOCK, awaited)
    pid = os.fork()
    if not pid:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        end_with_parent()
        return command()
    asked = 0
    while True:
        got = signal.sigwaitinfo(awaited)
        if got.si_signo == signal.SIGCHLD:
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                break
            continue
        asked += 1
        if asked >= _PATIENCE:  # it may never come back from HDF5
            os.kill(pid, signal.SIGKILL)
        elif got.si_code == _SI_USER:  # what the terminal sends, the child has got too
            os.kill(pid, got.si_signo)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    if os.WIFEXITED(status):
        return os.WEXITSTATUS(status)
    if os.WTERMSIG(status) in CRASHES:
        say(f"h5z-gpu: HDF5 crashed ({_ending(status)}). It does so on files whose own tables are damaged: "
              "h5z-gpu recover IN OUT takes what can be read of one", file=sys.stderr)
        return 2
    if os.WTERMSIG(status) != signal.SIGKILL:
        signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
    os.kill(os.getpid(), os.WTERMSIG(status))  # ended as it was
    return 128 + os.WTERMSIG(status)
