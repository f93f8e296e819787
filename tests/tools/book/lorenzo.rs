// SPDX-License-Identifier: MIT OR Apache-2.0
//! Written from codecs/src/codec/lorenzo/FORMAT.md, section by section: plain, slow, and without a look at the crate.

use super::{Frame, Refusal, dense, elements, need, number, to_bytes};

/// One bit after the other, from the low end of u32 words.
pub struct Bits<'a> {
    pub bytes: &'a [u8],
    pub at: usize,
}

impl Bits<'_> {
    pub fn take(&mut self, n: u32) -> Result<u32, Refusal> {
        let mut v = 0;
        for k in 0..n {
            // Little-endian words: the low end of the first word is the low end of its first byte.
            let byte = self.bytes.get(self.at / 8).ok_or("lorenzo: a stream ends too early")?;
            v |= u32::from(byte >> (self.at % 8) & 1) << k;
            self.at += 1;
        }
        Ok(v)
    }

    /// What is left are fewer than 32 bits, all of them zero.
    fn end(mut self) -> Result<(), Refusal> {
        let left = 8 * self.bytes.len() - self.at;
        need(left < 32, "lorenzo: words after the last value")?;
        need(self.take(left as u32)? == 0, "lorenzo: bits after the last value")
    }
}

/// §3.2: a codeword as (length, number, symbol).
type Codeword = (u32, u32, u32);

/// What residuals are coded with: by `lorenzo`, or by `dense`, which has the same tiles.
enum Coding {
    Huffman(Vec<Codeword>),
    Contexts(dense::Head),
}

/// A tile: how many values it has along each axis, and its parts.
struct Tile<'a> {
    extents: [usize; 3],
    kind: u8,
    payload: &'a [u8],
}

pub fn decode(f: &Frame<'_>) -> Result<Vec<u8>, Refusal> {
    let n = elements(f)?;
    let ieee = if f.size == 4 { (1, 8, 23) } else { (1, 11, 52) };
    need(f.class == 1 && f.layout == ieee && f.mode != 9, "lorenzo: type or mode")?;
    // §3.1.
    let e = three(&f.extents);
    let t = tile_extents(e);
    let grid = [0, 1, 2].map(|k| e[k].div_ceil(t[k]));
    let tiles: usize = grid.iter().product();
    let [head, kinds, lengths, payload] = f.sections[..] else { return Err("lorenzo: sections".into()) };
    need(kinds.len() == tiles, "lorenzo: kinds")?;
    let is_dense = f.codec == 7;
    let (coding, base_at) = match is_dense {
        true => dense::head(head).map(|(head, end)| (Coding::Contexts(head), end))?,
        false => codebook_of(head).map(|(codebook, end)| (Coding::Huffman(codebook), end))?,
    };
    let base = base_of(f, head, base_at)?;
    let ends = ends_of(lengths, tiles, if is_dense { 2 } else { 4 })?;
    need(ends[tiles - 1] == payload.len(), "lorenzo: payload")?;
    let mut values = vec![0; n];
    let mut begin = 0;
    for (k, &kind) in kinds.iter().enumerate() {
        let place = [k / grid[2] / grid[1], k / grid[2] % grid[1], k % grid[2]];
        let first = [0, 1, 2].map(|a| place[a] * t[a]);
        let extents = [0, 1, 2].map(|a| t[a].min(e[a] - first[a]));
        let payload = &payload[begin..ends[k]];
        begin = ends[k];
        let tile = tile(f, &coding, base, &Tile { extents, kind, payload }).map_err(|e| format!("{e} (tile {k})"))?;
        for (i, v) in tile.into_iter().enumerate() {
            let [z, y, x] = indices(extents, i);
            values[((first[0] + z) * e[1] + first[1] + y) * e[2] + first[2] + x] = v;
        }
    }
    Ok(to_bytes(f, &values))
}

