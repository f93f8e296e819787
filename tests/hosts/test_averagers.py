# SPDX-License-Identifier: MIT OR Apache-2.0
"""Files of each writer of the package, averaged, joined, cut and copied by NCO, CDO and netCDF's own programs.

NCO's averagers change `cell_methods` and stop where it is no NC_CHAR. All files come from one of netCDF-C, as climate
models leave it: with cell_methods, coordinates, bounds, an unlimited time, fill values and several variables. What the
programs make is read by netCDF4 and compared with the source: the filter codes what NCO writes again, so that an
error may be twice the bound.
"""
import netCDF4
import numpy as np
import pytest
from conftest import LONG, run, use
from programs import filters

STEPS, ALL, BOUNDS = 24, 30, {"tas": 0.01, "pr": 1e-8, "count": 0}
SOURCE = """
netcdf source {
dimensions: time = UNLIMITED ; lat = 18 ; lon = 30 ; bnds = 2 ;
variables:
  double time(time) ; time:units = "days since 2000-01-01" ; time:calendar = "standard" ; time:bounds = "time_bnds" ;
    time:standard_name = "time" ; time:axis = "T" ;
  double time_bnds(time, bnds) ;
  double lat(lat) ; lat:units = "degrees_north" ; lat:standard_name = "latitude" ; lat:bounds = "lat_bnds" ;
  double lat_bnds(lat, bnds) ;
  double lon(lon) ; lon:units = "degrees_east" ; lon:standard_name = "longitude" ;
  double height ; height:units = "m" ; height:positive = "up" ;
  float tas(time, lat, lon) ; tas:_FillValue = 1.e20f ; tas:missing_value = 1.e20f ; tas:units = "K" ; tas:note = "" ;
    tas:cell_methods = "area: mean time: mean" ; tas:coordinates = "height" ; tas:cell_measures = "area: areacella" ;
    tas:long_name = "Température" ;
  double pr(time, lat, lon) ; pr:units = "kg m-2 s-1" ; pr:cell_methods = "time: sum" ; pr:coordinates = "height" ;
  int count(time, lat, lon) ; count:units = "1" ; count:cell_methods = "time: point" ; count:_FillValue = -1 ;
  float areacella(lat, lon) ; areacella:units = "m2" ; areacella:cell_methods = "area: sum" ;
  :Conventions = "CF-1.11" ; :institution = "Météo" ; :history = "made" ;
}
"""
MAKE = """
import os, shutil, sys, h5py, netCDF4, numpy as np, xarray as xr
import h5z_gpu, h5z_gpu.xarray as hx
from h5z_gpu import Lossless, Lossy
from h5z_gpu.cli import main
os.chdir(sys.argv[1])
hows = {"tas": Lossy(absolute=0.01), "pr": Lossy(absolute=1e-8), "count": Lossless()}
def function(path, **more):
    with xr.open_dataset("source.nc") as ds: hx.to_netcdf(ds, path, hows, **more)
def plain(path, engine):
    with xr.open_dataset("source.nc") as ds: ds.to_netcdf(path, engine=engine, encoding=hx.encoding(ds, hows))
def again(path, engine):
    with xr.open_dataset("function.nc", engine="h5z_gpu") as ds: ds.to_netcdf(path, engine=engine)
def def_filter(path):
    with netCDF4.Dataset("source.nc") as old, netCDF4.Dataset(path, "w") as new:
        new.setncatts({n: old.getncattr(n) for n in old.ncattrs()})
        for d in old.dimensions.values(): new.createDimension(d.name, None if d.isunlimited() else len(d))
        for v in old.variables.values():
            given = {n: v.getncattr(n) for n in v.ncattrs()}
            made = new.createVariable(v.name, v.dtype, v.dimensions, fill_value=given.pop("_FillValue", None))
            made.setncatts(given)
            if v.name in hows: h5z_gpu.netcdf.def_filter(made, hows[v.name])
            made[...] = v[...]
def write(path):
    # Variables of h5py in a file of netCDF-C, on its dimensions.
    run_ncks(path)
    with h5py.File("source.nc") as old, h5py.File(path, "r+") as f:
        for name, how in hows.items():
            x = old[name][...]
            d = f.create_dataset(name, x.shape, x.dtype, maxshape=(None, *x.shape[1:]), chunks=(8, *x.shape[1:]),
                                 **how, fillvalue=old[name].fillvalue)
            for k, axis in enumerate(("time", "lat", "lon")): d.dims[k].attach_scale(f[axis])
            for n in old[name].attrs:
                if n not in ("DIMENSION_LIST", "_Netcdf4Dimid", "_Netcdf4Coordinates"):
                    d.attrs.create(n, old[name].attrs[n], dtype=old[name].attrs.get_id(n).dtype)
            h5z_gpu.write(d, x)
def run_ncks(path):
    import subprocess
    subprocess.run(["ncks", "-O", "-x", "-v", ",".join(hows), "source.nc", path], check=True)
def save(path):
    with h5py.File("source.nc") as old:
        for name, how in hows.items():  # no attribute would say which values are missing
            x = old[name][...]
            h5z_gpu.save(path, {name: np.where(x > 1e19, 280, x).astype(x.dtype)}, how, mode="a")
def into(path):
    # Variables of other names, in a file that has these.
    shutil.copy("source.nc", path)
    with xr.open_dataset("source.nc") as ds:
        new = ds[list(hows)].load().rename({n: n + "_" for n in hows})
    hx.to_netcdf(new, path, {n + "_": how for n, how in hows.items()}, mode="a")
def repack(path):
    assert not main(["repack", "source.nc", path, "tas=absolute:0.01", "pr=absolute:1e-8", "count=lossless"])
def append(path):
    with netCDF4.Dataset("all.nc") as old, netCDF4.Dataset(path, "a") as f:
        first, last = len(f["time"]), len(old["time"])
        for v in f.variables.values():
            if "time" in v.dimensions: v[first:last] = old[v.name.rstrip("_")][first:last]
"""
WRITERS = {"function": "function(p)", "netcdf4": "function(p, engine='netcdf4')",
           "h5netcdf": "function(p, engine='h5netcdf')", "plain_netcdf4": "plain(p, 'netcdf4')",
           "plain_h5netcdf": "plain(p, 'h5netcdf')", "again_netcdf4": "again(p, 'netcdf4')",
           "again_h5netcdf": "again(p, 'h5netcdf')", "def_filter": "def_filter(p)", "write": "write(p)",
           "save": "save(p)", "into": "into(p)", "repack": "repack(p)"}
