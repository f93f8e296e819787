# SPDX-License-Identifier: MIT OR Apache-2.0
"""What `doctor` asks in processes of their own, by ctypes alone: a library that crashes ends such a process and nothing else.

Run as `python -c TEXT MODE ARGUMENT...`, where TEXT is this file: nothing of the package is imported. The last line printed
is JSON.

hdf5 LIBRARY FOLDER [PLUGIN]   an HDF5 library: version, where it looks, what it loads for the filter, and a round trip through
                               it in FOLDER; PLUGIN is handed to it where it finds none
plugin FILE                    a file that may be a plugin: its filter's number, and the state of ours
gpu FILE                       whether our plugin encodes on a GPU
cuda                           what the CUDA driver says
packages NAME...               imports Python packages in this order, and asks each HDF5 library that is loaded then
"""
import ctypes
import json
import math
import os
import sys

FILTER = 443
NAME = "libh5zgpu.so"
FLOATS = ctypes.c_float * (64 * 64)


def mapped(part):
    """Files of this process whose names begin so."""
    with open("/proc/self/maps") as f:
        paths = {line.split(maxsplit=5)[5].strip() for line in f if "/" in line}
    return sorted(p for p in paths if os.path.basename(p).startswith(part))


def ours():
    """Files in this process that are plugins for our filter, whatever their names are."""
    found = []
    for path in mapped(""):
        if ".so" not in path:
            continue
        try:
            library = ctypes.CDLL(path, mode=os.RTLD_NOLOAD)
            if number_of(library) == FILTER:
                found.append(path)
        except (OSError, AttributeError):
            pass
    return found


def number_of(library):
    """The filter's number that a plugin states: the second int of its H5Z_class2_t."""
    library.H5PLget_plugin_info.restype = ctypes.POINTER(ctypes.c_int)
    return library.H5PLget_plugin_info()[1]


def version(hdf5):
    numbers = [ctypes.c_uint() for _ in range(3)]
    hdf5.H5get_libversion(*map(ctypes.byref, numbers))
    return [n.value for n in numbers]


def folders(hdf5):
    """Where the library looks; None for HDF5 before 1.10, which does not tell."""
    if not hasattr(hdf5, "H5PLsize"):
        return None
    count, found = ctypes.c_uint(), []
    hdf5.H5PLsize(ctypes.byref(count))
    hdf5.H5PLget.restype = ctypes.c_ssize_t
    for k in range(count.value):
        text = ctypes.create_string_buffer(4096)
        hdf5.H5PLget(ctypes.c_uint(k), text, ctypes.c_size_t(len(text)))
        found.append(os.fsdecode(text.value))
    return found


def loaded(path):
    """A library, behind those beside it that it needs and does not find: a wheel may leave them to its package to load."""
    tried = set()
    while True:
        try:
            return ctypes.CDLL(path, mode=os.RTLD_GLOBAL)
        except OSError as why:
            missing = os.path.join(os.path.dirname(path), str(why).split(":")[0])
            if missing in tried or missing == path or not os.path.isfile(missing):
                raise
            tried.add(missing)
            loaded(missing)


def ask_hdf5(path, folder, plugin=None):
    hdf5 = loaded(path)
    if hasattr(hdf5, "H5open"):
        hdf5.H5open()
    answer = {"version": version(hdf5), "folders": folders(hdf5), "plugin": None, "handed": False}
    found = hdf5.H5Zfilter_avail(FILTER) > 0
    if found:
        answer["plugin"] = (ours() or ["under an unknown name"])[0]
    elif plugin:
        library = ctypes.CDLL(plugin)
        library.H5PLget_plugin_info.restype = ctypes.c_void_p
        answer["handed"] = hdf5.H5Zregister(ctypes.c_void_p(library.H5PLget_plugin_info())) >= 0
    if found or answer["handed"]:
        try:
            answer["round_trip"] = round_trip(hdf5, answer["version"], os.path.join(folder, f"round_trip.{os.getpid()}.h5"))
        except RuntimeError as why:
            answer["failed"] = str(why)
    return answer


