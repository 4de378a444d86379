//! The bench's guests on the real /dev/kvm, where there is one. Never an absolute time: counts and order.

use base::bench::Measured;
use kvmscope_labs::bench::exits::{self, Plan, catalogue};
use kvmscope_labs::bench::launch::ns_per_tick;
use lab::guest;
use std::path::{Path, PathBuf};
use std::time::Duration;

const DEVICE: &str = "/dev/kvm";

fn plan() -> Plan {
    Plan {
        device: PathBuf::from(DEVICE),
        root: PathBuf::from("/"),
        cpu: 0,
        other_cpu: None,
        ns_per_tick: ns_per_tick(),
        target: Duration::from_millis(30),
        limit: Duration::from_secs(10),
        launch: 0,
        disturb: false,
        fifo: false,
        only: Vec::new(),
    }
}

/// A guest's measurement, or nothing and the reason printed.
fn guest(name: &str) -> Option<Measured> {
    if let Err(error) = guest::open(Path::new(DEVICE)) {
        println!("skipped: kvm: {error}");
        return None;
    }
    let test = catalogue::named(name).unwrap();
    let measured = exits::guest(test, &plan());
    match &measured.skipped {
        Some(why) => {
            println!("skipped: {name} does not run here: {why}");
            None
        }
        None => Some(measured),
    }
}

/// Cycles of an operation: the middle sample, without what as many empty operations take.
fn cycles(measured: &Measured) -> f64 {
    let middle = measured.distribution().quantile(0.5).unwrap() as f64;
    (middle - measured.params.control.unwrap()).max(0.0) / measured.params.operations.unwrap() as f64
}

#[test]
fn port_exits_are_one_an_operation() {
    for name in ["inl_from_kernel", "outl_to_kernel", "inl_from_qemu"] {
        let Some(measured) = guest(name) else { continue };
        let Some(exits) = measured.counters.get("exits") else {
            println!("skipped: this kernel has no KVM_GET_STATS_FD");
            continue;
        };
        // The host's interrupts take the vCPU out of the guest as well.
        let others = measured.counters.get("irq_exits").copied().unwrap_or(0);
        let each = (exits - others) as f64 / measured.params.counted.unwrap() as f64;
        assert!((1.0..=1.05).contains(&each), "{name}: {each} exits per operation, {:?}", measured.counters);
    }
}

#[test]
fn costs_stand_in_their_order() {
    let all: Option<Vec<_>> = ["empty", "rdtsc", "inl_from_kernel", "inl_from_qemu"].into_iter().map(guest).collect();
    let Some(all) = all else { return };
    let each: Vec<f64> = all.iter().map(cycles).collect();
    assert!(each.is_sorted_by(|less, more| less < more), "{each:?}");
    for measured in &all {
        assert!(measured.distribution().count() >= 180, "{measured:?}");
    }
}

#[test]
fn the_watchdog_ends_a_body_that_jumps_to_itself() {
    if let Err(error) = guest::open(Path::new(DEVICE)) {
        return println!("skipped: kvm: {error}");
    }
    let limit = Duration::from_millis(200);
    let measured = exits::guest(&catalogue::SPIN, &Plan { limit, ..plan() });
    let why = measured.skipped.expect("a test that never ends has no samples");
    assert!(why.contains("stopped by the watchdog") || why.contains("could not be stopped"), "{why}");
    assert!(measured.hdr.is_empty());
}

#[test]
fn without_kvm_a_guest_is_skipped_and_this_process_is_measured() {
    let plan = Plan { device: "/nonexistent/kvm".into(), only: vec!["cpuid".into()], ..plan() };
    let mut all = Vec::new();
    exits::run(&plan, &mut |measured| {
        all.push(measured);
        Ok(())
    })
    .unwrap();
    assert_eq!(all.len(), plan.results());
    let (here, guest): (Vec<_>, Vec<_>) = all.iter().partition(|measured| measured.params.place == "here");
    assert!(here.iter().all(|measured| measured.skipped.is_none() && !measured.hdr.is_empty()));
    assert!(guest.iter().all(|measured| measured.skipped.as_ref().is_some_and(|why| why.contains("kvm_intel"))));
}
