//! What people bring: each row of `fixtures/public/cases.tsv` is an input, a command, what must be said of it and what must never be.

use crate::program::{ended, root};
use assert_cmd::Command;

/// Words of an answer, whatever lines they were broken into.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn every_case_is_answered_as_its_row_says() {
    let table = std::fs::read_to_string(root().join("fixtures/public/cases.tsv")).unwrap();
    let mut wrong = Vec::new();
    for row in table.lines().filter(|row| !row.starts_with("# ") && !row.is_empty()) {
        let [input, command, status, said, never, why] = row.split('\t').collect::<Vec<_>>()[..] else {
            panic!("six columns: {row}");
        };
        let path = format!("fixtures/public/{input}");
        let arguments = command.split(' ').map(|word| if word == "{}" { path.as_str() } else { word });
        let mut program = Command::cargo_bin("kvmscope").unwrap();
        let output = program.current_dir(root()).args(arguments).env("COLUMNS", "300").output().unwrap();
        let (code, out, complaint) = ended(output);
        let answer = words(&format!("{out} {complaint}"));
        let phrases =
            |column: &str| column.split(" ~ ").filter(|phrase| !phrase.is_empty()).map(words).collect::<Vec<_>>();
        let mut faults: Vec<String> = Vec::new();
        if code.to_string() != status {
            faults.push(format!("status {code}, not {status}"));
        }
        faults.extend(
            phrases(said)
                .into_iter()
                .filter(|phrase| !answer.contains(phrase))
                .map(|phrase| format!("not said: {phrase}")),
        );
        faults.extend(
            phrases(never).into_iter().filter(|phrase| answer.contains(phrase)).map(|phrase| format!("said: {phrase}")),
        );
        if !faults.is_empty() {
            wrong.push(format!("{input} ({command}; {why}): {}\n    {answer:.900}", faults.join("; ")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
