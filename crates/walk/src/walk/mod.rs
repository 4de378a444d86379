//! All threads of a trace, event by event.
//!
//! In:  events in time order, in the roles of [`roles::ROWS`].
//! Out: to a [`Sink`]: every piece of time of every thread in its state, every exit, every chain, who ran instead.
//!
//! Events belong to the thread that was running. Traces without a thread field (LTTng without the `tid` context) are
//! attributed by `sched_switch`; what comes before a CPU's first switch cannot be, and is counted.

pub mod backfill;
pub mod continued;
mod cpus;
pub mod cut_from;
pub mod replay;
pub mod samples;
mod serving;
mod sink;
mod stages;
mod threads;
pub mod vcpu_names;
mod waiting;
mod witnesses;

pub use sink::{Interruption, Preemptor, Sink, Waker};

use crate::events::details::Detail;
use crate::events::exit_reason::reason;
use crate::events::host_interrupts::Handlers;
use crate::events::reasons::Isa;
use crate::events::roles::{self, ROLES, Role};
use crate::faults::Faults;
use crate::stages::flights::{Away, Flights};
use crate::stages::timers::{self, Check, Timers};
use crate::stages::{IrqStage, TimerStage, Told};
use crate::state::State;
use crate::thread::{Doubts, Seen, Surroundings, Thread};
use base::recording::Running;
use cpus::{Cpu, Gap};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::BTreeMap;
use trace::Event;

/// The smallest number that is no vCPU: KVM allows 16,384 IDs on x86 at most (KVM_MAX_VCPU_IDS, Linux 6.12).
const NO_VCPU: u64 = 0x1_0000;

#[derive(Clone)]
pub struct Walk<S: Sink> {
    /// The question's sums.
    pub sink: S,
    pub threads: Vec<Thread>,
    pub seen: Seen,
    pub doubts: Doubts,
    /// `kvm_entry` events whose vCPU number cannot be one: LTTng's probe does not fit the kernel.
    pub stale_entries: u64,
    /// KVM and scheduler events that no thread could be found for.
    pub unattributed: u64,
    /// How halts of threads ended that nothing but `kvm_vcpu_wakeup` tells of: how often and how long by polling, and by sleeping.
    pub halts: BTreeMap<i32, [(u64, u64); 2]>,
    /// Virtual interrupts under way.
    pub flights: Flights,
    pub timers: Timers,
    /// Handlers of the host's own interrupts.
    pub handlers: Handlers,
    /// Losses: CPU, when, events, bytes.
    pub losses: Vec<(u32, u64, u64, u64)>,
    /// When the recorder paused: from, until.
    pub pauses: Vec<(u64, u64)>,
    /// Instruction set of exits that name none.
    pub isa: Isa,
    origin_ns: u64,
    /// The latest time that is believed.
    latest_ns: u64,
    by_tid: FxHashMap<i32, usize>,
    by_vcpu: Vec<Owner>,
    /// What went wrong with guests.
    pub faults: Faults,
    /// Nothing but the names of threads says who runs vCPUs.
    pub(super) by_name: bool,
    /// Threads of vCPUs, each counted once.
    vcpus_met: usize,
    /// Threads of vCPUs that have not been met, with the vCPU's number.
    expected: BTreeMap<i32, Option<u32>>,
    /// Who has the CPUs when the trace begins.
    running: Vec<Running>,
    /// By what LTTng's stale `kvm_x86_entry` has for a vCPU number: half the address of the kernel's vCPU.
    by_pointer: FxHashMap<u64, usize>,
    /// Some CPU's events are lost until then.
    lossy_until_ns: u64,
    /// Stretches of CPUs that are not in the trace and have not begun, the next one last.
    gaps: Vec<Gap>,
    /// When the next one begins.
    next_gap_ns: u64,
    /// A `sched_switch` was seen: a thread changes its CPU by none other.
    switches: bool,
    /// A task left a CPU on which another one was seen last: switches are missing.
    lacks_switches: bool,
    /// An interrupt began: the trace has those.
    interrupts: bool,
    /// By address of a nested guest's control block.
    runners: FxHashMap<u64, Runners>,
    cpus: Vec<Cpu>,
}

/// Whose number is it?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    Nobody,
    Thread(usize),
    /// vCPUs of several VMs have it.
    Several,
}

