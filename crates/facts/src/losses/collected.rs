//! What one thread lost, as far as the walk has told it.

use super::causes::{BLOCKED, Causes, HANDLING, USERSPACE};
use super::host_initiated::is_host_initiated;
use super::model::{BEGINS, By, Cause, Piece, Pieces, VcpuLosses};
use super::packed::Packed;
use super::shares;
use base::Span;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::Arc;
use walk::events::reasons::{Class, Reason};
use walk::thread::Exit;

/// Shares kept of a thread that has not shown that it runs a vCPU: most threads never do, and one that does shows it as soon as its
/// next pieces are told.
const MOST_UNSURE: usize = 256;

#[derive(Default, Clone)]
pub(super) struct Collected {
    pieces: Vec<Piece>,
    /// From here on they wait for their exit.
    open: usize,
    /// Some of those that wait are losses whatever the exit was.
    open_is_lost: bool,
    /// Interrupts whose intervals are still to come.
    interrupts: VecDeque<(Span, u32)>,
    /// Who ran while the thread waited; empty ones for who took the CPU and did not run.
    shares: Vec<Piece>,
    /// Interrupts that began and took no time, by place of their cause.
    instants: FxHashMap<u32, u64>,
    unknown: Vec<Span>,
    exits: Packed,
    halts: Packed,
    /// When the last exit was, if no entry followed, and until when KVM worked on it then.
    left_ns: Option<(u64, u64)>,
    /// Where the last interval ends.
    end_ns: u64,
    runs_vcpu: bool,
    outside_ns: u64,
    /// What it is blocked for next is that it was stopped.
    stopped: bool,
}

impl Collected {
    /// Nothing yet of what lies in `window`.
    pub(super) fn new(window: Span) -> Self {
        let packed = || Packed::from(window.from_ns);
        Self { exits: packed(), halts: packed(), ..Self::default() }
    }

    /// Intervals were told up to `end_ns`.
    pub(super) fn reaches(&mut self, end_ns: u64) {
        self.end_ns = end_ns;
    }

    /// It has shown that it runs a vCPU.
    #[inline(always)]
    pub(super) fn is_known(&self) -> bool {
        self.runs_vcpu
    }

    /// That its guest runs is news: nothing has shown that it is a vCPU, or pieces wait for an exit that was not seen.
    #[inline(always)]
    pub(super) fn entry_is_news(&self) -> bool {
        !self.runs_vcpu || self.open < self.pieces.len()
    }

    /// The thread runs a vCPU, for all that the trace shows from `from_ns` on. What it did before is not known to be a loss.
    #[inline]
    pub(super) fn runs_vcpu(&mut self, window: Span, from_ns: u64) {
        if !self.runs_vcpu {
            self.runs_vcpu = true;
            let to_ns = from_ns.min(window.to_ns);
            self.outside_ns = to_ns.saturating_sub(window.from_ns);
            self.unknown.push(Span { to_ns, ..window });
        }
    }

    /// The guest runs: no exit is left that pieces could wait for.
    #[inline]
    pub(super) fn enters(&mut self, causes: &mut Causes) {
        if self.open < self.pieces.len() {
            self.settle(None, causes);
        }
    }

    /// A signal or a debugger stopped it: its next blocked interval is about that.
    pub(super) fn stops(&mut self) {
        self.stopped = true;
    }

    /// True once for each stop.
    pub(super) fn takes_stop(&mut self) -> bool {
        std::mem::take(&mut self.stopped)
    }

    pub(super) fn unknown(&mut self, span: Span) {
        if self.runs_vcpu && span.length_ns() > 0 {
            self.unknown.push(span);
        }
    }

    /// It was lost, as far as is known now, because of `cause`.
    #[inline]
    pub(super) fn lost(&mut self, span: Span, cause: u32) {
        if self.runs_vcpu {
            self.open_is_lost = true;
            add(&mut self.pieces, span, cause);
        }
    }

