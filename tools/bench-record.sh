#!/bin/bash
# What does recording cost the CPU that is recorded? Microseconds per event, against `perf record` of the same events in
# the same run. `perf bench sched pipe` on one CPU makes four events a round, two switches and two wake-ups; its CPU time
# is taken, and the least of five counts, because whatever else runs here only adds. RECORD_ROUNDS is how many rounds
# (200,000). Usage: tools/bench-record.sh KVMSCOPE
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

work="taskset -c $(($(nproc) - 1)) perf bench -f simple sched pipe -l $rounds"
cat >"$scratch/work" <<END
#!/bin/bash
TIMEFORMAT='%3U %3S'
{ time $work >/dev/null 2>&1; } 2>"$scratch/cpu"
END
chmod +x "$scratch/work"

# CPU seconds, user and system, of the work below COMMAND...
seconds() {
    "$@" >/dev/null 2>"$scratch/errors" || {
        echo "failed: $*: $(tail -1 "$scratch/errors")" >&2
        return 1
    }
    awk '{ printf "%.3f", $1 + $2 }' "$scratch/cpu"
}
least() {
    printf '%s\n' "$@" | sort -n | head -1
}

# perf may not enable all of irq_vectors; those left out are rare.
events=(-e sched:sched_switch -e sched:sched_waking -e irq:irq_handler_entry -e irq:irq_handler_exit -e irq:softirq_entry
    -e irq:softirq_exit -e 'irq_vectors:local_timer_*' -e 'irq_vectors:reschedule_*' -e timer:hrtimer_expire_entry)
[ -d /sys/kernel/tracing/events/kvm ] && events+=(-e 'kvm:*')

alone=() ours=() perfs=()
for round in 1 2 3 4 5; do
    alone+=("$(seconds "$scratch/work")")
    ours+=("$(seconds "$kvmscope" record --no-self-check --buffer-size 16M --journal "$scratch/journal" \
        -o "$scratch/new$round" -- "$scratch/work")")
    perfs+=("$(seconds perf record -a -k mono -m 16M "${events[@]}" -o "$scratch/perf.data" -- "$scratch/work")")
done
echo "$what"
echo "  alone     ${alone[*]} CPU s   $work"
echo "  perf      ${perfs[*]} CPU s   perf record -a -k mono -m 16M, the same events"
echo "  kvmscope  ${ours[*]} CPU s   kvmscope record --buffer-size 16M"
awk -v alone="$(least "${alone[@]}")" -v ours="$(least "${ours[@]}")" -v perf="$(least "${perfs[@]}")" \
    -v events=$((4 * rounds)) 'BEGIN {
    ours = (ours - alone) * 1e6 / events
    perf = (perf - alone) * 1e6 / events
    printf "  cost      kvmscope %.2f us per event, perf %.2f us per event", ours, perf
    if (ours <= 0 || perf <= 0) printf "\n            less than the noise of this run: repeat it on an idle machine"
    printf "\n\n"
}'
