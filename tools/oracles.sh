#!/bin/bash
# Programs that tests compare with. As root on Debian those that are missing are installed; elsewhere this says which
# tests will be skipped.
set -euo pipefail
cd "$(dirname "$0")/.."

# program, Debian package, what is compared with it
oracles='
trace-cmd   trace-cmd    trace.dat: every event and field against trace-cmd report -R
babeltrace2 babeltrace2  CTF: every event and field against babeltrace2
perf        linux-perf   perf.data: every event and field against perf script
zstd        zstd         unpacking the large recordings
cpio        cpio         the archive that a lab machine boots from
qemu-system-x86_64 qemu-system-x86 the nested lab: SVM toys, booted, recorded and scored
jitterdebugger jitterdebugger the real-time lab: what its guest measures with
jittersamples jitterdebugger-utils the same
cyclictest  rt-tests     the same
rtla        rtla         the same
lstopo-no-graphics hwloc-nox topologies of generated hosts and of this machine
chromium    chromium     the page of report --html, opened in a browser
java        openjdk-17-jre-headless fleets on Spark, against one process and Dask
'
missing=()
while read -r program package what; do
    if [ -n "$program" ] && ! command -v "$program" >/dev/null; then
        missing+=("$package")
        echo "missing: $program (Debian: $package) - $what"
    fi
done <<<"$oracles"
# Readers of exported files are Python packages, in an environment of their own.
python=target/oracles/bin/python3
packages='perfetto==0.59.1 protobuf pyarrow'
if ! command -v python3 >/dev/null || ! python3 -c 'import ensurepip' 2>/dev/null; then
    missing+=(python3-venv)
fi
python_packages() {
    "$python" -c 'import perfetto.protos, pyarrow' 2>/dev/null && return
    # shellcheck disable=SC2086
    if ! { python3 -m venv target/oracles && "$python" -m pip install --quiet $packages; } </dev/null; then
        echo "missing: Python packages $packages - exports: every slice and cell; the tests that need them are skipped"
    fi
}
# A second QEMU, of another age than the installed one.
second_qemu() {
    tools/qemu-backports.sh >/dev/null 2>&1 || echo "missing: QEMU of backports - lab migrate with a second QEMU; that test is skipped"
}
if [ ${#missing[@]} -eq 0 ]; then
    python_packages
    second_qemu
    exit 0
fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get update -qq </dev/null || true
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "${missing[@]}" </dev/null ||
        echo "some could not be installed; the tests that need them are skipped"
    python_packages
    second_qemu
else
    echo "The tests that need them are skipped. To run them: sudo apt-get install ${missing[*]}"
fi
