//! All of it as one Section.

use super::culprits::Culprits;
use super::measured::{Channel, MPROTECT, Measured, NONE, PKEY};
use super::{delays, dpdk, faults, figures, flows, rules, setups, summary, tables, unknowns};
use base::Section;
use base::channel::{BENCH, Setup};
use base::number::{bytes, list, packets_per_s, thousands};
use facts::benches::BenchRun;
use facts::{Answer, Case, Error};

/// The question this folder answers.
pub const QUESTION: &str = "How many packets does a path between two machines carry, and what does each step cost?";

/// The frame and the batch that sentences are about, where they were measured: those of the talk of 2015.
pub(super) const FRAME_BYTES: u32 = 64;
pub(super) const BATCH: u32 = 32;

/// Answers it; `None` if the recording has no such bench.
///
/// # Errors
/// None today.
pub fn answer(case: &Case) -> Result<Option<Answer>, Error> {
    let benches = case.benches().those(|bench| bench.bench == BENCH);
    if benches.is_empty() {
        return Ok(None);
    }
    let mut channel = Channel::of(&benches, case.machines());
    channel.culprits = Culprits::of(case, &channel);
    Ok(Some(Answer { section: section(&channel, &benches.runs), problems: Vec::new() }))
}

pub(super) fn section(channel: &Channel<'_>, runs: &[BenchRun]) -> Section {
    let mut section = Section::new(super::ID, QUESTION);
    section.about = runs.iter().map(BenchRun::about).collect();
    if channel.is_emulated {
        section.about.push("EMULATED: times are the emulator's and not comparable to hardware.".to_owned());
    }
    section.about.extend(emulated(channel));
    let main: Vec<&Measured<'_>> = channel.hosts.iter().filter_map(|host| main(channel, &host.machine)).collect();
    for one in &main {
        section.about.extend(ring(one));
    }
    section.about.extend(protection(channel));
    section.about.extend(dpdk::about(channel));
    section.about.extend(runs.iter().flat_map(|run| run.bench.notes.clone()));
    let setups = setups::of(channel);
    section.summary = summary::of(channel, &main, &setups);
    section.findings = rules::findings(channel);
    for one in &main {
        let mut drawn = figures::figures(channel, one);
        if main.len() > 1 {
            drawn.iter_mut().for_each(|figure| figure.id = format!("{}_{}", figure.id, one.machine));
        }
        section.figures.append(&mut drawn);
    }
    for host in &channel.hosts {
        section.figures.extend(figures::delays(channel, &host.machine));
    }
    let gaps = tables::gaps(channel);
    section.unknown = unknowns::of(channel, gaps.rows.len() as u64);
    let parts = [
        tables::rates(channel),
        gaps,
        setups::table(&setups),
        delays::table(&channel.delays),
        flows::table(&channel.flows),
        faults::table(&channel.faults),
    ];
    section.tables = parts.into_iter().filter(|table| !table.rows.is_empty()).collect();
    section
}

/// Which paths ran in emulated guests, beside others that did not.
fn emulated(channel: &Channel<'_>) -> Option<String> {
    let mut paths: Vec<String> =
        channel.measured().filter(|one| one.is_emulated()).map(|one| one.setup.path.clone()).collect();
    paths.dedup();
    (!paths.is_empty()).then(|| {
        format!(
            "EMULATED: {} ran between guests that QEMU emulated (TCG). Whether each frame arrived is real; times there are the emulator's and \
             not comparable to hardware.",
            list(&paths)
        )
    })
}

/// The setup of a machine that sentences are about: a real one before emulated ones, one with a clean rate before others, then a path of
/// ours, that nearest to what is asked for, and the fastest of these.
fn main<'c, 'b>(channel: &'c Channel<'b>, machine: &str) -> Option<&'c Measured<'b>> {
    let far = |one: &Measured<'_>| {
        let Setup { window, size_bytes, batch, vms, .. } = one.setup;
        let other = (dpdk::is_of(one), size_bytes.abs_diff(FRAME_BYTES), batch.abs_diff(BATCH), window != NONE, *vms);
        (one.is_emulated(), one.clean_mpps().is_none(), other)
    };
    let rate = |one: &Measured<'_>| one.clean_mpps().unwrap_or(0.0);
    let own = channel.measured().filter(|one| one.machine == machine);
    own.min_by(|a, b| far(a).cmp(&far(b)).then(rate(b).total_cmp(&rate(a))))
}

