//! Seconds with decimals, as a person types them, to exact nanoseconds.

/// Digits after the point that a nanosecond leaves room for.
const DECIMALS: usize = 9;

/// Nanoseconds of `text`, such as `0.25`, `12` or `.5`.
///
/// Not through floating point: 12.000000001 s is 12,000,000,001 ns.
pub fn nanoseconds(text: &str) -> Result<u64, String> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || whole.len() + fraction.len() == 0 {
        return Err("write seconds since the recording's first event, such as 0.25".to_owned());
    }
    if fraction.len() > DECIMALS {
        return Err(format!("a nanosecond is the finest time; write at most {DECIMALS} digits after the point"));
    }
    let padded = format!("{whole}{fraction:0<DECIMALS$}");
    padded.parse().map_err(|_| "the time is too far away".to_owned())
}

#[cfg(test)]
mod tests {
    use super::nanoseconds;

    #[test]
    fn seconds_are_exact_to_the_nanosecond() {
        assert_eq!(nanoseconds("12.000000001"), Ok(12_000_000_001));
        assert_eq!(nanoseconds("0.1"), Ok(100_000_000));
        assert_eq!(nanoseconds("3"), Ok(3_000_000_000));
        assert_eq!(nanoseconds(".5"), Ok(500_000_000));
        assert_eq!(nanoseconds("5."), Ok(5_000_000_000));
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in ["", ".", "-1", "1e3", "1.2.3", "0.0000000001", "99999999999", "1,5", "+1"] {
            assert!(nanoseconds(text).is_err(), "{text}");
        }
    }
}
