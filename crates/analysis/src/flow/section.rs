//! All of it as one Section: facts about the recording, the sentence said aloud, findings, figures, tables.

use super::advise::advise;
use super::measure::{Measures, grouped, measure};
use super::model::{Flow, PartFlow, Vcpu};
use super::tables::tables;
use crate::shared::reasons::{Class, Isa};
use crate::shared::state::State;
use crate::{Answer, Ask, Error, Options};
use base::number::{duration, list, many, percent, thousands};
use base::recording::Emulator;
use base::{Clock, Finding, Level, Problem, Section, Unknown};
use trace::facts::Coverage;

/// The question this folder answers.
pub const QUESTION: &str = "Where did the time of every vCPU go, by level, and why?";

/// Answers it.
pub fn answer(ask: &mut Ask<'_>) -> Result<Option<Answer>, Error> {
    if ask.input.parts.is_empty() {
        return Ok(None);
    }
    let flow = super::build::build(ask)?;
    check_events(&flow, &ask.input.problems)?;
    super::asked::check(&flow, ask.input, ask.options)?;
    let problems = flow.parts.iter().flat_map(|part| part.problems.iter().cloned()).collect();
    Ok(Some(Answer { section: section(&flow, ask.options), problems }))
}

/// Damaged input is answered as long as one event could be read.
fn check_events(flow: &Flow, opening: &[Problem]) -> Result<(), Error> {
    if flow.parts.iter().any(|part| part.events > 0) {
        return Ok(());
    }
    let path = flow.parts.first().map_or("the recording", |part| part.path.as_str());
    let problems = opening.iter().chain(flow.parts.iter().flat_map(|part| &part.problems));
    // What has a place in the file is damage; the rest, such as a clock that is not described, would not hide all events.
    let problem = problems.min_by_key(|problem| problem.offset.is_none());
    let because = problem.map_or(String::new(), |problem| format!(": {}", problem.text));
    Err(Error::NoEvents(format!("not one event could be read from {path}{because}")))
}

/// The Section of a flow.
pub fn section(flow: &Flow, options: &Options) -> Section {
    let measures = measure(flow, options);
    let mut section = Section::new("flow", QUESTION);
    let mut sentences = Vec::new();
    for measure in &measures {
        let findings = advise(measure, flow.emulated);
        section.about.push(about(measure));
        sentences.push(summary(measure, &findings));
        section.findings.extend(findings);
        section.figures.extend(super::figure::where_the_time_went(measure));
        section.unknown.extend(unknown(measure));
    }
    section.about.extend(flow.parts.iter().filter_map(twin));
    if let Some(emulator) = flow.emulated {
        let name = emulator_name(emulator);
        section.about.push(format!("EMULATED by {name}: counts and order are real, times are not."));
    }
    section.findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    section.summary = sentences.join("\n\n");
    section.tables = tables(&measures, options);
    section.next = next(&measures);
    section
}

/// The mark that every cost from an emulated recording carries.
pub fn mark(emulator: Emulator) -> String {
    format!("emulated by {}", emulator_name(emulator))
}

/// What people call it.
pub fn emulator_name(emulator: Emulator) -> &'static str {
    match emulator {
        Emulator::Tcg => "QEMU TCG",
        Emulator::Bochs => "Bochs",
    }
}

/// One line on what was read.
fn about(measure: &Measures<'_>) -> String {
    let part = measure.part;
    let kernel = part.kernel.as_deref().and_then(release).map_or(String::new(), |release| format!("Linux {release}, "));
    let isa = match measure.isa() {
        Some(Isa::Vmx) => "VMX",
        Some(Isa::Svm) => "SVM",
        Some(Isa::Arm64) => "arm64",
        Some(Isa::Other(_) | Isa::Printed(_)) => "neither VMX nor SVM",
        None => "no KVM exits",
    };
    let lost = thousands(part.lost_events());
    let lost = match part.damaged_places() {
        0 => format!("{lost} lost"),
        places => format!("{lost} lost by the recorder, damaged in {}", many(places, "place")),
    };
    format!(
        "{}: recorded at {} ({kernel}{isa}, {}), {}, {lost}, {}",
        short_path(&part.path),
        part.level,
        part.format,
        many(part.events, "event"),
        length(part)
    )
}

