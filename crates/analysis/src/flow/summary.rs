//! The answer in sentences, as a person would say it.

use super::measure::{Measures, grouped};
use super::model::{PartFlow, Vcpu};
use super::section::said_of;
use crate::shared::reasons::Class;
use crate::shared::state::State;
use base::number::{duration, list, many, percent, thousands};
use base::{Finding, Level};

/// The answer as a person would say it.
pub fn of(measure: &Measures<'_>, findings: &[Finding]) -> String {
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
