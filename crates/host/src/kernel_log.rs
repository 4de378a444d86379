//! What did the kernel write about virtualization while it booted and loaded KVM?
//!
//! In: `kernel-log.txt` of a snapshot, or what a report of another tool holds of dmesg and the journal. Out: the lines of
//! the last boot that concern virtualization and clocks, without their times.
//! ```text
//! [    2.345678] kvm_amd: Nested Virtualization enabled                --\
//! Nov 22 08:01:02 host kernel: kvm_amd: Nested Virtualization enabled  ---> kvm_amd: Nested Virtualization enabled
//! ```
//! A line that is there was said. One that is not there may have been overwritten since: it never means no.

use crate::Snapshot;

/// Name of the file in a snapshot.
pub const LOG_FILE: &str = "kernel-log.txt";

/// Where the log may lie, ours first: reports of sos, and copies of `/var/log`.
const LOGS: &[&str] = &[
    LOG_FILE,
    "sos_commands/kernel/dmesg*",
    "sos_commands/logs/journalctl*",
    "var/log/{dmesg,kern.log,messages,syslog}",
];

/// The first line of a boot holds this.
const BOOT: &str = "Linux version ";

/// Words of lines that are kept: KVM's modules and Hyper-V's drivers, who runs below, firmware that forbids, clocks.
const CONCERNS: &[&str] = &[
    "kvm",
    "hyper-v",
    "hypervisor detected",
    "paravirtualized kernel",
    "svm:",
    "svm disabled",
    "vmx",
    "clocksource",
    "tsc",
    "microsoft hv",
];

/// Lines of a running machine that tell nothing of its setup and come by the thousand.
const NOISE: &[&str] = &["guest rip", "lockdown:", "debugfs: "];

/// More lines are not kept.
const MOST_LINES: usize = 2_000;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KernelLog {
    lines: Vec<Line>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub file: String,
    pub text: String,
}

impl KernelLog {
    /// What the snapshot holds; `None` if it has no log at all.
    pub fn of(snapshot: &Snapshot) -> Option<Self> {
        let files: Vec<String> = LOGS.iter().flat_map(|pattern| snapshot.find(pattern)).collect();
        let texts: Vec<(String, String)> =
            files.into_iter().filter_map(|file| Some((file.clone(), snapshot.read(&file)?))).collect();
        if texts.is_empty() {
            return None;
        }
        let lines = texts
            .iter()
            .flat_map(|(file, text)| kept(text).map(|line| Line { file: file.clone(), text: plain(line).to_owned() }));
        Some(Self { lines: lines.take(MOST_LINES).collect() })
    }

    /// The first line that holds these words, in any case of letters.
    pub fn said(&self, words: &str) -> Option<&Line> {
        let words = words.to_ascii_lowercase();
        self.lines.iter().find(|line| line.text.to_ascii_lowercase().contains(&words))
    }

    /// The hypervisor that the kernel named (`Hypervisor detected: KVM`).
    pub fn hypervisor(&self) -> Option<&str> {
        Some(self.said("Hypervisor detected: ")?.text.split_once("detected: ")?.1.trim())
    }

    /// A number behind a word of Hyper-V's lines, such as `hints` (ms_hyperv_init_platform in
    /// arch/x86/kernel/cpu/mshyperv.c, Linux 6.12).
    pub(crate) fn hyperv_word(&self, name: &str) -> Option<u32> {
        let name = format!("{name} 0x");
        let text = &self.lines.iter().find(|line| line.text.contains("Hyper-V: ") && line.text.contains(&name))?.text;
        let digits = text.split_once(&name)?.1;
        let end = digits.find(|letter: char| !letter.is_ascii_hexdigit()).unwrap_or(digits.len());
        u32::from_str_radix(&digits[..end], 16).ok()
    }
}

/// Lines of the last boot that concern virtualization and clocks.
pub fn kept(text: &str) -> impl Iterator<Item = &str> {
    let last_boot = text.rfind(BOOT).map_or(0, |at| text[..at].rfind('\n').map_or(0, |end| end + 1));
    text[last_boot..].lines().filter(|line| {
        let line = line.to_ascii_lowercase();
        let holds = |words: &[&str]| words.iter().any(|word| line.contains(word));
        holds(CONCERNS) && !holds(NOISE)
    })
}

/// A line without the time, the host and the word `kernel:` before it.
fn plain(line: &str) -> &str {
    let line = line.split_once(" kernel: ").map_or(line, |(_, rest)| rest).trim();
    match line.strip_prefix('[').and_then(|rest| rest.split_once("] ")) {
        Some((time, rest)) if time.trim().parse::<f64>().is_ok() || time.contains(':') => rest.trim(),
        _ => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn log(file: &str, text: &str) -> Option<KernelLog> {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("proc")).unwrap();
        let path = root.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        KernelLog::of(&Snapshot::open(root.path()).unwrap())
    }

    #[test]
    fn lines_of_dmesg_and_of_the_journal_are_the_same_line() {
        let said = "kvm_amd: Nested Virtualization enabled";
        for (file, before) in [
            (LOG_FILE, "[    2.345678] "),
            ("sos_commands/kernel/dmesg", "[    2.345678] "),
            ("sos_commands/kernel/dmesg_-T", "[Sun Nov 22 08:01:02 2026] "),
            ("sos_commands/logs/journalctl_--no-pager_--boot", "Nov 22 08:01:02 host kernel: "),
            ("var/log/kern.log", "Nov 22 08:01:02 host kernel: [    2.345678] "),
        ] {
            let log = log(file, &format!("[    0.0] usb 1-1: new device\n{before}{said}\n")).unwrap();
            assert_eq!(log.lines, [Line { file: file.into(), text: said.into() }]);
            assert!(log.said("nested virtualization ENABLED").is_some() && log.said("Nested Paging").is_none());
        }
        assert_eq!(log("proc/stat", "cpu 1\n"), None);
    }

    #[test]
    fn hyperv_tells_its_words_and_older_boots_do_not_count() {
        // Lines of two machines, as people have posted them.
        let text = "[ 0.0] Linux version 6.1.0\n[ 1.0] kvm_amd: AVIC enabled\n[ 0.0] Linux version 6.12.1\n\
                    [ 0.0] Hypervisor detected: Microsoft Hyper-V\n\
                    [ 0.0] Hyper-V: privilege flags low 0xae7f, high 0x3b8030, hints 0x9e4e24, misc 0xe0bed7b2\n\
                    [ 0.0] Hyper-V: Nested features: 0x3e0101\n\
                    [ 9.0] kvm [4711]: vcpu0, guest rIP: 0xfff80 ignored rdmsr: 0x34\n";
        let log = log("var/log/dmesg", text).unwrap();
        assert_eq!(log.hypervisor(), Some("Microsoft Hyper-V"));
        let words = ["flags low", "hints", "Nested features:", "ext"].map(|name| log.hyperv_word(name));
        assert_eq!(words, [Some(0xae7f), Some(0x9e_4e24), Some(0x3e_0101), None]);
        assert!(log.said("AVIC").is_none() && log.said("rdmsr").is_none());
    }
}
