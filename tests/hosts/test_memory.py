# SPDX-License-Identifier: MIT OR Apache-2.0
"""Memory runs out inside the filter: the process lives, and a chunk is coded, stored, or refused with a sentence."""
import pytest
from conftest import HERE, clean, hdf5_dir, run

CODECS = [("szx", 111003, "f4"), ("lorenzo", 211003, "f4"), ("lorenzo", 211003, "f8"), ("auto", 11003, "f4"),
          ("ndzip", 390000, "f4"), ("ndzip", 390000, "f8"), ("bytes", 0, "s")]
NAMES = [f"{codec}-{dtype}" for codec, _, dtype in CODECS]


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """tests/hosts/memory.c; its own malloc is what the filter gets, hence -rdynamic."""
    out = tmp_path_factory.mktemp("memory") / "memory"
    run("cc", "-std=gnu11", "-O1", "-rdynamic", "-Wall", "-Wextra", "-Werror", "-o", out, HERE / "memory.c",
        "-I/usr/include/hdf5/serial", f"-L{hdf5_dir()}", "-lhdf5", "-lm", "-lpthread", "-ldl")
    return out


def series(program, *args, threads, cwd):
    """Runs one series for writing and one for reading; gives both lines. The program fails where a process ended."""
    lines = run(program, *args, env=clean(H5Z_GPU_THREADS=str(threads), H5Z_GPU_LOG="off"), cwd=cwd).splitlines()
    assert [line.split()[0] for line in lines] == ["writing",
                                                   "reading"] and all(" 0 ended" in line for line in lines), lines
    return lines


@pytest.mark.third
@pytest.mark.parametrize("codec, word, dtype", CODECS, ids=NAMES)
@pytest.mark.parametrize("whose", ["own", "host"])
def test_every_request_for_memory_may_fail(codec, word, dtype, whose, program, tmp_path):
    writing, _ = series(program, "fail", word, dtype, "16x32x32", whose, 1, threads=1, cwd=tmp_path)
    # Where choosing a codec finds no memory, coding mostly does.
    assert ("stored" in writing or codec == "auto") and "coded" in writing and "no memory" in writing, writing


@pytest.mark.parametrize("codec, word, dtype", [CODECS[0], CODECS[1], CODECS[4]], ids=["szx", "lorenzo", "ndzip"])
def test_requests_of_eight_threads_may_fail(codec, word, dtype, program, tmp_path):
    series(program, "fail", word, dtype, "64x128x128", "own", 41, threads=8, cwd=tmp_path)


@pytest.mark.third
@pytest.mark.parametrize("threads", [1, 8])
@pytest.mark.parametrize("codec, word, dtype", [CODECS[0], CODECS[1], CODECS[4]], ids=["szx", "lorenzo", "ndzip"])
def test_any_amount_of_address_space_will_do(codec, word, dtype, threads, program, tmp_path):
    series(program, "space", word, dtype, "32x128x128", 997, threads=threads, cwd=tmp_path)
