//! What is lost between two levels, flag by flag?
//!
//! ```text
//! L0  ept vpid shadow_vmcs apicv ...     the processor
//! L1  ept vpid             ...           what the machine below offers of it; some flags it imitates (`untold`)
//! ```
//! In: the flags of a machine and of its guest. Out: a row per flag of either. KVM passes some features on to nobody,
//! whatever is asked for: nested_vmx_setup_secondary_ctls in arch/x86/kvm/vmx/nested.c and svm_set_cpu_caps in
//! arch/x86/kvm/svm/svm.c, Linux 6.12.

use super::model::{Machine, Model};
use super::untold::IMITATED;
use base::{Cell, Table, TableSpec, table};
use host::processor::{Processor, Vendor};
use std::collections::BTreeSet;

/// Flags of SVM among the `flags` of an AMD processor (arch/x86/include/asm/cpufeatures.h, word 15, Linux 6.12).
const SVM: &str = "npt lbrv svm_lock nrip_save tsc_scale vmcb_clean flushbyasid decodeassists pausefilter pfthreshold avic \
    v_vmsave_vmload vgif x2avic v_spec_ctrl vnmi";

/// Flags that KVM offers to no guest.
const NEVER: &[&str] = &[
    "ple",
    "ipi_virt",
    "notify_vm_exiting",
    "bus_lock_detection",
    "ept_violation_ve",
    "ept_mode_based_exec",
    "avic",
    "x2avic",
    "svm_lock",
    "v_spec_ctrl",
    "decodeassists",
];

/// One flag at two levels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Flag {
    /// Its name in `/proc/cpuinfo`.
    pub name: String,
    /// Whether the machine below has it.
    pub below: bool,
    /// Whether the guest is offered it.
    pub offered: bool,
}

impl Flag {
    pub(crate) fn verdict(&self) -> &'static str {
        let name = self.name.as_str();
        match (self.below, self.offered) {
            (_, true) if IMITATED.contains(&name) => "offered, and emulated by KVM where the hardware lacks it",
            (true, true) => "passed on",
            (false, true) => "imitated",
            (true, false) if NEVER.contains(&name) => "KVM never passes it on",
            (true, false) => "lost",
            (false, false) => "absent",
        }
    }

    /// True if the machine below could offer it and does not.
    pub(crate) fn is_lost(&self) -> bool {
        self.verdict() == "lost"
    }
}

/// Pairs of machines of which one may run the other: neighbours in level.
pub(crate) fn pairs(model: &Model) -> Vec<(&Machine, &Machine)> {
    let guests = model.machines.iter().filter(|machine| machine.is_guest());
    let with_host = |guest| {
        let below: Vec<&Machine> = model.machines.iter().filter(|machine| is_below(machine, guest)).collect();
        // With two hosts at one level nothing says which of them runs the guest.
        if let [host] = below[..] { Some((host, guest)) } else { None }
    };
    guests.filter_map(with_host).collect()
}

fn is_below(machine: &Machine, guest: &Machine) -> bool {
    machine.level == guest.level_below() && machine.level != guest.level
}

/// The flags of two machines; none where a kernel does not list them.
pub(crate) fn compared(host: &Machine, guest: &Machine) -> Vec<Flag> {
    let (Some(below), Some(above)) = (own(host), own(guest)) else { return Vec::new() };
    let all: BTreeSet<&String> = below.union(&above).collect();
    let flag = |name: &String| Flag { name: name.clone(), below: below.contains(name), offered: above.contains(name) };
    all.into_iter().map(flag).collect()
}

/// The virtualization flags of a machine; a processor that offers no VMX has none of them.
fn own(machine: &Machine) -> Option<BTreeSet<String>> {
    let cpu: &Processor = machine.facts.processor.as_ref()?;
    match (cpu.vendor, &cpu.vmx_flags) {
        (Vendor::Amd, _) => Some(SVM.split(' ').filter(|name| cpu.has(name)).map(str::to_owned).collect()),
        (_, Some(vmx)) => Some(vmx.clone()),
        (_, None) if !cpu.has("vmx") => Some(BTreeSet::new()),
        (_, None) => None,
    }
}

pub(crate) const FLAGS: TableSpec = table! {
    nesting.flags version 1:
    "One flag of a processor on a machine and on its guest, and what became of it between them.";
    key host, key guest, key flag, flag below, flag offered, text verdict;
};

/// Table [`FLAGS`].
pub(crate) fn table(model: &Model) -> Table {
    let mut table = Table::new(&FLAGS);
    for (host, guest) in pairs(model) {
        for flag in compared(host, guest) {
            let names = [host.id.as_str(), guest.id.as_str(), flag.name.as_str()];
            let mut row: Vec<Cell> = names.into_iter().map(Cell::from).collect();
            row.extend([flag.below.into(), flag.offered.into(), flag.verdict().into()]);
            table.push(row);
        }
    }
    table
}
