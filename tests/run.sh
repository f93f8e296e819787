#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Runs every check and every test that needs no GPU, says in one line what each came to, and ends in a sum.
# With the argument `check`, the rules of CONTRIBUTING.md alone, without tests.
#
# Of the long matrices of tests/hosts a third runs, and kernels are compiled for one architecture of three:
# three commits in a row run all of them. With the argument `all` everything runs: all thirds and architectures; random
# models run longer and the kernels in every order of threads (H5Z_GPU_TEST_LONG=1); then readers, packages and other
# machines, which want more tools and a network.
#
# The whole output of each step is kept in target/test/; what failed is shown here as well.
set -u
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
logs=target/test
mkdir -p $logs
passed=0 failed=0
# One unit of code a crate, no line numbers for backtraces, nothing kept for the next edit: a build from nothing takes
# less than half the processor time.
export CARGO_PROFILE_DEV_CODEGEN_UNITS=1 CARGO_PROFILE_DEV_DEBUG=0 CARGO_INCREMENTAL=0

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

# added WORDS: the sum of the numbers before these words in the last lines of a test runner.
added() {
    grep -aE '^(test result:|=*.* in [0-9.]+s)' "$logs/$name.log" | grep -oE "[0-9]+ $1" |
        awk '{n += $1} END {print n + 0}'
}

# count NAME COMMAND...: a test runner; its passed and failed tests are added up.
# A run that fails without counting a failure (it did not compile, say) counts as one.
count() {
    name=$1 begin=$(date +%s)
    shift
    "$@" >"$logs/$name.log" 2>&1
    status=$?
    p=$(added passed) f=$(added '(failed|error|errors)\b')
    [ $status -ne 0 ] && [ "$f" -eq 0 ] && f=1
    [ $status -eq 0 ] && [ "$p" -eq 0 ] && f=1 && echo "no test ran" >>"$logs/$name.log"
    passed=$((passed + p)) failed=$((failed + f))
    printf '%-10s %-30s %5d s\n' "$name" "$p passed, $f failed" $(($(date +%s) - begin))
    [ "$f" -eq 0 ] ||
        grep -aE '^(FAILED|ERROR|error|test .* FAILED|---- )|panicked at|^E  ' "$logs/$name.log" | head -60
    [ "$f" -eq 0 ] || tail -40 "$logs/$name.log"
}

# finish: the sum of all steps, and the end of the program.
finish() {
    echo
    echo "$passed passed, $failed failed"
    [ $failed -eq 0 ]
    exit
}

if [ "${1:-}" = all ]; then
    export H5Z_GPU_TEST_LONG=1
    unset H5Z_GPU_TEST_THIRD
elif [ "${H5Z_GPU_TEST_LONG:-}" != 1 ] && [ -z "${H5Z_GPU_TEST_THIRD:-}" ]; then
    # The number of commits; where the clone holds a few of them alone, the commit's name.
    if [ "$(git rev-parse --is-shallow-repository 2>/dev/null)" = false ]; then
        number=$(git rev-list --count HEAD)
    else
        number=$((0x0$(git rev-parse HEAD 2>/dev/null | cut -c-7)))
    fi
    export H5Z_GPU_TEST_THIRD=$((number % 3))
    # Kernels take two core-minutes an architecture, which the stand-in for a GPU then has. The Makefile names those of
    # this machine's GPUs.
    [ -n "${H5Z_GPU_ARCHS:-}" ] || H5Z_GPU_ARCHS=$(echo "70 80 90+PTX" | cut -d ' ' -f $((number % 3 + 1)))
    FAKE_CUDA_CAPABILITY=$(echo "$H5Z_GPU_ARCHS" | sed 's/[+,].*//')
    export H5Z_GPU_ARCHS FAKE_CUDA_CAPABILITY
    [ "${1:-}" = check ] ||
        echo "Of the hosts' long matrices: third $H5Z_GPU_TEST_THIRD of 0, 1, 2; kernels for $H5Z_GPU_ARCHS" \
            "(make test-all: all of them)"
fi

python=.env/bin/python
environments=
[ "${1:-}" = check ] || { make --no-print-directory environments & environments=$!; }
step clippy $cargo clippy --quiet --workspace --all-targets -- -D warnings
step doc env RUSTDOCFLAGS="-D warnings" $cargo doc --quiet --no-deps --workspace
[ -z "$environments" ] || wait $environments || exit
step columns $python tests/check/lengths.py columns
step lines $python tests/check/lengths.py lines
step functions $python tests/check/lengths.py functions
step formats $python tests/check/lengths.py formats
step words $python tests/check/words.py
step figures $python tests/check/figures.py
step imports $python tests/check/imports.py
step rustfmt $cargo fmt --all --check
step clang-format sh -c "git ls-files '*.cu' '*.cuh' | xargs .env/bin/clang-format --dry-run -Werror"
step ruff .env/bin/ruff check
step mypy .env/bin/mypy --config-file plugin/python/pyproject.toml
step licences $python tests/check/licences.py
count checks $python -m pytest -q -p no:cacheprovider tests/check
# Among the tests it runs with the others, for which the library is optimised.
[ "${1:-}" != check ] || count arrows $cargo test --quiet -p h5z-gpu --test imports --config profile.dev.opt-level=0
[ "${1:-}" != check ] || finish

# The plugin that the programs of tests/hosts load is of the tests' profile, with the checks of a debug build. It has a
# folder of its own: nobody installs it by mistake.
export INTO=$logs/built PROFILE=dev
# The application of tests/hdf5 by itself, as the pages say: beside the others its dependencies get other features, and
# would be compiled twice. What codes no millions of values is not optimised.
plain=$(printf -- '--config profile.dev.package.h5z-gpu-%s.opt-level=0 ' fuzz preload program tools)
# With h5z-gpu-tools the library has the features that it has in the tests, and is not compiled again.
export PARTS="$plain $(printf -- '-p h5z-gpu-%s ' plugin preload program tools)"
count rust $cargo test --workspace --exclude h5z-gpu-hdf5-tests --no-fail-fast $plain
count rust-hdf5 $cargo test -p h5z-gpu-hdf5-tests --no-fail-fast
step plugin make --no-print-directory $INTO/plugin/libh5zgpu.so
step fields make --no-print-directory target/fields/small/done
count hosts env HDF5_PLUGIN_PATH="$PWD/$INTO/plugin" \
    $python -m pytest -q -n 2 --dist loadfile --durations=40 -p no:cacheprovider tests/hosts
if [ "${1:-}" = all ]; then
    unset INTO PROFILE PARTS
    for part in java big-endian wine musl miri check-copies check-packages "fuzz SECONDS=170"; do
        step ${part% *} make --no-print-directory $part
    done
    echo
    echo "Ran: rules, Rust, hosts with all matrices, java, big-endian, wine, musl, miri, check-copies," \
        "check-packages, fuzz."
    echo "Not run: make release, make bench, a long fuzz, and the kernels on a GPU (CONTRIBUTING.md, The GPU record)."
fi
finish
