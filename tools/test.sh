#!/bin/bash
# Runs all tests, then lists those that were skipped and why.
#
# A test that lacks something prints `skipped: WHAT: REASON` and passes. KVMSCOPE_REQUIRE=trace-cmd,babeltrace2 turns
# that into a failure for what it names: continuous integration must not pass because it tested nothing.
# Arguments go to `cargo test`; without any the whole workspace is tested, the dashboard in a browser, and the Python package: where the
# dashboard can be built the program is the full one, which all then share.
set -euo pipefail
cd "$(dirname "$0")/.."

IFS=', ' read -r -a required <<<"${KVMSCOPE_REQUIRE:-}"
for program in "${required[@]}"; do
    if ! command -v "$program" >/dev/null; then
        echo "KVMSCOPE_REQUIRE names $program, which is not installed" >&2
        exit 1
    fi
done

log=target/test.log
mkdir -p target
all=
if [ $# -eq 0 ]; then
    all=yes
    set -- --workspace --features kvmscope/channel
    if tools/dashboard.sh --able; then
        tools/dashboard.sh
        set -- --workspace --features kvmscope/full
    fi
fi
status=0
# --show-output prints what passed tests said, so that skips can be counted.
cargo test --locked --no-fail-fast "$@" -- --show-output 2>&1 | tee "$log" || status=$?
if [ -n "$all" ]; then
    # NO_COLOR: its closing lines are read below.
    NO_COLOR=1 tools/dashboard.sh --test 2>&1 | tee -a "$log" || status=$?
    NO_COLOR=1 tools/python.sh --test 2>&1 | tee -a "$log" || status=$?
fi

skips=$(grep '^skipped: ' "$log" | sort | uniq -c | sort -rn || true)
count=$(grep -c '^skipped: ' "$log" || true)
# Lines of cargo, of vitest, of the steps in the browser, and of the Python package's tests.
passed=$(awk '/^test result:/ { sum += $4 } /^ +Tests .* passed/ { sum += $(NF - 2) }
    /^[0-9]+ passed, / { sum += $1 } END { print sum + 0 }' "$log")
failed=$(awk '/^test result:/ { sum += $6 } /^ +Tests .* failed/ { sum += $2 }
    /^[0-9]+ passed, / { sum += $3 } END { print sum + 0 }' "$log")
echo
# What failed once more, at the end, and without the stacks: of a long log often only the last lines are kept.
awk '/^failures:$/ { shows = !seen++ } /^test result:/ { seen = shows = 0 }
    /^---- / { lines = 0; stack = 0 } /^stack backtrace:/ { stack = 1 } /^note: Some details/ { stack = 0; next }
    shows && !stack && NF && ++lines <= 20 { print substr($0, 1, 400) }
    /^FAIL |^FAILED |^ERROR |^error(\[|:)/ { print substr($0, 1, 400); indented = /^FAIL /; next }
    indented && /^      / { print substr($0, 1, 400); next } { indented = 0 }' "$log"
echo "$passed tests passed, $failed failed, $count skips"
if [ -n "$skips" ]; then
    echo "$skips"
fi
for program in "${required[@]}"; do
    if grep -q "skipped: $program\b" <<<"$skips"; then
        echo "a test that needs $program was skipped, but KVMSCOPE_REQUIRE names it" >&2
        status=1
    fi
done
exit "$status"
