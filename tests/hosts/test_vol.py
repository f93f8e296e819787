# SPDX-License-Identifier: MIT OR Apache-2.0
"""`h5z-gpu run --door vol`: the same by HDF5's own mechanism, a connector, with each HDF5 that has it."""
import os
import re
import shutil
import sys

import h5py
import pytest
from conftest import HERE, ROOT, clean, run
from test_run import H5Z_GPU, NETCDF, SHORT, WRITE, frames, under

# The wheel that carries it, and the headers of its version.
HDF5 = {"1.14.6": ("tables", "1.14"), "2.0.0": ("h5py", "2.0"), "2.2.0": ("netcdf4", "2.2")}
(SITE,) = (ROOT / ".env/lib").glob("python3*/site-packages")
VOL = ROOT / "target/vol"
FOUND = f"{VOL}:{ROOT / 'target/plugin'}"
# What a C program is told of a machine; CMake would find it out.
MACHINE = "".join(f"#define H5_SIZEOF_{name} {size}\n" for name, size in
                  [("INT", 4), ("LONG", 8), ("LONG_LONG", 8), ("INT64_T", 8), ("SIZE_T", 8), ("SSIZE_T", 8)])


def headers(version, folder):
    """The compiler's options for the headers of a version."""
    (sources,) = (ROOT / ".env/headers" / HDF5[version][1]).glob("vendor/hdf5-metno-src/ext/hdf5/src")
    (folder / "H5pubconf.h").write_text(MACHINE + "#define H5_HAVE_FEATURES_H 1\n#define H5_HAVE_SYS_TYPES_H 1\n")
    return [f"-I{folder}", f"-I{sources}", f"-I{sources}/H5FDsubfiling"]


def library(version):
    (file,) = (SITE / f"{HDF5[version][0]}.libs").glob("libhdf5-*")
    return file


def built(name, version, folder):
    """A C program of this folder with the HDF5 of a wheel."""
    lib = library(version)
    link = [lib, f"-Wl,-rpath,{lib.parent}", "-Wl,--allow-shlib-undefined", "-lpthread"]
    run("cc", "-O1", "-o", folder / name, HERE / f"{name}.c", *headers(version, folder), *link)
    return folder / name


@pytest.fixture(scope="session")
def h5pys(tmp_path_factory):
    """Where an h5py lies for each version of HDF5. That for 2.2 is the one for 2.0, with netCDF4's library in place of
    its own: both have the same interface, libhdf5.so.320."""
    folder = tmp_path_factory.mktemp("h5py")
    shutil.copytree(SITE / "h5py", folder / "h5py")
    shutil.copytree(SITE / "netcdf4.libs", folder / "h5py.libs")
    shutil.copytree(SITE / "h5py.libs", folder / "h5py.libs", dirs_exist_ok=True)
    shutil.copy(library("2.2.0"), folder / "h5py.libs" / library("2.0.0").name)
    return {"1.12": ROOT / ".env/older/hdf5-1.12", "1.14": ROOT / ".env/older/hdf5-1.14", "2.0": "", "2.2": folder}


WITH = pytest.mark.parametrize("version", ["1.14", "2.0", "2.2"])


def environment(h5pys, version, **more):
    # h5py warns of an HDF5 of another version than it was built with.
    path = f"{h5pys[version]}:{HERE}" if h5pys[version] else str(HERE)
    return clean(PYTHONPATH=path, PYTHONWARNINGS="ignore", **more)


def vol(*command, **how):
    return under(*command, door="vol", **how)


# --- what is declared ------------------------------------------------------------------------------------------------
C = {"c_uint": "unsigned", "usize": "size_t", "isize": "ssize_t", "*mut Hid": "hid_t *", "*mut c_char": "char *",
     "*mut *mut c_void": "void **", "*mut *const c_void": "const void **", "*const c_void": "const void *",
     "*mut c_uint": "unsigned *", "*const c_char": "const char *", "*mut c_void": "void *", "Hid": "hid_t",
     "c_int": "int", "*mut *const Class": "const H5VL_class_t **"}
