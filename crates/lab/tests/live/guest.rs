//! Test guests on the real /dev/kvm, where there is one.

use kvmscope_lab::guest::{self, Ended, Exit, Guest, programs};
use std::path::Path;
use std::time::Duration;

const DEVICE: &str = "/dev/kvm";
const ROUNDS: u32 = 50;

/// KVM, or nothing and the reason printed.
fn kvm() -> Option<kvm_ioctls::Kvm> {
    guest::open(Path::new(DEVICE)).inspect_err(|error| println!("skipped: kvm: {error}")).ok()
}

#[test]
fn userspace_sees_each_exit_once_a_round() {
    if kvm().is_none() {
        return;
    }
    let ran = guest::self_check(Path::new(DEVICE), ROUNDS).unwrap();
    print!("{ran}");
    for (program, outcome) in programs::PROGRAMS.iter().zip(&ran.outcomes) {
        assert_eq!(program.name, outcome.program);
        if outcome.ended != Ended::Whole {
            continue; // this host cannot; the next test says which must work everywhere
        }
        let expected = program.exit.map(|exit| (exit, u64::from(ROUNDS)));
        assert_eq!(outcome.exits.iter().map(|(exit, count)| (*exit, *count)).next(), expected, "{outcome}");
    }
}

#[test]
fn ports_work_everywhere_and_rounds_are_exact() {
    let Some(kvm) = kvm() else { return };
    for rounds in [1, 3, 1_000] {
        let program = programs::named("port-out").unwrap();
        let outcome = Guest::new(&kvm).unwrap().run(program, rounds, Duration::from_secs(20)).unwrap();
        assert_eq!(
            (outcome.ended.clone(), outcome.count(Exit::PortWrite)),
            (Ended::Whole, u64::from(rounds)),
            "{outcome}"
        );
    }
}

#[test]
fn the_watchdog_ends_what_does_not_end() {
    let Some(kvm) = kvm() else { return };
    let outcome = Guest::new(&kvm).unwrap().run(&programs::SPIN, 1, Duration::from_millis(10)).unwrap();
    assert_eq!(outcome.ended, Ended::Stuck);
}

#[test]
fn a_missing_device_says_what_to_do() {
    let error = guest::open(Path::new("/nonexistent/kvm")).unwrap_err().to_string();
    assert!(error.contains("load kvm_intel or kvm_amd"), "{error}");
}
