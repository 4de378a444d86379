//! Which hosts stand out among those with the same CPU model and kernel?
//!
//! ```text
//! values of one number       . .:::.: .            x        score = (x - median) / spread
//!                             median                x is judged, and of all hosts and numbers together one false claim or more
//!                                                   has a chance of 5 % (Holm)
//! ```
//! The spread is the median distance from the median, on the side where it is larger, as a standard deviation (1.4826 times), and never less than
//! 5 % of the median or one percentage point: below that a difference is no reason to look at a host.
//! Sources: B. Iglewicz, D. C. Hoaglin, "How to Detect and Handle Outliers", ASQC 1993 (scores by medians, 3.5 as the least); the two sides apart
//! because latencies are skewed; Holm as in `statistics::holm`.

use super::classes::{Host, by_class, means};
use facts::statistics::holm;
use facts::statistics::ranks::erfc;
use facts::statistics::spread::median;
use std::collections::BTreeSet;

/// Fewer hosts of a class have no spread to compare with.
pub(super) const LEAST_HOSTS: usize = 8;
/// The least score of an outlier.
pub(super) const LEAST_SCORE: f64 = 3.5;
/// The least ratio to the median.
pub(super) const LEAST_RATIO: f64 = 1.25;
/// The least difference of two shares.
pub(super) const LEAST_SHARE: f64 = 0.02;
/// Spreads are at least so much of the median,
const FLOOR: f64 = 0.05;
/// and of shares at least this.
const SHARE_FLOOR: f64 = 0.01;
/// Makes a median distance a standard deviation, where values are normal.
const NORMAL: f64 = 1.4826;
/// Findings that fewer of the other hosts have than this share are a reason.
const RARE: f64 = 0.1;

/// The number that is made of costs.
pub(super) const RELATIVE_COST: &str = "cost of an exit, relative to similar hosts";

/// A host that stands out by one number.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Outlier {
    pub host: String,
    pub class: String,
    pub what: String,
    pub unit: String,
    pub value: f64,
    pub median: f64,
    pub score: f64,
    pub chance: f64,
    pub compared: usize,
    /// What emulated the host, whose times are not real.
    pub emulated: Option<String>,
    /// Rules with a finding on this host that few others have.
    pub why: Vec<String>,
}

/// The outliers, the largest score first; and the number of hosts with too few like them.
pub(super) fn outliers(hosts: &[Host<'_>]) -> (Vec<Outlier>, usize) {
    let (mut tests, mut alone) = (Vec::new(), 0);
    for (class, members) in by_class(hosts) {
        if members.len() < LEAST_HOSTS {
            alone += members.len();
            continue;
        }
        let usual = means(&members);
        let names: BTreeSet<&str> = members.iter().flat_map(|host| host.numbers.keys().copied()).collect();
        for what in names {
            let of = |host: &&Host<'_>| host.numbers.get(what).map(|(value, _)| *value);
            let unit = members.iter().find_map(|host| Some(host.numbers.get(what)?.1)).unwrap_or_default();
            judge(&mut tests, &members, &class.named(), (what, unit), of);
        }
        judge(&mut tests, &members, &class.named(), (RELATIVE_COST, "x"), |host| host.relative_cost(&usual));
    }
    let chances: Vec<f64> = tests.iter().map(|test: &Outlier| test.chance).collect();
    let held = holm::hold(&chances);
    let mut found: Vec<Outlier> =
        tests.into_iter().zip(held).filter(|(_, holds)| *holds).map(|(test, _)| test).collect();
    found.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| (&a.host, &a.what).cmp(&(&b.host, &b.what))));
    for outlier in &mut found {
        outlier.why = why(hosts, &outlier.host);
        let host = hosts.iter().find(|host| host.name == outlier.host);
        outlier.emulated = host.and_then(|host| host.newest().emulated.clone());
    }
    (found, alone)
}

