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
install -m 755 packaging/scripts/* "$staged/DEBIAN"
install -D -m 644 packaging/lintian-overrides "$staged/usr/share/lintian/overrides/kvmscope"
cat >"$staged/usr/share/doc/kvmscope/copyright" <<TEXT
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: kvmscope
Source: $repository

Files: *
Copyright: The $owner authors
License: MIT or Apache-2.0
Comment: What it has of others, and under which licences, is in THIRD-PARTY beside this file.

License: MIT
$(sed 's/^$/./; s/^/ /' LICENSE-MIT)

License: Apache-2.0
 On Debian the text is in /usr/share/common-licenses/Apache-2.0.
TEXT
rm "$staged"/usr/share/doc/kvmscope/LICENSE*
gzip -9n "$staged/usr/share/doc/kvmscope/THIRD-PARTY"
mv "$staged/usr/share/doc/kvmscope/CHANGELOG.md" "$staged/usr/share/doc/kvmscope/changelog"
gzip -9n "$staged/usr/share/doc/kvmscope/changelog"
printf 'kvmscope (%s-1) stable; urgency=medium\n\n  * See changelog.gz.\n\n -- %s  %s\n' "$version" "$maintainer" "$(date -R)" |
    gzip -9n >"$staged/usr/share/doc/kvmscope/changelog.Debian.gz"
(cd "$staged" && find usr -type f -exec md5sum {} + >DEBIAN/md5sums)
dpkg-deb --root-owner-group ${KVMSCOPE_PACK_FAST:+-Znone} --build "$staged" "$dist/kvmscope_$version-1_amd64.deb" >/dev/null
