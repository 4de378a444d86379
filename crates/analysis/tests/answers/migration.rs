//! Recorded migrations, against their sessions read line by line.

use crate::fixtures;
use base::Cell;
use base::recording::Recording;
use kvmscope_analysis::facts::migrations::Migrations;
use kvmscope_analysis::migration::measured::points;
use kvmscope_analysis::{Answers, Case, Given};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn fixture() -> PathBuf {
    fixtures::fixture("migrate-tcg")
}

/// Times of the events of this name in a session, in microseconds.
fn events(session: &str, name: &str) -> Vec<u64> {
    let text = std::fs::read_to_string(fixture().join("L0/qmp").join(session)).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let of = lines.filter(|line| line["message"]["event"] == name);
    let us = |line: Value| {
        let stamp = &line["message"]["timestamp"];
        stamp["seconds"].as_u64().unwrap() * 1_000_000 + stamp["microseconds"].as_u64().unwrap()
    };
    of.map(us).collect()
}

#[test]
fn passes_dark_time_and_residuals_are_those_of_the_sessions() {
    let case = Case::new(kvmscope_analysis::open(Recording::open(&fixture()).unwrap()).unwrap(), Given::default());
    let sections = Answers::of(&case).sections;
    let section = sections.iter().find(|section| section.id == "migration").unwrap();
    let table = |name: &str| section.table(name).unwrap();
    for run in 0..3_u64 {
        let (source, target) = (format!("{run}-source.jsonl"), format!("{run}-target.jsonl"));
        let of_run = |name: &str| {
            let table = table(name);
            (0..table.rows.len())
                .filter(move |row| table.cell(*row, "run") == Some(&Cell::U64(run)))
                .collect::<Vec<_>>()
        };
        assert_eq!(of_run("passes").len(), events(&source, "MIGRATION_PASS").len());
        let [stopped] = events(&source, "STOP")[..] else { panic!("one STOP") };
        let [resumed] = events(&target, "RESUME")[..] else { panic!("one RESUME") };
        let dark = of_run("downtimes")
            .into_iter()
            .find(|row| table("downtimes").cell(*row, "definition") == Some(&Cell::from("vmm_events")));
        assert_eq!(table("downtimes").cell(dark.unwrap(), "value_ns"), Some(&Cell::U64((resumed - stopped) * 1_000)));
        let before = events(&source, "MIGRATION_PASS").into_iter().filter(|at| *at < stopped).count();
        let residual = |what: &str, column: &str| {
            let row = of_run("residuals")
                .into_iter()
                .find(|row| table("residuals").cell(*row, "what") == Some(&Cell::from(what)));
            table("residuals").cell(row.unwrap(), column).cloned()
        };
        assert_eq!(residual("passes", "actual"), Some(Cell::F64(before as f64 - 1.0)));
        let (Some(Cell::F64(total)), Some(Cell::F64(low)), Some(Cell::F64(high))) =
            (residual("total", "actual"), residual("total", "predicted_low"), residual("total", "predicted_high"))
        else {
            panic!("a total of run {run}")
        };
        assert_eq!(residual("total", "inside"), Some(Cell::Bool(low <= total && total <= high)));
    }
}

#[test]
fn what_qemu_printed_is_taken_apart_to_the_microsecond() {
    let logs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/migrate-logs");
    let case = Case::new(kvmscope_analysis::open(Recording::open(&logs).unwrap()).unwrap(), Given::default());
    let sections = Answers::of(&case).sections;
    let section = sections.iter().find(|section| section.id == "migration").unwrap();
    // By hand: src-downtime-start at .271955, dst-precopy-bh-vm-started at .278052, src-downtime-end at .274546.
    let downtimes: Vec<_> = section.table("downtimes").unwrap().rows().collect();
    let row = |definition: &str| downtimes.iter().find(|row| row.text("definition") == Some(definition)).unwrap();
    assert_eq!(row("vmm_reported").number("value_ns"), Some(2e6));
    let checkpoints = row("vmm_checkpoints");
    assert_eq!((checkpoints.number("value_ns"), checkpoints.number("difference_ns")), (Some(6_097e3), Some(4_097e3)));
    assert_eq!(checkpoints.text("cause"), Some("device load, after the source's end"));
    let devices = section.table("devices").unwrap();
    let sum = |side: &str| -> f64 {
        devices.rows().filter(|row| row.text("side") == Some(side)).map(|row| row.number("total_ns").unwrap()).sum()
    };
    assert_eq!(sum("source"), (274_546.0 - 271_955.0) * 1e3);
    // The first line of the target is of memory, which took 11 us until then.
    assert_eq!(sum("target"), (278_052.0 - 273_846.0 + 11.0) * 1e3);
    let log = std::fs::read_to_string(logs.join("L0/qmp/source.log")).unwrap();
    let took = log.lines().find(|line| line.contains("virtio-rng")).unwrap().rsplit_once('=').unwrap().1;
    let rng = devices.rows().find(|row| row.text("device") == Some("0000:00:02.0/virtio-rng")).unwrap();
    assert_eq!(rng.number("total_ns"), Some(took.parse::<f64>().unwrap() * 1e3));
    assert!(section.summary.contains("dark for 6.1 ms (reported: 2 ms)"), "{}", section.summary);
}