CALLBACK = "herr_t (*{})(size_t, void *[], hid_t[], hid_t[], hid_t[], hid_t, {}void *[], void **)"


def declared(file, *tables):
    """Name, arguments and answer of each function of these tables."""
    calls, text = [], (ROOT / file).read_text()
    for name in tables:
        (table,) = re.findall(rf"    {name} \{{(.*?)\n    \}}|$", text, re.S)[:1]
        calls += (found := re.findall(r"fn \w+ = (\w+)\(\s*(.*?)\) -> (\w+);", table, re.S))
        assert found and len(found) == table.count("fn "), name
    return calls


@pytest.mark.parametrize("version", HDF5)
def test_the_record_is_that_of_the_headers(version, tmp_path):
    text = (ROOT / "vol/src/class.rs").read_text()
    places = re.findall(r'^    (\w+) = "([\w.]+)" at (\d+);$', text, re.M)
    fields = re.search(r"struct Class \{(.*?)\n\}", text, re.S)[1]
    assert [p[0] for p in places] == re.findall(r"^    (?:pub\(crate\) )?(\w+): ", fields, re.M)
    (number,) = re.findall(r"NUMBER: c_int = (\d+);", text)
    calls = declared("vol/src/hdf5.rs", "Layer") + declared("doors/src/newer.rs", "Several", "Connectors")
    lines = [f"#include <{file}>" for file in ("hdf5.h", "H5VLconnector.h", "H5VLconnector_passthru.h", "stddef.h")]
    lines += [f'_Static_assert(offsetof(H5VL_class_t, {theirs}) == {at}, "{ours}");' for ours, theirs, at in places]
    lines += ["_Static_assert(H5VL_VERSION == 3 && sizeof(H5VL_class_t) == 632 && sizeof(hid_t) == 8, \"\");",
              "_Static_assert(H5VL_GET_CONN_LVL_CURR == 0 && H5PL_TYPE_VOL == 1 && H5PL_TYPE_NONE == 3, \"\");",
              "_Static_assert(H5I_DATASET == 5 && H5_VOL_NATIVE == 0, \"\");",
              f"_Static_assert(H5_VOL_RESERVED <= {number} && {number} < 512 && {number} != 443, \"\");",
              "void f(H5VL_class_t *c) {", f"{CALLBACK.format('read', '')} = c->dataset_cls.read;",
              f"{CALLBACK.format('write', 'const ')} = c->dataset_cls.write;",
              "herr_t (*close)(void *, hid_t, void **) = c->dataset_cls.close; (void)read; (void)write; (void)close; }"]
    for name, arguments, answer in calls:
        call = f"({name})({', '.join(f'({C[a.strip()]})0' for a in arguments.split(','))})"
        lines += [f'_Static_assert(__builtin_types_compatible_p(__typeof__({call}), {C[answer]}), "{name}");']
    (tmp_path / "record.c").write_text("\n".join(lines) + "\n")
    run("cc", "-Werror", "-Wall", "-c", "-o", tmp_path / "record.o", tmp_path / "record.c", *headers(version, tmp_path))


# --- the same values, frames and errors ------------------------------------------------------------------------------
@WITH
def test_every_value_is_the_same_as_in_numpy(version, h5pys):
    said, why = vol(sys.executable, HERE / "every_way.py", "2000", "2012", env=environment(h5pys, version))
    assert f"HDF5 {version}" in said and "read " in why and SHORT in why
    for reason in ("few values", "no boxes", "chunk cache", "fewer than two whole chunks"):
        assert reason in why, reason


@pytest.mark.parametrize("version", HDF5)
@pytest.mark.parametrize("door", ["preload", "vol"])
def test_calls_for_several_datasets_and_those_that_are_not_waited_for(door, version, tmp_path):
    made = built("several", version, tmp_path)
    plain = run(made, tmp_path / "a.h5")
    said, why = under(made, tmp_path / "b.h5", door=door)
    assert said == plain and plain.count("failed") == 1, (said, plain)
    assert plain.count("as written") == 4 and plain.count("right") == 2 and "a space of another kind" in why
    assert "open: 1, references: 1" in plain
    ways = re.findall(rf"/(\w+): (read|write) (\d) times {SHORT}", why)
    assert [" ".join(w) for w in ways] == ["first read 5", "first write 4", "last read 5", "last write 3"], why
    assert why.count("plain: read 4 times by HDF5") == 1, why


