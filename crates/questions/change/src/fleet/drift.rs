//! Did a number change its level over time, on one host or on all?
//!
//! ```text
//! one host      its recordings, oldest first               change points by ranks, six recordings or more
//! all hosts     every recording relative to the median of its class, in time order; the medians of at most 40 groups of them
//! ```
//! Relative to the class, so that a kernel that costs more and comes to more hosts is no drift, only itself. Chances of all series together by Holm.

use super::classes::{Host, by_class};
use super::model::One;
use facts::statistics::change_points::{self, ChangePoint, LEAST};
use facts::statistics::holm::{self, CHANCE};
use facts::statistics::spread::median;
use std::collections::{BTreeMap, BTreeSet};

/// Groups of recordings over the whole time.
const GROUPS: usize = 40;
/// Recordings of a group, at least.
const LEAST_OF_GROUP: usize = 5;
/// A level that moves less is not worth a look.
pub(super) const LEAST_RATIO: f64 = 1.1;

/// A change of level.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Drift {
    /// `None`: all hosts.
    pub host: Option<String>,
    pub what: String,
    /// When the first recording of the new level was made.
    pub since: String,
    pub before: f64,
    pub after: f64,
    pub ratio: f64,
    pub(crate) recordings_before: usize,
    pub(crate) recordings_after: usize,
    pub chance: f64,
}

/// Numbers in time order: when, and the value.
struct Series<'f> {
    host: Option<&'f str>,
    what: &'f str,
    points: Vec<(&'f str, f64)>,
}

/// All changes, the largest first; and how many series there were.
pub(super) fn drift(hosts: &[Host<'_>]) -> (Vec<Drift>, usize) {
    let mut all = of_all(hosts);
    all.extend(hosts.iter().flat_map(of_host));
    let clearest: Vec<Option<ChangePoint>> =
        all.iter().map(|series| change_points::clearest(&series.values())).collect();
    let chances: Vec<f64> = clearest.iter().flatten().map(|one| one.chance).collect();
    let mut held = holm::hold(&chances).into_iter();
    let mut found = Vec::new();
    for (series, clearest) in all.iter().zip(&clearest) {
        if clearest.is_some() && held.next() == Some(true) {
            found.extend(series.changes());
        }
    }
    let size = |one: &Drift| one.ratio.ln().abs();
    found.sort_by(|a, b| size(b).total_cmp(&size(a)).then_with(|| (&a.host, &a.what).cmp(&(&b.host, &b.what))));
    (found, chances.len())
}

fn of_host<'f>(host: &Host<'f>) -> Vec<Series<'f>> {
    if host.recordings.len() < 2 * LEAST {
        return Vec::new();
    }
    let series = |what: &&'f str| Series {
        host: Some(host.name),
        what,
        points: host.recordings.iter().filter_map(|(_, one)| number(one, what)).collect(),
    };
    host.numbers.keys().map(series).collect()
}

fn of_all<'f>(hosts: &[Host<'f>]) -> Vec<Series<'f>> {
    let mut of_number: BTreeMap<&str, Vec<(&str, f64)>> = BTreeMap::new();
    for members in by_class(hosts).values() {
        let names: BTreeSet<&str> = members.iter().flat_map(|host| host.numbers.keys().copied()).collect();
        for what in names {
            let class = members[0].class();
            let of_class = members.iter().flat_map(|host| &host.recordings).filter(|(_, one)| one.class == *class);
            let points: Vec<(&str, f64)> = of_class.filter_map(|(_, one)| number(one, what)).collect();
            let Some(middle) = median(&points.iter().map(|(_, value)| *value).collect::<Vec<_>>()) else { continue };
            if middle > 0.0 {
                of_number.entry(what).or_default().extend(points.iter().map(|(when, value)| (*when, value / middle)));
            }
        }
    }
    of_number.into_iter().map(|(what, points)| Series { host: None, what, points: grouped(points) }).collect()
}

