# SPDX-License-Identifier: MIT OR Apache-2.0
"""Where HDF5 looks for the plugin, and what `h5z-gpu env` and `h5z-gpu doctor` make of it."""
import os
import re
import shlex
import shutil
import subprocess

import h5py
import pytest
from conftest import BUILT, PLUGIN, ROOT, clean, hdf5_dir, run, sample
from programs import plain_hdf5
from wheel import loaded

CLI = BUILT / "bin/h5z-gpu"


def doctor(*arguments, **variables):
    """Exit status and text. A variable that is None is not set."""
    env = {k: v for k, v in clean(**variables).items() if v is not None}
    r = subprocess.run([CLI, "doctor", *map(str, arguments)], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                       text=True)
    return r.returncode, r.stdout


def repacked(tmp, **variables):
    """Whether h5repack, which ends with 0 either way, stores a chunk through the filter with these variables."""
    env = {k: v for k, v in clean(**variables).items() if v is not None}
    plain_hdf5({"v": sample()}, tmp / "in.h5", {"v": (5, 16, 47)})
    (tmp / "out.h5").unlink(missing_ok=True)
    run("h5repack", "-f", "v:UD=443,1,1,11003", tmp / "in.h5", tmp / "out.h5", env=env)
    with h5py.File(tmp / "out.h5") as f:
        mask, data = f["v"].id.read_direct_chunk((0, 0, 0))
        return mask == 0 and data[:4] == b"\x89H5Z"


def test_doctor_finds_what_h5repack_finds(tmp_path):
    """A folder that does not exist, before ours: HDF5 1.10 gives up there, and h5repack writes without the filter."""
    assert repacked(tmp_path)
    status, text = doctor()
    assert status == 0 and f"loads {PLUGIN}" in text, text
    broken = {"HDF5_PLUGIN_PATH": f"/missing:{PLUGIN.parent}"}
    assert not repacked(tmp_path, **broken)
    status, text = doctor(**broken)
    assert status == 1 and "names '/missing': no such folder" in text and "take that folder out of it" in text, text
    assert re.search(r"no filter in .*libhdf5_serial\.so\.103\.3\.1", text), text
    line = run(CLI, "env", env=clean(**broken))
    assert "left out /missing" in line
    value = run("sh", "-c", line.splitlines()[-1] + '; printf %s "$HDF5_PLUGIN_PATH"')
    assert repacked(tmp_path, HDF5_PLUGIN_PATH=value)


def test_doctor_knows_the_default_folder_of_each_hdf5(tmp_path):
    """Debian's own, as its library says, and that of a library built to look elsewhere."""
    status, text = doctor(HDF5_PLUGIN_PATH=None)
    assert status == 1 and f"{hdf5_dir()}/plugins" in text and f'eval "$({CLI} env)"' in text, text
    elsewhere = tmp_path / "it's elsewhere"
    elsewhere.mkdir()
    (tmp_path / "hdf5.c").write_text(f"""
        #include <string.h>
        int H5get_libversion(unsigned *a, unsigned *b, unsigned *c) {{ *a = 1, *b = 14, *c = 99; return 0; }}
        int H5PLsize(unsigned *n) {{ *n = 1; return 0; }}
        long H5PLget(unsigned i, char *out, unsigned long n)
        {{ const char *f = "{elsewhere}"; strncpy(out, f, n); return (long)strlen(f) + 0 * i; }}
        int H5Zfilter_avail(int id) {{ return id == 443; }}
        """)
    run("cc", "-shared", "-fPIC", "-o", tmp_path / "libhdf5.so", tmp_path / "hdf5.c")
    here = {"HDF5_PLUGIN_PATH": None, "LD_LIBRARY_PATH": str(tmp_path)}
    shutil.copy(PLUGIN, elsewhere)
    status, text = doctor(**here)
    assert f"{elsewhere}/{PLUGIN.name}: version" in text and "HDF5 1.14.99" in text and "problem 2" not in text, text
    assert "reading it back fails: the library does not export H5T_NATIVE_FLOAT_g" in text, "which this stand-in lacks"
    env = {k: v for k, v in clean(**here).items() if v is not None}
    assert shlex.split(run(CLI, "env", env=env))[1] == f"HDF5_PLUGIN_PATH={PLUGIN.parent}:{elsewhere}"
    # In an environment of Python, netCDF4's own plugins too: it names them where the variable is not set.
    (folder,) = (ROOT / ".env/lib").glob("python3*/site-packages/netCDF4/plugins")
    line = run(CLI, "env", env=env | {"VIRTUAL_ENV": str(ROOT / ".env")})
    assert shlex.split(line)[1] == f"HDF5_PLUGIN_PATH={PLUGIN.parent}:{elsewhere}:{folder}"
    # A variable that hides this folder is worth a line.
    status, text = doctor(LD_LIBRARY_PATH=str(tmp_path))
    assert (f"{elsewhere}: a default folder of an HDF5 here, left out while HDF5_PLUGIN_PATH is set, has 1 "
            f"plugins" in text), text


def test_doctor_asks_the_libraries_of_wheels():
    h5py.h5.get_libversion()
    import netCDF4  # noqa: F401

    for part in ("h5py.libs/libhdf5-", "netcdf4.libs/libhdf5-"):
        path = loaded(part)._name
        status, text = doctor("--hdf5", path)
        assert status == 0 and f"({os.path.realpath(path)}): loads {PLUGIN}" in text, text


@pytest.mark.parametrize("part", [0.02, 0.5, 0.9, 0.999])
def test_a_plugin_that_was_cut_short(part, tmp_path):
    """Such a file ends a program that opens it, by SIGBUS; doctor says so and lives."""
    whole = PLUGIN.read_bytes()
    (tmp_path / PLUGIN.name).write_bytes(whole[: int(len(whole) * part)])
    status, text = doctor(HDF5_PLUGIN_PATH=str(tmp_path))
    assert status == 1 and f"is cut short ({int(len(whole) * part)} of {len(whole)} bytes)" in text, text
    assert "copy the file there again" in text and "problem 2" not in text, text


def test_another_library_of_that_name(tmp_path):
    (tmp_path / "other.c").write_text("""
        static const struct { int version, id; } other = {1, 307};
        int H5PLget_plugin_type(void) { return 0; }
        const void *H5PLget_plugin_info(void) { return &other; }
        """)
    run("cc", "-shared", "-fPIC", "-o", tmp_path / PLUGIN.name, tmp_path / "other.c")
    status, text = doctor(HDF5_PLUGIN_PATH=str(tmp_path))
    assert status == 1 and "is a plugin for filter 307, not 443" in text, text