/// What a frame moves, and over what.
fn ring(one: &Measured<'_>) -> Option<String> {
    let (_, run) = one.launches.first()?;
    let moved =
        |mpps: f64| format!(", {}/s at {}", bytes(mpps * 1e6 * f64::from(run.moved_bytes)), packets_per_s(mpps * 1e6));
    if !run.others.is_empty() {
        let cpus: base::CpuSet = run.sides().map(|side| side.cpu).collect();
        return Some(format!(
            "{}: {} on CPUs {cpus} ({}) have rings of {} slots, {} each; a frame of {} B moves {} B between CPUs{}.",
            one.machine,
            one.name(),
            run.pair,
            thousands(run.slots.into()),
            bytes(run.ring_bytes as f64),
            one.setup.size_bytes,
            run.moved_bytes,
            one.clean_mpps().map_or_else(String::new, moved)
        ));
    }
    let who = format!(
        "{}: CPU {} sends and CPU {} receives ({}), over a ring of {} slots",
        one.machine,
        run.producer.cpu,
        run.consumer.cpu,
        run.pair,
        thousands(run.slots.into())
    );
    // Of rings of others nobody knows which lines travel.
    if run.moved_bytes == 0 {
        return Some(format!("{who}, by {}.", one.setup.path));
    }
    Some(format!(
        "{who} in {}; a frame of {} B moves {} B between them{}.",
        bytes(run.ring_bytes as f64),
        one.setup.size_bytes,
        run.moved_bytes,
        one.clean_mpps().map_or_else(String::new, moved)
    ))
}

/// What windows that were measured do not do.
fn protection(channel: &Channel<'_>) -> Option<String> {
    let was = |window: &&str| channel.measured().any(|one| one.setup.window == *window);
    let names: Vec<String> =
        [PKEY, MPROTECT].iter().filter(|window| was(window)).map(|name| (*name).to_owned()).collect();
    let (guards, it) = match names.len() {
        0 => return None,
        1 => ("guards", "It is"),
        _ => ("guard", "They are"),
    };
    Some(format!(
        "{} {guards} against our own wild reads and writes. {it} not isolation between VMs: that comes from what each side can map.",
        list(&names)
    ))
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::tests::{Made, benches};
    use super::*;
    use facts::machines::Machines;

    pub(crate) fn answered(made: &[Made]) -> Section {
        let benches = benches(made);
        section(&Channel::of(&benches, &Machines::default()), &benches.runs)
    }

    pub(crate) fn unknowns(section: &Section) -> Vec<&str> {
        section.unknown.iter().map(|one| one.what.as_str()).collect()
    }

    #[test]
    fn what_was_measured_stands_for_what_was_asked_for_if_that_is_not_there() {
        let section = answered(&[Made { size: 512, batch: 8, verified: false, ..Made::default() }]);
        assert!(
            section.summary.starts_with("12.50 Mpps at 512 B and batch 8 over ring without a window, unverified."),
            "{}",
            section.summary
        );
        assert!(!section.about.iter().any(|line| line.contains("isolation")));
    }

    #[test]
    fn emulated_paths_are_named_and_stand_beside_no_real_number() {
        let emulated = Made { path: "ivshmem-plain", emulated: true, batch_ns: 64.0, ..Made::default() };
        let section = answered(&[emulated.clone(), Made::default()]);
        assert!(
            section.about.iter().any(|line| line.starts_with("EMULATED: ivshmem-plain ran between")),
            "{:?}",
            section.about
        );
        let said = "50.00 Mpps at 64 B and batch 32 over ring without a window.";
        assert!(section.summary.starts_with(said) && !section.summary.contains("ivshmem"), "{}", section.summary);
        let alone = answered(&[emulated]).summary;
        assert_eq!(alone, "500.00 Mpps at 64 B and batch 32 over ivshmem-plain without a window, emulated.");
        assert!(!answered(&[Made::default()]).about.iter().any(|line| line.contains("EMULATED")));
    }
}
