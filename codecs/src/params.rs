// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the caller asked for, and what the chunk is.

use crate::constants::MAX_RANK;
use crate::error::{Error, Result};
use crate::keep::Keep;

pub use crate::mode::{Bound, Mode};

/// Which codec was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Codec {
    /// The writer chooses, from the data and the words alone.
    #[default]
    Auto,
    /// Lossy, speed first (SZx/UFZ).
    Szx,
    /// Lossy, ratio first (cuSZ+).
    Lorenzo,
    /// Lossless (ndzip).
    Ndzip,
    /// Lossy or lossless, speed and ratio at once: bit planes of differences.
    Planes,
    /// Lossy, ratio before all, on CPUs alone: `lorenzo`'s tiles with a context for each residual.
    Dense,
    /// The fastest that takes the bound: [`Codec::fastest`]. No value is looked at.
    Fast,
    /// The writer encodes each chunk by every codec and takes the shortest frame: slow.
    Small,
}

impl Codec {
    /// All of them.
    pub const ALL: [Codec; 8] =
        [Codec::Auto, Codec::Szx, Codec::Lorenzo, Codec::Ndzip, Codec::Planes, Codec::Dense, Codec::Fast, Codec::Small];

    /// The codec of a number in the words. There is no 4: a frame's codec of that number, `bytes`, cannot be asked for.
    pub(crate) fn from_number(number: u32) -> Option<Codec> {
        Codec::ALL.into_iter().find(|c| u32::from(c.number()) == number)
    }

    /// Name as typed by a user.
    pub fn name(self) -> &'static str {
        match self {
            Codec::Auto => "auto",
            Codec::Szx => "szx",
            Codec::Lorenzo => "lorenzo",
            Codec::Ndzip => "ndzip",
            Codec::Planes => "planes",
            Codec::Dense => "dense",
            Codec::Fast => "fast",
            Codec::Small => "small",
        }
    }

    /// Whether it can keep a bound of this mode.
    pub fn takes(self, mode: Mode) -> bool {
        match self {
            Codec::Auto | Codec::Fast | Codec::Small => true,
            Codec::Szx | Codec::Lorenzo | Codec::Dense => mode != Mode::Lossless,
            Codec::Ndzip => mode == Mode::Lossless,
            Codec::Planes => mode != Mode::PointwiseRelative,
        }
    }

    /// Its number in the words.
    pub fn number(self) -> u8 {
        match self {
            Codec::Auto => 0,
            Codec::Szx => 1,
            Codec::Lorenzo => 2,
            Codec::Ndzip => 3,
            Codec::Planes => 5,
            Codec::Dense => 7,
            Codec::Fast => 8,
            Codec::Small => 9,
        }
    }

    /// Whether frames never name it: the writer takes another one.
    fn is_chosen(self) -> bool {
        matches!(self, Codec::Auto | Codec::Fast | Codec::Small)
    }

    /// The codec that is fastest on CPUs and GPUs of all that take this mode.
    pub fn fastest(mode: Mode) -> Codec {
        if Codec::Planes.takes(mode) { Codec::Planes } else { Codec::Szx }
    }
}

/// A codec and a bound: all that a user chooses. A text says it too: `"mode=abs,bound=1e-3".parse()`, see [`FromStr`].
///
/// [`FromStr`]: #impl-FromStr-for-Request
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Request {
    /// Which codec.
    pub codec: Codec,
    /// Which promise.
    pub bound: Bound,
    /// What comes back beside it.
    pub keep: Keep,
}

impl From<Bound> for Request {
    /// Leaves the codec to the writer.
    fn from(bound: Bound) -> Self {
        Request::new(Codec::Auto, bound)
    }
}

impl Request {
    /// A codec and a bound, nothing beside it.
    pub const fn new(codec: Codec, bound: Bound) -> Self {
        Request { codec, bound, keep: Keep::NONE }
    }

