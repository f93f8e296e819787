# SPDX-License-Identifier: MIT OR Apache-2.0
"""The documentation: the site builds without a warning, and every page's code does what the page says.

A page runs in a folder of its own, with what its reader has: the plugin's folder in HDF5_PLUGIN_PATH, the package,
`h5z-gpu`, and `in.nc`, `in.h5`, a file with a field `tas` (time, lat, lon) of 48 × 96 × 192 values, once with netCDF's
scales, and for the gallery the small fields of tests/fields.
"""
import json
import os
import re
import sys
from pathlib import Path

import h5py
import judge
import numpy as np
import pytest
from conftest import HERE, PLUGIN, ROOT, clean, run
from MDAnalysis.lib.formats.libmdaxdr import TRRFile
from programs import filters, listed, stored_bytes
from samples import page_files, temperatures
from test_parallel import frames

PAGES = sorted(p.relative_to(ROOT / "docs") for p in (ROOT / "docs").rglob("*.md"))
NOTEBOOKS = sorted((ROOT / "docs/gallery").glob("*.ipynb"))
RUN = [str(p) for p in PAGES if re.search(r"^```(python|sh)$", (ROOT / "docs" / p).read_text(), re.M)]
RUN += [f"gallery/{p.name}" for p in NOTEBOOKS]


@pytest.fixture(scope="module")
def field():
    return temperatures()


@pytest.fixture
def desk(field, tmp_path):
    """The folder that a page runs in."""
    page_files(tmp_path, *field)
    (tmp_path / "fields").symlink_to(ROOT / "target/fields/small")
    tools = tmp_path / ".bin"
    tools.mkdir()
    # mpirun starts the Python that has h5py for MPI, Debian's.
    said = {"h5z-gpu": f"{sys.executable} -m h5z_gpu", "mpirun": "env PATH=/usr/bin:/bin:$PATH /usr/bin/mpirun"}
    for name, command in ({"python": sys.executable, "python3": sys.executable} | said).items():
        (tools / name).write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        (tools / name).chmod(0o755)
    return tmp_path


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    """What `make install` installs, where pkg-config and CMake find it."""
    here = tmp_path_factory.mktemp("prefix")
    run("make", "-s", "--no-print-directory", "install", f"PREFIX={here}", env=dict(os.environ), cwd=ROOT)
    return {"PKG_CONFIG_PATH": f"{here}/lib/pkgconfig", "CMAKE_PREFIX_PATH": str(here)}


def environment(desk, **more):
    env = clean(PYTHONPATH=f"{ROOT}/plugin/python", H5Z_GPU_PLUGIN_PATH=str(PLUGIN.parent), MPLBACKEND="Agg", **more)
    # For mpirun as root, with fewer cores than ranks.
    env |= dict.fromkeys(("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM",
                          "OMPI_MCA_rmaps_base_oversubscribe"), "1")
    return env | {"PATH": f"{desk}/.bin:{env['PATH']}"}


@pytest.mark.third
@pytest.mark.parametrize("page", RUN)
def test_what_a_page_shows_works(page, desk, field, prefix):
    run(sys.executable, HERE / "page.py", ROOT / "docs" / page, env=environment(desk, **prefix), cwd=desk)
    CHECKS.get(page, lambda *_: None)(desk, field[0])


def judged(path, name, values, mode="abs", bound=1e-3, typed=None):
    """The bound holds and is used, and the words of the file say the same."""
    with h5py.File(path) as f:
        assert 0 < judge.check(values, f[name][...], mode, bound) <= 1
    assert typed is None or listed(filters(path, name)[0][2])[0] == typed


def example():
    """The field of the pages that make their own."""
    t, y, x = np.meshgrid(*[np.linspace(0, 6, n) for n in (64, 128, 256)], indexing="ij")
    return (280 + 10 * np.sin(x) * np.cos(y) + t + np.random.default_rng(1).normal(0, 0.005, x.shape)).astype("f4")


def first(desk, tas):
    judged(desk / "out.h5", "v", example(), "abs", 1e-2, 11002)


def start(desk, tas):
    first(desk, tas)
    judged(desk / "small.h5", "tas", tas, "abs", 1e-2, 11002)


def arrays(desk, tas):
    first(desk, tas)
    judged(desk / "all.h5", "v", example(), "abs", 1e-2, 11002)
    with h5py.File(desk / "all.h5") as f:
        assert np.array_equal(f["run1/mask"][...], example() > 285)


