//! Pages for people: few enough to find one, each begins with a command, no link is dead, and none is in words that are not ours.

use crate::patience::files;
use crate::workspace::root;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Shelves of `docs/`, and the page for those who extend the program.
const SHELVES: [&str; 5] = ["use/", "read/", "formats/", "labs/", "recipes.md"];

/// Pages that the program prints, or that a test holds row by row.
const PRINTED: [&str; 4] = ["formats/tables.md", "formats/validation.md", "formats/schemas.md", "read/words.md"];

/// Pages that people write, at most.
const MOST_PAGES: usize = 20;

/// Words that pages do not use, besides those of the table in words.md, which also holds for what the program prints.
const NOT_IN_PAGES: [&str; 3] = ["said", "told of", "gives back"];

/// Words of that table that are wrong in answers alone: a page may tell of what is shown on a screen.
const ONLY_IN_ANSWERS: [&str; 2] = ["screen", "is shown"];

/// How a line that is to be typed begins.
const COMMANDS: [&str; 5] = ["kvmscope ", "sudo kvmscope ", "make ", "tools/", "pip "];

/// Lines of a page in which its first command has to be.
const FIRST_LINES: usize = 16;

fn pages() -> Vec<PathBuf> {
    let mut pages = Vec::new();
    files(&root().join("docs"), ".md", &mut pages);
    pages.sort();
    assert!(pages.len() > 10, "{pages:?}");
    pages
}

fn name(page: &Path) -> String {
    page.strip_prefix(root().join("docs")).unwrap().to_string_lossy().into_owned()
}

/// All of its text that is no code: neither a block nor between backticks, where names keep theirs.
fn prose(text: &str) -> String {
    let blocks = text.split("\n```").step_by(2).collect::<String>();
    blocks.split('`').step_by(2).collect::<Vec<_>>().join(" ").to_lowercase()
}

/// Whether `phrase` is in `text` as whole words.
fn has(text: &str, phrase: &str) -> bool {
    let inside = |letter: Option<char>| letter.is_some_and(|letter| letter.is_alphanumeric() || letter == '_');
    text.match_indices(phrase)
        .any(|(at, _)| !inside(text[..at].chars().next_back()) && !inside(text[at + phrase.len()..].chars().next()))
}

/// How GitHub names the heading of a line, if it is one.
fn anchor(line: &str) -> Option<String> {
    let title = line.trim_start_matches('#').strip_prefix(' ').filter(|_| line.starts_with('#'))?;
    let kept = title.to_lowercase();
    let kept = kept.chars().filter(|letter| letter.is_alphanumeric() || "-_ ".contains(*letter));
    Some(kept.map(|letter| if letter == ' ' { '-' } else { letter }).collect())
}

/// What links of `text` name, outside of blocks of code.
fn links(text: &str) -> Vec<String> {
    let blocks = text.split("\n```").step_by(2).collect::<String>();
    let targets = blocks.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets.filter(|target| !target.contains("://") && !target.contains(' ')).map(str::to_owned).collect()
}

/// Why a link of `page` leads nowhere.
fn dead(page: &Path, link: &str) -> Option<String> {
    let (path, heading) = link.split_once('#').unwrap_or((link, ""));
    let target = if path.is_empty() { page.to_owned() } else { page.parent().unwrap().join(path) };
    if !target.exists() {
        return Some(format!("{}: there is no {path}", page.display()));
    }
    let is_there = heading.is_empty()
        || std::fs::read_to_string(&target).unwrap().lines().filter_map(anchor).any(|anchor| anchor == heading);
    (!is_there).then(|| format!("{}: {path} has no heading #{heading}", page.display()))
}

#[test]
fn pages_are_on_four_shelves_and_few() {
    let names: Vec<String> = pages().iter().map(|page| name(page)).collect();
    let lost: Vec<&String> = names.iter().filter(|name| !SHELVES.iter().any(|shelf| name.starts_with(shelf))).collect();
    assert!(lost.is_empty(), "docs/ has four shelves, {SHELVES:?}: {lost:?}");
    let written = names.iter().filter(|name| !PRINTED.contains(&name.as_str())).count();
    assert!(written <= MOST_PAGES, "{written} pages; a new subject goes into one of them");
}

#[test]
fn a_page_begins_with_a_command() {
    let begins = |text: &str| {
        text.lines().take(FIRST_LINES).any(|line| {
            let line = line.trim_start();
            COMMANDS.iter().any(|command| line.starts_with(command) || line.contains(&format!("`{command}")))
        })
    };
    let written =
        pages().into_iter().filter(|page| name(page) != "read/words.md" && name(page) != "formats/schemas.md");
    let silent: Vec<String> =
        written.filter(|page| !begins(&std::fs::read_to_string(page).unwrap())).map(|page| name(&page)).collect();
    assert!(silent.is_empty(), "no command in the first {FIRST_LINES} lines of {silent:?}");
}

#[test]
fn links_between_pages_lead_somewhere() {
    let mut pages = pages();
    for folder in ["channel/ring", "python", "ui", "fixtures", "."] {
        for entry in std::fs::read_dir(root().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let readme = path.join("README.md");
            pages.extend(
                [path, readme]
                    .into_iter()
                    .filter(|path| path.extension().is_some_and(|end| end == "md") && path.is_file()),
            );
        }
    }
    let pages: BTreeSet<PathBuf> = pages.into_iter().collect();
    let of_page = |page: &PathBuf| -> Vec<String> {
        links(&std::fs::read_to_string(page).unwrap()).iter().filter_map(|link| dead(page, link)).collect()
    };
    let wrong: Vec<String> = pages.iter().flat_map(of_page).collect();
    assert!(pages.len() > 40 && wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn pages_are_in_the_fields_words() {
    let table = std::fs::read_to_string(root().join("docs/read/words.md")).unwrap();
    let (_, table) = table.split_once("## Not our words").unwrap();
    let rows = table.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next()).skip(1);
    let rows = rows.filter(|word| !ONLY_IN_ANSWERS.contains(word));
    let words: Vec<String> = rows.map(str::to_lowercase).chain(NOT_IN_PAGES.map(str::to_owned)).collect();
    let mut pages: Vec<PathBuf> = pages().into_iter().filter(|page| name(page) != "read/words.md").collect();
    pages.extend(
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "PLATFORM.md", "CHANGELOG.md"]
            .map(|page| root().join(page)),
    );
    let mut wrong = Vec::new();
    for page in pages {
        let text = prose(&std::fs::read_to_string(&page).unwrap());
        let found = words.iter().filter(|word| has(&text, word));
        wrong.extend(found.map(|word| format!("{}: {word}", page.display())));
    }
    assert!(words.len() > 40 && wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_wrong_word_a_dead_link_and_a_heading_are_found() {
    assert_eq!(prose("A `told` b\n```\ntold\n```\nWas Told."), "a   b\nwas told.");
    assert!(has("was told.", "told") && !has("untold", "told"));
    assert_eq!(anchor("## Always on: `kvmscope agent`").as_deref(), Some("always-on-kvmscope-agent"));
    assert_eq!(anchor("#no heading"), None);
    assert_eq!(links("[a](b.md#c) [d](https://e) `x`"), ["b.md#c"]);
    let page = root().join("docs/read/words.md");
    assert!(dead(&page, "flow.md").is_none() && dead(&page, "none.md").is_some() && dead(&page, "#none").is_some());
}
