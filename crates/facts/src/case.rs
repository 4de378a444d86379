//! One recording, what the user asks of it, and the facts that all questions stand on, each computed once and on demand.
//!
//! ```text
//! recording --> Input (opened) --> Case --+-- ledger()     the time of every vCPU, of all traces
//!                                         +-- losses()     what the host took of it; every reading gives both
//!                                         +-- windows()    the same in eight windows, out of one reading
//!                                         +-- chain_ranks() which chains stand for the others, out of one reading
//!                                         +-- stacks()     each vCPU's time by state and exit, out of one reading
//!                                         +-- machines()   their snapshots, opened
//!                                         +-- benches()    their bench results, read
//!                                         +-- judged()     the goals of the budget, judged
//!                                         +-- results()    what programs that measure latencies found, read
//!                                         +-- attributed() who took the time of their samples
//!                                         +-- memo()       what single questions compute once
//!                                         +-- before(), again()   the cases that this one is compared with, or repeats
//!                                         +-- given()      what the user states
//!                                         +-- events()     what was traced, on the axis of the recording
//!                                              |
//!                               Question: fn(&Case) -> Section
//! ```
//! A question takes a case and nothing else; what two questions need is a fact here, never the other's answer.

use crate::attribution::{self, Attributed, Attribution, Unattributed};
use crate::benches::Benches;
use crate::budget::{self, Budget, Judged};
use crate::carried::Carried;
use crate::chains;
use crate::datapaths::Datapaths;
use crate::ledger::build::Ledger;
use crate::ledger::model::Flow;
use crate::ledger::{build, stacks};
use crate::losses::PartLosses;
use crate::machines::Machines;
use crate::memo::Memo;
use crate::on_axis::{self, Axis};
use crate::samples::ResultFiles;
use crate::samples::traced::{TracedSamples, with_traced};
use crate::windows::{self, Window};
use crate::{Given, Input};
use base::timeline::{ChainRanks, VcpuStacks};
use base::{Clock, Problem};
use std::any::Any;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use trace::{Event, Request, Totals};

/// Hears of bytes that are read, and bytes in all, as often as it changes; each walk over a trace begins anew.
type Progress = Box<dyn FnMut(u64, u64) + Send>;

pub struct Case {
    input: Arc<Input>,
    given: Given,
    before: Vec<Case>,
    again: Vec<Case>,
    progress: Mutex<Progress>,
    /// Facts that depend on the narrowing and on how traces are understood, and on nothing else that is given: cases share them.
    ledger: Arc<OnceLock<Ledger>>,
    windows: Arc<OnceLock<Vec<Vec<Window>>>>,
    chain_ranks: Arc<OnceLock<ChainRanks>>,
    stacks: Arc<OnceLock<Vec<VcpuStacks>>>,
    memo: Memo,
    judged: OnceLock<Vec<Judged>>,
    results: OnceLock<ResultFiles>,
    attributed: OnceLock<Attribution>,
    /// That of the only trace, where there is one alone.
    clock: OnceLock<Option<Clock>>,
}

/// Windows of a recording: enough for a spread, few enough to hold many exits each.
pub const WINDOWS: usize = 8;

impl Case {
    /// What is asked of `input`, with what the user states.
    pub fn new(input: impl Into<Arc<Input>>, given: Given) -> Self {
        let progress: Progress = Box::new(|_, _| {});
        Self {
            input: input.into(),
            given,
            before: Vec::new(),
            again: Vec::new(),
            progress: Mutex::new(progress),
            ledger: Arc::default(),
            windows: Arc::default(),
            chain_ranks: Arc::default(),
            memo: Memo::default(),
            stacks: Arc::default(),
            judged: OnceLock::new(),
            results: OnceLock::new(),
            attributed: OnceLock::new(),
            clock: OnceLock::new(),
        }
    }

    /// The same, and `progress` hears how far it is.
    #[must_use]
    pub fn with_progress(self, progress: impl FnMut(u64, u64) + Send + 'static) -> Self {
        Self { progress: Mutex::new(Box::new(progress)), ..self }
    }

