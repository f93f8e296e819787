# SPDX-License-Identifier: MIT OR Apache-2.0
"""H5MD, trajectories of molecules: MDAnalysis reads what we write, frame by frame, and its own writer takes the
filter."""
import h5md
import h5py
import judge
import numpy as np
import pytest
from conftest import python, use
from programs import filters

FRAMES, ATOMS = 7, 3000
BOUNDS = {"position": 5e-4, "velocity": 5e-3, "force": 9}
START = """
import os, sys, warnings, h5md, numpy as np
os.chdir(sys.argv[1])
warnings.simplefilter("ignore")  # of what MDAnalysis deprecates
arrays = dict(np.load("in.npz"))
"""
# Frames are asked for backwards, then in order. Nothing but HDF5_PLUGIN_PATH tells of the filter.
READ = START + """
from MDAnalysis.coordinates.H5MD import H5MDReader
with H5MDReader("out.h5md", convert_units=False) as r:
    backwards = {k: r[k].positions.copy() for k in range(len(r))[::-1]}
    frames = [(ts.positions.copy(), ts.velocities.copy(), ts.forces.copy(), ts.dimensions[0], ts.time) for ts in r]
assert all((backwards[k] == frame[0]).all() for k, frame in enumerate(frames))
np.savez("out.npz", **dict(zip((*h5md.UNITS, "edges", "time"), map(np.stack, zip(*frames)))))
"""
# Once with the filter and once without: MDAnalysis counts in Å, and its rounding on the way there and back is no error
# of the filter's.
WRITE = START + """
import MDAnalysis, {imports}
u = MDAnalysis.Universe("plain.h5md")
for name, how in (("out", dict({how})), ("same", dict())):
    u.atoms.write(name + ".h5md", frames="all", **how)
"""


def made(folder, atoms):
    """in.npz and plain.h5md, which has the same: positions that leave the box, velocities, forces."""
    rng = np.random.default_rng(1)
    start = np.repeat(rng.uniform(0, 3, (atoms // 3, 3)), 3, 0) + rng.normal(0, 0.06, (atoms, 3))
    moved = start + np.cumsum(rng.normal(0, 0.03, (FRAMES, atoms, 3)), 0)
    arrays = {"position": moved, "velocity": rng.normal(0, 0.5, moved.shape), "force": rng.normal(0, 900, moved.shape),
              "edges": np.linspace(2.98, 3.01, FRAMES)}
    arrays = {name: x.astype("f4") for name, x in arrays.items()}
    np.savez(folder / "in.npz", **arrays)
    h5md.create(folder / "plain.h5md", arrays, 1)
    return folder


@pytest.fixture(scope="module")
def there(tmp_path_factory):
    return made(tmp_path_factory.mktemp("h5md"), ATOMS)


def judged(there, like, bounds, chunk):
    """What MDAnalysis reads is within the bounds of what `like` has, and uses them; boxes and times are the same."""
    python(READ, there)
    after = np.load(there / "out.npz")
    with h5py.File(there / "out.h5md") as f, h5py.File(there / like) as g:
        for name, bound in bounds.items():
            path = f"particles/trajectory/{name}/value"
            assert 0.5 < judge.check(g[path][...], after[name], "abs", bound) <= 1, name
            judge.check(f[path][...], after[name], "lossless")
            assert f[path].chunks == (chunk, ATOMS, 3) and filters(there / "out.h5md", path)[0][0] == 443
        edges = g["particles/trajectory/box/edges/value"][:, 0, 0]
        assert np.allclose(edges, after["edges"], rtol=1e-6) and (after["time"] == np.arange(FRAMES)).all()


@pytest.mark.parametrize("chunk", [1, 4])
def test_mdanalysis_reads_what_we_write(chunk, there):
    """A frame a chunk, and several frames, of which the last chunk has fewer; an array each with its own bound."""
    use(START + f"""
import h5z_gpu
how = {{name: h5z_gpu.Lossy(absolute=bound) for name, bound in {BOUNDS}.items()}}
h5md.create("out.h5md", arrays, {chunk}, how, h5z_gpu.write)
""", there)
    judged(there, "plain.h5md", BOUNDS, chunk)


@pytest.mark.parametrize("chunk, imports, how", [
    (1, "h5z_gpu", "compression=h5z_gpu.Lossy(absolute=5e-4)"),
    (4, "h5z_gpu", "compression=h5z_gpu.Lossy(absolute=5e-4), chunks=(4, len(u.atoms), 3)"),
    (1, "h5py", "compression=443, compression_opts=(15004,)"),
])
def test_the_writer_of_mdanalysis_takes_the_filter(chunk, imports, how, there):
    """One bound for positions, velocities and forces, as its documentation says; without our package by a number."""
    (use if imports == "h5z_gpu" else python)(WRITE.format(imports=imports, how=how), there)
    judged(there, "same.h5md", dict.fromkeys(BOUNDS, 5e-4), chunk)


@pytest.mark.parametrize("held", [True, False])
def test_a_dataset_that_is_held_open_keeps_the_decoded_chunk(held, there):
    """MDAnalysis opens the dataset for each frame. The chunk is spoiled in the file after its first frame was read: who
    reads the next one from what is decoded does not notice."""
    use(START + """
import h5z_gpu
h5md.create("out.h5md", arrays, 4, {"position": h5z_gpu.Lossy(absolute=5e-4)})
""", there)
    read = START + f"""
import h5py
from MDAnalysis.coordinates.H5MD import H5MDReader
name = "particles/trajectory/position/value"
held = h5py.File("out.h5md")[name] if {held} else None
with H5MDReader("out.h5md", convert_units=False) as r:
    r[0]
    with h5py.File("out.h5md") as f:
        at = f[name].id.get_chunk_info(0).byte_offset + 500
    with open("out.h5md", "r+b") as f:
        f.seek(at)
        byte = f.read(1)[0]
        f.seek(at)
        f.write(bytes([byte ^ 1]))
    assert abs(r[1].positions - arrays["position"][1]).max() < 5.1e-4
"""
    said = python(read, there, ok=held)
    assert held or "h5z-gpu" in said, said


def test_a_frame_larger_than_the_cache_is_coded_twice_by_mdanalysis(tmp_path):
    """In Å first, then converted; the documentation says by how much it is off, and that h5z_gpu.write is not."""
    arrays = {"position": np.random.default_rng(1).uniform(0, 20, (1, 750_000, 3)).astype("f4"), "edges": np.ones(1)}
    np.savez(tmp_path / "in.npz", **arrays)
    h5md.create(tmp_path / "plain.h5md", arrays, 1)
    use(WRITE.format(imports="h5z_gpu", how="compression=h5z_gpu.Lossy(absolute=5e-4)"), tmp_path)
    with h5py.File(tmp_path / "out.h5md") as f, h5py.File(tmp_path / "same.h5md") as g:
        path = "particles/trajectory/position/value"
        assert 5e-4 < np.abs(f[path][...].astype("f8") - g[path][...]).max() <= 5.51e-4
