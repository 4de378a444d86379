//! Which computer is this, and since which boot does it run?
//!
//! In:  `/etc/machine-id` (machine-id(5)) and `/proc/sys/kernel/random/boot_id` below a root.
//! Out: what tells a recording of this host from one of another. The machine's id is kept as a hash: the page asks for one
//!      wherever it leaves the machine. The boot's id is a random number of that boot alone, and stays as it is.

use base::recording::Identity;
use sha2::{Digest, Sha256};
use std::path::Path;

/// What is hashed together with the id, so that other programs' hashes of it are others.
const KEY: &[u8] = b"kvmscope machine-id/1 ";

/// Half of the hash tells machines apart as well as the id itself, which has 128 bits.
const KEPT_BYTES: usize = 16;

/// Both files have a line.
const MOST_BYTES: u64 = 4_096;

/// The computer whose files lie below `root`; unknown where a file is missing, as in containers.
pub fn identity(root: &Path) -> Identity {
    let line = |path: &str| {
        let text = base::files::text(&root.join(path), MOST_BYTES).ok()?;
        Some(text.trim().to_owned()).filter(|id| !id.is_empty() && id.len() <= 64)
    };
    // Before the first boot of an image it says `uninitialized`.
    let is_id = |id: &String| id.bytes().all(|byte| byte.is_ascii_hexdigit());
    Identity {
        machine_id: line("etc/machine-id").filter(is_id).map(|id| hashed(&id)),
        boot_id: line("proc/sys/kernel/random/boot_id"),
    }
}

fn hashed(id: &str) -> String {
    let hash = Sha256::new().chain_update(KEY).chain_update(id).finalize();
    hash.iter().take(KEPT_BYTES).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_is_known_by_a_hash_and_the_boot_by_its_number() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(identity(root.path()), Identity::default());
        for directory in ["etc", "proc/sys/kernel/random"] {
            std::fs::create_dir_all(root.path().join(directory)).unwrap();
        }
        let machine = |id: &str| {
            std::fs::write(root.path().join("etc/machine-id"), id).unwrap();
            identity(root.path()).machine_id
        };
        assert_eq!(machine("uninitialized\n"), None);
        let one = machine("3d1219c7c4c5404aaa1f6d2a48adfda4\n").unwrap();
        assert!(one.len() == 32 && !one.contains("3d1219c7"), "{one}");
        assert_ne!(machine("3d1219c7c4c5404aaa1f6d2a48adfda5\n").unwrap(), one);
        std::fs::write(root.path().join("proc/sys/kernel/random/boot_id"), "b7d19ec8-439e\n").unwrap();
        assert_eq!(identity(root.path()).boot_id.as_deref(), Some("b7d19ec8-439e"));
    }
}
