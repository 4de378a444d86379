#!/bin/bash
# first-answer.sh [PROGRAM]: the first answer: one nested VMX guest without VMCS shadowing, then the beginning of the same with shadowing.
set -euo pipefail
cd "$(dirname "$0")/.."

program=${1:-target/quick/kvmscope}
"$program" report fixtures/nested-vmx-shadow-off-hog
echo
echo "---- the same guest with VMCS shadowing on, in short ----"
"$program" report fixtures/nested-vmx-shadow-on | sed '/^ [A-Z][A-Z]/,$d'
echo "Whole: $program report fixtures/nested-vmx-shadow-on   Your own trace: $program report trace.dat"