PROGRAMS = {"ncra": "ncra -O {file} out.nc", "ncrcat": "ncrcat -O {file} {file} out.nc",
            "ncwa": "ncwa -O -a {lat} {file} out.nc", "ncks": "ncks -O -d {lat},2,9 {file} out.nc",
            "monmean": "cdo -s -O monmean {file} out.nc", "selname": "cdo -s -O selname,{names} {file} out.nc",
            "nccopy": "nccopy {file} out.nc"}
SHORT = ("ncra", "monmean")


def fields(steps):
    """tas with missing values, pr, and integers."""
    rng = np.random.default_rng(3)
    t, y, x = np.meshgrid(np.arange(ALL) / 9, np.linspace(0, 3, 18), np.linspace(0, 6, 30), indexing="ij")
    tas = (280 + 10 * np.sin(x + t) * np.cos(y) + rng.normal(0, 0.05, x.shape)).astype("f4")
    tas[3:9, 4:7, 5] = np.nan
    found = {"tas": tas, "pr": np.abs(np.cos(x - t)) * 1e-4, "count": rng.integers(0, 99, x.shape).astype("i4")}
    return {name: a[:steps] for name, a in found.items()}


def source(path, steps):
    path.with_suffix(".cdl").write_text(SOURCE)
    run("ncgen", "-4", "-o", path, path.with_suffix(".cdl"))
    with netCDF4.Dataset(path, "a") as f:
        f["lat"][:], f["lon"][:], f["height"][:] = np.linspace(-85, 85, 18), np.arange(30) * 12, 2
        f["lat_bnds"][:], f["areacella"][:] = f["lat"][:][:, None] + [-5, 5], 1e10
        f["time"][:] = np.arange(steps) * 5 + 2.5
        f["time_bnds"][:] = f["time"][:][:, None] + [-2.5, 2.5]
        for name, x in fields(steps).items():
            f[name][:] = np.ma.masked_invalid(x)


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """The file of each writer, the same with more steps, and a copy of a copy."""
    folder = tmp_path_factory.mktemp("averagers")
    source(folder / "source.nc", STEPS)
    source(folder / "all.nc", ALL)
    lines = [f"p = '{name}.nc'; {way}" for name, way in WRITERS.items()]
    lines += [f"shutil.copy('{name}.nc', '{name}.more.nc'); append('{name}.more.nc')"
              for name in WRITERS if name != "save"]
    use("\n".join([MAKE, *lines]), folder)
    # What `save` writes has no names of dimensions, and so none that is unlimited.
    run("ncks", "-O", "--mk_rec_dmn", "phony_dim_0", folder / "save.nc", folder / "save.more.nc")
    for name in WRITERS:
        run("nccopy", folder / f"{name}.nc", folder / "once.nc")
        run("ncks", "-O", folder / "once.nc", folder / f"{name}.twice.nc")
    return folder