@pytest.mark.parametrize("version", HDF5)
def test_a_c_program_does_what_it_did(version, tmp_path):
    """Offsets, other extents, transforms, conversions, steps, read-only files, edges without filters, mistakes."""
    made = built("ways", version, tmp_path)
    plain = run(made, tmp_path / "a.h5")
    said, why = vol(made, tmp_path / "b.h5")
    assert said == plain and plain.count("failed") == 3, (said, plain)
    assert re.search(rf"read 4 times {SHORT}", why) and re.search(rf"write 1 times {SHORT}", why), why
    for reason in ("transfer list", "no boxes", "not one of NumPy's numbers", "reading only", "have no filter"):
        assert reason in why, (reason, why)


@pytest.mark.parametrize("version", HDF5)
def test_threads_of_one_program(version, tmp_path):
    said, why = vol(built("shared", version, tmp_path), tmp_path / "a.h5")
    # PyTables' wheel alone has a library that threads may share.
    reads = {"shared: 1, wrong: 0\n": 4, "shared: 0, wrong: 0\n": 0}[said]
    assert why.count(f"read 40 times {SHORT}") == reads and (version != "1.14.6" or reads), (said, why)


READ = """
import h5py, hashlib, sys
with h5py.File(sys.argv[1], rdcc_nbytes=0) as f:
    for name in f:
        x = f[name][...]
        print(name, hashlib.sha256(x.tobytes() + f[name][3:33, :, 5:].tobytes()).hexdigest())
"""


@WITH
def test_four_arms(version, h5pys, tmp_path):
    """Written and read natively and by the connector: the same frames, the same values."""
    env = environment(h5pys, version)
    run(sys.executable, "-c", WRITE, tmp_path / "native.h5", env=env)
    _, wrote = vol(sys.executable, "-c", WRITE, tmp_path / "vol.h5", env=env)
    assert wrote.count(f"write 2 times {SHORT}") == 3, wrote
    assert frames(tmp_path / "native.h5") == frames(tmp_path / "vol.h5")
    told = set()
    for file in ("native.h5", "vol.h5"):
        told.add(run(sys.executable, "-c", READ, tmp_path / file, env=env))
        said, why = vol(sys.executable, "-c", READ, tmp_path / file, env=env)
        assert why.count(f"read 2 times {SHORT}") == 3, why
        told.add(said)
    assert len(told) == 1, told


def test_netcdf_and_h5py_in_one_process_each_with_its_hdf5(tmp_path):
    _, why = vol(sys.executable, "-c", NETCDF, tmp_path / "a.nc", env=clean(PYTHONPATH=str(HERE)))
    assert f"write 1 times {SHORT}" in why and f"read 3 times {SHORT}" in why, why


PYTABLES = """
import numpy as np, sys, tables
from samples import sample
from wheel import PyTables
x = sample(np.float32, (40, 256, 256))
PyTables.write({"x": x}, sys.argv[1], {"x": [4, 256, 256]}, [90000])
assert tables.hdf5_version == "1.14.6" and (PyTables.read(sys.argv[1], ["x"])["x"] == x).all()
"""


def test_pytables(tmp_path):
    _, why = vol(sys.executable, "-c", PYTABLES, tmp_path / "a.h5", env=clean(PYTHONPATH=str(HERE)))
    assert f"write 1 times {SHORT}" in why and f"read 1 times {SHORT}" in why, why


