// SPDX-License-Identifier: MIT OR Apache-2.0
fn main() {
    // Programs may hold addresses of these functions for as long as they run.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rerun-if-changed=build.rs");
}
