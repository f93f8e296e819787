# SPDX-License-Identifier: MIT OR Apache-2.0
"""The lines that `h5z-gpu words` prints, run as they stand: each writes a file that holds the bound, and the words that
it stores mean what was asked."""
import re
import subprocess

import h5py
import judge
import numpy as np
import pytest
from conftest import ROOT, hdf5_dir, python, run, sample
from programs import plain_hdf5

CHUNK = (5, 16, 47)
ASKS = {
    "one word": ("abs", "1e-3", "--codec", "szx"),
    "three words": ("abs", "1.234e-3"),
    "relative": ("rel", "2.5e-4"),
    "lorenzo": ("rel", "1e-3", "--codec", "lorenzo"),
    "lossless": ("lossless",),
}


def cli(*arguments, status=0):
    """The command line's output."""
    r = subprocess.run([ROOT / "target/bin/h5z-gpu", *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
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


PAIRS = [(tool, ask) for tool in TOOLS for ask in ("one word", "three words")] + [("h5py", "relative"),
                                                                                  ("h5py", "lossless")]


@pytest.mark.parametrize("tool, ask", PAIRS)
def test_the_printed_line_does_what_was_asked(tool, ask, tmp_path):
    if (tool, ask) == ("ncks", "three words"):
        assert "two digits" in cli("words", *ASKS[ask], "--tool", tool, status=2)
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
    # The stored words, given back to the command line, say the request again.
    text = re.search(r"as text\W+(\S+)", cli("words", ",".join(map(str, words))))[1]
    assert text == re.search(r"as text\W+(\S+)", cli("words", *ASKS[ask]))[1]


def test_what_h5dump_and_ncdump_print_is_understood(tmp_path):
    path = by_h5py(cli("words", "abs", "1e-3", "--tool", "h5py").strip(), sample(), tmp_path)
    dump = re.search(r"PARAMS \{[^}]*\}", run("h5dump", "-p", "-H", path))[0]
    assert "absolute: no value changes by more than 1e-3" in cli("words", dump)
    special = re.search(r'_Filter = ("[^"]*")', run("ncdump", "-hs", path))[1]
    assert "typed as   11003" in cli("words", special)
