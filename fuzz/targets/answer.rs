//! Any bytes as a trace of any format, all the way to the answer: the ledgers must close whatever the events say.

#![no_main]

use analysis::{Ask, Input, Options, QUESTIONS};
use base::recording::Recording;
use base::{Cell, Table};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let path = kvmscope_fuzz::write("trace", bytes);
    let Ok(recording) = Recording::open(&path) else { return };
    let Ok(input) = Input::open(recording) else { return };
    for question in QUESTIONS {
        let ask = &mut Ask { input: &input, options: &Options::default(), progress: &mut |_, _| {} };
        let Ok(Some(answer)) = (question.answer)(ask) else { continue };
        if let Some(vcpus) = answer.section.table("vcpus") {
            assert_closed(vcpus);
        }
    }
});

/// Each row's states sum to its `wall_ns`: only state columns end in `_ns` beside it.
fn assert_closed(vcpus: &Table) {
    let wall = vcpus.columns.iter().position(|column| column.name == "wall_ns");
    for row in &vcpus.rows {
        let ns = |at: usize| match &row[at] {
            Cell::U64(ns) => *ns,
            _ => 0,
        };
        let states = (0..row.len()).filter(|at| Some(*at) != wall && vcpus.columns[*at].name.ends_with("_ns"));
        let sum: u64 = states.map(ns).sum();
        assert_eq!(Some(sum), wall.map(ns), "the ledger does not close: {row:?}");
    }
}
