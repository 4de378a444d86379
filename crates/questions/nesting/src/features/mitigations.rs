//! Which mitigations make entries and exits longer?
//!
//! In: `/sys/devices/system/cpu/vulnerabilities/*`. On means that the kernel does the extra work. Words and meaning:
//! Documentation/admin-guide/hw-vuln/ and arch/x86/kernel/cpu/bugs.c, Linux 6.12. Older kernels spell some of them otherwise:
//! `Full generic retpoline` and `Full AMD retpoline` until 5.16, `safe RET` in 6.5 (the same file).
//! `BHI: Retpoline`, behind the semicolons of one line, is another mitigation than `Retpolines`.

use crate::model::Row;
use base::figure::Standing;
use host::Virtualization;
use host::snapshot::Content;

/// A mitigation that is paid at entries or exits.
pub struct Mitigation {
    /// Name of the row.
    pub feature: &'static str,
    pub file: &'static str,
    /// Words of the line that show the work; one is enough.
    pub words: &'static [&'static str],
    pub meaning: &'static str,
}

const fn paid(
    feature: &'static str,
    file: &'static str,
    words: &'static [&'static str],
    meaning: &'static str,
) -> Mitigation {
    Mitigation { feature, file, words, meaning }
}

#[rustfmt::skip]
pub const MITIGATIONS: &[Mitigation] = &[
    paid("mitigation_l1tf", "l1tf", &["cache flushes"], "flushes the L1 data cache before entries"),
    paid("mitigation_meltdown", "meltdown", &["PTI"], "switches page tables at each system call and interrupt"),
    paid("mitigation_mds", "mds", &["Clear CPU buffers"], "clears CPU buffers before entries"),
    paid("mitigation_taa", "tsx_async_abort", &["Clear CPU buffers"], "clears CPU buffers before entries"),
    paid("mitigation_mmio_stale_data", "mmio_stale_data", &["Clear CPU buffers"], "clears CPU buffers before entries"),
    paid("mitigation_rfds", "reg_file_data_sampling", &["Clear Register File"], "clears the register file before entries"),
    paid("mitigation_tsa", "tsa", &["Clear CPU buffers"], "clears CPU buffers before entries"),
    paid("mitigation_spectre_v2", "spectre_v2", &["Retpolines", "retpoline", "LFENCE", "Mitigation: IBRS"], "protects branches by software: retpolines, or an MSR write at each exit"),
    paid("mitigation_bhi", "spectre_v2", &["BHI: SW loop", "BHI: Retpoline"], "overwrites branch history at each exit"),
    paid("mitigation_retbleed", "retbleed", &["untrained return thunk", "Mitigation: IBRS", "IBPB"], "protects returns at each exit"),
    paid("mitigation_srso", "spec_rstack_overflow", &["Safe RET", "safe RET", "IBPB"], "protects returns; with IBPB at each exit"),
    paid("mitigation_vmscape", "vmscape", &["IBPB"], "flushes branch prediction when an exit goes to the VMM"),
    paid("mitigation_itlb_multihit", "itlb_multihit", &["Split huge pages"], "splits executable huge pages of guests"),
];

/// A row for each file that the snapshot has or should have.
pub(super) fn rows(facts: &Virtualization) -> Vec<Row> {
    let row = |known: &Mitigation| {
        let path = format!("sys/devices/system/cpu/vulnerabilities/{}", known.file);
        let (state, evidence) = match facts.snapshot.content(&path) {
            Content::Text(text) => {
                let text = text.trim();
                // A line that begins with "Vulnerable" may name clearing that is attempted all the same.
                let works = known.words.iter().any(|word| text.contains(word));
                let state = match text {
                    _ if works && !text.starts_with("Not affected") => Standing::On,
                    _ if text.starts_with("Not affected") => Standing::Absent,
                    _ => Standing::Off,
                };
                (state, format!("vulnerabilities/{} = {text}", known.file))
            }
            // An old kernel knows fewer weaknesses than this list.
            Content::Absent => return None,
            Content::Unreadable(why) => (Standing::Unknown, format!("vulnerabilities/{}: {why}", known.file)),
        };
        Some(Row { feature: known.feature, state, evidence })
    };
    MITIGATIONS.iter().filter_map(row).collect()
}
