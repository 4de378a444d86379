//! What firmware and buses do on their own, and words on the command line that nobody reads.

use super::super::checks::{link_power, misspelt, smi};
use super::{Group, Place, Rule, Words, knob};
use base::Needs;

pub(super) const KNOBS: &[Rule] = &[
    knob(
        "LAT-TYPO",
        Group::Firmware,
        Place::Told(misspelt),
        Needs::Reboot,
        Words {
            name: "the command line",
            looks_at: "Words on the kernel's command line that are a typing mistake away from one of these knobs.",
            why: "The kernel ignores words that it does not know and says so once, early in its log: KVM4NFV's own scripts set \
                pcie_asmp for years. Caveat: a module that is not from the kernel may know the word.",
            source: "Documentation/admin-guide/kernel-parameters.txt, Linux 6.12; OPNFV KVM4NFV, ci/envs/host-config (pcie_asmp)",
        },
    ),
    knob(
        "LAT-ASPM",
        Group::Firmware,
        Place::Told(link_power),
        Needs::Reboot,
        Words {
            name: "pcie_aspm",
            looks_at: "Power saving of PCIe links (pcie_aspm, policy).",
            why: "A link that sleeps needs some microseconds before a device can write or interrupt. Caveat: it costs power, and some \
                machines hang with pcie_aspm=off; the policy performance is the milder way.",
            source: "Documentation/admin-guide/kernel-parameters.txt, pcie_aspm, Linux 6.12; OPNFV KVM4NFV, ci/envs",
        },
    ),
    Rule {
        fix: &["rdmsr -a 0x34; sleep 60; rdmsr -a 0x34   # the count of SMIs must not grow (Intel)"],
        ..knob(
            "LAT-SMI",
            Group::Firmware,
            Place::Told(smi),
            Needs::Nothing,
            Words {
                name: "SMIs",
                looks_at: "System management interrupts: a snapshot has no model-specific registers, so they are not seen.",
                why: "The firmware takes the CPU for tens of microseconds or more, and the kernel cannot see it. Caveat: some SMIs are \
                    for safety, such as those of fans and memory errors; ask the vendor before any is turned off.",
                source: "Intel SDM vol. 4, MSR_SMI_COUNT (0x34); KVM4NFV (legacy USB off)",
            },
        )
    },
];
