#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Makes trajectories of molecules out of the package MDAnalysisTests: frames × atoms × 3, as their programs wrote them.

    trajectories.py DIR

Each is DIR/NAME.h5 with one plain dataset `data` and attributes: `source` says where it comes from, `title` names it in
the table of docs/measurements.md, `unit` is its unit, `bounds` are those it is measured at. None was rounded before, as
an XTC or a file of decimals is.
"""
import argparse
from pathlib import Path

import h5py
import numpy as np
from MDAnalysis import Universe
from MDAnalysis.lib.formats.libdcd import DCDFile
from MDAnalysis.lib.formats.libmdaxdr import TRRFile

from make import variable
from packages import package

PARTS = 1e-2, 1e-3, 1e-4  # of the standard deviation, bounds of what is no position


def trr(path, what):
    with TRRFile(str(path)) as f:
        return np.stack([getattr(frame, what) for frame in f])


def dcd(path):
    with DCDFile(str(path)) as f:
        return f.readframes().xyz


def three_sites(positions, topology):
    """Without the massless fourth site of each water."""
    return positions[:, Universe(str(topology)).atoms.names != "MW"]


def trajectories(home):
    """Yields name, title, file, unit, array."""
    file = lambda name: next(home.rglob(name))
    adk, cobrotoxin = file("adk_oplsaa.trr"), file("cobrotoxin.trr")
    yield "adk_water", "AdK in water of 4 sites", adk.name, "nm", trr(adk, "x")
    yield ("adk_three_sites", "AdK in water, 4th sites left out", adk.name, "nm",
           three_sites(trr(adk, "x"), file("adk_oplsaa.gro")))
    yield "cobrotoxin", "cobrotoxin in water of 4 sites", cobrotoxin.name, "nm", trr(cobrotoxin, "x")
    for name, title, what in (("ifabp", "IFABP in water of 3 sites", "ifabp_apo_100mM.dcd"),
                              ("adk_dry", "AdK without water", "adk_dims.dcd"),
                              ("adk_implicit", "AdK, implicit solvent", "adk_gbis_tmd-fast1_NAMD.dcd")):
        yield name, title, what, "Å", dcd(file(what))
    octahedron = file("tz2.truncoct.nc")
    yield "octahedron", "peptide in water, octahedron", octahedron.name, "Å", variable(octahedron, "coordinates")
    yield "velocities", "velocities of cobrotoxin's", cobrotoxin.name, "nm/ps", trr(cobrotoxin, "v")
    yield "forces", "forces of cobrotoxin's", cobrotoxin.name, "kJ/mol/nm", trr(cobrotoxin, "f")


def bounds(x, unit):
    """Ten times that of XTC's usual precision (1000 a nm), itself, a tenth; else parts of the standard deviation."""
    tenfold = {"nm": 5e-3, "Å": 5e-2}.get(unit)
    return [tenfold * 10.0**-k for k in range(3)] if tenfold else [float(f"{p * x.std():.3g}") for p in PARTS]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("dir", type=Path)
    a = p.parse_args()
    a.dir.mkdir(parents=True, exist_ok=True)
    for name, title, file, unit, x in trajectories(package(a.dir.absolute().parent / "packages", "MDAnalysisTests")):
        with h5py.File(a.dir / f"{name}.h5", "w") as f:
            d = f.create_dataset("data", data=np.ascontiguousarray(x, "<f4"))
            d.attrs.update({"source": f"MDAnalysisTests {file}", "title": title, "unit": unit,
                            "bounds": bounds(d[...], unit)})
        print(f"{name:<20} {' x '.join(map(str, x.shape)):<18} {unit}")


if __name__ == "__main__":
    main()
