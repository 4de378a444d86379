//! Times with their units, exactly: `20us` is 20,000 ns, and no floating point is on the way.

/// The units, shortest first: how they are written, and the decimal digits of a nanosecond in them.
const UNITS: &[(&str, usize)] = &[("ns", 0), ("us", 3), ("ms", 6), ("s", 9)];

/// Nanoseconds of a text such as `20us`, `1.5 ms` or `60s`.
pub(super) fn time(text: &str) -> Result<u64, String> {
    const HOW: &str = "write a time with its unit, ns, us, ms or s, such as \"20us\"";
    let text = text.trim();
    let number = text.trim_end_matches(|letter: char| letter.is_alphabetic());
    let unit = &text[number.len()..];
    if unit.is_empty() {
        return Err(format!("a time without a unit; {HOW}"));
    }
    // Both letters for micro are in use.
    let unit = unit.replace(['\u{b5}', '\u{3bc}'], "u");
    let Some((unit, digits)) = UNITS.iter().find(|(known, _)| *known == unit) else {
        return Err(format!("a unit of time that is not known; {HOW}"));
    };
    let number = number.trim_end();
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if !is_digits(whole) || !is_digits(fraction) || whole.is_empty() || (fraction.is_empty() && number.contains('.')) {
        return Err(HOW.to_owned());
    }
    if fraction.len() > *digits {
        return Err(match digits {
            0 => "a time is of whole ns".to_owned(),
            _ => format!("a time is of whole ns: at most {digits} digits after the point of {unit}"),
        });
    }
    let padded = format!("{whole}{fraction:0<digits$}");
    padded.parse().map_err(|_| "too long a time".to_owned())
}

/// The shortest way to write a time with all its digits: `20 us`, `18.437 us`, `60 s`.
pub fn exact(ns: u64) -> String {
    let fitting = UNITS.iter().rev().find(|(_, digits)| ns >= 10_u64.pow(*digits as u32));
    let (unit, digits) = fitting.unwrap_or(&UNITS[0]);
    let scale = 10_u64.pow(*digits as u32);
    let (whole, fraction) = (base::number::thousands(ns / scale), ns % scale);
    if fraction == 0 {
        return format!("{whole} {unit}");
    }
    let fraction = format!("{fraction:0digits$}");
    format!("{whole}.{} {unit}", fraction.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_exact() {
        for (text, ns) in [
            ("20us", 20_000),
            ("0us", 0),
            (" 1.5 ms ", 1_500_000),
            ("60s", 60_000_000_000),
            ("999ns", 999),
            ("0.000000001s", 1),
            ("2\u{b5}s", 2_000),
            ("2 \u{3bc}s", 2_000),
            ("18446744073709551615ns", u64::MAX),
        ] {
            assert_eq!(time(text), Ok(ns), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "us",
            "20",
            "20 m",
            "20 minutes",
            "-1us",
            "+1us",
            "1e3us",
            "1.2.3us",
            ".5us",
            "5.us",
            "1,5us",
            "1 2us",
            "0.5ns",
            "0.0001us",
            "18446744073709551616ns",
            "99999999999999s",
        ] {
            assert!(time(text).is_err(), "{text}");
        }
        assert!(time("20").unwrap_err().contains("without a unit"));
        assert!(time("20 parsecs").unwrap_err().contains("not known"));
    }

    #[test]
    fn a_time_is_written_with_all_its_digits() {
        for (ns, text) in [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_000, "1 us"),
            (18_437, "18.437 us"),
            (20_000, "20 us"),
            (20_010, "20.01 us"),
            (1_000_000, "1 ms"),
            (60_000_000_000, "60 s"),
            (1_234_000_000_001, "1,234.000000001 s"),
        ] {
            assert_eq!(exact(ns), text);
        }
    }
}
