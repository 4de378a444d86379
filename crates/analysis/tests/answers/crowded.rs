//! A file that names more threads than any host has takes no more memory than so many: the others are counted.

use base::recording::Recording;
use kvmscope_analysis::{Case, Given, flow};
use std::fmt::Write;

/// An entry of each of some threads, behind a switch to it or without one.
fn entries(threads: u32, switches: bool) -> String {
    let mut text = "# tracer: nop\n".to_owned();
    for thread in 0..threads {
        let (tid, at_us) = (1_000 + thread, 1_000_000 + 10 * u64::from(thread));
        let time = |us: u64| format!("{}.{:06}", us / 1_000_000, us % 1_000_000);
        if switches {
            let _ = writeln!(
                text,
                " x-{} [000] d..2. {}: sched_switch: prev_comm=x prev_pid={} prev_prio=120 prev_state=S ==> next_comm=x next_pid={tid} next_prio=120",
                tid - 1,
                time(at_us - 2),
                tid - 1
            );
        }
        let _ = writeln!(text, " CPU 0/KVM-{tid} [000] d..1. {}: kvm_entry: vcpu 0, rip 0x1000", time(at_us));
    }
    text
}

#[test]
fn threads_beyond_the_limit_are_counted_and_said() {
    [false, true].into_iter().for_each(beyond_the_limit);
}

fn beyond_the_limit(switches: bool) {
    let text = entries(65_536 + 100, switches);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace.txt");
    std::fs::write(&path, text).unwrap();
    let case = Case::new(kvmscope_analysis::open(Recording::open(&path).unwrap()).unwrap(), Given::default());
    let part = &case.ledger().parts[0];
    assert_eq!((part.vcpus.len(), part.doubts.crowded), (65_536, 100), "switches: {switches}");
    let section = flow::answer(&case).unwrap().unwrap().section;
    let crowded = section.unknown.iter().find(|unknown| unknown.what == "crowded").unwrap();
    assert_eq!(crowded.amount, Some(100.0), "{crowded:?}");
}
