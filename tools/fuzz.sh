#!/bin/bash
# Fuzzes each parser for FUZZ_SECONDS (30) with coverage, on stable Rust, without a sanitizer of addresses: the code that
# parses is safe Rust, so what can go wrong is a panic, a hang or too much memory.
# Arguments are the targets; without any all run. What is found lies in fuzz/artifacts/TARGET.
set -euo pipefail
cd "$(dirname "$0")/.."

tools/packages.sh fuzz
if ! command -v c++ >/dev/null; then
    echo "There is no C++ compiler; libfuzzer needs one." >&2
    exit 1
fi
seconds=${FUZZ_SECONDS:-30}
# The passes that libFuzzer hears coverage and comparisons from.
coverage="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table
    -Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing"
host=$(rustc -vV | sed -n 's/^host: //p')
# With --target the flags do not reach build scripts.
RUSTFLAGS=$(echo $coverage) cargo build --release --manifest-path fuzz/Cargo.toml --target "$host" \
    --target-dir fuzz/target
tools/seeds.sh

if [ $# -eq 0 ]; then
    set -- $(sed -n 's/^name = "\([a-z0-9_]*\)"$/\1/p' fuzz/Cargo.toml)
fi
fuzz_one() {
    local target=$1 log=fuzz/artifacts/$1.log
    mkdir -p "fuzz/corpus/$target" "fuzz/artifacts/$target"
    if "fuzz/target/$host/release/$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
        -max_len=131072 -print_final_stats=1 -artifact_prefix="fuzz/artifacts/$target/" \
        "fuzz/corpus/$target" >"$log" 2>&1; then
        local runs coverage
        runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
        coverage=$(grep -o 'cov: [0-9]*' "$log" | tail -1 || true)
        echo "$target: $runs inputs in $seconds s, ${coverage:-no coverage}, nothing found"
    else
        tail -40 "$log"
        echo "$target: FOUND SOMETHING (fuzz/artifacts/$target)"
        return 1
    fi
}
export -f fuzz_one
export host seconds
# As many at once as there are CPUs. xargs fails if one of them did.
printf '%s\n' "$@" | xargs -P "$(nproc)" -I TARGET bash -c 'fuzz_one TARGET'
