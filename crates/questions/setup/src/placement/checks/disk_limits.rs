//! Disks that tasks wait for though they have room: the limit of a group that a VM is in.

use crate::placement::model::Model;
use base::Evidence;
use base::number::list;
use facts::rule::Hit;
use host::machine::{DiskLimit, Manager, is_within_group};
use std::collections::BTreeSet;
use tongue::disk_limits::{amount, lifted};
use tongue::groups::named;

/// Part of a limit from which on a group is at it: our own limit.
pub(in crate::placement) const AT_LIMIT: f64 = 0.9;

/// The hit with the limit that is reached most, and what takes it away; true if there is one.
pub(super) fn reached(model: &Model, hit: &mut Hit) -> bool {
    let machine = &model.machine;
    let part = |limit: &DiskLimit| if limit.most == 0 { 0.0 } else { limit.did / limit.most as f64 };
    let at = machine.disk_limits.iter().filter(|limit| part(limit) >= AT_LIMIT);
    let Some(limit) = at.max_by(|a, b| part(a).total_cmp(&part(b))) else { return false };
    let path = limit.group.as_str();
    let inside = machine
        .threads
        .iter()
        .filter(|thread| thread.time_group.as_deref().is_some_and(|group| is_within_group(group, path)));
    let vms: BTreeSet<&str> = inside.filter_map(|thread| thread.vm.as_deref()).collect();
    let disk = limit.disk.as_deref().map_or_else(|| limit.number.clone(), str::to_owned);
    let whose = named(path);
    let names: Vec<String> = vms.iter().take(3).map(|vm| (*vm).to_owned()).collect();
    hit.title = format!(
        "{}: {whose}, with {}, is at its limit of {} of {disk}",
        hit.title,
        list(&names),
        amount(limit.kind, limit.most as f64)
    );
    let (key, did) = (limit.kind.key(), amount(limit.kind, limit.did));
    hit.evidence.push(Evidence::new(format!("{path} has {key}={} for {}", limit.most, limit.number), &limit.place));
    hit.evidence
        .push(Evidence::new(format!("between two samples it did {did}"), limit.place.replace("io.max", "io.stat")));
    let manager =
        |vm: &&str| machine.domains.iter().find(|domain| domain.name == **vm).map(|domain| machine.manager_of(domain));
    let only = vms
        .first()
        .filter(|vm| vms.len() == 1 && matches!(manager(vm), Some(Manager::Libvirt | Manager::OpenStack { .. })));
    let typed = lifted(limit, only.copied());
    hit.first.extend(typed.first);
    hit.fix.splice(0..0, typed.fix);
    hit.undo.extend(typed.undo);
    true
}
