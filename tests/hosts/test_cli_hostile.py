# SPDX-License-Identifier: MIT OR Apache-2.0
"""Commands on files that are made to harm: names that a terminal obeys, extents without end, memory that is not there,
HDF5's crashes."""
import os
import re
import resource
import signal
import subprocess
import sys
import time

import h5py
import numpy as np
import pytest
from cli import cli, environment, many
from conftest import use

# Colours, a second line, letters from right to left, a C1 control, a line separator.
NAME = "v\x1b[31m\nDAMAGED forged\u202eabc\u2066\x9b2J\u2028"
UNITS = "$\\frac{$\x1b]0;title\x07\n\u202e"
OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
A = np.cumsum(np.random.default_rng(1).normal(0, 1, (64, 64)), 0).astype("f4")


def hostile(path):
    with h5py.File(path, "w") as f:
        f.create_dataset(NAME, data=A, chunks=(16, 16), compression=443, compression_opts=(11002,
                         )).attrs["units"] = UNITS
        f.create_dataset(NAME + "2", data=A).attrs["units"] = UNITS
        f.create_dataset(b"bytes\xff\xfe", data=A)
        f.create_group("g").attrs[NAME] = NAME


def test_what_a_terminal_obeys_is_escaped(tmp_path):
    a, bad = tmp_path / "a.h5", tmp_path / "b\x1b[31m\n.h5"
    hostile(a)
    data = bytearray(a.read_bytes())
    with h5py.File(a) as f:
        info = f[NAME].id.get_chunk_info(3)
    data[info.byte_offset + info.size // 2] ^= 1
    bad.write_bytes(data)
    calls = {
        ("inspect", a): 0, ("inspect", "--check", bad): 1, ("inspect", "--json", bad): 1,
        ("inspect", a, "--dataset", NAME + "x"): 2,
        ("verify", a, a): 0, ("verify", a, bad): 2, ("verify", a, a, "--html", tmp_path / "v.html"): 0,
        ("advise", a): 0,
        ("advise", a, "--html", tmp_path / "a.html"): 0, ("advise", a, "--json"): 0, ("doctor", bad): 1,
        ("recover", bad, tmp_path / "r.h5"): 1, ("recover", bad, tmp_path / "j.h5", "--json"): 1,
        ("repack", a, tmp_path / "c.h5", "--advise"): 0, ("repack", a, tmp_path / "d.h5", NAME + "x=absolute:1"): 2,
        ("verify", tmp_path / NAME, a): 2,
    }
    for call, (status, out, err) in zip(calls, many(*calls)):
        assert status == calls[call], (call, status, out, err)
        assert not OBEYED.search(out + err) and not re.search("^DAMAGED forged", out + err, re.M), (call, out, err)
        if status == 2 and not out:
            assert err.count("\n") == 1, (call, err)
    assert "\\x1b" in cli("inspect", a)[1]


def test_names_that_are_no_text_are_names(tmp_path):
    a, b, c = (tmp_path / f"{name}.h5" for name in "abc")
    with h5py.File(a, "w") as f:
        f.create_dataset(b"latin \xe9", data=A)
    calls = [("repack", a, b, "--absolute", "1e-3", "--verify"), ("inspect", b), ("verify", a, b),
             ("verify", "--structure", a, b), ("recover", b, c), ("advise", a)]
    for call in calls:
        status, out, err = cli(*call)
        assert status == 0 and not err, (call, out, err)
    assert "latin" in cli("inspect", b, "--dataset", "latin \udce9")[1]
    for path in (b, c):
        with h5py.File(path) as f:
            d = f[b"latin \xe9"]
            assert d.id.get_create_plist().get_filter(0)[0] == 443 and 0 < np.abs(d[...] - A).max() <= 1e-3


def test_commands_that_are_proposed_are_read_as_they_are_meant(tmp_path):
    """A name with a line break is one word of one line, which bash reads as the name."""
    hostile(tmp_path / "a.h5")
    out = cli("advise", tmp_path / "a.h5")[1]
    (line,) = re.findall(r"^h5z-gpu repack((?:.*\\\n)*.*)", out, re.M)[:1]
    read = subprocess.run(["bash", "-c", f"printf '%s\\0' {line}"], stdout=subprocess.PIPE, check=True,
                          env={"LC_ALL": "C.UTF-8"})
    assert any(word.startswith(NAME) for word in read.stdout.decode().split("\0")) or "--advise" in line, (
        line, read.stdout)


def test_a_megabyte_of_units_takes_no_longer(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f.create_dataset("v", data=A).attrs["units"] = UNITS * 60_000
    begin = time.monotonic()
    status, _, err = cli("advise", tmp_path / "a.h5", "--html", tmp_path / "a.html")
    assert (status, err) == (0, "") and time.monotonic() - begin < 60  # minutes before


def test_extents_without_end_are_answered_at_once(tmp_path):
    a, x = tmp_path / "a.h5", tmp_path / "x.h5"
    with h5py.File(a, "w") as f:
        d = f.create_dataset("wide", (2**60,), "f8", chunks=(1024,), compression=443, compression_opts=(11003,))
        d[:1024], d[2**59 : 2**59 + 1024] = np.arange(1024.0), 3
        f.create_dataset("high", (2**30, 2**30), "f4", chunks=(16, 16), compression=443, compression_opts=(11003,
                         ))[:16, :16] = 1
        f.create_dataset("plain", (2**58,), "f4")
    calls = {
        ("inspect", a): 0, ("inspect", "--check", a): 0, ("verify", a, a): 2, ("recover", a, x): 0, ("advise", a): 0,
        ("repack", a, tmp_path / "y.h5", "--absolute", "1e-3"): 2, ("repack", a, tmp_path / "z.h5", "--lossless",
                                                                    "--verify"): 2,
    }
    begin = time.monotonic()
    for call, (status, out, err) in zip(calls, many(*calls)):
        assert status == calls[call] and (status < 2
                                          or "more than can be gone through" in err), (call, status, out, err)
    assert time.monotonic() - begin < 60
    with h5py.File(a) as old, h5py.File(x) as new:
        for name in ("wide", "high"):
            infos = [[f[name].id.get_chunk_info(k)[:2] for k in range(f[name].id.get_num_chunks())] for f in (old, new)]
            assert infos[0] == infos[1] and old[name].shape == new[name].shape
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.h5", "x.h5"]


def test_memory_that_is_not_there_is_a_sentence(tmp_path):
    a = tmp_path / "a.h5"
    with h5py.File(a, "w") as f:  # a bound that holds for each chunk, so that it is looked at as a whole
        d = f.create_dataset("v", (2**29 - 1,), "f8", chunks=(2**29 - 1,), compression=443, compression_opts=(21003,))
        d.id.write_direct_chunk((0,), bytes(64))  # what was never written is not read
    r = subprocess.run([sys.executable, "-m", "h5z_gpu", "verify", a, a], env=environment(), text=True,
                       capture_output=True,
                       timeout=100, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30)))
    assert (r.returncode == 2 and r.stderr.count("\n") == 1 and "not fit into memory" in r.stderr
            and "iB" in r.stderr), r.stderr


