//! One vCPU thread: it acts, its events are written, its books are kept.
//!
//! ```text
//! enter ---> Guest ---> exit ---> Handling ---> { interrupt, preempt, block, halt, userspace, inject, request }* --> enter
//! ```
//! Each act first lets time pass in the state that holds, then writes its event, then changes the state. So the books
//! are right by construction: every nanosecond is added to exactly one state at the moment it passes. Time is in ns on
//! the trace's clock; no two events of a thread have the same time.
//!
//! Emission order follows brief `flow`, 2.2.

mod interrupts;
mod nested;
mod schedule;

pub use interrupts::{DEVICE, TIMER};
use interrupts::{Irq, TimerBooks};
pub(crate) use interrupts::{LINE, POSTED};
pub use schedule::{Loss, Sleep, Task, Waker};

use crate::kernel::{Generation, Vendor};
use crate::reason::{svm, vmx};
use crate::truth::{Chains, Detail, ExitKey, State, VcpuTruth};
use std::collections::BTreeMap;
use std::rc::Rc;
use trace::write::{EventSchema, Record, Schema, Value};

/// The recorded kernel: what it is, and what its events look like.
#[derive(Debug)]
pub struct Kernel {
    pub vendor: Vendor,
    pub generation: Generation,
    pub schema: Schema,
    positions: BTreeMap<String, usize>,
}

impl Kernel {
    /// The kernel of this vendor and age.
    pub fn new(vendor: Vendor, generation: Generation) -> Self {
        Self::of(vendor, generation, generation.schema(vendor))
    }

    /// The same with more events, which groups other than KVM's have.
    pub fn with(self, more: impl IntoIterator<Item = EventSchema>) -> Self {
        let mut schema = self.schema;
        schema.events.extend(more);
        Self::of(self.vendor, self.generation, schema)
    }

    fn of(vendor: Vendor, generation: Generation, schema: Schema) -> Self {
        let positions = schema.events.iter().enumerate().map(|(at, event)| (event.name.clone(), at)).collect();
        Self { vendor, generation, schema, positions }
    }

    /// A record of event `name`, its fields given by name: those that this kernel's event lacks are left out, those not
    /// given are 0. `None` if this kernel has no such event.
    pub fn record(&self, ticks: u64, cpu: u32, tid: i32, name: &str, given: &[(&str, Value)]) -> Option<Record> {
        let event = *self.positions.get(name)?;
        let value = |field: &str| given.iter().find(|(name, _)| *name == field).map(|(_, value)| value.clone());
        let fields = &self.schema.events[event].fields;
        let values = fields.iter().map(|field| value(&field.name).unwrap_or(Value::Integer(0))).collect();
        Some(Record { ticks, cpu, tid, event, values })
    }
}

/// A thread that acts.
pub struct Vcpu {
    kernel: Rc<Kernel>,
    pub truth: VcpuTruth,
    pub now: u64,
    /// Where it runs or ran last.
    pub cpu: u32,
    /// How long KVM's work on exits takes, in percent of what the scenario says: another kernel or CPU.
    pub(crate) handling_percent: u64,
    /// The level that runs or left last.
    level: u8,
    /// The guest's instruction pointer there.
    rip: u64,
    state: State,
    open: Option<OpenExit>,
    chain: Option<OpenChain>,
    records: Vec<Record>,
    /// Since when it has been on which CPU, and whether it ran there.
    places: Vec<Place>,
    last_event: Option<u64>,
    born: u64,
    irqs: Vec<Irq>,
    timer: TimerBooks,
    /// How long KVM took to set the timer, while nobody has been told.
    program: Option<u64>,
    /// The exit that is handled says that the guest takes interrupts again.
    window: Option<u64>,
}

/// From a time on, a thread is on a CPU or belongs to it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) from_ns: u64,
    pub(crate) cpu: u32,
    pub(crate) on_cpu: bool,
}

struct OpenExit {
    key: ExitKey,
    detail: Option<Detail>,
    at: u64,
    off_cpu_ns: u64,
}

struct OpenChain {
    reason: u32,
    at: u64,
    off_cpu_ns: u64,
    exits: u64,
    halted: bool,
    /// Control block of the guest whose exit opened it.
    block: u64,
    /// That guest ran on another thread meanwhile.
    overtaken: bool,
}

#[derive(Debug, Clone, Copy, Default)]
pub struct Exit {
    pub reason: u32,
    /// Qualification or EXITINFO1.
    pub info1: u64,
    /// Vectoring information or EXITINFO2.
    pub info2: u64,
    pub detail: Option<Detail>,
}

