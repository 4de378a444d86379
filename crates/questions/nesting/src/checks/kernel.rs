//! Checks of the kernel: changes that it lacks, and mitigations that it pays for.

use super::{hit, shown_by};
use crate::features::MITIGATIONS;
use crate::kernels::{CHEAPER, Change as Commit, FAULTS, number_is_frozen, upgrade};
use crate::model::{Machine, Model};
use base::figure::Standing;
use base::number::{counted, list};
use base::{Cost, CostKind, Evidence, Setting, Severity};
use facts::rule::Hit;
use host::release::Release;

/// Changes that a newer kernel brings.
pub(crate) fn older(model: &Model) -> Vec<Hit> {
    let mut hits = Vec::new();
    for machine in &model.machines {
        let Some(release) = &machine.facts.release else { continue };
        for change in missing(&CHEAPER, machine, release) {
            let first = change.first_for(release);
            let title = format!("Linux {release} on {} is older than {first}, which {}", machine.id, change.does);
            let mut evidence = vec![Evidence::new(
                format!("{release}; commit {} is in {first} and later ({})", change.commit, change.source),
                format!("proc/sys/kernel/osrelease of {}", machine.id),
            )];
            evidence.extend(doubt(release));
            let severity = match change.cost {
                Some(_) => victims(model, machine, release, &mut evidence),
                None => Severity::Info,
            };
            let mut hit = hit(machine, severity, title, evidence);
            hit.subject = format!("{}.{}", machine.id, change.commit);
            hit.fix = vec![upgrade(release, &first)];
            if let Some((low, high, unit)) = change.cost {
                hit.cost = Cost::of(CostKind::Published, f64::midpoint(low, high), unit).between(low, high);
            }
            hits.push(hit);
        }
    }
    hits
}

/// Changes of `all` that a release lacks and this machine would need.
fn missing<'a>(
    all: &'static [Commit],
    machine: &'a Machine,
    release: &'a Release,
) -> impl Iterator<Item = &'static Commit> + 'a {
    all.iter().filter(|change| change.concerns(machine) && change.is_missing_in(release))
}

/// How much a kernel of that release costs here: only who runs guests of guests pays.
fn victims(model: &Model, machine: &Machine, release: &Release, evidence: &mut Vec<Evidence>) -> Severity {
    if !model.is_nesting(machine) {
        let none = format!("no guest of {} is known to run guests: it costs nothing until one does", machine.id);
        evidence.push(Evidence::new(none, "levels and traces of the recording"));
        return Severity::Info;
    }
    if number_is_frozen(release) { Severity::Low } else { Severity::Medium }
}

/// What a number leaves open.
pub(super) fn doubt(release: &Release) -> Option<Evidence> {
    let what = "this distribution backports changes without changing the version: check its changelog";
    number_is_frozen(release).then(|| Evidence::new(what, "the kernel release name"))
}

/// Faults of the kernel that guest hypervisors meet: one finding for a machine, whatever their number.
pub(crate) fn faults(model: &Model) -> Vec<Hit> {
    let mut hits = Vec::new();
    for machine in &model.machines {
        let Some(release) = &machine.facts.release else { continue };
        let missing: Vec<&Commit> = missing(&FAULTS, machine, release).collect();
        if missing.is_empty() {
            continue;
        }
        let fixes = counted(missing.len() as u64, "fix", "fixes");
        let title = format!("Linux {release} on {} lacks {fixes} that hosts with nested guests need", machine.id);
        let line = |fault: &&Commit| {
            let what = format!("before {} {}", fault.first_for(release), fault.does);
            Evidence::new(what, format!("{}, commit {}", fault.source, fault.commit))
        };
        let mut evidence: Vec<Evidence> = missing.iter().map(line).chain(doubt(release)).collect();
        let severity = victims(model, machine, release, &mut evidence);
        hits.push(hit(machine, severity, title, evidence));
    }
    hits
}

/// Work at entries and exits that protects against weaknesses of the processor.
pub(crate) fn mitigations(model: &Model) -> Vec<Hit> {
    let mut hits = Vec::new();
    for machine in model.machines.iter().filter(|machine| machine.state("kvm") == Standing::On) {
        let paid: Vec<_> = MITIGATIONS.iter().filter(|known| machine.state(known.feature) == Standing::On).collect();
        if paid.is_empty() {
            continue;
        }
        let mut names: Vec<String> = paid.iter().map(|known| known.file.to_owned()).collect();
        names.dedup();
        let title = format!("Mitigations make VM entries and exits on {} slower: {}", machine.id, list(&names));
        let mut evidence: Vec<Evidence> = Vec::new();
        for shown in paid.iter().flat_map(|known| shown_by(machine, known.feature)) {
            // One line of the kernel tells several: those of branch target injection.
            if !evidence.iter().any(|known| known.what == shown.what) {
                evidence.push(shown);
            }
        }
        hits.push(hit(machine, Severity::Info, title, evidence));
    }
    hits
}

/// Huge pages are split against an erratum that this processor does not have.
pub(crate) fn nx_huge_pages(model: &Model) -> Vec<Hit> {
    let needless = |machine: &&Machine| {
        let not_affected =
            machine.facts.vulnerability("itlb_multihit").is_some_and(|line| line.starts_with("Not affected"));
        machine.state("nx_huge_pages") == Standing::On && not_affected
    };
    let split = model.machines.iter().filter(needless);
    split
        .map(|machine| {
            let title = format!("{} splits executable huge pages of guests needlessly", machine.id);
            let mut evidence = shown_by(machine, "nx_huge_pages");
            evidence.extend(shown_by(machine, "mitigation_itlb_multihit"));
            let mut hit = hit(machine, Severity::Medium, title, evidence);
            let path = "module/kvm/parameters/nx_huge_pages".to_owned();
            hit.changes = vec![Setting::SysfsWrite { path }.change("auto", Some("force".into()))];
            hit
        })
        .collect()
}

/// The L1 data cache is flushed before entries.
pub(crate) fn l1d_flush(model: &Model) -> Vec<Hit> {
    let flushing = model.machines.iter().filter(|machine| machine.state("l1d_flush") == Standing::On);
    flushing
        .map(|machine| {
            let title = format!("{} flushes the L1 data cache before VM entries, against L1TF", machine.id);
            let mut evidence = shown_by(machine, "l1d_flush");
            evidence.extend(shown_by(machine, "mitigation_l1tf"));
            hit(machine, Severity::Info, title, evidence)
        })
        .collect()
}
