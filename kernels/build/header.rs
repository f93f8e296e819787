// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes `h5z_abi.cuh`: what host and kernels share.

use std::fmt::Write as _;

#[allow(dead_code)]
#[path = "../src/abi.rs"]
mod abi;
#[allow(dead_code)]
#[path = "constants.rs"]
mod constants;

/// Constants and structs for the kernels.
pub(crate) fn text() -> String {
    // No header of the C library: NVRTC comes without.
    let mut text =
        String::from("// Written by build.rs from constants.rs and abi.rs.\n#pragma once\n\nnamespace fmt {\n");
    for (name, value) in constants::FORMAT_CONSTANTS {
        writeln!(text, "constexpr unsigned long long {name} = {value:#x}ull;").expect("writing to a string");
    }
    text.push_str("}\n\n");
    for (name, value) in abi::NUMBERS {
        writeln!(text, "constexpr unsigned int {name} = {value};").expect("writing to a string");
    }
    for s in abi::STRUCTS {
        writeln!(text, "\nstruct {} {{", s.name).expect("writing to a string");
        for f in s.fields {
            let (base, len) = match f.ty.trim_start_matches('[').trim_end_matches(']').split_once(';') {
                Some((base, _)) => (base.trim(), format!("[{}]", f.size / size_of_type(base.trim()))),
                None => (f.ty, String::new()),
            };
            writeln!(text, "    {} {}{len};", c_type(base), f.name).expect("writing to a string");
        }
        text.push_str("};\n");
        // NVRTC has no `offsetof` either. Where nothing is padded, each field has one place.
        let mut end = 0;
        for f in s.fields {
            assert!(f.offset == end, "{}::{} of kernels/src/abi.rs stands behind padding", s.name, f.name);
            end += f.size;
        }
        assert!(s.size == end, "{} of kernels/src/abi.rs ends in padding", s.name);
        writeln!(text, "static_assert(sizeof({0}) == {1}, \"{0} differs from the host's\");", s.name, s.size)
            .expect("writing to a string");
    }
    text
}

fn c_type(rust: &str) -> &'static str {
    match rust {
        "u64" => "unsigned long long",
        "u32" => "unsigned int",
        "f64" => "double",
        other => panic!("no CUDA type for {other} in kernels/src/abi.rs"),
    }
}

fn size_of_type(rust: &str) -> usize {
    if rust == "u32" { 4 } else { 8 }
}
