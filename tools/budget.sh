#!/bin/bash
# budget.sh: are the lines and words of this repository within tools/budget.tsv? Options are counted by a test, crates/cli/tests/offline/option_counts.rs.
# budget.sh minutes SECONDS: is the gate? `.ci/run` ends with it.
set -euo pipefail
cd "$(dirname "$0")/.."

# The rows of a kind: names and limits.
rows() { awk -F'\t' -v kind="$1" '$1 == kind { print $2, $3 }' tools/budget.tsv; }
over() {
    echo "$1: $2, above the $3 of tools/budget.tsv. Lower it, or raise the number in that file with the reason in the commit message." >&2
}

if [ "${1:-}" = minutes ]; then
    while read -r name limit; do
        [ "$2" -gt $((limit * 60)) ] || continue
        over "minutes of the gate ($name)" "$(($2 / 60))" "$limit"
        [ "$name" != fail ] || exit 1
    done < <(rows minutes)
    exit 0
fi

status=0
seen=' '
# check KIND UNIT COUNTER: each name is a pattern of files or folders; the first row that fits one counts. COUNTER FILE.. prints a number.
check() {
    local kind=$1 unit=$2 counter=$3 pattern limit path count
    while read -r pattern limit; do
        for path in $pattern; do
            [[ -e $path && $seen != *" $kind:$path "* ]] || continue
            seen+="$kind:$path "
            count=$("$counter" "$path")
            if [ "$count" -gt "$limit" ]; then
                over "$unit $path" "$count" "$limit"
                status=1
            fi
        done
    done < <(rows "$kind")
}
rust_lines() { git ls-files -z "$1/*.rs" | xargs -0r cat | wc -l; }
words() { wc -w <"$1"; }
check lines "lines of Rust in" rust_lines
check words "words of" words
exit "$status"
