//! Seconds with decimals, as a person types them, to exact nanoseconds.

use lab::flight::LEAST_KEEP;
use std::time::Duration;

/// Digits after the point that a nanosecond leaves room for.
const DECIMALS: usize = 9;

/// A point on a recording's axis of time: `0.25` after its first event.
pub(crate) fn instant(text: &str) -> Result<u64, String> {
    nanoseconds(text, "write seconds since the recording's first event, such as 0.25")
}

/// How long something is to take: more than nothing.
pub(crate) fn length(text: &str) -> Result<u64, String> {
    span(text).and_then(|ns| if ns == 0 { Err("it must be longer than 0 s".to_owned()) } else { Ok(ns) })
}

/// The same, where 0 has a meaning of its own.
pub(crate) fn span(text: &str) -> Result<u64, String> {
    nanoseconds(text, "write seconds, such as 10 or 0.25")
}

/// A stretch of time with its unit; seconds where there is none.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = text.split_at(text.find(|letter: char| letter.is_ascii_alphabetic()).unwrap_or(text.len()));
    let ns_of_unit = match unit {
        "h" => 3_600 * NS,
        "min" => 60 * NS,
        "s" | "" => NS,
        "ms" => NS / 1_000,
        "us" => NS / 1_000_000,
        _ => return Err(DURATION.to_owned()),
    };
    let ns = u128::from(nanoseconds(number.trim_end(), DURATION)?) * u128::from(ns_of_unit) / u128::from(NS);
    u64::try_from(ns).map(Duration::from_nanos).map_err(|_| "that is too long".to_owned())
}

/// What a flight recorder keeps.
pub(crate) fn kept(text: &str) -> Result<Duration, String> {
    let length = duration(text)?;
    if length < LEAST_KEEP { Err("1s is the minimum".to_owned()) } else { Ok(length) }
}

/// How [`duration`] is written.
const DURATION: &str = "write a time such as 10s, 250ms or 5min";

const NS: u64 = 1_000_000_000;

/// Nanoseconds of `text`, such as `0.25`, `12` or `.5`.
///
/// Not through floating point: 12.000000001 s is 12,000,000,001 ns.
fn nanoseconds(text: &str, how: &str) -> Result<u64, String> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || whole.len() + fraction.len() == 0 {
        return Err(how.to_owned());
    }
    if fraction.len() > DECIMALS {
        return Err(format!("times have nanosecond resolution; write at most {DECIMALS} digits after the point"));
    }
    let padded = format!("{whole}{fraction:0<DECIMALS$}");
    padded.parse().map_err(|_| "too many seconds".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_exact_to_the_nanosecond() {
        assert_eq!(instant("12.000000001"), Ok(12_000_000_001));
        assert_eq!(instant("0.1"), Ok(100_000_000));
        assert_eq!(instant("3"), Ok(3_000_000_000));
        assert_eq!(instant(".5"), Ok(500_000_000));
        assert_eq!(length("5."), Ok(5_000_000_000));
    }

    #[test]
    fn a_duration_has_a_unit() {
        let ns = |text: &str| duration(text).map(|length| length.as_nanos());
        assert_eq!(
            ["10s", "10", "2.5 s", "250ms", "0.5us"].map(ns),
            [10 * u128::from(NS), 10 * u128::from(NS), 2_500_000_000, 250_000_000, 500].map(Ok)
        );
        assert_eq!((ns("2min"), ns("1h")), (Ok(120_000_000_000), Ok(3_600_000_000_000)));
        assert!(["", "s", "10x", "10 m s", "-1s", "1e3s", "9999999999999h"].iter().all(|text| duration(text).is_err()));
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in ["", ".", "-1", "1e3", "1.2.3", "0.0000000001", "99999999999", "1,5", "+1"] {
            assert!(instant(text).is_err() && span(text).is_err(), "{text}");
        }
    }

    #[test]
    fn only_a_point_in_time_counts_from_the_first_event() {
        assert!(instant("soon").unwrap_err().contains("first event"));
        assert!(!length("soon").unwrap_err().contains("first event"));
        assert_eq!((instant("0"), span("0")), (Ok(0), Ok(0)));
        assert!(length("0").is_err() && length("0.000000000").is_err());
    }
}
