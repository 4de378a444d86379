#!/bin/bash
# What does recording cost the CPU that is recorded? Against `perf record` of the same events in the same run, and against
# `trace-cmd record` where the function tracer is not locked, without which it does not start. CPU time is taken, and the
# least of five counts, because whatever else runs here only adds.
#
#   per event   `perf bench sched pipe` on one CPU makes four events a round, two switches and two wake-ups:
#               microseconds per event. RECORD_ROUNDS is how many rounds (200,000).
#   of a guest  a guest of ours that writes a port, which its VMM takes: how much more CPU time it needs, as a share.
#               RECORD_EXITS is how many exits (50,000).
# Usage: tools/bench-record.sh KVMSCOPE GUEST
set -euo pipefail

kvmscope=$1
guest=$2
rounds=${RECORD_ROUNDS:-200000}
exits=${RECORD_EXITS:-50000}
what="cost of recording, against perf record"
if [ "$(id -u)" != 0 ] || [ ! -d /sys/kernel/tracing ]; then
    echo "left out: $what: it needs root and a kernel with /sys/kernel/tracing"
    exit 0
fi
if ! command -v perf >/dev/null || ! command -v taskset >/dev/null; then
    echo "left out: $what: perf or taskset is not installed (Debian: linux-perf, util-linux)"
    exit 0
fi
scratch=$(mktemp -d "${TMPDIR:-/tmp}/kvmscope-bench.XXXXXX")
mounted=
trap 'rm -rf "$scratch"; [ -z "$mounted" ] || umount /sys/kernel/tracing' EXIT
if [ ! -d /sys/kernel/tracing/instances ]; then
    # perf would mount it too, and leave it mounted.
    mount -t tracefs tracefs /sys/kernel/tracing
    mounted=yes
fi
pinned="taskset -c $(($(nproc) - 1))"

# CPU seconds, user and system, of the work below COMMAND...; what the recorder took itself goes into `own`, by its name.
seconds() {
    local TIMEFORMAT='%3U %3S' name=$1
    case " $* " in *" --stop-on "*) name=--stop-on ;; *" --flight "*) name=--flight ;; esac
    { time "$@" >/dev/null 2>"$scratch/errors"; } 2>"$scratch/all" || {
        echo "failed: $*: $(tail -1 "$scratch/errors")" >&2
        return 1
    }
    [ "$1" = "$scratch/work" ] ||
        awk -v name="$(basename -- "$name")" 'NR == FNR { all = $1 + $2; next } { print name, all - $1 - $2 }' \
            "$scratch/all" "$scratch/cpu" >>"$scratch/own"
    awk '{ printf "%.3f", $1 + $2 }' "$scratch/cpu"
}

least() {
    printf '%s\n' "$@" | sort -n | head -1
}

# perf may not enable all of irq_vectors; those left out are rare.
events=(-e sched:sched_switch -e sched:sched_waking -e irq:irq_handler_entry -e irq:irq_handler_exit -e irq:softirq_entry
    -e irq:softirq_exit -e 'irq_vectors:local_timer_*' -e 'irq_vectors:reschedule_*' -e timer:hrtimer_expire_entry)
[ -d /sys/kernel/tracing/events/kvm ] && events+=(-e 'kvm:*')

# A budget that is judged and that nothing breaks.
cat >"$scratch/budget.toml" <<END
schema = "kvmscope.budget/1"
name = "bench"
[[goal]]
id = "window"
metric = "preempt_window"
stat = "sup"
window = "1ms"
op = "<="
limit = "1ms"
END

# The same for trace-cmd, if it records here.
cmds=()
for event in "${events[@]}"; do
    [ "$event" = -e ] || cmds+=(-e "${event%:\*}")
done
if ! command -v trace-cmd >/dev/null; then
    echo "left out: trace-cmd record: it is not installed (Debian: trace-cmd)"
    cmds=()
elif ! trace-cmd record -q -e sched:sched_switch -o "$scratch/try.dat" true >/dev/null 2>"$scratch/errors"; then
    echo "left out: trace-cmd record: it does not record here: $(tail -1 "$scratch/errors")"
    cmds=()
fi

