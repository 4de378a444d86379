//! When was that, in words that sort? `2026-11-22T00:31:38Z` in a manifest, `20261122T003138Z` in a directory's name.

use std::time::{SystemTime, UNIX_EPOCH};

/// A second of UTC, as year, month, day, hour, minute and second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Utc([u64; 6]);

impl Utc {
    /// The second that holds `time`; what lies before 1970 is taken for its beginning.
    pub fn of(time: SystemTime) -> Self {
        let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let (days, second) = (seconds / 86_400, seconds % 86_400);
        // Days since 1 March 0, so that a leap day ends its year; 400 years have 146,097 days (Gregorian calendar).
        let days = days + 719_468;
        let (era, day) = (days / 146_097, days % 146_097);
        let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
        let day = day - (365 * year + year / 4 - year / 100);
        let month = (5 * day + 2) / 153;
        let day = day - (153 * month + 2) / 5 + 1;
        let year = era * 400 + year + u64::from(month >= 10);
        let month = if month < 10 { month + 3 } else { month - 9 };
        Self([year, month, day, second / 3600, second / 60 % 60, second % 60])
    }

    /// `2026-11-22T00:31:38Z`
    pub fn stamp(self) -> String {
        let [year, month, day, hour, minute, second] = self.0;
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }

    /// `20261122T003138Z`, for names of files.
    pub fn name(self) -> String {
        self.stamp().replace(['-', ':'], "")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn seconds_become_the_dates_that_date_prints() {
        for (seconds, stamp) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (1_735_689_599, "2024-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(Utc::of(UNIX_EPOCH + Duration::from_secs(seconds)).stamp(), stamp);
        }
        assert_eq!(Utc::of(UNIX_EPOCH).name(), "19700101T000000Z");
    }
}
