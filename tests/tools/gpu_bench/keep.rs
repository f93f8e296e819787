// SPDX-License-Identifier: MIT OR Apache-2.0
//! What it costs to keep signs, zeros or the range beside a bound: the device's time and the frames' length.

use super::{Field, median, params, rate};
use h5z_gpu::{Bound, Codec, EncodeJob, Keep};

/// Nothing, signs, zeros, the range, all of them.
const KEPT: [u32; 5] = [0, 1, 2, 4, 7];

pub fn keeps(fields: &[Field], runs: usize) {
    println!("\nkept beside a bound, one chunk a field: compression in GB/s, ratio (median of {runs})");
    print!("{:10} {:8} {:>6}", "field", "codec", "bound");
    KEPT.iter().for_each(|&bits| print!(" {:>17}", keep(bits).to_string()));
    println!();
    for field in fields {
        for codec in [Codec::Planes, Codec::Lorenzo, Codec::Szx] {
            for bound in [1e-2, 1e-3] {
                print!("{:10} {:8} {bound:>6.0e}", field.name, codec.name());
                for bits in KEPT {
                    let mut p = params(field, &field.dims, codec, Bound::Relative(bound));
                    p.request.keep = keep(bits);
                    let job = [EncodeJob { params: &p, raw: &field.raw }];
                    let (frames, times) = h5z_gpu::testing::encode_times(&job, runs, 16).expect("the device encodes");
                    let ratio = field.raw.len() as f64 / frames[0].len() as f64;
                    print!(" {:8.0} {ratio:8.2}", rate(field.raw.len(), median(times)));
                }
                println!();
            }
        }
    }
}

fn keep(bits: u32) -> Keep {
    Keep::new(bits).expect("three bits")
}
