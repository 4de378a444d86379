//! Programs beside QEMU that serve a device of a VM, with no time left: the guest waits for them, whoever has CPUs.

use super::disks::FULL;
use super::kernel_work::rows;
use crate::placement::model::Model;
use base::Severity;
use base::number::percent;
use base::shell::quoted;
use facts::rule::Hit;
use host::machine::{Domain, Thread, unit_of};

/// Threads of such programs that ran all the time.
pub(crate) fn full(model: &Model) -> Vec<Hit> {
    model.machine.threads.iter().filter_map(|thread| hit(model, thread)).collect()
}

fn hit(model: &Model, thread: &Thread) -> Option<Hit> {
    // Its name, what it carries, and what gives it more hands or does without it, in an element of libvirt.
    let [name, carries, element] = rows(include_str!("servers.tsv")).find(|[name, ..]| thread.name == *name)?;
    let ran = thread.run_share.as_ref().filter(|ran| ran.value >= FULL)?;
    let tid = thread.tid.map_or("TID".to_owned(), |tid| tid.to_string());
    let owner = owner(model, thread);
    let of = owner.map_or(String::new(), |domain| format!(" of {}", domain.name));
    let title = format!("{name} ({tid}){of} ran {} of a CPU: one thread carries {carries}", percent(ran.value));
    let mut hit = Hit::new(owner.map_or(name, |domain| domain.name.as_str()), Severity::Medium, title);
    hit = hit.seen(format!("{name} ({tid}) ran {}", percent(ran.value)), &ran.place);
    match owner {
        Some(domain) => {
            hit = hit.of_domain(&domain.name);
            let vm = quoted(&domain.name);
            hit.fix.push(format!("virsh edit {vm}   # {element}, from its next start"));
            hit.undo.push(format!("virsh edit {vm}   # that element as it was"));
        }
        None => hit
            .fix
            .push(format!("tr '\\0' ' ' </proc/{tid}/cmdline   # whose it is; in its VM's definition: {element}")),
    }
    Some(hit)
}

/// The VM in whose unit it runs.
fn owner<'a>(model: &'a Model, thread: &Thread) -> Option<&'a Domain> {
    let unit = unit_of(thread.time_group.as_deref()?).filter(|unit| !unit.ends_with(".slice"))?;
    let machine = &model.machine;
    machine.domains.iter().find(|domain| {
        machine.threads_of(&domain.name).any(|own| own.time_group.as_deref().and_then(unit_of) == Some(unit))
    })
}
