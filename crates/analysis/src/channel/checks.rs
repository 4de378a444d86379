//! The checks of the rules: from what was measured to what was seen.

mod preempted;

pub(super) use preempted::preempted;

use super::delays::Delayed;
use super::dpdk;
use super::flows::Changed;
use super::machines::Host;
use super::measured::{Channel, MPROTECT, Measured, NONE, PKEY, Series};
use super::model::Model;
use super::rules::{BUSY, KICKS, OPEN, STALE, WINDOW_SHARE};
use crate::rule::Hit;
use base::channel::{PAIRS, Setup};
use base::number::{amount, bytes, counted, duration, list, many, percent, thousands};
use base::{Cost, CostKind, Evidence, Severity};

/// Setups that a finding shows, the worst.
const MOST_SHOWN: usize = 4;

/// Something seen of a setup, in its row.
fn seen(what: impl Into<String>, one: &Measured<'_>) -> Evidence {
    Evidence::in_table(what, "channel.rates")
        .key("machine", one.machine)
        .key("path", one.setup.path.as_str())
        .key("window", one.setup.window.as_str())
        .key("size_bytes", u64::from(one.setup.size_bytes))
        .key("batch", u64::from(one.setup.batch))
        .key("policy", one.setup.policy.as_str())
        .key("vms", u64::from(one.setup.vms))
}

/// `ring with pkey, 64 B, batch 32`.
fn setup(one: &Measured<'_>) -> String {
    format!("{}, {} B, batch {}", one.name(), one.setup.size_bytes, one.setup.batch)
}

/// A hit on the machine that measured.
fn hit(one: &Measured<'_>, subject: String, severity: Severity, title: String) -> Hit {
    Hit { level: Some(one.level), ..Hit::new(subject, severity, title) }
}

/// Whether its times say something of this machine: those of emulated guests are the emulator's.
fn timed(one: &Measured<'_>) -> bool {
    !one.is_emulated()
}

fn of_path(one: &Measured<'_>) -> String {
    format!("{}: {}, {}", one.machine, one.setup.path, one.setup.window)
}

/// The setups of each machine that `wanted` gives a number for, the largest first.
fn by_machine<'c, 'b>(
    channel: &'c Channel<'b>,
    wanted: impl Fn(&Host, &Measured<'b>) -> Option<f64>,
) -> Vec<(&'c Host, Vec<(&'c Measured<'b>, f64)>)> {
    let of = |host: &'c Host| {
        let own = channel.measured().filter(|one| one.machine == host.machine);
        let mut own: Vec<_> = own.filter_map(|one| Some((one, wanted(host, one)?))).collect();
        own.sort_by(|a, b| b.1.total_cmp(&a.1));
        (!own.is_empty()).then_some((host, own))
    };
    channel.hosts.iter().filter_map(of).collect()
}