    /// KVM or the VMM worked on an exit, which tells whether that is a loss.
    #[inline(always)]
    pub(super) fn works(&mut self, span: Span, cause: u32) {
        add(&mut self.pieces, span, cause);
    }

    /// An interrupt, whose interval will come if it takes any time.
    pub(super) fn interrupt(&mut self, span: Span, is_instant: bool, cause: u32) {
        if !is_instant {
            self.interrupts.push_back((span, cause));
        } else if cause & BEGINS != 0 {
            *self.instants.entry(cause & !BEGINS).or_default() += 1;
        }
    }

    /// The interval of the first interrupt that waits for it.
    pub(super) fn interrupted(&mut self) {
        if let Some((span, cause)) = self.interrupts.pop_front() {
            self.open_is_lost = true;
            add(&mut self.pieces, span, cause);
        }
    }

    /// Who had the CPU for which the thread waited.
    pub(super) fn share(&mut self, span: Span, cause: u32) {
        if !self.runs_vcpu && self.shares.len() >= MOST_UNSURE {
            self.shares.clear();
        }
        if span.length_ns() > 0 {
            add(&mut self.shares, span, cause);
        } else if cause & BEGINS != 0 {
            self.shares.push(Piece { from_ns: span.from_ns, length_ns: 0, cause });
        }
    }

    /// An exit is over. Nearly always the work on it was what the guest asked for, which is no loss.
    #[inline(always)]
    pub(super) fn exit(&mut self, exit: &Exit, window: Span, causes: &mut Causes) {
        self.left_ns = if exit.cost_ns.is_none() { Some(self.left(exit.at_ns)) } else { None };
        let is_host_initiated = is_host_initiated(exit.reason, exit.detail);
        if is_host_initiated || self.open_is_lost {
            self.settle(Some((exit.reason, is_host_initiated)), causes);
        } else {
            self.pieces.truncate(self.open);
        }
        if exit.cost_ns.is_none() {
            return;
        }
        // All intervals up to the entry have been told.
        let span = Span { from_ns: exit.at_ns.max(window.from_ns), to_ns: self.end_ns.min(window.to_ns) };
        if span.from_ns <= span.to_ns {
            let is_halt = exit.reason.class() == Class::Halt;
            if is_halt { &mut self.halts } else { &mut self.exits }.push(span);
        }
    }

    /// The last exit was then, and the work on it is the guest's time still.
    #[cold]
    fn left(&self, at_ns: u64) -> (u64, u64) {
        let work = self.pieces[self.open..].iter().filter(|piece| piece.cause == HANDLING);
        let until_ns =
            work.fold(at_ns, |until_ns, piece| if piece.from_ns == until_ns { piece.span().to_ns } else { until_ns });
        (at_ns, until_ns)
    }

    /// The trace is over. A thread that `ended` runs no guest behind its last exit: what it waited for there is no guest's loss.
    pub(super) fn end(&mut self, ended: bool, window: Span, causes: &mut Causes) {
        self.enters(causes);
        let Some((left_ns, handled_ns)) = self.left_ns.filter(|_| ended) else { return };
        let last = self.pieces.partition_point(|piece| piece.from_ns < left_ns);
        self.pieces.truncate(last);
        (self.open, self.open_is_lost) = (last, false);
        let behind = |from_ns: u64| Span { from_ns: from_ns.max(window.from_ns), to_ns: self.end_ns.min(window.to_ns) };
        self.outside_ns += behind(handled_ns).length_ns();
        let unknown = behind(left_ns);
        self.unknown.push(unknown);
    }

    /// Forgets what lies before `before_ns`.
    pub(super) fn forget(&mut self, before_ns: u64) {
        let old = self.pieces.partition_point(|piece| piece.span().to_ns <= before_ns);
        self.pieces.drain(..old);
        self.open = self.open.saturating_sub(old);
        self.shares.retain(|share| share.span().to_ns > before_ns);
        self.unknown.retain(|span| span.to_ns > before_ns);
        self.instants.clear();
        (self.exits, self.halts) = (Packed::from(before_ns), Packed::from(before_ns));
    }

