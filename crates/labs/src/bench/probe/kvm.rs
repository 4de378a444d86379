//! The guest on `/dev/kvm`: three pieces of memory, one vCPU, and an interrupt that an eventfd raises.
//!
//! KVM_IRQFD takes the eventfd, and KVM_SET_GSI_ROUTING says which message it stands for (Documentation/virt/kvm/api.rst, Linux
//! 6.12, 4.52 and 4.75). Not every KVM can: kvm_pvm refuses.

use super::rom::{self, END_PORT, READY_PORT, VECTOR};
use super::shared::{self, SHARED, Shared};
use super::{Seats, TO_BEGIN};
use crate::bench::priority;
use base::CpuSet;
use kvm_bindings::{
    KVM_IRQ_ROUTING_MSI, KVM_MAX_CPUID_ENTRIES, KvmIrqRouting, kvm_irq_routing_entry, kvm_irq_routing_msi,
    kvm_userspace_memory_region,
};
use kvm_ioctls::{Kvm, VcpuExit, VcpuFd, VmFd};
use lab::Error;
use lab::guest;
use lab::guest::memory::Memory;
use lab::guest::watchdog::watched;
use lab::setting::thread;
use std::ffi::CString;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::Duration;
use vmm_sys_util::eventfd::EventFd;

/// The watchdog comes so much after the end: a host may be busy.
const GRACE: Duration = Duration::from_secs(10);
/// The interrupt's number among the VM's.
const GSI: u32 = 0;
/// Where messages to the first processor's APIC go (Intel SDM volume 3, 10.11.1).
const MESSAGE_ADDRESS: u32 = 0xfee0_0000;

/// A vCPU that runs.
pub(super) struct Running {
    thread: Option<JoinHandle<Result<(), Error>>>,
    pub tid: i32,
}

/// A guest, and all that it uses.
struct Machine {
    // Fields are dropped in this order: memory last, when KVM no longer uses it.
    vcpu: VcpuFd,
    _vm: VmFd,
    _memory: [Memory; 2],
    _shared: Arc<Shared>,
}

impl Running {
    pub(super) fn start(
        device: &Path,
        seats: &Seats,
        length: Duration,
        shared: &Arc<Shared>,
        interrupt: &EventFd,
    ) -> Result<Self, Error> {
        let mut machine = Machine::new(&guest::open(device)?, shared, interrupt)?;
        // A KVM that cannot run the way to the loop is seen here, and not when all time is over.
        let begun = watched(TO_BEGIN, move |late| machine.until(READY_PORT, late).map(|()| machine))?;
        let stuck = || Error::TimedOut("the guest did not begin and was stopped by the watchdog".to_owned());
        let mut machine = begun.ok_or_else(stuck)??;
        let (tell, told) = channel();
        let (cpu, fifo) = (seats.vcpu, seats.fifo);
        let run = move || {
            let done = watched(length + TO_BEGIN + GRACE, move |late| {
                let begun = begin(cpu, fifo);
                let is_seated = begun.is_ok();
                // Whoever does not wait for it has given up.
                let _ = tell.send(begun);
                if is_seated { machine.until(END_PORT, late) } else { Ok(()) }
            })?;
            done.unwrap_or_else(|| Err(Error::TimedOut("the guest was stopped by the watchdog".to_owned())))
        };
        let refused = |error| Error::refused("no thread for the guest", error);
        let thread = std::thread::Builder::new().name("guest".to_owned()).spawn(run).map_err(refused)?;
        let failed = |_| Error::Died("the guest's thread has failed".to_owned());
        let tid = told.recv().map_err(failed)??;
        Ok(Self { thread: Some(thread), tid })
    }

    pub(super) fn look(&mut self) -> Result<(), Error> {
        let early = || Error::Died("the guest ended early".to_owned());
        match self.thread.take_if(|thread| thread.is_finished()) {
            Some(thread) => Err(thread.join().unwrap_or_else(|_| Err(early())).err().unwrap_or_else(early)),
            None => Ok(()),
        }
    }

    pub(super) fn end(&mut self) {
        // Why it failed was said by `look`, if anybody asked.
        self.thread.take().map(JoinHandle::join);
    }
}

