//! Who waited for a CPU, and for whom.

use super::fired;
use crate::flow::advise::advise;
use facts::Given;
use facts::ledger::measure::Measures;
use facts::ledger::model::{PartFlow, PreemptSums};
use facts::ledger::quiet::{host, quiet, spend, sums};
use walk::events::reasons::Isa;
use walk::state::{State, TracedLevel};

#[test]
fn waiting_names_who_ran_and_sets_no_mask_that_nobody_read() {
    let mut part = quiet(Isa::Vmx);
    spend(&mut part, State::Preempted, 400_000_000);
    let taken = PreemptSums { count: 60, total_ns: 400_000_000, max_ns: 8_000_000, cpu: 2 };
    sums(&mut part).preemptors.insert(Some(7), taken);
    assert_eq!(fired(&part), ["FLW-PREEMPT"]);
    let found = &advise(&Measures::of(&part, &Given::default()), None)[0];
    assert!(found.title.contains("busybox (tid 7)"), "{}", found.title);
    assert!(
        found.fix[0].starts_with("taskset -cp 7   #") && found.fix[0].ends_with("without CPU 2"),
        "{:?}",
        found.fix
    );
    assert!(found.changes.is_empty() && found.undo.is_empty());
    let found_for = |tid, taken| {
        let mut part = quiet(Isa::Vmx);
        spend(&mut part, State::Preempted, 400_000_000);
        sums(&mut part).preemptors.insert(tid, taken);
        part.gone.insert(10);
        advise(&Measures::of(&part, &Given::default()), None).remove(0)
    };
    assert!(found_for(Some(9), taken).fix[0].starts_with("taskset -cp 100   #"), "a bound thread stays, the vCPU goes");
    for tid in [Some(8), Some(10), None] {
        assert_eq!(found_for(tid, taken).fix, [""; 0], "{tid:?}: the recorder, a task that has ended, nobody known");
    }
    assert!(found_for(None, taken).title.ends_with("for tasks that the trace does not show"));
    let mut part = quiet(Isa::Vmx);
    spend(&mut part, State::Blocked, 400_000_000);
    assert_eq!(fired(&part), [""; 0]);
}

#[test]
fn a_quota_that_was_used_up_is_named_before_whoever_ran_meanwhile() {
    use facts::ledger::model::SpentQuota;
    use host::machine::Throttled;
    let mut part = quiet(Isa::Vmx);
    waiting_for(&mut part, 0..1, 7);
    let found = |part: &PartFlow| advise(&Measures::of(part, &Given::default()), None).remove(0);
    assert!(!found(&part).title.contains("quota"), "{}", found(&part).title);
    let throttled = Throttled { periods: 88, throttled: 61, ns: 150_000_000, cpus: 0.2 };
    part.quotas.insert(100, SpentQuota { group: "/labq".into(), throttled });
    let limited = found(&part);
    assert!(limited.title.contains("quota") && limited.title.contains("69.3 %"), "{}", limited.title);
    let said =
        "the CPU quota of /labq throttled it in 69.3 % of periods, up to 150.0 ms of this wait: raise the quota first";
    assert!(limited.evidence.iter().any(|seen| seen.what == said), "{:?}", limited.evidence);
    part.quotas = [(7, part.quotas.remove(&100).unwrap())].into();
    assert!(!found(&part).title.contains("quota"), "that of another thread says nothing of this one");
}

/// `vcpus` VMs whose vCPUs all waited for the task `by`.
fn waiting_for(part: &mut PartFlow, vcpus: std::ops::Range<usize>, by: i32) {
    for vcpu in &mut part.vcpus[vcpus] {
        vcpu.sums.states_ns[State::Guest(TracedLevel::L1).index()] -= 400_000_000;
        vcpu.sums.states_ns[State::Preempted.index()] += 400_000_000;
        let taken = PreemptSums { count: 60, total_ns: 400_000_000, max_ns: 8_000_000, cpu: 2 };
        vcpu.sums.preemptors.insert(Some(by), taken);
    }
}

#[test]
fn vcpus_that_wait_for_one_cause_are_one_finding() {
    let mut part = host(8);
    waiting_for(&mut part, 0..6, 7);
    waiting_for(&mut part, 6..7, 9);
    waiting_for(&mut part, 7..8, 100);
    let found = advise(&Measures::of(&part, &Given::default()), None);
    let subjects: Vec<&str> = found.iter().map(|finding| finding.subject.as_str()).collect();
    assert_eq!(subjects, ["L0/busybox", "vm6/0", "vm7/0"], "{found:?}");
    assert!(found[0].title.starts_with("6 vCPUs waited for a CPU, mostly for busybox (tid 7)"), "{}", found[0].title);
    assert!(found[0].evidence.iter().any(|seen| seen.what == "and 1 more vCPU"), "{:?}", found[0].evidence);
    assert_eq!(found[0].fix.len(), 1, "one task, one command");
    part.vcpus.iter_mut().enumerate().for_each(|(number, vcpu)| (vcpu.vm, vcpu.vcpu) = ("web".into(), number as u32));
    let found = advise(&Measures::of(&part, &Given::default()), None);
    assert_eq!(found[0].subject, "web/0-5");
}

#[test]
fn masks_of_a_snapshot_make_the_change_and_its_undo() {
    use host::machine::{Fact, Role, Thread};
    let found = |own: &str, rival: &str| {
        let mut part = quiet(Isa::Vmx);
        waiting_for(&mut part, 0..1, 7);
        for (tid, name, cpus) in [(100, "CPU 0/KVM", own), (7, "busybox", rival)] {
            let mut thread = Thread::new(Role::Other, name);
            thread.affinity = Some(Fact::new(base::CpuSet::parse(cpus).unwrap(), "status"));
            part.threads.insert(tid, Thread { tid: Some(tid), ..thread });
        }
        advise(&Measures::of(&part, &Given::default()), None).remove(0)
    };
    let moved = found("2", "0-3");
    assert_eq!((moved.fix[0].as_str(), moved.undo[0].as_str()), ("taskset -cp 0-1,3 7", "taskset -cp 0-3 7"));
    assert!(moved.evidence.iter().any(|seen| seen.what.contains("may run on CPUs 2, busybox (tid 7) on CPUs 0-3")));
    let bound = found("0-3", "2");
    assert_eq!(bound.fix, ["taskset -cp 0-1,3 100"], "who is pinned stays");
    let both = found("0-3", "0-3");
    assert!(both.changes.is_empty() && both.fix[0].starts_with("kvmscope check"), "{:?}", both.fix);
}

#[test]
fn polling_is_told_from_sleeping() {
    let mut part = quiet(Isa::Vmx);
    spend(&mut part, State::HaltPoll, 200_000_000);
    assert_eq!(fired(&part), ["FLW-HALTPOLL"]);
    let mut part = quiet(Isa::Vmx);
    spend(&mut part, State::Halted, 200_000_000);
    assert_eq!(fired(&part), [""; 0]);
}
