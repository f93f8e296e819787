// SPDX-License-Identifier: MIT OR Apache-2.0
fn main() {
    // As plugin/build.rs has it: plugin/src/reserve.rs stands between the plugin and the system's memory.
    let target = |what: &str| std::env::var(format!("CARGO_CFG_TARGET_{what}")).unwrap_or_default();
    if target("OS") == "linux" && matches!(target("ARCH").as_str(), "x86_64" | "aarch64") {
        for name in ["malloc", "calloc", "realloc", "free"] {
            println!("cargo:rustc-link-arg=-Wl,--wrap={name}");
        }
    }
    println!("cargo:rerun-if-changed=build.rs");
}