/// Who runs the nested guest of one address.
#[derive(Debug, Clone, Default)]
struct Runners {
    threads: SmallVec<[usize; 2]>,
    /// The address names several guests.
    several: bool,
}

impl<S: Sink> Walk<S> {
    /// A walk that has seen nothing.
    pub fn new(sink: S) -> Self {
        Self {
            sink,
            isa: Isa::Vmx,
            origin_ns: 0,
            latest_ns: LONGEST_NS,
            threads: Vec::new(),
            seen: Seen::default(),
            doubts: Doubts::default(),
            stale_entries: 0,
            unattributed: 0,
            halts: BTreeMap::new(),
            flights: Flights::default(),
            timers: Timers::default(),
            handlers: Handlers::default(),
            losses: Vec::new(),
            pauses: Vec::new(),
            by_tid: FxHashMap::default(),
            by_vcpu: Vec::new(),
            faults: Faults::default(),
            by_name: false,
            vcpus_met: 0,
            expected: BTreeMap::new(),
            running: Vec::new(),
            by_pointer: FxHashMap::default(),
            lossy_until_ns: 0,
            gaps: Vec::new(),
            next_gap_ns: u64::MAX,
            switches: false,
            lacks_switches: false,
            interrupts: false,
            runners: FxHashMap::default(),
            cpus: Vec::new(),
        }
    }

    /// Sets the time of the trace's first event: what passes until a thread's own first event is unknown.
    pub fn start(&mut self, origin_ns: u64) {
        self.origin_ns = origin_ns;
        self.latest_ns = origin_ns.saturating_add(LONGEST_NS);
        for Running { cpu, tid } in std::mem::take(&mut self.running) {
            self.runs_already(cpu as usize, tid);
        }
    }

    /// `time_ns`, unless only damage explains it: then the latest time that is believed.
    #[inline]
    fn plausible(&self, time_ns: u64) -> u64 {
        time_ns.min(self.latest_ns)
    }

