//! No command has more options than tools/budget.tsv allows: `make lint` holds the other budgets of that file.

use assert_cmd::Command;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The limits of options: by command, `*` for every other one.
fn limits() -> BTreeMap<String, usize> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/budget.tsv");
    let text = fs::read_to_string(path).unwrap();
    let rows = text.lines().filter_map(|line| line.strip_prefix("options\t")?.split_once('\t'));
    rows.map(|(command, limit)| (command.to_owned(), limit.parse().unwrap())).collect()
}

#[test]
fn no_command_has_more_options_than_its_budget() {
    let folder = tempfile::tempdir().unwrap();
    Command::cargo_bin("kvmscope").unwrap().arg("man").arg(folder.path()).assert().success();
    let limits = limits();
    let mut commands = 0;
    for entry in fs::read_dir(folder.path()).unwrap() {
        let page = entry.unwrap().path();
        let name = page.file_stem().unwrap().to_str().unwrap().trim_start_matches("kvmscope").replace('-', " ");
        let command = name.trim();
        // A manual page begins the paragraph of each option with it; --help is everywhere.
        let text = fs::read_to_string(&page).unwrap();
        let options = text.lines().filter(|line| line.starts_with("\\fB\\-") && !line.contains("\\-\\-help")).count();
        let limit = limits.get(command).unwrap_or(&limits["*"]);
        assert!(
            options <= *limit,
            "{command} has {options} options, above {limit} of tools/budget.tsv: remove some, or raise the number there and say why in the commit"
        );
        commands += 1;
    }
    assert!(commands > 30, "{commands} manual pages");
    for command in limits.keys().filter(|command| *command != "*") {
        let page = folder.path().join(format!("kvmscope-{}.1", command.replace(' ', "-")));
        assert!(page.exists(), "tools/budget.tsv has a limit for {command}, which is no command");
    }
}
