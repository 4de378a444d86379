//! What guests do again and again, in the order in which KVM tells it.

use crate::host::Host;
use crate::kernel::Vendor;
use crate::random::Random;
use crate::reason::vmx;
use crate::truth::Detail;
use crate::vcpu::{Exit, Vcpu};
use trace::write::Value;

/// The comm of the thread of most stories, as QEMU names it.
pub(super) const VM: &str = "CPU 0/KVM";
/// Control block of the first L2 vCPU.
pub(super) const BLOCK: u64 = 0x1_0a40_a000;

/// The only vCPU of a story enters its guest.
pub(super) fn begin(host: &mut Host) -> &mut Vcpu {
    let at = host.add(VM, 0, 170, 0);
    let vcpu = &mut host.vcpus[at];
    vcpu.pass(900);
    vcpu.enter(1);
    vcpu
}

/// The guest at `level` runs for a while.
pub(super) fn run_guest(vcpu: &mut Vcpu, random: &mut Random) {
    vcpu.pass(random.between(400, 6_000));
}

/// An exit that KVM answers by itself, with the event that details it.
pub(super) fn kept(vcpu: &mut Vcpu, random: &mut Random, level: u8, exit: Exit) {
    vcpu.exit(exit);
    vcpu.pass(random.between(200, 900));
    detail(vcpu, random, exit);
    vcpu.pass(random.between(100, 700));
    vcpu.enter(level);
}

/// The event by which KVM details an exit that it answers.
fn detail(vcpu: &mut Vcpu, random: &mut Random, exit: Exit) {
    let vendor = vcpu.vendor();
    if exit.reason == vendor.cpuid() {
        vcpu.event(
            "kvm_cpuid",
            &[("function", random.between(0, 8).into()), ("rax", 0x16.into()), ("found", 1.into())],
        );
    } else if exit.reason == vendor.page_fault() && exit.detail.is_none() {
        let address = random.between(1, 1 << 20) << 12;
        vcpu.event("kvm_page_fault", &[("fault_address", address.into()), ("error_code", 0x182.into())]);
    }
    match exit.detail {
        Some(Detail::Msr(number)) => {
            let given = [("write", 1.into()), ("ecx", u64::from(number).into()), ("data", random.word().into())];
            vcpu.event("kvm_msr", &given);
        }
        Some(Detail::ApicRegister(offset)) if exit.reason == vmx::APIC_WRITE && vendor == Vendor::Vmx => {
            let given =
                [("rw", 1.into()), ("reg", u64::from(offset).into()), ("val", random.between(0, 1 << 32).into())];
            vcpu.event("kvm_apic", &given);
        }
        Some(Detail::Vector(vector)) => {
            let id = u64::from(vcpu.truth.vcpu);
            vcpu.event("kvm_eoi", &[("apicid", id.into()), ("vector", u64::from(vector).into())]);
        }
        _ => {}
    }
}

/// CPUID.
pub(super) fn cpuid(vcpu: &mut Vcpu, random: &mut Random, level: u8) {
    let reason = vcpu.vendor().cpuid();
    kept(vcpu, random, level, Exit::of(reason));
}

/// A page that KVM maps.
pub(super) fn page_fault(vcpu: &mut Vcpu, random: &mut Random, level: u8) {
    let reason = vcpu.vendor().page_fault();
    kept(vcpu, random, level, Exit::info(reason, 0x182));
}

/// A write of MSR `number`.
pub(super) fn msr(vcpu: &mut Vcpu, random: &mut Random, level: u8, number: u32) {
    let exit = Exit { detail: Some(Detail::Msr(number)), ..Exit::info(vcpu.vendor().msr_write(), 1) };
    kept(vcpu, random, level, exit);
}

/// An access to MSR `number` with this value.
pub(super) fn access(vcpu: &mut Vcpu, random: &mut Random, number: u32, write: bool, value: u64) {
    let vendor = vcpu.vendor();
    let reason = if write { vendor.msr_write() } else { vendor.msr_read() };
    vcpu.exit(Exit { detail: Some(Detail::Msr(number)), ..Exit::info(reason, write.into()) });
    vcpu.pass(random.between(200, 900));
    let given = [("write", u64::from(write).into()), ("ecx", u64::from(number).into()), ("data", value.into())];
    vcpu.event("kvm_msr", &given);
    vcpu.pass(random.between(100, 700));
    vcpu.enter(vcpu.guest_level());
}

/// A hypercall that KVM answers.
pub(super) fn hypercall(vcpu: &mut Vcpu, random: &mut Random, number: u64) {
    vcpu.exit(Exit::of(vcpu.vendor().hypercall()));
    vcpu.pass(random.between(200, 900));
    vcpu.event("kvm_hypercall", &[("nr", number.into()), ("a0", random.between(0, 64).into())]);
    vcpu.pass(random.between(100, 700));
    vcpu.enter(vcpu.guest_level());
}

/// A write to `port` that the VMM answers.
pub(super) fn port(vcpu: &mut Vcpu, random: &mut Random, level: u8, port: u16) {
    let qualification = u64::from(port) << 16;
    vcpu.exit(Exit { detail: Some(Detail::Port(port)), ..Exit::info(vcpu.vendor().io(), qualification) });
    vcpu.pass(random.between(200, 600));
    let given = [
        ("rw", 1.into()),
        ("port", u64::from(port).into()),
        ("size", 1.into()),
        ("count", 1.into()),
        ("val", random.between(0, 256).into()),
    ];
    vcpu.event("kvm_pio", &given);
    vcpu.pass(random.between(100, 300));
    vcpu.userspace(2, 0, random.between(2_000, 9_000));
    vcpu.enter(level);
}

