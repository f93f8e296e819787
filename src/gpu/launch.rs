// SPDX-License-Identifier: MIT OR Apache-2.0
//! Typed launches: an argument struct and a number of CTAs become one checked driver call; and a stopwatch.

use super::abi::{DecodeArgs, DecodeChunk, EncodeArgs, EncodeChunk};
use super::driver::Failure;
use super::lane::Lane;
use super::module::Kernel;
use cudarc::driver::{result, sys};

/// A struct that a kernel takes by value.
pub(crate) trait Args: Copy {}
impl Args for EncodeArgs {}
impl Args for DecodeArgs {}
/// What a kernel takes that is launched alone: its own struct, of such words, is no longer.
impl Args for [u64; 16] {}

/// A struct without padding that kernels read from device memory.
pub(crate) trait Described: Copy {
    /// The bytes of a list of them.
    fn bytes(list: &[Self]) -> &[u8] {
        // SAFETY: plain numbers without padding (asserted by the kernels' build, field by field).
        unsafe { std::slice::from_raw_parts(list.as_ptr().cast(), std::mem::size_of_val(list)) }
    }
}
impl Described for EncodeChunk {}
impl Described for DecodeChunk {}

impl Lane {
    /// Starts a kernel on `ctas` CTAs.
    ///
    /// Device addresses in `args` must come from this lane's [`Lane::room`] and what they describe must lie inside.
    pub(crate) fn launch<A: Args>(&mut self, kernel: Kernel, ctas: u32, args: &A) -> Result<(), Failure> {
        self.busy = true;
        let mut args = *args;
        let mut params = [std::ptr::from_mut(&mut args).cast()];
        let (grid, cta) = ((ctas, 1, 1), (kernel.threads, 1, 1));
        // SAFETY: the kernel takes exactly this struct, whose layout its build asserts; it is copied by the call.
        unsafe { result::launch_kernel(kernel.function, grid, cta, 0, self.stream.0, &mut params) }
            .map_err(|e| Failure::new("cuLaunchKernel", e))
    }
}

/// Measures the device's time between points of a lane's stream.
pub(crate) struct Timer {
    marks: Vec<sys::CUevent>,
}

impl Timer {
    /// A stopwatch with so many marks; kept for the life of the process.
    pub(crate) fn new(marks: usize) -> Result<Self, Failure> {
        let event = |_| {
            result::event::create(sys::CUevent_flags::CU_EVENT_DEFAULT).map_err(|e| Failure::new("cuEventCreate", e))
        };
        Ok(Timer { marks: (0..marks).map(event).collect::<Result<_, _>>()? })
    }

    /// Sets a mark where the stream stands.
    pub(crate) fn mark(&self, k: usize, lane: &Lane) -> Result<(), Failure> {
        // SAFETY: both handles are alive.
        unsafe { result::event::record(self.marks[k], lane.stream.0) }.map_err(|e| Failure::new("cuEventRecord", e))
    }

    /// Milliseconds from each mark to the next; the lane has waited for all of them.
    pub(crate) fn read(&self) -> Result<Vec<f32>, Failure> {
        // SAFETY: both events are recorded and done.
        let between = |w: &[sys::CUevent]| unsafe { result::event::elapsed(w[0], w[1]) };
        self.marks.windows(2).map(|w| between(w).map_err(|e| Failure::new("cuEventElapsedTime", e))).collect()
    }
}
