// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where a tile's parts are, found and checked before any of them is used, and bit plane after bit plane taken from
//! them. FORMAT.md §3.2, §7.
//!
//! Head and modes say how many ballots and full planes there are, ballots how many nibbles, nibbles how many bytes, the
//! planes of classes 1 and 2 how many bits, the masks' word how many values. So all lengths are known from what stands
//! in front, and nothing that is read later can be beyond the tile. What the masks themselves say is compared with
//! their word when they have been read.

use super::bitplanes::BitPlane;
use super::format::{Class, Exceptions, Head, Masks, Mode, Word, modes_are_known, number};
use super::parts::SLICES;
use crate::constants::PLANES_LANES;
use crate::error::Damage;
use crate::stage::pack::{self, Bytes};

/// A tile of class 0, 1 or 2 whose lengths were found right.
pub(super) struct Layout<'a> {
    pub(super) head: Head,
    /// Words of the base in classes 1 and 2.
    pub(super) base: &'a [Word],
    pub(super) masks: Option<Masks>,
    modes: [u16; SLICES],
    pub(super) planes: Planes<'a>,
    /// Words behind the planes: bits and exceptions' values.
    rest: &'a [Word],
    /// Words of the tile.
    len: usize,
}

/// What is left of a tile's bit planes.
pub(super) struct Planes<'a> {
    ballots: &'a [Word],
    nibbles: &'a [Word],
    /// Nibbles taken.
    taken: usize,
    full: &'a [Word],
    bytes: &'a [u8],
}

/// Takes the first `n` words of what is left of a tile.
#[inline(always)]
fn take_words<'a>(rest: &mut &'a [Word], n: usize, part: &str) -> Result<&'a [Word], Damage> {
    let Some((taken, left)) = rest.split_at_checked(n) else {
        return Err(format!("{n} words of {part} where {} are left", rest.len()).into());
    };
    *rest = left;
    Ok(taken)
}

impl<'a> Layout<'a> {
    /// Finds the parts of a tile with this head. `tile` begins with it.
    #[inline(always)]
    pub(super) fn find(tile: &'a [Word], head: Head, size: usize) -> Result<Self, Damage> {
        let len = tile.len();
        let mut rest = &tile[head.len()..];
        let mut modes = [0; SLICES];
        if head.class == Class::Quanta && rest.is_empty() {
            if number(tile[0]) & 0x7F0 != 0 {
                return Err(format!("head {:#010x} alone, bits 4 to 10 must be 0", number(tile[0])).into());
            }
            let planes = Planes { ballots: rest, nibbles: rest, taken: 0, full: rest, bytes: &[] };
            return Ok(Layout { head, base: rest, masks: None, modes, planes, rest, len });
        }
        let base = take_words(&mut rest, if head.class == Class::Quanta { 0 } else { size / 4 }, "the base")?;
        let masks = match head.exceptions {
            Exceptions::None => None,
            _ => Some(Masks::unpack(number(take_words(&mut rest, 1, "the masks")?[0]))?),
        };
        let slices: usize = head.slices.iter().sum();
        let stored = take_words(&mut rest, slices.div_ceil(2), "modes")?.as_flattened();
        for (mode, bytes) in modes.iter_mut().zip(stored.as_chunks().0) {
            *mode = u16::from_le_bytes(*bytes);
        }
        if slices % 2 == 1 && modes[slices] != 0 {
            return Err(format!("modes {:#06x} behind the last of {slices} slices", modes[slices]).into());
        }
        if !modes.iter().all(|&modes| modes_are_known(modes.into())) {
            return Err(format!("a plane has mode 3 in {modes:04x?}").into());
        }
        // Of modes that are known, the lower bit is that of a full plane, the higher of a sparse one.
        let of_planes = if slices == 0 { &head.modes[..] } else { &modes[..slices] };
        let count = |bit: u32| -> usize {
            let all = of_planes.iter().map(|&modes| modes.into()).chain(masks.map(|masks| masks.modes));
            all.map(|modes| (modes >> bit & 0x5555).count_ones() as usize).sum()
        };
        let ballots = take_words(&mut rest, count(1), "ballots")?;
        let lanes = |ballots: &[Word]| ballots.iter().map(|&b| number(b).count_ones() as usize).sum::<usize>();
        let of_bytes = lanes(ballots);
        let nibbles = take_words(&mut rest, of_bytes.div_ceil(8), "nibbles")?;
        if let Some(&last) = nibbles.last()
            && !of_bytes.is_multiple_of(8)
            && number(last) >> (4 * (of_bytes % 8)) != 0
        {
            return Err(format!("nibbles {:#010x} behind the last of {of_bytes}", number(last)).into());
        }
        let full = take_words(&mut rest, PLANES_LANES * count(0), "full planes")?;
        let len_of_bytes = lanes(nibbles);
        let (bytes, filling) =
            take_words(&mut rest, len_of_bytes.div_ceil(4), "bytes")?.as_flattened().split_at(len_of_bytes);
        if filling.iter().any(|&b| b != 0) {
            return Err(format!("filling {filling:?} behind {len_of_bytes} bytes").into());
        }
        let planes = Planes { ballots, nibbles, taken: 0, full, bytes };
        Ok(Layout { head, base, masks, modes, planes, rest, len })
    }

