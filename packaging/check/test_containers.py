# SPDX-License-Identifier: MIT OR Apache-2.0
"""Images as docs/containers.md shows them, by buildah, and what is packed for builds without a network.

No registry of images is asked: `debian:13-slim` is made of Debian 13's packages. Root alone may do that."""
import re
import shutil
import time

import pytest
from conftest import ROOT, ROUND_TRIP, VERSION, debian, run

PAGE = (ROOT / "docs/containers.md").read_text()
DOCKERFILES = re.findall(r"^```dockerfile\n(.*?)^```$", PAGE, re.M | re.S)


def block(name):
    (code,) = re.findall(rf"^```python\n(# {name}\n.*?)^```$", PAGE, re.M | re.S)
    return code


@pytest.fixture(scope="module")
def buildah(tmp_path_factory):
    """buildah with a store of its own, and Debian 13 in it. The machine's network is used, and no daemon."""
    folder = tmp_path_factory.mktemp("images")

    def buildah(*command):
        return run("buildah", "--root", folder / "store", "--runroot", folder / "run", "--storage-driver", "vfs",
                   *command).strip()

    debian(folder / "debian.tar")
    empty = buildah("from", "scratch").splitlines()[-1]
    buildah("add", "--quiet", empty, folder / "debian.tar", "/")
    buildah("commit", "--quiet", empty, "docker.io/library/debian:13-slim")
    return buildah


def built(buildah, desk, dockerfile, name):
    (desk / "Dockerfile").write_text(dockerfile)
    buildah("build", "--isolation", "chroot", "--pull-never", "--tag", name, desk)


def used(buildah, name, desk, *command):
    """What `docker run -v DESK:/data -w /data` does."""
    container = buildah("from", "--pull-never", name).splitlines()[-1]
    return buildah("run", "--isolation", "chroot", "--volume", f"{desk}:/data", "--workingdir", "/data", container,
                   *command)


def test_first_file_of_an_image_with_the_wheel(buildah, tmp_path):
    run("make", "-s", "wheel-here")
    (wheel,) = (ROOT / "target/wheel-here").glob("*.whl")
    shutil.copy(wheel, tmp_path)
    (tmp_path / "write.py").write_text(block("write.py"))
    begin = time.monotonic()
    built(buildah, tmp_path, DOCKERFILES[0], "h5z-gpu")
    used(buildah, "h5z-gpu", tmp_path, "python3", "write.py")
    print(f"from the wheel to the first file: {time.monotonic() - begin:.0f} s")
    check = ("import h5py, h5z_gpu, numpy as np; d = h5py.File('out.h5')['v']\n"
             "t, y, x = np.meshgrid(*[np.linspace(0, 6, n) for n in (64, 128, 256)], indexing='ij')\n"
             "error = np.abs(d[...] - (280 + 10 * np.sin(x) * np.cos(y) + t).astype('f4').astype('f8')).max()\n"
             "print(d.id.read_direct_chunk((0, 0, 0))[1][1:5], 0 < error <= 0.01, h5py.version.hdf5_version[:5])")
    assert used(buildah, "h5z-gpu", tmp_path, "python3", "-c", check) == "b'H5ZG' True 1.14."
    assert used(buildah, "h5z-gpu", tmp_path, "python3", "-c", ROUND_TRIP, "a.h5").startswith("x86_64 1.14.")
    assert used(buildah, "h5z-gpu", tmp_path, "h5z-gpu", "doctor").endswith("nothing is wrong")


def test_an_image_without_python_from_the_vendored_sources(buildah, tmp_path):
    run("make", "-s", "vendored")
    shutil.copy(ROOT / f"target/h5z-gpu-{VERSION}.tar.gz", tmp_path)
    built(buildah, tmp_path, DOCKERFILES[1], "h5z-gpu-tools")
    tools = "h5z-gpu-tools"
    with (tmp_path / "values.txt").open("w") as f:
        f.writelines(f"{k * 40503 % 65521 / 997:.3f}\n" for k in range(10000))
    (tmp_path / "import.conf").write_text(
        "PATH v\nINPUT-CLASS TEXTFP\nRANK 1\nDIMENSION-SIZES 10000\nOUTPUT-CLASS FP\nOUTPUT-SIZE 32\n")
    used(buildah, tools, tmp_path, "h5import", "values.txt", "-c", "import.conf", "-o", "in.h5")
    used(buildah, tools, tmp_path, "h5repack", "-l", "v:CHUNK=10000", "-f", "UD=443,1,1,11003", "in.h5", "out.h5")
    said = used(buildah, tools, tmp_path, "h5dump", "-p", "-H", "out.h5")
    assert "FILTER_ID 443" in said and re.search(r"\([2-9]\.\d+:1 COMPRESSION\)", said), said
    assert used(buildah, tools, tmp_path, "h5diff", "-d", "0.001", "in.h5", "out.h5") == ""
    assert "h5z-gpu" in used(buildah, tools, tmp_path, "h5z-gpu", "doctor")
