// SPDX-License-Identifier: MIT OR Apache-2.0
//! What several test programs share: inputs, golden vectors, backends.

#![allow(dead_code)] // each program uses its part

pub mod by_hand;
pub mod dense;
pub mod draft;
pub mod frames;
pub mod generate;
pub mod misread;
pub mod planes;
pub mod refused;
pub mod seal;
pub mod vectors;

use h5z_gpu::{Bound, Codec, Dtype, Engine, Params, Request};

/// Every backend that this machine has, with its name. All must give the same bytes.
pub fn backends() -> Vec<(&'static str, Engine)> {
    #[allow(unused_mut)] // for builds without GPU code
    let mut list = vec![("CPU, 1 thread", Engine::with_threads(1)), ("CPU, 3 threads", Engine::with_threads(3))];
    #[cfg(feature = "cuda")]
    if h5z_gpu::Engine::gpu().ok().is_some() {
        list.push(("GPU", Engine::with_device(2, 0)));
    }
    list
}

/// Seed and number of random cases: `H5Z_GPU_FUZZ=seed,cases` for longer searches than the usual one.
pub fn fuzz(seed: u64, cases: u32) -> (u64, u32) {
    let asked = std::env::var("H5Z_GPU_FUZZ").ok();
    let pair = asked.as_deref().and_then(|v| v.split_once(','));
    pair.map_or((seed, cases), |(s, c)| (s.parse().expect("a seed"), c.parse().expect("a number of cases")))
}

/// FNV-1a, 64 bits: enough to tell files apart, short enough to write by hand in any language.
pub fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |h, &b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3))
}

/// First index at which two byte strings differ, with both bytes; for messages.
pub fn difference(a: &[u8], b: &[u8]) -> String {
    match a.iter().zip(b).position(|(x, y)| x != y) {
        Some(at) => format!("byte {at}: {:#04x} against {:#04x} ({} and {} bytes)", a[at], b[at], a.len(), b.len()),
        None => format!("{} against {} bytes", a.len(), b.len()),
    }
}

/// Writes a chunk with `lorenzo` under an absolute bound, and what came back a second time. Whether every value was
/// kept; the first frame, and what came back of it.
pub fn rewritten(
    bound: f64,
    d: Dtype,
    dims: &[u64],
    fill: Option<u64>,
    raw: &[u8],
) -> Result<(Vec<u8>, Vec<u8>), String> {
    let mut params = Params::new(Request::new(Codec::Lorenzo, Bound::Absolute(bound)), d, dims).unwrap();
    params.fill = fill;
    let engine = Engine::with_threads(1);
    let frame = engine.encode(&params, raw);
    let once = engine.decode(&frame, raw.len() as u64).unwrap();
    let twice = engine.decode(&engine.encode(&params, &once), raw.len() as u64).unwrap();
    match once.iter().zip(&twice).position(|(a, b)| a != b) {
        None => Ok((frame, once)),
        Some(at) => {
            let size = usize::from(d.size);
            let value = at / size * size..(at / size + 1) * size;
            Err(format!("value {}: {:x?} became {:x?}", at / size, &once[value.clone()], &twice[value]))
        }
    }
}
