//! What does the agent cost, and how long must it wait to stay within its share of a CPU?
//!
//! ```text
//! CPU time of this process and of its children that ended, /proc/self/stat      used
//! from one beginning to the next = max(every, used / share)                      used / that <= share
//! ```
//! Source: proc(5), fields utime, stime, cutime and cstime of `stat`, in ticks of sysconf(_SC_CLK_TCK).

use anyhow::{Context, anyhow};
use std::path::PathBuf;
use std::time::Duration;

/// CPU time, read again and again.
pub(crate) struct Cost {
    proc: PathBuf,
    last: Duration,
}

impl Cost {
    /// That of this process, by the files below `proc`.
    pub(crate) fn of_this(proc: PathBuf) -> anyhow::Result<Self> {
        let mut cost = Self { proc, last: Duration::ZERO };
        cost.since_last()?;
        Ok(cost)
    }

    /// What was used since this was asked last.
    pub(crate) fn since_last(&mut self) -> anyhow::Result<Duration> {
        let path = self.proc.join("self/stat");
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let ticks = ticks(&text).ok_or_else(|| anyhow!("{} has no CPU times", path.display()))?;
        let used = Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64);
        let since = used.saturating_sub(self.last);
        self.last = used;
        Ok(since)
    }
}

/// Of the process and its children that were waited for.
fn ticks(stat: &str) -> Option<u64> {
    // The name, in brackets, may hold blanks and brackets.
    let (_, behind) = stat.rsplit_once(") ")?;
    // utime is field 14, and the first one behind the name is field 3.
    let fields: Vec<u64> = behind.split(' ').skip(11).take(4).map(|field| field.parse().ok()).collect::<Option<_>>()?;
    (fields.len() == 4).then(|| fields.iter().sum())
}

/// How often there may be a recording.
pub(crate) struct Pace {
    every: Duration,
    share: f64,
    /// The share that the last round took.
    taken: f64,
    said: Option<Duration>,
    now: Option<Duration>,
}

impl Pace {
    /// One every so often, if that takes no more than a share of a CPU.
    pub(crate) fn new(every: Duration, share: f64) -> Self {
        Self { every, share, taken: 0.0, said: None, now: None }
    }

    /// From the beginning of the last one, which used so much CPU time, to that of the next.
    pub(crate) fn next(&mut self, used: Duration) -> Duration {
        let least = used.div_f64(self.share);
        let next = self.every.max(least);
        self.now = (least > self.every).then_some(next);
        self.taken = used.as_secs_f64() / next.as_secs_f64().max(f64::MIN_POSITIVE);
        next
    }

    /// The share of a CPU that the last one took, until the next.
    pub(crate) fn taken(&self) -> f64 {
        self.taken
    }

    /// The longer time to wait, if it is half as long again as the one that was said before; then it is said.
    pub(crate) fn changed(&mut self) -> Option<Duration> {
        let is_news = |now: &Duration| self.said.is_none_or(|said| *now > said.mul_f64(1.5));
        let news = self.now.filter(is_news)?;
        self.said = Some(news);
        Some(news)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_backs_off_until_the_share_is_held() {
        let mut pace = Pace::new(Duration::from_secs(60), 0.01);
        assert_eq!(pace.next(Duration::from_millis(300)), Duration::from_secs(60));
        assert_eq!((pace.taken(), pace.changed()), (0.005, None));
        assert_eq!(pace.next(Duration::from_secs(3)), Duration::from_secs(300));
        assert!(pace.taken() <= 0.01);
        assert_eq!((pace.changed(), pace.changed()), (Some(Duration::from_secs(300)), None));
        pace.next(Duration::from_secs(4));
        assert_eq!(pace.changed(), None, "not much longer");
        assert_eq!(pace.next(Duration::ZERO), Duration::from_secs(60));
    }

    #[test]
    fn cpu_times_stand_behind_a_name_that_may_hold_anything() {
        let stat = "42 (a) b (c) S 1 42 42 0 -1 4194560 100 200 0 0 7 5 30 8 20 0 1 0 100 1000 10 18446744073709551615";
        assert_eq!(ticks(stat), Some(50));
        assert_eq!((ticks("42 (a) S 1"), ticks("")), (None, None));
        let used = || Cost::of_this("/proc".into()).unwrap().last;
        let before = used();
        let began = std::time::Instant::now();
        while began.elapsed() < Duration::from_millis(150) {
            std::hint::spin_loop();
        }
        assert!(used() > before);
    }
}
