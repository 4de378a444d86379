//! One vCPU thread: which state is it in, and at which level did its guest run?
//!
//! Two witnesses tell the level of every exit. *Forward* (W1): `lvl` is carried from entry requests and injections.
//! *Backward* (W2): the next positional event after an exit is `kvm_nested_vmexit`, or it was the guest of L0 itself.
//! ```text
//! kvm_entry -------- kvm_exit ------ next positional event ------ kvm_entry
//!    |  Guest(?)         |  Handling(?)     |  both get their level     |
//!    '---------- tail: pieces whose level is open --------'
//! ```
//! Rules R1-R3 and T1-T20, in the order in which they stand in docs/flow.md; each is named where it is carried out.
//! Kernel facts: arch/x86/kvm/{x86.c, vmx/nested.c, svm/nested.c, trace.h}, Linux 3.10 to 6.18.

use super::details::Detail;
use super::reasons::{Class, Reason};
use super::state::{Lv, State};
use super::walk::Sink;
use smallvec::SmallVec;

/// What the whole recording has shown so far; it decides which witness can be heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Seen {
    /// A `kvm_nested_vmexit`: W2 can be heard.
    pub nested_vmexit: bool,
    /// An injection: W1 can be heard.
    pub inject: bool,
    /// A nested entry event: an entry without one is not nested.
    pub nested_entry: bool,
    /// An exit by an instruction that only hypervisors execute.
    pub virtualization: bool,
}

impl Seen {
    /// True if nothing nested was seen at all.
    pub fn nothing_nested(&self) -> bool {
        !(self.nested_vmexit || self.inject || self.nested_entry || self.virtualization)
    }
}

/// Doubts that were met, by kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Doubts {
    /// The two witnesses disagreed.
    pub level_conflicts: u64,
    /// A nested entry was refused.
    pub refused_entries: u64,
    /// Two `kvm_entry` in a row.
    pub entry_entry: u64,
    /// `kvm_exit` without a `kvm_entry` before it.
    pub unseen_entries: u64,
    /// A thread's clock stepped back.
    pub clock_skew: u64,
    /// A nested entry without VMRUN or VMRESUME: state was restored.
    pub restored: u64,
    /// An event of a thread that was not on a CPU.
    pub unseen_switches: u64,
}

/// What the thread does when it is on a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Unknown,
    Guest,
    Kvm,
    User,
}

/// Why it is not on a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Off {
    /// Ready, but another task runs.
    Preempted,
    /// Its guest halted.
    Halted,
    /// Asleep.
    Blocked,
    /// Woken, not yet running.
    Waking,
}

/// A nested entry that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pend {
    None,
    /// By an event; where the nested guest will start, if it says.
    Asked(Option<u64>),
    /// By the exit alone: kernels before 6.1 on VMX tell no more.
    Guessed,
}

/// A finished exit.
#[derive(Debug, Clone, Copy)]
pub struct Exit {
    /// When the guest stopped.
    pub at_ns: u64,
    /// Why.
    pub reason: Reason,
    /// Which guest.
    pub level: Lv,
    /// Where it stopped.
    pub rip: u64,
    /// What it was about.
    pub detail: Detail,
    /// Until the next entry, without time off the CPU; `None` if that entry was not seen.
    pub cost_ns: Option<u64>,
    /// Who handled it.
    pub handled: Handled,
}

/// Who handled an exit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Handled {
    /// KVM alone.
    Kernel,
    /// The VMM, after KVM.
    Userspace,
    /// The guest hypervisor.
    Reflected,
}

/// What became of one reflected exit of a nested guest.
#[derive(Debug, Clone)]
pub struct Chain {
    /// Why the nested guest stopped, as its hypervisor is told.
    pub reason: Reason,
    /// When it stopped.
    pub start_ns: u64,
    /// Exits of the guest hypervisor until the nested guest ran again, the last entry request included.
    pub exits: u64,
    /// The first of them in order, up to [`KEPT`].
    pub sequence: SmallVec<[Reason; 16]>,
    /// Until the nested guest ran again, without time off the CPU; `None` for a censored chain.
    pub cost_ns: Option<u64>,
    /// The guest hypervisor halted inside.
    pub interrupted: bool,
    /// Another nested guest ran next, or the same one on another thread first.
    pub migrated: bool,
    /// Time the guest hypervisor's own code ran.
    pub guest_ns: u64,
    /// Time L0's VMM ran.
    pub userspace_ns: u64,
    off_before_ns: u64,
    vmcb: Option<u64>,
}

