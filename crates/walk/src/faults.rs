//! What went wrong with the guests of a trace: instructions that KVM could not emulate, exceptions that it injected, KVM_RUN that
//! ended for good, and exits that come again from the same instruction.
//!
//! Sources: arch/x86/kvm/trace.h, arch/x86/kvm/x86.c (`handle_emulation_failure`), include/uapi/linux/kvm.h, Linux 6.12; Intel SDM
//! vol. 3, table 6-1 (exceptions).

use crate::events::reasons::{Isa, Reason};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// What went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    /// KVM_RUN returned for good: its reason.
    Ended(u32),
    /// KVM_RUN failed: its error.
    Failed(u32),
    /// The guest could deliver no exception any more, and its CPU shut down.
    TripleFault,
    /// An instruction that KVM could not emulate.
    Emulation,
    /// An exception that KVM injected: its vector.
    Injected(u8),
    /// Exits for the same reason, one after the other from the same instruction, about the same address.
    Repeated,
}

/// How often, when first, and where.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    pub count: u64,
    /// When it was seen first.
    pub first_ns: u64,
    /// The guest's instruction, where the trace tells.
    pub rip: Option<u64>,
    /// What it was about: an address.
    pub address: Option<u64>,
    /// The bytes of the instruction, as the kernel prints them.
    pub bytes: String,
    pub reason: Option<Reason>,
}

/// Faults of all threads, by the thread's number.
#[derive(Debug, Clone, Default)]
pub struct Faults {
    seen: BTreeMap<(usize, Fault), Seen>,
    runs: FxHashMap<usize, Run>,
}

/// Exits of one thread that come from one instruction.
#[derive(Debug, Clone, Default)]
struct Run {
    reason: Option<Reason>,
    rip: Option<u64>,
    address: Option<u64>,
    count: u64,
    first_ns: u64,
}

/// So many exits in a row from one instruction about one address are no progress. Where a page is mapped, the instruction is
/// executed; two exits for one page come from a race of two vCPUs.
pub const REPEATS: u64 = 8;

/// Bits of a physical address at most (Intel SDM volume 3, 4.1.4).
const ADDRESS_BITS: u32 = 52;

/// KVM_RUN's reasons that end a guest (include/uapi/linux/kvm.h, Linux 6.12): KVM_EXIT_SHUTDOWN, FAIL_ENTRY, INTERNAL_ERROR.
const ENDS: [(u32, &str); 3] = [(8, "KVM_EXIT_SHUTDOWN"), (9, "KVM_EXIT_FAIL_ENTRY"), (17, "KVM_EXIT_INTERNAL_ERROR")];

/// Errors of KVM_RUN that no VMM goes on from (Documentation/virt/kvm/api.rst; include/uapi/asm-generic/errno-base.h and errno.h, Linux 6.12); with
/// EINTR and EAGAIN it is called again.
const ERRORS: [(u32, &str); 5] = [(5, "EIO"), (12, "ENOMEM"), (14, "EFAULT"), (22, "EINVAL"), (133, "EHWPOISON")];

/// The exceptions that x86 has, by vector.
const EXCEPTIONS: [(u8, &str); 17] = [
    (0, "#DE"),
    (1, "#DB"),
    (3, "#BP"),
    (4, "#OF"),
    (5, "#BR"),
    (6, "#UD"),
    (7, "#NM"),
    (8, "#DF"),
    (10, "#TS"),
    (11, "#NP"),
    (12, "#SS"),
    (13, "#GP"),
    (14, "#PF"),
    (16, "#MF"),
    (17, "#AC"),
    (18, "#MC"),
    (19, "#XM"),
];

/// The name of an exception.
pub fn exception(vector: u8) -> String {
    let known = EXCEPTIONS.iter().find(|(number, _)| *number == vector);
    known.map_or_else(|| format!("vector {vector}"), |(_, name)| (*name).to_owned())
}

/// The vector of an exception that the kernel prints so: `UD`, behind a `#`.
pub(crate) fn vector_of(name: &[u8]) -> Option<u8> {
    EXCEPTIONS.iter().find(|(_, known)| known.as_bytes().strip_prefix(b"#") == Some(name)).map(|(vector, _)| *vector)
}