impl Exit {
    /// An exit of which nothing but the reason matters.
    pub fn of(reason: u32) -> Self {
        Self { reason, ..Self::default() }
    }

    pub fn info(reason: u32, info1: u64) -> Self {
        Self { reason, info1, ..Self::default() }
    }
}

/// Where the code of each level lies, for the instruction pointers: L1's hypervisor, L2's kernel, L3's.
const CODE: [u64; 4] = [0, 0xffff_ffff_c0a0_1000, 0xffff_ffff_8100_0000, 0xffff_ffff_9200_0000];
/// Length of VMRESUME, VMLAUNCH and VMRUN.
const ENTRY_INSTRUCTION_BYTES: u64 = 3;

impl Vcpu {
    /// A thread that gets on `cpu` at `now`; the recording sees the task switch.
    pub fn start(kernel: Rc<Kernel>, vm: &str, vcpu: u32, tid: i32, cpu: u32, now: u64) -> Self {
        let truth = VcpuTruth {
            vm: vm.to_owned(),
            vcpu,
            tid,
            ledger: BTreeMap::new(),
            hidden_ns: 0,
            exits: BTreeMap::new(),
            details: BTreeMap::new(),
            chains: BTreeMap::new(),
            preemptors: BTreeMap::new(),
            host_interrupts: BTreeMap::new(),
            interrupts: BTreeMap::new(),
            refused: 0,
        };
        let mut thread = Self {
            kernel,
            truth,
            now,
            cpu,
            handling_percent: 100,
            level: 1,
            rip: CODE[1],
            state: State::Unknown,
            open: None,
            chain: None,
            records: Vec::new(),
            places: vec![Place { from_ns: now, cpu, on_cpu: true }],
            last_event: None,
            born: now,
            irqs: Vec::new(),
            timer: TimerBooks::default(),
            program: None,
            window: None,
        };
        thread.switch_to_self(0, &format!("swapper/{cpu}"), 0);
        thread
    }

    /// Whose virtualisation this is.
    pub fn vendor(&self) -> Vendor {
        self.kernel.vendor
    }

    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// Lets time pass in the state that holds.
    pub fn pass(&mut self, ns: u64) {
        let is_handling = matches!(self.state, State::Handling(_));
        let ns = if is_handling { (ns * self.handling_percent).div_ceil(100) } else { ns };
        self.now += ns;
        *self.truth.ledger.entry(self.state).or_default() += ns;
        if self.state.is_off_cpu() {
            if let Some(exit) = &mut self.open {
                exit.off_cpu_ns += ns;
            }
            if let Some(chain) = &mut self.chain {
                chain.off_cpu_ns += ns;
            }
        }
    }

    /// Writes an event of this thread; a nanosecond passes first if one was written at this very time.
    pub fn event(&mut self, name: &str, given: &[(&str, Value)]) {
        self.event_of(self.truth.tid, self.cpu, name, given);
    }

    /// Writes an event of another thread or CPU at this time.
    fn event_of(&mut self, tid: i32, cpu: u32, name: &str, given: &[(&str, Value)]) {
        if self.last_event == Some(self.now) {
            self.pass(1);
        }
        if let Some(record) = self.kernel.record(self.now, cpu, tid, name, given) {
            self.records.push(record);
            self.last_event = Some(self.now);
        }
    }

    /// Enters the guest at `level`, wherever it stands.
    pub fn enter(&mut self, level: u8) {
        let rip = if level == self.level { self.rip } else { CODE[usize::from(level).min(3)] };
        self.enter_at(level, rip);
    }

    pub(crate) fn enter_at(&mut self, level: u8, rip: u64) {
        self.entry_event(rip);
        self.irqs_enter();
        self.close_exit();
        if level > 1 {
            self.close_chain();
        }
        (self.level, self.rip, self.state) = (level, rip, State::Guest(level));
    }

    fn entry_event(&mut self, rip: u64) {
        let vcpu = u64::from(self.truth.vcpu);
        self.event("kvm_entry", &[("vcpu_id", vcpu.into()), ("rip", rip.into())]);
    }

