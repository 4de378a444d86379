//! The rule whose findings are placements to choose from.

use super::Rule;
use crate::placement::checks::proposed;

/// The rule whose findings are whole placements.
pub(crate) const PROPOSAL: &str = "PLC-PROPOSAL";

/// One finding for each placement that is shown.
pub(super) const RULES: &[Rule] = &[Rule {
    id: PROPOSAL,
    per: "placement",
    looks_at: "Placements of all vCPUs, helpers, interrupts and polling threads, scored by the model; those with a \
        better score than the current one.",
    why: "By the model of CPU shares, threads get no less CPU time with this placement than now, whatever they wait for \
        already, and something that it prices costs less: waiting, remote memory, interrupts on vCPUs; the placement with the largest gain per \
        command comes first. Caveat: the model covers CPU shares, not caches or locks; `kvmscope apply --trial 60` \
        measures the effect.",
    source: "docs/read/placement.md, the score; Documentation/scheduler/sched-design-CFS.rst, Linux 6.12",
    ..Rule::checked_by(proposed::proposed)
}];
