//! What firmware and buses do on their own, and words on the command line that nobody reads.

use super::super::checks::{Told, chosen};
use super::super::host::Host;
use super::{Group, Place, Rule, knob};
use base::nearest::nearest;
use base::number::list;
use base::{Needs, Setting};
use std::cmp::Reverse;

/// Words of the command line that knobs are known by, long enough to tell a mistake from another word.
const KNOWN_WORDS: &str = "isolcpus nohz_full rcu_nocbs irqaffinity skew_tick nosoftlockup nowatchdog nmi_watchdog pcie_aspm intel_pstate \
    clocksource rcu_nocb_poll processor.max_cstate intel_idle.max_cstate default_hugepagesz transparent_hugepage \
    rcutree.nohz_full_patience_delay rcupdate.rcu_normal_after_boot";

pub(super) const KNOBS: &[Rule] = &[
    Rule {
        id: "LAT-TYPO",
        looks_at: "Words on the kernel's command line that are a typing mistake away from one of these knobs.",
        why: "The kernel ignores parameters that it does not know and logs that once, early: KVM4NFV's own scripts set \
              pcie_asmp for years. Caveat: an out-of-tree module may know the parameter.",
        needs: Needs::Reboot,
        source: "Documentation/admin-guide/kernel-parameters.txt, Linux 6.12; OPNFV KVM4NFV, ci/envs/host-config (pcie_asmp)",
        ..knob("the command line", Group::Firmware, Place::Told(misspelt))
    },
    Rule {
        id: "LAT-ASPM",
        looks_at: "Power saving of PCIe links (pcie_aspm, policy).",
        why: "A link that sleeps needs some microseconds before a device can write or interrupt. Caveat: it costs power, and some \
              machines hang with pcie_aspm=off; the policy performance is the milder way.",
        needs: Needs::Reboot,
        source: "Documentation/admin-guide/kernel-parameters.txt, pcie_aspm, Linux 6.12; OPNFV KVM4NFV, ci/envs",
        ..knob("pcie_aspm", Group::Firmware, Place::Told(link_power))
    },
    Rule {
        id: "LAT-SMI",
        looks_at: "System management interrupts that came to any CPU between two samples, where their count could be read \
              (processors of Intel, root, and the module msr).",
        why: "The firmware takes the CPU for tens of microseconds or more, and the kernel cannot see it. Caveat: some SMIs are \
              for safety, such as those of fans and memory errors; ask the vendor before any is turned off.",
        source: "Intel SDM vol. 4, MSR_SMI_COUNT (0x34); KVM4NFV (legacy USB off)",
        ..knob("SMIs", Group::Firmware, Place::Told(smi))
    },
];

/// Words that were meant to be others.
fn misspelt(host: &Host<'_>) -> Option<Told> {
    if host.boot.is_empty() {
        return None;
    }
    let meant = |(name, _): &(String, Option<String>)| {
        let name = name.replace('-', "_");
        let is_known = KNOWN_WORDS.split(' ').any(|known| known == name);
        // The first letters are seldom wrong, and tell one subsystem's words from another's.
        let near = nearest(&name, KNOWN_WORDS.split(' '));
        let near = near.filter(|known| name.len().abs_diff(known.len()) <= 1 && known.get(..3) == name.get(..3))?;
        (!is_known && host.booted(near).is_none()).then_some((name, near))
    };
    let wrong: Vec<(String, &str)> = host.boot.iter().filter_map(meant).collect();
    let Some((first, near)) = wrong.first() else {
        return Some(Told::new("none", "proc/cmdline", true, "no word of them misspelt"));
    };
    let value = list(&wrong.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>());
    let mut told = Told::new(
        value,
        "proc/cmdline",
        false,
        list(&wrong.iter().map(|(_, near)| (*near).to_owned()).collect::<Vec<_>>()),
    );
    let (are, they) = if wrong.len() == 1 { ("sets", "was") } else { ("set", "were") };
    told.ignored =
        Some(format!("{} on the kernel's command line {are} nothing: {} {they} meant", told.value, told.want));
    let value = host.booted(first).flatten().map_or(String::new(), |value| format!("={value}"));
    told.fix.push(format!("grubby --update-kernel=ALL --remove-args={first} --args=\"{near}{value}\"   # then reboot"));
    told.undo.push(format!("grubby --update-kernel=ALL --remove-args={near} --args=\"{first}{value}\""));
    Some(told)
}

/// The policy of links, or the word that turns power saving off.
fn link_power(host: &Host<'_>) -> Option<Told> {
    const FILE: &str = "sys/module/pcie_aspm/parameters/policy";
    if host.booted("pcie_aspm") == Some(Some("off")) {
        return Some(Told::new("pcie_aspm=off", "proc/cmdline", true, "off"));
    }
    let line = host.last.line(FILE)?;
    let value = chosen(&line).to_owned();
    let fits = value == "performance";
    let mut told = Told::new(value.clone(), FILE, fits, "performance");
    if !fits {
        let path = FILE.trim_start_matches("sys/").to_owned();
        told.changes.push(Setting::SysfsWrite { path }.change("performance", Some(value)));
        told.needs = Some(Needs::Nothing);
    }
    Some(told)
}

/// They come to all CPUs at once, so that those of other CPUs count as well.
fn smi(host: &Host<'_>) -> Option<Told> {
    let came = host::smi::between(host.first?, host.last)?;
    let (cpu, most) = came.into_iter().max_by_key(|(cpu, came)| (*came, Reverse(*cpu)))?;
    let value = if most == 0 { "none between two samples".to_owned() } else { format!("{most} on CPU {cpu}") };
    let told = Told::new(value, host::smi::SMI_FILE, most == 0, "none between two samples");
    Some(match most {
        0 => told,
        _ => told.looking(
            "rdmsr -a 0x34; sleep 60; rdmsr -a 0x34   # how fast it grows; then turn off legacy USB in the firmware, and ask its vendor",
        ),
    })
}
