// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compresses an array with a bound on the error, and gets it back: `cargo run --release --example compress`.

use h5z_gpu::{Dtype, Engine, Params};

fn main() -> Result<(), h5z_gpu::Error> {
    // A wave on 512 x 512 points, as the bytes that a file would hold.
    let (rows, columns) = (512, 512);
    let wave = |i: usize| (((i / columns) as f32 * 0.02).sin() + ((i % columns) as f32 * 0.03).cos()) * 10.0;
    let values: Vec<f32> = (0..rows * columns).map(wave).collect();
    let raw: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();

    // No value may change by more than 0.001.
    let params = Params::new("mode=abs,bound=1e-3".parse()?, Dtype::F32, &[rows as u64, columns as u64])?;
    let frame = Engine::global().encode(&params, &raw);

    // A frame says all that decoding needs. The limit protects from one that promises more than the caller expects.
    let back = Engine::global().decode(&frame, raw.len() as u64)?;

    let bytes = back.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]));
    let errors = values.iter().zip(bytes).map(|(x, y)| (f64::from(*x) - f64::from(y)).abs());
    let largest = errors.fold(0.0, f64::max);
    println!("{} bytes became {}; the largest error is {largest:.6}", raw.len(), frame.len());
    assert!(largest <= 1e-3);
    Ok(())
}