/// Seats this thread, and gives its id.
fn begin(cpu: u32, fifo: bool) -> Result<i32, Error> {
    thread::set_affinity(thread::own(), &CpuSet::one(cpu))?;
    rustix::thread::set_name(&CString::new(base::interrupts::THREAD).unwrap_or_default())
        .map_err(|error| Error::refused("the guest's thread gets no name", error))?;
    if fifo {
        priority::fifo(priority::GUEST)?;
    }
    Ok(rustix::thread::gettid().as_raw_nonzero().get())
}

impl Machine {
    fn new(kvm: &Kvm, shared: &Arc<Shared>, interrupt: &EventFd) -> Result<Self, Error> {
        let step = |what: &'static str| move |error| Error::refused(format_args!("KVM refused to {what}"), error);
        let vm = kvm.create_vm().map_err(step("make a VM"))?;
        vm.create_irq_chip().map_err(step("make an interrupt controller"))?;
        let routing = routing()?;
        vm.set_gsi_routing(&routing).map_err(step("route an interrupt (KVM_SET_GSI_ROUTING)"))?;
        vm.register_irqfd(interrupt, GSI).map_err(step("take an interrupt from an eventfd (KVM_IRQFD)"))?;
        let memory = [Memory::new(rom::STACK_BYTES)?, Memory::new(rom::BYTES)?];
        let [stack, mut rom] = memory;
        rom.load(0, &rom::bytes())?;
        let regions = [
            (0, stack.address(), stack.bytes()),
            (rom::BASE, rom.address(), rom.bytes()),
            (SHARED, shared.address(), shared::BYTES),
        ];
        for (slot, (at, address, bytes)) in (0..).zip(regions) {
            let region = kvm_userspace_memory_region {
                slot,
                guest_phys_addr: at,
                memory_size: bytes as u64,
                userspace_addr: address,
                ..Default::default()
            };
            // SAFETY: each region is exactly its mapping, which outlives VM and vCPU: see the order of the fields.
            unsafe { vm.set_user_memory_region(region) }.map_err(step("take guest memory"))?;
        }
        // Pages that KVM wants to have to itself on Intel's CPUs, outside our memory.
        let set_aside = vm.set_tss_address(0xfffb_d000).and_then(|()| vm.set_identity_map_address(0xfffb_c000));
        set_aside.map_err(step("set pages aside"))?;
        let vcpu = vm.create_vcpu(0).map_err(step("make a vCPU"))?;
        let cpuid = kvm.get_supported_cpuid(KVM_MAX_CPUID_ENTRIES).map_err(step("tell CPUID"))?;
        vcpu.set_cpuid2(&cpuid).map_err(step("set CPUID"))?;
        Ok(Self { vcpu, _vm: vm, _memory: [stack, rom], _shared: Arc::clone(shared) })
    }

    /// Runs the guest until it writes to `port`.
    fn until(&mut self, port: u16, late: &AtomicBool) -> Result<(), Error> {
        let failed = |why: String| Err(Error::Died(format!("the guest on KVM did not run: {why}")));
        loop {
            if late.load(Ordering::Relaxed) {
                return Err(Error::TimedOut("the guest did not end and was stopped by the watchdog".to_owned()));
            }
            match self.vcpu.run() {
                Ok(VcpuExit::IoOut(written, _)) if written == port => return Ok(()),
                // The device of QEMU is not there, and nothing else is.
                Ok(VcpuExit::IoIn(_, data) | VcpuExit::MmioRead(_, data)) => data.fill(0),
                Ok(VcpuExit::IoOut(..) | VcpuExit::MmioWrite(..) | VcpuExit::Intr) => {}
                Ok(VcpuExit::InternalError) => {
                    return failed("KVM could not emulate an instruction (internal error)".to_owned());
                }
                Ok(VcpuExit::Shutdown) => return failed("it had a triple fault".to_owned()),
                Ok(other) => return failed(format!("it exited with {other:?}")),
                Err(error) if matches!(error.errno(), libc::EINTR | libc::EAGAIN) => {}
                Err(error) => return failed(format!("KVM_RUN: {error}")),
            }
        }
    }
}

/// The one interrupt: a message that is our vector.
fn routing() -> Result<KvmIrqRouting, Error> {
    let mut entry = kvm_irq_routing_entry { gsi: GSI, type_: KVM_IRQ_ROUTING_MSI, ..Default::default() };
    entry.u.msi = kvm_irq_routing_msi { address_lo: MESSAGE_ADDRESS, data: u32::from(VECTOR), ..Default::default() };
    KvmIrqRouting::from_entries(&[entry]).map_err(|_| Error::Absent("KVM takes no route of an interrupt".to_owned()))
}
