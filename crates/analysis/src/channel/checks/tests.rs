//! Each rule on a run that it fires on, and on one that differs in one thing.

use super::super::measured::Channel;
use super::super::rules::findings;
use super::super::tests::{Made, benches, of_batches};
use crate::facts::machines::Machines;
use base::Finding;
use base::channel::{PAIRS, Side};
use std::slice::from_ref;

fn found(made: &[Made], change: impl Fn(&mut Channel<'_>)) -> Vec<Finding> {
    let benches = benches(made);
    let mut channel = Channel::of(&benches, &Machines::default());
    change(&mut channel);
    findings(&channel)
}

fn ids(made: &[Made]) -> Vec<&'static str> {
    found(made, |_| {}).iter().map(|finding| finding.rule).collect()
}

const NOTHING: [&str; 0] = [];

#[test]
fn a_quiet_and_verified_ring_has_nothing_to_change() {
    assert_eq!(ids(&of_batches(&[1, 8, 32], |n| 60.0 + 14.0 * n, |made| made)), NOTHING);
}

#[test]
fn frames_that_arrive_otherwise_than_sent_come_first() {
    let made = Made { wrong: [10, 0, 0, 2], pair: PAIRS[4], ..Made::default() };
    let findings = found(from_ref(&made), |_| {});
    assert_eq!((findings[0].rule, findings[0].severity), ("CHN-WRONG", base::Severity::High));
    assert_eq!(findings[0].title, "12 frames did not arrive as sent: 10 lost and 2 torn");
    assert_eq!(ids(&[Made { wrong: [0; 4], ..made }]), ["CHN-NODES"]);
}

#[test]
fn both_sides_on_one_core_are_told_and_on_two_of_one_cache_are_not() {
    let made = Made { pair: PAIRS[1], ..Made::default() };
    let findings = found(from_ref(&made), |_| {});
    assert_eq!(findings[0].title, "1 of 1 setup ran with both sides on one core");
    assert!(findings[0].evidence[0].what.ends_with("CPU 0 sent and CPU 1 received: same core"), "{findings:?}");
    assert_eq!((ids(from_ref(&made)), ids(&[Made { pair: PAIRS[2], ..made }])), (vec!["CHN-SIBLINGS"], vec![]));
}

#[test]
fn sides_on_two_nodes_are_told_and_on_one_are_not() {
    let made = Made { pair: PAIRS[4], ..Made::default() };
    assert_eq!((ids(from_ref(&made)), ids(&[Made { pair: PAIRS[3], ..made }])), (vec!["CHN-NODES"], vec![]));
}

#[test]
fn a_cpu_that_was_taken_is_told_with_what_that_cost() {
    let side = |involuntary| Side { involuntary, cpu: 1, cpu_ns: 300_000_000, ..Side::default() };
    let made = Made { raw: 0.6, clean: 0.7, consumer: side(7), ..Made::default() };
    let findings = found(from_ref(&made), |_| {});
    assert_eq!(findings[0].title, "The CPU of a side was taken 7 times in 1 setup: up to 40.0 % of the rate was lost");
    assert!(
        findings[0].evidence[0]
            .what
            .ends_with("7 involuntary switches, 30.00 Mpps over all of the time, 50.00 Mpps in clean slices")
    );
    assert!(findings[0].fix[1].contains("isolcpus=managed_irq,domain,0-1 nohz_full=0-1"), "{:?}", findings[0].fix);
    assert_eq!(ids(&[Made { consumer: side(0), ..made.clone() }]), NOTHING, "nobody took it");
    assert_eq!(ids(&[Made { raw: 0.96, ..made.clone() }]), NOTHING, "it cost nothing to speak of");
    let unmeasured = found(&[Made { clean: 0.1, ..made }], |_| {});
    assert!(unmeasured[0].title.ends_with("too few slices were clean to tell the rate"), "{}", unmeasured[0].title);
}

#[test]
fn mprotect_is_told_where_keys_were_measured_or_could_be() {
    let window = |window, window_ns| Made { window, window_ns, batch_ns: 640.0 + 10.0 * window_ns, ..Made::default() };
    let (slow, keyed) = (window("mprotect", 7_795.0), window("pkey", 28.8));
    let findings = found(&[slow.clone(), keyed], |_| {});
    assert_eq!(findings.iter().map(|finding| finding.rule).collect::<Vec<_>>(), ["CHN-MPROTECT"]);
    assert_eq!(findings[0].title, "mprotect takes 7.8 us to open and close a window; 28.8 ns with pkey");
    assert_eq!(ids(from_ref(&slow)), NOTHING, "nobody knows whether this processor has keys");
    let with = |has_pku| found(from_ref(&slow), |channel| channel.hosts[0].has_pku = Some(has_pku)).len();
    assert_eq!((with(true), with(false)), (1, 0));
}

#[test]
fn a_batch_too_small_for_its_window_is_told_with_the_one_that_halves_it() {
    let line = |window_ns: f64, batches: &[u32]| {
        of_batches(batches, |n| window_ns + 60.0 + 14.0 * n, |made| Made { window: "pkey", window_ns, ..made })
    };
    // 28.8 of 102.8 ns; 14.0 % of 205.7 ns: 116.9 ns are left for 8.35 frames.
    let findings = found(&line(28.8, &[1, 8, 32, 64]), |_| {});
    assert_eq!((findings.len(), findings[0].rule), (1, "CHN-WINDOW"));
    let title = "28.0 % of a batch's time goes into opening and closing the pkey window at batch 1; by the model batch 9 halves that";
    assert_eq!((findings[0].title.as_str(), findings[0].severity), (title, base::Severity::Low));
    assert_eq!(findings[0].fix, ["kvmscope bench channel --window pkey --batch 9"]);
    assert_eq!(ids(&line(28.8, &[8, 32, 64])), NOTHING, "14.2 %");
    let dear = found(&line(7_795.0, &[1, 8, 32, 64]), |_| {});
    assert!(dear[0].title.ends_with("by the model no batch from 1 to 64 halves that"), "{}", dear[0].title);
    assert_eq!(dear[0].severity, base::Severity::Medium);
    let two = found(&line(28.8, &[1, 8]), |_| {});
    assert!(two[0].title.contains("no model says which"), "{}", two[0].title);
}

