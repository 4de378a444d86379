//! The observer: the fold in the kernel, or /proc where that is not allowed. Both give vCPUs with the difference of two readings.

use super::head::Head;
use super::proc::Proc;
use super::processes::{distinct_names, is_asleep, number, number_of, process, vms};
use super::reasons;
use analysis::flow::live::{Exits, Preemptor, Vcpu};
use base::number::{duration, many, thousands};
use base::recording::VmProcess;
use fold::{Reading, Session, State, ThreadReading};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How to observe.
pub struct Options {
    pub interrupts: bool,
    pub measure: bool,
    pub proc_only: bool,
}

/// The difference of two readings.
#[derive(Debug, Clone, Default)]
pub struct Frame {
    /// What the machine is called in tables.
    pub machine: String,
    pub head: Head,
    /// What the numbers stand on, and what is missing, a line each; the last one is what looking has cost.
    pub floor: Vec<String>,
    pub vcpus: Vec<Vcpu>,
}

/// What this host is called in tables.
pub(crate) const HERE: &str = base::recording::Machine::RECORDED;

/// Observes the host by the best means that it allows.
pub struct Observer(Source);

enum Source {
    Fold(Box<Folded>),
    Proc(Proc),
}

impl Observer {
    /// The best that this host allows.
    pub fn new(host: &Path, options: &Options) -> anyhow::Result<Self> {
        if options.proc_only {
            return Ok(Self(Source::Proc(Proc::new(host, "asked for".to_owned()))));
        }
        Ok(Self(match Folded::new(host, options) {
            Ok(folded) => Source::Fold(Box::new(folded)),
            Err(error) => Source::Proc(Proc::new(host, error.to_string())),
        }))
    }

    /// Whether every nanosecond is told, by the fold; else no more than /proc has.
    pub fn is_exact(&self) -> bool {
        matches!(self.0, Source::Fold(_))
    }

    /// What was since the look before, of all VMs or of the one whose process is `pid`.
    pub fn frame(&mut self, pid: Option<u32>) -> anyhow::Result<Frame> {
        match &mut self.0 {
            Source::Fold(folded) => Ok(folded.frame(pid)),
            Source::Proc(proc) => Ok(proc.frame(pid)),
        }
    }
}

/// The fold in the kernel, and what it said last.
struct Folded {
    session: Session,
    host: PathBuf,
    processes: BTreeMap<u32, VmProcess>,
    before: BTreeMap<u16, ThreadReading>,
    cost: (u64, u64),
    own_ns: u64,
    events: u64,
}

impl Folded {
    fn new(host: &Path, options: &Options) -> Result<Self, fold::Error> {
        let mut session = Session::start(host, fold::Options { ring: None, interrupts: options.interrupts })?;
        if options.measure {
            // What cannot be measured is not said.
            let _ = session.measure();
        }
        let mut folded = Self {
            session,
            host: host.to_owned(),
            processes: BTreeMap::new(),
            before: BTreeMap::new(),
            cost: (0, 0),
            own_ns: 0,
            events: 0,
        };
        folded.expect();
        folded.before = folded.session.read().threads.into_iter().map(|thread| (thread.index, thread)).collect();
        folded.own_ns = own_ns();
        Ok(folded)
    }

    /// VMs whose vCPUs sleep are there before their first event.
    fn expect(&mut self) {
        for process in vms(&self.host) {
            for tid in process.tids.iter().filter_map(|tid| u32::try_from(*tid).ok()) {
                let task = self.host.join(format!("proc/{}/task/{tid}", process.pid));
                if number_of(&task).is_none() {
                    continue;
                }
                // What is refused here is met by its first event.
                let _ = self.session.expect(tid, process.pid as u32, || is_asleep(&task));
            }
            self.processes.insert(process.pid as u32, process);
        }
    }

    fn frame(&mut self, pid: Option<u32>) -> Frame {
        let reading = self.session.read();
        let known: BTreeSet<u32> = reading.threads.iter().map(|thread| thread.tgid).collect();
        for tgid in known {
            let host = &self.host;
            self.processes.entry(tgid).or_insert_with(|| process(host, tgid));
        }
        let names = self.names(&reading);
        let (mut vcpus, mut events) = (Vec::new(), 0);
        for thread in &reading.threads {
            let before = self.before.get(&thread.index);
            let seen = before.map_or_else(|| thread.totals.clone(), |before| thread.totals.since(&before.totals));
            events += seen.events;
            let was_over = before.is_some_and(|before| before.has_ended);
            if was_over || seen.wall_ns() == 0 || pid.is_some_and(|pid| thread.tgid != pid) {
                continue;
            }
            let name = names.get(&thread.tgid).cloned().unwrap_or_default();
            vcpus.push(self.vcpu(name, thread, &seen, &reading));
        }
        number(&mut vcpus);
        let mut floor = self.floor(&vcpus, &reading);
        floor.push(self.cost(events));
        let exact_for = Duration::from_nanos(fold::now_ns().saturating_sub(self.session.since_ns()));
        let head = Head::of(&self.host, &vcpus, Some(exact_for));
        self.forget(&reading);
        self.before = reading.threads.into_iter().map(|thread| (thread.index, thread)).collect();
        self.events += events;
        Frame { machine: HERE.to_owned(), head, floor, vcpus }
    }