/// The medians of groups of equal size, in time order.
fn grouped(mut points: Vec<(&str, f64)>) -> Vec<(&str, f64)> {
    points.sort_by(|a, b| a.0.cmp(b.0).then(a.1.total_cmp(&b.1)));
    let size = points.len().div_ceil(GROUPS).max(LEAST_OF_GROUP);
    let groups = points.chunks(size).filter(|group| group.len() >= LEAST_OF_GROUP);
    let of = |group: &[(&'_ str, f64)]| median(&group.iter().map(|(_, value)| *value).collect::<Vec<_>>());
    groups.filter_map(|group| Some((group[0].0, of(group)?))).collect()
}

/// The number of a recording that says when it was made.
fn number<'f>(one: &'f One, what: &str) -> Option<(&'f str, f64)> {
    let when = one.created.as_deref()?;
    let (_, value, _) = one.numbers.iter().find(|(name, ..)| name == what)?;
    Some((when, value.value()))
}

impl Series<'_> {
    fn values(&self) -> Vec<f64> {
        self.points.iter().map(|(_, value)| *value).collect()
    }

    fn changes(&self) -> Vec<Drift> {
        let values = self.values();
        let points = change_points::all(&values, CHANCE);
        let of = |(number, point): (usize, &ChangePoint)| {
            let from = number.checked_sub(1).map_or(0, |before| points[before].at);
            let until = points.get(number + 1).map_or(values.len(), |next| next.at);
            let (before, after) = (median(&values[from..point.at])?, median(&values[point.at..until])?);
            let ratio = (before > 0.0 && after > 0.0).then(|| after / before)?;
            Some(Drift {
                host: self.host.map(str::to_owned),
                what: self.what.to_owned(),
                since: self.points[point.at].0.to_owned(),
                before,
                after,
                ratio,
                recordings_before: point.at - from,
                recordings_after: until - point.at,
                chance: point.chance,
            })
        };
        points.iter().enumerate().filter_map(of).filter(|one| one.ratio.max(1.0 / one.ratio) >= LEAST_RATIO).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::classes::hosts;
    use super::super::model::{Bits, Fleet, Id, One};
    use super::*;

    fn fleet(value: impl Fn(u32, u32) -> f64, count: u32, days: u32) -> Fleet {
        let mut fleet = Fleet::default();
        for (host, day) in (0..count).flat_map(|host| (1..=days).map(move |day| (host, day))) {
            let id = Id { host: format!("host-{host}"), recording: format!("{day:02}") };
            let numbers = vec![("exits per chain".to_owned(), Bits::of(value(host, day)), String::new())];
            let created = Some(format!("2026-11-{day:02}T00:00:00Z"));
            fleet.recordings.insert(id, One { numbers, created, ..One::default() });
        }
        fleet
    }

    #[test]
    fn a_level_that_changes_on_one_host_is_dated_there_and_on_all_hosts_once() {
        let noise = |host: u32, day: u32| f64::from((host * 7 + day * 5) % 11) * 0.01;
        let one = fleet(|host, day| if host == 2 && day > 15 { 9.0 } else { 3.0 } + noise(host, day), 10, 28);
        let (found, series) = drift(&hosts(&one));
        assert_eq!((found.len(), series), (1, 11), "{found:?}");
        assert_eq!((found[0].host.as_deref(), found[0].since.as_str()), (Some("host-2"), "2026-11-16T00:00:00Z"));
        let all = fleet(|host, day| if day > 15 { 9.0 } else { 3.0 } + noise(host, day), 10, 28);
        let (found, _) = drift(&hosts(&all));
        let of_all: Vec<&Drift> = found.iter().filter(|one| one.host.is_none()).collect();
        assert_eq!(of_all.len(), 1, "{found:?}");
        assert!((of_all[0].ratio - 3.0).abs() < 0.2);
        assert_eq!(drift(&hosts(&fleet(noise_alone, 10, 28))).0, []);
    }

    fn noise_alone(host: u32, day: u32) -> f64 {
        3.0 + f64::from((host * 7 + day * 13 + host * day) % 11) * 0.01
    }
}
