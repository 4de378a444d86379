//! Does a migration that is under way end, and when?
//!
//! ```text
//! left, dirtied a second, sent a second --> it ends if more is sent than dirtied: left / (sent - dirtied) until little is left
//!                                           stopped now, the guest is dark for left / sent
//! ```
//! Both rates are QEMU's own of its last look, or means until now: what the guest does next is not known, so that no time is promised.

use super::rules::{Rule, Run};
use base::number::{bytes, duration};
use base::{Cell, Cost, CostKind, Severity, Table, TableSpec, shown, table};
use facts::migrations::Migration;
use facts::rule::Hit;
use host::migrated::account::{By, POSTCOPY};

/// Migrations that had not ended when they were looked at.
pub(super) const PACE: TableSpec = table! {
    migration.pace version 1:
    "A migration that had not ended when it was printed: what was left, how fast the guest dirtied memory and how fast it was sent, and what follows.";
    key_u64("") run, u64("bytes") left_bytes, u64("bytes") disk_left_bytes, f64("bytes/s") dirtied, f64("bytes/s") sent, text ends, ns at_best_ns,
    ns dark_now_ns, text sent_from;
    shown![
        "Whether it ends", 12;
        run, left_bytes: "left", dirtied: "dirtied per second", sent: "sent per second", ends, at_best_ns: "at best in",
        dark_now_ns: "dark if stopped now",
    ]
};

/// What is known of one that goes on.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Pace {
    left: Option<u64>,
    disk_left: Option<u64>,
    dirtied: Option<f64>,
    sent: Option<f64>,
    /// The rate is a mean over all that was sent, not that of now.
    is_mean: bool,
    /// The guest runs on the target: nobody stops it any more, and what it writes is not sent again.
    is_postcopy: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ends {
    Yes,
    No,
    Unknown,
}

impl Pace {
    /// `None` for one that has ended.
    fn of(migration: &Migration) -> Option<Self> {
        (migration.ended.is_none() && migration.by.is_some()).then(|| Self::at_last_look(migration))
    }

    /// How one went that KubeVirt gave up, by the last look of its log.
    fn before_the_end(migration: &Migration) -> Option<Self> {
        let is_given_up =
            migration.by == Some(By::KubeVirt) && migration.ended.as_ref().is_some_and(|(_, how)| how != "completed");
        is_given_up.then(|| Self::at_last_look(migration))
    }

    fn at_last_look(migration: &Migration) -> Self {
        let page_bytes = migration.last(|poll| poll.page_bytes).unwrap_or(PAGE_BYTES);
        let pages = migration.last(|poll| poll.dirty_pages_per_s).map(|pages| pages as f64 * page_bytes as f64);
        // 0 is what QEMU says before the first pass is over.
        let dirtied = migration.last(|poll| poll.dirty_bytes_per_s).or(pages).filter(|dirtied| *dirtied > 0.0);
        let now = migration.last(|poll| poll.sent_bytes_per_s);
        let mean = || {
            let (sent, ms) = (migration.last(|poll| poll.transferred_bytes)?, migration.last(|poll| poll.total_ms)?);
            (ms > 0).then(|| sent as f64 * 1e3 / ms as f64)
        };
        Self {
            left: migration.last(|poll| poll.remaining_bytes),
            disk_left: migration.last(|poll| poll.disk_remaining_bytes).filter(|bytes| *bytes > 0),
            dirtied: dirtied.filter(|_| !migration.notes.iter().any(|note| note == POSTCOPY)),
            sent: now.or_else(mean),
            is_mean: now.is_none(),
            is_postcopy: migration.notes.iter().any(|note| note == POSTCOPY),
        }
    }

    fn ends(&self) -> Ends {
        match (self.dirtied, self.sent) {
            (_, Some(_)) if self.is_postcopy => Ends::Yes,
            (Some(dirtied), Some(sent)) if dirtied >= sent => Ends::No,
            (Some(_), Some(_)) => Ends::Yes,
            _ => Ends::Unknown,
        }
    }

