//! The pictures of section `latency`.
//!
//! ```text
//! losses     by_window    what any window of time lost, below the budget's limit
//!            pauses       how often a vCPU was away for how long, and in which state
//!            over_time    when it was lost
//!            culprits     who took it in all
//!            moments      who took it in the worst windows
//! stages     paths        (beside this folder)
//! samples    percentiles, lengths
//! ```
//! Pages have all of them. A terminal shows those that are held against a limit, and `report --all` all.

mod by_window;
mod culprits;
mod lengths;
mod moments;
mod over_time;
mod pauses;
mod percentiles;

pub(super) use over_time::OverTime;
pub(super) use pauses::{Pauses, ends};

use super::measure::Measured;
use base::Figure;
use base::figure::Kind;
use base::number::{list, many};
use facts::Case;
use facts::budget::{Goal, Metric};
use facts::losses::LostIn;
use facts::samples::Samples;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Culprits that the key of a state names.
const MOST_NAMED: usize = 2;

/// All of what vCPUs lost.
pub(super) fn of_losses(measured: &[Measured<'_>], case: &Case) -> Vec<Figure> {
    let one = [by_window::figure(measured, case), pauses::figure(measured, case), culprits::figure(measured)];
    let several = over_time::figures(measured).into_iter().chain(moments::figure(measured));
    one.into_iter().flatten().chain(several).collect()
}

/// All of what programs measured.
pub(super) fn of_samples(case: &Case) -> Vec<Figure> {
    let files = case.results().list.iter().enumerate();
    files
        .flat_map(|(place, file)| [percentiles::figure(case, place, file), lengths::figure(case, place, file)])
        .flatten()
        .collect()
}

/// The goals of the budget about this metric of losses.
fn goals(case: &Case, metric: Metric) -> impl Iterator<Item = &Goal> {
    case.budget().into_iter().flat_map(move |budget| budget.on_losses(metric))
}

/// The goals of the budget about the longest of such samples.
fn goals_of<'c>(case: &'c Case, samples: &Samples) -> impl Iterator<Item = &'c Goal> {
    let measures = samples.measures();
    case.budget().into_iter().flat_map(move |budget| budget.on_longest(measures))
}

/// The state whose colour a loss has.
fn hue(state: LostIn) -> &'static str {
    match state {
        LostIn::Preempted | LostIn::Irq | LostIn::Softirq | LostIn::Nmi | LostIn::WakeDelay | LostIn::Blocked => {
            state.name()
        }
        LostIn::Handling => "handling_l1",
        LostIn::Userspace => "userspace",
    }
}

/// What happened to the vCPU in that state, in words.
fn words(state: LostIn) -> &'static str {
    match state {
        LostIn::Preempted => "preempted",
        LostIn::Irq => "host interrupt",
        LostIn::Softirq => "softirq",
        LostIn::Nmi => "NMI",
        LostIn::WakeDelay => "wake-up delay",
        LostIn::Blocked => "blocked",
        LostIn::Handling => "exit that the host caused",
        LostIn::Userspace => "VMM",
    }
}

/// What has the colour of a state, with those who took most in it: `preempted (busybox and kworker/0:1)`.
fn kind<'n>(state: LostIn, taken: impl Iterator<Item = (&'n str, u64)>) -> Kind {
    let mut names: BTreeMap<&str, u64> = BTreeMap::new();
    taken.for_each(|(by, ns)| *names.entry(by).or_default() += ns);
    let mut names: Vec<(&str, u64)> = names.into_iter().collect();
    names.sort_by_key(|(_, ns)| Reverse(*ns));
    let more = if names.len() > MOST_NAMED { ", .." } else { "" };
    let named: Vec<String> = names.into_iter().take(MOST_NAMED).map(|(by, _)| by.to_owned()).collect();
    let named = if more.is_empty() { list(&named) } else { named.join(", ") };
    Kind { label: format!("{} ({named}{more})", words(state)), hue: hue(state).into() }
}

/// `vCPU 2 of vm1`.
fn name(one: &Measured<'_>) -> String {
    format!("vCPU {} of {}", one.vcpu.vcpu, one.vcpu.vm)
}

/// `the 6 of 64 vCPUs that lost most`, `all 4 vCPUs`, `vCPU 2 of vm1`: whom a picture of `drawn` of them shows.
fn whom(drawn: usize, measured: &[Measured<'_>]) -> String {
    match measured {
        [one] => name(one),
        _ if drawn < measured.len() => format!("the {drawn} of {} that lost most", many(measured.len() as u64, "vCPU")),
        _ => format!("all {}", many(drawn as u64, "vCPU")),
    }
}
