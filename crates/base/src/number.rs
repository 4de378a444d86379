//! Numbers as people read them: never rounded to nothing, always with their unit.

/// `1,234,567`.
pub fn thousands(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `1 exit`, `1,234 exits`.
pub fn many(value: u64, what: &str) -> String {
    counted(value, what, &format!("{what}s"))
}

/// `1 vCPU is`, `2 vCPUs are`: what [`many`] does for words that do not end in an `s`.
pub fn counted(value: u64, one: &str, several: &str) -> String {
    if value == 1 { format!("1 {one}") } else { format!("{} {several}", thousands(value)) }
}

/// With that many digits after the point, and never `-0`: what rounds to nothing has no sign.
pub fn decimals(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$}");
    match text.strip_prefix('-') {
        Some(rest) if rest.bytes().all(|byte| matches!(byte, b'0' | b'.')) => rest.to_owned(),
        _ => text,
    }
}

/// `VMREAD`, `VMREAD and CPUID`, `VMREAD, CPUID and VMRESUME`.
pub fn list(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Scales of SI units that a value steps through as it grows; a value below the first stays exact.
const TIMES: &[(f64, &str)] = &[(1e3, "us"), (1e6, "ms"), (1e9, "s"), (3.6e12, "h"), (86.4e12, "days")];
const BYTES: &[(f64, &str)] = &[(1e3, "kB"), (1e6, "MB"), (1e9, "GB"), (1e12, "TB")];

/// `912 ns`, `57.3 ms`, `12.3 s`, `29.2 h`.
pub fn duration(ns: f64) -> String {
    scaled(ns, "ns", TIMES)
}

/// `17 B`, `4.2 MB`.
pub fn bytes(value: f64) -> String {
    scaled(value, "B", BYTES)
}

/// `8.62 Mpps`; more digits of what is less than one.
pub fn packets_per_s(pps: f64) -> String {
    format!("{} Mpps", hundredths(pps / 1e6))
}

/// `4.41 Gb/s`, likewise.
pub fn bits_per_s(bits: f64) -> String {
    format!("{} Gb/s", hundredths(bits / 1e9))
}

fn hundredths(value: f64) -> String {
    if value >= 1.0 && value.is_finite() { decimals(value, 2) } else { plain(value) }
}

/// `1,234 bytes`.
pub fn exact_bytes(value: u64) -> String {
    if value == 1 { "1 byte".to_owned() } else { format!("{} bytes", thousands(value)) }
}

/// One decimal in the largest unit that the value reaches. 999.95 of the unit before would print as 1000.0 and counts
/// as reached.
fn scaled(value: f64, base: &str, scales: &[(f64, &str)]) -> String {
    let fitting = scales.iter().rev().find(|(scale, _)| value.abs() >= scale * 0.999_95);
    match fitting {
        Some((scale, unit)) => format!("{} {unit}", grouped(value / scale, 1)),
        None => format!("{} {base}", plain(value)),
    }
}

/// Columns of the widest share of a whole, `>99.9 %`.
pub const SHARE_COLUMNS: usize = 7;

/// `46.2 %`; a share that is there but would round to nothing is `<0.1 %`, and one that is not whole never `100 %`.
pub fn percent(value: f64) -> String {
    let percent = value * 100.0;
    match percent {
        p if !p.is_finite() => "-".to_owned(),
        p if p.abs() < DUST => "0 %".to_owned(),
        p if p > 0.0 && p < 0.05 => "<0.1 %".to_owned(),
        p if (99.95..100.0).contains(&p) => ">99.9 %".to_owned(),
        100.0 => "100 %".to_owned(),
        p => format!("{} %", decimals(p, 1)),
    }
}

/// What is smaller is the rounding of a sum that should be 0 (1.11e-16), not an amount: no trace or snapshot measures as
/// finely.
const DUST: f64 = 1e-9;

/// A number without a unit: whole numbers whole, others with three significant digits at least.
pub fn plain(value: f64) -> String {
    if !value.is_finite() {
        return "-".to_owned();
    }
    if value.abs() < DUST {
        return "0".to_owned();
    }
    let decimals = match value.abs() {
        v if v.fract() == 0.0 => 0,
        v if v >= 100.0 => 1,
        v if v >= 1.0 => 2,
        v if v >= 0.1 => 3,
        v if v >= 0.001 => 5,
        _ => return format!("{value:.2e}"),
    };
    let text = grouped(value, decimals);
    if decimals > 0 { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// With thousands separators before the point.
fn grouped(value: f64, decimals: usize) -> String {
    let text = format!("{:.decimals$}", value.abs());
    let (whole, fraction) = text.split_once('.').map_or((text.as_str(), None), |(whole, rest)| (whole, Some(rest)));
    let whole = whole.parse().map_or_else(|_| whole.to_owned(), thousands);
    // What rounds to nothing has no sign.
    let sign = if value < 0.0 && text.bytes().any(|byte| matches!(byte, b'1'..=b'9')) { "-" } else { "" };
    match fraction {
        Some(fraction) => format!("{sign}{whole}.{fraction}"),
        None => format!("{sign}{whole}"),
    }
}

/// `exit` for `exits`. What is multiplied (`1 times the throughput`) and what ends in another way stays.
fn singular(noun: &str) -> &str {
    match noun {
        "times" | "us" | "ms" | "Mpps" => noun,
        _ => noun.strip_suffix('s').filter(|one| one.ends_with(char::is_alphabetic)).unwrap_or(noun),
    }
}

/// A value in a unit as columns, bars, costs and unknown amounts name it: `ns`, `bytes`, `share of all exits`,
/// `exits per chain`. What follows the first word is kept behind the number.
pub fn amount(value: f64, unit: &str) -> String {
    let (first, rest) = unit.split_once(' ').unwrap_or((unit, ""));
    let behind = |text: String, words: &str| if words.is_empty() { text } else { format!("{text} {words}") };
    match first {
        "ns" => behind(duration(value), rest),
        "bytes" => behind(bytes(value), rest),
        "bytes/s" => behind(format!("{}/s", bytes(value)), rest),
        "share" => behind(percent(value), rest),
        "count" => behind(plain(value), rest),
        _ => {
            let number = plain(value);
            let noun = if number == "1" { singular(first) } else { first };
            behind(behind(number, noun), rest)
        }
    }
}

/// Something a second, as it is said: whole from 10 on, `0.3`, `1,480`.
pub fn rate(per_s: f64) -> String {
    if per_s >= 9.95 { thousands(per_s.round() as u64) } else { plain((per_s * 10.0).round() / 10.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_step_through_their_units_and_never_round_to_nothing() {
        let shown: Vec<_> = [
            0.0,
            1.0,
            999.0,
            1_000.0,
            57_349.0,
            999_949.0,
            999_960.0,
            294_600_000.0,
            6.38e8,
            3.5e12,
            1.23456e13,
            1.050624e14,
        ]
        .map(duration)
        .into();
        assert_eq!(
            shown,
            [
                "0 ns",
                "1 ns",
                "999 ns",
                "1.0 us",
                "57.3 us",
                "999.9 us",
                "1.0 ms",
                "294.6 ms",
                "638.0 ms",
                "3,500.0 s",
                "3.4 h",
                "1.2 days"
            ]
        );
    }

    #[test]
    fn rates_of_packets_have_two_digits_and_the_small_ones_more() {
        assert_eq!([8.615e6, 1e6, 40_000.0, 0.0].map(packets_per_s), ["8.62 Mpps", "1.00 Mpps", "0.04 Mpps", "0 Mpps"]);
        assert_eq!([220e9, 4.411e9, 2.4e7].map(bits_per_s), ["220.00 Gb/s", "4.41 Gb/s", "0.024 Gb/s"]);
    }

    #[test]
    fn a_share_is_never_rounded_into_none_or_all() {
        let shown: Vec<_> = [0.0, 0.000_01, 0.001, 0.4618, 0.9999, 1.0, f64::NAN].map(percent).into();
        assert_eq!(shown, ["0 %", "<0.1 %", "0.1 %", "46.2 %", ">99.9 %", "100 %", "-"]);
    }

    #[test]
    fn units_in_words_stay_behind_the_number() {
        assert_eq!(amount(0.766, "share of all exits"), "76.6 % of all exits");
        assert_eq!(amount(12.0, "exits per chain"), "12 exits per chain");
        assert_eq!(amount(1.0, "exits per chain"), "1 exit per chain");
        assert_eq!(amount(1.0, "Gbit/s"), "1 Gbit/s");
        assert_eq!(amount(203_880_455.6, "bytes/s"), "203.9 MB/s");
        assert_eq!([amount(1.0, "times the throughput"), amount(1.0, "")], ["1 times the throughput", "1"]);
        assert_eq!(amount(4_500_000.0, "ns per second"), "4.5 ms per second");
        assert_eq!(amount(1_234_567.0, "events"), "1,234,567 events");
        assert_eq!(amount(0.012_34, "exits"), "0.01234 exits");
        assert_eq!(amount(0.000_123_4, "exits"), "1.23e-4 exits");
    }

    #[test]
    fn dust_of_floating_point_is_nothing_and_has_no_sign() {
        for dust in [1.11e-16, -2.22e-16, 5.55e-14, -0.0] {
            assert_eq!([plain(dust), percent(dust), duration(dust)], ["0", "0 %", "0 ns"]);
            assert_eq!(decimals(dust, 0), "0");
        }
        assert_eq!([decimals(-0.004, 2), decimals(-0.4, 1), decimals(-0.4, 0)], ["0.00", "-0.4", "0"]);
        assert_eq!([plain(-0.04), percent(-0.0001)], ["-0.04", "0.0 %"]);
    }

    #[test]
    fn one_of_a_kind_is_not_several() {
        assert_eq!([many(1, "exit"), many(2, "exit"), many(0, "exit")], ["1 exit", "2 exits", "0 exits"]);
        assert_eq!(counted(1, "CPU is", "CPUs are"), "1 CPU is");
        assert_eq!(counted(1_200, "CPU is", "CPUs are"), "1,200 CPUs are");
    }

    #[test]
    fn thousands_are_grouped_to_the_last_number_there_is() {
        assert_eq!(thousands(999), "999");
        assert_eq!(thousands(1_000), "1,000");
        assert_eq!(thousands(u64::MAX), "18,446,744,073,709,551,615");
    }
}
