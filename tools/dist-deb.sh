#!/bin/bash
# dist-deb.sh TREE DIST VERSION SUMMARY: a Debian package of a tree. It depends on nothing: the program is static.
set -euo pipefail
tree=$1 dist=$2 version=$3 summary=$4

# Cargo.toml names the repository; its owner is whom a package's users write to (Debian Policy 5.6.2 wants an address).
repository=$(sed -n 's/^repository = "\(.*\)"/\1/p' "$(dirname "$0")/../Cargo.toml" | head -1)
owner=$(basename "$(dirname "$repository")")
maintainer="The $owner authors <$owner@users.noreply.github.com>"

staged=$(mktemp -d)
trap 'rm -rf "$staged"' EXIT
cp -a "$tree/." "$staged"
chmod 755 "$staged"
mkdir "$staged/DEBIAN"
cat >"$staged/DEBIAN/control" <<TEXT
Package: kvmscope
Version: $version-1
Section: admin
Priority: optional
Architecture: amd64
Maintainer: $maintainer
Homepage: $repository
Installed-Size: $(du -sk --exclude=DEBIAN "$staged" | cut -f1)
Description: $summary
 Reads kernel traces and snapshots of hosts that run virtual machines, nested
 ones too, and reports where the time of every vCPU went, by level, why, and
 which setting to change.
TEXT
(cd "$staged" && find usr -type f -exec md5sum {} + >DEBIAN/md5sums)
dpkg-deb --root-owner-group ${KVMSCOPE_PACK_FAST:+-Znone} --build "$staged" "$dist/kvmscope_$version-1_amd64.deb" >/dev/null
