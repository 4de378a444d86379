//! The answer in sentences, as a person would say it.

use super::measure::{Measured, Moment, Named};
use base::number::{duration, list, percent};
use facts::budget::exact;
use facts::ledger::model::SpentQuota;
use facts::losses::LostIn;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Causes that a sentence names one by one.
const MOST_CAUSES: usize = 4;

/// The worst moment of all vCPUs, how much was lost in all, and the same by the other definition; where goals are judged, they have
/// said all but how much was lost in all.
pub(super) fn of(measured: &[Measured<'_>], is_judged: bool) -> String {
    let moments = measured.iter().filter_map(|one| Some((one, one.moments.first()?)));
    let worst = moments.min_by_key(|(_, moment)| (Reverse(moment.loss_ns), moment.at_ns));
    let total_ns = measured.iter().map(|one| one.definitions[0].total_ns).sum::<u64>();
    if is_judged && total_ns > 0 {
        return in_all(measured, total_ns);
    }
    let lacks = |is: fn(&Measured<'_>) -> bool| measured.iter().any(is);
    let lacked =
        [(lacks(|one| !one.part.has_switches), "sched_switch"), (lacks(|one| one.part.lacks_exits()), "kvm_exit")];
    let lacked: Vec<&str> = lacked.into_iter().filter(|(is, _)| *is).map(|(_, event)| event).collect();
    let mut sentences: Vec<String> = match worst {
        Some((one, moment)) => vec![worst_moment(one, moment), in_all(measured, total_ns)],
        None if total_ns > 0 => vec![in_all(measured, total_ns)],
        None if is_unknown(measured) => {
            vec![
                "Whether a vCPU lost time is unknown: of no instant do the recorded events show what it did."
                    .to_owned(),
            ]
        }
        None if !lacked.is_empty() => {
            vec![format!(
                "No vCPU is seen to lose time, but without {} most of what takes it cannot be seen.",
                lacked.join(" and ")
            )]
        }
        None => vec!["No vCPU lost any time, as far as the recorded events show.".to_owned()],
    };
    sentences.extend(exit_to_entry(measured));
    sentences.join(" ")
}

/// Whether nothing is known of all the time that was looked at.
fn is_unknown(measured: &[Measured<'_>]) -> bool {
    let unknown_ns = |one: &Measured<'_>| one.losses.unknown.iter().map(|span| span.length_ns()).sum::<u64>();
    let is_all = |one: &Measured<'_>| unknown_ns(one) >= one.losses.span.length_ns();
    measured.iter().all(|one| one.losses.span.length_ns() > 0) && measured.iter().all(is_all)
}

/// `vCPU 2 of vm1 lost 37.0 us in the millisecond at 12.345678 s: 22.0 us kworker/3:1, 15.0 us local_timer.` Where whole windows are lost,
/// the worst of them says nothing: then how long the longest loss lasted.
fn worst_moment(one: &Measured<'_>, moment: &Moment) -> String {
    let longest = one.longest.as_ref().filter(|longest| longest.length_ns > moment.length_ns);
    let moment = longest.unwrap_or(moment);
    let mut causes: Vec<String> = moment
        .causes
        .iter()
        .take(MOST_CAUSES)
        .map(|(named, ns)| format!("{} {}", duration(*ns as f64), named.phrase()))
        .collect();
    let rest_ns: u64 = moment.causes.iter().skip(MOST_CAUSES).map(|(_, ns)| ns).sum();
    causes.extend((rest_ns > 0).then(|| format!("{} other causes", duration(rest_ns as f64))));
    let (lost, at, causes) = (duration(moment.loss_ns as f64), instant(moment.at_ns), causes.join(", "));
    let when = match longest {
        Some(_) => format!("without a break from {at} on"),
        None => format!("in the {} at {at}", window(moment.length_ns)),
    };
    format!("vCPU {} of {} lost {lost} {when}: {causes}.", one.vcpu.vcpu, one.vcpu.vm)
}

fn in_all(measured: &[Measured<'_>], total_ns: u64) -> String {
    let whose = if measured.len() == 1 { "In all, the vCPU" } else { "All vCPUs together" };
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for (named, taken) in measured.iter().flat_map(|one| &one.culprits) {
        *sums.entry(named.phrase()).or_default() += taken.total_ns;
    }
    let mut most: Vec<(String, u64)> = sums.into_iter().collect();
    most.sort_by_key(|(_, ns)| Reverse(*ns));
    // What is a tenth of the largest is none of those that took most.
    let least_ns = most.first().map_or(0, |(_, ns)| ns / 10);
    let most: Vec<String> =
        most.into_iter().take(3).filter(|(_, ns)| *ns >= least_ns).map(|(phrase, _)| phrase).collect();
    let quotas = measured.iter().filter_map(|one| Some((one.vcpu.vcpu, one.part.quotas.get(&one.vcpu.tid)?)));
    format!(
        "{whose} lost {}, {}, mostly to {}.{}",
        duration(total_ns as f64),
        share(measured, total_ns),
        list(&most),
        quota(quotas, total_ns)
    )
}

/// `50.3 % of its guest's life (490.0 ms)`, `7.5 % of their time`: the share that question `flow` speaks of.
fn share(measured: &[Measured<'_>], total_ns: u64) -> String {
    let lived_ns: u64 = measured.iter().map(Measured::lived_ns).sum();
    let outside_ns: u64 = measured.iter().map(|one| one.losses.outside_ns).sum();
    let share = percent(total_ns as f64 / lived_ns.max(1) as f64);
    let lived = duration(lived_ns as f64);
    match (measured, outside_ns) {
        ([_], 0) => format!("{share} of its time"),
        (_, 0) => format!("{share} of their time"),
        ([_], _) => format!("{share} of its guest's life ({lived})"),
        _ => format!("{share} of the lives of their guests ({lived})"),
    }
}

/// The quota that throttled one of these vCPUs longest: while it holds, whoever had the CPU kept the vCPU from nothing.
fn quota<'q>(known: impl Iterator<Item = (u32, &'q SpentQuota)>, total_ns: u64) -> String {
    let worst = known.max_by_key(|(_, quota)| quota.throttled.ns).filter(|(_, quota)| quota.throttled.ns > 0);
    worst.map_or(String::new(), |(vcpu, quota)| {
        format!(
            " The CPU quota of {} throttled vCPU {vcpu} in {} of periods, up to {} of that: raise it first.",
            quota.group,
            percent(quota.throttled.share()),
            duration(quota.throttled.ns.min(total_ns) as f64)
        )
    })
}

/// The worst window by the definition of tools that see exits alone.
fn exit_to_entry(measured: &[Measured<'_>]) -> Option<String> {
    let worst = measured.iter().filter_map(|one| one.definitions[1].worst.as_ref());
    let worst = worst.max_by_key(|worst| worst.loss_ns).filter(|worst| worst.loss_ns > 0)?;
    // A window that is full says no more than that there is one.
    if worst.loss_ns >= worst.window_ns {
        return None;
    }
    Some(format!(
        "Tools that count all time from exit to entry find {} in the worst {}.",
        duration(worst.loss_ns as f64),
        window(worst.window_ns)
    ))
}

/// `millisecond`, `2 ms`.
pub(super) fn window(length_ns: u64) -> String {
    match length_ns {
        1_000_000 => "millisecond".to_owned(),
        1_000_000_000 => "second".to_owned(),
        _ => exact(length_ns),
    }
}

/// To the microsecond, in seconds since the recording's first event, as `--from` takes it.
pub(super) fn instant(at_ns: u64) -> String {
    format!("{}.{:06} s", at_ns / 1_000_000_000, at_ns % 1_000_000_000 / 1_000)
}

impl Named {
    /// The cause in a sentence, behind how long it took.
    pub(crate) fn phrase(&self) -> String {
        let by = &self.by;
        match self.state {
            // Which limit it was does not stand in a trace.
            LostIn::Preempted if self.by_tid.is_none() && by == "throttled" => {
                "throttling (by a CPU quota, or by the limit of real-time threads)".to_owned()
            }
            LostIn::Preempted | LostIn::Irq | LostIn::Softirq | LostIn::Nmi => by.clone(),
            LostIn::WakeDelay if by == "idle" || by == "unknown" => "wake-up delay".to_owned(),
            LostIn::WakeDelay => format!("wake-up delay behind {by}"),
            LostIn::Blocked => format!("blocked ({by})"),
            LostIn::Handling => format!("{by} exits"),
            LostIn::Userspace => format!("{by} in the VMM"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use host::machine::Throttled;

    #[test]
    fn a_quota_is_named_where_one_was_counted_and_had_an_effect() {
        let of = |ns| SpentQuota {
            group: "/labq".into(),
            throttled: Throttled { periods: 88, throttled: 61, ns, cpus: 0.2 },
        };
        let (none, some, more) = (of(0), of(1_000_000), of(9_000_000));
        assert_eq!(quota([].into_iter(), 5_000_000), "");
        assert_eq!(quota([(0, &none)].into_iter(), 5_000_000), "");
        assert_eq!(
            quota([(0, &some), (1, &more)].into_iter(), 5_000_000),
            " The CPU quota of /labq throttled vCPU 1 in 69.3 % of periods, up to 5.0 ms of that: raise it first."
        );
    }
}
