//! Tables of what nesting multiplies: chains, their sequences, the nested guests.

use super::{U64, each_vcpu, merged, quantiles, shown};
use crate::facts::events::reasons::Reason;
use crate::facts::ledger::measure::{Measures, in_order};
use crate::facts::ledger::model::ChainSums;
use crate::facts::state::TracedLevel;
use base::{Cell, Column, ColumnType, Level, Table};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Chains by VM and reason, as CONTRACTS section 3 names the columns.
pub fn chains(measures: &[Measures<'_>]) -> Table {
    let mut columns = vec![Column::key("vm"), Column::key("reason")];
    columns.extend(["count", "censored", "interrupted"].map(|name| Column::value(name, "count", U64)));
    columns.extend(["exits_p50", "exits_p90", "exits_p99"].map(|name| Column::value(name, "count", U64)));
    columns.push(Column::value("exits_mean", "", ColumnType::F64));
    columns.push(Column::value("total_ns", "ns", U64));
    let mut table = Table::new("chains", columns);
    let mut rows: BTreeMap<(&str, String), Vec<&ChainSums>> = BTreeMap::new();
    for (measure, vcpu) in each_vcpu(measures) {
        for (reason, sums) in measure.chains_of(vcpu) {
            rows.entry((&vcpu.vm, reason.name())).or_default().push(sums);
        }
    }
    let mut rows: Vec<_> = rows.into_iter().collect();
    rows.sort_by_key(|((vm, _), sums)| (*vm, std::cmp::Reverse(sums.iter().map(|sums| sums.count).sum::<u64>())));
    for ((vm, reason), sums) in rows {
        let exits = merged(sums.iter().map(|sums| &sums.exits));
        let sum = |of: fn(&ChainSums) -> u64| Cell::U64(sums.iter().map(|sums| of(sums)).sum());
        let mut row: Vec<Cell> = vec![vm.into(), reason.into()];
        row.extend([sum(|sums| sums.count), sum(|sums| sums.censored), sum(|sums| sums.interrupted)]);
        row.extend(quantiles(&exits));
        row.push(exits.mean().into());
        row.push(sum(|sums| sums.cost_ns.sum()));
        table.push(row);
    }
    let columns = [
        ("vm", "vm"),
        ("reason", "reason of L2 exit"),
        ("count", "chains"),
        ("exits_p50", "p50"),
        ("exits_p90", "p90"),
        ("exits_p99", "p99"),
        ("exits_mean", "mean"),
        ("interrupted", "L1 halted"),
        ("total_ns", "total"),
    ];
    table.shown = shown("Chains: exits of L1 per exit of L2", &columns, 20);
    table
}

/// Which exits the chains consist of, most frequent first.
pub fn chain_sequences(measures: &[Measures<'_>]) -> Table {
    let mut columns = vec![Column::key("vm"), Column::key("reason"), Column::key("sequence")];
    columns.extend([Column::value("exits", "count", U64), Column::value("count", "count", U64)]);
    let mut table = Table::new("chain_sequences", columns);
    let mut rows: FxHashMap<(&str, Reason, &[Reason]), u64> = FxHashMap::default();
    for (measure, vcpu) in each_vcpu(measures) {
        for (reason, sums) in measure.chains_of(vcpu) {
            for (sequence, count) in &sums.sequences {
                *rows.entry((&vcpu.vm, *reason, sequence)).or_default() += count;
            }
        }
    }
    let mut rows: Vec<_> = rows.into_iter().collect();
    // Of equals the first by reason and sequence. Thousands of sequences differ in their counts, so few are compared.
    type Row<'r> = ((&'r str, Reason, &'r [Reason]), u64);
    let first =
        |(a, a_count): &Row<'_>, (b, b_count): &Row<'_>| a.0.cmp(b.0).then(b_count.cmp(a_count)).then_with(|| a.cmp(b));
    if rows.len() > MOST_SEQUENCES {
        rows.select_nth_unstable_by(MOST_SEQUENCES, first);
        rows.truncate(MOST_SEQUENCES);
    }
    rows.sort_unstable_by(first);
    for ((vm, reason, sequence), count) in rows {
        let name = |(name, times): (String, usize)| if times == 1 { name } else { format!("{name} x{times}") };
        let text: Vec<String> = in_order(sequence).into_iter().map(name).collect();
        table.push(vec![
            vm.into(),
            reason.name().into(),
            text.join(", ").into(),
            (sequence.len() as u64).into(),
            count.into(),
        ]);
    }
    let columns =
        [("vm", "vm"), ("reason", "reason"), ("count", "chains"), ("exits", "exits"), ("sequence", "exits of L1")];
    table.shown = shown("Most frequent chains: exits of L1", &columns, 8);
    table
}

/// Every exit of every closed chain: `count` exits of L1 for `l1_reason` came from L2's exits for `reason`.
pub fn chain_exits(measures: &[Measures<'_>]) -> Table {
    let mut columns = vec![Column::key("vm"), Column::key("reason"), Column::key("l1_reason")];
    columns.push(Column::value("count", "count", U64));
    let mut table = Table::new("chain_exits", columns);
    let mut rows: BTreeMap<(&str, Reason, Reason), u64> = BTreeMap::new();
    for (measure, vcpu) in each_vcpu(measures) {
        for (reason, sums) in measure.chains_of(vcpu) {
            for (exit, count) in sums.by_reason.iter() {
                *rows.entry((&vcpu.vm, *reason, *exit)).or_default() += count;
            }
        }
    }
    for ((vm, reason, exit), count) in rows {
        table.push(vec![vm.into(), reason.name().into(), exit.name().into(), count.into()]);
    }
    table
}

/// Sequences kept in the table, most frequent first.
const MOST_SEQUENCES: usize = 200;

/// Nested guests by control block.
pub fn nested_guests(measures: &[Measures<'_>]) -> Table {
    let mut columns = vec![Column::key("vm"), Column::key("control_block"), Column::key("level")];
    columns.extend(["vcpus", "entries"].map(|name| Column::value(name, "count", U64)));
    let mut table = Table::new("nested_guests", columns);
    let mut guests: BTreeMap<(&str, u64), (Level, u64, u64)> = BTreeMap::new();
    for (measure, vcpu) in each_vcpu(measures) {
        for context in &vcpu.contexts {
            let level = measure.part.level_of(TracedLevel::at(context.depth));
            if !measure.wants(level) {
                continue;
            }
            let row = guests.entry((&vcpu.vm, context.vmcb)).or_insert((level, 0, 0));
            *row = (row.0.max(level), row.1 + 1, row.2 + context.entries);
        }
    }
    for ((vm, vmcb), (level, vcpus, entries)) in guests {
        table.push(vec![
            vm.into(),
            format!("{vmcb:#x}").into(),
            level.to_string().into(),
            vcpus.into(),
            entries.into(),
        ]);
    }
    table
}
