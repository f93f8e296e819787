// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a batch is cut into groups, and what encoding and decoding a group have in common.

use super::plan::{Counts, Gpu, Launch, Numbers};
use super::plans::PLANS;
use crate::cuda::{self, ALIGN, Buffer, Device, Failure, Kernel, Stream};

/// Raw bytes of one launch: enough to fill a device, so little that groups overlap.
const GROUP: usize = 64 << 20;
/// Groups on their way at the same time: one uploads, one computes, one downloads.
pub(super) const AT_ONCE: usize = 3;
/// The CPU codes chunks above this many raw bytes: tiles are counted in 32 bits and memory is the host's too.
pub(super) const MOST: usize = 2 << 30;

/// Raw bytes of one codec that a batch must have: fewer stay on the CPU.
#[derive(Debug, Clone, Copy)]
pub(crate) enum MinBytes {
    /// As each codec's description says, by measurement.
    Measured,
    /// This number of bytes, for every codec.
    Fixed(usize),
}

impl MinBytes {
    pub(super) fn or_measured(self, measured: usize) -> usize {
        match self {
            MinBytes::Measured => measured,
            MinBytes::Fixed(bytes) => bytes,
        }
    }

    /// Whether `bytes` raw bytes may be enough for any codec. Fewer need no look at their codecs.
    pub(super) fn reached(self, bytes: usize, measured: impl Fn(&Gpu) -> usize) -> bool {
        let mut gpus = PLANS.iter().map(|(_, gpu)| *gpu);
        gpus.any(|gpu| bytes >= self.or_measured(measured(gpu)))
    }
}

/// What of a batch goes to a GPU, and to which.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Share {
    pub(crate) least: MinBytes,
    /// `None`: the process's.
    pub(crate) ordinal: Option<i32>,
}

impl Share {
    pub(crate) fn of_process(least: MinBytes) -> Share {
        Share { least, ordinal: None }
    }

    /// The device, started where it is not; `None`: the CPU does the work.
    pub(super) fn device(self) -> Option<&'static Device> {
        match self.ordinal {
            None => cuda::device(),
            Some(ordinal) => cuda::device_of(ordinal).ok(),
        }
    }
}

/// What a chunk needs. Chunks of a group need the same.
#[derive(Clone, Copy)]
pub(crate) struct Needs {
    pub(crate) gpu: &'static Gpu,
    pub(crate) numbers: Numbers,
    /// The chunk's value range comes first.
    pub(crate) range: bool,
    /// There is no bound.
    pub(crate) lossless: bool,
    /// More than the bound is kept.
    pub(crate) limited: bool,
}

impl PartialEq for Needs {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.gpu, other.gpu)
            && (self.numbers, self.range, self.lossless, self.limited)
                == (other.numbers, other.range, other.lossless, other.limited)
    }
}

impl Needs {
    /// Bytes of `values` integers as f64; 0 if they are not coded so.
    pub(crate) fn widened_len(self, values: u64) -> usize {
        if self.numbers == Numbers::Widened { values as usize * size_of::<f64>() } else { 0 }
    }

    /// Those of a codec's launches that such chunks need.
    pub(crate) fn launches(self, of: &[Launch]) -> impl Iterator<Item = &Launch> {
        let widened = self.numbers == Numbers::Widened;
        let needed = of.iter().filter(move |l| (self.range || !l.finds_range) && (widened || !l.integers));
        needed.filter(move |l| l.lossless.is_none_or(|only| only == self.lossless))
    }

    /// Kernels and CTAs of these launches for a batch.
    pub(crate) fn kernels(
        self,
        device: &Device,
        launches: &[Launch],
        tiles: u32,
        chunks: u32,
    ) -> Result<Vec<Step>, Failure> {
        let counts = Counts { tiles, chunks, numbers: self.numbers };
        self.launches(launches)
            .map(|l| Ok(Step { kernel: device.kernel(&l.name(self.numbers, self.limited))?, ctas: (l.ctas)(counts) }))
            .collect()
    }
}

/// One kernel of a group's.
#[derive(Clone, Copy)]
pub(crate) struct Step {
    pub(crate) kernel: Kernel,
    pub(crate) ctas: u32,
}

/// One job of a batch: its index, what it needs, its raw bytes.
pub(super) type Member = (usize, Needs, usize);

