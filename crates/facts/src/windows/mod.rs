//! What happened in each of several windows of a recording, out of one walk: a recording as a whole has no spread, its
//! windows have.
//!
//! ```text
//! walk --Sink--> Tally         the ledger of the whole
//!         \----> Sliced        states, exits and chains of each vCPU thread in short slices of time
//! events  -----> Sliced.tasks  when every task ran and waited
//!                  |
//!               [`Windows`]    nearly equal windows of whole slices
//! ```

mod slices;
pub mod tasks;

use crate::ledger::build::{Ledger, build_with};
use crate::ledger::extra::Extra;
use crate::ledger::model::PartFlow;
use crate::ledger::stacks::{self, Stacks};
use crate::{Given, Input};
use base::timeline::VcpuStacks;
use base::{Histogram, Span};
use rustc_hash::FxHashMap;
use slices::{Merge, Slices};
use std::collections::BTreeMap;
use tasks::{TaskTimes, Tasks};
use trace::Event;
use walk::events::Reason;
use walk::state::STATES;
use walk::state::{State, TracedLevel};
use walk::thread::{Chain, Exit, Thread};

#[derive(Debug)]
pub struct Window {
    /// Where it lies, on the trace's own clock.
    pub span: Span,
    pub vcpus: BTreeMap<i32, VcpuWindow>,
    /// By name, all tasks; `None` if the trace has no switches.
    pub tasks: Option<BTreeMap<String, TaskTimes>>,
}

#[derive(Debug, Clone)]
pub struct VcpuWindow {
    /// Time in each state, by [`State::index`].
    pub states_ns: [u64; STATES],
    pub exits: FxHashMap<(TracedLevel, Reason), u64>,
    /// Exits of each closed chain that began here, by its reason.
    pub chains: FxHashMap<Reason, Histogram>,
}

impl Default for VcpuWindow {
    fn default() -> Self {
        Self { states_ns: [0; STATES], exits: FxHashMap::default(), chains: FxHashMap::default() }
    }
}

impl VcpuWindow {
    /// Time in all states.
    pub fn wall_ns(&self) -> u64 {
        self.states_ns.iter().sum()
    }

    /// The same with each level as what it turned out to be at the end of the trace.
    fn releveled(mut self, to: impl Fn(TracedLevel) -> TracedLevel) -> Self {
        for (index, ns) in std::mem::replace(&mut self.states_ns, [0; STATES]).into_iter().enumerate() {
            let state = match State::of_index(index) {
                State::Guest(level) => State::Guest(to(level)),
                State::Handling(level) => State::Handling(to(level)),
                plain => plain,
            };
            self.states_ns[state.index()] += ns;
        }
        for ((level, reason), count) in std::mem::take(&mut self.exits) {
            *self.exits.entry((to(level), reason)).or_default() += count;
        }
        self
    }
}

/// By number of the thread in the walk.
#[derive(Debug, Default)]
struct ByThread(FxHashMap<usize, VcpuWindow>);

impl Merge for ByThread {
    fn merge(&mut self, other: Self) {
        for (thread, more) in other.0 {
            let sum = self.0.entry(thread).or_default();
            sum.states_ns.iter_mut().zip(more.states_ns).for_each(|(sum, ns)| *sum += ns);
            more.exits.into_iter().for_each(|(key, count)| *sum.exits.entry(key).or_default() += count);
            more.chains.into_iter().for_each(|(reason, exits)| sum.chains.entry(reason).or_default().merge(&exits));
        }
    }
}

/// Sums up slices of a walk.
#[derive(Debug)]
pub(crate) struct Sliced {
    threads: Slices<ByThread>,
    tasks: Tasks,
    /// Thread ids by number.
    tids: Vec<i32>,
}

impl Default for Sliced {
    fn default() -> Self {
        let all = Span { from_ns: 0, to_ns: u64::MAX };
        Self { threads: Slices::new(all), tasks: Tasks::new(all), tids: Vec::new() }
    }
}

impl Sliced {
    pub(crate) fn begin(&mut self, window: Span) {
        (self.threads, self.tasks) = (Slices::new(window), Tasks::new(window));
    }

    pub(crate) fn event(&mut self, event: &Event<'_>) {
        self.tasks.event(event);
    }

    pub(crate) fn interval(&mut self, thread: usize, state: State, from_ns: u64, to_ns: u64) {
        let index = state.index();
        self.threads.spread(from_ns, to_ns, |slice, ns| slice.0.entry(thread).or_default().states_ns[index] += ns);
    }

    pub(crate) fn exit(&mut self, thread: usize, exit: &Exit) {
        if let Some(slice) = self.threads.at(exit.at_ns) {
            *slice.0.entry(thread).or_default().exits.entry((exit.level, exit.reason)).or_default() += 1;
        }
    }

    pub(crate) fn chain(&mut self, thread: usize, chain: &Chain) {
        if chain.is_undisturbed()
            && let Some(slice) = self.threads.at(chain.start_ns)
        {
            slice.0.entry(thread).or_default().chains.entry(chain.reason).or_default().record(chain.exits);
        }
    }

    pub(crate) fn end(&mut self, threads: &[Thread]) {
        self.tids = threads.iter().map(|thread| thread.tid).collect();
    }

    fn windows(self, count: usize, part: &PartFlow) -> Vec<Window> {
        let end_ns = part.span.from_ns.saturating_add(part.window.to_ns);
        let tids = self.tids;
        let by_tid = |slice: ByThread| {
            let known = slice.0.into_iter().filter_map(|(thread, sums)| {
                let tid = *tids.get(thread)?;
                let levels = part.settled.get(&tid)?;
                Some((tid, sums.releveled(|level| levels[level.index()])))
            });
            known.collect::<BTreeMap<_, _>>()
        };
        let tasks = self.tasks.windows(count, end_ns);
        let mut tasks =
            tasks.map_or_else(|| vec![None; count], |windows| windows.into_iter().map(Some).collect()).into_iter();
        let threads = self.threads.windows(count, end_ns).into_iter();
        threads.map(|(span, slice)| Window { span, vcpus: by_tid(slice), tasks: tasks.next().flatten() }).collect()
    }
}

/// The ledger of the whole, `count` windows of each trace, and the time of each vCPU by state and exit.
pub fn build(
    input: &Input,
    given: &Given,
    count: usize,
    progress: &mut dyn FnMut(u64, u64),
) -> (Ledger, Vec<Vec<Window>>, Vec<VcpuStacks>) {
    let extra = || Extra { sliced: Some(Sliced::default()), stacks: Some(Stacks::default()), ranking: None };
    let (ledger, mut extras) = build_with(input, given, extra, progress);
    let stacks = stacks::of_parts(&ledger, given, extras.iter_mut().filter_map(|extra| extra.stacks.take()));
    let sliced = extras.into_iter().filter_map(|extra| extra.sliced);
    let windows = sliced.zip(&ledger.flow.parts).map(|(sliced, part)| sliced.windows(count, part)).collect();
    (ledger, windows, stacks)
}
