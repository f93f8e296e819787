// SPDX-License-Identifier: MIT OR Apache-2.0
fn main() {
    // HDF5 may hold addresses of these functions for as long as it runs.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rerun-if-changed=build.rs");
}
