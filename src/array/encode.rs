// SPDX-License-Identifier: MIT OR Apache-2.0
//! The frames of the chunks of an array in host memory, in order, made ahead of whoever takes them.

use super::boxes::Array;
use super::sharing::{Coder, Sharing};
use codecs::EncodeJob;
use codecs::error::{Error, Result};
use codecs::params::Params;
use codecs::{memory, parallel};
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// Batches that may be ready before they are asked for, for each lane.
const READY_BATCHES: usize = 2;

/// Frames of an array in host memory, which threads of its own make until it is dropped.
#[derive(Debug)]
pub(super) struct HostEncoding {
    shared: Arc<Shared>,
    lanes: Vec<JoinHandle<()>>,
    /// What the last call of [`HostEncoding::next`] lent.
    lent: Vec<Vec<u8>>,
    /// The process that has the threads.
    process: u32,
}

struct Shared {
    array: Array,
    params: Params,
    chunk: Vec<u64>,
    /// Bytes of a chunk.
    raw_len: usize,
    /// Each chunk's first value in the array, `rank` numbers a chunk.
    origins: Vec<i64>,
    /// What stands in a chunk beyond the array: one element.
    beyond: Vec<u8>,
    sharing: Sharing,
    state: Mutex<State>,
    changed: Condvar,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("array", &self.array).field("chunk", &self.chunk).finish_non_exhaustive()
    }
}

#[derive(Default)]
struct State {
    /// The next batch to be made, and the next to be given.
    make: usize,
    give: usize,
    ready: BTreeMap<usize, Vec<Vec<u8>>>,
    /// Buffers of frames that were given: first use of memory costs as much as a fast codec.
    spare: Vec<Vec<u8>>,
    /// Nobody makes any more: the last frame was given, the work was ended, or it failed.
    over: bool,
    failure: Option<Error>,
}

impl HostEncoding {
    /// See [`super::HostEncoding::new`], whose arguments were checked.
    pub(super) fn new(
        array: Array,
        params: Params,
        chunk: Vec<u64>,
        raw_len: usize,
        origins: Vec<i64>,
        beyond: Vec<u8>,
        sharing: Sharing,
    ) -> HostEncoding {
        let lanes = sharing.lanes;
        let (state, changed) = (Mutex::default(), Condvar::new());
        let shared = Arc::new(Shared { array, params, chunk, raw_len, origins, beyond, sharing, state, changed });
        let start = |_| {
            let shared = Arc::clone(&shared);
            std::thread::Builder::new().name("h5z-gpu encode".into()).spawn(move || shared.work()).ok()
        };
        // A host at its limit of threads still gets its frames: `next` makes them where there is none.
        let lanes = (0..lanes).map_while(start).collect();
        HostEncoding { shared, lanes, lent: Vec::new(), process: std::process::id() }
    }

    /// See [`super::HostEncoding::next`].
    pub(super) fn next(&mut self) -> Result<&[Vec<u8>]> {
        let shared = &*self.shared;
        let mut state = shared.lock();
        state.spare.append(&mut self.lent);
        if state.give == shared.batches() {
            return Ok(&[]);
        }
        if self.lanes.is_empty() {
            drop(state);
            shared.step(&mut Vec::new());
            state = shared.lock();
        }
        let waits = |s: &mut State| s.failure.is_none() && !s.over && !s.ready.contains_key(&s.give);
        let mut state = shared.changed.wait_while(state, waits).unwrap_or_else(PoisonError::into_inner);
        if let Some(failure) = state.failure.clone() {
            return Err(failure);
        }
        while let Some(mut frames) = {
            let give = state.give;
            state.ready.remove(&give)
        } {
            state.give += 1;
            self.lent.append(&mut frames);
        }
        drop(state);
        shared.changed.notify_all();
        match self.lent.is_empty() {
            true => Err(Error::params("encoding", "a thread of it ended without a frame. Please report it.")),
            false => Ok(&self.lent),
        }
    }
}