#[test]
fn a_window_that_is_open_most_of_the_time_is_told() {
    let side = |open_ns| Side { windows: 1_000, open_ns, open_max_ns: 81_000, cpu_ns: 300_000_000, ..Side::default() };
    let made = |open_ns| Made { window: "pkey", window_ns: 28.8, consumer: side(open_ns), ..Made::default() };
    let findings = found(&[made(156_000_000)], |_| {});
    assert_eq!(findings[0].title, "For 52.0 % of the time the pkey window is open at batch 32");
    assert_eq!(findings[0].fix, ["kvmscope bench channel --window pkey --batch 16"]);
    let single = found(&[Made { batch: 1, window_ns: 0.0, ..made(156_000_000) }], |_| {});
    assert!(single[0].fix.is_empty(), "no batch is smaller than one");
    assert_eq!((ids(&[made(156_000_000)]), ids(&[made(147_000_000)])), (vec!["CHN-OPEN"], vec![]));
}

#[test]
fn kicks_are_told_where_both_sides_are_busy() {
    // 15 million frames in 300 ms.
    let made = |kicks| Made { policy: "kick", kicks, ..Made::default() };
    assert_eq!((ids(&[made(1_800_000)]), ids(&[made(1_200_000)])), (vec!["CHN-KICKS"], vec![]));
    let every = Made { kicks: 15_000_000, ..made(0) };
    assert!(found(&[every], |_| {})[0].title.starts_with("1 kick for each packet"), "one of them has no s");
    let idle = Side { cpu: 1, cpu_ns: 100_000_000, ..Side::default() };
    assert_eq!(ids(&[Made { consumer: idle, ..made(1_800_000) }]), NOTHING, "the receiver sleeps in between");
}

#[test]
fn a_ring_is_held_against_the_cache_where_its_size_is_told() {
    let rules = |l2_bytes| {
        found(&[Made { ring_bytes: 4 << 20, ..Made::default() }], |channel| channel.hosts[0].l2_bytes = l2_bytes)
    };
    let findings = rules(Some(1 << 20));
    assert_eq!(
        (findings[0].rule, findings[0].fix.as_slice()),
        ("CHN-RING", &["kvmscope bench channel --slots 1024".to_owned()][..])
    );
    assert!(rules(Some(4 << 20)).is_empty() && rules(None).is_empty());
}

#[test]
fn frames_that_nobody_looked_at_are_told() {
    let made = Made { verified: false, ..Made::default() };
    assert_eq!((ids(from_ref(&made)), ids(&[Made { verified: true, ..made }])), (vec!["CHN-UNVERIFIED"], vec![]));
}

/// What changed tables and hostile peers lead to.
mod parts {
    use crate::channel::measured::Channel;
    use crate::channel::rules::findings;
    use crate::channel::tests::benches;
    use crate::facts::machines::Machines;
    use base::Severity;
    use base::bench::Measured;
    use base::channel::{Fault, Faults, FlowRun};

    fn found(one: Measured) -> Vec<(String, Severity)> {
        let mut benches = benches(&[]);
        benches.runs[0].bench.results = vec![one];
        let findings = findings(&Channel::of(&benches, &Machines::default()));
        findings.iter().map(|finding| (finding.id(), finding.severity)).collect()
    }

    fn changed(stale_sent: u64, misdelivered: u64, acknowledgement_faults: u64) -> Measured {
        let flows = FlowRun {
            vms: 2,
            asked_per_s: 10_000,
            ns: 1_000_000_000,
            changes: 10_000,
            revocations: 6_000,
            grace: 50,
            sent: 1_000_000,
            stale_sent,
            delivered: 900_000,
            dropped: 100_000,
            misdelivered,
            lag_p99_ns: vec![],
            unacknowledged: 0,
            acknowledgement_faults,
            shared_cpus: false,
        };
        Measured { flows: Some(Box::new(flows)), ..Measured::default() }
    }

    #[test]
    fn one_misdelivered_frame_is_critical_and_stale_ones_that_were_dropped_are_not() {
        let id = "CHN-STALE@L0: 2 VMs".to_owned();
        assert_eq!(found(changed(9_000, 0, 0)), []);
        assert_eq!(found(changed(11_000, 0, 0)), [(id.clone(), Severity::Low)]);
        assert_eq!(found(changed(0, 1, 0)), [(id.clone(), Severity::High)]);
        assert_eq!(found(changed(0, 0, 1)), [(id, Severity::High)]);
    }

    #[test]
    fn a_rule_that_was_not_survived_is_critical_and_one_that_nothing_breaks_is_not() {
        let fault = |rule, survived| Fault {
            rule,
            what: "something".into(),
            injected: 1,
            seen: None,
            survived,
            why: "the honest side hung".into(),
        };
        let rules = vec![fault(4, Some(true)), fault(7, Some(false)), fault(12, None)];
        let one = Measured { faults: Some(Box::new(Faults { rules })), ..Measured::default() };
        assert_eq!(found(one), [("CHN-FAULT@L0: rule 7".to_owned(), Severity::High)]);
    }
}
