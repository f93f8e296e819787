# SPDX-License-Identifier: MIT OR Apache-2.0
"""Several HDF5 libraries in one process, threads, forks, and how a process ends."""
import itertools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import h5py
import numpy as np
import pytest
from conftest import BUILT, HERE, PLUGIN, ROOT, child, clean, python, run, use

IMPORTS = {"h5py": "import h5py", "netCDF4": "import netCDF4", "PyTables": "import tables"}

INTERLEAVED = """
import sys, numpy as np, judge
from samples import sample
import wheel
chunk = {"v": [3, 16, 47], "w": [5, 33, 20]}
data = {"v": sample(np.float32), "w": sample(np.float64, seed=2)}
libs = wheel.LIBRARIES
def check(got):
    for n, x in data.items():
        assert 0 < judge.check(x, got[n], "abs", 1e-3) <= 1
for turn in range(3):
    for writer in libs:
        path = f"{sys.argv[1]}/{writer}.{turn}.h5"
        libs[writer].write(data, path, chunk, [11003])
        for reader in libs:
            check(libs[reader].read(path, list(data)))
assert sorted(n for n in ("h5py", "netCDF4", "tables") if n in sys.modules) == ["h5py", "netCDF4", "tables"]
assert len({line.split()[-1] for line in open("/proc/self/maps") if "libh5zgpu" in line}) == 1
print("all good")
"""


@pytest.mark.parametrize("order", list(itertools.permutations(IMPORTS)), ids=" ".join)
def test_three_wheels_in_one_process(order, tmp_path):
    text = python("\n".join(IMPORTS[n] for n in order) + INTERLEAVED, tmp_path)
    assert text.endswith("all good\n") and "h5z-gpu" not in text, text  # PyTables warns of netCDF's attributes


def test_three_libraries_in_three_threads(tmp_path):
    """One thread for each: netCDF4 and PyTables are not safe with two of their own."""
    text = python("""if True:
        import sys, threading, numpy as np, h5py, netCDF4, tables, judge, wheel
        from samples import sample
        x = sample(np.float32, (20, 64, 64))
        wrong = []
        def work(library, tag):
            try:
                for i in range(15):
                    path = f"{sys.argv[1]}/{tag}.{i}.h5"
                    wheel.LIBRARIES[library].write({"v": x}, path, {"v": [4, 64, 64]}, [11003])
                    judge.check(x, wheel.LIBRARIES[library].read(path, ["v"])["v"], "abs", 1e-3)
            except BaseException as e:
                wrong.append(repr(e))
        threads = [threading.Thread(target=work, args=a) for a in (("h5py", "a"), ("netCDF4", "b"), ("PyTables", "c"))]
        [t.start() for t in threads]
        [t.join() for t in threads]
        assert not wrong, wrong
        print("all good")
        """, tmp_path)
    assert text == "all good\n", text


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing_after_the_filter_was_used(method, tmp_path):
    """The parent has used threads of the filter; its children must neither hang nor fail."""
    (tmp_path / "work.py").write_text("""if True:
        import multiprocessing, sys, numpy as np, h5py, judge
        from samples import sample
        x = sample(np.float32, (64, 128, 128))
        def there_and_back(i):
            path = f"{sys.argv[1]}/{i}.h5"
            with h5py.File(path, "w") as f:
                f.create_dataset("v", data=x + i, chunks=(32, 128, 128), compression=443, compression_opts=(11003,))
            with h5py.File(path) as f, h5py.File(f"{sys.argv[1]}/parent.h5") as g:
                judge.check(x, g["v"][...], "abs", 1e-3)
                return judge.check(x + np.float32(i), f["v"][...], "abs", 1e-3)
        if __name__ == "__main__":
            with h5py.File(f"{sys.argv[1]}/parent.h5", "w") as f:
                f.create_dataset("v", data=x, chunks=(32, 128, 128), compression=443, compression_opts=(11003,))
            with multiprocessing.get_context(sys.argv[2]).Pool(3) as pool:
                print(pool.map_async(there_and_back, range(8)).get(timeout=300))
            there_and_back(9)
            print("all good")
        """)
    text = run(sys.executable, tmp_path / "work.py", tmp_path, method, env=clean(PYTHONPATH=str(HERE)))
    assert text.endswith("all good\n"), text


def test_a_file_left_open_is_written_at_exit(tmp_path):
    """h5py closes files while the interpreter ends: the filter works to the last moment, in silence."""
    text = python("""if True:
        import sys, h5py, numpy as np
        f = h5py.File(sys.argv[1], "w")
        d = f.create_dataset("v", (4, 1000), "f4", chunks=(1, 1000), compression=443, compression_opts=(11003,))
        d[...] = np.linspace(0, 1, 4000).reshape(4, 1000)
        """, tmp_path / "a.h5")
    assert text == ""
    python("import sys, h5py; assert abs(h5py.File(sys.argv[1])['v'][3, 999] - 1) <= 1e-3", tmp_path / "a.h5")


