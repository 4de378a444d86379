//! Nothing that somebody else laid where the program reads makes it wait for ever, or speaks to the terminal.

use crate::program::{fixture, kvmscope};
use base::plain::misleads;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What reads files that others made. Crates that touch a host read the kernel's.
const READERS: &str = "archive/src base/src cli/src/apply cli/src/arguments cli/src/check cli/src/plan columnar/src facts/src fleet/src \
                       host/src questions trace/src";

/// Where a file is opened without a look at what it is, and why that is right.
const OWN: [(&str, &str); 6] = [
    ("base/src/files.rs", "opens them"),
    ("base/src/recording/manifest.rs", "a directory that it has just written to"),
    ("base/src/recording/names.rs", "the kernel's"),
    ("cli/src/plan/migration.rs", "a command line in /proc"),
    ("host/src/sched.rs", "the kernel's, of a thread of this host"),
    ("trace/src/write/tracedat/records.rs", "its own spool"),
];

fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("tests") {
            sources(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") && !path.ends_with("tests.rs") {
            found.push(path);
        }
    }
}

#[test]
fn files_of_others_are_opened_in_one_place() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = Vec::new();
    READERS.split_whitespace().for_each(|reader| sources(&root.join(reader), &mut found));
    assert!(found.len() > 300, "{}: where are they?", found.len());
    let opens = ["File::open(", "fs::read(", "fs::read_to_string("];
    let mut wrong = Vec::new();
    for path in found {
        let name = path.strip_prefix(&root).unwrap().display().to_string();
        let text = std::fs::read_to_string(&path).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap();
        let lines = code.lines().filter(|line| opens.iter().any(|open| line.contains(open)));
        let lines = lines.filter(|line| !line.contains("MappedFile::open(") && !line.contains("(\"/proc/"));
        if !OWN.iter().any(|(own, _)| *own == name) {
            wrong.extend(lines.map(|line| format!("{name}: {}", line.trim())));
        }
    }
    assert!(wrong.is_empty(), "open them with base::files:\n{}", wrong.join("\n"));
}

#[test]
fn a_fifo_is_named_and_never_waited_for() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
    std::fs::create_dir_all(at("recording/L0")).unwrap();
    let fifo = at("recording/L0/trace.dat");
    std::fs::create_dir(at("set")).unwrap();
    assert!(Command::new("mkfifo").args([&fifo, &at("set/_kvmscope.json")]).status().unwrap().success());
    let good = fixture("nested-vmx-shadow-on").to_str().unwrap().to_owned();
    for arguments in [
        vec!["report", &fifo],
        vec!["report", &at("recording")],
        vec!["compare", &good, &fifo],
        vec!["cut", &fifo, "--from", "0", "--to", "1", "-o", &at("cut")],
        vec!["pack", &fifo, "-o", &at("packed.kvmscope")],
        vec!["pack", &at("recording"), "-o", &at("packed.kvmscope")],
        vec!["join", &at("recording"), &good, "-o", &at("joined")],
        vec!["history", &at("recording")],
        vec!["report", &good, "--budget", &fifo],
        vec!["plan", "chain", &fifo],
        vec!["fleet", "report", &at("set")],
        vec!["export", &good, "--dataset", &at("set")],
    ] {
        let (status, out, error) = kvmscope(&arguments);
        assert!(status == 1 || status == 2, "{arguments:?}: {status} {out}");
        assert!(error.contains("it is a FIFO, not a regular file"), "{arguments:?}: {error}");
    }
    let made = ["packed.kvmscope", "cut", "joined"].map(|name| Path::new(&at(name)).exists());
    assert_eq!(made, [false; 3]);
    let substituted = Command::new("bash").args(["-c", "$0 report <(true)", env!("CARGO_BIN_EXE_kvmscope")]).output();
    let said = String::from_utf8(substituted.unwrap().stderr).unwrap();
    assert!(said.contains("pipe it in: .. | kvmscope report -"), "{said}");
}

