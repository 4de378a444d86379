//! The checks behind the rules: numbers become evidence, or nothing.

use super::measure::Measures;
use super::rules::{Hit, RULES};
use super::section::{count, many, percent};
use super::tables::task_name;
use crate::shared::details::{Detail, apic_register};
use crate::shared::reasons::{Class, Isa, Reason};
use crate::shared::state::State;
use base::recording::Emulator;
use base::{Change, Cost, CostKind, Evidence, Finding, Level, Severity};

/// All findings of one trace, worst first.
pub fn advise(measure: &Measures<'_>, emulated: Option<Emulator>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for rule in RULES {
        for hit in (rule.check)(measure) {
            let mut cost = hit.cost;
            if let (Some(emulator), true) = (emulated, cost.value.is_some()) {
                cost.unit = format!("{}, {}", cost.unit, super::section::mark(emulator));
            }
            let own = |special: Vec<String>, rule: &[&str]| {
                special.into_iter().chain(rule.iter().map(|line| (*line).to_owned())).collect()
            };
            let level = match measure.part.level {
                Level::At(base) => Level::At(base + rule.above),
                Level::Unknown => Level::Unknown,
            };
            findings.push(Finding {
                rule: rule.id,
                subject: hit.subject,
                severity: hit.severity,
                level,
                title: hit.title,
                evidence: hit.evidence,
                cost,
                why: rule.why.to_owned(),
                changes: hit.changes,
                fix: own(hit.fix, rule.fix),
                undo: own(hit.undo, rule.undo),
                needs: rule.needs,
                source: rule.source,
            });
        }
    }
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    findings
}

/// What a hit is about when it is about all vCPUs: the VM, or the machine.
fn subject(measure: &Measures<'_>) -> String {
    match measure.vcpus.first() {
        Some(first) if measure.vcpus.iter().all(|vcpu| vcpu.vm == first.vm) => first.vm.clone(),
        _ => measure.part.machine.clone(),
    }
}

/// Fewer exits of a kind than this are an anecdote; their share of a short trace says nothing.
const FEWEST_EXITS: u64 = 20;

fn seen(what: String, place: &str) -> Evidence {
    Evidence { what, place: place.to_owned() }
}

fn hit(measure: &Measures<'_>, severity: Severity, title: String, evidence: Vec<Evidence>, cost: Cost) -> Vec<Hit> {
    let subject = subject(measure);
    vec![Hit { subject, severity, title, evidence, cost, changes: Vec::new(), fix: Vec::new(), undo: Vec::new() }]
}

/// Severity of something that takes this share of all exits or of all time.
fn by_share(share: f64) -> Severity {
    match share {
        s if s >= 0.30 => Severity::High,
        s if s >= 0.10 => Severity::Medium,
        _ => Severity::Low,
    }
}

/// VMREAD and VMWRITE of L1 in most chains. Real hypervisors touch ten and more fields per exit without shadowing
/// (intel/haxm PR 130 counts 6-10 VMREAD and 2-6 VMWRITE for KVM), and one or two with it.
const VMCS_PER_CHAIN: f64 = 4.0;

/// VMWRITEs per chain that shadowing does not remove: HOST_RSP is not in KVM's list of shadowed fields.
const UNSHADOWED_PER_CHAIN: f64 = 1.0;

