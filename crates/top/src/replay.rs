//! A recording as if it happened now: one interval after the other, each with the numbers of `report --from --to`.

use super::head::Head;
use super::observe::Frame;
use analysis::facts::ledger::measure::Measures;
use analysis::facts::ledger::model as ledger;
use analysis::facts::state::State;
use analysis::flow::live::{Exits, Preemptor, Vcpu};
use analysis::{Case, Given, Input};
use anyhow::bail;
use base::number::duration;
use base::recording::Recording;
use base::{Narrow, Span};
use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

/// Intervals of a recording that are still to come.
pub struct Replay {
    input: Arc<Input>,
    vm: Option<String>,
    /// The trace that is counted: that of the outermost machine with vCPUs.
    part: usize,
    title: String,
    cpus: usize,
    at_ns: u64,
    length_ns: u64,
}

impl Replay {
    /// From `at` after the first event on, of all VMs or of the one called so.
    ///
    /// # Errors
    /// If the recording has no vCPU, not this VM, or ends before.
    pub fn of(input: Input, vm: Option<String>, at: Duration) -> anyhow::Result<Self> {
        let (input, at_ns) = (Arc::new(input), at.as_nanos() as u64);
        let case = Case::new(Arc::clone(&input), Given::default());
        let flow = case.ledger();
        let Some(part) = flow.parts.iter().position(|part| !part.vcpus.is_empty()) else {
            bail!("no trace of this recording shows a vCPU; kvmscope report says what it has");
        };
        let first = &flow.parts[part];
        if let Some(vm) = vm.as_ref().filter(|vm| first.vcpus.iter().all(|vcpu| vcpu.vm != **vm)) {
            let mut names: Vec<&str> = first.vcpus.iter().map(|vcpu| vcpu.vm.as_str()).collect();
            names.dedup();
            bail!("this recording has no VM {vm}; there is {}", names.join(", "));
        }
        let length_ns = flow.parts.iter().map(|part| part.on_axis(part.span.to_ns)).max().unwrap_or(0);
        if at_ns >= length_ns {
            let (length, at) = (duration(length_ns as f64), duration(at_ns as f64));
            bail!("the recording is {length} long and has nothing from {at} on");
        }
        let facts = input.parts[part].trace.facts();
        // What a kernel without a name calls itself.
        let hostname = facts.hostname.clone().filter(|name| name != "(none)");
        let (cpus, title) = (facts.cpus as usize, hostname.unwrap_or_else(|| first.machine.clone()));
        drop(case);
        Ok(Self { input, vm, part, title, cpus, at_ns, length_ns })
    }

    /// The recording, with the mark of an emulator that it may have.
    pub fn recording(&self) -> &Recording {
        &self.input.recording
    }

    /// Where the last interval ended.
    pub fn position(&self) -> String {
        shown(self.at_ns)
    }

    /// The next `every` of it; `None` at its end.
    pub fn frame(&mut self, every: Duration) -> Option<Frame> {
        if self.at_ns >= self.length_ns {
            return None;
        }
        let to_ns = self.at_ns.saturating_add(every.as_nanos() as u64).min(self.length_ns);
        let window = Span { from_ns: std::mem::replace(&mut self.at_ns, to_ns), to_ns };
        let narrow = Narrow { vm: self.vm.clone(), window: Some(window), ..Narrow::default() };
        let case = Case::new(Arc::clone(&self.input), Given { narrow, ..Given::default() });
        let measure = Measures::of(&case.ledger().parts[self.part], case.given());
        let vcpus: Vec<Vcpu> = measure.vcpus.iter().map(|of| vcpu(&measure, of)).collect();
        let stretch = format!("{} to {} of {}", shown(window.from_ns), shown(to_ns), shown(self.length_ns));
        let head = Head::recorded((&self.title, self.cpus), &vcpus, stretch);
        let mut floor = Vec::new();
        if let Some(emulator) = self.input.recording.emulated {
            floor.push(format!("EMULATED by {}: counts and order are real, times are not", emulator.name()));
        }
        if measure.part.lost_events() > 0 || measure.part.damaged_places() > 0 {
            floor.push("events are missing in this recording: what follows from them is unknown (?%)".to_owned());
        }
        floor.push(format!("recorded; the same: report --from {} --to {}", typed(window.from_ns), typed(to_ns)));
        Some(Frame { machine: measure.part.machine.clone(), head, floor, vcpus })
    }
}

