//! Checks of exits that come in storms, by VM: PAUSE, inter-processor interrupts, timers; and of halt polling.
//!
//! One finding a rule, which names the worst VM and lists the others: a host of 80 vCPUs gets a list, not 80 findings. A
//! storm is a share of the VM's time, or a rate on one vCPU, over at least [`FEWEST_IN_STORM`] exits of that vCPU.

use super::{Sample, by_share, exits_give_back, gives_back, reasons, reasons_with, seen, state};
use base::number::{counted, duration, many, percent, plain, thousands};
use base::{About, Cost, CostKind, Evidence, Setting, Severity, Span};
use facts::ledger::bursts::{Burst, WINDOW_NS};
use facts::ledger::levels;
use facts::ledger::measure::{Measures, ReasonTotal};
use facts::ledger::model::Vcpu;
use facts::rule::Hit;
use walk::events::details::Detail;
use walk::events::reasons::Reason;
use walk::state::State;

/// Fewer exits on the worst vCPU say nothing about a rate.
const FEWEST_IN_STORM: u64 = 100;

/// PAUSE exits of one vCPU within [`WINDOW_NS`] from which on they are a storm, whatever the rest of the recording holds: each
/// follows a spin of 4,096 cycles (1 to 2 us), so these are a tenth of the window and more.
pub(in crate::flow) const FEWEST_IN_BURST: u64 = 500;

/// VMs listed as evidence; tables have the others.
const MOST_LISTED: usize = 5;

pub(in crate::flow) struct Limits {
    /// Share of the VM's vCPU time from which on it is one.
    pub share: f64,
    /// Exits a second of one vCPU from which on it is one.
    pub per_second: f64,
    /// Exits a second of one vCPU from which on it matters whatever time KVM takes: each also costs the guest its caches.
    heavy_per_second: f64,
}

/// PAUSE exits come only after the guest has spun through KVM's window (`ple_window`, 4,096 cycles): each is lost work.
pub(in crate::flow) const PAUSE: Limits = Limits { share: 0.02, per_second: 1_000.0, heavy_per_second: 10_000.0 };

/// Wake-ups of sibling vCPUs; a busy guest sends hundreds a second.
pub(in crate::flow) const IPI: Limits = Limits { share: 0.03, per_second: 5_000.0, heavy_per_second: 20_000.0 };

/// A guest with 1,000 ticks a second arms its timer 1,000 times and takes 1,000 expiries.
pub(in crate::flow) const TIMER: Limits = Limits { share: 0.03, per_second: 5_000.0, heavy_per_second: 20_000.0 };

/// Timer exits a second of one vCPU below which their share of time says that exits are slow there, not that there are many:
/// an idle guest has tens, a guest's tick up to 1,000.
pub(in crate::flow) const TIMER_LEAST_PER_SECOND: f64 = 1_000.0;

/// Share of a VM's time from which on halt polling is worth a finding.
pub(in crate::flow) const POLL_SHARE: f64 = 0.05;

/// Exits of one kind in one VM.
struct InVm<'f> {
    vm: &'f str,
    vcpus: usize,
    count: u64,
    ns: u64,
    wall_ns: u64,
    /// All exits of the VM.
    exits: u64,
    /// The vCPU with most of them, and how many.
    worst: (&'f Vcpu, u64),
    /// The vCPU that had a storm within the recording, and when.
    burst: Option<(&'f Vcpu, Burst)>,
}

impl InVm<'_> {
    fn share(&self) -> f64 {
        self.ns as f64 / self.wall_ns.max(1) as f64
    }

    fn share_of_exits(&self) -> f64 {
        self.count as f64 / self.exits.max(1) as f64
    }

    /// Exits a second of the worst vCPU.
    fn per_second(&self) -> f64 {
        self.worst.1 as f64 * 1e9 / self.worst.0.sums.wall_ns().max(1) as f64
    }

    fn is_storm(&self, limits: &Limits) -> bool {
        self.burst.is_some() || self.is_steady(limits)
    }

    /// True if it is a storm over the whole recording.
    fn is_steady(&self, limits: &Limits) -> bool {
        self.worst.1 >= FEWEST_IN_STORM && (self.share() >= limits.share || self.per_second() >= limits.per_second)
    }

    fn severity(&self, limits: &Limits) -> Severity {
        let by_rate = if self.per_second() >= limits.heavy_per_second { Severity::Medium } else { Severity::Low };
        by_share(self.share(), Sample { count: self.count, ns: self.ns }).max(by_rate)
    }

    fn words(&self, what: &str, table: &'static str) -> Evidence {
        let text = format!(
            "{}: {}, {} and {} of its {}; highest on vCPU {} ({} per second)",
            self.vm,
            many(self.count, what),
            duration(self.ns as f64),
            percent(self.share()),
            if self.vcpus == 1 { "vCPU's time".to_owned() } else { format!("{} vCPUs' time", self.vcpus) },
            self.worst.0.vcpu,
            plain(self.per_second().round()),
        );
        Evidence::in_table(text, table).key("vm", self.vm)
    }
}

