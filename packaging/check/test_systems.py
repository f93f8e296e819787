# SPDX-License-Identifier: MIT OR Apache-2.0
"""Packages of systems: built by their own tools, installed into a root of their own, used from there, and taken away
again."""
import json
import os
import re
import shutil
import sys
from pathlib import Path

import pytest
from conftest import ROOT, VERSION, run, tool


# A program without a network; in a namespace where its user looks like root.
OFFLINE = "unshare", "--map-root-user", "--net"


def plugin_works(folder, tmp):
    """h5repack writes with the plugin of a folder, which holds nothing else, and h5dump reads."""
    assert os.listdir(folder) == ["libh5zgpu.so"]
    run("h5repack", "-f", "UD=443,1,1,11003", "-l", "CHUNK=1000", plain(tmp), tmp / "out.h5",
        HDF5_PLUGIN_PATH=str(folder))
    said = run("h5dump", "-p", tmp / "out.h5", HDF5_PLUGIN_PATH=str(folder))
    assert "FILTER_ID 443" in said and re.search(r"SIZE \d+ \(([2-9]|\d\d)\.\d+:1 COMPRESSION\)", said), said[:2000]


def plain(tmp):
    import h5py
    import numpy as np

    with h5py.File(tmp / "plain.h5", "w") as f:
        f["v"] = np.linspace(0, 1, 10000, dtype="f4")
    return tmp / "plain.h5"


def names_the_plugin(program, folder):
    """The installed command line finds the installed plugin: what it prints sets the variable."""
    said = run("sh", "-c", f'eval "$({program} env)"; printf %s "$HDF5_PLUGIN_PATH"', HDF5_PLUGIN_PATH=None)
    assert said.split(":")[0] == str(folder)


# --- Debian ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def debs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("debian")
    # A machine that builds packages has no network: cargo packs the crates out of its cache, and compiles these.
    run("make", "-s", "vendored")
    run(*OFFLINE, ROOT / "packaging/debian/build.sh", folder, "-b", "-d", DEBFULLNAME="nobody",
        DEBEMAIL="nobody@localhost", CARGO_TARGET_DIR=None)
    return sorted(folder.glob("*.deb"))


def test_debian_packages_are_without_faults(debs):
    names = "h5z-gpu-tools", "hdf5-filter-plugin-h5z-gpu", "libh5zgpu-dev"
    assert [d.name.split("_")[0] for d in debs] == list(names)
    said = run("lintian", "--allow-root", "--tag-display-limit", "0", "--fail-on", "none", *debs)
    # The maintainer is whoever builds; here nobody does.
    faults = [t for t in said.splitlines() if t[:2] in ("E:", "W:") and "mail-host" not in t]
    assert not faults, "\n".join(faults)


def test_debian_packages_are_installed_used_and_removed(debs, tmp_path):
    root = tmp_path / "root"
    (root / "var/lib/dpkg/info").mkdir(parents=True)
    (root / "var/lib/dpkg/updates").mkdir()
    (root / "var/lib/dpkg/status").touch()
    dpkg = ("dpkg", f"--root={root}", "--force-depends", "--force-not-root", "--force-script-chrootless",
            f"--log={tmp_path}/log")
    run(*dpkg, "-i", *debs)
    multiarch = run("cc", "-print-multiarch").strip()
    lib = root / "usr/lib" / multiarch
    plugin_works(lib / "h5z-gpu/plugin", tmp_path)
    for kind in ("serial", "openmpi"):
        plugin_works(lib / f"hdf5/{kind}/plugins", tmp_path)
        # That is where Debian's library of this kind looks by itself.
        library = run("sh", "-c", f"ls /usr/lib/{multiarch}/libhdf5_{kind}.so.*.*.* 2>/dev/null || true").split()
        for path in library:
            assert f"/usr/lib/{multiarch}/hdf5/{kind}/plugins".encode() in Path(path).read_bytes()
    names_the_plugin(root / "usr/bin/h5z-gpu", lib / "h5z-gpu/plugin")
    flags = run("pkg-config", "--cflags", "--libs", "h5z-gpu", PKG_CONFIG_PATH=str(lib / "pkgconfig"))
    assert f"/usr/lib/{multiarch}/pkgconfig/" in flags
    run(*dpkg, "-P", *(d.name.split("_")[0] for d in debs))
    left = [p for p in (root / "usr").rglob("*") if not p.is_dir()] if (root / "usr").exists() else []
    assert not left


# --- conda -----------------------------------------------------------------------------------------------------------