    /// How long the guest would be dark if it were stopped now: what is left is sent meanwhile. Its disks cannot be cut short.
    fn dark_now_ns(&self) -> Option<f64> {
        let sent = self.sent.filter(|sent| *sent > 0.0 && self.disk_left.is_none() && !self.is_postcopy)?;
        Some(self.left? as f64 / sent * 1e9)
    }

    /// Until nothing is left, if the guest goes on as it does.
    fn at_best_ns(&self) -> Option<f64> {
        let all = self.left?.saturating_add(self.disk_left.unwrap_or(0)) as f64;
        let rest = self.sent? - self.dirtied.unwrap_or(0.0);
        (self.ends() != Ends::No && rest > 0.0).then(|| all / rest * 1e9)
    }
}

/// Of x86, where the text does not tell.
const PAGE_BYTES: u64 = 4_096;

/// The table; without rows where every migration had ended.
pub(super) fn table(migrations: &[Migration]) -> Table {
    let mut table = Table::new(&PACE);
    for (run, migration) in migrations.iter().enumerate() {
        let Some(pace) = Pace::of(migration) else { continue };
        let ends = match pace.ends() {
            Ends::Yes => "yes, at these rates",
            Ends::No => "no",
            Ends::Unknown => "not known",
        };
        let whole = |ns: Option<f64>| ns.map_or(Cell::Missing, |ns| Cell::U64(ns as u64));
        table.push(vec![
            (run as u64).into(),
            pace.left.into(),
            pace.disk_left.into(),
            pace.dirtied.into(),
            pace.sent.into(),
            ends.into(),
            whole(pace.at_best_ns()),
            whole(pace.dark_now_ns()),
            if pace.is_mean { "mean until then" } else { "its last look" }.into(),
        ]);
    }
    table
}