    /// Threads that have ended are forgotten: their ids may be others' by now.
    fn forget(&self, reading: &Reading) {
        for thread in reading
            .threads
            .iter()
            .filter(|thread| thread.has_ended && self.before.get(&thread.index).is_none_or(|before| !before.has_ended))
        {
            // Then the next one of that id is found in this record, which says that it is another one's.
            let _ = self.session.forget(thread.tid);
        }
    }

    /// What each process's VM is called; two of one name are told apart by their processes.
    fn names(&self, reading: &Reading) -> BTreeMap<u32, String> {
        let mut names: BTreeMap<u32, String> = BTreeMap::new();
        for tgid in reading.threads.iter().map(|thread| thread.tgid) {
            let name = self.processes.get(&tgid).map_or_else(|| format!("process-{tgid}"), VmProcess::name);
            names.insert(tgid, name);
        }
        distinct_names(names)
    }

    fn vcpu(&self, vm: String, thread: &ThreadReading, seen: &fold::Totals, reading: &Reading) -> Vcpu {
        let exits = reading.exits_fire;
        // Where exits are silent KVM_RUN is unknown, and its begin is told by kvm_fpu alone.
        let told = |state: State| Some(seen.ns(state));
        let of_exits = |state: State| exits.then(|| seen.ns(state));
        let interrupts = |state: State| self.session.hears("irq/irq_handler_entry").then(|| seen.ns(state));
        let task = self.host.join(format!("proc/{}/task/{}", thread.tgid, thread.tid));
        let longest = |bins: &fold::Bins, before: Option<u64>| (before != Some(bins.max_ns)).then_some(bins.max_ns);
        let before = self.before.get(&thread.index);
        let exits_of = |reason: &fold::Reason| {
            let known = before.and_then(|before| {
                let same = |old: &&fold::Reason| (old.isa, old.code) == (reason.isa, reason.code);
                before.totals.reasons.iter().find(same).map(|old| old.cost.max_ns)
            });
            let timed = reason.count > reason.clipped;
            Exits {
                reason: reasons::of_guest(reason.isa.unwrap_or(0), reason.code),
                count: reason.count,
                clipped: reason.clipped,
                total_ns: reason.cost.sum_ns,
                p50_ns: reason.cost.quantile(0.5),
                p90_ns: reason.cost.quantile(0.9),
                p99_ns: reason.cost.quantile(0.99),
                // Longest since it began; of this interval it is known where it has grown.
                max_ns: longest(&reason.cost, known).filter(|_| timed),
                bins: below(&reason.cost),
            }
        };
        let mut all: Vec<Exits> = seen.reasons.iter().filter(|reason| reason.isa.is_some()).map(exits_of).collect();
        all.sort_by_key(|exits| std::cmp::Reverse(exits.count));
        let returns = seen.reasons.iter().filter(|reason| reason.isa.is_none());
        let mut returns: Vec<(String, u64)> =
            returns.map(|reason| (reasons::to_vmm(reason.code), reason.count)).collect();
        returns.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        Vcpu {
            vm,
            // No number yet, and none of a vCPU's.
            vcpu: thread.vcpu.or_else(|| number_of(&task)).unwrap_or(u32::MAX),
            tid: thread.tid as i32,
            wall_ns: seen.wall_ns(),
            guest_ns: of_exits(State::Guest),
            handling_ns: of_exits(State::Handling),
            userspace_ns: told(State::Userspace).filter(|_| exits || self.session.hears("kvm/kvm_fpu")),
            irq_ns: interrupts(State::Irq),
            softirq_ns: interrupts(State::Softirq),
            nmi_ns: told(State::Nmi).filter(|_| self.session.hears("nmi/nmi_handler")),
            halted_ns: of_exits(State::Halted),
            wake_delay_ns: told(State::WakeDelay),
            preempted_ns: told(State::Preempted),
            ready_ns: Some(seen.ns(State::Preempted) + seen.ns(State::WakeDelay)),
            blocked_ns: told(State::Blocked),
            unknown_ns: told(State::Unknown),
            torn_ns: Some(seen.torn_ns),
            exits: exits.then_some(all),
            userspace_exits: Some(returns),
            preemptors: self.preemptors(thread, seen),
            wakeup_p99_ns: seen.wakeups.quantile(0.99),
            wakeups: below(&seen.wakeups),
            missed: Some(seen.missed),
        }
    }

