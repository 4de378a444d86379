//! Whose timer it was: told by the guest's counter, by the host's own timer, or by VMX.

use super::*;
use base::Clock;

const HRTIMER: u64 = 0xffff_8881_0523_2310;
const CPU: usize = 1;
const THREAD: usize = 3;
const OFFSET: u64 = 5_000;

/// Timers of a trace that counts ticks of 1 ns.
fn timers() -> Timers {
    let clock = Clock::with_frequency("x86-tsc", 1_000_000_000);
    Timers { reference: Reference::Counter(Axis::new(&clock, &clock)), ..Timers::default() }
}

/// Set at `exit_ns` to be due 1,000 ns later.
fn set(timers: &mut Timers, exit_ns: u64) {
    timers.set(THREAD, exit_ns, Some(exit_ns + 1_000 + OFFSET), exit_ns + 50);
}

/// Expires and wakes its thread at once.
fn expire(timers: &mut Timers, at_ns: u64) {
    timers.expire(CPU, HRTIMER, None, at_ns);
    timers.wake(CPU, at_ns, THREAD);
}

#[test]
fn a_deadline_of_the_guests_counter_is_one_of_the_hosts() {
    let mut timers = timers();
    timers.offset(THREAD, 0, OFFSET, 10);
    for exit_ns in [1_000, 5_000] {
        set(&mut timers, exit_ns);
        expire(&mut timers, exit_ns + 1_080);
        let shot = timers.accept(THREAD, 0xec, (Some(exit_ns + 900), false), exit_ns + 1_200);
        // Once may be chance.
        assert_eq!(shot.is_some(), exit_ns == 5_000);
        let Some(shot) = shot else { continue };
        let stages: Vec<_> = shot.stages(6_300).collect();
        assert_eq!(stages, [(TimerStage::Expire, 80), (TimerStage::Deliver, 220)]);
        let check = |delta| timers.check(THREAD, &shot, delta, (6_400, 6_450));
        assert_eq!(check(420), Some(Check::Residual(0, false)), "between both events");
        assert_eq!(check(380), Some(Check::Residual(20, true)));
        assert_eq!(check(460), Some(Check::Residual(10, true)));
        let mut moved = timers.clone();
        moved.offset(THREAD, OFFSET, OFFSET - 7, 6_350);
        assert_eq!(moved.check(THREAD, &shot, 420, (6_400, 6_450)), Some(Check::Moved));
    }
}

#[test]
fn a_timer_that_expires_unasked_is_somebody_elses() {
    let mut timers = timers();
    for exit_ns in [1_000, 5_000] {
        set(&mut timers, exit_ns);
        expire(&mut timers, exit_ns + 1_080);
    }
    // The host's tick, which happened to wake the thread twice.
    timers.set(THREAD, 6_500, Some(0), 6_600);
    timers.expire(CPU, HRTIMER, None, 6_900);
    for exit_ns in [8_000, 12_000, 16_000] {
        set(&mut timers, exit_ns);
        expire(&mut timers, exit_ns + 1_080);
        assert_eq!(timers.accept(THREAD, 0xec, (None, false), exit_ns + 1_200), None);
        timers.set(THREAD, exit_ns + 2_000, Some(0), exit_ns + 2_050);
        timers.expire(CPU, HRTIMER, None, exit_ns + 3_000);
    }
}

#[test]
fn the_hosts_own_timer_tells_where_no_counter_does() {
    let mut timers = Timers { reference: Reference::Monotonic(0), ..Timers::default() };
    timers.start(THREAD, Some(1_000), HRTIMER, Some(2_000), 1_020);
    timers.set(THREAD, 1_000, Some(77), 1_050);
    timers.expire(CPU, HRTIMER, Some(2_030), 2_045);
    let shot = timers.accept(THREAD, 0xec, (Some(2_060), false), 2_070).unwrap();
    let stages: Vec<_> = shot.stages(2_100).collect();
    let expected =
        [(TimerStage::Program, 20), (TimerStage::Expire, 30), (TimerStage::Deliver, 55), (TimerStage::Residual, 15)];
    assert_eq!(stages, expected, "started in the exit that set it: its own at once");
    timers.set(THREAD, 3_000, Some(0), 3_050);
    timers.expire(CPU, HRTIMER, Some(4_000), 4_010);
    assert_eq!(timers.accept(THREAD, 0xec, (Some(4_060), false), 4_070), None, "it was stopped");
}

#[test]
fn vmx_keeps_timers_by_its_own_and_another_vector_is_no_timer() {
    let mut timers = timers();
    timers.programmed(THREAD, Some(1_000), 1_030);
    set(&mut timers, 1_000);
    assert_eq!(timers.accept(THREAD, 0xfd, (Some(1_500), false), 1_510), None, "an exit for another reason");
    let shot = timers.accept(THREAD, 0xec, (Some(2_010), true), 2_040).unwrap();
    let stages: Vec<_> = shot.stages(2_050).collect();
    assert_eq!(stages, [(TimerStage::Program, 30), (TimerStage::Deliver, 40)]);
    set(&mut timers, 3_000);
    assert_eq!(timers.accept(THREAD, 0xfd, (Some(4_010), true), 4_040), None);
    let due = timers.accept(THREAD, 0xec, (Some(3_000), false), 3_090).unwrap();
    assert_eq!(due.stages(3_100).collect::<Vec<_>>(), [(TimerStage::Deliver, 50)], "due when it was set");
}
