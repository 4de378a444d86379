//! Reads all clocks of this machine at once, for the manifest of a recording.

use base::recording::{ClockPair, Moment};
use rustix::time::{ClockId, clock_gettime};

/// Tries for one pair. An interrupt in one of them makes it wide, and another one is taken.
const TRIES: usize = 64;

/// What the clocks of this machine, which a recording calls `machine`, show now.
pub fn pair(machine: &str, at: Moment) -> ClockPair {
    let read = || {
        let before_ns = now_ns(ClockId::Monotonic);
        let (realtime_ns, tsc) = (now_ns(ClockId::Realtime), crate::tracefs::tsc());
        let error_ns = now_ns(ClockId::Monotonic).saturating_sub(before_ns);
        let monotonic_ns = before_ns + error_ns / 2;
        ClockPair { machine: machine.to_owned(), at, realtime_ns, monotonic_ns, tsc, error_ns, utc_error_ns: None }
    };
    let first = read();
    let best =
        (1..TRIES).map(|_| read()).fold(first, |best, pair| if pair.error_ns < best.error_ns { pair } else { best });
    ClockPair { utc_error_ns: utc_error_ns(), ..best }
}

/// See [`ClockPair::utc_error_ns`]; `maxerror` is in microseconds.
fn utc_error_ns() -> Option<u64> {
    // SAFETY: all zeros are a valid `timex`; no mode is set, so that it is filled and nothing is changed.
    let mut timex: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a `timex` that lives as long as the call.
    let state = unsafe { libc::adjtimex(&raw mut timex) };
    let is_set = state != libc::TIME_ERROR && state >= 0;
    u64::try_from(timex.maxerror).ok().filter(|_| is_set)?.checked_mul(1_000)
}

/// How often the time-stamp counter ticks in a second, as CLOCK_MONOTONIC counts it; `None` where there is none.
pub fn tsc_hz() -> Option<f64> {
    const WATCHED: std::time::Duration = std::time::Duration::from_millis(50);
    let first = pair("", Moment::Begin);
    std::thread::sleep(WATCHED);
    let last = pair("", Moment::End);
    let ticks = last.tsc?.checked_sub(first.tsc?).filter(|ticks| *ticks > 0)?;
    Some(ticks as f64 * 1e9 / last.monotonic_ns.saturating_sub(first.monotonic_ns).max(1) as f64)
}

fn now_ns(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_are_read_within_a_short_time_and_go_on_together() {
        let [first, last] = [Moment::Begin, Moment::End].map(|at| {
            std::thread::sleep(std::time::Duration::from_millis(2));
            pair("L0", at)
        });
        assert!(first.error_ns < 1_000_000, "the narrowest of many tries: {first:?}");
        let passed = [last.realtime_ns - first.realtime_ns, last.monotonic_ns - first.monotonic_ns];
        assert!(passed[0].abs_diff(passed[1]) < 1_000_000, "nobody sets the time now: {passed:?}");
        assert_eq!(first.tsc.is_some(), cfg!(target_arch = "x86_64"));
        assert!(last.tsc >= first.tsc);
    }
}
