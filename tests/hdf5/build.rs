// SPDX-License-Identifier: MIT OR Apache-2.0
fn main() {
    // The bindings declare what their HDF5 has; this function came with 1.14.5.
    println!("cargo:rustc-check-cfg=cfg(has_is_paused)");
    if std::env::var_os("DEP_HDF5_VERSION_1_14_5").is_some() {
        println!("cargo:rustc-cfg=has_is_paused");
    }
    println!("cargo:rerun-if-changed=build.rs");
}
