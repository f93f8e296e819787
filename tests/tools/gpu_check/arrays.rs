// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arrays in a device's memory, of any layout, against the same arrays in host memory: frames, values, ranges,
//! verdicts.

use super::{Case, Random, case, first_difference};
use h5z_gpu::array::{self, Array, Encoding, Frames, OnDevice};
use h5z_gpu::testing::DeviceMemory;
use h5z_gpu::{Bound, Class, Codec, CodecId, Dtype, Engine, Params, Request, frame};

/// A layout of an array in some memory.
struct Layout {
    shape: Vec<u64>,
    /// Bytes of the memory, and of the first element's place.
    bytes: usize,
    first: usize,
    strides: Vec<i64>,
}

impl Layout {
    fn dense(shape: &[u64], size: usize) -> Layout {
        Layout::new(
            shape,
            size,
            &(0..shape.len()).collect::<Vec<_>>(),
            &vec![0; shape.len()],
            &vec![false; shape.len()],
            0,
        )
    }

    /// Axes from the slowest in memory to the fastest, elements left out behind each, those that are walked backwards,
    /// bytes before the first.
    fn new(shape: &[u64], size: usize, order: &[usize], gaps: &[u64], turned: &[bool], before: usize) -> Layout {
        let (mut strides, mut step, mut first) = (vec![0i64; shape.len()], size as i64, before as i64);
        for &k in order.iter().rev() {
            strides[k] = step;
            step *= (shape[k] + gaps[k]) as i64;
        }
        for k in 0..shape.len() {
            if turned[k] {
                first += (shape[k] as i64 - 1) * strides[k];
                strides[k] = -strides[k];
            }
        }
        Layout { shape: shape.to_vec(), bytes: step as usize + before, first: first as usize, strides }
    }

    fn random(r: &mut Random, shape: &[u64], size: usize) -> Layout {
        let n = shape.len();
        let mut order: Vec<usize> = (0..n).collect();
        if r.one_in(3) {
            (0..n).for_each(|k| order.swap(k, r.below(n as u64) as usize));
        }
        let gaps: Vec<u64> = (0..n).map(|_| if r.one_in(3) { r.below(4) } else { 0 }).collect();
        let turned: Vec<bool> = (0..n).map(|_| r.one_in(6)).collect();
        let before = if r.one_in(3) { size * r.below(5) as usize } else { 0 };
        Layout::new(shape, size, &order, &gaps, &turned, before)
    }

    /// The array that has this layout in memory from `at` on.
    fn array(&self, at: *mut u8, size: usize, device: Option<i32>) -> Array {
        // SAFETY: every element lies in the memory, which the caller keeps.
        unsafe {
            let array =
                Array::new(at.wrapping_add(self.first), size, &self.shape, Some(&self.strides)).expect("an array");
            match device {
                Some(ordinal) => array.on(OnDevice { ordinal, stream: Some(1) }),
                None => array,
            }
        }
    }
}

/// Bytes of the host on the device, or back.
fn transfer(bytes: &mut [u8], memory: &DeviceMemory, back: bool) -> Result<(), String> {
    let n = [bytes.len() as u64];
    // SAFETY: both have that many bytes.
    let (mut host, mut there) = unsafe {
        let there = Array::new(memory.address(), 1, &n, None).expect("bytes");
        let there = there.on(OnDevice { ordinal: memory.ordinal(), stream: None });
        (Array::new(bytes.as_mut_ptr(), 1, &n, None).expect("bytes"), there)
    };
    let copied = if back { array::copy(&there, &mut host) } else { array::copy(&host, &mut there) };
    copied.map_err(|e| e.to_string())
}

fn frames(array: Array, params: Params, chunk: &[u64], origins: &[i64], beyond: &[u8]) -> Result<Vec<Vec<u8>>, String> {
    let mut all = Vec::new();
    let mut work = Encoding::new(array, params, chunk, origins, Some(beyond), 2).map_err(|e| e.to_string())?;
    loop {
        let some = work.next().map_err(|e| e.to_string())?;
        if some.is_empty() {
            return Ok(all);
        }
        all.extend(some.into_iter().map(<[u8]>::to_vec));
    }
}