ERRORS = """
import h5py, re, sys
import numpy as np
folder, damaged = sys.argv[1:]
def told(what):
    try:
        print(what())
    except Exception as e:
        print(type(e).__name__, re.sub("0x[0-9a-f]+|time = [^,]*", "", str(e)))
told(lambda: h5py.File(folder + "/none.h5"))
told(lambda: h5py.File(folder + "/none/none.h5", "w"))
told(lambda: h5py.File(folder, "r"))
told(lambda: h5py.File(__import__("os").devnull, "r"))
with h5py.File(damaged, "r") as f:
    told(lambda: f["exact"][...])
    told(lambda: f["exact"][5:35, 20:100, 3:])
    told(lambda: f["none"])
    told(lambda: f["exact"].attrs["none"])
    told(lambda: f.create_group("new"))
    told(lambda: f["exact"].__setitem__(Ellipsis, np.ones(f["exact"].shape, "f4")))
    told(lambda: f["exact"].id.read_direct_chunk((0, 0, 1)))
    told(lambda: f["exact"].resize((1, 2, 3)))
    told(lambda: h5py.File(damaged, "w"))
    told(lambda: f["lossy"][...].sum())
"""


@WITH
def test_mistakes_and_damage_give_the_errors_that_they_give_natively(version, h5pys, tmp_path):
    env = environment(h5pys, version)
    run(sys.executable, "-c", WRITE, tmp_path / "a.h5", env=env)
    with h5py.File(tmp_path / "a.h5", "a") as f:
        mask, frame = f["exact"].id.read_direct_chunk((10, 64, 64))
        f["exact"].id.write_direct_chunk((10, 64, 64), frame[:-9] + b"x" + frame[-8:], mask)
    plain = run(sys.executable, "-c", ERRORS, tmp_path, tmp_path / "a.h5", env=env)
    said, why = vol(sys.executable, "-c", ERRORS, tmp_path, tmp_path / "a.h5", env=env)
    assert said == plain and plain.count("checksum") == 2 and "FileNotFoundError" in plain, (plain, said)
    assert why.count("cannot be read") >= 1 and "reading only" in why, why


OTHERS = """
import h5py, io, sys
import numpy as np
from samples import sample
x = sample(np.float32, (40, 130, 170))
kind = {"chunks": (10, 64, 64), "compression": 443, "compression_opts": (90000,)}
def tried(name, *target, again={}, **how):
    with h5py.File(*(target or [sys.argv[1] + name]), "w", **how) as f:
        f.create_dataset(name, data=x, **kind)
        assert (f[name][...] == x).all(), name
    with h5py.File(*(target or [sys.argv[1] + name]), "r", **again) as f:
        assert (f[name][...] == x).all(), name
tried("core", driver="core", again={"driver": "core"})
tried("object", io.BytesIO())
family, buffer = {"driver": "family", "memb_size": 1 << 20}, {"page_buf_size": 1 << 20}
tried("family", sys.argv[1] + "%d", **family, again=family)
tried("pages", fs_strategy="page", fs_page_size=4096, **buffer, again=buffer)
tried("block", userblock_size=512)
with h5py.File(sys.argv[1] + "swmr", "w", libver="latest") as f:
    d = f.create_dataset("swmr", x.shape, "f4", maxshape=(None, None, None), **kind)
    f.swmr_mode = True
    d[...] = x
    with h5py.File(sys.argv[1] + "swmr", "r", libver="latest", swmr=True) as g:
        g["swmr"].refresh()
        d.flush()
        assert (g["swmr"][...] == x).all()
"""


@WITH
def test_other_drivers_page_buffers_and_swmr_are_left_to_hdf5(version, h5pys, tmp_path):
    said, why = vol(sys.executable, "-c", OTHERS, f"{tmp_path}/", env=environment(h5pys, version))
    ways = dict.fromkeys(("core", "object", "family"), "by HDF5: the file is open by another driver than sec2")
    ways |= {"pages": "by HDF5: the file has a page buffer", "swmr": "by HDF5: the file is open for single",
             "block": SHORT}
    for name, way in ways.items():
        lines = [line for line in why.splitlines() if f":/{name}: " in line or f"{name}:: " in line]
        assert lines and all(way in line for line in lines), (name, lines, why)
    assert said == "", said


PACKAGE = """
import h5py, h5z_gpu, sys
import numpy as np
from samples import sample
x = sample(np.float32, (40, 130, 170))
with h5py.File(sys.argv[1], "w") as f:
    d = f.create_dataset("x", x.shape, "f4", chunks=(10, 64, 64), **h5z_gpu.Lossless())
    h5z_gpu.write(d, x)
    assert (h5z_gpu.read(d) == x).all() and (d[...] == x).all()
    assert (h5z_gpu.read(d, selection=np.s_[3:30, 5:, :99]) == x[3:30, 5:, :99]).all()
"""


