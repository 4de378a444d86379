//! The ways of interrupts and timers: a picture of their stages, and what of them nothing shows.

use super::measure::Measured;
use super::tables::parts;
use base::figure::{Drawing, Mark, Point, PointGroup};
use base::number::{counted, duration, many};
use base::{Figure, Histogram, Unknown};
use facts::Case;
use facts::ledger::model::PartFlow;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use walk::stages::sums::InterruptSums;
use walk::stages::{IrqStage, TimerStage};

/// Vectors of each machine that are drawn: those with the most interrupts.
const MOST_DRAWN: usize = 1;

/// The stages of the most frequent interrupts of each machine: median, and up to the 99th percentile.
pub(super) fn figures(measured: &[Measured<'_>], case: &Case) -> Vec<Figure> {
    parts(measured).into_iter().filter_map(|part| figure(measured, part, case)).collect()
}

fn figure(measured: &[Measured<'_>], part: &PartFlow, case: &Case) -> Option<Figure> {
    let mut vectors: BTreeMap<(&str, u8), BTreeMap<IrqStage, Histogram>> = BTreeMap::new();
    for one in measured.iter().filter(|one| std::ptr::eq(one.part, part)) {
        for (vector, sums) in one.vcpu.sums.interrupts.iter() {
            let stages = vectors.entry((&one.vcpu.vm, vector.0)).or_default();
            for stage in IrqStage::ALL.into_iter().filter(|stage| sums.irq(*stage).count() > 0) {
                stages.entry(stage).or_default().merge(sums.irq(stage));
            }
        }
    }
    let mut vectors: Vec<_> =
        vectors.into_iter().filter(|(_, stages)| stages.contains_key(&IrqStage::Pending)).collect();
    vectors.sort_by_key(|(_, stages)| Reverse(stages[&IrqStage::Pending].count()));
    vectors.truncate(MOST_DRAWN);
    let ((_, vector), stages) = vectors.first()?;
    let median_ns = stages[&IrqStage::Pending].quantile(0.5)?;
    let caption = format!(
        "Half of the interrupts of vector {vector}, the most frequent one, were injected within {} after the APIC had accepted \
         them. Each dot is a median, each line ends at the 99th percentile.",
        duration(median_ns as f64)
    );
    let mark = if case.ledger().emulated.is_some() { Mark::Emulated } else { Mark::Measured };
    let group = |((vm, vector), stages): ((&str, u8), BTreeMap<IrqStage, Histogram>)| PointGroup {
        title: format!("vm {vm}   vector {vector}"),
        unit: "ns",
        points: stages.iter().filter_map(|(stage, lengths)| point(*stage, lengths, mark)).collect(),
    };
    Some(Figure {
        id: format!("irq-stages-{}", part.machine),
        title: "Virtual interrupts by stage".into(),
        caption,
        in_terminals: case.budget().is_some(),
        drawing: Drawing::Points(vectors.into_iter().map(group).collect()),
    })
}

fn point(stage: IrqStage, lengths: &Histogram, mark: Mark) -> Option<Point> {
    let (median, p99) = (lengths.quantile(0.5)? as f64, lengths.quantile(0.99)? as f64);
    Some(Point {
        label: stage.name().into(),
        value: median,
        interval: Some((median, p99)),
        mark,
        source: many(lengths.count(), "interrupt"),
    })
}

/// What of interrupts and timers nothing shows.
pub(super) fn unknown(measured: &[Measured<'_>]) -> Vec<Unknown> {
    let sum = |of: &dyn Fn(&InterruptSums) -> u64| -> u64 {
        measured.iter().flat_map(|one| one.vcpu.sums.interrupts.values()).map(of).sum()
    };
    let parts = parts(measured);
    let fired = |names: &[&str]| -> u64 {
        let events = parts.iter().flat_map(|part| &part.tally);
        events.filter(|(name, _)| names.contains(&name.as_str())).map(|(_, count)| count).sum()
    };
    let posted = sum(&|sums| sums.posted);
    let pending = sum(&|sums| sums.irq(IrqStage::Pending).count());
    let entered = sum(&|sums| sums.irq(IrqStage::Enter).count());
    let timers = sum(&|sums| sums.timer(TimerStage::Deliver).count());
    let handled = sum(&|sums| sums.irq(IrqStage::Guest).count());
    let moved = sum(&|sums| sums.moved);
    let contradicted = sum(&|sums| sums.contradicted);
    // A local APIC's event has the vCPU's number and not its thread; entries and exits have both.
    let accepts = |lacks_exits: bool| -> u64 {
        parts.iter().filter(|part| part.lacks_exits() == lacks_exits).map(|part| part.ambiguous_accepts).sum()
    };
    let (ambiguous, unnumbered) = (accepts(false), accepts(true));
    let ends = fired(&["kvm_eoi", "kvm_x86_eoi"]);
    let told_by_memory = fired(&["kvm_pv_eoi", "kvm_x86_pv_eoi"]);
    let measures = fired(&["kvm_wait_lapic_expire"]);
    let error_ns =
        measured.iter().flat_map(|one| one.vcpu.sums.interrupts.values()).map(|sums| sums.clock_error_ns).max();
    let lines = [
        (
            posted > 0,
            Some(posted),
            "posted_interrupts",
            format!(
                "APICv or AVIC delivered {}: what follows their acceptance is not observable from the host, and neither is any \
                 interrupt that a device posts to a running vCPU.",
                many(posted, "interrupt")
            ),
        ),
        (
            ambiguous > 0,
            Some(ambiguous),
            "ambiguous_accepts",
            format!(
                "{} a vCPU number that no thread or more than one VM has, so stages that begin with them are missing.",
                counted(ambiguous, "accepted interrupt names", "accepted interrupts name")
            ),
        ),
        (
            unnumbered > 0,
            Some(unnumbered),
            "unnumbered_accepts",
            format!(
                "{} the number of a vCPU, and without kvm_entry and kvm_exit nothing tells which thread has it: stages that \
                 begin with them are missing.",
                counted(unnumbered, "accepted interrupt has", "accepted interrupts have")
            ),
        ),
        (
            pending == 0 && posted == 0 && entered > 0,
            None,
            "no_accepts",
            "Without kvm_apic_accept_irq, how long interrupts were pending cannot be seen.".to_owned(),
        ),
        (
            ends == 0 && told_by_memory == 0 && entered > 0,
            None,
            "no_ends",
            "Without kvm_eoi, the ends of interrupts cannot be seen.".to_owned(),
        ),
        (
            told_by_memory > 0,
            Some(told_by_memory),
            "paravirtual_ends",
            format!(
                "{} by PV EOI: stage eoi is an upper bound.",
                counted(told_by_memory, "interrupt ended", "interrupts ended")
            ),
        ),
        (
            handled == 0 && entered > 0,
            None,
            "no_guest_stages",
            "Stages guest and thread take a trace of the guest (docs/read/latency.md).".to_owned(),
        ),
        (
            handled > 0,
            error_ns,
            "clock_error",
            format!(
                "Stage guest is accurate within {}: that is how well the guest's clock is aligned.",
                duration(error_ns.unwrap_or(0) as f64)
            ),
        ),
        (
            moved > 0,
            Some(moved),
            "changed_counters",
            format!(
                "{} while the guest's TSC was changed: their lateness is not split.",
                counted(moved, "timer was set", "timers were set")
            ),
        ),
        (
            contradicted > 0,
            Some(contradicted),
            "contradicted_timers",
            format!(
                "KVM measured another lateness than the stages say for {} of {}: a fault of this model, see stage residual.",
                many(contradicted, "timer"),
                many(timers, "timer")
            ),
        ),
        (
            timers == 0 && measures > 0,
            None,
            "no_timers",
            "Which interrupts are the guests' timers cannot be seen: record kvm_msr, kvm_apic_accept_irq and hrtimer events."
                .to_owned(),
        ),
    ];
    let lines = lines.into_iter().filter(|(holds, ..)| *holds);
    let line = |(_, amount, what, text): (bool, Option<u64>, &str, String)| Unknown {
        what: what.into(),
        amount: amount.map(|amount| amount as f64),
        unit: if what == "clock_error" { "ns".into() } else { String::new() },
        text,
    };
    lines.map(line).collect()
}
