# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the documentation says beside its code: the table of tools, numbers, messages, and how programs behave."""
import os
import re
import sys

import h5py
import judge
import numpy as np
import pytest
from conftest import BUILT, PLUGIN, ROOT, clean, python, run, sample, use
from page import blocks
from programs import filters, listed, plain_hdf5, plain_netcdf

PAGES = {page.stem: page.read_text() for page in (ROOT / "docs").glob("*.md")}
TOOLS = dict(re.findall(r"^\| ([^|]+?) \| `([^`]+)`[^|]*\|$", PAGES["tools"].split("\n## ")[0], re.M))
VALUES = sample(np.float32, (20, 100, 120))


def whole():
    """The environment with Rust in it; HDF5_PLUGIN_PATH is not set."""
    return {k: v for k, v in os.environ.items() if k not in ("HDF5_PLUGIN_PATH", "MAKEFLAGS", "MAKELEVEL", "MFLAGS")}


def test_the_example_programs_work(tmp_path):
    run(sys.executable, ROOT / "examples/write_dataset.py", tmp_path / "a.h5")
    out = run(sys.executable, ROOT / "examples/read_dataset.py", tmp_path / "a.h5")
    assert out.startswith("(64, 128, 128) float32"), out


def test_the_example_applications_work(tmp_path):
    """In Rust, by the command that is shown, and in C. Each writes and reads; the values are judged with h5py once
    more."""
    (shown,) = re.findall(r"^(cargo run -p h5z-gpu-hdf5-tests .*) out.h5$", PAGES["languages"], re.M)
    plugin = {"HDF5_PLUGIN_PATH": clean()["HDF5_PLUGIN_PATH"]}
    source = ROOT / "examples/hdf5/dataset.c"
    run("cc", "-Wall", "-Wextra", "-Werror", "-o", tmp_path / "c", source, "-I/usr/include/hdf5/serial",
        "-lhdf5_serial", "-lm")
    z, y, x = np.meshgrid(*[np.linspace(0, 6, n) for n in (64, 128, 128)], indexing="ij")
    temperature = (280 + 10 * np.sin(x) * np.cos(y) + z).astype("f4")
    for program in (shown.split(), [tmp_path / "c"]):
        out = run(*program, tmp_path / "a.h5", env=whole() | plugin, cwd=ROOT)
        error, ratio = map(float, re.search(r"largest error ([0-9.]+), ([0-9.]+) times smaller", out).groups())
        assert 0 < error <= 0.01 and ratio > 20, out
        assert listed(filters(tmp_path / "a.h5", "temperature")[0][2])[0] == 11002
        with h5py.File(tmp_path / "a.h5") as f:
            # Each language rounds its sines on its own: by less than a part in 10 000 of the bound.
            assert 0 < np.abs(f["temperature"][...].astype("f8") - temperature).max() <= 0.010_1
        run(*program, tmp_path / "b.h5", env=whole() | {"HDF5_PLUGIN_PATH": str(tmp_path)}, cwd=ROOT, ok=False)


def judged(path, bound=1e-3):
    with h5py.File(path) as f:
        assert 0 < judge.check(VALUES, f["v"][...], "abs", bound) <= 1
    assert listed(filters(path, "v")[0][2])[0] == 11003


def test_the_table_has_ten_tools():
    assert len(TOOLS) == 10, list(TOOLS)


@pytest.mark.parametrize("tool", ["h5repack", "nccopy", "ncks"])
def test_the_command_lines_work(tool, tmp_path):
    data = {"v": VALUES, "lat": np.linspace(-90, 90, 1000)}
    plain_hdf5(data, tmp_path / "in.h5")
    plain_netcdf(data, tmp_path / "in.nc")
    run("sh", "-c", TOOLS[tool], cwd=tmp_path)
    out = next(tmp_path.glob("out.*"))
    judged(out)
    with h5py.File(out) as f:
        assert f["lat"][...].tobytes() == data["lat"].tobytes(), "only v was asked for"


@pytest.mark.parametrize("line", ["ncks -4 -O --cmp='443,11002' in.nc out.nc",
                                  "nccopy -4 -F '*,443,11002' in.nc out.nc"])
