//! QEMU's own log: its warnings and errors, and what KVM said when it gave up on a VM.
//!
//! ```text
//! 2024-03-11T08:12:44.120011Z qemu-kvm: warning: TSC frequency mismatch between VM (.. kHz) and host (.. kHz), ..
//! KVM internal error. Suberror: 3
//! extra data[0]: 0x0000000080000b0e
//! RAX=0000000000000000 RBX=0000000000000009 ..
//! ```
//! Sources: accel/kvm/kvm-all.c (`kvm_handle_internal_error`) and target/i386/cpu-dump.c, QEMU 8.2; Documentation/virt/kvm/api.rst,
//! KVM_EXIT_INTERNAL_ERROR, Linux 6.12.

use super::{Pasted, Text};
use crate::machine::Complaint;

/// Lines that QEMU prints of an error: up to four of data, and the registers with what the guest had at its address.
const MOST_LINES: usize = 64;

/// The head of what KVM said, with everything below it; or a line of QEMU's.
pub(super) fn lines(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let line = text.at(at);
    if line.starts_with("KVM internal error. Suberror: ") {
        note(text, at, line, pasted);
        let mut end = at + 1;
        while end - at < MOST_LINES && is_below(text.at(end)) {
            let (what, value) = match text.at(end).split_once(": ").filter(|(name, _)| name.starts_with("extra data["))
            {
                Some(told) => told,
                None => ("registers of the vCPU", text.at(end)),
            };
            pasted.quote(what, "KVM internal error", value, text.place(end));
            end += 1;
        }
        return end - at;
    }
    let Some(message) = message(line) else { return 0 };
    note(text, at, message, pasted);
    1
}

/// The message of a line, behind the time and the program's name.
fn message(line: &str) -> Option<&str> {
    // libvirt hands on what QEMU said last: `qemu unexpectedly closed the monitor: ..` (src/qemu/qemu_process.c, libvirt 10.0).
    let line = line.split_once("monitor: ").map_or(line, |(_, said)| said);
    let (head, message) = line.split_once(": ")?;
    let program = head.split_whitespace().last()?;
    let is_stamp = |word: &str| word.len() >= 20 && word.ends_with('Z') && word.contains('T');
    let stamps = head.split_whitespace().rev().skip(1).all(is_stamp);
    let name = program.rsplit('/').next()?;
    (stamps && (name == "qemu-kvm" || name.starts_with("qemu-system-"))).then_some(message)
}

/// Keeps a message as a complaint, where it is one that is known.
fn note(text: &Text<'_>, at: usize, message: &str, pasted: &mut Pasted) {
    match Complaint::of(message) {
        Some(complaint) => pasted.complain(complaint, text.place(at)),
        None => pasted.quote("QEMU says", "", message, text.place(at)),
    }
}

/// `extra data[1]: 0x31`, `RAX=..`, `CS =0010 ..`, `Code=..`.
fn is_below(line: &str) -> bool {
    let is_register = || {
        let name = line.split('=').next().unwrap_or_default().trim_end();
        line.contains('=') && (2..=4).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    line == "emulation failure" || line.starts_with("extra data[") || line.starts_with("Code=") || is_register()
}

#[cfg(test)]
mod tests {
    use crate::machine::COMPLAINTS;
    use crate::paste::read;

    #[test]
    fn an_internal_error_is_a_complaint_with_its_data() {
        let text = "2024-03-11T08:12:44.120011Z qemu-kvm: warning: TSC frequency mismatch between VM (1 kHz) and host (2 kHz), and TSC scaling unavailable\n\
            KVM internal error. Suberror: 1\nextra data[0]: 0x0000000000000002\nRAX=0000000000000000 RBX=0000000000000009\nCS =0010 0000000000000000 ffffffff\nCode=0f 0b\n\
            2024-03-11T08:12:45.120011Z qemu-kvm: terminating on signal 15\nqemu-kvm: that is me\nI think qemu-kvm: broken\n\
            error: internal error: qemu unexpectedly closed the monitor: 2024-03-11T08:12:46.120011Z qemu-kvm: Unknown savevm section or instance 'pci_bridge' 0\n";
        let machine = read(&[("t".to_owned(), text.to_owned())]);
        assert_eq!(machine.sources[0].2, 1, "{:?}", machine.strange);
        let told: Vec<_> = machine.complaints.iter().map(|told| COMPLAINTS[told.value.kind].words[0]).collect();
        assert_eq!(told, ["tsc frequency mismatch", "kvm internal error. suberror: 1", "unknown savevm section"]);
        let quoted: Vec<_> = machine.quoted.iter().map(|told| told.what.as_str()).collect();
        let registers = "registers of the vCPU";
        assert_eq!(quoted, ["extra data[0]", registers, registers, registers, "QEMU says", "QEMU says"]);
    }
}
