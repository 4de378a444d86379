#!/bin/bash
# Build the dashboard's files, ui/dist, which cargo embeds into the program and never makes itself.
# --stamp: print what tells these files from others, or nothing; cargo embeds anew when it changes.
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
if ! command -v npm >/dev/null; then
    echo "npm is needed to build the dashboard (Node.js 20.19 or newer); \`make run\` builds the program without it." >&2
    exit 1
fi
cd ui
# Not `npm ci`: it wants a line for every platform of every optional tool, and registries may lack some.
npm install --no-save --no-audit --no-fund
npm run build
