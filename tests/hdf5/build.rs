// SPDX-License-Identifier: MIT OR Apache-2.0
fn main() {
    // The bindings declare what their HDF5 has; these functions came later than others.
    for (name, version) in [("is_paused", "1_14_5"), ("chunk_iter", "1_14_0"), ("read_chunk2", "2_0_0")] {
        println!("cargo:rustc-check-cfg=cfg(has_{name})");
        if std::env::var_os(format!("DEP_HDF5_VERSION_{version}")).is_some() {
            println!("cargo:rustc-cfg=has_{name}");
        }
    }
    println!("cargo:rerun-if-changed=build.rs");
}
