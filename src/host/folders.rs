// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where HDF5 looks for plugins when HDF5_PLUGIN_PATH is not set: its builders' choices, and Debian's.

/// What stands between folders in HDF5_PLUGIN_PATH.
pub const BETWEEN: &str = if cfg!(windows) { ";" } else { ":" };

/// The folders, whether they exist or not.
pub fn hdf5_folders() -> Vec<String> {
    if cfg!(windows) {
        // %ALLUSERSPROFILE% is C:\ProgramData where nobody has moved it.
        let all = std::env::var("ALLUSERSPROFILE").unwrap_or_else(|_| "C:\\ProgramData".to_owned());
        return vec![format!("{all}\\hdf5\\lib\\plugin")];
    }
    let debian = format!("/usr/lib/{}-linux-gnu/hdf5", std::env::consts::ARCH);
    let builders = ["/usr/local/hdf5/lib/plugin", "/usr/local/lib/hdf5/plugin", "/usr/local/lib/plugin"];
    let flavours = ["serial/", "openmpi/", "mpich/", ""].map(|kind| format!("{debian}/{kind}plugins"));
    builders.map(str::to_owned).into_iter().chain(flavours).collect()
}
