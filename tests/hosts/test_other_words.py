# SPDX-License-Identifier: MIT OR Apache-2.0
"""Stored words that are damaged, belong to another chunk, or were written before 0.1.0; frames that belong
elsewhere."""
import re

import h5py
import judge
import numpy as np
import pytest
from conftest import app, python, run, sample
from h5py import h5d, h5p, h5s, h5t, h5z
from programs import READERS, filters, listed, times

CHUNK = (4, 32, 40)
READ = "import sys, h5py, hashlib\nprint(hashlib.md5(h5py.File(sys.argv[1])['v'][...].tobytes()).hexdigest())"


def write(path, x, words, chunk=CHUNK):
    with h5py.File(path, "w") as f:
        f.create_dataset("v", data=x, chunks=chunk, compression=443, compression_opts=tuple(words))
    return filters(path, "v")[0][2]


def chunks(path):
    """Filter mask and bytes of every chunk as it lies in the file."""
    with h5py.File(path) as f:
        d = f["v"].id
        return [d.read_direct_chunk(d.get_chunk_info(i).chunk_offset) for i in range(d.get_num_chunks())]


def noise(shape):
    """Values that no codec makes smaller."""
    return np.random.default_rng(1).integers(0, 1 << 31, shape, np.uint32).view("f4")


# --- damaged words
# -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("word", [111003, 211003, 390000, 90000])
def test_any_damaged_word_is_named_once_and_the_frames_are_read(word, tmp_path):
    x = sample(np.float32, (12, 32, 40))
    words = write(tmp_path / "a.h5", x, [word])
    want = python(READ, tmp_path / "a.h5")
    raw, old = (tmp_path / "a.h5").read_bytes(), np.array(words, "<u4").tobytes()
    assert raw.count(old) == 1 and "h5z-gpu" not in want
    with h5py.File(tmp_path / "a.h5") as f:
        y = f["v"][...]
    for i in range(len(words)):
        for bit in (0, 9, 30):
            new = np.array(words, "<u4")
            new[i] ^= 1 << bit
            (tmp_path / "b.h5").write_bytes(raw.replace(old, new.tobytes()))
            with h5py.File(tmp_path / "b.h5") as f:
                assert f["v"][...].tobytes() == y.tobytes(), (i, bit)
    text = python(READ, tmp_path / "b.h5")
    assert want in text and text.count("h5z-gpu") == 1 and "words of a dataset are not used" in text, text


def test_under_damaged_words_chunks_are_written_losslessly(tmp_path):
    x = sample(np.float32, (12, 32, 40))
    words = write(tmp_path / "a.h5", x, [11003])
    raw, old = (tmp_path / "a.h5").read_bytes(), np.array(words, "<u4").tobytes()
    (tmp_path / "a.h5").write_bytes(raw.replace(old, np.array([*words[:4], words[4] ^ 1, *words[5:]], "<u4").tobytes()))
    text = python("""if True:
        import sys, h5py, numpy as np
        with h5py.File(sys.argv[1], "a") as f:
            assert h5py.h5z.filter_avail(443)
            f["v"][...] = np.load(sys.argv[2])
        """, tmp_path / "a.h5", np.save(tmp_path / "x.npy", x) or tmp_path / "x.npy")
    assert "written losslessly" in text and text.count("h5z-gpu") == 1, text
    with h5py.File(tmp_path / "a.h5") as f:
        judge.check(x, f["v"][...], "lossless")
    assert {mask for mask, _ in chunks(tmp_path / "a.h5")} == {0}


def test_a_damaged_list_is_refused_where_it_is_given(tmp_path):
    words = list(write(tmp_path / "a.h5", sample(), [11003], (5, 16, 20)))
    words[4] ^= 1
    with pytest.raises(ValueError, match="a word was changed; copy the whole list again, or give one number such as "
                       "11003"):
        write(tmp_path / "b.h5", sample(), words)


# --- frames of another length
# --------------------------------------------------------------------------------------------
BIG = 64 << 20  # elements of 4 bytes: chunks of 256 MiB


