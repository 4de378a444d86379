//! Trace events become sums per vCPU.
//!
//! The walk tells of pieces of time, exits and chains; here they are added up inside the window that the user chose.
//! Nothing is kept per event: memory grows with the number of vCPUs, reasons and details.

use super::identity::{self, Known};
use super::line::TimeLine;
use super::model::{Flow, Loss, PartFlow, Sums, Vcpu};
use crate::facts::events::details::Detail;
use crate::facts::events::interrupts::Delivered;
use crate::facts::state::{LEVELS, State, TracedLevel};
use crate::facts::thread::{Chain, Exit, KEPT};
use crate::facts::walk::backfill::backfilled;
use crate::facts::walk::cut_from;
use crate::facts::walk::replay::{ExtraEvents, WalkObserver, walked};
use crate::facts::walk::{Preemptor, Sink, Walk};
use crate::input::Part;
use crate::{Ask, Error};
use base::{Clock, ClockSource, Narrow, Problem, Problems, Span};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use trace::Totals;
use trace::facts::Coverage;

/// Different details kept per reason, and different sequences per chain reason; the rest is counted without them.
const MOST_KINDS: usize = 4096;

/// Adds up what the walk tells, per thread.
pub struct Tally {
    /// Sums by thread number.
    pub sums: Vec<Sums>,
    /// Absolute times outside are left out.
    window: Span,
}

impl Tally {
    #[inline]
    fn of(&mut self, thread: usize) -> &mut Sums {
        if thread >= self.sums.len() {
            self.meet(thread);
        }
        &mut self.sums[thread]
    }

    #[cold]
    fn meet(&mut self, thread: usize) {
        self.sums.resize_with(thread + 1, Sums::default);
    }

    #[inline]
    fn inside(&self, time_ns: u64) -> bool {
        (self.window.from_ns..self.window.to_ns).contains(&time_ns)
    }
}

impl Sink for Tally {
    #[inline(always)]
    fn interval(&mut self, thread: usize, state: State, from_ns: u64, to_ns: u64) {
        let clipped = to_ns.min(self.window.to_ns).saturating_sub(from_ns.max(self.window.from_ns));
        self.of(thread).states_ns[state.index()] += clipped;
    }

    fn exit(&mut self, thread: usize, exit: &Exit) {
        if !self.inside(exit.at_ns) {
            return;
        }
        let sums = self.of(thread).exits.at((exit.level, exit.reason));
        sums.count += 1;
        if exit.reason.is_pause() {
            sums.bursts.add(exit.at_ns);
        }
        sums.handled[super::model::ExitSums::handler(exit.handled)] += 1;
        if let Some(cost_ns) = exit.cost_ns {
            sums.cost_ns.record(cost_ns);
        }
        if exit.detail == Detail::None {
            return;
        }
        if let Some((count, total_ns)) = sums.details.at_most(exit.detail, MOST_KINDS) {
            *count += 1;
            *total_ns += exit.cost_ns.unwrap_or(0);
        }
    }

    fn chain(&mut self, thread: usize, chain: &Chain) {
        if !self.inside(chain.start_ns) {
            return;
        }
        let sums = self.of(thread).chains.at(chain.reason);
        sums.count += 1;
        let Some(cost_ns) = chain.cost_ns else {
            sums.censored += 1;
            return;
        };
        sums.interrupted += u64::from(chain.interrupted);
        sums.migrated += u64::from(chain.migrated);
        sums.exits.record(chain.exits);
        sums.cost_ns.record(cost_ns);
        sums.guest_ns += chain.guest_ns;
        sums.userspace_ns += chain.userspace_ns;
        chain.by_reason().for_each(|(reason, count)| *sums.by_reason.at(reason) += count);
        if chain.exits <= KEPT as u64 {
            if let Some(count) = sums.sequences.get_mut(chain.sequence.as_slice()) {
                *count += 1;
            } else if sums.sequences.len() < MOST_KINDS {
                sums.sequences.insert(chain.sequence.to_vec(), 1);
            }
        }
    }

    fn preempted(&mut self, thread: usize, by: &Preemptor, from_ns: u64, to_ns: u64) {
        let took = by.took && self.inside(from_ns);
        let (from_ns, to_ns) = (from_ns.max(self.window.from_ns), to_ns.min(self.window.to_ns));
        let length_ns = to_ns.saturating_sub(from_ns);
        if length_ns == 0 && !took {
            return;
        }
        let sums = self.of(thread).preemptors.entry(by.tid).or_default();
        sums.count += u64::from(took);
        sums.total_ns += length_ns;
        sums.max_ns = sums.max_ns.max(length_ns);
        sums.cpu = by.cpu;
    }

