//! How long was the guest dark, by each way to tell?

use super::network;
use base::{Cell, Table, TableSpec, shown, table};
use facts::migrations::{Migration, REPORTED_ERROR_NS};

pub(super) const DOWNTIMES: TableSpec = table! {
    migration.downtimes version 1:
    "The dark time of one run by one definition: `vmm_reported` by QEMU's own account, `vmm_events` from its event STOP on the source to \
          RESUME on the target, `vmm_checkpoints` from src-downtime-start to vm-started in its trace of both, \
          `guest` by its heartbeat, seen in the memory of both sides, `net` from the last packet that it answered from the source to the first \
          one from the target. `difference_ns` is to the row before that has a value; where there is no value, `cause` has the reason. \
          `measured_by` names the definition for people.";
    key definition, ns value_ns, ns error_ns, i64("ns") difference_ns, text cause, key_u64("") run, text measured_by;
    shown![
        "How long the guest was dark", 40;
        run, measured_by: "by", value_ns: "dark", error_ns: "give or take", difference_ns: "difference",
        cause: "because of",
    ]
};

/// What a row says: the value, or why there is none, and its error.
type Said = (Option<u64>, Option<String>, u64);

/// The dark time by one definition.
pub(super) struct Defined {
    pub name: &'static str,
    /// `None` where nothing tells.
    pub said: Option<Said>,
    /// When it began by that definition, CLOCK_REALTIME, where that is known.
    pub began_ns: Option<u64>,
}

/// What measured it, for people.
pub(super) fn measured_by(definition: &str) -> &'static str {
    match definition {
        "vmm_reported" => "QEMU's own account",
        "vmm_events" => "QEMU's events",
        "vmm_checkpoints" => "QEMU's trace",
        "guest" => "the guest's heartbeat",
        _ => "the network",
    }
}

/// By all definitions that can be told of a VMM and its guest.
pub(super) fn definitions(migration: &Migration) -> [Defined; 5] {
    let reported = migration.last(|poll| poll.downtime_ms).map(|ms| ms.saturating_mul(1_000_000));
    let known = |value_ns: Option<u64>, error_ns| value_ns.map(|ns| (Some(ns), None, error_ns));
    let started_ns = migration.source.as_ref().and_then(|side| side.passed("src-downtime-start"));
    let last_ns = migration.heartbeat.as_ref().map(|heartbeat| heartbeat.last_on_source_ns);
    let last_packet_ns = migration.train.as_ref().and_then(|train| train.last_on_source_ns);
    [
        ("vmm_reported", known(reported, REPORTED_ERROR_NS), started_ns),
        ("vmm_events", known(migration.by_events(), migration.across_ns()), migration.stopped_ns),
        ("vmm_checkpoints", known(migration.by_checkpoints(), migration.across_ns()), started_ns),
        ("guest", by_heartbeat(migration), last_ns),
        ("net", by_packets(migration), last_packet_ns),
    ]
    .map(|(name, said, began_ns)| Defined { name, said, began_ns })
}

/// By the heartbeat; `None` where nobody looked.
fn by_heartbeat(migration: &Migration) -> Option<Said> {
    let error_ns = migration.heartbeat.as_ref()?.error_ns();
    Some(match migration.by_heartbeat()? {
        Ok(dark_ns) => (Some(dark_ns), None, error_ns),
        Err(why) => (None, Some(why), error_ns),
    })
}

/// By packets; `None` where none were sent, or the guest was not moved.
fn by_packets(migration: &Migration) -> Option<Said> {
    let train = migration.train.as_ref().filter(|_| migration.is_completed())?;
    let (value_ns, why) = match train.dark_ns() {
        Ok(dark_ns) => (Some(dark_ns), None),
        Err(why) => (None, Some(why)),
    };
    Some((value_ns, why, train.error_ns()))
}

/// By how much the guest was out of reach for less than it stood still, or was kept stopped where nobody saw it itself, beyond the errors of
/// both: one of the two is wrong.
pub(super) fn net_breach_ns(migration: &Migration) -> Option<u64> {
    let (net_ns, _, net_error_ns) = by_packets(migration)?;
    let seen = by_heartbeat(migration).and_then(|(guest_ns, _, error_ns)| Some((guest_ns?, error_ns)));
    let (guest_ns, error_ns) = seen.or_else(|| Some((migration.by_events()?, migration.across_ns())))?;
    let least_ns = guest_ns.checked_sub(error_ns.saturating_add(net_error_ns))?;
    least_ns.checked_sub(net_ns?).filter(|ns| *ns > 0)
}

