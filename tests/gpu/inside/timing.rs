// SPDX-License-Identifier: MIT OR Apache-2.0
//! Times and results of kernels over data that is on the device already.

use crate::cuda::{self, Buffer, Device, Failure, Stream, Timer};
use crate::engine::gpu::decode::{self, DecodeGroup};
use crate::engine::gpu::encode::{self, EncodeGroup};
use crate::engine::gpu::group::Step;
use crate::engine::gpu::plan::{Launch, Numbers, per_tile};
use codecs::{DecodeJob, EncodeJob};

/// Launches before those that are timed.
const WARM_UP: usize = 3;

/// Loads chunks as one group. `None`: not on this device.
fn with_chunks<R>(
    jobs: &[EncodeJob<'_>],
    threads: usize,
    work: impl FnOnce(&mut Stream, EncodeGroup) -> Result<R, Failure>,
) -> Option<R> {
    let device = cuda::device()?;
    let plans: Vec<encode::EncodePlan> = jobs.iter().map(|j| encode::plan(j)).collect::<Option<_>>()?;
    cuda::attempt("timing", || {
        let _current = device.enter()?;
        let mut stream = device.stream()?.ok_or_else(|| Failure::other("all streams are taken"))?;
        let chunks: Vec<(&encode::EncodePlan, &[u8])> = plans.iter().zip(jobs.iter().map(|j| j.raw)).collect();
        let group = EncodeGroup::load(device, &mut stream, &chunks, threads)?;
        work(&mut stream, group)
    })
}

/// Frames, and milliseconds of each of `runs` rounds of encoding.
pub fn encode_times(jobs: &[EncodeJob<'_>], runs: usize, threads: usize) -> Option<(Vec<Vec<u8>>, Vec<f32>)> {
    with_chunks(jobs, threads, |stream, group| {
        let times = times(stream, runs, |stream| group.start(stream))?;
        let lengths = group.lengths(stream)?;
        let mut frames = vec![Vec::new(); lengths.len()];
        let wanted = frames.iter_mut().enumerate().map(|(k, f)| (group.frames[k], lengths[k] as usize, f));
        stream.download_vecs(Buffer::Output, wanted.collect(), threads)?;
        Ok((frames, times))
    })
}

/// The kernels that encode these chunks, and milliseconds of each of them in each of `runs` rounds.
pub fn encode_steps(jobs: &[EncodeJob<'_>], runs: usize, threads: usize) -> Option<Vec<(&'static str, Vec<f32>)>> {
    let plan = encode::plan(jobs.first()?)?;
    let names: Vec<&str> = plan.needs.launches(plan.needs.gpu.encode).map(|l| l.kernel).collect();
    with_chunks(jobs, threads, |stream, group| {
        let timer = Timer::new(group.steps.len() + 1)?;
        let mut steps: Vec<(&str, Vec<f32>)> = names.iter().map(|&name| (name, Vec::new())).collect();
        for run in 0..runs + WARM_UP {
            group.clear(stream)?;
            timer.mark(0, stream)?;
            for (k, step) in group.steps.iter().enumerate() {
                group.launch(stream, *step)?;
                timer.mark(k + 1, stream)?;
            }
            stream.wait()?;
            let times = timer.read()?;
            if run >= WARM_UP {
                steps.iter_mut().zip(times).for_each(|(step, ms)| step.1.push(ms));
            }
        }
        Ok(steps)
    })
}

/// Loads frames as one group with the launches that `steps` gives. `None`: not on this device.
fn with_frames<R>(
    jobs: &mut [DecodeJob<'_>],
    threads: usize,
    steps: impl FnOnce(&Device, &decode::DecodePlan, u32, u32) -> Result<Vec<Step>, Failure>,
    work: impl FnOnce(&mut Stream, &DecodeGroup, &mut [DecodeJob<'_>], &[decode::DecodePlan]) -> Result<R, Failure>,
) -> Option<R> {
    let device = cuda::device()?;
    let plans: Vec<decode::DecodePlan> = jobs.iter().map(decode::plan).collect::<Option<_>>()?;
    cuda::attempt("timing", || {
        let _current = device.enter()?;
        let mut stream = device.stream()?.ok_or_else(|| Failure::other("all streams are taken"))?;
        let frames: Vec<_> = plans.iter().zip(jobs.iter()).map(|(p, j)| (p, j.frame, j.out.len())).collect();
        let group = DecodeGroup::load(&mut stream, &frames, threads, |tiles, n| steps(device, &plans[0], tiles, n))?;
        work(&mut stream, &group, jobs, &plans)
    })
}

/// Whether each frame was right, and milliseconds of each of `runs` rounds of decoding.
pub fn decode_times(jobs: &mut [DecodeJob<'_>], runs: usize, threads: usize) -> Option<(Vec<bool>, Vec<f32>)> {
    let all = |device: &Device, plan: &decode::DecodePlan, tiles, frames| {
        plan.needs.kernels(device, plan.needs.gpu.decode, tiles, frames)
    };
    with_frames(jobs, threads, all, |stream, group, jobs, _| {
        let times = times(stream, runs, |stream| group.start(stream))?;
        let right = group.verdicts(stream)?;
        let wanted = jobs.iter_mut().enumerate().filter(|(k, _)| right[*k]);
        let wanted = wanted.map(|(k, j)| (group.outputs[k], &mut *j.out)).collect();
        stream.download(Buffer::Output, wanted, threads)?;
        Ok((right, times))
    })
}

/// Residuals of frames of `lorenzo`, four bytes each, tile by tile, in the jobs' first bytes, by the decoder `coarse`
/// or `sync`; and milliseconds of each of `runs` launches of it. The tables' making is not timed.
pub fn residual_times(
    jobs: &mut [DecodeJob<'_>],
    runs: usize,
    threads: usize,
    decoder: &str,
) -> Option<(Vec<bool>, Vec<f32>)> {
    let kernel: &'static str = match decoder {
        "coarse" => "lorenzo_residuals_coarse",
        _ => "lorenzo_residuals_sync",
    };
    let tables_and_residuals = |device: &Device, plan: &decode::DecodePlan, tiles, frames| {
        let mut steps = plan.needs.kernels(device, &plan.needs.gpu.decode[..1], tiles, frames)?;
        let last = &mut plan.needs.kernels(device, &[Launch::new(kernel, per_tile)], tiles, frames)?[0];
        if decoder == "coarse" {
            // A thread a tile.
            last.ctas = tiles.div_ceil(last.kernel.threads());
        }
        steps.push(*last);
        Ok(steps)
    };
    with_frames(jobs, threads, tables_and_residuals, |stream, group, jobs, plans| {
        group.start(stream)?;
        let times = times(stream, runs, |stream| group.start_from(1, stream))?;
        let right = group.verdicts(stream)?;
        let wanted = jobs.iter_mut().enumerate().filter(|(k, _)| right[*k]);
        let wanted = wanted.map(|(k, j)| {
            let len = if plans[k].needs.numbers == Numbers::F64 { j.out.len() / 2 } else { j.out.len() };
            (group.outputs[k], &mut j.out[..len])
        });
        stream.download(Buffer::Output, wanted.collect(), threads)?;
        Ok((right, times))
    })
}

fn times(
    stream: &mut Stream,
    runs: usize,
    mut start: impl FnMut(&mut Stream) -> Result<(), Failure>,
) -> Result<Vec<f32>, Failure> {
    let timer = Timer::new(2)?;
    let mut times = Vec::with_capacity(runs);
    for run in 0..runs + WARM_UP {
        timer.mark(0, stream)?;
        start(stream)?;
        timer.mark(1, stream)?;
        stream.wait()?;
        if run >= WARM_UP {
            times.push(timer.read()?[0]);
        }
    }
    Ok(times)
}
