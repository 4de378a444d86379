//! One vCPU thread: which state is it in, and at which level did its guest run?
//!
//! Two witnesses tell the level of every exit. *Forward* (W1): `lvl` is carried from entry requests and injections.
//! *Backward* (W2): the next positional event after an exit is `kvm_nested_vmexit`, or it was the guest of L0 itself.
//!
//! Rules R1-R3 and T1-T24, in the order in which they stand in docs/read/flow.md; each is named where it is carried out.
//! Here are those of KVM's own events; the witnesses are weighed in `level.rs`, and `host.rs` has what the host's
//! scheduler and interrupts mean.
//! Kernel facts: arch/x86/kvm/{x86.c, vmx/nested.c, svm/nested.c, trace.h}, Linux 3.10 to 6.18.

mod chain;
mod contexts;
mod evidence;
mod exit;
mod host;
mod ledger;
mod level;
mod nested;
mod pieces;
#[cfg(test)]
mod tests;

pub use chain::{Chain, KEPT};
pub use contexts::{Context, Contexts};
pub use evidence::{Doubts, Seen};
pub use exit::{Exit, Handled};
use host::Doubt;
pub use host::Off;

use super::state::TracedLevel;
use super::walk::{Interruption, Sink, Waker, vcpu_names};
use crate::events::details::Detail;
use crate::events::reasons::{Class, Reason};
use chain::OpenChain;
use exit::{OpenExit, Position};
use ledger::{Label, Ledger};

/// Threads of vCPUs that are told apart. KVM allows 1,024 vCPUs in a VM (KVM_MAX_VCPUS, arch/x86/include/asm/kvm_host.h, Linux 6.12), so
/// that a file with KVM events of more threads is damage, or wants the reader's memory; a host that starts processes all the time
/// has no end of them.
pub(crate) const MOST_THREADS: usize = 1 << 16;

/// What the thread does when it is on a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Unknown,
    Guest,
    Kvm,
    User,
    /// The guest's code is translated: nothing tells it from what the emulator does for it.
    Translated,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PendingEntry {
    None,
    /// By an event; where the nested guest will start, if it says.
    Asked(Option<u64>),
    /// By the exit alone: kernels before 6.1 on VMX tell no more.
    Guessed,
}

/// The state machine of one thread.
#[derive(Debug, Clone)]
pub struct Thread {
    pub tid: i32,
    /// Its name as last seen; empty if no event told.
    pub comm: String,
    /// True from its first KVM event on.
    pub is_vcpu: bool,
    /// It is among the vCPUs that the walk has counted.
    pub(crate) is_counted: bool,
    /// Its name says that it runs its guest without KVM (T22).
    pub is_translated: bool,
    /// It left its CPU to end.
    pub gone: bool,
    /// Number of its vCPU, where an event told.
    pub vcpu_id: Option<u32>,
    /// What LTTng's stale `kvm_x86_entry` had for it last.
    pub vcpu_pointer: Option<u64>,
    /// Time of its first event.
    pub first_ns: u64,
    /// True if its first nested sign was an entry request and nothing was lost before it, so that all before is L1's;
    /// `None` without any sign.
    pub(crate) first_nested_sign: Option<bool>,
    /// Events that may have been its own were lost.
    pub lossy: bool,
    /// Nested guests it ran.
    pub contexts: Contexts,
    /// When it was last made ready, until it runs.
    woken_ns: Option<u64>,
    /// The same, until it enters a guest or sleeps again.
    woken_for_guest_ns: Option<u64>,
    /// A waking came while it was still on its CPU.
    woken_running_ns: Option<u64>,
    /// Who made it ready last.
    waker: Waker,
    /// CPU on which it waits, pre-empted.
    pub(crate) waits_on: Option<usize>,
    /// CPU on which it was seen last.
    pub cpu: Option<usize>,
    mode: Mode,
    /// It came back from KVM_RUN, and nothing had told what it did there: entries and exits may be silent here.
    blind: bool,
    off: Option<Off>,
    /// Time of its last event.
    last_ns: u64,
    /// What its CPU does instead, and whether nothing has been told of that yet.
    interrupted: Option<Interruption>,
    /// The guest has stopped, its `kvm_exit` has not come yet (R3).
    exit_pending: bool,
    lvl: TracedLevel,
    pend: PendingEntry,
    ledger: Ledger,
    open_exit: Option<OpenExit>,
    last_exit: Option<(Reason, Option<u64>)>,
    chain: Option<Box<OpenChain>>,
    /// A gap in which it may have run unseen.
    doubt: Option<Doubt>,
}

