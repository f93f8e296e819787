# SPDX-License-Identifier: MIT OR Apache-2.0
"""The folder that `make release` leaves, as far as files tell: complete, of one version, within the sizes, with sums,
licences and SBOMs. `make release` calls this for its own folder; without one, a small one is made."""
import hashlib
import json
import os
import re
import tarfile
import tomllib
import zipfile

import pytest
from conftest import LICENCES, ROOT, VERSION, licences_of, run, tool

# A wheel with kernels, without; the decoders as a module.
LARGEST, LARGEST_FOR_CPU, LARGEST_MODULE = 25_000_000, 6_000_000, 500_000
SBOMS = {"plugin": "h5z-gpu-plugin", "program": "h5z-gpu-program", "preload": "h5z-gpu-preload",
         "wasm": "h5z-gpu-wasm", "h5wasm": "h5z-gpu-h5wasm"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    if "H5Z_GPU_RELEASE" in os.environ:
        return ROOT / os.environ["H5Z_GPU_RELEASE"]
    work = tmp_path_factory.mktemp("release")
    run("openssl", "genrsa", "-out", work / "key.pem", "3072")
    made = work / "made"
    run("make", "-s", "release", f"RELEASE={made}", "ARTEFACTS=wheel-x86_64 sdist", f"SIGN_KEY={work}/key.pem")
    return made


def plugins(folder):
    return [p for p in folder.glob("*h5zgpu-*") if p.suffix in (".so", ".dll", ".dylib")]


@pytest.fixture(scope="module")
def wheels(folder):
    found = sorted(folder.glob("*.whl"))
    # A release of everything has some.
    if not found and "wheel" not in os.environ.get("ARTEFACTS", "wheel"):
        pytest.skip("ARTEFACTS names no wheel")
    assert found, f"no wheel in {folder}"
    return found


def test_every_file_has_its_sum(folder):
    said = dict(line.split("  ")[::-1] for line in (folder / "SHA256SUMS").read_text().splitlines())
    found = {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in folder.iterdir() if p.name != "SHA256SUMS"}
    assert said == found and len(found) > len(SBOMS)


def test_every_version_is_that_of_cargo_toml(folder):
    """In names where they have one, and in what the files say of themselves."""
    for path in folder.iterdir():
        for version in re.findall(r"\d+\.\d+\.\d+", path.name):
            assert version == VERSION, path.name
        if path.suffix == ".deb":
            assert run("dpkg-deb", "-f", path, "Version").strip() == VERSION
        if path.suffix == ".jar":
            with zipfile.ZipFile(path) as z:
                assert f"Implementation-Version: {VERSION}\r\n" in z.read("META-INF/MANIFEST.MF").decode()
                assert {n.split("/")[-1] for n in z.namelist() if n.startswith("META-INF/licences/L")} <= LICENCES
    for path in plugins(folder):
        said = [f"{VERSION}{end}\0".encode() in path.read_bytes() for end in ("", "+unreleased")]
        assert any(said), f"h5z_gpu_version() of {path.name}"


def test_twine_and_the_checkers_of_wheels_find_nothing(folder, wheels):
    said = tool("twine", "check", "--strict", *wheels, *folder.glob("*.tar.gz"))
    assert said.count("PASSED") == len(wheels) + len(list(folder.glob("*.tar.gz"))), said
    for wheel in wheels:
        assert tool("check-wheel-contents", wheel).strip().endswith("OK")
        if "linux_" in wheel.name:
            said = " ".join(tool("auditwheel", "show", wheel).split())
            (kind,) = re.findall(r"(manylinux_2_17|musllinux_1_2)_\w+", wheel.name)
            named = re.findall(r'platform tag: "(\w+?linux_\d+_\d+)_', said)
            assert named and all(int(n.split("_")[2]) <= int(kind.split("_")[2]) for n in named), said


def test_wheels_are_small_enough_and_carry_the_licences(wheels):
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as z:
            (name,) = (n for n in z.namelist() if n.startswith("h5z_gpu/plugin/"))
            kernels = b"NVRTC 12." in z.read(name)
        assert kernels == ("manylinux" in wheel.name), f"{wheel.name}: kernels {kernels}"
        assert wheel.stat().st_size <= (LARGEST if kernels else LARGEST_FOR_CPU), wheel.name
        assert licences_of(wheel) == LICENCES, wheel.name


def test_modules_for_webassembly_are_small_and_whole(folder):
    for path in folder.glob("h5z-gpu-wasm-*.tgz"):
        with tarfile.open(path) as t:
            files = {m.name: t.extractfile(m).read() for m in t}
        assert set(files) == {"h5z_gpu.wasm", "h5z_gpu.mjs", "view.html", "LICENSE", "LICENSE-MIT", "LICENSE-APACHE"}
        assert files["h5z_gpu.wasm"][:4] == b"\0asm" and len(files["h5z_gpu.wasm"]) <= LARGEST_MODULE
    for path in folder.glob("libH5Zh5zgpu.so"):
        module = path.read_bytes()
        assert module[:4] == b"\0asm" and b"H5PLget_plugin_info" in module and len(module) <= LARGEST_MODULE


def linked(package):
    """Crates that cargo links into it, on any system, with their versions."""
    told = run("cargo", "tree", "--locked", "--offline", "--quiet", "-p", package, "-e", "normal,no-proc-macro",
               "--target", "all", "--prefix", "none", "--format", "{p}")
    crates = {tuple(line.split()[:2]) for line in told.splitlines() if line.strip()}
    return {(name, version[1:]) for name, version in crates if not name.startswith("h5z-gpu")}


@pytest.mark.parametrize("part", SBOMS)
def test_each_linked_crate_is_in_the_sbom(folder, part):
    said = json.loads((folder / f"h5z-gpu-{part}.cdx.json").read_text())
    assert (said["bomFormat"], said["specVersion"]) == ("CycloneDX", "1.5")
    about = said["metadata"]["component"]
    assert (about["name"], about["version"]) == (SBOMS[part], VERSION)
    locked = {(c["name"], c["version"]) for c in tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]}
    components = {(c["name"], c["version"]) for c in said["components"]}
    assert components <= locked and linked(SBOMS[part]) <= components and components
    assert all(c["licenses"] and c["purl"].startswith("pkg:cargo/") for c in said["components"])