# measure WORK: sets alone, perfs, ours, flights (the flight recorder), judges (with a budget) and traces, the CPU seconds of each run, and prints them.
measure() {
    local work=$1 round
    cat >"$scratch/work" <<END
#!/bin/bash
TIMEFORMAT='%3U %3S'
{ time $work >/dev/null 2>&1; } 2>"$scratch/cpu"
END
    chmod +x "$scratch/work"
    alone=() ours=() flights=() judges=() perfs=() traces=()
    : >"$scratch/own"
    for round in 1 2 3 4 5; do
        alone+=("$(seconds "$scratch/work")")
        ours+=("$(seconds "$kvmscope" record --no-self-check --no-snapshot --buffer-size 16M \
            --journal "$scratch/journal" -o "$scratch/new" -- "$scratch/work")")
        rm -rf "$scratch/new"
        flights+=("$(seconds "$kvmscope" record --flight --keep 2s --no-self-check --no-snapshot --buffer-size 16M \
            --journal "$scratch/journal" -o "$scratch/new" -- "$scratch/work")")
        rm -rf "$scratch/new"
        judges+=("$(seconds "$kvmscope" record --flight --keep 2s --stop-on "$scratch/budget.toml" --no-self-check --no-snapshot \
            --buffer-size 16M --journal "$scratch/journal" -o "$scratch/new" -- "$scratch/work")")
        rm -rf "$scratch/new"
        perfs+=("$(seconds perf record -a -k mono -m 16M "${events[@]}" -o "$scratch/perf.data" -- "$scratch/work")")
        [ ${#cmds[@]} = 0 ] ||
            traces+=("$(seconds trace-cmd record -q -b 16384 "${cmds[@]}" -o "$scratch/trace.dat" "$scratch/work")")
    done
    echo "  alone     ${alone[*]} CPU s   $work"
    echo "  perf      ${perfs[*]} CPU s   perf record -a -k mono -m 16M, the same events"
    [ ${#cmds[@]} = 0 ] || echo "  trace-cmd ${traces[*]} CPU s   trace-cmd record -b 16384, the same events"
    echo "  kvmscope  ${ours[*]} CPU s   kvmscope record --buffer-size 16M"
    echo "  --flight  ${flights[*]} CPU s   kvmscope record --flight --keep 2s --buffer-size 16M"
    echo "  --stop-on ${judges[*]} CPU s   the same with --stop-on a budget that nothing breaks"
    sort "$scratch/own" | awk '{ if (!($1 in least) || $2 < least[$1]) least[$1] = $2 }
        END { printf "  itself   "; for (name in least) printf " %s %.3f", name, least[name]; print " CPU s, all of the run" }'
}

# cost UNIT FACTOR: what each recorder added, times FACTOR (which may name `alone`, the time without any), and our share of it.
cost() {
    awk -v alone="$(least "${alone[@]}")" -v ours="$(least "${ours[@]}")" -v flight="$(least "${flights[@]}")" -v perf="$(least "${perfs[@]}")" \
        -v trace="$([ ${#traces[@]} = 0 ] || least "${traces[@]}")" -v unit="$1" '
        function against(name, other) {
            other = (other - alone) * '"$2"'
            printf ", %s %.2f %s", name, other, unit
            if (ours <= 0 || other <= 0) noise = 1
            else ratios = ratios sprintf("%s%.2f of %s", ratios == "" ? "" : ", ", ours / other, name)
        }
        BEGIN {
            ours = (ours - alone) * '"$2"'
            flight = (flight - alone) * '"$2"'
            printf "  cost      kvmscope %.2f %s, with --flight %.2f %s", ours, unit, flight, unit
            against("perf", perf)
            if (trace != "") against("trace-cmd", trace)
            if (ratios != "") printf "\n  ratio     kvmscope costs %s", ratios
            if (noise) printf "\n            less than the noise of this run: repeat it on an idle machine"
            printf "\n\n"
        }'
}

echo "$what: per event"
measure "$pinned perf bench -f simple sched pipe -l $rounds"
cost "us per event" "1e6 / (4 * $rounds)"

if [ -w /dev/kvm ]; then
    echo "$what: of a guest with kvm events on"
    measure "$pinned $guest port-out $exits"
    cost "% of the guest's CPU time" "100 / alone"
else
    echo "left out: $what: of a guest: /dev/kvm is not there or may not be opened"
    echo
fi
