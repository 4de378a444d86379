//! What the flow of a recording consists of.

use super::begin::Begin;
use super::bursts::Bursts;
use super::life::Outside;
use align::Alignment;
use align::symbols::Symbols;
use base::timeline::LaneKind;
use base::{Clock, Histogram, Level, Problem};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use trace::facts::Coverage;
use walk::Waker;
use walk::events::details::Detail;
use walk::events::host_interrupts::{Handlers, HostInterrupt};
use walk::events::reasons::Reason;
use walk::faults::Fault;
use walk::keyed::Keyed;
use walk::samples::Mode;
use walk::stages::sums::{InterruptSums, Vector};
use walk::state::{LEVELS, STATES, State, TracedLevel};
use walk::thread::{Context, Doubts, Handled, Seen};
use walk::vcpu_names;

/// The flow of one recording: one entry per trace.
#[derive(Debug)]
pub struct Flow {
    /// In the order of the manifest.
    pub parts: Vec<PartFlow>,
    /// What emulated the hardware, if something did.
    pub emulated: Option<base::recording::Emulator>,
}

impl Flow {
    /// The machine whose vCPUs are drawn: the outermost one that was recorded.
    pub fn host(&self) -> Level {
        let drawn = self.parts.iter().filter(|part| part.twin_of.is_none() && part.aligned.is_none());
        drawn.map(|part| part.level).min().unwrap_or(Level::L0)
    }
}

#[derive(Debug)]
pub struct PartFlow {
    /// The trace, as the user names it.
    pub path: String,
    /// Name of the machine it was recorded on.
    pub machine: String,
    pub level: Level,
    pub format: trace::Format,
    /// Kernel release, where the trace says it.
    pub kernel: Option<String>,
    pub clock: Clock,
    /// What its scale was fitted to, where the file does not state one.
    pub clock_fitted_to: Option<String>,
    /// First and last event, on the trace's own clock.
    pub span: base::Span,
    /// Where that lies on the recording's axis.
    pub begin: Begin,
    /// Window that was looked at, ns since the trace's first event.
    pub window: base::Span,
    /// Events in the whole trace, by name; only those that occur.
    pub tally: Vec<(String, u64)>,
    pub events: u64,
    /// How halts ended, by thread: how often and for how long while KVM polled, and the same after it slept.
    pub halts: BTreeMap<i32, [(u64, u64); 2]>,
    pub vcpus: Vec<Vcpu>,
    /// vhost workers: name and thread id.
    pub vhost: Vec<(String, i32)>,
    /// Threads beside the vCPUs that work for VMs and were woken.
    pub helpers: Vec<Helper>,
    /// Interrupts accepted for a vCPU number that several VMs have, or that no thread is known for.
    pub ambiguous_accepts: u64,
    pub comms: BTreeMap<i32, String>,
    /// vCPUs without an exit or an entry, which are known from the recording that this one was cut from.
    pub silent_vcpus: u64,
    /// What each level, as it was known while the trace was read, turned out to be, for every thread that runs a vCPU; by
    /// [`TracedLevel::index`].
    pub settled: FxHashMap<i32, [TracedLevel; LEVELS]>,
    /// Tasks that ended while the trace was recorded.
    pub gone: BTreeSet<i32>,
    /// vCPUs that waited for a CPU and tasks that ran meanwhile, as a snapshot of the machine has them.
    pub threads: BTreeMap<i32, host::machine::Thread>,
    /// The CPU quotas that threads of these ran into, by two snapshots.
    pub quotas: BTreeMap<i32, SpentQuota>,
    /// Handlers of the host's interrupts.
    pub handlers: Handlers,
    /// The last snapshot of the machine, where the recording has one.
    pub snapshot: Option<host::Snapshot>,
    pub losses: Vec<Loss>,
    /// Which witnesses the trace has.
    pub seen: Seen,
    pub doubts: Doubts,
    /// `kvm_entry` events with a vCPU number that cannot be one.
    pub stale_entries: u64,
    /// What went wrong with guests, by thread.
    pub faults: Vec<(i32, Fault, walk::faults::Seen)>,
    /// KVM events that no thread was found for.
    pub unattributed: u64,
    /// Units of work that programs have marked as done.
    pub work: BTreeMap<String, f64>,
    /// When the recorder paused, on the trace's own clock.
    pub pauses: Vec<base::Span>,
    /// CPUs of which the trace lacks a part or all.
    pub unseen_cpus: Vec<(u32, Coverage)>,
    /// CPUs of the recorded machine.
    pub cpus: u32,
    /// True if the trace has scheduler switches; else time off the CPU cannot be told.
    pub has_switches: bool,
    pub problems: Vec<Problem>,
    /// The trace on the time line of the machine below, where that was recorded too.
    pub aligned: Option<Aligned>,
    /// Samples of counters by state, where the trace has such.
    pub profile: Vec<Sampled>,
    /// The trace of the same machine that answers instead, so that nothing counts twice.
    pub twin_of: Option<String>,
}

/// The CPU quota of a cgroup that was used up while it was recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct SpentQuota {
    /// The group's path below the cgroup's root.
    pub group: String,
    pub throttled: host::machine::Throttled,
}

