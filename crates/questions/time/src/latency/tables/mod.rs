//! The tables of section `latency`.

mod attributed;
mod cache_use;
mod culprits;
mod definitions;
mod goals;
mod helpers;
pub(super) mod interrupts;
mod moments;
mod noise;
mod samples;
mod stages;
mod steal;
mod windows;

use super::measure::{Measured, Named};
use base::{Cell, Table, TableSpec};
use facts::Case;
use facts::ledger::model::PartFlow;

/// All tables, in reading order.
pub const TABLES: &[&TableSpec] = &[
    &goals::GOALS,
    &moments::MOMENTS,
    &culprits::CULPRITS,
    &windows::WINDOWS,
    &stages::IRQ_STAGES,
    &stages::TIMER_STAGES,
    &helpers::HELPER_WAKEUPS,
    &steal::STEAL,
    &definitions::DEFINITIONS,
    &samples::SAMPLES,
    &noise::NOISE,
    &interrupts::INTERRUPTS,
    &attributed::ATTRIBUTED,
    &cache_use::CACHE_USE,
];

pub(super) fn tables(measured: &[Measured<'_>], case: &Case) -> Vec<Table> {
    // A terminal shows these to who has a budget: others want to know how much was lost, and to whom.
    let detail = |mut table: Table| {
        table.shown.iter_mut().for_each(|shown| shown.in_terminals = case.budget().is_some());
        table
    };
    let mut tables = vec![
        goals::goals(case),
        detail(moments::moments(measured)),
        culprits::culprits(measured),
        windows::windows(measured),
        stages::irq_stages(measured),
        detail(stages::timer_stages(measured)),
        detail(helpers::helper_wakeups(measured)),
        detail(steal::steal(case)),
        definitions::definitions(measured),
        samples::samples(case),
        noise::noise(case),
        interrupts::interrupts(case),
        attributed::attributed(case),
        cache_use::cache_use(case),
    ];
    tables.iter_mut().filter(|table| table.rows.is_empty()).for_each(|table| table.shown = None);
    tables
}

/// The traces that show the vCPUs, each once.
pub(super) fn parts<'m>(measured: &'m [Measured<'m>]) -> Vec<&'m PartFlow> {
    let mut parts: Vec<&PartFlow> = measured.iter().map(|one| one.part).collect();
    parts.dedup_by(|a, b| std::ptr::eq(*a, *b));
    parts
}

/// The first cells of every row about a vCPU: `machine`, `vm`, `vcpu`.
fn keys(measured: &Measured<'_>) -> Vec<Cell> {
    let Measured { part, vcpu, .. } = measured;
    vec![part.machine.as_str().into(), vcpu.vm.as_str().into(), u64::from(vcpu.vcpu).into()]
}

/// The cells `state`, `by` and `by_tid`.
fn cause(named: &Named) -> [Cell; 3] {
    let tid = named.by_tid.map_or(Cell::Missing, |tid| Cell::I64(tid.into()));
    [named.state.name().into(), named.by.as_str().into(), tid]
}
