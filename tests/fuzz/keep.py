# SPDX-License-Identifier: MIT OR Apache-2.0
"""Keeps the smallest inputs that reach what searches have reached, for tests/fuzz/replay.rs: one file for each target.

    keep.py PROGRAMS FOLDER...      folders with a folder of inputs for each target, such as target/fuzz/out/corpus

A file holds its inputs one behind the other, each after its length as two bytes, the lower one first.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

TARGETS = {
    "fuzz_frames": "header stored szx lorenzo ndzip bytes planes scaled dense",
    "fuzz_words": "words text json",
    "fuzz_calls": "part file encode filter calls",
}
LONGEST = 400  # bytes of an input
MOST = 12_000  # bytes of a target's inputs


def smallest(program, target, folders):
    """The inputs of one target, shortest first."""
    with tempfile.TemporaryDirectory() as work:
        pool, kept = Path(work, "pool"), Path(work, "kept")
        pool.mkdir(), kept.mkdir()
        for file in (f for folder in folders for f in Path(folder, target).glob("*") if f.stat().st_size <= LONGEST):
            shutil.copy(file, pool)
        merge = [program, "-set_cover_merge=1", "-max_len=4200", kept, pool]
        subprocess.run(merge, env={**os.environ, "H5Z_GPU_FUZZ_TARGET": target}, check=True, stderr=subprocess.DEVNULL)
        return sorted((f.read_bytes() for f in kept.iterdir()), key=lambda b: (len(b), b))


def main(programs, *folders):
    corpus = Path(__file__).with_name("corpus")
    corpus.mkdir(exist_ok=True)
    for program, targets in TARGETS.items():
        for target in targets.split():
            packed, count = b"", 0
            for each in smallest(Path(programs, program), target, folders):
                if len(packed) + len(each) <= MOST:
                    packed, count = packed + len(each).to_bytes(2, "little") + each, count + 1
            Path(corpus, target).write_bytes(packed)
            print(f"{target:8} {count:4} inputs, {len(packed)} bytes")


main(*sys.argv[1:])
