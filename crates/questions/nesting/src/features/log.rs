//! What does the kernel's log say of features? A second witness.
//!
//! ```text
//! row unknown, the log says on      on: the module was loaded in this boot and said so
//! row and log agree                 the row, with the line as more evidence
//! they differ                       the row: the module was loaded again since; the line is told
//! virtualization absent, and the firmware forbids it     off: somebody can switch it on
//! ```
//! Lines: hv_init_evmcs in arch/x86/kvm/vmx/vmx.c, svm_hardware_setup in svm/svm.c, svm_hv_hardware_setup in
//! svm/svm_onhyperv.h (Linux 6.1 and 6.12, whose prefixes differ); init_ia32_feat_ctl in arch/x86/kernel/cpu/feat_ctl.c.

use crate::model::Row;
use base::Evidence;
use base::figure::Standing;
use host::{KernelLog, Virtualization};

/// Words of a line, and what they say of a feature.
const SAID: &[(&str, &str, Standing)] = &[
    ("using Hyper-V Enlightened VMCS", "enlightened_vmcs", Standing::On),
    ("AVIC enabled", "avic", Standing::On),
    ("Virtual VMLOAD VMSAVE supported", "virtual_vmload_vmsave", Standing::On),
    ("Virtual GIF supported", "virtual_gif", Standing::On),
    ("Virtual NMI enabled", "virtual_nmi", Standing::On),
    ("LBR virtualization supported", "lbr_virtualization", Standing::On),
    ("TSC scaling supported", "tsc_scaling", Standing::On),
    ("Nested Virtualization enabled", "nested", Standing::On),
    ("Nested Paging enabled", "npt", Standing::On),
    ("Nested Paging disabled", "npt", Standing::Off),
    ("PMU virtualization is disabled", "vpmu", Standing::Off),
    ("Hyper-V enlightened NPT TLB flush enabled", "hyperv_enlightened_tlb", Standing::On),
    ("Hyper-V Direct TLB Flush enabled", "hyperv_direct_flush", Standing::On),
];

/// Lines of a kernel that may not use what the processor has. Old ones say it of KVM, newer ones of the processor.
const FORBIDDEN: &[&str] = &[
    "TXT) disabled by BIOS",
    "disabled by bios",
    "VMX is disabled on CPU",
    "SVM disabled (by BIOS)",
    "not enabled (by BIOS)",
];

/// Lines of a counter that the kernel gave up.
const UNSTABLE: &[&str] = &["Marking TSC unstable", "Marking clocksource 'tsc", "TSC found unstable"];

/// Adds what the log says to the rows.
pub(super) fn witness(facts: &Virtualization, rows: &mut [Row]) {
    let Some(log) = &facts.log else { return };
    for (words, feature, said) in SAID {
        let (Some(line), Some(row)) = (log.said(words), rows.iter_mut().find(|row| row.feature == *feature)) else {
            continue;
        };
        if row.state == Standing::Unknown {
            (row.state, row.evidence) = (*said, format!("{}: \"{}\"", line.file, line.text));
        } else if row.state == *said {
            row.evidence = format!("{}; {}: \"{}\"", row.evidence, line.file, line.text);
        } else {
            row.evidence = format!("{}; earlier in this boot, {}: \"{}\"", row.evidence, line.file, line.text);
        }
    }
    let virtualization = rows.iter_mut().find(|row| row.feature == "virtualization" && row.state == Standing::Absent);
    if let Some((row, line)) = virtualization.zip(any(log, FORBIDDEN)) {
        row.state = Standing::Off;
        row.evidence = format!("{}; {}", row.evidence, line);
    }
}

/// Why the time-stamp counter is not the clock, where the log tells.
pub fn unstable(facts: &Virtualization) -> Option<Evidence> {
    let log = facts.log.as_ref()?;
    let line = UNSTABLE.iter().find_map(|words| log.said(words))?;
    Some(Evidence::new(&line.text, &line.file))
}

fn any(log: &KernelLog, words: &[&str]) -> Option<String> {
    let line = words.iter().find_map(|words| log.said(words))?;
    Some(format!("{}: \"{}\"", line.file, line.text))
}
