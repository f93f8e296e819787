// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the tools ask: the state of this process, and what frames of a file say of themselves. See `include/h5z_gpu.h`.

use crate::FILTER_ID;
use crate::c_api::{fence, give, slice, slice_mut};
use crate::error::Result;
use crate::report::Failures;
use h5z_gpu::plugin::folders::{BETWEEN, hdf5_folders};
use h5z_gpu::plugin::{Checked, VERSION, headers, lines, sentence, settings};
use h5z_gpu::words;
use h5z_gpu::{Bound, Class, Codec, CodecId, Engine, GpuVersion, Keep, Mode, Params, Values};
use libc::{c_char, c_int};
use serde_json::{Value, json};

/// `h5z_gpu_frame` of the header.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CFrame {
    status: i32,
    version: u8,
    codec: u8,
    mode: u8,
    element: u8,
    draft: u32,
    raw_len: u64,
    bound: f64,
}

fn status() -> Value {
    let pair = |version: GpuVersion| [version.major, version.minor];
    let settings: Vec<Value> = settings::RULES
        .iter()
        .map(|&(name, _, allowed)| match settings::checked(name) {
            None => json!({"name": name, "allowed": allowed}),
            Some(Ok(value)) => json!({"name": name, "value": value, "allowed": allowed}),
            Some(Err(fault)) => json!({"name": name, "fault": fault, "allowed": allowed}),
        })
        .collect();
    let (gpu, why) = match Engine::gpu() {
        Ok(name) => (Some(name), None),
        Err(why) => (None, Some(why)),
    };
    let from: Vec<Value> = Engine::gpu_from()
        .into_iter()
        .map(|from| json!({"codec": from.codec, "encode": from.encode, "decode": from.decode}))
        .collect();
    let code = Engine::gpu_code().map(|code| {
        json!({"compiler": code.compiler, "cuda": pair(code.cuda), "driver": code.driver, "images": code.images})
    });
    let device = Engine::gpu_device().map(|device| {
        let (capability, driver) = (pair(device.capability), pair(device.driver_cuda));
        json!({"name": device.name, "capability": capability, "image": device.image, "driver_cuda": driver})
    });
    json!({
        "version": VERSION,
        "threads": Engine::global().threads(),
        "gpu": gpu,
        "gpu_not_used": why,
        "gpu_code": code,
        "gpu_device": device,
        "gpu_from_bytes": from,
        "settings": settings,
    })
}

/// What words mean, in plain words and in those of every tool.
fn meaning(user: &[u32]) -> Result<Value> {
    let request = words::request(user)?;
    let id = u32::try_from(FILTER_ID).unwrap_or_default();
    let each: Vec<Value> = lines(request, id)
        .into_iter()
        .map(|(tool, line)| match line {
            Ok(line) => json!({"tool": tool, "line": line}),
            Err(why) => json!({"tool": tool, "why": why}),
        })
        .collect();
    let bound = request.bound;
    let mut meaning = json!({
        "sentence": sentence(request),
        "text": request.to_string(),
        "lines": each,
        "mode": bound.mode().name(),
        "bound": (bound != Bound::Lossless).then_some(bound.value()),
        "codec": request.codec.name(),
        "keep": request.keep.facts().map(|facts| facts.name).collect::<Vec<_>>(),
    });
    if words::is_stored(user) {
        let stored = words::stored(user)?;
        let Params { dtype, extents, fill, lossy_allowed, .. } = stored.params;
        let class = match dtype.class {
            Class::Float => "float",
            Class::Integer => "integer",
            Class::Bytes => "bytes",
        };
        meaning["stored"] = json!({
            "typed": stored.typed,
            "class": class,
            "size": dtype.size,
            "big_endian": dtype.big_endian,
            "signed": dtype.signed,
            "exponent_bits": dtype.exponent_bits,
            "mantissa_bits": dtype.mantissa_bits,
            "chunk": extents.as_slice(),
            "original_rank": stored.original_rank,
            "fill_bits": fill,
            "lossy": lossy_allowed,
            "may_lose": lossy_allowed && bound != Bound::Lossless && dtype.takes_bound(),
        });
    }
    Ok(meaning)
}

