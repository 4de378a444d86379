use super::*;
use anyhow::anyhow;

/// What happens at a call.
#[derive(Clone, Copy, PartialEq)]
enum Event {
    Stops,
    Fails,
}

/// An experiment whose measurements the test states, and which is stopped or fails at the call that it names.
struct Fake {
    amounts: [[f64; 4]; 2],
    proposes: bool,
    keeps: bool,
    event: Option<(usize, Event)>,
    calls: Vec<&'static str>,
    /// Changes that hold at the moment.
    in_force: u32,
}

impl Fake {
    fn of(before: [f64; 4], after: [f64; 4]) -> Self {
        let (calls, amounts) = (Vec::new(), [before, after]);
        Self { amounts, proposes: true, keeps: false, event: None, calls, in_force: 0 }
    }

    /// Notes a call; false: the user ends it there.
    fn goes_on(&mut self, call: &'static str) -> anyhow::Result<bool> {
        self.calls.push(call);
        match self.event {
            Some((at, event)) if at + 1 == self.calls.len() => match event {
                Event::Stops => Ok(false),
                Event::Fails => Err(anyhow!("{call} failed")),
            },
            Some(_) | None => Ok(true),
        }
    }

    fn effect(mut self) -> Effect {
        match run(&mut self, 4).unwrap() {
            Ended::Compared(_, comparison) if self.in_force == 0 => comparison.effect,
            other => panic!("{other:?}, {} in force", self.in_force),
        }
    }
}

impl Experiment for Fake {
    type Sample = f64;
    type Proposal = ();
    type Made = ();
    type Found = Comparison;

    fn begin(&mut self) -> anyhow::Result<bool> {
        self.goes_on("begin")
    }

    fn measure(&mut self, state: State) -> anyhow::Result<Option<f64>> {
        let (call, amounts) = match state {
            State::Before => ("before", self.amounts[0]),
            State::After => ("after", self.amounts[1]),
        };
        assert_eq!(self.in_force, u32::from(state == State::After), "{call} is measured in its state");
        let turn = self.calls.iter().filter(|earlier| **earlier == call).count();
        Ok(self.goes_on(call)?.then_some(amounts[turn]))
    }

    fn propose(&mut self) -> anyhow::Result<Option<()>> {
        Ok((self.goes_on("propose")? && self.proposes).then_some(()))
    }

    fn make(&mut self, (): &()) -> anyhow::Result<Option<()>> {
        let made = self.goes_on("make")?.then_some(());
        self.in_force += u32::from(made.is_some());
        Ok(made)
    }

    fn undo(&mut self, (): ()) -> anyhow::Result<()> {
        self.in_force -= 1;
        self.goes_on("undo").map(drop)
    }

    fn compare(&self, runs: &Runs<f64>) -> Comparison {
        Comparison::of(&runs.before, &runs.after, Better::Lower)
    }

    fn keeps(&mut self, _runs: &Runs<f64>, found: &Comparison) -> anyhow::Result<bool> {
        self.goes_on("keeps")?;
        Ok(self.keeps && found.effect == Effect::Helped)
    }
}

const SLOW: [f64; 4] = [0.9, 0.95, 0.92, 0.91];
const FAST: [f64; 4] = [0.1, 0.12, 0.11, 0.1];

#[test]
fn a_change_helps_does_nothing_or_harms() {
    assert_eq!(Fake::of(SLOW, FAST).effect(), Effect::Helped);
    assert_eq!(Fake::of(SLOW, [0.0; 4]).effect(), Effect::Helped);
    assert_eq!(Fake::of(SLOW, SLOW).effect(), Effect::NoDifference);
    assert_eq!(Fake::of([0.0; 4], [0.0; 4]).effect(), Effect::NoDifference);
    assert_eq!(Fake::of(FAST, SLOW).effect(), Effect::Harmed);
    let effect = |before: &[f64], after: &[f64], better| Comparison::of(before, after, better).effect;
    assert_eq!(effect(&FAST, &SLOW, Better::Higher), Effect::Helped);
    assert_eq!(effect(&SLOW, &[0.0; 4], Better::Higher), Effect::NoDifference);
    assert_eq!(effect(&SLOW[..1], &FAST[..1], Better::Lower), Effect::Unknown);
}

#[test]
fn both_states_take_turns() {
    let mut fake = Fake::of(SLOW, FAST);
    run(&mut fake, 2).unwrap();
    let turn = ["before", "make", "after"];
    let expected = [&["begin", "before", "propose", "make", "after", "undo"][..], &turn, &["keeps", "undo"]].concat();
    assert_eq!(fake.calls, expected);
}

#[test]
fn what_helped_stays_only_where_the_experiment_keeps_it() {
    for (after, keeps, stays) in [(FAST, true, 1), (FAST, false, 0), (SLOW, true, 0)] {
        let mut fake = Fake { keeps, ..Fake::of(SLOW, after) };
        run(&mut fake, 4).unwrap();
        assert_eq!(fake.in_force, stays);
    }
}

#[test]
fn where_nothing_is_proposed_nothing_is_changed() {
    let mut fake = Fake { proposes: false, ..Fake::of(SLOW, FAST) };
    assert!(matches!(run(&mut fake, 4).unwrap(), Ended::Unchanged(runs) if runs.before == [0.9]));
    assert_eq!(fake.calls, ["begin", "before", "propose"]);
}

#[test]
fn wherever_it_is_stopped_or_fails_it_is_undone() {
    let mut whole = Fake::of(SLOW, FAST);
    run(&mut whole, 3).unwrap();
    for (at, call) in whole.calls.iter().enumerate() {
        let mut stopped = Fake { event: Some((at, Event::Stops)), keeps: true, ..Fake::of(SLOW, FAST) };
        let ended = run(&mut stopped, 3).unwrap();
        let may_be_stopped = matches!(*call, "begin" | "before" | "make" | "after");
        assert_eq!(matches!(ended, Ended::Interrupted), may_be_stopped, "{call} at {at}");
        if may_be_stopped {
            assert_eq!(stopped.in_force, 0, "stopped in {call} at {at}");
        }
        let mut failed = Fake { event: Some((at, Event::Fails)), ..Fake::of(SLOW, FAST) };
        let error = run(&mut failed, 3).unwrap_err().to_string();
        assert_eq!((error, failed.in_force), (format!("{call} failed"), 0), "at {at}");
    }
}
