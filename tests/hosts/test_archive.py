# SPDX-License-Identifier: MIT OR Apache-2.0
"""`repack` of many files by one table of bounds: what is written, what is left, and runs that are stopped or killed at
random and started again."""

import fcntl
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import h5py
import judge
import pytest
from cli import environment, h5z_gpu, many, refused
from conftest import LONG, child, sample, use
from programs import filters
from test_bounds_file import made


def fields(folder, n, shape=(8, 32, 48)):
    """Files of one variable each, `tas` or `pr`."""
    folder.mkdir()
    return [made(folder / f"f{k:03}.h5", {"pr" if k % 3 else "tas": (sample(shape=shape) + k, "K", "")})
            for k in range(n)]


def states(folder):
    return {p.name: (p.stat().st_ino, p.stat().st_mtime_ns) for p in sorted(folder.glob("*.h5"))}


BOTH = "[tas]\nabsolute = 0.01\n[pr]\nabsolute = 0.1\n"


def test_many_files_go_into_a_folder_and_what_is_done_stays(tmp_path):
    files, table, out = fields(tmp_path / "in", 12), tmp_path / "b.toml", tmp_path / "deep/out"
    table.write_text(BOTH)
    command = "repack", *files, f"{out}/", "--bounds", table
    said, _ = h5z_gpu(*command)
    assert re.search(r"12 files, 12 written: [\d.]+ kB to [\d.]+ kB, ratio [\d.]+\n", said)
    first = states(out)
    assert len(first) == 12 and sorted(p.name for p in out.iterdir()) == [".h5z-gpu-repack", *sorted(first)]
    for path in files:
        name = "tas" if "tas" in h5py.File(path) else "pr"
        assert 0 < judge.check(h5py.File(path)[name][...], h5py.File(out / path.name)[name][...], "abs",
                               0.01 if name == "tas" else 0.1) <= 1

    def run_again(*, written, there, failed=0):
        said, error = h5z_gpu(*command, status=1 if failed else 0)
        numbers = {word: int(n) for n, word in re.findall(r"(\d+) (written|there|failed)", said)}
        assert numbers == {k: v for k, v in (("written", written), ("there", there), ("failed", failed)) if v}, said
        return error

    run_again(written=0, there=12)
    assert states(out) == first
    table.write_text("# a remark\n" + BOTH.replace("0.1", "0.2"))  # the entry of eight files
    run_again(written=8, there=4)
    assert [name for name, state in states(out).items() if first[name] == state] == [p.name for p in files[::3]]
    made(files[0], {"tas": (sample(shape=(8, 32, 48)) - 1, "K", "")})  # the original is another one
    (out / "f001.h5").unlink()
    with h5py.File(out / "f002.h5", "a") as f:  # the copy is no longer what was written
        f.attrs["by hand"] = 1
    (out / ".f004.h5.99999.0123abcd.part").write_text("of a run that was killed")
    (out / ".other.h5.99999.0123abcd.part").write_text("of another program")
    with open(out / ".h5z-gpu-repack", "a") as f:
        f.write('["f005.h5", [1')  # cut short by a power failure
    error = run_again(written=2, there=9, failed=1)
    assert "f002.h5 is there already, and not as repack has made it; remove it" in error
    assert sorted(p.name for p in out.glob(".*.part")) == [".other.h5.99999.0123abcd.part"]
    (out / "f002.h5").unlink()
    run_again(written=1, there=11)
    command += ("--verify",)
    run_again(written=12, there=0)
    run_again(written=0, there=12)


def test_a_file_that_fails_is_named_and_the_others_are_written(tmp_path):
    files, table, out = fields(tmp_path / "in", 6), tmp_path / "b.toml", tmp_path / "out"
    table.write_text(BOTH)
    files[1].write_bytes(files[1].read_bytes()[:-900])
    files[2].write_text("nothing")
    files[3].unlink()
    out.mkdir()
    (out / files[4].name).write_text("mine")
    said, error = h5z_gpu("repack", *files, out, "--bounds", table, status=1)
    assert "6 files, 2 written, 4 failed" in said and error.count("\n") == 4 and not error.count("h5z-gpu repack:")
    for path, why in zip(files[1:5], ("is cut short", "is no HDF5", "No such file", "remove it")):
        assert re.search(f"^{path}.*{why}", error, re.M), (why, error)
    assert sorted(states(out)) == ["f000.h5", "f004.h5", "f005.h5"] and (out / "f004.h5").read_text() == "mine"
    for words, call in {
        "have one name": [files[0], files[0], out], "lies in": [out / "f000.h5", out],
        "is a file; behind several files": [files[0], files[5], out / "f000.h5"],
    }.items():
        (error,) = refused(("repack", *call, "--bounds", table))
        assert words in error, error


