// SPDX-License-Identifier: MIT OR Apache-2.0
//! The GPU, as a guest in somebody else's process. The only unsafe code of the library; knows nothing of codecs.
//!
//! The host may use the same driver (torch, cupy), may fork, may unload us. So: the driver is probed, never linked; the
//! device's primary context is shared and never released; the thread's current context is put back after every call; a
//! forked child makes no driver call and takes no lock; nothing is torn down at exit; nothing starts before a batch is
//! big enough to be worth it. After an error that ends a context, the CPU does everything for good.

pub mod abi;
mod crew;
mod driver;
mod lane;
mod launch;
mod module;

pub(crate) use driver::{Current, Failure};
pub(crate) use lane::{ALIGN, Buffer, Lane, LaneGuard, Wanted};
pub(crate) use launch::{Described, Timer};
#[cfg(test)]
pub(crate) use module::IMAGES;
pub(crate) use module::Kernel;

use crate::log;
use cudarc::driver::{result, sys};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// One device with its shared context, ready to use.
pub(crate) struct Device {
    context: sys::CUcontext,
    name: String,
    modules: module::Modules,
    lanes: lane::Pool,
}

// SAFETY: the context handle may be used from any thread by the driver's own rules; all else synchronises itself.
unsafe impl Send for Device {}
// SAFETY: as above.
unsafe impl Sync for Device {}

/// Process that started the driver, 0 before. Read before any lock: in a forked child a lock may be held by nobody.
static OWNER: AtomicU32 = AtomicU32::new(0);
/// Set when the device is of no use any more.
static DEAD: AtomicBool = AtomicBool::new(false);

/// The process's device; started by the first call. `None`: use the CPU.
pub(crate) fn device() -> Option<&'static Device> {
    static DEVICE: OnceLock<Option<Device>> = OnceLock::new();
    if module::IMAGES.is_empty() || DEAD.load(Ordering::Acquire) || !ours(true) {
        return None;
    }
    let device = DEVICE.get_or_init(|| {
        let started = catch_unwind(AssertUnwindSafe(Device::start));
        let device = match started {
            Ok(Ok(device)) => device,
            Ok(Err(why)) => {
                log::info(&format!("GPU not used: {why}"));
                None
            }
            Err(_) => {
                log::warn("GPU not used: its driver library is not as expected");
                None
            }
        };
        DEAD.store(device.is_none(), Ordering::Release);
        device
    });
    device.as_ref().filter(|_| !DEAD.load(Ordering::Acquire))
}

/// Kernel images in this build.
pub(crate) fn images() -> usize {
    module::IMAGES.len()
}

/// Whether this process started the driver, or (when `claim`) may start it now.
fn ours(claim: bool) -> bool {
    let me = std::process::id();
    match OWNER.load(Ordering::Acquire) {
        0 if claim => {
            OWNER.compare_exchange(0, me, Ordering::AcqRel, Ordering::Acquire).map_or_else(|o| o == me, |_| true)
        }
        owner => owner == me,
    }
}

/// Whether a device is in use by this process; starts nothing.
fn in_use() -> bool {
    ours(false) && !DEAD.load(Ordering::Acquire)
}

/// Whether [`device`] may answer with one: cheap, and starts nothing.
pub(crate) fn possible() -> bool {
    !module::IMAGES.is_empty() && !DEAD.load(Ordering::Acquire) && (OWNER.load(Ordering::Acquire) == 0 || ours(false))
}

/// Copies bytes of the host: on up to `threads` threads where a device is in use and they are there anyway, else here.
///
/// # Panics
/// When the lengths differ.
pub(crate) fn copy(from: &[u8], to: &mut [u8], threads: usize) {
    if in_use() { lane::copy(from, to, threads) } else { to.copy_from_slice(from) }
}

/// Runs GPU work; an error or a panic in it means `None`: do it on the CPU. Says so once per cause.
pub(crate) fn attempt<R>(what: &str, work: impl FnOnce() -> Result<R, Failure>) -> Option<R> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(r)) => Some(r),
        Ok(Err(failure)) => {
            if failure.ends_context() {
                DEAD.store(true, Ordering::Release);
                log::warn(&format!("{what} on the GPU: {failure}; the CPU is used from now on"));
            } else {
                log::warn(&format!("{what} on the GPU: {failure}; done on the CPU instead"));
            }
            None
        }
        Err(_) => {
            DEAD.store(true, Ordering::Release);
            log::warn(&format!("{what} on the GPU panicked; the CPU is used from now on. Please report it."));
            None
        }
    }
}

impl Device {
    /// Probes the driver and opens the device that `H5Z_GPU_DEVICE` names. `Ok(None)`: the CPU was asked for.
    fn start() -> Result<Option<Device>, String> {
        let asked = std::env::var("H5Z_GPU_DEVICE").unwrap_or_default();
        let asked = asked.trim();
        if asked == "cpu" {
            return Ok(None);
        }
        driver::probe()?;
        result::init().map_err(|e| Failure::new("cuInit", e).to_string())?;
        let count = result::device::get_count().map_err(|e| Failure::new("cuDeviceGetCount", e).to_string())?;
        let ordinal = choose(asked, count)?;
        Self::open(ordinal).map(Some).map_err(|e| e.to_string())
    }

