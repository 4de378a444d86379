//! All of it as one Section: facts about the recording, the sentence said aloud, findings, figures, tables.

use super::advise::advise;
use super::measure::{Measures, grouped, measure};
use super::model::{Flow, Vcpu};
use super::tables::tables;
use crate::shared::reasons::{Class, Isa};
use crate::shared::state::{Lv, STATES, State};
use crate::{Answer, Ask, Error, Options};
use base::figure::{Bar, BarGroup, Drawing};
use base::recording::Emulator;
use base::{Figure, Level, Section, Unknown};

/// The question this folder answers.
pub const QUESTION: &str = "Where did the time of every vCPU go, by level, and why?";

/// Answers it.
pub fn answer(ask: &mut Ask<'_>) -> Result<Option<Answer>, Error> {
    if ask.input.parts.is_empty() {
        return Ok(None);
    }
    let flow = super::build::build(ask)?;
    check_names(&flow, ask.options)?;
    let problems = flow.parts.iter().flat_map(|part| part.problems.iter().cloned()).collect();
    Ok(Some(Answer { section: section(&flow, ask.options), problems }))
}

/// A VM or vCPU that the user named must be there.
fn check_names(flow: &Flow, options: &Options) -> Result<(), Error> {
    let all: Vec<&Vcpu> = flow.parts.iter().flat_map(|part| &part.vcpus).collect();
    let missing = match (&options.vm, options.vcpu) {
        (Some(vm), _) if all.iter().all(|vcpu| vcpu.vm != *vm) => format!("no VM is called `{vm}`"),
        (_, Some(number)) if all.iter().all(|vcpu| vcpu.vcpu != number) => format!("no vCPU has number {number}"),
        _ => return Ok(()),
    };
    let mut known: Vec<String> = all.iter().map(|vcpu| format!("{} vCPU {}", vcpu.vm, vcpu.vcpu)).collect();
    known.dedup();
    let known = if known.is_empty() { "no vCPU at all".into() } else { known.join(", ") };
    Err(Error::NoSuch(format!("{missing} in this recording; it has {known}")))
}

/// The Section of a flow.
pub fn section(flow: &Flow, options: &Options) -> Section {
    let measures = measure(flow, options);
    let mut section = Section::new("flow", QUESTION);
    for measure in &measures {
        section.about.push(about(measure));
        section.findings.extend(advise(measure, flow.emulated));
        section.figures.extend(where_the_time_went(measure));
        section.unknown.extend(unknown(measure));
    }
    if let Some(emulator) = flow.emulated {
        let name = emulator_name(emulator);
        section.about.push(format!("EMULATED by {name}: counts and order are real, times are not."));
    }
    section.findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    let sentences: Vec<String> = measures.iter().map(|measure| summary(measure, &section)).collect();
    section.summary = sentences.join("\n\n");
    section.tables = tables(&measures, options);
    section.next = next(&measures);
    section
}

/// The mark that every cost from an emulated recording carries.
pub fn mark(emulator: Emulator) -> String {
    format!("emulated by {}", emulator_name(emulator))
}

fn emulator_name(emulator: Emulator) -> &'static str {
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
        Some(Isa::Other(_)) => "neither VMX nor SVM",
        None => "no KVM exits",
    };
    let sum = |wanted: fn(&&super::model::Loss) -> bool| part.losses.iter().filter(wanted).map(|loss| loss.count).sum();
    let stated: u64 = sum(|loss| loss.cpu.is_some() && loss.kind != "missed");
    let missed: u64 = sum(|loss| loss.kind == "missed");
    let lost = stated.max(missed);
    format!(
        "{}: recorded at {} ({kernel}{isa}, {}), {} events, {} lost, {}",
        file_name(&part.path),
        part.level,
        part.format,
        count(part.events),
        count(lost),
        duration(part.window.length_ns())
    )
}

/// The release in `Linux (none) 6.1.0-56-amd64 x86_64`, or in a bare `6.1.0-56-amd64`.
fn release(uname: &str) -> Option<&str> {
    uname.split_whitespace().find(|word| word.starts_with(|first: char| first.is_ascii_digit()))
}

fn file_name(path: &str) -> &str {
    path.trim_end_matches('/').rsplit_once('/').map_or(path, |(_, name)| name)
}

/// The answer as a person would say it.
fn summary(measure: &Measures<'_>, section: &Section) -> String {
    if measure.vcpus.is_empty() {
        return nothing_to_answer(measure);
    }
    let mut sentences = Vec::new();
    if measure.exits == 0 {
        sentences.push(
            "No kvm_exit fired, so guest time cannot be told from KVM's; what is known comes from the other events."
                .to_owned(),
        );
    } else if measure.chains.closed > 0 {
        sentences.extend(nested_sentences(measure));
    } else if measure.nested {
        sentences.push(hypervisor_sentence(measure));
    } else {
        sentences.push(plain_sentence(measure));
    }
    let worst = section.findings.iter().find(|finding| finding.rule == "FLW-PREEMPT");
    if let Some(finding) = worst {
        sentences.push(format!("{}.", finding.title));
    }
    sentences.join(" ")
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
        count(part.events)
    )
}

