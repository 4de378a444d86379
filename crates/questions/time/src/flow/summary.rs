//! The answer in sentences, as a person would say it.

use super::halts::halts_sentence;
use super::nested_summary::{hypervisor_sentence, nested_sentences};
use super::reasons::most_frequent;
use super::section::said_of;
use base::number::{counted, duration, list, many, percent, rate, thousands};
use base::{Finding, Level};
use facts::ledger::measure::{Measures, NO_TIME};
use facts::ledger::model::{PartFlow, Vcpu};
use facts::ledger::{aligned, begin};
use walk::events::host_interrupts::HostInterrupt;
use walk::state::State;

/// So much is said of one kind; the rest is counted.
const MOST_SAID: usize = 2;

/// Rules about what went wrong with guests.
const WENT_WRONG: [&str; 4] = ["FLW-ENDED", "FLW-EMULATION", "FLW-STUCK", "FLW-EXCEPTION"];

/// The rule about waiting for a CPU.
const PREEMPTED: &str = "FLW-PREEMPT";

/// The answer as a person would say it; nothing of a trace whose vCPUs were not asked for.
pub(super) fn of(measure: &Measures<'_>, findings: &[Finding]) -> Option<String> {
    let aligned = measure.part.aligned.as_ref().map(aligned::sentence).or_else(|| begin::sentence(measure.part));
    if is_empty(measure.part) {
        let length = duration(measure.part.span.length_ns() as f64);
        return Some(said_of(measure.part, &format!("The window has nothing of this trace, which is {length} long.")));
    }
    if measure.vcpus.is_empty() {
        return aligned.or_else(|| measure.part.vcpus.is_empty().then(|| nothing_to_answer(measure.part)));
    }
    // What went wrong comes before what took time.
    let mut sentences = went_wrong(measure, findings);
    // What is worst on the page is what it begins with.
    let leads = findings.first().is_some_and(|finding| finding.rule == PREEMPTED);
    let waited = findings.iter().find(|finding| finding.rule == PREEMPTED).map(|finding| format!("{}.", finding.title));
    sentences.extend(waited.clone().filter(|_| leads));
    if measure.vcpus.iter().all(|vcpu| vcpu.is_translated()) {
        sentences.push(
            "The VMM translates the guest's code (TCG): there are no exits, and time of the guest is also the VMM's for it."
                .to_owned(),
        );
    } else if !measure.part.seen.exit {
        sentences.push(
            "The trace has no kvm_exit, so guest time and KVM time cannot be separated; the answer uses the other events."
                .to_owned(),
        );
        sentences.extend(faults_sentence(measure, findings));
    } else if measure.exits == 0 {
        sentences.extend(no_exits_sentence(measure));
    } else if measure.chains.undisturbed > 0 {
        sentences.extend(nested_sentences(measure));
    } else if let Some(level) = measure.level {
        sentences.push(level_sentence(measure, level));
    } else if measure.nested {
        sentences.push(hypervisor_sentence(measure));
    } else {
        sentences.push(plain_sentence(measure));
    }
    sentences.extend(worst_vm_sentence(measure));
    sentences.extend(waited.filter(|_| !leads));
    sentences.extend(interrupts_sentence(measure));
    sentences.extend(aligned);
    let text = sentences.join(" ");
    // What is seen from above is told after what L0 saw, and said to be so.
    (!text.is_empty()).then(|| said_of(measure.part, &text))
}

/// Exits fire in this trace, and none of what was asked for. That a whole trace has none of a level is no news: another
/// machine's has them.
fn no_exits_sentence(measure: &Measures<'_>) -> Option<String> {
    measure.level.is_none().then(|| "The window has no exits.".to_owned())
}

fn level_sentence(measure: &Measures<'_>, level: Level) -> String {
    let (_, total_ns) = measure.exits_where(|_| true);
    if measure.wall_ns == 0 {
        let exits = many(measure.exits, "exit");
        return format!("{NO_TIME} The trace has {exits} of {level}; top reasons: {}.", list(&most_frequent(measure)));
    }
    format!(
        "{} of {level} took {} of the vCPU time until the next entry; top reasons: {}.",
        many(measure.exits, "exit"),
        percent(total_ns as f64 / measure.wall_ns as f64),
        list(&most_frequent(measure))
    )
}

