//! The guest, live: in QEMU where that is installed, on KVM where that takes interrupts from an eventfd.

use super::shared::COUNT;
use super::*;
use lab::setting::thread;

fn seats() -> Seats {
    let cpus = thread::affinity(thread::own()).unwrap();
    Seats::of(&cpus, cpus.last().unwrap(), false)
}

/// Waits for a note.
fn next(probe: &mut Probe, seen: &mut u64) -> u64 {
    let deadline = Instant::now() + TO_BEGIN;
    loop {
        let taken = probe.shared.take(seen);
        if let [note] = taken.notes[..] {
            return note;
        }
        probe.look().unwrap();
        assert!(taken.notes.is_empty(), "{taken:?}");
        assert!(Instant::now() < deadline, "awaited in vain: a note of the guest");
        std::thread::sleep(LOOK_EVERY);
    }
}

fn works(mut probe: Probe) {
    let (mut seen, before) = (0, probe.ahead().unwrap());
    let mut last = 0;
    for task in [Task::Spin, Task::Halt] {
        probe.order(task).unwrap();
        for _ in 0..5 {
            probe.ring().unwrap();
            let note = next(&mut probe, &mut seen);
            assert!(note > last, "its counter goes on");
            last = note;
        }
    }
    probe.order(Task::Spin).unwrap();
    next(&mut probe, &mut seen);
    let after = probe.ahead().unwrap();
    assert!(after.low <= after.high, "the answers are of one constant: {before:?} {after:?}");
    probe.shared.set(super::shared::THRESHOLD, 0);
    probe.order(Task::Gaps).unwrap();
    while probe.shared.get(COUNT) < seen + 1_000 {
        probe.look().unwrap();
    }
    assert!(probe.shared.take(&mut seen).notes.is_sorted(), "readings before and after, again and again");
}

#[test]
fn in_qemu_it_takes_interrupts_awake_and_asleep_and_answers_questions() {
    let scratch = tempfile::tempdir().unwrap();
    match Probe::in_qemu(scratch.path(), &seats()) {
        Err(Error::Missing { program, .. }) => println!("skipped: a guest in QEMU: {program} is not installed"),
        probe => {
            let probe = probe.unwrap();
            assert_eq!((probe.is_emulated(), probe.tids().len()), (true, 2));
            works(probe);
        }
    }
}

#[test]
fn on_kvm_it_does_the_same_or_says_why_not() {
    match Probe::on_kvm(Path::new("/dev/kvm"), &seats(), Duration::from_secs(5)) {
        Ok(probe) => works(probe),
        Err(error) => {
            println!("skipped: a guest on KVM: {error}");
            assert!(!error.to_string().contains('\n'), "one sentence");
        }
    }
}

#[test]
fn a_qemu_that_ends_early_says_why() {
    let scratch = tempfile::tempdir().unwrap();
    let Ok(mut probe) = Probe::in_qemu(scratch.path(), &seats()) else {
        return println!("skipped: the end of QEMU: no guest in it");
    };
    probe.look().unwrap();
    if let Runs::Qemu(running) = &mut probe.runs {
        running.end();
    }
    let error = probe.look().unwrap_err().to_string();
    assert!(error.starts_with("qemu-system-x86_64 failed (signal: 9"), "{error}");
}

#[test]
fn the_vcpu_has_a_cpu_of_its_own_where_there_are_two() {
    let of = |cpus: &str, vcpu| Seats::of(&CpuSet::parse(cpus).unwrap(), vcpu, false).others.to_string();
    assert_eq!((of("0-3", 2), of("5", 5)), ("0-1,3".to_owned(), "5".to_owned()));
}
