#!/bin/bash
# Runs all tests, then lists those that were skipped and why.
#
# A test that lacks something prints `skipped: WHAT: REASON` and passes. KVMSCOPE_REQUIRE=trace-cmd,babeltrace2 turns
# that into a failure for what it names: continuous integration must not pass because it tested nothing.
# With --compile nothing is run. Other arguments go to `cargo test`; without any the whole workspace is tested, the dashboard in a browser, and the Python package: all in one pool,
# tools/run_tests.py, after one compilation. Where the dashboard can be built the program is the full one, which all then share.
set -euo pipefail
cd "$(dirname "$0")/.."

# Node.js may be one that tools/node.sh took from a registry.
if node=$(tools/node.sh 2>/dev/null) && [ "$(command -v node)" != "$node/node" ]; then
    PATH=$node:$PATH
fi
IFS=', ' read -r -a required <<<"${KVMSCOPE_REQUIRE:-}"
lacks_required() {
    local program
    for program in "${required[@]}"; do
        if ! command -v "$program" >/dev/null; then
            echo "KVMSCOPE_REQUIRE names $program, which is not installed" >&2
            return
        fi
    done
    return 1
}
if [ "${1:-}" != --compile ] && lacks_required; then
    exit 1
fi

log=target/test.log
mkdir -p target
status=0
# --show-output prints what passed tests said, so that skips can be counted.
if [ "${1:---compile}" != --compile ] || ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    cargo test --locked --no-fail-fast "${@:---workspace}" -- --show-output ${KVMSCOPE_TORTURE:+--include-ignored} 2>&1 | tee "$log" || status=$?
else
    features=(--features kvmscope/channel)
    if tools/dashboard.sh --able; then
        tools/dashboard.sh
        features=(--features kvmscope/full)
    fi
    export RUSTC_WRAPPER=${RUSTC_WRAPPER:-$PWD/tools/rustc.sh}
    # Clippy is a compiler: with KVMSCOPE_CLIPPY it compiles what it reads, and a warning is an error.
    others=()
    if [ -n "${KVMSCOPE_CLIPPY:-}" ]; then
        RUSTC_WORKSPACE_WRAPPER=$(command -v clippy-driver)
        export RUSTC_WORKSPACE_WRAPPER CLIPPY_ARGS=-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__
        others=(--examples)
        # The slim program leaves things out, and is as clean. Checked alone: with fewer features, all of it would be compiled once more.
        cargo check --locked --package kvmscope --lib
    fi
    # One compilation for the programs, their tests, and the library of the Python package, which has none (`--all-targets` would make it some).
    built="build --locked --workspace --lib --bins --tests ${others[*]} ${features[*]} --message-format=json-render-diagnostics"
    begun=$SECONDS
    # shellcheck disable=SC2086
    cargo $built >target/tests.json
    [ $# -eq 0 ] || exit 0
    compiling="$((SECONDS - begun)) s: compiling"
    # NO_COLOR: their closing lines are read below.
    python3 tools/run_tests.py target/tests.json "$log" "dashboard=NO_COLOR=1 tools/dashboard.sh --test" \
        "python=NO_COLOR=1 tools/python.sh --test '$built'" || status=$?
    echo "$compiling" | tee -a target/test.times
fi

skips=$(grep '^skipped: ' "$log" | sort | uniq -c | sort -rn || true)
count=$(grep -c '^skipped: ' "$log" || true)
# Lines of cargo, of vitest, of the steps in the browser, and of the Python package's tests.
passed=$(awk '/^test result:/ { sum += $4 } /^ +Tests .* passed/ { sum += $(NF - 2) }
    /^[0-9]+ passed, / { sum += $1 } END { print sum + 0 }' "$log")
failed=$(awk '/^test result:/ { sum += $6 } /^ +Tests .* failed/ { sum += $2 }
    /^[0-9]+ passed, / { sum += $3 } END { print sum + 0 }' "$log")
summary() {
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
            echo "error: a test that needs $program was skipped, but KVMSCOPE_REQUIRE names it"
        fi
    done
}
echo
# `.ci/run` repeats it.
summary | tee target/test.summary
! grep -q '^error: a test that needs' target/test.summary || status=1
exit "$status"
