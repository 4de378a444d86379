//! What can be wrong with how a machine is set up for nesting: rules as data.
//!
//! Each row says what it is called, why it costs, what to type, what that needs and where the claim comes from; its
//! `check` looks at the machines and returns what it saw. Published costs are those of their sources and nobody else's.

use super::checks;
use super::model::Model;
use base::{Change, Cost, Evidence, Level, Needs, Severity};

/// What a rule's check saw.
pub struct Hit {
    /// Machine, or machine and feature.
    pub subject: String,
    /// How much it matters.
    pub severity: Severity,
    /// Where the change has to be made.
    pub level: Level,
    /// One line.
    pub title: String,
    /// What was seen and where.
    pub evidence: Vec<Evidence>,
    /// What it costs.
    pub cost: Cost,
    /// Changes that the program can make itself.
    pub changes: Vec<Change>,
    /// Commands made for this case; they come before the rule's own.
    pub fix: Vec<String>,
    /// Their way back.
    pub undo: Vec<String>,
    /// What the change needs here; `None`: what the rule says.
    pub needs: Option<Needs>,
}

/// One rule.
pub struct Rule {
    /// `NST-` and a word.
    pub id: &'static str,
    /// Looks at all machines.
    pub check: fn(&Model) -> Vec<Hit>,
    /// Why it costs.
    pub why: &'static str,
    /// What to type.
    pub fix: &'static [&'static str],
    /// The way back.
    pub undo: &'static [&'static str],
    /// What the change needs.
    pub needs: Needs,
    /// Where the claim comes from.
    pub source: &'static str,
}

/// All rules, in the order in which equal findings are shown.
pub const RULES: &[Rule] = &[
    Rule {
        id: "NST-TCG",
        check: checks::identity::emulated,
        why: "QEMU without KVM interprets every instruction. Nothing that is timed here says anything of hardware, and \
              everything is some ten times slower than it could be.",
        fix: &[
            "ls -l /dev/kvm   # on the machine below: is KVM there, and may QEMU open it?",
            "qemu-system-x86_64 -accel kvm -cpu host ...",
        ],
        undo: &[],
        needs: Needs::OuterLevel,
        source: "QEMU 9.0, target/i386/tcg/sysemu/tcg-cpu.c and cpu.c (signature TCGTCGTCGTCG at CPUID 0x40000000)",
    },
    Rule {
        id: "NST-SHADOW",
        check: checks::vmx::shadow,
        why: "Without VMCS shadowing each VMREAD and VMWRITE of a guest hypervisor leaves the guest, and the level below \
              carries it out. KVM in a guest makes 8 to 16 of them for each exit of its own guest.",
        fix: &[],
        undo: &[],
        needs: Needs::Reload,
        source: "arch/x86/kvm/vmx/vmx.c (enable_shadow_vmcs) and vmcs_shadow_fields.h, Linux 6.12; github.com/intel/haxm pull \
                 request 130 (6-10 VMREAD and 2-6 VMWRITE per exit)",
    },
];
