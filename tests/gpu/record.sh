#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Whether tests/gpu/record.toml is of the sources at hand, and every check in it passed. Ends with 1 when not.
cd "$(dirname "$0")" || exit 1
value() { sed -n "s/^$1 = \"\(.*\)\"$/\1/p" record.toml | head -1; }
[ -f record.toml ] || {
    echo "There is no tests/gpu/record.toml: run the bundle of \`make gpu-bundle\` on a machine with a GPU."
    exit 1
}
grep -q '^parity = "ok' record.toml || { echo "tests/gpu/record.toml holds no parity check that passed."; exit 1; }
if grep -n '= "FAILED' record.toml; then
    echo "tests/gpu/record.toml: checks failed in that run."
    exit 1
fi
if [ "$(value sources)" != "$(./sources.sh)" ]; then
    echo "tests/gpu/record.toml is of other sources: run the bundle again. (then $(value sources), now $(./sources.sh))"
    exit 1
fi
echo "tests/gpu/record.toml is of these sources: $(value device), driver $(value driver), $(value date)"
