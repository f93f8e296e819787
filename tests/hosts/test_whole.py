# SPDX-License-Identifier: MIT OR Apache-2.0
"""A file that is written is there whole or not at all, whatever goes wrong: real calls that fail, real signals."""

import errno
import functools
import json
import os
import signal
import stat
import subprocess
import sys
import tempfile
import threading

import h5py
import numpy as np
import pytest
from conftest import HERE, PLUGIN, ROOT, clean, run, use

sys.path.insert(0, str(ROOT / "plugin/python"))
os.environ["H5Z_GPU_PLUGIN_PATH"] = str(PLUGIN.parent)
import h5z_gpu
from h5z_gpu.whole import whole

A = np.arange(12000, dtype="f4").reshape(100, 120)

# Runs for each pair of a job and a fault; 0 is every call that a job makes: some 1000 runs.
SAMPLE = int(os.environ.get("H5Z_GPU_FAULTS", "2"))


@functools.cache
def failing():
    """failing.c as a library for LD_PRELOAD."""
    out = ROOT / f"target/test/failing.{os.getpid()}.so"
    out.parent.mkdir(parents=True, exist_ok=True)
    run("cc", "-O1", "-Wall", "-Werror", "-shared", "-fPIC", "-o", out, HERE / "failing.c", "-ldl")
    return out


def test_every_call_that_fails_or_ends_the_process(tmp_path):
    """SIGKILL, SIGKILL within a write, SIGTERM, SIGINT, EIO and a full disk; failing.py names the programs."""
    env = clean(PYTHONPATH=f"{ROOT}/plugin/python", H5Z_GPU_PLUGIN_PATH=str(PLUGIN.parent), LD_PRELOAD=str(failing()))
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else tmp_path  # a disk takes its time to be synced
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        command = [sys.executable, HERE / "failing.py", folder, str(SAMPLE), "1"]
        r = subprocess.run(command, env=env, text=True, capture_output=True)
    assert r.returncode == 0, r.stderr[-3000:]
    told = json.loads(r.stdout)
    print(json.dumps(told["counts"], indent=1))
    assert not told["wrong"], json.dumps(told["wrong"][:10], indent=1)
    assert sum(told["counts"].values()) >= 6 * len(told["calls"]) * max(1, SAMPLE)
    assert min(told["calls"].values()) >= 6  # the library counts


MISTAKES = {
    "Python objects": ({"v": np.array([None, 1])}, {}, "v holds Python objects"),
    "texts": ({"v": ["a", "b"]}, {}, "np.char.encode"),
    "text in a structure": ({"v": np.zeros(3, [("a", "U3")])}, {}, "v holds .* which HDF5 has not"),
    "times": ({"v": np.arange(9).astype("M8[s]")}, {}, "astype"),
    "masked values": ({"v": np.ma.array([1.0, 2.0], mask=[0, 1])}, {}, "v: the array has masked values"),
    "rows of different lengths": ({"v": [[1], [1, 2]]}, {}, "v: "),
    "no mapping": (A, {}, "arrays is a ndarray"),
    "a name that is no text": ({3: A}, {}, "the name 3"),
    "an empty name": ({"": A}, {}, "'' is no name"),
    "a name that ends in /": ({"a/": A}, {}, "no name"),
    "a name with a zero": ({"a\0": A}, {}, "no name"),
    "one name twice": ({"a": A, "/a": A}, {}, "two arrays are named a"),
    "a dataset within a dataset": ({"a/b": A, "a": A}, {}, "a cannot be a dataset and the group of a/b"),
    "a number in place of a filter": ({"v": A}, {"how": 1e-3}, "did you mean absolute=0.001"),
    "a text in place of a filter": ({"v": A}, {"how": "abs"}, "give h5z_gpu.Lossy"),
    "two filters": ({"v": A}, {"how": h5z_gpu.Lossy(1), "absolute": 1}, "either"),
    "two bounds": ({"v": A}, {"absolute": 1, "relative": 0.1}, "several bounds"),
    "an unknown keyword": ({"v": A}, {"absolut": 1}, "has no absolut"),
    "a codec that takes no such bound": ({"v": A}, {"pointwise_relative": 1e-3, "codec": "planes"}, "planes"),
    "a fill value beyond the type": ({"v": A}, {"absolute": 1, "fill_value": 1e300}, "can hold, which is float32"),
    "chunks of another rank": ({"v": A}, {"chunks": (7,)}, "one extent for each axis"),
    "chunks of nothing": ({"v": A}, {"chunks": (0, 3)}, "from 1"),
    "chunks beyond the array": ({"v": A}, {"chunks": (101, 3)}, "from 1"),
    "chunks that are no numbers": ({"v": A}, {"chunks": "auto"}, "one extent for each axis"),
    "devices that nobody knows": ({"v": A}, {"devices": "gpu"}, "devices = 'gpu'"),
    "threads that are no number": ({"v": A}, {"threads": "4"}, "threads = '4'"),
    "threads below 0": ({"v": A}, {"threads": -1}, "threads = -1"),
    "a mode that only reads": ({"v": A}, {"mode": "r"}, "mode = 'r'"),
    "more axes than HDF5 has": ({"v": np.zeros((1,) * 40)}, {}, "v cannot be stored"),
    "a name that is there": ({"old": A}, {"mode": "a"}, "has old already"),
    "a group that is a dataset": ({"old/v": A}, {"mode": "r+"}, "it is no group"),
    "a file that is there": ({"v": A}, {"mode": "x"}, "is there already"),
}


