//! The recorded host: its vCPU threads side by side, and the story they make together.

use crate::kernel::{Generation, Vendor};
use crate::story::Story;
use crate::truth::{Gap, Truth};
use crate::vcpu::{Kernel, Place, Task, Vcpu};
use base::Clock;
use std::rc::Rc;
use trace::write::{Loss, Record};

/// Time of the first record: a minute after boot.
pub(crate) const BEGIN_NS: u64 = 61_000_000_000;

/// A host whose threads are about to act.
pub struct Host {
    pub kernel: Rc<Kernel>,
    /// Its threads, which act independently of each other; each has CPUs of its own.
    pub vcpus: Vec<Vcpu>,
    cpus: u32,
    others: Vec<Record>,
    comms: Vec<(i32, String)>,
    gaps: Vec<Request>,
}

struct Request {
    cpu: u32,
    from_ns: u64,
    to_ns: u64,
    counted: bool,
}

impl Host {
    /// A host with `cpus` CPUs; the last one stays idle and carries the event that ends the recording.
    pub fn new(vendor: Vendor, generation: Generation, cpus: u32) -> Self {
        Self {
            kernel: Rc::new(Kernel::new(vendor, generation)),
            vcpus: Vec::new(),
            cpus,
            others: Vec::new(),
            comms: Vec::new(),
            gaps: Vec::new(),
        }
    }

    /// Adds vCPU `vcpu` of `vm` as thread `tid` on `cpu`, and returns its position in [`Host::vcpus`].
    ///
    /// Threads start one after the other, 1.5 us apart.
    pub fn add(&mut self, vm: &str, vcpu: u32, tid: i32, cpu: u32) -> usize {
        let now = BEGIN_NS + 1_500 * self.vcpus.len() as u64;
        self.comms.push((tid, vm.to_owned()));
        self.vcpus.push(Vcpu::start(self.kernel.clone(), vm, vcpu, tid, cpu, now));
        self.vcpus.len() - 1
    }

    /// Lets a thread that is no vCPU run on a CPU of its own from `from_ns` for `ns`.
    pub fn burst(&mut self, task: Task, cpu: u32, from_ns: u64, ns: u64) {
        let idle = format!("swapper/{cpu}");
        for (at, prev, next, state) in [
            (from_ns, (idle.as_str(), 0), (task.comm, task.tid), 0u64),
            (from_ns + ns, (task.comm, task.tid), (idle.as_str(), 0), 1),
        ] {
            let given = [
                ("prev_comm", prev.0.into()),
                ("prev_pid", (prev.1 as u64).into()),
                ("prev_state", state.into()),
                ("next_comm", next.0.into()),
                ("next_pid", (next.1 as u64).into()),
            ];
            self.others.extend(self.kernel.record(at, cpu, prev.1, "sched_switch", &given));
        }
        if !self.comms.iter().any(|(tid, _)| *tid == task.tid) {
            self.comms.push((task.tid, task.comm.to_owned()));
        }
    }

    /// Drops what `cpu` recorded strictly between two times, as a full buffer does.
    pub fn lose(&mut self, cpu: u32, from_ns: u64, to_ns: u64, counted: bool) {
        self.gaps.push(Request { cpu, from_ns, to_ns, counted });
    }

    /// Ends the recording 2 us after the last act.
    pub fn finish(mut self) -> Story {
        let end = self.vcpus.iter().map(|vcpu| vcpu.now).chain(self.others.iter().map(|record| record.ticks)).max();
        let end = end.unwrap_or(BEGIN_NS) + 2_000;
        self.burst(Task { comm: "kworker/u8:1", tid: 77 }, self.cpus - 1, end - 1_000, 1_000);
        let mut records = self.others;
        let mut vcpus = Vec::new();
        for vcpu in self.vcpus {
            let (acts, truth, places) = vcpu.finish(BEGIN_NS, end);
            records.extend(acts);
            vcpus.push((truth, places));
        }
        records.sort_by_key(|record| (record.ticks, record.cpu));
        let (mut losses, mut gaps) = (Vec::new(), Vec::new());
        for request in &self.gaps {
            if let Some((gap, loss)) = cut(&mut records, request) {
                vcpus.iter_mut().for_each(|(truth, places)| truth.hidden_ns += hidden(places, &gap, end));
                gaps.push(gap);
                losses.push(loss);
            }
        }
        losses.sort_by_key(|loss: &Loss| loss.ticks);
        let from_ns = records.first().map_or(BEGIN_NS, |record| record.ticks);
        let vcpus = vcpus.into_iter().map(|(truth, _)| truth).collect();
        let (vendor, generation) = (self.kernel.vendor, self.kernel.generation);
        Story {
            vendor,
            generation,
            cpus: self.cpus,
            schema: self.kernel.schema.clone(),
            records,
            losses,
            comms: self.comms,
            clock: Clock::nanoseconds("mono"),
            truth: Truth { vendor, from_ns, to_ns: end, vcpus, gaps },
        }
    }
}

/// Removes the records of a gap; `None` if there are none, or if nothing is left on one of its sides.
fn cut(records: &mut Vec<Record>, request: &Request) -> Option<(Gap, Loss)> {
    let on_cpu = |record: &&Record| record.cpu == request.cpu;
    let inside =
        |record: &Record| record.cpu == request.cpu && record.ticks > request.from_ns && record.ticks < request.to_ns;
    let from_ns = records.iter().filter(on_cpu).rfind(|record| record.ticks <= request.from_ns)?.ticks;
    let to_ns = records.iter().filter(on_cpu).find(|record| record.ticks >= request.to_ns)?.ticks;
    let before = records.len();
    records.retain(|record| !inside(record));
    let events = (before - records.len()) as u64;
    if events == 0 {
        return None;
    }
    let loss = Loss { ticks: to_ns, cpu: request.cpu, events: request.counted.then_some(events) };
    Some((Gap { cpu: request.cpu, from_ns, to_ns, events }, loss))
}

/// How long the thread ran on the gap's CPU during the gap.
fn hidden(places: &[Place], gap: &Gap, end: u64) -> u64 {
    let until = places.iter().skip(1).map(|place| place.from_ns).chain([end]);
    let on_it = places.iter().zip(until).filter(|(place, _)| place.cpu == gap.cpu && place.on_cpu);
    on_it.map(|(place, until)| until.min(gap.to_ns).saturating_sub(place.from_ns.max(gap.from_ns))).sum()
}
