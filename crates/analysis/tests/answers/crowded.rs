//! A file that names more threads than any host has takes no more memory than so many: the others are counted.

use base::recording::Recording;
use kvmscope_analysis::{Case, Given, flow};
use std::fmt::Write;

#[test]
fn threads_beyond_the_limit_are_counted_and_said() {
    const NAMED: u32 = 65_536 + 100;
    let mut text = "# tracer: nop\n".to_owned();
    for thread in 0..NAMED {
        let (tid, at_us) = (1_000 + thread, 10 * thread);
        let _ = writeln!(
            text,
            " CPU 0/KVM-{tid} [000] d..1. {}.{:06}: kvm_entry: vcpu 0, rip 0x1000",
            1 + at_us / 1_000_000,
            at_us % 1_000_000
        );
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace.txt");
    std::fs::write(&path, text).unwrap();
    let case = Case::new(kvmscope_analysis::open(Recording::open(&path).unwrap()).unwrap(), Given::default());
    let part = &case.ledger().parts[0];
    assert_eq!((part.vcpus.len(), part.doubts.crowded), (65_536, 100));
    let section = flow::answer(&case).unwrap().unwrap().section;
    let crowded = section.unknown.iter().find(|unknown| unknown.what == "crowded").unwrap();
    assert_eq!(crowded.amount, Some(100.0), "{crowded:?}");
}
