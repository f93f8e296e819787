# SPDX-License-Identifier: MIT OR Apache-2.0
"""`repack --bounds`: one file by a table of bounds, or many files into a folder, by several processes.

1. Each file is looked at: what will become of each of its datasets (`plan`). A name of the table that no file has, and
   units that differ, end the command here, before anything is written.
2. Copies that an earlier run has made stay. All others are written, the largest files first. A file that fails, or at
   which HDF5 crashes, is named at the end, and the others are written all the same.

`.h5z-gpu-repack` in the folder has a line of JSON for each copy: name, size and time; and of its original the path,
size and time, and a digest of the plan. The line is written when the copy is complete, before the copy takes its name.
So a copy with such a line is whole, and of that original and plan, whenever a run was killed. If the original or the
plan has changed since, the copy is replaced. A copy without a line was not made by this command, and is left alone.

All processes of a run hold a lock on that file. Unfinished copies that a run finds are of runs that were killed: it
removes them.
"""
from __future__ import annotations

import argparse
import contextlib
import functools
import hashlib
import json
import multiprocessing.connection
import os
import re
import signal
import sys
import time
from collections.abc import Generator, Iterator
from typing import IO, Any, Callable, NamedTuple, Optional

from ..bounds_file import Bounds, BoundsError
from ..progress import bar
from ..whole import remove_unfinished, stoppable
from . import common
from .builds import open_data
from .child import CRASHES, end_with_parent
from .common import Problem, say
from .failures import of_hdf5
from .parts import Part, by_quantities, plan
from .promise import bound_from

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

_DONE = ".h5z-gpu-repack"
_PATIENCE = 5  # seconds until the processes of a run that was killed have ended
_ALIVE = 2  # seconds after which a process without work looks whether its parent is there
_SHOWN = 20  # failures

Repack = Callable[..., dict[str, Part]]


class _Task(NamedTuple):
    """One file."""

    input: str
    output: str
    mode: str = "x"
    """As of `whole`: "w" replaces what an earlier run has made."""
    state: tuple[Any, ...] = ()
    """The original, and what becomes of it."""


class _Look(NamedTuple):
    """What is known of a file before it is written."""

    names: list[str]
    raw: int
    """Bytes of the values that are to be compressed."""
    state: tuple[Any, ...]


def run(args: argparse.Namespace, repack: Repack, report: Callable[[dict[str, Part], argparse.Namespace], None]) -> int:
    """Repacks by a table; the exit status."""
    files, out = [args.input, args.output, *args.bounds][:-1], [args.output, *args.bounds][-1]
    _check_arguments(args, files, out)
    with _of_table():
        args.table, args.bounds = _read(args.table), []
        if len(files) > 1 or os.path.isdir(out) or out.endswith("/"):
            return _repack_all(args, [_Task(f, os.path.join(out, os.path.basename(f))) for f in files], out, repack)
        _check_names(args.table, [_look(args, _Task(args.input, args.output))])
    report(repack(args), args)
    return 0


def _check_arguments(args: argparse.Namespace, files: list[str], out: str) -> None:
    said = [f"--{name}" for name in ("lossless", "advise", "keep") if getattr(args, name)]
    said += [] if args.codec == "auto" else ["--codec"]
    said += [] if bound_from(args) is None else ["a bound for all"]
    said += [text for text in (*files, out) if re.search("=(lossless$|[a-z_-]+:)", text) and not os.path.exists(text)]
    if said:
        raise Problem(f'{said[0]} beside --bounds: write it into {args.table}, under ["*"] for everything else')
    if args.jobs is not None and args.jobs < 1:
        raise Problem(f"--jobs {args.jobs}: a number from 1 on is needed")
    if len(files) > 1 and os.path.lexists(out) and not os.path.isdir(out):
        raise Problem(f"{out} is a file; behind several files stands the folder for their copies")
    outputs = dict[str, str]()
    for path in files:
        if (name := os.path.basename(path)) in outputs:
            raise Problem(f"{outputs[name]} and {path} have one name in {out}; repack them into two folders")
        outputs[name] = path
        if os.path.isdir(out) and os.path.realpath(path) == os.path.realpath(os.path.join(out, name)):
            raise Problem(f"{path} lies in {out} itself; name another folder for the copies")


def _read(path: str) -> Bounds:
    try:
        return Bounds(path)
    except OSError as why:
        raise Problem(f"{path}: {why.strerror or why}") from None


@contextlib.contextmanager
def _of_table() -> Iterator[None]:
    """Within the block what is wrong with a table is a Problem."""
    try:
        yield
    except BoundsError as why:
        raise Problem(str(why).removeprefix("h5z-gpu: ")) from None


