# SPDX-License-Identifier: MIT OR Apache-2.0
"""examples/tensogram/adapter.rs, compiled with tensogram's own crate and used: a bound, ranges, damage."""
from conftest import ROOT, run

CARGO = """
[package]
name = "adapter"
version = "0.0.0"
edition = "2024"
[workspace]
[dependencies]
tensogram-encodings = {{ version = "=0.24.0", default-features = false }}
[[bin]]
name = "adapter"
path = "{folder}/main.rs"
"""
MAIN = """
#[path = "{adapter}"]
mod adapter;
use tensogram_encodings::compression::Compressor;

fn values(raw: &[u8]) -> Vec<f32> {{
    raw.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect()
}}

fn main() {{
    let value = |k: u64| 280.0 + (k as f32 * 1e-3).sin() + (k * 40503 % 65521) as f32 * 1e-6;
    let field: Vec<f32> = (0..700_000).map(value).collect();
    let raw: Vec<u8> = field.iter().flat_map(|v| v.to_le_bytes()).collect();
    let codec = adapter::H5zGpu(11003);
    let coded = codec.compress(&raw).unwrap();
    assert!(coded.data.len() * 2 < raw.len());
    let offsets = coded.block_offsets.unwrap();
    let back = codec.decompress(&coded.data, raw.len()).unwrap();
    let errors = field.iter().zip(values(&back)).map(|(a, b)| (f64::from(*a) - f64::from(b)).abs());
    let worst = errors.fold(0.0, f64::max);
    assert!(worst > 0.0 && worst <= 1e-3, "{{worst}}");
    for (at, size) in [(0, 4), (4 << 18, 400), ((4 << 18) - 8, 16), (raw.len() - 12, 12)] {{
        assert_eq!(codec.decompress_range(&coded.data, &offsets, at, size).unwrap(), &back[at..at + size]);
    }}
    let mut damaged = coded.data.clone();
    damaged[100] ^= 1;
    assert!(codec.decompress(&damaged, raw.len()).unwrap_err().to_string().contains("checksum"));
    assert!(codec.decompress(&coded.data[..coded.data.len() - 1], raw.len()).is_err());
    assert!(codec.decompress_range(&coded.data, &offsets, raw.len() + (4 << 20), 4).is_err());
    assert!(adapter::H5zGpu(5).compress(&raw).is_err());
    println!("all good");
}}
"""


def test_tensogram(tmp_path):
    plugin = ROOT / "target/plugin"
    (tmp_path / "Cargo.toml").write_text(CARGO.format(folder=tmp_path))
    (tmp_path / "main.rs").write_text(MAIN.format(adapter=ROOT / "examples/tensogram/adapter.rs"))
    said = run("cargo", "run", "--quiet", cwd=tmp_path, CARGO_TARGET_DIR=None,
               RUSTFLAGS=f"-L {plugin} -C link-arg=-Wl,-rpath,{plugin}")
    assert said == "all good\n"
