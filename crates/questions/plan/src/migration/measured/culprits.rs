//! What went wrong meanwhile that no model knows of: rules over what both sides were told, did, and what the operating system told of them.
//!
//! ```text
//! sessions   capabilities of one side alone; held before the switch-over
//! processes  a side ended; a side was stopped by a signal; the thread that moves memory waited for a CPU, and who was on it
//! ```

use super::rules::{Rule, Run};
use base::number::{duration, percent};
use base::processes::{Ended, Process};
use base::rule::limit;
use base::{Cost, CostKind, Evidence, Severity};
use facts::migrations::Migration;
use facts::rule::Hit;

/// From this share of the dark time, or of the whole, on it is worth a finding.
const SHARE: f64 = 0.2;
/// Looks at processes are some 10 ms apart: what is shorter than this cannot be divided by them.
const LEAST_NS: u64 = 50_000_000;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "MIG-ENDED",
        per: "run",
        looks_at: "Whether the process of one side ended before the migration had.",
        why: "Until the switch-over the source has all of the guest and goes on with it when its target is gone. From then on, and in \
              post-copy from the moment at which it runs on the target, the loss of either side loses the guest.",
        fix: &["journalctl -k --grep 'oom|segfault'   # on that host: who ended it"],
        source: "migration_completion and postcopy_pause in migration/migration.c, QEMU 7.2",
        ..Rule::checked_by(ended)
    },
    Rule {
        id: "MIG-CAPABILITY",
        per: "run",
        looks_at: "Whether a migration that did not end well had a capability on one side alone that changes the form of what goes over.",
        why: "Either side takes the stream in the form that it was told. QEMU does not compare most capabilities beforehand, so that \
              the sides fail with a sentence about a broken connection.",
        fix: &[
            "virsh qemu-monitor-command DOMAIN --hmp info migrate_capabilities   # on both hosts: they must be alike",
        ],
        source: "configuration_validate_capabilities in migration/savevm.c, QEMU 7.2",
        ..Rule::checked_by(one_sided)
    },
    Rule {
        id: "MIG-STOPPED",
        per: "run",
        looks_at: "Whether one side was stopped by a signal while the guest was moved.",
        why: "A process that is stopped neither sends nor receives, and QEMU counts the time as its own.",
        fix: &[
            "ps -o pid,stat,wchan,comm -C qemu-system-x86_64   # state T: who stopped it: a debugger, a freezer, SIGSTOP?",
        ],
        source: "proc_pid_stat(5), field 3",
        ..Rule::checked_by(stopped)
    },
    Rule {
        id: "MIG-WAITED",
        per: "run",
        looks_at: "Whether the thread that moves memory was ready and had no CPU for much of the dark time, or of the whole.",
        limits: &[limit("waited, of the time that it was looked at", SHARE, "share")],
        why: "One thread of the source sends, one of the target loads: ordinary threads, which run where the guest's emulator threads may. What \
              they wait for a CPU the guest is dark for longer, and no setting of a migration makes it shorter.",
        fix: &[
            "virsh emulatorpin DOMAIN CPUS --live   # CPUs without vCPUs and pollers, on both hosts: migration threads run there",
            "taskset -pc CPU TID   # without libvirt: the migration thread to a CPU that nobody else needs",
        ],
        source: "migration_thread in migration/migration.c, QEMU 10.0; qemuProcessSetupEmulator in src/qemu/qemu_process.c, libvirt 9.0; \
                 Documentation/scheduler/sched-stats.rst",
        ..Rule::checked_by(waited)
    },
    Rule {
        id: "MIG-HELD",
        per: "run",
        looks_at: "Whether the guest was held between its stop and the switch-over for much of the dark time.",
        limits: &[limit("held, of the dark time", SHARE, "share")],
        why: "With pause-before-switchover QEMU stops the guest and waits for migrate-continue: whoever is to say that was late.",
        fix: &[
            "virsh qemu-monitor-command DOMAIN --hmp migrate_set_capability pause-before-switchover off   # if nothing has to be done then",
        ],
        undo: &["virsh qemu-monitor-command DOMAIN --hmp migrate_set_capability pause-before-switchover on"],
        source: "migration_maybe_pause in migration/migration.c, QEMU 7.2",
        ..Rule::checked_by(held)
    },
];

/// Both sides of it that were looked at, by their names.
fn sides(migration: &Migration) -> impl Iterator<Item = (&'static str, &Process)> {
    let both = migration.processes.iter().flat_map(|both| [("source", &both.source), ("target", &both.target)]);
    both.into_iter()
}