    /// The same recording, asked with `given`; it is compared with nothing. What is read of the traces is not read again, unless the
    /// question is narrowed otherwise or the traces are understood otherwise.
    #[must_use]
    pub fn asked_with(&self, given: Given) -> Self {
        let is_same = self.given.narrow == given.narrow && self.given.traces == given.traces;
        let other = Self::new(Arc::clone(&self.input), given);
        if !is_same {
            return other;
        }
        Self {
            ledger: Arc::clone(&self.ledger),
            windows: Arc::clone(&self.windows),
            chain_ranks: Arc::clone(&self.chain_ranks),
            stacks: Arc::clone(&self.stacks),
            ..other
        }
    }

    /// The same, compared with what was recorded `before` a change, once more if it is already.
    #[must_use]
    pub fn compared_with(mut self, before: Case) -> Self {
        self.before.push(before);
        self
    }

    /// What was recorded `before` a change and `after` it as one case: the first after the change, compared with all before, and
    /// repeated by the others; `None` if nothing was recorded after it.
    pub fn of_sides(before: Vec<Case>, after: Vec<Case>) -> Option<Self> {
        let mut after = after.into_iter();
        let compared = before.into_iter().fold(after.next()?, Case::compared_with);
        Some(after.fold(compared, Case::recorded_again))
    }

    /// The same with another recording of the same configuration, for a comparison.
    #[must_use]
    pub fn recorded_again(mut self, again: Case) -> Self {
        self.again.push(again);
        self
    }

    pub fn input(&self) -> &Input {
        &self.input
    }

    /// What the user states.
    pub fn given(&self) -> &Given {
        &self.given
    }

    /// The cases before the change, where this one is compared with some.
    pub fn before(&self) -> &[Case] {
        &self.before
    }

    /// Other recordings of the same configuration.
    pub fn again(&self) -> &[Case] {
        &self.again
    }

    /// Where the time of every vCPU went, in all traces; reads them once.
    pub fn ledger(&self) -> &Flow {
        &self.walked().flow
    }

    /// What the host took from every vCPU, in the order of the ledger's parts; the same reading fills the ledger.
    pub fn losses(&self) -> &[PartLosses] {
        &self.walked().losses
    }

    fn walked(&self) -> &Ledger {
        let hear = &mut |done, all| self.hear(done, all);
        self.ledger.get_or_init(|| build::ledger(&self.input, &self.given, hear))
    }

    /// The traces, each cut into [`WINDOWS`] nearly equal windows; the same reading fills the ledger and the stacks.
    pub fn windows(&self) -> &[Vec<Window>] {
        self.windows.get_or_init(|| {
            let hear = &mut |done, all| self.hear(done, all);
            let (ledger, windows, stacks) = windows::build(&self.input, &self.given, WINDOWS, hear);
            // Where they are there already, they are the same.
            self.ledger.get_or_init(|| ledger);
            self.stacks.get_or_init(|| stacks);
            windows
        })
    }

    /// Which chains stand for the others; the same reading fills the ledger.
    pub fn chain_ranks(&self) -> &ChainRanks {
        self.chain_ranks.get_or_init(|| {
            let (ledger, ranks) = chains::build(&self.input, &self.given, &mut |done, all| self.hear(done, all));
            self.ledger.get_or_init(|| ledger);
            ranks
        })
    }

    /// What a question computes once for this case, whoever asks for it, under the type of the result.
    pub fn memo<T: Any + Send + Sync>(&self, compute: impl FnOnce(&Self) -> T) -> Arc<T> {
        self.memo.get(|| compute(self))
    }

    /// The time of each vCPU by state and by the exit that it worked on; the same reading fills the ledger.
    pub fn stacks(&self) -> &[VcpuStacks] {
        self.stacks.get_or_init(|| {
            let (ledger, stacks) = stacks::build(&self.input, &self.given, &mut |done, all| self.hear(done, all));
            self.ledger.get_or_init(|| ledger);
            stacks
        })
    }

