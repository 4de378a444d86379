//! What the vCPUs of a trace lost, in types.

use super::packed::{Packed, Sums};
use super::stretches::{HELD, InAll, Stretches, Worst, sup_of_many};
use crate::ledger::model::{PartFlow, StretchSums};
use base::Span;
use std::collections::BTreeMap;
use std::sync::Arc;
use walk::events::host_interrupts::{Handlers, HostInterrupt};
use walk::events::reasons::Reason;

#[derive(Debug)]
pub struct PartLosses {
    /// In the order of [`PartFlow::vcpus`].
    pub vcpus: Vec<VcpuLosses>,
}

/// The losses of one vCPU; times are since the first event of its trace.
#[derive(Debug)]
pub struct VcpuLosses {
    /// What was looked at: the window of the trace.
    pub span: Span,
    /// What the host took: involuntary losses.
    pub lost: Pieces,
    /// Where nothing shows whether time was lost, in order.
    pub unknown: Vec<Span>,
    /// How much of that came before anything showed that the thread runs a guest, or after the last exit of a thread that ended.
    pub outside_ns: u64,
    /// From each exit to the next entry, without those of a guest that had halted.
    pub(super) exits: Packed,
    pub(super) halts: Packed,
}

impl VcpuLosses {
    /// Takes out the work on exits for `reason`, which the host did not cause after all.
    pub(super) fn forgive(&mut self, reason: Reason) {
        let causes = Arc::clone(&self.lost.causes);
        self.lost.pieces.retain(|piece| causes[piece.place()].by != By::Exit(reason));
    }
}

/// What counts as lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Definition {
    /// What the host took without being asked: preemption, its interrupts, waiting for a CPU, sleeping, and work on exits that
    /// it caused itself. Budgets mean this.
    Involuntary,
    /// From every exit to the next entry, as tools measure it that see exits alone.
    ExitToEntry {
        /// Also while the guest had halted.
        include_halts: bool,
    },
}

/// Pieces of lost time in order, none of which overlap.
#[derive(Debug, Clone)]
pub struct Pieces {
    pub(super) pieces: Vec<Piece>,
    /// What began and took no time, by place of its cause.
    pub(super) instants: Vec<(u32, u64)>,
    /// One list for all vCPUs of a trace.
    pub(super) causes: Arc<[Cause]>,
}

/// A piece in 16 bytes: a recording may have millions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    pub from_ns: u64,
    pub length_ns: u32,
    /// Its place among the causes; [`BEGINS`] where it is not the rest of what was interrupted.
    pub cause: u32,
}

/// The piece begins what it is a piece of.
pub(super) const BEGINS: u32 = 1 << 31;

impl Piece {
    pub(super) fn span(self) -> Span {
        Span { from_ns: self.from_ns, to_ns: self.from_ns + u64::from(self.length_ns) }
    }

    pub(super) fn place(self) -> usize {
        (self.cause & !BEGINS) as usize
    }

    pub(super) fn begins(self) -> bool {
        self.cause & BEGINS != 0
    }
}

/// A piece with its cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lost {
    pub span: Span,
    pub cause: Cause,
}

/// Why time was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cause {
    pub state: LostIn,
    /// Who had its CPU, or what its hypervisor worked on.
    pub by: By,
}

base::named! {
    /// The states of the ledger in which time is lost.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum LostIn {
        /// Runnable, another task ran.
        Preempted = "preempted",
        /// The host served an interrupt.
        Irq = "irq",
        /// The host served a softirq.
        Softirq = "softirq",
        /// The host served an NMI.
        Nmi = "nmi",
        /// Woken, not yet running.
        WakeDelay = "wake_delay",
        /// Asleep, and the guest had not halted.
        Blocked = "blocked",
        /// KVM worked on an exit that the host caused.
        Handling = "handling",
        /// The VMM worked on one.
        Userspace = "userspace",
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum By {
    /// A task by its thread id; 0 is the idle task.
    Task(i32),
    Interrupt(HostInterrupt),
    Exit(Reason),
    /// Nobody: the CPU was idle, and the scheduler did not let the thread run there. A CPU quota, or the limit of real-time
    /// threads.
    Throttled,
    /// A signal or a debugger, which stopped the thread.
    Stopped,
    /// The trace does not show it.
    Unknown,
}

impl LostIn {
    /// True if the thread waited for a CPU that somebody else had.
    pub(super) fn is_waiting(self) -> bool {
        matches!(self, LostIn::Preempted | LostIn::WakeDelay)
    }
}

impl By {
    /// The name of the task, interrupt, softirq, exit reason or limit in the trace that `part` is the ledger of.
    pub fn name(self, part: &PartFlow) -> String {
        self.name_among(&part.comms, &part.handlers)
    }

    /// The same by the names of threads and interrupts.
    pub fn name_among(self, comms: &BTreeMap<i32, String>, handlers: &Handlers) -> String {
        match self {
            By::Task(0) => "idle".into(),
            By::Task(tid) => comms.get(&tid).map_or_else(|| "unknown".into(), String::clone),
            By::Interrupt(by) => handlers.name(by).unwrap_or("unknown").to_owned(),
            By::Exit(reason) => reason.name(),
            By::Throttled => "throttled".into(),
            By::Stopped => "stopped".into(),
            By::Unknown => "unknown".into(),
        }
    }

    /// The thread of a task.
    pub fn tid(self) -> Option<i32> {
        match self {
            By::Task(tid) => Some(tid),
            By::Interrupt(_) | By::Exit(_) | By::Throttled | By::Stopped | By::Unknown => None,
        }
    }
}

impl Definition {
    /// As budgets and tables name it.
    pub fn name(self) -> &'static str {
        match self {
            Definition::Involuntary => "involuntary",
            Definition::ExitToEntry { .. } => "exit-to-entry",
        }
    }
}

