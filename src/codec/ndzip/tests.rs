// SPDX-License-Identifier: MIT OR Apache-2.0
//! The codec as a whole: its bytes against the reference implementation's, round trips, damage.

use super::cpu::write_stream;
use super::cube::Word;
use super::format::Grid;
use crate::checksum;
use crate::constants::CHECKSUM_OFFSET;
use crate::frame::Frame;
use crate::params::{Bound, Class, Codec, Dtype, Params, Request};
use crate::{Engine, Error};
use proptest::prelude::*;

const I32: Dtype =
    Dtype { class: Class::Integer, size: 4, big_endian: false, signed: true, exponent_bits: 0, mantissa_bits: 0 };
const I64: Dtype = Dtype { size: 8, ..I32 };

fn params(dtype: Dtype, dims: &[u64]) -> Params {
    Params::new(Request { codec: Codec::Ndzip, bound: Bound::Lossless }, dtype, dims).unwrap()
}

fn encode(dtype: Dtype, dims: &[u64], raw: &[u8], threads: usize) -> Vec<u8> {
    Engine::with_threads(threads).encode(&params(dtype, dims), raw)
}

/// SplitMix64.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// `n` values with steps, ramps and every thirteenth value's low bits at random; exact in every type.
fn field(dtype: Dtype, n: usize) -> Vec<u8> {
    let mut state = 7;
    let words = (0..n as u64).map(|i| {
        let v = (i % 97) * (i % 89) + i;
        let noise = if i % 13 == 0 { random(&mut state) & 0xFFF } else { 0 };
        match (dtype.class, dtype.size) {
            (Class::Float, 4) => u64::from((v as f32 / 64.0 - 20.0).to_bits()) ^ noise,
            (Class::Float, _) => (v as f64 / 64.0 - 20.0).to_bits() ^ noise,
            _ => v.wrapping_sub(4000) ^ noise,
        }
    });
    words.flat_map(|w| w.to_le_bytes()[..usize::from(dtype.size)].to_vec()).collect()
}

/// FNV-1a, 64 bits.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xCBF2_9CE4_8422_2325, |h, &b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01B3))
}

fn numbers<W: Word>(raw: &[u8]) -> Vec<W> {
    raw.chunks_exact(W::BYTES).map(|w| bytemuck::pod_read_unaligned::<W>(w).little()).collect()
}

/// Length and hash of the stream that celerity/ndzip (ff4e670, serial CPU codec) writes for `field`; integers: the same
/// with its rotation undone beforehand and the border as it was.
#[test]
fn streams_are_those_of_the_reference() {
    let cases: &[(Dtype, &[u64], usize, u64)] = &[
        (Dtype::F32, &[4096], 12532, 0x8BBD_80B5_55EF_67A8),
        (Dtype::F64, &[4096], 28544, 0xC4F5_AB82_3624_B65A),
        (I32, &[4096], 7024, 0xA3E1_7AE4_0AAA_EF95),
        (I64, &[4096], 7472, 0xC4EB_5B1F_E7C8_2225),
        (Dtype::F32, &[12289], 34712, 0x7B18_125A_DE02_6A97),
        (Dtype::F64, &[12289], 82952, 0xCA03_3159_5D8C_2957),
        (I32, &[12289], 21088, 0x78EA_B080_8436_3A8B),
        (I64, &[12289], 22392, 0x681F_ADBA_4F7E_ED39),
        (Dtype::F32, &[64, 64], 13716, 0x8949_4333_65EF_D934),
        (Dtype::F64, &[64, 64], 29336, 0xAFF0_CB03_6C5E_E2BC),
        (I32, &[64, 64], 7504, 0xB52D_7B81_D667_4232),
        (I64, &[64, 64], 7736, 0x827A_4958_4EEC_73FA),
        (Dtype::F32, &[67, 200], 41852, 0xE7DA_1031_6F45_06C5),
        (Dtype::F64, &[67, 200], 94304, 0xC845_CCD0_56E4_9CB9),
        (I32, &[67, 200], 26628, 0x899E_8755_6C13_411D),
        (I64, &[67, 200], 31928, 0xD722_3E6F_82E4_3140),
        (Dtype::F32, &[16, 16, 16], 14228, 0x2436_C018_BAEC_5A69),
        (Dtype::F64, &[16, 16, 16], 29568, 0x6B14_04FD_4F0E_279D),
        (I32, &[16, 16, 16], 7584, 0xB7E0_E851_DB40_39BB),
        (I64, &[16, 16, 16], 7760, 0x77F8_DD26_374E_BDD9),
        (Dtype::F32, &[35, 49, 33], 181804, 0x994E_F27C_0C75_3579),
        (Dtype::F64, &[35, 49, 33], 394248, 0x6B01_1129_671D_AD8C),
        (I32, &[35, 49, 33], 122084, 0x6728_93E5_A2D2_2E3B),
        (I64, &[35, 49, 33], 153664, 0x14A4_F55B_A12B_D7F7),
    ];
    for &(dtype, dims, len, want) in cases {
        let raw = field(dtype, dims.iter().product::<u64>() as usize);
        let grid = Grid::new(&dims.iter().map(|&d| d as u32).collect::<Vec<_>>()).unwrap();
        let mut stream = Vec::new();
        match dtype.size {
            4 => write_stream::<u32>(&numbers(&raw), &grid, dtype.class == Class::Float, 1, &mut stream),
            _ => write_stream::<u64>(&numbers(&raw), &grid, dtype.class == Class::Float, 1, &mut stream),
        }
        .unwrap();
        assert_eq!((stream.len(), hash(&stream)), (len, want), "{dtype:?} {dims:?}");
    }
}