def _look(args: argparse.Namespace, task: _Task) -> _Look:
    """Looks at a file."""
    with open_data(task.input, rdcc_nbytes=0) as source:
        parts = plan(source, None, {}, args).values()
        quantities = sorted({*args.quantity, *map(str, by_quantities(source, args.table)[0])})
    what = [(p.name, p.how, p.chunk, None if p.fill is None else p.fill.item(), p.again) for p in parts]
    digest = hashlib.sha256(repr((what, quantities, args.verify, args.no_provenance)).encode(errors="surrogateescape"))
    return _Look([p.name for p in parts], sum(p.raw for p in parts if p.how),
                 (os.path.realpath(task.input), *_stamp(task.input), digest.hexdigest()))


def _stamp(path: str) -> tuple[int, int]:
    """Size and time of a file."""
    found = os.stat(path)
    return found.st_size, found.st_mtime_ns


def _check_names(table: Bounds, looks: list[_Look]) -> None:
    """Raises BoundsError for a name that no file has."""
    names = sorted({name for look in looks for name in look.names})
    for entry in table.entries:
        if entry.is_name and entry.header not in names:
            files = "the file" if len(looks) == 1 else f"any of {len(looks)} files"
            raise BoundsError(f"{entry.place}: no variable {entry.header} is in {files}; there "
                              f"{'are' if names else 'is'} {', '.join(names[:8]) or 'none'}"
                              f"{' ...' if len(names) > 8 else ''}")


# --- many files -------------------------------------------------------------------------------------------------------


def _repack_all(args: argparse.Namespace, tasks: list[_Task], out: str, repack: Repack) -> int:
    """Repacks files into a folder; the exit status."""
    failed, looks, written = dict[str, str](), dict[str, _Look](), 0
    with stoppable():
        for task, answer in _answers(functools.partial(_look, args), tasks, args.jobs):
            if isinstance(answer, BoundsError):
                raise answer
            (failed if isinstance(answer, str) else looks)[task.input] = answer
        if not failed:  # else they may have the names that no other file has
            _check_names(args.table, list(looks.values()))
        try:
            os.makedirs(out, exist_ok=True)
            open(os.path.join(out, _DONE), "ab").close()
        except OSError as why:
            raise Problem(f"{out}: {why.strerror or why}; name a folder that may be written to") from None
        with _locked(out, tasks) as known:
            left = []
            for task in (t._replace(state=looks[t.input].state) for t in tasks if t.input in looks):
                mode = _mode(task, known)
                if mode is None:
                    failed[task.input] = f"{task.output} is there already, and not as repack has made it; remove it"
                elif mode:
                    left.append(task._replace(mode=mode))
            left.sort(key=lambda t: -looks[t.input].raw)
            total, work = sum(looks[t.input].raw for t in left), functools.partial(_write, args, repack)
            with bar(None, total, "repack", "") as done, contextlib.closing(_answers(work, left, args.jobs)) as answers:
                for task, answer in answers:
                    if answer is None:
                        written += 1
                    else:  # a BoundsError, too, where the original has changed since
                        failed[task.input] = str(answer)
                    done(looks[task.input].raw)
    _report(tasks, looks, out, written, failed)
    return 1 if failed else 0


def _mode(task: _Task, known: dict[str, list[Any]]) -> Optional[str]:
    """How a file is to be written; "": it is done; None: what is there is not of this command."""
    if not os.path.exists(task.output):
        return "x"
    copy = [*_stamp(task.output)]
    states = [state for stamp, state in known.get(os.path.basename(task.output), []) if stamp == copy]
    return None if not states else "" if states[-1] == [*task.state] else "w"


@contextlib.contextmanager
def _locked(out: str, tasks: list[_Task]) -> Iterator[dict[str, list[Any]]]:
    """Within the block no other run writes into the folder, where the file system has locks. Gives what has been done
    there, by name, and removes what is unfinished."""
    with open(os.path.join(out, _DONE), "a+b") as file:
        locked, names = _lock(file, out), [os.path.basename(task.output) for task in tasks]
        if locked:
            remove_unfinished(out, names)
        file.seek(0)
        lines = file.read().split(b"\n")
        if lines[-1]:  # cut short by a power failure
            file.write(b"\n")
            file.flush()
        known = dict[str, list[Any]]()
        for line in lines:
            with contextlib.suppress(ValueError, TypeError):
                name, stamp, state = json.loads(line)
                known.setdefault(name, []).append((stamp, state))
        try:
            yield known
        finally:
            if locked:  # what was stopped
                remove_unfinished(out, names)