/// What a request may say: the modes, and the codecs that take each; what may be kept beside a bound; the names of
/// codecs in frames.
fn choices() -> Value {
    let modes: Vec<Value> = Mode::ALL
        .into_iter()
        .map(|mode| {
            let facts = mode.facts();
            let takes: Vec<&str> = Codec::ALL.into_iter().filter(|c| c.takes(mode)).map(Codec::name).collect();
            // A number that all of them take but lossless, which takes none.
            let of = match Bound::new(mode, 0.5) {
                Ok(bound) if bound.follows_range() => "range",
                Ok(bound) if bound.follows_values() => "value",
                Ok(_) => "data",
                Err(_) => "none",
            };
            json!({
                "number": mode.number(),
                "name": facts.name,
                "keyword": facts.keyword,
                "meaning": facts.meaning,
                "promise": facts.promise,
                "short": facts.short,
                "example": facts.example,
                "below_one": facts.values == Values::Part,
                "of": of,
                "takes_keep": mode.takes_keep(),
                "codecs": takes,
            })
        })
        .collect();
    let codecs: Vec<&str> = Codec::ALL.map(Codec::name).into();
    let keeps: Vec<Value> = Keep::ALL
        .iter()
        .map(
            |facts| json!({"bit": facts.keep.bits(), "name": facts.name, "what": facts.what, "meaning": facts.meaning}),
        )
        .collect();
    json!({"modes": modes, "codecs": codecs, "keeps": keeps, "frame_codecs": CodecId::NAMES})
}

/// # Safety
/// `out` takes `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn h5z_gpu_status(out: *mut c_char, size: usize) -> i64 {
    // SAFETY: this function's promise.
    fence(|| give(&status().to_string(), unsafe { slice_mut(out.cast::<u8>(), size)? }))
}

/// # Safety
/// `out` takes `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn h5z_gpu_hdf5_folders(out: *mut c_char, size: usize) -> i64 {
    // SAFETY: this function's promise.
    fence(|| give(&hdf5_folders().join(BETWEEN), unsafe { slice_mut(out.cast::<u8>(), size)? }))
}

/// # Safety
/// `user` has `count` words, `out` takes `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn h5z_gpu_tools(user: *const u32, count: usize, out: *mut c_char, size: usize) -> i64 {
    fence(|| {
        // SAFETY: this function's promise.
        let (user, out) = unsafe { (slice(user, count)?, slice_mut(out.cast::<u8>(), size)?) };
        give(&meaning(user)?.to_string(), out)
    })
}

/// # Safety
/// `out` takes `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn h5z_gpu_choices(out: *mut c_char, size: usize) -> i64 {
    // SAFETY: this function's promise.
    fence(|| give(&choices().to_string(), unsafe { slice_mut(out.cast::<u8>(), size)? }))
}

/// # Safety
/// The arrays have `n` items.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn h5z_gpu_frames(
    file: c_int,
    n: usize,
    at: *const u64,
    lens: *const u64,
    raw_len: u64,
    whole: c_int,
    threads: c_int,
    frames: *mut CFrame,
) -> i64 {
    fence(|| {
        // SAFETY: this function's promise.
        let (at, lens, frames) = unsafe { (slice(at, n)?, slice(lens, n)?, slice_mut(frames, n)?) };
        fill(file, at, lens, raw_len, whole, threads, frames)
    })
}

fn fill(
    file: c_int,
    at: &[u64],
    lens: &[u64],
    raw_len: u64,
    whole: c_int,
    threads: c_int,
    frames: &mut [CFrame],
) -> Result<i64> {
    let places: Vec<(u64, u64)> = at.iter().copied().zip(lens.iter().copied()).collect();
    let checked = if whole == 0 { Checked::Header } else { Checked::Checksum };
    let found = headers(file, &places, raw_len, checked, usize::try_from(threads).unwrap_or(0));
    let (mut well, mut failures) = (0, Failures::default());
    for (k, (frame, found)) in frames.iter_mut().zip(found).enumerate() {
        *frame = match found {
            Ok(head) => {
                let h = head.header;
                well += 1;
                CFrame {
                    status: 0,
                    version: head.version,
                    codec: h.codec.number(),
                    mode: h.mode.number(),
                    element: h.dtype.size,
                    draft: head.draft,
                    raw_len: h.raw_len,
                    bound: h.used,
                }
            }
            Err(e) => {
                let status = failures.status(k, Err(e));
                CFrame { status, version: 0, codec: 0, mode: 0, element: 0, draft: 0, raw_len: 0, bound: 0.0 }
            }
        };
    }
    Ok(well)
}
