//! Which accept, injection, entry and end belong to one virtual interrupt?
//!
//! First in, first out per vCPU thread and vector: the APIC's IRR holds one of each, so an accept while it is pending is
//! merged, and what is accepted while one is in service is the next one. An injection that was cut short is made again at
//! once, before any other entry: it continues the old one (`reinjected`, which kernels before 6.0 do not say).
//! With APICv or AVIC there is no injection; then the interrupt is posted, and nothing of it is seen behind its acceptance.
//! Trap: the field `apicid` of `kvm_apic_accept_irq` holds vcpu_id (`__apic_accept_irq` in arch/x86/kvm/lapic.c,
//! Linux 6.12), and no event names the VM: where two VMs have a vCPU of that number, the accept is left out and counted,
//! but for one that a vCPU makes to itself.

use super::timers::Shot;
use super::{IrqStage, TimerStage, Told};
use crate::events::reasons::{Class, Reason};
use smallvec::SmallVec;

#[derive(Debug, Clone, Default)]
pub struct Flights {
    vcpus: Vec<Vcpu>,
    /// Accepts of a vCPU number that several VMs have, or that no thread is known for.
    pub ambiguous: u64,
}

/// What the vCPU's thread does when an interrupt is accepted for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Away {
    /// It has no CPU.
    OffCpu,
    InGuest,
    /// Neither, or nobody knows.
    No,
}

/// Interrupts under way to one vCPU.
#[derive(Debug, Clone, Default)]
struct Vcpu {
    flights: SmallVec<[Flight; 4]>,
    /// Some are accepted and not injected.
    pending: usize,
    /// Some are injected, and no later entry has shown that they have arrived.
    arriving: bool,
    /// Some were accepted while the guest ran, which has not been left since.
    met_guest: bool,
    /// The exit that KVM works on says that the guest takes interrupts again.
    window_ns: Option<u64>,
}

#[derive(Debug, Clone, Copy)]
struct Flight {
    vector: u8,
    accepted_ns: Option<u64>,
    away: Away,
    injected_ns: Option<u64>,
    entered_ns: Option<u64>,
    has_arrived: bool,
    shot: Option<Shot>,
}

impl Flight {
    fn is_pending(&self) -> bool {
        self.injected_ns.is_none()
    }

    /// Injected with the last entry: it may be injected again.
    fn is_fresh(&self) -> bool {
        self.entered_ns.is_some() && !self.has_arrived
    }

    /// It got through with the entry seen last.
    fn arrive(&mut self, tell: &mut impl FnMut(u8, Told)) {
        let (false, Some(injected_ns), Some(entered_ns)) = (self.has_arrived, self.injected_ns, self.entered_ns) else {
            return;
        };
        self.has_arrived = true;
        tell(self.vector, Told::Irq(IrqStage::Enter, injected_ns, entered_ns));
        if let Some(accepted_ns) = self.accepted_ns {
            tell(self.vector, Told::Delivered { accepted_ns, entered_ns });
        }
        if let Some(shot) = &self.shot {
            shot.stages(injected_ns).for_each(|(stage, length_ns)| {
                tell(self.vector, Told::Timer(stage, entered_ns, length_ns));
            });
            let enter_ns = entered_ns.saturating_sub(injected_ns);
            tell(self.vector, Told::Timer(TimerStage::Enter, entered_ns, enter_ns));
        }
    }
}

impl Flights {
    /// The APIC of `thread`'s vCPU accepted `vector`, as its timer's `shot` if it is that.
    pub fn accept(
        &mut self,
        (thread, away): (usize, Away),
        (vector, shot): (u8, Option<Shot>),
        now_ns: u64,
        mut tell: impl FnMut(u8, Told),
    ) {
        if thread >= self.vcpus.len() {
            self.vcpus.resize_with(thread + 1, Vcpu::default);
        }
        let vcpu = &mut self.vcpus[thread];
        if vcpu.flights.iter().any(|flight| flight.vector == vector && flight.is_pending()) {
            return tell(vector, Told::Merged(now_ns));
        }
        vcpu.pending += 1;
        vcpu.met_guest |= away == Away::InGuest;
        let (injected_ns, entered_ns) = (None, None);
        let accepted_ns = Some(now_ns);
        vcpu.flights.push(Flight { vector, accepted_ns, away, injected_ns, entered_ns, has_arrived: false, shot });
    }

