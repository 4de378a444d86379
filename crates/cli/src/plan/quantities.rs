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

/// `8G`: bytes of memory, in powers of 1,024.
pub(crate) fn memory(text: &str) -> Result<f64, String> {
    const HOW: &str = "write memory with its unit, such as 8G or 512M (powers of 1,024)";
    let units = [("K KiB", KI), ("M MiB", MI), ("G GiB", GI), ("T TiB", TI)];
    // 52 bits of physical address are the most that x86 has (Intel SDM vol. 3, 4.1.4).
    read(text, &units, 4096.0..=f64::from(1_u32 << 26) * f64::from(1_u32 << 26), HOW)
}

/// `160M/s` of memory, or `40000 pages/s`: bytes a second.
pub(crate) fn dirtied(text: &str) -> Result<f64, String> {
    const PAGE: f64 = 4096.0;
    let units = [("K/s", KI), ("M/s", MI), ("G/s", GI), ("MB/s", 1e6), ("GB/s", 1e9), ("pages/s", PAGE)];
    read(text, &units, 0.0..=1e15, "write what the guest dirties in a second, such as 160M/s or 40000pages/s")
}

/// `10Gbit`, `200MB/s`: bytes a second on the wire.
pub(crate) fn bandwidth(text: &str) -> Result<f64, String> {
    let units = [
        ("Mbit Mbit/s", 1e6 / 8.0),
        ("Gbit Gbit/s", 1e9 / 8.0),
        ("MB/s", 1e6),
        ("GB/s", 1e9),
        ("MiB/s", MI),
        ("GiB/s", GI),
    ];
    read(text, &units, 1e3..=1e15, "write bandwidth with its unit, such as 10Gbit, 200MB/s or 128MiB/s")
}

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
        assert!(["8", "G", "", "-8G", "8g", "1e9G", "99999999T", "1K"].iter().all(|text| memory(text).is_err()));
        assert!(["10G", "10", "1bit", "0MB/s"].iter().all(|text| bandwidth(text).is_err()));
        assert!(["160M", "x/s", "pages/s"].iter().all(|text| dirtied(text).is_err()) && time("300").is_err());
    }
}
