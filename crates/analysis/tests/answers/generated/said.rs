//! What an answer says of events that it cannot read and of losses, in words and in tables.

use base::recording::{Named, Recording};
use base::{Cell, Section};
use generate::scenario::{self, Scenario};
use generate::{Generation, Target, Vendor};
use kvmscope_analysis::{Answers, Case, Given};
use std::path::Path;
use trace::format::Endian;
use trace::write::tracedat::Compression;

const PLAIN: Target = Target::TraceDat7 { endian: Endian::Little, long_bytes: 8, compression: Compression::None };
const CTF: Target = Target::Ctf1 { endian: Endian::Little, lttng: false };

/// The section `flow` of a file, and the sentences on what was wrong with it.
fn answer(path: &Path) -> (Section, Vec<String>) {
    let input = kvmscope_analysis::open(Recording::of_files(&[Named::at_l0(path)], None).unwrap()).unwrap();
    let answers = Answers::of(&Case::new(input, Given::default()));
    let problems = answers.problems.iter().map(|problem| problem.text.clone()).collect();
    (answers.sections.into_iter().find(|section| section.id == "flow").unwrap(), problems)
}

/// Rows of a table, with the cells of these columns.
fn rows<const N: usize>(section: &Section, table: &str, columns: [&str; N]) -> Vec<[Cell; N]> {
    let table = section.tables.iter().find(|it| it.spec.name == table).unwrap();
    let places = columns.map(|name| table.column(name).unwrap());
    table.rows.iter().map(|row| places.map(|place| row[place].clone())).collect()
}

#[test]
fn events_that_no_format_describes_are_counted_and_said() {
    let directory = tempfile::tempdir().unwrap();
    let story = scenario::random(1);
    let path = story.write(PLAIN, directory.path()).unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    // The switches keep their number, and their format gets another one.
    let format = b"name: sched_switch\nID: ";
    let place = bytes.windows(format.len()).position(|window| window == format).unwrap();
    bytes[place + format.len()] = b'9';
    std::fs::write(&path, bytes).unwrap();
    let switches = story.schema.events.iter().position(|event| event.name == "sched_switch").unwrap();
    let count = story.records.iter().filter(|record| record.event == switches).count() as u64;
    let (section, problems) = answer(&path);
    assert!(count > 0);
    let events = rows(&section, "events", ["event", "count"]);
    assert!(events.contains(&[Cell::Text("unknown event".into()), Cell::U64(count)]), "{events:?}");
    let said = format!("the file has no format for {count} of its events");
    assert!(problems.iter().any(|problem| problem.contains(&said)), "{problems:?}");
    let switchless = section.unknown.iter().find(|unknown| unknown.what == "no_switches").unwrap();
    assert!(switchless.text.contains("may be among the events without a format"), "{}", switchless.text);
}

#[test]
fn a_loss_stands_once_in_table_and_evidence() {
    let story = Scenario::named("losses").unwrap().run_on(Vendor::Svm, Generation::V6_12, 1).unwrap();
    let lost: u64 = story.losses.iter().filter_map(|loss| loss.events).sum();
    assert!(lost > 0);
    let directory = tempfile::tempdir().unwrap();
    let (section, _) = answer(&story.write(CTF, directory.path()).unwrap());
    let losses = rows(&section, "losses", ["cpu", "kind", "count"]);
    let of_kind = |kind: &str| {
        let of_kind = losses.iter().filter(|row| row[1] == Cell::Text(kind.into()));
        of_kind.map(|row| if let Cell::U64(count) = row[2] { count } else { 0 }).sum::<u64>()
    };
    assert_eq!((of_kind("discarded"), of_kind("missed")), (lost, 0), "{losses:?}");
    let mut keys: Vec<String> = losses.iter().map(|row| format!("{:?} {:?}", row[0], row[1])).collect();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), losses.len(), "{losses:?}");
    let finding = section.findings.iter().find(|finding| finding.rule == "FLW-LOST").unwrap();
    let mut evidence: Vec<&str> = finding.evidence.iter().map(|seen| seen.what.as_str()).collect();
    assert!(evidence.iter().all(|what| !what.contains("missed")), "{evidence:?}");
    evidence.sort_unstable();
    evidence.dedup();
    assert_eq!(evidence.len(), finding.evidence.len(), "{evidence:?}");
}

#[test]
fn a_trace_without_a_clock_is_not_called_damaged() {
    let directory = tempfile::tempdir().unwrap();
    let path = scenario::random(1).write(CTF, directory.path()).unwrap();
    let metadata = path.join("metadata");
    let text = std::fs::read_to_string(&metadata).unwrap();
    let (before, clock) = text.split_once("clock {").unwrap();
    let (_, behind) = clock.split_once("};").unwrap();
    let mapped = [before, behind].concat();
    let mut without = String::new();
    let mut rest = mapped.as_str();
    while let Some((before, map)) = rest.split_once("map = clock.") {
        without.push_str(before);
        rest = map.split_once(';').unwrap().1;
    }
    std::fs::write(&metadata, without + rest).unwrap();
    let (section, problems) = answer(&path);
    assert!(problems.iter().any(|problem| problem.contains("describes no clock")), "{problems:?}");
    assert!(!problems.iter().any(|problem| problem.contains("tick length")), "said once: {problems:?}");
    let kinds: Vec<Cell> = rows(&section, "losses", ["kind"]).into_iter().map(|[kind]| kind).collect();
    assert!(!kinds.contains(&Cell::Text("salvaged".into())), "{kinds:?}");
    assert!(section.findings.iter().all(|finding| finding.rule != "FLW-DAMAGE"));
}
