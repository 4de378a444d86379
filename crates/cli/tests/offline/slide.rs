//! The tuning slide of the first document, one host for each mistake: rows of `fixtures/slide/cases.tsv`.

use crate::program::{ended, root};
use assert_cmd::Command;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

const RECORDING: &str = r#"{"schema": "kvmscope-recording/1", "created": "2026-11-22T00:00:00Z", "tool": "by hand",
    "emulated": null, "machines": [{"id": "L0", "level": 0, "parent": null, "name": null}],
    "parts": [{"path": "L0/host/0", "machine": "L0", "kind": "host", "clock": "monotonic", "state": "complete"},
        {"path": "L0/host/1", "machine": "L0", "kind": "host", "clock": "monotonic", "state": "complete"}]}"#;

/// Contents by path.
type Host = BTreeMap<String, String>;

/// What `\0` and `\t` stand for.
fn unescaped(text: &str) -> String {
    text.replace("\\0", "\0").replace("\\t", "\t")
}

fn base() -> Host {
    let text = std::fs::read_to_string(root().join("fixtures/slide/host.txt")).unwrap();
    let files = text.strip_prefix("==> ").unwrap().split("\n==> ");
    let file = |file: &str| {
        let (path, content) = file.split_once(" <==\n").expect("a path and its content");
        (path.to_owned(), unescaped(content))
    };
    files.map(file).collect()
}

/// Makes a change; panics where there is nothing to change.
fn change(host: &mut Host, change: &str) {
    if let Some(path) = change.strip_prefix("- ") {
        assert!(host.remove(path).is_some(), "{path} is not there");
    } else if let Some((path, rest)) =
        change.split_once(": ").filter(|(_, rest)| rest.contains(" => ") || rest.ends_with(" =>"))
    {
        let (old, new) = rest.split_once(" =>").unwrap();
        let content = host.get_mut(path).unwrap_or_else(|| panic!("{path} is not there"));
        assert!(content.contains(&unescaped(old)), "{path} has no {old}");
        *content = content.replace(&unescaped(old), &unescaped(new.trim_start()));
    } else {
        let (path, content) = change.split_once(" = ").unwrap_or_else(|| panic!("a change: {change}"));
        host.insert(path.to_owned(), format!("{}\n", unescaped(content)));
    }
}

fn written(host: &Host, folder: &Path) {
    for (path, content) in host {
        let of_both = ["0", "1"].map(|sample| (sample, path.as_str()));
        let samples: Vec<_> = of_both
            .into_iter()
            .filter(|_| !path.starts_with(['0', '1']))
            .chain(path.split_once('/').filter(|(sample, _)| matches!(*sample, "0" | "1")))
            .collect();
        for (sample, path) in samples {
            let path = folder.join("L0/host").join(sample).join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
    }
    std::fs::write(folder.join("recording.json"), RECORDING).unwrap();
}

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What `check` says of a host in a text, and the first finding: its severity and rule.
fn checked(folder: &Path) -> (String, String) {
    let run = |more: &[&str]| {
        let mut program = Command::cargo_bin("kvmscope").unwrap();
        let output = program.arg("check").arg(folder).args(more).env("COLUMNS", "300").output().unwrap();
        let (code, out, complaint) = ended(output);
        assert_eq!(code, 0, "{complaint}");
        out
    };
    let answer: Value = serde_json::from_str(&run(&["--json"])).unwrap();
    let sections = answer["sections"].as_array().unwrap();
    let mut findings: Vec<&Value> =
        sections.iter().flat_map(|section| section["findings"].as_array().unwrap()).collect();
    findings.sort_by_key(|finding| finding["rank"].as_u64());
    let first = findings.first().map_or(String::new(), |finding| {
        let of = |key: &str| finding[key].as_str().unwrap_or_default();
        format!("{} {}", of("severity"), of("rule"))
    });
    (words(&run(&["--all"])), first)
}

#[test]
fn every_mistake_of_the_slide_comes_first_on_its_host() {
    let table = std::fs::read_to_string(root().join("fixtures/slide/cases.tsv")).unwrap();
    let mut wrong = Vec::new();
    for row in table.lines().skip(1) {
        let [name, changes, expected, said, never, _] = row.split('\t').collect::<Vec<_>>()[..] else {
            panic!("six columns: {row}");
        };
        let mut host = base();
        changes.split(" ;; ").filter(|one| !one.is_empty()).for_each(|one| change(&mut host, one));
        let folder = tempfile::tempdir().unwrap();
        written(&host, folder.path());
        let (answer, first) = checked(folder.path());
        let fits = if expected == "-" { first.is_empty() || first.starts_with("info ") } else { first == expected };
        if !fits {
            wrong.push(format!("{name}: first is {first:?}, not {expected:?}"));
        }
        let phrases = |column: &str| column.split(" ~ ").filter(|one| !one.is_empty()).map(words).collect::<Vec<_>>();
        let missing = phrases(said).into_iter().filter(|phrase| !answer.contains(phrase));
        wrong.extend(missing.map(|phrase| format!("{name}: not said: {phrase}")));
        let false_ones = phrases(never).into_iter().filter(|phrase| answer.contains(phrase));
        wrong.extend(false_ones.map(|phrase| format!("{name}: said: {phrase}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
