// SPDX-License-Identifier: MIT OR Apache-2.0
//! Device-side times and results, for benchmarks.

use super::decode::{DecodeGroup, decoding};
use super::encode::{EncodeGroup, encoding};
use super::{Decoding, Encoding};
use crate::engine::{DecodeJob, EncodeJob};
use crate::gpu::{self, Buffer, Failure, Lane, Timer};

/// Launches before those that are timed.
const WARM_UP: usize = 3;

/// Loads chunks as one launch. `None`: not on this device.
fn with_chunks<R>(
    jobs: &[EncodeJob<'_>],
    threads: usize,
    work: impl FnOnce(&mut Lane, EncodeGroup) -> Result<R, Failure>,
) -> Option<R> {
    let device = gpu::device()?;
    let plans: Vec<Encoding> = jobs.iter().map(|j| encoding(j, &mut None, threads)).collect::<Option<_>>()?;
    gpu::attempt("timing", || {
        let _current = device.enter()?;
        let mut lane = device.lane()?.ok_or_else(|| Failure::other("all lanes are taken"))?;
        let chunks: Vec<(&Encoding, &[u8])> = plans.iter().zip(jobs.iter().map(|j| j.raw)).collect();
        let group = EncodeGroup::load(device, &mut lane, &chunks, threads)?;
        work(&mut lane, group)
    })
}

/// Frames, and milliseconds of each of `runs` launches over data already on the device.
pub(crate) fn encode(jobs: &[EncodeJob<'_>], runs: usize, threads: usize) -> Option<(Vec<Vec<u8>>, Vec<f32>)> {
    with_chunks(jobs, threads, |lane, group| {
        let times = times(lane, runs, |lane| group.start(lane))?;
        let lengths = group.lengths(lane)?;
        let mut frames: Vec<Vec<u8>> = lengths.iter().map(|&n| Vec::with_capacity(n as usize)).collect();
        let wanted = frames.iter_mut().enumerate();
        let wanted = wanted.map(|(k, f)| (group.frames[k], &mut f.spare_capacity_mut()[..lengths[k] as usize]));
        lane.download(Buffer::Output, wanted.collect(), threads)?;
        frames.iter_mut().zip(&lengths).for_each(|(f, &n)| gpu::filled(f, n as usize));
        Ok((frames, times))
    })
}

/// Milliseconds of each kernel of encoding, in each of `runs` rounds over data already on the device.
pub(crate) fn encode_steps(
    jobs: &[EncodeJob<'_>],
    runs: usize,
    threads: usize,
) -> Option<Vec<(&'static str, Vec<f32>)>> {
    with_chunks(jobs, threads, |lane, group| {
        let timer = Timer::new(group.steps.len() + 1)?;
        let mut steps: Vec<(&str, Vec<f32>)> = group.steps.iter().map(|s| (s.0, Vec::new())).collect();
        for run in 0..runs + WARM_UP {
            group.clear(lane)?;
            timer.mark(0, lane)?;
            for (k, &(_, kernel, ctas)) in group.steps.iter().enumerate() {
                lane.launch(kernel, ctas, &group.args)?;
                timer.mark(k + 1, lane)?;
            }
            lane.wait()?;
            let times = timer.read()?;
            if run >= WARM_UP {
                steps.iter_mut().zip(times).for_each(|(step, ms)| step.1.push(ms));
            }
        }
        Ok(steps)
    })
}

/// Whether each frame was right, and milliseconds of each of `runs` launches over frames already on the device.
pub(crate) fn decode(jobs: &mut [DecodeJob<'_>], runs: usize, threads: usize) -> Option<(Vec<bool>, Vec<f32>)> {
    decode_step(jobs, runs, threads, "decode")
}

/// The same for one of the decoders of residuals of `lorenzo`: `coarse`, `sync` or `gap`. Jobs get residuals, four bytes
/// each, tile by tile; the tables' making is not timed.
pub(crate) fn residuals(
    jobs: &mut [DecodeJob<'_>],
    runs: usize,
    threads: usize,
    decoder: &str,
) -> Option<(Vec<bool>, Vec<f32>)> {
    decode_step(jobs, runs, threads, &format!("decode_{decoder}"))
}

fn decode_step(jobs: &mut [DecodeJob<'_>], runs: usize, threads: usize, step: &str) -> Option<(Vec<bool>, Vec<f32>)> {
    let device = gpu::device()?;
    let plans: Vec<Decoding> = jobs.iter().map(decoding).collect::<Option<_>>()?;
    gpu::attempt("timing", || {
        let _current = device.enter()?;
        let mut lane = device.lane()?.ok_or_else(|| Failure::other("all lanes are taken"))?;
        let frames: Vec<_> = plans.iter().zip(jobs.iter().map(|j| (j.frame, j.out.len()))).collect();
        let frames: Vec<(&Decoding, &[u8], usize)> = frames.into_iter().map(|(p, (f, n))| (p, f, n)).collect();
        let group = DecodeGroup::load(device, &mut lane, &frames, threads, step)?;
        let times = if step == "decode" {
            times(&mut lane, runs, |lane| group.start(lane))?
        } else {
            group.start(&mut lane)?;
            times(&mut lane, runs, |lane| group.again(lane))?
        };
        let right: Vec<bool> = group.verdicts(&mut lane)?.into_iter().map(|v| v == 1).collect();
        // Residuals take four bytes, values of other frames are not there.
        let part = |k: usize| if step != "decode" && plans[k].kernels.wide { 2 } else { 1 };
        let wanted = jobs.iter_mut().enumerate().filter(|(k, _)| right[*k]);
        let wanted = wanted.map(|(k, j)| {
            let len = j.out.len() / part(k);
            (group.outputs[k], gpu::as_uninit(&mut j.out[..len]))
        });
        lane.download(Buffer::Output, wanted.collect(), threads)?;
        Ok((right, times))
    })
}

fn times(
    lane: &mut Lane,
    runs: usize,
    mut start: impl FnMut(&mut Lane) -> Result<(), Failure>,
) -> Result<Vec<f32>, Failure> {
    let timer = Timer::new(2)?;
    let mut times = Vec::with_capacity(runs);
    for run in 0..runs + WARM_UP {
        timer.mark(0, lane)?;
        start(lane)?;
        timer.mark(1, lane)?;
        lane.wait()?;
        if run >= WARM_UP {
            times.push(timer.read()?[0]);
        }
    }
    Ok(times)
}