    fn nested_entry(&mut self, thread: usize, vmcb: u64, at_ns: u64) {
        if self.inside(at_ns) {
            *self.of(thread).nested_entries.entry(vmcb).or_default() += 1;
        }
    }

    fn delivered(&mut self, thread: usize, interrupt: &Delivered) {
        if self.inside(interrupt.accepted_ns) {
            let sums = self.of(thread).interrupts.entry(interrupt.vector).or_default();
            sums.to_inject_ns.record(interrupt.injected_ns.saturating_sub(interrupt.accepted_ns));
            sums.to_entry_ns.record(interrupt.entered_ns.saturating_sub(interrupt.accepted_ns));
        }
    }

    fn ran_after_waking(&mut self, thread: usize, woken_ns: u64, ran_ns: u64) {
        if self.inside(woken_ns) {
            self.of(thread).wake_to_run.record(ran_ns - woken_ns);
        }
    }

    fn entered_after_waking(&mut self, thread: usize, woken_ns: u64, entered_ns: u64) {
        if self.inside(woken_ns) {
            self.of(thread).wake_to_entry.record(entered_ns - woken_ns);
        }
    }
}

/// Sets the window when the trace begins, and tells how far it is.
struct Windowed<'a> {
    window: Option<Span>,
    progress: &'a mut dyn FnMut(u64, u64),
}

impl WalkObserver<Tally> for Windowed<'_> {
    fn start(&mut self, walk: &mut Walk<Tally>, origin_ns: u64) {
        let window = self.window.unwrap_or(Span { from_ns: 0, to_ns: u64::MAX });
        walk.sink.window =
            Span { from_ns: window.from_ns.saturating_add(origin_ns), to_ns: window.to_ns.saturating_add(origin_ns) };
    }

    fn progress(&mut self, done: u64, all: u64) {
        (self.progress)(done, all);
    }
}

/// Builds the flow of all traces of a recording.
pub fn build(ask: &mut Ask<'_>) -> Result<Flow, Error> {
    let own: Vec<Option<Clock>> =
        ask.input.parts.iter().map(|part| trace::calibrate::fit(part.trace.as_ref())).collect();
    let mut parts = Vec::new();
    for (part, fitted) in ask.input.parts.iter().zip(&own) {
        let (fitted, fitted_to) = match fitted {
            Some(fitted) => (Some(fitted.clone()), Some("events that carry CLOCK_MONOTONIC".to_owned())),
            None => borrowed_clock(part, &ask.input.parts, &own).unzip(),
        };
        let mut flow = build_part(part, fitted, ask.options, ask.progress);
        flow.clock_fitted_to = fitted_to;
        parts.push(flow);
    }
    super::aligned::align(ask, &mut parts);
    narrow_guests(ask, &mut parts);
    super::profile::add(ask, &mut parts);
    crate::facts::ledger::duplicates::choose_primary(&mut parts);
    super::affinity::add(ask, &mut parts);
    let mut flow = Flow { parts, emulated: ask.input.recording.emulated };
    super::line::say(ask.input, &mut flow);
    Ok(flow)
}

/// A window is one of the outermost machine's line: guests' traces, which were read by their own, are read again.
fn narrow_guests(ask: &mut Ask<'_>, parts: &mut [PartFlow]) {
    let Some(window) = ask.options.narrow.window else { return };
    let line = TimeLine::new(ask.input, parts);
    let windows: Vec<Option<Span>> = (0..parts.len()).map(|place| line.own_window(place, window)).collect();
    for ((part, flow), window) in ask.input.parts.iter().zip(parts).zip(windows) {
        if window.is_none() {
            continue;
        }
        let options = crate::Options { narrow: Narrow { window, ..ask.options.narrow.clone() }, ..ask.options.clone() };
        let again = build_part(part, Some(flow.clock.clone()), &options, ask.progress);
        let known = std::mem::replace(flow, again);
        let PartFlow { clock_fitted_to, aligned, problems, .. } = known;
        (flow.clock_fitted_to, flow.aligned, flow.problems) = (clock_fitted_to, aligned, problems);
    }
}

/// The scale of a time-stamp counter that another trace of the recording tells: guests count the same counter, unless
/// KVM scales it for them, which it does for guests migrated from a CPU of another frequency.
fn borrowed_clock(part: &Part, parts: &[Part], fitted: &[Option<Clock>]) -> Option<(Clock, String)> {
    let clock = &part.trace.facts().clock;
    if clock.source != ClockSource::None || clock.name != "x86-tsc" {
        return None;
    }
    let known = |(other, fitted): (&Part, &Option<Clock>)| {
        let clock = fitted.clone().unwrap_or_else(|| other.trace.facts().clock.clone());
        let same = clock.source != ClockSource::None && clock.name == "x86-tsc";
        same.then(|| (Clock { source: ClockSource::Fitted, ..clock }, format!("the trace of {}", other.machine)))
    };
    parts.iter().zip(fitted).find_map(known)
}

