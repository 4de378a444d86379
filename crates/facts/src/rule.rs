//! One shape of a rule for all questions: what it is called, why it costs, what to type, and what its check saw.
//!
//! ```text
//! RULES: Rule<check> --check(model)--> Hit (this subject, these numbers) --Rule::finding--> Finding
//! ```
//! Rules are rows of tables (`rules.rs` of each question); a check that lacks a fact returns nothing.

use base::rule::{Limit, Words};
use base::shell::quoted;
use base::{Change, Cost, Evidence, FactKind, Finding, GivesBack, Level, Needs, Setting, Severity};

/// One rule; `Check` is the function that looks at what this question knows.
pub struct Rule<Check> {
    /// The question's three letters, a dash and a word: `PLC-OVERLAP`.
    pub id: &'static str,
    /// What has at most one such finding: `VM`, `interrupt`.
    pub per: &'static str,
    pub looks_at: &'static str,
    /// What has to be known before it can be judged: without one of them it says nothing, and is counted.
    pub requires: &'static [FactKind],
    /// From where on it is worth a finding.
    pub limits: &'static [Limit],
    /// Returns what it saw, once for each subject.
    pub check: Check,
    /// Why this happens or costs.
    pub why: &'static str,
    pub fix: &'static [&'static str],
    pub undo: &'static [&'static str],
    pub needs: Needs,
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
    pub evidence: Vec<Evidence>,
    pub cost: Cost,
    /// What of the vCPUs' time its change would give back, where a trace tells.
    pub gives_back: Option<GivesBack>,
    /// Ids of findings, `RULE@subject`, of which this one is the cause; those that are not there are ignored.
    pub explains: Vec<String>,
    /// Commands that show whether the changes can help; they come before these.
    pub first: Vec<String>,
    /// Changes that the program can make itself.
    pub changes: Vec<Change>,
    /// Commands made for this case; they come before the rule's own.
    pub fix: Vec<String>,
    pub undo: Vec<String>,
    /// True where nothing is to be changed: then the rule's own commands are left out as well.
    pub nothing_to_change: bool,
    /// What the change needs here; `None`: what the rule says.
    pub needs: Option<Needs>,
    /// What stands in the rule's own commands for words such as `DOMAIN`.
    pub blanks: Vec<(&'static str, String)>,
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
            gives_back: None,
            explains: Vec::new(),
            first: Vec::new(),
            changes: Vec::new(),
            fix: Vec::new(),
            undo: Vec::new(),
            nothing_to_change: false,
            needs: None,
            blanks: Vec::new(),
        }
    }

    /// The same of a domain, which the rule's own commands then name where they say `DOMAIN`.
    #[must_use]
    pub fn of_domain(self, name: &str) -> Self {
        let word = quoted(name).into_owned();
        self.filling("DOMAIN", word)
    }

    /// The same with what is known of a word in the rule's own commands.
    #[must_use]
    pub fn filling(mut self, word: &'static str, known: impl ToString) -> Self {
        self.blanks.push((word, known.to_string()));
        self
    }

    #[must_use]
    pub fn seen(mut self, what: impl Into<String>, place: impl Into<String>) -> Self {
        self.evidence.push(Evidence::new(what, place));
        self
    }

    #[must_use]
    pub fn with(mut self, evidence: Evidence) -> Self {
        self.evidence.push(evidence);
        self
    }
}

impl<Check: Copy> Rule<Check> {
    /// What a rule is before it says anything: without limits and commands, its change needs nothing.
    ///
    /// ```text
    /// Rule { id: "FLW-VLS", per: "VM", .., ..Rule::checked_by(vls) }
    /// ```
    pub const fn checked_by(check: Check) -> Self {
        let (id, per, looks_at, why, source) = ("", "", "", "", "");
        Self {
            id,
            per,
            looks_at,
            requires: &[],
            limits: &[],
            check,
            why,
            fix: &[],
            undo: &[],
            needs: Needs::Nothing,
            source,
        }
    }
}

impl<Check> Rule<Check> {
    pub fn words(&self) -> Words {
        let Self { id, per, looks_at, requires, limits, why, fix, undo, needs, source, .. } = *self;
        Words { id, per, looks_at, requires, limits, why, fix, undo, needs, source }
    }

    /// The finding about what was seen on a machine of `level`. Typed changes print themselves, and the file that keeps
    /// a module's parameter, before what the check and the rule add, and behind what is to be looked at first.
    pub fn finding(&self, hit: Hit, level: Level) -> Finding {
        let lines = |typed: Vec<String>, special: Vec<String>, of_rule: &[&str]| -> Vec<String> {
            let own = of_rule.iter().filter(|_| !hit.nothing_to_change).map(|line| filled(line, &hit.blanks));
            typed.into_iter().chain(special).chain(own).collect()
        };
        let commands = hit.changes.iter().map(Change::command).chain(hit.changes.iter().filter_map(kept));
        let typed = hit.first.into_iter().chain(commands).collect();
        let back =
            hit.changes.iter().map(Change::undo_or_why).chain(hit.changes.iter().filter_map(forgotten)).collect();
        Finding {
            rule: self.id,
            subject: hit.subject,
            per: self.per,
            severity: hit.severity,
            level: hit.level.unwrap_or(level),
            title: hit.title,
            evidence: hit.evidence,
            cost: hit.cost,
            gives_back: hit.gives_back,
            explains: hit.explains,
            why: self.why.to_owned(),
            fix: lines(typed, hit.fix, self.fix),
            undo: lines(back, hit.undo, self.undo),
            changes: hit.changes,
            needs: hit.needs.unwrap_or(self.needs),
            source: self.source,
        }
    }
}

/// The file that makes a module's parameter last beyond a reboot (modprobe.d(5)).
fn file(change: &Change) -> Option<(String, String)> {
    let Change { setting: Setting::ModuleOption { module, parameter }, to, .. } = change else { return None };
    Some((format!("/etc/modprobe.d/kvmscope-{parameter}.conf"), format!("options {module} {parameter}={to}")))
}

fn kept(change: &Change) -> Option<String> {
    file(change).map(|(path, line)| format!("echo {line} > {path}   # keeps it after a reboot"))
}

/// The command that removes it.
fn forgotten(change: &Change) -> Option<String> {
    file(change).map(|(path, _)| format!("rm -f {path}"))
}

/// A command of a rule with the words that are known here: `virsh edit web` for `virsh edit DOMAIN`.
fn filled(command: &str, blanks: &[(&str, String)]) -> String {
    let in_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let mut whole = String::with_capacity(command.len());
    let mut rest = command;
    while !rest.is_empty() {
        let inside = rest.starts_with(in_word);
        let end = rest.find(|letter| in_word(letter) != inside).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        whole.push_str(blanks.iter().find(|(blank, _)| *blank == word).map_or(word, |(_, known)| known));
        rest = after;
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_name_what_is_known_and_keep_the_rest() {
        let hit = Hit::new("x", Severity::Info, "").of_domain("a; rm -rf /").filling("N", 4);
        let command = "virsh edit DOMAIN   # <driver name='vhost' queues='N'/>; ethtool -L DEV combined N, NOT DOMAINS";
        let expected =
            "virsh edit 'a; rm -rf /'   # <driver name='vhost' queues='4'/>; ethtool -L DEV combined 4, NOT DOMAINS";
        assert_eq!(filled(command, &hit.blanks), expected);
        assert_eq!(filled("", &hit.blanks), "");
    }
}
