// SPDX-License-Identifier: MIT OR Apache-2.0
//! The embedded kernels: an image for each architecture, one of which a device takes.

use super::driver::Failure;
pub(crate) use kernels::{COMPILER, CUDA_MAJOR, Capability, IMAGES, Image};
use std::sync::{Mutex, PoisonError};

/// The image that a device takes: machine code rather than PTX, and the newest.
pub(super) fn for_capability(capability: Capability) -> Result<&'static Image, Failure> {
    best(IMAGES, capability).ok_or_else(|| Failure::other(refusal(IMAGES, capability)))
}

/// All parts, unpacked by the first call: they stay for the life of the process.
pub(super) fn unpacked(image: &'static Image) -> Result<&'static [u8], Failure> {
    static DONE: Mutex<Vec<(u32, bool, &[u8])>> = Mutex::new(Vec::new());
    let mut done = DONE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = done.iter().find(|d| (d.0, d.1) == (image.arch, image.ptx)) {
        return Ok(found.2);
    }
    let bytes = unpack(image).map_err(|why| {
        Failure::other(format!("the kernels of this build cannot be unpacked ({why}): install the plugin again"))
    })?;
    // Words of 16 bytes: the driver reads images in place.
    let bytes: &'static [u8] = bytemuck::cast_slice(bytes.leak());
    done.push((image.arch, image.ptx, bytes));
    Ok(bytes)
}

fn unpack(image: &Image) -> Result<Vec<u128>, String> {
    let mut words: Vec<u128> = Vec::new();
    words.try_reserve_exact(image.len.div_ceil(16)).map_err(|e| e.to_string())?;
    words.resize(image.len.div_ceil(16), 0);
    let to = &mut bytemuck::cast_slice_mut(&mut words)[..image.len];
    let len = zstd::bulk::decompress_to_buffer(image.frame, to).map_err(|e| e.to_string())?;
    if len == image.len { Ok(words) } else { Err(format!("{len} bytes of {}", image.len)) }
}

fn best(images: &[Image], capability: Capability) -> Option<&Image> {
    images.iter().filter(|image| image.runs_on(capability)).max_by_key(|image| (!image.ptx, image.arch))
}

/// Why no image is for a device.
fn refusal(images: &[Image], (major, minor): Capability) -> String {
    let mut least: Vec<Capability> = images.iter().map(Image::capability).collect();
    least.sort();
    least.dedup();
    let [text, lowest] = [&least[..], &least[..least.len().min(1)]]
        .map(|list| list.iter().map(|c| format!("{}.{}", c.0, c.1)).collect::<Vec<_>>().join(", "));
    if least.first().is_some_and(|&first| (major, minor) < first) {
        format!(
            "the GPU has compute capability {major}.{minor}, and the kernels need {lowest} or newer: \
             another GPU is needed"
        )
    } else {
        format!(
            "the GPU has compute capability {major}.{minor}, and this build has kernels for {text} alone: \
             build it for all GPUs, without H5Z_GPU_ARCHS"
        )
    }
}

/// The first driver for a major release of CUDA.
pub(super) fn driver(major: u32) -> String {
    match major {
        12 => "525.60".into(),
        13 => "580".into(),
        other => format!("for CUDA {other}"),
    }
}

/// Refuses a driver that is too old for these images. It counts in CUDA's releases, times 1000; code of a major release
/// runs on all drivers of that release.
pub(super) fn check_driver(version: i32) -> Result<(), Failure> {
    if version >= 1000 * CUDA_MAJOR as i32 {
        return Ok(());
    }
    Err(Failure::other(format!(
        "the NVIDIA driver is for CUDA {}.{}, and the kernels need CUDA {CUDA_MAJOR}.0: install driver {} or newer",
        version / 1000,
        version % 1000 / 10,
        driver(CUDA_MAJOR)
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(arch: u32, ptx: bool) -> Image {
        Image { arch, ptx, len: 0, frame: &[], files: &[], kernels: &[] }
    }

    #[test]
    fn a_device_takes_the_newest_code_of_its_major_version() {
        let all: Vec<Image> = [70, 75, 80, 86, 90, 100, 120]
            .map(|arch| image(arch, false))
            .into_iter()
            .chain([image(90, true)])
            .collect();
        let of = |major, minor| best(&all, (major, minor)).map(|i| (i.arch, i.ptx));
        for (capability, arch) in [
            ((7, 0), 70),
            ((7, 2), 70),
            ((7, 5), 75),
            ((8, 0), 80),
            ((8, 6), 86),
            ((8, 7), 86),
            ((8, 9), 86),
            ((9, 0), 90),
            ((10, 0), 100),
            ((10, 3), 100),
            ((12, 0), 120),
            ((12, 1), 120),
        ] {
            assert_eq!(of(capability.0, capability.1), Some((arch, false)), "{capability:?}");
        }
        // No code of another major version runs; PTX does.
        assert_eq!(of(11, 0), Some((90, true)));
        assert_eq!(of(13, 0), Some((90, true)));
        for (major, minor) in [(3, 7), (6, 1)] {
            assert_eq!(of(major, minor), None);
            let why = refusal(&all, (major, minor));
            assert!(why.contains(&format!("capability {major}.{minor}")) && why.contains("7.0 or newer"), "{why}");
        }
    }

    #[test]
    fn a_build_for_some_devices_says_so() {
        let some = [image(80, false), image(90, false)];
        assert!(best(&some, (8, 6)).is_some() && best(&some, (12, 0)).is_none());
        let why = refusal(&some, (12, 0));
        assert!(why.contains("12.0") && why.contains("for 8.0, 9.0 alone"), "{why}");
        assert!(refusal(&some, (7, 5)).contains("8.0 or newer"));
    }

    #[test]
    fn a_driver_that_is_too_old_is_named() {
        if CUDA_MAJOR == 0 {
            return assert!(IMAGES.is_empty());
        }
        let first = 1000 * CUDA_MAJOR as i32;
        assert!(check_driver(first).is_ok() && check_driver(first + 1090).is_ok());
        let why = check_driver(11080).unwrap_err().to_string();
        assert!(why.contains("is for CUDA 11.8") && why.contains(&format!("need CUDA {CUDA_MAJOR}.0")), "{why}");
        assert_eq!(driver(12), "525.60");
    }

    /// The image as its writer marked it, whoever wrote it: an ELF file for the architecture, or PTX.
    #[test]
    fn every_image_is_of_its_architecture_and_of_no_newer_cuda() {
        for image in IMAGES {
            let bytes = unpacked(image).unwrap();
            assert_eq!(bytes.as_ptr() as usize % 16, 0);
            assert!(bytes.len() == image.len.next_multiple_of(16) && image.len > 0);
            for &(file, at) in image.files {
                let part = &bytes[at..];
                if image.ptx {
                    check_ptx(part, image.arch, file);
                } else {
                    check_elf(part, image.arch, file);
                }
            }
        }
    }

    fn check_ptx(part: &[u8], arch: u32, file: &str) {
        let text = std::ffi::CStr::from_bytes_until_nul(part).unwrap().to_str().unwrap();
        let said =
            |name: &str| text.lines().find_map(|l| l.strip_prefix(name)).unwrap_or_else(|| panic!("{file}: {name}"));
        // PTX 8.8 came with CUDA 12.9, 9.0 with 13.0.
        let (major, minor) = said(".version ").trim().split_once('.').unwrap();
        let version: (u32, u32) = (major.parse().unwrap(), minor.parse().unwrap());
        assert!(version <= if CUDA_MAJOR == 12 { (8, 8) } else { (9, 0) }, "{file}: PTX {version:?}");
        assert_eq!(said(".target ").trim().split(',').next(), Some(&*format!("sm_{arch}")), "{file}");
    }

    fn check_elf(part: &[u8], arch: u32, file: &str) {
        let word = |at: usize| u32::from_le_bytes(part[at..at + 4].try_into().unwrap());
        // 190 is e_machine of CUDA. At 7 and 8 stand the system and the version of its rules, at 48 e_flags.
        assert!(part.starts_with(b"\x7fELF\x02\x01\x01") && part[18..20] == [190, 0], "{file}: no machine code");
        let (marked, release) = match (part[7], part[8]) {
            // Up to CUDA 12 for all but the newest devices: the architecture below, and the release as e_version.
            (0x33, 7) => (word(48) & 0xff, Some((word(20) / 10, word(20) % 10))),
            // Since then, and for these: the release is a note.
            (0x41, 8) => (word(48) >> 8 & 0xff, released(part)),
            odd => panic!("{file}: rules {odd:?}"),
        };
        assert_eq!(marked, arch, "{file}");
        let name = format!("{CUDA_MAJOR}.");
        assert!(
            COMPILER.contains(&name) && release.is_some_and(|r| r.0 == CUDA_MAJOR),
            "{file}: by {COMPILER}: {release:?}"
        );
        // Drivers from 525 to 570 know the older rules alone; no driver before 570 knows these devices.
        assert!(
            CUDA_MAJOR > 12 || arch >= 100 || part[8] == 7,
            "{file}: a driver of CUDA 12.0 does not know its rules"
        );
    }

    /// The release in the assembler's note.
    fn released(part: &[u8]) -> Option<(u32, u32)> {
        let name = b"compilation tools, release ";
        let at = part.windows(name.len()).position(|w| w == name)? + name.len();
        let text = std::str::from_utf8(part.get(at..at + 8)?).ok()?;
        let (major, minor) = text.split(',').next()?.split_once('.')?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    }
}
