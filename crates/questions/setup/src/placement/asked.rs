//! Do the machines hold what the user named: what is to be kept where it is, and which CPUs are reserved?

use super::model::{Model, Wishes};
use base::CpuSet;
use base::nearest::instead;
use facts::Error;

/// Names that keep a kind of thing on any machine.
const KINDS: &[&str] = &["irqs", "pmd", "kernel"];

/// Refuses names and CPUs that no machine has, with the nearest name that one has.
///
/// # Errors
/// [`Error::NoSuch`].
pub(crate) fn check(models: &[Model], wishes: &Wishes) -> Result<(), Error> {
    let known: Vec<String> = models.iter().flat_map(names).collect();
    let missing = |name: &&String| !KINDS.contains(&name.as_str()) && !known.contains(name);
    if let Some(name) = wishes.keep.iter().find(missing) {
        // Interrupts by their numbers are many, and nobody means one by mistake.
        let by_number = |name: &&str| name.strip_prefix("irq").is_some_and(|rest| rest.parse::<u32>().is_ok());
        let named = known.iter().map(String::as_str).filter(|name| !by_number(name));
        let instead = instead(name, named.chain(KINDS.iter().copied()));
        return Err(Error::NoSuch(format!("--keep {name}: no domain, NIC or interrupt has this name; {instead}")));
    }
    let of_host = models.iter().find(|model| matches!(model.level, base::Level::L0 | base::Level::Unknown));
    let online = of_host.map_or(0, |model| model.machine.topology.online.len());
    if let Some(asked) = wishes.polling.as_ref().filter(|asked| online > 0 && asked.threads as usize > online) {
        let (threads, from) = (asked.threads, &asked.from);
        return Err(Error::NoSuch(format!("{from}: {threads} polling threads, and this host has {online} CPUs")));
    }
    let cpus: CpuSet = models.iter().flat_map(|model| model.machine.topology.cpus.keys().copied()).collect();
    let absent = wishes.reserve.without(&cpus);
    // Where no topology is known nothing contradicts the user.
    if cpus.is_empty() || absent.is_empty() {
        return Ok(());
    }
    Err(Error::NoSuch(format!("--reserve {}: no CPU {absent}; this host has CPUs {cpus}", wishes.reserve)))
}

/// What of a machine has a name under which it can be kept.
fn names(model: &Model) -> Vec<String> {
    let machine = &model.machine;
    let domains = machine.domains.iter().map(|domain| domain.name.clone());
    let nics = machine.nics.iter().map(|nic| nic.name.clone());
    let irqs = machine.irqs.iter().flat_map(|irq| [format!("irq{}", irq.number), irq.name.clone()]);
    domains.chain(nics).chain(irqs).filter(|name| !name.is_empty()).collect()
}
