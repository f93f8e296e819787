# SPDX-License-Identifier: MIT OR Apache-2.0
"""`make install`: what it puts where serves HDF5, C programs and shells, also after a move; `make uninstall` leaves
nothing."""
import os
import shlex
import shutil

import h5py
import numpy as np
import pytest
from conftest import BUILT, PLUGIN, ROOT, clean, hdf5_dir, run

PREFIX = "/opt/h5z"
# A C program that codes an array and judges the bound.
PROGRAM = r"""
#include <h5z_gpu.h>
#include <stdio.h>
#include <string.h>

int main(void) {
    float x[1000], y[1000];
    unsigned char frame[8192];
    uint32_t words[H5Z_GPU_WORDS_MAX];
    const uint64_t n = 1000;
    for (int i = 0; i < 1000; i++)
        x[i] = (float)i / 7;
    int64_t count = h5z_gpu_words("11003", words);
    int64_t len = h5z_gpu_encode(words, (size_t)count, "<f4", 1, &n, NULL, x, sizeof x, frame, sizeof frame);
    if (len < 0 || h5z_gpu_decode(frame, (size_t)len, y, sizeof y) != (int64_t)sizeof y)
        return fprintf(stderr, "%s\n", h5z_gpu_last_error()), 1;
    double worst = 0;
    for (int i = 0; i < 1000; i++) {
        double e = (double)x[i] - y[i];
        worst = e > worst ? e : -e > worst ? -e : worst;
    }
    printf("%s %d %s\n", h5z_gpu_version(), h5z_gpu_filter_id(), worst > 0 && worst <= 1e-3 ? "held" : "broken");
    return 0;
}
"""
CMAKE = """
cmake_minimum_required(VERSION 3.12)
project(user C)
find_package(h5z-gpu 0.1 REQUIRED)
add_executable(user user.c)
target_link_libraries(user PRIVATE h5z-gpu::h5z-gpu)
file(WRITE "${CMAKE_BINARY_DIR}/plugin_dir" "${h5z-gpu_PLUGIN_DIR}")
"""


def make(target, dest, **more):
    variables = [f"{k}={v}" for k, v in ({"PREFIX": PREFIX, "DESTDIR": dest} | more).items()]
    return run("make", "-s", "--no-print-directory", target, *variables, env=dict(os.environ), cwd=ROOT)