    /// The guest leaves; handling begins.
    pub fn exit(&mut self, exit: Exit) {
        self.exit_event("kvm_exit", exit);
        let key = ExitKey { level: self.level, reason: exit.reason };
        self.truth.exits.entry(key).or_default().count += 1;
        if let Some(detail) = exit.detail {
            self.truth.details.entry((key, detail)).or_default().count += 1;
        }
        self.open = Some(OpenExit { key, detail: exit.detail, at: self.now, off_cpu_ns: 0 });
        if let Some(chain) = self.chain.as_mut().filter(|_| self.level == 1) {
            chain.exits += 1;
            chain.halted |= exit.reason == self.kernel.vendor.hlt();
        }
        self.irqs_leave(exit.reason);
        self.state = State::Handling(self.level);
        if self.level > 1 {
            self.pass(20);
            self.exit_event("kvm_nested_vmexit", exit);
        }
    }

    /// `kvm_exit`, or `kvm_nested_vmexit`, whose old layout has other names for the same.
    fn exit_event(&mut self, name: &str, exit: Exit) {
        let (rip, isa) = (self.rip, self.kernel.vendor.isa());
        let reason = u64::from(exit.reason);
        let vcpu = u64::from(self.truth.vcpu);
        let given: [(&str, Value); 10] = [
            ("exit_reason", reason.into()),
            ("exit_code", reason.into()),
            ("guest_rip", rip.into()),
            ("rip", rip.into()),
            ("isa", isa.into()),
            ("info1", exit.info1.into()),
            ("info2", exit.info2.into()),
            ("exit_info1", exit.info1.into()),
            ("exit_info2", exit.info2.into()),
            ("vcpu_id", vcpu.into()),
        ];
        self.event(name, &given);
    }

    /// KVM_RUN returns to the VMM, which works for `ns`.
    pub fn userspace(&mut self, reason: u64, errno: i64, ns: u64) {
        self.event("kvm_userspace_exit", &[("reason", reason.into()), ("errno", Value::Integer(errno as u64))]);
        self.state = State::Userspace;
        self.pass(ns);
    }

    /// The guest's instruction pointer moves on, as between two different sites.
    pub(crate) fn move_rip(&mut self, to: u64) {
        self.rip = CODE[usize::from(self.level).min(3)] + to;
    }

    /// A fast-path re-entry: what KVM handles before interrupts are on again, as this kernel shows it.
    pub fn fastpath(&mut self, exit: Exit, handling_ns: u64, guest_ns: u64) {
        use crate::kernel::Fastpath;
        match self.kernel.generation.fastpath(self.kernel.vendor) {
            Fastpath::Paired => {
                self.exit(exit);
                self.pass(handling_ns);
                self.enter(self.level);
                self.pass(guest_ns);
            }
            Fastpath::ExitExit => {
                self.exit(exit);
                self.open = None;
                self.state = State::Unknown;
                self.pass(handling_ns + guest_ns);
            }
            Fastpath::EntryEntry => {
                self.pass(handling_ns);
                self.entry_event(self.rip);
                self.pass(guest_ns);
            }
        }
    }

    /// `kvm_wait_lapic_expire`, which KVM writes behind `kvm_entry` although no guest has run yet: no evidence of a stop.
    pub(crate) fn wait_for_timer(&mut self) {
        self.pass(15);
        let vcpu = u64::from(self.truth.vcpu);
        self.event("kvm_wait_lapic_expire", &[("vcpu_id", vcpu.into()), ("delta", 40.into())]);
    }

    /// The level that runs or left last.
    pub(crate) fn guest_level(&self) -> u8 {
        self.level
    }

    fn close_exit(&mut self) {
        if let Some(exit) = self.open.take() {
            let cost = self.now - exit.at - exit.off_cpu_ns;
            self.truth.exits.entry(exit.key).or_default().total_ns += cost;
            if let Some(detail) = exit.detail {
                self.truth.details.entry((exit.key, detail)).or_default().total_ns += cost;
            }
        }
    }

    fn chains_of(&mut self, reason: u32) -> &mut Chains {
        self.truth.chains.entry(reason).or_default()
    }

    /// Runs on until the recording ends at `end`, and gives up records and books.
    pub(crate) fn finish(mut self, begin: u64, end: u64) -> (Vec<Record>, VcpuTruth, Vec<Place>) {
        self.pass(end - self.now);
        *self.truth.ledger.entry(State::Unknown).or_default() += self.born - begin;
        if let Some(chain) = self.chain.take() {
            self.chains_of(chain.reason).censored += 1;
        }
        self.irqs_end();
        (self.records, self.truth, self.places)
    }

    /// The exit that a full hardware refusal shows on this vendor.
    pub(crate) fn failed_entry(&self) -> Exit {
        match self.kernel.vendor {
            Vendor::Vmx => Exit::of(vmx::FAILED_ENTRY | vmx::INVALID_STATE),
            Vendor::Svm => Exit::of(svm::INVALID),
        }
    }
}