/// Exits for which `of` gives count and time, in each VM that has some; most time first.
fn in_vms<'f>(measure: &Measures<'f>, of: impl Fn(&Vcpu) -> (u64, u64)) -> Vec<InVm<'f>> {
    let mut vms: Vec<InVm<'f>> = Vec::new();
    for (vm, vcpus) in measure.by_vm() {
        let each: Vec<(&Vcpu, (u64, u64))> = vcpus.iter().map(|vcpu| (*vcpu, of(vcpu))).collect();
        let Some((worst, (most, _))) = each.iter().max_by_key(|(_, sums)| *sums) else { continue };
        if *most == 0 {
            continue;
        }
        vms.push(InVm {
            vm,
            vcpus: vcpus.len(),
            count: each.iter().map(|(_, (count, _))| count).sum(),
            ns: each.iter().map(|(_, (_, ns))| ns).sum(),
            wall_ns: vcpus.iter().map(|vcpu| vcpu.sums.wall_ns()).sum(),
            exits: vcpus.iter().map(|vcpu| measure.exit_count_of(vcpu)).sum(),
            worst: (worst, *most),
            burst: None,
        });
    }
    vms.sort_by_key(|vm| std::cmp::Reverse((vm.ns, vm.count)));
    vms
}

/// Time of `of` on vCPUs of VMs that have a storm.
fn in_storm(storms: &[InVm<'_>], of: impl Fn(&Vcpu) -> (u64, u64)) -> impl Fn(&Vcpu) -> u64 {
    move |vcpu| if storms.iter().any(|storm| storm.vm == vcpu.vm) { of(vcpu).1 } else { 0 }
}

/// Count and time of a vCPU's exits whose reason is wanted.
fn by_reason(measure: &Measures<'_>, vcpu: &Vcpu, wanted: impl Fn(Reason) -> bool) -> (u64, u64) {
    let exits = measure.exits_of(vcpu).filter(|(_, reason, _)| wanted(*reason));
    exits.fold((0, 0), |(count, ns), (.., sums)| (count + sums.count, ns + sums.cost_ns.sum()))
}

/// Count and time of a vCPU's exits that were about something wanted.
fn by_detail(measure: &Measures<'_>, vcpu: &Vcpu, wanted: impl Fn(Detail) -> bool) -> (u64, u64) {
    let details = measure.exits_of(vcpu).flat_map(|(.., sums)| sums.details.iter());
    let wanted = details.filter(|(detail, _)| wanted(**detail));
    wanted.fold((0, 0), |(count, ns), (_, (more, more_ns))| (count + more, ns + more_ns))
}

/// One hit about all `storms`, which are sorted: the worst is named.
fn hit_of(
    measure: &Measures<'_>,
    storms: &[InVm<'_>],
    severity: Severity,
    (what, table, about): (&str, &'static str, &[About]),
    title: impl Fn(&InVm<'_>) -> String,
) -> Vec<Hit> {
    let Some(worst) = storms.first() else { return Vec::new() };
    let (subject, others) = match storms.len() - 1 {
        0 => (worst.vm.to_owned(), String::new()),
        others => (measure.part.machine.clone(), format!(" (and {})", many(others as u64, "more VM"))),
    };
    let mut hit = Hit::new(subject, severity, format!("{}{others}", title(worst)));
    let line = |storm: &InVm<'_>| storm.words(what, table).about(about.iter().cloned());
    hit.evidence = storms.iter().take(MOST_LISTED).map(line).collect();
    if let Some(more) = storms.len().checked_sub(MOST_LISTED).filter(|more| *more > 0) {
        hit.evidence.push(Evidence::in_table(format!("and {}", many(more as u64, "more VM")), "flow.vms"));
    }
    hit.cost = Cost::of(CostKind::Measured, worst.share(), "share of vCPU time");
    if storms.len() > 1 {
        hit.cost.unit = format!("share of the vCPU time of {}", worst.vm);
    }
    vec![hit]
}

/// The storms among `vms` and how bad the worst of them is.
fn storms<'f>(vms: Vec<InVm<'f>>, limits: &Limits) -> (Vec<InVm<'f>>, Severity) {
    let storms: Vec<InVm<'_>> = vms.into_iter().filter(|vm| vm.is_storm(limits)).collect();
    let severity = storms.iter().map(|storm| storm.severity(limits)).max().unwrap_or(Severity::Info);
    (storms, severity)
}

/// PAUSE exits: vCPUs spin for a lock whose holder does not run.
pub(crate) fn pause(measure: &Measures<'_>) -> Vec<Hit> {
    let mut vms = in_vms(measure, |vcpu| by_reason(measure, vcpu, Reason::is_pause));
    vms.iter_mut().for_each(|vm| vm.burst = burst(measure, vm.vm, Reason::is_pause));
    let (storms, severity) = storms(vms, &PAUSE);
    let title = |worst: &InVm<'_>| match worst.burst {
        Some((vcpu, burst)) if !worst.is_steady(&PAUSE) => format!(
            "A storm of PAUSE exits of {}: {} within {} on vCPU {}, of {} in all",
            worst.vm,
            thousands(burst.count),
            in_a_window(),
            vcpu.vcpu,
            thousands(worst.count)
        ),
        _ => format!(
            "PAUSE exits of {}: {}, {} per second on vCPU {}, {} of its exits",
            worst.vm,
            thousands(worst.count),
            plain(worst.per_second().round()),
            worst.worst.0.vcpu,
            percent(worst.share_of_exits())
        ),
    };
    let about = reasons(measure, |total| total.reason.is_pause());
    let mut hits = hit_of(measure, &storms, severity, ("PAUSE exit", "flow.exits", &about), title);
    for hit in &mut hits {
        let ns_of = in_storm(&storms, |vcpu| by_reason(measure, vcpu, Reason::is_pause));
        hit.gives_back = exits_give_back(measure, |total| total.reason.is_pause(), ns_of);
        let bursts = storms.iter().filter_map(|storm| Some((storm.vm, storm.burst?)));
        hit.evidence.extend(bursts.take(MOST_LISTED).map(|(vm, (vcpu, burst))| {
            let since_ns = measure.part.on_axis(burst.from_ns);
            let (count, window) = (thousands(burst.count), in_a_window());
            let when = format!("{:.3} s after the first event", since_ns as f64 / 1e9);
            let span = Span { from_ns: since_ns, to_ns: since_ns + WINDOW_NS };
            // A guest's own trace begins at another instant of the timeline.
            let at = measure.part.aligned.is_none().then_some(About::Span(span));
            let what = format!("{vm}: {count} of them on vCPU {} within {window}, {when}", vcpu.vcpu);
            Evidence::new(what, "the trace").about(at).about([About::Thread { tid: vcpu.tid }]).about(about.clone())
        }));
        let waited_ns: u64 = storms.iter().map(|storm| waiting_ns(measure, storm.vm)).sum();
        let wall_ns: u64 = storms.iter().map(|storm| storm.wall_ns).sum();
        let share = percent(waited_ns as f64 / wall_ns.max(1) as f64);
        let what = if measure.part.has_switches {
            format!("vCPUs of the same VMs were runnable without a CPU for {share} of their time")
        } else {
            "no sched_switch was recorded, so whether lock holders were preempted is unknown".to_owned()
        };
        hit.evidence.push(seen(measure, what, "flow.vms").about([state(measure, State::Preempted)]));
    }
    hits
}

/// The length of a window, in words.
fn in_a_window() -> String {
    format!("{} ms", WINDOW_NS / 1_000_000)
}

/// The vCPU of a VM that had most exits of wanted reasons in one window, if those make a storm.
fn burst<'f>(measure: &Measures<'f>, vm: &str, wanted: impl Fn(Reason) -> bool) -> Option<(&'f Vcpu, Burst)> {
    let of_vcpu = |vcpu: &'f Vcpu| {
        let exits = measure.exits_of(vcpu).filter(|(_, reason, _)| wanted(*reason));
        let worst = exits.map(|(.., sums)| sums.bursts.worst()).max_by_key(|burst| burst.count)?;
        Some((vcpu, worst))
    };
    let vcpus = measure.vcpus.iter().copied().filter(|vcpu| vcpu.vm == vm);
    vcpus.filter_map(of_vcpu).max_by_key(|(_, burst)| burst.count).filter(|(_, burst)| burst.count >= FEWEST_IN_BURST)
}

