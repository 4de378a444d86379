//! Tables of what nesting multiplies: chains, their sequences, the nested guests.

use super::{each_vcpu, merged, quantiles};
use base::{Cell, Level, Table, TableSpec, shown, table};
use facts::ledger::measure::{Measures, in_order};
use facts::ledger::model::{ChainSums, Vcpu};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use walk::events::reasons::Reason;
use walk::keyed::Keyed;
use walk::state::TracedLevel;

/// Chains by VM and reason, as CONTRACTS section 3 names the columns.
pub(super) const CHAINS: TableSpec = table! {
    flow.chains version 3:
    "The exits of one VM's nested guests for one reason: how many exits of L1 each of them took. `censored`: the end was not \
     seen. `disturbed`: L1 halted (`interrupted`) or the nested guest moved; exits and time are those of the others.";
    key machine, key vm, key reason, count count, count censored, count interrupted, count exits_p50, count exits_p90,
    count exits_p99, f64("") exits_mean, ns total_ns, count disturbed;
    shown![
        "Chains: exits of L1 per exit of L2", 20;
        vm, reason: "reason of L2 exit", count: "chains", exits_p50: "p50", exits_p90: "p90", exits_p99: "p99",
        exits_mean: "mean", disturbed, total_ns: "total",
    ]
};

/// Which exits the chains consist of, most frequent first.
pub(super) const CHAIN_SEQUENCES: TableSpec = table! {
    flow.chain_sequences version 2: "Undisturbed chains of one VM for one reason that took the same exits of L1 in the same order.";
    key machine, key vm, key reason, key sequence, count exits, count count;
    shown![
        "Most frequent chains: exits of L1", 8;
        vm, reason, count: "chains", exits, sequence: "exits of L1",
    ]
};

/// Every exit of every undisturbed chain.
pub(super) const CHAIN_EXITS: TableSpec = table! {
    flow.chain_exits version 2:
    "How many exits of L1 for `l1_reason` came from the exits of one VM's nested guests for `reason`, over undisturbed chains.";
    key machine, key vm, key reason, key l1_reason, count count;
};

/// Nested guests by control block.
pub(super) const NESTED_GUESTS: TableSpec = table! {
    flow.nested_guests version 2: "One control block (VMCS12 or VMCB12) that a guest hypervisor of one VM ran.";
    key machine, key vm, key control_block, key level, count vcpus, count entries;
};

/// Machine and VM: chains are told for all vCPUs of a VM together.
type Vm<'m> = (&'m str, &'m str);

fn vm_of<'m>(measure: &Measures<'m>, vcpu: &'m Vcpu) -> Vm<'m> {
    (&measure.part.machine, &vcpu.vm)
}

