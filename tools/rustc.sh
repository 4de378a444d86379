#!/bin/bash
# rustc.sh COMPILER ARGUMENT ..: a RUSTC_WRAPPER for tools/test.sh. Tests call what is optimized and need not be optimized themselves, which took a
# quarter of the compiler's time; cargo's profiles have one level for a library and its tests.
set -euo pipefail

arguments=("$@")
case " $* " in
    *" --test "*) arguments=("${arguments[@]/#opt-level=*/opt-level=0}") ;;
esac
exec "${arguments[@]}"