/// By how much the guest was dark for less than its VMM kept it stopped, beyond the errors of both: one of the two is wrong.
pub(super) fn breach_ns(migration: &Migration) -> Option<u64> {
    let (guest_ns, _, error_ns) = by_heartbeat(migration)?;
    let least_ns = migration.by_events()?.checked_sub(error_ns.saturating_add(migration.across_ns()))?;
    least_ns.checked_sub(guest_ns?).filter(|ns| *ns > 0)
}

/// How long the guest was still dark when the source believed that it was over: the target loads devices and starts it.
fn after_the_source(migration: &Migration) -> Option<u64> {
    let believed_ns = migration.source.as_ref()?.passed("src-downtime-end")?;
    migration.target.as_ref()?.started()?.checked_sub(believed_ns)
}

/// Why one definition says more than the one before.
fn cause(migration: &Migration, definition: &str, difference_ns: i64, error_ns: u64) -> &'static str {
    let loaded = after_the_source(migration).filter(|_| definition == "vmm_checkpoints");
    let is_of_target = loaded.is_some_and(|loaded_ns| {
        i64::try_from(loaded_ns).is_ok_and(|loaded_ns| loaded_ns.abs_diff(difference_ns) <= error_ns)
    });
    let is_of_packets = definition == "net" && difference_ns > 0;
    // An announcement that is less late than the error explains nothing.
    let least_ns = difference_ns.unsigned_abs().saturating_sub(error_ns).max(error_ns);
    match difference_ns.unsigned_abs() {
        within if within <= error_ns => "within the error",
        _ if is_of_target => "device load, after the source's end",
        _ if is_of_packets && network::waited_for_announcement(migration, least_ns) => "announce",
        _ => "unexplained",
    }
}

