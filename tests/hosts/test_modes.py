# SPDX-License-Identifier: MIT OR Apache-2.0
"""Modes and codecs in Python are those of the library, and what words mean is what the library says."""
import re

import pytest
from conftest import ROOT, use

PACKAGE = ROOT / "plugin/python/h5z_gpu"
HEAD = """
import inspect, json, itertools, numpy as np
import h5z_gpu
from h5z_gpu import Lossless, Lossy, batches, library, modes
from h5z_gpu.stored_words import StoredWords, is_list, meaning
"""


def test_lossy_has_a_keyword_for_each_mode_and_no_other():
    use(f"""{HEAD}
given = set(inspect.signature(Lossy).parameters)
assert given == {{*modes.bounds(), "bound", "mode", "codec", "keep", "fill_value", "of", "unknown"}}, given
for keyword, mode in modes.bounds().items():
    how = Lossy(**{{keyword: float(mode.example)}})
    assert (how.mode, how.bound, how) == (mode, float(mode.example), Lossy(how.bound, mode.name))
    assert Lossy.from_filter_options(how.words) == how and batches.named(how)[:2] == (mode.name, how.bound)
    assert mode.short in h5z_gpu.Lossy.__doc__ or keyword in h5z_gpu.Lossy.__doc__
assert (Lossless().mode.keyword, Lossless().bound) == ("lossless", 0)
""")


def test_a_codec_takes_the_modes_that_the_table_says():
    use(f"""{HEAD}
seen = set()
for mode, codec in itertools.product(modes.all_modes(), modes.codecs()):
    text = f"mode={{mode.name}},codec={{codec}}" + (f",bound={{mode.example}}" if mode.example else "")
    try:
        words = library.words(text)
    except ValueError:
        assert codec not in mode.codecs, text
        continue
    assert codec in mode.codecs, text
    seen.add(codec)
    said = meaning(words)
    assert (said.mode, said.codec, said.stored) == (mode.name, codec, None)
assert seen == set(modes.codecs())
""")


def test_the_reader_that_stands_alone_knows_the_same_modes_and_codecs():
    use(f"""{HEAD}
from h5z_gpu import reference
for number, (name, known, *_) in enumerate(reference.CODECS):
    assert modes.frame_codec(number) == name
    assert {{m.number for m in modes.all_modes() if name in m.codecs}} <= set(known), name
assert modes.frame_codec(len(reference.CODECS)) == f"codec {{len(reference.CODECS)}}"
""")


TYPES = ["<f4", ">f8", "<i4", "|u1", ">u8", "|V12", "<f2"]


@pytest.mark.parametrize("word", [11003, 40600, 90000])
def test_a_stored_list_is_read_field_by_field(word):
    """Lists of HDF5 itself: what h5py says of the dataset is what the words say."""
    use(f"""{HEAD}
import h5py
with h5py.File("x", "w", driver="core", backing_store=False) as f:
    for k, (kind, fill) in enumerate(itertools.product({TYPES!r}, (None, 3))):
        kind = np.dtype(kind)
        fill = None if kind.kind == "V" else fill
        d = f.create_dataset(f"d{{k}}", (9, 1, 20), kind, chunks=(4, 1, 8), compression=443, compression_opts=({word},),
                             fillvalue=fill)
        words = d.id.get_create_plist().get_filter(0)[2]
        said = meaning(words)
        s = said.stored
        assert is_list(words) and not is_list(({word},)) and isinstance(s, StoredWords)
        assert (s.typed, s.size, s.chunk, s.original_rank, s.sees_values) == ({word}, kind.itemsize, (4, 8), 3, True)
        assert s.kind == {{"f": "float", "i": "integer", "u": "integer", "V": "bytes"}}[kind.kind]
        assert s.big_endian == (kind.str[0] == ">") and (s.kind != "integer" or s.signed == (kind.kind == "i"))
        lossy = kind.kind == "f" and {word} != 90000
        assert s.may_lose == lossy
        if lossy:
            bits = None if fill is None else int.from_bytes(np.array(fill, kind.newbyteorder("<")).tobytes(), "little")
            assert (s.fill_bits, s.fill_value) == (bits, fill)
            assert (s.exponent_bits, s.mantissa_bits) == {{2: (5, 10), 4: (8, 23), 8: (11, 52)}}[kind.itemsize]
        assert json.loads(json.dumps(said.text)) == library.text(words)
        for at in range(len(words)):
            try:
                meaning([w ^ 1 << 9 if i == at else w for i, w in enumerate(words)])
            except ValueError:
                continue
            raise AssertionError(f"word {{at}} was changed, and it was not noticed")
""")


def test_nothing_but_the_library_and_the_reader_that_stands_alone_takes_words_apart():
    shifts = re.compile(r"words\[\d+\] *(>>|&|\|)|0xF1C0DE", re.IGNORECASE)
    others = [p for p in PACKAGE.rglob("*.py") if p.name != "reference.py"]
    assert [p.name for p in others if shifts.search(p.read_text())] == []


def test_fast_and_small_through_the_filter_and_by_write(tmp_path):
    """They take every bound and type; a frame names its codec, and the reader that stands alone reads it."""
    use(f"""{HEAD}
import h5py, judge
from h5z_gpu import reference
rng = np.random.default_rng(5)
smooth = np.add.outer(np.add.outer(np.sin(np.arange(20) / 7), np.cos(np.arange(48) / 9)), np.sin(np.arange(64) / 5))
few = rng.choice(rng.normal(size=9), smooth.shape)
fields = {{"smooth": smooth, "decimals": np.round(smooth, 2), "few": few}}
names, lens = set(), {{}}
for (name, v), kind in itertools.product(fields.items(), ("<f4", ">f8", "<f2", "|i1")):
    a = (v * 20 if kind[1] == "i" else v).astype(kind)
    if kind[1] == "f":
        a[3, 4, :9] = np.nan
    for mode in modes.all_modes():
        for codec in ("auto", "fast", "small", "planes" if "planes" in mode.codecs else "szx"):
            text = f"mode={{mode.name}},codec={{codec}}" + (f",bound={{mode.example}}" if mode.example else "")
            words = tuple(library.words(text))
            options = {{"chunks": (20, 24, 64), "compression": 443, "compression_opts": words}}
            with h5py.File({str(tmp_path / "x.h5")!r}, "w") as f:
                f.create_dataset("d", data=a, **options)
                h5z_gpu.write(f.create_dataset("e", a.shape, a.dtype, **options), a)
            with h5py.File({str(tmp_path / "x.h5")!r}) as f:
                back = f["d"][...]
                frames = [x.id.read_direct_chunk((0, y, 0))[1] for x in (f["d"], f["e"]) for y in (0, 24)]
            assert frames[:2] == frames[2:], text
            chunk = np.ascontiguousarray(back[:, :24])
            assert bytes(reference.decode(frames[0])) == chunk.tobytes(), text
            how = "lossless" if a.dtype.kind == "i" else mode.name
            judge.check_chunks(a, back, (20, 24, 64), how, float(mode.example or 0))
            lens[codec] = len(frames[0]) + len(frames[1]), frames
            if codec == "small":
                names.add(frames[0][9])
        assert lens["small"][0] <= min(n for n, _ in lens.values()), (name, kind, text, lens)
        assert lens["fast"][1] == lens.get("planes" if "planes" in mode.codecs else "szx")[1], (name, kind, text)
        lens.clear()
assert names == {{2, 4, 6, 7}}, names  # lorenzo, bytes, scaled, dense
""")
