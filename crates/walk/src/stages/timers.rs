//! How late was a guest's timer, and in which stage?
//!
//! ```text
//! guest   writes its deadline (MSR 0x6e0) or a count (TMICT)
//! KVM     exit -- hrtimer_start or kvm_hv_timer_state -- kvm_msr ... hrtimer_expire_entry -- kvm_apic_accept_irq in the vCPU's thread
//!                                                                or exit 52 (VMX's pre-emption timer)
//! ```
//! The deadline is one of the guest's counter. It is one of the host's where the trace counts by that counter and an event told
//! the guest's offset, which must not change meanwhile; else the host's timer tells it (`hrtimer_start.expires`).
//! Whose timer an hrtimer is, its start in the vCPU's thread tells, or that its expiry wakes the thread, twice at least and far more
//! often than it expires while the vCPU has set none.
//! Beside all that KVM measures by itself how late the entry is (`kvm_wait_lapic_expire`): what the two do not agree in is the
//! residual.
//! Sources: `restart_apic_timer`, `apic_timer_fn`, `kvm_inject_pending_timer_irqs` and `__kvm_wait_lapic_expire` in
//! arch/x86/kvm/lapic.c, `kvm_vcpu_write_tsc_offset` in arch/x86/kvm/x86.c, Linux 6.12.

use super::TimerStage;
use crate::Axis;
use rustc_hash::FxHashMap;

/// MSR_IA32_TSC_DEADLINE.
pub(crate) const TSC_DEADLINE: u64 = 0x6e0;
/// The initial count of the local APIC's timer, as an x2APIC's MSR and as a register.
pub(crate) const X2APIC_TMICT: u64 = 0x838;
/// See [`X2APIC_TMICT`].
pub(crate) const TMICT: u64 = 0x380;

/// How the times of a trace relate to those that events carry.
#[derive(Debug, Clone, Default)]
pub enum Reference {
    /// They are ticks of the time-stamp counter.
    Counter(Axis),
    /// They are CLOCK_MONOTONIC and so many ns.
    Monotonic(i64),
    /// Not at all.
    #[default]
    Unknown,
}

#[derive(Debug, Clone, Default)]
pub struct Timers {
    /// See [`Reference`].
    pub reference: Reference,
    vcpus: Vec<Timer>,
    /// By address of the hrtimer.
    owners: FxHashMap<u64, Owner>,
    /// What expired last, by CPU.
    expired: Vec<Option<Expiry>>,
}

/// Hrtimers that are told apart. A file may name any number.
const MOST_HRTIMERS: usize = 1 << 14;

/// A vector that so many others stand in for was none of the timer's: a vCPU interrupts itself too.
const MOST_OTHERS: u8 = 16;

/// Whose timer an hrtimer is.
#[derive(Debug, Clone, Copy)]
struct Owner {
    thread: usize,
    seen: u32,
    /// How often it expired though that thread had set none, or was better known to have another one.
    missed: u32,
}

/// Seen so often a thing is no chance.
const ENOUGH: u32 = 2;
/// An hrtimer that was started in the exit by which the guest set its timer needs no other evidence.
const CERTAIN: u32 = 1 << 20;
/// An expiry that is missed speaks against an owner as much as so many speak for it.
const MISSED: u32 = 4;

impl Owner {
    fn is_believed(&self) -> bool {
        self.seen >= ENOUGH && self.missed.saturating_mul(MISSED) <= self.seen
    }

