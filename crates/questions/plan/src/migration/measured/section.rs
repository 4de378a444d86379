//! The answer.

use super::waits::Splits;
use super::{
    culprits, devices, downtimes, figures, hibernated, jobs, memory, network, pace, passes, residuals, rules, runs,
    windows, work,
};
use crate::migration::blocked::{self, Guest};
use crate::migration::goals;
use base::method::Method;
use base::number::{bytes, counted, duration, many};
use base::{Level, Section, Unknown, in_order};
use facts::migrations::{Began, CLOCKS_NS, Clocks, Migration, Migrations};
use facts::{Answer, Case, Error};

pub const QUESTION: &str = "How did the live migration go, how long was the guest dark, and was the prediction right?";

/// Answers it; `None` if no migration was recorded.
///
/// # Errors
/// None: what a session does not tell is missing in the answer.
pub fn answer(case: &Case) -> Result<Option<Answer>, Error> {
    let migrations = &case.input().migrations;
    if migrations.list.is_empty() && migrations.blocked.is_empty() && migrations.jobs.is_empty() {
        let emulated = case.input().recording.emulated;
        let saved = hibernated::section(migrations, emulated.map(|emulator| emulator.name()));
        return Ok(saved.map(|section| Answer { section, problems: Vec::new() }));
    }
    let mut section = Section::new("migration", QUESTION);
    if let Some(emulator) = case.input().recording.emulated {
        section.about.push(format!(
            "EMULATED by {}: which pages were sent is real, how fast the guest computed is not.",
            emulator.name()
        ));
    }
    if migrations.list.iter().any(|one| one.is_emulated == Some(true)) && case.input().recording.emulated.is_none() {
        section.about.push(
            "EMULATED by QEMU (TCG): which pages were sent is real, how fast the guest computed is not.".to_owned(),
        );
    }
    let splits = Splits::new(case, &migrations.list);
    let judged = goals::measured(case);
    let found = rules::findings(&migrations.list, &splits).into_iter().chain(goals::findings(&judged));
    let refused = Guest {
        name: "guest".to_owned(),
        place: "query-migrate".to_owned(),
        reasons: migrations.blocked.clone(),
        is_asked: true,
        ..Guest::default()
    };
    section.findings = in_order(found.chain(blocked::findings(&refused, Level::L0)).collect());
    let verdicts = case.budget().and_then(|budget| goals::sentence(&budget.name, &judged));
    section.summary = std::iter::once(summary(migrations)).chain(verdicts).collect::<Vec<_>>().join(" ");
    let held = residuals::held(migrations);
    section.figures = figures::figures(&migrations.list, &splits, &held);
    let tables = [
        runs::table(&migrations.list),
        pace::table(&migrations.list),
        jobs::table(&migrations.jobs),
        passes::table(&migrations.list),
        downtimes::table(&migrations.list),
    ];
    let tables = tables.into_iter().chain([
        windows::table(&migrations.list),
        network::table(&migrations.list),
        memory::table(&migrations.list),
        devices::table(&migrations.list, &splits),
        work::table(&migrations.list),
        residuals::table(&held),
    ]);
    let tables = tables.chain([goals::table(&judged, "measured")]);
    section.tables = tables.filter(|table| !table.rows.is_empty()).collect();
    // Of guests that are saved or come in nobody asks how long a move took.
    if !migrations.list.is_empty() {
        section.unknown = unknown(migrations);
    }
    Ok(Some(Answer { section, problems: Vec::new() }))
}