def test_what_takes_coordinates_too(line, tmp_path):
    text = " ".join(PAGES["tools"].split())
    (shown,) = re.findall(r"At a bound of ([0-9.]+) latitudes and longitudes would be off by up to \1", text)
    lat = np.linspace(0, 77.77, 1000)
    plain_netcdf({"v": VALUES, "lat": lat}, tmp_path / "in.nc")
    run("sh", "-c", line, cwd=tmp_path)
    with h5py.File(tmp_path / "out.nc") as f:
        assert 0.3 * float(shown) < np.abs(f["lat"][...] - lat).max() <= float(shown)


def test_the_ncgen_lines_work(tmp_path):
    plain_netcdf({"v": VALUES}, tmp_path / "in.nc")
    text = run("ncdump", "-p", "9,17", tmp_path / "in.nc").replace("data:", f"\t\t{TOOLS['ncgen']}\ndata:")
    (tmp_path / "in.cdl").write_text(text)
    run("ncgen", "-4", "-o", tmp_path / "out.nc", tmp_path / "in.cdl")
    judged(tmp_path / "out.nc")


def test_the_python_lines_work(tmp_path):
    np.save(tmp_path / "a.npy", VALUES)
    python(f"""if True:
        import h5netcdf, h5py, numpy as np, xarray
        a = np.load("a.npy")
        with h5py.File("h5py.h5", "w") as f:
            {TOOLS['h5py']}
        with h5netcdf.File("h5netcdf.nc", "w") as f:
            f.dimensions = dict(zip("xyz", a.shape))
            {TOOLS['h5netcdf']}
        ds = xarray.Dataset({{"v": (("x", "y", "z"), a)}})
        {TOOLS['xarray']}
        """, cwd=tmp_path)
    use(f"""if True:
        import os, sys, h5z_gpu, netCDF4, numpy as np
        os.chdir(sys.argv[1])
        a = np.load("a.npy")
        with netCDF4.Dataset("netcdf4.nc", "w") as f:
            for name, n in zip("xyz", a.shape): f.createDimension(name, n)
            {TOOLS['netCDF4-python']}
        """, tmp_path)
    for name in ("h5py.h5", "h5netcdf.nc", "netcdf4.nc", "out.nc"):
        judged(tmp_path / name)


C = """
#include <stdio.h>
#include <stdlib.h>
#include HEADER
static float a[20 * 100 * 120];
int main(void)
{
    FILE *raw = fopen("raw", "rb");
    if (!raw || fread(a, 4, 240000, raw) != 240000)
        return 1;
    BODY
}
"""
HDF5_C = """
    hsize_t dims[] = {20, 100, 120}, chunk[] = {16, 64, 64};
    hid_t file = H5Fcreate("out.h5", H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), dcpl = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(dcpl, 3, chunk);
    LINE
    hid_t v = H5Dcreate2(file, "v", H5T_IEEE_F32LE, H5Screate_simple(3, dims, NULL), H5P_DEFAULT, dcpl, H5P_DEFAULT);
    return H5Dwrite(v, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, a) < 0 || H5Dclose(v) < 0 || H5Fclose(file) < 0;
"""
NETCDF_C = """
    int ncid, varid, d[3];
    size_t chunk[] = {16, 64, 64};
    if (nc_create("out.nc", NC_NETCDF4, &ncid) || nc_def_dim(ncid, "x", 20, d) || nc_def_dim(ncid, "y", 100, d + 1) ||
        nc_def_dim(ncid, "z", 120, d + 2) || nc_def_var(ncid, "v", NC_FLOAT, 3, d, &varid) ||
        nc_def_var_chunking(ncid, varid, NC_CHUNKED, chunk))
        return 2;
    LINE
    return nc_put_var_float(ncid, varid, a) || nc_close(ncid);
"""