    fn is_of(&self, thread: usize) -> bool {
        self.thread == thread && self.is_believed()
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Timer {
    set: Option<Set>,
    programmed: Option<Programmed>,
    /// Guest's counter minus the host's, where an event told it.
    offset: Option<u64>,
    offset_since_ns: u64,
    /// The vector of its interrupts, once one was seen, and how many others came since instead of it.
    vector: Option<u8>,
    others: u8,
    /// Whether it is set may have been lost.
    is_lost: bool,
}

/// The host's timer was set for it.
#[derive(Debug, Clone, Copy)]
struct Programmed {
    at_ns: u64,
    hrtimer: Option<u64>,
    expires_ns: Option<u64>,
}

#[derive(Debug, Clone, Copy)]
struct Set {
    /// When it was left to do so, and when that was done.
    exit_ns: u64,
    at_ns: u64,
    /// On the guest's counter.
    deadline: Option<u64>,
    program_ns: Option<u64>,
    expires_ns: Option<u64>,
    expired: Option<Expiry>,
}

#[derive(Debug, Clone, Copy)]
struct Expiry {
    at_ns: u64,
    hrtimer: u64,
    /// CLOCK_MONOTONIC when the host's timer interrupt began.
    now_ns: Option<u64>,
}

/// A timer that led to an interrupt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shot {
    /// When the guest was left to set it.
    set_ns: u64,
    program_ns: Option<u64>,
    expired_ns: u64,
    expire_ns: Option<u64>,
    /// When it was due, on the trace's clock.
    due_ns: Option<u64>,
    /// What of its lateness is in none of the stages.
    rest_ns: Option<u64>,
}

/// What KVM's own measure says of a shot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// The stages allow it but for so many ns; true if that is more than times are rounded by.
    Residual(u64, bool),
    /// The counter was changed since the timer was set.
    Moved,
}

impl Shot {
    /// The stages up to the injection at `injected_ns`, each with its length.
    pub fn stages(&self, injected_ns: u64) -> impl Iterator<Item = (TimerStage, u64)> {
        let known = [
            (TimerStage::Program, self.program_ns),
            (TimerStage::Expire, self.expire_ns),
            (TimerStage::Deliver, Some(injected_ns.saturating_sub(self.expired_ns))),
            (TimerStage::Residual, self.rest_ns),
        ];
        known.into_iter().filter_map(|(stage, length_ns)| Some((stage, length_ns?)))
    }
}

impl Timers {
    fn of(&mut self, thread: usize) -> &mut Timer {
        if thread >= self.vcpus.len() {
            self.vcpus.resize_with(thread + 1, Timer::default);
        }
        &mut self.vcpus[thread]
    }

    /// The guest of `thread` was left at `exit_ns` and has set its timer to `deadline`, if it has one; 0 stops it.
    pub fn set(&mut self, thread: usize, exit_ns: u64, deadline: Option<u64>, now_ns: u64) {
        let timer = self.of(thread);
        let programmed = timer.programmed.filter(|programmed| programmed.at_ns >= exit_ns);
        timer.is_lost = false;
        timer.set = (deadline != Some(0)).then(|| Set {
            exit_ns,
            at_ns: now_ns,
            deadline,
            program_ns: programmed.map(|programmed| programmed.at_ns - exit_ns),
            expires_ns: programmed.and_then(|programmed| programmed.expires_ns),
            expired: None,
        });
        if let Some(hrtimer) = programmed.and_then(|programmed| programmed.hrtimer)
            && let Some(owner) = self.owner(hrtimer, thread)
        {
            *owner = Owner { thread, seen: CERTAIN, missed: 0 };
        }
    }

    /// Who has `hrtimer`, `thread` if nobody is known; `None` if too many are.
    fn owner(&mut self, hrtimer: u64, thread: usize) -> Option<&mut Owner> {
        if self.owners.len() >= MOST_HRTIMERS && !self.owners.contains_key(&hrtimer) {
            return None;
        }
        Some(self.owners.entry(hrtimer).or_insert(Owner { thread, seen: 0, missed: 0 }))
    }

