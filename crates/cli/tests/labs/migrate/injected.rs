//! Something goes wrong on purpose while a guest is moved or saved, and the report names it by what was recorded: it is not told of it.

use super::network::{may_have_a_network, noted};
use super::{TARGET, about_migration, found, lab, left, rows};
use base::prediction::{Prediction, SCHEMA};
use base::recording::Destination;
use lab::journal::Journal;
use labs::machine::Places;
use labs::migrate::sector::Work;
use labs::migrate::{self, Culprit, Injection, Pace, Phase, Saved, Settings};
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use testing::Workspace;

const SOURCE: &str = "the guest goes on where it was";
const LOST: &str = "the guest is lost";

/// Pages that the guest writes to in a second.
const PAGES_PER_S: f64 = 4_000.0;

fn settings(injection: Option<Injection>, packets: Option<Pace>) -> Settings {
    let ticks = lab::clocks::tsc_hz().unwrap() / PAGES_PER_S;
    Settings {
        memory_bytes: 128 << 20,
        work: Work { pages: 8_192, ticks: ticks as u32, anywhere: false },
        period: Duration::from_secs_f64(1.0 / PAGES_PER_S),
        bandwidth_bytes_per_s: 100_000_000,
        limit: Duration::from_millis(50),
        patience: Duration::from_secs(60),
        is_observed: false,
        packets,
        methods: vec![base::method::Method::Precopy],
        injection,
        repeats: 1,
        link_bytes_per_s: Some(1_000_000_000),
        qemu: None,
    }
}

fn places(directory: &Path) -> Places {
    Places {
        program: env!("CARGO_BIN_EXE_kvmscope").into(),
        cache: directory.join("cache"),
        programs: std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).collect(),
        output: Destination { path: directory.join("moved"), replace: false },
    }
}

fn nothing() -> Prediction {
    Prediction {
        schema: SCHEMA.to_owned(),
        about: "migration".to_owned(),
        given: std::collections::BTreeMap::new(),
        said: Vec::new(),
    }
}

/// What `kvmscope report` answers about the recording in `directory`.
fn reported(directory: &Path) -> Value {
    assert_eq!(left(directory), [""; 0]);
    let mut report = Command::new(env!("CARGO_BIN_EXE_kvmscope"));
    let output = report.args(["report", "--json"]).arg(directory.join("moved")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    about_migration(&output.stdout)
}

/// The answer about a guest that is said to be somewhere in the end, after something went wrong; `None` where no QEMU is installed.
fn moved(culprit: Culprit, phase: Phase, packets: Option<Pace>, whereabouts: &str) -> Option<Value> {
    let directory = Workspace::alone();
    let directory = directory.path();
    lab(directory, &[])?;
    let settings = settings(Some(Injection { culprit, phase, length: Duration::from_millis(300) }), packets);
    let journal = Journal::new(directory.join("journal"), "/proc");
    let (mut said, created) = (Vec::new(), "2026-01-01T00:00:00Z".to_owned());
    let mut say = |line: &str| said.push(line.to_owned());
    let predict = |_| panic!("the model knows of no culprit");
    let stop = AtomicBool::new(false);
    migrate::run(&settings, &predict, &places(directory), &journal, created, &mut say, &stop).unwrap();
    assert!(said.iter().any(|line| line.contains(whereabouts)), "{said:?}");
    assert_eq!(noted(directory), 0);
    Some(reported(directory))
}

fn is_named(section: &Value, start: &str) {
    let found = found(section);
    assert!(found.iter().any(|one| one.starts_with(start)), "{start}: {found:?}");
}

#[test]
fn a_source_whose_target_is_killed_goes_on_with_the_guest_and_the_report_names_who_ended() {
    let Some(section) = moved(Culprit::KillTarget, Phase::FirstPass, None, SOURCE) else { return };
    let found = found(&section);
    let named = "MIG-ENDED: The target ended (signal: 9 (SIGKILL))";
    assert!(found.iter().any(|one| one.starts_with(named) && one.ends_with("goes on at the source")), "{found:?}");
    let (of, runs) = rows(&section, "runs");
    assert_eq!((runs[0][of("ended")].as_str(), runs[0][of("total_ns")].is_null()), (Some("failed"), true));
}

#[test]
#[ignore = "torture"]
fn every_culprit_is_named_by_what_was_recorded_in_each_phase() {
    for (culprit, phase, whereabouts, named) in [
        (Culprit::StopSource, Phase::FirstPass, TARGET, "MIG-STOPPED: The source was stopped by a signal"),
        (Culprit::StopTarget, Phase::Passes, TARGET, "MIG-STOPPED: The target was stopped by a signal"),
        (Culprit::StopTarget, Phase::Dark, TARGET, "MIG-STOPPED: The target was stopped by a signal"),
        (Culprit::Hog, Phase::Dark, TARGET, "MIG-WAITED: "),
        (Culprit::KillTarget, Phase::Passes, SOURCE, "MIG-ENDED: The target ended"),
        (Culprit::KillTarget, Phase::Dark, SOURCE, "MIG-ENDED: The target ended"),
        (Culprit::KillSource, Phase::FirstPass, LOST, "MIG-ENDED: The source ended"),
        (Culprit::Capability, Phase::FirstPass, SOURCE, "MIG-CAPABILITY: multifd is set on the source alone"),
        (Culprit::Dark, Phase::Dark, TARGET, "MIG-HELD: Held before the switch-over"),
    ] {
        let Some(section) = moved(culprit, phase, None, whereabouts) else { return };
        is_named(&section, named);
    }
}

#[test]
#[ignore = "torture"]
fn a_guest_that_nobody_announces_and_a_link_that_is_down_are_found() {
    if !may_have_a_network() {
        return;
    }
    let packets = Some(Pace::Every(Duration::from_millis(1)));
    for (culprit, phase, named) in [
        (Culprit::NoAnnounce, Phase::FirstPass, "MIG-ANNOUNCE: The guest was never announced where it went"),
        (Culprit::LinkDown, Phase::Passes, "MIG-LINK: The link that carries the guest was down for"),
    ] {
        let Some(section) = moved(culprit, phase, packets, TARGET) else { return };
        is_named(&section, named);
    }
}

#[test]
#[ignore = "torture"]
fn a_disk_that_is_full_is_named_and_the_guest_goes_on_while_others_are_saved() {
    let directory = Workspace::alone();
    let directory = directory.path();
    if lab(directory, &[]).is_none() {
        return;
    }
    let saved = Saved { settings: settings(None, None), guests: 3, expected_bytes: 34 << 20, is_disk_full: true };
    let (created, stop) = ("2026-01-01T00:00:00Z".to_owned(), AtomicBool::new(false));
    migrate::hibernate(&saved, &|_| nothing(), &places(directory), created, &mut |_| (), &stop).unwrap();
    let section = reported(directory);
    let found = found(&section);
    assert!(found.len() == 1 && found[0].starts_with("MIG-NOSPACE: "), "{found:?}");
    assert!(found[0].ends_with(SOURCE), "{found:?}");
    let (of, saves) = rows(&section, "saves");
    let equal: Vec<&Value> = saves.iter().map(|row| &row[of("equal")]).collect();
    assert_eq!(equal, [&Value::Null, &Value::Bool(true), &Value::Bool(true)]);
}