def bound(desk, tas):
    with h5py.File(desk / "rain.h5") as f:
        rain = np.random.default_rng(1).gamma(0.5, 2, (64, 256, 256)).astype("f4")
        rain[:, :100] = -999
        assert 0.5 < judge.check(rain, f["pr"][...], "abs", 1e-3, fill=-999) <= 1
    judged(desk / "small.nc", "tas", tas, "abs", 1e-2, 11002)
    for page in ("advice", "report"):
        assert "<img alt=" in (desk / f"{page}.html").read_text()


def commands(desk, tas):
    judged(desk / "small.nc", "tas", tas, "abs", 1e-2, 11002)
    verify = sys.executable, "-m", "h5z_gpu", "verify", "--structure"
    run(*verify, "small.nc", "saved.nc", env=environment(desk), cwd=desk)
    with h5py.File(desk / "small.nc") as f, h5py.File(desk / "saved.nc") as g:
        assert f["tas"].id.read_direct_chunk((0, 0, 0)) == g["tas"].id.read_direct_chunk((0, 0, 0)), "nothing was lost"


def xarray(desk, tas):
    for name in ("small.nc", "same.nc", "tree.nc", "out.nc", "repacked.nc"):
        judged(desk / name, "tas", tas, "abs", 1e-2, 11002)
    for name in ("small.nc", "same.nc", "tree.nc", "repacked.nc"):
        assert not filters(desk / name, "lat"), f"{name}: coordinates are left alone"
    judged(desk / "cut.nc", "tas", tas[:12], "abs", 2e-2, 11002)
    judged(desk / "unpacked.nc", "tas", tas.astype("f8"), "abs", 1.0001e-2, 15003)
    assert stored_bytes(desk / "unpacked.nc", "tas") < stored_bytes(desk / "packed.nc", "tas")


def archive(desk, tas):
    for name in ("small/2001.nc", "small/2003.nc", "new.nc", "new.h5"):
        judged(desk / name, "tas", tas, "abs", 1e-2, 11002)
    judged(desk / "unpacked/2001.nc", "tas", tas.astype("f8"), "abs", 1.5001e-2, 11002)
    assert stored_bytes(desk / "unpacked/2001.nc", "tas") < stored_bytes(desk / "packed/2001.nc", "tas")


CHECKS = {"index.md": first, "start.md": start, "archive.md": archive, "arrays.md": arrays, "bound.md": bound,
          "commands.md": commands, "xarray.md": xarray}


def stored_by_the_filter(path, name="tas"):
    """No chunk was left out by HDF5, and each is a frame."""
    found = frames(path, name)
    assert found and set(found) == {(0, True)}, found


