# SPDX-License-Identifier: MIT OR Apache-2.0
"""The jar for netCDF-Java: by its own check, beside the plugin on damaged frames, beside zstd, and inside netCDF-Java.

netCDF-Java itself is not fetched here: NETCDF_JAVA, a class path such as netcdfAll-5.6.0.jar, says where it is. Without
it what needs it is skipped.
"""
import ctypes
import hashlib
import os
import re
import struct
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT, run

sys.path.insert(0, str(ROOT / "readers/java"))
from values import read

JAR = ROOT / "target/java/h5z-gpu-netcdf-java.jar"
CHECK = f"{JAR}:{ROOT}/target/java/check"
with_netcdf_java = pytest.mark.skipif("NETCDF_JAVA" not in os.environ, reason="NETCDF_JAVA=netcdfAll.jar is not set")


@pytest.fixture(scope="module")
def jar():
    said = run("make", "--no-print-directory", "java")
    assert re.search(r"vectors: [1-9]\d* decoded", said) and re.search(r"refused: [1-9]\d* frames", said), said
    return JAR


def test_the_jar_needs_no_other_and_holds_its_own_classes_alone(jar):
    held = run("jar", "tf", jar).split()
    classes = [n for n in held if n.endswith(".class")]
    assert classes and all(n.startswith("org/h5zgpu/") for n in classes), held
    assert "META-INF/services/ucar.nc2.filter.FilterProvider" in held
    # Java 8 loads it: a class file of version 52.
    said = run("javap", "-v", "-cp", jar, "org.h5zgpu.Frame")
    assert "major version: 52" in said
    needs = run("jdeps", "--ignore-missing-deps", "-summary", jar)
    assert set(re.findall(r"-> (\S+)", needs)) <= {"java.base", "not"}, needs


# --- Beside other decoders -------------------------------------------------------------------------------------------