/// `2.8 GB are left; the guest dirties 276.7 MB/s and 264.2 MB/s are sent: it does not end by itself. Stopped now, the guest would be dark for 10.7 s.`
pub(super) fn sentence(migration: &Migration) -> Option<String> {
    let pace = Pace::of(migration)?;
    let per_second = |rate: f64| format!("{}/s", bytes(rate));
    let mut said: Vec<String> = Vec::new();
    // Where nothing is said of disks, what is left may be theirs too.
    let of_memory = if pace.disk_left.is_some() { " of memory" } else { "" };
    said.extend(pace.left.map(|left| format!("{}{of_memory} are left", bytes(left as f64))));
    said.extend(pace.disk_left.map(|left| format!("{} of disks are left", bytes(left as f64))));
    let mean = if pace.is_mean { " on average" } else { "" };
    match (pace.dirtied, pace.sent) {
        (Some(dirtied), Some(sent)) => {
            said.push(format!("the guest dirties {} and {} are sent{mean}", per_second(dirtied), per_second(sent)));
        }
        (None, Some(sent)) if pace.is_postcopy => said.push(format!("{} are sent{mean}", per_second(sent))),
        (None, Some(sent)) => {
            said.push(format!("{} are sent{mean}; what the guest dirties is not told", per_second(sent)))
        }
        (Some(dirtied), None) => {
            said.push(format!("the guest dirties {}; what is sent is not told", per_second(dirtied)))
        }
        (None, None) => {}
    }
    let ends = match (pace.ends(), pace.at_best_ns()) {
        (Ends::No, _) if migration.by == Some(By::CloudHypervisor) => {
            ": it does not converge, and ends when Cloud Hypervisor's passes or its time are used up".to_owned()
        }
        (Ends::No, _) => ": it does not end by itself".to_owned(),
        (Ends::Yes, Some(ns)) => format!(": at these rates it ends in {} at best", duration(ns)),
        (_, Some(ns)) => format!(": it takes {} more at least", duration(ns)),
        (_, None) => String::new(),
    };
    let dark = pace
        .dark_now_ns()
        .map_or(String::new(), |ns| format!(" Stopped now, the guest would be dark for {}.", duration(ns)));
    (!said.is_empty()).then(|| format!(" {}{ends}.{dark}", capital(&said.join("; "))))
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

pub(super) const RULES: &[Rule] = &[Rule {
    id: "MIG-PACE",
    per: "run",
    looks_at: "Whether a migration that is under way dirties as much memory as it sends.",
    why: "Each pass sends what the guest dirtied in the one before. Where it dirties as fast as is sent, passes do not shrink, and QEMU never stops the guest \
          by itself; Cloud Hypervisor ends it once its passes or its time are used up: it stops the guest for what is left, or gives up (timeout_strategy). The ways out stand in the order in which to try them: each costs more than the one before.",
    source: "docs/read/migration.md, \"When it never ends\"; virsh(1), libvirt 9.0; migration_iteration_run in migration/migration.c, QEMU 7.2",
    ..Rule::checked_by(never_ends)
}];

/// The ways out in the order in which to try them, with price and undo, by libvirt.
const BY_LIBVIRT: [&str; 5] = [
    "virsh migrate-getspeed DOMAIN   # is it a limit that somebody set? virsh migrate-setspeed DOMAIN MIB_PER_SECOND raises it; price: the link",
    "virsh qemu-monitor-command DOMAIN --hmp 'migrate_set_parameter cpu-throttle-increment 20'   # only where it was begun with --auto-converge; price: the guest's time; undo: 10",
    "virsh migrate-postcopy DOMAIN   # only where it was begun with --postcopy; price: the guest waits for pages, and a failure of either host loses it; no undo",
    "virsh domjobabort DOMAIN   # and begin again with --auto-converge or --postcopy; price: what was sent",
    "virsh migrate-setmaxdowntime DOMAIN MILLISECONDS   # last: price: the guest is dark for so long; undo: BEFORE",
];

/// The same in QEMU's monitor (hmp-commands.hx, QEMU 7.2), which each manager has its own way to.
const IN_MONITOR: [&str; 5] = [
    "info migrate_parameters   # in QEMU's monitor, as all below (Proxmox: qm monitor VMID): is max-bandwidth a limit that somebody set? migrate_set_parameter max-bandwidth BYTES raises it; price: the link",
    "migrate_set_parameter cpu-throttle-increment 20   # only where it was begun with the capability auto-converge on, as Proxmox does: QEMU refuses capabilities while it runs; price: the guest's time; undo: 10",
    "migrate_start_postcopy   # only where it was begun with the capability postcopy-ram on; price: the guest waits for pages, and a failure of either host loses it; no undo",
    "migrate_cancel   # and begin again with migrate_set_capability auto-converge on, or postcopy-ram on; price: what was sent",
    "migrate_set_parameter downtime-limit MILLISECONDS   # last: price: the guest is dark for so long; undo: BEFORE",
];

/// Cloud Hypervisor asks for all of it when a migration begins (SendMigrationData of its API of 2026-05); older ones stop the
/// guest after five passes whatever is left.
const BY_CLOUD_HYPERVISOR: [&str; 2] = [
    "ch-remote --api-socket SOCKET send-migration --help   # has it downtime_ms, timeout_s and timeout_strategy? A downtime of MILLISECONDS ms would do now; price: the guest is dark for so long",
    "# inside the guest: let its load write less, or migrate it at another time; price: the guest's work",
];

/// What KubeVirt itself has to let a migration end, in its own configuration (KubeVirtConfiguration.MigrationConfiguration, KubeVirt 1.3).
const BY_KUBEVIRT: [&str; 3] = [
    "kubectl edit kubevirt -n kubevirt   # spec.configuration.migrations: allowAutoConverge: true (OpenShift: oc edit hyperconverged -n openshift-cnv, spec.liveMigrationConfig); price: the guest's time",
    "kubectl edit kubevirt -n kubevirt   # the same place: allowPostCopy: true; price: the guest waits for pages, and a failure of either host loses it",
    "kubectl get kubevirt -A -o jsonpath='{..migrations}'   # is bandwidthPerMigration a limit? A longer progressTimeout or completionTimeoutPerGiB ends nothing while more is dirtied than sent",
];

/// What auto-converge takes at most, in percent (DEFAULT_MIGRATE_MAX_CPU_THROTTLE, migration/options.c, QEMU 8.2).
const MOST_THROTTLE: u64 = 99;

fn never_ends((run, migration, _): Run<'_>) -> Option<Hit> {
    let pace =
        Pace::of(migration).or_else(|| Pace::before_the_end(migration)).filter(|pace| pace.ends() == Ends::No)?;
    let (dirtied, sent) = (pace.dirtied?, pace.sent?);
    let (dirties, sends) = (bytes(dirtied), bytes(sent));
    if migration.ended.is_some() {
        let title = format!(
            "The migration could not end by itself: the guest dirtied {dirties}/s, and {sends}/s were sent; KubeVirt gave it up"
        );
        let mut hit = Hit::new(format!("run {run}"), Severity::High, title);
        let own =
            migration.notes.iter().filter(|note| note.contains("virt-launcher cancelled") || note.starts_with("allow"));
        hit = own.fold(hit, |hit, note| hit.seen(note.as_str(), "its log"));
        hit.fix.extend(BY_KUBEVIRT.map(str::to_owned));
        return Some(hit);
    }
    let what = match migration.by {
        Some(By::CloudHypervisor) => "does not converge",
        _ => "does not end by itself",
    };
    let title = format!("The migration {what}: the guest dirties {dirties}/s, and {sends}/s are sent");
    let seen = format!("{} left", pace.left.map_or_else(|| "an unknown amount".to_owned(), |left| bytes(left as f64)));
    let mut hit = Hit::new(format!("run {run}"), Severity::High, title)
        .with(base::Evidence::in_table(seen, "migration.pace").key("run", run.to_string()));
    if let Some(cap) = bandwidth_limit(&migration.notes) {
        let enough =
            if cap <= dirtied { ": less than is dirtied, so that no faster link helps while it stands" } else { "" };
        hit = hit.seen(format!("max-bandwidth is {}/s{enough}", bytes(cap)), "its parameters");
    }
    // Nobody has to ask for what the text says.
    let has_none = bandwidth_limit(&migration.notes).is_none()
        && migration.notes.iter().any(|note| note.starts_with("max-bandwidth "));
    if has_none {
        hit = hit.seen("no max-bandwidth is set", "its parameters");
    }
    // Rounded up: a little less would not do.
    let dark_ms =
        pace.dark_now_ns().map_or_else(|| "MILLISECONDS".to_owned(), |ns| format!("{:.0}", (ns / 1e6).floor() + 1.0));
    // Whoever asks QEMU's monitor itself answers there, too.
    let ways_out: &[&str] = match migration.by {
        Some(By::Monitor | By::Proxmox) => &IN_MONITOR,
        Some(By::CloudHypervisor) => &BY_CLOUD_HYPERVISOR,
        _ => &BY_LIBVIRT,
    };
    let is_monitor = ways_out == IN_MONITOR;
    let before = downtime_limit(&migration.notes);
    let before = before.unwrap_or_else(|| {
        let asks = if is_monitor { "info migrate_parameters" } else { "virsh migrate-getmaxdowntime DOMAIN" };
        format!("what {asks} said before")
    });
    let asked = usize::from(has_none && is_monitor);
    // Where auto-converge takes all that it may, a larger step takes no more.
    let throttle = migration.polls.iter().rev().find_map(|(_, poll)| poll.throttle_percent).unwrap_or(0);
    let is_throttled = throttle >= MOST_THROTTLE;
    if is_throttled {
        hit = hit.seen(format!("auto-converge takes {throttle} % of the guest's time already"), "its account");
    }
    let is_of_use = |line: &&&str| !(is_throttled && line.contains("cpu-throttle-increment"));
    hit.fix.extend(
        ways_out
            .iter()
            .skip(asked)
            .filter(is_of_use)
            .map(|line| line.replace("MILLISECONDS", &dark_ms).replace("BEFORE", &before)),
    );
    if let Some(dark_ns) = pace.dark_now_ns() {
        hit.cost = Cost::of(CostKind::Modelled, dark_ns, "ns of dark time, to send what is left");
    }
    Some(hit)
}

/// `max-bandwidth 134217728 bytes/second`, where one is set: 0 is none, nor is what libvirt sets for no limit (`QEMU_DOMAIN_MIG_BANDWIDTH_MAX`, src/qemu/qemu_conf.h, libvirt 10.0).
fn bandwidth_limit(notes: &[String]) -> Option<f64> {
    let told = notes.iter().rev().find_map(|note| note.strip_prefix("max-bandwidth "))?;
    told.split_whitespace().next()?.parse::<f64>().ok().filter(|cap| *cap > 0.0 && *cap < 1e15)
}

/// The limit in force by what the migration's text said of it: `downtime-limit 300 ms`, or how it was raised, `.. from 100 ms to 800 ms`.
fn downtime_limit(notes: &[String]) -> Option<String> {
    let told =
        notes.iter().rev().find(|note| note.starts_with("downtime-limit") || note.starts_with("the downtime limit"))?;
    let words: Vec<&str> = told.split_whitespace().collect();
    let [.., number, "ms" | "milliseconds"] = words[..] else { return None };
    number.parse::<u64>().ok().map(|ms| ms.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use facts::migrations::Poll;

    fn active(dirty_pages_per_s: Option<u64>, sent: Option<f64>) -> Migration {
        let poll = Poll {
            remaining_bytes: Some(2_753_372 << 10),
            transferred_bytes: Some(383_749_347 << 10),
            total_ms: Some(1_487_503),
            dirty_pages_per_s,
            sent_bytes_per_s: sent,
            ..Poll::default()
        };
        Migration { polls: vec![(0, poll)], by: Some(By::Monitor), ..Migration::default() }
    }

    #[test]
    fn commands_are_of_whoever_was_asked() {
        let of = |by: By| {
            let migration = Migration { by: Some(by), ..active(Some(67_551), None) };
            never_ends((0, &migration, &Default::default())).unwrap().fix
        };
        let (libvirt, monitor) = (of(By::Libvirt), of(By::Monitor));
        assert!(libvirt.iter().all(|line| line.starts_with("virsh ")), "{libvirt:?}");
        assert!(!monitor.iter().any(|line| line.contains("virsh")), "{monitor:?}");
        for (lines, last) in [
            (libvirt, "virsh migrate-setmaxdowntime DOMAIN 10673 "),
            (monitor, "migrate_set_parameter downtime-limit 10673 "),
        ] {
            assert!(lines[4].starts_with(last), "{lines:?}");
        }
    }

    #[test]
    fn who_dirties_more_than_is_sent_never_ends() {
        let never = sentence(&active(Some(67_551), None)).unwrap();
        assert!(never.contains("276.7 MB/s and 264.2 MB/s are sent on average: it does not end by itself"), "{never}");
        assert!(never.contains("Stopped now, the guest would be dark for 10.7 s."), "{never}");
        let ends = sentence(&active(Some(10_000), Some(264e6))).unwrap();
        assert!(ends.contains("at these rates it ends in 12.6 s at best"), "{ends}");
        let unknown = sentence(&active(None, Some(264e6))).unwrap();
        assert!(unknown.contains("what the guest dirties is not told: it takes 10.7 s more at least"), "{unknown}");
        let over = Migration { ended: Some((0, "completed".into())), ..active(None, None) };
        assert_eq!(sentence(&over), None);
    }
}
