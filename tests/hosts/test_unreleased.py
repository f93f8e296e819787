# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a build between releases writes is never taken for a release's: codecs/src/FORMAT.md §1.

The crates of the codecs and of the kernels are built from a copy of their sources: as they are, as those of a release,
and with a codec or a kernel that was changed as somebody would who works on the next release."""
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
    eprintln!("{} {}", h5z_gpu_codecs::release::RELEASED, h5z_gpu_codecs::release::SOURCES);
    eprintln!("{} {}", h5z_gpu_kernels::RELEASED, h5z_gpu_kernels::SUM);
    std::io::stdout().write_all(&h5z_gpu_codecs::Cpu::with_threads(1).encode(&params, &raw)).unwrap();
}
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A workspace of codecs and kernels alone and the program above."""
    tree = tmp_path_factory.mktemp("tree")
    for crate in ("codecs", "kernels"):
        shutil.copytree(ROOT / crate, tree / crate, ignore=shutil.ignore_patterns("RELEASE"))
    shutil.copy(ROOT / "Cargo.lock", tree)
    workspace = (ROOT / "Cargo.toml").read_text().split("[package]")[0]
    members = 'members = ["codecs", "kernels", "writer"]'
    (tree / "Cargo.toml").write_text(re.sub(r"members = \[.*\]\ndefault-members = .*", members, workspace, count=1))
    (tree / "writer/src").mkdir(parents=True)
    (tree / "writer/src/main.rs").write_text(WRITER)
    (tree / "writer/Cargo.toml").write_text('[package]\nname = "writer"\nversion = "0.0.0"\nedition = "2024"\n'
                                            '[dependencies]\nh5z-gpu-codecs = { path = "../codecs" }\n'
                                            'h5z-gpu-kernels = { path = "../kernels" }\n')
    return tree


def written(tree):
    """The frame that the tree's program writes; whether codecs and kernels are a release's, and the sums of their
    sources."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("CARGO")}
    env["H5Z_GPU_CUDA"] = "off"
    env["CARGO_HOME"] = os.environ.get("CARGO_HOME", os.path.expanduser("~/.cargo"))
    made = subprocess.run(["cargo", "run", "--quiet", "-p", "writer"], cwd=tree, env=env, capture_output=True)
    assert made.returncode == 0, made.stderr.decode()
    codecs, codecs_sum, kernels, kernels_sum = made.stderr.decode().split()[-4:]
    return made.stdout, (codecs == "true", kernels == "true"), (codecs_sum, kernels_sum)


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

    plain, is_release, sums = written(tree)
    assert draft(plain) == reference.STATE and is_release == (False, False)
    is_read(plain)

    for crate, total in zip(("codecs", "kernels"), sums):
        (tree / crate / "RELEASE").write_text(f"{VERSION} {total}\n")
    released, is_release, _ = written(tree)
    assert draft(released) == 0 and len(released) == len(plain) and is_release == (True, True)
    is_read(released)

    # A kernel writes the codecs' bytes, or is at fault: another one is named by the build's version alone.
    with (tree / "kernels/szx/format.cuh").open("a") as f:
        f.write("// Changed.\n")
    assert written(tree)[:2] == (released, (True, False))

    # A comment makes sources others than a release's, and its bytes stay.
    with (tree / "codecs/src/codec/mod.rs").open("a") as f:
        f.write("// Changed.\n")
    assert written(tree)[0] == plain

    # Other bytes of the same version. The golden vectors are others then, and so is the state that their test demands.
    change(tree / "codecs/src/constants.rs", "LORENZO_TILE: usize = 8192;", "LORENZO_TILE: usize = 4096;")
    changed = written(tree)[0]
    assert changed[56:] != plain[56:], "the change must be one of bytes"
    state = reference.STATE ^ 1
    change(tree / "codecs/src/release.rs", f"0x{reference.STATE >> 16:04x}_{reference.STATE & 0xFFFF:04x}", str(state))
    marked = written(tree)[0]
    assert marked[56:] == changed[56:] and draft(marked) == state
    with pytest.raises(reference.Refused, match=f"F18: written by an unreleased build, in state {state:08x}"):
        reference.decode(marked)
    said = decoded(marked, tmp_path)
    assert re.search(f"an unreleased build.*{state:08x}.*write it again with a release", said), said