/// §3, section 2: where the tiles' payloads end.
fn ends_of(section: &[u8], tiles: usize, unit: usize) -> Result<Vec<usize>, Refusal> {
    let starts = 4 * tiles.div_ceil(2);
    need(section.len() == starts + 4 * (tiles.div_ceil(64) - 1), "lorenzo: lengths")?;
    need(section[2 * tiles..starts].iter().all(|&b| b == 0), "lorenzo: filling of the lengths")?;
    let mut ends = Vec::new();
    let mut begin = 0;
    for k in 0..tiles {
        if k > 0 && k.is_multiple_of(64) {
            let start = unit * number(section, starts + 4 * (k / 64 - 1), 4)? as usize;
            need(start == begin, "lorenzo: a start")?;
        }
        begin += unit * number(section, 2 * k, 2)? as usize;
        ends.push(begin);
    }
    Ok(ends)
}

/// §3.1: three extents, slowest first.
fn three(extents: &[usize]) -> [usize; 3] {
    let mut e = extents.to_vec();
    while e.len() > 3 {
        let first = e.remove(0);
        e[0] *= first;
    }
    while e.len() < 3 {
        e.insert(0, 1);
    }
    [e[0], e[1], e[2]]
}

/// §3.1: the extents of a tile.
fn tile_extents(e: [usize; 3]) -> [usize; 3] {
    let mut t = [1; 3];
    loop {
        let mut axes = [2, 1, 0];
        // The order of equals stays.
        axes.sort_by_key(|&k| t[k]);
        let doubled = |k: usize| (2 * t[k]).min(e[k]);
        let fits = |k: usize| t[k] < e[k] && t.iter().product::<usize>() / t[k] * doubled(k) <= 8192;
        let Some(k) = axes.into_iter().find(|&k| fits(k)) else { return t };
        t[k] = doubled(k);
    }
}

/// The indices of place `i`, the last axis fastest.
pub fn indices(extents: [usize; 3], i: usize) -> [usize; 3] {
    [i / extents[2] / extents[1], i / extents[2] % extents[1], i % extents[2]]
}

/// §3.2: the base, where there is one, begins at byte `at`.
fn base_of(f: &Frame<'_>, head: &[u8], at: usize) -> Result<Option<u64>, Refusal> {
    if head.len() == at {
        return Ok(None);
    }
    need(f.mode != 3 && head.len() == at + f.size, "lorenzo: what follows the head")?;
    let bits = number(head, at, f.size)?;
    let x = float(f, bits);
    need(x != 0.0 && x.is_finite(), "lorenzo: a base that is no number or 0")?;
    Ok(Some(bits))
}

/// §3.2: the codebook, and its bytes.
fn codebook_of(head: &[u8]) -> Result<(Vec<Codeword>, usize), Refusal> {
    let symbols = number(head, 0, 1)? as usize;
    let end = 1 + symbols.div_ceil(2);
    need(symbols <= 188 && head.len() >= end, "lorenzo: symbols")?;
    let length = |s: usize| u32::from(head[1 + s / 2] >> (4 * (s % 2)) & 15);
    need(symbols.is_multiple_of(2) || length(symbols) == 0, "lorenzo: a length after the last")?;
    let mut codewords = Vec::new();
    let (mut next, mut sum) = (0, 0);
    for bits in 1..=11 {
        next *= 2;
        for s in (0..symbols).filter(|&s| length(s) == bits) {
            codewords.push((bits, next, s as u32));
            next += 1;
            sum += 1 << (11 - bits);
        }
    }
    need((0..symbols).all(|s| length(s) <= 11), "lorenzo: a codeword of more than 11 bits")?;
    need(symbols == 0 || length(symbols - 1) > 0, "lorenzo: the last symbol is not in use")?;
    need(symbols == 0 || sum <= 1 << 11, "lorenzo: over-full")?;
    need(symbols == 0 || sum >= 1 << 11, "lorenzo: under-full")?;
    Ok((codewords, end))
}