fn waiting_ns(measure: &Measures<'_>, vm: &str) -> u64 {
    let vcpus = measure.vcpus.iter().filter(|vcpu| vcpu.vm == vm);
    vcpus.map(|vcpu| vcpu.sums.ns_where(State::is_waiting)).sum()
}

/// Writes of the interrupt command register.
fn is_ipi(detail: Detail) -> bool {
    matches!(detail, Detail::Ipi(_) | Detail::Apic(0x300, true) | Detail::Msr(0x830, true))
}

/// Inter-processor interrupts that exit.
pub(crate) fn ipi(measure: &Measures<'_>) -> Vec<Hit> {
    let (storms, severity) = storms(in_vms(measure, |vcpu| by_detail(measure, vcpu, is_ipi)), &IPI);
    let title = |worst: &InVm<'_>| {
        format!(
            "Exits for IPIs of {}: {}, {} per second on vCPU {}",
            worst.vm,
            thousands(worst.count),
            plain(worst.per_second().round()),
            worst.worst.0.vcpu
        )
    };
    let about = reasons_with(measure, is_ipi);
    let mut hits = hit_of(measure, &storms, severity, ("ICR write", "flow.exit_details", &about), title);
    for hit in &mut hits {
        let sends = |total: &ReasonTotal| total.details.iter().any(|(detail, ..)| is_ipi(*detail));
        hit.gives_back = exits_give_back(measure, sends, in_storm(&storms, |vcpu| by_detail(measure, vcpu, is_ipi)));
    }
    hits
}