/// How many exits of a chain are kept by name.
pub const KEPT: usize = 96;

#[derive(Debug, Clone, Copy)]
struct OpenExit {
    exit: Exit,
    off_before_ns: u64,
    /// No positional event has followed yet.
    unresolved: bool,
}

/// A piece of time whose level may be open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Label {
    Guest,
    Handling,
    Plain(State),
}

/// A nested guest as its control block names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Context {
    /// Address of vmcb12 or vmcs12 in the guest hypervisor's memory.
    pub vmcb: u64,
    /// 2 for a guest of L1, 3 for a guest of that, ...
    pub depth: u8,
    /// Entries seen.
    pub entries: u64,
}

/// The state machine of one thread.
#[derive(Debug)]
pub struct Thread {
    /// Its thread id.
    pub tid: i32,
    /// True from its first KVM event on.
    pub is_vcpu: bool,
    /// Number of its vCPU, where an event told.
    pub vcpu_id: Option<u32>,
    /// Time of its first event.
    pub first_ns: u64,
    /// True if its first nested sign was an entry request, false if it was an exit; `None` without any.
    pub first_nested_sign: Option<bool>,
    /// Nested guests it ran.
    pub contexts: Vec<Context>,
    /// When it was last made ready, until it enters a guest.
    pub woken_ns: Option<u64>,
    /// CPU on which it waits, pre-empted.
    pub waits_on: Option<usize>,
    mode: Mode,
    off: Option<Off>,
    /// Start of the open piece.
    since_ns: u64,
    /// Time of its last event.
    last_ns: u64,
    irq: u32,
    softirq: u32,
    /// The guest has stopped, its `kvm_exit` has not come yet (R3).
    exit_pending: bool,
    lvl: Lv,
    pend: Pend,
    tail: Vec<(Label, u64, u64)>,
    /// Level of Guest and Handling pieces, once known.
    settled: Option<Lv>,
    xit: Option<OpenExit>,
    last_exit: Option<(Reason, u64)>,
    /// Time off the CPU so far.
    off_ns: u64,
    guest1_ns: u64,
    user_ns: u64,
    chain: Option<Box<Chain>>,
    context: Option<usize>,
    /// The nested guest whose entry request was reflected, and so will have a guest of its own.
    parent: Option<usize>,
    /// A gap in which it may have run unseen.
    doubt: Option<(u64, u64)>,
}

/// Positional events: those that resolve an open exit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Position {
    /// `kvm_entry`, `kvm_exit`, `kvm_userspace_exit`, `kvm_nested_vmenter`.
    Other,
    /// `kvm_nested_vmexit`.
    NestedVmexit,
    /// `kvm_nested_vmexit_inject`.
    Inject,
}

impl Thread {
    /// A thread first seen at `now_ns`; what passed since the trace's start at `origin_ns` is unknown.
    pub fn new(tid: i32, origin_ns: u64, now_ns: u64) -> Self {
        Self {
            tid,
            is_vcpu: false,
            vcpu_id: None,
            first_ns: now_ns,
            first_nested_sign: None,
            contexts: Vec::new(),
            woken_ns: None,
            waits_on: None,
            mode: Mode::Unknown,
            off: None,
            since_ns: origin_ns.min(now_ns),
            last_ns: now_ns,
            irq: 0,
            softirq: 0,
            exit_pending: false,
            lvl: Lv::Early,
            pend: Pend::None,
            tail: Vec::new(),
            settled: None,
            xit: None,
            last_exit: None,
            off_ns: 0,
            guest1_ns: 0,
            user_ns: 0,
            chain: None,
            context: None,
            parent: None,
            doubt: None,
        }
    }

    /// Where it is off the CPU, if it is.
    pub fn off(&self) -> Option<Off> {
        self.off
    }

    fn label(&self) -> Label {
        let state = match (self.off, self.mode) {
            (Some(Off::Preempted), _) => State::Preempted,
            (Some(Off::Halted), _) => State::Halted,
            (Some(Off::Blocked), _) => State::Blocked,
            (Some(Off::Waking), _) => State::WakeDelay,
            (None, Mode::Unknown) => State::Unknown,
            (None, _) if self.irq > 0 => State::Irq,
            (None, _) if self.softirq > 0 => State::Softirq,
            (None, Mode::User) => State::Userspace,
            (None, Mode::Guest) => return Label::Guest,
            (None, Mode::Kvm) => return Label::Handling,
        };
        Label::Plain(state)
    }

