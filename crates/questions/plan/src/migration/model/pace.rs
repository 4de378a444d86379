//! When is it that so much has been sent?
//!
//! QEMU does not spread `max-bandwidth` evenly: in each window of 100 ms it sends what the limit allows there as fast as it can, then
//! waits for the next one, and a window that is not full is left as soon as nothing is. The first one begins before it has set up, and
//! lasts until it looks at the time. Nor does it know a bandwidth before a window is over: until then it stops the guest only when
//! nothing is left, and later it takes that of the last window. The final pass is not limited at all.
//! Source: `migration_thread`, `migration_rate_limit`, `migration_update_counters`, `migration_completion` and `BUFFER_DELAY` in
//! migration/migration.{c,h}, QEMU 7.2; the same in 10.0.

use super::memory::PAGE_BYTES;
use super::passes::Setting;

/// `BUFFER_DELAY`.
const WINDOW_S: f64 = 0.1;
/// How long it sends before it looks at the time again (`MAX_WAIT` in migration/ram.c).
const TURN_S: f64 = 0.05;

/// How fast QEMU sends where its limit does not hold it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sender {
    /// For a page that is not zeros.
    pub page_s: f64,
    /// From `migrate` until the first pass begins: dirty bits of all memory are cleared for the first time.
    pub setup_s: f64,
    /// For looking at all pages of zeros in the first pass.
    pub(crate) zeros_s: f64,
}

/// What one core reads from memory in a second at most, on an EPYC of 2.25 GHz by AVX2 (measured in 2026). A page is not sent faster.
pub(crate) const MEMORY_BYTES_PER_S: f64 = 18.6e9;

/// Windows of a first pass beyond which they change nothing that anybody would see: a quarter of an hour.
const MOST_WINDOWS: f64 = 10_000.0;

impl Sender {
    /// Whether windows are worth following.
    pub fn tells(&self, setting: &Setting) -> bool {
        let bytes_per_s = setting.bytes_per_s.min(PAGE_BYTES / self.page_s);
        setting.memory.sent_bytes() <= bytes_per_s * WINDOW_S * MOST_WINDOWS
    }

    /// Over a link of which no more is known.
    pub fn of_link(bytes_per_s: f64) -> Self {
        Self { page_s: PAGE_BYTES / bytes_per_s, setup_s: 0.0, zeros_s: 0.0 }
    }

    /// By how long it took to set up, and then to send a guest all of zeros, and one that has `pages` others besides: the fastest that is to be
    /// expected, the middle one, and the slowest. None if there are none.
    pub fn tried(setup_s: &[f64], empty_s: &[f64], filled_s: &[f64], pages: f64) -> Vec<Self> {
        let [Some(setup), Some(empty), Some(filled)] = [setup_s, empty_s, filled_s].map(least_middle_most) else {
            return Vec::new();
        };
        let page_s = |filled_s: f64, empty_s: f64| ((filled_s - empty_s) / pages).max(PAGE_BYTES / MEMORY_BYTES_PER_S);
        let pages_s = [page_s(filled[0], empty[0]), page_s(filled[1], empty[1]), page_s(filled[2], empty[0])];
        (0..3).map(|nth| Self { page_s: pages_s[nth], setup_s: setup[nth], zeros_s: empty[nth] }).collect()
    }
}

fn least_middle_most(values: &[f64]) -> Option<[f64; 3]> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    Some([*sorted.first()?, sorted[sorted.len() / 2], *sorted.last()?])
}

/// How sending goes on, from the time at which the migration began.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pace {
    bytes_per_s: f64,
    now_s: f64,
    /// When all memory has been looked at: the first pass is not over before.
    looked_at_s: f64,
    /// `None`: so much in each second, however short the time.
    windows: Option<Windows>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Windows {
    sender: Sender,
    /// When the one that is open began, and what was sent in it.
    began_s: f64,
    sent_bytes: f64,
    /// What the one before carried in a second; `None` before one is over.
    bytes_per_s: Option<f64>,
    /// Nothing was sent yet.
    is_unused: bool,
}

impl Windows {
    /// Opens the next one if it is time for that, waiting for it if this one is full: what QEMU does between two turns of sending. When that
    /// was over.
    fn turn(&mut self, now_s: f64, limit_bytes: f64) -> f64 {
        let is_full = self.sent_bytes >= limit_bytes * (1.0 - f64::EPSILON);
        let now_s = if is_full { now_s.max(self.began_s + WINDOW_S) } else { now_s };
        let open_s = now_s - self.began_s;
        if is_full || open_s >= WINDOW_S {
            self.bytes_per_s = Some(self.sent_bytes / open_s);
            (self.began_s, self.sent_bytes) = (now_s, 0.0);
        }
        now_s
    }
}

impl Pace {
    pub fn even(bytes_per_s: f64) -> Self {
        Self { bytes_per_s, now_s: 0.0, looked_at_s: 0.0, windows: None }
    }

    /// That of QEMU with a limit of `bytes_per_s`, once it has set up.
    pub fn of(sender: Sender, bytes_per_s: f64) -> Self {
        let windows = Windows { sender, began_s: 0.0, sent_bytes: 0.0, bytes_per_s: None, is_unused: true };
        Self { now_s: sender.setup_s, windows: Some(windows), ..Self::even(bytes_per_s) }
    }

    /// The same of a guest at whose memory one core looks for so long.
    pub(crate) fn with_scan(self, scan_s: f64) -> Self {
        Self { looked_at_s: self.now_s + scan_s, ..self }
    }

    /// How much longer it looks.
    pub(crate) fn looks_s(&self) -> f64 {
        (self.looked_at_s - self.now_s).max(0.0)
    }