/// What is no file of the recording is refused by its name, and nothing of it is shown.
#[test]
fn what_lies_outside_of_a_recording_is_neither_carried_nor_quoted() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
    std::fs::create_dir_all(at("recording/L0")).unwrap();
    std::fs::write(at("secret"), "root:$6$secret:19000:0\n").unwrap();
    std::os::unix::fs::symlink(at("secret"), at("recording/L0/trace.dat")).unwrap();
    let good = fixture("nested-vmx-shadow-on").to_str().unwrap().to_owned();
    for arguments in [
        vec!["pack", &at("recording"), "-o", &at("made")],
        vec!["join", &at("recording"), &good, "-o", &at("made")],
        vec!["report", &at("recording")],
        vec!["compare", &at("recording"), &good],
        vec!["cut", &at("recording"), "--from", "0", "--to", "1", "-o", &at("made")],
    ] {
        let (status, out, error) = kvmscope(&arguments);
        assert!(
            status == 1 && error.contains("recording/L0/trace.dat") && error.contains("link"),
            "{arguments:?}: {error}"
        );
        assert!(!(out + &error).contains("secret:19000") && !Path::new(&at("made")).exists(), "{arguments:?}");
    }
    std::fs::remove_file(at("recording/L0/trace.dat")).unwrap();
    std::fs::create_dir(at("recording/L0/trace.dat")).unwrap();
    let (status, _, error) = kvmscope(&["pack", &at("recording"), "-o", &at("made")]);
    assert!(status == 1 && error.contains("trace.dat is a directory without a file"), "{error}");
    let (status, _, error) = kvmscope(&["history", place.path().to_str().unwrap()]);
    assert!(status == 2 && error.contains("left out, no recording") && error.contains("secret"), "{error}");
    let (status, _, error) = kvmscope(&["check", "--root", &good]);
    assert!(status == 2 && error.contains("is a recording, no tree of a host"), "{error}");
}

/// Twenty exits of that reason, of a vCPU thread of that name.
fn trace_of(thread: &str, reason: &str) -> String {
    let mut trace = "# tracer: nop\n".to_owned();
    for at in 0..20_u32 {
        let head = format!("{thread}-98 (98) [000] d..1.");
        writeln!(trace, "{head} 1.{at:03}100: kvm_exit: vcpu 0 reason {reason} rip 0x1000 info1 0x0 info2 0x0")
            .unwrap();
        writeln!(trace, "{head} 1.{at:03}200: kvm_entry: vcpu 0, rip 0x1000").unwrap();
    }
    trace
}

#[test]
fn names_of_others_command_no_terminal() {
    let place = tempfile::tempdir().unwrap();
    let hostile = place.path().join("\x1b[2Jtrace.txt");
    std::fs::write(&hostile, trace_of("CPU 0/\x1b[2J", "\x1b[2J\x1b]52;c;x\x07")).unwrap();
    let hostile = hostile.to_str().unwrap();
    let missing = place.path().join("missing\x1b[2J");
    let missing = missing.to_str().unwrap();
    let c1 = place.path().join("c1.txt");
    std::fs::write(&c1, trace_of("CPU 0/\u{9b}2J", "HLT")).unwrap();
    let c1 = c1.to_str().unwrap();
    let good = fixture("nested-vmx-shadow-on").to_str().unwrap().to_owned();
    let dataset = place.path().join("set").to_str().unwrap().to_owned();
    for arguments in [
        vec!["report", hostile],
        vec!["report", missing],
        vec!["check", missing],
        vec!["check", "--root", missing],
        vec!["compare", hostile, &good],
        vec!["compare", missing, &good],
        vec!["cut", hostile, "--from", "0", "--to", "1", "-o", missing],
        vec!["pack", hostile, "-o", &format!("{missing}.kvmscope")],
        vec!["export", hostile, "--folded", missing],
        vec!["export", hostile, "--dataset", &dataset],
        vec!["join", missing, "-o", &dataset],
        vec!["history", missing],
        vec!["plan", "chain", missing],
        vec!["undo", "\x1b[2J", "--journal", missing],
        vec!["report", "a\nkvmscope: all is well"],
        vec!["report", &good, "--all\nkvmscope: all is well"],
        vec!["report", &good, "--by=\u{202e}reason"],
        vec!["report", "--json", c1],
    ] {
        let (_, out, error) = kvmscope(&arguments);
        for text in [&out, &error] {
            assert!(!text.contains(|character| misleads(character) && character != '\n'), "{arguments:?}: {text:?}");
            assert!(!text.lines().any(|line| line.starts_with("kvmscope: all is well")), "{arguments:?}: {text}");
        }
        assert!(!(out + &error).is_empty(), "{arguments:?} says nothing");
    }
}
