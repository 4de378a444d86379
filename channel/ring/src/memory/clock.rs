//! The CPU's own clock, read once for a batch.

/// A clock of the caller: a free-running count, and what of it makes a nanosecond.
///
/// On x86-64 it is the time stamp counter, which costs some 10 ns to read; elsewhere the count is nanoseconds of the monotonic clock.
#[derive(Clone, Copy, Debug)]
pub struct Ticks {
    per_ns: f64,
}

impl Ticks {
    /// `per_ns`: of the counter, as the caller knows or has measured it ([`Ticks::measured`]).
    pub fn new(per_ns: f64) -> Ticks {
        Ticks { per_ns }
    }

    /// Counts for `during`, against the monotonic clock.
    pub fn measured(during: std::time::Duration) -> Ticks {
        let (begun, from) = (std::time::Instant::now(), Ticks::now());
        std::thread::sleep(during);
        let (until, took) = (Ticks::now(), begun.elapsed());
        Ticks { per_ns: until.wrapping_sub(from) as f64 / took.as_nanos() as f64 }
    }

    /// The count now.
    #[inline]
    pub fn now() -> u64 {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the instruction exists on each x86-64 and reads a counter.
        return unsafe { std::arch::x86_64::_rdtsc() };
        #[cfg(not(target_arch = "x86_64"))]
        {
            let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
            now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
        }
    }

    /// The count once all loads before it are done: without a fence the counter is read while the last of them is still on its way (Intel
    /// SDM volume 2B, RDTSC).
    #[inline]
    pub fn after_loads() -> u64 {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the instruction exists on each x86-64 and lets loads end.
        unsafe {
            std::arch::x86_64::_mm_lfence();
        }
        Self::now()
    }

    /// Of a difference of counts.
    #[inline]
    pub fn ns(&self, ticks: u64) -> u64 {
        (ticks as f64 / self.per_ns) as u64
    }

    /// The count of so many nanoseconds.
    pub fn of_ns(&self, ns: u64) -> u64 {
        (ns as f64 * self.per_ns) as u64
    }

    /// Of the counter, in a nanosecond.
    pub fn per_ns(&self) -> f64 {
        self.per_ns
    }
}
