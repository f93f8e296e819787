// SPDX-License-Identifier: MIT OR Apache-2.0
// Programmatic dependent launch: a kernel's CTAs take their places while the last ones of the kernel before it still
// run, and wait there for its results. Since Hopper; elsewhere kernels follow one another as ever.
#pragma once

namespace dependent {

// Waits until all that the kernel before this one wrote is there, then lets CTAs of the next one come once this one's
// all have places. Nothing may be read or written before.
__device__ __forceinline__ void begin() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

}  // namespace dependent

// A kernel: its name, the type of its argument `args`, its launch bounds in parentheses, and what it does.
#define ENTRY(NAME, ARGS, BOUNDS, ...)                                    \
    extern "C" __global__ __launch_bounds__ BOUNDS void NAME(ARGS args) { \
        dependent::begin();                                               \
        __VA_ARGS__;                                                      \
    }
