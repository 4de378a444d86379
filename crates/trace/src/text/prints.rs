//! How do kernels and trace-cmd print KVM's and the scheduler's events?
//!
//! Per event the patterns (see `body.rs`), those with more fields first. Sources: the `TP_printk` of
//! arch/x86/kvm/trace.h, include/trace/events/{kvm,sched,irq,timer}.h in Linux 3.10, 4.8, 5.2, 5.10, 6.1, 6.12, 6.18, and
//! plugins/plugin_{kvm,sched_switch}.c of libtraceevent 1.7, which trace-cmd prints by.
//!
//! Names stand beside the numbers they were printed for, because a text does not always tell the number:
//! | field | holds |
//! |---|---|
//! | `exit_reason_name`, `exit_code_name` | the exit reason as printed: `EPT_VIOLATION`, `EXIT_NPF`, `npf`, `HLT FAILED_VMENTRY` |
//! | `reason_name` | `KVM_EXIT_IO`; `reason` has its number, absent where KVM_RUN returned an `errno` |
//! | `prev_state_text` | `R`, `R+`, `S`, `D`, ..; `prev_state` is there only where the text is a number (`trace-cmd report -R`) |
//! | `reg_name`, `dm_name`, `tm_name`, `action` | an APIC register, a delivery mode, a trigger mode (`edge`, `level`), a softirq |
//! | `insn_text`, `flags_name` | the bytes of an instruction, and in which mode it was emulated |
//! | `exception_name` | `UD`, printed as `#UD`; `exception` is there only where the text is a number (`trace-cmd report -R`) |
//! | `guest_pgd_name` | what `guest_pgd` is: `guest_cr3`, `nested_cr3`, `nested_eptp` |
//! | `dst`, `vec` of `kvm_msi_set_irq` | what the kernel computes from `address` and `data` before it prints them |

use std::collections::HashMap;
use std::sync::LazyLock;

/// Fields that hold a name, with the field that holds its number where the printer knew no name.
pub(super) const NUMBER_OF_NAME: &[(&str, &str)] = &[
    ("exit_reason_name", "exit_reason"),
    ("exit_code_name", "exit_code"),
    ("reg_name", "reg"),
    ("prev_state_text", "prev_state"),
];

/// True for a field that the kernel prints in hexadecimal without 0x; `trace-cmd report -R` follows it in that.
pub(super) fn is_bare_hex(event: &str, field: &str) -> bool {
    BARE_HEX.iter().any(|(name, fields)| *name == event && fields.contains(&field))
}

const BARE_HEX: &[(&str, &[&str])] = &[
    ("kvm_msr", &["ecx"]),
    ("kvm_cpuid", &["function", "index", "rax", "rbx", "rcx", "rdx"]),
    ("kvm_page_fault", &["fault_address", "error_code"]),
    (
        "kvm_nested_intercepts",
        &["cr_read", "cr_write", "exceptions", "intercept", "intercept1", "intercept2", "intercept3"],
    ),
    ("kvm_apic_accept_irq", &["apicid"]),
    ("kvm_apicv_accept_irq", &["apicid"]),
    ("kvm_eoi", &["apicid"]),
    ("kvm_pv_eoi", &["apicid"]),
    ("kvm_emulate_insn", &["rip", "csbase"]),
];

/// The group of an event that a text names without its group; empty if it is none of ours.
pub(super) fn system(event: &str) -> &'static str {
    PRINTS.get(event).map_or("", |(system, _)| *system)
}

/// The patterns of an event, to be tried in this order.
pub(super) fn patterns(event: &str) -> &'static [&'static str] {
    PRINTS.get(event).map_or(&[], |(_, patterns)| patterns)
}

/// Of each event its group and its patterns.
static PRINTS: LazyLock<HashMap<&str, (&str, Vec<&str>)>> = LazyLock::new(|| {
    let mut events: HashMap<&str, (&str, Vec<&str>)> = HashMap::new();
    for row in include_str!("prints.tsv").lines().filter(|row| !row.starts_with('#')) {
        let mut cells = row.splitn(3, '\t');
        let mut next = || cells.next().unwrap_or_default();
        let (event, group) = (next(), next());
        events.entry(event).or_insert_with(|| (group, Vec::new())).1.push(next());
    }
    events
});
