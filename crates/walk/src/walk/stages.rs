//! The events of virtual interrupts and of guests' timers, each handed to what follows them.

use super::{Away, Check, IrqStage, NO_VCPU, Owner, Role, Sink, TimerStage, Told, Walk, roles, timers};
use trace::Event;

/// A device's interrupt was handed to KVM.
#[derive(Debug, Clone, Copy)]
pub(super) struct Raised {
    at_ns: u64,
    /// When the host's handler began that did it, if one did.
    since_ns: Option<u64>,
    vector: Option<u8>,
}

impl<S: Sink> Walk<S> {
    /// The handler of a device's interrupt begins or ends.
    pub(super) fn serves_irq(&mut self, event: &Event<'_>, role: Role, now_ns: u64) {
        match role {
            Role::IrqEntry => self.cpus[event.cpu as usize].irq_since_ns = Some(now_ns),
            Role::IrqExit => self.cpus[event.cpu as usize].irq_since_ns = None,
            _ => {}
        }
    }

    /// A device's interrupt is handed to KVM, which makes it known to local APICs at once.
    pub(super) fn set_irq(&mut self, event: &Event<'_>, now_ns: u64) {
        let here = &mut self.cpus[event.cpu as usize];
        let rises = event.get(roles::set_irq::LEVEL) != Some(0);
        let since_ns = here.irq_since_ns;
        let vector = event.get(roles::set_irq::VECTOR).or(event.get(roles::set_irq::DATA)).map(|data| data as u8);
        here.raised = rises.then_some(Raised { at_ns: now_ns, since_ns, vector });
    }

    /// The thread of the vCPU that a local APIC's event names by its number alone; `by` is the thread in whose time it comes,
    /// which is the one where several VMs have that number and it has it too: vCPUs know no others' APICs.
    fn addressed(&mut self, by: Option<usize>, event: &Event<'_>) -> Option<usize> {
        let number = event.get(roles::accept::VCPU).filter(|number| *number < NO_VCPU)?;
        let own = by.filter(|by| self.threads[*by].vcpu_id == Some(number as u32));
        match self.by_vcpu.get(number as usize) {
            Some(Owner::Thread(me)) => Some(*me),
            Some(Owner::Several) if own.is_some() => own,
            _ => {
                self.flights.ambiguous += 1;
                None
            }
        }
    }

    /// A local APIC takes an interrupt, in the time of thread `by` if it is one of ours; the CPU's event before that came at
    /// `before_ns`.
    pub(super) fn accept_irq(&mut self, by: Option<usize>, event: &Event<'_>, now_ns: u64, before_ns: u64) {
        let Some(vector) = event.get(roles::accept::VECTOR).map(|vector| vector as u8) else { return };
        let Some(me) = self.addressed(by, event) else { return };
        let raised = self.cpus[event.cpu as usize].raised.filter(|raised| raised.at_ns == before_ns);
        let thread = &self.threads[me];
        let is_own = by == Some(me);
        let away = match thread.off() {
            _ if is_own => Away::No,
            Some(_) => Away::OffCpu,
            None if thread.runs_guest() => Away::InGuest,
            None => Away::No,
        };
        // KVM takes the timer in the vCPU's own time, or with APICv in the handler of the host's timer.
        let may_be_timer = (is_own && raised.is_none()) || self.timers.expires_for(event.cpu as usize, before_ns, me);
        let shot = if may_be_timer { self.timers.accept(me, vector, thread.open_exit(), now_ns) } else { None };
        let mut tell = |vector, told| self.sink.interrupt(me, vector, told);
        if let Some(raised) = raised.filter(|raised| raised.vector.is_none_or(|known| known == vector)) {
            if let Some(since_ns) = raised.since_ns {
                tell(vector, Told::Irq(IrqStage::Notify, since_ns, raised.at_ns));
            }
            tell(vector, Told::Irq(IrqStage::Accept, raised.at_ns, now_ns));
        }
        self.flights.accept((me, away), (vector, shot), now_ns, tell);
    }

    /// The processor will deliver an interrupt by itself.
    pub(super) fn post_irq(&mut self, event: &Event<'_>, now_ns: u64) {
        let Some(vector) = event.get(roles::accept::VECTOR) else { return };
        let number = event.get(roles::accept::VCPU).unwrap_or(NO_VCPU);
        if let Some(Owner::Thread(me)) = self.by_vcpu.get(number as usize).copied() {
            self.flights.post(me, vector as u8, now_ns, |vector, told| self.sink.interrupt(me, vector, told));
        }
    }

