# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the host tests share: the plugin, the C applications, and how a program is run.

Every program is real and runs in a process of its own with HDF5_PLUGIN_PATH set, and nothing else done for the filter.
starts.py says how Python programs start.
"""
import contextlib
import functools
import importlib.util
import os
import signal
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
import starts
from samples import sample as sample

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
# Where plugin and program lie: what `make` has built, or tests/run.sh.
BUILT = ROOT / os.environ.get("INTO", "target")
PLUGIN = BUILT / "plugin/libh5zgpu.so"
sys.path.insert(0, str(HERE))
# Which third of the long matrices runs, 0 to 2: tests/run.sh says it, by the commit. None: all of them.
THIRD = os.environ.get("H5Z_GPU_TEST_THIRD")
# Random models take more turns.
LONG = os.environ.get("H5Z_GPU_TEST_LONG") == "1"
# For h5py in the test process; netCDF4 looks when it is imported. A program under `run` has it already.
if str(PLUGIN.parent) not in os.environ.get("HDF5_PLUGIN_PATH", "").split(":"):
    os.environ["HDF5_PLUGIN_PATH"] = str(PLUGIN.parent)


def clean(**more):
    """The environment of a program: HDF5_PLUGIN_PATH, and nothing of ours besides."""
    keep = ("PATH", "HOME", "TMPDIR", "LANG")
    return {k: os.environ[k] for k in keep if k in os.environ} | {"HDF5_PLUGIN_PATH": str(PLUGIN.parent)} | more


class Failed(AssertionError):
    pass


def run(*command, env=None, ok=True, cwd=None, input=None):
    """Runs a program to its end; gives stdout + stderr. With ok=False it must fail, with ok=None it may; never by a
    signal."""
    r = starts.run(command, env or clean(), cwd, input, merged=True)
    if r.returncode < 0 or r.returncode > 128 or ok not in (None, r.returncode == 0):
        raise Failed(f"{' '.join(map(str, command))}\nexit {r.returncode}\n{r.stdout[-3000:]}")
    return r.stdout


@contextlib.contextmanager
def child(*command, **how):
    """A program that runs beside the test, as `subprocess.Popen` starts it; killed at the end with all that it has
    started.

    Signals do in it what they do by default. Tests that run in the background of a script, or under nohup, inherit an
    ignored SIGINT, and so would the program: nothing could stop it.
    """
    with subprocess.Popen(["env", "--default-signal", *map(str, command)], start_new_session=True, **how) as p:
        try:
            yield p
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(p.pid, signal.SIGKILL)


def python(code, *args, **how):
    """Runs Python code in a process of its own, with tests/hosts importable."""
    env = (how.pop("env", None) or clean()) | {"PYTHONPATH": str(HERE)}
    return run(sys.executable, "-c", code, *args, env=env, **how)


def use(code, *args, **more):
    """Runs Python code with the package and nothing else that leads to the plugin."""
    env = clean(PYTHONPATH=f"{ROOT}/plugin/python:{HERE}", H5Z_GPU_PLUGIN_PATH=str(PLUGIN.parent)) | more
    del env["HDF5_PLUGIN_PATH"]
    return run(sys.executable, "-c", code, *args, env=env)


def pytest_configure(config):
    config.addinivalue_line("markers", "third: of a long matrix, whose thirds run at one commit in three each")


def pytest_collection_modifyitems(config, items):
    """Leaves out two thirds of the long matrices, cut by a hash of the names, so that each has cells of every row."""
    if THIRD is None or LONG:
        return
    left = [i for i in items if i.get_closest_marker("third") and zlib.crc32(i.nodeid.encode()) % 3 != int(THIRD) % 3]
    config.hook.pytest_deselected(items=left)
    items[:] = [i for i in items if i not in set(left)]


@pytest.fixture(scope="session", autouse=True)
def plugin():
    assert PLUGIN.exists(), f"{PLUGIN} is missing: run `make plugin`"
    assert [p.name for p in PLUGIN.parent.iterdir()] == [PLUGIN.name], "the plugin must be alone in its folder"
    return PLUGIN


@pytest.fixture(scope="session")
def reference():
    """The reader in NumPy, by itself."""
    spec = importlib.util.spec_from_file_location("reference", ROOT / "plugin/python/h5z_gpu/reference.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def faults(tmp_path_factory):
    """faults.c as a library for LD_PRELOAD."""
    library = tmp_path_factory.mktemp("faults") / "faults.so"
    run("cc", "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o", library, HERE / "faults.c", "-ldl")
    return str(library)


@functools.cache
def hdf5_dir():
    """Debian's directory of HDF5's static libraries."""
    arch = run("cc", "-print-multiarch").strip()
    return Path(f"/usr/lib/{arch}/hdf5/serial")


@functools.cache
def app(kind):
    """tests/hosts/app.c linked with HDF5 in one of four ways: shared, static, exported (-rdynamic), stripped."""
    out = ROOT / "target/test/app" / f"{kind}.{os.getpid()}"
    out.parent.mkdir(parents=True, exist_ok=True)
    lib = hdf5_dir()
    if kind == "shared":
        link = [f"-L{lib}", "-lhdf5"]
    else:
        link = [str(lib / "libhdf5.a"), *needed_by_static(lib)]
        link += {"static": [], "exported": ["-rdynamic"], "stripped": ["-s"]}[kind]
    run("cc", "-O1", "-o", out, HERE / "app.c", "-I/usr/include/hdf5/serial", *link, "-lpthread", "-ldl", "-lm")
    return out


def needed_by_static(lib):
    """What the static library itself needs, as Debian's own settings file says."""
    text = (lib / "libhdf5.settings").read_text()
    (line,) = [t for t in text.splitlines() if "Extra libraries" in t]
    return line.split(":", 1)[1].split()
