//! The losses of every vCPU become the numbers that tables, figures and sentences share.

use super::figures::{self, OverTime, Pauses};
use base::{Span, parallel};
use facts::Case;
use facts::budget::{moment_ns, windows_ns};
use facts::ledger::line::TimeLine;
use facts::ledger::model::{PartFlow, StretchSums, Vcpu};
use facts::losses::{By, Cause, Definition, InAll, LostIn, VcpuLosses, Worst};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use walk::events::host_interrupts::HostInterrupt;

/// Moments of each vCPU.
const MOST_MOMENTS: usize = 10;

pub(crate) struct Measured<'c> {
    pub part: &'c PartFlow,
    pub vcpu: &'c Vcpu,
    pub losses: &'c VcpuLosses,
    /// What was lost in the worst window of each length.
    pub windows: Vec<WorstWindow>,
    /// The worst windows of one length, none of which overlap; the worst first.
    pub moments: Vec<Moment>,
    /// The longest loss without a break.
    pub longest: Option<Moment>,
    /// Who took how much, most first.
    pub culprits: Vec<(Named, StretchSums)>,
    pub definitions: [ByDefinition; 2],
    /// How often it was away for how long.
    pub pauses: Pauses,
    /// When it lost how much.
    pub(crate) over_time: OverTime,
}

pub(crate) struct WorstWindow {
    pub window_ns: u64,
    pub loss_ns: u64,
    /// What it would be if all that is unknown was lost.
    pub high_ns: u64,
    /// Where it starts, on the recording's axis.
    pub at_ns: u64,
}

/// A window in which much was lost.
pub(crate) struct Moment {
    /// Where it starts, on the recording's axis.
    pub at_ns: u64,
    pub length_ns: u64,
    pub loss_ns: u64,
    /// Most first; they sum to the loss.
    pub causes: Vec<(Named, u64)>,
}

/// A cause as it is printed; what has one name is one cause.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Named {
    pub state: LostIn,
    pub by: String,
    pub by_tid: Option<i32>,
    /// The number of a device's interrupt.
    pub irq: Option<u32>,
}

pub(crate) struct ByDefinition {
    pub definition: Definition,
    /// Stretches that do not touch, or exits.
    pub count: u64,
    pub total_ns: u64,
    pub longest_ns: u64,
    /// The worst window; `None` if the recording is shorter.
    pub worst: Option<WorstWindow>,
}

impl Named {
    fn of(cause: Cause, part: &PartFlow) -> Self {
        let irq = match cause.by {
            By::Interrupt(by @ HostInterrupt::Irq(_)) => part.handlers.number(by),
            _ => None,
        };
        Self { state: cause.state, by: cause.by.name(part), by_tid: cause.by.tid(), irq }
    }
}

struct Asked {
    windows_ns: BTreeSet<u64>,
    /// How long the windows are that are listed one by one.
    moment_ns: u64,
    /// Where the bins of lengths begin.
    lengths_ns: Vec<u64>,
    include_halts: bool,
}

/// The vCPUs of all traces that answer for a machine, as far as they are wanted.
pub(crate) fn measure(case: &Case) -> Vec<Measured<'_>> {
    let (flow, given) = (case.ledger(), case.given());
    let line = TimeLine::new(case.input(), &flow.parts);
    let parts = flow.parts.iter().zip(case.losses()).enumerate();
    let answering = parts.filter(|(_, (part, _))| part.twin_of.is_none());
    let vcpus = answering.flat_map(|(place, (part, losses))| {
        part.vcpus.iter().zip(&losses.vcpus).map(move |(vcpu, losses)| (place, part, vcpu, losses))
    });
    let asked = Asked {
        windows_ns: windows_ns(case.budget()),
        moment_ns: moment_ns(case.budget()),
        lengths_ns: figures::ends(case.budget()),
        include_halts: given.latency.include_halts,
    };
    let wanted: Vec<_> = vcpus.filter(|(_, _, vcpu, _)| given.narrow.wants_vcpu(&vcpu.vm, vcpu.vcpu)).collect();
    parallel::map(wanted.len(), |number| {
        let (place, part, vcpu, losses) = wanted[number];
        Measured::of(part, vcpu, losses, &asked, |since_ns| line.on_axis(place, since_ns))
    })
}

