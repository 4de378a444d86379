//! What is written is read again; what others write is survived, or refused with a reason.

use super::*;
use crate::Level;
use crate::recording::{EndedBy, Moment, PartKind};

fn with_manifest(text: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("L0")).unwrap();
    std::fs::write(directory.path().join("L0/trace.dat"), b"x").unwrap();
    std::fs::write(directory.path().join(MANIFEST), text).unwrap();
    directory
}

fn manifest_of_part(path: &str) -> String {
    format!(
        r#"{{"schema":"kvmscope-recording/1","emulated":"bochs","machines":[{{"id":"L0","level":0,"parent":null}}],
            "parts":[{{"path":"{path}","machine":"L0","kind":"trace.dat","state":"complete"}}]}}"#
    )
}

#[test]
fn what_is_written_is_read_again() {
    let directory = with_manifest(&manifest_of_part("L0/trace.dat"));
    let first = Recording::open(directory.path()).unwrap();
    assert_eq!((first.emulated, first.level_of("L0")), (Some(Emulator::Bochs), Level::L0));
    first.write().unwrap();
    let second = Recording::open(directory.path()).unwrap();
    assert_eq!((&first.machines, &first.parts, first.emulated), (&second.machines, &second.parts, second.emulated));
    assert!(second.problems.is_empty() && second.clock_pairs.is_empty());
    let machine = "L0".to_owned();
    let pair = |at| ClockPair {
        machine: machine.clone(),
        at,
        realtime_ns: 9,
        monotonic_ns: 7,
        tsc: None,
        error_ns: 1,
        utc_error_ns: Some(2),
    };
    let pairs = vec![pair(Moment::Begin), pair(Moment::End)];
    let ended = Some(Ended { by: EndedBy::Trigger, text: "vCPU 2 lost 37 us".to_owned() });
    Recording { clock_pairs: pairs.clone(), ended: ended.clone(), ..second }.write().unwrap();
    let third = Recording::open(directory.path()).unwrap();
    assert_eq!((third.clock_pairs, third.ended), (pairs, ended));
    let text = std::fs::read_to_string(directory.path().join(MANIFEST)).unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&value["schema"], &value["clock_pairs"][1]["at"]), (&SCHEMA.into(), &"end".into()));
    let names: Vec<_> = std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!names.iter().any(|name| name.to_string_lossy().ends_with(".new")), "{names:?}");
}

#[test]
fn a_part_outside_the_directory_is_refused() {
    for path in ["../x/trace.dat", "/etc/passwd", "L0/../../x", ""] {
        let directory = with_manifest(&manifest_of_part(path));
        let error = Recording::open(directory.path()).unwrap_err().to_string();
        assert!(error.contains("outside the recording's directory"), "{path}: {error}");
    }
}

#[test]
fn another_schema_and_an_unknown_mark_are_refused() {
    for (from, to, said) in [
        ("kvmscope-recording/1", "kvmscope-recording/9", "kvmscope-recording/9"),
        ("\"schema\"", "\"shema\"", "no schema"),
        ("bochs", "xyz", "`emulated` is `xyz`"),
    ] {
        let directory = with_manifest(&manifest_of_part("L0/trace.dat").replace(from, to));
        let error = Recording::open(directory.path()).unwrap_err().to_string();
        assert!(error.contains(said) && error.contains(MANIFEST), "{error}");
    }
}

#[test]
fn new_keys_new_kinds_and_unlisted_machines_are_survived() {
    let directory = with_manifest(
        r#"{"schema":"kvmscope-recording/1","colour":"blue","machines":[],"parts":[
            {"path":"L0/x.pcap","machine":"L0","kind":"pcap","state":"complete"},
            {"path":"L0/trace.dat","machine":"L0","kind":"trace.dat","state":"complete","size":7}]}"#,
    );
    let recording = Recording::open(directory.path()).unwrap();
    assert_eq!(recording.parts.len(), 1);
    assert_eq!(recording.parts[0].kind, PartKind::TraceDat);
    assert_eq!(recording.level_of("L0"), Level::Unknown);
    assert_eq!(recording.problems.len(), 2, "{:?}", recording.problems);
}

fn long_manifest(machines: usize, parts: usize) -> String {
    let machine = |index: usize| format!(r#"{{"id":"m{index}","level":1,"parent":"m0"}}"#);
    let part = |index: usize| format!(r#"{{"path":"n/{index}","machine":"m1","kind":"notes","state":"complete"}}"#);
    let list = |count, one: &dyn Fn(usize) -> String| (0..count).map(one).collect::<Vec<_>>().join(",");
    let (machines, parts) = (list(machines, &machine), list(parts, &part));
    format!(r#"{{"schema":"kvmscope-recording/1","machines":[{machines}],"parts":[{parts}]}}"#)
}

#[test]
fn more_machines_and_parts_than_there_can_be_are_cut_off_and_said() {
    let directory = with_manifest(&long_manifest(MOST_MACHINES + 5, MOST_PARTS + 7));
    let recording = Recording::open(directory.path()).unwrap();
    assert_eq!((recording.machines.len(), recording.parts.len()), (MOST_MACHINES, MOST_PARTS));
    let said: Vec<&str> = recording.problems.iter().map(|problem| problem.text.as_str()).collect();
    assert_eq!(
        said,
        [
            "the manifest lists 1029 machines; those after the first 1024 are not read",
            "the manifest lists 4103 parts; those after the first 4096 are not read",
        ]
    );
}

#[test]
fn what_is_listed_again_counts_once() {
    let part = |path: &str, machine: &str| {
        format!(r#"{{"path":"{path}","machine":"{machine}","kind":"trace.dat","state":"complete"}}"#)
    };
    let parts = [part("L0/trace.dat", "L0"), part("./L0/trace.dat", "L1")].join(",");
    let machine = |level: u8| format!(r#"{{"id":"L0","level":{level},"parent":null}}"#);
    let directory = with_manifest(&format!(
        r#"{{"schema":"kvmscope-recording/1","machines":[{},{}],"parts":[{parts}]}}"#,
        machine(0),
        machine(3)
    ));
    let recording = Recording::open(directory.path()).unwrap();
    assert_eq!((recording.parts.len(), recording.level_of("L0")), (1, Level::L0));
    assert_eq!(recording.problems.len(), 2, "{:?}", recording.problems);
    assert!(recording.problems[1].text.contains("listed more than once"), "{}", recording.problems[1].text);
}

#[test]
fn a_damaged_manifest_gives_way_to_what_lies_there() {
    for text in ["", "{\"schema\": \"kvmsc", "[]", "{\"schema\":3}"] {
        let directory = with_manifest(text);
        let recording = Recording::open(directory.path()).unwrap();
        assert_eq!(recording.parts.len(), 1, "{text}");
        assert_eq!(recording.problems.len(), 1, "{text}");
    }
}

#[test]
fn a_part_renamed_after_the_manifest_was_written_is_followed() {
    let directory = with_manifest(&manifest_of_part("L0/trace.partial"));
    let recording = Recording::open(directory.path()).unwrap();
    assert_eq!(recording.parts[0].path, Path::new("L0/trace.dat"));
}