fn summary(migrations: &Migrations) -> String {
    let of_several = migrations.list.len() > 1;
    let sentences = migrations.list.iter().enumerate().map(|(run, migration)| {
        // Pre-copy is what a migration is unless it is said to be another.
        let method = migration.method.filter(|method| *method != Method::Precopy);
        let by = method.map_or(String::new(), |method| format!(" by {}", method.name()));
        let whose = if of_several { format!("Run {run}{by}") } else { format!("The migration{by}") };
        let course = if migration.by.is_some() { by_sums(migration) } else { course(migration) };
        let more = [pace::sentence(migration), network::sentence(migration), work::sentence(migration)]
            .into_iter()
            .flatten()
            .collect::<String>();
        format!("{whose} {course}.{}{more}{}", of_devices(migration), noted(migration))
    });
    // One run of several is the answer to none of them.
    let dark: Vec<u64> = migrations.list.iter().filter_map(Migration::by_events).collect();
    let range = dark.iter().min().zip(dark.iter().max()).filter(|_| dark.len() > 1);
    let range = range.map(|(least, most)| {
        let [least, most] = [*least, *most].map(|ns| duration(ns as f64));
        format!("In {} the guest was dark for {least} to {most}.", many(dark.len() as u64, "run"))
    });
    let mut sentences: Vec<String> = range.into_iter().chain(sentences).collect();
    sentences.extend(migrations.jobs.iter().map(jobs::sentence));
    if sentences.is_empty() {
        sentences.push(format!("No migration was recorded, and none can be made: {}.", migrations.blocked.join(", ")));
    }
    sentences.extend(memory::sentence(&migrations.list));
    sentences.extend(verdict(migrations));
    sentences.join(" ")
}

/// `took 1.8 s and 5 passes before the final one; the guest was dark for 12.7 ms (QEMU reports 2.0 ms)`
fn course(migration: &Migration) -> String {
    let Some(total_ns) = residuals::actual(migration, "total") else {
        let why = culprits::why(migration).map_or(String::new(), |why| format!(": {why}"));
        let passes = counted(migration.passes.len() as u64, "pass", "passes");
        return match &migration.ended {
            Some((_, how)) => format!("ended as {how} after {passes}{why}{}", by_its_own_account(migration)),
            None => format!("had not ended after {passes}, as far as the session goes{why}"),
        };
    };
    let before = residuals::actual(migration, "passes").unwrap_or_default() as u64;
    let reported = migration.last(|poll| poll.downtime_ms);
    let dark = migration.by_events().map_or(String::new(), |dark_ns| {
        let reported = reported.map_or(String::new(), |ms| format!(" (QEMU reports {ms} ms)"));
        format!("; the guest was dark for {}{reported}", duration(dark_ns as f64))
    });
    format!("took {} and {} before the final one{dark}", duration(total_ns), counted(before, "pass", "passes"))
}

/// `; by its own account it took 2.3 s, and the guest was dark for 5 ms`: all that there is without a target.
fn by_its_own_account(migration: &Migration) -> String {
    let (total_ms, dark_ms) = (migration.last(|poll| poll.total_ms), migration.last(|poll| poll.downtime_ms));
    match total_ms.zip(dark_ms).filter(|_| migration.is_completed()) {
        Some((total_ms, dark_ms)) => {
            let total = duration(total_ms as f64 * 1e6);
            format!("; by its own account it took {total}, and the guest was dark for {dark_ms} ms")
        }
        None => String::new(),
    }
}

/// `took 17 ms and 1 pass before the final one (dirty sync count 3) by its own account, which says that the guest was dark for 2 ms`
fn by_sums(migration: &Migration) -> String {
    let dark = migration.by_checkpoints().map(|dark_ns| duration(dark_ns as f64));
    let reported = migration.last(|poll| poll.downtime_ms);
    let dark = match (dark, reported) {
        (Some(dark), Some(ms)) => format!("; the guest was dark for {dark} (reported: {ms} ms)"),
        (Some(dark), None) => format!("; the guest was dark for {dark}"),
        (None, Some(ms)) => format!(", which says that the guest was dark for {ms} ms"),
        (None, None) => String::new(),
    };
    let sent = migration.last(|poll| poll.transferred_bytes);
    // More than there is: pages went again and again.
    let total = migration.last(|poll| poll.total_bytes).filter(|total| sent > Some(*total));
    let total = total.map_or(String::new(), |total| format!(" sent of {} of memory", bytes(total as f64)));
    let sent = sent.map(|sent| format!(" for {}{total}", bytes(sent as f64)));
    let passes = migration.counted_passes.map(|syncs| match passes::before_final(migration) {
        Some(before) => {
            format!(" and {} before the final one (dirty sync count {syncs})", counted(before, "pass", "passes"))
        }
        None => format!(", with a dirty sync count of {syncs},"),
    });
    let why = migration.last(|poll| poll.error.clone()).map_or(String::new(), |why| format!(": {why}"));
    match (migration.last(|poll| poll.total_ms), &migration.ended) {
        (_, Some((_, how))) if how != "completed" => format!("ended as {how}{why}"),
        (Some(ms), ended) => format!(
            "{} {}{}{} by its own account{dark}",
            if ended.is_some() { "took" } else { "has taken" },
            duration(ms as f64 * 1e6),
            passes.unwrap_or_default(),
            sent.unwrap_or_default()
        ),
        (None, _) if migration.source.is_some() || migration.target.is_some() => format!("was traced{dark}"),
        (None, Some((_, how))) => format!("ended as {how} by its own account{dark}"),
        (None, None) => format!("goes on by its own account{dark}"),
    }
}