def everything(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*"))


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The prefix after an installation into a DESTDIR whose name has a blank, moved elsewhere as a whole."""
    tmp = tmp_path_factory.mktemp("install")
    dest = tmp / "a dest"
    said = make("install", dest)
    assert f"export HDF5_PLUGIN_PATH={PREFIX}/lib/h5z-gpu/plugin" in said
    (tmp / "moved").mkdir()
    return shutil.move(dest / PREFIX[1:], tmp / "moved/here")


@pytest.fixture(scope="module")
def user(tmp_path_factory):
    folder = tmp_path_factory.mktemp("user")
    (folder / "user.c").write_text(PROGRAM)
    (folder / "CMakeLists.txt").write_text(CMAKE)
    return folder


def held():
    return f"{run(BUILT / 'bin/h5z-gpu', '--version').split()[1]} 443 held\n"


def test_the_plugin_is_alone_and_whole(installed):
    folder = installed / "lib/h5z-gpu/plugin"
    assert os.listdir(folder) == [PLUGIN.name] and not (folder / PLUGIN.name).is_symlink()
    assert (folder / PLUGIN.name).read_bytes() == PLUGIN.read_bytes()
    for link in ("lib", "lib/hdf5/plugin"):
        assert (installed / link / PLUGIN.name).resolve() == folder / PLUGIN.name
    assert os.listdir(installed / "lib/hdf5/plugin") == [PLUGIN.name]
    for name in ("LICENSE", "LICENSE-MIT", "LICENSE-APACHE"):
        assert (installed / "share/doc/h5z-gpu" / name).read_bytes() == (ROOT / name).read_bytes()


def test_hdf5_finds_it_in_each_folder_and_the_command_line_names_one(installed, tmp_path):
    for folder in ("lib/h5z-gpu/plugin", "lib/hdf5/plugin"):
        env = clean(HDF5_PLUGIN_PATH=str(installed / folder))
        run("h5repack", "-l", "v:CHUNK=100", "-f", "v:UD=443,1,1,11003", plain(tmp_path), tmp_path / "out.h5", env=env)
        assert "443" in run("h5dump", "-pH", tmp_path / "out.h5") and run("h5dump", tmp_path / "out.h5", env=env)
    env = clean()
    del env["HDF5_PLUGIN_PATH"]
    assert run(installed / "bin/h5z-gpu", "path", env=env) == f"{installed}/lib/h5z-gpu/plugin\n"
    run(installed / "bin/h5z-gpu", "run", "--", "true", env=env)
    line = run(installed / "bin/h5z-gpu", "env", env=env)
    shown = run("sh", "-c", line + 'printf %s "$HDF5_PLUGIN_PATH"').split(":")
    assert shown[0] == str(installed / "lib/h5z-gpu/plugin")


def plain(folder):
    with h5py.File(folder / "plain.h5", "w") as f:
        f["v"] = np.arange(1000, dtype="f4") / 7
    return folder / "plain.h5"


def test_a_program_is_built_by_pkg_config(installed, user, tmp_path):
    env = dict(os.environ) | {"PKG_CONFIG_PATH": str(installed / "lib/pkgconfig")}
    ask = lambda *what: shlex.split(run("pkg-config", *what, "h5z-gpu", env=env))
    assert ask("--modversion") == [held().split()[0].split("+")[0]]
    assert os.path.realpath(*ask("--variable=plugindir")) == str(installed / "lib/h5z-gpu/plugin")
    flags = "-std=c11", "-Wall", "-Wextra", "-Werror"
    run("cc", *flags, "-o", tmp_path / "user", user / "user.c", *ask("--cflags"), *ask("--libs"), env=env)
    assert run(tmp_path / "user", env=clean(LD_LIBRARY_PATH=str(installed / "lib"))) == held()


def test_a_program_is_built_by_cmake(installed, user, tmp_path):
    env = dict(os.environ)
    run("cmake", "-S", user, "-B", tmp_path, f"-DCMAKE_PREFIX_PATH={installed}", env=env)
    run("cmake", "--build", tmp_path, env=env)
    assert run(tmp_path / "user") == held(), "CMake's rpath of build trees"
    assert (tmp_path / "plugin_dir").read_text() == str(installed / "lib/h5z-gpu/plugin")
    assert f"[{PLUGIN.name}]" in run("readelf", "-d", tmp_path / "user"), "the name alone, without its folder"
    (tmp_path / "next").mkdir()
    wrong = (user / "CMakeLists.txt").read_text().replace("h5z-gpu 0.1", "h5z-gpu 0.2")
    (tmp_path / "next/CMakeLists.txt").write_text(wrong)
    said = run("cmake", "-S", tmp_path / "next", "-B", tmp_path / "next/b", f"-DCMAKE_PREFIX_PATH={installed}", env=env,
               ok=False)
    assert 'requested version "0.2"' in " ".join(said.split())


def test_a_program_that_links_it_and_uses_the_filter_has_it_once(installed, tmp_path):
    """The linked name and HDF5's lead to one file: its state and its threads are there once."""
    env = dict(os.environ) | {"PKG_CONFIG_PATH": str(installed / "lib/pkgconfig")}
    flags = shlex.split(run("pkg-config", "--cflags", "--libs", "h5z-gpu", env=env))
    here = ["-D_POSIX_C_SOURCE=200809L", "-I/usr/include/hdf5/serial", f"-L{hdf5_dir()}", "-lhdf5", "-lm"]
    run("cc", "-o", tmp_path / "array", ROOT / "examples/hdf5/array.c", *flags, *here, env=env)
    env = clean(LD_LIBRARY_PATH=str(installed / "lib"), HDF5_PLUGIN_PATH=str(installed / "lib/hdf5/plugin"),
                LD_DEBUG="files")
    said = run(tmp_path / "array", tmp_path / "a.h5", env=env)
    assert "64 chunks, largest error 0.0" in said
    assert said.count("generating link map") > 3 and sum(PLUGIN.name in s and "calling init" in s
                                                         for s in said.splitlines()) == 1


def test_the_manual_page_and_the_module_file(installed):
    page = run("man", "--warnings", "-l", installed / "share/man/man1/h5z-gpu.1", env=clean(LANG="C.UTF-8"))
    assert "H5Z_GPU_MIN_BYTES" in page and "warning" not in page
    (module,) = (installed / "share/modulefiles/h5z-gpu").iterdir()
    assert module.name == held().split()[0].split("+")[0] and module.read_text().startswith("#%Module")
    assert "@" not in module.read_text()


def test_uninstall_leaves_nothing(tmp_path):
    make("install", tmp_path)
    folders = "HDF5_PLUGINDIRS", "/usr/lib/a/hdf5/serial/plugins /usr/lib/a/hdf5/openmpi/plugins"
    for prefix, more in ((PREFIX, {}), ("/usr", dict([folders]))):
        make("install", tmp_path, PREFIX=prefix, **more)
        files = {f for f in everything(tmp_path) if not (tmp_path / f).is_dir() or (tmp_path / f).is_symlink()}
        listed = make("installed-files", "", PREFIX=prefix, **more).split()
        assert {f[1:] for f in listed} == {f for f in files if f.startswith(prefix[1:])}
        (tmp_path / prefix[1:] / "lib/neighbour.so").write_text("stays")
        make("uninstall", tmp_path, PREFIX=prefix, **more)
        left = [f for f in everything(tmp_path / prefix[1:]) if not (tmp_path / prefix[1:] / f).is_dir()]
        assert left == ["lib/neighbour.so"]
        assert not [f for f in everything(tmp_path / prefix[1:]) if "h5z" in f]
        (tmp_path / prefix[1:] / "lib/neighbour.so").unlink()
    make("install", tmp_path)
    make("uninstall", tmp_path)
    assert not (tmp_path / "opt").exists(), "empty folders go too"


@pytest.mark.parametrize("prefix", ["relative/path", "/with a/blank"])
def test_a_wrong_prefix_is_refused(prefix, tmp_path):
    said = run("make", "-s", "install", f"PREFIX={prefix}", f"DESTDIR={tmp_path}", env=dict(os.environ), cwd=ROOT,
               ok=False)
    assert "give a whole path without blanks" in said and not everything(tmp_path)