pub(super) fn chains(measures: &[Measures<'_>]) -> Table {
    let mut table = Table::new(&CHAINS);
    let mut rows: BTreeMap<(Vm<'_>, String), Vec<&ChainSums>> = BTreeMap::new();
    for (measure, vcpu) in each_vcpu(measures) {
        for (reason, sums) in measure.chains_of(vcpu) {
            rows.entry((vm_of(measure, vcpu), reason.name())).or_default().push(sums);
        }
    }
    let mut rows: Vec<_> = rows.into_iter().collect();
    rows.sort_by_key(|(((machine, vm), _), sums)| {
        (*machine, *vm, std::cmp::Reverse(sums.iter().map(|sums| sums.count).sum::<u64>()))
    });
    for (((machine, vm), reason), sums) in rows {
        let exits = merged(sums.iter().map(|sums| &sums.exits));
        let sum = |of: fn(&ChainSums) -> u64| Cell::U64(sums.iter().map(|sums| of(sums)).sum());
        let mut row: Vec<Cell> = vec![machine.into(), vm.into(), reason.into()];
        row.extend([sum(|sums| sums.count), sum(|sums| sums.censored), sum(|sums| sums.interrupted)]);
        row.extend(quantiles(&exits));
        row.push(exits.mean().into());
        row.push(sum(|sums| sums.cost_ns.sum()));
        row.push(sum(|sums| sums.disturbed));
        table.push(row);
    }
    table
}

pub(super) fn chain_sequences(measures: &[Measures<'_>]) -> Table {
    let mut table = Table::new(&CHAIN_SEQUENCES);
    let mut rows: FxHashMap<(Vm<'_>, Reason, &[Reason]), u64> = FxHashMap::default();
    for (measure, vcpu) in each_vcpu(measures) {
        for (reason, sums) in measure.chains_of(vcpu) {
            for (sequence, count) in &sums.sequences {
                *rows.entry((vm_of(measure, vcpu), *reason, sequence)).or_default() += count;
            }
        }
    }
    let mut rows: Vec<_> = rows.into_iter().collect();
    // Of equals the first by reason and sequence. Thousands of sequences differ in their counts, so few are compared.
    type Row<'r> = ((Vm<'r>, Reason, &'r [Reason]), u64);
    let first = |(a, a_count): &Row<'_>, (b, b_count): &Row<'_>| {
        a.0.cmp(&b.0).then(b_count.cmp(a_count)).then_with(|| a.cmp(b))
    };
    if rows.len() > MOST_SEQUENCES {
        rows.select_nth_unstable_by(MOST_SEQUENCES, first);
        rows.truncate(MOST_SEQUENCES);
    }
    rows.sort_unstable_by(first);
    for (((machine, vm), reason, sequence), count) in rows {
        let name = |(name, times): (String, usize)| if times == 1 { name } else { format!("{name} x{times}") };
        let text: Vec<String> = in_order(sequence).into_iter().map(name).collect();
        table.push(vec![
            machine.into(),
            vm.into(),
            reason.name().into(),
            text.join(", ").into(),
            (sequence.len() as u64).into(),
            count.into(),
        ]);
    }
    table
}

pub(super) fn chain_exits(measures: &[Measures<'_>]) -> Table {
    let mut table = Table::new(&CHAIN_EXITS);
    let mut rows: BTreeMap<(Vm<'_>, Reason, Reason), u64> = BTreeMap::new();
    for (measure, vcpu) in each_vcpu(measures) {
        for (reason, sums) in measure.chains_of(vcpu) {
            // A reason stands in thousands of sequences, at several places of each.
            let mut of_chains: Keyed<Reason, u64> = Keyed::default();
            sums.by_reason().for_each(|(exit, count)| *of_chains.at(exit) += count);
            for (exit, count) in of_chains.iter() {
                *rows.entry((vm_of(measure, vcpu), *reason, *exit)).or_default() += count;
            }
        }
    }
    for (((machine, vm), reason, exit), count) in rows {
        table.push(vec![machine.into(), vm.into(), reason.name().into(), exit.name().into(), count.into()]);
    }
    table
}

/// Sequences kept in the table, most frequent first.
const MOST_SEQUENCES: usize = 200;

pub(super) fn nested_guests(measures: &[Measures<'_>]) -> Table {
    let mut table = Table::new(&NESTED_GUESTS);
    let mut guests: BTreeMap<(Vm<'_>, u64), (Level, u64, u64)> = BTreeMap::new();
    for (measure, vcpu) in each_vcpu(measures) {
        for context in &vcpu.contexts {
            let level = measure.part.level_of(TracedLevel::at(context.depth));
            if !measure.wants(level) {
                continue;
            }
            let row = guests.entry((vm_of(measure, vcpu), context.vmcb)).or_insert((level, 0, 0));
            *row = (row.0.max(level), row.1 + 1, row.2 + context.entries);
        }
    }
    for (((machine, vm), vmcb), (level, vcpus, entries)) in guests {
        table.push(vec![
            machine.into(),
            vm.into(),
            format!("{vmcb:#x}").into(),
            level.to_string().into(),
            vcpus.into(),
            entries.into(),
        ]);
    }
    table
}