/// Writes that arm the APIC's timer: TMICT, TSC_DEADLINE.
fn arms_timer(detail: Detail) -> bool {
    detail.apic_offset() == Some(0x380) || detail == Detail::Msr(0x6e0, true)
}

/// Timers armed, and their expiries where those exit.
pub(crate) fn timer(measure: &Measures<'_>) -> Vec<Hit> {
    let expires = |reason: Reason| reason.known_name() == Some("PREEMPTION_TIMER");
    let exits = |vcpu: &Vcpu| {
        let (armed, expired) = (by_detail(measure, vcpu, arms_timer), by_reason(measure, vcpu, expires));
        (armed.0 + expired.0, armed.1 + expired.1)
    };
    let much = |vm: &InVm<'_>| vm.is_steady(&TIMER) && vm.per_second() >= TIMER_LEAST_PER_SECOND;
    let storms: Vec<InVm<'_>> = in_vms(measure, exits).into_iter().filter(much).collect();
    let severity = storms.iter().map(|storm| storm.severity(&TIMER)).max();
    let title = |worst: &InVm<'_>| {
        format!(
            "Timer exits of {}: {} of its exits, {} per second on vCPU {}",
            worst.vm,
            percent(worst.share_of_exits()),
            plain(worst.per_second().round()),
            worst.worst.0.vcpu
        )
    };
    let severity = severity.unwrap_or(Severity::Info);
    let about = [reasons_with(measure, arms_timer), reasons(measure, |total| expires(total.reason))].concat();
    let mut hits = hit_of(measure, &storms, severity, ("timer exit", "flow.exit_details", &about), title);
    for hit in &mut hits {
        let (armed, expired) = measure.vcpus.iter().fold((0, 0), |(armed, expired), vcpu| {
            (armed + by_detail(measure, vcpu, arms_timer).0, expired + by_reason(measure, vcpu, expires).0)
        });
        let times =
            |total: &ReasonTotal| expires(total.reason) || total.details.iter().any(|(detail, ..)| arms_timer(*detail));
        hit.gives_back = exits_give_back(measure, times, in_storm(&storms, exits));
        let what = format!(
            "{} of TSC_DEADLINE or TMICT, {} of the preemption timer",
            many(armed, "write"),
            counted(expired, "expiry", "expiries")
        );
        hit.evidence.push(seen(measure, what, "flow.exit_details").about(about.clone()));
        hit.level = Some(measure.level_above(1));
    }
    hits
}

