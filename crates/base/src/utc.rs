//! A moment as people and file names write it, in UTC.
//!
//! Days become a date by H. Hinnant's `civil_from_days` (howardhinnant.github.io/date_algorithms.html): years begin in
//! March there, so that the leap day is the last.

use std::time::{SystemTime, UNIX_EPOCH};

/// A moment, to the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Utc {
    seconds: u64,
}

impl Utc {
    /// That moment; before 1970 it is 1970.
    pub fn at(time: SystemTime) -> Self {
        Self { seconds: time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()) }
    }

    /// `2026-11-22T00:45:07Z` (RFC 3339).
    pub fn rfc3339(self) -> String {
        let ([year, month, day], [hour, minute, second]) = (self.date(), self.time());
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }

    /// `20261122T004507Z`, for the name of a directory.
    pub fn compact(self) -> String {
        self.rfc3339().replace(['-', ':'], "")
    }

    fn time(self) -> [u64; 3] {
        [self.seconds / 3_600 % 24, self.seconds / 60 % 60, self.seconds % 60]
    }

    fn date(self) -> [u64; 3] {
        let days = self.seconds / 86_400 + 719_468;
        let (era, day_of_era) = (days / 146_097, days % 146_097);
        let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted_month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
        let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
        [era * 400 + year_of_era + u64::from(month <= 2), month, day]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn moments_are_those_of_date() {
        // `date -u -d @SECONDS --iso-8601=seconds`
        let known = [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (1_795_308_307, "2026-11-22T00:45:07Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ];
        for (seconds, text) in known {
            assert_eq!(Utc::at(UNIX_EPOCH + Duration::from_secs(seconds)).rfc3339(), text);
        }
        assert_eq!(Utc { seconds: 1_795_308_307 }.compact(), "20261122T004507Z");
    }
}