def _lock(file: IO[bytes], out: str) -> bool:
    """Locks the folder; False where its file system cannot."""
    end = time.monotonic() + _PATIENCE
    while fcntl is not None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() > end:
                raise Problem(f"another repack writes into {out}; wait until it has ended") from None
            time.sleep(0.05)
        except OSError:
            break
    return False


def _write(args: argparse.Namespace, repack: Repack, task: _Task) -> None:
    """Repacks one file."""

    def ready(part: str) -> None:
        with open(part, "r+b") as file:
            os.fsync(file.fileno())  # a file server may set the time as late as this
        folder, name = os.path.split(task.output)
        with open(os.path.join(folder, _DONE), "ab", buffering=0) as file:
            file.write(json.dumps([name, _stamp(part), task.state]).encode() + b"\n")

    one = argparse.Namespace(**vars(args) | {"input": task.input, "output": task.output})
    repack(one, mode=task.mode, done=lambda n: None, ready=ready)


def _report(tasks: list[_Task], looks: dict[str, _Look], out: str, written: int, failed: dict[str, str]) -> None:
    """Says what has been done. Sizes are of files that did not fail."""
    there = [task for task in tasks if task.input not in failed]
    old = sum(looks[task.input].state[1] for task in there)
    new = sum(os.path.getsize(task.output) for task in there)
    for path, why in list(failed.items())[:_SHOWN]:
        say(why if why.startswith(path) else f"{path}: {why}", file=sys.stderr)
    more = len(failed) - _SHOWN
    if more > 0:
        say(f"{more} more", file=sys.stderr)
    counts = [f"{n} {what}" for n, what in ((written, "written"), (len(there) - written, "there already"),
                                            (len(failed), "failed")) if n]
    sizes = f": {common.size(old)} to {common.size(new)}, ratio {common.ratio(old, new)}" if there else ""
    say(f"{out}: {len(tasks)} file{'s' if len(tasks) > 1 else ''}, {', '.join(counts)}{sizes}")


# --- processes --------------------------------------------------------------------------------------------------------


def _answers(work: Callable[[_Task], Any], tasks: list[_Task],
             jobs: Optional[int]) -> Generator[tuple[_Task, Any], None, None]:
    """Does `work` for each task in `jobs` processes; by default in half more than there are cores, since each waits for
    the disk when its file is complete.

    Gives each task with the answer as soon as it is there: what `work` returns, a BoundsError that it raises, or a
    sentence that says why there is none. A process that crashes is replaced.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    jobs = max(1, min(jobs or (3 * cores + 1) // 2, len(tasks)))
    context: Any = multiprocessing.get_context("fork" if hasattr(os, "fork") else "spawn")
    waiting, idle, busy = tasks[::-1], list[Any](), dict[Any, Any]()
    processes = list[Any]()
    try:
        while waiting or busy:
            while waiting and len(busy) < jobs:
                if not idle:
                    ours, theirs = context.Pipe()
                    processes.append(context.Process(target=_serve, args=(theirs, work, max(1, cores // jobs)),
                                                     daemon=True))
                    processes[-1].start()
                    theirs.close()
                    idle.append((ours, processes[-1]))
                pipe, process = idle.pop()
                busy[pipe] = process, waiting.pop()
                with contextlib.suppress(OSError):  # the process is gone, as the end of its pipe will say
                    pipe.send(busy[pipe][1])
            ready: list[Any] = multiprocessing.connection.wait([*busy])
            for pipe in ready:
                process, task = busy.pop(pipe)
                try:
                    answer = pipe.recv()
                    idle.append((pipe, process))
                except (EOFError, OSError):
                    process.join()
                    answer = _ending(process.exitcode)
                yield task, answer
    finally:
        for process in processes:
            process.kill()
            process.join()


def _serve(pipe: Any, work: Callable[[_Task], Any], threads: int) -> None:
    """What a process does: task after task."""
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent kills its processes
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.environ.setdefault("H5Z_GPU_THREADS", str(threads))
    parent = os.getppid()
    while True:
        while not pipe.poll(_ALIVE):
            if os.getppid() != parent:
                return
        try:
            answer = work(pipe.recv())
        except BoundsError as why:
            answer = why
        except Exception as why:
            answer = str(why) if isinstance(why, Problem) else of_hdf5(why) or f"{type(why).__name__}: {why}"
        sys.stdout.flush()
        pipe.send(answer)


def _ending(status: int) -> str:
    """What to say of a process that has ended at a file."""
    name = signal.Signals(-status).name if status < 0 else f"exit status {status}"
    if -status in CRASHES:
        return f"HDF5 crashed ({name}): h5z-gpu recover takes what can be read of the file"
    return f"the process that was at it was ended by {name}, as where memory is short"
