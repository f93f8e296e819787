# SPDX-License-Identifier: MIT OR Apache-2.0
"""Arrays in the memory of a stand-in for a GPU: the driver of tests/gpu/fake_cuda.c, with the kernels emulated on the
CPU."""
import ctypes
import os
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent.parent
BUILT = ROOT / os.environ.get("INTO", "target")
DRIVER, KERNELS = ROOT / "target/tmp/fake-cuda-", ROOT / "target/tmp/kernels"


def environment():
    """What a process needs to find the stand-in. `cargo test --test gpu_kernels` makes it."""
    missing = [p for p in (DRIVER / "libcuda.so.1", KERNELS / "array.so") if not p.exists()]
    assert not missing, f"{missing} are missing: run `cargo test --test gpu_kernels`, as `make test` does"
    return {"LD_LIBRARY_PATH": str(DRIVER), "FAKE_CUDA_KERNELS": str(KERNELS),
            "PYTHONPATH": f"{ROOT}/plugin/python:{Path(__file__).parent}",
            "H5Z_GPU_PLUGIN_PATH": f"{BUILT}/plugin", "FAKE_CUDA_MEMORY": str(4 << 30),
            "FAKE_CUDA_CAPABILITY": os.environ.get("FAKE_CUDA_CAPABILITY", "90")}  # see tests/run.sh


class Array:
    """An array there, as other libraries describe theirs. Its memory is never given back."""

    def __init__(self, values, device=0, readonly=False):
        driver = ctypes.CDLL("libcuda.so.1")
        driver.fake_cuda_set_current(ctypes.c_size_t(1000 + device))
        driver.cuInit(0)
        at = ctypes.c_uint64()
        whole = np.asarray(values)
        assert driver.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(max(1, whole.nbytes))) == 0
        driver.fake_cuda_set_current(ctypes.c_size_t(77))
        # The stand-in's memory is this process's.
        memory = (ctypes.c_uint8 * whole.nbytes).from_address(at.value) if whole.nbytes else bytearray()
        self.values = np.frombuffer(memory, whole.dtype).reshape(whole.shape)
        self.values[...] = whole
        self.readonly, self.number = readonly, device

    def __getitem__(self, part):
        other = object.__new__(Array)
        other.values, other.readonly, other.number = self.values[part], self.readonly, self.number
        return other

    @property
    def __cuda_array_interface__(self):
        return dict(shape=self.values.shape, typestr=self.values.dtype.str, strides=self.values.strides, version=3,
                    stream=1, data=(self.values.ctypes.data, self.readonly))


class _Tensor(ctypes.Structure):
    """DLManagedTensor of dlpack.h, of axes that are dense."""
    _fields_ = [("data", ctypes.c_void_p), ("kind", ctypes.c_int32), ("device", ctypes.c_int32),
                ("rank", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.c_void_p),
                ("offset", ctypes.c_uint64), ("owner", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi)
)


class Pending(Array):
    """An array of float32 with work that its device's stream has not come to yet: it brings the values `late`. Whoever
    asks for the array has the work of the current device's stream done, as with CuPy's arrays."""

    def __init__(self, values, late, device=0):
        super().__init__(values, device)
        self.late, self.asked = late, []

    def order(self):
        self.asked.append(current() - 1000)
        if self.asked[-1] == self.number:
            self.values[...] = self.late

    @property
    def __cuda_array_interface__(self):
        self.order()
        return super().__cuda_array_interface__


class Exported(Pending):
    """The same, handed out by DLPack."""

    refuses = False

    def __dlpack_device__(self):
        return 2, self.number

    def __dlpack__(self, stream=None):
        if self.refuses and current() != 1000 + self.number:
            raise BufferError("Can't export tensors on a different CUDA device index")
        self.order()
        shape = (ctypes.c_int64 * self.values.ndim)(*self.values.shape)
        # Never given back, as the memory.
        self.tensor = _Tensor(self.values.ctypes.data, 2, self.number, self.values.ndim, 2, 32, 1, shape)
        return _capsule(ctypes.addressof(self.tensor), b"dltensor", None)


class Refusing(Exported):
    """The same, which its library hands out on the current device alone, as PyTorch does."""

    refuses = True


def current():
    """The context that is current in this thread: 1000 and more are those of devices."""
    driver = ctypes.CDLL("libcuda.so.1")
    driver.fake_cuda_current.restype = ctypes.c_size_t
    return driver.fake_cuda_current()


def make_current(context):
    ctypes.CDLL("libcuda.so.1").fake_cuda_set_current(ctypes.c_size_t(context))


def calls():
    """Calls of the driver so far."""
    return ctypes.CDLL("libcuda.so.1").fake_cuda_calls()


def opened():
    """The devices whose contexts were taken."""
    bits = ctypes.CDLL("libcuda.so.1").fake_cuda_opened()
    return {k for k in range(16) if bits >> k & 1}


def faults():
    """What the stand-in saw that a driver would not forgive; 0 is right."""
    return int(os.environ.get("LD_LIBRARY_PATH") and ctypes.CDLL("libcuda.so.1").fake_cuda_faults())


def launches(device):
    """Kernels that were launched on a device so far."""
    return ctypes.CDLL("libcuda.so.1").fake_cuda_launches(device)


def used():
    """Bytes of all devices' memory that are allocated now."""
    driver = ctypes.CDLL("libcuda.so.1")
    driver.fake_cuda_used.restype = ctypes.c_size_t
    return driver.fake_cuda_used()


def moved():
    """Bytes that crossed the bus so far: to devices, and from them."""
    driver = ctypes.CDLL("libcuda.so.1")
    driver.fake_cuda_moved.restype = ctypes.c_size_t
    return driver.fake_cuda_moved(0), driver.fake_cuda_moved(1)


def most_locked():
    """Bytes of page-locked memory at most."""
    driver = ctypes.CDLL("libcuda.so.1")
    driver.fake_cuda_most_locked.restype = ctypes.c_size_t
    return driver.fake_cuda_most_locked()
