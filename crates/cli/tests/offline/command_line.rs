//! The program as its users meet it: help, mistakes, exit codes.

use crate::program::{ended, fails, kvmscope as run, utf8};
use assert_cmd::Command;
use std::fs;
use std::path::Path;

fn kvmscope(arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("kvmscope").unwrap();
    command.args(arguments).env_remove("NO_COLOR");
    command
}

#[test]
fn what_a_terminal_would_obey_is_not_repeated() {
    fails(&["plan", "migration", "\u{9b}2J"], 2, &["\\u{9b}2J"]);
}

#[test]
fn no_directory_is_called_tilde() {
    for word in ["--html=~/page.html", "~/web", "~"] {
        fails(&["report", word], 2, &["$HOME", word]);
    }
    assert!(
        !run(&["record", "--seconds", "x", "--", "ls", "~/x"]).2.contains("$HOME"),
        "a command's words are its own"
    );
}

#[test]
fn every_command_explains_itself_with_an_example() {
    for command in ["report", "cut", "snapshot", "join", "completions"] {
        let (code, stdout, stderr) = run(&[command, "--help"]);
        assert_eq!((code, stderr.as_str()), (0, ""), "{command}");
        assert!(stdout.contains(&format!("kvmscope {command}")) && stdout.contains("Example"), "{command}: {stdout}");
        assert!(stdout.lines().all(|line| line.chars().count() <= 100), "{command} fits a terminal");
    }
    #[cfg(feature = "labs")]
    {
        let (code, stdout, _) = run(&["lab", "nested", "--help"]);
        assert!(code == 0 && stdout.contains("Examples:\n  kvmscope lab nested"), "{stdout}");
        assert!(stdout.lines().all(|line| line.chars().count() <= 100), "{stdout}");
    }
    assert_eq!(run(&["--version"]).1, concat!("kvmscope ", env!("CARGO_PKG_VERSION"), "\n"));
    let (code, help, _) = run(&["--help"]);
    assert_eq!(code, 0);
    assert!(help.contains("report") && help.contains("completions"));
}

#[test]
fn the_examples_of_the_help_are_understood() {
    let (_, help, _) = run(&["report", "--help"]);
    let examples: Vec<&str> = help.lines().filter_map(|line| line.strip_prefix("  kvmscope ")).collect();
    assert!(examples.len() >= 5);
    for example in examples {
        let arguments: Vec<&str> = example.split(" | ").next().unwrap().split(' ').collect();
        let (code, _, stderr) = run(&arguments);
        assert_eq!(code, 1, "the named file is not there, but the words are right: {example}: {stderr}");
        assert!(stderr.contains("No such file"), "{example}: {stderr}");
    }
}

#[test]
fn wrong_use_is_said_and_is_2() {
    fails(&[], 2, &["Usage"]);
    fails(&["report"], 2, &["PATH"]);
    fails(&["reprot", "x"], 2, &["reprot"]);
    fails(&["report", "--part", "L0:=x"], 2, &["L1:web=guest.dat"]);
    fails(&["report", "--part", "L0=x", "y", "z"], 2, &["--part adds to one recording"]);
    fails(&["report", "--level", "2nd", "x"], 2, &["write L0, L1"]);
    fails(&["report", "--from", "1e3", "x"], 2, &["seconds since"]);
    fails(&["report", "--from", "2", "--to", "1", "x"], 2, &["--from must be before --to"]);
    fails(&["report", "--vm-map", "web", "x"], 2, &["4711=web"]);
    fails(&["report", "--vm-map", "98=web\nkvmscope: all is well", "x"], 2, &["no line ends"]);
    fails(&["report", "--fail-on", "terrible", "x"], 2, &["medium"]);
    fails(&["report", "--emulated", "vmware", "x"], 2, &["bochs"]);
    fails(&["report", "--width", "10", "x"], 2, &["50"]);
    fails(&["report", "--csv", "out", "a", "b"], 2, &["one PATH"]);
    fails(&["completions", "tcsh"], 2, &["fish"]);
}

#[test]
fn machines_of_one_level_need_names() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("a");
    fs::write(&file, b" CPU 0/KVM-170 [000] d..1. 1.000010: kvm_entry: vcpu 0, rip 0x1000\n").unwrap();
    let part = format!("L1={}", utf8(&file));
    fails(&["report", "--part", &part, "--part", &part], 2, &["L1 occurs twice", "L1:web="]);
    // A program that failed leaves a text that is neither a second trace nor a result.
    let failed = directory.path().join("tl.txt");
    fs::write(&failed, b"Failed to apply CPUs config\n").unwrap();
    let second = format!("L1={}", utf8(&failed));
    fails(
        &["report", "--part", &part, "--part", &second],
        2,
        &["tl.txt", "it begins with \"Failed to apply CPUs config\""],
    );
    fails(&["report", utf8(&failed)], 1, &["tl.txt", "it begins with \"Failed to apply CPUs config\""]);
}

#[test]
fn nothing_to_answer_is_1_with_the_reason() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("missing.dat");
    fails(&["report", utf8(&missing)], 1, &["missing.dat", "No such file"]);
    fails(&["report", utf8(directory.path())], 1, &["has no recording", "recording.json"]);
    fails(&["man", "/proc/nowhere"], 1, &["/proc/nowhere: No such file or directory"]);
    let not_a_trace = directory.path().join("notes.dat");
    fs::write(&not_a_trace, b"\x7fELF these are no events").unwrap();
    fails(&["report", utf8(&not_a_trace)], 1, &["notes.dat"]);
    fs::write(&not_a_trace, b"").unwrap();
    fails(&["report", "--json", utf8(&not_a_trace)], 1, &["notes.dat"]);
    fails(&["report", utf8(&missing), utf8(&not_a_trace)], 1, &["missing.dat", "notes.dat"]);
}

