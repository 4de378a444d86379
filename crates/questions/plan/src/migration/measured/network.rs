//! Was the guest reached while it was moved? What numbered packets saw of it.

use super::culprits;
use super::rules::{Rule, Run};
use base::network::{Down, Link};
use base::number::{bytes, counted, duration, many, percent, thousands};
use base::rule::limit;
use base::{Cell, Cost, CostKind, Evidence, Severity, Table, TableSpec, shown, table};
use facts::migrations::{Migration, Train};
use facts::rule::Hit;

pub(super) const NETWORK: TableSpec = table! {
    migration.network version 1:
    "The packets of one run that went to the guest and were to come back. `lost_in` never reached it and `lost_out` were answered, by the guest's \
     own count, which misses the last ones; `late` were sent before the target had answered anything and answered by it after more than an interval. \
          `announced_ns` is when reverse ARP announced the guest to the switch, since it ran there: below 0 before. `link_bytes` is what the \
          kernel counted of the stream that carried the guest, without headers, and `transferred_bytes` QEMU's account of it.";
    key_u64("") run, count sent, count lost, count lost_in, count lost_out, count late, count reordered,
    count duplicates, i64("ns") announced_ns, ns interval_ns, ns sender_gap_ns, u64("bytes") link_bytes,
    u64("bytes") transferred_bytes;
    shown![
        "Packets to the guest while it was moved", 40;
        run, sent, lost, lost_in: "on the way in", lost_out: "on the way out", late, reordered: "out of order",
        duplicates: "twice", announced_ns: "announced",
    ]
};

/// A guest that is announced later than this after it runs keeps the goal of 25 ms no more (docs/read/latency.md, `downtime_net`).
const ANNOUNCED_NS: u64 = 25_000_000;
/// Counts of the same bytes that differ by more are of different bytes.
const SAME_BYTES: f64 = 0.01;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "MIG-ANNOUNCE",
        per: "run",
        looks_at: "Whether reverse ARP told the network where the guest is, once it ran on the target.",
        limits: &[limit("announced after the guest ran", ANNOUNCED_NS as f64, "ns")],
        why: "Switches send what is for the guest to the port at which they last heard of it. Until QEMU announces the guest at its new port, or \
              the guest itself says something there, all of that goes to the old host and is lost.",
        fix: &[
            "virsh qemu-monitor-command DOMAIN --hmp announce_self   # on the target: at once",
            "virsh qemu-monitor-command DOMAIN --hmp migrate_set_parameter announce-rounds 5   # on the target, before the next one",
        ],
        undo: &[
            "virsh qemu-monitor-command DOMAIN --hmp migrate_set_parameter announce-rounds ROUNDS   # what info migrate_parameters had",
        ],
        source: "qemu_announce_self in net/announce.c and process_incoming_migration_bh in migration/migration.c, QEMU 7.2",
        ..Rule::checked_by(unannounced)
    },
    Rule {
        id: "MIG-LINK",
        per: "run",
        looks_at: "Whether the link that carries the guest was down meanwhile.",
        why: "TCP sends again what was on its way, after 200 ms and then after twice as long each time: a link that was down for a moment costs \
              more than that moment, and the guest dirties pages all the while.",
        fix: &["ip -s -d link show dev NIC   # on both hosts and their switches: who took it down?"],
        source: "TCP_RTO_MIN in include/net/tcp.h and tcp_retransmit_timer in net/ipv4/tcp_timer.c, Linux 6.12",
        ..Rule::checked_by(was_down)
    },
    Rule {
        id: "MIG-OLDER",
        per: "run",
        looks_at: "Whether the guest went on at the target with memory that is older than what it had at the source.",
        why: "What the guest wrote was not sent again: its memory is damaged, whatever else the migration says. Emulation (TCG) before QEMU \
              9.0 loses writes to pages whose dirty bits were fetched for a whole block of memory at once.",
        fix: &["qemu-system-x86_64 --version   # before 9.0: an update, or KVM instead of TCG"],
        source: "cpu_physical_memory_sync_dirty_bitmap in include/exec/ram_addr.h, QEMU 7.2 and 9.0",
        ..Rule::checked_by(went_back)
    },
];

