# SPDX-License-Identifier: MIT OR Apache-2.0
"""`h5z-gpu doctor` of the Python package names the cause in set-ups that are broken, and finds nothing in sound ones.

Every set-up is real: variables, folders and libraries as a user may have them, and the HDF5 libraries of this machine
and of the wheels. Where a set-up needs a folder of the system, it is made in a mount namespace of its own.
"""
import json
import os
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor

import h5py
import pytest
from conftest import BUILT, PLUGIN, ROOT, clean, hdf5_dir, run, sample, use

DEFAULT = "/usr/local/hdf5/lib/plugin"  # of HDF5's own builds, h5py's wheel among them
CUDA = """
int cuInit(unsigned flags) { return flags; }
#include <stdlib.h>
int cuDriverGetVersion(int *v) { const char *set = getenv("OLD_CUDA"); *v = set ? atoi(set) : 11080; return 0; }
int cuDeviceGetAttribute(int *v, int what, int d) { *v = what == 75 ? 6 : 1; (void)d; return what != 75 && what != 76; }
int cuDeviceGetCount(int *n) { *n = 1; return 0; }
int cuDeviceGet(int *d, int k) { *d = k; return 0; }
int cuDeviceGetName(char *name, int n, int d) { const char *t = "Old GPU"; int k = 0; (void)d;
    for (; k < n - 1 && t[k]; k++) name[k] = t[k]; name[k] = 0; return 0; }
int cuDeviceTotalMem_v2(unsigned long *n, int d) { *n = 8000000000ul; (void)d; return 0; }
"""


def doctor(*arguments, before=(), python=sys.executable, **variables):
    """Exit status and output. Only the package leads to the plugin; a variable that is None is not set."""
    env = clean(PYTHONPATH=f"{ROOT}/plugin/python", H5Z_GPU_PLUGIN_PATH=str(PLUGIN.parent),
                HDF5_PLUGIN_PATH=None) | variables
    env = {k: str(v) for k, v in env.items() if v is not None}
    r = subprocess.run([*before, python, "-m", "h5z_gpu", "doctor", *map(str, arguments)], env=env, text=True,
                       timeout=120, capture_output=True)
    # The loader says of each process what it could not load before it.
    said = [line for line in r.stderr.splitlines() if not line.startswith("ERROR: ld.so:")]
    assert r.returncode in (0, 1) and not said, (r.returncode, r.stdout, r.stderr)
    return r.returncode, r.stdout


def without_python(**variables):
    """The same of the program that `make` builds, without Python."""
    env = {k: str(v) for k, v in (clean() | variables).items() if v is not None}
    r = subprocess.run([BUILT / "bin/h5z-gpu", "doctor"], env=env, text=True, timeout=120, capture_output=True)
    return r.returncode, r.stdout + r.stderr


def mounting(tmp, folder, plugin=PLUGIN):
    """The beginning of a command line under which a folder of /usr/local exists that has the plugin; None where that
    cannot be."""
    kind = "-m" if os.geteuid() == 0 else "-rm"
    script = tmp / "mounting.sh"
    script.write_text(f'mount -t tmpfs none /usr/local && mkdir -p {folder} && cp {plugin} {folder} && exec "$@"')
    command = ["unshare", kind, "sh", str(script)]
    if not sys.base_prefix.startswith("/usr/local") and subprocess.run([*command, "true"],
                                                                       capture_output=True).returncode == 0:
        return command
    return None


def needs(what):
    if what is None:
        pytest.skip("this machine lets nobody make a mount namespace")
    return what


