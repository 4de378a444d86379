//! Quantities that a user gives to a plan, each with its unit.

/// A number and the unit behind it.
fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let value: f64 = text[..end].parse().ok()?;
    value.is_finite().then_some((value, text[end..].trim()))
}

fn scaled(text: &str, units: &[(&str, f64)], how: &str) -> Result<f64, String> {
    let (value, unit) = split(text).ok_or(how)?;
    let (_, scale) = units.iter().find(|(name, _)| *name == unit).ok_or(how)?;
    Ok(value * scale)
}

/// `8G`: bytes of memory, in powers of 1,024.
pub(crate) fn memory(text: &str) -> Result<f64, String> {
    const HOW: &str = "write memory with its unit, such as 8G or 512M (powers of 1,024)";
    let units = [("K", 1024.0), ("M", 1_048_576.0), ("G", 1_073_741_824.0), ("T", 1_099_511_627_776.0)];
    let with_bytes: Vec<(String, f64)> = units.iter().map(|(name, scale)| (format!("{name}iB"), *scale)).collect();
    let all: Vec<(&str, f64)> =
        units.into_iter().chain(with_bytes.iter().map(|(name, scale)| (name.as_str(), *scale))).collect();
    let bytes = scaled(text, &all, HOW)?;
    // 52 bits of physical address are the most that x86 has (Intel SDM vol. 3, 4.1.4).
    if (4096.0..=f64::from(1_u32 << 26) * f64::from(1_u32 << 26)).contains(&bytes) {
        Ok(bytes)
    } else {
        Err(HOW.to_owned())
    }
}

/// `160M/s` of memory, or `40000 pages/s`: bytes a second.
pub(crate) fn dirtied(text: &str) -> Result<f64, String> {
    const HOW: &str = "write what the guest dirties in a second, such as 160M/s or 40000pages/s";
    const PAGE: f64 = 4096.0;
    let units = [
        ("K/s", 1024.0),
        ("M/s", 1_048_576.0),
        ("G/s", 1_073_741_824.0),
        ("MB/s", 1e6),
        ("GB/s", 1e9),
        ("pages/s", PAGE),
    ];
    let rate = scaled(text, &units, HOW)?;
    if rate <= 1e15 { Ok(rate) } else { Err(HOW.to_owned()) }
}

/// `10Gbit`, `200MB/s`: bytes a second on the wire.
pub(crate) fn bandwidth(text: &str) -> Result<f64, String> {
    const HOW: &str = "write bandwidth with its unit, such as 10Gbit, 200MB/s or 128MiB/s";
    let units = [
        ("Mbit", 1e6 / 8.0),
        ("Gbit", 1e9 / 8.0),
        ("Mbit/s", 1e6 / 8.0),
        ("Gbit/s", 1e9 / 8.0),
        ("MB/s", 1e6),
        ("GB/s", 1e9),
        ("MiB/s", 1_048_576.0),
        ("GiB/s", 1_073_741_824.0),
    ];
    let rate = scaled(text, &units, HOW)?;
    if (1e3..=1e15).contains(&rate) { Ok(rate) } else { Err(HOW.to_owned()) }
}

/// `300ms`: seconds.
pub(crate) fn time(text: &str) -> Result<f64, String> {
    const HOW: &str = "write a time with its unit, such as 300ms";
    let seconds = scaled(text, &[("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0)], HOW)?;
    if seconds <= 1e6 { Ok(seconds) } else { Err(HOW.to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_have_units() {
        assert_eq!((memory("8G"), memory("1.5 MiB")), (Ok(8_589_934_592.0), Ok(1_572_864.0)));
        assert_eq!((dirtied("160M/s"), dirtied("40000pages/s")), (Ok(167_772_160.0), Ok(163_840_000.0)));
        assert_eq!((bandwidth("10Gbit"), bandwidth("200MB/s")), (Ok(1.25e9), Ok(2e8)));
        assert_eq!((time("300ms"), time("2s"), time("0ms")), (Ok(0.3), Ok(2.0), Ok(0.0)));
        assert!(["8", "G", "", "-8G", "8g", "1e9G", "99999999T", "1K"].iter().all(|text| memory(text).is_err()));
        assert!(["10G", "10", "1bit", "0MB/s"].iter().all(|text| bandwidth(text).is_err()));
        assert!(["160M", "x/s", "pages/s"].iter().all(|text| dirtied(text).is_err()) && time("300").is_err());
    }
}
