// SPDX-License-Identifier: MIT OR Apache-2.0
//! A second decoder, written from the FORMAT.md files in their own order: codecs/src/FORMAT.md, then those of `bytes`,
//! `szx`, `ndzip`, `lorenzo`, `planes`, `scaled` and `dense`. Slow and plain, it uses nothing of the crate: where
//! it would have to look into the code, a document is incomplete. It uses the standard library, and zstd for `bytes`.
//!
//! ```text
//! cargo run -p h5z-gpu-tools --bin decode_by_the_book -- FRAME RAW
//! ```

#[path = "book/dense.rs"]
mod dense;
#[path = "book/lorenzo.rs"]
mod lorenzo;
#[path = "book/planes.rs"]
mod planes;
#[path = "book/scaled.rs"]
mod scaled;

/// A reason to refuse.
type Refusal = String;

/// The header of one frame, and its sections.
struct Frame<'a> {
    codec: u8,
    mode: u8,
    class: u32,
    size: usize,
    big_endian: bool,
    /// Sign, exponent bits, mantissa bits.
    layout: (u64, u64, u64),
    raw_len: usize,
    bound: f64,
    extents: Vec<usize>,
    swapped: bool,
    sections: Vec<&'a [u8]>,
}

/// A little-endian number of `n` bytes at `at`.
fn number(bytes: &[u8], at: usize, n: usize) -> Result<u64, Refusal> {
    let part = bytes.get(at..at + n).ok_or_else(|| format!("no {n} bytes at {at} of {}", bytes.len()))?;
    Ok(part.iter().rev().fold(0, |a, &b| a << 8 | u64::from(b)))
}

fn need(fine: bool, why: &str) -> Result<(), Refusal> {
    if fine { Ok(()) } else { Err(why.into()) }
}

// ---- codecs/src/FORMAT.md ----

/// §2, §3.1 and §4.1. `expected` is what the caller is ready to receive (§7).
fn open(bytes: &[u8], expected: usize) -> Result<Frame<'_>, Refusal> {
    need(bytes.get(..8) == Some(&[0x89, 0x48, 0x35, 0x5A, 0x47, 0x0D, 0x0A, 0x1A]), "magic")?;
    need(number(bytes, 8, 1)? == 1, "version")?;
    need(number(bytes, 24, 8)? == bytes.len() as u64, "stored length")?;
    need(number(bytes, 40, 8)? == checksum(bytes), "checksum")?;
    let (codec, mode) = (bytes[9], bytes[10]);
    let (rank, swapped) = (usize::from(bytes[11] % 128), bytes[11] >= 128);
    let kind = number(bytes, 12, 4)?;
    let class = (kind & 15) as u32;
    let raw_len = number(bytes, 16, 8)?;
    let bound = f64::from_bits(number(bytes, 32, 8)?);
    let count = number(bytes, 48, 8)?;
    need(matches!(mode, 1..=4 | 9), "mode")?;
    need(rank <= 8 && (rank >= 2 || !swapped), "rank")?;
    need(matches!(class, 0 | 1 | 15) && kind >> 13 & 1 == 0 && kind >> 15 & 1 == 0, "type")?;
    need(if mode == 9 { bound.to_bits() == 0 } else { bound.is_finite() && bound.is_sign_positive() }, "bound")?;
    need(count <= 8, "section count")?;
    need(raw_len == expected as u64, "raw length")?;

    let extents: Vec<usize> =
        (0..rank).map(|k| Ok(number(bytes, 56 + 4 * k, 4)? as usize)).collect::<Result<_, Refusal>>()?;
    need(extents.iter().all(|&d| d > 1), "extent")?;
    let table = 56 + 4 * rank;
    let mut end = table + 8 * count as usize;
    let mut sections = Vec::new();
    for k in 0..count as usize {
        let begin = end.next_multiple_of(8);
        need(bytes.get(end..begin).ok_or("section")?.iter().all(|&b| b == 0), "filling before a section")?;
        let len = number(bytes, table + 8 * k, 8)?;
        end = begin.checked_add(len as usize).filter(|&e| e <= bytes.len()).ok_or("section length")?;
        sections.push(bytes.get(begin..end).ok_or("section")?);
    }
    need(end == bytes.len(), "sections do not end where the frame ends")?;
    let (size, big_endian) = ((kind >> 4 & 0xFF) as usize, kind >> 12 & 1 == 1);
    let layout = (kind >> 14 & 1, kind >> 16 & 0xFF, kind >> 24);
    Ok(Frame { codec, mode, class, size, big_endian, layout, raw_len: expected, bound, extents, swapped, sections })
}

