//! All findings as one table; its columns are those of `findings.csv`.

use base::ColumnType::{F64, Text};
use base::{Column, Finding, Section, Table};

/// A row for each finding of `sections`.
pub fn findings(sections: &[Section]) -> Table {
    let text = |name: &str| Column::value(name, "", Text);
    let mut columns = vec![Column::key("section"), Column::key("id")];
    columns.extend(["rule", "subject", "severity", "level", "title", "evidence"].map(text));
    columns.extend([Column::value("cost", "", F64), text("cost_unit"), text("cost_kind")]);
    columns.extend(["cost_low", "cost_high"].map(|name| Column::value(name, "", F64)));
    columns.extend(["why", "fix", "undo", "needs", "source"].map(text));
    let mut table = Table::new("findings", columns);
    for section in sections {
        section.findings.iter().for_each(|finding| push(&mut table, section.id, finding));
    }
    table
}

fn push(table: &mut Table, section: &str, finding: &Finding) {
    let seen: Vec<String> = finding.evidence.iter().map(|seen| format!("{} ({})", seen.what, seen.place)).collect();
    table.push(vec![
        section.into(),
        finding.id().into(),
        finding.rule.into(),
        finding.subject.as_str().into(),
        finding.severity.name().into(),
        finding.level.to_string().into(),
        finding.title.as_str().into(),
        seen.join("\n").into(),
        finding.cost.value.into(),
        finding.cost.unit.as_str().into(),
        finding.cost.kind.name().into(),
        finding.cost.low.into(),
        finding.cost.high.into(),
        finding.why.as_str().into(),
        finding.fix.join("\n").into(),
        finding.undo.join("\n").into(),
        finding.needs.name().into(),
        finding.source.into(),
    ]);
}
