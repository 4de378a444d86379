//! What was a guest dark for, while it was moved?

use super::parts::{Component, Parts, Spent};
use facts::Case;
use facts::migrations::Migration;
use facts::migrations::pieces::taken;
use std::collections::BTreeMap;

/// The dark time of each migration of one recording a side, or of each recording the mean of its migrations; in ns.
pub(super) fn of(side: &[&Case]) -> Vec<Parts> {
    let all = side.iter().map(|case| case.input().migrations.list.iter().filter_map(parts).collect::<Vec<Parts>>());
    match side {
        [_] => all.flatten().collect(),
        _ => all.filter(|runs| !runs.is_empty()).map(|runs| Parts::mean(&runs)).collect(),
    }
}

/// What both sides of a migration did between the moment at which the source began to stop the guest and that at which it ran on the target.
fn parts(migration: &Migration) -> Option<Parts> {
    let all_ns = migration.by_checkpoints().filter(|_| migration.is_completed())?;
    let mut times: BTreeMap<Component, f64> = BTreeMap::new();
    for (side, is_of) in [(&migration.source, "on the source"), (&migration.target, "on the target")] {
        for ((device, _), ns) in side.as_ref().map(taken).unwrap_or_default() {
            *times.entry(Component::new("dark", &format!("{device} {is_of}"), "")).or_default() += ns as f64;
        }
    }
    // The target may load while the source still saves: then this is less than nothing.
    let between_ns = all_ns as f64 - times.values().sum::<f64>();
    times.insert(Component::new("dark", "between both sides", ""), between_ns);
    let spent = |(part, ns)| (part, Spent { amount: ns, often: None });
    Some(Parts { parts: times.into_iter().map(spent).collect() })
}