def test_conda_package_is_built_and_holds_what_it_should(sources, toolchain, tmp_path):
    """By rattler-build with this machine's compilers: no channel is reached, and no network. Its own tests of the
    package run as well."""
    channel = tmp_path / "channel/noarch/repodata.json"
    channel.parent.mkdir(parents=True)
    channel.write_text(json.dumps({"packages": {}, "packages.conda": {}}))
    build = "from rattler_build.cli_api import build_recipes; import sys; build_recipes([sys.argv[1]], " \
        "variant_overrides={'host_tools': ['true']}, channel=[sys.argv[2]], output_dir=sys.argv[3], test='native')"
    out = tmp_path / "out"
    run(*OFFLINE, sys.executable, "-c", build, sources / "packaging/conda/recipe.yaml",
        f"file://{channel.parent.parent}", out, PATH=toolchain, CARGO_TARGET_DIR=None)
    (package,) = out.glob("linux-64/*.conda")
    read = "from rattler.package_streaming import extract; import sys; extract(sys.argv[1], sys.argv[2])"
    tool("python", "-c", read, package, tmp_path / "prefix")
    prefix = tmp_path / "prefix"
    about = json.loads((prefix / "info/index.json").read_text())
    assert (about["name"], about["version"], about["license"]) == ("h5z-gpu", VERSION, "MIT OR Apache-2.0")
    assert {p.name for p in (prefix / "info/licenses").rglob("*") if p.is_file()} >= {"LICENSE-MIT", "LICENSE-APACHE",
                                                                                      "THIRD-PARTY.txt"}
    plugin_works(prefix / "lib/h5z-gpu/plugin", tmp_path)
    plugin_works(prefix / "lib/hdf5/plugin", tmp_path)
    names_the_plugin(prefix / "bin/h5z-gpu", prefix / "lib/h5z-gpu/plugin")


# --- the sources with their crates ------------------------------------------------------------------------------------


def test_the_vendored_sources_are_built_and_installed_without_a_network(sources, toolchain, tmp_path):
    """With nothing in cargo's folder either, and twice the same archive."""
    before = (ROOT / f"target/h5z-gpu-{VERSION}.tar.gz").read_bytes()
    run("make", "-s", "vendored")
    assert (ROOT / f"target/h5z-gpu-{VERSION}.tar.gz").read_bytes() == before
    alone = {"PATH": toolchain, "CARGO_HOME": str(tmp_path / "cargo"), "CARGO_TARGET_DIR": None, "H5Z_GPU_CUDA": "off"}
    run(*OFFLINE, "make", cwd=sources, **alone)
    run(*OFFLINE, "make", "install", f"PREFIX={tmp_path}/prefix", cwd=sources, **alone)
    plugin_works(tmp_path / "prefix/lib/hdf5/plugin", tmp_path)
    names_the_plugin(tmp_path / "prefix/bin/h5z-gpu", tmp_path / "prefix/lib/h5z-gpu/plugin")


# --- RPM --------------------------------------------------------------------------------------------------------------


def test_an_rpm_is_built_installed_used_and_removed(sources, toolchain, tmp_path):
    """By Debian's rpmbuild, which knows nothing of Debian's cargo: --nodeps."""
    run(*OFFLINE, "rpmbuild", "-tb", "--nodeps", "--define", f"_topdir {tmp_path}/top",
        ROOT / f"target/h5z-gpu-{VERSION}.tar.gz", PATH=toolchain, CARGO_TARGET_DIR=None)
    (package,) = (tmp_path / "top/RPMS").glob("*/*.rpm")
    said = run("rpm", "-qpi", package)
    assert re.search(rf"^Version +: {VERSION}$", said, re.M) and "MIT OR Apache-2.0" in said, said
    root = tmp_path / "root"
    root.mkdir()
    run("rpm", "--root", root, "-i", "--nodeps", package)
    (plugin,) = root.glob("usr/lib*/**/h5z-gpu/plugin/libh5zgpu.so")
    plugin_works(plugin.parent, tmp_path)
    plugin_works(plugin.parent.parent.parent / "hdf5/plugin", tmp_path)
    names_the_plugin(root / "usr/bin/h5z-gpu", plugin.parent)
    run("rpm", "--root", root, "-e", "h5z-gpu")
    assert not [p for p in (root / "usr").rglob("*") if not p.is_dir()]


# --- environment modules ---------------------------------------------------------------------------------------------


def test_module_is_loaded_and_unloaded(tmp_path):
    run("make", "-s", "install", f"PREFIX={tmp_path}/h5z-gpu")
    prefix = tmp_path / "h5z-gpu"
    environment = {"MODULEPATH": f"{prefix}/share/modulefiles", "HDF5_PLUGIN_PATH": "/others", "LOADEDMODULES": None,
                   "_LMFILES_": None}
    show = 'printf "%s\\n" "$HDF5_PLUGIN_PATH"'
    script = f'eval "$(modulecmd sh load h5z-gpu)"; {show}; command -v h5z-gpu; pkg-config --modversion h5z-gpu; ' \
        f'eval "$(modulecmd sh unload h5z-gpu)"; {show}; command -v h5z-gpu || echo gone'
    loaded, program, version, unloaded, gone = run("sh", "-c", script, **environment).split("\n")[:5]
    assert (loaded == f"{prefix}/lib/h5z-gpu/plugin:/others" and program == f"{prefix}/bin/h5z-gpu"
            and version == VERSION)
    assert unloaded == "/others" and (gone == "gone" or shutil.which("h5z-gpu") == gone)
    plugin_works(prefix / "lib/h5z-gpu/plugin", tmp_path)
