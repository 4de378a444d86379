//! A VMM that runs a toy hypervisor: memory, vCPUs in long mode, and a loop that answers port writes.
//!
//! Each vCPU is a thread of its own, runs its own L2, and is done when L1 halts.

use super::memory::Memory;
use super::{L1_CODE, L1_STACK, L2_CODE, PAGE_TABLES, ROUNDS, Truth, l2_code};
use crate::nested::settings::{Settings, Workload};
use kvm_bindings::{KVM_MAX_CPUID_ENTRIES, Msrs, kvm_msr_entry, kvm_regs, kvm_segment, kvm_userspace_memory_region};
use kvm_ioctls::{Kvm, VcpuExit, VcpuFd, VmFd};
use lab::Error;
use std::thread::ScopedJoinHandle;

/// Paging, write protection, numeric errors, and what VMX wants to be 1 (PG, NE, ET, MP, PE, WP, AM).
pub(crate) const CR0: u64 = 0x8005_0033;

/// Registers in which L1 finds what is its own.
pub(super) struct Start {
    pub(crate) r12: u64,
    pub(crate) r13: u64,
    pub(crate) r14: u64,
}

pub(super) trait Hypervisor {
    /// Bytes from one vCPU's control block to the next one's.
    const STRIDE: u64;
    /// Registers of the machine that its firmware would have set.
    const MSRS: &'static [(u32, u64)] = &[];
    fn code() -> &'static [u8];
    /// Writes the control block of a vCPU's L2.
    fn prepare(memory: &mut Memory, vcpu: u64, settings: &Settings) -> Start;
    /// The reason with which L1 gets L2's exit.
    fn reflected(workload: Workload) -> &'static str;
    /// The exit of L2 that L0 keeps.
    fn kept(workload: Workload) -> Option<&'static str>;
    /// L1's exits from an exit of L2 to its re-entry.
    fn chain(settings: &Settings) -> Vec<&'static str>;
}

/// Runs the guests to their end.
pub(super) fn run<H: Hypervisor>(settings: &Settings) -> Result<Truth, Error> {
    let kvm = Kvm::new().map_err(|error| refused("opening /dev/kvm", error))?;
    // Dropped after the VM: KVM uses it as long as that lives.
    let mut memory = Memory::new()?;
    let vm = kvm.create_vm().map_err(|error| refused("creating a VM", error))?;
    let region = kvm_userspace_memory_region {
        memory_size: Memory::BYTES as u64,
        userspace_addr: memory.host_address(),
        ..Default::default()
    };
    // Pages that KVM wants to have to itself on Intel's CPUs, outside our memory.
    let set_aside = vm.set_tss_address(0xfffb_d000).and_then(|()| vm.set_identity_map_address(0xfffb_c000));
    set_aside.map_err(|error| refused("setting pages aside", error))?;
    // SAFETY: the region is the whole mapping, and `vm` is dropped before `memory`.
    unsafe { vm.set_user_memory_region(region) }.map_err(|error| refused("giving the VM memory", error))?;
    fill(&mut memory, H::code(), settings);
    let mut vcpus = Vec::new();
    for index in 0..u64::from(settings.cpus) {
        let start = H::prepare(&mut memory, index, settings);
        vcpus.push(vcpu::<H>(&kvm, &vm, index, &start)?);
    }
    let ended: Vec<Result<(), Error>> = std::thread::scope(|scope| {
        // All of one name: threads of one name are one VM to whoever reads the trace.
        let spawn = |vcpu| std::thread::Builder::new().name("toy".to_owned()).spawn_scoped(scope, || to_its_end(vcpu));
        let threads: Vec<_> = vcpus.iter_mut().map(spawn).collect();
        let died = || Error::Died("a vCPU's thread died".to_owned());
        let end = |thread: std::io::Result<ScopedJoinHandle<'_, _>>| {
            let thread = thread.map_err(|error| Error::refused("no thread for a vCPU", error))?;
            thread.join().unwrap_or_else(|_| Err(died()))
        };
        threads.into_iter().map(end).collect()
    });
    ended.into_iter().collect::<Result<(), Error>>()?;
    for index in 0..u64::from(settings.cpus) {
        let left = memory.read_u64(ROUNDS + index * 8);
        if left != 0 {
            let sentence = format!("L1 of vCPU {index} halted with {left} of {} rounds to do", settings.loops);
            return Err(Error::Died(sentence));
        }
    }
    Ok(Truth {
        l1_code: (L1_CODE, L1_CODE + H::code().len() as u64),
        l2_code: (L2_CODE.start, L2_CODE.end),
        rounds: settings.loops,
        vcpus: settings.cpus,
        reflected: H::reflected(settings.workload).to_owned(),
        chain: H::chain(settings).into_iter().map(str::to_owned).collect(),
        kept: H::kept(settings.workload).map(str::to_owned),
    })
}