pub(super) fn table(migrations: &[Migration]) -> Table {
    let mut table = Table::new(&DOWNTIMES);
    for (run, migration) in migrations.iter().enumerate() {
        let mut before: Option<(u64, u64)> = None;
        for Defined { name: definition, said, .. } in definitions(migration) {
            let Some((value_ns, why, error_ns)) = said else { continue };
            let Some(value_ns) = value_ns else {
                let why = why.map_or(Cell::Missing, Cell::from);
                table.push(vec![
                    definition.into(),
                    Cell::Missing,
                    error_ns.into(),
                    Cell::Missing,
                    why,
                    (run as u64).into(),
                    measured_by(definition).into(),
                ]);
                continue;
            };
            let difference = before.map(|(before, _)| {
                let difference = i128::from(value_ns) - i128::from(before);
                difference.clamp(i64::MIN.into(), i64::MAX.into()) as i64
            });
            let error_of_both = before.map_or(0, |(_, before)| before.saturating_add(error_ns));
            table.push(vec![
                definition.into(),
                value_ns.into(),
                error_ns.into(),
                difference.map_or(Cell::Missing, Cell::I64),
                difference.map_or(Cell::Missing, |ns| cause(migration, definition, ns, error_of_both).into()),
                (run as u64).into(),
                measured_by(definition).into(),
            ]);
            before = Some((value_ns, error_ns));
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::heartbeat::{Heartbeat, SCHEMA};
    use facts::migrations::{Clocks, Train};

    /// Stopped for 20 ms by its events; the heartbeat was dark for so long, and the poller away.
    fn moved(dark_us: u64, gap_us: u64) -> Migration {
        let us = |us: u64| us * 1_000;
        Migration {
            stopped_ns: Some(us(10_000)),
            resumed_ns: Some(us(30_000)),
            heartbeat: Some(Heartbeat {
                schema: SCHEMA.to_owned(),
                last_on_source_ns: us(9_900),
                first_on_target_ns: us(9_900 + dark_us),
                poller_max_gap_ns: us(gap_us),
                period_ns: us(100),
            }),
            ..Migration::default()
        }
    }

    #[test]
    fn a_poller_that_was_away_for_more_than_a_tenth_has_no_value_and_a_cause() {
        let guest = |migration: &Migration| table(std::slice::from_ref(migration)).rows[1].clone();
        let row = guest(&moved(21_000, 2_100));
        assert_eq!(row[..4], ["guest".into(), 21_000_000_u64.into(), 2_200_000_u64.into(), Cell::I64(1_000_000)]);
        assert_eq!(row[4], "within the error".into());
        assert_eq!(guest(&moved(25_000, 2_100))[4], "unexplained".into());
        let row = guest(&moved(21_000, 2_101));
        assert_eq!((&row[1], &row[3]), (&Cell::Missing, &Cell::Missing));
        assert_eq!(row[4], "rejected: the poller was away for 2.1 ms of 21.0 ms".into());
    }

    /// The same, out of reach from 9 ms on for so long, and announced at that time.
    fn unreached(net_us: u64, announced_us: u64) -> Migration {
        let us = |us: u64| us * 1_000;
        let train = Train {
            interval_ns: us(1_000),
            last_on_source_ns: Some(us(9_000)),
            first_on_target_ns: Some(us(9_000 + net_us)),
            sender_gap_ns: us(1_000),
            announced_ns: Some(us(announced_us)),
            ..Train::default()
        };
        Migration { train: Some(train), ended: Some((us(40_000), "completed".to_owned())), ..moved(20_500, 100) }
    }

    #[test]
    fn a_network_that_came_back_only_when_the_guest_was_announced_says_so() {
        let net = |migration: &Migration| table(std::slice::from_ref(migration)).rows[2].clone();
        // 2 ms by the packets, 200 us by the heartbeat.
        let row = net(&unreached(22_700, 29_900));
        assert_eq!(row[..4], ["net".into(), 22_700_000_u64.into(), 2_000_000_u64.into(), Cell::I64(2_200_000)]);
        assert_eq!(row[4], "within the error".into());
        // It ran at 30 ms, and was reached at 69 ms: 39.5 ms more than the guest stood still.
        assert_eq!(net(&unreached(60_000, 68_000))[4], "announce".into());
        assert_eq!(net(&unreached(60_000, 67_299))[4], "unexplained".into(), "less late than that");
        assert_eq!(net(&unreached(22_701, 31_000))[4], "unexplained".into(), "1 ms may be nothing");
        assert_eq!(net(&unreached(60_000, 69_001))[4], "unexplained".into(), "it was reached before");
        let failed = Migration { ended: None, ..unreached(22_700, 29_900) };
        assert_eq!(table(std::slice::from_ref(&failed)).rows.len(), 2, "a guest that was not moved");
    }

    #[test]
    fn numbers_that_no_clock_has_are_no_end() {
        let mut migration = unreached(u64::MAX / 1_000 - 9_000, 0);
        migration.train.as_mut().unwrap().interval_ns = u64::MAX;
        migration.clocks = Clocks::Within(u64::MAX);
        assert_eq!((table(std::slice::from_ref(&migration)).rows.len(), net_breach_ns(&migration)), (3, None));
        assert_eq!(breach_ns(&migration), None);
    }

    #[test]
    fn a_guest_that_was_reached_while_it_stood_still_is_a_breach() {
        // 20.5 ms less 2.2 ms; without a heartbeat 20 ms less 2.002 ms.
        assert_eq!([18_300, 18_299].map(|us| net_breach_ns(&unreached(us, 0))), [None, Some(1_000)]);
        let unseen = |us| Migration { heartbeat: None, ..unreached(us, 0) };
        assert_eq!([17_998, 17_997].map(|us| net_breach_ns(&unseen(us))), [None, Some(1_000)]);
    }

    #[test]
    fn a_guest_that_ran_while_its_vmm_had_stopped_it_is_a_breach() {
        // 100 us of gap, 100 us of period, 2 us of events.
        assert_eq!([20_000, 19_798, 19_797].map(|us| breach_ns(&moved(us, 100))), [None, None, Some(1_000)]);
        assert_eq!(breach_ns(&moved(1_000, 101)), None, "what is rejected breaks no law");
    }
}
