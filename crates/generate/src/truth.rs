//! What an analysis has to find in a story.
//!
//! The simulator keeps these books itself, while it acts; nothing here is computed from the records it emits. The
//! meaning of every number is that of CONTRACTS section 3. Where that leaves a choice, these hold:
//!
//! * **Handling has the level of the exit that is handled**, up to the next entry, also behind an injection. This is the
//!   rule with which the recordings' known ledgers come out.
//! * **A guest interval ends with the first evidence that the host runs.** Where `kvm_exit` is late (kernels of brief
//!   `flow`, 2.3), a host interrupt comes first, and what lies between it and `kvm_exit` is handling.
//! * **Exit, exit** (VMX fast path of 5.10): from the first exit to the second is unknown; the first is counted and adds
//!   nothing to a total, for nothing says when it was over. **Entry, entry** (SVM before 6.5): the guest ran on.
//! * **Halt polling** lasts from the start that `kvm_vcpu_wakeup` tells to the switch away from the thread, or to the
//!   event if there was none.
//! * Before the first KVM event of a thread its time is unknown, even while it is on a CPU.
//! * A VMX entry that the hardware refused never ran: from `kvm_entry` on it is handling of L1's exit. The total of that
//!   exit ends at this first `kvm_entry`.
//! * **Losses.** The books are those of what happened. What a gap hides is in [`VcpuTruth::hidden_ns`]. An honest answer
//!   has no known state longer than the books say, at least `hidden_ns` of unknown time, and no more exits or injections
//!   than the books. [`Truth::exact`] is false then.

use crate::kernel::Vendor;
use std::collections::BTreeMap;
use std::fmt;

/// State of a vCPU thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// A guest of this level runs.
    Guest(u8),
    /// KVM works on an exit from this level.
    Handling(u8),
    /// The VMM works.
    Userspace,
    Irq,
    Softirq,
    /// A non-maskable interrupt; no scenario has one, for no event brackets it.
    Nmi,
    /// KVM polls for a wake-up.
    HaltPoll,
    /// The guest halted, the thread sleeps.
    Halted,
    /// Woken, not yet on a CPU.
    WakeDelay,
    /// Runnable, another task has the CPU.
    Preempted,
    /// The thread sleeps for another reason.
    Blocked,
    Unknown,
}

impl State {
    /// True for the four states that are taken off the cost of exits and chains.
    pub fn is_off_cpu(self) -> bool {
        matches!(self, State::Preempted | State::WakeDelay | State::Blocked | State::Halted)
    }

    /// Name of the column in the table `vcpus`.
    pub fn column(self) -> String {
        match self {
            State::Guest(level) => format!("guest_l{level}_ns"),
            State::Handling(level) => format!("handling_l{level}_ns"),
            State::Userspace => "userspace_ns".into(),
            State::Irq => "irq_ns".into(),
            State::Softirq => "softirq_ns".into(),
            State::Nmi => "nmi_ns".into(),
            State::HaltPoll => "halt_poll_ns".into(),
            State::Halted => "halted_ns".into(),
            State::WakeDelay => "wake_delay_ns".into(),
            State::Preempted => "preempted_ns".into(),
            State::Blocked => "blocked_ns".into(),
            State::Unknown => "unknown_ns".into(),
        }
    }
}

/// What a group of exits has in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExitKey {
    pub level: u8,
    /// Number of the reason, whole: with VMX's bit 31.
    pub reason: u32,
}

/// What an exit was about, where a record says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Detail {
    /// A model-specific register, from `kvm_msr`.
    Msr(u32),
    /// A port, from `kvm_pio`.
    Port(u16),
    /// A guest-physical address, from `kvm_mmio`.
    Mmio(u64),
    /// An APIC register by its offset, from the exit's qualification.
    ApicRegister(u16),
    /// An interrupt vector, from the exit's qualification.
    Vector(u8),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    pub count: u64,
    pub total_ns: u64,
}

/// The chains that one injected reason opened.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Chains {
    pub count: u64,
    /// Not closed when the recording ended.
    pub censored: u64,
    /// In order of closing.
    pub closed: Vec<ClosedChain>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClosedChain {
    pub exits: u64,
    pub cost_ns: u64,
    /// L1 executed HLT inside.
    pub halted: bool,
    /// It ended with the entry of another control block, or while its own ran on another thread first.
    pub moved: bool,
}

/// Virtual interrupts of one vector.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Interrupts {
    /// Each stage by its name; those of the guest's timer begin with `timer `.
    pub stages: BTreeMap<&'static str, Tally>,
    /// Accepted while one was pending.
    pub merged: u64,
    /// Delivered by the processor.
    pub posted: u64,
}