/// Bit patterns that codecs get wrong, as 64 bits; 4-byte types take the upper or the lower half.
const HOSTILE: [u64; 12] = [
    0,
    0x8000_0000_8000_0000,
    0x7FC0_0001_7FF0_0000,
    0x7FF8_0000_0000_0001,
    0xFFF0_0000_FF80_0000,
    0x7F80_0000_7F80_0000,
    0x0000_0001_0000_0001,
    0x0010_0000_0080_0000,
    0x7FEF_FFFF_FFFF_FFFF,
    0xFFFF_FFFF_FFFF_FFFF,
    0x3FF0_0000_3F80_0000,
    0x7F7F_FFFF_0000_0000,
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn every_bit_comes_back_from_every_shape_and_any_number_of_threads(
        which in 0usize..6,
        shape in prop::sample::select(vec![
            vec![1], vec![4095], vec![4096], vec![4097], vec![8191], vec![40_961],
            vec![63, 64], vec![64, 64], vec![65, 127], vec![131, 67], vec![64, 1031],
            vec![15, 16, 16], vec![16, 16, 16], vec![17, 16, 33], vec![37, 41, 43], vec![48, 16, 32],
            vec![3, 5, 64, 64], vec![2, 2, 2, 7, 11, 13],
        ]),
        seed: u64,
        spread in 0u64..4,
        threads in 2usize..5,
    ) {
        let dtype = [
            Dtype::F32, Dtype::F64, I32, I64,
            Dtype { big_endian: true, ..Dtype::F32 }, Dtype { big_endian: true, signed: false, ..I64 },
        ][which];
        let size = usize::from(dtype.size);
        let n = shape.iter().product::<u64>() as usize;
        let mut state = seed;
        // Hostile values alone, or here and there in a smooth field.
        let mut raw = field(dtype, n);
        for value in raw.chunks_exact_mut(size) {
            let r = random(&mut state);
            if r >> 40 & 15 >= spread * 5 {
                let w = HOSTILE[(r % 12) as usize].rotate_left((r >> 32 & 32) as u32);
                value.copy_from_slice(&w.to_le_bytes()[..size]);
            }
        }
        let frame = encode(dtype, &shape, &raw, 1);
        prop_assert!(frame.len() <= raw.len() + 64);
        prop_assert!(frame == encode(dtype, &shape, &raw, threads));
        for threads in [1, threads] {
            prop_assert!(Engine::with_threads(threads).decode(&frame, raw.len() as u64).unwrap() == raw);
        }
    }

    #[test]
    fn damage_behind_a_right_checksum_never_panics(seed: u64, which in 0usize..4, hits in 1usize..8) {
        let mut frame = damaged(which);
        let mut state = seed;
        for _ in 0..hits {
            let at = random(&mut state) as usize % frame.len();
            frame[at] = random(&mut state) as u8;
        }
        reseal(&mut frame);
        let len = Frame::open(&frame, 1).map_or(0, |f| f.header.raw_len.min(1 << 20));
        let _ = Engine::with_threads(1).decode_into(&frame, &mut vec![0; len as usize]);
    }
}

/// A small frame to damage, all of them written by this codec.
fn damaged(which: usize) -> Vec<u8> {
    let (dtype, dims): (Dtype, &[u64]) =
        [(Dtype::F32, &[4098][..]), (Dtype::F64, &[16, 16, 17]), (I32, &[65, 130]), (I64, &[16, 16, 48])][which];
    let mut raw = field(dtype, dims.iter().product::<u64>() as usize);
    // Mostly constant, so that the frame is small.
    let size = usize::from(dtype.size);
    let value = raw[..size].to_vec();
    raw[20 * size..].chunks_exact_mut(size).for_each(|v| v.copy_from_slice(&value));
    let frame = encode(dtype, dims, &raw, 1);
    assert_eq!(frame[9], crate::CodecId::NDZIP.number());
    frame
}

fn reseal(frame: &mut [u8]) {
    let sum = checksum::frame(frame, 1);
    frame[CHECKSUM_OFFSET..CHECKSUM_OFFSET + 8].copy_from_slice(&sum.to_le_bytes());
}

