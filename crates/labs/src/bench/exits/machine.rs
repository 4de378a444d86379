//! A guest that runs the payload: memory, one vCPU in long mode, doorbells, counters.
//!
//! ```text
//! Machine::new --> go(Turn) --KVM_RUN .. answer ports and devices .. KVM_RUN--> Went: what userspace saw, what KVM counted
//!                  go(Turn)     again, in the same guest
//! ```

use super::catalogue::{DOORBELL_DATAMATCH, DOORBELL_WILDCARD};
use super::layout::{
    self, COALESCED, DEVICE_DATAMATCH, DEVICE_WILDCARD, END_PORT, ERROR_PORT, EXCEPTION_PORT, NEW_BYTES, REASON_PORT,
};
use super::partner::Partner;
use super::test::Test;
use super::{nesting, payload};
use crate::bench::stats::{Counted, Stats, growth};
use kvm_bindings::{
    CpuId, KVM_MAX_CPUID_ENTRIES, KVM_MP_STATE_RUNNABLE, KVM_VCPU_TSC_CTRL, KVM_VCPU_TSC_OFFSET, Msrs, kvm_device_attr,
    kvm_mp_state, kvm_msr_entry, kvm_regs, kvm_userspace_memory_region,
};
use kvm_ioctls::{Cap, IoEventAddress, Kvm, NoDatamatch, VcpuExit, VcpuFd, VmFd};
use lab::Error;
use lab::guest::memory::Memory;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use vmm_sys_util::eventfd::EventFd;

