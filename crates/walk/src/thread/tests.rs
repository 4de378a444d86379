//! One transition at a time: a thread is told a few events and must have spent its time so.

use super::*;
use crate::events::host_interrupts::HostInterrupt;
use crate::events::reasons::Isa;
use crate::state::State;
use crate::walk::Preemptor;

const CPUID: u32 = 10;
const HLT: u32 = 12;
const VMREAD: u32 = 23;
const VMRESUME: u32 = 24;
const EXTERNAL_INTERRUPT: u32 = 1;
const PREEMPTION_TIMER: u32 = 52;
/// L2 starts here, L1 stands there when it enters it.
const L2_RIP: u64 = 0x30000;
const L1_RIP: u64 = 0x10500;

#[derive(Default)]
struct Told {
    intervals: Vec<(State, u64)>,
    exits: Vec<(u32, TracedLevel, Option<u64>)>,
    chains: Vec<Chain>,
    ran: Vec<(u64, u64)>,
    entered: Vec<(u64, u64)>,
    interrupted: Vec<(HostInterrupt, bool, u64)>,
}

impl Sink for Told {
    fn interval(&mut self, _: usize, state: State, from_ns: u64, to_ns: u64) {
        match self.intervals.last_mut() {
            Some((last, ns)) if *last == state => *ns += to_ns - from_ns,
            _ => self.intervals.push((state, to_ns - from_ns)),
        }
    }

    fn exit(&mut self, _: usize, exit: &Exit) {
        self.exits.push((exit.reason.code, exit.level, exit.cost_ns));
    }

    fn chain(&mut self, _: usize, chain: &Chain) {
        self.chains.push(chain.clone());
    }

    fn preempted(&mut self, _: usize, _: &Preemptor, _: u64, _: u64) {}

    fn interrupted(&mut self, _: usize, by: &Interruption, from_ns: u64, to_ns: u64) {
        self.interrupted.push((by.by, by.begins, to_ns - from_ns));
    }

    fn ran_after_waking(&mut self, _: usize, _: Waker, _: Option<usize>, woken_ns: u64, ran_ns: u64) {
        self.ran.push((woken_ns, ran_ns));
    }

    fn entered_after_waking(&mut self, _: usize, woken_ns: u64, entered_ns: u64) {
        self.entered.push((woken_ns, entered_ns));
    }
}

/// A thread that is told events; VMX, from time 0 on.
struct Script {
    thread: Thread,
    told: Told,
    seen: Seen,
    doubts: Doubts,
}

impl Script {
    fn new() -> Self {
        let seen = Seen::default();
        Self { thread: Thread::new(7, 0, 0), told: Told::default(), seen, doubts: Doubts::default() }
    }

    /// One in which `kvm_vcpu_wakeup` was recorded, which ends a halt that took that long.
    fn wakeup(&mut self, now_ns: u64, length_ns: u64, waited: bool) -> &mut Self {
        self.seen.wakeup = true;
        self.tell(|thread, cx| thread.vcpu_wakeup(now_ns, (length_ns, waited), cx))
    }

    /// A recording in which every nested event has been seen before.
    fn nested() -> Self {
        let seen = Seen { nested_vmexit: true, inject: true, nested_entry: true, ..Seen::default() };
        Self { seen, ..Self::new() }
    }

