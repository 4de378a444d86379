#!/bin/bash
# dist-check.sh [--contents] [FOLDER]: install what `make dist` made in a root that has nothing else in it, and do the main job there, as root and as a user.
# Needs root, for chroot; without it, and with --contents, what the packages have in them is all that is checked.
set -euo pipefail
cd "$(dirname "$0")/.."
contents=
if [ "${1:-}" = --contents ]; then
    contents=yes
    shift
fi
dist=${1:-target/dist}

(cd "$dist" && sha256sum --quiet -c SHA256SUMS)
deb=$(ls "$dist"/*.deb)
unit=usr/lib/systemd/system/kvmscope-agent.service
if compgen -G "$dist/*-slim" >/dev/null; then
    unit=
fi
alerts=${unit:+usr/share/kvmscope/kvmscope.rules.yml}
# Into variables first: grep -q ends before a pipe's writer does, which pipefail takes for a failure.
listed=$(dpkg-deb -c "$deb")
for file in usr/bin/kvmscope usr/share/man/man1/kvmscope-report.1.gz usr/share/bash-completion/completions/kvmscope \
    $unit $alerts usr/share/doc/kvmscope/copyright usr/share/doc/kvmscope/THIRD-PARTY.gz usr/share/doc/kvmscope/docs/use/record.md; do
    grep -q " \./$file\$" <<<"$listed" || { echo "$deb lacks $file" >&2; exit 1; }
done
if rpm=$(ls "$dist"/*.rpm 2>/dev/null); then
    listed=$(rpm -qlp "$rpm")
    for file in /usr/bin/kvmscope /usr/share/man/man1/kvmscope-report.1.gz ${unit:+/$unit /$alerts} \
        /usr/share/doc/kvmscope/LICENSE-MIT /usr/share/doc/kvmscope/THIRD-PARTY; do
        grep -qx "$file" <<<"$listed" || { echo "$rpm lacks $file" >&2; exit 1; }
    done
    needed=$(rpm -qRp "$rpm")
    if grep -qv '^rpmlib(\|^/bin/sh$' <<<"$needed"; then
        echo "$rpm depends on other packages" >&2
        exit 1
    fi
fi
[ -z "$contents" ] || exit 0
# A program whose packaging is tried is linked otherwise, and packed to be quick.
if command -v lintian >/dev/null && ! ldd "$(ls "$dist"/*-linux*)" >/dev/null 2>&1; then
    lintian --fail-on error,warning --allow-root "$deb"
fi
if command -v systemd-analyze >/dev/null; then
    systemd-analyze security --offline=true --threshold=39 packaging/kvmscope-agent.service >/dev/null || {
        echo "packaging/kvmscope-agent.service may do more than an agent needs: systemd-analyze security" >&2
        exit 1
    }
fi
[ "$(id -u)" = 0 ] || { echo "skipped: clean root: chroot needs root"; exit 0; }

# Nothing but the package's files, a recording, and a place to write: no shell, no libraries.
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"
dpkg-deb -x "$deb" "$root"
# What is released is static; a program whose packaging is tried brings its libraries.
libraries=$(ldd "$root/usr/bin/kvmscope" 2>/dev/null | grep -o '/[^ ]*' || true)
xargs -r cp -L --parents -t "$root" <<<"$libraries"
cp -r fixtures/nested-vmx-shadow-off-hog "$root/web"
mkdir -m 1777 "$root/tmp"
for user in 0:0 65534:65534; do
    inside() { chroot --userspec="$user" "$root" /usr/bin/kvmscope "$@"; }
    inside --version
    report=$(inside report /web)
    grep -q FLW-SHADOW <<<"$report"
    json=$(inside report --json /web)
    grep -q '"schema": *"kvmscope/1"' <<<"$json"
    inside report --html "/tmp/page-${user%:*}.html" /web >/dev/null
    inside cut /web --to 0.3 -o "/tmp/short-${user%:*}" >/dev/null
    inside report "/tmp/short-${user%:*}" >/dev/null
    if inside report /nosuch 2>/dev/null; then
        echo "a recording that is not there was answered" >&2
        exit 1
    fi
done
echo "installed in an empty root: root and a user get their answers"