WRITE_WITH_A_WARNING = """if True:
    import sys, h5py, numpy as np
    with h5py.File(sys.argv[1], "w") as f:
        f.create_dataset("v", data=np.linspace(0, 1, 1000), chunks=(500,), shuffle=True, compression=443,
                         compression_opts=(11003,))
    """


@pytest.mark.parametrize("kind", ["closed", "full", "broken pipe"])
def test_a_warning_that_nobody_can_read_changes_nothing(kind, tmp_path):
    """As in `job.py 2>&1 | head`: a line to standard error may fail, the data must not."""
    if kind == "broken pipe":
        reader, error = os.pipe()
        os.close(reader)
    else:
        error = os.open("/dev/full", os.O_WRONLY)
    close = (lambda: os.close(2)) if kind == "closed" else None
    command = [sys.executable, "-c", WRITE_WITH_A_WARNING, str(tmp_path / "a.h5")]
    r = subprocess.run(command, env=clean(), stdout=subprocess.PIPE, stderr=error, preexec_fn=close)
    os.close(error)
    assert r.returncode == 0
    with h5py.File(tmp_path / "a.h5") as f:
        assert f["v"][...].tobytes() == np.linspace(0, 1, 1000).tobytes()


@pytest.mark.parametrize("name, value, allowed", [
    ("H5Z_GPU_THREADS", "many", "a number above 0"),
    ("H5Z_GPU_THREADS", "0", "a number above 0"),
    ("H5Z_GPU_MIN_BYTES", "4M", "a number of bytes"),
    ("H5Z_GPU_LOG", "verbose", "off, warn or info"),
    ("H5Z_GPU_STRICT", "yes", "0 or 1"),
])
def test_a_variable_that_is_not_understood_is_named(name, value, allowed, tmp_path):
    code = WRITE_WITH_A_WARNING.replace("shuffle=True, ", "")
    assert python(code, tmp_path / "a.h5",
                  env=clean(**{name: value})) == f"h5z-gpu: {name} is \"{value}\"; allowed: {allowed}\n"


def test_a_program_beside_a_test_can_be_stopped_and_never_stays():
    """Also where SIGINT is ignored, as in the background of a script; a shell's own background ignores it in any
    case."""
    command = ("sh", "-c", "sleep 600 & echo $!; wait")
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with child(*command, stdout=subprocess.PIPE, text=True) as p:
            started = [int(p.stdout.readline())]
            p.send_signal(signal.SIGINT)
            assert p.wait(60) == -signal.SIGINT
        with pytest.raises(KeyError), child(*command, stdout=subprocess.PIPE, text=True) as p:
            started += [p.pid, int(p.stdout.readline())]
            raise KeyError
    finally:
        signal.signal(signal.SIGINT, before)
    deadline = time.monotonic() + 60
    while any(map(runs, started)):
        assert time.monotonic() < deadline, started
        time.sleep(0.01)


