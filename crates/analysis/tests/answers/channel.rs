//! A recording with a bench of the channel, and who answers for it.

use base::bench::{Bench, Measured, NS_PER_TICK, Params};
use base::channel::{BENCH, Delays, Fault, Faults, FlowRun, NO_LOSS, PAIRS, Run, SLICE_NS, Setup, Side};
use base::recording::Recording;
use base::{About, Evidence, Section};
use kvmscope_analysis::{Answers, Case, Given};
use std::collections::BTreeMap;

/// Something of everything: a sweep with and without windows, on one core, disturbed, unverified, wrong.
fn run(window: &str, window_ns: f64, batch: u32) -> Run {
    let side = |cpu| Side {
        cpu,
        ns: 100_000_000,
        cpu_ns: 95_000_000,
        involuntary: 3,
        windows: u64::from(window != "none"),
        open_ns: 60_000_000,
        gap_count: 2,
        gap_ns: 900_000,
        gaps: vec![(1_000, 400_000), (5_000_000, 500_000)],
        ..Side::default()
    };
    let batch_ns = window_ns + 60.0 + 14.0 * f64::from(batch);
    let (slices, clean_slices) = (1_000, 800);
    let packets = |slices: u64| ((slices * SLICE_NS) as f64 * f64::from(batch) / batch_ns) as u64;
    Run {
        setup: Setup {
            path: "ring".into(),
            window: window.into(),
            size_bytes: 64,
            batch,
            policy: "kick".into(),
            vms: 2,
        },
        slots: 4_096,
        moved_bytes: 128,
        ring_bytes: 524_288,
        ns: slices * SLICE_NS,
        packets: packets(clean_slices),
        slices,
        slice_ns: SLICE_NS,
        clean_slices,
        clean_packets: packets(clean_slices),
        verified: batch > 1,
        counted: false,
        lost: u64::from(batch == 8),
        duplicated: 0,
        reordered: 0,
        torn: 0,
        dropped: 0,
        window_ns,
        kicks: packets(clean_slices),
        setup_ns: None,
        setup_parts: Vec::new(),
        pair: if batch == 64 { PAIRS[4] } else { PAIRS[1] }.into(),
        producer: side(0),
        consumer: side(1),
        others: Vec::new(),
        emulated: false,
    }
}

/// Delays, a flow table that did not hold, and a rule that was not survived.
fn others() -> Vec<Measured> {
    let delays = |load: &str, mpps: Option<f64>| Delays {
        setup: Setup { policy: "poll".into(), ..run("none", 0.0, 32).setup },
        load: load.into(),
        rate_mpps: mpps,
        clean_mpps: Some(10.0),
        ns: 1_000_000,
        behind_ns: 0,
        due: 5_000,
        dropped: 10,
        lost: 0,
        wrong: 0,
        max_ns: 40_000,
        search: None,
    };
    let flows = FlowRun {
        vms: 2,
        asked_per_s: 10_000,
        ns: 1_000_000_000,
        changes: 10_000,
        revocations: 6_000,
        grace: 50,
        sent: 1_000_000,
        stale_sent: 40_000,
        delivered: 900_000,
        dropped: 100_000,
        misdelivered: 3,
        lag_p99_ns: vec![2_000, 3_000],
        unacknowledged: 1,
        acknowledgement_faults: 0,
        shared_cpus: true,
    };
    let fault = |rule: u8, seen: Option<u64>, survived: Option<bool>| Fault {
        rule,
        what: "something".into(),
        injected: u64::from(survived.is_some()),
        seen,
        survived,
        why: if survived == Some(true) { String::new() } else { "the honest side was ended by signal 7".into() },
    };
    let rules = vec![fault(1, Some(1), Some(true)), fault(4, Some(0), Some(false)), fault(12, None, None)];
    let hdr = vec![(1_000, 4_000), (40_000, 990)];
    let one = Measured { unit: "ns".into(), ..Measured::default() };
    vec![
        Measured { hdr: hdr.clone(), delays: Some(Box::new(delays("50 %", Some(5.0)))), ..one.clone() },
        Measured { hdr: hdr.clone(), delays: Some(Box::new(delays("90 %", Some(9.0)))), ..one.clone() },
        Measured { delays: Some(Box::new(delays(NO_LOSS, None))), ..one.clone() },
        Measured { hdr, flows: Some(Box::new(flows)), ..one.clone() },
        Measured { faults: Some(Box::new(Faults { rules })), ..one },
    ]
}

fn sections() -> Vec<Section> {
    let root = tempfile::tempdir().unwrap();
    let manifest = include_str!("../../../../fixtures/bench-svm/recording.json");
    std::fs::write(root.path().join("recording.json"), manifest.replace("exits.json", "channel.json")).unwrap();
    let mut bench = Bench::new(BENCH, BTreeMap::from([(NS_PER_TICK.to_owned(), "0.5".to_owned())]));
    for (window, window_ns) in [("none", 0.0), ("pkey", 28.8), ("mprotect", 7_795.0)] {
        for (launch, batch) in (0..2).flat_map(|launch| [1, 8, 64].map(|batch| (launch, batch))) {
            bench.results.push(Measured {
                name: format!("ring, window {window}, batch {batch}"),
                params: Params { launch, ..Params::default() },
                unit: "count".into(),
                channel: Some(Box::new(run(window, window_ns, batch))),
                ..Measured::default()
            });
        }
    }
    bench.results.extend(others());
    bench.write(&root.path().join("L0/bench/channel.json")).unwrap();
    let input = kvmscope_analysis::open(Recording::open(root.path()).unwrap()).unwrap();
    Answers::of(&Case::new(input, Given::default())).sections
}

