//! Where was every vCPU at every instant, and which chain was open?
//!
//! ```text
//! walk --interval--> pieces of each thread --end of trace settles levels--> slices of a lane
//!      --exit------> why, joined with the handling that begins at the same instant
//!      --chain-----> [stop of L2 ... L2 runs again), with the lane's slices in between
//! ```
//! Built on request only; times count from the first event of the recording's lowest machine. Traces of guests have no
//! lanes here: what they did stands in the lanes of the machine below.

use super::model::{Flow, PartFlow, Vcpu};
use super::states;
use crate::shared::machine::{Chain, Exit};
use crate::shared::reasons::Reason;
use crate::shared::roles;
use crate::shared::settle::settled;
use crate::shared::state::{STATES, State};
use crate::shared::vendor;
use crate::shared::walk::{Preemptor, Sink, Walk};
use crate::{Input, Options, Part};
use base::timeline::{Columns, Lane, LaneId, LaneKind, Marker, StateId};
use base::{Clock, Span};
use trace::replay::Listener;
use trace::{Event, Reading};

/// A flow to be drawn.
#[derive(Debug, Clone)]
pub struct Drawn {
    /// A lane for each vCPU, in the order of VM and vCPU.
    pub timeline: Columns,
    /// All chains, by lane and time.
    pub chains: Vec<DrawnChain>,
    /// The vCPUs of the first lanes, by lane.
    pub vcpus: Vec<DrawnVcpu>,
    /// What is not drawn, and why, in sentences.
    pub notes: Vec<String>,
}

/// Whose lane it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DrawnVcpu {
    /// VM.
    pub vm: String,
    /// Its vCPU.
    pub vcpu: u32,
    /// Thread.
    pub tid: i32,
}

/// One reflected exit of a nested guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DrawnChain {
    /// The vCPU's lane.
    pub lane: LaneId,
    /// Why the nested guest stopped, as its hypervisor is told.
    pub reason: String,
    /// From there until it ran again; to its start for a censored chain.
    pub span: Span,
    /// Exits of the guest hypervisor in it, the last entry request included.
    pub exits: u64,
    /// Their reasons in order, as many as were kept.
    pub sequence: Vec<String>,
    /// The span without time off the CPU; `None` for a censored chain.
    pub cost_ns: Option<u64>,
}

/// Draws the lowest machines of `flow`, which was built from `input` with the same `options`.
pub fn draw(input: &Input, options: &Options, flow: &Flow, progress: &mut dyn FnMut(u64, u64)) -> Drawn {
    let answering = input.parts.iter().zip(&flow.parts).filter(|(_, flow)| flow.twin_of.is_none());
    let parts: Vec<(&Part, &PartFlow)> = answering.filter(|(_, flow)| flow.aligned.is_none()).collect();
    let mut table = StateTable::default();
    let drafts: Vec<Draft> = parts.iter().map(|(part, flow)| draft(part, flow, options, progress)).collect();
    let numbers: Vec<Vec<StateId>> =
        parts.iter().zip(&drafts).map(|((_, flow), draft)| table.add(flow, draft)).collect();
    let mut drawn =
        Drawn { timeline: Columns::new(table.states), chains: Vec::new(), vcpus: Vec::new(), notes: Vec::new() };
    for (((_, flow), draft), numbers) in parts.iter().zip(&drafts).zip(&numbers) {
        for vcpu in &flow.vcpus {
            let Some(thread) = draft.threads.iter().find(|thread| thread.tid == vcpu.tid) else { continue };
            drawn.add(vcpu, thread, (draft.origin_ns, numbers));
        }
        drawn.timeline.markers.extend(draft.losses.iter().map(|(cpu, at_ns, events)| Marker {
            lane: None,
            at_ns: at_ns.saturating_sub(draft.origin_ns),
            label: if *events > 0 {
                format!("{events} events lost on CPU {cpu}")
            } else {
                format!("events lost on CPU {cpu}")
            },
        }));
    }
    drawn.timeline.markers.sort_by_key(|marker| marker.at_ns);
    drawn
}

/// The names of all states that occur; parts of different levels have different ones.
#[derive(Default)]
struct StateTable {
    states: Vec<base::timeline::State>,
}

impl StateTable {
    /// Adds what is missing of a part's states; returns their numbers by [`State::index`].
    fn add(&mut self, flow: &PartFlow, draft: &Draft) -> Vec<StateId> {
        let mut occurs = [false; STATES];
        let pieces = draft.threads.iter().flat_map(|thread| &thread.pieces);
        pieces.for_each(|(_, state)| occurs[state.index()] = true);
        let mut number = |state: State| {
            let name = states::name(flow.level, state);
            let known = self.states.iter().position(|known| known.name == name);
            let place = known.unwrap_or_else(|| {
                self.states.push(base::timeline::State { name, title: states::title(flow.level, state) });
                self.states.len() - 1
            });
            StateId(place as u8)
        };
        // A state that does not occur is never asked for its number.
        (0..STATES).map(|index| if occurs[index] { number(State::of_index(index)) } else { StateId(0) }).collect()
    }
}

