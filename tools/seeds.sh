#!/bin/bash
# Seeds for fuzzing: small inputs that are right, so that damage reaches deep. They come from fuzz/seeds (written by
# hand), from the generator (a few scenarios in each format), and from the bundled recordings (their beginnings).
set -euo pipefail
cd "$(dirname "$0")/.."

# Longer inputs are mutated too slowly.
most_bytes=131072
corpus=fuzz/corpus

for target in fuzz/seeds/*/; do
    mkdir -p "$corpus/$(basename "$target")"
    cp "$target"* "$corpus/$(basename "$target")/"
done

# add TARGET NAME FILE
add() {
    mkdir -p "$corpus/$1"
    head -c "$most_bytes" "$3" >"$corpus/$1/$2"
}

# add_ctf NAME DIRECTORY: the metadata alone, and its length, itself and each stream as one input.
add_ctf() {
    local name=$1 metadata=$2/metadata stream target=ctf_metadata length
    if [ "$(head -c 1 "$metadata" | od -An -tx1 | tr -d ' ')" = 1e ]; then
        target=ctf2_metadata
    fi
    add "$target" "$name" "$metadata"
    length=$(printf '%08x' "$(wc -c <"$metadata")")
    mkdir -p "$corpus/ctf_stream"
    for stream in "$2"/*; do
        if [ -s "$stream" ] && [ -f "$stream" ] && [ "$stream" != "$metadata" ]; then
            {
                printf "\\x${length:6:2}\\x${length:4:2}\\x${length:2:2}\\x${length:0:2}"
                cat "$metadata"
                head -c 16384 "$stream"
            } >"$corpus/ctf_stream/$name-$(basename "$stream")"
        fi
    done
}

if [ -d crates/generate ]; then
    cargo build --release --locked --quiet --package kvmscope-generate
    generated=$(mktemp -d)
    trap 'rm -rf "$generated"' EXIT
    for scenario in plain vmx-refused l3 fastpath halts losses; do
        for format in tracedat6-le-64 tracedat6-be-32 tracedat7-le-64-none tracedat7-le-64-zstd tracedat7-be-32-zlib \
            ctf1-le ctf1-be ctf1-le-lttng ctf2-le ctf2-be perfdata-le perfdata-be text-raw text-printed; do
            name=$scenario-$format
            mkdir -p "$generated/$scenario"
            trace=$(target/release/generate "$scenario" --format "$format" --output "$generated/$scenario")
            case $format in
            tracedat*) add tracedat "$name" "$trace" ;;
            perfdata*) add perfdata "$name" "$trace" ;;
            text*) add text "$name" "$trace" ;;
            ctf*) add_ctf "$name" "$trace" ;;
            esac
            if [ -f "$trace" ]; then
                add answer "$name" "$trace"
            fi
        done
    done
fi

for manifest in fixtures/*/recording.json; do
    if [ -f "$manifest" ]; then
        add manifest "$(basename "$(dirname "$manifest")")" "$manifest"
    fi
done
for plan in fixtures/*/*/plan.toml; do
    if [ -f "$plan" ]; then
        add chain "$(basename "$(dirname "$(dirname "$plan")")")" "$plan"
    fi
done
for trace in fixtures/*/*/trace.dat; do
    if [ -f "$trace" ]; then
        name=$(echo "$trace" | tr / -)
        add tracedat "$name" "$trace"
        add answer "$name" "$trace"
    fi
done
for text in fixtures/seed-vhost/*/notes/* fixtures/hosts-sosreport/sos_commands/*/*; do
    if [ -f "$text" ]; then
        add paste "$(echo "$text" | tr / -)" "$text"
    fi
done
for xml in fixtures/libvirt-xml/*/*.xml fixtures/libvirt-xml/*.xml fixtures/hosts-sosreport/run/libvirt/qemu/*.xml fixtures/seed-vhost/*/notes/*.xml; do
    if [ -f "$xml" ]; then
        add domain_xml "$(echo "$xml" | tr / -)" "$xml"
    fi
done
for database in fixtures/*/etc/openvswitch/conf.db fixtures/*/*/etc/openvswitch/conf.db fixtures/ovs-dummy/*conf.db; do
    if [ -f "$database" ]; then
        add ovsdb "$(echo "$database" | tr / -)" "$database"
    fi
done
for text in fixtures/*/L0/pmd/*.txt; do
    if [ -f "$text" ]; then
        add polled "$(echo "$text" | tr / -)" "$text"
    fi
done
for result in fixtures/*/*/bench/*.json; do
    if [ -f "$result" ]; then
        add bench "$(echo "$result" | tr / -)" "$result"
    fi
done
for result in fixtures/samples/*; do
    if [ -f "$result" ] && [ "$result" != fixtures/samples/README.md ]; then
        add samples "$(basename "$result")" "$result"
    fi
done
for budget in crates/facts/src/budget/builtin/*.toml; do
    add budget "$(basename "$budget")" "$budget"
done

# The files of target sosreport, in its order, a zero byte behind each.
mkdir -p "$corpus/sosreport"
sos=fixtures/hosts-sosreport
gather=$(echo fixtures/hosts-must-gather/*/*/nodes/worker-0)
for file in "$sos"/sos_commands/processor/lscpu_-ae "$sos"/sos_commands/process/ps_-elfL \
    "$sos"/sos_commands/networking/ethtool_-k_eth0 "$sos"/sos_commands/openvswitch/ovs-vsctl_-t_5_show \
    "$sos"/sos_commands/openvswitch/ovs-appctl_dpif-netdev.pmd-rxq-show "$sos"/sos_commands/kernel/sysctl_-a \
    "$sos"/sos_commands/virsh/virsh_-r_dumpxml_web "$sos"/proc/interrupts "$sos"/proc/cmdline none none \
    "$gather"/cpu_affinities.json "$gather"/irq_affinities.json "$gather"/podresources.json; do
    head -c 8192 "$file" 2>/dev/null || true
    printf '\0'
done >"$corpus/sosreport/gathered"

# Archives: a small recording and a tree, as they are (way 0) and packed by the target (way 1).
mkdir -p "$corpus/archive"
for tree in fixtures/hosts-must-gather fixtures/seed-vhost; do
    { printf '\0'; tar -cf - "$tree" | head -c "$most_bytes"; } >"$corpus/archive/$(basename "$tree")-plain"
    { printf '\001'; tar -cf - "$tree" | head -c "$most_bytes"; } >"$corpus/archive/$(basename "$tree")-gzip"
    { printf '\0'; tar -czf - "$tree"; } | head -c "$most_bytes" >"$corpus/archive/$(basename "$tree")-gz"
    if command -v xz >/dev/null; then
        { printf '\0'; tar -cJf - "$tree"; } | head -c "$most_bytes" >"$corpus/archive/$(basename "$tree")-xz"
    fi
done

for session in fixtures/migrate-tcg/L0/qmp/*.jsonl fixtures/migrate-logs/L0/qmp/*; do
    add qmp "$(basename "$session")" "$session"
done

mkdir -p "$corpus/moved"
for part in network heartbeat processes memory; do
    cat "fixtures/migrate-network/L0/$part/0.json" 2>/dev/null || echo
done >"$corpus/moved/one"