def test_a_crash_of_hdf5_is_a_sentence(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as f:
        layout = h5py.VirtualLayout((64, 64), "f4")
        layout[:] = h5py.VirtualSource(".", "v", (64, 64))
        f.create_virtual_dataset("v", layout)  # of itself: HDF5 calls itself until the stack ends
    status, out, err = cli("verify", tmp_path / "a.h5", tmp_path / "a.h5")
    assert status == 2 and not out and err.startswith("h5z-gpu: HDF5 crashed (SIGSEGV)") and err.count("\n") == 1, (
        status, err)


def test_attempts_end_in_any_case():
    """One that crashes, hangs, starts others, fails or runs out of time; what it had told last is known."""
    told = use("""
import ctypes, os, subprocess, time
from h5z_gpu.cli.child import Died, attempt

def crash(note):
    note(("/a", None)); note(("/b", "units"))
    ctypes.string_at(0)

def hang(note):
    note(subprocess.Popen(["sleep", "100"]).pid)
    while True: pass

def slow(note):
    for k in range(8):
        time.sleep(0.2); note(k)
    return "done", os.getpid()

for work, seconds in ((crash, 60), (hang, 1), (slow, 1.5)):
    try:
        print(attempt(work, seconds)[0])
    except Died as end:
        print(end, end.at)
        if work is hang:
            time.sleep(0.2)
            print(open(f"/proc/{end.at}/stat").read().split()[2] == "Z" if os.path.exists(f"/proc/{end.at}") else True)
try:
    attempt(lambda note: [][0], 60)
except IndexError as why:
    print(why.at)
""")
    assert re.fullmatch(r"HDF5 crashed \(SIGSEGV\) \('/b', 'units'\)\nHDF5 was still at it after 1 seconds "
                        r"\d+\nTrue\ndone\nNone\n", told), told


def test_a_limit_that_is_too_short_is_said(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f.create_dataset("v", data=A, chunks=(16, 16), compression=443, compression_opts=(11002,))
    status, _out, err = cli("recover", tmp_path / "a.h5", tmp_path / "b.h5", "--limit", "1e-6")
    assert status == 2 and "still at it after 1e-06 seconds" in err and "--limit" in err, err
    assert [p.name for p in tmp_path.iterdir()] == ["a.h5"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda n: n.name)
def test_recover_leaves_nothing_when_it_is_ended(number, tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f.create_dataset("v", data=np.random.default_rng(1).normal(size=(1000, 1000)), chunks=(10, 20), compression=443,
                         compression_opts=(90000,))
    out = tmp_path / "b.h5"
    child = subprocess.Popen([sys.executable, "-m", "h5z_gpu", "recover", tmp_path / "a.h5", out], env=environment(),
                             text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             # A shell that starts the tests behind & leaves SIGINT ignored.
                             preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    while not any((p / "new").exists() for p in tmp_path.glob(".b.h5.*")):
        assert child.poll() is None, child.communicate()
        time.sleep(0.01)
    child.send_signal(number)
    text, err = child.communicate(timeout=60)
    want = (130, "h5z-gpu recover: stopped\n") if number == signal.SIGINT else (-number, "")
    assert (child.returncode, err) == want and not text, (child.returncode, text, err)
    assert [p.name for p in tmp_path.iterdir()] == ["a.h5"]
    left = [p for p in os.listdir("/proc") if p.isdigit() and str(out).encode() in _command(p)]
    assert not left, left


def _command(process):
    try:
        with open(f"/proc/{process}/cmdline", "rb") as f:
            return f.read()
    except OSError:  # it has ended
        return b""
