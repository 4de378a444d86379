//! `--budget`, or the budget of the recording: how verdicts decide the exit status, and as which tests build servers read them.
//!
//! ```text
//! PASS                          passed
//! FAIL                          failure    exit status 3
//! INCONCLUSIVE, NOT MEASURED    skipped; with --strict an error, exit status 3
//! ```

use crate::arguments::BudgetOption;
use analysis::Case;
use analysis::facts::budget::{Budget, Goal, Judged, Verdict, exact};
use clap::{Args, ValueHint};
use process::Staging;
use process::exit::{Exit, WrongUse};
use process::interrupt::Interrupt;
use show::junit::{self, Outcome, Suite};
use std::path::PathBuf;

/// Options of a budget and its verdicts.
#[derive(Args)]
pub(crate) struct JudgeOptions {
    #[command(flatten)]
    budget: BudgetOption,
    /// Also exit with status 3 if a goal of the budget is INCONCLUSIVE or NOT MEASURED, not only on FAIL
    #[arg(long, help_heading = "Judge by a latency budget")]
    strict: bool,
    /// Also write the verdicts of the budget to FILE, as JUnit XML
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Judge by a latency budget")]
    junit: Option<PathBuf>,
}

impl JudgeOptions {
    /// The budget; a file of verdicts that cannot be written is refused before the work is done.
    pub(crate) fn budget(&self, force: bool) -> anyhow::Result<Option<Budget>> {
        self.junit.as_deref().map_or(Ok(()), |file| Staging::check_file(file, force))?;
        self.budget.read()
    }

    /// The verdicts on a case as tests.
    pub(crate) fn suite(&self, case: &Case) -> Option<Suite> {
        let budget = case.budget()?;
        let of = |judged: &Judged| test(budget, judged, self.strict);
        let name = format!("{}: {}", budget.name, case.input().recording.title());
        Some(Suite { name, cases: case.judged().iter().map(of).collect() })
    }

    /// Writes the file of verdicts, and says how the command ends that would end with `exit` else.
    pub(crate) fn end(&self, suites: &[Suite], exit: Exit, interrupt: &Interrupt) -> anyhow::Result<Exit> {
        if suites.is_empty() && (self.strict || self.junit.is_some()) {
            let why =
                "--strict and --junit need a budget: name one with --budget, because no recording has one of its own";
            return Err(WrongUse(why.to_owned()).into());
        }
        if let Some(file) = &self.junit {
            Staging::new(interrupt).file(file, |out| junit::write(out, suites))?;
        }
        let is_bad = |outcome: &Outcome| matches!(outcome, Outcome::Failed(..) | Outcome::Error(..));
        let bad = suites.iter().flat_map(|suite| &suite.cases).any(|case| is_bad(&case.outcome));
        Ok(if bad { Exit::FailOn } else { exit })
    }
}

/// A verdict as a test, called by its goal and by whom it is of.
fn test(budget: &Budget, judged: &Judged, strict: bool) -> junit::Case {
    let (goal, judgement) = (&budget.goals[judged.goal], &judged.judgement);
    let verdict = judgement.verdict;
    let why = judgement.why().unwrap_or_default();
    let outcome = match verdict {
        Verdict::Pass => Outcome::Passed,
        Verdict::Fail => Outcome::Failed(verdict.name(), measured(goal, judged)),
        Verdict::Inconclusive | Verdict::NotMeasured if strict => Outcome::Error(verdict.name(), why),
        Verdict::Inconclusive | Verdict::NotMeasured => Outcome::Skipped(format!("{}: {why}", verdict.name())),
    };
    let class = format!("{}.{}", budget.name, goal.id);
    junit::Case { class, name: name(judged), outcome, text: format!("{}: {}", verdict.name(), measured(goal, judged)) }
}

fn name(judged: &Judged) -> String {
    let whose = &judged.whose;
    let words = [
        whose.vcpu.map(|vcpu| format!("{} {vcpu}", if whose.vm.is_some() { "vCPU" } else { "CPU" })),
        whose.vm.as_ref().map(|vm| format!("of {vm}")),
        whose.thread.as_ref().map(|thread| format!("thread {thread}")),
        whose.file.as_ref().map(|file| format!("in {file}")),
        whose.machine.as_ref().map(|machine| format!("on {machine}")),
        whose.run.map(|run| format!("migration {run}")),
    ];
    let words: Vec<String> = words.into_iter().flatten().collect();
    if words.is_empty() { "nothing in the recording".to_owned() } else { words.join(" ") }
}

fn measured(goal: &Goal, judged: &Judged) -> String {
    let limit = format!("limit {} {}", goal.op.name(), exact(goal.limit_ns));
    let Some(bounds) = judged.judgement.bounds else { return limit };
    let high = match bounds.high_ns {
        Some(high_ns) if high_ns == bounds.value_ns => String::new(),
        Some(high_ns) => format!(", at most {}", exact(high_ns)),
        None => ", at most unknown".to_owned(),
    };
    let at = judged.at_ns.map_or(String::new(), |at_ns| format!(" at {:.9} s", at_ns as f64 / 1e9));
    format!("{} {} {}{high}{at}, {limit}", goal.metric.name(), goal.stat.name(), exact(bounds.value_ns))
}
