// SPDX-License-Identifier: MIT OR Apache-2.0
//! HDF5 dlcloses its plugins; code that may still run, and state that must last, stay mapped.
fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rerun-if-changed=build.rs");
}