@WITH
def test_the_packages_own_calls_go_through_the_connector(version, h5pys, tmp_path):
    env = environment(h5pys, version)
    env["PYTHONPATH"] += f":{ROOT}/plugin/python"
    env["H5Z_GPU_PLUGIN_PATH"] = str(ROOT / "target/plugin")
    said, why = vol(sys.executable, "-c", PACKAGE, tmp_path / "a.h5", env=env)
    assert said == "" and SHORT in why, (said, why)


# --- a program that has not asked for it, and one that cannot have it ------------------------------------------------
@WITH
@pytest.mark.parametrize("variable", ["", "native", "h5z_gpu_other"])
def test_a_connector_that_only_lies_there_changes_nothing(variable, version, h5pys, tmp_path):
    """HDF5 asks every connector in its folders about a file that it cannot open."""
    code = "import h5py, sys\ntry:\n    h5py.File(sys.argv[1])\nexcept OSError as e:\n    print(type(e), e)"
    env = environment(h5pys, version)
    plain = run(sys.executable, "-c", code, tmp_path / "none.h5", env=env)
    assert "FileNotFoundError" in plain
    if variable == "h5z_gpu_other":  # nobody's name: HDF5 says so, and 2.0 crashes
        told = "import ctypes, sys\nprint(ctypes.CDLL(sys.argv[1]).H5PLget_plugin_type())"
        env = clean(HDF5_VOL_CONNECTOR=variable)
        assert run(sys.executable, "-c", told, VOL / "libh5zgpu_vol.so", env=env) == "3\n"
        return
    more = {"HDF5_VOL_CONNECTOR": variable} if variable else {}
    env = environment(h5pys, version) | {"HDF5_PLUGIN_PATH": FOUND} | more
    assert run(sys.executable, "-c", code, tmp_path / "none.h5", env=env) == plain


def test_an_older_hdf5_goes_its_own_way(h5pys, tmp_path):
    """1.12 has connectors of another version: it complains, and goes on. 1.10 has none, and finds the filter behind."""
    env = environment(h5pys, "1.12")
    run(sys.executable, "-c", WRITE, tmp_path / "a.h5", env=env)
    said, why = vol(sys.executable, "-c", WRITE, tmp_path / "b.h5", env=env)
    assert frames(tmp_path / "a.h5") == frames(tmp_path / "b.h5") and why == "", why
    assert "can't register connector" in said
    run("h5repack", "-f", "lossy:NONE", tmp_path / "a.h5", tmp_path / "c.h5")
    said, why = vol("h5repack", "-f", "lossy:UD=443,1,1,11002", tmp_path / "c.h5", tmp_path / "d.h5")
    assert said == why == ""
    with h5py.File(tmp_path / "d.h5") as f:
        assert f["lossy"].id.get_storage_size() < f["lossy"].nbytes / 2


@WITH
def test_what_follows_the_name_is_of_no_matter(version, h5pys, tmp_path):
    env = environment(h5pys, version, HDF5_VOL_CONNECTOR="h5z_gpu under_vol=0;under_info={}", H5Z_GPU_EXPLAIN="1")
    said = run(sys.executable, "-c", WRITE, tmp_path / "a.h5", env=env | {"HDF5_PLUGIN_PATH": FOUND})
    assert said.count(f"write 2 times {SHORT}") == 3, said


# --- programs --------------------------------------------------------------------------------------------------------
BY_NAME = """
import ctypes, h5py, sys
import numpy as np
from wheel import loaded
with h5py.File(sys.argv[1]) as f:
    d, x = f["lossy"], np.empty((40, 130, 170), "f4")
    read = loaded("libhdf5-").H5Dread
    read.argtypes = [ctypes.c_int64] * 5 + [ctypes.c_void_p]
    assert read(d.id.id, h5py.h5t.NATIVE_FLOAT.id, 0, 0, 0, x.ctypes.data) == 0 and (x == d[...]).all()
"""


