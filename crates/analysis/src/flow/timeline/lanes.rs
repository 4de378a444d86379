//! What each lane shows, piece by piece: a vCPU, a CPU, a thread of the VMM's side.
//!
//! ```text
//! holders of a CPU   | CPU 0/KVM (170)                       | swapper        | vhost-4211 (4230) |
//! that vCPU's pieces | guest_l2 | handling_l2 | irq | ...    |                |                   |
//! interrupts above   |          |             | nvme0q1 |    | - local_timer  |                   |
//! the CPU's lane     | guest_l2 | handling_l2 | irq | ...    | idle | irq     | task              |
//! ```
//! A CPU's lane is cut out of the vCPUs' own pieces wherever a vCPU holds it, so that both say the same to the nanosecond.

use super::draft::{Draft, Thread};
use super::tasks::Doing;
use super::watch::Above;
use crate::flow::states;
use crate::shared::reasons::Reason;
use crate::shared::state::{STATES, State};
use base::Level;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// What a piece of a lane shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// A state of the ledger.
    Ledger(State),
    /// A CPU runs a task that is no vCPU.
    Task,
    /// A CPU runs nothing.
    Idle,
    /// A thread runs.
    Running,
    /// A thread waits for a CPU.
    Runnable,
    /// A thread sleeps.
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
pub const LOOKS: usize = STATES + 5;

impl Look {
    /// Position in arrays of [`LOOKS`] entries.
    pub fn index(self) -> usize {
        match self {
            Look::Ledger(state) => state.index(),
            own => STATES + OWN.iter().position(|(look, ..)| *look == own).unwrap_or(0),
        }
    }

    /// Its name and title in the trace of a machine at `host`; `inside` tells the states of a guest's own kernel from
    /// those of the machine below.
    pub fn named(index: usize, host: Level, inside: bool) -> base::timeline::State {
        let (name, title) = match index.checked_sub(STATES) {
            Some(own) => (OWN[own].1.to_owned(), OWN[own].2.to_owned()),
            None => {
                let state = State::of_index(index);
                let of_kernel = inside && matches!(state, State::Handling(_));
                let by = if of_kernel { format!("_by_{}", host.to_string().to_lowercase()) } else { String::new() };
                (states::name(host, state) + &by, states::title(host, state))
            }
        };
        base::timeline::State { name, title }
    }
}

/// Who hears of pieces: from when on, what, and what is known beside.
pub type Put<'a> = dyn FnMut(u64, Look, &str) + 'a;

/// The pieces of a vCPU: a slice of the work on an exit says why the guest was left.
pub fn vcpu(thread: &Thread, put: &mut Put<'_>) {
    let mut exits = thread.exits.iter().peekable();
    let mut names: FxHashMap<Reason, String> = FxHashMap::default();
    for (from_ns, state) in &thread.pieces {
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

/// The pieces of CPU `number`: a slice says which task it ran, or which interrupt.
pub fn cpu(draft: &Draft, number: usize, names: &BTreeMap<i32, String>, put: &mut Put<'_>) {
    let cpu = &draft.watch.cpus[number];
    let mut put = once(draft.span.to_ns, put);
    put(draft.span.from_ns, Look::Ledger(State::Unknown), "");
    for (place, (from_ns, holder)) in cpu.holders.iter().enumerate() {
        let to_ns = cpu.holders.get(place + 1).map_or(draft.span.to_ns, |(at_ns, _)| *at_ns);
        let vcpu = holder.and_then(|tid| draft.thread(tid)).filter(|thread| thread.is_vcpu);
        let name = holder.and_then(|tid| names.get(&tid)).map_or("", String::as_str);
        if let Some(thread) = vcpu {
            held(draft, (thread, name), (*from_ns, to_ns), &mut |at_ns| cpu.above_at(at_ns), &mut put);
            continue;
        }
        let below = match holder {
            None => Look::Ledger(State::Unknown),
            Some(0) => Look::Idle,
            Some(_) => Look::Task,
        };
        let first = cpu.above.partition_point(|(at_ns, _)| at_ns <= from_ns);
        let inside = cpu.above[first..].iter().take_while(|(at_ns, _)| *at_ns < to_ns);
        for (at_ns, above) in [(*from_ns, cpu.above_at(*from_ns))].into_iter().chain(inside.copied()) {
            match above {
                Some(Above { state, name }) => {
                    put(at_ns, Look::Ledger(state), &draft.watch.names[name as usize]);
                }
                None => put(at_ns, below, if below == Look::Idle { "" } else { name }),
            }
        }
    }
}

/// The pieces of a vCPU while it holds a CPU; time that it cannot have spent there is unknown.
fn held(
    draft: &Draft,
    (thread, name): (&Thread, &str),
    (from_ns, to_ns): (u64, u64),
    above: &mut dyn FnMut(u64) -> Option<Above>,
    put: &mut Put<'_>,
) {
    put(from_ns, Look::Ledger(State::Unknown), name);
    let first = thread.pieces.partition_point(|(at_ns, _)| *at_ns <= from_ns).saturating_sub(1);
    for (at_ns, state) in thread.pieces[first..].iter().take_while(|(at_ns, _)| *at_ns < to_ns) {
        let at_ns = (*at_ns).max(from_ns);
        match state {
            state if state.is_off() => put(at_ns, Look::Ledger(State::Unknown), name),
            State::Irq | State::Softirq => {
                let known = above(at_ns).filter(|above| above.state == *state);
                put(at_ns, Look::Ledger(*state), known.map_or("", |known| &draft.watch.names[known.name as usize]));
            }
            State::Nmi => put(at_ns, Look::Ledger(State::Nmi), "NMI"),
            state => put(at_ns, Look::Ledger(*state), name),
        }
    }
}

/// The pieces of a thread that is no vCPU: a slice says on which CPU it ran.
pub fn thread(draft: &Draft, tid: i32, put: &mut Put<'_>) {
    let mut put = once(draft.span.to_ns, put);
    put(draft.span.from_ns, Look::Ledger(State::Unknown), "");
    for (at_ns, doing) in draft.tasks.by_tid.get(&tid).into_iter().flatten() {
        match doing {
            Doing::Running(cpu) => put(*at_ns, Look::Running, &format!("CPU {cpu}")),
            Doing::Runnable => put(*at_ns, Look::Runnable, ""),
            Doing::Sleeping => put(*at_ns, Look::Sleeping, ""),
            Doing::Unknown => put(*at_ns, Look::Ledger(State::Unknown), ""),
        }
    }
}

/// Passes on what differs from the piece before, up to `end_ns`.
fn once<'a>(end_ns: u64, put: &'a mut Put<'_>) -> impl FnMut(u64, Look, &str) + 'a {
    let (mut last, mut said) = (None, String::new());
    move |at_ns, look, detail| {
        let same = last == Some(look) && said == detail;
        if at_ns < end_ns && !same {
            put(at_ns, look, detail);
            last = Some(look);
            detail.clone_into(&mut said);
        }
    }
}