    /// Takes one event. What is rare is called with a copy of it, so that an event as such need not lie in memory.
    #[inline(always)]
    pub fn event(&mut self, event: &Event<'_>) {
        let cpu = event.cpu as usize;
        if cpu >= self.cpus.len() && !self.meet_cpu(cpu) {
            return;
        }
        let now_ns = self.plausible(event.time_ns);
        if now_ns >= self.next_gap_ns {
            self.begin_gaps(now_ns);
        }
        let Some(role) = ROLES.get(usize::from(event.kind)).copied() else { return self.lost(cpu, *event) };
        let here = &mut self.cpus[cpu];
        let before_ns = std::mem::replace(&mut here.last_ns, now_ns);
        if role == Role::Switch {
            return self.switch(cpu, *event);
        }
        let known = here.thread.filter(|_| event.tid == trace::batch::NO_TID || here.current == Some(event.tid));
        let Some(me) = known.or_else(|| self.thread_of(cpu, *event, role, before_ns)) else { return };
        match role {
            Role::Entry => return self.entry(me, now_ns, event),
            Role::Exit => return self.exit(me, now_ns, event),
            Role::IrqEntry | Role::VectorEntry | Role::SoftirqEntry | Role::IrqExit | Role::SoftirqExit => {
                self.serves_irq(event, role, now_ns);
                return self.host_interrupt(Some(me), *event, role);
            }
            _ => {}
        }
        let thread = &mut self.threads[me];
        let cx = &mut Surroundings { sink: &mut self.sink, seen: &self.seen, doubts: &mut self.doubts, me };
        match role {
            Role::NestedVmexit => {
                let seen = Seen { nested_vmexit: true, ..self.seen };
                let cx = &mut Surroundings { sink: &mut self.sink, seen: &seen, doubts: &mut self.doubts, me };
                thread.nested_vmexit(now_ns, cx);
                self.seen = seen;
                self.flights.nested(me);
            }
            Role::Inject => {
                let reason =
                    reason(event, roles::inject::REASON, roles::inject::ISA, roles::inject::REASON_NAME, self.isa);
                thread.inject(now_ns, reason, cx);
                self.seen.inject = true;
            }
            Role::NestedEntry => {
                let nested_rip = event.get(roles::nested_entry::NESTED_RIP);
                let vmcb = event.get(roles::nested_entry::VMCB);
                thread.nested_entry(now_ns, nested_rip, vmcb, cx);
                self.seen.nested_entry = true;
                if let Some(vmcb) = vmcb {
                    self.sink.nested_entry(me, vmcb, now_ns);
                    self.enters_on(me, vmcb);
                }
            }
            Role::NestedEntryFailed => thread.nested_entry_failed(now_ns, cx),
            Role::NestedIntercepts => thread.nested_intercepts(now_ns, cx),
            Role::UserspaceExit => {
                thread.userspace_exit(now_ns, cx);
                // An int of the kernel's, negative where KVM_RUN failed.
                match event.or_zero(1) as i32 {
                    errno @ ..0 => self.faults.failed(me, errno.unsigned_abs(), now_ns),
                    0.. => self.faults.userspace(me, event.or_zero(0), now_ns),
                }
            }
            Role::Emulate | Role::InjectException | Role::PageFault => self.serves(me, event, role, now_ns),
            Role::Served => thread.serves(now_ns, cx),
            Role::Fpu if event.or_zero(0) == 1 => thread.run_begins(now_ns, cx),
            Role::Waking => {
                thread.host_event(now_ns, cx);
                self.waken_by(Some(me), event, now_ns, before_ns);
            }
            Role::Nmi => thread.nmi(now_ns, event.or_zero(0), cx),
            Role::HostWork => thread.host_event(now_ns, cx),
            Role::HrtimerExpire => {
                thread.host_event(now_ns, cx);
                self.hrtimer_expire(event, now_ns);
            }
            Role::VcpuWakeup => {
                thread.vcpu_wakeup(now_ns, (event.or_zero(0), event.get(1) == Some(1)), cx);
                self.seen.wakeup = true;
            }
            Role::Smm => thread.smm(cx),
            Role::Msr | Role::Apic => {
                thread.detail(now_ns, Detail::of_event(role, event));
                self.sets_timer(me, event, role, now_ns);
            }
            Role::Pio | Role::Mmio | Role::FastMmio => {
                thread.detail(now_ns, Detail::of_event(role, event));
                self.faults.progress(me);
            }
            Role::InjectVirq => self.inject_virq(me, event, now_ns),
            Role::AcceptIrq => self.accept_irq(Some(me), event, now_ns, before_ns),
            Role::PostIrq => self.post_irq(event, now_ns),
            Role::SetIrq => self.set_irq(event, now_ns),
            Role::Eoi => self.end_of_irq(me, event, now_ns),
            Role::HrtimerStart => self.hrtimer_start(me, event, now_ns),
            Role::TimerProgrammed => self.timer_programmed(me, now_ns),
            Role::LapicExpire => self.lapic_expire(me, event, now_ns),
            Role::TscOffset => self.tsc_offset(me, event, now_ns),
            Role::Entry | Role::Exit | Role::Switch => {}
            Role::IrqEntry | Role::VectorEntry | Role::SoftirqEntry | Role::IrqExit | Role::SoftirqExit => {}
            Role::Fpu | Role::HaltPollWindow => {}
        }
    }

    /// `kvm_entry` on thread `me`.
    #[inline(always)]
    fn entry(&mut self, me: usize, now_ns: u64, event: &Event<'_>) {
        let vcpu = event.get(roles::entry::VCPU);
        if self.threads[me].vcpu_id.is_none() || vcpu.is_some_and(|vcpu| vcpu >= NO_VCPU) {
            self.number_by_entry(me, vcpu);
        }
        let cx = &mut Surroundings { sink: &mut self.sink, seen: &self.seen, doubts: &mut self.doubts, me };
        self.threads[me].entry(now_ns, event.get(roles::entry::RIP), cx);
        self.flights.enter(me, now_ns, |vector, told| self.sink.interrupt(me, vector, told));
    }

    /// `kvm_exit` on thread `me`.
    #[inline(always)]
    fn exit(&mut self, me: usize, now_ns: u64, event: &Event<'_>) {
        let (rip, info1) = (event.get(roles::exit::RIP), event.get(roles::exit::INFO1));
        let reason = reason(event, roles::exit::REASON, roles::exit::ISA, roles::exit::REASON_NAME, self.isa);
        if let Some(vcpu) = event.get(roles::exit::VCPU)
            && vcpu < NO_VCPU
            && self.threads[me].vcpu_id != Some(vcpu as u32)
        {
            self.number(me, vcpu as u32);
        }
        let detail = match (reason.isa, reason.code) {
            (Isa::Vmx, 0) => Detail::of_exception(event.get(roles::exit::INTR_INFO)),
            _ => Detail::of_exit(reason, rip, info1),
        };
        let class = reason.class();
        self.faults.exit(me, reason, rip, now_ns);
        let cx = &mut Surroundings { sink: &mut self.sink, seen: &self.seen, doubts: &mut self.doubts, me };
        self.threads[me].exit(now_ns, (reason, class), rip, detail, cx);
        self.flights.leave(me, now_ns, (reason, class), |vector, told| self.sink.interrupt(me, vector, told));
        self.seen.virtualization |= class.is_nested_sign();
        self.seen.exit = true;
    }

