//! Checks of time in which a vCPU could have run: pre-emption.
//!
//! vCPUs that waited for the same cause are one finding: one busy program takes the CPUs of many vCPUs, and one change
//! ends it.

use super::{Sample, by_share, gives_back, state};
use base::number::{duration, many, percent};
use base::{About, Cell, Cost, CostKind, CpuSet, Evidence, Severity};
use facts::apart::{affinity, apart, ends_by_itself};
use facts::ledger::levels;
use facts::ledger::measure::Measures;
use facts::ledger::model::{PreemptSums, Vcpu};
use facts::rule::Hit;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use walk::kernel_threads;
use walk::state::State;

/// Share of its time from which on a vCPU's waiting is worth a finding.
pub(in crate::flow) const PREEMPT_SHARE: f64 = 0.02;

/// vCPUs, and threads, that a finding lists; tables have the others.
const MOST_LISTED: usize = 5;

/// Why a vCPU had no CPU, by the task that ran longest meanwhile.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Cause {
    Tasks(String),
    Vcpus,
    /// The switches that would tell are not in the trace.
    Unknown,
}

/// A vCPU that was runnable and did not run.
struct Waiter<'f> {
    vcpu: &'f Vcpu,
    waited_ns: u64,
    waits: u64,
    /// Who ran meanwhile, longest first: at least one.
    by: Vec<(Option<i32>, PreemptSums)>,
}

impl<'f> Waiter<'f> {
    fn of(vcpu: &'f Vcpu) -> Option<Self> {
        let waited_ns = vcpu.sums.guests_ns(State::Preempted);
        let waits = vcpu.sums.preemptors.values().map(|sums| sums.count).sum();
        let by = vcpu.sums.preemptors.iter().filter(|(tid, _)| **tid != Some(0));
        let mut by: Vec<_> = by.map(|(tid, sums)| (*tid, *sums)).collect();
        by.sort_by_key(|(_, sums)| Reverse(sums.total_ns));
        let waiter = Self { vcpu, waited_ns, waits, by };
        (waiter.share() >= PREEMPT_SHARE && !waiter.by.is_empty()).then_some(waiter)
    }

    fn share(&self) -> f64 {
        self.waited_ns as f64 / self.vcpu.sums.guests_wall_ns().max(1) as f64
    }

    fn severity(&self) -> Severity {
        by_share(self.share(), Sample { count: self.waits, ns: self.waited_ns })
    }

    /// The task that ran longest, and what it took.
    fn most(&self) -> (Option<i32>, PreemptSums) {
        self.by[0]
    }

    fn cause(&self, measure: &Measures<'_>) -> Cause {
        match self.most().0 {
            None => Cause::Unknown,
            Some(tid) if measure.part.vcpus.iter().any(|vcpu| vcpu.tid == tid) => Cause::Vcpus,
            Some(tid) => Cause::Tasks(measure.task_name(tid)),
        }
    }

    fn name(&self) -> String {
        format!("vCPU {} of {}", self.vcpu.vcpu, self.vcpu.vm)
    }

    /// Something seen of its waiting, in its rows of a table.
    fn seen(&self, measure: &Measures<'_>, what: String, table: &'static str) -> Evidence {
        let Vcpu { vm, vcpu, tid, .. } = self.vcpu;
        let seen = Evidence::in_table(what, table).key("vm", vm.as_str()).key("vcpu", u64::from(*vcpu));
        seen.about([state(measure, State::Preempted), About::Thread { tid: *tid }])
    }
}