/// VMCS shadowing off or absent.
pub fn shadow(measure: &Measures<'_>) -> Vec<Hit> {
    let per_chain = measure.chains.per_chain(Class::VmcsAccess);
    let (exits, _) = measure.exits_where(|total| total.reason.class() == Class::VmcsAccess);
    let without_chains = measure.chains.kept == 0 && measure.share(exits) > 0.3;
    if per_chain < VMCS_PER_CHAIN && !without_chains {
        return Vec::new();
    }
    let share = measure.share(exits);
    let mut evidence = Vec::new();
    for name in ["VMREAD", "VMWRITE"] {
        let totals = measure.reasons.iter().filter(|total| total.reason.known_name() == Some(name));
        for total in totals {
            let sites = total.details.iter().filter(|(detail, ..)| matches!(detail, Detail::Rip(_))).count();
            let busiest = total.details.first().map_or(0, |(_, count, _)| *count);
            evidence.push(seen(
                format!(
                    "{} {name} at {} in {}, up to {} each",
                    count(total.count),
                    places(sites),
                    total.level,
                    count(busiest)
                ),
                "table exit_details",
            ));
        }
    }
    let cost = if measure.chains.kept > 0 {
        let all = measure.chains.exits.mean().unwrap_or(0.0);
        evidence.push(seen(
            format!(
                "{per_chain:.1} of {all:.1} exits in a chain are VMREAD or VMWRITE, over {} chains",
                count(measure.chains.kept)
            ),
            "table chains",
        ));
        let saved = per_chain - UNSHADOWED_PER_CHAIN;
        let unit = format!("of {all:.0} exits per chain would go");
        Cost::of(CostKind::Modelled, saved.round(), unit).between((saved - 2.0).max(0.0).round(), per_chain.round())
    } else {
        Cost::of(CostKind::Measured, share, "share of all exits")
    };
    let title = format!("VMCS shadowing is off or absent: {} of all exits are VMREAD and VMWRITE", percent(share));
    hit(measure, by_share(share), title, evidence, cost)
}

fn places(sites: usize) -> String {
    if sites == 1 { "1 place".into() } else { format!("{sites} places") }
}

/// Two SVM instructions of L1 that a CPU feature would keep in the guest.
fn svm_pair(measure: &Measures<'_>, names: [&str; 2], feature: &str) -> Vec<Hit> {
    let is_one =
        |reason: Reason| reason.isa == Isa::Svm && reason.known_name().is_some_and(|name| names.contains(&name));
    let (exits, total_ns) = measure.exits_where(|total| is_one(total.reason));
    let share = measure.share(exits);
    if share < 0.01 || measure.chains.count == 0 {
        return Vec::new();
    }
    let each: Vec<String> = measure
        .reasons
        .iter()
        .filter(|total| is_one(total.reason))
        .map(|total| many(total.count, &format!("{} exit", total.reason.name())))
        .collect();
    let in_chain: u64 =
        measure.chains.per_reason.iter().filter(|(reason, _)| is_one(**reason)).map(|(_, exits)| exits).sum();
    let per_chain = in_chain as f64 / measure.chains.kept.max(1) as f64;
    let evidence = vec![
        seen(format!("{} of L1", each.join(" and ")), "table exits"),
        seen(
            format!("{per_chain:.1} of {:.1} exits in a chain", measure.chains.exits.mean().unwrap_or(0.0)),
            "table chains",
        ),
        seen(format!("{} of L0's time on them", super::section::duration(total_ns)), "table exits"),
    ];
    let title =
        format!("{feature} is off or absent: {} of all exits are {} and {}", percent(share), names[0], names[1]);
    let cost = Cost::of(CostKind::Modelled, per_chain, "exits per chain").between(0.0, per_chain);
    hit(measure, by_share(share), title, evidence, cost)
}

/// VMLOAD and VMSAVE leave the guest.
pub fn vls(measure: &Measures<'_>) -> Vec<Hit> {
    svm_pair(measure, ["VMLOAD", "VMSAVE"], "Virtual VMLOAD/VMSAVE (vls)")
}

/// STGI and CLGI leave the guest.
pub fn vgif(measure: &Measures<'_>) -> Vec<Hit> {
    svm_pair(measure, ["STGI", "CLGI"], "Virtual GIF (vgif)")
}

/// Share of all exits from which on local-APIC traffic is worth a finding.
const APIC_SHARE: f64 = 0.10;

