# SPDX-License-Identifier: MIT OR Apache-2.0
"""Objects of Python that h5py reads a file through, and that fail: at each of their calls in turn they give more bytes
than were asked for, fewer, none, or raise. What comes is right, or an error of the object's own."""
import functools
import gc
import io
import itertools
import os
import sys

import h5py
import numpy as np
import pytest
from conftest import LONG, PLUGIN, ROOT, sample

os.environ["H5Z_GPU_PLUGIN_PATH"] = str(PLUGIN.parent)
sys.path.insert(0, str(ROOT / "plugin/python"))
import h5z_gpu

A = sample(shape=(8, 22, 32))
MADE = {"earliest": {}, "latest": {"libver": "latest"}, "growing": {"libver": "latest", "maxshape": (None, 22, 32)},
          "sparse": {"fillvalue": -3}}


class Planted(Exception):
    """No error of the system's."""


class Faulty:
    """An open file that fails at its call number `at`, counted from `arm` on; where it `lasts` at all later ones."""

    def __init__(self, data):
        self.data, self.place = bytes(data), 0
        self.calls = self.at = self.fault = self.raised = None

    def arm(self, at=0, fault=None, lasts=False):
        self.calls, self.at, self.fault, self.lasts, self.raised = 0, at, fault, lasts, []

    def given(self, n):
        """What a call reads: of n bytes, as many as the fault leaves."""
        fails = False
        if self.calls is not None:
            self.calls += 1
            fails = self.calls == self.at or (self.lasts and 0 < self.at < self.calls)
        if fails and isinstance(self.fault, BaseException):
            self.raised.append(type(self.fault)(*self.fault.args))
            raise self.raised[-1]
        found = self.data[self.place : self.place + n]
        self.place += len(found)
        return found if not fails else self.fault(found)

    def seek(self, at, whence=0):
        self.place = at + (0, self.place, len(self.data))[whence]
        return self.place

    def tell(self):
        return self.place

    def flush(self):
        pass

    def read(self, n=-1):
        return self.given(len(self.data) if n < 0 else n)


class FaultyInto(Faulty):
    """One that h5py reads by `readinto`."""

    def readinto(self, buffer):
        found = self.given(len(buffer))
        n = min(len(buffer), len(found or b""))
        buffer[:n] = (found or b"")[:n]
        return found and len(found)


class FaultySeek(Faulty):
    """One that fails where it is told a place, too; and tells none itself."""

    def seek(self, at, whence=0):
        super().seek(at, whence)
        if whence == 0:
            self.given(0)


