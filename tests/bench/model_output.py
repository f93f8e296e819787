#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Model output gathered to one rank, by the program of docs/models.md: MB/s at the root, beside deflate.

    model_output.py [--built target] [--ranks 8] [--nodes 2000000] [--levels 8] [--rounds 3] [--dir /dev/shm]

Each measurement is a run of the whole program; the arms of a round follow one another, and the fastest round counts.
A chunk is an eighth of a level, or what netCDF chooses. Needs mpif90, mpirun and netCDF-Fortran.
"""
import argparse
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/hosts"))
# What the name list asks for, and what the program is started by.
RUN = "run", "--"
ARMS = {"not compressed": ("", ()), "deflate 1": ("deflate=1", ()),
        "deflate 1, `run --deflate 511002`": ("deflate=1", ("run", "--deflate", "511002", "--")),
        "`planes`": ("filter=511002", ()), "`planes`, `run`": ("filter=511002", RUN),
        "the codec left open": ("filter=11002", ()), "the codec left open, `run`": ("filter=11002", RUN),
        "lossless": ("filter=90000", ()), "lossless, `run`": ("filter=90000", RUN)}


def built(folder):
    """The page's program, compiled."""
    from page import blocks
    code = next(b.code for b in blocks(ROOT / "docs/models.md") if b.language == "fortran")
    (folder / "model.f90").write_text(code)
    flags = subprocess.run(["nf-config", "--fflags", "--flibs"], stdout=subprocess.PIPE, text=True, check=True).stdout
    subprocess.run(["mpif90", "-O2", "-o", "model", "model.f90", *shlex.split(flags)], cwd=folder, check=True)


def measured(a, folder, asked, start, chunk):
    """MB/s at the root, and the file's bytes."""
    out = folder / "out.nc"
    (folder / "model.nml").write_text(f"&output file='{out}', nodes={a.nodes}, levels={a.levels}, steps=1, "
                                      f"chunk={chunk}, {asked} /\n")
    under = [f"{a.built}/bin/h5z-gpu", *start] if start else []
    env = os.environ | {"HDF5_PLUGIN_PATH": f"{a.built}/plugin"} | dict.fromkeys(
        ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "OMPI_MCA_rmaps_base_oversubscribe",
         "OMPI_MCA_mpi_yield_when_idle"), "1")
    command = ["mpirun", "-n", str(a.ranks), *under, "./model", "model.nml"]
    said = subprocess.run(command, cwd=folder, env=env, stdout=subprocess.PIPE, text=True, check=True).stdout
    assert said.endswith(" MB/s at the root\n"), said
    bytes_ = out.stat().st_size
    out.unlink()
    return float(said.split()[0]), bytes_


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--built", type=Path, default=ROOT / "target")
    for name, value in (("ranks", 8), ("nodes", 2_000_000), ("levels", 8), ("rounds", 3)):
        p.add_argument(f"--{name}", type=int, default=value)
    p.add_argument("--dir", default="/dev/shm")
    a = p.parse_args()
    chunks = {"an eighth of a level": a.nodes // 8, "netCDF's": 0}
    best = {}
    with tempfile.TemporaryDirectory(dir=a.dir) as folder:
        built(Path(folder))
        for _ in range(a.rounds):
            for at, chunk in chunks.items():
                for arm, (asked, start) in ARMS.items():
                    got = measured(a, Path(folder), asked, start, chunk)
                    best[at, arm] = max(got, best.get((at, arm), got))
    raw = 4 * a.nodes * a.levels
    print(f"{a.ranks} ranks, {raw / 1e6:.0f} MB of f32, {len(os.sched_getaffinity(0))} cores\n")
    print("| chunks | stored | MB/s at the root | beside deflate 1 | ratio |\n|---|---|---|---|---|")
    for (at, arm), (speed, bytes_) in best.items():
        print(f"| {at} | {arm} | {speed:.0f} | {speed / best[at, 'deflate 1'][0]:.1f} | {raw / bytes_:.1f} |")


if __name__ == "__main__":
    main()
