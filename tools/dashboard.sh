#!/bin/bash
# Build the dashboard's files, ui/dist, which cargo embeds into the program and never makes itself.
# --stamp: print what tells these files from others, or nothing; cargo embeds anew when it changes.
# --able: whether there is what builds and tests it.
# --test: lint, unit tests, and every view in Chromium over the server of target/debug/kvmscope, which `cargo test` with the feature
# `full` has built; says what it lacks for that.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "${1:-}" = --stamp ]; then
    if [ -d ui/dist ]; then
        (cd ui/dist && find . -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum) | sha256sum | cut -c1-16
    fi
    exit 0
fi

if [ ! -f ui/package.json ]; then
    echo "There is no ui/ here: the program is built without the dashboard." >&2
    exit 0
fi
lacks() {
    local folder
    mkdir -p target
    if ! folder=$(tools/node.sh 2>target/node.reason); then
        tail -1 target/node.reason
    elif ! PATH=$folder:$PATH install_packages >/dev/null 2>&1; then
        echo "its packages cannot be installed here"
    fi
}
# Only when the list or Node.js has changed. Not `npm ci`: it wants a line for every platform of every optional tool, and registries may lack some.
install_packages() {
    local wanted
    wanted=$(sha256sum ui/package.json ui/package-lock.json && node --version)
    [ -f ui/node_modules/wanted ] && [ "$(cat ui/node_modules/wanted)" = "$wanted" ] && return
    (cd ui && npm install --no-save --no-audit --no-fund </dev/null) && echo "$wanted" >ui/node_modules/wanted
}
if [ "${1:-}" = --able ]; then
    [ -z "$(lacks)" ]
    exit
fi
if [ "${1:-}" = --test ]; then
    lacks=$(lacks)
    if [ -n "$lacks" ]; then
        echo "skipped: npm: $lacks; the dashboard was not tested"
        exit 0
    fi
    PATH=$(tools/node.sh):$PATH
    cd ui
    npm run lint
    npm test
    cd ..
    # Chromium ends its requests with ERR_NETWORK_CHANGED when an interface comes or goes, and tests beside this one make some: in a namespace with
    # nothing but loopback none does.
    alone=()
    if unshare --net ip link set lo up 2>/dev/null; then
        alone=(unshare --net sh -c 'ip link set lo up && exec "$@"' sh)
    fi
    export KVMSCOPE=target/debug/kvmscope
    "${alone[@]}" node ui/e2e/run.mjs
    "${alone[@]}" node --experimental-websocket ui/e2e/firefox.mjs
    exit
fi

lacks=$(lacks)
if [ -n "$lacks" ]; then
    echo "The dashboard cannot be built: $lacks. \`make run\` builds the program without it." >&2
    exit 1
fi
PATH=$(tools/node.sh):$PATH
cd ui
# Only when a source has changed, or what was built is gone.
sources=$({ node --version && find . \( -path ./node_modules -o -path './dist*' \) -prune -o -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum; } | sha256sum)
if [ "$(cat dist-report/sources 2>/dev/null)" != "$sources" ] || [ ! -f dist/index.html ]; then
    npm run build
    echo "$sources" >dist-report/sources
fi
