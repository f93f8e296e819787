# SPDX-License-Identifier: MIT OR Apache-2.0
"""The Python package, built as a wheel, installed into an empty folder and used without HDF5_PLUGIN_PATH."""
import os
import platform
import re
import shutil
import sys

import numpy as np
import pytest
from conftest import ROOT, clean, python, run, sample


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    run("make", "-s", "wheel-here", env=dict(os.environ), cwd=ROOT)
    (wheel,) = (ROOT / "target/wheel-here").glob("*.whl")
    assert wheel.name.startswith("h5z_gpu-") and "-py3-none-manylinux_2_" in wheel.name
    into = tmp_path_factory.mktemp("package")
    run(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", into, wheel)
    assert (into / "h5z_gpu/py.typed").exists(), "type checkers read annotations only beside this file"
    return into


def use(package, code, *args):
    env = clean()
    del env["HDF5_PLUGIN_PATH"]
    return python(f"import sys; sys.path.insert(0, {str(package)!r})\n" + code, *args, env=env)


def test_the_command_is_installed(package):
    """And it works with what the wheel brings: the plugin and the package's metadata."""
    env = {k: v for k, v in clean(PYTHONPATH=str(package)).items() if k != "HDF5_PLUGIN_PATH"}
    assert run(package / "bin/h5z-gpu", "path", env=env).strip() == str(package / "h5z_gpu/plugin")
    run(package / "bin/h5z-gpu", "run", "--", "true", env=env)
    env["HDF5_PLUGIN_PATH"] = run(package / "bin/h5z-gpu", "path", env=env).strip()
    text = run(package / "bin/h5z-gpu", "doctor", env=env)
    assert f"plugin: {package}/h5z_gpu/plugin/libh5zgpu.so\n" in text and text.endswith("nothing is wrong\n"), text


def test_the_line_of_the_pages_installs_what_is_built(package, tmp_path):
    """As a reader types it in the sources' folder, with a wheel of the name that `make wheel` gives; pip fetches
    nothing here."""
    (line,) = re.findall(r"^pip install .*whl.*$", (ROOT / "docs/start.md").read_text(), re.M)
    assert f"```console\n{line}\n```" in (ROOT / "README.md").read_text()
    (wheel,) = (ROOT / "target/wheel-here").glob("*.whl")
    machine = platform.machine()
    name = re.sub("manylinux.*", f"manylinux2014_{machine}.manylinux_2_17_{machine}.whl", wheel.name)
    (tmp_path / "target/wheel").mkdir(parents=True)
    shutil.copy(wheel, tmp_path / "target/wheel" / name)
    (tmp_path / "target/wheel" / name.replace(machine, "other")).write_text("for another machine")
    pip = {"PIP_TARGET": str(tmp_path / "installed"), "PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1"}
    run("sh", "-euc", line, env=clean(**pip, PATH=f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"),
        cwd=tmp_path)
    assert (tmp_path / "installed/h5z_gpu/plugin/libh5zgpu.so").exists()


def saved(folder):
    np.save(folder / "a.npy", sample())
    return folder / "a.npy"


@pytest.mark.parametrize("order", ["h5z_gpu, netCDF4, tables, h5py", "netCDF4, tables, h5py, h5z_gpu"])
def test_import_serves_every_hdf5_of_the_process(package, order, tmp_path):
    np.save(tmp_path / "a.npy", sample())
    use(package, f"import {order}\n" + """
import numpy as np, h5py, h5z_gpu, h5z_gpu.netcdf, h5z_gpu.xarray, netCDF4, tables
h5z_gpu.register()
a = np.load(sys.argv[1]); path = sys.argv[2]
with h5py.File(path, "w") as f:
    f.create_dataset("x", data=a, chunks=a.shape, compression=h5z_gpu.Lossy(1e-2))
    f.create_dataset("y", data=a, chunks=a.shape, **h5z_gpu.Lossless())
for read in (lambda: h5py.File(path)["x"][...], lambda: tables.open_file(path).root.x[...],
             lambda: netCDF4.Dataset(path)["x"][...].data):
    assert 0 < np.abs(read().astype("f8") - a).max() <= 1e-2
assert h5py.File(path)["y"][...].tobytes() == a.tobytes()
assert netCDF4.Dataset(path).has_zstd_filter(), "netCDF4 still finds its own plugins"
""", tmp_path / "a.npy", tmp_path / "x.h5")


def test_arrays_without_hdf5(package):
    use(package, """
import numpy as np, h5z_gpu
a = np.linspace(0, 1, 10000, dtype=">f8").reshape(100, 100)
frame = h5z_gpu.compress(a, h5z_gpu.Lossy(1e-3, codec="szx"))
b = h5z_gpu.decompress(frame, a.dtype, a.shape)
assert 0 < np.abs(a - b).max() <= 1e-3 and len(frame) < a.nbytes / 2
assert h5z_gpu.decompress(h5z_gpu.compress(a), a.dtype, a.shape).tobytes() == a.tobytes()
b = h5z_gpu.decompress(h5z_gpu.compress(a, h5z_gpu.Lossy(1e-3, codec="lorenzo")), a.dtype, a.shape)
assert 0 < np.abs(a - b).max() <= 1e-3
for x in (np.arange(1000).astype("M8[s]"), a > 0.5, a.astype("c8"), np.array(["Wärme", ""] * 50),
          np.zeros(100, "f4,i2")):
    assert h5z_gpu.decompress(h5z_gpu.compress(x, h5z_gpu.Lossy(1)), x.dtype, x.shape).tobytes() == x.tobytes(), x.dtype
objects = np.array([None, "x"]), np.zeros(9, [("a", "f4"), ("b", object)])
for bad in (*(lambda x=x: h5z_gpu.compress(x) for x in objects), lambda: h5z_gpu.Lossy(-1), lambda: h5z_gpu.Lossy(
    1, codec="ndzip"), lambda: h5z_gpu.decompress(frame[:-1], "f8")):
    try: bad()
    except ValueError as e: assert "h5z-gpu" in str(e), e
    else: raise AssertionError("accepted")
try: h5z_gpu.compress(a, 1e-3)
except TypeError as e: assert "Lossy(1e-3)" in str(e), e
else: raise AssertionError("accepted")
print(h5z_gpu.Lossy(1e-3))
""")


@pytest.mark.parametrize("version", [2, 3])
def test_zarr_finds_the_codec_without_an_import(version, package, tmp_path):
    """By the entry points: the process that reads knows of the package's folder, and imports zarr alone."""
    use(package, """
import zarr, numpy as np, h5z_gpu.zarr
x = np.load(sys.argv[1])
how = h5z_gpu.Lossy(1e-3)
for version, more in ((3, {"serializer": h5z_gpu.zarr.Serializer(how), "compressors": None}),
                      (2, {"compressors": h5z_gpu.zarr.Compressor(how)})):
    z = zarr.create_array(f"{sys.argv[2]}/{version}", shape=x.shape, dtype=x.dtype, chunks=(5, 16, 16),
                          zarr_format=version, **more)
    z[...] = x
""", saved(tmp_path), tmp_path / "a.zarr")
    use(package, """
import zarr, numpy as np
assert "h5z_gpu" not in sys.modules
assert zarr.registry.get_codec_class("numcodecs.h5z-gpu").__name__ == "Frames"
for version in sys.argv[3:]:
    assert 0 < np.abs(zarr.open_array(f"{sys.argv[2]}/{version}",
                                      mode="r")[...] - np.load(sys.argv[1]).astype("f8")).max() <= 1e-3
""", saved(tmp_path), tmp_path / "a.zarr", version)


def test_the_folder_for_command_line_tools(package, tmp_path):
    env = clean(PYTHONPATH=str(package))
    folder = run(sys.executable, "-m", "h5z_gpu", "path", env=env).strip()
    assert os.listdir(folder) == ["libh5zgpu.so"]
    # The line keeps the folders that are set, and quotes them.
    kept = [tmp_path / "it's here", tmp_path / "b"]
    for other in kept:
        other.mkdir()
    kept = ":".join(map(str, kept))
    line = run(sys.executable, "-m", "h5z_gpu", "env", env=env | {"HDF5_PLUGIN_PATH": kept})
    shown = run("sh", "-c", line + 'printf %s "$HDF5_PLUGIN_PATH"')
    assert shown == f"{folder}:{kept}"