/// §4.2.
fn checksum(frame: &[u8]) -> u64 {
    let mut sum = 0u64;
    for i in (0..frame.len().div_ceil(4)).filter(|i| *i != 10 && *i != 11) {
        let word = frame[4 * i..frame.len().min(4 * i + 4)].iter().rev().fold(0u64, |a, &b| a << 8 | u64::from(b));
        let t = (2 * i as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let p = word.wrapping_mul(t ^ t << 32);
        sum = sum.wrapping_add(p ^ p >> 32);
    }
    sum
}

/// Decodes a frame that holds `expected` bytes.
pub fn decode(bytes: &[u8], expected: usize) -> Result<Vec<u8>, Refusal> {
    let f = open(bytes, expected)?;
    let (extents, size, swapped) = (f.extents.clone(), f.size, f.swapped);
    let array = scaled::decode_held(f, expected)?;
    if !swapped {
        return Ok(array);
    }
    // §5: value (i, j, …) of the codec's array is (j, i, …) of the chunk.
    let row = size * extents[2..].iter().product::<usize>();
    let mut chunk = Vec::new();
    for j in 0..extents[1] {
        for i in 0..extents[0] {
            chunk.extend_from_slice(&array[(i * extents[1] + j) * row..][..row]);
        }
    }
    Ok(chunk)
}

fn sections(f: &Frame<'_>) -> Result<Vec<u8>, Refusal> {
    // §3.2.
    match f.codec {
        0 => match f.sections[..] {
            [raw] if raw.len() == f.raw_len && f.mode == 9 && f.extents.is_empty() => Ok(raw.to_vec()),
            _ => Err("stored".into()),
        },
        1 => szx(f),
        2 | 7 => lorenzo::decode(f),
        3 => ndzip(f),
        4 => shuffled(f),
        5 => planes::decode(f),
        6 => scaled::decode(f),
        n => Err(format!("codec {n}")),
    }
}

/// Numbers as bytes of the type's order.
fn to_bytes(f: &Frame<'_>, values: &[u64]) -> Vec<u8> {
    let mut out = Vec::new();
    for v in values {
        let mut bytes = v.to_le_bytes()[..f.size].to_vec();
        if f.big_endian {
            bytes.reverse();
        }
        out.extend(bytes);
    }
    out
}

/// How many numbers the extents say, when raw length and element size agree.
fn elements(f: &Frame<'_>) -> Result<usize, Refusal> {
    let n = f.extents.iter().try_fold(1usize, |a, &d| a.checked_mul(d)).ok_or("extents")?;
    need(matches!(f.size, 4 | 8) && n.checked_mul(f.size) == Some(f.raw_len), "extents and raw length")?;
    Ok(n)
}

// ---- codecs/src/codec/bytes/FORMAT.md ----

fn shuffled(f: &Frame<'_>) -> Result<Vec<u8>, Refusal> {
    // §2, §3.
    need(f.mode == 9 && f.extents.is_empty(), "bytes: mode or rank")?;
    let [head, ends, payload] = f.sections[..] else { return Err("bytes: sections".into()) };
    need(head.len() == 8, "bytes: head")?;
    let (stride, unit, tile) = (number(head, 0, 2)? as usize, number(head, 2, 2)?, number(head, 4, 4)? as usize);
    need(
        (1..=255).contains(&stride) && (1..=1_048_576).contains(&tile) && tile % stride == 0,
        "bytes: stride or tile",
    )?;
    need(unit <= 1, "bytes: unit")?;
    let tiles = f.raw_len.div_ceil(tile);
    need(ends.len() == 8 * tiles, "bytes: tile ends")?;
    let mut raw = Vec::new();
    let mut begin = 0;
    for k in 0..tiles {
        let end = number(ends, 8 * k, 8)? as usize;
        let n = tile.min(f.raw_len - k * tile);
        let code = payload.get(begin..end).ok_or("bytes: tile end")?;
        need((1..=n).contains(&code.len()), "bytes: tile length")?;
        // §4.
        if code.len() == n {
            raw.extend_from_slice(code);
        } else {
            need(zstd::zstd_safe::find_frame_compressed_size(code) == Ok(code.len()), "bytes: not one zstd frame")?;
            let b = zstd::bulk::decompress(code, n).map_err(|e| e.to_string())?;
            need(b.len() == n, "bytes: zstd gives another length")?;
            raw.extend(if unit == 0 { bytes_back(&b, stride) } else { bits_back(&b, stride) });
        }
        begin = end;
    }
    need(begin == payload.len(), "bytes: payload")?;
    Ok(raw)
}

/// §4, unit 0.
fn bytes_back(b: &[u8], stride: usize) -> Vec<u8> {
    let m = b.len() / stride;
    let mut raw = b.to_vec();
    for i in 0..m {
        for j in 0..stride {
            raw[i * stride + j] = b[j * m + i];
        }
    }
    raw
}

/// §4, unit 1.
fn bits_back(b: &[u8], stride: usize) -> Vec<u8> {
    let q = b.len() / (8 * stride);
    let mut raw = b.to_vec();
    raw[..8 * q * stride].fill(0);
    for (i, j) in (0..8 * q).flat_map(|i| (0..stride).map(move |j| (i, j))) {
        for t in 0..8 {
            raw[i * stride + j] |= (b[(8 * j + t) * q + i / 8] >> (i % 8) & 1) << t;
        }
    }
    raw
}

// ---- codecs/src/codec/szx/FORMAT.md ----

/// Takes `n` bytes off the front.
fn take<'a>(rest: &mut &'a [u8], n: usize) -> Result<&'a [u8], Refusal> {
    let (a, b) = rest.split_at_checked(n).ok_or("szx: payload too short")?;
    *rest = b;
    Ok(a)
}

