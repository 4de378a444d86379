//! What QEMU's migration thread did while it saved devices, by a kernel's trace of the same machine: it worked, or a hog had its CPU.

use base::Table;
use base::figure::Drawing;
use base::qmp::{Message, Way};
use base::recording::Recording;
use base::timeline::Timeline;
use generate::scenario::Scenario;
use generate::{Story, Target};
use kvmscope_analysis::facts::timeline::draw;
use kvmscope_analysis::{Answers, Case, Given};
use serde_json::json;
use std::path::Path;
use trace::format::Endian;
use trace::write::tracedat::Compression;
use trace::write::{Record, Shape, Value};

const CPU: u32 = 3;
const HOG: i32 = 5_000;
const MIGRATES: i32 = 7_000;
/// The vCPU's own work and ours do not share a CPU.
const FROM_NS: u64 = 100_000;
/// When the guest was stopped, CLOCK_REALTIME.
const STOPPED_NS: u64 = 1_795_523_691_000_000_000;

fn begin_ns(story: &Story) -> u64 {
    story.truth.from_ns + FROM_NS
}

fn switch(story: &Story, at_us: u64, (from, state): ((&str, i32), u64), to: (&str, i32)) -> Record {
    let event = story.schema.events.iter().position(|event| event.name == "sched_switch").unwrap();
    let values = story.schema.events[event].fields.iter().map(|field| match (field.name.as_str(), field.shape) {
        ("prev_comm", _) => Value::Text(from.0.into()),
        ("next_comm", _) => Value::Text(to.0.into()),
        ("prev_pid", _) => Value::Integer(from.1 as u64),
        ("next_pid", _) => Value::Integer(to.1 as u64),
        ("prev_state", _) => Value::Integer(state),
        (_, Shape::Chars { .. } | Shape::Dynamic) => Value::Text(String::new()),
        _ => Value::Integer(0),
    });
    let values = values.collect();
    Record { ticks: begin_ns(story) + at_us * 1_000, cpu: CPU, tid: from.1, event, values }
}

/// The migration thread runs from 0 to 100 us, but for 20 to 60 us, when a hog has its CPU.
fn story() -> Story {
    let mut story = Scenario::named("hogs").unwrap().run(1);
    let (idle, hog, own) = (("swapper/3", 0), ("hog", HOG), ("live_migration", MIGRATES));
    let records = vec![
        switch(&story, 0, (idle, 0), own),
        switch(&story, 20, (own, 0), hog),
        switch(&story, 60, (hog, 1), own),
        switch(&story, 100, (own, 1), idle),
    ];
    story.records.extend(records);
    story.records.sort_by_key(|record| (record.ticks, record.cpu));
    story.comms.extend([(HOG, "hog".to_owned()), (MIGRATES, "live_migration".to_owned())]);
    story
}

/// A session of either side: what QEMU told of, so many us after the guest was stopped.
fn session(command: &str, told: &[(i64, &str, serde_json::Value)], path: &Path) {
    let at_us = |us: i64| (STOPPED_NS / 1_000).checked_add_signed(us).unwrap();
    let message = |us: i64, way: Way, message: serde_json::Value| Message { at_ns: at_us(us) * 1_000, way, message };
    let first = told.first().map_or(0, |(us, ..)| *us) - 1;
    let mut messages = vec![message(first, Way::ToQemu, json!({ "execute": command, "id": 0 }))];
    messages.extend(told.iter().map(|(us, name, data)| {
        let timestamp = json!({ "seconds": at_us(*us) / 1_000_000, "microseconds": at_us(*us) % 1_000_000 });
        message(*us, Way::FromQemu, json!({ "event": name, "data": data, "timestamp": timestamp }))
    }));
    base::qmp::write(&messages, path).unwrap();
}