/// When the guest was announced, since it ran on the target; `None` where it was not.
fn announced_since_ns(migration: &Migration, train: &Train) -> Option<i64> {
    let (announced_ns, resumed_ns) = train.announced_ns.zip(migration.resumed_ns)?;
    i64::try_from(i128::from(announced_ns) - i128::from(resumed_ns)).ok()
}

fn unannounced((run, migration, _): Run<'_>) -> Option<Hit> {
    let (train, resumed_ns) = (migration.train.as_ref()?, migration.resumed_ns?);
    let since_ns = announced_since_ns(migration, train);
    let late_ns = since_ns.and_then(|ns| u64::try_from(ns).ok());
    if since_ns.is_some() && late_ns.is_none_or(|ns| ns <= ANNOUNCED_NS) {
        return None;
    }
    let reached_ns = train.first_on_target_ns.map(|first_ns| first_ns.saturating_sub(resumed_ns));
    let reached = match reached_ns {
        None if train.is_cut => String::new(),
        None => ", and it was never reached there".to_owned(),
        Some(ns) => format!("; it was reached there after {}", duration(ns as f64)),
    };
    let severity = match reached_ns {
        // It said something itself in time, which it need not do the next time.
        Some(ns) if ns <= ANNOUNCED_NS => Severity::Low,
        Some(_) => Severity::Medium,
        None if train.is_cut => Severity::Medium,
        None => Severity::High,
    };
    let title = match late_ns {
        Some(ns) => format!("The guest was announced {} after it ran{reached}", duration(ns as f64)),
        None => format!("The guest was never announced where it went{reached}"),
    };
    let seen = format!("{} of {} were lost", thousands(train.lost()), counted(train.sent, "packet", "packets"));
    let mut hit = Hit::new(format!("run {run}"), severity, title).with(Evidence::in_table(seen, "migration.network"));
    if let Some(ns) = late_ns {
        let without_ns = reached_ns.map_or(ns, |reached_ns| reached_ns.min(ns));
        hit.cost = Cost::of(CostKind::Measured, without_ns as f64, "ns without network");
    }
    Some(hit)
}

fn was_down((run, migration, _): Run<'_>) -> Option<Hit> {
    let train = migration.train.as_ref()?;
    let until_ns = migration.ended.as_ref().map_or(u64::MAX, |(at_ns, _)| *at_ns);
    let meanwhile = train.downs.iter().filter(|down| down.to_ns > migration.began_ns && down.from_ns < until_ns);
    let length_ns = |down: &Down| down.to_ns.saturating_sub(down.from_ns);
    let longest = meanwhile.clone().max_by_key(|down| length_ns(down))?;
    let length = duration(length_ns(longest) as f64);
    let title = format!(
        "The link that carries the guest was down for {length} {}",
        culprits::phase(migration, longest.from_ns)
    );
    let again = train.link.map_or(0, |link| link.retransmitted);
    let seen =
        format!("{}; TCP sent {} again", many(meanwhile.count() as u64, "time"), counted(again, "segment", "segments"));
    let mut hit = Hit::new(format!("run {run}"), Severity::High, title).seen(seen, "part network");
    hit.cost = Cost::of(CostKind::Measured, length_ns(longest) as f64, "ns of the migration");
    Some(hit)
}

fn went_back((run, migration, _): Run<'_>) -> Option<Hit> {
    let back_by = migration.train.as_ref()?.back_by?;
    let title =
        format!("The guest went on with older memory: it had forgotten {}", counted(back_by, "packet", "packets"));
    Some(
        Hit::new(format!("run {run}"), Severity::High, title)
            .seen("its count in the first reply from the target", "part network"),
    )
}

