//! How are KVM's modules set?
//!
//! In: `/sys/module/kvm*/parameters/*` of a snapshot, all of them, known or not. Out: values as the files show them.
//! A file shows the value in force: KVM clears a switch at load where the CPU, as seen at this level, lacks the feature.
//! Formats differ: `Y`/`N`, `0`/`1`, `-1` for automatic, words.

use crate::Snapshot;
use crate::snapshot::Content;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// Such as `kvm_intel`.
    pub module: String,
    /// Such as `ept`.
    pub name: String,
    /// The file's line; `None` if it could not be read.
    pub value: Option<String>,
}

/// What became of a parameter that somebody asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Setting {
    Value(String),
    /// The module is there and has no such parameter.
    NoParameter,
    /// The module is not loaded.
    NoModule,
    /// It was there and not readable, for that reason.
    Unreadable(String),
    /// The snapshot does not tell.
    Unknown,
}

/// All parameters of modules called `kvm` or `kvm_*`, by module and name.
pub fn parameters(snapshot: &Snapshot) -> Vec<Parameter> {
    let modules = snapshot.names("sys/module").into_iter().filter(|name| name == "kvm" || name.starts_with("kvm_"));
    let of_module = |module: String| {
        let directory = format!("sys/module/{module}/parameters");
        let names = snapshot.names(&directory).into_iter();
        names.map(move |name| {
            let value = snapshot.line(&format!("{directory}/{name}"));
            Parameter { module: module.clone(), name, value }
        })
    };
    modules.flat_map(of_module).collect()
}

/// Whether a module is loaded or built in; `None` if the snapshot does not tell.
pub fn is_loaded(snapshot: &Snapshot, module: &str) -> Option<bool> {
    let listed = snapshot.names("sys/module");
    if listed.iter().any(|name| name == module) {
        return Some(true);
    }
    match snapshot.read("proc/modules") {
        Some(text) => Some(text.lines().any(|line| line.split_whitespace().next() == Some(module))),
        // KVM's modules all have parameters, so a list without them is a machine without them, also if they were built in.
        None if listed.is_empty() => None,
        None => Some(false),
    }
}

pub fn setting(snapshot: &Snapshot, module: &str, name: &str) -> Setting {
    match (snapshot.content(&path(module, name)), is_loaded(snapshot, module)) {
        (Content::Text(text), _) => Setting::Value(text.trim().to_owned()),
        (Content::Unreadable(why), _) => Setting::Unreadable(why),
        (Content::Absent, Some(false)) => Setting::NoModule,
        // A report that kept the list of modules and not their parameters says nothing of these.
        (Content::Absent, Some(true)) if !snapshot.names(&format!("sys/module/{module}/parameters")).is_empty() => {
            Setting::NoParameter
        }
        (Content::Absent, _) => Setting::Unknown,
    }
}

/// The file of a parameter, below the root.
pub fn path(module: &str, name: &str) -> String {
    format!("sys/module/{module}/parameters/{name}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn snapshot(files: &[(&str, &str)]) -> (tempfile::TempDir, Snapshot) {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("proc")).unwrap();
        for (file, text) in files {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let opened = Snapshot::open(root.path()).unwrap();
        (root, opened)
    }

    #[test]
    fn a_value_no_parameter_no_module_and_not_known_are_four_answers() {
        let (_kept, here) = snapshot(&[
            ("sys/module/kvm_intel/parameters/ept", "Y\n"),
            ("sys/module/kvmfr/parameters/x", "1\n"),
            ("proc/modules", "kvm_intel 1 0 - Live 0x0\nkvm_pvm 1 0 - Live 0x0\n"),
            ("unreadable.txt", "sys/module/kvm_intel/parameters/pml: Permission denied\n"),
        ]);
        assert_eq!(setting(&here, "kvm_intel", "ept"), Setting::Value("Y".into()));
        assert_eq!(setting(&here, "kvm_intel", "new"), Setting::NoParameter);
        assert_eq!(setting(&here, "kvm_amd", "npt"), Setting::NoModule);
        assert_eq!(setting(&here, "kvm_pvm", "force"), Setting::Unknown);
        assert_eq!(setting(&here, "kvm_intel", "pml"), Setting::Unreadable("Permission denied".into()));
        let all = parameters(&here);
        assert_eq!(all, [Parameter { module: "kvm_intel".into(), name: "ept".into(), value: Some("Y".into()) }]);
    }

    #[test]
    fn an_empty_tree_tells_nothing() {
        let (_kept, here) = snapshot(&[]);
        assert_eq!(setting(&here, "kvm_intel", "ept"), Setting::Unknown);
        assert_eq!(is_loaded(&here, "kvm"), None);
    }
}
