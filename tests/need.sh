#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Sees to it that programs and headers from Debian packages are there.
#
#     tests/need.sh COMMAND-OR-FILE=PACKAGE ...
#
# Root gets what is missing installed; anybody else gets the exact command to run, and status 1.
# A name with a slash is a file that must exist; %multiarch stands for Debian's directory of this machine's libraries.
set -eu
missing=
for pair in "$@"; do
    thing=${pair%%=*} package=${pair#*=}
    case $thing in
    */*) [ -e "$(echo "$thing" | sed "s|%multiarch|$(cc -print-multiarch 2>/dev/null || true)|")" ] && continue ;;
    py:*) python3 -c "import ${thing#py:}" 2>/dev/null && continue ;;
    *) command -v "$thing" >/dev/null && continue ;;
    esac
    case " $missing " in *" $package "*) ;; *) missing="$missing $package" ;; esac
done
[ -z "$missing" ] && exit 0
if ! command -v apt-get >/dev/null; then
    echo "Missing, and there is no apt-get to install it:$missing" >&2
    exit 1
fi
if [ "$(id -u)" != 0 ]; then
    echo "Missing Debian packages. Please run:" >&2
    echo "    sudo apt-get update && sudo apt-get install --no-install-recommends$missing" >&2
    exit 1
fi
echo "installing$missing"
log=$(mktemp)
export DEBIAN_FRONTEND=noninteractive
if ! { apt-get update && apt-get install -y --no-install-recommends $missing; } >"$log" 2>&1; then
    tail -20 "$log" >&2
    exit 1
fi
rm -f "$log"
