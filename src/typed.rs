// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arrays of numbers to frames and back: the whole library in three functions.

use crate::engine::Engine;
use bytemuck::{cast_slice, cast_slice_mut};
use codecs::codec::chunk::{foreign, swap};
use codecs::error::{Error, Result};
use codecs::frame;
use codecs::memory;
use codecs::params::{Class, Dtype, Params, Request};
use std::borrow::Cow;

/// A number that arrays may consist of. Bounds are for `f32` and `f64`; integers come back bit for bit under any.
pub trait Element: bytemuck::Pod + sealed::Sealed {
    /// The type as frames state it.
    const DTYPE: Dtype;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! elements {
    ($($t:ident: $dtype:expr;)*) => { $(
        impl sealed::Sealed for $t {}
        impl Element for $t {
            const DTYPE: Dtype = $dtype;
        }
    )* };
}

const fn integer(size: u8, signed: bool) -> Dtype {
    Dtype { class: Class::Integer, signed, ..Dtype::bytes(size) }
}

elements! {
    f32: Dtype::F32;
    f64: Dtype::F64;
    i32: integer(4, true);
    i64: integer(8, true);
    u32: integer(4, false);
    u64: integer(8, false);
}

/// Compresses an array into a frame. `shape` is its extents, slowest first; `request` a [`Bound`](crate::Bound), or a
/// [`Request`] that names a codec too.
///
/// Uses the process's [`Engine`]: its threads, and its GPU where there is one. NaN and infinities come back bit for
/// bit. For fill values, other types and many arrays at a time, see [`Engine::encode_batch`].
///
/// # Errors
/// `Params` when `shape` is not the array's or the request contradicts itself, `NoMemory` when there is too little for
/// a frame.
pub fn encode<T: Element>(values: &[T], shape: &[usize], request: impl Into<Request>) -> Result<Vec<u8>> {
    let dims: Vec<u64> = shape.iter().map(|&d| d as u64).collect();
    let params = Params::new(request.into(), T::DTYPE, &dims)?;
    if params.extents.count() != Some(values.len() as u64) {
        return Err(Error::params("shape", format!("{shape:?}; the array has {} elements", values.len())));
    }
    let mut raw: Cow<'_, [u8]> = cast_slice(values).into();
    if foreign(T::DTYPE) {
        swap(raw.to_mut(), size_of::<T>());
    }
    let frame = Engine::global().encode(&params, &raw);
    if frame.is_empty() { Err(Error::NoMemory { bytes: raw.len() as u64 }) } else { Ok(frame) }
}

/// The array in a frame. It takes as much memory as the frame's header says: from strangers, rather use
/// [`decode_into`], or [`Engine::decode`] with a limit.
///
/// # Errors
/// `Params` when the frame holds another type, else see [`Error`].
pub fn decode<T: Element>(frame: &[u8]) -> Result<Vec<T>> {
    let elements = frame::raw_len(frame)? / size_of::<T>() as u64;
    let mut values = memory::zeros(usize::try_from(elements).unwrap_or(usize::MAX))?;
    decode_into(frame, &mut values)?;
    Ok(values)
}

/// Decodes the array in a frame into `values`, which must have its length.
///
/// # Errors
/// `Params` when the frame holds another type or another number of values, else see [`Error`]; `values` may hold
/// anything then.
pub fn decode_into<T: Element>(frame: &[u8], values: &mut [T]) -> Result<()> {
    let dtype = frame::header(frame)?.dtype;
    // Stored bytes have no type: they are what `encode` was given.
    if dtype.little() != T::DTYPE && dtype != Dtype::bytes(0) {
        let got = std::any::type_name::<T>();
        return Err(Error::params("type", format!("{got}; the frame holds {dtype:?}")));
    }
    let bytes: &mut [u8] = cast_slice_mut(values);
    Engine::global().decode_into(frame, bytes)?;
    if foreign(dtype) {
        swap(bytes, size_of::<T>());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use codecs::params::{Bound, Codec};

    #[test]
    fn arrays_of_every_type_come_back() {
        fn exact<T: Element + PartialEq>(values: &[T]) {
            let bound = if T::DTYPE.is_ieee() { Bound::Lossless } else { Bound::Absolute(1e-3) };
            let frame = encode(values, &[2, values.len() / 2], bound).unwrap();
            assert!(decode::<T>(&frame).unwrap() == values, "{:?}", T::DTYPE);
        }
        exact::<i32>(&[-1, 2, 3, 4]);
        exact::<u32>(&[1; 5000]);
        exact::<i64>(&[i64::MIN, 0, 1, 2]);
        exact::<u64>(&[u64::MAX; 4]);
        exact::<f32>(&[1e30, f32::INFINITY, -0.0, 0.0]);
        let noise: Vec<f64> =
            (0..4096u64).map(|i| f64::from_bits(i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 2)).collect();
        exact(&noise);
        let smooth: Vec<f64> = (0..10_000).map(|i| (f64::from(i) * 0.01).sin()).collect();
        for codec in [Codec::Auto, Codec::Szx, Codec::Lorenzo] {
            let frame = encode(&smooth, &[100, 100], Request::new(codec, Bound::Absolute(1e-3))).unwrap();
            assert!(frame.len() < smooth.len() * 2);
            let back = decode::<f64>(&frame).unwrap();
            assert!(smooth.iter().zip(&back).all(|(x, y)| (x - y).abs() <= 1e-3));
        }
    }

    #[test]
    fn a_wrong_shape_and_a_wrong_type_are_refused() {
        assert!(encode(&[1f32; 6], &[2, 2], Bound::Lossless).unwrap_err().to_string().contains("6 elements"));
        assert!(encode(&[1f32; 6], &[6], Bound::Absolute(-1.0)).is_err());
        let frame = encode(&[1f32; 6000], &[6000], Bound::Lossless).unwrap();
        assert!(decode::<f64>(&frame).unwrap_err().to_string().contains("f64"));
        assert!(decode_into(&frame, &mut [0f32; 5999]).is_err());
    }

    #[test]
    fn a_frame_of_the_other_byte_order_is_read() {
        let dtype = Dtype { big_endian: true, ..Dtype::F32 };
        let values: Vec<f32> = (0..2000).map(|i| i as f32).collect();
        let raw: Vec<u8> = values.iter().flat_map(|x| x.to_be_bytes()).collect();
        let params = Params::new(Bound::Absolute(0.25).into(), dtype, &[2000]).unwrap();
        let frame = Engine::global().encode(&params, &raw);
        let back = decode::<f32>(&frame).unwrap();
        assert!(values.iter().zip(back).all(|(x, y)| (x - y).abs() <= 0.25));
    }
}