    fn tell(&mut self, event: impl FnOnce(&mut Thread, &mut Surroundings<'_, Told>)) -> &mut Self {
        let cx = &mut Surroundings { sink: &mut self.told, seen: &self.seen, doubts: &mut self.doubts, me: 0 };
        event(&mut self.thread, cx);
        self
    }

    fn entry(&mut self, now_ns: u64, rip: u64) -> &mut Self {
        self.tell(|thread, cx| thread.entry(now_ns, Some(rip), cx))
    }

    fn exit(&mut self, now_ns: u64, code: u32) -> &mut Self {
        let reason = Reason { isa: Isa::Vmx, code };
        self.tell(|thread, cx| thread.exit(now_ns, (reason, reason.class()), Some(L1_RIP), Detail::None, cx))
    }

    fn nested_vmexit(&mut self, now_ns: u64) -> &mut Self {
        self.tell(|thread, cx| thread.nested_vmexit(now_ns, cx))
    }

    fn inject(&mut self, now_ns: u64, code: u32) -> &mut Self {
        self.tell(|thread, cx| thread.inject(now_ns, Reason { isa: Isa::Vmx, code }, cx))
    }

    fn vmenter(&mut self, now_ns: u64, vmcb: u64) -> &mut Self {
        self.tell(|thread, cx| thread.nested_entry(now_ns, Some(L2_RIP), Some(vmcb), cx))
    }

    fn irq(&mut self, from_ns: u64, to_ns: u64) -> &mut Self {
        self.served(from_ns, Some((HostInterrupt::Vector("local_timer"), true))).served(to_ns, None)
    }

    /// From `now_ns` on its CPU serves that, which begins or goes on.
    fn served(&mut self, now_ns: u64, by: Option<(HostInterrupt, bool)>) -> &mut Self {
        let interruption = by.map(|(by, begins)| Interruption { by, begins });
        self.tell(|thread, cx| thread.interrupted(now_ns, interruption, cx))
    }

    fn out(&mut self, now_ns: u64, ready: bool) -> &mut Self {
        self.seen.switches = true;
        self.tell(|thread, cx| thread.switch_out(now_ns, ready, cx))
    }

    fn waking(&mut self, now_ns: u64) -> &mut Self {
        self.tell(|thread, cx| thread.waking(now_ns, Waker::Unknown, None, cx))
    }

    /// Made ready by an event that says where it ran last.
    fn waking_from(&mut self, now_ns: u64, cpu: usize) -> &mut Self {
        self.tell(|thread, cx| thread.waking(now_ns, Waker::Unknown, Some(cpu), cx))
    }

    fn back(&mut self, now_ns: u64) -> &mut Self {
        self.tell(|thread, cx| thread.switch_in(now_ns, cx))
    }

    /// L2 runs from 0 on, and leaves at 100 with an exit that L1 gets.
    fn reflected(&mut self) -> &mut Self {
        self.vmenter(0, 0xa000).entry(0, L2_RIP).exit(100, CPUID).nested_vmexit(110).inject(120, CPUID)
    }

    fn end(&mut self, now_ns: u64) -> &Told {
        self.tell(|thread, cx| thread.end(now_ns, cx));
        assert_eq!(self.told.intervals.iter().map(|(_, ns)| ns).sum::<u64>(), now_ns, "the ledger closes");
        &self.told
    }

    /// Time per state, in the order of first occurrence.
    fn sums(&mut self, end_ns: u64) -> Vec<(State, u64)> {
        let mut sums: Vec<(State, u64)> = Vec::new();
        for (state, ns) in &self.end(end_ns).intervals {
            match sums.iter_mut().find(|(known, _)| known == state) {
                Some((_, sum)) => *sum += ns,
                None => sums.push((*state, *ns)),
            }
        }
        sums
    }
}

/// Guest and handling at the level of L0's own guest.
const GUEST: State = State::Guest(TracedLevel::L1);
const HANDLING: State = State::Handling(TracedLevel::L1);
const GUEST2: State = State::Guest(TracedLevel::L2);
const HANDLING2: State = State::Handling(TracedLevel::L2);

#[test]
fn the_golden_vector_of_one_vcpu() {
    let mut t = Script::nested();
    t.entry(0, L1_RIP).exit(1_000, EXTERNAL_INTERRUPT).irq(1_200, 1_700).entry(2_000, L1_RIP);
    t.exit(5_000, EXTERNAL_INTERRUPT).out(5_300, true).back(12_300).entry(12_500, L1_RIP);
    t.exit(20_000, HLT).out(20_400, false).waking(29_000).back(31_000).entry(31_400, L1_RIP).exit(40_000, CPUID);
    let told = [
        (GUEST, 20_100),
        (HANDLING, 1_800),
        (State::Irq, 500),
        (State::Preempted, 7_000),
        (State::Halted, 8_600),
        (State::WakeDelay, 2_000),
    ];
    // The last exit tells the level of the last guest interval only when something follows it.
    assert_eq!(t.entry(40_000, L1_RIP).sums(40_000), told);
    let costs: Vec<_> = t.told.exits.iter().map(|(_, _, cost_ns)| cost_ns.unwrap()).collect();
    assert_eq!(costs, [1_000, 500, 800, 0]);
}

#[test]
fn t1_an_entry_elsewhere_than_announced_was_refused() {
    let mut t = Script::nested();
    t.reflected().entry(200, L1_RIP).exit(300, VMRESUME).vmenter(320, 0xa000).entry(400, L1_RIP).exit(500, CPUID);
    assert_eq!(t.entry(600, L1_RIP).thread.lvl, TracedLevel::L1);
    assert_eq!(t.doubts, Doubts { refused_entries: 1, restored: 1, ..Doubts::default() });
    let told = t.end(700);
    assert_eq!(told.chains[0].cost_ns, None, "L2 did not run again");
    assert_eq!(told.chains[0].exits, 2);
}

#[test]
fn t3_a_refusal_that_nobody_tells_shows_when_the_next_exit_is_l1s() {
    let mut t = Script::new();
    t.seen = Seen { nested_vmexit: true, inject: true, ..Seen::default() };
    t.exit(0, CPUID).nested_vmexit(0).inject(0, CPUID).entry(50, L1_RIP);
    // Without a request the entry is taken for L2's; it was L1's, at its exit handler.
    t.exit(100, VMRESUME).entry(200, 0x546).exit(300, VMREAD).entry(400, L1_RIP);
    t.exit(500, VMRESUME).entry(600, L2_RIP).exit(700, CPUID).nested_vmexit(710);
    let told = t.end(800);
    let [chain] = told.chains.as_slice() else { panic!("one chain: {:?}", told.chains) };
    assert_eq!((chain.exits, chain.cost_ns), (3, Some(600)));
    assert_eq!(told.exits.iter().map(|exit| exit.1).collect::<Vec<_>>(), [2, 1, 1, 1, 2].map(TracedLevel::at));
}

#[test]
fn t3_a_refused_entry_goes_on_behind_the_instruction() {
    let mut t = Script::new();
    t.seen = Seen { nested_vmexit: true, inject: true, ..Seen::default() };
    t.exit(0, CPUID).nested_vmexit(0).inject(0, CPUID).entry(50, L1_RIP).exit(100, VMRESUME).entry(200, L1_RIP + 3);
    assert_eq!((t.thread.lvl, t.doubts.refused_entries), (TracedLevel::L1, 1));
}

#[test]
fn t4_two_entries_are_one_interval_of_the_guest() {
    let mut t = Script::nested();
    t.entry(0, L1_RIP).exit(100, CPUID).entry(200, L1_RIP).entry(300, L1_RIP).exit(400, CPUID).entry(450, L1_RIP);
    assert_eq!(t.sums(450), [(GUEST, 300), (HANDLING, 150)]);
    assert_eq!(t.doubts.entry_entry, 1);
}

#[test]
fn t7_an_exit_without_an_entry_makes_unknown_time_and_no_cost() {
    let mut t = Script::nested();
    t.entry(0, L1_RIP).exit(100, CPUID).exit(400, CPUID).entry(500, L1_RIP);
    assert_eq!(t.sums(500), [(GUEST, 100), (State::Unknown, 300), (HANDLING, 100)]);
    assert_eq!(t.told.exits, [(CPUID, TracedLevel::L1, None), (CPUID, TracedLevel::L1, Some(100))]);
}

#[test]
fn t8_t9_a_reflected_exit_is_l2s_and_opens_a_chain() {
    let mut t = Script::nested();
    t.reflected().entry(200, L1_RIP).exit(250, VMREAD).entry(300, L1_RIP).exit(350, VMRESUME);
    t.vmenter(360, 0xa000).entry(400, L2_RIP).exit(500, CPUID).nested_vmexit(510);
    let told = t.sums(600);
    assert_eq!(told, [(GUEST2, 200), (HANDLING2, 200), (GUEST, 100), (HANDLING, 100)]);
    let chain = &t.told.chains[0];
    assert_eq!((chain.exits, chain.cost_ns, chain.guest_ns), (2, Some(300), 100));
    assert!(!chain.migrated && !chain.interrupted);
}

#[test]
fn t11_what_the_hardware_refuses_never_ran_and_closes_no_chain() {
    let mut t = Script::nested();
    t.reflected().entry(200, L1_RIP).exit(250, VMRESUME).vmenter(260, 0xa000).entry(300, L2_RIP);
    t.tell(|thread, cx| thread.nested_entry_failed(340, cx)).entry(400, L1_RIP + 3);
    t.exit(450, VMRESUME).vmenter(460, 0xa000).entry(500, L2_RIP).exit(600, CPUID).nested_vmexit(610);
    assert_eq!(t.sums(700), [(GUEST2, 200), (HANDLING2, 200), (GUEST, 100), (HANDLING, 200)]);
    let chain = &t.told.chains[0];
    assert_eq!((chain.exits, chain.cost_ns), (2, Some(400)));
}

#[test]
fn t12_the_vmm_has_the_time_until_the_next_entry() {
    let mut t = Script::nested();
    t.entry(0, L1_RIP).exit(100, CPUID).tell(|thread, cx| thread.userspace_exit(150, cx)).irq(200, 230);
    assert_eq!(t.entry(400, L1_RIP).sums(400)[2..], [(State::Userspace, 220), (State::Irq, 30)]);
}

#[test]
fn t21_the_vmm_has_the_time_until_kvm_runs_again_where_no_entry_fires() {
    let mut t = Script::nested();
    let run = |t: &mut Script, from_ns: u64| {
        t.tell(|thread, cx| thread.userspace_exit(from_ns, cx)).tell(|thread, cx| thread.run_begins(from_ns + 40, cx));
    };
    run(&mut t, 100);
    run(&mut t, 1_000);
    let userspace: u64 = t.sums(2_000).iter().filter(|(state, _)| *state == State::Userspace).map(|(_, ns)| ns).sum();
    assert_eq!(userspace, 80);
    // Where entries fire, T12 stands: loading the registers is on the way to one.
    let mut t = Script::nested();
    t.entry(0, L1_RIP).exit(100, CPUID);
    run(&mut t, 150);
    assert_eq!(t.entry(400, L1_RIP).sums(400)[2..], [(State::Userspace, 250)]);
}

#[test]
fn t13_time_off_the_cpu_is_in_no_cost() {
    let mut t = Script::nested();
    t.reflected().entry(200, L1_RIP).exit(250, VMRESUME).out(260, true).back(1_260);
    t.vmenter(1_270, 0xa000).entry(1_300, L2_RIP).exit(1_400, CPUID).nested_vmexit(1_410);
    assert_eq!(t.end(1_500).chains[0].cost_ns, Some(200));
    assert_eq!(t.told.exits[1], (VMRESUME, TracedLevel::L1, Some(50)));
}

#[test]
fn t15_a_sleep_that_no_halt_explains_is_blocked() {
    let mut t = Script::nested();
    t.entry(0, L1_RIP).exit(100, CPUID).out(200, false).waking(500).back(600).entry(700, L1_RIP);
    assert_eq!(t.sums(700), [(GUEST, 100), (HANDLING, 200), (State::Blocked, 300), (State::WakeDelay, 100)]);
}

#[test]
fn t17_a_waking_counts_once_and_until_the_guest_though_another_task_came_between() {
    let mut t = Script::nested();
    t.entry(0, L1_RIP).exit(100, HLT).out(200, false).waking(500).back(600);
    t.out(610, true).back(900).entry(1_000, L1_RIP).exit(1_100, CPUID).out(1_200, true).back(1_300);
    t.entry(1_400, L1_RIP);
    assert_eq!((t.told.ran.as_slice(), t.told.entered.as_slice()), (&[(500, 600)][..], &[(500, 1_000)][..]));
}

#[test]
fn t17_who_is_woken_on_the_way_off_its_cpu_waits_and_did_not_sleep() {
    let mut t = Script::nested();
    t.entry(0, L1_RIP).exit(100, HLT).waking(190).out(200, false).back(900).entry(1_000, L1_RIP);
    assert_eq!(t.told.ran, [(200, 900)]);
    assert_eq!(t.sums(1_000), [(GUEST, 100), (HANDLING, 200), (State::WakeDelay, 700)]);
    // The first waking came to nothing: only the second one ended the sleep.
    let mut t = Script::nested();
    t.entry(0, L1_RIP).exit(100, HLT).waking(190).out(200, false).waking(800).back(900).entry(1_000, L1_RIP);
    assert_eq!(t.told.ran, [(800, 900)]);
    assert_eq!(t.sums(1_000), [(GUEST, 100), (HANDLING, 200), (State::Halted, 600), (State::WakeDelay, 100)]);
    // It went on after the waking, and slept later.
    let mut t = Script::nested();
    t.entry(0, L1_RIP).exit(100, CPUID).waking(110).irq(120, 130).out(200, false).waking(800).back(900);
    assert_eq!(t.told.ran, [(800, 900)]);
}

#[test]
fn t17_a_sleep_that_nobody_ended_is_not_all_sleep_and_no_cost() {
    let mut t = Script::nested();
    t.seen.waking = true;
    t.entry(0, L1_RIP).exit(100, HLT).out(200, false).back(900).entry(1_000, L1_RIP);
    assert_eq!(t.told.exits, [(HLT, TracedLevel::L1, Some(200))]);
    assert_eq!(t.sums(1_000), [(GUEST, 100), (HANDLING, 200), (State::Unknown, 700)]);
}

#[test]
fn t16_who_is_woken_elsewhere_than_it_was_seen_ran_there_unseen() {
    let mut t = Script::nested();
    t.thread.cpu = Some(0);
    t.entry(0, L1_RIP).exit(100, HLT).out(200, false).waking_from(800, 1).back(900).entry(1_000, L1_RIP);
    assert_eq!(t.doubts.unseen_switches, 1);
    assert_eq!(t.told.exits[0].2, None, "its next entry may have been there");
    // Behind it nothing tells what it does until its next event.
    assert_eq!(t.sums(1_000)[2..], [(State::Unknown, 700), (State::WakeDelay, 100)][..]);
}

#[test]
fn t19_who_is_woken_where_it_was_seen_slept_through_what_other_cpus_did_unseen() {
    let mut t = Script::nested();
    t.thread.cpu = Some(0);
    t.entry(0, L1_RIP).exit(100, HLT).out(200, false).tell(|thread, cx| thread.lost(200, u64::MAX, false, cx));
    t.waking_from(800, 0).back(900).entry(1_000, L1_RIP);
    // Between the waking and the switch it may have run, and been sent back.
    assert_eq!(t.sums(1_000)[2..], [(State::Halted, 600), (State::Unknown, 200)][..]);
    // Nothing like it is known of a thread that was ready.
    let mut t = Script::nested();
    t.thread.cpu = Some(0);
    t.entry(0, L1_RIP).exit(100, HLT).out(200, true).tell(|thread, cx| thread.lost(200, u64::MAX, false, cx));
    t.back(900).entry(1_000, L1_RIP);
    assert_eq!(t.sums(1_000)[2..], [(State::Unknown, 800)]);
}

#[test]
fn t18_what_came_before_the_sleep_was_polling_as_far_as_the_wakeup_reaches() {
    let mut t = Script::nested();
    t.entry(0, L1_RIP).exit(100, HLT).out(300, false).waking(500).back(600);
    t.wakeup(650, 500, true).entry(700, L1_RIP);
    assert_eq!(
        t.sums(700),
        [(GUEST, 100), (HANDLING, 150), (State::HaltPoll, 150), (State::Halted, 200), (State::WakeDelay, 100)]
    );
}

#[test]
fn t18_who_waited_and_was_not_seen_to_leave_its_cpu_slept_and_who_polled_did_not() {
    for (waited, state, cost_ns) in [(true, State::Halted, 200), (false, State::HaltPoll, 700)] {
        let mut t = Script::nested();
        t.entry(0, L1_RIP).exit(100, HLT).wakeup(650, 500, waited).entry(800, L1_RIP);
        assert_eq!(t.sums(800), [(GUEST, 100), (HANDLING, 200), (state, 500)]);
        assert_eq!(t.told.exits, [(HLT, TracedLevel::L1, Some(cost_ns))]);
    }
}

#[test]
fn t24_from_a_halt_to_the_entry_the_guest_was_idle_where_nothing_tells_more() {
    let mut t = Script::nested();
    t.entry(0, L1_RIP).exit(100, HLT).entry(800, L1_RIP).exit(900, CPUID).entry(1_000, L1_RIP);
    assert_eq!(t.sums(1_000), [(GUEST, 200), (State::Halted, 700), (HANDLING, 100)]);
    assert_eq!(t.told.exits, [(HLT, TracedLevel::L1, None), (CPUID, TracedLevel::L1, Some(100))]);
    // A recording that has switches would have told one.
    let mut t = Script::nested();
    t.seen.switches = true;
    t.entry(0, L1_RIP).exit(100, HLT).entry(800, L1_RIP);
    assert_eq!(t.sums(800), [(GUEST, 100), (HANDLING, 700)]);
    // The halt of a nested guest is handed to its hypervisor.
    let mut t = Script::nested();
    t.vmenter(0, 0xa000).entry(0, L2_RIP).exit(100, HLT).nested_vmexit(110).inject(120, HLT).entry(200, L1_RIP);
    assert!(!t.sums(200).iter().any(|(state, _)| *state == State::Halted));
}

#[test]
fn t19_a_loss_makes_the_gap_unknown_and_censors_the_chain() {
    let mut t = Script::nested();
    t.reflected().entry(200, L1_RIP).tell(|thread, cx| thread.lost(250, 400, true, cx)).exit(500, CPUID);
    t.entry(600, L1_RIP);
    assert_eq!(t.sums(600)[3..], [(State::Unknown, 250), (HANDLING, 100)]);
    assert_eq!((t.told.chains.len(), t.told.chains[0].cost_ns), (1, None));
}

#[test]
fn t19_a_thread_that_slept_through_a_loss_elsewhere_loses_the_gap_alone() {
    let mut t = Script::nested();
    t.entry(0, L1_RIP).exit(100, HLT).out(200, false).tell(|thread, cx| thread.lost(300, 400, false, cx));
    t.waking(1_000).back(1_100);
    assert_eq!(t.sums(1_100)[2..], [(State::Halted, 700), (State::Unknown, 100), (State::WakeDelay, 100)]);
}

#[test]
fn r1_silence_of_nested_vmexit_means_l1_but_for_the_preemption_timer() {
    let mut t = Script::nested();
    t.vmenter(0, 0xa000).entry(0, L2_RIP).exit(100, PREEMPTION_TIMER).entry(200, L2_RIP).exit(300, CPUID);
    t.entry(400, L1_RIP);
    assert_eq!(t.end(400).exits.iter().map(|exit| exit.1).collect::<Vec<_>>(), [2, 1].map(TracedLevel::at));
    assert_eq!(t.doubts.level_conflicts, 1);
}

#[test]
fn r3_host_work_before_a_late_exit_ends_the_guest() {
    let mut t = Script::nested();
    t.entry(0, L1_RIP).irq(100, 150).exit(180, EXTERNAL_INTERRUPT).entry(200, L1_RIP);
    assert_eq!(t.sums(200), [(GUEST, 100), (State::Irq, 50), (HANDLING, 50)]);
}

#[test]
fn an_nmi_in_the_guest_began_before_it_was_told() {
    let mut t = Script::nested();
    t.entry(0, L1_RIP).tell(|thread, cx| thread.nmi(150, 50, cx)).exit(180, 0).entry(200, L1_RIP);
    assert_eq!(t.sums(200), [(GUEST, 100), (State::Nmi, 50), (HANDLING, 50)]);
}

#[test]
fn the_guest_that_a_reflected_vmresume_enters_is_one_level_deeper() {
    let mut t = Script::nested();
    t.vmenter(0, 0xa000).entry(0, L2_RIP).exit(100, VMRESUME).nested_vmexit(110).inject(120, VMRESUME);
    t.entry(200, L1_RIP).exit(250, VMRESUME).vmenter(260, 0xb000).entry(300, L2_RIP);
    t.exit(400, CPUID).nested_vmexit(410).inject(420, CPUID);
    assert_eq!(t.thread.contexts.all.iter().map(|context| context.depth).collect::<Vec<_>>(), [2, 3]);
    assert!(t.end(500).chains[0].migrated, "another guest than the one that left");
    assert_eq!(t.told.exits[2].1, TracedLevel::L3);
}

#[test]
fn a_chain_whose_guest_was_asked_for_elsewhere_has_migrated() {
    let mut t = Script::nested();
    t.reflected().entry(200, L1_RIP).exit(250, HLT).entry(300, L1_RIP);
    assert!(!t.thread.is_inside(0xa000));
    t.thread.overtaken(0xa000);
    t.exit(350, VMRESUME).vmenter(360, 0xa000).entry(400, L2_RIP).exit(500, CPUID).nested_vmexit(510);
    let chain = &t.end(600).chains[0];
    assert!(chain.migrated && chain.interrupted);
    assert_eq!(chain.exits, 2);
}

#[test]
fn t22_a_guest_that_is_translated_runs_whenever_its_thread_does() {
    let mut t = Script::new();
    let name = |t: &mut Script| t.tell(|thread, cx| thread.is_called(b"CPU 1/TCG", cx)).thread.vcpu_id;
    assert_eq!(name(&mut t), Some(1));
    t.back(100).irq(200, 250).out(400, true).back(700).out(800, false).waking(900).back(1_000);
    t.out(1_200, false).tell(|thread, cx| thread.is_stopped(cx)).waking(1_500).back(1_510);
    let told = [
        (State::Unknown, 100),
        (GUEST, 100 + 150 + 100 + 200 + 90),
        (State::Irq, 50),
        (State::Preempted, 300),
        (State::Halted, 100),
        (State::WakeDelay, 110),
        (State::Blocked, 300),
    ];
    assert_eq!(t.sums(1_600), told);
    let mut other = Script::new();
    other.tell(|thread, cx| thread.is_called(b"CPU 1/KVM", cx)).back(100).out(400, false).back(500);
    assert_eq!((other.thread.is_vcpu, other.sums(600)), (false, vec![(State::Unknown, 500), (State::Blocked, 100)]));
}

#[test]
fn a_clock_that_steps_back_gets_no_time() {
    let mut t = Script::nested();
    t.entry(0, L1_RIP).exit(100, CPUID).entry(90, L1_RIP).exit(200, CPUID).entry(250, L1_RIP);
    assert_eq!(t.sums(250), [(GUEST, 200), (HANDLING, 50)]);
    assert_eq!(t.doubts.clock_skew, 1);
}

#[test]
fn an_interrupt_takes_its_own_time_and_what_it_met_goes_on_uncounted() {
    let (softirq, timer) = (HostInterrupt::Softirq(Some(3)), HostInterrupt::Vector("local_timer"));
    let mut t = Script::new();
    // Before its first KVM event a thread's time is unknown, whatever interrupts it.
    t.served(50, Some((softirq, true))).served(60, None);
    t.entry(100, L1_RIP).exit(200, EXTERNAL_INTERRUPT);
    t.served(210, Some((softirq, true))).served(230, Some((timer, true)));
    t.tell(|thread, cx| thread.nmi(260, 5, cx));
    t.served(280, Some((softirq, false))).served(290, None).served(290, Some((timer, true))).served(290, None);
    let pieces = [
        (softirq, true, 20),
        (timer, true, 25),
        (HostInterrupt::Nmi, true, 5),
        (timer, false, 20),
        (softirq, false, 10),
        (timer, true, 0),
    ];
    assert_eq!(t.end(300).interrupted, pieces);
}