/// What a thread needs beside itself while it takes an event.
pub struct Surroundings<'a, S: Sink> {
    /// Who hears of states, exits and chains.
    pub sink: &'a mut S,
    /// What the recording has shown so far.
    pub seen: &'a Seen,
    pub doubts: &'a mut Doubts,
    /// Number of the thread.
    pub me: usize,
}

impl Thread {
    /// A thread first seen at `now_ns`; what passed since the trace's start at `origin_ns` is unknown.
    pub fn new(tid: i32, origin_ns: u64, now_ns: u64) -> Self {
        Self {
            tid,
            comm: String::new(),
            is_vcpu: false,
            is_counted: false,
            is_translated: false,
            gone: false,
            vcpu_id: None,
            vcpu_pointer: None,
            first_ns: now_ns,
            first_nested_sign: None,
            lossy: false,
            contexts: Contexts::default(),
            woken_ns: None,
            woken_for_guest_ns: None,
            woken_running_ns: None,
            waker: Waker::Unknown,
            waits_on: None,
            cpu: None,
            mode: Mode::Unknown,
            blind: false,
            off: None,
            last_ns: now_ns,
            interrupted: None,
            exit_pending: false,
            lvl: TracedLevel::Early,
            pend: PendingEntry::None,
            ledger: Ledger::new(origin_ns.min(now_ns)),
            open_exit: None,
            last_exit: None,
            chain: None,
            doubt: None,
        }
    }

    /// An event says its name.
    pub(crate) fn is_called(&mut self, comm: &[u8], cx: &mut Surroundings<'_, impl Sink>) {
        if self.comm.as_bytes() != comm {
            self.comm = String::from_utf8_lossy(comm).into_owned();
            if let Some(vcpu) = vcpu_names::translated(&self.comm).filter(|_| !self.is_vcpu) {
                self.translates(vcpu, cx);
            }
        }
    }

    /// `kvm_entry` (T1 to T5).
    pub fn entry(&mut self, now_ns: u64, rip: Option<u64>, cx: &mut Surroundings<'_, impl Sink>) {
        self.is_on_cpu(cx);
        // What this tells of the exit's level is told first, so that the piece that ends here need not wait for it.
        self.resolve(Position::Other, cx);
        self.halted_until(now_ns, cx);
        let now_ns = self.close(now_ns, cx);
        if self.mode == Mode::Guest {
            cx.doubts.entry_entry += 1; // T4: the earlier interval stands
            self.ledger.settle(self.lvl, cx);
        }
        self.finish_exit(Some(now_ns), cx);
        self.lvl = self.level_entered(rip, cx);
        let guessed = !matches!((self.pend, rip), (PendingEntry::Asked(Some(_)), Some(_)));
        self.pend = PendingEntry::None;
        self.mode = Mode::Guest;
        self.exit_pending = false;
        self.ledger.settled = None;
        if self.lvl.is_nested()
            && let Some(chain) = &mut self.chain
        {
            chain.close(now_ns, &self.ledger.sums, self.contexts.vmcb(), guessed);
        }
        if let Some(woken_ns) = self.woken_for_guest_ns.take() {
            cx.sink.entered_after_waking(cx.me, woken_ns, now_ns);
        }
    }

