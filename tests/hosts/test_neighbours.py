# SPDX-License-Identifier: MIT OR Apache-2.0
"""Programs that rewrite a file in which other variables stand beside ours: no value of theirs may change.

NCO 5 hands the last stored word of one variable, as the only word of the same filter, to the chunked variables that it
writes after it. Each program runs twice: on a file with our filter, and on a control that holds the same values under
deflate. What comes out of the control is what must come out: bit for bit for the neighbours, within the bound for ours.
A program that fails on the control too fails by itself.
"""
import functools
import subprocess

import h5py
import judge
import netCDF4
import numpy as np
import pytest
from conftest import clean, python, run, sample
from programs import filters

# Sizes are extents that mean something as a number: 15000 is absolute 0.5, 512 is none.
SIZES = {"time": None, "lat": 24, "lon": 40, "station": 15000, "site": 512, "letter": 8, "x": 2, "y": 3}
TIMES = 3
SPACE = ("time", "lat", "lon")
FILL = -999.0

# name: type, dimensions, chunk (None: contiguous), how netCDF is to store it
NEIGHBOURS = {
    "a_char": ("S1", ("site", "letter"), (100, 8), {}),
    "a_chunk": ("f4", ("station",), (300,), {}),
    "a_deflate": ("f4", SPACE, (1, 24, 40), {"zlib": True, "shuffle": True}),
    "a_int": ("i4", ("time", "site"), (1, 512), {}),
    "a_plain": ("f8", ("lat", "lon"), None, {}),
    "a_sum": ("f4", SPACE, (1, 24, 40), {"fletcher32": True}),
    "lat": ("f4", ("lat",), None, {}),
    "lon": ("f4", ("lon",), None, {}),
    "time": ("f8", ("time",), (512,), {}),
    "z_char": ("S1", ("time", "letter"), (1, 8), {}),
    "z_chunk": ("f8", ("station",), (15000,), {}),
    "z_deflate": ("f8", SPACE, (1, 24, 40), {"zlib": True, "shuffle": True}),
    "z_int": ("i2", ("time", "site"), (1, 512), {}),
    "z_plain": ("f4", ("lat", "lon"), None, {}),
    "z_sum": ("f4", SPACE, (1, 24, 40), {"fletcher32": True}),
    "z_scalar": ("f4", (), None, {}),
    "z_text": (str, ("time",), None, {}),
}
# name: type, dimensions, chunk, fill value, number, mode, bound
OURS = {
    "m_abs": ("f4", SPACE, (1, 24, 40), FILL, 11003, "abs", 1e-3),
    "m_abs8": ("f8", ("time", "station"), (1, 15000), None, 11002, "abs", 1e-2),
    "m_lossless": ("f4", ("time", "site"), (1, 512), None, 90000, "lossless", 0.0),
    "m_lossless8": ("f8", ("time", "station"), (1, 15000), None, 390000, "lossless", 0.0),
    "m_point": ("f4", ("station",), (15000,), None, 31003, "pw_rel", 1e-3),
    "m_rank6": ("f4", ("time", "x", "y", "x2", "lat", "lon"), (1, 2, 3, 2, 24, 40), None, 211003, "abs", 1e-3),
    "m_rel": ("f8", SPACE, (1, 24, 40), FILL, 21003, "rel", 1e-3),
}


