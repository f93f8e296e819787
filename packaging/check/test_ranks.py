# SPDX-License-Identifier: MIT OR Apache-2.0
"""Collective writes by HDF5 1.14 and Open MPI 5, in a root of Debian 13: h5py as docs/parallel.md shows it, netCDF-C as
tests/hosts/collective.c does. What they wrote is read by this machine's h5py."""
import os
import re
import shutil

from conftest import ROOT, debian, run

ENTER = ('r=$1; shift; mount --bind $r $r; for each in dev proc sys; do mount --rbind /$each $r/$each; done; cd $r; '
         'pivot_root . .; umount -l .; cd /work; exec "$@"')
PACKAGES = ("gcc", "libc6-dev", "pkgconf", "openmpi-bin", "libnetcdf-mpi-dev", "python3-h5py", "python3-h5py-mpi",
            "python3-mpi4py")


def inside(root, *command):
    """A program with this folder as its root, in mounts of its own."""
    variables = dict.fromkeys(("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"), "1")
    return run("unshare", "--mount", "sh", "-euc", ENTER, "sh", root, *command, **variables, PYTHONPATH="/work",
               HDF5_PLUGIN_PATH="/work/plugin", H5Z_GPU_PLUGIN_PATH="/work/plugin", OMPI_MCA_btl="self,sm")


def test_ranks_write_one_dataset(tmp_path):
    import h5py
    import numpy as np

    root = debian(tmp_path / "root", *PACKAGES)
    work = root / "work"
    shutil.copytree(ROOT / "target/plugin", work / "plugin")
    shutil.copytree(ROOT / "plugin/python/h5z_gpu", work / "h5z_gpu")
    shutil.copy(ROOT / "tests/hosts/collective.c", work)
    (code,) = re.findall(r"^```python\n(# write.py\n.*?)^```$", (ROOT / "docs/parallel.md").read_text(), re.M | re.S)
    (work / "write.py").write_text(code + "    print(h5py.version.hdf5_version)\n")
    tas = np.random.default_rng(1).normal(280, 5, (48, 96, 192)).astype("f4")
    with h5py.File(work / "in.h5", "w") as f:
        f["tas"] = tas
    assert inside(root, "mpirun", "--oversubscribe", "-n", "4", "python3", "write.py").count("1.14.5") == 4
    lib = f"/usr/lib/{run('cc', '-print-multiarch').strip()}/netcdf/mpi/include"
    inside(root, "sh", "-euc", f"mpicc -o collective collective.c -I{lib} $(pkg-config --cflags --libs netcdf-mpi)")
    t, y, x = np.indices((16, 24, 32))
    values = (250 + t + ((y * 37 + x * 11 + t * 5) % 101) / 1024).astype("f4")
    for times in ("2", "8"):
        inside(root, "mpirun", "--oversubscribe", "-n", "4", "./collective", f"{times}.nc", times)
    os.environ.setdefault("HDF5_PLUGIN_PATH", str(ROOT / "target/plugin"))
    for name, bound, wrote in ("out.h5", 1e-3, tas), ("2.nc", 1e-2, values), ("8.nc", 1e-2, values):
        with h5py.File(work / name) as f:
            assert 0 < np.abs(f["tas"][...].astype("f8") - wrote).max() <= bound, name
            chunks = [f["tas"].id.read_direct_chunk(f["tas"].id.get_chunk_info(k).chunk_offset)
                      for k in range(f["tas"].id.get_num_chunks())]
            assert {(mask, frame[:5]) for mask, frame in chunks} == {(0, b"\x89H5ZG")}, name