fn bit(map: &[u8], i: usize) -> bool {
    map[i / 8] >> (i % 8) & 1 == 1
}

/// One block's parts as they are collected.
struct Block<'a> {
    kind: u8,
    high: u8,
    values: usize,
    base: u64,
    outliers: Option<&'a [u8]>,
    outlier_bits: &'a [u8],
    codes: Option<&'a [u8]>,
}

fn szx(f: &Frame<'_>) -> Result<Vec<u8>, Refusal> {
    let n = elements(f)?;
    // §2.
    let ieee = if f.size == 4 { (1, 8, 23) } else { (1, 11, 52) };
    need(f.class == 1 && f.layout == ieee && f.mode != 9, "szx: type or mode")?;
    // §3.
    let [table, payload] = f.sections[..] else { return Err("szx: sections".into()) };
    let tiles = n.div_ceil(4096);
    need(table.len() == 4 * tiles, "szx: table")?;
    let mut out = Vec::new();
    let mut begin = 0;
    for k in 0..tiles {
        let end = 4 * number(table, 4 * k, 4)? as usize;
        let tile = payload.get(begin..end).ok_or("szx: tile end")?;
        szx_tile(f, tile, (n - 4096 * k).min(4096), &mut out).map_err(|e| format!("{e} (tile {k})"))?;
        begin = end;
    }
    need(begin == payload.len(), "szx: payload")?;
    Ok(to_bytes(f, &out))
}