/// True if the guest was reached again only when it was announced, and that came so much later than it ran.
pub(super) fn waited_for_announcement(migration: &Migration, least_ns: u64) -> bool {
    let Some(train) = &migration.train else { return false };
    let is_late =
        announced_since_ns(migration, train).and_then(|ns| u64::try_from(ns).ok()).is_some_and(|ns| ns >= least_ns);
    is_late && train.first_on_target_ns.zip(train.announced_ns).is_some_and(|(first_ns, told_ns)| first_ns >= told_ns)
}

pub(super) fn table(migrations: &[Migration]) -> Table {
    let mut table = Table::new(&NETWORK);
    for (run, migration) in migrations.iter().enumerate() {
        let Some(train) = &migration.train else { continue };
        table.push(vec![
            (run as u64).into(),
            train.sent.into(),
            train.lost().into(),
            train.lost_in.into(),
            train.lost_out.into(),
            train.late.into(),
            train.reordered.into(),
            train.duplicates.into(),
            announced_since_ns(migration, train).map_or(Cell::Missing, Cell::I64),
            train.interval_ns.into(),
            train.sender_gap_ns.into(),
            train.link.map(|link| link.bytes).into(),
            migration.last(|poll| poll.transferred_bytes).into(),
        ]);
    }
    table
}

/// `Of 1,304 packets to the guest 30 were lost (30 on the way in), 4 came late, 0 out of order and 0 twice; it was reached again after 38.6 ms.`
pub(super) fn sentence(migration: &Migration) -> Option<String> {
    let train = migration.train.as_ref()?;
    let (way_in, way_out) = train.lost_in.zip(train.lost_out).unwrap_or_default();
    let unknown = train.lost().saturating_sub(way_in + way_out);
    let ways = [(way_in, "on the way in"), (way_out, "on the way out"), (unknown, "on an unknown way")];
    let ways = ways.iter().filter(|(number, _)| *number > 0);
    let ways: Vec<String> = ways.map(|(number, way)| format!("{} {way}", thousands(*number))).collect();
    let ways = if ways.is_empty() { String::new() } else { format!(" ({})", ways.join(", ")) };
    let reached = match (train.dark_ns(), migration.is_completed()) {
        (Ok(dark_ns), _) => format!("; it was reached again after {}", duration(dark_ns as f64)),
        (Err(why), true) => format!("; how long it was out of reach is not known ({why})"),
        (Err(_), false) => String::new(),
    };
    Some(format!(
        " Of {} to the guest {} {} lost{ways}, {} came late, {} out of order and {} twice{reached}.",
        counted(train.sent, "packet", "packets"),
        thousands(train.lost()),
        if train.lost() == 1 { "was" } else { "were" },
        thousands(train.late),
        thousands(train.reordered),
        thousands(train.duplicates),
    ))
}

