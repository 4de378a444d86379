//! Quantities that a user gives to a plan, each with its unit.

use base::quantity::scaled;
use std::ops::RangeInclusive;

const KI: f64 = 1024.0;
const MI: f64 = KI * KI;
const GI: f64 = MI * KI;
const TI: f64 = GI * KI;

/// On a command line digits are not in groups.
fn read(text: &str, units: &[(&str, f64)], range: RangeInclusive<f64>, how: &str) -> Result<f64, String> {
    if text.contains('_') { Err(how.to_owned()) } else { scaled(text, units, range, how) }
}

/// Bytes a second, however people write them: of memory, on the wire, of a disk.
const RATES: &[(&str, f64)] = &[
    ("Kbit Kbit/s Kb/s", 1e3 / 8.0),
    ("Mbit Mbit/s Mb Mb/s", 1e6 / 8.0),
    ("Gbit Gbit/s Gb Gb/s", 1e9 / 8.0),
    ("kB/s KB/s", 1e3),
    ("MB/s", 1e6),
    ("GB/s", 1e9),
    ("K/s KiB/s", KI),
    ("M/s MiB/s", MI),
    ("G/s GiB/s", GI),
    ("pages/s", 4096.0),
];

/// `8G`: bytes of memory, in powers of 1,024; `8GB` in powers of 1,000.
pub(crate) fn memory(text: &str) -> Result<f64, String> {
    // 52 bits of physical address are the most that x86 has (Intel SDM vol. 3, 4.1.4).
    some_memory(text).and_then(|bytes| {
        if bytes >= 4096.0 { Ok(bytes) } else { Err("a guest has a page of memory, 4K, at least".to_owned()) }
    })
}

/// The same of a part of it, which may be nothing: `0`.
pub(crate) fn some_memory(text: &str) -> Result<f64, String> {
    const HOW: &str = "write memory with its unit, such as 8G or 512M (powers of 1,024) or 8GB (of 1,000)";
    let units = [
        ("K KiB", KI),
        ("M MiB", MI),
        ("G GiB", GI),
        ("T TiB", TI),
        ("kB KB", 1e3),
        ("MB", 1e6),
        ("GB", 1e9),
        ("TB", 1e12),
    ];
    if is_nothing(text) {
        return Ok(0.0);
    }
    read(text, &units, 0.0..=f64::from(1_u32 << 26) * f64::from(1_u32 << 26), HOW)
}

/// Nothing of anything needs no unit.
fn is_nothing(text: &str) -> bool {
    text.trim() == "0"
}

/// `160M/s` of memory, or `40000 pages/s`: bytes a second.
pub(crate) fn dirtied(text: &str) -> Result<f64, String> {
    if is_nothing(text) {
        return Ok(0.0);
    }
    read(text, RATES, 0.0..=1e15, "write what the guest dirties in a second, such as 160M/s or 40000pages/s")
}

/// `10Gbit`, `200MB/s`, `1850M/s`: bytes a second on the wire.
pub(crate) fn bandwidth(text: &str) -> Result<f64, String> {
    const HOW: &str = "write bandwidth with its unit, such as 10Gbit, 200MB/s or 128MiB/s";
    let bytes_per_s = read(text, RATES, 0.0..=1e15, if is_nothing(text) { LEAST } else { HOW })?;
    if bytes_per_s >= 1e3 { Ok(bytes_per_s) } else { Err(LEAST.to_owned()) }
}

const LEAST: &str = "nothing goes over less than 1 kB/s: write more, such as 10Gbit or 200MB/s";

/// `300ms`: seconds.
pub(crate) fn time(text: &str) -> Result<f64, String> {
    let units = [("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0)];
    read(text, &units, 0.0..=1e6, "write a time with its unit, such as 300ms")
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
        assert!(["8", "G", "", "-8G", "8g", "1e9G", "99999999T", "1K", "0"].iter().all(|text| memory(text).is_err()));
        assert!(["10G", "10", "1bit"].iter().all(|text| bandwidth(text).is_err()));
        assert_eq!(
            (memory("8GB"), some_memory("0"), some_memory("0M"), dirtied("0")),
            (Ok(8e9), Ok(0.0), Ok(0.0), Ok(0.0))
        );
        // One reader of rates: what a guest dirties is also what a link carries.
        assert_eq!((bandwidth("1850M/s"), dirtied("10Gbit")), (Ok(1_939_865_600.0), Ok(1.25e9)));
        assert_eq!((bandwidth("10Gb"), bandwidth("10Gb/s")), (Ok(1.25e9), Ok(1.25e9)));
        assert!(["0", "0MB/s"].iter().all(|text| bandwidth(text).unwrap_err().contains("1 kB/s")));
        assert!(["160M", "x/s", "pages/s"].iter().all(|text| dirtied(text).is_err()) && time("300").is_err());
    }
}
