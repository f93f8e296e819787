// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where HDF5 looks for plugins when HDF5_PLUGIN_PATH is not set: its builders' choices, and Debian's.

/// The folders, whether they exist or not.
pub fn hdf5_folders() -> Vec<String> {
    let debian = format!("/usr/lib/{}-linux-gnu/hdf5", std::env::consts::ARCH);
    let builders = ["/usr/local/hdf5/lib/plugin", "/usr/local/lib/hdf5/plugin", "/usr/local/lib/plugin"];
    let flavours = ["serial/", "openmpi/", "mpich/", ""].map(|kind| format!("{debian}/{kind}plugins"));
    builders.map(str::to_owned).into_iter().chain(flavours).collect()
}
