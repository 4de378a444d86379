//! A side lost its CPU: what that cost, to whom, and how to keep that one away.

use super::super::culprits::{Culprit, Culprits, Group, Key};
use super::super::machines::Host;
use super::super::measured::{Channel, Measured};
use super::super::rules::LOST;
use super::{MOST_SHOWN, by_machine, hit, seen, setup, timed};
use base::number::{counted, duration, many, packets_per_s, percent};
use base::shell::printable;
use base::{About, Cost, CostKind, CpuSet, Evidence, Needs, Severity};
use facts::rule::Hit;
use walk::kernel_threads::is_bound;

/// A side lost its CPU, and that cost something.
pub(crate) fn preempted(channel: &Channel<'_>) -> Vec<Hit> {
    // What cannot be measured at all lost more than what can.
    let lost = |one: &Measured<'_>| one.lost_share().unwrap_or(1.0);
    let is_taken = |one: &Measured<'_>| one.involuntary() > 0 || worst(&channel.culprits, one).is_some();
    let taken = |one: &Measured<'_>| (timed(one) && lost(one) > LOST && is_taken(one)).then(|| lost(one));
    by_machine(channel, |_, one| taken(one)).into_iter().map(|(host, own)| found(channel, host, &own)).collect()
}

fn found(channel: &Channel<'_>, host: &Host, own: &[(&Measured<'_>, f64)]) -> Hit {
    let count = own.iter().fold(0_u64, |sum, (one, _)| sum.saturating_add(one.involuntary()));
    let (worst, share) = own[0];
    let cost = match worst.clean_mpps() {
        Some(_) => format!("up to {} of the rate was lost", percent(share)),
        None => "too few slices were clean to determine the rate".to_owned(),
    };
    let is_own = |key: &Key<'_>| own.iter().any(|(one, _)| is_of(key, one));
    let sum = channel.culprits.sum(is_own);
    let most = sum.as_ref().and_then(|sum| Some((sum.worst()?, sum)));
    let by = match &most {
        Some((group, sum)) => format!("; {} took {} of the time in gaps", group.words(), percent(sum.share(group.ns))),
        None => String::new(),
    };
    let setups = many(own.len() as u64, "setup");
    let title = match count {
        0 => format!("A side did not get on in {setups}: {cost}{by}"),
        _ => format!("One side lost its CPU {} ({setups}): {cost}{by}", counted(count, "time", "times")),
    };
    let mut found = hit(worst, host.machine.clone(), Severity::High, title);
    let sides = own.iter().flat_map(|(one, _)| &one.launches);
    let cpus: CpuSet = sides.flat_map(|(_, run)| run.sides().map(|side| side.cpu)).collect();
    if let Some((group, _)) = &most {
        keep_away(&mut found, &group.most, host, &cpus);
    }
    // The kernel needs a CPU for its own work.
    if !host.other_cpus.as_ref().is_some_and(CpuSet::is_empty) {
        found.fix.push(format!(
            "# at the next boot: isolcpus=managed_irq,domain,{cpus} nohz_full={cpus}   # CPUs of the two sides"
        ));
        found.undo.push("# at the next boot: without isolcpus= and nohz_full=".to_owned());
    }
    if worst.clean_mpps().is_some() {
        found.cost = Cost::of(CostKind::Measured, share, "share of the rate");
    }
    found.evidence.extend(channel.culprits.longest(is_own).map(|longest| in_gap(channel, longest)));
    own.iter().take(MOST_SHOWN).fold(found, |hit, (one, _)| {
        let raw = one.raw_mpps().map_or_else(|| "-".to_owned(), |mpps| packets_per_s(mpps * 1e6));
        let clean = match one.clean_mpps() {
            Some(mpps) => format!("{} in clean slices", packets_per_s(mpps * 1e6)),
            None => format!("{} of the slices were clean", percent(one.clean_share())),
        };
        let taken = counted(one.involuntary(), "involuntary switch", "involuntary switches");
        hit.with(seen(format!("{}: {taken}, {raw} over all of the time, {clean}", setup(one)), one))
    })
}

fn is_of((machine, of, ..): &Key<'_>, one: &Measured<'_>) -> bool {
    *machine == one.machine && *of == one.setup
}

/// Who took most of the gaps of one setup, if a trace names it.
fn worst(culprits: &Culprits<'_>, one: &Measured<'_>) -> Option<Group> {
    culprits.sum(|key| is_of(key, one))?.worst().cloned()
}