impl Fault {
    /// For people: `KVM_EXIT_INTERNAL_ERROR`, `#UD injected`.
    pub fn name(self) -> String {
        match self {
            Fault::Ended(reason) => ENDS
                .iter()
                .find(|(number, _)| *number == reason)
                .map_or_else(|| format!("KVM_RUN ended ({reason})"), |(_, name)| (*name).to_owned()),
            Fault::Failed(errno) => {
                let known = ERRORS.iter().find(|(number, _)| *number == errno);
                known.map_or_else(|| format!("error {errno}"), |(_, name)| format!("error {errno} ({name})"))
            }
            Fault::TripleFault => "triple fault".to_owned(),
            Fault::Emulation => "emulation failed".to_owned(),
            Fault::Injected(vector) => format!("{} injected", exception(vector)),
            Fault::Repeated => "no progress".to_owned(),
        }
    }
}

impl Faults {
    /// What went wrong, by thread.
    pub fn all(&self) -> impl Iterator<Item = (usize, Fault, &Seen)> {
        self.seen.iter().map(|((thread, fault), seen)| (*thread, *fault, seen))
    }

    /// KVM_RUN returned to the VMM for `reason`.
    pub(crate) fn userspace(&mut self, thread: usize, reason: u64, now_ns: u64) {
        if let Some((reason, _)) = ENDS.iter().find(|(ends, _)| u64::from(*ends) == reason) {
            self.note(thread, Fault::Ended(*reason), now_ns);
        }
    }

    /// KVM_RUN failed with an error; one by which it is only called again is none.
    pub(crate) fn failed(&mut self, thread: usize, errno: u32, now_ns: u64) {
        if ERRORS.iter().any(|(known, _)| *known == errno) {
            self.note(thread, Fault::Failed(errno), now_ns);
        }
    }

    /// KVM could not emulate an instruction.
    pub(crate) fn emulation(&mut self, thread: usize, now_ns: u64, rip: Option<u64>, bytes: &[u8]) {
        let seen = self.note(thread, Fault::Emulation, now_ns);
        if seen.count == 1 {
            seen.rip = rip;
            seen.bytes = String::from_utf8_lossy(bytes).trim().to_owned();
        }
    }

    /// KVM injected an exception.
    pub(crate) fn injected(&mut self, thread: usize, now_ns: u64, vector: u8) {
        self.note(thread, Fault::Injected(vector), now_ns);
    }

    /// The guest stopped.
    #[inline]
    pub(crate) fn exit(&mut self, thread: usize, reason: Reason, rip: Option<u64>, now_ns: u64) {
        if is_triple_fault(reason) {
            let seen = self.note(thread, Fault::TripleFault, now_ns);
            seen.rip = seen.rip.or(rip);
        }
        if is_of_memory(reason) {
            self.memory_exit(thread, reason, rip, now_ns);
        } else if !self.runs.is_empty() {
            self.other_exit(thread, rip);
        }
    }

    /// The guest came on: KVM emulated its instruction, or did what it asked of a device.
    pub(crate) fn progress(&mut self, thread: usize) {
        self.runs.remove(&thread);
    }

    /// The guest stopped for another reason; at another instruction it had come on.
    fn other_exit(&mut self, thread: usize, rip: Option<u64>) {
        if rip.is_some() && self.runs.get(&thread).is_some_and(|run| run.rip != rip) {
            self.progress(thread);
        }
    }

    /// The guest stopped because of its memory.
    fn memory_exit(&mut self, thread: usize, reason: Reason, rip: Option<u64>, now_ns: u64) {
        let run = self.runs.entry(thread).or_default();
        if run.rip != rip || run.reason != Some(reason) {
            *run = Run { reason: Some(reason), rip, address: None, count: 0, first_ns: now_ns };
        }
        run.count += 1;
    }

    /// That exit was about `address`.
    pub(crate) fn page_fault(&mut self, thread: usize, address: u64, now_ns: u64) {
        // No guest has such an address: some recorders write a pointer of the kernel there (lttng-modules, kvm_x86_page_fault).
        if address >> ADDRESS_BITS != 0 {
            return self.progress(thread);
        }
        let Some(run) = self.runs.get_mut(&thread) else { return };
        if run.address.is_some_and(|known| known != address) {
            (run.count, run.first_ns) = (1, now_ns);
        }
        run.address = Some(address);
        if run.count < REPEATS || run.rip.is_none() {
            return;
        }
        let run = run.clone();
        let seen = self.seen.entry((thread, Fault::Repeated)).or_default();
        if run.count > seen.count {
            let Run { reason, rip, address, count, first_ns } = run;
            *seen = Seen { count, first_ns, rip, address, bytes: String::new(), reason };
        }
    }

