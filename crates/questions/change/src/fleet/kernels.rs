//! Does a kernel cost more than the others on the same CPU?
//!
//! ```text
//! cost of a host's exits relative to the same exits on all hosts with its CPU:   kernel A   0.98 1.01 1.00 ..
//!                                                                                kernel B   1.52 1.47 1.55 ..   ranks differ: B costs more
//! ```
//! Relative to the same exits, by level and reason, so that a host with many expensive exits does not count as an expensive kernel (indirect
//! standardization). A host is one value. Ranks by Mann and Whitney, all kernels together by Holm.

use super::classes::{Host, means};
use facts::statistics::holm;
use facts::statistics::ranks::mann_whitney;
use facts::statistics::spread::median;
use std::collections::BTreeMap;

/// Fewer hosts of a kernel, or of the others, cannot be told from chance.
pub(super) const LEAST_HOSTS: usize = 3;
/// From this ratio on a kernel is worth a finding.
pub(super) const LEAST_RATIO: f64 = 1.1;

/// A kernel on a CPU model, compared with the other kernels there.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Kernel {
    pub(crate) cpu_model: String,
    pub kernel: String,
    pub hosts: usize,
    pub others: usize,
    /// Median of its hosts over that of the others.
    pub ratio: f64,
    pub chance: f64,
    /// It costs more, by more than chance and by enough to matter.
    pub(crate) costs_more: bool,
}

/// Every kernel that can be compared, in the order of CPU models and names.
pub(super) fn kernels(hosts: &[Host<'_>]) -> Vec<Kernel> {
    let mut models: BTreeMap<&str, BTreeMap<&str, Vec<&Host<'_>>>> = BTreeMap::new();
    for host in hosts {
        let (Some(model), Some(kernel)) = (&host.class().cpu_model, &host.class().kernel) else { continue };
        models.entry(model).or_default().entry(kernel).or_default().push(host);
    }
    let mut all = Vec::new();
    for (model, of_kernels) in &models {
        let every: Vec<&Host<'_>> = of_kernels.values().flatten().copied().collect();
        let usual = means(&every);
        let costs =
            |hosts: &[&Host<'_>]| hosts.iter().filter_map(|host| host.relative_cost(&usual)).collect::<Vec<f64>>();
        for (kernel, own) in of_kernels {
            let of_others: Vec<&Host<'_>> =
                of_kernels.iter().filter(|(other, _)| *other != kernel).flat_map(|(_, hosts)| hosts).copied().collect();
            let (own, others) = (costs(own), costs(&of_others));
            if own.len().min(others.len()) < LEAST_HOSTS {
                continue;
            }
            let (Some(mine), Some(theirs), Some(ranks)) = (median(&own), median(&others), mann_whitney(&others, &own))
            else {
                continue;
            };
            all.push(Kernel {
                cpu_model: (*model).to_owned(),
                kernel: (*kernel).to_owned(),
                hosts: own.len(),
                others: others.len(),
                ratio: mine / theirs,
                chance: ranks.p,
                costs_more: false,
            });
        }
    }
    let held = holm::hold(&all.iter().map(|one| one.chance).collect::<Vec<_>>());
    for (one, holds) in all.iter_mut().zip(held) {
        one.costs_more = holds && one.ratio >= LEAST_RATIO;
    }
    all
}