    /// Who had its CPU while it was ready; `None` where that does not fit how long it was.
    fn preemptors(&self, thread: &ThreadReading, seen: &fold::Totals) -> Option<Vec<Preemptor>> {
        let waited_ns = seen.ns(State::Preempted);
        let taken_ns: u64 = seen.takers.iter().map(|taker| taker.total_ns).sum();
        // Where its story has a hole, its wait was shorter than it seemed.
        let rest_ns =
            waited_ns.checked_sub(taken_ns).or_else(|| (taken_ns - waited_ns < waited_ns / 1_000).then_some(0))?;
        let before = |tid: u32| self.before.get(&thread.index)?.totals.takers.iter().find(|taker| taker.tid == tid);
        let by = |taker: &fold::Taker| Preemptor {
            by: self.called(taker),
            tid: Some(taker.tid as i32),
            count: taker.count,
            total_ns: taker.total_ns,
            max_ns: Some(taker.max_ns).filter(|max_ns| before(taker.tid).map(|old| old.max_ns) != Some(*max_ns)),
        };
        let mut all: Vec<Preemptor> = seen.takers.iter().map(by).collect();
        all.sort_by_key(|by| std::cmp::Reverse(by.total_ns));
        // Clocks are read several times in a switch.
        if rest_ns > waited_ns / 1_000 {
            all.push(Preemptor { by: "unknown".to_owned(), tid: None, count: 0, total_ns: rest_ns, max_ns: None });
        }
        Some(all)
    }

    /// The name of a task.
    fn called(&self, taker: &fold::Taker) -> String {
        if !taker.comm.is_empty() {
            return taker.comm.clone();
        }
        let comm = std::fs::read_to_string(self.host.join(format!("proc/{}/comm", taker.tid)));
        comm.map_or_else(|_| format!("task {}", taker.tid), |comm| comm.trim_end().to_owned())
    }

    fn floor(&self, vcpus: &[Vcpu], reading: &Reading) -> Vec<String> {
        let mut floor = Vec::new();
        if !reading.exits_fire && !vcpus.is_empty() {
            floor.push(
                "no kvm_exit has fired here: what KVM_RUN does is unknown (?%), and exits are returns to the VMM"
                    .to_owned(),
            );
        }
        for missing in self.session.missing() {
            floor.push(format!("left out: {}: {}{}", missing.event, missing.why, log(&missing.log)));
        }
        for (count, what) in [
            (reading.takers_lost, "pieces of waits are charged to nobody, because no row was left"),
            (reading.records_lost, "threads found no record left and are not shown"),
            (reading.restless, "records changed whenever they were looked at and are not shown"),
            (
                self.session.cost().left_out,
                "runs were left out by the kernel, because another program was at work there",
            ),
        ] {
            if count > 0 {
                floor.push(format!("{} {what}", thousands(count)));
            }
        }
        floor
    }

    /// What looking has cost since the last line.
    fn cost(&mut self, events: u64) -> String {
        let own_ns = own_ns();
        let own = own_ns.saturating_sub(std::mem::replace(&mut self.own_ns, own_ns));
        let mut text = format!("own cost: {}, {} of this process", many(events, "event"), duration(own as f64));
        if let Some((ns, runs)) = self.session.cost().measured {
            let (before_ns, before) = std::mem::replace(&mut self.cost, (ns, runs));
            let (ns, runs) = (ns.saturating_sub(before_ns), runs.saturating_sub(before));
            text += &format!(", {} in the kernel in {}", duration(ns as f64), many(runs, "run"));
        }
        text
    }
}

/// The upper edge of each bin that is not empty, and how many are in it.
fn below(bins: &fold::Bins) -> Vec<(u64, u64)> {
    bins.bins().map(|(_, to_ns, count)| (to_ns, count)).collect()
}

/// What the verifier said, behind the reason.
fn log(log: &str) -> String {
    if log.is_empty() { String::new() } else { format!("\n{log}") }
}

/// CPU time of this process.
pub(crate) fn own_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
