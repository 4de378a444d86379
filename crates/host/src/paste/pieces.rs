//! Pieces of definitions: whether two of them are of one VM.
//!
//! Pieces without a name are taken as one VM as long as they agree; those that contradict each other are kept apart, and that is said.

use super::Pasted;
use crate::machine::Domain;
use base::number::{bytes, list};

/// Adds what a definition, or a piece of one, tells of a VM, and returns the VM's name; `is_named`: it stands there.
pub(super) fn add(mut told: Domain, is_named: bool, place: &str, pasted: &mut Pasted) -> String {
    let known = pasted.domains.get(&told.name).and_then(|index| pasted.machine.domains.get(*index));
    let differs = known.map(|known| contradictions(known, &told)).unwrap_or_default();
    if !differs.is_empty() {
        let differs = list(&differs);
        if is_named {
            pasted.unread(format!(
                "{place}: an earlier line contradicts it about {} ({differs}); the last one counts",
                told.name
            ));
        } else {
            let base = if told.name.starts_with("VM") { "VM" } else { "DOMAIN" };
            let free = (2..).map(|number| format!("{base}-{number}")).find(|name| !pasted.domains.contains_key(name));
            // What has no name at all would be added to the only VM with one.
            if let Some(index) = pasted.domains.remove("") {
                "DOMAIN-1".clone_into(&mut pasted.machine.domains[index].name);
                pasted.domains.insert("DOMAIN-1".to_owned(), index);
            }
            told.name = free.unwrap_or_default();
            pasted.unread(format!(
                "{place}: a definition without a name that contradicts the one before it ({differs}): it was kept separately as {}, another VM or \
                 the same at another time",
                told.name
            ));
        }
    }
    let name = told.name.clone();
    if let Some(domain) = pasted.domain(&name) {
        domain.add(told);
    }
    name
}

/// What two definitions of one VM do not have in common, where both tell. Programs and their managers count some things differently, so only
/// those of one kind are compared.
fn contradictions(known: &Domain, told: &Domain) -> Vec<String> {
    fn two<T: PartialEq>(what: &str, one: Option<T>, other: Option<T>, shown: impl Fn(T) -> String) -> Option<String> {
        let (one, other) = one.zip(other).filter(|(one, other)| one != other)?;
        Some(format!("{what} {}, here {}", shown(one), shown(other)))
    }
    if known.by_command != told.by_command {
        return Vec::new();
    }
    let pins = told.vcpu_pins.iter().filter_map(|(vcpu, pin)| {
        let before = known.vcpu_pins.get(vcpu).map(|pin| &pin.value);
        two(&format!("CPUs of vCPU {vcpu}"), before, Some(&pin.value), |cpus| cpus.to_string())
    });
    let all = two("vCPUs", known.vcpus, told.vcpus, |count| count.to_string()).into_iter().chain(two(
        "memory",
        known.memory_bytes,
        told.memory_bytes,
        |memory| bytes(memory as f64),
    ));
    all.chain(pins.take(1)).collect()
}
