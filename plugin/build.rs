// SPDX-License-Identifier: MIT OR Apache-2.0
fn main() {
    let target = |what: &str| std::env::var(format!("CARGO_CFG_TARGET_{what}")).unwrap_or_default();
    if target("VENDOR") != "apple" && target("OS") != "windows" {
        // HDF5 dlcloses its plugins; code that may still run, and state that must last, stay mapped.
        println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
    // src/reserve.rs stands between this object and the system's memory; also in tests, which call it as well.
    if target("OS") == "linux" && matches!(target("ARCH").as_str(), "x86_64" | "aarch64") {
        for name in ["malloc", "calloc", "realloc", "free"] {
            println!("cargo:rustc-link-arg=-Wl,--wrap={name}");
        }
    }
    println!("cargo:rerun-if-changed=build.rs");
}