@pytest.fixture(scope="session")
def places(tmp_path_factory):
    """Plugins and folders of all kinds."""
    tmp = tmp_path_factory.mktemp("places")
    whole = PLUGIN.read_bytes()

    def folder(name, content):
        (tmp / name).mkdir()
        (tmp / name / PLUGIN.name).write_bytes(content)
        return tmp / name

    folder("cut", whole[: len(whole) // 2])
    folder("other", whole + b"another build")
    folder("same", whole)
    folder("my plugins", whole)
    folder("foreign", whole[:18] + b"\xb7\x00" + whole[20:])  # the header says aarch64
    (tmp / "empty").mkdir()
    (tmp / "link").symlink_to(PLUGIN.parent)
    (tmp / "bin").symlink_to(BUILT / "bin")  # the program lies in ../bin of each of these folders
    (tmp / "cuda").mkdir()
    (tmp / "cuda.c").write_text(CUDA)
    run("cc", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", tmp / "cuda/libcuda.so.1", tmp / "cuda.c")
    (tmp / "cuda/libcuda.so").symlink_to("libcuda.so.1")
    with h5py.File(tmp / "good.h5", "w") as f:
        f.create_dataset("v", data=sample(shape=(16, 32, 32)), chunks=(16, 16, 16), compression=443,
                         compression_opts=(11003,))
    data = bytearray((tmp / "good.h5").read_bytes())
    with h5py.File(tmp / "good.h5") as f:
        info = f["v"].id.get_chunk_info_by_coord((0, 16, 0))
    data[info.byte_offset + info.size // 2] ^= 1
    (tmp / "bad.h5").write_bytes(data)
    (tmp / "short.h5").write_bytes(data[: len(data) // 2])
    filters = data.index(b"\1\1" + bytes(6) + (443).to_bytes(2, "little"))  # version 1, one filter
    data[filters] = 3
    (tmp / "newer.h5").write_bytes(data)
    return tmp


@pytest.fixture(scope="session")
def hdf5_18(tmp_path_factory):
    """HDF5 1.8.18, from the wheel of an h5py of its time."""
    kept = ROOT / "target/test/hdf5-1.8"
    if not list(kept.glob("libhdf5-*")):
        tmp = tmp_path_factory.mktemp("hdf5-1.8")
        get = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", "--python-version",
               "3.6", "--platform", "manylinux1_x86_64", "-d", str(tmp), "h5py==2.7.1"]
        said = subprocess.run(get, capture_output=True, text=True)
        assert said.returncode == 0, f"the wheel of h5py 2.7.1 cannot be had: {said.stderr[-500:]}"
        (wheel,) = tmp.glob("*.whl")
        kept.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(wheel) as z:
            for name in z.namelist():
                if "/.libs/" in name:
                    (kept / os.path.basename(name)).write_bytes(z.read(name))
    (library,) = kept.glob("libhdf5-*")
    return library


OURS = str(PLUGIN.parent)
# Name of a set-up: the call, and parts of what must be said.
BROKEN = {
    "missing first folder": (lambda p: doctor(HDF5_PLUGIN_PATH=f"/missing:{OURS}"),
                             ["names '/missing': no such folder", "libhdf5_serial", "take that folder out"]),
    "truncated plugin": (lambda p: doctor(HDF5_PLUGIN_PATH=p / "cut"),
                         ["cut/libh5zgpu.so is cut short", "copy the file there again"]),
    "the package's own plugin truncated": (lambda p: doctor(H5Z_GPU_PLUGIN_PATH=p / "cut"),
                                           ["the package's own plugin", "is cut short", "H5Z_GPU_PLUGIN_PATH"]),
    "two plugins": (lambda p: doctor(HDF5_PLUGIN_PATH=f"{OURS}:{p / 'other'}"),
                    ["two plugins that differ", "take one of them away"]),
    "plugins disabled": (lambda p: doctor(HDF5_PLUGIN_PATH=OURS, HDF5_PLUGIN_PRELOAD="::"),
                         ["forbids HDF5 every plugin", "unset HDF5_PLUGIN_PRELOAD"]),
    "what `run` sets, in a profile": (
        lambda p: doctor(HDF5_PLUGIN_PATH=OURS, LD_PRELOAD="/none/libh5zgpu_preload.so"),
        ["/none/libh5zgpu_preload.so, which is not there", "unset LD_PRELOAD"]),
    "no GPU where one is asked for": (lambda p: doctor(HDF5_PLUGIN_PATH=OURS, H5Z_GPU_DEVICE="0"),
                                      ["H5Z_GPU_DEVICE asks for GPU 0, and none is used"]),
    "foreign architecture": (lambda p: doctor(HDF5_PLUGIN_PATH=p / "foreign"),
                             ["foreign/libh5zgpu.so is built for aarch64, this machine is x86_64"]),
    "damaged file": (lambda p: doctor(p / "bad.h5", HDF5_PLUGIN_PATH=OURS),
                     ["bad.h5 is damaged: /v: 1 damaged: chunk at (0, 16, 0)", "h5z-gpu recover"]),
    "file of a newer HDF5": (lambda p: doctor(p / "newer.h5", HDF5_PLUGIN_PATH=OURS),
                             ["/v: bad version number for filter pipeline message; a newer HDF5 has written it so",
                              'write it anew there with libver=("v110", "v114")']),
    "file cut short": (lambda p: doctor(p / "short.h5", HDF5_PLUGIN_PATH=OURS),
                       ["short.h5 is cut short: it has", "get the file again"]),
    "path cut at a blank": (lambda p: doctor(HDF5_PLUGIN_PATH=p / "my"), ["my plugins'", "put the value in quotes"]),
    "blank before a path": (lambda p: doctor(HDF5_PLUGIN_PATH=f"{p / 'same'}: {OURS}"),
                            ["there is a blank before its name"]),
    "the package alone": (lambda p: doctor(), ["libhdf5_serial", "programs with it, such as h5dump, do not find the "
                                               "filter",
                                               "-m h5z_gpu env)", "Python needs no more than `import h5z_gpu`"]),
    "other plugins alone": (lambda p: doctor(HDF5_PLUGIN_PATH=netcdf4_plugins()),
                            ["such as h5dump, do not find", "there is no libh5zgpu.so in it"]),
    "setting not understood": (lambda p: doctor(HDF5_PLUGIN_PATH=OURS, H5Z_GPU_THREADS="many"),
                               ["H5Z_GPU_THREADS is \"many\""]),
}
SOUND = {
    "the variable": lambda p: doctor(HDF5_PLUGIN_PATH=OURS),
    "path with a blank": lambda p: doctor(HDF5_PLUGIN_PATH=p / "my plugins", H5Z_GPU_PLUGIN_PATH=p / "my plugins"),
    "a folder of other plugins": lambda p: doctor(HDF5_PLUGIN_PATH=f"{OURS}:{netcdf4_plugins()}"),
    "empty parts": lambda p: doctor(HDF5_PLUGIN_PATH=f"{OURS}::"),
    "the same plugin by two names": lambda p: doctor(HDF5_PLUGIN_PATH=f"{p / 'link'}:{OURS}"),
    "two equal copies": lambda p: doctor(HDF5_PLUGIN_PATH=f"{OURS}:{p / 'same'}"),
    "no GPU wanted": lambda p: doctor(HDF5_PLUGIN_PATH=OURS, H5Z_GPU_DEVICE="cpu"),
    "settings": lambda p: doctor(HDF5_PLUGIN_PATH=OURS, H5Z_GPU_THREADS="1", H5Z_GPU_LOG="info", H5Z_GPU_STRICT="1"),
    "a good file": lambda p: doctor(p / "good.h5", HDF5_PLUGIN_PATH=OURS),
    "an empty folder": lambda p: doctor(HDF5_PLUGIN_PATH=f"{p / 'empty'}:{OURS}"),
    "Debian's h5py": lambda p: doctor(python="/usr/bin/python3", HDF5_PLUGIN_PATH=OURS),
    "another library before all": lambda p: doctor(HDF5_PLUGIN_PATH=OURS, LD_PRELOAD="libz.so.1"),
    "preload of no meaning": lambda p: doctor(HDF5_PLUGIN_PATH=OURS, HDF5_PLUGIN_PRELOAD=""),
}


def netcdf4_plugins():
    (folder,) = (ROOT / ".env/lib").glob("python3*/site-packages/netCDF4/plugins")
    return folder


@pytest.fixture(scope="session")
def answers(places):
    """All set-ups at once: most of a call is waiting for libraries to load."""
    with ThreadPoolExecutor(4) as pool:
        calls = {n: call for n, (call, _) in BROKEN.items()} | SOUND
        asked = {name: pool.submit(call, places) for name, call in calls.items()}
        return {name: a.result() for name, a in asked.items()}


@pytest.mark.parametrize("name", BROKEN)
def test_the_cause_is_named(name, answers):
    status, text = answers[name]
    assert status == 1, text
    problems = text[text.index("\nproblem 1: ") :]
    assert all(part in problems for part in BROKEN[name][1]), text
    # One cause, told once.
    assert "problem 2" not in text, text


@pytest.mark.parametrize("name", SOUND)
def test_no_false_alarm(name, answers):
    status, text = answers[name]
    assert status == 0 and text.endswith("\nnothing is wrong\n"), text
    assert "round trip 16384 to" in text


def test_without_python_the_same_is_wrong(places):
    """Called by the package, and by itself."""
    for variables in ({"HDF5_PLUGIN_PATH": None}, {"HDF5_PLUGIN_PATH": OURS}, {"HDF5_PLUGIN_PATH": netcdf4_plugins()},
                      {"HDF5_PLUGIN_PATH": f"/missing:{OURS}"}, {"HDF5_PLUGIN_PATH": places / "cut"}):
        status, text = doctor(**variables)
        other, said = without_python(**variables)
        assert status == other, f"{variables}\n{text}\n{said}"


def test_a_library_whose_own_libraries_its_package_loads(tmp_path):
    """h5py's wheel for Python 3.9 has such an HDF5: by itself it does not find the libsz that lies beside it."""
    (tmp_path / "beside.c").write_text("int beside(void) { return 1; }")
    (tmp_path / "hdf5.c").write_text("int beside(void); int needs(void) { return beside(); }")
    build = ["cc", "-shared", "-fPIC", "-Wl,--no-as-needed"]
    run(*build, "-Wl,-soname,libbeside.so.2", "-o", tmp_path / "libbeside.so.2", tmp_path / "beside.c")
    real = os.path.realpath(hdf5_dir() / "libhdf5.so")
    run(*build, "-o", tmp_path / "libhdf5-1.so", tmp_path / "hdf5.c", tmp_path / "libbeside.so.2", real)
    status, text = doctor("--hdf5", tmp_path / "libhdf5-1.so", HDF5_PLUGIN_PATH=OURS)
    assert status == 0 and f"({tmp_path}/libhdf5-1.so): loads {PLUGIN}; round trip 16384 to" in text, text
    (tmp_path / "libbeside.so.2").unlink()
    text = doctor("--hdf5", tmp_path / "libhdf5-1.so", HDF5_PLUGIN_PATH=OURS)[1]
    assert "cannot be asked: libbeside.so.2: cannot open shared object file" in text, text


def test_the_default_folder_of_one_hdf5_is_not_that_of_debians(tmp_path, places):
    """/usr/local/hdf5/lib/plugin is for HDF5's own builds. And netCDF4, imported first, hides it from h5py."""
    within = needs(mounting(tmp_path, DEFAULT))
    status, text = doctor(before=within)
    assert status == 1, text
    assert (f"hdf5/serial/plugins, /usr/lib/x86_64-linux-gnu/hdf5/openmpi/plugins, and libh5zgpu.so is in "
            f"{DEFAULT}" in text), text
    assert "a program that imports netCDF4 first, and not h5z_gpu, has no filter in HDF5 2.0.0 of h5py" in text, text
    assert f"which hides {DEFAULT}" in text and "import h5z_gpu in that program" in text, text
    # So it is: h5py finds it alone, and not after netCDF4.
    find = "import h5py; print(h5py.h5z.filter_avail(443))"
    env = {k: v for k, v in clean().items() if k != "HDF5_PLUGIN_PATH"}
    assert run(*within, sys.executable, "-c", find, env=env).split() == ["True"]
    assert run(*within, sys.executable, "-c", f"import netCDF4; {find}", env=env).split() == ["False"]


def test_hdf5_1_8(hdf5_18):
    """It reads what others have written; what it writes keeps every bit."""
    status, text = doctor("--hdf5", hdf5_18, HDF5_PLUGIN_PATH=OURS)
    assert status == 1 and "HDF5 1.8.18" in text and "is older than 1.10" in text and "problem 2" not in text, text
    status, text = doctor("--hdf5", hdf5_18, "--json", HDF5_PLUGIN_PATH=OURS)
    answer = json.loads(text)["libraries"][os.path.realpath(hdf5_18)]
    assert answer["version"] == [1, 8, 18] and answer["plugin"] == str(PLUGIN) and answer["round_trip"][
        "largest_error"] == 0, answer


def test_an_old_driver(places):
    """A stand-in for the driver's library of CUDA 11.8. A plugin without GPU code has no use for a newer one."""
    status, text = doctor("--json", HDF5_PLUGIN_PATH=OURS, LD_LIBRARY_PATH=places / "cuda")
    report = json.loads(text)
    told = {"name": "Old GPU", "memory_bytes": 8000000000, "capability": [6, 1]}
    assert report["cuda"]["cuda"] == [11, 8] and report["cuda"]["devices"] == [told]
    code = report["plugin"]["status"]["gpu_code"]
    if code is None:
        assert status == 0 and "has no GPU code" in report["gpu"], report["gpu"]
    else:
        (problem,) = report["problems"]
        need = ".".join(map(str, code["cuda"]))
        assert status == 1 and f"the NVIDIA driver is too old: it is for CUDA 11.8, the kernels need {need}" in problem[
            "what"], problem
        assert f"install driver {code['driver']} or newer" in problem["do"]


def test_an_old_gpu(places):
    """A new driver, and a GPU of Pascal."""
    status, text = doctor("--json", HDF5_PLUGIN_PATH=OURS, LD_LIBRARY_PATH=places / "cuda", OLD_CUDA="13000")
    report = json.loads(text)
    if report["plugin"]["status"]["gpu_code"] is None:
        assert status == 0, report
    else:
        (problem,) = report["problems"]
        assert status == 1 and "it has compute capability 6.1, the kernels need 7.0" in problem["what"], problem


def test_in_a_process_that_has_imported_everything():
    """From Python: the libraries of this process, whatever was imported first."""
    text = use("""
        import os, sys
        os.environ["HDF5_PLUGIN_PATH"] = sys.argv[1]
        import netCDF4, h5py, h5z_gpu
        from h5z_gpu.cli import main
        print("status", main(["doctor"]))
        """.replace("\n        ", "\n"), OURS)
    assert "nothing is wrong\nstatus 0" in text and "of h5py" in text and "of netCDF4" in text, text


def test_a_plugin_that_cannot_be_loaded_is_an_import_error(places):
    """Not the end of the process, which the loader would make of it."""
    env = clean(PYTHONPATH=f"{ROOT}/plugin/python", H5Z_GPU_PLUGIN_PATH=str(places / "cut"))
    text = run(sys.executable, "-c", "import h5z_gpu", env=env, ok=False)
    assert "Unusable: h5z-gpu: " in text and "is cut short" in text and "name another one, or unset it" in text, text
    text = run(sys.executable, "-m", "h5z_gpu", "inspect", places / "good.h5", env=env, ok=False)
    assert "is cut short" in text and "Traceback" not in text and "h5z-gpu doctor says more" in text, text


def test_bare_python():
    """Without NumPy and h5py, as the interpreter comes."""
    env = clean(PYTHONPATH=f"{ROOT}/plugin/python", H5Z_GPU_PLUGIN_PATH=OURS, HDF5_PLUGIN_PATH=OURS)
    bare = [sys.executable, "-S", "-m", "h5z_gpu"]
    r = subprocess.run([*bare, "doctor"], env=env, text=True, capture_output=True)
    assert r.returncode == 0 and "nothing is wrong" in r.stdout, r.stdout + r.stderr
    assert run(*bare, "path", env=env) == f"{OURS}\n" and "11003" in run(*bare, "words", "abs", "1e-3", env=env)
    r = subprocess.run([*bare, "inspect", "a.h5"], env=env, text=True, capture_output=True)
    assert r.returncode == 2 and "pip install" in r.stderr and "Traceback" not in r.stderr, r.stderr


def test_wrong_use(tmp_path):
    env = clean(PYTHONPATH=f"{ROOT}/plugin/python", H5Z_GPU_PLUGIN_PATH=OURS)
    for arguments in (["--hdf5", "/no/libhdf5.so"], ["--nonsense"]):
        r = subprocess.run([sys.executable, "-m", "h5z_gpu", "doctor", *arguments], env=env, text=True,
                           capture_output=True)
        assert r.returncode == 2 and r.stderr and "Traceback" not in r.stderr, r.stderr


def test_a_file_that_is_not_there_and_one_that_is_none(tmp_path):
    env = clean(PYTHONPATH=f"{ROOT}/plugin/python", H5Z_GPU_PLUGIN_PATH=OURS, HDF5_PLUGIN_PATH=OURS)
    (tmp_path / "text.h5").write_text("not HDF5")
    for name, word, without in (("no.h5", f"a relative name begins at {tmp_path}", "recover"),
                                ("text.h5", "get the file again", "a relative name")):
        r = subprocess.run([sys.executable, "-m", "h5z_gpu", "doctor", name], env=env, cwd=tmp_path, text=True,
                           capture_output=True)
        assert r.returncode == 1 and word in r.stdout and without not in r.stdout, r.stdout + r.stderr
        assert f"{name}: {name}" not in r.stdout and "Traceback" not in r.stderr, r.stdout
