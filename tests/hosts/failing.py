# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs what writes files while each call of the system that changes one fails, is cut in half, or ends the process.

Started by test_whole.py with failing.so in LD_PRELOAD: python failing.py FOLDER COUNT SEED. COUNT 0 meets every call
of every job by every fault; else a sample of that size for each pair. Prints what happened as JSON: a count by job and
fault, and what went wrong.
"""

import collections
import ctypes
import errno
import itertools
import json
import os
import random
import shutil
import signal
import sys

import h5py
import numpy as np

import h5z_gpu
from h5z_gpu import cli, whole
from h5z_gpu.parallel import join

lib = ctypes.CDLL(None)
lib.failing_calls.restype = ctypes.c_long
ONCE, ON, SIGNAL, TORN = 1, 2, 3, 4
FAULTS = {
    "SIGKILL": (SIGNAL, signal.SIGKILL),
    "half, SIGKILL": (TORN, signal.SIGKILL),
    "SIGTERM": (SIGNAL, signal.SIGTERM),
    "SIGINT": (SIGNAL, signal.SIGINT),
    "EIO": (ONCE, errno.EIO),
    "ENOSPC": (ON, errno.ENOSPC),
}
KILLS = ("SIGKILL", "half, SIGKILL")

rng = np.random.default_rng(1)
A, B, SMALL = (
    rng.normal(size=(60, 500)).astype("f4"),
    rng.normal(size=(60, 500)).cumsum(1).astype("f4"),
    np.arange(4000),
)
CHUNKS = (20, 250)


# --- jobs: what is there before, what is done, and what may be there afterwards ---------------------------------------


def some_file(path, values):
    with h5py.File(path, "w") as f:
        f.create_dataset("v", data=values, chunks=CHUNKS, **h5z_gpu.Lossless())
        f.create_dataset("names", data=["a", "bc"] * 50, dtype=h5py.string_dtype())
        f["n"], f["run/one"] = SMALL, 3.5
        f["run"].attrs["title"] = "old"
        f["ref"] = np.array([f["v"].ref, f["n"].ref], h5py.ref_dtype)


def nothing(folder):
    pass


def old(folder):
    some_file(f"{folder}/out", A)


def source(folder):
    some_file(f"{folder}/in", B)


def damaged(folder):
    source(folder)
    with h5py.File(f"{folder}/in") as f:
        at = f["v"].id.get_chunk_info(2)
    with open(f"{folder}/in", "r+b") as f:
        f.seek(at.byte_offset + 100)
        f.write(bytes(20))


def parts(folder):
    source(folder)
    with h5py.File(f"{folder}/out", "w") as f:
        f["other"] = A


def saved(folder, **how):
    arrays = {"new/v": B, "new/n": SMALL, "one": np.float64(2), "none": np.zeros((0, 3)), "c": B[:5] * 1j}
    h5z_gpu.save(f"{folder}/out", arrays, chunks=None, absolute=1e-3, **how)


def command(name, *arguments):
    def run(folder):
        os.chdir(folder)
        status = cli.main([name, "in", "out", *arguments])
        if status not in (0, 1):
            sys.exit(status)

    return run


def in_place(folder):
    with h5py.File(f"{folder}/out", "r+") as f:
        h5z_gpu.write(f["v"], B)


JOBS = {
    "save": (nothing, saved),
    "save, w": (old, saved),
    "save, x": (nothing, lambda folder: saved(folder, mode="x")),
    "save, a": (old, lambda folder: saved(folder, mode="a")),
    "repack": (source, command("repack", "--absolute", "1e-3")),
    "repack --verify": (source, command("repack", "v=absolute:1e-3", "--verify")),
    "recover": (damaged, command("recover")),
    "join": (parts, lambda folder: join([f"{folder}/in"], "v", f"{folder}/out")),
    "a page": (old, lambda folder: whole.put(f"{folder}/out", b"<html>" * 1000)),
    "write": (old, in_place),
}


def contents(path):
    """All values of a file by name, as text that can be compared; of one that is no HDF5 file its bytes."""
    if not os.path.exists(path):
        return None
    with open(path, "rb") as f:
        raw = f.read()
    if not raw.startswith(b"\x89HDF"):
        return raw.hex()
    found = {}
    with h5py.File(path) as f:
        f.visititems(lambda name, item: found.update({name: told(f, item)}))
    return found


def told(f, item):
    if isinstance(item, h5py.Group):
        return str({k: str(v) for k, v in item.attrs.items()})
    value = item[()]
    if h5py.check_ref_dtype(item.dtype):
        return str([f[ref].name for ref in value])
    return f"{item.shape} {item.dtype} {value.tolist() if item.dtype.hasobject else value.tobytes().hex()}"


def chunks_of(path):
    """Values of each chunk of /v, or None where it cannot be read. OSError where the file cannot."""
    with h5py.File(path) as f:
        found = []
        for i, j in itertools.product(range(0, 60, CHUNKS[0]), range(0, 500, CHUNKS[1])):
            try:
                found.append(f["v"][i : i + CHUNKS[0], j : j + CHUNKS[1]].tobytes())
            except OSError:
                found.append(None)
        return found


# --- one run, and what is left of it ----------------------------------------------------------------------------------


def child(work, finish=os._exit):
    """Does `work` in a forked child; its answer, None where it was killed, and its status."""
    there, here = os.pipe()
    pid = os.fork()
    if pid:
        os.close(here)
        with os.fdopen(there) as pipe:
            text = pipe.read()
        return json.loads(text) if text else None, os.waitpid(pid, 0)[1]
    signal.alarm(60)
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1), os.dup2(silent, 2)
    answer = work()
    os.write(here, json.dumps(answer).encode())
    finish(0)


def act(job, folder, k, what, how):
    lib.failing_arm(folder.encode(), ctypes.c_long(k), what, int(how))
    answer = {"error": None}
    try:
        JOBS[job][1](folder)
    except BaseException as why:
        answer = {"error": f"{type(why).__name__}: {why}"[:300], "errno": getattr(why, "errno", None),
                  "file": getattr(why, "filename", None)}
    return answer | {"calls": lib.failing_calls()}


class Runs:
    def __init__(self, base):
        self.base, self.number = base, 0
        self.counts, self.wrong = collections.Counter(), []
        self.before, self.after = {}, {}

    def folder(self, job):
        """A folder with what is there before."""
        model = os.path.join(self.base, f"model-{list(JOBS).index(job)}")
        if not os.path.isdir(model):
            os.mkdir(model)
            JOBS[job][0](model)
            self.before[job] = contents(f"{model}/out")
        self.number += 1
        made = os.path.join(self.base, str(self.number))
        return shutil.copytree(model, made)

    def undisturbed(self, job):
        """How many calls a job makes; and keeps what it leaves."""
        folder = self.folder(job)
        answer, status = child(lambda: act(job, folder, 0, 0, 0))
        assert status == 0 and answer["error"] is None, (job, answer, status)
        self.after[job] = contents(f"{folder}/out")
        assert self.after[job] != self.before[job], job
        return answer["calls"]

    def run(self, job, fault, k):
        """False where the job makes fewer calls."""
        folder = self.folder(job)
        names = set(os.listdir(folder))
        inputs = {n: open(f"{folder}/{n}", "rb").read() for n in names}
        what, how = FAULTS[fault]
        # Where HDF5 could not write, it must not crash at the end of the program either.
        answer, status = child(lambda: act(job, folder, k, what, how), os._exit if what == SIGNAL else sys.exit)
        if answer is not None and answer["calls"] < k and answer["error"] is None:
            return False
        told = self.judge(job, fault, k, folder, names, inputs, answer, status)
        self.counts[f"{job} | {fault} | {told}"] += 1
        if told.startswith("WRONG"):
            self.wrong.append([job, fault, k, told, status, answer])
        shutil.rmtree(folder)
        return True

    def judge(self, job, fault, k, folder, names, inputs, answer, status):
        signalled = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        if answer is not None and answer["calls"] < k:
            return "WRONG: it failed by itself"
        if signalled not in (0, int(FAULTS[fault][1]) if "SIG" in fault else 0):
            return f"WRONG: ended by signal {signalled}"
        # recover writes in a child of its own: where that is ended, recover says so.
        if fault in KILLS and signalled != signal.SIGKILL and job != "recover":
            return "WRONG: the signal did not end it"
        if job == "write":
            return self.judge_chunks(folder, answer)
        new = set(os.listdir(folder)) - names - {"out"}
        if new and fault not in KILLS:
            return f"WRONG: {sorted(new)} left"
        if any(not n.startswith(".out.") for n in new):
            return f"WRONG: {sorted(new)} left in sight"
        for name in names - {"out"}:
            if open(f"{folder}/{name}", "rb").read() != inputs[name]:
                return f"WRONG: {name} was changed"
        path = f"{folder}/out"
        if os.path.exists(path) and open(path, "rb").read() != inputs.get("out"):
            found, _ = child(lambda: contents(path))
            # HDF5 may crash after a write that failed, as it does on damage: recover leaves an object out then, and
            # names it. The others are whole.
            if job == "recover" and fault == "EIO" and found and found.items() < self.after[job].items():
                return "new, but for an object that is named"
            if found != self.after[job]:
                return "WRONG: the new file is not whole"
            return "new" if answer is None or answer["error"] is None else "new, and an error"
        if os.path.exists(path) != ("out" in inputs):
            return "WRONG: the old file is lost"
        if answer is not None and answer["error"] is None:
            return "WRONG: no error, and nothing written"
        if fault == "ENOSPC" and job.startswith("save") and (answer["errno"], answer["file"]) != (errno.ENOSPC, path):
            return f"WRONG: the full disk does not name itself: {answer['error']}"
        return "old"

    def judge_chunks(self, folder, answer):
        """In place: each chunk is old or new, or says that it is damaged, or the file cannot be opened."""
        path = f"{folder}/out"
        try:
            found = chunks_of(path)
        except (OSError, KeyError):
            found = None
        was, is_ = (cut(x) for x in (A, B))
        if found is None or None in found:
            return "damaged, and says so" if answer is None or answer["error"] else "WRONG: damaged without an error"
        for k, values in enumerate(found):
            if values not in (was[k], is_[k]):
                kind = "fill values" if not any(values) else "another chunk's" if values in was + is_ else "other"
                return f"WRONG: {kind} values in chunk {k}"
        if answer is not None and answer["error"] is None and found != is_:
            return "WRONG: old chunks and no error"
        return "new" if found == is_ else "old" if found == was else "old and new chunks"


def cut(x):
    return [
        x[i : i + CHUNKS[0], j : j + CHUNKS[1]].tobytes()
        for i, j in itertools.product(range(0, 60, CHUNKS[0]), range(0, 500, CHUNKS[1]))
    ]


def main(base, count, seed):
    runs, choose = Runs(base), random.Random(seed)
    calls = {job: runs.undisturbed(job) for job in JOBS}
    for job, fault in itertools.product(JOBS, FAULTS):
        every = (
            itertools.count(1) if not count else sorted(choose.sample(range(1, calls[job] + 1), min(count, calls[job])))
        )
        for k in every:
            if not runs.run(job, fault, k):
                break
    print(json.dumps({"calls": calls, "counts": runs.counts, "wrong": runs.wrong}, indent=1))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
