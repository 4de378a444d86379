//! `kvmscope apply` that ends where nobody planned it: killed between two changes, its disk full, its threads gone. What
//! `kvmscope undo` leaves must be what was.

use super::{cpus_of, places, said};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use testing::{Running, Workspace, wait_for};

fn sleepers(count: usize) -> Vec<Running> {
    (0..count).map(|_| Running(Command::new("sleep").arg("120").spawn().unwrap())).collect()
}

/// A directory with a report, a journal, and programs that come before all others.
struct Place(Workspace);

impl Place {
    fn new(changes: &[Value]) -> Self {
        let place = Self(Workspace::alone());
        std::fs::write(place.at("report.json"), super::report_of("PLC-TEST@x", changes).to_string()).unwrap();
        std::fs::create_dir(place.at("bin")).unwrap();
        place
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn kvmscope(&self, arguments: &[&str], journal: &Path) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kvmscope"));
        let path = format!("{}:{}", self.at("bin").display(), std::env::var("PATH").unwrap());
        command.args(arguments).env("PATH", path).env("KVMSCOPE_JOURNAL", journal);
        command
    }

    fn apply(&self, journal: &Path) -> Command {
        let mut command = self.kvmscope(&["apply", "PLC-TEST@x", "--yes", "--from"], journal);
        command.arg(self.at("report.json"));
        command
    }

    fn undo(&self, journal: &Path) -> String {
        let output = self.kvmscope(&["undo"], journal).output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        said(&output)
    }

    /// A program of that name, in the way of the real one.
    fn program(&self, name: &str, script: &str) {
        let path = self.at("bin").join(name);
        std::fs::write(&path, script).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    }
}

fn moved(sleeper: &Running, from: &str, cpus: &str) -> Value {
    super::moved(sleeper.0.id(), from, cpus)
}

fn is_empty(journal: &Path) -> bool {
    std::fs::read_dir(journal).map_or(true, |mut entries| entries.next().is_none())
}

/// libvirt, as far as a pin of the running domain `web` needs it. The list lies in the file `pin`. Where `hang` is there, a
/// set list waits for ever: before it takes hold, or after.
const VIRSH: &str = r#"#!/bin/sh
cd "$(dirname "$0")/.."
case "$2 $*" in
"domstate "*) echo running ;;
"dumpxml "*) echo "<domain/>" ;;
"emulatorpin "*--cpulist=*)
    for word; do case $word in --cpulist=*) new=${word#--cpulist=} ;; esac; done
    [ "$(cat hang 2>/dev/null)" = before ] && : > hung && exec sleep 120
    echo "$new" > pin
    [ "$(cat hang 2>/dev/null)" = after ] && : > hung && exec sleep 120
    exit 0 ;;
"emulatorpin "*) cat pin ;;
esac
"#;

#[test]
fn killed_between_two_changes_it_is_undone_exactly() {
    let Some((first, all)) = places("killing apply at a step") else { return };
    for hang in ["before", "after"] {
        let mut threads = sleepers(3);
        let pin = json!({"type": "EmulatorPin", "domain": "web", "cpus": first, "from": all});
        let place = Place::new(&[
            moved(&threads[0], &all, &first),
            moved(&threads[1], &all, &first),
            pin,
            moved(&threads[2], &all, &first),
        ]);
        place.program("virsh", VIRSH);
        std::fs::write(place.at("pin"), &all).unwrap();
        std::fs::write(place.at("hang"), hang).unwrap();
        let journal = place.at("journal");
        let mut apply = place.apply(&journal).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        wait_for("the pin", || place.at("hung").exists());
        apply.kill().unwrap();
        apply.wait().unwrap();
        let changed: Vec<String> = threads.iter().map(|thread| cpus_of(thread.0.id())).collect();
        assert_eq!(changed, [&first, &first, &all].map(String::as_str), "killed in the middle");
        std::fs::remove_file(place.at("hang")).unwrap();
        // One of the threads that were moved ends before anybody puts it back.
        drop(threads.remove(1));
        let undone = place.undo(&journal);
        assert!(undone.contains("left alone") && undone.contains("the thread has ended"), "{undone}");
        assert!(threads.iter().all(|thread| cpus_of(thread.0.id()) == all), "{undone}");
        assert_eq!(std::fs::read_to_string(place.at("pin")).unwrap().trim(), all, "{hang}: {undone}");
        assert!(is_empty(&journal), "{undone}");
    }
}