    /// An hrtimer starts in the time of `thread`, whose guest was left at `exit_ns` if KVM works for it.
    pub fn start(&mut self, thread: usize, exit_ns: Option<u64>, hrtimer: u64, expires_ns: Option<u64>, now_ns: u64) {
        let is_own = self.owners.get(&hrtimer).is_some_and(|owner| owner.is_of(thread));
        let timer = self.of(thread);
        match &mut timer.set {
            // A vCPU that changes its CPU takes its timer along.
            Some(set) if is_own && set.expired.is_none() => set.expires_ns = expires_ns,
            _ => {}
        }
        if exit_ns.is_some() {
            timer.programmed = Some(Programmed { at_ns: now_ns, hrtimer: Some(hrtimer), expires_ns });
        }
    }

    /// KVM has set the host's timer of `thread`, in the exit at `exit_ns`.
    pub fn programmed(&mut self, thread: usize, exit_ns: Option<u64>, now_ns: u64) {
        let timer = self.of(thread);
        let is_known =
            timer.programmed.is_some_and(|programmed| exit_ns.is_some_and(|exit_ns| programmed.at_ns >= exit_ns));
        if !is_known {
            timer.programmed = Some(Programmed { at_ns: now_ns, hrtimer: None, expires_ns: None });
        }
    }

    /// An hrtimer expires on `cpu`.
    pub fn expire(&mut self, cpu: usize, hrtimer: u64, monotonic_ns: Option<u64>, now_ns: u64) {
        if cpu >= self.expired.len() {
            self.expired.resize(cpu + 1, None);
        }
        let expiry = Expiry { at_ns: now_ns, hrtimer, now_ns: monotonic_ns };
        self.expired[cpu] = Some(expiry);
        let Some(owner) = self.owners.get(&hrtimer).copied() else { return };
        let Some(timer) = self.vcpus.get_mut(owner.thread) else { return };
        let wrong = match &mut timer.set {
            Some(set) if owner.is_believed() => match set.expired.filter(|known| known.hrtimer != hrtimer) {
                None if set.expired.is_none() => {
                    set.expired = Some(expiry);
                    return;
                }
                // Two seem to be this vCPU's: the one that is better known is.
                Some(other) if self.owners.get(&other.hrtimer).is_none_or(|other| other.seen < owner.seen) => {
                    set.expired = Some(expiry);
                    other.hrtimer
                }
                _ => hrtimer,
            },
            None if !timer.is_lost => hrtimer,
            _ => return,
        };
        if let Some(wrong) = self.owners.get_mut(&wrong) {
            wrong.missed = wrong.missed.saturating_add(1);
        }
    }

    /// `thread` is woken on `cpu`, whose last event before that came at `before_ns`.
    pub fn wake(&mut self, cpu: usize, before_ns: u64, thread: usize) {
        let Some(expiry) = self.expired.get(cpu).copied().flatten().filter(|expiry| expiry.at_ns == before_ns) else {
            return;
        };
        if self.vcpus.get(thread).is_none_or(|timer| timer.set.is_none()) {
            return;
        }
        let Some(owner) = self.owner(expiry.hrtimer, thread) else { return };
        match owner.thread == thread {
            true => owner.seen = owner.seen.saturating_add(1),
            false => owner.missed = owner.missed.saturating_add(1),
        }
        if owner.is_of(thread)
            && let Some(set) = &mut self.vcpus[thread].set
        {
            set.expired.get_or_insert(expiry);
        }
    }

    /// True if the timer of `thread` has expired on `cpu` at `before_ns`, which is the time of the event before on that CPU.
    pub(crate) fn expires_for(&self, cpu: usize, before_ns: u64, thread: usize) -> bool {
        let expiry = self.expired.get(cpu).copied().flatten().filter(|expiry| expiry.at_ns == before_ns);
        let owner = expiry.and_then(|expiry| self.owners.get(&expiry.hrtimer));
        owner.is_some_and(|owner| owner.is_of(thread))
    }

    /// KVM wrote the offset of the counter of `thread`'s guest.
    #[inline]
    pub fn offset(&mut self, thread: usize, previous: u64, next: u64, now_ns: u64) {
        let timer = self.of(thread);
        timer.offset = Some(next);
        if previous != next {
            timer.offset_since_ns = now_ns;
        }
    }

