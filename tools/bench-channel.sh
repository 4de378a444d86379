#!/bin/bash
# What does the ring carry, against DPDK's rte_ring with the same frames copied in, out and looked at, and against memif?
#
# In turn, on the same two CPUs, frames of 64 bytes in batches of 32 over 1,024 slots. Rates are those of slices of time that nobody
# disturbed: ours and memif's are the bench's clean ones; rte_ring does not see who disturbs it, and has the best tenth of its slices. Usage: tools/bench-channel.sh KVMSCOPE, a full build. CHANNEL_ROUNDS is how many (5).
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
cpus=$(python3 -c 'import os; print(*sorted(os.sched_getaffinity(0))[-2:], sep=",")')

for ((round = 0; round < rounds; round++)); do
    if [ -n "$peer" ]; then
        if "$peer" "${cpus%,*}" "${cpus#*,}" 64 32 1023 400 >"$scratch/slices" 2>"$scratch/errors"; then
            grep '^[0-9]' "$scratch/slices" | sort -n | awk '{ rate[NR] = $1 } END { print "rte_ring", rate[int(NR * 0.9)], 0 }'
        else
            echo "left out: rte_ring: $(tail -1 "$scratch/errors")" >&2
        fi
    fi
    for path in ring memif; do
        "$kvmscope" bench channel --only rates --path $path --window none --size 64 --batch 32 --seconds 0.4 --launches 1 --cpus "$cpus" \
            --same-core --no-record --json --no-progress >"$scratch/answer.json" || case $? in 1 | 3) ;; *) exit 1 ;; esac
        python3 - "$path" "$scratch/answer.json" <<'END'
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
    done
done | tee "$scratch/all" | awk '{ print "  " $1 " " $2 " Mpps" }'
python3 - "$scratch/all" <<'END'
import statistics, sys

rates = {}
wrong = {}
for line in open(sys.argv[1]):
    name, rate, *rest = line.split()
    rates.setdefault(name, []).append(float(rate))
    wrong[name] = wrong.get(name, 0) + sum(map(int, rest))
if "ring" not in rates:
    sys.exit("  the ring was not measured")
ring = statistics.median(rates["ring"])
print(f"  ring: {ring:.1f} Mpps verified, {wrong['ring']} frames wrong; bars: 65 where both CPUs run undisturbed, 0")
print(f"  a frame moves 66 bytes, one line of data and a 32nd of one of descriptors; at that rate {ring * 66 / 1e3:.1f} GB/s")
for name, own in rates.items():
    if name != "ring":
        print(f"  ratio     {ring / statistics.median(own):.2f} times {name} (bar: at least 1)")
END
