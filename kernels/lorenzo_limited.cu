// SPDX-License-Identifier: MIT OR Apache-2.0
// The steps of lorenzo_encode.cu that go through values, for chunks of which more than the bound is kept: a file of its
// own, for it takes as long to compile as the others.
#include "lorenzo/interpolate.cuh"
#include "lorenzo/plan.cuh"
#include "prim/dependent.cuh"

#define ENTRIES(S, name)                                                                                     \
    ENTRY(lorenzo_limited_plan_##name, EncodeArgs, (THREADS, LorenzoTuning::PLAN_CTAS), plan<S, true>(args)) \
    ENTRY(lorenzo_limited_interpolate_##name, EncodeArgs, (THREADS, LorenzoTuning::INTERPOLATE_CTAS),        \
          interpolate_tile<S, true>(args))
ENTRIES(float, f32)
ENTRIES(double, f64)
