//! A recorder that paused saw nothing: who had a CPU, who slept and who waited meanwhile is unknown, in lanes and in sums.

use super::fixtures::fixture;
use base::Span;
use base::recording::Recording;
use base::timeline::{LaneId, Timeline};
use kvmscope_analysis::facts::timeline;
use kvmscope_analysis::{Case, Given, datapath, flow};

#[test]
fn between_trials_nothing_is_known() {
    let recording = Recording::open(&fixture("ovs-dpdk-chain")).unwrap();
    let case = Case::new(kvmscope_analysis::open(recording).unwrap(), Given::default());
    let part = &case.ledger().parts[0];
    assert_eq!(part.pauses.len(), 3, "four trials: {:?}", part.pauses);
    let drawn = timeline::draw(case.input(), case.given(), case.ledger(), &mut |_, _| {});
    let unknown = drawn.timeline.states().iter().position(|state| state.name == "unknown").unwrap();
    for pause in &part.pauses {
        let on_axis = |ns: u64| part.on_axis(ns);
        let span = Span { from_ns: on_axis(pause.from_ns), to_ns: on_axis(pause.to_ns) };
        assert!(span.length_ns() > 1_000_000_000, "the switch is started anew between trials: {span:?}");
        for (lane, named) in (0..).zip(drawn.timeline.lanes()) {
            let coverage = drawn.timeline.coverage(LaneId(lane), span, 1);
            let known: u64 =
                coverage.time_ns.iter().enumerate().filter(|(state, _)| *state != unknown).map(|(_, ns)| ns).sum();
            assert!(known <= span.length_ns() / 100, "{named:?}: {known} ns of {span:?} are known");
        }
    }
    let section = flow::answer(&case).unwrap().unwrap().section;
    assert!(section.unknown.iter().any(|unknown| unknown.what == "paused"), "{:?}", section.unknown);
}

#[test]
fn polling_threads_that_waited_are_a_finding_and_nothing_else_is_said_to_limit() {
    let recording = Recording::open(&fixture("ovs-dpdk-chain")).unwrap();
    let case = Case::new(kvmscope_analysis::open(recording).unwrap(), Given::default());
    let section = datapath::measured::answer(&case).unwrap().unwrap().section;
    let [finding] = &section.findings[..] else { panic!("{:?}", section.findings) };
    assert_eq!((finding.rule, finding.severity), ("DTP-PREEMPTED", base::Severity::High));
    assert!(finding.title.contains("4 of 4 trials") && finding.title.contains("54.1 %"), "{}", finding.title);
    let by_trace = |name: &str| finding.evidence.iter().any(|evidence| evidence.what.contains(name));
    assert!(by_trace("rustc") && by_trace("pmd-c00"), "{:?}", finding.evidence);
    assert!(!section.summary.contains("the VNFs bound it"), "{}", section.summary);
}
