# SPDX-License-Identifier: MIT OR Apache-2.0
"""Values, modes, shapes: what the contract promises about numbers, through h5py."""
import h5py
import judge
import numpy as np
import pytest
from conftest import ROOT, run, sample
from programs import filters, listed, stored_bytes

MODES = {
    "abs": (11003, "abs", 1e-3),
    "abs szx": (111003, "abs", 1e-3),
    "abs lorenzo": (211003, "abs", 1e-3),
    "abs large": (15001, "abs", 0.5),
    "rel": (21003, "rel", 1e-3),
    "rel szx": (121005, "rel", 1e-5),
    "rel lorenzo": (221004, "rel", 1e-4),
    "rel dense": (721004, "rel", 1e-4),
    "pw_rel": (31003, "pw_rel", 1e-3),
    "pw_rel lorenzo": (231003, "pw_rel", 1e-3),
    "pw_rel dense": (731003, "pw_rel", 1e-3),
    "psnr": (40600, "psnr", 60.0),
    "psnr lorenzo": (240600, "psnr", 60.0),
    "lossless": (90000, "lossless", 0.0),
    "ndzip": (390000, "lossless", 0.0),
}


def round_trip(path, x, words, chunk, fill=None, **more):
    with h5py.File(path, "w") as f:
        f.create_dataset("v", data=x, chunks=chunk, compression=443, compression_opts=words, fillvalue=fill, **more)
    with h5py.File(path) as f:
        return f["v"][...]


def special(dtype, fill):
    """A smooth block with every value that codecs are known to trip over, and its neighbours."""
    x = sample(dtype, (12, 40, 50))
    info = np.finfo(dtype)
    odd = [np.nan, np.inf, -np.inf, -0.0, 0.0, info.smallest_subnormal, -info.smallest_subnormal, info.tiny,
           1e20, -1e20, 9.969209968386869e36, info.max, -info.max, fill]
    at = np.random.default_rng(3).choice(x.size, 20 * len(odd), replace=False)
    x.flat[at] = np.array(odd * 20, dtype)
    x[3, 10:20, 10:30] = fill
    judge.words_of(x).reshape(-1)[777] = judge.words_of(np.array(np.nan, dtype))[0] | 0x2A
    return x


@pytest.mark.parametrize("dtype", ["<f4", "<f8", ">f4", ">f8"])
@pytest.mark.parametrize("mode", MODES)
def test_special_values_and_the_declared_fill_value(mode, dtype, tmp_path):
    word, name, value = MODES[mode]
    for fill in (-999.0, 1e20, 9.969209968386869e36, np.nan):
        x = special(np.dtype(dtype).newbyteorder("="), fill).astype(dtype)
        got = round_trip(tmp_path / "a.h5", x, (word,), (5, 16, 50), fill)
        judge.check_chunks(x, got, (5, 16, 50), name, value, fill)


@pytest.mark.parametrize("dtype", ["<f4", "<f8", ">f4", ">f8"])
@pytest.mark.parametrize("mode", MODES)
def test_smooth_data_shrinks(mode, dtype, tmp_path):
    word, name, value = MODES[mode]
    x = sample(dtype, (16, 64, 64)).astype(dtype)
    got = round_trip(tmp_path / "a.h5", x, (word,), (8, 32, 64))
    worst = judge.check_chunks(x, got, (8, 32, 64), name, value)
    assert stored_bytes(tmp_path / "a.h5", "v") < x.nbytes * (0.97 if name in ("lossless", "pw_rel") else 0.8)
    assert worst <= 1


def test_bounds_next_to_undeclared_huge_values(tmp_path):
    """1e20 over land without a declared fill value is ordinary data; an absolute bound holds beside it all the same."""
    x = special(np.float32, 1e20)
    judge.check(x, round_trip(tmp_path / "a.h5", x, (11003,), (5, 16, 50)), "abs", 1e-3)


def test_no_options_means_lossless_and_smaller(tmp_path):
    x = sample(np.float64, (16, 64, 64))
    got = round_trip(tmp_path / "a.h5", x, None, (8, 32, 64))
    judge.check(x, got, "lossless")
    assert stored_bytes(tmp_path / "a.h5", "v") < x.nbytes


def test_three_words_carry_any_double(tmp_path):
    x = sample()
    low, high = np.array([1.234567e-3]).view(np.uint32)
    for codec in (0, 1, 2):
        got = round_trip(tmp_path / "a.h5", x, (codec * 10 + 1, int(low), int(high)), (5, 16, 16))
        assert 0 < judge.check(x, got, "abs", 1.234567e-3) <= 1