    /// What follows the planes: the fields, of `fields` words, and the exceptions' values.
    pub(super) fn rest(&self, fields: usize, size: usize) -> Result<(&'a [Word], &'a [Word]), Damage> {
        let mut rest = self.rest;
        let fields = take_words(&mut rest, fields, "bits")?;
        let stored = match (self.head.exceptions, self.masks) {
            (Exceptions::Each, Some(masks)) => masks.count,
            (Exceptions::Uniform, _) => 1,
            _ => 0,
        };
        let values = take_words(&mut rest, stored * size / 4, "values")?;
        if !rest.is_empty() {
            return Err(format!("{} words, its parts have {}", self.len, self.len - rest.len()).into());
        }
        Ok((fields, values))
    }

    /// Modes of a block's slices.
    #[inline(always)]
    pub(super) fn modes(&self, block: usize) -> &[u16] {
        let first: usize = self.head.slices[..block].iter().sum();
        &self.modes[first..first + self.head.slices[block]]
    }
}

impl Planes<'_> {
    /// Takes the next bit plane.
    #[inline(always)]
    pub(super) fn plane(&mut self, mode: Mode, out: &mut BitPlane, unit: impl Bytes) {
        match mode {
            Mode::Absent => *out = [0; PLANES_LANES],
            Mode::Full => {
                let (words, rest) = self.full.split_at(PLANES_LANES);
                self.full = rest;
                out.iter_mut().zip(words).for_each(|(out, &word)| *out = number(word));
            }
            Mode::Sparse => {
                let (&ballot, rest) = self.ballots.split_first().expect("one for each sparse plane");
                self.ballots = rest;
                let mut left = number(ballot);
                let mut mask = 0u128;
                while left != 0 {
                    let nibble = number(self.nibbles[self.taken / 8]) >> (4 * (self.taken % 8)) & 15;
                    mask |= u128::from(nibble) << (4 * left.trailing_zeros());
                    self.taken += 1;
                    left &= left - 1;
                }
                let count = mask.count_ones() as usize;
                let mut bytes = [0; pack::PLANE];
                if self.bytes.len() >= count + pack::SLACK {
                    unit.expand(self.bytes, mask, &mut bytes);
                } else {
                    let mut padded = [0; pack::PLANE + pack::SLACK];
                    padded[..count].copy_from_slice(&self.bytes[..count]);
                    unit.expand(&padded, mask, &mut bytes);
                }
                self.bytes = &self.bytes[count..];
                *out = bytemuck::cast::<_, BitPlane>(bytes).map(u32::from_le);
            }
        }
    }
}