/// How long the trace is, and how much of it was looked at. Events are counted in all of it.
fn length(part: &PartFlow) -> String {
    let (window_ns, all_ns) = (part.window.length_ns(), part.span.length_ns());
    let all = duration(all_ns as f64);
    if window_ns == all_ns {
        all
    } else {
        format!("of which {} of {all} are in the window", duration(window_ns as f64))
    }
}

/// A trace that another one of its machine answers for.
fn twin(part: &PartFlow) -> Option<String> {
    let answering = part.twin_of.as_ref()?;
    Some(format!(
        "{}: the same machine by {}, {} events; {} answers, so that nothing counts twice",
        short_path(&part.path),
        part.format,
        many(part.events, "event"),
        short_path(answering)
    ))
}

/// The release in `Linux (none) 6.1.0-56-amd64 x86_64`, or in a bare `6.1.0-56-amd64`.
fn release(uname: &str) -> Option<&str> {
    uname.split_whitespace().find(|word| word.starts_with(|first: char| first.is_ascii_digit()))
}

/// The last two names of a path: many recordings hold a `trace.dat` per machine.
fn short_path(path: &str) -> &str {
    let path = path.trim_end_matches('/');
    let last = path.rfind('/').unwrap_or(0);
    path[..last].rfind('/').map_or(path, |above| &path[above + 1..])
}

/// The answer as a person would say it.
fn summary(measure: &Measures<'_>, findings: &[Finding]) -> String {
    let aligned = measure.part.aligned.as_ref().map(super::aligned::sentence);
    if is_empty(measure.part) {
        return said_of(
            measure.part,
            &format!(
                "The window holds nothing of this trace, which is {} long.",
                duration(measure.part.span.length_ns() as f64)
            ),
        );
    }
    if measure.vcpus.is_empty() {
        return aligned.unwrap_or_else(|| nothing_to_answer(measure));
    }
    let mut sentences = Vec::new();
    if measure.exits == 0 {
        sentences.push(
            "No kvm_exit fired, so guest time and KVM's cannot be separated; what is known comes from the other events."
                .to_owned(),
        );
    } else if measure.chains.closed > 0 {
        sentences.extend(nested_sentences(measure));
    } else if measure.nested {
        sentences.push(hypervisor_sentence(measure));
    } else {
        sentences.push(plain_sentence(measure));
    }
    sentences.extend(worst_vm_sentence(measure));
    let worst = findings.iter().find(|finding| finding.rule == "FLW-PREEMPT");
    if let Some(finding) = worst {
        sentences.push(format!("{}.", finding.title));
    }
    sentences.extend(aligned);
    let text = sentences.join(" ");
    // What is seen from above is told after what L0 saw, and said to be so.
    said_of(measure.part, &text)
}

/// True if a window was asked for that the trace has nothing of.
fn is_empty(part: &PartFlow) -> bool {
    part.window.length_ns() == 0 && part.span.length_ns() > 0
}

fn nothing_to_answer(measure: &Measures<'_>) -> String {
    let part = measure.part;
    let kinds = part.tally.len();
    let has = |prefix: &str| part.tally.iter().any(|(name, _)| name.starts_with(prefix));
    let missing = match (has("kvm_"), has("sched_switch")) {
        (false, false) => "no KVM event and no scheduler event",
        (false, true) => "no KVM event",
        _ => "no kvm_entry, kvm_exit or other event of a vCPU thread",
    };
    format!(
        "The trace holds {} events of {kinds} kinds, but {missing}, so nothing can be said of vCPUs. An answer needs the \
         events of groups kvm and sched, recorded on the host while the guests run.",
        thousands(part.events)
    )
}

