//! Sockets that the guest's system does not use.

use crate::placement::model::Model;
use base::Severity;
use base::number::{list, percent};
use base::shell::quoted;
use facts::rule::Hit;
use host::machine::{Domain, Role};

/// Sockets that Windows for clients uses at most, in its usual editions.
pub(in crate::placement) const USED: u32 = 2;

/// A vCPU that runs no more than this is not used, and one that runs so much has work: our own thresholds.
pub(in crate::placement) const UNUSED: f64 = 0.01;
const WORKS: f64 = 0.5;

/// What libosinfo calls such systems.
const CLIENTS: [&str; 2] = ["microsoft.com/win/10", "microsoft.com/win/11"];

/// Guests with Windows of which only two sockets work.
pub(crate) fn unused(model: &Model) -> Vec<Hit> {
    let mut hits = Vec::new();
    for domain in &model.machine.domains {
        let shows_hyperv = domain.hyperv.as_ref().filter(|shown| !shown.value.is_empty());
        let system = domain.windows.as_ref().map(|told| (told.value.clone(), &told.place));
        let system = system.or(shows_hyperv.map(|told| ("it is shown parts of Hyper-V".to_owned(), &told.place)));
        let (Some((system, of_system)), Some(shown)) = (system, &domain.topology) else { continue };
        let (sockets, count) = (shown.value.sockets, domain.vcpu_count());
        if sockets <= USED || !count.is_multiple_of(sockets) {
            continue;
        }
        let first = USED * (count / sockets);
        let Some((busy, idle)) = ran(model, domain, first) else { continue };
        let is_client = CLIENTS.iter().any(|client| system.contains(client));
        if idle > UNUSED || busy < WORKS && !is_client {
            continue;
        }
        let title = format!(
            "{} has {count} vCPUs in {sockets} sockets, and Windows uses {USED}: vCPUs {first}-{} ran {} at most, one of the others {}",
            domain.name,
            count - 1,
            percent(idle),
            percent(busy)
        );
        let mut hit = Hit::new(&domain.name, Severity::Medium, title).seen(system, of_system);
        hit = hit.seen(list(&[format!("sockets='{sockets}'"), format!("{count} vCPUs")]), &shown.place);
        let threads = shown.value.threads.max(1);
        let (cores, name) = (count / threads, quoted(&domain.name));
        hit.fix.push(format!(
            "virsh edit {name}   # <topology sockets='1' cores='{cores}' threads='{threads}'/> within <cpu>, from the next start"
        ));
        hit.undo.push(format!("virsh edit {name}   # the <topology> element as it was"));
        hits.push(hit);
    }
    hits
}

/// The most that a vCPU below this number ran, and the most that one from it on did, where all were measured.
fn ran(model: &Model, domain: &Domain, first: u32) -> Option<(f64, f64)> {
    let (mut below, mut above) = (0.0_f64, None);
    for thread in model.vcpus(domain) {
        let (Role::Vcpu(vcpu), run) = (thread.role, thread.run_share.as_ref()?.value) else { return None };
        match vcpu < first {
            true => below = below.max(run),
            false => above = Some(run.max(above.unwrap_or(0.0))),
        }
    }
    Some((below, above?))
}
