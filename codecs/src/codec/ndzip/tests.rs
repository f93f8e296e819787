// SPDX-License-Identifier: MIT OR Apache-2.0
//! Streams against the reference implementation's. Round trips and damage are in `tests/`, for every codec.

use super::cpu::write_stream;
use super::cube::Word;
use super::format::Grid;
use crate::Cpu;
use crate::params::{Bound, Class, Codec, Dtype, Params, Request};

const I32: Dtype = Dtype { class: Class::Integer, signed: true, ..Dtype::bytes(4) };
const I64: Dtype = Dtype { size: 8, ..I32 };

fn encode(dtype: Dtype, dims: &[u64], raw: &[u8], threads: usize) -> Vec<u8> {
    let params = Params::new(Request::new(Codec::Ndzip, Bound::Lossless), dtype, dims).unwrap();
    Cpu::with_threads(threads).encode(&params, raw)
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
    raw.chunks_exact(W::BYTES).map(|w| bytemuck::pod_read_unaligned::<W>(w).le()).collect()
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

#[test]
fn an_unaligned_frame_and_an_unaligned_buffer_decode_too() {
    for dtype in [Dtype::F32, Dtype::F64] {
        let raw = field(dtype, 9001);
        let mut shifted = vec![0];
        shifted.extend(encode(dtype, &[9001], &raw, 1));
        let mut out = vec![0; raw.len() + 1];
        Cpu::with_threads(1).decode_into(&shifted[1..], &mut out[1..]).unwrap();
        assert!(out[1..] == raw);
    }
}
