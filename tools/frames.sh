#!/bin/bash
# How fluid is the dashboard's timeline over a recording of some ten million events, and over hosts with 64 and 256 vCPUs?
# Prints, in Chromium over the program's own server, how long it takes to open, how long frames take while a hand pans and
# zooms, the requests and the memory of that, and how long a letter takes in the filter of a table.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! tools/dashboard.sh --able || [ ! -d crates/generate ]; then
    echo "left out: frame times need npm with Node.js 20.19 or newer, and the generator"
    exit 0
fi
tools/dashboard.sh >/dev/null
KVMSCOPE_UI_STAMP=$(tools/dashboard.sh --stamp) \
    cargo build --release --locked --quiet --package kvmscope --features full
cargo build --release --locked --quiet --package kvmscope-generate
scratch=$(mktemp -d "${TMPDIR:-/tmp}/kvmscope-frames.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
# A generated event takes some 44 bytes.
target/release/generate --huge 450MB --output "$scratch/ten-million.dat" >/dev/null
for vcpus in 64 256; do
    target/release/generate --vcpus "$vcpus" --huge 64MB --output "$scratch/$vcpus-vcpus.dat" >/dev/null
done
E2E_BIG="$scratch" KVMSCOPE=target/release/kvmscope node ui/e2e/run.mjs panned