/// Where in its course a migration was at that time.
pub(super) fn phase(migration: &Migration, at_ns: u64) -> String {
    if migration.resumed_ns.is_some_and(|resumed_ns| resumed_ns <= at_ns) {
        return "after the guest ran on the target".to_owned();
    }
    if migration.stopped_ns.is_some_and(|stopped_ns| stopped_ns <= at_ns) {
        return "while the guest was dark".to_owned();
    }
    match migration.passes.partition_point(|(_, began_ns)| *began_ns <= at_ns).checked_sub(1) {
        Some(pass) => format!("in pass {pass}"),
        None => "before the first pass".to_owned(),
    }
}

/// Who ended before a migration had, if somebody did. A target whose migration is called off ends for that.
fn who_ended(migration: &Migration) -> Option<(&'static str, &Process, &Ended)> {
    if migration.ended.as_ref().is_some_and(|(_, how)| ["completed", "cancelled"].contains(&how.as_str())) {
        return None;
    }
    sides(migration).find_map(|(side, process)| Some((side, process, process.ended.as_ref()?)))
}

/// Why a migration did not end well, as far as that was told.
pub(super) fn why(migration: &Migration) -> Option<String> {
    let ended = who_ended(migration).map(|(side, _, ended)| format!("the {side} ended ({})", ended.how));
    let is_called_off = migration.ended.as_ref().is_some_and(|(_, how)| how == "cancelled");
    ended.or_else(|| migration.last(|poll| poll.error.clone()).filter(|_| !is_called_off))
}

fn ended((run, migration, _): Run<'_>) -> Option<Hit> {
    let (side, process, Ended { at_ns, how }) = who_ended(migration)?;
    let guest = match (side, migration.runs_on_source) {
        ("source", _) => "the guest is lost with it",
        (_, Some(true)) => "the guest goes on at the source",
        (_, Some(false)) => "the guest does not run at the source",
        (_, None) => "nobody asked the source whether the guest goes on",
    };
    let title = format!("The {side} ended ({how}) {}; {guest}", phase(migration, *at_ns));
    let is_lost = side == "source" || migration.runs_on_source == Some(false);
    let severity = if is_lost { Severity::High } else { Severity::Medium };
    let words = if process.words.is_empty() { "it said nothing" } else { process.words.as_str() };
    Some(Hit::new(format!("run {run}"), severity, title).seen(format!("its last words: {words}"), "part processes"))
}

fn one_sided((run, migration, _): Run<'_>) -> Option<Hit> {
    if migration.is_completed() || migration.one_sided.is_empty() {
        return None;
    }
    let told = migration.one_sided.iter().map(|(name, of_source)| {
        format!("{name} is set on the {} alone", if *of_source { "source" } else { "target" })
    });
    let title = told.collect::<Vec<_>>().join(", ");
    let seen = migration.last(|poll| poll.error.clone()).unwrap_or_else(|| "it gives no reason".to_owned());
    let mut hit = Hit::new(format!("run {run}"), Severity::High, title)
        .with(Evidence::in_table(format!("the source fails: {seen}"), "migration.runs"));
    hit.explains = vec![format!("MIG-ENDED@run {run}")];
    Some(hit)
}

fn stopped((run, migration, _): Run<'_>) -> Option<Hit> {
    let stops = sides(migration).filter_map(|(side, process)| Some((side, process.stopped()?)));
    let (side, (at_ns, length_ns)) = stops.max_by_key(|(_, (_, length_ns))| *length_ns)?;
    let length = duration(length_ns as f64);
    let title = format!("The {side} was stopped by a signal for {length}, {}", phase(migration, at_ns));
    let mut hit = Hit::new(format!("run {run}"), Severity::High, title)
        .seen(format!("its state was T for {length}, looked at every 10 ms"), "part processes");
    hit.cost = Cost::of(CostKind::Measured, length_ns as f64, "ns of the migration");
    Some(hit)
}

/// By the trace of their machines where there is one, which has every switch; else by the looks at them.
fn waited(run: Run<'_>) -> Option<Hit> {
    waited_by_trace(run).or_else(|| waited_by_looks(run))
}

