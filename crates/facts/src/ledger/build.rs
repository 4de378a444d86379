//! The traces of a recording become its ledger: each is walked once, guests' are put on the time line of the machine below.

use super::begin::Begin;
use super::extra::Extra;
use super::identity::{self, Known};
use super::line::TimeLine;
use super::model::{Flow, Helper, Loss, PartFlow, Sums, Vcpu};
use super::tally::Tally;
use crate::losses::{Collector, PartLosses};
use crate::samples::traced::{self, Traced, TracedSamples};
use crate::workers;
use crate::{Given, Input};
use base::timeline::LaneKind;
use base::{Clock, ClockSource, Histogram, Narrow, Problem, Problems, Span};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use trace::facts::Coverage;
use trace::{Event, Totals};
use walk::Part;
use walk::backfill::backfilled;
use walk::cut_from;
use walk::replay::{ExtraEvents, WalkObserver, walked};
use walk::state::{LEVELS, State, TracedLevel};
use walk::thread::Thread;
use walk::{LONGEST_NS, Sink, Walk};

/// Sets the window when the trace begins, and tells how far it is.
struct Windowed<'a> {
    window: Option<Span>,
    progress: &'a mut dyn FnMut(u64, u64),
    traced: Traced,
}

/// What every walk of the ledger fills.
type Sinks = (Tally, (Collector, Extra));

impl WalkObserver<Sinks> for Windowed<'_> {
    fn start(&mut self, walk: &mut Walk<Sinks>, origin_ns: u64) {
        let window = self.window.unwrap_or(Span { from_ns: 0, to_ns: u64::MAX });
        let window =
            Span { from_ns: window.from_ns.saturating_add(origin_ns), to_ns: window.to_ns.saturating_add(origin_ns) };
        walk.sink.0.window = window;
        walk.sink.1.0.begin(window);
        walk.sink.1.1.begin(window);
    }

    #[inline(always)]
    fn event(&mut self, walk: &mut Walk<Sinks>, event: &Event<'_>) {
        walk.event(event);
        walk.sink.1.1.event(event);
    }

    fn other(&mut self, _: &mut Walk<Sinks>, event: &Event<'_>) {
        self.traced.event(event);
    }

    fn progress(&mut self, done: u64, all: u64) {
        (self.progress)(done, all);
    }
}

/// What one walk over each trace of a recording gives.
#[derive(Debug)]
pub struct Ledger {
    /// Where the time of every vCPU went.
    pub flow: Flow,
    /// What every vCPU lost, in the order of the flow's parts.
    pub losses: Vec<PartLosses>,
    /// Samples among the events of each part.
    pub traced: Vec<TracedSamples>,
}

/// What one walk gives beside the ledger.
struct OfPart {
    losses: PartLosses,
    traced: TracedSamples,
    extra: Extra,
}

/// Builds the ledger of all traces of a recording.
pub fn build(input: &Input, given: &Given, progress: &mut dyn FnMut(u64, u64)) -> Flow {
    ledger(input, given, progress).flow
}

/// The same with all that the walk gives.
pub fn ledger(input: &Input, given: &Given, progress: &mut dyn FnMut(u64, u64)) -> Ledger {
    build_with(input, given, Extra::default, progress).0
}

