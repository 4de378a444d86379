#!/bin/bash
# What does the ring carry, against DPDK's rte_ring with the same frames copied in, out and looked at, and against memif?
#
# In turn, on the same two CPUs, frames of 64 bytes in batches of 32 over 1,024 slots. Rates are those of slices of time that nobody
# disturbed: ours and memif's are the bench's clean ones; rte_ring does not see who disturbs it, and has the best tenth of its slices.
# A host changes its speed from one second to the next, so each peer is held against the ring just before and just after it, in many
# short rounds; the ratio is the median of theirs. Usage: tools/bench-channel.sh KVMSCOPE, a full build. CHANNEL_ROUNDS is how many (12).
set -euo pipefail

kvmscope=$1
rounds=${CHANNEL_ROUNDS:-12}
what="packets between two processes"
for program in gcc pkg-config python3; do
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
peer=
if pkg-config --exists libdpdk; then
    # shellcheck disable=SC2046
    gcc -O3 -o "$scratch/rte_ring" "$(dirname "$0")/peers/rte_ring.c" $(pkg-config --cflags --libs libdpdk)
    peer=$scratch/rte_ring
else
    echo "left out: rte_ring: DPDK's headers are not installed (Debian: libdpdk-dev)"
fi
cpus=$(python3 -c 'import os; print(*sorted(os.sched_getaffinity(0))[-2:], sep=",")')

of_rte_ring() {
    [ -n "$peer" ] || return 0
    if "$peer" "${cpus%,*}" "${cpus#*,}" 64 32 1023 200 >"$scratch/slices" 2>"$scratch/errors"; then
        grep '^[0-9]' "$scratch/slices" | sort -n | awk '{ rate[NR] = $1 } END { print "rte_ring", rate[int(NR * 0.9)], 0 }'
    else
        echo "left out: rte_ring: $(tail -1 "$scratch/errors")" >&2
    fi
}
of_path() {
    "$kvmscope" bench channel --only rates --path "$1" --window none --size 64 --batch 32 --seconds 0.2 --launches 1 --cpus "$cpus" \
        --same-core --no-record --json --no-progress >"$scratch/answer.json" || case $? in 1 | 3) ;; *) exit 1 ;; esac
    python3 - "$1" "$scratch/answer.json" <<'END'
import json, sys

sections = json.load(open(sys.argv[2]))["sections"]
table = next(section for section in sections if section["id"] == "channel")["tables"].get("rates", {"columns": [], "rows": []})
names = [column["name"] for column in table["columns"]]
rows = table["rows"]
if not rows:
    unknown = [one["text"] for section in sections if section["id"] == "channel" for one in section["unknown"]]
    print(f"left out: {sys.argv[1]}: {' '.join(unknown)}", file=sys.stderr)
for row in (dict(zip(names, cells)) for cells in table["rows"]):
    if row["window_kind"] == "measured" and (row["clean_mpps"] or row["raw_mpps"]):
        print(sys.argv[1], row["clean_mpps"] or row["raw_mpps"], sum(row[wrong] or 0 for wrong in ("lost", "duplicated", "reordered", "torn")))
END
}
for ((round = 0; round < rounds; round++)); do
    of_path ring
    of_rte_ring
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
for peer in dict.fromkeys(name for name, *_ in runs if name != "ring"):
    ratios = []
    for at, (name, rate, _) in enumerate(runs):
        beside = [runs[other][1] for other in (at - 1, at + 1) if 0 <= other < len(runs) and runs[other][0] == "ring"]
        if name == peer and beside:
            ratios.append(statistics.mean(beside) / rate)
    least = sum(ratio >= 1 for ratio in ratios)
    print(f"  ratio     {statistics.median(ratios):.2f} times {peer} (bar: at least 1), which {least} of {len(ratios)} rounds reached")
END
