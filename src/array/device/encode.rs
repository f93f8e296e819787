// SPDX-License-Identifier: MIT OR Apache-2.0
//! The frames of a device array's chunks, in order.
//!
//! ```text
//! lane k mod n   edge chunks filled, boxes gathered, encoded, lengths on their way to the host, frames packed
//!                (where the CPU has a part in it, all up to the frames, by a thread a lane)
//! next()         starts a batch on the lane whose frames were lent before; waits for the lengths of the batch that is
//!                due and starts the one copy that brings its frames; waits for that; starts the copy of the batch
//!                behind it, if its lengths are there: it runs while the caller writes the frames of this one
//! ```
//!
//! What a batch goes through stands in `job.rs`. Without memory of the device for several batches there is one at a
//! time, and without memory for one the host encodes the rest.

use super::base::{batch, failed};
use super::job::{DeviceLane, Framed, Given, How, Job, LANES, SHARED_LANES, State};
use super::units::Units;
use crate::array::boxes::Array;
use crate::cuda::{self, Mark};
use crate::engine::gpu::encode::plan_of;
use crate::host::log;
use crate::host::threads;
use codecs::codec::kept::Kept;
use codecs::codec::{self, half, is_settled, order};
use codecs::error::{Error, Result};
use codecs::params::{Class, Codec, Params};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::thread::JoinHandle;

pub(crate) struct DeviceEncoding {
    job: Arc<Job>,
    lanes: Vec<Slot>,
    /// Lanes that there may be: fewer where the device has no memory for more.
    most: usize,
    started: usize,
    given: usize,
    /// Frames that the host made, once the device had no memory left for one batch.
    own: Option<Vec<Vec<u8>>>,
}

/// A lane, or the thread that has it while the CPU does its part.
enum Slot {
    Here(Box<DeviceLane>),
    Away(JoinHandle<(Box<DeviceLane>, Result<()>)>),
    /// Its thread panicked.
    Lost,
}

impl DeviceEncoding {
    /// See `array::Encoding::new`, whose arguments were checked.
    pub(crate) fn new(
        array: Array,
        params: Params,
        chunk: Vec<u64>,
        raw_len: usize,
        origins: Vec<i64>,
        beyond: Vec<u8>,
        threads: usize,
    ) -> Result<DeviceEncoding> {
        let params = Params { request: params.request.without_fast(), ..params };
        let (device, user) = super::base::device_and_stream(&array)?;
        let chunks = origins.len() / chunk.len();
        let threads = if threads > 0 { threads } else { threads::cores() };
        // Without loss the CPU may be the one that keeps a chunk best: a plan stands for what the GPU can do.
        let is_exact = codec::is_kept_open(&params, raw_len);
        let wide = half::for_kernels(&params, raw_len);
        let planned = match is_exact && params.request.codec != Codec::Small {
            true if params.dtype.is_short() => Kept::Lorenzo.settle(params),
            true => Kept::Planes.settle(params),
            false => wide.unwrap_or(params),
        };
        let is_open = is_exact || !is_settled(&params, raw_len) || order::is_open(&params, raw_len) || wide.is_some();
        let kernels_len = if wide.is_some() { raw_len / size_of::<u16>() * size_of::<f32>() } else { raw_len };
        let how = match plan_of(&planned, kernels_len) {
            Some(_) if is_open => How::Open,
            Some(plan) => How::Planned(Box::new(plan)),
            None => How::ByCpu,
        };
        let most = if let How::Planned(_) = how { LANES } else { SHARED_LANES };
        let is_integer = params.dtype.class == Class::Integer;
        let coded = if is_integer { raw_len / array.element() * size_of::<f64>() } else { kernels_len };
        let batch = batch(chunks, coded, most);
        let unseen = AtomicUsize::new(0);
        let kernels = Given { params: wide.unwrap_or(params), raw_len: kernels_len, is_wide: wide.is_some() };
        let job =
            Job { device, user, array, params, kernels, chunk, raw_len, origins, beyond, threads, how, batch, unseen };
        Ok(DeviceEncoding { job: Arc::new(job), lanes: Vec::new(), most, started: 0, given: 0, own: None })
    }

    /// The next frames; none when all were given.
    pub(crate) fn next(&mut self) -> Result<Vec<&[u8]>> {
        if self.given == self.job.batches() {
            return Ok(Vec::new());
        }
        while self.own.is_none() {
            match self.advance() {
                Ok(due) => return self.lent(due),
                Err(Error::NoDeviceMemory { what }) => self.need_less(&what)?,
                Err(e) => return Err(e),
            }
        }
        let first = self.given * self.job.batch;
        let frames = self.job.by_host(first, self.job.batch.min(self.job.chunks() - first))?;
        self.given += 1;
        Ok(self.own.insert(frames).iter().map(Vec::as_slice).collect())
    }

