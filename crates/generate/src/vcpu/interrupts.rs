//! Virtual interrupts and the guest's timer: how they come to a vCPU, and the books of their stages.
//!
//! The books follow the acts, not the records: whoever acts says which interrupt it is, and a stage is written down when the act
//! is done that ends it.

use super::schedule::{PRIORITY, TIMER_VECTOR};
use super::{Exit, Vcpu};
use crate::kernel::Vendor;
use crate::reason::{svm, vmx};
use crate::truth::{Detail, Interrupts, State};
use trace::write::Value;

/// One interrupt under way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Irq {
    vector: u8,
    accepted: Option<u64>,
    /// The thread had no CPU when it was accepted; its guest ran then.
    off_cpu: bool,
    in_guest: bool,
    injected: Option<u64>,
    entered: Option<u64>,
    /// When the host's timer for it expired.
    expired: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TimerBooks {
    /// When it is due, by the host's CLOCK_MONOTONIC.
    expires: u64,
    /// When the host's timer expired for it.
    expired: Option<u64>,
}

/// Vectors of the guest: what wakes it, its device, its line, its timer, and what is posted.
pub const DEVICE: u8 = 0x22;
/// See [`DEVICE`].
pub(crate) const LINE: u8 = 0x30;
/// See [`DEVICE`].
pub const TIMER: u8 = 0xec;
/// See [`DEVICE`].
pub(crate) const POSTED: u8 = 0x41;

impl Vcpu {
    /// A device's interrupt comes on `cpu`, which is idle: its handler hands a message of `vector` to KVM.
    pub fn raise(&mut self, cpu: u32, vector: u8, handler_ns: u64, message_ns: u64) {
        self.event_of(
            0,
            cpu,
            "irq_handler_entry",
            &[("irq", 30.into()), ("name", "vfio-msix[0](0000:01:00.0)".into())],
        );
        let began = self.now;
        self.pass(handler_ns);
        let given = [("address", 0xfee0_0000u64.into()), ("data", (0x4000 | u64::from(vector)).into())];
        self.event_of(0, cpu, "kvm_msi_set_irq", &given);
        let raised = self.now;
        self.book(vector).stage("notify", raised - began);
        self.pass(message_ns);
        self.accept_vector(0, cpu, vector);
        let accepted = self.now;
        self.book(vector).stage("accept", accepted - raised);
    }

    /// The handler of [`Vcpu::raise`] ends.
    pub fn raised(&mut self, cpu: u32) {
        self.pass(30);
        self.event_of(0, cpu, "irq_handler_exit", &[("irq", 30.into()), ("ret", 1.into())]);
    }

    /// The VMM raises the line of `vector` in the time of this thread, and lowers it.
    pub fn line(&mut self, vector: u8) {
        self.event("kvm_set_irq", &[("gsi", 10.into()), ("level", 1.into())]);
        let raised = self.now;
        self.pass(40);
        self.accept_vector(self.truth.tid, self.cpu, vector);
        let accepted = self.now;
        self.book(vector).stage("accept", accepted - raised);
        self.pass(30);
        self.event("kvm_set_irq", &[("gsi", 10.into()), ("level", 0.into())]);
    }

    /// The processor takes over what was accepted of `vector`.
    pub fn post(&mut self, tid: i32, cpu: u32, vector: u8) {
        self.pass(12);
        let given = [("apicid", u64::from(self.truth.vcpu).into()), ("vec", u64::from(vector).into())];
        self.event_of(tid, cpu, "kvm_apicv_accept_irq", &given);
        self.irqs.retain(|irq| irq.vector != vector || irq.injected.is_some());
        self.book(vector).posted += 1;
    }

    /// The guest's APIC takes an interrupt, in the context of whoever sends it; `apicid` holds the vCPU's number.
    pub(super) fn accept_vector(&mut self, tid: i32, cpu: u32, vector: u8) {
        let vcpu = u64::from(self.truth.vcpu);
        self.event_of(tid, cpu, "kvm_apic_accept_irq", &[("apicid", vcpu.into()), ("vec", u64::from(vector).into())]);
        if self.irqs.iter().any(|irq| irq.vector == vector && irq.injected.is_none()) {
            self.book(vector).merged += 1;
            return;
        }
        let is_other = tid != self.truth.tid;
        let off_cpu = is_other && self.state.is_off_cpu();
        let in_guest = is_other && matches!(self.state, State::Guest(_));
        let (accepted, injected, entered, expired) = (Some(self.now), None, None, None);
        self.irqs.push(Irq { vector, accepted, off_cpu, in_guest, injected, entered, expired });
    }