/// The same, and of each trace what `extra` asks for.
pub(crate) fn build_with(
    input: &Input,
    given: &Given,
    extra: fn() -> Extra,
    progress: &mut dyn FnMut(u64, u64),
) -> (Ledger, Vec<Extra>) {
    let own: Vec<Option<Clock>> = input.parts.iter().map(|part| trace::calibrate::fit(part.trace.as_ref())).collect();
    let (mut parts, mut sums) = (Vec::new(), Vec::new());
    for (part, fitted) in input.parts.iter().zip(&own) {
        let (fitted, fitted_to) = match fitted {
            Some(fitted) => (Some(fitted.clone()), Some("events that carry CLOCK_MONOTONIC".to_owned())),
            None => borrowed_clock(part, &input.parts, &own).unzip(),
        };
        let (mut flow, of_part) = build_part(part, fitted, given, extra, progress);
        flow.clock_fitted_to = fitted_to;
        // Of a private copy nobody knows the name.
        flow.path = input.recording.as_named(&flow.path).into_owned();
        parts.push(flow);
        sums.push(of_part);
    }
    super::aligned::align(input, given, &mut parts);
    super::line::begin(input, &mut parts);
    narrow(input, given, &mut parts, (&mut sums, extra), progress);
    super::aligned::add_stages(input, &mut parts);
    super::profile::add(input, given, &mut parts);
    super::duplicates::choose_primary(&mut parts);
    super::affinity::add(&input.machines, &mut parts);
    let mut flow = Flow { parts, emulated: input.recording.emulated };
    super::line::say(input, &mut flow);
    let (mut losses, mut traced, mut extras) = (Vec::new(), Vec::new(), Vec::new());
    for of_part in sums {
        losses.push(of_part.losses);
        traced.push(of_part.traced);
        extras.push(of_part.extra);
    }
    let twins = losses.iter_mut().zip(&flow.parts).filter(|(_, part)| part.twin_of.is_some());
    twins.for_each(|(losses, _): (&mut PartLosses, _)| losses.vcpus.clear());
    (Ledger { flow, losses, traced }, extras)
}