    /// The processor will deliver what was accepted of `vector` by itself.
    pub fn post(&mut self, thread: usize, vector: u8, now_ns: u64, mut tell: impl FnMut(u8, Told)) {
        if let Some(vcpu) = self.vcpus.get_mut(thread)
            && let Some(place) = vcpu.flights.iter().position(|flight| flight.vector == vector && flight.is_pending())
        {
            vcpu.flights.remove(place);
            vcpu.pending -= 1;
        }
        tell(vector, Told::Posted(now_ns));
    }

    /// The thread gets a CPU.
    pub fn runs(&mut self, thread: usize, now_ns: u64, tell: impl FnMut(u8, Told)) {
        if let Some(vcpu) = self.vcpus.get_mut(thread).filter(|vcpu| vcpu.pending > 0) {
            vcpu.wake(Away::OffCpu, now_ns, tell);
        }
    }

    /// The guest of the thread is left.
    #[inline(always)]
    pub fn leave(&mut self, thread: usize, now_ns: u64, (reason, class): (Reason, Class), tell: impl FnMut(u8, Told)) {
        if let Some(vcpu) = self.vcpus.get_mut(thread).filter(|vcpu| vcpu.pending > 0 || vcpu.arriving) {
            vcpu.window_ns = reason.is_interrupt_window().then_some(now_ns);
            if vcpu.met_guest || class == Class::Halt {
                vcpu.leave(now_ns, class, tell);
            }
        }
    }

    /// The exit was one of a nested guest: its windows are its hypervisor's.
    pub fn nested(&mut self, thread: usize) {
        if let Some(vcpu) = self.vcpus.get_mut(thread) {
            vcpu.window_ns = None;
        }
    }

    /// KVM injects `vector` on `thread`; `again` says whether it is one that was injected before, where the event does.
    pub fn inject(
        &mut self,
        thread: usize,
        vector: u8,
        again: Option<bool>,
        now_ns: u64,
        mut tell: impl FnMut(u8, Told),
    ) {
        if thread >= self.vcpus.len() {
            self.vcpus.resize_with(thread + 1, Vcpu::default);
        }
        let vcpu = &mut self.vcpus[thread];
        let of_vector = |flight: &&mut Flight| flight.vector == vector;
        let is_pending = vcpu.flights.iter().any(|flight| flight.vector == vector && flight.is_pending());
        if again.unwrap_or(!is_pending)
            && let Some(fresh) = vcpu.flights.iter_mut().filter(of_vector).find(|flight| flight.is_fresh())
        {
            fresh.entered_ns = None;
            return;
        }
        if again == Some(true) {
            return;
        }
        vcpu.end(vector, &mut tell);
        let window_ns = vcpu.window_ns;
        vcpu.arriving = true;
        let Some(flight) = vcpu.flights.iter_mut().find(|flight| flight.vector == vector && flight.is_pending()) else {
            let (injected_ns, entered_ns) = (Some(now_ns), None);
            let (accepted_ns, away, has_arrived, shot) = (None, Away::No, false, None);
            vcpu.flights.push(Flight { vector, accepted_ns, away, injected_ns, entered_ns, has_arrived, shot });
            return;
        };
        flight.injected_ns = Some(now_ns);
        let accepted_ns = flight.accepted_ns.unwrap_or(now_ns);
        vcpu.pending -= 1;
        tell(vector, Told::Irq(IrqStage::Pending, accepted_ns, now_ns));
        if let Some(window_ns) = window_ns.filter(|window_ns| *window_ns >= accepted_ns) {
            tell(vector, Told::Irq(IrqStage::Masked, accepted_ns, window_ns));
        }
    }

    /// `thread` enters its guest: what was injected is on its way.
    #[inline(always)]
    pub fn enter(&mut self, thread: usize, entered_ns: u64, tell: impl FnMut(u8, Told)) {
        if let Some(vcpu) = self.vcpus.get_mut(thread).filter(|vcpu| vcpu.arriving) {
            vcpu.enter(entered_ns, tell);
        }
    }

