#!/bin/bash
# memory.sh GB: how much memory does a report on a trace of GB gigabytes take?
#
# Counted is anonymous memory (RssAnon): pages of the mapped file are the kernel's to drop. Sampled while it runs.
set -euo pipefail
cd "$(dirname "$0")/.."

gigabytes=$1
if [ ! -d crates/generate ]; then
    echo "left out: memory needs the generator"
    exit 0
fi
cargo build --release --locked --quiet --package kvmscope --package kvmscope-generate
scratch=$(mktemp -d "${TMPDIR:-/tmp}/kvmscope-memory.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
target/release/generate --huge "${gigabytes}GB" --output "$scratch/trace.dat" >/dev/null

peak_kb=0
start=$EPOCHREALTIME
target/release/kvmscope report --json "$scratch/trace.dat" >/dev/null 2>"$scratch/errors" &
reporting=$!
while read -r _ kb _ < <(grep RssAnon "/proc/$reporting/status" 2>/dev/null); do
    if [ "$kb" -gt "$peak_kb" ]; then
        peak_kb=$kb
    fi
    sleep 0.02
done
if ! wait "$reporting"; then
    echo "failed: report on $gigabytes GB: $(tail -1 "$scratch/errors")"
    exit 1
fi
echo "memory of report on a large trace (bar: 2000 MB for 10 GB)"
awk -v start="$start" -v end="$EPOCHREALTIME" -v bytes="$(stat -c %s "$scratch/trace.dat")" -v kb="$peak_kb" 'BEGIN {
    printf "  input     %.1f GB of ring-buffer pages from the generator\n", bytes / 1e9
    printf "  kvmscope  %.1f MB anonymous at most, in %.1f s\n", kb / 1000, end - start
}'
