// SPDX-License-Identifier: MIT OR Apache-2.0
//! Chunks of 16-bit numbers under a bound: f32 in their place for the kernels of f32, and back, by kernels/array.cu.
//! codecs/src/codec/half.rs says why that keeps the bound.

use crate::cuda::{Device, Failure, Stream};
use codecs::params::Dtype;
use kernels::abi::HalfArgs;

/// Numbers that a CTA converts.
const CTA_VALUES: usize = 16 << 10;

/// Dense chunks of 16-bit numbers, and of as many f32: the address of the first chunk, 16-byte aligned, and bytes from
/// one to the next.
pub(super) struct Halves {
    pub(super) halves: (u64, usize),
    pub(super) wide: (u64, usize),
    pub(super) chunks: usize,
    /// Numbers of a chunk.
    pub(super) values: usize,
    pub(super) dtype: Dtype,
}

impl Halves {
    /// Starts `array_widen`, which makes f32, or `array_narrow`, which makes 16-bit numbers.
    ///
    /// # Safety
    /// Both are memory of the device, each chunk as long as its step, when the stream comes to it.
    #[allow(unsafe_code)]
    pub(super) unsafe fn start(&self, device: &Device, stream: &mut Stream, kernel: &str) -> Result<(), Failure> {
        let Halves { halves, wide, chunks, values, dtype } = *self;
        let parts = values.div_ceil(CTA_VALUES).clamp(1, 64) as u32;
        let args = HalfArgs {
            halves: halves.0,
            halves_step: halves.1 as u64,
            wide: wide.0,
            wide_step: wide.1 as u64,
            values: values as u64,
            parts,
            is_bfloat16: dtype.is_bfloat16().into(),
        };
        // SAFETY: this function's promise.
        unsafe { stream.launch(device.kernel(kernel)?, chunks as u32 * parts, &args) }
    }
}