/// Checks `count` arrays; what was found to be the same, or the first difference.
pub(super) fn check(r: &mut Random, rounds: u64, largest: u64, only: Option<Codec>) -> Result<String, String> {
    let (mut chunks, mut kept, mut halves, mut units) = (0, 0, 0, 0);
    let before = Engine::chunks_on_gpu();
    for _ in 0..rounds {
        let case = case(r, largest, only);
        let case = match r.below(8) {
            0 | 1 => in_16_bits(r, case),
            2 | 3 if only.is_none_or(|codec| codec == Codec::Auto) => in_units(r, case),
            _ => case,
        };
        let is_half = [Dtype::F16, Dtype::BFLOAT16].contains(&case.params.dtype);
        let coded = Engine::chunks_on_gpu().0;
        let (n, exact, all_exact) =
            one(r, &case, only == Some(Codec::Auto)).map_err(|why| format!("{}: {why}", case.what))?;
        chunks += n;
        kept += exact;
        halves += if is_half { Engine::chunks_on_gpu().0 - coded } else { 0 };
        units += if all_exact { Engine::chunks_on_gpu().0 - coded } else { 0 };
    }
    let (encoded, decoded) = Engine::chunks_on_gpu();
    let (encoded, decoded) = (encoded - before.0, decoded - before.1);
    let has_units = only.is_some_and(|codec| codec != Codec::Auto) || units > 0;
    if encoded == 0 || decoded == 0 || !has_units {
        return Err(format!("of {chunks} chunks the GPU encoded {encoded}, {units} of units, and decoded {decoded}"));
    }
    Ok(format!(
        "{rounds} arrays of {chunks} chunks, {encoded} encoded and {decoded} decoded by kernels, {halves} of 16-bit \
         floats, {units} of units, {kept} kept under a bound as units or few values, {rounds} damaged frames"
    ))
}

/// A case of f32 with numbers of 16 bits in their place: about the same ones, any, or the largest; mostly under a bound
/// that leaves less than half of their bytes, beyond which the CPU codes them.
fn in_16_bits(r: &mut Random, mut case: Case) -> Case {
    if case.params.dtype != Dtype::F32 {
        return case;
    }
    let is_f16 = r.one_in(2);
    let (dtype, largest) = if is_f16 { (Dtype::F16, 0x7BFF) } else { (Dtype::BFLOAT16, 0x7F7F) };
    let kind = r.below(6);
    let number = |bits: u32| match bits >> 31 << 15 {
        _ if kind == 0 => bits as u16,
        _ if kind == 1 => largest - (bits >> 20) as u16 % 8,
        _ if !is_f16 => (bits >> 16) as u16,
        sign => sign as u16 | ((bits << 1 >> 14).saturating_sub(112 << 10)).min(0x7C00) as u16,
    };
    let numbers = case.raw.as_chunks().0.iter().map(|bytes| number(u32::from_le_bytes(*bytes)));
    case.raw = numbers.flat_map(u16::to_le_bytes).collect();
    case.what += &format!(", in 16 bits, {dtype:?}");
    case.params.fill = case.params.fill.map(|fill| number(fill as u32).into());
    case.params.dtype = dtype;
    if !r.one_in(4) {
        let power = 2f64.powi(-1 - r.below(7) as i32);
        let bound = if r.one_in(3) { Bound::PointwiseRelative(power) } else { Bound::Relative(power) };
        let codec = [Codec::Auto, Codec::Lorenzo, Codec::Planes, Codec::Szx][r.below(4) as usize];
        let is_szx = codec == Codec::Planes && matches!(bound, Bound::PointwiseRelative(_));
        case.params.request = Request::new(if is_szx { Codec::Szx } else { codec }, bound);
    }
    case
}