    /// Ends the open piece at `now_ns`, and returns the time to use: never before the piece's start.
    fn close(&mut self, now_ns: u64, doubts: &mut Doubts, sink: &mut impl Sink, me: usize) -> u64 {
        let now_ns = if now_ns < self.since_ns {
            doubts.clock_skew += 1;
            self.since_ns
        } else {
            now_ns
        };
        let label = self.label();
        self.piece(label, now_ns, sink, me);
        self.last_ns = now_ns;
        now_ns
    }

    /// Ends the open piece at `to_ns` as `label`.
    fn piece(&mut self, label: Label, to_ns: u64, sink: &mut impl Sink, me: usize) {
        let from_ns = self.since_ns;
        if to_ns == from_ns {
            return;
        }
        self.since_ns = to_ns;
        if let Label::Plain(state) = label {
            if state.is_off() {
                self.off_ns += to_ns - from_ns;
            } else if state == State::Userspace {
                self.user_ns += to_ns - from_ns;
            }
        }
        match (label, self.settled) {
            (Label::Plain(state), _) if self.tail.is_empty() => sink.interval(me, state, from_ns, to_ns),
            (Label::Guest, Some(level)) if self.tail.is_empty() => {
                self.count_guest(level, to_ns - from_ns);
                sink.interval(me, State::Guest(level), from_ns, to_ns);
            }
            (Label::Handling, Some(level)) if self.tail.is_empty() => {
                sink.interval(me, State::Handling(level), from_ns, to_ns);
            }
            _ => self.tail.push((label, from_ns, to_ns)),
        }
    }

    fn count_guest(&mut self, level: Lv, length_ns: u64) {
        if level == Lv::At(1) {
            self.guest1_ns += length_ns;
        }
    }

    /// Gives all open pieces their level.
    fn flush(&mut self, level: Lv, sink: &mut impl Sink, me: usize) {
        self.settled = Some(level);
        let mut tail = std::mem::take(&mut self.tail);
        for (label, from_ns, to_ns) in tail.drain(..) {
            let state = match label {
                Label::Guest => State::Guest(level),
                Label::Handling => State::Handling(level),
                Label::Plain(state) => state,
            };
            if label == Label::Guest {
                self.count_guest(level, to_ns - from_ns);
            }
            sink.interval(me, state, from_ns, to_ns);
        }
        self.tail = tail;
    }

    /// R1 and R2: what the next positional event says of the open exit's level.
    fn resolve(&mut self, position: Position, seen: &Seen, doubts: &mut Doubts, sink: &mut impl Sink, me: usize) {
        let nested = Lv::at(self.context.map_or(2, |context| self.contexts[context].depth));
        let Some(open) = self.xit.as_mut().filter(|open| open.unresolved) else { return };
        open.unresolved = false;
        let w1 = open.exit.level;
        let level = match position {
            Position::NestedVmexit => nested,
            Position::Inject if w1.is_open() => nested,
            Position::Other if seen.nested_vmexit && !open.exit.reason.hides_its_level() => Lv::At(1),
            _ => w1,
        };
        let contradicts = match (w1, level) {
            (Lv::At(1), Lv::At(depth)) => depth > 1,
            (Lv::At(_), Lv::At(1)) => true,
            _ => false,
        };
        if contradicts && seen.inject {
            doubts.level_conflicts += 1;
        }
        open.exit.level = level;
        let reason = open.exit.reason;
        if let Lv::At(depth) = level {
            self.lvl = level;
            if depth == 1 {
                self.count_in_chain(reason);
            }
        }
        if reason.class() != Class::Halt {
            self.flush(level, sink, me);
        }
    }

    fn count_in_chain(&mut self, reason: Reason) {
        let Some(chain) = &mut self.chain else { return };
        chain.exits += 1;
        chain.interrupted |= reason.class() == Class::Halt;
        if chain.sequence.len() < KEPT {
            chain.sequence.push(reason);
        }
    }

