// SPDX-License-Identifier: MIT OR Apache-2.0
use crate::bound::Used;
use crate::codec::Spec;
use crate::error::Result;
use crate::frame::{Frame, Header};
use crate::scalar::Scalar;
pub(crate) fn encode<S: Scalar>(values: &[S], spec: &Spec<'_>, _used: Used, _header: Header, out: &mut Vec<u8>) {
    let _ = spec.params;
    crate::codec::stored::encode(bytemuck::cast_slice(values), spec.threads, out);
}
pub(crate) fn decode<S: Scalar>(frame: &Frame<'_>, _threads: usize, out: &mut [S]) -> Result<()> {
    crate::codec::stored::decode(frame, bytemuck::cast_slice_mut(out))
}
