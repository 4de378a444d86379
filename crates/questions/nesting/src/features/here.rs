//! Where am I, and what can be measured here?

use crate::model::Seen;
use base::figure::Standing;
use base::number::list;
use host::Virtualization;
use host::fired::fired;
use host::hypervisor::TCG;
use host::snapshot::Content;

const NO_CPUINFO: &str = "neither cpuid.json nor proc/cpuinfo is in the snapshot";

pub(super) fn hypervisor_below(facts: &Virtualization) -> Option<Seen> {
    let place =
        |leaf: &Option<u32>| leaf.map_or("in the kernel's log".to_owned(), |leaf| format!("at CPUID {leaf:#x}"));
    let named: Vec<String> = facts.below.named.iter().map(|(leaf, name)| format!("{name} {}", place(leaf))).collect();
    Some(match facts.below.present {
        Some(true) if named.is_empty() => Seen::new(Standing::On, "flag hypervisor is set; its name is unknown"),
        Some(true) => Seen::new(Standing::On, list(&named)),
        Some(false) => {
            Seen::new(Standing::Off, "flag hypervisor is clear: bare metal, or a hypervisor that hides itself")
        }
        None => Seen::new(Standing::Unknown, NO_CPUINFO),
    })
}

/// Is the CPU interpreted?
pub(super) fn emulated_cpu(facts: &Virtualization) -> Option<Seen> {
    let (is, known) = (facts.below.is(TCG), facts.cpuid.is_some());
    Some(match (is, facts.below.present) {
        (true, _) => Seen::new(Standing::On, format!("CPUID has the signature {TCG}: QEMU emulates the CPU")),
        (false, Some(false)) => Seen::new(Standing::Off, "no hypervisor below this machine"),
        (false, _) if known => Seen::new(Standing::Off, format!("CPUID does not have the signature {TCG}")),
        _ => Seen::new(Standing::Unknown, "cpuid.json is not in the snapshot"),
    })
}

/// Does the CPU offer virtualization?
pub(super) fn virtualization(facts: &Virtualization) -> Option<Seen> {
    Some(match &facts.processor {
        None => Seen::new(Standing::Unknown, "proc/cpuinfo is not in the snapshot"),
        Some(cpu) if cpu.has("vmx") => Seen::new(Standing::On, "flag vmx"),
        Some(cpu) if cpu.has("svm") => Seen::new(Standing::On, "flag svm"),
        Some(_) => Seen::new(Standing::Absent, "/proc/cpuinfo has neither vmx nor svm"),
    })
}

/// Is KVM loaded?
pub(super) fn kvm(facts: &Virtualization) -> Option<Seen> {
    Some(match (facts.is_loaded("kvm"), facts.vendor_module()) {
        (Some(true), Some(module)) => Seen::new(Standing::On, format!("modules kvm and {module}")),
        (Some(true), None) => Seen::new(Standing::Off, "module kvm, and none of kvm_intel, kvm_amd, kvm_pvm"),
        (Some(false), _) => Seen::new(Standing::Off, "module kvm is not loaded"),
        (None, _) => Seen::new(Standing::Unknown, "neither sys/module nor proc/modules is in the snapshot"),
    })
}

/// Does KVM run guests without VMX and SVM? Only shown where it does.
pub(super) fn kvm_pvm(facts: &Virtualization) -> Option<Seen> {
    (facts.is_loaded("kvm_pvm") == Some(true)).then(|| Seen::new(Standing::On, "module kvm_pvm"))
}

/// Are there performance counters?
pub(super) fn pmu(facts: &Virtualization) -> Option<Seen> {
    let devices = facts.snapshot.names("sys/bus/event_source/devices");
    let cores = devices.iter().find(|name| *name == "cpu" || *name == "cpu_core");
    Some(match cores {
        Some(name) => Seen::new(Standing::On, format!("sys/bus/event_source/devices/{name}")),
        None if devices.is_empty() => Seen::new(Standing::Unknown, "sys/bus/event_source is not in the snapshot"),
        None => Seen::new(Standing::Absent, "sys/bus/event_source/devices has no cpu"),
    })
}

/// Can exits be traced? That an event is there does not mean that it fires: under kvm_pvm it does not.
pub(super) fn trace_kvm_exit(facts: &Virtualization) -> Option<Seen> {
    const EVENTS: &str = "sys/kernel/tracing/available_events";
    let locked =
        facts.snapshot.line("sys/kernel/security/lockdown").is_some_and(|line| line.contains("[confidentiality]"));
    if let Some(count) = fired(&facts.snapshot).and_then(|events| events.get("kvm_exit").copied()) {
        let said = if count > 0 {
            "a test guest caused kvm_exit"
        } else {
            "a test guest caused no kvm_exit: the event does not fire"
        };
        return Some(Seen::new(Standing::of(count > 0), said));
    }
    Some(match facts.snapshot.content(EVENTS) {
        _ if locked => {
            Seen::new(Standing::Off, "sys/kernel/security/lockdown is confidentiality: the kernel refuses tracing")
        }
        Content::Unreadable(why) => Seen::new(Standing::Unknown, format!("{EVENTS}: {why}")),
        Content::Absent => Seen::new(
            Standing::Unknown,
            format!("{EVENTS} is not in the snapshot: tracefs was not mounted, or not readable"),
        ),
        Content::Text(text) if !text.lines().any(|line| line == "kvm:kvm_exit") => {
            Seen::new(Standing::Absent, format!("{EVENTS} has no kvm:kvm_exit"))
        }
        Content::Text(_) if facts.is_loaded("kvm_pvm") == Some(true) => {
            Seen::new(Standing::Unknown, "kvm:kvm_exit is registered; under kvm_pvm it was observed not to fire")
        }
        Content::Text(_) => Seen::new(Standing::On, format!("{EVENTS} has kvm:kvm_exit")),
    })
}
