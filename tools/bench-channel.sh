#!/bin/bash
# What does the ring carry, against DPDK's rte_ring with the same frames copied in, out and looked at, and against memif?
#
# In turn, on the same two CPUs, frames of 64 bytes in batches of 32 over 1,024 slots. Of each peer the best tenth of its slices of time
# counts, so that a busy moment spoils none of them. Usage: tools/bench-channel.sh KVMSCOPE, a full build. CHANNEL_ROUNDS is how many (5).
set -euo pipefail

kvmscope=$1
rounds=${CHANNEL_ROUNDS:-5}
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
cpus=$(($(nproc) - 2)),$(($(nproc) - 1))

for ((round = 0; round < rounds; round++)); do
    if [ -n "$peer" ]; then
        "$peer" "${cpus%,*}" "${cpus#*,}" 64 32 1024 400 2>/dev/null | grep '^[0-9]' | sort -n |
            awk '{ rate[NR] = $1 } END { print "rte_ring", rate[int(NR * 0.9)] }'
    fi
    for path in ring memif; do
        "$kvmscope" bench channel --only rates --path $path --window none --size 64 --batch 32 --seconds 0.4 --launches 1 --cpus "$cpus" \
            --same-core --no-record --json --no-progress >"$scratch/answer.json" || [ $? = 3 ]
        python3 - "$path" "$scratch/answer.json" <<'END'
import json, sys

sections = json.load(open(sys.argv[2]))["sections"]
table = next(section for section in sections if section["id"] == "channel")["tables"].get("rates", {"columns": [], "rows": []})
names = [column["name"] for column in table["columns"]]
for row in (dict(zip(names, cells)) for cells in table["rows"]):
    if row["window_kind"] == "measured":
        print(sys.argv[1], row["clean_mpps"] or row["raw_mpps"], sum(row[wrong] or 0 for wrong in ("lost", "duplicated", "reordered", "torn")))
END
    done
done | tee "$scratch/all" | awk '{ print "  " $1 " " $2 " Mpps" }'
python3 - "$scratch/all" <<'END'
import statistics, sys

rates = {}
wrong = 0
for line in open(sys.argv[1]):
    name, rate, *rest = line.split()
    rates.setdefault(name, []).append(float(rate))
    wrong += sum(map(int, rest))
ring = statistics.median(rates["ring"])
print(f"  ring: {ring:.1f} Mpps verified, {wrong} frames wrong; bars: 65 where both CPUs run undisturbed, 0")
print(f"  a frame moves 66 bytes, one line of data and a 32nd of one of descriptors; at that rate {ring * 66 / 1e3:.1f} GB/s")
for name, own in rates.items():
    if name != "ring":
        print(f"  ratio     {ring / statistics.median(own):.2f} times {name} (bar: at least 1)")
END
