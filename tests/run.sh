#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Runs every check and every test that needs no GPU, says in one line what each came to, and ends in a sum.
#
# The whole output of each step is kept in target/test/; what failed is shown here as well.
set -u
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
logs=target/test
mkdir -p $logs
passed=0 failed=0

# step NAME COMMAND...: one check; counts as one test.
step() {
    name=$1 begin=$(date +%s)
    shift
    if "$@" >"$logs/$name.log" 2>&1; then
        passed=$((passed + 1)) word=ok
    else
        failed=$((failed + 1)) word=FAILED
    fi
    printf '%-10s %-30s %5d s\n' "$name" $word $(($(date +%s) - begin))
    [ $word = ok ] || tail -40 "$logs/$name.log"
}

# count NAME PATTERN COMMAND...: a test runner; its passed and failed tests are added up.
# A run that fails without counting a failure (it did not compile, say) counts as one.
count() {
    name=$1 begin=$(date +%s)
    shift
    "$@" >"$logs/$name.log" 2>&1
    status=$?
    p=$(grep -aE '^(test result:|=*.* in [0-9.]+s)' "$logs/$name.log" | grep -oE '[0-9]+ passed' | awk '{n += $1} END {print n + 0}')
    f=$(grep -aE '^(test result:|=*.* in [0-9.]+s)' "$logs/$name.log" | grep -oE '[0-9]+ (failed|error|errors)\b' | awk '{n += $1} END {print n + 0}')
    [ $status -ne 0 ] && [ "$f" -eq 0 ] && f=1
    [ $status -eq 0 ] && [ "$p" -eq 0 ] && f=1 && echo "no test ran" >>"$logs/$name.log"
    passed=$((passed + p)) failed=$((failed + f))
    printf '%-10s %-30s %5d s\n' "$name" "$p passed, $f failed" $(($(date +%s) - begin))
    [ "$f" -eq 0 ] || grep -aE '^(FAILED|ERROR|error|test .* FAILED|---- )|panicked at|^E  ' "$logs/$name.log" | head -60
    [ "$f" -eq 0 ] || tail -40 "$logs/$name.log"
}

step format $cargo fmt --all --check
step clippy $cargo clippy --quiet --workspace --all-targets -- -D warnings
step doc env RUSTDOCFLAGS="-D warnings" $cargo doc --quiet --no-deps --workspace
# What is to be published builds by itself. Not optimised: it is not run.
step package $cargo package --offline --allow-dirty -p h5z-gpu --config profile.dev.opt-level=0
count rust $cargo test --workspace --no-fail-fast
step fields make --no-print-directory target/fields/small/done
count hosts env HDF5_PLUGIN_PATH="$PWD/target/plugin" .env/bin/python -m pytest -q -n 2 --dist loadfile -p no:cacheprovider tests/hosts

echo
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