def values(name, kind, shape, fill, part):
    if kind is str:
        return np.array([f"text {i}" for i in range(TIMES)], object)
    if kind == "S1":
        return np.frombuffer(b"abcdefgh" * (int(np.prod(shape)) // 8), "S1").reshape(shape)
    if name == "time":
        return 0.96 * np.arange(TIMES) + 0.123456789 + 100 * part
    if name in ("lat", "lon"):
        return np.linspace(-80, 80, shape[0]).astype(kind)
    x = sample(np.float64, shape, seed=len(name) + part, noise=0.1) * 10 + 300 if shape else np.float64(1.5)
    x = x.astype(kind)
    if fill is not None:
        x[0, :3, :7] = fill
    return x


def make(path, part, mixed=True, content=None, ours={}):
    """A file of variables in the order of their names; `content` replaces the values, `ours` says how ours are stored.

    Without `mixed`, no neighbour has a filter of its own, which makes NCO hand on ours, and one is a string, which the
    older formats cannot hold."""
    with netCDF4.Dataset(path, "w") as d:
        for n, size in (SIZES | {"x2": 2}).items():
            d.createDimension(n, size)
        for name in sorted(NEIGHBOURS | OURS):
            kind, dims, chunk, *rest = (NEIGHBOURS | OURS)[name]
            fill, how = (rest[0], ours) if name in OURS else (None, rest[0])
            if name in NEIGHBOURS and ((how and not mixed) or (kind is str and mixed)):
                continue
            v = d.createVariable(name, kind, dims, fill_value=fill, chunksizes=chunk, **how)
            v.set_auto_maskandscale(False)
            if kind == "S1":
                v.set_auto_chartostring(False)
            shape = [TIMES if n == "time" else d.dimensions[n].size for n in dims]
            v[...] = content[name] if content else values(name, kind, shape, fill, part)
        d["time"].units, d["time"].calendar = "days since 2000-01-01", "standard"
        d["lat"].units, d["lon"].units = "degrees_north", "degrees_east"
    return path


def read(path):
    with netCDF4.Dataset(path) as d:
        d.set_auto_maskandscale(False)
        d.set_auto_chartostring(False)
        return {n: v[...] for n, v in d.variables.items()}


def same(x, y):
    return x.tolist() == y.tolist() if x.dtype == object else x.shape == y.shape and x.tobytes() == y.tobytes()


def judged(x, y, path, name, times=1):
    """Holds a variable of ours against its bound, or some times that. nccopy and NCO do not tell HDF5 of a fill
    value."""
    with h5py.File(path) as f:
        told = f[name].id.get_create_plist().fill_value_defined() == h5py.h5d.FILL_VALUE_USER_DEFINED
        chunk, fill = f[name].chunks or f[name].shape, f[name].fillvalue if told else None
    *_, mode, bound = OURS[name]
    judge.check_chunks(x, y, chunk, mode, bound * times, fill)


@functools.cache
def files(kind, tmp):
    """Two files with our filter in the folder `ours`, the same values under deflate in `control`."""
    tmp /= kind
    tmp.mkdir()
    for part in (0, 1):
        plain = make(tmp / "plain.nc", part, kind == "mixed")
        plan = [f"{n},443,{v[4]}" for n, v in OURS.items()]
        for folder in ("ours", "control"):
            (tmp / folder).mkdir(exist_ok=True)
        out = tmp / "ours" / f"{part}.nc"
        run("nccopy", *[a for p in plan for a in ("-F", p)], plain, out)
        before, after = read(plain), read(out)
        for n, x in before.items():
            if n in OURS:
                judged(x, after[n], out, n)
            else:
                assert same(x, after[n]), n
        make(tmp / "control" / f"{part}.nc", part, kind == "mixed", after, {"zlib": True})
    return tmp


# What is run in a folder with 0.nc and 1.nc; the last line writes out.nc.
CHAINS = {
    "ncks": ["ncks -O 0.nc out.nc"],
    "ncks some": ["ncks -O -v m_rel,z_chunk,a_int,m_abs 0.nc out.nc"],
    "ncks part": ["ncks -O -d time,1,2 -d lat,3,9 0.nc out.nc"],
    "ncks chunks": ["ncks -O -4 --cnk_plc=all --cnk_dmn lat,7 --cnk_dmn station,700 0.nc out.nc"],
    "ncks fixed": ["ncks -O --fix_rec_dmn time 0.nc out.nc"],
    "ncra": ["ncra -O 0.nc 1.nc out.nc"],
    "ncrcat": ["ncrcat -O 0.nc 1.nc out.nc"],
    "nces": ["nces -O 0.nc 1.nc out.nc"],
    "ncecat": ["ncecat -O 0.nc 1.nc out.nc"],
    "ncap2": ["ncap2 -O -s m_new=m_abs*2;z_new=z_chunk+1 0.nc out.nc"],
    "ncwa": ["ncwa -O -a lat 0.nc out.nc"],
    "ncbo": ["ncbo -O -y sub 0.nc 1.nc out.nc"],
    "ncdiff": ["ncdiff -O 0.nc 1.nc out.nc"],
    "ncflint": ["ncflint -O -w 0.25,0.75 0.nc 1.nc out.nc"],
    "ncpdq": ["ncpdq -O -a lon,lat 0.nc out.nc"],
    "ncpdq reversed": ["ncpdq -O -a -lat 0.nc out.nc"],
    "ncrename": ["ncrename -O -v z_chunk,z_other 0.nc out.nc"],
    "ncatted": ["ncatted -O -a units,m_abs,o,c,K 0.nc out.nc"],
    "cdo copy": ["cdo -s -O copy 0.nc out.nc"],
    "cdo selname": ["cdo -s -O selname,m_abs,z_sum,m_rel,a_deflate 0.nc out.nc"],
    "cdo cat": ["cdo -s -O cat 0.nc 1.nc out.nc"],
    "cdo mergetime": ["cdo -s -O mergetime 1.nc 0.nc out.nc"],
    "cdo zip": ["cdo -s -O -f nc4 -z zip_1 copy 0.nc out.nc"],
    "nccopy": ["nccopy 0.nc out.nc"],
    "nccopy -c": ["nccopy -c time/1,lat/12,lon/40 0.nc out.nc"],
    "nccopy -F": ["nccopy -F m_abs8,443,11003 0.nc out.nc"],
    "nccopy -F none": ["nccopy -F none 0.nc out.nc"],
    "nccopy -u": ["nccopy -u 0.nc out.nc"],
    "nccopy -k": ["nccopy -k nc7 0.nc out.nc"],
    "nccopy -3": ["nccopy -3 0.nc out.nc"],
    "ncgen": ["ncdump -s -p 9,17 0.nc > a.cdl", "ncgen -4 -o out.nc a.cdl"],
    "h5repack": ["h5repack 0.nc out.nc"],
    "h5repack -l": ["h5repack -l m_abs:CHUNK=2x12x40 -l m_abs8:CHUNK=1x5000 0.nc out.nc"],
    "h5repack -f": ["h5repack -f m_abs:UD=443,1,1,11003 -f m_rel:NONE 0.nc out.nc"],
    "ncks, nccopy": ["ncks -O 0.nc a.nc", "nccopy a.nc out.nc"],
    "ncks, ncks": ["ncks -O 0.nc a.nc", "ncks -O a.nc out.nc"],
    "nccopy, ncra": ["nccopy -c station/512 0.nc a.nc", "ncra -O a.nc out.nc"],
    "h5repack, ncks": ["h5repack -l m_abs8:CHUNK=1x512 0.nc a.nc", "ncks -O a.nc out.nc"],
    "ncrcat, ncpdq, ncwa": ["ncrcat -O 0.nc 1.nc a.nc", "ncpdq -O -a lon,lat a.nc b.nc", "ncwa -O -a lat b.nc out.nc"],
    "ncks, h5repack, ncap2": ["ncks -O 0.nc a.nc", "h5repack -l m_abs:CHUNK=3x24x20 a.nc b.nc",
                              "ncap2 -O -s z_new=z_chunk*2 b.nc out.nc"],
    "ncatted, ncdump, ncgen": ["ncatted -O -a units,m_abs,o,c,K 0.nc a.nc", "ncdump -s -p 9,17 a.nc > a.cdl",
                               "ncgen -4 -o out.nc a.cdl"],
    "cdo, ncks": ["cdo -s -O copy 0.nc a.nc", "ncks -O a.nc out.nc"],
    "ncks, cdo": ["ncks -O 0.nc a.nc", "cdo -s -O copy a.nc out.nc"],
}


def outcome(folder, lines, tmp):
    """Return codes, output and values after the lines were run in a copy of the folder."""
    tmp.mkdir(parents=True)
    for f in folder.iterdir():
        (tmp / f.name).symlink_to(f)
    code, text = 0, ""
    for line in lines:
        command, _, target = line.partition(" > ")
        r = subprocess.run(command.split(), cwd=tmp, env=clean(), text=True, capture_output=True, timeout=300)
        code, text = code or r.returncode, text + r.stderr
        if target:
            (tmp / target).write_text(r.stdout)
    return code, text, read(tmp / "out.nc") if code == 0 else None


def told(chain, files, tmp):
    """One row of the table: what happened to the neighbours and to ours. Raises where a value is wrong."""
    code, text, want = outcome(files / "control", CHAINS[chain], tmp / "control")
    ours, said, got = outcome(files / "ours", CHAINS[chain], tmp / "ours")
    if code:
        return f"control rc {code}, ours rc {ours}: {text.strip()[-90:]!r}"
    assert ours == 0, said[-2000:]
    assert list(want) == list(got)
    kept = []
    # Each program that writes ours with the filter may add the bound once.
    steps = sum(not line.startswith("ncdump") for line in CHAINS[chain])
    for n, x in want.items():
        kept += filtered(tmp / "ours" / "out.nc", n)
        if n in OURS and (n in kept or steps > 1):
            judged(x, got[n], tmp / "ours" / "out.nc", n, steps)
        else:
            assert same(x, got[n]), f"{n}: {x.reshape(-1)[:5]} became {got[n].reshape(-1)[:5]}"
    ours, all = sum(n in OURS for n in kept), sum(n in OURS for n in want)
    return f"rc 0, filter on {ours} of {all} of ours, {len(kept) - ours} of {len(want) - all} neighbours"


def filtered(path, name):
    """The name, when the variable has our filter."""
    with open(path, "rb") as f:
        if f.read(3) == b"CDF":  # the classic format
            return []
    return [name for f in filters(path, name) if f[0] == 443]


NCO = ("ncks", "ncra", "ncrcat", "nces", "ncecat", "ncap2", "ncwa", "ncbo", "ncdiff", "ncflint", "ncpdq", "ncrename",
       "ncatted")
CASES = [("mixed", c) for c in CHAINS] + [("bare", c) for c in CHAINS
                                          if any(line.startswith(NCO) for line in CHAINS[c])]


@pytest.mark.third
@pytest.mark.parametrize("kind, chain", CASES)
def test_neighbours_keep_every_bit_and_ours_their_bound(kind, chain, tmp_path_factory, tmp_path):
    row = told(chain, files(kind, tmp_path_factory.getbasetemp()), tmp_path)
    print(f"{kind:6} {chain:24} {row}")


@pytest.mark.parametrize("first", ["import hdf5plugin, h5py, netCDF4", "import netCDF4, h5py, hdf5plugin"])
def test_other_plugins_in_one_process(first, tmp_path):
    """hdf5plugin brings a dozen filters of its own; each works beside ours, in other datasets and in one pipeline."""
    text = python(first + """
if True:
    import sys, numpy as np
    from samples import sample
    x = sample()
    def pipeline(*plan):
        dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        dcpl.set_chunk((5, 16, 20))
        for number, words in plan:
            dcpl.set_filter(number, h5py.h5z.FLAG_OPTIONAL, words)
        return dcpl
    ours = (443, (11003,))
    zstd, blosc2 = [(c.filter_id, c.filter_options) for c in (hdf5plugin.Zstd(), hdf5plugin.Blosc2())]
    kinds = {"zstd": [zstd], "ours": [ours], "blosc2": [blosc2], "ours, zstd": [ours, zstd], "zstd, ours": [zstd, ours],
             "ours again": [ours]}
    with h5py.File(sys.argv[1], "w") as f:
        for name, plan in kinds.items():
            h5py.h5d.create(f.id, name.encode(), h5py.h5t.IEEE_F32LE, h5py.h5s.create_simple(x.shape), pipeline(*plan))
            f[name][...] = x
        f.create_dataset("zfp", data=x, **hdf5plugin.Zfp(reversible=True))
    with h5py.File(sys.argv[1]) as f:
        for name in f:
            error = np.abs(f[name][...].astype("f8") - x).max()
            assert (0 < error <= 1e-3) if name.startswith("ours") else error == 0, (name, error)
        assert f["ours, zstd"].id.get_storage_size() < x.nbytes
    with netCDF4.Dataset(sys.argv[1]) as d:
        d.set_auto_maskandscale(False)
        assert 0 < np.abs(d["ours"][...].astype("f8") - x).max() <= 1e-3
    """, tmp_path / "a.h5")
    assert text == "h5z-gpu: filter 32015 stands before h5z-gpu: what it hands on is stored losslessly\n"