/// What one exit of L2 costs, in counts, and what it consists of.
fn nested_sentences(measure: &Measures<'_>) -> Vec<String> {
    let chains = &measure.chains;
    let (l1, l0) = (level_above(measure, 1), level_above(measure, 0));
    let l2 = level_above(measure, 2);
    let (p50, p99) = (chains.exits.quantile(0.5).unwrap_or(0), chains.exits.quantile(0.99).unwrap_or(0));
    let mut first = format!("Every exit of {l2} that {l1} handles costs {p50} exits of {l1} to {l0}");
    if p99 > p50 {
        first.push_str(&format!(" (median of {} chains, p99 {p99})", count(chains.closed)));
    } else {
        first.push_str(&format!(" ({} chains)", count(chains.closed)));
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
            join(&parts),
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
                "VMCS shadowing is off or absent at {l0}: {vmcs:.0} of them are VMREAD and VMWRITE; it would leave about \
                 {:.0}.",
                without + 1.0
            ));
        } else {
            sentences.push(format!("VMCS shadowing works: only {vmcs:.1} of them are VMREAD or VMWRITE."));
        }
    }
    sentences
}

fn hypervisor_sentence(measure: &Measures<'_>) -> String {
    let (virtualization, _) = measure.exits_where(|total| total.reason.class().is_nested_sign());
    let unknown = measure.unknown_level();
    let tail = if unknown > 0 {
        format!(
            " The level of {} exits cannot be told: the trace lacks kvm_nested_vmexit and kvm_nested_vmexit_inject.",
            count(unknown)
        )
    } else {
        String::new()
    };
    format!(
        "A guest hypervisor runs here: {} of {} exits are its virtualization instructions, but no exit of a nested guest \
         was handed to it.{tail}",
        count(virtualization),
        count(measure.exits)
    )
}

fn plain_sentence(measure: &Measures<'_>) -> String {
    let guest = measure.state_ns(|state| matches!(state, State::Guest(_))) as f64 / measure.wall_ns.max(1) as f64;
    let handling = measure.state_ns(|state| matches!(state, State::Handling(_))) as f64 / measure.wall_ns.max(1) as f64;
    let top: Vec<String> =
        measure.reasons.iter().take(3).map(|total| format!("{} {}", count(total.count), total.reason.name())).collect();
    format!(
        "No nested guest was seen. The {} spent {} of the time in the guest and {} in KVM, over {} exits, most of them {}.",
        if measure.vcpus.len() == 1 { "vCPU".to_owned() } else { format!("{} vCPUs", measure.vcpus.len()) },
        percent(guest),
        percent(handling),
        count(measure.exits),
        join(&top)
    )
}

fn level_above(measure: &Measures<'_>, depth: u8) -> Level {
    match measure.part.level {
        Level::At(base) => Level::At(base + depth),
        Level::Unknown => Level::Unknown,
    }
}

/// Bars of each vCPU's states, longest first.
fn where_the_time_went(measure: &Measures<'_>) -> Option<Figure> {
    if measure.vcpus.is_empty() {
        return None;
    }
    let groups = measure.vcpus.iter().map(|vcpu| group(measure, vcpu)).collect();
    let most = (0..STATES).max_by_key(|index| measure.state_ns(|state| state.index() == *index)).unwrap_or(0);
    let state = State::of_index(most);
    let share = measure.state_ns(|other| other == state) as f64 / measure.wall_ns.max(1) as f64;
    Some(Figure {
        id: format!("where-{}", measure.part.machine),
        title: "Where the time went".into(),
        caption: format!("Most of the vCPUs' time, {}, is \"{}\".", percent(share), label(measure, state)),
        drawing: Drawing::Bars(groups),
    })
}

fn group(measure: &Measures<'_>, vcpu: &Vcpu) -> BarGroup {
    let mut bars: Vec<Bar> = Vec::new();
    for (index, ns) in vcpu.sums.states_ns.iter().enumerate().filter(|(_, ns)| **ns > 0) {
        let state = State::of_index(index);
        let label = label(measure, state);
        match bars.iter_mut().find(|bar| bar.label == label) {
            Some(bar) => bar.value += *ns as f64,
            None => bars.push(Bar { label, value: *ns as f64, note: note(state), hue: hue(state) }),
        }
    }
    bars.sort_by(|a, b| b.value.total_cmp(&a.value));
    let assumed = if vcpu.vm_assumed { " (assumed)" } else { "" };
    BarGroup {
        title: format!("vm {}{assumed}   vCPU {}   tid {}", vcpu.vm, vcpu.vcpu, vcpu.tid),
        unit: "ns",
        total: vcpu.sums.wall_ns() as f64,
        bars,
    }
}

