//! A finding for people: what, how we know, what it costs, why, what to run, what that needs, how to undo it.

use super::line::{Lines, left, width, wrap};
use super::paint::Role;
use base::number;
use base::{Cost, Finding};

/// Where labels such as `seen` start, below the rule's name.
const LABELS_AT: usize = 9;

/// Columns of the labels, the widest of which is `at L0, run`, and of the blanks behind them.
const LABEL_WIDTH: usize = 13;

/// On pages narrower than this, labels move left to leave room for what they say.
const NARROW: usize = 72;

/// Commands that are printed; a placement of a large host has hundreds.
const MOST_COMMANDS: usize = 24;

/// Findings that a cause lists.
const MOST_EXPLAINED: usize = 8;

/// Columns of the widest label or name of a rule, and the blanks behind it: the same for all of a list.
pub(super) fn label_room(findings: &[&Finding]) -> usize {
    let names = findings.iter().map(|finding| width(finding.rule) + 1);
    names.max().unwrap_or(0).max(LABEL_WIDTH)
}

/// Renders one finding; its labels and its rule's name take `room` columns.
pub(super) fn render(finding: &Finding, room: usize, out: &mut Lines) {
    let severity = out.paint.on(finding.severity.name(), Role::Severity(finding.severity));
    let blanks = " ".repeat(LABELS_AT.saturating_sub(1 + width(finding.severity.name())));
    let page = out.page.width;
    let title_at = LABELS_AT + room;
    let narrow = page < NARROW;
    if narrow {
        out.line(&format!(" {severity}{blanks}{}", finding.rule));
        out.wrapped("   ", "   ", &finding.title, page);
    } else {
        let mut lines = wrap(&finding.title, page - title_at, page - title_at).into_iter();
        let first = lines.next().unwrap_or_default();
        let rule = left(finding.rule, room);
        out.line(&format!(" {severity}{blanks}{rule}{}", out.paint.on(&first, Role::Heading)));
        for line in lines {
            out.line(&format!("{}{}", " ".repeat(title_at), out.paint.on(&line, Role::Heading)));
        }
    }

    let mut said = Said { out, at: if narrow { 3 } else { LABELS_AT }, room };
    if !finding.title.contains(&finding.subject) {
        said.prose("about", &finding.subject);
    }
    for (index, evidence) in finding.evidence.iter().enumerate() {
        let place = if evidence.place.is_empty() { String::new() } else { format!(" ({})", evidence.place) };
        said.prose(if index == 0 { "seen" } else { "" }, &format!("{}{place}", evidence.what));
    }
    said.prose("costs", &cost(&finding.cost));
    if let Some(words) = gives_back(finding) {
        said.prose("gives back", &words);
    }
    if !finding.explains.is_empty() {
        said.prose("explains", &explained(finding));
    }
    if !finding.why.is_empty() {
        said.prose("why", &finding.why);
    }
    said.commands(&finding.level.run(), &finding.fix);
    if !finding.fix.is_empty() {
        // What only asks again needs nothing to take effect.
        if !finding.fix.iter().all(|line| line.starts_with("kvmscope ")) {
            said.prose("needs", finding.needs.words());
        }
    }
    said.commands("undo", &finding.undo);
    if !finding.source.is_empty() {
        said.prose("source", finding.source);
    }
}

pub(crate) fn explained(finding: &Finding) -> String {
    let mut names: Vec<String> = finding.explains.iter().take(MOST_EXPLAINED).cloned().collect();
    let more = finding.explains.len().saturating_sub(names.len());
    names.extend((more > 0).then(|| format!("{more} more")));
    number::list(&names)
}

/// Labels at the left, what they say at the right.
pub(super) struct Said<'a> {
    pub out: &'a mut Lines,
    pub at: usize,
    /// Columns of the labels.
    pub room: usize,
}

impl Said<'_> {
    fn label(&self, label: &str) -> String {
        let blanks = " ".repeat(self.room.saturating_sub(width(label)));
        format!("{}{}{blanks}", " ".repeat(self.at), self.out.paint.on(label, Role::Quiet))
    }

    pub(super) fn prose(&mut self, label: &str, text: &str) {
        let (first, rest) = (self.label(label), self.label(""));
        self.out.wrapped(&first, &rest, text, self.out.page.width.min(super::WIDEST_PROSE + self.at + self.room));
    }

    /// Commands stay on one line each, however long, so that they can be pasted.
    pub(super) fn commands(&mut self, label: &str, commands: &[String]) {
        for (index, command) in commands.iter().take(MOST_COMMANDS).enumerate() {
            let label = self.label(if index == 0 { label } else { "" });
            let command = self.out.paint.on(command, Role::Command);
            self.out.line(&format!("{label}{command}"));
        }
        if let Some(more) = commands.len().checked_sub(MOST_COMMANDS).filter(|more| *more > 0) {
            self.prose("", &format!("+ {}, see --json", base::number::many(more as u64, "more command")));
        }
    }
}

/// `76.6 % of all exits (measured, 70 % to 80 % ...)`, or `up to 2 exits per chain (modelled)`.
pub(crate) fn cost(cost: &Cost) -> String {
    let Some(value) = cost.value else { return "not known".to_owned() };
    let said = number::amount(value, &cost.unit);
    if cost.is_bound() {
        return format!("up to {said} ({})", cost.kind.name());
    }
    let short = cost.unit.split(' ').next().filter(|unit| matches!(*unit, "ns" | "bytes" | "share")).unwrap_or("count");
    let range = match (cost.low, cost.high) {
        (Some(low), Some(high)) => format!(", {} to {}", number::amount(low, short), number::amount(high, short)),
        (Some(low), None) => format!(", at least {}", number::amount(low, short)),
        (None, Some(high)) => format!(", at most {}", number::amount(high, short)),
        (None, None) => String::new(),
    };
    format!("{said} ({}{range})", cost.kind.name())
}

/// `13.8 % (6.0 to 21.6 %) of vCPU time, modelled`; nothing where the cost has said it.
pub(crate) fn gives_back(finding: &Finding) -> Option<String> {
    let gives_back = finding.gives_back.as_ref().filter(|gives_back| finding.cost.value != Some(gives_back.share))?;
    let of = gives_back.unit.trim_start_matches("share ");
    Some(format!("{} {of}, {}", gives_back.words(), finding.cost.kind.name()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::CostKind;

    #[test]
    fn an_upper_bound_is_shown_as_one() {
        let of = |value: f64| Cost::of(CostKind::Modelled, value, "exits per chain");
        assert_eq!(cost(&of(2.0).between(0.0, 2.0)), "up to 2 exits per chain (modelled)");
        assert_eq!(cost(&of(2.0).between(1.0, 2.0)), "2 exits per chain (modelled, 1 to 2)");
        assert_eq!(cost(&of(0.0).between(0.0, 0.0)), "0 exits per chain (modelled, 0 to 0)");
    }
}