fn waited_by_trace((run, migration, splits): Run<'_>) -> Option<Hit> {
    let dark_ns = migration.by_checkpoints().or(migration.by_events()).filter(|dark_ns| *dark_ns > 0)?;
    let sides = [splits.whole(run, 0), splits.whole(run, 1)].into_iter().flatten();
    let (mut work_ns, mut waiting_ns) = (0, 0);
    sides.for_each(|side| (work_ns, waiting_ns) = (work_ns + side.work_ns, waiting_ns + side.waiting_ns));
    let share = waiting_ns as f64 / dark_ns as f64;
    if share < SHARE {
        return None;
    }
    let waiting = duration(waiting_ns as f64);
    let title = format!("For {waiting} of {} of dark time QEMU's threads waited for a CPU", duration(dark_ns as f64));
    let seen = format!("worked for {}, runnable or interrupted for {waiting}", duration(work_ns as f64));
    let mut hit =
        Hit::new(format!("run {run}"), Severity::Medium, title).with(Evidence::in_table(seen, "migration.devices"));
    hit.cost = Cost::of(CostKind::Measured, waiting_ns as f64, "ns of dark time");
    Some(hit)
}

fn waited_by_looks((run, migration, _): Run<'_>) -> Option<Hit> {
    let dark = migration.stopped_ns.zip(migration.resumed_ns);
    let whole = migration.total_ns().map(|total_ns| (migration.began_ns, migration.began_ns.saturating_add(total_ns)));
    let share = |process: &Process, (from_ns, to_ns): (u64, u64)| {
        let length_ns = to_ns.checked_sub(from_ns).filter(|length_ns| *length_ns >= LEAST_NS)?;
        let (_, wait_ns) = process.moved(from_ns, to_ns)?;
        Some((wait_ns, wait_ns as f64 / length_ns as f64, length_ns)).filter(|(_, share, _)| *share > SHARE)
    };
    // The target's thread has other work while passes come; the source's has none.
    let found = sides(migration).find_map(|(side, process)| {
        let of_dark = dark.and_then(|dark| share(process, dark)).map(|found| (found, "for which the guest was dark"));
        let of_whole = whole.filter(|_| side == "source").and_then(|whole| share(process, whole));
        let (found, of) = of_dark.or(of_whole.map(|found| (found, "of the migration")))?;
        Some((side, process, found, of))
    });
    let (side, process, (wait_ns, part, length_ns), of) = found?;
    let mover = process.looks.iter().rev().find_map(|look| look.mover.as_ref())?;
    let length = duration(length_ns as f64);
    let title = format!(
        "{} of the {side} waited for a CPU for {} of the {length} {of} ({})",
        mover.name,
        duration(wait_ns as f64),
        percent(part)
    );
    let instead = process.instead();
    let who = instead.first().map_or("who had it meanwhile was not seen".to_owned(), |name| {
        format!("most often {name} was on CPU {} meanwhile", mover.cpu)
    });
    let mut hit = Hit::new(format!("run {run}"), Severity::Medium, title).seen(who, "part processes");
    hit.cost = Cost::of(CostKind::Measured, wait_ns as f64, "ns of waiting");
    Some(hit)
}

fn held((run, migration, _): Run<'_>) -> Option<Hit> {
    let (from_ns, until_ns) = migration.held_ns?;
    let held_ns = until_ns.checked_sub(from_ns)?;
    let dark_ns = migration.by_events().filter(|dark_ns| *dark_ns > 0)?;
    let part = held_ns as f64 / dark_ns as f64;
    // Who was stopped or killed then could not go on: that is the cause, and has a finding of its own.
    if part < SHARE || sides(migration).any(|(_, process)| process.stopped().is_some()) {
        return None;
    }
    let title = format!(
        "Held before the switch-over for {} of the {} for which the guest was dark ({})",
        duration(held_ns as f64),
        duration(dark_ns as f64),
        percent(part)
    );
    let mut hit = Hit::new(format!("run {run}"), Severity::Medium, title)
        .with(Evidence::in_table("status pre-switchover lasted until migrate-continue", "migration.downtimes"));
    hit.cost = Cost::of(CostKind::Measured, held_ns as f64, "ns of dark time");
    Some(hit)
}

#[cfg(test)]
mod tests {
    use super::super::rules;
    use super::super::waits::Splits;
    use super::*;
    use base::processes::{Look, Mover, Processes, SCHEMA};

    const MS: u64 = 1_000_000;

    /// Looks every 10 ms from 0 to 1 s; the mover has run and waited for so long by then.
    fn process(is_stopped: impl Fn(u64) -> bool, waited_ms: impl Fn(u64) -> u64) -> Process {
        let look = |number: u64| {
            let at_ms = number * 10;
            let name = "live_migration".to_owned();
            let mover = Mover {
                name,
                cpu: 3,
                run_ns: at_ms * MS / 10,
                wait_ns: waited_ms(at_ms) * MS,
                stands: false,
                instead: vec!["hog".into()],
            };
            Look { at_ns: at_ms * MS, is_stopped: is_stopped(at_ms), mover: Some(mover) }
        };
        Process { looks: (0..=100).map(look).collect(), ..Process::default() }
    }

