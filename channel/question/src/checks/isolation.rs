//! Did frames go where the flow table forbids it, and did an honest side survive its peer?

use super::super::flows::Changed;
use super::super::measured::Channel;
use super::super::rules::STALE;
use base::number::{counted, many, percent, thousands};
use base::{Evidence, Severity};
use facts::rule::Hit;

/// Frames that went where no rule of the flow table let them, and senders that were late to know.
pub(crate) fn stale(channel: &Channel<'_>) -> Vec<Hit> {
    let of = |one: &Changed<'_>| {
        let wrong = one.sum(|run| run.misdelivered);
        let (stale, faults) = (one.sum(|run| run.stale_sent), one.sum(|run| run.acknowledgement_faults));
        let (severity, title) = if wrong > 0 {
            (Severity::High, format!("{} delivered though the flow table forbade it", were(wrong, "frame")))
        } else if faults > 0 {
            (Severity::High, format!("{} acknowledged an epoch that cannot be", counted(faults, "machine", "machines")))
        } else if one.stale_share() > STALE {
            let share = percent(one.stale_share());
            (
                Severity::Low,
                format!(
                    "{share} of frames were sent by rules that had been revoked; the receivers dropped what was too late"
                ),
            )
        } else {
            return None;
        };
        let hit =
            Hit { level: Some(one.level), ..Hit::new(format!("{}: {} VMs", one.machine, one.vms), severity, title) };
        let place = |what: String| {
            Evidence::in_table(what, "channel.flows")
                .key("machine", one.machine)
                .key("vms", u64::from(one.vms))
                .key("asked_per_s", one.asked_per_s)
        };
        let sent = many(one.sum(|run| run.sent), "frame");
        let what = format!(
            "{}: of {sent} sent {} were stale, {} misdelivered",
            one.name(),
            thousands(stale),
            thousands(wrong)
        );
        Some(hit.with(place(what)))
    };
    channel.flows.iter().filter_map(of).collect()
}

fn were(count: u64, what: &str) -> String {
    format!("{} {}", many(count, what), if count == 1 { "was" } else { "were" })
}

/// Rules whose breach an honest side did not survive.
pub(crate) fn fault(channel: &Channel<'_>) -> Vec<Hit> {
    let failed = channel.faults.iter().filter(|one| one.survived() == Some(false)).map(|one| {
        let title = format!("An honest side did not survive a peer that broke rule {}: {}", one.rule(), one.words());
        let shown = one.shown();
        let what = format!("{}: {}", shown.what, shown.why);
        let evidence =
            Evidence::in_table(what, "channel.faults").key("machine", one.machine).key("rule", u64::from(one.rule()));
        let hit = Hit::new(format!("{}: rule {}", one.machine, one.rule()), Severity::High, title);
        Hit { level: Some(one.level), ..hit }.with(evidence)
    });
    failed.collect()
}

#[cfg(test)]
mod tests {
    use super::super::super::measured::Channel;
    use super::super::super::rules::findings;
    use super::super::super::tests::benches;
    use base::Severity;
    use base::bench::Measured;
    use base::channel::{Fault, Faults, FlowRun};
    use facts::machines::Machines;

    fn found(one: Measured) -> Vec<(String, Severity)> {
        let mut benches = benches(&[]);
        benches.runs[0].bench.results = vec![one];
        let findings = findings(&Channel::of(&benches, &Machines::default()));
        findings.iter().map(|finding| (finding.id(), finding.severity)).collect()
    }

    fn changed(stale_sent: u64, misdelivered: u64, acknowledgement_faults: u64) -> Measured {
        let flows = FlowRun {
            vms: 2,
            asked_per_s: 10_000,
            ns: 1_000_000_000,
            changes: 10_000,
            revocations: 6_000,
            grace: 50,
            sent: 1_000_000,
            stale_sent,
            delivered: 900_000,
            dropped: 100_000,
            misdelivered,
            lag_p99_ns: vec![],
            unacknowledged: 0,
            acknowledgement_faults,
            shared_cpus: false,
        };
        Measured { flows: Some(Box::new(flows)), ..Measured::default() }
    }

    #[test]
    fn one_misdelivered_frame_is_critical_and_stale_ones_that_were_dropped_are_not() {
        let id = "CHN-STALE@L0: 2 VMs".to_owned();
        assert_eq!(found(changed(9_000, 0, 0)), []);
        assert_eq!(found(changed(11_000, 0, 0)), [(id.clone(), Severity::Low)]);
        assert_eq!(found(changed(0, 1, 0)), [(id.clone(), Severity::High)]);
        assert_eq!(found(changed(0, 0, 1)), [(id, Severity::High)]);
    }

    #[test]
    fn a_rule_that_was_not_survived_is_critical_and_one_that_nothing_breaks_is_not() {
        let fault = |rule, survived| Fault {
            rule,
            what: "something".into(),
            injected: 1,
            seen: None,
            survived,
            why: "the honest side hung".into(),
        };
        let rules = vec![fault(4, Some(true)), fault(7, Some(false)), fault(12, None)];
        let one = Measured { faults: Some(Box::new(Faults { rules })), ..Measured::default() };
        assert_eq!(found(one), [("CHN-FAULT@L0: rule 7".to_owned(), Severity::High)]);
    }
}