    /// Everything a KVM event of this thread starts with: it is on a CPU, and the open piece ends.
    pub fn arrive(&mut self, now_ns: u64, doubts: &mut Doubts, sink: &mut impl Sink, me: usize) -> u64 {
        if self.off.is_some() {
            // Its switch-in was not seen; nothing tells how long it has been running.
            doubts.unseen_switches += 1;
            self.forget(self.doubt.map_or(self.last_ns, |(from, _)| from), doubts, sink, me);
            self.off = None;
        }
        self.is_vcpu = true;
        self.close(now_ns, doubts, sink, me)
    }

    /// `kvm_entry` (T1 to T5).
    pub fn entry(&mut self, now_ns: u64, rip: Option<u64>, cx: &mut Cx<'_, impl Sink>) {
        let now_ns = self.arrive(now_ns, cx.doubts, cx.sink, cx.me);
        self.resolve(Position::Other, cx.seen, cx.doubts, cx.sink, cx.me);
        if self.mode == Mode::Guest {
            cx.doubts.entry_entry += 1; // T4: the earlier interval stands
            self.flush(self.lvl, cx.sink, cx.me);
        }
        self.finish_exit(Some(now_ns), cx);
        let nested = Lv::at(self.context.map_or(2, |context| self.contexts[context].depth));
        match (self.pend, rip) {
            (Pend::Asked(Some(nested_rip)), Some(rip)) if rip != nested_rip => {
                cx.doubts.refused_entries += 1; // T1
                self.lvl = Lv::At(1);
            }
            (Pend::Asked(_), _) => self.lvl = nested, // T1, T2
            (Pend::Guessed, Some(rip)) if self.last_exit.is_some_and(|(_, at)| rip == at.wrapping_add(3)) => {
                cx.doubts.refused_entries += 1; // T3
                self.lvl = Lv::At(1);
            }
            (Pend::Guessed, _) if cx.seen.nested_entry => self.lvl = Lv::At(1), // no request was seen: refused
            (Pend::Guessed, _) => self.lvl = nested,                            // T3
            (Pend::None, _) => {}
        }
        self.pend = Pend::None;
        self.mode = Mode::Guest;
        self.exit_pending = false;
        self.settled = None;
        if matches!(self.lvl, Lv::At(depth) if depth > 1) {
            self.close_chain(now_ns, cx);
        }
        if let Some(woken_ns) = self.woken_ns.take() {
            cx.sink.entered_after_waking(cx.me, woken_ns, now_ns);
        }
    }

    /// `kvm_exit` (T6, T7).
    pub fn exit(&mut self, now_ns: u64, reason: Reason, rip: u64, detail: Detail, cx: &mut Cx<'_, impl Sink>) {
        let known = self.off.is_none() && (self.mode == Mode::Guest || self.exit_pending);
        if !known && self.off.is_none() && self.mode != Mode::Unknown {
            // T7: an entry was not seen, so nothing tells when the guest began to run.
            cx.doubts.unseen_entries += 1;
            self.unknown_since_last(now_ns, cx);
        }
        let now_ns = self.arrive(now_ns, cx.doubts, cx.sink, cx.me);
        self.resolve(Position::Other, cx.seen, cx.doubts, cx.sink, cx.me);
        self.finish_exit(None, cx);
        if !known {
            self.flush(self.settled.unwrap_or(self.lvl), cx.sink, cx.me);
            self.lvl = if self.lvl == Lv::Early { Lv::Early } else { Lv::Lost };
            self.settled = None;
        }
        let exit =
            Exit { at_ns: now_ns, reason, level: self.lvl, rip, detail, cost_ns: None, handled: Handled::Kernel };
        self.xit = Some(OpenExit { exit, off_before_ns: self.off_ns, unresolved: true });
        self.last_exit = Some((reason, rip));
        self.mode = Mode::Kvm;
        self.exit_pending = false;
        match reason.class() {
            Class::EntryRequest => {
                self.first_nested_sign.get_or_insert(true);
                let from_l1 = !matches!(self.lvl, Lv::At(depth) if depth > 1);
                if from_l1 && !cx.seen.nested_entry {
                    self.pend = Pend::Guessed;
                }
            }
            Class::Virtualization | Class::VmcsAccess => {
                self.first_nested_sign.get_or_insert(true);
            }
            _ => {}
        }
    }