def runs(number):
    """Whether a process is there and not just waiting to be reaped."""
    try:
        return Path(f"/proc/{number}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_opening_and_closing_a_thousand_times(tmp_path):
    text = python("""if True:
        import ctypes, sys
        import _ctypes
        for i in range(1000):
            h = ctypes.CDLL(sys.argv[1])
            h.H5PLget_plugin_info.restype = ctypes.c_void_p
            assert h.H5PLget_plugin_type() == 0 and h.H5PLget_plugin_info()
            _ctypes.dlclose(h._handle)
        print("all good")
        """, PLUGIN)
    assert text == "all good\n", text


def test_nothing_is_printed_and_the_object_is_as_promised(tmp_path):
    dynamic = run("readelf", "-d", PLUGIN)
    needed = [line.split("[")[1].rstrip("]") for line in dynamic.splitlines() if "NEEDED" in line]
    assert all(n.startswith(("libc.so", "libgcc_s.so", "ld-linux", "libm.so", "libdl.so", "libpthread.so"))
               for n in needed), needed
    assert "NODELETE" in dynamic
    symbols = run("readelf", "--dyn-syms", "-W", PLUGIN).splitlines()
    names = [(s.split()[6], s.split()[7].split("@")[0]) for s in symbols if len(s.split()) >= 8]
    exported = {n for where, n in names if where not in ("UND", "Ndx")}
    assert {"H5PLget_plugin_type", "H5PLget_plugin_info", "NCZ_get_codec_info"} <= exported
    assert all(n.startswith(("h5z_gpu_", "H5PLget_plugin_", "NCZ_get_codec_info")) for n in exported), exported
    assert not [n for where, n in names if where == "UND" and n.startswith(("H5", "nc_", "cu", "Py"))]
    # The tests' own build has lines for backtraces, which `make` leaves out.
    plain = tmp_path / PLUGIN.name
    run("strip", "--strip-debug", "-o", plain, PLUGIN)
    assert plain.stat().st_size <= 20 << 20, f"{plain.stat().st_size} bytes"
    assert BUILT != ROOT / "target" or "debug_info" not in run("readelf", "-S", "-W", PLUGIN)


def test_one_folder_for_all_by_environment_alone(tmp_path):
    """Without the variable the filter is unknown; with it, it is there. Nothing else was installed."""
    code = "import h5py, sys; sys.exit(0 if h5py.h5z.filter_avail(443) else 9)"
    without = {k: v for k, v in clean().items() if k != "HDF5_PLUGIN_PATH"}
    assert subprocess.run([sys.executable, "-c", code], env=without).returncode == 9
    assert subprocess.run([sys.executable, "-c", code], env=clean()).returncode == 0


# Ctrl-C at any moment: no thread of the library outlives the call that began it, none reads an array that is gone,
# files stay right.
#
# H5Z_GPU_INTERRUPTS=n interrupts n times instead of 60.

CODE = """
import os, random, signal, sys, time
import h5py, numpy as np, h5z_gpu
from h5z_gpu.library import lib

def working():
    names = []
    for task in os.listdir("/proc/self/task"):
        try:
            names.append(open(f"/proc/self/task/{task}/comm").read())
        except OSError:  # it has just ended
            pass
    return sum(name.startswith("h5z-gpu encode") for name in names)

def none_works():
    end = time.monotonic() + 1  # a thread that was waited for leaves the list a moment later
    while working() and time.monotonic() < end:
        time.sleep(1e-3)
    assert not working(), f"{working()} threads after {hits} interrupts"

# A program that is started in the background may have been told to ignore SIGINT: this signal raises KeyboardInterrupt
# whatever was.
signal.signal(signal.SIGALRM, signal.default_int_handler)
interrupt = lambda least, most: signal.setitimer(signal.ITIMER_REAL, random.uniform(least, most))
begin = lib.h5z_gpu_encode_array
def aimed(*args):  # into the call that begins the work, or just behind it
    interrupt(1e-6, 3e-4)
    return begin(*args)

random.seed(1)
rng = np.random.default_rng(1)
arrays = [rng.normal(0, 1, (48, 256, 256)).astype("f4") for _ in range(2)]
wanted, hits, rounds, took = int(sys.argv[2]), 0, 0, 0.05
with h5py.File(sys.argv[1], "w") as f:
    d = f.create_dataset("d", arrays[0].shape, "f4", chunks=(2, 64, 64), **h5z_gpu.Lossless())
    h5z_gpu.write(d, arrays[0], threads=4)
    while hits < wanted:
        rounds += 1
        a = arrays[rounds % 2].copy()  # goes when the call has ended
        try:
            try:
                if rounds % 3 == 2:
                    interrupt(1e-6, took)
                    h5z_gpu.read(d, threads=4)
                elif rounds % 3:
                    lib.h5z_gpu_encode_array = aimed
                    h5z_gpu.write(d, a, threads=4)
                else:
                    interrupt(1e-6, took)
                    started = time.perf_counter()
                    h5z_gpu.write(d, a, threads=4)
                    took = time.perf_counter() - started
            finally:
                lib.h5z_gpu_encode_array = begin
                signal.setitimer(signal.ITIMER_REAL, 0)
        except KeyboardInterrupt as kept:  # with its traceback, as a notebook keeps it
            hits += 1
            none_works()
        del a
    none_works()
    whole = lambda: h5z_gpu.read(d).reshape(24, 2, 4, 64, 4, 64)
    old, new = (x.reshape(24, 2, 4, 64, 4, 64) for x in arrays)
    same = [(whole() == x).all(axis=(1, 3, 5)) for x in (old, new)]
    assert (same[0] | same[1]).all(), "a chunk is neither old nor new"
    h5z_gpu.write(d, arrays[1])
    assert d[...].tobytes() == arrays[1].tobytes()
print(f"{hits} interrupts in {rounds} calls")
"""


def test_nothing_is_left_after_ctrl_c(tmp_path):
    count = os.environ.get("H5Z_GPU_INTERRUPTS", "60")
    said = use(CODE, tmp_path / "a.h5", count)
    # Python itself says so of interrupts that come while it tidies up.
    assert said.splitlines()[-1].startswith(f"{count} interrupts"), said