/// Page tables, code and counters.
fn fill(memory: &mut Memory, l1_code: &[u8], settings: &Settings) {
    const PRESENT_WRITABLE_USER: u64 = 0x7;
    const LARGE: u64 = 0x80;
    memory.write_u64(PAGE_TABLES, (PAGE_TABLES + 0x1000) | PRESENT_WRITABLE_USER);
    memory.write_u64(PAGE_TABLES + 0x1000, (PAGE_TABLES + 0x2000) | PRESENT_WRITABLE_USER);
    for (index, address) in (0..Memory::BYTES as u64).step_by(2 << 20).enumerate() {
        memory.write_u64(PAGE_TABLES + 0x2000 + 8 * index as u64, address | LARGE | PRESENT_WRITABLE_USER);
    }
    memory.write(L1_CODE, l1_code);
    memory.write(L2_CODE.start, &l2_code(settings.workload));
    for index in 0..u64::from(settings.cpus) {
        memory.write_u64(ROUNDS + index * 8, u64::from(settings.loops));
    }
}

fn vcpu<H: Hypervisor>(kvm: &Kvm, vm: &VmFd, index: u64, start: &Start) -> Result<VcpuFd, Error> {
    let vcpu = vm.create_vcpu(index).map_err(|error| refused("creating a vCPU", error))?;
    let cpuid = kvm.get_supported_cpuid(KVM_MAX_CPUID_ENTRIES).map_err(|error| refused("asking for CPUID", error))?;
    vcpu.set_cpuid2(&cpuid).map_err(|error| refused("setting CPUID", error))?;
    let entry = |(index, data): &(u32, u64)| kvm_msr_entry { index: *index, data: *data, ..Default::default() };
    let entries: Vec<_> = H::MSRS.iter().map(entry).collect();
    let no_room = |_| Error::Absent("the toy sets more MSRs than KVM accepts at once".to_owned());
    let set = vcpu.set_msrs(&Msrs::from_entries(&entries).map_err(no_room)?);
    if set.map_err(|error| refused("setting MSRs", error))? < entries.len() {
        return Err(Error::Absent(
            "KVM of L0 does not offer VMX to its guest: is kvm_intel loaded with nested=1?".to_owned(),
        ));
    }
    let mut special = vcpu.get_sregs().map_err(|error| refused("reading registers", error))?;
    let flat = kvm_segment { limit: u32::MAX, present: 1, s: 1, g: 1, ..Default::default() };
    special.cs = kvm_segment { selector: 0x08, type_: 11, l: 1, ..flat };
    let data = kvm_segment { selector: 0x10, type_: 3, db: 1, ..flat };
    (special.ds, special.es, special.fs, special.gs, special.ss) = (data, data, data, data, data);
    special.tr = kvm_segment { selector: 0x18, type_: 11, present: 1, limit: 0x67, base: 0x5000, ..Default::default() };
    special.cr0 = CR0;
    special.cr3 = PAGE_TABLES;
    special.cr4 = 0x20; // PAE
    special.efer = 0x500; // LME, LMA
    vcpu.set_sregs(&special).map_err(|error| refused("setting registers", error))?;
    let general = kvm_regs {
        rip: L1_CODE,
        rsp: L1_STACK - index * 0x1000,
        rflags: 2,
        r12: start.r12,
        r13: start.r13,
        r14: start.r14,
        ..Default::default()
    };
    vcpu.set_regs(&general).map_err(|error| refused("setting registers", error))?;
    Ok(vcpu)
}

/// Runs a vCPU until L1 halts; port writes are taken and forgotten.
fn to_its_end(vcpu: &mut VcpuFd) -> Result<(), Error> {
    loop {
        match vcpu.run() {
            Ok(VcpuExit::Hlt) => return Ok(()),
            Ok(VcpuExit::IoOut(..)) => {}
            Ok(other) => {
                return Err(Error::Died(format!("L1 exited to its VMM with {other:?}, which must not happen")));
            }
            Err(error) if error.errno() == rustix::io::Errno::INTR.raw_os_error() => {}
            Err(error) => return Err(refused("running a vCPU", error)),
        }
    }
}

fn refused(doing: &str, error: kvm_ioctls::Error) -> Error {
    Error::refused(format_args!("KVM of L0 refuses {doing}"), error)
}
