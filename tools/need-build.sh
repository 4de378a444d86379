#!/bin/bash
# Is there what a build needs: a Rust toolchain of at least `rust-version`, and a C compiler for zstd?
# As root on Debian the C compiler is installed; a toolchain never is, that is the user's choice.
set -euo pipefail
cd "$(dirname "$0")/.."

wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)

if ! command -v cargo >/dev/null; then
    cat >&2 <<TEXT
There is no Rust toolchain here; $wanted or newer is needed. Type

    curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y --profile minimal
    . "\$HOME/.cargo/env"

(or, where the distribution has it: apt-get install rustup && rustup default stable), then this command again.
TEXT
    exit 1
fi

found=$(rustc --version | cut -d' ' -f2)
oldest=$(printf '%s\n' "$wanted" "${found%%-*}" | sort -V | head -1)
if [ "$oldest" != "$wanted" ]; then
    echo "rustc is $found; $wanted or newer is needed. Type: rustup update stable" >&2
    exit 1
fi

if ! command -v cc >/dev/null; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        apt-get update -qq </dev/null
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq gcc libc6-dev </dev/null
    else
        echo "There is no C compiler; zstd needs one. Type: sudo apt-get install gcc libc6-dev" >&2
        exit 1
    fi
fi
