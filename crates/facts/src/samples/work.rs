//! How much work was done, by the marks of those who did it.
//!
//! ```text
//! echo 'kvmscope work: 12000 requests' > /sys/kernel/tracing/trace_marker        LTTng: > /proc/lttng-logger
//! ```
//! Marks of one unit add up. In: lines that programs wrote into the trace. Out: units with their counts; all other lines are somebody else's.

use std::collections::BTreeMap;

/// How a mark begins.
const BEGINS: &str = "kvmscope work:";
/// Units that are kept: a program has a few.
const MOST_UNITS: usize = 16;
/// Longer names of units are none.
const LONGEST_UNIT: usize = 40;

/// Units of work by their names, in the singular where that only takes an s away.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Work {
    units: BTreeMap<String, f64>,
}

impl Work {
    pub(super) fn mark(&mut self, line: &[u8]) {
        if let Some((unit, count)) = std::str::from_utf8(line).ok().and_then(parse)
            && (self.units.len() < MOST_UNITS || self.units.contains_key(unit))
        {
            *self.units.entry(unit.to_owned()).or_default() += count;
        }
    }

    pub(super) fn units(&self) -> BTreeMap<String, f64> {
        self.units.clone()
    }
}

/// `kvmscope work: 12000 requests`.
fn parse(line: &str) -> Option<(&str, f64)> {
    let (_, said) = line.split_once(BEGINS)?;
    let (count, unit) = said.trim().split_once(' ')?;
    let count: f64 = count.parse().ok().filter(|count: &f64| count.is_finite() && *count >= 0.0)?;
    let unit = unit.trim();
    let unit = unit.strip_suffix('s').filter(|rest| !rest.ends_with('s')).unwrap_or(unit);
    (!unit.is_empty() && unit.len() <= LONGEST_UNIT && !unit.contains(char::is_control)).then_some((unit, count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_has_a_count_and_a_unit() {
        assert_eq!(parse("kvmscope work: 12000 requests\n"), Some(("request", 12_000.0)));
        assert_eq!(parse("kvmscope work: 1.5 GB moved"), Some(("GB moved", 1.5)));
        assert_eq!(parse("kvmscope work: 3 passes"), Some(("passe", 3.0)));
        assert_eq!(parse("kvmscope work: 3 class"), Some(("class", 3.0)));
        for none in [
            "work: 1 request",
            "kvmscope work: many requests",
            "kvmscope work: 12",
            "kvmscope work: -1 a",
            "kvmscope work: inf a",
        ] {
            assert_eq!(parse(none), None, "{none}");
        }
    }
}
