# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a build between releases writes is never taken for a release's: codecs/src/FORMAT.md §1.

The crate of the codecs is built from a copy of its sources: as they are, as those of a release, and with a codec that
was changed as somebody would who works on the next release."""
import os
import re
import shutil
import subprocess

import pytest
from conftest import ROOT, use
from test_release import VERSION

# Encodes 9000 numbers by `lorenzo` under a bound of 1e-3, in one tile or in more.
WRITER = """
use std::io::Write;
fn main() {
    let values: Vec<f32> = (0..9000).map(|i| (i as f32 * 0.01).sin()).collect();
    let raw: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    let params = h5z_gpu_codecs::Params::new(h5z_gpu_codecs::words::request(&[211003]).unwrap(),
                                             h5z_gpu_codecs::Dtype::F32, &[9000]).unwrap();
    eprintln!("{}", h5z_gpu_codecs::release::SOURCES);
    std::io::stdout().write_all(&h5z_gpu_codecs::Cpu::with_threads(1).encode(&params, &raw)).unwrap();
}
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A workspace of the codecs alone and the program above."""
    tree = tmp_path_factory.mktemp("tree")
    shutil.copytree(ROOT / "codecs", tree / "codecs", ignore=shutil.ignore_patterns("RELEASE"))
    shutil.copy(ROOT / "Cargo.lock", tree)
    workspace = (ROOT / "Cargo.toml").read_text().split("[package]")[0]
    members = 'members = ["codecs", "writer"]'
    (tree / "Cargo.toml").write_text(re.sub(r"members = \[.*\]\ndefault-members = .*", members, workspace, count=1))
    (tree / "writer/src").mkdir(parents=True)
    (tree / "writer/src/main.rs").write_text(WRITER)
    (tree / "writer/Cargo.toml").write_text('[package]\nname = "writer"\nversion = "0.0.0"\nedition = "2024"\n'
                                            '[dependencies]\nh5z-gpu-codecs = { path = "../codecs" }\n')
    return tree


def written(tree):
    """The frame that the tree's program writes, and the sum of its sources."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("CARGO")}
    env["CARGO_HOME"] = os.environ.get("CARGO_HOME", os.path.expanduser("~/.cargo"))
    made = subprocess.run(["cargo", "run", "--quiet", "-p", "writer"], cwd=tree, env=env, capture_output=True)
    assert made.returncode == 0, made.stderr.decode()
    return made.stdout, made.stderr.decode().split()[-1]


def change(path, before, after):
    text = path.read_text()
    assert text.count(before) == 1, before
    path.write_text(text.replace(before, after))


def draft(frame):
    return int.from_bytes(frame[52:56], "little")


# Decodes the frame of a file to standard output as the library does, or says there why not.
DECODE = """
import pathlib, sys
import numpy as np
from h5z_gpu import batches
frame, values = np.frombuffer(pathlib.Path(sys.argv[1]).read_bytes(), "u1"), np.empty(9000, "f4")
try:
    batches.decode([frame], [values])
    print(values.tobytes().hex())
except ValueError as why:
    print(why)
"""


def decoded(frame, tmp_path):
    """What the library says to a frame: the bytes as hexadecimal digits, or why it refuses them."""
    (tmp_path / "frame").write_bytes(frame)
    return use(DECODE, tmp_path / "frame").strip()


@pytest.mark.third
def test_a_changed_codec_of_an_unreleased_build_is_refused_and_named(tree, reference, tmp_path):
    def is_read(frame):
        assert decoded(frame, tmp_path) == reference.decode(frame).hex()

    plain, sources = written(tree)
    assert draft(plain) == reference.STATE
    is_read(plain)

    (tree / "codecs/RELEASE").write_text(f"{VERSION} {sources}\n")
    released, _ = written(tree)
    assert draft(released) == 0 and len(released) == len(plain)
    is_read(released)

    # A comment makes sources others than a release's, and its bytes stay.
    with (tree / "codecs/src/codec/mod.rs").open("a") as f:
        f.write("// Changed.\n")
    assert written(tree)[0] == plain

    # Other bytes of the same version. The golden vectors are others then, and so is the state that their test demands.
    change(tree / "codecs/src/constants.rs", "LORENZO_TILE: usize = 8192;", "LORENZO_TILE: usize = 4096;")
    changed, _ = written(tree)
    assert changed[56:] != plain[56:], "the change must be one of bytes"
    state = reference.STATE ^ 1
    change(tree / "codecs/src/release.rs", f"0x{reference.STATE >> 16:04x}_{reference.STATE & 0xFFFF:04x}", str(state))
    marked, _ = written(tree)
    assert marked[56:] == changed[56:] and draft(marked) == state
    with pytest.raises(reference.Refused, match=f"F18: written by an unreleased build, in state {state:08x}"):
        reference.decode(marked)
    said = decoded(marked, tmp_path)
    assert re.search(f"an unreleased build.*{state:08x}.*write it again with a release", said), said