impl Drawn {
    fn add(&mut self, vcpu: &Vcpu, thread: &Thread, (origin_ns, numbers): (u64, &[StateId])) {
        let title = format!("vCPU {}", vcpu.vcpu);
        let lane = Lane { kind: LaneKind::Vcpu, group: vcpu.vm.clone(), title, tid: Some(vcpu.tid) };
        let lane = self.timeline.add_lane(lane);
        self.vcpus.push(DrawnVcpu { vm: vcpu.vm.clone(), vcpu: vcpu.vcpu, tid: vcpu.tid });
        let mut exits = thread.exits.iter().peekable();
        for (from_ns, state) in &thread.pieces {
            while exits.next_if(|(at_ns, ..)| at_ns < from_ns).is_some() {}
            let detail = match (state, exits.peek()) {
                (State::Handling(_), Some((at_ns, reason))) if at_ns == from_ns => reason.name(),
                _ => String::new(),
            };
            self.timeline.push(lane, from_ns.saturating_sub(origin_ns), numbers[state.index()], &detail);
        }
        self.timeline.end(lane, thread.end_ns.saturating_sub(origin_ns));
        self.chains.extend(thread.chains.iter().map(|chain| DrawnChain {
            lane,
            reason: chain.reason.name(),
            span: Span {
                from_ns: chain.start_ns.saturating_sub(origin_ns),
                to_ns: chain.end_ns.saturating_sub(origin_ns),
            },
            exits: chain.exits,
            sequence: chain.sequence.iter().map(|reason| reason.name()).collect(),
            cost_ns: chain.cost_ns,
        }));
    }
}

/// What the walk told of one part.
struct Draft {
    threads: Vec<Thread>,
    origin_ns: u64,
    /// CPU, when, how many events.
    losses: Vec<(u32, u64, u64)>,
}

/// What the walk told of one thread, in absolute time.
#[derive(Default)]
struct Thread {
    tid: i32,
    /// When a piece begins, and its state; pieces touch.
    pieces: Vec<(u64, State)>,
    end_ns: u64,
    exits: Vec<(u64, Reason)>,
    chains: Vec<ChainPiece>,
}

struct ChainPiece {
    reason: Reason,
    start_ns: u64,
    end_ns: u64,
    exits: u64,
    sequence: Vec<Reason>,
    cost_ns: Option<u64>,
}

fn draft(part: &Part, flow: &PartFlow, options: &Options, progress: &mut dyn FnMut(u64, u64)) -> Draft {
    let trace = part.trace.as_ref();
    let facts = trace.facts();
    let has = |name: &str| facts.event_types.iter().any(|event| event.name == name);
    let request = roles::request(&options.ignore_events, has);
    let mut walk = Walk::new(Keeper::default());
    walk.isa = vendor::of(trace);
    walk.seen.wakeup = has("kvm_vcpu_wakeup");
    let mut feed = Feed { walk, progress };
    let fitted: Option<Clock> = Some(flow.clock.clone());
    let totals = trace::replay(trace, &Reading { request: &request, fitted }, &mut feed);
    let mut walk = feed.walk;
    let (origin_ns, end_ns) = totals.span_ns.unwrap_or((0, 0));
    walk.end(end_ns);
    let seen = walk.seen;
    let mut threads = std::mem::take(&mut walk.sink.threads);
    threads.resize_with(walk.threads.len(), Thread::default);
    for (kept, thread) in threads.iter_mut().zip(&walk.threads) {
        kept.tid = thread.tid;
        for (_, state) in &mut kept.pieces {
            *state = match *state {
                State::Guest(level) => State::Guest(settled(level, thread, &seen)),
                State::Handling(level) => State::Handling(settled(level, thread, &seen)),
                plain => plain,
            };
        }
    }
    let losses = walk.losses.iter().map(|(cpu, at_ns, events, _)| (*cpu, *at_ns, *events)).collect();
    Draft { threads, origin_ns, losses }
}

struct Feed<'a, 'p> {
    walk: Walk<Keeper>,
    progress: &'p mut (dyn FnMut(u64, u64) + 'a),
}

impl Listener for Feed<'_, '_> {
    fn start(&mut self, origin_ns: u64) {
        self.walk.start(origin_ns);
    }

    fn event(&mut self, event: &Event<'_>) {
        self.walk.event(event);
    }

    fn progress(&mut self, done: u64, all: u64) {
        (self.progress)(done, all);
    }
}

/// Keeps what the walk tells.
#[derive(Default)]
struct Keeper {
    threads: Vec<Thread>,
}

impl Keeper {
    fn of(&mut self, thread: usize) -> &mut Thread {
        if thread >= self.threads.len() {
            self.threads.resize_with(thread + 1, Thread::default);
        }
        &mut self.threads[thread]
    }
}

impl Sink for Keeper {
    fn interval(&mut self, thread: usize, state: State, from_ns: u64, to_ns: u64) {
        let thread = self.of(thread);
        thread.pieces.push((from_ns, state));
        thread.end_ns = thread.end_ns.max(to_ns);
    }

    fn exit(&mut self, thread: usize, exit: &Exit) {
        self.of(thread).exits.push((exit.at_ns, exit.reason));
    }

    fn chain(&mut self, thread: usize, chain: &Chain) {
        self.of(thread).chains.push(ChainPiece {
            reason: chain.reason,
            start_ns: chain.start_ns,
            end_ns: chain.closed_ns.unwrap_or(chain.start_ns),
            exits: chain.exits,
            sequence: chain.sequence.to_vec(),
            cost_ns: chain.cost_ns,
        });
    }

    fn preempted(&mut self, _: usize, _: &Preemptor, _: u64, _: u64) {}
}
