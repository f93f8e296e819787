#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Sees to it that cargo is there and new enough; else says what to type.
#
#     tests/rust.sh CARGO
#
# The version that is needed stands in Cargo.toml.
set -eu
needed=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
found=$("$1" --version 2>/dev/null | cut -d ' ' -f 2) || found=
oldest=$(printf '%s\n' "$needed" "${found:-0}" | sort -V | head -n 1)
[ "$oldest" = "$needed" ] && exit 0
[ -n "$found" ] && is="$1 is of $found" || is="there is none"
echo "Rust $needed or newer is needed, and $is. Type:" >&2
if command -v rustup >/dev/null; then
    echo "    rustup default stable && rustup update stable" >&2
elif apt-cache policy rustup 2>/dev/null | grep -q 'Candidate: [0-9]'; then
    echo "    sudo apt-get install rustup && rustup default stable" >&2
else
    echo "    curl https://sh.rustup.rs -sSf | sh -s -- -y && . ~/.cargo/env" >&2
fi
exit 1
