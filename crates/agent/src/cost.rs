//! What does the agent cost, and how long must it wait to stay within its share of a CPU?
//!
//! ```text
//! CPU time of this process and of its children that ended, /proc/self/stat      used
//! from one beginning to the next = max(every, used / share)                      used / that <= share
//! ```
//! Flight recorders are apart: they take what the events of the host take.

use lab::program::cpu_time;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// CPU time, read again and again.
pub(crate) struct Cost {
    stat: PathBuf,
    last: Duration,
}

impl Cost {
    /// That of this process, by the files below `proc`.
    pub(crate) fn of_this(proc: &Path) -> anyhow::Result<Self> {
        let mut cost = Self { stat: proc.join("self/stat"), last: Duration::ZERO };
        cost.since_last(Duration::ZERO)?;
        Ok(cost)
    }

    /// What was used since this was asked last, without what children took that are `apart`, all of them.
    pub(crate) fn since_last(&mut self, apart: Duration) -> anyhow::Result<Duration> {
        let used = cpu_time(&self.stat)?.saturating_sub(apart);
        let since = used.saturating_sub(self.last);
        self.last = self.last.max(used);
        Ok(since)
    }
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
    fn what_is_apart_is_not_charged() {
        let used = || Cost::of_this(Path::new("/proc")).unwrap().last;
        let before = used();
        // Until the clock of ticks has moved.
        while used() <= before {
            std::hint::spin_loop();
        }
        let mut cost = Cost::of_this(Path::new("/proc")).unwrap();
        assert_eq!(cost.since_last(Duration::from_secs(3_600)).unwrap(), Duration::ZERO);
    }
}
