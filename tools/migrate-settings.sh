#!/bin/bash
# Eight settings of a live migration, each predicted, made between two QEMUs of this computer and compared: the table of
# docs/read/migration.md. Says at the end how far off the totals were in the middle, how many intervals held, and where the
# naive model (a geometric series of passes) was off by more than three times. Takes two minutes and qemu-system-x86_64.
# MIGRATE_REPEATS (1): how often each is made; the first run counts, and the others stand below it.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v qemu-system-x86_64 >/dev/null; then
    echo "left out: eight settings of a migration need qemu-system-x86_64 (package qemu-system-x86)"
    exit 0
fi
program=${KVMSCOPE:-target/release/kvmscope}
if [ -z "${KVMSCOPE:-}" ]; then
    cargo build --release --locked --quiet --package kvmscope --features labs
fi
scratch=$(mktemp -d "${TMPDIR:-/tmp}/kvmscope-migrate.XXXXXX")
trap 'rm -rf "$scratch"' EXIT

settings=(
    "--ram 128M --hot 32M --rate 8000pages/s --bandwidth 100MB/s --limit 50ms"
    "--ram 256M --hot 64M --rate 24000pages/s --bandwidth 200MB/s --limit 50ms"
    "--ram 256M --hot 64M --rate 22000pages/s --bandwidth 100MB/s --limit 20ms"
    "--ram 256M --hot 15M --rate 40000pages/s --bandwidth 100MB/s --limit 165ms"
    "--ram 512M --hot 64M --rate 12000pages/s --order uniform --bandwidth 50MB/s --limit 300ms"
    "--ram 512M --hot 128M --rate 2000pages/s --bandwidth 50MB/s --limit 20ms"
    "--ram 256M --hot 32M --rate 20000pages/s --order uniform --bandwidth 100MB/s --limit 150ms"
    "--ram 128M --hot 32M --rate 1000pages/s --bandwidth 40MB/s --limit 30ms"
)
number=0
for setting in "${settings[@]}"; do
    read -r -a words <<<"$setting"
    "$program" lab migrate "${words[@]}" --repeats "${MIGRATE_REPEATS:-1}" --cache "$scratch" --output "$scratch/$number" \
        --json >"$scratch/$number.json"
    printf '%s\n' "$setting" >"$scratch/$number.txt"
    number=$((number + 1))
done

python3 - "$scratch" "$number" <<'PYTHON'
import json, statistics, sys

folder, number = sys.argv[1], int(sys.argv[2])
ms = lambda ns: "-" if ns is None else f"{ns / 1e6:,.0f}"
errors, held, naively = [], 0, []
print("| setting | total, predicted (ms) | measured | error | inside | naive | dark, predicted | measured |")
print("|---|---|---|---|---|---|---|---|")
for place in range(number):
    answer = json.load(open(f"{folder}/{place}.json"))
    section = next(one for one in answer["sections"] if one["id"] == "migration")
    said = {one["what"]: one for one in json.load(open(f"{folder}/{place}/L0/prediction.json"))["said"]}
    table = section["tables"]["residuals"]
    names = [column["name"] for column in table["columns"]]
    rows = [dict(zip(names, row)) for row in table["rows"]]
    setting = open(f"{folder}/{place}.txt").read().strip()
    for run in sorted({row["run"] for row in rows}):
        of = {row["what"]: row for row in rows if row["run"] == run}
        total, dark, likely = of["total"], of["downtime"], said["total"]["likely"]
        off = None if likely is None or total["actual"] is None else likely / total["actual"] - 1
        naive = total["naive"]
        if run == 0:
            errors += [abs(off)] if off is not None else []
            held += bool(total["inside"])
            times = None if naive is None or not total["actual"] else max(naive / total["actual"], total["actual"] / naive)
            ours = None if off is None else max(1 + off, 1 / (1 + off))
            naively.append((times, ours))
        print(
            f"| {'`' + setting + '`' if run == 0 else ''} | {ms(total['predicted_low'])}..{ms(likely)}..{ms(total['predicted_high'])} "
            f"| {ms(total['actual'])} | {'-' if off is None else '0%' if abs(off) < 0.005 else f'{off:+.0%}'} | {'yes' if total['inside'] else 'no'} "
            f"| {'never ends' if naive is None else ms(naive)} | {ms(dark['predicted_low'])}..{ms(dark['predicted_high'])} | {ms(dark['actual'])} |"
        )
print()
wrong = [(times, ours) for times, ours in naively if times is None or times > 3]
worst = max((ours for _, ours in wrong if ours), default=None)
print(f"Median error of the total: {statistics.median(errors):.0%}. The interval held in {held} of {number}.")
print(
    f"The naive model was off by more than three times, or said that it never ends, in {len(wrong)} of {number}"
    + (f"; ours there by {worst:.2f} times at most." if worst else ".")
)
PYTHON
