//! What each crate of ours offers to the others: printed, so that a change of it is seen, and held to what others name.

use crate::workspace::{crates_of_ours, root, sources};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};

const LIST: &str = "tools/api.txt";

/// The file of a module, where it is not written in its parent.
fn file_of(parent: &Path, name: &str) -> Option<PathBuf> {
    let is_root = ["lib.rs", "mod.rs"].iter().any(|root| parent.ends_with(root));
    let folder = if is_root { parent.parent()?.to_owned() } else { parent.with_extension("") };
    [folder.join(format!("{name}.rs")), folder.join(name).join("mod.rs")].into_iter().find(|file| file.is_file())
}

/// The name that a line makes public, of what is no module and no import.
fn public_name(line: &str) -> Option<&str> {
    // `named!` indents the enum that it declares.
    let line = line.strip_prefix("    ").filter(|line| line.starts_with("pub enum ")).unwrap_or(line);
    let rest = line.strip_prefix("pub ")?;
    let kinds =
        ["const fn ", "unsafe fn ", "fn ", "struct ", "enum ", "trait ", "const ", "static ", "type ", "union "];
    let rest = kinds.iter().find_map(|kind| rest.strip_prefix(kind))?;
    Some(rest.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next().unwrap_or(rest))
}

/// The names that `pub use ..;` makes public.
fn reexported(statement: &str) -> Vec<&str> {
    let list = statement.trim_start_matches("pub use ").trim_end_matches(';');
    let names = list.split_once('{').map_or(list.rsplit("::").next().unwrap_or(list), |(_, names)| names);
    names
        .split([',', '}', '\n'])
        .map(|name| name.rsplit(" as ").next().unwrap_or(name).trim())
        .filter(|name| !name.is_empty())
        .collect()
}

/// Adds the public names of a module and of its public modules.
fn offered(file: &Path, module: &str, found: &mut BTreeMap<String, BTreeSet<String>>) {
    let text = std::fs::read_to_string(file).unwrap();
    let names = found.entry(module.to_owned()).or_default();
    names.extend(text.lines().filter_map(public_name).map(str::to_owned));
    let uses = text.split("\npub use ").skip(1).filter_map(|rest| rest.split(';').next());
    names.extend(uses.flat_map(reexported).map(str::to_owned));
    let exported = text.split("#[macro_export]\nmacro_rules! ").skip(1).filter_map(|rest| rest.split(' ').next());
    names.extend(exported.map(|name| format!("{name}!")));
    for name in text.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';')) {
        if let Some(file) = file_of(file, name) {
            offered(&file, &format!("{module}::{name}"), found);
        }
    }
}

/// Of every crate: its public modules and their names.
fn all_offered() -> BTreeMap<String, BTreeSet<String>> {
    let mut found = BTreeMap::new();
    for (name, folder) in crates_of_ours() {
        offered(&root().join(folder).join("src/lib.rs"), &name.replace('-', "_"), &mut found);
    }
    found.retain(|_, names| !names.is_empty());
    found
}

#[test]
fn the_list_of_what_crates_offer_is_true() {
    let line = |(module, names): (String, BTreeSet<String>)| {
        format!("{module}: {}\n", names.into_iter().collect::<Vec<_>>().join(" "))
    };
    let printed: String = all_offered().into_iter().map(line).collect();
    let kept = std::fs::read_to_string(root().join(LIST)).unwrap_or_default();
    if printed != kept {
        let new = root().join("target/api.txt");
        std::fs::write(&new, &printed).unwrap();
        let differs = |a: &str, b: &str| {
            a.lines().filter(|line| !b.contains(line)).map(|line| format!("{line}\n")).collect::<String>()
        };
        panic!(
            "what crates offer is not what {LIST} says. Gone:\n{}New:\n{}If that is meant: cp target/api.txt {LIST}",
            differs(&kept, &printed),
            differs(&printed, &kept)
        );
    }
}

/// The folder of a crate for its own sources, its tests and examples: what lies in `src`, and what lies beside it.
fn folder_of(file: &Path) -> &Path {
    let is_root = |folder: &&Path| folder.ends_with("src") || folder.join("Cargo.toml").exists();
    file.ancestors().skip(1).find(is_root).unwrap()
}

/// Each word of our sources, and the folders in which it stands.
fn words() -> HashMap<String, BTreeSet<PathBuf>> {
    let mut files = Vec::new();
    for folder in ["crates", "channel", "python/src", "fuzz/targets"] {
        sources(&root().join(folder), &mut files);
    }
    let mut places: HashMap<String, BTreeSet<PathBuf>> = HashMap::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let of_file: HashSet<&str> = text.split(|letter: char| !letter.is_alphanumeric() && letter != '_').collect();
        let folder = folder_of(&file);
        for word in of_file {
            places.entry(word.to_owned()).or_default().insert(folder.to_owned());
        }
    }
    places
}

#[test]
fn what_a_crate_offers_somebody_else_names() {
    let words = words();
    let mut unused = Vec::new();
    // The ring is for programs of others, too.
    for (name, folder) in crates_of_ours().into_iter().filter(|(name, _)| name != "channel") {
        let own = root().join(folder).join("src");
        let mut offers = BTreeMap::new();
        offered(&own.join("lib.rs"), &name, &mut offers);
        // Types also stand in what others call.
        let is_type = |name: &str| name.starts_with(char::is_uppercase) && name.contains(char::is_lowercase);
        let is_named = |name: &str| words.get(name).is_some_and(|folders| folders.iter().any(|folder| *folder != own));
        for (module, names) in offers {
            let names = names.iter().map(|name| name.trim_end_matches('!'));
            let alone = names.filter(|name| !is_type(name) && !is_named(name));
            unused.extend(alone.map(|name| format!("{module}::{name}")));
        }
    }
    assert_eq!(unused, [""; 0], "no other crate names it: it is not public");
}