/// vCPUs that were runnable and did not run, one finding for each cause, the worst first.
pub(crate) fn preempted(measure: &Measures<'_>) -> Vec<Hit> {
    let mut waiters: Vec<Waiter<'_>> = measure.vcpus.iter().filter_map(|vcpu| Waiter::of(vcpu)).collect();
    waiters.sort_by_key(|waiter| Reverse(waiter.waited_ns));
    let mut causes: Vec<(Cause, Vec<Waiter<'_>>)> = Vec::new();
    for waiter in waiters {
        let cause = waiter.cause(measure);
        match causes.iter_mut().find(|(known, _)| *known == cause) {
            Some((_, waiters)) => waiters.push(waiter),
            None => causes.push((cause, vec![waiter])),
        }
    }
    causes.iter().map(|(cause, waiters)| hit(measure, cause, waiters)).collect()
}

fn hit(measure: &Measures<'_>, cause: &Cause, waiters: &[Waiter<'_>]) -> Hit {
    let sum = |of: &dyn Fn(&Waiter<'_>) -> u64| waiters.iter().map(of).sum::<u64>();
    let share = sum(&|waiter| waiter.waited_ns) as f64 / sum(&|waiter| waiter.vcpu.sums.guests_wall_ns()).max(1) as f64;
    let whom = whom(measure, cause, waiters);
    let (title, mut evidence) = match waiters {
        [only] => {
            let title =
                format!("{} waited {} of {} for a CPU, {whom}", only.name(), percent(share), only.vcpu.sums.lived());
            (title, alone(measure, only))
        }
        [worst, ..] => {
            let (vcpus, at_worst) = (many(waiters.len() as u64, "vCPU"), percent(worst.share()));
            let shares = format!("{} of their time, {} {at_worst}", percent(share), worst.name());
            (format!("{vcpus} waited for a CPU, {whom}: {shares}"), together(measure, waiters))
        }
        [] => (String::new(), Vec::new()),
    };
    evidence.extend(not_counted(waiters));
    evidence.extend(may_run(measure, waiters));
    let quota = quota(measure, waiters);
    evidence.extend(quota.as_ref().map(|(_, evidence)| evidence.clone()));
    let title = match quota {
        Some((share, _)) => format!("{title}; its CPU quota throttled it in {share} of periods"),
        None => title,
    };
    let severity = waiters.iter().map(Waiter::severity).max().unwrap_or(Severity::Info);
    let mut hit = Hit::new(subject(measure, cause, waiters), severity, title);
    // As what it gives back: of the time of all vCPUs, as other findings on the page have it.
    let of_all = sum(&|waiter| waiter.waited_ns) as f64 / measure.wall_ns.max(1) as f64;
    (hit.evidence, hit.cost) = (evidence, Cost::of(CostKind::Measured, of_all, "share of vCPU time"));
    let waits = |vcpu: &Vcpu| waiters.iter().find(|waiter| waiter.vcpu.tid == vcpu.tid);
    hit.gives_back = gives_back(measure, levels::name(measure.part.level, State::Preempted), |vcpu| {
        waits(vcpu).map_or(0, |waiter| waiter.waited_ns)
    });
    remedy(measure, waiters, &mut hit);
    hit
}

/// One vCPU, the vCPUs of one VM by their numbers, or what took the CPUs of several VMs: no two findings have the same.
fn subject(measure: &Measures<'_>, cause: &Cause, waiters: &[Waiter<'_>]) -> String {
    let vms: BTreeSet<&str> = waiters.iter().map(|waiter| waiter.vcpu.vm.as_str()).collect();
    match (vms.first(), vms.len()) {
        (Some(vm), 1) => {
            let numbers: CpuSet = waiters.iter().map(|waiter| waiter.vcpu.vcpu).collect();
            format!("{vm}/{numbers}")
        }
        _ => {
            let cause = match cause {
                Cause::Tasks(name) => name,
                Cause::Vcpus => "vCPUs",
                Cause::Unknown => "unknown",
            };
            format!("{}/{cause}", measure.part.machine)
        }
    }
}