/// What else its text says: `Its text says: auto-converge off, downtime-limit 300 ms.`
fn noted(migration: &Migration) -> String {
    match migration.notes.is_empty() {
        true => String::new(),
        false => format!(" Its text says: {}.", migration.notes.join("; ")),
    }
}

/// The device that took most, where devices were traced.
fn of_devices(migration: &Migration) -> String {
    devices::slowest(migration).map_or(String::new(), |(device, saved_ns, loaded_ns)| {
        let took = |ns: u64, how: &str| (ns > 0).then(|| format!("{} to be {how}", duration(ns as f64)));
        let took: Vec<String> = took(saved_ns, "saved").into_iter().chain(took(loaded_ns, "loaded")).collect();
        format!(" Of the devices {device} took most: {}.", took.join(", "))
    })
}

/// How often the prediction held.
fn verdict(migrations: &Migrations) -> Option<String> {
    let prediction = migrations.said.as_ref()?;
    let total = prediction.said.iter().find(|said| said.what == "total")?;
    let runs = residuals::timed(migrations).count();
    if runs == 0 {
        return None;
    }
    let took = || residuals::timed(migrations).filter_map(|(_, one)| residuals::actual(one, "total"));
    let held = residuals::timed(migrations).filter(|(_, one)| total.holds(residuals::actual(one, "total"))).count();
    Some(match (total.low, total.high) {
        (Some(low), Some(high)) => {
            format!("Predicted {} to {}; {}.", duration(low), duration(high), inside(held, runs))
        }
        // What has no upper end holds whatever happens, but for what is below it.
        (Some(low), None) => {
            let shorter = took().filter(|ns| *ns < low).count();
            let low = duration(low);
            let rest = match shorter {
                0 => "with no upper end, so no run can confirm it".to_owned(),
                shorter => format!("and {shorter} of {} took less", many(runs as u64, "run")),
            };
            format!("Predicted at least {low}, perhaps never ending: {rest}.")
        }
        (None, _) => format!("Predicted never to end; {held} of {} did not.", many(runs as u64, "run")),
    })
}

/// `all 3 runs fell inside`
pub(super) fn inside(held: usize, runs: usize) -> String {
    match (held, runs) {
        (1, 1) => "the run fell inside".to_owned(),
        (0, 1) => "the run fell outside".to_owned(),
        (held, runs) if held == runs => format!("all {runs} runs fell inside"),
        (held, runs) => format!("{held} of {runs} runs fell inside"),
    }
}

/// What the clocks of two hosts leave open.
fn apart(migration: &Migration) -> Option<String> {
    match migration.clocks {
        Clocks::One => None,
        Clocks::Within(ns) => Some(format!(
            "Source and target are two hosts. Their clocks differ by at most {}, as both kernels report: any time that begins on one \
             and ends on the other may be off by that much.",
            duration(ns as f64)
        )),
        Clocks::Assumed => Some(format!(
            "Source and target are two hosts, and neither recording shows how well its clock is synchronized: times that begin on one and end on the other \
             are assumed to be off by at most {}.",
            duration(CLOCKS_NS as f64)
        )),
    }
}