@pytest.mark.parametrize("what", MISTAKES)
def test_a_mistake_in_the_call_leaves_the_old_file(what, tmp_path):
    """Also where a good array comes first."""
    arrays, how, words = MISTAKES[what]
    h5z_gpu.save(tmp_path / "a.h5", {"old": A})
    before = (tmp_path / "a.h5").read_bytes(), (tmp_path / "a.h5").stat()
    for given in [arrays] + ([{"good": A} | arrays] if isinstance(arrays, dict) else []):
        with pytest.raises((TypeError, ValueError, FileExistsError), match=words):
            h5z_gpu.save(tmp_path / "a.h5", given, **how)
    assert ((tmp_path / "a.h5").read_bytes(), (tmp_path / "a.h5").stat()) == before
    assert os.listdir(tmp_path) == ["a.h5"]


def test_what_can_be_stored_is(tmp_path):
    arrays = {
        "f2": A.astype("f2"), "big": A.astype(">f4"), "long": A.astype("g"), "i": A.astype("u1"), "c": A * 1j,
        "b": A > 3, "struct": np.zeros(4, [("a", "f4"), ("b", "S3")]), "bytes": np.array([b"a", b"bc"]),
        "raw": np.zeros(3, "V4"),
        "scalar": 3, "none": np.zeros((0, 3)), "list": [1, 2], "unmasked": np.ma.array([1.0, 2.0]),
        "part": A[::-2, 5:], "g/deep/v": A[0], "dataset": None,
    }
    with h5py.File(tmp_path / "in.h5", "w") as f:
        arrays["dataset"] = f.create_dataset("v", data=A)
        h5z_gpu.save(tmp_path / "a.h5", arrays, mode="x")
        arrays["dataset"] = A
    found = h5z_gpu.load(tmp_path / "a.h5")
    assert set(found) == set(arrays)
    for name, a in arrays.items():
        assert found[name].dtype == np.asarray(a).dtype and np.array_equal(found[name], np.asarray(a)), name
    h5z_gpu.save(tmp_path / "a.h5", {"more": A, "g/w": A}, mode="a", chunks=(50, 60))
    again = h5z_gpu.load(tmp_path / "a.h5")
    assert set(again) == set(found) | {"more", "g/w"} and all(np.array_equal(again[n], found[n]) for n in found)


