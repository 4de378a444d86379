//! What did a recording's own exits cost? Read from the tables that `flow` answers with.
//!
//! In: a Section `flow`. Out: exits and chains of the recorded host by reason, with their time. Questions do not import each
//! other; they meet in their tables, which are a contract. Rows of guests' own traces (VMs called `L1/name`) are left out
//! where the host's own is there, which saw the same exits.

use super::plan::model::Estimate;
use base::{Cell, Section, Table};
use std::collections::BTreeMap;

/// States of a vCPU in which no CPU works for it, as columns of table `vcpus`.
const IDLE: &[&str] = &["halted_ns", "blocked_ns", "preempted_ns", "wake_delay_ns", "unknown_ns"];

/// Exits that last as long as what they ask for.
const LONG: &[&str] = &["VMRESUME", "VMLAUNCH", "VMRUN", "HLT", "MWAIT"];

/// Accesses that shadowing leaves in each chain: HOST_RSP is not in KVM's list of shadowed fields.
const STAYS: f64 = 1.0;

/// With shadowing a chain has one or two accesses, without it ten and more (intel/haxm pull request 130): fewer than this
/// and it is on.
const SHADOWED: f64 = 4.0;

/// Exits and chains of one host.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Observed {
    /// Time of all vCPUs together.
    pub wall_ns: f64,
    /// Of that, time in which the CPU worked for them: not halted, blocked, pre-empted, waiting or unknown.
    pub busy_ns: f64,
    /// How much of the exits for MSRs arms a timer, as a share.
    pub timer_share: f64,
    /// All exits.
    pub exits: u64,
    /// True if L1's own trace is all there is: its times leave out what L0 did meanwhile.
    pub from_guest: bool,
    /// How many of L2's exits ended in L1's VMM, by reason, where L1's own trace tells.
    pub userspace: BTreeMap<String, u64>,
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
        let vcpus = Rows { own: true, table: flow.table("vcpus")? };
        let from_guest = vcpus.rows().next().is_none();
        let mut seen = Self { from_guest, ..Self::default() };
        let rows = |name: &str| Some(Rows { own: !from_guest, table: flow.table(name)? });
        let vcpus = rows("vcpus")?;
        for row in vcpus.rows() {
            seen.wall_ns += vcpus.number(row, "wall_ns");
            seen.busy_ns +=
                vcpus.number(row, "wall_ns") - IDLE.iter().map(|state| vcpus.number(row, state)).sum::<f64>();
        }
        let exits = rows("exits")?;
        for row in exits.rows() {
            let key = (exits.text(row, "level"), exits.text(row, "reason"));
            let sum = seen.by_reason.entry(key).or_default();
            let count = exits.number(row, "count") as u64;
            *sum = (sum.0 + count, sum.1 + exits.number(row, "total_ns"));
            seen.exits += count;
        }
        let chains = rows("chains")?;
        let mut of_chains = 0.0;
        for row in chains.rows() {
            let count = chains.number(row, "count");
            of_chains += count * chains.number(row, "exits_mean");
            let sum = seen.chains.entry(chains.text(row, "reason")).or_default();
            *sum = (sum.0 + count as u64, sum.1 + chains.number(row, "total_ns"));
        }
        let all = seen.chain_count();
        seen.exits_per_chain = if all == 0 { 0.0 } else { of_chains / all as f64 };
        seen.timer_share = rows("exit_details").map_or(0.0, |details| timer_share(&details));
        if let Some(handled) = flow.table("handled_by").map(|table| Rows { own: false, table }) {
            for row in handled.rows().filter(|row| handled.text(row, "level") == "L2") {
                let by_vmm = handled.number(row, "userspace") as u64;
                *seen.userspace.entry(handled.text(row, "reason")).or_default() += by_vmm;
            }
        }
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

    /// L2's exits a second and vCPU, by reason, and whether they end in L1's VMM: chains of the host's trace, or L2's exits
    /// in L1's own.
    pub fn rates(&self) -> Vec<(String, f64, bool)> {
        let per_second = |count: u64| count as f64 * 1e9 / self.wall_ns;
        let counts: Vec<(&String, u64)> = if self.chains.is_empty() {
            let of_l2 = self.by_reason.iter().filter(|((level, _), _)| level == "L2");
            of_l2.map(|((_, reason), (count, _))| (reason, *count)).collect()
        } else {
            self.chains.iter().map(|(reason, (count, _))| (reason, *count)).collect()
        };
        let split = |(reason, count): (&String, u64)| {
            let user = self.userspace.get(reason).copied().unwrap_or(0).min(count);
            [(reason.clone(), per_second(count - user), false), (reason.clone(), per_second(user), true)]
        };
        counts.into_iter().flat_map(split).filter(|(_, rate, _)| *rate > 0.0).collect()
    }

    /// Mean time of an exit of one reason at one level.
    pub fn mean_ns(&self, level: &str, reason: &str) -> Option<f64> {
        let (count, ns) = self.at(level, reason);
        (count > 0).then(|| ns / count as f64)
    }

    /// Mean time of L1's exits, those that request an entry or wait left out: they last as long as what they ask for.
    pub fn plain_exit_ns(&self) -> f64 {
        let own =
            self.by_reason.iter().filter(|((level, reason), _)| level == "L1" && !LONG.contains(&reason.as_str()));
        let (count, ns) = own.fold((0, 0.0), |sum, (_, more)| (sum.0 + more.0, sum.1 + more.1));
        ns / count.max(1) as f64
    }

    /// What remains of what nesting adds, if these exits of L1 fell away: by their count at best (all exits cost the same
    /// switches), by their own time at worst. One of them stays in each chain: fields that no shadow holds.
    pub fn remains_without(&self, reasons: &[&str]) -> Option<Estimate> {
        let (count, ns) = self.of_reasons(reasons);
        let per_chain = self.per_chain(reasons);
        let all_ns: f64 = self.chains.values().map(|(_, ns)| ns).sum();
        let (stays, least) = if reasons.contains(&"VMWRITE") { (STAYS, SHADOWED) } else { (0.0, 0.0) };
        if count == 0 || per_chain <= least || all_ns <= 0.0 {
            return None;
        }
        let gone = (per_chain - stays) / per_chain;
        let by_count = (1.0 - gone * per_chain / self.exits_per_chain).clamp(0.0, 1.0);
        let by_time = (1.0 - gone * ns / all_ns).clamp(0.0, 1.0);
        let (low, high) = (by_count.min(by_time), by_count.max(by_time));
        Some(Estimate { low, mid: f64::midpoint(low, high), high })
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

/// How much of the MSR exits in table `exit_details` arms a timer.
fn timer_share(rows: &Rows<'_>) -> f64 {
    let (mut timers, mut all) = (0.0, 0.0);
    for row in rows.rows().filter(|row| rows.text(row, "reason") == "MSR" && rows.text(row, "level") != "L1") {
        let count = rows.number(row, "count");
        all += count;
        if rows.text(row, "detail").contains("TSC_DEADLINE") {
            timers += count;
        }
    }
    if all > 0.0 { timers / all } else { 0.0 }
}

/// Rows of a table by column names.
struct Rows<'a> {
    table: &'a Table,
    /// Of the recorded host's own trace; else those of guests' traces alone.
    own: bool,
}

impl<'a> Rows<'a> {
    fn rows(&self) -> impl Iterator<Item = &'a Vec<Cell>> + use<'a> {
        let (vm, own) = (self.table.column("vm"), self.own);
        self.table.rows.iter().filter(move |row| {
            let of_guest = matches!(vm.map(|at| &row[at]), Some(Cell::Text(name)) if is_of_a_guest(name));
            of_guest != own
        })
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
