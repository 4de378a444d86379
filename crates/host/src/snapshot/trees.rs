//! Where do the trees of machines lie, that other tools have gathered?
//!
//! ```text
//! sosreport-host-.../           proc/ sys/ sos_commands/                      one machine (sos 4)
//! must-gather.local.N/IMAGE/    nodes/NODE/{cpu_affinities.json, lscpu, ..}   a machine for each node (OpenShift)
//! ```
//! A node's `sysinfo.tgz` holds `proc` and `sys`; unpacked there, they count too.

use std::path::{Path, PathBuf};

/// More nodes of a must-gather are not looked at.
const MOST_NODES: usize = 1_000;

/// Whether a directory holds the files of one machine.
pub fn is_tree(path: &Path) -> bool {
    ["proc", "sys", "sos_commands"].iter().any(|name| path.join(name).is_dir())
        || ["cpu_affinities.json", "irq_affinities.json"].iter().any(|name| path.join(name).is_file())
}

/// The trees in a directory: itself, or the nodes of a must-gather, whose directory or the one above may be named.
pub fn trees_in(path: &Path) -> Vec<PathBuf> {
    if is_tree(path) {
        return vec![path.to_owned()];
    }
    let nodes = |below: &Path| -> Vec<PathBuf> {
        children(&below.join("nodes")).into_iter().filter(|node| is_tree(node)).take(MOST_NODES).collect()
    };
    let here = nodes(path);
    if here.is_empty() { children(path).iter().flat_map(|image| nodes(image)).collect() } else { here }
}

/// Directories in a directory, by their names.
fn children(path: &Path) -> Vec<PathBuf> {
    let mut children: Vec<PathBuf> = std::fs::read_dir(path)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect();
    children.sort();
    children
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_of_a_must_gather_are_found_from_above() {
        let root = tempfile::tempdir().unwrap();
        for node in ["worker-1", "worker-0"] {
            let node = root.path().join("quay-io-image/nodes").join(node);
            std::fs::create_dir_all(&node).unwrap();
            std::fs::write(node.join("cpu_affinities.json"), "[]").unwrap();
        }
        std::fs::create_dir_all(root.path().join("quay-io-image/nodes/debug")).unwrap();
        let names =
            |path: &Path| trees_in(path).iter().map(|tree| tree.file_name().unwrap().to_owned()).collect::<Vec<_>>();
        assert_eq!(names(root.path()), ["worker-0", "worker-1"]);
        assert_eq!(names(&root.path().join("quay-io-image")), ["worker-0", "worker-1"]);
        assert_eq!(names(&root.path().join("quay-io-image/nodes/worker-1")), ["worker-1"]);
        assert!(trees_in(Path::new("/nonexistent")).is_empty());
    }
}
