//! Where do the trees of machines lie, that other tools have gathered?
//!
//! ```text
//! sosreport-host-.../           proc/ sys/ sos_commands/                      one machine (sos 4)
//! must-gather.local.N/IMAGE/    nodes/NODE/{cpu_affinities.json, lscpu, ..}   a machine for each node (OpenShift)
//! ```
//! A node's `sysinfo.tgz` holds `proc` and `sys`; unpacked there, they count too. In a must-gather that is read as one archive
//! it is unpacked along with it.

use std::path::{Path, PathBuf};

/// More nodes of a must-gather are not looked at.
const MOST_NODES: usize = 1_000;

/// How far above its nodes a must-gather may be named: `must-gather/must-gather.local.1/IMAGE/nodes`.
const DEPTH: usize = 2;

/// More directories are not looked into for trees.
const MOST_DIRECTORIES: usize = 4_096;

/// Whether a directory holds the files of one machine.
pub fn is_tree(path: &Path) -> bool {
    ["proc", "sys", "sos_commands"].iter().any(|name| path.join(name).is_dir())
        || ["cpu_affinities.json", "irq_affinities.json"].iter().any(|name| path.join(name).is_file())
}

/// The archive in which a must-gather has a node's `proc` and `sys`, where nobody has unpacked it.
pub fn packed_in(tree: &Path) -> Option<PathBuf> {
    let packed = tree.join("sysinfo.tgz");
    (packed.is_file() && !tree.join("proc").exists()).then_some(packed)
}

/// The trees in a directory: itself, or the nodes of a must-gather, whose directory or the one above may be named.
pub fn trees_in(path: &Path) -> Vec<PathBuf> {
    if is_tree(path) {
        return vec![path.to_owned()];
    }
    let mut found = Vec::new();
    let mut left = MOST_DIRECTORIES;
    below(path, DEPTH, &mut left, &mut found);
    found
}

/// Adds the trees below a directory: nodes of a must-gather, or the tree that an archive has at its top.
fn below(path: &Path, depth: usize, left: &mut usize, found: &mut Vec<PathBuf>) {
    let nodes: Vec<PathBuf> = children(&path.join("nodes")).into_iter().filter(|node| is_tree(node)).collect();
    if !nodes.is_empty() {
        found.extend(nodes.into_iter().take(MOST_NODES.saturating_sub(found.len())));
        return;
    }
    for child in children(path) {
        let Some(fewer) = left.checked_sub(1) else { return };
        *left = fewer;
        if depth == DEPTH && is_sosreport(&child) {
            found.push(child);
        } else if depth > 0 && found.len() < MOST_NODES {
            below(&child, depth - 1, left, found);
        }
    }
}

/// Whether a directory is what sos has gathered on one machine.
fn is_sosreport(path: &Path) -> bool {
    path.join("sos_commands").is_dir() && is_tree(path)
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
        let above = tempfile::tempdir().unwrap();
        std::fs::rename(root.path().join("quay-io-image"), above.path().join("image")).unwrap();
        std::fs::create_dir_all(above.path().join("gather/must-gather.local.1")).unwrap();
        std::fs::rename(above.path().join("image"), above.path().join("gather/must-gather.local.1/image")).unwrap();
        assert_eq!(names(&above.path().join("gather")), ["worker-0", "worker-1"], "two directories above the image's");
        assert_eq!(names(above.path()), [""; 0], "a folder that somewhere holds one is none");
        let image = above.path().join("gather/must-gather.local.1/image");
        std::fs::create_dir_all(root.path().join("quay-io-image")).unwrap();
        std::fs::rename(image.join("nodes"), root.path().join("quay-io-image/nodes")).unwrap();
        assert_eq!(names(&root.path().join("quay-io-image/nodes/worker-1")), ["worker-1"]);
        assert!(trees_in(Path::new("/nonexistent")).is_empty());
    }
}
