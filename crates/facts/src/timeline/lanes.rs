//! What each lane shows, piece by piece: a vCPU, a CPU, a thread of the VMM's side.
//!
//! ```text
//! holders of a CPU   | CPU 0/KVM (170)                       | swapper        | vhost-4211 (4230) |
//! that vCPU's pieces | guest_l2 | handling_l2 | irq | ...    |                |                   |
//! interrupts above   |          |             | nvme0q1 |    | - local_timer  |                   |
//! the CPU's lane     | guest_l2 | handling_l2 | irq | ...    | idle | irq     | task              |
//! ```
//! A CPU's lane is cut out of the vCPUs' own pieces wherever a vCPU holds it, so that both say the same to the nanosecond.
//! While a trace is read, lanes are told as far as they cannot change any more, and each remembers how far that was.

use super::keeper::Thread;
use super::tasks::Doing;
use super::watch::Cpu;
use crate::ledger::levels;
use base::{Level, Span};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::collections::BTreeMap;
use walk::events::host_interrupts::{Handlers, HostInterrupt};
use walk::events::reasons::Reason;
use walk::state::{STATES, State};

/// What a piece of a lane shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    Ledger(State),
    /// A CPU runs a task that is no vCPU.
    Task,
    /// A CPU runs nothing.
    Idle,
    Running,
    /// A thread waits for a CPU.
    Runnable,
    Sleeping,
}

/// Looks beside those of the ledger, in the order of their places behind those.
const OWN: [(Look, &str, &str); LOOKS - STATES] = [
    (Look::Task, "task", "other task"),
    (Look::Idle, "idle", "idle"),
    (Look::Running, "running", "running"),
    (Look::Runnable, "runnable", "waiting for a CPU"),
    (Look::Sleeping, "sleeping", "sleeping"),
];

/// Number of different looks.
pub(super) const LOOKS: usize = STATES + 5;

impl Look {
    /// Position in arrays of [`LOOKS`] entries.
    pub(super) fn index(self) -> usize {
        match self {
            Look::Ledger(state) => state.index(),
            own => STATES + OWN.iter().position(|(look, ..)| *look == own).unwrap_or(0),
        }
    }

    /// Its name and title in the trace of a machine at `host`; `inside` tells the states of a guest's own kernel from
    /// those of the machine below.
    pub(super) fn named(index: usize, host: Level, inside: bool) -> base::timeline::State {
        let (name, title) = match index.checked_sub(STATES) {
            Some(own) => (OWN[own].1.to_owned(), OWN[own].2.to_owned()),
            None => {
                let state = State::of_index(index);
                let of_kernel = inside && matches!(state, State::Handling(_));
                let by = if of_kernel { format!("_by_{}", host.to_string().to_lowercase()) } else { String::new() };
                (levels::name(host, state) + &by, levels::title(host, state))
            }
        };
        base::timeline::State { name, title }
    }
}

/// Who hears of pieces: from when on, what, and what is known beside.
pub(super) type Put<'a> = dyn FnMut(u64, Look, &str) + 'a;

/// `pieces` of a vCPU that was left for `exits`: a slice of the work on an exit says why the guest was left.
pub(super) fn vcpu(pieces: &[(u64, State)], exits: &[(u64, Reason)], put: &mut Put<'_>) {
    let mut exits = exits.iter().peekable();
    let mut names: FxHashMap<Reason, String> = FxHashMap::default();
    for (from_ns, state) in pieces {
        while exits.next_if(|(at_ns, ..)| at_ns < from_ns).is_some() {}
        let why = match (state, exits.peek()) {
            (State::Handling(_), Some((at_ns, reason))) if at_ns == from_ns => {
                names.entry(*reason).or_insert_with(|| reason.name()).as_str()
            }
            _ => "",
        };
        put(*from_ns, Look::Ledger(*state), why);
    }
}