    fn note(&mut self, thread: usize, fault: Fault, now_ns: u64) -> &mut Seen {
        let seen = self.seen.entry((thread, fault)).or_default();
        if seen.count == 0 {
            seen.first_ns = now_ns;
        }
        seen.count += 1;
        seen
    }
}

/// Whether the guest's CPU shut down: a triple fault (Intel SDM vol. 3, appendix C, 2), SVM's SHUTDOWN (AMD APM vol. 2, 15.14.3, 0x7f).
fn is_triple_fault(reason: Reason) -> bool {
    matches!((reason.isa, reason.code), (Isa::Vmx, 2) | (Isa::Svm, 0x7f))
}

/// Whether exits for `reason` are about the guest's memory: EPT_VIOLATION, NPF. An EPT_MISCONFIG is an access to a device, which KVM
/// emulates each time (`handle_ept_misconfig` in arch/x86/kvm/vmx/vmx.c, Linux 6.12).
fn is_of_memory(reason: Reason) -> bool {
    matches!((reason.isa, reason.code), (Isa::Vmx, 48) | (Isa::Svm, 0x400))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NPF: Reason = Reason { isa: Isa::Svm, code: 0x400 };

    fn repeated(faults: &Faults) -> Vec<(u64, Option<u64>)> {
        let of = faults.all().filter(|(_, fault, _)| *fault == Fault::Repeated);
        of.map(|(_, _, seen)| (seen.count, seen.address)).collect()
    }

    #[test]
    fn an_instruction_that_stops_at_one_address_again_and_again_makes_no_progress() {
        let mut faults = Faults::default();
        for turn in 0..10 {
            faults.memory_exit(0, NPF, Some(0x1000), turn);
            faults.page_fault(0, 0xfee0_0000, turn);
        }
        assert_eq!(repeated(&faults), [(10, Some(0xfee0_0000))]);
    }

    #[test]
    fn a_triple_fault_is_told_with_its_first_instruction() {
        let mut faults = Faults::default();
        for (turn, rip) in [0x1000, 0x2000].into_iter().enumerate() {
            faults.exit(0, Reason { isa: Isa::Vmx, code: 2 }, Some(rip), turn as u64);
        }
        let all: Vec<_> = faults.all().map(|(_, fault, seen)| (fault, seen.count, seen.rip)).collect();
        assert_eq!(all, [(Fault::TripleFault, 2, Some(0x1000))]);
    }

    #[test]
    fn a_pointer_of_the_kernel_is_no_address_of_a_guest() {
        let mut faults = Faults::default();
        for turn in 0..100 {
            faults.memory_exit(0, NPF, Some(0x1000), turn);
            faults.page_fault(0, 0xffff_88d9_8d01_38a0, turn);
        }
        assert_eq!(repeated(&faults), []);
    }

    #[test]
    fn an_access_to_a_device_and_an_exit_elsewhere_are_progress() {
        let mut faults = Faults::default();
        for turn in 0..100 {
            faults.memory_exit(0, NPF, Some(0x1000), turn);
            faults.page_fault(0, 0xfebf_7000, turn);
            faults.progress(0);
            faults.memory_exit(1, NPF, Some(0x1000), turn);
            faults.page_fault(1, 0xfebf_7000, turn);
            faults.other_exit(1, Some(0x2000));
        }
        assert_eq!(repeated(&faults), []);
        for turn in 0..10 {
            faults.memory_exit(2, NPF, Some(0x1000), turn);
            faults.page_fault(2, 0x5000, turn);
            faults.other_exit(2, Some(0x1000));
        }
        assert_eq!(repeated(&faults), [(10, Some(0x5000))], "an interrupt before the instruction is none");
    }

    #[test]
    fn an_instruction_that_goes_through_memory_does() {
        let mut faults = Faults::default();
        for turn in 0..100 {
            faults.memory_exit(0, NPF, Some(0x1000), turn);
            faults.page_fault(0, 0x1000 * turn, turn);
        }
        for turn in 0..100 {
            faults.memory_exit(1, NPF, Some(0x1000 + turn), turn);
            faults.page_fault(1, 0x5000, turn);
        }
        // Without addresses nothing is known.
        (0..100).for_each(|turn| faults.memory_exit(2, NPF, Some(0x1000), turn));
        assert_eq!(repeated(&faults), []);
    }
}
