//! How does Linux run on KVM without QEMU? In a PC that has nothing but what KVM itself emulates, and a serial line.
//!
//! ```text
//! kernel, initramfs --> memory, page tables, registers: boot.rs --> KVM_RUN --port 0x3f8--> lines, to whoever listens
//!                       store: memory that the guest writes as if it were a disk ------------> what it leaves behind
//! ```
//! No firmware runs, no ACPI, no PCI: under an emulator of some ten million instructions a second each exit and each
//! device that a kernel looks for is time. The guest is done when whoever listens to it says so.
//! Sources: Documentation/arch/x86/boot.rst, "64-bit Boot Protocol"; Documentation/virt/kvm/api.rst (Linux 6.12).

mod boot;
mod limit;
mod serial;

pub(crate) use boot::{STORE, STORE_BYTES, STORE_DEVICE};

use kvm_bindings::{CpuId, kvm_userspace_memory_region};
use kvm_bindings::{KVM_MAX_CPUID_ENTRIES, KVM_PIT_SPEAKER_DUMMY, Msrs, kvm_msr_entry, kvm_pit_config};
use kvm_ioctls::{Kvm, VcpuExit, VcpuFd, VmFd};
use lab::Error;
use lab::guest::memory::Memory;
use serial::Serial;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

pub(crate) struct Pc<'a> {
    /// The kernel as it lies in memory, see [`super::vmlinux`].
    pub kernel: &'a [u8],
    /// What it unpacks as its root.
    pub initramfs: &'a [u8],
    pub arguments: &'a str,
    pub memory_bytes: u64,
    /// How long it may run at most, if that is limited.
    pub limit: Option<Duration>,
}

/// What a guest left in its store.
pub(crate) struct Stored(Memory);

impl Stored {
    /// Its bytes up to the last that is not zero, and some zeros.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        const STEP: usize = 4096;
        let mut step = [0; STEP];
        let mut used = STORE_BYTES as usize;
        while used > 0 {
            self.0.copy(STORE as usize + used - STEP, &mut step);
            if step != [0; STEP] {
                break;
            }
            used -= STEP;
        }
        let mut bytes = vec![0; used];
        self.0.copy(STORE as usize, &mut bytes);
        bytes
    }
}

impl Pc<'_> {
    /// Runs the machine until `hear`, who gets the lines of its console, has heard enough, or until the limit.
    ///
    /// # Errors
    /// If KVM refuses, or if the machine stops or resets by itself.
    pub(crate) fn run(&self, hear: &mut dyn FnMut(&str) -> ControlFlow<()>) -> Result<Stored, Error> {
        let kvm = Kvm::new().map_err(|error| refused("opening /dev/kvm", error))?;
        // Dropped after the VM: KVM uses it as long as that lives.
        let mut memory = Memory::new(self.memory_bytes as usize)?;
        let vm = kvm.create_vm().map_err(|error| refused("creating a VM", error))?;
        // Pages that KVM wants to have to itself on Intel's CPUs, outside our memory.
        let set_aside = vm.set_tss_address(0xfffb_d000).and_then(|()| vm.set_identity_map_address(0xfffb_c000));
        set_aside.map_err(|error| refused("setting pages aside", error))?;
        vm.create_irq_chip().map_err(|error| refused("making interrupt controllers", error))?;
        let timer = kvm_pit_config { flags: KVM_PIT_SPEAKER_DUMMY, ..Default::default() };
        vm.create_pit2(timer).map_err(|error| refused("making a timer", error))?;
        let region = kvm_userspace_memory_region {
            memory_size: self.memory_bytes,
            userspace_addr: memory.address(),
            ..Default::default()
        };
        // SAFETY: the region is the whole mapping, and `vm` is dropped before `memory`.
        unsafe { vm.set_user_memory_region(region) }.map_err(|error| refused("giving the VM memory", error))?;
        boot::load(self, &mut memory)?;
        let mut vcpu = vm.create_vcpu(0).map_err(|error| refused("creating a vCPU", error))?;
        set_up(&kvm, &vcpu)?;
        limit::within(self.limit, |over| run(&vm, &mut vcpu, hear, over))?;
        drop((vcpu, vm));
        Ok(Stored(memory))
    }
}