    /// `kvm_nested_vmexit` (T8).
    pub fn nested_vmexit(&mut self, now_ns: u64, cx: &mut Cx<'_, impl Sink>) {
        self.first_nested_sign.get_or_insert(false);
        self.arrive(now_ns, cx.doubts, cx.sink, cx.me);
        self.resolve(Position::NestedVmexit, cx.seen, cx.doubts, cx.sink, cx.me);
        let nested = Lv::at(self.context.map_or(2, |context| self.contexts[context].depth));
        self.lvl = nested;
        if self.mode != Mode::Kvm {
            self.mode = Mode::Kvm;
            self.flush(nested, cx.sink, cx.me);
        }
    }

    /// `kvm_nested_vmexit_inject` (T9).
    pub fn inject(&mut self, now_ns: u64, reason: Reason, cx: &mut Cx<'_, impl Sink>) {
        self.first_nested_sign.get_or_insert(false);
        let now_ns = self.arrive(now_ns, cx.doubts, cx.sink, cx.me);
        self.resolve(Position::Inject, cx.seen, cx.doubts, cx.sink, cx.me);
        if self.mode != Mode::Kvm {
            self.mode = Mode::Kvm;
            self.flush(Lv::at(2), cx.sink, cx.me);
        }
        self.censor_chain(cx);
        let (start_ns, off_before_ns) = match &mut self.xit {
            Some(open) => {
                open.exit.handled = Handled::Reflected;
                // A nested hypervisor's own entry request, reflected: the next guest it enters is its child.
                let nested = matches!(open.exit.level, Lv::At(depth) if depth > 1);
                if nested && open.exit.reason.class() == Class::EntryRequest {
                    self.parent = self.context;
                }
                (open.exit.at_ns, open.off_before_ns)
            }
            None => (now_ns, self.off_ns),
        };
        self.lvl = Lv::At(1);
        self.pend = Pend::None;
        self.chain = Some(Box::new(Chain {
            reason,
            start_ns,
            exits: 0,
            sequence: SmallVec::new(),
            cost_ns: None,
            interrupted: false,
            migrated: false,
            guest_ns: self.guest1_ns,
            userspace_ns: self.user_ns,
            off_before_ns,
            vmcb: self.context.map(|context| self.contexts[context].vmcb),
        }));
    }

    /// A nested entry is asked for (T10); `vmcb` names the nested guest.
    pub fn nested_entry(
        &mut self,
        now_ns: u64,
        nested_rip: Option<u64>,
        vmcb: Option<u64>,
        cx: &mut Cx<'_, impl Sink>,
    ) {
        self.first_nested_sign.get_or_insert(true);
        self.arrive(now_ns, cx.doubts, cx.sink, cx.me);
        self.resolve(Position::Other, cx.seen, cx.doubts, cx.sink, cx.me);
        if self.mode != Mode::Kvm {
            self.mode = Mode::Kvm;
            self.flush(Lv::At(1), cx.sink, cx.me);
        }
        let asked_by_exit = self.last_exit.is_some_and(|(reason, _)| reason.class() == Class::EntryRequest);
        if !asked_by_exit {
            cx.doubts.restored += 1;
        }
        self.pend = Pend::Asked(nested_rip);
        if let Some(vmcb) = vmcb {
            self.enter_context(vmcb);
        }
    }

    /// Finds or makes the nested guest behind `vmcb`. One first seen after a nested hypervisor's own entry request is
    /// that hypervisor's guest.
    fn enter_context(&mut self, vmcb: u64) {
        let known = self.contexts.iter().position(|context| context.vmcb == vmcb);
        let context = known.unwrap_or_else(|| {
            let above = self.parent.map_or(1, |parent| self.contexts[parent].depth);
            self.contexts.push(Context { vmcb, depth: above.saturating_add(1), entries: 0 });
            self.contexts.len() - 1
        });
        if self.parent != Some(context) {
            self.parent = None;
        }
        self.contexts[context].entries += 1;
        self.context = Some(context);
    }

    /// True while it runs the nested guest behind `vmcb`, or L0 works on an exit that the guest hypervisor has not got.
    pub fn is_inside(&self, vmcb: u64) -> bool {
        let context = self.context.map(|context| self.contexts[context].vmcb);
        context == Some(vmcb) && matches!(self.lvl, Lv::At(depth) if depth > 1)
    }

