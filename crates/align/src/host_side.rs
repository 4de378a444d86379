//! What does the trace of the machine below tell of its guest's vCPUs?
//!
//! In:  the lower machine's trace. Out: per vCPU thread the windows in which its guest ran, the exits of a nested guest
//! that were reflected, the guest's requests to enter one, and the offsets that KVM wrote.
//!
//! ```text
//! window of L1 |--------|      |---|   |-----|            |----|
//!                       request                  reflected
//! ```
//! The walk's rules decide which time was whose; here its answers are kept. Memory grows with the number of exits,
//! some 24 bytes for each; it is paid only where a guest's own trace is there to be aligned.

use super::interrupts::Injection;
use super::registers::Access;
use super::steps::Steps;
use rustc_hash::FxHashMap;
use trace::Event;
use walk::Axis;
use walk::Part;
use walk::events::reasons::{Class, Reason};
use walk::events::roles::{self, ROWS, Role};
use walk::replay::{ExtraEvents, WalkObserver, walked};
use walk::state::{State, TracedLevel};
use walk::thread::{Chain, Exit, Handled};
use walk::{Preemptor, Sink, Walk};

#[derive(Debug, Clone, Default)]
pub struct HostVcpu {
    pub tid: i32,
    /// Its number, where an event told.
    pub vcpu: Option<u32>,
    /// It runs its guest without KVM, which therefore writes no offset of it.
    pub is_translated: bool,
    /// Stretches in which the guest itself ran, in order, in units of the lower machine's axis.
    pub windows: Vec<Window>,
    /// Stretches in which a guest of it ran: its counter counts there too.
    pub nested: Vec<Window>,
    /// Stretches in which it may have run unseen.
    pub unknown: Vec<Window>,
    /// Exits of nested guests that the guest got, in order.
    pub reflected: Vec<Reflected>,
    /// When the guest asked to enter a nested guest, in order.
    pub requests: Vec<u64>,
    /// When the guest halted, in order.
    pub halts: Vec<u64>,
    /// Interrupts that KVM injected, in order.
    pub injections: Vec<Injection>,
    /// Accesses to MSRs that KVM served, in order.
    pub accesses: Vec<Access>,
    /// Offsets that KVM wrote.
    pub steps: Steps,
    /// When the guest itself was left, in order, and how long until it ran again.
    pub exits: Vec<(u64, u64)>,
    /// The same by reason and instruction pointer: count and cost.
    pub sites: FxHashMap<(Reason, u64), (u64, u64)>,
}

impl HostVcpu {
    /// True if KVM serves the guest itself at `at`, and no guest of it: it ran last.
    fn is_of_the_guest(&self, at: u64) -> bool {
        let left = |windows: &[Window]| {
            let last = windows.partition_point(|window| window.to <= at).checked_sub(1);
            last.map_or(0, |last| windows[last].to)
        };
        left(&self.windows) >= left(&self.nested)
    }
}

/// Stands for an address that a trace does not hold, on both sides of a comparison.
pub(crate) const NO_RIP: u64 = 0;

/// Different sites kept per vCPU; exits at others are not named.
const MOST_SITES: usize = 65_536;

/// A stretch of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Window {
    pub from: u64,
    pub to: u64,
    /// The CPU of the lower machine on which it ended.
    pub cpu: u32,
}

/// An exit of a nested guest that its hypervisor got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reflected {
    /// When the nested guest stopped.
    pub at: u64,
    /// Why, as the hypervisor is told.
    pub reason: Reason,
    pub rip: u64,
}

/// Everything of one lower machine.
#[derive(Debug, Clone, Default)]
pub struct HostSide {
    pub vcpus: Vec<HostVcpu>,
    /// First and last event.
    pub span: (u64, u64),
    /// Writes of offsets are among the events that were recorded.
    pub writes_are_recorded: bool,
}