fn szx_tile(f: &Frame<'_>, tile: &[u8], n: usize, out: &mut Vec<u64>) -> Result<(), Refusal> {
    let w = f.size;
    let (mantissa, exponent) = if w == 4 { (23, 8) } else { (52, 11) };
    let pointwise = f.mode == 3;
    let mut rest = tile;
    // §3.1, part A; §3.2.
    let count = n.div_ceil(128);
    let kinds = take(&mut rest, count.next_multiple_of(4))?;
    need(kinds[count..].iter().all(|&b| b == 0), "szx: filling of part A")?;
    let mut blocks = Vec::new();
    for (k, &byte) in kinds[..count].iter().enumerate() {
        let (kind, high) = (byte & 63, byte >> 6);
        let q = usize::from(kind).saturating_sub(2);
        let fine = match kind {
            0 | 1 => high != 1,
            2 => high == 0,
            _ if pointwise => (1 + exponent..=(8 * w).min(61)).contains(&q),
            _ => (1..=mantissa).contains(&q) && step(f).is_some(),
        };
        need(fine, "szx: kind")?;
        let values = (n - 128 * k).min(128);
        blocks.push(Block { kind, high, values, base: 0, outliers: None, outlier_bits: &[], codes: None });
    }
    // Parts B to E.
    for b in blocks.iter_mut().filter(|b| b.kind == 1 || b.kind > 2 && !pointwise) {
        b.base = number(take(&mut rest, w)?, 0, w)?;
    }
    for b in blocks.iter_mut().filter(|b| b.high >= 2) {
        let map = take(&mut rest, 16)?;
        need(map.iter().any(|&m| m != 0), "szx: empty bitmap")?;
        need((b.values..128).all(|i| !bit(map, i)), "szx: bitmap beyond the values")?;
        b.outliers = Some(map);
    }
    for b in &mut blocks {
        if let Some(map) = b.outliers {
            let outliers = (0..128).filter(|&i| bit(map, i)).count();
            b.outlier_bits = take(&mut rest, if b.high == 3 { w } else { w * outliers })?;
        }
    }
    for b in blocks.iter_mut().filter(|b| b.kind > 2 && b.high != 1) {
        b.codes = Some(take(&mut rest, 32)?);
    }
    // Part F and §4.
    for b in &blocks {
        let mut values = match b.kind {
            0 => vec![0; 128],
            1 => vec![b.base; 128],
            2 => {
                let raw = take(&mut rest, w * b.values)?;
                raw.chunks(w).map(|c| number(c, 0, w)).collect::<Result<_, _>>()?
            }
            _ => {
                let q = usize::from(b.kind) - 2;
                words(b, q.div_ceil(8), &mut rest)?.into_iter().map(|t| value(f, b.base, q, t)).collect()
            }
        };
        values.truncate(b.values);
        if let Some(map) = b.outliers {
            let mut next = 0;
            for i in (0..b.values).filter(|&i| bit(map, i)) {
                values[i] = number(b.outlier_bits, next, w)?;
                next += if b.high == 3 { 0 } else { w };
            }
        }
        out.extend(values);
    }
    need(rest.len() < 4 && rest.iter().all(|&b| b == 0), "szx: payload too long")
}

/// §3.3 and §4: the words of one coded block.
fn words(b: &Block<'_>, r: usize, rest: &mut &[u8]) -> Result<[u64; 128], Refusal> {
    let mut d = [0u64; 128];
    let mut code = [0usize; 128];
    if let Some(codes) = b.codes {
        for (i, c) in code.iter_mut().enumerate() {
            *c = usize::from(bit(codes, i)) + 2 * usize::from(bit(&codes[16..], i));
            need(*c <= r.min(3), "szx: code")?;
        }
    }
    for p in 0..r {
        for i in (0..128).filter(|&i| code[i] <= p) {
            d[i] |= u64::from(take(rest, 1)?[0]) << (8 * (r - 1 - p));
        }
    }
    if b.codes.is_some() {
        for i in 1..128 {
            d[i] ^= d[i - 1];
        }
    }
    Ok(d)
}

/// §5: the exponent of the step, when it is usable.
fn step(f: &Frame<'_>) -> Option<i64> {
    let field = (f.bound.to_bits() >> 52) as i64;
    let e = field - 1023 + 1;
    let limit = if f.size == 4 { -126..=126 } else { -1022..=1022 };
    (field > 0 && limit.contains(&e)).then_some(e)
}

/// §5: the bits of x̂.
fn value(f: &Frame<'_>, base: u64, q: usize, t: u64) -> u64 {
    if f.mode == 3 {
        let bits = t << (8 * f.size - q);
        return if f.size == 4 { bits & 0xFFFF_FFFF } else { bits };
    }
    let e = step(f).expect("checked with the kinds");
    if f.size == 4 {
        let power = 8_388_608f32;
        let k = f32::from_bits(power.to_bits().wrapping_add(t as u32)) - power;
        let g = f32::from_bits(((e + 127) as u32) << 23);
        (f32::from_bits(base as u32) + k * g).to_bits().into()
    } else {
        let power = 4_503_599_627_370_496f64;
        let k = f64::from_bits(power.to_bits().wrapping_add(t)) - power;
        let g = f64::from_bits(((e + 1023) as u64) << 52);
        (f64::from_bits(base) + k * g).to_bits()
    }
}

// ---- codecs/src/codec/ndzip/FORMAT.md ----

