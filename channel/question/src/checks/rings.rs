//! Does a ring fit into the cache, and are its kicks needed?

use super::super::machines::Host;
use super::super::measured::{Channel, Measured};
use super::super::rules::{BUSY, KICKS};
use super::{MOST_SHOWN, by_machine, by_path, hit, of_path, seen, setup, timed};
use base::Severity;
use base::number::{amount, bytes, percent, thousands};
use facts::rule::Hit;

/// Kicks of sides that run anyway.
pub(crate) fn kicks(channel: &Channel<'_>) -> Vec<Hit> {
    let paths = by_path(channel, |one| {
        let is_busy = one.busy_share().is_some_and(|share| share > BUSY);
        one.kicks_per_packet().filter(|kicks| *kicks > KICKS && is_busy && timed(one))
    });
    let found = paths.into_iter().map(|own| {
        let (worst, kicks) = own[0];
        let busy = |one: &Measured<'_>| one.busy_share().map_or_else(|| "-".to_owned(), percent);
        let title = format!(
            "{} for each packet, though each side ran {} of the time",
            amount(round(kicks), "kicks"),
            busy(worst)
        );
        let found = hit(worst, of_path(worst), Severity::Medium, title);
        own.iter().take(MOST_SHOWN).fold(found, |hit, (one, kicks)| {
            let what = format!(
                "{}: {} for each packet, each side ran {}",
                setup(one),
                amount(round(*kicks), "kicks"),
                busy(one)
            );
            hit.with(seen(what, one))
        })
    });
    found.collect()
}

fn round(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

/// Rings that do not fit into a cache.
pub(crate) fn ring(channel: &Channel<'_>) -> Vec<Hit> {
    let size = |one: &Measured<'_>| one.launches.iter().map(|(_, run)| run.ring_bytes).max().unwrap_or(0);
    let large = |host: &Host, one: &Measured<'_>| host.l2_bytes.filter(|l2| size(one) > *l2).map(|_| size(one) as f64);
    let found = by_machine(channel, large).into_iter().map(|(host, own)| {
        let (one, ring_bytes) = own[0];
        let l2_bytes = host.l2_bytes.unwrap_or(0);
        let title = format!(
            "A ring of {} is larger than the second-level cache of {}",
            bytes(ring_bytes),
            bytes(l2_bytes as f64)
        );
        let mut found = hit(one, host.machine.clone(), Severity::Low, title);
        let slots = one.launches.iter().map(|(_, run)| run.slots).max().unwrap_or(0);
        let fitting = (0..16)
            .map(|halvings| slots >> halvings)
            .find(|fitting| *fitting > 0 && ring_bytes * f64::from(*fitting) / f64::from(slots) <= l2_bytes as f64);
        found.fix = fitting.map(|slots| format!("kvmscope bench channel --slots {slots}")).into_iter().collect();
        let what = format!("{}: {} of {} slots", setup(one), bytes(ring_bytes), thousands(slots.into()));
        found.with(seen(what, one)).seen(bytes(l2_bytes as f64), "sys/devices/system/cpu/cpu*/cache/index*/size")
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::super::super::tests::Made;
    use super::super::tests::{NOTHING, found, ids};
    use base::channel::Side;

    #[test]
    fn kicks_are_told_where_both_sides_are_busy() {
        // 15 million frames in 300 ms.
        let made = |kicks| Made { policy: "kick", kicks, ..Made::default() };
        assert_eq!((ids(&[made(1_800_000)]), ids(&[made(1_200_000)])), (vec!["CHN-KICKS"], vec![]));
        let every = Made { kicks: 15_000_000, ..made(0) };
        assert!(found(&[every], |_| {})[0].title.starts_with("1 kick for each packet"), "one of them has no s");
        let idle = Side { cpu: 1, cpu_ns: 100_000_000, ..Side::default() };
        assert_eq!(ids(&[Made { consumer: idle, ..made(1_800_000) }]), NOTHING, "the receiver sleeps in between");
    }

    #[test]
    fn a_ring_is_held_against_the_cache_where_its_size_is_told() {
        let rules = |l2_bytes| {
            found(&[Made { ring_bytes: 4 << 20, ..Made::default() }], |channel| channel.hosts[0].l2_bytes = l2_bytes)
        };
        let findings = rules(Some(1 << 20));
        assert_eq!(
            (findings[0].rule, findings[0].fix.as_slice()),
            ("CHN-RING", &["kvmscope bench channel --slots 1024".to_owned()][..])
        );
        assert!(rules(Some(4 << 20)).is_empty() && rules(None).is_empty());
    }
}