    /// Thread `me` enters the nested guest behind `vmcb`: chains of it that are open elsewhere have migrated.
    ///
    /// Hypervisors of different VMs may use one address. It is one guest's no longer once two threads are inside at the
    /// same time, or two threads of one vCPU number know it.
    fn enters_on(&mut self, me: usize, vmcb: u64) {
        let runners = self.runners.entry(vmcb).or_default();
        if !runners.threads.contains(&me) {
            runners.threads.push(me);
        }
        for other in runners.threads.iter().copied().filter(|other| *other != me) {
            let number = self.threads[me].vcpu_id;
            let other = &mut self.threads[other];
            runners.several |= other.is_inside(vmcb) || (number.is_some() && other.vcpu_id == number);
            if !runners.several {
                other.overtaken(vmcb);
            }
        }
    }

    /// Ends all threads at `end_ns`.
    pub fn end(&mut self, end_ns: u64) {
        let end_ns = self.plausible(end_ns);
        self.flights.forget(|thread, vector, told| self.sink.interrupt(thread, vector, told));
        while let Some((tid, _)) = self.expected.first_key_value() {
            self.meet(*tid, end_ns);
        }
        for cpu in 0..self.cpus.len() {
            self.stop_charging(cpu, end_ns);
        }
        for (me, thread) in self.threads.iter_mut().enumerate() {
            let cx = &mut Surroundings { sink: &mut self.sink, seen: &self.seen, doubts: &mut self.doubts, me };
            thread.end(end_ns, cx);
        }
    }

    /// An interrupt or softirq of the host begins or ends on the CPU of thread `me`, if one of ours has it.
    #[inline(never)]
    fn host_interrupt(&mut self, me: Option<usize>, event: Event<'_>, role: Role) {
        let now_ns = self.plausible(event.time_ns);
        let begun = &mut self.cpus[event.cpu as usize].begun;
        let begins = self.handlers.begun(&event, role);
        match begins {
            Some(by) => {
                self.interrupts = true;
                begun.begin(by);
            }
            None => begun.end(if role == Role::SoftirqExit { State::Softirq } else { State::Irq }),
        }
        let Some(me) = me else { return };
        let interruption = begun.top().map(|by| Interruption { by, begins: begins == Some(by) });
        let cx = &mut Surroundings { sink: &mut self.sink, seen: &self.seen, doubts: &mut self.doubts, me };
        self.threads[me].interrupted(now_ns, interruption, cx);
    }

    /// Makes room for a CPU not met before; false if the number can only be damage. It comes from the file, and must not
    /// size an allocation.
    #[cold]
    fn meet_cpu(&mut self, cpu: usize) -> bool {
        let plausible = cpu <= MOST_CPUS;
        if plausible {
            self.cpus.resize(cpu + 1, Cpu::default());
        } else {
            self.unattributed += 1;
        }
        plausible
    }
}

/// A trace longer than this, 52 days, has a damaged time stamp. The times of 4,096 vCPUs then add up within 64 bits.
pub const LONGEST_NS: u64 = 1 << 52;

/// CPU numbers above this are damage (NR_CPUS is 8,192 at most on x86, arch/x86/Kconfig, Linux 6.12).
const MOST_CPUS: usize = 65_535;

impl Role {
    /// True for events that only a vCPU thread emits.
    fn is_positional(self) -> bool {
        matches!(
            self,
            Role::Entry
                | Role::Exit
                | Role::NestedVmexit
                | Role::Inject
                | Role::NestedEntry
                | Role::NestedEntryFailed
                | Role::NestedIntercepts
                | Role::UserspaceExit
                | Role::Served
                | Role::Emulate
                | Role::InjectException
                | Role::PageFault
        )
    }
}