def appending(desk, tas):
    env = environment(desk)
    for name, bound, how in (("year.h5", 1e-3, 511003), ("merged.h5", 1e-3, 511003), ("grow.nc", 1e-2, 511002)):
        judged(desk / name, "tas", tas, "abs", bound, how)
        stored_by_the_filter(desk / name)
    with h5py.File(desk / "before.h5") as a, h5py.File(desk / "year.h5") as b, h5py.File(desk / "merged.h5") as c:
        judge.check(a["tas"][...], b["tas"][:5], "lossless")
        judge.check(b["tas"][...], c["tas"][...], "lossless")
    with h5py.File(desk / "grow.nc") as f:
        assert (f["time"][...] == np.arange(48)).all() and f["tas"].chunks == (1, 96, 192)
    with h5py.File(desk / "plain.h5") as f:
        assert (f["tas"][40:] == 280).all(), "what is stored plain is readable"
    stored_by_the_filter(desk / "cured.h5")
    assert re.search("^number +511003$", run("h5z-gpu", "words", "abs", "1e-3", "--codec", "planes", env=env), re.M)

    # The table: who loads the filter.
    page = (ROOT / "docs/appending.md").read_text()
    run("ncrcat", "-O", "grow.nc", "new.nc", "nco.nc", env=env, cwd=desk)
    run("cdo", "-s", "cat", "grow.nc", "new.nc", "cdo.nc", env=env, cwd=desk)
    stored_by_the_filter(desk / "nco.nc")
    assert filters(desk / "cdo.nc", "tas") == []
    assert [filters(desk / name, "tas")[0][1] for name in ("year.h5", "grow.nc",
                                                           "nco.nc")] == [1, 1, 0], "optional, or not"
    write = "import sys, {0}; from numpy import ones; f = {1}; v = {2}; v[40:48] = ones((8, 96, 192), 'f4'); f.close()"
    h5py_writes = write.format("h5py", "h5py.File(sys.argv[1], 'a')", "f['tas']")
    netcdf_writes = write.format("netCDF4", "netCDF4.Dataset(sys.argv[1], 'a')", "f['tas']")
    tables_writes = write.format("tables", "tables.open_file(sys.argv[1], 'a')", "f.get_node('/tas')")
    error = run("python", "-c", h5py_writes, "nco.nc", env=env, cwd=desk, ok=False)
    assert (said := "required filter 443 is not registered") in error and said in page
    run("python", "-c", netcdf_writes, "grow.nc", env=env, cwd=desk)
    stored_by_the_filter(desk / "grow.nc")
    (desk / "none").mkdir()
    for command in (("python", "-c", netcdf_writes, "grow.nc"), ("cdo", "-s", "cat", "newer.nc", "grow.nc")):
        error = run(*command, env=env | {"HDF5_PLUGIN_PATH": str(desk / "none")}, cwd=desk, ok=False)
        assert (said := "NetCDF: Filter error: undefined filter encountered") in error and said in page
    for library, command in (
        ("1.10", ("/usr/bin/python3", "-c", h5py_writes)), ("1.14", ("python", "-c", tables_writes)),
        ("2.0", ("python", "-c", h5py_writes)),
    ):
        (desk / "again.h5").write_bytes((desk / "year.h5").read_bytes())
        run(*command, "again.h5", env=env, cwd=desk)
        assert frames(desk / "again.h5",
                      "tas")[-1] == (1, False), f"HDF5 {library} has loaded the filter: say so in appending.md"


def parallel(desk, tas):
    for name in ("out.h5", "one.h5", "workers.nc"):
        stored_by_the_filter(desk / name)
    for name in ("out.h5", "joined.h5", "folder/tas.h5"):
        with h5py.File(desk / name) as f:
            assert 0 < judge.check(tas, f["tas"][...], "abs", 1e-3) <= 1, name
    judged(desk / "one.h5", "tas", tas, "abs", 2e-3, 11003)
    judged(desk / "workers.nc", "tas", tas, "abs", 1e-2, 11002)
    assert sorted(p.name for p in (desk / "folder").iterdir()) == ["tas.0.h5", "tas.1.h5", "tas.2.h5", "tas.h5"]
    for name in ("part.0.h5", "part.1.h5", *(f"folder/tas.{i}.h5" for i in range(3))):
        stored_by_the_filter(desk / name)
    with h5py.File(desk / "joined.h5") as f:
        assert f["tas"].is_virtual
    (desk / "part.1.h5").rename(desk / "away.h5")
    with h5py.File(desk / "joined.h5") as f:
        assert (f["tas"][24:] == 0).all(), "a missing file is read as the fill value"

    page, env = (ROOT / "docs/parallel.md").read_text(), environment(desk)
    code = (desk / "write.py").read_text()
    assert "with tas.collective:" in code
    (desk / "wrong.py").write_text(code.replace("with tas.collective:", "if True:"))
    error = run("mpirun", "-n", 2, "python3", "wrong.py", env=env, cwd=desk, ok=False)
    assert (said := "Can't perform independent write with filters in pipeline") in error and said in page
    # A chunk of several ranks; and Debian's h5py where nothing but its own variable says that there is MPI.
    (desk / "shared.py").write_text(code.replace("chunks=(8,", "chunks=(48,"))
    run("mpirun", "-n", 2, "python3", "shared.py", env=env, cwd=desk)
    judged(desk / "out.h5", "tas", tas, "abs", 1e-3, 11003)
    asks = "import h5py; print(h5py.get_config().mpi)"
    assert run("/usr/bin/python3", "-c", asks, env=env | {"H5PY_ALWAYS_USE_MPI": "1"}) == "True\n"
    assert run("/usr/bin/python3", "-c", asks, env=env) == "False\n"
    for name in re.findall(r"`(\w*(?:LOCAL_RANK|LOCALRANKID|LOCALID))`", page):
        assert f'"{name}"' in (ROOT / "src/cuda/choose.rs").read_text(), name