    /// After a failure for lack of memory: one batch at a time, with all memory that was kept given back, or else the
    /// host.
    fn need_less(&mut self, what: &str) -> Result<()> {
        self.end_lanes();
        self.started = self.given;
        self.job.device.release()?;
        if self.most > 1 {
            log::info(&format!("one batch at a time: {what}"));
            self.most = 1;
        } else {
            log::info(&format!("chunks are encoded by the host: {what}"));
            self.own = Some(Vec::new());
        }
        Ok(())
    }

    /// Waits for all that is on its way, and forgets it.
    fn end_lanes(&mut self) {
        for slot in self.lanes.drain(..) {
            if let Slot::Away(thread) = slot {
                _ = thread.join();
            }
        }
    }

    /// Brings the next batch's frames to the host; the lane that has them.
    fn advance(&mut self) -> Result<usize> {
        let job = Arc::clone(&self.job);
        let _current = job.device.enter()?;
        self.start_all()?;
        let due = self.given % self.most;
        let lane = self.lane(due)?;
        job.fetch(lane)?;
        job.complete(lane)?;
        lane.state = State::Idle;
        let behind = (self.given + 1) % self.most;
        if self.given + 1 < self.started && behind != due {
            // A thread that still has it, or a failure, will be met when it is due.
            if let Slot::Here(lane) = &mut self.lanes[behind]
                && lane.state == State::Computing
                && lane.stream.has_reached(Mark::Computed).unwrap_or(false)
            {
                job.fetch(lane)?;
            }
        }
        self.given += 1;
        Ok(due)
    }

    /// The frames that a lane has, in host memory.
    fn lent(&mut self, due: usize) -> Result<Vec<&[u8]>> {
        let lane = &*self.lane(due)?;
        let frame = |framed| match framed {
            &Framed::Locked(at, len) => lane.stream.locked_bytes(at, len),
            Framed::Own(frame) => &frame[..],
            Framed::There(..) | Framed::Left { .. } => unreachable!("completed"),
        };
        Ok(lane.frames.iter().map(frame).collect())
    }

    /// DeviceLane `k`, waited for where a thread has it.
    fn lane(&mut self, k: usize) -> Result<&mut DeviceLane> {
        if let Slot::Away(_) = self.lanes[k]
            && let Slot::Away(thread) = std::mem::replace(&mut self.lanes[k], Slot::Lost)
            && let Ok((lane, computed)) = thread.join()
        {
            self.lanes[k] = Slot::Here(lane);
            computed?;
        }
        match &mut self.lanes[k] {
            Slot::Here(lane) => Ok(lane),
            _ => Err(failed("a thread of it ended without a frame. Please report it.")),
        }
    }

    /// Starts batches on all lanes that have none.
    fn start_all(&mut self) -> Result<()> {
        while self.started < self.job.batches() && self.started - self.given < self.most {
            let k = self.started % self.most;
            match self.start(k) {
                Ok(()) => self.started += 1,
                // The device has no memory for one more: those that run do.
                Err(e) if k > 0 && k == self.lanes.len() => {
                    log::info(&format!("{k} batches at a time: {e}"));
                    self.most = k;
                }
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// Starts the next batch on lane `k`, which is made where there is none.
    fn start(&mut self, k: usize) -> Result<()> {
        let job = &self.job;
        let mut lane = match k == self.lanes.len() {
            true => Box::new(job.lane()?),
            false => match std::mem::replace(&mut self.lanes[k], Slot::Lost) {
                Slot::Here(lane) => lane,
                _ => return Err(failed("a batch was lost. Please report it.")),
            },
        };
        lane.first = self.started * job.batch;
        lane.count = job.batch.min(job.chunks() - lane.first);
        lane.state = State::Computing;
        lane.groups.clear();
        lane.frames.clear();
        lane.chosen.clear();
        lane.units = Units::default();
        // The CPU's part takes time: that of several batches, and of whoever writes frames, at the same time.
        let slot = if let How::Planned(_) = job.how {
            job.compute(&mut lane)?;
            Slot::Here(lane)
        } else {
            let job = Arc::clone(job);
            let work = move || {
                let all = |lane: &mut DeviceLane| {
                    let _current = job.device.enter()?;
                    job.compute(lane)?;
                    job.fetch(lane)?;
                    job.complete(lane)
                };
                let done = all(&mut lane);
                (lane, done)
            };
            let thread = std::thread::Builder::new().name("h5z-gpu encode".into()).spawn(work);
            Slot::Away(thread.map_err(|e| failed(format!("no thread could be started: {e}")))?)
        };
        match self.lanes.get_mut(k) {
            Some(at) => *at = slot,
            None => self.lanes.push(slot),
        }
        Ok(())
    }
}

impl Drop for DeviceEncoding {
    fn drop(&mut self) {
        // The array may go when this has gone. A forked child has none of the threads.
        if cuda::is_mine() {
            self.end_lanes();
        }
    }
}

impl std::fmt::Debug for DeviceEncoding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DeviceEncoding")
            .field("array", &self.job.array)
            .field("chunk", &self.job.chunk)
            .finish_non_exhaustive()
    }
}
