//! Kernels before 2.6.38 and other architectures describe `kvm_exit` without `isa`: the answer is found without it.

use super::answer::Answer;
use super::equal::flow_of;
use generate::{Story, Target, scenario};
use std::path::Path;
use trace::format::Endian;
use trace::write::tracedat::Compression;

const TARGETS: [Target; 4] = [
    Target::TraceDat7 { endian: Endian::Little, long_bytes: 8, compression: Compression::None },
    Target::TraceDat6 { endian: Endian::Big, long_bytes: 8 },
    Target::Ctf1 { endian: Endian::Little, lttng: false },
    Target::PerfData { endian: Endian::Little },
];

/// Calls the field `isa` by a name that nobody asks for, in a file or in those of a directory.
fn rename_isa(path: &Path) {
    if path.is_dir() {
        return std::fs::read_dir(path).unwrap().for_each(|entry| rename_isa(&entry.unwrap().path()));
    }
    let mut bytes = std::fs::read(path).unwrap();
    for at in 0..bytes.len().saturating_sub(5) {
        if matches!(&bytes[at..at + 5], b" isa;" | b"_isa;") {
            bytes[at + 3] = b'b';
        }
    }
    std::fs::write(path, bytes).unwrap();
}

fn same_without(story: &Story, target: Target) {
    let directory = tempfile::tempdir().unwrap();
    let path = story.write(target, directory.path()).unwrap();
    let with = Answer::found_in(&flow_of(&path));
    rename_isa(&path);
    let without = Answer::found_in(&flow_of(&path));
    assert_eq!(with.len(), without.len(), "{target:?}");
    for (tid, answer) in &with {
        assert_eq!(
            (&answer.ledger, &answer.exits),
            (&without[tid].ledger, &without[tid].exits),
            "{target:?}, thread {tid}"
        );
    }
}

#[test]
fn exits_without_isa_are_told_by_their_numbers() {
    for seed in [1, 2, 3, 4] {
        for target in TARGETS {
            same_without(&scenario::random(seed), target);
        }
    }
}