impl Pieces {
    pub fn iter(&self) -> impl Iterator<Item = Lost> {
        self.pieces.iter().map(|piece| Lost { span: piece.span(), cause: self.causes[piece.place()] })
    }

    /// How much was lost.
    pub fn total_ns(&self) -> u64 {
        self.pieces.iter().map(|piece| u64::from(piece.length_ns)).sum()
    }

    /// What took the time in `span`, most first.
    pub fn causes_within(&self, span: Span) -> Vec<(Cause, u64)> {
        let first = self.pieces.partition_point(|piece| piece.span().to_ns <= span.from_ns);
        let inside = self.pieces[first..].iter().take_while(|piece| piece.from_ns < span.to_ns);
        let mut sums: Vec<(Cause, u64)> = Vec::new();
        for piece in inside {
            let Span { from_ns, to_ns } = piece.span();
            let ns = to_ns.min(span.to_ns) - from_ns.max(span.from_ns);
            let cause = self.causes[piece.place()];
            match sums.iter_mut().find(|(known, _)| *known == cause) {
                Some((_, sum)) => *sum += ns,
                None => sums.push((cause, ns)),
            }
        }
        sums.sort_by_key(|(cause, ns)| (std::cmp::Reverse(*ns), *cause));
        sums
    }

    /// How often each cause began, how much it took and its longest piece; most first.
    pub fn culprits(&self) -> Vec<(Cause, StretchSums)> {
        let mut sums = vec![StretchSums::default(); self.causes.len()];
        let (mut whole_ns, mut goes_on) = (0, false);
        for piece in &self.pieces {
            let length_ns = u64::from(piece.length_ns);
            whole_ns = if goes_on && !piece.begins() { whole_ns + length_ns } else { length_ns };
            // What is longer than a piece can be goes on in the next one.
            goes_on = piece.length_ns == u32::MAX;
            let sum = &mut sums[piece.place()];
            sum.count += u64::from(piece.begins());
            sum.total_ns += length_ns;
            sum.max_ns = sum.max_ns.max(whole_ns);
        }
        self.instants.iter().for_each(|(place, count)| sums[*place as usize].count += count);
        let known = self.causes.iter().copied().zip(sums);
        let mut known: Vec<_> = known.filter(|(_, sum)| sum.count > 0 || sum.total_ns > 0).collect();
        known.sort_by_key(|(cause, sum)| (std::cmp::Reverse(sum.total_ns), *cause));
        known
    }
}

impl VcpuLosses {
    /// Those of a vCPU of which the trace shows nothing.
    pub(super) fn unknown(span: Span, causes: Arc<[Cause]>) -> Self {
        let lost = Pieces { pieces: Vec::new(), instants: Vec::new(), causes };
        Self {
            span,
            lost,
            unknown: vec![span],
            outside_ns: span.length_ns(),
            exits: Packed::default(),
            halts: Packed::default(),
        }
    }

    pub fn stretches(&self, definition: Definition) -> Stretches {
        match definition {
            Definition::Involuntary => Stretches::of(self.lost.pieces.iter().map(|piece| piece.span())),
            Definition::ExitToEntry { include_halts: false } => Stretches::of(self.exits.iter()),
            Definition::ExitToEntry { include_halts: true } => {
                Stretches::of(self.exits.iter()).or(&Stretches::of(self.halts.iter()))
            }
        }
    }

    /// What is lost in all from exits to entries. Exits are so many that no stretches are made of them where sums will do.
    pub fn exits_in_all(&self, include_halts: bool, window_ns: u64) -> InAll {
        let stretches = || self.stretches(Definition::ExitToEntry { include_halts });
        if include_halts {
            return stretches().in_all(self.span, window_ns);
        }
        let Sums { total_ns, longest_ns, first_long_ns } = self.exits.sums(window_ns);
        // No window loses more than one that is lost whole.
        let lost_whole = first_long_ns.map(|at_ns| Worst { at_ns, loss_ns: window_ns });
        let worst = lost_whole.or_else(|| sup_of_many(self.exits.iter(), HELD, self.span, window_ns));
        InAll { total_ns, longest_ns, worst }
    }

    /// The same if all that is unknown was lost as well.
    pub fn at_most(&self, lost: &Stretches) -> Stretches {
        lost.or(&Stretches::of(self.unknown.iter().copied()))
    }

    /// How many exits lie behind a definition that counts from exit to entry.
    pub fn exit_count(&self, include_halts: bool) -> u64 {
        self.exits.count() + if include_halts { self.halts.count() } else { 0 }
    }
}