#[test]
fn the_trace_of_one_side_says_what_it_lacks() {
    let log = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/migrate-logs/L0/qmp/target.log");
    let case = Case::new(kvmscope_analysis::open(Recording::open(&log).unwrap()).unwrap(), Given::default());
    let sections = Answers::of(&case).sections;
    let section = sections.iter().find(|section| section.id == "migration").unwrap();
    let lacks: Vec<&str> = section.unknown.iter().map(|one| one.what.as_ref()).collect();
    assert_eq!(lacks, ["one_side", "guest", "network"]);
    assert!(!section.summary.contains("saved"), "{}", section.summary);
    let dark = section.figures.iter().find(|figure| figure.id == "dark").unwrap();
    assert!(dark.caption.starts_with("How long the guest was dark is not known"), "{}", dark.caption);
}

#[test]
fn times_across_two_hosts_are_as_wrong_as_their_clocks_are_apart() {
    let mut recording = Recording::open(&fixture()).unwrap();
    let mut other = recording.machines[0].clone();
    other.id = "B".into();
    recording.machines.push(other);
    for part in recording.parts.iter_mut().filter(|part| part.path.ends_with("0-target.jsonl")) {
        part.machine = "B".into();
    }
    let errors = |recording: &Recording| {
        let case = Case::new(kvmscope_analysis::open(recording.clone()).unwrap(), Given::default());
        let sections = Answers::of(&case).sections;
        let section = sections.iter().find(|section| section.id == "migration").unwrap();
        let table = section.table("downtimes").unwrap();
        let is_by_events = |row: &usize| table.cell(*row, "definition") == Some(&Cell::from("vmm_events"));
        let errors =
            (0..table.rows.len()).filter(is_by_events).map(|row| table.cell(row, "error_ns").cloned().unwrap());
        let said = section.unknown.iter().find(|one| one.what == "clocks").map(|one| one.text.clone());
        (errors.take(2).collect::<Vec<_>>(), said.unwrap_or_default())
    };
    let (assumed, said) = errors(&recording);
    assert_eq!(assumed, [Cell::U64(100_002_000), Cell::U64(2_000)], "one run went to another host");
    assert!(said.contains("at most 100.0 ms"), "{said}");
    let mut of_other = recording.clock_pairs[0].clone();
    of_other.machine = "B".into();
    recording.clock_pairs.push(of_other);
    recording.clock_pairs.iter_mut().for_each(|pair| pair.utc_error_ns = Some(250_000));
    let (known, said) = errors(&recording);
    assert_eq!(known, [Cell::U64(502_000), Cell::U64(2_000)]);
    assert!(said.contains("at most 500.0 us"), "{said}");
}

#[test]
fn passes_tell_what_the_guest_dirtied_and_answers_that_come_late_take_nothing_from_it() {
    let (migrations, problems) = Migrations::of(&Recording::open(&fixture()).unwrap());
    assert!(problems.is_empty());
    let points = points(&migrations);
    // By hand, of run 0: what was sent and what is left, in pages, is 65,665 in pass 0, 73,543 in pass 1 and 77,516 in pass 2; the answers that say so
    // came when 32 and 63 pages of the next pass had been sent.
    let pages = |from: f64, until: f64| {
        points.iter().filter(|(window_s, _)| (from..until).contains(window_s)).map(|point| point.1).collect::<Vec<_>>()
    };
    assert_eq!((pages(0.3336, 0.3338), pages(0.1673, 0.1675)), (vec![7_878.0], vec![3_973.0]));
    // Those in which there was time for more than a hundred pages; the guest writes 24,000 in a second.
    let long: Vec<_> = points.iter().copied().filter(|(window_s, _)| *window_s > 0.05).collect();
    assert_eq!(long.len(), 6);
    for (window_s, pages) in long {
        assert!((pages / (24_000.0 * window_s) - 1.0).abs() < 0.05, "{pages} in {window_s} s");
    }
}

#[test]
fn what_a_lab_saw_beside_the_sessions_is_of_that_move() {
    let case = Case::new(
        kvmscope_analysis::open(Recording::open(&fixtures::fixture("migrate-network")).unwrap()).unwrap(),
        Given::default(),
    );
    let sections = Answers::of(&case).sections;
    let section = sections.iter().find(|section| section.id == "migration").unwrap();
    let number = |table: &str, column: &str| match section.table(table).unwrap().cell(0, column) {
        Some(Cell::U64(number)) => *number,
        other => panic!("{table}.{column}: {other:?}"),
    };
    // Every packet was answered, or was lost on one of both ways.
    let text = std::fs::read_to_string(fixtures::fixture("migrate-network").join("L0/network/0.json")).unwrap();
    let network: Value = serde_json::from_str(&text).unwrap();
    let answered: BTreeSet<u64> =
        network["replies"].as_array().unwrap().iter().map(|reply| reply["number"].as_u64().unwrap()).collect();
    assert_eq!(number("network", "sent"), network["sent_ns"].as_array().unwrap().len() as u64);
    assert_eq!(number("network", "sent") - number("network", "lost"), answered.len() as u64);
    assert_eq!(number("network", "lost"), number("network", "lost_in") + number("network", "lost_out"));
    assert_eq!([number("moved_memory", "foretold"), number("moved_memory", "differing")], [1_024, 0]);
    let rows = |table: &str| section.table(table).unwrap().rows.len();
    assert!(rows("downtimes") >= 4, "by QEMU, by events, by the guest and by packets");
}
