// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames from a file or from memory into an array.

use super::boxes::{Array, Overlap};
use super::frames::{Frames, Unpack, fits, read_frame, stored_len};
use super::sharing::{Coder, Sharing};
use crate::engine::Engine;
use crate::host::file;
use codecs::DecodeJob;
use codecs::error::{Error, Result};
use codecs::frame::Frame;
use codecs::{checksum, memory, parallel};
use std::sync::Mutex;

/// A chunk of which less than this is wanted is decoded by the CPU, which decodes tiles that are wanted, not by the
/// GPU.
const GPU_PART: u64 = 4;

/// What is to be done: the arguments of [`super::decode`] and [`super::unpack`], which were checked.
pub(super) struct Work<'a> {
    pub(super) frames: Frames<'a>,
    pub(super) array: &'a Array,
    pub(super) chunk: &'a [u64],
    pub(super) origins: &'a [i64],
    pub(super) raw_len: usize,
    pub(super) sharing: Sharing,
    /// What decodes the chunks where they are no frames.
    pub(super) unpack: Option<&'a dyn Unpack>,
}

/// Memory of a thread, for one chunk at a time. None is ever made shorter.
#[derive(Default)]
struct Scratch {
    frame: Vec<u8>,
    raw: Vec<u8>,
    between: Vec<u8>,
}

/// Memory that no thread uses now: reading small parts again and again would else spend its time on fresh pages.
static SPARE: Mutex<Vec<Scratch>> = Mutex::new(Vec::new());
/// Bytes that are kept there: for a box that cuts eight chunks of 16 MiB, of which those pages are memory that were
/// touched. Taking them anew took as long as reading such a box.
const SPARE_BYTES: usize = 192 << 20;
/// Bytes of a frame that are read and summed at a time: little enough to be summed from the cache.
const PIECE: usize = 256 << 10;

/// Gives that memory back; the next call takes it anew.
pub(super) fn release() {
    if let Ok(mut spare) = SPARE.try_lock() {
        spare.clear();
    }
}

impl Scratch {
    /// Some memory; nobody waits for a lock that a fork may have left behind.
    fn lend() -> Scratch {
        SPARE.try_lock().ok().and_then(|mut spare| spare.pop()).unwrap_or_default()
    }

    fn give_back(self) {
        let len = |s: &Scratch| s.frame.len() + s.raw.len() + s.between.len();
        if let Ok(mut spare) = SPARE.try_lock()
            && spare.iter().map(len).sum::<usize>() + len(&self) <= SPARE_BYTES
        {
            spare.push(self);
        }
    }

    /// The first `len` bytes of a buffer.
    fn sized(buffer: &mut Vec<u8>, len: usize) -> Result<&mut [u8]> {
        if buffer.len() < len {
            *buffer = memory::zeros(len)?;
        }
        Ok(&mut buffer[..len])
    }
}

