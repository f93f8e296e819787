// SPDX-License-Identifier: MIT OR Apache-2.0
//! An application in Rust that writes a dataset through the filter and reads it back, with the crate `hdf5-metno`.
//!
//! It knows nothing of h5z-gpu but the filter's number and the bound. Set HDF5_PLUGIN_PATH first (see README.md); then:
//!
//!     cargo run -p h5z-gpu-hdf5-tests --example dataset -- OUT.h5

use hdf5_metno::{File, Result};

const H5Z_GPU: i32 = 443;
/// Absolute, 1.0e-2: no value changes by more than 0.01.
const BOUND: u32 = 11002;
const SHAPE: [usize; 3] = [64, 128, 128];

fn main() -> Result<()> {
    let path = std::env::args().nth(1).ok_or("give the file to write, such as out.h5")?;
    let [nz, ny, nx] = SHAPE;
    let angle = |i: usize, n: usize| 6.0 * i as f32 / (n - 1) as f32;
    let at = |i: usize| (angle(i / (ny * nx), nz), angle(i / nx % ny, ny), angle(i % nx, nx));
    let temperature: Vec<f32> =
        (0..nz * ny * nx).map(at).map(|(z, y, x)| 280.0 + 10.0 * x.sin() * y.cos() + z).collect();

    let file = File::create(&path)?;
    let plan = file.new_dataset::<f32>().shape(SHAPE).chunk([32, 128, 128]).add_filter(H5Z_GPU, &[BOUND]);
    plan.create("temperature")?.write_raw(&temperature)?;
    file.close()?;

    // A reader says nothing about the filter.
    let dataset = File::open(&path)?.dataset("temperature")?;
    let back = dataset.read_raw::<f32>()?;
    let error =
        temperature.iter().zip(&back).map(|(a, b)| f64::from(*a) - f64::from(*b)).fold(0.0, |m, e| e.abs().max(m));
    let ratio = (4 * back.len()) as f64 / dataset.storage_size() as f64;
    println!("{:?} values, largest error {error:.4}, {ratio:.1} times smaller on disk", dataset.shape());
    Ok(())
}
