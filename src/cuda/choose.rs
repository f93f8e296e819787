// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which device is the process's own: for arrays in host memory, and for chunks that HDF5 hands over.

use super::driver::Failure;
use crate::host::log;
use cudarc::driver::{result, sys};

/// What launchers call a process's number among those of its node. torchrun's comes first: where Slurm or MPI starts
/// one torchrun a node, their own number is 0 in each of its processes.
const LOCAL_RANKS: [&str; 5] =
    ["LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "MV2_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID"];

/// The ordinal for what `H5Z_GPU_DEVICE` says, of `count` devices: a number; or the device that is current in this
/// thread, which another library chose; or the local rank's, modulo their number.
pub(super) fn device(wanted: &str, count: i32) -> Result<i32, Failure> {
    if count < 1 {
        return Err(Failure::other("there is no device"));
    }
    if wanted.is_empty() || wanted == "auto" {
        let rank = || LOCAL_RANKS.iter().find_map(|name| std::env::var(name).ok()?.trim().parse::<u32>().ok());
        return Ok(current(count).unwrap_or_else(|| (rank().unwrap_or(0) % count.unsigned_abs()) as i32));
    }
    match wanted.parse::<i32>() {
        Ok(n) if (0..count).contains(&n) => Ok(n),
        _ => {
            let text = format!("H5Z_GPU_DEVICE is {wanted:?}; allowed are auto, cpu, and 0 to {}", count - 1);
            log::warn(&text);
            Err(Failure::other(text))
        }
    }
}

/// The device of the context that is current in this thread; `None` where there is none.
fn current(count: i32) -> Option<i32> {
    result::ctx::get_current().ok()??;
    let mut handle = -1;
    // SAFETY: the handle can be written.
    unsafe { sys::cuCtxGetDevice(&mut handle) }.result().ok()?;
    (0..count).find(|&ordinal| result::device::get(ordinal).is_ok_and(|of| of == handle))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_number_outside_the_machine_is_named() {
        assert_eq!(device("2", 3), Ok(2));
        assert!(device("3", 3).unwrap_err().to_string().contains("0 to 2"));
        assert!(device("gpu", 1).is_err());
        assert!(device("auto", 0).is_err());
    }
}