/// What lanes of CPUs are told from.
pub(super) struct Around<'a> {
    /// The vCPU that a thread runs, if it does.
    pub vcpu: &'a dyn Fn(i32) -> Option<&'a Thread>,
    pub names: &'a BTreeMap<i32, String>,
    pub handlers: &'a Handlers,
    pub span: Span,
    /// Up to when it is read; `None` at its end.
    pub now_ns: Option<u64>,
    /// How often a lane waits for a vCPU.
    pub waits: u32,
}

/// How far a CPU's lane is told.
#[derive(Debug, Default)]
pub(super) struct CpuLane {
    once: Once,
    begun: bool,
    /// When the last piece of the stay that is being told began, if one was told.
    pub told_ns: Option<u64>,
    /// A stay was begun.
    inside: bool,
    /// How often the vCPU of a stay that is over had not told of all of it.
    waited: u32,
    /// Time that was not waited for any longer.
    pub(crate) left_unknown_ns: u64,
}

impl CpuLane {
    /// Tells the pieces of `cpu`: a slice says which task it ran, or which interrupt. Returns how many of its holders are told
    /// whole, which must be gone at the next call.
    pub(super) fn tell(&mut self, cpu: &Cpu, around: &Around<'_>, put: &mut Put<'_>) -> usize {
        let end_ns = around.span.to_ns;
        if !std::mem::replace(&mut self.begun, true) {
            self.once.put((around.span.from_ns, end_ns), Look::Ledger(State::Unknown), "", put);
        }
        for (place, (from_ns, holder)) in cpu.holders.iter().enumerate() {
            // At this instant there may be more to come.
            if around.now_ns.is_some_and(|now_ns| *from_ns >= now_ns) {
                return place;
            }
            let next_ns = cpu.holders.get(place + 1).map(|(at_ns, _)| *at_ns);
            let stay = Span { from_ns: *from_ns, to_ns: next_ns.unwrap_or(end_ns) };
            let name = holder.and_then(|tid| around.names.get(&tid)).map_or("", String::as_str);
            let is_whole = match holder.and_then(|tid| (around.vcpu)(tid)) {
                Some(thread) => self.held((cpu, thread, name), stay, around, put),
                None => self.ran((cpu, *holder, name), stay, around, put),
            };
            if around.now_ns.is_some() {
                if next_ns.is_none() {
                    return place;
                }
                if !is_whole && self.waited < around.waits {
                    self.waited += 1;
                    return place;
                }
                if !is_whole {
                    let thread = holder.and_then(|tid| (around.vcpu)(tid));
                    let known_ns = thread.map_or(stay.from_ns, |thread| thread.end_ns.max(stay.from_ns));
                    self.once.put((known_ns, end_ns), Look::Ledger(State::Unknown), name, put);
                    self.left_unknown_ns += stay.to_ns.saturating_sub(known_ns);
                }
            }
            (self.inside, self.told_ns, self.waited) = (false, None, 0);
        }
        cpu.holders.len()
    }

    /// A task that is no vCPU, or nobody known, has the CPU for `stay`.
    fn ran(
        &mut self,
        (cpu, holder, name): (&Cpu, Option<i32>, &str),
        stay: Span,
        around: &Around<'_>,
        put: &mut Put<'_>,
    ) -> bool {
        let below = match holder {
            None => Look::Ledger(State::Unknown),
            Some(0) => Look::Idle,
            Some(_) => Look::Task,
        };
        let first = match self.told_ns {
            Some(_) => None,
            None => Some((stay.from_ns, cpu.above_at(stay.from_ns))),
        };
        let told_ns = self.told_ns.unwrap_or(stay.from_ns);
        let until_ns = around.now_ns.map_or(stay.to_ns, |now_ns| now_ns.min(stay.to_ns));
        let after = cpu.above.partition_point(|(at_ns, _)| *at_ns <= told_ns);
        let inside = cpu.above[after..].iter().take_while(|(at_ns, _)| *at_ns < until_ns);
        for (at_ns, above) in first.into_iter().chain(inside.copied()) {
            let (look, detail) = match above {
                Some(by) => (Look::Ledger(by.state()), around.handlers.title(by)),
                None => (below, Cow::Borrowed(if below == Look::Idle { "" } else { name })),
            };
            self.once.put((at_ns, around.span.to_ns), look, &detail, put);
            self.told_ns = Some(at_ns);
        }
        true
    }

