#!/bin/bash
# A fresh Debian 12: make its root from nothing in a temporary directory, put a clean clone of HEAD in it, and run the two commands that a newcomer
# runs there, `make run` and `make test`. Needs root. Rust is Debian's (cargo-web) where that is new enough, else the caller's, mounted read-only;
# registries are asked as the caller's settings say. FRESH_COMMANDS are the commands (make run; make test), FRESH_MIRROR is where Debian is.
# Everything is mounted in a mount namespace of its own, which ends with this script; then the root is removed.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "$(id -u)" != 0 ]; then
    echo "skipped: a fresh Debian: only root can make one"
    exit 0
fi
if [ -z "${FRESH_ROOT:-}" ]; then
    tools/packages.sh torture
    FRESH_ROOT=$(mktemp -d "${TMPDIR:-/var/tmp}/kvmscope-fresh.XXXXXX")
    export FRESH_ROOT
    # Whoever still runs in that root is ended, and nothing of this machine is mounted in it when it is removed.
    clean() {
        trap - EXIT
        trap '' INT TERM HUP
        [ -z "${inner:-}" ] || kill -TERM "$inner" 2>/dev/null || true
        local process
        for signal in TERM KILL; do
            for process in /proc/[0-9]*; do
                [ ! "$process/root" -ef "$FRESH_ROOT" ] || kill -"$signal" "${process#/proc/}" 2>/dev/null || true
            done
            sleep 1
        done
        rm -rf --one-file-system "$FRESH_ROOT"
    }
    trap clean EXIT
    trap 'exit 130' INT TERM HUP
    unshare --mount --propagation private "$0" "$@" &
    inner=$!
    wait "$inner"
    exit
fi

root=$FRESH_ROOT
mirror=${FRESH_MIRROR:-$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | grep -o 'http[^ ]*/debian/\?\( \|$\)' | head -1 || true)}
mirror=${mirror:-http://deb.debian.org/debian}
mirror=${mirror%% *}
echo "== Debian 12 from $mirror"
begun=$SECONDS
apt-config dump | grep '^Acquire::\(Check\|http\|https\|Retries\|ForceIPv4\)' >"$root.conf" || true
{
    echo "deb $mirror bookworm main"
    echo "deb $mirror bookworm-updates main"
    echo "deb ${mirror%/}-security bookworm-security main"
} | mmdebstrap --quiet --mode=root --variant=minbase --include=ca-certificates,make --aptopt="$root.conf" bookworm "$root" -
rm "$root.conf"
# No daemon of a package is started.
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
chmod +x "$root/usr/sbin/policy-rc.d"

# A root is a mount point: what makes namespaces (ip netns, unshare, libvirt) changes how mounts spread from there.
mount --bind "$root" "$root"
for folder in proc sys dev; do
    mount --rbind "/$folder" "$root/$folder"
done
mount -t tmpfs tmpfs "$root/run"
cp --remove-destination -L /etc/resolv.conf /etc/hosts "$root/etc/"
# The caller's registries: settings of cargo, pip and npm, and whom they trust.
cp -r /usr/local/share/ca-certificates "$root/usr/local/share/" 2>/dev/null || true
chroot "$root" update-ca-certificates >/dev/null 2>&1
mkdir -p "$root/root/.cargo"
for settings in .cargo/config.toml .npmrc .config/pip; do
    [ ! -e "$HOME/$settings" ] || (cd "$HOME" && cp -r --parents "$settings" "$root/root/")
done
[ ! -e /etc/pip.conf ] || cp /etc/pip.conf "$root/etc/"

# Rust: Debian's, or the caller's.
chroot "$root" apt-get update -qq </dev/null >/dev/null 2>&1
wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
candidate=$(chroot "$root" apt-cache policy cargo-web | sed -n 's/^ *Candidate: \([0-9.]*\).*/\1/p')
path=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
if [ "$(printf '%s\n' "$wanted" "${candidate:-0}" | sort -V | head -1)" = "$wanted" ]; then
    chroot "$root" apt-get install -y -qq --no-install-recommends cargo-web rustc-web </dev/null >/dev/null 2>&1
else
    mkdir -p "$root/opt/rust"
    mount --bind -o ro "$(rustc --print sysroot)" "$root/opt/rust"
    path=/opt/rust/bin:$path
fi
git clone -q --no-hardlinks . "$root/root/kvmscope"
echo "== $((SECONDS - begun)) s: made, with $(PATH=$path chroot "$root" cargo --version)"

# A root of its own and not a change of root alone: perf leaves the latter when it comes back from another mount namespace (setns(2)).
# shellcheck disable=SC2016
inside() {
    unshare --mount --propagation private bash -c \
        'cd "$0" && pivot_root . mnt && exec chroot . bash -c "umount -l /mnt && cd /root/kvmscope && $1"' "$root" "$1"
}

status=0
while read -r command; do
    begun=$SECONDS
    echo "== $command"
    # HOME, PATH and places of the caller's own are not there; everything else of the environment is.
    (
        unset FRESH_ROOT CARGO_HOME RUSTUP_HOME CARGO_TARGET_DIR TMPDIR
        export HOME=/root PATH="$path"
        inside "$command" </dev/null >"$root/root/output" 2>&1
    ) || status=$?
    tail -n "${FRESH_LINES:-60}" "$root/root/output"
    echo "== $((SECONDS - begun)) s: $command, exit $status"
    [ "$status" = 0 ] || break
done <<<"${FRESH_COMMANDS:-make run
make test}"
exit "$status"
