#!/bin/bash
# Fleets: does a second worker help, does a recording cost the same among 100 as among 1,000, does the driver's memory stay, and do all engines
# agree? Prints times, the load beside them, and ratios; start-up of engines apart. FLEET_RECORDINGS is the size of the larger fleet (1000),
# FLEET_PROFILE the cargo profile (release). Spark is left out without Java.
set -euo pipefail
cd "$(dirname "$0")/.."

profile=${FLEET_PROFILE:-release}
recordings=${FLEET_RECORDINGS:-1000}
flags=()
[ "$profile" = release ] && flags=(--release)
scratch=$(mktemp -d "${TMPDIR:-/tmp}/kvmscope-fleet.XXXXXX")
trap 'rm -rf "$scratch"' EXIT

cargo build --locked --quiet "${flags[@]}" --package kvmscope-generate
cargo build --locked --quiet "${flags[@]}" --package kvmscope-python
target=target/$([ "$profile" = release ] && echo release || echo debug)

venv=${FLEET_VENV:-$scratch/venv}
if [ ! -x "$venv/bin/python" ]; then
    python3 -m venv "$venv"
    wanted=("distributed>=2026.8" "fsspec>=2026.2" "pyarrow>=26")
    command -v java >/dev/null && wanted+=("pyspark>=4.1" "pandas>=2.2")
    "$venv/bin/pip" install --quiet "${wanted[@]}"
fi
# The package as it lies here, with what was just built: no wheel, and nothing is installed.
mkdir -p "$scratch/package"
cp -r python/kvmscope "$scratch/package/"
cp "$target/lib_kvmscope.so" "$scratch/package/kvmscope/_kvmscope.abi3.so"

echo "== fleets: $recordings recordings, $(nproc) CPUs"
"$target/generate" fleet "$scratch/nightly" --recordings "$recordings" --seed 1 >/dev/null
PYTHONPATH=$scratch/package "$venv/bin/python" tools/fleet_bench.py "$scratch" "$recordings"