/// Cuts a batch into groups for one launch each: the same needs, and about [`GROUP`] raw bytes. A codec below its
/// limit, `least` bytes, is left out.
pub(super) fn groups(batch: &[Member], least: impl Fn(&Gpu) -> usize) -> Vec<Vec<usize>> {
    let enough = |gpu: &Gpu| {
        let of_codec = batch.iter().filter(|b| std::ptr::eq(b.1.gpu, gpu));
        of_codec.map(|b| b.2).sum::<usize>() >= least(gpu)
    };
    let mut open: Vec<(Needs, usize, Vec<usize>)> = Vec::new();
    let mut full = Vec::new();
    for &(index, needs, bytes) in batch {
        let at = open.iter().position(|g| g.0 == needs).unwrap_or_else(|| {
            open.push((needs, 0, Vec::new()));
            open.len() - 1
        });
        let (_, size, members) = &mut open[at];
        if *size > 0 && *size + bytes > GROUP {
            full.push((needs.gpu, std::mem::take(members)));
            *size = 0;
        }
        *size += bytes;
        members.push(index);
    }
    full.extend(open.into_iter().map(|(needs, _, members)| (needs.gpu, members)));
    full.into_iter().filter(|(gpu, _)| enough(gpu)).map(|(_, members)| members).collect()
}

pub(super) fn numbers(stream: &mut Stream, at: usize, count: u32) -> Result<Vec<u64>, Failure> {
    let bytes = stream.get(Buffer::Work, at, 8 * count as usize)?;
    Ok(bytes.as_chunks().0.iter().map(|b| u64::from_le_bytes(*b)).collect())
}

/// Where parts of these lengths start, each aligned, and where the last one ends.
pub(crate) fn offsets(lens: impl IntoIterator<Item = usize>) -> Vec<usize> {
    let mut at = 0;
    let mut all: Vec<usize> = lens
        .into_iter()
        .map(|len| {
            let start = at;
            at = (at + len.max(1)).next_multiple_of(ALIGN);
            start
        })
        .collect();
    all.push(at);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::IMAGES;

    /// Bytes a thread may spill: more, and a kernel no longer runs from its registers. What comes near is faster with
    /// one CTA more; 288 to 336 has the kernel for listed tiles of f64 on all but 9.0, where it was timed.
    const SPILLED: u32 = 352;

    #[test]
    fn every_kernel_is_in_every_image() {
        let launches = PLANS.iter().flat_map(|(_, gpu)| gpu.encode.iter().chain(gpu.decode));
        // There is no f32 of integers that become f64; of short ones what planes has without a bound.
        let all = |l: &Launch| match (l.integers, l.lossless) {
            (true, _) => vec![l.name(Numbers::Widened, false)],
            (_, Some(true)) => [Numbers::F32, Numbers::F64, Numbers::Short].map(|n| l.name(n, false)).to_vec(),
            _ => [false, true]
                .iter()
                .flat_map(|&limited| [Numbers::F32, Numbers::F64].map(|n| l.name(n, limited)))
                .collect(),
        };
        let names: Vec<String> = launches.flat_map(all).collect();
        // A build without kernels has no images.
        for image in IMAGES {
            for name in &names {
                let file = image.files.iter().any(|(file, _)| name.starts_with(&format!("{file}_")));
                assert!(file, "no file of the image for {} has {name}", image.arch);
            }
        }
        let mut over = Vec::new();
        for image in IMAGES.iter().filter(|i| !i.ptx) {
            for name in &names {
                let found = image.kernels.iter().find(|k| k.0 == name);
                let &(_, registers, spilled) =
                    found.unwrap_or_else(|| panic!("{name} is not there for sm_{}", image.arch));
                if spilled > SPILLED {
                    over.push(format!("{name} on sm_{}: {registers} registers, {spilled} bytes spilled", image.arch));
                }
            }
        }
        assert!(over.is_empty(), "more than {SPILLED} bytes:\n{}", over.join("\n"));
    }

    /// One that does not, and is started behind another, would read what is not there yet: `ENTRY` makes them all.
    #[test]
    fn every_kernel_waits_for_the_one_before() {
        let folder = std::path::Path::new(kernels::SOURCES);
        let text = std::fs::read_to_string(folder.join("prim/dependent.cuh")).unwrap();
        let (_, kernel) = text.split_once("__global__").expect("the macro");
        let (_, body) = kernel.split_once(" args) {").expect("a kernel with one argument");
        let first = body.trim_start_matches(|c: char| c.is_whitespace() || c == '\\');
        assert!(first.starts_with("dependent::begin();"), "{}", &first[..first.len().min(60)]);
        let mut seen = 0;
        for name in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if name.extension().is_some_and(|e| e == "cu") {
                let text = std::fs::read_to_string(&name).unwrap();
                assert!(!text.contains("__global__"), "{name:?} has a kernel that is no ENTRY");
                seen += text.matches("ENTRY(").count();
            }
        }
        assert!(seen > 20, "{seen} kernels");
    }
}