/// The number that has these bits.
fn float(f: &Frame<'_>, bits: u64) -> f64 {
    if f.size == 4 { f32::from_bits(bits as u32).into() } else { f64::from_bits(bits) }
}

/// One tile: the bits of its values.
fn tile(f: &Frame<'_>, coding: &Coding, base: Option<u64>, tile: &Tile<'_>) -> Result<Vec<u64>, Refusal> {
    let n: usize = tile.extents.iter().product();
    // §3.3.
    let (axes, interpolated) = (tile.kind & 7, tile.kind & 8 != 0);
    let (class, outliers, finer) = (tile.kind >> 4 & 3, tile.kind & 64 != 0, tile.kind & 128 != 0);
    let is_filtered = matches!(coding, Coding::Contexts(_)) && !interpolated && finer;
    need(interpolated || is_filtered || !finer, "lorenzo: finer steps without interpolation")?;
    need(!is_filtered || class == 1, "dense: a filtered tile that is not coded")?;
    if class == 3 {
        need(tile.kind == 3 << 4 && tile.payload.len() == n * f.size, "lorenzo: a raw tile")?;
        return (0..n).map(|i| number(tile.payload, i * f.size, f.size)).collect();
    }
    let on = |axis: usize| axes >> (2 - axis) & 1 == 1;
    if interpolated {
        need(axes != 0 && (0..3).all(|k| !on(k) || tile.extents[k] > 1), "lorenzo: axes of interpolation")?;
        need(f.mode != 3, "lorenzo: interpolation in mode 3")?;
    }
    let (replaced, rest) = if outliers { outliers_of(f, tile)? } else { (Vec::new(), tile.payload) };
    // Residuals by class.
    let residuals = match class {
        0 => {
            need(rest.is_empty(), "lorenzo: an empty tile with a payload")?;
            vec![0; n]
        }
        _ => match (coding, class) {
            (Coding::Huffman(_), 2) => fixed_width(rest, n)?,
            (Coding::Huffman(codebook), _) => huffman(codebook, rest, n)?,
            (Coding::Contexts(head), 1) => dense::residuals(head, tile.kind, tile.extents, rest)?,
            (Coding::Contexts(head), _) => {
                need(tile.kind & 0x8f == 0, "dense: bits of a tile of vectors")?;
                dense::vectors::quanta(head, tile.extents, rest)?
            }
        },
    };
    let mut values: Vec<u64> = if interpolated {
        let u = 2.0 * f.bound / 257.0;
        let way = Way { axes: (0..3).filter(|&k| on(k)).collect(), finer };
        interpolation(tile.extents, &way, &residuals).into_iter().map(|r| rounded(f, f64::from(r) * u)).collect()
    } else {
        running_sums(tile.extents, axes, residuals).into_iter().map(|q| value(f, q)).collect()
    };
    if let Some(base) = base {
        // The sum of two f32, both exact in f64, is rounded once.
        values.iter_mut().for_each(|v| *v = rounded(f, float(f, base) + float(f, *v)));
    }
    for (i, bits) in replaced {
        values[i] = bits;
    }
    Ok(values)
}

/// Places in a tile with the bits of their values, and what follows.
type Replaced<'a> = (Vec<(usize, u64)>, &'a [u8]);

