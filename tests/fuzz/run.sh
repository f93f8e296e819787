#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Fuzzes: run.sh SECONDS JOBS [TARGET...]. All targets share SECONDS of JOBS processes; says what each executed.
#
# BIN is the folder of the programs, SEEDS has a folder for each target, OUT takes logs, new inputs and crashes.
# Status 1 where an input broke a promise: `H5Z_GPU_FUZZ_TARGET=... BIN/fuzz_... OUT/crashes/FILE` shows it again.
set -u
seconds=${1:?seconds} jobs=${2:?jobs}
shift 2
bin=${BIN:?} seeds=${SEEDS:?} out=${OUT:?}
all="header stored szx lorenzo ndzip bytes planes scaled dense part file encode words text json filter calls"
[ $# -gt 0 ] && all="$*"
mkdir -p "$out/crashes" "$out/logs"

# fuzz TARGET SEED SECONDS: goes on after a crash until the time is over, for at most 20 crashes.
fuzz() {
    corpus=$out/corpus/$1
    mkdir -p "$corpus"
    program=fuzz_frames most=4200
    case $1 in
    words | text | json) program=fuzz_words most=300 ;;
    part | file | encode | filter | calls) program=fuzz_calls ;;
    esac
    end=$(($(date +%s) + $3)) try=0
    while left=$((end - $(date +%s))) && [ $left -gt 0 ] && [ $try -lt 20 ]; do
        try=$((try + 1))
        H5Z_GPU_FUZZ_TARGET=$1 "$bin/$program" -max_total_time=$left -max_len=$most -seed=$(($2 + 1000 * try)) \
            -fork=0 -timeout=25 -rss_limit_mb=4096 -malloc_limit_mb=100000 -detect_leaks=0 \
            -print_final_stats=1 -print_funcs=0 -reload=0 \
            -artifact_prefix="$out/crashes/$1-" "$corpus" "$seeds/$1" >"$out/logs/$1.$2.$try" 2>&1
    done
}

# Memory that the words of a file promise may be more than there is: that is an answer, not a crash.
export ASAN_OPTIONS=allocator_may_return_null=1:detect_odr_violation=0
count=$(echo "$all" | wc -w)
rounds=$(((jobs + count - 1) / count))
for slot in $(seq 0 $((jobs - 1))); do
    mine=
    k=0
    for target in $all; do
        for round in $(seq $rounds); do
            [ $((k % jobs)) -ne "$slot" ] || mine="$mine $target:$((k + 1))"
            k=$((k + 1))
        done
    done
    share=$((seconds / $(echo "$mine" | wc -w)))
    for each in $mine; do
        fuzz "${each%:*}" "${each#*:}" $share
    done &
done
wait

sum=0
for target in $all; do
    n=$(cat "$out/logs/$target".* | awk '/^stat::number_of_executed_units/ {n += $2} END {print n + 0}')
    rate=$(cat "$out/logs/$target".* | awk '/^stat::average_exec_per_sec/ {print $2}' | sort -n | tail -1)
    found=$(find "$out/crashes" -name "$target-*" | wc -l)
    printf '%-8s %12d executions %8s a second %4d crashes\n' "$target" "$n" "${rate:-0}" "$found"
    sum=$((sum + n))
done
crashes=$(find "$out/crashes" -type f | wc -l)
echo "$sum executions, $crashes crashes"
[ "$crashes" -eq 0 ] && [ "$sum" -gt 0 ]