/// A read of device memory at `address` that the VMM answers.
pub(super) fn mmio(vcpu: &mut Vcpu, random: &mut Random, level: u8, address: u64) {
    vcpu.exit(Exit { detail: Some(Detail::Mmio(address)), info2: address, ..Exit::of(vcpu.vendor().mmio()) });
    vcpu.pass(random.between(300, 900));
    let access = |kind: u64, value: u64| -> [(&'static str, Value); 4] {
        [("type", kind.into()), ("len", 4.into()), ("gpa", address.into()), ("val", value.into())]
    };
    vcpu.event("kvm_mmio", &access(0, 0));
    vcpu.pass(random.between(100, 300));
    vcpu.userspace(6, 0, random.between(2_000, 9_000));
    vcpu.event("kvm_mmio", &access(1, 7));
    vcpu.pass(random.between(50, 200));
    vcpu.enter(level);
}

/// A signal takes the thread out to the VMM: the reason in the event is an old one.
pub(super) fn signal(vcpu: &mut Vcpu, random: &mut Random, level: u8) {
    vcpu.exit(Exit::of(vcpu.vendor().interrupt()));
    vcpu.pass(random.between(200, 600));
    vcpu.userspace(2, -4, random.between(1_000, 4_000));
    vcpu.enter(level);
}

/// One of the things any guest does, chosen by `random`.
pub(super) fn anything(vcpu: &mut Vcpu, random: &mut Random, level: u8) {
    vcpu.move_rip(random.between(0, 64) * 16);
    match random.between(0, 6) {
        0 => cpuid(vcpu, random, level),
        1 => page_fault(vcpu, random, level),
        2 => {
            let number = random.pick(&[0x6e0, 0x40, 0xc000_0080]);
            msr(vcpu, random, level, number);
        }
        3 => {
            let number = random.pick(&[0x80, 0x3f8, 0xcf8]);
            port(vcpu, random, level, number);
        }
        4 => {
            let address = random.pick(&[0xfee0_0000, 0xfebc_1000]);
            mmio(vcpu, random, level, address);
        }
        _ => signal(vcpu, random, level),
    }
}

/// L1, while it works on an exit of its guest: each of `exits` with a little of L1's own work before it.
pub(super) fn hypervisor(vcpu: &mut Vcpu, random: &mut Random, exits: &[Exit]) {
    for (site, exit) in exits.iter().enumerate() {
        vcpu.pass(random.between(60, 400));
        vcpu.move_rip(0x800 + site as u64 * 7);
        kept(vcpu, random, 1, *exit);
    }
}

/// L2 leaves with `exit`, L0 hands it to L1 as `injected`, L1 does `exits` and enters L2 again: a chain of
/// `exits.len() + 1`.
pub(super) fn chain(vcpu: &mut Vcpu, random: &mut Random, exit: Exit, injected: u32, exits: &[Exit], block: u64) {
    open_chain(vcpu, random, exit, injected, block);
    hypervisor(vcpu, random, exits);
    close_chain(vcpu, random, block);
}

/// The first part of a chain, up to L1's entry.
pub(super) fn open_chain(vcpu: &mut Vcpu, random: &mut Random, exit: Exit, injected: u32, block: u64) {
    vcpu.exit(exit);
    vcpu.pass(random.between(100, 500));
    vcpu.inject(injected, block);
    vcpu.pass(random.between(100, 500));
    vcpu.enter_hypervisor();
}

/// The last part of a chain: L1's VMRESUME or VMRUN, and L2 runs.
pub(super) fn close_chain(vcpu: &mut Vcpu, random: &mut Random, block: u64) {
    vcpu.pass(random.between(60, 300));
    vcpu.move_rip(0x700);
    let instruction = vcpu.vendor().nested_entry();
    vcpu.request(block, instruction, 2, random.between(500, 1_500));
    vcpu.enter_nested(2);
}

/// L1 enters its guest for the first time.
pub(super) fn launch(vcpu: &mut Vcpu, random: &mut Random, block: u64) {
    let instruction = match vcpu.vendor() {
        Vendor::Vmx => vmx::VMLAUNCH,
        Vendor::Svm => vcpu.vendor().nested_entry(),
    };
    run_guest(vcpu, random);
    vcpu.request(block, instruction, 2, random.between(500, 1_500));
    vcpu.enter_nested(2);
}

/// The thread's last acts: back in L1, one more exit that KVM answers, and L1 runs on until the recording ends.
///
/// So every exit has an entry behind it, and the level of the last interval is beyond doubt.
pub(super) fn settle(vcpu: &mut Vcpu, random: &mut Random) {
    run_guest(vcpu, random);
    cpuid(vcpu, random, 1);
    run_guest(vcpu, random);
}

/// L2 leaves for good: L1 gets the exit, and the chain is closed by no entry.
pub(super) fn leave_open(vcpu: &mut Vcpu, random: &mut Random, injected: u32, block: u64) {
    run_guest(vcpu, random);
    open_chain(vcpu, random, Exit::of(injected), injected, block);
    settle(vcpu, random);
}
