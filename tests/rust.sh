#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Sees to it that cargo is there and new enough.
#
#     tests/rust.sh CARGO
#
# Root of a Debian machine without any Rust gets it installed; anybody else is told the line to type, and status 1.
# The version that is needed stands in Cargo.toml.
set -eu
needed=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)

# reaches VERSION: whether it is as new as needed.
reaches() {
    [ "$(printf '%s\n' "$needed" "${1:-0}" | sort -V | head -n 1)" = "$needed" ]
}

# package: Debian's package with a cargo that is new enough. Debian keeps a newer Rust beside its first one, for
# browsers.
package() {
    for name in cargo cargo-web; do
        version=$(apt-cache policy $name 2>/dev/null | sed -n 's/^ *Candidate: \([0-9.]*\).*/\1/p')
        reaches "$version" && echo $name && return
    done
    return 0
}

found=$("$1" --version 2>/dev/null | cut -d ' ' -f 2) || found=
reaches "$found" && exit 0
if [ -z "$found" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null && ! command -v rustup >/dev/null; then
    apt-get update >/dev/null 2>&1 || true
    name=$(package)
    [ -z "$name" ] || exec tests/need.sh cargo="$name"
fi
[ -n "$found" ] && is="$1 is of $found" || is="there is none"
echo "Rust $needed or newer is needed, and $is. Type:" >&2
name=$(package)
if command -v rustup >/dev/null; then
    echo "    rustup default stable && rustup update stable" >&2
elif [ -n "$name" ]; then
    echo "    sudo apt-get update && sudo apt-get install --no-install-recommends $name" >&2
else
    echo "    curl https://sh.rustup.rs -sSf | sh -s -- -y && . ~/.cargo/env" >&2
fi
exit 1
