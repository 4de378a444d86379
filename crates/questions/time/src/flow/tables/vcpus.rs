//! Tables of threads: where the time of each vCPU went, and which threads belong to VMs.

use super::{each_vcpu, keys};
use base::{Cell, Level, Table, TableSpec, shown, table};
use facts::ledger::measure::Measures;
use std::collections::BTreeSet;
use walk::state::{DEEPEST, PLAIN, State, TracedLevel};

/// The ledger of each vCPU, as CONTRACTS section 3 names the columns.
pub(in crate::flow) const VCPUS: TableSpec = table! {
    flow.vcpus version 2:
    "Where the time of one vCPU went: the columns between wall_ns and exits are its states, and add up to wall_ns.";
    key machine, key vm, key_u64("") vcpu, key_i64("") tid, ns wall_ns, ns guest_l1_ns, ns guest_l2_ns, ns guest_l3_ns,
    ns guest_unknown_level_ns, ns handling_l1_ns, ns handling_l2_ns, ns handling_l3_ns, ns handling_unknown_level_ns,
    ns userspace_ns, ns irq_ns, ns softirq_ns, ns nmi_ns, ns halt_poll_ns, ns halted_ns, ns wake_delay_ns,
    ns preempted_ns, ns blocked_ns, ns unknown_ns, count exits, count clipped;
};

/// Levels that have columns of their own; deeper ones count as unknown.
const LEVELS: u8 = 3;

/// vCPU threads and vhost workers, as found by events and by name.
pub(super) const THREADS: TableSpec = table! {
    flow.threads version 2: "One thread of a VM, as the trace shows it: a vCPU or a vhost worker.";
    key machine, key_i64("") tid, text role, text comm, text vm;
    shown!["Threads of VMs", 16; role, tid, comm: "name", vm]
};

/// The states of each state column of [`VCPUS`], in their order. Levels of columns are everybody's; a trace recorded at
/// level `base` sees as its own level 1 what is level `base` + 1 for everybody.
fn state_columns(base: u8) -> Vec<Vec<State>> {
    let mut columns = Vec::new();
    for state in [State::Guest, State::Handling] {
        let at = |level: u8| level.checked_sub(base).filter(|own| (1..=DEEPEST).contains(own)).map(TracedLevel::at);
        columns.extend((1..=LEVELS).map(|level| at(level).map(state).into_iter().collect::<Vec<_>>()));
        let deeper = (LEVELS + 1..=DEEPEST.saturating_add(base)).filter_map(at);
        columns.push(
            [TracedLevel::Early, TracedLevel::Asked, TracedLevel::Lost].into_iter().chain(deeper).map(state).collect(),
        );
    }
    columns.extend(PLAIN.map(|state| vec![state]));
    columns
}

/// Where each vCPU's time went. The columns' levels are counted from the recorded machine of each part.
pub(super) fn vcpus(measures: &[Measures<'_>]) -> Table {
    let mut table = Table::new(&VCPUS);
    for (measure, vcpu) in each_vcpu(measures) {
        let base = if let Level::At(base) = measure.part.level { base } else { 0 };
        let mut row = keys(measure, vcpu);
        row.extend([Cell::I64(vcpu.tid.into()), vcpu.sums.wall_ns().into()]);
        let sum = |states: &Vec<State>| Cell::U64(states.iter().map(|state| vcpu.sums.ns(*state)).sum());
        row.extend(state_columns(base).iter().map(sum));
        row.push(measure.exit_count_of(vcpu).into());
        row.push(measure.exits_of(vcpu).map(|(.., sums)| sums.count - sums.cost_ns.count()).sum::<u64>().into());
        table.push(row);
    }
    table
}

pub(super) fn threads(measures: &[Measures<'_>]) -> Table {
    let mut table = Table::new(&THREADS);
    // Two traces of one machine, of two stretches of time, name the same workers.
    let mut workers = BTreeSet::new();
    for measure in measures {
        let machine = measure.part.machine.as_str();
        for vcpu in &measure.vcpus {
            let names = ["vcpu", vcpu.comm.as_str(), vcpu.vm.as_str()].map(Cell::from);
            table.push([machine.into(), Cell::I64(vcpu.tid.into())].into_iter().chain(names).collect());
        }
        for (comm, tid) in measure.part.vhost.iter().filter(|(_, tid)| workers.insert((machine, *tid))) {
            // A worker's name holds the id of the thread that owns it, which no event links to a VM.
            let names = ["vhost".into(), comm.as_str().into(), Cell::Missing];
            table.push([machine.into(), Cell::I64((*tid).into())].into_iter().chain(names).collect());
        }
    }
    if measures.iter().all(|measure| measure.part.vhost.is_empty()) {
        table.shown = None;
    }
    table
}
