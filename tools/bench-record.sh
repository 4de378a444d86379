#!/bin/bash
# What does recording cost the CPU that is recorded? Microseconds per event, against `perf record` of the same events in
# the same run; three of each in turn. `perf bench sched pipe` on one CPU makes four events a round: two switches, two
# wake-ups. RECORD_ROUNDS is how many rounds (200,000). Usage: tools/bench-record.sh KVMSCOPE
set -euo pipefail

kvmscope=$1
rounds=${RECORD_ROUNDS:-200000}
what="cost of recording, against perf record"
if [ "$(id -u)" != 0 ] || [ ! -d /sys/kernel/tracing/instances ]; then
    echo "left out: $what: it needs root and /sys/kernel/tracing"
    exit 0
fi
if ! command -v perf >/dev/null || ! command -v taskset >/dev/null; then
    echo "left out: $what: perf or taskset is not installed (Debian: linux-perf, util-linux)"
    exit 0
fi
scratch=$(mktemp -d "${TMPDIR:-/tmp}/kvmscope-bench.XXXXXX")
trap 'rm -rf "$scratch"' EXIT

cpu=$(($(nproc) - 1))
work=(taskset -c "$cpu" perf bench -f simple sched pipe -l "$rounds")
events=(-e sched:sched_switch -e sched:sched_waking -e irq:irq_handler_entry -e irq:irq_handler_exit -e irq:softirq_entry
    -e irq:softirq_exit -e 'irq_vectors:*' -e timer:hrtimer_expire_entry)
[ -d /sys/kernel/tracing/events/kvm ] && events+=(-e 'kvm:*')

# The first line that is a number: seconds, as `perf bench -f simple` prints them.
seconds() {
    "$@" 2>"$scratch/errors" | awk '/^[0-9.]+$/ { print; exit }'
}
median() {
    printf '%s\n' "$@" | sort -n | sed -n 2p
}

alone=() ours=() perfs=()
for round in 1 2 3; do
    alone+=("$(seconds "${work[@]}")")
    ours+=("$(seconds "$kvmscope" record --no-self-check --buffer-size 16M --journal "$scratch/journal" \
        -o "$scratch/new$round" -- "${work[@]}")")
    perfs+=("$(seconds perf record -a -k mono -m 16M "${events[@]}" -o "$scratch/perf.data" -- "${work[@]}")")
done
echo "$what"
echo "  alone     ${alone[*]} s   ${work[*]}"
echo "  perf      ${perfs[*]} s   perf record -a -k mono -m 16M, the events that kvmscope records"
echo "  kvmscope  ${ours[*]} s   kvmscope record --buffer-size 16M"
awk -v alone="$(median "${alone[@]}")" -v ours="$(median "${ours[@]}")" -v perf="$(median "${perfs[@]}")" \
    -v events=$((4 * rounds)) 'BEGIN {
    ours = (ours - alone) * 1e6 / events
    perf = (perf - alone) * 1e6 / events
    printf "  cost      kvmscope %.2f us per event, perf %.2f us per event", ours, perf
    if (ours > 0) printf ", %.1f times as much", perf / ours
    printf "\n\n"
}'
