// SPDX-License-Identifier: MIT OR Apache-2.0
//! The environment variables that a user may set. One that is not understood counts as not set, and is named.

/// A variable's name, whether it takes a value, and what it takes, in words.
pub type Rule = (&'static str, fn(&str) -> bool, &'static str);

/// All of them.
pub const RULES: [Rule; 5] = [
    ("H5Z_GPU_DEVICE", |v| matches!(v, "auto" | "cpu") || v.parse::<u32>().is_ok(), "auto, cpu or a device number"),
    ("H5Z_GPU_MIN_BYTES", |v| v.parse::<usize>().is_ok(), "a number of bytes"),
    ("H5Z_GPU_THREADS", |v| v.parse::<usize>().is_ok_and(|n| n > 0), "a number above 0"),
    ("H5Z_GPU_LOG", |v| matches!(v, "off" | "warn" | "info"), "off, warn or info"),
    ("H5Z_GPU_STRICT", |v| matches!(v, "0" | "1"), "0 or 1"),
];

/// A variable's value without blanks around it; `Err` says why it is not understood. `None`: not set, or empty.
pub fn checked(name: &str) -> Option<Result<String, String>> {
    let (_, takes, allowed) = RULES.iter().find(|r| r.0 == name).expect("a variable of the list");
    let value = std::env::var_os(name)?.to_string_lossy().trim().to_owned();
    match &*value {
        "" => None,
        v if takes(v) => Some(Ok(value)),
        v => Some(Err(format!("{name} is {v:?}; allowed: {allowed}"))),
    }
}

/// A variable's value where it is set and understood.
pub fn get(name: &str) -> Option<String> {
    checked(name)?.ok()
}

/// What is to be said of those that are not understood.
pub(crate) fn faults() -> impl Iterator<Item = String> {
    RULES.iter().filter_map(|r| checked(r.0)?.err())
}