/// What one exit of L2 costs, in counts, and what it consists of.
fn nested_sentences(measure: &Measures<'_>) -> Vec<String> {
    let chains = &measure.chains;
    let (l1, l0) = (measure.level_above(1), measure.level_above(0));
    let l2 = measure.level_above(2);
    let (p50, p99) = (chains.exits.quantile(0.5).unwrap_or(0), chains.exits.quantile(0.99).unwrap_or(0));
    let mut first = format!("Every exit of {l2} that {l1} handles costs {} of {l1} to {l0}", many(p50, "exit"));
    if p99 > p50 {
        first.push_str(&format!(" (median of {}, p99 {p99})", many(chains.closed, "chain")));
    } else {
        first.push_str(&format!(" ({})", many(chains.closed, "chain")));
    }
    if let Some((reason, sequence, times)) = &chains.typical {
        let parts: Vec<String> = grouped(sequence)
            .into_iter()
            .map(|(name, times)| if times == 1 { name } else { format!("{times} {name}") })
            .collect();
        let share = percent(*times as f64 / chains.closed.max(1) as f64);
        let told = if sequence.len() as u64 == p50 { String::new() } else { "; the most frequent chain".to_owned() };
        let lead = if told.is_empty() { ": ".to_owned() } else { format!("{told} has {}: ", sequence.len()) };
        first.push_str(&format!(
            "{lead}{}, in {share} of the chains, most often after {}",
            list(&parts),
            reason.name()
        ));
    }
    first.push('.');
    let mut sentences = vec![first];
    let vmcs = chains.per_chain(Class::VmcsAccess);
    if vmcs >= 0.5 {
        let without = chains.exits.mean().unwrap_or(0.0) - vmcs;
        if vmcs >= 4.0 {
            sentences.push(format!(
                "VMCS shadowing is off or absent at {l0}: on average {vmcs:.1} of {:.1} exits in a chain are VMREAD and \
                 VMWRITE; with it about {:.1} would be left.",
                without + vmcs,
                without + 1.0
            ));
        } else {
            sentences.push(format!(
                "VMCS shadowing works: on average only {vmcs:.1} exits in a chain are VMREAD or VMWRITE."
            ));
        }
    }
    sentences
}

fn hypervisor_sentence(measure: &Measures<'_>) -> String {
    let (virtualization, _) = measure.exits_where(|total| total.reason.class().is_nested_sign());
    let unknown = measure.unknown_level();
    let tail = if unknown > 0 {
        format!(
            " The level of {} exits is unknown: the trace lacks kvm_nested_vmexit and kvm_nested_vmexit_inject.",
            thousands(unknown)
        )
    } else {
        String::new()
    };
    format!(
        "A guest hypervisor runs here: {} of {} exits are its virtualization instructions, but no exit of a nested guest \
         was reflected to it.{tail}",
        thousands(virtualization),
        thousands(measure.exits)
    )
}

fn plain_sentence(measure: &Measures<'_>) -> String {
    let guest = measure.state_ns(|state| matches!(state, State::Guest(_))) as f64 / measure.wall_ns.max(1) as f64;
    let handling = measure.state_ns(|state| matches!(state, State::Handling(_))) as f64 / measure.wall_ns.max(1) as f64;
    let top: Vec<String> = measure
        .reasons
        .iter()
        .take(3)
        .map(|total| format!("{} {}", thousands(total.count), total.reason.name()))
        .collect();
    format!(
        "No {} was seen. The {} spent {} of the time in the guest and {} in KVM, over {} exits, most of them {}.",
        match measure.level_above(1) {
            // In a guest's own trace its guests are nested for everybody else.
            Level::At(level) if level > 1 => format!("guest inside L{level}"),
            _ => "nested guest".to_owned(),
        },
        if measure.vcpus.len() == 1 { "vCPU".to_owned() } else { format!("{} vCPUs", measure.vcpus.len()) },
        percent(guest),
        percent(handling),
        thousands(measure.exits),
        list(&top)
    )
}