/// A window is one of the recording's axis: traces that begin elsewhere on it, which were read by their own, are read again.
fn narrow(
    input: &Input,
    given: &Given,
    parts: &mut [PartFlow],
    (sums, extra): (&mut [OfPart], fn() -> Extra),
    progress: &mut dyn FnMut(u64, u64),
) {
    let Some(window) = given.narrow.window else { return };
    let line = TimeLine::new(input, parts);
    let windows: Vec<Option<Span>> = (0..parts.len()).map(|place| line.own_window(place, window)).collect();
    for (((part, flow), sums), window) in input.parts.iter().zip(parts).zip(sums).zip(windows) {
        if window.is_none() {
            continue;
        }
        let given = Given { narrow: Narrow { window, ..given.narrow.clone() }, ..given.clone() };
        let (again, of_window) = build_part(part, Some(flow.clock.clone()), &given, extra, progress);
        let known = std::mem::replace(flow, again);
        let PartFlow { clock_fitted_to, aligned, begin, problems, .. } = known;
        (flow.clock_fitted_to, flow.aligned, flow.begin, flow.problems) = (clock_fitted_to, aligned, begin, problems);
        *sums = of_window;
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
    given: &Given,
    extra: fn() -> Extra,
    progress: &mut dyn FnMut(u64, u64),
) -> (PartFlow, OfPart) {
    let facts = part.trace.facts();
    let clock = fitted.clone().unwrap_or_else(|| facts.clock.clone());
    let sink = (Tally::default(), (Collector::default(), extra()));
    let mut ear = Windowed { window: given.narrow.window, progress, traced: Traced::default() };
    let besides = ExtraEvents { fitted, events: Some(traced::wanted()) };
    let (mut walk, totals) = walked(part, &given.traces.ignore_events, besides, sink, &mut ear);
    let (origin_ns, end_ns) = totals.span_ns.unwrap_or((0, 0));
    // As the walk has ended it.
    let end_ns = end_ns.min(origin_ns.saturating_add(LONGEST_NS));
    walk.sink.0.end(&walk.threads);
    let settled = settle_levels(&mut walk);
    walk.sink.1.0.end(&walk.threads);
    walk.sink.1.1.end(&walk.threads);
    let length_ns = end_ns - origin_ns;
    let window = given.narrow.window.unwrap_or(Span { from_ns: 0, to_ns: length_ns });
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
    let mut sums = std::mem::take(&mut walk.sink.0.sums);
    let mut woken = wake_ups_of_others(&walk.threads, &mut sums);
    let mut vcpus = identity::vcpus(&walk.threads, sums, &comms, &Known::of_part(part), given);
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
    let losses = losses(facts, &walk, &totals.problems);
    let (collector, extra) = walk.sink.1;
    let mut flow = PartFlow {
        helpers: Vec::new(),
        ambiguous_accepts: walk.flights.ambiguous,
        span: Span { from_ns: origin_ns, to_ns: end_ns },
        begin: Begin::default(),
        machine: part.machine.clone(),
        level: part.level,
        format: facts.format,
        kernel: facts.uname.clone(),
        window,
        tally: tally(facts, &totals),
        events: totals.events(),
        halts: std::mem::take(&mut walk.halts),
        silent_vcpus: silent(&vcpus, part),
        vcpus,
        vhost: vhost.collect(),
        handlers: walk.handlers,
        losses,
        seen: walk.seen,
        doubts: walk.doubts,
        stale_entries: walk.stale_entries,
        faults: walk.faults.all().map(|(me, fault, seen)| (walk.threads[me].tid, fault, seen.clone())).collect(),
        unattributed: walk.unattributed,
        work: ear.traced.work(),
        unseen_cpus: facts
            .coverage
            .iter()
            .filter(|(_, part)| **part != Coverage::Whole)
            .map(|(cpu, part)| (*cpu, *part))
            .collect(),
        pauses: walk.pauses.iter().map(|(from_ns, to_ns)| Span { from_ns: *from_ns, to_ns: *to_ns }).collect(),
        cpus: facts.cpus,
        has_switches: totals_of(facts, &totals, "sched_switch") > 0,
        problems: problems.list().to_vec(),
        comms,
        settled,
        gone,
        threads: BTreeMap::new(),
        quotas: BTreeMap::new(),
        snapshot: None,
        clock,
        clock_fitted_to: None,
        path,
        aligned: None,
        profile: Vec::new(),
        twin_of: None,
    };
    let helper = |(kind, tid, comm): (LaneKind, i32, &str)| {
        woken.remove(&tid).map(|wake_to_run| Helper { kind, tid, comm: comm.to_owned(), wake_to_run })
    };
    flow.helpers = workers::of(&flow).into_iter().filter_map(helper).collect();
    let losses = collector.of_part(&flow);
    (flow, OfPart { losses, traced: ear.traced.end(), extra })
}

/// From waking to running, by thread, of those that run no vCPU.
fn wake_ups_of_others(threads: &[Thread], sums: &mut [Sums]) -> FxHashMap<i32, Histogram> {
    let others = threads.iter().zip(sums).filter(|(thread, sums)| !thread.is_vcpu && sums.wake_to_run.count() > 0);
    others.map(|(thread, sums)| (thread.tid, std::mem::take(&mut sums.wake_to_run))).collect()
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

/// Settles what only the end of the trace can tell of levels (docs/read/flow.md, "Backfill"), and all sums; returns what the levels of
/// each vCPU thread turned out to be.
fn settle_levels(walk: &mut Walk<Sinks>) -> FxHashMap<i32, [TracedLevel; LEVELS]> {
    let seen = walk.seen;
    let mut levels = FxHashMap::default();
    for (thread, sums) in walk.threads.iter().zip(&mut walk.sink.0.sums) {
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
pub const UNKNOWN_EVENTS: &str = "unknown event";

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
fn losses(facts: &trace::Facts, walk: &Walk<impl Sink>, problems: &Problems) -> Vec<Loss> {
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
        ("crowded", doubts.crowded, 0),
    ];
    let counted = counted.into_iter().filter(|(_, count, _)| *count > 0);
    losses.extend(counted.map(|(kind, count, bytes)| Loss { cpu: None, kind: kind.into(), count, bytes }));
    losses
}