#[test]
fn a_trace_that_breaks_off_says_so_beside_what_it_lost() {
    let directory = tempfile::tempdir().unwrap();
    let whole = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/svm-linux/L0/trace.dat");
    let bytes = fs::read(&whole).unwrap();
    let broken = directory.path().join("broken.dat");
    fs::write(&broken, &bytes[..bytes.len() * 9 / 10]).unwrap();
    // Behind the question.
    let about = |path: &Path| run(&["report", utf8(path)]).1.split("\n\n").nth(1).unwrap().replace('\n', " ");
    assert!(about(&whole).contains(" events, 0 lost, "), "{}", about(&whole));
    let said = about(&broken);
    assert!(said.contains(" events, 0 lost by the recorder, damaged in "), "{said}");
}

#[test]
fn a_manifest_that_leaves_its_directory_is_not_followed() {
    let directory = tempfile::tempdir().unwrap();
    let manifest = r#"{"schema":"kvmscope-recording/1","machines":[{"id":"L0","level":0,"parent":null}],
        "parts":[{"path":"../trace.dat","machine":"L0","kind":"trace.dat","state":"complete"}]}"#;
    fs::write(directory.path().join("recording.json"), manifest).unwrap();
    fails(&["report", utf8(directory.path())], 1, &["recording.json", "../trace.dat", "outside"]);
}

#[test]
fn a_cut_is_asked_for_sensibly() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("trace.dat");
    fs::write(&file, b"no trace").unwrap();
    let (file, taken, new) = (utf8(&file), utf8(directory.path()), directory.path().join("new"));
    fails(&["cut", file, "--from", "2", "--to", "1", "-o", utf8(&new)], 2, &["--from must be before --to"]);
    fails(&["cut", file, file, "--to", "1", "-o", utf8(&new)], 2, &["one recording"]);
    fails(&["cut", file, "--to", "1"], 2, &["--output"]);
    fails(&["cut", file, "--to", "1", "-o", taken], 2, &["already exists", "not a recording"]);
    fails(&["cut", file, "--to", "1", "-o", taken, "--force"], 2, &["already exists", "not a recording"]);
    fails(&["cut", file, "--to", "1", "-o", utf8(&new)], 1, &["has nothing that is read"]);
    assert!(!new.exists(), "what does not become whole leaves nothing");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn every_shell_completes_rules_budgets_cards_and_nothing_internal() {
    for (shell, word) in [("bash", "complete "), ("zsh", "#compdef kvmscope"), ("fish", "complete ")] {
        let (code, script, _) = run(&["completions", shell]);
        assert!(code == 0 && script.contains(word) && script.contains("KVMSCOPE_COMPLETE"), "{shell}: {script}");
        // As that script asks.
        let completed = |words: &[&str]| {
            let mut command = kvmscope(&["--", "kvmscope"]);
            command.args(words).env("KVMSCOPE_COMPLETE", shell).env("_CLAP_IFS", "\n");
            ended(command.env("_CLAP_COMPLETE_INDEX", words.len().to_string()).output().unwrap()).1
        };
        for (words, candidate) in [
            (&["explain", "PLC-OV"][..], "PLC-OVERLAP"),
            (&["report", "--budget", "kvm4"], "kvm4nfv-2015"),
            (&["plan", "chain", "--nic", "XL"], "XL710"),
            (&["report", "--ignore"], "--ignore-event"),
        ] {
            assert!(completed(words).contains(candidate), "{shell} {words:?}: {}", completed(words));
        }
        assert!(!run(&["explain", "--help"]).1.contains("NST-RATIO"), "the help does not list them");
        assert!(!completed(&["lab", ""]).contains("inside") && completed(&["lab", ""]).contains("nested"), "{shell}");
    }
}

#[test]
fn a_reader_that_went_away_is_no_error() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = std::process::Command::new(assert_cmd::cargo::cargo_bin!("kvmscope"))
        .args(["completions", "bash"])
        .stdout(writer)
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap()
        .wait_with_output()
        .unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}

#[test]
fn messages_carry_no_colour_where_no_terminal_is() {
    let output = kvmscope(&["report", "--width", "1"]).output().unwrap();
    assert!(!output.stderr.contains(&0x1b), "clap's own messages too");
}

#[cfg(feature = "labs")]
#[test]
fn a_lab_is_asked_for_in_words_that_it_knows() {
    fails(&["lab", "nested", "--arch", "svm", "--set", "colour=blue"], 2, &["colour=blue", "can be set"]);
    fails(&["lab", "nested", "--arch", "mips"], 2, &["svm"]);
    fails(&["lab", "inside"], 1, &["first process"]);
}

#[cfg(not(feature = "labs"))]
#[test]
fn the_slim_program_says_which_build_has_labs_and_benches() {
    fails(&["lab", "nested", "--arch", "svm"], 1, &["slim build", "`lab nested`", "make full"]);
    fails(&["bench", "macro", "--runs", "5", "--", "true"], 1, &["slim build", "`bench macro`", "make full"]);
    fails(&["bench"], 1, &["`bench`", "make full"]);
}