/// True if a window was asked for that the trace has nothing of.
fn is_empty(part: &PartFlow) -> bool {
    part.window.length_ns() == 0 && part.span.length_ns() > 0
}

/// Why a trace says nothing of vCPUs: which events it has, and which it lacks.
fn nothing_to_answer(part: &PartFlow) -> String {
    let holds = format!("The trace has {} of {}", many(part.events, "event"), many(part.tally.len() as u64, "kind"));
    let of_kvm: Vec<String> = part
        .tally
        .iter()
        .filter(|(name, _)| name.starts_with("kvm_"))
        .take(3)
        .map(|(name, count)| format!("{} {name}", thousands(*count)))
        .collect();
    let has_switches = part.has_switches;
    let lacks = match (of_kvm.is_empty(), has_switches) {
        (true, false) => "no KVM event and no sched_switch".to_owned(),
        (true, true) => "no KVM event".to_owned(),
        (false, _) => {
            format!(
                "none that tells where a vCPU's time went, such as kvm_exit or kvm_entry (KVM events: {})",
                list(&of_kvm)
            )
        }
    };
    let needed = if has_switches { "group kvm" } else { "groups kvm and sched" };
    let halts = halts_sentence(part);
    format!(
        "{holds}, but {lacks}, so vCPU times are unknown.{halts} If a guest ran, record the events of {needed} on its host."
    )
}

/// The worst of what went wrong, of which VM where there are several.
fn went_wrong(measure: &Measures<'_>, findings: &[Finding]) -> Vec<String> {
    let found: Vec<&Finding> = findings.iter().filter(|finding| WENT_WRONG.contains(&finding.rule)).collect();
    let said = |finding: &&Finding| match is_of_one_vm(measure) {
        true => format!("{}.", finding.title),
        false => format!("{}: {}.", finding.subject, finding.title),
    };
    let mut sentences: Vec<String> = found.iter().take(MOST_SAID).map(said).collect();
    let more = found.len().saturating_sub(MOST_SAID) as u64;
    sentences.extend((more > 0).then(|| format!("Below, {more} more of the kind.")));
    sentences
}

fn is_of_one_vm(measure: &Measures<'_>) -> bool {
    measure.vcpus.windows(2).all(|pair| pair[0].vm == pair[1].vm)
}

/// What else went wrong, where nothing else is known of the vCPUs.
fn faults_sentence(measure: &Measures<'_>, findings: &[Finding]) -> Option<String> {
    let is_found =
        |vcpu: &Vcpu| findings.iter().any(|finding| WENT_WRONG.contains(&finding.rule) && *finding.subject == *vcpu.vm);
    let of = |tid: i32| measure.vcpus.iter().find(|vcpu| vcpu.tid == tid && !is_found(vcpu));
    let mut told: Vec<String> = measure
        .part
        .faults
        .iter()
        .filter_map(|(tid, fault, seen)| {
            let vcpu = of(*tid)?;
            let times = counted(seen.count, "time", "times");
            let of_vm = if is_of_one_vm(measure) { String::new() } else { format!(" of {}", vcpu.vm) };
            Some(format!("{} on vCPU {}{of_vm} ({times})", fault.name(), vcpu.vcpu))
        })
        .collect();
    let more = told.len().saturating_sub(MOST_SAID) as u64;
    told.truncate(MOST_SAID);
    told.extend((more > 0).then(|| format!("{more} more (table faults)")));
    (!told.is_empty()).then(|| format!("It shows {}.", list(&told)))
}