/// Halt polling that takes CPU time; its limit is one for all VMs, so one finding lists them.
pub(crate) fn halt_poll(measure: &Measures<'_>) -> Vec<Hit> {
    let mut vms: Vec<(&str, u64, u64, u64)> = Vec::new();
    for (vm, vcpus) in measure.by_vm() {
        let sum = |of: &dyn Fn(&Vcpu) -> u64| vcpus.iter().map(|vcpu| of(vcpu)).sum::<u64>();
        let polled_ns = sum(&|vcpu| vcpu.sums.ns(State::HaltPoll));
        let wall_ns = sum(&|vcpu| vcpu.sums.wall_ns());
        if polled_ns as f64 / wall_ns.max(1) as f64 >= POLL_SHARE {
            vms.push((vm, polled_ns, sum(&|vcpu| vcpu.sums.ns(State::Halted)), wall_ns));
        }
    }
    vms.sort_by_key(|(_, polled_ns, ..)| std::cmp::Reverse(*polled_ns));
    let Some((worst, ..)) = vms.first() else { return Vec::new() };
    let (polled_ns, wall_ns) = vms.iter().fold((0, 0), |(ns, wall), (_, more, _, wall_ns)| (ns + more, wall + wall_ns));
    let share = polled_ns as f64 / wall_ns.max(1) as f64;
    let (subject, whose) = match vms.len() {
        1 => ((*worst).to_owned(), (*worst).to_owned()),
        several => (measure.part.machine.clone(), format!("{several} VMs ({worst} polls longest)")),
    };
    let title = format!("Halt polling takes {} of the vCPU time of {whose}", percent(share));
    let mut hit = Hit::new(subject, by_share(share, Sample { count: 0, ns: polled_ns }), title);
    for (vm, polled_ns, halted_ns, wall_ns) in vms.iter().take(MOST_LISTED) {
        let share = percent(*polled_ns as f64 / (*wall_ns).max(1) as f64);
        let (polled, halted) = (duration(*polled_ns as f64), duration(*halted_ns as f64));
        let seen = Evidence::in_table(format!("{vm}: {polled} polling ({share}), {halted} halted"), "flow.vcpus");
        hit.evidence.push(seen.key("vm", *vm).about([state(measure, State::HaltPoll)]));
    }
    hit.cost = Cost::of(CostKind::Measured, share, "share of vCPU time");
    let polls = |vcpu: &Vcpu| vms.iter().any(|(vm, ..)| *vm == vcpu.vm);
    let polling = levels::name(measure.part.level, State::HaltPoll);
    hit.gives_back = gives_back(measure, polling, |vcpu| if polls(vcpu) { vcpu.sums.ns(State::HaltPoll) } else { 0 });
    hit.changes = vec![Setting::SysfsWrite { path: "module/kvm/parameters/halt_poll_ns".into() }.change("0", None)];
    vec![hit]
}