fn label(measure: &Measures<'_>, state: State) -> String {
    let host = level_above(measure, 0);
    match state {
        State::Guest(level) => format!("{} guest", measure.part.level_of(level)),
        State::Handling(level) => format!("{host} working for {}", measure.part.level_of(level)),
        State::Userspace => "VMM in userspace".into(),
        State::Irq => "host interrupts".into(),
        State::Softirq => "host softirqs".into(),
        State::Nmi => "host NMIs".into(),
        State::HaltPoll => "halt polling".into(),
        State::Halted => "halted".into(),
        State::WakeDelay => "wake-up delay".into(),
        State::Preempted => "preempted".into(),
        State::Blocked => "blocked".into(),
        State::Unknown => "unknown".into(),
    }
}

fn note(state: State) -> String {
    match state {
        State::Unknown => "before its first KVM event, or lost".into(),
        State::Preempted => "ready, another task ran".into(),
        State::Guest(level) | State::Handling(level) if level.is_open() => "level not told".into(),
        _ => String::new(),
    }
}

/// The state's name in the ledger's columns, which decides its colour.
fn hue(state: State) -> String {
    let level = |level: Lv| match level {
        Lv::At(depth) => format!("l{depth}"),
        Lv::Early | Lv::Asked | Lv::Lost => "unknown_level".into(),
    };
    match state {
        State::Guest(at) => format!("guest_{}", level(at)),
        State::Handling(at) => format!("handling_{}", level(at)),
        State::Userspace => "userspace".into(),
        State::Irq => "irq".into(),
        State::Softirq => "softirq".into(),
        State::Nmi => "nmi".into(),
        State::HaltPoll => "halt_poll".into(),
        State::Halted => "halted".into(),
        State::WakeDelay => "wake_delay".into(),
        State::Preempted => "preempted".into(),
        State::Blocked => "blocked".into(),
        State::Unknown => "unknown".into(),
    }
}

/// What the trace cannot tell, as amounts.
fn unknown(measure: &Measures<'_>) -> Vec<Unknown> {
    let mut list = Vec::new();
    let mut add = |what: &str, amount: u64, unit: &str, text: String| {
        if amount > 0 {
            let amount = Some(amount as f64);
            list.push(Unknown { what: what.into(), amount, unit: unit.into(), text });
        }
    };
    let unknown_ns = measure.state_ns(|state| state == State::Unknown);
    let share = percent(unknown_ns as f64 / measure.wall_ns.max(1) as f64);
    add(
        "unknown_time",
        unknown_ns,
        "ns",
        format!(
            "{} of vCPU time ({share}) is unknown: before a thread's first KVM event, or lost.",
            duration(unknown_ns)
        ),
    );
    let levels = measure.unknown_level();
    add(
        "unknown_level",
        levels,
        "exits",
        format!(
            "{} exits are of unknown level ({}); kvm_nested_vmexit in the recording would tell it.",
            count(levels),
            percent(measure.share(levels))
        ),
    );
    let assumed = measure.vcpus.iter().filter(|vcpu| vcpu.vm_assumed).count() as u64;
    add(
        "assumed_vm",
        assumed,
        "threads",
        format!(
            "Which VM {} to was taken from thread names; --vm-map TID=NAME overrides it.",
            if assumed == 1 { "1 thread belongs".to_owned() } else { format!("{assumed} threads belong") }
        ),
    );
    if !measure.vcpus.is_empty() && !measure.part.has_switches {
        add(
            "no_switches",
            1,
            "",
            "No sched_switch was recorded, so time off the CPU lies in the state before it; record -e sched_switch."
                .into(),
        );
    }
    let part = measure.part;
    add(
        "unattributed",
        part.unattributed,
        "events",
        format!(
            "{} KVM events came before the first switch of their CPU and belong to no known thread.",
            count(part.unattributed)
        ),
    );
    list
}

fn next(measures: &[Measures<'_>]) -> Vec<String> {
    if measures.iter().all(|measure| measure.vcpus.is_empty()) {
        return vec![
            "trace-cmd record -C mono -b 65536 -e kvm -e sched_switch -e sched_waking -e irq -e timer sleep 10".into(),
            "kvmscope report trace.dat".into(),
        ];
    }
    Vec::new()
}

/// `1,234`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3 + 1);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `76.6 %`, never rounded to nothing or to all.
pub fn percent(share: f64) -> String {
    match share * 100.0 {
        p if p > 0.0 && p < 0.05 => "<0.1 %".into(),
        p if p >= 99.95 && p < 100.0 => ">99.9 %".into(),
        p if p >= 99.95 => "100 %".into(),
        p => format!("{p:.1} %"),
    }
}

/// `12.3 ms`.
pub fn duration(ns: u64) -> String {
    let value = ns as f64;
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{:.1} us", value / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} ms", value / 1e6),
        _ => format!("{:.3} s", value / 1e9),
    }
}

fn join(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