/// A VM stands out if its vCPUs lose this many times the share of time that all vCPUs lose.
const STANDS_OUT: f64 = 2.0;

/// Of many vCPUs, the VM whose vCPUs lose most time, if it stands out.
fn worst_vm_sentence(measure: &Measures<'_>) -> Option<String> {
    let vms = measure.by_vm();
    if !measure.is_of_many() || vms.len() < 2 {
        return None;
    }
    let sum = |vcpus: &[&Vcpu], of: fn(&Vcpu) -> u64| vcpus.iter().map(|vcpu| of(vcpu)).sum::<u64>();
    let overhead_ns = |vcpus: &[&Vcpu]| sum(vcpus, |vcpu| vcpu.sums.ns_where(State::is_overhead));
    let (vm, vcpus) = vms.iter().max_by_key(|(_, vcpus)| overhead_ns(vcpus))?;
    let (lost_ns, wall_ns) = (overhead_ns(vcpus), sum(vcpus, |vcpu| vcpu.sums.wall_ns()));
    let exits = sum(vcpus, |vcpu| vcpu.sums.exit_count());
    let share = lost_ns as f64 / wall_ns.max(1) as f64;
    let usual = measure.state_ns(State::is_overhead) as f64 / measure.wall_ns.max(1) as f64;
    (lost_ns > 0 && share >= STANDS_OUT * usual).then(|| {
        format!(
            "Of {} the one with the most overhead is {vm}: its {} spent {} of {} time in KVM, in the VMM or runnable \
             without a CPU, over {}.",
            many(vms.len() as u64, "VM"),
            if vcpus.len() == 1 { "vCPU".to_owned() } else { format!("{} vCPUs", vcpus.len()) },
            percent(share),
            if vcpus.len() == 1 { "its" } else { "their" },
            many(exits, "exit")
        )
    })
}

/// What the trace cannot tell, as amounts.
fn unknown(measure: &Measures<'_>) -> Vec<Unknown> {
    let part = measure.part;
    let unknown_ns = measure.state_ns(|state| state == State::Unknown);
    let unknown_level = measure.unknown_level();
    let assumed = measure.vcpus.iter().filter(|vcpu| vcpu.vm_assumed).count() as u64;
    let no_switches = !measure.vcpus.is_empty() && !part.has_switches;
    let amounts = [
        (
            "unknown_time",
            unknown_ns,
            "ns",
            format!(
                "{} of vCPU time ({}) is unknown: {}.",
                duration(unknown_ns as f64),
                percent(unknown_ns as f64 / measure.wall_ns.max(1) as f64),
                causes_of_unknown(part)
            ),
        ),
        (
            "unknown_level",
            unknown_level,
            "exits",
            format!(
                "{} exits are of unknown level ({}); kvm_nested_vmexit in the recording would tell it.",
                thousands(unknown_level),
                percent(measure.share(unknown_level))
            ),
        ),
        (
            "assumed_vm",
            assumed,
            "threads",
            format!(
                "Which VM {} to was taken from thread names; --vm-map TID=NAME overrides it.",
                if assumed == 1 { "1 thread belongs".to_owned() } else { format!("{assumed} threads belong") }
            ),
        ),
        (
            "no_switches",
            u64::from(no_switches),
            "",
            no_switches_text(part.tally.iter().any(|(name, _)| name == super::build::UNKNOWN_EVENTS)).to_owned(),
        ),
        (
            "unattributed",
            part.unattributed,
            "events",
            format!(
                "{} KVM events came before the first switch of their CPU and belong to no known thread.",
                thousands(part.unattributed)
            ),
        ),
    ];
    let amounts = amounts.into_iter().filter(|(_, amount, ..)| *amount > 0);
    let note = |(what, amount, unit, text): (&str, u64, &str, String)| Unknown {
        what: what.into(),
        amount: (!unit.is_empty()).then_some(amount as f64),
        unit: unit.into(),
        text,
    };
    let mut list: Vec<Unknown> = amounts.map(note).collect();
    list.extend(part.unseen_cpus.iter().map(|(cpu, coverage)| unseen_cpu(part, *cpu, *coverage)));
    list.extend(part.clock_fitted_to.as_ref().map(|witness| clock_fitted(&part.clock, witness)));
    list.iter_mut().for_each(|unknown| unknown.text = said_of(part, &unknown.text));
    list
}

