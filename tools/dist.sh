#!/bin/bash
# Make what is released: one static binary, a .deb and a .rpm with manual pages and completions, and their SHA256SUMS.
# All goes into target/dist. The binary has labs and benches, and the dashboard where npm can build it, else it is the slim one, and is named so.
set -euo pipefail
cd "$(dirname "$0")/.."

version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
target=x86_64-unknown-linux-gnu
dist=target/dist
rm -rf "$dist"
mkdir -p "$dist"

# glibc, linked statically: musl's allocator costs the readers, which decode on several threads, a good part of their speed.
features=(--features channel)
kind=-slim
if tools/dashboard.sh --able; then
    tools/dashboard.sh
    features=(--features full)
    kind=
fi
RUSTFLAGS="-C target-feature=+crt-static" KVMSCOPE_UI_STAMP=$(tools/dashboard.sh --stamp) \
    cargo build --release --locked --package kvmscope --target "$target" "${features[@]}"
built=${CARGO_TARGET_DIR:-target}/$target/release/kvmscope
if ldd "$built" 2>&1 | grep -q '=>'; then
    echo "$built needs shared libraries:" >&2
    ldd "$built" >&2
    exit 1
fi
binary=$dist/kvmscope-$version-x86_64-linux$kind
install -m 755 "$built" "$binary"
strip "$binary"

# The tree that both packages install.
tree=$dist/tree
share=$tree/usr/share
install -D -m 755 "$binary" "$tree/usr/bin/kvmscope"
"$binary" man "$share/man/man1"
gzip -9n "$share"/man/man1/*.1
mkdir -p "$share/bash-completion/completions" "$share/zsh/vendor-completions" "$share/fish/vendor_completions.d"
"$binary" completions bash >"$share/bash-completion/completions/kvmscope"
"$binary" completions zsh >"$share/zsh/vendor-completions/_kvmscope"
"$binary" completions fish >"$share/fish/vendor_completions.d/kvmscope.fish"
install -D -m 644 README.md CHANGELOG.md -t "$share/doc/kvmscope"
install -D -m 644 packaging/kvmscope-agent.service -t "$tree/usr/lib/systemd/system"
install -m 644 LICENSE "$share/doc/kvmscope/copyright"
find "$tree" -type d -exec chmod 755 {} +
find "$tree" -type f ! -name kvmscope -exec chmod 644 {} +

summary="Where a KVM host loses its performance, and what brings it back"
tools/dist-deb.sh "$tree" "$dist" "$version" "$summary"
if command -v rpmbuild >/dev/null; then
    tools/dist-rpm.sh "$tree" "$dist" "$version" "$summary"
elif [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get update -qq </dev/null
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq rpm </dev/null
    tools/dist-rpm.sh "$tree" "$dist" "$version" "$summary"
else
    echo "There is no rpmbuild, so no .rpm is made. Run: sudo apt-get install rpm" >&2
fi
rm -rf "$tree"
(cd "$dist" && sha256sum kvmscope* >SHA256SUMS)
tools/release-notes.sh "$version" >"$dist/RELEASE-NOTES.md"
ls -l "$dist"
