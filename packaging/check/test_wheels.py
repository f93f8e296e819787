# SPDX-License-Identifier: MIT OR Apache-2.0
"""Wheels and sdist as they are published: the checkers' verdicts, what is inside, and that they work where they are
installed."""
import platform
import re
import sys
import zipfile

import pytest
from conftest import LICENCES, ROOT, ROUND_TRIP, VERSION, bare_python, licences_of, run, tool

MACHINES = "x86_64", "aarch64"


@pytest.fixture(scope="module", params=MACHINES)
def wheel(request):
    run("make", "-s", "wheel", f"MACHINE={request.param}")
    return one(request.param)


def one(machine):
    (path,) = (ROOT / "target/wheel").glob(f"h5z_gpu-{VERSION}-*_{machine}.whl")
    return path


@pytest.fixture(scope="module")
def sdist():
    run("make", "-s", "sdist")
    return ROOT / f"target/wheel/h5z_gpu-{VERSION}.tar.gz"


def test_the_name_is_true_and_pip_and_auditwheel_agree(wheel, tmp_path):
    machine = wheel.stem.rsplit("_", 2)[-1] if "aarch64" in wheel.stem else "x86_64"
    assert wheel.name.split("-", 4)[4] == f"manylinux2014_{machine}.manylinux_2_17_{machine}.whl"
    if machine == platform.machine():  # what docs/start.md tells pip to install
        (listed,) = re.findall(r'pip install "\$\((ls .*)\)\[h5py\]"', (ROOT / "docs/start.md").read_text())
        assert run("sh", "-euc", listed).split() == [str(wheel.relative_to(ROOT))]
    said = " ".join(tool("auditwheel", "show", wheel).split())
    assert re.search(rf'"manylinux_2_(5|12|17)_{machine}"', said), said
    with zipfile.ZipFile(wheel) as z:
        (tmp_path / "plugin.so").write_bytes(z.read("h5z_gpu/plugin/libh5zgpu.so"))
        assert z.getinfo("h5z_gpu/bin/h5z-gpu").external_attr >> 16 & 0o111, "the program may be run"
    header = run("readelf", "-hdV", "-W", tmp_path / "plugin.so")
    assert ("X86-64" if machine == "x86_64" else "AArch64") in header
    assert max(int(v) for v in re.findall(r"Name: GLIBC_2\.(\d+)", header)) <= 17
    needed = set(re.findall(r"NEEDED.*\[(.*)\]", header))
    assert needed <= {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "ld-linux-x86-64.so.2"}, needed
    assert "NODELETE" in header


def test_the_checkers_find_nothing(wheel):
    assert "PASSED" in tool("twine", "check", "--strict", wheel)
    assert tool("check-wheel-contents", wheel).strip().endswith("OK")


def test_size_licences_and_kernels(wheel):
    assert wheel.stat().st_size <= 25_000_000 and licences_of(wheel) == LICENCES
    with zipfile.ZipFile(wheel) as z:
        assert [n for n in z.namelist() if "/plugin/" in n] == ["h5z_gpu/plugin/libh5zgpu.so"], "alone in its folder"
        assert b"NVRTC 12." in z.read("h5z_gpu/plugin/libh5zgpu.so"), "the GPU's kernels are missing: see gpu.mk"


def test_it_is_installed_and_used(tmp_path):
    python = bare_python(tmp_path / "env", one("x86_64"), "h5py==3.16.0")
    said = run(python, "-c", ROUND_TRIP, tmp_path / "a.h5", HDF5_PLUGIN_PATH=None, H5Z_GPU_PLUGIN_PATH=None,
               PYTHONPATH=None)
    assert said.startswith("x86_64 ")


def test_every_function_of_the_header_is_in_it(tmp_path):
    with zipfile.ZipFile(one("x86_64")) as z:
        z.extract("h5z_gpu/plugin/libh5zgpu.so", tmp_path)
    plugin = tmp_path / "h5z_gpu/plugin"
    hdf5 = f"/usr/lib/{run('cc', '-print-multiarch').strip()}/hdf5/serial"
    run("cc", "-std=c11", "-D_POSIX_C_SOURCE=200809L", "-o", tmp_path / "c_api", ROOT / "tests/hosts/c_api.c",
        plugin / "libh5zgpu.so",
        f"-I{ROOT}/plugin/include", "-I/usr/include/hdf5/serial", f"-L{hdf5}", "-lhdf5", "-lm", "-lpthread",
        f"-Wl,-rpath,{plugin}")
    assert run(tmp_path / "c_api", HDF5_PLUGIN_PATH=str(plugin)).endswith(" all good\n")


# Debian's Python for ARM, and h5py's wheel for it, in one folder.
PACKAGES = "python3.11-minimal", "libpython3.11-stdlib", "libstdc++6"


def arm(folder):
    """A root for qemu-aarch64 with Python, from Debian 12; no setting of this machine's apt is changed."""
    (folder / "lists/partial").mkdir(parents=True)
    (folder / "cache/archives/partial").mkdir(parents=True)
    (folder / "status").touch()
    (folder / "apt.conf").write_text(
        'APT::Architecture "arm64"; APT::Architectures { "arm64"; };\n'
        f'Dir::State::Lists "{folder}/lists"; Dir::Cache "{folder}/cache"; Dir::State::status "{folder}/status";\n'
    )
    apt = {"APT_CONFIG": str(folder / "apt.conf")}
    run("apt-get", "update", "-qq", **apt)
    run("apt-get", "install", "-y", "--no-install-recommends", "--download-only", *PACKAGES, **apt)
    for deb in (folder / "cache/archives").glob("*.deb"):
        run("dpkg", "-x", deb, folder / "root")
    return folder / "root"


def test_the_wheel_for_arm_writes_the_same_bytes_under_emulation(tmp_path):
    root = arm(tmp_path / "arm")
    platforms = [f"--platform=manylinux_2_{n}_aarch64" for n in (17, 27, 28)] + ["--platform=manylinux2014_aarch64"]
    run(sys.executable, "-m", "pip", "install", "--quiet", "--only-binary=:all:", *platforms, "--python-version=3.11",
        "--implementation=cp", "--target", tmp_path / "site", one("aarch64"), "h5py==3.16.0", "numpy==2.4.6")
    clean = {"HDF5_PLUGIN_PATH": None, "H5Z_GPU_PLUGIN_PATH": None, "PYTHONPATH": None}
    there = run("qemu-aarch64", "-L", root, "-E", f"PYTHONPATH={tmp_path}/site", root / "usr/bin/python3.11", "-c",
                ROUND_TRIP, tmp_path / "arm.h5", **clean).split()
    run(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", tmp_path / "here", one("x86_64"))
    here = run(sys.executable, "-c", ROUND_TRIP, tmp_path / "here.h5",
               **clean | {"PYTHONPATH": str(tmp_path / "here")}).split()
    assert (there[0], here[0]) == ("aarch64", "x86_64") and there[2] == here[2]


def test_the_sdist_builds_in_a_bare_environment(sdist, tmp_path):
    assert "PASSED" in tool("twine", "check", "--strict", sdist)
    python = bare_python(tmp_path / "env", "h5py==3.16.0")
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", sdist, H5Z_GPU_CUDA="off",
        CARGO_TARGET_DIR=None)
    said = run(python, "-c", ROUND_TRIP, tmp_path / "a.h5", HDF5_PLUGIN_PATH=None, H5Z_GPU_PLUGIN_PATH=None,
               PYTHONPATH=None)
    assert said.startswith("x86_64 ")
