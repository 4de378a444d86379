//! `--json --csv --html --fail-on --force` mean the same to every command that answers in sections.

use crate::program;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Commands that need neither root nor a minute.
const COMMANDS: &[&[&str]] = &[
    &["report", "nested-svm-toy"],
    &["check", "hosts-intel"],
    &["compare", "bench-vmx-shadow-off", "bench-vmx-shadow-on"],
    &["plan", "nested", "vmx-linux-shadow-off"],
    &["explain", "PLC-SMT", "seed-vhost"],
    #[cfg(feature = "labs")]
    &["bench", "clock", "--launches", "1", "--seconds", "0.01", "--no-progress"],
];

fn kvmscope(command: &[&str], more: &[&str]) -> (i32, String, String) {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let named = |word: &&str| match fixtures.join(word).is_dir() {
        true => fixtures.join(word).display().to_string(),
        false => (*word).to_owned(),
    };
    let arguments: Vec<String> = command.iter().map(named).chain(more.iter().map(|word| (*word).to_owned())).collect();
    program::kvmscope(&arguments)
}

fn json(command: &[&str], more: &[&str]) -> Value {
    let (code, stdout, stderr) = kvmscope(command, &[&["--json"], more].concat());
    assert_eq!(code, 0, "{command:?}: {stderr}");
    serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{command:?}: {error}: {stdout}"))
}

#[test]
fn json_is_one_object_and_csv_has_its_tables() {
    for command in COMMANDS {
        let directory = tempfile::tempdir().unwrap();
        let tables = directory.path().join("tables");
        let answer = json(command, &["--csv", tables.to_str().unwrap()]);
        assert_eq!((&answer["schema"], answer["recording"].is_object()), (&"kvmscope/1".into(), true), "{command:?}");
        assert!(answer["command"].as_str().unwrap().starts_with(command[0]), "{command:?}");
        let mut names: Vec<String> = fs::read_dir(&tables)
            .unwrap()
            .map(|file| file.unwrap().file_name().into_string().unwrap())
            .filter(|name| name != "findings.csv")
            .collect();
        names.sort();
        let sections = answer["sections"].as_array().unwrap();
        let of_json: usize = sections.iter().map(|section| section["tables"].as_object().unwrap().len()).sum();
        assert_eq!(names.len(), of_json, "{command:?}: {names:?}");
        let taken = kvmscope(command, &["--json", "--csv", tables.to_str().unwrap()]);
        assert_eq!((taken.0, taken.1.as_str()), (2, ""), "{command:?}: {}", taken.2);
        assert!(taken.2.contains("--force replaces it"), "{command:?}: {}", taken.2);
        json(command, &["--force", "--csv", tables.to_str().unwrap()]);
    }
}

#[test]
fn the_page_is_a_file_or_all_that_is_printed() {
    for command in COMMANDS {
        let directory = tempfile::tempdir().unwrap();
        let (file, kept) = (directory.path().join("page.html"), directory.path().join("kept"));
        let output: &[&str] = if command[0] == "bench" { &["-o", kept.to_str().unwrap(), "--force"] } else { &[] };
        let (code, text, stderr) = kvmscope(command, &[&["--html", file.to_str().unwrap()], output].concat());
        assert_eq!(code, 0, "{command:?}: {stderr}");
        assert!(!text.is_empty() && !text.starts_with("<!doctype"), "{command:?}: the text is printed as well");
        assert!(fs::read_to_string(&file).unwrap().to_lowercase().starts_with("<!doctype html>"), "{command:?}");
        let (code, page, stderr) = kvmscope(command, &[&["--html", "-"], output].concat());
        assert_eq!(code, 0, "{command:?}: {stderr}");
        assert!(page.to_lowercase().starts_with("<!doctype html>"), "{command:?}");
        let (code, stdout, stderr) = kvmscope(command, &["--html", "-", "--json"]);
        assert_eq!((code, stdout.as_str()), (2, ""), "{command:?}");
        assert!(stderr.contains("--json and --html - cannot both go to stdout"), "{command:?}: {stderr}");
    }
}

#[test]
fn a_finding_of_the_severity_decides_how_every_command_ends() {
    for command in COMMANDS {
        let findings = |answer: &Value| -> usize {
            let sections = answer["sections"].as_array().unwrap();
            sections.iter().map(|section| section["findings"].as_array().unwrap().len()).sum()
        };
        let (code, stdout, stderr) = kvmscope(command, &["--json", "--fail-on", "info"]);
        let answer: Value =
            serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{command:?}: {error}: {stderr}"));
        assert_eq!(code, if findings(&answer) > 0 { 3 } else { 0 }, "{command:?}: {stderr}");
        assert_eq!(kvmscope(command, &["--json", "--fail-on", "none"]).0, 2, "{command:?}");
    }
}

#[test]
fn every_help_has_the_same_lines() {
    let all: &[&[&str]] = &[
        &["report"],
        &["check"],
        &["explain"],
        &["compare"],
        &["plan", "nested"],
        #[cfg(feature = "labs")]
        &["bench", "exits"],
        #[cfg(feature = "labs")]
        &["bench", "clock"],
        #[cfg(feature = "labs")]
        &["bench", "macro"],
        #[cfg(feature = "labs")]
        &["lab", "netns"],
        #[cfg(feature = "labs")]
        &["lab", "nested"],
    ];
    let lines = |command: &[&str]| -> Vec<String> {
        let help = kvmscope(command, &["--help"]).1;
        // An option's lines go on until the next option or the end of the list.
        let option = |name: &str| {
            let mut lines = help.lines().skip_while(|line| !line.trim_start().starts_with(&format!("--{name}")));
            let first = lines.next().unwrap_or_else(|| panic!("{command:?} has no --{name}: {help}"));
            let rest = lines.take_while(|line| line.starts_with("   ") && !line.trim_start().starts_with('-'));
            std::iter::once(first).chain(rest).flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ")
        };
        ["json", "csv <", "html <", "html-max <", "fail-on <", "width <", "color <"].map(option).to_vec()
    };
    let first = lines(all[0]);
    for command in all {
        assert_eq!(lines(command), first, "{command:?}");
        let help = kvmscope(command, &["--help"]).1;
        let words = help.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("3 a finding at or above --fail-on"), "{command:?}: {words}");
    }
}

#[test]
fn a_comparison_names_both_recordings() {
    let answer = json(COMMANDS[2], &[]);
    let recordings = answer["recordings"].as_array().unwrap();
    let ends = |at: usize, name: &str| recordings[at]["path"].as_str().unwrap().ends_with(name);
    assert!(
        recordings.len() == 2 && ends(0, "bench-vmx-shadow-off") && ends(1, "bench-vmx-shadow-on"),
        "{recordings:?}"
    );
    assert_eq!(answer["recording"], recordings[1], "as it stood");
    assert!(json(COMMANDS[0], &[])["recordings"].is_null());
}