@pytest.mark.parametrize("rank", range(1, 33))
def test_every_rank(rank, tmp_path):
    long = {1: (1000,), 2: (40, 25), 3: (9, 10, 11)}.get(rank, (2,) * min(rank, 10) + (1,) * (rank - 10))
    unit = (1,) * (rank - 3) + (9, 10, 11) if rank > 3 else long
    for shape in {long, unit}:
        x = sample(np.float32, (1000,))[: np.prod(shape)].reshape(shape) if np.prod(shape) <= 1000 else sample(
            np.float32, shape)
        for chunk in (shape, tuple(-(-n // 2) for n in shape)):
            got = round_trip(tmp_path / "a.h5", x, (11003,), chunk)
            judge.check(x, got, "abs", 1e-3)
            words = filters(tmp_path / "a.h5", "v")[0][2]
            assert listed(words)[1] == rank and len(words) <= 20


def test_scalar_and_empty_spaces(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as f:
        for name, space in (("scalar", h5py.h5s.create(h5py.h5s.SCALAR)), ("null", h5py.h5s.create(h5py.h5s.NULL))):
            plan = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            plan.set_filter(443, h5py.h5z.FLAG_OPTIONAL, (11003,))
            h5py.h5d.create(f.id, name.encode(), h5py.h5t.NATIVE_FLOAT, space, plan)
        f["scalar"][...] = 1.2345678
        f.create_dataset("empty", (0, 4), "f4", maxshape=(None, 4), chunks=(8, 4), compression=443,
                         compression_opts=(11003,))
    with h5py.File(tmp_path / "a.h5") as f:
        assert f["scalar"][()] == np.float32(1.2345678) and f["null"].shape is None and f["empty"].shape == (0, 4)


@pytest.mark.parametrize("shape, chunk", [((12,), (1,)), ((3, 4), (1, 1)), ((7, 11, 13), (4, 5, 6)),
                                          ((1, 64, 1, 64), (1, 33, 1, 17)),
                                          ((4097,), (4096,)), ((65, 65), (64, 64)), ((17, 17, 17), (16, 16, 16)),
                                          ((2, 3), (100, 100))])
def test_edge_chunks_and_chunks_of_one_element(shape, chunk, tmp_path):
    for dtype in (np.float32, np.float64):
        x = sample(dtype, shape)
        for word, mode, value in MODES.values():
            with h5py.File(tmp_path / "a.h5", "w") as f:
                d = f.create_dataset("v", shape, dtype, maxshape=(None,) * len(shape), chunks=chunk, compression=443,
                                     compression_opts=(word,))
                d[...] = x
            with h5py.File(tmp_path / "a.h5") as f:
                judge.check_chunks(x, f["v"][...], chunk, mode, value)


def test_a_thousand_small_chunks_and_partial_writes(tmp_path):
    x = sample(np.float32, (1000, 256))
    with h5py.File(tmp_path / "a.h5", "w", rdcc_nbytes=4096) as f:
        d = f.create_dataset("v", x.shape, "f4", chunks=(1, 256), compression=443, compression_opts=(11003,),
                             fillvalue=-1)
        for i in range(0, 1000, 3):
            d[i] = x[i]
        d[1::3, :100] = x[1::3, :100]
    with h5py.File(tmp_path / "a.h5") as f:
        d = f["v"][...]
    judge.check(x[0::3], d[0::3], "abs", 1e-3)
    judge.check(x[1::3, :100], d[1::3, :100], "abs", 1e-3)
    assert (d[2::3] == -1).all() and (d[1::3, 100:] == -1).all()


def test_writing_the_same_again_changes_no_byte(tmp_path):
    x = sample()
    a, b = tmp_path / "a.h5", tmp_path / "b.h5"
    for path in (a, b):
        round_trip(path, x, (11003,), (5, 16, 16))
    with h5py.File(a) as f, h5py.File(b) as g:
        for i in range(f["v"].id.get_num_chunks()):
            at = f["v"].id.get_chunk_info(i).chunk_offset
            assert f["v"].id.read_direct_chunk(at) == g["v"].id.read_direct_chunk(at)


def test_noise_never_grows_beyond_the_promise(tmp_path):
    """At most 64 bytes and 0.1 % more than the raw chunk."""
    rng = np.random.default_rng(1)
    for dtype in (np.float32, np.float64, np.int16):
        bits = rng.integers(0, 256, 100_000 * np.dtype(dtype).itemsize, np.uint8).view(dtype)
        for word in (11003, 90000):
            got = round_trip(tmp_path / "a.h5", bits, (word,), (bits.size,))
            assert stored_bytes(tmp_path / "a.h5", "v") <= bits.nbytes * 1.001 + 64
            if word == 90000 or bits.dtype.kind == "i":
                assert got.tobytes() == bits.tobytes()


def fields():
    return sorted((ROOT / "target/fields/small").glob("*.h5"))


def test_the_fields_are_there():
    assert len(fields()) >= 20, "run `make target/fields/small/done`"


@pytest.mark.parametrize("path", fields(), ids=lambda p: p.stem)
def test_bound_on_fields(path, tmp_path):
    """Real and nasty fields at several bounds; tests/bound_fields.py does the same on the full set."""
    out = run(__import__("sys").executable, ROOT / "tests/bound_fields.py", path, "--out", tmp_path / "a.h5")
    assert " 0 violations" in out, out