pub fn read(part: &Part, axis: &Axis, ignored: &[String]) -> HostSide {
    let has = |name: &str| part.trace.facts().event_types.iter().any(|event| event.name == name);
    let mut names = ROWS.iter().filter(|row| row.role == Role::TscOffset).flat_map(|row| row.names);
    let writes_are_recorded = names.any(|name| has(name) && !ignored.iter().any(|one| one == name));
    let besides = ExtraEvents { fitted: None, events: None };
    let keeper = Keeper { axis: axis.clone(), cpu: 0, vcpus: Vec::new() };
    let mut events_seen = KvmEvents::default();
    let (walk, totals) = walked(part, ignored, besides, keeper, &mut events_seen);
    let (first, last) = totals.span_ns.unwrap_or((0, 0));
    let KvmEvents { writes, mut injections, mut accesses } = events_seen;
    let mut vcpus = walk.sink.vcpus;
    vcpus.resize_with(walk.threads.len(), HostVcpu::default);
    for (thread, vcpu) in walk.threads.iter().zip(&mut vcpus) {
        vcpu.tid = thread.tid;
        vcpu.vcpu = thread.vcpu_id;
        vcpu.is_translated = thread.is_translated;
        vcpu.injections = injections.remove(&thread.tid).unwrap_or_default();
        let accesses: Vec<Access> = accesses.remove(&thread.tid).unwrap_or_default();
        vcpu.accesses = accesses.into_iter().filter(|access| vcpu.is_of_the_guest(access.at)).collect();
    }
    let mut foreign = Vec::new();
    for written in writes {
        let own = |vcpu: &&mut HostVcpu| vcpu.tid == written.tid && vcpu.vcpu == Some(written.number);
        match vcpus.iter_mut().find(own) {
            Some(vcpu) => vcpu.steps.write(written.at, written.previous, written.next),
            None => foreign.push(written),
        }
    }
    adopt(&mut vcpus, foreign);
    vcpus.retain(|vcpu| !vcpu.windows.is_empty());
    HostSide { vcpus, span: (axis.of_event(first), axis.of_event(last)), writes_are_recorded }
}

/// A VMM may set a vCPU's counter in a thread that never runs it, before the first run or later. Such a write belongs to
/// the vCPU of its number whose offset it changed; if none had one yet, to the only vCPU of that number.
fn adopt(vcpus: &mut [HostVcpu], mut foreign: Vec<Written>) {
    foreign.sort_unstable_by_key(|written| written.at);
    for written in foreign {
        let Written { number, at, previous, next, .. } = written;
        let may_be_its =
            |vcpu: &&mut HostVcpu| vcpu.vcpu == Some(number) && !vcpu.windows.is_empty() && !vcpu.is_translated;
        let mut same: Vec<&mut HostVcpu> = vcpus.iter_mut().filter(may_be_its).collect();
        let taken = same.iter_mut().any(|vcpu| vcpu.steps.adopt(at, previous, next));
        if let ([only], false) = (same.as_mut_slice(), taken)
            && (only.steps.is_empty() || only.steps.is_all_before(at))
        {
            only.steps.write(at, previous, next);
        }
    }
}

/// One `kvm_write_tsc_offset`.
#[derive(Debug, Clone, Copy)]
struct Written {
    tid: i32,
    number: u32,
    at: u64,
    previous: u64,
    next: u64,
}

/// Events that tell more than the walk keeps.
#[derive(Default)]
struct KvmEvents {
    writes: Vec<Written>,
    injections: FxHashMap<i32, Vec<Injection>>,
    accesses: FxHashMap<i32, Vec<Access>>,
}

impl WalkObserver<Keeper> for KvmEvents {
    fn event(&mut self, walk: &mut Walk<Keeper>, event: &Event<'_>) {
        walk.sink.cpu = event.cpu;
        if !event.is_loss() {
            match roles::ROLES[usize::from(event.kind)] {
                Role::InjectVirq => self.injected(walk.sink.axis.of_event(event.time_ns), event),
                Role::TscOffset => self.written(walk.sink.axis.of_event(event.time_ns), event),
                Role::Msr => self.accessed(walk.sink.axis.of_event(event.time_ns), event),
                _ => {}
            }
        }
        walk.event(event);
    }
}

