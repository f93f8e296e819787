// SPDX-License-Identifier: MIT OR Apache-2.0
//! The engine called from threads with another floating-point state: nothing changes, neither the bytes nor that state.
#![cfg(target_arch = "x86_64")]

use h5z_gpu::{DecodeJob, Dtype, EncodeJob, Engine, Params};
use std::arch::asm;

fn mxcsr() -> u32 {
    let mut word = 0u32;
    // SAFETY: stores 32 bits to a place for them.
    unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut word) };
    word
}

fn set_mxcsr(word: u32) {
    // SAFETY: no reserved bit is set below; between two calls of this the tests do nothing but call the engine.
    unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const word) };
}

/// Runs `work` under each rounding mode, with and without flushing to zero, with exceptions masked and not.
#[inline(never)]
fn in_every_state(mut work: impl FnMut()) {
    const DEFAULT: u32 = 0x1f80;
    for k in 0..32 {
        let flush = u32::from(k & 4 != 0) << 15 | u32::from(k & 8 != 0) << 6;
        // Where no exception raises a signal, a flag of one that has happened.
        let masks = if k & 16 != 0 { 0 } else { DEFAULT | 0x20 };
        let state = masks | (k & 3) << 13 | flush;
        set_mxcsr(state);
        work();
        let after = mxcsr();
        set_mxcsr(DEFAULT);
        assert_eq!(after, state, "state {state:#x} becomes {after:#x}");
    }
}

/// Waves around 1, around the smallest normal numbers and far below them.
fn wave(i: usize) -> f64 {
    let level = [1.0, 2f64.powi(-126), 2f64.powi(-140)][i / 5000 % 3];
    level * ((i as f64 / 70.0).sin() + 0.01 * (i as f64 * 1.7).cos() + if i % 1000 < 500 { 2.1 } else { -2.1 })
}

#[test]
fn bytes_and_values_do_not_depend_on_the_callers_floating_point_state() {
    let n = 60_000;
    let single: Vec<u8> = (0..n).flat_map(|i| (wave(i) as f32).to_le_bytes()).collect();
    let double: Vec<u8> = (0..n).flat_map(|i| wave(i).to_le_bytes()).collect();
    for request in [
        "mode=abs,bound=1e-3",
        "mode=abs,bound=1e-3,codec=szx",
        "mode=abs,bound=3.3e-39,codec=lorenzo",
        "mode=rel,bound=1e-4,codec=lorenzo",
        "mode=pw_rel,bound=1e-3,codec=szx",
        "mode=pw_rel,bound=1e-3,codec=lorenzo",
        "mode=psnr,bound=60",
        "mode=abs,bound=1e-3,codec=planes",
        "mode=rel,bound=1e-4,codec=planes",
        "mode=abs,bound=2e-30,codec=planes",
        "mode=lossless,codec=ndzip",
    ] {
        for (dtype, raw) in [(Dtype::F32, &single), (Dtype::F64, &double)] {
            let params = Params::new(request.parse().unwrap(), dtype, &[60, n as u64 / 60]).unwrap();
            for engine in [Engine::with_threads(1), Engine::with_threads(4)] {
                let frame = engine.encode(&params, raw);
                let values = engine.decode(&frame, raw.len() as u64).unwrap();
                let (mut again, mut back, mut into) = (vec![Vec::new(); 2], [Vec::new(), Vec::new()], values.clone());
                let mut first = Vec::new();
                in_every_state(|| {
                    first = engine.encode(&params, raw);
                    engine.encode_batch(&[EncodeJob { params: &params, raw }; 2], &mut again);
                    back[0] = engine.decode(&frame, raw.len() as u64).unwrap();
                    engine.decode_into(&frame, &mut into).unwrap();
                    back[1].resize(raw.len(), 0);
                    let done = engine.decode_batch(&mut [DecodeJob { frame: &frame, out: &mut back[1] }]);
                    assert!(done[0].is_ok());
                    assert!(first == frame && again.iter().all(|a| *a == frame), "{request}: other bytes");
                    assert!(into == values && back.iter().all(|b| *b == values), "{request}: other values");
                });
            }
        }
    }
}

#[test]
fn a_panic_puts_the_state_back() {
    in_every_state(|| {
        let run = || h5z_gpu::plugin::float_state::with_default(|| std::panic::resume_unwind(Box::new(())));
        std::panic::catch_unwind(run).expect_err("the panic comes through");
    });
}