def crafted(path, flag=h5z.FLAG_OPTIONAL):
    """A dataset of 256 MiB chunks, one of which is a sound frame of a single byte."""
    write(path, np.array([7], "u1"), [90000], (1,))
    ((_, frame),) = chunks(path)
    assert len(frame) == 65
    plan = h5p.create(h5p.DATASET_CREATE)
    plan.set_chunk((BIG,))
    plan.set_filter(443, flag, (90000,))
    with h5py.File(path, "w") as f:
        d = h5d.create(f.id, b"v", h5t.IEEE_F32LE, h5s.create_simple((BIG,)), plan)
        d.write_direct_chunk((0,), frame)


def test_a_short_frame_gets_a_sentence_and_shows_no_memory(tmp_path):
    crafted(tmp_path / "a.h5")
    what = "h5z-gpu: damaged chunk: the chunk after decoding has 1 bytes where 268435456 are needed"
    text = python("import sys, h5py; h5py.File(sys.argv[1])['v'][-5:]", tmp_path / "a.h5", ok=False)
    assert what in text.splitlines()[-1], text
    # h5dump ends with 0 all the same
    text = run("h5dump", "--enable-error-stack", "-d", "v", "-s", 1000, "-c", 5, tmp_path / "a.h5")
    assert what in text and not re.search(r"\(1000\): \S", text), text


def test_a_short_frame_under_a_mandatory_filter_reads_as_zeros_with_a_sentence(tmp_path):
    """There it may be a chunk that was written under the words of another one; nothing beyond its end is memory."""
    crafted(tmp_path / "a.h5", h5z.FLAG_MANDATORY)
    text = python("import sys, h5py; print(set(h5py.File(sys.argv[1])['v'][1:]))", tmp_path / "a.h5")
    assert ("{np.float32(0.0)}" in text and "a chunk holds 1 bytes, but its words describe one of "
            "268435456" in text), text


def test_words_that_promise_gigabytes_take_none(tmp_path):
    """Sound words of a chunk of 2 GiB, over one of 128 bytes that holds a frame of a single byte."""
    small, big = tmp_path / "a.h5", tmp_path / "b.h5"
    plan = h5p.create(h5p.DATASET_CREATE)
    plan.set_filter(443, h5z.FLAG_MANDATORY, (90000,))
    write(small, np.array([7], "u1"), [90000], (1,))
    ((_, frame),) = chunks(small)
    for path, n in ((small, 16), (big, 1 << 28)):
        plan.set_chunk((n,))
        with h5py.File(path, "w") as f:
            d = h5d.create(f.id, b"v", h5t.IEEE_F64LE, h5s.create_simple((n,)), plan)
            if path == small:
                d.write_direct_chunk((0,), frame)
    old, new = (np.array(filters(path, "v")[0][2], "<u4").tobytes() for path in (small, big))
    raw = small.read_bytes()
    assert raw.count(old) == 1
    small.write_bytes(raw.replace(old, new))
    text = python("""if True:
        import re, sys, h5py
        # getrusage would count what this process was forked from.
        print(h5py.File(sys.argv[1])["v"][1:].sum(),
              int(re.search(r"VmHWM:\\s*(\\d+)", open("/proc/self/status").read())[1]) >> 10, "MiB")
        """, small)
    assert "its words describe one of 2147483648" in text, text
    assert text.splitlines()[-1].startswith("0.0 ") and int(text.split()[-2]) < 500, text



@pytest.mark.parametrize("word", [111003, 211003, 390000, 90000])
def test_frames_of_any_codec_fit_their_chunk(word, tmp_path):
    """Shorter and longer ones are refused; `bytes` and `stored` come from text and from noise."""
    make = {390000: lambda n: sample(np.float32, (n,), noise=1e-4), 90000: lambda n: np.arange(n, dtype="u1")}
    for n in (3000, 5000):
        x = make.get(word, lambda n: sample(np.float32, (n,)))(n)
        write(tmp_path / f"{n}.h5", x, [word], (n,))
        write(tmp_path / "to.h5", np.zeros(4000, x.dtype), [word], (4000,))
        ((_, frame),) = chunks(tmp_path / f"{n}.h5")
        with h5py.File(tmp_path / "to.h5", "a") as f:
            f["v"].id.write_direct_chunk((0,), frame)
        size = x.itemsize
        with h5py.File(tmp_path / "to.h5") as f, pytest.raises(OSError, match=f"has {n * size} bytes where "
                                                               f"{4000 * size} are needed"):
            f["v"][...]


