//! A bundled machine, copied so that one thing can be changed.

use base::Level;
use base::{Finding, Section};
use host::Snapshot;
use kvmscope_analysis::nesting::build::machine;
use kvmscope_analysis::nesting::model::{Machine, Model};
use kvmscope_analysis::nesting::section::section;
use std::fs;
use std::path::{Path, PathBuf};

/// A machine's files in a directory of their own.
pub(super) struct Tree {
    level: u8,
    root: tempfile::TempDir,
}

pub(super) fn bundled(fixture: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(fixture)
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target)
        } else {
            drop(fs::copy(entry.path(), target))
        }
    }
}

impl Tree {
    /// The machine of `fixture` at `level`.
    pub(super) fn of(fixture: &str, level: u8) -> Self {
        let root = tempfile::tempdir().unwrap();
        copy(&bundled(fixture).join(format!("L{level}/host/0")), root.path());
        Self { level, root }
    }

    /// With another content of a file; a path without `/` is a parameter, `kvm_intel.ept`.
    pub(super) fn with(self, file: &str, text: &str) -> Self {
        let path = self.root.path().join(parameter(file));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    /// With words of a file replaced, all of them.
    pub(super) fn replacing(self, file: &str, from: &str, to: &str) -> Self {
        let text = fs::read_to_string(self.root.path().join(file)).unwrap();
        assert!(text.contains(from), "{file} has no `{from}`");
        self.with(file, &text.replace(from, to))
    }

    /// Without a file.
    pub(super) fn without(self, file: &str) -> Self {
        fs::remove_file(self.root.path().join(parameter(file))).unwrap();
        self
    }

    pub(super) fn root(&self) -> &Path {
        self.root.path()
    }

    pub(super) fn machine(&self) -> Machine {
        let snapshot = Snapshot::open(self.root.path()).unwrap();
        machine(Level::At(self.level), &format!("L{}", self.level), snapshot)
    }

    pub(super) fn findings(&self) -> Vec<Finding> {
        answer(&[self]).findings
    }

    /// The finding of a rule on it alone.
    pub(super) fn finding(&self, rule: &str) -> Option<Finding> {
        self.findings().into_iter().find(|finding| finding.rule == rule)
    }
}

fn parameter(file: &str) -> String {
    match file.split_once('.') {
        Some((module, name)) if !file.contains('/') && module.starts_with("kvm") && name != "json" => {
            format!("sys/module/{module}/parameters/{name}")
        }
        _ => file.to_owned(),
    }
}

/// The answer about several machines together.
pub(super) fn answer(trees: &[&Tree]) -> Section {
    let model = Model { machines: trees.iter().map(|tree| tree.machine()).collect(), traced_nested: false };
    section(&model, &kvmscope_analysis::Given::default())
}
