//! Does a window mean the same moments at every level?

use base::recording::Recording;
use base::{Narrow, Span};
use kvmscope_analysis::facts::ledger::{build, model::PartFlow};
use kvmscope_analysis::{Input, Options};
use std::path::Path;

fn parts(recording: &Path, window: Option<Span>) -> Vec<PartFlow> {
    let input = Input::open(Recording::open(recording).unwrap()).unwrap();
    let options = Options { narrow: Narrow { window, ..Narrow::default() }, ..Options::default() };
    build::build(&input, &options, &mut |_, _| {}).parts
}

/// L0 was recorded from the beginning, L1 only for a while: what L0 reflected in a window is what L1's own trace has
/// there, but for what the edges cut.
#[test]
fn exits_of_l1_in_a_window_are_those_that_l0_handed_up_in_it() {
    // The file of L1 gives its clock no scale, so cutting it counts ticks, of which there are 2.25 in a nanosecond.
    const LATE_TICKS: u64 = 1_000_000_000;
    const LATE_NS: u64 = 444_444_444;
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/svm-linux");
    let recording = tempfile::tempdir().unwrap();
    for directory in ["L0", "L1"] {
        std::fs::create_dir(recording.path().join(directory)).unwrap();
    }
    for file in ["recording.json", "L0/trace.dat"] {
        std::fs::copy(fixture.join(file), recording.path().join(file)).unwrap();
    }
    let ticks = Span { from_ns: LATE_TICKS, to_ns: 2 * LATE_TICKS };
    trace::tracedat::cut(&fixture.join("L1/trace.dat"), &recording.path().join("L1/trace.dat"), ticks).unwrap();
    let whole = parts(recording.path(), None);
    let (outermost, lies) = whole[1].aligned.as_ref().unwrap().lies.clone().unwrap();
    assert_eq!(outermost, "L0");
    assert!(lies.from_ns.abs_diff(LATE_NS) < LATE_NS / 10 && lies.length_ns() > LATE_NS / 2, "{lies:?}");
    for (from, to) in [(0, 3), (1, 2), (2, 3)] {
        let at = |third: u64| lies.from_ns + lies.length_ns() * third / 3;
        let narrowed = parts(recording.path(), Some(Span { from_ns: at(from), to_ns: at(to) }));
        let handed_up: u64 =
            narrowed[0].vcpus.iter().flat_map(|vcpu| vcpu.sums.chains.values()).map(|sums| sums.count).sum();
        let own: u64 = narrowed[1].vcpus.iter().map(|vcpu| vcpu.sums.exit_count()).sum();
        assert!(own > 10 && own.abs_diff(handed_up) <= 2, "{from} to {to}: {own} of {handed_up}");
    }
    let before = parts(recording.path(), Some(Span { from_ns: 0, to_ns: lies.from_ns }));
    assert_eq!(before[1].vcpus.iter().map(|vcpu| vcpu.sums.exit_count()).sum::<u64>(), 0, "nothing of L1 lies there");
}