    /// What the exit that pieces wait for says of them, if there is one.
    #[inline(never)]
    fn settle(&mut self, exit: Option<(Reason, bool)>, causes: &mut Causes) {
        let (mut kept, mut begins) = (self.open, BEGINS);
        for place in self.open..self.pieces.len() {
            let piece = self.pieces[place];
            let cause = match (piece.cause & !BEGINS, exit) {
                (HANDLING | BLOCKED, None) => {
                    self.unknown.push(piece.span());
                    continue;
                }
                // The guest halted, and its VMM sleeps in place of KVM.
                (BLOCKED, Some((reason, _))) if reason.class() == Class::Halt => continue,
                (USERSPACE, None) | (HANDLING | USERSPACE, Some((_, false))) => continue,
                // An exit counts once, however many pieces the work on it has.
                (open @ (HANDLING | USERSPACE), Some((reason, true))) => {
                    causes.known(open, By::Exit(reason)) | std::mem::take(&mut begins)
                }
                (BLOCKED, Some((reason, _))) => causes.known(BLOCKED, By::Exit(reason)) | piece.cause & BEGINS,
                _ => piece.cause,
            };
            self.pieces[kept] = Piece { cause, ..piece };
            kept += 1;
        }
        self.pieces.truncate(kept);
        (self.open, self.open_is_lost) = (kept, false);
    }

    /// The trace is over: its losses since `origin_ns`, of a thread that turned out to run a vCPU.
    pub(super) fn finish(mut self, span: Span, origin_ns: u64, causes: &Arc<[Cause]>) -> VcpuLosses {
        if !self.runs_vcpu {
            return VcpuLosses::unknown(span, Arc::clone(causes));
        }
        let waits = |place: u32| causes[place as usize].state.is_waiting();
        let instants = &mut self.instants;
        let mut pieces =
            shares::charged(self.pieces, self.shares, waits, |cause| *instants.entry(cause).or_default() += 1);
        pieces.iter_mut().for_each(|piece| piece.from_ns = piece.from_ns.saturating_sub(origin_ns));
        self.unknown.sort_unstable_by_key(|span| span.from_ns);
        let since = |span: &Span| Span {
            from_ns: span.from_ns.saturating_sub(origin_ns),
            to_ns: span.to_ns.saturating_sub(origin_ns),
        };
        VcpuLosses {
            span,
            lost: Pieces { pieces, instants: self.instants.into_iter().collect(), causes: Arc::clone(causes) },
            outside_ns: self.outside_ns,
            unknown: super::Stretches::of(self.unknown.iter().map(since)).spans().to_vec(),
            exits: self.exits.since(origin_ns),
            halts: self.halts.since(origin_ns),
        }
    }
}

/// A stretch as pieces, several if it is too long for one.
#[inline(always)]
fn add(to: &mut Vec<Piece>, span: Span, cause: u32) {
    let length_ns = span.to_ns.saturating_sub(span.from_ns);
    match u32::try_from(length_ns) {
        Ok(0) => {}
        Ok(length_ns) => to.push(Piece { from_ns: span.from_ns, length_ns, cause }),
        Err(_) => add_long(to, span, cause),
    }
}

#[cold]
fn add_long(to: &mut Vec<Piece>, span: Span, cause: u32) {
    let (mut from_ns, mut cause) = (span.from_ns, cause);
    while from_ns < span.to_ns {
        let length_ns = u32::try_from(span.to_ns - from_ns).unwrap_or(u32::MAX);
        to.push(Piece { from_ns, length_ns, cause });
        from_ns += u64::from(length_ns);
        cause &= !BEGINS;
    }
}
