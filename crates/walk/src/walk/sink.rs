//! Who hears what a walk finds out.

use crate::events::host_interrupts::HostInterrupt;
use crate::stages::Told;
use crate::state::State;
use crate::thread::{Chain, Exit};

/// Who hears what the walk finds out. Threads are numbered in the order in which they are met.
pub trait Sink {
    /// Thread `thread` was in `state` from `from_ns` to `to_ns`. Pieces come in order and without gaps.
    fn interval(&mut self, thread: usize, state: State, from_ns: u64, to_ns: u64);
    fn exit(&mut self, thread: usize, exit: &Exit);
    /// A chain is over, or censored.
    fn chain(&mut self, thread: usize, chain: &Chain);
    /// While `thread` was pre-empted, a task ran on its CPU.
    fn preempted(&mut self, thread: usize, by: &Preemptor, from_ns: u64, to_ns: u64);
    /// While `thread` had its CPU, an interrupt or softirq ran there: a piece of the states `Irq`, `Softirq` and `Nmi` each,
    /// and an empty one for what takes no time.
    fn interrupted(&mut self, _thread: usize, _by: &Interruption, _from_ns: u64, _to_ns: u64) {}
    /// KVM works for the guest of `thread`, of a trace that shows neither entries nor exits.
    fn serves(&mut self, _thread: usize, _at_ns: u64) {}
    /// From `at_ns` on task `tid` has `cpu`; `None` if from then on nothing tells which one has it.
    fn has_cpu(&mut self, _cpu: usize, _tid: Option<i32>, _at_ns: u64) {}
    /// The guest hypervisor on `thread` asked to enter the nested guest behind `vmcb`.
    fn nested_entry(&mut self, _thread: usize, _vmcb: u64, _at_ns: u64) {}
    /// Something of a virtual interrupt to the vCPU of `thread`.
    fn interrupt(&mut self, _thread: usize, _vector: u8, _told: Told) {}
    /// `thread` was woken and waits for a CPU since then; `None`: what was said of that is not known to hold any longer.
    fn waits(&mut self, _thread: usize, _since_ns: Option<u64>) {}
    /// A thread woken by `by` got `cpu`, if it is known which.
    fn ran_after_waking(&mut self, _thread: usize, _by: Waker, _cpu: Option<usize>, _woken_ns: u64, _ran_ns: u64) {}
    /// A woken thread entered its guest.
    fn entered_after_waking(&mut self, _thread: usize, _woken_ns: u64, _entered_ns: u64) {}
    /// A signal or a debugger took `thread` off its CPU just now: it is blocked for that reason.
    fn stopped(&mut self, _thread: usize) {}
}

/// Nobody.
impl Sink for () {
    fn interval(&mut self, _: usize, _: State, _: u64, _: u64) {}
    fn exit(&mut self, _: usize, _: &Exit) {}
    fn chain(&mut self, _: usize, _: &Chain) {}
    fn preempted(&mut self, _: usize, _: &Preemptor, _: u64, _: u64) {}
}

/// Both hear everything, the first one first.
impl<A: Sink, B: Sink> Sink for (A, B) {
    #[inline(always)]
    fn interval(&mut self, thread: usize, state: State, from_ns: u64, to_ns: u64) {
        self.0.interval(thread, state, from_ns, to_ns);
        self.1.interval(thread, state, from_ns, to_ns);
    }

    fn exit(&mut self, thread: usize, exit: &Exit) {
        self.0.exit(thread, exit);
        self.1.exit(thread, exit);
    }

    fn chain(&mut self, thread: usize, chain: &Chain) {
        self.0.chain(thread, chain);
        self.1.chain(thread, chain);
    }

    fn preempted(&mut self, thread: usize, by: &Preemptor, from_ns: u64, to_ns: u64) {
        self.0.preempted(thread, by, from_ns, to_ns);
        self.1.preempted(thread, by, from_ns, to_ns);
    }

    fn interrupted(&mut self, thread: usize, by: &Interruption, from_ns: u64, to_ns: u64) {
        self.0.interrupted(thread, by, from_ns, to_ns);
        self.1.interrupted(thread, by, from_ns, to_ns);
    }

    fn serves(&mut self, thread: usize, at_ns: u64) {
        self.0.serves(thread, at_ns);
        self.1.serves(thread, at_ns);
    }

    fn has_cpu(&mut self, cpu: usize, tid: Option<i32>, at_ns: u64) {
        self.0.has_cpu(cpu, tid, at_ns);
        self.1.has_cpu(cpu, tid, at_ns);
    }

    fn nested_entry(&mut self, thread: usize, vmcb: u64, at_ns: u64) {
        self.0.nested_entry(thread, vmcb, at_ns);
        self.1.nested_entry(thread, vmcb, at_ns);
    }

    fn interrupt(&mut self, thread: usize, vector: u8, told: Told) {
        self.0.interrupt(thread, vector, told);
        self.1.interrupt(thread, vector, told);
    }

    fn waits(&mut self, thread: usize, since_ns: Option<u64>) {
        self.0.waits(thread, since_ns);
        self.1.waits(thread, since_ns);
    }

    fn ran_after_waking(&mut self, thread: usize, by: Waker, cpu: Option<usize>, woken_ns: u64, ran_ns: u64) {
        self.0.ran_after_waking(thread, by, cpu, woken_ns, ran_ns);
        self.1.ran_after_waking(thread, by, cpu, woken_ns, ran_ns);
    }

    fn entered_after_waking(&mut self, thread: usize, woken_ns: u64, entered_ns: u64) {
        self.0.entered_after_waking(thread, woken_ns, entered_ns);
        self.1.entered_after_waking(thread, woken_ns, entered_ns);
    }

    fn stopped(&mut self, thread: usize) {
        self.0.stopped(thread);
        self.1.stopped(thread);
    }
}

/// Who ran while a thread was pre-empted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preemptor {
    /// Thread id; 0 is the idle task. `None` if a switch that would tell is not in the trace.
    pub tid: Option<i32>,
    /// The CPU that both wanted.
    pub cpu: u32,
    /// True if it was this task that took the CPU, false if it came there later.
    pub took: bool,
}

/// What ran instead of a thread that had the CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interruption {
    pub by: HostInterrupt,
    /// True if it begins with this piece, false if it goes on after another one.
    pub begins: bool,
}

/// Who made a thread ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Waker {
    /// A task by its thread id, in its own time; 0 is the idle task. Also one that was interrupted, where interrupts are not
    /// recorded.
    Task(i32),
    /// An interrupt or softirq, whatever task it interrupted.
    Interrupt(HostInterrupt),
    /// The trace does not tell.
    Unknown,
}
