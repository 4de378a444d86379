//! All of it as one Section.

use super::advise::advise;
use super::build::build;
use super::model::{Machine, Model};
use super::rules::RULES;
use super::tables;
use super::{measured, measured_cost, ratio};
use base::fact_kind::unjudged;
use base::figure::Standing;
use base::number::{counted, list};
use base::{FactKind, Finding, Level, Section, Severity, Unknown};
use facts::benches;
use facts::described::described;
use facts::traced_exits::TracedExits;
use facts::{Answer, Case, Error, Given};
use host::processor::Vendor;
use tongue::translated;

/// The question this folder answers.
pub const QUESTION: &str = "What does an exit cost at every level, and what would make it cheaper?";

/// Answers it; `None` if the recording has no snapshot and no bench.
///
/// # Errors
/// None today: a snapshot that cannot be read is a problem and costs nobody else's answer.
pub fn answer(case: &Case) -> Result<Option<Answer>, Error> {
    let mut model = build(case.machines());
    // Those of guests' memory are about migrations, and what a path carries is a question of its own.
    let benches = &case
        .benches()
        .those(|bench| !benches::OF_MEMORY.contains(&bench.bench.as_str()) && bench.bench != base::channel::BENCH);
    let unread = case.machines().unopened + benches.unread;
    if model.machines.is_empty() && benches.is_empty() && unread == 0 {
        return Ok(None);
    }
    let traced = (!model.machines.is_empty()).then(|| TracedExits::of(case)).flatten();
    model.traced_nested =
        traced.as_ref().is_some_and(|exits| exits.by_reason.keys().any(|(level, _)| *level > Level::At(1)));
    let described = described(case);
    for machine in &mut model.machines {
        if let Some(of_it) = described.0.iter().find(|described| described.id == machine.id) {
            machine.asks_for_nesting = asking(&of_it.machine);
            machine.runs_guests = runs_vcpus(&of_it.machine);
        }
    }
    let only_measured = model.machines.is_empty() && !benches.is_empty();
    let mut section = if only_measured { Section::new("nesting", QUESTION) } else { section(&model, case.given()) };
    for finding in &mut section.findings {
        let level = finding.level;
        let of_level = described.0.iter().filter(|described| described.level == level);
        of_level.for_each(|described| translated(&described.machine, finding));
    }
    if !section.findings.is_empty()
        && let Some(exits) = &traced
    {
        measured_cost::add(&mut section.findings, exits, case.input().recording.emulated);
    }
    measured::add(benches, &mut section);
    ratio::add(benches, &mut section);
    Ok(Some(Answer { section, problems: Vec::new() }))
}

/// Whether a thread is one of KVM's vCPUs, by the name that QEMU gives it.
fn runs_vcpus(machine: &host::Machine) -> bool {
    machine.threads.iter().any(|thread| thread.name.starts_with("CPU ") && thread.name.ends_with("/KVM"))
}

/// VMs that are to have VMX or SVM, and where their definitions say so.
fn asking(machine: &host::Machine) -> Vec<(String, String)> {
    let asks = machine.domains.iter().filter_map(|domain| {
        let asked = ["vmx", "svm"].iter().find_map(|name| domain.features.get(*name).filter(|told| told.value))?;
        Some((domain.name.clone(), asked.place.clone()))
    });
    asks.collect()
}

pub fn section(model: &Model, given: &Given) -> Section {
    let mut section = Section::new("nesting", QUESTION);
    section.about = model.machines.iter().map(about).collect();
    section.findings = advise(model);
    section.summary = summary(model, &section.findings);
    section.figures.extend(super::matrix::figure(model, &section.findings));
    section.tables = vec![
        tables::features(model, given.listing.all_features),
        tables::parameters(model),
        super::flags::table(model),
        super::inferred::table(model),
    ];
    section.unknown = unknown(model);
    section
}

fn about(machine: &Machine) -> String {
    let facts = &machine.facts;
    // Of a sosreport or a pasted tree often only a part is there: what nobody told is left out.
    let kernel = facts.release.as_ref().map(|release| format!("Linux {release}"));
    let cpu = facts.processor.as_ref().map(|cpu| cpu.name.clone());
    let below = match (facts.below.present, facts.below.names()) {
        (Some(false), _) => "on bare metal".to_owned(),
        (Some(true), names) if names.is_empty() => "under a hypervisor without a name".to_owned(),
        (Some(true), names) => {
            format!("under {}", list(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()))
        }
        (None, _) => "level unknown".to_owned(),
    };
    let counted =
        if machine.level == Level::L0 && machine.is_guest() { "; levels count from this machine" } else { "" };
    let told: Vec<String> = kernel.into_iter().chain(cpu).chain([below]).collect();
    format!("{}: {}{counted}", machine.id, told.join(", "))
}