/// §3.4, outliers.
fn outliers_of<'a>(f: &Frame<'_>, tile: &Tile<'a>) -> Result<Replaced<'a>, Refusal> {
    let (rest, n) = (tile.payload, tile.extents.iter().product::<usize>());
    let head = number(rest, 0, 4)? as usize;
    let (mask, differences) = (head >> 31 == 1, head >> 30 == 3);
    let count = if mask { head & 0x3fff_ffff } else { head };
    need((1..=n).contains(&count), "lorenzo: count of outliers")?;
    let mut replaced = Vec::new();
    if mask {
        let bits = number(rest, 4, f.size)?;
        let end = 4 + f.size + 4 * count.div_ceil(2);
        need(rest.len() >= end, "lorenzo: a mask is longer than the payload")?;
        let mut ones = Vec::new();
        for k in 0..2 * count {
            ones.resize(ones.len() + usize::from(rest[4 + f.size + k]), k % 2 == 1);
        }
        need(ones.len() <= n, "lorenzo: runs of a mask")?;
        need(rest[4 + f.size + 2 * count..end].iter().all(|&b| b == 0), "lorenzo: filling of a mask")?;
        ones.resize(n, false);
        let slowest = (0..2).find(|&axis| tile.extents[axis] > 1);
        need(!differences || slowest.is_some(), "lorenzo: differences in one row")?;
        for i in 0..n {
            let axis = slowest.unwrap_or(0);
            let stride: usize = tile.extents[axis + 1..].iter().product();
            ones[i] ^= differences && indices(tile.extents, i)[axis] > 0 && ones[i - stride];
        }
        return Ok(((0..n).filter(|&i| ones[i]).map(|i| (i, bits)).collect(), &rest[end..]));
    }
    let mut free = 0;
    for k in 0..count {
        let (first, more) = (number(rest, 4 + 4 * k, 2)? as usize, number(rest, 6 + 4 * k, 2)? as usize);
        need(free <= first && first + more < n, "lorenzo: places of outliers")?;
        free = first + more + 1;
        let bits = number(rest, 4 + 4 * count + f.size * k, f.size)?;
        replaced.extend((first..free).map(|i| (i, bits)));
    }
    Ok((replaced, &rest[4 + 4 * count + f.size * count..]))
}

/// §3.2, zigzag order.
pub fn residual(z: u32) -> i32 {
    if z.is_multiple_of(2) { (z / 2) as i32 } else { -((z / 2) as i32) - 1 }
}

/// §3.4, fixed width.
fn fixed_width(rest: &[u8], n: usize) -> Result<Vec<i32>, Refusal> {
    let w = number(rest, 0, 4)? as u32;
    need((1..=32).contains(&w), "lorenzo: width")?;
    need(rest.len() == 4 + 4 * (n * w as usize).div_ceil(32), "lorenzo: length of a tile of fixed width")?;
    let mut bits = Bits { bytes: &rest[4..], at: 0 };
    let residuals = (0..n).map(|_| bits.take(w).map(residual)).collect::<Result<_, _>>()?;
    bits.end()?;
    Ok(residuals)
}

/// §3.4, Huffman, and §4.2.
fn huffman(codebook: &[Codeword], stream: &[u8], n: usize) -> Result<Vec<i32>, Refusal> {
    need(!stream.is_empty() && stream.len().is_multiple_of(4), "lorenzo: words of a stream")?;
    let mut bits = Bits { bytes: stream, at: 0 };
    let mut residuals = Vec::new();
    while residuals.len() < n {
        match codeword(codebook, &mut bits)? {
            0 => residuals.resize(n, 0),
            s @ (1..=34 | 120..=187) => {
                let m = zeros(if s < 120 { s - 1 } else { (s - 120) / 2 }, &mut bits)?;
                need(residuals.len() + m <= n, "lorenzo: a run beyond the tile")?;
                residuals.resize(residuals.len() + m, 0);
                if s >= 120 {
                    need(residuals.len() < n, "lorenzo: a residual beyond the tile")?;
                    residuals.push(if s.is_multiple_of(2) { -1 } else { 1 });
                }
            }
            s @ 35..=65 => residuals.push(residual(s - 34)),
            s => {
                let k = s - 66;
                let e = 5 + k / 2;
                residuals.push(residual(((2 + k % 2) << (e - 1)) + bits.take(e - 1)?));
            }
        }
    }
    bits.end()?;
    Ok(residuals)
}

/// §3.2: the zeros of a run of this class, whose other bits come next.
fn zeros(class: u32, bits: &mut Bits<'_>) -> Result<usize, Refusal> {
    if class < 16 {
        return Ok(class as usize + 1);
    }
    let k = 4 + (class - 16) / 2;
    Ok(((1 << k) + (class % 2) * (1 << (k - 1)) + bits.take(k - 1)?) as usize)
}