# --- words of another chunk
# ----------------------------------------------------------------------------------------------
@pytest.mark.third
@pytest.mark.parametrize("flag", "om")
@pytest.mark.parametrize("content", ["smooth f8", "noise"])
@pytest.mark.parametrize("chunk", [(12, 32, 20), (2, 32, 40), (12, 31, 1)], ids=times)
def test_the_words_of_another_chunk_cost_nothing_but_size(content, chunk, flag, tmp_path):
    """A program whose HDF5 cannot be asked is given words that do not fit: every bit is kept, and every host reads it.

    An optional filter leaves such chunks to HDF5. A mandatory one must not: HDF5 would lose them.
    """
    x = noise((12, 32, 40)) if content == "noise" else sample(content[-2:], (12, 32, 40))
    (tmp_path / "raw").write_bytes(x.tobytes())
    words = write(tmp_path / "a.h5", x, [11003])
    kind = {4: "f32", 8: "f64"}[x.itemsize]
    text = run(app("stripped"), "write", tmp_path / "b.h5", "v", kind, times(x.shape), times(chunk), tmp_path / "raw",
               flag, *words)
    assert "another dataset" in text and text.count("h5z-gpu") == 1, text
    assert {mask for mask, _ in chunks(tmp_path / "b.h5")} == {int(flag == "o")}
    for reader in ("h5dump", "h5py", "netCDF4", "PyTables", "app stripped"):
        judge.check(x, READERS[reader](tmp_path / "b.h5", ["v"], {"v": x}, tmp_path)["v"], "lossless")
    run("h5repack", "-l", "v:CHUNK=3x32x40", tmp_path / "b.h5", tmp_path / "c.h5")
    with h5py.File(tmp_path / "c.h5") as f:
        worst = judge.check(x, f["v"][...], "abs", 1e-3)
    assert listed(filters(tmp_path / "c.h5", "v")[0][2]) == (11003, 3, [3, 32, 40])
    assert worst > 0 or content == "noise"


def test_a_property_list_of_numbers_given_to_strings(tmp_path):
    """HDF5 up to 2.0 asks nobody about strings of variable length, and hands the references to them to the filter."""
    x = [f"string {i}" for i in range(100)]
    write(tmp_path / "a.h5", sample(np.float32, (12, 32, 40)), [11003])
    text = python("""if True:
        import sys, h5py
        from h5py import h5d, h5s, h5t
        with h5py.File(sys.argv[1]) as a, h5py.File(sys.argv[2], "w") as b:
            a["v"][0]  # from here on HDF5 has the filter
            plan = a["v"].id.get_create_plist()
            plan.set_chunk((50,))
            h5d.create(b.id, b"v", h5t.py_create(h5py.string_dtype(), logical=True), h5s.create_simple((100,)), plan)
            b["v"][...] = [f"string {i}" for i in range(100)]
        """, tmp_path / "a.h5", tmp_path / "b.h5")
    assert "a chunk has 800 bytes, but its words describe one of 20480" in text and text.count("h5z-gpu") == 1, text
    with h5py.File(tmp_path / "b.h5") as f:
        assert list(f["v"].asstr()[...]) == x
    assert {mask for mask, _ in chunks(tmp_path / "b.h5")} == {1}
    assert '"string 99"' in run("h5dump", "-d", "v", tmp_path / "b.h5")


def test_strings_under_h5repack_get_advice_for_strings(tmp_path):
    x = [f"string {i}" for i in range(100)]
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f.create_dataset("v", data=x, dtype=h5py.string_dtype(), chunks=(50,))
        f.create_dataset("n", data=sample(), chunks=(5, 16, 20))
    text = run("h5repack", "-f", "UD=443,1,1,11003", tmp_path / "a.h5", tmp_path / "b.h5")
    assert "Strings of variable length" in text and "rdynamic" not in text and text.count("h5z-gpu") == 1, text
    with h5py.File(tmp_path / "b.h5") as f:
        assert list(f["v"].asstr()[...]) == x
        assert 0 < judge.check(sample(), f["n"][...], "abs", 1e-3) <= 1