/// What two counts of the same bytes say that are not the same, if they are not.
pub(super) fn books(migration: &Migration) -> Option<String> {
    let Link { bytes: by_link, retransmitted } = migration.train.as_ref()?.link?;
    let by_qemu =
        migration.last(|poll| poll.transferred_bytes).filter(|bytes| *bytes > 0 && migration.is_completed())?;
    let share = (by_link as f64 - by_qemu as f64) / by_qemu as f64;
    (share.abs() > SAME_BYTES).then(|| {
        let again = match retransmitted {
            0 => String::new(),
            segments => format!(", {} sent again among them", counted(segments, "segment", "segments")),
        };
        format!(
            "The kernel counted {} of the stream that carried the guest{again}, and QEMU {} of memory: {} apart.",
            bytes(by_link as f64),
            bytes(by_qemu as f64),
            percent(share.abs())
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::migration::measured::waits::Splits;
    use facts::migrations::Poll;

    const MS: u64 = 1_000_000;

    /// Runs on the target after 100 ms, answered there after 110; announced after so many.
    fn moved(announced_ms: Option<u64>) -> Migration {
        let train = Train {
            interval_ns: MS,
            sent: 1_000,
            answered: 990,
            lost_in: Some(8),
            lost_out: Some(1),
            late: 3,
            last_on_source_ns: Some(80 * MS),
            first_on_target_ns: Some(140 * MS),
            sender_gap_ns: MS,
            announced_ns: announced_ms.map(|ms| ms * MS),
            ..Train::default()
        };
        let ended = Some((120 * MS, "completed".to_owned()));
        Migration {
            stopped_ns: Some(81 * MS),
            resumed_ns: Some(100 * MS),
            ended,
            train: Some(train),
            ..Migration::default()
        }
    }

    fn found(migration: &Migration) -> Vec<(&'static str, String)> {
        let splits = Splits::default();
        RULES.iter().filter_map(|rule| Some((rule.id, (rule.check)((0, migration, &splits))?.title))).collect()
    }

    #[test]
    fn a_guest_that_is_not_announced_within_25_ms_is_found() {
        assert_eq!(found(&moved(Some(95))), [], "before it ran");
        assert_eq!(found(&moved(Some(125))), []);
        let late = found(&moved(Some(126)));
        let title = "The guest was announced 26.0 ms after it ran; it was reached there after 40.0 ms";
        assert_eq!(late, [("MIG-ANNOUNCE", title.to_owned())]);
        let severity = |migration: &Migration| unannounced((0, migration, &Splits::default())).unwrap().severity;
        let mut never = moved(None);
        assert_eq!(severity(&never), Severity::Medium, "reached after 40 ms");
        never.train.as_mut().unwrap().first_on_target_ns = Some(125 * MS);
        assert_eq!(severity(&never), Severity::Low, "it said something itself");
        never.train.as_mut().unwrap().first_on_target_ns = None;
        assert_eq!(severity(&never), Severity::High);
        assert_eq!(found(&never)[0].1, "The guest was never announced where it went, and it was never reached there");
        assert_eq!(found(&Migration { resumed_ns: None, ..moved(None) }), [], "it did not run there");
        never.train.as_mut().unwrap().announced_ns = Some(95 * MS);
        never.train.as_mut().unwrap().back_by = Some(183);
        assert_eq!(
            found(&never),
            [("MIG-OLDER", "The guest went on with older memory: it had forgotten 183 packets".to_owned())]
        );
    }

    #[test]
    fn a_link_that_was_down_is_named_by_when_and_how_often() {
        let down = |from_ms: u64, to_ms: u64| Down { from_ns: from_ms * MS, to_ns: to_ms * MS };
        let cut = |downs: &[Down]| {
            let mut migration = Migration { began_ns: 10 * MS, passes: vec![(1, 12 * MS)], ..moved(Some(95)) };
            migration.train.as_mut().unwrap().downs = downs.to_vec();
            found(&migration)
        };
        assert_eq!(cut(&[down(2, 9), down(121, 130)]), [], "before and after");
        let title = "The link that carries the guest was down for 30.0 ms in pass 0";
        assert_eq!(cut(&[down(2, 9), down(20, 50), down(60, 61)]), [("MIG-LINK", title.to_owned())]);
    }

    #[test]
    fn what_was_lost_is_said_by_its_way() {
        let said = " Of 1,000 packets to the guest 10 were lost (8 on the way in, 1 on the way out, 1 on an unknown way), 3 came \
                    late, 0 out of order and 0 twice; it was reached again after 60.0 ms.";
        assert_eq!(sentence(&moved(None)).unwrap(), said);
    }

    #[test]
    fn two_counts_of_the_stream_are_held_against_each_other() {
        let counted = |link: u64| {
            let mut migration = moved(None);
            migration.train.as_mut().unwrap().link = Some(Link { bytes: link, retransmitted: 2 });
            let poll = Poll { transferred_bytes: Some(1_000_000), ..Poll::default() };
            books(&Migration { polls: vec![(0, poll)], ..migration })
        };
        assert_eq!((counted(990_000), counted(1_010_000)), (None, None));
        let said = "The kernel counted 1.0 MB of the stream that carried the guest, 2 segments sent again among them, and QEMU 1.0 MB of memory: 1.5 % apart.";
        assert_eq!(counted(1_015_000).unwrap(), said);
    }
}