def fnv(data):
    h = 0xCBF29CE484222325
    for byte in data:
        h = (h ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"{h:016x}"


def test_java_and_the_plugin_judge_damaged_frames_alike(jar, tmp_path):
    run("java", "-ea", "-Xmx256m", "-cp", CHECK, "org.h5zgpu.check.Damage", "tests/vectors", "6", "2", tmp_path)
    plugin = ctypes.CDLL(str(ROOT / "target/plugin/libh5zgpu.so"))
    plugin.h5z_gpu_decode.restype = ctypes.c_int64
    data, at, decoded, stricter, hashed = (tmp_path / "frames").read_bytes(), 0, 0, 0, 0
    verdicts = (tmp_path / "verdicts").read_text().split()
    for number, verdict in enumerate(verdicts):
        length, raw = struct.unpack_from("<2I", data, at)
        frame, at = data[at + 8 : at + 8 + length], at + 8 + length
        out = ctypes.create_string_buffer(max(raw, 1))
        got = plugin.h5z_gpu_decode(frame, ctypes.c_size_t(length), out, ctypes.c_size_t(raw))
        where = f"frame {number}, codec {frame[9]}: Java says {verdict}, the plugin {got}"
        if len(verdict) != 16:
            # Zstandard frames that RFC 8878 forbids may be read or refused: section 3.3 of `bytes`.
            stricter += got >= 0 and verdict == "B8"
            assert got < 0 or verdict == "B8", where
            continue
        decoded += 1
        assert got == raw, where
        if raw <= 20000:
            hashed += 1
            assert fnv(out.raw[:raw]) == verdict, where
    assert at == len(data) and decoded > 500 and hashed > 200 and stricter < len(verdicts) / 50


def contents():
    """What zstd finds easy, hard, repeated and mixed, of lengths at and beside the ends of its blocks."""
    r, text = np.random.default_rng(3), (ROOT / "codecs/src/FORMAT.md").read_bytes()
    for n in (1, 2, 7, 64, 255, 256, 257, 1000, 4097, 65535, 131072, 131073, 300000):
        yield bytes(n)
        yield r.integers(0, 256, n, dtype="u1").tobytes()
        yield (text * (n // len(text) + 1))[:n]
        yield r.geometric(0.3, n).astype("u1").tobytes()
        yield np.cumsum(r.normal(size=n // 4 + 1)).astype("f4").view("u1").reshape(-1, 4).T.tobytes()[:n]


def test_java_decodes_what_zstd_writes(jar, tmp_path):
    import zstandard

    with open(tmp_path / "frames", "wb") as f:
        for number, content in enumerate(contents()):
            for level in (-7, 1, 3, 6, 12, 19, 22):
                how = zstandard.ZstdCompressor(level=level, write_checksum=number % 2 == 0,
                                               write_content_size=(number + level) % 3 != 0)
                if number % 3 == 0 and len(content) > 100:  # blocks that keep the tables of those before
                    parts, cut = how.compressobj(), len(content) // 3
                    frame = parts.compress(content[:cut]) + parts.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
                    frame += parts.compress(content[cut:]) + parts.flush()
                else:
                    frame = how.compress(content)
                f.write(struct.pack("<2I", len(frame), len(content)) + frame + content)
    said = run("java", "-ea", "-cp", CHECK, "org.h5zgpu.check.ZstdFrames", tmp_path / "frames")
    assert re.search(r"zstd: \d{3} frames, 0 wrong", said), said


# --- Inside netCDF-Java ----------------------------------------------------------------------------------------------

WORDS = (11002, 111002, 211002, 511002, 131003, 231003, 121003, 240600, 390000, 590000, 90000)


def written(path):
    """Every codec, type and byte order that netCDF-Java knows, in chunks of which some reach beyond the array."""
    import h5py

    z, y, x = np.indices((9, 30, 44))
    smooth = 40 * z * z - 64 * y * x + 900 * x + (z * 7919 + y * 104729 + x * 1299709) * 40503 % 65521 % 16
    with h5py.File(path, "w", libver=("earliest", "v108")) as f:
        for dtype in ("<f4", ">f4", "<f8", ">f8"):
            for word in WORDS:
                a = (smooth / 64).astype(dtype)
                a[0, 0, :5] = np.nan, np.inf, -np.inf, -0.0, 0.0
                f.create_dataset(f"{dtype[1:]}{'big' * (dtype[0] == '>')}_{word}", data=a, chunks=(4, 16, 44),
                                 compression=443, compression_opts=(word,))
        for dtype in ("i1", "u1", "<i2", ">i2", "u2", "i4", "u4", ">i4", "i8", "u8"):
            name = f"integers/{dtype.replace('>', 'big').replace('<', 'little')}"
            a = (smooth // 7 % 120).astype(dtype)
            f.create_dataset(name, data=a, chunks=(5, 30, 17), compression=443, compression_opts=(90000,))
        clock = 1_500_000_000_000_000_000 + np.arange(5000, dtype="i8") * 60_000_000
        f.create_dataset("clock", data=clock, chunks=(2000,), compression=443, compression_opts=(90000,))
        f.create_dataset("decimals", data=np.round(smooth / 64, 2), chunks=(9, 30, 44), compression=443,
                         compression_opts=(90000,))
        many = (smooth[:6, :20, :36] / 8).astype("f4").reshape(2, 3, 4, 5, 6, 6)
        f.create_dataset("six_axes", data=many, chunks=(2, 2, 4, 5, 6, 3), compression=443, compression_opts=(11002,))
        f.create_dataset("vectors", data=(smooth / 8).astype("f4").reshape(-1, 3), chunks=(1024, 3), compression=443,
                         compression_opts=(511002,))
        for dtype in ("f4", "f8", "i4"):  # whole cubes of ndzip
            f.create_dataset(f"cubes_{dtype}", data=(40 * (z * z + x))[:8].reshape(16, 15, 44)[:, :, :32].astype(dtype),
                             chunks=(16, 15, 32), compression=443, compression_opts=(390000,))
        f.create_dataset("growing", data=np.arange(3000.0), chunks=(256,), maxshape=(None,), compression=443,
                         compression_opts=(211002,))
        f.create_dataset("beside_gzip", data=smooth.astype("i4"), chunks=(9, 30, 44), shuffle=True, compression="gzip")
        codecs = set()

        def note(name, item):
            if isinstance(item, h5py.Dataset) and item.id.get_create_plist().get_filter(0)[0] == 443:
                codecs.update(item.id.read_direct_chunk(item.id.get_chunk_info(k).chunk_offset)[1][9]
                              for k in range(item.id.get_num_chunks()))

        f.visititems(note)
    return codecs


def hashes(path):
    """As Values prints them: of all values, and of those without the first and last index of each axis of three."""
    import h5py

    found = {}

    def add(name, item):
        if isinstance(item, h5py.Dataset):
            a = item[...]
            inner = a[tuple(slice(1, n - 1) if n > 2 else slice(None) for n in a.shape)]
            found[name] = tuple(
                hashlib.sha256(np.ascontiguousarray(p).astype(p.dtype.newbyteorder("<")).tobytes()).hexdigest()
                for p in (a, inner))

    with h5py.File(path) as f:
        f.visititems(add)
    return found


@with_netcdf_java
def test_netcdf_java_reads_what_h5py_reads(jar, tmp_path, monkeypatch):
    monkeypatch.setenv("H5Z_GPU_DEVICE", "cpu")
    path = tmp_path / "written.h5"
    with_plugin()
    codecs = written(path)
    assert set(range(7)) == codecs, codecs
    want, got = hashes(path), read(jar, tmp_path, path)
    assert len(want) > 55
    wrong = {n: (got.get(n), h) for n, h in want.items() if got.get(n, ())[2:] != h}
    assert not wrong, wrong


@with_netcdf_java
def test_netcdf_java_refuses_a_damaged_chunk_and_reads_the_others(jar, tmp_path):
    import h5py

    path = tmp_path / "written.h5"
    with_plugin()
    written(path)
    want, damaged = hashes(path), {}
    with h5py.File(path) as f:
        for k, name in enumerate(sorted(n for n in want if n != "beside_gzip")):
            chunk = f[name].id.get_chunk_info(k % f[name].id.get_num_chunks())
            damaged[name] = chunk.byte_offset + (k * 7919) % chunk.size
    data = bytearray(path.read_bytes())
    left = set(sorted(damaged)[::2])
    for k, name in enumerate(sorted(damaged)):
        if name not in left:
            data[damaged[name]] ^= 1 << k % 8
    path.write_bytes(data)
    got = read(jar, tmp_path, path)
    for name in damaged:
        if name in left:
            assert got[name][2:] == want[name], name
        else:
            assert got[name][0] == "refused" and "h5z-gpu: a chunk cannot be read" in got[name][1], (name, got[name])


@with_netcdf_java
def test_the_page_shows_a_program_that_reads(jar, tmp_path):
    import h5py

    page = (ROOT / "docs/languages.md").read_text()
    (program,) = re.findall(r"^```java\n(// (Read[.]java)\n.*?)^```$", page, re.M | re.S)
    (tmp_path / program[1]).write_text(program[0])
    with_plugin()
    with h5py.File(tmp_path / "small.nc", "w", libver=("earliest", "v108")) as f:
        f.create_dataset("tas", data=np.arange(8 * 6 * 9, dtype="f4").reshape(8, 6, 9), chunks=(8, 6, 9),
                         compression=443, compression_opts=(90000,))
    path = f"{JAR}:{os.environ['NETCDF_JAVA']}:{tmp_path}"
    run("javac", "-nowarn", "-cp", path, "-d", tmp_path, tmp_path / "Read.java")
    assert run("java", "-cp", path, "Read", tmp_path / "small.nc").split()[-4:] == ["0.0", "1.0", "2.0", "3.0"]
    dumped = run("java", "-cp", path, "ucar.nc2.write.Ncdump", tmp_path / "small.nc", "-v", "tas")
    assert "428.0, 429.0, 430.0, 431.0" in dumped, dumped


def with_plugin():
    """HDF5 of this process finds the plugin that was built."""
    import h5py

    folder = str(ROOT / "target/plugin").encode()
    paths = [h5py.h5pl.get(k) for k in range(h5py.h5pl.size())]
    if folder not in paths:
        h5py.h5pl.prepend(folder)
    assert h5py.h5z.filter_avail(443), Path(folder.decode())