/// Local-APIC traffic, read by exit code: 56 means that APIC registers are virtualised, 44 that they are not.
pub fn apic(measure: &Measures<'_>) -> Vec<Hit> {
    let is_timer = |detail: Detail| detail.apic_offset() == Some(0x380) || matches!(detail, Detail::Msr(0x6e0, _));
    let (exits, total_ns) = measure.details_where(|_, detail| detail.apic_offset().is_some() && !is_timer(detail));
    let code = |isa, code| move |total: &super::measure::ReasonTotal| total.reason == Reason { isa, code };
    let (writes, _) = measure.exits_where(code(Isa::Vmx, 56));
    let (accesses, _) = measure.exits_where(code(Isa::Vmx, 44));
    let (unaccelerated, _) = measure.exits_where(code(Isa::Svm, 0x402));
    let (eoi_tpr, _) = measure.details_where(|_, detail| matches!(detail, Detail::Msr(0x808 | 0x80b, _)));
    let share = measure.share(exits.max(writes));
    if share < APIC_SHARE || exits.max(writes) < FEWEST_EXITS {
        return Vec::new();
    }
    let mut registers: Vec<(u16, u64)> = Vec::new();
    for total in &measure.reasons {
        for (detail, count, _) in &total.details {
            let Some(offset) = detail.apic_offset() else { continue };
            match registers.iter_mut().find(|(known, _)| *known == offset) {
                Some((_, sum)) => *sum += count,
                None => registers.push((offset, *count)),
            }
        }
    }
    registers.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let most: Vec<String> = registers
        .iter()
        .take(4)
        .map(|(offset, times)| {
            format!("{} {}", count(*times), apic_register(*offset).unwrap_or("of an unknown register"))
        })
        .collect();
    let mut evidence = vec![seen(format!("local-APIC accesses: {}", most.join(", ")), "table exit_details")];
    let mut fix = Vec::new();
    if writes > accesses && writes > 0 {
        evidence.push(seen(
            format!(
                "{} exits are APIC_WRITE (56): APIC registers are virtualised, these still need KVM",
                count(writes)
            ),
            "table exits",
        ));
        fix.push("cat /sys/module/kvm_intel/parameters/enable_apicv   # Y: it is on already".into());
    } else if accesses > 0 || eoi_tpr > 0 {
        evidence.push(seen(
            format!(
                "{} exits are APIC_ACCESS (44) and {} are EOI or TPR by MSR: register virtualisation is off",
                count(accesses),
                count(eoi_tpr)
            ),
            "table exits",
        ));
        fix.push("modprobe -r kvm_intel && modprobe kvm_intel enable_apicv=1".into());
    } else if unaccelerated > 0 || measure.isa() == Some(Isa::Svm) {
        evidence.push(seen(
            format!("{} exits are AVIC_UNACCELERATED_ACCESS: 0 means that AVIC is off", count(unaccelerated)),
            "table exits",
        ));
        fix.push(
            "modprobe -r kvm_amd && modprobe kvm_amd avic=1   # not together with nested=1 before Linux 5.19".into(),
        );
    }
    let title = format!("Local-APIC accesses are {} of all exits", percent(share));
    let cost = Cost::of(CostKind::Measured, total_ns as f64 / measure.wall_ns.max(1) as f64, "share of vCPU time");
    let mut hits = hit(measure, by_share(share), title, evidence, cost);
    hits[0].fix = fix;
    hits
}

/// Share of all exits from which on arming timers is worth a finding.
const TIMER_SHARE: f64 = 0.10;