/// What firmware would have set; the timer by which Linux does not need to measure another, and that this is a guest, so
/// that it takes its clock from KVM.
fn set_up(kvm: &Kvm, vcpu: &VcpuFd) -> Result<(), Error> {
    const TSC_DEADLINE: u32 = 1 << 24;
    const HYPERVISOR: u32 = 1 << 31;
    const APIC_ID: u32 = 0xff << 24;
    let supported = kvm.get_supported_cpuid(KVM_MAX_CPUID_ENTRIES);
    let mut cpuid: CpuId = supported.map_err(|error| refused("asking for CPUID", error))?;
    for entry in cpuid.as_mut_slice().iter_mut().filter(|entry| entry.function == 1) {
        entry.ecx |= TSC_DEADLINE | HYPERVISOR;
        entry.ebx &= !APIC_ID;
    }
    vcpu.set_cpuid2(&cpuid).map_err(|error| refused("setting CPUID", error))?;
    // IA32_MISC_ENABLE: fast strings; IA32_MTRR_DEF_TYPE: all memory is write-back.
    let msrs = [(0x1a0, 1), (0x2ff, 0xc06)];
    let msrs = msrs.map(|(index, data)| kvm_msr_entry { index, data, ..Default::default() });
    let msrs =
        Msrs::from_entries(&msrs).map_err(|_| Error::Absent("KVM does not accept two MSRs at once".to_owned()))?;
    vcpu.set_msrs(&msrs).map_err(|error| refused("setting MSRs", error))?;
    boot::start(vcpu)
}

/// Carries out what the guest does with ports until `hear` has heard enough, or time is `over`.
fn run(
    vm: &VmFd,
    vcpu: &mut VcpuFd,
    hear: &mut dyn FnMut(&str) -> ControlFlow<()>,
    over: &AtomicBool,
) -> Result<(), Error> {
    /// The clock's registers: zeros are a time, all ones would be one that never becomes valid.
    const CLOCK: u16 = 0x71;
    /// Writing it asks the keyboard's controller for a reset.
    const RESET: (u16, &[u8]) = (0x64, &[0xfe]);
    let (mut serial, mut line, mut raised) = (Serial::default(), Vec::new(), false);
    while !over.load(Ordering::Relaxed) {
        match vcpu.run() {
            Ok(VcpuExit::IoOut(port, data)) if serial::PORTS.contains(&port) => {
                for byte in data.iter().filter_map(|value| serial.write(port - serial::PORTS.start, *value)) {
                    if byte != b'\n' {
                        line.push(byte);
                    } else if hear(String::from_utf8_lossy(&std::mem::take(&mut line)).trim_end()).is_break() {
                        return Ok(());
                    }
                }
            }
            Ok(VcpuExit::IoIn(port, data)) if serial::PORTS.contains(&port) => {
                data.iter_mut().for_each(|value| *value = serial.read(port - serial::PORTS.start));
            }
            Ok(VcpuExit::IoOut(port, data)) if (port, data) == RESET => return Err(ended("reset itself")),
            Ok(VcpuExit::IoIn(CLOCK, data)) => data.fill(0),
            Ok(VcpuExit::IoIn(_, data) | VcpuExit::MmioRead(_, data)) => data.fill(0xff),
            Ok(VcpuExit::IoOut(..) | VcpuExit::MmioWrite(..)) => {}
            Ok(VcpuExit::Shutdown) => return Err(ended("shut down by a triple fault")),
            Ok(other) => return Err(ended(&format!("left to its VMM with {other:?}"))),
            Err(error) if [libc::EINTR, libc::EAGAIN].contains(&error.errno()) => {}
            Err(error) => return Err(refused("running a vCPU", error)),
        }
        if raised != serial.interrupts() {
            raised = serial.interrupts();
            vm.set_irq_line(serial::IRQ, raised).map_err(|error| refused("raising an interrupt", error))?;
        }
    }
    Ok(())
}

fn ended(how: &str) -> Error {
    Error::Died(format!("the guest {how}"))
}

fn refused(doing: &str, error: kvm_ioctls::Error) -> Error {
    Error::refused(format_args!("KVM refuses {doing}"), error)
}
