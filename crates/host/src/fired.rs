//! Which events did a test guest cause, when somebody tried?
//!
//! In: `fired.txt` of a snapshot, a line `count name` for each event of group kvm that this kernel has, 0 for those that
//! stayed silent. It is written where a test guest was run, because that an event is registered does not mean that it fires.

use crate::Snapshot;
use std::collections::BTreeMap;

/// Name of the file in a snapshot.
pub const FIRED_FILE: &str = "fired.txt";

/// Events by name, and how often each fired; `None` where nobody tried.
pub fn fired(snapshot: &Snapshot) -> Option<BTreeMap<String, u64>> {
    let line = |line: &str| {
        let (count, name) = line.trim().split_once(' ')?;
        Some((name.to_owned(), count.parse().ok()?))
    };
    Some(snapshot.read(FIRED_FILE)?.lines().filter_map(line).collect())
}

pub fn text<'a>(events: impl IntoIterator<Item = (&'a str, u64)>) -> String {
    events.into_iter().map(|(name, count)| format!("{count} {name}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("proc")).unwrap();
        let snapshot = || Snapshot::open(root.path()).unwrap();
        assert_eq!(fired(&snapshot()), None);
        std::fs::write(root.path().join(FIRED_FILE), text([("kvm_pio", 20), ("kvm_exit", 0)])).unwrap();
        let read = fired(&snapshot()).unwrap();
        assert_eq!((read["kvm_pio"], read["kvm_exit"]), (20, 0));
    }
}