/// TSC_DEADLINE and TMICT writes.
pub fn timer(measure: &Measures<'_>) -> Vec<Hit> {
    let arms = |detail: Detail| detail.apic_offset() == Some(0x380) || detail == Detail::Msr(0x6e0, true);
    let (exits, total_ns) = measure.details_where(|_, detail| arms(detail));
    let share = measure.share(exits);
    if share < TIMER_SHARE || exits < FEWEST_EXITS {
        return Vec::new();
    }
    let per_second = exits as f64 * 1e9 / measure.wall_ns.max(1) as f64;
    let evidence = vec![seen(
        format!("{} writes of TSC_DEADLINE or TMICT, {per_second:.0} a second and vCPU", count(exits)),
        "table exit_details",
    )];
    let title = format!("The guest arms timers: {} of all exits", percent(share));
    let cost = Cost::of(CostKind::Measured, total_ns as f64 / measure.wall_ns.max(1) as f64, "share of vCPU time");
    hit(measure, by_share(share), title, evidence, cost)
}

/// Share of exits or of time from which on the VMM's work is worth a finding.
const USERSPACE_SHARE: f64 = 0.10;

/// Exits that the VMM must serve.
pub fn userspace(measure: &Measures<'_>) -> Vec<Hit> {
    let exits: u64 = measure.reasons.iter().map(|total| total.handled[1]).sum();
    let user_ns = measure.state_ns(|state| state == State::Userspace);
    let time_share = user_ns as f64 / measure.wall_ns.max(1) as f64;
    let share = measure.share(exits);
    if exits < FEWEST_EXITS || (share < USERSPACE_SHARE && time_share < USERSPACE_SHARE) {
        return Vec::new();
    }
    let mut evidence =
        vec![seen(format!("{} of {} exits went to the VMM", count(exits), count(measure.exits)), "table handled_by")];
    let mut worst: Vec<_> = measure.reasons.iter().filter(|total| total.handled[1] > 0).collect();
    worst.sort_by_key(|total| std::cmp::Reverse(total.handled[1]));
    let mut fix = vec![
        "ps -o args= -C qemu-system-x86_64 | tr ' ' '\\n' | grep -A1 device   # which devices are emulated".into(),
    ];
    for total in worst.iter().take(3) {
        let about = total.details.first().map(|(detail, ..)| detail.text()).filter(|text| !text.is_empty());
        let about = about.map_or(String::new(), |text| format!(", mostly {text}"));
        let what = format!("{} {} of {}{about}", count(total.handled[1]), total.reason.name(), total.level);
        evidence.push(seen(what, "table handled_by"));
    }
    fix.push(
        "virsh edit GUEST   # model type='virtio', driver name='vhost'; remove devices the guest does not use".into(),
    );
    let title = format!("{} of all exits and {} of the time go to the VMM", percent(share), percent(time_share));
    let cost = Cost::of(CostKind::Measured, time_share, "share of vCPU time");
    let mut hits = hit(measure, by_share(share.max(time_share)), title, evidence, cost);
    hits[0].fix = fix;
    hits
}

/// From here on page faults are a storm: a tenth of all exits, and more than a thousand a second and vCPU.
const EPT_SHARE: f64 = 0.10;
const EPT_PER_SECOND: f64 = 1000.0;

/// EPT violations or nested page faults without end.
pub fn ept_storm(measure: &Measures<'_>) -> Vec<Hit> {
    let is_fault = |reason: Reason| matches!(reason.known_name(), Some("EPT_VIOLATION" | "NPF"));
    let (exits, total_ns) = measure.exits_where(|total| is_fault(total.reason));
    let share = measure.share(exits);
    let per_second = exits as f64 * 1e9 / measure.wall_ns.max(1) as f64;
    if share < EPT_SHARE || per_second < EPT_PER_SECOND || exits < FEWEST_EXITS {
        return Vec::new();
    }
    let evidence =
        vec![seen(format!("{} page faults, {per_second:.0} a second and vCPU", count(exits)), "table exits")];
    let title = format!("Guest page faults are {} of all exits", percent(share));
    let cost = Cost::of(CostKind::Measured, total_ns as f64 / measure.wall_ns.max(1) as f64, "share of vCPU time");
    hit(measure, by_share(share), title, evidence, cost)
}

