// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stage by stage: a kernel of `tests/gpu/cuda/check_*.cu` and the CPU's function over the same arrays.
//!
//! A [`Stage`] holds a kernel's arrays and what the CPU makes of them; [`Stage::compare`] launches it and names the
//! first item that differs. To add one: its kernel, its function in `h5z_gpu::testing::stages`, and a few lines here.

mod base;
mod lorenzo;
mod numbers;
mod szx_ndzip;

use super::Random;
use bytemuck::Pod;
use h5z_gpu::testing::constants::{SZX_BLOCK, SZX_TILE_BLOCKS};
use h5z_gpu::testing::stages::{self as cpu, Arg};

const TILE: usize = SZX_BLOCK * SZX_TILE_BLOCKS;

/// An array that a kernel writes.
struct Output {
    name: &'static str,
    item: usize,
    at: usize,
    /// What it must hold; `None` for working memory.
    want: Option<Vec<u8>>,
}

/// One launch. A kernel takes addresses of its arrays, those it reads first, then numbers.
struct Stage {
    kernel: String,
    ctas: usize,
    input: Vec<u8>,
    relative: Vec<usize>,
    args: Vec<Arg>,
    outputs: Vec<Output>,
    size: usize,
    /// Makes alike what need not differ, before outputs are compared.
    alike: fn(&mut [u8]),
    what: String,
}

impl Stage {
    fn new(kernel: impl Into<String>, ctas: usize) -> Self {
        let (kernel, what) = (kernel.into(), String::new());
        let (input, relative, args, outputs) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Stage { kernel, ctas, input, relative, args, outputs, size: 0, alike: |_| (), what }
    }

    fn reads<T: Pod>(mut self, values: &[T]) -> Self {
        self.args.push(Arg::Input(self.input.len()));
        self.input.extend_from_slice(bytemuck::cast_slice(values));
        self.input.resize(self.input.len().next_multiple_of(256), 0);
        self
    }

    fn writes<T: Pod>(mut self, name: &'static str, want: &[T]) -> Self {
        let bytes: &[u8] = bytemuck::cast_slice(want);
        self = self.room(bytes.len());
        let at = self.outputs.last().expect("just made").at;
        *self.outputs.last_mut().expect("just made") =
            Output { name, item: size_of::<T>(), at, want: Some(bytes.to_vec()) };
        self
    }

    /// Working memory, or what follows in the struct that a codec's kernel takes.
    fn room(mut self, bytes: usize) -> Self {
        self.args.push(Arg::Output(self.size));
        self.outputs.push(Output { name: "", item: 1, at: self.size, want: None });
        self.size = (self.size + bytes).next_multiple_of(256);
        self
    }

    fn numbers(mut self, numbers: &[u64]) -> Self {
        self.args.extend(numbers.iter().map(|&n| Arg::Number(n)));
        self
    }

    fn about(mut self, what: String) -> Self {
        self.what = what;
        self
    }

    /// Launches and compares; the items compared.
    fn compare(self) -> Result<usize, String> {
        let Stage { kernel, ctas, input, relative, args, outputs, size, alike, what } = self;
        let mut got = cpu::run(&kernel, ctas.max(1) as u32, &args, &input, &relative, size)?;
        alike(&mut got);
        let mut items = 0;
        for Output { name, item, at, want } in &outputs {
            let Some(want) = want else { continue };
            let pairs = want.chunks(*item).zip(got[*at..].chunks(*item));
            let count = want.len() / item;
            let hex = |b: &[u8]| b.iter().rev().map(|b| format!("{b:02x}")).collect::<String>();
            if let Some((i, (a, b))) = pairs.take(count).enumerate().find(|(_, (a, b))| a != b) {
                let (a, b) = (hex(a), hex(b));
                return Err(format!("{kernel}, {name}: first difference at {i} of {count}: CPU {a} GPU {b}{what}"));
            }
            items += count;
        }
        Ok(items)
    }
}

/// All stages, or those of a codec, `rounds` times on new input. Tells how many there are and what was compared.
pub fn check(r: &mut Random, rounds: u64, only: Option<&str>) -> Result<String, String> {
    type Run = fn(&mut Random) -> Result<usize, String>;
    // What all codecs use is none's.
    let all: &[(&str, Run)] = &[
        ("", base::exact),
        ("", |r| base::arithmetic(r, false)),
        ("", |r| base::arithmetic(r, true)),
        ("", base::chunk_of),
        ("", base::sums),
        ("", base::scans),
        ("", base::look_back),
        ("szx", |r| base::range(r, "szx_range", false)),
        ("szx", |r| base::range(r, "szx_range", true)),
        ("lorenzo", |r| base::range(r, "lorenzo_encode_range", false)),
        ("lorenzo", |r| base::range(r, "lorenzo_encode_range", true)),
        ("szx", |r| szx_ndzip::szx(r, false)),
        ("szx", |r| szx_ndzip::szx(r, true)),
        ("ndzip", |r| szx_ndzip::ndzip(r, false)),
        ("ndzip", |r| szx_ndzip::ndzip(r, true)),
        ("ndzip", szx_ndzip::ndzip_places),
        ("lorenzo", |r| lorenzo::quantize(r, false)),
        ("lorenzo", |r| lorenzo::quantize(r, true)),
        ("lorenzo", lorenzo::lorenzo),
        ("lorenzo", lorenzo::codebook),
        ("lorenzo", lorenzo::tiles),
    ];
    let of = |name: &str| name.is_empty() || only.is_none_or(|only| only == name);
    let wanted: Vec<Run> = all.iter().filter(|(name, _)| of(name)).map(|s| s.1).collect();
    let mut items = 0;
    for round in 0..rounds {
        for stage in &wanted {
            items += stage(r).map_err(|why| format!("round {round}: {why}"))?;
        }
    }
    Ok(format!("{} stages, {rounds} rounds, {items} items", wanted.len()))
}
