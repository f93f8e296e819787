// SPDX-License-Identifier: MIT OR Apache-2.0
//! The frames of a batch on their way to the host: those that the kernels wrote, and those of chunks that are left to
//! the CPU, which come by themselves. What came before stands in `job.rs`.

use super::choose::Chosen;
use super::job::{DeviceLane, Framed, Gathered, Job, State};
use crate::cuda::{Buffer, Failure, Mark};
use crate::engine::gpu;
use crate::host::{float_state, log};
use codecs::codec;
use codecs::constants::HEADER_FIXED;
use codecs::error::{Error, Result};
use codecs::frame::STORED_HEADER;
use codecs::memory;
use codecs::params::Params;
use codecs::{Cpu, EncodeJob};
use kernels::abi::ARRAY_PACK_STEP;

impl Job {
    /// Waits for the lengths of a lane's frames, and starts the copies that bring them.
    pub(super) fn fetch(&self, lane: &mut DeviceLane) -> Result<()> {
        let (raw_len, most_packed) = (self.raw_len, self.most_packed());
        if lane.state != State::Computing {
            return Ok(());
        }
        lane.state = State::Fetching;
        lane.frames.resize_with(lane.count, || Framed::Left { stored: false });
        if lane.groups.is_empty() {
            return Ok(());
        }
        lane.stream.wait_for(Mark::Computed)?;
        let made = lane.groups.iter().map(|group| group.members.len()).sum::<usize>();
        let (lengths, found) = lane.stream.got(8 * made + lane.units.found_len()).split_at(8 * made);
        lane.units.read(found)?;
        let lengths = lengths.as_chunks().0;
        let lengths: Vec<u64> = lengths.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
        let (mut copies, mut begin) = (Vec::new(), 0);
        for group in &lane.groups {
            let mut end = 0;
            for (n, (&i, &(at, capacity))) in group.members.iter().zip(&group.frames).enumerate() {
                let len = usize::try_from(lengths[group.lengths_at / 8 + n]).unwrap_or(usize::MAX);
                let framed = match len {
                    0 => Framed::Left { stored: false },
                    n if n < HEADER_FIXED || n > capacity => {
                        return Err(Failure::other("a kernel wrote no frame").into());
                    }
                    n if self.kernels.is_wide && n > most_packed => Framed::Left { stored: false },
                    n if lane.units.leave(i, n, raw_len) => Framed::Left { stored: false },
                    n if n >= raw_len + STORED_HEADER => Framed::Left { stored: true },
                    n if n > raw_len => Framed::There(at, n),
                    n => Framed::Locked(begin + end, n),
                };
                lane.frames[i] = framed;
                // The places that the kernel finds: those that are left out take none.
                if len <= most_packed {
                    end += len.next_multiple_of(ARRAY_PACK_STEP as usize);
                }
            }
            copies.push((group.packed_at, end, begin));
            begin += end;
        }
        gpu::count(lane.frames.iter().filter(|f| !matches!(f, Framed::Left { .. })).count(), 0);
        lane.stream.locked(begin)?;
        for (at, len, to) in copies.into_iter().filter(|(_, len, _)| *len > 0) {
            lane.stream.start_fetch(Buffer::Input, at, len, to)?;
        }
        Ok(lane.stream.mark(Mark::Fetched)?)
    }

    /// Waits for a lane's frames, and makes those that the GPU does not.
    pub(super) fn complete(&self, lane: &mut DeviceLane) -> Result<()> {
        if !lane.groups.is_empty() {
            lane.stream.wait_for(Mark::Fetched)?;
        }
        for i in 0..lane.count {
            if let Framed::There(at, len) = lane.frames[i] {
                let mut frame = Vec::new();
                lane.stream.download_vecs(Buffer::Output, vec![(at, len, &mut frame)], self.threads)?;
                lane.frames[i] = Framed::Own(frame);
            }
        }
        let inner = |i: usize| match lane.frames[i] {
            Framed::Locked(at, len) => Some(lane.stream.locked_bytes(at, len)),
            _ => None,
        };
        for (i, frame) in lane.units.frames(&self.params, self.raw_len, self.threads, inner)? {
            lane.frames[i] = Framed::Own(frame);
        }
        let left: Vec<(usize, bool)> = (0..lane.count)
            .filter_map(|i| if let Framed::Left { stored } = lane.frames[i] { Some((i, stored)) } else { None })
            .collect();
        if left.is_empty() {
            return Ok(());
        }
        let step = self.raw_len.next_multiple_of(crate::cuda::ALIGN);
        let input = lane.stream.reserve(Buffer::Input, left.len() * step)?;
        let mut raw = memory::zeros::<u8>(left.len() * self.raw_len)?;
        let slots: Vec<u64> = (0..left.len()).map(|n| input + (n * step) as u64).collect();
        let mut from = 0;
        for following in left.chunk_by(|a, b| a.0 + 1 == b.0) {
            let slots = &slots[from..from + following.len()];
            self.gather(&mut lane.stream, lane.first + following[0].0, slots, Gathered::Copied)?;
            from += following.len();
        }
        let wanted = raw.chunks_mut(self.raw_len).enumerate().map(|(n, out)| (n * step, out)).collect();
        lane.stream.download(Buffer::Input, wanted, self.threads)?;
        let (mut jobs, mut known) = (Vec::new(), Vec::new());
        for (&(i, stored), raw) in left.iter().zip(raw.chunks(self.raw_len)) {
            // Its values are here in their own order, from which the host comes to the same choice.
            let chosen = lane.chosen.get(i).and_then(Option::as_ref).filter(|_| !self.kernels.is_wide);
            let is_ordered = |c: &&Chosen| c.params.extents == self.params.extents;
            let is_lossy = self.params.lossy(self.raw_len);
            let chosen = chosen.filter(|c| is_ordered(c) || !(is_lossy && c.kept.is_some()));
            let params = Params { request: chosen.map_or(self.params.request, |c| c.params.request), ..self.params };
            let kept = chosen.filter(is_ordered).and_then(|c| c.kept);
            if stored {
                let mut frame = Vec::new();
                float_state::with_default(|| codec::store(&params, raw, self.threads, &mut frame))?;
                lane.frames[i] = Framed::Own(frame);
            } else {
                jobs.push((i, params, raw));
                known.push(kept);
            }
        }
        let at: Vec<usize> = jobs.iter().map(|job| job.0).collect();
        let jobs: Vec<_> = jobs.iter().map(|(_, params, raw)| EncodeJob { params, raw }).collect();
        let mut frames = vec![Vec::new(); jobs.len()];
        // Other batches are on their way.
        let cpu = Cpu::new(self.threads.div_ceil(self.batches().min(2)), 1, log::warn);
        float_state::with_default(|| {
            let settled = cpu.settle_others(&jobs, &known);
            cpu.encode_settled(&settled, &jobs, vec![false; jobs.len()], &mut frames);
        });
        for (i, frame) in at.into_iter().zip(frames) {
            if frame.is_empty() {
                return Err(Error::NoMemory { bytes: self.raw_len as u64 });
            }
            lane.frames[i] = Framed::Own(frame);
        }
        Ok(())
    }
}
