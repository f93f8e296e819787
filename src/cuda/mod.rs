// SPDX-License-Identifier: MIT OR Apache-2.0
//! The GPU, as a guest in somebody else's process. Knows nothing of codecs.
//!
//! The host may use the same driver (torch, cupy), may fork, may unload us. So: the driver is probed, never linked; the
//! device's primary context is shared and never released; the thread's current context is put back after every call; a
//! forked child makes no driver call and takes no lock; nothing is torn down at exit; nothing starts before a batch is
//! big enough to be worth it. After an error that ends a context, the CPU does everything for good.

mod choose;
mod direct;
mod driver;
mod image;
mod later;
mod launch;
mod module;
mod slices;
mod staging;
mod stream;

pub(crate) use direct::{Direct, Rows};
pub(crate) use driver::Failure;
#[cfg(test)]
pub(crate) use image::IMAGES;
pub(crate) use later::{Mark, UserStream};
pub(crate) use launch::Described;
#[cfg(feature = "testing")]
pub(crate) use launch::Timer;
pub(crate) use module::Kernel;
pub(crate) use stream::{ALIGN, Buffer, Stream, StreamGuard};

use crate::device::{GpuCode, GpuDevice, GpuVersion};
use crate::host::log;
use cudarc::driver::{result, sys};
use driver::Current;
use once_cell::sync::OnceCell;
use std::cell::RefCell;
use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

/// One device with its shared context, ready to use.
pub(crate) struct Device {
    ordinal: i32,
    context: sys::CUcontext,
    name: String,
    modules: module::Modules,
    streams: stream::Pool,
    /// Streams that no array's work has now.
    spare: Mutex<Vec<Stream>>,
}

// SAFETY: the context handle may be used from any thread by the driver's own rules; all else synchronises itself.
unsafe impl Send for Device {}
// SAFETY: as above.
unsafe impl Sync for Device {}

/// Process that started the driver, 0 before. Read before any lock: in a forked child a lock may be held by nobody.
static OWNER: AtomicU32 = AtomicU32::new(0);
/// The process's device, once it has started.
static DEVICE: OnceCell<&Device> = OnceCell::new();
/// Every device that was opened, for whoever names one. They live as long as the process.
static OPENED: Mutex<Vec<&Device>> = Mutex::new(Vec::new());
/// Why the device is of no use for the rest of the process, once it is not.
static ENDED: OnceLock<String> = OnceLock::new();
/// Until when a start that failed for want of something is not tried again.
static PAUSED: Mutex<Option<Instant>> = Mutex::new(None);
/// Between two such starts: each takes up to a second, and what was missing is seldom back sooner.
const PAUSE: Duration = Duration::from_secs(10);

thread_local! {
    /// What a caller of the library has entered and not left yet, in this thread.
    static ENTERED: RefCell<Vec<Current>> = const { RefCell::new(Vec::new()) };
}

/// The process's device; started by the first call. `None`: use the CPU.
pub(crate) fn device() -> Option<&'static Device> {
    if possible() && ours(true) { started().ok() } else { None }
}

/// The device's name, or why the CPU does everything. Starts the device, pause or no pause.
pub(crate) fn status() -> Result<&'static str, String> {
    allowed()?;
    started().map(|device| device.name.as_str())
}

/// Whether the process's device has been started.
pub(crate) fn is_started() -> bool {
    DEVICE.get().is_some()
}

/// The kernels of this build.
pub(crate) fn code() -> Option<GpuCode> {
    let images: Vec<String> = image::IMAGES.iter().map(image::Image::name).collect();
    let code = || GpuCode {
        compiler: image::COMPILER,
        cuda: GpuVersion { major: image::CUDA_MAJOR, minor: 0 },
        driver: image::driver(image::CUDA_MAJOR),
        images,
    };
    (!image::IMAGES.is_empty()).then(code)
}

/// The process's device, and what it takes. Starts it.
pub(crate) fn in_words() -> Option<GpuDevice> {
    let name = status().ok()?;
    let device = started().ok()?;
    let ask = || {
        let handle = result::device::get(device.ordinal).map_err(|e| Failure::new("cuDeviceGet", e))?;
        Ok::<_, Failure>((capability(handle)?, driver::version()?))
    };
    let (capability, version) = attempt("asking", ask)?;
    let driver_cuda = GpuVersion { major: version.unsigned_abs() / 1000, minor: version.unsigned_abs() % 1000 / 10 };
    let capability = GpuVersion { major: capability.0, minor: capability.1 };
    Some(GpuDevice { name, capability, image: device.modules.image().name(), driver_cuda })
}