    /// The same with the name of the codec that [`Codec::Fast`] stands for.
    #[doc(hidden)]
    pub fn without_fast(self) -> Self {
        match self.codec {
            Codec::Fast => Request { codec: Codec::fastest(self.bound.mode()), ..self },
            _ => self,
        }
    }

    /// Checks that the bound has a value that it may have, and that codec, bound and what is kept fit together.
    ///
    /// # Errors
    /// `Params`, with what is allowed instead.
    pub fn check(self) -> Result<Self> {
        Bound::new(self.bound.mode(), self.bound.value())?;
        let (codec, mode) = (self.codec, self.bound.mode());
        if self.keep != Keep::NONE && !mode.takes_keep() {
            let why = match mode {
                Mode::Lossless => "lossless keeps every bit by itself",
                _ => "under a point-wise relative bound signs and zeros stay by themselves",
            };
            return Err(Error::params(
                "keep",
                format!("{} beside {}; {why}: keep nothing, or give an abs, rel or psnr bound", self.keep, mode.name()),
            ));
        }
        if codec.takes(mode) {
            return Ok(self);
        }
        let (name, short) = (codec.name(), mode.name());
        let others: Vec<String> = Codec::ALL
            .into_iter()
            .filter(|c| !c.is_chosen() && c.takes(mode))
            .map(|c| format!("{} (C = {})", c.name(), c.number()))
            .collect();
        let others = others.join(" or ");
        Err(Error::params(
            "codec",
            match mode {
                Mode::Lossless => {
                    format!("{name} is lossy and needs a bound; lossless are {others}, as in 90000 or 390000")
                }
                _ if codec.takes(Mode::Lossless) && !codec.takes(Mode::Absolute) => {
                    format!("{name} is lossless and takes no {short} bound; use {others}, or 390000")
                }
                _ => format!("{name} takes no {short} bound; use {others}"),
            },
        ))
    }
}

/// HDF5's class of a type, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Class {
    /// Fixed-point numbers (HDF5 class 0).
    Integer,
    /// Floating-point numbers (HDF5 class 1).
    Float,
    /// Everything else, and what is not known: bytes.
    #[default]
    Bytes,
}

/// What one element is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Dtype {
    /// Class.
    pub class: Class,
    /// Bytes of an element; 0 when unknown or above 255.
    pub size: u8,
    /// Most significant byte first.
    pub big_endian: bool,
    /// Integers: two's complement.
    pub signed: bool,
    /// Floats: bits of the exponent.
    pub exponent_bits: u8,
    /// Floats: bits of the stored mantissa.
    pub mantissa_bits: u8,
}

impl Dtype {
    /// IEEE 754 binary32, little-endian.
    pub const F32: Dtype = Dtype::float(4, 8, 23);
    /// IEEE 754 binary64, little-endian.
    pub const F64: Dtype = Dtype::float(8, 11, 52);
    /// IEEE 754 binary16, little-endian.
    pub const F16: Dtype = Dtype::float(2, 5, 10);
    /// The upper half of binary32, little-endian.
    pub const BFLOAT16: Dtype = Dtype::float(2, 8, 7);

    const fn float(size: u8, exponent_bits: u8, mantissa_bits: u8) -> Self {
        Dtype { class: Class::Float, size, big_endian: false, signed: true, exponent_bits, mantissa_bits }
    }

    /// Elements without inner structure, `size` bytes each (0: unknown).
    pub const fn bytes(size: u8) -> Self {
        Dtype { class: Class::Bytes, size, big_endian: false, signed: false, exponent_bits: 0, mantissa_bits: 0 }
    }

    /// The same type in this machine's byte order.
    #[doc(hidden)]
    pub fn little(self) -> Self {
        Dtype { big_endian: false, ..self }
    }

    /// f32 or f64 in either byte order.
    pub fn is_ieee(self) -> bool {
        self.little() == Dtype::F32 || self.little() == Dtype::F64
    }

    /// bfloat16 in either byte order.
    #[doc(hidden)]
    pub fn is_bfloat16(self) -> bool {
        self.little() == Dtype::BFLOAT16
    }

