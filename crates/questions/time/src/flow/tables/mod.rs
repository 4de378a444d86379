//! The tables of section `flow`, with the names and columns of CONTRACTS section 3.

mod aligned;
mod bins;
mod exits;
mod nested;
mod overview;
mod parts;
mod profile;
mod vcpus;
mod waits;

pub use profile::stacks as sampled_stacks;

use base::{Cell, Histogram, Level, Shown, Table, TableSpec, parallel};
use facts::Given;
use facts::ledger::measure::Measures;
use facts::ledger::model::{ExitSums, Vcpu};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// All tables, in reading order.
pub const TABLES: &[&TableSpec] = &[
    &overview::VMS,
    &overview::REASONS,
    &overview::WORST_VCPUS,
    &nested::CHAINS,
    &exits::EXITS,
    &exits::EXIT_RATES,
    &bins::EXIT_BINS,
    &exits::EXIT_DETAILS,
    &waits::PREEMPTORS,
    &waits::HOST_INTERRUPTS,
    &waits::WAKEUPS,
    &waits::WAKERS,
    &waits::INTERRUPTS,
    &vcpus::VCPUS,
    &exits::HANDLED_BY,
    &nested::CHAIN_SEQUENCES,
    &nested::CHAIN_EXITS,
    &nested::NESTED_GUESTS,
    &vcpus::THREADS,
    &parts::LOSSES,
    &parts::EVENTS,
    &aligned::ALIGNMENT,
    &aligned::MATCHED_EXITS,
    &aligned::EXIT_SITES,
    &aligned::GUEST_TASKS,
    &profile::PROFILE,
];

pub fn tables(measures: &[Measures<'_>], given: &Given) -> Vec<Table> {
    let makers: &[&(dyn Fn() -> Table + Sync)] = &[
        &|| overview::vms(measures),
        &|| overview::reasons(measures),
        &|| overview::worst_vcpus(measures),
        &|| nested::chains(measures),
        &|| exits::exits(measures),
        &|| exits::exit_rates(measures),
        &|| bins::exit_bins(measures),
        &|| exits::exit_details(measures),
        &|| waits::preemptors(measures),
        &|| waits::host_interrupts(measures),
        &|| waits::wakeups(measures),
        &|| waits::wakers(measures),
        &|| waits::interrupts(measures),
        &|| vcpus::vcpus(measures),
        &|| exits::handled_by(measures),
        &|| nested::chain_sequences(measures),
        &|| nested::chain_exits(measures),
        &|| nested::nested_guests(measures),
        &|| vcpus::threads(measures),
        &|| parts::losses(measures),
        &|| parts::events(measures),
        &|| aligned::alignment(measures, given),
        &|| aligned::matched_exits(measures, given),
        &|| aligned::exit_sites(measures, given),
        &|| aligned::guest_tasks(measures, given),
        &|| profile::profile(measures, given),
    ];
    let mut tables = parallel::map(makers.len(), |number| makers[number]());
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