def expected(program, x):
    """What a program makes of values; None where it makes what is not compared."""
    if program in ("ncra", "ncwa"):
        return np.nanmean(x, axis=0 if program == "ncra" else 1, keepdims=program == "ncra", dtype="f8")
    if program == "monmean":
        month = np.searchsorted([31, 60, 91, 121], np.arange(len(x)) * 5 + 2.5, side="right")
        return np.stack([np.nanmean(x[month == m], axis=0, dtype="f8") for m in np.unique(month)])
    return {"ncrcat": np.concatenate([x, x]), "ncks": x[:, 2:10]}.get(program, x)


@pytest.mark.third
@pytest.mark.parametrize("writer", WRITERS)
def test_averages_and_copies_are_right(writer, desk):
    """As it was written, with more steps, and copied twice: status 0, and values within the bounds of two codings."""
    suffix = "_" if writer == "into" else ""
    names = {name: name + suffix for name in BOUNDS}
    for kind, codings in (("", 2), (".more", 2), (".twice", 4)):
        file = f"{writer}{kind}.nc"
        x = fields(ALL if kind == ".more" and writer != "save" else STEPS)
        if writer == "save":
            x["tas"] = np.nan_to_num(x["tas"], nan=280)
        for program in PROGRAMS if LONG or not kind else SHORT:
            if writer == "save" and (program == "monmean" or (program in ("ncra", "ncrcat")) != (kind == ".more")):
                continue  # no calendar, and records in one of its files alone
            lat = "phony_dim_1" if writer == "save" else "lat"
            command = PROGRAMS[program].format(file=file, lat=lat, names=",".join(names.values()))
            run(*command.split(), cwd=desk)
            with netCDF4.Dataset(desk / "out.nc") as f:
                for name, bound in BOUNDS.items():
                    if name == "count" and program in ("ncra", "ncwa", "monmean"):
                        continue  # NCO and CDO round means of integers, each in its own way
                    want, found = expected(program, x[name]), f[names[name]][...]
                    found = np.ma.filled(found.astype("f8"), np.nan)
                    assert found.shape == want.shape, (file, program, name, found.shape)
                    assert (np.isnan(found) == np.isnan(want)).all(), (file, program, name)
                    error = np.nanmax(np.abs(found - want))
                    assert error <= codings * bound + 1e-6 * np.nanmax(np.abs(want)), (file, program, name, error)


@pytest.mark.parametrize("writer", WRITERS)
def test_texts_have_the_type_that_they_had(writer, desk):
    """NC_CHAR in the source and in what is written; and the variables have the filter."""
    with netCDF4.Dataset(desk / "source.nc") as old, netCDF4.Dataset(desk / f"{writer}.nc") as new:
        had = {(v, n): x for v in old.variables for n in old[v].ncattrs() if isinstance(x := old[v].getncattr(n), str)}
        found = {(v, n): new[v].getncattr(n) for v, n in had if v in new.variables and n in new[v].ncattrs()}
        assert writer == "save" or found == had, set(had) ^ set(found)
    text = run("ncdump", "-h", desk / f"{writer}.nc")
    strings = [line for line in text.splitlines() if line.strip().startswith("string")]
    # There the attributes are netCDF4-python's, which makes NC_STRING of what is not ASCII.
    assert len(strings) == (2 if writer == "def_filter" else 0), strings
    for name in BOUNDS:
        assert filters(desk / f"{writer}.nc", name + "_" * (writer == "into"))[0][0] == 443
