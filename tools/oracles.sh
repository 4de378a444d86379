#!/bin/bash
# Programs that tests compare with. As root on Debian those that are missing are installed; elsewhere this says which
# tests will be skipped.
set -euo pipefail
cd "$(dirname "$0")/.."

tools/packages.sh build test dashboard python

# Readers of exported files are Python packages, in an environment of their own.
python=target/oracles/bin/python3
packages='perfetto==0.59.1 protobuf pyarrow'
# shellcheck disable=SC2086
"$python" -c 'import perfetto.protos, pyarrow' 2>/dev/null ||
    { python3 -m venv target/oracles && "$python" -m pip install --quiet --disable-pip-version-check $packages; } </dev/null ||
    echo "missing: Python packages $packages - exports: every slice and cell; the tests that need them are skipped"

# A second QEMU, of another age than the installed one, for a test of torture.
[ -z "${KVMSCOPE_TORTURE:-}" ] || tools/qemu-backports.sh >/dev/null 2>&1 || echo "missing: QEMU of backports - lab migrate with a second QEMU; that test is skipped"