fn build_part(
    part: &Part,
    fitted: Option<Clock>,
    options: &crate::Options,
    progress: &mut dyn FnMut(u64, u64),
) -> PartFlow {
    let facts = part.trace.facts();
    let clock = fitted.clone().unwrap_or_else(|| facts.clock.clone());
    let sink = Tally { sums: Vec::new(), window: Span::default() };
    let mut ear = Windowed { window: options.narrow.window, progress };
    let besides = ExtraEvents { fitted, ..ExtraEvents::default() };
    let (mut walk, totals) = walked(part, options, besides, sink, &mut ear);
    let (origin_ns, end_ns) = totals.span_ns.unwrap_or((0, 0));
    let settled = settle_levels(&mut walk);
    let length_ns = end_ns - origin_ns;
    let window = options.narrow.window.unwrap_or(Span { from_ns: 0, to_ns: length_ns });
    let window = Span { from_ns: window.from_ns.min(length_ns), to_ns: window.to_ns.min(length_ns) };
    let path = facts.path.display().to_string();
    let mut problems = Problems::default();
    problems.extend(totals.problems.list().iter().cloned());
    // A trace without any clock says so itself.
    let has_clock = !facts.problems.iter().any(|problem| problem.expected == "a clock");
    if clock.source == ClockSource::None && has_clock {
        problems.note(uncalibrated(&path, &clock.name));
    }
    if totals.unknown > 0 {
        problems.note(undescribed(&path, totals.unknown));
    }
    let comms = cut_from::comms(part, &walk);
    let mut vcpus =
        identity::vcpus(&walk.threads, std::mem::take(&mut walk.sink.sums), &comms, &Known::of_part(part), options);
    for vcpu in &mut vcpus {
        // The walk has met nested guests outside the window as well.
        let entries = &vcpu.sums.nested_entries;
        vcpu.contexts.iter_mut().for_each(|one| one.entries = entries.get(&one.vmcb).copied().unwrap_or(0));
        vcpu.contexts.retain(|one| one.entries > 0);
    }
    if part.level != base::Level::L0 {
        // The guests of a guest may be called as the guest itself is.
        vcpus.iter_mut().for_each(|vcpu| vcpu.vm = format!("{}/{}", part.machine, vcpu.vm));
    }
    let gone = walk.threads.iter().filter(|thread| thread.gone).map(|thread| thread.tid).collect();
    let vhost = comms.iter().filter(|(_, comm)| comm.starts_with("vhost-")).map(|(tid, comm)| (comm.clone(), *tid));
    PartFlow {
        span: Span { from_ns: origin_ns, to_ns: end_ns },
        machine: part.machine.clone(),
        level: part.level,
        format: facts.format,
        kernel: facts.uname.clone(),
        window,
        tally: tally(facts, &totals),
        events: totals.events(),
        silent_vcpus: silent(&vcpus, part),
        vcpus,
        vhost: vhost.collect(),
        losses: losses(facts, &walk, &totals.problems),
        seen: walk.seen,
        doubts: walk.doubts,
        stale_entries: walk.stale_entries,
        unattributed: walk.unattributed,
        unseen_cpus: facts
            .coverage
            .iter()
            .filter(|(_, part)| **part != Coverage::Whole)
            .map(|(cpu, part)| (*cpu, *part))
            .collect(),
        cpus: facts.cpus,
        has_switches: totals_of(facts, &totals, "sched_switch") > 0,
        problems: problems.list().to_vec(),
        comms,
        settled,
        gone,
        threads: BTreeMap::new(),
        clock,
        clock_fitted_to: None,
        path,
        aligned: None,
        profile: Vec::new(),
        twin_of: None,
    }
}

/// How many of `vcpus` are known from the recording that this one was cut from alone.
fn silent(vcpus: &[Vcpu], part: &Part) -> u64 {
    let known: BTreeSet<i32> = part.cut_from.vcpus.iter().map(|thread| thread.tid).collect();
    let is_known = |vcpu: &&Vcpu| known.contains(&vcpu.tid);
    let is_silent = |vcpu: &&Vcpu| {
        let mut states = vcpu.sums.states_ns.iter().enumerate().map(|(index, ns)| (State::of_index(index), *ns));
        let has_run = states.any(|(state, ns)| matches!(state, State::Guest(_)) && ns > 0);
        vcpu.sums.exit_count() == 0 && !has_run
    };
    vcpus.iter().filter(is_known).filter(is_silent).count() as u64
}