#[test]
fn one_section_answers_for_it_and_no_other() {
    let sections = sections();
    assert_eq!(sections.iter().map(|section| section.id).collect::<Vec<_>>(), ["channel"]);
    let section = &sections[0];
    assert_eq!(
        section.tables.iter().map(|table| table.spec.name).collect::<Vec<_>>(),
        ["rates", "gaps", "delays", "flows", "faults"]
    );
    // Nine setups, and three windows of others for three batches.
    assert_eq!(section.table("rates").unwrap().rows.len(), 9 + 9);
    assert!(section.about.iter().any(|line| line.starts_with("EMULATED")), "{:?}", section.about);
    for figure in &section.figures {
        assert!(figure.title.ends_with('?') && figure.caption.ends_with('.'), "{figure:?}");
    }
}

#[test]
fn its_findings_name_rows_that_are_there_and_no_amount_that_is_none() {
    let section = sections().remove(0);
    let rules: std::collections::BTreeSet<&str> = section.findings.iter().map(|finding| finding.rule).collect();
    let expected = [
        "CHN-FAULT",
        "CHN-KICKS",
        "CHN-MPROTECT",
        "CHN-NODES",
        "CHN-OPEN",
        "CHN-PREEMPTED",
        "CHN-SIBLINGS",
        "CHN-STALE",
        "CHN-UNVERIFIED",
        "CHN-WINDOW",
        "CHN-WRONG",
    ];
    assert_eq!(
        rules.into_iter().collect::<Vec<_>>(),
        expected,
        "a ring is held against a cache that a snapshot tells of"
    );
    let ids: Vec<String> = section.findings.iter().map(base::Finding::id).collect();
    assert_eq!(ids.iter().collect::<std::collections::BTreeSet<_>>().len(), ids.len(), "{ids:?}");
    for finding in &section.findings {
        assert!(!finding.evidence.is_empty() && (!finding.fix.is_empty() || finding.rule == "CHN-OPEN"), "{finding:?}");
        for Evidence { what, about, .. } in &finding.evidence {
            for about in about {
                let About::Rows { table, .. } = about else { continue };
                let table = section.table(table.strip_prefix("channel.").unwrap()).unwrap();
                assert!(table.rows.iter().any(|row| about.is_row(table.spec, row)), "{what}");
            }
        }
        for text in finding.evidence.iter().map(|seen| &seen.what).chain([&finding.title]) {
            assert!(!text.contains("NaN") && !text.contains("inf") && !text.contains(" - "), "{text}");
        }
    }
}

/// A real recording: a thread called `hog` takes the CPU of the side that receives for 4 ms, again and again.
fn hogged() -> Section {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/channel-hog");
    let input = kvmscope_analysis::open(Recording::open(&path).unwrap()).unwrap();
    let sections = Answers::of(&Case::new(input, Given::default())).sections;
    sections.into_iter().find(|section| section.id == "channel").unwrap()
}

#[test]
fn the_hog_of_a_real_recording_is_named_for_each_gap_that_is_as_long_as_its_turn() {
    let section = hogged();
    let gaps = section.table("gaps").unwrap();
    let long: Vec<_> = gaps
        .rows()
        .filter(|row| row.text("thread") == Some("consumer") && row.number("length_ns").unwrap() > 3.5e6)
        .collect();
    assert!(long.len() >= 5, "{} long gaps", long.len());
    for row in &long {
        assert!(row.text("by").unwrap().starts_with("hog/"), "{row:?}");
        let [from_ns, to_ns] = ["timeline_from_ns", "timeline_to_ns"].map(|name| row.number(name).unwrap());
        assert!((to_ns - from_ns - row.number("length_ns").unwrap()).abs() < 1_000.0, "{row:?}");
    }
    assert!(section.summary.contains("in gaps of all setups, by the trace: hog "), "{}", section.summary);
}

#[test]
fn the_finding_names_the_hog_and_opens_the_timeline_at_the_longest_gap() {
    let section = hogged();
    let finding = section.findings.iter().find(|finding| finding.rule == "CHN-PREEMPTED").unwrap();
    assert!(finding.title.contains("; hog/") && finding.title.ends_with("of the time in gaps"), "{}", finding.title);
    let useless = |line: &String| line.contains("--fifo") || line.contains("taskset");
    assert!(!finding.fix.iter().any(useless), "both CPUs measured, by SCHED_FIFO already: {:?}", finding.fix);
    let spans = finding.evidence.iter().flat_map(|seen| &seen.about);
    assert_eq!(spans.filter(|about| matches!(about, About::Span(_))).count(), 1);
    let gaps = section.table("gaps").unwrap();
    for about in finding.evidence.iter().flat_map(|seen| &seen.about) {
        let About::Rows { table: "channel.gaps", .. } = about else { continue };
        assert!(gaps.rows.iter().any(|row| about.is_row(gaps.spec, row)), "{about:?}");
    }
}

#[test]
fn a_ring_that_fits_into_the_cache_is_no_finding_and_nothing_was_lost() {
    let section = hogged();
    assert!(section.findings.iter().all(|finding| finding.rule != "CHN-RING"), "this ring fits");
    assert!(section.unknown.iter().all(|unknown| unknown.what != "lost_events"), "{:?}", section.unknown);
}
