// SPDX-License-Identifier: MIT OR Apache-2.0
//! The list of vectors. Lines are only added; `cargo run --example vectors` writes the files of new ones.

use super::vectors::Case;

/// codec | name | generator seed | type | extents, or a number of bytes of unknown shape | ask | fill value's bits
const CASES: &str = "
stored | empty              | bits 1     | unknown | 0 bytes      | mode=lossless |
stored | one-byte           | bits 2     | bytes1  | 1            | mode=lossless |
stored | random-1000        | bits 3     | bytes1  | 1000         | mode=lossless |
stored | random-f64         | bits 4     | f64     | 5            | mode=lossless |
stored | shape-not-known    | bits 5     | unknown | 4099 bytes   | mode=abs,bound=1e-3 |
bytes  | text               | text 1     | bytes1  | 5000         | mode=lossless |
bytes  | i16-wave           | wave 2     | i16     | 40x60        | mode=lossless |
bytes  | i16be-wave         | wave 2     | i16be   | 40x60        | mode=lossless |
bytes  | compound-12        | ramp 3     | bytes12 | 700          | mode=lossless |
bytes  | stride-255         | constant 4 | bytes255 | 30          | mode=lossless |
bytes  | unknown-doubles    | text 5     | unknown | 7001 bytes   | mode=lossless |
bytes  | bound-on-no-number | wave 6     | i16     | 3000         | mode=rel,bound=1e-3 |
bytes  | worked-example     | text 3     | i16     | 64           | mode=lossless |
";

/// Every case of the list.
pub fn all() -> Vec<Case> {
    CASES.lines().filter(|l| !l.trim().is_empty()).map(|l| case(l).unwrap_or_else(|| panic!("a case: {l}"))).collect()
}

fn case(line: &str) -> Option<Case> {
    let parts: Vec<&str> = line.split('|').map(str::trim).collect();
    let &[codec, name, generator, dtype, shape, ask, fill] = &parts[..] else { return None };
    let (generator, seed) = generator.split_once(' ')?;
    let mut case = Case {
        codec: codec.into(),
        name: name.into(),
        generator: generator.into(),
        seed: seed.trim().parse().ok()?,
        dtype: dtype.into(),
        dims: Vec::new(),
        raw_bytes: 0,
        ask: ask.into(),
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