/// Settles what only the end of the trace can tell of levels (docs/flow.md, "Backfill"), and all sums; returns what the levels of
/// each vCPU thread turned out to be.
fn settle_levels(walk: &mut Walk<Tally>) -> FxHashMap<i32, [TracedLevel; LEVELS]> {
    let seen = walk.seen;
    walk.sink.sums.resize_with(walk.threads.len(), Sums::default);
    let mut levels = FxHashMap::default();
    for (thread, sums) in walk.threads.iter().zip(&mut walk.sink.sums) {
        let of_thread: [TracedLevel; LEVELS] =
            std::array::from_fn(|index| backfilled(TracedLevel::of_index(index), thread, &seen));
        for (from, to) in (0..LEVELS).map(TracedLevel::of_index).zip(of_thread) {
            if from != to {
                sums.relevel(from, to);
            }
        }
        sums.settle();
        if thread.is_vcpu {
            levels.insert(thread.tid, of_thread);
        }
    }
    levels
}

fn uncalibrated(path: &str, clock: &str) -> Problem {
    let text = format!(
        "{path}: the tick length of clock {clock} is unknown; one tick is shown as 1 ns. Record with `trace-cmd \
         record -C mono`, or add the event timer:hrtimer_expire_entry"
    );
    Problem::at(path, None, "the length of a tick", format!("clock {clock} without a scale"), 0, text)
}

fn tally(facts: &trace::Facts, totals: &Totals) -> Vec<(String, u64)> {
    let rows = facts.event_types.iter().zip(&totals.tally).filter(|(_, count)| **count > 0);
    let mut rows: Vec<(String, u64)> = rows.map(|(event, count)| (event.name.clone(), *count)).collect();
    rows.extend((totals.unknown > 0).then(|| (UNKNOWN_EVENTS.to_owned(), totals.unknown)));
    rows.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    rows
}

/// How table `events` calls what no description names; trace-cmd prints UNKNOWN EVENT.
pub(crate) const UNKNOWN_EVENTS: &str = "unknown event";

fn undescribed(path: &str, count: u64) -> Problem {
    let text = format!("{path}: the file has no format for {count} of its events; their content is missing");
    let mut problem = Problem::at(path, None, "a format for every event", "ids that no format has", 0, text);
    problem.count = count;
    problem
}

fn totals_of(facts: &trace::Facts, totals: &Totals, name: &str) -> u64 {
    let rows = facts.event_types.iter().zip(&totals.tally);
    rows.filter(|(event, _)| event.name == name).map(|(_, count)| count).sum()
}

/// Everything that is missing, by CPU and kind.
fn losses(facts: &trace::Facts, walk: &Walk<Tally>, problems: &Problems) -> Vec<Loss> {
    let stated = |loss: &trace::facts::StatedLoss| {
        let kind = match loss.kind.as_str() {
            "discarded events" => "discarded".to_owned(),
            "dropped events" => "dropped".to_owned(),
            other => other.replace(' ', "_"),
        };
        Loss { cpu: loss.cpu, kind, count: loss.count, bytes: 0 }
    };
    let mut losses: Vec<Loss> = facts.losses.iter().map(stated).collect();
    let mut missed: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for (cpu, _, count, bytes) in &walk.losses {
        let sums = missed.entry(*cpu).or_default();
        // The file claims them, so their sum may be absurd.
        *sums = (sums.0.saturating_add(*count), sums.1.saturating_add(*bytes));
    }
    // CTF states what its streams lack by packets, and the walk hears of nothing else.
    let is_stated = matches!(facts.format, trace::Format::Ctf1 | trace::Format::Ctf2);
    let missed = missed.into_iter().filter(|_| !is_stated);
    losses.extend(missed.map(|(cpu, (count, bytes))| Loss { cpu: Some(cpu), kind: "missed".into(), count, bytes }));
    let damage = |problems: &[Problem]| {
        problems.iter().fold((0u64, 0u64), |(count, bytes), problem| {
            (count.saturating_add(problem.count), bytes.saturating_add(problem.bytes_skipped))
        })
    };
    let (salvaged, damaged) = (damage(&facts.problems), damage(problems.list()));
    let doubts = &walk.doubts;
    let counted = [
        ("salvaged", salvaged.0, salvaged.1),
        ("damaged", damaged.0, damaged.1),
        ("level_conflict", doubts.level_conflicts, 0),
        ("clock_skew", doubts.clock_skew, 0),
        ("unseen_entry", doubts.unseen_entries, 0),
        ("unseen_switch", doubts.unseen_switches, 0),
        ("unattributed", walk.unattributed, 0),
    ];
    let counted = counted.into_iter().filter(|(_, count, _)| *count > 0);
    losses.extend(counted.map(|(kind, count, bytes)| Loss { cpu: None, kind: kind.into(), count, bytes }));
    losses
}