/// §4.2: the next codeword's symbol.
fn codeword(codebook: &[Codeword], bits: &mut Bits<'_>) -> Result<u32, Refusal> {
    let mut word = 0;
    for length in 1..=11 {
        word = 2 * word + bits.take(1)?;
        if let Some(&(_, _, symbol)) = codebook.iter().find(|c| (c.0, c.1) == (length, word)) {
            return Ok(symbol);
        }
    }
    Err("lorenzo: no codeword".into())
}

/// §4.3: the quanta.
fn running_sums(extents: [usize; 3], axes: u8, mut d: Vec<i32>) -> Vec<i32> {
    for axis in (0..3).filter(|axis| axes >> (2 - axis) & 1 == 1) {
        let stride: usize = extents[axis + 1..].iter().product();
        for i in 0..d.len() {
            if indices(extents, i)[axis] > 0 {
                d[i] = d[i].wrapping_add(d[i - stride]);
            }
        }
    }
    d
}

/// The bits of a number in the frame's type.
fn rounded(f: &Frame<'_>, x: f64) -> u64 {
    if f.size == 4 { (x as f32).to_bits().into() } else { x.to_bits() }
}

/// §5: the bits of x̂.
fn value(f: &Frame<'_>, q: i32) -> u64 {
    if f.mode != 3 {
        return rounded(f, f64::from(q) * (2.0 * f.bound));
    }
    let (mantissa, sign) = if f.size == 4 { (23, 31) } else { (52, 63) };
    // `as` stops at 2^64 - 1.
    let d = ((f.bound * 2f64.powi(mantissa + 1)).floor() as u64).max(1);
    let magnitude = u128::from(q.unsigned_abs()) * u128::from(d) % (1 << sign);
    magnitude as u64 | u64::from(q < 0) << sign
}

/// What a kind says of interpolation: the axes that lines are taken along (2 is x, 1 is y, 0 is z), and bit 7.
struct Way {
    axes: Vec<usize>,
    finer: bool,
}

/// A lattice of §4.4: its level, how many points it has along each axis, and R of those that are known.
struct Lattice {
    level: u32,
    extents: [usize; 3],
    points: Vec<i32>,
    /// The tile's extents.
    tile: [usize; 3],
}

impl Lattice {
    /// Where the point with these indices stands.
    fn number(&self, p: [usize; 3]) -> usize {
        (p[0] * self.extents[1] + p[1]) * self.extents[2] + p[2]
    }

    /// The place of index `i` of an axis.
    fn place(&self, axis: usize, i: usize) -> i64 {
        (i << self.level).min(self.tile[axis] - 1) as i64
    }
}

/// §4.4: whether index `i` of an axis of `n` points is new; the others are coarse.
pub fn is_new(i: usize, n: usize) -> bool {
    if n == 2 { i == 1 } else { i % 2 == 1 && i < n - 1 }
}

/// §4.4: s(l).
fn step(way: &Way, level: u32) -> i32 {
    match level {
        1 if way.finer => 205,
        2 if way.finer => 164,
        3 if way.finer => 131,
        4.. if way.finer => 128,
        _ => 256,
    }
}

