# SPDX-License-Identifier: MIT OR Apache-2.0
"""Words without a meaning are refused where the user sees it, with a sentence that says what is allowed."""
import h5py
import numpy as np
import pytest
from conftest import app, python, run, sample
from h5py import h5d, h5p, h5s, h5t, h5z
from programs import plain_hdf5, plain_netcdf

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
