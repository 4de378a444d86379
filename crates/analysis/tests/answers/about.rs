//! Does what evidence is about exist, under the names that it gives?
//!
//! A program goes from a finding to rows, exits, states and threads by these names alone, so each must lead somewhere.

use base::recording::Recording;
use base::timeline::Timeline;
use base::{About, Cell, Evidence, Section, Span, Table};
use kvmscope_analysis::facts::timeline::draw;
use kvmscope_analysis::{Answers, Case, Given};
use std::collections::BTreeSet;
use std::path::Path;

/// Recordings with findings of every question: nested guests with and without shadowing, pre-emption, page faults, losses,
/// snapshots, a bench.
const FIXTURES: [&str; 12] = [
    "nested-svm-toy",
    "nested-vmx-shadow-off-hog",
    "svm-linux",
    "vmx-linux-shadow-off",
    "lttng-svm-l0",
    "two-tracers",
    "hosts-amd",
    "hosts-intel",
    "hosts-pvm",
    "seed-vhost",
    "bench-svm",
    "bench-vmx-shadow-off",
];

/// Names that a recording has for what evidence may be about.
struct Names<'a> {
    sections: &'a [Section],
    states: BTreeSet<String>,
    threads: BTreeSet<i32>,
    span: Span,
}

impl Names<'_> {
    fn table(&self, name: &str) -> Option<&Table> {
        let (section, table) = name.split_once('.')?;
        self.sections.iter().find(|known| known.id == section)?.table(table)
    }

    /// Whether a row of the table called `name` has `cell` in the column called `column`.
    fn has(&self, name: &str, column: &str, cell: &Cell) -> bool {
        self.table(name).is_some_and(|table| (0..table.rows.len()).any(|row| table.cell(row, column) == Some(cell)))
    }

    fn check(&self, about: &About, case: &str) {
        match about {
            About::Rows { table, keys } => {
                let found = self.table(table).unwrap_or_else(|| panic!("{case}: no table {table}"));
                for column in keys.keys() {
                    let known = found.spec.columns.iter().find(|known| known.name == *column);
                    assert!(known.is_some_and(|known| known.key), "{case}: {table} has no key {column}");
                }
                let matches = |row: &usize| keys.iter().all(|(name, cell)| found.cell(*row, name) == Some(cell));
                assert!((0..found.rows.len()).any(|row| matches(&row)), "{case}: no row of {table} has {keys:?}");
            }
            About::Reason { reason } => {
                assert!(self.has("flow.exits", "reason", &reason.as_str().into()), "{case}: no exit is {reason}");
            }
            About::State { state } => assert!(self.states.contains(state), "{case}: no lane is ever {state}"),
            About::Thread { tid } => assert!(self.threads.contains(tid), "{case}: no lane is of thread {tid}"),
            About::Span(span) => {
                assert!(span.from_ns < span.to_ns && span.from_ns < self.span.to_ns, "{case}: {span:?}")
            }
        }
    }
}

#[test]
fn everything_that_evidence_names_is_there() {
    let mut kinds: BTreeSet<&str> = BTreeSet::new();
    for name in FIXTURES {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name);
        let case = Case::new(kvmscope_analysis::open(Recording::open(&path).unwrap()).unwrap(), Given::default());
        let sections = Answers::of(&case).sections;
        let timeline = draw(case.input(), case.given(), case.ledger(), &mut |_, _| {}).timeline;
        let names = Names {
            sections: &sections,
            states: timeline.states().iter().map(|state| state.name.clone()).collect(),
            threads: timeline.lanes().iter().filter_map(|lane| lane.tid).collect(),
            span: timeline.span(),
        };
        let findings = sections.iter().flat_map(|section| &section.findings);
        for (finding, Evidence { what, place, about }) in
            findings.flat_map(|finding| finding.evidence.iter().map(move |evidence| (finding, evidence)))
        {
            let case = format!("{name}: {}: {what}", finding.id());
            let points = about.iter().any(|about| matches!(about, About::Rows { .. }));
            assert_eq!(points, place.starts_with("table"), "{case}: a table is named in words and as data, at {place}");
            for about in about {
                names.check(about, &case);
                kinds.insert(match about {
                    About::Rows { .. } => "rows",
                    About::Reason { .. } => "reason",
                    About::State { .. } => "state",
                    About::Thread { .. } => "thread",
                    About::Span(_) => "span",
                });
            }
        }
    }
    assert!(["reason", "rows", "state", "thread"].iter().all(|kind| kinds.contains(kind)), "{kinds:?}");
}
