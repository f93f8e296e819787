# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the checks of packages share: how commands are run, and the project's files without what is built."""
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
VERSION = next(t.split('"')[1] for t in (ROOT / "Cargo.toml").read_text().splitlines() if t.startswith("version"))


LICENCES = {"LICENSE", "LICENSE-MIT", "LICENSE-APACHE", "THIRD-PARTY.txt"}


def licences_of(wheel):
    """Names of the licences in a wheel that are those of the sources."""
    with zipfile.ZipFile(wheel) as z:
        return {name for name in LICENCES
                if z.read(f"h5z_gpu-{VERSION}.dist-info/licenses/{name}")
                == (ROOT / ("packaging" if name == "THIRD-PARTY.txt" else "") / name).read_bytes()}


def run(*command, cwd=ROOT, **variables):
    """Runs a program that must end well; gives stdout + stderr. A variable that is None is taken out."""
    env = {k: v for k, v in (dict(os.environ) | variables).items() if v is not None}
    r = subprocess.run([str(c) for c in command], cwd=cwd, env=env, text=True, errors="replace",
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert r.returncode == 0, f"{' '.join(map(str, command))}\nexit {r.returncode}\n{r.stdout[-6000:]}"
    return r.stdout


def tool(name, *args, **how):
    """One of the Python programs of target/package-env."""
    return run(Path(sys.executable).with_name(name), *args, **how)


def bare_python(folder, *what):
    """A new Python environment with some packages, as a user has one; gives its interpreter."""
    run(sys.executable, "-m", "venv", folder)
    run(folder / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *what)
    return folder / "bin/python"


# Writes with every codec by h5py, reads again, and prints a hash of all stored bytes: equal on every machine.
ROUND_TRIP = """
import hashlib, os, platform, sys
assert "H5Z_GPU_PLUGIN_PATH" not in os.environ and "HDF5_PLUGIN_PATH" not in os.environ
import h5py, h5z_gpu, numpy as np

said = hashlib.sha256()
k = np.arange(40 * 61 * 67, dtype="i8")
for dtype in ("f4", ">f4", "f8"):
    x = (k * 40503 % 65521 / 997.0 + k / 50).reshape(40, 61, 67).astype(dtype)
    x[0, 0, :4] = np.nan, np.inf, -np.inf, -999
    lossy, ends = h5z_gpu.Lossy, x.ravel()[4:].astype("f8")
    ways = [(lossy(1e-2, codec=c, fill_value=-999), 1e-2) for c in ("szx", "lorenzo", "planes")]
    ways += [(lossy(1e-2, fill_value=-999), 1e-2), (lossy(relative=1e-4, fill_value=-999), 1e-4 * np.ptp(ends)),
             (lossy(pointwise_relative=1e-3, fill_value=-999), 1e-3 * ends.max()), (h5z_gpu.Lossless(), 0)]
    for how, limit in ways:
        with h5py.File(sys.argv[1], "w") as f:
            f.create_dataset("v", data=x, chunks=(20, 61, 67), **how)
        with h5py.File(sys.argv[1]) as f:
            y = f["v"][...]
            for i in range(f["v"].id.get_num_chunks()):
                said.update(f["v"].id.read_direct_chunk(f["v"].id.get_chunk_info(i).chunk_offset)[1])
        assert np.array_equal(x[0, 0, :4].view("V8" if dtype == "f8" else "V4"),
                              y[0, 0, :4].view("V8" if dtype == "f8" else "V4"))
        worst = np.abs(ends - y.ravel()[4:]).max()
        assert worst <= limit and (worst > 0 or limit == 0), (how, worst)
print(platform.machine(), h5py.version.hdf5_version, said.hexdigest())
"""


def debian(target, *packages):
    """A root of Debian 13 with some packages, as a folder or as *.tar."""
    assert os.geteuid() == 0, "a root of Debian 13 is made and entered by root: run this check as root"
    run("mmdebstrap", "--variant=minbase", "--include", ",".join(("ca-certificates", *packages)), "trixie", target)
    return target


@pytest.fixture(scope="session")
def sources(tmp_path_factory):
    """What `make vendored` packs."""
    run("make", "-s", "vendored")
    folder = tmp_path_factory.mktemp("sources")
    run("tar", "-x", "-C", folder, "--strip-components=1", "-f", ROOT / f"target/h5z-gpu-{VERSION}.tar.gz")
    return folder


@pytest.fixture(scope="session")
def toolchain():
    """PATH with cargo itself first: rustup's finds no toolchain where a build has a home of its own."""
    return f"{run('rustc', '--print', 'sysroot').strip()}/bin:{os.environ['PATH']}"