/// The longest gap, which timelines show.
fn in_gap(channel: &Channel<'_>, (key, explained): (&Key<'_>, &super::super::culprits::Explained)) -> Evidence {
    let &(machine, setup, launch, tid, at_ns) = key;
    let by = explained.by().unwrap_or_else(|| "unknown".to_owned());
    let of_run = channel.measured().filter(|one| is_of(key, one)).flat_map(|one| &one.launches);
    let mut side = of_run.filter(|(number, _)| *number == launch).map(|(_, run)| run);
    let side = side.find_map(|run| run.sides().position(|side| side.tid == tid));
    let thread = super::super::tables::thread(setup, side.unwrap_or_default());
    let what = format!("the longest gap, {} of the {thread}: {by}", duration(explained.span.length_ns() as f64));
    Evidence::in_table(what, "channel.gaps")
        .key("machine", machine)
        .key("thread", thread.as_str())
        .key("path", setup.path.as_str())
        .key("window", setup.window.as_str())
        .key("size_bytes", u64::from(setup.size_bytes))
        .key("batch", u64::from(setup.batch))
        .key("policy", setup.policy.as_str())
        .key("vms", u64::from(setup.vms))
        .key("launch", u64::from(launch))
        .key("at_ns", at_ns)
        .about([About::Thread { tid }, About::Span(explained.span)])
}

/// What keeps a culprit off the CPUs of the two sides; it comes before the rule's own commands.
fn keep_away(found: &mut Hit, culprit: &Culprit, host: &Host, cpus: &CpuSet) {
    let others = host.other_cpus.as_ref().filter(|others| !others.is_empty());
    match culprit {
        Culprit::Thread(name, tid) => {
            if let Some(others) = others.filter(|_| !is_bound(name)) {
                found.fix.push(format!("taskset -cp {others} {tid}   # {name}: to CPUs without a side of the channel"));
                found.undo.push(format!("taskset -cp {} {tid}   # {name}: to any CPU", others.or(cpus)));
            }
            found.fix.extend((!host.is_real_time).then(|| {
                format!(
                    "kvmscope bench channel --fifo   # keeps ordinary threads off; whether {name} is one: chrt -p {tid}"
                )
            }));
        }
        Culprit::Interrupt(name, Some(irq)) => {
            if let Some(others) = others {
                let file = format!("/proc/irq/{irq}/smp_affinity_list");
                found.fix.push(format!("echo {others} > {file}   # {}", printable(name)));
                found.undo.push(format!("echo {} > {file}", others.or(cpus)));
            }
        }
        Culprit::Below => {
            found.fix.push(
                "virsh vcpupin DOMAIN VCPU CPU   # on the host below: a dedicated CPU for each of the two vCPUs"
                    .to_owned(),
            );
            found.needs = Some(Needs::OuterLevel);
        }
        Culprit::Interrupt(_, None) | Culprit::Idle | Culprit::Itself | Culprit::Asleep => {}
        Culprit::Lost | Culprit::Unknown => {}
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::tests::Made;
    use super::super::tests::{NOTHING, found, ids};
    use base::channel::Side;
    use std::slice::from_ref;

    #[test]
    fn a_cpu_that_was_taken_is_told_with_what_that_cost() {
        let side = |involuntary| Side { involuntary, cpu: 1, cpu_ns: 300_000_000, ..Side::default() };
        let made = Made { raw: 0.6, clean: 0.7, consumer: side(7), ..Made::default() };
        let findings = found(from_ref(&made), |_| {});
        assert_eq!(findings[0].title, "One side lost its CPU 7 times (1 setup): up to 40.0 % of the rate was lost");
        assert!(
            findings[0].evidence[0]
                .what
                .ends_with("7 involuntary switches, 30.00 Mpps over all of the time, 50.00 Mpps in clean slices")
        );
        let isolates = |line: &String| line.contains("isolcpus=managed_irq,domain,0-1 nohz_full=0-1");
        assert!(findings[0].fix.iter().any(isolates), "{:?}", findings[0].fix);
        assert_eq!(ids(&[Made { consumer: side(0), ..made.clone() }]), NOTHING, "nobody took it");
        assert_eq!(ids(&[Made { raw: 0.96, ..made.clone() }]), NOTHING, "it cost nothing to speak of");
        let unmeasured = found(&[Made { clean: 0.1, ..made }], |_| {});
        assert!(
            unmeasured[0].title.ends_with("too few slices were clean to determine the rate"),
            "{}",
            unmeasured[0].title
        );
    }
}