/// A thread that works for a VM and runs no vCPU.
#[derive(Debug, Clone)]
pub struct Helper {
    pub kind: LaneKind,
    pub tid: i32,
    pub comm: String,
    pub wake_to_run: Histogram,
}

/// Samples that landed in one state of a vCPU, in one function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sampled {
    /// VM.
    pub vm: String,
    pub vcpu: u32,
    /// The state; its level is counted from the recorded machine.
    pub state: State,
    pub mode: Mode,
    /// The function, or the address in hexadecimal where no symbols tell.
    pub symbol: String,
    pub samples: u64,
    pub period: u64,
}

/// A guest's trace on the time line of the machine below.
#[derive(Debug)]
pub struct Aligned {
    /// How its clock is found, and what that gave.
    pub alignment: Alignment,
    /// VM names of its CPUs below, in the order of `alignment.cpus`.
    pub vms: Vec<String>,
    /// The outermost machine, and where the trace lies on its line, since its first event.
    pub lies: Option<(String, base::Span)>,
    /// The machine below the one below, and the largest error on its time line, in ns: the two alignments joined.
    pub joined: Option<(String, f64)>,
    /// Functions of the guest at which it was left, if its trace carries its symbols.
    pub sites: Vec<Site>,
    /// Names of the guest's functions.
    pub symbols: Option<Symbols>,
}

/// Exits of a guest in one of its functions.
#[derive(Debug, Clone, PartialEq)]
pub struct Site {
    /// VM below.
    pub vm: String,
    /// Why it was left.
    pub reason: Reason,
    /// The function; `None` where the symbols name none.
    pub symbol: Option<String>,
    pub count: u64,
    /// Time until it ran again.
    pub total_ns: f64,
}

#[derive(Debug, Clone)]
pub struct Vcpu {
    /// VM it belongs to.
    pub vm: String,
    /// True if the VM's name was made up from thread names.
    pub vm_assumed: bool,
    /// Its number; the position among its VM's threads where no event told.
    pub vcpu: u32,
    pub tid: i32,
    /// Name of the thread.
    pub comm: String,
    /// Sums of everything that happened to it.
    pub sums: Sums,
    /// Nested guests it ran.
    pub contexts: Vec<Context>,
}

impl Vcpu {
    /// True if the VMM translates the guest's code: no KVM is there that its exits could go to.
    pub fn is_translated(&self) -> bool {
        vcpu_names::translated(&self.comm).is_some()
    }
}

impl PartFlow {
    /// True if guests and KVM run in one another's time, and nothing tells them apart.
    pub fn lacks_exits(&self) -> bool {
        !self.seen.exit && !self.vcpus.iter().all(Vcpu::is_translated)
    }
}

/// Sums over one thread.
#[derive(Debug, Clone)]
pub struct Sums {
    /// Time in each state, by [`State::index`].
    pub states_ns: [u64; STATES],
    pub exits: Keyed<(TracedLevel, Reason), ExitSums>,
    /// Chains by the reason that the guest hypervisor was told.
    pub chains: Keyed<Reason, ChainSums>,
    /// Who ran while the thread was pre-empted; `None`: nobody knows who.
    pub preemptors: BTreeMap<Option<i32>, PreemptSums>,
    /// What of all this is not its guest's.
    pub(crate) outside: Outside,
    /// What the host's interrupts and softirqs took, each by what it was: the states `Irq`, `Softirq` and `Nmi`, whole.
    pub host_interrupts: BTreeMap<HostInterrupt, StretchSums>,
    /// Who made the thread ready, and how long it then took to run.
    pub wakers: BTreeMap<Waker, StretchSums>,
    /// Entries of nested guests, by control block.
    pub(crate) nested_entries: FxHashMap<u64, u64>,
    pub interrupts: Keyed<Vector, InterruptSums>,
    pub wake_to_run: Histogram,
    /// From waking to the guest.
    pub wake_to_entry: Histogram,
}

impl Default for Sums {
    fn default() -> Self {
        Self {
            states_ns: [0; STATES],
            exits: Keyed::default(),
            chains: Keyed::default(),
            preemptors: BTreeMap::new(),
            outside: Outside::default(),
            host_interrupts: BTreeMap::new(),
            wakers: BTreeMap::new(),
            nested_entries: FxHashMap::default(),
            interrupts: Keyed::default(),
            wake_to_run: Histogram::new(),
            wake_to_entry: Histogram::new(),
        }
    }
}

/// Exits of one level and reason.
#[derive(Debug, Clone, Default)]
pub struct ExitSums {
    /// `kvm_exit` records.
    pub count: u64,
    /// Costs of those whose next entry was seen.
    pub cost_ns: Histogram,
    /// Who handled them: kernel, userspace, the guest hypervisor.
    pub handled: [u64; 3],
    /// What they were about: count and cost.
    pub details: Keyed<Detail, (u64, u64)>,
    /// When they were most frequent; counted for PAUSE exits alone.
    pub bursts: Bursts,
}

