#!/bin/bash
# What does the ring carry, against DPDK's rte_ring with the same frames copied in, out and looked at, and against memif?
#
# On the same two CPUs, frames of 64 bytes in batches of 32 over 1,024 slots. A host changes its speed from one second to the next, so what
# is compared takes turns: both rings every 6 ms between the same two threads (tools/peers/rings); the bench of ring and of memif,
# whose programs take longer to start, in short rounds, each memif held against the ring just before and just after it. Ratios are medians.
# Usage: tools/bench-channel.sh KVMSCOPE, a full build. CHANNEL_TURNS is how many (400), CHANNEL_ROUNDS the same of memif (8).
set -euo pipefail
cd "$(dirname "$0")/.."

kvmscope=$1
turns=${CHANNEL_TURNS:-400}
rounds=${CHANNEL_ROUNDS:-8}
what="packets between two processes"
for program in gcc ar pkg-config python3; do
    command -v "$program" >/dev/null || {
        echo "left out: $what: $program is not installed"
        exit 0
    }
done
if [ "$(nproc)" -lt 2 ]; then
    echo "left out: $what: two CPUs are needed"
    exit 0
fi
scratch=$(mktemp -d "${TMPDIR:-/tmp}/kvmscope-bench.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
cpus=$(python3 -c 'import os; print(*sorted(os.sched_getaffinity(0))[-2:], sep=",")')

if pkg-config --exists libdpdk; then
    cargo build --quiet --release --locked --manifest-path tools/peers/rings/Cargo.toml --target-dir target/peers
    target/peers/release/rings "${cpus%,*}" "${cpus#*,}" 64 32 1024 "$turns" 2>"$scratch/errors" >"$scratch/turns" || {
        tail -1 "$scratch/errors" >&2
        exit 1
    }
    grep -E '^[0-9.]+ [0-9.]+$' "$scratch/turns" >"$scratch/rates"
    python3 - "$scratch/rates" <<'END'
import statistics, sys

turns = [tuple(map(float, line.split())) for line in open(sys.argv[1])]
ratios = [ours / theirs for ours, theirs in turns if theirs > 0]
ours, theirs = (statistics.median(one) for one in zip(*turns))
least = sum(ratio >= 1 for ratio in ratios)
print(f"  in turns of 6 ms: ring {ours:.1f} Mpps, rte_ring {theirs:.1f} Mpps, every frame looked at")
print(f"  ratio     {statistics.median(ratios):.2f} times rte_ring (bar: at least 1), which {least} of {len(ratios)} turns reached")
END
else
    echo "left out: rte_ring: DPDK's headers are not installed (Debian: libdpdk-dev)"
fi

of_path() {
    "$kvmscope" bench channel --only rates --path "$1" --window none --size 64 --batch 32 --seconds 0.3 --launches 1 --cpus "$cpus" \
        --same-core --no-record --json --no-progress >"$scratch/answer.json" || case $? in 1 | 3) ;; *) exit 1 ;; esac
    python3 - "$1" "$scratch/answer.json" <<'END'
import json, sys

sections = json.load(open(sys.argv[2]))["sections"]
channel = next(section for section in sections if section["id"] == "channel")
table = channel["tables"].get("rates", {"columns": [], "rows": []})
names = [column["name"] for column in table["columns"]]
if not table["rows"]:
    print(f"left out: {sys.argv[1]}: {' '.join(one['text'] for one in channel['unknown'])}", file=sys.stderr)
for row in (dict(zip(names, cells)) for cells in table["rows"]):
    if row["window_kind"] == "measured" and (row["clean_mpps"] or row["raw_mpps"]):
        print(sys.argv[1], row["clean_mpps"] or row["raw_mpps"], sum(row[wrong] or 0 for wrong in ("lost", "duplicated", "reordered", "torn")))
END
}
for ((round = 0; round < rounds; round++)); do
    of_path ring
    of_path memif
done | tee "$scratch/all" | awk '{ print "  " $1 " " $2 " Mpps" }'
python3 - "$scratch/all" <<'END'
import statistics, sys

runs = [(name, float(rate), int(wrong)) for name, rate, wrong in map(str.split, open(sys.argv[1]))]
own = [rate for name, rate, _ in runs if name == "ring"]
if not own:
    sys.exit("  the ring was not measured")
ring = statistics.median(own)
wrong = sum(wrong for name, _, wrong in runs if name == "ring")
print(f"  ring: {ring:.1f} Mpps verified, {max(own):.1f} at most, {wrong} frames wrong; bars: 65 where both CPUs run undisturbed, 0")
print(f"  a frame moves 65 bytes, one line of data and a 32nd of a descriptor; at that rate {ring * 65 / 1e3:.1f} GB/s")
ratios = []
for at, (name, rate, _) in enumerate(runs):
    beside = [runs[other][1] for other in (at - 1, at + 1) if 0 <= other < len(runs) and runs[other][0] == "ring"]
    if name == "memif" and beside:
        ratios.append(statistics.mean(beside) / rate)
if ratios:
    least = sum(ratio >= 1 for ratio in ratios)
    print(f"  ratio     {statistics.median(ratios):.2f} times memif (bar: at least 1), which {least} of {len(ratios)} rounds reached")
END