def round_trip(hdf5, number, path):
    """Writes a small dataset with an absolute bound of 1e-3 and reads it back; bytes stored and the largest error."""
    # An id has 64 bits since 1.10.
    hid = ctypes.c_int if number < [1, 10] else ctypes.c_int64

    def call(name, result, *arguments):
        function = getattr(hdf5, name)
        function.restype = result
        got = function(*arguments)
        if got < 0:
            raise RuntimeError(f"{name} failed")
        return got

    def constant(*names):
        for name in names:
            if hasattr(hdf5, name):
                return hid.in_dll(hdf5, name)
        raise RuntimeError(f"the library does not export {names[0]}")

    wave = FLOATS(*(math.sin(k * 1e-2) for k in range(64 * 64)))
    extents = (ctypes.c_uint64 * 2)(64, 64)
    try:
        file = call("H5Fcreate", hid, os.fsencode(path), ctypes.c_uint(2), hid(0), hid(0))
        space = call("H5Screate_simple", hid, ctypes.c_int(2), extents, None)
        how = call("H5Pcreate", hid, constant("H5P_CLS_DATASET_CREATE_ID_g", "H5P_CLS_DATASET_CREATE_g"))
        call("H5Pset_chunk", ctypes.c_int, hid(how), ctypes.c_int(2), extents)
        # Mandatory: what would be left out otherwise fails here.
        call("H5Pset_filter", ctypes.c_int, hid(how), ctypes.c_int(FILTER), ctypes.c_uint(0), ctypes.c_size_t(1),
             (ctypes.c_uint * 1)(11003))  # fmt: skip
        kind = constant("H5T_NATIVE_FLOAT_g")
        data = call("H5Dcreate2", hid, hid(file), b"v", kind, hid(space), hid(0), hid(how), hid(0))
        call("H5Dwrite", ctypes.c_int, hid(data), kind, hid(0), hid(0), hid(0), wave)
        call("H5Dclose", ctypes.c_int, hid(data))
        call("H5Fclose", ctypes.c_int, hid(file))
        file = call("H5Fopen", hid, os.fsencode(path), ctypes.c_uint(0), hid(0))
        data = call("H5Dopen2", hid, hid(file), b"v", hid(0))
        stored = call("H5Dget_storage_size", ctypes.c_uint64, hid(data))
        back = FLOATS()
        call("H5Dread", ctypes.c_int, hid(data), kind, hid(0), hid(0), hid(0), back)
        call("H5Dclose", ctypes.c_int, hid(data))
        call("H5Fclose", ctypes.c_int, hid(file))
    finally:
        if os.path.exists(path):
            os.unlink(path)
    worst = max(abs(a - b) for a, b in zip(wave, back))
    if worst > 1e-3:
        raise RuntimeError(f"a value changed by {worst:.3g}, the bound is 0.001")
    return {"raw_bytes": ctypes.sizeof(wave), "stored_bytes": stored, "largest_error": worst, "bound": 1e-3}


def ask_plugin(path):
    library = ctypes.CDLL(path)
    if not hasattr(library, "H5PLget_plugin_info"):
        return {"filter": None}
    answer = {"filter": number_of(library)}
    if answer["filter"] == FILTER and hasattr(library, "h5z_gpu_version"):
        library.h5z_gpu_version.restype = ctypes.c_char_p
        answer["version"] = library.h5z_gpu_version().decode()
        if hasattr(library, "h5z_gpu_status"):
            library.h5z_gpu_status.restype = ctypes.c_int64
            text = ctypes.create_string_buffer(1 << 16)
            library.h5z_gpu_status(text, ctypes.c_size_t(len(text)))
            answer["status"] = json.loads(text.value)
    return answer