def zarr(desk, tas):
    read = """
import h5z_gpu.zarr, numpy as np, xarray, zarr
stores = {"v3": "v3.zarr", "v2": "v2.zarr", "grow": "grow.zarr/tas"}
values = {name: zarr.open_array(path, mode="r")[...] for name, path in stores.items()}
np.savez("read.npz", references=xarray.open_dataset("out.json", engine="kerchunk").tas.values,
         virtual=xarray.open_dataset("virtual.json", engine="kerchunk").tas.values, **values)
"""
    run("python", "-c", read, env=environment(desk), cwd=desk)
    with np.load(desk / "read.npz") as values:
        assert len(values) == 5
        for name in values:
            assert 0 < judge.check(tas, values[name], "abs", 1e-3, -999 if name[0] == "v" else None) <= 1, name
        with h5py.File(desk / "out.nc") as f:
            judge.check(f["tas"][...], values["references"], "lossless")
            judge.check(f["tas"][...], values["virtual"], "lossless")
    for name, chunks in (("v3.zarr/c", 3), ("v2.zarr", 3), ("grow.zarr/tas/c", 3)):
        data = [p.read_bytes()[:8] for p in (desk / name).rglob("*") if p.is_file() and p.name[0].isdigit()]
        assert data == [b"\x89H5ZG\r\n\x1a"] * chunks, name


def models(desk, _):
    with h5py.File(desk / "plain.nc") as f, h5py.File(desk / "deflate.nc") as g:
        plain = f["temp"][...]
        judge.check(plain, g["temp"][...], "lossless")
        assert plain.shape == (2, 4, 1_200_000) and f["temp"].chunks == (1, 1, 300_000)
    node = np.arange(1, 1_200_001.0)
    x, y = np.mod(node * 2 / np.sqrt(2.4e6), 2), node / 1.2e6 - 0.5
    wet = 2 <= 4 * (1.2 + np.sin(9 * x) * np.cos(7 * y)) / 2
    level = 30 * np.cos(3 * y) ** 2 * np.exp(-1.5) + np.sin(40 * x + 1) * np.cos(50 * y)
    assert np.abs(plain[0, 1] - wet * level).max() < 0.03, "each rank's nodes are where they belong"
    assert [f[0] for f in filters(desk / "deflate.nc", "temp")] == [1]
    for name in ("filter.nc", "run.nc", "unchanged.nc"):
        judged(desk / name, "temp", plain, "abs", 1e-2, 511002)
        stored_by_the_filter(desk / name, "temp")
    with h5py.File(desk / "filter.nc") as f, h5py.File(desk / "run.nc") as g, h5py.File(desk / "unchanged.nc") as h:
        for at in np.ndindex(2, 4, 4):
            chunks = [a["temp"].id.read_direct_chunk((*at[:2], 300_000 * at[2])) for a in (f, g, h)]
            assert chunks[0] == chunks[1] == chunks[2]

    # Chunks that netCDF chooses: what a value has moved by in the end.
    for name, asked in (("plain", ""), ("open", "filter = 11002,"), ("planes", "filter = 511002,")):
        (desk / "e.nml").write_text(f"&output file='{name}-e.nc', nodes=1000000, levels=12, steps=1, {asked} /\n")
        run("mpirun", "-n", 8, "./model", "e.nml", env=environment(desk), cwd=desk)
    with h5py.File(desk / "plain-e.nc") as f, h5py.File(desk / "open-e.nc") as g, h5py.File(desk / "planes-e.nc") as h:
        assert g["temp"].chunks == (1, 6, 500_000)
        moved = [float(np.abs(a["temp"][...].astype("f8") - f["temp"][...]).max()) for a in (g, h)]
    assert f"to {moved[0]:.4f} under a bound of 0.01" in (ROOT / "docs/models.md").read_text(), moved
    assert 0 < moved[1] <= 0.01


CHECKS |= {"models.md": models}
CHECKS |= {"appending.md": appending, "parallel.md": parallel, "zarr.md": zarr}