/// The same of each path and window of a machine.
fn by_path<'c, 'b>(
    channel: &'c Channel<'b>,
    wanted: impl Fn(&Measured<'b>) -> Option<f64>,
) -> Vec<Vec<(&'c Measured<'b>, f64)>> {
    let mut paths: Vec<Vec<(&Measured<'b>, f64)>> = Vec::new();
    for (one, amount) in channel.measured().filter_map(|one| Some((one, wanted(one)?))) {
        match paths.iter_mut().find(|known| of_path(known[0].0) == of_path(one)) {
            Some(known) => known.push((one, amount)),
            None => paths.push(vec![(one, amount)]),
        }
    }
    paths.iter_mut().for_each(|own| own.sort_by(|a, b| b.1.total_cmp(&a.1)));
    paths
}

/// Frames that did not arrive as they were sent.
pub(super) fn wrong(channel: &Channel<'_>) -> Vec<Hit> {
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

/// Setups whose two sides were related in one of these ways.
fn related(channel: &Channel<'_>, pairs: &[&str], severity: Severity, what: &str) -> Vec<Hit> {
    let is = |one: &Measured<'_>| one.launches.iter().any(|(_, run)| pairs.contains(&run.pair.as_str()));
    let found = by_machine(channel, |_, one| is(one).then_some(1.0)).into_iter().map(|(host, own)| {
        let all = channel.measured().filter(|one| one.machine == host.machine).count() as u64;
        let title = format!("{} of {} {what}", own.len(), counted(all, "setup", "setups"));
        let first = hit(own[0].0, host.machine.clone(), severity, title);
        own.iter().take(MOST_SHOWN).fold(first, |hit, (one, _)| {
            let run = one.launches.iter().find(|(_, run)| pairs.contains(&run.pair.as_str())).map(|(_, run)| run);
            let cpus = run.map_or(String::new(), |run| {
                if !run.others.is_empty() {
                    let cpus: base::CpuSet = run.sides().map(|side| side.cpu).collect();
                    return format!("machines on CPUs {cpus}: {}", run.pair);
                }
                format!("CPU {} sent and CPU {} received: {}", run.producer.cpu, run.consumer.cpu, run.pair)
            });
            hit.with(seen(format!("{}: {cpus}", setup(one)), one))
        })
    });
    found.collect()
}

/// Both sides on one core.
pub(super) fn siblings(channel: &Channel<'_>) -> Vec<Hit> {
    related(channel, &[PAIRS[0], PAIRS[1]], Severity::Medium, "ran with both sides on one core")
}

/// The sides on different nodes.
pub(super) fn nodes(channel: &Channel<'_>) -> Vec<Hit> {
    related(channel, &[PAIRS[4]], Severity::Medium, "ran with the two sides on different nodes")
}

/// mprotect where keys would do.
pub(super) fn mprotect(channel: &Channel<'_>) -> Vec<Hit> {
    let is_keyed = |host: &Host| {
        let has_measured = channel.measured().any(|one| one.machine == host.machine && one.setup.window == PKEY);
        has_measured || host.has_pku == Some(true)
    };
    let slow = |host: &Host, one: &Measured<'_>| {
        (timed(one) && one.setup.window == MPROTECT && is_keyed(host)).then(|| one.window_ns())?
    };
    let found = by_machine(channel, slow).into_iter().map(|(host, own)| {
        let (one, ns) = own[0];
        let keyed = channel.like(one, |setup| setup.window = PKEY.to_owned());
        let keyed = keyed.and_then(|series| Some((series.first(), series.first().window_ns()?)));
        let instead = match keyed {
            Some((_, keyed_ns)) => format!("{} with pkey", duration(keyed_ns)),
            None => "this processor has protection keys".to_owned(),
        };
        let title = format!("mprotect takes {} to open and close a window; {instead}", duration(ns));
        let mut found = hit(one, host.machine.clone(), Severity::Medium, title)
            .with(seen(format!("{}: {} for each batch", one.name(), duration(ns)), one));
        found.explains = own.iter().map(|(one, _)| format!("CHN-WINDOW@{}", of_path(one))).collect();
        found.explains.dedup();
        match keyed {
            Some((keyed, keyed_ns)) => {
                found = found.with(seen(format!("{}: {} for each batch", keyed.name(), duration(keyed_ns)), keyed));
                found.cost = Cost::of(CostKind::Measured, ns - keyed_ns, "ns per batch");
            }
            None => found = found.seen("the flags pku and ospke are there", host::processor::CPUINFO),
        }
        found
    });
    found.collect()
}

/// The share of a batch's time that its window takes.
fn window_share(one: &Measured<'_>) -> Option<f64> {
    Some(one.window_ns()? / one.batch_ns()?)
}

/// Batches too small for their window.
pub(super) fn window(channel: &Channel<'_>) -> Vec<Hit> {
    let paths = by_path(channel, |one| {
        let share = window_share(one).filter(|share| *share > WINDOW_SHARE)?;
        (timed(one) && one.setup.window != NONE).then_some(share)
    });
    let found = paths.into_iter().map(|own| {
        let (worst, share) = own[0];
        let series = channel.like(worst, |_| {});
        let halved = series.map(|series| halved(series, worst.setup.batch));
        let (words, batch) = match halved {
            Some((words, batch)) => (words, batch),
            None => (String::new(), None),
        };
        let title = format!(
            "{} of a batch's time goes into opening and closing the {} window at batch {}; {words}",
            percent(share),
            worst.setup.window,
            worst.setup.batch
        );
        let largest = series.and_then(|series| window_share(series.measured.last()?));
        let severity = if largest.is_some_and(|share| share > WINDOW_SHARE) { Severity::Medium } else { Severity::Low };
        let mut found = hit(worst, of_path(worst), severity, title);
        found.cost = Cost::of(CostKind::Measured, share, "share of a batch's time");
        if let Some(batch) = batch {
            found.fix = vec![format!(
                "kvmscope bench channel --window {} --batch {batch}",
                base::shell::quoted(&worst.setup.window)
            )];
        } else {
            found.fix = vec![format!(
                "kvmscope bench channel --window {} --batch 1,8,32,64,128,256   # which batch makes it cheap enough",
                base::shell::quoted(&worst.setup.window)
            )];
        }
        own.iter().take(MOST_SHOWN).fold(found, |hit, (one, share)| {
            let [window, batch] =
                [one.window_ns(), one.batch_ns()].map(|ns| ns.map_or_else(|| "-".to_owned(), duration));
            hit.with(seen(format!("{}: {window} of {batch}, {}", setup(one), percent(*share)), one))
        })
    });
    found.collect()
}

/// Which batch halves the window's share of this one, in words and as a number. Both shares are the model's: one that does not fit the batch
/// would else say that a smaller one does.
fn halved(series: &Series<'_>, batch: u32) -> (String, Option<u32>) {
    let half = |model: &Model| model.batch_with_window(model.window_ns / model.batch_ns(batch)? / 2.0);
    match series.model.as_ref().map(|model| (model, half(model))) {
        Ok((_, Ok(batch))) => (format!("by the model batch {batch} halves that"), Some(batch)),
        Ok((model, Err(_))) => {
            (format!("by the model no batch from {} to {} halves that", model.least, model.most), None)
        }
        Err(_) => {
            ("fewer than three batches have a clean rate, so no model says which one halves that".to_owned(), None)
        }
    }
}

/// Windows that are open most of the time.
pub(super) fn open(channel: &Channel<'_>) -> Vec<Hit> {
    let paths = by_path(channel, |one| one.open_share().filter(|share| *share > OPEN && timed(one)));
    let found = paths.into_iter().map(|own| {
        let (worst, share) = own[0];
        let title = format!(
            "For {} of the time the {} window is open at batch {}",
            percent(share),
            worst.setup.window,
            worst.setup.batch
        );
        let mut found = hit(worst, of_path(worst), Severity::Medium, title);
        // There is no smaller batch than one frame.
        let smaller = Some(worst.setup.batch / 2).filter(|batch| *batch > 0);
        let window = base::shell::quoted(&worst.setup.window);
        found.fix = smaller
            .map(|batch| format!("kvmscope bench channel --window {window} --batch {batch}"))
            .into_iter()
            .collect();
        own.iter().take(MOST_SHOWN).fold(found, |hit, (one, share)| {
            let sides = one.launches.iter().flat_map(|(_, run)| run.sides());
            let longest = sides.map(|side| side.open_max_ns).max().unwrap_or(0);
            let longest =
                if longest > 0 { format!(", {} at the longest", duration(longest as f64)) } else { String::new() };
            hit.with(seen(format!("{}: open {} of the time{longest}", setup(one), percent(*share)), one))
        })
    });
    found.collect()
}

/// Kicks of sides that run anyway.
pub(super) fn kicks(channel: &Channel<'_>) -> Vec<Hit> {
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
pub(super) fn ring(channel: &Channel<'_>) -> Vec<Hit> {
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

/// Rates of frames that nobody looked at.
pub(super) fn unverified(channel: &Channel<'_>) -> Vec<Hit> {
    let found = by_machine(channel, |_, one| (!one.is_verified()).then_some(1.0)).into_iter().map(|(host, own)| {
        let all = channel.measured().filter(|one| one.machine == host.machine).count() as u64;
        let title =
            format!("{} of {} carried frames that nobody looked at", own.len(), counted(all, "setup", "setups"));
        let mut found = hit(own[0].0, host.machine.clone(), Severity::Low, title);
        // Nothing makes programs of others look.
        let path = if own.iter().all(|(one, _)| dpdk::is_of(one)) { " --path ring" } else { "" };
        found.fix = vec![format!("kvmscope bench channel{path}   # frames are looked at unless --no-verify is given")];
        own.iter().take(MOST_SHOWN).fold(found, |hit, (one, _)| {
            let why = if dpdk::is_of(one) { "unverified: DPDK's programs look at no frame" } else { "unverified" };
            hit.with(seen(format!("{}: {why}", setup(one)), one))
        })
    });
    found.collect()
}

/// Frames that went where no rule of the flow table let them, and senders that were late to know.
pub(super) fn stale(channel: &Channel<'_>) -> Vec<Hit> {
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
pub(super) fn fault(channel: &Channel<'_>) -> Vec<Hit> {
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
mod tests;
