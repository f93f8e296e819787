#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# One hash of all that decides what the GPU does: kernels, the code that launches them, and how they are built.
cd "$(dirname "$0")/../.." || exit 1
{
    find kernels src/cuda tests/gpu/cuda -name '*.cu' -o -name '*.cuh' -o -name '*.rs'
    ls gpu.mk codecs/src/constants.rs src/engine/gpu/*.rs src/engine/gpu/plans/*.rs \
        src/array/device/*.rs
} | LC_ALL=C sort | xargs sha256sum | sha256sum | cut -c 1-64
