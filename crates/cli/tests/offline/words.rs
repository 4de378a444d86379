//! What users read is written in the words of docs/read/words.md: the help and the answers about all fixtures, in whole, hold none
//! of the words that its last table lists as not ours, and no "1 exits".

use crate::program::{commands, root};
use assert_cmd::Command;

/// Nouns that answers count.
const COUNTED: &[&str] = &[
    "accesses",
    "bytes",
    "chains",
    "channels",
    "commands",
    "cores",
    "CPUs",
    "cycles",
    "domains",
    "entries",
    "events",
    "exits",
    "faults",
    "features",
    "files",
    "fixes",
    "guests",
    "hosts",
    "interrupts",
    "kinds",
    "launches",
    "levels",
    "lines",
    "machines",
    "metrics",
    "nodes",
    "packets",
    "pins",
    "places",
    "points",
    "queues",
    "reasons",
    "recordings",
    "rows",
    "runs",
    "samples",
    "segments",
    "settings",
    "slices",
    "sockets",
    "streams",
    "switches",
    "tests",
    "threads",
    "traces",
    "vCPUs",
    "VMs",
    "waits",
    "windows",
    "workers",
    "writes",
];

/// What the program prints, on one line: stdout and stderr, whatever it ends with.
fn said(arguments: &[&str]) -> String {
    let mut command = Command::cargo_bin("kvmscope").unwrap();
    let output =
        command.args(arguments).current_dir(root()).env("COLUMNS", "200").env("LANG", "C.UTF-8").output().unwrap();
    assert!(matches!(output.status.code(), Some(0..=2)), "{arguments:?}: {output:?}");
    let text = [output.stdout, output.stderr].concat();
    String::from_utf8(text).unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The first column of the table under "Not our words".
fn not_ours() -> Vec<String> {
    let text = std::fs::read_to_string(root().join("docs/read/words.md")).unwrap();
    let (_, table) = text.split_once("## Not our words").unwrap();
    let rows = table.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    let words: Vec<String> = rows.skip(1).filter(|cell| !cell.starts_with("--")).map(str::to_lowercase).collect();
    assert!(words.len() > 20, "{words:?}");
    words
}

/// Where `phrase` stands in `text` as whole words, with some of what is around it.
fn found(text: &str, phrase: &str) -> Option<String> {
    let lower = text.to_lowercase();
    let at = lower.match_indices(phrase).find_map(|(at, _)| {
        let inside = |edge: Option<char>| edge.is_some_and(|letter| letter.is_alphanumeric() || letter == '_');
        let whole = !inside(lower[..at].chars().next_back()) && !inside(lower[at + phrase.len()..].chars().next());
        whole.then_some(at)
    })?;
    let before: String = lower[..at].chars().rev().take(60).collect::<Vec<_>>().into_iter().rev().collect();
    Some(format!("{before}[{phrase}]{}", lower[at + phrase.len()..].chars().take(40).collect::<String>()))
}

/// "1 exits", with what follows.
fn wrong_plural(text: &str) -> Option<String> {
    let words: Vec<&str> = text.split(' ').collect();
    let at = words.windows(2).position(|pair| {
        let noun = pair[1].trim_end_matches(|end: char| !end.is_alphanumeric());
        pair[0].trim_start_matches('(') == "1" && COUNTED.contains(&noun)
    })?;
    Some(words[at.saturating_sub(6)..(at + 6).min(words.len())].join(" "))
}

fn check(arguments: &[&str], not_ours: &[String]) -> Vec<String> {
    let text = said(arguments);
    let words = not_ours.iter().filter_map(|phrase| found(&text, phrase));
    let dust = ["e-16", "e-17", " -0 ", " -0.0 "].into_iter().filter(|dust| text.contains(dust)).map(str::to_owned);
    words.chain(dust).chain(wrong_plural(&text)).map(|what| format!("{}: {what}", arguments.join(" "))).collect()
}

#[test]
fn the_help_is_in_the_fields_words() {
    let not_ours = not_ours();
    let wrong: Vec<String> = commands()
        .iter()
        .flat_map(|command| check(&[command.split(' ').collect(), vec!["--help"]].concat(), &not_ours))
        .chain(check(&["--help"], &not_ours))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn answers_about_the_fixtures_are_in_the_fields_words() {
    let not_ours = not_ours();
    let mut fixtures: Vec<String> = std::fs::read_dir(root().join("fixtures"))
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().is_dir())
        .map(|entry| format!("fixtures/{}", entry.file_name().into_string().unwrap()))
        .collect();
    fixtures.sort();
    let mut wrong = Vec::new();
    for fixture in &fixtures {
        for command in
            [&["report", fixture][..], &["check", fixture], &["check", "--all", fixture], &["plan", "nested", fixture]]
        {
            wrong.extend(check(command, &not_ours));
        }
    }
    for [before, after] in
        [["vmx-linux-shadow-off", "vmx-linux-shadow-on"], ["bench-vmx-shadow-off", "bench-vmx-shadow-on"]]
    {
        let [before, after] = [before, after].map(|name| format!("fixtures/{name}"));
        wrong.extend(check(&["compare", &before, &after], &not_ours));
    }
    wrong.extend(check(&["schema", "--format", "validation"], &not_ours));
    wrong.extend(check(
        &["plan", "chain", "--vnfs", "1,8", "--size", "64", "--nic", "XL710", "--must-migrate"],
        &not_ours,
    ));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_wrong_word_and_a_wrong_plural_are_found() {
    assert!(found("vCPU 0 Stood ready to run", "stood ready").is_some());
    assert!(found("an understood ready-made text", "stood ready").is_none());
    assert!(wrong_plural("costs (1 exits, 2 chains)").is_some());
    assert!(wrong_plural("costs 1 exit, 11 exits and CPU 1 exit").is_none());
}