/// Whether this process may use a device, or a sentence that says why it may not.
fn allowed() -> Result<(), String> {
    if image::IMAGES.is_empty() {
        return Err(
            "this build has no GPU code: build with a CUDA compiler (H5Z_GPU_CUDA=require names what is missing)"
                .into(),
        );
    }
    if !ours(true) {
        return Err("this process was forked from one that uses the GPU, and CUDA does not work in it".into());
    }
    Ok(())
}

/// Asks the driver, which is started where it is not, for what a user names. Whether the process's own device is to be
/// used (`H5Z_GPU_DEVICE`) does not matter, but for `cpu`.
fn ask<R>(what: impl FnOnce() -> Result<R, Failure>) -> Result<R, String> {
    allowed()?;
    if let Some(why) = ENDED.get() {
        return Err(why.clone());
    }
    if wanted() == "cpu" {
        return Err("H5Z_GPU_DEVICE is cpu".into());
    }
    let answer = catch_unwind(AssertUnwindSafe(|| {
        initialise()?;
        what()
    }));
    match answer {
        Ok(answer) => answer.map_err(|failure| failure.to_string()),
        Err(_) => Err("the driver library is not as expected".into()),
    }
}

/// The device of this ordinal, on which a user's array is; opened by the first call.
pub(crate) fn device_of(ordinal: i32) -> Result<&'static Device, String> {
    ask(|| Device::at(ordinal))
}

/// Ordinal of the device whose memory an address is in; `None` where it is not a device's.
pub(crate) fn holder(address: u64) -> Result<Option<i32>, String> {
    ask(|| ordinal_of(address))
}

/// Devices that this process sees, the process's own first; opens none.
pub(crate) fn visible() -> Vec<i32> {
    let count = ask(|| result::device::get_count().map_err(|e| Failure::new("cuDeviceGetCount", e))).unwrap_or(0);
    let own = DEVICE.get().map_or(0, |device| device.ordinal);
    std::iter::once(own).chain((0..count).filter(|&ordinal| ordinal != own)).take(count.max(0) as usize).collect()
}

/// Makes current in this thread what was before the last [`Device::enter_until_left`].
pub(crate) fn leave() {
    let entered = ENTERED.with_borrow_mut(Vec::pop);
    if !ours(false) {
        // A forked child makes no driver call.
        std::mem::forget(entered);
    }
}

/// Gives memory back that no work has now, the devices' and what is page-locked; the bytes of the devices'. It comes
/// again with the next work.
pub(crate) fn release() -> usize {
    if !ours(false) || ENDED.get().is_some() {
        return 0;
    }
    let opened = OPENED.lock().unwrap_or_else(|held| held.into_inner());
    let released = opened.iter().map(|device| device.release().inspect_err(note_failure).unwrap_or(0));
    released.sum()
}

fn started() -> Result<&'static Device, String> {
    let device = DEVICE.get_or_try_init(|| {
        if let Some(why) = ENDED.get() {
            return Err(why.clone());
        }
        let started = catch_unwind(AssertUnwindSafe(Device::start));
        let failure = match started {
            Ok(Ok(device)) => return Ok(device),
            Ok(Err(failure)) => failure,
            Err(_) => Failure::other("the driver library is not as expected"),
        };
        let why = failure.to_string();
        log::info(&format!("GPU not used: {why}"));
        if failure.may_pass() {
            *PAUSED.lock().unwrap_or_else(|held| held.into_inner()) = Some(Instant::now() + PAUSE);
            Err(format!("{why}; it is tried again from time to time"))
        } else {
            Err(ENDED.get_or_init(|| why).clone())
        }
    })?;
    ENDED.get().map_or(Ok(*device), |why| Err(why.clone()))
}

/// What `H5Z_GPU_DEVICE` says.
fn wanted() -> String {
    std::env::var("H5Z_GPU_DEVICE").unwrap_or_default().trim().into()
}

/// Finds the driver and starts it; again is nothing.
fn initialise() -> Result<(), Failure> {
    static DONE: OnceCell<()> = OnceCell::new();
    DONE.get_or_try_init(|| {
        driver::probe(image::check_driver)?;
        result::init().map_err(|e| Failure::new("cuInit", e))
    })?;
    Ok(())
}

/// Architecture of each image in this build, and whether it is PTX.
#[cfg(feature = "testing")]
pub(crate) fn architectures() -> Vec<(u32, bool)> {
    image::IMAGES.iter().map(|image| (image.arch, image.ptx)).collect()
}

