//! What the commonest exits and events of KVM mean, in a line: what to look at first.
//!
//! Sources: Intel SDM vol. 3, appendix C; AMD APM vol. 2, appendix C; arch/x86/kvm/trace.h and include/trace/events/kvm.h, Linux 6.12;
//! arch/arm64/include/asm/kvm_arm.h (`kvm_arm_exception_class`), Linux 6.12; hw/i386/pc.c, hw/acpi/ich9.c and piix4.c, QEMU 9.0, for ports.

/// Names, as any program prints them, and what they mean.
fn meanings() -> impl Iterator<Item = (&'static str, &'static str)> {
    let rows = include_str!("meanings.tsv").lines().filter(|line| !line.starts_with('#'));
    rows.filter_map(|row| row.split_once('\t'))
}

/// What a name means, where it is a common one; of a reason behind its event (`kvm_exit(HLT)`), or an access (`0x608:PIN`) as well.
pub(super) fn meaning(name: &str) -> Option<&'static str> {
    let bare = name.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')')).unwrap_or(name);
    // perf tells the code that it does not know: `UNKNOWN:131072`.
    let bare = bare.split_once(':').filter(|(name, _)| *name == "UNKNOWN").map_or(bare, |(name, _)| name);
    // In the folder of a vCPU: `vcpu0/exits`.
    let bare = bare.rsplit('/').next().unwrap_or(bare);
    let known = meanings().find(|(names, _)| names.split(' ').any(|name| name == bare));
    known.map(|(_, meaning)| meaning).or_else(|| facts::counts::device(name).map(|device| device.what))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_name_has_one_meaning() {
        let names: Vec<&str> = meanings().flat_map(|(names, _)| names.split(' ')).collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
        assert!(meaning("HLT").is_some() && meaning("WBINVD").is_none());
        assert_eq!(meaning("kvm_exit(PAUSE_INSTRUCTION)"), meaning("PAUSE"));
        assert!(meaning("0x608:PIN").is_some_and(|meaning| meaning.contains("ACPI")));
    }
}