def languages(desk, field):
    """The programs' field is exact in f4: sums of whole 1/1024."""
    t, y, x = np.indices((64, 96, 192))
    tas = (280 + ((x - 96) * (y - 48) + 64 * t + (73 * x + 151 * y + 37 * t) % 101) / 1024).astype("f4")
    for name, steps in (("c.h5", 64), ("fortran.nc", 48), ("fortran.h5", 48), ("r.h5", 64), ("whole.h5", 48)):
        judged(desk / name, "tas", tas[:steps], "abs", 1e-2, 11002)
        stored_by_the_filter(desk / name)
    with h5py.File(desk / "steps.nc") as f:
        steps = tas[:48].copy()
        steps[::16, 0, 0] = -999
        assert 0 < judge.check(steps, f["tas"][...], "abs", 1e-2, fill=-999) <= 1
    stored_by_the_filter(desk / "steps.nc")
    with h5py.File(desk / "whole.h5") as a, h5py.File(desk / "c.h5") as b:
        for k in (0, 16, 32):
            assert a["tas"].id.read_direct_chunk((k, 0, 0)) == b["tas"].id.read_direct_chunk(
                (k, 0, 0)), "as H5Dwrite would have made"
    for name in ("small.h5", "small.nc"):
        judged(desk / name, "tas", field, "abs", 1e-2, 11002)

    # The whole program in Rust is built and run by test_docs_facts.py; the page shows lines of it.
    whole = (ROOT / "examples/hdf5/dataset.rs").read_text()
    assert all(line in whole for line in (desk / "dataset.rs").read_text().splitlines()[1:])

    # Without the plugin; and what the page says of other ways to build write.c, of R and of programs that do not ask.
    (desk / "none").mkdir()
    env = environment(desk)
    lost = env | {"HDF5_PLUGIN_PATH": str(desk / "none")}
    for name in ("c.h5", "fortran.nc", "fortran.h5", "r.h5", "steps.nc"):
        (desk / name).unlink()
    for command in (["./write"], ["./steps"], ["./write_nc"], ["./write_h5"], ["Rscript", "write.R"]):
        said = run(*command, env=lost, cwd=desk, ok=False)
        assert "443" in said or "NetCDF: Filter error: undefined filter encountered" in said, said
    for name in ("c.h5", "fortran.nc", "fortran.h5", "r.h5", "steps.nc"):
        assert not (desk / name).exists(), "no file that is not complete"
    code = (desk / "write.c").read_text().replace("must(H5Zfilter_avail", "if (0) must(H5Zfilter_avail")
    (desk / "mandatory.c").write_text(code.replace("H5Z_FLAG_OPTIONAL", "H5Z_FLAG_MANDATORY"))
    (desk / "optional.c").write_text(code)
    for name in ("mandatory", "optional"):
        run("h5cc", "-shlib", "-o", name, f"{name}.c", "-lm", env=env, cwd=desk)
    assert "creating tas failed" in run("./mandatory", env=lost, cwd=desk, ok=False)
    assert run("./optional", env=lost, cwd=desk) == "largest error 0.0000, 1.0 times smaller\n"
    for option, said in (("-s", "stored losslessly"), ("-rdynamic -s", "largest error 0.0099")):
        run("h5cc", *option.split(), "-o", "static", "write.c", "-lm", env=env, cwd=desk)
        assert "libhdf5" not in run("ldd", desk / "static") and said in run("./static", env=env, cwd=desk)
    run("h5cc", "-s", "-o", "static", "write.c", "-lm", env=env, cwd=desk)
    run("./static", env=env | {"H5Z_GPU_STRICT": "1"}, cwd=desk, ok=False)
    (desk / "default.R").write_text((desk / "write.R").read_text().replace("chunk_dims = NULL, ", ""))
    run("Rscript", "default.R", env=env, cwd=desk)
    assert [f[0] for f in filters(desk / "r.h5", "tas")] == [443, 1], "gzip after the filter"


CHECKS |= {"languages.md": languages}


def detectors(desk, tas):
    with h5py.File(desk / "plain.h5") as f:
        plain = f["entry/data/data"][...]
    for name, dataset in (("scan.h5", "entry/data/data"), ("whole.h5", "data"), ("direct.h5", "data"),
                          ("small.h5", "entry/data/data"), ("frames.h5", "entry/data/data")):
        with h5py.File(desk / name) as f:
            judge.check(plain, f[dataset][...], "lossless")
            assert f[dataset].chunks == ((20, 256, 512) if name == "small.h5" else (1, 512, 512)), name
        stored_by_the_filter(desk / name, dataset)
    with h5py.File(desk / "all.h5") as f:
        assert (f["sum"][...] == plain.sum(0)).all() and (f["mask"][...] == (plain[0] == 65535)).all()