    /// KVM puts `vector` into the entry that follows.
    pub(crate) fn inject_vector(&mut self, vector: u8) {
        self.injection(vector, false);
        self.done(vector);
        let now = self.now;
        let Some(irq) = self.irqs.iter_mut().find(|irq| irq.vector == vector && irq.injected.is_none()) else {
            let (accepted, expired, entered) = (None, None, None);
            self.irqs.push(Irq {
                vector,
                accepted,
                off_cpu: false,
                in_guest: false,
                injected: Some(now),
                entered,
                expired,
            });
            return;
        };
        irq.injected = Some(now);
        let Irq { accepted, expired, .. } = *irq;
        let accepted = accepted.unwrap_or(now);
        let window = self.window.filter(|window| *window >= accepted);
        let book = self.book(vector);
        book.stage("pending", now - accepted);
        if let Some(window) = window {
            book.stage("masked", window - accepted);
        }
        if let Some(expired) = expired {
            book.stage("timer deliver", now - expired);
        }
    }

    /// The entry was cut short, and KVM puts `vector` into the next one again.
    pub(crate) fn inject_again(&mut self, vector: u8) {
        self.injection(vector, true);
        self.irqs.iter_mut().filter(|irq| irq.vector == vector).for_each(|irq| irq.entered = None);
    }

    fn injection(&mut self, vector: u8, again: bool) {
        let number = u64::from(vector);
        let given = [("vector", number.into()), ("irq", number.into()), ("reinjected", u64::from(again).into())];
        self.event("kvm_inj_virq", &given);
    }

    /// The guest ends `vector` by an exit.
    pub(crate) fn end_of_interrupt(&mut self, vector: u8) {
        let exit = match self.vendor() {
            Vendor::Vmx => Exit { detail: Some(Detail::Vector(vector)), ..Exit::info(vmx::EOI_INDUCED, vector.into()) },
            Vendor::Svm => Exit::info(svm::MSR, 1),
        };
        self.exit(exit);
        self.pass(150);
        let given = [("apicid", u64::from(self.truth.vcpu).into()), ("vector", u64::from(vector).into())];
        self.event("kvm_eoi", &given);
        let now = self.now;
        if let Some(entered) = self.done(vector) {
            self.book(vector).stage("eoi", now - entered);
        }
        self.pass(90);
        self.enter(self.level);
    }

    /// The guest sets its timer, to be due in `ns`; KVM keeps it by `hrtimer`, or by VMX's pre-emption timer.
    pub(crate) fn set_timer(&mut self, ns: u64, hrtimer: Option<u64>) {
        let deadline = Some(Detail::Msr(0x6e0));
        self.exit(Exit { detail: deadline, ..Exit::info(self.vendor().msr_write(), 1) });
        let left = self.now;
        self.pass(180);
        let expires = self.now + ns;
        let vcpu = u64::from(self.truth.vcpu);
        match hrtimer {
            Some(hrtimer) => {
                self.event("hrtimer_start", &[("hrtimer", hrtimer.into()), ("expires", expires.into())]);
            }
            None => self.event("kvm_hv_timer_state", &[("vcpu_id", vcpu.into()), ("hv_timer_in_use", 1.into())]),
        }
        self.timer = TimerBooks { expires, expired: None };
        self.program = Some(self.now - left);
        self.pass(60);
        let given = [("write", 1.into()), ("ecx", 0x6e0.into()), ("data", expires.into())];
        self.event("kvm_msr", &given);
        self.pass(110);
        self.enter(self.level);
    }

    /// The host's timer for the guest expires, `late_ns` after the interrupt in which it does has begun in the time of `tid`.
    pub(super) fn timer_expires(&mut self, tid: i32, hrtimer: u64, late_ns: u64) {
        let read = self.now;
        self.pass(late_ns);
        self.event_of(tid, self.cpu, "hrtimer_expire_entry", &[("hrtimer", hrtimer.into()), ("now", read.into())]);
        self.timer.expired = Some(self.now);
        let (expires, at) = (self.timer.expires, self.now);
        let program = self.program.take();
        let book = self.book(TIMER);
        book.stage("timer expire", read.saturating_sub(expires));
        book.stage("timer residual", at - read);
        if let Some(program) = program {
            book.stage("timer program", program);
        }
    }