    fn open(ordinal: i32) -> Result<Device, Failure> {
        let handle = result::device::get(ordinal).map_err(|e| Failure::new("cuDeviceGet", e))?;
        let name = result::device::get_name(handle).map_err(|e| Failure::new("cuDeviceGetName", e))?;
        // SAFETY: the handle is the driver's; the context is retained for the life of the process, on purpose.
        let context =
            unsafe { result::primary_ctx::retain(handle) }.map_err(|e| Failure::new("cuDevicePrimaryCtxRetain", e))?;
        let device = Device { context, name, modules: module::Modules::default(), lanes: lane::Pool::default() };
        // The context works when a lane can be made in it.
        let current = device.enter()?;
        drop(device.lane()?);
        drop(current);
        log::info(&format!("GPU {ordinal}: {}", device.name));
        Ok(device)
    }

    /// Makes the context current on this thread until the guard is dropped: declare it before anything of the device's.
    pub(crate) fn enter(&self) -> Result<Current, Failure> {
        Current::bind(self.context)
    }

    /// Lends a lane, or `None` when all are taken.
    pub(crate) fn lane(&self) -> Result<Option<LaneGuard<'_>>, Failure> {
        self.lanes.lend()
    }

    /// A kernel by name, such as `szx_encode_f32`; its image is loaded by the first call.
    pub(crate) fn kernel(&self, name: &str) -> Result<Kernel, Failure> {
        self.modules.kernel(name)
    }

    /// As [`Device::kernel`], of an image that this library does not embed.
    pub(crate) fn kernel_of(&self, stem: &'static str, image: &'static [u8], name: &str) -> Result<Kernel, Failure> {
        if image.as_ptr().align_offset(8) != 0 || image.is_empty() {
            return Err(Failure::other("the image is empty or not aligned"));
        }
        self.modules.kernel_of(stem, image, name)
    }

    /// The device's name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

/// Sets the length of a buffer whose spare capacity was filled up to it by a [`Lane::download`] that succeeded.
pub(crate) fn filled(out: &mut Vec<u8>, len: usize) {
    assert!(len <= out.capacity());
    // SAFETY: inside the capacity, and written by the caller's download.
    unsafe { out.set_len(len) };
}

/// Bytes as a place to download to.
pub(crate) fn as_uninit(out: &mut [u8]) -> &mut [std::mem::MaybeUninit<u8>] {
    // SAFETY: the same layout; only whole bytes are ever written through it.
    unsafe { &mut *(std::ptr::from_mut(out) as *mut [std::mem::MaybeUninit<u8>]) }
}

/// The ordinal for what `H5Z_GPU_DEVICE` says, of `count` devices: a number, or by the rank among a node's processes.
fn choose(asked: &str, count: i32) -> Result<i32, String> {
    if count < 1 {
        return Err("no device".into());
    }
    if asked.is_empty() || asked == "auto" {
        let rank = ["OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "MV2_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID"]
            .iter()
            .find_map(|name| std::env::var(name).ok()?.trim().parse::<u32>().ok());
        return Ok((rank.unwrap_or(0) % count.unsigned_abs()) as i32);
    }
    match asked.parse::<i32>() {
        Ok(n) if (0..count).contains(&n) => Ok(n),
        _ => {
            let text = format!("H5Z_GPU_DEVICE is {asked:?}; allowed are auto, cpu, and 0 to {}", count - 1);
            log::warn(&text);
            Err(text)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_number_outside_the_machine_is_named() {
        assert_eq!(choose("2", 3), Ok(2));
        assert!(choose("3", 3).unwrap_err().contains("0 to 2"));
        assert!(choose("gpu", 1).is_err());
        assert!(choose("auto", 0).is_err());
    }

    /// Bytes a thread may spill: more, and a kernel no longer runs from its registers. What comes near is faster with one CTA more.
    const SPILLED: u32 = 256;

    #[test]
    fn every_kernel_is_in_every_image() {
        for image in IMAGES {
            let mut archs: Vec<u32> = image.kernels.iter().map(|k| k.1).collect();
            archs.sort_unstable();
            archs.dedup();
            for arch in &archs {
                for stem in crate::codec::device::KERNELS.iter().filter(|k| k.starts_with(image.stem)) {
                    for scalar in ["f32", "f64"] {
                        let name = format!("{stem}_{scalar}");
                        let found = image.kernels.iter().find(|k| k.0 == name && k.1 == *arch);
                        let found = found.unwrap_or_else(|| panic!("{name} is not in {}.cu for sm_{arch}", image.stem));
                        assert!(found.3 <= SPILLED, "{name} on sm_{arch} spills {} bytes", found.3);
                    }
                }
            }
        }
    }
}