fn plain_sentence(measure: &Measures<'_>) -> String {
    let nested = match measure.level_above(1) {
        // In a guest's own trace its guests are nested for everybody else.
        Level::At(level) if level > 1 => format!("guest inside L{level}"),
        _ => "nested guest".to_owned(),
    };
    let vcpus = if measure.vcpus.len() == 1 { "vCPU".to_owned() } else { format!("{} vCPUs", measure.vcpus.len()) };
    let (exits, reasons) = (many(measure.exits, "exit"), list(&most_frequent(measure)));
    if measure.wall_ns == 0 {
        return format!("The {vcpus} had {exits}; top reasons: {reasons}. {NO_TIME} No {nested} was seen.");
    }
    if measure.is_untimed() {
        let per_second = measure.exits as f64 * 1e9 / measure.part.window.length_ns().max(1) as f64;
        return format!(
            "The trace has exits and not the entries behind them, so how long each took, and how long the guest ran, is unknown. The {vcpus} had {exits}, \
             {} per second; top reasons: {reasons}.",
            rate(per_second)
        );
    }
    let share = |wanted: &dyn Fn(State) -> bool| percent(measure.state_ns(wanted) as f64 / measure.wall_ns as f64);
    // A guest does not see what the level below does for it.
    let seen = match measure.level_above(0) {
        Level::At(level) if level > 0 => format!(", as L{level} saw it"),
        _ => String::new(),
    };
    // Exits that no entry follows took time, and nobody knows how much.
    let is_in_kvm = |state: State| matches!(state, State::Handling(_) | State::HaltPoll);
    let in_kvm = match measure.state_ns(is_in_kvm) {
        0 if measure.exits > 0 => "an unknown part".to_owned(),
        _ => share(&is_in_kvm),
    };
    format!(
        "The {vcpus} spent {} of the time in the guest and {in_kvm} in KVM{seen}, over {exits}; top reasons: {reasons}. \
         No {nested} was seen.",
        share(&|state| matches!(state, State::Guest(_))),
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
    let sum = |vcpus: &[&Vcpu], of: &dyn Fn(&Vcpu) -> u64| vcpus.iter().map(|vcpu| of(vcpu)).sum::<u64>();
    let overhead_ns = |vcpus: &[&Vcpu]| sum(vcpus, &|vcpu| vcpu.sums.ns_where(State::is_overhead));
    let (vm, vcpus) = vms.iter().max_by_key(|(_, vcpus)| overhead_ns(vcpus))?;
    let (lost_ns, wall_ns) = (overhead_ns(vcpus), sum(vcpus, &|vcpu| vcpu.sums.wall_ns()));
    let exits = sum(vcpus, &|vcpu| measure.exit_count_of(vcpu));
    let share = lost_ns as f64 / wall_ns.max(1) as f64;
    let usual = measure.state_ns(State::is_overhead) as f64 / measure.wall_ns.max(1) as f64;
    (lost_ns > 0 && share >= STANDS_OUT * usual).then(|| {
        format!(
            "Of {}, {vm} has the most overhead: its {} spent {} of {} time in KVM, in the VMM or runnable without a \
             CPU, over {}.",
            many(vms.len() as u64, "VM"),
            if vcpus.len() == 1 { "vCPU".to_owned() } else { format!("{} vCPUs", vcpus.len()) },
            percent(share),
            if vcpus.len() == 1 { "its" } else { "their" },
            many(exits, "exit")
        )
    })
}

/// The share of a vCPU's time from which on one interrupt of the host is worth a sentence; as for waiting.
const INTERRUPT_SHARE: f64 = 0.02;

/// The interrupt or softirq of the host that took most time from one vCPU, if that is much.
fn interrupts_sentence(measure: &Measures<'_>) -> Option<String> {
    let of_vcpu = |vcpu: &&'_ Vcpu| {
        let (by, sums) = vcpu.sums.host_interrupts.iter().max_by_key(|(by, _)| vcpu.sums.guests_interrupt_ns(**by))?;
        let share = vcpu.sums.guests_interrupt_ns(*by) as f64 / vcpu.sums.guests_wall_ns().max(1) as f64;
        Some((share, *by, *sums))
    };
    let most = measure.vcpus.iter().filter_map(|vcpu| Some((of_vcpu(vcpu)?, *vcpu)));
    let ((share, by, sums), vcpu) = most.max_by(|one, other| one.0.0.total_cmp(&other.0.0))?;
    (share >= INTERRUPT_SHARE).then(|| {
        let title = measure.part.handlers.title(by);
        let by = match by {
            HostInterrupt::Irq(None) => "interrupts of the host that the trace does not name".to_owned(),
            HostInterrupt::Softirq(None) => "softirqs of the host that the trace does not name".to_owned(),
            HostInterrupt::Irq(Some(_)) => format!("{title} of the host"),
            HostInterrupt::Vector(_) => format!("the host's {title} interrupt"),
            HostInterrupt::Softirq(Some(_)) => format!("the host's softirq {title}"),
            HostInterrupt::Nmi => "NMIs of the host".to_owned(),
        };
        format!(
            "vCPU {} of {} lost {} of its time to {by}, in {}, the longest {}.",
            vcpu.vcpu,
            vcpu.vm,
            percent(share),
            many(sums.count, "interruption"),
            duration(sums.max_ns as f64)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{Histogram, Narrow};
    use facts::Given;
    use facts::ledger::model::StretchSums;
    use facts::ledger::quiet::{add, chain, quiet, sums};
    use walk::events::details::Detail;
    use walk::events::reasons::Isa;
    use walk::thread::Seen;

    #[test]
    fn an_interrupt_that_takes_much_of_a_vcpus_time_is_named_and_no_other() {
        let mut part = quiet(Isa::Vmx);
        let timer = HostInterrupt::Vector("local_timer");
        let of = |total_ns| StretchSums { count: 120, total_ns, max_ns: 35_000 };
        sums(&mut part).host_interrupts.insert(timer, of(1_000_000));
        assert!(!said(&part).contains("local_timer"), "a thousandth: {}", said(&part));
        sums(&mut part).host_interrupts.insert(HostInterrupt::Softirq(Some(3)), of(90_000_000));
        let sentence = "vCPU 0 of web lost 9.0 % of its time to the host's softirq NET_RX, in 120 interruptions, the longest 35.0 us.";
        assert!(said(&part).contains(sentence), "{}", said(&part));
    }

    #[test]
    fn a_trace_of_one_instant_has_exits_and_no_shares_of_time() {
        let mut part = quiet(Isa::Vmx);
        assert!(said(&part).starts_with("The vCPU spent "), "the first sentence is the largest: {}", said(&part));
        sums(&mut part).states_ns.fill(0);
        (part.window.to_ns, part.span.to_ns) = (0, 0);
        let whole = said(&part);
        let told = format!("The vCPU had 10,000 exits; top reasons: 10,000 HLT. {NO_TIME} No nested guest was seen.");
        assert!(whole.starts_with(&told), "{whole}");
        let narrow = Narrow { level: Some(Level::At(1)), ..Narrow::default() };
        let of_level = of(&Measures::of(&part, &Given { narrow, ..Given::default() }), &[]).unwrap();
        assert!(of_level.contains(NO_TIME), "{of_level}");
        for text in [whole, of_level] {
            assert!(!text.contains('%'), "{text}");
        }
    }

    /// VMREAD, VMRESUME: what only a hypervisor in the guest causes.
    fn hypervisor(exits: &[u32], seen: Seen) -> PartFlow {
        let mut part = quiet(Isa::Vmx);
        exits.iter().for_each(|code| add(&mut part, *code, 50, Detail::None));
        part.seen = Seen { exit: true, virtualization: true, ..seen };
        part
    }

    fn said(part: &PartFlow) -> String {
        of(&Measures::of(part, &Given::default()), &[]).unwrap()
    }

    #[test]
    fn a_chain_without_its_end_is_a_reflected_exit() {
        let mut part = hypervisor(&[23, 24], Seen { inject: true, ..Seen::default() });
        assert!(said(&part).contains("No exit of a nested guest was reflected"), "{}", said(&part));
        chain(&mut part, Isa::Vmx, &[23, 24]);
        for sums in sums(&mut part).chains.values_mut() {
            (sums.count, sums.censored, sums.exits) = (1, 1, Histogram::new());
        }
        assert!(said(&part).contains("1 exit of a nested guest was reflected"), "{}", said(&part));
    }

    #[test]
    fn without_injections_nobody_knows_what_was_reflected() {
        let entered = hypervisor(&[23, 24], Seen::default());
        assert!(said(&entered).contains("is unknown, because the trace has no kvm_nested_vmexit_inject"));
        let never = hypervisor(&[23], Seen::default());
        assert!(said(&never).contains("It entered no nested guest"), "{}", said(&never));
    }
}