/// The answer as a person would say it.
fn summary(model: &Model, findings: &[Finding]) -> String {
    // What can be cheaper is asked first; what each machine is for nesting is its background.
    let first = findings.iter().find(|finding| finding.severity >= Severity::Medium);
    let mut sentences: Vec<String> = first.map(|finding| format!("{}.", finding.title)).into_iter().collect();
    sentences.extend(model.machines.iter().map(standing));
    let mut features = model.machines.iter().flat_map(|machine| &machine.features);
    if features.all(|row| row.state == Standing::Unknown) {
        sentences.push("The snapshot has no data about its features.".to_owned());
    } else if findings.is_empty() {
        sentences.push("Nothing to change for nested virtualization.".to_owned());
    }
    sentences.join(" ")
}

/// What a machine is for nesting, in a sentence.
fn standing(machine: &Machine) -> String {
    let id = &machine.id;
    let has = match machine.facts.processor.as_ref().map(|cpu| cpu.vendor) {
        Some(Vendor::Intel) => "VMX",
        Some(Vendor::Amd) => "SVM",
        _ => "VMX or SVM",
    };
    match (machine.state("emulated_cpu"), machine.state("virtualization"), machine.state("kvm")) {
        (Standing::On, ..) => format!("{id} is emulated by QEMU TCG: its times do not apply to hardware."),
        (_, Standing::On, Standing::On) => {
            format!("{id} can run guests with KVM, and nested guests in those that have {has}.")
        }
        (_, Standing::On, Standing::Off | Standing::Absent) if machine.facts.is_loaded("kvm") == Some(true) => {
            format!("{id} has {has}; module kvm is loaded, but neither kvm_intel nor kvm_amd.")
        }
        (_, Standing::On, Standing::Off | Standing::Absent) => format!("{id} has {has}, but KVM is not loaded."),
        (_, Standing::On, _) => format!("{id} has {has}; whether KVM is loaded is unknown."),
        (_, Standing::Absent, Standing::On) if machine.state("kvm_pvm") == Standing::On => {
            format!("{id} has no {has} and runs guests with kvm_pvm.")
        }
        (_, Standing::Off, _) => format!("{id} has {has}, but its firmware disables it."),
        (_, Standing::Absent, _) => format!("{id} has no {has}, so KVM cannot run guests there."),
        _ => format!("Whether {id} can run guests is unknown."),
    }
}

/// What these machines cannot tell.
fn unknown(model: &Model) -> Vec<Unknown> {
    let known = model.machines.iter().flat_map(known).collect();
    let open = unjudged("about nesting", RULES.iter().map(|rule| rule.requires), &known);
    levels_below(model).into_iter().chain(open).collect()
}

/// Kinds of facts that a machine told.
fn known(machine: &Machine) -> Vec<FactKind> {
    let facts = &machine.facts;
    let told = [
        (FactKind::Processor, facts.processor.is_some()),
        (FactKind::Modules, !facts.parameters.is_empty() || facts.is_loaded("kvm") == Some(false)),
        (FactKind::Release, facts.release.is_some()),
        (FactKind::Mitigations, !facts.snapshot.names("sys/devices/system/cpu/vulnerabilities").is_empty()),
        (FactKind::Clocksource, facts.clocksource().is_some()),
        (FactKind::Log, facts.log.is_some()),
        (FactKind::CpuidTime, facts.timing.is_some()),
    ];
    told.into_iter().filter(|(_, is_told)| *is_told).map(|(known, _)| known).collect()
}

/// Features of levels without a snapshot.
fn levels_below(model: &Model) -> Vec<Unknown> {
    let untold = model.untold();
    if let Some((level, ..)) = untold.first() {
        let below = if *level == Level::Below { "the hypervisor below L0".to_owned() } else { level.to_string() };
        let names: Vec<String> = untold.iter().map(|(_, feature, _)| (*feature).to_owned()).collect();
        let text = format!(
            "{} not visible from its guest: {}. Ask the owner of {below} for a snapshot, or measure: kvmscope bench \
             exits.",
            counted(names.len() as u64, &format!("feature of {below} is"), &format!("features of {below} are")),
            list(&names)
        );
        return vec![Unknown {
            what: "outer_level".into(),
            amount: Some(names.len() as f64),
            unit: "features".into(),
            text,
        }];
    }
    Vec::new()
}