@pytest.mark.parametrize("tool, header, body, libraries", [
    ("HDF5 in C", "<hdf5.h>", HDF5_C, ["-I/usr/include/hdf5/serial", "-lhdf5_serial"]),
    ("netCDF in C", "<netcdf.h>\n#include <netcdf_filter.h>", NETCDF_C, ["-lnetcdf"]),
])
def test_the_c_lines_work(tool, header, body, libraries, tmp_path):
    VALUES.tofile(tmp_path / "raw")
    code = C.replace("HEADER", header).replace("BODY", body).replace("LINE", TOOLS[tool])
    (tmp_path / "a.c").write_text(code)
    run("cc", "-Wall", "-Werror", "-o", "a", "a.c", *libraries, cwd=tmp_path)
    run(tmp_path / "a", cwd=tmp_path)
    judged(next(tmp_path.glob("out.*")))


def test_nobody_is_told_to_install_a_name_that_is_not_ours():
    """The package is not on PyPI: whoever takes its name there would be installed."""
    folders = [(ROOT / "docs", "*.md"), (ROOT / "plugin/python", "*.*"), (ROOT / "program/src", "*.rs"),
               (ROOT / "packaging", "*.md")]
    files = [ROOT / "README.md", *(p for folder, pattern in folders for p in folder.rglob(pattern))]
    files = [p for p in files if p.suffix in (".md", ".py", ".rs", ".toml")]
    files.remove(ROOT / "packaging/PUBLISH.md")  # what is said once it is there
    lines = [f"{p}: {line}" for p in files for line in p.read_text().splitlines()
             if re.search(r"pip install.*h5z[-_]gpu(?!\S*\.whl)", line)]
    assert len(files) > 50 and not lines, lines


def test_the_numbers_mean_what_the_table_says():
    says = {"11003": "0.001|1e-3", "12504": "2.5e-4|0.00025", "15001": "5e-1|0.5", "12582": "2.5e2",
            "21004": "1e-4|0.0001", "31002": "1e-2|0.01",
            "40600": "60", "90000": "bit", "111003": "szx", "211003": "lorenzo", "390000": "ndzip"}
    for number, meaning in says.items():
        assert f"`{number}`" in PAGES["bound"]
        assert re.search(meaning, run(BUILT / "bin/h5z-gpu", "words", number)), number


def test_the_messages_are_those_shown(tmp_path):
    shown = re.findall(r"^```console\n(h5z-gpu: .*?)^```$", PAGES["troubleshooting"], re.M | re.S)
    (refused,), damaged, _ = (block.splitlines() for block in shown)  # the third is of a full disk: test_whole.py
    path = tmp_path / "a.h5"
    x = sample(shape=(16, 32, 32))
    with h5py.File(path, "w") as f:
        with pytest.raises(ValueError) as e:
            f.create_dataset("w", data=x, chunks=(16, 16, 16), compression=443, compression_opts=(1,))
        assert refused in str(e.value)
        f.create_dataset("v", data=x, chunks=(16, 16, 16), compression=443, compression_opts=(11003,))
        frame = bytearray(f["v"].id.read_direct_chunk((0, 0, 0))[1])
    frame[500] ^= 1
    for shown, bad in zip(damaged, (frame, frame[:100]), strict=True):
        with h5py.File(path, "a") as f:
            f["v"].id.write_direct_chunk((0, 0, 0), bytes(bad))
        with h5py.File(path) as f, pytest.raises(OSError) as e:
            f["v"][...]
        # The numbers in it are this chunk's own.
        pattern = re.sub(r"[0-9a-f]{16}|[0-9]+", "[0-9a-f]+", re.escape(shown).replace(r"\ ", " "))
        assert re.search(pattern, str(e.value)), (pattern, str(e.value))