    fn idle() -> Process {
        process(|_| false, |_| 0)
    }

    /// Stopped at 500 ms, running again at 800.
    fn moved(source: Process, target: Process) -> Migration {
        Migration {
            began_ns: 0,
            passes: vec![(1, 100 * MS), (2, 400 * MS)],
            stopped_ns: Some(500 * MS),
            resumed_ns: Some(800 * MS),
            ended: Some((790 * MS, "completed".to_owned())),
            processes: Some(Processes { schema: SCHEMA.to_owned(), from_ns: 0, to_ns: 1_000 * MS, source, target }),
            ..Migration::default()
        }
    }

    fn titles(migration: Migration) -> Vec<(&'static str, String)> {
        rules::findings(&[migration], &Splits::default()).into_iter().map(|one| (one.rule, one.title)).collect()
    }

    #[test]
    fn a_side_that_was_stopped_is_named_with_its_phase() {
        let stopped = process(|at_ms| (200..=320).contains(&at_ms), |_| 0);
        let found = titles(moved(idle(), stopped));
        assert_eq!(found, [("MIG-STOPPED", "The target was stopped by a signal for 120.0 ms, in pass 0".into())]);
        assert_eq!(titles(moved(idle(), idle())), []);
        assert_eq!(titles(moved(process(|at_ms| at_ms == 200, |_| 0), idle())), [], "one look is no time");
    }

    #[test]
    fn a_mover_that_waited_for_a_fifth_of_the_dark_time_is_named_and_who_was_on_its_cpu() {
        let waits = |ms: u64| process(|_| false, move |at_ms| if at_ms > 600 { ms } else { 0 });
        let found = rules::findings(&[moved(waits(90), idle())], &Splits::default());
        let [finding] = &found[..] else { panic!("{found:?}") };
        assert_eq!(finding.rule, "MIG-WAITED");
        assert!(
            finding.title.contains("for 90.0 ms of the 300.0 ms for which the guest was dark"),
            "{}",
            finding.title
        );
        assert!(finding.evidence[0].what.contains("hog was on CPU 3"), "{:?}", finding.evidence);
        assert_eq!(titles(moved(waits(59), idle())), []);
        let short = Migration { resumed_ns: Some(540 * MS), ..moved(waits(39), idle()) };
        assert_eq!(titles(short), [], "looks do not tell what is so short");
    }

    #[test]
    fn who_was_held_is_told_unless_somebody_was_stopped_then() {
        let held = |ms: u64, source| Migration { held_ns: Some((500 * MS, (500 + ms) * MS)), ..moved(source, idle()) };
        assert_eq!(titles(held(60, idle()))[0].0, "MIG-HELD");
        assert_eq!(titles(held(59, idle())), []);
        let stopped = process(|at_ms| (500..=560).contains(&at_ms), |_| 0);
        assert_eq!(titles(held(60, stopped))[0].0, "MIG-STOPPED");
    }

    #[test]
    fn who_ended_is_told_with_where_the_guest_is() {
        let gone = || Process { ended: Some(Ended { at_ns: 410 * MS, how: "signal: 9 (SIGKILL)".into() }), ..idle() };
        let failed = |source, target, runs_on_source| Migration {
            stopped_ns: None,
            resumed_ns: None,
            ended: Some((420 * MS, "failed".to_owned())),
            runs_on_source,
            ..moved(source, target)
        };
        let (rule, title) = titles(failed(idle(), gone(), Some(true))).remove(0);
        assert_eq!(rule, "MIG-ENDED");
        assert_eq!(title, "The target ended (signal: 9 (SIGKILL)) in pass 1; the guest goes on at the source");
        assert!(titles(failed(gone(), idle(), None))[0].1.ends_with("the guest is lost with it"));
        assert_eq!(titles(failed(idle(), idle(), Some(true))), []);
        let called_off =
            Migration { ended: Some((420 * MS, "cancelled".to_owned())), ..failed(idle(), gone(), Some(true)) };
        assert_eq!((titles(called_off.clone()), why(&called_off)), (Vec::new(), None), "that is why it ended");
        let told = Migration { one_sided: vec![("multifd".into(), true)], ..failed(idle(), idle(), Some(true)) };
        assert_eq!(titles(told)[0], ("MIG-CAPABILITY", "multifd is set on the source alone".into()));
    }
}
