#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Checks and times the GPU code on this machine, prints one page and writes record.toml.
#
#   ./run.sh [RESULTS]      in the folder that `make gpu-bundle` made; RESULTS (default: results) takes what is kept
#   FIELDS=folder           fields that are there already (fields.txt in it); else fields.py makes some
#   PARTS="checks sanitizers values callback bench"    what to run
#
# Needs an NVIDIA GPU, Python 3 with h5py, numpy and PyTorch, and compute-sanitizer.
cd "$(dirname "$0")" || exit 1
results=$(realpath -m "${1:-results}") scratch=$(mktemp -d "${TMPDIR:-/dev/shm}/h5z-gpu.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$results"
parts=${PARTS:-checks sanitizers values callback bench}
export HDF5_PLUGIN_PATH=$PWD/plugin LC_ALL=C
export H5Z_GPU_PLUGIN_PATH=$PWD/plugin PYTHONPATH=$PWD:$PWD/peers${PYTHONPATH:+:$PYTHONPATH}
[ -d /usr/local/nvidia/lib64 ] && export LD_LIBRARY_PATH=/usr/local/nvidia/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
chmod +x gpu_check gpu_bench
record=$results/record.toml failed=0
gpu=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -1)
cat >"$record" <<EOF
# Written by tests/gpu/run.sh; \`make gpu-record-check\` compares \`sources\` with the sources at hand.
sources = "$(cat sources.txt)"
device = "${gpu%%, *}"
driver = "${gpu##*, }"
date = "$(date -u +%F)"

[checks]
EOF
echo "h5z-gpu on $gpu, $(nproc) CPU cores, $(date -u '+%F %H:%M') UTC, sources $(cut -c 1-12 sources.txt)"

# check NAME COMMAND...: one check; its last line goes on the page and into the record.
check() {
    name=$1 begin=$(date +%s)
    shift
    "$@" >"$results/$name.txt" 2>&1
    status=$?
    said=$(grep -v '^$' "$results/$name.txt" | tail -1)
    if [ $status -eq 0 ]; then word=ok; else word=FAILED failed=1; fi
    printf '%-12s %-6s %4d s  %s\n' "$name" $word $(($(date +%s) - begin)) "$said"
    [ $status -eq 0 ] || tail -8 "$results/$name.txt"
    echo "$name = \"$word: $(tr -d '"\\' <<<"$said" | cut -c 1-600)\"" >>"$record"
}

# table NAME COMMAND...: a benchmark; its whole output goes on the page and into the record.
table() {
    name=$1
    shift
    "$@" >"$results/$name.txt" 2>&1 || { echo "$name FAILED" && failed=1; }
    cat "$results/$name.txt"
    printf '%s = """\n%s\n"""\n' "$name" "$(tr -d '\\' <"$results/$name.txt")" >>"$record"
}

if [[ $parts == *checks* ]]; then
    check conformance timeout 120 ./gpu_check --vectors vectors
    check stages timeout 120 ./gpu_check --stages 300 --seed 10
    check parity timeout 180 ./gpu_check --cases 10000 --seed 11
    check parity-salted timeout 120 ./gpu_check --salted 200000 --seed 15
    check parity-large timeout 120 ./gpu_check --cases 100 --largest 4000000 --seed 12
    check arrays timeout 120 ./gpu_check --arrays 6000 --seed 13
    check arrays-large timeout 120 ./gpu_check --arrays 60 --largest 3000000 --seed 14
    check arrays-auto timeout 120 ./gpu_check --arrays 6000 --codec auto --seed 16
    check arrays-python timeout 120 python3 arrays.py . "$scratch" --only check
    check roundtrip timeout 120 python3 roundtrip.py "$scratch"
fi
if [[ $parts == *sanitizers* ]]; then
    sanitizer() {
        check $1 timeout 550 compute-sanitizer --tool $1 --error-exitcode 9 \
            ./gpu_check --cases $2 --largest 6000 --seed 3
    }
    # Racecheck by itself, 0.1 s a chunk and five times that beside the others: a hundred chunks a process, which is
    # begun again where it stalls. Tiles that wait for the ones before them may keep those from running under this tool.
    races() {
        for seed in 3 4 5 6 7 8 9 10; do
            for attempt in 1 2 3 4; do
                timeout 60 compute-sanitizer --tool racecheck --error-exitcode 9 \
                    ./gpu_check --cases 100 --largest 6000 --seed $seed
                status=$?
                [ $status -eq 124 ] || break
            done
            [ $status -eq 0 ] || return $status
        done
    }
    check racecheck races
    # The others side by side, 4 to 20 ms a chunk: none keeps a core or the GPU busy.
    for tool in memcheck initcheck synccheck; do
        sanitizer $tool 4100 &
    done
    check memcheck-arrays timeout 200 compute-sanitizer --tool memcheck --error-exitcode 9 \
        ./gpu_check --arrays 100 --largest 60000 --seed 4 &
    wait
    for name in memcheck racecheck initcheck synccheck memcheck-arrays; do
        grep -q "^$name = \"ok" "$record" || failed=1
    done
fi
if [[ $parts == *values* ]]; then
    check values timeout 260 ./gpu_check --values 1000000000000 --seconds 170 --seed 15
fi
if [[ $parts == *callback* ]]; then
    check samples timeout 120 python3 samples.py "$scratch"
fi
if [[ $parts == *callback* || $parts == *bench* ]]; then
    if [ -z "$FIELDS" ]; then
        FIELDS=$scratch/fields
        python3 fields.py "$FIELDS" >"$results/fields.txt" 2>&1 || { tail -5 "$results/fields.txt" && exit 1; }
    fi
    printf '\n[speed]\n' >>"$record"
fi
if [[ $parts == *callback* ]]; then
    table callback timeout 300 python3 device_buffer.py "$FIELDS" "$scratch"
fi
if [[ $parts == *bench* ]]; then
    table first ./gpu_bench "$FIELDS" --only first
    table device ./gpu_bench "$FIELDS" --only device
    table cliffs ./gpu_bench "$FIELDS" --only cliffs --runs 5
    table decoders ./gpu_bench "$FIELDS" --only decoders --quick
    table batch ./gpu_bench "$FIELDS" --only batch
    table integers ./gpu_bench "$FIELDS" --only integers
    table keep ./gpu_bench "$FIELDS" --only keep --runs 5
    table why ./gpu_bench "$FIELDS" --why
    table lane ./gpu_bench "$FIELDS" --only lane
    table datasets python3 arrays.py "$FIELDS" "$scratch" --reps 5
    table choice python3 arrays.py "$FIELDS" "$scratch" --only choice
    table h5py python3 through_h5py.py "$FIELDS" "$scratch"
    table unchanged python3 unchanged.py --program bin/h5z-gpu --dir "$scratch" --rows "lorenzo;planes;gzip"
fi
[ $failed -eq 0 ] && echo "all well" || echo "SOMETHING FAILED"
exit $failed
