#!/bin/bash
# The QEMU of Debian's backports, beside the installed one and without changing it: unpacked into target/qemu-backports, where tests of
# `lab migrate` look for it. Prints the path of the program.
set -euo pipefail
cd "$(dirname "$0")/.."

place=$PWD/target/qemu-backports
program=$place/root/usr/bin/qemu-system-x86_64
if [ ! -x "$program" ]; then
    release=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
    if ! command -v apt-get >/dev/null || ! command -v qemu-system-x86_64 >/dev/null; then
        echo "It takes the libraries of an installed QEMU of Debian. Type: sudo apt-get install qemu-system-x86" >&2
        exit 1
    fi
    mkdir -p "$place/lists/partial" "$place/archives/partial"
    for suite in "$release-backports" "$release"; do
        echo "deb http://deb.debian.org/debian $suite main"
    done >"$place/sources.list"
    apt() {
        apt-get -qq -o Dir::Etc::sourcelist="$place/sources.list" -o Dir::Etc::sourceparts=- -o Dir::State::lists="$place/lists" \
            -o Dir::Cache="$place" -o Dir::Cache::archives="$place/archives" "$@" </dev/null >&2
    }
    apt update
    apt install -y -t "$release-backports" --download-only --no-install-recommends qemu-system-x86
    for package in "$place"/archives/*.deb; do
        dpkg-deb -x "$package" "$place/root"
    done
    rm -rf "$place/lists" "$place/archives"
    "$program" --version >/dev/null
fi
echo "$program"
