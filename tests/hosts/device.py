# SPDX-License-Identifier: MIT OR Apache-2.0
"""Arrays in the memory of a stand-in for a GPU: the driver of tests/gpu/fake_cuda.c, with the kernels emulated on the
CPU."""
import ctypes
import os
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent.parent
DRIVER, KERNELS = ROOT / "target/tmp/fake-cuda-", ROOT / "target/tmp/kernels"


def environment():
    """What a process needs to find the stand-in. `cargo test --test gpu_kernels` makes it."""
    missing = [p for p in (DRIVER / "libcuda.so.1", KERNELS / "array.so") if not p.exists()]
    assert not missing, f"{missing} are missing: run `cargo test --test gpu_kernels`, as `make test` does"
    return {"LD_LIBRARY_PATH": str(DRIVER), "FAKE_CUDA_KERNELS": str(KERNELS),
            "PYTHONPATH": f"{ROOT}/plugin/python:{Path(__file__).parent}",
            "H5Z_GPU_PLUGIN_PATH": f"{ROOT}/target/plugin", "FAKE_CUDA_MEMORY": str(4 << 30)}


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
        memory = (ctypes.c_uint8 * whole.nbytes).from_address(at.value) if whole.nbytes else b""
        self.values = np.frombuffer(memory, whole.dtype).reshape(whole.shape)
        self.values[...] = whole
        self.readonly, self.number = readonly, device

    def __getitem__(self, part):
        other = object.__new__(Array)
        other.values, other.readonly, other.number = self.values[part], self.readonly, self.number
        return other

    @property
    def device(self):
        return type("Device", (), {"id": self.number})

    @property
    def __cuda_array_interface__(self):
        return dict(shape=self.values.shape, typestr=self.values.dtype.str, strides=self.values.strides, version=3,
                    stream=1, data=(self.values.ctypes.data, self.readonly))


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