/// For whom they waited, and whether that explains most of it.
fn whom(measure: &Measures<'_>, cause: &Cause, waiters: &[Waiter<'_>]) -> String {
    if *cause == Cause::Unknown {
        return "for tasks that the trace does not show".to_owned();
    }
    let of_cause = |tid: Option<i32>| match (cause, tid) {
        (Cause::Tasks(name), Some(tid)) => measure.task_name(tid) == *name,
        (Cause::Vcpus, Some(tid)) => measure.part.vcpus.iter().any(|vcpu| vcpu.tid == tid),
        _ => false,
    };
    let took = waiters.iter().flat_map(|waiter| &waiter.by).filter(|(tid, _)| of_cause(*tid));
    let tids: BTreeSet<i32> = took.clone().filter_map(|(tid, _)| *tid).collect();
    let took_ns: u64 = took.map(|(_, sums)| sums.total_ns).sum();
    let waited_ns: u64 = waiters.iter().map(|waiter| waiter.waited_ns).sum();
    let how = if 2 * took_ns > waited_ns { "mostly" } else { "longest" };
    let who = match (cause, tids.first(), tids.len()) {
        (Cause::Tasks(name), Some(tid), 1) => format!("{name} (tid {tid})"),
        (Cause::Tasks(name), _, threads) => format!("{threads} threads called {name}"),
        (_, Some(tid), 1) => format!("{} (tid {tid})", measure.task_name(*tid)),
        (_, _, vcpus) => format!("{vcpus} other vCPUs"),
    };
    format!("{how} for {who}")
}

/// What was seen of one vCPU: how long it waited, and who ran.
fn alone(measure: &Measures<'_>, waiter: &Waiter<'_>) -> Vec<Evidence> {
    let waits = many(waiter.waits, "wait");
    let (time, share) = (duration(waiter.waited_ns as f64), percent(waiter.share()));
    let mut waited = format!("runnable for {time}, {share} of {}", waiter.vcpu.sums.lived());
    // Waits, and who ran in them, are counted over all of the recording.
    let mut over = "";
    if waiter.vcpu.sums.outside_ns() == 0 {
        waited += &format!(", in {waits}");
    } else {
        let (of_all, all) = (waiter.waited_ns as f64 / measure.wall_ns.max(1) as f64, duration(measure.wall_ns as f64));
        waited += &format!("; that is {} of all vCPU time ({all}), with {waits}", percent(of_all));
        over = "over the whole recording, ";
    }
    let mut evidence = vec![waiter.seen(measure, waited, "flow.vcpus")];
    for (tid, sums) in waiter.by.iter().take(3) {
        let (ran, longest) = (duration(sums.total_ns as f64), duration(sums.max_ns as f64));
        let text = match tid {
            // It had come before the vCPU began to wait, or after somebody else.
            Some(tid) if sums.count == 0 => {
                format!(
                    "{over}{} (tid {tid}) ran {ran} while the vCPU waited, {longest} at most",
                    measure.task_name(*tid)
                )
            }
            Some(tid) => format!(
                "{over}{} (tid {tid}) began {}, ran {ran}, longest {longest}",
                measure.task_name(*tid),
                many(sums.count, "wait")
            ),
            None => format!("unknown tasks ran {ran}: the switches between them are missing in the trace"),
        };
        evidence.push(by(*tid, waiter.seen(measure, text, "flow.preemptors")));
    }
    evidence
}

/// The same in the row of who ran.
fn by(tid: Option<i32>, evidence: Evidence) -> Evidence {
    match tid {
        Some(tid) => evidence.key("by_tid", Cell::I64(tid.into())),
        None => evidence,
    }
}

/// What was seen of several, a line for each of the worst.
fn together(measure: &Measures<'_>, waiters: &[Waiter<'_>]) -> Vec<Evidence> {
    let line = |waiter: &Waiter<'_>| {
        let (most, sums) = waiter.most();
        let part = percent(sums.total_ns as f64 / waiter.vcpu.sums.ns(State::Preempted).max(1) as f64);
        let who = most.map_or_else(
            || "tasks that the trace does not show".to_owned(),
            |tid| format!("{} (tid {tid})", measure.task_name(tid)),
        );
        let (share, waits) = (percent(waiter.share()), many(waiter.waits, "wait"));
        let what =
            format!("{}: runnable for {share} of its time, in {waits}; {part} of that while {who} ran", waiter.name());
        by(most, waiter.seen(measure, what, "flow.preemptors"))
    };
    let mut evidence: Vec<Evidence> = waiters.iter().take(MOST_LISTED).map(line).collect();
    if let Some(more) = waiters.len().checked_sub(MOST_LISTED).filter(|more| *more > 0) {
        evidence.push(Evidence::in_table(format!("and {}", many(more as u64, "more vCPU")), "flow.vcpus"));
    }
    evidence
}