/// Why time is unknown, as far as this trace can have it so.
fn causes_of_unknown(part: &PartFlow) -> String {
    let lost = part.lost_events() > 0 || part.damaged_places() > 0;
    let unseen = part.doubts.unseen_switches + part.doubts.unseen_entries > 0;
    let causes = [
        (!part.seen.exit, "in KVM_RUN, where kvm_exit does not fire and guest and KVM cannot be separated"),
        (true, "before a thread's first KVM event"),
        (lost, "where events are lost"),
        (!part.unseen_cpus.is_empty(), "while a CPU is missing"),
        (unseen, "where a switch or an entry is not in the trace"),
    ];
    let causes: Vec<&str> = causes.into_iter().filter(|(holds, _)| *holds).map(|(_, cause)| cause).collect();
    causes.join(", or ")
}

/// A CPU of which the trace lacks a part or all.
fn unseen_cpu(part: &PartFlow, cpu: u32, coverage: Coverage) -> Unknown {
    let since = |at_ns: u64| duration(at_ns.saturating_sub(part.span.from_ns) as f64);
    let missing = match coverage {
        Coverage::Whole | Coverage::Missing => "missing from the trace".to_owned(),
        Coverage::Part { from_ns, until_ns: u64::MAX } => format!("missing until {}", since(from_ns)),
        Coverage::Part { from_ns: 0, until_ns } => format!("missing from {} on", since(until_ns)),
        Coverage::Part { from_ns, until_ns } => {
            format!("missing until {} and from {} on", since(from_ns), since(until_ns))
        }
    };
    Unknown {
        what: "unseen_cpu".into(),
        amount: Some(cpu.into()),
        unit: "CPU".into(),
        text: format!(
            "CPU {cpu} is {missing}: what ran there is unknown, and so is what vCPUs did meanwhile while they were off \
             the other CPUs."
        ),
    }
}

/// A sentence about a trace, which says so where it is not the host's.
fn said_of(part: &PartFlow, text: &str) -> String {
    if part.level == Level::L0 { text.to_owned() } else { format!("In the trace of {}: {text}", part.machine) }
}

fn clock_fitted(clock: &Clock, witness: &str) -> Unknown {
    let ticks = clock.ticks(1_000_000_000) as f64 / 1e9;
    Unknown {
        what: "clock_fitted".into(),
        amount: Some(ticks),
        unit: "ticks per ns".into(),
        text: format!(
            "Clock {} has no scale in its file; {ticks:.4} ticks per ns were taken from {witness}.",
            clock.name
        ),
    }
}

fn next(measures: &[Measures<'_>]) -> Vec<String> {
    if measures.iter().all(|measure| measure.vcpus.is_empty()) {
        return vec![
            "kvmscope record --seconds 10 -o again   # on the host, while its guests run".into(),
            "kvmscope report again".into(),
        ];
    }
    Vec::new()
}

/// What is said where no `sched_switch` was read: it may be among events that no format describes.
fn no_switches_text(has_unknown: bool) -> &'static str {
    if has_unknown {
        "No sched_switch was read, so time off the CPU lies in the state before it; it may be among the events that no \
         format in the file describes."
    } else {
        "No sched_switch was recorded, so time off the CPU lies in the state before it; record -e sched_switch."
    }
}
