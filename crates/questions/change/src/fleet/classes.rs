//! The hosts of a fleet, and those among them that can be compared: with one CPU model and one kernel.

use super::model::{Class, Fleet, Id, One};
use facts::statistics::spread::median;
use std::collections::BTreeMap;

/// A host, by all of its recordings with the class of the newest.
pub(super) struct Host<'f> {
    pub name: &'f str,
    /// Oldest first; the last is what holds now.
    pub recordings: Vec<(&'f Id, &'f One)>,
    /// By what it is: the median over its recordings, and the unit.
    pub numbers: BTreeMap<&'f str, (f64, &'f str)>,
    /// By level and reason: exits with a cost, and the sum of costs.
    pub exits: BTreeMap<(&'f str, &'f str), (u64, u64)>,
}

/// What exits of a level and reason cost on average.
pub(super) type Means<'f> = BTreeMap<(&'f str, &'f str), f64>;

impl<'f> Host<'f> {
    pub(super) fn newest(&self) -> &'f One {
        self.recordings[self.recordings.len() - 1].1
    }

    pub(super) fn class(&self) -> &'f Class {
        &self.newest().class
    }

    /// The cost of its exits in relation to what the same exits cost on average; `None` if it has none that are known.
    pub(super) fn relative_cost(&self, means: &Means<'f>) -> Option<f64> {
        let known = self.exits.iter().filter_map(|(exit, sums)| Some((sums, *means.get(exit)?)));
        let (own, usual) = known
            .fold((0.0, 0.0), |(own, usual), ((count, sum), mean)| (own + *sum as f64, usual + *count as f64 * mean));
        (usual > 0.0).then(|| own / usual)
    }
}

impl Class {
    /// CPU model and kernel in words.
    pub(super) fn named(&self) -> String {
        let known = |text: &Option<String>| text.clone();
        match (known(&self.cpu_model), known(&self.kernel)) {
            (Some(model), Some(kernel)) => format!("{model} with kernel {kernel}"),
            (Some(model), None) => format!("{model} with an unknown kernel"),
            (None, Some(kernel)) => format!("an unknown CPU with kernel {kernel}"),
            (None, None) => "an unknown CPU and kernel".to_owned(),
        }
    }
}

pub(super) fn hosts(fleet: &Fleet) -> Vec<Host<'_>> {
    let mut by_name: BTreeMap<&str, Vec<(&Id, &One)>> = BTreeMap::new();
    for (id, one) in &fleet.recordings {
        by_name.entry(&id.host).or_default().push((id, one));
    }
    by_name.into_iter().map(|(name, recordings)| host(name, recordings)).collect()
}

fn host<'f>(name: &'f str, mut recordings: Vec<(&'f Id, &'f One)>) -> Host<'f> {
    recordings.sort_by_key(|(id, one)| (&one.created, *id));
    let class = &recordings[recordings.len() - 1].1.class;
    let mut values: BTreeMap<&str, (Vec<f64>, &str)> = BTreeMap::new();
    let mut exits: BTreeMap<(&str, &str), (u64, u64)> = BTreeMap::new();
    for (_, one) in recordings.iter().filter(|(_, one)| one.class == *class) {
        for (what, value, unit) in &one.numbers {
            values.entry(what).or_insert_with(|| (Vec::new(), unit)).0.push(value.value());
        }
        for (level, reason, count, sum) in &one.exits {
            let own = exits.entry((level, reason)).or_default();
            *own = (own.0 + count, own.1 + sum);
        }
    }
    let numbers = values.into_iter().filter_map(|(what, (values, unit))| Some((what, (median(&values)?, unit))));
    Host { name, numbers: numbers.collect(), recordings, exits }
}

/// What exits cost on average over these hosts, each host as one: a busy host does not outweigh the others.
pub(super) fn means<'f>(hosts: &[&Host<'f>]) -> Means<'f> {
    let mut of_hosts: BTreeMap<(&str, &str), Vec<f64>> = BTreeMap::new();
    for host in hosts {
        for (exit, (count, sum)) in host.exits.iter().filter(|(_, (count, _))| *count > 0) {
            of_hosts.entry(*exit).or_default().push(*sum as f64 / *count as f64);
        }
    }
    of_hosts.into_iter().filter_map(|(exit, means)| Some((exit, median(&means)?))).collect()
}

pub(super) fn by_class<'h, 'f>(hosts: &'h [Host<'f>]) -> BTreeMap<&'f Class, Vec<&'h Host<'f>>> {
    let mut classes: BTreeMap<&Class, Vec<&Host<'_>>> = BTreeMap::new();
    hosts.iter().for_each(|host| classes.entry(host.class()).or_default().push(host));
    classes
}
