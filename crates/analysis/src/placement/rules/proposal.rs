//! The rule whose findings are placements to choose from.

use super::Rule;
use crate::placement::checks::proposed;
use base::Needs;

/// One finding for each placement that is shown.
pub const RULES: &[Rule] = &[Rule {
    id: "PLC-PROPOSAL",
    check: proposed::proposed,
    why: "By the model of shares this placement leaves less wanted and not given; the one that brings most for each \
          command stands first. If this is wrong: the model knows shares of CPUs, not caches or locks; `kvmscope apply \
          --trial 60` measures.",
    fix: &[],
    undo: &[],
    needs: Needs::Nothing,
    source: "docs/placement.md, the score; Documentation/scheduler/sched-design-CFS.rst, Linux 6.12",
}];
