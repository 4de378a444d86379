#!/bin/bash
# How fast, against peers on the same input in the same run? Prints every time measured and the ratio of the medians;
# decides nothing. Three of each, in turn, so that a busy moment hits both.
#
# Input: the large recordings below KVMSCOPE_SHARED (default ../shared), else the bundled ones, which are so small that
# starting the programs weighs more than reading. BENCH_GB is the size of the file that memory is measured on (1).
set -euo pipefail
cd "$(dirname "$0")/.."

shared=${KVMSCOPE_SHARED:-../shared}/traces
cargo build --release --locked --quiet --package kvmscope
cargo build --release --locked --quiet --package kvmscope-trace --example unpack
cargo build --release --locked --quiet --package kvmscope-lab --example guest
kvmscope=target/release/kvmscope
scratch=$(mktemp -d "${TMPDIR:-/tmp}/kvmscope-bench.XXXXXX")
trap 'rm -rf "$scratch"' EXIT

# seconds COMMAND...: wall time; fails if the command does.
seconds() {
    local start=$EPOCHREALTIME
    "$@" >/dev/null 2>"$scratch/errors" || {
        echo "failed: $*: $(tail -1 "$scratch/errors")" >&2
        return 1
    }
    awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.3f", b - a }'
}

median() {
    printf '%s\n' "$@" | sort -n | sed -n 2p
}

# against WHAT BAR INPUT ORDER -- PEER... -- OURS...: three of each in turn. ORDER says which way the ratio goes:
# `faster` is peer / ours, `times` is ours / peer.
against() {
    local what=$1 bar=$2 input=$3 order=$4 peer=() ours=() peers=() mine=() round
    shift 5
    while [ "$1" != -- ]; do
        peer+=("$1")
        shift
    done
    shift
    ours=("$@")
    for round in 1 2 3; do
        peers+=("$(seconds "${peer[@]}")") || return 0
        mine+=("$(seconds "${ours[@]}")") || return 0
    done
    echo "$what (bar: $bar)"
    echo "  input     $input, $(du -shL "$input" | cut -f1)"
    echo "  peer      ${peers[*]} s   ${peer[*]}"
    echo "  kvmscope  ${mine[*]} s   ${ours[*]}"
    awk -v peer="$(median "${peers[@]}")" -v ours="$(median "${mine[@]}")" -v order="$order" 'BEGIN {
        if (order == "faster") printf "  ratio     %.1f times as fast\n\n", peer / ours
        else printf "  ratio     %.2f times as long\n\n", ours / peer
    }'
}

have() {
    command -v "$1" >/dev/null || {
        echo "left out: $1 is not installed (Debian: $2)"
        echo
        return 1
    }
}

linux=$shared/svm_linux_l0.dat
if [ ! -f "$linux" ]; then
    linux=fixtures/svm-linux/L0/trace.dat
    echo "There are no large recordings in $shared; a bundled cut is used, start-up weighs more than reading."
    echo
fi
if have trace-cmd trace-cmd; then
    against "report against trace-cmd report" "at least 50" "$linux" faster \
        -- trace-cmd report "$linux" -- "$kvmscope" report --json "$linux"
fi
against "report against zstd alone, one thread, the same chunks" "at most 2.5" "$linux" times \
    -- target/release/examples/unpack "$linux" -- "$kvmscope" report --json "$linux"

lttng=fixtures/lttng-svm-l0
if [ -f "$shared/lttng_svm_l0.tar.zst" ] && command -v zstd >/dev/null; then
    mkdir "$scratch/lttng"
    tar --zstd -xf "$shared/lttng_svm_l0.tar.zst" -C "$scratch/lttng"
    lttng=$scratch/lttng
fi
if have babeltrace2 babeltrace2; then
    against "report on an LTTng trace against babeltrace2's counter" "at least 15" "$lttng" faster \
        -- babeltrace2 "$lttng" -c sink.utils.counter -- "$kvmscope" report --json "$lttng"
fi

tools/memory.sh "${BENCH_GB:-1}"
tools/bench-record.sh "$kvmscope" target/release/examples/guest

echo
echo "== timeline tiles: 12.5 million slices, against a scan of all of them"
cargo run --release --locked --quiet --package kvmscope-base --example tiles

echo
echo "== placements: a generated host of 256 CPUs and 100 VMs, read and proposed for (bar: 1 s)"
cargo run --release --locked --quiet --package kvmscope-analysis --example placements

echo
echo "== datapaths: 32 lengths of a chain, 12 sizes, 7 paths (bar: 10 ms for the rates)"
cargo run --release --locked --quiet --package kvmscope-analysis --example chains

echo
echo "== channel: frames of 64 bytes in batches of 32 between two processes, against rte_ring and memif"
cargo build --release --locked --quiet --package kvmscope --features full
tools/bench-channel.sh target/release/kvmscope

echo
tools/fleet-bench.sh

echo
echo "== timeline: ten million events, 64 and 256 vCPUs in Chromium (bars: 60 Hz median, no frame above 100 ms, open in 2 s, 400 MB)"
tools/frames.sh
