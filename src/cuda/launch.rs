// SPDX-License-Identifier: MIT OR Apache-2.0
//! Typed launches: an argument struct and a number of CTAs become one checked driver call; and a stopwatch.

use super::driver::Failure;
use super::module::Kernel;
use super::stream::Stream;
#[cfg(feature = "testing")]
use cudarc::driver::result;
use cudarc::driver::sys;
use kernels::abi::{
    BoxCopy, CopyArgs, DecodeArgs, DecodeChunk, EncodeArgs, EncodeChunk, HalfArgs, PackArgs, STRUCTS, ScaledArgs,
    ScaledChunk,
};

/// A struct that a kernel takes by value.
pub(crate) trait Args: Copy {}
impl Args for EncodeArgs {}
impl Args for DecodeArgs {}
impl Args for CopyArgs {}
impl Args for PackArgs {}
impl Args for HalfArgs {}
impl Args for ScaledArgs {}
/// What a kernel takes that is launched alone: its own struct, of such words, is no longer.
impl Args for [u64; 16] {}

/// A struct that kernels read from device memory.
///
/// # Safety
/// Plain numbers without padding: every byte is initialised.
pub(crate) unsafe trait Described: Copy {
    /// The bytes of a list of them.
    fn bytes(list: &[Self]) -> &[u8] {
        // SAFETY: as the trait demands.
        unsafe { std::slice::from_raw_parts(list.as_ptr().cast(), std::mem::size_of_val(list)) }
    }
}
// SAFETY: one of `STRUCTS`, in which the assertion below finds no padding.
unsafe impl Described for EncodeChunk {}
// SAFETY: as above.
unsafe impl Described for DecodeChunk {}
// SAFETY: as above.
unsafe impl Described for BoxCopy {}
// SAFETY: as above.
unsafe impl Described for ScaledChunk {}

/// No struct of the list has a byte that belongs to none of its fields.
const _: () = {
    let mut s = 0;
    while s < STRUCTS.len() {
        let (mut field, mut bytes) = (0, 0);
        while field < STRUCTS[s].fields.len() {
            bytes += STRUCTS[s].fields[field].size;
            field += 1;
        }
        assert!(bytes == STRUCTS[s].size, "a shared struct has padding");
        s += 1;
    }
};

impl Stream {
    /// Starts a kernel on `ctas` CTAs when all before it in the stream is done.
    ///
    /// # Safety
    /// `A` is the kernel's argument. Device addresses in `args`, and in what they lead to, come from this stream's
    /// [`Stream::reserve`] or are a user's array, and what they describe lies inside.
    pub(crate) unsafe fn launch<A: Args>(&mut self, kernel: Kernel, ctas: u32, args: &A) -> Result<(), Failure> {
        // SAFETY: the caller's.
        unsafe { self.launch_with(kernel, ctas, args, &mut []) }
    }

    /// Starts kernels one behind the other, each with its number of CTAs. Where they know to wait for each other
    /// themselves, CTAs of one take their places while the last ones of the kernel before still run: programmatic
    /// dependent launch, in NVIDIA's words.
    ///
    /// # Safety
    /// As of [`Stream::launch`], for each of them.
    pub(crate) unsafe fn launch_all<A: Args>(
        &mut self,
        kernels: impl Iterator<Item = (Kernel, u32)>,
        args: &A,
    ) -> Result<(), Failure> {
        for (k, (kernel, ctas)) in kernels.enumerate() {
            let mut early = sys::CUlaunchAttribute {
                id: sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                pad: [0; 4],
                value: sys::CUlaunchAttributeValue { programmaticStreamSerializationAllowed: 1 },
            };
            let attributes = if k > 0 && kernel.waits { std::slice::from_mut(&mut early) } else { &mut [] };
            // SAFETY: the caller's. A kernel that waits reads and writes nothing before.
            unsafe { self.launch_with(kernel, ctas, args, attributes) }?;
        }
        Ok(())
    }

    unsafe fn launch_with<A: Args>(
        &mut self,
        kernel: Kernel,
        ctas: u32,
        args: &A,
        attributes: &mut [sys::CUlaunchAttribute],
    ) -> Result<(), Failure> {
        self.busy = true;
        let mut args = *args;
        let mut params = [std::ptr::from_mut(&mut args).cast()];
        let config = sys::CUlaunchConfig {
            gridDimX: ctas,
            gridDimY: 1,
            gridDimZ: 1,
            blockDimX: kernel.threads,
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: 0,
            hStream: self.handle.0,
            attrs: attributes.as_mut_ptr(),
            numAttrs: attributes.len() as u32,
        };
        let no_others = std::ptr::null_mut();
        // SAFETY: the caller's; the struct, whose layout the kernels' build asserts, is copied by the call.
        unsafe { sys::cuLaunchKernelEx(&config, kernel.function, params.as_mut_ptr(), no_others) }
            .result()
            .map_err(|e| Failure::new("cuLaunchKernelEx", e))
    }
}

/// Measures the device's time between points of a stream.
#[cfg(feature = "testing")]
pub(crate) struct Timer {
    marks: Vec<sys::CUevent>,
}

#[cfg(feature = "testing")]
impl Timer {
    /// A stopwatch with `marks` marks; kept for the life of the process.
    pub(crate) fn new(marks: usize) -> Result<Self, Failure> {
        let event = |_| {
            result::event::create(sys::CUevent_flags::CU_EVENT_DEFAULT).map_err(|e| Failure::new("cuEventCreate", e))
        };
        Ok(Timer { marks: (0..marks).map(event).collect::<Result<_, _>>()? })
    }

    /// Sets a mark where the stream stands.
    pub(crate) fn mark(&self, k: usize, stream: &Stream) -> Result<(), Failure> {
        // SAFETY: both handles are alive.
        unsafe { result::event::record(self.marks[k], stream.handle.0) }.map_err(|e| Failure::new("cuEventRecord", e))
    }

    /// Milliseconds from each mark to the next; the stream was waited for for all of them.
    pub(crate) fn read(&self) -> Result<Vec<f32>, Failure> {
        // SAFETY: both events are recorded and done.
        let between = |w: &[sys::CUevent]| unsafe { result::event::elapsed(w[0], w[1]) };
        self.marks.windows(2).map(|w| between(w).map_err(|e| Failure::new("cuEventElapsedTime", e))).collect()
    }
}
