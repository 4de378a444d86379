#!/bin/bash
# Make what is released: one static binary, a .deb and a .rpm with manual pages and completions, and their SHA256SUMS, and check them.
# All goes into target/dist. The binary has labs and benches, and the dashboard where npm can build it, else it is the slim one, and is named so.
# --package BINARY: package and check that program instead of building one, whatever it is linked with, in target/dist-trial.
set -euo pipefail
cd "$(dirname "$0")/.."

version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
target=x86_64-unknown-linux-gnu
tools/packages.sh dist

# pack PROGRAM FOLDER KIND FEATURES: the program, both packages, their sums and the release notes, in a new folder.
pack() {
    local program=$1 dist=$2 binary=$2/kvmscope-$version-x86_64-linux$3 tree=$2/tree share=$2/tree/usr/share documents=$2/tree/usr/share/doc/kvmscope
    rm -rf "$dist"
    mkdir -p "$dist"
    install -m 755 "$program" "$binary"

    # The tree that both packages install.
    install -D -m 755 "$binary" "$tree/usr/bin/kvmscope"
    "$binary" man "$share/man/man1"
    gzip -9n "$share"/man/man1/*.1
    mkdir -p "$share/bash-completion/completions" "$share/zsh/vendor-completions" "$share/fish/vendor_completions.d"
    "$binary" completions bash >"$share/bash-completion/completions/kvmscope"
    "$binary" completions zsh >"$share/zsh/vendor-completions/_kvmscope"
    "$binary" completions fish >"$share/fish/vendor_completions.d/kvmscope.fish"
    # As the README links them; of the pictures only its own.
    install -D -m 644 README.md CHANGELOG.md PLATFORM.md LICENSE LICENSE-MIT LICENSE-APACHE -t "$documents"
    for shelf in use read formats labs; do
        install -D -m 644 "docs/$shelf"/*.md -t "$documents/docs/$shelf"
    done
    install -D -m 644 docs/screenshots/timeline.png -t "$documents/docs/screenshots"
    tools/licences.py kvmscope "kvmscope/$4" >"$documents/THIRD-PARTY"
    # The slim program has no agent.
    if [ -z "$3" ]; then
        install -D -m 644 packaging/kvmscope-agent.service -t "$tree/usr/lib/systemd/system"
        install -D -m 644 packaging/prometheus/kvmscope.rules.yml packaging/grafana/kvmscope.json -t "$share/kvmscope"
    fi
    find "$tree" -type d -exec chmod 755 {} +
    find "$tree" -type f ! -name kvmscope -exec chmod 644 {} +

    local summary="Where a KVM host loses its performance, and what brings it back"
    tools/dist-deb.sh "$tree" "$dist" "$version" "$summary"
    if command -v rpmbuild >/dev/null; then
        tools/dist-rpm.sh "$tree" "$dist" "$version" "$summary"
    else
        echo "There is no rpmbuild, so no .rpm is made." >&2
    fi
    rm -rf "$tree"
    (cd "$dist" && sha256sum kvmscope* >SHA256SUMS)
    tools/release-notes.sh "$version" >"$dist/RELEASE-NOTES.md"
}
# Without debug information; a script has none.
stripped=$(mktemp)
trial=target/dist-trial
trap 'rm -rf "$stripped" "$trial"' EXIT

if [ "${1:-}" = --package ]; then
    strip -o "$stripped" "${2:?which program?}"
    KVMSCOPE_PACK_FAST=yes pack "$stripped" "$trial" "" full
    tools/dist-check.sh "$trial"
    exit
fi

# The packaging is tried before half an hour of building, with a program that has the files and nothing else.
cat >"$stripped" <<'END'
#!/bin/sh
[ "$1" != man ] || { mkdir -p "$2" && touch "$2/kvmscope.1" "$2/kvmscope-report.1"; }
END
KVMSCOPE_PACK_FAST=yes pack "$stripped" "$trial" "" full
tools/dist-check.sh --contents "$trial"

# glibc, linked statically: musl's allocator costs the readers, which decode on several threads, a good part of their speed.
features=channel
kind=-slim
if tools/dashboard.sh --able; then
    tools/dashboard.sh
    features=full
    kind=
fi
RUSTFLAGS="-C target-feature=+crt-static" KVMSCOPE_UI_STAMP=$(tools/dashboard.sh --stamp) \
    cargo build --profile dist --locked --package kvmscope --target "$target" --features "$features"
built=${CARGO_TARGET_DIR:-target}/$target/dist/kvmscope
if ldd "$built" 2>&1 | grep -q '=>'; then
    echo "$built needs shared libraries:" >&2
    ldd "$built" >&2
    exit 1
fi
strip -o "$stripped" "$built"
pack "$stripped" target/dist "$kind" "$features"
tools/dist-check.sh target/dist
ls -l target/dist