    /// The same while the guest runs: the interrupt stops it, and `kvm_exit` tells so.
    pub(crate) fn timer_interrupts_guest(&mut self, hrtimer: u64, late_ns: u64) {
        self.exit(Exit::info(self.vendor().interrupt(), 0));
        self.pass(80);
        self.event("local_timer_entry", &[("vector", TIMER_VECTOR.into())]);
        self.served(State::Irq, "local_timer", |thread| {
            thread.timer_expires(thread.truth.tid, hrtimer, late_ns);
            thread.pass(70);
            thread.event("local_timer_exit", &[("vector", TIMER_VECTOR.into())]);
        });
    }

    /// VMX's pre-emption timer stops the guest.
    pub fn preemption_timer(&mut self) {
        self.exit(Exit::of(vmx::PREEMPTION_TIMER));
        let now = self.now;
        self.timer.expired = Some(now);
        let program = self.program.take();
        if let Some(program) = program {
            self.book(TIMER).stage("timer program", program);
        }
    }

    /// KVM takes the expired timer as an interrupt.
    pub(crate) fn accept_timer(&mut self) {
        self.accept_vector(self.truth.tid, self.cpu, TIMER);
        let expired = self.timer.expired.take();
        if let Some(irq) = self.irqs.iter_mut().rfind(|irq| irq.vector == TIMER) {
            irq.expired = expired;
        }
    }

    /// The thread has a CPU again.
    pub(super) fn irqs_run(&mut self) {
        self.woken(|irq| std::mem::take(&mut irq.off_cpu));
    }

    /// The guest has been left by `reason`.
    pub(super) fn irqs_leave(&mut self, reason: u32) {
        let window = match self.vendor() {
            Vendor::Vmx => vmx::INTERRUPT_WINDOW,
            Vendor::Svm => svm::VINTR,
        };
        self.window = (reason == window && self.level == 1).then_some(self.now);
        self.woken(|irq| std::mem::take(&mut irq.in_guest));
    }

    fn woken(&mut self, is_woken: impl Fn(&mut Irq) -> bool) {
        let now = self.now;
        let pending = self.irqs.iter_mut().filter(|irq| irq.injected.is_none());
        let woken: Vec<(u8, u64)> = pending
            .filter_map(|irq| is_woken(irq).then_some((irq.vector, now - irq.accepted.unwrap_or(now))))
            .collect();
        woken.into_iter().for_each(|(vector, ns)| self.book(vector).stage("wake", ns));
    }

    pub(super) fn irqs_enter(&mut self) {
        self.window = None;
        let now = self.now;
        let injected = self.irqs.iter_mut().filter(|irq| irq.injected.is_some() && irq.entered.is_none());
        injected.for_each(|irq| irq.entered = Some(now));
    }

    /// The one of `vector` that the guest has is over: when it got it.
    fn done(&mut self, vector: u8) -> Option<u64> {
        let place = self.irqs.iter().position(|irq| irq.vector == vector && irq.entered.is_some())?;
        let irq = self.irqs.remove(place);
        let (injected, entered) = (irq.injected?, irq.entered?);
        let book = self.book(vector);
        book.stage("enter", entered - injected);
        if irq.expired.is_some() {
            book.stage("timer enter", entered - injected);
        }
        Some(entered)
    }

    pub(super) fn irqs_end(&mut self) {
        while let Some(vector) = self.irqs.iter().find(|irq| irq.entered.is_some()).map(|irq| irq.vector) {
            self.done(vector);
        }
    }

    fn book(&mut self, vector: u8) -> &mut Interrupts {
        self.truth.interrupts.entry(vector).or_default()
    }

    /// What a thread is called in `sched_waking`.
    pub(super) fn waking_fields(&self) -> [(&'static str, Value); 4] {
        [
            ("comm", Value::Text(self.truth.vm.clone())),
            ("pid", (self.truth.tid as u64).into()),
            ("prio", PRIORITY.into()),
            // The event comes before the scheduler chooses: it names the CPU that the task ran on last.
            ("target_cpu", u64::from(self.cpu).into()),
        ]
    }
}