def test_links_permissions_and_who_has_the_old_file_open(tmp_path):
    real, link = tmp_path / "real/a.h5", tmp_path / "link.h5"
    real.parent.mkdir()
    h5z_gpu.save(real, {"v": A})
    assert stat.S_IMODE(real.stat().st_mode) == 0o666 & ~umask()
    real.chmod(0o640)
    link.symlink_to("real/a.h5")
    for mode in ("w", "a"):
        with h5py.File(real) as f:
            h5z_gpu.save(link, {f"new{mode}": A + 1}, mode=mode)
            assert list(f) == (["v"] if mode == "w" else ["neww"])
        assert link.is_symlink() and stat.S_IMODE(real.stat().st_mode) == 0o640
        assert os.listdir(real.parent) == ["a.h5"] and f"new{mode}" in h5z_gpu.load(real)
    dangling = tmp_path / "to.h5"
    dangling.symlink_to("real/b.h5")
    h5z_gpu.save(dangling, {"v": A})
    assert dangling.is_symlink() and list(h5z_gpu.load(tmp_path / "real/b.h5")) == ["v"]
    with pytest.raises(FileExistsError):
        h5z_gpu.save(dangling, {"v": A}, mode="w-")


def umask():
    old = os.umask(0)
    os.umask(old)
    return old