    /// f16 or bfloat16 in either byte order.
    pub(crate) fn is_half(self) -> bool {
        self.little() == Dtype::F16 || self.is_bfloat16()
    }

    /// Integers of 1 or 2 bytes.
    #[doc(hidden)]
    pub fn is_short(self) -> bool {
        self.class == Class::Integer && matches!(self.size, 1 | 2)
    }

    /// A type that takes a bound: f16, bfloat16, f32, f64, in either byte order.
    pub fn takes_bound(self) -> bool {
        self.is_ieee() || self.is_half()
    }

    /// The smallest positive number of a type that takes a bound.
    #[doc(hidden)]
    pub fn least_positive(self) -> f64 {
        let bias = (1 << self.exponent_bits.saturating_sub(1)) - 1;
        match self.size {
            8 => f64::from_bits(1),
            _ => f64::exp2(f64::from(1 - bias - i32::from(self.mantissa_bits))),
        }
    }

    /// Packed as in the words and in the frame: class 4 bits · size 8 · order 2 · sign 1 · 0 · exponent 8 · mantissa 8.
    pub(crate) fn pack(self) -> u32 {
        let class = match self.class {
            Class::Integer => 0,
            Class::Float => 1,
            Class::Bytes => 15,
        };
        class
            | u32::from(self.size) << 4
            | u32::from(self.big_endian) << 12
            | u32::from(self.signed) << 14
            | u32::from(self.exponent_bits) << 16
            | u32::from(self.mantissa_bits) << 24
    }

    /// Reads what [`Dtype::pack`] wrote; `None` for bits that it never writes.
    pub(crate) fn unpack(word: u32) -> Option<Self> {
        let d = Dtype {
            class: match word & 15 {
                0 => Class::Integer,
                1 => Class::Float,
                15 => Class::Bytes,
                _ => return None,
            },
            size: (word >> 4) as u8,
            big_endian: word >> 12 & 1 == 1,
            signed: word >> 14 & 1 == 1,
            exponent_bits: (word >> 16) as u8,
            mantissa_bits: (word >> 24) as u8,
        };
        (d.pack() == word).then_some(d)
    }
}

/// Extents of a chunk as its codec sees it, slowest first, unit extents dropped, at most eight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Extents {
    dims: [u32; MAX_RANK],
    rank: u8,
    is_swapped: bool,
}

impl Extents {
    /// Drops unit extents and multiplies leading ones together until eight are left.
    /// `None` where an extent is 0 or does not fit 32 bits then.
    pub fn new(dims: &[u64]) -> Option<Self> {
        let used: Vec<u64> = dims.iter().copied().filter(|&d| d != 1).collect();
        let (lead, tail) = used.split_at(used.len().saturating_sub(MAX_RANK - 1));
        let first = if lead.is_empty() { None } else { Some(lead.iter().try_fold(1u64, |a, &d| a.checked_mul(d))?) };
        let mut out = Extents::default();
        for d in first.into_iter().chain(tail.iter().copied()) {
            if d == 0 {
                return None;
            }
            out.dims[usize::from(out.rank)] = u32::try_from(d).ok()?;
            out.rank += 1;
        }
        out.count().map(|_| out)
    }

    /// The extents, slowest first.
    pub fn as_slice(&self) -> &[u32] {
        &self.dims[..usize::from(self.rank)]
    }

    /// The same extents of a codec's array of which the chunk has the first two axes exchanged. `None` for fewer axes.
    pub(crate) fn swapped(self) -> Option<Self> {
        (self.rank >= 2).then_some(Extents { is_swapped: true, ..self })
    }

    /// The extents of the codec's array, nothing said of the chunk's.
    pub(crate) fn unswapped(self) -> Self {
        Extents { is_swapped: false, ..self }
    }

    /// Whether the chunk's values lie in the chunk with the first two axes exchanged (FORMAT.md §5).
    pub fn is_swapped(&self) -> bool {
        self.is_swapped
    }

    /// Elements; `None` when 64 bits do not hold them.
    pub fn count(&self) -> Option<u64> {
        self.as_slice().iter().try_fold(1u64, |a, &d| a.checked_mul(u64::from(d)))
    }
}