/// `12.500 s`.
fn shown(ns: u64) -> String {
    format!("{:.3} s", ns as f64 / 1e9)
}

/// As `--from` takes it.
fn typed(ns: u64) -> String {
    format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

/// What `measure` has of one vCPU; what the recorded events cannot tell is missing, and no 0.
fn vcpu(measure: &Measures<'_>, of: &ledger::Vcpu) -> Vcpu {
    let (part, sums) = (measure.part, &of.sums);
    let of_exits = |ns: u64| (!part.lacks_exits()).then_some(ns);
    let of_switches = |ns: u64| part.has_switches.then_some(ns);
    Vcpu {
        vm: of.vm.clone(),
        vcpu: of.vcpu,
        tid: of.tid,
        wall_ns: sums.wall_ns(),
        guest_ns: of_exits(sums.ns_where(|state| matches!(state, State::Guest(_)))),
        // Polling for a halted guest is work of KVM.
        handling_ns: of_exits(sums.ns_where(|state| matches!(state, State::Handling(_) | State::HaltPoll))),
        userspace_ns: Some(sums.ns(State::Userspace)),
        irq_ns: Some(sums.ns(State::Irq)),
        softirq_ns: Some(sums.ns(State::Softirq)),
        nmi_ns: Some(sums.ns(State::Nmi)),
        halted_ns: of_exits(sums.ns(State::Halted)),
        wake_delay_ns: of_switches(sums.ns(State::WakeDelay)),
        preempted_ns: of_switches(sums.ns(State::Preempted)),
        ready_ns: of_switches(sums.ns(State::Preempted) + sums.ns(State::WakeDelay)),
        blocked_ns: of_switches(sums.ns(State::Blocked)),
        unknown_ns: Some(sums.ns(State::Unknown)),
        torn_ns: None,
        exits: (!part.lacks_exits()).then(|| exits(measure, of)),
        userspace_exits: None,
        preemptors: part.has_switches.then(|| preemptors(measure, of)),
        wakeup_p99_ns: sums.wake_to_run.quantile(0.99),
        wakeups: Vec::new(),
        missed: None,
    }
}

fn exits(measure: &Measures<'_>, of: &ledger::Vcpu) -> Vec<Exits> {
    let exits = measure.exits_of(of).map(|(level, reason, sums)| {
        let cost = &sums.cost_ns;
        Exits {
            reason: format!("{level} {}", reason.name()),
            count: sums.count,
            clipped: sums.count - cost.count(),
            total_ns: cost.sum(),
            p50_ns: cost.quantile(0.5),
            p90_ns: cost.quantile(0.9),
            p99_ns: cost.quantile(0.99),
            max_ns: (cost.count() > 0).then(|| cost.max()),
            bins: Vec::new(),
        }
    });
    let mut exits: Vec<Exits> = exits.collect();
    exits.sort_by_key(|exits| Reverse(exits.count));
    exits
}

fn preemptors(measure: &Measures<'_>, of: &ledger::Vcpu) -> Vec<Preemptor> {
    let by = of.sums.preemptors.iter().map(|(tid, sums)| Preemptor {
        by: tid.map_or_else(|| "unknown".to_owned(), |tid| measure.task_name(tid)),
        tid: *tid,
        count: sums.count,
        total_ns: sums.total_ns,
        max_ns: Some(sums.max_ns),
    });
    let mut by: Vec<Preemptor> = by.collect();
    by.sort_by_key(|by| Reverse(by.total_ns));
    by
}
