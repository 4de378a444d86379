#!/bin/bash
# How long our files are: the median is to stay near 130 lines, and few above 400.
set -euo pipefail
cd "$(dirname "$0")/.."

git ls-files '*.rs' | xargs wc -l | awk '$2 != "total" { print $1, $2 }' | sort -n | awk '
    { lines[NR] = $1; names[NR] = $2; sum += $1; if ($1 > 400) long++ }
    END {
        printf "%d files, %d lines, median %d, p90 %d, above 400 lines: %d\n",
            NR, sum, lines[int((NR + 1) / 2)], lines[int(NR * 0.9)], long
        for (at = NR; at > 0 && lines[at] > 400; at--) printf "  %5d %s\n", lines[at], names[at]
    }'
