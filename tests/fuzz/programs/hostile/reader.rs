// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decodes a frame by the crate or by the C interface, and holds both to what they promise.

use crate::generate::Random;
use crate::targets::counting::most_held;
use h5z_gpu::{Engine, frame};
use libc::{c_char, c_void};
use std::ffi::{CStr, CString};

/// Raw bytes of the longest chunk that is decoded.
const LIMIT: u64 = 16 << 10;
/// What a decoder may hold besides the raw bytes: a tile, tables of a few tiles, messages.
const CONSTANT: u64 = 4 << 20;

/// What became of a frame.
pub struct Outcome {
    /// Why it was refused: the part of the frame that the sentence names.
    pub refusal: Option<String>,
    /// Bytes held at one time beside the raw ones.
    pub held: u64,
}

type RawLen = unsafe extern "C" fn(*const c_void, usize) -> i64;
type Decode = unsafe extern "C" fn(*const c_void, usize, *mut c_void, usize) -> i64;
type LastError = unsafe extern "C" fn() -> *const c_char;

pub struct Reader {
    engine: Engine,
    raw_len: RawLen,
    decode: Decode,
    last_error: LastError,
}

impl Reader {
    /// With the C interface of a library, or of this program.
    pub fn new(library: Option<&str>) -> Reader {
        use crate::targets::c;
        let engine = Engine::with_threads(1);
        let (raw_len, decode) = (c::h5z_gpu_raw_len as RawLen, c::h5z_gpu_decode as Decode);
        let Some(path) = library else { return Reader { engine, raw_len, decode, last_error: c::h5z_gpu_last_error } };
        let path = CString::new(path).expect("a path");
        // SAFETY: opens a library of this project, which stays open; its functions have the types of its header.
        unsafe {
            let library = libc::dlopen(path.as_ptr(), libc::RTLD_NOW);
            assert!(!library.is_null(), "{:?}", CStr::from_ptr(libc::dlerror()));
            let find = |name: &CStr| {
                let found = libc::dlsym(library, name.as_ptr());
                assert!(!found.is_null(), "{name:?}");
                found
            };
            Reader {
                engine,
                raw_len: std::mem::transmute::<*mut c_void, RawLen>(find(c"h5z_gpu_raw_len")),
                decode: std::mem::transmute::<*mut c_void, Decode>(find(c"h5z_gpu_decode")),
                last_error: std::mem::transmute::<*mut c_void, LastError>(find(c"h5z_gpu_last_error")),
            }
        }
    }

    /// Decodes a frame. One frame in eight that can be decoded is decoded a second time, over other bytes: both answers
    /// must be the same.
    pub fn read(&self, frame: &[u8], random: &mut Random) -> Outcome {
        let mut outcome = Outcome { refusal: None, held: 0 };
        let (by_crate, twice) = (random.below(2) == 0, random.below(8) == 0);
        let raw_len = if by_crate { self.crate_len(frame) } else { self.c_len(frame) };
        let done = raw_len.and_then(|n| {
            if n > LIMIT {
                return self.beyond(frame, &mut outcome.held);
            }
            let decode = |before: u8| -> Result<(Vec<u8>, u64), String> {
                let mut out = vec![before; n as usize];
                let mut done = Ok(());
                let held = most_held(|| {
                    done = if by_crate { self.crate_decode(frame, &mut out) } else { self.c_decode(frame, &mut out) };
                }) as u64;
                assert!(held <= n + CONSTANT, "{held} bytes held for {n}");
                done.map(|()| (out, held))
            };
            let (first, held) = decode(0xA5)?;
            outcome.held = held.saturating_sub(n);
            assert!(!twice || decode(0x5A)?.0 == first, "{n} bytes: some are what was there before");
            Ok(())
        });
        outcome.refusal = done.err().map(|text| named(&text));
        outcome
    }

    fn crate_len(&self, frame: &[u8]) -> Result<u64, String> {
        frame::raw_len(frame).map_err(|e| e.to_string())
    }

    fn crate_decode(&self, frame: &[u8], out: &mut [u8]) -> Result<(), String> {
        self.engine.decode_into(frame, out).map_err(|e| e.to_string())
    }

    /// A chunk that is longer than anybody asked for takes no memory.
    fn beyond(&self, frame: &[u8], most: &mut u64) -> Result<(), String> {
        let mut done = Ok(vec![]);
        let held = most_held(|| done = self.engine.decode(frame, LIMIT)) as u64;
        assert!(held < 4096, "{held} bytes held to refuse a long chunk");
        *most = held;
        done.map(|_| unreachable!("a chunk beyond the limit")).map_err(|e| e.to_string())
    }

    fn c_len(&self, frame: &[u8]) -> Result<u64, String> {
        // SAFETY: the frame's bytes.
        let len = unsafe { (self.raw_len)(frame.as_ptr().cast(), frame.len()) };
        u64::try_from(len).map_err(|_| self.sentence(len))
    }

    fn c_decode(&self, frame: &[u8], out: &mut [u8]) -> Result<(), String> {
        // SAFETY: the frame's bytes, and the buffer's.
        let len =
            unsafe { (self.decode)(frame.as_ptr().cast(), frame.len(), out.as_mut_ptr().cast::<c_void>(), out.len()) };
        if len == out.len() as i64 { Ok(()) } else { Err(self.sentence(len)) }
    }

    /// The sentence of the failure that the C interface answered, which must be that the frame is bad.
    fn sentence(&self, answer: i64) -> String {
        // SAFETY: a NUL-terminated text that stays until the next call.
        let text = unsafe { CStr::from_ptr((self.last_error)()) }.to_str().expect("UTF-8").to_owned();
        assert!((-2..0).contains(&answer) && !text.contains("a fault of its own"), "{answer}: {text}");
        text
    }
}

/// The part of a frame that a sentence names, up to its first number.
fn named(text: &str) -> String {
    assert!(text.len() > 40, "{text}");
    let part = text.trim_start_matches("h5z-gpu: ").trim_start_matches("damaged chunk: ");
    let end = part.find(": ").or(part.find(" has ")).unwrap_or(part.len().min(24));
    let part = part.get(..end).unwrap_or("?");
    format!("refused for: {}", part.split(|c: char| c.is_ascii_digit()).next().unwrap_or(part).trim_end())
}