    /// KVM puts an interrupt into the next entry of `me`.
    pub(super) fn inject_virq(&mut self, me: usize, event: &Event<'_>, now_ns: u64) {
        let Some(vector) = event.get(roles::inject_virq::VECTOR) else { return };
        let again = event.get(roles::inject_virq::AGAIN).map(|again| again != 0);
        let tell = |vector, told| self.sink.interrupt(me, vector, told);
        self.flights.inject(me, vector as u8, again, now_ns, tell);
    }

    /// The guest of `me` is done with an interrupt.
    pub(super) fn end_of_irq(&mut self, me: usize, event: &Event<'_>, now_ns: u64) {
        if let Some(vector) = event.get(0) {
            self.flights.end_of(me, vector as u8, now_ns, |vector, told| self.sink.interrupt(me, vector, told));
        }
    }

    /// A register of the guest of `me` was accessed: it may be one that sets its timer.
    pub(super) fn sets_timer(&mut self, me: usize, event: &Event<'_>, role: Role, now_ns: u64) {
        let deadline = match role {
            Role::Msr if event.or_zero(roles::msr::WRITE) != 0 => match event.get(roles::msr::NUMBER) {
                Some(timers::TSC_DEADLINE) => event.get(roles::msr::VALUE),
                Some(timers::X2APIC_TMICT) => None,
                _ => return,
            },
            Role::Apic
                if event.get(roles::apic::REGISTER) == Some(timers::TMICT)
                    && event.or_zero(roles::apic::WRITE) != 0 =>
            {
                None
            }
            _ => return,
        };
        if let (Some(exit_ns), _) = self.threads[me].open_exit() {
            self.timers.set(me, exit_ns, deadline, now_ns);
        }
    }

    /// A timer of the host is set in the time of `me`.
    pub(super) fn hrtimer_start(&mut self, me: usize, event: &Event<'_>, now_ns: u64) {
        if let Some(hrtimer) = event.get(roles::hrtimer::TIMER).filter(|_| self.threads[me].is_vcpu) {
            let (exit_ns, _) = self.threads[me].open_exit();
            self.timers.start(me, exit_ns, hrtimer, event.get(roles::hrtimer::NS), now_ns);
        }
    }

    /// A timer of the host has expired.
    pub(super) fn hrtimer_expire(&mut self, event: &Event<'_>, now_ns: u64) {
        if let Some(hrtimer) = event.get(roles::hrtimer::TIMER) {
            self.timers.expire(event.cpu as usize, hrtimer, event.get(roles::hrtimer::NS), now_ns);
        }
    }

    /// KVM has set what keeps the timer of the guest of `me`.
    pub(super) fn timer_programmed(&mut self, me: usize, now_ns: u64) {
        let (exit_ns, _) = self.threads[me].open_exit();
        self.timers.programmed(me, exit_ns, now_ns);
    }

    /// KVM measures how late the guest of `me` gets its timer's interrupt.
    pub(super) fn lapic_expire(&mut self, me: usize, event: &Event<'_>, now_ns: u64) {
        let (Some(delta), Some((vector, shot, entered_ns))) = (event.get(0), self.flights.fresh_shot(me)) else {
            return;
        };
        let told = match self.timers.check(me, &shot, delta as i64, (entered_ns, now_ns)) {
            Some(Check::Residual(beside_ns, contradicts)) => {
                if contradicts {
                    self.sink.interrupt(me, vector, Told::Contradicted(now_ns));
                }
                Told::Timer(TimerStage::Residual, entered_ns, beside_ns)
            }
            Some(Check::Moved) => Told::Moved(now_ns),
            None => return,
        };
        self.sink.interrupt(me, vector, told);
    }

    /// KVM writes the offset of a counter in the time of `me`: its own, where that has the number.
    pub(super) fn tsc_offset(&mut self, me: usize, event: &Event<'_>, now_ns: u64) {
        let number = event.get(roles::tsc_offset::VCPU);
        let next = event.get(roles::tsc_offset::NEXT);
        if let Some(next) = next.filter(|_| self.threads[me].vcpu_id.map(u64::from) == number) {
            self.timers.offset(me, event.or_zero(roles::tsc_offset::PREVIOUS), next, now_ns);
        }
    }
}
