//! `kvmscope cut` from end to end: the new recording is whole, opens, and holds the window's events.

use assert_cmd::Command;
use base::recording::Recording;
use std::path::{Path, PathBuf};
use trace::replay::Listener;
use trace::{Event, Reading, Request};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name)
}

/// Runs `kvmscope cut`, expects success and one line on what was cut, and opens the result.
fn cut(arguments: &[&str], output: &Path) -> Recording {
    let mut command = Command::cargo_bin("kvmscope").unwrap();
    let said = command.arg("cut").args(arguments).arg("-o").arg(output).assert().success().stderr("");
    let said = String::from_utf8_lossy(&said.get_output().stdout).into_owned();
    assert!(said.lines().count() == 1 && said.contains(" events; "), "{said}");
    Recording::open(output).unwrap()
}

struct Ignore;

impl Listener for Ignore {
    fn event(&mut self, _: &Event<'_>) {}
}

/// Number of events of each trace of a recording.
fn events(recording: &Recording) -> Vec<u64> {
    let count = |part: &base::recording::Part| {
        let trace = trace::open(&recording.root.join(&part.path)).unwrap();
        let request = Request::default();
        trace::replay(trace.as_ref(), &Reading { request: &request, fitted: None }, &mut Ignore).events()
    };
    recording.parts.iter().map(count).collect()
}

/// The manifest's word on what made the recording.
fn tool(recording: &Recording) -> &str {
    recording.tool.as_deref().unwrap_or_default()
}

#[test]
fn two_halves_of_a_recording_hold_all_of_it() {
    let directory = tempfile::tempdir().unwrap();
    let toy = fixture("nested-svm-toy");
    let toy = toy.to_str().unwrap();
    let early = cut(&[toy, "--to", "0.5"], &directory.path().join("early"));
    let late = cut(&[toy, "--from", "0.5", "--to", "10"], &directory.path().join("late"));
    let (early_events, late_events) = (events(&early)[0], events(&late)[0]);
    assert_eq!(early_events + late_events, 5_939);
    assert!(early_events > 0 && late_events > 0);
    assert_eq!(early.emulated, Recording::open(Path::new(toy)).unwrap().emulated);
    assert!(tool(&early).ends_with("0 ns to 500000000 ns"), "{}", tool(&early));
}

#[test]
fn machines_are_cut_on_their_own_clocks_and_the_manifest_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let whole = fixture("svm-linux");
    let recording = cut(&[whole.to_str().unwrap(), "--to", "100"], &directory.path().join("all"));
    assert_eq!(events(&recording), [62_839, 13_995]);
    let machines: Vec<_> = recording.machines.iter().map(|machine| (machine.id.as_str(), machine.level)).collect();
    assert_eq!(machines, [("L0", 0), ("L1", 1)]);
    assert!(tool(&recording).ends_with("on each clock since its own first event"), "{}", tool(&recording));
}

#[test]
fn a_bare_file_becomes_a_recording_and_two_parts_of_a_machine_share_an_axis() {
    let directory = tempfile::tempdir().unwrap();
    let toy = fixture("nested-vmx-shadow-off-hog/L0/trace.dat");
    let toy = toy.to_str().unwrap();
    let late = cut(&[toy, "--from", "0.3", "--to", "10"], &directory.path().join("late"));
    let late_file = late.root.join(&late.parts[0].path);
    // The first 0.4 s of the whole are the first 0.1 s of what began at 0.3 s.
    let both = directory.path().join("both");
    std::fs::create_dir_all(both.join("L0")).unwrap();
    std::fs::copy(toy, both.join("L0/whole.dat")).unwrap();
    std::fs::copy(&late_file, both.join("L0/late.dat")).unwrap();
    let part = |name: &str| base::recording::Part { path: Path::new("L0").join(name), ..late.parts[0].clone() };
    let parts = vec![part("whole.dat"), part("late.dat")];
    Recording { root: both.clone(), parts, ..late.clone() }.write().unwrap();
    let shared = cut(&[both.to_str().unwrap(), "--from", "0.3", "--to", "0.4"], &directory.path().join("shared"));
    let counts = events(&shared);
    assert!(counts[0] > 0 && counts[0] == counts[1], "{counts:?}");
    assert!(!tool(&shared).contains("each clock"), "{}", tool(&shared));
}

#[test]
fn a_ctf_trace_is_cut_too() {
    let directory = tempfile::tempdir().unwrap();
    let whole = fixture("lttng-svm-l0");
    let recording = cut(&[whole.to_str().unwrap(), "--from", "0.2", "--to", "0.4"], &directory.path().join("ctf"));
    let count = events(&recording)[0];
    assert!((1..19_209).contains(&count), "{count}");
}