def test_licences_are_kept_for_what_the_sbom_names(folder):
    """Of the plugin and its program on Linux; what other systems add is windows-sys and windows-link."""
    kept = set(re.findall(r"^\* ([\w-]+) ([\w.+-]+): ", (folder / "THIRD-PARTY.txt").read_text(), re.MULTILINE))
    named = {(c["name"], c["version"]) for part in ("plugin", "program")
             for c in json.loads((folder / f"h5z-gpu-{part}.cdx.json").read_text())["components"]}
    assert kept and kept <= named


def test_plugins_alone_are_those_of_the_wheels_and_signatures_are_right(folder, wheels, tmp_path):
    inside = set()
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as z:
            inside |= {z.read(n) for n in z.namelist() if n.startswith("h5z_gpu/plugin/")}
    alone = {p.name: p.read_bytes() for p in plugins(folder)}
    assert len(alone) == len(wheels)
    key = folder / "h5z-gpu-plugins.pem"
    if key.exists():
        assert b"PUBLIC KEY" in key.read_bytes() and b"PRIVATE" not in key.read_bytes()
    for name, data in alone.items():
        if key.exists():
            assert data[-9:] == b"\x89HPS\r\n\x1a\n\x01" and data[-14] == 3, name
            end = len(data) - 14 - int.from_bytes(data[-13:-9], "little")
            (tmp_path / "signature").write_bytes(data[end:-14])
            data = data[:end]
            (tmp_path / "plugin").write_bytes(data)
            assert "Verified OK" in run("openssl", "dgst", "-sha512", "-verify", key, "-signature",
                                        tmp_path / "signature", tmp_path / "plugin")
        assert data in inside, name
