#!/bin/bash
# What takes too long for `.ci/run`: documentation; the slim program of `make run`; `make dist`; a fresh Debian 12 in which both commands of the README run
# (tools/fresh.sh). And long trials: each parser fuzzed for two hours (TORTURE_FUZZ_SECONDS), as many at once as there are CPUs; property tests with
# 5,000 cases each (TORTURE_CASES), forty times as many generated traces and the slow nested labs, VMX and Linux
# (KVMSCOPE_TORTURE); topologies of the real machines that hwloc and util-linux test with; 200 recorders killed (TORTURE_KILLS); the memory of reports, pages and exports on 10 GB (TORTURE_GB); frame
# times of the dashboard's timeline over some ten million events; the channel's rules under valgrind, and all of its tests
# with the address sanitizer, where the toolchain has it.
set -euo pipefail
cd "$(dirname "$0")/.."

tools/packages.sh build test dashboard python dist fuzz torture
KVMSCOPE_TORTURE=1 tools/oracles.sh
RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps
make run
# The slim program says where the rest is.
for command in 'serve fixtures' 'export fixtures/nested-svm-toy --parquet target/columns'; do
    # shellcheck disable=SC2086
    answer=$(target/quick/kvmscope $command 2>&1 || true)
    grep -q 'make full' <<<"$answer"
done
make dist
tools/fresh.sh
KVMSCOPE_KILLS="${TORTURE_KILLS:-200}" KVMSCOPE_TORTURE=1 PROPTEST_CASES="${TORTURE_CASES:-5000}" tools/test.sh
if command -v valgrind >/dev/null; then
    # What starts processes of its own, or waits for a clock, is left to the run without it.
    CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER="valgrind -q --error-exitcode=9" \
        cargo test --locked --package kvmscope-channel --features thorough --test hostile -- rules:: --skip rule_3 --test-threads=1
fi
# The address sanitizer comes with the toolchain for some targets; what turns it on is not stable, and rustc has to be told.
host=$(rustc -vV | sed -n 's/^host: //p')
if compgen -G "$(rustc --print sysroot)/lib/rustlib/$host/lib/*_rt.asan.a" >/dev/null; then
    # A window that has closed ends a process by a signal, which the tests look for.
    ASAN_OPTIONS=handle_segv=0:handle_sigbus=0 RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address cargo test --locked --package kvmscope-channel --features thorough --target "$host" \
        --target-dir target/asan --lib --test hostile --test flows --test frames --test machines
else
    echo "skipped: address sanitizer: this toolchain has none for $host"
fi
tools/trees.sh
tools/memory.sh "${TORTURE_GB:-10}"
tools/frames.sh
FUZZ_SECONDS="${TORTURE_FUZZ_SECONDS:-7200}" tools/fuzz.sh
