//! Quantities as people write them: a number, and its unit behind it.
//!
//! A table of units has a row for each size, with all names of it, between spaces: `("K KiB", 1_024)`.

use std::ops::RangeInclusive;

/// A number, of which the digits may be in groups (`37_000`), and what follows it.
pub fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '_'))).unwrap_or(text.len());
    let value: f64 = text[..end].replace('_', "").parse().ok().filter(|value: &f64| value.is_finite())?;
    Some((value, text[end..].trim()))
}

/// `5 Mpps` as a number; an error says `how` to write it, where it has none of `units` or is out of `range`.
pub fn scaled(text: &str, units: &[(&str, f64)], range: RangeInclusive<f64>, how: &str) -> Result<f64, String> {
    let value = split(text).and_then(|(value, unit)| Some(value * size(units, unit)?));
    value.filter(|value| range.contains(value)).ok_or_else(|| how.to_owned())
}

/// `8M` exactly: digits, and at once the unit, which may have an empty name.
pub fn whole(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let (digits, unit) = text.split_at(text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len()));
    digits.parse::<u64>().ok()?.checked_mul(size(units, unit)?)
}

fn size<N: Copy>(units: &[(&str, N)], unit: &str) -> Option<N> {
    units.iter().find(|(names, _)| names.split(' ').any(|name| name == unit)).map(|(_, size)| *size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_has_several_names_and_digits_may_be_in_groups() {
        let read = |text| scaled(text, &[("m", 1.0), ("km klick", 1e3)], 1.0..=9e3, "such as 5 km");
        assert_eq!(["5 km", "1_000m", " 2.5klick "].map(read), [Ok(5e3), Ok(1e3), Ok(2.5e3)]);
        assert!(["5", "5 KM", "0.5 m", "10 km", "5 km klick"].iter().all(|text| read(text).is_err()));
        let exact = |text| whole(text, &[("", 1), ("k", 1_000)]);
        assert_eq!(["7", "7k", "7 k", "+7"].map(exact), [Some(7), Some(7_000), None, None]);
    }
}
