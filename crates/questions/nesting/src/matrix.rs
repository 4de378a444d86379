//! The picture of features: what each machine says of each, those that call for a change first.

use super::features::meaning;
use super::model::{Machine, Model};
use super::tables::FEATURES;
use base::figure::{Drawing, Matrix, MatrixRow, Standing};
use base::number::many;
use base::{About, Cell, Figure, Finding};

/// The picture; `None` where no machine says anything.
pub(super) fn figure(model: &Model, findings: &[Finding]) -> Option<Figure> {
    let mut names: Vec<&'static str> = Vec::new();
    for row in model.machines.iter().flat_map(|machine| &machine.features) {
        if !names.contains(&row.feature) {
            names.push(row.feature);
        }
    }
    let mut rows: Vec<MatrixRow> = names.into_iter().map(|name| row(model, name, findings)).collect();
    rows.retain(|row| row.cells.iter().flatten().any(|standing| *standing != Standing::Unknown));
    if rows.is_empty() {
        return None;
    }
    // Then what differs from machine to machine, then what is off somewhere.
    let differs = |row: &MatrixRow| row.cells.iter().any(|cell| *cell != row.cells[0]);
    let is_off = |row: &MatrixRow| row.cells.contains(&Some(Standing::Off));
    rows.sort_by_key(|row| (row.findings.is_empty(), !differs(row), !is_off(row)));
    Some(Figure {
        id: "features".into(),
        title: "Which features does each level have?".into(),
        caption: caption(&rows),
        // Tables of features say the same with their evidence.
        in_terminals: false,
        drawing: Drawing::Matrix(Matrix {
            columns: model.machines.iter().map(|machine| machine.id.clone()).collect(),
            rows,
        }),
    })
}

fn row(model: &Model, name: &'static str, findings: &[Finding]) -> MatrixRow {
    let cell = |machine: &Machine| machine.row(name).map(|row| row.state);
    let about = findings.iter().filter(|finding| is_about(finding, name));
    MatrixRow {
        label: name.to_owned(),
        about: meaning(name).to_owned(),
        cells: model.machines.iter().map(cell).collect(),
        findings: about.map(Finding::id).collect(),
    }
}

/// Whether what was seen is a row of this feature.
fn is_about(finding: &Finding, name: &str) -> bool {
    finding.evidence.iter().flat_map(|seen| &seen.about).any(|about| match about {
        About::Rows { table, keys } => *table == FEATURES.address() && keys.get("feature") == Some(&Cell::from(name)),
        _ => false,
    })
}

fn caption(rows: &[MatrixRow]) -> String {
    let called = rows.iter().filter(|row| !row.findings.is_empty()).count() as u64;
    let off = rows.iter().filter(|row| row.cells.contains(&Some(Standing::Off))).count() as u64;
    let named = match called {
        0 => "no finding is about one of them".to_owned(),
        1 => "a finding is about 1 of them".to_owned(),
        some => format!("findings are about {some} of them"),
    };
    format!("{} with a known state; {off} off somewhere; {named}.", many(rows.len() as u64, "feature"))
}
