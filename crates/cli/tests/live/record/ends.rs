//! However a recording ends - a signal, a kill at any moment, a full disk, wrong use -, what stays can be read and the host is as it was.

use super::{begun, counts, instance_of, kvmscope, place, record, signal, text};
use base::recording::{PartState, Recording};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

#[test]
fn each_signal_that_ends_a_program_is_a_normal_end() {
    use rustix::process::Signal;
    let Some(place) = place("signals") else { return };
    for (number, sent) in [Signal::INT, Signal::TERM, Signal::HUP].into_iter().enumerate() {
        if sent == Signal::HUP && testing::was_hangup_ignored() {
            continue;
        }
        let place = place.path().join(number.to_string());
        std::fs::create_dir(&place).unwrap();
        let child = begun(&place, &["--no-self-check", "--no-snapshot", "-o", "new"]);
        let instance = instance_of(child.id());
        signal(&child, sent);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{sent:?}: {}", text(&output.stderr));
        assert!(!instance.exists(), "{sent:?}");
        let recording = Recording::open(&place.join("new")).unwrap();
        assert!(recording.parts.iter().all(|part| part.state == PartState::Complete), "{sent:?}");
        assert_eq!(std::fs::read_dir(place.join("journal")).unwrap().count(), 0, "{sent:?}");
    }
}

#[test]
fn a_command_does_not_outlive_a_recording_that_could_not_go_on() {
    let Some(place) = place("CMD on a full disk") else { return };
    let disk = place.path().join("disk");
    std::fs::create_dir(&disk).unwrap();
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=1m", "none"]).arg(&disk).output();
    if !mounted.is_ok_and(|output| output.status.success()) {
        return println!("skipped: CMD on a full disk: no tmpfs can be mounted here");
    }
    let pid = place.path().join("pid");
    let busy = format!("echo $$ > {}; while :; do :; sleep 0; done", pid.display());
    let arguments =
        ["--no-self-check", "--no-snapshot", "--events", "raw_syscalls", "-o", "disk/new", "--", "sh", "-c", &busy];
    let output = record(place.path(), &arguments);
    assert!(Command::new("umount").arg(&disk).status().unwrap().success());
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let pid = std::fs::read_to_string(pid).unwrap();
    assert!(!Path::new("/proc").join(pid.trim()).exists(), "{pid} still runs");
}

#[test]
fn ctrl_c_is_a_normal_end_and_the_level_is_the_one_that_was_named() {
    let Some(place) = place("ctrl-c") else { return };
    let child = begun(place.path(), &["--no-self-check", "--as", "L1:web", "--clock", "mono", "-o", "new"]);
    signal(&child, rustix::process::Signal::INT);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let recording = Recording::open(&place.path().join("new")).unwrap();
    assert_eq!((recording.machines[0].id.as_str(), recording.machines[0].level), ("L1-web", 1));
    assert_eq!(recording.parts[0].path, Path::new("L1-web/trace.dat"));
    assert_eq!(recording.parts[0].clock.as_deref(), Some("mono"));
}

#[test]
fn undo_leaves_alone_what_is_still_at_work() {
    let Some(place) = place("undo") else { return };
    let mut child = begun(place.path(), &["--no-self-check", "-o", "new"]);
    let undo = |arguments: &[&str]| {
        let output = kvmscope(place.path()).arg("undo").args(arguments).output().unwrap();
        (output.status.code(), text(&output.stdout))
    };
    assert!(undo(&["--list"]).1.contains("in use"));
    assert!(undo(&[]).1.contains("left alone"));
    assert!(instance_of(child.id()).exists());
    signal(&child, rustix::process::Signal::KILL);
    child.wait().unwrap();
    assert!(undo(&["--list"]).1.contains("left behind"));
    assert_eq!(undo(&[&format!("record-{}-0", child.id())]).0, Some(0));
    assert!(!instance_of(child.id()).exists());
    assert_eq!(undo(&[]), (Some(0), "nothing to undo\n".to_owned()));
}

#[test]
fn a_command_that_cannot_run_is_wrong_use_and_leaves_nothing() {
    let Some(place) = place("no command") else { return };
    let output = record(place.path(), &["--no-self-check", "-o", "new", "--", "./no-such-program"]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("no-such-program"), "{}", text(&output.stderr));
    assert!(!place.path().join("new").exists());
    assert_eq!(std::fs::read_dir(place.path().join("journal")).unwrap().count(), 0);
}