    /// Another thread was asked to enter the nested guest behind `vmcb`: if it left this one, its chain is closed late.
    pub fn overtaken(&mut self, vmcb: u64) {
        if let Some(chain) = self.chain.as_mut().filter(|chain| chain.vmcb == Some(vmcb)) {
            chain.migrated = true;
        }
    }

    /// SVM's intercepts of the nested guest: where no event tells the request, they do.
    pub fn nested_intercepts(&mut self, now_ns: u64, cx: &mut Cx<'_, impl Sink>) {
        self.arrive(now_ns, cx.doubts, cx.sink, cx.me);
        if !matches!(self.pend, Pend::Asked(Some(_))) {
            self.pend = Pend::Asked(None);
        }
    }

    /// `kvm_nested_vmenter_failed` (T11).
    pub fn nested_entry_failed(&mut self, now_ns: u64, cx: &mut Cx<'_, impl Sink>) {
        let now_ns = self.arrive(now_ns, cx.doubts, cx.sink, cx.me);
        cx.doubts.refused_entries += 1;
        if self.mode == Mode::Guest {
            // The hardware refused: the guest never ran.
            for piece in &mut self.tail {
                if piece.0 == Label::Guest {
                    piece.0 = Label::Handling;
                }
            }
            self.mode = Mode::Kvm;
            self.flush(Lv::At(1), cx.sink, cx.me);
            self.last_ns = now_ns;
        }
        self.lvl = Lv::At(1);
        self.pend = Pend::None;
    }

    /// `kvm_userspace_exit` (T12).
    pub fn userspace_exit(&mut self, now_ns: u64, cx: &mut Cx<'_, impl Sink>) {
        self.arrive(now_ns, cx.doubts, cx.sink, cx.me);
        self.resolve(Position::Other, cx.seen, cx.doubts, cx.sink, cx.me);
        let level = self.xit.map_or(self.lvl, |open| open.exit.level);
        self.flush(self.settled.unwrap_or(level), cx.sink, cx.me);
        if let Some(open) = &mut self.xit {
            open.exit.handled = Handled::Userspace;
        }
        self.mode = Mode::User;
        self.exit_pending = false;
    }

    /// R3: the host worked on this thread's CPU, so its guest had stopped.
    pub fn host_event(&mut self, now_ns: u64, cx: &mut Cx<'_, impl Sink>) {
        if self.off.is_some() {
            return;
        }
        if self.mode == Mode::Guest {
            self.close(now_ns, cx.doubts, cx.sink, cx.me);
            self.mode = Mode::Kvm;
            self.exit_pending = true;
        }
        self.last_ns = self.last_ns.max(now_ns);
    }

    /// A host interrupt or softirq begins (`by` = 1) or ends (`by` = -1) on this thread's CPU.
    pub fn overlay(&mut self, now_ns: u64, softirq: bool, by: i32, cx: &mut Cx<'_, impl Sink>) {
        self.host_event(now_ns, cx);
        if self.off.is_some() {
            return;
        }
        self.close(now_ns, cx.doubts, cx.sink, cx.me);
        let depth = if softirq { &mut self.softirq } else { &mut self.irq };
        *depth = depth.saturating_add_signed(by);
    }

    /// An NMI that took `length_ns` ended.
    pub fn nmi(&mut self, now_ns: u64, length_ns: u64, cx: &mut Cx<'_, impl Sink>) {
        self.host_event(now_ns, cx);
        if self.off.is_some() || self.mode == Mode::Unknown {
            return;
        }
        let from_ns = now_ns.saturating_sub(length_ns).max(self.since_ns);
        self.close(from_ns, cx.doubts, cx.sink, cx.me);
        self.piece(Label::Plain(State::Nmi), now_ns.max(from_ns), cx.sink, cx.me);
    }

    /// The thread leaves its CPU (T13 to T15).
    pub fn switch_out(&mut self, now_ns: u64, ready: bool, cx: &mut Cx<'_, impl Sink>) {
        if self.off.is_some() {
            cx.doubts.unseen_switches += 1;
            self.forget(self.doubt.map_or(self.last_ns, |(from, _)| from), cx.doubts, cx.sink, cx.me);
            self.off = None;
        }
        self.host_event(now_ns, cx);
        self.close(now_ns, cx.doubts, cx.sink, cx.me);
        self.irq = 0;
        self.softirq = 0;
        let halted = self.mode == Mode::Kvm
            && !self.exit_pending
            && self.last_exit.is_some_and(|(reason, _)| reason.class() == Class::Halt);
        self.off = Some(match (ready, halted) {
            (true, _) => Off::Preempted,
            (false, true) => Off::Halted,
            (false, false) => Off::Blocked,
        });
    }

