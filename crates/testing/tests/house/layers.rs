//! Who may use whom: data flows in one direction, from what is on disk to what is shown, and no import runs back up.
//!
//! Cargo refuses circles; this table refuses what cargo would allow. Crates are held by what their Cargo.toml names, and what one
//! crate keeps apart inside by the imports of its sources.

use crate::workspace::{crates_of_ours, root, sources};
use std::collections::BTreeSet;

/// Each crate by its folder, and the crates of ours that it uses.
const MAY_USE: &[(&str, &[&str])] = &[
    ("crates/base", &[]),
    ("crates/archive", &["base"]),
    ("crates/columnar", &["base"]),
    ("crates/fold", &[]),
    ("crates/host", &["base"]),
    ("crates/show", &["base"]),
    ("crates/trace", &["base"]),
    ("crates/generate", &["base", "trace"]),
    ("crates/walk", &["base", "trace"]),
    ("crates/align", &["base", "trace", "walk"]),
    ("crates/facts", &["align", "base", "host", "trace", "walk"]),
    ("crates/intake", &["base", "host", "trace"]),
    ("crates/questions/time", &["base", "facts", "host", "trace", "walk"]),
    ("crates/tongue", &["base", "host"]),
    ("crates/questions/nesting", &["base", "facts", "host", "tongue", "walk"]),
    ("crates/questions/setup", &["base", "facts", "host", "tongue", "walk"]),
    ("crates/questions/plan", &["base", "facts", "host", "walk"]),
    ("crates/questions/change", &["base", "facts", "host", "setup", "walk"]),
    ("channel/question", &["base", "facts", "host", "walk"]),
    ("crates/analysis", &["base", "change", "channel-question", "facts", "nesting", "plan", "setup", "time", "walk"]),
    ("crates/top", &["analysis", "base", "fold", "host", "show"]),
    ("crates/fleet", &["analysis", "archive", "base", "columnar"]),
    ("crates/serve", &["analysis", "archive", "base", "columnar", "fleet", "host", "intake", "show", "trace"]),
    ("crates/testing", &[]),
    ("crates/lab", &["base", "host", "trace"]),
    ("crates/labs", &["base", "host", "lab", "trace"]),
    ("crates/process", &["analysis", "base", "lab", "show"]),
    ("crates/agent", &["analysis", "base", "host", "lab", "process", "serve", "top"]),
    ("channel/ring", &[]),
    ("channel/bench", &["base", "channel", "host", "lab", "labs"]),
    (
        "crates/fuzzed",
        &["analysis", "archive", "base", "columnar", "generate", "host", "intake", "lab", "serve", "trace"],
    ),
    (
        "crates/cli",
        &[
            "agent",
            "analysis",
            "archive",
            "base",
            "channel_bench",
            "columnar",
            "fleet",
            "host",
            "intake",
            "lab",
            "labs",
            "process",
            "serve",
            "show",
            "top",
            "trace",
        ],
    ),
    ("python", &["analysis", "archive", "base", "columnar", "fleet", "host", "show", "trace", "walk"]),
];

/// A crate, its modules that know nothing of each other, and pairs (user, used) of them that do.
type Apart = (&'static str, &'static [&'static str], &'static [(&'static str, &'static str)]);

/// Modules of one crate that are kept apart.
const APART: &[Apart] = &[
    ("crates/questions/time", &["counts", "flow", "latency"], &[]),
    ("crates/questions/setup", &["placement", "realtime", "signs"], &[]),
    ("crates/questions/plan", &["datapath", "migration"], &[]),
    // A trial is held against its own beginning by what compares two recordings.
    ("crates/questions/change", &["ablation", "compare", "contention", "fleet"], &[("contention", "compare")]),
];

/// What a manifest names under `[dependencies]`.
fn dependencies(manifest: &str) -> BTreeSet<String> {
    let section = manifest.split("\n[dependencies]\n").nth(1).unwrap_or_default();
    let section = section.split("\n[").next().unwrap_or_default();
    let name = |line: &str| line.split(['.', ' ', '=']).next().filter(|name| !name.is_empty()).map(str::to_owned);
    section.lines().filter(|line| !line.starts_with('#')).filter_map(name).collect()
}

#[test]
fn crates_use_what_lies_below_them_and_nothing_else() {
    let ours = crates_of_ours();
    let mut wrong = Vec::new();
    for (folder, allowed) in MAY_USE {
        let manifest = std::fs::read_to_string(root().join(folder).join("Cargo.toml")).unwrap();
        let used: BTreeSet<String> =
            dependencies(&manifest).into_iter().filter(|name| ours.contains_key(name)).collect();
        let allowed: BTreeSet<String> = allowed.iter().map(|name| (*name).to_owned()).collect();
        wrong.extend(used.difference(&allowed).map(|name| format!("{folder} uses {name}")));
        wrong.extend(
            allowed.difference(&used).map(|name| format!("{folder} does not use {name}: take it out of the table")),
        );
    }
    let listed: BTreeSet<&str> = MAY_USE.iter().map(|(folder, _)| *folder).collect();
    wrong.extend(
        ours.values()
            .filter(|folder| !listed.contains(folder.as_str()))
            .map(|folder| format!("{folder} is not in the table")),
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_table_is_in_the_order_in_which_crates_stand_on_each_other() {
    let ours = crates_of_ours();
    let mut below = BTreeSet::new();
    for (folder, used) in MAY_USE {
        for name in *used {
            assert!(below.contains(ours[*name].as_str()), "{folder} uses {name}, which the table has further down");
        }
        below.insert(*folder);
    }
}

#[test]
fn questions_of_one_crate_know_nothing_of_each_other() {
    let mut wrong = Vec::new();
    for (folder, modules, excepted) in APART {
        let mut used = BTreeSet::new();
        for module in *modules {
            let mut files = Vec::new();
            sources(&root().join(folder).join("src").join(module), &mut files);
            assert!(!files.is_empty(), "{folder}: where is {module}?");
            for file in files {
                let text = std::fs::read_to_string(&file).unwrap();
                for other in modules.iter().filter(|other| *other != module) {
                    if text.contains(&format!("crate::{other}::")) || text.contains(&format!("crate::{other};")) {
                        used.insert((*module, *other));
                        if !excepted.contains(&(module, other)) {
                            wrong.push(format!("{}: {module} uses {other}", file.display()));
                        }
                    }
                }
            }
        }
        wrong.extend(
            excepted
                .iter()
                .filter(|pair| !used.contains(pair))
                .map(|(user, used)| format!("{folder}: {user} does not use {used} any more: take it out of the table")),
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn one_crate_alone_claims_use_by_others() {
    for (folder, _) in MAY_USE {
        let manifest = std::fs::read_to_string(root().join(folder).join("Cargo.toml")).unwrap();
        assert_eq!(manifest.contains("\npublish = false\n"), *folder != "channel/ring", "{folder}");
    }
}
