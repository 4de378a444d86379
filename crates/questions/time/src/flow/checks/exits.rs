//! Checks of exits that some setting avoids: local APIC, devices, page faults.

use super::{
    FEWEST_EXITS, Sample, by_share, exits_give_back, exits_ns, gives_back, hit, reasons, reasons_with, seen, state,
    switched_on, worst_vm,
};
use base::number::{counted, duration, many, percent, thousands};
use base::shell::quoted;
use base::{About, Cost, CostKind, Evidence, Setting};
use facts::ledger::levels;
use facts::ledger::measure::{Measures, ReasonTotal};
use facts::ledger::model::Vcpu;
use facts::rule::Hit;
use std::borrow::Cow;
use walk::events::details::{Detail, apic_register};
use walk::events::reasons::{Isa, Reason};
use walk::state::State;

/// Share of all exits from which on local-APIC traffic is worth a finding, at a rate that an idle guest's ticks do not reach.
pub(in crate::flow) const APIC_SHARE: f64 = 0.10;
pub(in crate::flow) const APIC_PER_SECOND: f64 = 500.0;

/// Local-APIC traffic, read by exit code: 56 means that APIC registers are virtualised, 44 that they are not.
pub(crate) fn apic(measure: &Measures<'_>) -> Vec<Hit> {
    let is_timer = |detail: Detail| detail.apic_offset() == Some(0x380) || matches!(detail, Detail::Msr(0x6e0, _));
    let (exits, _) = measure.details_where(|_, detail| detail.apic_offset().is_some() && !is_timer(detail));
    let (_, total_ns) = measure.details_where(|_, detail| detail.apic_offset().is_some());
    let code = |isa, code| move |total: &ReasonTotal| total.reason == Reason { isa, code };
    let (writes, _) = measure.exits_where(code(Isa::Vmx, 56));
    let (accesses, _) = measure.exits_where(code(Isa::Vmx, 44));
    let (unaccelerated, _) = measure.exits_where(code(Isa::Svm, 0x402));
    let (eoi_tpr, _) = measure.details_where(|_, detail| matches!(detail, Detail::Msr(0x808 | 0x80b, _)));
    let share = measure.share(exits.max(writes));
    let per_second = exits.max(writes) as f64 * 1e9 / measure.wall_ns.max(1) as f64;
    if share < APIC_SHARE || per_second < APIC_PER_SECOND || exits.max(writes) < FEWEST_EXITS {
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
            format!("{} {}", thousands(*times), apic_register(*offset).unwrap_or("of an unknown register"))
        })
        .collect();
    let touches_apic = |detail: Detail| detail.apic_offset().is_some();
    let accessed = format!("local-APIC accesses: {}", most.join(", "));
    let mut evidence = vec![seen(measure, accessed, "flow.exit_details").about(reasons_with(measure, touches_apic))];
    let (mut fix, mut switch) = (Vec::new(), None);
    if unaccelerated > 0 || measure.isa() == Some(Isa::Svm) {
        let what = format!(
            "{} AVIC_UNACCELERATED_ACCESS: 0 means that AVIC is off",
            counted(unaccelerated, "exit is", "exits are")
        );
        evidence.push(seen(measure, what, "flow.exits").about(reasons(measure, code(Isa::Svm, 0x402))));
        switch = (unaccelerated == 0).then_some(("kvm_amd", "avic"));
    } else if writes > accesses {
        let what = format!(
            "{} APIC_WRITE (56): APIC registers are virtualized, but these writes still need KVM",
            counted(writes, "exit is", "exits are")
        );
        evidence.push(seen(measure, what, "flow.exits").about(reasons(measure, code(Isa::Vmx, 56))));
        fix.push("cat /sys/module/kvm_intel/parameters/enable_apicv   # Y: it is already on".into());
    } else if accesses > 0 || eoi_tpr > 0 {
        let what = format!(
            "{} APIC_ACCESS (44) and {} EOI or TPR by MSR: APIC-register virtualization is off",
            counted(accesses, "exit is", "exits are"),
            counted(eoi_tpr, "is", "are")
        );
        evidence.push(seen(measure, what, "flow.exits").about(reasons(measure, code(Isa::Vmx, 44))));
        switch = Some(("kvm_intel", "enable_apicv"));
    }
    let title = format!("Local-APIC accesses are {} of {}", percent(share), measure.all_exits());
    let cost = Cost::of(CostKind::Measured, total_ns as f64 / measure.wall_ns.max(1) as f64, "share of vCPU time");
    let sample = Sample { count: exits.max(writes), ns: total_ns };
    let ns_of = |vcpu: &Vcpu| {
        let details = measure.exits_of(vcpu).flat_map(|(.., sums)| sums.details.iter());
        details.filter(|(detail, _)| detail.apic_offset().is_some()).map(|(_, (_, ns))| *ns).sum()
    };
    let (_, worst) = worst_vm(measure, ns_of);
    let mut hits = hit(measure, by_share(worst, sample), title, evidence, cost);
    hits[0].fix = fix;
    let touches = |total: &ReasonTotal| total.details.iter().any(|(detail, ..)| detail.apic_offset().is_some());
    hits[0].gives_back = exits_give_back(measure, touches, ns_of);
    match switch {
        Some((module, parameter)) => switched_on(module, parameter, hits),
        None => hits,
    }
}