/// §4.4: R of every point of the tile.
fn interpolation(tile: [usize; 3], way: &Way, residuals: &[i32]) -> Vec<i32> {
    let coarse = |n: usize| (0..n).filter(move |&i| !is_new(i, n));
    // From the tile's lattice down to a single point; then back.
    let mut lattices = vec![tile];
    while lattices[lattices.len() - 1] != [1, 1, 1] {
        lattices.push(lattices[lattices.len() - 1].map(|n| coarse(n).count()));
    }
    let mut next = residuals.iter().copied();
    let mut residual = |level| next.next().expect("as many as points").wrapping_mul(step(way, level));
    let last = lattices.len() as u32 - 1;
    let mut smaller = Lattice { level: last, extents: [1, 1, 1], points: vec![residual(last)], tile };
    for level in (0..last).rev() {
        let extents = lattices[level as usize];
        let mut lattice = Lattice { level, extents, points: vec![0; extents.iter().product()], tile };
        let kept: [Vec<usize>; 3] = extents.map(|n| coarse(n).collect());
        for (i, &r) in smaller.points.iter().enumerate() {
            let index = indices(smaller.extents, i);
            let place = lattice.number([0, 1, 2].map(|k| kept[k][index[k]]));
            lattice.points[place] = r;
        }
        for class in [&[2][..], &[1], &[0], &[2, 1], &[2, 0], &[1, 0], &[2, 1, 0]] {
            for i in 0..lattice.points.len() {
                let p = indices(extents, i);
                if (0..3).all(|k| is_new(p[k], extents[k]) == class.contains(&k)) {
                    lattice.points[i] = prediction(&lattice, way, class, p).wrapping_add(residual(level));
                }
            }
        }
        smaller = lattice;
    }
    smaller.points
}

/// §4.4: P of the point with the indices `p`, which is new along the axes `class`, in the order x, y, z.
fn prediction(lattice: &Lattice, way: &Way, class: &[usize], p: [usize; 3]) -> i32 {
    let (add, sub, mul) = (i32::wrapping_add, i32::wrapping_sub, i32::wrapping_mul);
    let among: Vec<usize> = class.iter().copied().filter(|axis| way.axes.contains(axis)).collect();
    let along = if among.is_empty() { class } else { &among };
    let lines: Vec<i32> = along.iter().map(|&axis| line(lattice, axis, p)).collect();
    match lines[..] {
        [p] => p,
        [p, q] => add(q, sub(p, q) >> 1),
        [p, q, r] => add(r, add(mul(85, sub(add(p, q), mul(2, r))), 128) >> 8),
        _ => unreachable!("one to three axes"),
    }
}

/// §4.4: the prediction along one line.
fn line(lattice: &Lattice, axis: usize, p: [usize; 3]) -> i32 {
    let n = lattice.extents[axis];
    let h = 1i64 << lattice.level;
    let before = |i: usize| (0..i).rev().find(|&i| !is_new(i, n));
    let behind = |i: usize| (i + 1..n).find(|&i| !is_new(i, n));
    let at = |i: usize| lattice.place(axis, i);
    let b = before(p[axis]).expect("a new index is not the first");
    let (a, c) = (before(b), behind(p[axis]));
    let d = c.and_then(|c| behind(c).filter(|&d| at(d) - at(c) >= h));
    // Those that exist: distances from the point, b's first, and R.
    let there: Vec<(i64, i32)> = [Some(b), a, c, d]
        .into_iter()
        .flatten()
        .map(|i| {
            let mut q = p;
            q[axis] = i;
            (at(i) - at(p[axis]), lattice.points[lattice.number(q)])
        })
        .collect();
    if let [(x, b), (x_a, a), (x_c, c), (x_d, d)] = there[..]
        && [x_a, x, x_c, x_d] == [-3 * h, -h, h, 3 * h]
    {
        let near = b.wrapping_add(c);
        return (near >> 1).wrapping_add(near.wrapping_sub(a).wrapping_sub(d) >> 4);
    }
    let b = there[0].1;
    let mut sum = 32768;
    for (j, &(x, v)) in there.iter().enumerate().skip(1) {
        let others = || there.iter().enumerate().filter(|&(k, _)| k != j).map(|(_, other)| other.0);
        let (over, under) = (others().map(|k| -k).product::<i64>(), others().map(|k| x - k).product::<i64>());
        // A positive divisor, so that what is rounded down is the quotient.
        let (over, under) = (over * under.signum(), under.abs());
        let weight = (2 * 65536 * over + under).div_euclid(2 * under);
        sum += weight * i64::from(v.wrapping_sub(b));
    }
    b.wrapping_add((sum >> 16) as i32)
}
