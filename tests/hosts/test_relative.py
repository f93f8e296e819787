# SPDX-License-Identifier: MIT OR Apache-2.0
"""Relative bounds and PSNR where HDF5 fills chunks up: its zeros, or the declared fill value, stretch no range."""
import h5py
import netCDF4
import numpy as np
import pytest
from conftest import app, run, sample
from programs import times

SHAPE, CHUNK = (10, 30, 50), (4, 16, 32)  # every last chunk reaches beyond the edge
RULES = {"rel": ((21004, 121004, 221004), 1e-4), "psnr": ((40600, 140600, 240600), 10 ** (-60 / 20))}


def pressures():
    """f4 near 1e5, so that a zero among them would stretch the range a hundred times."""
    return (sample(np.float64, SHAPE) * 10 + 1e5).astype("f4")


def parts():
    """The slices of every chunk."""
    return [tuple(slice(i * c, (i + 1) * c) for i, c in zip(at, CHUNK))
            for at in np.ndindex(*[-(-n // c) for n, c in zip(SHAPE, CHUNK)])]


def holds(x, y, real, factor):
    """In every chunk no value is off by more than `factor` times the range of the real ones; gives the largest error
    over that."""
    worst = 0
    for s in parts():
        inside = x[s][real[s]].astype("f8")
        if inside.size:
            bound = factor * (inside.max() - inside.min())
            worst = max(worst, np.abs(x[s].astype("f8") - y[s]).max() / bound)
    assert worst <= 1, f"{worst} times the bound"
    return worst


@pytest.mark.parametrize("mode", RULES)
@pytest.mark.parametrize("fill", [None, 0.0, -999.0])
def test_edges_and_chunks_written_in_part(mode, fill, tmp_path):
    words, factor = RULES[mode]
    x = pressures()
    real = np.zeros(SHAPE, bool)
    real[:7, 3:, :41] = True
    x[~real] = fill or 0
    for word in words:
        with h5py.File(tmp_path / "a.h5", "w") as f:
            d = f.create_dataset("v", SHAPE, "f4", chunks=CHUNK, compression=443, compression_opts=(word,),
                                 fillvalue=fill)
            d[:7, 3:, :41] = x[:7, 3:, :41]
        with h5py.File(tmp_path / "a.h5") as f:
            y = f["v"][...]
        assert holds(x, y, real, factor) > 0.1, "the filter was lossy here"
        if fill is not None:
            assert (y[~real] == fill).all()


@pytest.mark.parametrize("mode", RULES)
def test_edges_written_by_a_c_program(mode, tmp_path):
    words, factor = RULES[mode]
    x = pressures()
    (tmp_path / "raw").write_bytes(x.tobytes())
    for word in words:
        run(app("shared"), "write", tmp_path / f"{word}.h5", "v", "f32", times(SHAPE), times(CHUNK), tmp_path / "raw",
            "o", word)
        with h5py.File(tmp_path / f"{word}.h5") as f:
            assert holds(x, f["v"][...], np.ones(SHAPE, bool), factor) > 0.1


def test_nccopy_which_declares_no_fill_value_is_warned(tmp_path):
    x = pressures()
    x[0, 0, 0] = 1e20
    with netCDF4.Dataset(tmp_path / "in.nc", "w") as f:
        for name, n in zip("tyx", SHAPE):
            f.createDimension(name, n)
        f.createVariable("v", "f4", tuple("tyx"), fill_value=1e20)[...] = x
    for word, warned in ((21004, True), (40600, True), (11003, False), (31002, False)):
        said = run("nccopy", "-4", "-c", "v:4,16,32", "-F", f"v,443,{word}", tmp_path / "in.nc",
                   tmp_path / f"{word}.nc")
        assert ("written without a fill value" in said) == warned, said
    with h5py.File(tmp_path / "11003.nc") as f:
        y = f["v"][...]
    assert y[0, 0, 0] == x[0, 0, 0] and np.abs(y.astype("f8") - x)[1:].max() <= 1e-3
