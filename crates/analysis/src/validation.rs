//! The page docs/formats/validation.md: every published result that a model predicts, and whether it does.

use crate::facts::published::{ExitCost, exit_costs, interrupt, sources};
use crate::facts::validation::{self, Comparison};
use crate::{datapath, migration, nesting};
use base::number::plain;
use std::fmt::Write as _;

const HEAD: &str = "# Validation\n\n\
    To see how far to trust a prediction: `kvmscope plan chain --vnfs 8 --size 64 --nic XL710` ends with a count of this page, which\n\
    compares the models of `kvmscope plan` with results that others published. It is printed by\n\
    `kvmscope schema --format validation > docs/formats/validation.md`, and a test holds that it is up to date; the records are in\n\
    `crates/facts/src/published.toml`.\n\n\
    - **low, likely, high**: the predicted band. **inside**: whether the published number is in it. **error**: the likely prediction against it.\n\
    - **tested**: the model did not know the number; these are counted, a result under several assumptions once, and inside only if it is under all.\n\
    - **fitted**: it gave a constant or a band of the model, and proves nothing. **ceiling**: the model only bounds it. **control**: a wrong assumption, to show\n\
    that the right one matters. **not predicted**: the model does not cover it.\n\n";

pub fn page() -> String {
    let chapters = chapters();
    let rows: Vec<&Comparison> = chapters.iter().flat_map(|(_, rows)| rows).collect();
    let text: String = chapters.iter().map(|(text, _)| format!("{text}\n")).collect();
    format!("{HEAD}{text}{}\n{}", unpredicted(&rows), validation::sources(sources()))
}

fn chapters() -> [(String, Vec<Comparison>); 3] {
    [nesting::plan::validation(), datapath::validation(), migration::validation()]
}

/// Records that no model predicts: they calibrate one, give an effect, or stand beside what was measured.
fn unpredicted(rows: &[&Comparison]) -> String {
    let mut out = "## Published and not predicted\n\n\
        These calibrate a model, give the effect of a change, or are shown next to what was measured.\n\n\
        | result | of | value | unit | statistic | source |\n|---|---|---|---|---|---|\n"
        .to_owned();
    for record in exit_costs().iter().filter(|record| rows.iter().all(|row| row.id != record.id)) {
        let ExitCost { id, op, level, variant, statistic, source, processor, .. } = record;
        let (unit, value) = record.amount();
        let besides = [variant, processor].into_iter().filter(|text| !text.is_empty());
        let besides: String = besides.map(|text| format!(", {text}")).collect();
        let _ = writeln!(
            out,
            "| `{id}` | {op} at L{level}{besides} | {} | {unit} | {statistic} | {source} |",
            plain(value)
        );
    }
    let latency = interrupt();
    for (statistic, ns) in [("min", latency.min_ns), ("mean", latency.mean_ns), ("max", latency.max_ns)] {
        let (id, source) = (&latency.id, &latency.source);
        let _ = writeln!(
            out,
            "| `{id}` | an interrupt from its edge to its handler | {ns} | ns | {statistic} | {source} |"
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_row_has_a_source_and_every_miss_a_reason() {
        let known: BTreeSet<&str> = sources().map(|(key, _)| key).collect();
        let chapters = chapters();
        let rows: Vec<&Comparison> = chapters.iter().flat_map(|(_, rows)| rows).collect();
        let ids: BTreeSet<&str> = rows.iter().map(|row| row.id.as_str()).collect();
        assert_eq!(ids.len(), rows.len(), "an id is given twice");
        for row in rows {
            assert!(known.contains(row.source), "{}: no source {}", row.id, row.source);
            assert!(!row.is_miss() || !row.note.is_empty(), "{}: a miss without a reason", row.id);
            assert!(!row.inputs.is_empty(), "{}: nothing was given", row.id);
        }
    }

    #[test]
    fn each_plan_was_held_against_something() {
        for (text, rows) in chapters() {
            assert!(validation::tally(&rows).held > 0, "{text}");
        }
    }
}