def test_names_that_no_file_can_take(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    h5z_gpu.save(tmp_path / "a.h5", {"v": A})
    cases = {
        tmp_path / "pipe": "a pipe",
        "/dev/null": "a device",
        tmp_path: "is a folder",
        tmp_path / "no/a.h5": "no folder",
        tmp_path / "a.h5/b.h5": "cannot be written",
        tmp_path / ("n" * 300): "cannot be written",
    }
    for path, words in cases.items():
        with pytest.raises(OSError, match=words) as told:
            h5z_gpu.save(path, {"v": A})
        assert told.value.filename == os.fspath(path) and told.value.errno
    with pytest.raises(FileNotFoundError, match='mode "a"'):
        h5z_gpu.save(tmp_path / "b.h5", {"v": A}, mode="r+")
    with pytest.raises(TypeError, match="h5z_gpu.write writes into"):
        h5z_gpu.save(3, {"v": A})
    assert sorted(os.listdir(tmp_path)) == ["a.h5", "pipe"] and stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    h5z_gpu.save(tmp_path / ("n" * 250), {"v": A})  # the hidden name is no longer than a name may be


def test_files_and_folders_that_may_not_be_written(tmp_path):
    """Said before any work is done; by a user who is not root."""
    use("""
import os, sys, tempfile
import h5py, numpy as np, h5z_gpu
from h5z_gpu import cli
with tempfile.TemporaryDirectory() as folder:
    h5z_gpu.save(f"{folder}/a.h5", {"v": np.zeros(3)})
    os.mkdir(f"{folder}/open", 0o777)
    h5z_gpu.save(f"{folder}/open/a.h5", {"v": np.zeros(3)})
    os.chmod(folder, 0o755), os.chmod(f"{folder}/open", 0o777), os.chmod(f"{folder}/open/a.h5", 0o444)
    pid = os.fork()
    if not pid:
        if os.getuid() == 0:
            os.setuid(65534)
        else:
            os.chmod(folder, 0o555)
        answer = 0
        for name, words in {"b.h5": f"the folder {folder}", "open/a.h5": "chmod u+w"}.items():
            try:
                h5z_gpu.save(f"{folder}/{name}", {"v": iter(())})
                answer = 1
            except PermissionError as why:
                answer |= 0 if words in str(why) else 2
        os._exit(answer)
    status = os.waitpid(pid, 0)[1]
    os.chmod(folder, 0o755)
    assert status == 0, status
    assert sorted(os.listdir(folder)) == ["a.h5", "open"] and os.listdir(f"{folder}/open") == ["a.h5"]
""")


def test_a_file_that_somebody_writes_to_is_left_alone(tmp_path):
    h5z_gpu.save(tmp_path / "a.h5", {"v": A})
    with h5py.File(tmp_path / "a.h5", "r+"):
        for mode in ("w", "a", "r+"):
            with pytest.raises(BlockingIOError, match="open for writing"):
                h5z_gpu.save(tmp_path / "a.h5", {"w": A}, mode=mode)
    with pytest.raises(OSError, match="changed by another program"), whole(tmp_path / "a.h5", "a"):
        with open(tmp_path / "a.h5", "ab") as f:  # by a program without HDF5's locks
            f.write(b"mine")
    assert (tmp_path / "a.h5").read_bytes().endswith(b"mine") and os.listdir(tmp_path) == ["a.h5"]


def test_a_name_is_taken_from_nobody(tmp_path):
    with pytest.raises(FileExistsError, match="has appeared meanwhile"), whole(tmp_path / "a.h5", "x") as part:
        assert os.path.exists(part)
        (tmp_path / "a.h5").write_bytes(b"mine")
    assert (tmp_path / "a.h5").read_bytes() == b"mine" and os.listdir(tmp_path) == ["a.h5"]


def test_threads_that_save_one_file(tmp_path):
    """One of them is the last, and the file is its."""
    found = []

    def save(k):
        for _ in range(5):
            h5z_gpu.save(tmp_path / "a.h5", {"v": A + k}, mode="w", threads=1)
        found.append(k)

    threads = [threading.Thread(target=save, args=(k,)) for k in range(4)]
    [t.start() for t in threads], [t.join() for t in threads]
    assert sorted(found) == [0, 1, 2, 3] and os.listdir(tmp_path) == ["a.h5"]
    assert h5z_gpu.load(tmp_path / "a.h5")["v"][0, 0] in found


def test_a_handler_of_the_programs_own_is_kept(tmp_path):
    """SIGTERM does what the program has asked for, and ends it by the signal where it has asked for nothing."""
    code = """
import os, signal, sys
import numpy as np, h5z_gpu
from h5z_gpu.whole import whole
got = []
if sys.argv[2] == "own":
    signal.signal(signal.SIGTERM, lambda *_: got.append("own"))
with whole(sys.argv[1]) as part:
    os.kill(os.getpid(), signal.SIGTERM)
    open(part, "w").write("all")
print(got, signal.getsignal(signal.SIGTERM) is signal.SIG_DFL)
"""
    env = clean(PYTHONPATH=f"{ROOT}/plugin/python", H5Z_GPU_PLUGIN_PATH=str(PLUGIN.parent))
    command = [sys.executable, "-c", code, tmp_path / "a"]
    answers = [subprocess.run([*command, own], env=env, capture_output=True, text=True) for own in ("none", "own")]
    assert (answers[0].returncode, answers[0].stdout) == (-signal.SIGTERM, ""), answers[0]
    assert (answers[1].returncode, answers[1].stdout) == (0, "['own'] False\n"), answers[1]
    assert os.listdir(tmp_path) == ["a"] and (tmp_path / "a").read_text() == "all"


def test_a_full_disk_names_itself(tmp_path):
    """And the program goes on: HDF5 does not crash while it closes the file."""
    text = use("""
import resource, signal, sys
import numpy as np, h5z_gpu
h5z_gpu.save(sys.argv[1], {"old": np.zeros(3)})
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, resource.RLIM_INFINITY))
texts = {name: np.zeros((), "S200000") for name in "tu"}
for arrays in (texts, {"s": np.float64(1)} | texts):
    try:
        h5z_gpu.save(sys.argv[1], arrays)
    except OSError as why:
        print(why.errno, why.filename == sys.argv[1], why.strerror)
print(list(h5z_gpu.load(sys.argv[1])))
""", tmp_path / "a.h5")
    lines = text.splitlines()
    assert len(lines) == 3 and lines[2] == "['old']", text
    for line in lines[:2]:
        assert line.startswith(f"{errno.EFBIG} True h5z-gpu: ") and "nothing is left of it: File too large" in line, (
            text
        )
        assert "MB were written" in line and "is as it was" in line, text
    assert os.listdir(tmp_path) == ["a.h5"]
