//! The tables of section `flow`, with the names and columns of CONTRACTS section 3.

mod aligned;
mod bins;
mod exits;
mod faults;
mod nested;
mod overview;
mod parts;
mod profile;
mod vcpus;
mod waits;

pub(super) use exits::EXITS;
pub use profile::stacks as sampled_stacks;
pub(super) use vcpus::VCPUS;
pub(super) use waits::PREEMPTORS;

use base::{Cell, Histogram, Level, Shown, Table, TableSpec, parallel};
use facts::Given;
use facts::ledger::measure::Measures;
use facts::ledger::model::{ExitSums, Vcpu};
use std::borrow::Cow;
use std::collections::BTreeMap;

type Build = fn(&[Measures<'_>], &Given) -> Table;

/// All tables, in reading order.
const BUILDERS: &[(&TableSpec, Build)] = &[
    (&overview::VMS, |measures, _| overview::vms(measures)),
    (&faults::FAULTS, |measures, _| faults::faults(measures)),
    (&overview::REASONS, |measures, _| overview::reasons(measures)),
    (&overview::WORST_VCPUS, |measures, _| overview::worst_vcpus(measures)),
    (&nested::CHAINS, |measures, _| nested::chains(measures)),
    (&exits::EXITS, |measures, _| exits::exits(measures)),
    (&exits::EXIT_RATES, |measures, _| exits::exit_rates(measures)),
    (&bins::EXIT_BINS, |measures, _| bins::exit_bins(measures)),
    (&exits::EXIT_DETAILS, |measures, _| exits::exit_details(measures)),
    (&waits::PREEMPTORS, |measures, _| waits::preemptors(measures)),
    (&waits::HOST_INTERRUPTS, |measures, _| waits::host_interrupts(measures)),
    (&waits::WAKEUPS, |measures, _| waits::wakeups(measures)),
    (&waits::WAKERS, |measures, _| waits::wakers(measures)),
    (&waits::INTERRUPTS, |measures, _| waits::interrupts(measures)),
    (&vcpus::VCPUS, |measures, _| vcpus::vcpus(measures)),
    (&exits::HANDLED_BY, |measures, _| exits::handled_by(measures)),
    (&nested::CHAIN_SEQUENCES, |measures, _| nested::chain_sequences(measures)),
    (&nested::CHAIN_EXITS, |measures, _| nested::chain_exits(measures)),
    (&nested::NESTED_GUESTS, |measures, _| nested::nested_guests(measures)),
    (&vcpus::THREADS, |measures, _| vcpus::threads(measures)),
    (&parts::LOSSES, |measures, _| parts::losses(measures)),
    (&parts::EVENTS, |measures, _| parts::events(measures)),
    (&aligned::ALIGNMENT, aligned::alignment),
    (&aligned::MATCHED_EXITS, aligned::matched_exits),
    (&aligned::EXIT_SITES, aligned::exit_sites),
    (&aligned::GUEST_TASKS, aligned::guest_tasks),
    (&profile::PROFILE, profile::profile),
];

pub const TABLES: &[&TableSpec] = &{
    let mut specs = [BUILDERS[0].0; BUILDERS.len()];
    let mut at = 0;
    while at < BUILDERS.len() {
        specs[at] = BUILDERS[at].0;
        at += 1;
    }
    specs
};

pub fn tables(measures: &[Measures<'_>], given: &Given) -> Vec<Table> {
    let mut tables = parallel::map(BUILDERS.len(), |number| (BUILDERS[number].1)(measures, given));
    // An empty table is news only where it says that nothing is missing.
    for table in tables.iter_mut().filter(|table| table.rows.is_empty() && table.spec.name != parts::LOSSES.name) {
        table.shown = None;
    }
    let many = measures.iter().any(Measures::is_of_many);
    given.listing.ranking.arrange(&mut tables, many);
    tables
}

/// Shares are of one machine's trace, so its rows stay together.
const fn by_machine(shown: Shown) -> Shown {
    Shown { grouped_by: Some("machine"), ..shown }
}

fn each_vcpu<'m>(measures: &'m [Measures<'m>]) -> impl Iterator<Item = (&'m Measures<'m>, &'m Vcpu)> {
    measures.iter().flat_map(|measure| measure.vcpus.iter().map(move |vcpu| (measure, *vcpu)))
}

/// The first cells of every row about a vCPU: `machine`, `vm`, `vcpu`.
fn keys(measure: &Measures<'_>, vcpu: &Vcpu) -> Vec<Cell> {
    vec![measure.part.machine.as_str().into(), vcpu.vm.as_str().into(), u64::from(vcpu.vcpu).into()]
}

/// Exits of a vCPU by level and name; codes of one name (VMX 31 and 32 are both MSR) are one row.
fn by_name<'v>(measure: &Measures<'_>, vcpu: &'v Vcpu) -> BTreeMap<(Level, String), Vec<&'v ExitSums>> {
    let mut rows: BTreeMap<(Level, String), Vec<&ExitSums>> = BTreeMap::new();
    for (level, reason, sums) in measure.exits_of(vcpu) {
        rows.entry((level, reason.name())).or_default().push(sums);
    }
    rows
}

fn quantiles(histogram: &Histogram) -> [Cell; 3] {
    histogram.quantiles([0.5, 0.9, 0.99]).map_or([const { Cell::Missing }; 3], |values| values.map(Cell::from))
}

/// All samples of some distributions; nearly always there is one, which is not copied.
fn merged<'h>(histograms: impl Iterator<Item = &'h Histogram>) -> Cow<'h, Histogram> {
    let all = histograms.map(Cow::Borrowed).reduce(|mut all, one| {
        all.to_mut().merge(&one);
        all
    });
    all.unwrap_or_default()
}
