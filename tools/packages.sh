#!/bin/bash
# packages.sh GROUP..: install what tools/packages.tsv has in these groups and is missing, as root on Debian; elsewhere print it.
# Nothing else in this repository installs Debian packages. Ends well though some are missing: whoever needs them says so.
set -euo pipefail
cd "$(dirname "$0")/.."

is_there() {
    case $1 in
    /*) compgen -G "$1" >/dev/null ;;
    *) command -v "$1" >/dev/null ;;
    esac
}
# Sets `packages` and `lines`. A package that is installed without the file (as where dpkg leaves out documentation) is not missing.
list_missing() {
    local program package group purpose
    packages=() lines=()
    while IFS=$'\t' read -r program package group purpose; do
        [[ $program != '#'* && " $groups " == *" $group "* ]] || continue
        is_there "$program" && continue
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q ' installed$' && continue
        packages+=("$package")
        lines+=("missing: $program (Debian: $package) - $purpose")
    done <tools/packages.tsv
}
apt() {
    # Somebody else's apt-get is waited for. Recommended packages are screens and firmware.
    DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=600 "$@" </dev/null
}
install() { apt install -y --no-install-recommends "$@"; }

groups="$*"
list_missing
[ ${#packages[@]} -gt 0 ] || exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    log=target/packages.log
    mkdir -p target
    echo "Installing ${#packages[@]} Debian packages: ${packages[*]}"
    {
        apt update || true
        # All at once is fastest; apt-get installs none where one of them is unknown.
        install "${packages[@]}" || for package in "${packages[@]}"; do
            install "$package" || echo "error: $package cannot be installed"
        done
    } >"$log" 2>&1
    list_missing
    [ ${#packages[@]} -eq 0 ] || echo "apt-get's words are in $log"
fi
for line in "${lines[@]}"; do
    echo "$line"
done
[ ${#packages[@]} -eq 0 ] || [ "$(id -u)" = 0 ] || echo "To install them: sudo apt-get install --no-install-recommends ${packages[*]@Q}"