/// A guest, ready to run.
pub(crate) struct Machine {
    // Fields are dropped in this order: memory last, when KVM no longer uses it.
    partner: Option<Partner>,
    vcpu: VcpuFd,
    stats: Option<Stats>,
    l1: Option<u64>,
    _vm: VmFd,
    _doorbells: Vec<EventFd>,
    memory: Memory,
    _new_pages: Memory,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Turn {
    pub entry: u64,
    pub body: u64,
    pub samples: u64,
    pub operations: u64,
    /// Registers of the body.
    pub(crate) r15: u64,
    /// See `r15`.
    pub rbx: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Went {
    /// By how much KVM's counters grew; `None` where the kernel has none.
    pub counted: Option<Counted>,
    /// How often KVM came back to this program, the end of the run left out.
    pub userspace: u64,
}

/// Why a turn did not end as it should.
#[derive(Debug)]
pub(crate) enum Stop {
    Stuck,
    /// The guest, KVM or the CPU would not go on; the sentence says why.
    Failed(String),
}

impl Machine {
    /// Makes a guest for `test`; `other_cpu` is where its second vCPU runs, if it needs one.
    ///
    /// # Errors
    /// If KVM refuses; the sentence names the step.
    pub(crate) fn new(kvm: &Kvm, test: &Test, other_cpu: Option<u32>) -> Result<Self, Error> {
        let step = |what: &'static str| move |error| Error::refused(format_args!("KVM refused to {what}"), error);
        let vm = kvm.create_vm().map_err(step("make a VM"))?;
        let mut memory = Memory::new(layout::MEMORY_BYTES)?;
        let new_pages = Memory::new(NEW_BYTES)?;
        new_pages.large_pages(test.takes_bytes >= LARGE_PAGE)?;
        memory.stay();
        layout::fill(&mut memory)?;
        for (slot, (at, memory)) in (0..).zip([(0, &memory), (layout::NEW_PAGES, &new_pages)]) {
            let region = kvm_userspace_memory_region {
                slot,
                guest_phys_addr: at,
                memory_size: memory.bytes() as u64,
                userspace_addr: memory.address(),
                ..Default::default()
            };
            // SAFETY: each region is exactly its mapping, which outlives VM and vCPU: see the order of the fields.
            unsafe { vm.set_user_memory_region(region) }.map_err(step("take guest memory"))?;
        }
        // Pages that KVM wants to have to itself on Intel's CPUs, outside our memory.
        let set_aside = vm.set_tss_address(0xfffb_d000).and_then(|()| vm.set_identity_map_address(0xfffb_c000));
        set_aside.map_err(step("set pages aside"))?;
        vm.create_irq_chip().map_err(step("make an interrupt controller"))?;
        let doorbells = doorbells(&vm)?;
        let (mut vcpu, l1) = vcpu(kvm, &vm, 0, test, &mut memory)?;
        vcpu.map_coalesced_mmio_ring().map_err(step("show its ring of collected writes"))?;
        vm.register_coalesced_mmio(IoEventAddress::Mmio(COALESCED), 0x1000).map_err(step("collect writes"))?;
        let partner = test.partner.map(|code| {
            let cpu = other_cpu
                .ok_or_else(|| Error::Absent("two vCPUs need two CPUs, and this machine has one".to_owned()))?;
            let (second, _) = self::vcpu(kvm, &vm, 1, test, &mut memory)?;
            let start = kvm_regs { rip: code(), rsp: layout::SECOND_STACK, rflags: 2, ..Default::default() };
            second.set_regs(&start).map_err(step("set registers"))?;
            // A second vCPU would wait for the first to start it, as computers do.
            let runnable = kvm_mp_state { mp_state: KVM_MP_STATE_RUNNABLE };
            second.set_mp_state(runnable).map_err(step("start a second vCPU"))?;
            Partner::start(second, cpu)
        });
        let stats = Stats::of(&vcpu).ok();
        let partner = partner.transpose()?;
        Ok(Self { partner, vcpu, stats, l1, _vm: vm, _doorbells: doorbells, memory, _new_pages: new_pages })
    }

    /// Where the hypervisor inside the guest begins, which must have run before the test can.
    pub(crate) fn l1(&self) -> Option<u64> {
        self.l1
    }

    /// Lets the guest do `turn`.
    ///
    /// # Errors
    /// If it does not come to its end.
    pub(crate) fn go(&mut self, turn: &Turn, stop: &AtomicBool) -> Result<Went, Stop> {
        let failed = |what: &'static str| move |error| Stop::Failed(format!("KVM refused to {what}: {error}"));
        let registers = kvm_regs {
            rip: turn.entry,
            rbp: turn.body,
            rsp: layout::STACK,
            // Bit 1 is always set; IOPL 3 lets ring 3 use ports (Intel SDM volume 1, 3.4.3 and 19.5.1).
            rflags: 0x3002,
            r12: turn.samples,
            r13: turn.operations,
            r14: layout::SAMPLES,
            r15: turn.r15,
            rbx: turn.rbx,
            rdi: payload::back(),
            r9: payload::end_guest(),
            ..Default::default()
        };
        self.vcpu.set_regs(&registers).map_err(failed("set registers"))?;
        let partner_before = self.partner.as_ref().and_then(Partner::counted);
        let before = self.stats.as_ref().and_then(|stats| stats.read().ok());
        let userspace = self.until_end(stop)?;
        let after = self.stats.as_ref().and_then(|stats| stats.read().ok());
        let mut counted = before.zip(after).map(|(before, after)| growth(&before, &after));
        let partner_after = self.partner.as_ref().and_then(Partner::counted);
        if let (Some(counted), Some((before, after))) = (&mut counted, partner_before.zip(partner_after)) {
            let exits = growth(&before, &after).remove("exits").unwrap_or(0);
            counted.insert("partner_exits".to_owned(), exits);
        }
        Ok(Went { counted, userspace })
    }

    /// Has the guest's counter show what the host's does, where KVM can be told so (KVM_VCPU_TSC_OFFSET, Linux 5.16).
    pub(crate) fn read_counter_of_host(&self) {
        let offset: u64 = 0;
        let attribute = kvm_device_attr {
            group: KVM_VCPU_TSC_CTRL,
            attr: u64::from(KVM_VCPU_TSC_OFFSET),
            addr: &raw const offset as u64,
            ..Default::default()
        };
        // SAFETY: the kernel reads the attribute and the number that it points to, which both live until it returns. Where
        // it refuses, whoever reads the counter sees that it is another one.
        unsafe { libc::ioctl(self.vcpu.as_raw_fd(), SET_DEVICE_ATTR, &raw const attribute) };
    }

    /// The first `count` samples.
    pub(crate) fn samples(&self, count: u64) -> Vec<u64> {
        let mut bytes = vec![0; 8 * count.min(layout::MOST_SAMPLES) as usize];
        self.memory.copy(layout::SAMPLES as usize, &mut bytes);
        bytes.chunks_exact(8).map(|sample| u64::from_le_bytes(sample.try_into().unwrap_or_default())).collect()
    }

    /// How often the guest's interrupt handler ran so far.
    pub(crate) fn interrupts(&self) -> u64 {
        let mut word = [0; 8];
        self.memory.copy(layout::INTERRUPTS as usize, &mut word);
        u64::from_le_bytes(word)
    }

    /// Enters the guest again and again, and answers what it asks.
    fn until_end(&mut self, stop: &AtomicBool) -> Result<u64, Stop> {
        let mut userspace = 0;
        loop {
            if stop.load(Ordering::Relaxed) {
                return Err(Stop::Stuck);
            }
            let collected = match self.vcpu.run() {
                Ok(VcpuExit::IoOut(END_PORT, _)) => return Ok(userspace),
                Ok(VcpuExit::IoOut(EXCEPTION_PORT, data)) => return Err(Stop::Failed(exception(data))),
                Ok(VcpuExit::IoOut(REASON_PORT, data)) => {
                    let reason = data.first().copied().unwrap_or(0);
                    let what = "the hypervisor inside the guest received an unexpected exit of its own guest";
                    return Err(Stop::Failed(format!("{what}, reason {reason:#x}")));
                }
                Ok(VcpuExit::IoOut(ERROR_PORT, data)) => {
                    let error = data.first().copied().unwrap_or(0);
                    return Err(Stop::Failed(format!("a VMX instruction of the guest failed with error {error}")));
                }
                Ok(VcpuExit::IoIn(_, data) | VcpuExit::MmioRead(_, data)) => {
                    data.fill(0);
                    false
                }
                Ok(VcpuExit::IoOut(..)) => false,
                // A full ring of collected writes comes as the write that found no room.
                Ok(VcpuExit::MmioWrite(address, _)) => address >= COALESCED,
                Ok(VcpuExit::Intr) => continue,
                Ok(VcpuExit::InternalError) => {
                    return Err(Stop::Failed("KVM could not emulate an instruction (internal error)".to_owned()));
                }
                Ok(VcpuExit::Shutdown) => return Err(Stop::Failed("the guest had a triple fault".to_owned())),
                Ok(other) => return Err(Stop::Failed(format!("the guest exited with {other:?}"))),
                Err(error) if matches!(error.errno(), libc::EINTR | libc::EAGAIN) => continue,
                Err(error) => return Err(Stop::Failed(format!("KVM_RUN: {error}"))),
            };
            userspace += 1;
            if collected {
                while let Ok(Some(_)) = self.vcpu.coalesced_mmio_read() {}
            }
        }
    }
}

/// A vCPU in long mode, as `test` wants it, and where a hypervisor in it must begin first.
fn vcpu(kvm: &Kvm, vm: &VmFd, id: u64, test: &Test, memory: &mut Memory) -> Result<(VcpuFd, Option<u64>), Error> {
    let step = |what: &'static str| move |error| Error::refused(format_args!("KVM refused to {what}"), error);
    let vcpu = vm.create_vcpu(id).map_err(step("make a vCPU"))?;
    let mut cpuid = kvm.get_supported_cpuid(KVM_MAX_CPUID_ENTRIES).map_err(step("tell CPUID"))?;
    let features = features(kvm, &mut cpuid);
    vcpu.set_cpuid2(&cpuid).map_err(step("set CPUID"))?;
    let mut registers = vcpu.get_sregs().map_err(step("tell segment registers"))?;
    layout::long_mode(&mut registers, test.ring);
    if features & XSAVE != 0 {
        registers.cr4 |= CR4_OSXSAVE;
    }
    let extension = nesting::needed(test.at, &cpuid)?;
    if let Some(extension) = extension {
        extension.fill(memory, &mut registers)?;
    }
    vcpu.set_sregs(&registers).map_err(step("set segment registers"))?;
    if test.avx {
        allow_avx(&vcpu, features)?;
    }
    set_msrs(&vcpu, &layout::system_call_registers())?;
    if let Some(extension) = extension {
        set_msrs(&vcpu, &extension.registers())?;
    }
    if test.ring == 0 {
        set_msrs(&vcpu, &layout::interrupt_registers())?;
    }
    Ok((vcpu, extension.and_then(|extension| extension.begin(test.at))))
}

/// KVM_SET_DEVICE_ATTR, `_IOW(0xae, 0xe1, struct kvm_device_attr)` (include/uapi/linux/kvm.h, Linux 6.12).
const SET_DEVICE_ATTR: libc::Ioctl = 0x4018_aee1;

/// Pages of this size are large.
const LARGE_PAGE: u64 = 2 << 20;

/// Bits of ecx of leaf 1, and the control register's bit that the first one allows (Intel SDM volume 2, CPUID).
const XSAVE: u32 = 1 << 26;
const TSC_DEADLINE: u32 = 1 << 24;
const CR4_OSXSAVE: u64 = 1 << 18;
const AVX: u32 = 1 << 28;
/// XCR0's bits for x87, SSE and AVX (Intel SDM volume 1, 13.3).
const XCR0_AVX: u64 = 7;

/// Lets the guest use AVX.
fn allow_avx(vcpu: &VcpuFd, features: u32) -> Result<(), Error> {
    let no = |why: String| Error::Absent(format!("the guest cannot use AVX here: {why}"));
    if features & (XSAVE | AVX) != XSAVE | AVX {
        return Err(no("KVM does not offer it; it needs a processor with it".to_owned()));
    }
    let mut registers = vcpu.get_xcrs().map_err(|error| no(error.to_string()))?;
    registers.nr_xcrs = 1;
    registers.xcrs[0].xcr = 0;
    registers.xcrs[0].value |= XCR0_AVX;
    vcpu.set_xcrs(&registers).map_err(|error| no(error.to_string()))
}

/// Offers the deadline timer, which KVM has and older kernels do not list; gives what leaf 1 offers.
fn features(kvm: &Kvm, cpuid: &mut CpuId) -> u32 {
    let deadline = if kvm.check_extension(Cap::TscDeadlineTimer) { TSC_DEADLINE } else { 0 };
    let leaf = cpuid.as_mut_slice().iter_mut().find(|entry| entry.function == 1);
    leaf.map_or(0, |leaf| {
        leaf.ecx |= deadline;
        leaf.ecx
    })
}

fn set_msrs(vcpu: &VcpuFd, registers: &[(u32, u64)]) -> Result<(), Error> {
    let entries: Vec<_> = registers
        .iter()
        .map(|(index, data)| kvm_msr_entry { index: *index, data: *data, ..Default::default() })
        .collect();
    let msrs = Msrs::from_entries(&entries).map_err(|_| Error::Absent("KVM accepts fewer MSRs at once".to_owned()))?;
    let set = vcpu.set_msrs(&msrs).map_err(|error| Error::refused("KVM refused to set MSRs", error))?;
    match registers.get(set) {
        None => Ok(()),
        Some((index, _)) => Err(Error::Absent(format!("KVM refused to set MSR {index:#x}"))),
    }
}

fn doorbells(vm: &VmFd) -> Result<Vec<EventFd>, Error> {
    let mut doorbells = Vec::new();
    for (port, memory, any) in
        [(DOORBELL_WILDCARD, DEVICE_WILDCARD, true), (DOORBELL_DATAMATCH, DEVICE_DATAMATCH, false)]
    {
        for address in [IoEventAddress::Pio(port), IoEventAddress::Mmio(memory)] {
            let doorbell =
                EventFd::new(libc::EFD_NONBLOCK).map_err(|error| Error::refused("no eventfd for a doorbell", error))?;
            let registered = if any {
                vm.register_ioevent(&doorbell, &address, NoDatamatch)
            } else {
                vm.register_ioevent(&doorbell, &address, 0_u8)
            };
            registered.map_err(|error| Error::refused("KVM refused a doorbell", error))?;
            doorbells.push(doorbell);
        }
    }
    Ok(doorbells)
}

fn exception(data: &[u8]) -> String {
    let vector = data.first().copied().unwrap_or(0);
    let name = match vector {
        6 => " (#UD: this CPU or KVM has no such instruction)",
        13 => " (#GP: this CPU or KVM does not allow it)",
        14 => " (#PF)",
        _ => "",
    };
    format!("the guest had exception {vector}{name}")
}