/// Share of its time from which on a vCPU's waiting is worth a finding.
const PREEMPT_SHARE: f64 = 0.02;

/// vCPUs that stood ready, one finding each.
pub fn preempted(measure: &Measures<'_>) -> Vec<Hit> {
    let mut hits = Vec::new();
    for vcpu in &measure.vcpus {
        let waited_ns = vcpu.sums.ns(State::Preempted);
        let share = waited_ns as f64 / vcpu.sums.wall_ns().max(1) as f64;
        if share < PREEMPT_SHARE {
            continue;
        }
        let times: u64 = vcpu.sums.preemptors.values().map(|sums| sums.count).sum();
        let mut by: Vec<_> = vcpu.sums.preemptors.iter().filter(|(tid, _)| **tid != 0).collect();
        by.sort_by_key(|(_, sums)| std::cmp::Reverse(sums.total_ns));
        let mut evidence =
            vec![seen(format!("stood ready {} of its time, in {} waits", percent(share), count(times)), "table vcpus")];
        for (tid, sums) in by.iter().take(3) {
            let name = task_name(measure, **tid);
            let took = super::section::duration(sums.total_ns);
            let longest = super::section::duration(sums.max_ns);
            let text =
                format!("{name} (tid {tid}) took the CPU {} times, ran {took}, longest {longest}", count(sums.count));
            evidence.push(seen(text, "table preemptors"));
        }
        let Some((tid, sums)) = by.first() else { continue };
        let name = task_name(measure, **tid);
        let title = format!(
            "vCPU {} of {} waited {} of its time for a CPU, mostly for {name} (tid {tid})",
            vcpu.vcpu,
            vcpu.vm,
            percent(share)
        );
        let others = other_cpus(sums.cpu, measure.part.cpus);
        let everywhere = format!("0-{}", measure.part.cpus.saturating_sub(1));
        let (fix, undo, changes) = match others {
            Some(cpus) => {
                let change = Change::TaskAffinity { tid: **tid, cpus, from: Some(everywhere) };
                (vec![change.command()], change.undo().into_iter().collect(), vec![change])
            }
            None => (vec!["nproc   # one CPU for all: give the VM's host a second one".into()], Vec::new(), Vec::new()),
        };
        hits.push(Hit {
            subject: format!("{}/{}", vcpu.vm, vcpu.vcpu),
            severity: by_share(share),
            title,
            evidence,
            cost: Cost::of(CostKind::Measured, share, "share of vCPU time"),
            changes,
            fix,
            undo,
        });
    }
    hits
}

/// All CPUs but one, as a list for taskset; `None` if there is no other.
fn other_cpus(taken: u32, cpus: u32) -> Option<String> {
    let range = |from: u32, to: u32| match to.checked_sub(from) {
        None => None,
        Some(0) => Some(from.to_string()),
        Some(_) => Some(format!("{from}-{to}")),
    };
    let below = taken.checked_sub(1).and_then(|last| range(0, last));
    let above = range(taken + 1, cpus.saturating_sub(1));
    match (below, above) {
        (Some(below), Some(above)) => Some(format!("{below},{above}")),
        (below, above) => below.or(above),
    }
}

/// Share of vCPU time from which on halt polling is worth a finding.
const POLL_SHARE: f64 = 0.05;

/// Halt polling that burns CPU.
pub fn halt_poll(measure: &Measures<'_>) -> Vec<Hit> {
    let polled_ns = measure.state_ns(|state| state == State::HaltPoll);
    let slept_ns = measure.state_ns(|state| state == State::Halted);
    let share = polled_ns as f64 / measure.wall_ns.max(1) as f64;
    if share < POLL_SHARE {
        return Vec::new();
    }
    let text = format!(
        "{} of polling against {} of sleeping in HLT",
        super::section::duration(polled_ns),
        super::section::duration(slept_ns)
    );
    let title = format!("Halt polling burns {} of the vCPUs' time", percent(share));
    let cost = Cost::of(CostKind::Measured, share, "share of vCPU time");
    let mut hits = hit(measure, by_share(share), title, vec![seen(text, "table vcpus")], cost);
    hits[0].changes =
        vec![Change::SysfsWrite { path: "module/kvm/parameters/halt_poll_ns".into(), to: "0".into(), from: None }];
    hits
}

