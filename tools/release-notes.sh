#!/bin/bash
# release-notes.sh VERSION: the section of CHANGELOG.md about that version; of one without a section, what is unreleased.
set -euo pipefail
cd "$(dirname "$0")/.."

notes() { awk -v wanted="$1" '/^## / { on = index($2, wanted) == 1; next } on' CHANGELOG.md; }
text=$(notes "${1:?which version?}")
[ -n "$text" ] || text=$(notes Unreleased)
[ -n "$text" ] || { echo "CHANGELOG.md says nothing of $1" >&2; exit 1; }
printf '# kvmscope %s\n%s\n' "$1" "$text"
