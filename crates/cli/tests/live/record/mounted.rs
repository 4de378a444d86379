//! Does `record` mount the tracing file system where it is not, and unmount it? Each in a mount namespace of its own, in
//! which it is not mounted whatever the host has.

use super::{kvmscope, text};
use assert_cmd::cargo::cargo_bin;
use std::path::Path;
use std::process::{Command, Output};

/// Runs a script without a tracing file system; `$K` is the program. `None`, and the reason printed, where it cannot be.
fn unmounted(place: &Path, script: &str) -> Option<Output> {
    let before = "umount -l /sys/kernel/tracing /sys/kernel/debug 2>/dev/null; test ! -d /sys/kernel/tracing/instances || exit 99\n";
    let script = format!("{before}{script}");
    if !rustix::process::geteuid().is_root() || !Path::new("/sys/kernel/tracing").is_dir() {
        println!("skipped: mounting tracefs: it needs root and a kernel that traces");
        return None;
    }
    let mut command = Command::new("unshare");
    command.args(["-m", "--propagation", "private", "sh", "-c", &script]).current_dir(place);
    command.env("K", cargo_bin("kvmscope")).env("KVMSCOPE_JOURNAL", place.join("journal"));
    match command.output() {
        Ok(output) if output.status.code() != Some(99) => Some(output),
        _ => {
            println!("skipped: mounting tracefs: no mount namespace without it can be made here");
            None
        }
    }
}

#[test]
fn the_tracing_file_system_is_mounted_for_the_recording_alone() {
    let place = testing::Workspace::alone();
    let script = "$K record --seconds 0.2 -o new || exit 1; grep tracefs /proc/self/mounts && exit 2; \
                  $K check --probe --span 0 --json > check.json; grep tracefs /proc/self/mounts && exit 3; exit 0";
    let Some(output) = unmounted(place.path(), script) else { return };
    assert_eq!(output.status.code(), Some(0), "{}{}", text(&output.stdout), text(&output.stderr));
    assert!(place.path().join("new/L0/trace.dat").is_file());
    assert_eq!(std::fs::read_dir(place.path().join("journal")).unwrap().count(), 0);
    let check = std::fs::read_to_string(place.path().join("check.json")).unwrap();
    assert!(!check.contains("no tracing file system"), "{check}");
}

#[test]
fn undo_unmounts_it_after_a_kill() {
    let place = testing::Workspace::alone();
    let script = "$K record --no-self-check --no-snapshot -o new 2> said & \
                  while ! grep -q 'recording from now on' said; do sleep 0.05; kill -0 $! || exit 1; done; \
                  kill -KILL $!; wait; grep -q tracefs /proc/self/mounts || exit 2; \
                  $K undo; grep tracefs /proc/self/mounts && exit 3; exit 0";
    let Some(output) = unmounted(place.path(), script) else { return };
    assert_eq!(output.status.code(), Some(0), "{}{}", text(&output.stdout), text(&output.stderr));
    assert!(text(&output.stdout).contains("tracing instance"), "{}", text(&output.stdout));
    let list = kvmscope(place.path()).args(["undo", "--list"]).output().unwrap();
    assert_eq!(text(&list.stdout), "nothing to undo\n");
}

#[test]
fn of_two_recorders_the_last_one_unmounts_it() {
    let place = testing::Workspace::alone();
    let begin = |name: &str| {
        format!(
            "$K record --no-self-check --no-snapshot -o {name} 2> {name}.said & {name}=$!; \
             while ! grep -q 'recording from now on' {name}.said; do sleep 0.05; kill -0 ${name} || exit 1; done; "
        )
    };
    let script = format!(
        "{}{}kill -INT $first; wait $first || exit 2; grep -q tracefs /proc/self/mounts || exit 3; \
         kill -INT $second; wait $second || exit 4; grep tracefs /proc/self/mounts && exit 5; exit 0",
        begin("first"),
        begin("second")
    );
    let Some(output) = unmounted(place.path(), &script) else { return };
    assert_eq!(output.status.code(), Some(0), "{}{}", text(&output.stdout), text(&output.stderr));
    assert_eq!(std::fs::read_dir(place.path().join("journal")).unwrap().count(), 0);
}