    /// Seconds since the migration began.
    pub(crate) fn now_s(&self) -> f64 {
        self.now_s
    }

    pub fn send(&mut self, mut bytes: f64) {
        let Some(windows) = &mut self.windows else {
            self.now_s += bytes / self.bytes_per_s;
            return;
        };
        let byte_s = windows.sender.page_s / PAGE_BYTES;
        let limit_bytes = self.bytes_per_s * WINDOW_S;
        windows.is_unused = false;
        // What rounding leaves is nothing.
        while bytes > f64::EPSILON * limit_bytes {
            let part = bytes.min(limit_bytes - windows.sent_bytes).min(TURN_S / byte_s);
            windows.sent_bytes += part;
            bytes -= part;
            self.now_s = windows.turn(self.now_s + part * byte_s, limit_bytes);
        }
    }

    /// Looks at the pages of zeros: what a first pass takes besides what it sends.
    pub fn look(&mut self) {
        self.now_s = self.now_s.max(self.looked_at_s);
        let Some(windows) = &mut self.windows else { return };
        let limit_bytes = self.bytes_per_s * WINDOW_S;
        let mut left_s = windows.sender.zeros_s;
        while left_s > 0.0 {
            let part_s = left_s.min(TURN_S);
            self.now_s = windows.turn(self.now_s + part_s, limit_bytes);
            left_s -= part_s;
        }
    }

    /// Whether the guest is stopped for the rest, with so much left when a pass is over.
    pub fn is_over(&self, left_bytes: f64, limit_s: f64) -> bool {
        let Some(windows) = &self.windows else { return left_bytes / self.bytes_per_s <= limit_s };
        // While nothing is known of the bandwidth, all that was known to be dirty is sent, and that is the end.
        let is_short = |bytes_per_s: f64| left_bytes <= limit_s * bytes_per_s;
        !windows.is_unused && windows.bytes_per_s.is_none_or(is_short)
    }

    /// How long the final pass takes.
    pub fn last_s(&self, bytes: f64) -> f64 {
        match &self.windows {
            None => bytes / self.bytes_per_s,
            Some(windows) => bytes * windows.sender.page_s / PAGE_BYTES,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 200 MB/s, 20 MB a window, sent at 1 GB/s.
    fn windows() -> Pace {
        Pace::of(Sender { zeros_s: 0.03, ..Sender::of_link(1e9) }, 200e6)
    }

    fn after(mut pace: Pace, parts: &[f64]) -> u64 {
        parts.iter().for_each(|bytes| pace.send(*bytes));
        (pace.now_s() * 1e3).round() as u64
    }

    #[test]
    fn a_window_is_sent_at_once_and_the_next_one_waited_for() {
        assert_eq!([10e6, 19e6, 21e6, 45e6].map(|bytes| after(windows(), &[bytes])), [10, 19, 101, 205]);
        assert_eq!(after(windows(), &[15e6, 6e6, 24e6]), after(windows(), &[45e6]), "however it is cut");
        let slow = Pace::of(Sender::of_link(100e6), 200e6);
        assert_eq!(after(slow, &[45e6]), 450, "a link below the limit never waits");
        assert_eq!(after(Pace::even(200e6), &[15e6, 30e6]), 225);
    }

    #[test]
    fn the_first_window_lasts_until_it_is_full_however_long_setting_up_took() {
        let late = Pace::of(Sender { setup_s: 0.115, ..Sender::of_link(1e9) }, 200e6);
        assert_eq!([19e6, 21e6, 39e6, 41e6].map(|bytes| after(late, &[bytes])), [134, 136, 154, 236]);
    }

    #[test]
    fn trials_tell_the_fastest_and_the_slowest_that_is_to_be_expected() {
        let senders = Sender::tried(&[0.3, 0.1, 0.2], &[0.04, 0.02, 0.03], &[0.05, 0.13, 0.07], 10.0);
        let told: Vec<_> = senders
            .iter()
            .map(|one| [one.page_s, one.setup_s, one.zeros_s].map(|s| (s * 1e3).round() as u64))
            .collect();
        assert_eq!(told, [[3, 100, 20], [4, 200, 30], [11, 300, 40]]);
        let noise = Sender::tried(&[0.0], &[0.04], &[0.03], 10.0);
        assert!(noise.iter().all(|one| one.page_s > 0.0), "no page is sent in no time");
        assert_eq!(Sender::tried(&[0.1], &[], &[0.03], 10.0), []);
    }

    #[test]
    fn looking_takes_time_of_a_window_and_sends_nothing() {
        let mut pace = windows();
        pace.look();
        assert_eq!([19e6, 21e6].map(|bytes| after(pace, &[bytes])), [49, 101]);
    }

    #[test]
    fn before_a_window_is_over_all_is_sent_and_later_what_is_short_by_the_last_one_is_left() {
        let mut pace = Pace::of(Sender { setup_s: 0.01, ..Sender::of_link(1e9) }, 200e6);
        assert!(!pace.is_over(1.0, 0.05), "it has set up, and sent nothing");
        pace.send(19e6);
        assert!(pace.is_over(1e9, 0.05), "nothing is known of the bandwidth");
        pace.send(2e6);
        assert_eq!([10e6, 10.1e6].map(|left| pace.is_over(left, 0.05)), [true, false]);
        assert!((pace.last_s(10e6) - 0.01).abs() < 1e-12, "not limited");
        let mut late = Pace::of(Sender { setup_s: 0.38, ..Sender::of_link(1e9) }, 200e6);
        late.send(21e6);
        assert_eq!([2.4e6, 2.6e6].map(|left| late.is_over(left, 0.05)), [true, false], "20 MB in 400 ms");
    }
}
