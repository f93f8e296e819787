# SPDX-License-Identifier: MIT OR Apache-2.0
"""Fields that the tests write; programs import this without pytest."""
import numpy as np


def sample(dtype=np.float32, shape=(5, 33, 47), seed=1, noise=0.01):
    """A smooth block with some noise, and no value that a text output could not show."""
    rng = np.random.default_rng(seed)
    at = np.meshgrid(*[np.linspace(0, 3, n) for n in shape], indexing="ij", sparse=True)
    return (sum(np.sin((i + 1) * g) for i, g in enumerate(at)) * 10 + rng.normal(0, noise, shape)).astype(dtype)


def temperatures():
    """The field of the documentation's pages, in kelvin, with some noise, and its coordinates."""
    rng = np.random.default_rng(7)
    time, lat, lon = np.arange(48.0), np.linspace(-89, 89, 96), np.arange(192) * 1.875
    smooth = 288 - 40 * np.sin(np.radians(lat))[:, None] ** 2 + 3 * np.cos(np.radians(3 * lon))
    tas = smooth + 5 * np.sin(2 * np.pi * time / 24)[:, None, None] + rng.normal(0, 0.02, (48, 96, 192))
    return tas.astype("f4"), {"time": time, "lat": lat, "lon": lon}


def page_files(folder, tas, coordinates):
    """`in.nc` and `in.h5`, which each page has beside it."""
    import h5py
    import netCDF4

    with netCDF4.Dataset(folder / "in.nc", "w") as ds:
        units = {"time": "hours since 2000-01-01", "lat": "degrees_north", "lon": "degrees_east"}
        for name, values in coordinates.items():
            ds.createDimension(name, len(values))
            v = ds.createVariable(name, "f8", (name,))
            v.units = units[name]
            v[:] = values
        v = ds.createVariable("tas", "f4", ("time", "lat", "lon"))
        v.units = "K"
        v[:] = tas
    with h5py.File(folder / "in.h5", "w") as f:
        f["tas"] = tas
