// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changed frames with the crate's answers, for the readers in other languages, in the form of
//! tests/promises/readers.rs.

use super::change::Pool;
use super::generate::Random;
use super::targets::seal::seal;
use h5z_gpu::{Dtype, Engine, Params};
use std::fs::File;
use std::io::{BufWriter, Result, Write};

/// The longest chunk that is asked for.
const LIMIT: u64 = 16 << 10;

/// Writes the first cases of a seed. Every second frame is changed once, which more of them survive; of both, half have
/// the draft of this build's frames, half have 0.
pub fn leave(file: &str, seed: u64, cases: u64) -> Result<()> {
    let (pool, engine) = (Pool::new(), Engine::with_threads(1));
    let one = Params::new("mode=lossless".parse().expect("a request"), Dtype::F32, &[1]).expect("a chunk");
    let own = engine.encode(&one, &[0; 4]);
    let mut out = BufWriter::new(File::create(file)?);
    let mut read = 0;
    for case in 0..cases {
        let mut random = Random(seed << 40 ^ case);
        let (_, mut frame) = pool.changed(&mut random, [1, 4][case as usize % 2]);
        // A draft that is not 0 was changed.
        if random.below(2) == 0 && frame[52..56] == [0; 4] {
            frame[52..56].copy_from_slice(&own[52..56]);
            seal(&mut frame);
        }
        let length = u64::from_le_bytes(std::array::from_fn(|k| frame[16 + k])).min(LIMIT);
        let hash = engine.decode(&frame, length).map_or(0, |raw| {
            read += 1;
            raw.iter().fold(0xcbf2_9ce4_8422_2325, |h, &b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3))
        });
        out.write_all(&[frame.len() as u32, length as u32].map(u32::to_le_bytes).concat())?;
        out.write_all(&hash.to_le_bytes())?;
        out.write_all(&frame)?;
    }
    println!("{file}: {read} of {cases} frames are read");
    out.flush()
}