/// A case of floats or of integers of 4 or 8 bytes with multiples of a unit in place of its numbers, few of which are
/// something else, mostly without a bound.
fn in_units(r: &mut Random, mut case: Case) -> Case {
    let dtype = case.params.dtype;
    let size = usize::from(dtype.size);
    let is_integer = dtype.class == Class::Integer;
    if !(dtype.is_ieee() || is_integer && size > 2) {
        return case;
    }
    let (decimal, any) = (10f64.powi(r.below(6) as i32 - 1), 0.001 + r.unit());
    let (width, start) = (2 + r.below(12), if r.one_in(2) { 0 } else { r.below(4000) as i64 - 2000 });
    let (kind, unit) = (r.below(4), [1, 1, 3, 10, 256, 1000][r.below(6) as usize]);
    // A frequent one is a special number, a rare one an exception.
    let [odd, other] = [0, 1].map(|_| [f64::NAN, f64::INFINITY, -0.0, 1e20, 0.123, -9999.0][r.below(6) as usize]);
    let every = [3, 20, 300, 3000, 1 << 40][r.below(5) as usize];
    let mut walk = 0i64;
    for bytes in case.raw.chunks_exact_mut(size) {
        walk += r.below(1 + 2 * width) as i64 - width as i64;
        let whole = start + walk * unit;
        let x = match kind {
            0 | 1 => whole as f64 / decimal,
            2 => whole as f64 * any + 273.15,
            _ => f64::from(whole as f32 * any as f32),
        };
        let x = if r.one_in(every) { odd } else { x };
        let x = if r.one_in(1000) { other } else { x };
        let bits = match (is_integer, size) {
            (true, _) => whole as u64,
            (_, 4) => (x as f32).to_bits().into(),
            _ => x.to_bits(),
        };
        bytes.copy_from_slice(&bits.to_le_bytes()[..size]);
        if dtype.big_endian {
            bytes.reverse();
        }
    }
    case.what += ", in units";
    case.params.fill = case.params.fill.filter(|_| r.one_in(2));
    let bound = if is_integer || !r.one_in(3) { Bound::Lossless } else { Bound::Relative(1e-9) };
    case.params.request = Request::new(Codec::Auto, bound);
    case
}

/// What is written: an array's extents and its chunks', parameters of a chunk, the chunks' origins.
struct Plan {
    shape: Vec<u64>,
    chunk: Vec<u64>,
    params: Params,
    origins: Vec<i64>,
}

/// Chunks of any size, or as large as they may be; now and then of a type that no kernel takes.
fn plan(r: &mut Random, case: &Case, sampled: bool) -> Result<Plan, String> {
    let mut shape = case.params.extents.as_slice().iter().map(|&d| u64::from(d)).collect::<Vec<_>>();
    if shape.is_empty() {
        shape = vec![1];
    }
    let chunk: Vec<u64> = shape.iter().map(|&d| if sampled || r.one_in(3) { d } else { 1 + r.below(d) }).collect();
    // Not too many of them.
    let chunk: Vec<u64> = shape.iter().zip(&chunk).map(|(&d, &c)| c.max(d.div_ceil(12))).collect();
    // Of integers the codec is chosen here, but for planes by name.
    let open = case.params.dtype.class == Class::Integer;
    let is_chosen = open && case.params.request.codec != Codec::Planes;
    let request = if is_chosen { Bound::Lossless.into() } else { case.params.request };
    let codec = if sampled { 2 } else { r.below(16) };
    let codec = *[Codec::Fast, Codec::Small].get(codec as usize).unwrap_or(&request.codec);
    let request = Request { codec, ..request };
    let mut params = Params::new(request, case.params.dtype, &chunk).map_err(|e| e.to_string())?;
    params.fill = case.params.fill;
    if !open && r.one_in(10) {
        // Halves of numbers: what no kernel takes, or hardly one.
        let dtype = Dtype { size: 2, class: Class::Integer, exponent_bits: 0, mantissa_bits: 0, ..params.dtype };
        let last = shape.len() - 1;
        shape[last] *= u64::from(params.dtype.size / 2);
        let lossless = Request::new(Codec::Auto, Bound::Lossless);
        params = Params::new(lossless, dtype, &chunk).map_err(|e| e.to_string())?;
    }
    let origins = origins(&shape, &chunk);
    Ok(Plan { shape, chunk, params, origins })
}

/// Where the chunks of an array begin.
fn origins(shape: &[u64], chunk: &[u64]) -> Vec<i64> {
    let grid = shape.iter().zip(chunk).map(|(&d, &c)| d.div_ceil(c));
    let grid: Vec<u64> = grid.collect();
    (0..grid.iter().product::<u64>())
        .flat_map(|mut k| {
            let mut at: Vec<i64> = grid
                .iter()
                .zip(chunk)
                .rev()
                .map(|(&g, &c)| {
                    let here = (k % g * c) as i64;
                    k /= g;
                    here
                })
                .collect();
            at.reverse();
            at
        })
        .collect()
}