#[derive(Debug, Clone, Default)]
pub struct ChainSums {
    pub count: u64,
    /// Those whose end was not seen.
    pub censored: u64,
    /// Closed ones whose exits and time are not those of one exit; all that follows is of the others.
    pub disturbed: u64,
    /// Of these, those in which the guest hypervisor halted; in the others its nested guest moved.
    pub interrupted: u64,
    /// Exits per undisturbed chain.
    pub exits: Histogram,
    /// Cost per undisturbed chain.
    pub cost_ns: Histogram,
    /// Of that cost: the guest hypervisor's own code, and L0's VMM; the rest is L0's kernel.
    pub guest_ns: u64,
    /// See `guest_ns`.
    pub userspace_ns: u64,
    /// How often each sequence of exits occurred.
    pub sequences: FxHashMap<Vec<Reason>, u64>,
    /// Exits of undisturbed chains that none of `sequences` stands for, by their reason.
    pub(crate) beside_sequences: Keyed<Reason, u64>,
}

impl ChainSums {
    /// Exits of undisturbed chains, each counted, by their reason; a reason comes up once for each of its places.
    pub fn by_reason(&self) -> impl Iterator<Item = (Reason, u64)> {
        let in_sequences = self.sequences.iter().flat_map(|(exits, count)| exits.iter().map(|exit| (*exit, *count)));
        in_sequences.chain(self.beside_sequences.iter().map(|(exit, count)| (*exit, *count)))
    }
}

/// What one task took from a thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PreemptSums {
    /// How often it was the one that took the CPU.
    pub count: u64,
    /// Time it ran while the thread waited.
    pub total_ns: u64,
    pub max_ns: u64,
    /// The CPU both wanted, the last time.
    pub cpu: u32,
}

/// Stretches of a thread's time that have one cause.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StretchSums {
    pub count: u64,
    pub total_ns: u64,
    pub max_ns: u64,
}

impl StretchSums {
    /// One more; `begins` if it is not the rest of one that was counted.
    pub fn add(&mut self, length_ns: u64, begins: bool) {
        self.count += u64::from(begins);
        self.total_ns += length_ns;
        self.max_ns = self.max_ns.max(length_ns);
    }
}

/// Something that is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loss {
    pub cpu: Option<u32>,
    /// `overrun`, `missed`, `salvaged`, `level_conflict`, ...
    pub kind: String,
    /// How many, 0 if not known.
    pub count: u64,
    /// Bytes, 0 if not known.
    pub bytes: u64,
}

impl Sums {
    /// Time in `state`.
    pub fn ns(&self, state: State) -> u64 {
        self.states_ns[state.index()]
    }

    /// Time in all states for which `wanted` holds.
    pub fn ns_where(&self, wanted: impl Fn(State) -> bool) -> u64 {
        let states = self.states_ns.iter().enumerate();
        states.filter(|(index, _)| wanted(State::of_index(*index))).map(|(_, ns)| ns).sum()
    }

    /// Time in all states.
    pub fn wall_ns(&self) -> u64 {
        self.states_ns.iter().sum()
    }

    pub fn exit_count(&self) -> u64 {
        self.exits.values().map(|exits| exits.count).sum()
    }

    /// Settles all distributions, which many tables will read.
    pub fn settle(&mut self) {
        let Self { exits, chains, interrupts, wake_to_run, wake_to_entry, .. } = self;
        let exits = exits.values_mut().map(|sums| &mut sums.cost_ns);
        let chains = chains.values_mut().flat_map(|sums| [&mut sums.exits, &mut sums.cost_ns]);
        let interrupts = interrupts.values_mut().flat_map(InterruptSums::distributions);
        let wakings = [wake_to_run, wake_to_entry];
        exits.chain(chains).chain(interrupts).chain(wakings).for_each(Histogram::settle);
    }

    /// Moves everything of unknown level `from` to level `to`.
    pub(crate) fn relevel(&mut self, from: TracedLevel, to: TracedLevel) {
        for (old, new) in [(State::Guest(from), State::Guest(to)), (State::Handling(from), State::Handling(to))] {
            let moved_ns = std::mem::take(&mut self.states_ns[old.index()]);
            self.states_ns[new.index()] += moved_ns;
        }
        let moved = |(level, reason)| (if level == from { to } else { level }, reason);
        self.exits = std::mem::take(&mut self.exits).rekeyed(moved, ExitSums::merge);
    }
}

impl ExitSums {
    fn merge(&mut self, other: ExitSums) {
        self.count += other.count;
        self.cost_ns.merge(&other.cost_ns);
        self.bursts.merge(&other.bursts);
        for (sum, more) in self.handled.iter_mut().zip(other.handled) {
            *sum += more;
        }
        for (detail, (count, total_ns)) in other.details.iter() {
            let sums = self.details.at(*detail);
            sums.0 += count;
            sums.1 += total_ns;
        }
    }

    /// Position of a handler in `handled`.
    pub fn handler(handled: Handled) -> usize {
        match handled {
            Handled::Kernel => 0,
            Handled::Userspace => 1,
            Handled::Reflected => 2,
        }
    }
}