impl<'c> Measured<'c> {
    fn of(
        part: &'c PartFlow,
        vcpu: &'c Vcpu,
        losses: &'c VcpuLosses,
        asked: &Asked,
        on_axis: impl Fn(u64) -> u64,
    ) -> Self {
        let lost = losses.stretches(Definition::Involuntary);
        let at_most = (!losses.unknown.is_empty()).then(|| losses.at_most(&lost));
        let worst = |window_ns: u64| {
            let Worst { at_ns, loss_ns } = lost.sup(losses.span, window_ns)?;
            let high = at_most.as_ref().and_then(|at_most| at_most.sup(losses.span, window_ns));
            let high_ns = high.map_or(loss_ns, |high| high.loss_ns);
            Some(WorstWindow { window_ns, loss_ns, high_ns, at_ns: on_axis(at_ns) })
        };
        let length_ns = asked.moment_ns;
        let windows = asked.windows_ns.iter().filter_map(|window_ns| worst(*window_ns)).collect();
        let moments =
            lost.worst_disjoint(losses.span, length_ns, MOST_MOMENTS).into_iter().map(|Worst { at_ns, loss_ns }| {
                let causes = causes_within(losses, part, Span { from_ns: at_ns, to_ns: at_ns + length_ns });
                Moment { at_ns: on_axis(at_ns), length_ns, loss_ns, causes }
            });
        let moments = moments.collect();
        let longest = lost.longest().map(|span| {
            let causes = causes_within(losses, part, span);
            Moment { at_ns: on_axis(span.from_ns), length_ns: span.length_ns(), loss_ns: span.length_ns(), causes }
        });
        let culprits = losses.lost.culprits().into_iter().map(|(cause, sums)| (Named::of(cause, part), sums));
        let culprits = grouped(culprits, |sum: &mut StretchSums, more| {
            sum.count += more.count;
            sum.total_ns += more.total_ns;
            sum.max_ns = sum.max_ns.max(more.max_ns);
        });
        let include_halts = asked.include_halts;
        let by = |definition, count, InAll { total_ns, longest_ns, worst }: InAll| {
            let worst = worst.map(|Worst { at_ns, loss_ns }| WorstWindow {
                window_ns: length_ns,
                loss_ns,
                high_ns: loss_ns,
                at_ns: on_axis(at_ns),
            });
            ByDefinition { definition, count, total_ns, longest_ns, worst }
        };
        let definitions = [
            by(Definition::Involuntary, lost.spans().len() as u64, lost.in_all(losses.span, length_ns)),
            by(
                Definition::ExitToEntry { include_halts },
                losses.exit_count(include_halts),
                losses.exits_in_all(include_halts, length_ns),
            ),
        ];
        let pauses = Pauses::of(&lost, &losses.lost, &asked.lengths_ns);
        let over_time = OverTime::of(losses, &lost, on_axis);
        let culprits = most_first(culprits, |sum| sum.total_ns);
        Self { part, vcpu, losses, windows, moments, longest, culprits, definitions, pauses, over_time }
    }

    /// Of a moment how long the loss was that it begins with, if no other of the vCPU was longer: else 0.
    fn longest_at(&self, moment: &Moment) -> u64 {
        self.longest.as_ref().filter(|longest| longest.at_ns == moment.at_ns).map_or(0, |longest| longest.length_ns)
    }

    /// How long nothing shows whether time was lost.
    pub(crate) fn unknown_ns(&self) -> u64 {
        self.losses.unknown.iter().map(Span::length_ns).sum()
    }

    /// The time in which it can have lost any: its guest's life, as question `flow` has it.
    pub(crate) fn lived_ns(&self) -> u64 {
        self.losses.span.length_ns().saturating_sub(self.losses.outside_ns)
    }
}

/// The moments of all vCPUs, those of the level that is believed first, then the worst; of those that are lost whole the one that begins the
/// longest loss.
pub(super) fn worst_first<'m, 'c>(measured: &'m [Measured<'c>]) -> Vec<(&'m Measured<'c>, &'m Moment)> {
    let mut all: Vec<_> = measured.iter().flat_map(|one| one.moments.iter().map(move |moment| (one, moment))).collect();
    let believed = measured.first().map(|first| first.part.level);
    all.sort_by_key(|(one, moment)| {
        let is_other = Some(one.part.level) != believed;
        (is_other, Reverse(moment.loss_ns), Reverse(one.longest_at(moment)), moment.at_ns)
    });
    all
}

/// What took the time of a vCPU in `span`, most first.
pub(super) fn causes_within(losses: &VcpuLosses, part: &PartFlow, span: Span) -> Vec<(Named, u64)> {
    let inside = losses.lost.causes_within(span).into_iter().map(|(cause, ns)| (Named::of(cause, part), ns));
    most_first(grouped(inside, |sum, ns| *sum += ns), |ns| *ns)
}

/// When each cause took time of a vCPU, in time order.
pub(super) fn spans_by_name(losses: &VcpuLosses, part: &PartFlow) -> BTreeMap<Named, Vec<Span>> {
    let mut spans: BTreeMap<Named, Vec<Span>> = BTreeMap::new();
    for lost in losses.lost.iter() {
        spans.entry(Named::of(lost.cause, part)).or_default().push(lost.span);
    }
    spans
}

fn grouped<T: Default>(rows: impl Iterator<Item = (Named, T)>, add: impl Fn(&mut T, T)) -> BTreeMap<Named, T> {
    let mut sums: BTreeMap<Named, T> = BTreeMap::new();
    rows.for_each(|(named, value)| add(sums.entry(named).or_default(), value));
    sums
}

fn most_first<T>(sums: BTreeMap<Named, T>, ns: impl Fn(&T) -> u64) -> Vec<(Named, T)> {
    let mut rows: Vec<(Named, T)> = sums.into_iter().collect();
    rows.sort_by_key(|(_, sum)| std::cmp::Reverse(ns(sum)));
    rows
}