    /// The thread is made ready (T16).
    pub fn waking(&mut self, now_ns: u64, cx: &mut Cx<'_, impl Sink>) {
        if matches!(self.off, Some(Off::Halted | Off::Blocked)) {
            self.settle_doubt(cx);
            let now_ns = self.close(now_ns, cx.doubts, cx.sink, cx.me);
            self.off = Some(Off::Waking);
            self.woken_ns = Some(now_ns);
        }
    }

    /// The thread gets a CPU (T17).
    pub fn switch_in(&mut self, now_ns: u64, cx: &mut Cx<'_, impl Sink>) {
        if self.off.is_none() && self.first_ns != now_ns {
            cx.doubts.unseen_switches += 1;
            self.forget(self.last_ns, cx.doubts, cx.sink, cx.me);
        }
        self.settle_doubt(cx);
        let now_ns = self.close(now_ns, cx.doubts, cx.sink, cx.me);
        self.off = None;
        if let Some(woken_ns) = self.woken_ns {
            cx.sink.ran_after_waking(cx.me, woken_ns, now_ns);
        }
    }

    /// `kvm_vcpu_wakeup` (T18): of the last `length_ns`, what came before the first switch-out was polling.
    pub fn vcpu_wakeup(&mut self, now_ns: u64, length_ns: u64, cx: &mut Cx<'_, impl Sink>) {
        let halted = self.last_exit.is_some_and(|(reason, _)| reason.class() == Class::Halt);
        if self.off.is_some() || self.mode != Mode::Kvm || self.exit_pending || !halted {
            return;
        }
        let now_ns = self.close(now_ns, cx.doubts, cx.sink, cx.me);
        let from_ns = now_ns.saturating_sub(length_ns);
        let mut relabelled = Vec::with_capacity(self.tail.len() + 1);
        let mut slept = false;
        for (label, from, to) in self.tail.drain(..) {
            let asleep = matches!(label, Label::Plain(state) if state.is_off());
            if asleep && to > from_ns {
                slept = true;
            }
            if label != Label::Handling || slept || to <= from_ns {
                relabelled.push((label, from, to));
            } else if from >= from_ns {
                relabelled.push((Label::Plain(State::HaltPoll), from, to));
            } else {
                relabelled.push((label, from, from_ns));
                relabelled.push((Label::Plain(State::HaltPoll), from_ns, to));
            }
        }
        self.tail = relabelled;
    }

    /// An event that says what the open exit was about.
    pub fn detail(&mut self, now_ns: u64, detail: Detail) {
        self.last_ns = self.last_ns.max(now_ns);
        if let Some(open) = &mut self.xit {
            let vague = matches!(open.exit.detail, Detail::None);
            if vague && self.mode == Mode::Kvm {
                open.exit.detail = detail;
            }
        }
    }

    /// Events of its CPU were lost between `from_ns` and `to_ns` (T19).
    pub fn lost(&mut self, from_ns: u64, to_ns: u64, cx: &mut Cx<'_, impl Sink>) {
        if self.off.is_some() {
            // It may have run on that CPU unseen. If its next event shows it still asleep, only the gap is unknown.
            let first = self.doubt.map_or(from_ns.max(self.since_ns), |(first, _)| first);
            self.doubt = Some((first, to_ns.max(first)));
            self.drop_position(cx);
            return;
        }
        self.forget(from_ns, cx.doubts, cx.sink, cx.me);
        self.drop_position(cx);
        self.close(to_ns, cx.doubts, cx.sink, cx.me);
    }

    /// System-management mode (T20): nothing that was carried still holds.
    pub fn interrupted(&mut self, cx: &mut Cx<'_, impl Sink>) {
        self.pend = Pend::None;
        self.censor_chain(cx);
    }

    /// The end of the trace.
    pub fn end(&mut self, now_ns: u64, cx: &mut Cx<'_, impl Sink>) {
        if self.doubt.is_some() {
            self.forget(self.doubt.map_or(now_ns, |(from, _)| from), cx.doubts, cx.sink, cx.me);
        }
        self.close(now_ns, cx.doubts, cx.sink, cx.me);
        self.drop_position(cx);
    }

