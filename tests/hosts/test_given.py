# SPDX-License-Identifier: MIT OR Apache-2.0
"""What docs/given.md tells readers and senders of a file: what programs say without the filter, how it comes off."""
import re

import h5py
import numpy as np
import pytest
from conftest import ROOT, clean, python, run, sample
from programs import filters

PAGE = (ROOT / "docs/given.md").read_text()
ROWS = dict(re.findall(r"^\| ([^|`]+) \| `([^`|]+)` \|$", PAGE.split("## Send it")[1], re.M))


@pytest.fixture
def given(tmp_path):
    """A netCDF-4 file with the filter on `tas` alone."""
    import netCDF4

    with netCDF4.Dataset(tmp_path / "plain-in.nc", "w") as ds:
        units = {"time": "days since 2000-01-01", "lat": "degrees_north", "lon": "degrees_east"}
        for (name, unit), n in zip(units.items(), (20, 60, 80)):
            ds.createDimension(name, n)
            v = ds.createVariable(name, "f8", (name,))
            v.units = unit
            v[:] = np.arange(n)
        v = ds.createVariable("tas", "f4", ("time", "lat", "lon"), fill_value=-9)
        v[:] = sample(shape=(20, 60, 80))
        v[0, :5] = -9
    run("nccopy", "-4", "-c", "tas:10,60,80", "-F", "tas,443,11002", "plain-in.nc", "given.nc", cwd=tmp_path)
    assert [f[0] for f in filters(tmp_path / "given.nc", "tas")] == [443]
    return tmp_path / "given.nc"


@pytest.mark.parametrize("tool", ROWS)
def test_the_filter_comes_off_and_the_values_stay(tool, given):
    run("sh", "-c", ROWS[tool], cwd=given.parent)
    left = [f[0] for f in filters(given.parent / "plain.nc", "tas")]
    assert left == ([] if "uncompressed" in tool else [2, 1]) or (left == [1] and tool in ("NCO", "CDO")), left
    with h5py.File(given) as a, h5py.File(given.parent / "plain.nc") as b:
        for name in ("tas", "time", "lat", "lon"):
            assert a[name][...].tobytes() == b[name][...].tobytes(), name
    env = clean()
    del env["HDF5_PLUGIN_PATH"]
    assert len(run("ncdump", "-v", "tas", given.parent / "plain.nc", env=env)) > 100_000


def test_every_row_is_there():
    assert set(ROWS) == {"h5repack", "h5repack, uncompressed", "NCO", "nccopy, uncompressed", "CDO"}


READ = {
    "h5py": "import h5py, sys; h5py.File(sys.argv[1])['tas'][...]",
    "xarray with h5netcdf": "import xarray, sys; xarray.open_dataset(sys.argv[1], engine='h5netcdf').tas.values",
    "netCDF4": "import netCDF4, sys; netCDF4.Dataset(sys.argv[1])['tas'][...]",
    "xarray with netcdf4": "import xarray, sys; xarray.open_dataset(sys.argv[1], engine='netcdf4').tas.values",
    "ncdump": ["ncdump", "-v", "tas"], "CDO": ["cdo", "-s", "infon"], "NCO": ["ncks", "-v", "tas"],
    "h5dump": ["h5dump", "--enable-error-stack", "-d", "tas"],
}


@pytest.mark.parametrize("program", READ)
def test_programs_say_what_the_page_shows(program, given):
    (said,) = re.findall(rf"^\|[^|]*\b{program}\b[^|]*\| (.*) \|$", PAGE.split("The file is whole")[0], re.M)
    env = clean()
    del env["HDF5_PLUGIN_PATH"]
    how = READ[program]
    text = python(how, given, env=env, ok=False) if isinstance(how, str) else run(*how, given, env=env, ok=None)
    shown = [word for word in re.findall("`([^`]+)`", said) if not word.startswith("--")]
    assert any(word.split(" (")[0] in text for word in shown), (shown, text[-500:])


def test_without_the_plugin_h5repack_leaves_the_dataset_out(given):
    env = clean()
    del env["HDF5_PLUGIN_PATH"]
    text = run("h5repack", "-f", "NONE", "given.nc", "plain.nc", cwd=given.parent, env=env, ok=None)
    assert "cannot be read, user defined filter is not available" in text
    with h5py.File(given.parent / "plain.nc") as f:
        assert set(f) == {"time", "lat", "lon"}