/// One test for each host that has the number.
fn judge(
    tests: &mut Vec<Outlier>,
    members: &[&Host<'_>],
    class: &str,
    (what, unit): (&str, &str),
    of: impl Fn(&&Host<'_>) -> Option<f64>,
) {
    let known: Vec<(&str, f64)> = members.iter().filter_map(|host| Some((host.name, of(host)?))).collect();
    if known.len() < LEAST_HOSTS {
        return;
    }
    let values: Vec<f64> = known.iter().map(|(_, value)| *value).collect();
    let Some(middle) = median(&values) else { return };
    let spread = spread(&values, middle, unit);
    for (host, value) in known {
        let score = (value - middle) / spread;
        let is_large = score >= LEAST_SCORE && value >= LEAST_RATIO * middle;
        let is_large = is_large && (unit != "share" || value - middle >= LEAST_SHARE);
        tests.push(Outlier {
            host: host.to_owned(),
            class: class.to_owned(),
            what: what.to_owned(),
            unit: unit.to_owned(),
            value,
            median: middle,
            score,
            chance: if is_large { erfc(score / std::f64::consts::SQRT_2) / 2.0 } else { 1.0 },
            compared: values.len(),
            emulated: None,
            why: Vec::new(),
        });
    }
}

/// The larger of the median distances on both sides, as a standard deviation.
fn spread(values: &[f64], middle: f64, unit: &str) -> f64 {
    let all: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    let above: Vec<f64> = values.iter().filter(|value| **value > middle).map(|value| value - middle).collect();
    // Half of the values at most lie above; where more are equal to the median, those above are few and are what is looked for.
    let above = if 3 * above.len() >= values.len() { median(&above) } else { None };
    let distance = median(&all).unwrap_or_default().max(above.unwrap_or_default());
    let least = if unit == "share" { SHARE_FLOOR } else { 0.0 };
    (NORMAL * distance).max(FLOOR * middle.abs()).max(least).max(f64::MIN_POSITIVE)
}

/// Rules of findings on `host` that few other hosts of its class have.
fn why(hosts: &[Host<'_>], host: &str) -> Vec<String> {
    let Some(own) = hosts.iter().find(|one| one.name == host) else { return Vec::new() };
    let alike: Vec<&Host<'_>> = hosts.iter().filter(|one| one.class() == own.class()).collect();
    let has = |one: &Host<'_>, rule: &str| one.newest().findings.iter().any(|found| found.rule == rule);
    let rules: BTreeSet<&str> = own.newest().findings.iter().map(|found| found.rule.as_str()).collect();
    let is_rare = |rule: &&str| {
        let with = alike.iter().filter(|one| one.name != host && has(one, rule)).count();
        (with as f64) < RARE * alike.len() as f64 + 1.0
    };
    rules.into_iter().filter(is_rare).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::super::classes::hosts;
    use super::super::model::{Bits, Fleet, Id, One};
    use super::*;

    /// A host with one number.
    fn fleet(values: &[f64]) -> Fleet {
        let mut fleet = Fleet::default();
        for (number, value) in values.iter().enumerate() {
            let id = Id { host: format!("host-{number:03}"), recording: number.to_string() };
            let numbers = vec![("waiting for a CPU".to_owned(), Bits::of(*value), "share".to_owned())];
            fleet.recordings.insert(id, One { numbers, ..One::default() });
        }
        fleet
    }

    /// 40 hosts that differ as hosts do.
    fn usual() -> Vec<f64> {
        (0..40).map(|number| 0.05 + f64::from(number * 17 % 40) * 0.000_5).collect()
    }

    #[test]
    fn a_host_far_from_the_others_is_named_and_no_other() {
        let mut values = usual();
        assert_eq!(outliers(&hosts(&fleet(&values))).0, []);
        values[7] = 0.4;
        let (found, alone) = outliers(&hosts(&fleet(&values)));
        assert_eq!(found.iter().map(|one| one.host.as_str()).collect::<Vec<_>>(), ["host-007"]);
        assert_eq!((found[0].compared, alone), (40, 0));
    }

    #[test]
    fn a_difference_that_is_small_is_no_outlier_however_alike_the_others_are() {
        let mut values = vec![0.05; 40];
        values[3] = 0.06;
        assert_eq!(outliers(&hosts(&fleet(&values))).0, []);
        values[3] = 0.2;
        assert_eq!(outliers(&hosts(&fleet(&values))).0.len(), 1);
    }

    #[test]
    fn few_hosts_are_not_judged_and_counted() {
        let values = [vec![0.05; 6], vec![0.9]].concat();
        assert_eq!(outliers(&hosts(&fleet(&values))), (vec![], 7));
    }
}
