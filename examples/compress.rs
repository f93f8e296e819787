// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compresses an array with a bound on the error, and gets it back: `cargo run --release --example compress`.

use h5z_gpu::{Bound, decode, encode};

fn main() -> Result<(), h5z_gpu::Error> {
    // A wave on 512 x 512 points.
    let shape = [512, 512];
    let wave = |i: usize| (((i / shape[1]) as f64 * 0.02).sin() + ((i % shape[1]) as f64 * 0.03).cos()) * 10.0;
    let values: Vec<f64> = (0..shape[0] * shape[1]).map(wave).collect();

    // No value may change by more than 0.001.
    let frame = encode(&values, &shape, Bound::Absolute(1e-3))?;
    let back: Vec<f64> = decode(&frame)?;

    let largest = values.iter().zip(&back).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max);
    println!("{} bytes became {}; the largest error is {largest:.6}", size_of_val(&values[..]), frame.len());
    assert!(largest <= 1e-3);
    Ok(())
}
