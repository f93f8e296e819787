# SPDX-License-Identifier: MIT OR Apache-2.0
"""The lines that `h5z-gpu words` prints, run as they stand: each writes a file that holds the bound, and the words that
it stores mean what was asked."""
import re
import subprocess

import h5py
import judge
import numpy as np
import pytest
from conftest import BUILT, app, hdf5_dir, python, run, sample
from h5py import h5d, h5p, h5s, h5t, h5z
from programs import plain_hdf5, plain_netcdf

CHUNK = (5, 16, 47)
ASKS = {
    "one word": ("abs", "1e-3", "--codec", "szx"),
    "three words": ("abs", "1.234e-3"),
    "four words": ("abs", "1e-3", "--keep", "sign,range"),
    "relative": ("rel", "2.5e-4"),
    "lorenzo": ("rel", "1e-3", "--codec", "lorenzo"),
    "lossless": ("lossless",),
}


def cli(*arguments, status=0):
    """The command line's output."""
    r = subprocess.run([BUILT / "bin/h5z-gpu", *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                       text=True)
    assert r.returncode == status, f"{arguments}: exit {r.returncode}\n{r.stdout}"
    return r.stdout


def shell(line, tmp):
    run("sh", "-ec", line, cwd=tmp)


def netcdf(x, path):
    """A netCDF-4 file with the variable v in chunks and no filter, another and a coordinate."""
    import netCDF4

    with netCDF4.Dataset(path, "w") as d:
        dims = [d.createDimension(f"d{i}", n).name for i, n in enumerate(x.shape)]
        for name in "vw":
            d.createVariable(name, x.dtype, dims, chunksizes=CHUNK, fill_value=False)[...] = x
        d.createDimension("lat", 90)
        d.createVariable("lat", "f8", ("lat",))[...] = np.linspace(-90, 90, 90)


def by_h5repack(line, x, tmp):
    plain_hdf5({"v": x}, tmp / "in.h5", {"v": CHUNK})
    shell(line, tmp)
    return tmp / "out.h5"


def by_copy(line, x, tmp):
    netcdf(x, tmp / "in.nc")
    shell(line, tmp)
    with h5py.File(tmp / "in.nc") as a, h5py.File(tmp / "out.nc") as b:
        for name in ("lat", "w"):
            assert a[name][...].tobytes() == b[name][...].tobytes(), f"{name} was not asked for"
    return tmp / "out.nc"


def by_ncgen(line, x, tmp):
    numbers = ", ".join(f"{float(v):.8e}f" for v in x.flat)
    dims = " ".join(f"d{i} = {n} ;" for i, n in enumerate(x.shape))
    sizes = ", ".join(map(str, CHUNK))
    text = f'netcdf a {{\ndimensions: {dims}\nvariables: float v(d0, d1, d2) ;\nv:_Storage = "chunked" ;\n'
    text += f"v:_ChunkSizes = {sizes} ;\n{line}\ndata: v = {numbers} ;\n}}\n"
    (tmp / "in.cdl").write_text(text)
    run("ncgen", "-4", "-o", tmp / "out.nc", tmp / "in.cdl")
    return tmp / "out.nc"


def by_h5py(line, x, tmp):
    np.save(tmp / "a.npy", x)
    python(f"import h5py, numpy; a = numpy.load('a.npy'); f = h5py.File('out.h5', 'w'); {line}; f.close()", cwd=tmp)
    return tmp / "out.h5"


def by_xarray(line, x, tmp):
    np.save(tmp / "a.npy", x)
    python(f"import xarray, numpy; ds = xarray.Dataset({{'v': (('x', 'y', 'z'), numpy.load('a.npy'))}}); {line}",
           cwd=tmp)
    return tmp / "out.nc"


def by_c(line, x, tmp):
    """The line inside the shortest program that writes."""
    n, c = (",".join(map(str, s)) for s in (x.shape, CHUNK))
    (tmp / "write.c").write_text(f"""
#include <hdf5.h>
#include <stdio.h>
static float a[{x.size}];
int main(void) {{
    hsize_t n[] = {{{n}}}, c[] = {{{c}}};
    FILE *in = fopen("raw", "rb");
    if (!in || fread(a, 4, {x.size}, in) != {x.size}) return 2;
    hid_t file = H5Fcreate("out.h5", H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), space = H5Screate_simple(3, n, NULL);
    hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(dcpl, 3, c);
    {line}
    hid_t v = H5Dcreate2(file, "v", H5T_IEEE_F32LE, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
    if (v < 0 || H5Dwrite(v, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, a) < 0) return 1;
    return H5Dclose(v) < 0 || H5Fclose(file) < 0;
}}
""")
    (tmp / "raw").write_bytes(x.tobytes())
    run("cc", "-o", tmp / "write", tmp / "write.c", "-I/usr/include/hdf5/serial", f"-L{hdf5_dir()}", "-lhdf5")
    run(tmp / "write", cwd=tmp)
    return tmp / "out.h5"


def netcdf_c(line, x, tmp):
    """The line inside the shortest program of netCDF that writes."""
    n, c = (",".join(map(str, s)) for s in (x.shape, CHUNK))
    (tmp / "write.c").write_text(f"""
#include <netcdf.h>
#include <netcdf_filter.h>
#include <stdio.h>
static float a[{x.size}];
int main(void) {{
    size_t n[] = {{{n}}}, c[] = {{{c}}};
    int ncid, varid, d[3];
    FILE *in = fopen("raw", "rb");
    if (!in || fread(a, 4, {x.size}, in) != {x.size} || nc_create("out.nc", NC_NETCDF4, &ncid)) return 2;
    for (int i = 0; i < 3; i++)
        if (nc_def_dim(ncid, (char[]){{"xyz"[i], 0}}, n[i], d + i)) return 3;
    if (nc_def_var(ncid, "v", NC_FLOAT, 3, d, &varid) || nc_def_var_chunking(ncid, varid, NC_CHUNKED, c)) return 4;
    {line}
    return nc_put_var_float(ncid, varid, a) || nc_close(ncid);
}}
""")
    (tmp / "raw").write_bytes(x.tobytes())
    run("cc", "-o", tmp / "write", tmp / "write.c", "-lnetcdf")
    run(tmp / "write", cwd=tmp)
    return tmp / "out.nc"


FORTRAN = """
program write
  use {module}
  implicit none
  real(4) :: a({n})
  {declare}
  open(10, file="raw", access="stream", form="unformatted", status="old")
  read(10) a
  {body}
end program
"""


def fortran(tmp, x, module, declare, body, *link):
    """Fortran counts extents the other way round."""
    n = ",".join(map(str, x.shape[::-1]))
    (tmp / "write.f90").write_text(FORTRAN.format(n=n, module=module, declare=declare.strip(), body=body.strip()))
    (tmp / "raw").write_bytes(x.tobytes())
    run("gfortran", "-ffree-line-length-none", "-o", tmp / "write", tmp / "write.f90", *link)
    run(tmp / "write", cwd=tmp)


def by_fortran(line, x, tmp):
    n, c = (",".join(map(str, s[::-1])) for s in (x.shape, CHUNK))
    fortran(tmp, x, "hdf5", f"""
  integer(hid_t) :: file, space, dcpl, v
  integer(hsize_t) :: n(3) = [{n}], c(3) = [{c}]
  integer :: error""", f"""
  call h5open_f(error)
  call h5fcreate_f("out.h5", H5F_ACC_TRUNC_F, file, error)
  call h5screate_simple_f(3, n, space, error)
  call h5pcreate_f(H5P_DATASET_CREATE_F, dcpl, error)
  call h5pset_chunk_f(dcpl, 3, c, error)
  {line}
  if (error /= 0) stop 1
  call h5dcreate_f(file, "v", H5T_IEEE_F32LE, space, v, error, dcpl)
  call h5dwrite_f(v, H5T_NATIVE_REAL, a, n, error)
  if (error /= 0) stop 2
  call h5dclose_f(v, error)
  call h5fclose_f(file, error)""", "-I/usr/include/hdf5/serial", f"-L{hdf5_dir()}", "-lhdf5_fortran", "-lhdf5")
    return tmp / "out.h5"


def by_nf90(line, x, tmp):
    n, c = (",".join(map(str, s[::-1])) for s in (x.shape, CHUNK))
    fortran(tmp, x, "netcdf", """
  integer :: ncid, varid, d(3), n(3), i, status""", f"""
  n = [{n}]
  if (nf90_create("out.nc", NF90_NETCDF4, ncid) /= 0) stop 1
  do i = 1, 3
    if (nf90_def_dim(ncid, char(119 + i), n(i), d(i)) /= 0) stop 2
  end do
  if (nf90_def_var(ncid, "v", NF90_FLOAT, d, varid, chunksizes=[{c}]) /= 0) stop 3
  {line}
  if (status /= 0) stop 4
  if (nf90_put_var(ncid, varid, a) /= 0) stop 5
  if (nf90_close(ncid) /= 0) stop 6""", "-I/usr/include", "-lnetcdff")
    return tmp / "out.nc"


def by_r(line, x, tmp):
    n, c = (", ".join(map(str, s[::-1])) for s in (x.shape, CHUNK))
    (tmp / "raw").write_bytes(x.tobytes())
    (tmp / "write.R").write_text(f"""
suppressMessages(library(hdf5r))
a <- array(readBin("raw", "numeric", {x.size}, size = 4), c({n}))
f <- H5File$new("out.h5", "w")
dcpl <- H5P_DATASET_CREATE$new()
dcpl$set_chunk(c({c}))
{line}
f$create_dataset("v", a, dtype = h5types$H5T_IEEE_F32LE, chunk_dims = NULL, gzip_level = NULL, dataset_create_pl = dcpl)
f$close_all()
""")
    run("Rscript", "write.R", cwd=tmp)
    return tmp / "out.h5"


TOOLS = {
    "h5repack": by_h5repack,
    "nccopy": by_copy,
    "ncks": by_copy,
    "ncgen": by_ncgen,
    "h5py": by_h5py,
    "xarray": by_xarray,
    "c": by_c,
    "netcdf-c": netcdf_c,
    "fortran": by_fortran,
    "nf90": by_nf90,
    "r": by_r,
}


PAIRS = [(tool, ask) for tool in TOOLS for ask in ("one word", "three words", "four words")]
PAIRS += [("h5py", "relative"), ("h5py", "lossless")]


@pytest.mark.parametrize("tool, ask", PAIRS)
def test_the_printed_line_does_what_was_asked(tool, ask, tmp_path):
    if tool == "ncks" and ask != "one word":
        why = {"three words": "two digits", "four words": "takes four"}[ask]
        assert why in cli("words", *ASKS[ask], "--tool", tool, status=2)
        return
    line = cli("words", *ASKS[ask], "--tool", tool).strip()
    x = sample(shape=(20, 70, 80))
    path = TOOLS[tool](line, x, tmp_path)
    with h5py.File(path) as f:
        got, chunk = f["v"][...], f["v"].chunks
        number, _, words, _ = f["v"].id.get_create_plist().get_filter(0)
    assert number == 443
    mode, value = (*ASKS[ask], "0")[:2]
    judge.check_chunks(x, got, chunk, mode, float(value) if mode != "lossless" else 0.0)
    for part in judge.chunks(x.shape, chunk):
        judge.kept(x[part], got[part], ("sign", "range") if ask == "four words" else ())
    # The stored words, given back to the command line, say the request again.
    text = re.search(r"as text\W+(\S+)", cli("words", ",".join(map(str, words))))[1]
    assert text == re.search(r"as text\W+(\S+)", cli("words", *ASKS[ask]))[1]


def test_what_h5dump_and_ncdump_print_is_understood(tmp_path):
    path = by_h5py(cli("words", "abs", "1e-3", "--tool", "h5py").strip(), sample(), tmp_path)
    dump = re.search(r"PARAMS \{[^}]*\}", run("h5dump", "-p", "-H", path))[0]
    assert "absolute: no value changes by more than 1e-3" in cli("words", dump)
    special = re.search(r'_Filter = ("[^"]*")', run("ncdump", "-hs", path))[1]
    assert "typed as   11003" in cli("words", special)


# Words without a meaning are refused where the user sees it, with a sentence that says what is allowed.

WRONG = {
    (0,): "absolute 1e-3 is 11003, lossless is 90000",  # what h5py makes of 1e-3
    (1,): "M = 0",  # what h5repack makes of 1e-3 and of 1.5
    (10003,): "DD = 00",
    (51003,): "M = 5",
    (91003,): "lossless takes no value",
    (411003,): "C = 4",
    (311003,): "ndzip is lossless",
    (190000,): "szx is lossy",
    (290000,): "lorenzo is lossy",
    (20100,): "DD = 01",
    (21080,): "1e0 (relative to range); allowed is a number above 0 and below 1",
    (40000,): "above 0",
    (11003, 0): "2 words",
    (11003,) * 5: "5 words",
    (4294967293,): "M = 6",  # what h5repack makes of -3
    (11, 0, 0): "above 0",
    (11, 0, 0x7FF00000): "inf (absolute); allowed is a finite number above 0",
}


@pytest.mark.parametrize("flag", [h5z.FLAG_OPTIONAL, h5z.FLAG_MANDATORY])
@pytest.mark.parametrize("words", WRONG, ids=str)
def test_h5py_shows_the_sentence(words, flag, tmp_path):
    plan = h5p.create(h5p.DATASET_CREATE)
    plan.set_chunk((10,))
    plan.set_filter(443, flag, words)
    with h5py.File(tmp_path / "a.h5", "w") as f:
        with pytest.raises((ValueError, RuntimeError)) as e:
            h5d.create(f.id, b"v", h5t.NATIVE_FLOAT, h5s.create_simple((10,)), plan)
        text = str(e.value)
        assert "h5z-gpu: " in text and WRONG[words] in text, text
        assert "v" not in f
        # The file goes on living.
        f.create_dataset("w", data=np.arange(10.0), chunks=(10,), compression=443, compression_opts=(11003,))
    with h5py.File(tmp_path / "a.h5") as f:
        assert list(f) == ["w"]


def test_programs_without_a_place_for_it_fail_and_show_it(tmp_path):
    x = sample()
    nc = plain_netcdf({"v": x}, tmp_path / "plain.nc")
    text = run("nccopy", "-4", "-c", "v:5,16,20", "-F", "v,443,1", nc, tmp_path / "out.nc", ok=False)
    text += run("ncks", "-O", "-4", "--cmp=443,1", nc, tmp_path / "out.nc", ok=False)
    assert text.count("h5z-gpu: cd_values: the number 1 is no [C]MDDEE") == 2, text
    (tmp_path / "raw").write_bytes(x.tobytes())
    text = run(app("shared"), "write", tmp_path / "a.h5", "v", "f32", "5x33x47", "5x16x20", tmp_path / "raw", "m", 1,
               ok=False)
    assert "h5z-gpu: cd_values: the number 1 is no [C]MDDEE" in text


def test_h5repack_leaves_the_data_as_it_was(tmp_path):
    """It goes on without the filter; no value changes."""
    x = sample()
    plain = plain_hdf5({"v": x}, tmp_path / "plain.h5")
    for words, said in (("1,1e-3", "h5z-gpu: cd_values: the number 1 is no"),
                        ("1,0", "h5z-gpu: cd_values: the number 0"), ("11003", "")):
        text = run("h5repack", "-l", "v:CHUNK=5x16x20", "-f", f"v:UD=443,1,{words}", plain, tmp_path / "out.h5")
        assert text.startswith(said) and bool(text) == bool(said), text
        with h5py.File(tmp_path / "out.h5") as f:
            assert f["v"][...].tobytes() == x.tobytes()


def test_a_bound_typed_to_h5py_is_refused_where_it_meant_lossless(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as f:
        with pytest.raises(ValueError, match="the number 0 .* absolute 1e-3 is 11003, lossless is 90000"):
            f.create_dataset("v", data=sample(), compression=443, compression_opts=(1e-3,))
        for name, words in (("none", None), ("number", (90000,))):
            f.create_dataset(name, data=sample(), compression=443, compression_opts=words)
            assert f[name][...].tobytes() == sample().tobytes()


def test_xarray_shows_the_sentence(tmp_path):
    text = python("""if True:
        import sys, xarray
        d = xarray.Dataset({"v": ("x", [1.0, 2.0])})
        d.to_netcdf(sys.argv[1], engine="h5netcdf", encoding={"v": {"compression": 443, "compression_opts": (51003,)}})
        """, tmp_path / "a.nc", ok=False)
    assert "h5z-gpu: cd_values" in text