def test_functions_that_are_looked_up_by_name_are_reached(tmp_path):
    """As Julia calls HDF5. The library before HDF5 does not see such calls."""
    env = clean(PYTHONPATH=str(HERE))
    run(sys.executable, "-c", WRITE, tmp_path / "a.h5", env=env)
    _, inside = vol(sys.executable, "-c", BY_NAME, tmp_path / "a.h5", env=env)
    _, before = under(sys.executable, "-c", BY_NAME, tmp_path / "a.h5", env=env)
    assert f"read 2 times {SHORT}" in inside and f"read 1 times {SHORT}" in before, (inside, before)


def test_h5pys_own_tests_end_as_they_do_natively(tmp_path):
    """883 of them: references, types, links, iteration by functions of HDF5 1.8, virtual datasets, drivers, SWMR."""
    def ended(*command):
        text = run(*command, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rfE", "--pyargs",
                   "h5py.tests", "--deselect", "h5py/tests/test_file.py", cwd=tmp_path, env=clean(), ok=None)
        last = re.search(r"\d+ passed.*? in ", text)[0]
        return re.findall(r"^(?:FAILED|ERROR) \S+", text, re.M), last.removesuffix(" in ")

    assert ended(H5Z_GPU, "run", "--door", "vol", "--") == ended()


def test_what_is_missing_is_said(tmp_path):
    for folder in ("bin", "plugin"):
        (tmp_path / folder).mkdir()
    os.link(ROOT / "target/plugin/libh5zgpu.so", tmp_path / "plugin/libh5zgpu.so")
    moved = clean(H5Z_GPU_PLUGIN_PATH=str(tmp_path / "plugin"))
    command = [H5Z_GPU, "run", "--door", "vol", "--", "true"]
    assert "vol/libh5zgpu_vol.so: No such file" in run(*command, env=moved, ok=False)
    (tmp_path / "vol").mkdir()
    (tmp_path / "vol/libh5zgpu_vol.so").write_text("no library")
    assert "cannot be loaded" in run(*command, env=moved, ok=False)
    assert "unset it" in run(*command, env=clean(HDF5_VOL_CONNECTOR="pass_through"), ok=False)
    assert "forbids" in run(*command, env=clean(HDF5_PLUGIN_PRELOAD="::"), ok=False)
    told = run(*command[:-1], "env", env={"PATH": clean()["PATH"]}).splitlines()
    (path,) = [line for line in told if line.startswith("HDF5_PLUGIN_PATH=")]
    assert "HDF5_VOL_CONNECTOR=h5z_gpu" in told and path.startswith(f"HDF5_PLUGIN_PATH={FOUND}")
    assert not any(line.startswith("LD_PRELOAD") for line in told)


def doctor(**variables):
    """What doctor says of a variable that stays set, as the program says it; other problems are of no matter."""
    return run(H5Z_GPU, "doctor", "--hdf5", library("2.0.0"), env=clean(**variables), ok=None)


def test_doctor_warns_of_variables_that_lead_nowhere(tmp_path):
    # HDF5 2.0 is asked, and does not crash.
    told = doctor(HDF5_VOL_CONNECTOR="h5z_gpu")
    assert "no folder that HDF5 searches has libh5zgpu_vol.so" in told and "round trip" in told, told
    told = doctor(HDF5_VOL_CONNECTOR="h5z_gpu", HDF5_PLUGIN_PATH=FOUND)
    assert "sets both for one program" in told and "no folder that HDF5 searches" not in told, told
    assert "is no plugin of HDF5" not in told and "two plugins" not in told, told
    told = doctor(LD_PRELOAD=str(tmp_path / "libh5zgpu_preload.so"))
    assert "LD_PRELOAD names" in told and "which is not there" in told, told
    told = doctor(LD_PRELOAD=str(ROOT / "target/preload/libh5zgpu_preload.so"))
    assert "for every program" in told and "which is not there" not in told, told
    assert "HDF5_VOL_CONNECTOR" not in doctor(HDF5_VOL_CONNECTOR="another")