impl Interrupts {
    /// One more of `stage`.
    pub fn stage(&mut self, stage: &'static str, ns: u64) {
        let tally = self.stages.entry(stage).or_default();
        *tally = Tally { count: tally.count + 1, total_ns: tally.total_ns + ns };
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VcpuTruth {
    /// Name of the process, which all its vCPU threads have as `comm` here.
    pub vm: String,
    /// Number of the vCPU in its VM.
    pub vcpu: u32,
    pub tid: i32,
    /// Time per state; sums to [`Truth::wall_ns`].
    pub ledger: BTreeMap<State, u64>,
    /// How much of the ledger lies in gaps of the recording.
    pub hidden_ns: u64,
    /// Exits by level and reason.
    pub exits: BTreeMap<ExitKey, Tally>,
    pub details: BTreeMap<(ExitKey, Detail), Tally>,
    /// Chains by the reason as injected.
    pub chains: BTreeMap<u32, Chains>,
    /// Who ran while the vCPU was pre-empted: how often it was the one that took the CPU, and how long it had it, also
    /// behind another that took it.
    pub preemptors: BTreeMap<String, Tally>,
    /// Interrupts and softirqs of the host on the thread's CPU, by name.
    pub host_interrupts: BTreeMap<String, Tally>,
    /// Virtual interrupts by vector.
    pub interrupts: BTreeMap<u8, Interrupts>,
    /// Nested entries that were refused.
    pub refused: u64,
}

/// A stretch on one CPU whose events are not in the recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// The CPU.
    pub cpu: u32,
    /// Time of the last event before it.
    pub from_ns: u64,
    /// Time of the first event after it.
    pub to_ns: u64,
    /// How many events are missing.
    pub events: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Truth {
    /// Whose exit reasons the numbers are.
    pub vendor: Vendor,
    /// Time of the first record.
    pub from_ns: u64,
    /// Time of the last record.
    pub to_ns: u64,
    /// The vCPU threads, by tid.
    pub vcpus: Vec<VcpuTruth>,
    pub gaps: Vec<Gap>,
}

impl Truth {
    /// Length of the story.
    pub fn wall_ns(&self) -> u64 {
        self.to_ns - self.from_ns
    }

    /// True if the records tell everything, so that an analysis must find these very numbers.
    pub fn exact(&self) -> bool {
        self.gaps.is_empty()
    }

    /// The chains of all vCPUs together.
    pub fn chains(&self) -> BTreeMap<u32, Chains> {
        let mut all: BTreeMap<u32, Chains> = BTreeMap::new();
        for (reason, chains) in self.vcpus.iter().flat_map(|vcpu| &vcpu.chains) {
            let sum = all.entry(*reason).or_default();
            sum.count += chains.count;
            sum.censored += chains.censored;
            sum.closed.extend(&chains.closed);
        }
        all
    }
}

impl VcpuTruth {
    /// Time in `state`.
    pub fn ns(&self, state: State) -> u64 {
        self.ledger.get(&state).copied().unwrap_or(0)
    }

    pub fn exit_count(&self) -> u64 {
        self.exits.values().map(|tally| tally.count).sum()
    }
}

/// The books as lines of words, for people and scripts.
impl fmt::Display for Truth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "story {:?} wall {} exact {}", self.vendor, self.wall_ns(), self.exact())?;
        for vcpu in &self.vcpus {
            let tid = vcpu.tid;
            writeln!(f, "vcpu {tid} {} {} hidden {} refused {}", vcpu.vm, vcpu.vcpu, vcpu.hidden_ns, vcpu.refused)?;
            for (state, ns) in &vcpu.ledger {
                writeln!(f, "state {tid} {} {ns}", state.column())?;
            }
            for (ExitKey { level, reason }, Tally { count, total_ns }) in &vcpu.exits {
                writeln!(f, "exit {tid} L{level} {reason} {count} {total_ns}")?;
            }
            for ((ExitKey { level, reason }, detail), Tally { count, total_ns }) in &vcpu.details {
                writeln!(f, "detail {tid} L{level} {reason} {detail:?} {count} {total_ns}")?;
            }
            for (reason, chains) in &vcpu.chains {
                let Chains { count, censored, closed } = chains;
                let number = |of: fn(&ClosedChain) -> bool| closed.iter().filter(|chain| of(chain)).count();
                let (interrupted, migrated) = (number(|chain| chain.halted), number(|chain| chain.moved));
                let total_ns: u64 = closed.iter().map(|chain| chain.cost_ns).sum();
                let lengths: Vec<u64> = closed.iter().map(|chain| chain.exits).collect();
                writeln!(
                    f,
                    "chain {tid} {reason} {count} censored {censored} interrupted {interrupted} migrated {migrated} \
                     total {total_ns} lengths {lengths:?}"
                )?;
            }
            for (comm, Tally { count, total_ns }) in &vcpu.preemptors {
                writeln!(f, "preemptor {tid} {comm} {count} {total_ns}")?;
            }
            for (name, Tally { count, total_ns }) in &vcpu.host_interrupts {
                writeln!(f, "host_interrupt {tid} {count} {total_ns} {name}")?;
            }
            for (vector, Interrupts { stages, merged, posted }) in &vcpu.interrupts {
                writeln!(f, "interrupt {tid} {vector} merged {merged} posted {posted}")?;
                for (stage, Tally { count, total_ns }) in stages {
                    writeln!(f, "stage {tid} {vector} {count} {total_ns} {stage}")?;
                }
            }
        }
        Ok(())
    }
}
