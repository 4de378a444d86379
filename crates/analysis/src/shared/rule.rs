//! One shape of a rule for all questions: what it is called, why it costs, what to type, and what its check saw.
//!
//! ```text
//! RULES: Rule<check> --check(model)--> Hit (this subject, these numbers) --Rule::finding--> Finding
//! ```
//! Rules are rows of tables (`rules.rs` of each question); a check that lacks a fact returns nothing.

use base::{Change, Cost, Evidence, Finding, Level, Needs, Severity};

/// One rule; `Check` is the function that looks at what this question knows.
pub struct Rule<Check> {
    /// The question's three letters, a dash and a word: `PLC-OVERLAP`.
    pub id: &'static str,
    /// Returns what it saw, once for each subject.
    pub check: Check,
    /// Why this happens or costs.
    pub why: &'static str,
    /// What to type.
    pub fix: &'static [&'static str],
    /// The way back.
    pub undo: &'static [&'static str],
    /// What the change needs.
    pub needs: Needs,
    /// Where the claim comes from.
    pub source: &'static str,
}

/// What a rule's check saw.
pub struct Hit {
    /// A machine, a VM, a thread, a device, a setting.
    pub subject: String,
    /// How much it matters.
    pub severity: Severity,
    /// Where the change has to be made; `None`: on the machine that was looked at.
    pub level: Option<Level>,
    /// One line with the number that matters.
    pub title: String,
    /// What was seen and where.
    pub evidence: Vec<Evidence>,
    /// What it costs.
    pub cost: Cost,
    /// Changes that the program can make itself.
    pub changes: Vec<Change>,
    /// Commands made for this case; they come before the rule's own.
    pub fix: Vec<String>,
    /// Their way back.
    pub undo: Vec<String>,
    /// What the change needs here; `None`: what the rule says.
    pub needs: Option<Needs>,
}

impl Hit {
    /// A hit without a cost and without changes.
    pub fn new(subject: impl Into<String>, severity: Severity, title: impl Into<String>) -> Self {
        Self {
            subject: subject.into(),
            severity,
            level: None,
            title: title.into(),
            evidence: Vec::new(),
            cost: Cost::none(),
            changes: Vec::new(),
            fix: Vec::new(),
            undo: Vec::new(),
            needs: None,
        }
    }

    /// The same with something that was seen, and where.
    #[must_use]
    pub fn seen(mut self, what: impl Into<String>, place: impl Into<String>) -> Self {
        self.evidence.push(Evidence { what: what.into(), place: place.into() });
        self
    }
}

impl<Check> Rule<Check> {
    /// The finding about what was seen on a machine of `level`. Typed changes print themselves, before what the check and
    /// the rule add.
    pub fn finding(&self, hit: Hit, level: Level) -> Finding {
        let lines = |typed: Vec<String>, special: Vec<String>, of_rule: &[&str]| -> Vec<String> {
            let own = of_rule.iter().map(|line| (*line).to_owned());
            typed.into_iter().chain(special).chain(own).collect()
        };
        let typed = hit.changes.iter().map(Change::command).collect();
        let back = hit.changes.iter().map(Change::undo_or_why).collect();
        Finding {
            rule: self.id,
            subject: hit.subject,
            severity: hit.severity,
            level: hit.level.unwrap_or(level),
            title: hit.title,
            evidence: hit.evidence,
            cost: hit.cost,
            why: self.why.to_owned(),
            fix: lines(typed, hit.fix, self.fix),
            undo: lines(back, hit.undo, self.undo),
            changes: hit.changes,
            needs: hit.needs.unwrap_or(self.needs),
            source: self.source,
        }
    }
}