fn unknown(migrations: &Migrations) -> Vec<Unknown> {
    let lacks_bytes = migrations.list.iter().flat_map(passes::of).filter(|pass| pass.bytes.is_none()).count();
    let lacks_trace = |one: &Migration| one.by.is_some() && one.by_checkpoints().is_none();
    let is_traced = |one: &Migration| one.source.is_some() || one.target.is_some();
    let sums_alone = migrations.list.iter().any(|one| lacks_trace(one) && !is_traced(one));
    let one_side = migrations.list.iter().any(|one| lacks_trace(one) && is_traced(one));
    let no_target =
        migrations.list.iter().any(|one| one.by.is_none() && one.is_completed() && one.resumed_ns.is_none());
    let breach_ns = migrations.list.iter().filter_map(downtimes::breach_ns).max().unwrap_or_default();
    let net_breach_ns = migrations.list.iter().filter_map(downtimes::net_breach_ns).max().unwrap_or_default();
    let books = migrations.list.iter().find_map(network::books);
    let counted_ns = migrations.list.iter().filter_map(|one| match one.began {
        Began::Counted { error_ns } => Some(error_ns),
        Began::Told | Began::Before => None,
    });
    let counted_ns = counted_ns.max().unwrap_or_default();
    let clocks = migrations.list.iter().find_map(apart);
    let lines = [
        (
            counted_ns > 0,
            "began",
            format!(
                "It was under way when it was first seen: when it began is counted back by QEMU's own total-time, give or take {}.",
                duration(counted_ns as f64)
            ),
        ),
        (
            migrations.list.iter().any(|one| one.began == Began::Before),
            "began",
            "It was under way when it was first seen, and how long it had been is not known: times count from then.".to_owned(),
        ),
        (
            migrations.list.iter().any(|one| one.passes_are_polled),
            "polled_passes",
            "QEMU reported no pass by an event (capability `events`, which libvirt turns on): passes began up to one answer earlier than is shown, and \
             one that was shorter than that is missing."
                .to_owned(),
        ),
        (
            lacks_bytes > 0,
            "pass_bytes",
            format!("{} began and ended between two answers: what they sent is not known.", counted(lacks_bytes as u64, "pass", "passes")),
        ),
        (
            no_target,
            "no_target",
            "Without a session of the target, when the guest ran again is not known: QEMU's own account is all that there is.".to_owned(),
        ),
        (
            sums_alone,
            "sums_alone",
            "Sums hide when each pass was, and what the target took after the source believed that it was over; kvmscope lab migrate, \
             or -trace 'vmstate_downtime*' of QEMU 8.2 on both sides, shows more."
                .to_owned(),
        ),
        (
            one_side,
            "one_side",
            "The trace of one side, or a part of it, does not show how long the guest was dark; add that of the other: \
             report source.log --part L0=target.log."
                .to_owned(),
        ),
        (
            clocks.is_some(),
            "clocks",
            clocks.unwrap_or_default(),
        ),
        (
            breach_ns > 0,
            "guest_before_resume",
            format!(
                "The guest was seen to be dark for {} less than its VMM kept it stopped, beyond the errors of both: one of the two is wrong.",
                duration(breach_ns as f64)
            ),
        ),
        (
            !migrations.list.iter().any(|one| one.heartbeat.is_some()),
            "guest",
            "How long the guest itself was stopped was not observed; kvmscope lab migrate --observe does.".to_owned(),
        ),
        (
            migrations.said.is_some() && migrations.list.iter().any(|one| one.heartbeat.is_some()),
            "observed",
            "Runs that were observed share their memory, which slows the first pass: the prediction is not compared with them.".to_owned(),
        ),
        (
            migrations.said.is_some() && migrations.list.iter().any(|one| !residuals::is_of_model(one)),
            "method",
            "The prediction is of pre-copy: runs by another method are not compared with it.".to_owned(),
        ),
        (
            net_breach_ns > 0,
            "net_before_guest",
            format!(
                "The guest was unreachable for {} less than it was stopped, beyond the errors of both: one of the two is wrong.",
                duration(net_breach_ns as f64)
            ),
        ),
        (books.is_some(), "link_bytes", books.unwrap_or_default()),
        (
            !migrations.list.iter().any(|one| one.train.is_some()),
            "network",
            "How long the network was dark was not measured; kvmscope lab migrate --network does.".to_owned(),
        ),
    ];
    let lines = lines.into_iter().filter(|(holds, ..)| *holds);
    lines.map(|(_, what, text)| Unknown { what: what.into(), amount: None, unit: String::new(), text }).collect()
}