/// Fields that LTTng's probes fill with something else.
pub fn stale(measure: &Measures<'_>) -> Vec<Hit> {
    let part = measure.part;
    if part.stale_entries == 0 {
        return Vec::new();
    }
    let total = |name: &str| part.tally.iter().find(|(event, _)| event == name).map_or(0, |(_, count)| *count);
    let evidence = vec![
        seen(format!("{} kvm_entry events whose vcpu_id cannot be one", count(part.stale_entries)), "table events"),
        seen(
            format!(
                "{} kvm_nested_vmexit events taken for their place alone; {} nested entries found from intercepts",
                count(total("kvm_x86_nested_vmexit") + total("kvm_nested_vmexit")),
                count(total("kvm_x86_nested_intercepts"))
            ),
            "table events",
        ),
    ];
    let title = "LTTng wrote stale KVM fields; levels and chains were found without them".to_owned();
    let mut hits = hit(measure, Severity::Info, title, evidence, Cost::none());
    hits[0].subject = part.machine.clone();
    hits
}

/// Losses that make shares uncertain.
pub fn lost(measure: &Measures<'_>) -> Vec<Hit> {
    const DOUBTS: &[&str] = &["level_conflict", "clock_skew", "unseen_entry", "unseen_switch", "unattributed"];
    let losses: Vec<_> = measure.part.losses.iter().filter(|loss| !DOUBTS.contains(&loss.kind.as_str())).collect();
    if losses.is_empty() {
        return Vec::new();
    }
    let lost = measure.part.lost_events();
    let gaps = losses.iter().filter(|loss| loss.kind == "missed").count();
    let share = lost as f64 / (lost as f64 + measure.part.events as f64).max(1.0);
    let row = |loss: &&super::model::Loss| {
        let place = loss.cpu.map_or(String::new(), |cpu| format!(" on CPU {cpu}"));
        let amount = if loss.count == 0 { "an unknown number".into() } else { count(loss.count) };
        let bytes = if loss.bytes == 0 { String::new() } else { format!(", {} bytes", count(loss.bytes)) };
        seen(format!("{amount} {}{place}{bytes}", loss.kind.replace('_', " ")), "table losses")
    };
    let evidence = losses.iter().take(4).map(row).collect();
    let severity = if share > 0.01 { Severity::Medium } else { Severity::Low };
    let title = match (lost, gaps) {
        (0, 0) => "Parts of the file are damaged; shares are of what could be read".to_owned(),
        (0, _) => format!("Events are missing, {gaps} CPUs have gaps; shares are of what was seen"),
        _ => format!("{} events are missing, {} of all; shares are of what was seen", count(lost), percent(share)),
    };
    let mut hits = hit(measure, severity, title, evidence, Cost::of(CostKind::Measured, share, "share of all events"));
    hits[0].subject = measure.part.machine.clone();
    hits
}

/// The witnesses disagreed.
pub fn level_conflicts(measure: &Measures<'_>) -> Vec<Hit> {
    let conflicts = measure.part.doubts.level_conflicts;
    if conflicts == 0 {
        return Vec::new();
    }
    let share = measure.share(conflicts);
    let evidence =
        vec![seen(format!("{} exits on which the two witnesses disagree", count(conflicts)), "table losses")];
    let severity = if share > 0.01 { Severity::Medium } else { Severity::Info };
    let title = format!("The level of {} exits was told in two ways", count(conflicts));
    hit(measure, severity, title, evidence, Cost::of(CostKind::Measured, share, "share of all exits"))
}