def test_without_the_variable_hdf5_names_another_folder(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f.create_dataset("v", data=VALUES, compression=443, compression_opts=(11003,))
    env = clean()
    del env["HDF5_PLUGIN_PATH"]
    code = "import sys, h5py; h5py.File(sys.argv[1])['v'][...]"
    text = run(sys.executable, "-c", code, tmp_path / "a.h5", env=env, ok=False)
    assert re.search("can't (find plugin|open directory)", text), text
    code = "import sys, h5py; h5py.File(sys.argv[1], 'w').create_dataset('v', data=[1.0], compression=443)"
    text = run(sys.executable, "-c", code, tmp_path / "b.h5", env=env, ok=False)
    (shown,) = re.findall(r"^\| `([^`]+)` \| h5py, when writing \|$", PAGES["troubleshooting"], re.M)
    assert shown in text, text


def test_the_room_for_slices(tmp_path):
    """With the cache that is advised, slices are coded once; a smaller one moves values at most once for each slice."""
    (room,) = set(re.findall(r"rdcc_nbytes=(\d+) << 20", "".join(PAGES.values())))
    x = sample(np.float32, (16, 256, 256))
    for cache, codings in ((int(room) << 20, 1), (1 << 20, 16)):
        with h5py.File(tmp_path / "a.h5", "w", rdcc_nbytes=cache) as f:
            d = f.create_dataset("v", x.shape, "f4", chunks=x.shape, compression=443, compression_opts=(11003,))
            for i, one in enumerate(x):
                d[i] = one
        with h5py.File(tmp_path / "a.h5") as f:
            judge.check(x, f["v"][...], "abs", 1e-3 * codings)


@pytest.mark.parametrize("fill", [None, 0.0])
def test_zeros_that_fill_a_chunk_up_are_left_out_of_the_range(fill, tmp_path):
    text = " ".join(PAGES["bound"].split())
    assert "Zeros are left out of a chunk's range because HDF5 fills a chunk up with them" in text
    x = (280 + np.sin(np.arange(10_000) * 0.01)).astype("f4")
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f.create_dataset("v", data=x, chunks=(8000,), compression=443, compression_opts=(21003,), fillvalue=fill)
    with h5py.File(tmp_path / "a.h5") as f:
        assert 0.5 < judge.check(x[8000:], f["v"][8000:], "rel", 1e-3) <= 1, "the bound is used"


def test_xarray_writes_again_what_it_has_opened(tmp_path):
    np.save(tmp_path / "a.npy", VALUES)
    (shown,) = re.findall(r"`(Compression filter [^`]+)`", PAGES["tools"])
    python(f"""if True:
        import h5py, numpy as np, xarray
        ds = xarray.Dataset({{"v": (("x", "y", "z"), np.load("a.npy"))}})
        {TOOLS['xarray'].replace("out", "in")}
        with xarray.open_dataset("in.nc", engine="netcdf4") as d: d.to_netcdf("plain.nc", engine="netcdf4")
        assert h5py.File("plain.nc")["v"].id.get_create_plist().get_nfilters() == 0
        try: ds.to_netcdf("x.nc", engine="netcdf4",
                          encoding={{"v": {{"compression": 443, "compression_opts": (11003,)}}}})
        except ValueError as e: assert "compression_opts" in str(e), e
        else: raise AssertionError("the page says that this engine has no way to name the filter")
        ds = xarray.open_dataset("in.nc", engine="h5netcdf")
        try: ds.to_netcdf("out.nc", engine="h5netcdf")
        except ValueError as e: assert str(e) == {shown!r}, e
        else: raise AssertionError("the page says that this is refused")
        ds = ds.drop_encoding()
        {TOOLS['xarray']}
        """, cwd=tmp_path)
    (after,) = re.findall(r"After\s+`(import h5z_gpu.xarray)` both engines keep it", PAGES["tools"])
    use(f"""if True:
        import os, sys, xarray
        {after}
        os.chdir(sys.argv[1])
        for engine in ("h5netcdf", "netcdf4"):
            ds = xarray.open_dataset("in.nc", engine=engine)
            ds.to_netcdf(engine + ".nc", engine=engine)
            assert h5z_gpu.xarray.filters_of(xarray.open_dataset(engine + ".nc"))["v"] == h5z_gpu.Lossy(absolute=1e-3)
        """, tmp_path)
    for engine in ("h5netcdf", "netcdf4"):
        judged(tmp_path / f"{engine}.nc", 2e-3)
    with h5py.File(tmp_path / "out.nc") as f:
        assert judge.check(VALUES, f["v"][...], "abs",
                           2e-3) <= 1 and listed(filters(tmp_path / "out.nc", "v")[0][2])[0] == 11003


@pytest.mark.parametrize("flag, alone", [("optional", True), ("mandatory", False)])
def test_writing_into_a_dataset_that_exists(flag, alone, tmp_path):
    """HDF5 does not load a filter for that; asking for it does."""
    path = tmp_path / "a.h5"
    code = """if True:
        import sys, h5py, numpy as np
        from h5py import h5z
        with h5py.File(sys.argv[1], "a") as f:
            if sys.argv[2] == "ask":
                assert h5z.filter_avail(443)
            f["v"][...] = np.linspace(0, 1, 10000)
            f.flush()
            print(f["v"].id.get_storage_size())
        """
    for how in ("alone", "ask"):
        plan = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plan.set_chunk((1000,))
        plan.set_filter(443, h5py.h5z.FLAG_OPTIONAL if flag == "optional" else h5py.h5z.FLAG_MANDATORY, (11003,))
        with h5py.File(path, "w") as f:
            h5py.h5d.create(f.id, b"v", h5py.h5t.NATIVE_FLOAT, h5py.h5s.create_simple((10000,)), plan)
        ok = alone or how == "ask"
        text = python(code, path, how, ok=ok)
        if ok:
            assert (int(text) < 20_000) == (how == "ask"), text
            with h5py.File(path) as f:
                assert abs(f["v"][-1] - 1) <= 1e-3
        else:
            assert "required filter 443 is not registered" in text


# Runs what README.md and the Python package's README.md show: their commands, examples and links.

README = ROOT / "README.md"
PACKAGE = ROOT / "plugin/python/README.md"


@pytest.mark.parametrize("block", [b.code for b in blocks(README) if b.language == "sh"])
def test_the_commands_work(block):
    if block.strip() == "make test":
        block = "make -n test | grep -q tests/run.sh"  # this is what runs here
    env = {k: v for k, v in os.environ.items() if k not in ("HDF5_PLUGIN_PATH", "MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    out = run("sh", "-euc", block, env=env, cwd=ROOT)
    if "make demo" in block:
        assert re.search(r"ratio 1\d\.\d", out) and " 0 of 1036800 values miss it" in out and "same bits" in out, out
        png = ROOT / out.split("picture")[1].split()[0]
        assert png.read_bytes()[:4] == b"\x89PNG" and png.stat().st_size > 100_000


def test_the_python_example_works(tmp_path):
    (code,) = [b.code for b in blocks(README) if b.language == "python"]
    out = use(f"import os, sys; os.chdir(sys.argv[1])\n{code}", tmp_path).split()
    assert float(out[1]) > 20 and 0 < float(out[-1]) <= 1e-3, out


def test_the_package_s_page_works(tmp_path):
    """Its Python in order, in one process; its command lines as a shell runs them."""
    code = "".join(b.code for b in blocks(PACKAGE) if b.language == "python")
    use(f"import os, sys; os.chdir(sys.argv[1])\n{code}\nnp.save('array.npy', array)", tmp_path)
    array = np.load(tmp_path / "array.npy")
    for path, name in (("out.h5", "v"), ("all.h5", "v"), ("tas.nc", "tas")):
        with h5py.File(tmp_path / path) as f:
            assert 0.5 < judge.check(array, f[name][...], "abs", 1e-2) <= 1
        assert listed(filters(tmp_path / path, name)[0][2])[0] == 11002
    (tmp_path / "h5z-gpu").write_text(f'#!/bin/sh\nexec {sys.executable} -m h5z_gpu "$@"\n')
    (tmp_path / "h5z-gpu").chmod(0o755)
    env = clean(PYTHONPATH=f"{ROOT}/plugin/python", H5Z_GPU_PLUGIN_PATH=str(PLUGIN.parent), MPLBACKEND="Agg")
    env["PATH"] = f"{tmp_path}:{env['PATH']}"
    (lines,) = [b.code for b in blocks(PACKAGE) if b.language == "sh"]
    assert "every promise is kept" in run("sh", "-euc", lines, env=env, cwd=tmp_path)
    with h5py.File(tmp_path / "small.nc") as f:
        assert 0.5 < judge.check(array, f["tas"][...], "abs", 1e-2) <= 1


@pytest.mark.parametrize("page", [README, PACKAGE], ids=["README", "package"])
def test_the_links_lead_somewhere(page):
    """What PyPI shows links nowhere by a path: it stands there alone."""
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text())
    assert links if page == README else not links
    for target in links:
        assert (ROOT / target).exists(), target
