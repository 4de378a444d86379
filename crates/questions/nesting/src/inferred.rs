//! What does a guest tell of the machine that runs it, and by what?
//!
//! ```text
//! hardware flag in the guest     the level below has it and passes it on: KVM imitates other flags, not these
//! CPUID takes as long as ..      how deep this guest lies: a hint
//! ```
//! In: the lowest machine, if it is a guest. Out: rows of table `inferred`. What none of this tells is in `untold`.
//! The stable bit of kvm-clock says nothing here: KVM offers it whatever its own clock is, and the clock's page decides.
//! Flags: nested_vmx_setup_ctls_msrs in arch/x86/kvm/vmx/nested.c, Linux 6.12; the bit: __do_cpuid_func in cpuid.c.

use super::model::{Machine, Model};
use base::Level;
use base::figure::Standing;
use base::{Table, TableSpec, columns, shown};

/// Flags that KVM offers its guests only where the hardware has them, and what they say.
const FROM_HARDWARE: &[(&str, &str)] = &[
    ("vid", "has virtual-interrupt delivery, and offers it"),
    ("vapic_reg", "has APIC-register virtualization, and offers it"),
    ("posted_intr", "has posted interrupts, and offers them"),
    ("tsc_scaling", "has TSC scaling, and offers it"),
];

/// One thing that is known of another level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Inferred {
    pub level: Level,
    /// What, to follow the level's name.
    pub said: String,
    pub from: String,
    /// True if it may be otherwise.
    pub hint: bool,
}

/// All that the lowest machine tells of the one below it.
pub(crate) fn inferred(model: &Model) -> Vec<Inferred> {
    let Some(guest) = model.machines.first().filter(|machine| machine.is_guest()) else { return Vec::new() };
    let level = guest.level_below();
    let row = |said: &str, from: String, hint| Inferred { level, said: said.to_owned(), from, hint };
    let mut all: Vec<Inferred> = flags(guest)
        .map(|(flag, said)| row(said, format!("flag {flag} of {}: KVM does not emulate this one", guest.id), false))
        .collect();
    if let Some(seen) = guest.row("cpuid_answered_below").filter(|row| row.state == Standing::On) {
        all.push(row("answers its guest's CPUID", seen.evidence.clone(), true));
    }
    all
}

fn flags(guest: &Machine) -> impl Iterator<Item = &'static (&'static str, &'static str)> + '_ {
    let vmx = guest.facts.processor.as_ref().and_then(|cpu| cpu.vmx_flags.as_ref());
    FROM_HARDWARE.iter().filter(move |(flag, _)| {
        guest.facts.below.is(host::hypervisor::KVM) && vmx.is_some_and(|flags| flags.contains(*flag))
    })
}

pub(crate) const INFERRED: TableSpec = TableSpec {
    section: "nesting",
    name: "inferred",
    version: 2,
    row: "One thing that a guest, `machine`, shows about another level.",
    columns: columns![key machine, key level, key said, text from, flag hint],
    shown: Some(shown![
        "What this guest shows about the level below", 20;
        level, said: "says", from: "because",
    ]),
};

/// Table [`INFERRED`].
pub(crate) fn table(model: &Model) -> Table {
    let mut table = Table::new(&INFERRED);
    let machine = model.machines.first().map(|machine| machine.id.as_str());
    for one in inferred(model) {
        let level = one.level.to_string();
        table.push(vec![
            machine.into(),
            level.into(),
            one.said.as_str().into(),
            one.from.as_str().into(),
            one.hint.into(),
        ]);
    }
    if table.rows.is_empty() {
        table.shown = None;
    }
    table
}