impl Drop for HostEncoding {
    fn drop(&mut self) {
        // A forked child has no threads, and whoever held the lock when it was forked holds it there for ever.
        if self.process == std::process::id() {
            self.shared.lock().over = true;
            self.shared.changed.notify_all();
            for lane in self.lanes.drain(..) {
                let _ = lane.join();
            }
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn chunks(&self) -> usize {
        self.origins.len() / self.chunk.len().max(1)
    }

    fn batches(&self) -> usize {
        self.chunks().div_ceil(self.sharing.batch)
    }

    fn work(&self) {
        struct Watch<'a>(&'a Shared);
        impl Drop for Watch<'_> {
            fn drop(&mut self) {
                if std::thread::panicking() {
                    self.0.lock().over = true;
                    self.0.changed.notify_all();
                }
            }
        }
        let _watch = Watch(self);
        let mut gathered = Vec::new();
        while self.step(&mut gathered) {}
    }

    /// Makes one batch, with memory for its dense chunks that is used again. False: there is none to make any more.
    fn step(&self, gathered: &mut Vec<u8>) -> bool {
        let window = READY_BATCHES * self.sharing.lanes + 1;
        let waits = |s: &mut State| !s.over && s.make < self.batches() && s.make - s.give >= window;
        let mut state = self.changed.wait_while(self.lock(), waits).unwrap_or_else(PoisonError::into_inner);
        if state.over || state.make >= self.batches() {
            return false;
        }
        let batch = state.make;
        state.make += 1;
        let first = batch * self.sharing.batch;
        let count = self.sharing.batch.min(self.chunks() - first);
        let kept = state.spare.len().saturating_sub(count);
        let mut frames = state.spare.split_off(kept);
        drop(state);
        frames.resize_with(count, Vec::new);
        let made = self.encode(first, &mut frames, gathered);
        let mut state = self.lock();
        match made {
            Ok(()) => drop(state.ready.insert(batch, frames)),
            Err(failure) => {
                state.failure.get_or_insert(failure);
                state.over = true;
            }
        }
        drop(state);
        self.changed.notify_all();
        true
    }

    /// Encodes the chunks from number `first` on, one for each of `frames`.
    fn encode(&self, first: usize, frames: &mut [Vec<u8>], gathered: &mut Vec<u8>) -> Result<()> {
        let (engine, rank) = (self.sharing.engine.engine(first / self.sharing.batch), self.chunk.len());
        let origin = |k: usize| &self.origins[(first + k) * rank..][..rank];
        let overlaps: Vec<_> = (0..frames.len()).map(|k| self.array.overlap(origin(k), &self.chunk)).collect();
        let dense: Vec<_> =
            overlaps.iter().map(|o| o.as_ref().and_then(|o| self.array.dense(o, &self.chunk))).collect();
        let apart = dense.iter().filter(|d| d.is_none()).count() * self.raw_len;
        if gathered.len() < apart {
            *gathered = memory::zeros(apart)?;
        }
        let places = gathered.chunks_mut(self.raw_len);
        let slots: Vec<_> =
            overlaps.iter().zip(&dense).filter(|(_, d)| d.is_none()).map(|(o, _)| o).zip(places).collect();
        let threads = if let Coder::Gpu(_) = self.sharing.engine { engine.threads() } else { 1 };
        parallel::map_mut(slots, threads, |_, (overlap, to)| {
            let whole = overlap.as_ref().is_some_and(|o| o.is_whole(&self.chunk));
            if !whole {
                to.chunks_exact_mut(self.beyond.len()).for_each(|e| e.copy_from_slice(&self.beyond));
            }
            if let Some(overlap) = overlap {
                self.array.gather(overlap, &self.chunk, to);
            }
        });
        let mut gathered = gathered.chunks(self.raw_len);
        let jobs: Vec<_> = dense
            .iter()
            .map(|d| EncodeJob { params: &self.params, raw: d.unwrap_or_else(|| gathered.next().unwrap_or(&[])) })
            .collect();
        engine.encode_batch(&jobs, frames);
        // The engine leaves a buffer empty where there was no memory for as many bytes again.
        match frames.iter().any(Vec::is_empty) {
            true => Err(Error::NoMemory { bytes: self.raw_len as u64 }),
            false => Ok(()),
        }
    }
}