impl KvmEvents {
    fn written(&mut self, at: u64, event: &Event<'_>) {
        let field = |place: usize| event.or_zero(place);
        let [number, previous, next] =
            [roles::tsc_offset::VCPU, roles::tsc_offset::PREVIOUS, roles::tsc_offset::NEXT].map(field);
        self.writes.push(Written { tid: event.tid, number: number as u32, at, previous, next });
    }

    fn injected(&mut self, at: u64, event: &Event<'_>) {
        let injected = Injection { at, vector: event.or_zero(0) as u8 };
        let known = self.injections.entry(event.tid).or_default();
        // What could not be delivered is injected again: only then it reaches its handler.
        let again = event.or_zero(1) != 0 && known.last().is_some_and(|last| last.vector == injected.vector);
        known.truncate(known.len() - usize::from(again));
        known.push(injected);
    }

    fn accessed(&mut self, at: u64, event: &Event<'_>) {
        let what = (event.get(roles::msr::NUMBER), event.get(roles::msr::VALUE));
        if let (Some(msr), Some(value)) = what {
            let write = event.or_zero(roles::msr::WRITE) != 0;
            self.accesses.entry(event.tid).or_default().push(Access { at, msr: msr as u32, write, value });
        }
    }
}

struct Keeper {
    axis: Axis,
    /// CPU of the event that the walk looks at: a guest's stretch is ended by an event of its own CPU.
    cpu: u32,
    vcpus: Vec<HostVcpu>,
}

impl Keeper {
    #[inline]
    fn of(&mut self, thread: usize) -> &mut HostVcpu {
        if thread >= self.vcpus.len() {
            self.vcpus.resize_with(thread + 1, HostVcpu::default);
        }
        &mut self.vcpus[thread]
    }
}

impl Sink for Keeper {
    #[inline]
    fn interval(&mut self, thread: usize, state: State, from_ns: u64, to_ns: u64) {
        let window = Window { from: self.axis.of_event(from_ns), to: self.axis.of_event(to_ns), cpu: self.cpu };
        match state {
            State::Guest(TracedLevel::L1 | TracedLevel::Early) => self.of(thread).windows.push(window),
            State::Guest(level) if level.is_nested() => self.of(thread).nested.push(window),
            State::Guest(_) | State::Unknown => self.of(thread).unknown.push(window),
            _ => {}
        }
    }

    fn exit(&mut self, thread: usize, exit: &Exit) {
        let at = self.axis.of_event(exit.at_ns);
        if exit.handled == Handled::Reflected {
            self.of(thread).reflected.push(Reflected { at, reason: exit.reason, rip: exit.rip.unwrap_or(NO_RIP) });
        }
        if exit.level.is_nested() || exit.level == TracedLevel::Lost {
            return;
        }
        let cost = self.axis.of_event(exit.cost_ns.unwrap_or(0));
        let vcpu = self.of(thread);
        vcpu.exits.push((at, cost));
        if exit.reason.class() == Class::EntryRequest {
            vcpu.requests.push(at);
        }
        if exit.reason.class() == Class::Halt {
            vcpu.halts.push(at);
        }
        let Some(rip) = exit.rip else { return };
        let site = (exit.reason, rip);
        if vcpu.sites.len() < MOST_SITES || vcpu.sites.contains_key(&site) {
            let sums = vcpu.sites.entry(site).or_default();
            *sums = (sums.0 + 1, sums.1 + cost);
        }
    }

    /// The reason that the hypervisor is told can be another than the one before it.
    fn chain(&mut self, thread: usize, chain: &Chain) {
        let at = self.axis.of_event(chain.start_ns);
        let reflected = &mut self.of(thread).reflected;
        let place = reflected.partition_point(|known| known.at < at);
        match reflected.get_mut(place).filter(|known| known.at == at) {
            Some(known) => known.reason = chain.reason,
            None => reflected.insert(place, Reflected { at, reason: chain.reason, rip: NO_RIP }),
        }
    }

    fn preempted(&mut self, _: usize, _: &Preemptor, _: u64, _: u64) {}
}