/// How much of their rows is no guest's time.
fn not_counted(waiters: &[Waiter<'_>]) -> Option<Evidence> {
    let outside_ns: u64 = waiters.iter().map(|waiter| waiter.vcpu.sums.outside_ns()).sum();
    let what = format!("not counted: {} before a guest ran or after it ended", duration(outside_ns as f64));
    (outside_ns > 0).then(|| Evidence::in_table(what, "flow.vcpus"))
}

/// Where the worst of them, and who ran longest instead, may run.
fn may_run(measure: &Measures<'_>, waiters: &[Waiter<'_>]) -> Option<Evidence> {
    let worst = waiters.first()?;
    let by = worst.most().0?;
    let (own, other) = (affinity(measure.part, worst.vcpu.tid)?, affinity(measure.part, by)?);
    let text = format!("{} may run on CPUs {own}, {} (tid {by}) on CPUs {other}", worst.name(), measure.task_name(by));
    Some(Evidence::new(text, "Cpus_allowed_list in the snapshot"))
}

/// The quota that the worst of them ran into: while it holds, whoever else had the CPU kept it from nothing.
fn quota(measure: &Measures<'_>, waiters: &[Waiter<'_>]) -> Option<(String, Evidence)> {
    let worst = waiters.first()?;
    let quota = measure.part.quotas.get(&worst.vcpu.tid)?;
    let share = percent(quota.throttled.share());
    let text = format!(
        "the CPU quota of {} throttled it in {share} of periods, up to {} of this wait: raise the quota first",
        quota.group,
        duration(quota.throttled.ns.min(worst.waited_ns) as f64)
    );
    Some((share, Evidence::new(text, "cpu.stat, two snapshots")))
}

/// How to get vCPUs and who takes their CPUs apart.
fn remedy(measure: &Measures<'_>, waiters: &[Waiter<'_>], hit: &mut Hit) {
    let mut rivals: BTreeSet<i32> = BTreeSet::new();
    for waiter in waiters {
        let (Some(tid), sums) = waiter.most() else { continue };
        let name = measure.task_name(tid);
        if ends_by_itself(measure.part, tid) || rivals.len() >= MOST_LISTED || !rivals.insert(tid) {
            continue;
        }
        let of_rival = waiters.iter().filter(|waiter| waiter.most().0 == Some(tid));
        let own: Option<CpuSet> = of_rival
            .map(|waiter| affinity(measure.part, waiter.vcpu.tid).cloned())
            .try_fold(CpuSet::default(), |all, cpus| Some(all.or(&cpus?)));
        match (own, affinity(measure.part, tid)) {
            (Some(own), Some(other)) => match apart(measure.part, (waiter.vcpu.tid, &own), (tid, other)) {
                Some(change) => hit.changes.push(change),
                None => {
                    let place = "kvmscope check   # they share all their CPUs: place all threads".to_owned();
                    if !hit.fix.contains(&place) {
                        hit.fix.push(place);
                    }
                }
            },
            _ => {
                let rival = (tid, name.as_str(), kernel_threads::is_bound(&name));
                hit.fix.push(to_be_read(waiter, rival, (sums.cpu, measure.part.cpus == 1)));
            }
        }
    }
}

/// A trace holds nobody's affinity: what to set, and what the undo is, shows only once it has been read.
/// `alone`: no event came from another CPU, of which the host may have none.
fn to_be_read(waiter: &Waiter<'_>, (rival, name, is_bound): (i32, &str, bool), (cpu, alone): (u32, bool)) -> String {
    let (tid, name) =
        if is_bound { (waiter.vcpu.tid, format!("vCPU {}", waiter.vcpu.vcpu)) } else { (rival, name.to_owned()) };
    let if_any = if alone { ", if the host has another" } else { "" };
    format!(
        "taskset -cp {tid}   # shows the current CPUs of {name}, for undo; then set the same list without CPU {cpu}{if_any}"
    )
}