fn ndzip(f: &Frame<'_>) -> Result<Vec<u8>, Refusal> {
    // §2.
    let n = elements(f)?;
    need(f.mode == 9 && matches!(f.class, 0 | 1), "ndzip: mode or type")?;
    let [grid, stream] = f.sections[..] else { return Err("ndzip: sections".into()) };
    // §3.1.
    let rank = number(grid, 0, 4)? as usize;
    need((1..=3).contains(&rank) && grid.len() == 4 + 4 * rank, "ndzip: grid")?;
    let extents: Vec<usize> =
        (0..rank).map(|k| Ok(number(grid, 4 + 4 * k, 4)? as usize)).collect::<Result<_, Refusal>>()?;
    let product = extents.iter().try_fold(1usize, |a, &d| a.checked_mul(d));
    need(product == Some(n) && n < 1 << 32, "ndzip: grid and extents")?;
    let side = [4096, 64, 16][rank - 1];
    let whole: Vec<usize> = extents.iter().map(|d| d / side).collect();
    let cubes: usize = whole.iter().product();
    // §3.2.
    let w = f.size;
    let table = (4 * cubes).next_multiple_of(w);
    need(stream.len() % w == 0 && stream.len() >= table, "ndzip: stream")?;
    need(stream[4 * cubes..table].iter().all(|&b| b == 0), "ndzip: filling of the table")?;
    let word = |i: usize| number(stream, table + w * i, w);

    let mut values = vec![0u64; n];
    let mut covered = vec![false; n];
    let mut begin = 0;
    for cube in 0..cubes {
        let end = number(stream, 4 * cube, 4)? as usize;
        let mut x = [0u64; 4096];
        let used = planes(&word, begin, 8 * w, &mut x)?;
        need(begin + used == end, "ndzip: cube length")?;
        begin = end;
        unfold(&mut x, rank, side, 8 * w, f.class == 1);
        // The cube's first place in the grid, last axis fastest.
        let mut first = vec![0; rank];
        let mut rest = cube;
        for axis in (0..rank).rev() {
            first[axis] = rest % whole[axis] * side;
            rest /= whole[axis];
        }
        for (i, v) in x.into_iter().enumerate() {
            let mut at = 0;
            for axis in 0..rank {
                let k = i / side.pow((rank - 1 - axis) as u32) % side;
                at = at * extents[axis] + first[axis] + k;
            }
            values[at] = v;
            covered[at] = true;
        }
    }
    let border: Vec<usize> = (0..n).filter(|&i| !covered[i]).collect();
    need(table + w * (begin + border.len()) == stream.len(), "ndzip: border")?;
    for (k, &i) in border.iter().enumerate() {
        values[i] = word(begin + k)?;
    }
    Ok(to_bytes(f, &values))
}

/// §4.1: heads and planes from word `at` on; returns how many words they are.
fn planes(
    word: &dyn Fn(usize) -> Result<u64, Refusal>,
    at: usize,
    b: usize,
    x: &mut [u64; 4096],
) -> Result<usize, Refusal> {
    let columns = 4096 / b;
    let mut next = at + columns;
    for c in 0..columns {
        let head = word(at + c)?;
        for p in 0..b {
            if head >> (b - 1 - p) & 1 == 1 {
                let plane = word(next)?;
                next += 1;
                for j in 0..b {
                    x[c * b + j] |= (plane >> (b - 1 - j) & 1) << (b - 1 - p);
                }
            }
        }
    }
    Ok(next - at)
}

/// §4.2 to §4.4.
fn unfold(x: &mut [u64; 4096], rank: usize, side: usize, b: usize, float: bool) {
    let mask = u64::MAX >> (64 - b);
    for v in x.iter_mut() {
        if *v >> (b - 1) == 1 {
            *v ^= mask >> 1;
        }
    }
    for axis in 0..rank {
        let stride = side.pow((rank - 1 - axis) as u32);
        for i in 0..4096 {
            let k = i / stride % side;
            if k > 0 {
                x[i] = x[i].wrapping_add(x[i - stride]) & mask;
            }
        }
    }
    if float {
        for v in x.iter_mut() {
            *v = *v >> 1 | (*v & 1) << (b - 1);
        }
    }
}

#[allow(dead_code)] // a test includes this file for `decode`
fn main() -> Result<(), String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [frame, raw] = &arguments[..] else { return Err("give a frame and the file for its raw bytes".into()) };
    let bytes = std::fs::read(frame).map_err(|e| format!("{frame}: {e}"))?;
    // The caller's expectation is the frame's own statement here, up to 1 GiB.
    let expected = number(&bytes, 16, 8)?;
    need(expected <= 1 << 30, "more than 1 GiB")?;
    std::fs::write(raw, decode(&bytes, expected as usize)?).map_err(|e| format!("{raw}: {e}"))
}
