//! Machines that a recording describes become machines with placements.

use super::below;
use super::culprits::Verdicts;
use super::model::{Model, Wishes};
use super::proposal::Proposal;
use base::{Level, Problem};
use facts::described::DescribedMachines;
use host::Machine;
use std::sync::Arc;

/// The machines of a recording about which anything was told, and what could not be read.
pub fn build((machines, problems): &DescribedMachines, wishes: &Wishes) -> (Vec<Model>, Vec<Problem>) {
    let of = |one: &facts::described::Described| model(one.level, &one.id, one.machine.clone(), one.pasted, wishes);
    let mut models: Vec<Model> = machines.iter().map(of).collect();
    below::note(&mut models);
    (models, problems.clone())
}

pub fn model(level: Level, id: &str, machine: impl Into<Arc<Machine>>, pasted: bool, wishes: &Wishes) -> Model {
    let machine = machine.into();
    // Who asks for polling threads means the host itself.
    let of_host = matches!(level, Level::L0 | Level::Unknown).then(|| wishes.polling.clone()).flatten();
    let proposal = Proposal::of(&machine, &Wishes { polling: of_host, ..wishes.clone() });
    let verdicts = Verdicts::of(&machine);
    Model { id: id.to_owned(), level, machine, proposal, verdicts, pasted, caps_below: Vec::new() }
}