/// Share of time from which on the VMM's work is worth a finding, if it is more than a few long exits a second; and exits a
/// second of a vCPU from which on it is whatever time they take.
pub(in crate::flow) const USERSPACE_SHARE: f64 = 0.05;
pub(in crate::flow) const USERSPACE_LEAST_PER_SECOND: f64 = 100.0;
pub(in crate::flow) const USERSPACE_PER_SECOND: f64 = 1000.0;

/// Ports by which firmware and a booting kernel look for devices and settings: PCI configuration (0xcf8, 0xcfc), QEMU's
/// fw_cfg (0x510) and its consoles for debugging (0x402, 0xe9), POST codes (0x80). A guest that runs hardly touches them, and no
/// device can be removed for them.
fn is_of_boot(detail: Detail) -> bool {
    let Detail::Port(port, _) = detail else { return false };
    matches!(port, 0xcf8..=0xcff | 0x510..=0x51b | 0x402 | 0xe9 | 0x80)
}

/// Devices that a guest has with virtio instead: accesses to memory, and the ports of IDE (0x170, 0x1f0) and of network
/// cards, whose ports firmware places from 0xc000 on (QEMU's PCI I/O window). Ports below are the board's own.
fn has_virtio_instead(detail: Detail) -> bool {
    match detail {
        Detail::Mmio(..) => true,
        Detail::Port(port, _) => matches!(port, 0x170..=0x177 | 0x1f0..=0x1f7 | 0x376 | 0x3f6 | 0xc000..),
        _ => false,
    }
}

/// Exits that the VMM must serve.
pub(crate) fn userspace(measure: &Measures<'_>) -> Vec<Hit> {
    let exits: u64 = measure.reasons.iter().map(|total| total.handled[1]).sum();
    // What a VMM works on before its guest runs no device of the guest asked for.
    let sum = |of: &dyn Fn(&Vcpu) -> u64| measure.vcpus.iter().map(|vcpu| of(vcpu)).sum::<u64>();
    let user_ns = sum(&|vcpu| vcpu.sums.guests_ns(State::Userspace));
    let wall_ns = sum(&|vcpu| vcpu.sums.guests_wall_ns()).max(1);
    let time_share = user_ns as f64 / wall_ns as f64;
    let share = measure.share(exits);
    let (boot, boot_ns) = measure.details_where(|_, detail| is_of_boot(detail));
    let others = exits.saturating_sub(boot);
    let others_share = user_ns.saturating_sub(boot_ns) as f64 / wall_ns as f64;
    let per_second = others as f64 * 1e9 / wall_ns as f64;
    let takes_time = others_share >= USERSPACE_SHARE && per_second >= USERSPACE_LEAST_PER_SECOND;
    if others < FEWEST_EXITS || !(takes_time || per_second >= USERSPACE_PER_SECOND) {
        return Vec::new();
    }
    let what = format!("{} of {} went to the VMM", thousands(exits), many(measure.exits, "exit"));
    let mut evidence = vec![seen(measure, what, "flow.handled_by").about([state(measure, State::Userspace)])];
    let mut worst: Vec<_> = measure.reasons.iter().filter(|total| total.handled[1] > 0).collect();
    worst.sort_by_key(|total| std::cmp::Reverse(total.handled[1]));
    let mut fix = vec![
        "ps -eo args= | grep -E '[q]emu|/[k]vm ' | tr ' ' '\\n' | grep -A1 device   # which devices are emulated"
            .into(),
    ];
    for total in worst.iter().take(3) {
        // What is less than half is not most of it.
        let most = total.details.first().filter(|(_, count, ..)| 2 * count > total.handled[1]);
        let about = most.map(|(detail, ..)| detail.text()).filter(|text| !text.is_empty());
        let about = about.map_or(String::new(), |text| format!(", mostly {text}"));
        let what = format!("{} {} of {}{about}", thousands(total.handled[1]), total.reason.name(), total.level);
        let (level, reason) = (total.level.to_string(), total.reason.name());
        let row = seen(measure, what, "flow.handled_by").key("level", level).key("reason", reason.as_str());
        evidence.push(row.about([About::reason(reason)]));
    }
    let most = worst.first().and_then(|total| total.details.first());
    if most.is_some_and(|(detail, ..)| has_virtio_instead(*detail)) {
        let vm = only_vm(measure).unwrap_or("GUEST".into());
        let is_disk = most.is_some_and(|(detail, ..)| {
            matches!(detail, Detail::Port(0x170..=0x177 | 0x1f0..=0x1f7 | 0x376 | 0x3f6, _))
        });
        let element = match is_disk {
            true => "<target dev='vda' bus='virtio'/> of its disk",
            false => "model type='virtio', driver name='vhost' of its card, or bus='virtio' of its disk",
        };
        fix.push(format!("virsh edit {vm}   # {element}; then stop and start the guest"));
    }
    let of_all = user_ns as f64 / measure.wall_ns.max(1) as f64;
    let mut of = "the vCPU time".to_owned();
    if wall_ns < measure.wall_ns {
        of = format!("the guests' life ({})", duration(wall_ns as f64));
        let elsewhere = sum(&|vcpu| vcpu.sums.ns(State::Userspace)) - user_ns;
        let what = format!(
            "that is {} of all vCPU time ({}); {} more were the VMM's before a guest ran or after it ended",
            percent(of_all),
            duration(measure.wall_ns as f64),
            percent(elsewhere as f64 / measure.wall_ns as f64)
        );
        evidence.push(seen(measure, what, "flow.vcpus").about([state(measure, State::Userspace)]));
    }
    let title =
        format!("{} of {} and {} of {of} go to the VMM", percent(share), measure.all_exits(), percent(time_share));
    let cost = Cost::of(CostKind::Measured, of_all, "share of vCPU time");
    let (_, worst) = worst_vm(measure, |vcpu| vcpu.sums.guests_ns(State::Userspace));
    let without_boot = if time_share > 0.0 { worst * others_share / time_share } else { worst };
    let mut hits = hit(measure, by_share(without_boot, Sample { count: others, ns: user_ns }), title, evidence, cost);
    hits[0].fix = fix;
    let in_vmm = levels::name(measure.part.level, State::Userspace);
    hits[0].gives_back = gives_back(measure, in_vmm, |vcpu| vcpu.sums.guests_ns(State::Userspace));
    hits
}