    /// The APIC of `thread`'s vCPU accepts `vector` in the time of that thread itself, which works on an exit at `exit_ns`, by
    /// VMX's pre-emption timer if `by_timer`: the shot that this is, if it is one.
    pub fn accept(
        &mut self,
        thread: usize,
        vector: u8,
        (exit_ns, by_timer): (Option<u64>, bool),
        now_ns: u64,
    ) -> Option<Shot> {
        let timer = self.vcpus.get_mut(thread)?;
        let set = timer.set?;
        let expired_ns = match (set.expired, exit_ns) {
            (Some(expiry), _) => expiry.at_ns,
            (None, Some(exit_ns)) if by_timer && exit_ns > set.at_ns => exit_ns,
            // It was due when it was set.
            (None, Some(exit_ns)) if exit_ns == set.exit_ns && now_ns > set.at_ns => set.at_ns,
            _ => return None,
        };
        if timer.vector.is_some_and(|known| known != vector) && timer.others < MOST_OTHERS {
            timer.others += 1;
            return None;
        }
        (timer.set, timer.vector, timer.others) = (None, Some(vector), 0);
        let known = timer.offset.filter(|_| timer.offset_since_ns < set.exit_ns);
        let due_ns = match (&self.reference, set.deadline, known) {
            (Reference::Counter(axis), Some(deadline), Some(offset)) => {
                Some(axis.shown_ns(deadline.wrapping_sub(offset)))
            }
            _ => None,
        };
        // The host's own two readings of one clock, where there are both.
        let by_host = set.expired.and_then(|expiry| expiry.now_ns).zip(set.expires_ns);
        let expire_ns = match by_host {
            Some((now_ns, expires_ns)) => Some(now_ns.saturating_sub(expires_ns)),
            None => due_ns.map(|due_ns| expired_ns.saturating_sub(due_ns)),
        };
        let rest_ns = match (&self.reference, set.expired.and_then(|expiry| expiry.now_ns), set.expires_ns) {
            (Reference::Monotonic(offset_ns), Some(read_ns), Some(_)) => {
                Some(expired_ns.saturating_add_signed(offset_ns.saturating_neg()).saturating_sub(read_ns))
            }
            _ => None,
        };
        Some(Shot { set_ns: set.exit_ns, program_ns: set.program_ns, expired_ns, expire_ns, due_ns, rest_ns })
    }

    /// KVM has measured between `entered_ns` and `now_ns` that the entry of `thread` comes `delta` ticks after the deadline of
    /// `shot`.
    #[inline]
    pub fn check(&self, thread: usize, shot: &Shot, delta: i64, (entered_ns, now_ns): (u64, u64)) -> Option<Check> {
        let Reference::Counter(axis) = &self.reference else { return None };
        let timer = self.vcpus.get(thread)?;
        timer.offset?;
        if timer.offset_since_ns >= shot.set_ns {
            return Some(Check::Moved);
        }
        let due_ns = shot.due_ns?;
        let late_ns = axis.length_ns(delta as f64) as i128;
        let since_due = |at_ns: u64| i128::from(at_ns) - i128::from(due_ns);
        let beside_ns = (since_due(entered_ns) - late_ns).max(late_ns - since_due(now_ns)).max(0);
        let error_ns = axis.length_ns(axis.rounding().max(1) as f64).ceil() as i128 + 1;
        Some(Check::Residual(u64::try_from(beside_ns).unwrap_or(u64::MAX), beside_ns > error_ns))
    }

    /// Events were lost: which timer is set is no longer known. Offsets are read again when they are written.
    pub fn forget(&mut self) {
        self.expired.clear();
        for timer in &mut self.vcpus {
            (timer.set, timer.programmed, timer.offset, timer.is_lost) = (None, None, None, true);
        }
    }
}

#[cfg(test)]
mod tests;