/// A recording of that trace, and of what QEMU printed and told on both sides; its source calls its thread `tid`.
fn case(tid: i32, place: &Path) -> Case {
    let story = story();
    let own = place.join("L0");
    std::fs::create_dir_all(own.join("qmp")).unwrap();
    let written = story
        .write(Target::TraceDat7 { endian: Endian::Little, long_bytes: 8, compression: Compression::None }, &own)
        .unwrap();
    std::fs::rename(written, own.join("trace.dat")).unwrap();
    let at = |tid: i32, us: u64, what: &str| {
        let us = STOPPED_NS / 1_000 + us;
        format!("{tid}@{}.{:06}:vmstate_downtime_{what}\n", us / 1_000_000, us % 1_000_000)
    };
    let source = [
        at(tid, 0, "checkpoint src-downtime-start"),
        at(tid, 10, "checkpoint src-vm-stopped"),
        at(tid, 80, "save type=non-iterable idstr=nic instance_id=0 downtime=70"),
        at(tid, 100, "checkpoint src-downtime-end"),
    ];
    let target = at(9_999, 110, "checkpoint dst-precopy-bh-vm-started");
    std::fs::write(own.join("qmp/source.log"), source.concat()).unwrap();
    std::fs::write(own.join("qmp/target.log"), target).unwrap();
    let status = |status: &str| json!({ "status": status });
    let none = serde_json::Value::Null;
    let of_source = [
        (-90, "MIGRATION", status("setup")),
        (-80, "MIGRATION_PASS", json!({ "pass": 1 })),
        (-40, "MIGRATION_PASS", json!({ "pass": 2 })),
        (0, "STOP", none.clone()),
        (105, "MIGRATION", status("completed")),
    ];
    session("migrate", &of_source, &own.join("qmp/source.jsonl"));
    session("migrate-incoming", &[(110, "RESUME", none)], &own.join("qmp/target.jsonl"));
    let pair = |at: &str, ns: u64| {
        let (realtime_ns, monotonic_ns) = (STOPPED_NS + ns - 1_000_000, begin_ns(&story) + ns - 1_000_000);
        json!({ "machine": "L0", "at": at, "realtime_ns": realtime_ns, "monotonic_ns": monotonic_ns, "tsc": 0, "error_ns": 50 })
    };
    let part = |path: &str, kind: &str, clock: Option<&str>| json!({ "path": path, "machine": "L0", "kind": kind, "clock": clock, "state": "complete" });
    let manifest = json!({
        "schema": "kvmscope-recording/2", "created": "2026-11-24T12:34:47Z", "tool": "test", "emulated": null,
        "machines": [{ "id": "L0", "level": 0, "parent": null, "name": null }],
        "parts": [part("L0/trace.dat", "trace.dat", Some("mono")), part("L0/qmp/source.log", "qmp", None), part("L0/qmp/target.log", "qmp", None),
            part("L0/qmp/source.jsonl", "qmp", None), part("L0/qmp/target.jsonl", "qmp", None)],
        "clock_pairs": [pair("begin", 0), pair("end", 2_000_000)],
    });
    std::fs::write(place.join("recording.json"), manifest.to_string()).unwrap();
    Case::new(kvmscope_analysis::open(Recording::open(place).unwrap()).unwrap(), Given::default())
}

fn section(answers: &Answers) -> &base::Section {
    answers.sections.iter().find(|section| section.id == "migration").unwrap()
}

/// Work and waiting of a device of the source, in us; `None` where they are missing.
fn split(devices: &Table, device: &str) -> Option<(f64, f64)> {
    let rows: Vec<_> = devices.rows().collect();
    let row = rows.iter().find(|row| row.text("device") == Some(device)).unwrap();
    row.number("work_ns").zip(row.number("waiting_ns")).map(|(work, waiting)| (work / 1e3, waiting / 1e3))
}

/// Of what the figure draws of a device of the source, how long each kind is, in us.
fn drawn(section: &base::Section, device: &str) -> Vec<(String, f64)> {
    let dark = section.figures.iter().find(|figure| figure.id == "dark").unwrap();
    let Drawing::Spans(groups) = &dark.drawing else { panic!("{dark:?}") };
    let row = groups[0].rows.iter().find(|row| row.label == format!("source {device}")).unwrap();
    row.stretches.iter().map(|one| (one.what.clone(), (one.to.unwrap() - one.from) / 1e3)).collect()
}

#[test]
fn a_hog_is_told_apart_from_a_slow_device() {
    // By the id that QEMU printed, and by the thread's name where that is of another namespace.
    for tid in [MIGRATES, 12] {
        let place = tempfile::tempdir().unwrap();
        let answers = Answers::of(&case(tid, place.path()));
        let section = section(&answers);
        let devices = section.table("devices").unwrap();
        assert_eq!(split(devices, "nic"), Some((30.0, 40.0)), "{tid}");
        assert_eq!(split(devices, "src-vm-stopped"), Some((10.0, 0.0)));
        assert_eq!(split(devices, "src-downtime-end"), Some((20.0, 0.0)));
        let parts = [("worked", 30.0), ("waited for a CPU", 40.0)].map(|(what, us)| (what.to_owned(), us));
        assert_eq!(drawn(section, "nic"), parts);
        let waited = section.findings.iter().find(|finding| finding.rule == "MIG-WAITED").unwrap();
        assert!(waited.title.starts_with("For 40.0 us of 110.0 us"), "{}", waited.title);
    }
}

#[test]
fn a_migration_is_marked_on_the_time_line_of_the_trace_that_was_recorded_meanwhile() {
    let place = tempfile::tempdir().unwrap();
    let case = case(MIGRATES, place.path());
    let part = &case.ledger().parts[0];
    let stopped_ns = part.on_axis(begin_ns(&story()));
    let drawn = draw(case.input(), case.given(), case.ledger(), &mut |_, _| {});
    let marks: Vec<(i64, &str)> = drawn
        .timeline
        .markers()
        .iter()
        .map(|marker| (marker.at_ns as i64 - stopped_ns as i64, marker.label.as_str()))
        .collect();
    assert_eq!(
        marks,
        [
            (-91_000, "migration begins"),
            (-40_000, "pass 2 begins"),
            (0, "guest stopped"),
            (105_000, "migration completed"),
            (110_000, "guest runs on the target"),
        ]
    );
}
