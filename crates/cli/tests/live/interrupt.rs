//! Do commands leave nothing behind when Ctrl-C, SIGTERM or a hangup ends them? Each is sent the signal once it has made
//! something that would stay.

use super::record::text;
use assert_cmd::cargo::cargo_bin;
use rustix::process::{Pid, Signal, kill_process};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use testing::{Workspace, cannot_record, wait_for, was_hangup_ignored};

const SIGNALS: [Signal; 3] = [Signal::INT, Signal::TERM, Signal::HUP];

fn start(place: &Path, arguments: &[&str]) -> Child {
    let mut command = Command::new(cargo_bin("kvmscope"));
    command.current_dir(place).env("TMPDIR", place).env("KVMSCOPE_JOURNAL", place.join("journal")).args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn entries(place: &Path) -> Vec<String> {
    let names = std::fs::read_dir(place).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name != "journal").collect()
}

fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// Waits until something is there, then sends the signal. `None` if the command had ended by then.
fn once_made(place: &Path, mut child: Child, signal: Signal) -> Option<Output> {
    let mut ended = false;
    wait_for("something that would stay", || {
        ended = child.try_wait().unwrap().is_some();
        ended || !entries(place).is_empty()
    });
    if ended {
        return None;
    }
    send(&child, signal);
    Some(child.wait_with_output().unwrap())
}

#[test]
fn what_reads_this_host_ends_with_130_and_leaves_nothing() {
    let mut commands = vec![
        &["check", "--span", "60"][..],
        &["check", "--span", "0"],
        &["apply", "PLC-OVERLAP@nobody"],
        &["snapshot", "--span", "60", "-o", "shot"],
    ];
    #[cfg(feature = "labs")]
    commands.push(&["bench", "macro", "--json", "--", "sleep", "60"]);
    match cannot_record() {
        None => commands.extend([&["check", "--probe", "--span", "0"][..], &["record", "-o", "new"]]),
        Some(why) => println!("skipped: record and check --probe: {why}"),
    }
    for (number, arguments) in commands.into_iter().enumerate() {
        let place = Workspace::alone();
        let signal = match SIGNALS[number % SIGNALS.len()] {
            Signal::HUP if was_hangup_ignored() => Signal::TERM,
            signal => signal,
        };
        let output = once_made(place.path(), start(place.path(), arguments), signal).unwrap();
        assert_eq!(output.status.code(), Some(130), "{arguments:?}: {}", text(&output.stderr));
        assert_eq!(entries(place.path()), [""; 0], "{arguments:?}");
        let journal = std::fs::read_dir(place.path().join("journal")).map_or(0, Iterator::count);
        assert_eq!(journal, 0, "{arguments:?} leaves something to undo");
    }
}

#[test]
fn a_hangup_that_is_ignored_from_the_start_ends_nothing() {
    let place = Workspace::alone();
    let program = cargo_bin("kvmscope");
    let script = format!("trap '' HUP; exec '{}' snapshot --span 0.5 -o shot", program.display());
    let child =
        Command::new("sh").args(["-c", &script]).current_dir(place.path()).stdout(Stdio::null()).spawn().unwrap();
    let output = once_made(place.path(), child, Signal::HUP).unwrap();
    assert!(output.status.success(), "{}", output.status);
    assert!(place.path().join("shot/recording.json").exists());
}
