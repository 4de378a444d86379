#!/bin/bash
# memory.sh GB: how much memory does each answer about a trace of GB gigabytes take?
#
# Counted is anonymous memory (RssAnon): pages of the mapped file are the kernel's to drop. Sampled while it runs. An answer
# that takes more than MEMORY_MB (1000) is named and fails this script: no output may grow with the trace. The trace and the
# largest output need GB gigabytes and some 500 MB below TMPDIR.
set -euo pipefail
cd "$(dirname "$0")/.."

gigabytes=$1
most_mb=${MEMORY_MB:-1000}
if [ ! -d crates/generate ]; then
    echo "left out: memory needs the generator"
    exit 0
fi
# Parquet and Arrow are in the full build alone; where it is not what was built last, they are left out.
features=()
if [ -d ui/dist-report ]; then
    features=(--features kvmscope/full)
fi
cargo build --release --locked --quiet --package kvmscope --package kvmscope-generate "${features[@]}"
scratch=$(mktemp -d "${TMPDIR:-/tmp}/kvmscope-memory.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
trace=$scratch/trace.dat
target/release/generate --huge "${gigabytes}GB" --output "$trace" >/dev/null

# measured NAME ARGUMENT...: runs kvmscope, prints its peak and its time; what it wrote is removed.
failed=
measured() {
    local name=$1 peak_kb=0 start=$EPOCHREALTIME kb
    shift
    mkdir "$scratch/out"
    target/release/kvmscope "$@" >/dev/null 2>"$scratch/errors" &
    local running=$!
    while read -r _ kb _ < <(grep RssAnon "/proc/$running/status" 2>/dev/null); do
        if [ "$kb" -gt "$peak_kb" ]; then
            peak_kb=$kb
        fi
        sleep 0.02
    done
    local status=0
    wait "$running" || status=$?
    # 3: a goal of the budget is broken, which is an answer.
    if [ "$status" -ne 0 ] && [ "$status" -ne 3 ]; then
        echo "  $name failed: $(tail -1 "$scratch/errors")"
        failed+=" $name"
    fi
    awk -v name="$name" -v start="$start" -v end="$EPOCHREALTIME" -v kb="$peak_kb" -v out="$(du -sb "$scratch/out" | cut -f1)" \
        'BEGIN { printf "  %-24s %7.1f MB anonymous at most, in %.1f s; wrote %.1f MB\n", name, kb / 1000, end - start, out / 1e6 }'
    if [ "$peak_kb" -gt $((most_mb * 1000)) ]; then
        failed+=" $name"
    fi
    rm -rf "$scratch/out"
}

echo "memory of answers about a large trace (bar: $most_mb MB)"
awk -v bytes="$(stat -c %s "$trace")" 'BEGIN { printf "  input %.1f GB of ring-buffer pages from the generator\n", bytes / 1e9 }'
out=$scratch/out
measured "report --json" report --json --no-progress "$trace"
measured "report --budget" report --json --no-progress --budget kvm4nfv-2015 "$trace"
measured "report --html" report --no-progress --html "$out/page.html" "$trace"
measured "report --csv" report --no-progress --csv "$out/tables" "$trace"
measured "export --perfetto" export --no-progress "$trace" --perfetto "$out/web.pftrace"
measured "export --speedscope" export --no-progress "$trace" --speedscope "$out/web.speedscope.json"
measured "export --folded" export --no-progress "$trace" --folded "$out/web.folded"
# What lies before a late window is read and not kept.
target/release/kvmscope report --no-progress --csv "$scratch/tables" "$trace" >/dev/null
late_s=$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "wall_ns") wall = i }
    NR == 2 { print $wall / 1e9 * 0.99 }' "$scratch/tables/flow.vcpus.csv")
measured "export --perfetto, late" export --no-progress "$trace" --from "$late_s" --perfetto "$out/late.pftrace"
measured "export --csv" export --no-progress "$trace" --csv "$out/tables"
if [ "${#features[@]}" -gt 0 ]; then
    measured "export --parquet" export --no-progress "$trace" --parquet "$out/columns"
    measured "export --arrow" export --no-progress "$trace" --arrow "$out/columns"
fi
if [ -n "$failed" ]; then
    echo "failed:$failed"
    exit 1
fi
