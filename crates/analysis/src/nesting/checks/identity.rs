//! Checks of what a machine is.

use super::{hit, shown_by};
use crate::nesting::model::{Model, State};
use crate::nesting::rules::Hit;
use base::Severity;

/// QEMU interprets the code.
pub fn emulated(model: &Model) -> Vec<Hit> {
    let emulated = model.machines.iter().filter(|machine| machine.state("emulated_cpu") == State::On);
    emulated
        .map(|machine| {
            let title = format!("{} is emulated by QEMU's TCG, not run by KVM", machine.id);
            let mut hit = hit(machine, Severity::High, title, shown_by(machine, "emulated_cpu"));
            hit.level = machine.level_below();
            hit
        })
        .collect()
}