    /// KVM learns that the guest is done with `vector`.
    pub(crate) fn end_of(&mut self, thread: usize, vector: u8, now_ns: u64, mut tell: impl FnMut(u8, Told)) {
        let Some(vcpu) = self.vcpus.get_mut(thread) else { return };
        if let Some(entered_ns) = vcpu.end(vector, &mut tell) {
            tell(vector, Told::Irq(IrqStage::Eoi, entered_ns, now_ns));
        }
    }

    /// The timer interrupt with which `thread` entered its guest last.
    #[inline]
    pub(crate) fn fresh_shot(&self, thread: usize) -> Option<(u8, Shot, u64)> {
        let flights = &self.vcpus.get(thread).filter(|vcpu| vcpu.arriving)?.flights;
        flights
            .iter()
            .filter(|flight| flight.is_fresh())
            .find_map(|flight| Some((flight.vector, flight.shot?, flight.entered_ns?)))
    }

    /// Events were lost, or the trace is over: what is under way can no longer be followed.
    pub fn forget(&mut self, mut tell: impl FnMut(usize, u8, Told)) {
        for (thread, vcpu) in self.vcpus.iter_mut().enumerate() {
            vcpu.flights.iter_mut().for_each(|flight| flight.arrive(&mut |vector, told| tell(thread, vector, told)));
        }
        self.vcpus.clear();
    }
}

impl Vcpu {
    #[inline(never)]
    fn leave(&mut self, now_ns: u64, class: Class, mut tell: impl FnMut(u8, Told)) {
        if class == Class::Halt {
            // A guest that halts has got what it was entered with.
            self.flights.iter_mut().for_each(|flight| flight.arrive(&mut tell));
            self.arriving = false;
        }
        if std::mem::take(&mut self.met_guest) {
            self.wake(Away::InGuest, now_ns, tell);
        }
    }

    /// Those that met the thread `away` meet it no longer.
    fn wake(&mut self, away: Away, now_ns: u64, mut tell: impl FnMut(u8, Told)) {
        for flight in self.flights.iter_mut().filter(|flight| flight.is_pending() && flight.away == away) {
            flight.away = Away::No;
            tell(flight.vector, Told::Irq(IrqStage::Wake, flight.accepted_ns.unwrap_or(now_ns), now_ns));
        }
    }

    #[inline(never)]
    fn enter(&mut self, entered_ns: u64, mut tell: impl FnMut(u8, Told)) {
        self.window_ns = None;
        self.arriving = false;
        for flight in &mut self.flights {
            flight.arrive(&mut tell);
            if flight.injected_ns.is_some() && flight.entered_ns.is_none() {
                flight.entered_ns = Some(entered_ns);
                self.arriving = true;
            }
        }
    }