/// The VM, where it is one and its name is known, as a command takes it.
pub(super) fn only_vm<'a>(measure: &'a Measures<'_>) -> Option<Cow<'a, str>> {
    let first = measure.vcpus.first()?;
    let one = measure.vcpus.iter().all(|vcpu| vcpu.vm == first.vm && !vcpu.vm_assumed);
    one.then(|| quoted(&first.vm))
}

/// From here on page faults are a storm: a tenth of all exits, and more than a thousand a second and vCPU.
pub(in crate::flow) const EPT_SHARE: f64 = 0.10;
pub(in crate::flow) const EPT_PER_SECOND: f64 = 1000.0;

/// EPT violations or nested page faults without end.
pub(crate) fn ept_storm(measure: &Measures<'_>) -> Vec<Hit> {
    let is_fault = |reason: Reason| matches!(reason.known_name(), Some("EPT_VIOLATION" | "NPF"));
    // On SVM an access to a device or to the local APIC is NPF as well, and no page is missing.
    let is_device = |detail: Detail| matches!(detail, Detail::Mmio(..) | Detail::Apic(..));
    let (all, all_ns) = measure.exits_where(|total| is_fault(total.reason));
    let (devices, devices_ns) = measure.details_where(|total, detail| is_fault(total.reason) && is_device(detail));
    let (exits, total_ns) = (all.saturating_sub(devices), all_ns.saturating_sub(devices_ns));
    let share = measure.share(exits);
    let per_second = exits as f64 * 1e9 / measure.wall_ns.max(1) as f64;
    if share < EPT_SHARE || per_second < EPT_PER_SECOND || exits < FEWEST_EXITS {
        return Vec::new();
    }
    let ns_of = |vcpu: &Vcpu| {
        let faults = measure.exits_of(vcpu).filter(|(_, reason, _)| is_fault(*reason));
        let devices = faults.flat_map(|(.., sums)| sums.details.iter()).filter(|(detail, _)| is_device(**detail));
        let devices_ns: u64 = devices.map(|(_, (_, ns))| *ns).sum();
        exits_ns(measure, vcpu, is_fault).saturating_sub(devices_ns)
    };
    let (vm, worst) = worst_vm(measure, ns_of);
    let faults = reasons(measure, |total| is_fault(total.reason));
    let all = format!("{}, {per_second:.0} per second and vCPU", many(exits, "page fault"));
    let evidence = vec![
        seen(measure, all, "flow.exits").about(faults.clone()),
        Evidence::in_table(format!("they take {} of the vCPU time of {vm}", percent(worst)), "flow.exits")
            .key("vm", vm)
            .about(faults),
    ];
    let title = format!("Guest page faults are {} of {}", percent(share), measure.all_exits());
    let cost = Cost::of(CostKind::Measured, total_ns as f64 / measure.wall_ns.max(1) as f64, "share of vCPU time");
    let mut hits = hit(measure, by_share(worst, Sample { count: exits, ns: total_ns }), title, evidence, cost);
    hits[0].gives_back = exits_give_back(measure, |total| is_fault(total.reason), ns_of);
    let enabled = Setting::SysfsWrite { path: "kernel/mm/transparent_hugepage/enabled".into() };
    hits.iter_mut().for_each(|hit| hit.changes.push(enabled.clone().change("always", None)));
    hits
}