impl Work<'_> {
    /// Answers for each frame, in order.
    pub(super) fn all(&self) -> Vec<Result<()>> {
        let (n, size) = (self.origins.len() / self.chunk.len(), self.sharing.batch);
        let batch = |b: usize| self.batch(b * size, size.min(n - b * size));
        parallel::map(n.div_ceil(size), self.sharing.lanes, batch).into_iter().flatten().collect()
    }

    fn overlap(&self, k: usize) -> Option<Overlap> {
        let rank = self.chunk.len();
        self.array.overlap(&self.origins[k * rank..][..rank], self.chunk)
    }

    /// What decodes frame `k`.
    fn engine(&self, k: usize) -> &Engine {
        self.sharing.engine.engine(k / self.sharing.batch)
    }

    /// Decodes `count` frames from number `first` on.
    fn batch(&self, first: usize, count: usize) -> Vec<Result<()>> {
        let mut scratch = Scratch::lend();
        let done = match &self.sharing.engine {
            Coder::Cpu(_) => (first..first + count).map(|k| self.one(k, &mut scratch)).collect(),
            Coder::Gpu(_) => self.on_gpu(first, count, &mut scratch),
        };
        scratch.give_back();
        done
    }

    /// Decodes frame `k` on the CPU.
    fn one(&self, k: usize, scratch: &mut Scratch) -> Result<()> {
        let Some(overlap) = self.overlap(k) else { return Ok(()) };
        if let Some(unpack) = self.unpack {
            return self.unpacked(k, &overlap, unpack, scratch);
        }
        let Scratch { frame, raw, .. } = scratch;
        let engine = self.engine(k);
        // SAFETY: no other frame of this call has these values: `apart` has seen to it.
        #[allow(unsafe_code)]
        if let Some(to) = unsafe { self.array.dense_mut(&overlap, self.chunk) } {
            let frame = self.read(k, frame)?;
            fits(frame, self.raw_len)?;
            return engine.decode_into(frame, to);
        }
        let (frame, sum) = self.read_summed(k, frame, engine.threads())?;
        fits(frame, self.raw_len)?;
        let raw = Scratch::sized(raw, self.raw_len)?;
        engine.decode_part(Frame::open_summed(frame, sum)?, self.chunk, &overlap.chunk, raw)?;
        self.array.scatter(&overlap, self.chunk, raw);
        Ok(())
    }

    /// Decodes chunk `k`, which is no frame.
    fn unpacked(&self, k: usize, overlap: &Overlap, unpack: &dyn Unpack, scratch: &mut Scratch) -> Result<()> {
        let Scratch { frame, raw, between } = scratch;
        let stored = match self.frames {
            Frames::Memory(chunks) => chunks[k],
            Frames::File(fd, places) => {
                let (at, len) = places[k];
                let most = unpack.most(self.raw_len as u64);
                if len > most {
                    return Err(Error::corrupt("the file's index", format!("a chunk of {len} bytes, {most} at most")));
                }
                let own = Scratch::sized(frame, len as usize)?;
                file::read_at(fd, own, at)?;
                own
            }
        };
        // SAFETY: no other chunk of this call has these values: `apart` has seen to it.
        #[allow(unsafe_code)]
        if let Some(to) = unsafe { self.array.dense_mut(overlap, self.chunk) } {
            return unpack.unpack(k, stored, between, to);
        }
        let raw = Scratch::sized(raw, self.raw_len)?;
        unpack.unpack(k, stored, between, raw)?;
        self.array.scatter(overlap, self.chunk, raw);
        Ok(())
    }

    /// Decodes a batch on the GPU, and on the CPU what is wanted in part only.
    fn on_gpu(&self, first: usize, count: usize, scratch: &mut Scratch) -> Vec<Result<()>> {
        let engine = self.engine(first);
        let threads = engine.threads();
        let whole = self.chunk.iter().product::<u64>();
        let overlaps: Vec<_> = (first..first + count).map(|k| self.overlap(k)).collect();
        let (batch, others): (Vec<usize>, Vec<usize>) =
            (0..count).partition(|&i| overlaps[i].as_ref().is_some_and(|o| o.count() >= whole / GPU_PART));
        let Ok(mut raw) = memory::zeros::<u8>(batch.len() * self.raw_len) else {
            return (first..first + count).map(|k| self.one(k, scratch)).collect();
        };
        let read = parallel::map(batch.len(), threads, |b| {
            let mut own = Vec::new();
            let frame = self.read(first + batch[b], &mut own)?;
            fits(frame, self.raw_len).map(|()| own)
        });
        let mut done: Vec<Result<()>> = (0..count).map(|_| Ok(())).collect();
        let (mut jobs, mut at) = (Vec::new(), Vec::new());
        for ((&i, own), out) in batch.iter().zip(&read).zip(raw.chunks_mut(self.raw_len)) {
            match own {
                Ok(own) => {
                    let frame = if let Frames::Memory(frames) = self.frames { frames[first + i] } else { own };
                    jobs.push(DecodeJob { frame, out });
                    at.push(i);
                }
                Err(e) => done[i] = Err(e.clone()),
            }
        }
        for (&i, result) in at.iter().zip(engine.decode_batch(&mut jobs)) {
            done[i] = result;
        }
        let slots: Vec<_> = at.iter().zip(jobs).collect();
        parallel::map_mut(slots, threads, |_, (&i, job)| {
            if let (Some(overlap), Ok(())) = (&overlaps[i], &done[i]) {
                self.array.scatter(overlap, self.chunk, job.out);
            }
        });
        for i in others {
            done[i] = self.one(first + i, scratch);
        }
        done
    }

    /// Frame `k`, from the file into `own` where it is there.
    fn read<'f>(&'f self, k: usize, own: &'f mut Vec<u8>) -> Result<&'f [u8]> {
        if let Frames::Memory(frames) = self.frames {
            return Ok(frames[k]);
        }
        let own = Scratch::sized(own, stored_len(self.frames, k, self.raw_len)?)?;
        read_frame(self.frames, k, self.raw_len, own)?;
        Ok(own)
    }

    /// The same with the frame's checksum, read and summed in pieces.
    fn read_summed<'f>(&'f self, k: usize, own: &'f mut Vec<u8>, threads: usize) -> Result<(&'f [u8], u64)> {
        let Frames::File(fd, places) = self.frames else {
            let frame = self.read(k, own)?;
            return Ok((frame, checksum::frame(frame, threads)));
        };
        let own = Scratch::sized(own, stored_len(self.frames, k, self.raw_len)?)?;
        // Few threads: memory is not faster with more.
        let threads = threads.min(own.len().div_ceil(4 * PIECE)).min(4);
        let pieces: Vec<_> = own.chunks_mut(PIECE).collect();
        let sums = parallel::map_mut(pieces, threads, |p, piece| -> Result<u64> {
            file::read_at(fd, piece, places[k].0.saturating_add((p * PIECE) as u64))?;
            Ok(checksum::part(piece, p * PIECE))
        });
        if sums.iter().any(Result::is_err) {
            // The same failure, told of the whole frame.
            read_frame(self.frames, k, self.raw_len, own)?;
        }
        let sum = sums.into_iter().try_fold(0u64, |all, sum| Ok::<_, Error>(all.wrapping_add(sum?)))?;
        Ok((own, sum))
    }
}