def trajectories(desk, tas):
    """What MDAnalysis wrote and what h5py wrote, beside the trajectory; its rounding on the way to Å and back is in the
    bounds."""
    with TRRFile(str(desk / "md.trr")) as f:
        x = np.stack([frame.x for frame in f])
    for name, scale, bound, chunk in (("small", 1, 5.01e-4, 1), ("dense", 10, 5.01e-3, 16)):
        path = "particles/trajectory/position/value"
        with h5py.File(desk / f"{name}.h5md") as f:
            assert 0.99 < judge.check(x * np.float32(scale), f[path][...], "abs", bound) <= 1
            assert f[path].chunks == (chunk, 3000, 3)


def questions(desk, tas):
    bounds = {"out.h5": 1e-2, "rows.h5": 1e-2, "step.h5": 1e-2, "small.nc": 1e-3, "packed.nc": 5e-3}
    for name, bound in bounds.items():
        judged(desk / name, "tas", tas, "abs", bound)


def upgrade(desk, tas):
    with h5py.File(desk / "plain.nc") as f:
        judged(desk / "new.nc", "tas", f["tas"][...], "abs", 1e-2, 511002)
    assert [f[0] for f in filters(desk / "plain.nc", "tas")] == [2, 1], "shuffle and deflate"


CHECKS |= {"detectors.md": detectors, "trajectories.md": trajectories}
CHECKS |= {"questions.md": questions, "upgrade.md": upgrade}


def test_every_check_has_a_page():
    assert set(CHECKS) <= set(RUN)


def test_links_and_pictures_are_there():
    for page in PAGES:
        text = (ROOT / "docs" / page).read_text()
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)):
            assert "://" in target or ((ROOT / "docs" / page).parent / target).exists(), f"{page}: {target}"
        for alt in re.findall(r"!\[([^\]]*)\]", text):
            assert len(alt) > 20, f"{page}: a picture says in words what it shows"


def test_the_gallery_has_its_notebooks_with_text_alone():
    for path in NOTEBOOKS:
        held = json.loads(path.read_text())
        assert (held["nbformat"], held["nbformat_minor"]) == (4, 5)
        for cell in held["cells"]:
            assert cell["cell_type"] in ("code", "markdown") and cell["id"]
            assert all(output["output_type"] == "stream" for output in cell.get("outputs", ()))
        assert any(cell.get("outputs") for cell in held["cells"]), f"{path.name}: run docs/gallery/render.py"
    linked = re.findall(r"\]\((\w+[.]ipynb)\)", (ROOT / "docs/gallery/index.md").read_text())
    assert sorted(linked) == [p.name for p in NOTEBOOKS] and len(linked) == 3


def test_the_plots_are_of_the_present_record(tmp_path):
    run(sys.executable, ROOT / "docs/pictures/measured.py", tmp_path)
    for path in sorted(tmp_path.glob("*.svg")):
        same = path.read_bytes() == (ROOT / "docs/pictures" / path.name).read_bytes()
        assert same, f"{path.name} is not of tests/gpu/record.toml: run docs/pictures/measured.py"


@pytest.mark.third
def test_the_site_builds_without_a_warning(tmp_path):
    env = environment(tmp_path) | {"HOME": str(tmp_path)}
    build = ["-m", "sphinx", "-q", "-W", "--keep-going", "-c", ROOT / "docs", "-d", tmp_path / "trees"]
    run(sys.executable, *build, ROOT, tmp_path / "site", env=env)
    site = tmp_path / "site/docs"
    built = {p.relative_to(site).with_suffix(".md") for p in site.rglob("*.html")}
    assert built >= set(PAGES) | {Path("gallery", p.stem + ".md") for p in NOTEBOOKS}
    for notebook in NOTEBOOKS:
        html = (site / "gallery" / notebook.with_suffix(".html").name).read_text()
        shown = re.findall(r'<img alt="([^"]{20,})"[^>]*src="([^"]+)"', html)
        assert shown and all((site / "gallery" / name).stat().st_size > 10_000 for _, name in shown)
    assert "**unknown" not in re.sub("<[^>]+>", "", (site / "reference.html").read_text())
