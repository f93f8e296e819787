// SPDX-License-Identifier: MIT OR Apache-2.0
//! The list of vectors, cases.txt. Lines are only added; `cargo run -p h5z-gpu-tools --bin vectors` writes new files.

use super::vectors::Case;

/// codec | name | generator seed | type | extents, or a number of bytes of unknown shape | ask | fill value's bits
///
/// Frames of the generator `by-hand` are those of by_hand.rs, which no writer makes: they are read only.
const CASES: &str = include_str!("cases.txt");

/// Every case of the list.
pub fn all() -> Vec<Case> {
    CASES.lines().filter(|l| !l.trim().is_empty()).map(|l| case(l).unwrap_or_else(|| panic!("a case: {l}"))).collect()
}

fn case(line: &str) -> Option<Case> {
    let parts: Vec<&str> = line.split('|').map(str::trim).collect();
    let [codec, name, generator, dtype, shape, request, fill] = parts[..] else { return None };
    let (generator, seed) = generator.split_once(' ')?;
    let mut case = Case {
        codec: codec.into(),
        name: name.into(),
        generator: generator.into(),
        seed: seed.trim().parse().ok()?,
        dtype: dtype.into(),
        dims: Vec::new(),
        raw_bytes: 0,
        request: request.into(),
        fill: match fill {
            "" => None,
            hex => Some(u64::from_str_radix(hex.strip_prefix("0x")?, 16).ok()?),
        },
    };
    if let Some(bytes) = shape.strip_suffix(" bytes") {
        case.raw_bytes = bytes.parse().ok()?;
    } else {
        case.dims = shape.split('x').map(str::parse).collect::<Result<_, _>>().ok()?;
        case.raw_bytes = case.dims.iter().product::<u64>() as usize * usize::from(case.dtype().size);
    }
    Some(case)
}
