//! Did frames arrive as they were sent, and did anybody look?

use super::super::delays::Delayed;
use super::super::dpdk;
use super::super::measured::{Channel, Measured};
use super::{MOST_SHOWN, by_machine, by_path, hit, of_path, seen, setup};
use base::channel::Setup;
use base::number::{counted, list, many, thousands};
use base::{Evidence, Severity};
use facts::rule::Hit;

/// Frames that did not arrive as they were sent.
pub(crate) fn wrong(channel: &Channel<'_>) -> Vec<Hit> {
    let of = |one: &Measured<'_>| one.wrong().map(|(_, count)| count.unwrap_or(0));
    let all = |counts: [u64; 4]| counts.into_iter().fold(0, u64::saturating_add);
    let words = |one: &Measured<'_>, counts: [u64; 4]| {
        let some = one.wrong().into_iter().zip(counts).filter(|(_, count)| *count > 0);
        list(&some.map(|((name, _), count)| format!("{} {name}", thousands(count))).collect::<Vec<_>>())
    };
    let paths = by_path(channel, |one| Some(all(of(one))).filter(|count| *count > 0).map(|count| count as f64));
    let found = paths.into_iter().map(|own| {
        let mut sums = [0_u64; 4];
        for (one, _) in &own {
            sums.iter_mut().zip(of(one)).for_each(|(sum, count)| *sum = sum.saturating_add(count));
        }
        let title = format!("{} did not arrive as sent: {}", many(all(sums), "frame"), words(own[0].0, sums));
        let first = hit(own[0].0, of_path(own[0].0), Severity::High, title);
        let shown = own.iter().take(MOST_SHOWN);
        shown.fold(first, |hit, (one, _)| hit.with(seen(format!("{}: {}", setup(one), words(one, of(one))), one)))
    });
    found.chain(wrong_at_rates(channel)).collect()
}

/// The same of frames that were sent by the clock.
fn wrong_at_rates<'c>(channel: &'c Channel<'_>) -> impl Iterator<Item = Hit> + 'c {
    let of = |one: &'c Delayed<'_>| {
        let Setup { path, size_bytes, batch, .. } = one.setup;
        let subject = format!("{}: {path}, {size_bytes} B, batch {batch}, {}", one.machine, one.load);
        let title = format!("{} sent by the clock arrived twice, late or changed", many(one.wrong(), "frame"));
        let evidence = Evidence::in_table(title.clone(), "channel.delays")
            .key("machine", one.machine)
            .key("path", path.as_str())
            .key("size_bytes", u64::from(*size_bytes))
            .key("batch", u64::from(*batch))
            .key("load", one.load.as_str());
        Hit { level: Some(one.level), ..Hit::new(subject, Severity::High, title) }.with(evidence)
    };
    channel.delays.iter().filter(|one| one.wrong() > 0).map(of)
}

/// Rates of frames that nobody looked at.
pub(crate) fn unverified(channel: &Channel<'_>) -> Vec<Hit> {
    let found = by_machine(channel, |_, one| (!one.is_verified()).then_some(1.0)).into_iter().map(|(host, own)| {
        let all = channel.measured().filter(|one| one.machine == host.machine).count() as u64;
        let title =
            format!("{} of {} carried frames that were not verified", own.len(), counted(all, "setup", "setups"));
        let mut found = hit(own[0].0, host.machine.clone(), Severity::Low, title);
        // Nothing makes programs of others look.
        let path = if own.iter().all(|(one, _)| dpdk::is_of(one)) { " --path ring" } else { "" };
        found.fix = vec![format!("kvmscope bench channel{path}   # frames are verified unless --no-verify is given")];
        own.iter().take(MOST_SHOWN).fold(found, |hit, (one, _)| {
            let why = if dpdk::is_of(one) { "unverified: DPDK's programs look at no frame" } else { "unverified" };
            hit.with(seen(format!("{}: {why}", setup(one)), one))
        })
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::super::super::tests::Made;
    use super::super::tests::{found, ids};
    use base::channel::PAIRS;
    use std::slice::from_ref;

    #[test]
    fn frames_that_arrive_otherwise_than_sent_come_first() {
        let made = Made { wrong: [10, 0, 0, 2], pair: PAIRS[4], ..Made::default() };
        let findings = found(from_ref(&made), |_| {});
        assert_eq!((findings[0].rule, findings[0].severity), ("CHN-WRONG", base::Severity::High));
        assert_eq!(findings[0].title, "12 frames did not arrive as sent: 10 lost and 2 torn");
        assert_eq!(ids(&[Made { wrong: [0; 4], ..made }]), ["CHN-NODES"]);
    }

    #[test]
    fn frames_that_nobody_looked_at_are_told() {
        let made = Made { verified: false, ..Made::default() };
        assert_eq!((ids(from_ref(&made)), ids(&[Made { verified: true, ..made }])), (vec!["CHN-UNVERIFIED"], vec![]));
    }
}