#[test]
fn every_truncation_and_every_changed_byte_is_refused() {
    let engine = Engine::with_threads(1);
    for which in 0..4 {
        let frame = damaged(which);
        for cut in 0..frame.len() {
            engine.decode(&frame[..cut], 1 << 20).expect_err("a truncated frame");
        }
        for at in 0..frame.len() {
            for flip in [1, 2, 4, 8, 16, 32, 64, 128, 255] {
                let mut frame = frame.clone();
                frame[at] ^= flip;
                engine.decode(&frame, 1 << 20).expect_err(&format!("byte {at} ^ {flip:#x}"));
            }
        }
    }
}

/// Every byte changed, every length cut, the checksum and the header's lengths put right again: the codec itself must
/// hold.
#[test]
fn the_codec_holds_without_the_checksum() {
    let engine = Engine::with_threads(1);
    for which in 0..4 {
        let frame = damaged(which);
        let mut out = vec![0; Frame::open(&frame, 1).unwrap().header.raw_len as usize];
        for at in 56..frame.len() {
            for flip in [1, 0x10, 0x80, 0xFF] {
                let mut frame = frame.clone();
                frame[at] ^= flip;
                reseal(&mut frame);
                let _ = engine.decode_into(&frame, &mut out);
            }
        }
        // The last section's length stands last in the table.
        let rank = usize::from(frame[11]);
        let at = 56 + 4 * rank + 8;
        let stream = Frame::open(&frame, 1).unwrap().section_lens()[1];
        for cut in 1..stream {
            let mut frame = frame[..frame.len() - cut].to_vec();
            let len = frame.len() as u64;
            frame[24..32].copy_from_slice(&len.to_le_bytes());
            frame[at..at + 8].copy_from_slice(&((stream - cut) as u64).to_le_bytes());
            reseal(&mut frame);
            let e = engine.decode_into(&frame, &mut out).expect_err("a shorter stream");
            assert!(e.to_string().contains("ndzip stream"), "{e}");
        }
    }
}

#[test]
fn each_contradiction_is_named() {
    // Three cubes, no border; header 56 + 12 + 16, grid at 88, stream at 104.
    let (dims, grid, stream) = (&[16u64, 16, 48], 88, 104);
    let raw = field(I32, 16 * 16 * 48);
    let good = encode(I32, dims, &raw, 1);
    let mut out = vec![0; raw.len()];
    let mut refused = |at: usize, value: u32, why: &str| {
        let mut frame = good.clone();
        frame[at..at + 4].copy_from_slice(&value.to_le_bytes());
        reseal(&mut frame);
        let e = Engine::with_threads(1).decode_into(&frame, &mut out).unwrap_err();
        assert!(matches!(e, Error::Corrupt { .. }) && e.to_string().contains(why), "{e} instead of {why}");
    };
    let entry = |i: usize| u32::from_le_bytes(good[stream + 4 * i..][..4].try_into().unwrap());
    refused(grid, 0, "for rank 0");
    refused(grid, 4, "for rank 4");
    refused(grid, 2, "16 bytes for rank 2");
    refused(grid + 4, 17, "extents [17, 16, 48] for 12288 values");
    refused(grid + 4, 0, "extents [0, 16, 48]");
    refused(grid + 12, u32::MAX, "extents [16, 16, 4294967295]");
    refused(stream, entry(1) + 1, "cube 1 ends at word");
    refused(stream + 4, entry(0) + 127, "cube 1: 127 words, 128 to 4224 allowed");
    refused(stream, u32::MAX, "cube 0: 4294967295 words");
    refused(stream + 8, entry(2) - 1, "the border begins at");
    refused(stream + 12, !u32::from_le_bytes(good[stream + 12..][..4].try_into().unwrap()), "cube 0: ");
    refused(12, Dtype { class: Class::Bytes, ..I32 }.pack(), "ndzip with");
    refused(12, Dtype::F64.pack(), "raw length 49152");
}

#[test]
fn the_tables_filling_must_be_zero() {
    let mut frame = damaged(1);
    // One cube of 8-byte words: the table's second half. Header 56 + 12 + 16 = 84, filled up to 88; grid 16.
    assert_eq!(frame[108..112], [0; 4]);
    frame[109] = 1;
    reseal(&mut frame);
    let e = Engine::with_threads(1).decode(&frame, 1 << 20).unwrap_err();
    assert!(e.to_string().contains("table of 1 cubes filled up with"), "{e}");
}

#[test]
fn an_unaligned_frame_and_an_unaligned_buffer_decode_too() {
    for dtype in [Dtype::F32, Dtype::F64] {
        let raw = field(dtype, 9001);
        let mut shifted = vec![0];
        shifted.extend(encode(dtype, &[9001], &raw, 1));
        let mut out = vec![0; raw.len() + 1];
        Engine::with_threads(1).decode_into(&shifted[1..], &mut out[1..]).unwrap();
        assert!(out[1..] == raw);
    }
}
