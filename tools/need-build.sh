#!/bin/bash
# Is there what a build needs: a Rust toolchain of at least `rust-version`, and a C compiler for zstd?
# As root on Debian the C compiler is installed; a toolchain never is, that is the user's choice.
# --lint: and the toolchain's formatter and linter? They are components of rustup, which adds them.
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

tools/packages.sh build
if ! command -v cc >/dev/null; then
    echo "There is no C compiler; zstd needs one." >&2
    exit 1
fi

if [ "${1:-}" = --lint ]; then
    for component in rustfmt clippy; do
        cargo "${component/rustfmt/fmt}" --version >/dev/null 2>&1 || rustup component add "$component" || {
            echo "\`make lint\` needs $component. Type: rustup component add $component (Debian: ${component/clippy/rust-clippy})" >&2
            exit 1
        }
    done
fi