    /// `kvm_exit` (T6, T7); `class` is that of `reason`.
    pub fn exit(
        &mut self,
        now_ns: u64,
        (reason, class): (Reason, Class),
        rip: Option<u64>,
        detail: Detail,
        cx: &mut Surroundings<'_, impl Sink>,
    ) {
        let known = self.off.is_none() && (self.mode == Mode::Guest || self.exit_pending);
        if !known && self.off.is_none() && self.mode != Mode::Unknown {
            // T7: an entry was not seen, so nothing tells when the guest began to run.
            cx.doubts.unseen_entries += 1;
            self.unknown_since_last(now_ns, cx);
        }
        let now_ns = self.arrive(now_ns, cx);
        self.resolve(Position::Other, cx);
        self.finish_exit(None, cx);
        if !known {
            self.ledger.settle(self.ledger.settled.unwrap_or(self.lvl), cx);
            self.lvl = if self.lvl == TracedLevel::Early { TracedLevel::Early } else { TracedLevel::Lost };
            self.ledger.settled = None;
        }
        let exit =
            Exit { at_ns: now_ns, reason, level: self.lvl, rip, detail, cost_ns: None, handled: Handled::Kernel };
        self.open_exit = Some(OpenExit { exit, class, off_before_ns: self.ledger.sums.off_ns, unresolved: true });
        self.last_exit = Some((reason, rip));
        self.mode = Mode::Kvm;
        self.exit_pending = false;
        match class {
            Class::EntryRequest => {
                self.first_nested_sign.get_or_insert(!self.lossy);
                if !cx.seen.nested_entry {
                    self.pend = PendingEntry::Guessed;
                }
            }
            Class::Virtualization | Class::VmcsAccess => {
                self.first_nested_sign.get_or_insert(!self.lossy);
            }
            _ => {}
        }
    }

    /// `kvm_userspace_exit` (T12).
    pub(crate) fn userspace_exit(&mut self, now_ns: u64, cx: &mut Surroundings<'_, impl Sink>) {
        self.arrive(now_ns, cx);
        self.resolve(Position::Other, cx);
        self.ledger.settle(self.level_now(), cx);
        if let Some(open) = &mut self.open_exit {
            open.exit.handled = Handled::Userspace;
        }
        self.blind = self.mode == Mode::Unknown;
        self.mode = Mode::User;
        self.exit_pending = false;
    }

    /// `kvm_fpu` that loads, where KVM_RUN ended without a sign of what it did: it begins again (T21).
    pub(crate) fn run_begins(&mut self, now_ns: u64, cx: &mut Surroundings<'_, impl Sink>) {
        self.is_vcpu = true;
        if !cx.seen.exit {
            cx.sink.serves(cx.me, now_ns);
        }
        if self.blind && self.mode == Mode::User {
            self.arrive(now_ns, cx);
            self.mode = Mode::Unknown;
        }
    }

    /// KVM works for its guest, and nothing else is known of what it does.
    pub fn serves(&mut self, now_ns: u64, cx: &mut Surroundings<'_, impl Sink>) {
        self.is_on_cpu(cx);
        cx.sink.serves(cx.me, now_ns);
    }

    /// An event that says what the open exit was about.
    #[inline]
    pub fn detail(&mut self, now_ns: u64, detail: Detail) {
        self.is_vcpu = true;
        self.last_ns = self.last_ns.max(now_ns);
        if let Some(open) = &mut self.open_exit
            && self.mode == Mode::Kvm
        {
            open.exit.detail = open.exit.detail.then(detail, open.exit.reason);
        }
    }

    /// System-management mode (T20): nothing that was carried still holds.
    pub(crate) fn smm(&mut self, cx: &mut Surroundings<'_, impl Sink>) {
        self.pend = PendingEntry::None;
        self.give_chain(cx);
    }

    pub fn end(&mut self, now_ns: u64, cx: &mut Surroundings<'_, impl Sink>) {
        if let Some(doubt) = self.doubt {
            self.forget(doubt.from_ns, cx);
        }
        self.close(now_ns, cx);
        self.drop_position(cx);
    }

    /// True while its guest runs, for all that is known.
    pub(crate) fn runs_guest(&self) -> bool {
        self.off.is_none() && self.mode == Mode::Guest
    }

    /// When the exit came that KVM works on, and whether it came by VMX's pre-emption timer.
    pub(crate) fn open_exit(&self) -> (Option<u64>, bool) {
        let open = self.open_exit.as_ref().map(|open| &open.exit);
        (open.map(|exit| exit.at_ns), open.is_some_and(|exit| exit.reason.is_preemption_timer()))
    }
}