/// All that one chunk's encoder is told. Written into the words by `set_local`.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Params {
    /// What the user chose.
    pub request: Request,
    /// What one element is.
    pub dtype: Dtype,
    /// Extents of the chunk.
    pub extents: Extents,
    /// The fill value's bits in the element's own width, when the user defined one: kept exactly, and in no range.
    /// Without one, +0 is in no range either: HDF5 pads chunks with it.
    pub fill: Option<u64>,
    /// False where bits must not be lost: nothing proves that the filter sees the numbers themselves.
    pub lossy_allowed: bool,
}

impl Params {
    /// Parameters for numbers given directly, outside HDF5.
    ///
    /// # Errors
    /// `Params` when the request contradicts itself or the extents hold a zero or more than 2^64 elements.
    pub fn new(request: Request, dtype: Dtype, dims: &[u64]) -> Result<Self> {
        let extents = Extents::new(dims)
            .ok_or_else(|| Error::params("extents", format!("{dims:?}; each must be 1 to 4294967295")))?;
        Ok(Params { request: request.check()?, dtype, extents, fill: None, lossy_allowed: true })
    }

    /// Whether this chunk of `raw_len` bytes may lose bits: asked for, allowed, and the bytes are f32 or f64.
    #[doc(hidden)]
    pub fn lossy(&self, raw_len: usize) -> bool {
        self.bounded(raw_len) && self.dtype.is_ieee()
    }

    /// The same for f16 and bfloat16.
    pub(crate) fn lossy_half(&self, raw_len: usize) -> bool {
        self.bounded(raw_len) && self.dtype.is_half()
    }

    fn bounded(&self, raw_len: usize) -> bool {
        self.request.bound != Bound::Lossless && self.lossy_allowed && self.fits(raw_len)
    }

    /// Whether `raw_len` is what extents and type say.
    #[doc(hidden)]
    pub fn fits(&self, raw_len: usize) -> bool {
        let n = self.extents.count().and_then(|n| n.checked_mul(u64::from(self.dtype.size)));
        n == Some(raw_len as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents_drop_units_and_fold_the_leading_ones() {
        assert_eq!(Extents::new(&[1, 7, 1, 4]).unwrap().as_slice(), [7, 4]);
        assert_eq!(Extents::new(&[]).unwrap().as_slice(), [0u32; 0]);
        assert_eq!(Extents::new(&[1, 1]).unwrap().count(), Some(1));
        assert_eq!(Extents::new(&[2; 10]).unwrap().as_slice(), [8, 2, 2, 2, 2, 2, 2, 2]);
        assert_eq!(Extents::new(&[2; 32]).unwrap().as_slice(), [1 << 25, 2, 2, 2, 2, 2, 2, 2]);
        assert_eq!(Extents::new(&[3, 0]), None);
        assert_eq!(Extents::new(&[1 << 32]), None);
        assert_eq!(Extents::new(&[u32::MAX.into(), u32::MAX.into(), u32::MAX.into()]), None);
    }

    #[test]
    fn what_a_codec_does_not_take_is_said() {
        let said = |codec, bound| Request::new(codec, bound).check().unwrap_err().to_string();
        assert!(said(Codec::Szx, Bound::Lossless).contains("szx is lossy and needs a bound"));
        assert!(said(Codec::Ndzip, Bound::Absolute(1.0)).contains("ndzip is lossless and takes no abs bound"));
        assert!(said(Codec::Planes, Bound::PointwiseRelative(0.1)).contains("planes takes no pw_rel bound"));
    }

    #[test]
    fn dtypes_survive_packing() {
        for d in [Dtype::F32, Dtype::F64, Dtype::bytes(0), Dtype::bytes(16), Dtype { big_endian: true, ..Dtype::F32 }] {
            assert_eq!(Dtype::unpack(d.pack()), Some(d));
        }
        assert_eq!(Dtype::unpack(7), None);
    }
}
