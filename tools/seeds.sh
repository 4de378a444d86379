#!/bin/bash
# Writes the seeds of all fuzz targets to fuzz/corpus; which they are says crates/fuzzed/src/seeds.rs. Tests replay the same.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo run --locked --quiet --package kvmscope-fuzzed --bin seeds -- fuzz/corpus
