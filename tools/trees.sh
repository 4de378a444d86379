#!/bin/bash
# Topologies of real machines: hwloc and util-linux test themselves with copies of /proc and /sys, which Debian's source packages
# contain. They are fetched and unpacked into a temporary directory (500 MB), and what we read there is compared with lstopo and lscpu.
set -euo pipefail
cd "$(dirname "$0")/.."

for program in apt-get lstopo-no-graphics lscpu; do
    if ! command -v "$program" >/dev/null; then
        echo "skipped: topologies of real machines: $program is not there"
        exit 0
    fi
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Lists of apt's own need no change of the machine: the same places, as sources of packages.
mkdir -p "$work/lists/partial" "$work/parts" "$work/packages"
cat /etc/apt/sources.list.d/debian.sources 2>/dev/null | sed 's/^Types: .*/Types: deb-src/' >"$work/parts/debian.sources"
grep -hs '^deb .*debian' /etc/apt/sources.list | sed 's/^deb /deb-src /' >"$work/parts/debian.list" || true
cat >"$work/apt.conf" <<END
Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "$work/parts";
Dir::State::lists "$work/lists";
APT::Sandbox::User "root";
END
export APT_CONFIG=$work/apt.conf
if ! { apt-get update -qq && cd "$work/packages" && apt-get source -qq --download-only hwloc util-linux; } </dev/null; then
    echo "skipped: topologies of real machines: the source packages of hwloc and util-linux could not be fetched"
    exit 0
fi
cd - >/dev/null
unset APT_CONFIG

# unpack PROJECT FOLDER: each tree of the folder in the project's archive.
unpack() {
    local source=$work/sources/$1
    mkdir -p "$source" "$work/trees/$1"
    tar -xf "$work"/packages/"$1"_*.orig.tar.* -C "$source" --wildcards "*/$2/*.tar.*"
    find "$source" -name '*.tar.*' -exec tar -xf {} -C "$work/trees/$1" ';'
}
unpack hwloc tests/hwloc/linux
unpack util-linux tests/ts/lscpu/dumps

KVMSCOPE_TREES=$work/trees cargo test --locked --package kvmscope-host --test read -- --ignored --nocapture lstopo::trees_of_real_machines
