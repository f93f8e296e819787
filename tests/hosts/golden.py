# SPDX-License-Identifier: MIT OR Apache-2.0
"""Makes the files of a release that every later one must read: tests/files/VERSION/all.*, and expected.json.

    p=$PWD/target/plugin; H5Z_GPU_PLUGIN_PATH=$p HDF5_PLUGIN_PATH=$p PYTHONPATH=plugin/python \\
        .env/bin/python tests/hosts/golden.py

in the root of the project, once for each version that changes what is written. A file that is there is never written
over. Every variable is one of `CASES`; what it held comes from `content`, exact integers in the type's own arithmetic.
Zarr stores are packed as zip archives, in which zarr-python reads them.
"""
import ctypes
import hashlib
import json
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np

# Extents and chunks: a second chunk that is filled up, and for ndzip a whole cube.
SHAPE, CHUNK = (8, 12, 20), (8, 12, 16)
CUBE = (16, 16, 16)
FILL = -999.0
# name → (dtype, words, mode and bound as the judge takes them, whether a fill value is declared)
CASES = {
    "auto_abs": ("f4", 11002, ("abs", 1e-2), False),
    "auto_abs_fill": ("f4", 11002, ("abs", 1e-2), True),
    "auto_lossless": ("f4", 90000, ("lossless",), False),
    "szx_abs": ("f4", 111002, ("abs", 1e-2), False),
    "szx_rel_fill": ("f4", 121003, ("rel", 1e-3), True),
    "szx_pw": ("f4", 131003, ("pw_rel", 1e-3), False),
    "szx_psnr_fill": ("f4", 140600, ("psnr", 60), True),
    "lorenzo_abs": ("f4", 211002, ("abs", 1e-2), False),
    "lorenzo_abs_fill": ("f4", 211002, ("abs", 1e-2), True),
    "lorenzo_coarse": ("f4", 215000, ("abs", 5.0), False),
    "lorenzo_rel_fill": ("f4", 221003, ("rel", 1e-3), True),
    "lorenzo_pw": ("f4", 231003, ("pw_rel", 1e-3), False),
    "lorenzo_psnr_fill": ("f4", 240600, ("psnr", 60), True),
    "planes_abs": ("f4", 511002, ("abs", 1e-2), False),
    "planes_rel_fill": ("f4", 521003, ("rel", 1e-3), True),
    "planes_lossless": ("f4", 590000, ("lossless",), False),
    "planes_abs_fill": ("f4", 511002, ("abs", 1e-2), True),
    "planes_psnr_fill": ("f4", 540600, ("psnr", 60), True),
    "dense_abs": ("f4", 711002, ("abs", 1e-2), False),
    "dense_rel_fill": ("f4", 721003, ("rel", 1e-3), True),
    "dense_pw_64": ("f8", 731003, ("pw_rel", 1e-3), False),
    "small_psnr": ("f4", 940600, ("psnr", 60), False),
    "fast_abs_fill": ("f4", 811002, ("abs", 1e-2), True),
    "decimals_64": ("f8", 90000, ("lossless",), False),
    "ndzip": ("f4", 390000, ("lossless",), False),
    "auto_abs_64": ("f8", 11004, ("abs", 1e-4), True),
    "szx_abs_64": ("f8", 111004, ("abs", 1e-4), False),
    "lorenzo_abs_64": ("f8", 211004, ("abs", 1e-4), False),
    "planes_abs_64": ("f8", 511004, ("abs", 1e-4), True),
    "planes_lossless_64": ("f8", 590000, ("lossless",), False),
    "ndzip_64": ("f8", 390000, ("lossless",), False),
}
# Only in the HDF5 file, and for the programs that know such types: another byte order, and what is kept exactly.
OTHERS = {
    "big_endian_abs": (">f4", 11002, ("abs", 1e-2), True),
    "big_endian_64": (">f8", 211004, ("abs", 1e-4), False),
    "integers": ("i2", 11002, ("lossless",), False),
    "halves": ("f2", 11002, ("abs", 1e-2), False),
    "mask": ("u1", 90000, ("lossless",), False),
    "noise": ("u1", 90000, ("lossless",), False),
}
# What the Zarr stores hold: a part, for they are small. Zarr 3 has those of OTHERS too.
IN_STORES = ("auto_abs_fill", "auto_lossless", "szx_rel_fill", "szx_pw", "lorenzo_abs", "lorenzo_psnr_fill",
             "planes_abs", "planes_lossless", "dense_pw_64", "small_psnr", "decimals_64", "ndzip", "auto_abs_64",
             "mask", "noise")
# Codecs as frames number them. All are in the HDF5 file and in the store of Zarr 3.
EVERY_CODEC = set(range(8))


def extents(name):
    """Shape and chunk of a variable."""
    return (CUBE, CUBE) if name.startswith("ndzip") else (SHAPE, CHUNK)


