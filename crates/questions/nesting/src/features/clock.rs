//! What does it cost to read the clock here, and what clock can guests get?
//!
//! The vDSO reads `tsc`, `kvm-clock` (where its pages are stable) and `hyperv_clocksource_tsc_page` without leaving user
//! mode. The clocks of [`EXITING_CLOCKS`] are an exit for each reading.
//! KVM gives its guests a clock that needs no system call only if the host's own clock source is the TSC, or since 4.16
//! Hyper-V's TSC page (kvm_get_time_and_clockread in arch/x86/kvm/x86.c, Linux 6.12). Else the guest's `kvm-clock` keeps
//! its name and each reading becomes a system call: 1,500 cycles instead of 80 (FOSDEM 2018).

use crate::model::Seen;
use base::figure::Standing;
use host::Virtualization;

/// Clock sources whose reading leaves the guest, and where it ends.
pub(crate) const EXITING_CLOCKS: &[(&str, &str)] = &[
    ("hyperv_clocksource_msr", "an MSR of Hyper-V"),
    ("acpi_pm", "a port, usually emulated by the VMM"),
    ("hpet", "a memory-mapped device, usually emulated by the VMM"),
    ("pit", "a port"),
    ("jiffies", "no counter at all: the clock advances with timer interrupts"),
];

const FILE: &str = "clocksource0/current_clocksource";

/// Is the clock read without an exit?
pub(super) fn without_exit(facts: &Virtualization) -> Option<Seen> {
    let Some(source) = facts.clocksource() else {
        return Some(Seen::new(Standing::Unknown, format!("{FILE} is not in the snapshot")));
    };
    let exits = EXITING_CLOCKS.iter().find(|(name, _)| *name == source);
    Some(match exits {
        // On bare metal nothing exits; such a clock is merely slow.
        Some(_) if facts.below.present == Some(false) => {
            Seen::new(Standing::On, format!("{FILE} = {source}, on bare metal"))
        }
        Some((_, ends)) => Seen::new(Standing::Off, format!("{FILE} = {source}: each read goes to {ends}")),
        None => Seen::new(Standing::On, format!("{FILE} = {source}")),
    })
}

/// Can KVM here give its guests a stable clock?
pub(super) fn for_guests(facts: &Virtualization) -> Option<Seen> {
    if facts.is_loaded("kvm") == Some(false) {
        return None;
    }
    let Some(source) = facts.clocksource() else {
        return Some(Seen::new(Standing::Unknown, format!("{FILE} is not in the snapshot")));
    };
    Some(match stable_for_guests(facts) {
        Some(stable) => Seen::new(Standing::of(stable), format!("{FILE} = {source}")),
        None => Seen::new(
            Standing::Unknown,
            format!("{FILE} = {source}; whether Hyper-V notifies of frequency changes is not in the snapshot"),
        ),
    })
}

/// The rule above; `None` where the clock source or Hyper-V's words are not known.
pub(crate) fn stable_for_guests(facts: &Virtualization) -> Option<bool> {
    /// Linux learnt it with the merge of kvm-4.16-1.
    const SINCE: (u32, u32, u32) = (4, 16, 0);
    match facts.clocksource()?.as_str() {
        "tsc" => Some(true),
        "hyperv_clocksource_tsc_page" => {
            let new = facts.release.as_ref().is_none_or(|release| release.numbers >= SINCE);
            let told = facts.below.hyperv?.features & super::hyperv::REENLIGHTENMENT != 0;
            Some(new && told)
        }
        _ => Some(false),
    }
}