#[test]
fn killed_at_any_moment_it_is_undone_exactly() {
    let Some((first, all)) = places("killing apply at any moment") else { return };
    let threads = sleepers(24);
    let changes: Vec<Value> = threads.iter().map(|thread| moved(thread, &all, &first)).collect();
    let place = Place::new(&changes);
    let journal = place.at("journal");
    let has_moved = |thread: &Running| cpus_of(thread.0.id()) == first;
    let mut midway = 0;
    for which in [0, 5, 11, 17, 23] {
        let mut apply = place.apply(&journal).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        wait_for("a change", || has_moved(&threads[which]));
        apply.kill().unwrap();
        apply.wait().unwrap();
        midway += usize::from(!threads.iter().all(has_moved));
        let undone = place.undo(&journal);
        assert!(!threads.iter().any(has_moved), "{undone}");
        assert!(is_empty(&journal), "{undone}");
    }
    assert!(midway > 0, "every kill came too late");
}

#[test]
fn a_trial_that_is_ended_in_the_middle_leaves_what_was() {
    let Some((first, all)) = places("ending a trial") else { return };
    let threads = sleepers(1);
    let place = Place::new(&[moved(&threads[0], &all, &first)]);
    let journal = place.at("journal");
    for signal in ["-INT", "-TERM", "-HUP", "-KILL"] {
        if signal == "-HUP" && testing::was_hangup_ignored() {
            continue;
        }
        let mut apply = place.apply(&journal);
        let mut apply = apply.args(["--trial", "2"]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        wait_for("the change", || cpus_of(threads[0].0.id()) == first);
        assert!(Command::new("kill").args([signal, &apply.id().to_string()]).status().unwrap().success());
        let ended = apply.wait().unwrap();
        if signal != "-KILL" {
            assert_eq!(ended.code(), Some(130), "{}", said(&apply.wait_with_output().unwrap()));
        } else {
            assert_eq!(cpus_of(threads[0].0.id()), first, "killed, nobody put it back");
            place.undo(&journal);
        }
        assert_eq!(cpus_of(threads[0].0.id()), all, "{signal}");
        assert!(is_empty(&journal), "{signal}");
    }
}

/// A file system of two pages; unmounted with the test.
struct Small(tempfile::TempDir);

impl Small {
    fn mount() -> Option<Self> {
        let small = Self(tempfile::tempdir().unwrap());
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=8k", "none"]).arg(small.0.path()).status();
        mounted.is_ok_and(|status| status.success()).then_some(small)
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn a_full_disk_under_the_journal_costs_the_change_and_not_the_way_back() {
    let Some((first, all)) = places("a full disk") else { return };
    let Some(small) = Small::mount() else { return println!("skipped: a full disk: no tmpfs can be mounted here") };
    let journal = small.0.path().join("journal");
    // An entry with that many steps is longer than a page, and while it is renewed the old one stays.
    let threads = sleepers(40);
    let changes: Vec<Value> = threads.iter().map(|thread| moved(thread, &all, &first)).collect();
    let refused = |place: &Place| {
        let output = place.apply(&journal).output().unwrap();
        let told = said(&output);
        assert_eq!(output.status.code(), Some(1), "{told}");
        assert!(told.contains("No space left on device"), "{told}");
        assert!(threads.iter().all(|thread| cpus_of(thread.0.id()) == all), "{told}");
        told
    };
    let midway = refused(&Place::new(&changes));
    assert!(midway.contains("undone: thread"), "it began, and took back what it had done: {midway}");
    assert!(is_empty(&journal), "{midway}");
    // Full from the beginning: nothing is begun.
    std::fs::write(small.0.path().join("full"), vec![0; 8 << 10]).unwrap();
    let place = Place::new(&changes[..1]);
    let at_once = refused(&place);
    assert!(!at_once.contains("undone: "), "{at_once}");
    assert!(is_empty(&journal), "{at_once}");
    assert!(place.undo(&journal).contains("nothing to undo"));
}