/// One array; with chunks as large as they may be, of which a codec is chosen by samples, or with any. How many chunks,
/// how many of them lose nothing under a bound, kept by the codec `scaled`, and whether all of them are kept by it.
fn one(r: &mut Random, case: &Case, sampled: bool) -> Result<(usize, usize, bool), String> {
    let Plan { shape, chunk, params, origins } = &plan(r, case, sampled)?;
    let params = *params;
    let size = usize::from(params.dtype.size);
    let beyond: Vec<u8> = params.fill.map_or_else(|| vec![0; size], |f| f.to_le_bytes()[..size].to_vec());

    // The same values, dense here and in some layout there.
    let mut raw = case.raw.clone();
    let dense = Layout::dense(shape, size);
    let there = Layout::random(r, shape, size);
    let memory = DeviceMemory::new(there.bytes).ok_or("no device memory")?;
    transfer(&mut vec![0xEE; there.bytes], &memory, false)?;
    let device = Some(memory.ordinal());
    let on_host = |raw: &mut Vec<u8>| dense.array(raw.as_mut_ptr(), size, None);
    let mut on_device = there.array(memory.address(), size, device);
    array::copy(&on_host(&mut raw), &mut on_device).map_err(|e| e.to_string())?;

    let want = frames(on_host(&mut raw), params, chunk, origins, &beyond)?;
    let got = frames(there.array(memory.address(), size, device), params, chunk, origins, &beyond)?;
    if want.len() != got.len() {
        return Err(format!("{} frames, not {}", got.len(), want.len()));
    }
    for (k, (want, got)) in want.iter().zip(&got).enumerate() {
        if want != got {
            return Err(format!(
                "frame {k} of chunks {chunk:?}, strides {:?}: {}",
                there.strides,
                first_difference(want, got)
            ));
        }
    }
    if params.dtype.is_ieee() {
        let range = |array: &Array| {
            array::range(array, params.dtype, chunk, origins, params.fill, 1).map_err(|e| e.to_string())
        };
        let (want, got) = (range(&on_host(&mut raw))?, range(&on_device)?);
        if want.map(|(a, b)| (a.to_bits(), b.to_bits())) != got.map(|(a, b)| (a.to_bits(), b.to_bits())) {
            return Err(format!("range {got:?}, not {want:?}"));
        }
    }
    parts(r, &want, shape, chunk, origins, (size, device))?;
    let is_kept = |bytes: &&Vec<u8>| frame::header(bytes).is_ok_and(|header| header.codec == CodecId::SCALED);
    let is_bound = params.dtype.is_ieee() && params.request.bound != Bound::Lossless;
    let kept = want.iter().filter(is_kept).count();
    Ok((want.len(), if is_bound { kept } else { 0 }, kept == want.len()))
}

/// Decodes into another layout of a part of the array, whole frames and a damaged one.
fn parts(
    r: &mut Random,
    want: &[Vec<u8>],
    shape: &[u64],
    chunk: &[u64],
    origins: &[i64],
    (size, device): (usize, Option<i32>),
) -> Result<(), String> {
    let mut hurt = want.to_vec();
    let bad = r.below(want.len() as u64) as usize;
    let at = (56 + r.below(hurt[bad].len() as u64 - 56)) as usize;
    hurt[bad][at] ^= 1 << r.below(8);
    let window: Vec<(u64, u64)> = shape
        .iter()
        .map(|&d| {
            let from = if r.one_in(2) { 0 } else { r.below(d) };
            (from, 1 + r.below(d - from))
        })
        .collect();
    let extents: Vec<u64> = window.iter().map(|w| w.1).collect();
    let rank = shape.len();
    let moved: Vec<i64> = origins.iter().enumerate().map(|(i, &o)| o - window[i % rank].0 as i64).collect();
    let layout = Layout::random(r, &extents, size);
    let out = DeviceMemory::new(layout.bytes).ok_or("no device memory")?;
    for frames in [want, &hurt] {
        let slices: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
        let decode = |to: &mut Array| array::decode(Frames::Memory(&slices), to, chunk, &moved, 2);
        let mut here = vec![0xEE; layout.bytes];
        let mut wanted = layout.array(here.as_mut_ptr(), size, None);
        let verdicts = decode(&mut wanted).map_err(|e| e.to_string())?;
        transfer(&mut vec![0xEE; layout.bytes], &out, false)?;
        let got = decode(&mut layout.array(out.address(), size, device)).map_err(|e| e.to_string())?;
        for (k, (want, got)) in verdicts.iter().zip(&got).enumerate() {
            if want != got {
                return Err(format!("frame {k}: {got:?}, not {want:?}"));
            }
        }
        let mut back = vec![0; layout.bytes];
        transfer(&mut back, &out, true)?;
        // What a damaged frame leaves may be anything.
        if verdicts.iter().all(Result::is_ok) && here != back {
            return Err(format!("values of chunks {chunk:?} in {extents:?}: {}", first_difference(&here, &back)));
        }
    }
    Ok(())
}