FAULTS = {
    "more": lambda found: found + b"A" * (4 << 20), "one more": lambda found: found + b"A",
    "fewer": lambda found: found[: len(found) // 2], "one fewer": lambda found: found[:-1],
    "nothing": lambda found: b"", "None": lambda found: None, "a number": lambda found: 1 << 40,
    "reset": ConnectionResetError(104, "Connection reset by peer"), "gone": FileNotFoundError(2, "No such file"),
    "late": TimeoutError("no answer"), "another": Planted("429 Too Many Requests"), "memory": MemoryError("none"),
    "value": ValueError("odd"), "ctrl-c": KeyboardInterrupt(),
}


@functools.cache
def made(kind, user_block):
    """The bytes of a file with the dataset `v`."""
    there, how = io.BytesIO(), dict(MADE[kind])
    libver = how.pop("libver", None)
    with h5py.File(there, "w", userblock_size=user_block, **({"libver": libver} if libver else {})) as f:
        d = f.create_dataset("v", A.shape, "f4", chunks=(2, 11, 16), compression=h5z_gpu.Lossless(), **how)
        d[: 2 if kind == "sparse" else 8] = A[: 2 if kind == "sparse" else 8]
    return there.getvalue()


def whole(d):
    return h5z_gpu.read(d)


def box(d):
    return h5z_gpu.read(d, selection=np.s_[1:, 5:20])


def one(d):
    """By HDF5 alone."""
    return h5z_gpu.read(d, selection=np.s_[1, 4, 5:9])


def by_place(d):
    """Lengths of chunks, 0 for what HDF5 does not find."""
    from h5z_gpu import index

    return np.array([index.stored_size(d, origin) for origin in ((0, 0, 0), (0, 11, 16))])


WORK = (whole, box, one, by_place)


def tried(data, kind, work, fault, at, lasts, **cache):
    """What comes of `work` where call `at` fails: the answer, or the error, and what the object raised."""
    there = kind(data)
    with h5py.File(there, "r", **cache) as f:
        d = f["v"]
        there.arm(at, fault, lasts)
        try:
            return work(d), None, there
        except BaseException as error:
            return None, error, there
        finally:
            there.counted, there.calls = there.calls, None


def judge(want, got, error, there, fault, what):
    """Right values, or what the object raised, as it was; of other faults, an error that is not Python's own."""
    if error is None:
        # Bytes that are not there are no error of h5py's: HDF5 finds nothing in what it had in memory before.
        finds_none = want.dtype == int and not isinstance(fault, BaseException)
        assert got.tobytes() == (np.where(got == 0, got, want) if finds_none else want).tobytes(), what
    elif isinstance(fault, BaseException):
        assert any(error is planted for planted in there.raised), (what, repr(error))
        assert type(error) is type(fault) and getattr(error, "errno", None) == getattr(fault, "errno", None), what
    else:
        assert isinstance(error, (OSError, ValueError, TypeError)), (what, repr(error))


@pytest.fixture(autouse=True)
def nothing_ignored(monkeypatch):
    """No exception may be printed and lost."""
    lost = []
    monkeypatch.setattr(sys, "unraisablehook", lambda what: lost.append(what.exc_value))
    gc.collect()
    gc.disable()
    yield
    gc.enable()
    assert not lost, lost


@pytest.mark.parametrize("name", FAULTS)
def test_each_call_fails_in_turn(name):
    fault = FAULTS[name]
    every = [*itertools.product(MADE, (0, 512), (Faulty, FaultyInto, FaultySeek), ({"rdcc_nbytes": 0}, {}), WORK)]
    some = every if LONG else every[list(FAULTS).index(name) % 13 :: 13]
    tried_in_all = 0
    for kind, block, there, cache, work in some:
        data = made(kind, block)
        want, error, opened = tried(data, there, work, None, 0, False, **cache)
        assert error is None and opened.counted, (kind, there.__name__, work.__name__, repr(error))
        calls = range(1, opened.counted + 1)
        for lasts in (False, True):
            for at in calls if LONG else {calls[0], calls[len(calls) // 3], calls[len(calls) // 2], calls[-1]}:
                got, error, opened = tried(data, there, work, fault, at, lasts, **cache)
                what = (kind, block, there.__name__, cache, work.__name__, name, f"call {at} of {len(calls)}, {lasts=}")
                judge(want, got, error, opened, fault, what)
                tried_in_all += 1
    assert tried_in_all >= 8 * len(some) - 60


class Forgetful(FaultyInto):
    """One of whose class Python has forgotten the methods when HDF5 calls it again, as after much other work."""

    def given(self, n):
        sys._clear_type_cache()
        return super().given(n)


@pytest.mark.parametrize("kind", MADE)
def test_an_error_is_not_lost_where_hdf5_calls_the_object_again(kind):
    for work, lasts in itertools.product((whole, box, one), (False, True)):
        fault = ConnectionResetError(104, "Connection reset by peer")
        got, error, there = tried(made(kind, 0), Forgetful, work, fault, 1, lasts, rdcc_nbytes=0)
        judge(None, got, error, there, fault, (kind, work.__name__, lasts))


@pytest.mark.parametrize("kind", MADE)
def test_what_readinto_did_not_give_is_not_taken_from_memory(kind):
    """h5py counts no bytes: HDF5 would read a node of another file that lay there before."""
    for work, fault in itertools.product((whole, box, one), ("fewer", "one fewer", "nothing", "None")):
        _, error, there = tried(made(kind, 512), FaultyInto, work, FAULTS[fault], 1, True, rdcc_nbytes=0)
        assert isinstance(error, OSError) and "bytes came: read it again" in str(error), (kind, fault, repr(error))
        assert not {"read", "readinto", "seek"} & set(vars(there))
