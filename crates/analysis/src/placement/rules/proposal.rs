//! The rule whose findings are placements to choose from.

use super::Rule;
use crate::placement::checks::proposed;
use base::Needs;

/// One finding for each placement that is shown.
pub const RULES: &[Rule] = &[Rule {
    id: "PLC-PROPOSAL",
    check: proposed::proposed,
    why: "By the model of CPU shares, threads are short of fewer CPUs with this placement; the placement with the \
        largest gain per command comes first. Caveat: the model covers CPU shares, not caches or locks; `kvmscope \
        apply --trial 60` measures the effect.",
    fix: &[],
    undo: &[],
    needs: Needs::Nothing,
    source: "docs/placement.md, the score; Documentation/scheduler/sched-design-CFS.rst, Linux 6.12",
}];