    /// The vCPU of `thread` has the CPU for `stay`; time that it cannot have spent there is unknown. True if it has told of all
    /// of it.
    fn held(
        &mut self,
        (cpu, thread, name): (&Cpu, &Thread, &str),
        stay: Span,
        around: &Around<'_>,
        put: &mut Put<'_>,
    ) -> bool {
        let end_ns = around.span.to_ns;
        if !std::mem::replace(&mut self.inside, true) {
            self.once.put((stay.from_ns, end_ns), Look::Ledger(State::Unknown), name, put);
        }
        let told_ns = self.told_ns.unwrap_or(stay.from_ns);
        let first = thread.pieces.partition_point(|(at_ns, _)| *at_ns <= told_ns).saturating_sub(1);
        for (place, (began_ns, state)) in thread.pieces.iter().enumerate().skip(first) {
            let ended_ns = thread.pieces.get(place + 1).map_or(thread.end_ns, |(at_ns, _)| *at_ns);
            let at_ns = (*began_ns).max(stay.from_ns);
            if at_ns >= stay.to_ns {
                break;
            }
            if ended_ns <= stay.from_ns || self.told_ns.is_some_and(|told_ns| at_ns <= told_ns) {
                continue;
            }
            let (look, detail) = match state {
                state if state.is_off() => (Look::Ledger(State::Unknown), Cow::Borrowed(name)),
                State::Irq | State::Softirq => {
                    let known = cpu.above_at(at_ns).filter(|by| by.state() == *state);
                    (Look::Ledger(*state), known.map_or(Cow::Borrowed(""), |by| around.handlers.title(by)))
                }
                State::Nmi => (Look::Ledger(State::Nmi), around.handlers.title(HostInterrupt::Nmi)),
                state => (Look::Ledger(*state), Cow::Borrowed(name)),
            };
            self.once.put((at_ns, end_ns), look, &detail, put);
            self.told_ns = Some(at_ns);
        }
        thread.end_ns >= stay.to_ns
    }
}

/// How far the lane of a thread that is no vCPU is told.
#[derive(Debug, Default)]
pub(super) struct TaskLane {
    once: Once,
    begun: bool,
}

impl TaskLane {
    /// Tells the pieces of `track`, which must not be told again: a slice says on which CPU the thread ran.
    pub(super) fn tell(&mut self, track: &[(u64, Doing)], span: Span, put: &mut Put<'_>) {
        if !std::mem::replace(&mut self.begun, true) {
            self.once.put((span.from_ns, span.to_ns), Look::Ledger(State::Unknown), "", put);
        }
        for (at_ns, doing) in track {
            let at = (*at_ns, span.to_ns);
            match doing {
                Doing::Running(cpu) => self.once.put(at, Look::Running, &format!("CPU {cpu}"), put),
                Doing::Runnable => self.once.put(at, Look::Runnable, "", put),
                Doing::Sleeping => self.once.put(at, Look::Sleeping, "", put),
                Doing::Unknown => self.once.put(at, Look::Ledger(State::Unknown), "", put),
            }
        }
    }
}

/// Passes on what differs from the piece before.
#[derive(Debug, Default)]
struct Once {
    last: Option<Look>,
    said: String,
}

impl Once {
    /// From `at_ns` on, unless the lane has ended at `end_ns`.
    fn put(&mut self, (at_ns, end_ns): (u64, u64), look: Look, detail: &str, put: &mut Put<'_>) {
        let same = self.last == Some(look) && self.said == detail;
        if at_ns < end_ns && !same {
            put(at_ns, look, detail);
            self.last = Some(look);
            detail.clone_into(&mut self.said);
        }
    }
}
