//! The checks of the rules: from what was measured to what was seen.

mod frames;
mod isolation;
mod preempted;
mod rings;
mod sides;
mod windows;

pub(super) use frames::{unverified, wrong};
pub(super) use isolation::{fault, stale};
pub(super) use preempted::preempted;
pub(super) use rings::{kicks, ring};
pub(super) use sides::{nodes, siblings};
pub(super) use windows::{mprotect, open, window};

use super::machines::Host;
use super::measured::{Channel, Measured};
use base::{Evidence, Severity};
use facts::rule::Hit;

/// Setups that a finding shows, the worst.
const MOST_SHOWN: usize = 4;

/// Something seen of a setup, in its row.
fn seen(what: impl Into<String>, one: &Measured<'_>) -> Evidence {
    Evidence::in_table(what, "channel.rates")
        .key("machine", one.machine)
        .key("path", one.setup.path.as_str())
        .key("window", one.setup.window.as_str())
        .key("size_bytes", u64::from(one.setup.size_bytes))
        .key("batch", u64::from(one.setup.batch))
        .key("policy", one.setup.policy.as_str())
        .key("vms", u64::from(one.setup.vms))
}

/// `ring with pkey, 64 B, batch 32`.
fn setup(one: &Measured<'_>) -> String {
    format!("{}, {} B, batch {}", one.name(), one.setup.size_bytes, one.setup.batch)
}

fn hit(one: &Measured<'_>, subject: String, severity: Severity, title: String) -> Hit {
    Hit { level: Some(one.level), ..Hit::new(subject, severity, title) }
}

/// Whether its times say something of this machine: those of emulated guests are the emulator's.
fn timed(one: &Measured<'_>) -> bool {
    !one.is_emulated()
}

fn of_path(one: &Measured<'_>) -> String {
    format!("{}: {}, {}", one.machine, one.setup.path, one.setup.window)
}

/// The setups of each machine that `wanted` gives a number for, the largest first.
fn by_machine<'c, 'b>(
    channel: &'c Channel<'b>,
    wanted: impl Fn(&Host, &Measured<'b>) -> Option<f64>,
) -> Vec<(&'c Host, Vec<(&'c Measured<'b>, f64)>)> {
    let of = |host: &'c Host| {
        let own = channel.measured().filter(|one| one.machine == host.machine);
        let mut own: Vec<_> = own.filter_map(|one| Some((one, wanted(host, one)?))).collect();
        own.sort_by(|a, b| b.1.total_cmp(&a.1));
        (!own.is_empty()).then_some((host, own))
    };
    channel.hosts.iter().filter_map(of).collect()
}

/// The same of each path and window of a machine.
fn by_path<'c, 'b>(
    channel: &'c Channel<'b>,
    wanted: impl Fn(&Measured<'b>) -> Option<f64>,
) -> Vec<Vec<(&'c Measured<'b>, f64)>> {
    let mut paths: Vec<Vec<(&Measured<'b>, f64)>> = Vec::new();
    for (one, amount) in channel.measured().filter_map(|one| Some((one, wanted(one)?))) {
        match paths.iter_mut().find(|known| of_path(known[0].0) == of_path(one)) {
            Some(known) => known.push((one, amount)),
            None => paths.push(vec![(one, amount)]),
        }
    }
    paths.iter_mut().for_each(|own| own.sort_by(|a, b| b.1.total_cmp(&a.1)));
    paths
}

#[cfg(test)]
mod tests;
