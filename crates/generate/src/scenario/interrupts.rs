//! The ways of virtual interrupts and of a guest's timer, one after the other.

use super::steps;
use crate::host::Host;
use crate::kernel::Vendor;
use crate::random::Random;
use crate::reason::{svm, vmx};
use crate::vcpu::{DEVICE, Exit, LINE, POSTED, Sleep, TIMER, Vcpu, Waker};

/// The CPU on which devices interrupt.
const DEVICES: u32 = 2;
/// Address of the host's timer.
const HRTIMER: u64 = 0xffff_8881_0523_2310;

/// What KVM injects, the guest gets and ends.
fn deliver(vcpu: &mut Vcpu, random: &mut Random, vector: u8) {
    vcpu.pass(random.between(60, 300));
    vcpu.inject_vector(vector);
    vcpu.pass(random.between(20, 90));
    vcpu.enter(1);
    steps::run_guest(vcpu, random);
    vcpu.end_of_interrupt(vector);
}

/// A device interrupts while the guest runs on another CPU, which is told to stop.
fn kicked(vcpu: &mut Vcpu, random: &mut Random) {
    vcpu.raise(DEVICES, DEVICE, random.between(80, 500), random.between(30, 200));
    vcpu.raised(DEVICES);
    vcpu.pass(random.between(300, 2_000));
    vcpu.exit(Exit::info(vcpu.vendor().interrupt(), 0));
}

fn running(vcpu: &mut Vcpu, random: &mut Random) {
    kicked(vcpu, random);
    deliver(vcpu, random, DEVICE);
}

/// Sleeps until `waker` comes.
fn halted(vcpu: &mut Vcpu, random: &mut Random, waker: Waker) {
    vcpu.exit(Exit::of(vcpu.vendor().hlt()));
    vcpu.pass(random.between(100, 400));
    let (ns, delay_ns) = (random.between(20_000, 300_000), random.between(900, 20_000));
    vcpu.halt(random.between(500, 4_000), Some(Sleep { ns, delay_ns, waker, cpu: vcpu.cpu }));
    vcpu.pass(random.between(60, 200));
}

/// The guest takes no interrupts when one comes.
fn masked(vcpu: &mut Vcpu, random: &mut Random) {
    kicked(vcpu, random);
    vcpu.pass(random.between(100, 300));
    vcpu.enter(1);
    steps::run_guest(vcpu, random);
    let window = match vcpu.vendor() {
        Vendor::Vmx => vmx::INTERRUPT_WINDOW,
        Vendor::Svm => svm::VINTR,
    };
    vcpu.exit(Exit::of(window));
    deliver(vcpu, random, DEVICE);
}

/// The device interrupts again before the first is injected.
fn merged(vcpu: &mut Vcpu, random: &mut Random) {
    kicked(vcpu, random);
    vcpu.pass(random.between(60, 200));
    vcpu.raise(DEVICES, DEVICE, random.between(80, 500), random.between(30, 200));
    vcpu.raised(DEVICES);
    deliver(vcpu, random, DEVICE);
}

/// The guest faults while it gets the interrupt, and gets it again.
fn cut_short(vcpu: &mut Vcpu, random: &mut Random) {
    kicked(vcpu, random);
    vcpu.pass(random.between(60, 200));
    vcpu.inject_vector(DEVICE);
    vcpu.pass(random.between(20, 90));
    vcpu.enter(1);
    vcpu.pass(random.between(5, 60));
    vcpu.exit(Exit::info(vcpu.vendor().page_fault(), 0x182));
    vcpu.pass(random.between(300, 2_000));
    vcpu.inject_again(DEVICE);
    vcpu.pass(random.between(20, 90));
    vcpu.enter(1);
    steps::run_guest(vcpu, random);
    vcpu.end_of_interrupt(DEVICE);
}

/// The processor delivers it while the guest runs: nothing is left, nothing is injected.
fn posted(vcpu: &mut Vcpu, random: &mut Random) {
    vcpu.raise(DEVICES, POSTED, random.between(80, 500), random.between(30, 200));
    vcpu.post(0, DEVICES, POSTED);
    vcpu.raised(DEVICES);
}

/// The VMM raises a line of the vCPU's own.
fn line(vcpu: &mut Vcpu, random: &mut Random) {
    vcpu.exit(Exit::info(vcpu.vendor().io(), 0x3f8 << 16));
    vcpu.pass(random.between(200, 600));
    vcpu.userspace(2, 0, random.between(1_000, 5_000));
    vcpu.line(LINE);
    deliver(vcpu, random, LINE);
}

fn timer(vcpu: &mut Vcpu, random: &mut Random, sleeps: bool) {
    vcpu.set_timer(random.between(1_000, 8_000), Some(HRTIMER));
    steps::run_guest(vcpu, random);
    if sleeps {
        halted(vcpu, random, Waker::Timer(HRTIMER));
    } else {
        vcpu.pass(9_000);
        vcpu.timer_interrupts_guest(HRTIMER, random.between(20, 400));
        vcpu.pass(random.between(60, 200));
    }
    vcpu.accept_timer();
    deliver(vcpu, random, TIMER);
}

fn preemption_timer(vcpu: &mut Vcpu, random: &mut Random) {
    vcpu.set_timer(random.between(1_000, 8_000), None);
    steps::run_guest(vcpu, random);
    vcpu.preemption_timer();
    vcpu.pass(random.between(60, 200));
    vcpu.accept_timer();
    deliver(vcpu, random, TIMER);
}

pub(super) fn act(host: &mut Host, random: &mut Random) {
    let vcpu = steps::begin(host);
    let keeps_timers = vcpu.vendor() == Vendor::Vmx && vcpu.kernel().generation.has_wakeup();
    for round in 0..90 {
        steps::run_guest(vcpu, random);
        match round % 10 {
            0 => running(vcpu, random),
            1 => {
                halted(vcpu, random, Waker::Device(DEVICES, DEVICE));
                deliver(vcpu, random, DEVICE);
            }
            2 => masked(vcpu, random),
            3 => merged(vcpu, random),
            4 => cut_short(vcpu, random),
            5 => posted(vcpu, random),
            6 => line(vcpu, random),
            7 => timer(vcpu, random, true),
            8 if keeps_timers => preemption_timer(vcpu, random),
            _ => timer(vcpu, random, false),
        }
    }
    steps::settle(vcpu, random);
}