#[test]
fn a_name_that_this_host_does_not_have_is_wrong_use_and_leaves_nothing() {
    let Some(place) = place("names") else { return };
    let names = [["--events", "no_such:event"], ["--clock", "sundial"], ["--vm", "no such vm"]];
    for asked in names {
        let output = record(place.path(), &[&asked[..], &["-o", "new", "--no-self-check", "--seconds", "1"]].concat());
        assert_eq!(output.status.code(), Some(2), "{asked:?}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains(asked[1]), "{asked:?}: {}", text(&output.stderr));
        assert!(!place.path().join("new").exists(), "{asked:?}");
    }
}

/// How long after its start, or after it has said that it records, a recorder is killed.
#[derive(Debug, Clone, Copy)]
enum Moment {
    /// While it prepares, while it records, while it packs, or when it has ended by itself.
    Any(Duration),
    Recording(Duration),
}

/// In turns. `make torture` asks for more of them.
fn moments() -> Vec<Moment> {
    let kills = std::env::var("KVMSCOPE_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(10);
    let moment = |number: u64| match number % 2 {
        0 => Moment::Any(Duration::from_millis(number * 7919 % 801)),
        _ => Moment::Recording(Duration::from_millis(number * 7919 % 101)),
    };
    (0..kills).map(moment).collect()
}

/// The number of a recorder that was killed then.
fn killed(place: &Path, moment: Moment) -> u32 {
    let plain = ["--no-self-check", "--no-snapshot", "-o", "new"];
    let (mut child, after) = match moment {
        Moment::Recording(after) => (begun(place, &plain), after),
        Moment::Any(after) => {
            let mut command = kvmscope(place);
            command.arg("record").args(plain).args(["--seconds", "0.2"]);
            (command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap(), after)
        }
    };
    std::thread::sleep(after);
    // It may have ended by itself.
    let _ = child.kill();
    child.wait().unwrap();
    child.id()
}

#[test]
fn after_a_kill_at_any_moment_the_directory_opens_and_undo_leaves_no_instance() {
    let Some(place) = place("kills") else { return };
    let (mut partial, mut whole) = (0, 0);
    for (number, moment) in moments().into_iter().enumerate() {
        let place = place.path().join(number.to_string());
        std::fs::create_dir(&place).unwrap();
        let recorder = killed(&place, moment);
        let undo = kvmscope(&place).arg("undo").output().unwrap();
        assert_eq!(undo.status.code(), Some(0), "{moment:?}: {}", text(&undo.stderr));
        assert!(!instance_of(recorder).exists(), "{moment:?}: {}", text(&undo.stdout));
        if !place.join("new/recording.json").exists() {
            continue;
        }
        let recording = Recording::open(&place.join("new")).unwrap();
        for part in recording.parts.iter().filter(|part| part.kind.is_trace()) {
            let opened = trace::open(&recording.root.join(&part.path));
            let opened = opened.unwrap_or_else(|error| panic!("{moment:?}: {error}"));
            let problems = &opened.facts().problems;
            match part.state {
                PartState::Partial => partial += 1,
                PartState::Complete => whole += 1,
            }
            let said = problems.iter().any(|problem| problem.text.contains("did not finish"));
            assert_eq!(said, part.state == PartState::Partial, "{moment:?}: {problems:?}");
        }
    }
    println!("killed recorders left {partial} partial and {whole} whole traces");
    assert!(partial > 0);
}

#[test]
fn a_full_disk_is_said_and_what_was_recorded_stays_readable() {
    let Some(place) = place("full disk") else { return };
    let disk = place.path().join("disk");
    std::fs::create_dir(&disk).unwrap();
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=1m", "none"]).arg(&disk).output();
    if !mounted.is_ok_and(|output| output.status.success()) {
        return println!("skipped: full disk: no tmpfs can be mounted here");
    }
    let busy = "dd if=/dev/zero of=/dev/null bs=1 count=400000 2>/dev/null; sleep 1";
    let arguments =
        ["--no-self-check", "--no-snapshot", "--events", "raw_syscalls", "-o", "disk/new", "--", "sh", "-c", busy];
    let output = record(place.path(), &arguments);
    let recording = Recording::open(&disk.join("new"));
    let events: u64 = counts(&disk.join("new/L0/trace.partial"), &[]).values().sum();
    let unmounted = Command::new("umount").arg(&disk).status().unwrap();
    assert!(unmounted.success());
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("no space left") && said.contains("kvmscope report"), "{said}");
    assert_eq!(recording.unwrap().parts[0].state, PartState::Partial);
    assert!(events > 1_000, "{events} events could be read");
    assert_eq!(std::fs::read_dir(place.path().join("journal")).unwrap().count(), 0, "the instance is gone");
}