def ask_gpu(path):
    """Encodes 16 MiB; whether a GPU did it. The reason why not stands in the log, on standard error."""
    library = ctypes.CDLL(path)
    n = 4 << 20
    library.h5z_gpu_encode.restype = library.h5z_gpu_device_chunks.restype = ctypes.c_int64
    raw, frame = (ctypes.c_float * n)(), ctypes.create_string_buffer(4 * n + 64)
    extents = (ctypes.c_uint64 * 2)(n >> 11, 1 << 11)
    library.h5z_gpu_encode((ctypes.c_uint32 * 1)(11003), ctypes.c_size_t(1), b"<f4", ctypes.c_size_t(2), extents, None,
                           raw, ctypes.c_size_t(4 * n), frame, ctypes.c_size_t(len(frame)))  # fmt: skip
    return {"encoded_on_gpu": library.h5z_gpu_device_chunks(ctypes.c_int(0)) > 0}


def ask_cuda():
    """What the driver says; "error" is why it says no more."""
    answer = {"devices": []}
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError as why:
        return {"missing": str(why)}
    number = ctypes.c_int()
    if hasattr(cuda, "cuDriverGetVersion") and not cuda.cuDriverGetVersion(ctypes.byref(number)):
        answer["cuda"] = [number.value // 1000, number.value % 1000 // 10]
    code = cuda.cuInit(0)
    if code:
        return answer | {"error": f"cuInit answers {code}{named(cuda, code)}", "code": code}
    if cuda.cuDeviceGetCount(ctypes.byref(number)):
        return answer
    for k in range(number.value):
        device, name, total = ctypes.c_int(), ctypes.create_string_buffer(256), ctypes.c_size_t()
        if cuda.cuDeviceGet(ctypes.byref(device), k) or cuda.cuDeviceGetName(name, 256, device):
            continue
        found = {"name": name.value.decode(errors="replace")}
        if hasattr(cuda, "cuDeviceTotalMem_v2") and not cuda.cuDeviceTotalMem_v2(ctypes.byref(total), device):
            found["memory_bytes"] = total.value
        parts = [ctypes.c_int(), ctypes.c_int()]
        # 75 and 76: the compute capability, major and minor.
        ask = getattr(cuda, "cuDeviceGetAttribute", None)
        if ask and not any(ask(ctypes.byref(part), 75 + k, device) for k, part in enumerate(parts)):
            found["capability"] = [part.value for part in parts]
        answer["devices"].append(found)
    return answer


def named(cuda, code):
    text = ctypes.c_char_p()
    if hasattr(cuda, "cuGetErrorName") and not cuda.cuGetErrorName(code, ctypes.byref(text)) and text.value:
        return f" ({text.value.decode()})"
    return ""


def ask_packages(*names):
    answer = {"imported": {}, "before": os.environ.get("HDF5_PLUGIN_PATH"), "libraries": {}}
    for name in names:
        before = set(mapped("libhdf5"))
        try:
            module = __import__(name)
            answer["imported"][name] = getattr(module, "__version__", "")
        except Exception as why:  # whatever a package raises
            answer["imported"][name] = None
            answer["why"] = f"{name}: {why}"
            continue
        for path in mapped("libhdf5"):
            if path not in before and not any(part in path for part in ("_hl", "hl-", "hl.", "_cpp", "_fortran")):
                answer["libraries"][path] = {"package": name}
    answer["after"] = os.environ.get("HDF5_PLUGIN_PATH")
    for path, what in answer["libraries"].items():
        what["finds"] = ctypes.CDLL(path, mode=os.RTLD_NOLOAD).H5Zfilter_avail(FILTER) > 0
    return answer


if __name__ == "__main__":
    mode, *arguments = sys.argv[1:]
    asked = {"hdf5": ask_hdf5, "plugin": ask_plugin, "gpu": ask_gpu, "cuda": ask_cuda, "packages": ask_packages}[mode]
    try:
        told = asked(*arguments)
    except (OSError, AttributeError, RuntimeError) as reason:
        told = {"error": str(reason)}
    sys.stderr.flush()
    print("\n" + json.dumps(told), flush=True)
    os._exit(0)  # nothing of what was loaded has to be torn down