/// See `testing`.
#[cfg(feature = "testing")]
pub(crate) fn cuda_major() -> u32 {
    image::CUDA_MAJOR
}

/// Kernel images in this build.
#[cfg(feature = "testing")]
pub(crate) fn images() -> usize {
    image::IMAGES.len()
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

/// Whether this process started the driver: not so in a forked child.
pub(crate) fn is_mine() -> bool {
    ours(false)
}

/// Whether a device is in use by this process; starts nothing.
fn in_use() -> bool {
    ours(false) && DEVICE.get().is_some() && ENDED.get().is_none()
}

/// Whether [`device`] may answer with one: cheap, and starts nothing.
pub(crate) fn possible() -> bool {
    let paused = || PAUSED.lock().is_ok_and(|until| until.is_some_and(|until| Instant::now() < until));
    !image::IMAGES.is_empty()
        && ENDED.get().is_none()
        && (OWNER.load(Ordering::Acquire) == 0 || ours(false) && (DEVICE.get().is_some() || !paused()))
}

/// Copies bytes of the host: on up to `threads` threads where a device is in use and they are there anyway, else here.
///
/// # Panics
/// When the lengths differ.
pub(crate) fn copy(from: &[u8], to: &mut [u8], threads: usize) {
    if in_use() { stream::copy(from, to, threads) } else { to.copy_from_slice(from) }
}

/// Runs GPU work; an error or a panic in it means `None`: do it on the CPU. Says so once per cause.
pub(crate) fn attempt<R>(what: &str, work: impl FnOnce() -> Result<R, Failure>) -> Option<R> {
    let why = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(r)) => return Some(r),
        Ok(Err(failure)) if !failure.ends_context() => {
            log::warn(&format!("{what} on the GPU: {failure}; done on the CPU instead"));
            return None;
        }
        Ok(Err(failure)) => format!("{what} on the GPU: {failure}; the CPU is used from now on"),
        Err(_) => format!("{what} on the GPU panicked; the CPU is used from now on. Please report it."),
    };
    log::warn(&why);
    _ = ENDED.set(why);
    None
}

/// Takes note of a failure for which there is no CPU to go to: after one that ends a context there is no device any
/// more.
pub(crate) fn note_failure(failure: &Failure) {
    if failure.ends_context() {
        _ = ENDED.set(format!("{failure}; the CPU is used from now on"));
    }
}

impl Device {
    /// Probes the driver and opens the device that `H5Z_GPU_DEVICE` names.
    fn start() -> Result<&'static Device, Failure> {
        let wanted = wanted();
        if wanted == "cpu" {
            return Err(Failure::other("H5Z_GPU_DEVICE is cpu"));
        }
        initialise()?;
        let count = result::device::get_count().map_err(|e| Failure::new("cuDeviceGetCount", e))?;
        Self::at(choose::device(&wanted, count)?)
    }

    /// The device of this ordinal, opened where it is not.
    fn at(ordinal: i32) -> Result<&'static Device, Failure> {
        let mut opened = OPENED.lock().unwrap_or_else(|held| held.into_inner());
        if let Some(device) = opened.iter().find(|d| d.ordinal == ordinal) {
            return Ok(device);
        }
        let device = &*Box::leak(Box::new(Self::open(ordinal)?));
        opened.push(device);
        Ok(device)
    }

    fn open(ordinal: i32) -> Result<Device, Failure> {
        let handle = result::device::get(ordinal).map_err(|e| Failure::new("cuDeviceGet", e))?;
        let name = result::device::get_name(handle).map_err(|e| Failure::new("cuDeviceGetName", e))?;
        let image = image::for_capability(capability(handle)?)?;
        // SAFETY: the handle is the driver's; the context is retained for the life of the process, on purpose.
        let context =
            unsafe { result::primary_ctx::retain(handle) }.map_err(|e| Failure::new("cuDevicePrimaryCtxRetain", e))?;
        let (modules, streams) = (module::Modules::new(image), stream::Pool::new());
        let device = Device { ordinal, context, name, modules, streams, spare: Mutex::default() };
        // The context works when a stream can be made in it.
        let works = device.enter().and_then(|_current| device.stream().map(drop));
        if let Err(failure) = works {
            // SAFETY: retained above, and nobody has it yet. Another start retains it again.
            _ = unsafe { result::primary_ctx::release(handle) };
            return Err(failure);
        }
        log::info(&format!("GPU {ordinal}: {}", device.name));
        Ok(device)
    }

    /// Makes the context current on this thread until the guard is dropped: declare it before anything of the device's.
    pub(crate) fn enter(&self) -> Result<Current, Failure> {
        Current::bind(self.context)
    }

    /// Lends a stream, or `None` when all are taken.
    pub(crate) fn stream(&self) -> Result<Option<StreamGuard<'_>>, Failure> {
        self.streams.lend()
    }

    /// A stream for an array's work, which may go from thread to thread.
    pub(crate) fn own_stream(&'static self) -> Result<OwnStream, Failure> {
        OwnStream::open(self)
    }

    /// See [`release`].
    pub(crate) fn release(&self) -> Result<usize, Failure> {
        let _current = self.enter()?;
        let mut spare = self.spare.lock().unwrap_or_else(|held| held.into_inner());
        let of_arrays: usize = spare.iter_mut().map(Stream::release).sum::<Result<_, _>>()?;
        Ok(of_arrays + self.streams.release()?)
    }

    /// As [`Device::enter`], until [`leave`] is called in this thread.
    pub(crate) fn enter_until_left(&self) -> Result<(), Failure> {
        let current = self.enter()?;
        ENTERED.with_borrow_mut(|entered| entered.push(current));
        Ok(())
    }

    /// Whether an address is on this device, as the driver knows.
    pub(crate) fn holds(&self, address: u64) -> Result<bool, Failure> {
        Ok(ordinal_of(address)? == Some(self.ordinal))
    }

    /// A kernel by name, such as `szx_encode_f32`; its image is loaded by the first call.
    pub(crate) fn kernel(&self, name: &str) -> Result<Kernel, Failure> {
        self.modules.kernel(name)
    }
}