    /// Tells what `request` wants of the events of trace `place` in their order, each with its time on the recording's axis,
    /// until `hear` breaks. Nothing is kept: each call is a walk of its own. A guest's event lies where its trace's alignment
    /// puts it; what nothing relates to the axis counts from its trace's own first event.
    ///
    /// # Panics
    /// If there is no such trace.
    pub fn events(
        &self,
        place: usize,
        request: &Request,
        hear: impl FnMut(&Event<'_>, u64) -> ControlFlow<()>,
    ) -> Totals {
        // Where there is one trace alone, its first event is the axis's, and nothing else needs to be known.
        let (axis, fitted) = if self.input.parts.len() > 1 {
            Axis::of(&self.input, self.ledger(), place)
        } else {
            let fit = || trace::calibrate::fit(self.input.parts[place].trace.as_ref());
            (Axis::Own, self.clock.get_or_init(fit).clone())
        };
        let progress = |done, all| self.hear(done, all);
        on_axis::events(&self.input, place, (request, fitted), &axis, progress, hear)
    }

    /// Which latencies are accepted: as the user states it, else as the recording does.
    pub fn budget(&self) -> Option<&Budget> {
        self.given.budget.as_ref().or_else(|| Some(&self.recorded_budget()?.value))
    }

    /// The budget that the recording carries, if it carries one.
    pub fn recorded_budget(&self) -> Option<&Carried<Budget>> {
        self.input.budget.as_ref()
    }

    /// The verdicts on the goals of the budget; without one there are none.
    pub fn judged(&self) -> &[Judged] {
        self.judged.get_or_init(|| self.budget().map_or_else(Vec::new, |budget| budget::judged(self, budget)))
    }

    /// What was wrong with the recordings, as far as they were read by now.
    pub fn problems(&self) -> impl Iterator<Item = &Problem> {
        let others = self.before.iter().chain(&self.again);
        others.flat_map(Case::own_problems).chain(self.own_problems())
    }

    fn own_problems(&self) -> impl Iterator<Item = &Problem> {
        let traces = self.ledger.get().into_iter().flat_map(|ledger| &ledger.flow.parts);
        self.input.problems.iter().chain(traces.flat_map(|part| &part.problems))
    }

    /// The snapshots of each machine that has some.
    pub fn machines(&self) -> &Machines {
        &self.input.machines
    }

    /// What datapaths carried, measured, and what switches printed.
    pub fn datapaths(&self) -> &Datapaths {
        &self.input.datapaths
    }

    pub fn benches(&self) -> &Benches {
        &self.input.benches
    }

    /// What programs that measure latencies found, and what traces tell of them, in the window that is asked for where there are times.
    pub fn results(&self) -> &ResultFiles {
        if self.input.parts.is_empty() {
            return &self.input.results;
        }
        let Ledger { flow, traced, .. } = self.walked();
        let window = self.given.narrow.window.filter(|_| !self.input.results.is_empty());
        if window.is_none() && traced.iter().all(TracedSamples::is_empty) {
            return &self.input.results;
        }
        self.results.get_or_init(|| {
            let all = with_traced(&self.input.results, flow, traced);
            match self.given.narrow.window {
                Some(window) => attribution::narrowed(&self.input, flow, &all, window),
                None => all,
            }
        })
    }

    /// What the traces show of the time of these samples, with a budget of those over its limits; of a machine's own threads that
    /// takes one more reading.
    pub fn attributed(&self) -> &[Attributed] {
        &self.attribution().found
    }

    /// The results of whose samples the traces tell nothing, and what is missing.
    pub fn unattributed(&self) -> &[Unattributed] {
        &self.attribution().missing
    }

    fn attribution(&self) -> &Attribution {
        self.attributed.get_or_init(|| {
            if self.input.parts.is_empty() || self.results().is_empty() {
                return Attribution::default();
            }
            let hear = &mut |done, all| self.hear(done, all);
            let asked = (&*self.input, &self.given, self.results());
            attribution::build(asked, (self.ledger(), self.losses()), self.budget(), hear)
        })
    }

    /// Says that `done` of `all` bytes of a walk are read.
    pub fn hear(&self, done: u64, all: u64) {
        // What panicked while it heard of a walk ended that walk, and says nothing of the next one.
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)(done, all);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain_plan::NO_PLAN;
    use base::recording::Recording;
    use std::path::Path;

    #[test]
    fn what_was_read_is_not_read_again_for_another_question_about_all_of_it() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/vmx-linux-shadow-on");
        let case = Case::new(Input::open(Recording::open(&path).unwrap(), NO_PLAN).unwrap(), Given::default());
        let budget = crate::budget::built_in("kvm4nfv-2015");
        let judged = case.asked_with(Given { budget, ..Given::default() });
        assert!(std::ptr::eq(case.ledger(), judged.ledger()));
        assert!(!judged.judged().is_empty() && case.judged().is_empty());
        let narrow = base::Narrow { vcpu: Some(0), ..base::Narrow::default() };
        assert!(!std::ptr::eq(case.ledger(), case.asked_with(Given { narrow, ..Given::default() }).ledger()));
    }
}