def content(name):
    """What a variable held before it was written: a smooth field with some noise, and values that are kept bit for
    bit."""
    dtype, _, _, fill = (CASES | OTHERS)[name]
    z, y, x = np.indices(extents(name)[0], dtype=np.int64)
    noise = (z * 7919 + y * 104729 + x * 1299709) * 40503 % 65521
    if name == "noise":
        return (noise * noise // 251 % 256).astype("u1")
    if name == "mask":
        return ((z + y // 3 + x // 5) % 4).astype("u1")
    smooth = 40 * z * z - 64 * y * x + 900 * x + (0 if name.startswith("ndzip") else noise % 16)
    if dtype == "i2":
        return (smooth // 4 % 30000).astype("i2")
    if name == "decimals_64":
        return smooth // 3 / 100
    a = (smooth.astype("f8") / (8 if dtype == "f2" else 64)).astype(dtype)
    a[0, 0, :5] = np.nan, np.inf, -np.inf, -0.0, 0.0
    if fill:
        a[3:6, 4:10, 2:18] = FILL
    return a


def bits(a):
    """A hash of an array's values, bit for bit, whatever its byte order."""
    a = np.ascontiguousarray(a)
    return hashlib.sha256(a.astype(a.dtype.newbyteorder("<"), copy=False).tobytes()).hexdigest()


def write_hdf5(path):
    import h5py

    with h5py.File(path, "w", libver=("earliest", "v108")) as f:
        for name, (_dtype, word, _, fill) in (CASES | OTHERS).items():
            f.create_dataset(name, data=content(name), chunks=extents(name)[1], compression=443, compression_opts=(word,
                             ), fillvalue=FILL if fill else None, track_times=False)


def write_netcdf(path, names=CASES):
    import netCDF4
    from wheel import loaded, u32

    library = loaded("netcdf4.libs/libnetcdf")
    with netCDF4.Dataset(path, "w") as d:
        dims = {shape: [d.createDimension(f"{n}{k}", size).name for n, size in zip("zyx", shape)]
                for k, shape in enumerate((SHAPE, CUBE))}
        for name in names:
            dtype, word, _, fill = CASES[name]
            shape, chunk = extents(name)
            v = d.createVariable(name, dtype, dims[shape], chunksizes=chunk, fill_value=FILL if fill else None)
            assert library.nc_def_var_filter(d._grpid, v._varid, 443, ctypes.c_size_t(1), u32([word])) == 0
            v.set_auto_maskandscale(False)
            v[...] = content(name)


def write_zarr(path):
    import zarr
    from h5z_gpu import Lossy
    from h5z_gpu.zarr import Serializer

    with tempfile.TemporaryDirectory() as folder:
        group = zarr.create_group(folder, zarr_format=3)
        for name in IN_STORES:
            dtype, word, _, fill = (CASES | OTHERS)[name]
            shape, chunk = extents(name)
            how = Serializer(Lossy.from_filter_options((word,)))
            group.create_array(name, shape=shape, dtype=dtype, chunks=chunk, serializer=how, compressors=None,
                               fill_value=FILL if fill else 0)[...] = content(name)
        pack(folder, path)


def write_nczarr(path):
    with tempfile.TemporaryDirectory() as folder:
        write_netcdf(f"file://{folder}/a#mode=nczarr,file", [name for name in IN_STORES if name in CASES])
        pack(f"{folder}/a", path)


def pack(folder, path):
    """A folder as an archive. The same files give the same bytes."""
    with zipfile.ZipFile(path, "x", zipfile.ZIP_DEFLATED) as z:
        for p in sorted(p for p in Path(folder).rglob("*") if p.is_file()):
            z.writestr(zipfile.ZipInfo(p.relative_to(folder).as_posix()), p.read_bytes(), zipfile.ZIP_DEFLATED)


def read_hdf5(path):
    import h5py

    with h5py.File(path) as f:
        return {n: f[n][...] for n in f if n in CASES | OTHERS}


def read_zarr(path):
    import zarr
    import h5z_gpu.zarr  # noqa: F401, which tells zarr of the codecs

    group = zarr.open_group(zarr.storage.ZipStore(path), mode="r")
    return {n: a[...] for n, a in group.arrays() if n in CASES | OTHERS}


def read_netcdf(path):
    """By netCDF's C library, for which the archive is unpacked."""
    import netCDF4

    with tempfile.TemporaryDirectory() as folder:
        shutil.unpack_archive(path, folder)
        with netCDF4.Dataset(f"file://{folder}#mode=nczarr,file") as d:
            d.set_auto_maskandscale(False)
            return {n: v[...] for n, v in d.variables.items()}


# How each file is made, and read.
FILES = {"all.h5": (write_hdf5, read_hdf5), "all.nc": (write_netcdf, read_hdf5),
         "all.zarr.zip": (write_zarr, read_zarr), "all.nczarr.zip": (write_nczarr, read_netcdf)}


def refuse_unreleased():
    """Ends the program where the plugin's frames say that its build is unreleased."""
    import h5py

    with h5py.File("probe", "w", driver="core", backing_store=False) as f:
        d = f.create_dataset("probe", data=content("ndzip"), chunks=CUBE, compression=443)
        if any(d.id.read_direct_chunk((0, 0, 0))[1][52:56]):
            sys.exit("This plugin's frames say that its build is unreleased: `vectors --release`, then build it.")


def main():
    root = Path(__file__).parent.parent.parent
    version = next(t.split('"')[1] for t in (root / "Cargo.toml").read_text().splitlines() if t.startswith("version"))
    folder = root / "tests/files" / version
    missing = [name for name in FILES if not (folder / name).exists()]
    if not missing:
        sys.exit(f"{folder} has all files: they are kept as they are. A new version gets a folder of its own.")
    refuse_unreleased()
    folder.mkdir(parents=True, exist_ok=True)
    listed = folder / "expected.json"
    expected = json.loads(listed.read_text()) if listed.exists() else {}
    for name in missing:
        write, read = FILES[name]
        write(folder / name)
        expected[name] = {n: bits(a) for n, a in sorted(read(folder / name).items())}
        listed.write_text(json.dumps(expected, indent=1) + "\n")
    print(*(f"{p.name}: {p.stat().st_size} bytes" for p in folder.iterdir()), sep="\n")


if __name__ == "__main__":
    main()
