//! What test guests run: loops of a few bytes of real-mode code, one for each way of leaving a guest.
//!
//! ```text
//! 0x01000  the code: mov esi, rounds; again: BODY; dec esi; jnz again; out END_PORT, al
//! 0x10000  pages that nobody has touched
//! 0xa0000  nothing: what lies there is the device of the MMIO programs (es points to it)
//! ```
//! Encodings: Intel SDM volume 2; the prefix 0x66 makes an operand 32 bits wide, 0x26 takes segment es, 0x64 fs.

use super::seen::Exit;

pub const CODE: u64 = 0x1000;

/// How much memory a guest has; the MMIO programs' device lies right above the most that real mode's PC leaves for RAM.
pub const MEMORY_BYTES: usize = 0x9_0000;

/// Where the device of the MMIO programs lies.
pub const DEVICE: u64 = 0xa_0000;

/// A write to this port ends a program; QEMU's `isa-debug-exit` has the same one by custom.
pub const END_PORT: u16 = 0xf4;

/// The port of the port programs, the one that POST codes go to; here no machine is behind it.
const PORT: u8 = 0x80;

/// A loop for a test guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Program {
    pub name: &'static str,
    pub does: &'static str,
    /// The loop's body; it must leave esi alone.
    pub body: &'static [u8],
    /// The exit that userspace should see once a round, if any.
    pub exit: Option<Exit>,
}

/// All programs, in the order in which they run.
pub const PROGRAMS: &[Program] = &[
    Program { name: "empty", does: "counts down", body: &[0x90], exit: None },
    Program { name: "cpuid", does: "executes CPUID", body: &[0x66, 0x31, 0xc0, 0x0f, 0xa2], exit: None },
    Program { name: "rdmsr", does: "reads the TSC's MSR", body: &[0x66, 0xb9, 0x10, 0, 0, 0, 0x0f, 0x32], exit: None },
    Program { name: "port-out", does: "writes a port", body: &[0xe6, PORT], exit: Some(Exit::PortWrite) },
    Program { name: "port-in", does: "reads a port", body: &[0xe4, PORT], exit: Some(Exit::PortRead) },
    Program { name: "mmio-write", does: "writes a device", body: &[0x26, 0xa2, 0, 0], exit: Some(Exit::MmioWrite) },
    Program { name: "mmio-read", does: "reads a device", body: &[0x26, 0xa0, 0, 0], exit: Some(Exit::MmioRead) },
    Program { name: "hlt", does: "halts", body: &[0xf4], exit: Some(Exit::Halt) },
    Program {
        name: "touch",
        does: "touches pages; its first 64 rounds touch new pages",
        // add ax, 0x100; and ah, 0x7f; or ah, 0x10; mov fs, ax; mov fs:[0], al
        body: &[0x05, 0, 1, 0x80, 0xe4, 0x7f, 0x80, 0xcc, 0x10, 0x8e, 0xe0, 0x64, 0xa2, 0, 0],
        exit: None,
    },
    // Last, because a KVM without VMX and SVM (kvm_pvm, Linux 6.18) hangs in it until the watchdog comes.
    Program { name: "hypercall", does: "calls KVM", body: &[0x66, 0xb8, 0xff, 0, 0, 0, 0x0f, 0x01, 0xc1], exit: None },
];

/// A program that never ends: it takes the host's interrupts, and the watchdog must stop it.
pub const SPIN: Program = Program { name: "spin", does: "never ends", body: &[0xeb, 0xfe], exit: None };

pub fn named(name: &str) -> Option<&'static Program> {
    PROGRAMS.iter().find(|program| program.name == name)
}

impl Program {
    /// Code that runs the body `rounds` times (once if 0) and ends.
    pub fn code(&self, rounds: u32) -> Vec<u8> {
        let mut code = vec![0x66, 0xbe]; // mov esi, rounds
        code.extend(rounds.max(1).to_le_bytes());
        code.extend(self.body);
        code.extend([0x66, 0x4e]); // dec esi
        let back = self.body.len() as u8 + 2 + 2;
        code.extend([0x75, back.wrapping_neg()]); // jnz: relative to the instruction after it
        code.extend([0xe6, END_PORT as u8, 0xf4]); // out, and halt should somebody run on
        code
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loop_jumps_back_to_its_body() {
        for program in PROGRAMS {
            let code = program.code(7);
            assert_eq!(code[2..6], [7, 0, 0, 0], "{}", program.name);
            assert_eq!(&code[6..6 + program.body.len()], program.body);
            let after_jump = code.len() - 3;
            let target = after_jump as i64 + i64::from(code[after_jump - 1] as i8);
            assert_eq!((code[after_jump - 2], target), (0x75, 6), "{}", program.name);
        }
    }

    #[test]
    fn names_are_unique() {
        assert!(PROGRAMS.iter().all(|program| named(program.name) == Some(program)));
    }
}