    /// The one of `vector` that the guest has got is over: when it entered with it.
    fn end(&mut self, vector: u8, tell: &mut impl FnMut(u8, Told)) -> Option<u64> {
        let place = self.flights.iter().position(|flight| flight.vector == vector && !flight.is_pending())?;
        let mut flight = self.flights.remove(place);
        flight.arrive(tell);
        flight.entered_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::reasons::Isa;

    const VECTOR: u8 = 0xec;
    const EXTERNAL_INTERRUPT: u32 = 1;
    const INTERRUPT_WINDOW: u32 = 7;
    const HLT: u32 = 12;

    /// One vCPU, thread 3, and what was told of it.
    #[derive(Default)]
    struct One {
        flights: Flights,
        told: Vec<Told>,
    }

    impl One {
        fn accept(&mut self, away: Away, now_ns: u64) {
            self.flights.accept((3, away), (VECTOR, None), now_ns, |_, told| self.told.push(told));
        }

        fn inject(&mut self, again: Option<bool>, now_ns: u64) {
            self.flights.inject(3, VECTOR, again, now_ns, |_, told| self.told.push(told));
        }

        /// By the exit of this code.
        fn leave(&mut self, now_ns: u64, code: u32) {
            let reason = Reason { isa: Isa::Vmx, code };
            self.flights.leave(3, now_ns, (reason, reason.class()), |_, told| self.told.push(told));
        }

        fn enter(&mut self, now_ns: u64) {
            self.flights.enter(3, now_ns, |_, told| self.told.push(told));
        }

        fn end(&mut self, now_ns: u64) {
            self.flights.end_of(3, VECTOR, now_ns, |_, told| self.told.push(told));
        }
    }

    fn enter_told(injected_ns: u64, accepted_ns: u64, entered_ns: u64) -> [Told; 2] {
        [Told::Irq(IrqStage::Enter, injected_ns, entered_ns), Told::Delivered { accepted_ns, entered_ns }]
    }

    #[test]
    fn an_interrupt_is_followed_from_accept_to_end_and_a_second_accept_is_merged() {
        let mut one = One::default();
        one.accept(Away::OffCpu, 100);
        one.accept(Away::No, 150);
        one.flights.runs(3, 180, |_, told| one.told.push(told));
        one.inject(Some(false), 200);
        one.enter(230);
        one.accept(Away::No, 260);
        one.enter(400);
        one.end(500);
        assert_eq!(
            one.told[..3],
            [Told::Merged(150), Told::Irq(IrqStage::Wake, 100, 180), Told::Irq(IrqStage::Pending, 100, 200)]
        );
        assert_eq!(one.told[3..5], enter_told(200, 100, 230), "told when a later entry shows that it was the last");
        assert_eq!(one.told[5..], [Told::Irq(IrqStage::Eoi, 230, 500)], "the one accepted in service is pending still");
        one.inject(Some(false), 510);
        assert_eq!(one.told.last(), Some(&Told::Irq(IrqStage::Pending, 260, 510)));
    }

    #[test]
    fn one_that_is_cut_short_goes_on_whether_or_not_the_event_says_so() {
        for again in [Some(true), None] {
            let mut one = One::default();
            one.accept(Away::No, 100);
            one.inject(again.map(|_| false), 110);
            one.enter(120);
            one.inject(again, 150);
            one.enter(170);
            one.end(200);
            let mut expected = vec![Told::Irq(IrqStage::Pending, 100, 110)];
            expected.extend(enter_told(110, 100, 170));
            expected.push(Told::Irq(IrqStage::Eoi, 170, 200));
            assert_eq!(one.told, expected, "{again:?}");
        }
    }

    #[test]
    fn a_guest_that_has_halted_is_not_cut_short() {
        let mut one = One::default();
        for now_ns in [100, 200] {
            one.inject(None, now_ns);
            one.enter(now_ns + 10);
            one.leave(now_ns + 50, HLT);
        }
        assert_eq!(one.told, [Told::Irq(IrqStage::Enter, 100, 110), Told::Irq(IrqStage::Enter, 200, 210)]);
    }

    #[test]
    fn a_window_is_the_exit_behind_which_it_is_injected() {
        let mut one = One::default();
        one.accept(Away::InGuest, 100);
        one.leave(130, EXTERNAL_INTERRUPT);
        one.leave(180, INTERRUPT_WINDOW);
        one.inject(Some(false), 190);
        let wake = Told::Irq(IrqStage::Wake, 100, 130);
        let masked = Told::Irq(IrqStage::Masked, 100, 180);
        assert_eq!(one.told, [wake, Told::Irq(IrqStage::Pending, 100, 190), masked]);
        one.enter(200);
        one.accept(Away::No, 300);
        one.leave(310, INTERRUPT_WINDOW);
        one.flights.nested(3);
        one.inject(Some(false), 320);
        assert!(
            !one.told.contains(&Told::Irq(IrqStage::Masked, 300, 310)),
            "a nested guest's window is its hypervisor's"
        );
    }

    #[test]
    fn what_is_posted_or_lost_is_followed_no_further() {
        let mut one = One::default();
        one.accept(Away::No, 100);
        one.flights.post(3, VECTOR, 110, |_, told| one.told.push(told));
        one.accept(Away::No, 200);
        assert_eq!(one.told, [Told::Posted(110)], "not merged: the first is gone");
        one.flights.forget(|_, _, told| one.told.push(told));
        one.inject(Some(false), 300);
        assert_eq!(one.told.len(), 1);
    }
}
