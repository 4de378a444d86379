//! What did a recording's own exits cost? Read from the tables that `flow` answers with.
//!
//! In: a Section `flow`. Out: exits and chains of the recorded host by reason, with their time. Questions do not import each
//! other; they meet in their tables, which are a contract. Rows of guests' own traces (VMs called `L1/name`) are left out:
//! the host saw the same exits.

use base::{Cell, Section, Table};
use std::collections::BTreeMap;

/// Exits and chains of one host.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Observed {
    /// Time of all vCPUs together.
    pub wall_ns: f64,
    /// Of that, guest code at any level.
    pub guest_ns: f64,
    /// All exits.
    pub exits: u64,
    /// Exits by level and reason: count and time until the next entry.
    pub by_reason: BTreeMap<(String, String), (u64, f64)>,
    /// Chains by the reason that L1 was told: count, and time from L2's exit until L2 runs again.
    pub chains: BTreeMap<String, (u64, f64)>,
    /// Mean number of L1's exits in a chain.
    pub exits_per_chain: f64,
}

impl Observed {
    /// What a `flow` saw; `None` if it saw no exits.
    pub fn of(flow: &Section) -> Option<Self> {
        let mut seen = Self::default();
        let vcpus = Rows::of(flow.table("vcpus")?);
        for row in vcpus.own() {
            seen.wall_ns += vcpus.number(row, "wall_ns");
            let guest = vcpus.table.columns.iter().filter(|column| column.name.starts_with("guest_"));
            seen.guest_ns += guest.map(|column| vcpus.number(row, &column.name)).sum::<f64>();
        }
        let exits = Rows::of(flow.table("exits")?);
        for row in exits.own() {
            let key = (exits.text(row, "level"), exits.text(row, "reason"));
            let sum = seen.by_reason.entry(key).or_default();
            let count = exits.number(row, "count") as u64;
            *sum = (sum.0 + count, sum.1 + exits.number(row, "total_ns"));
            seen.exits += count;
        }
        let chains = Rows::of(flow.table("chains")?);
        let mut of_chains = 0.0;
        for row in chains.own() {
            let count = chains.number(row, "count");
            of_chains += count * chains.number(row, "exits_mean");
            let sum = seen.chains.entry(chains.text(row, "reason")).or_default();
            *sum = (sum.0 + count as u64, sum.1 + chains.number(row, "total_ns"));
        }
        let all = seen.chain_count();
        seen.exits_per_chain = if all == 0 { 0.0 } else { of_chains / all as f64 };
        (seen.exits > 0 && seen.wall_ns > 0.0).then_some(seen)
    }

    /// Chains of all reasons.
    pub fn chain_count(&self) -> u64 {
        self.chains.values().map(|(count, _)| count).sum()
    }

    /// Exits of these reasons at any level: count and time.
    pub fn of_reasons(&self, reasons: &[&str]) -> (u64, f64) {
        let hits = self.by_reason.iter().filter(|((_, reason), _)| reasons.contains(&reason.as_str()));
        hits.fold((0, 0.0), |sum, (_, more)| (sum.0 + more.0, sum.1 + more.1))
    }

    /// Exits of one reason at one level: count and time.
    pub fn at(&self, level: &str, reason: &str) -> (u64, f64) {
        self.by_reason.get(&(level.to_owned(), reason.to_owned())).copied().unwrap_or_default()
    }

    /// A time as a share of all vCPUs' time.
    pub fn share(&self, ns: f64) -> f64 {
        ns / self.wall_ns
    }

    /// Exits of these reasons for each chain.
    pub fn per_chain(&self, reasons: &[&str]) -> f64 {
        self.of_reasons(reasons).0 as f64 / self.chain_count().max(1) as f64
    }
}

/// Rows of a table by column names.
struct Rows<'a> {
    table: &'a Table,
}

impl<'a> Rows<'a> {
    fn of(table: &'a Table) -> Self {
        Self { table }
    }

    /// Rows of the recorded host's own trace.
    fn own(&self) -> impl Iterator<Item = &'a Vec<Cell>> + use<'a> {
        let vm = self.table.column("vm");
        self.table
            .rows
            .iter()
            .filter(move |row| !matches!(vm.map(|at| &row[at]), Some(Cell::Text(name)) if is_of_a_guest(name)))
    }

    fn cell(&self, row: &'a [Cell], name: &str) -> Option<&'a Cell> {
        row.get(self.table.column(name)?)
    }

    fn number(&self, row: &'a [Cell], name: &str) -> f64 {
        match self.cell(row, name) {
            Some(Cell::U64(number)) => *number as f64,
            Some(Cell::I64(number)) => *number as f64,
            Some(Cell::F64(number)) => *number,
            _ => 0.0,
        }
    }

    fn text(&self, row: &'a [Cell], name: &str) -> String {
        match self.cell(row, name) {
            Some(Cell::Text(text)) => text.clone(),
            _ => String::new(),
        }
    }
}

/// `L1/web`, `L1-web/db`: a VM out of the trace of a guest.
fn is_of_a_guest(vm: &str) -> bool {
    let machine = vm.split_once('/').map(|(machine, _)| machine);
    machine.and_then(|name| name.strip_prefix('L')).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}
