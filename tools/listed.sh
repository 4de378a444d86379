#!/bin/bash
# A source or a test that no `mod` names is not compiled, and nothing else would say so.
set -euo pipefail
cd "$(dirname "$0")/.."

{
    git grep -E '^ *(pub(\([^)]*\))? )?mod [a-z0-9_]+;' -- 'crates/*.rs' 'channel/*.rs' 'python/*.rs' | sed -E 's/:.*mod ([a-z0-9_]+);.*/ \1/'
    git ls-files 'crates/*.rs' 'channel/*.rs' 'python/*.rs'
} | awk '
    # What cargo finds without a `mod`: crates, programs, and the files that lie in `tests` itself.
    function is_root(file) { return file ~ /\/(main|lib|build)\.rs$|\/(bin|benches|examples)\/|^(crates|channel)\/[^\/]*\/tests\/[^\/]*\.rs$/ }
    NF == 2 {
        folder = $1
        if (is_root($1) || $1 ~ /\/mod\.rs$/) sub(/\/[^\/]*$/, "", folder)
        else sub(/\.rs$/, "", folder)
        named[folder "/" $2] = 1
        next
    }
    !is_root($1) { files[++count] = $1 }
    END {
        for (at = 1; at <= count; at++) {
            module = files[at]
            sub(/(\/mod)?\.rs$/, "", module)
            if (!(module in named)) { print files[at] ": no `mod` names it"; status = 1 }
        }
        exit status
    }' >&2
