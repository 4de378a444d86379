#!/bin/bash
# dist-rpm.sh TREE DIST VERSION SUMMARY: an RPM package of a tree. It depends on nothing: the program is static.
set -euo pipefail
tree=$(realpath "$1") dist=$(realpath "$2") version=$3 summary=$4

repository=$(sed -n 's/^repository = "\(.*\)"/\1/p' "$(dirname "$0")/../Cargo.toml" | head -1)
owner=$(basename "$(dirname "$repository")")
# scriptlet NAME WORD: Debian's script, called with that word. RPM calls them with the number of versions that remain, and has no purge.
scriptlet() {
    sed "1d; /^set -e/d; s/\"\$1\"/$2/" "packaging/scripts/$1"
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# RPM's distributions keep zsh's completions elsewhere than Debian.
cp -a "$tree" "$work/tree"
mkdir -p "$work/tree/usr/share/zsh/site-functions"
mv "$work/tree/usr/share/zsh/vendor-completions/_kvmscope" "$work/tree/usr/share/zsh/site-functions/_kvmscope"
rmdir "$work/tree/usr/share/zsh/vendor-completions"
cat >"$work/kvmscope.spec" <<TEXT
Name: kvmscope
Version: $version
Release: 1
Summary: $summary
License: MIT OR Apache-2.0
URL: $repository
Vendor: The $owner authors
Packager: The $owner authors <$owner@users.noreply.github.com>
Group: System/Monitoring
AutoReqProv: no
# Who built it is nobody's business.
%define _buildhost reproducible
%define __os_install_post %{nil}
%define _build_id_links none
%description
Reads kernel traces and snapshots of hosts that run virtual machines, nested
ones too, and reports where the time of every vCPU went, by level, why, and
which setting to change.
%post
$(scriptlet postinst configure)
%preun
[ "\$1" != 0 ] || {
$(scriptlet prerm remove)
}
%postun
$(scriptlet postrm remove)
%install
cp -a $work/tree/. %{buildroot}
%files
%attr(755,root,root) /usr/bin/kvmscope
%attr(-,root,root) /usr/share/man/man1/*
%attr(-,root,root) /usr/share/bash-completion/completions/kvmscope
%attr(-,root,root) /usr/share/zsh/site-functions/_kvmscope
%attr(-,root,root) /usr/share/fish/vendor_completions.d/kvmscope.fish
%dir /usr/share/doc/kvmscope
$(for file in LICENSE LICENSE-MIT LICENSE-APACHE THIRD-PARTY; do echo "%license /usr/share/doc/kvmscope/$file"; done)
$(for file in README.md CHANGELOG.md PLATFORM.md docs; do echo "%doc /usr/share/doc/kvmscope/$file"; done)
$([ ! -d "$tree/usr/lib" ] || echo '%attr(-,root,root) /usr/lib/systemd/system/kvmscope-agent.service')
$([ ! -d "$tree/usr/share/kvmscope" ] || echo '%attr(-,root,root) /usr/share/kvmscope')
TEXT
rpmbuild -bb --quiet --target x86_64 ${KVMSCOPE_PACK_FAST:+--define "_binary_payload w1.gzdio"} --define "_topdir $work/rpm" --define "_rpmdir $dist" \
    --define "_rpmfilename kvmscope-$version-1.x86_64.rpm" "$work/kvmscope.spec" >/dev/null