    /// From `from_ns` on nothing is known: the open piece ends there, and the thread's mode is unknown.
    fn forget(&mut self, from_ns: u64, doubts: &mut Doubts, sink: &mut impl Sink, me: usize) {
        self.close(from_ns.max(self.since_ns), doubts, sink, me);
        let level = self.settled.unwrap_or_else(|| self.xit.map_or(self.lvl, |open| open.exit.level));
        self.flush(level, sink, me);
        self.mode = Mode::Unknown;
        self.off = None;
        self.doubt = None;
        self.exit_pending = false;
        self.irq = 0;
        self.softirq = 0;
        self.woken_ns = None;
    }

    /// The gap in which the thread may have run unseen is unknown; around it, it slept.
    fn settle_doubt(&mut self, cx: &mut Cx<'_, impl Sink>) {
        let Some((from_ns, to_ns)) = self.doubt.take() else { return };
        self.close(from_ns.max(self.since_ns), cx.doubts, cx.sink, cx.me);
        self.piece(Label::Plain(State::Unknown), to_ns.max(self.since_ns), cx.sink, cx.me);
        self.mode = Mode::Unknown;
    }

    /// Ends what no longer can be followed: the open exit, the chain, the level.
    fn drop_position(&mut self, cx: &mut Cx<'_, impl Sink>) {
        if self.settled.is_none() {
            let level = self.xit.map_or(self.lvl, |open| open.exit.level);
            self.flush(level, cx.sink, cx.me);
        }
        self.flush(self.settled.unwrap_or(Lv::Lost), cx.sink, cx.me);
        self.finish_exit(None, cx);
        self.censor_chain(cx);
        self.lvl = Lv::Lost;
        self.pend = Pend::None;
        self.last_exit = None;
    }

    /// T7: what passed since the thread's last event is unknown.
    fn unknown_since_last(&mut self, now_ns: u64, cx: &mut Cx<'_, impl Sink>) {
        let last_ns = self.last_ns.clamp(self.since_ns, now_ns.max(self.since_ns));
        self.close(last_ns, cx.doubts, cx.sink, cx.me);
        self.piece(Label::Plain(State::Unknown), now_ns.max(last_ns), cx.sink, cx.me);
    }

    fn finish_exit(&mut self, entered_ns: Option<u64>, cx: &mut Cx<'_, impl Sink>) {
        let Some(mut open) = self.xit.take() else { return };
        if !self.tail.is_empty() {
            self.flush(open.exit.level, cx.sink, cx.me);
        }
        open.exit.cost_ns = entered_ns.map(|now_ns| {
            let off_ns = self.off_ns - open.off_before_ns;
            (now_ns - open.exit.at_ns).saturating_sub(off_ns)
        });
        cx.sink.exit(cx.me, &open.exit);
    }

    fn close_chain(&mut self, now_ns: u64, cx: &mut Cx<'_, impl Sink>) {
        let Some(mut chain) = self.chain.take() else { return };
        let off_ns = self.off_ns - chain.off_before_ns;
        chain.cost_ns = Some(now_ns.saturating_sub(chain.start_ns).saturating_sub(off_ns));
        let entered = self.context.map(|context| self.contexts[context].vmcb);
        chain.migrated |= chain.vmcb.is_some() && entered != chain.vmcb;
        self.give_chain(chain, cx);
    }

    fn censor_chain(&mut self, cx: &mut Cx<'_, impl Sink>) {
        if let Some(chain) = self.chain.take() {
            self.give_chain(chain, cx);
        }
    }

    fn give_chain(&self, mut chain: Box<Chain>, cx: &mut Cx<'_, impl Sink>) {
        chain.guest_ns = self.guest1_ns - chain.guest_ns;
        chain.userspace_ns = self.user_ns - chain.userspace_ns;
        cx.sink.chain(cx.me, &chain);
    }
}

/// What a thread needs beside itself while it takes an event.
pub struct Cx<'a, S: Sink> {
    /// Who hears of states, exits and chains.
    pub sink: &'a mut S,
    /// What the recording has shown so far.
    pub seen: &'a Seen,
    /// Where doubts are counted.
    pub doubts: &'a mut Doubts,
    /// Number of the thread.
    pub me: usize,
}
