//! What speaks against a migration as it went: rules as data, and what they look at.

use super::waits::Splits;
use super::{culprits, devices, hibernated, memory, network, pace, passes};
use crate::migration::goals;
use base::number::{counted, duration, percent};
use base::rule::{Words, limit};
use base::{Cost, CostKind, Evidence, Finding, Level, Severity, in_order};
use facts::migrations::Migration;
use facts::rule::Hit;

pub(super) type Run<'a> = (usize, &'a Migration, &'a Splits);
pub(super) type Rule = facts::rule::Rule<fn(Run<'_>) -> Option<Hit>>;

/// From this share of the dark time on it is a device's.
const DEVICE_SHARE: f64 = 0.3;
/// A pass that leaves more than this of what the one before left is no progress.
const SHRINKS: f64 = 0.96;

/// All rules, in the order in which equal findings are shown.
const RULES: &[Rule] = &[
    Rule {
        id: "MIG-STALLED",
        per: "run",
        looks_at: "Whether the last two passes of a migration that did not end left as much as the ones before them.",
        limits: &[limit("left by a pass, of what the one before left", SHRINKS, "share")],
        why: "The guest dirties in each pass what the next one has to send. QEMU stops the guest only when what is left fits into \
              the limit, and passes that no longer shrink never get there.",
        fix: &[
            "virsh migrate --live --postcopy DOMAIN DESTINATION   # the guest then waits for pages: a failure of either host loses it",
        ],
        source: "docs/read/migration.md, \"When it never ends\"; the margin is that of KubeVirt's VEP 248",
        ..Rule::checked_by(stalled)
    },
    Rule {
        id: "MIG-DEVICE",
        per: "run",
        looks_at: "Whether saving and loading one device took much of the time for which the guest was dark.",
        limits: &[limit("of the dark time", DEVICE_SHARE, "share")],
        why: "The state of devices is sent while the guest is stopped, one device after the other. A long one is either slow itself, or the \
              thread that saves or loads it waited for a CPU.",
        fix: &["pidstat -t -p PID 1   # on both hosts while it is migrated: %wait of the thread that saves or loads"],
        source: "qemu_savevm_state_complete_precopy_non_iterable in migration/savevm.c, QEMU 10.0",
        ..Rule::checked_by(held_up)
    },
];

pub fn words() -> Vec<Words> {
    RULES
        .iter()
        .chain(pace::RULES)
        .chain(culprits::RULES)
        .chain(network::RULES)
        .chain(memory::RULES)
        .map(Rule::words)
        .chain([goals::RULE.words()])
        .chain(hibernated::words())
        .collect()
}

pub(super) fn findings(migrations: &[Migration], splits: &Splits) -> Vec<Finding> {
    let rules = || RULES.iter().chain(pace::RULES).chain(culprits::RULES).chain(network::RULES).chain(memory::RULES);
    let runs = migrations.iter().enumerate().map(|(number, migration)| (number, migration, splits));
    let hits = runs.flat_map(|run| rules().filter_map(move |rule| Some(rule.finding((rule.check)(run)?, Level::L0))));
    in_order(hits.collect())
}

fn stalled((run, migration, _): Run<'_>) -> Option<Hit> {
    if migration.is_completed() {
        return None;
    }
    let passes: Vec<_> = passes::of(migration).into_iter().filter(|pass| pass.dirty_pages.is_some()).collect();
    let [.., first, second, last] = &passes[..] else { return None };
    let [first, second, left] = [first.dirty_pages?, second.dirty_pages?, last.dirty_pages?];
    let shrank = |before: u64, after: u64| (after as f64) < before as f64 * SHRINKS;
    if left == 0 || shrank(first, second) || shrank(second, left) {
        return None;
    }
    let title =
        format!("Stalled: the last passes leave {}, as many as the ones before", counted(left, "page", "pages"));
    let seen = format!("passes left {first}, {second} and {left} pages");
    let mut hit =
        Hit::new(format!("run {run}"), Severity::High, title).with(Evidence::in_table(seen, "migration.passes"));
    if let (Some(bytes_per_s), Some(page_bytes)) =
        (last.bytes_per_s().filter(|rate| *rate > 0.0), migration.last(|poll| poll.page_bytes))
    {
        let sending_s = left as f64 * page_bytes as f64 / bytes_per_s;
        hit.cost = Cost::of(CostKind::Measured, sending_s * 1e9, "ns of dark time, to send what is left");
        // Rounded up: a little less would not do.
        hit.fix = vec![format!("virsh migrate-setmaxdowntime DOMAIN {:.0}   # or", (sending_s * 1e3).floor() + 1.0)];
    }
    Some(hit)
}

fn held_up((run, migration, _): Run<'_>) -> Option<Hit> {
    let dark_ns = migration.by_checkpoints().filter(|dark_ns| *dark_ns > 0)?;
    let (device, saved_ns, loaded_ns) = devices::slowest(migration)?;
    let share = saved_ns.saturating_add(loaded_ns) as f64 / dark_ns as f64;
    if share < DEVICE_SHARE {
        return None;
    }
    let title = format!("{device} took {} of the time for which the guest was dark", percent(share));
    let seen = format!(
        "saved in {}, loaded in {}; dark for {}",
        duration(saved_ns as f64),
        duration(loaded_ns as f64),
        duration(dark_ns as f64)
    );
    let mut hit =
        Hit::new(format!("run {run}"), Severity::Medium, title).with(Evidence::in_table(seen, "migration.devices"));
    hit.cost = Cost::of(CostKind::Measured, saved_ns.saturating_add(loaded_ns) as f64, "ns of dark time");
    Some(hit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use facts::migrations::Poll;
    use host::migrated::downtime_log::read;

    /// A migration that sends 1,000 pages of 4,096 bytes in each pass of a second; what each of them left.
    fn passing(left: &[u64], how: &str) -> Migration {
        let second = |number: usize| number as u64 * 1_000_000_000;
        let poll = |number: usize, left: u64| Poll {
            transferred_bytes: Some(number as u64 * 4_096_000),
            remaining_bytes: Some(left * 4_096),
            page_bytes: Some(4_096),
            ..Poll::default()
        };
        Migration {
            passes: (0..left.len()).map(|number| (number as u64 + 1, second(number))).collect(),
            polls: std::iter::once(&0)
                .chain(left)
                .enumerate()
                .map(|(number, left)| (second(number), poll(number, *left)))
                .collect(),
            ended: Some((second(left.len()), how.to_owned())),
            ..Migration::default()
        }
    }

    fn ids(migration: Migration) -> Vec<&'static str> {
        findings(&[migration], &Splits::default()).iter().map(|finding| finding.rule).collect()
    }

    #[test]
    fn passes_that_no_longer_shrink_stall_a_migration_that_did_not_end() {
        let found = findings(&[passing(&[9_000, 2_000, 1_990, 2_000], "cancelled")], &Splits::default());
        let [finding] = &found[..] else { panic!("{found:?}") };
        assert_eq!((finding.rule, finding.subject.as_str()), ("MIG-STALLED", "run 0"));
        // 2,000 pages at 1,000 a second; a millisecond more, as QEMU asks for less than the limit.
        assert_eq!(finding.fix[0], "virsh migrate-setmaxdowntime DOMAIN 2001   # or");
        assert_eq!(ids(passing(&[9_000, 2_000, 1_990, 2_000], "completed")), [""; 0], "it ended");
        assert_eq!(ids(passing(&[9_000, 4_000, 2_000, 1_000], "cancelled")), [""; 0], "it was given up too early");
        assert_eq!(ids(passing(&[2_000, 2_000], "cancelled")), [""; 0], "two passes are no course");
    }

    fn traced(loaded_us: u64) -> Migration {
        let log = format!(
            "1@5.000100:vmstate_downtime_checkpoint src-downtime-start\n\
            1@5.000300:vmstate_downtime_save type=non-iterable idstr=nic instance_id=0 downtime=100\n\
            1@5.000500:vmstate_downtime_checkpoint src-downtime-end\n\
            2@5.000600:vmstate_downtime_checkpoint dst-precopy-loadvm-completed\n\
            2@5.000900:vmstate_downtime_load type=non-iterable idstr=nic instance_id=0 downtime={loaded_us}\n\
            2@5.001100:vmstate_downtime_checkpoint dst-precopy-bh-vm-started\n"
        );
        let (source, target) = log.split_at(log.find("2@").unwrap());
        let side = |log: &str| read(log).into_iter().next();
        Migration { source: side(source), target: side(target), ..Migration::default() }
    }

    #[test]
    fn a_device_that_takes_a_third_of_the_dark_time_on_both_sides_is_named() {
        let found = findings(&[traced(200)], &Splits::default());
        let [finding] = &found[..] else { panic!("{found:?}") };
        assert_eq!(finding.rule, "MIG-DEVICE");
        assert!(finding.title.starts_with("nic took 30"), "{}", finding.title);
        assert_eq!(ids(traced(199)), [""; 0]);
    }
}
