//! What limits the CPU time of VMs one level below a machine, where both were told.
//!
//! ```text
//! L1: 50 % used, 50 % stolen, 0 % idle      L0: each vCPU of web may use 0.50 CPUs, throttled in 100 of 100 periods
//!                    \_________ the same time, by two witnesses _________/
//! ```

use super::model::Model;
use base::Level;
use host::Machine;
use host::machine::{Domain, Role, Throttled, TotalUse};

/// A guest that used as much as its limit, within this part of it, is at the limit: our own threshold.
pub(in crate::placement) const AT_LIMIT: f64 = 0.1;

/// Part of its periods in which a group was throttled from which its limit is felt: our own threshold.
pub(in crate::placement) const FELT: f64 = 0.2;

/// How much each vCPU of a VM may use.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cap {
    pub vm: String,
    pub cpus: f64,
    pub place: String,
    /// How often it was used up between two looks, and where that stands.
    pub throttled: Option<(Throttled, String)>,
}

impl Cap {
    /// Whether it explains what was stolen from a guest that was used so.
    pub(super) fn explains(&self, told: &TotalUse) -> bool {
        let used = (1.0 - told.shares.idle - told.shares.steal).max(0.0);
        let is_throttled = self.throttled.as_ref().is_some_and(|(counted, _)| counted.share() >= FELT);
        is_throttled || (used - self.cpus).abs() <= AT_LIMIT * self.cpus
    }
}

/// Notes the limits of VMs one level below at each machine.
pub(super) fn note(models: &mut [Model]) {
    for at in 0..models.len() {
        let Level::At(level @ 1..) = models[at].level else { continue };
        let below = models.iter().filter(|model| model.level == Level::At(level - 1));
        models[at].caps_below = below.flat_map(|model| caps(&model.machine)).collect();
    }
}

/// Of several VMs nobody told which one the guest is, and one that uses half of its time may do so by itself.
fn caps(machine: &Machine) -> Vec<Cap> {
    match &machine.domains[..] {
        [only] => cap(machine, only).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// The narrowest that was told of a domain.
fn cap(machine: &Machine, domain: &Domain) -> Option<Cap> {
    let asked = domain.vcpu_quota.as_ref().map(|quota| (quota.value, quota.place.clone()));
    let vcpus = f64::from(domain.vcpu_count().max(1));
    let limit = domain.options.get("cpulimit").and_then(|cpus| cpus.parse::<f64>().ok()).filter(|cpus| *cpus > 0.0);
    let limit = limit.map(|cpus| (cpus / vcpus, domain.whole.clone().unwrap_or_default()));
    let threads = machine.threads_of(&domain.name).filter(|thread| matches!(thread.role, Role::Vcpu(_)));
    let groups: Vec<_> = threads.flat_map(|thread| machine.quotas_of(thread)).collect();
    let each = |path: &str, cpus: f64| if path.contains("/vcpu") { cpus } else { cpus / vcpus };
    let of_groups = groups.iter().map(|(path, quota)| (each(path, quota.cpus.value), quota.cpus.place.clone()));
    let told = asked.into_iter().chain(limit).chain(of_groups).filter(|(cpus, _)| *cpus > 0.0 && *cpus < 1.0);
    let (cpus, place) = told.min_by(|a, b| a.0.total_cmp(&b.0))?;
    let throttled = groups.iter().filter_map(|(_, quota)| quota.measured.as_ref());
    let throttled = throttled.max_by(|a, b| a.value.share().total_cmp(&b.value.share()));
    let throttled = throttled.map(|told| (told.value, told.place.clone()));
    Some(Cap { vm: domain.name.clone(), cpus, place, throttled })
}