/// A stream that an array's work has until it ends. When dropped, waits for what was left running and gives it back.
pub(crate) struct OwnStream {
    device: &'static Device,
    stream: Option<Stream>,
}

impl OwnStream {
    fn open(device: &'static Device) -> Result<OwnStream, Failure> {
        let spare = device.spare.lock().unwrap_or_else(|held| held.into_inner()).pop();
        let stream = match spare {
            Some(stream) => stream,
            None => device.streams.bare()?,
        };
        Ok(OwnStream { device, stream: Some(stream) })
    }

    /// CUDA's number of its device.
    #[cfg(feature = "testing")]
    pub(crate) fn ordinal(&self) -> i32 {
        self.device.ordinal
    }
}

impl Deref for OwnStream {
    type Target = Stream;
    fn deref(&self) -> &Stream {
        self.stream.as_ref().expect("until it is dropped")
    }
}

impl DerefMut for OwnStream {
    fn deref_mut(&mut self) -> &mut Stream {
        self.stream.as_mut().expect("until it is dropped")
    }
}

impl Drop for OwnStream {
    fn drop(&mut self) {
        let Some(mut stream) = self.stream.take() else { return };
        if !ours(false) {
            // A forked child makes no driver call.
            return std::mem::forget(stream);
        }
        let idle = !stream.busy || self.device.enter().and_then(|_current| stream.wait()).is_ok();
        match self.device.spare.lock() {
            Ok(mut spare) if idle => spare.push(stream),
            // Its memory may still be written to: forgotten, not freed.
            _ => std::mem::forget(stream),
        }
    }
}

/// A device's compute capability.
fn capability(device: sys::CUdevice) -> Result<image::Capability, Failure> {
    use sys::CUdevice_attribute_enum as Attribute;
    let ask = |what| {
        // SAFETY: the handle is the driver's.
        let number = unsafe { result::device::get_attribute(device, what) };
        number.map_or_else(|e| Err(Failure::new("cuDeviceGetAttribute", e)), |n| Ok(u32::try_from(n).unwrap_or(0)))
    };
    Ok((
        ask(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
        ask(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
    ))
}

/// Ordinal of the device whose memory an address is in, as the driver knows, whatever context is current.
fn ordinal_of(address: u64) -> Result<Option<i32>, Failure> {
    let mut ordinal = -1i32;
    let what = sys::CUpointer_attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL;
    // SAFETY: the answer is an int; any address may be asked for.
    match unsafe { sys::cuPointerGetAttribute((&raw mut ordinal).cast(), what, address) }.result() {
        Ok(()) => Ok(Some(ordinal)),
        Err(e) => {
            let failure = Failure::new("cuPointerGetAttribute", e);
            if failure.ends_context() { Err(failure) } else { Ok(None) }
        }
    }
}