def test_a_process_that_crashes_is_replaced():
    """HDF5's crash at one file, and a process that is killed, are sentences; the others are done."""
    use("""
import os, signal
from h5z_gpu.cli import archive

def work(task):
    if task == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if task == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    return task * 2

tasks = [f"t{k}" for k in range(20)]
for jobs in 1, 2, 5, None:
    found = dict(archive._answers(work, [*tasks[:7], "crash", *tasks[7:], "kill"], jobs))
    assert "crashed (SIGSEGV)" in found.pop("crash") and "ended by SIGKILL" in found.pop("kill")
    assert found == {t: 2 * t for t in tasks}
""")


@pytest.mark.parametrize("named", [False, True], ids=["before", "behind"])
def test_a_copy_is_known_from_the_moment_it_has_its_name(tmp_path, named):
    """Processes that are killed right before and behind the call that gives the name."""
    files, table, out = fields(tmp_path / "in", 3), tmp_path / "b.toml", tmp_path / "out"
    table.write_text(BOTH)
    command = "repack", *map(str, files), f"{out}/", "--bounds", str(table)
    use(f"""
import os, signal, h5z_gpu.cli
link = os.link

def killed(*names):
    if {named}:
        link(*names)
    os.kill(os.getpid(), signal.SIGKILL)

os.link = killed
assert h5z_gpu.cli.main({command!r}) == 1
""")
    before = states(out)
    assert len(before) == (3 if named else 0)
    said, _ = h5z_gpu(*command)
    assert ("3 there already" if named else "3 written") in said, said
    assert before.items() <= states(out).items() and not list(out.glob(".*.part"))


def test_two_runs_into_one_folder_do_not_meet(tmp_path):
    files, table, out = fields(tmp_path / "in", 2), tmp_path / "b.toml", tmp_path / "out"
    table.write_text(BOTH)
    out.mkdir()
    with open(out / ".h5z-gpu-repack", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        (error,) = refused(("repack", *files, out, "--bounds", table))
        assert "another repack writes into" in error and not states(out)
    h5z_gpu("repack", *files, out, "--bounds", table)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_a_run_that_is_stopped_leaves_nothing_unfinished(tmp_path, number):
    files, table, out = fields(tmp_path / "in", 24, (64, 64, 96)), tmp_path / "b.toml", tmp_path / "out"
    table.write_text(BOTH)
    command = sys.executable, "-m", "h5z_gpu", "repack", *files, out, "--bounds", table
    with child(*command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as p:
        while not list(out.glob("*.h5")):
            assert p.poll() is None, p.stderr.read()
            time.sleep(0.005)
        p.send_signal(number)
        error = p.communicate(timeout=60)[1]
    assert "Traceback" not in error and not list(out.glob(".*.part")), error
    assert p.returncode == (130 if number == signal.SIGINT else -number) and len(states(out)) < 24, error
    before = states(out)
    h5z_gpu(*command[3:])
    assert len(states(out)) == 24 and before.items() <= states(out).items()


def test_a_run_that_is_killed_goes_on_where_it_was(tmp_path):
    """SIGKILL to the whole program, to its first process or to a random one, at random times: in the end each copy is
    whole, none was made twice, and nothing is left beside them."""
    rng = random.Random(int(os.environ.get("SEED", 1)))
    files, table, out = fields(tmp_path / "in", 60, (16, 64, 96)), tmp_path / "b.toml", tmp_path / "out"
    table.write_text(BOTH)
    command = sys.executable, "-m", "h5z_gpu", "repack", *files, out, "--jobs", "3", "--bounds", table
    seen, began = {}, time.monotonic()
    h5z_gpu(*command[3:-5], tmp_path / "all", *command[-4:])
    whole = time.monotonic() - began
    shutil.rmtree(tmp_path / "all")
    for turn in range(50 if LONG else 12):
        with child(*command, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as p:
            time.sleep(rng.uniform(0.2, 1) * whole)
            family = [int(c) for t in Path(f"/proc/{p.pid}/task").glob("*/children") for c in t.read_text().split()]
            family += [int(c) for pid in family for c in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
            if turn % 3 == 0 and family:
                os.kill(rng.choice(family), signal.SIGKILL)
                time.sleep(0.05)
            os.killpg(p.pid, signal.SIGKILL) if turn % 3 == 1 else p.kill()
        now = states(out) if out.exists() else {}
        assert seen.items() <= now.items(), "a copy that was there was made again"
        assert len(list(out.glob(".*.part"))) <= 4, "of one run, and of its process that was killed first"
        seen = now
    h5z_gpu(*command[3:])
    assert seen.items() <= states(out).items() and len(states(out)) == 60
    assert sorted(p.name for p in out.iterdir() if p.suffix != ".h5") == [".h5z-gpu-repack"]
    said = many(*(("verify", path, out / path.name) for path in files))
    assert all(status == 0 for status, _, _ in said), said
    assert all(filters(out / path.name, "pr" if k % 3 else "tas") for k, path in enumerate(files))
