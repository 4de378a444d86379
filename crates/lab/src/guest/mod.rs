//! Which exits does a guest on this host have, and who sees them?
//!
//! In: `/dev/kvm`. Out: what userspace saw of guests of ours, a few bytes of real-mode code each, without QEMU and
//! without an image. `record` runs them to learn which trace events fire here; a bench can time them.
//!
//! ```text
//! Program --code--> Memory --KVM_SET_USER_MEMORY_REGION--> VM --KVM_RUN under a watchdog--> Outcome
//! ```
//! Not every host can run all of them: one without VMX or SVM (`kvm_pvm`) interprets real mode in KVM's emulator, which
//! hangs in hypercalls. What does not run is part of the outcome, not an error.
//! Source: Documentation/virt/kvm/api.rst (Linux 6.12), sections 4.1 to 4.10 and 5 (`kvm_run`).

pub mod memory;
pub mod programs;
mod run;
mod seen;
pub mod tables;
pub mod watchdog;

pub use programs::Program;
pub use seen::{Ended, Exit, Outcome, Ran};

use crate::Error;
use kvm_bindings::{KVM_API_VERSION, kvm_regs, kvm_userspace_memory_region};
use kvm_ioctls::{Kvm, VcpuFd, VmFd};
use memory::Memory;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

/// How long a program of the self-check may take to begin, and for each round. The slowest seen took 0.2 ms a round.
const LIMIT: Duration = Duration::from_millis(200);
const LIMIT_PER_ROUND: Duration = Duration::from_millis(2);

/// A virtual machine with one vCPU in real mode and a little memory.
pub struct Guest {
    // Fields are dropped in this order: memory last, when KVM no longer uses it.
    vcpu: VcpuFd,
    vm: VmFd,
    memory: Memory,
}

/// Opens KVM's device, `/dev/kvm`.
///
/// # Errors
/// If it is not there or may not be opened, or if its API is not the stable one; the sentence says what helps.
pub fn open(device: &Path) -> Result<Kvm, Error> {
    let path = CString::new(device.as_os_str().as_bytes());
    let path = path.map_err(|_| Error::Malformed(format!("{}: a path cannot contain a NUL byte", device.display())))?;
    let kvm = Kvm::new_with_path(&path).map_err(|error| {
        let device = device.display();
        match error.errno() {
            libc::ENOENT => Error::Absent(format!(
                "{device} does not exist: load kvm_intel or kvm_amd; inside a guest, the owner of the host must allow nested virtualization"
            )),
            libc::EACCES | libc::EPERM => {
                Error::Denied(format!("no permission to open {device}: run as root, or join the group `kvm`"))
            }
            _ => Error::refused(device, error),
        }
    })?;
    match kvm.get_api_version() {
        version if version == KVM_API_VERSION as i32 => Ok(kvm),
        version => Err(Error::Absent(format!("{} has version {version} of KVM's API, not 12", device.display()))),
    }
}

impl Guest {
    /// Makes a guest whose vCPU will begin at [`programs::CODE`].
    ///
    /// # Errors
    /// If KVM refuses; the sentence names the step.
    pub fn new(kvm: &Kvm) -> Result<Self, Error> {
        let step = |what: &'static str| move |error| Error::refused(format_args!("KVM refused to {what}"), error);
        let vm = kvm.create_vm().map_err(step("make a VM"))?;
        let memory = Memory::new(programs::MEMORY_BYTES)?;
        let region = kvm_userspace_memory_region {
            memory_size: memory.bytes() as u64,
            userspace_addr: memory.address(),
            ..Default::default()
        };
        // SAFETY: the region is exactly the mapping, which outlives VM and vCPU: see the order of the fields, and
        // `run`.
        unsafe { vm.set_user_memory_region(region) }.map_err(step("take guest memory"))?;
        let vcpu = vm.create_vcpu(0).map_err(step("make a vCPU"))?;
        let mut registers = vcpu.get_sregs().map_err(step("tell segment registers"))?;
        (registers.cs.base, registers.cs.selector) = (0, 0);
        (registers.es.base, registers.es.selector) = (programs::DEVICE, (programs::DEVICE >> 4) as u16);
        vcpu.set_sregs(&registers).map_err(step("set segment registers"))?;
        // Bit 1 of the flags is always set: Intel SDM volume 1, 3.4.3.
        let start = kvm_regs { rip: programs::CODE, rflags: 2, ..Default::default() };
        vcpu.set_regs(&start).map_err(step("set registers"))?;
        Ok(Self { vcpu, vm, memory })
    }

    /// Runs `program` for `rounds`, at most `limit` long.
    ///
    /// # Errors
    /// If the run could not be begun. A program that this host cannot run is an [`Outcome`].
    pub fn run(mut self, program: &Program, rounds: u32, limit: Duration) -> Result<Outcome, Error> {
        self.memory.load(programs::CODE as usize, &program.code(rounds))?;
        let seen = run::run(self.vcpu, (self.vm, self.memory), limit)?;
        Ok(Outcome { program: program.name, rounds, exits: seen.exits, ended: seen.ended })
    }
}

/// Runs every program, each in a guest of its own, and says what userspace saw.
///
/// # Errors
/// If there is no KVM, or if it makes no guest.
pub fn self_check(device: &Path, rounds: u32) -> Result<Ran, Error> {
    let kvm = open(device)?;
    let limit = LIMIT + LIMIT_PER_ROUND * rounds;
    let mut ran = Ran::default();
    for program in programs::PROGRAMS {
        ran.outcomes.push(Guest::new(&kvm)?.run(program, rounds, limit)?);
    }
    Ok(ran)
}
